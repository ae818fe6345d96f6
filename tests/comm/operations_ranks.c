/* operations_ranks.c -- random calls of the operations of distributed.h that move
 * elements between ranks, against the same operation of one device on the whole
 * array, which every rank runs, or against C. There are twenty calls per operation,
 * ten under MPI, and 1,000 in a thorough run; KILN_TEST_RANDOM_CALLS sets another
 * number. */
#include "block_arrays.h"

#include <kiln/gather.h>

/* One random call. */
typedef struct trial {
  kiln_comm *comm;
  kiln_stream *stream;
  whole w;
  uint64_t seed, number; /* of the call */
} trial;

/* Multiplies the lengths of all blocks. */
static void enlarge(whole *w, uint64_t factor)
{
  for (int r = 0; r < kiln_comm_size(w->comm); r++)
    w->sizes[r] *= factor;
  w->first *= factor;
  w->n *= factor;
  w->total *= factor;
}

static uint64_t drawn(const trial *t, uint64_t what, uint64_t n)
{
  return mixed(t->seed, what, 1) % n;
}

/* Compares n elements of this rank with those of one device from `first` on. */
static void compare(const trial *t, CUdeviceptr got, CUdeviceptr wanted,
                    uint64_t first, uint64_t n, size_t size)
{
  kiln_comm *const comm = t->comm;
  char *a = host_bytes(n * size), *b = host_bytes(n * size);

  download(comm, a, got, n * size);
  download(comm, b, wanted + first * size, n * size);
  for (uint64_t i = 0; i < n; i++) {
    if (memcmp(a + i * size, b + i * size, size) != 0)
      printf("seed %llu: element %llu of %llu differs\n",
             (unsigned long long)t->seed, (unsigned long long)i,
             (unsigned long long)n);
    CHECK(memcmp(a + i * size, b + i * size, size) == 0);
  }
  free(a);
  free(b);
}

/* Lends this rank exactly `bytes` bytes of temporary memory, in every other call.
 * take_back() ends the loan. */
static CUdeviceptr lend(const trial *t, size_t bytes)
{
  kiln_comm *const comm = t->comm;
  kiln_workspace workspace = {0, bytes};

  if (t->number % 2 == 0)
    return 0;
  workspace.data = device_bytes(comm, bytes);
  CHECK_OK(kiln_dist_set_workspace(comm, &workspace));
  return workspace.data;
}

static void take_back(const trial *t, CUdeviceptr lent)
{
  kiln_comm *const comm = t->comm;

  CHECK_OK(kiln_dist_set_workspace(comm, NULL));
  if (lent != 0)
    release(comm, lent);
}

static uint64_t download_u64(const trial *t, CUdeviceptr p)
{
  kiln_comm *const comm = t->comm;
  uint64_t x = 0;

  download(comm, &x, p, sizeof x);
  return x;
}

/* Keys with runs of very different lengths: also one run across all ranks. */
static uint32_t *run_keys(const trial *t)
{
  static const uint64_t lengths[] = {1, 2, 40, 1500, 5000, 1 << 20};
  uint32_t *const keys = host_bytes(t->w.total * 4);
  const uint64_t length = lengths[drawn(t, 20, 6)];
  uint32_t key = 0;

  for (uint64_t i = 0; i < t->w.total; i++) {
    key += mixed(t->seed, 21, i) % length == 0;
    keys[i] = key;
  }
  return keys;
}

/* Results that a rank stores are part of those of one device. */
static void check_part(const trial *t, uint64_t count, uint64_t first,
                       uint64_t total, uint64_t wanted)
{
  kiln_comm *const comm = t->comm;
  uint64_t firsts[MOST_RANKS], counts[MOST_RANKS], sum = 0;

  CHECK(total == wanted);
  CHECK_OK(kiln_comm_share(comm, &first, sizeof first, firsts));
  CHECK_OK(kiln_comm_share(comm, &count, sizeof count, counts));
  for (int r = 0; r < kiln_comm_size(comm); r++) {
    CHECK(firsts[r] == sum);
    sum += counts[r];
  }
  CHECK(sum == total);
}

/* ---- Unique, reduction by key -------------------------------------------- */

