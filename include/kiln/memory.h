/* memory.h -- device, pinned and managed memory; copies and fills.
 *
 * Sizes are bytes, 64-bit. A size of 0 is a no-op that succeeds, also with NULL
 * addresses.
 *
 * Functions that take a device are synchronous: the copy or fill is complete when
 * they return. They run in the default stream of the device's context. While the
 * capture of a blocking stream occupies that stream they return KILN_ECAPTURE;
 * captures of other streams do not matter.
 *
 * Functions that end in _async take a stream, never NULL. They queue the work and
 * return. Host memory must stay valid until the work is done, and should be
 * pinned: from pageable memory a copy does not overlap other work, and the driver
 * may wait for it. All of them may be captured into a graph, except the
 * allocations on a device without memory pools. */
#ifndef KILN_MEMORY_H
#define KILN_MEMORY_H

#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Device memory -------------------------------------------------------- */

/**
 * Allocates device memory.
 *
 * @param[out] out  yours, free with kiln_memory_free(); aligned to 256 bytes; 0
 *                  on failure and for size 0.
 * @param size      bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: the driver may wait for the device.
 */
KILN_API kiln_status kiln_memory_alloc(CUdeviceptr *out, kiln_device *device,
                                       size_t size);

/** Frees memory of kiln_memory_alloc(), kiln_memory_alloc_pitched() or
 * kiln_memory_alloc_managed().
 * @param p  0 is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: until work that uses the memory is done. */
KILN_API kiln_status kiln_memory_free(kiln_device *device, CUdeviceptr p);

/**
 * Allocates a matrix whose rows start at well-aligned addresses: row y starts at
 * *out + y * *pitch. Use it with the 2-D copies below.
 *
 * @param[out] out    yours, free with kiln_memory_free(); 0 on failure and for
 *                    width or height 0.
 * @param[out] pitch  bytes from a row to the next, at least width; 0 on failure.
 * @param width       bytes per row.
 * @param height      rows.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EUNSUPPORTED, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: the driver may wait for the device.
 */
KILN_API kiln_status kiln_memory_alloc_pitched(CUdeviceptr *out, size_t *pitch,
                                               kiln_device *device,
                                               size_t width, size_t height);

/**
 * Allocates managed memory: host and device use the same address, and the driver
 * moves pages to where they are used. On the host, cast *out to a pointer. Wait
 * for the device before the host touches what a kernel uses.
 *
 * @param[out] out  yours, free with kiln_memory_free(); 0 on failure and for
 *                  size 0.
 * @param size      bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EUNSUPPORTED, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: the driver may wait for the device.
 */
KILN_API kiln_status kiln_memory_alloc_managed(CUdeviceptr *out,
                                               kiln_device *device,
                                               size_t size);

/**
 * Allocates device memory in stream order (stream-ordered memory allocator):
 * work that is queued in the stream afterwards may use it. A device without
 * memory pools allocates as kiln_memory_alloc() does.
 *
 * @param[out] out  yours, free with kiln_memory_free_async(); 0 on failure and
 *                  for size 0.
 * @param size      bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: never with memory pools; else as kiln_memory_alloc().
 */
KILN_API kiln_status kiln_memory_alloc_async(CUdeviceptr *out,
                                             kiln_stream *stream, size_t size);

/** Frees memory of kiln_memory_alloc_async() in stream order: after the work that
 * is queued in the stream so far. A device without memory pools waits for the
 * stream and then frees.
 * @param p  0 is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED,
 *         KILN_ECAPTURE (without memory pools).
 * Threads: any. Blocks: never with memory pools; else until the stream is done. */
KILN_API kiln_status kiln_memory_free_async(kiln_stream *stream, CUdeviceptr p);

/** Reports how much device memory there is, by the driver.
 * @param[out] free_bytes   bytes that are free; 0 on failure.
 * @param[out] total_bytes  bytes in all; may be NULL.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never. */
KILN_API kiln_status kiln_memory_info(kiln_device *device, uint64_t *free_bytes,
                                      uint64_t *total_bytes);

/* ---- Pinned and mapped host memory ---------------------------------------- */

