/* reduce_test.c -- the library's reduction and the lectures' steps on a GPU:
 * any length, alignment, type and operation; special values; same bits; nothing
 * read or written beyond the arguments. */
#include "test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, BLOCK = 512, ITEMS = 4, ALIGN = 256 };

static kiln_runtime *rt;
static kiln_device *device;

static void setup(void)
{
  ck_kiln_ok(test_runtime(&rt, NULL));
  ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
}

static void teardown(void)
{
  kiln_device_free(device);
  kiln_runtime_free(rt);
}

/* ---- One reduction ---------------------------------------------------------------- */

typedef struct reducer {
  kiln_module *module;
  kiln_kernel *kernel;
  CUdeviceptr workspace;
  size_t room;            /* bytes of it that the kernel may use */
  size_t element, folded; /* sizes */
  unsigned most_blocks;
} reducer;

static void open_reducer(reducer *r, const char *const *defines,
                         const char *const *traits, size_t element,
                         size_t folded)
{
  kiln_program_desc desc = {
      .builtin = "reduce", .defines = defines, .traits = traits};
  kiln_device_info info;

  while (defines != NULL && defines[desc.n_defines] != NULL)
    desc.n_defines++;
  while (traits != NULL && traits[desc.n_traits] != NULL)
    desc.n_traits++;
  *r = (reducer){.element = element, .folded = folded};
  ck_kiln_ok(kiln_module_load(&r->module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&r->kernel, r->module, "reduce"));
  ck_kiln_ok(kiln_device_describe(device, &info));
  r->most_blocks = 2 * (unsigned)info.sm_count;
  /* A letter a block, all 0, and a guard behind them. */
  r->room = 2 * folded * r->most_blocks;
  ck_kiln_ok(kiln_memory_alloc(&r->workspace, device, r->room + GUARD));
  ck_kiln_ok(kiln_fill(device, r->workspace, 0, 1, r->room));
  ck_kiln_ok(kiln_fill(device, r->workspace + r->room, 0xa5, 1, GUARD));
}

static void close_reducer(reducer *r)
{
  ck_kiln_ok(kiln_memory_free(device, r->workspace));
  kiln_module_free(r->module);
}

static void all_bytes(const unsigned char *p, size_t n, unsigned char want,
                      const char *what)
{
  for (size_t i = 0; i < n; i++)
    ck_assert_msg(p[i] == want, "%s: byte %zu is %02x", what, i, p[i]);
}

static void launch(reducer *r, CUdeviceptr x, unsigned long long n,
                   unsigned grid, CUdeviceptr result)
{
  const kiln_launch_config config = {.grid = {grid, 1, 1},
                                     .block = {BLOCK, 1, 1}};

  ck_kiln_ok(KILN_LAUNCH(r->kernel, &config, KILN_ARG(x), KILN_ARG(n),
                         KILN_ARG(r->workspace), KILN_ARG(result)));
}

/* Every letter is taken and cleared, and nothing behind them was written. */
static void check_workspace(const reducer *r)
{
  unsigned char *copy = malloc(r->room + GUARD);

  ck_assert_ptr_nonnull(copy);
  ck_kiln_ok(kiln_copy_to_host(device, copy, r->workspace, r->room + GUARD));
  all_bytes(copy, r->room, 0, "workspace");
  all_bytes(copy + r->room, GUARD, 0xa5, "behind the workspace");
  free(copy);
}

/* Fold x[0 .. n) placed `shift` elements after an aligned address, between bytes
 * of `poison` that would show in the result. */
static void reduce_guarded(reducer *r, const void *x, size_t n, size_t shift,
                           unsigned char poison, unsigned grid, void *out)
{
  const size_t bytes = n * r->element, before = ALIGN + shift * r->element;
  const size_t whole = before + bytes + ALIGN;
  unsigned char copy[3 * 16];
  CUdeviceptr input, result;

  ck_kiln_ok(kiln_memory_alloc(&input, device, whole));
  ck_kiln_ok(kiln_memory_alloc(&result, device, sizeof copy));
  ck_kiln_ok(kiln_fill(device, input, poison, 1, whole));
  ck_kiln_ok(kiln_fill(device, result, 0x5a, 1, sizeof copy));
  ck_kiln_ok(kiln_copy_to_device(device, input + before, x, bytes));
  launch(r, input + before, n, grid, result + 16);
  ck_kiln_ok(kiln_device_synchronize(device));
  ck_kiln_ok(kiln_copy_to_host(device, copy, result, sizeof copy));
  all_bytes(copy, 16, 0x5a, "before the result");
  all_bytes(copy + 16 + r->folded, 32 - r->folded, 0x5a, "behind the result");
  memcpy(out, copy + 16, r->folded);
  check_workspace(r);
  ck_kiln_ok(kiln_memory_free(device, input));
  ck_kiln_ok(kiln_memory_free(device, result));
}

