/* fragment.c -- places matrix elements in the registers of a warp.
 *
 * Problem: mma has a figure per shape and type, and wmma leaves the
 * distribution open.
 *
 * Idea: on sm_80 and newer, every instruction except m8n8k4 of f16 consists of
 * products of a tall factor with a narrow one. Lane 4 g + t holds rows g and
 * g + 8 of 16 tall rows, and row g of 8 narrow rows; t selects k. The result
 * has two neighbouring narrow rows per tall row. wmma.m8n32k16 exchanges the
 * roles: its B is the tall factor. Wider shapes repeat the pattern.
 *
 * Source: PTX ISA, "Matrix Fragments for mma", and the machine code that ptxas
 * emits for wmma on sm_90. */
#include "fragment.h"

#include "tensor_arithmetic.h"

#include <string.h>

_Static_assert((int)KILN__ELEMENT_F16 == (int)KILN__TENSOR_F16 &&
                   (int)KILN__ELEMENT_E5M2 == (int)KILN__TENSOR_E5M2 &&
                   (int)KILN__ELEMENT_B1 == (int)KILN__TENSOR_B1 &&
                   (int)KILN__ELEMENT_S32 == (int)KILN__TENSOR_S32,
               "both enumerations have the same order");

/* ---- Placement ----------------------------------------------------------- */

/* The four products of m8n8k4, each by eight lanes. */
static bool is_quad(const kiln__cpu_matrix *x)
{
  return x->k4 == 1 && x->m == 8 && x->type[0] == KILN__ELEMENT_F16;
}

/* Number of stored elements per row of A or column of B. Single bits count as
 * words of 32. */
static unsigned length_of(const kiln__cpu_matrix *x, kiln__cpu_fragment f)
{
  const unsigned k = 4u * x->k4;

  if (x->type[f] == KILN__ELEMENT_B1)
    return k / 32;
  return x->sparse && f == KILN__FRAGMENT_A ? k / 2 : k;
}

unsigned kiln__tensor_per_register(const kiln__cpu_matrix *x,
                                   kiln__cpu_fragment f)
{
  const unsigned bits = kiln__cpu_element_bits((kiln__cpu_element)x->type[f]);

  return bits == 1 || bits >= 32 ? 1 : 32 / bits;
}

unsigned kiln__tensor_distinct(const kiln__cpu_matrix *x, kiln__cpu_fragment f)
{
  const unsigned n = kiln__cpu_fragment_registers(x, f);
  const unsigned side = f == KILN__FRAGMENT_A ? x->m : x->n;

  /* 16 bits per element, 32 lanes, two elements per register */
  if (x->wmma && f <= KILN__FRAGMENT_B && x->type[f] == KILN__ELEMENT_F16)
    return side * 4u * x->k4 / 64;
  return n;
}

static kiln__tensor_place place_in_quad(const kiln__cpu_matrix *x,
                                        kiln__cpu_fragment f, unsigned lane,
                                        unsigned index)
{
  const unsigned product = lane % 16 / 4, high = lane >= 16 ? 4 : 0;
  const bool column = (x->column >> (f == KILN__FRAGMENT_B) & 1) != 0;
  unsigned side = lane % 4 + high, k = index;

  if (f == KILN__FRAGMENT_C || f == KILN__FRAGMENT_D) {
    unsigned row = lane % 4 + high, col = index;

    if (x->type[f] == KILN__ELEMENT_F32) {
      row = (lane & 1) + (index & 2) + high;
      col = (index & 4) + (lane & 2) + (index & 1);
    }
    return (kiln__tensor_place){(uint16_t)(8 * product + row), (uint16_t)col};
  }
  /* A of .row and B of .col have one row or column per lane. */
  if (column == (f == KILN__FRAGMENT_A)) {
    side = index % 4 + high;
    k = lane % 4;
  }
  side += 8 * product;
  return f == KILN__FRAGMENT_A
             ? (kiln__tensor_place){(uint16_t)side, (uint16_t)k}
             : (kiln__tensor_place){(uint16_t)k, (uint16_t)side};
}

/* Places an element of a factor: `side` is the row of A or the column of B. */
static void place_factor(const kiln__cpu_matrix *x, kiln__cpu_fragment f,
                         bool tall, unsigned lane, unsigned r, unsigned e,
                         unsigned *side, unsigned *k)
{
  const unsigned per = kiln__tensor_per_register(x, f);
  const unsigned blocks = length_of(x, f) / (4 * per);
  const unsigned halves = tall && x->m > 8 ? 2 : tall && x->n > 8 ? 2 : 1;
  const unsigned half = r % halves, block = r / halves % blocks;

  *side = lane / 4 + 8 * half + 8 * halves * (r / (halves * blocks));
  *k = (block * 4 + lane % 4) * per + e;
}

