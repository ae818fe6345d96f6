/* machine.h -- declares the state behind the CPU device's driver API: the
 * machine, which is the global state of all simulated devices, the objects that
 * handles point to, and the functions that put work into streams.
 *
 * A process has one machine, as it has one driver. The first call makes the
 * machine, and nothing frees it. Handles are pointers to objects. Every call
 * looks its handles up in a set of live objects before it dereferences them. A
 * stale or invented handle therefore gives CUDA_ERROR_INVALID_HANDLE, or
 * CUDA_ERROR_INVALID_CONTEXT for contexts, and no crash.
 *
 * A thread may take locks only in this order: a library's lock, graph_lock,
 * lock, a context's lock, the lock of `blocks`, queue_lock, live_lock. No
 * thread holds a lock while it runs a kernel or a function of the program. The
 * exception is graph_lock around destructors of user objects; see
 * graph_object.c. */
#ifndef KILN_CPU_MACHINE_H
#define KILN_CPU_MACHINE_H

#include "../../base/os.h"
#include "../../driver/driver.h"
#include "../exec/isa.h"
#include "../memory/address_space.h"
#include "../memory/launch_store.h"
#include "../memory/texture_handles.h"
#include "../run/grid_run.h"
#include "../watch/watch.h"
#include "cu_try.h"
#include "dropin_abi.h"

#include <kiln/cpu.h>

/* KILN__SM_COUNT is the number of multiprocessors that every device reports.
 * Programs choose grid sizes by this number, so a small number keeps the grids
 * small. */
enum {
  KILN__MAX_DEVICES = 16,
  KILN__DRIVER_VERSION = 13000,
  KILN__SM_COUNT = 16
};

/* Declares the functions of entry_points.def, in the order of that table. */
#define KILN__CPU_FN(name) kiln__cpu_##name
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  result KILN__CPU_FN(name) params; /* NOLINT: no expressions */
#define KILN__MISSING_FN(symbol, since)                                        \
  CUresult kiln__cpu_missing_##symbol(void);
#include "entry_points.def"

/* Bytes that graphs use on a device: in use after a launch, idle, and both with the
 * idle bytes of all streams. */
typedef struct kiln__cpu_footprint {
  uint64_t in_use, idle, used, high;
  uint64_t trims; /* number of trims */
} kiln__cpu_footprint;

typedef struct kiln__cpu_machine {
  /* guards contexts, settings, pools, arrays and textures */
  pthread_mutex_t lock;
  atomic_bool initialised; /* true after cuInit was called */
  /* settings; unset members have their default values */
  kiln_cpu_opts opts;
  char isa_name[32];
  const kiln__cpu_isa *isa;
  kiln__cpu_memory *memory;
  kiln__cpu_textures *textures;
  kiln_allocator alloc;  /* host allocator, based on malloc */
  kiln__cpu_store store; /* host memory that launches use one after another */
  int n_devices;
  /* Bytes in use per device, at most opts.memory_bytes. Allocations and the
   * variables of modules count. The lock of `blocks` guards this array. */
  uint64_t used_bytes[KILN__MAX_DEVICES];
  struct CUctx_st *primary[KILN__MAX_DEVICES];
  unsigned primary_flags[KILN__MAX_DEVICES];
  uint64_t next_id; /* last number that kiln__cpu_next_id() returned */
  /* code_offset of the next program that is loaded; see code/code.h */
  atomic_uint_fast64_t next_code;
  /* number of live contexts; settings are fixed while it is above 0 */
  unsigned n_contexts;
  /* Storage for findings, counters and the last fault. keep.c allocates it at
   * first use. */
  struct kiln__cpu_kept *kept;
  /* list of what libraries reported as missing, guarded by `lock`; see
   * missing.c */
  struct kiln__cpu_note *notes;
  /* Members of the set of live handles; see live.c. */
  pthread_mutex_t live_lock;
  struct kiln__cpu_live_slot *live;
  size_t live_used, live_gone, live_capacity;
  /* Lock for the queues of all streams; see stream/queue.c. Threads hold
   * queue_lock for a few hundred nanoseconds at a time. */
  pthread_mutex_t queue_lock;
  /* signalled when a queue entry is done that a host thread waits for */
  pthread_cond_t queue_done;
  /* set by cuInit; makes driver calls fail in forked children */
  kiln__fork_guard fork_guard;
  /* table of all allocations; see memory/api_memory.c */
  struct kiln__cpu_blocks *blocks;
  /* Lock for graphs, captures and their nodes. A thread that holds `lock` must
   * not take graph_lock, since freeing a node may take `lock`. */
  pthread_mutex_t graph_lock;
  struct kiln__cpu_capture *captures; /* list of captures that have not ended */
  atomic_uint n_captures;
  uint64_t graph_launches; /* guarded by graph_lock */
  /* bytes that graphs use, guarded by `lock`; see graph/graph_footprint.c */
  kiln__cpu_footprint footprint[KILN__MAX_DEVICES];
  /* list of all memory pools, and the current pool per device; guarded by
   * machine.lock */
  CUmemoryPool pools, current_pool[KILN__MAX_DEVICES];
  /* Lists of arrays, mipmapped arrays and texture objects, guarded by
   * `lock`. */
  struct CUarray_st *arrays;
  struct CUmipmappedArray_st *mipmaps;
  /* list of texture objects and surface objects */
  struct kiln__cpu_texture_object *texture_objects;
  /* callback that receives the output of device printf; NULL means standard
   * output */
  kiln_cpu_print_fn print;
  void *print_user;
} kiln__cpu_machine;

