/* launch_test.c -- launches of every kind on the device under test. */
#include "gpu_fixture.h"

#include <pthread.h>
#include <unistd.h>

static const char source[] =
    "typedef unsigned long long u64;\n"
    /* Adds the thread's coordinates to its element, so that a skipped or
     * repeated element shows. */
    "extern \"C\" __global__ void mark(unsigned *out, unsigned nx,"
    " unsigned ny, unsigned nz)\n"
    "{\n"
    "  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;\n"
    "  const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;\n"
    "  if (x < nx && y < ny && z < nz)\n"
    "    atomicAdd(&out[(z * ny + y) * nx + x], 1 + x + 7 * y + 31 * z);\n"
    "}\n"
    "extern \"C\" __global__ void reverse(int *data, int n)\n"
    "{\n"
    "  extern __shared__ int tile[];\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
    "    tile[i] = data[i];\n"
    "  __syncthreads();\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
    "    data[i] = tile[n - 1 - i];\n"
    "}\n"
    /* This kernel ends only if all blocks are resident at the same time. */
    "extern \"C\" __global__ void meet(unsigned *arrived)\n"
    "{\n"
    "  if (threadIdx.x == 0) {\n"
    "    atomicAdd(arrived, 1);\n"
    "    while (*(volatile unsigned *)arrived < gridDim.x)\n"
    "      ;\n"
    "  }\n"
    "}\n"
    "extern \"C\" __global__ void count(u64 *total, u64 n)\n"
    "{\n"
    "  u64 mine = 0;\n"
    "  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
    "       i += (u64)gridDim.x * blockDim.x)\n"
    "    mine++;\n"
    "  if (mine != 0)\n"
    "    atomicAdd(total, mine);\n"
    "}\n"
    "extern \"C\" __global__ void speak(int n)\n"
    "{\n"
    "  printf(\"thread %d says %d\\n\", (int)threadIdx.x, n);\n"
    "}\n"
    "struct many { int v[1000]; };\n"
    "extern \"C\" __global__ void pick(many m, int i, int *out)\n"
    "{\n"
    "  *out = m.v[i];\n"
    "}\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "extern \"C\" __global__ void cluster(unsigned *out)\n"
    "{\n"
    "  unsigned rank, n;\n"
    "  asm volatile(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));\n"
    "  asm volatile(\"mov.u32 %0, %%cluster_nctarank;\" : \"=r\"(n));\n"
    "  asm volatile(\"barrier.cluster.arrive;\\n\\tbarrier.cluster.wait;\");\n"
    "  if (threadIdx.x == 0)\n"
    "    out[blockIdx.x] = n * 100 + rank;\n"
    "}\n"
    "extern \"C\" __global__ void produce(int *data, int n)\n"
    "{\n"
    "  asm volatile(\"griddepcontrol.launch_dependents;\");\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
    "    data[i] = i;\n"
    "}\n"
    "extern \"C\" __global__ void consume(int *data, int n)\n"
    "{\n"
    "  asm volatile(\"griddepcontrol.wait;\");\n"
    "  for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
    "    data[i] = 2 * data[i] + 1;\n"
    "}\n"
    "#endif\n";

static kiln_module *module;

static void set_up(void)
{
  gpu_set_up();
  module = gpu_load(g.device, source);
}

static void tear_down(void)
{
  kiln_module_free(module);
  gpu_tear_down();
}

/* ---- Shapes -------------------------------------------------------------- */

static void check_shape(const kiln_launch_config *c, uint32_t nx, uint32_t ny,
                        uint32_t nz)
{
  const size_t n = (size_t)nx * ny * nz;
  CUdeviceptr out = gpu_alloc(g.device, n * 4);
  uint32_t *back = malloc(n * 4);

  ck_kiln_ok(kiln_fill(g.device, out, 0, 4, n));
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "mark"), c, KILN_ARG(out),
                         KILN_ARG(nx), KILN_ARG(ny), KILN_ARG(nz)));
  ck_kiln_ok(kiln_copy_to_host(g.device, back, out, n * 4));
  for (uint32_t z = 0; z < nz; z++)
    for (uint32_t y = 0; y < ny; y++)
      for (uint32_t x = 0; x < nx; x++)
        ck_assert_uint_eq(back[((size_t)z * ny + y) * nx + x],
                          1 + x + 7 * y + 31 * z);
  free(back);
  ck_kiln_ok(kiln_memory_free(g.device, out));
}

