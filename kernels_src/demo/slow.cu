/* slow.cu -- keep one block busy for a chosen time (samples/README.md, row A11).
 *
 * Launch: one block, so that several launches can run concurrently on a GPU.
 * Result: out[0] is a positive value. The time is proportional to `iterations`. Each
 *         iteration is a multiply-add that depends on the previous iteration, and takes
 *         about four clock cycles. */
extern "C" __global__ void slow(float *out, unsigned iterations)
{
  float v = 1.0f + static_cast<float>(threadIdx.x) * 1e-6f;

  for (unsigned i = 0; i < iterations; ++i)
    v = fmaf(v, 0.999999f, 1e-6f);
  if (threadIdx.x == 0)
    out[0] = v;
}
