/* julia.cu -- image of the Julia set of z -> z^2 + c (samples/README.md, row C4).
 *
 * Launch: one thread per pixel in two dimensions, so that grid * block covers width and
 *         height.
 * Result: steps[y * width + x] is the number of iterations until |z| >= 2, at most 255.
 *         The image spans the coordinates -1.5 to 1.5 in its longer dimension. */
extern "C" __global__ void julia(unsigned char *steps, unsigned width,
                                 unsigned height, float cx, float cy)
{
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  const float scale = 3.0f / (width > height ? width : height);
  float zx, zy;
  unsigned i = 0;

  if (x >= width || y >= height)
    return;
  zx = ((float)x - 0.5f * width) * scale;
  zy = ((float)y - 0.5f * height) * scale;
  while (i < 255 && zx * zx + zy * zy < 4.0f) {
    const float next = zx * zx - zy * zy + cx;

    zy = 2.0f * zx * zy + cy;
    zx = next;
    i++;
  }
  steps[y * width + x] = (unsigned char)i;
}
