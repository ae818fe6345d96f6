/* pictures_test.c -- the occupancy sheet of the command and its pictures. An XML
 * parser reads the pictures if Python is installed. */
#include "command.h"

#ifdef KILN_TEST_CLI

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[256];

/* The sheet of the lecture. */
#define LECTURE                                                                \
  "occupancy --arch 7.0 --threads 128 --regs 32 --smem 4096 --smem-config 32K"

static void setup(void)
{
  test_dir_make(dir);
  test_command_setup(dir);
}

static void teardown(void)
{
  test_dir_remove(dir);
}

static double number(const cJSON *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  ck_assert_msg(cJSON_IsNumber(item), "no number \"%s\"", key);
  return item->valuedouble;
}

START_TEST(lecture_sheet)
{
  const test_run run =
      expect(0, "8 blocks, 32 of 64 warps per SM: occupancy 50 %", LECTURE);

  ck_has(run.out, "limited by shared memory\n");
  ck_has(run.out, "  registers          4,096    65,536      16\n");
  ck_has(run.out, "  shared memory    4,096 B  32,768 B       8  binds\n");
  ck_has(run.out, "one more block needs at most 3,584 bytes of shared memory");
}
END_TEST

/* The curves of the JSON document are those of the lecture's three graphs. */
START_TEST(lecture_curves)
{
  cJSON *json = cJSON_Parse(expect(0, NULL, LECTURE " --json").out);
  const cJSON *curve, *limits = cJSON_GetObjectItem(json, "limits");
  static const double block_sizes[] = {8, 16, 24, 32, 40, 48, 56, 64};

  ck_assert_ptr_nonnull(json);
  ck_assert_double_eq(number(json, "blocks"), 8);
  ck_assert_double_eq(number(json, "percent"), 50);
  ck_assert_double_eq(number(limits, "warps"), 16);
  ck_assert_double_eq(number(limits, "blocks"), 32);
  curve = cJSON_GetObjectItem(json, "by_threads");
  ck_assert_int_eq(cJSON_GetArraySize(curve), 32);
  for (int i = 0; i < 8; i++) {
    const cJSON *point = cJSON_GetArrayItem(curve, i);

    ck_assert_double_eq(cJSON_GetArrayItem(point, 0)->valuedouble, 32 * i + 32);
    ck_assert_double_eq(cJSON_GetArrayItem(point, 1)->valuedouble,
                        block_sizes[i]);
  }
  curve = cJSON_GetObjectItem(json, "by_registers");
  ck_assert_int_eq(cJSON_GetArraySize(curve), 255);
  cJSON_Delete(json);
}
END_TEST

/* Each row: options, and what the sheet says. */
static const struct {
  const char *options, *text;
} sheets[] = {
    {"--arch 9.0 --threads 1024 --regs 65", "0 blocks, 0 of 64 warps"},
    {"--arch sm_86 --threads 32 --regs 16", "limited by blocks\n"},
    {"--arch 9.0 --threads 256 --regs 32", "limited by warps and registers\n"},
    {"--arch 9.0 --threads 256 --regs 40",
     "one more block needs at most 32 registers per thread"},
    {"--arch 1.0 --threads 512", "Registers are allocated per block"},
    {"--arch 8.0 --smem 163K", "1 blocks, 8 of 64 warps"},
    {"--arch 9.0 --threads 64 --barriers 16",
     "  barriers              16         64       4  binds\n"},
    {"--arch 12.0 --threads 64 --barriers 5",
     "4 blocks, 8 of 48 warps per SM: occupancy 16.7 %, limited by barriers\n"},
    {"--arch 8.6 --threads 64 --barriers 16", "limited by blocks\n"},
    {"--arch 9.0 --threads 32 --regs 16 --barriers 2",
     "limited by blocks and barriers\n"},
};

START_TEST(sheets_of_settings)
{
  expect(0, sheets[_i].text, "occupancy %s", sheets[_i].options);
}
END_TEST

static const char *const misuses[] = {
    "occupancy --arch nine",
    "occupancy --arch 9.0 --threads 0",
    "occupancy --arch 9.0 --threads 1025",
    "occupancy --arch 1.0 --threads 513",
    "occupancy --arch 9.0 --regs 256",
    "occupancy --arch 9.0 --smem much",
    "occupancy --arch 9.0 --smem 999999999999",
    "occupancy --arch 7.0 --smem-config 97K",
    "occupancy",
};

START_TEST(misuse_is_explained)
{
  const test_run run = test_kiln("%s", misuses[_i]);

  ck_run_rc(run, 2);
  ck_has(run.err, "kiln occupancy: ");
}
END_TEST

static const char *path_of(const char *name)
{
  static char path[512];

  snprintf(path, sizeof path, "%s/%s", dir, name);
  return path;
}

/* Fails the test unless Python's XML parser accepts the file. */
static void check_xml(const char *path)
{
  char command[1200];

  snprintf(command, sizeof command,
           "command -v python3 >/dev/null || exit 0; python3 -c 'import sys, "
           "xml.etree.ElementTree as t; t.parse(sys.argv[1])' '%s'",
           path);
  ck_assert_msg(system(command) == 0, "%s is not XML", path);
}

START_TEST(sheet_is_drawn)
{
  const char *path = path_of("sheet.svg");
  size_t size;
  char *text;

  expect(0, NULL, LECTURE " --svg %s", path);
  text = test_read_file(path, &size);
  ck_has(text, "prefers-color-scheme:dark");
  ck_has(text, "Varying registers");
  ck_has(text, "threads per block");
  ck_has(text, "class=\"kp-mark\"");
  check_xml(path);
  free(text);
}
END_TEST

