/* cpu.h -- the CPU device: kernels run by an interpreter of their PTX.
 *
 * It is for tests and study where there is no GPU, and for inspection where there is
 * one: checks of memory, races, initialisation and synchronisation, and counters of
 * divergence, coalescing and bank conflicts. It is a library of its own (kiln_cpu),
 * which Kiln itself does not need:
 *
 *   kiln_cpu_opts cpu = {.arch = 90, .checks = KILN_CPU_CHECK_ALL};
 *   kiln_cpu_configure(&cpu);
 *   kiln_runtime_opts opts = {.driver = kiln_cpu_driver()};
 *   kiln_runtime_create(&rt, &opts);
 *
 * From then on everything is as with a GPU. As there is one driver per process, there
 * is one CPU device per process: everything that uses the table shares its contexts,
 * memory and settings. It does not replace a GPU: it is 3 to 4 orders of magnitude
 * slower, and its memory model is stricter than a GPU's. */
#ifndef KILN_CPU_H
#define KILN_CPU_H

#include <kiln/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How the lanes of a warp are scheduled. */
typedef enum kiln_cpu_schedule {
  KILN_CPU_BY_ARCH = 0, /**< lock-step below 7.0, independent from there on */
  KILN_CPU_INDEPENDENT, /**< groups of lanes by program counter; every group makes
                           progress */
  KILN_CPU_LOCK_STEP    /**< one stack of masks, as before Volta */
} kiln_cpu_schedule;

/** Checks; combine them with |. */
enum {
  KILN_CPU_CHECK_MEMORY =
      1, /**< leaks when a context is destroyed, in addition to
                                what is always found: accesses out of bounds,
                                misaligned, or after free */
  KILN_CPU_CHECK_RACE = 2, /**< conflicting accesses that nothing orders */
  KILN_CPU_CHECK_INIT = 4, /**< reads of memory that was never written */
  KILN_CPU_CHECK_SYNC = 8, /**< divergent barriers, wrong masks */
  KILN_CPU_CHECK_ALL = 15
};

/** Options of the CPU device. Start from {0}: zero means "default" in each member. */
typedef struct kiln_cpu_opts {
  int arch;    /**< compute capability to model, 90 = 9.0, from 30;
                                 default: the newest for which every shipped
                                 kernel runs */
  int devices; /**< number of devices; default 1, at most 16 */
  kiln_cpu_schedule schedule; /**< default: by arch */
  unsigned threads;      /**< host threads that run blocks; default 1, which
                                 makes every run the same */
  uint64_t seed;         /**< other than 0: permutes the order of blocks
                                 (among those resident together), warps,
                                 groups of lanes and atomics */
  unsigned checks;       /**< KILN_CPU_CHECK_*; default none */
  bool counters;         /**< keep counters of every launch */
  uint64_t budget;       /**< most warp instructions of one launch; beyond:
                                 CUDA_ERROR_LAUNCH_TIMEOUT; default none */
  uint64_t memory_bytes; /**< bytes per device; default 8 GiB */
  const char *isa;       /**< "base", "x86-64-v3", "x86-64-v4"; default: the
                                 best of this processor */
} kiln_cpu_opts;

/**
 * Sets the options for everything that follows. Strings are copied.
 *
 * @param opts  NULL for all defaults; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL (unknown arch or isa), KILN_EUNSUPPORTED (a context
 *         exists: arch, devices, memory_bytes and isa are fixed then; the other
 *         options apply from the next launch).
 * Threads: any. Blocks: never.
 */
KILN_INLINE kiln_status kiln_cpu_configure(const kiln_cpu_opts *opts);

/** Returns the record of the calling thread's last failure in this library. The shared
 * library kiln_cpu has a record of its own; linked statically it is the record of
 * kiln_last_error(). Never NULL; borrowed until the thread's next failing call.
 * Threads: any. Blocks: never. */
KILN_API const kiln_error *kiln_cpu_last_error(void);

/** Parses settings such as "cpu", "cpu:9.0" or "cpu:6.1,threads=2,seed=7,
 * check=mem+race,counters,budget=1000000,schedule=lock-step,devices=2".
 * @param[out] out  filled on success.
 * @param text      NUL-terminated.
 * @retval KILN_OK, KILN_EINVAL (the record quotes what was not understood).
 * Threads: any. Blocks: never. */
KILN_INLINE kiln_status kiln_cpu_parse(kiln_cpu_opts *out, const char *text);

/** Returns the driver table for kiln_runtime_opts.driver. Static, never NULL. Threads:
 * any. Blocks: never. */
KILN_API const kiln_driver *kiln_cpu_driver(void);