kiln__tensor_place kiln__tensor_place_of(const kiln__cpu_matrix *x,
                                         kiln__cpu_fragment f, unsigned lane,
                                         unsigned r, unsigned e)
{
  const bool exchanged = x->m == 8 && x->n == 32;
  const unsigned index = r * kiln__tensor_per_register(x, f) + e;
  unsigned tall, narrow, side, k;

  if (is_quad(x))
    return place_in_quad(x, f, lane, index);
  if (f <= KILN__FRAGMENT_B) {
    place_factor(x, f, (f == KILN__FRAGMENT_A) != exchanged, lane, r, e, &side,
                 &k);
    return f == KILN__FRAGMENT_A
               ? (kiln__tensor_place){(uint16_t)side, (uint16_t)k}
               : (kiln__tensor_place){(uint16_t)k, (uint16_t)side};
  }
  tall = lane / 4 + 8 * (index / 2 % 2);
  narrow = 2 * (lane % 4) + index % 2;
  if (x->m == 16)
    narrow += 8 * (index / 4);
  else
    tall += 16 * (index / 4);
  return exchanged ? (kiln__tensor_place){(uint16_t)narrow, (uint16_t)tall}
                   : (kiln__tensor_place){(uint16_t)tall, (uint16_t)narrow};
}

/* ---- Gathering ----------------------------------------------------------- */

/* A product in the layout of kiln__tensor_tile. */
typedef struct product {
  uint32_t a[16 * 64], b[8 * 128], c[32 * 8], d[32 * 8];
  uint8_t select[16 * 64];
} product;

/* The order in which fp8 factors are multiplied. sm_90 has no fp8 mma: ptxas
 * emits two products of f16, one with the even pairs of elements, and one with
 * the odd pairs. */
static unsigned position(unsigned k, unsigned length, bool paired)
{
  return paired ? k / 4 * 2 + k % 2 + (k & 2) / 2 * (length / 2) : k;
}

static void gather(const kiln__cpu_matrix *x, kiln__cpu_fragment f,
                   const uint32_t *const *in, bool paired, uint32_t *to)
{
  const unsigned per = kiln__tensor_per_register(x, f);
  const unsigned distinct = kiln__tensor_distinct(x, f);
  const unsigned bits = per == 1 ? 0 : 32 / per;
  const unsigned length = f <= KILN__FRAGMENT_B ? length_of(x, f) : x->n;

  for (unsigned r = 0; r < distinct; r++)
    for (unsigned lane = 0; lane < KILN__WARP; lane++)
      for (unsigned e = 0; e < per; e++) {
        const kiln__tensor_place p = kiln__tensor_place_of(x, f, lane, r, e);
        const uint32_t value = in[r][lane] >> (e * bits);

        if (f == KILN__FRAGMENT_A)
          to[p.row * length + position(p.column, length, paired)] = value;
        else if (f == KILN__FRAGMENT_B)
          to[p.column * length + position(p.row, length, paired)] = value;
        else
          to[p.row * length + p.column] = value;
      }
}

static void scatter(const kiln__cpu_matrix *x, const uint32_t *d,
                    uint32_t out[][KILN__WARP])
{
  const unsigned per = kiln__tensor_per_register(x, KILN__FRAGMENT_D);
  const unsigned n = kiln__cpu_fragment_registers(x, KILN__FRAGMENT_D);

  for (unsigned r = 0; r < n; r++)
    for (unsigned lane = 0; lane < KILN__WARP; lane++) {
      out[r][lane] = 0;
      for (unsigned e = 0; e < per; e++) {
        const kiln__tensor_place p =
            kiln__tensor_place_of(x, KILN__FRAGMENT_D, lane, r, e);

        out[r][lane] |= d[p.row * x->n + p.column] << (16 * e);
      }
    }
}

/* ---- Metadata of a sparse A ---------------------------------------------- */

/* Returns the 4 bits of metadata for one group of stored elements of a row. */
static unsigned metadata_of(const kiln__cpu_matrix *x, const uint32_t *words,
                            unsigned row, unsigned group, unsigned groups)
{
  const unsigned quad = 4 * (row % 8), high = row / 8;
  unsigned lane, shift;

  if (groups == 4) { /* one word per quad: both rows, 16 bits each */
    lane = x->selector;
    shift = 16 * high + 4 * group;
  } else if (groups == 8 &&
             kiln__tensor_per_register(x, KILN__FRAGMENT_A) <= 2) {
    /* two words: both rows, half of the columns each */
    lane = 2u * x->selector + group / 4;
    shift = 16 * high + 4 * (group % 4);
  } else { /* a word per row and 8 groups */
    lane = 2u * x->selector + high + 2 * (group / 8);
    shift = 4 * (group % 8);
  }
  return words[quad + lane] >> shift & 15;
}

