/* large_reference.h -- references for large_test.c: elements that are computed
 * from their index alone, in C and in CUDA alike; loops over them on the host's
 * threads; kernels that compare results in device memory with them. */
#ifndef KILN_LARGE_REFERENCE_H
#define KILN_LARGE_REFERENCE_H

#include <kiln/kiln.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Defines functions both in C and as CUDA source text. HERE is their
 * linkage. */
#define HERE static inline
#define IN_BOTH(...)                                                           \
  __VA_ARGS__                                                                  \
  static const char both_text[] =                                              \
      "#define HERE static __device__ __forceinline__\n" #__VA_ARGS__ "\n";

/* Element types are 0 for u8, 1 for u32, 2 for f32, 3 for u64 and 4 for f64.
 * Elements are whole numbers that their type holds exactly. The eight highest
 * bits of a hash spread them over the range; u8 elements leave 251 to 255 to
 * the tests. */
/* clang-format off */
IN_BOTH(
typedef unsigned long long word;

HERE word mix(word i)
{
  word h = (i + 1) * 0x9e3779b97f4a7c15ull;

  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
  return h ^ (h >> 29);
}

HERE long long whole(int type, word i)
{
  const word h = mix(i);

  if (type == 0)
    return (long long)((h >> 56) % 251);
  if (type == 1)
    return (long long)(h >> 32);
  if (type == 2)
    return (long long)(h >> 40) - (1ll << 23);
  return type == 3 ? (long long)h : (long long)(h >> 11) - (1ll << 52);
}

/* Tells whether the predicate of the tests holds for an element. */
HERE bool chosen(int type, long long w)
{
  if (type == 0)
    return w >= 100;
  if (type == 1)
    return w > 0x7fffffff;
  return type == 3 ? w < 0 : w > 0;
}

/* Index number i of n into a target. Kind 0 is any index; kind 1 is a
 * permutation if n is the size of the target; kind 2 ascends, with one index in
 * each of n equal parts. The factor is a prime above all n / 2. */
HERE word place(int kind, word i, word n, word target)
{
  if (kind == 0)
    return mix(i + 77) % target;
  if (kind == 1)
    return i * 2147483647ull % target;
  return i * (target / n) + mix(i) % (target / n);
}

/* Returns the start of segment s. Segments have about 1,000 elements; some are
 * empty, and the segments behind these have about 2,000 elements. */
HERE word segment_start(word s, word segments, word n)
{
  const word t = (s & 1) != 0 && (mix(s) & 1) != 0 ? s - 1 : s;

  if (s == 0 || s >= segments)
    return s == 0 ? 0 : n;
  return t * 1000 + mix(t) % 900;
}
)
/* clang-format on */

/* ELEMENT is the element type and TYPE its number. Every kernel works with any
 * grid size. */
static const char fills_text[] =
    "typedef unsigned char byte;\n"
    "typedef ELEMENT T;\n"
    "struct report { word wrong, first, sum; };\n"
    "#define EACH(i, n) word i = blockIdx.x * (word)blockDim.x + threadIdx.x; "
    "i < (n); i += (word)gridDim.x * blockDim.x\n"
    "static __device__ void expect(report *r, bool good, word i) {\n"
    "  if (!good) { atomicAdd(&r->wrong, 1ull); atomicMin(&r->first, i); }\n"
    "}\n"
    "static __device__ T value(word i) { return (T)whole(TYPE, i); }\n"
    "static __device__ word bits(T v) {\n"
    "  union { word w; T t; } u; u.w = 0; u.t = v; return u.w;\n"
    "}\n"
    "extern \"C\" {\n"
    "__global__ void fill(T *x, word n, word divisor) {\n"
    "  for (EACH(i, n)) x[i] = value(i / divisor);\n"
    "}\n"
    "__global__ void fill_stairs(T *x, word n, unsigned shift) {\n"
    "  for (EACH(i, n)) x[i] = (T)(i >> shift);\n"
    "}\n"
    "__global__ void fill_bytes(byte *x, word n, word salt) {\n"
    "  for (EACH(i, n)) x[i] = (byte)(mix(i ^ salt) >> 56);\n"
    "}\n"
    "__global__ void fill_count(unsigned *x, word n) {\n"
    "  for (EACH(i, n)) x[i] = (unsigned)i;\n"
    "}\n"
    "__global__ void fill_places(void *x, unsigned width, word n, word "
    "target,\n"
    "                            int kind) {\n"
    "  for (EACH(i, n)) {\n"
    "    const word p = place(kind, i, n, target);\n"
    "    if (width == 8) ((word *)x)[i] = p; else ((unsigned *)x)[i] = p;\n"
    "  }\n"
    "}\n"
    "__global__ void fill_segments(word *x, word segments, word n) {\n"
    "  for (EACH(s, segments + 1)) x[s] = segment_start(s, segments, n);\n"
    "}\n"
    "__global__ void fill_needles(T *x, word n, word range) {\n"
    "  for (EACH(i, n)) x[i] = (T)(mix(i) % range);\n"
    "}\n";

