/* shuffle.c -- shfl: each lane reads a register of another lane. */
#include "schedule.h"

enum { UP = 1, DOWN, BFLY, IDX };

/* Returns the lane from which `lane` reads. *range receives ~0u if the source
 * lane is within the segment of `lane`, and 0 otherwise; `lane` then reads its
 * own value. Operand c contains the clamp value in bits 0 to 4 and the segment
 * mask in bits 8 to 12. */
static inline uint32_t source_lane(unsigned mode, int lane, uint32_t b,
                                   uint32_t c, uint32_t *range)
{
  const int by = (int)(b & 31), clamp = (int)(c & 31);
  const int segment = (int)((c >> 8) & 31);
  const int most = (lane & segment) | (clamp & ~segment);
  const int from = mode == UP     ? lane - by
                   : mode == DOWN ? lane + by
                   : mode == BFLY ? lane ^ by
                                  : (lane & segment) | (by & ~segment);
  const bool in_range = mode == UP ? from >= most : from <= most;

  *range = in_range ? UINT32_MAX : 0;
  return (uint32_t)(in_range ? from : lane);
}

/* Sets value[i] = a[from[i]] for all lanes. Each number in `from` is below
 * 32. */
static inline void permute(const uint32_t *a, const uint32_t from[KILN__WARP],
                           uint32_t value[KILN__WARP])
{
#if defined(__AVX512F__)
  const __m512i low = _mm512_load_si512(a), high = _mm512_load_si512(a + 16);

  for (int i = 0; i < KILN__WARP; i += 16)
    _mm512_store_si512(value + i, _mm512_permutex2var_epi32(
                                      low, _mm512_load_si512(from + i), high));
#elif defined(__AVX2__)
  __m256 part[4];

  for (int k = 0; k < 4; k++)
    part[k] = _mm256_load_ps((const float *)(const void *)(a + 8 * k));
  for (int i = 0; i < KILN__WARP; i += 8) {
    const __m256i at = _mm256_load_si256((const void *)(from + i));
    /* Bits 3 and 4 of a lane number select one of the four parts. */
    const __m256 odd = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28));
    const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(at, 27));
    const __m256 low =
        _mm256_blendv_ps(_mm256_permutevar8x32_ps(part[0], at),
                         _mm256_permutevar8x32_ps(part[1], at), odd);
    const __m256 high =
        _mm256_blendv_ps(_mm256_permutevar8x32_ps(part[2], at),
                         _mm256_permutevar8x32_ps(part[3], at), odd);

    _mm256_store_ps((float *)(void *)(value + i),
                    _mm256_blendv_ps(low, high, upper));
  }
#else
  for (int i = 0; i < KILN__WARP; i++)
    value[i] = a[from[i]];
#endif
}

/* Executes shfl. An inactive lane provides no value: a lane that reads from an
 * inactive lane keeps its own value. */
static inline void shuffle(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           unsigned mode)
{
  const uint32_t *const a = KILN__SLOT(const uint32_t, in->a);
  const uint32_t *const b = KILN__SLOT(const uint32_t, in->b);
  const uint32_t *const c = KILN__SLOT(const uint32_t, in->c);
  _Alignas(64) uint32_t from[KILN__WARP], value[KILN__WARP], range[KILN__WARP];
  const uint32_t mask = w->mask;

  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    from[i] = source_lane(mode, i, b[i], c[i], &range[i]);
  if (mask != UINT32_MAX) {
    KILN__VECTOR_LOOP
    for (int i = 0; i < KILN__WARP; i++)
      from[i] = (mask >> from[i] & 1) != 0 ? from[i] : (uint32_t)i;
  }
  permute(a, from, value);
  if (in->d >= 0)
    KILN__LANES(uint32_t, value[i]);
  if (in->d2 >= 0) {
    uint32_t *const p = KILN__SLOT(uint32_t, in->d2);

    KILN__VECTOR_LOOP
    for (int i = 0; i < KILN__WARP; i++)
      p[i] = w->lane[i] != 0 ? range[i] : p[i];
  }
}

KILN__HANDLER(shfl_sync)
{
  switch (in->sub) {
  case UP:
    shuffle(w, in, UP);
    break;
  case DOWN:
    shuffle(w, in, DOWN);
    break;
  case BFLY:
    shuffle(w, in, BFLY);
    break;
  default:
    shuffle(w, in, IDX);
    break;
  }
}
