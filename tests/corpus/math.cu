// The mathematical functions of CUDA for double and float.
extern "C" __global__ void doubles(const float *in, double *out, int)
{
  const int t = threadIdx.x;
  const double x = in[t];

  out[t * 8] = sin(x * 20);
  out[t * 8 + 1] = exp(x);
  out[t * 8 + 2] = log(x);
  out[t * 8 + 3] = pow(x, 3.3);
  out[t * 8 + 4] = tgamma(x + 1);
  out[t * 8 + 5] = cos(x * 1e9);
  out[t * 8 + 6] = erf(x) + atan2(x, 2.0);
  out[t * 8 + 7] = sqrt(x) / (x + 1) + cbrt(x);
}

extern "C" __global__ void floats(const float *in, float *out, int)
{
  const int t = threadIdx.x;
  const float x = in[t];

  out[t * 4] = sinf(x) + cosf(x);
  out[t * 4 + 1] = expf(x) * logf(x + 1);
  out[t * 4 + 2] = powf(x, 1.7f);
  out[t * 4 + 3] = sqrtf(x) / (x + 3) + tanhf(x);
}
