/* device.h -- GPUs and their contexts.
 *
 * A kiln_device is one GPU with one context: the primary one, which the CUDA
 * runtime and other libraries share; one of its own; or one that the caller
 * owns. Every Kiln call makes that context current for its own duration and
 * restores the caller's, also on failure. Several devices may be open at once,
 * also for the same GPU. */
#ifndef KILN_DEVICE_H
#define KILN_DEVICE_H

#include <kiln/arch.h>
#include <kiln/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Which context a device uses. */
typedef enum kiln_context_kind {
  KILN_CONTEXT_PRIMARY = 0, /**< retained on first use, released on free */
  KILN_CONTEXT_OWN,         /**< created on first use, destroyed on free */
  KILN_CONTEXT_FOREIGN      /**< the caller's, only borrowed */
} kiln_context_kind;

/** Options of a device. Start from {0}. */
typedef struct kiln_device_opts {
  kiln_context_kind context; /**< default: primary */
  CUcontext foreign;         /**< for KILN_CONTEXT_FOREIGN; NULL takes the one
                                that is current in the calling thread */
  unsigned context_flags;    /**< CU_CTX_* for KILN_CONTEXT_OWN */
} kiln_device_opts;

/**
 * Counts the GPUs visible to this process; CUDA_VISIBLE_DEVICES applies.
 *
 * @param[out] out  number of GPUs; 0 for a driver without a GPU and on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER, KILN_EDRIVER, KILN_EFORKED.
 * Threads: any. Blocks: the first call to the driver, in cuInit.
 */
KILN_API kiln_status kiln_device_count(kiln_runtime *rt, int *out);

/**
 * Opens a GPU. A context is not created yet: that happens on first use, or in
 * kiln_device_context().
 *
 * @param[out] out  yours, free with kiln_device_free(); NULL on failure.
 * @param rt        must outlive the device.
 * @param ordinal   0 to kiln_device_count() - 1. For a foreign context, the
 *                  number of its device or -1.
 * @param opts      NULL for all defaults; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER, KILN_ENODEVICE, KILN_EDRIVER,
 *         KILN_ENOMEM, KILN_EFORKED.
 * Threads: any. Blocks: the first call to the driver, in cuInit.
 */
KILN_INLINE kiln_status kiln_device_open(kiln_device **out, kiln_runtime *rt,
                                         int ordinal,
                                         const kiln_device_opts *opts);

/**
 * Frees a device and releases its context. Free its modules, streams, events,
 * graphs, arrays and memory before.
 *
 * @param device  NULL is allowed.
 * Threads: no other thread may use the device. Blocks: while the driver destroys
 * a context of the device's own, until its work is done.
 */
KILN_API void kiln_device_free(kiln_device *device);

/** Returns the traits of the GPU's capability, with the limits that the driver
 * reports for this GPU. Borrowed from the device; NULL for NULL. Threads: any.
 * Blocks: never. */
KILN_API const kiln_traits *kiln_device_traits(const kiln_device *device);

/** Properties of a GPU beside its traits. */
typedef struct kiln_device_info {
  char name[128];          /**< "NVIDIA H200" */
  char uuid[48];           /**< "GPU-..." or "MIG-..."; "" if unknown */
  char pci[16];            /**< "0000:65:00.0"; "" if unknown */
  int ordinal;             /**< number among the visible GPUs */
  int sm_count;            /**< multiprocessors */
  int clock_khz;           /**< peak SM clock in kHz */
  int memory_clock_khz;    /**< peak memory clock in kHz */
  int memory_bus_bits;     /**< width of the memory bus in bits */
  int l2_bytes;            /**< second-level cache in bytes */
  uint64_t memory_bytes;   /**< total device memory in bytes */
  int max_grid[3];         /**< most blocks in x, y, z */
  int max_block[3];        /**< most threads per block in x, y, z */
  int copy_engines;        /**< copies that can overlap kernels */
  bool concurrent_kernels; /**< several kernels run at once */
  bool memory_pools;       /**< stream-ordered allocation works */
  bool unified_addressing; /**< host and device share one address space */
  bool cooperative;        /**< cooperative launch works */
  bool ecc;                /**< error correction is on */
  bool mig;                /**< a slice of a GPU (Multi-Instance GPU) */
} kiln_device_info;

/** Describes a GPU with what was read when it was opened.
 * @param[out] out  filled on success.
 * @retval KILN_OK, KILN_EINVAL. Threads: any. Blocks: never. */
KILN_INLINE kiln_status kiln_device_describe(const kiln_device *device,
                                             kiln_device_info *out);

/** Reads one device attribute from the driver.
 * @param attribute  a CUdevice_attribute by number.
 * @param[out] out   the value; 0 on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EFORKED.
 * Threads: any. Blocks: never. */
KILN_API kiln_status kiln_device_attribute(const kiln_device *device,
                                           int attribute, int *out);

/** Returns the device's context and creates it if necessary. The device keeps
 * owning it.
 * @param[out] out  the context; NULL on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: the first call, while the driver creates the context. */
KILN_API kiln_status kiln_device_context(kiln_device *device, CUcontext *out);

/** Returns the runtime that the device was opened from; NULL for NULL. Borrowed.
 * Threads: any. Blocks: never. */
KILN_API kiln_runtime *kiln_device_runtime(const kiln_device *device);

/**
 * Waits for all work in the device's context. The driver prints what device
 * printf has buffered.
 *
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY (a kernel failed and
 *         the context is lost), KILN_ECAPTURE, KILN_EFORKED.
 * Threads: any. Blocks: until the work is done.
 */
KILN_API kiln_status kiln_device_synchronize(kiln_device *device);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

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
