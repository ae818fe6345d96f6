/* matrix_add.cu -- sum c = a + b of row-major matrices with rows x cols elements
 * (samples/README.md, row E1).
 *
 * Launch: one thread per element, where x is the column and y is the row. A small matrix
 *         needs one block, and a larger matrix needs a two-dimensional grid.
 * Result: c[row][col] = a[row][col] + b[row][col] */
extern "C" __global__ void matrix_add(const float *a, const float *b, float *c,
                                      unsigned rows, unsigned cols)
{
  const unsigned col = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;

  if (row < rows && col < cols) {
    const size_t i = static_cast<size_t>(row) * cols + col;

    c[i] = a[i] + b[i];
  }
}
