/* python_calls.c -- the operations of Kiln that python_peers.py times, as functions
 * with plain arguments, which Python's ctypes can call. They run in a stream of the
 * caller's, so that one pair of events times Kiln and the other libraries alike.
 *
 * All functions but kiln_python_open() return 0, or a kiln_status whose message
 * kiln_python_error() returns. */
#include <kiln/kiln.h>

#include <string.h>

typedef struct python_rig {
  kiln_runtime *rt;
  kiln_device *device;
  kiln_stream *stream;
  kiln_workspace workspace; /* temporary storage of matrix products */
} python_rig;

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *kiln_python_error(void);
EXPORT int kiln_python_open(python_rig *rig, int ordinal, void *stream,
                            CUdeviceptr workspace, size_t bytes);
EXPORT int kiln_python_gemm(const python_rig *rig, const char *type,
                            CUdeviceptr a, CUdeviceptr b, CUdeviceptr bias,
                            CUdeviceptr d, uint64_t m, uint64_t n, uint64_t k,
                            uint64_t batch, const char *epilogue);
EXPORT int kiln_python_stencil(const python_rig *rig, CUdeviceptr x,
                               CUdeviceptr y, uint64_t width, uint64_t height,
                               uint32_t radius, int separable,
                               const double *weights);
EXPORT int kiln_python_picture(const python_rig *rig, CUdeviceptr y,
                               uint64_t side, const char *preamble,
                               const char *expr);

const char *kiln_python_error(void)
{
  return kiln_last_error()->message;
}

/* Opens the GPU. `stream` is a stream of its primary context. `workspace` is
 * memory of at least the size that any product needs, as cuBLAS keeps in PyTorch.
 * The process's end frees what this call allocates. */
int kiln_python_open(python_rig *rig, int ordinal, void *stream,
                     CUdeviceptr workspace, size_t bytes)
{
  kiln_status st = kiln_runtime_create(&rig->rt, NULL);

  rig->workspace = (kiln_workspace){workspace, bytes};
  if (st == KILN_OK)
    st = kiln_device_open(&rig->device, rig->rt, ordinal, NULL);
  if (st == KILN_OK)
    st = kiln_stream_wrap(&rig->stream, rig->device, (CUstream)stream);
  return (int)st;
}

/* Types of products, by the names that python_peers.py uses. */
static const struct {
  const char *name;
  kiln_dtype in, out;
  kiln_gemm_precision precision;
  kiln_gemm_order order; /* of B */
} types[] = {
    {"f32", KILN_F32, KILN_F32, KILN_GEMM_IEEE, KILN_ROW_MAJOR},
    {"tf32", KILN_F32, KILN_F32, KILN_GEMM_TF32, KILN_ROW_MAJOR},
    {"f16", KILN_F16, KILN_F16, KILN_GEMM_IEEE, KILN_ROW_MAJOR},
    {"bf16", KILN_BF16, KILN_BF16, KILN_GEMM_IEEE, KILN_ROW_MAJOR},
    {"i8", KILN_I8, KILN_I32, KILN_GEMM_IEEE, KILN_COLUMN_MAJOR},
    {"f64", KILN_F64, KILN_F64, KILN_GEMM_IEEE, KILN_ROW_MAJOR},
};

/* D = epilogue(A B). The expression's x is the element of the vector `bias`, of
 * type bf16, for the column; `epilogue` may be NULL. */
int kiln_python_gemm(const python_rig *rig, const char *type, CUdeviceptr a,
                     CUdeviceptr b, CUdeviceptr bias, CUdeviceptr d, uint64_t m,
                     uint64_t n, uint64_t k, uint64_t batch,
                     const char *epilogue)
{
  kiln_gemm_desc desc = {
      .m = m, .n = n, .k = k, .batch = batch, .alpha = 1, .epilogue = epilogue};
  size_t t = 0;

  while (t + 1 < sizeof types / sizeof types[0] &&
         strcmp(types[t].name, type) != 0)
    t++;
  desc.precision = types[t].precision;
  desc.a = (kiln_gemm_matrix){.data = a, .type = types[t].in, .stride = m * k};
  desc.b = (kiln_gemm_matrix){
      .data = b, .type = types[t].in, .order = types[t].order, .stride = k * n};
  desc.d = (kiln_gemm_matrix){.data = d, .type = types[t].out, .stride = m * n};
  if (epilogue != NULL)
    desc.in[0] = (kiln_gemm_input){.x = {bias, KILN_BF16}, .column_stride = 1};
  return (int)kiln_gemm(rig->stream, &desc, &rig->workspace);
}

/* A weighted sum of f32 over a line (height 1) or an image, with zeros beyond the
 * ends, as in PyTorch, or with the last elements repeated if it is separable. */
int kiln_python_stencil(const python_rig *rig, CUdeviceptr x, CUdeviceptr y,
                        uint64_t width, uint64_t height, uint32_t radius,
                        int separable, const double *weights)
{
  const kiln_stencil_desc desc = {.in = {x, KILN_F32},
                                  .out = {y, KILN_F32},
                                  .dims = height > 1 ? 2 : 1,
                                  .size = {width, height > 1 ? height : 0},
                                  .radius = {radius, height > 1 ? radius : 0},
                                  .weights = weights,
                                  .separable = separable != 0,
                                  .border =
                                      separable ? KILN_CLAMP : KILN_CONSTANT};

  return (int)kiln_stencil(rig->stream, &desc, NULL);
}

/* A square picture of u8, an expression of row and column per pixel. */
int kiln_python_picture(const python_rig *rig, CUdeviceptr y, uint64_t side,
                        const char *preamble, const char *expr)
{
  const float scale = 3.0f / (float)side, half = 0.5f * (float)side;
  const kiln_param params[] = {{"scale", KILN_F32, &scale, false},
                               {"half", KILN_F32, &half, false}};
  const kiln_map_desc desc = {
      .out = {{y, KILN_U8}},
      .expr = {expr},
      .n = side * side,
      .code = {.preamble = preamble, .params = params, .n_params = 2},
      .width = side};

  return (int)kiln_map(rig->stream, &desc, NULL);
}
