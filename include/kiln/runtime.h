/* runtime.h -- the root object: allocator, log, driver, compilers and cache.
 *
 * A runtime loads the driver and NVRTC when they are first needed.
 * kiln_runtime_create() loads neither, so it also succeeds on a machine that
 * has neither. A process may create several runtimes.
 *
 * A runtime reads these environment variables, unless opts.ignore_env is set or
 * the process runs with raised privileges:
 *   KILN_DRIVER      path of libcuda.so.1; it is an error if loading fails
 *   KILN_NVRTC       path of libnvrtc; it is an error if loading fails
 *   KILN_NVJITLINK   path of libnvJitLink
 *   KILN_NVDISASM    path of nvdisasm; see kiln_disassembler()
 *   KILN_CACHE_DIR   cache folder; "off" disables the disk cache
 *   KILN_CACHE_SIZE  size limit of the cache in bytes, or with suffix K, M or G
 *   KILN_LINK        "off": operations compile every program as a whole.
 *                    "always": operations link user expressions to compiled
 *                    kernels wherever the results are the same, which makes
 *                    first calls short (30 ms) and calls on many elements up to
 *                    3.3 times as long. Default: maps, and operations on few
 *                    elements, which lose at most 1.5 us per call
 *   KILN_PACKS       pack files, separated by ':'
 *   XDG_CACHE_HOME, HOME, PATH, CUDA_PATH, CUDA_HOME, VIRTUAL_ENV,
 *   CONDA_PREFIX */
#ifndef KILN_RUNTIME_H
#define KILN_RUNTIME_H

#include <kiln/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An allocator for host memory that the caller provides. Set all three
 * functions or none of them. Kiln may call the functions from any thread,
 * including its compile threads. */
typedef struct kiln_allocator {
  /** Allocates `size` bytes, size > 0. */
  void *(*alloc)(void *user, size_t size);
  /** Resizes a block of memory; p may be NULL. */
  void *(*resize)(void *user, void *p, size_t size);
  void (*release)(void *user, void *p); /**< frees a block of memory; p may be
                                             NULL */
  void *user; /**< pointer that is passed to each function of the allocator
                   unchanged */
} kiln_allocator;

/** Severity of a log message. */
typedef enum kiln_log_level {
  KILN_LOG_ERROR = 0, /**< message about a call that failed */
  KILN_LOG_WARNING,   /**< message that Kiln continued without a feature, e.g.
                           without the cache */
  KILN_LOG_INFO,      /**< message that a program was compiled or loaded, or a
                           library was found */
  KILN_LOG_DEBUG      /**< message that a search for a library tried a path */
} kiln_log_level;

/** Callback that receives one log message without a newline at its end. Kiln
 * calls it from any thread and holds no lock meanwhile, so the callback may
 * call Kiln. `text` is borrowed for the call. */
typedef void (*kiln_log_fn)(void *user, kiln_log_level level, const char *text);

/** Options of a runtime. Initialise the struct with {0}; zero means "default"
 * in each member. Kiln copies the strings. */
typedef struct kiln_runtime_opts {
  kiln_allocator allocator; /**< allocator for host memory; default: malloc */
  kiln_log_fn log; /**< callback that receives log messages; default: none. Kiln
                        itself never prints */
  void *log_user;  /**< pointer that is passed to the log callback */
  kiln_log_level log_level; /**< highest log level; messages above it are
                                 dropped */
  const char *driver_path;  /**< path of libcuda; if given, Kiln tries no other
                                 path */
  /** Driver to use instead of libcuda, e.g. kiln_cpu_driver(); must outlive
   * the runtime. */
  const kiln_driver *driver;
  const char *nvrtc_path;        /**< path of libnvrtc; if given, Kiln tries no
                                      other path */
  const char *const *nvrtc_dirs; /**< folders that are searched for NVRTC before
                                      the system's folders */
  size_t n_nvrtc_dirs;           /**< number of folders in nvrtc_dirs */
  const char *nvjitlink_path;    /**< path of libnvJitLink; if given, Kiln tries
                                      no other path */
  const char *cache_dir; /**< cache folder; created if it does not exist */
  uint64_t cache_bytes; /**< size limit of the disk cache in bytes; default: 256
                             MiB */
  bool cache_off;       /**< whether to disable the disk cache; the memory cache
                             remains enabled */
  /** Paths of pack files. An image for exactly the wanted target takes
   * precedence over the disk cache. An image for a lower target is used only if
   * the compiler provides nothing better. */
  const char *const *packs;
  size_t n_packs; /**< number of pack files */
  /** Number of concurrent compilations. Default: the number of cores, at most
   * 8, because each compilation takes 100 MB of memory. */
  unsigned compile_threads;
  /** Longest time in milliseconds to wait for another process that compiles the
   * same program; default: 20,000. */
  unsigned flight_wait_ms;
  bool ignore_env; /**< whether to ignore all environment variables */
} kiln_runtime_opts;

