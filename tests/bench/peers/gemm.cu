/* gemm.cu -- cuBLAS's matrix products, with which `kiln bench gemm` compares Kiln.
 * Matrices are in row-major order: D^T = B^T A^T is cuBLAS's column-major product. */
#include "peer.h"

#include <cublas_v2.h>
#include <cuda_bf16.h>

/* The same struct as in the command's bench_gemm.c. `type` is a row of `types`. If
 * `gelu` is set, a second kernel adds the vector `bias` (bf16, one element per column)
 * and applies GELU, as a program without fused epilogues does. */
struct kiln_peer_gemm_call {
  const void *a, *b, *bias;
  void *d;
  unsigned long long m, n, k, batch;
  int type, transposed_b, gelu;
  void *stream;
};

namespace
{

const struct {
  cudaDataType_t in, out;
  cublasComputeType_t compute;
} types[] = {{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
             {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
             {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F},
             {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
             {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
             {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F}};

__global__ void add_bias_gelu(__nv_bfloat16 *d, const __nv_bfloat16 *bias,
                              unsigned long long n, unsigned long long all)
{
  const unsigned long long i =
      static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;

  if (i < all) {
    const float v = __bfloat162float(d[i]) + __bfloat162float(bias[i % n]);

    d[i] = __float2bfloat16(0.5f * v * (1 + erff(v * 0.70710678f)));
  }
}

} // namespace

extern "C" __attribute__((visibility("default"))) int
kiln_peer_gemm(const kiln_peer_gemm_call *c)
{
  static cublasHandle_t handle;
  const float one32 = 1, zero32 = 0;
  const double one64 = 1, zero64 = 0;
  const int one = 1, zero = 0;
  const int m = static_cast<int>(c->m), n = static_cast<int>(c->n),
            k = static_cast<int>(c->k);
  const bool wide = c->type == 5, whole = c->type == 4;
  const void *alpha = wide ? static_cast<const void *>(&one64)
                      : whole ? static_cast<const void *>(&one)
                              : &one32;
  const void *beta = wide ? static_cast<const void *>(&zero64)
                     : whole ? static_cast<const void *>(&zero)
                             : &zero32;
  const auto &t = types[c->type];
  int code;

  if (handle == nullptr)
    cublasCreate(&handle);
  cublasSetStream(handle, static_cast<cudaStream_t>(c->stream));
  code = cublasGemmStridedBatchedEx(
      handle, c->transposed_b ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, n, m, k,
      alpha, c->b, t.in, c->transposed_b ? k : n, 1ll * k * n, c->a, t.in, k,
      1ll * m * k, beta, c->d, t.out, n, 1ll * m * n,
      static_cast<int>(c->batch), t.compute, CUBLAS_GEMM_DEFAULT);
  if (code == 0 && c->gelu) {
    const unsigned long long all = c->m * c->n;

    add_bias_gelu<<<static_cast<unsigned>((all + 255) / 256), 256, 0,
                    static_cast<cudaStream_t>(c->stream)>>>(
        static_cast<__nv_bfloat16 *>(c->d),
        static_cast<const __nv_bfloat16 *>(c->bias), c->n, all);
    code = static_cast<int>(cudaGetLastError());
  }
  return code;
}
