/* tensor_matrix.c -- mma and wmma: matrix products in the registers of a warp.
 *
 * These handlers collect the registers of the fragments and store the results.
 * tensor/ distributes the elements and computes the products. */
#include "../tensor/fragment.h"
#include "access.h"

#include <fenv.h>

static kiln__cpu_matrix matrix_of(const kiln__cpu_insn *in)
{
  kiln__cpu_matrix x;

  memcpy(&x, &in->imm2, sizeof x);
  return x;
}

/* Counts the multiply-adds of one product. */
static void count_products(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           const kiln__cpu_matrix *x)
{
  const bool quad = x->m == 8 && x->k4 == 1 && in->op == KILN__OP_mma;
  const uint64_t n = (uint64_t)x->m * x->n * x->k4 * 4;

  if (w->counted)
    kiln__cpu_tally_add(w, in, (quad ? 4 * n : n) / (x->sparse ? 2 : 1));
}

/* Stores the results of the active lanes. */
#define STORE(T, out)                                                          \
  do {                                                                         \
    for (unsigned r = 0; r < in->n_vec; r++) {                                 \
      if (in->vec[r] < 0)                                                      \
        continue;                                                              \
      for (uint32_t left = w->mask; left != 0; left &= left - 1) {             \
        const int i = __builtin_ctz(left);                                     \
                                                                               \
        KILN__SLOT(T, in->vec[r])[i] = (out)[r][i];                            \
      }                                                                        \
    }                                                                          \
  } while (0)

static void multiply(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                     bool conjunction)
{
  const kiln__cpu_matrix x = matrix_of(in);
  const kiln__tensor_modifiers modifiers = {
      .arch = w->grid->arch,
      .saturate = (in->flags & KILN__SATFINITE) != 0,
      .conjunction = conjunction,
  };
  const uint32_t *regs[3 * KILN__FRAGMENT_MAX];
  uint32_t out[KILN__FRAGMENT_MAX][KILN__WARP];

  for (unsigned r = 0; r < in->n_vec2; r++)
    regs[r] = KILN__SLOT(const uint32_t, in->vec2[r]);
  kiln__tensor_mma(&x, &modifiers, regs,
                   x.sparse ? KILN__SLOT(const uint32_t, in->a) : NULL, out);
  STORE(uint32_t, out);
  count_products(w, in, &x);
}

KILN__CALLS(mma, multiply, false)
KILN__CALLS(mma_and, multiply, true)

static int mode_of(const kiln__cpu_insn *in)
{
  switch (in->round) {
  case KILN__ROUND_Z:
    return FE_TOWARDZERO;
  case KILN__ROUND_M:
    return FE_DOWNWARD;
  case KILN__ROUND_P:
    return FE_UPWARD;
  default:
    return FE_TONEAREST;
  }
}

KILN__HANDLER(mma_f64)
{
  const kiln__cpu_matrix x = matrix_of(in);
  const uint64_t *regs[3 * KILN__FRAGMENT_MAX];
  uint64_t out[KILN__FRAGMENT_MAX][KILN__WARP];

  for (unsigned r = 0; r < in->n_vec2; r++)
    regs[r] = KILN__SLOT(const uint64_t, in->vec2[r]);
  kiln__tensor_mma_f64(&x, mode_of(in), regs, out);
  STORE(uint64_t, out);
  count_products(w, in, &x);
}

/* ---- wmma.load and wmma.store -------------------------------------------- */

/* The matrix that wmma.load or wmma.store moves. */
typedef struct moved {
  kiln__cpu_matrix x;
  kiln__cpu_fragment f;
  unsigned bits, per; /* bits per element, elements per register */
  /* The elements of a register are neighbours in memory. */
  bool together;
  kiln__cpu_reach base, reach; /* address of the matrix; of the elements */
  uint64_t stride[KILN__WARP]; /* in elements */
} moved;

