/* histogram_2d.c -- kiln_histogram_2d(). A map computes the number of the pair of
 * bins from both samples, and kiln_histogram() counts these numbers or adds their
 * weights.
 *
 * Integer samples: the bin is floor(d * bins / range), where d is the sample
 * minus the lower bound. With at most 2^20 bins and 2^32 values, the product is
 * exact in f64. The quotient is rounded, but it never reaches an integer that the
 * exact quotient is below: the distance to that integer is at least 1 / range,
 * which is at least 2^-32, and more than the rounding error of 2^-34. */
#include "histogram_bins.h"

static const char preamble[] =
    "template <class V>\n"
    "__device__ __forceinline__ unsigned level(V v, double from, double "
    "below,\n"
    "                                          double scale, unsigned bins)\n"
    "{\n"
    "  const V low = static_cast<V>(from);\n"
    "  unsigned at;\n"
    "\n"
    "  if (!(v >= low && v < static_cast<V>(below)))\n"
    "    return ~0u;\n"
    "  at = static_cast<unsigned>((v - low) * static_cast<V>(scale));\n"
    "  return at < bins ? at : bins - 1;\n"
    "}\n"
    "template <class V>\n"
    "__device__ __forceinline__ unsigned step(V v, unsigned long long from,\n"
    "                                         unsigned long long range,\n"
    "                                         unsigned bins)\n"
    "{\n"
    "  const unsigned long long d = static_cast<unsigned long long>(v) - "
    "from;\n"
    "\n"
    "  if (d >= range)\n"
    "    return ~0u;\n"
    "  return range == bins ? static_cast<unsigned>(d)\n"
    "                       : static_cast<unsigned>(\n"
    "                             static_cast<double>(d * bins) /\n"
    "                             static_cast<double>(range));\n"
    "}\n"
    "__device__ __forceinline__ unsigned pair_of(unsigned i, unsigned j,\n"
    "                                            unsigned bins)\n"
    "{\n"
    "  return i == ~0u || j == ~0u ? ~0u : i * bins + j;\n"
    "}\n";

#define LEVEL(v, k) "level(" v ", from" k ", below" k ", scale" k ", bins" k ")"
#define STEP(v, k) "step(" v ", from" k ", range" k ", bins" k ")"

/* The map, by whether the samples of x and of y are floats. */
static const char *const maps[2][2] = {
    {"pair_of(" STEP("x", "0") ", " STEP("y", "1") ", bins1)",
     "pair_of(" STEP("x", "0") ", " LEVEL("y", "1") ", bins1)"},
    {"pair_of(" LEVEL("x", "0") ", " STEP("y", "1") ", bins1)",
     "pair_of(" LEVEL("x", "0") ", " LEVEL("y", "1") ", bins1)"},
};

enum { AXIS_PARAMS = 4 };

/* The parameters of the map for one axis. */
typedef struct axis_values {
  double from, below, scale;
  uint64_t lower, range;
  uint32_t bins;
} axis_values;

/* A call of kiln_histogram() that replaces the call. It must not move, since its
 * members point to each other. */
typedef struct request {
  kiln_histogram_desc desc;
  axis_values axis[2];
  kiln_param params[2 * AXIS_PARAMS];
} request;

/* ---- Checks -------------------------------------------------------------- */

/* Checks the bins and bounds of one axis, of which `name` is "x" or "y". */
static void check_axis(kiln__checker *c, const char *name,
                       const kiln_histogram_axis *axis, uint64_t n)
{
  const kiln_histogram_desc as_histogram = {.x = {.in = {axis->x}},
                                            .bins = axis->bins,
                                            .lower = axis->lower,
                                            .upper = axis->upper};
  const kiln__dtype *type = kiln__dtype_of(axis->x.type);

  kiln__check_read(c, name, axis->x, n);
  kiln__check_that(c, axis->bins > 0 && axis->bins <= KILN_MAX_BINS,
                   "%s has %u bins, must be 1 to %d", name, axis->bins,
                   KILN_MAX_BINS);
  kiln__check_bounds(c, &as_histogram);
  if (c->st != KILN_OK || type->is_float)
    return;
  kiln__check_that(c, axis->upper - axis->lower <= 4294967296.0,
                   "the range of %s has more than 2^32 values", name);
  kiln__check_that(c, axis->x.type != KILN_I64 || axis->upper <= 0x1p63,
                   "upper of %s is above 2^63", name);
  kiln__check_that(c, axis->x.type != KILN_U64 || axis->lower >= 0,
                   "lower of %s is below 0", name);
}

