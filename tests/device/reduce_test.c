/* reduce_test.c -- the library's reduction kernel and the steps of the
 * lectures: any length, alignment, type and operation; special values;
 * reproducible bits; no access outside the arguments. */
#include "reference_ops.h"

enum { BLOCK = 512 };

/* ---- One reduction ------------------------------------------------------- */

typedef struct reducer {
  kiln_module *module;
  kiln_kernel *kernel;
  test_array workspace;
  kiln_dtype type, acc;
  unsigned most_blocks;
} reducer;

static reducer open_reducer(kiln_dtype type, kiln_dtype acc,
                            const char *const *defines,
                            const char *const *traits)
{
  kiln_program_desc desc = {
      .builtin = "reduce", .defines = defines, .traits = traits};
  reducer r = {.type = type, .acc = acc};
  kiln_device_info info;

  while (defines != NULL && defines[desc.n_defines] != NULL)
    desc.n_defines++;
  while (traits != NULL && traits[desc.n_traits] != NULL)
    desc.n_traits++;
  ck_kiln_ok(kiln_module_load(&r.module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&r.kernel, r.module, "reduce"));
  ck_kiln_ok(kiln_device_describe(device, &info));
  r.most_blocks = 2 * (unsigned)info.sm_count;
  /* The workspace holds one descriptor per block, all of them 0. */
  r.workspace = array_make(acc, 2 * (size_t)r.most_blocks, 0, NULL, 0);
  return r;
}

static void launch(reducer *r, CUdeviceptr x, unsigned long long n,
                   unsigned grid, CUdeviceptr result)
{
  const kiln_launch_config config = {.grid = {grid, 1, 1},
                                     .block = {BLOCK, 1, 1}};
  const CUdeviceptr workspace = r->workspace.array.data;

  ck_kiln_ok(KILN_LAUNCH(r->kernel, &config, KILN_ARG(x), KILN_ARG(n),
                         KILN_ARG(workspace), KILN_ARG(result)));
}

/* Checks that every descriptor was read and cleared again, and that nothing
 * behind them was written. */
static void check_workspace(const reducer *r)
{
  const unsigned char *copy = kept(array_read(&r->workspace));

  for (size_t i = 0; i < r->workspace.n * r->workspace.width; i++)
    ck_assert_msg(copy[i] == 0, "workspace: byte %zu is %02x", i, copy[i]);
}

/* Reduces x[0 .. n), which lies `shift` elements behind an aligned address. The
 * bytes around it are `poison` and would show in the result. Returns the
 * result. */
static const void *reduce_guarded(reducer *r, const void *x, size_t n,
                                  size_t shift, unsigned char poison,
                                  unsigned grid)
{
  const test_array input = array_make(r->type, n, shift, NULL, 0);
  const test_array result = array_make(r->acc, 1, 1, NULL, 0x5a);
  const size_t bytes = n * input.width;

  ck_kiln_ok(
      kiln_fill(device, input.block, poison, 1, input.before + bytes + GUARD));
  ck_kiln_ok(kiln_copy_to_device(device, input.array.data, x, bytes));
  launch(r, input.array.data, n, grid, result.array.data);
  check_workspace(r);
  return kept(array_read(&result));
}

/* ---- Types and operations ------------------------------------------------ */

static const char wide_unsigned[] = "KILN_T=unsigned long long";
static const char *const types[] = {
    [KILN_F32] = "KILN_T=float",     [KILN_F64] = "KILN_T=double",
    [KILN_I32] = "KILN_T=int",       [KILN_U32] = "KILN_T=unsigned",
    [KILN_I64] = "KILN_T=long long", [KILN_U64] = wide_unsigned};
static const char *const operations_of_kernel[] = {
    "KILN_OP=sum",     "KILN_OP=prod",   "KILN_OP=min",    "KILN_OP=max",
    "KILN_OP=bit_and", "KILN_OP=bit_or", "KILN_OP=bit_xor"};

/* Sums, products, minima and maxima of each type, and some bitwise
 * operations. */
static const kiln_dtype pair_types[] = {KILN_F32, KILN_F64, KILN_I32,
                                        KILN_U32, KILN_I64, KILN_U64};
static const struct {
  kiln_dtype type;
  kiln_op_name op;
} bitwise[] = {{KILN_U32, KILN_AND},
               {KILN_U32, KILN_OR},
               {KILN_I32, KILN_XOR},
               {KILN_U64, KILN_XOR}};

enum { N_PAIRS = 4 * 6 + 4 };

/* Returns a random value, as a 64-bit word, for which the reduction is exact in
 * any order. */
