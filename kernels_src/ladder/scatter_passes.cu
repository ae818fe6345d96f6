/* scatter_passes.cu -- one pass of a multi-pass scatter (He et al., Efficient Gather
 * and Scatter Operations on Graphics Processors, 2007). A pass reads all of x and index,
 * and writes only the elements of one chunk of out. If the chunk fits in the cache, each
 * cache line of the chunk is loaded once.
 *
 * Launch: one thread per element, with blocks of any size; one launch per chunk.
 *         x, index     n elements
 *         out          the array that receives the elements
 *         begin, end   the chunk consists of the indices from begin to end - 1
 * Result: out[index[i]] = x[i] for every index[i] in the chunk. */
extern "C" __global__ void scatter_passes(const float *x, const unsigned *index,
                                          float *out, unsigned n,
                                          unsigned begin, unsigned end)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n && begin <= index[i] && index[i] < end)
    out[index[i]] = x[i];
}
