/* timeline.h -- record when work ran on the host and on the device.
 *
 * Events measure the spans of work in streams, and the clock of the host
 * measures the spans of work on the host. Kiln aligns the two clocks, so that
 * all spans share one time axis. kiln_timeline_write() writes Chrome's trace
 * event format, which chrome://tracing and ui.perfetto.dev open. */
#ifndef KILN_TIMELINE_H
#define KILN_TIMELINE_H

#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a timeline, which records spans. A timeline records the work in
 * streams to which kiln_stream_attach() attached it, and spans that the caller
 * opens and closes.
 *
 * @param[out] out  the timeline; the caller frees it with kiln_timeline_free().
 *                  NULL on failure.
 * @param device    the device; must outlive the timeline.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Blocks for some round trips to the device, which align the
 * clocks of host and device.
 */
KILN_API kiln_status kiln_timeline_create(kiln_timeline **out,
                                          kiln_device *device);

/** Frees a timeline; NULL is allowed. The timeline must be detached from all
 * streams before.
 * Not thread-safe: no other thread may use the timeline. Never blocks. */
KILN_API void kiln_timeline_free(kiln_timeline *timeline);

/** Opens a span in a stream. Spans of one stream nest.
 * @param stream  stream of the span; NULL means the default stream.
 * @param name    name of the span; copied, at most 63 bytes are kept.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE (the stream is being captured, so it cannot be
 *         recorded), KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_timeline_begin(kiln_timeline *timeline,
                                         kiln_stream *stream, const char *name);

/** Closes the innermost open span of a stream.
 * @param stream  stream of the span; NULL means the default stream.
 * @retval KILN_OK, KILN_EINVAL (no span is open), KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_timeline_end(kiln_timeline *timeline,
                                       kiln_stream *stream);

/** Opens a span of the calling host thread. Spans of one thread nest.
 * @param name  name of the span; copied, at most 63 bytes are kept.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_timeline_host_begin(kiln_timeline *timeline,
                                              const char *name);

/** Closes the innermost open span of the calling host thread.
 * @retval KILN_OK, KILN_EINVAL (no span is open), KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_timeline_host_end(kiln_timeline *timeline);

/** A closed span of a timeline: a named interval in which work ran. */
typedef struct kiln_span {
  const char *name; /**< name of the span; borrowed for the call */
  int row; /**< row of the span in the trace: 0 for spans of host threads,
                otherwise the number of the stream, counted from 1 */
  double begin_us; /**< start time of the span in microseconds since the
                        timeline was created */
  double end_us;   /**< end time of the span in microseconds since the timeline
                        was created */
} kiln_span;

/** Callback that receives one span of a timeline, which is borrowed for the
 * call. */
typedef void (*kiln_span_fn)(void *user, const kiln_span *span);

/** Visits all closed spans in the order of their start times.
 * @param fn    callback; called once per span, in the calling thread.
 * @param user  pointer that is passed to fn.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED.
 * Thread-safe. Blocks until all work of the device is done. */
KILN_API kiln_status kiln_timeline_each(kiln_timeline *timeline,
                                        kiln_span_fn fn, void *user);

/** Writes all closed spans to a trace file. Kiln writes a temporary file and
 * renames it.
 * @param path  path of the file to write or replace.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ENOMEM, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_ECAPTURE, KILN_EFORKED.
 * Thread-safe. Blocks until all work of the device is done, and while it writes
 * the file. */
KILN_API kiln_status kiln_timeline_write(kiln_timeline *timeline,
                                         const char *path);

#ifdef __cplusplus
}
#endif
#endif