static void try_unique(const trial *t)
{
  kiln_comm *const comm = t->comm;
  const whole *const w = &t->w;
  uint32_t *keys = run_keys(t);
  CUdeviceptr all = upload(comm, keys, w->total * 4);
  CUdeviceptr mine = upload_block(w, keys, 4);
  CUdeviceptr want = device_bytes(comm, w->total * 8 + 8);
  CUdeviceptr got = device_bytes(comm, w->n * 8 + 8);
  const bool mapped = drawn(t, 22, 4) == 0;
  CUdeviceptr lent;
  size_t bytes = 0;
  const kiln_input map = {.map = "(x ^ 5) * 3"};
  kiln_unique_desc one = {.x = map,
                          .n = w->total,
                          .out = {want + 8, KILN_U32},
                          .payload = {all, KILN_U32},
                          .out_payload = {want + 8 + w->total * 4, KILN_U32},
                          .count = {want, KILN_U64}};
  kiln_unique_desc own = one;
  uint64_t first = 99, total = 99, count;

  if (!mapped)
    one.x = (kiln_input){.map = NULL};
  own.x = one.x;
  one.x.in[0] = (kiln_array){all, KILN_U32};
  own.x.in[0] = own.payload = (kiln_array){mine, KILN_U32};
  own.n = w->n;
  own.out.data = got + 8;
  own.out_payload.data = got + 8 + w->n * 4;
  own.count.data = got;
  CHECK_OK(kiln_unique(t->stream, &one, NULL));
  CHECK_OK(kiln_dist_unique_workspace(comm, t->stream, &own, &bytes));
  lent = lend(t, bytes);
  CHECK_OK(kiln_dist_unique(comm, t->stream, &own, &first, &total));
  take_back(t, lent);
  count = download_u64(t, got);
  check_part(t, count, first, total, download_u64(t, want));
  compare(t, own.out.data, one.out.data, first, count, 4);
  compare(t, own.out_payload.data, one.out_payload.data, first, count, 4);
  release(comm, all);
  release(comm, mine);
  release(comm, want);
  release(comm, got);
  free(keys);
}

/* Composition of two maps modulo 2^32: not commutative. */
static const char composition[] =
    "((a >> 32) * (b & 0xffffffff) + (b >> 32)) << 32 | (a * b & 0xffffffff)";

static void try_reduce_by_key(const trial *t)
{
  kiln_comm *const comm = t->comm;
  const whole *const w = &t->w;
  uint32_t *keys = run_keys(t);
  uint64_t *x = host_bytes(w->total * 8);
  CUdeviceptr all_keys, all_x, keys_block, x_block, want, got, lent;
  size_t bytes = 0;
  kiln_reduce_by_key_desc one, own;
  uint64_t first = 99, total = 99, count;

  for (uint64_t i = 0; i < w->total; i++)
    x[i] = mixed(t->seed, 23, i) | 1;
  all_keys = upload(comm, keys, w->total * 4);
  all_x = upload(comm, x, w->total * 8);
  keys_block = upload_block(w, keys, 4);
  x_block = upload_block(w, x, 8);
  want = device_bytes(comm, w->total * 12 + 8);
  got = device_bytes(comm, w->n * 12 + 8);
  one =
      (kiln_reduce_by_key_desc){.keys = {all_keys, KILN_U32},
                                .x = {.in = {{all_x, KILN_U64}}},
                                .n = w->total,
                                .out = {want + 8, KILN_U64},
                                .out_keys = {want + 8 + w->total * 8, KILN_U32},
                                .count = {want, KILN_U64}};
  if (!thorough() || drawn(t, 24, 2) == 0)
    one.op = (kiln_op){.expr = composition, .identity = "1"};
  own = one;
  own.keys.data = keys_block;
  own.x.in[0].data = x_block;
  own.n = w->n;
  own.out.data = got + 8;
  own.out_keys.data = got + 8 + w->n * 8;
  own.count.data = got;
  CHECK_OK(kiln_reduce_by_key(t->stream, &one, NULL));
  CHECK_OK(kiln_dist_reduce_by_key_workspace(comm, t->stream, &own, &bytes));
  lent = lend(t, bytes);
  CHECK_OK(kiln_dist_reduce_by_key(comm, t->stream, &own, &first, &total));
  take_back(t, lent);
  count = download_u64(t, got);
  check_part(t, count, first, total, download_u64(t, want));
  compare(t, own.out.data, one.out.data, first, count, 8);
  compare(t, own.out_keys.data, one.out_keys.data, first, count, 4);
  release(comm, all_keys);
  release(comm, all_x);
  release(comm, keys_block);
  release(comm, x_block);
  release(comm, want);
  release(comm, got);
  free(keys);
  free(x);
}

