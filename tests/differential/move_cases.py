"""move_cases.py -- maps, movements, random numbers, stencils and products beside
NumPy."""
import numpy

from cases import (case, choose, close, length, numbers, rounding, same,
                   shift, values)


# ---- Element by element ----------------------------------------------------

MAPS = (("x * 2 + y", lambda x, y: x * x.dtype.type(2) + y),
        ("x > y ? x : y", numpy.maximum),
        ("x - y * 3", lambda x, y: x - y * x.dtype.type(3)))


@case("kiln_map")
def map_(d, r):
    dtype, n = choose(r, "i4", "f4", "f8", "u8"), length(r)
    text, function = choose(r, *MAPS)
    x, y, out = numbers(r, dtype, n), numbers(r, dtype, n), d.empty(
        dtype, n, shift(r))
    d.call("kiln_map", **{"in": [d.array(x, shift(r)), d.array(y, shift(r))]},
           out=[out], expr=[text], n=n)
    close(text, out, function(x, y),
          numpy.abs(x.astype("f8")) + numpy.abs(y.astype("f8")) * 3,
          rounding(dtype))


@case("kiln_adjacent_difference")
def adjacent_difference(d, r):
    dtype, n, right = choose(r, "i4", "f4", "u1"), length(r), bool(
        r.integers(0, 2))
    x = numbers(r, dtype, n)
    source = d.array(x, shift(r))
    out = source if r.random() < 0.3 else d.empty(dtype, n, shift(r))
    d.call("kiln_adjacent_difference", x={"in": [source]}, n=n, right=right,
           out=out)
    want = x.copy()
    if right:
        want[:-1] = x[:-1] - x[1:]
    else:
        want[1:] = x[1:] - x[:-1]
    same("adjacent_difference", out, want)


# ---- Movements -------------------------------------------------------------

@case("kiln_gather")
def gather(d, r):
    dtype, n, target = choose(r, "f4", "u1", "f8", "c16"), length(r), length(r)
    index = choose(r, "u4", "i8", "u2", "u1")
    target = min(target, 256) if index == "u1" else target
    x = values(r, "f8" if dtype == "c16" else dtype, target).astype(dtype)
    at, out = r.integers(0, target, n).astype(index), d.empty(dtype, n, shift(r))
    d.call("kiln_gather", x={"in": [d.array(x)]}, index=d.array(at, shift(r)),
           out=out, n=n, n_target=target, checked=r.random() < 0.2)
    same("gather", out, x[at])


@case("kiln_gather_rows")
def gather_rows(d, r):
    dtype, n, rows, width = choose(r, "f4", "u1", "f8"), int(
        r.integers(1, 90)), int(r.integers(1, 50)), int(r.integers(1, 100))
    x = values(r, dtype, rows * width).reshape(rows, width)
    at, out = r.integers(0, rows, n).astype(choose(r, "u4", "u1")), d.empty(
        dtype, n * width)
    d.call("kiln_gather_rows", **{"in": d.array(x, shift(r))},
           index=d.array(at), out=out, n=n, width=width, n_target=rows)
    same("gather_rows", out, x[at])


@case("kiln_scatter")
def scatter(d, r):
    dtype, n = choose(r, "f4", "u1", "f8"), length(r)
    index = choose(r, "u4", "i8", "u2")
    x, target = values(r, dtype, n), n + int(r.integers(0, 50))
    at = r.permutation(target)[:n]
    out = d.empty(dtype, target)
    want = out.read()
    want[at] = x
    d.call("kiln_scatter", x={"in": [d.array(x, shift(r))]},
           index=d.array(at.astype(index)), out=out, n=n, n_target=target)
    same("scatter", out, want)


@case("kiln_permute")
def permute(d, r):
    rank, dtype = int(r.integers(1, 7)), choose(r, "f4", "u1", "f8", "u2")
    shape = [int(r.integers(1, (200, 90, 20, 9, 6, 5)[rank - 1]))
             for _ in range(rank)]
    axis = [int(a) for a in r.permutation(rank)]
    x = values(r, dtype, int(numpy.prod(shape))).reshape(shape)
    out = d.empty(dtype, x.size, shift(r))
    d.call("kiln_permute", **{"in": d.array(x, shift(r))}, out=out, rank=rank,
           size=shape, axis=axis)
    same(f"permute {shape} {axis}", out, x.transpose(axis))


@case("kiln_rotate")
def rotate(d, r):
    dtype, n = choose(r, "f4", "u1", "f8"), length(r)
    by, x = int(r.integers(-2 * n, 2 * n + 1)), values(r, dtype, n)
    out = d.empty(dtype, n, shift(r))
    d.call("kiln_rotate", **{"in": d.array(x, shift(r))}, out=out, n=n, shift=by)
    same("rotate", out, numpy.roll(x, -by))


@case("kiln_copy_batch")
def copy_batch(d, r):
    n, space = int(r.integers(1, 60)), 4000
    x = values(r, "u1", space, 0, 255)
    sizes = r.integers(0, 300, n).astype(choose(r, "u4", "i8"))
    begins = r.integers(0, space - 300, n)
    gaps = r.integers(0, 9, n)
    ends = numpy.cumsum(sizes.astype("i8") + gaps)
    source, out = d.array(x), d.empty("u1", int(ends[-1]))
    to = ends - sizes.astype("i8")
    want = out.read()
    for begin, size, at in zip(begins, sizes.astype(int), to):
        want[at:at + size] = x[begin:begin + size]
    d.call("kiln_copy_batch", n=n, sizes=d.array(sizes),
           **{"from": d.array((begins + source.address).astype("u8")),
              "to": d.array((to + out.address).astype("u8"))})
    same("copy_batch", out, want)


