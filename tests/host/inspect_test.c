/* inspect_test.c -- tests inspect.h without a compiler: line tables of recorded
 * machine code, damaged line tables, and the child process that disassembles.
 * tests/compile/line_tables.py compares the tables with nvdisasm.
 *
 * The recorded image is the program INLINED of that script, compiled as
 * /inlined.cu for sm_90 by NVRTC 13.0 with -lineinfo. */
#include "support.h"

#include "program/image.h"

#include <kiln/inspect.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORDED KILN_TEST_SOURCE "/tests/golden/inlined.sm_90."

static const char report[] = "kernel one 16 0 0 0 0 540 0 0 2\n"
                             "kernel two 32 0 0 0 0 540 0 0 2\n";

static char dir[256];
static kiln_runtime *rt;
static kiln_image *image;
static char *ptx, *cubin;
static size_t ptx_size, cubin_size;

static void ck_has(const char *text, const char *part)
{
  ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text);
}

/* Makes `image` of PTX and machine code; either may be empty. */
static void make_image(const char *text, size_t text_size, const char *code,
                       size_t code_size)
{
  static const kiln__meta meta = {.target = {.cc = 90}, .nvrtc = 13000};
  static const char header[] = "kiln/inner.cuh\0int inner;";
  kiln__slice sections[KILN__SECTIONS] = {{"", 0}, {"", 0}, {"", 0},
                                          {"", 0}, {"", 0}, {"", 0}};
  kiln__key key;
  kiln__buf buf;

  kiln_image_free(image);
  kiln__key_init(&key, &rt->alloc);
  kiln__key_add(&key, "program", "inlined.cu", 10, true);
  kiln__key_add(&key, "source", "int outer;", 10, true);
  kiln__key_add(&key, "header", header, sizeof header - 1, true);
  ck_kiln_ok(kiln__key_seal(&key));
  kiln__buf_init(&buf, &rt->alloc);
  kiln__meta_write(&buf, &meta);
  sections[KILN__META] = (kiln__slice){buf.data, buf.size};
  sections[KILN__REPORT] = (kiln__slice){report, sizeof report - 1};
  sections[KILN__PTX] = (kiln__slice){text, text_size};
  sections[KILN__CUBIN] = (kiln__slice){code, code_size};
  ck_kiln_ok(kiln__image_open(&image, &rt->alloc,
                              kiln__entry_create(&rt->alloc, &key, sections),
                              KILN_FROM_COMPILER));
  kiln__buf_free(&buf);
  kiln__key_free(&key);
}

static void setup(void)
{
  test_dir_make(dir);
  ck_kiln_ok(kiln_runtime_create(&rt, NULL));
  ptx = test_read_file(RECORDED "ptx", &ptx_size);
  cubin = test_read_file(RECORDED "cubin", &cubin_size);
  make_image(ptx, ptx_size, cubin, cubin_size);
}

static void teardown(void)
{
  kiln_image_free(image);
  image = NULL;
  kiln_runtime_free(rt);
  free(ptx);
  free(cubin);
  test_dir_remove(dir);
}

/* ---- Line tables --------------------------------------------------------- */

/* Checks what holds for all line tables, also those of damaged images. */
static void check_tables(const kiln_lines *lines)
{
  const kiln_line_row *tables[] = {lines->code, lines->ptx};
  const size_t n[] = {lines->n_code, lines->n_ptx};
  const size_t limit[] = {lines->n_places, lines->n_ptx_lines + 1};

  for (size_t i = 0; i < lines->n_places; i++) {
    const kiln_place *p = &lines->places[i];

    ck_assert(p->file >= 0 && (size_t)p->file < lines->n_files);
    ck_assert(p->caller >= -1 && p->caller < (int32_t)i);
    ck_assert(p->line >= 0);
    ck_assert(p->function == NULL || strlen(p->function) < cubin_size);
    ck_assert_int_eq(p->reserved, 0);
  }
  for (int t = 0; t < 2; t++) {
    for (size_t i = 0; i < n[t]; i++) {
      const kiln_line_row *row = &tables[t][i];

      ck_assert(row->kernel < kiln_image_kernels(image));
      ck_assert(row->at >= -1 && row->at < (int32_t)limit[t]);
      ck_assert(
          i == 0 || row[-1].kernel < row->kernel ||
          (row[-1].kernel == row->kernel && row[-1].address <= row->address));
    }
  }
  for (size_t i = 0; i < lines->n_ptx_lines; i++)
    ck_assert(lines->ptx_places[i] >= -1 &&
              lines->ptx_places[i] < (int32_t)lines->n_places);
}

