/* compare.c -- setp and set.
 *
 * The comparisons that compilers frequently emit have their own handlers. All
 * other comparisons use two general routines. The first routine computes 0 or
 * ~0 for each lane. The second routine combines these values with a predicate
 * and stores the result. */
#include "float.h"

typedef uint32_t truth[KILN__WARP];

/* ---- General comparison -------------------------------------------------- */

#define FILL(expression)                                                       \
  KILN__VECTOR_LOOP                                                            \
  for (int i = 0; i < KILN__WARP; i++)                                         \
    t[i] = (expression) ? UINT32_MAX : 0;                                      \
  break

#define COMPARE_INTEGERS(name, T)                                              \
  static void name(uint8_t cmp, const T *A, const T *B, truth t)               \
  {                                                                            \
    switch (cmp) {                                                             \
    case KILN__CMP_EQ:                                                         \
      FILL(A[i] == B[i]);                                                      \
    case KILN__CMP_NE:                                                         \
      FILL(A[i] != B[i]);                                                      \
    case KILN__CMP_LT:                                                         \
    case KILN__CMP_LO:                                                         \
      FILL(A[i] < B[i]);                                                       \
    case KILN__CMP_LE:                                                         \
    case KILN__CMP_LS:                                                         \
      FILL(A[i] <= B[i]);                                                      \
    case KILN__CMP_GT:                                                         \
    case KILN__CMP_HI:                                                         \
      FILL(A[i] > B[i]);                                                       \
    default:                                                                   \
      FILL(A[i] >= B[i]);                                                      \
    }                                                                          \
  }

/* Defines comparisons of floats. Ordered comparisons with a NaN are false. The
 * unordered comparisons (suffix u) are the negations of ordered comparisons. */
#define COMPARE_FLOATS(name, T)                                                \
  static void name(uint8_t cmp, const T *A, const T *B, truth t)               \
  {                                                                            \
    switch (cmp) {                                                             \
    case KILN__CMP_EQ:                                                         \
      FILL(A[i] == B[i]);                                                      \
    case KILN__CMP_NE:                                                         \
      FILL((A[i] < B[i]) | (A[i] > B[i]));                                     \
    case KILN__CMP_LT:                                                         \
      FILL(A[i] < B[i]);                                                       \
    case KILN__CMP_LE:                                                         \
      FILL(A[i] <= B[i]);                                                      \
    case KILN__CMP_GT:                                                         \
      FILL(A[i] > B[i]);                                                       \
    case KILN__CMP_GE:                                                         \
      FILL(A[i] >= B[i]);                                                      \
    case KILN__CMP_EQU:                                                        \
      FILL(!((A[i] < B[i]) | (A[i] > B[i])));                                  \
    case KILN__CMP_NEU:                                                        \
      FILL(!(A[i] == B[i]));                                                   \
    case KILN__CMP_LTU:                                                        \
      FILL(!(A[i] >= B[i]));                                                   \
    case KILN__CMP_LEU:                                                        \
      FILL(!(A[i] > B[i]));                                                    \
    case KILN__CMP_GTU:                                                        \
      FILL(!(A[i] <= B[i]));                                                   \
    case KILN__CMP_GEU:                                                        \
      FILL(!(A[i] < B[i]));                                                    \
    case KILN__CMP_NUM:                                                        \
      FILL((A[i] == A[i]) & (B[i] == B[i]));                                   \
    default:                                                                   \
      FILL((A[i] != A[i]) | (B[i] != B[i]));                                   \
    }                                                                          \
  }

COMPARE_INTEGERS(compare_u32, uint32_t)
COMPARE_INTEGERS(compare_s32, int32_t)
COMPARE_INTEGERS(compare_u64, uint64_t)
COMPARE_INTEGERS(compare_s64, int64_t)
COMPARE_FLOATS(compare_floats, float)
COMPARE_FLOATS(compare_doubles, double)

static void compare_s16(uint8_t cmp, const uint32_t *A, const uint32_t *B,
                        truth t)
{
  int32_t a[KILN__WARP], b[KILN__WARP];

  for (int i = 0; i < KILN__WARP; i++) {
    a[i] = (int16_t)A[i];
    b[i] = (int16_t)B[i];
  }
  compare_s32(cmp, a, b, t);
}

