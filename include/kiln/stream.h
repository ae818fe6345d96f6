/* stream.h -- streams, events, graphs and host functions.
 *
 * Work in one stream runs in the order in which it was queued. Work in
 * different streams may overlap. kiln_stream_wait() makes a stream wait for an
 * event that was recorded in another stream.
 *
 * If a function allows NULL instead of a stream, its contract says so. NULL
 * then means the default stream of the device's context. To pass the default
 * stream to any other function, wrap the handle NULL with
 * kiln_stream_wrap(). */
#ifndef KILN_STREAM_H
#define KILN_STREAM_H

#include <kiln/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Streams ------------------------------------------------------------- */

/** Options of a stream. Initialise the struct with {0}. */
typedef struct kiln_stream_opts {
  bool blocking; /**< whether the stream and the legacy default stream wait for
                      each other; by default they do not */
  int priority;  /**< priority of the stream; lower values run first. Clamped to
                      the range that the device supports */
} kiln_stream_opts;

/**
 * Creates a stream.
 *
 * @param[out] out  the stream; the caller frees it with kiln_stream_free().
 *                  NULL on failure.
 * @param device    the device of the stream; must outlive the stream.
 * @param opts      options; NULL selects all defaults. Borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_ENOMEM, KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_INLINE kiln_status kiln_stream_create(kiln_stream **out,
                                           kiln_device *device,
                                           const kiln_stream_opts *opts);

/**
 * Wraps a stream that the caller has created with the driver. The caller
 * remains the owner of `handle`.
 *
 * @param[out] out  the stream; the caller frees it with kiln_stream_free().
 *                  NULL on failure.
 * @param device    the device whose context the stream belongs to; must outlive
 *                  the stream.
 * @param handle    a driver stream or one of the driver's special handles: NULL
 *                  (default stream), 1 (legacy default stream) or 2 (per-thread
 *                  default stream).
 * @retval KILN_OK, KILN_EINVAL (also for a stream of another context),
 *         KILN_EDRIVER, KILN_ENOMEM, KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_stream_wrap(kiln_stream **out, kiln_device *device,
                                      CUstream handle);

/** Frees a stream; NULL is allowed. Work that is already queued still runs. If
 * the stream was wrapped, the handle of the driver stays valid.
 * Not thread-safe: no other thread may use the stream. Never blocks, with one
 * exception: if operations (ops.h) ran in the stream on a device without memory
 * pools, the call blocks until the work in the stream is done. */
KILN_API void kiln_stream_free(kiln_stream *stream);

/** Returns the driver's handle of the stream, or NULL for NULL. The call does
 * not transfer ownership of the handle.
 * Thread-safe. Never blocks. */
KILN_API CUstream kiln_stream_handle(const kiln_stream *stream);

/** Returns the device that the stream belongs to, or NULL for NULL. The caller
 * does not own the result.
 * Thread-safe. Never blocks. */
KILN_API kiln_device *kiln_stream_device(const kiln_stream *stream);

/** Waits until all work that is queued in a stream is done.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE,
 *         KILN_EFORKED.
 * Thread-safe. Blocks until the work is done. */
KILN_API kiln_status kiln_stream_synchronize(kiln_stream *stream);

/** Checks whether all work that is queued in a stream is done.
 * @retval KILN_OK (all work is done), KILN_ENOTREADY, KILN_EINVAL,
 *         KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_stream_query(kiln_stream *stream);

/** Makes all work that is queued in the stream after this call wait for an
 * event. The event may belong to another stream or device. The call may be
 * captured.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_stream_wait(kiln_stream *stream, kiln_event *event);

/** Checks whether a stream is being captured into a graph.
 * @param[out] out  true if the stream is being captured; false otherwise and on
 *                  failure.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_stream_capturing(const kiln_stream *stream,
                                           bool *out);

/** Attaches a timeline (timeline.h) to a stream. From then on the timeline
 * records every launch, copy and fill in the stream.
 * @param timeline  a timeline of the same context; NULL stops the recording.
 *                  Either the timeline outlives the stream, or it must be
 *                  detached from the stream before it is freed.
 * @retval KILN_OK, KILN_EINVAL.
 * Not thread-safe: no other thread may use the stream during the call. Never
 * blocks. */
KILN_API kiln_status kiln_stream_attach(kiln_stream *stream,
                                        kiln_timeline *timeline);

/** A host function, which the driver calls from one of its own threads. The
 * function must not call Kiln or CUDA. */
typedef void (*kiln_host_fn)(void *user);

/**
 * Queues a host function in a stream. The driver calls the function once, after
 * the preceding work in the stream is done. Later work in the stream waits
 * until the function returns. The call may be captured.
 *
 * @param fn    host function; must not call Kiln or CUDA, and must not wait for
 *              device work.
 * @param user  pointer that is passed to fn; must stay valid until fn has run.
 *              If the stream is being captured, fn runs at each launch of the
 *              graph.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_stream_call(kiln_stream *stream, kiln_host_fn fn,
                                      void *user);

/* ---- Events -------------------------------------------------------------- */