static int32_t at_address(const kiln_line_row *rows, size_t n, uint32_t kernel,
                          uint32_t address)
{
  int32_t at = -1;

  for (size_t i = 0; i < n; i++)
    if (rows[i].kernel == kernel && rows[i].address <= address)
      at = rows[i].at;
  return at;
}

START_TEST(recorded_tables)
{
  kiln_lines *lines;
  const kiln_place *p;
  int32_t place, line;

  ck_kiln_ok(kiln_image_lines(&lines, image));
  check_tables(lines);
  ck_assert_uint_eq(lines->n_files, 1);
  ck_assert_str_eq(lines->files[0], "/inlined.cu");
  /* one: line 5 of poly(), which line 18 calls */
  place = at_address(lines->code, lines->n_code, 0, 0x70);
  p = &lines->places[place];
  ck_assert_int_eq(p->line, 5);
  ck_assert_str_eq(p->function, "_Z4polyf");
  ck_assert_int_eq(lines->places[p->caller].line, 18);
  ck_assert_ptr_null(lines->places[p->caller].function);
  ck_assert_int_eq(lines->places[p->caller].caller, -1);
  /* the same instruction in PTX has the same place */
  line = at_address(lines->ptx, lines->n_ptx, 0, 0x70);
  ck_assert_int_gt(line, 0);
  ck_assert_int_eq(lines->ptx_places[line - 1], place);
  /* two: in the function that is not inlined, after its repeated first row */
  place = at_address(lines->code, lines->n_code, 1, 0x330);
  p = &lines->places[place];
  ck_assert_int_eq(p->line, 5);
  ck_assert_int_eq(lines->places[p->caller].line, 12);
  kiln_lines_free(lines);
  kiln_lines_free(NULL);
}
END_TEST

START_TEST(images_without_tables)
{
  static const char plain[] = ".visible .entry one()\n{\n\tret;\n}\n";
  kiln_lines *lines;

  ck_kiln_is(kiln_image_lines(NULL, image), KILN_EINVAL);
  ck_kiln_is(kiln_image_lines(&lines, NULL), KILN_EINVAL);
  make_image(plain, sizeof plain - 1, "", 0);
  ck_kiln_is(kiln_image_lines(&lines, image), KILN_ENOTFOUND);
  ck_assert_ptr_null(lines);
  ck_has(kiln_last_error()->hint, "lineinfo");
  make_image(ptx, ptx_size, "", 0); /* PTX only */
  ck_kiln_ok(kiln_image_lines(&lines, image));
  check_tables(lines);
  ck_assert_uint_eq(lines->n_code, 0);
  ck_assert_uint_gt(lines->n_places, 10);
  kiln_lines_free(lines);
}
END_TEST