/**
 * Creates a runtime.
 *
 * @param[out] out  the runtime; the caller frees it with kiln_runtime_free().
 *                  NULL on failure.
 * @param opts      options; NULL selects all defaults. Borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL (the allocator is incomplete, or a path is
 *         empty), KILN_ENOMEM.
 * Thread-safe. Never blocks, because the call accesses neither driver, compiler
 * nor disk.
 */
KILN_INLINE kiln_status kiln_runtime_create(kiln_runtime **out,
                                            const kiln_runtime_opts *opts);

/**
 * Frees a runtime. All objects that were created from the runtime must be freed
 * first.
 *
 * CUDA libraries that Kiln has loaded stay loaded until the process ends,
 * because unloading a library while one of its threads runs is not safe.
 *
 * @param rt  the runtime; NULL is allowed.
 * Not thread-safe: no other thread may use the runtime. Blocks until running
 * compilations have ended.
 */
KILN_API void kiln_runtime_free(kiln_runtime *rt);

/** Description of the CUDA driver that Kiln found. */
typedef struct kiln_driver_info {
  int version; /**< version of the driver as returned by cuDriverGetVersion();
                    12020 means 12.2 */
  char path[512]; /**< path of the loaded driver library */
  int n_devices;  /**< number of GPUs visible to this process */
  bool ptx_only;  /**< the driver loads PTX but no machine code, like the CPU
                       device */
} kiln_driver_info;

/**
 * Describes the driver. The first call loads and initialises the driver.
 *
 * @param[out] out  the description; filled on success, zeroed on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER (the error record lists every
 *         path that was tried), KILN_ENODEVICE (the driver found no GPU),
 *         KILN_EDRIVER, KILN_EFORKED.
 * Thread-safe. The first call blocks in cuInit for about 0.1 s.
 */
KILN_INLINE kiln_status kiln_runtime_driver(kiln_runtime *rt,
                                            kiln_driver_info *out);

/** Description of one NVRTC library. */
typedef struct kiln_nvrtc_info {
  int version; /**< version of the NVRTC library; 13000 means 13.0, 11080 means
                    11.8 */
  char path[512]; /**< path of the NVRTC library */
  int archs[64];  /**< compute capabilities that the library supports, in
                       ascending order: 75, 80, ... 121 */
  size_t n_archs; /**< number of entries in archs */
  bool loaded;    /**< whether this runtime has loaded the library into the
                       process */
} kiln_nvrtc_info;

/**
 * Describes the NVRTC libraries that Kiln found, newest version first.
 *
 * A file in the cache folder describes libraries that Kiln has loaded before,
 * so these libraries need not be loaded again. The description is used only if
 * the path, size and modification time of the library match.
 *
 * @param out       array that receives the descriptions; may be NULL if
 *                  capacity is 0.
 * @param capacity  number of entries that fit in out.
 * @param[out] n    receives the number of libraries found, which may exceed
 *                  capacity.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENONVRTC, KILN_ENOMEM.
 * Thread-safe. Blocks while it accesses files and while it loads libraries that
 * are not yet described.
 */
KILN_INLINE kiln_status kiln_runtime_nvrtc(kiln_runtime *rt,
                                           kiln_nvrtc_info *out,
                                           size_t capacity, size_t *n);

/** One path that Kiln tried in a search for a CUDA library. */
typedef struct kiln_trail_step {
  const char *what;  /**< name of the library: "libcuda", "libnvrtc" or
                          "libnvJitLink" */
  const char *how;   /**< where the path came from: "environment KILN_NVRTC",
                          "system loader", ... */
  const char *where; /**< path or soname that was tried */
  bool found; /**< whether the library was found at this path and is used */
  const char *reason; /**< why the library at this path was not used */
} kiln_trail_step;

/** Callback that receives one step of a search for a library: a path that was
 * tried. The step is borrowed for the call. */
typedef void (*kiln_trail_fn)(void *user, const kiln_trail_step *step);

/**
 * Reports every path that Kiln has tried so far in its searches for CUDA
 * libraries, in order.
 *
 * @param fn    callback; called once per path, in the calling thread.
 * @param user  pointer that is passed to fn.
 * @retval KILN_OK, KILN_EINVAL.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_runtime_trail(kiln_runtime *rt, kiln_trail_fn fn,
                                        void *user);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

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
