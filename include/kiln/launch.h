/* launch.h -- launch kernels.
 *
 *   float a = 2;  CUdeviceptr x, y;  uint32_t n = 1000;
 *   kiln_launch_config c = kiln_launch_1d(n, 256);
 *   st = KILN_LAUNCH(kernel, &c, KILN_ARG(a), KILN_ARG(x), KILN_ARG(y),
 *                    KILN_ARG(n));
 *
 * Kiln compares the number and the sizes of the arguments with the parameters
 * of the compiled kernel. A launch allocates no memory, takes no lock and
 * searches no table. */
#ifndef KILN_LAUNCH_H
#define KILN_LAUNCH_H

#include <kiln/program.h>
#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A number of blocks or threads in three dimensions. The size of this struct
 * never changes. */
typedef struct kiln_dim3 {
  uint32_t x, y, z; /**< numbers of blocks or threads per dimension; 0 in y or z
                         counts as 1 */
} kiln_dim3;

/** Configuration of a launch. Initialise the struct with {0}, or with the
 * result of kiln_launch_1d(), kiln_launch_2d() or kiln_launch_3d(). */
typedef struct kiln_launch_config {
  kiln_dim3 grid;  /**< number of blocks; 0 in x means that the launch does
                        nothing */
  kiln_dim3 block; /**< number of threads per block; 0 in x is an error */
  uint32_t smem;   /**< dynamic shared memory per block in bytes. Above 48 KiB
                        Kiln sets the opt-in attribute of the kernel */
  kiln_stream *stream; /**< stream of the launch; NULL means the default stream
                            of the kernel's device */
  /** Cooperative launch: all blocks are resident simultaneously, so grid-wide
   * synchronisation is possible. */
  bool cooperative;
  kiln_dim3 cluster; /**< number of blocks per cluster; 0 in x means no
                          clusters. Clusters need compute capability 9.0 */
  /** Programmatic dependent launch: the kernel may start before the preceding
   * kernel of the stream ends. Needs compute capability 9.0; ignored on older
   * devices. */
  bool overlap_prior;
} kiln_launch_config;

/** One argument of a kernel. The size of this struct never changes. */
typedef struct kiln_arg {
  const void *value; /**< host address of the argument's value */
  size_t size;       /**< size of the argument's value in bytes */
} kiln_arg;

/** Creates an argument from a variable, such as KILN_ARG(n). The macro does not
 * accept an expression. */
/* clang-format off */
#define KILN_ARG(variable) {&(variable), sizeof(variable)}
/* clang-format on */

/** Launches a kernel. Each argument has the form KILN_ARG(variable);
 * KILN_LAUNCH(kernel, &config) launches a kernel without parameters. The macro
 * evaluates to the status of kiln_launch(). In C++ it can only be used inside
 * functions. */
#define KILN_LAUNCH(kernel, ...)                                               \
  KILN__LAUNCH(kernel, __VA_ARGS__, KILN__LAST_ARG)
/* A dummy argument that KILN_LAUNCH() adds after the last one, so that its
 * argument list and its array are never empty. Empty lists and arrays are
 * errors in strict C11 and C++. */
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

/** The largest number of kernel parameters that kiln_launch() supports. */
enum { KILN_MAX_PARAMS = 256 };

/**
 * Queues a launch of a kernel. The call may be captured into a graph.
 *
 * @param config  configuration of the launch; borrowed for the call.
 * @param args    array of n arguments; the values are copied before the call
 *                returns.
 * @param n       number of arguments.
 * @retval KILN_OK       the launch is queued, or grid.x is 0 and there is
 *                       nothing to do
 * @retval KILN_EARGS    the number or the size of the arguments is wrong; the
 *                       error record names the argument
 * @retval KILN_ELIMIT   the grid, the block, the shared memory, the registers
 *                       or the size of a cooperative grid exceeds a limit of
 *                       the device or kernel
 * @retval KILN_EUNSUPPORTED  the device does not support clusters or
 *                            cooperative launches
 * @retval KILN_ESTICKY  an earlier kernel failed; this launch is not the cause
 * @retval KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_EFORKED
 * Thread-safe, also for concurrent launches of one kernel. Blocks only while
 * the queue of the device is full.
 */
KILN_INLINE kiln_status kiln_launch(kiln_kernel *kernel,
                                    const kiln_launch_config *config,
                                    const kiln_arg *args, size_t n);

/* Returns the number of blocks of `block` threads that are needed for n
 * elements (one thread per element), limited to `most`. */
static inline uint32_t kiln__blocks(uint64_t n, uint32_t block, uint32_t most)
{
  const uint64_t threads = block == 0 ? 1 : block;
  const uint64_t wanted = n / threads + (n % threads != 0);

  return wanted < most ? (uint32_t)wanted : most;
}