START_TEST(code_and_source)
{
  kiln_resources res;
  const char *text;
  size_t size;

  ck_assert_ptr_nonnull(kiln_image_code(image, 0, &size));
  ck_assert_uint_eq(size, 384);
  ck_kiln_ok(kiln_image_resources(image, 0, &res));
  ck_assert_int_eq(res.code, 384);
  ck_assert_ptr_null(kiln_image_code(image, 2, &size));
  ck_assert_ptr_null(kiln_image_code(NULL, 0, NULL));
  text = kiln_image_source(image, "/any/where/inlined.cu", &size);
  ck_assert_uint_eq(size, 10);
  ck_assert_int_eq(memcmp(text, "int outer;", size), 0);
  text = kiln_image_source(image, "/any/where/kiln/inner.cuh", &size);
  ck_assert_uint_eq(size, 10);
  ck_assert_int_eq(memcmp(text, "int inner;", size), 0);
  ck_assert_ptr_null(kiln_image_source(image, "inner.cuh", &size));
  ck_assert_ptr_null(kiln_image_source(image, "notinlined.cu", &size));
  ck_assert_ptr_null(kiln_image_source(NULL, "inlined.cu", &size));
}
END_TEST

/* ---- Damaged images ------------------------------------------------------ */

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
  return (uint32_t)(test_random(&random_state) % n);
}

/* Changes a few bytes: anywhere, in the headers, or in the line sections, which
 * are in the first third of the file. */
static size_t damage(char *data, size_t size)
{
  const uint32_t n = 1 + random_below(8);
  const uint32_t range = (uint32_t)size / (1 + 2 * random_below(2));

  for (uint32_t i = 0; i < n; i++)
    data[random_below(range)] = (char)random_below(256);
  return random_below(16) == 0 ? random_below((uint32_t)size) : size;
}

static void read_damaged(void)
{
  kiln_lines *lines;
  size_t size;

  for (size_t i = 0; i < kiln_image_kernels(image); i++)
    kiln_image_code(image, i, &size);
  if (kiln_image_lines(&lines, image) == KILN_OK)
    check_tables(lines);
  kiln_lines_free(lines);
}

START_TEST(damaged_machine_code)
{
  char *copy = malloc(cubin_size);

  random_state = 1 + (uint64_t)_i;
  for (int round = 0; round < 1000; round++) {
    memcpy(copy, cubin, cubin_size);
    make_image(ptx, ptx_size, copy, damage(copy, cubin_size));
    read_damaged();
  }
  free(copy);
}
END_TEST

START_TEST(damaged_ptx)
{
  char *copy = malloc(ptx_size);

  random_state = 77;
  for (int round = 0; round < 1000; round++) {
    memcpy(copy, ptx, ptx_size);
    make_image(copy, damage(copy, ptx_size), cubin, cubin_size);
    read_damaged();
  }
  free(copy);
}
END_TEST

/* ---- Disassembling ------------------------------------------------------- */

/* Writes a script that plays nvdisasm. Returns its path. */
static const char *write_tool(const char *script)
{
  static char path[300];
  char text[600];

  snprintf(path, sizeof path, "%s/nvdisasm", dir);
  snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
  test_write_file(path, text, strlen(text));
  ck_assert_int_eq(chmod(path, 0755), 0);
  return path;
}

START_TEST(tool_runs_without_surroundings)
{
  static const char *const options[] = {"-hex", "a b"};
  kiln_sass_opts opts = {.options = options, .n_options = 2};
  char *text;
  size_t size;

  setenv("KILN_TEST_CANARY", "yes", 1);
  opts.tool =
      write_tool("echo \"<$1><$2><$#><$KILN_TEST_CANARY>\"; head -c 4 $3"
                 "; echo; wc -c <$3; echo noise >&2");
  ck_kiln_ok(kiln_image_sass(&text, &size, rt, image, &opts));
  ck_assert_uint_eq(strlen(text), size);
  ck_has(text, "<-hex><a b><3><>\n\177ELF\n13456");
  ck_assert_ptr_null(strstr(text, "noise"));
  kiln_text_free(rt, text);
  kiln_text_free(rt, NULL);
}
END_TEST

