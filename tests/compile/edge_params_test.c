/* edge_params_test.c -- tests kernels with large parameters. All targets accept
 * 4,096 bytes. From compute capability 7.0 and NVRTC 12.1 on, the limit is
 * 32,764 bytes. The test also checks the parameter sizes that Kiln reads from
 * PTX and compares launch arguments with. */
#include "each_nvrtc.h"

#include "program/program.h"

static const kiln_target sm_80 = {.cc = 80};
static char dir[256], cache[300];

static void setup(void)
{
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
}

static void teardown(void)
{
  test_dir_remove(dir);
}

static kiln_status compile(kiln_image **out, kiln_runtime *rt, unsigned bytes)
{
  char define[32];
  const char *defines[] = {define};
  const kiln_program_desc desc = {
      .source = "struct large { char c[BYTES - 8]; };\n"
                "extern \"C\" __global__ void k(large s, long long *out)\n"
                "{ *out = s.c[BYTES - 9] + s.c[0]; }\n",
      .defines = defines,
      .n_defines = 1};

  snprintf(define, sizeof define, "BYTES=%u", bytes);
  return kiln_compile(out, rt, &desc, &sm_80);
}

START_TEST(up_to_the_limit)
{
  const bool large = each_version[_i] >= 12010;
  const struct {
    unsigned bytes;
    bool good;
  } rows[] = {{16, true},     {4096, true},   {4104, large},
              {32752, large}, {32776, false}, {70000, false}};
  kiln_runtime *rt = each_runtime(_i, cache);

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    kiln_image *image;
    const kiln_status st = compile(&image, rt, rows[i].bytes);

    ck_assert_msg(st == (rows[i].good ? KILN_OK : KILN_ECOMPILE),
                  "%u bytes: %s: %s", rows[i].bytes, kiln_status_name(st),
                  kiln_last_error()->message);
    if (st == KILN_OK) {
      uint32_t sizes[4];
      size_t n, size;
      const char *ptx = kiln_image_ptx(image, &size);

      ck_assert(kiln__image_ptx_params(ptx, size, "k", sizes, 4, &n));
      ck_assert_uint_eq(n, 2);
      ck_assert_uint_eq(sizes[0], rows[i].bytes - 8);
      ck_assert_uint_eq(sizes[1], 8);
    }
    kiln_image_free(image);
  }
  kiln_runtime_free(rt);
}
END_TEST

/* Launch arguments are checked against the compiler's layout. This test covers
 * structs with padding, arrays in structs, vectors, bool, pointers and
 * references. */
START_TEST(sizes_of_all_kinds)
{
  const kiln_program_desc desc = {
      .source =
          "struct holes { double d; char c; };\n"
          "struct packed { char a, b, c; };\n"
          "struct empty {};\n"
          "struct alignas(32) wide { int x; };\n"
          "enum tiny : unsigned char { ONE };\n"
          "extern \"C\" __global__ void k(holes h, packed p, empty e, wide w,\n"
          "    tiny t, bool b, char2 c2, float3 f3, double4 d4, int *q,\n"
          "    const int &r, long long l, short s) { *q = w.x + r; }\n"};
  static const uint32_t want[] = {16, 3, 1, 32, 1, 1, 2, 12, 32, 8, 8, 8, 2};
  enum { N = sizeof want / sizeof want[0] };
  kiln_runtime *rt = each_runtime(_i, cache);
  kiln_image *image;
  uint32_t sizes[N];
  const char *ptx;
  size_t n, size;

  ck_kiln_ok(kiln_compile(&image, rt, &desc, &sm_80));
  ptx = kiln_image_ptx(image, &size);
  ck_assert(kiln__image_ptx_params(ptx, size, "k", sizes, N, &n));
  ck_assert_uint_eq(n, N);
  for (size_t i = 0; i < N; i++)
    ck_assert_msg(sizes[i] == want[i], "parameter %zu: %u bytes, not %u", i,
                  sizes[i], want[i]);
  kiln_image_free(image);
  kiln_runtime_free(rt);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("edge_params");
  TCase *t = tcase_create("each NVRTC");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, up_to_the_limit, 0, each_n);
  tcase_add_loop_test(t, sizes_of_all_kinds, 0, each_n);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  if (each_find() == 0)
    return KILN_TEST_SKIP;
  return kiln_test_run(suite());
}
