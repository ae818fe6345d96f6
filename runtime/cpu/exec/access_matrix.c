/* access_matrix.c -- ldmatrix, stmatrix and movmatrix: matrices of 8 x 8
 * elements of 16 bits, distributed over the lanes of a warp.
 *
 * Lane l holds two elements of each matrix: row l / 4, columns 2 (l % 4) and 2
 * (l % 4) + 1. The element of the lower column is in the low half of the
 * register. In a transposed matrix, rows and columns are exchanged. Lanes 8 m
 * to 8 m + 7 provide the addresses of the rows of matrix m. */
#include "access.h"

enum { SIDE = 8, ROW_BYTES = 2 * SIDE };

/* Finds the host addresses of the matrix rows. The lanes provide the addresses
 * of the rows. */
static bool reach_rows(kiln__cpu_warp *w, const kiln__cpu_insn *in, unsigned n,
                       kiln__cpu_access access, kiln__cpu_reach *r)
{
  const uint32_t mask = w->mask;
  bool ok;

  /* For n matrices, the addresses in lanes 8 n and above are ignored. */
  w->mask = n == 4 ? mask : mask & ((UINT32_C(1) << (SIDE * n)) - 1);
  ok = w->mask == 0 ||
       kiln__cpu_reach_a(w, in, (kiln__cpu_space)in->space, ROW_BYTES, access,
                         KILN__COUNT_MEMORY, r);
  w->mask = mask;
  return ok;
}

/* Computes the row and column of one matrix element. `half` is 0 for the
 * element in the low half of the lane's register, and 1 for the high half. */
static void place(unsigned lane, unsigned half, bool transposed, unsigned *row,
                  unsigned *column)
{
  const unsigned major = lane / 4, minor = 2 * (lane % 4) + half;

  *row = transposed ? minor : major;
  *column = transposed ? major : minor;
}

KILN__HANDLER(ldmatrix)
{
  const unsigned n = in->n_vec > 1 ? in->n_vec : 1;
  kiln__cpu_reach r;

  if (!reach_rows(w, in, n, KILN__ACCESS_READ, &r))
    return;
  for (unsigned m = 0; m < n; m++) {
    const int32_t slot = in->n_vec > 0 ? in->vec[m] : in->d;

    for (unsigned i = 0; i < KILN__WARP && slot >= 0; i++) {
      uint16_t half[2] = {0, 0};

      for (unsigned h = 0; h < 2; h++) {
        unsigned row, column;

        place(i, h, in->sub != 0, &row, &column);
        if ((w->mask >> (m * SIDE + row) & 1) != 0)
          memcpy(&half[h], /* NOLINTNEXTLINE: reach_rows() sets r.host */
                 (const void *)(r.host[m * SIDE + row] + 2 * column), 2);
      }
      if ((w->mask >> i & 1) != 0)
        KILN__SLOT(uint32_t, slot)[i] = half[0] | (uint32_t)half[1] << 16;
    }
  }
}

KILN__HANDLER(stmatrix)
{
  const unsigned n = in->n_vec > 1 ? in->n_vec : 1;
  kiln__cpu_reach r;

  if (!reach_rows(w, in, n, KILN__ACCESS_WRITE, &r))
    return;
  for (unsigned m = 0; m < n; m++) {
    const int32_t slot = in->n_vec > 0 ? in->vec[m] : in->b;

    for (uint32_t left = w->mask; left != 0; left &= left - 1) {
      const unsigned i = (unsigned)__builtin_ctz(left);
      const uint32_t both = KILN__SLOT(const uint32_t, slot)[i];

      for (unsigned h = 0; h < 2; h++) {
        const uint16_t half = (uint16_t)(both >> (16 * h));
        unsigned row, column;

        place(i, h, in->sub != 0, &row, &column);
        if ((w->mask >> (m * SIDE + row) & 1) != 0)
          memcpy((void *)(r.host[m * SIDE + row] + 2 * column), &half, 2);
      }
    }
  }
}

KILN__HANDLER(movmatrix)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
  uint16_t matrix[SIDE][SIDE];

  for (unsigned i = 0; i < KILN__WARP; i++) {
    matrix[i / 4][2 * (i % 4)] = (uint16_t)A[i];
    matrix[i / 4][2 * (i % 4) + 1] = (uint16_t)(A[i] >> 16);
  }
  KILN__ACTIVE_LANES(uint32_t,
                     matrix[2 * (i % 4)][i / 4] |
                         (uint32_t)matrix[2 * (i % 4) + 1][i / 4] << 16);
}
