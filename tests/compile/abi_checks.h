/* abi_checks.h -- checks that compare Kiln's declarations of the driver's ABI
 * with NVIDIA's headers. */
#ifndef KILN_TEST_ABI_CHECKS_H
#define KILN_TEST_ABI_CHECKS_H

#include "support.h"

#include "abi_rows.h"

#include <dlfcn.h>
#include <stdio.h>

/* Checks that both tables have the same rows, and that there are more than
 * `least` rows. */
static inline void check_layout(const abi_row *own, const abi_row *nvidia,
                                size_t least)
{
  size_t i;

  for (i = 0; own[i].what != NULL; i++) {
    ck_assert_str_eq(own[i].what, nvidia[i].what);
    ck_assert_msg(own[i].value == nvidia[i].value,
                  "%s: %zu here, %zu in cuda.h", own[i].what, own[i].value,
                  nvidia[i].value);
  }
  ck_assert_ptr_null(nvidia[i].what);
  ck_assert_uint_gt(i, least);
}

/* Checks that the stub libcuda of the CUDA toolkit exports every driver
 * function that Kiln declares. */
static inline void check_symbols(const char *stub_path,
                                 const char *const *symbols, size_t n)
{
  void *stub = dlopen(stub_path, RTLD_LAZY | RTLD_LOCAL);

  if (stub == NULL) {
    printf("not checked: no stub libcuda at \"%s\"\n", stub_path);
    return;
  }
  for (size_t i = 0; i < n; i++)
    ck_assert_msg(dlsym(stub, symbols[i]) != NULL, "no %s in %s", symbols[i],
                  stub_path);
}

/* Runs the test of the layout and the test of the symbols. */
static inline int run_abi_tests(const char *name, const TTest *layout,
                                const TTest *symbols)
{
  Suite *s = suite_create(name);
  TCase *t = tcase_create(name);

  tcase_add_test(t, layout);
  tcase_add_test(t, symbols);
  suite_add_tcase(s, t);
  return kiln_test_run(s);
}

#endif
