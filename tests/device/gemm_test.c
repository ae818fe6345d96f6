/* gemm_test.c -- kiln_gemm for every type, layout and shape, compared with sums
 * in double. Most tests use small whole numbers, so that every product and sum
 * is exact and any wrong index shows. Gaps between lines and matrices hold NaN
 * or a pattern, and guard zones surround the arrays. */
#include "gemm_product.h"

/* ---- Tests --------------------------------------------------------------- */

START_TEST(test_one)
{
  product p = usual(5, 6, 7);
  uint64_t state = 1;

  check_product(&p, &state);
}
END_TEST

/* Each layout of A and B; C and D take turns. */
START_TEST(test_layouts)
{
  uint64_t state = 5;

  for (unsigned layout = 0; layout < 16; layout++) {
    product p = usual(69, 37, 21);

    p.layout = layout | (layout % 4) << 4;
    p.beta = -1;
    p.gap = 1;
    check_product(&p, &state);
  }
}
END_TEST

START_TEST(test_types)
{
  product p = usual(130, 68, 36);
  uint64_t state = 7;

  set_types(&p, (size_t)_i);
  check_product(&p, &state);
  p.beta = -2;
  p.alpha = 3;
  p.layout = 0x2d;
  p.inputs = true;
  check_product(&p, &state);
  p.m = 17;
  p.n = 33;
  p.k = 15;
  p.layout = 0x13;
  p.shift = 1;
  check_product(&p, &state);
}
END_TEST

/* Each tile, for sizes around it and layouts that copy A and B in each way. */
START_TEST(test_tiles)
{
  static const kiln_gemm_tile tiles[] = {
      {128, 256, 0}, {128, 128, 0}, {128, 64, 0}, {64, 64, 0},
      {128, 32, 0},  {32, 32, 0},   {8, 256, 2},  {256, 8, 2}};
  uint64_t state = 43;

  for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
    for (unsigned layout = 0; layout < 2; layout++) {
      product p = usual(tiles[i].m + 12 * layout, tiles[i].n + 8, 40);

      if (layout != i % 2 && !test_thoroughly())
        continue;
      p.layout = layout == 0 ? 0 : 5;
      p.tile = tiles[i];
      p.in_place = true;
      p.beta = 1;
      check_product(&p, &state);
      p.m = 1 + tiles[i].m / 3;
      p.n -= 9;
      p.k = 19;
      check_product(&p, &state);
    }
}
END_TEST

/* Products whose tiles several blocks share, on devices where some warps copy and the
 * others multiply: sums that fill a stage or do not, elements that are aligned or not,
 * each layout of A and B. */
static const struct {
  size_t m, n, k, batch;
  unsigned layout, shift, tile;
} shared_calls[] = {
    {128, 128, 1, 1, 0, 0, 128},   {128, 132, 264, 3, 0, 0, 128},
    {132, 255, 301, 1, 1, 0, 128}, {200, 136, 500, 1, 2, 0, 128},
    {131, 280, 277, 1, 0, 1, 256}, {256, 128, 1030, 1, 37, 0, 256}};

enum { N_SHARED = sizeof shared_calls / sizeof shared_calls[0] };

START_TEST(test_shared_tiles)
{
  product p = usual(shared_calls[_i].m, shared_calls[_i].n, shared_calls[_i].k);
  uint64_t state = 47;

  p.batch = shared_calls[_i].batch;
  p.layout = shared_calls[_i].layout;
  p.shift = shared_calls[_i].shift;
  p.tile = p.layout < 32 ? (kiln_gemm_tile){128, shared_calls[_i].tile, 0}
                         : (kiln_gemm_tile){shared_calls[_i].tile, 128, 0};
  p.in_place = true;
  p.beta = 1;
  check_product(&p, &state);
}
END_TEST

/* Long sums, split over blocks or not. */
START_TEST(test_split)
{
  static const uint32_t splits[] = {0, 1, 2, 5};
  uint64_t state = 13;

  for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
    product p = usual(33, 65, 1000);

    p.tile.split = splits[i];
    p.beta = 2;
    check_product(&p, &state);
    p.type = p.c_type = p.d_type = KILN_F64;
    p.k = 333;
    p.layout = 0x21;
    check_product(&p, &state);
  }
}
END_TEST

