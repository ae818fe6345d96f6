/* matmul_wgmma.cu -- matrix product C = A B^T of bf16 matrices on the tensor cores of
 * sm_90a, as short as it can be: the copy engine fills shared memory, an mbarrier counts
 * the bytes, and a warpgroup multiplies.
 *
 * Idea: a block computes a tile of C with 64 x 64 elements. Two buffers hold slices of A
 * and B of 64 elements along k, which are lines of 128 bytes. While the warpgroup
 * multiplies one slice, the copy engine loads the next one. Both swizzle the lines in the
 * same way, so no shared-memory access has bank conflicts.
 *
 * Launch: blocks of 128 threads, with a grid of (n / 64, m / 64). m and n are multiples
 *         of 64. The tensor maps of A (m rows of k elements) and B (n rows of k elements)
 *         have boxes of 64 rows and 64 elements, and a swizzle of 128 bytes. Elements
 *         beyond k are 0.
 * Result: c receives m rows of n floats.
 *
 * The program is empty unless it is compiled for sm_90a: kiln_program_desc.suffix = 'a'. */
#ifndef KILN_HAS_WGMMA
#define KILN_HAS_WGMMA 0
#endif
#if KILN_HAS_WGMMA
enum { TILE = 64, DEPTH = 64, STAGES = 2, BYTES = 2 * TILE * DEPTH };

struct alignas(64) tensor_map {
  unsigned long long opaque[16];
};

static __device__ unsigned address_of(const void *p)
{
  return (unsigned)__cvta_generic_to_shared(p);
}

/* Starts the copy of the slice from element k0 on. */
static __device__ void load(unsigned to, const tensor_map &from, unsigned bar,
                            unsigned k0, unsigned row)
{
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(&from), "r"(bar), "r"(k0), "r"(row)
      : "memory");
}

static __device__ void load_both(unsigned a_to, unsigned b_to,
                                 const tensor_map &a, const tensor_map &b,
                                 unsigned bar, unsigned k0)
{
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
      "n"(2 * BYTES)
      : "memory");
  load(a_to, a, bar, k0, blockIdx.y * TILE);
  load(b_to, b, bar, k0, blockIdx.x * TILE);
}

static __device__ void wait(unsigned bar, unsigned parity)
{
  asm volatile("{ .reg .pred done;\nagain:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again; }" ::"r"(bar),
               "r"(parity)
               : "memory");
}

/* Describes a matrix in shared memory: groups of 8 lines of 128 bytes follow each other
 * every 1,024 bytes, with a swizzle of 128 bytes. */
static __device__ unsigned long long descriptor(unsigned at)
{
  return at >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define EIGHT(d, i)                                                            \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]),  \
      "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define ALL(d) EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24)

/* Starts d += A B^T for 16 elements along k. */
static __device__ void multiply(float (&d)[32], unsigned a, unsigned b)
{
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,"
      "%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, "
      "0;"
      : ALL(d)
      : "l"(descriptor(a)), "l"(descriptor(b)));
}

extern "C" __global__ void __launch_bounds__(128)
    matmul_wgmma(const __grid_constant__ tensor_map a,
                 const __grid_constant__ tensor_map b, float *c, unsigned n,
                 unsigned k)
{
  __shared__ __align__(1024) unsigned char at[STAGES][BYTES];
  __shared__ __align__(1024) unsigned char bt[STAGES][BYTES];
  __shared__ __align__(8) unsigned long long full[STAGES];
  const unsigned t = threadIdx.x, steps = (k + DEPTH - 1) / DEPTH;
  float d[32] = {};

  if (t == 0) {
    for (int s = 0; s < STAGES; s++)
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full[s]))
          : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (steps > 0)
      load_both(address_of(at[0]), address_of(bt[0]), a, b,
                address_of(&full[0]), 0);
  }
  __syncthreads();
  for (unsigned step = 0; step < steps; step++) {
    const unsigned now = step % STAGES, next = (step + 1) % STAGES;

    if (t == 0 && step + 1 < steps)
      load_both(address_of(at[next]), address_of(bt[next]), a, b,
                address_of(&full[next]), (step + 1) * DEPTH);
    wait(address_of(&full[now]), step / STAGES % 2);
    asm volatile("wgmma.fence.sync.aligned;" : ALL(d)::"memory");
    for (unsigned i = 0; i < DEPTH; i += 16)
      multiply(d, address_of(at[now]) + 2 * i, address_of(bt[now]) + 2 * i);
    asm volatile("wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;"
                 : ALL(d)::"memory");
    __syncthreads(); /* the buffer may be filled again */
  }
  for (unsigned i = 0; i < 32; i++) {
    const unsigned row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
    const unsigned column = i / 4 * 8 + t % 4 * 2 + i % 2;

    c[(unsigned long long)(blockIdx.y * TILE + row) * n + blockIdx.x * TILE +
      column] = d[i];
  }
}
#endif
