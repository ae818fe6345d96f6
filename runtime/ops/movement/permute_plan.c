/* permute_plan.c -- decides how kiln_permute() moves an array.
 *
 * Problem: a permutation of up to six axes has many forms, but few that differ
 * for the memory.
 *
 * Idea: axes of one element are dropped, and neighbours in both orders are
 * merged. If the fastest axis of the output is the fastest of the input, then it
 * either fits into 16 bytes and becomes a part of the element, or rows of it are
 * copied. Otherwise tiles are transposed: run A starts with the fastest axis of
 * the input, and run B with the fastest axis of the output. While a run is
 * shorter than a tile, the axis that follows it in its own order joins it, so
 * that short axes such as the colours of an image do not make narrow tiles.
 *
 * Invariant: each axis belongs to run A, to run B or to the batch. A run is
 * contiguous in its own array. */
#include "permute_plan.h"

#include <string.h>

enum {
  ROW_BLOCK = 256,
  THIN = 32,          /* a run of at most this length has a tile of its own */
  TILE_BYTES = 16384, /* bytes of a tile in shared memory */
  MOST_PER_TILE = 1024,
  SECTOR = 32 /* bytes that the memory moves at least */
};

/* ---- Normal form --------------------------------------------------------- */

/* Adds an axis behind the axes so far, or merges it into the last one if both
 * are neighbours in the input too. */
static void add_axis(kiln__permute_plan *p, uint64_t size, uint64_t in_stride)
{
  kiln__axis *last = p->n > 0 ? &p->axis[p->n - 1] : NULL;

  if (size == 1)
    return;
  if (last != NULL && last->in == in_stride * size) {
    last->size *= size;
    last->in = in_stride;
    return;
  }
  p->axis[p->n++] = (kiln__axis){.size = size, .in = in_stride};
}

static void merge_axes(kiln__permute_plan *p, const kiln_permute_desc *desc)
{
  const uint64_t values = desc->values > 0 ? desc->values : 1;
  uint64_t stride[KILN_MAX_AXES], length = values;

  for (uint32_t k = desc->rank; k-- > 0;) {
    stride[k] = length;
    length *= desc->size[k];
  }
  for (uint32_t k = 0; k < desc->rank; k++)
    add_axis(p, desc->size[desc->axis[k]], stride[desc->axis[k]]);
  add_axis(p, values, 1);
  p->bytes = length * p->element;
  length = 1;
  for (size_t k = p->n; k-- > 0;) {
    p->axis[k].out = length;
    length *= p->axis[k].size;
  }
}

/* Makes the fastest axis a part of the element. */
static void absorb_fastest(kiln__permute_plan *p)
{
  const uint64_t size = p->axis[p->n - 1].size;

  p->n--;
  p->element *= (uint32_t)size;
  for (size_t k = 0; k < p->n; k++) {
    p->axis[k].in /= size;
    p->axis[k].out /= size;
  }
}

/* Returns the largest number of bytes, up to 16, that divides `run` and the
 * addresses of both arrays. */
static uint32_t unit_of(const kiln_permute_desc *desc, uint64_t run)
{
  uint32_t unit = 16;

  while ((run | desc->in.data | desc->out.data) % unit != 0)
    unit /= 2;
  return unit;
}

static kiln__axis with_reciprocal(const kiln__permute_plan *p, kiln__axis a)
{
  if (a.size > 0)
    a.reciprocal = (p->small ? UINT32_MAX : UINT64_MAX) / a.size;
  return a;
}

/* ---- Rows ---------------------------------------------------------------- */

static void plan_rows(kiln__permute_plan *p, const kiln_permute_desc *desc)
{
  const kiln__axis *fastest = &p->axis[p->n - 1];
  uint64_t per_element, units;

  p->path = KILN__PERMUTE_ROWS;
  p->unit = unit_of(desc, fastest->size * p->element);
  p->block = ROW_BLOCK;
  units = p->bytes / p->unit;
  p->small = units < UINT32_C(1) << 31;
  p->blocks = kiln__divide_up(units, (uint64_t)ROW_BLOCK * KILN__ROW_ITEMS);
  per_element = fastest->size * p->element / p->unit;
  p->rows.row = with_reciprocal(p, (kiln__axis){.size = per_element});
  p->rows.n = (uint32_t)(p->n - 1);
  for (size_t k = 0; k + 1 < p->n; k++) {
    kiln__axis a = p->axis[p->n - 2 - k];

    a.in = a.in / fastest->size * per_element;
    a.out = a.out / fastest->size * per_element;
    p->rows.axes[k] = with_reciprocal(p, a);
  }
}