/* ---- Map and shuffle ----------------------------------------------------- */

static void try_map(const trial *t)
{
  kiln_comm *const comm = t->comm;
  const whole *const w = &t->w;
  const uint64_t factor = mixed(t->seed, 25, 0);
  const kiln_param param = {"factor", KILN_U64, &factor, false};
  const CUdeviceptr out = device_bytes(comm, w->n * 8);
  uint64_t *got = host_bytes(w->n * 8);

  CHECK_OK(kiln_dist_map(
      comm, t->stream,
      &(kiln_map_desc){.out = {{out, KILN_U64}},
                       .expr = {"factor * (first + i) + total"},
                       .n = w->n,
                       .code = {.params = &param, .n_params = 1}}));
  download(comm, got, out, w->n * 8);
  for (uint64_t i = 0; i < w->n; i++)
    CHECK(got[i] == factor * (w->first + i) + w->total);
  release(comm, out);
  free(got);
}

static void try_shuffle(const trial *t)
{
  kiln_comm *const comm = t->comm;
  const whole *const w = &t->w;
  const int ranks = kiln_comm_size(comm);
  uint32_t *x = host_bytes(w->total * 4), *got = host_bytes(w->total * 4);
  CUdeviceptr mine, lent, out = device_bytes(comm, w->total * 4);
  const uint64_t values = 1 + drawn(t, 26, 100);
  uint64_t received = 99, n = 0;
  size_t bytes = 0;
  kiln_split_desc desc;

  for (uint64_t i = 0; i < w->total; i++)
    x[i] = (uint32_t)(mixed(t->seed, 27, i) % values * 64);
  mine = upload_block(w, x, 4);
  desc = (kiln_split_desc){.x = {.in = {{mine, KILN_U32}}},
                           .key = "x / 64",
                           .n = w->n,
                           .out = {out, KILN_U32}};
  CHECK_OK(kiln_dist_split_workspace(comm, t->stream, &desc, &bytes));
  CHECK(bytes >= w->n * 4);
  lent = lend(t, bytes);
  CHECK_OK(kiln_dist_shuffle(comm, t->stream, &desc, w->total, &received));
  take_back(t, lent);
  CHECK(received <= w->total);
  download(comm, got, out, received * 4);
  for (uint64_t i = 0; i < w->total; i++) {
    if (kiln_dist_shuffle_rank(x[i] / 64, ranks) != kiln_comm_rank(comm))
      continue;
    CHECK(n < received && got[n] == x[i]);
    n++;
  }
  CHECK(n == received);
  release(comm, mine);
  release(comm, out);
  free(x);
  free(got);
}

/* ---- Gather and scatter -------------------------------------------------- */

/* An index of a distribution: spread, all for one rank, local, or few values. */
static uint64_t drawn_index(const trial *t, uint64_t i)
{
  const whole *const w = &t->w;
  const uint64_t z = mixed(t->seed, 30, i + w->first);

  switch (drawn(t, 31, 4)) {
  case 0:
    return w->total - 1 - z % (w->total / 8 + 1);
  case 1:
    return (w->first + i) % w->total;
  case 2:
    return z % 3 * (w->total / 3);
  default:
    return z % w->total;
  }
}

static void try_gather(const trial *t)
{
  kiln_comm *const comm = t->comm;
  const whole *const w = &t->w;
  const uint64_t n = w->total == 0 ? 0 : drawn(t, 32, 3) * w->n + w->n / 2;
  const bool wide = thorough() && drawn(t, 33, 2) == 0;
  const bool mapped = drawn(t, 34, 3) == 0;
  uint64_t *x = host_bytes(w->total * 8), *got = host_bytes(n * 8);
  uint64_t *index = host_bytes(n * 8);
  uint32_t *narrow = host_bytes(n * 4);
  CUdeviceptr block, places, lent, out = device_bytes(comm, n * 8);
  size_t bytes = 0;
  kiln_gather_desc desc;

  for (uint64_t i = 0; i < w->total; i++)
    x[i] = mixed(t->seed, 35, i);
  for (uint64_t i = 0; i < n; i++)
    narrow[i] = (uint32_t)(index[i] = drawn_index(t, i));
  block = upload_block(w, x, 8);
  places = wide ? upload(comm, index, n * 8) : upload(comm, narrow, n * 4);
  desc = (kiln_gather_desc){.x = {.in = {{block, KILN_U64}}},
                            .index = {places, wide ? KILN_U64 : KILN_U32},
                            .out = {out, KILN_U64},
                            .n = n,
                            .n_target = w->n};
  if (mapped)
    desc.x.map = "x * 3 + 1";
  CHECK_OK(kiln_dist_gather_workspace(comm, t->stream, &desc, &bytes));
  CHECK(bytes >= n * 12);
  lent = lend(t, bytes);
  CHECK_OK(kiln_dist_gather(comm, t->stream, &desc));
  take_back(t, lent);
  download(comm, got, out, n * 8);
  for (uint64_t i = 0; i < n; i++)
    CHECK(got[i] == (mapped ? x[index[i]] * 3 + 1 : x[index[i]]));
  release(comm, block);
  release(comm, places);
  release(comm, out);
  free(x);
  free(got);
  free(index);
  free(narrow);
}

