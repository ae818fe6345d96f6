/* runtime.h -- the root object: allocator, log, driver, compilers, cache.
 *
 * A runtime finds the driver and NVRTC when they are first needed. Creating one
 * touches neither, so it works on a machine that has neither. A process may
 * hold several runtimes.
 *
 * A runtime reads these environment variables, unless opts.ignore_env is set or
 * the process runs with raised privileges:
 *   KILN_DRIVER      path of libcuda.so.1; a path that fails is an error
 *   KILN_NVRTC       path of libnvrtc; a path that fails is an error
 *   KILN_NVJITLINK   path of libnvJitLink
 *   KILN_CACHE_DIR   cache folder; "off" switches the disk cache off
 *   KILN_CACHE_SIZE  byte cap of the cache, with K, M or G
 *   KILN_PACKS       ':'-separated pack files
 *   XDG_CACHE_HOME, HOME, CUDA_PATH, CUDA_HOME, VIRTUAL_ENV, CONDA_PREFIX */
#ifndef KILN_RUNTIME_H
#define KILN_RUNTIME_H

#include <kiln/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The caller's host memory. Set all three functions or none. Kiln may call
 * them from any thread, including its compile threads. */
typedef struct kiln_allocator {
  void *(*alloc)(void *user, size_t size);           /**< size > 0 */
  void *(*resize)(void *user, void *p, size_t size); /**< p may be NULL */
  void (*release)(void *user, void *p);              /**< p may be NULL */
  void *user; /**< passed to each function as it is */
} kiln_allocator;

/** How serious a log line is. */
typedef enum kiln_log_level {
  KILN_LOG_ERROR = 0, /**< a call failed */
  KILN_LOG_WARNING,   /**< Kiln continued with less, e.g. without the cache */
  KILN_LOG_INFO,      /**< compiled, loaded, found */
  KILN_LOG_DEBUG      /**< each place that a search looked at */
} kiln_log_level;

/** Receives one log line without its newline. Kiln calls it from any thread and
 * holds no lock meanwhile, so it may call Kiln. `text` is borrowed for the
 * call. */
typedef void (*kiln_log_fn)(void *user, kiln_log_level level, const char *text);

/** Options of a runtime. Start from {0}: zero means "default" in each member.
 * Kiln copies the strings. */
typedef struct kiln_runtime_opts {
  kiln_allocator allocator;      /**< default: malloc */
  kiln_log_fn log;               /**< default: none; Kiln itself never prints */
  void *log_user;                /**< passed to log */
  kiln_log_level log_level;      /**< lines above this level are dropped */
  const char *driver_path;       /**< the only libcuda to try */
  const kiln_driver *driver;     /**< driver to use instead of libcuda, e.g.
                                    kiln_cpu_driver(); must outlive the runtime */
  const char *nvrtc_path;        /**< the only libnvrtc to try */
  const char *const *nvrtc_dirs; /**< folders searched before the system's */
  size_t n_nvrtc_dirs;           /**< entries of nvrtc_dirs */
  const char *nvjitlink_path;    /**< the only libnvJitLink to try */
  const char *cache_dir;         /**< cache folder, created if missing */
  uint64_t cache_bytes;          /**< byte cap on disk; default 256 MiB */
  bool cache_off;                /**< no disk cache; memory cache stays */
  const char *const *packs; /**< pack files. An image for exactly the wanted
                                    target is taken before the disk cache, one
                                    for a lower target after the compiler */
  size_t n_packs;           /**< entries of packs */
  unsigned compile_threads; /**< compiles at once; default: the number of
                                    cores, 8 at most (each takes 100 MB) */
  unsigned flight_wait_ms;  /**< longest wait in milliseconds for another
                                    process that compiles the same key; default
                                    20,000 */
  bool ignore_env;          /**< read no environment variable */
} kiln_runtime_opts;

/**
 * Creates a runtime.
 *
 * @param[out] out  yours, free with kiln_runtime_free(); NULL on failure.
 * @param opts      NULL for all defaults; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL (half an allocator, an empty path), KILN_ENOMEM.
 * Threads: any. Blocks: never; the call touches no driver, compiler or disk.
 */
