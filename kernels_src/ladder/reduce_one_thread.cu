/* reduce_one_thread.cu -- the sum as a plain loop in one thread (samples/README.md,
 * row C8).
 *
 * Launch: one block of one thread.
 * Result: adds the sum of x to *result, from left to right. Once the running sum is 2^24
 *         times an element, adding that element changes nothing. */
extern "C" __global__ void reduce_one_thread(const float *x, unsigned n,
                                             float *result)
{
  float value = *result;

  for (unsigned i = 0; i < n; ++i)
    value += x[i];
  *result = value;
}