/* Each value names its index, so of equal indices one of the values must be there
 * as a whole. Elements without an index keep their value. */
static void try_scatter(const trial *t)
{
  kiln_comm *const comm = t->comm;
  const whole *const w = &t->w;
  const uint64_t n = w->total == 0 ? 0 : w->n / 2 + drawn(t, 36, 2) * w->n;
  uint64_t *got = host_bytes(w->n * 8), *values = host_bytes(n * 8);
  uint32_t *index = host_bytes(n * 4), *seen = host_bytes(w->total * 4);
  CUdeviceptr block, places, x, sums;

  for (uint64_t i = 0; i < n; i++) {
    index[i] = (uint32_t)drawn_index(t, i);
    values[i] = (uint64_t)index[i] << 32 | (w->first * 2 + i + 1);
    seen[index[i]] = 1;
  }
  x = upload(comm, values, n * 8);
  places = upload(comm, index, n * 4);
  sums = upload(comm, seen, w->total * 4);
  block = upload(comm, got, w->n * 8);
  CHECK_OK(kiln_comm_all_reduce(comm, t->stream, (kiln_array){sums, KILN_U32},
                                (kiln_array){sums, KILN_U32}, w->total,
                                KILN_MAX));
  CHECK_OK(kiln_dist_scatter(comm, t->stream,
                             &(kiln_scatter_desc){.x = {.in = {{x, KILN_U64}}},
                                                  .index = {places, KILN_U32},
                                                  .out = {block, KILN_U64},
                                                  .n = n,
                                                  .n_target = w->n}));
  download(comm, got, block, w->n * 8);
  download(comm, seen, sums, w->total * 4);
  for (uint64_t i = 0; i < w->n; i++) {
    CHECK((got[i] != 0) == (seen[w->first + i] != 0));
    CHECK(got[i] == 0 || got[i] >> 32 == w->first + i);
  }
  release(comm, block);
  release(comm, places);
  release(comm, x);
  release(comm, sums);
  free(got);
  free(values);
  free(index);
  free(seen);
}

/* ---- Sorts --------------------------------------------------------------- */

/* A key: random, one of few, skewed, ordered, or all equal. */
static uint64_t sort_key(const trial *t, uint64_t i)
{
  const uint64_t z = mixed(t->seed, 70, i);

  switch (drawn(t, 71, 9)) {
  case 6: /* clusters with equal top bits: further histograms divide them */
    return (z >> 40) % 3 << 24 | (z & 0xffff);
  case 4: /* a few equal keys in each bin of the top bits */
    return (z & 0xfff) << 20 | (z & 0xfff) << 52;
  case 7:
    return z & 0xfffff;
  case 8:
    return i < t->w.total / 2 ? 7 : z & 0xfff;
  case 0:
    return 42;
  case 1:
    return z % 10 != 0 ? 7 : z;
  case 2:
    return z % 5 << 29; /* few values */
  case 3:
    return ~i;
  default:
    return z;
  }
}

/* The types of keys and values, and the options of a call. Blocks above the limit
 * for short ones are sorted by the exchange by top bits. */