START_TEST(tool_fails)
{
  kiln_sass_opts opts = {.tool =
                             write_tool("echo half; echo bad SM >&2; exit 3")};
  char *text = dir;

  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_EUNSUPPORTED);
  ck_assert_ptr_null(text);
  ck_assert_str_eq(kiln_last_error()->log, "bad SM\n");
  ck_has(kiln_last_error()->message, "sm_90");
  write_tool("true"); /* prints nothing */
  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_EUNSUPPORTED);
  opts.timeout_ms = 100;
  write_tool("echo begin; exec sleep 1000");
  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_ETIMEOUT);
  write_tool("exec >&-; exec sleep 1000"); /* closes its output, and hangs */
  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_ETIMEOUT);
  opts.timeout_ms = 0;
  opts.max_bytes = 100000;
  write_tool("exec yes");
  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_ELIMIT);
  ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}
END_TEST

START_TEST(tool_is_not_usable)
{
  static const char *const many[17];
  kiln_sass_opts opts = {.tool = "nvdisasm"};
  char *text;

  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_ENOTFOUND);
  opts.tool = dir;
  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_ENOTFOUND);
  opts = (kiln_sass_opts){.options = many, .n_options = 17};
  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_EINVAL);
  ck_kiln_is(kiln_image_sass(NULL, NULL, rt, image, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_image_sass(&text, NULL, rt, NULL, NULL), KILN_EINVAL);
  make_image(ptx, ptx_size, "", 0);
  opts = (kiln_sass_opts){.tool = write_tool("echo ok")};
  ck_kiln_is(kiln_image_sass(&text, NULL, rt, image, &opts), KILN_EUNSUPPORTED);
}
END_TEST

/* The process takes the exit status of its children away. */
START_TEST(children_are_not_waited_for)
{
  const kiln_sass_opts opts = {.tool = write_tool("echo good")};
  char *text;

  signal(SIGCHLD, SIG_IGN);
  ck_kiln_ok(kiln_image_sass(&text, NULL, rt, image, &opts));
  ck_assert_str_eq(text, "good\n");
  kiln_text_free(rt, text);
}
END_TEST

START_TEST(search_for_the_tool)
{
  const char *tool = write_tool("echo found");
  const kiln_runtime_opts no_env = {.ignore_env = true};
  char path[512], value[600];
  kiln_runtime *other;

  ck_kiln_is(kiln_disassembler(rt, NULL, 1), KILN_EINVAL);
  setenv("KILN_NVDISASM", tool, 1);
  ck_kiln_ok(kiln_disassembler(rt, path, sizeof path));
  ck_assert_str_eq(path, tool);
  ck_kiln_ok(kiln_runtime_create(&other, &no_env));
  if (kiln_disassembler(other, path, sizeof path) == KILN_OK)
    ck_assert_str_ne(path, tool); /* one of the system */
  kiln_runtime_free(other);
  ck_kiln_is(kiln_disassembler(rt, path, 5), KILN_ENOTFOUND); /* too short */
  ck_assert_str_eq(path, "");
  setenv("KILN_NVDISASM", "/nonexistent", 1);
  setenv("PATH", dir, 1);
  ck_kiln_is(kiln_disassembler(rt, path, sizeof path), KILN_ENOTFOUND);
  ck_has(kiln_last_error()->hint, "KILN_NVDISASM");
  unsetenv("KILN_NVDISASM");
  ck_assert_int_eq(chdir(dir), 0);
  snprintf(value, sizeof value, "::.:/nonexistent:%s", dir);
  setenv("PATH", value, 1); /* the current directory is never searched */
  ck_kiln_ok(kiln_disassembler(rt, path, sizeof path));
  ck_assert_str_eq(path, tool);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("inspect");
  TCase *damaged =
      kiln_test_case(s, "damaged", 60, setup, teardown, TESTS(damaged_ptx));

  kiln_test_case(
      s, "tables", 0, setup, teardown,
      TESTS(recorded_tables, images_without_tables, code_and_source));
  kiln_test_loops(damaged, 4, TESTS(damaged_machine_code));
  kiln_test_case(s, "tool", 0, setup, teardown,
                 TESTS(tool_runs_without_surroundings, tool_fails,
                       tool_is_not_usable, children_are_not_waited_for,
                       search_for_the_tool));
  return s;
}

KILN_TEST_MAIN(suite)
