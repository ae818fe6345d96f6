/* Tests how Kiln processes the compiler's log: the text that users see, and the
 * register and memory use that the log reports. */
#include "support.h"

#include "program/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_allocator heap;
static const char *expressions[] = {"f<int>", "g<3>"};
static const kiln__list names = {expressions, 2, 2};

static char *map(const char *raw, size_t size)
{
  kiln__buf out;

  kiln__allocator_default(&heap);
  kiln__buf_init(&out, &heap);
  kiln__log_map(&out, raw, size, &names);
  return kiln__buf_take(&out);
}

static const struct {
  const char *raw, *want;
} logs[] = {
    {"", ""},
    {"\n \n", ""},
    {"a.cu(3): error: x\n \0", "a.cu(3): error: x\n"},
    {"a\r\nb\r\n", "a\nb\n"},
    {"a\n\nb\n", "a\n\nb\n"},
    /* Bytes that are not UTF-8 or that control a terminal are replaced. */
    {"\xff\xfe z\x1b[31m\n", "?? z?[31m\n"},
    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5\n",
     "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5\n"},
    {"cut \xe2\x82", "cut ??\n"},
    {"long \xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80", "long ?? ??? ????\n"},
    {"\ttab\n", "\ttab\n"},
    /* Lines that NVRTC generates for name expressions are rewritten. */
    {"__nv_name_map(3): error: identifier \"g\" is undefined\n"
     "  #pragma nv_mangled_name g<3>\n                          ^\n\n1 error",
     "name expression \"g<3>\": error: identifier \"g\" is undefined\n\n"
     "1 error\n"},
    {"__nv_name_map(2): error: q\n", "name expression \"f<int>\": error: q\n"},
    {"__nv_name_map(99): error: q\n", "__nv_name_map(99): error: q\n"},
};

START_TEST(maps_lines)
{
  char *got = map(logs[_i].raw, strlen(logs[_i].raw));

  ck_assert_str_eq(got, logs[_i].want);
  free(got);
}
END_TEST

START_TEST(long_logs_and_nuls)
{
  const size_t lines = 200000;
  char *raw = malloc(lines * 12 + 4), *got;

  for (size_t i = 0; i < lines; i++)
    memcpy(raw + i * 12, "a.cu(1): abc", 12);
  for (size_t i = 1; i < lines; i++)
    raw[i * 12 - 1] = '\n';
  memcpy(raw + lines * 12, "\0\0\0", 4);
  got = map(raw, lines * 12 + 3);
  ck_assert_uint_eq(strlen(got), lines * 12 + 1);
  free(got);
  got = map("a\n\0ptxas error\n", 15);
  ck_assert_str_eq(got, "a\nptxas error\n");
  free(got);
  free(raw);
}
END_TEST

static const struct {
  const char *log, *line;
} errors[] = {
    {"", NULL},
    {"a.cu(1): warning #1: error\n", NULL},
    {"a.cu(1): warning #1\n  x): error here\na.cu(2): error: x\n",
     "a.cu(2): error: x"},
    {"a.cu(1): catastrophic error: no\n", "a.cu(1): catastrophic error: no"},
    {"ptxas info    : x\n ptxas error   : too much\n",
     "ptxas error   : too much"},
    {"ptxas fatal   : Unresolved\n", "ptxas fatal   : Unresolved"},
    {"nvrtc: error: unrecognized option --x found\n",
     "nvrtc: error: unrecognized option --x found"},
    {"name expression \"g\": error: y\n", "name expression \"g\": error: y"},
};

START_TEST(first_error_line)
{
  const char *log = errors[_i].log, *line = NULL;
  size_t size = 0;
  const bool found = kiln__log_error(log, strlen(log), &line, &size);

  ck_assert_int_eq(found, errors[_i].line != NULL);
  if (found) {
    ck_assert_uint_eq(size, strlen(errors[_i].line));
    ck_assert_mem_eq(line, errors[_i].line, size);
  }
}
END_TEST

