/* collectives_ranks.c -- all collectives, types and operations with random
 * counts, empty ones too. Each rank computes what all ranks passed in, and
 * compares every element. Sums of small integers are exact in every type. */
#include "rank_main.h"

#include <math.h>

static int size_of(kiln_dtype type)
{
  return (int)kiln_dtype_size(type);
}

static bool is_unsigned(kiln_dtype t)
{
  return t == KILN_U8 || t == KILN_U16 || t == KILN_U32 || t == KILN_U64;
}

static kiln_op_name op_for(kiln_dtype type, uint64_t seed)
{
  const uint64_t ops = type >= KILN_C64 ? 2 : type >= KILN_F16 ? 4 : 7;

  return (kiln_op_name)(mixed(seed, 77, 0) % ops);
}

/* Element i of rank r in call `seed`: -2 to 2, or 0 to 4 if unsigned. Factors of
 * floating-point products are 0 to 2, so that no product is -0. */
static int64_t value_of(kiln_dtype type, uint64_t seed, int r, uint64_t i)
{
  const int64_t v = (int64_t)(mixed(seed, (uint64_t)r, i) % 5);

  if (type >= KILN_F16 && op_for(type, seed) == KILN_PROD)
    return v % 3;
  return is_unsigned(type) ? v : v - 2;
}

/* The bits of a small integer as f16. */
static uint16_t f16_bits(int64_t v)
{
  const uint64_t m = (uint64_t)(v < 0 ? -v : v);
  int e = 0;

  if (m == 0)
    return 0;
  while (m >> (e + 1) != 0)
    e++;
  return (uint16_t)((v < 0 ? 0x8000 : 0) | (e + 15) << 10 |
                    (int)(m << 10 >> e & 0x3ff));
}

/* Stores v as element i of an array. The imaginary part of a complex number
 * is 0. */
static void store(kiln_dtype type, void *array, uint64_t i, int64_t v)
{
  char *const p = (char *)array + i * kiln_dtype_size(type);
  const float f = (float)v;
  const double d = (double)v;
  uint32_t bits;
  uint16_t h;

  memcpy(&bits, &f, 4);
  if (type >= KILN_I8 && type <= KILN_U64) {
    memcpy(p, &v, kiln_dtype_size(type));
  } else if (type == KILN_F16 || type == KILN_BF16) {
    h = type == KILN_F16 ? f16_bits(v) : (uint16_t)(bits >> 16);
    memcpy(p, &h, 2);
  } else if (type == KILN_F32 || type == KILN_C64) {
    memset(p, 0, kiln_dtype_size(type));
    memcpy(p, &f, 4);
  } else {
    memset(p, 0, kiln_dtype_size(type));
    memcpy(p, &d, 8);
  }
}

static int64_t apply(kiln_op_name op, int64_t a, int64_t b)
{
  switch (op) {
  case KILN_SUM:
    return a + b;
  case KILN_PROD:
    return a * b;
  case KILN_MIN:
    return a < b ? a : b;
  case KILN_MAX:
    return a > b ? a : b;
  case KILN_AND:
    return a & b;
  case KILN_OR:
    return a | b;
  default:
    return a ^ b;
  }
}

static int64_t combined(kiln_comm *comm, kiln_dtype type, kiln_op_name op,
                        uint64_t seed, uint64_t i)
{
  int64_t v = value_of(type, seed, 0, i);

  for (int r = 1; r < kiln_comm_size(comm); r++)
    v = apply(op, v, value_of(type, seed, r, i));
  return v;
}

/* One call: its type, arrays and counts. */
typedef struct trial {
  kiln_stream *stream;
  kiln_dtype type;
  kiln_op_name op;
  uint64_t seed, n;
  uint64_t counts[MOST_RANKS];
  int root;
  void *host, *want;
  kiln_array in, out;
} trial;