/* m, n or k is 0, and alpha is 0 with NaN in A and B. */
START_TEST(test_nothing)
{
  static const size_t shapes[][3] = {
      {0, 5, 5}, {5, 0, 5}, {5, 7, 0}, {0, 0, 0}, {40, 70, 0}};
  uint64_t state = 17;

  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    product p = usual(shapes[i][0], shapes[i][1], shapes[i][2]);

    check_product(&p, &state);
    p.beta = 3;
    p.inputs = true;
    check_product(&p, &state);
  }
  {
    product p = usual(20, 30, 40);

    p.alpha = 0;
    p.beta = 2;
    check_product(&p, &state);
  }
}
END_TEST

START_TEST(test_batches)
{
  uint64_t state = 19;

  for (unsigned i = 0; i < 16; i++) {
    product p = usual(i % 2 == 0 ? 32 : 19, 32, i % 3 == 0 ? 32 : 9);

    p.batch = 5;
    p.gap = i % 2;
    p.apart = i % 3;
    p.pointers = i % 5 == 2 ? 0 : i;
    p.one_b = i % 4 == 1;
    p.layout = i * 4 % 64;
    p.beta = i % 2 == 0;
    check_product(&p, &state);
  }
}
END_TEST

/* ---- Errors of the arithmetic -------------------------------------------- */

/* Returns a normal random number (sum of uniform ones). */
static double random_normal(uint64_t *state)
{
  double v = -6;

  for (int i = 0; i < 12; i++)
    v += (double)(test_random(state) >> 11) * 0x1p-53;
  return v;
}

/* Fills a matrix with normal random numbers of its type, f32 or f64. */
static matrix make_normal(kiln_dtype type, size_t rows, size_t columns,
                          uint64_t *state)
{
  matrix x = {.rows = rows, .columns = columns, .batch = 1};

  x.m = (kiln_gemm_matrix){.type = type, .leading = columns};
  x.size = rows * columns;
  x.host = kept(malloc(x.size * kiln_dtype_size(type) + 1));
  for (size_t i = 0; i < x.size; i++)
    if (type == KILN_F64)
      ((double *)x.host)[i] = random_normal(state);
    else
      ((float *)x.host)[i] = (float)random_normal(state);
  x.array = array_make(type, x.size, 0, x.host, 0);
  x.m.data = x.array.array.data;
  return x;
}

/* Compares D with sums in double (or long double) under the bound of the
 * contract. */
static void ck_bound(const matrix x[3], double alpha, double u, double v)
{
  const size_t k = x[0].columns;
  matrix d = x[2];

  d.host = kept(array_read(&x[2].array));
  for (size_t r = 0; r < d.rows; r++)
    for (size_t c = 0; c < d.columns; c++) {
      long double sum = 0, whole = 0;

      for (size_t i = 0; i < k; i++) {
        const long double term =
            (long double)at(&x[0], r, i, 0) * (long double)at(&x[1], i, c, 0);

        sum += term;
        whole += fabsl(term);
      }
      ck_assert_msg(
          fabsl((long double)at(&d, r, c, 0) - (long double)alpha * sum) <=
              fabsl((long double)alpha) * whole *
                  (2 * (long double)u + (long double)(k + 4) * (long double)v),
          "D[%zu][%zu] is %.9g, not %.9Lg", r, c, at(&d, r, c, 0),
          (long double)alpha * sum);
    }
}

static const struct {
  kiln_dtype type;
  kiln_gemm_precision precision;
  double u, v;
} bounds[] = {{KILN_F32, KILN_GEMM_IEEE, 0, 0x1p-24},
              {KILN_F32, KILN_GEMM_F32, 0x1p-23, 0x1p-23},
              {KILN_F32, KILN_GEMM_F32_FAST, 0x1p-16, 0x1p-23},
              {KILN_F32, KILN_GEMM_TF32, 0x1p-10, 0x1p-23},
              {KILN_F64, KILN_GEMM_IEEE, 0, 0x1p-53}};

enum { N_BOUNDS = sizeof bounds / sizeof bounds[0] };

