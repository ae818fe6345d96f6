// Asynchronous copies to shared memory, on devices that support such copies.
extern "C" __global__ void copies(const int *in, int *out, int)
{
  __shared__ __align__(16) int s[2][256];
  const int t = threadIdx.x;

#if __CUDA_ARCH__ >= 800
  for (int k = 0; k < 2; k++) {
    const unsigned at =
        (unsigned)__cvta_generic_to_shared(&s[k][(t % 64) * 4]);

    if (t < 64)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at),
                   "l"(in + k * 256 + t * 4)
                   : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_group 1;" ::: "memory");
#else
  s[0][t] = in[t];
  s[1][t] = in[256 + t];
#endif
  __syncthreads();
  const int first = s[0][255 - t];
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncthreads();
  out[t] = first - s[1][t ^ 7];
}
