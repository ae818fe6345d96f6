/* cpu_operands.c -- generates the operand values of cpu_opcodes.h. The stored
 * golden results depend on every value in this file. After a change, they must
 * be recorded again. */
#include "cpu_opcodes.h"

#include <string.h>

/* ---- Random numbers, computed from an index ------------------------------ */

static uint64_t mix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* Returns random number k of element i. */
static uint64_t draw(uint64_t i, unsigned k)
{
  return mix(mix(i) ^ (uint64_t)k << 32);
}

/* ---- Edges --------------------------------------------------------------- */

static const uint64_t edges_f32[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc00000, 0x7fffffff, 0x7f800001, 0xffbfffff, 0x7fc12345,
    0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
    0x00800001, 0x00400000, 0x7f7fffff, 0xff7fffff, 0x7f7ffffe, 0x7e7fffff,
    0x7e800000, 0x7e800001, 0xfe800000, 0xfe800001, 0x7f000000, 0x7f000001,
    0x3f7fffff, 0x3f800001, 0x40000000, 0x40400000, 0x3f000000, 0xbf000000,
    0x3effffff, 0x3fc00000, 0x40200000, 0x4b000000, 0x4b000001, 0x4afffffe,
    0x4effffff, 0x4f000000, 0x4f800000, 0xcf000000, 0xcf000001, 0x4f7fffff,
    0x5f000000, 0x5f800000, 0xdf000000, 0x5effffff, 0x42fe0000, 0x43000000,
    0x437f0000, 0x437f8000, 0x477fe000, 0x477ff000, 0x477fefff, 0x47800000,
    0x387fc000, 0x38800000, 0x33800000, 0x33000000, 0x33000001, 0x42b17218,
    0xc2aeac50, 0x40490fdb, 0x3fc90fdb, 0x1a800000, 0x20000000, 0x5fffffff};

static const uint64_t edges_f64[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000,
    0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000,
    0x7ff8000000000000, 0xfff8000000000000, 0x7fffffffffffffff,
    0x7ff0000000000001, 0xfff7ffffffffffff, 0x7ff8000012345678,
    0x7ffabcde00000000, 0x0000000000000001, 0x8000000000000001,
    0x000fffffffffffff, 0x800fffffffffffff, 0x0010000000000000,
    0x8010000000000000, 0x0010000000000001, 0x7fefffffffffffff,
    0xffefffffffffffff, 0x3fefffffffffffff, 0x3ff0000000000001,
    0x4000000000000000, 0x3fe0000000000000, 0x3fdfffffffffffff,
    0x3ff8000000000000, 0x4004000000000000, 0x41dfffffffc00000,
    0x41dfffffffe00000, 0x41e0000000000000, 0x41efffffffe00000,
    0x41f0000000000000, 0xc1e0000000000000, 0xc1e0000000100000,
    0xc1e0000000200000, 0x43e0000000000000, 0x43f0000000000000,
    0xc3e0000000000000, 0x43dfffffffffffff, 0x4330000000000000,
    0x4330000000000001, 0x432fffffffffffff, 0x47efffffe0000000,
    0x47effffff0000000, 0x47efffffefffffff, 0x3810000000000000,
    0x380fffffc0000000, 0x380fffffe0000000, 0x36a0000000000000,
    0x3690000000000000, 0x3690000000000001, 0x40effc0000000000,
    0x40effe0000000000, 0x40f0000000000000, 0x3f10000000000000,
    0x3e70000000000000, 0x3e60000000000000, 0x7fd0000000000000,
    0x7fe0000000000000};

static const uint64_t edges_f16[] = {
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7fff,
    0xffff, 0x7c01, 0xfdff, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400,
    0x0401, 0x0200, 0x7bff, 0xfbff, 0x7bfe, 0x3bff, 0x3c01, 0x4000, 0x3800,
    0x37ff, 0x3e00, 0x4100, 0x6400, 0x6401, 0x63ff, 0x5bf8, 0x5bfc, 0x57f0,
    0x5800, 0x77ff, 0x7800, 0xf800, 0x1400, 0x2c00, 0x0800, 0x7400};

static const uint64_t edges_bf16[] = {
    0x0000, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7fff,
    0xffff, 0x7f81, 0xffbf, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080,
    0x0081, 0x0040, 0x7f7f, 0xff7f, 0x7f7e, 0x3f7f, 0x3f81, 0x4000, 0x3f00,
    0x3eff, 0x3fc0, 0x4020, 0x4300, 0x4301, 0x42fe, 0x437f, 0x4f00, 0xcf00,
    0x5f00, 0x7e80, 0x7e81, 0x7f00, 0x1a80, 0x2000, 0x5fff, 0x3380};

