/* machine.h -- the state behind the CPU device's driver API: the machine, the
 * objects that handles point to, and how work enters streams.
 *
 * A process has one machine, as it has one driver. The first call makes it, and
 * nothing frees it. Handles are pointers to the objects. Every call looks its
 * handles up in a set of live objects before it dereferences them, so that a
 * stale or invented handle gives CUDA_ERROR_INVALID_HANDLE, or
 * CUDA_ERROR_INVALID_CONTEXT for contexts, and no crash.
 *
 * Locks, in the order in which a thread may take them: a library's lock,
 * graph_lock, lock, a context's lock, the lock of `blocks`, queue_lock,
 * live_lock. No lock is held while a kernel or a function of the program runs,
 * except graph_lock around destructors of user objects; see graph_object.c. */
#ifndef KILN_CPU_MACHINE_H
#define KILN_CPU_MACHINE_H

#include "../../base/os.h"
#include "../../driver/driver.h"
#include "../exec/isa.h"
#include "../memory/address_space.h"
#include "../memory/texture_handles.h"
#include "../run/grid_run.h"
#include "../watch/watch.h"
#include "cu_try.h"
#include "dropin_abi.h"

#include <kiln/cpu.h>

/* KILN__SM_COUNT is the number of multiprocessors that every device reports.
 * Programs size grids by it; a small number keeps those grids small. */
enum {
  KILN__MAX_DEVICES = 16,
  KILN__DRIVER_VERSION = 13000,
  KILN__SM_COUNT = 16
};

/* The functions of entry_points.def, in its order. */
#define KILN__CPU_FN(name) kiln__cpu_##name
#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  result KILN__CPU_FN(name) params; /* NOLINT: no expressions */
#define KILN__MISSING_FN(symbol, since)                                        \
  CUresult kiln__cpu_missing_##symbol(void);
#include "entry_points.def"

typedef struct kiln__cpu_machine {
  pthread_mutex_t lock;    /* contexts, settings, pools, arrays, textures */
  atomic_bool initialised; /* cuInit was called */
  kiln_cpu_opts opts;      /* with the defaults filled in */
  char isa_name[32];
  const kiln__cpu_isa *isa;
  kiln__cpu_memory *memory;
  kiln__cpu_textures *textures;
  kiln_allocator alloc; /* malloc */
  int n_devices;
  /* Bytes in use of each device's opts.memory_bytes: allocations and the
   * variables of modules. Under the lock of `blocks`. */
  uint64_t used_bytes[KILN__MAX_DEVICES];
  struct CUctx_st *primary[KILN__MAX_DEVICES];
  unsigned primary_flags[KILN__MAX_DEVICES];
  uint64_t next_id;    /* last number that kiln__cpu_next_id() gave */
  unsigned n_contexts; /* live contexts; above 0 the settings are fixed */
  /* Findings, counters and the last fault, made at first use; keep.c. */
  struct kiln__cpu_kept *kept;
  /* The set of live handles; live.c. */
  pthread_mutex_t live_lock;
  struct kiln__cpu_live_slot *live;
  size_t live_used, live_gone, live_capacity;
  /* The queues of all streams; stream/queue.c. Held for a few hundred
   * nanoseconds. */
  pthread_mutex_t queue_lock;
  pthread_cond_t queue_done;       /* signalled when an awaited mark is done */
  kiln__fork_guard fork_guard;     /* set by cuInit; forked children fail */
  struct kiln__cpu_blocks *blocks; /* every allocation; memory/api_memory.c */
  /* Graphs, captures and their parts. Never taken while `lock` is held, since
   * freeing a node may take that. */
  pthread_mutex_t graph_lock;
  struct kiln__cpu_capture *captures; /* not yet ended */
  atomic_uint n_captures;
  CUmemoryPool pools, current_pool[KILN__MAX_DEVICES]; /* under lock */
  /* The next three lists are under `lock`. */
  struct CUarray_st *arrays;
  struct CUmipmappedArray_st *mipmaps;
  struct kiln__cpu_texture_object *texture_objects; /* surface objects too */
  kiln_cpu_print_fn print; /* for device printf; NULL: standard output */
  void *print_user;
} kiln__cpu_machine;

