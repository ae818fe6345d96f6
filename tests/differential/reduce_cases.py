"""reduce_cases.py -- reductions, statistics, histograms and scans beside NumPy."""
import numpy

from cases import (case, choose, close, first, floats, length, numbers, offsets,
                   rounding, runs, same, shift, values)

OPS = {"KILN_SUM": numpy.add, "KILN_PROD": numpy.multiply,
       "KILN_MIN": numpy.minimum, "KILN_MAX": numpy.maximum,
       "KILN_AND": numpy.bitwise_and, "KILN_OR": numpy.bitwise_or,
       "KILN_XOR": numpy.bitwise_xor}


def identity(op, dtype):
    dtype = numpy.dtype(dtype)
    if op in ("KILN_MIN", "KILN_MAX"):
        if dtype.kind == "f":
            return dtype.type(numpy.inf if op == "KILN_MIN" else -numpy.inf)
        limits = numpy.iinfo(dtype)
        return dtype.type(limits.max if op == "KILN_MIN" else limits.min)
    if op == "KILN_AND":
        return ~dtype.type(0)
    return dtype.type(op == "KILN_PROD")


def drawn_op(r, dtype):
    if numpy.dtype(dtype).kind == "f":
        return choose(r, "KILN_SUM", "KILN_MIN", "KILN_MAX")
    return choose(r, *OPS)


def reduced(op, x, dtype):
    """Returns the reduction in the type of the result, floats in f64."""
    x = numpy.asarray(x, dtype)
    if x.size == 0:
        return identity(op, dtype)
    wide = "f8" if x.dtype.kind == "f" and op == "KILN_SUM" else x.dtype
    return OPS[op].reduce(x, dtype=wide)


def check_reduced(what, out, op, groups, dtype):
    want = [reduced(op, g, dtype) for g in groups]
    size = [numpy.abs(numpy.asarray(g, "f8")).sum() for g in groups]
    exact = op in ("KILN_MIN", "KILN_MAX") or numpy.dtype(dtype).kind != "f"
    if exact:
        same(what, out, numpy.array(want, dtype))
    else:
        close(what, out, want, size, rounding(dtype))


# ---- Whole arrays ----------------------------------------------------------

@case("kiln_reduce")
def reduce(d, r):
    dtype = choose(r, "i4", "u8", "f4", "f8", "i2", "u1")
    n, op = length(r), drawn_op(r, dtype)
    x, mapped = numbers(r, dtype, n), r.random() < 0.3
    out = d.empty(dtype, 1)
    d.call("kiln_reduce", n=n, op={"name": op}, out=out,
           x={"in": [d.array(x, shift(r))],
              **({"map": "x > 0 ? x : 0"} if mapped else {})})
    check_reduced(f"reduce {op}", out, op,
                  [numpy.where(x > 0, x, 0) if mapped else x], dtype)


def position(op, x):
    return int(numpy.argmin(x) if op == "KILN_MIN" else numpy.argmax(x))


def check_positions(what, value, index, op, groups, dtype):
    same(what, value, numpy.array(
        [g[position(op, g)] if len(g) else identity(op, dtype)
         for g in groups], dtype))
    same(what, index, numpy.array(
        [position(op, g) if len(g) else 0xFFFFFFFF for g in groups], "u4"))


@case("kiln_arg_reduce")
def arg_reduce(d, r):
    dtype, op = choose(r, "i4", "f4", "f8", "u1"), choose(r, "KILN_MIN", "KILN_MAX")
    n = length(r)
    x = numbers(r, dtype, n)
    value, index = d.empty(dtype, 1), d.empty("u4", 1)
    d.call("kiln_arg_reduce", x={"in": [d.array(x, shift(r))]}, n=n, op=op,
           value=value, index=index)
    check_positions("arg_reduce", value, index, op, [x], dtype)


@case("kiln_minmax")
def minmax(d, r):
    dtype, n = choose(r, "i4", "f4", "f8", "u2"), length(r)
    x = numbers(r, dtype, n)
    least, most = d.empty(dtype, 1), d.empty(dtype, 1)
    d.call("kiln_minmax", x={"in": [d.array(x, shift(r))]}, n=n, min=least,
           max=most)
    same("minimum", least, x.min())
    same("maximum", most, x.max())


@case("kiln_dot")
def dot(d, r):
    dtype, n = choose(r, "i4", "f4", "f8"), length(r)
    x, y = numbers(r, dtype, n), numbers(r, dtype, n)
    out = d.empty(dtype, 1)
    d.call("kiln_dot", x=d.array(x, shift(r)), y=d.array(y, shift(r)), n=n,
           out=out, portable=bool(r.integers(0, 2)))
    wide = "f8" if x.dtype.kind == "f" else dtype
    products = x.astype(wide) * y.astype(wide)
    close("dot", out, products.sum(dtype=wide), numpy.abs(products).sum(),
          rounding(dtype))


