/* kernels_test.c -- the warp and block collectives of the prelude, in each of
 * their implementations, compared with reductions on the host. */
#include "test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "#include <kiln/prelude.cuh>\n"
    "struct map8 { unsigned m, c; };\n"
    "struct map16 { unsigned long long m, c; };\n"
    /* Composition of affine maps x -> m x + c: associative, but not
     * commutative. */
    "struct then {\n"
    "  template <class T> __device__ T operator()(T a, T b) const\n"
    "  {\n"
    "    T r;\n"
    "    r.m = a.m * b.m;\n"
    "    r.c = a.c * b.m + b.c;\n"
    "    return r;\n"
    "  }\n"
    "};\n"
    "template <class T, class Op>\n"
    "__device__ void collect(const T *in, T *out, T zero, Op op)\n"
    "{\n"
    "  const unsigned n = kiln::block_threads();\n"
    "  const unsigned at = blockIdx.x * n + kiln::thread();\n"
    "  const T v = in[at];\n"
    "  T *o = out + at * 11ull;\n"
    "  o[0] = kiln::warp_reduce(v, op);\n"
    "  o[1] = kiln::warp_scan_inclusive(v, op);\n"
    "  o[2] = kiln::warp_scan_exclusive(v, op, zero);\n"
    "  o[3] = kiln::warp_broadcast(v, 5);\n"
    "  o[4] = kiln::shuffle_down(v, 3);\n"
    "  o[5] = kiln::shuffle_up(v, 7);\n"
    "  o[6] = kiln::shuffle_xor(v, 9);\n"
    "  o[7] = kiln::block_reduce(v, op);\n"
    "  o[8] = kiln::block_scan_inclusive(v, op);\n"
    "  o[9] = kiln::block_scan_exclusive(v, op, zero);\n"
    "  o[10] = kiln::block_broadcast(v, n - 1);\n"
    "}\n"
    "#define FOLD(name, T, op, zero)                                         "
    "\\\n"
    "  extern \"C\" __global__ void name(const T *in, T *out)               "
    "\\\n"
    "  {                                                                     "
    "\\\n"
    "    collect(in, out, zero, op());                                       "
    "\\\n"
    "  }\n"
    "FOLD(sum_u8, unsigned char, kiln::sum, (unsigned char)0)\n"
    "FOLD(sum_u16, unsigned short, kiln::sum, (unsigned short)0)\n"
    "FOLD(sum_i32, int, kiln::sum, 0)\n"
    "FOLD(min_i32, int, kiln::min, kiln::min::identity<int>())\n"
    "FOLD(max_i32, int, kiln::max, kiln::max::identity<int>())\n"
    "FOLD(sum_u32, unsigned, kiln::sum, 0u)\n"
    "FOLD(min_u32, unsigned, kiln::min, kiln::min::identity<unsigned>())\n"
    "FOLD(max_u32, unsigned, kiln::max, kiln::max::identity<unsigned>())\n"
    "FOLD(and_u32, unsigned, kiln::bit_and,\n"
    "     kiln::bit_and::identity<unsigned>())\n"
    "FOLD(or_u32, unsigned, kiln::bit_or, 0u)\n"
    "FOLD(xor_u32, unsigned, kiln::bit_xor, 0u)\n"
    "FOLD(sum_i64, long long, kiln::sum, 0ll)\n"
    "FOLD(max_i64, long long, kiln::max, kiln::max::identity<long long>())\n"
    "FOLD(min_u64, unsigned long long, kiln::min,\n"
    "     kiln::min::identity<unsigned long long>())\n"
    "FOLD(sum_f32, float, kiln::sum, 0.0f)\n"
    "FOLD(max_f32, float, kiln::max, kiln::max::identity<float>())\n"
    "FOLD(sum_f64, double, kiln::sum, 0.0)\n"
    "FOLD(min_f64, double, kiln::min, kiln::min::identity<double>())\n"
    "FOLD(then_8, map8, then, (map8{1, 0}))\n"
    "FOLD(then_16, map16, then, (map16{1, 0}))\n"
    "extern \"C\" __global__ void votes(const unsigned *in, unsigned *out)\n"
    "{\n"
    "  const unsigned at =\n"
    "      blockIdx.x * kiln::block_threads() + kiln::thread();\n"
    "  const unsigned v = in[at];\n"
    "  unsigned *o = out + at * 8ull;\n"
    "  o[0] = kiln::warp_ballot(v % 3 == 0);\n"
    "  o[1] = kiln::warp_any(v % 32 == 0);\n"
    "  o[2] = kiln::warp_all(v % 32 != 0);\n"
    "  o[3] = kiln::warp_match(v % 5);\n"
    "  o[4] = kiln::block_any(v % 256 == 0);\n"
    "  o[5] = kiln::block_all(v % 256 != 0);\n"
    "  o[6] = kiln::block_count(v % 3 == 0);\n"
    "  o[7] = kiln::lane() | kiln::warp() << 8 | kiln::thread() << 16;\n"
    "}\n";