/* Results of a benchmark, with a peer, a ceiling, and text that must not become
 * markup. */
static const char results[] =
    "{\"device\": \"</svg><script>alert(1)</script>\", \"peak_gb_per_s\": 4000,"
    "\"cases\": ["
    "{\"family\":\"scan\",\"case\":\"sum & \\u0001\\\"x\\\"\",\"type\":\"f32\","
    "\"n\":1024,\"ms\":0.01,\"gb_per_s\":1,\"peer\":\"CUB\",\"peer_ms\":0.02},"
    "{\"family\":\"scan\",\"case\":\"sum & \\u0001\\\"x\\\"\",\"type\":\"f32\","
    "\"n\":1048576,\"ms\":0.01,\"gb_per_s\":1000,\"peer\":\"CUB\","
    "\"peer_ms\":0.02},"
    "{\"family\":\"map\",\"case\":\"<b>unary\",\"type\":\"i8\",\"n\":512,"
    "\"ms\":1,\"gb_per_s\":7}],"
    "\"gemm\": [{\"type\":\"f16\",\"shape\":\"8 x 8 x 8\",\"ms\":1,"
    "\"tflops\":20,\"peer_ms\":2}],"
    "\"library\": [{\"n\":1024,\"ms\":100}, {\"n\":4096,\"ms\":200}]}";

START_TEST(results_are_drawn)
{
  const char *path = path_of("results.json");
  char file[512], *text;
  size_t size;

  test_write_file(path, results, sizeof results - 1);
  snprintf(file, sizeof file, "%s", path);
  path = path_of("results.svg");
  expect(0, NULL, "bench draw %s --plot %s --html %s.html", file, path, path);
  check_xml(path);
  text = test_read_file(path, &size);
  ck_has(text, "memory's peak");
  ck_has(text, "CUB, 1Mi: 500"); /* half of 1,000 GB/s */
  ck_has(text, "cuBLAS");
  ck_has(text, "Kiln, 1,024: 100<");
  ck_has(text, ">200</text>"); /* a tick of an axis that became linear */
  ck_has(text, "sum &amp; \xef\xbf\xbd&quot;x&quot; f32");
  ck_lacks(text, "<script");
  ck_lacks(text, "<b>");
  free(text);
  text = test_read_file(path_of("results.svg.html"), &size);
  ck_has(text, "<!doctype html>");
  ck_lacks(text, "<script");
  ck_lacks(text, "src=");
  ck_lacks(text, "href=");
  free(text);
}
END_TEST

START_TEST(other_documents_are_refused)
{
  const char *path = path_of("other.json");

  test_write_file(path, "{\"gemm\": 5}", 11);
  ck_run_rc(test_kiln("bench draw %s --plot /dev/null", path), 1);
  test_write_file(path, "[1, 2", 5);
  ck_run_rc(test_kiln("bench draw %s --plot /dev/null", path), 1);
  ck_run_rc(test_kiln("bench draw %s", path), 2);
}
END_TEST

/* With a converter, the picture is a PNG file, light and dark. */
START_TEST(sheet_is_converted)
{
  static const char signature[] = "\x89PNG\r\n\x1a\n";
  const char *path = path_of("sheet.png");
  size_t size;
  char *data;

  if (system("command -v rsvg-convert >/dev/null") != 0)
    return;
  for (int dark = 0; dark < 2; dark++) {
    expect(0, NULL, LECTURE " --png %s%s", path, dark ? " --dark" : "");
    data = test_read_file(path, &size);
    ck_assert_uint_gt(size, 1000);
    ck_assert_mem_eq(data, signature, sizeof signature - 1);
    free(data);
  }
}
END_TEST

/* Without a converter, the message says what to install; the sheet itself is
 * printed all the same. */
START_TEST(converter_is_missing)
{
  test_run run;

  setenv("PATH", dir, 1);
  run = test_kiln(LECTURE " --png %s", path_of("sheet.png"));
  ck_run_rc(run, 1);
  ck_has(run.err, "install librsvg2-bin");
  ck_has(run.out, "occupancy 50 %");
}
END_TEST

/* The graphs are ASCII unless the locale has UTF-8. */
START_TEST(graphs_follow_the_locale)
{
  test_run run;

  setenv("LC_ALL", "C", 1);
  run = expect(0, "***", LECTURE);
  for (const char *at = run.out; *at != '\0'; at++)
    ck_assert_msg((unsigned char)*at < 0x80, "not ASCII: %s", at);
  setenv("LC_ALL", "C.UTF-8", 1);
  expect(0, "\xe2\xa0", LECTURE);
}
END_TEST

#define N(array) (int)(sizeof(array) / sizeof(array)[0])

int main(void)
{
  Suite *s = suite_create("pictures");
  TCase *c = kiln_test_case(
      s, "pictures", 60, setup, teardown,
      TESTS(lecture_sheet, lecture_curves, sheet_is_drawn, results_are_drawn,
            other_documents_are_refused, sheet_is_converted,
            converter_is_missing, graphs_follow_the_locale));

  tcase_add_loop_test(c, sheets_of_settings, 0, N(sheets));
  tcase_add_loop_test(c, misuse_is_explained, 0, N(misuses));
  return kiln_test_run(s);
}

#else

#include <stdio.h>

int main(void)
{
  puts("skipped: built without the command (KILN_CLI)");
  return KILN_TEST_SKIP;
}

#endif
