/* cpu.h -- the CPU device, which runs kernels by interpreting their PTX.
 *
 * The CPU device is meant for tests and study on machines without a GPU, and
 * for inspection on machines with a GPU. It checks memory accesses, races,
 * initialisation and synchronisation. It counts divergence, coalescing and bank
 * conflicts. The CPU device is a separate library (kiln_cpu), which Kiln itself
 * does not need:
 *
 *   kiln_cpu_opts cpu = {.arch = 90, .checks = KILN_CPU_CHECK_ALL};
 *   kiln_cpu_configure(&cpu);
 *   kiln_runtime_opts opts = {.driver = kiln_cpu_driver()};
 *   kiln_runtime_create(&rt, &opts);
 *
 * After that, all calls work as with a GPU. There is one CPU driver per
 * process: all runtimes that use its table share the contexts, the memory and
 * the settings. The CPU device does not replace a GPU. It is 3 to 4 orders of
 * magnitude slower, and its memory model is stricter. */
#ifndef KILN_CPU_H
#define KILN_CPU_H

#include <kiln/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How the CPU device schedules the lanes of a warp. */
typedef enum kiln_cpu_schedule {
  KILN_CPU_BY_ARCH = 0, /**< lock-step below compute capability 7.0, independent
                             thread scheduling from 7.0 on */
  KILN_CPU_INDEPENDENT, /**< independent thread scheduling: lanes are grouped by
                             program counter, and every group makes progress */
  KILN_CPU_LOCK_STEP    /**< lock-step: one stack of lane masks per warp, as on
                             GPUs before Volta */
} kiln_cpu_schedule;

/** The checks that the CPU device can perform. They are bit flags and can be
 * combined with |. */
enum {
  /** Report memory that is still allocated when a context is destroyed.
   * Accesses that are out of bounds, misaligned or after free are always
   * reported, even without this check. */
  KILN_CPU_CHECK_MEMORY = 1,
  /** Report conflicting memory accesses of different threads that no
   * synchronisation orders (races). Bulk copies and the reads of wgmma count as
   * threads of their own, which need fence.proxy.async to see the writes of
   * other threads. */
  KILN_CPU_CHECK_RACE = 2,
  KILN_CPU_CHECK_INIT = 4, /**< report reads of memory that was never written */
  /** Report barriers that only some threads of a block reach, wrong lane masks,
   * mbarriers with more arrivals or bytes than they can count, and accesses to
   * the shared memory of a block of the cluster that has exited. */
  KILN_CPU_CHECK_SYNC = 8,
  KILN_CPU_CHECK_ALL = 15
};

/** Value of kiln_cpu_opts.threads that chooses the number per launch. All
 * processors of the process are used if the grid has at least 8,192 threads,
 * there are no checks, no seed and no budget, and the kernel contains none of the
 * following: atomic operations outside shared memory whose results are used or
 * that do not commute (floating-point sums, exch, cas, inc, dec); volatile,
 * relaxed or acquire loads outside shared memory; reductions by bulk copies;
 * clocks; printf, malloc and free; indirect calls; grid-wide synchronisation.
 * Results then depend on the order of blocks only in programs with data races. */
enum { KILN_CPU_THREADS_AUTO = 0x7fffffff };

/** Options of the CPU device. Initialise the struct with {0}; zero means
 * "default" in each member. */
