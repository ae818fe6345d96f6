/* scatter_passes.cu -- one pass of a multi-pass scatter (He et al., Efficient Gather
 * and Scatter Operations on Graphics Processors, 2007): it reads all of x and index
 * and writes what falls into one chunk of the target. While the chunk fits in the
 * cache, each of its lines is loaded once.
 *
 * Launch: any grid and block with one thread per element; one launch per chunk.
 *         x, index     n elements
 *         out          the target
 *         begin, end   the chunk: begin <= index < end
 * Result: out[index[i]] = x[i] where index[i] is in the chunk. */
extern "C" __global__ void scatter_passes(const float *x, const unsigned *index,
                                          float *out, unsigned n,
                                          unsigned begin, unsigned end)
{
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n && begin <= index[i] && index[i] < end)
    out[index[i]] = x[i];
}