static void start(kiln__cpu_warp *w, const kiln__cpu_insn *in, moved *v)
{
  unsigned rows, columns;
  kiln__tensor_place p, q;

  v->x = matrix_of(in);
  v->f = (kiln__cpu_fragment)v->x.used;
  rows = v->f == KILN__FRAGMENT_B ? 4u * v->x.k4 : v->x.m;
  columns = v->f == KILN__FRAGMENT_A ? 4u * v->x.k4 : v->x.n;
  v->bits = kiln__cpu_element_bits((kiln__cpu_element)v->x.type[v->f]);
  v->per = kiln__tensor_per_register(&v->x, v->f);
  p = kiln__tensor_place_of(&v->x, v->f, 0, 0, 0);
  q = kiln__tensor_place_of(&v->x, v->f, 0, 0, v->per - 1);
  v->together = v->x.column & 1 ? p.column == q.column : p.row == q.row;
  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0,
                      (uint64_t)in->imm, v->base.address);
  for (unsigned i = 0; i < KILN__WARP; i++)
    v->stride[i] = in->b < 0 ? (v->x.column & 1 ? rows : columns)
                             : KILN__SLOT(const uint32_t, in->b)[i];
}

/* Finds the bytes of element e of register r of every lane, or of all elements
 * of the register if they are neighbours. */
static bool reach_element(kiln__cpu_warp *w, const kiln__cpu_insn *in, moved *v,
                          unsigned r, unsigned e, kiln__cpu_access access)
{
  const unsigned unit = v->bits == 1 ? 32 : v->bits;

  for (unsigned i = 0; i < KILN__WARP; i++) {
    const kiln__tensor_place p = kiln__tensor_place_of(&v->x, v->f, i, r, e);
    const uint64_t major = v->x.column & 1 ? p.column : p.row;
    const uint64_t minor = v->x.column & 1 ? p.row : p.column;

    v->reach.address[i] = v->base.address[i] +
                          major * v->stride[i] * v->bits / 8 + minor * unit / 8;
    if ((in->flags & KILN__WIDE_A) == 0)
      v->reach.address[i] = (uint32_t)v->reach.address[i];
  }
  return KILN__ISA_NAME(reach_listed)(w, in, (kiln__cpu_space)in->space,
                                      v->together ? (v->bits == 64 ? 8 : 4)
                                                  : v->bits / 8,
                                      access, KILN__COUNT_MEMORY, &v->reach);
}

KILN__HANDLER(wmma_load)
{
  moved v;
  unsigned distinct;

  start(w, in, &v);
  distinct = kiln__tensor_distinct(&v.x, v.f);
  for (unsigned r = 0; r < distinct; r++) {
    uint64_t value[KILN__WARP] = {0};

    for (unsigned e = 0; e < (v.together ? 1 : v.per); e++) {
      if (!reach_element(w, in, &v, r, e, KILN__ACCESS_READ))
        return;
      for (uint32_t left = w->mask; left != 0; left &= left - 1) {
        const int i = __builtin_ctz(left);
        uint64_t part = 0;

        memcpy(&part, /* NOLINTNEXTLINE: reach_element() sets reach.host */
               (const void *)v.reach.host[i],
               v.together ? (v.bits == 64 ? 8 : 4) : v.bits / 8);
        value[i] |= part << (e * v.bits);
      }
    }
    for (unsigned to = r; to < in->n_vec; to += distinct) {
      if (in->vec[to] < 0)
        continue;
      for (uint32_t left = w->mask; left != 0; left &= left - 1) {
        const int i = __builtin_ctz(left);

        if (v.bits == 64)
          KILN__SLOT(uint64_t, in->vec[to])[i] = value[i];
        else
          KILN__SLOT(uint32_t, in->vec[to])[i] = (uint32_t)value[i];
      }
    }
  }
}

KILN__HANDLER(wmma_store)
{
  moved v;

  start(w, in, &v);
  for (unsigned r = 0; r < in->n_vec2; r++)
    for (unsigned e = 0; e < (v.together ? 1 : v.per); e++) {
      if (!reach_element(w, in, &v, r, e, KILN__ACCESS_WRITE))
        return;
      for (uint32_t left = w->mask; left != 0; left &= left - 1) {
        const int i = __builtin_ctz(left);
        uint64_t value = v.bits == 64
                             ? KILN__SLOT(const uint64_t, in->vec2[r])[i]
                             : KILN__SLOT(const uint32_t, in->vec2[r])[i];

        value >>= e * v.bits;
        /* NOLINTNEXTLINE: reach_element() sets reach.host */
        memcpy((void *)v.reach.host[i], &value,
               v.together ? (v.bits == 64 ? 8 : 4) : v.bits / 8);
      }
    }
}
