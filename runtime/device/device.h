/* device.h -- inside of devices, streams, modules and kernels. */
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
  _Atomic(CUcontext) context; /* NULL until first use */
  uint64_t context_id;        /* the driver's number for it, 0 if it has none:
                                 tells a recycled handle from the real one */
  CUdevice handle;
  kiln_context_kind kind;
  unsigned context_flags;
  pthread_mutex_t lock; /* guards making the context */
  kiln_traits traits;   /* the table's, with this GPU's own limits */
  kiln_device_info info;
  _Atomic(void *) ops; /* specialised operations, NULL until the first */
  void (*ops_free)(kiln_device *device);
  _Atomic(void *) tuned; /* parameters of operations measured on it, or NULL */
  _Atomic bool tuned_read; /* the file of them was looked for */
  void (*tuned_free)(kiln_device *device);
};

/* The device's context is current between enter and leave; leave puts back
 * what was current before, also if that was none. Enter makes the context on
 * first use and costs one cuCtxGetCurrent when it is current already. */
typedef struct kiln__scope {
  const kiln__driver *driver;
  bool pushed;
} kiln__scope;

/* KILN_OK, KILN_EINVAL (NULL device), KILN_EFORKED, KILN_EDRIVER, KILN_EDEVMEM,
 * KILN_ESTICKY. On failure nothing is to be left. */
kiln_status kiln__enter(kiln_device *device, kiln__scope *scope);
void kiln__leave(const kiln__scope *scope);

/* Enter in order to clean up: false in a forked child, before the context was
 * made, and when the caller destroyed or reset it meanwhile; the driver is not
 * to be touched then. Writes no error record. */
bool kiln__enter_to_free(kiln_device *device, kiln__scope *scope);
bool kiln__context_alive(const kiln_device *device, CUcontext context);

/* Between the two, calls that a capture in progress forbids to this thread
 * (loading, allocating) are allowed and leave that capture alone. */
typedef struct kiln__relaxed {
  const kiln__driver *driver;
  CUstreamCaptureMode before;
  bool exchanged;
} kiln__relaxed;

void kiln__relax(const kiln__driver *driver, kiln__relaxed *relaxed);
void kiln__unrelax(kiln__relaxed *relaxed);

/* A driver result inside a scope; names the device in the record. */
kiln_status kiln__device_rc(const kiln_device *device, CUresult rc,
                            const char *call);

/* KILN_EUNSUPPORTED for an optional function that this driver does not have. */
kiln_status kiln__device_missing(const char *call);

struct kiln_stream {
  kiln_device *device;
  CUstream handle;
  bool owned;
  kiln_timeline *timeline; /* records launches and copies, or NULL */
  _Atomic(void *) ops; /* memory that operations keep, NULL until the first */
  void (*ops_free)(kiln_stream *stream);
};

/* Is work in the stream being recorded into a graph? false also on failure. */
bool kiln__capturing(const kiln__driver *driver, CUstream handle);
/* KILN_ECAPTURE if it is: for calls that wait for the stream. They would
 * otherwise spoil the capture. `call` names the function refused. */
kiln_status kiln__refuse_capture(const kiln_device *device, CUstream handle,
                                 const char *call);

struct kiln_event {
  kiln_device *device;
  CUevent handle;
};

struct kiln_module {
  kiln_device *device;
  CUmodule handle;
  bool owned;
  kiln_image *image; /* NULL for a wrapped module */
  char *ptx;         /* of a wrapped module, for parameter sizes, or NULL */
  kiln_ladder_result ladder;
  pthread_mutex_t lock; /* guards the list */
  kiln_kernel *kernels;
};

/* kiln_module_load() in two steps: several programs compile at once if all are
 * started before the first is finished. desc stays valid until then; whatever
 * start returned KILN_OK for is finished exactly once. */
typedef struct kiln__loading {
  kiln_module *module;
  const kiln_program_desc *desc;
  kiln__image_request req;
  kiln__pending *pending;
} kiln__loading;

kiln_status kiln__module_start(kiln__loading *out, kiln_device *device,
                               const kiln_program_desc *desc);
kiln_status kiln__module_finish(kiln__loading *loading, kiln_module **out);

/* What a launch reads comes first and fills one cache line. */
struct kiln_kernel {
  CUfunction handle;
  kiln_device *device;
  const uint32_t *sizes;          /* of the parameters, n_params of them */
  _Atomic uint32_t smem_opted_in; /* dynamic shared memory allowed so far */
  uint32_t smem_limit;            /* most dynamic shared memory it can have */
  uint32_t max_grid[3];           /* the device's */
  uint16_t max_block[3];          /* the device's */
  uint16_t max_threads;           /* the kernel's, a block */
  uint16_t n_params;
  bool params_known;

  kiln_module *module;
  char *name; /* lowered */
  kiln_kernel_info info;
  struct kiln_kernel *next; /* in the module's list */
  void *block; /* what was allocated; the struct is aligned in it */
};

/* More than 48 KiB of dynamic shared memory must be asked for, once. The limit
 * itself is asked for: two threads that asked for two sizes would undo each
 * other. Within a scope; sizes above smem_limit are the caller's to refuse. */
kiln_status kiln__kernel_opt_in(kiln_kernel *kernel, size_t smem);

/* A span around work in a stream with a timeline; see timeline.c. Begin gives
 * false if nothing is to be recorded (no timeline, capturing, out of memory):
 * recording never makes the work itself fail. Inside a scope. */
typedef struct kiln__mark {
  kiln_timeline *timeline;
  size_t span;
} kiln__mark;

bool kiln__mark_begin(kiln__mark *mark, const kiln_stream *stream,
                      const char *name);
void kiln__mark_end(const kiln__mark *mark, const kiln_stream *stream);

#endif
