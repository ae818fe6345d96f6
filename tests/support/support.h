/* support.h -- what every test program shares. */
#ifndef KILN_TEST_SUPPORT_H
#define KILN_TEST_SUPPORT_H

#include <kiln/kiln.h>

#include <check.h>

/* Defines main: runs the suite that `make` returns. Tests run each in a forked
 * child with a generous timeout, unless CK_FORK=no. */
#define KILN_TEST_MAIN(make)                                                   \
  int main(void)                                                               \
  {                                                                            \
    return kiln_test_run(make());                                              \
  }

int kiln_test_run(Suite *suite);

/* Exit status that ctest counts as a skip; say why on stdout first. */
enum { KILN_TEST_SKIP = 77 };

/* Check that `call` gives KILN_OK; prints the whole record if not. */
#define ck_kiln_ok(call)                                                       \
  do {                                                                         \
    const kiln_status ck_st_ = (call);                                         \
    ck_assert_msg(ck_st_ == KILN_OK, "%s: %s: %s | %s | %s", #call,            \
                  kiln_status_name(ck_st_), kiln_last_error()->message,        \
                  kiln_last_error()->hint, kiln_last_error()->log);            \
  } while (0)

/* Check that `call` gives exactly `want`. */
#define ck_kiln_is(call, want)                                                 \
  do {                                                                         \
    const kiln_status ck_st_ = (call);                                         \
    ck_assert_msg(ck_st_ == (want), "%s: got %s, want %s: %s", #call,          \
                  kiln_status_name(ck_st_), kiln_status_name(want),            \
                  kiln_last_error()->message);                                 \
  } while (0)

/* An allocator that counts, and fails from the n-th call on or just there. */
typedef struct test_allocator {
  kiln_allocator alloc; /* hand this to Kiln */
  long live;            /* blocks not released yet */
  long calls;           /* alloc and resize calls so far */
  long fail_at;         /* this call fails (0-based); -1: none */
  bool fail_after;      /* and all later ones too */
  size_t largest;       /* bytes of the largest block asked for */
} test_allocator;

void test_allocator_init(test_allocator *a);

/* A new empty folder below TMPDIR, removed with all it holds by the second. */
void test_dir_make(char path[256]);
void test_dir_remove(const char *path);

/* Whole file helpers; they fail the test on error. */
void test_write_file(const char *path, const void *data, size_t size);
char *test_read_file(const char *path, size_t *size); /* malloc */

/* xorshift; never 0 as a seed. */
uint64_t test_random(uint64_t *state);

#endif
