/* symbols.cu -- variables in device, constant and shared memory that the host reads
 * and writes by name (samples/README.md, row B1).
 *
 * Symbols: factor        float in device memory
 *          coefficients  float[4] in constant memory, which holds c0, c1, c2, c3
 *          counter       unsigned in device memory; each launch adds n to counter
 * Launch: one thread per element in one dimension.
 * Result: y[i] = factor * (c0 + c1 x + c2 x^2 + c3 x^3) with x = x[i]. */
extern "C" {
__device__ float factor = 1.0f;
__constant__ float coefficients[4];
__device__ unsigned counter;
}

extern "C" __global__ void polynomial(const float *x, float *y, unsigned n)
{
  /* This shared variable exists only while its block runs. */
  __shared__ unsigned in_block;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (threadIdx.x == 0)
    in_block = 0;
  __syncthreads();

  if (i < n) {
    const float v = x[i];
    float p = coefficients[3];

    p = fmaf(p, v, coefficients[2]);
    p = fmaf(p, v, coefficients[1]);
    p = fmaf(p, v, coefficients[0]);
    y[i] = factor * p;
    atomicAdd(&in_block, 1u);
  }
  __syncthreads();

  if (threadIdx.x == 0)
    atomicAdd(&counter, in_block);
}
