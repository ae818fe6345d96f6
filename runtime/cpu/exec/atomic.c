/* atomic.c -- the instructions atom and red.
 *
 * Problem: other host threads may run blocks of this or another grid at the
 * same time, so every operation has to be atomic. However, 32 compare-and-swap
 * loops on one counter would make reductions slow.
 *
 * Idea: all active lanes often update the same word, as in counters and
 * reductions. The operations are then applied one after the other in registers,
 * and one compare-and-swap writes the result. Otherwise each lane performs its
 * own atomic operation. Shared memory that no other block can access belongs to
 * one host thread and needs no atomic operations. The usual operations on words
 * of 4 and 8 bytes have loops of their own (ATOMIC_LOOPS). All others share one
 * loop, which selects the operation for each lane.
 *
 * Order: lanes are processed in ascending order, or in an order that depends on
 * the seed of the launch. */
#include "access.h"
#include "float.h"

/* ---- Operations ---------------------------------------------------------- */

static uint32_t add_f32(uint32_t a, uint32_t b, bool flush)
{
  const float sum = kiln__cpu_float_of_bits(flush ? kiln__cpu_flush(a) : a) +
                    kiln__cpu_float_of_bits(flush ? kiln__cpu_flush(b) : b);
  const uint32_t bits = kiln__cpu_bits_of_float(sum);

  return sum != sum ? KILN__NAN_F32 : flush ? kiln__cpu_flush(bits) : bits;
}

static uint64_t add_f64(uint64_t a, uint64_t b)
{
  const double x = kiln__cpu_double_of_bits(a), y = kiln__cpu_double_of_bits(b);
  const double sum = x + y;

  return sum != sum ? KILN__NAN_F64 : kiln__cpu_bits_of_double(sum);
}

/* Computes the sum of two f16 values in float. A float has enough bits that
 * rounding twice equals rounding once. */
static uint32_t add_f16(uint32_t a, uint32_t b)
{
  return kiln__cpu_f16_of_float(kiln__cpu_float_of_f16(a & 0xffff) +
                                kiln__cpu_float_of_f16(b & 0xffff));
}

static uint32_t add_bf16(uint32_t a, uint32_t b)
{
  return kiln__cpu_bf16_of_float(kiln__cpu_float_of_bf16(a & 0xffff) +
                                 kiln__cpu_float_of_bf16(b & 0xffff));
}

static uint64_t add(const kiln__cpu_insn *in, uint64_t a, uint64_t b,
                    bool flush)
{
  const uint32_t x = (uint32_t)a, y = (uint32_t)b;

  switch ((kiln__cpu_ptx_type)in->type) {
  case KILN__F32:
    return add_f32(x, y, flush);
  case KILN__F64:
    return add_f64(a, b);
  case KILN__F16:
    return add_f16(x, y);
  case KILN__BF16:
    return add_bf16(x, y);
  case KILN__F16X2:
    return add_f16(x, y) | add_f16(x >> 16, y >> 16) << 16;
  case KILN__BF16X2:
    return add_bf16(x, y) | add_bf16(x >> 16, y >> 16) << 16;
  default:
    return a + b;
  }
}

static bool less(const kiln__cpu_insn *in, uint64_t a, uint64_t b)
{
  switch ((kiln__cpu_ptx_type)in->type) {
  case KILN__S32:
    return (int32_t)(uint32_t)a < (int32_t)(uint32_t)b;
  case KILN__S64:
    return (int64_t)a < (int64_t)b;
  default:
    return a < b;
  }
}

/* Values of in->sub, which selects the atomic operation; see modifiers.def. */
enum { MIN = 1, MAX, ADD, INC, DEC, EXCH, CAS };

