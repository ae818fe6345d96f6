/* timeline_test.c -- tests the spans of a timeline, their order, and the trace
 * file. */
#include "device_fixture.h"

#include "device/timeline.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>

static kiln_timeline *timeline;
static kiln_stream *stream;

static void set_up(void)
{
  set_up_module();
  ck_kiln_ok(kiln_timeline_create(&timeline, f.device));
  ck_kiln_ok(kiln_stream_create(&stream, f.device, NULL));
}

static void finish(void)
{
  kiln_stream_free(stream);
  kiln_timeline_free(timeline);
  tear_down();
}

typedef struct seen {
  size_t n;
  struct {
    char name[64];
    int row;
    double begin, end;
  } spans[64];
} seen;

static void keep(void *user, const kiln_span *span)
{
  seen *s = user;

  ck_assert_uint_lt(s->n, 64);
  snprintf(s->spans[s->n].name, 64, "%s", span->name);
  s->spans[s->n].row = span->row;
  s->spans[s->n].begin = span->begin_us;
  s->spans[s->n].end = span->end_us;
  s->n++;
}

static seen look(void)
{
  seen s = {0};

  ck_kiln_ok(kiln_timeline_each(timeline, keep, &s));
  return s;
}

static void pass(int ms)
{
  kiln__sleep_ns((uint64_t)ms * 1000000);
}

START_TEST(spans_nest_and_come_in_order)
{
  seen s;

  ck_kiln_ok(kiln_timeline_begin(timeline, stream, "outer"));
  pass(2);
  ck_kiln_ok(kiln_timeline_begin(timeline, stream, "inner"));
  pass(2);
  ck_kiln_ok(kiln_timeline_end(timeline, stream));
  ck_kiln_ok(kiln_timeline_begin(timeline, NULL, "default"));
  ck_kiln_ok(kiln_timeline_end(timeline, NULL));
  pass(2);
  ck_kiln_ok(kiln_timeline_end(timeline, stream));
  s = look();
  ck_assert_uint_eq(s.n, 3);
  ck_assert_str_eq(s.spans[0].name, "outer");
  ck_assert_str_eq(s.spans[1].name, "inner");
  ck_assert_str_eq(s.spans[2].name, "default");
  ck_assert_int_eq(s.spans[0].row, 1);
  ck_assert_int_eq(s.spans[1].row, 1);
  ck_assert_int_eq(s.spans[2].row, 2);
  ck_assert(s.spans[0].begin >= 0);
  ck_assert(s.spans[1].begin >= s.spans[0].begin + 2000);
  ck_assert(s.spans[1].end >= s.spans[1].begin + 2000);
  ck_assert(s.spans[0].end >= s.spans[1].end + 2000);
  /* A second visit of the timeline gives the same spans. */
  ck_assert_uint_eq(look().n, 3);
}
END_TEST

/* Host and device spans share one time axis. The fake driver uses the host's
 * clock, so a device span that was opened inside a host span must lie inside
 * that host span. */
START_TEST(host_rows_share_the_axis)
{
  seen s;

  ck_kiln_ok(kiln_timeline_host_begin(timeline, "host"));
  pass(1);
  ck_kiln_ok(kiln_timeline_begin(timeline, stream, "device"));
  pass(1);
  ck_kiln_ok(kiln_timeline_end(timeline, stream));
  pass(1);
  ck_kiln_ok(kiln_timeline_host_end(timeline));
  s = look();
  ck_assert_uint_eq(s.n, 2);
  ck_assert_str_eq(s.spans[0].name, "host");
  ck_assert_int_eq(s.spans[0].row, 0);
  ck_assert(s.spans[0].begin < s.spans[1].begin);
  ck_assert(s.spans[1].end < s.spans[0].end);
  ck_assert(fabs(s.spans[1].begin - s.spans[0].begin - 1000) < 100000);
}
END_TEST