START_TEST(one_two_and_three_dimensions)
{
  static const uint32_t sizes[] = {1, 31, 32, 33, 255, 256, 257, 1025};
  kiln_launch_config c;

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    c = kiln_launch_1d(sizes[i], 256);
    check_shape(&c, sizes[i], 1, 1);
    c = kiln_launch_2d(sizes[i], 37, 32, 8);
    check_shape(&c, sizes[i], 37, 1);
    c = kiln_launch_3d(sizes[i], 5, 9, 16, 4, 4);
    check_shape(&c, sizes[i], 5, 9);
  }
  c = kiln_launch_2d(1, 70, 1, 1);
  check_shape(&c, 1, 70, 1);
}
END_TEST

START_TEST(more_elements_than_32_bits_count)
{
  uint64_t n = ((uint64_t)1 << 32) + 12345, total = 0;
  CUdeviceptr out = gpu_alloc(g.device, 8);
  kiln_launch_config c = kiln_launch_1d(n, 1024);

  ck_assert_uint_eq(c.grid.x, (uint32_t)((n + 1023) / 1024));
  if (on_cpu()) { /* the CPU device would take a minute */
    n = ((uint64_t)1 << 22) + 12345;
    c = kiln_launch_1d(n, 1024);
  }
  ck_kiln_ok(kiln_fill(g.device, out, 0, 4, 2));
  ck_kiln_ok(
      KILN_LAUNCH(gpu_kernel(module, "count"), &c, KILN_ARG(out), KILN_ARG(n)));
  ck_kiln_ok(kiln_copy_to_host(g.device, &total, out, 8));
  ck_assert(total == n);
  ck_kiln_ok(kiln_memory_free(g.device, out));
}
END_TEST

