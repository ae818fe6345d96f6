/* stream.h -- streams, events and timing.
 *
 * Where a function takes a kiln_stream it also takes NULL together with a
 * device: the default stream of the device's context. */
#ifndef KILN_STREAM_H
#define KILN_STREAM_H

#include <kiln/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_stream_opts {
  bool blocking; /**< true: waits on the legacy default stream and it on this;
                    default is non-blocking */
  int priority;  /**< lower runs first; clamped to the device's range */
} kiln_stream_opts;

/**
 * Make a stream.
 *
 * @param[out] out  yours, free with kiln_stream_free(); NULL on failure.
 * @param device    must outlive it.
 * @param opts      NULL for defaults.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ENOMEM, KILN_EFORKED.
 */
KILN_API kiln_status kiln_stream_create(kiln_stream **out, kiln_device *device,
                                        const kiln_stream_opts *opts);

/** Use a stream that the caller made in the device's context (or the special
 * handles 0, 1 and 2: default, legacy and per-thread); the caller keeps it. */
KILN_API kiln_status kiln_stream_wrap(kiln_stream **out, kiln_device *device,
                                      CUstream handle);

/** Free; NULL is fine. Work already queued still runs. */
KILN_API void kiln_stream_free(kiln_stream *stream);

/** The driver's handle; stays the stream's. NULL gives NULL. */
KILN_API CUstream kiln_stream_handle(const kiln_stream *stream);

/** The device it belongs to. Borrowed. */
KILN_API kiln_device *kiln_stream_device(const kiln_stream *stream);

/** Wait until everything queued is done.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE. */
KILN_API kiln_status kiln_stream_synchronize(kiln_stream *stream);

/** @retval KILN_OK all done, KILN_ENOTREADY, KILN_ESTICKY, KILN_EDRIVER. Never
 * blocks. */
KILN_API kiln_status kiln_stream_query(kiln_stream *stream);

/** Later work in `stream` starts after `event`. Never blocks the host. */
KILN_API kiln_status kiln_stream_wait(kiln_stream *stream, kiln_event *event);

/** Is the stream being captured into a graph? Never blocks. */
KILN_API kiln_status kiln_stream_capturing(const kiln_stream *stream,
                                           bool *out);

/** Record every launch and copy that goes through this stream into `timeline`
 * (NULL stops); see timeline.h. Not while another thread uses the stream. */
KILN_API kiln_status kiln_stream_attach(kiln_stream *stream,
                                        kiln_timeline *timeline);

/**
 * Make an event.
 * @param timing  it can be used with kiln_event_elapsed().
 */
KILN_API kiln_status kiln_event_create(kiln_event **out, kiln_device *device,
                                       bool timing);
/** Free; NULL is fine. */
KILN_API void kiln_event_free(kiln_event *event);
/** The driver's handle; stays the event's. */
KILN_API CUevent kiln_event_handle(const kiln_event *event);
/** Mark the present end of the stream (NULL: the default stream). */
KILN_API kiln_status kiln_event_record(kiln_event *event, kiln_stream *stream);
/** Wait for it. @retval as kiln_stream_synchronize(). */
KILN_API kiln_status kiln_event_synchronize(kiln_event *event);
/** @retval KILN_OK reached, KILN_ENOTREADY, else as synchronize. */
KILN_API kiln_status kiln_event_query(kiln_event *event);
/** Milliseconds from `from` to `to`, by the GPU's clock (lecture row A10).
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTREADY, KILN_EDRIVER. */
KILN_API kiln_status kiln_event_elapsed(float *ms, kiln_event *from,
                                        kiln_event *to);

#ifdef __cplusplus
}
#endif
#endif