START_TEST(test_error_bounds)
{
  const kiln_dtype type = bounds[_i].type;
  uint64_t state = 23;
  matrix x[3];

  x[0] = make_normal(type, 40, 200, &state);
  x[1] = make_normal(type, 200, 36, &state);
  x[2] = make_normal(type, 40, 36, &state);
  {
    const kiln_gemm_desc desc = {.m = 40,
                                 .n = 36,
                                 .k = 200,
                                 .alpha = 1.5,
                                 .a = x[0].m,
                                 .b = x[1].m,
                                 .d = x[2].m,
                                 .precision = bounds[_i].precision};

    ck_kiln_ok(kiln_gemm(stream, &desc, NULL));
  }
  ck_bound(x, 1.5, bounds[_i].u, bounds[_i].v);
}
END_TEST

/* Sums that are split over three blocks are added in a fixed order, so that the
 * same call gives the same bits: the last part, the first, and the second. */
START_TEST(test_split_order)
{
  enum { N = 32, K = 96, PART = K / 3 };
  uint64_t state = 53;
  matrix x[3];
  kiln_gemm_desc desc = {.m = N, .n = N, .k = K, .alpha = 1, .tile = {N, N, 3}};
  float part[3][N * N], *got;

  x[0] = make_normal(KILN_F32, N, K, &state);
  x[1] = make_normal(KILN_F32, K, N, &state);
  x[2] = make_normal(KILN_F32, N, N, &state);
  desc.a = x[0].m;
  desc.b = x[1].m;
  desc.d = x[2].m;
  ck_kiln_ok(kiln_gemm(stream, &desc, NULL));
  got = kept(array_read(&x[2].array));
  desc.k = PART;
  desc.tile.split = 1;
  for (int i = 0; i < 3; i++) {
    ck_kiln_ok(kiln_gemm(stream, &desc, NULL));
    memcpy(part[i], kept(array_read(&x[2].array)), sizeof part[i]);
    desc.a.data += PART * sizeof(float);
    desc.b.data += PART * N * sizeof(float);
  }
  for (size_t i = 0; i < (size_t)N * N; i++)
    ck_assert(got[i] == (part[2][i] + part[0][i]) + part[1][i]);
}
END_TEST

/* Infinities and NaN in A and B reach exactly the rows and columns that use
 * them. */
START_TEST(test_special_values)
{
  enum { M = 37, N = 41, K = 19 };
  uint64_t state = 29;
  matrix x[3];
  float *a, *b, *d;

  x[0] = make_normal(KILN_F32, M, K, &state);
  x[1] = make_normal(KILN_F32, K, N, &state);
  x[2] = make_normal(KILN_F32, M, N, &state);
  a = x[0].host;
  b = x[1].host;
  a[3 * K + 18] = INFINITY;
  a[36 * K + 2] = NAN;
  b[18 * N + 40] = 0;
  b[7 * N + 5] = -INFINITY;
  a[9 * K + 7] = 1;
  ck_kiln_ok(kiln_copy_to_device(device, x[0].m.data, a, M * K * sizeof *a));
  ck_kiln_ok(kiln_copy_to_device(device, x[1].m.data, b, K * N * sizeof *b));
  {
    const kiln_gemm_desc desc = {.m = M,
                                 .n = N,
                                 .k = K,
                                 .alpha = 1,
                                 .a = x[0].m,
                                 .b = x[1].m,
                                 .d = x[2].m};

    ck_kiln_ok(kiln_gemm(stream, &desc, NULL));
  }
  d = kept(array_read(&x[2].array));
  ck_assert(isnan(d[3 * N + 40])); /* infinity * 0 */
  ck_assert(isinf(d[3 * N + 39]));
  ck_assert(d[9 * N + 5] == -INFINITY);
  for (size_t i = 0; i < (size_t)M * N; i++) {
    ck_assert((i / N == 36) <= (isnan(d[i]) != 0));
    ck_assert_msg(isfinite(d[i]) || i / N == 36 || i / N == 3 || i % N == 5,
                  "D[%zu][%zu] is %g", i / N, i % N, (double)d[i]);
  }
}
END_TEST

