/* ranked_keys.h -- keys of any type and their order, for the tests of top-k and
 * of quantiles. The order is that of kiln_sort(): -0 before +0, NaNs last; of
 * NaNs, those without a sign bit come first, and then the others with the
 * largest payload first. */
#ifndef KILN_RANKED_KEYS_H
#define KILN_RANKED_KEYS_H

#include "ops_fixture.h"

typedef enum key_kind {
  KEYS_RANDOM, /* any bits, NaNs included */
  KEYS_FEW,    /* five different values */
  KEYS_EQUAL,
  KEYS_SORTED,
  KEYS_FINITE,  /* any bits; floats are finite and not too large to subtract */
  KEYS_SPECIAL, /* zeros, infinities, NaNs, denormals, extremes */
  N_KEY_KINDS,
  /* Finite keys. Those at the places that rank_select.cu samples, if the row is
   * the only one, are the greatest or the least, so that the bounds fail. */
  KEYS_SAMPLED_GREAT,
  KEYS_SAMPLED_LEAST
} key_kind;

static inline uint64_t special_key(kiln_dtype type, uint64_t r)
{
  const unsigned bits = 8u * (unsigned)kiln_dtype_size(type);
  const uint64_t sign = UINT64_C(1) << (bits - 1);
  const unsigned fraction = type == KILN_F16    ? 10
                            : type == KILN_BF16 ? 7
                            : type == KILN_F32  ? 23
                                                : 52;
  const uint64_t infinity =
      fraction < bits ? (sign - 1) >> fraction << fraction : sign / 2;
  const uint64_t list[] = {0,        1,
                           sign - 1, infinity,
                           2,        infinity - 1,
                           7,        (infinity | 1) + (r >> 8 & 3)};

  return list[r % 8] | (r >> 16 & 1 ? sign : 0);
}

static inline bool is_sampled(size_t i, size_t n)
{
  const size_t stride = n / 8192, j = stride > 0 ? i / stride : 0;
  uint32_t hash = (uint32_t)j * UINT32_C(0x9e3779b1);

  hash = (hash ^ hash >> 15) * UINT32_C(0x85ebca77);
  hash ^= hash >> 13;
  return i - j * stride == (uint64_t)hash * stride >> 32;
}

/* Returns a finite key that is greater than all keys with `great` unset. */
static inline uint64_t split_key(kiln_dtype type, bool great, uint64_t r)
{
  const unsigned bits = 8u * (unsigned)kiln_dtype_size(type);
  const bool top = great != type_is_signed(type);

  r &= (UINT64_C(1) << (bits - 2)) - 1;
  return top ? r | UINT64_C(1) << (bits - 1) : r;
}

static inline uint64_t ranked_key(kiln_dtype type, key_kind kind, size_t i,
                                  size_t n, uint64_t r)
{
  const unsigned bits = 8u * (unsigned)kiln_dtype_size(type);

  switch (kind) {
  case KEYS_FEW:
    return (r % 5) * 0x0123456789abcdefu;
  case KEYS_EQUAL:
    return 0x4145434748454342u;
  case KEYS_SORTED:
    return (~UINT64_C(0) >> (64 - bits)) / n * i;
  case KEYS_FINITE:
    /* The exponent is less than a half of the largest one. */
    return type_is_float(type) ? r & ~(UINT64_C(1) << (bits - 2)) : r;
  case KEYS_SPECIAL:
    return special_key(type, r);
  case KEYS_SAMPLED_GREAT:
    return split_key(type, is_sampled(i, n), r);
  case KEYS_SAMPLED_LEAST:
    return split_key(type, !is_sampled(i, n), r);
  default:
    return r;
  }
}

/* Makes n keys. teardown() frees them. */
static inline void *ranked_keys(kiln_dtype type, key_kind kind, size_t n,
                                uint64_t *state)
{
  const size_t size = kiln_dtype_size(type);
  unsigned char *keys = kept(malloc(n * size + 8));

  for (size_t i = 0; i < n; i++) {
    const uint64_t v = ranked_key(type, kind, i, n, test_random(state));

    memcpy(keys + i * size, &v, size);
  }
  return keys;
}

typedef struct ranked {
  uint64_t major, minor; /* compared one after the other */
  size_t place;
} ranked;

/* Returns numbers that have the order of the keys. */
static inline ranked rank_of(kiln_dtype type, const void *keys, size_t i)
{
  const size_t size = kiln_dtype_size(type);
  const uint64_t sign = UINT64_C(1) << (8 * size - 1);
  const uint64_t ones = sign | (sign - 1);
  ranked r = {0, 0, i};
  uint64_t x = 0;

  memcpy(&x, (const unsigned char *)keys + i * size, size);
  if (!type_is_float(type)) {
    r.minor = type_is_signed(type) ? x ^ sign : x;
    return r;
  }
  r.major = (x & sign) != 0 && isnan(value_at(type, keys, i));
  r.minor = (x & sign) != 0 ? ~x & ones : x | sign;
  return r;
}

static inline int compare_ranked(const void *a, const void *b)
{
  const ranked *x = a, *y = b;

  if (x->major != y->major)
    return x->major < y->major ? -1 : 1;
  if (x->minor != y->minor)
    return x->minor < y->minor ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

/* Returns the places of the keys in ascending or descending order. Equal keys
 * are in the order of their places. The caller frees the result. */
static inline size_t *ranked_places(kiln_dtype type, const void *keys, size_t n,
                                    bool descending)
{
  ranked *all = malloc((n + 1) * sizeof *all);
  size_t *places = malloc((n + 1) * sizeof *places);

  ck_assert(all != NULL && places != NULL);
  for (size_t i = 0; i < n; i++) {
    all[i] = rank_of(type, keys, i);
    if (descending) {
      all[i].major = ~all[i].major;
      all[i].minor = ~all[i].minor;
    }
  }
  qsort(all, n, sizeof *all, compare_ranked);
  for (size_t i = 0; i < n; i++)
    places[i] = all[i].place;
  free(all);
  return places;
}

#endif
