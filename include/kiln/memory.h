/* memory.h -- device and pinned memory, copies and fills.
 *
 * Sizes are bytes, 64-bit; 0 bytes is a no-op that succeeds. Functions that
 * take a device are synchronous: the copy is done when they return. Functions
 * ending in _async take a stream and return at once; host memory must then stay
 * valid, and be pinned for the copy to overlap with anything.
 *
 * Statuses of all: KILN_OK, KILN_EINVAL (NULL with a size above 0), KILN_EDRIVER,
 * KILN_EDEVMEM, KILN_ESTICKY, KILN_EFORKED, KILN_ECAPTURE (synchronous copies
 * and fills while the capture of a blocking stream ties up the default stream;
 * captures of other streams are left alone). Threads: any. */
#ifndef KILN_MEMORY_H
#define KILN_MEMORY_H

#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Device memory, 256-byte aligned; *out is 0 on failure and for size 0.
 * Free with kiln_memory_free(). May synchronise the device. */
KILN_API kiln_status kiln_memory_alloc(CUdeviceptr *out, kiln_device *device,
                                       size_t size);
/** Free; 0 is fine. Waits for work that uses it. */
KILN_API kiln_status kiln_memory_free(kiln_device *device, CUdeviceptr p);

/** Stream-ordered: usable by work queued in `stream` afterwards. Where the
 * device has no memory pools this is kiln_memory_alloc(). */
KILN_API kiln_status kiln_memory_alloc_async(CUdeviceptr *out,
                                             kiln_stream *stream, size_t size);
/** Stream-ordered counterpart of kiln_memory_alloc_async(). Where the device has no
 * memory pools it waits for the stream, then frees. */
KILN_API kiln_status kiln_memory_free_async(kiln_stream *stream, CUdeviceptr p);

/** Free and total bytes of the GPU. */
KILN_API kiln_status kiln_memory_info(kiln_device *device, uint64_t *free_bytes,
                                      uint64_t *total_bytes);

/** Pinned host memory, usable by every context; for transfers that overlap
 * and run at full rate (lecture row E5). Free with kiln_host_free(). */
KILN_API kiln_status kiln_host_alloc(void **out, kiln_device *device,
                                     size_t size);
KILN_API kiln_status kiln_host_free(kiln_device *device, void *p);

/** Pin memory that the caller has, until kiln_host_unregister(). */
KILN_API kiln_status kiln_host_register(kiln_device *device, void *p,
                                        size_t size);
KILN_API kiln_status kiln_host_unregister(kiln_device *device, void *p);

KILN_API kiln_status kiln_copy_to_device(kiln_device *device, CUdeviceptr dst,
                                         const void *src, size_t size);
KILN_API kiln_status kiln_copy_to_host(kiln_device *device, void *dst,
                                       CUdeviceptr src, size_t size);
KILN_API kiln_status kiln_copy_on_device(kiln_device *device, CUdeviceptr dst,
                                         CUdeviceptr src, size_t size);
/** Between two devices, whatever their contexts. */
KILN_API kiln_status kiln_copy_peer(kiln_device *dst_device, CUdeviceptr dst,
                                    kiln_device *src_device, CUdeviceptr src,
                                    size_t size);

KILN_API kiln_status kiln_copy_to_device_async(kiln_stream *stream,
                                               CUdeviceptr dst, const void *src,
                                               size_t size);
KILN_API kiln_status kiln_copy_to_host_async(kiln_stream *stream, void *dst,
                                             CUdeviceptr src, size_t size);
KILN_API kiln_status kiln_copy_on_device_async(kiln_stream *stream,
                                               CUdeviceptr dst, CUdeviceptr src,
                                               size_t size);
KILN_API kiln_status kiln_copy_peer_async(kiln_stream *stream,
                                          kiln_device *dst_device,
                                          CUdeviceptr dst,
                                          kiln_device *src_device,
                                          CUdeviceptr src, size_t size);

/** Set `count` elements of `width` bytes (1, 2 or 4) to `value`; dst must be
 * aligned to width. */
KILN_API kiln_status kiln_fill(kiln_device *device, CUdeviceptr dst,
                               uint32_t value, int width, size_t count);
KILN_API kiln_status kiln_fill_async(kiln_stream *stream, CUdeviceptr dst,
                                     uint32_t value, int width, size_t count);

#ifdef __cplusplus
}
#endif
#endif