/* Returns the global state of the CPU device, and makes it at the first call.
 * Returns NULL if there is no memory. Thread-safe. */
kiln__cpu_machine *kiln__cpu_the_machine(void);

/* Returns the global state of the CPU device. Only for code that runs after
 * cuInit, so the result is never NULL. */
static inline kiln__cpu_machine *machine(void)
{
  return kiln__cpu_the_machine();
}

/* Replaces every member of `opts` that is zero by its default value. Defined in
 * configure.c. */
void kiln__cpu_opts_fill(kiln_cpu_opts *opts);
/* Receives the output of device printf. `user` is the kiln__cpu_machine.
 * Defined in keep.c. */
void kiln__cpu_print(void *user, const char *text, size_t size);

/* The limits of a compute capability in bytes, registers, threads and blocks.
 * The values are those of the occupancy tables in the CUDA documentation. See
 * module/api_occupancy.c. */
typedef struct kiln__cpu_limits {
  int arch;
  const char *family; /* name of the architecture, e.g. "Hopper" */
  int block_threads, sm_threads, sm_blocks;
  int sm_registers, block_registers, thread_registers, register_unit, warp_unit;
  int sm_shared, block_shared, block_shared_optin, reserved_shared, shared_unit;
} kiln__cpu_limits;
/* Returns the limits of a compute capability, where `arch` is 10 * major +
 * minor. Returns NULL if the capability is unknown. */
const kiln__cpu_limits *kiln__cpu_limits_of(int arch);
/* The first function returns whether a device with this ordinal exists. The
 * second returns CUDA_SUCCESS if the device exists, else
 * CUDA_ERROR_INVALID_DEVICE. */
bool kiln__cpu_device_exists(int device);
CUresult kiln__cpu_known_device(int device);

/* ---- Live handles -------------------------------------------------------- */

typedef enum kiln__cpu_handle {
  KILN__HANDLE_CONTEXT = 1,
  KILN__HANDLE_MODULE,
  KILN__HANDLE_FUNCTION,
  KILN__HANDLE_STREAM,
  KILN__HANDLE_EVENT,
  KILN__HANDLE_ARRAY,
  KILN__HANDLE_MIPMAP,
  KILN__HANDLE_POOL,
  KILN__HANDLE_GRAPH,
  KILN__HANDLE_GRAPH_EXEC,
  KILN__HANDLE_GRAPH_NODE,
  KILN__HANDLE_LINK,
  KILN__HANDLE_LIBRARY,
  KILN__HANDLE_KERNEL,
  KILN__HANDLE_TEXREF,
  KILN__HANDLE_USER_OBJECT,
  KILN__HANDLE_PHYSICAL /* memory of cuMemCreate */
} kiln__cpu_handle;

/* Functions on the set of live handles. Look-ups accept any pointer, including
 * NULL. The allocator may reuse the address of a freed object for an object of
 * the same kind. The old handle is then live again, as with NVIDIA's driver.
 * All of these functions are thread-safe. kiln__cpu_live_add() returns false if
 * there is no memory. */
bool kiln__cpu_live_add(const void *p, kiln__cpu_handle kind);
bool kiln__cpu_live(const void *p, kiln__cpu_handle kind);
void kiln__cpu_live_remove(const void *p);
/* Functions that check a handle from the program. The first function checks
 * only the handle. The second first calls kiln__cpu_ready(), the third
 * kiln__cpu_current(). If the handle is not live, they return the code that the
 * driver returns for this kind of handle: CUDA_ERROR_INVALID_CONTEXT for
 * contexts, CUDA_ERROR_INVALID_VALUE for graphs, graph nodes and pools, and
 * CUDA_ERROR_INVALID_HANDLE for all others. */
