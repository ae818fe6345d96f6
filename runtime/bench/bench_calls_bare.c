/* bench_calls_bare.c -- measures the cost of a call's launches alone, without
 * Kiln.
 *
 * The call is captured into a graph, whose nodes report the grids and the sizes
 * of the parameters. Then cuLaunchKernel launches the same number of kernels
 * with the same grids and parameters, but with an empty body. The call's own
 * kernels cannot be launched again, since each launch would need newly
 * initialised tile descriptors. */
#include "bench/bench_calls.h"

#include <stdlib.h>
#include <string.h>

/* Types with the driver's own signatures. The command includes no CUDA
 * header. */
typedef struct kernel_node {
  CUfunction function;
  unsigned gx, gy, gz, bx, by, bz, shared;
  void **params, **extra;
} kernel_node;

typedef struct fill_node {
  CUdeviceptr to;
  size_t pitch;
  unsigned value, element_size;
  size_t width, height;
} fill_node;

typedef int (*fill_fn)(CUdeviceptr, unsigned, size_t, CUstream);
typedef int (*begin_fn)(CUstream, int);
typedef int (*end_fn)(CUstream, void **);
typedef int (*nodes_fn)(void *, void **, size_t *);
typedef int (*type_fn)(void *, int *);
typedef int (*params_fn)(void *, kernel_node *);
typedef int (*fill_params_fn)(void *, fill_node *);
typedef int (*destroy_fn)(void *);
typedef int (*param_info_fn)(CUfunction, size_t, size_t *, size_t *);

enum {
  MOST_LAUNCHES = 32,
  MOST_PARAMS = 32,
  NODES = 64,
  MOST_FILLED = 1 << 18, /* maximum number of words that one fill writes */
  KERNEL_NODE = 0,       /* CU_GRAPH_NODE_TYPE_KERNEL */
  FILL_NODE = 2,         /* CU_GRAPH_NODE_TYPE_MEMSET */
  RELAXED = 2            /* CU_STREAM_CAPTURE_MODE_RELAXED */
};

typedef struct bare_launch {
  unsigned gx, gy, gz, bx, by, bz;
  size_t n_params, size[MOST_PARAMS];
  void *values[MOST_PARAMS];
  kiln_kernel *kernel;
} bare_launch;

struct calls_bare {
  cli *c;
  kiln_stream *stream;
  CUcontext context;
  bench_launch_fn launch;
  fill_fn fill;
  bench_set_current_fn set_current;
  begin_fn begin;
  end_fn end;
  nodes_fn nodes;
  type_fn type;
  params_fn params;
  fill_params_fn fill_params;
  destroy_fn destroy;
  /* Driver function that reports the sizes of kernel parameters, or NULL before
   * CUDA 12.4. Without the function, each parameter is assumed to have 8
   * bytes. */
  param_info_fn param_info;
  kiln_module *module;
  /* Number of fills, and number of words that the largest fill writes. All
   * other fills are small. */
  size_t n_fills, words;
  CUdeviceptr filled;
  size_t n;
  bare_launch list[MOST_LAUNCHES];
  /* Bytes that are passed as the value of every parameter. The parameters of a
   * kernel take at most 4,096 bytes. */
  _Alignas(16) unsigned char value[4096];
};

static void *find_entries(calls_bare *b, const char **why)
{
  const bench_symbol list[] = {
      {"cuLaunchKernel", &b->launch},
      {"cuMemsetD32Async", &b->fill},
      {"cuCtxSetCurrent", &b->set_current},
      {"cuStreamBeginCapture_v2", &b->begin},
      {"cuStreamEndCapture", &b->end},
      {"cuGraphGetNodes", &b->nodes},
      {"cuGraphNodeGetType", &b->type},
      {"cuGraphKernelNodeGetParams", &b->params},
      {"cuGraphMemsetNodeGetParams", &b->fill_params},
      {"cuGraphDestroy", &b->destroy},
      {NULL, NULL},
  };
  void *library = kiln__bench_driver_symbols(b->c, list, why);

  if (library != NULL)
    kiln__bench_symbol(library, "cuFuncGetParamInfo", &b->param_info);
  return library;
}

calls_bare *kiln__bench_bare_open(cli *c, kiln_stream *stream, const char **why)
{
  kiln_device *device = kiln_stream_device(stream);
  calls_bare *b = kiln__cli_alloc(c, 1, sizeof *b);

  b->c = c;
  b->stream = stream;
  if (find_entries(b, why) == NULL)
    return NULL;
  *why = "there is no memory to fill";
  if (kiln_device_context(device, &b->context) != KILN_OK ||
      kiln_memory_alloc(&b->filled, device, 4 * MOST_FILLED) != KILN_OK)
    return NULL;
  return b;
}

void kiln__bench_bare_current(const calls_bare *b, bool current)
{
  if (b != NULL)
    b->set_current(current ? b->context : NULL);
}

/* ---- Recording of a call's launches ------------------------------------- */

/* Records the grid and the parameter sizes of a kernel node. */
static void take_kernel(calls_bare *b, const kernel_node *node)
{
  bare_launch *l = &b->list[b->n];
  size_t offset;

  *l = (bare_launch){node->gx, node->gy, node->gz, node->bx, node->by,
                     node->bz, 0,        {0},      {0},      NULL};
  if (b->param_info == NULL)
    for (; l->n_params < 8; l->n_params++)
      l->size[l->n_params] = 8;
  else
    while (l->n_params < MOST_PARAMS &&
           b->param_info(node->function, l->n_params, &offset,
                         &l->size[l->n_params]) == 0)
      l->n_params++;
  for (size_t i = 0; i < l->n_params; i++)
    l->values[i] = b->value;
  b->n++;
}

