/* driver.h -- the CUDA driver API as a table of function pointers. */
#ifndef KILN_DRIVER_H
#define KILN_DRIVER_H

#include "../base/base.h"
#include "abi.h"

typedef struct kiln__driver {
  /* One pointer an entry of api.def, under its short name (ctxCreate for
   * cuCtxCreate_v2). NULL if the driver lacks an optional one. */
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  result(KILN__CUDAAPI *name) params; /* NOLINT: no expressions */
#include "driver_api.def"
#undef KILN__DRIVER_FN
  void *library; /* dlopen handle; never closed */
  char path[512];
  int version;      /* cuDriverGetVersion */
  int kiln_version; /* KILN_VERSION of what filled this table */
  /* Of the CPU device alone: it loads PTX, no machine code, and says in words
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

/* The same from a table that the caller has. KILN_EINVAL if another version of
 * Kiln made it. */
kiln_status kiln__driver_take(kiln__driver *out, const kiln__driver *given,
                              kiln__trail *trail);

/* Turn a CUresult into a status: KILN_OK for 0, else the record is written
 * with the driver's name and text for the code and the next step. */
kiln_status kiln__cu(const kiln__driver *driver, CUresult rc, const char *call);

#endif
