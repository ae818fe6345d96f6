/* device_query.c -- prints the generations of GPUs, and the properties of this
 * machine's GPU that limit a launch (row A2 of the lectures). The table of
 * generations needs no GPU. */
#include "sample.h"

#define KIB(bytes) ((bytes) / 1024)

/* Prints the limits of each compute capability and the features that it
 * introduced. */
static bool print_generations(void)
{
  bool good = true;
  size_t n;
  const int *list = kiln_arch_list(&n);

  printf("  cc  family      threads  warps  regs   shared KiB     brought\n"
         "                  a block  an SM  a thr  block (optin)\n");
  for (size_t i = 0; i < n; i++) {
    kiln_traits t;

    SAMPLE_TRY(kiln_arch_traits(list[i], &t));
    printf("%2d.%d  %-11s %7d  %5d  %5d  %5d  (%3d)   %s\n", t.cc / 10,
           t.cc % 10, t.family, t.max_threads_per_block, t.max_warps_per_sm,
           t.max_regs_per_thread, KIB(t.smem_per_block),
           KIB(t.smem_per_block_optin), kiln_arch_brought(list[i]));
    good = good && t.cc == list[i] && (i == 0 || list[i] > list[i - 1]) &&
           t.warp_size == 32;
  }
  return good && n > 0 && list[0] == 10;
}

static void print_traits(const kiln_traits *t)
{
  printf("  compute capability          %d.%d (%s)%s\n", t->cc / 10, t->cc % 10,
         t->family, t->tegra ? ", integrated" : "");
  printf("  warp                        %d lanes\n", t->warp_size);
  printf("  threads                     %d per block, %d per SM\n",
         t->max_threads_per_block, t->max_threads_per_sm);
  printf("  blocks, warps               %d, %d per SM\n", t->max_blocks_per_sm,
         t->max_warps_per_sm);
  printf(
      "  registers                   %d per thread, %d per block, %d per SM\n",
      t->max_regs_per_thread, t->regs_per_block, t->regs_per_sm);
  printf("  shared memory               %d KiB per block, %d with opt-in, "
         "%d per SM, %d B reserved a block\n",
         KIB(t->smem_per_block), KIB(t->smem_per_block_optin),
         KIB(t->smem_per_sm), t->smem_reserved_per_block);
  printf("  features                   %s%s%s%s%s%s%s%s%s%s\n",
         t->has_shfl ? " shuffle" : "",
         t->has_f64_atomics ? " f64-atomics" : "",
         t->has_coop ? " cooperative" : "", t->has_f16 ? " f16" : "",
         t->has_its ? " independent-threads" : "",
         t->has_tensor ? " tensor-cores" : "", t->has_bf16 ? " bf16" : "",
         t->has_redux ? " redux" : "", t->has_cp_async ? " cp.async" : "",
         t->has_cluster ? " clusters TMA" : "");
}

static const char *yes(bool b)
{
  return b ? "yes" : "no";
}

static void print_info(const kiln_device_info *d)
{
  printf("  multiprocessors             %d at up to %d MHz\n", d->sm_count,
         d->clock_khz / 1000);
  printf("  memory                      %.1f GiB, %d bits at %d MHz, "
         "L2 %d KiB\n",
         (double)d->memory_bytes / (1 << 30), d->memory_bus_bits,
         d->memory_clock_khz / 1000, KIB(d->l2_bytes));
  printf("  largest grid                %d x %d x %d blocks\n", d->max_grid[0],
         d->max_grid[1], d->max_grid[2]);
  printf("  largest block               %d x %d x %d threads\n",
         d->max_block[0], d->max_block[1], d->max_block[2]);
  printf("  kernels at once             %s, beside %d copies\n",
         yes(d->concurrent_kernels), d->copy_engines);
  printf("  cooperative launch          %s\n", yes(d->cooperative));
  printf("  stream-ordered memory       %s\n", yes(d->memory_pools));
  printf("  one address space           %s\n", yes(d->unified_addressing));
  printf("  error correction, slice     %s, %s\n", yes(d->ecc), yes(d->mig));
  printf("  where                       %s %s\n", d->pci, d->uuid);
}

/* Prints device properties that kiln_device_info has no member for. They are
 * queried by their CUdevice_attribute number. */
static void print_attributes(const kiln_device *device)
{
  static const struct {
    const char *what;
    int attribute;
  } rows[] = {
      {"constant memory, bytes", 9},   {"texture alignment, bytes", 14},
      {"kernels are timed out", 17},   {"maps host memory", 19},
      {"compute mode (0 shared)", 20}, {"stream priorities", 78},
      {"managed memory", 83},          {"f32 : f64 rate", 87},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int value;

    if (kiln_device_attribute(device, rows[i].attribute, &value) == KILN_OK)
      printf("  %-26s  %d\n", rows[i].what, value);
  }
}

/* Makes the four driver calls of the lecture: allocate, copy to the device,
 * synchronise, copy back. */
static bool round_trip(kiln_device *device)
{
  const int there = 42;
  int back = 0;
  CUdeviceptr p;

  SAMPLE_TRY(kiln_memory_alloc(&p, device, sizeof there));
  SAMPLE_TRY(kiln_copy_to_device(device, p, &there, sizeof there));
  SAMPLE_TRY(kiln_device_synchronize(device));
  SAMPLE_TRY(kiln_copy_to_host(device, &back, p, sizeof back));
  SAMPLE_TRY(kiln_memory_free(device, p));
  printf("  allocate, copy, synchronise: sent %d, got back %d\n", there, back);
  return back == there;
}

int main(int argc, char **argv)
{
  bool good;
  int n;
  sample s;

  sample_open(&s, argc, argv);
  good = print_generations();
  SAMPLE_TRY(kiln_device_count(s.rt, &n));
  for (int i = 0; i < n; i++) {
    kiln_device *device;
    kiln_device_info info;

    SAMPLE_TRY(kiln_device_open(&device, s.rt, i, NULL));
    SAMPLE_TRY(kiln_device_describe(device, &info));
    printf("\nGPU %d: %s\n", i, info.name);
    print_traits(kiln_device_traits(device));
    print_info(&info);
    print_attributes(device);
    good = round_trip(device) && good;
    kiln_device_free(device);
  }
  return sample_end(&s, good);
}
