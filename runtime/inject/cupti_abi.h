/* cupti_abi.h -- the part of CUPTI's binary interface that the profiler uses.
 *
 * Each version of CUPTI has its own versions of the records (kernel records 8 in
 * CUPTI 11.8, 9 in 12, 10 in 13). New versions append members, so the members
 * below have the same offsets in all of them. The structs here end after the
 * last member in use, and must not be used for sizes or arrays. A test compares
 * all offsets with NVIDIA's headers where these are found. */
#ifndef KILN_INJECT_CUPTI_ABI_H
#define KILN_INJECT_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef enum cupti_kind {
  CUPTI_KIND_MEMCPY = 1,
  CUPTI_KIND_MEMSET = 2,
  CUPTI_KIND_KERNEL = 3,
  CUPTI_KIND_DRIVER = 4,
  CUPTI_KIND_RUNTIME = 5,
  CUPTI_KIND_DEVICE = 8,
  CUPTI_KIND_CONTEXT = 9,
  CUPTI_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_KIND_NAME = 11,
  CUPTI_KIND_OVERHEAD = 17,
  CUPTI_KIND_MEMCPY2 = 22, /* between two devices */
  CUPTI_KIND_STREAM = 37,
  CUPTI_KIND_SYNCHRONIZATION = 38
} cupti_kind;

enum {
  CUPTI_OK = 0,
  CUPTI_MAX_LIMIT_REACHED = 12, /* a buffer has no further record */
  CUPTI_FLUSH_FORCED = 1,       /* flush buffers with incomplete records, too */
  CUPTI_OBJECT_THREAD = 2,
  CUPTI_DOMAIN_DRIVER = 1,
  CUPTI_DOMAIN_RUNTIME = 2
};

typedef struct cupti_kernel {
  uint32_t kind;
  uint8_t cache_config, shared_config;
  uint16_t registers;
  uint32_t cache_requested, cache_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total, correlation;
  int64_t grid_id;
  const char *name;
  void *reserved;
  uint64_t queued, submitted;
  uint8_t launch_type, carveout_requested, carveout, padding;
  uint32_t shared_executed;
  uint64_t graph_node;
  uint32_t shared_limit, graph;
} cupti_kernel;

typedef struct cupti_memcpy {
  uint32_t kind;
  uint8_t copy_kind, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation, runtime_correlation, padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
} cupti_memcpy;

/* A copy between two devices. */
typedef struct cupti_memcpy2 {
  uint32_t kind;
  uint8_t copy_kind, from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t from_device, from_context, to_device, to_context, correlation;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
} cupti_memcpy2;

typedef struct cupti_memset {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
  uint16_t flags, memory;
  uint32_t padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
} cupti_memset;

typedef struct cupti_api {
  uint32_t kind, function;
  uint64_t start, end;
  uint32_t process, thread, correlation, result;
} cupti_api;

typedef struct cupti_sync {
  uint32_t kind, type;
  uint64_t start, end;
  uint32_t correlation, context, stream;
} cupti_sync;

/* NVIDIA packs this record so that its 64-bit members need no padding. */
typedef struct cupti_overhead {
  uint32_t kind, type, object, ids[3];
  uint64_t start, end;
} cupti_overhead;

typedef struct cupti_name {
  uint32_t kind, object, ids[3], padding; /* ids of a thread: process, thread */
  const char *name;
} cupti_name;

typedef struct cupti_device {
  uint32_t kind, flags;
  uint64_t bandwidth, memory;
  uint32_t properties[20], cc_major, cc_minor, id, ecc;
  uint8_t uuid[16];
  const char *name;
} cupti_device;

typedef struct cupti_context {
  uint32_t kind, context, device;
  uint16_t api, default_stream;
} cupti_context;

typedef struct cupti_stream {
  uint32_t kind, context, stream, priority, flag;
} cupti_stream;

/* ---- Functions ------------------------------------------------------------ */

typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size,
                                 size_t *most_records);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream,
                                  uint8_t *buffer, size_t size, size_t valid);

/* X(member, symbol, parameters): every function takes these and returns an
 * error code. */
#define CUPTI_FUNCTIONS(X)                                                     \
  X(get_version, cuptiGetVersion, (uint32_t * version))                        \
  X(get_timestamp, cuptiGetTimestamp, (uint64_t * ns))                         \
  X(enable, cuptiActivityEnable, (uint32_t kind))                              \
  X(register_callbacks, cuptiActivityRegisterCallbacks,                        \
    (cupti_request_fn request, cupti_complete_fn complete))                    \
  X(next_record, cuptiActivityGetNextRecord,                                   \
    (uint8_t * buffer, size_t valid, void **record))                           \
  X(dropped, cuptiActivityGetNumDroppedRecords,                                \
    (void *context, uint32_t stream, size_t *dropped))                         \
  X(flush_all, cuptiActivityFlushAll, (uint32_t flag))                         \
  X(callback_name, cuptiGetCallbackName,                                       \
    (uint32_t domain, uint32_t function, const char **name))                   \
  X(result_text, cuptiGetResultString, (uint32_t result, const char **text))

#endif