START_TEST(ends_without_begin_are_refused)
{
  ck_kiln_is(kiln_timeline_end(timeline, stream), KILN_EINVAL);
  ck_kiln_is(kiln_timeline_host_end(timeline), KILN_EINVAL);
  ck_kiln_ok(kiln_timeline_begin(timeline, stream, "open"));
  ck_kiln_is(kiln_timeline_end(timeline, NULL), KILN_EINVAL);
  ck_assert_uint_eq(look().n, 0); /* A span is not visited before it ends. */
  ck_kiln_ok(kiln_timeline_end(timeline, stream));
  ck_kiln_is(kiln_timeline_end(timeline, stream), KILN_EINVAL);
  ck_assert_uint_eq(look().n, 1);
  ck_kiln_is(kiln_timeline_begin(NULL, stream, "x"), KILN_EINVAL);
  ck_kiln_is(kiln_timeline_begin(timeline, stream, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_timeline_end(NULL, stream), KILN_EINVAL);
  ck_kiln_is(kiln_timeline_host_begin(timeline, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_timeline_host_end(NULL), KILN_EINVAL);
  ck_kiln_is(kiln_timeline_each(timeline, NULL, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_timeline_write(timeline, NULL), KILN_EINVAL);
  ck_kiln_is(kiln_timeline_create(NULL, f.device), KILN_EINVAL);
  kiln_timeline_free(NULL);
}
END_TEST

START_TEST(attached_streams_record_launches_and_copies)
{
  kiln_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  static char data[4000000];
  CUdeviceptr p;
  seen s;

  c.stream = stream;
  ck_kiln_ok(kiln_memory_alloc(&p, f.device, sizeof data));
  ck_kiln_ok(kiln_stream_attach(stream, timeline));
  ck_kiln_ok(kiln_copy_to_device_async(stream, p, data, sizeof data));
  ck_kiln_ok(kiln_launch(get_kernel(f.module, "empty"), &c, NULL, 0));
  ck_kiln_ok(kiln_copy_to_host_async(stream, data, p, 999));
  ck_kiln_ok(kiln_copy_on_device_async(stream, p, p + 2000000, 1000));
  ck_kiln_ok(kiln_fill_async(stream, p, 0, 4, 1000000));
  ck_kiln_ok(kiln_stream_attach(stream, NULL));
  ck_kiln_ok(kiln_fill_async(stream, p, 0, 4, 1));
  s = look();
  ck_assert_uint_eq(s.n, 5);
  ck_assert_str_eq(s.spans[0].name, "copy HtoD 4.0 MB");
  ck_assert_str_eq(s.spans[1].name, "empty");
  ck_assert_str_eq(s.spans[2].name, "copy DtoH 999 B");
  ck_assert_str_eq(s.spans[3].name, "copy DtoD 1.0 kB");
  ck_assert_str_eq(s.spans[4].name, "fill 4.0 MB");
  ck_kiln_ok(kiln_memory_free(f.device, p));
}
END_TEST

START_TEST(a_stream_of_another_context_is_not_attached)
{
  const kiln_device_opts own = {.context = KILN_CONTEXT_OWN};
  kiln_device *other;
  kiln_stream *foreign;

  ck_kiln_ok(kiln_device_open(&other, f.rt, 0, &own));
  ck_kiln_ok(kiln_stream_create(&foreign, other, NULL));
  ck_kiln_is(kiln_stream_attach(foreign, timeline), KILN_EINVAL);
  kiln_stream_free(foreign);
  kiln_device_free(other);
}
END_TEST

/* If recording fails, the work must still succeed. If the work itself fails,
 * the error record must show the failure of the work. */
START_TEST(recording_never_fails_the_work)
{
  kiln_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  kiln_kernel *empty = get_kernel(f.module, "empty");

  c.stream = stream;
  ck_kiln_ok(kiln_stream_attach(stream, timeline));
  f.cuda->rc[FAKE_CUDA_eventRecord] = CUDA_ERROR_UNKNOWN;
  ck_kiln_ok(kiln_launch(empty, &c, NULL, 0));
  ck_assert_int_eq(f.cuda->launches, 1);
  /* Recording the begin event succeeds, and recording the end event fails. */
  f.cuda->skip[FAKE_CUDA_eventRecord] = 1;
  ck_kiln_ok(kiln_launch(empty, &c, NULL, 0));
  f.cuda->skip[FAKE_CUDA_eventRecord] = 1;
  f.cuda->rc[FAKE_CUDA_launchKernel] = CUDA_ERROR_INVALID_VALUE;
  ck_kiln_is(kiln_launch(empty, &c, NULL, 0), KILN_EDRIVER);
  ck_assert_str_eq(kiln_last_error()->call, "cuLaunchKernel");
  f.cuda->rc[FAKE_CUDA_launchKernel] = 0;
  f.cuda->rc[FAKE_CUDA_eventRecord] = 0;
  ck_assert_uint_eq(look().n, 0);
}
END_TEST

START_TEST(captured_streams_are_not_recorded)
{
  kiln_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  kiln__scope scope;
  CUgraph graph;

  c.stream = stream;
  ck_kiln_ok(kiln_stream_attach(stream, timeline));
  ck_kiln_ok(kiln__enter(f.device, &scope));
  ck_assert_int_eq(
      f.rt->driver.streamBeginCapture(kiln_stream_handle(stream),
                                      CU_STREAM_CAPTURE_MODE_GLOBAL),
      0);
  ck_kiln_ok(kiln_launch(get_kernel(f.module, "empty"), &c, NULL, 0));
  ck_kiln_is(kiln_timeline_begin(timeline, stream, "no"), KILN_ECAPTURE);
  ck_assert_int_eq(
      f.rt->driver.streamEndCapture(kiln_stream_handle(stream), &graph), 0);
  ck_assert_int_eq(f.rt->driver.graphDestroy(graph), 0);
  kiln__leave(&scope);
  ck_assert_uint_eq(look().n, 0);
}
END_TEST

START_TEST(events_are_used_again)
{
  for (int i = 0; i < 50; i++) {
    ck_kiln_ok(kiln_timeline_begin(timeline, stream, "again"));
    ck_kiln_ok(kiln_timeline_end(timeline, stream));
    if (i % 10 == 9)
      look();
  }
  ck_assert_uint_eq(look().n, 50);
  ck_assert_int_le(f.cuda->events, 30);
}
END_TEST

/* The driver reports times as float milliseconds. In long recordings these
 * would lose microseconds, so the timeline records new reference events. */
START_TEST(long_recordings_stay_exact)
{
  seen s;

  pass(20);
  /* Make the last reference event 5 seconds older. */
  timeline->anchored_ns -= 5000000000u;
  ck_kiln_ok(kiln_timeline_begin(timeline, stream, "late"));
  pass(1);
  ck_kiln_ok(kiln_timeline_end(timeline, stream));
  ck_assert_uint_eq(timeline->anchors.n, 2);
  s = look();
  ck_assert_uint_eq(s.n, 1);
  ck_assert(s.spans[0].begin >= 20000 && s.spans[0].begin < 5e6);
  ck_assert(s.spans[0].end > s.spans[0].begin + 900);
}
END_TEST

static void *host_spans(void *arg)
{
  (void)arg;
  for (int i = 0; i < 8; i++) {
    if (kiln_timeline_host_begin(timeline, "a") != KILN_OK ||
        kiln_timeline_host_begin(timeline, "b") != KILN_OK ||
        kiln_timeline_begin(timeline, stream, "s") != KILN_OK ||
        kiln_timeline_end(timeline, stream) != KILN_OK ||
        kiln_timeline_host_end(timeline) != KILN_OK ||
        kiln_timeline_host_end(timeline) != KILN_OK)
      return "a call failed";
  }
  return NULL;
}

static void count(void *user, const kiln_span *span)
{
  size_t *n = user;

  ck_assert(span->end_us >= span->begin_us);
  ++*n;
}

START_TEST(threads_record_at_once)
{
  size_t n = 0;

  test_threads(4, host_spans, NULL, 0);
  ck_kiln_ok(kiln_timeline_each(timeline, count, &n));
  ck_assert_uint_eq(n, 4 * 8 * 3);
}
END_TEST

/* ---- The trace file ----------------------------------------------------- */

/* A strict JSON parser that checks the syntax and stores no values. */
static const char *json(const char *p);

static const char *space(const char *p)
{
  return p + strspn(p, " \n\r\t");
}

static const char *json_string(const char *p)
{
  if (*p != '"')
    return NULL;
  for (p++; *p != '"'; p++) {
    if ((unsigned char)*p < 0x20)
      return NULL;
    if (*p == '\\') {
      p++;
      if (*p == 'u') {
        if (strspn(p + 1, "0123456789abcdefABCDEF") < 4)
          return NULL;
        p += 4;
      } else if (*p == '\0' || strchr("\"\\/bfnrt", *p) == NULL) {
        return NULL;
      }
    }
  }
  return p + 1;
}

static const char *json_members(const char *p, char close)
{
  p = space(p + 1);
  if (*p == close)
    return p + 1;
  for (;;) {
    if (close == '}') {
      p = json_string(space(p));
      if (p == NULL || *(p = space(p)) != ':')
        return NULL;
      p++;
    }
    p = json(p);
    if (p == NULL)
      return NULL;
    p = space(p);
    if (*p == close)
      return p + 1;
    if (*p++ != ',')
      return NULL;
  }
}

static const char *json(const char *p)
{
  size_t digits;

  p = space(p);
  if (*p == '{')
    return json_members(p, '}');
  if (*p == '[')
    return json_members(p, ']');
  if (*p == '"')
    return json_string(p);
  p += *p == '-';
  digits = strspn(p, "0123456789");
  if (digits == 0 || (digits > 1 && *p == '0'))
    return NULL;
  p += digits;
  if (*p == '.') {
    digits = strspn(++p, "0123456789");
    p = digits == 0 ? NULL : p + digits;
  }
  return p;
}

static char *write_trace(void)
{
  char path[300], *text;
  const char *end;
  size_t size;

  snprintf(path, sizeof path, "%s/trace.json", f.dir);
  ck_kiln_ok(kiln_timeline_write(timeline, path));
  text = test_read_file(path, &size);
  end = json(text);
  ck_assert_msg(end != NULL, "not JSON: %s", text);
  ck_assert_str_eq(space(end), "");
  return text;
}

START_TEST(the_file_is_json_whatever_the_names)
{
  char *text;

  ck_kiln_ok(kiln_timeline_begin(timeline, stream, "say \"hi\\\" \n\t\x01"));
  ck_kiln_ok(kiln_timeline_end(timeline, stream));
  ck_kiln_ok(kiln_timeline_host_begin(timeline, "na\xc3\xafve \xff\xfe \xc3"));
  ck_kiln_ok(kiln_timeline_host_end(timeline));
  text = write_trace();
  ck_assert_ptr_nonnull(
      strstr(text, "say \\\"hi\\\\\\\" \\u000a\\u0009\\u0001"));
  ck_assert_ptr_nonnull(strstr(text, "na\xc3\xafve \\u00ff\\u00fe \\u00c3"));
  ck_assert_ptr_nonnull(strstr(text, "Fake GPU 9.0"));
  ck_assert_ptr_nonnull(strstr(text, "\"ph\":\"X\""));
  ck_assert_ptr_nonnull(strstr(text, "\"stream 1\""));
  ck_assert_ptr_nonnull(strstr(text, "\"thread 1\""));
  free(text);
}
END_TEST

START_TEST(an_empty_recording_is_a_valid_file)
{
  free(write_trace());
}
END_TEST

START_TEST(long_names_are_cut_between_characters)
{
  char name[200];
  seen s;

  memset(name, 'x', sizeof name);
  /* Truncation to 63 bytes would split this character. */
  memcpy(name + 62, "\xe2\x82\xac", 3);
  name[199] = '\0';
  ck_kiln_ok(kiln_timeline_host_begin(timeline, name));
  ck_kiln_ok(kiln_timeline_host_end(timeline));
  s = look();
  ck_assert_uint_le(strlen(s.spans[0].name), 63);
  ck_assert_uint_ge(strlen(s.spans[0].name), 59);
  ck_assert_ptr_null(strchr(s.spans[0].name, '\xe2'));
  free(write_trace());
}
END_TEST

START_TEST(numbers_ignore_the_locale)
{
  static const char *const comma[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE",
                                      "fr_FR.UTF-8", "fr_FR.utf8"};
  char *text;

  for (size_t i = 0; i < 5 && setlocale(LC_ALL, comma[i]) == NULL; i++)
    /* If none of these locales is installed, the test runs in the C locale. */
    continue;
  ck_kiln_ok(kiln_timeline_begin(timeline, stream, "x"));
  pass(1);
  ck_kiln_ok(kiln_timeline_end(timeline, stream));
  text = write_trace();
  ck_assert_ptr_nonnull(strstr(text, "\"ts\":"));
  free(text);
  setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(a_file_that_cannot_be_written)
{
  ck_kiln_is(kiln_timeline_write(timeline, "/nonexistent/trace.json"),
             KILN_EIO);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "/nonexistent"));
}
END_TEST

START_TEST(a_lost_context_is_reported)
{
  seen s = {0};

  ck_kiln_ok(kiln_timeline_begin(timeline, stream, "x"));
  ck_kiln_ok(kiln_timeline_end(timeline, stream));
  f.cuda->rc[FAKE_CUDA_ctxSynchronize] = CUDA_ERROR_ILLEGAL_ADDRESS;
  ck_kiln_is(kiln_timeline_each(timeline, keep, &s), KILN_ESTICKY);
  ck_assert_uint_eq(s.n, 0);
  f.cuda->rc[FAKE_CUDA_ctxSynchronize] = 0;
}
END_TEST

START_TEST(creation_fails_cleanly)
{
  kiln_timeline *t;
  const int functions[] = {FAKE_CUDA_streamCreateWithPriority,
                           FAKE_CUDA_eventCreate, FAKE_CUDA_eventRecord,
                           FAKE_CUDA_eventSynchronize};

  for (size_t i = 0; i < 4; i++) {
    f.cuda->rc[functions[i]] = CUDA_ERROR_UNKNOWN;
    ck_kiln_is(kiln_timeline_create(&t, f.device), KILN_EDRIVER);
    ck_assert_ptr_null(t);
    f.cuda->rc[functions[i]] = 0;
    check_calm();
  }
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "timeline", 30, set_up, finish,
      TESTS(spans_nest_and_come_in_order, host_rows_share_the_axis,
            ends_without_begin_are_refused,
            attached_streams_record_launches_and_copies,
            a_stream_of_another_context_is_not_attached,
            recording_never_fails_the_work, captured_streams_are_not_recorded,
            events_are_used_again, long_recordings_stay_exact,
            threads_record_at_once, the_file_is_json_whatever_the_names,
            an_empty_recording_is_a_valid_file,
            long_names_are_cut_between_characters, numbers_ignore_the_locale,
            a_file_that_cannot_be_written, a_lost_context_is_reported,
            creation_fails_cleanly));
}
