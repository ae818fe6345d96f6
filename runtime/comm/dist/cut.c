/* cut.c -- exact selection in the sorted blocks of all ranks.
 *
 * Problem: the sorted whole of all blocks is cut after S elements. How many of
 * them does each rank have?
 *
 * Idea: each rank has a range of positions in its block in which its cut lies,
 * at first the whole block. In each round all ranks share regular samples of
 * their ranges. For a sample, the samples of the other ranks give a lower and an
 * upper bound of the number of elements before it in the whole. If the lower
 * bound is at least S, the sample lies behind the cut; if the upper bound is
 * less than S, it lies before the cut. That narrows the ranges. Both bounds are
 * monotone along a block, so a binary search finds the two samples next to the
 * cut. Elements are compared by key, then rank, then position, so no two are
 * equal, and the result is exact for all keys, also constant ones.
 *
 * Invariant: all ranks have the same ranges of all ranks. Elements before a range
 * are before the cut, and elements behind a range are behind it.
 *
 * Cost: with m samples per range, a round divides the lengths by about m / 3; so
 * 2^28 elements per rank take five rounds of 256 samples. All cuts are found at
 * the same time. Source: Varman et al., Merging multiple lists on hierarchical-
 * memory multiprocessors, 1991 (exact splitting of sorted lists); the regular
 * samples follow Shi and Schaeffer, Parallel sorting by regular sampling, 1992. */
#include "cut.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 256, MOST_KEY_BYTES = 8 };

/* ---- Keys ---------------------------------------------------------------- */

