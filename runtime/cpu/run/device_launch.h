/* device_launch.h -- declares the work that kernels submit to the device
 * runtime: launches, copies and fills. Only files of run/ include this
 * header. */
#ifndef KILN_CPU_DEVICE_LAUNCH_H
#define KILN_CPU_DEVICE_LAUNCH_H

#include "../watch/launch_check.h"
#include "grid_job.h"

/* Error codes of the CUDA runtime that device functions return. */
enum {
  KILN__RT_SUCCESS = 0,
  KILN__RT_INVALID_VALUE = 1,
  KILN__RT_NO_MEMORY = 2,
  KILN__RT_LAUNCH_DEPTH = 65,
  KILN__RT_SYNC_DEPTH = 68,
  KILN__RT_INVALID_FUNCTION = 98,
  KILN__RT_INVALID_HANDLE = 400,
  KILN__RT_NOT_SUPPORTED = 801
};

/* Streams that every grid has. */
enum {
  KILN__STREAM_LEGACY = 1,
  KILN__STREAM_PER_THREAD = 2,
  KILN__STREAM_TAIL = 3,
  KILN__STREAM_FIRE_AND_FORGET = 4
};

enum { KILN__MAX_DEPTH = 24, KILN__N_PREPARED = 256 };

/* A copy or fill of `height` rows of `width` bytes. */
typedef struct kiln__cpu_area {
  uint64_t to, from, to_pitch, from_pitch, width, height;
  uint8_t value;
} kiln__cpu_area;

typedef struct kiln__cpu_child {
  struct kiln__cpu_child *next;
  enum { KILN__CHILD_KERNEL, KILN__CHILD_COPY, KILN__CHILD_FILL } kind;
  /* device address of the parameter buffer; 0 if there is none */
  uint64_t buffer;
  kiln__cpu_launch_desc launch; /* for kernels */
  kiln__cpu_area area;          /* for copies and fills */
  kiln__cpu_origin *origin;     /* for the race check; NULL if it is off */
} kiln__cpu_child;

/* What launch->collect of a child points into: the list is its first member. The
 * child takes the origin when it starts. */
typedef struct kiln__cpu_collector {
  kiln__cpu_children list;
  kiln__cpu_origin *origin;
} kiln__cpu_collector;

/* What the threads of one grid submitted. `lock` guards all other members. */
typedef struct kiln__cpu_submitted {
  pthread_mutex_t lock;
  /* held while children run before the grid has ended */
  pthread_mutex_t running;
  /* parameter buffers that are not launched yet, by address */
  kiln__cpu_child *prepared[KILN__N_PREPARED];
  kiln__cpu_children queue, tail;
  uint32_t n_queued;
  uint32_t n_streams, n_events; /* number of handles that the grid made */
  /* last error of each thread that has one */
  struct kiln__cpu_thread_error {
    uint64_t thread;
    int error;
  } * errors;
  size_t n_errors, errors_capacity;
} kiln__cpu_submitted;

/* Returns what the grid submitted, and makes it at the first call. Returns NULL
 * if memory is exhausted. */
kiln__cpu_submitted *kiln__cpu_submitted_of(kiln__cpu_job *job);
/* Connects the checks of a child that starts with those of its parent. */
void kiln__cpu_submitted_begin(const kiln__cpu_launch_desc *launch);
/* Runs the launches of a grid that has ended, or passes them to the launch of
 * the host. A fault of a child becomes the fault of the grid. */
void kiln__cpu_submitted_run(kiln__cpu_job *job);
/* Runs the launches that the grid made so far, while the grid itself waits.
 * Returns false if a child faulted. */
bool kiln__cpu_submitted_sync(kiln__cpu_warp *w);
void kiln__cpu_submitted_free(kiln__cpu_job *job);

/* Makes a parameter buffer of `size` bytes. Stores its address, or 0 after a
 * failure. All of these functions return an error code of the CUDA runtime. */
int kiln__cpu_child_buffer(kiln__cpu_warp *w, uint64_t size, uint64_t *address);
/* The shape of a launch, as a kernel passes it. */
typedef struct kiln__cpu_child_shape {
  uint64_t function; /* address of the kernel */
  uint32_t grid[3], block[3], shared;
} kiln__cpu_child_shape;
/* Makes the parameter buffer of a launch. */
int kiln__cpu_child_prepare(kiln__cpu_warp *w,
                            const kiln__cpu_child_shape *shape,
                            uint64_t *address);
/* Submits the launch of a parameter buffer by one lane. A `shape` of NULL means
 * the shape that the buffer was made for. */
int kiln__cpu_child_launch(kiln__cpu_warp *w, int lane,
                           const kiln__cpu_child_shape *shape, uint64_t buffer,
                           uint64_t stream);
/* Submits a copy, or a fill if `fill` is true. */
int kiln__cpu_child_area(kiln__cpu_warp *w, const kiln__cpu_area *area,
                         bool fill, uint64_t stream);
/* Returns 0 if work can be submitted to the stream. */
int kiln__cpu_stream_check(const kiln__cpu_warp *w, uint64_t stream);
/* The first function returns the handle number i (from 1) of a grid, for a
 * stream or an event. The second returns 0 if the grid made such a handle. */
uint64_t kiln__cpu_device_handle(const kiln__cpu_grid *grid, uint32_t i);
int kiln__cpu_device_handle_check(const kiln__cpu_warp *w, uint64_t handle,
                                  bool event);

#endif
