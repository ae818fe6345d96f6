/* ids.cu -- a table of the block and thread indices of all threads (samples/README.md,
 * row A4).
 *
 * Launch: any grid and block in one, two or three dimensions.
 * Result: out receives one row of nine numbers per thread, in the order of the global
 *         thread numbers. A row contains blockIdx (x, y, z), threadIdx (x, y, z), the
 *         number of the block in the grid, the number of the thread in the block, and
 *         the global number of the thread. */
extern "C" __global__ void ids(unsigned *out)
{
  const unsigned block =
      (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread =
      (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned id = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  unsigned *row = out + static_cast<size_t>(id) * 9;

  row[0] = blockIdx.x;
  row[1] = blockIdx.y;
  row[2] = blockIdx.z;
  row[3] = threadIdx.x;
  row[4] = threadIdx.y;
  row[5] = threadIdx.z;
  row[6] = block;
  row[7] = thread;
  row[8] = id;
}
