/* log_test.c -- tests that logs of the real compiler give the caller's file,
 * line and source text, for each NVRTC. */
#include "each_nvrtc.h"

static const kiln_target sm_80 = {.cc = 80};

static char dir[256], cache[300];
static kiln_runtime *rt;

/* The complete text that on_log received. */
static char *heard;
static size_t heard_size;
static int calls;

static void hear(void *user, const char *text, size_t size)
{
  (void)user;
  free(heard);
  heard = malloc(size + 1);
  memcpy(heard, text, size);
  heard[size] = '\0';
  heard_size = size;
  calls++;
}

static void setup(void)
{
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
}

static void teardown(void)
{
  kiln_runtime_free(rt);
  free(heard);
  test_dir_remove(dir);
}

static bool is_utf8(const char *text)
{

  for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
    size_t n = *p < 0x80             ? 1
               : (*p & 0xe0) == 0xc0 ? 2
               : (*p & 0xf0) == 0xe0 ? 3
               : (*p & 0xf8) == 0xf0 ? 4
                                     : 0;

    if (n == 0)
      return false;
    for (p++; --n > 0; p++) {
      if ((*p & 0xc0) != 0x80)
        return false;
    }
  }
  return true;
}

static void compile_fails(const kiln_program_desc *desc, const char *message)
{
  kiln_image *image;

  ck_kiln_is(kiln_compile(&image, rt, desc, &sm_80), KILN_ECOMPILE);
  ck_assert_ptr_null(image);
  ck_assert_msg(strncmp(kiln_last_error()->message, message, strlen(message)) ==
                    0,
                "\"%s\" is not \"%s\"", kiln_last_error()->message, message);
  ck_assert(is_utf8(kiln_last_error()->message));
  ck_assert(is_utf8(kiln_last_error()->log));
}

START_TEST(errors_have_the_callers_file_and_line)
{
  static const struct {
    const char *name, *source, *message;
    int first_line;
  } rows[] = {
      {"axpy.cu", "\n\n__device__ int f() { return foo; }\n",
       "axpy.cu(3): error: identifier \"foo\" is undefined", 0},
      {"axpy.cu", "\n\n__device__ int f() { return foo; }\n",
       "axpy.cu(102): error: identifier \"foo\" is undefined", 100},
      {"dir with space/a.cu", "__device__ int f() { return foo; }\n",
       "dir with space/a.cu(1): error: ", 1},
      {"a\"b.cu", "__device__ int f() { return foo; }\n",
       "a\"b.cu(1): error: ", 7 - 6},
      {"a\"b.cu", "__device__ int f() { return foo; }\n",
       "a\"b.cu(7): error: ", 7},
      {"caf\xc3\xa9.cu", "__device__ int f() { return foo; }\n",
       "caf\xc3\xa9.cu(1): error: ", 0},
      {NULL, "\n__device__ int f() { return foo; }\n",
       "program.cu(2): error: ", 0},
      {NULL, "__device__ int f() {\r\n return foo;\r\n}\r\n",
       "program.cu(2): error: ", 0},
      {NULL, "#error \"stop\"\n", "program.cu(41): catastrophic error: ", 41},
  };

  rt = each_runtime(_i, cache);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const kiln_program_desc desc = {.source = rows[i].source,
                                    .name = rows[i].name,
                                    .first_line = rows[i].first_line};

    compile_fails(&desc, rows[i].message);
  }
}
END_TEST

START_TEST(errors_in_headers)
{
  const kiln_header headers[] = {
      {"lib/h.h", "\n\n__device__ int g() { return bar; }\n"}};
  const kiln_program_desc desc = {.source = "#include <lib/h.h>\n",
                                  .name = "a.cu",
                                  .first_line = 50,
                                  .headers = headers,
                                  .n_headers = 1};

  rt = each_runtime(_i, cache);
  compile_fails(&desc, "lib/h.h(3): error: identifier \"bar\" is undefined");
}
END_TEST

/* Warnings must not fail the compile. They must reach the caller together with
 * the resource lines, even if the image comes from a cache. */
START_TEST(warnings_reach_the_caller)
{
  const kiln_program_desc desc = {
      .source = "__global__ void k() { int unused = 3; }\n",
      .name = "w.cu",
      .first_line = 20,
      .on_log = hear};
  char *first = NULL;

  rt = each_runtime(_i, cache);
  for (int round = 0; round < 3; round++) {
    kiln_image *image;

    ck_kiln_ok(kiln_compile(&image, rt, &desc, &sm_80));
    ck_assert_int_eq(calls, round + 1);
    ck_assert_str_eq(heard, kiln_image_log(image));
    ck_assert_ptr_nonnull(strstr(heard, "w.cu(20): warning "));
    ck_assert_ptr_nonnull(strstr(heard, "\"unused\""));
    ck_assert_ptr_nonnull(strstr(heard, "Used "));
    ck_assert_int_eq(heard[heard_size - 1], '\n');
    kiln_image_free(image);
    if (round == 0) {
      first = strdup(heard);
    } else {
      /* NVRTC's own cache must not make the log empty. */
      ck_assert_str_eq(heard, first);
    }
    if (round == 1) {
      kiln_runtime_free(rt);
      rt = each_runtime(_i, cache);
    }
  }
  free(first);
}
END_TEST

