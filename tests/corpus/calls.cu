// Calls of functions: recursion, function pointers, virtual functions, and a switch.
static __device__ __noinline__ int ackermann(int m, int n)
{
  if (m == 0)
    return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

extern "C" __global__ void recursion(const int *in, int *out, int)
{
  out[threadIdx.x] = ackermann(2, in[threadIdx.x] & 3);
}

typedef int (*binary)(int, int);
static __device__ int plus(int a, int b) { return a + b; }
static __device__ int minus(int a, int b) { return a - b; }
static __device__ int both(int a, int b) { return a & b; }
__device__ binary table[3] = {plus, minus, both};

extern "C" __global__ void pointers(const int *in, int *out, int n)
{
  const int t = threadIdx.x;

  out[t] = table[t % 3](in[t], n);
}

struct shape {
  int a;
  __device__ shape(int v) : a(v) {}
  __device__ virtual int area() const = 0;
};
struct square : shape {
  __device__ square(int v) : shape(v) {}
  __device__ int area() const { return a * a; }
};
struct bar : shape {
  __device__ bar(int v) : shape(v) {}
  __device__ int area() const { return 3 * a; }
};

extern "C" __global__ void virtuals(const int *in, int *out, int)
{
  const int t = threadIdx.x;
  square s(in[t] & 255);
  bar b(in[t] & 255);
  const shape *p = in[t] % 2 ? (const shape *)&s : (const shape *)&b;

  out[t] = p->area();
}

extern "C" __global__ void choice(const int *in, int *out, int)
{
  int v = in[threadIdx.x], r;

  switch (v & 7) {
  case 0: r = v + 9; break;
  case 1: r = v * 3; break;
  case 2: r = v ^ 0x55; break;
  case 3: r = -v; break;
  case 4: v >>= 2; // falls through
  case 5: r = v - 4; break;
  case 6: r = v | 1 << 20; break;
  default: r = 0; break;
  }
  out[threadIdx.x] = r;
}