/* ---- Tensor cores -------------------------------------------------------- */

static const struct {
  kiln_gemm_tile tile;
  size_t types; /* row of types[] */
  kiln_gemm_precision precision;
  size_t batch;
} tensor_calls[] = {{{256, 256, 0}, 4, KILN_GEMM_IEEE, 1},
                    {{256, 128, 0}, 0, KILN_GEMM_F32, 1},
                    {{128, 256, 0}, 4, KILN_GEMM_IEEE, 1},
                    {{256, 128, 0}, 2, KILN_GEMM_IEEE, 1},
                    {{128, 192, 0}, 4, KILN_GEMM_IEEE, 1},
                    {{128, 128, 0}, 8, KILN_GEMM_IEEE, 1},
                    {{128, 128, 0}, 0, KILN_GEMM_F32, 1},
                    {{128, 64, 0}, 0, KILN_GEMM_TF32, 1},
                    {{64, 128, 0}, 3, KILN_GEMM_IEEE, 3},
                    {{64, 64, 0}, 0, KILN_GEMM_F32_FAST, 3}};

enum { N_TENSOR_CALLS = sizeof tensor_calls / sizeof tensor_calls[0] };

/* Each tile of the kernels for tensor cores, with more than one tile in each
 * direction: lines that the copy engine reads in place, with NaN behind the sum,
 * and lines that start anywhere. Other devices have only the small square
 * tiles. */
START_TEST(test_tensor_tiles)
{
  const kiln_gemm_tile tile = tensor_calls[_i].tile;
  product p = usual(tile.m + 24, tile.n + 40, 131);
  uint64_t state = 41;

  if (kiln_device_traits(device)->cc != 90 && tile.m != tile.n)
    return;
  if (tile.m == 256 && kiln_device_traits(device)->cc != 90)
    return;
  set_types(&p, tensor_calls[_i].types);
  p.tile = tile;
  p.precision = tensor_calls[_i].precision;
  p.batch = tensor_calls[_i].batch;
  p.layout = (unsigned)(_i * 4) % 16;
  p.line = 16;
  if (_i % 2 == 0 || test_thoroughly())
    check_product(&p, &state);
  if (_i % 4 == 0 && !test_thoroughly())
    return;
  p.n -= 3;
  p.line = 0;
  p.gap = 1;
  p.shift = 1;
  p.beta = 2;
  p.inputs = true;
  p.layout = (unsigned)(_i * 11 + 5) % 32;
  check_product(&p, &state);
}
END_TEST

/* Lines of D start at multiples of 16 bytes, but do not end there. Stores of
 * whole lines must not reach beyond the ends. */
START_TEST(test_ends_of_lines)
{
  static const size_t rows[] = {4, 5, 8, 10};
  uint64_t state = 59;

  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    product p = usual(35, 41 + 2 * i, 40);

    set_types(&p, rows[i]);
    p.line = 16;
    p.layout = i % 2 * 32;
    p.batch = i == 0 ? 3 : 1;
    check_product(&p, &state);
  }
}
END_TEST

static const struct {
  kiln_gemm_tile tile;
  unsigned layout;
  kiln_dtype d_type;
  bool inputs;
} turned_calls[] = {{{256, 256, 0}, 0x00, KILN_F32, false},
                    {{256, 128, 0}, 0x10, KILN_F32, true},
                    {{128, 256, 0}, 0x05, KILN_BF16, false},
                    {{128, 128, 0}, 0x20, KILN_F32, false},
                    {{64, 128, 0}, 0x00, KILN_F16, true},
                    {{64, 64, 0}, 0x21, KILN_F32, true}};

enum { N_TURNED_CALLS = sizeof turned_calls / sizeof turned_calls[0] };

/* Products of tf32 whose operands have to be turned, by the kernel itself where
 * rows start at multiples of 16 bytes. The stages are more than the kernel has,
 * and an odd and an even number. */