static kiln_sort_desc drawn_sort(const trial *t)
{
  static const kiln_dtype keys[] = {KILN_U32,  KILN_F32, KILN_I64, KILN_F64,
                                    KILN_BF16, KILN_I8,  KILN_U16, KILN_F16,
                                    KILN_U64,  KILN_I32, KILN_U8,  KILN_I16};
  const kiln_dtype values[] = {KILN_U32, KILN_DTYPE_NONE, KILN_STRUCT(12, 4),
                               KILN_F16, KILN_C128};
  kiln_sort_desc d = {.keys_in = {0, KILN_U32}, .values_in = {0, KILN_U32}};
  unsigned bits;

  if (!thorough())
    return d;
  d.keys_in.type = keys[drawn(t, 72, 12)];
  d.values_in.type = values[drawn(t, 73, 5)];
  d.descending = drawn(t, 74, 2) == 0;
  bits = 8 * (unsigned)kiln_dtype_size(d.keys_in.type);
  if (drawn(t, 75, 4) == 0) {
    d.begin_bit = (unsigned)drawn(t, 76, bits);
    d.end_bit = d.begin_bit + 1 + (unsigned)drawn(t, 77, bits - d.begin_bit);
  }
  return d;
}

static void try_sort(const trial *small)
{
  trial copy = *small;
  const trial *const t = &copy;
  whole *const w = &copy.w;
  kiln_comm *const comm = t->comm;
  kiln_sort_desc one = drawn_sort(t), own = one;
  const size_t key = kiln_dtype_size(one.keys_in.type);
  const size_t value = kiln_dtype_size(one.values_in.type);
  size_t bytes = 0;
  CUdeviceptr lent;
  char *keys, *values;

  if (!thorough() && t->number % 10 != 3)
    return; /* long arrays; the other test of distributed operations sorts short blocks */
  if (w->total < 12000)
    enlarge(w, 20);
  keys = host_bytes(w->total * key);
  values = host_bytes(w->total * value);
  for (uint64_t i = 0; i < w->total; i++) {
    const uint64_t k = sort_key(t, i);

    memcpy(keys + i * key, &k, key);
    memcpy(values + i * value, &i, value < 8 ? value : 8);
  }
  one.n = w->total;
  one.keys_in.data = upload(comm, keys, w->total * key);
  one.values_in.data = upload(comm, values, w->total * value);
  own.n = w->n;
  own.keys_in.data = upload_block(w, keys, key);
  own.values_in.data = upload_block(w, values, value);
  one.keys_out = one.keys_in;
  one.values_out = one.values_in;
  own.keys_out = own.keys_in;
  own.values_out = own.values_in;
  CHECK_OK(kiln_sort(t->stream, &one, NULL));
  CHECK_OK(kiln_dist_sort_workspace(comm, t->stream, &own, &bytes));
  lent = lend(t, bytes);
  CHECK_OK(kiln_dist_sort(comm, t->stream, &own));
  take_back(t, lent);
  compare(t, own.keys_out.data, one.keys_out.data, w->first, w->n, key);
  if (value > 0)
    compare(t, own.values_out.data, one.values_out.data, w->first, w->n, value);
  release(comm, one.keys_in.data);
  release(comm, one.values_in.data);
  release(comm, own.keys_in.data);
  release(comm, own.values_in.data);
  free(keys);
  free(values);
}

/* ---- Matrix products ----------------------------------------------------- */

/* A small integer, so that all sums are exact. */
static int entry(const trial *t, uint64_t matrix, uint64_t row, uint64_t column)
{
  return (int)(mixed(t->seed, 40 + matrix, row << 32 | column) % 7) - 3;
}

static void put(char *to, kiln_dtype type, uint64_t at, int value)
{
  if (type == KILN_I8)
    to[at] = (char)value;
  else if (type == KILN_F64)
    ((double *)(void *)to)[at] = value;
  else
    ((float *)(void *)to)[at] = (float)value;
}

/* Uploads a block of rows x columns elements of a matrix, which begins at (row,
 * column), in a random order in memory and with a random leading dimension. The
 * order depends on `shape` only, which is the same on all ranks. */
static kiln_gemm_matrix upload_matrix(const trial *t, uint64_t matrix,
                                      kiln_dtype type, uint64_t row,
                                      uint64_t column, uint64_t rows,
                                      uint64_t columns)
{
  kiln_comm *const comm = t->comm;
  const uint64_t shape = thorough() ? drawn(t, 45 + matrix, 4) : 0;
  const bool by_columns = (shape & 1) != 0;
  const bool transposed = (shape & 2) != 0 && matrix < 2;
  const bool along = by_columns == transposed; /* rows are consecutive */
  const uint64_t leading = (along ? columns : rows) + drawn(t, 50, 2) * 32;
  const size_t size = kiln_dtype_size(type);
  const uint64_t n = leading * (along ? rows : columns);
  char *x = host_bytes(n * size);
  kiln_gemm_matrix m = {.type = type,
                        .order =
                            by_columns ? KILN_COLUMN_MAJOR : KILN_ROW_MAJOR,
                        .transposed = transposed,
                        .leading = leading};

  for (uint64_t i = 0; i < rows; i++) {
    for (uint64_t j = 0; j < columns; j++)
      put(x, type, along ? i * leading + j : j * leading + i,
          entry(t, matrix, row + i, column + j));
  }
  m.data = upload(comm, x, n * size);
  free(x);
  return m;
}

