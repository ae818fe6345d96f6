/* support.h -- what all test programs share. */
#ifndef KILN_TEST_SUPPORT_H
#define KILN_TEST_SUPPORT_H

#include <kiln/kiln.h>

#include <check.h>

/* Defines main(), which runs the suite that `make` returns. Each test runs in a
 * forked child with a generous timeout, unless CK_FORK=no. */
#define KILN_TEST_MAIN(make)                                                   \
  int main(void)                                                               \
  {                                                                            \
    return kiln_test_run(make());                                              \
  }

int kiln_test_run(Suite *suite);

/* The exit status that ctest counts as a skip. Print the reason on stdout
 * first. */
enum { KILN_TEST_SKIP = 77 };

/* Checks that `call` returns KILN_OK; prints the whole error record if not. */
#define ck_kiln_ok(call)                                                       \
  do {                                                                         \
    const kiln_status ck_st_ = (call);                                         \
    ck_assert_msg(ck_st_ == KILN_OK, "%s: %s: %s | %s | %s", #call,            \
                  kiln_status_name(ck_st_), kiln_last_error()->message,        \
                  kiln_last_error()->hint, kiln_last_error()->log);            \
  } while (0)

/* Checks that `call` returns exactly `want`. */
#define ck_kiln_is(call, want)                                                 \
  do {                                                                         \
    const kiln_status ck_st_ = (call);                                         \
    ck_assert_msg(ck_st_ == (want), "%s: got %s, want %s: %s", #call,          \
                  kiln_status_name(ck_st_), kiln_status_name(want),            \
                  kiln_last_error()->message);                                 \
  } while (0)

/* An allocator that counts, and fails from the n-th call on or only there. */
typedef struct test_allocator {
  kiln_allocator alloc; /* the allocator to pass to Kiln */
  long live;            /* blocks not released yet */
  long calls;           /* alloc and resize calls so far */
  long fail_at;         /* this call fails (0-based); -1: none */
  bool fail_after;      /* and all later ones too */
  size_t largest;       /* bytes of the largest block asked for */
} test_allocator;

void test_allocator_init(test_allocator *a);

/* Makes a new empty folder below TMPDIR; the second function removes it with
 * its contents. */
void test_dir_make(char path[256]);
void test_dir_remove(const char *path);

/* Read and write whole files; they fail the test on error. */
void test_write_file(const char *path, const void *data, size_t size);
char *test_read_file(const char *path, size_t *size); /* the caller frees it */

/* How often a test repeats: `full` times with KILN_TEST_THOROUGH=1, else a tenth
 * of it, at least once. */
int test_rounds(int full);

/* Returns the next number of a xorshift generator. A seed must not be 0. */
uint64_t test_random(uint64_t *state);

#endif