KILN_INLINE kiln_status kiln_runtime_create(kiln_runtime **out,
                                            const kiln_runtime_opts *opts);

/**
 * Frees a runtime. Free everything that was made from it before.
 *
 * Loaded CUDA libraries stay loaded until the process ends, since unloading
 * them while one of their threads runs is not safe.
 *
 * @param rt  NULL is allowed.
 * Threads: no other thread may use the runtime. Blocks: until compiles that are
 * still running have ended.
 */
KILN_API void kiln_runtime_free(kiln_runtime *rt);

/** Which driver was found. */
typedef struct kiln_driver_info {
  int version;    /**< cuDriverGetVersion: 12020 = 12.2 */
  char path[512]; /**< file that was loaded */
  int n_devices;  /**< GPUs visible to this process */
  bool ptx_only;  /**< it loads PTX but no machine code: the CPU device */
} kiln_driver_info;

/**
 * Describes the driver; loads and initialises it on the first call.
 *
 * @param[out] out  filled on success, zeroed on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER (the record lists every place
 *         that was tried), KILN_ENODEVICE (a driver without a GPU),
 *         KILN_EDRIVER, KILN_EFORKED.
 * Threads: any. Blocks: in the first call, for about 0.1 s in cuInit.
 */
KILN_INLINE kiln_status kiln_runtime_driver(kiln_runtime *rt,
                                            kiln_driver_info *out);

/** One NVRTC library. */
typedef struct kiln_nvrtc_info {
  int version;    /**< 13000 = 13.0, 11080 = 11.8 */
  char path[512]; /**< file */
  int archs[64];  /**< supported architectures, ascending: 75, 80, ... 121 */
  size_t n_archs; /**< entries of archs */
  bool loaded;    /**< this runtime has mapped it into the process */
} kiln_nvrtc_info;

/**
 * Describes the NVRTC libraries that were found, newest first.
 *
 * A note beside the cache describes libraries that Kiln has seen before, so
 * these need not be loaded. A library's path, size and modification time must
 * match its note.
 *
 * @param out       array of `capacity` entries; may be NULL if capacity is 0.
 * @param capacity  entries that fit in out.
 * @param[out] n    number of libraries found; may be above capacity.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENONVRTC, KILN_ENOMEM.
 * Threads: any. Blocks: on files, and while it loads libraries without a note.
 */
KILN_INLINE kiln_status kiln_runtime_nvrtc(kiln_runtime *rt,
                                           kiln_nvrtc_info *out,
                                           size_t capacity, size_t *n);

/** One place that a search looked at. */
typedef struct kiln_trail_step {
  const char *what;   /**< "libcuda", "libnvrtc", "libnvJitLink" */
  const char *how;    /**< "environment KILN_NVRTC", "system loader", ... */
  const char *where;  /**< path or soname */
  bool found;         /**< it was used */
  const char *reason; /**< why it was not used */
} kiln_trail_step;

/** Receives one step; borrowed for the call. */
typedef void (*kiln_trail_fn)(void *user, const kiln_trail_step *step);

/**
 * Reports every place that searches for CUDA libraries have looked at so far,
 * in order.
 *
 * @param fn    called once per step, in the calling thread.
 * @param user  passed to fn.
 * @retval KILN_OK, KILN_EINVAL.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_runtime_trail(kiln_runtime *rt, kiln_trail_fn fn,
                                        void *user);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

KILN__SIZED(kiln_runtime_create,
            (kiln_runtime * *out, const kiln_runtime_opts *opts),
            (size_t opts_size), (out, opts, sizeof *opts))
KILN__SIZED(kiln_runtime_driver, (kiln_runtime * rt, kiln_driver_info *out),
            (size_t out_size), (rt, out, sizeof *out))
KILN__SIZED(kiln_runtime_nvrtc,
            (kiln_runtime * rt, kiln_nvrtc_info *out, size_t capacity,
             size_t *n),
            (size_t out_size), (rt, out, capacity, n, sizeof *out))

#ifdef __cplusplus
}
#endif
#endif
