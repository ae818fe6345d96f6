// tensor_record.cu -- runs the tensor copies of tests/support/tensor_cases.h on a GPU
// and prints tests/golden/tensor.txt:
//
//   gcc -std=gnu11 -c -Itests/support tests/support/tensor_cases.c -o cases.o
//   nvcc -std=c++17 -arch=sm_90 -Itests/support tests/gpu/tensor_record.cu cases.o
//   ./a.out > tests/golden/tensor.txt
//
// A refused copy ends the process that issued it, so a child process runs the cases.
// The parent starts another child behind a case that failed.
extern "C" {
#include "tensor_cases.h"
}
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef CUresult (*encode_tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                 const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                 const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
typedef CUresult (*encode_im2col)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                  const cuuint64_t *, const cuuint64_t *, const int *, const int *,
                                  cuuint32_t, cuuint32_t, const cuuint32_t *, CUtensorMapInterleave,
                                  CUtensorMapSwizzle, CUtensorMapL2promotion,
                                  CUtensorMapFloatOOBfill);

struct Args {
  int32_t c[5];
  uint16_t o[3];
  uint32_t at, expect;
};

#define C1 "{%2}"
#define C2 "{%2,%3}"
#define C3 "{%2,%3,%4}"
#define C4 "{%2,%3,%4,%5}"
#define C5 "{%2,%3,%4,%5,%6}"
#define COORDS "r"(a.c[0]), "r"(a.c[1]), "r"(a.c[2]), "r"(a.c[3]), "r"(a.c[4])
#define LOAD(R, C)                                                                         \
  asm volatile("cp.async.bulk.tensor." #R "d.shared::cluster.global.tile."                 \
               "mbarrier::complete_tx::bytes [%0], [%1, " C "], [%7];" ::"r"(box),         \
               "l"(&map), COORDS, "r"(bar) : "memory")
#define PIXELS(R, C, O)                                                                    \
  asm volatile("cp.async.bulk.tensor." #R "d.shared::cluster.global.im2col."               \
               "mbarrier::complete_tx::bytes [%0], [%1, " C "], [%7], " O ";" ::"r"(box),  \
               "l"(&map), COORDS, "r"(bar), "h"(a.o[0]), "h"(a.o[1]), "h"(a.o[2])          \
               : "memory")
#define STORE(R, C, MODE)                                                                  \
  asm volatile("cp.async.bulk.tensor." #R "d.global.shared::cta." MODE ".bulk_group [%1, " \
               C "], [%0];" ::"r"(box), "l"(&map), COORDS : "memory")
#define REDUCE(R, C, OP)                                                                   \
  asm volatile("cp.reduce.async.bulk.tensor." #R "d.global.shared::cta." OP                \
               ".tile.bulk_group [%1, " C "], [%0];" ::"r"(box), "l"(&map), COORDS         \
               : "memory")
