/* matrix_add.cu -- c = a + b for row-major matrices of rows x cols elements
 * (samples/README.md, row E1).
 *
 * Launch: one thread per element, x over columns and y over rows: one block for a
 *         small matrix, or a two-dimensional grid that covers it.
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
