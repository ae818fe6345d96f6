"""order_cases.py -- sorts, searches, sets and selections beside NumPy."""
import numpy

from cases import (case, choose, close, first, length, numbers, offsets,
                   runs, same, shift, values)

KEYS = ("u4", "i4", "f4", "u1", "i8", "f8", "i2")


def keys_of(r, dtype, n):
    """Draws keys, often with many equal ones, and without -0."""
    if r.random() < 0.3:
        return values(r, dtype, n, 0, 8)
    return numbers(r, dtype, n) + numpy.zeros(1, dtype)


def order(x, descending=False):
    """Returns the stable order of keys."""
    if not descending:
        return numpy.argsort(x, kind="stable")
    return len(x) - 1 - numpy.argsort(x[::-1], kind="stable")[::-1]


# ---- Sorts -----------------------------------------------------------------

@case("kiln_sort")
def sort(d, r):
    dtype, n, down = choose(r, *KEYS), length(r), bool(r.integers(0, 2))
    if r.random() < 0.1:
        n += 9000
    x, moved = keys_of(r, dtype, n), r.random() < 0.5
    at = order(x, down)
    keys, out = d.array(x, shift(r)), d.empty(dtype, n, shift(r))
    if r.random() < 0.3:
        out = keys  # in place
    members = {"keys_in": keys, "keys_out": out, "n": n, "descending": down}
    if moved:
        value = values(r, choose(r, "u4", "f8"), n)
        members.update(values_in=d.array(value), values_out=d.empty(
            value.dtype, n))
    d.call("kiln_sort", **members)
    same("sorted keys", out, x[at])
    if moved:
        same("values", members["values_out"], value[at])


@case("kiln_argsort")
def argsort(d, r):
    dtype, n, down = choose(r, *KEYS), length(r), bool(r.integers(0, 2))
    x, out = keys_of(r, dtype, n), d.empty(choose(r, "u4", "i8"), n)
    d.call("kiln_argsort", keys=d.array(x, shift(r)), indices=out, n=n,
           descending=down)
    same("argsort", out, order(x, down).astype(out.dtype))


@case("kiln_key_sort")
def key_sort(d, r):
    dtype, n, down = choose(r, "u4", "i8"), length(r), bool(r.integers(0, 2))
    x, out = values(r, dtype, n, 0, 100), d.empty(dtype, n)
    d.call("kiln_key_sort", **{"in": d.array(x, shift(r))}, out=out, n=n,
           key="(unsigned)x % 17", key_type="KILN_U16", descending=down)
    same("key_sort", out, x[order(x % 17, down)])


@case("kiln_segmented_sort")
def segmented_sort(d, r):
    dtype, n, down = choose(r, "u4", "f4"), length(r), bool(r.integers(0, 2))
    x, at = keys_of(r, dtype, n), offsets(r, n, int(r.integers(1, 60)))
    value = values(r, "u4", n)
    out, out_values = d.empty(dtype, n), d.empty("u4", n)
    d.call("kiln_segmented_sort", keys_in=d.array(x, shift(r)), keys_out=out,
           values_in=d.array(value), values_out=out_values,
           offsets=d.array(at), n=n, n_segments=len(at) - 1, descending=down)
    places = numpy.concatenate([a + order(x[a:b], down)
                                for a, b in zip(at[:-1], at[1:])]).astype(int)
    same("segmented_sort", out, x[places])
    same("values", out_values, value[places])


@case("kiln_merge_sort")
def merge_sort(d, r):
    dtype, n = choose(r, "i4", "f4", "u1"), length(r)
    less, sign = choose(r, ("a < b", 1), ("a > b", -1))
    x, value = keys_of(r, dtype, n), values(r, "u4", n)
    out, out_values = d.empty(dtype, n), d.empty("u4", n)
    d.call("kiln_merge_sort", keys_in=d.array(x, shift(r)), keys_out=out, n=n,
           values_in=d.array(value), values_out=out_values, less=less)
    at = order(x, sign < 0)
    same("merge_sort", out, x[at])
    same("values", out_values, value[at])


@case("kiln_counting_sort")
def counting_sort(d, r):
    dtype, n, lowest = choose(r, "u1", "i4"), length(r), int(r.integers(0, 9))
    possible = int(r.integers(1, 60))
    x, value = values(r, dtype, n, 0, 70), values(r, "f4", n)
    out, out_values = d.empty(dtype, n), d.empty("f4", n)
    starts = d.empty("u4", possible + 1)
    d.call("kiln_counting_sort", keys=d.array(x, shift(r)), keys_out=out,
           values=d.array(value), values_out=out_values, n=n, lowest=lowest,
           range=possible, offsets=starts)
    at = order(x)
    at = at[(x[at].astype(int) >= lowest) & (x[at].astype(int) < lowest + possible)]
    first("counting_sort", out, x[at])
    first("values", out_values, value[at])
    same("offsets", starts, numpy.searchsorted(
        x[at].astype(int), numpy.arange(lowest, lowest + possible + 1)).astype("u4"))


