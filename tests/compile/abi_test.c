/* abi_test.c -- compares Kiln's own declarations of the driver and of NVRTC
 * with NVIDIA's headers. */
#include "driver/abi.h"

#include "abi_checks.h"
#include "abi_layout.h"

const abi_row abi_own[] = {ABI_LAYOUT};

#ifdef KILN_TEST_CUDA_H

START_TEST(structures_are_laid_out_alike)
{
  check_layout(abi_own, abi_nvidia, 20);
}
END_TEST

START_TEST(symbols_are_exported_by_those_names)
{
  static const char *const symbols[] = {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params) #symbol,
#include "driver/driver_api.def"
#undef KILN__DRIVER_FN
  };

  check_symbols(KILN_TEST_CUDA_STUB, symbols,
                sizeof symbols / sizeof symbols[0]);
}
END_TEST

int main(void)
{
  return run_abi_tests("abi", structures_are_laid_out_alike,
                       symbols_are_exported_by_those_names);
}

#else

int main(void)
{
  printf("skipped: no cuda.h and nvrtc.h of CUDA 12.8 or newer\n");
  return KILN_TEST_SKIP;
}

#endif