static uint64_t random_word(kiln_dtype type, kiln_op_name op, uint64_t *state)
{
  const uint64_t r = test_random(state);
  const int64_t sign = r & 1 ? 1 : -1;

  if (type == KILN_F32)
    return (uint64_t)(op == KILN_PROD ? sign : (int64_t)(r >> 8 & 15) * sign);
  if (type == KILN_F64)
    return (uint64_t)(op == KILN_PROD ? sign : (int64_t)(r >> 34) * sign);
  if (type == KILN_I32)
    return (uint64_t)(int32_t)(op == KILN_PROD ? (uint32_t)r | 1
                                               : (uint32_t)(r >> 9));
  if (type == KILN_U32)
    return op == KILN_PROD ? (uint32_t)r | 1 : (uint32_t)(r >> 9);
  return op == KILN_PROD ? r | 1 : r;
}

/* In one iteration a block reads 8,192 elements of 4 bytes or 4,096 of 8
 * bytes. */
static const size_t lengths[] = {0,    1,    2,    3,    31,   32,    33,
                                 255,  256,  257,  1023, 1024, 1025,  4095,
                                 4096, 4097, 8191, 8192, 8193, 16385, 100003};

enum { N_LENGTHS = sizeof lengths / sizeof lengths[0], PRIME = 1048583 };

/* Returns a value for the bytes around the input. An element that consists of
 * such bytes is NaN or an extreme value, so a kernel that reads it by mistake
 * computes a wrong result. */
static unsigned char poison(kiln_dtype type, kiln_op_name op)
{
  const bool whole_signed = type == KILN_I32 || type == KILN_I64;

  if (type_is_float(type))
    return 0xff;
  switch (op) {
  case KILN_MIN:
    return whole_signed ? 0x80 : 0;
  case KILN_MAX:
    return whole_signed ? 0x7f : 0xff;
  case KILN_PROD:
  case KILN_AND:
    return 0;
  default:
    return 0xff;
  }
}

static void check_length(reducer *r, kiln_op_name op, size_t n, size_t shift,
                         unsigned grid, uint64_t *state)
{
  const size_t mark = n_kept, width = kiln_dtype_size(r->type);
  void *x = kept(malloc(n * width + 1));
  const unsigned char *got;
  unsigned char want[8];
  uint64_t sum = 0;

  for (size_t i = 0; i < n; i++) {
    const uint64_t v = random_word(r->type, op, state);

    set_whole(r->type, x, i, (int64_t)v);
    sum = i == 0 ? v : fold_words(op, r->type, sum, v);
  }
  if (n > 0)
    set_whole(r->type, want, 0, (int64_t)sum);
  else
    set_identity(op, r->type, want);
  got = reduce_guarded(r, x, n, shift, poison(r->type, op), grid);
  ck_assert_msg(memcmp(got, want, width) == 0,
                "%s %s, n %zu, shift %zu, grid %u: got %g, want %g",
                types[r->type], operations_of_kernel[op], n, shift, grid,
                value_at(r->type, got, 0), value_at(r->type, want, 0));
  release(mark);
}

#define SMALL "KILN_SMALL=1"

static void check_pair(kiln_dtype type, kiln_op_name op,
                       const char *const *traits, const char *further)
{
  const char *const defines[] = {types[type], operations_of_kernel[op], further,
                                 NULL};
  /* a kernel with KILN_SMALL=1 needs an aligned array */
  const bool aligned = strcmp(further, SMALL) == 0;
  const size_t shifts = aligned ? 1 : 16 / kiln_dtype_size(type);
  uint64_t state = 17 + (uint64_t)type * 8 + (uint64_t)op;
  reducer r = open_reducer(type, type, defines, traits);

  for (size_t i = 0; i < N_LENGTHS; i++)
    for (size_t shift = 0; shift < shifts; shift++)
      check_length(&r, op, lengths[i], shift, 1 + (unsigned)(i + shift) % 4,
                   &state);
  check_length(&r, op, PRIME, shifts - 1, r.most_blocks, &state);
  check_length(&r, op, PRIME, 0, 1, &state);
  check_length(&r, op, 1000, shifts - 1, r.most_blocks, &state);
  kiln_module_free(r.module);
}

START_TEST(every_type_operation_and_length)
{
  const size_t k = (size_t)_i;

  if (k < 24)
    check_pair(pair_types[k / 4], (kiln_op_name)(k % 4), NULL, "KILN_EVEN=0");
  else
    check_pair(bitwise[k - 24].type, bitwise[k - 24].op, NULL, "KILN_EVEN=0");
}
END_TEST

START_TEST(contiguous_shares)
{
  check_pair(KILN_F32, KILN_SUM, NULL, "KILN_EVEN=1");
  check_pair(KILN_I64, KILN_MAX, NULL, "KILN_EVEN=1");
}
END_TEST

