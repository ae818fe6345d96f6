/* launch.h -- run kernels.
 *
 *   float a = 2;  CUdeviceptr x, y;  uint32_t n = 1000;
 *   kiln_launch_config c = kiln_launch_1d(n, 256);
 *   st = KILN_LAUNCH(kernel, &c, KILN_ARG(a), KILN_ARG(x), KILN_ARG(y),
 *                    KILN_ARG(n));
 *
 * Kiln compares the number and the sizes of the arguments with the compiled
 * kernel. A launch allocates nothing, takes no lock and searches nothing. */
#ifndef KILN_LAUNCH_H
#define KILN_LAUNCH_H

#include <kiln/program.h>
#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A size in three dimensions. Its size in memory never changes. */
typedef struct kiln_dim3 {
  uint32_t x, y, z; /**< 0 in y or z counts as 1 */
} kiln_dim3;

/** How to launch. Start from {0} or from a helper below. */
typedef struct kiln_launch_config {
  kiln_dim3 grid;      /**< blocks; 0 in x: nothing to do, a no-op */
  kiln_dim3 block;     /**< threads per block; 0 in x is an error */
  uint32_t smem;       /**< dynamic shared memory per block in bytes; above 48
                         KiB Kiln sets the kernel's opt-in attribute */
  kiln_stream *stream; /**< NULL: default stream of the kernel's device */
  bool cooperative;    /**< all blocks are resident at once: grid-wide
                         synchronisation works */
  kiln_dim3 cluster;   /**< blocks per cluster; 0 in x: none. Needs 9.0 */
  bool overlap_prior;  /**< programmatic dependent launch: the kernel may start
                         before the stream's previous kernel ends. Needs 9.0;
                         ignored on older devices */
} kiln_launch_config;

/** One argument of a kernel. Its size never changes. */
typedef struct kiln_arg {
  const void *value; /**< address of the value */
  size_t size;       /**< bytes of the value */
} kiln_arg;

/** Makes an argument from a variable (not from an expression): KILN_ARG(n). */
/* clang-format off */
#define KILN_ARG(variable) {&(variable), sizeof(variable)}
/* clang-format on */

/** Launches a kernel with arguments that are written as KILN_ARG(variable), or
 * with none: KILN_LAUNCH(kernel, &config). Evaluates to the status of
 * kiln_launch(). In C++ it is usable within functions only. */
#define KILN_LAUNCH(kernel, ...)                                               \
  KILN__LAUNCH(kernel, __VA_ARGS__, KILN__LAST_ARG)
/* An element after the last, so that neither the list of arguments nor the array
 * is ever empty: both would be errors in strict C11 and C++. */
/* clang-format off */
#define KILN__LAST_ARG {KILN__NULL, 0}
/* clang-format on */
#ifdef __cplusplus
#define KILN__NULL nullptr
#define KILN__LAUNCH(kernel, config, ...)                                      \
  ([&]() -> kiln_status {                                                      \
    const kiln_arg kiln_args_[] = {__VA_ARGS__};                               \
    return kiln_launch((kernel), (config), kiln_args_,                         \
                       sizeof kiln_args_ / sizeof kiln_args_[0] - 1);          \
  }())
#else
#define KILN__NULL NULL
#define KILN__LAUNCH(kernel, config, ...)                                      \
  kiln_launch((kernel), (config), (const kiln_arg[]){__VA_ARGS__},             \
              sizeof((const kiln_arg[]){__VA_ARGS__}) / sizeof(kiln_arg) - 1)
#endif

/** Most parameters that a kernel may have to be launched by kiln_launch(). */
enum { KILN_MAX_PARAMS = 256 };

/**
 * Queues a kernel.
 *
 * @param config  borrowed for the call.
 * @param args    n arguments; the values are copied before the call returns.
 * @param n       number of arguments.
 * @retval KILN_OK       queued, or nothing to do (grid.x is 0)
 * @retval KILN_EARGS    wrong number or size of arguments; the record names the
 *                       argument
 * @retval KILN_ELIMIT   grid, block, shared memory, registers or cooperative
 *                       size above what the device or kernel allows
 * @retval KILN_EUNSUPPORTED  clusters or cooperative launch on a device without
 * @retval KILN_ESTICKY  an earlier kernel failed; not this launch's fault
 * @retval KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_EFORKED
 * Threads: any, also at once for one kernel. Blocks: only while the device's
 * queue is full. May be captured into a graph.
 */
KILN_INLINE kiln_status kiln_launch(kiln_kernel *kernel,
                                    const kiln_launch_config *config,
                                    const kiln_arg *args, size_t n);

