/* device.h -- the internal interface of devices, streams, events, modules and
 * kernels.
 *
 * Every public function that needs the driver calls it between kiln__enter()
 * and kiln__leave(), while the device's context is current. The folder ops/
 * uses kiln__module_start() to compile several programs concurrently and
 * kiln__refuse_capture() in its checked modes. ops/ also stores specialised
 * kernels per device and temporary storage per stream in the `ops` members. */
#ifndef KILN_DEVICE_INTERNAL_H
#define KILN_DEVICE_INTERNAL_H

#include "../core/runtime.h"
#include "../program/program.h"

#include <kiln/device.h>
#include <kiln/launch.h>
#include <kiln/memory.h>
#include <kiln/timeline.h>

#include <stdatomic.h>

struct kiln_device {
  kiln_runtime *rt;
  const kiln__driver *driver;
  /* the device's CUDA context; NULL until the first use */
  _Atomic(CUcontext) context;
  /* the driver's unique id of the context, or 0; the driver reuses handles, but
   * not ids */
  uint64_t context_id;
  CUdevice handle;
  kiln_context_kind kind;
  unsigned context_flags;
  /* mutex that is held while the context or the pool is created */
  pthread_mutex_t lock;
  /* traits of the compute capability, with the limits of this GPU */
  kiln_traits traits;
  kiln_device_info info;
  /* Kiln's own memory pool for the temporary storage of single calls; NULL until
   * the first use, and if it could not be created. `lock` guards both members.
   */
  CUmemoryPool pool;
  bool pool_tried;
  /* specialised kernels that ops/ stores here; NULL until the first use */
  _Atomic(void *) ops;
  /* callback that frees `ops`; set together with `ops` */
  void (*ops_free)(kiln_device *device);
  /* tuning parameters that ops/ has read or the user has set, or NULL */
  _Atomic(void *) tuned;
  _Atomic bool tuned_read; /* true if the tuning file was searched for */
  void (*tuned_free)(kiln_device *device);
  /* If it is not NULL, operations run no kernels. ops/ calls this function with
   * the two programs of each linked program, and the operation then fails with
   * KILN_ECANCELED. The call returns KILN_OK or the status of a failure. */
  kiln_status (*on_body)(kiln_device *device, void *user,
                         const kiln_program_desc *body,
                         const kiln_program_desc *texts);
  void *body_user; /* the second argument of on_body */
};

/* The device's context is current in this thread between kiln__enter() and
 * kiln__leave(). kiln__leave() restores the context that was current earlier,
 * or none if none was current. Such pairs of calls may nest. */
typedef struct kiln__scope {
  const kiln__driver *driver;
  /* True if kiln__enter() pushed the context, so kiln__leave() must pop it. */
  bool pushed;
} kiln__scope;

/* Makes the device's context current, and creates it on first use. Returns
 * KILN_OK, KILN_EINVAL (`device` is NULL), KILN_EFORKED, KILN_EDRIVER,
 * KILN_EDEVMEM or KILN_ESTICKY. After a failure kiln__leave() must not be
 * called. Thread-safe. */
kiln_status kiln__enter(kiln_device *device, kiln__scope *scope);
void kiln__leave(const kiln__scope *scope);

/* Makes the device's context current in order to free a driver object. Returns
 * false if the driver must not be called: in a forked child, without a context,
 * or after the caller destroyed or reset the context. The object no longer
 * exists in these cases. Writes no error record. */
bool kiln__enter_to_free(kiln_device *device, kiln__scope *scope);
/* Returns true if the context still exists, as far as the driver reports it. */
bool kiln__context_alive(const kiln_device *device, CUcontext context);

/* While any stream is captured in the default mode, the driver forbids some
 * calls in all threads. Examples are loading modules and allocating memory,
 * although these calls disturb no capture. Between kiln__relax() and
 * kiln__unrelax() such calls are allowed in this thread. Call both functions
 * between kiln__enter() and kiln__leave(). */
typedef struct kiln__relaxed {
  const kiln__driver *driver;
  CUstreamCaptureMode before;
  bool exchanged;
} kiln__relaxed;

void kiln__relax(const kiln__driver *driver, kiln__relaxed *relaxed);
void kiln__unrelax(kiln__relaxed *relaxed);

/* Converts a driver result to a status. For a failure, also writes an error
 * record. */
kiln_status kiln__device_rc(const kiln_device *device, CUresult rc,
                            const char *call);

/* Runs one driver call between kiln__enter() and kiln__leave(). `st` receives
 * the status of kiln__enter(), or else that of `call`, which is a member of the
 * driver table with its arguments. `text` is the name of the driver function
 * for the error record. */
#define KILN__IN_SCOPE(st, device, call, text)                                 \
  do {                                                                         \
    kiln_device *const device_ = (device);                                     \
    kiln__scope scope_;                                                        \
                                                                               \
    st = kiln__enter(device_, &scope_);                                        \
    if (st == KILN_OK) {                                                       \
      st = kiln__device_rc(device_, device_->driver->call, text);              \
      kiln__leave(&scope_);                                                    \
    }                                                                          \
  } while (0)

/* Returns KILN_EUNSUPPORTED for an optional driver function that this driver
 * does not have. */
kiln_status kiln__device_missing(const char *call);