enum { FOLDS = 11, VOTES = 8, WARP = 32 };

/* ---- Reference results on the host --------------------------------------- */

typedef enum kind { U8, U16, I32, U32, I64, U64, F32, F64, MAP8, MAP16 } kind;
typedef enum operation { SUM, MIN, MAX, AND, OR, XOR, THEN } operation;

static const size_t sizes[] = {1, 2, 4, 4, 8, 8, 4, 8, 8, 16};

/* A value of any type. Numbers are stored in c as signed 64-bit integers. */
typedef struct value {
  uint64_t m;
  int64_t c;
} value;

typedef struct fold_case {
  const char *kernel;
  kind kind;
  operation op;
  int64_t identity;
} fold_case;

static const fold_case folds[] = {
    {"sum_u8", U8, SUM, 0},
    {"sum_u16", U16, SUM, 0},
    {"sum_i32", I32, SUM, 0},
    {"min_i32", I32, MIN, INT32_MAX},
    {"max_i32", I32, MAX, INT32_MIN},
    {"sum_u32", U32, SUM, 0},
    {"min_u32", U32, MIN, UINT32_MAX},
    {"max_u32", U32, MAX, 0},
    {"and_u32", U32, AND, UINT32_MAX},
    {"or_u32", U32, OR, 0},
    {"xor_u32", U32, XOR, 0},
    {"sum_i64", I64, SUM, 0},
    {"max_i64", I64, MAX, INT64_MIN},
    {"min_u64", U64, MIN, -1},
    {"sum_f32", F32, SUM, 0},
    {"max_f32", F32, MAX, INT64_MIN},
    {"sum_f64", F64, SUM, 0},
    {"min_f64", F64, MIN, INT64_MAX},
    {"then_8", MAP8, THEN, 0},
    {"then_16", MAP16, THEN, 0},
};

enum { N_FOLDS = sizeof folds / sizeof folds[0] };

static value random_value(kind k, uint64_t *state)
{
  const uint64_t r = test_random(state);
  value v = {1, 0};

  switch (k) {
  case U8:
    v.c = (int64_t)(r % 200);
    break;
  case U16:
    v.c = (int64_t)(r % 60000);
    break;
  case I32:
  case F32:
    v.c = (int64_t)(r % 2001) - 1000; /* so small that float sums are exact */
    break;
  case U32:
    v.c = (int64_t)(r % 4000000000u);
    break;
  case I64:
  case F64:
    v.c = (int64_t)(r % 2000000000000u) - 1000000000000;
    break;
  case U64:
    v.c = (int64_t)(r >> 1);
    break;
  case MAP8:
    v.m = (uint32_t)(r | 1);
    v.c = (int64_t)(uint32_t)(r >> 32);
    break;
  case MAP16:
    v.m = r | 1;
    v.c = (int64_t)test_random(state);
    break;
  }
  return v;
}

