/* gemm_test.c -- kiln_gemm for every type, layout and shape, compared with sums
 * in double. Most tests use small whole numbers, so that every product and sum
 * is exact and any wrong index shows. Gaps between lines and matrices hold NaN
 * or a pattern, and guard zones surround the arrays. */
#include "ops_fixture.h"

#include <kiln/gemm.h>

/* ---- One product --------------------------------------------------------- */

/* A matrix of a test: the elements in host memory, and the description. */
typedef struct matrix {
  kiln_gemm_matrix m;
  test_array array;
  void *host; /* all elements, with gaps; teardown() frees them */
  size_t rows, columns, batch, size; /* size: elements with gaps */
} matrix;

/* What a test varies. */
typedef struct product {
  kiln_dtype type, c_type, d_type;
  size_t m, n, k, batch;
  unsigned layout; /* bit 0: A in column-major order, 1: A transposed, 2, 3: B,
                      4: C in column-major order, 5: D */
  unsigned gap;    /* added to the leading dimensions and strides */
  unsigned shift;  /* elements behind an aligned address */
  unsigned pointers; /* bit per matrix: given by pointers */
  bool in_place;     /* D is C */
  bool inputs;       /* an epilogue with inputs, positions and a parameter */
  bool one_b;        /* all products use the same B */
  int alpha, beta;
  kiln_gemm_precision precision;
  kiln_gemm_tile tile;
} product;

static size_t place(const matrix *x, size_t row, size_t column, size_t b)
{
  const bool by_row = (x->m.order == KILN_ROW_MAJOR) != x->m.transposed;

  return b * x->m.stride +
         (by_row ? row * x->m.leading + column : column * x->m.leading + row);
}

static double at(const matrix *x, size_t row, size_t column, size_t b)
{
  return value_at(x->m.type, x->host, place(x, row, column, b));
}

/* Makes a batch of matrices of random whole numbers up to `most`. */
static matrix make_matrix(kiln_dtype type, size_t rows, size_t columns,
                          unsigned layout, size_t batch, const product *p,
                          int most, uint64_t *state)
{
  matrix x = {.rows = rows, .columns = columns, .batch = batch};
  size_t width, lines;

  x.m.type = type;
  x.m.order = (layout & 1) != 0 ? KILN_COLUMN_MAJOR : KILN_ROW_MAJOR;
  x.m.transposed = (layout & 2) != 0;
  width = (x.m.order == KILN_ROW_MAJOR) != x.m.transposed ? columns : rows;
  lines = rows + columns - width;
  x.m.leading = width + p->gap;
  x.m.stride = batch > 1 ? lines * x.m.leading + p->gap : 0;
  x.size = width == 0 || lines == 0
               ? 0
               : (lines - 1) * x.m.leading + width + (batch - 1) * x.m.stride;
  x.host = kept(malloc(x.size * kiln_dtype_size(type) + 1));
  memset(x.host, 0xff, x.size * kiln_dtype_size(type));
  for (size_t b = 0; b < batch; b++)
    for (size_t r = 0; r < rows; r++)
      for (size_t c = 0; c < columns; c++)
        set_whole(type, x.host, place(&x, r, c, b),
                  (int64_t)(test_random(state) % (uint64_t)(2 * most + 1)) -
                      most);
  x.array = array_make(type, x.size, p->shift, x.host, 0);
  x.m.data = x.array.array.data;
  return x;
}

/* Returns the matrix as the call gets it: by address, or by an array of
 * addresses. */
static kiln_gemm_matrix described(const matrix *x, bool by_pointers)
{
  kiln_gemm_matrix m = x->m;
  uint64_t *list;

  if (!by_pointers || x->size == 0)
    return m;
  list = kept(malloc(x->batch * sizeof *list));
  for (size_t b = 0; b < x->batch; b++)
    list[b] = m.data + b * m.stride * kiln_dtype_size(m.type);
  m.pointers = array_make(KILN_U64, x->batch, 0, list, 0).array.data;
  m.data = 0;
  m.stride = 0;
  return m;
}

/* Returns the value of an element of D before it is rounded to D's type. */
static double expected(const product *p, const matrix x[4],
                       const matrix *residual, const double *bias, size_t row,
                       size_t column, size_t b)
{
  double sum = 0;

  for (size_t i = 0; i < p->k && p->alpha != 0; i++)
    sum += at(&x[0], row, i, b) * at(&x[1], i, column, p->one_b ? 0 : b);
  sum *= p->alpha;
  if (p->beta != 0)
    sum += p->beta * at(&x[2], row, column, b);
  if (p->inputs)
    sum = (sum > 0 ? sum : 0) + bias[column] +
          2 * at(residual, row, column, b) + (double)(row % 3) -
          (double)(column % 5) + (double)b;
  return sum;
}

/* Returns the relative error of a conversion to a type. */
static double rounding(kiln_dtype type)
{
  return type == KILN_F16 ? 0x1p-11 : type == KILN_BF16 ? 0x1p-8 : 0;
}