/* ---- Types and operations ----------------------------------------------------------- */

typedef enum kind { F32, F64, I32, U32, I64, U64 } kind;
typedef enum operation { SUM, MIN, MAX, PROD, AND, OR, XOR } operation;

typedef union number {
  float f32;
  double f64;
  int32_t i32;
  uint32_t u32;
  int64_t i64;
  uint64_t u64;
} number;

static const size_t sizes[] = {4, 8, 4, 4, 8, 8};
static const char wide_unsigned[] = "KILN_T=unsigned long long";
static const char *const types[] = {"KILN_T=float",     "KILN_T=double",
                                    "KILN_T=int",       "KILN_T=unsigned",
                                    "KILN_T=long long", wide_unsigned};
static const char *const operations[] = {
    "KILN_OP=sum",     "KILN_OP=min",    "KILN_OP=max",    "KILN_OP=prod",
    "KILN_OP=bit_and", "KILN_OP=bit_or", "KILN_OP=bit_xor"};

static const struct {
  kind kind;
  operation op;
} pairs[] = {{F32, SUM},  {F32, MIN},  {F32, MAX},  {F32, PROD}, {F64, SUM},
             {F64, MIN},  {F64, MAX},  {F64, PROD}, {I32, SUM},  {I32, MIN},
             {I32, MAX},  {I32, PROD}, {U32, SUM},  {U32, MIN},  {U32, MAX},
             {U32, PROD}, {U32, AND},  {U32, OR},   {I32, XOR},  {I64, SUM},
             {I64, MIN},  {I64, MAX},  {I64, PROD}, {U64, SUM},  {U64, MIN},
             {U64, MAX},  {U64, PROD}, {U64, XOR}};

enum { N_PAIRS = sizeof pairs / sizeof pairs[0] };

/* Values whose folds are exact in any order. */
static number random_number(kind k, operation op, uint64_t *state)
{
  const uint64_t r = test_random(state);
  const int sign = r & 1 ? 1 : -1;
  number v = {0};

  switch (k) {
  case F32:
    v.f32 = op == PROD ? (float)sign : (float)((int)(r >> 8 & 15) * sign);
    break;
  case F64:
    v.f64 = op == PROD ? sign : (double)((int64_t)(r >> 34) * sign);
    break;
  case I32:
  case U32:
    v.u32 = op == PROD ? (uint32_t)r | 1 : (uint32_t)(r >> 9);
    break;
  default:
    v.u64 = op == PROD ? r | 1 : r;
    break;
  }
  return v;
}

#define FOLD_NUMBER(member)                                                    \
  r.member = op == SUM    ? a.member + b.member                                \
             : op == PROD ? a.member * b.member                                \
             : op == MIN  ? (b.member < a.member ? b.member : a.member)        \
                          : (a.member < b.member ? b.member : a.member)

static number fold(kind k, operation op, number a, number b)
{
  number r = {0};

  if (op >= AND) {
    r.u64 = op == AND  ? a.u64 & b.u64
            : op == OR ? a.u64 | b.u64
                       : a.u64 ^ b.u64;
    return r;
  }
  if (k == F32)
    FOLD_NUMBER(f32);
  else if (k == F64)
    FOLD_NUMBER(f64);
  else if (op == SUM)
    r.u64 = a.u64 + b.u64; /* wraps, as on the GPU */
  else if (op == PROD)
    r.u64 = a.u64 * b.u64;
  else if (k == I32)
    FOLD_NUMBER(i32);
  else if (k == U32)
    FOLD_NUMBER(u32);
  else if (k == I64)
    FOLD_NUMBER(i64);
  else
    FOLD_NUMBER(u64);
  return r;
}

static number identity(kind k, operation op)
{
  const bool is_min = op == MIN;
  number v = {0};

  if (op == SUM || op == OR || op == XOR)
    return v;
  if (op == AND) {
    v.u64 = UINT64_MAX;
    return v;
  }
  if (k == F32)
    v.f32 = op == PROD ? 1 : is_min ? INFINITY : -INFINITY;
  else if (k == F64)
    v.f64 = op == PROD ? 1 : is_min ? INFINITY : -INFINITY;
  else if (op == PROD)
    v.u64 = 1;
  else if (k == I32)
    v.i32 = is_min ? INT32_MAX : INT32_MIN;
  else if (k == U32)
    v.u32 = is_min ? UINT32_MAX : 0;
  else if (k == I64)
    v.i64 = is_min ? INT64_MAX : INT64_MIN;
  else
    v.u64 = is_min ? UINT64_MAX : 0;
  return v;
}

