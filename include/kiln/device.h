/* device.h -- GPUs and their contexts.
 *
 * A kiln_device is one GPU with one context: the primary one (shared with the
 * CUDA runtime and other libraries), one of its own, or one that the caller
 * has. Every call makes that context current for its duration only and puts
 * the caller's back, whatever happens. Several devices may be open at once,
 * also for one GPU. */
#ifndef KILN_DEVICE_H
#define KILN_DEVICE_H

#include <kiln/arch.h>
#include <kiln/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_context_kind {
  KILN_CONTEXT_PRIMARY = 0, /**< retained on first use, released on free */
  KILN_CONTEXT_OWN,         /**< created on first use, destroyed on free */
  KILN_CONTEXT_FOREIGN      /**< the caller's; only borrowed */
} kiln_context_kind;

typedef struct kiln_device_opts {
  kiln_context_kind context; /**< default: primary */
  CUcontext foreign;         /**< for KILN_CONTEXT_FOREIGN; NULL takes the one
                                that is current in the calling thread */
  unsigned context_flags;    /**< CU_CTX_* for KILN_CONTEXT_OWN */
} kiln_device_opts;

/** GPUs visible to this process (CUDA_VISIBLE_DEVICES counts).
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER, KILN_EDRIVER, KILN_EFORKED.
 * A driver without GPU is KILN_OK with 0. Blocks: first call, in cuInit. */
KILN_API kiln_status kiln_device_count(kiln_runtime *rt, int *out);

/**
 * Open a GPU. Makes no context yet: that happens on first use, or in
 * kiln_device_context().
 *
 * @param[out] out  yours, free with kiln_device_free(); NULL on failure.
 * @param ordinal   0 to kiln_device_count() - 1; for a foreign context it must
 *                  be the context's device or -1.
 * @param opts      NULL for all defaults.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENODRIVER, KILN_ENODEVICE, KILN_EDRIVER,
 *         KILN_ENOMEM, KILN_EFORKED.
 */
KILN_API kiln_status kiln_device_open(kiln_device **out, kiln_runtime *rt,
                                      int ordinal,
                                      const kiln_device_opts *opts);

/** Release the context and free; NULL is fine. Modules, streams, events and
 * memory of the device must be freed before. */
KILN_API void kiln_device_free(kiln_device *device);

/** Traits with the limits that this GPU really has. Borrowed. */
KILN_API const kiln_traits *kiln_device_traits(const kiln_device *device);

/** What a launch decision needs beside the traits. */
typedef struct kiln_device_info {
  char name[128];          /**< "NVIDIA H200" */
  char uuid[48];           /**< "GPU-..." or "" */
  char pci[16];            /**< "0000:65:00.0" or "" */
  int ordinal;             /**< as opened */
  int sm_count;            /**< multiprocessors */
  int clock_khz;           /**< peak SM clock */
  int memory_clock_khz;    /**< peak memory clock */
  int memory_bus_bits;     /**< width */
  int l2_bytes;            /**< second-level cache */
  uint64_t memory_bytes;   /**< total */
  int max_grid[3];         /**< blocks in x, y, z */
  int max_block[3];        /**< threads in x, y, z */
  int copy_engines;        /**< copies that run beside kernels */
  bool concurrent_kernels; /**< several kernels at once */
  bool memory_pools;       /**< stream-ordered allocation */
  bool unified_addressing; /**< one address space with the host */
  bool cooperative;        /**< cooperative launch */
  bool ecc;                /**< error correction is on */
  bool mig;                /**< a slice of a GPU */
} kiln_device_info;

/** @retval KILN_OK, KILN_EINVAL. Never blocks. */
KILN_API kiln_status kiln_device_describe(const kiln_device *device,
                                          kiln_device_info *out);

/** Any CUdevice_attribute by number.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER. */
KILN_API kiln_status kiln_device_attribute(const kiln_device *device,
                                           int attribute, int *out);

/** The context, made now if it was not; stays the device's.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_EFORKED. */
KILN_API kiln_status kiln_device_context(kiln_device *device, CUcontext *out);

/** The runtime it was opened from. Borrowed. */
KILN_API kiln_runtime *kiln_device_runtime(const kiln_device *device);

/** Wait for all work in the context; flushes the device printf buffer.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY (a kernel failed:
 * the context is lost), KILN_ECAPTURE. */
KILN_API kiln_status kiln_device_synchronize(kiln_device *device);

#ifdef __cplusplus
}
#endif
#endif
