/* access_count.c -- computes the number of sectors and passes of an access
 * whose pattern alone does not determine this number.
 *
 * Sectors: global memory is transferred in sectors of 32 bytes. An aligned
 * access of up to 32 bytes lies in one sector. The number of sectors is
 * therefore the number of distinct sector addresses.
 *
 * Passes: shared memory has 32 banks of 4 bytes. Accesses of up to 4 bytes are
 * served for the whole warp at once. Accesses of 8 bytes are served per
 * half-warp, and accesses of 16 bytes per quarter-warp. A group is the set of
 * lanes that are served at once. Two consecutive groups are served together if
 * they agree in every pair of lanes (i, i ^ 1), or in every pair (i, i ^ 2). A
 * pair agrees if both lanes access the same address or one lane is inactive.
 * The number of passes for a group of lanes is the largest number of distinct
 * words in one bank. */
#include "access.h"

/* Computes a key for each active lane: the address divided by 2^shift, which is
 * the number of the sector or word that the lane accesses. Stores the keys in
 * lane order, and fills the remaining elements with the last key. Returns the
 * number of active lanes. */
static unsigned collect(const uint64_t *address, uint32_t mask, unsigned shift,
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

/* Returns the number of distinct keys among 32 lanes. The key of each lane is
 * compared with the keys of all lower lanes. */
static uint32_t distinct_narrow(const uint32_t key[KILN__WARP])
{
  uint32_t before[2 * KILN__WARP], again[KILN__WARP] = {0};
  uint32_t n = KILN__WARP;

  memcpy(before + KILN__WARP, key, KILN__WARP * sizeof *key);
  for (unsigned i = 0; i < KILN__WARP; i++)
    before[i] = UINT32_MAX; /* no key has this value */
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
  /* The keys are sorted in ascending or descending order. */
  if (up >> 63 == 0 || down >> 63 == 0)
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
  return collect(address, mask, 5, key) == 0 ? 0 : distinct(key);
}

uint32_t KILN__ISA_NAME(local_sectors)(const uint64_t *address, uint32_t mask,
                                       uint32_t n)
{
  const unsigned shift = n <= 4 ? 2 : (unsigned)__builtin_ctz(n);
  uint64_t at[KILN__WARP], key[KILN__WARP];

  /* The words of the lanes are interleaved: word w of lane l lies in sector 4 w
   * + l / 8. */
  for (unsigned i = 0; i < KILN__WARP; i++)
    at[i] = (address[i] >> shift) * 4 + i / 8;
  return collect(at, mask, 0, key) == 0 ? 0
                                        : distinct(key) * (n <= 4 ? 1 : n / 4);
}

/* Computes 32-bit keys. The key of an active lane identifies the sector or word
 * that the lane accesses, and every inactive lane has a unique key. Returns
 * false if the addresses are so far apart that 32 bits cannot distinguish
 * them. */
static bool narrow_keys(const uint64_t *address, uint32_t mask, unsigned shift,
                        uint32_t key[KILN__WARP])
{
  const uint64_t one = address[__builtin_ctz(mask)] >> shift;
  uint64_t far = 0;

  for (unsigned i = 0; i < KILN__WARP; i++) {
    const bool on = (mask >> i & 1) != 0;
    const uint64_t from = (address[i] >> shift) - one + (UINT32_C(1) << 30);

    far |= on ? from : 0;
    key[i] = on ? (uint32_t)from : UINT32_MAX - i;
  }
  return far >> 31 == 0;
}

uint32_t KILN__ISA_NAME(crowded)(const uint64_t *address, uint32_t mask,
                                 uint32_t n)
{
  const unsigned shift = n <= 4 ? 2 : (unsigned)__builtin_ctz(n);
  uint32_t twice[2 * KILN__WARP], key[KILN__WARP], again[KILN__WARP] = {0};
  uint32_t crowd = 0;

  if (!narrow_keys(address, mask, shift, key)) {
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      uint32_t same = 0;

      for (uint32_t o = mask; o != 0; o &= o - 1)
        same += address[__builtin_ctz(o)] >> shift ==
                address[__builtin_ctz(m)] >> shift;
      crowd += same > 1;
    }
    return crowd;
  }
  for (unsigned i = 0; i < KILN__WARP; i++)
    twice[i] = twice[i + KILN__WARP] = key[i];
  for (unsigned d = 1; d < KILN__WARP; d++) {
    for (unsigned i = 0; i < KILN__WARP; i++)
      again[i] |= (uint32_t)(twice[i + d] == key[i]);
  }
  for (unsigned i = 0; i < KILN__WARP; i++)
    crowd += again[i];
  return crowd;
}