@case("kiln_norm")
def norm(d, r):
    dtype, n = choose(r, "f4", "f8", "i2"), length(r)
    x, out = numbers(r, dtype, n), d.empty("f8" if dtype != "f4" else "f4", 1)
    d.call("kiln_norm", x={"in": [d.array(x, shift(r))]}, n=n, out=out)
    want = numpy.linalg.norm(x.astype("f8"))
    close("norm", out, want, want, rounding(out.dtype))


@case("kiln_distance")
def distance(d, r):
    dtype, n = choose(r, "f4", "f8"), length(r)
    metric, degree = choose(r, ("KILN_L2", 2), ("KILN_L1", 1),
                            ("KILN_LINF", numpy.inf))
    x, y, out = floats(r, dtype, n), floats(r, dtype, n), d.empty(dtype, 1)
    d.call("kiln_distance", x=d.array(x, shift(r)), y=d.array(y), n=n,
           metric=metric, out=out)
    want = numpy.linalg.norm(x.astype("f8") - y.astype("f8"), degree)
    close(metric, out, want, want, rounding(dtype))


def check_moments(what, mean, variance, groups, correction):
    groups = [numpy.asarray(g, "f8") for g in groups]
    with numpy.errstate(invalid="ignore", divide="ignore"):
        means = [g.mean() if len(g) else 0 for g in groups]
        spread = [((g - g.mean()) ** 2).sum() / (len(g) - correction)
                  if len(g) > correction else 0 for g in groups]
    got = [mean.read(), variance.read()]
    for k, g in enumerate(groups):
        if len(g) == 0:
            got[0][k] = 0
        if len(g) <= correction:  # 0 / 0, or no element at all
            got[1][k] = 0
    size = [numpy.abs(g).max(initial=0) for g in groups]
    close(what + " mean", got[0], means, size, 1e-12)
    close(what + " variance", got[1], spread,
          [s + m * m for s, m in zip(spread, size)], 1e-11)


@case("kiln_mean_variance")
def mean_variance(d, r):
    dtype, n = choose(r, "f4", "f8", "i4"), length(r)
    x, correction = numbers(r, dtype, n), int(r.integers(0, 2))
    mean, variance = d.empty("f8", 1), d.empty("f8", 1)
    d.call("kiln_mean_variance", x={"in": [d.array(x, shift(r))]}, n=n,
           mean=mean, variance=variance, correction=correction)
    check_moments("array", mean, variance, [x], correction)


# ---- Matrices --------------------------------------------------------------

def matrix(d, r, dtype):
    """Draws a matrix with a gap after each row. Returns it and its members."""
    rows, columns = int(r.integers(1, 60)), int(r.integers(1, 120))
    leading = columns + int(r.integers(0, 5))
    x = numbers(r, dtype, rows * leading)
    return (x.reshape(rows, leading)[:, :columns],
            {"x": {"in": [d.array(x, shift(r))]}, "rows": rows,
             "columns": columns, "leading": leading})


def reduce_matrix(d, r, operation, by_row):
    dtype = choose(r, "i4", "f4", "f8")
    op = drawn_op(r, dtype) if dtype != "i4" else choose(r, "KILN_SUM", "KILN_XOR")
    x, members = matrix(d, r, dtype)
    groups = list(x if by_row else x.T)
    out = d.empty(dtype, len(groups))
    d.call(operation, **members, op={"name": op}, out=out)
    check_reduced(operation, out, op, groups, dtype)


@case("kiln_reduce_rows")
def reduce_rows(d, r):
    reduce_matrix(d, r, "kiln_reduce_rows", True)


@case("kiln_reduce_columns")
def reduce_columns(d, r):
    reduce_matrix(d, r, "kiln_reduce_columns", False)


def arg_reduce_matrix(d, r, operation, by_row):
    dtype, op = choose(r, "f4", "i4"), choose(r, "KILN_MIN", "KILN_MAX")
    x, members = matrix(d, r, dtype)
    groups = list(x if by_row else x.T)
    value, index = d.empty(dtype, len(groups)), d.empty("u4", len(groups))
    d.call(operation, **members, op=op, value=value, index=index)
    check_positions(operation, value, index, op, groups, dtype)


@case("kiln_arg_reduce_rows")
def arg_reduce_rows(d, r):
    arg_reduce_matrix(d, r, "kiln_arg_reduce_rows", True)


@case("kiln_arg_reduce_columns")
def arg_reduce_columns(d, r):
    arg_reduce_matrix(d, r, "kiln_arg_reduce_columns", False)