/* ---- Tiles --------------------------------------------------------------- */

/* The runs while they are chosen. */
typedef struct runs {
  uint64_t a, b;
  bool used[KILN__PERMUTE_AXES];
} runs;

static void take_for_a(kiln__permute_plan *p, runs *r, size_t k)
{
  r->used[k] = true;
  r->a *= p->axis[k].size;
  p->tiles.of_a[p->tiles.n_a++] = p->axis[k];
}

static void take_for_b(kiln__permute_plan *p, runs *r, size_t k)
{
  r->used[k] = true;
  r->b *= p->axis[k].size;
  p->tiles.of_b[p->tiles.n_b++] = p->axis[k];
}

/* Returns the axis that follows run A in the input, or the one that follows run
 * B in the output; p->n if there is none. */
static size_t follows_a(const kiln__permute_plan *p, const runs *r)
{
  size_t k = 0;

  while (k < p->n && (r->used[k] || p->axis[k].in != r->a))
    k++;
  return k;
}

static size_t follows_b(const kiln__permute_plan *p, const runs *r)
{
  size_t k = 0;

  while (k < p->n && (r->used[k] || p->axis[k].out != r->b))
    k++;
  return k;
}

/* Divides the axes into the two runs and the batch. */
static void choose_runs(kiln__permute_plan *p, uint64_t enough)
{
  runs r = {.a = 1, .b = 1};

  take_for_b(p, &r, p->n - 1);
  take_for_a(p, &r, follows_a(p, &r));
  for (;;) {
    const size_t a = r.a < enough ? follows_a(p, &r) : p->n;
    const size_t b = r.b < enough ? follows_b(p, &r) : p->n;

    if (a < p->n && (b == p->n || r.a <= r.b))
      take_for_a(p, &r, a);
    else if (b < p->n)
      take_for_b(p, &r, b);
    else
      break;
  }
  for (size_t k = p->n; k-- > 0;)
    if (!r.used[k])
      p->tiles.of_batch[p->tiles.n_batch++] = p->axis[k];
  p->tiles.a = r.a;
  p->tiles.b = r.b;
}

/* Returns whether both arrays can be accessed in words of `pack` elements along
 * their runs. */
static bool packs(const kiln__permute_plan *p, const kiln_permute_desc *desc,
                  uint32_t pack)
{
  const kiln__tile_shape *t = &p->tiles;
  uint64_t all = t->a | t->b;

  if ((desc->in.data | desc->out.data) % 4 != 0 || t->a <= THIN || t->b <= THIN)
    return false;
  for (uint32_t k = 0; k < t->n_a; k++)
    all |= t->of_a[k].out;
  for (uint32_t k = 0; k < t->n_b; k++)
    all |= t->of_b[k].in;
  for (uint32_t k = 0; k < t->n_batch; k++)
    all |= t->of_batch[k].in | t->of_batch[k].out;
  return all % pack == 0;
}

/* Returns the smallest power of two that is at least n, at most `most`. */
static uint32_t power_for(uint64_t n, uint32_t most)
{
  uint32_t power = 1;

  while (power < n && power < most)
    power *= 2;
  return power;
}

/* Returns the size of a tile along one run of length n, where `usual` is the size
 * of a square tile. */
static uint32_t side_of(uint64_t n, uint32_t usual)
{
  return n <= THIN ? (uint32_t)n : power_for(n, usual);
}

/* Chooses the size of the tiles. If one run is thin, tiles are long along the
 * other one. */
