/* slow.cu -- keep one block busy for a chosen time (samples/README.md, row A11).
 *
 * Launch: one block, so that several launches run side by side on a GPU.
 * Result: out[0] is some value above 0. The time grows with `iterations`: each of them
 *         is a multiply-add that waits for the one before it, about four clocks. */
extern "C" __global__ void slow(float *out, unsigned iterations)
{
  float v = 1.0f + static_cast<float>(threadIdx.x) * 1e-6f;

  for (unsigned i = 0; i < iterations; ++i)
    v = fmaf(v, 0.999999f, 1e-6f);
  if (threadIdx.x == 0)
    out[0] = v;
}