static const char checks_text[] =
    "__global__ void check_map(const T *y, word n, report *r) {\n"
    "  for (EACH(i, n))\n"
    "    expect(r, y[i] == (T)(value(i) + value(i + 1) + (i & 1023)), i);\n"
    "}\n"
    "__global__ void check_difference(const T *y, word n, report *r) {\n"
    "  for (EACH(i, n))\n"
    "    expect(r, y[i] == (i == 0 ? value(0) : (T)(value(i) - value(i - "
    "1))),\n"
    "           i);\n"
    "}\n"
    "__global__ void check_gather(const T *y, word n, word target, int kind,\n"
    "                             word width, report *r) {\n"
    "  for (EACH(i, n * width)) {\n"
    "    const word p = place(kind, i / width, n, target);\n"
    "    expect(r, y[i] == value(p * width + i % width), i);\n"
    "  }\n"
    "}\n"
    "__global__ void check_scatter(const T *y, word n, word target, int kind,\n"
    "                              report *r) {\n"
    "  for (EACH(i, n))\n"
    "    expect(r, y[place(kind, i, n, target)] == value(i), i);\n"
    "}\n"
    "__global__ void check_spread(const byte *y, word n, word target,\n"
    "                             report *r) {\n"
    "  for (EACH(p, target)) {\n"
    "    const word i = p / (target / n);\n"
    "    const bool hit = i < n && place(2, i, n, target) == p;\n"
    "    expect(r, y[p] == (hit ? (byte)whole(0, i) : 255), p);\n"
    "  }\n"
    "}\n"
    "__global__ void check_sorted(const T *y, word n, report *r) {\n"
    "  word sum = 0;\n"
    "  for (EACH(i, n)) {\n"
    "    expect(r, i + 1 == n || y[i] <= y[i + 1], i);\n"
    "    sum += mix(bits(y[i]));\n"
    "  }\n"
    "  atomicAdd(&r->sum, sum);\n"
    "}\n"
    "__global__ void check_pairs(const T *y, const unsigned *from, word n,\n"
    "                            report *r) {\n"
    "  word sum = 0;\n"
    "  for (EACH(i, n)) {\n"
    "    expect(r, y[i] == value(from[i]), i);\n"
    "    expect(r, i + 1 == n || y[i] < y[i + 1] ||\n"
    "              (y[i] == y[i + 1] && from[i] < from[i + 1]), i);\n"
    "    sum += mix(from[i]);\n"
    "  }\n"
    "  atomicAdd(&r->sum, sum);\n"
    "}\n"
    /* Merging is stable: of equal keys those of a come first. */
    "__global__ void check_merged(const T *y, const byte *v, word n_a, word "
    "n_b,\n"
    "                             unsigned shift, word salt, report *r) {\n"
    "  for (EACH(k, n_a + n_b)) {\n"
    "    const bool of_a = k < n_a;\n"
    "    const word i = of_a ? k : k - n_a, other = of_a ? n_b : n_a;\n"
    "    word before = ((i >> shift) + !of_a) << shift;\n"
    "    if (before > other) before = other;\n"
    "    expect(r, y[i + before] == (T)(i >> shift), k);\n"
    "    expect(r, v[i + before] == (byte)(mix(i ^ (of_a ? 0 : salt)) >> 56),\n"
    "           k);\n"
    "  }\n"
    "}\n"
    "__global__ void check_found(const word *y, word n, word range, word m,\n"
    "                            unsigned shift, unsigned upper, report *r) {\n"
    "  for (EACH(i, n)) {\n"
    "    word p = (mix(i) % range + upper) << shift;\n"
    "    expect(r, y[i] == (p < m ? p : m), i);\n"
    "  }\n"
    "}\n"
    "__global__ void check_segments(const word *y, word segments, word n,\n"
    "                               report *r) {\n"
    "  for (EACH(s, segments)) {\n"
    "    const word end = segment_start(s + 1, segments, n);\n"
    "    word sum = 0;\n"
    "    for (word i = segment_start(s, segments, n); i < end; i++)\n"
    "      sum += whole(TYPE, i);\n"
    "    expect(r, y[s] == sum, s);\n"
    "  }\n"
    "}\n"
    "__global__ void check_sixteen(const T *y, word segments, report *r) {\n"
    "  for (EACH(s, segments)) {\n"
    "    int sum = 0;\n"
    "    for (word i = s * 16; i < s * 16 + 16; i++)\n"
    "      sum += chosen(TYPE, whole(TYPE, i)) ? 3 : 1;\n"
    "    expect(r, y[s] == (T)sum, s);\n"
    "  }\n"
    "}\n"
    /* Checks the sums of all rows, or of all columns. */
    "__global__ void check_lines(const word *y, word rows, word columns,\n"
    "                            unsigned of_rows, report *r) {\n"
    "  const word lines = of_rows ? rows : columns;\n"
    "  const word length = of_rows ? columns : rows;\n"
    "  for (EACH(k, lines)) {\n"
    "    word sum = 0;\n"
    "    for (word j = 0; j < length; j++)\n"
    "      sum += whole(TYPE, of_rows ? k * columns + j : j * columns + k);\n"
    "    expect(r, y[k] == sum, k);\n"
    "  }\n"
    "}\n"
    "}\n";

