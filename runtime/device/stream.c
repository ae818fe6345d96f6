/* stream.c -- streams (kiln/stream.h). stream_graph.c implements graphs and
 * host functions. */
#include "timeline.h"

static kiln_status allocate(kiln_stream **out, kiln_device *device)
{
  kiln_stream *stream = kiln__calloc(&device->rt->alloc, 1, sizeof *stream);

  if (stream == NULL)
    return kiln__fail_memory("a stream");
  stream->device = device;
  *out = stream;
  return KILN_OK;
}

/* Clamps a priority to the device's range. Lower numbers are more urgent, so
 * `greatest` is the lowest number. */
static int clamp_priority(const kiln__driver *driver, int wanted)
{
  int least = 0, greatest = 0;

  if (driver->ctxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS)
    return 0;
  if (wanted > least)
    return least;
  return wanted < greatest ? greatest : wanted;
}

kiln_status kiln_stream_create(kiln_stream **out, kiln_device *device,
                               const kiln_stream_opts *opts)
{
  static const kiln_stream_opts defaults;
  kiln_status st = KILN_OK;
  kiln_stream *stream = NULL;
  kiln__scope scope;
  unsigned flags;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  if (opts == NULL)
    opts = &defaults;
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  KILN_TRY(allocate(&stream, device));
  flags = opts->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
  KILN_TRY(kiln__device_rc(device,
                           device->driver->streamCreateWithPriority(
                               &stream->handle, flags,
                               clamp_priority(device->driver, opts->priority)),
                           "cuStreamCreateWithPriority"));
  stream->owned = true;
  *out = stream;
  stream = NULL;

done:
  kiln__leave(&scope);
  kiln_stream_free(stream);
  return st;
}

/* Checks that a wrapped stream belongs to the device's context. The stream
 * handles 0, 1 and 2 are not pointers; they name default streams, which exist
 * in every context. */
static kiln_status check_owner(kiln_device *device, CUstream handle)
{
  const kiln__driver *driver = device->driver;
  CUcontext owner = NULL;

  if ((uintptr_t)handle <= 2 || driver->streamGetCtx == NULL ||
      driver->streamGetCtx(handle, &owner) != CUDA_SUCCESS ||
      owner == atomic_load(&device->context))
    return KILN_OK;
  return kiln__fail(KILN_EINVAL,
                    "open the device with KILN_CONTEXT_FOREIGN for the "
                    "stream's context",
                    "the stream belongs to another context than the device");
}

kiln_status kiln_stream_wrap(kiln_stream **out, kiln_device *device,
                             CUstream handle)
{
  kiln_status st = KILN_OK;
  kiln__scope scope;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  KILN_TRY(check_owner(device, handle));
  KILN_TRY(allocate(out, device));
  (*out)->handle = handle;

done:
  kiln__leave(&scope);
  return st;
}

void kiln_stream_free(kiln_stream *stream)
{
  kiln__scope scope;

  if (stream == NULL)
    return;
  if (stream->ops_free != NULL)
    stream->ops_free(stream);
  if (stream->owned && kiln__enter_to_free(stream->device, &scope)) {
    stream->device->driver->streamDestroy(stream->handle);
    kiln__leave(&scope);
  }
  kiln__free(&stream->device->rt->alloc, stream);
}

CUstream kiln_stream_handle(const kiln_stream *stream)
{
  return stream == NULL ? NULL : stream->handle;
}

kiln_device *kiln_stream_device(const kiln_stream *stream)
{
  return stream == NULL ? NULL : stream->device;
}

static kiln_status need(const kiln_stream *stream, const void *other)
{
  if (stream == NULL || other == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "an argument is NULL");
  return KILN_OK;
}

/* Runs a driver call on a stream, unless the stream is being captured: the call
 * would invalidate the capture. `what` is the name of the public function for
 * the error message. */
static kiln_status ask(kiln_stream *stream,
                       CUresult(KILN__CUDAAPI *fn)(CUstream stream),
                       const char *call, const char *what)
{
  kiln__scope scope;
  kiln_status st = kiln__enter(stream->device, &scope);

  if (st != KILN_OK)
    return st;
  st = kiln__refuse_capture(stream->device, stream->handle, what);
  if (st == KILN_OK)
    st = kiln__device_rc(stream->device, fn(stream->handle), call);
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_stream_synchronize(kiln_stream *stream)
{
  const kiln_status st = need(stream, stream);

  return st != KILN_OK ? st
                       : ask(stream, stream->device->driver->streamSynchronize,
                             "cuStreamSynchronize", __func__);
}

kiln_status kiln_stream_query(kiln_stream *stream)
{
  const kiln_status st = need(stream, stream);

  return st != KILN_OK ? st
                       : ask(stream, stream->device->driver->streamQuery,
                             "cuStreamQuery", __func__);
}

kiln_status kiln_stream_wait(kiln_stream *stream, kiln_event *event)
{
  kiln_status st = need(stream, event);

  if (st == KILN_OK)
    KILN__IN_SCOPE(st, stream->device,
                   streamWaitEvent(stream->handle, event->handle, 0),
                   "cuStreamWaitEvent");
  return st;
}

kiln_status kiln_stream_capturing(const kiln_stream *stream, bool *out)
{
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status st = need(stream, out);
  kiln__scope scope;
  CUresult rc;

  if (out != NULL)
    *out = false;
  if (st != KILN_OK)
    return st;
  st = kiln__enter(stream->device, &scope);
  if (st != KILN_OK)
    return st;
  rc = stream->device->driver->streamIsCapturing(stream->handle, &status);
  *out = rc == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
  if (rc != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
    st = kiln__device_rc(stream->device, rc, "cuStreamIsCapturing");
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_stream_attach(kiln_stream *stream, kiln_timeline *timeline)
{
  kiln_status st = need(stream, stream);

  if (st == KILN_OK && timeline != NULL &&
      atomic_load(&timeline->device->context) !=
          atomic_load(&stream->device->context))
    st = kiln__fail(KILN_EINVAL, "make a timeline for the stream's device",
                    "the stream and the timeline are in different contexts");
  if (st == KILN_OK)
    stream->timeline = timeline;
  return st;
}
