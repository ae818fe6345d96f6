/* device_copy.c -- copies and fills (kiln/memory.h).
 *
 * The synchronous functions run in the default stream and then wait for it.
 * This is necessary because the driver's own synchronous functions may return
 * early: for pageable host memory, for copies between device buffers, and for
 * fills. */
#include "device.h"

/* The state of a synchronous copy or fill while the device's context is
 * current. Captures of other streams do not disturb the call. The call is
 * refused while a capture occupies the default stream. */
typedef struct direct {
  kiln_device *device;
  kiln__scope scope;
  kiln__relaxed relaxed;
} direct;

static kiln_status begin(direct *d, kiln_device *device, const char *call)
{
  kiln_status st = kiln__enter(device, &d->scope);

  if (st != KILN_OK)
    return st;
  d->device = device;
  st = kiln__refuse_capture(device, NULL, call);
  if (st == KILN_OK)
    kiln__relax(device->driver, &d->relaxed);
  else
    kiln__leave(&d->scope);
  return st;
}

static kiln_status end(direct *d, CUresult rc, const char *call)
{
  if (rc == CUDA_SUCCESS) {
    call = "cuStreamSynchronize";
    rc = d->device->driver->streamSynchronize(NULL);
  }
  kiln__unrelax(&d->relaxed);
  kiln__leave(&d->scope);
  return kiln__device_rc(d->device, rc, call);
}

/* Writes the name of a timeline span, such as "copy HtoD 4.0 MB". */
static void describe(char text[64], const char *what, size_t size)
{
  static const char *const units[] = {"kB", "MB", "GB", "TB"};
  uint64_t tenths = size / 100;
  size_t i = 0;

  if (size < 1000) {
    kiln__format(text, 64, "%s %u B", what, (unsigned)size);
    return;
  }
  while (tenths >= 10000 && i + 1 < sizeof units / sizeof units[0]) {
    tenths /= 1000;
    i++;
  }
  kiln__format(text, 64, "%s %llu.%llu %s", what,
               (unsigned long long)(tenths / 10),
               (unsigned long long)(tenths % 10), units[i]);
}

/* The state of an asynchronous copy or fill while the context of the stream is
 * current. If the stream has a timeline, the call is recorded as a span. */
typedef struct queued {
  kiln_stream *stream;
  kiln__scope scope;
  kiln__mark mark;
  bool marked;
} queued;

static kiln_status queue_begin(queued *q, kiln_stream *stream, const char *what,
                               size_t size)
{
  const kiln_status st = kiln__enter(stream->device, &q->scope);
  char text[64];

  q->stream = stream;
  q->marked = false;
  if (st == KILN_OK && stream->timeline != NULL) {
    describe(text, what, size);
    q->marked = kiln__mark_begin(&q->mark, stream, text);
  }
  return st;
}

static kiln_status queue_end(queued *q, CUresult rc, const char *call)
{
  if (q->marked)
    kiln__mark_end(&q->mark, q->stream);
  kiln__leave(&q->scope);
  return kiln__device_rc(q->stream->device, rc, call);
}

/* Macros for the bodies of synchronous and asynchronous functions, which differ
 * only in the driver call. Each macro evaluates to a status. */
#define COPY(device, call, text)                                               \
  direct d;                                                                    \
                                                                               \
  st = begin(&d, device, __func__);                                            \
  return st == KILN_OK ? end(&d, (device)->driver->call, text) : st
#define QUEUE(stream, what, size, call, text)                                  \
  queued q;                                                                    \
                                                                               \
  st = queue_begin(&q, stream, what, size);                                    \
  return st == KILN_OK ? queue_end(&q, (stream)->device->driver->call, text)   \
                       : st

