/* cudart.h -- declares what the files of the runtime library share: the state of a
 * thread, the current context, registered symbols, and the implementations of all
 * functions in runtime_functions.def.
 *
 * An implementation returns its status; the exported function in rt_exports.c records
 * a failure as the thread's last error. Driver results below 1000 are runtime errors
 * of the same number, so an implementation returns the driver's result as it is. */
#ifndef KILN_CPU_CUDART_H
#define KILN_CPU_CUDART_H

#include "driver_calls.h"
#include "graph_abi.h"
#include "runtime_abi.h"

#include <stdbool.h>

/* Returns the error from the enclosing function if `call` fails. */
#define KILN__RT_TRY(call)                                                     \
  do {                                                                         \
    const cudaError_t rt_try_ = (call);                                        \
    if (rt_try_ != cudaSuccess)                                                \
      return rt_try_;                                                          \
  } while (0)

/* Version of the library, such as 12090. Each library defines its own. */
extern const int kiln__rt_version;

/* ---- State of a thread (rt_error.c) ---------------------------------------- */

enum { KILN__RT_CALLS = 16 };

/* The part of a launch between the angle brackets. */
typedef struct kiln__rt_call {
  dim3 grid, block;
  size_t shared; /* bytes of dynamic shared memory per block */
  cudaStream_t stream;
} kiln__rt_call;

typedef struct kiln__rt_thread {
  cudaError_t last; /* last error, for cudaGetLastError() */
  int device;       /* device chosen by cudaSetDevice(), or -1 if none was */
  int preferred;    /* device if none was chosen, see cudaSetValidDevices() */
  bool per_thread;  /* stream NULL means the calling thread's stream */
  cudaError_t stub; /* status of the last failed __cudaGetKernel() */
  /* stack of launches whose arguments are being evaluated */
  unsigned n_calls;
  kiln__rt_call calls[KILN__RT_CALLS];
} kiln__rt_thread;

/* Returns the calling thread's state. Never fails. */
kiln__rt_thread *kiln__rt_self(void);

/* Enters an exported function. Returns the previous mode, for kiln__rt_leave(). */
bool kiln__rt_enter(bool per_thread);

/* Leaves an exported function: restores the mode and records an error. Returns
 * `rc`. */
cudaError_t kiln__rt_leave(bool outer, cudaError_t rc);

/* Returns the driver's handle for a stream argument. In the per-thread form of a
 * function, NULL stands for the calling thread's stream. */
CUstream kiln__rt_stream(cudaStream_t stream);

/* Reports once per process that the program called a function that this library does
 * not implement, by the driver's kiln_cpu_note_missing() if it has one. Returns
 * `error`. */
cudaError_t kiln__rt_refuse(const char *symbol, cudaError_t error,
                            const char *advice);

/* ---- Devices and contexts (rt_state.c) ------------------------------------- */

/* Initialises the driver once per process. Returns the same error from then on if
 * that fails: cudaErrorNoDevice, cudaErrorInsufficientDriver, ... */
cudaError_t kiln__rt_ready(void);

/* Makes sure that a context is current: the one that the program made current by the
 * driver API, or else the primary context of the thread's device. */
cudaError_t kiln__rt_context(void);

/* Stores the handle of a device. Returns cudaErrorInvalidDevice if there is no such
 * device. Needs no context. */
cudaError_t kiln__rt_device(CUdevice *out, int device);

/* Retains the primary context of a device once per process, without making it
 * current. */
cudaError_t kiln__rt_primary(CUcontext *out, int device);

/* ---- Registered symbols (rt_registry.c) ------------------------------------ */

/* Finds the kernel that belongs to the address of a host function, and loads its
 * image at first use. Also accepts a kernel handle of the driver. Returns
 * cudaErrorInvalidDeviceFunction if the address is NULL or, before version 12, belongs
 * to no kernel; from version 12 on, it then returns cudaErrorInvalidResourceHandle.
 * Needs no context. */
cudaError_t kiln__rt_kernel(CUkernel *out, const void *host);

/* Finds the kernel of a host function in the current context. */
cudaError_t kiln__rt_function(CUfunction *out, const void *host);

/* Finds the device variable that belongs to the address of a host variable, in the
 * current context. Either output may be NULL. Returns cudaErrorInvalidSymbol if the
 * address belongs to no variable. */
cudaError_t kiln__rt_variable(CUdeviceptr *address, size_t *size,
                              const void *host);

/* Checks a grid and block against the limits of the current context's device. Returns
 * cudaErrorInvalidConfiguration (from version 13 on, cudaErrorInvalidValue) if a size is
 * 0 or too large. */
cudaError_t kiln__rt_check_shape(dim3 grid, dim3 block);

/* Converts a launch configuration to the driver's. */
cudaError_t kiln__rt_config(CUlaunchConfig *out,
                            const cudaLaunchConfig_t *config);

/* ---- Implementations ------------------------------------------------------- */

#define KILN__RT(name, symbol, majors, since, params, args)                    \
  cudaError_t kiln__rt_##name params;
#define KILN__RT_PLAIN(result, name, symbol, majors, since, params, args)      \
  result kiln__rt_##name params;
#define KILN__RT_VOID(name, symbol, majors, since, params, args)               \
  void kiln__rt_##name params;
#include "runtime_functions.def"

#endif
