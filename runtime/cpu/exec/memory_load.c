/* memory_load.c -- the load instructions ld and ldu.
 *
 * A load determines the pattern of its addresses and then moves elements into
 * registers. The elements are consecutive, at one address, or scattered. The
 * handlers for the usual sizes are copies of one inlined routine with a
 * constant element size and vector length. access.h describes the paths. */
#include "access.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ---- Moving elements into registers -------------------------------------- */

/* Loads one word per lane from scattered addresses, if the instruction set has a
 * fast way to do this. Returns false if it has none. */
KILN__INLINE bool gather_words(const uintptr_t *from, unsigned offset, void *to)
{
#if defined(__AVX512F__)
  const __m512i more = _mm512_set1_epi64(offset);

  for (unsigned i = 0; i < KILN__WARP; i += 8) {
    const __m512i at = _mm512_add_epi64(_mm512_loadu_si512(from + i), more);
    const __m256i words = _mm512_i64gather_epi32(at, NULL, 1);

    _mm256_storeu_si256((__m256i *)(void *)((uint32_t *)to + i), words);
  }
  return true;
#else
  (void)from;
  (void)offset;
  (void)to;
  return false;
#endif
}

KILN__INLINE bool is_signed(const kiln__cpu_insn *in)
{
  return in->type == KILN__S8 || in->type == KILN__S16 || in->type == KILN__S32;
}

/* Returns true if an element has to be extended after its zero-extension to 32
 * bits. This applies to 64-bit registers, and to signed elements in wider
 * registers. */
KILN__INLINE bool extends(const kiln__cpu_insn *in, unsigned bytes)
{
  return bytes < 8 &&
         (in->reg_bytes > 4 || (is_signed(in) && in->reg_bytes > bytes));
}

/* Extends the raw values of active lanes to the width of the register. */
static void extend(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                   int32_t slot, unsigned bytes, const uint32_t raw[KILN__WARP])
{
  const unsigned up = is_signed(in) ? 32 - 8 * bytes : 0;
  const uint32_t keep = in->reg_bytes == 2 ? 0xffff : UINT32_MAX;
  const uint64_t high = is_signed(in) ? ~UINT64_C(0) : UINT32_MAX;
  uint64_t *const wide = KILN__SLOT(uint64_t, slot);
  uint32_t *const narrow = KILN__SLOT(uint32_t, slot);

  if (in->reg_bytes > 4) {
    KILN__VECTOR_LOOP
    for (int i = 0; i < KILN__WARP; i++) {
      const int64_t x = (int32_t)(raw[i] << up) >> up;

      wide[i] = w->lane[i] != 0 ? (uint64_t)x & high : wide[i];
    }
    return;
  }
  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++) {
    const int32_t x = (int32_t)(raw[i] << up) >> up;

    narrow[i] = w->lane[i] != 0 ? (uint32_t)x & keep : narrow[i];
  }
}

/* These macros define functions that fill the active lanes of `to` with zero-
 * extended elements of sizeof(T) bytes. The elements are `step` bytes apart, at
 * one address, or scattered. */