typedef struct kiln_cpu_opts {
  /** Compute capability that the CPU device models, at least 30; 90 means
   * 9.0. Default: the newest one for which every shipped kernel runs. */
  int arch;
  int devices; /**< number of simulated devices; default 1, at most 16 */
  kiln_cpu_schedule schedule; /**< how lanes are scheduled; default: as GPUs of
                                   this compute capability do */
  /** Number of host threads that run blocks. Default 1, which makes all runs
   * identical. KILN_CPU_THREADS_AUTO uses all processors for kernels whose
   * results cannot depend on the order of their blocks, and otherwise one. */
  unsigned threads;
  /** Seed for random scheduling: a value other than 0 randomises the
   * order of resident blocks, warps, groups of lanes and atomics. */
  uint64_t seed;
  unsigned checks; /**< checks to perform, as a combination of KILN_CPU_CHECK_*
                        flags; default: none */
  bool counters;   /**< count instructions and memory traffic in every launch */
  /** Largest number of warp instructions per launch; a launch that exceeds it
   * fails with CUDA_ERROR_LAUNCH_TIMEOUT. Default: no limit. */
  uint64_t budget;
  uint64_t memory_bytes; /**< memory of each simulated device in bytes; default:
                              8 GiB */
  /** Instruction set of the host: "base", "x86-64-v3" or "x86-64-v4"; default:
   * the best that this processor supports. */
  const char *isa;
} kiln_cpu_opts;

/**
 * Sets the options of the CPU device for all subsequent calls. Strings are
 * copied.
 *
 * @param opts  options; NULL selects all defaults. Borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL (arch or isa is unknown), KILN_EUNSUPPORTED (a
 *         context exists, so arch, devices, memory_bytes and isa cannot change;
 *         the other options apply from the next launch).
 * Thread-safe. Never blocks.
 */
KILN_INLINE kiln_status kiln_cpu_configure(const kiln_cpu_opts *opts);

/** Returns the error record of the last failing call of this library in the
 * calling thread. The shared library kiln_cpu has a separate record; if
 * kiln_cpu is linked statically, the record is that of kiln_last_error(). The
 * result is never NULL. It is borrowed, and valid until the next failing call
 * in the same thread.
 * Thread-safe. Never blocks. */
KILN_API const kiln_error *kiln_cpu_last_error(void);

/** Parses options of the CPU device from a string such as "cpu", "cpu:9.0",
 * "cpu:devices=2" or
 * "cpu:6.1,threads=2,seed=7,
 * check=mem+race,counters,budget=1000000,schedule=lock-step,devices=2".
 * @param[out] out  the options; filled on success.
 * @param text      string to parse, NUL-terminated.
 * @retval KILN_OK, KILN_EINVAL (the error record quotes the invalid part of the
 *         string).
 * Thread-safe. Never blocks. */
KILN_INLINE kiln_status kiln_cpu_parse(kiln_cpu_opts *out, const char *text);

/** Returns the driver table of the CPU device, for kiln_runtime_opts.driver.
 * The table is static and never NULL.
 * Thread-safe. Never blocks. */
KILN_API const kiln_driver *kiln_cpu_driver(void);

/** A finding of a check. The strings are borrowed for the call. */
typedef struct kiln_cpu_finding {
  unsigned check; /**< the check that found the problem, one of
                       KILN_CPU_CHECK_* */
  /** Kind of problem: "out of bounds", "misaligned", "use after free", "no access",
   * "leak", "race", "uninitialised read", "divergent barrier", "wrong mask" or
   * "deadlock". */
  const char *kind;
  const char *kernel; /**< name of the kernel in which the problem occurred; ""
                           for leaks */
  const char *function; /**< name of the function that contains the
                             instruction */
  const char *file;  /**< source file, from the .loc directives that -lineinfo
                          creates; "" if unknown */
  unsigned line;     /**< line in the source file; 0 if unknown */
  unsigned ptx_line; /**< line of the instruction in the PTX source */
  const char *insn;  /**< opcode of the PTX instruction */
  /** Indices (x, y, z) of the block in its grid, and of the thread in its block.
   * For a leak they are 0. */
  unsigned block[3], thread[3];
  const char *space; /**< state space of the access: "global", "shared",
                          "local", ... */
  uint64_t address;  /**< device address of the access, or its offset in shared
                          memory */
  /** Size of the access in bytes; for leaks the size of the leaked memory
   * (the largest unsigned value if the memory is larger). */
  unsigned bytes;
  /** Address and size of the allocation that the kernel probably meant to
   * access; 0 if no allocation is near. */
  uint64_t allocation, allocation_size;
  /** The thread and line of the other access in a race, e.g. "thread (3,0,0),
   * line 12"; "" for other findings. */
  const char *other;
  uint64_t count;   /**< number of times that the problem occurred at this
                         instruction */
  const char *text; /**< human-readable description of the finding, with
                         advice */
  /** The line of the kernel or function whose chain of inlined calls leads to
   * `file` and `line`; the same as these if the instruction was not inlined. */
  const char *outer_file;
  unsigned outer_line;
} kiln_cpu_finding;