START_TEST(limits_are_the_devices)
{
  const kiln_traits *t = kiln_device_traits(g.device);
  kiln_kernel *kernel = gpu_kernel(module, "reverse");
  CUdeviceptr p = gpu_alloc(g.device, 64);
  int n = 0;
  kiln_launch_config c = {.grid = {1, 1, 1}, .block = {1, 1, 1}};

  c.block.x = (uint32_t)t->max_threads_per_block + 1;
  ck_kiln_is(KILN_LAUNCH(kernel, &c, KILN_ARG(p), KILN_ARG(n)), KILN_ELIMIT);
  c.block.x = 32;
  c.grid.y = 65536;
  ck_kiln_is(KILN_LAUNCH(kernel, &c, KILN_ARG(p), KILN_ARG(n)), KILN_ELIMIT);
  c.grid.y = 65535;
  ck_kiln_ok(KILN_LAUNCH(kernel, &c, KILN_ARG(p), KILN_ARG(n)));
  c.grid.y = 1;
  c.smem = (uint32_t)t->smem_per_block_optin + 1;
  ck_kiln_is(KILN_LAUNCH(kernel, &c, KILN_ARG(p), KILN_ARG(n)), KILN_ELIMIT);
  c.smem = 0;
  ck_kiln_is(KILN_LAUNCH(kernel, &c, KILN_ARG(p)), KILN_EARGS);
  ck_kiln_is(KILN_LAUNCH(kernel, &c, KILN_ARG(n), KILN_ARG(n)), KILN_EARGS);
  /* the refused launch left the context intact */
  ck_kiln_ok(kiln_device_synchronize(g.device));
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

/* ---- Shared memory ------------------------------------------------------- */

static void reverse(uint32_t bytes)
{
  const int n = (int)(bytes / 4);
  const kiln_launch_config c = {
      .grid = {1, 1, 1}, .block = {1024, 1, 1}, .smem = bytes};
  CUdeviceptr p = gpu_alloc(g.device, bytes);
  int *data = malloc(bytes);

  for (int i = 0; i < n; i++)
    data[i] = 3 * i + 1;
  ck_kiln_ok(kiln_copy_to_device(g.device, p, data, bytes));
  ck_kiln_ok(
      KILN_LAUNCH(gpu_kernel(module, "reverse"), &c, KILN_ARG(p), KILN_ARG(n)));
  ck_kiln_ok(kiln_copy_to_host(g.device, data, p, bytes));
  for (int i = 0; i < n; i++)
    ck_assert_int_eq(data[i], 3 * (n - 1 - i) + 1);
  free(data);
  ck_kiln_ok(kiln_memory_free(g.device, p));
}

START_TEST(dynamic_shared_memory_up_to_the_limit)
{
  const uint32_t most =
      (uint32_t)kiln_device_traits(g.device)->smem_per_block_optin;

  reverse(4096);
  reverse(48 * 1024);
  if (most > 100 * 1024)
    reverse(100 * 1024);
  reverse(most);
  reverse(1024); /* a smaller size still works after opting in to the largest */
}
END_TEST

/* ---- Cooperative launches, clusters, overlap ----------------------------- */

START_TEST(cooperative_blocks_meet)
{
  kiln_kernel *kernel = gpu_kernel(module, "meet");
  kiln_launch_config c = {.block = {256, 1, 1}, .cooperative = true};
  CUdeviceptr p = gpu_alloc(g.device, 4);
  kiln_device_info info;
  uint32_t arrived;
  int each;

  ck_kiln_ok(kiln_device_describe(g.device, &info));
  if (!info.cooperative) {
    c.grid.x = 1;
    ck_kiln_is(KILN_LAUNCH(kernel, &c, KILN_ARG(p)), KILN_EUNSUPPORTED);
    return;
  }
  ck_kiln_ok(kiln_kernel_occupancy(kernel, 256, 0, &each));
  ck_assert_int_gt(each, 0);
  c.grid = (kiln_dim3){(uint32_t)(each * info.sm_count), 1, 1};
  ck_kiln_ok(kiln_fill(g.device, p, 0, 4, 1));
  ck_kiln_ok(KILN_LAUNCH(kernel, &c, KILN_ARG(p)));
  ck_kiln_ok(kiln_copy_to_host(g.device, &arrived, p, 4));
  ck_assert_uint_eq(arrived, c.grid.x);
  c.grid.x++;
  ck_kiln_is(KILN_LAUNCH(kernel, &c, KILN_ARG(p)), KILN_ELIMIT);
  printf("%s\n", kiln_last_error()->message);
  ck_kiln_ok(kiln_device_synchronize(g.device));
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

static bool has_clusters(void)
{
  if (kiln_device_traits(g.device)->has_cluster)
    return true;
  printf("skipped: needs compute capability 9.0\n");
  return false;
}

static void check_cluster(uint32_t size, kiln_status want)
{
  kiln_launch_config c = {
      .grid = {32, 1, 1}, .block = {64, 1, 1}, .cluster = {size, 1, 1}};
  CUdeviceptr p = gpu_alloc(g.device, 32 * 4);
  uint32_t back[32];
  const kiln_status st =
      KILN_LAUNCH(gpu_kernel(module, "cluster"), &c, KILN_ARG(p));

  ck_assert_msg(st == want, "clusters of %u: %s: %s", size,
                kiln_status_name(st), kiln_last_error()->message);
  if (st == KILN_OK) {
    ck_kiln_ok(kiln_copy_to_host(g.device, back, p, sizeof back));
    for (uint32_t i = 0; i < 32; i++)
      ck_assert_uint_eq(back[i], size * 100 + i % size);
  }
  ck_kiln_ok(kiln_memory_free(g.device, p));
}

START_TEST(clusters)
{
  if (!has_clusters())
    return;
  check_cluster(1, KILN_OK);
  check_cluster(2, KILN_OK);
  check_cluster(8, KILN_OK);
  /* the cluster size does not divide the grid size */
  check_cluster(3, KILN_EINVAL);
  check_cluster(32, KILN_ELIMIT);
  if (kiln_device_traits(g.device)->cc == 90)
    check_cluster(16, KILN_OK); /* Kiln opts in to clusters above 8 blocks */
}
END_TEST

START_TEST(clusters_are_refused_before_9_0)
{
  kiln_launch_config c = {.grid = {2, 1, 1}, .block = {32, 1, 1}};
  CUdeviceptr p = 0;

  if (kiln_device_traits(g.device)->has_cluster) {
    printf("skipped: the GPU has clusters\n");
    return;
  }
  c.cluster.x = 2;
  ck_kiln_is(KILN_LAUNCH(gpu_kernel(module, "meet"), &c, KILN_ARG(p)),
             KILN_EUNSUPPORTED);
}
END_TEST

START_TEST(dependent_launches_keep_their_order)
{
  kiln_launch_config c = {.grid = {1, 1, 1}, .block = {256, 1, 1}};
  CUdeviceptr p = gpu_alloc(g.device, 4000);
  kiln_stream *stream;
  int n = 1000, back[1000];

  if (!has_clusters())
    goto done;
  ck_kiln_ok(kiln_stream_create(&stream, g.device, NULL));
  c.stream = stream;
  for (int round = 0; round < 50; round++) {
    c.overlap_prior = false;
    ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "produce"), &c, KILN_ARG(p),
                           KILN_ARG(n)));
    c.overlap_prior = true;
    ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "consume"), &c, KILN_ARG(p),
                           KILN_ARG(n)));
    ck_kiln_ok(kiln_stream_synchronize(stream));
    ck_kiln_ok(kiln_copy_to_host(g.device, back, p, sizeof back));
    for (int i = 0; i < n; i++)
      ck_assert_int_eq(back[i], 2 * i + 1);
  }
  kiln_stream_free(stream);