static double wrapped(kiln_dtype type, double v)
{
  return type == KILN_I8    ? (double)(int8_t)(int64_t)v
         : type == KILN_I32 ? (double)(int32_t)(int64_t)v
                            : v;
}

/* Compares D with the reference. The reference for the first element that
 * differs is part of the message. */
static void compare(const product *p, const matrix x[4], const matrix *residual,
                    const double *bias)
{
  matrix d = x[3];
  size_t n_gap = 0;

  d.host = kept(array_read(&x[3].array));
  for (size_t b = 0; b < p->batch; b++)
    for (size_t r = 0; r < p->m; r++)
      for (size_t c = 0; c < p->n; c++) {
        const double want =
            wrapped(p->d_type, expected(p, x, residual, bias, r, c, b));
        const double got = at(&d, r, c, b);

        n_gap++;
        if (!(fabs(got - want) <= rounding(p->d_type) * fabs(want)))
          ck_abort_msg("%s -> %s, %zu x %zu x %zu, layout %u, gap %u, shift "
                       "%u: D[%zu][%zu][%zu] is %g, not %g",
                       kiln_dtype_name(p->type), kiln_dtype_name(p->d_type),
                       p->m, p->n, p->k, p->layout, p->gap, p->shift, b, r, c,
                       got, want);
      }
  /* Gaps of D keep their bytes: exactly the elements of D were written. */
  if (p->gap > 0 && !p->in_place) {
    const size_t size = kiln_dtype_size(p->d_type);
    size_t kept_bytes = 0;

    for (size_t i = 0; i < d.size; i++)
      kept_bytes += memcmp((char *)d.host + i * size,
                           "\xff\xff\xff\xff\xff\xff\xff\xff", size) == 0;
    ck_assert_uint_ge(kept_bytes, d.size - n_gap);
  }
}

static void fill_nan(matrix *x)
{
  memset(x->host, 0xff, x->size * kiln_dtype_size(x->m.type));
  if (x->size > 0)
    ck_kiln_ok(kiln_copy_to_device(device, x->m.data, x->host,
                                   x->size * kiln_dtype_size(x->m.type)));
}

/* Runs one product, twice, and compares both results. */
static void check_product(const product *p, uint64_t *state)
{
  const int most = p->type == KILN_I8 ? 100 : 4;
  const size_t mark = n_kept, b_batch = p->one_b ? 1 : p->batch;
  double *bias = kept(malloc((p->n + 1) * sizeof *bias));
  float *bias32 = kept(malloc((p->n + 1) * sizeof *bias32));
  const int three = 2;
  const kiln_param twice = {.name = "twice", .type = KILN_I32, .value = &three};
  matrix x[4], residual;
  kiln_gemm_desc desc = {.m = p->m,
                         .n = p->n,
                         .k = p->k,
                         .batch = p->batch,
                         .alpha = p->alpha,
                         .beta = p->beta,
                         .precision = p->precision,
                         .tile = p->tile};

  x[0] =
      make_matrix(p->type, p->m, p->k, p->layout & 3, p->batch, p, most, state);
  x[1] = make_matrix(p->type, p->k, p->n, p->layout >> 2 & 3, b_batch, p, most,
                     state);
  x[2] = make_matrix(p->in_place ? p->d_type : p->c_type, p->m, p->n,
                     p->layout >> (p->in_place ? 5 : 4) & 1, p->batch, p, 9,
                     state);
  x[3] = p->in_place ? x[2]
                     : make_matrix(p->d_type, p->m, p->n, p->layout >> 5 & 1,
                                   p->batch, p, 9, state);
  if (p->beta == 0)
    fill_nan(&x[2]);
  if (!p->in_place)
    fill_nan(&x[3]);
  residual = make_matrix(KILN_F16, p->m, p->n, p->layout >> 3 & 1, p->batch, p,
                         9, state);
  for (size_t c = 0; c < p->n; c++)
    bias[c] = bias32[c] = (float)(int)(test_random(state) % 11);
  desc.a = described(&x[0], (p->pointers & 1) != 0);
  desc.b = described(&x[1], (p->pointers & 2) != 0 && !p->one_b);
  desc.c = described(&x[2], (p->pointers & 4) != 0);
  desc.d = p->in_place ? desc.c : described(&x[3], (p->pointers & 8) != 0);
  if (p->inputs) {
    const bool by_row = residual.m.order == KILN_ROW_MAJOR;

    desc.epilogue = "(acc > 0 ? acc : 0) + x + twice * y + int(row % 3) - "
                    "int(column % 5) + int(batch)";
    desc.code = (kiln_code){.params = &twice, .n_params = 1};
    desc.in[0] = (kiln_gemm_input){
        .x = array_make(KILN_F32, p->n, p->shift, bias32, 0).array,
        .column_stride = 1};
    desc.in[1] =
        (kiln_gemm_input){.x = residual.array.array,
                          .row_stride = by_row ? residual.m.leading : 1,
                          .column_stride = by_row ? 1 : residual.m.leading,
                          .batch_stride = residual.m.stride};
  }
  ck_kiln_ok(kiln_gemm(stream, &desc, NULL));
  compare(p, x, &residual, bias);
  release(mark);
}

