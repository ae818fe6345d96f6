/* base_test.c -- tests error records, memory, strings, buffers, records of
 * library searches (trails), files and fork detection. */
#include "support.h"

#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static test_allocator memory;

static void setup(void)
{
  test_allocator_init(&memory);
}

static void teardown(void)
{
  ck_assert_int_eq(memory.live, 0);
}

/* ---- UTF-8 --------------------------------------------------------------- */

static bool valid_utf8(const char *text)
{
  const unsigned char *c = (const unsigned char *)text;

  while (*c != 0) {
    int more = *c < 0x80 ? 0 : *c >= 0xf0 ? 3 : *c >= 0xe0 ? 2 : 1;

    if ((*c & 0xc0) == 0x80)
      return false;
    for (c++; more > 0; more--, c++) {
      if ((*c & 0xc0) != 0x80)
        return false;
    }
  }
  return true;
}

/* UTF-8 characters of one to four bytes. */
static const char mixed[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5"
                            "b\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5";

START_TEST(text_is_cut_between_characters)
{
  for (size_t size = 1; size <= sizeof mixed; size++) {
    char buf[64];
    bool whole;

    memset(buf, '#', sizeof buf);
    whole = kiln__copy_text(buf, size, mixed);
    ck_assert_int_eq(whole, size == sizeof mixed);
    ck_assert_msg(valid_utf8(buf), "copy to %zu bytes", size);
    ck_assert_uint_lt(strlen(buf), size);
    ck_assert_int_eq(strncmp(buf, mixed, strlen(buf)), 0);
    /* Truncation drops at most one character. */
    ck_assert_uint_ge(strlen(buf) + 4, size);
    ck_assert_int_eq(buf[size], '#');

    memset(buf, '#', sizeof buf);
    whole = kiln__format(buf, size, "%s", mixed);
    ck_assert_int_eq(whole, size == sizeof mixed);
    ck_assert_msg(valid_utf8(buf), "format to %zu bytes", size);
    ck_assert_int_eq(strncmp(buf, mixed, strlen(buf)), 0);
    ck_assert_uint_ge(strlen(buf) + 4, size);
    ck_assert_int_eq(buf[size], '#');
  }
}
END_TEST

/* If the bytes are not UTF-8, truncation never reads outside the buffer, and
 * the result is NUL-terminated. */
START_TEST(other_bytes_survive_a_cut)
{
  static const char *const texts[] = {
      "\x80\x80\x80\x80\x80\x80\x80\x80", "\xff\xff\xff\xff\xff\xff\xff",
      "\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3", "\xf0\x9f\x94\xf0\x9f\x94\xf0"};

  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    for (size_t size = 1; size < 7; size++) {
      char buf[8];

      memset(buf, '#', sizeof buf);
      ck_assert(!kiln__format(buf, size, "%s", texts[i]));
      ck_assert_uint_lt(strlen(buf), size);
      ck_assert_int_eq(buf[size], '#');
      ck_assert(!kiln__copy_text(buf, size, texts[i]));
      ck_assert_uint_lt(strlen(buf), size);
    }
  }
}
END_TEST

START_TEST(copying_onto_itself)
{
  char buf[16] = "abcdef";

  ck_assert(kiln__copy_text(buf, sizeof buf, buf + 2));
  ck_assert_str_eq(buf, "cdef");
  ck_assert(!kiln__copy_text(buf, 3, buf));
  ck_assert_str_eq(buf, "cd");
}
END_TEST

/* ---- Error record -------------------------------------------------------- */

static void check_record(kiln_status status, kiln_error_source source,
                         int native)
{
  const kiln_error *e = kiln_last_error();

  ck_assert_int_eq(e->status, status);
  ck_assert_int_eq(e->source, source);
  ck_assert_int_eq(e->native, native);
}