def moments_matrix(d, r, operation, by_row):
    x, members = matrix(d, r, choose(r, "f4", "f8"))
    groups, correction = list(x if by_row else x.T), int(r.integers(0, 2))
    mean, variance = d.empty("f8", len(groups)), d.empty("f8", len(groups))
    d.call(operation, **members, mean=mean, variance=variance,
           correction=correction)
    check_moments(operation, mean, variance, groups, correction)


@case("kiln_mean_variance_rows")
def mean_variance_rows(d, r):
    moments_matrix(d, r, "kiln_mean_variance_rows", True)


@case("kiln_mean_variance_columns")
def mean_variance_columns(d, r):
    moments_matrix(d, r, "kiln_mean_variance_columns", False)


# ---- Segments, keys --------------------------------------------------------

def segmented(d, r, dtype):
    n, count = length(r), int(r.integers(1, 80))
    x, at = numbers(r, dtype, n), offsets(r, n, count)
    groups = [x[a:b] for a, b in zip(at[:-1], at[1:])]
    return groups, {"x": {"in": [d.array(x, shift(r))]}, "n": n,
                    "n_segments": count, "offsets": d.array(at)}


@case("kiln_segmented_reduce")
def segmented_reduce(d, r):
    dtype = choose(r, "i4", "f4", "u8")
    op = "KILN_SUM" if dtype != "i4" else choose(r, "KILN_MAX", "KILN_PROD")
    groups, members = segmented(d, r, dtype)
    out = d.empty(dtype, len(groups))
    d.call("kiln_segmented_reduce", **members, op={"name": op}, out=out,
           checked=bool(r.integers(0, 2)))
    check_reduced("segmented_reduce", out, op, groups, dtype)


@case("kiln_segmented_arg_reduce")
def segmented_arg_reduce(d, r):
    dtype, op = choose(r, "f4", "i4"), choose(r, "KILN_MIN", "KILN_MAX")
    groups, members = segmented(d, r, dtype)
    value, index = d.empty(dtype, len(groups)), d.empty("u4", len(groups))
    d.call("kiln_segmented_arg_reduce", **members, op=op, value=value,
           index=index)
    check_positions("segmented_arg_reduce", value, index, op, groups, dtype)


@case("kiln_segmented_mean_variance")
def segmented_mean_variance(d, r):
    groups, members = segmented(d, r, choose(r, "f4", "f8"))
    correction = int(r.integers(0, 2))
    mean, variance = d.empty("f8", len(groups)), d.empty("f8", len(groups))
    d.call("kiln_segmented_mean_variance", **members, mean=mean,
           variance=variance, correction=correction)
    check_moments("segments", mean, variance, groups, correction)


def groups_of(keys, x):
    at = numpy.flatnonzero(numpy.r_[True, keys[1:] != keys[:-1]])
    return at, numpy.split(x, at[1:])


@case("kiln_reduce_by_key")
def reduce_by_key(d, r):
    dtype, n = choose(r, "i4", "f4", "f8"), length(r)
    op = choose(r, "KILN_SUM", "KILN_MAX")
    keys, x = runs(r, n, choose(r, 1.3, 5, 400)), numbers(r, dtype, n)
    at, groups = groups_of(keys, x)
    out_keys, out, count = d.empty("u4", n), d.empty(dtype, n), d.empty("u8", 1)
    d.call("kiln_reduce_by_key", keys=d.array(keys, shift(r)), n=n,
           x={"in": [d.array(x, shift(r))]}, op={"name": op}, out=out,
           out_keys=out_keys, count=count)
    same("runs", count, numpy.array([len(at)], "u8"))
    first("keys", out_keys, keys[at])
    check_reduced("reduce_by_key", out.read()[:len(at)], op, groups, dtype)


# ---- Scans -----------------------------------------------------------------

def scanned(op, x, init, exclusive, wide):
    """Returns the scan of one segment, in f64 for sums of floats."""
    seed = identity(op, x.dtype) if init is None else init
    whole = OPS[op].accumulate(
        numpy.concatenate(([seed], x)).astype(wide), dtype=wide)
    return whole[:-1] if exclusive else whole[1:], whole[-1]


def drawn_scan(r, dtype):
    op = drawn_op(r, dtype)
    init = values(r, dtype, 1) if r.random() < 0.4 else None
    return op, init, bool(r.integers(0, 2))


def check_scan(what, out, op, groups, init, exclusive, dtype):
    is_sum = numpy.dtype(dtype).kind == "f" and op == "KILN_SUM"
    want = [scanned(op, g, None if init is None else init[0], exclusive,
                    "f8" if is_sum else dtype)[0] for g in groups if len(g)]
    want = numpy.concatenate(want)
    if not is_sum:
        same(what, out, want.astype(dtype))
        return
    start = 0 if init is None else abs(float(init[0]))
    size = numpy.concatenate([start + numpy.cumsum(numpy.abs(g).astype("f8"))
                              for g in groups if len(g)])
    close(what, out, want, size, rounding(dtype))