START_TEST(small_and_aligned)
{
  check_pair(KILN_F32, KILN_SUM, NULL, SMALL);
  check_pair(KILN_F64, KILN_MAX, NULL, SMALL);
  check_pair(KILN_U32, KILN_XOR, NULL, SMALL);
}
END_TEST

/* The longest array exceeds 1 MiB, so the kernel uses both of its cache
 * policies. */
START_TEST(ranked_loads)
{
  check_pair(KILN_F32, KILN_SUM, NULL, "KILN_KEEP=1");
  check_pair(KILN_I64, KILN_MIN, NULL, "KILN_KEEP=1");
}
END_TEST

START_TEST(many_loads_in_flight)
{
  check_pair(KILN_F32, KILN_SUM, NULL, "KILN_ITEMS=8");
  check_pair(KILN_I32, KILN_SUM, NULL, "KILN_ITEMS=1");
}
END_TEST

START_TEST(old_bodies)
{
  static const char *const no_shuffle[] = {"KILN_HAS_SHFL=0",
                                           "KILN_HAS_REDUX=0", NULL};
  static const char *const lock_step[] = {"KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0",
                                          "KILN_HAS_ITS=0", NULL};
  static const char *const no_redux[] = {"KILN_HAS_REDUX=0", NULL};

  check_pair(KILN_F32, KILN_SUM, no_shuffle, "KILN_EVEN=0");
  check_pair(KILN_F64, KILN_MAX, no_shuffle, "KILN_EVEN=0");
  if (lock_step_bodies_run(kiln_device_traits(device))) {
    check_pair(KILN_F32, KILN_SUM, lock_step, "KILN_EVEN=0");
    check_pair(KILN_F64, KILN_MAX, lock_step, "KILN_EVEN=0");
  }
  check_pair(KILN_I32, KILN_SUM, no_redux, "KILN_EVEN=0");
}
END_TEST

/* ---- Special values ------------------------------------------------------ */

static float fold_special(kiln_op_name op, float filler, size_t at_a, float a,
                          size_t at_b, float b)
{
  enum { N = 20011 };
  const char *const defines[] = {types[KILN_F32], operations_of_kernel[op],
                                 NULL};
  const size_t mark = n_kept;
  reducer r = open_reducer(KILN_F32, KILN_F32, defines, NULL);
  float x[N], got;

  for (size_t i = 0; i < N; i++)
    x[i] = filler;
  x[at_a] = a;
  x[at_b] = b;
  got = *(const float *)reduce_guarded(&r, x, N, 1, 0, 3);
  kiln_module_free(r.module);
  release(mark);
  return got;
}

START_TEST(special_floats)
{
  /* Positions before the first 16-byte boundary, in the middle, and behind the
   * last whole vector. */
  static const size_t places[] = {0, 2, 3, 9999, 20008, 20010};

  for (size_t i = 0; i < 6; i++) {
    const size_t p = places[i], q = places[(i + 3) % 6];

    ck_assert(isnan(fold_special(KILN_SUM, 1, p, NAN, q, 1)));
    ck_assert(isnan(fold_special(KILN_MIN, 1, p, NAN, q, -INFINITY)));
    ck_assert(isnan(fold_special(KILN_MAX, 1, p, NAN, q, INFINITY)));
    ck_assert(isnan(fold_special(KILN_SUM, 1, p, INFINITY, q, -INFINITY)));
    ck_assert(fold_special(KILN_SUM, 1, p, INFINITY, q, 1) == INFINITY);
    ck_assert(fold_special(KILN_MIN, INFINITY, p, 5, q, 7) == 5);
    ck_assert(fold_special(KILN_MAX, -INFINITY, p, 5, q, 7) == 7);
    ck_assert(fold_special(KILN_MIN, INFINITY, p, INFINITY, q, INFINITY) ==
              INFINITY);
    ck_assert(signbit(fold_special(KILN_MIN, 0.0f, p, -0.0f, q, 0.0f)));
    ck_assert(!signbit(fold_special(KILN_MAX, -0.0f, p, 0.0f, q, -0.0f)));
  }
}
END_TEST

/* ---- Accuracy and reproducible bits -------------------------------------- */

static float *uniform(size_t n, double *sum)
{
  float *x = kept(malloc(n * sizeof *x));
  uint64_t state = 4711;

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
  const float *x = uniform(N, &sum), *got;
  const test_array input = array_make(KILN_F32, N, 0, x, 0);
  const test_array results = array_make(KILN_F32, LAUNCHES, 0, NULL, 0);
  reducer r = open_reducer(KILN_F32, KILN_F32, NULL, NULL);

  /* the launches share a workspace that nobody clears */
  for (unsigned i = 0; i < LAUNCHES; i++)
    launch(&r, input.array.data, N, r.most_blocks,
           results.array.data + i * sizeof *got);
  got = kept(array_read(&results));
  ck_assert_double_le(fabs((double)got[0] - sum) / sum, 1e-6);
  for (unsigned i = 1; i < LAUNCHES; i++)
    ck_assert_mem_eq(&got[i], &got[0], sizeof *got);
  check_workspace(&r);
  kiln_module_free(r.module);
}
END_TEST