START_TEST(record_holds_the_last_failure)
{
  const kiln_error *e = kiln_last_error();

  ck_assert_ptr_nonnull(e);
  ck_assert_int_eq(e->status, KILN_OK);
  ck_assert_int_eq(kiln__fail(KILN_EINVAL, "%d", "bad %d", 7), KILN_EINVAL);
  check_record(KILN_EINVAL, KILN_SOURCE_NONE, 0);
  ck_assert_str_eq(e->message, "bad 7");
  /* The hint is not used as a format string. */
  ck_assert_str_eq(e->hint, "%d");
  ck_assert_str_eq(e->call, "");

  kiln__error_log("the log\n", 8);
  ck_assert_str_eq(e->log, "the log\n");
  kiln__error_hint("try %s", "again");
  ck_assert_str_eq(e->hint, "try again");

  ck_assert_int_eq(kiln__fail_native(KILN_EDRIVER, KILN_SOURCE_DRIVER, 700,
                                     "cuFoo", NULL, "%s", "m"),
                   KILN_EDRIVER);
  check_record(KILN_EDRIVER, KILN_SOURCE_DRIVER, 700);
  ck_assert_str_eq(e->call, "cuFoo");
  ck_assert_str_eq(e->hint, "");
  /* The new error clears the log of the previous error. */
  ck_assert_str_eq(e->log, "");

  ck_assert_int_eq(kiln__fail_os(ENOENT, "open", "/x"), KILN_EIO);
  check_record(KILN_EIO, KILN_SOURCE_OS, ENOENT);
  ck_assert_str_eq(e->message, "/x: open failed: No such file or directory");

  ck_assert_int_eq(kiln__fail_memory("a module"), KILN_ENOMEM);
  ck_assert(strstr(e->message, "a module") != NULL);
  ck_assert(e->hint[0] != '\0');
}
END_TEST

/* An error message is often built from the error record that it replaces. */
START_TEST(record_may_be_its_own_source)
{
  const kiln_error *e = kiln_last_error();
  kiln_error saved;

  kiln__fail(KILN_EIO, "hint", "inner");
  kiln__fail(KILN_EDRIVER, e->message, "outer: %s, %s", e->message, e->hint);
  ck_assert_str_eq(e->message, "outer: inner, hint");
  ck_assert_str_eq(e->hint, "inner");
  kiln__error_hint("%s and more", e->hint);
  ck_assert_str_eq(e->hint, "inner and more");
  kiln__error_log(e->message, strlen(e->message));
  ck_assert_str_eq(e->log, "outer: inner, hint");
  kiln__error_log(e->log + 7, 5);
  ck_assert_str_eq(e->log, "inner");

  kiln__error_get(&saved);
  kiln__fail(KILN_EINVAL, NULL, "clean-up failed too");
  kiln__error_set(&saved);
  ck_assert_int_eq(e->status, KILN_EDRIVER);
  ck_assert_str_eq(e->message, "outer: inner, hint");
}
END_TEST

static void check_cut(const char *text, size_t size)
{
  const size_t n = strlen(text);

  ck_assert_uint_lt(n, size);
  ck_assert_uint_ge(n + 4, size);
  ck_assert_msg(valid_utf8(text), "split character");
  ck_assert_str_eq(text + n - 3, "...");
}

/* The test truncates the text at every byte of a multi-byte character. */
START_TEST(long_texts_end_in_dots)
{
  const kiln_error *e = kiln_last_error();
  static char text[KILN_ERROR_LOG_SIZE * 2];

  for (size_t phase = 0; phase < 4; phase++) {
    size_t n = phase;

    memset(text, 'x', phase);
    while (n + 4 < sizeof text) {
      memcpy(text + n, "\xf0\x9f\x94\xa5", 4);
      n += 4;
    }
    text[n] = '\0';
    kiln__fail_native(KILN_EIO, KILN_SOURCE_OS, 1, text, text, "%s", text);
    check_cut(e->message, KILN_ERROR_MESSAGE_SIZE);
    check_cut(e->hint, KILN_ERROR_HINT_SIZE);
    check_cut(e->call, sizeof e->call);
    kiln__error_hint("%s", text);
    check_cut(e->hint, KILN_ERROR_HINT_SIZE);
    kiln__error_log(text, n);
    check_cut(e->log, KILN_ERROR_LOG_SIZE);
  }
  /* A log that exactly fits is not truncated. */
  memset(text, 'y', sizeof text);
  kiln__error_log(text, KILN_ERROR_LOG_SIZE - 1);
  ck_assert_uint_eq(strlen(e->log), KILN_ERROR_LOG_SIZE - 1);
  ck_assert_int_eq(e->log[KILN_ERROR_LOG_SIZE - 2], 'y');
  kiln__error_log(text, 0);
  ck_assert_str_eq(e->log, "");
}
END_TEST