/* Returns the process's machine and makes it at the first call; NULL if there is
 * no memory for it. Safe from any thread. */
kiln__cpu_machine *kiln__cpu_the_machine(void);

/* The same for code that runs after cuInit, where it is never NULL. */
static inline kiln__cpu_machine *machine(void)
{
  return kiln__cpu_the_machine();
}

/* Replaces every member that is zero by its default; configure.c. */
void kiln__cpu_opts_fill(kiln_cpu_opts *opts);
/* Receives the output of device printf; `user` is the machine; keep.c. */
void kiln__cpu_print(void *user, const char *text, size_t size);

/* Limits of a compute capability, in bytes, registers, threads and blocks, as
 * in the occupancy tables of the CUDA documentation; module/api_occupancy.c. */
typedef struct kiln__cpu_limits {
  int arch;
  const char *family; /* "Hopper" */
  int block_threads, sm_threads, sm_blocks;
  int sm_registers, block_registers, thread_registers, register_unit, warp_unit;
  int sm_shared, block_shared, block_shared_optin, reserved_shared, shared_unit;
} kiln__cpu_limits;
/* `arch` is 10 * major + minor. NULL: no such capability. */
const kiln__cpu_limits *kiln__cpu_limits_of(int arch);

/* ---- Live handles ------------------------------------------------------------ */

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
  KILN__HANDLE_USER_OBJECT
} kiln__cpu_handle;

/* The set of live handles. Look-ups take any pointer, NULL included. If the
 * allocator reuses the address of a freed object for one of the same kind, the
 * old handle is live again, as with NVIDIA's driver. All are safe from any
 * thread. kiln__cpu_live_add() returns false if there is no memory. */
bool kiln__cpu_live_add(const void *p, kiln__cpu_handle kind);
bool kiln__cpu_live(const void *p, kiln__cpu_handle kind);
void kiln__cpu_live_remove(const void *p);

/* ---- Contexts ------------------------------------------------------------------ */

struct CUctx_st {
  int device;
  unsigned flags;
  uint64_t id;
  bool is_primary;
  unsigned retained; /* primary contexts: retains less releases */
  _Atomic(CUresult)
      sticky;           /* first failure of a kernel; later calls return it */
  pthread_mutex_t lock; /* modules, limits, peers */
  struct CUstream_st *streams; /* without `legacy`; under machine.queue_lock */
  struct CUstream_st *legacy;  /* the default stream */
  struct CUevent_st *events;   /* under machine.queue_lock */
  unsigned n_threads;          /* threads of streams; under queue_lock */
  atomic_bool dying;           /* being destroyed; waits in streams give up */
  struct CUmod_st *modules;
  size_t limit[16]; /* by CUlimit */
  kiln__cpu_out *out;
  uint64_t peers; /* bit d: it may use the memory of device d */
  int cache_config, shared_config; /* returned by the getters; no effect */
  void *user;
};

/* Most calls begin with this. Stores the calling thread's current context.
 * CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT,
 * CUDA_ERROR_NOT_PERMITTED inside a host function of a stream, or the context's
 * sticky error. */
CUresult kiln__cpu_current(CUcontext *out);
/* The same for calls that wait, allocate, free or load, which a stream capture
 * may forbid. Then it invalidates the capture and returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult kiln__cpu_current_unsafe(CUcontext *out);
/* CUDA_SUCCESS if cuInit was called in this process, else
 * CUDA_ERROR_NOT_INITIALIZED. A forked child gets the latter too and takes no
 * lock, since a thread of the parent may have held it at the fork. */
CUresult kiln__cpu_ready(void);
/* Frees the modules, arrays and texture references of a context that ends or is
 * reset. Nothing runs in the context any more. */
