"""cases.py -- the list of cases and what they share: drawn inputs, comparisons.

A case is a function of a device and a random generator. It draws a call of one
operation, makes it, and compares the results with NumPy's.
"""
import numpy

from kiln_library import Failure

CASES = {}  # operation: function


def case(operation):
    def add(function):
        CASES[operation] = function
        return function
    return add


# ---- Inputs ----------------------------------------------------------------

LENGTHS = (1, 2, 31, 32, 33, 255, 1000, 1023, 1024, 1025, 2049, 4096, 6001)


def length(r, most=6001):
    """Draws a number of elements, often near that of a warp or a tile."""
    if r.random() < 0.4:
        return min(int(r.choice(LENGTHS)), most)
    return int(r.integers(1, most + 1))


def shift(r):
    return int(r.integers(0, 4))


def choose(r, *options):
    return options[int(r.integers(0, len(options)))]


def values(r, dtype, n, least=-50, most=100):
    """Draws whole numbers, which every type holds exactly."""
    dtype = numpy.dtype(dtype)
    if dtype.kind == "u":
        least = max(least, 0)
    return r.integers(least, most + 1, n).astype(dtype)


def floats(r, dtype, n):
    """Draws floats of both signs and of many magnitudes."""
    return (r.standard_normal(n) * 2.0 ** r.integers(-10, 10, n)).astype(dtype)


def numbers(r, dtype, n):
    if numpy.dtype(dtype).kind == "f" and r.random() < 0.5:
        return floats(r, dtype, n)
    return values(r, dtype, n)


def runs(r, n, mean):
    """Draws n keys in runs of equal keys."""
    return numpy.cumsum(r.random(n) < 1 / mean).astype("u4")


def offsets(r, n, segments):
    """Draws the bounds of segments that cover n elements."""
    inner = numpy.sort(r.integers(0, n + 1, segments - 1))
    return numpy.concatenate(([0], inner, [n])).astype("u4")


# ---- Comparisons -----------------------------------------------------------

def same(what, got, want):
    """Fails unless all elements are equal, to the bit."""
    got = got.read() if hasattr(got, "read") else got
    want = numpy.ascontiguousarray(want).reshape(-1)
    if got.dtype != want.dtype:
        raise Failure(f"{what}: the reference is {want.dtype}, not {got.dtype}")
    if got.size != want.size:
        raise Failure(f"{what}: {got.size} results, NumPy has {want.size}")
    if want.size == 0:
        return
    differs = got.view("u1").reshape(got.size, -1) != want.view("u1").reshape(
        want.size, -1)
    if differs.any():
        i = int(numpy.argmax(differs.any(axis=1)))
        raise Failure(f"{what}: [{i}] of {want.size} {want.dtype} is {got[i]}, "
                      f"NumPy has {want[i]}")


def first(what, got, want):
    """Compares the first elements; the others must be as before the call."""
    whole = got.read()
    same(what, whole[:len(want)], want)
    if (whole[len(want):].view("u1") != 0x5A).any():
        raise Failure(f"{what}: elements after the {len(want)} results were "
                      "written")


def close(what, got, want, size, relative):
    """Fails if an element differs by more than `relative` times `size`, the sum of
    the magnitudes that were added. Integers must be equal."""
    got = got.read() if hasattr(got, "read") else got
    want = numpy.asarray(want).reshape(-1)
    if got.dtype.kind in "iu":
        same(what, got, want.astype(got.dtype))
        return
    error = numpy.abs(got.astype("f8") - want.astype("f8"))
    bound = relative * numpy.asarray(size, "f8").reshape(-1) + 1e-300
    bad = ~(error <= bound)
    if bad.any():
        i = int(numpy.argmax(bad))
        raise Failure(f"{what}: [{i}] of {want.size} is {got[i]}, NumPy has "
                      f"{want[i]}, allowed difference "
                      f"{numpy.broadcast_to(bound, want.shape)[i]}")


def rounding(dtype):
    """Returns the relative difference that sums of this type may have."""
    return {"f2": 2e-3, "f4": 1e-5, "f8": 1e-13}.get(
        numpy.dtype(dtype).str[1:], 0)
