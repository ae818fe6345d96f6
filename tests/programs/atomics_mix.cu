/* atomics_mix.cu -- each kind of atomic operation, and one built on compare-and-swap.
// finds: a race: the first read of the loop with compare-and-swap is a plain one
 */
#include "program.cuh"

__device__ double add_by_cas(double *at, double v)
{
  unsigned long long *word = (unsigned long long *)at, old = *word, seen;
  do {
    seen = old;
    old = atomicCAS(word, seen,
                    __double_as_longlong(v + __longlong_as_double(seen)));
  } while (old != seen);
  return __longlong_as_double(old);
}

__global__ void all(int *i, unsigned *u, float *f, double *d,
                    unsigned long long *l)
{
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&i[0], t);
  atomicSub(&i[1], 1);
  atomicMax(&i[2], t);
  atomicMin(&i[3], -t);
  atomicOr(&i[4], 1 << (t % 31));
  atomicAnd(&i[5], ~(1 << (t % 5)));
  atomicXor(&i[6], t);
  atomicInc(&u[0], 99);
  atomicDec(&u[1], 9);
  atomicAdd(f, 0.5f);
  atomicAdd(&d[0], 0.25);
  add_by_cas(&d[1], 0.125);
  atomicMax(l, (unsigned long long)t << 32);
  if (atomicExch(&i[7], t) == -1)
    atomicAdd_block(&i[8], 1);
  atomicAdd_system(&i[9], 2);
}

int main()
{
  const int n = 512;
  int h[10] = {0, 0, 0, 0, 0, -1, 0, -1, 0, 0}, want = 0, bits = 0;
  int *i;
  unsigned *u;
  float *f;
  double *d;
  unsigned long long *l;
  CALL(cudaMalloc(&i, sizeof h));
  CALL(cudaMalloc(&u, 8));
  CALL(cudaMalloc(&f, 4));
  CALL(cudaMalloc(&d, 16));
  CALL(cudaMalloc(&l, 8));
  CALL(cudaMemcpy(i, h, sizeof h, cudaMemcpyHostToDevice));
  CALL(cudaMemset(u, 0, 8));
  CALL(cudaMemset(f, 0, 4));
  CALL(cudaMemset(d, 0, 16));
  CALL(cudaMemset(l, 0, 8));
  all<<<4, n / 4>>>(i, u, f, d, l);
  const std::vector<int> g = to_host(i, 10);
  for (int t = 0; t < n; t++)
    want += t, bits ^= t;
  CHECK(g[0] == want && g[1] == -n && g[2] == n - 1 && g[3] == 1 - n);
  CHECK(g[4] == 0x7fffffff && g[5] == ~31 && g[6] == bits && g[8] == 1);
  CHECK(g[9] == 2 * n);
  CHECK(to_host(u, 1)[0] == n % 100);
  CHECK(to_host(f, 1)[0] == n * 0.5f);
  CHECK(to_host(d, 2)[0] == n * 0.25 && to_host(d, 2)[1] == n * 0.125);
  CHECK(to_host(l, 1)[0] == (unsigned long long)(n - 1) << 32);
  return verdict();
}
