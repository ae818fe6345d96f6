/* device.h -- inside of devices, streams, modules and kernels. */
#ifndef KILN_DEVICE_INTERNAL_H
#define KILN_DEVICE_INTERNAL_H

#include "../core/runtime.h"

#include <kiln/device.h>
#include <kiln/launch.h>
#include <kiln/memory.h>
#include <kiln/timeline.h>

#include <stdatomic.h>

struct kiln_device {
  kiln_runtime *rt;
  const kiln__driver *driver;
  CUdevice handle;
  kiln_traits traits;    /* the table's, with this GPU's own limits */
  kiln_device_info info;
  kiln_context_kind kind;
  unsigned context_flags;
  pthread_mutex_t lock;         /* guards making the context */
  _Atomic(CUcontext) context;   /* NULL until first use */
};

/* The device's context is current between enter and leave; leave puts back
 * what was current before, also if that was none. Enter makes the context on
 * first use and costs one cuCtxGetCurrent when it is current already. */
typedef struct kiln__scope {
  const kiln__driver *driver;
  bool pushed;
} kiln__scope;

/* KILN_OK, KILN_EFORKED, KILN_EDRIVER, KILN_EDEVMEM. On failure nothing is to
 * be left. */
kiln_status kiln__enter(kiln_device *device, kiln__scope *scope);
void kiln__leave(const kiln__scope *scope);

/* A driver result inside a scope; tells sticky errors from fresh ones. */
kiln_status kiln__device_rc(kiln_device *device, CUresult rc, const char *call);

struct kiln_stream {
  kiln_device *device;
  CUstream handle;
  bool owned;
  kiln_timeline *timeline; /* records launches and copies, or NULL */
};

struct kiln_event {
  kiln_device *device;
  CUevent handle;
};

struct kiln_kernel {
  kiln_module *module;
  kiln_device *device;
  CUfunction handle;
  char *name; /* lowered */
  kiln_kernel_info info;
  uint32_t *sizes;                /* parameter sizes, info.n_params of them */
  _Atomic uint32_t smem_opted_in; /* dynamic shared memory allowed so far */
  uint32_t smem_limit;            /* most dynamic shared memory it can have */
  struct kiln_kernel *next;       /* in the module's list */
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

#endif