/* Compiles the same source twice in one process. The second log must have the
 * resource lines, although NVRTC 12.9 and later could answer from their own
 * cache, which does not keep them. */
START_TEST(resource_lines_on_every_compile)
{
  const kiln_program_desc desc = {.source = "__global__ void k() {}\n",
                                  .no_cache = true,
                                  .fail_on_spill = true};

  rt = each_runtime(_i, cache);
  for (int round = 0; round < 3; round++) {
    kiln_resources r;
    kiln_image *image;

    ck_kiln_ok(kiln_compile(&image, rt, &desc, &sm_80));
    ck_kiln_ok(kiln_image_resources(image, 0, &r));
    ck_assert_int_gt(r.registers, 0);
    kiln_image_free(image);
  }
}
END_TEST

START_TEST(bytes_that_are_no_text)
{
  const kiln_program_desc desc = {
      .source = "__device__ int f() { return \"\xff\xfe\" + \x80zz; }\n"
                "#error \xff\xc0 here\n",
      .name = "bytes.cu",
      .on_log = hear};
  kiln_image *image;

  rt = each_runtime(_i, cache);
  ck_kiln_is(kiln_compile(&image, rt, &desc, &sm_80), KILN_ECOMPILE);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "bytes.cu("));
  ck_assert(is_utf8(kiln_last_error()->log));
  ck_assert_int_eq(calls, 1);
  ck_assert(is_utf8(heard));
}
END_TEST

START_TEST(very_long_logs)
{
  enum { ERRORS = 90 }; /* The compiler stops after 100 errors. */
  static char source[ERRORS * 300];
  const kiln_program_desc desc = {
      .source = source, .name = "long.cu", .on_log = hear};
  kiln_image *image;
  size_t n, errors = 0;
  const char *log;

  rt = each_runtime(_i, cache);
  for (int i = 0; i < ERRORS; i++) {
    snprintf(source + strlen(source), sizeof source - strlen(source),
             "__device__ int a%d = undefined_%d_%0200d;\n", i, i, i);
  }
  ck_kiln_is(kiln_compile(&image, rt, &desc, &sm_80), KILN_ECOMPILE);
  log = kiln_last_error()->log;
  n = strlen(log);
  ck_assert_uint_lt(n, KILN_ERROR_LOG_SIZE);
  ck_assert_uint_gt(n, KILN_ERROR_LOG_SIZE - 16);
  ck_assert_str_eq(log + n - 3, "...");
  ck_assert_uint_gt(heard_size, KILN_ERROR_LOG_SIZE);
  for (const char *p = strstr(heard, "error: "); p != NULL;
       p = strstr(p + 1, "error: "))
    errors++;
  ck_assert_uint_ge(errors, ERRORS);
}
END_TEST

/* Logs must not show source that Kiln or the compiler generated. */
START_TEST(no_generated_lines)
{
  static const char *const names[] = {"f<int>", "f<nothing>"};
  const kiln_program_desc desc = {
      .source = "template <class T> __global__ void f(T) {}\n",
      .name = "n.cu",
      .first_line = 9,
      .names = names,
      .n_names = 2,
      .on_log = hear};
  kiln_image *image;

  rt = each_runtime(_i, cache);
  ck_kiln_is(kiln_compile(&image, rt, &desc, &sm_80), KILN_ENOTFOUND);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "f<nothing>"));
  ck_assert_ptr_null(strstr(heard, "__nv_name_map"));
  ck_assert_ptr_null(strstr(heard, "nv_mangled_name"));
  ck_assert_ptr_null(strstr(heard, "#line"));
  ck_assert_ptr_null(strstr(heard, "f<int>"));
  ck_assert_ptr_nonnull(
      strstr(heard, "name expression \"f<nothing>\": error: "));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("log");
  TCase *t = tcase_create("each NVRTC");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, errors_have_the_callers_file_and_line, 0, each_n);
  tcase_add_loop_test(t, errors_in_headers, 0, each_n);
  tcase_add_loop_test(t, warnings_reach_the_caller, 0, each_n);
  tcase_add_loop_test(t, resource_lines_on_every_compile, 0, each_n);
  tcase_add_loop_test(t, bytes_that_are_no_text, 0, each_n);
  tcase_add_loop_test(t, very_long_logs, 0, each_n);
  tcase_add_loop_test(t, no_generated_lines, 0, each_n);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  if (each_find() == 0)
    return KILN_TEST_SKIP;
  return kiln_test_run(suite());
}
