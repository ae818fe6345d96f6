/* support.h -- the helper functions that all test programs share. */
#ifndef KILN_TEST_SUPPORT_H
#define KILN_TEST_SUPPORT_H

#include <kiln/kiln.h>

#include <check.h>

/* Check writes a record to a file whenever an assertion holds, so that it can
 * name the last one after a crash. In loops over many elements these writes took
 * most of the time of a test. Therefore each assertion writes its first records
 * only. */
static inline void kiln_test_mark(const char *file, int line)
{
  enum { RECORDS = 8, LINES = 1024 };
  static _Thread_local unsigned char written[LINES];
  unsigned char *count = &written[(unsigned)line % LINES];

  if (*count < RECORDS) {
    ++*count;
    _mark_point(file, line);
  }
}

#define _mark_point(file, line) kiln_test_mark(file, line)

/* Defines main(), which runs the test suite that `make` returns. Each test runs
 * in a forked child with a long timeout, unless CK_FORK=no is set. */
#define KILN_TEST_MAIN(make)                                                   \
  int main(void)                                                               \
  {                                                                            \
    return kiln_test_run(make());                                              \
  }

int kiln_test_run(Suite *suite);

/* Adds a test case to `suite`. `seconds` limits each test, and 0 means Check's
 * own limit. The fixture runs around each test, and both functions may be NULL.
 * The caller adds loop tests to the result. */
TCase *kiln_test_case(Suite *suite, const char *name, double seconds,
                      SFun set_up, SFun tear_down, const TTest *const *tests);

/* Runs a suite of one test case and returns the program's exit status. */
int kiln_test_main(const char *name, double seconds, SFun set_up,
                   SFun tear_down, const TTest *const *tests);

/* The list of tests that kiln_test_case() and kiln_test_main() take. */
#define TESTS(...) ((const TTest *const[]){__VA_ARGS__, NULL})

/* Adds loop tests that all run `times` times, with _i from 0. */
void kiln_test_loops(TCase *t, int times, const TTest *const *tests);

/* The number of elements of a table, for a loop test that runs once per
 * element. */
#define ROWS(table) ((int)(sizeof(table) / sizeof *(table)))

/* The exit status that ctest treats as a skipped test. The test first prints
 * the reason to standard output. */
enum { KILN_TEST_SKIP = 77 };

/* Checks that `call` returns KILN_OK. Otherwise prints the complete error
 * record. */
#define ck_kiln_ok(call)                                                       \
  do {                                                                         \
    const kiln_status ck_st_ = (call);                                         \
    ck_assert_msg(ck_st_ == KILN_OK, "%s: %s: %s | %s | %s", #call,            \
                  kiln_status_name(ck_st_), kiln_last_error()->message,        \
                  kiln_last_error()->hint, kiln_last_error()->log);            \
  } while (0)

/* Checks that `call` returns the status `want`. */
#define ck_kiln_is(call, want)                                                 \
  do {                                                                         \
    const kiln_status ck_st_ = (call);                                         \
    ck_assert_msg(ck_st_ == (want), "%s: got %s, want %s: %s", #call,          \
                  kiln_status_name(ck_st_), kiln_status_name(want),            \
                  kiln_last_error()->message);                                 \
  } while (0)

/* An allocator that counts its calls. It can fail one chosen call, or a chosen
 * call and all later calls. */
typedef struct test_allocator {
  kiln_allocator alloc; /* the allocator to pass to Kiln */
  long live;            /* number of blocks that have not been freed */
  long calls;           /* number of calls to alloc and resize */
  /* index of the call that fails; -1 means that no call fails */
  long fail_at;
  bool fail_after; /* true if all later calls fail as well */
  size_t largest;  /* size of the largest requested block in bytes */
} test_allocator;

void test_allocator_init(test_allocator *a);

/* Returns whether a run includes case number i of a long test. With
 * KILN_TEST_PART=2/16 a run has the cases 2, 18, 34 and so on; without the
 * variable it has all. Parts can run at the same time. */
bool test_in_part(size_t i);

/* test_dir_make() creates a new empty folder in TMPDIR. test_dir_remove()
 * removes the folder and its contents. */
void test_dir_make(char path[256]);
void test_dir_remove(const char *path);

/* Read and write whole files. The functions fail the test on error. */
void test_write_file(const char *path, const void *data, size_t size);
/* Reads a whole file. The caller frees the result. */
char *test_read_file(const char *path, size_t *size);

/* Runs `run` in n threads at once and waits for all of them. Thread i gets the
 * address args + i * size. A thread that returns a message fails the test. */
void test_threads(int n, void *(*run)(void *), void *args, size_t size);

/* Returns the number of repetitions of a test: `full` if KILN_TEST_THOROUGH=1
 * is set, otherwise a tenth of `full`, but at least 1. */
int test_rounds(int full);

/* Returns the next number of a xorshift generator. The initial *state must not
 * be 0. */
uint64_t test_random(uint64_t *state);

#endif
