/* operations_test.c -- the common parts of all operations: the temporary
 * storage of a stream, tile descriptors that need no clearing, the
 * specialisation cache, captures, and threads. */
#include "operation_checks.h"

#include "ops/ops.h"

#include <pthread.h>

/* ---- Tile descriptors: a look-back over blocks --------------------------- */

/* Computes out[b] = scale * (1 + ... + (b + 1)). Each block waits for lower
 * blocks only. */
static const char source[] =
    "#include <kiln/look_back.cuh>\n"
    "extern \"C\" __global__ void chain(unsigned long long *words,\n"
    "                                   unsigned epoch, double scale,\n"
    "                                   double *out)\n"
    "{\n"
    "  const double mine = scale * (blockIdx.x + 1.0);\n"
    "  double before = 0;\n"
    "  const kiln::sum op{};\n"
    "  if (threadIdx.x == 0)\n"
    "    kiln::tile_publish(words, blockIdx.x, mine,\n"
    "        kiln::descriptor_tag(epoch, blockIdx.x == 0\n"
    "                                        ? kiln::status_prefix\n"
    "                                        : kiln::status_partial));\n"
    "  if (blockIdx.x > 0) {\n"
    "    before = kiln::tile_look_back(words, blockIdx.x, epoch, op, 0.0);\n"
    "    if (threadIdx.x == 0)\n"
    "      kiln::tile_publish(words, blockIdx.x, before + mine,\n"
    "          kiln::descriptor_tag(epoch, kiln::status_prefix));\n"
    "  }\n"
    "  if (threadIdx.x == 0)\n"
    "    out[blockIdx.x] = before + mine;\n"
    "}\n";

static kiln_module *module;
static kiln_kernel *chain;

static void setup_chain(void)
{
  const kiln_program_desc desc = {.source = source};

  setup();
  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&chain, module, "chain"));
}

static void teardown_chain(void)
{
  kiln_module_free(module);
  teardown();
}

/* Reserves temporary storage, launches the kernel and releases the storage, as
 * an operation does. */
static kiln_status run_chain(kiln_stream *in, uint32_t blocks, double scale,
                             CUdeviceptr out, const kiln_workspace *workspace,
                             size_t temp)
{
  const kiln__need need = {.temp = temp, .descriptors = 2 * (size_t)blocks};
  const kiln_launch_config config = {
      .grid = {blocks, 1, 1}, .block = {32, 1, 1}, .stream = in};
  kiln__storage storage;
  kiln_status st = kiln__storage_open(&storage, in, workspace, need);
  uint32_t epoch;

  if (st != KILN_OK)
    return st;
  epoch = kiln__storage_epoch(&storage);
  st = KILN_LAUNCH(chain, &config, KILN_ARG(storage.descriptors),
                   KILN_ARG(epoch), KILN_ARG(scale), KILN_ARG(out));
  kiln__storage_close(&storage);
  return st;
}

static void check_chain(const double *got, uint32_t blocks, double scale)
{
  for (uint32_t b = 0; b < blocks; b++)
    ck_assert_double_eq(got[b], scale * (b + 1.0) * (b + 2.0) / 2);
}

START_TEST(test_marks)
{
  /* With a seed the CPU device starts blocks in random order, unlike a GPU. All
   * blocks must then be resident at the same time. */
  const bool any_order = on_cpu() && strstr(test_cpu, "seed") != NULL;
  const uint32_t sizes[] = {1,  2, 31, 32, 33, 100, 64, any_order ? 200 : 3000,
                            65, 7};
  test_array out = array_make(KILN_F64, 3000, 0, NULL, 0x11);

  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
    double *got;

    ck_kiln_ok(run_chain(stream, sizes[k], (double)k + 1, out.array.data, NULL,
                         k % 3 == 0 ? 100000 : 0));
    got = kept(array_read(&out));
    check_chain(got, sizes[k], (double)k + 1);
  }
}
END_TEST

