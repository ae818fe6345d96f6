/* reduce_one_thread.cu -- sum of an array by a loop in one thread (samples/README.md,
 * row C8).
 *
 * Launch: one block of one thread.
 * Result: the sum of x is added to *result, from left to right. An element that is less
 *         than about 2^-24 times the running sum does not change the running sum. */
extern "C" __global__ void reduce_one_thread(const float *x, unsigned n,
                                             float *result)
{
  float value = *result;

  for (unsigned i = 0; i < n; ++i)
    value += x[i];
  *result = value;
}