static void *fail_elsewhere(void *arg)
{
  ck_assert_int_eq(kiln_last_error()->status, KILN_OK);
  kiln__fail(KILN_ENOMEM, NULL, "elsewhere");
  *(const kiln_error **)arg = kiln_last_error();
  return NULL;
}

START_TEST(record_is_one_a_thread)
{
  const kiln_error *other = NULL;
  pthread_t thread;

  kiln__fail(KILN_EINVAL, NULL, "here");
  ck_assert_int_eq(pthread_create(&thread, NULL, fail_elsewhere, &other), 0);
  pthread_join(thread, NULL);
  ck_assert_ptr_ne(other, kiln_last_error());
  ck_assert_str_eq(kiln_last_error()->message, "here");
}
END_TEST

START_TEST(statuses_have_names_and_texts)
{
#define CHECK_STATUS(name, value, text)                                        \
  ck_assert_int_eq(KILN_##name, value);                                        \
  ck_assert_str_eq(kiln_status_name(KILN_##name), "KILN_" #name);              \
  ck_assert_str_eq(kiln_status_text(KILN_##name), text);
  KILN_STATUS_MAP(CHECK_STATUS)
#undef CHECK_STATUS
  ck_assert_str_eq(kiln_status_name((kiln_status)4711), "KILN_?");
  ck_assert(kiln_status_text((kiln_status)-1)[0] != '\0');
  ck_assert_int_eq(kiln_version(), KILN_VERSION);
}
END_TEST

/* ---- Memory -------------------------------------------------------------- */

START_TEST(memory_goes_through_the_caller)
{
  const kiln_allocator *a = &memory.alloc;
  unsigned char *p = kiln__calloc(a, 100, 3);
  char *s;

  ck_assert_int_eq(memory.live, 1);
  for (int i = 0; i < 300; i++)
    /* The test's allocator fills new memory with 0xa5, so the zeros come from
     * kiln__calloc(). */
    ck_assert_int_eq(p[i], 0);
  p = kiln__resize(a, p, 1000);
  kiln__free(a, p);
  kiln__free(a, NULL);
  /* Kiln never asks the allocator for 0 bytes. */
  kiln__free(a, kiln__alloc(a, 0));
  ck_assert_ptr_null(kiln__calloc(a, SIZE_MAX / 2, 3));
  s = kiln__strdup(a, "text");
  ck_assert_str_eq(s, "text");
  kiln__free(a, s);
  s = kiln__strndup(a, "text", 2);
  ck_assert_str_eq(s, "te");
  kiln__free(a, s);
  ck_assert_ptr_null(kiln__strdup(a, NULL));
  memory.fail_at = memory.calls;
  ck_assert_ptr_null(kiln__strdup(a, "text"));
}
END_TEST

START_TEST(malloc_is_the_default)
{
  kiln_allocator a = {0};
  void *p;

  kiln__allocator_default(&a);
  p = kiln__alloc(&a, 10);
  ck_assert_ptr_nonnull(p);
  p = kiln__resize(&a, p, 20);
  kiln__free(&a, p);
  a = memory.alloc;
  kiln__allocator_default(&a);
  ck_assert(a.alloc == memory.alloc.alloc);
}
END_TEST

/* ---- Numbers ------------------------------------------------------------- */

static void check_double(double value)
{
  char buf[32];

  kiln__format_double(buf, value);
  ck_assert_uint_lt(strlen(buf), 32);
  ck_assert_ptr_null(strchr(buf, ','));
  for (const char *c = buf; *c != '\0'; c++)
    ck_assert_msg(strchr("0123456789+-einfa.", *c) != NULL, "%s", buf);
  setlocale(LC_ALL, "C");
  ck_assert_msg(strtod(buf, NULL) == value, "%s is not %a", buf, value);
}

static const struct {
  double value;
  const char *text;
} numbers[] = {{0, "0"},
               {-0.0, "-0"},
               {1, "1"},
               {0.1, "0.1"},
               {-2.5, "-2.5"},
               {1e300, "1e+300"},
               {1.0 / 3, "0.3333333333333333"},
               {100000, "1e+05"},
               {123456, "123456"}};

START_TEST(doubles_read_back_equal)
{
  uint64_t seed = 3;
  char buf[32];

  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    kiln__format_double(buf, numbers[i].value);
    ck_assert_str_eq(buf, numbers[i].text);
  }
  kiln__format_double(buf, (double)NAN);
  ck_assert_str_eq(buf, "nan");
  kiln__format_double(buf, -(double)NAN);
  ck_assert_str_eq(buf, "nan");
  kiln__format_double(buf, (double)INFINITY);
  ck_assert_str_eq(buf, "inf");
  kiln__format_double(buf, -(double)INFINITY);
  ck_assert_str_eq(buf, "-inf");
  check_double(4.9406564584124654e-324);
  check_double(-1.7976931348623157e308);
  for (int i = 0; i < 20000; i++) {
    const uint64_t bits = test_random(&seed);
    double value;

    memcpy(&value, &bits, sizeof value);
    if (value == value)
      check_double(value);
  }
}
END_TEST

/* Locales whose decimal point is a comma or is encoded in two bytes. */
static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8",
                                      "de_DE",       "fr_FR.UTF-8",
                                      "fa_IR.UTF-8", "ps_AF.UTF-8"};

START_TEST(doubles_ignore_the_locale)
{
  static const double values[] = {0.5, -1234.5678, 1e-7, 2.5e-300};
  const char *name = locales[_i];

  if (setlocale(LC_ALL, name) == NULL) {
    printf("no locale %s: not tried\n", name);
    return;
  }
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    ck_assert_ptr_nonnull(setlocale(LC_ALL, name));
    check_double(values[i]);
  }
}
END_TEST

/* ---- Buffers ------------------------------------------------------------- */

START_TEST(buffers_grow_and_hand_over)
{
  kiln__buf b;
  char *data;

  kiln__buf_init(&b, &memory.alloc);
  kiln__buf_text(&b, "");
  ck_assert_str_eq(b.data, "");
  for (int i = 0; i < 1000; i++)
    kiln__buf_format(&b, "%03d,", i);
  kiln__buf_add(&b, "\0\0", 2);
  kiln__buf_add(&b, NULL, 0);
  ck_assert_uint_eq(b.size, 4002);
  /* The buffer's content is followed by a NUL. */
  ck_assert_int_eq(memcmp(b.data + 3996, "999,\0\0", 7), 0);
  ck_assert_int_eq(kiln__buf_status(&b, "it"), KILN_OK);
  kiln__buf_clear(&b);
  ck_assert_uint_eq(b.size, 0);
  ck_assert_str_eq(b.data, "");
  kiln__buf_text(&b, "kept");
  data = kiln__buf_take(&b);
  ck_assert_str_eq(data, "kept");
  ck_assert_ptr_null(b.data);
  kiln__free(&memory.alloc, data);
  data = kiln__buf_take(&b); /* Taking an empty buffer gives an empty string. */
  ck_assert_str_eq(data, "");
  kiln__free(&memory.alloc, data);
  kiln__buf_free(&b);
  kiln__buf_free(&b);
}
END_TEST

START_TEST(buffers_keep_what_they_have)
{
  kiln__buf b;

  kiln__buf_init(&b, &memory.alloc);
  kiln__buf_text(&b, "first");
  memory.fail_at = memory.calls;
  kiln__buf_format(&b, "%1000d", 1);
  /* This append would fit, but it is refused because an earlier append
   * failed. */
  kiln__buf_text(&b, "third");
  ck_assert(b.failed);
  ck_assert_str_eq(b.data, "first");
  ck_kiln_is(kiln__buf_status(&b, "it"), KILN_ENOMEM);
  ck_assert_ptr_null(kiln__buf_take(&b));
  ck_assert_uint_eq(b.size, 0);

  kiln__buf_text(&b, "x");
  ck_assert(!kiln__buf_reserve(&b, SIZE_MAX - 1));
  ck_assert(!kiln__buf_reserve(&b, SIZE_MAX));
  ck_assert(b.failed);
  kiln__buf_free(&b);
}
END_TEST

/* ---- Log ----------------------------------------------------------------- */

static void keep_line(void *user, kiln_log_level level, const char *text)
{
  (void)level;
  ck_assert_ptr_null(strchr(text, '\n'));
  *(char **)user = strdup(text);
}

START_TEST(log_lines)
{
  char *line = NULL;
  kiln__log log = {keep_line, &line, KILN_LOG_INFO};
  char text[2000];

  kiln__logf(&log, KILN_LOG_DEBUG, "too talkative");
  ck_assert_ptr_null(line);
  kiln__logf(NULL, KILN_LOG_ERROR, "nobody");
  kiln__logf(&(kiln__log){0}, KILN_LOG_ERROR, "nobody");
  kiln__logf(&log, KILN_LOG_INFO, "a %s", "b");
  ck_assert_str_eq(line, "a b");
  free(line);
  for (size_t phase = 0; phase < 3; phase++) {
    size_t n = phase;

    memset(text, 'x', phase);
    for (; n + 3 < sizeof text; n += 3)
      memcpy(text + n, "\xe2\x82\xac", 3);
    text[n] = '\0';
    kiln__logf(&log, KILN_LOG_ERROR, "%s", text);
    ck_assert(valid_utf8(line));
    ck_assert_uint_gt(strlen(line), 1000);
    free(line);
  }
}
END_TEST

/* ---- Trail --------------------------------------------------------------- */

static void count_step(void *user, const kiln_trail_step *step)
{
  kiln__trail *trail = user;

  ck_assert(step->what[0] != '\0');
  /* The callback may add to the trail, since no lock is held during the
   * call. */
  if (strcmp(step->where, "c") != 0)
    kiln__trail_add(trail, "other", "re-entry", "c", "late");
}

static void print_step(void *user, const kiln_trail_step *step)
{
  char *text = user;
  const size_t n = strlen(text);

  snprintf(text + n, 500 - n, "%s|%s|%s|%d|%s;", step->what, step->how,
           step->where, step->found, step->reason);
}

START_TEST(trail_remembers_each_place)
{
  kiln__trail *trail = kiln__trail_create(&memory.alloc);
  char text[500] = "", small[12];
  char where[8] = "a";

  kiln__trail_add(trail, "lib", "env", where, "missing");
  /* The trail has copied the strings, so this change does not affect it. */
  strcpy(where, "zzz");
  kiln__trail_add(trail, "lib", "system", "b", NULL);
  kiln__trail_add(NULL, "lib", "system", "b", NULL);
  kiln__trail_each(NULL, print_step, text);
  kiln__trail_each(trail, print_step, text);
  ck_assert_str_eq(text, "lib|env|a|0|missing;lib|system|b|1|;");
  kiln__trail_text(trail, "lib", text, sizeof text);
  ck_assert_str_eq(text, "a (missing), b (found)");
  kiln__trail_text(trail, "lib", small, sizeof small);
  ck_assert_str_eq(small, "a (missing)");
  kiln__trail_text(trail, "lib", small, 5);
  ck_assert_str_eq(small, "a (m");
  kiln__trail_text(trail, "none", text, sizeof text);
  ck_assert_str_eq(text, "");
  kiln__trail_each(trail, count_step, trail);
  kiln__trail_text(trail, "other", text, sizeof text);
  ck_assert_str_eq(text, "c (late), c (late)");
  /* If memory runs out, the trail drops the new step and stays valid. */
  memory.fail_at = memory.calls;
  kiln__trail_add(trail, "lib", "env", "d", "no");
  kiln__trail_text(trail, "lib", text, sizeof text);
  ck_assert_str_eq(text, "a (missing), b (found)");
  kiln__trail_free(trail);
  kiln__trail_free(NULL);
  memory.fail_at = memory.calls;
  ck_assert_ptr_null(kiln__trail_create(&memory.alloc));
}
END_TEST

/* ---- Files --------------------------------------------------------------- */

static char folder[256], path[512];

static void make_folder(void)
{
  setup();
  test_dir_make(folder);
  snprintf(path, sizeof path, "%s/file", folder);
}

static void drop_folder(void)
{
  teardown();
  test_dir_remove(folder);
}

static size_t files_in(const char *dir)
{
  DIR *d = opendir(dir);
  struct dirent *entry;
  size_t n = 0;

  ck_assert_ptr_nonnull(d);
  while ((entry = readdir(d)) != NULL)
    n += entry->d_name[0] != '.';
  closedir(d);
  return n;
}

START_TEST(files_are_read_whole)
{
  kiln__buf b;
  char name[600];

  kiln__buf_init(&b, &memory.alloc);
  test_write_file(path, "a\0b", 3);
  ck_kiln_ok(kiln__read_file(&b, path, 3));
  ck_assert_uint_eq(b.size, 3);
  ck_assert_int_eq(memcmp(b.data, "a\0b", 4), 0);
  kiln__buf_clear(&b);
  /* The file is larger than the limit. */
  ck_kiln_is(kiln__read_file(&b, path, 2), KILN_EIO);
  ck_assert_int_eq(kiln_last_error()->native, EFBIG);
  ck_kiln_is(kiln__read_file(&b, folder, 100), KILN_EIO);
  snprintf(name, sizeof name, "%s/none", folder);
  ck_kiln_is(kiln__read_file(&b, name, 100), KILN_EIO);
  ck_assert_int_eq(kiln_last_error()->native, ENOENT);
  kiln__buf_free(&b);
  memory.fail_at = memory.calls;
  ck_kiln_is(kiln__read_file(&b, path, 100), KILN_ENOMEM);
  kiln__buf_free(&b);
  test_write_file(path, "", 0);
  ck_kiln_ok(kiln__read_file(&b, path, 0));
  ck_assert_str_eq(b.data, "");
  kiln__buf_free(&b);
  /* If the path is a pipe, the call fails and does not wait for a writer. */
  snprintf(name, sizeof name, "%s/pipe", folder);
  ck_assert_int_eq(mkfifo(name, 0600), 0);
  ck_kiln_is(kiln__read_file(&b, name, 100), KILN_EIO);
}
END_TEST

START_TEST(files_are_replaced_whole)
{
  struct stat info;
  size_t n;
  char *text;
  char name[600];

  umask(022);
  ck_kiln_ok(kiln__replace_file(path, "one", 3, 0600));
  ck_kiln_ok(kiln__replace_file(path, "second", 6, 0640));
  text = test_read_file(path, &n);
  ck_assert_str_eq(text, "second");
  free(text);
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_int_eq(info.st_mode & 0777, 0640);
  ck_kiln_ok(kiln__replace_file(path, "", 0, 0600));
  ck_assert_uint_eq(files_in(folder), 1); /* No temporary file remains. */
  snprintf(name, sizeof name, "%s/none/file", folder);
  ck_kiln_is(kiln__replace_file(name, "x", 1, 0600), KILN_EIO);
  ck_assert_int_eq(kiln_last_error()->native, ENOENT);
  /* A folder is not replaced by a file, and no temporary file remains. */
  snprintf(name, sizeof name, "%s/sub", folder);
  ck_assert_int_eq(mkdir(name, 0700), 0);
  ck_kiln_is(kiln__replace_file(name, "x", 1, 0600), KILN_EIO);
  ck_assert_uint_eq(files_in(folder), 2);
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = '\0';
  ck_kiln_is(kiln__replace_file(name, "x", 1, 0600), KILN_EIO);
}
END_TEST

START_TEST(only_regular_files_are_replaced)
{
  char name[600];
  struct stat info;

  snprintf(name, sizeof name, "%s/pipe", folder);
  ck_assert_int_eq(mkfifo(name, 0600), 0);
  ck_kiln_is(kiln__replace_file(name, "x", 1, 0600), KILN_EIO);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "another path"));
  ck_assert_int_eq(lstat(name, &info), 0);
  ck_assert(S_ISFIFO(info.st_mode));
  snprintf(name, sizeof name, "%s/link", folder);
  ck_assert_int_eq(symlink("/dev/null", name), 0);
  ck_kiln_is(kiln__replace_file(name, "x", 1, 0600), KILN_EIO);
  ck_assert_int_eq(lstat(name, &info), 0);
  ck_assert(S_ISLNK(info.st_mode));
}
END_TEST

