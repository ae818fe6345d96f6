/* gemm_small_test.c -- the kernels for batches of small products and for products
 * with few rows or columns, compared with sums in double. */
#include "gemm_product.h"

#include <string.h>

/* Returns the kernels that a product of these sizes uses. */
static const char *path_of(const product *p)
{
  const kiln_gemm_matrix any = {.data = 1 << 20, .type = p->type};
  kiln_gemm_desc desc = {.m = p->m,
                         .n = p->n,
                         .k = p->k,
                         .batch = p->batch,
                         .alpha = 1,
                         .a = any,
                         .b = any,
                         .d = any};
  kiln_gemm_choice choice;

  desc.b.data = UINT64_C(1) << 36;
  desc.d.data = UINT64_C(1) << 40;
  desc.a.stride = p->m * p->k;
  desc.b.stride = p->one_b ? 0 : p->k * p->n;
  desc.d.stride = p->m * p->n;
  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  return choice.path;
}

/* The variations of a product: layouts of all matrices, gaps, misaligned
 * addresses, arrays of pointers, an epilogue with inputs. */
static void vary(product *p, unsigned i, bool batched)
{
  p->layout = (i * 5 + i / 16) % 64;
  p->gap = i % 3 == 1 ? 1 : i % 3 * 2;
  p->shift = i % 4 == 3;
  p->beta = i % 4 == 2 ? -1 : 0;
  p->inputs = i % 5 == 3;
  p->in_place = i % 4 == 2 && i % 8 == 2;
  if (batched)
    p->pointers = i % 7 == 5 ? 15 : i % 7 == 2 ? i % 16 : 0;
}

/* m, n, k, number of products, one B for all */
static const size_t batches[][5] = {
    {32, 32, 32, 33, 0},   {31, 30, 29, 36, 0},    {17, 9, 70, 40, 0},
    {64, 64, 64, 32, 0},   {61, 40, 33, 34, 0},    {40, 64, 16, 35, 0},
    {128, 128, 20, 32, 0}, {100, 128, 128, 32, 0}, {600, 32, 32, 2, 1},
    {2100, 31, 17, 1, 0},  {32, 32, 32, 40, 1}};

enum { N_BATCHES = sizeof batches / sizeof batches[0] };

START_TEST(test_batches)
{
  const size_t *const b = batches[_i];
  const unsigned most = getenv("KILN_TEST_THOROUGH") != NULL ? 8 : 1;
  uint64_t state = 3;

  for (unsigned i = 0; i < most; i++) {
    product p = usual(b[0], b[1], b[2]);

    p.batch = b[3];
    p.one_b = b[4] != 0;
    vary(&p, (unsigned)_i + i * 11, p.batch > 1);
    check_product(&p, &state);
  }
}
END_TEST

static const kiln_dtype thin_types[] = {KILN_F32, KILN_F16, KILN_BF16, KILN_F64,
                                        KILN_I8};

enum { N_THIN_TYPES = sizeof thin_types / sizeof thin_types[0] };

START_TEST(test_thin)
{
  static const size_t sizes[][4] = {{1, 400, 300, 1},
                                    {3, 257, 1031, 1},
                                    {8, 129, 512, 2},
                                    {1, 60, 5000, 1},
                                    {2, 3000, 31, 3}};
  const unsigned step = getenv("KILN_TEST_THOROUGH") != NULL ? 1 : 3;
  uint64_t state = 5;

  for (unsigned i = (unsigned)_i % step; i < 10; i += step) {
    const size_t *const s = sizes[i / 2];
    product p = i % 2 == 0 ? usual(s[0], s[1], s[2]) : usual(s[1], s[0], s[2]);

    p.type = p.c_type = p.d_type = thin_types[_i];
    if (p.type == KILN_I8)
      p.c_type = p.d_type = KILN_I32;
    p.batch = s[3];
    vary(&p, i + (unsigned)_i * 3, p.batch > 1);
    check_product(&p, &state);
  }
}
END_TEST

/* The kernels serve the shapes that they are made for, and no others. */
START_TEST(test_path)
{
  product p = usual(32, 32, 32);

  p.batch = 10000;
  ck_assert_str_eq(path_of(&p), "small");
  p.batch = 1;
  ck_assert_str_eq(path_of(&p), "simt");
  p.m = 100000;
  ck_assert_str_eq(path_of(&p), "small");
  p = usual(1, 8192, 8192);
  ck_assert_str_eq(path_of(&p), "vector");
  p = usual(8192, 2, 100);
  ck_assert_str_eq(path_of(&p), "vector");
  p = usual(9, 8192, 8192);
  ck_assert_str_eq(path_of(&p), "simt");
  p = usual(512, 512, 512);
  ck_assert_str_eq(path_of(&p), "simt");
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("gemm_small");
  TCase *t = device_case(s, "gemm_small");

  tcase_add_loop_test(t, test_batches, 0, N_BATCHES);
  tcase_add_loop_test(t, test_thin, 0, N_THIN_TYPES);
  tcase_add_test(t, test_path);
  return s;
}

DEVICE_TEST_MAIN(suite)
