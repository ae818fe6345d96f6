/* driver.h -- the CUDA driver API as a table of function pointers.
 *
 * Kiln does not link libcuda: a program that uses it starts on machines without
 * an NVIDIA driver and gets KILN_ENODRIVER from the first call that needs one.
 * The CPU device fills the same table. */
#ifndef KILN_DRIVER_H
#define KILN_DRIVER_H

#include "../base/base.h"
#include "abi.h"

typedef struct kiln__driver {
  /* One pointer per row of driver_api.def, under its short name (ctxCreate for
   * cuCtxCreate_v2). NULL if the driver lacks an optional one. */
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  result(KILN__CUDAAPI *name) params; /* NOLINT: no expressions */
#include "driver_api.def"
#undef KILN__DRIVER_FN
  void *library; /* dlopen handle; never closed */
  char path[512];
  int version;      /* cuDriverGetVersion */
  int kiln_version; /* KILN_VERSION of the library that filled this table */
  /* Set by the CPU device only: it loads PTX and no machine code, and describes
   * which thread of the last failed launch did what. */
  bool ptx_only;
  kiln_status (*last_fault)(char *buf, size_t size);
} kiln__driver;

/* Finds libcuda, resolves every symbol and calls cuInit. Never takes a library
 * from the current directory.
 *
 * a                        for the search; nothing of it is kept
 * explicit_path, env_path  NULL or the only place to try, in this order
 * KILN_OK, KILN_ENODRIVER, KILN_ENODEVICE (cuInit 100), KILN_EDRIVER. */
kiln_status kiln__driver_open(kiln__driver *out, const kiln_allocator *a,
                              const char *explicit_path, const char *env_path,
                              kiln__trail *trail);

/* The same with a table that the caller has, such as the CPU device's.
 * KILN_EINVAL if another version of Kiln made it; else as kiln__driver_open().
 */
kiln_status kiln__driver_take(kiln__driver *out, const kiln__driver *given,
                              kiln__trail *trail);

/* Turns a CUresult into a status. KILN_OK for 0, else the record receives the
 * driver's name and text for the code, the failed `call`, and the next step. */
kiln_status kiln__cu(const kiln__driver *driver, CUresult rc, const char *call);

#endif