static product usual(size_t m, size_t n, size_t k)
{
  return (product){.type = KILN_F32,
                   .c_type = KILN_F32,
                   .d_type = KILN_F32,
                   .m = m,
                   .n = n,
                   .k = k,
                   .batch = 1,
                   .alpha = 1};
}

/* ---- Tests --------------------------------------------------------------- */

static const size_t sizes[] = {0,  1,  7,  8,  15,  16,  17,  31,  32,
                               33, 63, 64, 65, 127, 128, 129, 255, 257};

enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static const struct {
  kiln_dtype type, c, d;
} types[] = {{KILN_F32, KILN_F32, KILN_F32},    {KILN_F32, KILN_F16, KILN_BF16},
             {KILN_F16, KILN_F16, KILN_F16},    {KILN_F16, KILN_F32, KILN_F32},
             {KILN_BF16, KILN_BF16, KILN_BF16}, {KILN_BF16, KILN_F32, KILN_F32},
             {KILN_F64, KILN_F64, KILN_F64},    {KILN_F64, KILN_F32, KILN_F32},
             {KILN_I8, KILN_I32, KILN_I32},     {KILN_I8, KILN_I32, KILN_F32},
             {KILN_I8, KILN_I8, KILN_I8},       {KILN_F32, KILN_F64, KILN_F64}};

enum { N_TYPES = sizeof types / sizeof types[0] };

static void set_types(product *p, size_t row)
{
  p->type = types[row].type;
  p->c_type = types[row].c;
  p->d_type = types[row].d;
}

START_TEST(test_one)
{
  product p = usual(5, 6, 7);
  uint64_t state = 1;

  check_product(&p, &state);
}
END_TEST

/* Each layout of A, B and D. */
START_TEST(test_layouts)
{
  uint64_t state = 5 + (uint64_t)_i;

  for (unsigned layout = 0; layout < 64; layout++) {
    product p = usual(69, 37, 21);

    p.layout = layout;
    p.gap = layout % 3;
    p.shift = layout % 2;
    p.beta = (int)(layout % 4) - 1;
    p.inputs = layout % 5 == 0;
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

static size_t random_size(uint64_t *state, size_t most)
{
  size_t size;

  do
    size = sizes[test_random(state) % N_SIZES];
  while (size > most);
  return size;
}

/* Fills what a test may vary at random. */
static product random_product(uint64_t *state)
{
  const size_t most = getenv("KILN_TEST_THOROUGH") != NULL ? 257 : 129;
  product p = usual(random_size(state, most), random_size(state, most),
                    random_size(state, most));

  set_types(&p, test_random(state) % N_TYPES);
  p.layout = (unsigned)(test_random(state) % 64);
  p.gap = (unsigned)(test_random(state) % 3) * 2;
  p.shift = (unsigned)(test_random(state) % 4 == 0);
  p.alpha = (int)(test_random(state) % 4);
  p.beta = (int)(test_random(state) % 3) - 1;
  p.batch = test_random(state) % 4 == 0 && p.m * p.n < 2000 ? 3 : 1;
  if (p.batch > 1) {
    p.pointers = (unsigned)(test_random(state) % 16);
    p.one_b = test_random(state) % 3 == 0;
  }
  p.in_place = test_random(state) % 3 == 0 && p.c_type == p.d_type;
  p.inputs = test_random(state) % 3 == 0;
  if (p.type == KILN_F32)
    p.precision = (kiln_gemm_precision)(test_random(state) % 4);
  if (test_random(state) % 4 == 0)
    p.tile.split = 1 + (uint32_t)(test_random(state) % 4);
  return p;
}

START_TEST(test_random_calls)
{
  const unsigned long n = random_calls(40);
  uint64_t state = 11;

  for (unsigned long i = 0; i < n; i++) {
    const product p = random_product(&state);

    check_product(&p, &state);
  }
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
    p.pointers = i;
    p.one_b = i % 4 == 1;
    p.layout = i * 4 % 64;
    p.beta = i % 2 == 0;
    check_product(&p, &state);
  }
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("gemm");
  TCase *t = device_case(s, "gemm");
  TCase *brief = brief_case(s);

  tcase_add_test(t, test_one);
  tcase_add_test(t, test_layouts);
  tcase_add_loop_test(t, test_types, 0, N_TYPES);
  tcase_add_test(t, test_random_calls);
  tcase_add_test(t, test_nothing);
  tcase_add_test(brief, test_split);
  tcase_add_test(brief, test_batches);
  return s;
}

DEVICE_TEST_MAIN(suite)