/* ---- Reference results on the host --------------------------------------- */

enum { SHARES = 64, MOST_THREADS = 16 };

typedef struct shared_work {
  void (*body)(void *user, unsigned share);
  void *user;
  unsigned next;
} shared_work;

static void *work_on(void *user)
{
  shared_work *work = user;
  unsigned share;

  while ((share = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED)) <
         SHARES)
    work->body(work->user, share);
  return NULL;
}

/* Calls body(user, share) for share 0 .. SHARES - 1 on as many threads as there
 * are cores. */
static void in_shares(void (*body)(void *user, unsigned share), void *user)
{
  shared_work work = {body, user, 0};
  pthread_t threads[MOST_THREADS];
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int n = 0;

  while (n < MOST_THREADS && n + 1 < cores &&
         pthread_create(&threads[n], NULL, work_on, &work) == 0)
    n++;
  work_on(&work);
  while (n > 0)
    pthread_join(threads[--n], NULL);
}

/* Returns the first element of a thread's share of n elements. */
static inline uint64_t share_start(uint64_t n, unsigned share)
{
  return n / SHARES * share + (share == SHARES ? n % SHARES : 0);
}

static const unsigned type_width[] = {1, 4, 4, 8, 8};

/* Returns the bits of an element as they are stored in memory. */
static inline uint64_t bits_of(int type, int64_t w)
{
  const float f = (float)w;
  const double d = (double)w;
  uint64_t bits = 0;

  if (type == 0)
    bits = (uint8_t)w;
  else if (type == 1)
    bits = (uint32_t)w;
  else if (type == 3)
    bits = (uint64_t)w;
  else if (type == 2)
    memcpy(&bits, &f, sizeof f);
  else
    memcpy(&bits, &d, sizeof d);
  return bits;
}

/* Returns the bits of element i of an array in host memory. */
static inline uint64_t bits_at(int type, const unsigned char *x, uint64_t i)
{
  uint32_t four;
  uint64_t eight;

  if (type_width[type] == 1)
    return x[i];
  if (type_width[type] == 4) {
    memcpy(&four, x + i * 4, 4);
    return four;
  }
  memcpy(&eight, x + i * 8, 8);
  return eight;
}

/* Expected results over elements 0 .. n - 1. */
typedef struct totals {
  int type;
  uint64_t n;
  /* counts of the values of u8 elements, or of the highest 8 bits of others */
  uint64_t bins[256];
  uint64_t sum; /* modulo 2^64 */
  uint64_t chosen;
  /* sums of mix(bits) and of mix(index) over all elements */
  uint64_t mixed, mixed_index;
  /* extremes of each share, then of all elements, as order_of() encodes them */
  int64_t least[SHARES + 1], most[SHARES + 1];
  /* first index of the greatest element */
  uint64_t most_at[SHARES + 1];
} totals;

/* Maps an element to a signed integer that sorts in the same order. */
static inline int64_t order_of(int type, int64_t w)
{
  return type == 3 ? w ^ INT64_MIN : w;
}

static void totals_share(void *user, unsigned share)
{
  totals *all = user, t = {.type = all->type, .n = all->n};
  int64_t least = INT64_MAX, most = INT64_MIN;
  uint64_t most_at = 0;

  for (uint64_t i = share_start(t.n, share), end = share_start(t.n, share + 1);
       i < end; i++) {
    const int64_t w = whole(t.type, i), order = order_of(t.type, w);

    least = order < least ? order : least;
    if (order > most) {
      most = order;
      most_at = i;
    }
    t.bins[t.type == 0 ? (uint64_t)w : mix(i) >> 56]++;
    t.sum += (uint64_t)w;
    t.chosen += chosen(t.type, w);
    t.mixed += mix(bits_of(t.type, w));
    t.mixed_index += mix(i);
  }
  all->least[share] = least;
  all->most[share] = most;
  all->most_at[share] = most_at;
  for (int b = 0; b < 256; b++)
    __atomic_fetch_add(&all->bins[b], t.bins[b], __ATOMIC_RELAXED);
  __atomic_fetch_add(&all->sum, t.sum, __ATOMIC_RELAXED);
  __atomic_fetch_add(&all->chosen, t.chosen, __ATOMIC_RELAXED);
  __atomic_fetch_add(&all->mixed, t.mixed, __ATOMIC_RELAXED);
  __atomic_fetch_add(&all->mixed_index, t.mixed_index, __ATOMIC_RELAXED);
}