/** A finding of a check. Texts are borrowed for the call. */
typedef struct kiln_cpu_finding {
  unsigned check;       /**< one of KILN_CPU_CHECK_* */
  const char *kind;     /**< "out of bounds", "misaligned", "use after free",
                           "leak", "race", "uninitialised read",
                           "divergent barrier", "wrong mask", "deadlock" */
  const char *kernel;   /**< entry that was launched; "" for leaks */
  const char *function; /**< where it happened */
  const char *file;     /**< source file of .loc, or "" (compile with
                           -lineinfo) */
  unsigned line;        /**< source line, 0 if not known */
  unsigned ptx_line;    /**< line in the PTX text */
  const char *insn;     /**< opcode */
  unsigned block[3], thread[3];
  const char *space; /**< "global", "shared", "local", ... */
  uint64_t address;  /**< device address, or offset in shared memory */
  unsigned bytes;    /**< of the access; leaks: size, saturated */
  uint64_t allocation, allocation_size; /**< the one meant; 0: none near */
  const char *other; /**< the other side of a race: "thread (3,0,0), line
                           12", or "" */
  uint64_t count;    /**< times it happened at this place */
  const char *text;  /**< the whole finding as text for people, with what to
                           look at */
} kiln_cpu_finding;

/** Receives one finding, borrowed for the call. */
typedef void (*kiln_cpu_finding_fn)(void *user,
                                    const kiln_cpu_finding *finding);

/** Sets the function that receives findings from now on.
 * @param fn    called from any thread; NULL: findings are kept until
 *              kiln_cpu_take_findings().
 * @param user  passed to fn.
 * @retval KILN_OK, KILN_ENOMEM. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_cpu_on_finding(kiln_cpu_finding_fn fn, void *user);
/** Reports the findings that were kept so far, and discards them.
 * @param fn    called per finding, in the calling thread; NULL: discard only.
 * @param user  passed to fn.
 * @retval KILN_OK, KILN_ENOMEM. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_cpu_take_findings(kiln_cpu_finding_fn fn, void *user);

/** Number of launches that ran under at least one check since the process
 * started, so that a report can say "0 findings in 12 launches". Any thread;
 * never blocks. */
KILN_API uint64_t kiln_cpu_checked_launches(void);

/** Number of instruction classes that the counters distinguish. */
enum { KILN_CPU_N_CLASSES = 27 };

/** Returns the name of a class of instructions, such as "fp32"; NULL for
 * KILN_CPU_N_CLASSES and above. Static. Threads: any. Blocks: never. */
KILN_API const char *kiln_cpu_class_name(unsigned klass);

/** Counters of one kernel over all its launches, or of one source line. */
typedef struct kiln_cpu_counters {
  const char *kernel;                        /**< borrowed for the call */
  const char *file;                          /**< lines only, else "" */
  unsigned line;                             /**< lines only */
  uint64_t launches;                         /**< 0 for lines */
  uint64_t warp_insns, thread_insns;         /**< executed */
  uint64_t warp_class[KILN_CPU_N_CLASSES];   /**< warp instructions by class */
  uint64_t thread_class[KILN_CPU_N_CLASSES]; /**< thread instructions */
  uint64_t branches, divergent_branches;     /**< of warps */
  uint64_t global_load_requests, global_load_sectors;
  uint64_t global_store_requests, global_store_sectors;
  uint64_t shared_load_requests, shared_load_passes; /**< passes - requests =
                                                          conflicts */
  uint64_t shared_store_requests, shared_store_passes;
  uint64_t local_load_requests, local_load_sectors;
  uint64_t local_store_requests, local_store_sectors;
  uint64_t atomics, atomic_conflicts; /**< warp instructions; lanes that met
                                         another lane's word */
  uint64_t barriers;                  /**< warps' arrivals */
} kiln_cpu_counters;

/** Receives the counters of one kernel or line, borrowed for the call. */
typedef void (*kiln_cpu_line_fn)(void *user, const kiln_cpu_counters *line);

/** Reports the counters, kernel by kernel.
 * @param kernels  called per kernel with its sums, in the calling thread.
 * @param lines    called per source line of each kernel; may be NULL.
 * @param user     passed to both.
 * @retval KILN_OK, KILN_ENOMEM. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_cpu_each_counters(kiln_cpu_line_fn kernels,
                                            kiln_cpu_line_fn lines, void *user);
/** Sets all counters to 0.
 * @retval KILN_OK, KILN_ENOMEM. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_cpu_reset_counters(void);

/** Copies the description of the last launch that failed: kernel, line, thread,
 * address, and what to check. Empty if none failed.
 * @param buf   receives the text, NUL-terminated, cut to size.
 * @param size  bytes of buf.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_cpu_last_fault(char *buf, size_t size);

/** Receives output of device printf, in whole lines, from any thread. */
typedef void (*kiln_cpu_print_fn)(void *user, const char *text, size_t size);
/** Sets the function that receives the output of device printf from now on.
 * @param fn    NULL: standard output, as with the driver.
 * @param user  passed to fn.
 * @retval KILN_OK, KILN_ENOMEM. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_cpu_on_print(kiln_cpu_print_fn fn, void *user);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

KILN__SIZED(kiln_cpu_configure, (const kiln_cpu_opts *opts), (size_t opts_size),
            (opts, sizeof *opts))
KILN__SIZED(kiln_cpu_parse, (kiln_cpu_opts * out, const char *text),
            (size_t out_size), (out, text, sizeof *out))

#ifdef __cplusplus
}
#endif
#endif