@case("kiln_run_length_decode")
def run_length_decode(d, r):
    n, dtype = int(r.integers(1, 800)), choose(r, "f4", "u1", "f8")
    lengths = r.integers(0, choose(r, 3, 12, 60), n).astype(
        choose(r, "u4", "u1"))
    x, total = values(r, dtype, n), int(lengths.sum())
    out, count = d.empty(dtype, total), d.empty("u8", 1)
    d.call("kiln_run_length_decode", values=d.array(x, shift(r)), n=n, out=out,
           lengths=d.array(lengths), capacity=total, count=count)
    same("count", count, numpy.array([total], "u8"))
    same("run_length_decode", out, numpy.repeat(x, lengths))


# ---- Random numbers --------------------------------------------------------

def philox(counter, key):
    """Returns the words of Philox4x32-10; counter has four rows of u64."""
    mask = numpy.uint64(0xFFFFFFFF)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    c = list(counter)
    for _ in range(10):
        a, b = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [(b >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(k0), b & mask,
             (a >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack(c, 1)


@case("kiln_random")
def random(d, r):
    dtype, n, seed = choose(r, "u4", "f4"), length(r), int(
        r.integers(0, 1 << 63))
    stream, begin = int(r.integers(0, 1 << 32)), int(r.integers(0, 1 << 40))
    out = d.empty(dtype, n, shift(r))
    d.call("kiln_random", out=out, n=n, seed=seed, stream=stream, offset=begin)
    i = numpy.arange(begin, begin + n, dtype="u8")
    block, zero = i // numpy.uint64(4), numpy.zeros(n, "u8")
    words = philox([block & numpy.uint64(0xFFFFFFFF), block >> numpy.uint64(32),
                    zero + numpy.uint64(stream), zero], seed)
    words = words[numpy.arange(n), (i % numpy.uint64(4)).astype(int)]
    if dtype == "u4":
        same("random", out, words.astype("u4"))
    else:
        same("random", out, ((words >> numpy.uint64(8)) * 2.0**-24).astype("f4"))


# ---- Stencils, pairs, products ---------------------------------------------

BORDERS = {"KILN_CLAMP": "edge", "KILN_WRAP": "wrap", "KILN_MIRROR": "reflect",
           "KILN_CONSTANT": "constant"}
KERNELS = (numpy.array([[1, 2, 1], [0, 3, 0], [2, 1, 4]], "f8"),
           numpy.array([[1, 4, 6, 4, 1]], "f8"))


@case("kiln_stencil")
def stencil(d, r):
    dtype, border = choose(r, "f4", "i4"), choose(r, *BORDERS)
    weights = KERNELS[int(r.integers(0, len(KERNELS)))]
    rows, columns = int(r.integers(5, 60)), int(r.integers(5, 150))
    x = values(r, dtype, rows * columns).reshape(rows, columns)
    out = d.empty(dtype, x.size)
    down, across = (s // 2 for s in weights.shape)
    d.call("kiln_stencil", **{"in": d.array(x, shift(r))}, out=out, dims=2,
           size=[columns, rows], radius=[across, down], weights=weights,
           border=border, outside=7)
    more = {"constant_values": 7} if border == "KILN_CONSTANT" else {}
    padded = numpy.pad(x, ((down, down), (across, across)), BORDERS[border],
                       **more)
    want = sum(w * padded[j:j + rows, i:i + columns]
               for (j, i), w in numpy.ndenumerate(weights))
    close("stencil", out, want, numpy.abs(want) + 1, rounding(dtype))


@case("kiln_all_pairs")
def all_pairs(d, r):
    dtype, n, m = choose(r, "i4", "f4"), int(r.integers(1, 300)), int(
        r.integers(1, 300))
    x, y, out = values(r, dtype, n), values(r, dtype, m), d.empty(dtype, n)
    text, op = choose(r, ("(t.x - s.x) * (t.x - s.x)", "KILN_SUM"),
                      ("t.x * s.x", "KILN_MAX"))
    d.call("kiln_all_pairs", target=[d.array(x, shift(r))],
           source=[d.array(y)], n=n, m=m, expr=[text], op={"name": op},
           out=[out])
    wide = x[:, None].astype("f8"), y[None, :].astype("f8")
    want = (((wide[0] - wide[1]) ** 2).sum(1) if op == "KILN_SUM"
            else (wide[0] * wide[1]).max(1))
    close("all_pairs", out, want, numpy.abs(want) + 1, rounding(dtype))


def member(d, r, x, turned):
    """Returns a matrix of a product, stored as it is or transposed."""
    array = d.array(x.T if turned else x, shift(r))
    return {"data": array.address, "type": d.type_of(x.dtype),
            "transposed": turned}


@case("kiln_gemm")
def gemm(d, r):
    dtype = choose(r, "f4", "f8", "f2")
    m, n, k = (int(r.integers(1, 90)) for _ in range(3))
    a, b = values(r, dtype, m * k, -8, 8), values(r, dtype, k * n, -8, 8)
    a, b = a.reshape(m, k), b.reshape(k, n)
    turned = bool(r.integers(0, 2))
    alpha, out = choose(r, 1.0, 0.5), d.empty("f8" if dtype == "f8" else "f4",
                                              m * n)
    d.call("kiln_gemm", m=m, n=n, k=k, a=member(d, r, a, turned),
           b=member(d, r, b, False), alpha=alpha,
           d={"data": out.address, "type": d.type_of(out.dtype)})
    want = alpha * (a.astype("f8") @ b.astype("f8"))
    close("gemm", out, want, alpha * (numpy.abs(a).astype("f8") @ numpy.abs(
        b).astype("f8")), rounding(out.dtype))
