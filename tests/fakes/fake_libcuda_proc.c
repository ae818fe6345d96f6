/* fake_libcuda_proc.c -- a fake driver that provides its functions only through
 * cuGetProcAddress_v2. A function is found by its plain name and the driver
 * version that introduced the variant. */
#define FAKE_ANSWER CUDA_SUCCESS
#define FAKE_VERSION 13000
#define FAKE_HIDDEN
#include "fake_libcuda.h"

typedef struct row {
  /* name of the function without the prefix "cu" and without a version suffix,
   * such as memAlloc */
  const char *name;
  int since;
  void (*fn)(void);
} row;

#define cuInit unused_init
#define cuDriverGetVersion unused_version
#define cuGetProcAddress unused_proc
#define cuGetProcAddress_v2 unused_proc_v2

EXPORT CUresult cuGetProcAddress_real(
    const char *symbol, void **fn, int version, uint64_t flags,
    CUdriverProcAddressQueryResult *found) __asm__("cuGetProcAddress_v2");

CUresult cuGetProcAddress_real(const char *symbol, void **fn, int version,
                               uint64_t flags,
                               CUdriverProcAddressQueryResult *found)
{
  const row rows[] = {
#define KILN__DRIVER_FN(name, fn_symbol, need, since, result, params)          \
  {#name, since, (void (*)(void))fn_symbol},
#include "driver/driver_api.def"
#undef KILN__DRIVER_FN
  };

  *fn = NULL;
  *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    /* A request for "cuMemAlloc" gets the variant that the requested driver
     * version introduced, such as cuMemAlloc_v2. The optional function
     * cuFuncGetName is missing. */
    if (strcmp(rows[i].name + 1, symbol + 3) == 0 && rows[i].since == version &&
        flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
        strcmp(symbol, "cuFuncGetName") != 0) {
      memcpy(fn, &rows[i].fn, sizeof *fn);
      *found = CU_GET_PROC_ADDRESS_SUCCESS;
    }
  }
  return CUDA_SUCCESS;
}