/* ---- Passes -------------------------------------------------------------- */

/* Sets again[i] if a lower lane accesses the same unit as lane i. A unit is an
 * aligned word as large as one access. */
static void find_again(const uint64_t *unit, unsigned n,
                       uint32_t again[KILN__WARP])
{
  uint32_t before[2 * KILN__WARP];
  uint64_t up = 0, down = 0;

  memset(again, 0, KILN__WARP * sizeof *again);
  for (unsigned i = 0; i + 1 < n; i++) {
    up |= unit[i + 1] - unit[i] - 1;
    down |= unit[i] - unit[i + 1] - 1;
  }
  /* If the units are strictly ascending or descending, all of them are
   * distinct. */
  if (up >> 63 == 0 || down >> 63 == 0)
    return;
  for (unsigned i = 0; i < KILN__WARP; i++) {
    before[i] = UINT32_MAX;
    before[KILN__WARP + i] = (uint32_t)unit[i < n ? i : 0];
  }
  /* The loop uses pointers instead of unsigned indices. Unsigned indices may
   * wrap, which would prevent vectorisation. */
  for (unsigned d = 1; d < n; d++) {
    const uint32_t *const own = before + KILN__WARP, *const earlier = own - d;

    for (int i = 0; i < KILN__WARP; i++)
      again[i] |= (uint32_t)(earlier[i] == own[i]);
  }
}

/* Returns the number of passes that a group of n lanes takes. The model uses
 * 2^bits banks that are as wide as a unit, the aligned word of one access. */
static uint32_t group_passes(const uint64_t *unit, unsigned n, unsigned bits)
{
  const uint32_t bank = (UINT32_C(1) << bits) - 1;
  uint8_t words[KILN__WARP] = {0}; /* number of distinct words per bank */
  uint32_t again[KILN__WARP], used = 0, most = 0;
  uint64_t apart = 0;

  for (unsigned i = 0; i < n; i++) {
    apart |= unit[i] ^ unit[0];
    used |= UINT32_C(1) << (unit[i] & bank);
  }
  /* One pass is enough if all units lie in one row of banks, or if each unit
   * lies in a different bank. */
  if (apart >> bits == 0 || (unsigned)__builtin_popcount(used) == n)
    return n != 0;
  find_again(unit, n, again);
  for (unsigned i = 0; i < n; i++) {
    uint8_t *const here = &words[unit[i] & bank];

    *here = (uint8_t)(*here + (again[i] == 0));
    most = *here > most ? *here : most;
  }
  return most;
}

static bool pairs_agree(const uint64_t *address, uint32_t mask, unsigned apart)
{
  uint64_t differ = 0;

  for (unsigned i = 0; i < KILN__WARP; i++) {
    const uint64_t both = 0 - (uint64_t)(mask >> i & mask >> (i ^ apart) & 1);

    differ |= (address[i] ^ address[i ^ apart]) & both;
  }
  return differ == 0;
}

/* Returns true if each group of lanes that is served at once accesses a single
 * row of banks. The warp must be full. */