static kiln_status check(const void *where, bool addresses, size_t size)
{
  if (where == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the device or stream is NULL");
  if (!addresses && size > 0)
    return kiln__fail(KILN_EINVAL, NULL, "an address is NULL");
  return KILN_OK;
}

/* ---- Copies -------------------------------------------------------------- */

kiln_status kiln_copy_to_device(kiln_device *device, CUdeviceptr dst,
                                const void *src, size_t size)
{
  kiln_status st = check(device, dst != 0 && src != NULL, size);

  if (st != KILN_OK || size == 0)
    return st;
  COPY(device, memcpyHtoD(dst, src, size), "cuMemcpyHtoD_v2");
}

kiln_status kiln_copy_to_host(kiln_device *device, void *dst, CUdeviceptr src,
                              size_t size)
{
  kiln_status st = check(device, dst != NULL && src != 0, size);

  if (st != KILN_OK || size == 0)
    return st;
  COPY(device, memcpyDtoH(dst, src, size), "cuMemcpyDtoH_v2");
}

kiln_status kiln_copy_on_device(kiln_device *device, CUdeviceptr dst,
                                CUdeviceptr src, size_t size)
{
  kiln_status st = check(device, dst != 0 && src != 0, size);

  if (st != KILN_OK || size == 0)
    return st;
  COPY(device, memcpyDtoD(dst, src, size), "cuMemcpyDtoD_v2");
}

kiln_status kiln_copy_peer(kiln_device *dst_device, CUdeviceptr dst,
                           kiln_device *src_device, CUdeviceptr src,
                           size_t size)
{
  kiln_status st =
      check(src_device == NULL ? NULL : dst_device, dst != 0 && src != 0, size);
  direct source;

  if (st != KILN_OK || size == 0)
    return st;
  /* Work that is queued on the source device must finish before its result is
   * copied. */
  st = begin(&source, src_device, __func__);
  if (st == KILN_OK)
    st = end(&source, CUDA_SUCCESS, NULL);
  if (st != KILN_OK)
    return st;
  COPY(dst_device,
       memcpyPeerAsync(dst, atomic_load(&dst_device->context), src,
                       atomic_load(&src_device->context), size, NULL),
       "cuMemcpyPeerAsync");
}

kiln_status kiln_copy_to_device_async(kiln_stream *stream, CUdeviceptr dst,
                                      const void *src, size_t size)
{
  kiln_status st = check(stream, dst != 0 && src != NULL, size);

  if (st != KILN_OK || size == 0)
    return st;
  QUEUE(stream, "copy HtoD", size,
        memcpyHtoDAsync(dst, src, size, stream->handle),
        "cuMemcpyHtoDAsync_v2");
}

kiln_status kiln_copy_to_host_async(kiln_stream *stream, void *dst,
                                    CUdeviceptr src, size_t size)
{
  kiln_status st = check(stream, dst != NULL && src != 0, size);

  if (st != KILN_OK || size == 0)
    return st;
  QUEUE(stream, "copy DtoH", size,
        memcpyDtoHAsync(dst, src, size, stream->handle),
        "cuMemcpyDtoHAsync_v2");
}

kiln_status kiln_copy_on_device_async(kiln_stream *stream, CUdeviceptr dst,
                                      CUdeviceptr src, size_t size)
{
  kiln_status st = check(stream, dst != 0 && src != 0, size);

  if (st != KILN_OK || size == 0)
    return st;
  QUEUE(stream, "copy DtoD", size,
        memcpyDtoDAsync(dst, src, size, stream->handle),
        "cuMemcpyDtoDAsync_v2");
}

kiln_status kiln_copy_peer_async(kiln_stream *stream, kiln_device *dst_device,
                                 CUdeviceptr dst, kiln_device *src_device,
                                 CUdeviceptr src, size_t size)
{
  kiln_status st =
      check(stream == NULL || src_device == NULL ? NULL : dst_device,
            dst != 0 && src != 0, size);
  CUcontext to, from;

  if (st != KILN_OK || size == 0)
    return st;
  st = kiln_device_context(dst_device, &to);
  if (st == KILN_OK)
    st = kiln_device_context(src_device, &from);
  if (st != KILN_OK)
    return st;
  QUEUE(stream, "copy peer", size,
        memcpyPeerAsync(dst, to, src, from, size, stream->handle),
        "cuMemcpyPeerAsync");
}

/* ---- 2-D copies ---------------------------------------------------------- */

/* One side of a 2-D copy: host memory, or device memory if `host` is NULL. */
typedef struct side {
  const void *host;
  CUdeviceptr device;
  size_t pitch;
} side;

static bool is_null(const side *s)
{
  return s->host == NULL && s->device == 0;
}

/* Fills the driver's copy descriptor. An empty copy also gives KILN_OK; *out
 * then has a width or height of 0. */
static kiln_status describe_2d(CUDA_MEMCPY2D *out, const kiln_device *device,
                               side dst, side src, const kiln_extent *extent)
{
  *out = (CUDA_MEMCPY2D){0};
  if (device == NULL || extent == NULL)
    return kiln__fail(KILN_EINVAL, NULL,
                      "the device, stream or extent is NULL");
  dst.pitch = extent->dst_pitch > 0 ? extent->dst_pitch : extent->width;
  src.pitch = extent->src_pitch > 0 ? extent->src_pitch : extent->width;
  if (dst.pitch < extent->width || src.pitch < extent->width)
    return kiln__fail(KILN_EINVAL, "a pitch is in bytes, as the width is",
                      "rows of %zu bytes do not fit pitches of %zu and %zu",
                      extent->width, dst.pitch, src.pitch);
  if (extent->width == 0 || extent->height == 0)
    return KILN_OK;
  if (is_null(&dst) || is_null(&src))
    return kiln__fail(KILN_EINVAL, NULL, "an address is NULL");
  if (device->driver->memcpy2DAsync == NULL)
    return kiln__device_missing("cuMemcpy2DAsync_v2");
  out->dstMemoryType =
      dst.host != NULL ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  out->dstHost = (void *)(uintptr_t)dst.host;
  out->dstDevice = dst.device;
  out->dstPitch = dst.pitch;
  out->srcMemoryType =
      src.host != NULL ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  out->srcHost = src.host;
  out->srcDevice = src.device;
  out->srcPitch = src.pitch;
  out->WidthInBytes = extent->width;
  out->Height = extent->height;
  return KILN_OK;
}

static kiln_status copy_2d(kiln_device *device, side dst, side src,
                           const kiln_extent *extent)
{
  CUDA_MEMCPY2D copy;
  kiln_status st = describe_2d(&copy, device, dst, src, extent);

  if (st != KILN_OK || copy.Height == 0)
    return st;
  COPY(device, memcpy2DAsync(&copy, NULL), "cuMemcpy2DAsync_v2");
}

static kiln_status queue_2d(kiln_stream *stream, const char *what, side dst,
                            side src, const kiln_extent *extent)
{
  CUDA_MEMCPY2D copy;
  kiln_status st = describe_2d(&copy, stream == NULL ? NULL : stream->device,
                               dst, src, extent);

  if (st != KILN_OK || copy.Height == 0)
    return st;
  QUEUE(stream, what, copy.WidthInBytes * copy.Height,
        memcpy2DAsync(&copy, stream->handle), "cuMemcpy2DAsync_v2");
}

kiln_status kiln_copy_2d_to_device(kiln_device *device, CUdeviceptr dst,
                                   const void *src, const kiln_extent *extent)
{
  return copy_2d(device, (side){.device = dst}, (side){.host = src}, extent);
}

kiln_status kiln_copy_2d_to_host(kiln_device *device, void *dst,
                                 CUdeviceptr src, const kiln_extent *extent)
{
  return copy_2d(device, (side){.host = dst}, (side){.device = src}, extent);
}

kiln_status kiln_copy_2d_on_device(kiln_device *device, CUdeviceptr dst,
                                   CUdeviceptr src, const kiln_extent *extent)
{
  return copy_2d(device, (side){.device = dst}, (side){.device = src}, extent);
}

kiln_status kiln_copy_2d_to_device_async(kiln_stream *stream, CUdeviceptr dst,
                                         const void *src,
                                         const kiln_extent *extent)
{
  return queue_2d(stream, "copy 2D HtoD", (side){.device = dst},
                  (side){.host = src}, extent);
}

kiln_status kiln_copy_2d_to_host_async(kiln_stream *stream, void *dst,
                                       CUdeviceptr src,
                                       const kiln_extent *extent)
{
  return queue_2d(stream, "copy 2D DtoH", (side){.host = dst},
                  (side){.device = src}, extent);
}

kiln_status kiln_copy_2d_on_device_async(kiln_stream *stream, CUdeviceptr dst,
                                         CUdeviceptr src,
                                         const kiln_extent *extent)
{
  return queue_2d(stream, "copy 2D DtoD", (side){.device = dst},
                  (side){.device = src}, extent);
}

/* ---- Fills --------------------------------------------------------------- */

static kiln_status check_fill(const void *where, CUdeviceptr dst, int width,
                              size_t count)
{
  if (width != 1 && width != 2 && width != 4)
    return kiln__fail(KILN_EINVAL, "use 1, 2 or 4",
                      "a fill has elements of %d bytes", width);
  if (dst % (unsigned)width != 0)
    return kiln__fail(KILN_EINVAL, NULL,
                      "the address 0x%llx is not aligned to %d bytes", dst,
                      width);
  if (count > SIZE_MAX / (unsigned)width)
    return kiln__fail(KILN_EINVAL, NULL, "a fill is larger than memory");
  return check(where, dst != 0, count);
}

kiln_status kiln_fill(kiln_device *device, CUdeviceptr dst, uint32_t value,
                      int width, size_t count)
{
  kiln_status st = check_fill(device, dst, width, count);

  if (st != KILN_OK || count == 0)
    return st;
  if (width == 1) {
    COPY(device, memsetD8(dst, (unsigned char)value, count), "cuMemsetD8_v2");
  } else if (width == 2) {
    COPY(device, memsetD16(dst, (unsigned short)value, count),
         "cuMemsetD16_v2");
  } else {
    COPY(device, memsetD32(dst, value, count), "cuMemsetD32_v2");
  }
}

kiln_status kiln_fill_async(kiln_stream *stream, CUdeviceptr dst,
                            uint32_t value, int width, size_t count)
{
  kiln_status st = check_fill(stream, dst, width, count);
  const size_t size = count * (size_t)width;

  if (st != KILN_OK || count == 0)
    return st;
  if (width == 1) {
    QUEUE(stream, "fill", size,
          memsetD8Async(dst, (unsigned char)value, count, stream->handle),
          "cuMemsetD8Async");
  } else if (width == 2) {
    QUEUE(stream, "fill", size,
          memsetD16Async(dst, (unsigned short)value, count, stream->handle),
          "cuMemsetD16Async");
  } else {
    QUEUE(stream, "fill", size,
          memsetD32Async(dst, value, count, stream->handle),
          "cuMemsetD32Async");
  }
}