/* Records the size of a fill if it is the largest so far. */
static kiln_status take_fill(calls_bare *b, void *node)
{
  fill_node f = {0};
  size_t words;

  if (b->fill_params(node, &f) != 0)
    return KILN_EDRIVER;
  words = f.width * f.height * f.element_size / 4;
  if (words > b->words)
    b->words = words < MOST_FILLED ? words : MOST_FILLED;
  return KILN_OK;
}

/* Records every kernel and fill of the graph. */
static kiln_status take_graph(calls_bare *b, void *graph)
{
  void *node[NODES];
  size_t n = NODES;

  b->n = 0;
  b->words = 1;
  if (b->nodes(graph, node, &n) != 0)
    return KILN_EDRIVER;
  for (size_t i = 0; i < n && i < NODES && b->n < MOST_LAUNCHES; i++) {
    kernel_node params = {0};
    int type;

    if (b->type(node[i], &type) != 0)
      return KILN_EDRIVER;
    if (type == FILL_NODE && take_fill(b, node[i]) != KILN_OK)
      return KILN_EDRIVER;
    if (type != KERNEL_NODE)
      continue;
    if (b->params(node[i], &params) != 0)
      return KILN_EDRIVER;
    take_kernel(b, &params);
  }
  return KILN_OK;
}

/* Captures the call with a preallocated workspace, so that the graph contains
 * no allocation. */
static kiln_status capture(calls_bare *b, const calls_case *call,
                           const calls_data *d, void **graph)
{
  kiln_device *device = kiln_stream_device(b->stream);
  kiln_workspace space = {0};
  CUstream handle = kiln_stream_handle(b->stream);
  kiln_status st = call->call(b->stream, d, NULL, &space.size);

  if (st == KILN_OK && space.size > 0)
    st = kiln_memory_alloc(&space.data, device, space.size);
  kiln__bench_bare_current(b, true);
  if (st == KILN_OK && b->begin(handle, RELAXED) != 0)
    st = KILN_EDRIVER;
  if (st == KILN_OK) {
    st = call->call(b->stream, d, space.data != 0 ? &space : NULL, NULL);
    if (b->end(handle, graph) != 0)
      st = KILN_EDRIVER;
  }
  kiln__bench_bare_current(b, false);
  kiln_memory_free(device, space.data);
  return st;
}

/* ---- Kernels with the same parameters and an empty body ----------------- */

/* Compiles kernels with the recorded parameters and an empty body. Each
 * parameter is a struct of the recorded size, with the most likely alignment
 * of the original parameter. */
static kiln_status make_kernels(calls_bare *b)
{
  const char *source =
      "template <unsigned n> struct alignas(n % 8 == 0 ? 8 : n "
      "% 4 == 0 ? 4 : 1) p\n{\n  unsigned char byte[n];\n};\n";
  kiln_program_desc desc = {.name = "bare.cu"};
  kiln_status st;

  for (size_t k = 0; k < b->n; k++) {
    source = kiln__cli_text(b->c, "%sextern \"C\" __global__ void bare%zu(",
                            source, k);
    for (size_t i = 0; i < b->list[k].n_params; i++)
      source = kiln__cli_text(b->c, "%s%sp<%zu>", source, i == 0 ? "" : ", ",
                              b->list[k].size[i]);
    source = kiln__cli_text(b->c, "%s) {}\n", source);
  }
  desc.source = source;
  kiln_module_free(b->module);
  b->module = NULL;
  st = kiln_module_load(&b->module, kiln_stream_device(b->stream), &desc);
  for (size_t k = 0; st == KILN_OK && k < b->n; k++)
    st = kiln_module_kernel(&b->list[k].kernel, b->module,
                            kiln__cli_text(b->c, "bare%zu", k));
  return st;
}

kiln_status kiln__bench_bare_record(calls_bare *b, const calls_case *call,
                                    const calls_data *d, size_t fills)
{
  void *graph = NULL;
  kiln_status st = capture(b, call, d, &graph);

  b->n_fills = fills;
  if (st == KILN_OK) {
    kiln__bench_bare_current(b, true);
    st = take_graph(b, graph);
    kiln__bench_bare_current(b, false);
  }
  if (graph != NULL)
    b->destroy(graph);
  return st == KILN_OK ? make_kernels(b) : st;
}

bool kiln__bench_bare_fire(const calls_bare *b)
{
  CUstream stream = kiln_stream_handle(b->stream);
  int rc = 0;

  for (size_t k = 0; k < b->n_fills; k++)
    rc |= b->fill(b->filled, 0, k == 0 ? b->words : 1, stream);
  for (size_t k = 0; k < b->n; k++) {
    const bare_launch *l = &b->list[k];

    rc |=
        b->launch(kiln_kernel_handle(l->kernel), l->gx, l->gy, l->gz, l->bx,
                  l->by, l->bz, 0, stream, (void **)(uintptr_t)l->values, NULL);
  }
  return rc == 0;
}

void kiln__bench_bare_close(calls_bare *b)
{
  if (b == NULL)
    return;
  kiln_module_free(b->module);
  kiln_memory_free(kiln_stream_device(b->stream), b->filled);
}