/* A workspace of the caller may have any contents and any sufficient size. */
START_TEST(test_given_workspace)
{
  enum { BLOCKS = 70 };
  const size_t bytes =
      kiln__need_bytes((kiln__need){.temp = 1000, .descriptors = 2 * BLOCKS});
  test_array out = array_make(KILN_F64, BLOCKS, 0, NULL, 0x11);
  test_array storage = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  kiln_workspace given = {storage.array.data, bytes};
  double *got;

  ck_kiln_ok(run_chain(stream, BLOCKS, 2, out.array.data, &given, 1000));
  got = kept(array_read(&out));
  check_chain(got, BLOCKS, 2);
  free(array_read(&storage));
  given.size = bytes - 1;
  ck_assert_int_eq(run_chain(stream, BLOCKS, 2, out.array.data, &given, 1000),
                   KILN_EINVAL);
  given = (kiln_workspace){storage.array.data + 8, bytes};
  ck_assert_int_eq(run_chain(stream, BLOCKS, 2, out.array.data, &given, 1000),
                   KILN_EINVAL);
}
END_TEST

/* Storage above the size that a stream keeps comes from the memory pool and is
 * returned. */
START_TEST(test_large_room)
{
  enum { BLOCKS = 40 };
  test_array out = array_make(KILN_F64, BLOCKS, 0, NULL, 0x11);
  double *got;

  for (int i = 0; i < 3; i++)
    ck_kiln_ok(
        run_chain(stream, BLOCKS, 3, out.array.data, NULL, (size_t)16 << 20));
  got = kept(array_read(&out));
  check_chain(got, BLOCKS, 3);
}
END_TEST

/* ---- Threads ------------------------------------------------------------- */

enum { THREADS = 4, CALLS = 25, CHAIN = 37 };

typedef struct worker {
  kiln_stream *stream;
  CUdeviceptr out; /* device array for CALLS * CHAIN results */
  double scale;
  kiln_status st;
} worker;

static void *work(void *user)
{
  worker *w = user;

  for (int i = 0; i < CALLS && w->st == KILN_OK; i++)
    w->st = run_chain(w->stream, CHAIN, w->scale + i,
                      w->out + 8 * (CUdeviceptr)(i * CHAIN), NULL, 0);
  return NULL;
}