START_TEST(errors_of_names_only)
{
  static const struct {
    const char *raw;
    long want;
  } rows[] = {
      {"__nv_name_map(3): error: x\n  #pragma\n", 1},
      {"a.cu(1): warning #1\n__nv_name_map(2): error: x\n", 0},
      {"a.cu(1): error: y\n__nv_name_map(2): error: x\n", -1},
      {"a.cu(1): error: y\n", -1},
      {"__nv_name_map(9): error: x\n", -1},
      {"", -1},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    ck_assert_int_eq(
        kiln__log_bad_name(rows[i].raw, strlen(rows[i].raw), &names),
        rows[i].want);
}
END_TEST

/* ---- Reports ------------------------------------------------------------- */

static const char ptx[] =
    ".version 8.0\n.visible .entry k(.param .u64 a, .param .u32 b)\n"
    ".maxntid 128, 1, 1\n{ ret; }\n.visible .entry quiet()\n{ ret; }\n";

static const char ptxas[] =
    "a.cu(1): warning: x\n"
    "  ptxas info    : Used 99 registers in a quoted source line\n"
    "ptxas info    : 0 bytes gmem, 8 bytes cmem[3]\n"
    "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
    "ptxas info    : Function properties for k\n"
    "ptxas         .     984 bytes stack frame, 1104 bytes spill stores, 1120 "
    "bytes spill loads\n"
    "ptxas info    : Used 32 registers, used 1 barriers, 984 bytes cumulative "
    "stack size, 256+16 bytes smem, 400 bytes cmem[0], 8 bytes cmem[2]\n"
    "ptxas info    : Compile time = 10.429 ms\n"
    "ptxas info    : Function properties for _Z1fiPi\n"
    "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes "
    "spill loads\n"
    "ptxas info    : Function properties for _Z1gv\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes "
    "spill loads\n";

static char *report_of(const char *code, const char *log)
{
  kiln__buf out;

  kiln__allocator_default(&heap);
  kiln__buf_init(&out, &heap);
  kiln__report_write(&out, (kiln__slice){code, strlen(code)},
                     (kiln__slice){"", 0}, (kiln__slice){log, strlen(log)});
  return kiln__buf_take(&out);
}

START_TEST(reads_resource_lines)
{
  char *report = report_of(ptx, ptxas);
  const size_t size = strlen(report);
  kiln__report_line line;
  size_t at = 0;

  ck_assert(kiln__report_next(report, size, &at, &line));
  ck_assert(line.kernel && line.name_size == 1 && line.name[0] == 'k');
  ck_assert_int_eq(line.res.registers, 32);
  ck_assert_int_eq(line.res.spill_stores, 1104);
  ck_assert_int_eq(line.res.spill_loads, 1120);
  ck_assert_int_eq(line.res.stack, 984);
  ck_assert_int_eq(line.res.shared_static, 272);
  ck_assert_int_eq(line.res.constant, 408);
  ck_assert_int_eq(line.res.local, 984);
  ck_assert_int_eq(line.res.max_threads, 128);
  ck_assert_int_eq(line.res.n_params, 2);

  ck_assert(kiln__report_next(report, size, &at, &line));
  ck_assert(line.kernel && line.name_size == 5);
  ck_assert_int_eq(line.res.registers, 0);

  /* Device functions are listed only if they spill registers. */
  ck_assert(kiln__report_next(report, size, &at, &line));
  ck_assert(!line.kernel);
  ck_assert_mem_eq(line.name, "_Z1fiPi", 7);
  ck_assert_int_eq(line.res.spill_loads, 4);
  ck_assert(!kiln__report_next(report, size, &at, &line));
  free(report);
}
END_TEST

START_TEST(odd_reports)
{
  static const char *const bad[] = {"",
                                    "\n",
                                    "kernel",
                                    "kernel k 1 2\n",
                                    "kernel k 1 2 3 4 5 6 7 8 x\n",
                                    "other k 1 2 3 4 5 6 7 8 9\n"};
  kiln__report_line line;
  char *report;

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    size_t at = 0;

    ck_assert(!kiln__report_next(bad[i], strlen(bad[i]), &at, &line));
  }
  report = report_of("", "");
  ck_assert_str_eq(report, "");
  free(report);
}
END_TEST