done:
  ck_kiln_ok(kiln_memory_free(g.device, p));
}
END_TEST

/* ---- Parameters ---------------------------------------------------------- */

START_TEST(structs_by_value)
{
  static struct {
    int v[1000];
  } many;
  const kiln_launch_config c = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  CUdeviceptr out = gpu_alloc(g.device, 4);
  int i = 999, got = 0;

  for (int k = 0; k < 1000; k++)
    many.v[k] = k * k;
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "pick"), &c, KILN_ARG(many),
                         KILN_ARG(i), KILN_ARG(out)));
  ck_kiln_ok(kiln_copy_to_host(g.device, &got, out, 4));
  ck_assert_int_eq(got, 999 * 999);
  ck_kiln_ok(kiln_memory_free(g.device, out));
}
END_TEST

static const char big_source[] =
    "struct big { int v[INTS]; };\n"
    "extern \"C\" __global__ void pick(const __grid_constant__ big b, int i,"
    " int *out)\n{\n  *out = b.v[i];\n}\n";

/* Parameters may exceed 4 KiB from compute capability 7.0 and CUDA 12.1 on, but
 * never 32,764 bytes. */
START_TEST(parameters_above_4_kib)
{
  static struct {
    int v[5000];
  } big;
  static const char *const fits[] = {"INTS=5000"};
  static const char *const exceeds[] = {"INTS=9000"};
  kiln_program_desc desc = {
      .source = big_source, .defines = fits, .n_defines = 1};
  const kiln_launch_config c = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  CUdeviceptr out;
  kiln_module *m;
  int i = 4999, got = 0;

  if (kiln_module_load(&m, g.device, &desc) != KILN_OK) {
    printf("skipped: %s\n", kiln_last_error()->message);
    ck_assert_int_eq(kiln_last_error()->status, KILN_ECOMPILE);
    return;
  }
  out = gpu_alloc(g.device, 4);
  big.v[4999] = 4711;
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(m, "pick"), &c, KILN_ARG(big), KILN_ARG(i),
                         KILN_ARG(out)));
  ck_kiln_ok(kiln_copy_to_host(g.device, &got, out, 4));
  ck_assert_int_eq(got, 4711);
  kiln_module_free(m);
  ck_kiln_ok(kiln_memory_free(g.device, out));
  desc.defines = exceeds;
  ck_kiln_is(kiln_module_load(&m, g.device, &desc), KILN_ECOMPILE);
}
END_TEST

/* ---- printf -------------------------------------------------------------- */

START_TEST(printf_is_flushed_by_synchronising)
{
  const kiln_launch_config c = {.grid = {1, 1, 1}, .block = {3, 1, 1}};
  char path[] = "/tmp/kiln-printf-XXXXXX", text[256] = "";
  const int file = mkstemp(path), out = dup(STDOUT_FILENO);
  int n = 42;
  ssize_t size;

  ck_assert_int_ge(file, 0);
  fflush(stdout);
  ck_assert_int_ge(dup2(file, STDOUT_FILENO), 0);
  ck_kiln_ok(KILN_LAUNCH(gpu_kernel(module, "speak"), &c, KILN_ARG(n)));
  ck_kiln_ok(kiln_device_synchronize(g.device));
  fflush(stdout);
  dup2(out, STDOUT_FILENO);
  close(out);
  size = pread(file, text, sizeof text - 1, 0);
  close(file);
  unlink(path);
  ck_assert_int_gt(size, 0);
  ck_assert_ptr_nonnull(strstr(text, "thread 0 says 42\n"));
  ck_assert_ptr_nonnull(strstr(text, "thread 2 says 42\n"));
}
END_TEST