#define FILLS(T, TD)                                                           \
  KILN__INLINE void row_##T(const kiln__cpu_warp *w, const uint8_t *from,      \
                            unsigned step, TD *to)                             \
  {                                                                            \
    if (__builtin_expect(w->full, 1)) {                                        \
      if (sizeof(T) == sizeof(TD) && step == sizeof(T)) {                      \
        memcpy(to, from, KILN__WARP * sizeof(T));                              \
        return;                                                                \
      }                                                                        \
      for (unsigned i = 0; i < KILN__WARP; i++) {                              \
        T x;                                                                   \
        memcpy(&x, from + (size_t)i * step, sizeof x);                         \
        to[i] = x;                                                             \
      }                                                                        \
      return;                                                                  \
    }                                                                          \
    for (uint32_t m = w->mask, f = (uint32_t)__builtin_ctz(m); m != 0;         \
         m &= m - 1) {                                                         \
      const unsigned i = (unsigned)__builtin_ctz(m);                           \
      T x;                                                                     \
      memcpy(&x, from + (size_t)(i - f) * step, sizeof x);                     \
      to[i] = x;                                                               \
    }                                                                          \
  }                                                                            \
                                                                               \
  KILN__INLINE void one_##T(const kiln__cpu_warp *w, const uint8_t *from,      \
                            TD *to)                                            \
  {                                                                            \
    T x;                                                                       \
                                                                               \
    memcpy(&x, from, sizeof x);                                                \
    if (__builtin_expect(w->full, 1)) {                                        \
      for (unsigned i = 0; i < KILN__WARP; i++)                                \
        to[i] = x;                                                             \
    } else {                                                                   \
      for (unsigned i = 0; i < KILN__WARP; i++)                                \
        to[i] = w->lane[i] != 0 ? x : to[i];                                   \
    }                                                                          \
  }                                                                            \
                                                                               \
  KILN__INLINE void any_##T(const kiln__cpu_warp *w, const uintptr_t *from,    \
                            unsigned offset, TD *to)                           \
  {                                                                            \
    if (__builtin_expect(w->full, 1)) {                                        \
      if (sizeof(T) == 4 && gather_words(from, offset, to))                    \
        return;                                                                \
      for (unsigned i = 0; i < KILN__WARP; i++) {                              \
        T x;                                                                   \
        memcpy(&x, (const void *)(from[i] + offset), sizeof x);                \
        to[i] = x;                                                             \
      }                                                                        \
      return;                                                                  \
    }                                                                          \
    for (uint32_t m = w->mask; m != 0; m &= m - 1) {                           \
      const unsigned i = (unsigned)__builtin_ctz(m);                           \
      T x;                                                                     \
      memcpy(&x, (const void *)(from[i] + offset), sizeof x);                  \
      to[i] = x;                                                               \
    }                                                                          \
  }

FILLS(uint8_t, uint32_t)
FILLS(uint16_t, uint32_t)
FILLS(uint32_t, uint32_t)
FILLS(uint64_t, uint64_t)

KILN__INLINE void fill_row(const kiln__cpu_warp *w, unsigned bytes,
                           const uint8_t *from, unsigned step, void *to)
{
  switch (bytes) {
  case 1:
    row_uint8_t(w, from, step, to);
    break;
  case 2:
    row_uint16_t(w, from, step, to);
    break;
  case 4:
    row_uint32_t(w, from, step, to);
    break;
  default:
    row_uint64_t(w, from, step, to);
  }
}

KILN__INLINE void fill_one(const kiln__cpu_warp *w, unsigned bytes,
                           const uint8_t *from, void *to)
{
  switch (bytes) {
  case 1:
    one_uint8_t(w, from, to);
    break;
  case 2:
    one_uint16_t(w, from, to);
    break;
  case 4:
    one_uint32_t(w, from, to);
    break;
  default:
    one_uint64_t(w, from, to);
  }
}

KILN__INLINE void fill_any(const kiln__cpu_warp *w, unsigned bytes,
                           const uintptr_t *from, unsigned offset, void *to)
{
  switch (bytes) {
  case 1:
    any_uint8_t(w, from, offset, to);
    break;
  case 2:
    any_uint16_t(w, from, offset, to);
    break;
  case 4:
    any_uint32_t(w, from, offset, to);
    break;
  default:
    any_uint64_t(w, from, offset, to);
  }
}

/* ---- One load instruction ------------------------------------------------ */

/* Loads element k of an n-element vector into register `slot`. If the addresses
 * of the lanes follow a pattern, `low` is the lowest host address. Otherwise,
 * `host` contains the host address of each lane. */
KILN__INLINE void element(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                          int32_t slot, unsigned bytes, unsigned k, unsigned n,
                          kiln__cpu_pattern p, const uint8_t *low,
                          const uintptr_t *host)
{
  uint32_t raw[KILN__WARP];
  void *to;

  if (slot < 0)
    return;
  if (__builtin_expect(extends(in, bytes), 0)) {
    memset(raw, 0, sizeof raw);
    to = raw;
  } else {
    to = w->regs + slot;
  }
  if (p == KILN__IN_A_ROW)
    fill_row(w, bytes, low + (size_t)k * bytes, n * bytes, to);
  else if (p == KILN__AT_ONE)
    fill_one(w, bytes, low + (size_t)k * bytes, to);
  else
    fill_any(w, bytes, host, k * bytes, to);
  if (__builtin_expect(to == raw, 0))
    extend(w, in, slot, bytes, raw);
}

#if defined(__SSE2__)
/* Loads four 32-bit words per lane into four registers. The words are
 * consecutive from `low`, or at the host addresses `host`. Blocks of 4 x 4
 * words are transposed in vector registers, which needs a quarter of the memory
 * accesses. Returns false if this method is not applicable. */
