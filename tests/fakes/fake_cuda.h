/* fake_cuda.h -- a scripted fake of libcuda for tests.
 *
 * Kiln's own loader loads fake_cuda.so. fake_cuda_of() returns the control
 * block of the fake. The fake tracks contexts, streams and other objects like a
 * real driver, and uses host memory as device memory. Kernels do not run; the
 * fake records their launch parameters. The fake is stricter than a real driver
 * and records a violation for each of these:
 * - a call without the required context;
 * - a handle that is stale or belongs to another context;
 * - any call in a forked child. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "driver/abi.h"
#include "fake_library.h"

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
  /* value of an attribute that the driver does not know */
  FAKE_CUDA_UNKNOWN = -1
};

typedef struct fake_cuda_device {
  char name[96];
  size_t memory;
  /* Device attributes by number. Attributes 75 and 76 are the compute
   * capability. */
  int attributes[FAKE_CUDA_ATTRIBUTES];
} fake_cuda_device;

typedef struct fake_cuda_launch {
  char kernel[256];
  unsigned grid[3], block[3], smem;
  CUstream stream;
  CUcontext context;
  int n_params;
  uint32_t sizes[256];
  /* values of the kernel parameters, one after another */
  unsigned char params[FAKE_CUDA_PARAM_BYTES];
  bool cooperative, ex, overlap;
  unsigned cluster[3];
} fake_cuda_launch;

typedef struct fake_cuda_control {
  int version; /* driver version */
  int n_devices;
  fake_cuda_device devices[FAKE_CUDA_DEVICES];

  /* Scripted failures. If rc[f] is not 0, function f succeeds skip[f] times and
   * then fails times[f] times with the code rc[f]. If times[f] is 0, the
   * function fails for ever. If fail_at >= 0, call number fail_at fails with
   * the code fail_rc. This number counts only functions whose failure a caller
   * can handle. */
  int rc[FAKE_CUDA_FUNCTIONS];
  int skip[FAKE_CUDA_FUNCTIONS];
  int times[FAKE_CUDA_FUNCTIONS];
  long fail_at;
  int fail_rc;
  /* If not 0, a launch succeeds, and later calls return this code. */
  int launch_sticky;
  /* result codes of loading machine code and of loading PTX */
  int cubin_rc, ptx_rc;
  const char *jit_log; /* text that a failed load writes to the error log */

  /* Attributes that every kernel of the fake has. */
  int registers, static_smem, max_threads, blocks_per_sm;
  const char *global_name; /* name of a global variable that every module has */
  size_t global_size;

  atomic_int calls[FAKE_CUDA_FUNCTIONS];
  atomic_long all_calls; /* number of calls that fail_at counts */
  atomic_int contexts, modules, streams, events, allocations, pools, pinned;
  atomic_int retained; /* number of primary contexts currently retained */
  atomic_int graphs, links;
  uint64_t pool_keeps; /* release threshold that was set last, in bytes */
  atomic_int launches;
  atomic_int violations;
  char violation[256]; /* description of the last violation */
  fake_cuda_launch last;
} fake_cuda_control;

typedef fake_cuda_control *fake_cuda_fn(void);

/* Returns the control block of the fake driver at `path`, and loads the library
 * if necessary. */
static inline fake_cuda_control *fake_cuda_of(const char *path)
{
  fake_cuda_fn *fn;

  *(void **)&fn = fake_function(path, "fake_cuda");
  return fn();
}

/* Returns the number of live objects that the user of the driver still has to
 * destroy. */
static inline int fake_cuda_live(const fake_cuda_control *c)
{
  return c->contexts + c->modules + c->streams + c->events + c->allocations +
         c->pools + c->pinned + c->retained + c->graphs + c->links;
}

#endif