void kiln__cpu_context_end_modules(CUcontext context);
/* Returns the calling thread's current context; NULL if there is none. */
CUcontext kiln__cpu_current_or_null(void);
/* Makes `rc` the context's sticky error, unless it has one. */
void kiln__cpu_stick(CUcontext context, CUresult rc);

/* ---- Work ----------------------------------------------------------------------- */

/* One command of a stream, or what a node of a graph does. Other files embed
 * this struct as the first member of their own.
 *
 * `run` executes the command after everything before it in the stream. A result
 * other than CUDA_SUCCESS sticks to the context; later work is then freed but not
 * run. `free` is called once, after the last run. Graphs run the same work many
 * times and from several threads at once, so `run` must not change it. */
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
  bool always; /* runs after the context failed, too: stream callbacks */
} kiln__cpu_work;

/* Puts work at the end of `stream`, or into the graph that the stream captures.
 * `stream` is NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a handle. The
 * callee owns `work` from here on, also on failure. Work of the legacy stream
 * waits for all blocking streams, and they wait for it.
 * CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_OUT_OF_MEMORY, the
 * context's sticky error, or CUDA_ERROR_STREAM_CAPTURE_*. */
CUresult kiln__cpu_enqueue(CUcontext context, CUstream stream,
                           kiln__cpu_work *work);
/* The same, but returns when the work is done, as synchronous copies and fills
 * do. A capture that forbids waiting is invalidated, as by the driver. */
CUresult kiln__cpu_enqueue_and_wait(CUcontext context, CUstream stream,
                                    kiln__cpu_work *work);
/* Makes the work of a kernel node from its parameters, `func` or `kern` with
 * `ctx`. The work copies the bytes of the arguments. The second function gives
 * the parameters back; its kernelParams point into the work and live as long as
 * it. module/api_launch.c. */
CUresult kiln__cpu_kernel_work(CUcontext context,
                               const CUDA_KERNEL_NODE_PARAMS *params,
                               kiln__cpu_work **out);
CUresult kiln__cpu_kernel_work_params(const kiln__cpu_work *work,
                                      CUDA_KERNEL_NODE_PARAMS *out);
/* Waits for all work of the context, then writes out what kernels printed.
 * Returns the context's sticky error, or CUDA_SUCCESS. */
CUresult kiln__cpu_wait_context(CUcontext context);

/* ---- Modules --------------------------------------------------------------------- */

/* A kernel of a loaded module. */
struct CUfunc_st {
  CUmodule module;
  const kiln__cpu_code *code;
  atomic_int max_dynamic_shared; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_... */
  atomic_int carveout, non_portable_cluster, cluster_policy;
  atomic_int cluster[3]; /* blocks per cluster, set or compiled in; 0: none */
  struct kiln__cpu_old_launch
      *old; /* state of cuFuncSetBlockShape and cuParamSet*; NULL: unused */
};

struct CUmod_st {
  CUcontext context;
  uint64_t context_id;
  int device;
  atomic_uint refs;            /* the handle and the launches in flight */
  bool of_library;             /* only cuLibraryUnload may free it */
  kiln__cpu_program *program;  /* bound to the handlers of machine.isa */
  uint64_t *globals;           /* address of each variable; 0: not placed */
  struct CUfunc_st *functions; /* array, kernels in the program's order */
  uint32_t n_functions;
  struct CUtexref_st *texrefs; /* made by cuModuleGetTexRef, -GetSurfRef */
  struct CUmod_st *next;
};

/* Parses, checks and loads a PTX text. Appends messages to `log`. Codes as of
 * cuModuleLoadData. */
CUresult kiln__cpu_module_make(CUmodule *out, CUcontext context,
                               const char *ptx, size_t size, kiln__buf *log);
void kiln__cpu_module_free(CUmodule module);

/* ---- Arrays ----------------------------------------------------------------------- */

struct CUarray_st {
  CUcontext context;
  kiln__cpu_texels texels;
  int format; /* CUarray_format */
  unsigned flags;
  struct CUmipmappedArray_st
      *parent;             /* the mipmap whose level it is; or NULL */
  struct CUarray_st *next; /* in machine.arrays, if no level */
};

#endif