KILN__INLINE bool quads(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        const uint8_t *low, const uintptr_t *host)
{
  const int32_t *const v = in->vec;

  if (!w->full || extends(in, 4) || (v[0] | v[1] | v[2] | v[3]) < 0)
    return false;
  for (unsigned i = 0; i < KILN__WARP; i += 4) {
    __m128i row[4], even[2], odd[2];

    for (unsigned k = 0; k < 4; k++)
      row[k] = _mm_loadu_si128(low != NULL
                                   ? (const void *)(low + (size_t)(i + k) * 16)
                                   : (const void *)host[i + k]);
    for (unsigned k = 0; k < 2; k++) {
      even[k] = _mm_unpacklo_epi32(row[2 * k], row[2 * k + 1]);
      odd[k] = _mm_unpackhi_epi32(row[2 * k], row[2 * k + 1]);
    }
    _mm_store_si128((void *)(KILN__SLOT(uint32_t, v[0]) + i),
                    _mm_unpacklo_epi64(even[0], even[1]));
    _mm_store_si128((void *)(KILN__SLOT(uint32_t, v[1]) + i),
                    _mm_unpackhi_epi64(even[0], even[1]));
    _mm_store_si128((void *)(KILN__SLOT(uint32_t, v[2]) + i),
                    _mm_unpacklo_epi64(odd[0], odd[1]));
    _mm_store_si128((void *)(KILN__SLOT(uint32_t, v[3]) + i),
                    _mm_unpackhi_epi64(odd[0], odd[1]));
  }
  return true;
}
#else
KILN__INLINE bool quads(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        const uint8_t *low, const uintptr_t *host)
{
  (void)w, (void)in, (void)low, (void)host;
  return false;
}
#endif

/* Loads all n vector elements of an instruction. The loop has constant bounds
 * if n is a constant. */
KILN__INLINE void elements(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           unsigned bytes, unsigned n, kiln__cpu_pattern p,
                           const uint8_t *low, const uintptr_t *host)
{
  if (bytes == 4 && n == 4 && p != KILN__AT_ONE && quads(w, in, low, host))
    return;
  for (unsigned k = 0; k < n; k++)
    element(w, in, n == 1 ? in->d : in->vec[k], bytes, k, n, p, low, host);
}

static __attribute__((noinline)) void
slowly(kiln__cpu_warp *w, const kiln__cpu_insn *in, unsigned bytes, unsigned n)
{
  kiln__cpu_reach r;

  if (!kiln__cpu_reach_a(w, in, (kiln__cpu_space)in->space, bytes * n,
                         KILN__ACCESS_READ, KILN__COUNT_MEMORY, &r))
    return;
  for (unsigned k = 0; k < n; k++)
    element(w, in, n == 1 ? in->d : in->vec[k], bytes, k, n, KILN__ANYWHERE,
            NULL, r.host);
}

#define STORES 0
#include "memory_path.h"

/* Loads parameters. The parameters of a kernel have one address for all lanes.
 * The parameters of a function are on the stack of each lane. */
KILN__INLINE void load_param(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                             unsigned bytes, unsigned n)
{
  const uint32_t size = w->grid->code->param_bytes;
  const uint64_t at = (uint64_t)in->imm;

  if (in->space == KILN__SPACE_LOCAL) {
    move_local(w, in, bytes, n);
  } else if (in->a >= 0 || at >= size || bytes * n > size - at ||
             (at & (bytes * n - 1)) != 0) {
    slowly(w, in, bytes, n);
  } else {
    if (w->counted)
      kiln__cpu_tally_add(w, in, 0);
    elements(w, in, bytes, n, KILN__AT_ONE, w->grid->params + at, NULL);
  }
}

/* ---- Handlers ------------------------------------------------------------ */

MOVES(ld_global, move_global)
MOVES(ld_shared, move_shared)
MOVES(ld_local, move_local)
MOVES(ld_param, load_param)

ANY_SIZE(ld_l1, ld_global)

KILN__HANDLER(ld_cv_local)
{
  slowly(w, in, in->bytes, in->n_vec > 1 ? in->n_vec : 1);
}

/* ---- Strong loads -------------------------------------------------------- */

/* Finds the elements of a strong load. *one receives true if all lanes load from
 * one address, whose host address is then r->host[0]. Returns false if the
 * access faulted. */