/**
 * Allocates pinned host memory, which every context can use. Copies from and to
 * it run at full rate and overlap other work. Kernels can also access it through
 * the address that kiln_host_address() returns (mapped memory).
 *
 * @param[out] out  yours, free with kiln_host_free(); NULL on failure and for
 *                  size 0.
 * @param size      bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: the driver may wait for the device.
 */
KILN_API kiln_status kiln_host_alloc(void **out, kiln_device *device,
                                     size_t size);

/** Frees memory of kiln_host_alloc().
 * @param p  NULL is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: until work that uses the memory is done. */
KILN_API kiln_status kiln_host_free(kiln_device *device, void *p);

/** Pins and maps memory that the caller owns, until kiln_host_unregister(). It
 * can then be used as memory of kiln_host_alloc().
 * @param p     start; need not be aligned to a page.
 * @param size  bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: while the system pins the pages. */
KILN_API kiln_status kiln_host_register(kiln_device *device, void *p,
                                        size_t size);

/** Unpins memory of kiln_host_register(). No work may use it any more.
 * @param p  the address given to kiln_host_register(); NULL is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: while the system unpins the pages. */
KILN_API kiln_status kiln_host_unregister(kiln_device *device, void *p);

/** Returns the address under which kernels access pinned host memory.
 * @param[out] out  device address; 0 on failure. It stays valid as long as the
 *                  memory is pinned.
 * @param p         within memory of kiln_host_alloc() or kiln_host_register().
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never. */
KILN_API kiln_status kiln_host_address(CUdeviceptr *out, kiln_device *device,
                                       void *p);

/* ---- Copies --------------------------------------------------------------- */

/** Copies host memory to the device.
 * @param dst   device address.
 * @param src   `size` bytes in host memory.
 * @param size  bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE,
 *         KILN_EFORKED. Threads: any. Blocks: until the copy is done. */
KILN_API kiln_status kiln_copy_to_device(kiln_device *device, CUdeviceptr dst,
                                         const void *src, size_t size);

/** Copies device memory to the host.
 * @param dst   receives `size` bytes in host memory.
 * @param src   device address.
 * @param size  bytes.
 * @retval as kiln_copy_to_device(). Threads: any. Blocks: until the copy is
 * done. */
KILN_API kiln_status kiln_copy_to_host(kiln_device *device, void *dst,
                                       CUdeviceptr src, size_t size);

/** Copies between two places of one device, which must not overlap.
 * @param dst   device address.
 * @param src   device address.
 * @param size  bytes.
 * @retval as kiln_copy_to_device(). Threads: any. Blocks: until the copy is
 * done. */
KILN_API kiln_status kiln_copy_on_device(kiln_device *device, CUdeviceptr dst,
                                         CUdeviceptr src, size_t size);

/** Copies from one device to another. The devices may have different contexts
 * and need no peer access. Work that is queued in the source's default stream is
 * done before.
 * @param dst   address on dst_device.
 * @param src   address on src_device.
 * @param size  bytes.
 * @retval as kiln_copy_to_device(). Threads: any. Blocks: until the copy is
 * done. */
KILN_API kiln_status kiln_copy_peer(kiln_device *dst_device, CUdeviceptr dst,
                                    kiln_device *src_device, CUdeviceptr src,
                                    size_t size);

/** Queues a copy of host memory to the device.
 * @param src   `size` bytes; valid and unchanged until the copy is done.
 * @param size  bytes.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never with pinned memory; else the driver may wait. */
KILN_API kiln_status kiln_copy_to_device_async(kiln_stream *stream,
                                               CUdeviceptr dst, const void *src,
                                               size_t size);

/** Queues a copy of device memory to the host.
 * @param dst   `size` bytes; valid until the copy is done.
 * @param size  bytes.
 * @retval as kiln_copy_to_device_async(). Threads: any. Blocks: never with pinned
 * memory; else the driver may wait. */
KILN_API kiln_status kiln_copy_to_host_async(kiln_stream *stream, void *dst,
                                             CUdeviceptr src, size_t size);

/** Queues a copy between two places of one device, which must not overlap.
 * @param size  bytes.
 * @retval as kiln_copy_to_device_async(). Threads: any. Blocks: never. */
KILN_API kiln_status kiln_copy_on_device_async(kiln_stream *stream,
                                               CUdeviceptr dst, CUdeviceptr src,
                                               size_t size);

