/* scatter_passes.cu -- one pass of the lecture's multi-pass scatter: all of x and
 * index is read, what falls into one chunk of the target is written. While the
 * chunk is small enough for the cache, each of its lines is brought there once.
 *
 * Launch:      any grid and block; one thread an element; once for each chunk.
 *              x, index     n elements
 *              out          the target
 *              begin, end   the chunk: places begin <= index < end
 * Result:      out[index[i]] = x[i] where index[i] is in the chunk. */
extern "C" __global__ void scatter_passes(const float *x, const unsigned *index,
                                          float *out, unsigned n,
                                          unsigned begin, unsigned end)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n && begin <= index[i] && index[i] < end)
    out[index[i]] = x[i];
}