KILN__INLINE bool rows_agree_of(const uint64_t *address, unsigned lanes)
{
  uint64_t apart = 0;

  for (unsigned from = 0; from < KILN__WARP; from += lanes) {
    for (unsigned i = from; i < from + lanes; i++)
      apart |= address[i] ^ address[from];
  }
  return apart >> 7 == 0;
}

static bool rows_agree(const uint64_t *address, unsigned lanes)
{
  return lanes == 8    ? rows_agree_of(address, 8)
         : lanes == 16 ? rows_agree_of(address, 16)
                       : rows_agree_of(address, KILN__WARP);
}

/* Returns the number of shared-memory passes of a full warp if the addresses of
 * every group of lanes increase by a constant step. Accesses along a row or
 * column of a matrix have such a step. The lowest set bit of the step
 * determines the number of banks that are used. Returns 0 if there is no
 * constant step or if the step is 0. */
KILN__INLINE uint32_t stepped_passes_of(const uint64_t *address, unsigned lanes)
{
  const uint64_t bytes = 128 / lanes, banks = lanes;
  uint64_t off = 0, sum = 0;

  for (unsigned from = 0; from < KILN__WARP; from += lanes) {
    const uint64_t first = address[from], step = address[from + 1] - first;
    const uint64_t units = step / bytes, share = units & -units;

    off |= (step & (bytes - 1)) | (step == 0);
    for (unsigned i = 0; i < lanes; i++)
      off |= address[from + i] ^ (first + i * step);
    sum += share < banks ? share : banks;
  }
  return off == 0 ? (uint32_t)sum : 0;
}

static uint32_t stepped_passes(const uint64_t *address, unsigned lanes)
{
  return lanes == 8    ? stepped_passes_of(address, 8)
         : lanes == 16 ? stepped_passes_of(address, 16)
         : lanes == 32 ? stepped_passes_of(address, KILN__WARP)
                       : 0;
}

uint32_t KILN__ISA_NAME(passes)(const uint64_t *address, uint32_t mask,
                                uint32_t n)
{
  const unsigned bytes = n <= 4 ? 4 : n;
  const unsigned shift = (unsigned)__builtin_ctz(bytes);
  unsigned lanes = 128 / bytes; /* number of lanes that are served at once */
  uint64_t unit[KILN__WARP];
  uint32_t sum = mask == UINT32_MAX ? stepped_passes(address, lanes) : 0;

  /* A constant step also means that no two lanes of a pair access the same
   * address, so no groups of lanes are served together. */
  if (sum != 0)
    return sum;
  if (bytes > 4 &&
      (pairs_agree(address, mask, 1) || pairs_agree(address, mask, 2)))
    lanes *= 2;
  if (mask == UINT32_MAX) {
    if (lanes >= 8 && rows_agree(address, lanes))
      return KILN__WARP / lanes;
    for (unsigned i = 0; i < KILN__WARP; i++)
      unit[i] = address[i] >> shift;
    for (unsigned from = 0; from < KILN__WARP; from += lanes)
      sum += group_passes(unit + from, lanes, 7 - shift);
    return sum;
  }
  for (unsigned from = 0; from < KILN__WARP; from += lanes) {
    unsigned k = 0;

    for (unsigned i = from; i < from + lanes; i++) {
      unit[k] = address[i] >> shift;
      k += mask >> i & 1;
    }
    sum += group_passes(unit, k, 7 - shift);
  }
  return sum;
}

uint32_t KILN__ISA_NAME(pattern_cost)(const kiln__cpu_warp *w,
                                      kiln__cpu_pattern p, uint64_t first,
                                      uint32_t n, bool shared)
{
  uint64_t at[KILN__WARP];

  for (unsigned i = 0; i < KILN__WARP; i++)
    at[i] = p == KILN__AT_ONE ? first : first + (uint64_t)i * n;
  return shared ? KILN__ISA_NAME(passes)(at, w->mask, n)
                : KILN__ISA_NAME(sectors)(at, w->mask, n);
}
