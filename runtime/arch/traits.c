/* traits.c -- the features and limits of each compute capability. A capability
 * that is missing from the table gets the limits of the nearest older
 * capability. */
#include "arch.h"

enum { KIB = 1024, WARP = 32 };

/* One row of traits.def, which holds the limits of one compute capability. */
typedef struct row {
  int cc;
  char family[12];
  bool tegra;
  int threads_block, threads_sm, blocks_sm;
  int kregs_sm, kregs_block, regs_thread, reg_unit, warp_unit;
  int smem_sm, smem_block, smem_optin, smem_reserved, smem_unit;
} row;

static const row rows[] = {
#define KILN_TRAITS(...) {__VA_ARGS__},
#include "traits.def"
};

static const int capabilities[] = {
#define KILN_TRAITS(cc, ...) cc,
#include "traits.def"
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

const int *kiln_arch_list(size_t *n)
{
  if (n != NULL)
    *n = N_ROWS;
  return capabilities;
}

/* Returns the table row of capability `cc`, or else the row of the nearest
 * older capability. */
static const row *find(int cc)
{
  const row *best = &rows[0];

  for (size_t i = 0; i < N_ROWS && rows[i].cc <= cc; i++)
    best = &rows[i];
  return best;
}

bool kiln__arch_tegra(int cc)
{
  const row *r = find(cc);

  return r->cc == cc && r->tegra;
}

static void set_features(kiln_traits *t)
{
  const int cc = t->cc;

  t->has_shfl = cc >= 30;
  t->has_f16 = cc >= 53;
  t->has_f64_atomics = cc >= 60;
  t->has_coop = cc >= 60;
  t->has_its = cc >= 70;
  t->has_match = cc >= 70;
  t->has_tensor = cc >= 70;
  t->has_redux = cc >= 80;
  t->has_cp_async = cc >= 80;
  t->has_bf16 = cc >= 80;
  t->has_tma = cc >= 90;
  t->has_cluster = cc >= 90;
  t->has_pdl = cc >= 90;
  /* Only the GPU family of compute capability 10.0 has this instruction: the
   * assembler refuses it for 10.1, 11.0 and 12.x. */
  t->has_redux_f32 = cc == 100 || cc == 103;
}

static void set_limits(kiln_traits *t, const row *r)
{
  t->warp_size = WARP;
  t->max_threads_per_block = r->threads_block;
  t->max_threads_per_sm = r->threads_sm;
  t->max_blocks_per_sm = r->blocks_sm;
  t->max_warps_per_sm = r->threads_sm / WARP;
  t->regs_per_sm = r->kregs_sm * 1024;
  t->regs_per_block = r->kregs_block * 1024;
  t->max_regs_per_thread = r->regs_thread;
  t->reg_alloc_unit = r->reg_unit;
  t->warp_alloc_unit = r->warp_unit;
  t->smem_per_sm = r->smem_sm * KIB;
  t->smem_per_block = r->smem_block * KIB;
  t->smem_per_block_optin = r->smem_optin * KIB;
  t->smem_reserved_per_block = r->smem_reserved * KIB;
  t->smem_alloc_unit = r->smem_unit;
}

kiln_status kiln_arch_traits(int cc, kiln_traits *out)
{
  const row *r;

  if (out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out is NULL");
  if (cc < rows[0].cc)
    return kiln__fail(KILN_EINVAL, "write 9.0 as 90 and 12.1 as 121",
                      "%d is no compute capability", cc);
  r = find(cc);
  *out = (kiln_traits){.cc = cc, .tegra = kiln__arch_tegra(cc)};
  kiln__copy_text(out->family, sizeof out->family, r->family);
  set_features(out);
  set_limits(out, r);
  return KILN_OK;
}

/* The features that each compute capability introduced, as text for users. */
static const struct {
  int cc;
  const char *text;
} brought[] = {
    {10, "CUDA itself: blocks of threads, shared memory, barriers"},
    {11, "32-bit integer atomics in global memory"},
    {12, "atomics in shared memory; 64-bit integer atomics; warp votes any and "
         "all; twice the registers"},
    {13, "double precision"},
    {20, "ballot; L1 and L2 caches; one address space for pointers; float "
         "atomicAdd; barriers that count and vote; 3-D grids; 1,024 threads "
         "per block; device printf and malloc, recursion"},
    {21, "two instructions issued per scheduler and clock"},
    {30, "warp shuffle; unified memory; bindless textures; grids of 2^31 - 1 "
         "blocks"},
    {32, "Tegra K1: memory shared with the CPU; funnel shift; 255 registers "
         "per thread"},
    {35, "dynamic parallelism; 32 hardware queues; loads through the read-only "
         "cache; 64-bit atomicMin and atomicMax; 255 registers per thread"},
    {37, "twice the registers and 112 KiB of shared memory per SM"},
    {50, "shared memory apart from L1, with native 32-bit atomics; 32 blocks "
         "per SM"},
    {52, "96 KiB of shared memory per SM"},
    {53, "Tegra X1: half-precision arithmetic"},
    {60,
     "atomicAdd on double; block-wide and system-wide atomics; unified memory "
     "by page faults; cooperative launch; preemption in mid-kernel; NVLink"},
    {61, "dot products of 8-bit and 16-bit integers (dp4a, dp2a)"},
    {62, "Tegra X2: Pascal beside the CPU"},
    {70, "tensor cores for half precision; independent thread scheduling; "
         "_sync warp primitives; match; 96 KiB of shared memory per block"},
    {72, "Xavier: tensor cores for 8-bit integers"},
    {75, "tensor cores for 4-bit and 1-bit integers; matrix loads from shared "
         "memory (ldmatrix); ray-tracing cores"},
    {80,
     "asynchronous copies into shared memory (cp.async); warp reduce (redux); "
     "bfloat16; tensor cores for TF32 and double, structured sparsity; "
     "barriers as objects; L2 residency control; GPU partitions (MIG)"},
    {86, "twice the float lanes per SM"},
    {87, "Orin: Ampere beside the CPU, 164 KiB of shared memory per SM"},
    {88, "a further Ampere; code for it from CUDA 13.0 on"},
    {89, "tensor cores for 8-bit floats; 24 blocks per SM"},
    {90, "thread block clusters; distributed shared memory; bulk tensor copies "
         "(TMA) with transaction barriers; programmatic dependent launch; "
         "warpgroup matrix multiply (suffix a); dynamic-programming "
         "instructions; 128-bit atomics"},
    {100, "tensor memory and fifth-generation tensor cores (tcgen05), 4-bit "
          "and 6-bit floats; float redux; paired float arithmetic; family "
          "targets (suffix f)"},
    {101, "the name of Thor in CUDA 12: Blackwell beside the CPU"},
    {103, "denser 4-bit float matrix multiply"},
    {110, "the name of Thor in CUDA 13: Blackwell beside the CPU"},
    {120, "block-scaled 4-bit, 6-bit and 8-bit float matrix multiply in warps "
          "(suffix a or f)"},
    {121, "GB10: as 12.0, with memory shared with the CPU"},
};

const char *kiln_arch_brought(int cc)
{
  for (size_t i = 0; i < sizeof brought / sizeof brought[0]; i++) {
    if (brought[i].cc == cc)
      return brought[i].text;
  }
  return "";
}
