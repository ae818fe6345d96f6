/* matmul_wgmma_test.c -- the demo program matmul_wgmma: a matrix product through
 * tensor maps, mbarriers and wgmma. Under KILN_DEVICE=cpu:9.0,check=all it runs
 * under every check. */
#include "gpu_fixture.h"

enum { M = 128, N = 192, K = 232 };

static uint16_t a[M][K], b[N][K];
static float c[M][N];

static int value_of(unsigned row, unsigned column, unsigned matrix)
{
  return (int)((row * 31 + column * 17 + matrix * 7) * 2654435761U >> 29) - 4;
}

static uint16_t bf16_of(int value)
{
  const float f = (float)value;
  uint32_t bits;

  memcpy(&bits, &f, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static void fill(uint16_t *to, unsigned rows, unsigned matrix)
{
  for (unsigned i = 0; i < rows * K; i++)
    to[i] = bf16_of(value_of(i / K, i % K, matrix));
}

static void encode(CUtensorMap *map, CUdeviceptr at, uint64_t rows)
{
  const uint64_t extent[] = {K, rows}, strides[] = {2 * K};
  const uint32_t box[] = {64, 64}, ones[] = {1, 1};
  kiln__scope scope;

  ck_kiln_ok(kiln__enter(g.device, &scope));
  ck_assert_int_eq(
      g.rt->driver.tensorMapEncodeTiled(
          map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)(uintptr_t)at,
          extent, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
          CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      0);
  kiln__leave(&scope);
}

static CUdeviceptr copied(const void *from, size_t size)
{
  const CUdeviceptr at = gpu_alloc(g.device, size);

  ck_kiln_ok(kiln_copy_to_device(g.device, at, from, size));
  return at;
}

static void check(void)
{
  for (unsigned i = 0; i < M; i++) {
    for (unsigned j = 0; j < N; j++) {
      int sum = 0;

      for (unsigned l = 0; l < K; l++)
        sum += value_of(i, l, 0) * value_of(j, l, 1);
      ck_assert_msg((int)c[i][j] == sum, "C[%u][%u] is %g, want %d", i, j,
                    (double)c[i][j], sum);
    }
  }
}

START_TEST(products_are_exact)
{
  const kiln_program_desc desc = {.builtin = "matmul_wgmma", .suffix = 'a'};
  const kiln_launch_config config = {.grid = {N / 64, M / 64, 1},
                                     .block = {128, 1, 1}};
  const uint32_t n = N, k = K;
  kiln_module *module = NULL;
  CUdeviceptr at[3];
  CUtensorMap map[2];

  if (kiln_device_traits(g.device)->cc != 90)
    return;
  fill(a[0], M, 0);
  fill(b[0], N, 1);
  ck_kiln_ok(kiln_module_load(&module, g.device, &desc));
  at[0] = copied(a, sizeof a);
  at[1] = copied(b, sizeof b);
  at[2] = gpu_alloc(g.device, sizeof c);
  encode(&map[0], at[0], M);
  encode(&map[1], at[1], N);
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "matmul_wgmma"), &config,
                         KILN_ARG(map[0]), KILN_ARG(map[1]), KILN_ARG(at[2]),
                         KILN_ARG(n), KILN_ARG(k)));
  ck_kiln_ok(kiln_copy_to_host(g.device, c, at[2], sizeof c));
  check();
  for (int i = 0; i < 3; i++)
    kiln_memory_free(g.device, at[i]);
  kiln_module_free(module);
}
END_TEST

static Suite *make_suite(void)
{
  Suite *s = suite_create("matmul_wgmma");

  kiln_test_case(s, "products", 600, gpu_set_up, gpu_tear_down,
                 TESTS(products_are_exact));
  return s;
}

DEVICE_TEST_MAIN(make_suite)
