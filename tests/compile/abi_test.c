/* abi_test.c -- Kiln's own declarations of the driver and of NVRTC against
 * NVIDIA's. */
#include "support.h"

#include "driver/abi.h"

#include "abi_layout.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const abi_row abi_own[] = {ABI_LAYOUT};

#ifdef KILN_TEST_CUDA_H

START_TEST(structures_are_laid_out_alike)
{
  size_t i;

  for (i = 0; abi_own[i].what != NULL; i++) {
    ck_assert_str_eq(abi_own[i].what, abi_nvidia[i].what);
    ck_assert_msg(abi_own[i].value == abi_nvidia[i].value,
                  "%s: %zu here, %zu in cuda.h", abi_own[i].what,
                  abi_own[i].value, abi_nvidia[i].value);
  }
  ck_assert_ptr_null(abi_nvidia[i].what);
  ck_assert_uint_gt(i, 20);
}
END_TEST

/* The toolkit's stub exports exactly the driver's names. */
START_TEST(symbols_are_exported_by_those_names)
{
  static const char *const symbols[] = {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params) #symbol,
#include "driver/driver_api.def"
#undef KILN__DRIVER_FN
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
  Suite *s = suite_create("abi");
  TCase *t = tcase_create("abi");

  tcase_add_test(t, structures_are_laid_out_alike);
  tcase_add_test(t, symbols_are_exported_by_those_names);
  suite_add_tcase(s, t);
  return s;
}

KILN_TEST_MAIN(suite)

#else

int main(void)
{
  printf("skipped: no cuda.h and nvrtc.h of CUDA 12.8 or newer\n");
  return KILN_TEST_SKIP;
}

#endif
