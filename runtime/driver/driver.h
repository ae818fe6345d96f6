/* driver.h -- the CUDA driver API as a table of function pointers.
 *
 * Kiln does not link with libcuda. A program that uses Kiln therefore starts on
 * machines without an NVIDIA driver, and the first call that needs the driver
 * returns KILN_ENODRIVER. The CPU device (Kiln's PTX interpreter) fills a table
 * of the same type. */
#ifndef KILN_DRIVER_H
#define KILN_DRIVER_H

#include "../base/base.h"
#include "abi.h"

typedef struct kiln__driver {
  /* The table has one function pointer per row of driver_api.def. Its name is
   * the short name of the function (ctxCreate for cuCtxCreate_v2). The pointer
   * of an optional function is NULL if the driver lacks it. */
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  result(KILN__CUDAAPI *name) params; /* NOLINT: no expressions */
#include "driver_api.def"
#undef KILN__DRIVER_FN
  void *library; /* dlopen() handle, which is never closed */
  char path[512];
  int version;      /* result of cuDriverGetVersion() */
  int kiln_version; /* KILN_VERSION of the library that filled this table */
  /* Only the CPU device sets these members. The CPU device loads PTX but no
   * machine code, and can describe which thread of the last failed launch
   * caused the fault. */
  bool ptx_only;
  kiln_status (*last_fault)(char *buf, size_t size);
} kiln__driver;

/* Finds libcuda, resolves every symbol and calls cuInit(). Never loads a
 * library from the current directory. Returns KILN_OK, KILN_ENODRIVER,
 * KILN_ENODEVICE (cuInit returned 100) or KILN_EDRIVER.
 * @param a  allocator for the search; no allocation outlives the call
 * @param explicit_path, env_path  the only path to try, or NULL; explicit_path
 *   takes precedence */
kiln_status kiln__driver_open(kiln__driver *out, const kiln_allocator *a,
                              const char *explicit_path, const char *env_path,
                              kiln__trail *trail);

/* Works like kiln__driver_open(), but uses a table that the caller supplies,
 * such as that of the CPU device. Returns KILN_EINVAL if another version of
 * Kiln filled the table, else the statuses of kiln__driver_open(). */
kiln_status kiln__driver_take(kiln__driver *out, const kiln__driver *given,
                              kiln__trail *trail);

/* Converts a CUresult to a status. Returns KILN_OK for 0. Otherwise the error
 * record receives the driver's name and message for the code, the failed
 * `call`, and the next step. */
kiln_status kiln__cu(const kiln__driver *driver, CUresult rc, const char *call);

#endif