CUresult kiln__cpu_known(const void *handle, kiln__cpu_handle kind);
CUresult kiln__cpu_ready_with(const void *handle, kiln__cpu_handle kind);
CUresult kiln__cpu_current_with(const void *handle, kiln__cpu_handle kind);

/* ---- Contexts ------------------------------------------------------------ */

struct CUctx_st {
  int device;
  unsigned flags;
  /* The number of this object. A primary context keeps it when it is reset, and
   * so stays current in threads. Its id changes with each reset. */
  uint64_t object;
  uint64_t id;
  bool is_primary;
  unsigned retained; /* number of retains minus releases of a primary context */
  _Atomic(CUresult)
      /* error of the first kernel that failed; later calls return this error */
      sticky;
  /* guards the modules, limits and enabled peers of the context */
  pthread_mutex_t lock;
  /* list of streams except `legacy`; guarded by machine.queue_lock */
  struct CUstream_st *streams;
  struct CUstream_st *legacy; /* legacy default stream */
  /* list of events; guarded by machine.queue_lock */
  struct CUevent_st *events;
  /* number of stream threads; guarded by machine.queue_lock */
  unsigned n_threads;
  /* true while the context is destroyed; threads then stop waiting for values
   * in memory */
  atomic_bool dying;
  struct CUmod_st *modules;
  size_t limit[16]; /* values of the context's limits, indexed by CUlimit */
  kiln__cpu_out *out;
  uint64_t peers; /* bit d is set if the context may access device d's memory */
  /* cache preferences, which are stored for the getters only */
  int cache_config, shared_config;
  void *user;
};

/* Stores the calling thread's current context. Most driver functions call this
 * function first.
 *
 * Returns CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT,
 * or the context's sticky error. Inside a host function of a stream it returns
 * CUDA_ERROR_NOT_PERMITTED. */
CUresult kiln__cpu_current(CUcontext *out);
/* Does the same checks as kiln__cpu_current(), for functions that do not need
 * the context itself. */
CUresult kiln__cpu_check_current(void);
/* Does the same as kiln__cpu_current(), for calls that wait, allocate, free or
 * load. A stream capture may forbid these calls. In that case this function
 * invalidates the capture and returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult kiln__cpu_current_unsafe(CUcontext *out);
/* Returns CUDA_SUCCESS if cuInit was called in this process, else
 * CUDA_ERROR_NOT_INITIALIZED. A forked child always gets
 * CUDA_ERROR_NOT_INITIALIZED. In a forked child the function takes no lock,
 * since a thread of the parent may have held the lock at the fork. */
CUresult kiln__cpu_ready(void);
/* Frees the modules, arrays and texture references of a context that is
 * destroyed or reset. The caller makes sure that no work runs in the context
 * any more. */
void kiln__cpu_context_end_modules(CUcontext context);
/* Returns the calling thread's current context, or NULL if there is none. */
CUcontext kiln__cpu_current_or_null(void);
/* Makes `rc` the context's sticky error, unless the context already has a
 * sticky error. */
void kiln__cpu_stick(CUcontext context, CUresult rc);

/* ---- Work ---------------------------------------------------------------- */

/* One command of a stream, or the work of a graph node. Other files embed this
 * struct as the first member of their own structs.
 *
 * `run` executes the command after all earlier commands of the stream. If `run`
 * fails, its result becomes the context's sticky error, and later work is freed
 * without being run. `free` is called once, after the last call of `run`.
 * Graphs run the same work many times and from several threads at once, so
 * `run` must not change the work. */
typedef struct kiln__cpu_work {
  CUresult (*run)(struct kiln__cpu_work *work, CUstream stream);
  void (*free)(struct kiln__cpu_work *work);
  enum kiln__cpu_work_kind {
    KILN__WORK_KERNEL,
    KILN__WORK_COPY,
    KILN__WORK_FILL,
    KILN__WORK_HOST,
    KILN__WORK_ALLOC,
    KILN__WORK_FREE,
    KILN__WORK_EMPTY,
    KILN__WORK_MEM_OP
  } kind;
  bool always; /* true if the work runs even after the context failed */
  /* number of the driver call that issued the work; see observe.h */
  uint64_t call;
  /* stores names, sizes and places for an observer; may be NULL */
  void (*describe)(const struct kiln__cpu_work *work, kiln_cpu_activity *out);
} kiln__cpu_work;