/** Callback that receives one finding of the CPU device's checks. The finding
 * is borrowed for the call. */
typedef void (*kiln_cpu_finding_fn)(void *user,
                                    const kiln_cpu_finding *finding);

/** Sets the callback that receives findings from now on.
 * @param fn    callback, called from any thread. NULL means that findings are
 *              kept until kiln_cpu_take_findings().
 * @param user  pointer that is passed to fn.
 * @retval KILN_OK, KILN_ENOMEM.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_cpu_on_finding(kiln_cpu_finding_fn fn, void *user);
/** Reports all findings that were kept so far, and then discards them.
 * @param fn    callback, called once per finding, in the calling thread. NULL
 *              means that findings are only discarded.
 * @param user  pointer that is passed to fn.
 * @retval KILN_OK, KILN_ENOMEM.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_cpu_take_findings(kiln_cpu_finding_fn fn, void *user);

/** Returns the number of launches that ran with at least one check since the
 * process started, so that a report can say "0 findings in 12 launches".
 * Thread-safe. Never blocks. */
KILN_API uint64_t kiln_cpu_checked_launches(void);

/** The number of instruction classes that the counters distinguish. */
enum { KILN_CPU_N_CLASSES = 30 };

/** Returns the name of an instruction class, such as "fp32", or NULL for
 * KILN_CPU_N_CLASSES and above. The string is static.
 * Thread-safe. Never blocks. */
KILN_API const char *kiln_cpu_class_name(unsigned klass);

/** Counters of the CPU device, either of one kernel over all its launches, or
 * of one source line of a kernel. */
typedef struct kiln_cpu_counters {
  const char *kernel; /**< name of the counted kernel; borrowed for the call */
  const char *file;   /**< source file of the line; "" in the counters of a
                           whole kernel */
  unsigned line;      /**< number of the source line; 0 in the counters of a
                           whole kernel */
  uint64_t launches;  /**< number of launches; 0 in the counters of a source
                           line */
  /** Numbers of executed instructions, counted once per warp and once per
   * active thread. */
  uint64_t warp_insns, thread_insns;
  /** Number of instructions per instruction class, counted once per warp. */
  uint64_t warp_class[KILN_CPU_N_CLASSES];
  /** Number of instructions per instruction class, counted once per active
   * thread. */
  uint64_t thread_class[KILN_CPU_N_CLASSES];
  /** Number of branch instructions, counted per warp, and number of those at
   * which the lanes diverged. */
  uint64_t branches, divergent_branches;
  /** Numbers of accesses to global memory per warp (requests), and of the
   * 32-byte sectors that these accesses touch, for loads and for stores. */
  uint64_t global_load_requests, global_load_sectors;
  uint64_t global_store_requests, global_store_sectors;
  /** Numbers of accesses to shared memory per warp (requests), and of the
   * passes that these accesses take. The difference passes - requests is the
   * number of bank conflicts. */
  uint64_t shared_load_requests, shared_load_passes;
  uint64_t shared_store_requests, shared_store_passes;
  /** The same numbers for local memory. */
  uint64_t local_load_requests, local_load_sectors;
  uint64_t local_store_requests, local_store_sectors;
  /** Number of atomic instructions, counted per warp, and number of lanes that
   * accessed the same word as another lane of their warp. */
  uint64_t atomics, atomic_conflicts;
  uint64_t barriers; /**< number of times that a warp arrived at a barrier */
  /** Numbers of bulk copies into shared memory and out of it, and the bytes of
   * shared memory that they move. A multicast counts once. */
  uint64_t bulk_load_requests, bulk_load_bytes;
  uint64_t bulk_store_requests, bulk_store_bytes;
  /** Number of matrix instructions (mma, wmma and wgmma), counted per warp, and
   * number of their multiply-adds, summed over all lanes. A sparse instruction
   * counts the products of stored elements. */
  uint64_t tensor_insns, tensor_products;
} kiln_cpu_counters;