enum { WRITERS = 8, ROUNDS = 200, BIG = 5000 };

static void *replace_often(void *arg)
{
  char data[BIG];

  memset(data, *(char *)arg, sizeof data);
  for (int i = 0; i < ROUNDS; i++) {
    if (kiln__replace_file(path, data, sizeof data, 0600) != KILN_OK)
      return (void *)"failed";
  }
  return NULL;
}

/* While several threads replace a file, readers always see the complete content
 * of one writer. */
START_TEST(replacing_at_once)
{
  pthread_t threads[WRITERS];
  char names[WRITERS];
  void *failed;

  for (int i = 0; i < WRITERS; i++) {
    names[i] = (char)('a' + i);
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, replace_often, &names[i]), 0);
  }
  for (int i = 0; i < 300; i++) {
    kiln__buf b;

    kiln__buf_init(&b, &memory.alloc);
    if (kiln__read_file(&b, path, BIG) == KILN_OK) {
      ck_assert_uint_eq(b.size, BIG);
      ck_assert_int_eq(memcmp(b.data, b.data + 1, BIG - 1), 0);
    } else {
      /* No writer has created the file yet. */
      ck_assert_int_eq(kiln_last_error()->native, ENOENT);
    }
    kiln__buf_free(&b);
  }
  for (int i = 0; i < WRITERS; i++) {
    pthread_join(threads[i], &failed);
    ck_assert_ptr_null(failed);
  }
  ck_assert_uint_eq(files_in(folder), 1);
}
END_TEST

