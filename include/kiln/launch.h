/* launch.h -- run kernels.
 *
 *   float a = 2;  CUdeviceptr x, y;  uint32_t n = 1000;
 *   kiln_launch_config c = kiln_launch_1d(n, 256);
 *   st = KILN_LAUNCH(kernel, &c, KILN_ARG(a), KILN_ARG(x), KILN_ARG(y),
 *                    KILN_ARG(n));
 *
 * Number and size of the arguments are checked against the compiled kernel.
 * The call allocates nothing, takes no lock and looks nothing up. */
#ifndef KILN_LAUNCH_H
#define KILN_LAUNCH_H

#include <kiln/program.h>
#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_dim3 {
  uint32_t x, y, z; /**< 0 in y or z counts as 1 */
} kiln_dim3;

/** How to launch. Start from {0} or a helper below. */
typedef struct kiln_launch_config {
  kiln_dim3 grid;      /**< blocks; 0 in x: nothing to do, a no-op */
  kiln_dim3 block;     /**< threads a block; 0 in x is an error */
  uint32_t smem;       /**< dynamic shared memory in bytes; above 48 KiB the
                         kernel is opted in on the way */
  kiln_stream *stream; /**< NULL: default stream of the kernel's device */
  bool cooperative;    /**< all blocks resident at once: grid-wide sync works */
  kiln_dim3 cluster;   /**< blocks a cluster; 0 in x: none. Needs 9.0 */
  bool overlap_prior;  /**< programmatic dependent launch: may start before
                         the stream's previous kernel ends. Needs 9.0; ignored
                         elsewhere */
} kiln_launch_config;

/** One argument: where its value is, and its size in bytes. */
typedef struct kiln_arg {
  const void *value;
  size_t size;
} kiln_arg;

/** An argument from a variable (not an expression): KILN_ARG(n). */
/* clang-format off */
#define KILN_ARG(variable) {&(variable), sizeof(variable)}
/* clang-format on */

#ifdef __cplusplus
#define KILN_LAUNCH(kernel, config, ...)                                       \
  ([&]() -> kiln_status {                                                      \
    const kiln_arg kiln_args_[] = {__VA_ARGS__};                               \
    return kiln_launch((kernel), (config), kiln_args_,                         \
                       sizeof kiln_args_ / sizeof kiln_args_[0]);              \
  }())
#else
/** Launch with arguments written as KILN_ARG(variable). */
#define KILN_LAUNCH(kernel, config, ...)                                       \
  kiln_launch((kernel), (config), (const kiln_arg[]){__VA_ARGS__},             \
              sizeof((const kiln_arg[]){__VA_ARGS__}) / sizeof(kiln_arg))
#endif

/** Most parameters a kernel may have to be launched through kiln_launch(). */
enum { KILN_MAX_PARAMS = 256 };

/**
 * Queue a kernel.
 *
 * @param args  n values, copied before the call returns.
 * @retval KILN_OK       queued, or nothing to do (grid.x is 0)
 * @retval KILN_EARGS    wrong number or size of arguments; names the argument
 * @retval KILN_ELIMIT   grid, block, shared memory, registers or cooperative
 *                       size above what the device or kernel allows
 * @retval KILN_EUNSUPPORTED cluster or cooperative on a device without
 * @retval KILN_ESTICKY  an earlier kernel failed; not this launch's fault
 * @retval KILN_EINVAL, KILN_EDRIVER, KILN_EFORKED
 * Threads: any, also at once for one kernel. Blocks: only while the device's
 * queue is full. May be captured into a graph.
 */
KILN_API kiln_status kiln_launch(kiln_kernel *kernel,
                                 const kiln_launch_config *config,
                                 const kiln_arg *args, size_t n);

/** Blocks of `block` threads for n elements, rounded up; n may be above 2^32.
 * The grid is clamped to 2^31 - 1 blocks: such kernels loop. */
KILN_API kiln_launch_config kiln_launch_1d(uint64_t n, uint32_t block);
/** Blocks of bx x by threads for nx x ny elements. */
KILN_API kiln_launch_config kiln_launch_2d(uint64_t nx, uint64_t ny,
                                           uint32_t bx, uint32_t by);
/** Blocks of bx x by x bz threads for nx x ny x nz elements. */
KILN_API kiln_launch_config kiln_launch_3d(uint64_t nx, uint64_t ny,
                                           uint64_t nz, uint32_t bx,
                                           uint32_t by, uint32_t bz);

/** What is known of a loaded kernel. */
typedef struct kiln_kernel_info {
  const char *name;      /**< lowered name; borrowed from the module */
  int registers;         /**< a thread */
  int shared_static;     /**< bytes a block */
  int local;             /**< bytes a thread */
  int constant;          /**< bytes of user constants */
  int max_threads;       /**< a block */
  int ptx_version;       /**< 90 = compute_90 */
  int binary_version;    /**< 90 = sm_90 */
  bool params_known;     /**< launches are checked */
  int n_params;          /**< parameters, if known */
  const uint32_t *sizes; /**< their sizes in bytes; borrowed */
} kiln_kernel_info;

/** @retval KILN_OK, KILN_EINVAL. Never blocks. */
KILN_API kiln_status kiln_kernel_describe(const kiln_kernel *kernel,
                                          kiln_kernel_info *out);
/** The driver's handle; stays the module's. */
KILN_API CUfunction kiln_kernel_handle(const kiln_kernel *kernel);
/** The module it belongs to. Borrowed. */
KILN_API kiln_module *kiln_kernel_module(const kiln_kernel *kernel);

/** Resident blocks on one SM, by the driver.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER. */
KILN_API kiln_status kiln_kernel_occupancy(kiln_kernel *kernel, int block,
                                           size_t smem, int *blocks_per_sm);
/** Block size with the highest occupancy, and the grid that fills the device
 * with it, by the driver. Either out may be NULL. */
KILN_API kiln_status kiln_kernel_suggest(kiln_kernel *kernel, size_t smem,
                                         int max_block, int *block, int *grid);

#ifdef __cplusplus
}
#endif
#endif
