/* shuffle.c -- shfl: each lane reads a register of another lane. */
#include "schedule.h"

enum { UP = 1, DOWN, BFLY, IDX };

/* Returns the lane from which `lane` reads, and whether the source lane is
 * within the segment of `lane`. Operand c contains the clamp value in bits 0 to
 * 4 and the segment mask in bits 8 to 12. */
static inline int source_lane(unsigned mode, int lane, uint32_t b, uint32_t c,
                              bool *in_range)
{
  const int by = (int)(b & 31), clamp = (int)(c & 31);
  const int segment = (int)((c >> 8) & 31);
  const int most = (lane & segment) | (clamp & ~segment);
  const int least = lane & segment;
  int from;

  switch (mode) {
  case UP:
    from = lane - by;
    *in_range = from >= most;
    break;
  case DOWN:
    from = lane + by;
    *in_range = from <= most;
    break;
  case BFLY:
    from = lane ^ by;
    *in_range = from <= most;
    break;
  default:
    from = least | (by & ~segment);
    *in_range = from <= most;
    break;
  }
  return *in_range ? from : lane;
}

/* Executes shfl. An inactive lane provides no value: a lane that reads from an
 * inactive lane keeps its own value. */
static inline void shuffle(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           unsigned mode)
{
  const uint32_t *const a = KILN__SLOT(const uint32_t, in->a);
  const uint32_t *const b = KILN__SLOT(const uint32_t, in->b);
  const uint32_t *const c = KILN__SLOT(const uint32_t, in->c);
  _Alignas(64) uint32_t value[KILN__WARP], range[KILN__WARP];
  const uint32_t mask = w->mask;

  for (int i = 0; i < KILN__WARP; i++) {
    bool in_range;
    const int from = source_lane(mode, i, b[i], c[i], &in_range);

    value[i] = a[(mask >> from) & 1 ? from : i];
    range[i] = 0u - (uint32_t)in_range;
  }
  if (in->d >= 0)
    KILN__LANES(uint32_t, value[i]);
  if (in->d2 >= 0) {
    uint32_t *const p = KILN__SLOT(uint32_t, in->d2);

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
