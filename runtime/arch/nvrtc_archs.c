/* nvrtc_archs.c -- the compute capabilities that each release of NVRTC
 * supports. The table is used if no NVRTC library is available to query: by
 * `kiln doctor --what-if` and for hints. */
#include "arch.h"

/* Compute capabilities that NVRTC 11.2 to 11.4 support on x86-64. NVRTC 11.5
 * added 8.7. */
static const int archs_11_2[] = {35, 37, 50, 52, 53, 60, 61,
                                 62, 70, 72, 75, 80, 86};
static const int archs_11_5[] = {35, 37, 50, 52, 53, 60, 61,
                                 62, 70, 72, 75, 80, 86, 87};
static const int archs_11_8[] = {35, 37, 50, 52, 53, 60, 61, 62,
                                 70, 72, 75, 80, 86, 87, 89, 90};
static const int archs_12_0[] = {50, 52, 53, 60, 61, 62, 70,
                                 72, 75, 80, 86, 87, 89, 90};
static const int archs_12_8[] = {50, 52, 53, 60, 61, 62,  70,  72, 75,
                                 80, 86, 87, 89, 90, 100, 101, 120};
static const int archs_12_9[] = {50, 52, 53, 60, 61,  62,  70,  72,  75, 80,
                                 86, 87, 89, 90, 100, 101, 103, 120, 121};
static const int archs_13_0[] = {75, 80,  86,  87,  88,  89,
                                 90, 100, 103, 110, 120, 121};

#define LIST(array) (array), sizeof(array) / sizeof((array)[0])

/* The rows of the table are in ascending order of NVRTC versions. A minor
 * version that is newer than the last row of its major version uses the list of
 * that row. This is correct because no release removed a capability within a
 * major version. */
static const struct known {
  int first, end; /* the row holds for NVRTC versions v with first <= v < end */
  const int *archs;
  size_t n;
} table[] = {
    {11020, 11050, LIST(archs_11_2)}, {11050, 11080, LIST(archs_11_5)},
    {11080, 12000, LIST(archs_11_8)}, {12000, 12080, LIST(archs_12_0)},
    {12080, 12090, LIST(archs_12_8)}, {12090, 13000, LIST(archs_12_9)},
    {13000, 14000, LIST(archs_13_0)},
};

enum { N_KNOWN = sizeof table / sizeof table[0] };

const int *kiln_nvrtc_known_archs(int nvrtc_version, size_t *n)
{
  static const int none[1];

  for (size_t i = 0; i < N_KNOWN; i++) {
    if (nvrtc_version < table[i].first || nvrtc_version >= table[i].end)
      continue;
    if (n != NULL)
      *n = table[i].n;
    return table[i].archs;
  }
  if (n != NULL)
    *n = 0;
  return none;
}

static bool makes(const struct known *k, int cc)
{
  for (size_t i = 0; i < k->n; i++) {
    if (k->archs[i] == cc)
      return true;
  }
  return false;
}

/* Returns the newest NVRTC release that a row of the table covers. The member
 * `end` is only the first version of the next row. */
static int last_release(const struct known *k)
{
  switch (k->end) {
  case 12000:
    return 11080;
  case 13000:
    return 12090;
  case 14000:
    return 13000;
  default:
    return k->end - 10;
  }
}

bool kiln__nvrtc_span(int cc, int *first, int *last)
{
  bool found = false;

  for (size_t i = 0; i < N_KNOWN; i++) {
    if (!makes(&table[i], cc))
      continue;
    if (!found)
      *first = table[i].first;
    *last = last_release(&table[i]);
    found = true;
  }
  return found;
}
