/* schedule.c -- lane masks and predicates, in the fastest form that each
 * instruction set has. */
#include "schedule.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

void KILN__ISA_NAME(set_mask)(kiln__warp *w, uint32_t mask)
{
  uint32_t *const lane = w->lane;

  w->mask = mask;
  w->full = mask == UINT32_MAX;
  KILN__VECTOR_LOOP
  for (uint32_t i = 0; i < KILN__WARP; i++)
    lane[i] = 0u - ((mask >> i) & 1u);
}

uint32_t KILN__ISA_NAME(predicate)(const kiln__warp *w, int32_t slot)
{
  const uint32_t *const p = KILN__SLOT(const uint32_t, slot);
  uint32_t mask = 0;

#if defined(__AVX2__)
  for (unsigned i = 0; i < 4; i++) {
    const __m256i v = _mm256_load_si256((const __m256i *)(const void *)p + i);

    mask |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(v)) << (8 * i);
  }
#elif defined(__SSE2__)
  for (unsigned i = 0; i < 8; i++) {
    const __m128i v = _mm_load_si128((const __m128i *)(const void *)p + i);

    mask |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(v)) << (4 * i);
  }
#else
  for (uint32_t i = 0; i < KILN__WARP; i++)
    mask |= p[i] & (1u << i);
#endif
  return mask;
}