@case("kiln_merge")
def merge(d, r):
    dtype, n_a, n_b = choose(r, "u4", "f4", "i8"), length(r, 3000), length(r, 3000)
    a, b = (numpy.sort(keys_of(r, dtype, n)) for n in (n_a, n_b))
    out, moved = d.empty(dtype, n_a + n_b), d.empty("u4", n_a + n_b)
    v = values(r, "u4", n_a + n_b)
    d.call("kiln_merge", a=d.array(a, shift(r)), b=d.array(b, shift(r)),
           n_a=n_a, n_b=n_b, out=out, a_values=d.array(v[:n_a]),
           b_values=d.array(v[n_a:]), out_values=moved)
    both = numpy.concatenate((a, b))
    at = order(both)
    same("merge", out, both[at])
    same("values", moved, v[at])


@case("kiln_search")
def search(d, r):
    dtype, m, n = choose(r, "u4", "f4", "i2"), length(r), length(r)
    upper = bool(r.integers(0, 2))
    x, needles = numpy.sort(keys_of(r, dtype, m)), keys_of(r, dtype, n)
    out = d.empty("u4", n)
    d.call("kiln_search", sorted=d.array(x, shift(r)), m=m, n=n, upper=upper,
           needles={"in": [d.array(needles, shift(r))]}, out=out)
    same("search", out, numpy.searchsorted(
        x, needles, "right" if upper else "left").astype("u4"))


SETS = {"KILN_SET_UNION": numpy.maximum, "KILN_SET_INTERSECTION": numpy.minimum,
        "KILN_SET_DIFFERENCE": lambda m, n: numpy.maximum(m - n, 0),
        "KILN_SET_SYMMETRIC_DIFFERENCE": lambda m, n: numpy.abs(m - n)}


@case("kiln_set_operation")
def set_operation(d, r):
    dtype, n_a, n_b = choose(r, "u4", "i8", "f4"), length(r, 3000), length(r, 3000)
    kind = choose(r, *SETS)
    most = choose(r, 5, 500, 20000)
    a, b = (numpy.sort(values(r, dtype, n, 0, most)) for n in (n_a, n_b))
    out, count = d.empty(dtype, n_a + n_b), d.empty("u4", 1)
    d.call("kiln_set_operation", kind=kind, a=d.array(a, shift(r)),
           b=d.array(b, shift(r)), n_a=n_a, n_b=n_b, out=out, count=count)
    every = numpy.unique(numpy.concatenate((a, b)))
    times = SETS[kind](*(numpy.searchsorted(x, every, "right").astype(int) -
                         numpy.searchsorted(x, every) for x in (a, b)))
    want = numpy.repeat(every, times)
    same("count", count, numpy.array([len(want)], "u4"))
    first(kind, out, want)


# ---- Selections ------------------------------------------------------------

@case("kiln_select")
def select(d, r):
    dtype, n = choose(r, "u4", "f4", "i8"), length(r)
    x, least = values(r, dtype, n, 0, 100), int(r.integers(0, 101))
    out, at, count = d.empty(dtype, n), d.empty("u4", n), d.empty("u4", 1)
    inputs = d.array(x, shift(r))
    if r.random() < 0.5:
        chosen = {"predicate": choose(r, "x > 50", "x > 99 || i % 3 == 0")}
        keep = (x > 50 if chosen["predicate"] == "x > 50" else
                (x > 99) | (numpy.arange(n) % 3 == 0))
    else:
        keep = x >= least
        chosen = {"flags": d.array(keep.astype("u1"), shift(r))}
    d.call("kiln_select", x={"in": [inputs]}, **chosen, n=n, out=out,
           out_index=at, count=count)
    same("count", count, numpy.array([keep.sum()], "u4"))
    first("select", out, x[keep])
    first("indices", at, numpy.flatnonzero(keep).astype("u4"))


def starts_of(x):
    return numpy.flatnonzero(numpy.r_[True, x[1:] != x[:-1]])


@case("kiln_unique")
def unique(d, r):
    n = length(r)
    x = runs(r, n, choose(r, 1.5, 9, 300)).astype(choose(r, "u4", "f4"))
    payload, at = values(r, "f8", n), starts_of(x)
    out, moved, count = d.empty(x.dtype, n), d.empty("f8", n), d.empty("u8", 1)
    d.call("kiln_unique", x={"in": [d.array(x, shift(r))]}, n=n, out=out,
           payload=d.array(payload), out_payload=moved, count=count)
    same("count", count, numpy.array([len(at)], "u8"))
    first("unique", out, x[at])
    first("payload", moved, payload[at])


@case("kiln_partition")
def partition(d, r):
    n = length(r)
    x = values(r, choose(r, "u4", "f4"), n, 0, 100)
    out, count = d.empty(x.dtype, n), d.empty("u4", 1)
    chosen = x > 30
    reverse = bool(r.integers(0, 2))
    d.call("kiln_partition", x={"in": [d.array(x, shift(r))]}, first="x > 30",
           n=n, out=out, count=count, rest_reversed=reverse)
    rest = x[~chosen][::-1] if reverse else x[~chosen]
    same("partition", out, numpy.concatenate((x[chosen], rest)))
    same("count", count, numpy.array([chosen.sum()], "u4"))