/** Queues a copy from one device to another.
 * @param stream  of either device.
 * @param dst     address on dst_device.
 * @param src     address on src_device.
 * @param size    bytes.
 * @retval as kiln_copy_to_device_async(). Threads: any. Blocks: never. */
KILN_API kiln_status kiln_copy_peer_async(kiln_stream *stream,
                                          kiln_device *dst_device,
                                          CUdeviceptr dst,
                                          kiln_device *src_device,
                                          CUdeviceptr src, size_t size);

/* ---- 2-D copies ----------------------------------------------------------- */

/** A rectangle to copy: `height` rows of `width` bytes. Its size never
 * changes. */
typedef struct kiln_extent {
  size_t width;     /**< bytes per row */
  size_t height;    /**< rows */
  size_t dst_pitch; /**< bytes from a row of dst to the next; 0: width */
  size_t src_pitch; /**< bytes from a row of src to the next; 0: width */
} kiln_extent;

/** Copies a rectangle of host memory to the device.
 * @param dst     device address of the first row.
 * @param src     first row in host memory.
 * @param extent  borrowed for the call. A pitch must be 0 or at least width.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED. Threads: any. Blocks: until the copy is
 * done. */
KILN_API kiln_status kiln_copy_2d_to_device(kiln_device *device,
                                            CUdeviceptr dst, const void *src,
                                            const kiln_extent *extent);

/** Copies a rectangle of device memory to the host. Bytes between the rows of
 * dst stay as they are.
 * @param extent  as for kiln_copy_2d_to_device().
 * @retval as kiln_copy_2d_to_device(). Threads: any. Blocks: until the copy is
 * done. */
KILN_API kiln_status kiln_copy_2d_to_host(kiln_device *device, void *dst,
                                          CUdeviceptr src,
                                          const kiln_extent *extent);

/** Copies a rectangle within one device. The rectangles must not overlap.
 * @param extent  as for kiln_copy_2d_to_device().
 * @retval as kiln_copy_2d_to_device(). Threads: any. Blocks: until the copy is
 * done. */
KILN_API kiln_status kiln_copy_2d_on_device(kiln_device *device,
                                            CUdeviceptr dst, CUdeviceptr src,
                                            const kiln_extent *extent);

/** Queues kiln_copy_2d_to_device() in a stream.
 * @param src  valid and unchanged until the copy is done.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: never with pinned memory; else the driver may wait. */
KILN_API kiln_status kiln_copy_2d_to_device_async(kiln_stream *stream,
                                                  CUdeviceptr dst,
                                                  const void *src,
                                                  const kiln_extent *extent);

/** Queues kiln_copy_2d_to_host() in a stream.
 * @param dst  valid until the copy is done.
 * @retval as kiln_copy_2d_to_device_async(). Threads: any. Blocks: never with
 * pinned memory; else the driver may wait. */
KILN_API kiln_status kiln_copy_2d_to_host_async(kiln_stream *stream, void *dst,
                                                CUdeviceptr src,
                                                const kiln_extent *extent);

/** Queues kiln_copy_2d_on_device() in a stream.
 * @retval as kiln_copy_2d_to_device_async(). Threads: any. Blocks: never. */
KILN_API kiln_status kiln_copy_2d_on_device_async(kiln_stream *stream,
                                                  CUdeviceptr dst,
                                                  CUdeviceptr src,
                                                  const kiln_extent *extent);

/* ---- Fills ---------------------------------------------------------------- */

/** Sets `count` elements to one value.
 * @param dst    device address, a multiple of width.
 * @param value  the lowest `width` bytes count.
 * @param width  bytes per element: 1, 2 or 4.
 * @param count  elements.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE,
 *         KILN_EFORKED. Threads: any. Blocks: until the fill is done. */
KILN_API kiln_status kiln_fill(kiln_device *device, CUdeviceptr dst,
                               uint32_t value, int width, size_t count);

/** Queues kiln_fill() in a stream.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never. */
KILN_API kiln_status kiln_fill_async(kiln_stream *stream, CUdeviceptr dst,
                                     uint32_t value, int width, size_t count);

#ifdef __cplusplus
}
#endif
#endif
