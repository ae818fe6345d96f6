/* memory.h -- device, pinned and managed memory; copies and fills.
 *
 * Sizes are 64-bit numbers of bytes. A call with size 0 does nothing and
 * succeeds, even with NULL addresses.
 *
 * Functions that take a device are synchronous: the copy or fill is complete
 * when they return. They run in the default stream of the device's context.
 * While a capture of a blocking stream is in progress, they return
 * KILN_ECAPTURE. Captures of other streams have no effect on them.
 *
 * Functions that end in _async take a stream, which must not be NULL. They
 * queue the work and return. Host memory must stay valid until the work is
 * done, and should be pinned. A copy from or to pageable memory does not
 * overlap other work, and the driver may wait for it. All _async functions may
 * be captured into a graph, except the allocations on a device without memory
 * pools. */
#ifndef KILN_MEMORY_H
#define KILN_MEMORY_H

#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Device memory ------------------------------------------------------- */

/**
 * Allocates device memory.
 *
 * @param[out] out  device address, aligned to 256 bytes; the caller frees it
 *                  with kiln_memory_free(). 0 on failure and for size 0.
 * @param size      size in bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. May block, because the driver may wait for the device.
 */
KILN_API kiln_status kiln_memory_alloc(CUdeviceptr *out, kiln_device *device,
                                       size_t size);

/** Frees memory that kiln_memory_alloc(), kiln_memory_alloc_pitched() or
 * kiln_memory_alloc_managed() returned.
 * @param p  device address; 0 is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Blocks until work that uses the memory is done. */
KILN_API kiln_status kiln_memory_free(kiln_device *device, CUdeviceptr p);

/**
 * Allocates device memory for a matrix whose rows start at well-aligned
 * addresses: row y starts at *out + y * *pitch. The kiln_copy_2d_...()
 * functions copy such matrices.
 *
 * @param[out] out    device address; the caller frees it with
 *                    kiln_memory_free(). 0 on failure and for width or height
 *                    0.
 * @param[out] pitch  receives the distance between the starts of two rows in
 *                    bytes, at least width; 0 on failure.
 * @param width       number of bytes per row.
 * @param height      number of rows.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EUNSUPPORTED, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. May block, because the driver may wait for the device.
 */
KILN_API kiln_status kiln_memory_alloc_pitched(CUdeviceptr *out, size_t *pitch,
                                               kiln_device *device,
                                               size_t width, size_t height);

/**
 * Allocates managed memory. Host and device use the same address, and the
 * driver migrates pages to the processor that accesses them. On the host, cast
 * *out to a pointer. The host must wait for the device before it accesses
 * memory that a kernel uses.
 *
 * @param[out] out  address; the caller frees it with kiln_memory_free(). 0 on
 *                  failure and for size 0.
 * @param size      size in bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EUNSUPPORTED, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. May block, because the driver may wait for the device.
 */
KILN_API kiln_status kiln_memory_alloc_managed(CUdeviceptr *out,
                                               kiln_device *device,
                                               size_t size);

/**
 * Allocates device memory in stream order (stream-ordered memory allocator).
 * Work that is queued in the stream after this call may use the memory. On a
 * device without memory pools the function behaves like kiln_memory_alloc().
 *
 * @param[out] out  device address; the caller frees it with
 *                  kiln_memory_free_async(). 0 on failure and for size 0.
 * @param size      size in bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Never blocks on a device with memory pools. Otherwise the call
 * may block like kiln_memory_alloc().
 */
KILN_API kiln_status kiln_memory_alloc_async(CUdeviceptr *out,
                                             kiln_stream *stream, size_t size);

/** Frees memory that kiln_memory_alloc_async() returned, in stream order: after
 * the work that is already queued in the stream. On a device without memory
 * pools the call waits for the stream and then frees the memory.
 * @param p  device address; 0 is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED,
 *         KILN_ECAPTURE (without memory pools).
 * Thread-safe. Never blocks on a device with memory pools. Otherwise the call
 * blocks until the work in the stream is done. */
KILN_API kiln_status kiln_memory_free_async(kiln_stream *stream, CUdeviceptr p);

/** Reports the amount of device memory, as returned by the driver.
 * @param[out] free_bytes   receives the free device memory in bytes; 0 on
 *                          failure.
 * @param[out] total_bytes  receives the total device memory in bytes; may be
 *                          NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_memory_info(kiln_device *device, uint64_t *free_bytes,
                                      uint64_t *total_bytes);

/* ---- Pinned and mapped host memory --------------------------------------- */

