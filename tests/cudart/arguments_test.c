/* arguments_test.c -- calls every function of the table with arguments that are all 0, and
 * with a buffer of zeros as the first argument. No call may crash or hang, and a
 * failure is the last error of the thread. */
#include "host_code.h"

typedef cudaError_t any_function(void *, long, long, long, long, long, long,
                                 long, long, long);

#define KILN__RT_REFUSED(symbol, majors, since, error, advice)                 \
  KILN__RT_IN_##majors(cudaError_t symbol(void);)
#include "cpu/cudart/runtime_functions.def"

/* Functions that return an error. The call passes more arguments than most of them
 * have, which the calling conventions of Linux allow. */
static const struct {
  const char *name;
  void (*call)(void);
} functions[] = {
#define ROW(symbol) {#symbol, (void (*)(void))symbol},
#define KILN__RT(name, symbol, majors, since, params, args)                    \
  KILN__RT_IN_##majors(ROW(symbol))
#define KILN__RT_STREAM(name, symbol, majors, since, form, params, args)       \
  KILN__RT_IN_##majors(ROW(symbol) ROW(symbol##form))
#define KILN__RT_REFUSED(symbol, majors, since, error, advice)                 \
  KILN__RT_IN_##majors(ROW(symbol))
#include "cpu/cudart/runtime_functions.def"
};

enum { N = sizeof functions / sizeof functions[0] };

static void call_all(void *first)
{
  for (size_t i = 0; i < N; i++) {
    any_function *call = (any_function *)functions[i].call;
    cudaError_t rc;

    cudaGetLastError();
    rc = call(first, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    ck_assert_msg(strncmp(cudaGetErrorName(rc), "cudaError", 9) == 0 ||
                      rc == cudaSuccess,
                  "%s returned %d", functions[i].name, rc);
    ck_assert_msg(cudaGetLastError() == rc, "%s: the last error differs",
                  functions[i].name);
  }
}

START_TEST(zeros_do_not_crash)
{
  call_all(NULL);
}
END_TEST

START_TEST(a_buffer_of_zeros_does_not_crash)
{
  static char buffer[4096];

  call_all(buffer);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("cudart arguments");
  TCase *all = tcase_create("arguments");
  SRunner *runner = srunner_create(suite);
  int failed;

  tcase_set_timeout(all, 60);
  tcase_add_test(all, zeros_do_not_crash);
  tcase_add_test(all, a_buffer_of_zeros_does_not_crash);
  suite_add_tcase(suite, all);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