static void compare_f32(const kiln__cpu_insn *in, const uint32_t *A,
                        const uint32_t *B, truth t)
{
  const uint32_t ftz = kiln__cpu_flag_mask(in, KILN__FTZ);
  float a[KILN__WARP], b[KILN__WARP];

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++) {
    a[i] = kiln__cpu_float_of_bits(kiln__cpu_flush_if(A[i], ftz));
    b[i] = kiln__cpu_float_of_bits(kiln__cpu_flush_if(B[i], ftz));
  }
  compare_floats(in->cmp, a, b, t);
}

/* Compares f16 values, which start at bit `shift` of each lane's register
 * element. */
static void compare_f16(const kiln__cpu_insn *in, unsigned shift,
                        const uint32_t *A, const uint32_t *B, truth t)
{
  /* The exponent field of a subnormal is zero. */
  const uint32_t exponent = (in->flags & KILN__FTZ) != 0 ? 0x7c00 : 0;
  float a[KILN__WARP], b[KILN__WARP];

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t x = A[i] >> shift & 0xffff, y = B[i] >> shift & 0xffff;
    const bool tiny_x = exponent != 0 && (x & exponent) == 0;
    const bool tiny_y = exponent != 0 && (y & exponent) == 0;

    a[i] = kiln__cpu_float_of_f16(tiny_x ? 0 : x);
    b[i] = kiln__cpu_float_of_f16(tiny_y ? 0 : y);
  }
  compare_floats(in->cmp, a, b, t);
}

static void compare_bf16(const kiln__cpu_insn *in, unsigned shift,
                         const uint32_t *A, const uint32_t *B, truth t)
{
  float a[KILN__WARP], b[KILN__WARP];

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++) {
    a[i] = kiln__cpu_float_of_bf16(A[i] >> shift & 0xffff);
    b[i] = kiln__cpu_float_of_bf16(B[i] >> shift & 0xffff);
  }
  compare_floats(in->cmp, a, b, t);
}

/* Compares operand a with operand b in all lanes. For a packed type, `half`
 * selects the element of the pair. */
static void compare(kiln__cpu_warp *w, const kiln__cpu_insn *in, unsigned half,
                    truth t)
{
  KILN__SOURCES_2(uint32_t);

  switch (in->type) {
  case KILN__S16:
    compare_s16(in->cmp, A, B, t);
    break;
  case KILN__S32:
    compare_s32(in->cmp, KILN__SLOT(const int32_t, in->a),
                KILN__SLOT(const int32_t, in->b), t);
    break;
  case KILN__B64:
  case KILN__U64:
    compare_u64(in->cmp, KILN__SLOT(const uint64_t, in->a),
                KILN__SLOT(const uint64_t, in->b), t);
    break;
  case KILN__S64:
    compare_s64(in->cmp, KILN__SLOT(const int64_t, in->a),
                KILN__SLOT(const int64_t, in->b), t);
    break;
  case KILN__F32:
    compare_f32(in, A, B, t);
    break;
  case KILN__F64:
    compare_doubles(in->cmp, KILN__SLOT(const double, in->a),
                    KILN__SLOT(const double, in->b), t);
    break;
  case KILN__F16:
  case KILN__F16X2:
    compare_f16(in, half * 16, A, B, t);
    break;
  case KILN__BF16:
  case KILN__BF16X2:
    compare_bf16(in, half * 16, A, B, t);
    break;
  default:
    compare_u32(in->cmp, A, B, t);
    break;
  }
}

/* Combines the results t with the predicate operand c by the instruction's
 * Boolean operation. The operand may be negated. */
static void combine(kiln__cpu_warp *w, const kiln__cpu_insn *in, truth t)
{
  const uint32_t flip = (in->flags & KILN__NEGATE_B) != 0 ? UINT32_MAX : 0;
  const uint32_t *C;

  if (in->boolop == KILN__BOOL_NONE || in->c < 0)
    return;
  C = KILN__SLOT(const uint32_t, in->c);
  for (int i = 0; i < KILN__WARP; i++) {
    const uint32_t c = C[i] ^ flip;

    t[i] = in->boolop == KILN__BOOL_AND  ? t[i] & c
           : in->boolop == KILN__BOOL_OR ? t[i] | c
                                         : t[i] ^ c;
  }
}

static void store(kiln__cpu_warp *w, int32_t slot, const truth t)
{
  uint32_t *D;

  if (slot < 0)
    return;
  D = KILN__SLOT(uint32_t, slot);
  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    D[i] = (t[i] & w->lane[i]) | (D[i] & ~w->lane[i]); /* NOLINT: filled */
}

