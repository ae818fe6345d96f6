/* timeline.h -- record what ran when, on the host and on the device.
 *
 * Events measure spans on streams, and the host's clock measures spans on the
 * host. Kiln aligns the two clocks, so that all spans share one time axis.
 * kiln_timeline_write() writes Chrome's trace event format, which
 * chrome://tracing and ui.perfetto.dev open. */
#ifndef KILN_TIMELINE_H
#define KILN_TIMELINE_H

#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Creates a recorder. Attach it to streams with kiln_stream_attach(), or open
 * spans with the functions below, or both.
 *
 * @param[out] out  yours, free with kiln_timeline_free(); NULL on failure.
 * @param device    must outlive the recorder.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: for some round trips to the device, which align the
 * clocks.
 */
KILN_API kiln_status kiln_timeline_create(kiln_timeline **out,
                                          kiln_device *device);

/** Frees a recorder; NULL is allowed. Detach its streams before. Threads: no
 * other thread may use it. Blocks: never. */
KILN_API void kiln_timeline_free(kiln_timeline *timeline);

/** Opens a span in a stream. Spans of one stream nest.
 * @param stream  NULL: the default stream.
 * @param name    copied; at most 63 bytes are kept.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE (a stream that is being captured is not recorded),
 *         KILN_EFORKED. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_timeline_begin(kiln_timeline *timeline,
                                         kiln_stream *stream, const char *name);

/** Closes the innermost open span of a stream.
 * @param stream  NULL: the default stream.
 * @retval KILN_OK, KILN_EINVAL (no span is open), KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_timeline_end(kiln_timeline *timeline,
                                       kiln_stream *stream);

/** Opens a span in the calling host thread's row. Spans of one thread nest.
 * @param name  copied; at most 63 bytes are kept.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EFORKED. Threads: any.
 * Blocks: never. */
KILN_API kiln_status kiln_timeline_host_begin(kiln_timeline *timeline,
                                              const char *name);

/** Closes the innermost open span of the calling host thread.
 * @retval KILN_OK, KILN_EINVAL (no span is open), KILN_EFORKED. Threads: any.
 * Blocks: never. */
KILN_API kiln_status kiln_timeline_host_end(kiln_timeline *timeline);

/** One closed span. */
typedef struct kiln_span {
  const char *name; /**< borrowed for the call */
  int row;          /**< 0: host threads; else number of the stream, from 1 */
  double begin_us;  /**< microseconds since the recorder was created */
  double end_us;    /**< microseconds since the recorder was created */
} kiln_span;

/** Receives one span, borrowed for the call. */
typedef void (*kiln_span_fn)(void *user, const kiln_span *span);

/** Visits all closed spans, in the order of their begin.
 * @param fn    called per span, in the calling thread.
 * @param user  passed to fn.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED.
 * Threads: any. Blocks: until the device has done all work. */
KILN_API kiln_status kiln_timeline_each(kiln_timeline *timeline,
                                        kiln_span_fn fn, void *user);

/** Writes all closed spans as a trace file. Kiln writes a temporary file and
 * renames it.
 * @param path  file to write or replace.
 * @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_ENOMEM, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_ECAPTURE, KILN_EFORKED.
 * Threads: any. Blocks: until the device has done all work, and on files. */
KILN_API kiln_status kiln_timeline_write(kiln_timeline *timeline,
                                         const char *path);

#ifdef __cplusplus
}
#endif
#endif