static void many_threads(bool one_stream)
{
  pthread_t thread[THREADS];
  test_array out = array_make(KILN_F64, THREADS * CALLS * CHAIN, 0, NULL, 1);
  worker w[THREADS];
  double *got;

  for (int i = 0; i < THREADS; i++) {
    w[i] =
        (worker){stream, out.array.data + 8 * (CUdeviceptr)(i * CALLS * CHAIN),
                 100.0 * (i + 1), KILN_OK};
    if (!one_stream)
      ck_kiln_ok(kiln_stream_create(&w[i].stream, device, NULL));
    ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &w[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_int_eq(w[i].st, KILN_OK);
  }
  got = kept(array_read(&out));
  for (int i = 0; i < THREADS; i++)
    for (int k = 0; k < CALLS; k++)
      check_chain(got + (i * CALLS + k) * CHAIN, CHAIN, w[i].scale + k);
  for (int i = 0; i < THREADS && !one_stream; i++)
    kiln_stream_free(w[i].stream);
}

START_TEST(test_threads_one_stream)
{
  many_threads(true);
}
END_TEST

START_TEST(test_threads_own_streams)
{
  many_threads(false);
}
END_TEST

/* ---- Captures ------------------------------------------------------------ */

/* A captured call can be replayed many times, also between other calls in its
 * stream. */
START_TEST(test_capture)
{
  enum { BLOCKS = 50 };
  test_array out = array_make(KILN_F64, BLOCKS, 0, NULL, 0x11);
  test_array other = array_make(KILN_F64, BLOCKS, 0, NULL, 0x11);
  const kiln_map_desc desc = {.in = {out.array},
                              .out = {out.array},
                              .expr = {"x * 2 + 0.5"},
                              .n = BLOCKS};
  CUgraphExec exec;
  double *got;

  capture_begin();
  ck_kiln_ok(run_chain(stream, BLOCKS, 5, out.array.data, NULL, 0));
  /* the first call of this map compiles its kernel */
  ck_kiln_ok(kiln_map(stream, &desc, NULL));
  exec = capture_end();
  for (int i = 0; i < 3; i++) {
    ck_kiln_ok(run_chain(stream, BLOCKS, 7, other.array.data, NULL, 0));
    capture_replay(exec);
    got = kept(array_read(&out));
    for (int b = 0; b < BLOCKS; b++)
      ck_assert_double_eq(got[b], 5 * (b + 1.0) * (b + 2.0) + 0.5);
    got = kept(array_read(&other));
    check_chain(got, BLOCKS, 7);
  }
  capture_free(exec);
}
END_TEST

/* ---- Specialised kernels ------------------------------------------------- */

/* Calls with the same expressions, types and constants share their kernels;
 * others do not. */
START_TEST(test_specials)
{
  static const char *const kernels[] = {"map", NULL};
  static const kiln__family family = {"map", kernels, "BLOCK\0"};
  const float one = 1, two = 2;
  kiln_param param = {"p", KILN_F32, &one, false};
  kiln_code code = {.params = &param, .n_params = 1};
  kiln_input x = {.in = {{256, KILN_F32}}, .map = "x + p"};
  kiln__spec spec = {
      .family = &family, .value = {64}, .input = &x, .code = &code};
  const kiln__kernel_set *first, *again, *constant, *other;
  char same[8];

  ck_kiln_ok(kiln__specialise(&first, device, &spec));
  strcpy(same, "x + p");
  x.map = same;
  /* a parameter is passed at each call and is not part of the cache key */
  param.value = &two;
  ck_kiln_ok(kiln__specialise(&again, device, &spec));
  ck_assert_ptr_eq(first, again);
  param.constant = true;
  ck_kiln_ok(kiln__specialise(&constant, device, &spec));
  ck_assert_ptr_ne(first, constant);
  param.value = &one;
  ck_kiln_ok(kiln__specialise(&other, device, &spec));
  ck_assert_ptr_ne(constant, other);
  param.constant = false;
  x.in[0].data = 260; /* the input is no longer aligned to 16 bytes */
  ck_kiln_ok(kiln__specialise(&other, device, &spec));
  ck_assert_ptr_ne(first, other);
  x.in[0].data = 512;
  spec.value[0] = 128;
  ck_kiln_ok(kiln__specialise(&other, device, &spec));
  ck_assert_ptr_ne(first, other);
}
END_TEST

/* The library's two functions for the size of an element must agree. */
START_TEST(element_sizes)
{
  for (int type = -1; type <= KILN_C128 + 1; type++)
    ck_assert_uint_eq(kiln__size((kiln_dtype)type),
                      kiln_dtype_size((kiln_dtype)type));
}
END_TEST

/* Every operation in the table needs a stream and a desc. Every workspace query
 * also needs an address for the size. */
START_TEST(missing_arguments)
{
  const operation *op = &operations[_i];
  void *desc = kept(calloc(1, op->desc_size));
  size_t bytes = 1;

  ck_kiln_is(op->run(NULL, desc, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, ": no stream"));
  ck_refused(op, NULL, NULL, KILN_EINVAL, ": no desc");
  ck_kiln_is(op->need(NULL, desc, &bytes), KILN_EINVAL);
  ck_kiln_is(op->need(stream, NULL, &bytes), KILN_EINVAL);
  ck_assert_uint_eq(bytes, 0);
  ck_kiln_is(op->need(stream, desc, NULL), KILN_EINVAL);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "bytes is NULL"));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("operations");
  TCase *t = tcase_create("operations");

  tcase_set_tags(t, "brief");
  tcase_add_checked_fixture(t, setup_chain, teardown_chain);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, element_sizes);
  tcase_add_loop_test(t, missing_arguments, 0, N_OPERATIONS);
  tcase_add_test(t, test_marks);
  tcase_add_test(t, test_given_workspace);
  tcase_add_test(t, test_large_room);
  tcase_add_test(t, test_threads_one_stream);
  tcase_add_test(t, test_threads_own_streams);
  tcase_add_test(t, test_capture);
  tcase_add_test(t, test_specials);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