/* Truncates the log at each byte. The copy has the exact size, so that ASan
 * detects a read past the end. */
START_TEST(every_truncation_stays_inside)
{
  for (size_t size = 0; size < sizeof ptxas; size++) {
    char *log = malloc(size == 0 ? 1 : size);
    kiln__buf out;

    memcpy(log, ptxas, size);
    kiln__allocator_default(&heap);
    kiln__buf_init(&out, &heap);
    kiln__report_write(&out, (kiln__slice){ptx, sizeof ptx - 1},
                       (kiln__slice){"", 0}, (kiln__slice){log, size});
    ck_assert(!out.failed);
    kiln__buf_clear(&out);
    kiln__log_map(&out, log, size, &names);
    kiln__buf_free(&out);
    free(log);
  }
}
END_TEST

/* ---- Machine code -------------------------------------------------------- */

/* Makes an ELF file with a section of names and a constant memory section for
 * kernel "k". */
static size_t make_elf(unsigned char *out)
{
  static const char strings[] = "\0.names\0.nv.constant0.k\0.nv.constant2.k";

  memset(out, 0, 400);
  memcpy(out, "\177ELF\2\1", 6);
  out[40] = 128; /* offset of the section headers in the file */
  out[58] = 64;
  out[60] = 4; /* number of sections; the first section is empty */
  out[62] = 1;
  memcpy(out + 64, strings, sizeof strings);
  out[128 + 64] = 1;
  out[128 + 64 + 24] = 64;
  out[128 + 64 + 32] = sizeof strings;
  out[128 + 128] = 8;
  out[128 + 128 + 32] = 0x90;
  out[128 + 128 + 33] = 1;
  out[128 + 192] = 24;
  out[128 + 192 + 32] = 8;
  return 128 + 256;
}

START_TEST(constants_of_machine_code)
{
  unsigned char file[400];
  const size_t size = make_elf(file);
  uint64_t seed = 7;

  ck_assert_int_eq(kiln__cubin_constant(file, size, "k", 1), 0x198);
  ck_assert_int_eq(kiln__cubin_constant(file, size, "kk", 2), 0);
  ck_assert_int_eq(kiln__cubin_constant(file, size, "", 0), 0);
  ck_assert_int_eq(kiln__cubin_constant("", 0, "k", 1), 0);
  /* Truncate the file at each byte, in a copy of the exact size. */
  for (size_t n = 0; n < size; n++) {
    unsigned char *copy = malloc(n == 0 ? 1 : n);

    memcpy(copy, file, n);
    ck_assert_int_eq(kiln__cubin_constant(copy, n, "k", 1), 0);
    free(copy);
  }
  /* Random damage never causes a read outside the file. */
  for (int i = 0; i < 20000; i++) {
    unsigned char *copy = malloc(size);

    memcpy(copy, file, size);
    for (int k = 0; k < 3; k++)
      copy[test_random(&seed) % size] = (unsigned char)test_random(&seed);
    ck_assert_int_ge(kiln__cubin_constant(copy, size, "k", 1), 0);
    free(copy);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("program_log");
  TCase *t = kiln_test_case(s, "all", 0, NULL, NULL,
                            TESTS(long_logs_and_nuls, errors_of_names_only,
                                  reads_resource_lines, odd_reports,
                                  every_truncation_stays_inside,
                                  constants_of_machine_code));

  tcase_add_loop_test(t, maps_lines, 0, sizeof logs / sizeof logs[0]);
  tcase_add_loop_test(t, first_error_line, 0, sizeof errors / sizeof errors[0]);
  return kiln_test_run(s);
}