/* Returns the new value of a word whose old value is `old`. Only cas uses c. */
static uint64_t apply(const kiln__cpu_insn *in, uint64_t old, uint64_t b,
                      uint64_t c, bool flush)
{
  switch (in->boolop) {
  case KILN__BOOL_AND:
    return old & b;
  case KILN__BOOL_OR:
    return old | b;
  case KILN__BOOL_XOR:
    return old ^ b;
  default:
    break;
  }
  switch (in->sub) {
  case MIN:
    return less(in, b, old) ? b : old;
  case MAX:
    return less(in, old, b) ? b : old;
  case ADD:
    return add(in, old, b, flush);
  case INC:
    return old >= b ? 0 : old + 1;
  case DEC:
    return old == 0 || old > b ? b : old - 1;
  case EXCH:
    return b;
  default:
    return old == b ? c : old;
  }
}

/* ---- Atomic access to memory words --------------------------------------- */

static uint64_t word(uintptr_t at, unsigned bytes)
{
  return kiln__cpu_atomic_load(at, bytes, __ATOMIC_ACQUIRE);
}

/* Compares and swaps the word at address `at`. Returns false if the word was
 * not equal to *old, and stores the value of the word in *old. */
static bool swap(uintptr_t at, unsigned bytes, uint64_t *old, uint64_t new)
{
  uint16_t two = (uint16_t)*old;
  uint32_t four = (uint32_t)*old;
  bool done;

  switch (bytes) {
  case 2:
    done =
        __atomic_compare_exchange_n((uint16_t *)at, &two, (uint16_t) new, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    *old = two;
    break;
  case 4:
    done =
        __atomic_compare_exchange_n((uint32_t *)at, &four, (uint32_t) new,
                                    false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    *old = four;
    break;
  default:
    done = __atomic_compare_exchange_n((uint64_t *)at, old, new, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
  }
  return done;
}

/* ---- Lanes --------------------------------------------------------------- */

/* The operands of one atomic instruction, as pointers to registers. In a
 * register, the value of lane i is at byte offset i * step. */
typedef struct operands {
  const uint8_t *b, *c;
  uint8_t *d;     /* destination register; NULL if the result is not used */
  unsigned bytes; /* size of the word in bytes */
  unsigned step;  /* bytes per lane of a register: 4 or 8 */
  /* f32 subnormals are flushed to 0, as GPUs do in global memory. */
  bool flush;
} operands;

static uint64_t operand(const uint8_t *slot, unsigned step, unsigned i)
{
  uint32_t x;
  uint64_t y;

  if (slot == NULL)
    return 0;
  if (step == 8) {
    memcpy(&y, slot + 8 * (size_t)i, 8);
    return y;
  }
  memcpy(&x, slot + 4 * (size_t)i, 4);
  return x;
}

static void result(const operands *o, unsigned i, uint64_t x)
{
  const uint32_t narrow = (uint32_t)x;

  if (o->d == NULL)
    return;
  if (o->step == 8)
    memcpy(o->d + 8 * (size_t)i, &x, 8);
  else
    memcpy(o->d + 4 * (size_t)i, &narrow, 4);
}

static void one_lane(const kiln__cpu_insn *in, const operands *o, uintptr_t at,
                     unsigned i, bool alone)
{
  const uint64_t b = operand(o->b, o->step, i);
  const uint64_t c = operand(o->c, o->step, i);
  uint64_t old = word(at, o->bytes);

  if (alone) {
    kiln__cpu_atomic_store(at, o->bytes, apply(in, old, b, c, o->flush),
                           __ATOMIC_RELAXED);
  } else {
    while (!swap(at, o->bytes, &old, apply(in, old, b, c, o->flush)))
      ;
  }
  result(o, i, old);
}

/* ---- Loops of one operation ---------------------------------------------- */

/* The loops of one operation. */
typedef struct loops {
  /* Performs one atomic operation per active lane, each on its own word. If
   * `alone` is true, no other host thread can access the words. */
  void (*apart)(const kiln__cpu_warp *w, const operands *o,
                const uintptr_t *host, unsigned order, bool alone);
  /* Applies the operations of all active lanes to one word, like in_turn(). */
  uint64_t (*in_turn)(const kiln__cpu_warp *w, const operands *o, uint64_t now,
                      unsigned order, uint64_t seen[KILN__WARP]);
} loops;

#define ADD_DIRECTLY old = __atomic_fetch_add(at, b, __ATOMIC_SEQ_CST)
#define EXCH_DIRECTLY old = __atomic_exchange_n(at, b, __ATOMIC_SEQ_CST)
#define CAS_DIRECTLY                                                           \
  old = b;                                                                     \
  __atomic_compare_exchange_n(at, &old, c, false, __ATOMIC_SEQ_CST,            \
                              __ATOMIC_SEQ_CST)
#define BY_SWAPS(expression)                                                   \
  old = __atomic_load_n(at, __ATOMIC_RELAXED);                                 \
  while (!__atomic_compare_exchange_n(at, &old, expression, false,             \
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {   \
  }

/* Name of the operation, type of the word, the new value as an expression of the
 * old value and the operands b and c, and a statement that performs the atomic
 * operation on the word `at` and sets `old`. */
#define ATOMIC_LOOPS(X)                                                        \
  X(add_32, uint32_t, old + b, ADD_DIRECTLY)                                   \
  X(add_64, uint64_t, old + b, ADD_DIRECTLY)                                   \
  X(exch_32, uint32_t, b, EXCH_DIRECTLY)                                       \
  X(exch_64, uint64_t, b, EXCH_DIRECTLY)                                       \
  X(cas_32, uint32_t, old == b ? c : old, CAS_DIRECTLY)                        \
  X(cas_64, uint64_t, old == b ? c : old, CAS_DIRECTLY)                        \
  ATOMIC_SWAPS(X, and_32, uint32_t, old &b)                                    \
  ATOMIC_SWAPS(X, or_32, uint32_t, old | b)                                    \
  ATOMIC_SWAPS(X, xor_32, uint32_t, old ^ b)                                   \
  ATOMIC_SWAPS(X, and_64, uint64_t, old &b)                                    \
  ATOMIC_SWAPS(X, or_64, uint64_t, old | b)                                    \
  ATOMIC_SWAPS(X, xor_64, uint64_t, old ^ b)                                   \
  ATOMIC_SWAPS(X, min_u32, uint32_t, b < old ? b : old)                        \
  ATOMIC_SWAPS(X, max_u32, uint32_t, b > old ? b : old)                        \
  ATOMIC_SWAPS(X, min_s32, uint32_t, (int32_t)b < (int32_t)old ? b : old)      \
  ATOMIC_SWAPS(X, max_s32, uint32_t, (int32_t)b > (int32_t)old ? b : old)      \
  ATOMIC_SWAPS(X, add_f32, uint32_t, add_f32(old, b, false))                   \
  ATOMIC_SWAPS(X, add_flushed, uint32_t, add_f32(old, b, true))                \
  ATOMIC_SWAPS(X, add_f64, uint64_t, add_f64(old, b))
#define ATOMIC_SWAPS(X, name, T, expression)                                   \
  X(name, T, expression, BY_SWAPS(expression))

#define DEFINE_LOOPS(name, T, expression, directly)                            \
  static void apart_##name(const kiln__cpu_warp *w, const operands *o,         \
                           const uintptr_t *host, unsigned order, bool alone)  \
  {                                                                            \
    const T *const bs = (const T *)(const void *)o->b;                         \
    const T *const cs = o->c != NULL ? (const T *)(const void *)o->c : bs;     \
    T *const d = (T *)(void *)o->d;                                            \
                                                                               \
    for (uint32_t m = kiln__cpu_positions(w, order); m != 0; m &= m - 1) {     \
      const unsigned i = (unsigned)__builtin_ctz(m) ^ order;                   \
      T *const at = (T *)host[i], b = bs[i], c = cs[i], old;                   \
                                                                               \
      (void)c;                                                                 \
      if (alone) {                                                             \
        old = *at;                                                             \
        *at = expression;                                                      \
      } else {                                                                 \
        directly;                                                              \
      }                                                                        \
      if (d != NULL)                                                           \
        d[i] = old;                                                            \
    }                                                                          \
  }                                                                            \
                                                                               \
  static uint64_t in_turn_##name(const kiln__cpu_warp *w, const operands *o,   \
                                 uint64_t now, unsigned order,                 \
                                 uint64_t seen[KILN__WARP])                    \
  {                                                                            \
    const T *const bs = (const T *)(const void *)o->b;                         \
    const T *const cs = o->c != NULL ? (const T *)(const void *)o->c : bs;     \
    T old = (T)now;                                                            \
                                                                               \
    for (uint32_t m = kiln__cpu_positions(w, order); m != 0; m &= m - 1) {     \
      const unsigned i = (unsigned)__builtin_ctz(m) ^ order;                   \
      const T b = bs[i], c = cs[i];                                            \
                                                                               \
      (void)c;                                                                 \
      seen[i] = old;                                                           \
      old = expression;                                                        \
    }                                                                          \
    return old;                                                                \
  }

ATOMIC_LOOPS(DEFINE_LOOPS)

/* Indices of the rows of `table`. */
#define NUMBER(name, T, expression, directly) LOOPS_##name,
enum { ATOMIC_LOOPS(NUMBER) N_LOOPS };
#define ROW(name, T, expression, directly) {apart_##name, in_turn_##name},
static const loops table[N_LOOPS] = {ATOMIC_LOOPS(ROW)};

/* Returns the row of an operation that is an addition. */
static int loops_of_add(const kiln__cpu_insn *in, bool flush)
{
  switch ((kiln__cpu_ptx_type)in->type) {
  case KILN__F32:
    return flush ? LOOPS_add_flushed : LOOPS_add_f32;
  case KILN__F64:
    return LOOPS_add_f64;
  case KILN__U32:
  case KILN__S32:
    return LOOPS_add_32;
  case KILN__U64:
  case KILN__S64:
    return LOOPS_add_64;
  default:
    return -1;
  }
}

/* Returns the row of an operation in `table`, or -1 if it has no loops of its
 * own. */
static int row_of(const kiln__cpu_insn *in, unsigned bytes, bool flush)
{
  const bool s32 = in->type == KILN__S32, wide = bytes == 8;

  if (bytes < 4)
    return -1;
  switch (in->boolop) {
  case KILN__BOOL_AND:
    return wide ? LOOPS_and_64 : LOOPS_and_32;
  case KILN__BOOL_OR:
    return wide ? LOOPS_or_64 : LOOPS_or_32;
  case KILN__BOOL_XOR:
    return wide ? LOOPS_xor_64 : LOOPS_xor_32;
  default:
    break;
  }
  switch (in->sub) {
  case ADD:
    return loops_of_add(in, flush);
  case EXCH:
    return wide ? LOOPS_exch_64 : LOOPS_exch_32;
  case CAS:
    return wide ? LOOPS_cas_64 : LOOPS_cas_32;
  case MIN:
    return wide ? -1 : s32 ? LOOPS_min_s32 : LOOPS_min_u32;
  case MAX:
    return wide ? -1 : s32 ? LOOPS_max_s32 : LOOPS_max_u32;
  default:
    return -1;
  }
}

/* ---- One word for all lanes ---------------------------------------------- */

/* Applies the operations of all active lanes to one word in order. The word has
 * the value `now` at the start. seen[i] receives the value of the word before
 * the operation of lane i. */
static uint64_t in_turn(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        const operands *o, uint64_t now, unsigned order,
                        uint64_t seen[KILN__WARP])
{
  for (unsigned j = 0; j < KILN__WARP; j++) {
    const unsigned i = j ^ order;

    if ((w->mask >> i & 1) == 0)
      continue;
    seen[i] = now;
    now = apply(in, now, operand(o->b, o->step, i), operand(o->c, o->step, i),
                o->flush);
    if (o->bytes < 8) /* the result wraps at the size of the word */
      now &= (UINT64_C(1) << (8 * o->bytes)) - 1;
  }
  return now;
}

/* This is a faster version of in_turn() for 32-bit additions, which are
 * frequent. It applies the additions of all active lanes in order. */
static uint64_t add_in_turn(const kiln__cpu_warp *w, const operands *o,
                            uint64_t before, unsigned order,
                            uint64_t seen[KILN__WARP])
{
  const uint32_t *const b = (const uint32_t *)(const void *)o->b;
  uint32_t now = (uint32_t)before;

  for (unsigned j = 0; j < KILN__WARP; j++) {
    const unsigned i = j ^ order;

    seen[i] = now;
    now += b[i] & w->lane[i];
  }
  return now;
}

static float flushed_float(float x)
{
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
}

/* This is a faster version of in_turn() for additions of f32 in global memory.
 * The additions of all active lanes are computed in float, in order.
 * Afterwards, NaNs are replaced by the canonical NaN. */
static uint64_t sum_in_turn(const kiln__cpu_warp *w, const operands *o,
                            uint64_t before, unsigned order,
                            uint64_t seen[KILN__WARP])
{
  const uint32_t *const bits = (const uint32_t *)(const void *)o->b;
  float b[KILN__WARP], was[KILN__WARP];
  float now = flushed_float(kiln__cpu_float_of_bits((uint32_t)before));
  bool first = true;

  for (unsigned i = 0; i < KILN__WARP; i++)
    b[i] = flushed_float(kiln__cpu_float_of_bits(bits[i]));
  for (unsigned j = 0; j < KILN__WARP; j++) {
    const unsigned i = j ^ order;

    was[i] = now;
    if (w->lane[i] != 0)
      now = flushed_float(now + b[i]);
  }
  for (unsigned i = 0; i < KILN__WARP; i++)
    seen[i] =
        was[i] != was[i] ? KILN__NAN_F32 : kiln__cpu_bits_of_float(was[i]);
  for (unsigned j = 0; j < KILN__WARP && first; j++) {
    first = w->lane[j ^ order] == 0;
    if (!first)
      seen[j ^ order] = before;
  }
  return now != now ? KILN__NAN_F32 : kiln__cpu_bits_of_float(now);
}

/* Handles the case that all active lanes update the same word. The operations
 * are applied in order, and one compare-and-swap writes the result. The results
 * are written to `d` only after the swap, because d and b may be the same
 * register. */
static void together(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                     const operands *o, int row, uintptr_t at, unsigned order)
{
  uint64_t first = word(at, o->bytes), now, seen[KILN__WARP];

  do {
    if (row == LOOPS_add_32)
      now = add_in_turn(w, o, first, order, seen);
    else if (row == LOOPS_add_flushed)
      now = sum_in_turn(w, o, first, order, seen);
    else if (row >= 0 && row < (int)(sizeof table / sizeof *table))
      now = table[row].in_turn(w, o, first, order, seen);
    else
      now = in_turn(w, in, o, first, order, seen);
    /* An operation that changes nothing, such as a lock that is taken, is a
     * load. */
  } while (now != first && !swap(at, o->bytes, &first, now));
  for (uint32_t m = o->d != NULL ? w->mask : 0; m != 0; m &= m - 1)
    result(o, (unsigned)__builtin_ctz(m), seen[__builtin_ctz(m)]);
}

static bool all_at_one(const kiln__cpu_warp *w, const kiln__cpu_reach *r)
{
  const uint64_t one = r->address[__builtin_ctz(w->mask)];
  uint64_t off = 0;

  for (int i = 0; i < KILN__WARP; i++)
    off |= w->lane[i] != 0 ? r->address[i] ^ one : 0;
  return off == 0;
}

/* Returns true if an address lies in shared memory, according to the state
 * space of the instruction or to the window of a generic address. */
static bool is_shared(const kiln__cpu_insn *in, uint64_t address)
{
  return in->space == KILN__SPACE_SHARED ||
         in->space == KILN__SPACE_SHARED_CLUSTER ||
         (in->space == KILN__SPACE_GENERIC &&
          kiln__cpu_in_space(address, KILN__WINDOW_SHARED));
}

/* Performs one operation per active lane, each on its own word. */
static void apart(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                  operands *o, const kiln__cpu_reach *r, unsigned order,
                  bool alone)
{
  for (uint32_t m = kiln__cpu_positions(w, order); m != 0; m &= m - 1) {
    const unsigned i = (unsigned)__builtin_ctz(m) ^ order;

    o->flush = !is_shared(in, r->address[i]);
    one_lane(in, o, r->host[i], i, alone);
  }
}

static void atomic(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool returns)
{
  const unsigned order = kiln__cpu_lane_order(w, in);
  const unsigned bytes = kiln__cpu_ptx_type_bytes[in->type];
  operands o = {.bytes = bytes, .step = bytes == 8 ? 8 : 4};
  const bool several = (w->mask & (w->mask - 1)) != 0;
  kiln__cpu_reach r;
  bool shared = false, near = kiln__cpu_reach_near(w, in, bytes, &shared, &r);
  bool alone;
  int row;

  if (!near && !kiln__cpu_reach_a(w, in, (kiln__cpu_space)in->space, bytes,
                                  KILN__ACCESS_ATOMIC, KILN__COUNT_NONE, &r))
    return;
  o.b = w->regs + in->b;
  o.c = in->c >= 0 ? w->regs + in->c : NULL;
  o.d = returns && in->d >= 0 ? w->regs + in->d : NULL;
  if (several && all_at_one(w, &r)) {
    const int lane = __builtin_ctz(w->mask);

    if (w->counted)
      kiln__cpu_tally_add(w, in, (uint32_t)__builtin_popcount(w->mask));
    o.flush = !is_shared(in, r.address[lane]);
    together(w, in, &o, row_of(in, bytes, o.flush), r.host[lane], order);
    return;
  }
  if (w->counted)
    kiln__cpu_tally_add(
        w, in,
        several ? KILN__ISA_NAME(crowded)(r.address, w->mask, bytes) : 0);
  alone = (near ? shared : in->space == KILN__SPACE_SHARED) &&
          w->block->cluster == NULL;
  /* Lanes that are not near may be in different state spaces. */
  row = near ? row_of(in, bytes, !shared) : -1;
  if (row >= 0)
    table[row].apart(w, &o, r.host, order, alone);
  else
    apart(w, in, &o, &r, order, alone);
}

/* Executes a vector atomic: each element is a separate atomic operation. */
static void add_vector(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                       const int32_t *from, const int32_t *to)
{
  const unsigned order = kiln__cpu_lane_order(w, in);
  operands o = {.bytes = 4, .step = 4};
  uint32_t old[4][KILN__WARP];
  kiln__cpu_reach r;

  if (!kiln__cpu_reach_a(w, in, (kiln__cpu_space)in->space, 4u * in->n_vec,
                         KILN__ACCESS_ATOMIC, KILN__COUNT_ATOMIC, &r))
    return;
  for (unsigned j = 0; j < KILN__WARP; j++) {
    const unsigned i = j ^ order;

    for (unsigned k = 0; k < in->n_vec && (w->mask >> i & 1) != 0; k++) {
      o.b = w->regs + from[k];
      o.d = (uint8_t *)old[k];
      o.flush = !is_shared(in, r.address[i]);
      one_lane(in, &o, r.host[i] + 4 * (uintptr_t)k, i, false);
    }
  }
  for (unsigned k = 0; to != NULL && k < in->n_vec; k++) {
    for (int i = 0; i < KILN__WARP && to[k] >= 0; i++) {
      if (w->lane[i] != 0)
        KILN__SLOT(uint32_t, to[k])[i] = old[k][i];
    }
  }
}

/* ---- Handlers ------------------------------------------------------------ */

KILN__CALLS(atom, atomic, true)
KILN__CALLS(red, atomic, false)
KILN__CALLS(atom_add_v, add_vector, in->vec2, in->vec)
KILN__CALLS(red_add_v, add_vector, in->vec, NULL)