static const uint64_t edges_int[] = {
    /* Small numbers, and numbers next to the widths in bits, for shifts and
     * counts. */
    0, 1, UINT64_MAX, 2, UINT64_MAX - 1, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63,
    64, 65, 127, 128, 129, 254, 255, 256,
    /* Limits of the types. */
    0x7ffe, 0x7fff, 0x8000, 0x8001, 0xffff, 0x10000, 0xffffff, 0x1000000,
    0x1000001, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
    0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001,
    /* Bit patterns, and numbers that change when their sign is extended. */
    0x5555555555555555, 0xaaaaaaaaaaaaaaaa, 0x0123456789abcdef,
    0xfedcba9876543210, 0xffffffffffff8000, 0xffffffffffffff80,
    0xffffffff80000000};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const uint64_t *edges_of(unsigned operand, size_t *n)
{
  switch (operand) {
  case KILN__F32:
  case KILN__F32X2:
  case KILN__TF32:
    *n = COUNT(edges_f32);
    return edges_f32;
  case KILN__F64:
    *n = COUNT(edges_f64);
    return edges_f64;
  case KILN__F16:
  case KILN__F16X2:
    *n = COUNT(edges_f16);
    return edges_f16;
  case KILN__BF16:
  case KILN__BF16X2:
    *n = COUNT(edges_bf16);
    return edges_bf16;
  default:
    *n = operand == KILN__PRED ? 2 : COUNT(edges_int);
    return edges_int;
  }
}

/* Returns an edge value of an operand. In a packed operand, the upper parts
 * have different edge values than the lowest part. */
static uint64_t edge(unsigned operand, size_t at)
{
  size_t n;
  const uint64_t *list = edges_of(operand, &n);

  if (operand == KILN__F16X2 || operand == KILN__BF16X2)
    return list[at % n] | list[(at * 7 + 5) % n] << 16;
  if (operand == KILN__F32X2)
    return list[at % n] | list[(at * 7 + 5) % n] << 32;
  return list[at % n];
}

/* Returns the number of combinations of edge values, at most `most`. */
static size_t count_edges(const uint8_t *operands, unsigned n_operands,
                          size_t most)
{
  size_t total = 1;

  for (unsigned k = 0; k < n_operands; k++) {
    size_t n;

    (void)edges_of(operands[k], &n);
    total *= n;
    if (total >= most)
      return most;
  }
  return total;
}

/* Generates combination i of edge values. All combinations are used in order if
 * there are few. Otherwise, a selection that is spread over all combinations is
 * used. */
static void draw_edges(const uint8_t *operands, unsigned n_operands, size_t i,
                       uint64_t out[OPCODE_SOURCES])
{
  const bool all = count_edges(operands, n_operands, OPERAND_MORE_EDGES) <
                   OPERAND_MORE_EDGES;

  for (unsigned k = 0; k < n_operands; k++) {
    size_t n;

    (void)edges_of(operands[k], &n);
    out[k] = edge(operands[k], all ? i % n : draw(i, 40 + k) % n);
    i = all ? i / n : i;
  }
}

/* ---- Random floats ------------------------------------------------------- */

typedef struct real {
  bool negative;
  int exponent;      /* exponent of the number, to base 2 */
  uint64_t fraction; /* fraction of the number, with 52 bits */
} real;

static uint64_t pack(const real *r, int exponent_bits, int fraction_bits)
{
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int biased = r->exponent + bias;
  uint64_t value;

  if (biased >= 2 * bias + 1)
    value = (uint64_t)(2 * bias + 1) << fraction_bits;
  else if (biased > 0)
    value =
        (uint64_t)biased << fraction_bits | r->fraction >> (52 - fraction_bits);
  else if (biased > -fraction_bits)
    value =
        (UINT64_C(1) << 52 | r->fraction) >> (52 - fraction_bits + 1 - biased);
  else
    value = 1;
  return value | (uint64_t)r->negative << (exponent_bits + fraction_bits);
}

static void format_of(unsigned operand, int *exponent_bits, int *fraction_bits)
{
  switch (operand) {
  case KILN__F64:
    *exponent_bits = 11;
    *fraction_bits = 52;
    return;
  case KILN__F16:
  case KILN__F16X2:
    *exponent_bits = 5;
    *fraction_bits = 10;
    return;
  case KILN__BF16:
  case KILN__BF16X2:
    *exponent_bits = 8;
    *fraction_bits = 7;
    return;
  default:
    *exponent_bits = 8;
    *fraction_bits = 23;
    return;
  }
}

/* Generates a fraction: with all bits random, with few high bits set, with few
 * zero bits, or exactly halfway between two narrower values. */
static uint64_t draw_fraction(uint64_t random)
{
  const uint64_t bits = random >> 12;
  const unsigned n = (unsigned)(random % 53);

  switch (random >> 8 & 7) {
  case 0:
    return bits >> n << n;
  case 1:
    return (bits | ((UINT64_C(1) << 52) - 1) >> n) & ((UINT64_C(1) << 52) - 1);
  case 2:
    return UINT64_C(1) << (n % 52);
  default:
    return bits;
  }
}