/* Truncates a 64-bit value to the values of this type. */
static value cut(kind k, value v)
{
  switch (k) {
  case U8:
    v.c = (uint8_t)v.c;
    break;
  case U16:
    v.c = (uint16_t)v.c;
    break;
  case U32:
    v.c = (uint32_t)v.c;
    break;
  case MAP8:
    v.m = (uint32_t)v.m;
    v.c = (uint32_t)v.c;
    break;
  default:
    break;
  }
  return v;
}

static value fold(const fold_case *f, value a, value b)
{
  const uint64_t x = (uint64_t)a.c, y = (uint64_t)b.c;
  const bool less = f->kind == U64 ? x < y : a.c < b.c;
  value r = {1, 0};

  switch (f->op) {
  case SUM:
    r.c = (int64_t)(x + y);
    break;
  case MIN:
    r = less ? a : b;
    break;
  case MAX:
    r = less ? b : a;
    break;
  case AND:
    r.c = (int64_t)(x & y);
    break;
  case OR:
    r.c = (int64_t)(x | y);
    break;
  case XOR:
    r.c = (int64_t)(x ^ y);
    break;
  case THEN:
    r.m = a.m * b.m;
    r.c = (int64_t)(x * b.m + y);
    break;
  }
  return cut(f->kind, r);
}

static void encode(kind k, value v, void *at)
{
  const float f = (float)v.c;
  const double d = (double)v.c;
  const uint32_t map8[] = {(uint32_t)v.m, (uint32_t)v.c};
  const uint64_t map16[] = {v.m, (uint64_t)v.c};
  /* on a little-endian host an integer starts with its low bytes */
  const void *from = &v.c;

  if (k == F32)
    from = &f;
  else if (k == F64)
    from = &d;
  else if (k == MAP8)
    from = map8;
  else if (k == MAP16)
    from = map16;
  memcpy(at, from, sizes[k]);
}

/* The identity of a float minimum or maximum is infinite. */
static void encode_identity(const fold_case *f, void *at)
{
  const float inf = f->op == MIN ? __builtin_inff() : -__builtin_inff();
  const double wide = (double)inf;

  if (f->op != SUM && f->kind == F32)
    memcpy(at, &inf, sizeof inf);
  else if (f->op != SUM && f->kind == F64)
    memcpy(at, &wide, sizeof wide);
  else
    encode(f->kind, (value){1, f->identity}, at);
}

/* ---- Set-up -------------------------------------------------------------- */

static const char *const plain[] = {NULL};
static const char *const no_redux[] = {"KILN_HAS_REDUX=0", "KILN_HAS_MATCH=0",
                                       NULL};
static const char *const no_shuffle[] = {"KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0",
                                         "KILN_HAS_MATCH=0", NULL};
static const char *const lock_step[] = {"KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0",
                                        "KILN_HAS_MATCH=0", "KILN_HAS_ITS=0",
                                        NULL};

static const struct {
  const char *name;
  const char *const *traits;
} bodies[] = {{"this GPU's own", plain},
              {"shuffles only", no_redux},
              {"shared memory", no_shuffle},
              {"shared memory in lock-step", lock_step}};

enum { N_BODIES = sizeof bodies / sizeof bodies[0] };

static const kiln_dim3 shapes[] = {{32, 1, 1},   {96, 1, 1}, {256, 1, 1},
                                   {1024, 1, 1}, {8, 4, 3},  {2, 16, 10},
                                   {16, 4, 16}};

enum { N_SHAPES = sizeof shapes / sizeof shapes[0], BLOCKS = 3 };

static kiln_runtime *rt;
static kiln_device *device;

static void setup(void)
{
  ck_kiln_ok(test_runtime(&rt, NULL));
  ck_kiln_ok(kiln_device_open(&device, rt, 0, NULL));
}

