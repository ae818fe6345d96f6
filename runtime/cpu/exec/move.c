/* move.c -- mov, packing and unpacking of registers, clocks, generic addresses,
 * and selection. */
#include "lanes.h"

#include "../../base/os.h"

KILN__OP1(mov_b32, uint32_t, uint32_t, A[i])
KILN__OP1(mov_b64, uint64_t, uint64_t, A[i])
KILN__OP1(cvta_same, uint64_t, uint64_t, A[i])

KILN__HANDLER(mov_pred)
{
  const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);
  const uint32_t flip = (in->flags & KILN__NEGATE_B) != 0 ? UINT32_MAX : 0;

  KILN__LANES(uint32_t, A[i] ^ flip);
}

/* ---- Pack and unpack ----------------------------------------------------- */

KILN__HANDLER(mov_pack)
{
  const unsigned bits = in->bytes * 8u;
  const uint32_t mask = bits < 32 ? (1u << bits) - 1 : UINT32_MAX;
  uint64_t whole[KILN__WARP] = {0};

  for (unsigned k = 0; k < in->n_vec; k++) {
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->vec[k]);
    const unsigned shift = k * bits;

    KILN__VECTOR_LOOP
    for (int i = 0; i < KILN__WARP; i++)
      whole[i] |= (uint64_t)(A[i] & mask) << shift;
  }
  if (in->bytes * in->n_vec == 8)
    KILN__LANES(uint64_t, whole[i]);
  else
    KILN__LANES(uint32_t, whole[i]);
}

KILN__HANDLER(mov_unpack)
{
  const unsigned bits = in->bytes * 8u;
  const uint32_t mask = bits < 32 ? (1u << bits) - 1 : UINT32_MAX;
  uint64_t whole[KILN__WARP];

  /* The source is read completely before the first write, because an element
   * may be in the source register. */
  if (in->bytes * in->n_vec == 8) {
    memcpy(whole, KILN__SLOT(const uint64_t, in->a), sizeof whole);
  } else {
    const uint32_t *const A = KILN__SLOT(const uint32_t, in->a);

    for (int i = 0; i < KILN__WARP; i++)
      whole[i] = A[i];
  }
  for (unsigned k = 0; k < in->n_vec; k++) {
    const unsigned shift = k * bits;
    uint32_t *D;

    if (in->vec[k] < 0)
      continue;
    D = KILN__SLOT(uint32_t, in->vec[k]);
    KILN__VECTOR_LOOP
    for (int i = 0; i < KILN__WARP; i++) {
      const uint32_t part = (uint32_t)(whole[i] >> shift) & mask;

      D[i] = w->lane[i] != 0 ? part : D[i];
    }
  }
}

/* ---- Special values ------------------------------------------------------ */

static void set_all(kiln__cpu_warp *w, const kiln__cpu_insn *in, uint64_t value)
{
  if (kiln__cpu_ptx_type_bytes[in->type] == 8)
    KILN__LANES(uint64_t, value);
  else
    KILN__LANES(uint32_t, value);
}

KILN__HANDLER(mov_local)
{
  set_all(w, in, w->local_at + (uint64_t)in->imm);
}

/* Reads a clock register. One clock cycle counts as one nanosecond. */
KILN__HANDLER(mov_clock)
{
  const uint64_t now =
      in->sub < 3 ? kiln__clock_ns() : (uint64_t)kiln__time_ns();
  const bool high = in->sub == 1 || in->sub == 5;

  set_all(w, in, high ? now >> 32 : now);
}

/* ---- Generic addresses --------------------------------------------------- */

static uint64_t window(const kiln__cpu_insn *in)
{
  switch (in->space) {
  case KILN__SPACE_LOCAL:
    return KILN__WINDOW_LOCAL;
  case KILN__SPACE_PARAM:
    return KILN__WINDOW_PARAM;
  default:
    return KILN__WINDOW_SHARED;
  }
}

KILN__LANE_OP(cvta, 1, uint64_t, uint64_t, const uint64_t base = window(in),
              A[i] + base)
KILN__LANE_OP(cvta_to, 1, uint64_t, uint64_t, const uint64_t base = window(in),
              A[i] - base)

/* ---- Selection ----------------------------------------------------------- */

#define SELECT(name, T)                                                        \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    const bool swap = (in->flags & KILN__NEGATE_B) != 0;                       \
    const T *const A = KILN__SLOT(const T, swap ? in->b : in->a);              \
    const T *const B = KILN__SLOT(const T, swap ? in->a : in->b);              \
    const uint32_t *const C = KILN__SLOT(const uint32_t, in->c);               \
    KILN__LANES(T, C[i] != 0 ? A[i] : B[i]);                                   \
  }

SELECT(selp_b32, uint32_t)
SELECT(selp_b64, uint64_t)

/* Selects operand a in lanes where `chosen` is ~0, and operand b in all other
 * lanes. */
static void choose(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                   const uint32_t chosen[KILN__WARP])
{
  if (kiln__cpu_ptx_type_bytes[in->type2] == 8) {
    KILN__SOURCES_2(uint64_t);

    KILN__LANES(uint64_t, chosen[i] != 0 ? A[i] : B[i]);
  } else {
    KILN__SOURCES_2(uint32_t);

    KILN__LANES(uint32_t, chosen[i] != 0 ? A[i] : B[i]);
  }
}

KILN__HANDLER(slct_s32)
{
  const int32_t *const C = KILN__SLOT(const int32_t, in->c);
  uint32_t chosen[KILN__WARP];

  for (int i = 0; i < KILN__WARP; i++)
    chosen[i] = C[i] >= 0 ? UINT32_MAX : 0;
  choose(w, in, chosen);
}

KILN__HANDLER(slct_f32)
{
  const uint32_t *const C = KILN__SLOT(const uint32_t, in->c);
  /* slct treats -0 as not negative. With .ftz, negative subnormals are not
   * negative either. */
  const uint32_t last = (in->flags & KILN__FTZ) != 0 ? 0x807fffff : 0x80000000;
  uint32_t chosen[KILN__WARP];

  for (int i = 0; i < KILN__WARP; i++) {
    const bool positive = C[i] <= 0x7f800000;
    const bool zero = C[i] >= 0x80000000 && C[i] <= last;

    chosen[i] = positive || zero ? UINT32_MAX : 0;
  }
  choose(w, in, chosen);
}
