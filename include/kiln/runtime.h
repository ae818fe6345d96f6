/* runtime.h -- the root object: allocator, log, driver, compilers, cache.
 *
 * A runtime finds things lazily: creating one touches neither the driver nor
 * NVRTC, so it also works on a machine that has neither. A process may hold
 * several. Everything made from a runtime must be freed before it.
 *
 * Environment read by a runtime (never when opts.ignore_env is set or the
 * process runs with raised privileges):
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

/** The caller's memory. Either all three functions are set or none. They may
 * be called from any thread, also from compile threads. */
typedef struct kiln_allocator {
  void *(*alloc)(void *user, size_t size);           /**< size > 0 */
  void *(*resize)(void *user, void *p, size_t size); /**< p may be NULL */
  void (*release)(void *user, void *p);              /**< p may be NULL */
  void *user;                                        /**< handed through */
} kiln_allocator;

typedef enum kiln_log_level {
  KILN_LOG_ERROR = 0, /**< a call failed */
  KILN_LOG_WARNING,   /**< Kiln went on with something worse, e.g. uncached */
  KILN_LOG_INFO,      /**< compiled, loaded, found */
  KILN_LOG_DEBUG      /**< each place tried */
} kiln_log_level;

/** Receives one line without newline. Called from any thread, with no lock
 * held, so it may call Kiln; `text` is borrowed for the call. */
typedef void (*kiln_log_fn)(void *user, kiln_log_level level, const char *text);

/** Start from {0}: every zero means "default". Strings are copied. */
typedef struct kiln_runtime_opts {
  kiln_allocator allocator;      /**< default: malloc */
  kiln_log_fn log;               /**< default: none; Kiln itself never prints */
  void *log_user;                /**< handed to log */
  kiln_log_level log_level;      /**< most talkative level wanted */
  const char *driver_path;       /**< libcuda to load and no other */
  const kiln_driver *driver;     /**< driver to use instead of libcuda, e.g.
                                    kiln_cpu_driver(); must outlive the runtime */
  const char *nvrtc_path;        /**< libnvrtc to load and no other */
  const char *const *nvrtc_dirs; /**< folders searched before the system's */
  size_t n_nvrtc_dirs;           /**< entries of nvrtc_dirs */
  const char *nvjitlink_path;    /**< libnvJitLink to load and no other */
  const char *cache_dir;         /**< cache folder, made if missing */
  uint64_t cache_bytes;          /**< byte cap on disk; default 256 MiB */
  bool cache_off;                /**< no disk tier; memory tier stays */
  const char *const *packs;      /**< pack files: asked before the disk tier
                                    for the very target, after the compiler
                                    for a lower one */
  size_t n_packs;                /**< entries of packs */
  unsigned compile_threads;      /**< most compiles at once; default: cores,
                                    8 at most (each takes some 100 MB) */
  unsigned flight_wait_ms;       /**< longest wait for another process that
                                    compiles the same key; default 20,000 */
  bool ignore_env;               /**< read no environment variable */
} kiln_runtime_opts;

/**
 * Make a runtime.
 *
 * @param[out] out  yours, free with kiln_runtime_free(); NULL on failure.
 * @param opts      NULL for all defaults; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL (half an allocator, empty path), KILN_ENOMEM.
 * Threads: any. Blocks: never (no driver, no compiler, no disk).
 */
KILN_API kiln_status kiln_runtime_create(kiln_runtime **out,
                                         const kiln_runtime_opts *opts);

/** Free it; NULL is fine. Every object made from it must be gone. Waits for
 * compiles that still run. Loaded CUDA libraries stay loaded until the process
 * ends: unloading them under a live driver thread is not safe. */
KILN_API void kiln_runtime_free(kiln_runtime *rt);

/** What was found of the driver. */
typedef struct kiln_driver_info {
  int version;    /**< cuDriverGetVersion: 12020 = 12.2 */
  char path[512]; /**< file that was loaded */
  int n_devices;  /**< GPUs visible to this process */
  bool ptx_only;  /**< it loads no machine code: the CPU device */
} kiln_driver_info;

/**
 * Load and initialise the driver if that has not happened, and describe it.
 *
 * @param[out] out  filled on success, zeroed on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER (with every place tried),
 *         KILN_ENODEVICE (driver without GPU), KILN_EDRIVER, KILN_EFORKED.
 * Threads: any. Blocks: the first call, about 0.1 s in cuInit.
 */
KILN_API kiln_status kiln_runtime_driver(kiln_runtime *rt,
                                         kiln_driver_info *out);

/** What is known of one NVRTC library. */
typedef struct kiln_nvrtc_info {
  int version;    /**< 13000 = 13.0, 11080 = 11.8 */
  char path[512]; /**< file */
  int archs[64];  /**< supported codes, ascending: 75, 80, ... 121 */
  size_t n_archs; /**< entries of archs */
  bool loaded;    /**< mapped into this process by this runtime */
} kiln_nvrtc_info;

/**
 * Describe the NVRTC libraries found, newest first.
 *
 * Known libraries are described from a note beside the cache (path, size and
 * time of change must match), without being loaded.
 *
 * @param out       array of `capacity`; may be NULL if capacity is 0.
 * @param[out] n    how many there are, may be above capacity.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENONVRTC, KILN_ENOMEM.
 * Threads: any. Blocks: on files; loads libraries that it does not know.
 */
KILN_API kiln_status kiln_runtime_nvrtc(kiln_runtime *rt, kiln_nvrtc_info *out,
                                        size_t capacity, size_t *n);

/** One place looked at during discovery. */
typedef struct kiln_trail_step {
  const char *what;   /**< "libcuda", "libnvrtc", "libnvJitLink" */
  const char *how;    /**< "environment KILN_NVRTC", "system loader", ... */
  const char *where;  /**< path or soname */
  bool found;         /**< it was used */
  const char *reason; /**< why not, if not */
} kiln_trail_step;

typedef void (*kiln_trail_fn)(void *user, const kiln_trail_step *step);

/** Report every place looked at so far, in order. Texts are borrowed for the
 * call. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_runtime_trail(kiln_runtime *rt, kiln_trail_fn fn,
                                        void *user);

#ifdef __cplusplus
}
#endif
#endif
