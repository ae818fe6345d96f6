/* timeline.h -- what ran when, on the host and on the device.
 *
 * Spans on streams are measured by events, spans on the host by the host's
 * clock; both end on one axis. The file is Chrome's trace event format, which
 * chrome://tracing and ui.perfetto.dev open (lecture rows A11, A14). */
#ifndef KILN_TIMELINE_H
#define KILN_TIMELINE_H

#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Make a recorder.
 * @param[out] out  yours, free with kiln_timeline_free(); NULL on failure.
 * @param device    must outlive it.
 * Threads: the functions below may be called from any thread. Blocks: on the
 * device once, to line up the clocks.
 */
KILN_API kiln_status kiln_timeline_create(kiln_timeline **out,
                                          kiln_device *device);
/** Free; NULL is fine. Detach its streams before. */
KILN_API void kiln_timeline_free(kiln_timeline *timeline);

/** Open a span in a stream (NULL: default stream). Spans of one stream nest. A
 * stream that is being captured is not recorded: KILN_ECAPTURE.
 * @param name  copied, 63 bytes at most are kept. */
KILN_API kiln_status kiln_timeline_begin(kiln_timeline *timeline,
                                         kiln_stream *stream, const char *name);
/** Close the innermost open span of the stream.
 * @retval KILN_OK, KILN_EINVAL (none is open), KILN_EDRIVER. */
KILN_API kiln_status kiln_timeline_end(kiln_timeline *timeline,
                                       kiln_stream *stream);

/** The same on the calling thread's host row. */
KILN_API kiln_status kiln_timeline_host_begin(kiln_timeline *timeline,
                                              const char *name);
KILN_API kiln_status kiln_timeline_host_end(kiln_timeline *timeline);

typedef struct kiln_span {
  const char *name; /**< borrowed for the call */
  int row;          /**< 0: host threads; else stream number, from 1 */
  double begin_us;  /**< since the recorder was made */
  double end_us;    /**< since the recorder was made */
} kiln_span;

typedef void (*kiln_span_fn)(void *user, const kiln_span *span);

/** Wait for the device, then visit all closed spans in order of begin. */
KILN_API kiln_status kiln_timeline_each(kiln_timeline *timeline,
                                        kiln_span_fn fn, void *user);

/** Wait for the device, then write the trace to a file (temporary file, then
 * rename). @retval KILN_OK, KILN_EINVAL, KILN_EIO, KILN_EDRIVER. */
KILN_API kiln_status kiln_timeline_write(kiln_timeline *timeline,
                                         const char *path);

#ifdef __cplusplus
}
#endif
#endif
