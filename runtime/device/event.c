/* event.c -- CUDA events (kiln/stream.h). */
#include "device.h"

kiln_status kiln_event_create(kiln_event **out, kiln_device *device,
                              bool timing)
{
  kiln_status st = KILN_OK;
  kiln_event *event = NULL;
  kiln__scope scope;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  *out = NULL;
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  event = kiln__calloc(&device->rt->alloc, 1, sizeof *event);
  if (event == NULL)
    KILN_TRY(kiln__fail_memory("an event"));
  event->device = device;
  KILN_TRY(kiln__device_rc(
      device,
      device->driver->eventCreate(
          &event->handle, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
      "cuEventCreate"));
  *out = event;
  event = NULL;

done:
  kiln__leave(&scope);
  kiln_event_free(event);
  return st;
}

void kiln_event_free(kiln_event *event)
{
  kiln__scope scope;

  if (event == NULL)
    return;
  if (event->handle != NULL && kiln__enter_to_free(event->device, &scope)) {
    event->device->driver->eventDestroy(event->handle);
    kiln__leave(&scope);
  }
  kiln__free(&event->device->rt->alloc, event);
}

CUevent kiln_event_handle(const kiln_event *event)
{
  return event == NULL ? NULL : event->handle;
}

kiln_status kiln_event_record(kiln_event *event, kiln_stream *stream)
{
  kiln_status st;

  if (event == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the event is NULL");
  KILN__IN_SCOPE(st, stream == NULL ? event->device : stream->device,
                 eventRecord(event->handle, kiln_stream_handle(stream)),
                 "cuEventRecord");
  return st;
}

/* Calls the driver for an event. The call disturbs no capture, but the driver
 * forbids it to a thread while any stream is captured in the default mode. The
 * thread's capture mode is therefore relaxed during the call. */
static kiln_status ask(kiln_event *event,
                       CUresult(KILN__CUDAAPI *fn)(CUevent event),
                       const char *call)
{
  kiln__relaxed relaxed;
  kiln__scope scope;
  kiln_status st = kiln__enter(event->device, &scope);

  if (st != KILN_OK)
    return st;
  kiln__relax(event->device->driver, &relaxed);
  st = kiln__device_rc(event->device, fn(event->handle), call);
  kiln__unrelax(&relaxed);
  kiln__leave(&scope);
  return st;
}

kiln_status kiln_event_synchronize(kiln_event *event)
{
  if (event == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the event is NULL");
  return ask(event, event->device->driver->eventSynchronize,
             "cuEventSynchronize");
}

kiln_status kiln_event_query(kiln_event *event)
{
  if (event == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the event is NULL");
  return ask(event, event->device->driver->eventQuery, "cuEventQuery");
}

kiln_status kiln_event_elapsed(float *ms, kiln_event *from, kiln_event *to)
{
  kiln_status st;

  if (ms != NULL)
    *ms = 0;
  if (ms == NULL || from == NULL || to == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "ms, from or to is NULL");
  KILN__IN_SCOPE(st, from->device,
                 eventElapsedTime(ms, from->handle, to->handle),
                 "cuEventElapsedTime");
  if (st != KILN_OK)
    *ms = 0;
  return st;
}
