/* api_log_test.c -- tests the log of the driver. */
#include "api_fixture.h"
#include "support.h"

#include <stdio.h>

static unsigned n_calls;
static char last[1200];

static void keep(void *user, CUlogLevel level, char *message, size_t length)
{
  CUlogIterator at;

  ck_assert_ptr_eq(user, &n_calls);
  ck_assert_int_eq(level, CU_LOG_LEVEL_ERROR);
  ck_assert_uint_eq(strlen(message), length);
  ok(cu(logsCurrent)(&at, 0)); /* a callback may call the driver */
  snprintf(last, sizeof last, "%s", message);
  n_calls++;
}

static void refuse_an_image(void)
{
  CUmodule module;

  is(cu(moduleLoadData)(&module, "nonsense"), CUDA_ERROR_INVALID_IMAGE);
}

START_TEST(messages_reach_callbacks_and_buffers)
{
  CUlogsCallbackHandle first, second;
  CUlogIterator at = 77;
  char buffer[4096];
  size_t size = sizeof buffer;

  ok(cu(logsCurrent)(&at, 0));
  ck_assert_uint_eq(at, 0);
  ok(cu(logsDumpToMemory)(NULL, buffer, &size, 0));
  ck_assert_uint_eq(size, 0);
  ok(cu(logsRegisterCallback)(keep, &n_calls, &first));
  ok(cu(logsRegisterCallback)(keep, &n_calls, &second));
  refuse_an_image();
  ck_assert_uint_eq(n_calls, 2);
  ck_assert_str_eq(last, "neither PTX nor a fat binary");
  ok(cu(logsUnregisterCallback)(first));
  is(cu(logsUnregisterCallback)(first), CUDA_ERROR_INVALID_VALUE);
  refuse_an_image();
  ck_assert_uint_eq(n_calls, 3);
  ok(cu(logsUnregisterCallback)(second));
  size = sizeof buffer;
  ok(cu(logsDumpToMemory)(&at, buffer, &size, 0));
  ck_assert_uint_eq(at, 2);
  ck_assert_uint_eq(size, strlen(buffer));
  ck_assert_ptr_nonnull(strstr(buffer, "[CUDA][E] neither PTX"));
  size = sizeof buffer;
  ok(cu(logsDumpToMemory)(&at, buffer, &size, 0));
  ck_assert_uint_eq(size, 0);
}
END_TEST

/* A short buffer gets the newest messages, and the log keeps the newest 100. */
START_TEST(old_messages_are_dropped)
{
  char buffer[16384];
  size_t size = 200, lines = 0;

  for (int i = 0; i < 150; i++)
    refuse_an_image();
  ok(cu(logsDumpToMemory)(NULL, buffer, &size, 0));
  ck_assert_uint_gt(size, 50);
  ck_assert_uint_lt(size, 200);
  ck_assert_int_eq(buffer[0], '[');
  size = 4;
  is(cu(logsDumpToMemory)(NULL, buffer, &size, 0), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(size, 0);
  size = sizeof buffer;
  ok(cu(logsDumpToMemory)(NULL, buffer, &size, 0));
  for (const char *p = buffer; (p = strchr(p, '\n')) != NULL; p++)
    lines++;
  ck_assert_uint_eq(lines, 100);
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
  CUlogsCallbackHandle handle;
  char buffer[64];
  size_t size = sizeof buffer;

  is(cu(logsCurrent)(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(logsRegisterCallback)(NULL, NULL, &handle), CUDA_ERROR_INVALID_VALUE);
  is(cu(logsUnregisterCallback)(NULL), CUDA_ERROR_INVALID_VALUE);
  is(cu(logsDumpToMemory)(NULL, NULL, &size, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(logsDumpToMemory)(NULL, buffer, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(logsDumpToFile)(NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  is(cu(logsDumpToFile)(NULL, "/no/such/folder/file", 0),
     CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_log");

  kiln_test_case(s, "log", 60, setup, teardown,
                 TESTS(messages_reach_callbacks_and_buffers,
                       old_messages_are_dropped, wrong_arguments_are_refused));
  return kiln_test_run(s);
}
