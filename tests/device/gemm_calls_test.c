/* gemm_calls_test.c -- many calls of kiln_gemm: random ones, each type with a list
 * of sizes, and more than 2^32 elements.
 *
 * Nearly every random call needs a kernel that no other call has used, and a
 * compilation takes longer than the call. Many calls are therefore divided among
 * child processes, one per processor. Consecutive calls of a child differ only in
 * their sizes, and compile at most a few kernels together.
 *
 * KILN_TEST_RANDOM_CALLS  number of random calls
 * KILN_TEST_THOROUGH=1    larger random calls, and the list of sizes
 *                         and the test of large arrays with few elements
 * KILN_TEST_PART=2/16      every sixteenth row of the list of sizes; of the random
 *                         calls those of child process 2 of 16, in this process
 * KILN_TEST_LARGE=1       arrays of more than 2^32 elements, on a GPU with 20 GB
 *                         of free memory; =small: the same code on few elements */
#include "gemm_product.h"

/* ---- Child processes ----------------------------------------------------- */

enum { MOST_CHILDREN = 32 };

/* Part number `part` of `parts` equal parts of a test. */
typedef void part_of_test(unsigned long part, unsigned long parts);

/* Runs one part with a device of its own, and ends the process. */
static void run_child(part_of_test *run, unsigned long part,
                      unsigned long parts)
{
  setup();
  run(part, parts);
  teardown();
  fflush(stdout);
  exit(EXIT_SUCCESS);
}

/* Runs the parts of a test at the same time. The calling process must not have
 * opened a device, since an open device does not survive a fork. */
static void run_parts(part_of_test *run, unsigned long parts)
{
  pid_t child[MOST_CHILDREN];
  unsigned failed = 0;

  fflush(stdout);
  for (unsigned long i = 0; i < parts; i++) {
    child[i] = fork();
    ck_assert_int_ge(child[i], 0);
    if (child[i] == 0)
      run_child(run, i, parts);
  }
  for (unsigned long i = 0; i < parts; i++) {
    int status = 0;

    ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
      continue;
    printf("child process %lu of %lu failed\n", i, parts);
    failed++;
  }
  fflush(stdout);
  ck_assert_msg(failed == 0, "%u of %lu child processes failed", failed, parts);
}

/* Returns the number of parts for this number of calls: 1 if there are few
 * calls, or if CK_FORK=no asks for a single process. */
static unsigned long parts_for(unsigned long calls)
{
  const char *const forks = getenv("CK_FORK");
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  const unsigned long most = n < 1 ? 1 : (unsigned long)n;

  if (calls < 100 || (forks != NULL && strcmp(forks, "no") == 0))
    return 1;
  return most < MOST_CHILDREN ? most : MOST_CHILDREN;
}

/* Runs the parts of a test of `calls` calls, in this process if there is one
 * part. */
static void divide(part_of_test *run, unsigned long calls)
{
  const unsigned long parts = parts_for(calls);

  if (parts > 1) {
    run_parts(run, parts);
    return;
  }
  setup();
  run(0, 1);
  teardown();
}

/* ---- Random calls -------------------------------------------------------- */

enum { FEW_CALLS = 20, CALLS_PER_STYLE = 20, MANY_CALLS = 200 };

/* Sizes that are multiples of 4, and odd ones. Calls that draw from one of these
 * lists move vectors of the same width. */
static const size_t sizes[2][10] = {{4, 8, 16, 32, 36, 64, 68, 128, 256, 260},
                                    {1, 7, 15, 17, 31, 33, 63, 65, 127, 257}};

static size_t random_size(uint64_t *state, unsigned long list)
{
  const uint64_t n = getenv("KILN_TEST_THOROUGH") != NULL ? 10 : 8;
  const uint64_t r = test_random(state);

  return r % 64 == 0 ? 0 : sizes[list][(r >> 8) % n];
}

/* What the calls of one style share: everything but their sizes. */
typedef struct style {
  product p;
  unsigned long list; /* of sizes */
} style;

static void set_sizes(product *p, const style *s, uint64_t *state)
{
  p->m = random_size(state, s->list);
  p->n = random_size(state, s->list);
  p->k = random_size(state, s->list);
}