/* Blocks of `block` threads for n elements, at most `most`. */
static inline uint32_t kiln__blocks(uint64_t n, uint32_t block, uint32_t most)
{
  const uint64_t threads = block == 0 ? 1 : block;
  const uint64_t wanted = n / threads + (n % threads != 0);

  return wanted < most ? (uint32_t)wanted : most;
}

/** Returns a configuration with bx x by x bz threads per block and enough blocks
 * for nx x ny x nz elements, each dimension rounded up. Blocks are limited to
 * 2^31 - 1 in x and 65,535 in y and z; for more elements the kernel must loop.
 * Without elements the launch is a no-op. Threads: any. Blocks: never. */
static inline kiln_launch_config kiln_launch_3d(uint64_t nx, uint64_t ny,
                                                uint64_t nz, uint32_t bx,
                                                uint32_t by, uint32_t bz)
{
  kiln_launch_config c;

  c.smem = 0;
  c.stream = KILN__NULL;
  c.cooperative = c.overlap_prior = false;
  c.cluster.x = c.cluster.y = c.cluster.z = 0;
  /* 0 in y or z would count as 1, so "nothing to do" is set in x. */
  c.grid.x = ny == 0 || nz == 0 ? 0 : kiln__blocks(nx, bx, 2147483647);
  c.grid.y = kiln__blocks(ny, by, 65535);
  c.grid.z = kiln__blocks(nz, bz, 65535);
  c.block.x = bx;
  c.block.y = by;
  c.block.z = bz;
  return c;
}

/** Returns kiln_launch_3d() for nx x ny elements in blocks of bx x by threads.
 * Threads: any. Blocks: never. */
static inline kiln_launch_config kiln_launch_2d(uint64_t nx, uint64_t ny,
                                                uint32_t bx, uint32_t by)
{
  return kiln_launch_3d(nx, ny, 1, bx, by, 1);
}

/** Returns kiln_launch_3d() for n elements in blocks of `block` threads.
 * Threads: any. Blocks: never. */
static inline kiln_launch_config kiln_launch_1d(uint64_t n, uint32_t block)
{
  return kiln_launch_3d(n, 1, 1, block, 1, 1);
}

/** What is known about a loaded kernel. */
typedef struct kiln_kernel_info {
  const char *name;      /**< lowered name; borrowed from the module */
  int registers;         /**< per thread */
  int shared_static;     /**< bytes per block */
  int local;             /**< bytes per thread */
  int constant;          /**< bytes of user constants */
  int max_threads;       /**< threads per block */
  int ptx_version;       /**< 90 = compute_90 */
  int binary_version;    /**< 90 = sm_90 */
  bool params_known;     /**< launches are checked */
  int n_params;          /**< parameters, if known */
  const uint32_t *sizes; /**< their sizes in bytes; borrowed from the module */
} kiln_kernel_info;

/** Describes a kernel with what was read when it was looked up.
 * @param[out] out  filled on success.
 * @retval KILN_OK, KILN_EINVAL. Threads: any. Blocks: never. */
KILN_INLINE kiln_status kiln_kernel_describe(const kiln_kernel *kernel,
                                             kiln_kernel_info *out);
/** Returns the driver's handle, which the module keeps owning; NULL for NULL.
 * Threads: any. Blocks: never. */
KILN_API CUfunction kiln_kernel_handle(const kiln_kernel *kernel);
/** Returns the module that the kernel belongs to; NULL for NULL. Borrowed.
 * Threads: any. Blocks: never. */
KILN_API kiln_module *kiln_kernel_module(const kiln_kernel *kernel);

/**
 * Computes by the driver how many blocks of a kernel reside on one SM.
 *
 * @param block  threads per block.
 * @param smem   dynamic shared memory per block in bytes.
 * @param[out] blocks_per_sm  0 if such a block cannot run, and on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_kernel_occupancy(kiln_kernel *kernel, int block,
                                           size_t smem, int *blocks_per_sm);
/**
 * Finds by the driver the block size with the highest occupancy and the smallest
 * grid that fills the device with it.
 *
 * @param smem        dynamic shared memory per block in bytes.
 * @param max_block   most threads per block; 0: no limit.
 * @param[out] block  threads per block; may be NULL; 0 on failure.
 * @param[out] grid   blocks; may be NULL; 0 on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_ELIMIT (smem is above the device's limit),
 *         KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_kernel_suggest(kiln_kernel *kernel, size_t smem,
                                         int max_block, int *block, int *grid);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

KILN__SIZED(kiln_launch,
            (kiln_kernel * kernel, const kiln_launch_config *config,
             const kiln_arg *args, size_t n),
            (size_t config_size), (kernel, config, args, n, sizeof *config))
KILN__SIZED(kiln_kernel_describe,
            (const kiln_kernel *kernel, kiln_kernel_info *out),
            (size_t out_size), (kernel, out, sizeof *out))

#ifdef __cplusplus
}
#endif
#endif
