/* tensor_cases.c -- makes random tensor copies and their data. The random
 * numbers are a linear congruential generator with a mixed output. */
#include "tensor_cases.h"

#include <stdbool.h>
#include <string.h>

static uint32_t mix(uint32_t x)
{
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/* ---- Data ---------------------------------------------------------------- */

/* The exponents of the data of floats: many zeros, subnormals, infinities and
 * NaNs. `bits` is the size of the exponent, and `random` one more exponent. */
static uint32_t exponent(unsigned which, unsigned bits, uint32_t random)
{
  const uint32_t top = (1u << bits) - 1, bias = top / 2;
  const uint32_t all[8] = {0,    0,        top,      1,
                           bias, bias + 1, bias - 1, random & top};

  return all[which & 7];
}

/* Returns a word with two 16-bit floats. */
static uint32_t two_halves(uint32_t h, uint32_t k, unsigned exponent_bits)
{
  const unsigned at = 15 - exponent_bits;
  const uint32_t keep = 0x8000 | ((1u << at) - 1);
  uint32_t r = 0;

  for (unsigned j = 0; j < 2; j++) {
    uint32_t m = h >> (16 * j) & keep;

    if ((k >> (8 + 3 * j) & 7) == 0)
      m &= 0x8000;
    r |= (m | exponent(k >> (3 * j), exponent_bits, k >> 20) << at) << (16 * j);
  }
  return r;
}

uint32_t tensor_word(uint32_t seed, uint32_t mode, uint32_t i)
{
  const uint32_t h = mix(i * 0x9e3779b9u + seed), k = mix(h + 77);
  uint32_t m;

  switch (mode) {
  case 1: /* f32 */
    m = h & ((k >> 8 & 7) == 0 ? 0x80000000 : 0x807fffff);
    return m | exponent(k, 8, h >> 23) << 23;
  case 2: /* f16 */
    return two_halves(h, k, 5);
  case 3: /* bf16 */
    return two_halves(h, k, 8);
  case 4: /* f64 */
    if ((i & 1) == 0)
      return (k & 7) == 0 ? 0 : h;
    return (h & 0x800fffff) | exponent(k, 11, h >> 20) << 20;
  case 5: /* f32 near 1 */
    return (h & 0x80ffffff) | 0x3f000000;
  case 6: /* f16 near 1 */
    return (h & 0x83ff83ff) | 0x38003c00;
  case 7: /* bf16 near 1 */
    return (h & 0x807f807f) | 0x3f003f80;
  case 8:
    return h & 7;
  case 9: /* f32 near the smallest normal number, so that sums are subnormal */
    return (h & 0x807fffff) | (k % 3) << 23;
  default:
    return h;
  }
}

/* ---- Cases --------------------------------------------------------------- */

static _Thread_local uint32_t state;

static uint32_t draw(void)
{
  state = state * 1664525u + 1013904223u;
  return mix(state);
}

static uint32_t within(uint32_t low, uint32_t high)
{
  return low + draw() % (high - low + 1);
}

static const uint8_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

static uint32_t mode_of(uint8_t type)
{
  static const uint8_t modes[] = {0, 0, 0, 0, 0, 0, 2, 1, 4, 3, 1, 1, 1};

  return modes[type];
}

static uint32_t span_of(const tensor_case *c)
{
  return c->swizzle == 0   ? 512
         : c->swizzle == 1 ? 32
         : c->swizzle == 2 ? 64
                           : 128;
}

static uint8_t reduced_type(uint32_t group, tensor_kind kind, uint32_t i)
{
  static const uint8_t words[] = {7, 10, 11, 12};
  static const uint8_t sums[] = {2, 3, 4, 6, 7, 9, 10, 5};
  static const uint8_t extremes[] = {2, 3, 4, 5, 6, 9}, bits[] = {2, 3, 4, 5};

  if (group == 9)
    return words[i / 2 % 4];
  switch ((int)kind) {
  case TENSOR_ADD:
    return sums[draw() % 8];
  case TENSOR_ADD + 1:
  case TENSOR_ADD + 2:
    return extremes[draw() % 6];
  case TENSOR_ADD + 3:
  case TENSOR_ADD + 4:
    return 2;
  default:
    return bits[draw() % 4];
  }
}

void tensor_reduction_make(tensor_reduction *r, uint32_t i)
{
  static const struct {
    const char *op;
    uint8_t mode, other;
  } all[TENSOR_REDUCTIONS] = {
      {"and.b32", 0, 0},       {"or.b32", 0, 0},         {"xor.b32", 0, 0},
      {"and.b64", 0, 0},       {"or.b64", 0, 0},         {"xor.b64", 0, 0},
      {"add.u32", 0, 0},       {"add.s32", 0, 0},        {"add.u64", 0, 0},
      {"add.noftz.f16", 2, 6}, {"add.noftz.bf16", 3, 7}, {"add.f32", 1, 5},
      {"add.f64", 4, 0},       {"inc.u32", 0, 8},        {"dec.u32", 0, 8},
      {"min.u32", 0, 0},       {"max.u32", 0, 0},        {"min.s32", 0, 0},
      {"max.s32", 0, 0},       {"min.u64", 0, 0},        {"max.u64", 0, 0},
      {"min.s64", 0, 0},       {"max.s64", 0, 0},        {"min.f16", 2, 6},
      {"max.f16", 2, 6},       {"min.bf16", 3, 7},       {"max.bf16", 3, 7}};
  const uint32_t op = i % 34;

  state = i * 104729u + 5;
  r->op = all[op].op;
  r->seed = draw();
  r->mode = i / 34 % 2 != 0 ? all[op].other : all[op].mode;
}

static void make_layout(tensor_case *c, uint32_t group, uint32_t i)
{
  c->interleave = (uint8_t)(group == 2                 ? within(1, 2)
                            : c->im2col && i % 10 == 9 ? within(1, 2)
                                                       : 0);
  c->swizzle = (uint8_t)(draw() % 2 != 0 ? 0 : draw() % 4);
  if (group == 8)
    c->swizzle = (uint8_t)(4 + i % 3);
  if (c->interleave == 2)
    c->swizzle = 1;
  c->fill = (uint8_t)(c->type >= 6 && draw() % 2 != 0);
}

static void make_sizes(tensor_case *c, uint32_t align)
{
  const uint32_t bytes = element_bytes[c->type];
  uint64_t s;

  for (uint32_t d = 0; d < c->rank; d++)
    c->dim[d] = d == 0 ? within(1, 96 / bytes + 8) : within(1, 9);
  s = (c->dim[0] * bytes + align - 1) / align * align + align * (draw() % 3);
  if (c->interleave != 0)
    s = (uint64_t)align * within(1, 3);
  for (uint32_t d = 0; d + 1 < c->rank; d++) {
    c->stride[d] = s;
    s *= c->dim[d + 1] + (draw() % 4 == 0);
  }
}

/* Makes the bounding box and the position of an im2col copy. Returns the number
 * of bytes in shared memory. */
static uint32_t make_pixels(tensor_case *c)
{
  const uint32_t bytes = element_bytes[c->type], span = span_of(c);
  const uint32_t limit = c->rank == 3 ? 6 : c->rank == 4 ? 4 : 2;
  int tries = 0;

  do {
    c->channels = within(1, 16) * 16 / bytes;
    if (c->interleave != 0)
      c->channels = within(1, 40);
  } while (tries++ < 1000 &&
           (c->channels == 0 || c->channels > 256 ||
            (c->interleave == 0 && c->channels * bytes > span)));
  c->pixels = within(1, 40);
  for (uint32_t d = 0; d + 2 < c->rank; d++) {
    do {
      c->lower[d] = (int)within(0, 2 * limit) - (int)limit;
      c->upper[d] = (int)within(0, 2 * limit) - (int)limit;
      if (draw() % 3 == 0)
        c->lower[d] = c->upper[d] = 0;
    } while ((int64_t)c->dim[d + 1] + c->upper[d] - c->lower[d] <= 0);
    c->offset[d] = (uint16_t)(draw() % 2 != 0 ? 0 : within(0, 4));
  }
  for (uint32_t d = 0; d < 5; d++)
    c->step[d] = draw() % 3 != 0 ? 1 : within(1, 3);
  c->coord[0] = draw() % 2 != 0 ? 0 : (int)within(0, (uint32_t)c->dim[0]) - 1;
  for (uint32_t d = 0; d + 2 < c->rank; d++) {
    const uint32_t n =
        (uint32_t)((int)c->dim[d + 1] + c->upper[d] - c->lower[d]);

    c->coord[d + 1] = c->lower[d] + (int)(draw() % n);
    if (draw() % 20 == 0)
      c->coord[d + 1] += (int)within(0, 6) - 3;
  }
  c->coord[c->rank - 1] = (int)(draw() % c->dim[c->rank - 1]);
  c->coord[c->rank - 1] -= draw() % 12 == 0;
  return c->pixels * (c->swizzle != 0 ? span : c->channels * bytes);
}

/* Makes the box of a tiled copy. Returns the number of bytes in shared
 * memory. */
static uint32_t make_box(tensor_case *c)
{
  const uint32_t bytes = element_bytes[c->type], span = span_of(c);

  for (int tries = 0;;) {
    uint32_t size;

    for (uint32_t d = 0; d < c->rank; d++) {
      c->box[d] = d == 0 ? within(1, 256) : within(1, 10);
      c->step[d] = draw() % 3 != 0 ? 1 : within(1, 3);
    }
    if (c->interleave == 0)
      c->box[0] = within(1, span / 16 > 16 ? 16 : span / 16) * 16 / bytes;
    else
      c->box[0] = within(1, 40);
    if (c->rank == 1)
      c->step[0] = 1;
    if (c->box[0] == 0 || c->box[0] > 256)
      continue;
    size = c->swizzle != 0 ? span : c->box[0] * bytes;
    for (uint32_t d = 1; d < c->rank; d++)
      size *= (c->box[d] + c->step[d] - 1) / c->step[d];
    if (size <= (tries++ < 50 ? 4096 : 16384))
      return size;
  }
}

static void make_position(tensor_case *c, bool wild)
{
  for (uint32_t d = 0; d < c->rank; d++) {
    const uint32_t box = c->box[d], dim = (uint32_t)c->dim[d];

    if (wild)
      c->coord[d] = (int)within(0, dim + 2 * box) - 2 * (int)box + 1;
    else if (draw() % 3 == 0)
      c->coord[d] = (int)within(0, dim + box) - (int)box;
    else
      c->coord[d] = (int)within(0, dim - 1);
    if (draw() % 3 == 0)
      c->coord[d] = 0;
  }
}

/* Changes a case so that the hardware accepts it: the inner dimension of a box
 * and, without interleaving, coordinate 0 are multiples of 16 bytes, and a store
 * has no negative coordinates. */
static void settle(tensor_case *c)
{
  const uint32_t unit = 16u / element_bytes[c->type];

  if (c->interleave != 0) {
    c->box[0] = (c->box[0] % 6 + 1) * unit;
    c->channels = (c->channels % 6 + 1) * unit;
  } else {
    c->coord[0] -= c->coord[0] % (int32_t)unit;
  }
  for (uint32_t d = 0; d < c->rank && !tensor_case_loads(c); d++)
    c->coord[d] = c->coord[d] < 0 ? -(c->coord[d] + 1) : c->coord[d];
  if (c->interleave == 0 && !tensor_case_loads(c))
    c->coord[0] -= c->coord[0] % (int32_t)unit;
}

/* Changes an im2col case so that the hardware accepts it: the copy starts within
 * the bounding box, and the bounding box of a store lies within the tensor. */
static void settle_pixels(tensor_case *c)
{
  const uint32_t w = c->interleave != 0 ? 0 : 1;

  for (uint32_t d = 0; d + 2 < c->rank; d++) {
    int32_t last;

    if (!tensor_case_loads(c)) {
      c->lower[d] = c->lower[d] < 0 ? 0 : c->lower[d] % (int)c->dim[d + w];
      c->upper[d] = c->upper[d] > 0 ? 0 : c->upper[d];
    }
    last = (int32_t)c->dim[d + w] - 1 + c->upper[d];
    if (last < c->lower[d]) {
      c->upper[d] += c->lower[d] - last;
      last = c->lower[d];
    }
    if (!tensor_case_loads(c) && c->upper[d] > 0)
      c->lower[d] = c->upper[d] = 0;
    if (c->coord[d + w] < c->lower[d] || c->coord[d + w] > last)
      c->coord[d + w] = c->lower[d];
  }
}

void tensor_case_make(tensor_case *c, uint32_t group, uint32_t i)
{
  const bool load = group <= 3 || group == 8;
  uint32_t align, size;
  bool wild;

  state = group * 7919u + i * 104729u + 12345u;
  (void)draw();
  *c = (tensor_case){0};
  c->seed = draw();
  c->im2col = group == 3 || group == 5;
  c->kind = group == 3   ? TENSOR_LOAD_PIXELS
            : load       ? TENSOR_LOAD
            : group == 4 ? TENSOR_STORE
            : group == 5 ? TENSOR_STORE_PIXELS
            : group == 9 ? TENSOR_ADD
                         : (tensor_kind)(TENSOR_ADD + i % 8);
  c->type = group == 6 || group == 9 ? reduced_type(group, c->kind, i)
                                     : (uint8_t)(draw() % 13);
  c->mode = draw() % 3 != 0 ? mode_of(c->type) : 0;
  if (group == 9)
    c->mode = i % 2 == 0 ? 1 : 9;
  c->rank = (uint8_t)(c->im2col || group == 2 ? within(3, 5) : within(1, 5));
  make_layout(c, group, i);
  align = c->interleave == 2 ? 32 : 16;
  wild = load && draw() % 6 == 0;
  make_sizes(c, align);
  size = c->im2col ? make_pixels(c) : make_box(c);
  if (!c->im2col) {
    make_position(c, wild);
    if (draw() % 60 == 0) {
      const int32_t far = (int32_t)draw();

      c->coord[draw() % c->rank] = far;
    }
  }
  if (c->interleave != 0) {
    size = 6000;
    if (draw() % 2 != 0)
      c->coord[0] = 0;
  }
  c->shared_at = draw() % 2 != 0 ? 0 : 128 * within(0, 8);
  c->tensor_at = align * (draw() % 8);
  c->dumped = (c->shared_at + size + 512 + 15) / 16 * 16;
  if (c->dumped > 20000)
    c->dumped = 20000;
  settle(c);
  if (i >= TENSOR_SETTLED && c->im2col)
    settle_pixels(c);
  if (i >= TENSOR_SETTLED && group == 6 && c->type == 5)
    c->type = 4;
}
