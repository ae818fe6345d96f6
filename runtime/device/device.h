/* device.h -- the inside of devices, streams, events, modules and kernels.
 *
 * Who calls what: every public function that needs the driver runs between
 * kiln__enter() and kiln__leave(). Functions marked "needs a scope" must be called
 * between the two. ops/ uses kiln__module_start() to compile several programs at
 * once, kiln__refuse_capture() for its checked modes, and the `ops` members, in which
 * it keeps specialised kernels per device and temporary storage per stream. */
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
  uint64_t context_id; /* the driver's number of it, 0 if it has none; the
                                 driver reuses handles, but not numbers */
  CUdevice handle;
  kiln_context_kind kind;
  unsigned context_flags;
  pthread_mutex_t lock; /* held while the context is created */
  kiln_traits traits;   /* of the capability, with this GPU's own limits */
  kiln_device_info info;
  _Atomic(void *) ops; /* of ops/: specialised kernels; NULL until the first */
  void (*ops_free)(kiln_device *device); /* frees `ops`; set with it */
  _Atomic(void *)
      tuned; /* of ops/: parameters that were set or read, or NULL */
  _Atomic bool tuned_read; /* the tuning file was looked for */
  void (*tuned_free)(kiln_device *device);
};

/* Between kiln__enter() and kiln__leave() the device's context is current in this thread.
 * kiln__leave() restores what was current before, also if that was none. Scopes nest. */
typedef struct kiln__scope {
  const kiln__driver *driver;
  bool pushed; /* the context was not current and has to be popped */
} kiln__scope;

/* Enters; creates the context on first use. KILN_OK, KILN_EINVAL (device is NULL),
 * KILN_EFORKED, KILN_EDRIVER, KILN_EDEVMEM, KILN_ESTICKY. After a failure kiln__leave()
 * must not be called. Any thread. */
kiln_status kiln__enter(kiln_device *device, kiln__scope *scope);
void kiln__leave(const kiln__scope *scope);

/* Enters in order to free something. false: the driver must not be called, since this is
 * a forked child, there is no context yet, or the caller has destroyed or reset it. What
 * was to be freed is gone then. Writes no error record. */
bool kiln__enter_to_free(kiln_device *device, kiln__scope *scope);
/* Does the context still exist, as far as the driver reports it? */
bool kiln__context_alive(const kiln_device *device, CUcontext context);

/* While anything is captured in the default mode, the driver forbids some calls to every
 * thread, such as loading and allocating, although they disturb no capture. Between
 * kiln__relax() and kiln__unrelax() they are allowed in this thread. Needs a scope. */
typedef struct kiln__relaxed {
  const kiln__driver *driver;
  CUstreamCaptureMode before;
  bool exchanged;
} kiln__relaxed;

void kiln__relax(const kiln__driver *driver, kiln__relaxed *relaxed);
void kiln__unrelax(kiln__relaxed *relaxed);

/* Turns a driver's result into a status and, for a failure, writes the record. */
kiln_status kiln__device_rc(const kiln_device *device, CUresult rc,
                            const char *call);

/* Runs one call of the driver in a scope of its own: st is set to the status of
 * kiln__enter(), or else to that of `call`, which is a member of the driver's table with
 * its arguments. `text` is the exported name, for the record. */
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

/* KILN_EUNSUPPORTED for an optional function that this driver does not have. */
kiln_status kiln__device_missing(const char *call);

struct kiln_stream {
  kiln_device *device;
  CUstream handle;
  bool owned;              /* false: wrapped, the caller destroys the handle */
  kiln_timeline *timeline; /* records launches, copies and fills; or NULL */
  _Atomic(void *) ops; /* of ops/: temporary storage; NULL until the first */
  void (*ops_free)(kiln_stream *stream);
};

/* Is the stream being captured into a graph? Also true for the legacy default stream
 * while a blocking stream is captured. false on failure. Needs a scope. */
bool kiln__capturing(const kiln__driver *driver, CUstream handle);
/* KILN_ECAPTURE if the stream is being captured: for calls that wait for it, which would
 * invalidate the capture. `call` is the public function that is refused. */
kiln_status kiln__refuse_capture(const kiln_device *device, CUstream handle,
                                 const char *call);

struct kiln_event {
  kiln_device *device;
  CUevent handle;
};

struct kiln_module {
  kiln_device *device;
  CUmodule handle;
  bool owned;        /* false: wrapped, the caller unloads the handle */
  kiln_image *image; /* NULL for a wrapped module */
  char *ptx;         /* of a wrapped module, for parameter sizes, or NULL */
  kiln_ladder_result ladder;
  pthread_mutex_t lock; /* guards the list */
  kiln_kernel *kernels;
};

/* kiln_module_load() in two steps. Several programs compile at once if all are started
 * before the first is finished. desc must stay valid until then. Each successful start
 * must be finished exactly once, in the same thread. */
typedef struct kiln__loading {
  kiln_module *module;
  const kiln_program_desc *desc;
  kiln__image_request req;
  kiln__pending *pending;
} kiln__loading;

kiln_status kiln__module_start(kiln__loading *out, kiln_device *device,
                               const kiln_program_desc *desc);
kiln_status kiln__module_finish(kiln__loading *loading, kiln_module **out);

/* What a launch reads comes first, in one cache line. */
struct kiln_kernel {
  CUfunction handle;
  kiln_device *device;
  const uint32_t *sizes; /* of the parameters, n_params of them */
  _Atomic uint32_t
      smem_opted_in;     /* bytes of dynamic shared memory allowed so far */
  uint32_t smem_limit;   /* most bytes that can be allowed */
  uint32_t max_grid[3];  /* the device's */
  uint16_t max_block[3]; /* the device's */
  uint16_t max_threads;  /* the kernel's, per block */
  uint16_t n_params;
  bool params_known;

  kiln_module *module;
  char *name; /* lowered */
  kiln_kernel_info info;
  struct kiln_kernel *next; /* in the module's list */
  void *block;              /* the allocation that contains the struct */
};

/* Allows `smem` bytes of dynamic shared memory, which the driver requires above 48 KiB.
 * Sets the attribute to smem_limit rather than smem: two threads that set different
 * sizes would undo each other. The caller refuses sizes above smem_limit. KILN_OK,
 * KILN_EDRIVER, KILN_ESTICKY. Needs a scope. Any thread. */
kiln_status kiln__kernel_opt_in(kiln_kernel *kernel, size_t smem);

/* A span around work in a stream with a timeline. kiln__mark_begin() returns false if
 * nothing is recorded (no timeline, a capture, no memory); kiln__mark_end() must not be
 * called then. Recording never makes the work fail, and writes no record over that of
 * the work. Needs a scope. Any thread. */
typedef struct kiln__mark {
  kiln_timeline *timeline;
  size_t span;
} kiln__mark;

bool kiln__mark_begin(kiln__mark *mark, const kiln_stream *stream,
                      const char *name);
void kiln__mark_end(const kiln__mark *mark, const kiln_stream *stream);

#endif