/* A fake file system that transfers one byte per call and interrupts every
 * second call. */
typedef struct slow {
  int calls, error_at;
  char data[16];
  size_t at, end;
} slow;

static bool interrupted(slow *s)
{
  s->calls++;
  if (s->error_at == s->calls) {
    errno = ENOSPC;
    return true;
  }
  errno = EINTR;
  return s->calls % 2 == 1;
}

static ssize_t slow_read(void *user, int fd, void *buf, size_t n)
{
  slow *s = user;

  (void)fd;
  if (interrupted(s))
    return -1;
  if (s->at == s->end || n == 0)
    return 0;
  *(char *)buf = s->data[s->at++];
  return 1;
}

static ssize_t slow_pread(void *user, int fd, void *buf, size_t n, off_t at)
{
  slow *s = user;

  s->at = (size_t)at;
  return slow_read(user, fd, buf, n);
}

static ssize_t slow_write(void *user, int fd, const void *buf, size_t n)
{
  slow *s = user;

  (void)fd;
  if (interrupted(s))
    return -1;
  if (n == 0 || s->end == sizeof s->data)
    return 0;
  s->data[s->end++] = *(const char *)buf;
  return 1;
}

START_TEST(short_and_interrupted_calls)
{
  slow s = {0};
  kiln__fs fs = kiln__fs_posix;
  char got[16] = "";

  fs.user = &s;
  fs.read = slow_read;
  fs.pread = slow_pread;
  fs.write = slow_write;
  ck_assert(kiln__write_all(&fs, 0, "hello", 5));
  ck_assert_uint_eq(s.end, 5);
  ck_assert(kiln__read_all(&fs, 0, got, 5));
  ck_assert_str_eq(got, "hello");
  errno = 99;
  /* At the end of a file, errno is 0. */
  ck_assert(!kiln__read_all(&fs, 0, got, 1));
  ck_assert_int_eq(errno, 0);
  ck_assert(kiln__pread_all(&fs, 0, got, 3, 1));
  ck_assert_int_eq(memcmp(got, "ell", 3), 0);
  ck_assert(!kiln__pread_all(&fs, 0, got, 3, 4));
  ck_assert_int_eq(errno, 0);
  s.error_at = s.calls + 3;
  ck_assert(!kiln__write_all(&fs, 0, "more", 4));
  ck_assert_int_eq(errno, ENOSPC);
  s.error_at = 0;
  /* If write() transfers 0 bytes, the function fails instead of looping for
   * ever. */
  s.end = sizeof s.data;
  ck_assert(!kiln__write_all(&fs, 0, "more", 4));
  ck_assert_int_eq(errno, EIO);
  ck_assert(kiln__write_all(&fs, 0, "", 0));
}
END_TEST