static bool reach_strong(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         uint32_t bytes, bool *one, kiln__cpu_reach *r)
{
  const bool own = in->space == KILN__SPACE_SHARED;
  const bool wide = own || in->space == KILN__SPACE_GLOBAL ||
                    in->space == KILN__SPACE_GENERIC;
  uint64_t first;
  bool shared = own;

  *one = false;
  if (wide && !w->watched &&
      kiln__cpu_survey(w, in, bytes, &first) == KILN__AT_ONE &&
      (first & (bytes - 1)) == 0) {
    const uint8_t *const host =
        own ? kiln__cpu_shared(w, first, bytes)
            : kiln__cpu_span(w, (kiln__cpu_space)in->space, first, bytes,
                             &shared);

    if (host != NULL) {
      kiln__cpu_count_pattern(w, in, KILN__AT_ONE, first, bytes, shared);
      *one = true;
      r->host[0] = (uintptr_t)host;
      return true;
    }
  }
  if (wide && !w->watched &&
      (own ? kiln__cpu_all_shared(w, in, bytes, r)
           : kiln__cpu_all_global(w, in, bytes, r)))
    return true;
  return kiln__cpu_reach_a(w, in, (kiln__cpu_space)in->space, bytes,
                           KILN__ACCESS_READ, KILN__COUNT_MEMORY, r);
}

/* Loads one element per lane with single accesses, which are ordered with the
 * atomics of other host threads. */
static void load_strong(const kiln__cpu_warp *w, const kiln__cpu_reach *r,
                        bool one, unsigned offset, unsigned bytes,
                        uint64_t raw[KILN__WARP])
{
  if (one) {
    const uint64_t x =
        kiln__cpu_atomic_load(r->host[0] + offset, bytes, __ATOMIC_ACQUIRE);

    for (int i = 0; i < KILN__WARP; i++)
      raw[i] = x;
    return;
  }
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);

    raw[i] =
        kiln__cpu_atomic_load(r->host[i] + offset, bytes, __ATOMIC_ACQUIRE);
  }
}

/* Loads one element for the only active lane, which often polls memory. Returns
 * false if the general path has to handle the load. */
static bool load_alone(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  const int lane = __builtin_ctz(w->mask);
  const unsigned up = 64 - 8u * in->bytes;
  const uint64_t keep = in->reg_bytes == 2 ? 0xffff : UINT64_MAX;
  const bool near = in->space == KILN__SPACE_SHARED ||
                    in->space == KILN__SPACE_GLOBAL ||
                    in->space == KILN__SPACE_GENERIC;
  kiln__cpu_reach r;
  bool shared;
  uint64_t x;

  if ((w->mask & (w->mask - 1)) != 0 || !near || in->d < 0 || in->n_vec > 1 ||
      !kiln__cpu_reach_near(w, in, in->bytes, &shared, &r))
    return false;
  if (w->counted)
    kiln__cpu_tally_add(w, in, 1);
  x = kiln__cpu_atomic_load(r.host[lane], in->bytes, __ATOMIC_ACQUIRE);
  if (is_signed(in))
    x = (uint64_t)((int64_t)(x << up) >> up);
  if (in->reg_bytes > 4 || in->bytes == 8)
    KILN__SLOT(uint64_t, in->d)[lane] = x;
  else
    KILN__SLOT(uint32_t, in->d)[lane] = (uint32_t)(x & keep);
  return true;
}

KILN__HANDLER(ld_volatile)
{
  const unsigned n = in->n_vec > 1 ? in->n_vec : 1, bytes = in->bytes;
  kiln__cpu_reach r;
  bool one;

  if (load_alone(w, in))
    return;
  if (!reach_strong(w, in, bytes * n, &one, &r))
    return;
  for (unsigned k = 0; k < n; k++) {
    const int32_t slot = n == 1 ? in->d : in->vec[k];
    uint64_t raw[KILN__WARP] = {0};
    uint32_t narrow[KILN__WARP];

    if (slot < 0)
      continue;
    load_strong(w, &r, one, k * bytes, bytes, raw);
    if (bytes == 8) {
      uint64_t *const d = KILN__SLOT(uint64_t, slot);

      KILN__VECTOR_LOOP
      for (int i = 0; i < KILN__WARP; i++)
        d[i] = w->lane[i] != 0 ? raw[i] : d[i];
    } else {
      for (int i = 0; i < KILN__WARP; i++)
        narrow[i] = (uint32_t)raw[i];
      extend(w, in, slot, bytes, narrow);
    }
  }
}