@case("kiln_split")
def split(d, r):
    n, parts = length(r), int(choose(r, 2, 7, 100, 300))
    x = values(r, "u4", n, 0, 5000)
    out, starts = d.empty("u4", n), d.empty("u4", parts + 1)
    factor = numpy.array([parts], "u4")
    name = d.headers.structs["kiln_param"](b"parts", d.type_of("u4"),
                                           factor.ctypes.data, False)
    d.call("kiln_split", x={"in": [d.array(x, shift(r))]}, key="x % parts",
           parts=parts, n=n, out=out, offsets=starts,
           code={"params": d.pointer(name), "n_params": 1})
    at = order(x % parts)
    same("split", out, x[at])
    same("offsets", starts, numpy.searchsorted(
        x[at] % parts, numpy.arange(parts + 1)).astype("u4"))


def run_lengths(d, r, operation, least):
    n = length(r)
    x = runs(r, n, choose(r, 1.2, 4, 60)).astype(choose(r, "u4", "u2"))
    at = starts_of(x)
    lengths = numpy.diff(numpy.r_[at, n])
    keep = lengths >= least
    out, starts, sizes, count = (d.empty(x.dtype, n), d.empty("u4", n),
                                 d.empty("u4", n), d.empty("u4", 1))
    d.call(operation, x={"in": [d.array(x, shift(r))]}, n=n, values=out,
           offsets=starts, lengths=sizes, count=count)
    same("count", count, numpy.array([keep.sum()], "u4"))
    first("values", out, x[at][keep])
    first("offsets", starts, at[keep].astype("u4"))
    first("lengths", sizes, lengths[keep].astype("u4"))


@case("kiln_run_length_encode")
def run_length_encode(d, r):
    run_lengths(d, r, "kiln_run_length_encode", 1)


@case("kiln_run_length_non_trivial")
def run_length_non_trivial(d, r):
    run_lengths(d, r, "kiln_run_length_non_trivial", 2)


def found(d, r, operation, result):
    n, level = length(r), int(choose(r, 10, 90, 99, 100, -1))
    x = values(r, choose(r, "i4", "f4"), n, 0, 100)
    out = d.empty("u4", 1)
    limit = numpy.array([level], "i4")
    name = d.headers.structs["kiln_param"](b"limit", d.type_of("i4"),
                                           limit.ctypes.data, False)
    d.call(operation, x={"in": [d.array(x, shift(r))]}, n=n, out=out,
           predicate="x > limit", code={"params": d.pointer(name),
                                        "n_params": 1})
    same(operation, out, numpy.array([result(x > level)], "u4"))


@case("kiln_find")
def find(d, r):
    found(d, r, "kiln_find", lambda b: numpy.argmax(b) if b.any() else len(b))


@case("kiln_count")
def count(d, r):
    found(d, r, "kiln_count", numpy.count_nonzero)


@case("kiln_any")
def any_of(d, r):
    found(d, r, "kiln_any", numpy.any)


@case("kiln_all")
def all_of(d, r):
    found(d, r, "kiln_all", numpy.all)


# ---- Ranks -----------------------------------------------------------------

@case("kiln_top_k")
def top_k(d, r):
    dtype, rows, smallest = choose(r, "f4", "u4", "i8"), int(
        r.integers(1, 4)), bool(r.integers(0, 2))
    n = length(r)
    if r.random() < 0.05:
        n, rows = 40000, 1
    k = int(r.integers(1, min(n, 500) + 1))
    x = keys_of(r, dtype, rows * n).reshape(rows, n)
    out, at = d.empty(dtype, rows * k), d.empty("u4", rows * k)
    d.call("kiln_top_k", keys=d.array(x, shift(r)), n=n, rows=rows, k=k,
           keys_out=out, indices=at, smallest=smallest)
    best = numpy.array([order(row, not smallest)[:k] for row in x])
    same("indices", at, best.astype("u4"))
    same("top_k", out, numpy.take_along_axis(x, best, 1))


RULES = {"KILN_QUANTILE_LINEAR": "linear", "KILN_QUANTILE_NEAREST": "nearest",
         "KILN_QUANTILE_LOWER": "lower", "KILN_QUANTILE_HIGHER": "higher",
         "KILN_QUANTILE_MIDPOINT": "midpoint"}


@case("kiln_quantile")
def quantile(d, r):
    rows, n, rule = int(r.integers(1, 4)), length(r), choose(r, *RULES)
    x = numbers(r, choose(r, "f4", "i4"), rows * n).reshape(rows, n)
    q = numpy.round(r.random(int(r.integers(1, 9))) * 64) / 64
    out = d.empty("f8", rows * len(q))
    d.call("kiln_quantile", keys=d.array(x, shift(r)), n=n, rows=rows, q=q,
           n_q=len(q), out=out, rule=rule)
    want = numpy.quantile(x.astype("f8"), q, axis=1, method=RULES[rule]).T
    close(rule, out, want, numpy.abs(want) + numpy.abs(x).max(initial=1), 1e-14)