/* 8192 elements of 4 bytes, 4096 of 8, are a block's round. */
static const size_t lengths[] = {0,    1,    2,    3,    31,   32,    33,
                                 255,  256,  257,  1023, 1024, 1025,  4095,
                                 4096, 4097, 8191, 8192, 8193, 16385, 100003};

enum { N_LENGTHS = sizeof lengths / sizeof lengths[0], PRIME = 1048583 };

/* Bytes that change the result wherever they are folded in: a NaN, or the far
 * end of the range. */
static unsigned char poison(kind k, operation op)
{
  const bool is_signed = k == I32 || k == I64;

  if (k == F32 || k == F64)
    return 0xff;
  switch (op) {
  case MIN:
    return is_signed ? 0x80 : 0;
  case MAX:
    return is_signed ? 0x7f : 0xff;
  case PROD:
  case AND:
    return 0;
  default:
    return 0xff;
  }
}

static void check_length(reducer *r, kind k, operation op, size_t n,
                         size_t shift, unsigned grid, uint64_t *state)
{
  unsigned char *x = malloc(n * r->element + 1);
  number want = identity(k, op), got = {0};

  ck_assert_ptr_nonnull(x);
  for (size_t i = 0; i < n; i++) {
    const number v = random_number(k, op, state);

    memcpy(x + i * r->element, &v, r->element);
    want = fold(k, op, want, v);
  }
  reduce_guarded(r, x, n, shift, poison(k, op), grid, &got);
  ck_assert_msg(memcmp(&got, &want, r->folded) == 0,
                "%s %s, n %zu, shift %zu, grid %u: got %llx, want %llx",
                types[k], operations[op], n, shift, grid,
                (unsigned long long)got.u64, (unsigned long long)want.u64);
  free(x);
}

#define SMALL "KILN_SMALL=1"

static void check_pair(kind k, operation op, const char *const *traits,
                       const char *further)
{
  const char *const defines[] = {types[k], operations[op], further, NULL};
  const bool aligned = strcmp(further, SMALL) == 0; /* x has to be */
  const size_t shifts = aligned ? 1 : 16 / sizes[k];
  uint64_t state = 17 + (uint64_t)k * 8 + (uint64_t)op;
  reducer r;

  open_reducer(&r, defines, traits, sizes[k], sizes[k]);
  for (size_t i = 0; i < N_LENGTHS; i++)
    for (size_t shift = 0; shift < shifts; shift++)
      check_length(&r, k, op, lengths[i], shift, 1 + (unsigned)(i + shift) % 4,
                   &state);
  check_length(&r, k, op, PRIME, shifts - 1, r.most_blocks, &state);
  check_length(&r, k, op, PRIME, 0, 1, &state);
  check_length(&r, k, op, 1000, shifts - 1, r.most_blocks, &state);
  close_reducer(&r);
}

START_TEST(every_type_operation_and_length)
{
  check_pair(pairs[_i].kind, pairs[_i].op, NULL, "KILN_EVEN=0");
}
END_TEST

START_TEST(contiguous_shares)
{
  check_pair(F32, SUM, NULL, "KILN_EVEN=1");
  check_pair(I64, MAX, NULL, "KILN_EVEN=1");
}
END_TEST

START_TEST(small_and_aligned)
{
  check_pair(F32, SUM, NULL, SMALL);
  check_pair(F64, MAX, NULL, SMALL);
  check_pair(U32, XOR, NULL, SMALL);
}
END_TEST

/* The longest array here is above 1 MiB: both ranks are used. */
START_TEST(ranked_loads)
{
  check_pair(F32, SUM, NULL, "KILN_KEEP=1");
  check_pair(I64, MIN, NULL, "KILN_KEEP=1");
}
END_TEST

START_TEST(many_loads_in_flight)
{
  check_pair(F32, SUM, NULL, "KILN_ITEMS=8");
  check_pair(I32, SUM, NULL, "KILN_ITEMS=1");
}
END_TEST

START_TEST(old_bodies)
{
  static const char *const no_shuffle[] = {"KILN_HAS_SHFL=0",
                                           "KILN_HAS_REDUX=0", NULL};
  static const char *const lock_step[] = {"KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0",
                                          "KILN_HAS_ITS=0", NULL};
  static const char *const no_redux[] = {"KILN_HAS_REDUX=0", NULL};

  check_pair(F32, SUM, no_shuffle, "KILN_EVEN=0");
  check_pair(F64, MAX, no_shuffle, "KILN_EVEN=0");
  if (lock_step_bodies_run(kiln_device_traits(device))) {
    check_pair(F32, SUM, lock_step, "KILN_EVEN=0");
    check_pair(F64, MAX, lock_step, "KILN_EVEN=0");
  }
  check_pair(I32, SUM, no_redux, "KILN_EVEN=0");
}
END_TEST