/* ---- Occupancy ----------------------------------------------------------- */

START_TEST(the_table_counts_like_the_driver)
{
  kiln_kernel *kernel = gpu_kernel(module, "reverse");
  kiln_kernel_info info;
  int block = 0, grid = 0;

  ck_kiln_ok(kiln_kernel_describe(kernel, &info));
  for (int threads = 32; threads <= 1024; threads += 32) {
    for (uint32_t smem = 0; smem <= 96 * 1024; smem += 12 * 1024 + 256) {
      kiln_occupancy_result table;
      int blocks;

      ck_kiln_ok(kiln_kernel_occupancy(kernel, threads, smem, &blocks));
      ck_kiln_ok(kiln_occupancy(kiln_device_traits(g.device), threads,
                                info.registers,
                                smem + (size_t)info.shared_static, &table));
      ck_assert_msg(table.blocks_per_sm == blocks,
                    "%d threads, %u bytes: table %d, driver %d", threads, smem,
                    table.blocks_per_sm, blocks);
    }
  }
  ck_kiln_ok(kiln_kernel_suggest(kernel, 0, 0, &block, &grid));
  ck_assert_int_gt(block, 0);
  ck_assert_int_gt(grid, 0);
  ck_kiln_ok(kiln_kernel_suggest(kernel, 0, 128, &block, &grid));
  ck_assert_int_le(block, 128);
}
END_TEST

/* ---- Threads ------------------------------------------------------------- */

static CUdeviceptr shared_total;

static void *launch_many(void *arg)
{
  kiln_launch_config c = kiln_launch_1d(1000, 128);
  kiln_stream *stream;
  uint64_t n = 1000;

  (void)arg;
  if (kiln_stream_create(&stream, g.device, NULL) != KILN_OK)
    return "no stream";
  c.stream = stream;
  for (int i = 0; i < 1000; i++) {
    if (KILN_LAUNCH(gpu_kernel(module, "count"), &c, KILN_ARG(shared_total),
                    KILN_ARG(n)) != KILN_OK)
      return "a launch failed";
  }
  if (kiln_stream_synchronize(stream) != KILN_OK)
    return "not finished";
  kiln_stream_free(stream);
  return NULL;
}

START_TEST(threads_launch_one_kernel)
{
  pthread_t threads[8];
  void *complaint;
  uint64_t total = 0;

  shared_total = gpu_alloc(g.device, 8);
  ck_kiln_ok(kiln_fill(g.device, shared_total, 0, 4, 2));
  for (int i = 0; i < 8; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, launch_many, NULL), 0);
  for (int i = 0; i < 8; i++) {
    pthread_join(threads[i], &complaint);
    ck_assert_msg(complaint == NULL, "%s", (char *)complaint);
  }
  ck_kiln_ok(kiln_copy_to_host(g.device, &total, shared_total, 8));
  ck_assert(total == 8 * 1000 * 1000);
  ck_kiln_ok(kiln_memory_free(g.device, shared_total));
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("launches on a GPU");
  TCase *t = tcase_create("launch");

  tcase_set_tags(t, "brief");
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, one_two_and_three_dimensions);
  tcase_add_test(t, more_elements_than_32_bits_count);
  tcase_add_test(t, limits_are_the_devices);
  tcase_add_test(t, dynamic_shared_memory_up_to_the_limit);
  tcase_add_test(t, cooperative_blocks_meet);
  tcase_add_test(t, clusters);
  tcase_add_test(t, clusters_are_refused_before_9_0);
  tcase_add_test(t, dependent_launches_keep_their_order);
  tcase_add_test(t, structs_by_value);
  tcase_add_test(t, parameters_above_4_kib);
  tcase_add_test(t, printf_is_flushed_by_synchronising);
  tcase_add_test(t, the_table_counts_like_the_driver);
  tcase_add_test(t, threads_launch_one_kernel);
  suite_add_tcase(suite, t);
  return suite;
}

DEVICE_TEST_MAIN(make)
