/* clocks.c -- implements sparse vector clocks of blocks.
 *
 * A grid has up to 2^31 blocks, but each block learns the clocks of only a few
 * other blocks. A vector clock therefore stores only the blocks that it knows,
 * sorted by number. A look-up is a bisection. Two vector clocks are joined by
 * an in-place merge. */
#include "watch_state.h"

#include <string.h>

/* Returns the index of the first entry whose block number is at least
 * `block`. */
static uint32_t find(const kiln__cpu_clocks *c, uint32_t block)
{
  uint32_t low = 0, high = c->n;

  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;

    if (c->items[middle].block < block)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool reserve(const kiln_allocator *a, kiln__cpu_clocks *c, uint32_t n)
{
  void *p;
  uint32_t capacity = c->capacity == 0 ? 8 : c->capacity;

  if (n <= c->capacity)
    return true;
  while (capacity < n)
    capacity *= 2;
  p = kiln__resize(a, c->items, (size_t)capacity * sizeof *c->items);
  if (p == NULL)
    return false;
  c->items = p;
  c->capacity = capacity;
  return true;
}

uint32_t kiln__cpu_clocks_of(const kiln__cpu_clocks *c, uint32_t block)
{
  const uint32_t i = find(c, block);

  return i < c->n && c->items[i].block == block ? c->items[i].time : 0;
}

bool kiln__cpu_clocks_raise(const kiln_allocator *a, kiln__cpu_clocks *c,
                            uint32_t block, uint32_t time)
{
  const uint32_t i = find(c, block);

  if (i < c->n && c->items[i].block == block) {
    if (c->items[i].time < time)
      c->items[i].time = time;
    return true;
  }
  if (!reserve(a, c, c->n + 1))
    return false;
  memmove(c->items + i + 1, c->items + i, (c->n - i) * sizeof *c->items);
  c->items[i].block = block;
  c->items[i].time = time;
  c->n++;
  return true;
}

bool kiln__cpu_clocks_join(const kiln_allocator *a, kiln__cpu_clocks *to,
                           const kiln__cpu_clocks *from)
{
  uint32_t i = to->n, j = from->n, missing = 0;

  for (uint32_t x = 0, y = 0; y < from->n; y++) {
    while (x < to->n && to->items[x].block < from->items[y].block)
      x++;
    missing += x == to->n || to->items[x].block != from->items[y].block;
  }
  if (!reserve(a, to, to->n + missing))
    return false;
  /* The merge runs from the end, so it overwrites no entry before it reads that
   * entry. */
  to->n += missing;
  for (uint32_t k = to->n; j > 0; k--) {
    if (i > 0 && to->items[i - 1].block > from->items[j - 1].block) {
      to->items[k - 1] = to->items[--i];
    } else if (i > 0 && to->items[i - 1].block == from->items[j - 1].block) {
      i--;
      j--;
      to->items[k - 1] = to->items[i];
      if (to->items[k - 1].time < from->items[j].time)
        to->items[k - 1].time = from->items[j].time;
    } else {
      to->items[k - 1] = from->items[--j];
    }
  }
  return true;
}