/* ---- Special values ------------------------------------------------------------------ */

static float fold_special(operation op, float filler, size_t at_a, float a,
                          size_t at_b, float b)
{
  enum { N = 20011 };
  const char *const defines[] = {types[F32], operations[op], NULL};
  float *x = malloc(N * sizeof *x), got;
  reducer r;

  ck_assert_ptr_nonnull(x);
  open_reducer(&r, defines, NULL, 4, 4);
  for (size_t i = 0; i < N; i++)
    x[i] = filler;
  x[at_a] = a;
  x[at_b] = b;
  reduce_guarded(&r, x, N, 1, 0, 3, &got);
  close_reducer(&r);
  free(x);
  return got;
}

START_TEST(special_floats)
{
  /* In what precedes the first 16-byte boundary, amid, and in the tail. */
  static const size_t places[] = {0, 2, 3, 9999, 20008, 20010};

  for (size_t i = 0; i < 6; i++) {
    const size_t p = places[i], q = places[(i + 3) % 6];

    ck_assert(isnan(fold_special(SUM, 1, p, NAN, q, 1)));
    ck_assert(isnan(fold_special(MIN, 1, p, NAN, q, -INFINITY)));
    ck_assert(isnan(fold_special(MAX, 1, p, NAN, q, INFINITY)));
    ck_assert(isnan(fold_special(SUM, 1, p, INFINITY, q, -INFINITY)));
    ck_assert(fold_special(SUM, 1, p, INFINITY, q, 1) == INFINITY);
    ck_assert(fold_special(MIN, INFINITY, p, 5, q, 7) == 5);
    ck_assert(fold_special(MAX, -INFINITY, p, 5, q, 7) == 7);
    ck_assert(fold_special(MIN, INFINITY, p, INFINITY, q, INFINITY) ==
              INFINITY);
    ck_assert(signbit(fold_special(MIN, 0.0f, p, -0.0f, q, 0.0f)));
    ck_assert(!signbit(fold_special(MAX, -0.0f, p, 0.0f, q, -0.0f)));
  }
}
END_TEST

/* ---- Accuracy, and the same bits again ------------------------------------------------ */

static float *uniform(size_t n, double *sum)
{
  float *x = malloc(n * sizeof *x);
  uint64_t state = 4711;

  ck_assert_ptr_nonnull(x);
  *sum = 0;
  for (size_t i = 0; i < n; i++) {
    x[i] = 24.0f + 36.0f * ((float)(test_random(&state) >> 41) * 0x1p-23f);
    *sum += (double)x[i];
  }
  return x;
}

START_TEST(accurate_and_repeatable)
{
  enum { N = (1 << 24) + 3, LAUNCHES = 50 };
  double sum;
  float *x = uniform(N, &sum), got[LAUNCHES];
  CUdeviceptr input, results;
  reducer r;

  open_reducer(&r, NULL, NULL, 4, 4);
  ck_kiln_ok(kiln_memory_alloc(&input, device, N * sizeof *x));
  ck_kiln_ok(kiln_memory_alloc(&results, device, sizeof got));
  ck_kiln_ok(kiln_copy_to_device(device, input, x, N * sizeof *x));
  for (unsigned i = 0; i < LAUNCHES; i++) /* one after the other, no clearing */
    launch(&r, input, N, r.most_blocks, results + i * sizeof *got);
  ck_kiln_ok(kiln_copy_to_host(device, got, results, sizeof got));
  ck_assert_double_le(fabs((double)got[0] - sum) / sum, 1e-6);
  for (unsigned i = 1; i < LAUNCHES; i++)
    ck_assert_mem_eq(&got[i], &got[0], sizeof *got);
  check_workspace(&r);
  ck_kiln_ok(kiln_memory_free(device, input));
  ck_kiln_ok(kiln_memory_free(device, results));
  close_reducer(&r);
  free(x);
}
END_TEST