START_TEST(locks_exclude_other_descriptors)
{
  const kiln__fs *fs = &kiln__fs_posix;
  int first, second;

  test_write_file(path, "", 0);
  first = open(path, O_RDWR);
  second = open(path, O_RDWR);
  ck_assert_int_eq(fs->lock(fs->user, first, 0), 0);
  ck_assert_int_eq(fs->lock(fs->user, second, 0), -1);
  ck_assert(errno == EAGAIN || errno == EACCES);
  /* The second descriptor can lock another byte of the file. */
  ck_assert_int_eq(fs->lock(fs->user, second, 1), 0);
  ck_assert_int_eq(fs->unlock(fs->user, first, 0), 0);
  ck_assert_int_eq(fs->lock(fs->user, second, 0), 0);
  close(second); /* Closing the descriptor releases its lock. */
  ck_assert_int_eq(fs->lock(fs->user, first, 1), 0);
  close(first);
}
END_TEST

/* ---- Environment variables, clocks, fork -------------------------------- */

START_TEST(environment_and_clocks)
{
  const uint64_t before = kiln__clock_ns();

  setenv("KILN_TEST_X", "", 1);
  /* An empty environment variable counts as unset. */
  ck_assert_ptr_null(kiln__env("KILN_TEST_X"));
  setenv("KILN_TEST_X", "y", 1);
  ck_assert_str_eq(kiln__env("KILN_TEST_X"), "y");
  unsetenv("KILN_TEST_X");
  ck_assert_ptr_null(kiln__env("KILN_TEST_X"));
  kiln__sleep_ns(2000000);
  ck_assert_uint_ge(kiln__clock_ns() - before, 2000000);
  ck_assert_int_gt(kiln__time_ns(), INT64_C(1600000000) * 1000000000);
  ck_assert_uint_ge(kiln__cores(), 1);
  ck_assert(kiln__starts_with("abc", "ab") && !kiln__starts_with("a", "ab"));
}
END_TEST