/**
 * Allocates pinned host memory, which every context can use. Copies from and to
 * pinned memory run at full bandwidth and overlap other work. Kernels can also
 * access the memory through the address that kiln_host_address() returns
 * (mapped memory).
 *
 * @param[out] out  host address; the caller frees it with kiln_host_free().
 *                  NULL on failure and for size 0.
 * @param size      size in bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. May block, because the driver may wait for the device.
 */
KILN_API kiln_status kiln_host_alloc(void **out, kiln_device *device,
                                     size_t size);

/** Frees memory that kiln_host_alloc() returned.
 * @param p  host address; NULL is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Blocks until work that uses the memory is done. */
KILN_API kiln_status kiln_host_free(kiln_device *device, void *p);

/** Pins and maps host memory that the caller owns. Until kiln_host_unregister()
 * the memory can be used in the same way as memory from kiln_host_alloc().
 * @param p     start of the memory; need not be aligned to a page.
 * @param size  size of the memory in bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Blocks while the system pins the pages. */
KILN_API kiln_status kiln_host_register(kiln_device *device, void *p,
                                        size_t size);

/** Unpins memory that kiln_host_register() pinned. No queued work may use the
 * memory any more.
 * @param p  the address that was passed to kiln_host_register(); NULL is
 *           allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Blocks while the system unpins the pages. */
KILN_API kiln_status kiln_host_unregister(kiln_device *device, void *p);

/** Returns the device address through which kernels access pinned host memory.
 * @param[out] out  device address, valid as long as the memory is pinned; 0 on
 *                  failure.
 * @param p         address within memory of kiln_host_alloc() or
 *                  kiln_host_register().
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_host_address(CUdeviceptr *out, kiln_device *device,
                                       void *p);

/* ---- Copies -------------------------------------------------------------- */

/** Copies host memory to the device.
 * @param dst   device address of the destination.
 * @param src   source: `size` bytes in host memory.
 * @param size  number of bytes to copy.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE,
 *         KILN_EFORKED.
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_copy_to_device(kiln_device *device, CUdeviceptr dst,
                                         const void *src, size_t size);

/** Copies device memory to the host.
 * @param dst   destination: `size` bytes in host memory.
 * @param src   device address of the source.
 * @param size  number of bytes to copy.
 * @retval the same statuses as kiln_copy_to_device().
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_copy_to_host(kiln_device *device, void *dst,
                                       CUdeviceptr src, size_t size);

/** Copies device memory within one device. Source and destination must not
 * overlap.
 * @param dst   device address of the destination.
 * @param src   device address of the source.
 * @param size  number of bytes to copy.
 * @retval the same statuses as kiln_copy_to_device().
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_copy_on_device(kiln_device *device, CUdeviceptr dst,
                                         CUdeviceptr src, size_t size);

/** Copies memory from one device to another. The devices may have different
 * contexts and need no peer access. The copy starts after the work that is
 * already queued in the default stream of the source device.
 * @param dst   destination address on dst_device.
 * @param src   source address on src_device.
 * @param size  number of bytes to copy.
 * @retval the same statuses as kiln_copy_to_device().
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_copy_peer(kiln_device *dst_device, CUdeviceptr dst,
                                    kiln_device *src_device, CUdeviceptr src,
                                    size_t size);

/** Queues a copy of host memory to the device.
 * @param src   host address of `size` bytes; must stay valid and unchanged
 *              until the copy is done.
 * @param size  number of bytes to copy.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks with pinned memory. With pageable memory the driver
 * may wait. */
KILN_API kiln_status kiln_copy_to_device_async(kiln_stream *stream,
                                               CUdeviceptr dst, const void *src,
                                               size_t size);

/** Queues a copy of device memory to the host.
 * @param dst   host address of `size` bytes; must stay valid until the copy is
 *              done.
 * @param size  number of bytes to copy.
 * @retval the same statuses as kiln_copy_to_device_async().
 * Thread-safe. Never blocks with pinned memory. With pageable memory the driver
 * may wait. */
KILN_API kiln_status kiln_copy_to_host_async(kiln_stream *stream, void *dst,
                                             CUdeviceptr src, size_t size);

