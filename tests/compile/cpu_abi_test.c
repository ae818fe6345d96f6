/* cpu_abi_test.c -- the CPU device's own declarations of the driver against
 * NVIDIA's. */
#include "support.h"

#include "cpu/api/dropin_abi.h"

#include "cpu_abi_layout.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const cpu_abi_row cpu_abi_own[] = {CPU_ABI_LAYOUT};

#ifdef KILN_TEST_CUDA_H

START_TEST(structures_are_laid_out_alike)
{
  size_t i;

  for (i = 0; cpu_abi_own[i].what != NULL; i++) {
    ck_assert_str_eq(cpu_abi_own[i].what, cpu_abi_nvidia[i].what);
    ck_assert_msg(cpu_abi_own[i].value == cpu_abi_nvidia[i].value,
                  "%s: %zu here, %zu in cuda.h", cpu_abi_own[i].what,
                  cpu_abi_own[i].value, cpu_abi_nvidia[i].value);
  }
  ck_assert_ptr_null(cpu_abi_nvidia[i].what);
  ck_assert_uint_gt(i, 100);
}
END_TEST

/* The toolkit's stub exports exactly the driver's names.
 */
START_TEST(symbols_are_exported_by_those_names)
{
  static const char *const symbols[] = {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params) #symbol,
#define KILN__MISSING_FN(symbol, since) #symbol,
#include "cpu/api/entry_points.def"
  };
  void *stub = dlopen(KILN_TEST_CUDA_STUB, RTLD_LAZY | RTLD_LOCAL);

  if (stub == NULL) {
    printf("not checked: no stub libcuda at \"%s\"\n", KILN_TEST_CUDA_STUB);
    return;
  }
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
    ck_assert_msg(dlsym(stub, symbols[i]) != NULL, "no %s in %s", symbols[i],
                  KILN_TEST_CUDA_STUB);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("cpu_abi");
  TCase *t = tcase_create("cpu_abi");

  tcase_add_test(t, structures_are_laid_out_alike);
  tcase_add_test(t, symbols_are_exported_by_those_names);
  suite_add_tcase(s, t);
  return s;
}

KILN_TEST_MAIN(suite)

#else

int main(void)
{
  printf("skipped: no cuda.h of CUDA 13.0 or newer\n");
  return KILN_TEST_SKIP;
}

#endif
