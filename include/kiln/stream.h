/* stream.h -- streams, events, graphs, host callbacks.
 *
 * Work in one stream runs in the order in which it was queued. Work in different
 * streams may overlap. kiln_stream_wait() makes one stream wait for an event of
 * another.
 *
 * Wherever a function takes a stream and a NULL is allowed, its contract says
 * so; NULL then means the default stream of the device's context. To pass the
 * default stream to any other function, wrap handle NULL with
 * kiln_stream_wrap(). */
#ifndef KILN_STREAM_H
#define KILN_STREAM_H

#include <kiln/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Streams -------------------------------------------------------------- */

/** Options of a stream. Start from {0}. */
typedef struct kiln_stream_opts {
  bool blocking; /**< the stream and the legacy default stream wait for each
                    other; default: they do not */
  int priority;  /**< lower runs first; clamped to the device's range */
} kiln_stream_opts;

/**
 * Creates a stream.
 *
 * @param[out] out  yours, free with kiln_stream_free(); NULL on failure.
 * @param device    must outlive the stream.
 * @param opts      NULL for all defaults; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_ENOMEM, KILN_EFORKED.
 * Threads: any. Blocks: never.
 */
KILN_INLINE kiln_status kiln_stream_create(kiln_stream **out,
                                           kiln_device *device,
                                           const kiln_stream_opts *opts);

/**
 * Wraps a stream that the caller created. The caller keeps owning `handle`.
 *
 * @param[out] out  yours, free with kiln_stream_free(); NULL on failure.
 * @param device    must outlive the stream; the stream belongs to its context.
 * @param handle    a stream, or one of the driver's special handles: NULL (the
 *                  default stream), 1 (legacy) or 2 (per thread).
 * @retval KILN_OK, KILN_EINVAL (also for a stream of another context),
 *         KILN_EDRIVER, KILN_ENOMEM, KILN_EFORKED.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_stream_wrap(kiln_stream **out, kiln_device *device,
                                      CUstream handle);

/** Frees a stream; NULL is allowed. Work that is already queued still runs. The
 * handle of a wrapped stream stays open. Threads: no other thread may use the
 * stream. Blocks: never, except on a device without memory pools, if operations
 * (ops.h) ran in the stream: then until its work is done. */
KILN_API void kiln_stream_free(kiln_stream *stream);

/** Returns the driver's handle, which the stream keeps owning; NULL for NULL.
 * Threads: any. Blocks: never. */
KILN_API CUstream kiln_stream_handle(const kiln_stream *stream);

/** Returns the device that the stream belongs to; NULL for NULL. Borrowed.
 * Threads: any. Blocks: never. */
KILN_API kiln_device *kiln_stream_device(const kiln_stream *stream);

/** Waits until everything that is queued in the stream is done.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE,
 *         KILN_EFORKED. Threads: any. Blocks: until the work is done. */
KILN_API kiln_status kiln_stream_synchronize(kiln_stream *stream);

/** Checks whether everything that is queued in the stream is done.
 * @retval KILN_OK (all is done), KILN_ENOTREADY, KILN_EINVAL, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_ECAPTURE, KILN_EFORKED.
 * Threads: any. Blocks: never. */
KILN_API kiln_status kiln_stream_query(kiln_stream *stream);

/** Makes work that is queued in the stream from now on wait for an event, which
 * may belong to another stream or device.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never. May be captured. */
KILN_API kiln_status kiln_stream_wait(kiln_stream *stream, kiln_event *event);

/** Checks whether the stream is being captured into a graph.
 * @param[out] out  the answer; false on failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never. */
KILN_API kiln_status kiln_stream_capturing(const kiln_stream *stream,
                                           bool *out);

/** Records every launch, copy and fill that goes through the stream into a
 * timeline (timeline.h).
 * @param timeline  of the same context; NULL stops recording. Must outlive the
 *                  stream or be detached before it is freed.
 * @retval KILN_OK, KILN_EINVAL. Threads: no other thread may use the stream
 * during the call. Blocks: never. */
KILN_API kiln_status kiln_stream_attach(kiln_stream *stream,
                                        kiln_timeline *timeline);

/** A host function that the driver calls from a thread of its own. It must not
 * call Kiln or CUDA. */
typedef void (*kiln_host_fn)(void *user);

/**
 * Queues a host function. It runs once, when the work before it in the stream is
 * done; later work in the stream waits until it returns.
 *
 * @param fn    must not call Kiln or CUDA, and not wait for device work.
 * @param user  passed to fn; must stay valid until fn has run. In a captured
 *              stream, fn runs at each launch of the graph.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never. May be captured.
 */