static void set_matrices(product *p, uint64_t *state)
{
  p->layout = (unsigned)(test_random(state) % 64);
  p->gap = (unsigned)(test_random(state) % 3) * 2;
  p->line = (unsigned)(test_random(state) % 3) * 8;
  p->shift = (unsigned)(test_random(state) % 4 == 0);
  p->batch = test_random(state) % 4 == 0 ? 3 : 1;
  if (p->batch > 1) {
    p->apart = (unsigned)(test_random(state) % 3);
    p->pointers = (unsigned)(test_random(state) % 16);
    p->one_b = test_random(state) % 3 == 0;
  }
  p->in_place = test_random(state) % 3 == 0 && p->c_type == p->d_type;
}

static style random_style(uint64_t *state)
{
  style s = {.p = usual(0, 0, 0), .list = test_random(state) % 2};
  product *p = &s.p;

  set_types(p, test_random(state) % N_TYPES);
  set_matrices(p, state);
  p->alpha = (int)(test_random(state) % 4);
  p->beta = (int)(test_random(state) % 3) - 1;
  p->inputs = test_random(state) % 3 == 0;
  if (p->type == KILN_F32)
    p->precision = (kiln_gemm_precision)(test_random(state) % 4);
  if (test_random(state) % 4 == 0)
    p->tile.split = 1 + (uint32_t)(test_random(state) % 4);
  p->special = p->type != KILN_I8 && p->precision != KILN_GEMM_F32 &&
               p->precision != KILN_GEMM_F32_FAST &&
               test_random(state) % 4 == 0;
  return s;
}

static void random_part(unsigned long part, unsigned long parts)
{
  const unsigned long all = random_calls(FEW_CALLS);
  const unsigned long calls = all / parts + (part < all % parts);
  const unsigned long per_style = all < MANY_CALLS ? 1 : CALLS_PER_STYLE;
  uint64_t state = 11 + part;
  style s = random_style(&state);

  for (unsigned long i = 0; i < calls; i++) {
    product p;

    if (i > 0 && i % per_style == 0)
      s = random_style(&state);
    p = s.p;
    set_sizes(&p, &s, &state);
    check_product(&p, &state);
  }
}

START_TEST(test_random_calls)
{
  const char *const text = getenv("KILN_TEST_PART");
  unsigned long part, parts;

  if (text == NULL || sscanf(text, "%lu/%lu", &part, &parts) != 2) {
    divide(random_part, random_calls(FEW_CALLS));
    return;
  }
  setup();
  random_part(part, parts);
  teardown();
}
END_TEST

/* ---- A list of sizes ----------------------------------------------------- */

static const size_t listed[] = {0,  1,  7,  8,   15,  16,  17,  31,  32,  33,
                                63, 64, 65, 127, 128, 129, 255, 257, 1000};

enum { N_LISTED = sizeof listed / sizeof listed[0] };

/* The types, and f32 with each further precision. */
enum { N_KINDS = N_TYPES + KILN_GEMM_TF32 };

/* Makes call number j with m = listed[i]. The calls with all i and j have each
 * pair of listed sizes as m and n, as m and k, and as n and k. Calls with the
 * same i have the same layout. */
static product listed_product(unsigned kind, unsigned i, unsigned j)
{
  product p = usual(listed[i], listed[j], listed[(i + j) % N_LISTED]);

  if (kind < N_TYPES)
    set_types(&p, kind);
  else
    p.precision = (kiln_gemm_precision)(kind - N_TYPES + 1);
  p.layout = (i * 5 + kind * 19) % 64;
  p.gap = i % 4 == 3 ? 2 : 0;
  p.shift = i % 5 == 4;
  p.beta = (int)(i % 3) - 1;
  p.alpha = 1 + (int)(i % 2);
  p.special = i % 6 == 1 && p.type != KILN_I8;
  return p;
}

static void listed_part(unsigned long part, unsigned long parts)
{
  uint64_t state = 47;

  for (unsigned row = (unsigned)part; row < N_KINDS * N_LISTED;
       row += (unsigned)parts)
    for (unsigned j = 0; j < N_LISTED && test_in_part(row / parts); j++) {
      const product p = listed_product(row / N_LISTED, row % N_LISTED, j);

      check_product(&p, &state);
    }
}