/* Generates exponents and signs for the operands of one element so that the
 * operands affect each other. `widest` is the exponent range of the narrowest
 * format. */
static void draw_reals(uint64_t i, unsigned part, unsigned n, int range,
                       real out[OPCODE_SOURCES])
{
  const uint64_t r = draw(i, 50 + part);
  const unsigned way = r & 7;
  int base = (int)(r >> 8 & 0xffff) % (2 * range) - range;

  if (way == 1) /* exponents at which all floats are integers */
    base = (int)(r >> 8 & 0xffff) % 70 - 3;
  else if (way == 2)
    base = (int)(r >> 8 & 0xffff) % 5 - 2;
  for (unsigned k = 0; k < n; k++) {
    const uint64_t s = draw(i, 60 + 8 * part + k);

    out[k].negative = s & 1;
    out[k].fraction = draw_fraction(draw(i, 100 + 8 * part + k));
    out[k].exponent = base + (int)(s >> 8 & 0xff) % 7 - 3;
  }
  /* The product a * b is near the smallest representable number. */
  if (way == 3 && n >= 2) {
    out[1].exponent = -range + 1 - out[0].exponent + (int)(r >> 40 & 7) - 4;
    if (n >= 3)
      out[2].exponent = -range + 1 + (int)(r >> 44 & 7) - 4;
  } else if (way == 4 && n >= 3) { /* c is about as large as a * b. */
    out[1].exponent = (int)(r >> 40 & 7) - 3;
    out[2].exponent =
        out[0].exponent + out[1].exponent + (int)(r >> 44 & 63) - 32;
  } else if (way == 5 && n >= 3) { /* The sum a * b + c is nearly 0. */
    out[1].fraction &= ~UINT64_C(0) << 50;
    out[1].exponent = 0;
    out[2] = out[0];
    out[2].negative = !(out[0].negative ^ out[1].negative);
  } else if (way == 5 && n == 2) { /* The sum a + b is nearly 0. */
    out[1].fraction = out[0].fraction ^ (UINT64_C(1) << (r >> 40) % 52);
    out[1].exponent = out[0].exponent;
  }
}

static bool is_real(unsigned operand)
{
  switch (operand) {
  case KILN__F16:
  case KILN__BF16:
  case KILN__F32:
  case KILN__F16X2:
  case KILN__BF16X2:
  case KILN__F32X2:
  case KILN__TF32:
  case KILN__F64:
    return true;
  default:
    return false;
  }
}

/* Replaces the random bits in `out` by random floats, in three of four
 * elements. */
static void draw_floats(const uint8_t *operands, unsigned n_operands, size_t i,
                        uint64_t out[OPCODE_SOURCES])
{
  int range = 1100;

  for (unsigned k = 0; k < n_operands; k++) {
    int e, f;

    if (!is_real(operands[k]))
      continue;
    format_of(operands[k], &e, &f);
    if (range > (1 << (e - 1)) + f)
      range = (1 << (e - 1)) + f;
  }
  for (unsigned part = 0; part < 2; part++) {
    real reals[OPCODE_SOURCES];

    if (draw(i, 48 + part) % 4 == 0)
      continue;
    draw_reals(i, part, n_operands, range, reals);
    for (unsigned k = 0; k < n_operands; k++) {
      int e, f;

      if (!is_real(operands[k]))
        continue;
      format_of(operands[k], &e, &f);
      if (part == 0)
        out[k] =
            pack(&reals[k], e, f) |
            (f + e < 31 ? out[k] << 32 >> 32 >> (e + f + 1) << (e + f + 1) : 0);
      else if (operands[k] == KILN__F32X2)
        out[k] = (out[k] & UINT32_MAX) | pack(&reals[k], e, f) << 32;
      else if (operands[k] == KILN__F16X2 || operands[k] == KILN__BF16X2)
        out[k] = (out[k] & 0xffff) | pack(&reals[k], e, f) << 16;
    }
  }
}

/* ---- Random integers ----------------------------------------------------- */

static uint64_t draw_integer(uint64_t i, unsigned k)
{
  const uint64_t r = draw(i, k), way = draw(i, 16 + k);

  switch (way & 7) {
  case 0:
    return (way >> 8) % 141 - 70;
  case 1:
    return (UINT64_C(1) << (way >> 8 & 63)) + (way >> 16) % 5 - 2;
  case 2:
    return 0 - (r >> (way >> 8 & 63));
  case 3:
  case 4:
    return r >> (way >> 8 & 63);
  case 5:
    return k == 0 ? r : draw_integer(i, k - 1) + (way >> 8) % 5 - 2;
  case 6:
    return k == 0 ? r : 0 - draw_integer(i, k - 1) + (way >> 8) % 5 - 2;
  default:
    return r;
  }
}

