/* access_count.c -- how many sectors and passes an access takes, where the
 * pattern does not say it at once.
 *
 * Sectors: 32 bytes; an aligned access of up to 32 bytes lies in one.
 *
 * Passes: 32 banks of 4 bytes. Accesses of 4 bytes and less go together for the
 * whole warp; 8 bytes by half-warps, 16 bytes by quarter-warps; two neighbouring
 * groups go together if in every pair of lanes (i, i ^ 1), or in every pair (i, i
 * ^ 2), both want the same address or one is not active. Each group takes as
 * many passes as there are different words in the fullest bank. */
#include "access.h"

/* The active lanes' keys in order, the last one repeated up to 32. */
static unsigned pack(const uint64_t *address, uint32_t mask, unsigned shift,
                     uint64_t key[KILN__WARP])
{
  unsigned n = 0;

  if (mask == UINT32_MAX) {
    for (unsigned i = 0; i < KILN__WARP; i++)
      key[i] = address[i] >> shift;
    return KILN__WARP;
  }
  for (; mask != 0; mask &= mask - 1)
    key[n++] = address[__builtin_ctz(mask)] >> shift;
  for (unsigned i = n; i < KILN__WARP && n != 0; i++)
    key[i] = key[n - 1];
  return n;
}

/* Different values: every lane compared with all before it. */
static uint32_t distinct_narrow(const uint32_t key[KILN__WARP])
{
  uint32_t before[2 * KILN__WARP], again[KILN__WARP] = {0};
  uint32_t n = KILN__WARP;

  memcpy(before + KILN__WARP, key, KILN__WARP * sizeof *key);
  for (unsigned i = 0; i < KILN__WARP; i++)
    before[i] = UINT32_MAX; /* no key */
  for (unsigned d = 1; d < KILN__WARP; d++) {
    for (unsigned i = 0; i < KILN__WARP; i++)
      again[i] |= (uint32_t)(before[KILN__WARP + i - d] == key[i]);
  }
  for (unsigned i = 0; i < KILN__WARP; i++)
    n -= again[i];
  return n;
}

static uint32_t distinct_wide(const uint64_t key[KILN__WARP])
{
  uint32_t n = 0;

  for (unsigned i = 0; i < KILN__WARP; i++) {
    bool again = false;

    for (unsigned j = 0; j < i; j++)
      again |= key[j] == key[i];
    n += !again;
  }
  return n;
}

static uint32_t distinct(const uint64_t key[KILN__WARP])
{
  uint64_t low = key[0], high = key[0], up = 0, down = 0;
  uint32_t narrow[KILN__WARP], changes = 1;
  uint64_t seen[4] = {0, 0, 0, 0};

  for (unsigned i = 0; i + 1 < KILN__WARP; i++) {
    up |= key[i + 1] - key[i];
    down |= key[i] - key[i + 1];
    changes += key[i + 1] != key[i];
  }
  if (up >> 63 == 0 || down >> 63 == 0) /* sorted, either way */
    return changes;
  for (unsigned i = 1; i < KILN__WARP; i++) {
    low = key[i] < low ? key[i] : low;
    high = key[i] > high ? key[i] : high;
  }
  if (high - low < 256) {
    for (unsigned i = 0; i < KILN__WARP; i++)
      seen[(key[i] - low) >> 6] |= UINT64_C(1) << ((key[i] - low) & 63);
    return (uint32_t)(__builtin_popcountll(seen[0]) +
                      __builtin_popcountll(seen[1]) +
                      __builtin_popcountll(seen[2]) +
                      __builtin_popcountll(seen[3]));
  }
  if (high - low >= UINT32_MAX)
    return distinct_wide(key);
  for (unsigned i = 0; i < KILN__WARP; i++)
    narrow[i] = (uint32_t)(key[i] - low);
  return distinct_narrow(narrow);
}

uint32_t KILN__ISA_NAME(sectors)(const uint64_t *address, uint32_t mask,
                                 uint32_t n)
{
  uint64_t key[KILN__WARP];

  (void)n;
  return pack(address, mask, 5, key) == 0 ? 0 : distinct(key);
}