static void select_columns(const kiln__cpu_matrix *x, const uint32_t *words,
                           bool paired, uint8_t *select)
{
  const unsigned length = length_of(x, KILN__FRAGMENT_A);
  const kiln__cpu_element type = (kiln__cpu_element)x->type[0];
  /* stored elements per group of metadata, and neighbours per index */
  const bool pairs = kiln__cpu_element_bits(type) == 4;
  const unsigned stored = type == KILN__ELEMENT_TF32 ? 1 : pairs ? 4 : 2;

  for (unsigned row = 0; row < x->m; row++)
    for (unsigned l = 0; l < length; l++) {
      const unsigned group = l / stored, in_group = l % stored;
      const unsigned bits = metadata_of(x, words, row, group, length / stored);
      unsigned column;

      if (type == KILN__ELEMENT_TF32)
        column = 2 * group + (bits >> 1 & 1);
      else if (pairs)
        column =
            8 * group + 2 * (bits >> (in_group / 2 * 2) & 3) + in_group % 2;
      else
        column = 4 * group + (bits >> (2 * in_group) & 3);
      select[row * length + position(l, length, paired)] =
          (uint8_t)position(column, 2 * length, false);
    }
}

/* ---- Products ------------------------------------------------------------ */

static bool is_fp8(unsigned type)
{
  return type == KILN__ELEMENT_E4M3 || type == KILN__ELEMENT_E5M2;
}

/* Splits the factors of wmma.m16n16k8 in tf32 in two products of k = 4. */
static unsigned products_of(const kiln__cpu_matrix *x)
{
  return x->wmma && x->type[0] == KILN__ELEMENT_TF32 ? 2 : 1;
}

static void multiply(const kiln__cpu_matrix *x,
                     const kiln__tensor_modifiers *modifiers, product *p,
                     bool sparse)
{
  const unsigned quads = is_quad(x) ? 4 : 1;
  const unsigned length = length_of(x, KILN__FRAGMENT_A);
  kiln__tensor_rule rule;

  kiln__tensor_rule_init(&rule, kiln__tensor_generation_of(modifiers->arch),
                         (kiln__tensor_type)x->type[KILN__FRAGMENT_A],
                         (kiln__tensor_type)x->type[KILN__FRAGMENT_B],
                         (kiln__tensor_type)x->type[KILN__FRAGMENT_C],
                         (kiln__tensor_type)x->type[KILN__FRAGMENT_D],
                         length / products_of(x));
  rule.saturate = modifiers->saturate;
  rule.conjunction = modifiers->conjunction;
  for (unsigned q = 0; q < quads; q++) {
    const kiln__tensor_tile tile = {
        .m = x->m,
        .n = x->n,
        .k = length,
        .a = p->a + q * x->m * length,
        .b = p->b + q * x->n * length,
        .k_b = length_of(x, KILN__FRAGMENT_B),
        .select = sparse ? p->select : NULL,
        .c = p->c + q * x->m * x->n,
        .d = p->d + q * x->m * x->n,
    };

    kiln__tensor_multiply(&rule, &tile);
  }
}

void kiln__tensor_mma(const kiln__cpu_matrix *x,
                      const kiln__tensor_modifiers *modifiers,
                      const uint32_t *const *in, const uint32_t *metadata,
                      uint32_t out[][KILN__WARP])
{
  const kiln__tensor_generation generation =
      kiln__tensor_generation_of(modifiers->arch);
  const bool paired = is_fp8(x->type[0]) && generation == KILN__TENSOR_HOPPER;
  product p;

  gather(x, KILN__FRAGMENT_A, in, paired, p.a);
  in += kiln__cpu_fragment_registers(x, KILN__FRAGMENT_A);
  gather(x, KILN__FRAGMENT_B, in, paired && metadata == NULL, p.b);
  in += kiln__cpu_fragment_registers(x, KILN__FRAGMENT_B);
  gather(x, KILN__FRAGMENT_C, in, false, p.c);
  if (metadata != NULL)
    select_columns(x, metadata, paired, p.select);
  multiply(x, modifiers, &p, metadata != NULL);
  scatter(x, p.d, out);
}

void kiln__tensor_mma_f64(const kiln__cpu_matrix *x, int mode,
                          const uint64_t *const *in, uint64_t out[][KILN__WARP])
{
  const unsigned k = 4u * x->k4;
  uint64_t a[16 * 16], b[8 * 16], c[16 * 8];

  for (kiln__cpu_fragment f = KILN__FRAGMENT_A; f <= KILN__FRAGMENT_C; f++) {
    const unsigned n = kiln__cpu_fragment_registers(x, f);

    for (unsigned i = 0; i < n * KILN__WARP; i++) {
      const unsigned lane = i % KILN__WARP, r = i / KILN__WARP;
      const kiln__tensor_place p = kiln__tensor_place_of(x, f, lane, r, 0);

      if (f == KILN__FRAGMENT_A)
        a[p.row * k + p.column] = in[r][lane];
      else if (f == KILN__FRAGMENT_B)
        b[p.column * k + p.row] = in[r][lane];
      else
        c[p.row * x->n + p.column] = in[r][lane];
    }
    in += n;
  }
  kiln__tensor_multiply_f64(mode, x->m, x->n, k, a, b, c, c);
  for (unsigned r = 0; r < kiln__cpu_fragment_registers(x, KILN__FRAGMENT_D);
       r++)
    for (unsigned lane = 0; lane < KILN__WARP; lane++) {
      const kiln__tensor_place p =
          kiln__tensor_place_of(x, KILN__FRAGMENT_D, lane, r, 0);

      out[r][lane] = c[p.row * x->n + p.column];
    }
}