static void choose_tile(kiln__permute_plan *p)
{
  const uint32_t most = TILE_BYTES / p->element;
  uint64_t units;

  if (p->pack > 1) {
    /* Both runs are longer than THIN, so that a side has 64 indices at least. */
    p->ta = power_for(p->tiles.a, 128);
    p->tb = power_for(p->tiles.b, p->pack == 4 ? 128 : 64);
    p->unit = 4;
    p->block = 256;
    return;
  }
  p->ta = side_of(p->tiles.a, p->element <= 8 ? 64 : 32);
  p->tb = side_of(p->tiles.b, p->element <= 4 ? 64 : 32);
  if (p->ta <= THIN)
    p->tb = side_of(p->tiles.b, power_for(most / p->ta / 2 + 1, MOST_PER_TILE));
  else if (p->tb <= THIN)
    p->ta = side_of(p->tiles.a, power_for(most / p->tb / 2 + 1, MOST_PER_TILE));
  units = (uint64_t)p->ta * p->tb * (p->element / p->unit);
  p->block = power_for(units / 8, 256);
  if (p->block < 32)
    p->block = 32;
}

/* Returns the number of elements per sector if tiles should start at sectors in
 * each row of the output, otherwise 1. A skewed tile loads so many more indices
 * than it stores, which costs too much if they are more than a quarter, and for
 * bytes: planes of 2^28 bytes from pixels took 388 us instead of 247 on an H200. */
static uint32_t skew_of(const kiln__permute_plan *p,
                        const kiln_permute_desc *desc)
{
  const kiln__tile_shape *t = &p->tiles;
  const uint32_t each = SECTOR / p->unit;
  uint64_t all = desc->out.data / p->unit;

  if (p->pack > 1 || p->element != p->unit || p->unit < 4 ||
      p->tb % (4 * each) != 0 || t->b <= p->tb)
    return 1;
  for (uint32_t k = 0; k < t->n_a; k++)
    all |= t->of_a[k].out;
  for (uint32_t k = 0; k < t->n_batch; k++)
    all |= t->of_batch[k].out;
  return all % each != 0 ? each : 1;
}

static void plan_tiles(kiln__permute_plan *p, const kiln_permute_desc *desc)
{
  kiln__tile_shape *t = &p->tiles;
  const uint32_t full = p->element <= 2 ? 4 / p->element : 1;
  uint64_t batch = 1;

  p->path = KILN__PERMUTE_TILES;
  p->unit = unit_of(desc, p->element);
  p->small = p->bytes / p->unit < UINT32_C(1) << 31;
  choose_runs(p, (uint64_t)64 * full);
  p->pack = packs(p, desc, full) ? full : 1;
  choose_tile(p);
  p->skew = skew_of(p, desc);
  t->tiles_a.size = kiln__divide_up(t->a, p->ta);
  t->tiles_b.size = kiln__divide_up(t->b, p->tb);
  t->tiles_a = with_reciprocal(p, t->tiles_a);
  t->tiles_b = with_reciprocal(p, t->tiles_b);
  for (uint32_t k = 0; k < t->n_a; k++)
    t->of_a[k] = with_reciprocal(p, t->of_a[k]);
  for (uint32_t k = 0; k < t->n_b; k++)
    t->of_b[k] = with_reciprocal(p, t->of_b[k]);
  for (uint32_t k = 0; k < t->n_batch; k++) {
    batch *= t->of_batch[k].size;
    t->of_batch[k] = with_reciprocal(p, t->of_batch[k]);
  }
  p->blocks = t->tiles_a.size * t->tiles_b.size * batch;
}

void kiln__permute_plan_make(kiln__permute_plan *p,
                             const kiln_permute_desc *desc)
{
  memset(p, 0, sizeof *p);
  p->element = (uint32_t)kiln__size(desc->in.type);
  p->pack = 1;
  merge_axes(p, desc);
  if (p->n <= 1) {
    p->path = KILN__PERMUTE_COPY;
  } else if (p->axis[p->n - 1].in != 1) {
    plan_tiles(p, desc);
  } else if (p->axis[p->n - 1].size <= 16 / p->element) {
    absorb_fastest(p);
    plan_tiles(p, desc);
  } else {
    plan_rows(p, desc);
  }
}