uint32_t KILN__ISA_NAME(local_sectors)(const uint64_t *address, uint32_t mask,
                                       uint32_t n)
{
  const unsigned shift = n <= 4 ? 2 : (unsigned)__builtin_ctz(n);
  uint64_t at[KILN__WARP], key[KILN__WARP];

  /* Word w of lane l lies in sector 4 w + l / 8. */
  for (unsigned i = 0; i < KILN__WARP; i++)
    at[i] = (address[i] >> shift) * 4 + i / 8;
  return pack(at, mask, 0, key) == 0 ? 0 : distinct(key) * (n <= 4 ? 1 : n / 4);
}

uint32_t KILN__ISA_NAME(crowded)(const uint64_t *address, uint32_t mask,
                                 uint32_t n)
{
  const unsigned shift = n <= 4 ? 2 : (unsigned)__builtin_ctz(n);
  uint64_t key[KILN__WARP];
  const unsigned lanes = pack(address, mask, shift, key);
  uint32_t crowd = 0;

  for (unsigned i = 0; i < lanes; i++) {
    uint32_t same = 0;

    for (unsigned j = 0; j < lanes; j++)
      same += key[j] == key[i];
    crowd += same > 1;
  }
  return crowd;
}

/* ---- Passes -------------------------------------------------------------------- */

/* Units of one group, with banks as wide as a unit. Each round takes one unit
 * of every bank, and all lanes that want it. */
static uint32_t group_passes(const uint64_t *unit, unsigned n, unsigned banks)
{
  uint64_t left[KILN__WARP], taken[KILN__WARP], apart = 0;
  uint32_t rounds = 0;

  for (unsigned i = 1; i < n; i++)
    apart |= (unit[i] ^ unit[0]) / banks;
  if (apart == 0) /* one row of banks: no bank has two */
    return n != 0;
  memcpy(left, unit, n * sizeof *left);
  for (; n != 0; rounds++) {
    unsigned more = 0;

    for (unsigned i = 0; i < n; i++)
      taken[left[i] % banks] = left[i];
    for (unsigned i = 0; i < n; i++) {
      const uint64_t u = left[i];

      left[more] = u;
      more += taken[u % banks] != u;
    }
    n = more;
  }
  return rounds;
}

static bool pairs_agree(const uint64_t *address, uint32_t mask, unsigned apart)
{
  bool agree = true;

  for (unsigned i = 0; i < KILN__WARP; i++) {
    const bool both = (mask >> i & 1) != 0 && (mask >> (i ^ apart) & 1) != 0;

    agree &= !both || address[i] == address[i ^ apart];
  }
  return agree;
}

uint32_t KILN__ISA_NAME(passes)(const uint64_t *address, uint32_t mask,
                                uint32_t n)
{
  const unsigned bytes = n <= 4 ? 4 : n;
  const unsigned shift = (unsigned)__builtin_ctz(bytes), banks = 128 / bytes;
  unsigned lanes = 128 / bytes; /* of a group */
  uint32_t sum = 0;

  if (bytes > 4 &&
      (pairs_agree(address, mask, 1) || pairs_agree(address, mask, 2)))
    lanes *= 2;
  for (unsigned from = 0; from < KILN__WARP; from += lanes) {
    uint64_t unit[KILN__WARP];
    unsigned k = 0;

    for (unsigned i = from; i < from + lanes; i++) {
      unit[k] = address[i] >> shift;
      k += mask >> i & 1;
    }
    sum += group_passes(unit, k, banks);
  }
  return sum;
}

uint32_t KILN__ISA_NAME(pattern_cost)(const kiln__warp *w, kiln__pattern p,
                                      uint64_t first, uint32_t n, bool shared)
{
  uint64_t at[KILN__WARP];

  for (unsigned i = 0; i < KILN__WARP; i++)
    at[i] = p == KILN__AT_ONE ? first : first + (uint64_t)i * n;
  return shared ? KILN__ISA_NAME(passes)(at, w->mask, n)
                : KILN__ISA_NAME(sectors)(at, w->mask, n);
}