/** Returns a configuration with bx * by * bz threads per block and enough
 * blocks for nx * ny * nz elements. The number of blocks is rounded up in each
 * dimension. It is limited to 2^31 - 1 in x and 65,535 in y and z; for more
 * elements the kernel must loop. If there are no elements, the launch does
 * nothing.
 * Thread-safe. Never blocks. */
static inline kiln_launch_config kiln_launch_3d(uint64_t nx, uint64_t ny,
                                                uint64_t nz, uint32_t bx,
                                                uint32_t by, uint32_t bz)
{
  kiln_launch_config c;

  c.smem = 0;
  c.stream = KILN__NULL;
  c.cooperative = c.overlap_prior = false;
  c.cluster.x = c.cluster.y = c.cluster.z = 0;
  /* A grid size of 0 in y or z would count as 1, so the configuration of an
   * empty grid has 0 in x. */
  c.grid.x = ny == 0 || nz == 0 ? 0 : kiln__blocks(nx, bx, 2147483647);
  c.grid.y = kiln__blocks(ny, by, 65535);
  c.grid.z = kiln__blocks(nz, bz, 65535);
  c.block.x = bx;
  c.block.y = by;
  c.block.z = bz;
  return c;
}

/** Returns the configuration of kiln_launch_3d() for nx * ny elements and
 * blocks of bx * by threads.
 * Thread-safe. Never blocks. */
static inline kiln_launch_config kiln_launch_2d(uint64_t nx, uint64_t ny,
                                                uint32_t bx, uint32_t by)
{
  return kiln_launch_3d(nx, ny, 1, bx, by, 1);
}

/** Returns the configuration of kiln_launch_3d() for n elements and blocks of
 * `block` threads.
 * Thread-safe. Never blocks. */
static inline kiln_launch_config kiln_launch_1d(uint64_t n, uint32_t block)
{
  return kiln_launch_3d(n, 1, 1, block, 1, 1);
}

/** Properties of a loaded kernel. */
typedef struct kiln_kernel_info {
  const char *name;  /**< lowered name of the kernel; owned by the module */
  int registers;     /**< number of registers per thread */
  int shared_static; /**< static shared memory in bytes per block */
  int local;         /**< local memory in bytes per thread */
  int constant;      /**< size of the kernel's user-allocated constant memory in
                          bytes */
  int max_threads;   /**< largest number of threads per block */
  int ptx_version;   /**< compute capability of the PTX that the kernel was
                          compiled to; 90 means compute_90 */
  int binary_version; /**< compute capability of the kernel's machine code; 90
                           means sm_90 */
  bool params_known;  /**< Kiln knows the kernel's parameters and checks the
                           arguments of launches */
  int n_params;       /**< number of kernel parameters; valid if params_known is
                           set */
  const uint32_t *sizes; /**< sizes of the kernel parameters in bytes; owned by
                              the module */
} kiln_kernel_info;

/** Reports the properties of a kernel, which Kiln read when it looked up the
 * kernel.
 * @param[out] out  the properties; filled on success.
 * @retval KILN_OK, KILN_EINVAL.
 * Thread-safe. Never blocks. */
KILN_INLINE kiln_status kiln_kernel_describe(const kiln_kernel *kernel,
                                             kiln_kernel_info *out);
/** Returns the driver's handle of the kernel, or NULL for NULL. The call does
 * not transfer ownership of the handle.
 * Thread-safe. Never blocks. */
KILN_API CUfunction kiln_kernel_handle(const kiln_kernel *kernel);
/** Returns the module that the kernel belongs to, or NULL for NULL. The caller
 * does not own the result.
 * Thread-safe. Never blocks. */
KILN_API kiln_module *kiln_kernel_module(const kiln_kernel *kernel);

/**
 * Computes how many blocks of a kernel can be resident on one SM. The driver
 * computes the result.
 *
 * @param block  number of threads per block.
 * @param smem   dynamic shared memory per block in bytes.
 * @param[out] blocks_per_sm  receives the number of resident blocks; 0 if such
 *                            a block cannot run, and on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_kernel_occupancy(kiln_kernel *kernel, int block,
                                           size_t smem, int *blocks_per_sm);
/**
 * Finds the block size with the highest occupancy, and the smallest grid that
 * then fills the device. The driver computes the result.
 *
 * @param smem        dynamic shared memory per block in bytes.
 * @param max_block   largest number of threads per block; 0 means no limit.
 * @param[out] block  receives the number of threads per block; may be NULL; 0
 *                    on failure.
 * @param[out] grid   receives the number of blocks; may be NULL; 0 on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_ELIMIT (smem is above the device's limit),
 *         KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_kernel_suggest(kiln_kernel *kernel, size_t smem,
                                         int max_block, int *block, int *grid);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

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