START_TEST(wider_accumulator)
{
  enum { N = 300007 };
  static const char *const doubles[] = {"KILN_T=float", "KILN_ACC=double",
                                        NULL};
  static const char *const longs[] = {"KILN_T=int", "KILN_ACC=long long", NULL};
  double sum, got;
  float *x = uniform(N, &sum);
  int32_t *y = malloc(N * sizeof *y);
  int64_t whole = 0, got_whole;
  reducer r;

  ck_assert_ptr_nonnull(y);
  open_reducer(&r, doubles, NULL, 4, 8);
  reduce_guarded(&r, x, N, 3, 0xff, 7, &got);
  ck_assert_double_le(fabs(got - sum) / sum, 1e-14);
  close_reducer(&r);
  for (int i = 0; i < N; i++)
    whole += y[i] = INT32_MAX - i;
  open_reducer(&r, longs, NULL, 4, 8);
  reduce_guarded(&r, y, N, 1, 0xff, 5, &got_whole);
  ck_assert_int_eq(got_whole, whole);
  close_reducer(&r);
  free(x);
  free(y);
}
END_TEST

/* ---- The lectures' steps -------------------------------------------------------------- */

static const struct {
  const char *name;
  unsigned block, elements; /* a thread; 0: one block does it all */
} rungs[] = {
    {"reduce_one_thread", 1, 0},       {"reduce_atomic_global", 256, 1},
    {"reduce_atomic_shared", 256, 1},  {"reduce_shared", 256, 1},
    {"reduce_shared_shuffle", 256, 1}, {"reduce_final", 256, 2},
    {"reduce_block", 1024, 0},         {"reduce_grid_atomic", 1024, 2},
    {"reduce_grid_local", 1024, 2},    {"reduce_warp", 512, 1},
};

enum { N_RUNGS = sizeof rungs / sizeof rungs[0] };

static void check_rung(kiln_kernel *kernel, size_t rung, unsigned n)
{
  const unsigned each = rungs[rung].block * rungs[rung].elements;
  const kiln_launch_config config = {
      .grid = {each == 0 ? 1 : n / each + 1, 1, 1},
      .block = {rungs[rung].block, 1, 1}};
  float *x = malloc((n + 1) * sizeof *x), sum = 0, got[3];
  const float start[] = {-7, 100, -9}; /* what was there before is added to */
  uint64_t state = n + 1;
  CUdeviceptr input, result, at;

  ck_assert_ptr_nonnull(x);
  for (unsigned i = 0; i < n; i++) {
    x[i] = (float)(test_random(&state) % 16); /* exact in any order */
    sum += x[i];
  }
  x[n] = 1e6f; /* must not be read */
  ck_kiln_ok(kiln_memory_alloc(&input, device, (n + 1) * sizeof *x));
  ck_kiln_ok(kiln_memory_alloc(&result, device, sizeof got));
  ck_kiln_ok(kiln_copy_to_device(device, input, x, (n + 1) * sizeof *x));
  ck_kiln_ok(kiln_copy_to_device(device, result, start, sizeof start));
  at = result + sizeof(float);
  ck_kiln_ok(
      KILN_LAUNCH(kernel, &config, KILN_ARG(input), KILN_ARG(n), KILN_ARG(at)));
  ck_kiln_ok(kiln_copy_to_host(device, got, result, sizeof got));
  ck_assert_msg(got[1] == 100 + sum && got[0] == -7 && got[2] == -9,
                "%s, n %u: %g, want %g", rungs[rung].name, n, (double)got[1],
                (double)(100 + sum));
  ck_kiln_ok(kiln_memory_free(device, input));
  ck_kiln_ok(kiln_memory_free(device, result));
  free(x);
}

START_TEST(steps_of_the_ladder)
{
  static const unsigned ns[] = {0,   1,   31,   255,  256,  257,  511,
                                512, 513, 1025, 2047, 2048, 2049, 100003};
  char name[64];
  kiln_program_desc desc = {.builtin = name};
  kiln_module *module = NULL;
  kiln_kernel *kernel = NULL;

  snprintf(name, sizeof name, "ladder/%s", rungs[_i].name);
  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, rungs[_i].name));
  for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
    check_rung(kernel, (size_t)_i, ns[i]);
  kiln_module_free(module);
}
END_TEST

static Suite *reduce(void)
{
  Suite *s = suite_create("reduce");
  TCase *t = tcase_create("reduce");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, every_type_operation_and_length, 0, N_PAIRS);
  tcase_add_test(t, contiguous_shares);
  tcase_add_test(t, small_and_aligned);
  tcase_add_test(t, ranked_loads);
  tcase_add_test(t, many_loads_in_flight);
  tcase_add_test(t, old_bodies);
  tcase_add_test(t, special_floats);
  tcase_add_test(t, accurate_and_repeatable);
  tcase_add_test(t, wider_accumulator);
  tcase_add_loop_test(t, steps_of_the_ladder, 0, N_RUNGS);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(reduce)