/** Queues a copy of device memory within one device. Source and destination
 * must not overlap.
 * @param size  number of bytes to copy.
 * @retval the same statuses as kiln_copy_to_device_async().
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_copy_on_device_async(kiln_stream *stream,
                                               CUdeviceptr dst, CUdeviceptr src,
                                               size_t size);

/** Queues a copy of memory from one device to another.
 * @param stream  a stream of either device.
 * @param dst     destination address on dst_device.
 * @param src     source address on src_device.
 * @param size    number of bytes to copy.
 * @retval the same statuses as kiln_copy_to_device_async().
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_copy_peer_async(kiln_stream *stream,
                                          kiln_device *dst_device,
                                          CUdeviceptr dst,
                                          kiln_device *src_device,
                                          CUdeviceptr src, size_t size);

/* ---- 2-D copies ---------------------------------------------------------- */

/** A rectangle to copy: `height` rows of `width` bytes. The size of this struct
 * never changes. */
typedef struct kiln_extent {
  size_t width;     /**< number of bytes per row of the rectangle */
  size_t height;    /**< number of rows of the rectangle */
  size_t dst_pitch; /**< distance between the starts of two rows of dst in
                         bytes; 0 selects width */
  size_t src_pitch; /**< distance between the starts of two rows of src in
                         bytes; 0 selects width */
} kiln_extent;

/** Copies a rectangle of host memory to the device.
 * @param dst     device address of the first row.
 * @param src     host address of the first row.
 * @param extent  the rectangle; borrowed for the call. Each pitch must be 0 or
 *                at least width.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED.
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_copy_2d_to_device(kiln_device *device,
                                            CUdeviceptr dst, const void *src,
                                            const kiln_extent *extent);

/** Copies a rectangle of device memory to the host. The padding between the
 * rows of dst is not modified.
 * @param extent  the rectangle, as for kiln_copy_2d_to_device().
 * @retval the same statuses as kiln_copy_2d_to_device().
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_copy_2d_to_host(kiln_device *device, void *dst,
                                          CUdeviceptr src,
                                          const kiln_extent *extent);

/** Copies a rectangle within one device. The rectangles must not overlap.
 * @param extent  the rectangle, as for kiln_copy_2d_to_device().
 * @retval the same statuses as kiln_copy_2d_to_device().
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_copy_2d_on_device(kiln_device *device,
                                            CUdeviceptr dst, CUdeviceptr src,
                                            const kiln_extent *extent);

/** Queues a copy of a rectangle of host memory to the device, like
 * kiln_copy_2d_to_device().
 * @param src  host address; must stay valid and unchanged until the copy is
 *             done.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Never blocks with pinned memory. With pageable memory the driver
 * may wait. */
KILN_API kiln_status kiln_copy_2d_to_device_async(kiln_stream *stream,
                                                  CUdeviceptr dst,
                                                  const void *src,
                                                  const kiln_extent *extent);

/** Queues a copy of a rectangle of device memory to the host, like
 * kiln_copy_2d_to_host().
 * @param dst  host address; must stay valid until the copy is done.
 * @retval the same statuses as kiln_copy_2d_to_device_async().
 * Thread-safe. Never blocks with pinned memory. With pageable memory the driver
 * may wait. */
KILN_API kiln_status kiln_copy_2d_to_host_async(kiln_stream *stream, void *dst,
                                                CUdeviceptr src,
                                                const kiln_extent *extent);

/** Queues a copy of a rectangle within one device, like
 * kiln_copy_2d_on_device().
 * @retval the same statuses as kiln_copy_2d_to_device_async().
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_copy_2d_on_device_async(kiln_stream *stream,
                                                  CUdeviceptr dst,
                                                  CUdeviceptr src,
                                                  const kiln_extent *extent);

/* ---- Fills --------------------------------------------------------------- */

/** Sets `count` elements of device memory to one value.
 * @param dst    device address; must be a multiple of width.
 * @param value  value to store; only the lowest `width` bytes are used.
 * @param width  size of an element in bytes: 1, 2 or 4.
 * @param count  number of elements.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE,
 *         KILN_EFORKED.
 * Thread-safe. Blocks until the fill is done. */
KILN_API kiln_status kiln_fill(kiln_device *device, CUdeviceptr dst,
                               uint32_t value, int width, size_t count);

/** Queues a fill of device memory in a stream, like kiln_fill().
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_fill_async(kiln_stream *stream, CUdeviceptr dst,
                                     uint32_t value, int width, size_t count);

#ifdef __cplusplus
}
#endif
#endif