static double element(const char *x, kiln_dtype type, uint64_t i)
{
  if (type == KILN_I32)
    return ((const int32_t *)(const void *)x)[i];
  if (type == KILN_F64)
    return ((const double *)(const void *)x)[i];
  return (double)((const float *)(const void *)x)[i];
}

/* Compares a block of D with 2 A B + 3 C, and with an epilogue plus the row. */
static void check_product(const trial *t, const kiln_gemm_desc *desc,
                          uint64_t row, uint64_t column)
{
  kiln_comm *const comm = t->comm;
  const size_t size = kiln_dtype_size(desc->d.type);
  char *const got = host_bytes(desc->m * desc->n * size);

  download(comm, got, desc->d.data, desc->m * desc->n * size);
  for (uint64_t i = 0; i < desc->m; i++) {
    for (uint64_t j = 0; j < desc->n; j++) {
      int sum = 0, want;

      for (uint64_t l = 0; l < desc->k; l++)
        sum += entry(t, 0, row + i, l) * entry(t, 1, l, column + j);
      want = 2 * sum + 3 * entry(t, 2, row + i, column + j);
      if (desc->epilogue != NULL)
        want += (int)i;
      CHECK(element(got, desc->d.type, i * desc->n + j) == (double)want);
    }
  }
  free(got);
}

static void try_gemm(const trial *t)
{
  static const uint64_t sizes[] = {0, 64, 32, 16, 1, 5, 33, 17};
  static const uint64_t lengths[] = {0, 64, 16, 1, 3, 100, 37, 2};
  /* few shapes, because kernels depend on the alignment of rows */
  const uint64_t most = thorough() ? 8 : 2;
  static const kiln_dtype types[] = {KILN_F32, KILN_I8, KILN_F64};
  kiln_comm *const comm = t->comm;
  const uint32_t ranks = (uint32_t)kiln_comm_size(comm);
  const uint32_t me = (uint32_t)kiln_comm_rank(comm);
  const kiln_dtype type = types[thorough() ? drawn(t, 51, 3) : 0];
  const bool epilogue = thorough() && drawn(t, 52, 2) == 0;
  uint32_t rows = 1 + (uint32_t)drawn(t, 53, ranks), columns;
  uint64_t row = 0, column = 0, a_length, b_length, a_first, b_first;
  size_t bytes = 0;
  CUdeviceptr lent;
  kiln_gemm_desc desc = {.alpha = 2, .beta = 3};

  while (ranks % rows != 0)
    rows--;
  columns = ranks / rows;
  desc.k = lengths[drawn(t, 54, most)];
  if (thorough() && drawn(t, 55, 20) == 0)
    desc.k = 2500;
  for (uint32_t r = 0; r <= me / columns; r++) {
    row += desc.m;
    desc.m = sizes[mixed(t->seed, 56, r) % most];
  }
  for (uint32_t c = 0; c <= me % columns; c++) {
    column += desc.n;
    desc.n = sizes[mixed(t->seed, 57, c) % most];
  }
  a_first = kiln_dist_part(desc.k, columns, me % columns, &a_length);
  b_first = kiln_dist_part(desc.k, rows, me / columns, &b_length);
  desc.a = upload_matrix(t, 0, type, row, a_first, desc.m, a_length);
  desc.b = upload_matrix(t, 1, type, b_first, column, b_length, desc.n);
  desc.c = upload_matrix(t, 2, type == KILN_I8 ? KILN_F32 : type, row, column,
                         desc.m, desc.n);
  desc.d.type = type == KILN_I8 ? KILN_I32 : type;
  desc.d.data =
      device_bytes(comm, desc.m * desc.n * kiln_dtype_size(desc.d.type));
  desc.epilogue = epilogue ? "acc + row" : NULL;
  CHECK_OK(kiln_dist_gemm_workspace(comm, t->stream, &desc, rows, &bytes));
  lent = lend(t, bytes);
  CHECK_OK(kiln_dist_gemm(comm, t->stream, &desc, rows));
  take_back(t, lent);
  check_product(t, &desc, row, column);
  release(comm, desc.a.data);
  release(comm, desc.b.data);
  release(comm, desc.c.data);
  release(comm, desc.d.data);
}

