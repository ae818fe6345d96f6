/* shared_memory.cu -- static and dynamic shared memory (samples/README.md, row B5).
 *
 * Launch: reverse_static needs one block of 256 threads, and reverses 256 elements.
 *         reverse_dynamic needs one block of n threads and 4 n bytes of dynamic shared
 *         memory, and reverses n elements.
 * Result: both kernels reverse the order of the elements of x. */
enum { STATIC_SIZE = 256 };

extern "C" __global__ void reverse_static(float *x)
{
  /* The kernel source defines the size of this array. */
  __shared__ float tile[STATIC_SIZE];
  const unsigned i = threadIdx.x;

  tile[i] = x[i];
  __syncthreads();
  x[i] = tile[STATIC_SIZE - 1 - i];
}

extern "C" __global__ void reverse_dynamic(float *x, unsigned n)
{
  /* The launch defines the size of this array. */
  extern __shared__ float dynamic_tile[];
  const unsigned i = threadIdx.x;

  if (i < n)
    dynamic_tile[i] = x[i];
  __syncthreads();
  if (i < n)
    x[i] = dynamic_tile[n - 1 - i];
}