static uint64_t low_bits(unsigned n)
{
  return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

/* Number of bits of a float's fraction, or 0 for integers. */
static unsigned fraction_bits(kiln_dtype type)
{
  switch (type) {
  case KILN_F16:
    return 10;
  case KILN_BF16:
    return 7;
  case KILN_F32:
    return 23;
  case KILN_F64:
    return 52;
  default:
    return 0;
  }
}

/* The ordered form of sort.h. If all bits count, NaNs come last: those with a sign
 * bit have the forms below that of -infinity, which a rotation moves to the end. */
static uint64_t ordered(kiln_dtype type, uint64_t bits, bool whole)
{
  const unsigned width = 8 * (unsigned)kiln_dtype_size(type);
  const unsigned fraction = fraction_bits(type);
  const uint64_t sign = (uint64_t)1 << (width - 1);
  uint64_t form;

  if (fraction == 0)
    return type == KILN_I8 || type == KILN_I16 || type == KILN_I32 ||
                   type == KILN_I64
               ? bits ^ sign
               : bits;
  form = (bits & sign) != 0 ? ~bits & low_bits(width) : bits ^ sign;
  return whole ? (form - low_bits(fraction)) & low_bits(width) : form;
}

uint64_t kiln__key_rank(const kiln__key_order *order, const void *p)
{
  const unsigned width = 8 * (unsigned)kiln_dtype_size(order->type);
  const unsigned end = order->end_bit == 0 ? width : order->end_bit;
  uint64_t bits = 0;

  memcpy(&bits, p, kiln_dtype_size(order->type)); /* little-endian */
  bits = ordered(order->type, bits, order->begin_bit == 0 && end == width);
  bits = bits >> order->begin_bit & low_bits(end - order->begin_bit);
  return order->descending ? ~bits : bits;
}

/* ---- Ranges and samples -------------------------------------------------- */

typedef struct range {
  uint64_t low, high; /* the cut is low to high */
} range;

typedef struct cutter {
  kiln__dist *d;
  const kiln__key_order *order;
  CUdeviceptr keys;
  int ranks, cuts;
  uint64_t most;    /* samples per range */
  range *ranges;    /* [cut * ranks + rank] */
  uint64_t *before; /* elements before each cut */
  uint64_t *mine;   /* samples of this rank: [cut * most + sample] */
  uint64_t *all;    /* samples of all ranks, one after another */
  char *raw;        /* keys of the samples: [cut * most + sample] */
} cutter;

static uint64_t length_of(const range *r)
{
  return r->high - r->low;
}

static uint64_t samples_of(const cutter *c, const range *r)
{
  return length_of(r) < c->most ? length_of(r) : c->most;
}

static uint64_t stride_of(const cutter *c, const range *r)
{
  return length_of(r) <= c->most ? 1 : length_of(r) / c->most;
}

static uint64_t position_of(const cutter *c, const range *r, uint64_t sample)
{
  return r->low + stride_of(c, r) / 2 + sample * stride_of(c, r);
}

static const uint64_t *samples(const cutter *c, int cut, int rank)
{
  return c->all +
         ((uint64_t)rank * (uint64_t)c->cuts + (uint64_t)cut) * c->most;
}

/* Queues a copy of this rank's samples of a cut's range to the host. */
static kiln_status read_samples(cutter *c, int cut)
{
  const size_t size = kiln_dtype_size(c->order->type);
  const range *const r = &c->ranges[cut * c->ranks + c->d->comm->rank];
  const kiln_extent extent = {.width = size,
                              .height = samples_of(c, r),
                              .dst_pitch = size,
                              .src_pitch = stride_of(c, r) * size};

  if (extent.height == 0)
    return KILN_OK;
  return kiln_copy_2d_to_host_async(
      c->d->stream, c->raw + (uint64_t)cut * c->most * MOST_KEY_BYTES,
      c->keys + position_of(c, r, 0) * size, &extent);
}

/* Takes this rank's samples of all ranges. */
static kiln_status take_samples(cutter *c)
{
  const size_t size = kiln_dtype_size(c->order->type);
  kiln_status st = KILN_OK, waited;

  for (int cut = 0; cut < c->cuts && st == KILN_OK; cut++)
    st = read_samples(c, cut);
  waited = kiln_stream_synchronize(c->d->stream); /* always: copies may run */
  st = st == KILN_OK ? waited : st;
  for (int cut = 0; cut < c->cuts && st == KILN_OK; cut++) {
    const range *const r = &c->ranges[cut * c->ranks + c->d->comm->rank];
    const uint64_t first = (uint64_t)cut * c->most;

    for (uint64_t i = 0; i < samples_of(c, r); i++)
      c->mine[first + i] =
          kiln__key_rank(c->order, c->raw + first * MOST_KEY_BYTES + i * size);
  }
  return st;
}

/* ---- Bounds -------------------------------------------------------------- */

/* Returns how many samples of rank q come before sample i of rank r. */
static uint64_t samples_before(const cutter *c, int cut, int q, int r,
                               uint64_t i)
{
  const uint64_t key = samples(c, cut, r)[i];
  const uint64_t *const s = samples(c, cut, q);
  uint64_t low = 0, high = samples_of(c, &c->ranges[cut * c->ranks + q]);

  if (q == r)
    return i;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;

    if (q < r ? s[middle] <= key : s[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Returns a bound of the number of elements before sample i of rank r. */
static uint64_t bound(const cutter *c, int cut, int r, uint64_t i, bool upper)
{
  uint64_t sum = 0;

  for (int q = 0; q < c->ranks; q++) {
    const range *const range_q = &c->ranges[cut * c->ranks + q];
    const uint64_t k = samples_before(c, cut, q, r, i);

    if (q == r)
      sum += position_of(c, range_q, i);
    else if (upper)
      sum += k < samples_of(c, range_q) ? position_of(c, range_q, k)
                                        : range_q->high;
    else
      sum += k > 0 ? position_of(c, range_q, k - 1) + 1 : range_q->low;
  }
  return sum;
}

/* Returns the first sample of rank r whose bound is at least the cut. */
static uint64_t first_behind(const cutter *c, int cut, int r, bool upper)
{
  uint64_t low = 0, high = samples_of(c, &c->ranges[cut * c->ranks + r]);

  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;

    if (bound(c, cut, r, middle, upper) >= c->before[cut])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static range narrowed(const cutter *c, int cut, int r)
{
  const range *const old = &c->ranges[cut * c->ranks + r];
  const uint64_t behind = first_behind(c, cut, r, false);
  const uint64_t not_before = first_behind(c, cut, r, true);
  range result = *old;

  if (behind < samples_of(c, old))
    result.high = position_of(c, old, behind);
  if (not_before > 0)
    result.low = position_of(c, old, not_before - 1) + 1;
  return result;
}

/* Narrows all ranges. Returns the sum of their lengths. */
static uint64_t narrow_all(cutter *c, range *next)
{
  const int n = c->cuts * c->ranks;
  uint64_t left = 0;

  for (int i = 0; i < n; i++) {
    next[i] = narrowed(c, i / c->ranks, i % c->ranks);
    left += length_of(&next[i]);
  }
  memcpy(c->ranges, next, (size_t)n * sizeof *next);
  return left;
}

/* ---- The search ---------------------------------------------------------- */

static kiln_status run_rounds(cutter *c, range *next)
{
  const size_t shared = (size_t)c->cuts * c->most * sizeof *c->mine;
  uint64_t left = UINT64_MAX, now;
  kiln_status st = KILN_OK;

  for (;;) {
    st = take_samples(c);
    if (st == KILN_OK)
      st = kiln_comm_share(c->d->comm, c->mine, shared, c->all);
    if (st != KILN_OK)
      return st;
    now = narrow_all(c, next);
    if (now == 0)
      return KILN_OK;
    if (now >= left)
      return kiln__comm_fail(KILN_EINTERNAL, "please report it",
                             "the cuts of sorted blocks are not found");
    left = now;
  }
}

static void set_up(cutter *c, const uint64_t *sizes, const uint64_t *lengths)
{
  uint64_t before = 0;

  for (int cut = 0; cut < c->cuts; cut++) {
    before += lengths[cut];
    c->before[cut] = before;
    for (int r = 0; r < c->ranks; r++)
      c->ranges[cut * c->ranks + r] = (range){0, sizes[r]};
  }
}

kiln_status kiln__cut_blocks(kiln__dist *d, const kiln__key_order *order,
                             CUdeviceptr keys, const uint64_t *sizes,
                             const uint64_t *lengths, uint64_t *cuts)
{
  const size_t ranks = (size_t)d->comm->ranks, n = ranks - 1;
  cutter c = {.d = d,
              .order = order,
              .keys = keys,
              .ranks = (int)ranks,
              .cuts = (int)n,
              .most = MOST_SAMPLES};
  kiln_status st = KILN_OK;
  range *next = NULL;

  cuts[0] = 0;
  cuts[ranks] = sizes[d->comm->rank];
  if (n == 0)
    return KILN_OK;
  if (c.most * n > KILN_COMM_STAGING / 8)
    c.most = KILN_COMM_STAGING / 8 / n;
  c.ranges = calloc(n * ranks, sizeof *c.ranges);
  next = calloc(n * ranks, sizeof *next);
  c.before = calloc(n, sizeof *c.before);
  c.mine = calloc(n * c.most, sizeof *c.mine);
  c.all = calloc(ranks * n * c.most, sizeof *c.all);
  c.raw = calloc(n * c.most, MOST_KEY_BYTES);
  if (c.ranges == NULL || next == NULL || c.before == NULL || c.mine == NULL ||
      c.all == NULL || c.raw == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  set_up(&c, sizes, lengths);
  COMM_TRY(run_rounds(&c, next));
  for (size_t cut = 0; cut < n; cut++)
    cuts[cut + 1] = c.ranges[cut * ranks + (size_t)d->comm->rank].low;

done:
  free(c.ranges);
  free(next);
  free(c.before);
  free(c.mine);
  free(c.all);
  free(c.raw);
  return st;
}