/* ---- All pairs ----------------------------------------------------------- */

/* Lengths below `most`. */
static whole shrunk(const whole *w, uint64_t most)
{
  whole s = *w;

  s.total = 0;
  for (int r = 0; r < kiln_comm_size(w->comm); r++) {
    s.sizes[r] %= most;
    if (r == kiln_comm_rank(w->comm))
      s.first = s.total;
    s.total += s.sizes[r];
  }
  s.n = s.sizes[kiln_comm_rank(w->comm)];
  return s;
}

/* The value of a pair of the element a with index i and b with index j. */
static uint32_t pair_value(uint32_t a, uint32_t b, uint64_t i, uint64_t j)
{
  return i == j ? 1000000 : (a ^ b) + (uint32_t)(2 * i + j);
}

static void try_pairs(const trial *t)
{
  kiln_comm *const comm = t->comm;
  const whole targets = shrunk(&t->w, 150);
  /* other sources than the targets; few kernels by default */
  const bool apart = thorough() && drawn(t, 60, 2) == 0;
  const bool epilogue = !thorough() || drawn(t, 61, 2) == 0;
  whole sources = targets;
  uint32_t *x = host_bytes(targets.total * 4), *y = x, *got;
  CUdeviceptr tx, sx = 0, out, lent;
  size_t bytes = 0;
  kiln_all_pairs_desc desc = {
      .common = "const unsigned v = first_i + i == first_j + j ? 1000000 : "
                "(t.x ^ s.x) + unsigned(2 * (first_i + i) + first_j + j);",
      .expr = {"v"},
      .n = targets.n};

  for (uint64_t i = 0; i < targets.total; i++)
    x[i] = (uint32_t)mixed(t->seed, 62, i);
  tx = upload_block(&targets, x, 4);
  if (apart) {
    const whole other = blocks(comm, t->stream, mixed(t->seed, 63, 0));

    sources = shrunk(&other, 90);
    y = host_bytes(sources.total * 4);
    for (uint64_t j = 0; j < sources.total; j++)
      y[j] = (uint32_t)mixed(t->seed, 64, j);
    sx = upload_block(&sources, y, 4);
    desc.source[0] = (kiln_array){sx, KILN_U32};
    desc.m = sources.n;
  }
  got = host_bytes(targets.n * 4);
  out = upload(comm, got, targets.n * 4);
  desc.target[0] = (kiln_array){tx, KILN_U32};
  desc.out[0] = (kiln_array){out, KILN_U32};
  desc.epilogue[0] = epilogue ? "r0 * 3 + t.x + unsigned(first_i + i)" : NULL;
  desc.accumulate = !epilogue && (!thorough() || drawn(t, 65, 2) == 0);
  CHECK_OK(kiln_dist_all_pairs_workspace(comm, t->stream, &desc, &bytes));
  lent = lend(t, bytes);
  CHECK_OK(kiln_dist_all_pairs(comm, t->stream, &desc));
  take_back(t, lent);
  download(comm, got, out, targets.n * 4);
  for (uint64_t i = 0; i < targets.n; i++) {
    const uint64_t whole_i = targets.first + i;
    uint32_t want = 0;

    for (uint64_t j = 0; j < sources.total; j++)
      want += pair_value(x[whole_i], y[j], whole_i, j);
    if (epilogue)
      want = want * 3 + x[whole_i] + (uint32_t)whole_i;
    CHECK(got[i] == want);
  }
  release(comm, tx);
  if (apart) {
    release(comm, sx);
    free(y);
  }
  release(comm, out);
  free(x);
  free(got);
}

/* ---- Refusals ------------------------------------------------------------ */

/* What the last rank does wrong: an index out of range, more elements than any
 * memory holds, or a workspace that is too small. */
typedef enum wrong { INDEX, HUGE_COUNT, SMALL_WORKSPACE, WRONGS } wrong;

/* The last rank gets the reason, the others get KILN_ECOMM, and no rank writes its
 * output. */
