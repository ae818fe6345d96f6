/* python_calls.c -- the operations of Kiln that python_peers.py times, as functions
 * with plain arguments, which Python's ctypes can call. They run in a stream of the
 * caller's, so that one pair of events times Kiln and the other libraries alike.
 *
 * All functions but kiln_python_open() return 0, or a kiln_status whose message
 * kiln_python_error() returns. */
#include <kiln/kiln.h>

typedef struct python_rig {
  kiln_runtime *rt;
  kiln_device *device;
  kiln_stream *stream;
} python_rig;

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *kiln_python_error(void);
EXPORT int kiln_python_open(python_rig *rig, int ordinal, void *stream);
EXPORT int kiln_python_gemm(const python_rig *rig, CUdeviceptr a, CUdeviceptr b,
                            CUdeviceptr bias, CUdeviceptr d, uint64_t side,
                            const char *epilogue);
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

/* Opens the GPU. `stream` is a stream of its primary context. The process's end
 * frees what this call allocates. */
int kiln_python_open(python_rig *rig, int ordinal, void *stream)
{
  kiln_status st = kiln_runtime_create(&rig->rt, NULL);

  if (st == KILN_OK)
    st = kiln_device_open(&rig->device, rig->rt, ordinal, NULL);
  if (st == KILN_OK)
    st = kiln_stream_wrap(&rig->stream, rig->device, (CUstream)stream);
  return (int)st;
}

/* D = epilogue(A B) for square matrices of bf16. The expression's x is the element
 * of the vector `bias` for the column. */
int kiln_python_gemm(const python_rig *rig, CUdeviceptr a, CUdeviceptr b,
                     CUdeviceptr bias, CUdeviceptr d, uint64_t side,
                     const char *epilogue)
{
  const kiln_gemm_desc desc = {
      .m = side,
      .n = side,
      .k = side,
      .a = {.data = a, .type = KILN_BF16},
      .b = {.data = b, .type = KILN_BF16},
      .d = {.data = d, .type = KILN_BF16},
      .alpha = 1,
      .epilogue = epilogue,
      .in = {{.x = {bias, KILN_BF16}, .column_stride = 1}}};

  return (int)kiln_gemm(rig->stream, &desc, NULL);
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