START_TEST(test_listed_sizes)
{
  if (getenv("KILN_TEST_THOROUGH") != NULL)
    divide(listed_part, N_KINDS * N_LISTED * N_LISTED);
}
END_TEST

/* ---- More than 2^32 elements --------------------------------------------- */

/* Element i of the arrays of the large test: -7 to 8. */
#define LARGE_VALUE "(int)(i * 2654435761u >> 16 & 15) - 7"

static int large_value(uint64_t i)
{
  return (int)(i * 2654435761u >> 16 & 15) - 7;
}

static kiln_gemm_matrix large_matrix(kiln_dtype type, uint64_t n)
{
  kiln_gemm_matrix x = {.type = type};
  kiln_map_desc desc = {.expr = {LARGE_VALUE}, .n = n};

  ck_kiln_ok(kiln_memory_alloc(&x.data, device, n * kiln_dtype_size(type)));
  keep_memory((kept_memory){.device = x.data});
  desc.out[0] = (kiln_array){x.data, type};
  ck_kiln_ok(kiln_map(stream, &desc, NULL));
  return x;
}

/* Compares element (row, column) of D. */
static void ck_large_element(const kiln_gemm_desc *desc, uint64_t row,
                             uint64_t column)
{
  const kiln_dtype type = desc->d.type;
  const size_t size = kiln_dtype_size(type);
  unsigned char got[8];
  int32_t want = 0;

  for (uint64_t j = 0; j < desc->k; j++)
    want += large_value(row * desc->k + j) * large_value(j * desc->n + column);
  ck_kiln_ok(kiln_copy_to_host(
      device, got, desc->d.data + (row * desc->n + column) * size, size));
  ck_assert_double_eq(value_at(type, got, 0),
                      type == KILN_I8 ? (double)(int8_t)want : (double)want);
}

typedef struct large_case {
  kiln_dtype type, d;
  uint64_t m, n, k;
} large_case;

/* D, then A, has more than 2^32 elements; on tensor cores, in place and as a
 * copy, and on other units. Sums of 17 and 24 products are exact in D. */
static const large_case large_cases[] = {
    {KILN_I8, KILN_I8, 65539, 65541, 17},
    {KILN_I8, KILN_I32, 70001, 9, 65537},
    {KILN_BF16, KILN_F32, 65544, 65608, 24},
    {KILN_F32, KILN_F32, 65539, 65541, 17},
    {KILN_F32, KILN_F32, 70001, 9, 65537},
};

/* Runs a product and compares 2,000 elements of D: 500 of the last row, 400 of
 * the last columns, and random ones. */
static void ck_large(const large_case *c)
{
  const kiln_gemm_desc desc = {.m = c->m,
                               .n = c->n,
                               .k = c->k,
                               .alpha = 1,
                               .a = large_matrix(c->type, c->m * c->k),
                               .b = large_matrix(c->type, c->k * c->n),
                               .d = large_matrix(c->d, c->m * c->n)};
  uint64_t state = 41;

  ck_kiln_ok(kiln_gemm(stream, &desc, NULL));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  for (uint64_t i = 0; i < 2000; i++)
    ck_large_element(&desc, i < 500 ? c->m - 1 : test_random(&state) % c->m,
                     i < 900 ? c->n - 1 - i % c->n
                             : test_random(&state) % c->n);
}

START_TEST(test_large)
{
  const char *const wanted = getenv("KILN_TEST_LARGE");
  large_case c = large_cases[_i];

  if (wanted == NULL && getenv("KILN_TEST_THOROUGH") == NULL)
    return;
  if (wanted == NULL || strcmp(wanted, "small") == 0) {
    c.m = c.m % 100 + 1;
    c.n = c.n % 100 + 1;
    c.k = c.k % 100 + 1;
  }
  ck_large(&c);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("gemm_calls");
  TCase *many = tcase_create("many");

  /* These tests open the device in their child processes. */
  tcase_set_timeout(many, CASE_SECONDS);
  tcase_add_test(many, test_random_calls);
  tcase_add_test(many, test_listed_sizes);
  suite_add_tcase(s, many);
  tcase_add_loop_test(device_case(s, "large"), test_large, 0,
                      sizeof large_cases / sizeof large_cases[0]);
  return s;
}

DEVICE_TEST_MAIN(suite)
