/* copy.c -- copies and fills.
 *
 * The synchronous ones run in the default stream and then wait for it: the
 * driver's own return before the device has the data when the host memory is
 * pageable, when both sides are device memory, and when filling. */
#include "device.h"

/* A synchronous call: in the device's context, with captures of other streams
 * left alone; refused while the default stream itself is tied up in one. */
typedef struct unit {
  kiln_device *device;
  kiln__scope scope;
  kiln__relaxed relaxed;
} unit;

static kiln_status begin(unit *u, kiln_device *device, const char *call)
{
  kiln_status st = kiln__enter(device, &u->scope);

  if (st != KILN_OK)
    return st;
  u->device = device;
  st = kiln__refuse_capture(device, NULL, call);
  if (st == KILN_OK)
    kiln__relax(device->driver, &u->relaxed);
  else
    kiln__leave(&u->scope);
  return st;
}

static kiln_status end(unit *u, CUresult rc, const char *call)
{
  if (rc == CUDA_SUCCESS) {
    call = "cuStreamSynchronize";
    rc = u->device->driver->streamSynchronize(NULL);
  }
  kiln__unrelax(&u->relaxed);
  kiln__leave(&u->scope);
  return kiln__device_rc(u->device, rc, call);
}

static kiln_status check(const void *where, bool addresses, size_t size)
{
  if (where == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the device or stream is NULL");
  if (!addresses && size > 0)
    return kiln__fail(KILN_EINVAL, NULL, "an address is NULL");
  return KILN_OK;
}

kiln_status kiln_copy_to_device(kiln_device *device, CUdeviceptr dst,
                                const void *src, size_t size)
{
  kiln_status st = check(device, dst != 0 && src != NULL, size);
  unit u;

  if (st != KILN_OK || size == 0)
    return st;
  st = begin(&u, device, __func__);
  if (st != KILN_OK)
    return st;
  return end(&u, device->driver->memcpyHtoD(dst, src, size), "cuMemcpyHtoD_v2");
}

kiln_status kiln_copy_to_host(kiln_device *device, void *dst, CUdeviceptr src,
                              size_t size)
{
  kiln_status st = check(device, dst != NULL && src != 0, size);
  unit u;

  if (st != KILN_OK || size == 0)
    return st;
  st = begin(&u, device, __func__);
  if (st != KILN_OK)
    return st;
  return end(&u, device->driver->memcpyDtoH(dst, src, size), "cuMemcpyDtoH_v2");
}

kiln_status kiln_copy_on_device(kiln_device *device, CUdeviceptr dst,
                                CUdeviceptr src, size_t size)
{
  kiln_status st = check(device, dst != 0 && src != 0, size);
  unit u;

  if (st != KILN_OK || size == 0)
    return st;
  st = begin(&u, device, __func__);
  if (st != KILN_OK)
    return st;
  return end(&u, device->driver->memcpyDtoD(dst, src, size), "cuMemcpyDtoD_v2");
}

kiln_status kiln_copy_peer(kiln_device *dst_device, CUdeviceptr dst,
                           kiln_device *src_device, CUdeviceptr src,
                           size_t size)
{
  kiln_status st =
      check(src_device == NULL ? NULL : dst_device, dst != 0 && src != 0, size);
  unit u;

  if (st != KILN_OK || size == 0)
    return st;
  /* What was queued at the source must be there before it is copied. */
  st = begin(&u, src_device, __func__);
  if (st != KILN_OK)
    return st;
  st = end(&u, CUDA_SUCCESS, NULL);
  if (st != KILN_OK)
    return st;
  st = begin(&u, dst_device, __func__);
  if (st != KILN_OK)
    return st;
  return end(&u,
             dst_device->driver->memcpyPeerAsync(
                 dst, atomic_load(&dst_device->context), src,
                 atomic_load(&src_device->context), size, NULL),
             "cuMemcpyPeerAsync");
}

/* "copy HtoD 4.0 MB" */
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

/* An asynchronous call: in the stream's context, with a mark in its timeline
 * if it has one. */
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

kiln_status kiln_copy_to_device_async(kiln_stream *stream, CUdeviceptr dst,
                                      const void *src, size_t size)
{
  kiln_status st = check(stream, dst != 0 && src != NULL, size);
  queued q;

  if (st != KILN_OK || size == 0)
    return st;
  st = queue_begin(&q, stream, "copy HtoD", size);
  if (st != KILN_OK)
    return st;
  return queue_end(
      &q,
      stream->device->driver->memcpyHtoDAsync(dst, src, size, stream->handle),
      "cuMemcpyHtoDAsync_v2");
}

kiln_status kiln_copy_to_host_async(kiln_stream *stream, void *dst,
                                    CUdeviceptr src, size_t size)
{
  kiln_status st = check(stream, dst != NULL && src != 0, size);
  queued q;

  if (st != KILN_OK || size == 0)
    return st;
  st = queue_begin(&q, stream, "copy DtoH", size);
  if (st != KILN_OK)
    return st;
  return queue_end(
      &q,
      stream->device->driver->memcpyDtoHAsync(dst, src, size, stream->handle),
      "cuMemcpyDtoHAsync_v2");
}

kiln_status kiln_copy_on_device_async(kiln_stream *stream, CUdeviceptr dst,
                                      CUdeviceptr src, size_t size)
{
  kiln_status st = check(stream, dst != 0 && src != 0, size);
  queued q;

  if (st != KILN_OK || size == 0)
    return st;
  st = queue_begin(&q, stream, "copy DtoD", size);
  if (st != KILN_OK)
    return st;
  return queue_end(
      &q,
      stream->device->driver->memcpyDtoDAsync(dst, src, size, stream->handle),
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
  queued q;

  if (st != KILN_OK || size == 0)
    return st;
  st = kiln_device_context(dst_device, &to);
  if (st == KILN_OK)
    st = kiln_device_context(src_device, &from);
  if (st == KILN_OK)
    st = queue_begin(&q, stream, "copy peer", size);
  if (st != KILN_OK)
    return st;
  return queue_end(&q,
                   stream->device->driver->memcpyPeerAsync(
                       dst, to, src, from, size, stream->handle),
                   "cuMemcpyPeerAsync");
}

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
  const kiln__driver *driver;
  unit u;

  if (st != KILN_OK || count == 0)
    return st;
  st = begin(&u, device, __func__);
  if (st != KILN_OK)
    return st;
  driver = device->driver;
  if (width == 1)
    return end(&u, driver->memsetD8(dst, (unsigned char)value, count),
               "cuMemsetD8_v2");
  if (width == 2)
    return end(&u, driver->memsetD16(dst, (unsigned short)value, count),
               "cuMemsetD16_v2");
  return end(&u, driver->memsetD32(dst, value, count), "cuMemsetD32_v2");
}

kiln_status kiln_fill_async(kiln_stream *stream, CUdeviceptr dst,
                            uint32_t value, int width, size_t count)
{
  kiln_status st = check_fill(stream, dst, width, count);
  const kiln__driver *driver;
  queued q;

  if (st != KILN_OK || count == 0)
    return st;
  st = queue_begin(&q, stream, "fill", count * (size_t)width);
  if (st != KILN_OK)
    return st;
  driver = stream->device->driver;
  if (width == 1)
    return queue_end(
        &q,
        driver->memsetD8Async(dst, (unsigned char)value, count, stream->handle),
        "cuMemsetD8Async");
  if (width == 2)
    return queue_end(&q,
                     driver->memsetD16Async(dst, (unsigned short)value, count,
                                            stream->handle),
                     "cuMemsetD16Async");
  return queue_end(&q,
                   driver->memsetD32Async(dst, value, count, stream->handle),
                   "cuMemsetD32Async");
}