static void begin(kiln_comm *comm, trial *t, uint64_t seed)
{
  static const uint64_t sizes[] = {0, 1, 3, 17, 1000, 5000};
  const uint64_t n_sizes = sizeof sizes / sizeof *sizes;
  const int me = kiln_comm_rank(comm);

  t->seed = seed;
  t->type = (kiln_dtype)(KILN_I8 + (int)(seed % 14));
  t->op = op_for(t->type, seed);
  t->root = (int)(mixed(seed, 78, 0) % (uint64_t)kiln_comm_size(comm));
  t->n = 0;
  for (int r = 0; r < kiln_comm_size(comm); r++) {
    const uint64_t block = seed % 3 == 0 ? 0 : (uint64_t)r; /* or all equal */

    t->counts[r] = sizes[mixed(seed, 79, block) % n_sizes];
    t->n += t->counts[r];
  }
  t->host = host_bytes(t->n * kiln_dtype_size(t->type));
  t->want = host_bytes(t->n * kiln_dtype_size(t->type));
  for (uint64_t i = 0; i < t->n; i++)
    store(t->type, t->host, i, value_of(t->type, seed, me, i));
  t->in = (kiln_array){upload(comm, t->host, t->n * kiln_dtype_size(t->type)),
                       t->type};
  memset(t->host, 0xa5, t->n * kiln_dtype_size(t->type));
  t->out = (kiln_array){upload(comm, t->host, t->n * kiln_dtype_size(t->type)),
                        t->type};
}

/* Compares n elements of `out` with t->want, and frees the arrays. */
static void end(kiln_comm *comm, trial *t, kiln_array out, uint64_t n,
                const char *what)
{
  const size_t size = n * kiln_dtype_size(t->type);

  download(comm, t->host, out.data, size);
  if (memcmp(t->host, t->want, size) != 0)
    printf("%s of %s, operation %d, seed %llu\n", what,
           kiln_dtype_name(t->type), (int)t->op, (unsigned long long)t->seed);
  CHECK(memcmp(t->host, t->want, size) == 0);
  release(comm, t->in.data);
  release(comm, t->out.data);
  free(t->host);
  free(t->want);
}

static uint64_t start_of(const trial *t, int r)
{
  uint64_t at = 0;

  for (int p = 0; p < r; p++)
    at += t->counts[p];
  return at;
}

static void try_all_reduce(kiln_comm *comm, trial *t, uint64_t seed)
{
  begin(comm, t, seed);
  if (seed % 3 == 0) /* in place */
    CHECK_OK(kiln_comm_all_reduce(comm, t->stream, t->in, t->in, t->n, t->op));
  else
    CHECK_OK(kiln_comm_all_reduce(comm, t->stream, t->in, t->out, t->n, t->op));
  for (uint64_t i = 0; i < t->n; i++)
    store(t->type, t->want, i, combined(comm, t->type, t->op, seed, i));
  end(comm, t, seed % 3 == 0 ? t->in : t->out, t->n, "all-reduce");
}

static void try_reduce(kiln_comm *comm, trial *t, uint64_t seed)
{
  const kiln_array none = {0};
  const bool root = (begin(comm, t, seed), kiln_comm_rank(comm) == t->root);

  CHECK_OK(kiln_comm_reduce(comm, t->stream, t->in, root ? t->out : none, t->n,
                            t->op, t->root));
  for (uint64_t i = 0; i < t->n; i++)
    store(t->type, t->want, i, combined(comm, t->type, t->op, seed, i));
  end(comm, t, t->out, root ? t->n : 0, "reduce");
}

static void try_broadcast(kiln_comm *comm, trial *t, uint64_t seed)
{
  begin(comm, t, seed);
  CHECK_OK(kiln_comm_broadcast(comm, t->stream, t->in, t->n, t->root));
  for (uint64_t i = 0; i < t->n; i++)
    store(t->type, t->want, i, value_of(t->type, seed, t->root, i));
  end(comm, t, t->in, t->n, "broadcast");
}