static totals totals_of(int type, uint64_t n)
{
  totals t = {.type = type, .n = n};

  in_shares(totals_share, &t);
  t.least[SHARES] = INT64_MAX;
  t.most[SHARES] = INT64_MIN;
  for (int s = 0; s < SHARES; s++) {
    if (t.least[s] < t.least[SHARES])
      t.least[SHARES] = t.least[s];
    if (t.most[s] > t.most[SHARES]) {
      t.most[SHARES] = t.most[s];
      t.most_at[SHARES] = t.most_at[s];
    }
  }
  return t;
}

typedef enum walk_rule {
  /* inclusive sum; floats are replaced by 1 if chosen and -1 otherwise */
  WALK_SCAN,
  WALK_SELECT,    /* the chosen */
  WALK_PARTITION, /* the chosen elements, then the others */
  /* value and index of each run's first element, and optionally the lengths */
  WALK_RUNS
} walk_rule;

/* Checks an output in host memory, each element of which depends on all input
 * elements before it. A first pass computes what each share adds to the running
 * sum; a second one compares. */
typedef struct walk {
  walk_rule rule;
  int type;
  uint64_t n, divisor; /* input element i is whole(type, i / divisor) */
  const unsigned char *out;
  const uint64_t *index, *lengths;
  uint64_t before[SHARES + 1]; /* running sum at the start of each share */
  /* number of wrong elements, and the index of the first one */
  uint64_t wrong, first;
} walk;

static inline uint64_t walk_amount(const walk *k, uint64_t i, int64_t w)
{
  if (k->rule == WALK_RUNS)
    return i == 0 || w != whole(k->type, (i - 1) / k->divisor);
  if (k->rule != WALK_SCAN)
    return chosen(k->type, w);
  if (k->type == 2 || k->type == 4)
    return chosen(k->type, w) ? 1 : UINT64_MAX;
  return (uint64_t)w;
}

static inline void walk_sum(void *user, unsigned share)
{
  walk *k = user;
  const uint64_t end = share_start(k->n, share + 1);
  uint64_t sum = 0;

  for (uint64_t i = share_start(k->n, share); i < end; i++)
    sum += walk_amount(k, i, whole(k->type, i / k->divisor));
  k->before[share + 1] = sum;
}

/* Checks output for input element i with value w. `sum` is the running sum
 * before it, and `amount` is what it adds. */
static inline bool walk_good(const walk *k, uint64_t i, int64_t w, uint64_t sum,
                             uint64_t amount)
{
  const uint64_t all = k->before[SHARES];
  uint64_t at = sum;

  if (k->rule == WALK_SCAN)
    return bits_at(k->type, k->out, i) ==
           bits_of(k->type, (int64_t)(sum + amount));
  if (amount == 0 && k->rule == WALK_PARTITION)
    at = all + i - sum;
  else if (amount == 0)
    return true;
  if (bits_at(k->type, k->out, at) != bits_of(k->type, w))
    return false;
  if (k->rule != WALK_RUNS)
    return true;
  return k->index[at] == i &&
         (k->lengths == NULL || at == 0 ||
          k->lengths[at - 1] == i - k->index[at - 1]) &&
         (k->lengths == NULL || at + 1 < all || k->lengths[at] == k->n - i);
}

static inline void walk_compare(void *user, unsigned share)
{
  walk *k = user;
  const uint64_t end = share_start(k->n, share + 1);
  uint64_t sum = k->before[share];

  for (uint64_t i = share_start(k->n, share); i < end; i++) {
    const int64_t w = whole(k->type, i / k->divisor);
    const uint64_t amount = walk_amount(k, i, w);

    if (!walk_good(k, i, w, sum, amount)) {
      uint64_t first = __atomic_load_n(&k->first, __ATOMIC_RELAXED);

      __atomic_fetch_add(&k->wrong, 1, __ATOMIC_RELAXED);
      while (i < first &&
             !__atomic_compare_exchange_n(&k->first, &first, i, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    }
    sum += amount;
  }
}

/* Computes the running sums. before[SHARES] is the total. */
static inline void walk_begin(walk *k)
{
  k->first = UINT64_MAX;
  k->before[0] = 0;
  in_shares(walk_sum, k);
  for (int share = 0; share < SHARES; share++)
    k->before[share + 1] += k->before[share];
}

#endif