/** Callback that receives the counters of one kernel or source line, which are
 * borrowed for the call. */
typedef void (*kiln_cpu_line_fn)(void *user, const kiln_cpu_counters *line);

/** Reports the counters of all kernels, one after another.
 * @param kernels  callback; called once per kernel with its sums, in the
 *                 calling thread.
 * @param lines    callback; called once per source line of each kernel; may be
 *                 NULL.
 * @param user     pointer that is passed to both callbacks.
 * @retval KILN_OK, KILN_ENOMEM.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_cpu_each_counters(kiln_cpu_line_fn kernels,
                                            kiln_cpu_line_fn lines, void *user);
/** Reports the counters of the outermost source lines: what the code of a device
 * function that was inlined did belongs to the line of the kernel whose call led
 * to it, not to the line where it stands. A function that the compiler did not
 * inline has its own outermost lines. The sum over all lines equals that of
 * kiln_cpu_each_counters().
 * @param lines    callback; called once per outermost line of each kernel, in the
 *                 calling thread; may be NULL.
 * @param user     pointer that is passed to the callback.
 * @retval KILN_OK, KILN_ENOMEM.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_cpu_each_outer_counters(kiln_cpu_line_fn lines,
                                                  void *user);
/** Sets all counters to 0.
 * @retval KILN_OK, KILN_ENOMEM.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_cpu_reset_counters(void);

/** Copies the description of the last failed launch: kernel, source line,
 * thread, address, and advice. The string is empty if no launch failed.
 * @param buf   receives the description, NUL-terminated and cut to size.
 * @param size  size of buf in bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_cpu_last_fault(char *buf, size_t size);

/** Callback that receives the output of device printf in whole lines. It may be
 * called from any thread. */
typedef void (*kiln_cpu_print_fn)(void *user, const char *text, size_t size);
/** Sets the callback that receives the output of device printf from now on.
 * @param fn    callback; NULL selects standard output, as with a GPU driver.
 * @param user  pointer that is passed to fn.
 * @retval KILN_OK, KILN_ENOMEM.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_cpu_on_print(kiln_cpu_print_fn fn, void *user);

/** Kinds of work that the CPU device reports to an observer. */
typedef enum kiln_cpu_activity_kind {
  KILN_CPU_WORK_KERNEL = 1, /**< a kernel */
  KILN_CPU_WORK_COPY,       /**< a copy */
  KILN_CPU_WORK_FILL,       /**< a fill of memory with a value */
  KILN_CPU_WORK_HOST,       /**< a function of the program in a stream */
  KILN_CPU_WORK_OTHER /**< an operation on memory, such as an allocation in
                                 a stream or a wait for a value */
} kiln_cpu_activity_kind;

/** Places that a copy reads or writes. */
typedef enum kiln_cpu_place {
  KILN_CPU_PLACE_UNKNOWN = 0,
  KILN_CPU_PLACE_HOST,   /**< pageable or page-locked memory of the host */
  KILN_CPU_PLACE_DEVICE, /**< device memory */
  KILN_CPU_PLACE_ARRAY,  /**< an array for textures and surfaces */
  KILN_CPU_PLACE_MANAGED /**< managed memory */
} kiln_cpu_place;

/** Work that a stream of the CPU device has executed: one activity. Times are those of
 * CLOCK_MONOTONIC on the host. */
