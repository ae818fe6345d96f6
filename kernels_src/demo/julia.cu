/* julia.cu -- the Julia set of z -> z^2 + c: steps until |z| >= 2 (samples/README.md,
 * row C4).
 *
 * Launch: one thread per pixel in two dimensions: grid * block >= width, height.
 * Result: steps[y * width + x], 0 to 255. The picture spans -1.5 to 1.5 in the longer
 *         direction. */
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