/* ---- setp ---------------------------------------------------------------- */

KILN__HANDLER(setp)
{
  truth t, other;

  compare(w, in, 0, t);
  if (in->d2 >= 0) {
    for (int i = 0; i < KILN__WARP; i++)
      other[i] = ~t[i];
    combine(w, in, other);
  }
  combine(w, in, t);
  store(w, in->d, t);
  if (in->d2 >= 0)
    store(w, in->d2, other);
}

/* Implements setp for packed types. d receives the result of the low halves,
 * and d2 the result of the high halves. */
KILN__HANDLER(setp_packed)
{
  truth low, high;

  compare(w, in, 0, low);
  compare(w, in, 1, high);
  combine(w, in, low);
  combine(w, in, high);
  store(w, in->d, low);
  store(w, in->d2, high);
}

/* ONE_RESULT() is true if the setp instruction has exactly one result, as
 * nearly every setp has. */
#define ONE_RESULT(in) (((in)->d | ~(in)->d2) >= 0)

#define SETP(name, T, expression)                                              \
  KILN__HANDLER(setp_##name)                                                   \
  {                                                                            \
    if (__builtin_expect(ONE_RESULT(in), 1)) {                                 \
      KILN__SOURCES_2(T);                                                      \
      KILN__LANES(uint32_t, (expression) ? UINT32_MAX : 0);                    \
    } else {                                                                   \
      KILN__ISA_NAME(op_setp)(w, in);                                          \
    }                                                                          \
  }

#define SETP_ORDER(suffix, T)                                                  \
  SETP(lt_##suffix, T, A[i] < B[i])                                            \
  SETP(le_##suffix, T, A[i] <= B[i])                                           \
  SETP(gt_##suffix, T, A[i] > B[i])                                            \
  SETP(ge_##suffix, T, A[i] >= B[i])

#define SETP_FLOAT(suffix, T)                                                  \
  SETP_ORDER(suffix, T)                                                        \
  SETP(eq_##suffix, T, A[i] == B[i])                                           \
  SETP(ne_##suffix, T, (A[i] < B[i]) | (A[i] > B[i]))                          \
  SETP(equ_##suffix, T, !((A[i] < B[i]) | (A[i] > B[i])))                      \
  SETP(neu_##suffix, T, !(A[i] == B[i]))                                       \
  SETP(ltu_##suffix, T, !(A[i] >= B[i]))                                       \
  SETP(leu_##suffix, T, !(A[i] > B[i]))                                        \
  SETP(gtu_##suffix, T, !(A[i] <= B[i]))                                       \
  SETP(geu_##suffix, T, !(A[i] < B[i]))

SETP(eq_32, uint32_t, A[i] == B[i])
SETP(ne_32, uint32_t, A[i] != B[i])
SETP(eq_64, uint64_t, A[i] == B[i])
SETP(ne_64, uint64_t, A[i] != B[i])
SETP_ORDER(s32, int32_t)
SETP_ORDER(u32, uint32_t)
SETP_ORDER(s64, int64_t)
SETP_ORDER(u64, uint64_t)
SETP_FLOAT(f32, float)
SETP_FLOAT(f64, double)

/* ---- set ----------------------------------------------------------------- */

/* Returns the value that represents "true" in a result of this type. */
static uint32_t true_of(uint8_t type)
{
  switch (type) {
  case KILN__F32:
    return 0x3f800000;
  case KILN__F16:
  case KILN__F16X2:
    return 0x3c00;
  case KILN__BF16:
  case KILN__BF16X2:
    return 0x3f80;
  case KILN__U16:
  case KILN__S16:
    return 0xffff;
  default:
    return UINT32_MAX;
  }
}

KILN__HANDLER(set)
{
  const uint32_t yes = true_of(in->type2);
  truth t;

  compare(w, in, 0, t);
  combine(w, in, t);
  KILN__LANES(uint32_t, t[i] & yes);
}

KILN__HANDLER(set_packed)
{
  const uint32_t yes = true_of(in->type2) & 0xffff;
  truth low, high;

  compare(w, in, 0, low);
  compare(w, in, 1, high);
  combine(w, in, low);
  combine(w, in, high);
  KILN__LANES(uint32_t, (low[i] & yes) | (high[i] & yes << 16));
}
