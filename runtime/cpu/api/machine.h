/* machine.h -- inside of the CPU device's driver: what handles point to, and
 * how work gets into streams.
 *
 * One machine a process, as with the driver: made by the first call, never
 * freed. Handles are pointers with a magic number first; an argument that is
 * no live handle gives CUDA_ERROR_INVALID_HANDLE (INVALID_CONTEXT for contexts)
 * and is never dereferenced: live objects are kept in a set. */
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

/* Multiprocessors of every device that is played: enough for programs that
 * size grids by it, few enough for grids to stay small. */
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
  pthread_mutex_t lock;    /* contexts, primaries, live objects, settings */
  atomic_bool initialised; /* cuInit was called */
  kiln_cpu_opts opts;      /* with the defaults filled in */
  char isa_name[32];
  const kiln__cpu_isa *isa;
  kiln__cpu_memory *memory;
  kiln__cpu_textures *textures;
  kiln_allocator alloc; /* malloc */
  int n_devices;
  uint64_t used_bytes[KILN__MAX_DEVICES]; /* of opts.memory_bytes */
  struct CUctx_st *primary[KILN__MAX_DEVICES];
  unsigned primary_flags[KILN__MAX_DEVICES];
  uint64_t next_id;    /* contexts, grids, streams; kiln__cpu_next_id() */
  unsigned n_contexts; /* alive, primaries included: settings are fixed then */
  /* findings, counters and the last fault, made at first use: api/keep.c */
  struct kiln__cpu_kept *kept;
  /* live handles: api/live.c */
  pthread_mutex_t live_lock;
  struct kiln__cpu_live_slot *live;
  size_t live_used, live_gone, live_capacity;
  /* all streams' queues: api/queue.c. Taken last, held for moments. */
  pthread_mutex_t queue_lock;
  pthread_cond_t queue_done;       /* a point that a host thread waits for */
  kiln__fork_guard fork_guard;     /* of cuInit: children are refused */
  struct kiln__cpu_blocks *blocks; /* every allocation: api/memory.c */
  /* Graphs, captures and their parts. Never taken with `lock` held: freeing a
   * node may need that. */
  pthread_mutex_t graph_lock;
  struct kiln__cpu_capture *captures; /* those going on */
  atomic_uint n_captures;
  CUmemoryPool pools, current_pool[KILN__MAX_DEVICES]; /* under lock */
  /* under lock */
  struct CUarray_st *arrays;
  struct CUmipmappedArray_st *mipmaps;
  struct kiln__cpu_texture_object *texture_objects; /* surface objects too */
  kiln_cpu_print_fn print; /* of device printf; NULL: standard output */
  void *print_user;
} kiln__cpu_machine;

/* The process's machine; NULL: no memory. Any thread. */
kiln__cpu_machine *kiln__cpu_the_machine(void);

/* The same, for code that runs after cuInit: never NULL there. */
static inline kiln__cpu_machine *machine(void)
{
  return kiln__cpu_the_machine();
}

/* Replace every zero that means "default"; api/configure.c. */
void kiln__cpu_opts_fill(kiln_cpu_opts *opts);
/* What context->out writes to: `user` is the machine; api/keep.c. */
void kiln__cpu_print(void *user, const char *text, size_t size);

/* Limits of a compute capability, bytes and counts; NULL: none such.
 * api/occupancy.c. */
typedef struct kiln__cpu_limits {
  int arch;
  const char *family; /* "Hopper" */
  int block_threads, sm_threads, sm_blocks;
  int sm_registers, block_registers, thread_registers, register_unit, warp_unit;
  int sm_shared, block_shared, block_shared_optin, reserved_shared, shared_unit;
} kiln__cpu_limits;
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

/* Register, look up, forget. Any pointer may be asked for, NULL too. A pointer that was freed and given out again to an
 * object of the same kind is live again, as with the driver. */
bool kiln__cpu_live_add(const void *p,
                        kiln__cpu_handle kind); /* false: no memory */
bool kiln__cpu_live(const void *p, kiln__cpu_handle kind);
void kiln__cpu_live_remove(const void *p);

/* ---- Contexts ------------------------------------------------------------------ */

struct CUctx_st {
  int device;
  unsigned flags;
  uint64_t id;
  bool is_primary;
  unsigned retained;        /* primary: how often */
  _Atomic(CUresult) sticky; /* a kernel failed: every later call gives this */
  pthread_mutex_t lock;     /* modules, limits, peers */
  struct CUstream_st *streams; /* all but legacy; under machine.queue_lock */
  struct CUstream_st *legacy;  /* the default stream */
  struct CUevent_st *events;   /* under machine.queue_lock */
  unsigned n_threads;          /* of streams; under machine.queue_lock */
  atomic_bool dying;           /* being destroyed: waits in streams give up */
  struct CUmod_st *modules;
  size_t limit[16]; /* by CUlimit */
  kiln__cpu_out *out;
  uint64_t peers; /* bit set of devices whose memory it may use */
  int cache_config, shared_config; /* kept, without effect */
  void *user;                      /* api/'s further state */
};