/* Puts work at the end of `stream`, or into the graph that the stream captures.
 * `stream` is NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a handle. The
 * callee owns `work` from here on, also on failure. Work of the legacy stream
 * waits for all blocking streams, and blocking streams wait for work of the
 * legacy stream.
 *
 * Returns CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_OUT_OF_MEMORY,
 * the context's sticky error, or CUDA_ERROR_STREAM_CAPTURE_*. */
CUresult kiln__cpu_enqueue(CUcontext context, CUstream stream,
                           kiln__cpu_work *work);
/* Does the same as kiln__cpu_enqueue(), but returns when the work is done.
 * Synchronous copies and fills use this function. If a capture forbids the
 * wait, the function invalidates the capture, as the driver does. */
CUresult kiln__cpu_enqueue_and_wait(CUcontext context, CUstream stream,
                                    kiln__cpu_work *work);
/* The first function makes the work of a kernel node from the node's
 * parameters. `params` names the kernel by `func`, or by `kern` with `ctx`. The
 * work copies the bytes of the arguments.
 *
 * The second function returns the parameters of such work. The kernelParams
 * that it returns point into the work and are valid as long as the work exists.
 * Both are defined in module/api_launch.c. */
CUresult kiln__cpu_kernel_work(CUcontext context,
                               const CUDA_KERNEL_NODE_PARAMS *params,
                               kiln__cpu_work **out);
CUresult kiln__cpu_kernel_work_params(const kiln__cpu_work *work,
                                      CUDA_KERNEL_NODE_PARAMS *out);
/* Change and read the attributes of a launch that decide how the kernel runs:
 * CU_LAUNCH_ATTRIBUTE_COOPERATIVE and CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION. The
 * first function checks the launch again, and only accepts work that no other
 * thread knows yet. The second stores nothing for other attributes. */
CUresult kiln__cpu_kernel_work_set(kiln__cpu_work *work,
                                   CUlaunchAttributeID attribute,
                                   const CUlaunchAttributeValue *value);
void kiln__cpu_kernel_work_get(const kiln__cpu_work *work,
                               CUlaunchAttributeID attribute,
                               CUlaunchAttributeValue *value);
/* Waits for all work of the context, then writes the buffered output of device
 * printf. Returns the context's sticky error, or CUDA_SUCCESS. */
CUresult kiln__cpu_wait_context(CUcontext context);

/* ---- Modules ------------------------------------------------------------- */

/* A kernel of a loaded module, which a CUfunction handle points to. */
struct CUfunc_st {
  CUmodule module;
  const kiln__cpu_code *code;
  /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  atomic_int max_dynamic_shared;
  atomic_int carveout, non_portable_cluster, cluster_policy;
  /* blocks per cluster, set by the program or compiled into the kernel; 0 means
   * no cluster */
  atomic_int cluster[3];
  /* state of cuFuncSetBlockShape and cuParamSet*; NULL before first use */
  struct kiln__cpu_old_launch *old;
};

struct CUmod_st {
  CUcontext context;
  uint64_t context_id;
  int device;
  /* number of references; the handle and launches in flight hold references */
  atomic_uint refs;
  bool of_library; /* true if only cuLibraryUnload may free the module */
  /* program of the module, bound to the handlers of machine.isa */
  kiln__cpu_program *program;
  /* address of each variable of the module; 0 before its allocation */
  uint64_t *globals;
  /* array of kernels, in the order of the program */
  struct CUfunc_st *functions;
  uint32_t n_functions;
  /* texture and surface references that the program obtained by
   * cuModuleGetTexRef and cuModuleGetSurfRef */
  struct CUtexref_st *texrefs;
  struct CUmod_st *next;
};

/* Parses, checks and loads PTX source text. Appends messages to `log`. Returns
 * the result codes of cuModuleLoadData. */
CUresult kiln__cpu_module_make(CUmodule *out, CUcontext context,
                               const char *ptx, size_t size, kiln__buf *log);
void kiln__cpu_module_free(CUmodule module);

/* ---- Arrays -------------------------------------------------------------- */

struct CUarray_st {
  CUcontext context;
  kiln__cpu_texels texels;
  int format; /* texel format: a value of CUarray_format */
  unsigned flags;
  /* mipmapped array that this level belongs to, or NULL */
  struct CUmipmappedArray_st *parent;
  /* next array in the list machine.arrays; unused in mipmap levels */
  struct CUarray_st *next;
};

#endif
