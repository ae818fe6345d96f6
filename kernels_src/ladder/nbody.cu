/* nbody.cu -- accelerations of n bodies from all pairs of bodies, in the twelve steps of
 * the lecture (samples/README.md, row B15). Each step changes one thing.
 *
 *    1  one thread computes everything
 *    2  one thread per body
 *    3  one array per field, instead of an array of structs
 *    4  parameters in constant memory
 *    5  rsqrtf() instead of 1 / sqrtf()
 *    6  two loops, before and after the body itself, instead of a test for it
 *    7  blocks of bodies in shared memory (with the test again)
 *    8  inner loop unrolled 8 times
 *    9  no test: with softening, a body does not accelerate itself
 *   10  terms rearranged, so that more of them become fused multiply-adds
 *   11  inner loop unrolled 128 times
 *   12  subnormal numbers become zero (compile with -ftz=true or --use_fast_math)
 *
 * Parameters: KILN_STEP (default 12) is the step. KILN_BLOCK (default 256) is the number
 *             of threads per block, a multiple of 128.
 * Launch: step 1: one thread. Other steps: n / KILN_BLOCK blocks of KILN_BLOCK threads,
 *         rounded up. Steps 1 to 3 have arguments; later steps read the constant
 *         nbody_given.
 * Result: the acceleration of body i is the sum over j of m[j] * d / (|d|^2 + eps2)^(3/2),
 *         where d is the vector from body i to body j.
 * Source: Burtscher, lecture on CUDA optimisation of an n-body code, as in row B15; the
 *         blocks in shared memory are those of Nyland, Harris and Prins, 2007. */
#ifndef KILN_STEP
#define KILN_STEP 12
#endif
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif

struct body {
  float mass, x, y, z;
  float vx, vy, vz, ax, ay, az;
};

struct fields {
  const float *mass, *x, *y, *z;
  float *ax, *ay, *az;
};

struct given {
  fields of;
  unsigned n;
  float eps2;
};

struct vec3 {
  float x, y, z;
};

/* Adds the acceleration by a mass at the distance (dx, dy, dz). */
static __device__ __forceinline__ void attract(vec3 &a, float dx, float dy,
                                               float dz, float mass, float eps2)
{
#if KILN_STEP < 5
  const float squared = dx * dx + dy * dy + dz * dz;
  const float inverse = 1.0f / sqrtf(squared + eps2);
#elif KILN_STEP < 10
  const float squared = dx * dx + dy * dy + dz * dz;
  const float inverse = rsqrtf(squared + eps2);
#else
  const float squared = dx * dx + (dy * dy + (dz * dz + eps2));
  const float inverse = rsqrtf(squared);
#endif
  const float scale = mass * inverse * inverse * inverse;

  a.x += dx * scale;
  a.y += dy * scale;
  a.z += dz * scale;
}

#if KILN_STEP <= 2
static __device__ __forceinline__ void accelerate(body *b, unsigned i,
                                                  unsigned n, float eps2)
{
  const float px = b[i].x, py = b[i].y, pz = b[i].z;
  vec3 a = {0, 0, 0};

  for (unsigned j = 0; j < n; j++)
    if (i != j)
      attract(a, b[j].x - px, b[j].y - py, b[j].z - pz, b[j].mass, eps2);
  b[i].ax = a.x;
  b[i].ay = a.y;
  b[i].az = a.z;
}

extern "C" __global__ void nbody_step(body *b, unsigned n, float eps2)
{
#if KILN_STEP == 1
  for (unsigned i = 0; i < n; i++)
    accelerate(b, i, n, eps2);
#else
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < n)
    accelerate(b, i, n, eps2);
#endif
}
#else

#if KILN_STEP < 7
/* Adds the accelerations of a body at p by bodies begin to end - 1. */
static __device__ __forceinline__ void attract_by(vec3 &a, const given &g,
                                                  const vec3 &p, unsigned begin,
                                                  unsigned end, unsigned self)
{
  for (unsigned j = begin; j < end; j++)
    if (KILN_STEP >= 6 || j != self)
      attract(a, g.of.x[j] - p.x, g.of.y[j] - p.y, g.of.z[j] - p.z,
              g.of.mass[j], g.eps2);
}

#else
/* A block of bodies in shared memory. */
struct block {
  float mass[KILN_BLOCK], x[KILN_BLOCK], y[KILN_BLOCK], z[KILN_BLOCK];
};

static __device__ __forceinline__ void
attract_one(vec3 &a, const block &s, unsigned k, const vec3 &p, float eps2)
{
  attract(a, s.x[k] - p.x, s.y[k] - p.y, s.z[k] - p.z, s.mass[k], eps2);
}

/* Adds the accelerations by the first `bound` bodies of a block. The bodies
 * start at number `first`. */
static __device__ __forceinline__ void
attract_by_block(vec3 &a, const block &s, unsigned bound, const vec3 &p,
                 unsigned first, unsigned self, float eps2)
{
#if KILN_STEP == 7
#pragma unroll 1
#elif KILN_STEP < 11
#pragma unroll 8
#endif
#if KILN_STEP < 9
  for (unsigned k = 0; k < bound; k++)
    if (first + k != self)
      attract_one(a, s, k, p, eps2);
#elif KILN_STEP < 11
  for (unsigned k = 0; k < bound; k++)
    attract_one(a, s, k, p, eps2);
#else
  unsigned k = 0;

  for (; k + 128 <= bound; k += 128)
#pragma unroll
    for (unsigned u = 0; u < 128; u++)
      attract_one(a, s, k + u, p, eps2);
#pragma unroll 1
  for (; k < bound; k++)
    attract_one(a, s, k, p, eps2);
#endif
}
#endif

static __device__ __forceinline__ void accelerate(const given &g, unsigned i)
{
  const unsigned at = i < g.n ? i : g.n - 1;
  const vec3 p = {g.of.x[at], g.of.y[at], g.of.z[at]};
  vec3 a = {0, 0, 0};

#if KILN_STEP < 6
  attract_by(a, g, p, 0, g.n, i);
#elif KILN_STEP == 6
  attract_by(a, g, p, 0, at, i);
  attract_by(a, g, p, at + 1, g.n, i);
#else
  __shared__ block s;

  for (unsigned first = 0; first < g.n; first += KILN_BLOCK) {
    const unsigned j = first + threadIdx.x;
    const unsigned left = g.n - first;

    if (j < g.n) {
      s.mass[threadIdx.x] = g.of.mass[j];
      s.x[threadIdx.x] = g.of.x[j];
      s.y[threadIdx.x] = g.of.y[j];
      s.z[threadIdx.x] = g.of.z[j];
    }
    __syncthreads();
    attract_by_block(a, s, left < KILN_BLOCK ? left : KILN_BLOCK, p, first, i,
                     g.eps2);
    __syncthreads();
  }
#endif
  if (i >= g.n)
    return;
  g.of.ax[i] = a.x;
  g.of.ay[i] = a.y;
  g.of.az[i] = a.z;
}

#if KILN_STEP == 3
extern "C" __global__ void nbody_step(const float *mass, const float *x,
                                      const float *y, const float *z, float *ax,
                                      float *ay, float *az, unsigned n,
                                      float eps2)
{
  const given g = {{mass, x, y, z, ax, ay, az}, n, eps2};

  accelerate(g, blockIdx.x * blockDim.x + threadIdx.x);
}
#else
__constant__ given nbody_given;

extern "C" __global__ void __launch_bounds__(KILN_BLOCK) nbody_step()
{
  accelerate(nbody_given, blockIdx.x * blockDim.x + threadIdx.x);
}
#endif
#endif