START_TEST(test_turned)
{
  const kiln_gemm_tile tile = turned_calls[_i].tile;
  product p = usual(tile.m + 24, tile.n + 40, 32 * (size_t)(5 + _i % 2) + 12);
  uint64_t state = 47;

  if (kiln_device_traits(device)->cc != 90)
    return;
  p.tile = tile;
  p.precision = KILN_GEMM_TF32;
  p.d_type = turned_calls[_i].d_type;
  p.c_type = p.d_type;
  p.layout = turned_calls[_i].layout;
  p.inputs = turned_calls[_i].inputs;
  p.beta = _i % 2;
  p.batch = _i == 4 ? 2 : 1;
  p.gap = _i % 3 == 1 ? 4 : 0;
  check_product(&p, &state);
}
END_TEST

/* kiln::gelu() keeps its bound, and infinity and NaN pass. C holds the arguments. */
START_TEST(test_gelu)
{
  enum { M = 61, N = 67 };
  uint64_t state = 61;
  const kiln_gemm_matrix none = {0};
  matrix x[2];
  float *v;
  kiln_gemm_desc desc = {.m = M,
                         .n = N,
                         .beta = 1,
                         .a = none,
                         .b = none,
                         .epilogue = "kiln::gelu(acc)"};

  x[0] = make_normal(KILN_F32, M, N, &state);
  x[1] = make_normal(KILN_F32, M, N, &state);
  v = x[0].host;
  for (int i = 0; i < M * N; i++)
    v[i] = (float)(24.0 * i / (M * N - 1) - 12);
  v[5] = INFINITY;
  v[9] = NAN;
  desc.a.type = desc.b.type = KILN_F32;
  desc.c = x[0].m;
  desc.d = x[1].m;
  ck_kiln_ok(kiln_copy_to_device(device, x[0].m.data, v, M * N * sizeof *v));
  ck_kiln_ok(kiln_gemm(stream, &desc, NULL));
  ck_kiln_ok(kiln_stream_synchronize(stream));
  ck_kiln_ok(
      kiln_copy_to_host(device, x[1].host, x[1].m.data, M * N * sizeof *v));
  for (int i = 0; i < M * N; i++) {
    const double want = 0.5 * v[i] * erfc(-v[i] / sqrt(2));
    const float got = ((const float *)x[1].host)[i];

    if (i == 5 || i == 9)
      ck_assert(i == 5 ? isinf(got) && got > 0 : isnan(got));
    else
      ck_assert_double_le(fabs(got - want), 6e-7);
  }
}
END_TEST

/* Devices use the tensor cores for every type that these have, and for f32 only
 * on request. */
START_TEST(test_tensor_path)
{
  const int cc = kiln_device_traits(device)->cc;
  const char *path = cc == 90 ? "wgmma" : cc >= 80 ? "mma" : "simt";
  kiln_gemm_choice choice;
  uint64_t state = 43;
  matrix x[3];
  kiln_gemm_desc desc = {.m = 64, .n = 64, .k = 64, .alpha = 1};

  x[0] = make_normal(KILN_F32, 64, 64, &state);
  x[1] = make_normal(KILN_F32, 64, 64, &state);
  x[2] = make_normal(KILN_F32, 64, 64, &state);
  desc.a = x[0].m;
  desc.b = x[1].m;
  desc.d = x[2].m;
  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  ck_assert_str_eq(choice.path, "simt");
  desc.precision = KILN_GEMM_F32;
  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  ck_assert_str_eq(choice.path, path);
  desc.precision = KILN_GEMM_IEEE;
  desc.a.type = desc.b.type = desc.d.type = KILN_BF16;
  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  ck_assert_str_eq(choice.path, path);
}
END_TEST

/* Large products of f32 have their own kernel on 9.0. */
START_TEST(test_path_of_large)
{
  uint64_t state = 53;
  kiln_gemm_choice choice;
  kiln_gemm_desc desc = {
      .m = 128, .n = 256, .k = 16, .alpha = 1, .tile = {128, 256, 0}};

  desc.a = make_normal(KILN_F32, 128, 16, &state).m;
  desc.b = make_normal(KILN_F32, 16, 256, &state).m;
  desc.d = make_normal(KILN_F32, 128, 256, &state).m;
  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  ck_assert_str_eq(choice.path,
                   kiln_device_traits(device)->cc == 90 ? "ffma" : "simt");
  desc.tile.split = 1;
  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  ck_assert_str_eq(choice.path, "simt");
  ck_assert_uint_eq(choice.tile.split, 1);
  /* A block counts less than 2^31 positions of a sum. */
  desc.a.leading = 0;
  desc.a.data = UINT64_C(1) << 50;
  desc.b.data = UINT64_C(1) << 52;
  desc.k = UINT64_C(5) << 30;
  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  ck_assert_uint_ge(choice.tile.split, 5);
}
END_TEST