/* What every call begins with: initialised, a current context, nothing sticky.
 * CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT, or the
 * context's sticky error. */
CUresult kiln__cpu_current(CUcontext *out);
/* The same for calls that a stream capture forbids (those that wait, allocate,
 * free or load): CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and the capture is
 * invalidated. */
CUresult kiln__cpu_current_unsafe(CUcontext *out);
/* cuInit was called in this process: CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED
 * (also in forked children, which must not touch any lock). */
CUresult kiln__cpu_ready(void);
/* Called for a context that ends or is reset, when nothing runs in it any more:
 * api/module.c frees modules, arrays, texture references. */
void kiln__cpu_context_end_modules(CUcontext context);
/* Current context of this thread, NULL: none. */
CUcontext kiln__cpu_current_or_null(void);
/* The first failure of a kernel sticks. */
void kiln__cpu_stick(CUcontext context, CUresult rc);

/* ---- Work ----------------------------------------------------------------------- */

/* One command of a stream or node of a graph. `run` is called by the stream's
 * thread when everything before it is done, `free` when it is no longer needed
  * (after running; graphs run it several times, also at once from several
 * threads: run does not change it). What run returns other than success sticks
 * to the context; after that nothing is run but freed. */
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
  bool always; /* run even after the context failed: callbacks */
} kiln__cpu_work;

/* Put work at the end of `stream` (NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
 * or a handle), or into the graph that it is capturing. Takes `work` over, also
 * on failure. The legacy stream waits for, and holds up, all blocking streams. */
CUresult kiln__cpu_enqueue(CUcontext context, CUstream stream,
                           kiln__cpu_work *work);
/* The same, then wait until it is done: synchronous copies and fills. Refuses
 * as the driver does while a capture forbids it. */
CUresult kiln__cpu_enqueue_and_wait(CUcontext context, CUstream stream,
                                    kiln__cpu_work *work);
/* Kernel nodes of graphs: work from parameters (func, or kern and ctx), and the
 * parameters back, pointing into the work; api/launch.c. The work's argument
 * bytes are its own: kernelParams of the answer point at each of them. */
CUresult kiln__cpu_kernel_work(CUcontext context,
                               const CUDA_KERNEL_NODE_PARAMS *params,
                               kiln__cpu_work **out);
CUresult kiln__cpu_kernel_work_params(const kiln__cpu_work *work,
                                      CUDA_KERNEL_NODE_PARAMS *out);
/* Wait for everything in the context. Flushes printf. */
CUresult kiln__cpu_wait_context(CUcontext context);

/* ---- Modules --------------------------------------------------------------------- */

/* A function: a kernel of a loaded module. */
struct CUfunc_st {
  CUmodule module;
  const kiln__cpu_code *code;
  atomic_int max_dynamic_shared; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_... */
  atomic_int carveout, non_portable_cluster, cluster_policy;
  atomic_int cluster[3]; /* set or compiled in; 0: none */
  struct kiln__cpu_old_launch
      *old; /* cuFuncSetBlockShape, cuParamSet*: launch.c */
};

struct CUmod_st {
  CUcontext context;
  uint64_t context_id;
  int device;
  atomic_uint refs;            /* the handle's, and work's in flight */
  bool of_library;             /* cuModuleUnload does not take it */
  kiln__cpu_program *program;  /* bound to the machine's isa */
  uint64_t *globals;           /* address of each program global */
  struct CUfunc_st *functions; /* array, entries in the program's order */
  uint32_t n_functions;
  struct CUtexref_st *texrefs; /* made by cuModuleGetTexRef and -SurfRef */
  struct CUmod_st *next;
};

/* Parse, check and load PTX text; messages go to the JIT log buffers. */
CUresult kiln__cpu_module_make(CUmodule *out, CUcontext context,
                               const char *ptx, size_t size, kiln__buf *log);
void kiln__cpu_module_free(CUmodule module);

/* ---- Arrays ----------------------------------------------------------------------- */

struct CUarray_st {
  CUcontext context;
  kiln__cpu_texels texels;
  int format; /* CUarray_format */
  unsigned flags;
  struct CUmipmappedArray_st *parent; /* a level of it; NULL: stands alone */
  struct CUarray_st *next;            /* machine's, if it stands alone */
};

#endif