static void try_all_gather(kiln_comm *comm, trial *t, uint64_t seed)
{
  begin(comm, t, seed);
  CHECK_OK(kiln_comm_all_gather(comm, t->stream, t->in, t->out, t->counts));
  for (int r = 0; r < kiln_comm_size(comm); r++) {
    for (uint64_t i = 0; i < t->counts[r]; i++)
      store(t->type, t->want, start_of(t, r) + i,
            value_of(t->type, seed, r, i));
  }
  end(comm, t, t->out, t->n, "all-gather");
}

static void try_reduce_scatter(kiln_comm *comm, trial *t, uint64_t seed)
{
  uint64_t at;

  begin(comm, t, seed);
  at = start_of(t, kiln_comm_rank(comm));
  CHECK_OK(kiln_comm_reduce_scatter(comm, t->stream, t->in, t->out, t->counts,
                                    t->op));
  for (uint64_t i = 0; i < t->counts[kiln_comm_rank(comm)]; i++)
    store(t->type, t->want, i, combined(comm, t->type, t->op, seed, at + i));
  end(comm, t, t->out, t->counts[kiln_comm_rank(comm)], "reduce-scatter");
}

/* Rank r sends counts[(r + q) % ranks] elements to rank q. */
static void try_all_to_all(kiln_comm *comm, trial *t, uint64_t seed)
{
  const int me = kiln_comm_rank(comm), ranks = kiln_comm_size(comm);
  uint64_t sends[MOST_RANKS], receives[MOST_RANKS], got[MOST_RANKS];
  uint64_t n = 0;

  begin(comm, t, seed);
  for (int q = 0; q < ranks; q++)
    sends[q] = receives[q] = t->counts[(me + q) % ranks];
  CHECK_OK(kiln_comm_all_to_all(comm, t->stream, t->in, sends, t->out,
                                seed % 2 == 0 ? receives : NULL, t->n, got));
  for (int r = 0; r < ranks; r++) {
    uint64_t at = 0;

    CHECK(got[r] == receives[r]);
    for (int q = 0; q < me; q++)
      at += t->counts[(r + q) % ranks];
    for (uint64_t i = 0; i < receives[r]; i++)
      store(t->type, t->want, n++, value_of(t->type, seed, r, at + i));
  }
  CHECK(n == t->n);
  end(comm, t, t->out, t->n, "all-to-all");
}

/* A ring: even ranks send first. */
static void try_pairs(kiln_comm *comm, trial *t, uint64_t seed)
{
  const int me = kiln_comm_rank(comm), ranks = kiln_comm_size(comm);
  const int after = (me + 1) % ranks, before = (me + ranks - 1) % ranks;

  begin(comm, t, seed);
  for (int step = 0; step < 2 && ranks > 1; step++) {
    if ((me % 2 == 0) == (step == 0))
      CHECK_OK(kiln_comm_send(comm, t->stream, t->in, t->n, after));
    else
      CHECK_OK(kiln_comm_receive(comm, t->stream, t->out, t->n, before));
  }
  for (uint64_t i = 0; i < t->n; i++)
    store(t->type, t->want, i, value_of(t->type, seed, before, i));
  end(comm, t, t->out, ranks > 1 && ranks % 2 == 0 ? t->n : 0, "ring");
}

static void try_share(kiln_comm *comm)
{
  uint64_t mine = (uint64_t)kiln_comm_rank(comm) * 1000003, all[MOST_RANKS];

  CHECK_OK(kiln_comm_share(comm, &mine, sizeof mine, all));
  for (int r = 0; r < kiln_comm_size(comm); r++)
    CHECK(all[r] == (uint64_t)r * 1000003);
  CHECK_OK(kiln_comm_share(comm, NULL, 0, NULL));
  CHECK_OK(kiln_comm_barrier(comm));
}