/* ---- Rules of all operations --------------------------------------------- */

/* Makes a call with exact results whose sums are split over three blocks. */
static operation_call exact_call(void)
{
  uint64_t state = 31;
  product p = usual(70, 40, 96);
  matrix x[4];
  float *want;
  kiln_gemm_desc desc = {
      .m = 70, .n = 40, .k = 96, .alpha = 1, .tile.split = 3};
  operation_call c;

  x[0] = make_matrix(KILN_F32, p.m, p.k, 0, 1, &p, 4, &state);
  x[1] = make_matrix(KILN_F32, p.k, p.n, 0, 1, &p, 4, &state);
  x[3] = make_matrix(KILN_F32, p.m, p.n, 0, 1, &p, 4, &state);
  x[2] = x[3];
  want = kept(malloc(p.m * p.n * sizeof *want));
  for (size_t i = 0; i < p.m * p.n; i++)
    want[i] = (float)expected(&p, x, NULL, NULL, i / p.n, i % p.n, 0);
  desc.a = x[0].m;
  desc.b = x[1].m;
  desc.d = x[3].m;
  c = CALL_OF(kiln_gemm, &desc);
  call_writes(&c, &x[3].array, want);
  return c;
}

START_TEST(test_workspace)
{
  ck_workspace(exact_call());
}
END_TEST

START_TEST(test_capture)
{
  ck_capture(exact_call());
}
END_TEST