/* ---- Operands of warp instructions --------------------------------------- */

static uint32_t members_of(size_t i)
{
  const uint64_t r = draw(i / KILN__WARP, 7);
  const unsigned width = 1u << (r & 7) % 6;
  uint32_t mask = 0;

  if (i / KILN__WARP % 2 == 0)
    return UINT32_MAX;
  for (unsigned lane = 0; lane < KILN__WARP; lane++)
    mask |= (uint32_t)(r >> (8 + lane / width) & 1) << lane;
  return mask != 0 ? mask : width == 32 ? UINT32_MAX : (1u << width) - 1;
}

/* Returns a lane operand for shfl. If the member mask does not contain all
 * lanes, a butterfly shuffle stays within its segment. */
static uint32_t lane_of(size_t i)
{
  const uint64_t r = draw(i / KILN__WARP, 7);
  const uint32_t lane = (uint32_t)draw(i, 11);

  if (i / KILN__WARP % 2 != 0)
    return lane % (1u << (r & 7) % 6);
  return draw(i, 10) % 4 == 0 ? lane : lane % KILN__WARP;
}

/* Returns a segment operand for shfl. It ensures that lanes read only lanes of
 * the member mask. */
static uint32_t segment_of(size_t i, bool up)
{
  const uint64_t r = draw(i / KILN__WARP, 7);
  const uint32_t width = 1u << (r & 7) % 6;

  if (i / KILN__WARP % 2 == 0)
    return (uint32_t)draw(i, 8);
  return (KILN__WARP - width) << 8 | (up ? 0 : KILN__WARP - 1);
}

static uint64_t draw_few(size_t i, unsigned k)
{
  const uint64_t warp = draw(i / KILN__WARP, 20 + k);
  const uint64_t which = warp % 4 == 0 ? 0 : draw(i, 20 + k) % (warp % 16 + 1);

  return warp % 4 == 1 ? draw(i, 24 + k)
                       : draw(i / KILN__WARP * 64 + which, 28 + k);
}

static uint64_t draw_some(size_t i)
{
  switch (draw(i / KILN__WARP, 9) % 4) {
  case 0:
    return 0;
  case 1:
    return 1;
  case 2:
    return draw(i, 9) % 16 != 0;
  default:
    return draw(i, 9) % 2;
  }
}

static uint64_t draw_one(unsigned operand, size_t i, unsigned k)
{
  switch (operand) {
  case OPERAND_FEW32:
  case OPERAND_FEW64:
    return draw_few(i, k);
  case OPERAND_SOME:
    return draw_some(i);
  case OPERAND_LANE:
    return lane_of(i);
  case OPERAND_SEGMENT:
    return segment_of(i, false);
  case OPERAND_SEGMENT_UP:
    return segment_of(i, true);
  case OPERAND_MEMBERS:
    return members_of(i);
  case KILN__PRED:
    return draw(i, 12 + k) & 1;
  default:
    return is_real(operand) ? draw(i, k) : draw_integer(i, k);
  }
}

unsigned operand_bytes(unsigned operand)
{
  if (operand >= OPERAND_FEW32)
    return operand == OPERAND_FEW64 ? 8 : 4;
  return kiln__cpu_ptx_type_bytes[operand] == 8 ? 8 : 4;
}

static void draw_element(const uint8_t *operands, unsigned n_operands, size_t i,
                         uint64_t out[OPCODE_SOURCES])
{
  const bool warp = operands[n_operands - 1] == OPERAND_MEMBERS;
  const size_t combinations =
      count_edges(operands, n_operands, OPERAND_MORE_EDGES);
  const size_t number = i < 2 * OPERAND_EDGES ? i : i - OPERAND_EDGES;
  const bool edges = !warp &&
                     (i < OPERAND_EDGES ||
                      (i >= 2 * OPERAND_EDGES && i < OPERAND_MORE_EDGES)) &&
                     number < combinations;

  if (edges) {
    draw_edges(operands, n_operands, number, out);
    return;
  }
  for (unsigned k = 0; k < n_operands; k++)
    out[k] = draw_one(operands[k], i, k);
  draw_floats(operands, n_operands, i, out);
}

void operands_make(const uint8_t *operands, unsigned n_operands, size_t n,
                   void *arrays[OPCODE_SOURCES])
{
  for (size_t i = 0; i < n; i++) {
    uint64_t values[OPCODE_SOURCES] = {0};

    draw_element(operands, n_operands, i, values);
    for (unsigned k = 0; k < n_operands; k++) {
      if (operand_bytes(operands[k]) == 8)
        ((uint64_t *)arrays[k])[i] = values[k];
      else
        ((uint32_t *)arrays[k])[i] = (uint32_t)values[k];
    }
  }
}
