/* math_functions.cu -- functions of the mathematical library against the host's. */
#include "program.cuh"

__global__ void many(double *out, const double *x, int n)
{
  const int i = threadIdx.x;
  if (i >= n)
    return;
  double *o = out + i * 12;
  o[0] = sin(x[i]), o[1] = exp(x[i]), o[2] = log(x[i]), o[3] = pow(x[i], 1.7);
  o[4] = cbrt(x[i]), o[5] = erf(x[i]), o[6] = tgamma(x[i]), o[7] = j0(x[i]);
  o[8] = atan2(x[i], 2.0), o[9] = fmod(x[i], 0.3), o[10] = hypot(x[i], 3.0);
  o[11] = rint(x[i]);
}

__global__ void single(float *out, const double *x, int n)
{
  const int i = threadIdx.x;
  if (i < n)
    out[i] = __sinf(x[i]) + rsqrtf(x[i]) + __expf(-x[i]);
}

int main()
{
  const int n = 100;
  std::vector<double> x(n);
  for (int i = 0; i < n; i++)
    x[i] = 0.05 + i * 0.071;
  double *dx = to_device(x), *out;
  float *f;
  CALL(cudaMalloc(&out, n * 12 * sizeof(double)));
  CALL(cudaMalloc(&f, n * sizeof(float)));
  many<<<1, 128>>>(out, dx, n);
  single<<<1, 128>>>(f, dx, n);
  const std::vector<double> g = to_host(out, n * 12);
  const std::vector<float> s = to_host(f, n);
  for (int i = 0; i < n; i++) {
    const double v = x[i];
    const double want[12] = {
        std::sin(v),      std::exp(v),       std::log(v),      std::pow(v, 1.7),
        std::cbrt(v),     std::erf(v),       std::tgamma(v),   j0(v),
        std::atan2(v, 2), std::fmod(v, 0.3), std::hypot(v, 3), std::rint(v)};
    for (int k = 0; k < 12; k++)
      CHECK(std::fabs(g[i * 12 + k] - want[k]) <=
            1e-13 * std::fmax(1, std::fabs(want[k])));
    CHECK(std::fabs(s[i] - (std::sin(v) + 1 / std::sqrt(v) + std::exp(-v))) <
          1e-5 * 10);
  }
  return verdict();
}