@case("kiln_scan")
def scan(d, r):
    dtype, n = choose(r, "i4", "u1", "f4", "f8", "u8"), length(r)
    op, init, exclusive = drawn_scan(r, dtype)
    x, out, total = numbers(r, dtype, n), d.empty(dtype, n, shift(r)), d.empty(
        dtype, 1)
    d.call("kiln_scan", x={"in": [d.array(x, shift(r))]}, n=n, op={"name": op},
           out=out, exclusive=exclusive, total=total.address,
           **({} if init is None else {"init": init}))
    check_scan("scan", out, op, [x], init, exclusive, dtype)
    start = [] if init is None else init
    check_reduced("total", total, op, [numpy.concatenate((start, x))], dtype)


@case("kiln_scan_by_key")
def scan_by_key(d, r):
    dtype, n = choose(r, "i4", "f4"), length(r)
    op, init, exclusive = drawn_scan(r, dtype)
    keys, x = runs(r, n, choose(r, 2, 40, 900)), numbers(r, dtype, n)
    out = d.empty(dtype, n, shift(r))
    d.call("kiln_scan_by_key", keys=d.array(keys), x={"in": [d.array(x)]}, n=n,
           op={"name": op}, out=out, exclusive=exclusive,
           **({} if init is None else {"init": init}))
    check_scan("scan_by_key", out, op, groups_of(keys, x)[1], init, exclusive,
               dtype)


@case("kiln_segmented_scan")
def segmented_scan(d, r):
    dtype, n = choose(r, "i4", "f4"), length(r)
    op, init, exclusive = drawn_scan(r, dtype)
    x, at, out = numbers(r, dtype, n), offsets(
        r, n, int(r.integers(1, 50)))[:-1], d.empty(dtype, n)
    if r.random() < 0.5:
        flags = numpy.zeros(n, "u1")
        flags[at[at < n]] = 1
        begins = {"flags": d.array(flags, shift(r))}
    else:
        begins = {"offsets": d.array(at), "n_segments": len(at)}
    d.call("kiln_segmented_scan", **begins, x={"in": [d.array(x)]}, n=n,
           op={"name": op}, out=out, exclusive=exclusive,
           **({} if init is None else {"init": init}))
    groups = numpy.split(x, numpy.unique(at[at > 0]))
    check_scan("segmented_scan", out, op, groups, init, exclusive, dtype)


# ---- Histograms ------------------------------------------------------------

@case("kiln_histogram")
def histogram(d, r):
    dtype, n, sums = choose(r, "f4", "i4", "u1"), length(r), choose(
        r, None, "f8", "i8", "f4")
    # Bins of floats are exact if their number is a power of two.
    bins = 1 << int(r.integers(0, 8)) if dtype == "f4" else int(
        r.integers(1, 300))
    x = values(r, dtype, n, -20, 150)
    inside = (x >= 0) & (x < 128)
    which = x[inside].astype("i8") * bins // 128
    out = d.empty(sums or "u4", bins)
    members = {"x": {"in": [d.array(x, shift(r))]}, "n": n, "bins": bins,
               "upper": 128, "counts": out}
    if sums:
        weight = values(r, sums, n)
        members["x"]["in"].append(d.array(weight, shift(r)))
        members["weight"] = "y"
        want = numpy.bincount(which, weight[inside], bins)
    else:
        want = numpy.bincount(which, minlength=bins)
    d.call("kiln_histogram", **members)
    same("histogram", out, want.astype(out.dtype))


@case("kiln_histogram_2d")
def histogram_2d(d, r):
    n, bins_x, bins_y = length(r), 1 << int(r.integers(0, 5)), int(
        r.integers(1, 20))
    x, y = values(r, "f4", n, -4, 40), values(r, "u2", n, 0, 24)
    weight = values(r, "i2", n) if r.random() < 0.5 else None
    out = d.empty("u4" if weight is None else "f8", bins_x * bins_y)
    d.call("kiln_histogram_2d", n=n, counts=out,
           x={"x": d.array(x, shift(r)), "bins": bins_x, "upper": 32},
           y={"x": d.array(y, shift(r)), "bins": bins_y},
           **({} if weight is None else {"weights": d.array(weight)}))
    inside = (x >= 0) & (x < 32) & (y < bins_y)
    pair = (x[inside].astype("i8") * bins_x // 32) * bins_y + y[inside]
    want = numpy.bincount(pair, None if weight is None else weight[inside],
                          bins_x * bins_y)
    same("histogram_2d", out, want.astype(out.dtype))
