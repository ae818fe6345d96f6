/* shared_memory.cu -- static and dynamic shared memory (samples/README.md, row B5).
 *
 * Launch: reverse_static takes one block of 256 threads for 256 elements.
 *         reverse_dynamic takes one block of n threads and 4 n bytes of dynamic shared
 *         memory, whose size the launch chooses.
 * Result: x in reverse order. */
enum { STATIC_SIZE = 256 };

extern "C" __global__ void reverse_static(float *x)
{
  __shared__ float tile[STATIC_SIZE]; /* the size is part of the program */
  const unsigned i = threadIdx.x;

  tile[i] = x[i];
  __syncthreads();
  x[i] = tile[STATIC_SIZE - 1 - i];
}

extern "C" __global__ void reverse_dynamic(float *x, unsigned n)
{
  extern __shared__ float dynamic_tile[]; /* the launch sets the size */
  const unsigned i = threadIdx.x;

  if (i < n)
    dynamic_tile[i] = x[i];
  __syncthreads();
  if (i < n)
    x[i] = dynamic_tile[n - 1 - i];
}