START_TEST(wider_accumulator)
{
  enum { N = 300007 };
  static const char *const doubles[] = {"KILN_T=float", "KILN_ACC=double",
                                        NULL};
  static const char *const longs[] = {"KILN_T=int", "KILN_ACC=long long", NULL};
  double sum;
  const float *x = uniform(N, &sum);
  int32_t *y = kept(malloc(N * sizeof *y));
  int64_t whole = 0;
  reducer r = open_reducer(KILN_F32, KILN_F64, doubles, NULL);
  const double got = *(const double *)reduce_guarded(&r, x, N, 3, 0xff, 7);

  ck_assert_double_le(fabs(got - sum) / sum, 1e-14);
  kiln_module_free(r.module);
  for (int i = 0; i < N; i++)
    whole += y[i] = INT32_MAX - i;
  r = open_reducer(KILN_I32, KILN_I64, longs, NULL);
  ck_assert_int_eq(*(const int64_t *)reduce_guarded(&r, y, N, 1, 0xff, 5),
                   whole);
  kiln_module_free(r.module);
}
END_TEST

/* ---- The lectures' steps ------------------------------------------------- */

static const struct {
  const char *name;
  /* elements per thread; 0 means that one block does all the work */
  unsigned block, elements;
} steps[] = {
    {"reduce_one_thread", 1, 0},       {"reduce_atomic_global", 256, 1},
    {"reduce_atomic_shared", 256, 1},  {"reduce_shared", 256, 1},
    {"reduce_shared_shuffle", 256, 1}, {"reduce_final", 256, 2},
    {"reduce_block", 1024, 0},         {"reduce_grid_atomic", 1024, 2},
    {"reduce_grid_local", 1024, 2},    {"reduce_warp", 512, 1},
};

enum { N_STEPS = sizeof steps / sizeof steps[0] };

static void check_step(kiln_kernel *kernel, size_t step, unsigned n)
{
  const unsigned each = steps[step].block * steps[step].elements;
  const kiln_launch_config config = {
      .grid = {each == 0 ? 1 : n / each + 1, 1, 1},
      .block = {steps[step].block, 1, 1}};
  float *x = kept(malloc((n + 1) * sizeof *x)), sum = 0;
  const float start = 100; /* the kernel adds its sum to this value */
  uint64_t state = n + 1;
  test_array input, result = array_make(KILN_F32, 1, 0, &start, 0);
  const float *got;

  for (unsigned i = 0; i < n; i++) {
    /* so small that every sum is exact */
    x[i] = (float)(test_random(&state) % 16);
    sum += x[i];
  }
  x[n] = 1e6f; /* the kernel must not read this element */
  input = array_make(KILN_F32, n + 1, 0, x, 0);
  ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(input.array.data),
                         KILN_ARG(n), KILN_ARG(result.array.data)));
  got = kept(array_read(&result));
  ck_assert_msg(*got == start + sum, "%s, n %u: %g, want %g", steps[step].name,
                n, (double)*got, (double)(start + sum));
}

START_TEST(steps_of_the_ladder)
{
  static const unsigned ns[] = {0,   1,   31,   255,  256,  257,  511,
                                512, 513, 1025, 2047, 2048, 2049, 100003};
  char name[64];
  kiln_program_desc desc = {.builtin = name};
  kiln_module *module = NULL;
  kiln_kernel *kernel = NULL;

  snprintf(name, sizeof name, "ladder/%s", steps[_i].name);
  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, steps[_i].name));
  for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
    check_step(kernel, (size_t)_i, ns[i]);
  kiln_module_free(module);
}
END_TEST

static Suite *reduce(void)
{
  Suite *s = suite_create("reduce");
  TCase *t = device_case(s, "reduce");

  tcase_add_loop_test(t, every_type_operation_and_length, 0, N_PAIRS);
  tcase_add_test(t, contiguous_shares);
  tcase_add_test(t, small_and_aligned);
  tcase_add_test(t, ranked_loads);
  tcase_add_test(t, many_loads_in_flight);
  tcase_add_test(t, old_bodies);
  tcase_add_test(t, special_floats);
  tcase_add_test(t, accurate_and_repeatable);
  tcase_add_test(t, wider_accumulator);
  tcase_add_loop_test(t, steps_of_the_ladder, 0, N_STEPS);
  return s;
}

DEVICE_TEST_MAIN(reduce)