#define MEMBER_OF(...) MEMBER(kiln_gemm_desc, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  const operation_call c = exact_call();
  const kiln_gemm_desc *good = c.desc;
  const kiln_gemm_matrix a = good->a, d = good->d;
  const bad_argument bad[] = {
      {KILN_EINVAL, "products of i32", {MEMBER_OF(a.type, KILN_I32)}},
      {KILN_EINVAL, "A is f32, but B is f16", {MEMBER_OF(b.type, KILN_F16)}},
      {KILN_EINVAL, "D is i32", {MEMBER_OF(d.type, KILN_I32)}},
      {KILN_EINVAL, "C is none", {MEMBER_OF(beta, 1)}},
      {KILN_EINVAL, "A is NULL", {MEMBER_OF(a.data, 0)}},
      {KILN_EINVAL, "not aligned", {MEMBER_OF(b.data, good->b.data + 2)}},
      {KILN_EINVAL, "leading dimension of A", {MEMBER_OF(a.leading, 95)}},
      {KILN_EINVAL,
       "leading dimension of D",
       {MEMBER_OF(d.leading, 69), MEMBER_OF(d.order, KILN_COLUMN_MAJOR)}},
      {KILN_EINVAL,
       "order of B is 7",
       {MEMBER_OF(b.order, (kiln_gemm_order)7)}},
      {KILN_EINVAL, "C and D cannot", {MEMBER_OF(d.transposed, true)}},
      {KILN_EINVAL, "D and A overlap", {MEMBER_OF(d.data, a.data + 256)}},
      {KILN_EINVAL,
       "D and C overlap",
       {MEMBER_OF(c, {.data = d.data + 4, .type = KILN_F32}),
        MEMBER_OF(beta, 2)}},
      {KILN_EINVAL, "pointers, and also data", {MEMBER_OF(a.pointers, 64)}},
      {KILN_EINVAL, "stride of D", {MEMBER_OF(batch, 2)}},
      {KILN_EINVAL, "address space", {MEMBER_OF(a.leading, UINT64_MAX / 8)}},
      {KILN_EINVAL,
       "is no kiln_gemm_precision",
       {MEMBER_OF(precision, (kiln_gemm_precision)9)}},
      {KILN_EINVAL, "no kernel has a tile", {MEMBER_OF(tile.m, 77)}},
      {KILN_EINVAL, "tile.split", {MEMBER_OF(tile.split, 65)}},
      {KILN_EINVAL,
       "in[0] is NULL",
       {MEMBER_OF(in[0].x, {0, KILN_F32}), MEMBER_OF(epilogue, "acc + x")}},
      {KILN_ECOMPILE,
       "the epilogue does not compile",
       {MEMBER_OF(epilogue, "acc + x")}},
      {KILN_ECOMPILE, "the epilogue", {MEMBER_OF(epilogue, "acc)")}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

/* Parts of one larger matrix interleave in memory, and are no overlap. */
START_TEST(test_parts_of_a_matrix)
{
  enum { N = 40, LEADING = 100 };
  uint64_t state = 37;
  float *all = random_wholes(KILN_F32, N * LEADING, -4, 4, &state);
  const test_array x = array_make(KILN_F32, N * LEADING, 0, kept(all), 0);
  const CUdeviceptr data = x.array.data;
  kiln_gemm_desc desc = {.m = N, .n = 20, .k = N, .alpha = -1, .beta = 1};
  float *got;

  desc.a =
      (kiln_gemm_matrix){.data = data, .type = KILN_F32, .leading = LEADING};
  desc.b = desc.a;
  desc.b.data = data + 40 * sizeof *all;
  desc.c = desc.a;
  desc.c.data = data + 60 * sizeof *all;
  desc.d = desc.c;
  ck_kiln_ok(kiln_gemm(stream, &desc, NULL));
  got = kept(array_read(&x));
  for (size_t r = 0; r < N; r++)
    for (size_t c = 0; c < LEADING; c++) {
      float want = all[r * LEADING + c];

      if (c >= 60 && c < 80)
        for (size_t i = 0; i < N; i++)
          want -= all[r * LEADING + i] * all[i * LEADING + 40 + c - 60];
      ck_assert(got[r * LEADING + c] == want);
    }
}
END_TEST

START_TEST(test_explain)
{
  const operation_call c = exact_call();
  kiln_gemm_desc desc = *(const kiln_gemm_desc *)c.desc;
  kiln_gemm_choice choice;

  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  ck_assert_uint_eq(choice.tile.split, 3);
  ck_assert_uint_ge(choice.blocks, 3);
  ck_assert(choice.efficiency > 0 && choice.efficiency < 1);
  ck_assert_ptr_nonnull(choice.path);
  desc.m = 0;
  ck_kiln_ok(kiln_gemm_explain(stream, &desc, &choice));
  ck_assert_ptr_null(choice.path);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("gemm");
  TCase *t = device_case(s, "gemm");
  TCase *tensor = device_case(s, "tensor");
  TCase *brief = brief_case(s);

  tcase_add_test(t, test_one);
  tcase_add_test(t, test_layouts);
  tcase_add_loop_test(t, test_types, 0, N_TYPES);
  tcase_add_test(t, test_nothing);
  tcase_add_test(t, test_tiles);
  tcase_add_loop_test(brief, test_shared_tiles, 0, N_SHARED);
  tcase_add_loop_test(t, test_error_bounds, 0, N_BOUNDS);
  tcase_add_test(t, test_special_values);
  tcase_add_test(t, test_gelu);
  tcase_add_test(t, test_workspace);
  tcase_add_test(t, test_capture);
  tcase_add_test(t, test_bad_arguments);
  tcase_add_test(t, test_parts_of_a_matrix);
  tcase_add_test(t, test_explain);
  tcase_set_tags(tensor, "tensor");
  tcase_add_loop_test(tensor, test_tensor_tiles, 0, N_TENSOR_CALLS);
  tcase_add_test(tensor, test_ends_of_lines);
  tcase_add_loop_test(tensor, test_turned, 0, N_TURNED_CALLS);
  tcase_add_test(tensor, test_tensor_path);
  tcase_add_test(tensor, test_path_of_large);
  tcase_add_test(brief, test_split);
  tcase_add_test(t, test_split_order);
  tcase_add_test(brief, test_batches);
  return s;
}

DEVICE_TEST_MAIN(suite)
