/* device.h -- GPUs and their contexts.
 *
 * A kiln_device is one GPU with one context. The context is either the primary
 * context, which the CUDA runtime and other libraries share, a context that
 * Kiln creates, or a context that the caller owns. Every Kiln call makes the
 * context of its device current and restores the caller's context before it
 * returns, also on failure. Several devices may be open at the same time, even
 * for the same GPU. */
#ifndef KILN_DEVICE_H
#define KILN_DEVICE_H

#include <kiln/arch.h>
#include <kiln/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The kind of context that a device uses. */
typedef enum kiln_context_kind {
  /** The primary context of the GPU; retained on first use and released with
   * the device. */
  KILN_CONTEXT_PRIMARY = 0,
  KILN_CONTEXT_OWN,    /**< a context of its own; created on first use and
                            destroyed with the device */
  KILN_CONTEXT_FOREIGN /**< a context that the caller owns and Kiln borrows */
} kiln_context_kind;

/** Options of a device. Initialise the struct with {0}. */
typedef struct kiln_device_opts {
  kiln_context_kind context; /**< kind of context that the device uses; default:
                                  primary */
  CUcontext foreign; /**< the caller's context for KILN_CONTEXT_FOREIGN; NULL
                          selects the current context of the calling thread */
  unsigned context_flags; /**< CU_CTX_* flags with which Kiln creates the
                               context for KILN_CONTEXT_OWN */
} kiln_device_opts;

/**
 * Counts the GPUs that are visible to this process, as restricted by
 * CUDA_VISIBLE_DEVICES.
 *
 * @param[out] out  receives the number of GPUs; 0 if the driver finds no GPU,
 *                  and on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER, KILN_EDRIVER, KILN_EFORKED.
 * Thread-safe. Blocks only in the first call to the driver, while cuInit runs.
 */
KILN_API kiln_status kiln_device_count(kiln_runtime *rt, int *out);

/**
 * Opens a GPU. The call does not create a context yet. The context is created
 * when the device is first used, or by kiln_device_context().
 *
 * @param[out] out  the device; the caller frees it with kiln_device_free().
 *                  NULL on failure.
 * @param rt        the runtime; must outlive the device.
 * @param ordinal   number of the GPU, 0 to kiln_device_count() - 1. For a
 *                  foreign context: the number of its GPU, or -1.
 * @param opts      options; NULL selects all defaults. Borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER, KILN_ENODEVICE, KILN_EDRIVER,
 *         KILN_ENOMEM, KILN_EFORKED.
 * Thread-safe. Blocks only in the first call to the driver, while cuInit runs.
 */
KILN_INLINE kiln_status kiln_device_open(kiln_device **out, kiln_runtime *rt,
                                         int ordinal,
                                         const kiln_device_opts *opts);

/**
 * Frees a device and releases its context. All modules, streams, events,
 * graphs, arrays and memory of the device must be freed before.
 *
 * @param device  the device; NULL is allowed.
 * Not thread-safe: no other thread may use the device. If Kiln created the
 * context, the call blocks until all work in the context is done and the driver
 * has destroyed it.
 */
KILN_API void kiln_device_free(kiln_device *device);

/** Returns the traits of the GPU's compute capability, with the limits that the
 * driver reports for this GPU. Returns NULL for NULL. The device owns the
 * result.
 * Thread-safe. Never blocks. */
KILN_API const kiln_traits *kiln_device_traits(const kiln_device *device);

/** Properties of a GPU that kiln_traits does not contain. */
typedef struct kiln_device_info {
  char name[128]; /**< name of the GPU, e.g. "NVIDIA H200" */
  char uuid[48];  /**< UUID of the GPU, "GPU-..." or "MIG-..."; "" if unknown */
  char pci[16];   /**< PCI address, e.g. "0000:65:00.0"; "" if unknown */
  int ordinal;    /**< number of the GPU among the GPUs visible to the process,
                       from 0 */
  int sm_count;   /**< number of SMs (multiprocessors) */
  int clock_khz;  /**< peak SM clock in kHz */
  int memory_clock_khz;  /**< peak memory clock in kHz */
  int memory_bus_bits;   /**< width of the memory bus in bits */
  int l2_bytes;          /**< size of the L2 cache in bytes */
  uint64_t memory_bytes; /**< size of the device memory in bytes */
  int max_grid[3];       /**< largest number of blocks per grid in x, y and z */
  int max_block[3]; /**< largest number of threads per block in x, y and z */
  int copy_engines; /**< number of copies that can overlap the execution of
                         kernels */
  bool concurrent_kernels; /**< whether several kernels can run concurrently */
  bool memory_pools;       /**< whether stream-ordered memory allocation is
                                supported */
  bool unified_addressing; /**< whether host and device share one address
                                space */
  bool cooperative;        /**< whether cooperative launches are supported */
  bool ecc;                /**< whether error correction (ECC) is enabled */
  bool mig; /**< whether the device is a slice of a GPU (Multi-Instance GPU) */
} kiln_device_info;

/** Reports the properties of a GPU, which Kiln read when it opened the GPU.
 * @param[out] out  the properties; filled on success.
 * @retval KILN_OK, KILN_EINVAL.
 * Thread-safe. Never blocks. */
KILN_INLINE kiln_status kiln_device_describe(const kiln_device *device,
                                             kiln_device_info *out);

/** Reads one device attribute from the driver.
 * @param attribute  number of a CUdevice_attribute.
 * @param[out] out   receives the value of the attribute; 0 on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_device_attribute(const kiln_device *device,
                                           int attribute, int *out);

/** Returns the context of a device, and creates the context if necessary. The
 * call does not transfer ownership of the context.
 * @param[out] out  the context; NULL on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. The first call blocks while the driver creates the context. */
KILN_API kiln_status kiln_device_context(kiln_device *device, CUcontext *out);

/** Returns the runtime that the device was opened from, or NULL for NULL. The
 * caller does not own the result.
 * Thread-safe. Never blocks. */
KILN_API kiln_runtime *kiln_device_runtime(const kiln_device *device);

/**
 * Waits until all work in the context of a device is done. The driver also
 * prints the buffered output of device printf.
 *
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY (a kernel failed and
 *         the context is lost), KILN_ECAPTURE, KILN_EFORKED.
 * Thread-safe. Blocks until the work is done.
 */
KILN_API kiln_status kiln_device_synchronize(kiln_device *device);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

KILN__SIZED(kiln_device_open,
            (kiln_device * *out, kiln_runtime *rt, int ordinal,
             const kiln_device_opts *opts),
            (size_t opts_size), (out, rt, ordinal, opts, sizeof *opts))
KILN__SIZED(kiln_device_describe,
            (const kiln_device *device, kiln_device_info *out),
            (size_t out_size), (device, out, sizeof *out))

#ifdef __cplusplus
}
#endif
#endif