static int child_of(const kiln__fork_guard *guard)
{
  int status = -1;
  const pid_t pid = fork();

  if (pid == 0) {
    const kiln_status st = kiln__fork_check(guard);

    _exit(kiln__forked(guard) && st == KILN_EFORKED &&
                  kiln_last_error()->hint[0] != '\0'
              ? 42
              : 1);
  }
  ck_assert_int_gt(pid, 0);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(children_are_recognised)
{
  kiln__fork_guard guard;
  kiln__fork_guard by_pid;

  kiln__fork_guard_init(&guard);
  by_pid = (kiln__fork_guard){.page = NULL, .pid = guard.pid};
  ck_assert(!kiln__forked(&guard) && !kiln__forked(&by_pid));
  ck_assert_int_eq(kiln__fork_check(&guard), KILN_OK);
  ck_assert_int_eq(child_of(&guard), 42);
  ck_assert_int_eq(child_of(&by_pid), 42);
  /* The parent process does not count as forked. */
  ck_assert(!kiln__forked(&guard));
  kiln__fork_guard_free(&guard);
  kiln__fork_guard_free(&guard);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("base");
  TCase *text;

  text = kiln_test_case(s, "text", 60, setup, teardown,
                        TESTS(text_is_cut_between_characters,
                              other_bytes_survive_a_cut, copying_onto_itself,
                              memory_goes_through_the_caller,
                              malloc_is_the_default, doubles_read_back_equal,
                              buffers_grow_and_hand_over,
                              buffers_keep_what_they_have, log_lines));
  tcase_add_loop_test(text, doubles_ignore_the_locale, 0,
                      sizeof locales / sizeof locales[0]);
  kiln_test_case(s, "record", 60, setup, teardown,
                 TESTS(record_holds_the_last_failure,
                       record_may_be_its_own_source, long_texts_end_in_dots,
                       record_is_one_a_thread, statuses_have_names_and_texts,
                       trail_remembers_each_place, environment_and_clocks,
                       children_are_recognised));
  kiln_test_case(s, "files", 60, make_folder, drop_folder,
                 TESTS(files_are_read_whole, files_are_replaced_whole,
                       only_regular_files_are_replaced, replacing_at_once,
                       short_and_interrupted_calls,
                       locks_exclude_other_descriptors));
  return kiln_test_run(s);
}