KILN_API kiln_status kiln_stream_call(kiln_stream *stream, kiln_host_fn fn,
                                      void *user);

/* ---- Events --------------------------------------------------------------- */

/**
 * Creates an event.
 *
 * @param[out] out  yours, free with kiln_event_free(); NULL on failure.
 * @param device    must outlive the event.
 * @param timing    the event can be used with kiln_event_elapsed(). Events
 *                  without timing cost the GPU less.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ENOMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: any. Blocks: never.
 */
KILN_API kiln_status kiln_event_create(kiln_event **out, kiln_device *device,
                                       bool timing);
/** Frees an event; NULL is allowed. It may still be pending. Threads: no other
 * thread may use the event. Blocks: never. */
KILN_API void kiln_event_free(kiln_event *event);
/** Returns the driver's handle, which the event keeps owning; NULL for NULL.
 * Threads: any. Blocks: never. */
KILN_API CUevent kiln_event_handle(const kiln_event *event);
/** Queues an event at the present end of a stream.
 * @param stream  NULL: the default stream of the event's device.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: never. May be captured. */
KILN_API kiln_status kiln_event_record(kiln_event *event, kiln_stream *stream);
/** Waits until an event is reached. An event that was never recorded counts as
 * reached.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Threads: any. Blocks: until the event is reached. */
KILN_API kiln_status kiln_event_synchronize(kiln_event *event);
/** Checks whether an event is reached. An event that was never recorded counts
 * as reached.
 * @retval KILN_OK (reached), KILN_ENOTREADY, KILN_EINVAL, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_EFORKED. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_event_query(kiln_event *event);
/** Measures the time between two events by the GPU's clock, with a resolution of
 * about 0.5 us.
 * @param[out] ms  milliseconds from `from` to `to`; 0 on failure.
 * @param from     reached, created with timing, as is `to`.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTREADY, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_event_elapsed(float *ms, kiln_event *from,
                                        kiln_event *to);

/* ---- Graphs: capture work once, launch it many times ----------------------
 *
 *   kiln_graph_begin(stream);
 *   ... launches, copies, fills, operations in `stream` ...
 *   kiln_graph_end(&graph, stream);
 *   for (...) kiln_graph_launch(graph, stream);
 *   kiln_graph_free(graph);
 *
 * Nothing runs during the capture. Calls that would wait for the stream are
 * refused with KILN_ECAPTURE. Compiling, loading and allocating are allowed and
 * are not captured. Memory, modules and workspaces that the work uses must
 * outlive the graph. */

/**
 * Begins to capture a stream into a graph. Other threads are not restricted
 * while the capture lasts (CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).
 *
 * @param stream  not the legacy default stream.
 * @retval KILN_OK, KILN_EINVAL, KILN_ECAPTURE (it is being captured already),
 *         KILN_EUNSUPPORTED (driver too old), KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Threads: end the capture in the thread that began it. Blocks: never.
 */
KILN_API kiln_status kiln_graph_begin(kiln_stream *stream);

/**
 * Ends a capture and instantiates the graph, so that it can be launched.
 *
 * @param[out] out  yours, free with kiln_graph_free(); NULL on failure. The
 *                  capture has ended in either case.
 * @param stream    the stream of kiln_graph_begin(), not NULL. Streams that
 *                  joined the capture must have been joined back.
 * @retval KILN_OK, KILN_EINVAL (also if no capture was begun), KILN_EDRIVER (the
 *         capture was invalidated), KILN_EDEVMEM, KILN_ENOMEM, KILN_ESTICKY,
 *         KILN_EUNSUPPORTED, KILN_EFORKED.
 * Threads: as kiln_graph_begin(). Blocks: never.
 */
KILN_API kiln_status kiln_graph_end(kiln_graph **out, kiln_stream *stream);

/** Queues all work of a graph in a stream of the same context. Launches of one
 * graph run one after another.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_EFORKED. Threads: one at a time per graph. Blocks: only while the
 * device's queue is full. */
KILN_API kiln_status kiln_graph_launch(kiln_graph *graph, kiln_stream *stream);

/** Returns the driver's handle, which the graph keeps owning; NULL for NULL.
 * Threads: any. Blocks: never. */
KILN_API CUgraphExec kiln_graph_handle(const kiln_graph *graph);

/** Frees a graph; NULL is allowed. Launches that are queued still run. Threads:
 * no other thread may use the graph. Blocks: never. */
KILN_API void kiln_graph_free(kiln_graph *graph);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

KILN__SIZED(kiln_stream_create,
            (kiln_stream * *out, kiln_device *device,
             const kiln_stream_opts *opts),
            (size_t opts_size), (out, device, opts, sizeof *opts))

#ifdef __cplusplus
}
#endif
#endif