typedef struct kiln_cpu_activity {
  kiln_cpu_activity_kind kind; /**< the kind of work */
  uint64_t begin_ns; /**< time in nanoseconds at which the work began */
  uint64_t end_ns;   /**< time in nanoseconds at which the work ended */
  uint64_t call;     /**< number of the call that issued the work, as in
                      kiln_cpu_call.number; 0 if no call was observed */
  int device;        /**< ordinal of the device */
  uint64_t context;  /**< number of the context */
  uint64_t stream; /**< number of the stream; 0 for the legacy default stream */
  int result;      /**< CUresult of the work; 0 means success */
  bool in_graph;   /**< true if a launched graph contains the work */
  const char *name; /**< linkage name of the kernel; "" for other work */
  unsigned grid[3], block[3]; /**< dimensions of a kernel; otherwise 0 */
  /** Shared memory per block in bytes and registers per thread (estimated) of a
   * kernel; otherwise 0. */
  unsigned static_shared, dynamic_shared, registers;
  uint64_t bytes;          /**< size of a copy or fill in bytes; otherwise 0 */
  kiln_cpu_place from, to; /**< source and destination of a copy; `to` also of a
                                fill */
} kiln_cpu_activity;

/** A call of a driver function that has returned. Only the drop-in
 * libcuda.so.1 of `kiln exec` reports calls. */
typedef struct kiln_cpu_call {
  const char *function; /**< exported symbol of the function; static */
  uint64_t begin_ns;    /**< time of the call in nanoseconds */
  uint64_t end_ns;      /**< time of the return in nanoseconds */
  uint64_t number;      /**< number of the call in the process, from 1 on */
  int result;           /**< CUresult that the function returned */
} kiln_cpu_call;

/** Callback that receives executed work, which is borrowed for the call. */
typedef void (*kiln_cpu_activity_fn)(void *user, const kiln_cpu_activity *work);
/** Callback that receives a call, in the thread that made the call. */
typedef void (*kiln_cpu_call_fn)(void *user, const kiln_cpu_call *call);

/** Sets the callbacks that receive all work that streams execute from now on,
 * and all calls. The callbacks run in any thread, and must not call the driver.
 * A callback may still run once when the function returns.
 * @param work  callback for executed work; NULL means that none is reported.
 * @param call  callback for calls; NULL means that none is reported.
 * @param user  pointer that is passed to both callbacks; must stay valid until
 *              the process ends.
 * @retval KILN_OK.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_cpu_observe(kiln_cpu_activity_fn work,
                                      kiln_cpu_call_fn call, void *user);

/** Records that the program called a function that a library on top of the
 * driver does not implement, such as a function of the CUDA runtime. The report
 * of `kiln exec` has one line per name, with the number of calls.
 * @param name    name of the function, NUL-terminated; copied. NULL is ignored.
 * @param advice  what the user can do, as a sentence without its full stop;
 *                copied. NULL means that there is no advice.
 * Thread-safe. Never blocks. */
KILN_API void kiln_cpu_note_missing(const char *name, const char *advice);

/** Writes the readable form of a kernel's linkage name: "ns::copy<float, 4>"
 * for "_ZN2ns4copyIfLi4EEEvPT_". Parameter types are left out. Template arguments
 * that use unsupported parts of the grammar become "...". Other names, and names
 * that use such parts elsewhere, are copied unchanged.
 * @param name  name to convert, NUL-terminated.
 * @param buf   receives the name, NUL-terminated and cut to size.
 * @param size  size of buf in bytes; at least 1.
 * @return buf
 * Thread-safe. Never blocks. */
KILN_API const char *kiln_cpu_readable_name(const char *name, char *buf,
                                            size_t size);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

KILN__SIZED(kiln_cpu_configure, (const kiln_cpu_opts *opts), (size_t opts_size),
            (opts, sizeof *opts))
KILN__SIZED(kiln_cpu_parse, (kiln_cpu_opts * out, const char *text),
            (size_t out_size), (out, text, sizeof *out))

#ifdef __cplusplus
}
#endif
#endif