struct kiln_stream {
  kiln_device *device;
  CUstream handle;
  bool owned; /* false for a wrapped stream handle, which the caller destroys */
  /* timeline that records launches, copies and fills, or NULL */
  kiln_timeline *timeline;
  /* temporary storage that ops/ stores here; NULL until the first use */
  _Atomic(void *) ops;
  void (*ops_free)(kiln_stream *stream);
};

/* Returns true if the stream is being captured into a graph, and also for the
 * legacy default stream while a blocking stream is captured. Returns false on
 * failure. Call it between kiln__enter() and kiln__leave(). */
bool kiln__capturing(const kiln__driver *driver, CUstream handle);
/* Returns KILN_ECAPTURE if the stream is being captured. Functions that wait
 * for the stream call this first, since waiting would invalidate the capture.
 * `call` is the name of the public function. */
kiln_status kiln__refuse_capture(const kiln_device *device, CUstream handle,
                                 const char *call);

/* Allocates memory for a single call, in stream order, from the device's own
 * pool: it keeps up to 64 MiB when the caller synchronises, whereas the default
 * pool usually keeps nothing. The stream must not be captured. Freed by
 * kiln_memory_free_async(). The same statuses as kiln_memory_alloc_async(),
 * which serves the call if there is no such pool. Thread-safe. Call it between
 * kiln__enter() and kiln__leave(). */
kiln_status kiln__memory_alloc_pooled(CUdeviceptr *out, kiln_stream *stream,
                                      size_t size);
/* Returns that pool, and creates it at the first call; NULL if there is none. */
CUmemoryPool kiln__device_pool(kiln_device *device);

struct kiln_event {
  kiln_device *device;
  CUevent handle;
};

struct kiln_module {
  kiln_device *device;
  CUmodule handle;
  /* False for a wrapped module handle, which the caller unloads. */
  bool owned;
  kiln_image *image; /* image of the module; NULL for a wrapped module */
  /* PTX from which the parameter sizes of a wrapped module are read, or NULL */
  char *ptx;
  kiln_ladder_result ladder;
  pthread_mutex_t lock; /* mutex that guards the list of kernels */
  kiln_kernel *kernels;
};

/* kiln_module_load() in two steps. Several programs compile concurrently if all
 * loads are started before the first load is finished. `desc` must stay valid
 * until the load is finished. Each successful start must be finished exactly
 * once, in the same thread. */
typedef struct kiln__loading {
  kiln_module *module;
  const kiln_program_desc *desc;
  kiln__image_request req;
  kiln__pending *pending;
} kiln__loading;

kiln_status kiln__module_start(kiln__loading *out, kiln_device *device,
                               const kiln_program_desc *desc);
/* Does what kiln__module_start() does for a program that can be linked from two
 * objects, which *linked describes.
 * The program is compiled as a whole if the device's code cannot be linked.
 * *linked must stay valid until the load is finished. */
kiln_status kiln__module_start_linked(kiln__loading *out, kiln_device *device,
                                      const kiln_program_desc *desc,
                                      const kiln__linked *linked);
kiln_status kiln__module_finish(kiln__loading *loading, kiln_module **out);

/* The members that a launch reads come first in struct kiln_kernel and share
 * one cache line. */
struct kiln_kernel {
  CUfunction handle;
  kiln_device *device;
  const uint32_t *sizes; /* sizes of the n_params parameters in bytes */
  /* dynamic shared memory that the driver currently allows, in bytes */
  _Atomic uint32_t smem_opted_in;
  /* maximum dynamic shared memory that can be allowed, in bytes */
  uint32_t smem_limit;
  uint32_t max_grid[3];  /* the device's maximum grid dimensions */
  uint16_t max_block[3]; /* the device's maximum block dimensions */
  uint16_t max_threads;  /* maximum threads per block of this kernel */
  uint16_t n_params;
  bool params_known;

  kiln_module *module;
  char *name; /* lowered (mangled) name of the kernel */
  kiln_kernel_info info;
  struct kiln_kernel *next; /* next kernel in the module's list */
  void *block;              /* memory block that contains this struct */
};

/* Allows `smem` bytes of dynamic shared memory for the kernel, which the driver
 * requires above 48 KiB. The attribute is set to smem_limit rather than to
 * `smem`: otherwise two threads that set different sizes would overwrite each
 * other's value. The caller refuses sizes above smem_limit. Returns KILN_OK,
 * KILN_EDRIVER or KILN_ESTICKY. Thread-safe. Call it between kiln__enter() and
 * kiln__leave(). */
kiln_status kiln__kernel_opt_in(kiln_kernel *kernel, size_t smem);

/* Record the begin and end of a timeline span around work in a stream.
 * kiln__mark_begin() returns false if nothing is recorded: without a timeline,
 * during a capture, or if memory ran out. In that case kiln__mark_end() must
 * not be called. Recording never makes the work fail and never replaces the
 * error record of the work. Thread-safe. Call both between kiln__enter() and
 * kiln__leave(). */
typedef struct kiln__mark {
  kiln_timeline *timeline;
  size_t span;
} kiln__mark;

bool kiln__mark_begin(kiln__mark *mark, const kiln_stream *stream,
                      const char *name);
void kiln__mark_end(const kiln__mark *mark, const kiln_stream *stream);

#endif