static bool body_runs(int body)
{
  return bodies[body].traits != lock_step ||
         lock_step_bodies_run(kiln_device_traits(device));
}

static void teardown(void)
{
  kiln_device_free(device);
  kiln_runtime_free(rt);
}

static kiln_module *load(int body)
{
  kiln_program_desc desc = {.source = source, .name = "collectives.cu"};
  kiln_module *module = NULL;

  desc.traits = bodies[body].traits;
  while (desc.traits[desc.n_traits] != NULL)
    desc.n_traits++;
  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  return module;
}

/* Runs a kernel with parameters (in, out). The output is filled with a pattern
 * first. */
static void run(kiln_module *module, const char *name, kiln_dim3 block,
                const void *in, size_t in_size, void *out, size_t out_size)
{
  const kiln_launch_config config = {.grid = {BLOCKS, 1, 1}, .block = block};
  kiln_kernel *kernel = NULL;
  CUdeviceptr from, to;

  ck_kiln_ok(kiln_module_kernel(&kernel, module, name));
  ck_kiln_ok(kiln_memory_alloc(&from, device, in_size));
  ck_kiln_ok(kiln_memory_alloc(&to, device, out_size));
  ck_kiln_ok(kiln_copy_to_device(device, from, in, in_size));
  ck_kiln_ok(kiln_fill(device, to, 0xa5, 1, out_size));
  ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(from), KILN_ARG(to)));
  ck_kiln_ok(kiln_device_synchronize(device));
  ck_kiln_ok(kiln_copy_to_host(device, out, to, out_size));
  ck_kiln_ok(kiln_memory_free(device, from));
  ck_kiln_ok(kiln_memory_free(device, to));
}

/* ---- Folds --------------------------------------------------------------- */

/* Reduces v[first] .. v[last] in this order. */
static value fold_range(const fold_case *f, const value *v, size_t first,
                        size_t last)
{
  value r = v[first];

  for (size_t i = first + 1; i <= last; i++)
    r = fold(f, r, v[i]);
  return r;
}

/* Computes the results that thread t of a block of n threads must get, in the
 * order of the kernel's outputs. */
static void expect(const fold_case *f, const value *v, size_t n, size_t t,
                   unsigned char out[FOLDS][16])
{
  const size_t w = t / WARP * WARP, l = t % WARP;

  encode(f->kind, fold_range(f, v, w, w + WARP - 1), out[0]);
  encode(f->kind, fold_range(f, v, w, t), out[1]);
  encode_identity(f, out[2]);
  if (l > 0)
    encode(f->kind, fold_range(f, v, w, t - 1), out[2]);
  encode(f->kind, v[w + 5], out[3]);
  encode(f->kind, v[l + 3 < WARP ? t + 3 : t], out[4]);
  encode(f->kind, v[l >= 7 ? t - 7 : t], out[5]);
  encode(f->kind, v[w + (l ^ 9)], out[6]);
  encode(f->kind, fold_range(f, v, 0, n - 1), out[7]);
  encode(f->kind, fold_range(f, v, 0, t), out[8]);
  encode_identity(f, out[9]);
  if (t > 0)
    encode(f->kind, fold_range(f, v, 0, t - 1), out[9]);
  encode(f->kind, v[n - 1], out[10]);
}

