/* stream_graph.c -- graphs of captured work, and host functions in streams
 * (kiln/stream.h). */
#include "device.h"

struct kiln_graph {
  kiln_device *device;
  CUgraphExec exec;
};

static bool has_graphs(const kiln__driver *driver)
{
  return driver->streamBeginCapture != NULL &&
         driver->streamEndCapture != NULL && driver->graphLaunch != NULL &&
         driver->graphDestroy != NULL && driver->graphExecDestroy != NULL &&
         (driver->graphInstantiateWithFlags != NULL ||
          driver->graphInstantiate != NULL);
}

kiln_status kiln_graph_begin(kiln_stream *stream)
{
  kiln__scope scope;
  kiln_device *device;
  kiln_status st;

  if (stream == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the stream is NULL");
  device = stream->device;
  if (!has_graphs(device->driver))
    return kiln__device_missing("cuStreamBeginCapture_v2");
  st = kiln__enter(device, &scope);
  if (st != KILN_OK)
    return st;
  st = kiln__refuse_capture(device, stream->handle, __func__);
  if (st == KILN_OK)
    st = kiln__device_rc(
        device,
        device->driver->streamBeginCapture(stream->handle,
                                           CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture_v2");
  kiln__leave(&scope);
  return st;
}

/* Returns true if the stream is being captured. An invalidated capture also
 * counts, since it still has to be ended. */
static bool is_captured(const kiln__driver *driver, CUstream handle)
{
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

  return driver->streamIsCapturing(handle, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Instantiates a graph. Drivers before 11.4 have only the older driver
 * function. Call it between kiln__enter() and kiln__leave(). */
static kiln_status instantiate(kiln_graph *g, CUgraph graph)
{
  const kiln__driver *driver = g->device->driver;

  if (driver->graphInstantiateWithFlags != NULL)
    return kiln__device_rc(
        g->device, driver->graphInstantiateWithFlags(&g->exec, graph, 0),
        "cuGraphInstantiateWithFlags");
  return kiln__device_rc(
      g->device, driver->graphInstantiate(&g->exec, graph, NULL, NULL, 0),
      "cuGraphInstantiate_v2");
}

kiln_status kiln_graph_end(kiln_graph **out, kiln_stream *stream)
{
  kiln_status st = KILN_OK;
  kiln_graph *g = NULL;
  CUgraph graph = NULL;
  const kiln__driver *driver;
  kiln__scope scope;

  if (out != NULL)
    *out = NULL;
  if (out == NULL || stream == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out or stream is NULL");
  driver = stream->device->driver;
  if (!has_graphs(driver))
    return kiln__device_missing("cuStreamEndCapture");
  st = kiln__enter(stream->device, &scope);
  if (st != KILN_OK)
    return st;
  if (!is_captured(driver, stream->handle))
    KILN_TRY(kiln__fail(KILN_EINVAL, "call kiln_graph_begin() first",
                        "the stream is not being captured"));
  KILN_TRY(kiln__device_rc(stream->device,
                           driver->streamEndCapture(stream->handle, &graph),
                           "cuStreamEndCapture"));
  g = kiln__calloc(&stream->device->rt->alloc, 1, sizeof *g);
  if (g == NULL)
    KILN_TRY(kiln__fail_memory("a graph"));
  g->device = stream->device;
  KILN_TRY(instantiate(g, graph));
  *out = g;
  g = NULL;

done:
  if (graph != NULL)
    driver->graphDestroy(graph);
  kiln__leave(&scope);
  kiln_graph_free(g);
  return st;
}

kiln_status kiln_graph_launch(kiln_graph *graph, kiln_stream *stream)
{
  kiln_status st;

  if (graph == NULL || stream == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the graph or stream is NULL");
  KILN__IN_SCOPE(st, stream->device, graphLaunch(graph->exec, stream->handle),
                 "cuGraphLaunch");
  return st;
}

CUgraphExec kiln_graph_handle(const kiln_graph *graph)
{
  return graph == NULL ? NULL : graph->exec;
}

void kiln_graph_free(kiln_graph *graph)
{
  kiln__scope scope;

  if (graph == NULL)
    return;
  if (graph->exec != NULL && kiln__enter_to_free(graph->device, &scope)) {
    graph->device->driver->graphExecDestroy(graph->exec);
    kiln__leave(&scope);
  }
  kiln__free(&graph->device->rt->alloc, graph);
}

kiln_status kiln_stream_call(kiln_stream *stream, kiln_host_fn fn, void *user)
{
  kiln_status st;

  if (stream == NULL || fn == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "the stream or fn is NULL");
  KILN__IN_SCOPE(st, stream->device, launchHostFunc(stream->handle, fn, user),
                 "cuLaunchHostFunc");
  return st;
}