#define EACH(F, ...)                                                                       \
  if (RANK == 1) F(1, C1, ##__VA_ARGS__);                                                  \
  else if (RANK == 2) F(2, C2, ##__VA_ARGS__);                                             \
  else if (RANK == 3) F(3, C3, ##__VA_ARGS__);                                             \
  else if (RANK == 4) F(4, C4, ##__VA_ARGS__);                                             \
  else F(5, C5, ##__VA_ARGS__)
#define EACH_PIXELS(F, A, B, C)                                                            \
  if (RANK == 3) F(3, C3, A);                                                              \
  else if (RANK == 4) F(4, C4, B);                                                         \
  else if (RANK == 5) F(5, C5, C)

__device__ static unsigned address(const void *p)
{
  return (unsigned)__cvta_generic_to_shared(p);
}

// Waits until the phase ends, for at most a millisecond. Returns whether it ended.
__device__ static unsigned wait(unsigned bar)
{
  unsigned done = 0;
  for (int i = 0; i < 1000 && !done; i++) {
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; "
                 "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar) : "memory");
    if (!done)
      __nanosleep(1000);
  }
  return done;
}

// Fills shared memory from `image`, performs one copy, and writes shared memory back.
template <int RANK, int KIND>
__global__ void copy(const __grid_constant__ CUtensorMap map, Args a, uint32_t *image,
                     unsigned *counted)
{
  extern __shared__ __align__(1024) uint32_t shared[];
  __shared__ __align__(8) uint64_t barrier;
  const unsigned bar = address(&barrier), box = address(shared) + a.at;

  for (int i = threadIdx.x; i < TENSOR_SHARED / 4; i += blockDim.x)
    shared[i] = image[i];
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar),
                 "r"(a.expect) : "memory");
    if (KIND == TENSOR_LOAD) { EACH(LOAD); }
    else if (KIND == TENSOR_LOAD_PIXELS) { EACH_PIXELS(PIXELS, "{%8}", "{%8,%9}", "{%8,%9,%10}"); }
    else if (KIND == TENSOR_STORE) { EACH(STORE, "tile"); }
    else if (KIND == TENSOR_STORE_PIXELS) {
      EACH_PIXELS(STORE, "im2col_no_offs", "im2col_no_offs", "im2col_no_offs");
    }
    else if (KIND == TENSOR_ADD) { EACH(REDUCE, "add"); }
    else if (KIND == TENSOR_ADD + 1) { EACH(REDUCE, "min"); }
    else if (KIND == TENSOR_ADD + 2) { EACH(REDUCE, "max"); }
    else if (KIND == TENSOR_ADD + 3) { EACH(REDUCE, "inc"); }
    else if (KIND == TENSOR_ADD + 4) { EACH(REDUCE, "dec"); }
    else if (KIND == TENSOR_ADD + 5) { EACH(REDUCE, "and"); }
    else if (KIND == TENSOR_ADD + 6) { EACH(REDUCE, "or"); }
    else { EACH(REDUCE, "xor"); }
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    *counted = KIND <= TENSOR_LOAD_PIXELS && wait(bar);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TENSOR_SHARED / 4; i += blockDim.x)
    image[i] = shared[i];
}

// Combines the first bytes of `to` with those of `image` by reduction `which`.
__global__ void reduce(uint32_t *to, const uint32_t *image, int which)
{
  __shared__ __align__(128) uint32_t shared[TENSOR_REDUCED_BYTES / 4];
  for (int i = threadIdx.x; i < TENSOR_REDUCED_BYTES / 4; i += blockDim.x)
    shared[i] = image[i];
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0)
    return;
#define OP(N, T)                                                                           \
  case N:                                                                                  \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." T                   \
                 " [%0], [%1], %2;" ::"l"(to), "r"(address(shared)),                       \
                 "r"(TENSOR_REDUCED_BYTES) : "memory");                                    \
    break;
  switch (which) {
    OP(0, "and.b32") OP(1, "or.b32") OP(2, "xor.b32") OP(3, "and.b64") OP(4, "or.b64")
    OP(5, "xor.b64") OP(6, "add.u32") OP(7, "add.s32") OP(8, "add.u64")
    OP(9, "add.noftz.f16") OP(10, "add.noftz.bf16") OP(11, "add.f32") OP(12, "add.f64")
    OP(13, "inc.u32") OP(14, "dec.u32") OP(15, "min.u32") OP(16, "max.u32")
    OP(17, "min.s32") OP(18, "max.s32") OP(19, "min.u64") OP(20, "max.u64")
    OP(21, "min.s64") OP(22, "max.s64") OP(23, "min.f16") OP(24, "max.f16")
    OP(25, "min.bf16") OP(26, "max.bf16")
  }
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

typedef void (*kernel)(const CUtensorMap, Args, uint32_t *, unsigned *);

template <int RANK> static kernel of_kind(int kind)
{
  static const kernel all[] = {copy<RANK, 0>, copy<RANK, 1>, copy<RANK, 2>,  copy<RANK, 3>,
                               copy<RANK, 4>, copy<RANK, 5>, copy<RANK, 6>,  copy<RANK, 7>,
                               copy<RANK, 8>, copy<RANK, 9>, copy<RANK, 10>, copy<RANK, 11>};
  return all[kind];
}

static kernel kernel_of(const tensor_case &c)
{
  kernel (*const of[])(int) = {of_kind<1>, of_kind<2>, of_kind<3>, of_kind<4>, of_kind<5>};
  return of[c.rank - 1](c.kind);
}

static encode_tiled tiled;
static encode_im2col im2col;
static uint32_t *buffer, *image;
static unsigned *counted;
static uint8_t bytes[TENSOR_BUFFER];

static void fill(uint32_t *to, uint32_t size, uint32_t seed, uint32_t mode)
{
  for (uint32_t i = 0; i < size / 4; i++)
    ((uint32_t *)bytes)[i] = tensor_word(seed, mode, i);
  cudaMemcpy(to, bytes, size, cudaMemcpyHostToDevice);
}

static uint64_t hash_of(const void *from, uint32_t size)
{
  uint64_t h = 1469598103934665603u;
  cudaMemcpy(bytes, from, size, cudaMemcpyDeviceToHost);
  for (uint32_t i = 0; i < size; i++)
    h = (h ^ bytes[i]) * 1099511628211u;
  return h;
}

static int encode(const tensor_case &c, CUtensorMap *map)
{
  void *const at = (uint8_t *)buffer + TENSOR_BASE + c.tensor_at;
  cuuint64_t dim[5], stride[5];
  for (int i = 0; i < 5; i++)
    dim[i] = c.dim[i], stride[i] = c.stride[i];
  const CUtensorMapDataType type = (CUtensorMapDataType)c.type;
  const CUtensorMapInterleave interleave = (CUtensorMapInterleave)c.interleave;
  const CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)c.swizzle;
  const CUtensorMapFloatOOBfill oob = (CUtensorMapFloatOOBfill)c.fill;
  return c.im2col ? im2col(map, type, c.rank, at, dim, stride, c.lower, c.upper, c.channels,
                           c.pixels, c.step, interleave, swizzle,
                           CU_TENSOR_MAP_L2_PROMOTION_NONE, oob)
                  : tiled(map, type, c.rank, at, dim, stride, c.box, c.step, interleave, swizzle,
                          CU_TENSOR_MAP_L2_PROMOTION_NONE, oob);
}

// Returns the number of bytes that the copy should count at its mbarrier.
static uint32_t expected(const tensor_case &c)
{
  static const uint8_t size[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  const bool pixels = c.im2col, slices = c.interleave != 0;
  const uint32_t unit = slices ? 8u << c.interleave : size[c.type];
  const uint32_t row = pixels ? (slices ? 1 : c.channels)
                              : slices ? (c.box[0] + c.step[0] - 1) / c.step[0] : c.box[0];
  uint32_t rows = pixels ? c.pixels : 1;
  for (int d = 1; d < c.rank && !pixels; d++)
    if (!slices || d + 2 != c.rank)
      rows *= (c.box[d] + c.step[d] - 1) / c.step[d];
  return rows * row * unit;
}

// Runs a case and prints its line. Returns false if the launch failed.
static bool run(uint32_t group, uint32_t i)
{
  CUtensorMap map __attribute__((aligned(64)));
  tensor_case c;
  Args a = {};
  tensor_case_make(&c, group, i);
  const int rc = encode(c, &map);
  const bool loads = tensor_case_loads(&c);
  if (rc != 0) {
    printf("%u %u %d 0 0\n", group, i, rc);
    return true;
  }
  fill(buffer, TENSOR_BUFFER, c.seed, c.mode);
  fill(image, TENSOR_SHARED, c.seed + 1, c.mode);
  if (loads)
    cudaMemset(image, 0xee, TENSOR_SHARED);
  memcpy(a.c, c.coord, sizeof a.c);
  memcpy(a.o, c.offset, sizeof a.o);
  a.at = c.shared_at;
  a.expect = expected(c);
  const kernel k = kernel_of(c);
  cudaFuncSetAttribute((const void *)k, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       TENSOR_SHARED);
  k<<<1, 128, TENSOR_SHARED>>>(map, a, image, counted);
  if (cudaDeviceSynchronize() != cudaSuccess)
    return false;
  unsigned done;
  cudaMemcpy(&done, counted, sizeof done, cudaMemcpyDeviceToHost);
  printf("%u %u 0 %d %016llx\n", group, i, loads ? (done ? (int)a.expect : -2) : 0,
         (unsigned long long)(loads ? hash_of(image, c.dumped)
                                    : hash_of(buffer, TENSOR_BUFFER)));
  return true;
}

static void run_reduction(uint32_t i)
{
  tensor_reduction r;
  tensor_reduction_make(&r, i);
  fill(buffer, TENSOR_REDUCED_BYTES, r.seed, r.mode);
  fill(image, TENSOR_REDUCED_BYTES, r.seed + 1, r.mode);
  reduce<<<1, 128>>>(buffer, image, (int)(i % 34));
  printf("%u %u 0 0 %016llx\n", TENSOR_REDUCE_BYTES, i,
         (unsigned long long)hash_of(buffer, TENSOR_REDUCED_BYTES));
}

// The recorded cases: of each group those from `from` to `to`.
static const struct {
  uint32_t group, from, to;
} recorded[] = {{1, 0, 260}, {1, 1000, 1100}, {2, 0, 110}, {2, 1000, 1060}, {3, 0, 120},
                {3, 1000, 1100}, {4, 0, 110}, {4, 1000, 1060}, {5, 0, 20}, {5, 1000, 1060},
                {6, 0, 118}, {6, 1000, 1160}, {7, 0, 0}, {9, 0, 80}};

struct progress {
  uint32_t range, next;
};

static void run_all(progress *p)
{
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&tiled, 12000,
                                   cudaEnableDefault, &found);
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", (void **)&im2col, 12000,
                                   cudaEnableDefault, &found);
  cudaMalloc(&buffer, TENSOR_BUFFER);
  cudaMalloc(&image, TENSOR_SHARED);
  cudaMalloc(&counted, sizeof *counted);
  for (; p->range < sizeof recorded / sizeof *recorded; p->range++, p->next = 0) {
    const auto &r = recorded[p->range];
    for (p->next = p->next < r.from ? r.from : p->next; p->next < r.to; p->next++) {
      if (!run(r.group, p->next)) {
        printf("%u %u 0 -1 0\n", r.group, p->next++);
        fflush(stdout);
        _exit(1);
      }
    }
    for (uint32_t i = 0; i < 4 * TENSOR_REDUCTIONS && r.group == TENSOR_REDUCE_BYTES; i++)
      run_reduction(i % TENSOR_REDUCTIONS + i / TENSOR_REDUCTIONS * 34);
  }
  fflush(stdout);
  _exit(0);
}

int main(void)
{
  progress *const p = (progress *)mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int status = 1;
  printf("# tensor.txt -- random tensor copies of tests/support/tensor_cases.h on an H200\n"
         "# (driver 580): group, case, result of encoding, bytes counted, hash of the result.\n");
  fflush(stdout);
  while (status != 0) {
    const pid_t child = fork();
    if (child == 0)
      run_all(p);
    if (child < 0 || waitpid(child, &status, 0) < 0)
      return 1;
  }
  return 0;
}