/* Sums that round: in the order of the ranks. NaN and the zeros. */
static void try_floats(kiln_comm *comm, trial *t)
{
  const int me = kiln_comm_rank(comm), ranks = kiln_comm_size(comm);
  float x[4], sum[4], least[4], want = 1.0f / 3;
  CUdeviceptr p, q;

  x[0] = 1.0f / (float)(3 + 7 * me);
  x[1] = me == ranks - 1 ? NAN : 1;
  x[2] = me == 0 ? 0.0f : -0.0f;
  x[3] = (float)me;
  p = upload(comm, x, sizeof x);
  q = device_bytes(comm, sizeof x);
  CHECK_OK(kiln_comm_all_reduce(comm, t->stream, (kiln_array){p, KILN_F32},
                                (kiln_array){q, KILN_F32}, 4, KILN_SUM));
  download(comm, sum, q, sizeof x);
  CHECK_OK(kiln_comm_all_reduce(comm, t->stream, (kiln_array){p, KILN_F32},
                                (kiln_array){q, KILN_F32}, 4, KILN_MIN));
  download(comm, least, q, sizeof x);
  for (int r = 1; r < ranks; r++)
    want += 1.0f / (float)(3 + 7 * r);
  CHECK(memcmp(&sum[0], &want, sizeof want) == 0);
  CHECK(isnan(sum[1]) && isnan(least[1]));
  CHECK(least[2] == 0 && (ranks == 1 || signbit(least[2])));
  CHECK(least[3] == 0);
  release(comm, p);
  release(comm, q);
}

/* Blocks of several chunks, also of 3-byte structs, which no chunk divides. */
static void try_large(kiln_comm *comm, trial *t)
{
  const kiln_dtype type = KILN_STRUCT(3, 1);
  const uint64_t n = 1000003, size = 3 * n;
  uint8_t *bytes = host_bytes(size);
  CUdeviceptr p;

  for (uint64_t i = 0; i < size; i++)
    bytes[i] = (uint8_t)mixed(5, (uint64_t)kiln_comm_rank(comm), i);
  p = upload(comm, bytes, size);
  CHECK_OK(kiln_comm_broadcast(comm, t->stream, (kiln_array){p, type}, n, 0));
  download(comm, bytes, p, size);
  for (uint64_t i = 0; i < size; i++)
    CHECK(bytes[i] == (uint8_t)mixed(5, 0, i));
  CHECK_OK(kiln_comm_all_reduce(comm, t->stream, (kiln_array){p, KILN_U8},
                                (kiln_array){p, KILN_U8}, size, KILN_SUM));
  download(comm, bytes, p, size);
  for (uint64_t i = 0; i < size; i++)
    CHECK(bytes[i] ==
          (uint8_t)(mixed(5, 0, i) * (uint64_t)kiln_comm_size(comm)));
  release(comm, p);
  free(bytes);
}

static kiln_status ranks_run(kiln_comm *comm, void *user)
{
  const uint64_t calls = thorough() ? 1000 : 28;
  trial t = {0};

  (void)user;
  CHECK(size_of(KILN_STRUCT(3, 1)) == 3);
  CHECK_OK(kiln_stream_create(&t.stream, kiln_comm_device(comm), NULL));
  for (uint64_t seed = 0; seed < calls; seed++) {
    try_all_reduce(comm, &t, seed);
    try_reduce(comm, &t, seed);
    try_broadcast(comm, &t, seed);
    try_all_gather(comm, &t, seed);
    try_reduce_scatter(comm, &t, seed);
    try_all_to_all(comm, &t, seed);
    try_pairs(comm, &t, seed);
  }
  try_share(comm);
  try_floats(comm, &t);
  try_large(comm, &t);
  kiln_stream_free(t.stream);
  return KILN_OK;
}

int main(int argc, char **argv)
{
  return rank_main(argc, argv, ranks_run, NULL);
}