static void refuse(kiln_comm *comm, kiln_stream *stream, wrong what)
{
  const bool culprit = kiln_comm_rank(comm) + 1 == kiln_comm_size(comm);
  const uint64_t index = culprit && what == INDEX ? UINT64_MAX : 0;
  uint64_t mark = 77;
  const CUdeviceptr x = upload(comm, &mark, 8);
  const CUdeviceptr places = upload(comm, &index, 8);
  const CUdeviceptr out = upload(comm, &mark, 8);
  const kiln_workspace small = {x, 8};
  const bool huge = what == HUGE_COUNT;
  const kiln_gather_desc desc = {.x = {.in = {{x, KILN_U64}}},
                                 .index = {places, KILN_U64},
                                 .out = {out, KILN_U64},
                                 .n = huge && culprit ? (uint64_t)1 << 40 : 1,
                                 .n_target = 1};
  kiln_status st;

  if (culprit && what == SMALL_WORKSPACE)
    CHECK_OK(kiln_dist_set_workspace(comm, &small));
  st = kiln_dist_gather(comm, stream, &desc);
  if (huge) /* the owners of so many elements need memory, too */
    CHECK(st == KILN_EDEVMEM || st == KILN_ECOMM);
  else
    CHECK(st == (culprit ? KILN_EINVAL : KILN_ECOMM));
  download(comm, &mark, out, 8);
  CHECK(mark == 77);
  release(comm, x);
  release(comm, places);
  release(comm, out);
}

/* `user` points to what is wrong. */
static kiln_status refusal_run(kiln_comm *comm, void *user)
{
  kiln_stream *stream = NULL;

  CHECK_OK(kiln_stream_create(&stream, kiln_comm_device(comm), NULL));
  refuse(comm, stream, *(const wrong *)user);
  kiln_stream_free(stream);
  return KILN_OK;
}

/* Runs the refusals in groups of their own, which they break. */
static void try_refusals(void)
{
  kiln_device *const device = open_device(0);
  kiln_device *const devices[] = {device, device, device};
  kiln_comm *comms[3];

  for (wrong what = INDEX; what < WRONGS; what++) {
    need(kiln_comm_create_all(comms, devices, 3, NULL));
    need(kiln_comm_run(comms, 3, refusal_run, &what));
    for (int r = 0; r < 3; r++)
      kiln_comm_free(comms[r]);
  }
  kiln_device_free(device);
  kiln_runtime_free(rank_runtime);
  rank_runtime = NULL;
}

/* ---- All calls ----------------------------------------------------------- */

static void (*const operations[])(const trial *) = {
    try_unique,  try_reduce_by_key, try_map,   try_shuffle, try_gather,
    try_scatter, try_gemm,          try_pairs, try_sort};

/* Ranks of an MPI make fewer calls by default: the same code on another wire. */
static uint64_t calls(const kiln_comm *comm)
{
  const char *const text = getenv("KILN_TEST_RANDOM_CALLS");

  if (text != NULL && atoi(text) > 0)
    return (uint64_t)atoi(text);
  if (thorough())
    return 1000;
  return strcmp(kiln_comm_engine(comm), "local") == 0 ? 20 : 10;
}

static kiln_status ranks_run(kiln_comm *comm, void *user)
{
  kiln_stream *stream = NULL;

  (void)user;
  CHECK_OK(kiln_stream_create(&stream, kiln_comm_device(comm), NULL));
  for (uint64_t call = 0; call < calls(comm); call++) {
    for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
      const uint64_t seed = mixed(call, 28, k);
      trial t = {comm, stream, blocks(comm, stream, seed), seed, call};

      if (thorough() && call % 20 == 19)
        enlarge(&t.w, 20);

      operations[k](&t);
    }
  }
  kiln_stream_free(stream);
  return KILN_OK;
}

/* A few sorts, by lists of cuts that are too long for parameters. */
static kiln_status sorts_run(kiln_comm *comm, void *user)
{
  kiln_stream *stream = NULL;

  (void)user;
  CHECK_OK(kiln_stream_create(&stream, kiln_comm_device(comm), NULL));
  for (uint64_t call = 0; call < 4; call++) {
    const trial t = {comm, stream, blocks(comm, stream, call), call, call};

    try_sort(&t);
  }
  kiln_stream_free(stream);
  return KILN_OK;
}

int main(int argc, char **argv)
{
  if (argc > 1 && strcmp(argv[1], "local") == 0 && thorough()) {
    (void)run_local(11, sorts_run, NULL);
    rank_runtime = NULL;
  }
  if (argc > 1 && strcmp(argv[1], "local") == 0)
    try_refusals();
  return rank_main(argc, argv, ranks_run, NULL);
}
