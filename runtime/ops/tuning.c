/* tuning.c -- which parameters an operation runs with. */
#include "ops.h"

typedef struct row {
  kiln__tuned_family family;
  uint8_t size, log2_n, cc;
  kiln__tuning tuning;
} row;

static const row rows[] = {
#define KILN_TUNED(family, size, log2_n, cc, block, items, per_sm, extra)      \
  {KILN__TUNED_##family, size, log2_n, cc, {block, items, per_sm, extra}},
#include "tuning.def"
};

static bool fits(const row *r, kiln__tuned_family family, unsigned cc,
                 unsigned size, uint64_t n)
{
  return r->family == family && r->cc <= cc &&
         (r->size == 0 || r->size == size) &&
         (r->log2_n >= 64 || n <= UINT64_C(1) << r->log2_n);
}

/* Is `a` the more specific of two rows that fit? */
static bool beats(const row *a, const row *b)
{
  if (a->cc != b->cc)
    return a->cc > b->cc;
  if (a->log2_n != b->log2_n)
    return a->log2_n < b->log2_n;
  return a->size > b->size;
}

kiln__tuning kiln__tuned(const kiln_device *device, kiln__tuned_family family,
                         unsigned size, uint64_t n)
{
  const unsigned cc = (unsigned)device->traits.cc;
  const row *best = NULL;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (fits(&rows[i], family, cc, size, n) &&
        (best == NULL || beats(&rows[i], best)))
      best = &rows[i];
  return best != NULL ? best->tuning : (kiln__tuning){256, 4, 0, 0};
}