static void check_fold(kiln_module *module, int body, const fold_case *f,
                       kiln_dim3 shape, uint64_t *state)
{
  const size_t n = (size_t)shape.x * shape.y * shape.z, all = n * BLOCKS;
  const size_t size = sizes[f->kind];
  value *v = malloc(all * sizeof *v);
  unsigned char *in = malloc(all * size), *out = malloc(all * size * FOLDS);

  ck_assert(v != NULL && in != NULL && out != NULL);
  for (size_t i = 0; i < all; i++) {
    v[i] = random_value(f->kind, state);
    encode(f->kind, v[i], in + i * size);
  }
  run(module, f->kernel, shape, in, all * size, out, all * size * FOLDS);
  for (size_t i = 0; i < all; i++) {
    unsigned char want[FOLDS][16];

    expect(f, v + i / n * n, n, i % n, want);
    for (size_t k = 0; k < FOLDS; k++)
      ck_assert_msg(memcmp(want[k], out + (i * FOLDS + k) * size, size) == 0,
                    "%s, %s, block %u x %u x %u: output %zu of thread %zu",
                    bodies[body].name, f->kernel, shape.x, shape.y, shape.z, k,
                    i);
  }
  free(v);
  free(in);
  free(out);
}

START_TEST(folds_and_shuffles)
{
  kiln_module *module;
  uint64_t state = 0x1234567u + (uint64_t)_i;

  if (!body_runs(_i))
    return;
  module = load(_i);
  for (size_t f = 0; f < N_FOLDS; f++)
    for (size_t s = 0; s < N_SHAPES; s++)
      check_fold(module, _i, &folds[f], shapes[s], &state);
  kiln_module_free(module);
}
END_TEST

/* ---- Votes --------------------------------------------------------------- */

static void expect_votes(const uint32_t *v, size_t n, size_t t,
                         uint32_t out[VOTES])
{
  const size_t w = t / WARP * WARP;
  uint32_t ballot = 0, match = 0, any = 0, all = 1, block_any = 0;
  uint32_t block_all = 1, count = 0;

  for (size_t l = 0; l < WARP; l++) {
    ballot |= (uint32_t)(v[w + l] % 3 == 0) << l;
    match |= (uint32_t)(v[w + l] % 5 == v[t] % 5) << l;
    any |= v[w + l] % 32 == 0;
    all &= v[w + l] % 32 != 0;
  }
  for (size_t i = 0; i < n; i++) {
    block_any |= v[i] % 256 == 0;
    block_all &= v[i] % 256 != 0;
    count += v[i] % 3 == 0;
  }
  out[0] = ballot;
  out[1] = any;
  out[2] = all;
  out[3] = match;
  out[4] = block_any;
  out[5] = block_all;
  out[6] = count;
  out[7] = (uint32_t)(t % WARP | t / WARP << 8 | t << 16);
}

START_TEST(votes)
{
  kiln_module *module;
  uint64_t state = 99 + (uint64_t)_i;

  if (!body_runs(_i))
    return;
  module = load(_i);
  for (size_t s = 0; s < N_SHAPES; s++) {
    const kiln_dim3 shape = shapes[s];
    const size_t n = (size_t)shape.x * shape.y * shape.z, all = n * BLOCKS;
    uint32_t *in = malloc(all * sizeof *in);
    uint32_t *out = malloc(all * VOTES * sizeof *out);

    ck_assert(in != NULL && out != NULL);
    for (size_t i = 0; i < all; i++)
      in[i] = (uint32_t)test_random(&state);
    run(module, "votes", shape, in, all * sizeof *in, out,
        all * VOTES * sizeof *out);
    for (size_t i = 0; i < all; i++) {
      uint32_t want[VOTES];

      expect_votes(in + i / n * n, n, i % n, want);
      for (size_t k = 0; k < VOTES; k++)
        ck_assert_msg(want[k] == out[i * VOTES + k],
                      "%s, block %u x %u x %u: vote %zu of thread %zu",
                      bodies[_i].name, shape.x, shape.y, shape.z, k, i);
    }
    free(in);
    free(out);
  }
  kiln_module_free(module);
}
END_TEST

static Suite *kernels(void)
{
  Suite *s = suite_create("kernels");
  TCase *t = tcase_create("prelude");

  tcase_set_tags(t, "brief");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, folds_and_shuffles, 0, N_BODIES);
  tcase_add_loop_test(t, votes, 0, N_BODIES);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(kernels)
