/* cpu_abi_test.c -- compares the CPU device's own declarations of the driver
 * with NVIDIA's headers. */
#include "cpu/api/dropin_abi.h"

#include "abi_checks.h"
#include "cpu_abi_layout.h"

const abi_row cpu_abi_own[] = {CPU_ABI_LAYOUT};

#ifdef KILN_TEST_CUDA_H

START_TEST(structures_are_laid_out_alike)
{
  check_layout(cpu_abi_own, cpu_abi_nvidia, 100);
}
END_TEST

START_TEST(symbols_are_exported_by_those_names)
{
  static const char *const symbols[] = {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params) #symbol,
#define KILN__MISSING_FN(symbol, since) #symbol,
#include "cpu/api/entry_points.def"
  };

  check_symbols(KILN_TEST_CUDA_STUB, symbols,
                sizeof symbols / sizeof symbols[0]);
}
END_TEST

int main(void)
{
  return run_abi_tests("cpu_abi", structures_are_laid_out_alike,
                       symbols_are_exported_by_those_names);
}

#else

int main(void)
{
  printf("skipped: no cuda.h of CUDA 13.0 or newer\n");
  return KILN_TEST_SKIP;
}

#endif
