/* nbody.cu -- accelerations of n bodies, computed from all pairs of bodies
 * (samples/README.md, row B15).
 *
 * Idea: a block repeatedly stages KILN_BLOCK bodies in shared memory, where all threads
 * of the block read them (Nyland, Harris and Prins, Fast N-Body Simulation with CUDA,
 * 2007).
 *
 * Parameters: KILN_BLOCK (default 256) is the number of threads per block, a multiple of
 *             32 and at most 1024.
 * Launch: n / KILN_BLOCK blocks of KILN_BLOCK threads; n is a multiple of KILN_BLOCK.
 * Result: a[i] is the sum over all j of m[j] * d / (|d|^2 + softening)^(3/2), where d is
 *         the vector from body i to body j. m[j] is the mass of body j, which is member w
 *         of body[j]. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    nbody(float4 *a, const float4 *body, unsigned n, float softening)
{
  __shared__ float4 tile[KILN_BLOCK];
  const unsigned i = blockIdx.x * KILN_BLOCK + threadIdx.x;
  const float4 mine = body[i];
  float ax = 0, ay = 0, az = 0;

  for (unsigned first = 0; first < n; first += KILN_BLOCK) {
    tile[threadIdx.x] = body[first + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (unsigned k = 0; k < KILN_BLOCK; k++) {
      const float dx = tile[k].x - mine.x;
      const float dy = tile[k].y - mine.y;
      const float dz = tile[k].z - mine.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float s = tile[k].w * inverse * inverse * inverse;

      ax += s * dx;
      ay += s * dy;
      az += s * dz;
    }
    __syncthreads();
  }
  a[i] = make_float4(ax, ay, az, 0);
}
