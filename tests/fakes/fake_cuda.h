/* fake_cuda.h -- a stand-in for libcuda that tests script.
 *
 * fake_cuda.so is loaded by Kiln's own loader; its control block comes from
 * fake_cuda_of(). It keeps contexts, streams and so on as a real driver does,
 * with host memory as device memory, and is stricter than one: a call without
 * the context that it needs, a handle that is stale or of another context, or
 * any call in a forked child counts as a violation. Kernels do not run; what
 * they were launched with is kept. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "driver/abi.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  FAKE_CUDA_##name,
#include "driver/driver_api.def"
#undef KILN__DRIVER_FN
  FAKE_CUDA_FUNCTIONS
};

enum {
  FAKE_CUDA_DEVICES = 8,
  FAKE_CUDA_ATTRIBUTES = 160,
  FAKE_CUDA_PARAM_BYTES = 4096,
  FAKE_CUDA_UNKNOWN = -1 /* an attribute that the driver does not know */
};

typedef struct fake_cuda_device {
  char name[96];
  size_t memory;
  int attributes[FAKE_CUDA_ATTRIBUTES]; /* cc is 75 and 76 */
} fake_cuda_device;

typedef struct fake_cuda_launch {
  char kernel[256];
  unsigned grid[3], block[3], smem;
  CUstream stream;
  CUcontext context;
  int n_params;
  uint32_t sizes[256];
  unsigned char params[FAKE_CUDA_PARAM_BYTES]; /* values, one after another */
  bool cooperative, ex, overlap;
  unsigned cluster[3];
} fake_cuda_launch;

typedef struct fake_cuda_control {
  int version; /* driver */
  int n_devices;
  fake_cuda_device devices[FAKE_CUDA_DEVICES];

  /* Failures. rc[f] not 0: function f fails with it, after skip[f] calls that
   * went well, times[f] times (0: for ever). fail_at >= 0: the n-th call of
   * any function that a caller can be expected to handle fails with fail_rc. */
  int rc[FAKE_CUDA_FUNCTIONS];
  int skip[FAKE_CUDA_FUNCTIONS];
  int times[FAKE_CUDA_FUNCTIONS];
  long fail_at;
  int fail_rc;
  int launch_sticky; /* a launch succeeds, and the context is lost with this */
  int cubin_rc, ptx_rc; /* loading machine code or PTX gives this */
  const char *jit_log;  /* written to the error log buffer on a failed load */

  /* Of every kernel. */
  int registers, static_smem, max_threads, blocks_per_sm;
  const char *global_name; /* a variable that every module has */
  size_t global_size;

  atomic_int calls[FAKE_CUDA_FUNCTIONS];
  atomic_long all_calls; /* those that fail_at counts */
  atomic_int contexts, modules, streams, events, allocations, pinned;
  atomic_int retained; /* primary contexts held */
  atomic_int graphs, links;
  atomic_int launches;
  atomic_int violations;
  char violation[256]; /* the last */
  fake_cuda_launch last;
} fake_cuda_control;

typedef fake_cuda_control *fake_cuda_fn(void);

/* The control block of the fake at `path`; loads it if it is not loaded. */
static inline fake_cuda_control *fake_cuda_of(const char *path)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  fake_cuda_fn *fn = NULL;

  if (library != NULL)
    *(void **)&fn = dlsym(library, "fake_cuda");
  if (fn == NULL) {
    fprintf(stderr, "%s is not the fake driver: %s\n", path, dlerror());
    abort();
  }
  return fn();
}

/* Everything that a driver's user must give back. */
static inline int fake_cuda_live(const fake_cuda_control *c)
{
  return c->contexts + c->modules + c->streams + c->events + c->allocations +
         c->pinned + c->retained + c->graphs + c->links;
}

#endif