/**
 * Creates an event.
 *
 * @param[out] out  the event; the caller frees it with kiln_event_free(). NULL
 *                  on failure.
 * @param device    the device of the event; must outlive the event.
 * @param timing    whether kiln_event_elapsed() may use the event. Events
 *                  without timing have less overhead on the GPU.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ENOMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_API kiln_status kiln_event_create(kiln_event **out, kiln_device *device,
                                       bool timing);
/** Frees an event; NULL is allowed. The event may still be pending.
 * Not thread-safe: no other thread may use the event. Never blocks. */
KILN_API void kiln_event_free(kiln_event *event);
/** Returns the driver's handle of the event, or NULL for NULL. The call does
 * not transfer ownership of the handle.
 * Thread-safe. Never blocks. */
KILN_API CUevent kiln_event_handle(const kiln_event *event);
/** Records an event in a stream: the event is reached when all work queued so
 * far is done. The call may be captured.
 * @param stream  stream to record in; NULL means the default stream of the
 *                event's device.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_event_record(kiln_event *event, kiln_stream *stream);
/** Waits until an event is reached. An event that was never recorded counts as
 * reached.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Blocks until the event is reached. */
KILN_API kiln_status kiln_event_synchronize(kiln_event *event);
/** Checks whether an event is reached. An event that was never recorded counts
 * as reached.
 * @retval KILN_OK (reached), KILN_ENOTREADY, KILN_EINVAL, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_event_query(kiln_event *event);
/** Measures the time between two events with the clock of the GPU. The
 * resolution is about 0.5 us.
 * @param[out] ms  receives the time from `from` to `to` in milliseconds; 0 on
 *                 failure.
 * @param from     first event; `from` and `to` must be created with timing and
 *                 must be reached.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOTREADY, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Never blocks. */
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
 * Captured work does not run during the capture. Calls that would wait for the
 * stream return KILN_ECAPTURE. Compiling, loading and allocating are allowed
 * during a capture but are not captured. Memory, modules and workspaces that
 * the captured work uses must outlive the graph. */

/**
 * Begins to capture a stream into a graph. Other threads are not restricted
 * during the capture (CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).
 *
 * @param stream  stream to capture; must not be the legacy default stream.
 * @retval KILN_OK, KILN_EINVAL, KILN_ECAPTURE (the stream is already being
 *         captured), KILN_EUNSUPPORTED (the driver is too old), KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_EFORKED.
 * Not thread-safe: the thread that begins a capture must also end it. Never
 * blocks.
 */
KILN_API kiln_status kiln_graph_begin(kiln_stream *stream);

/**
 * Ends a capture and instantiates the graph, so that it can be launched.
 *
 * @param[out] out  the graph; the caller frees it with kiln_graph_free(). NULL
 *                  on failure. The capture has ended in either case.
 * @param stream    the stream that was passed to kiln_graph_begin(), not NULL.
 *                  Streams that joined the capture must have been joined back
 *                  into this stream.
 * @retval KILN_OK, KILN_EINVAL (also if the stream is not being captured),
 *         KILN_EDRIVER (the capture was invalidated), KILN_EDEVMEM,
 *         KILN_ENOMEM, KILN_ESTICKY, KILN_EUNSUPPORTED, KILN_EFORKED.
 * Not thread-safe: the thread that began the capture must end it. Never blocks.
 */
KILN_API kiln_status kiln_graph_end(kiln_graph **out, kiln_stream *stream);

/** Queues all work of a graph in a stream of the same context. Several launches
 * of one graph run one after another.
 * @retval KILN_OK, KILN_EINVAL, KILN_EDRIVER, KILN_EDEVMEM, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Not thread-safe: only one thread at a time may launch a graph. Blocks only
 * while the queue of the device is full. */
KILN_API kiln_status kiln_graph_launch(kiln_graph *graph, kiln_stream *stream);

/** Returns the driver's handle of the graph, or NULL for NULL. The call does
 * not transfer ownership of the handle.
 * Thread-safe. Never blocks. */
KILN_API CUgraphExec kiln_graph_handle(const kiln_graph *graph);

/** Frees a graph; NULL is allowed. Launches that are already queued still run.
 * Not thread-safe: no other thread may use the graph. Never blocks. */
KILN_API void kiln_graph_free(kiln_graph *graph);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

KILN__SIZED(kiln_stream_create,
            (kiln_stream * *out, kiln_device *device,
             const kiln_stream_opts *opts),
            (size_t opts_size), (out, device, opts, sizeof *opts))

#ifdef __cplusplus
}
#endif
#endif
