/* histogram_bins.c -- the bins of a histogram: which method computes the bin of a
 * sample, and which bounds are valid.
 *
 * The bin of an integer sample is computed exactly. If the width of the bins is
 * a power of two, the kernel uses a shift. Otherwise it multiplies with a
 * rounded-up reciprocal that is long enough for every distance in range
 * (Granlund and Montgomery, Division by Invariant Integers using
 * Multiplication, 1994). */
#include "histogram_bins.h"

#include <math.h>

__extension__ typedef __int128 wide;

/* ---- Bins ---------------------------------------------------------------- */

static wide two_to(unsigned power)
{
  return (wide)1 << power;
}

static wide least_of(const kiln__dtype *type)
{
  return type->is_signed ? -two_to(8u * type->size - 1) : 0;
}

static wide most_of(const kiln__dtype *type)
{
  return two_to(8u * type->size - type->is_signed) - 1;
}

/* Returns whether the low `bits` bits of sample - lower are enough to recognise
 * the samples in range. */
static bool fits(const kiln__dtype *type, wide lower, wide range, unsigned bits)
{
  return most_of(type) - lower < two_to(bits) &&
         lower - least_of(type) + range <= two_to(bits);
}

/* Computes the factor bins / range. `times` is the integer part of the factor.
 * The words `high` and `low` are the fraction in units of 2^-128, rounded
 * up. */
static void set_scale(kiln__bin_bounds *to, uint32_t bins, wide range)
{
  const wide rest = (wide)bins % range;
  const wide high = (rest << 64) / range, high_rest = (rest << 64) % range;
  __extension__ typedef unsigned __int128 unsigned_wide;
  const unsigned_wide dividend = (unsigned_wide)high_rest << 64;
  const unsigned_wide divisor = (unsigned_wide)range;
  const uint64_t low = (uint64_t)(dividend / divisor);
  const bool up = dividend % divisor != 0;

  to->times = (uint32_t)(bins / range);
  to->low = low + up;
  to->high = (uint64_t)high + (up && to->low == 0);
}

static void set_integer(kiln__bins *l, const kiln__dtype *type, wide lower,
                        wide range, uint32_t bins)
{
  const wide width = range / bins;
  uint32_t shift = 0;

  l->all = lower <= least_of(type) && most_of(type) < lower + range;
  l->wide = type->size == 8 || !fits(type, lower, range, 32);
  l->to.lower = (uint64_t)lower;
  l->to.last = (uint64_t)(range - 1);
  while (shift < 64 && two_to(shift) < width)
    shift++;
  if (range % bins == 0 && width == two_to(shift) &&
      shift < (l->wide ? 64 : 32)) {
    l->mode = MODE_SHIFT;
    l->to.shift = shift;
    l->plain = lower == 0 && shift == 0;
  } else if (range <= two_to(32) && (wide)bins < range) {
    l->mode = MODE_SCALE;
    set_scale(&l->to, bins, range);
    /* The fraction is 2^64 * bins / range, rounded up. */
    l->to.low = l->to.high + (l->to.low != 0);
  } else {
    l->mode = MODE_WIDE;
    set_scale(&l->to, bins, range);
  }
}

kiln__bins kiln__lay_out_bins(const kiln_histogram_desc *desc)
{
  const kiln__dtype *type = kiln__dtype_of(kiln__input_type(&desc->x));
  const double span = desc->upper - desc->lower;
  kiln__bins l = {.to = {.bins = desc->bins}};

  if (kiln__given(desc->levels)) {
    l.mode = MODE_LEVELS;
  } else if (type->is_float) {
    l.mode = MODE_FLOAT;
    l.to.from = desc->lower;
    l.to.below = desc->upper;
    l.to.scale = desc->bins / span;
  } else if (span > 0) {
    set_integer(&l, type, (wide)desc->lower,
                (wide)desc->upper - (wide)desc->lower, desc->bins);
  } else {
    set_integer(&l, type, 0, desc->bins, desc->bins);
  }
  return l;
}

/* ---- Checks -------------------------------------------------------------- */

static bool is_whole(double v)
{
  return v >= -9223372036854775808.0 && v <= 18446744073709551616.0 &&
         floor(v) >= v;
}

/* Checks the bounds of floating-point samples. The kernel computes (sample -
 * lower) * bins / (upper - lower) in f64 for samples of f64, and in f32 for
 * all other types. In f32, close bounds become equal and the factor may
 * overflow. */
static void check_float_bounds(kiln__checker *c,
                               const kiln_histogram_desc *desc,
                               const kiln__dtype *type)
{
  const double lower = desc->lower, upper = desc->upper;
  const double span = upper - lower, scale = desc->bins / span;
  const bool in_f64 = type->size == 8;

  kiln__check_that(c, isfinite(span) && (in_f64 || isfinite((float)span)),
                   "lower and upper are too far apart for %s", type->name);
  kiln__check_that(
      c, in_f64 || (float)lower < (float)upper,
      "lower and upper are equal in %s, in which samples of %s are "
      "compared with them",
      kiln_dtype_name(type->computed), type->name);
  kiln__check_that(c, isfinite(scale) && (in_f64 || isfinite((float)scale)),
                   "lower and upper are too close together for %u bins of %s",
                   desc->bins, type->name);
}

void kiln__check_bounds(kiln__checker *c, const kiln_histogram_desc *desc)
{
  const kiln__dtype *type = kiln__dtype_of(kiln__input_type(&desc->x));
  const double lower = desc->lower, upper = desc->upper;
  const bool given = lower < 0 || lower > 0 || upper < 0 || upper > 0;

  if (c->st != KILN_OK)
    return;
  kiln__check_that(c, isfinite(lower) && isfinite(upper),
                   "lower and upper must be finite");
  if (!given) {
    kiln__check_that(c, !type->is_float,
                     "samples of %s need lower and upper, or levels",
                     type->name);
    return;
  }
  kiln__check_that(c, lower < upper, "lower must be below upper");
  if (type->is_float) {
    check_float_bounds(c, desc, type);
    return;
  }
  kiln__check_that(c, is_whole(lower) && is_whole(upper),
                   "samples of %s need whole numbers from -2^63 to 2^64 as "
                   "lower and upper",
                   type->name);
  if (c->st == KILN_OK)
    kiln__check_that(c, fits(type, (wide)lower, (wide)upper - (wide)lower, 64),
                     "lower and upper are too far outside of %s", type->name);
}

void kiln__check_counts(kiln__checker *c, kiln_dtype counts, bool weighted)
{
  const bool is_count = counts == KILN_U32 || counts == KILN_U64;

  if (weighted)
    kiln__check_that(c,
                     is_count || counts == KILN_I64 || counts == KILN_F32 ||
                         counts == KILN_F64,
                     "the sums of weights are %s, must be u32, u64, i64, f32 "
                     "or f64",
                     kiln_dtype_name(counts));
  else
    kiln__check_that(c, is_count,
                     "counts are %s, must be u32 or u64 without weights",
                     kiln_dtype_name(counts));
}