static kiln_status check(const char *call, const kiln_stream *stream,
                         const kiln_histogram_2d_desc *desc,
                         const kiln_workspace *workspace)
{
  uint64_t pairs;
  kiln__checker c;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  check_axis(&c, "x", &desc->x, desc->n);
  check_axis(&c, "y", &desc->y, desc->n);
  pairs = (uint64_t)desc->x.bins * desc->y.bins;
  kiln__check_that(&c, pairs <= KILN_MAX_BINS,
                   "%u times %u bins are more than %d", desc->x.bins,
                   desc->y.bins, KILN_MAX_BINS);
  if (kiln__given(desc->weights))
    kiln__check_read(&c, "weights", desc->weights, desc->n);
  kiln__check_counts(&c, desc->counts.type, kiln__given(desc->weights));
  kiln__check_write(&c, "counts", desc->counts, pairs);
  return kiln__check_workspace(&c, workspace);
}

/* ---- The map ------------------------------------------------------------- */

static uint64_t whole(double v)
{
  return v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
}

/* Sets the four parameters of axis k. */
static void set_axis(request *r, unsigned k, const kiln_histogram_axis *axis)
{
  static const char *const names[2][6] = {
      {"from0", "below0", "scale0", "range0", "bins0", NULL},
      {"from1", "below1", "scale1", "range1", "bins1", NULL}};
  const bool is_float = kiln__dtype_of(axis->x.type)->is_float;
  const double span = axis->upper - axis->lower;
  axis_values *v = &r->axis[k];
  kiln_param *to = r->params + r->desc.code.n_params;

  *v = (axis_values){.from = axis->lower,
                     .below = axis->upper,
                     .scale = axis->bins / span,
                     .lower = whole(axis->lower),
                     .range = span > 0 ? (uint64_t)span : axis->bins,
                     .bins = axis->bins};
  if (is_float) {
    *to++ = (kiln_param){names[k][0], KILN_F64, &v->from, false};
    *to++ = (kiln_param){names[k][1], KILN_F64, &v->below, false};
    *to++ = (kiln_param){names[k][2], KILN_F64, &v->scale, false};
  } else {
    *to++ = (kiln_param){names[k][0], KILN_U64, &v->lower, false};
    *to++ = (kiln_param){names[k][3], KILN_U64, &v->range, false};
  }
  *to = (kiln_param){names[k][4], KILN_U32, &v->bins, false};
  r->desc.code.n_params += is_float ? 4 : 3;
}

static kiln_status prepare(request *r, const char *call,
                           const kiln_stream *stream,
                           const kiln_histogram_2d_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln_status st = KILN_OK;
  bool x_float, y_float;

  KILN_TRY(check(call, stream, desc, workspace));
  x_float = kiln__dtype_of(desc->x.x.type)->is_float;
  y_float = kiln__dtype_of(desc->y.x.type)->is_float;
  *r = (request){.desc = {.x = {.in = {desc->x.x, desc->y.x, desc->weights},
                                .map = maps[x_float][y_float],
                                .type = KILN_U32},
                          .n = desc->n,
                          .bins = desc->x.bins * desc->y.bins,
                          .counts = desc->counts,
                          .accumulate = desc->accumulate,
                          .code = {.preamble = preamble},
                          .weight = kiln__given(desc->weights) ? "z" : NULL}};
  r->desc.code.params = r->params;
  set_axis(r, 0, &desc->x);
  set_axis(r, 1, &desc->y);

done:
  return st;
}

/* ---- The call ------------------------------------------------------------ */

kiln_status kiln_histogram_2d(kiln_stream *stream,
                              const kiln_histogram_2d_desc *desc,
                              const kiln_workspace *workspace)
{
  request r;
  const kiln_status st =
      prepare(&r, "kiln_histogram_2d", stream, desc, workspace);

  return st == KILN_OK ? kiln_histogram(stream, &r.desc, workspace) : st;
}

kiln_status kiln_histogram_2d_workspace(kiln_stream *stream,
                                        const kiln_histogram_2d_desc *desc,
                                        size_t *bytes)
{
  kiln_status st;
  request r;

  if (bytes == NULL)
    return kiln__fail(KILN_EINVAL, NULL,
                      "kiln_histogram_2d_workspace: bytes is NULL");
  *bytes = 0;
  st = prepare(&r, "kiln_histogram_2d_workspace", stream, desc, NULL);
  return st == KILN_OK ? kiln_histogram_workspace(stream, &r.desc, bytes) : st;
}
