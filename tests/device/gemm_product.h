/* gemm_product.h -- one call of kiln_gemm with random matrices, compared with
 * sums in double. The matrices have small whole numbers, so that every product
 * and sum is exact and any wrong index shows. Gaps between lines and matrices
 * hold NaN or a pattern, and guard zones surround the arrays. */
#ifndef KILN_TEST_GEMM_PRODUCT_H
#define KILN_TEST_GEMM_PRODUCT_H

#include "operation_checks.h"

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
  unsigned line;   /* leading dimensions are multiples of this, if not 0 */
  unsigned apart;  /* added to the strides of a batch */
  unsigned shift;  /* elements behind an aligned address */
  unsigned pointers; /* bit per matrix: given by pointers */
  bool in_place;     /* D is C */
  bool inputs;       /* an epilogue with inputs, positions and a parameter */
  bool one_b;        /* all products use the same B */
  bool special;      /* A and B have a few infinities and NaNs */
  int alpha, beta;
  kiln_gemm_precision precision;
  kiln_gemm_tile tile;
} product;

static inline size_t place(const matrix *x, size_t row, size_t column, size_t b)
{
  const bool by_row = (x->m.order == KILN_ROW_MAJOR) != x->m.transposed;

  return b * x->m.stride +
         (by_row ? row * x->m.leading + column : column * x->m.leading + row);
}

static inline double at(const matrix *x, size_t row, size_t column, size_t b)
{
  return value_at(x->m.type, x->host, place(x, row, column, b));
}

/* Makes a batch of matrices of random whole numbers up to `most`. */
static inline matrix make_matrix(kiln_dtype type, size_t rows, size_t columns,
                                 unsigned layout, size_t batch,
                                 const product *p, int most, uint64_t *state)
{
  matrix x = {.rows = rows, .columns = columns, .batch = batch};
  size_t width, lines;

  x.m.type = type;
  x.m.order = (layout & 1) != 0 ? KILN_COLUMN_MAJOR : KILN_ROW_MAJOR;
  x.m.transposed = (layout & 2) != 0;
  width = (x.m.order == KILN_ROW_MAJOR) != x.m.transposed ? columns : rows;
  lines = rows + columns - width;
  x.m.leading = p->line > 1 ? (width + p->line - 1) / p->line * p->line : width;
  x.m.leading += p->gap;
  x.m.stride = batch > 1 ? lines * x.m.leading + p->gap + p->apart : 0;
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

/* Stores an infinity of either sign or a NaN as an element. */
static inline void set_special(kiln_dtype type, void *data, size_t i,
                               uint64_t which)
{
  const double v = which % 3 == 2 ? (double)NAN : (double)INFINITY;
  const uint16_t sign = which % 3 == 1 ? 0x8000 : 0;
  const uint16_t fraction = which % 3 == 2 ? 0x40 : 0;

  if (type == KILN_F16)
    ((uint16_t *)data)[i] = sign | (uint16_t)(0x7c00 | fraction << 3);
  else if (type == KILN_BF16)
    ((uint16_t *)data)[i] = sign | (uint16_t)(0x7f80 | fraction);
  else if (type == KILN_F32)
    ((float *)data)[i] = (float)(sign != 0 ? -v : v);
  else
    ((double *)data)[i] = sign != 0 ? -v : v;
}

/* Replaces up to three elements by infinities and NaNs. */
static inline void add_specials(matrix *x, uint64_t *state)
{
  const size_t size = kiln_dtype_size(x->m.type);

  for (int i = 0; i < 3 && x->rows > 0 && x->columns > 0; i++) {
    const uint64_t r = test_random(state);

    set_special(
        x->m.type, x->host,
        place(x, r % x->rows, (r >> 20) % x->columns, (r >> 40) % x->batch),
        r >> 60);
  }
  if (x->size > 0)
    ck_kiln_ok(kiln_copy_to_device(device, x->m.data, x->host, x->size * size));
}

/* Returns the matrix as the call gets it: by address, or by an array of
 * addresses. */
static inline kiln_gemm_matrix described(const matrix *x, bool by_pointers)
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
static inline double expected(const product *p, const matrix x[4],
                              const matrix *residual, const double *bias,
                              size_t row, size_t column, size_t b)
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
static inline double rounding(kiln_dtype type)
{
  return type == KILN_F16 ? 0x1p-11 : type == KILN_BF16 ? 0x1p-8 : 0;
}

/* Returns whether an element of D may be `got`. Parts of a split f32 may give
 * NaN where the reference is an infinity. */
static inline bool fits(const product *p, double got, double want)
{
  const bool split =
      p->precision == KILN_GEMM_F32 || p->precision == KILN_GEMM_F32_FAST;

  if (isnan(want) || (split && isinf(want) && isnan(got)))
    return isnan(got);
  return got == want || fabs(got - want) <= rounding(p->d_type) * fabs(want);
}

static inline double wrapped(kiln_dtype type, double v)
{
  return type == KILN_I8    ? (double)(int8_t)(int64_t)v
         : type == KILN_I32 ? (double)(int32_t)(int64_t)v
                            : v;
}

/* Compares D with the reference. The reference for the first element that
 * differs is part of the message. */
static inline void compare(const product *p, const matrix x[4],
                           const matrix *residual, const double *bias)
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
        if (!fits(p, got, want))
          ck_abort_msg("%s -> %s, %zu x %zu x %zu, layout %u, gap %u, shift "
                       "%u, line %u: D[%zu][%zu][%zu] is %g, not %g",
                       kiln_dtype_name(p->type), kiln_dtype_name(p->d_type),
                       p->m, p->n, p->k, p->layout, p->gap, p->shift, p->line,
                       b, r, c, got, want);
      }
  /* Gaps of D keep their bytes: exactly the elements of D were written. */
  if (d.size > n_gap && !p->in_place) {
    const size_t size = kiln_dtype_size(p->d_type);
    size_t kept_bytes = 0;

    for (size_t i = 0; i < d.size; i++)
      kept_bytes += memcmp((char *)d.host + i * size,
                           "\xff\xff\xff\xff\xff\xff\xff\xff", size) == 0;
    ck_assert_uint_ge(kept_bytes, d.size - n_gap);
  }
}

static inline void fill_nan(matrix *x)
{
  memset(x->host, 0xff, x->size * kiln_dtype_size(x->m.type));
  if (x->size > 0)
    ck_kiln_ok(kiln_copy_to_device(device, x->m.data, x->host,
                                   x->size * kiln_dtype_size(x->m.type)));
}

/* Runs one product, twice, and compares both results. */
static inline void check_product(const product *p, uint64_t *state)
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
  if (p->special)
    for (int i = 0; i < 2; i++)
      add_specials(&x[i], state);
  if (p->alpha == 0)
    for (int i = 0; i < 2; i++)
      fill_nan(&x[i]);
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

static inline product usual(size_t m, size_t n, size_t k)
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

/* ---- Types --------------------------------------------------------------- */

static const struct {
  kiln_dtype type, c, d;
} types[] = {{KILN_F32, KILN_F32, KILN_F32},    {KILN_F32, KILN_F16, KILN_BF16},
             {KILN_F16, KILN_F16, KILN_F16},    {KILN_F16, KILN_F32, KILN_F32},
             {KILN_BF16, KILN_BF16, KILN_BF16}, {KILN_BF16, KILN_F32, KILN_F32},
             {KILN_F64, KILN_F64, KILN_F64},    {KILN_F64, KILN_F32, KILN_F32},
             {KILN_I8, KILN_I32, KILN_I32},     {KILN_I8, KILN_I32, KILN_F32},
             {KILN_I8, KILN_I8, KILN_I8},       {KILN_F32, KILN_F64, KILN_F64}};

enum { N_TYPES = sizeof types / sizeof types[0] };

static inline void set_types(product *p, size_t row)
{
  p->type = types[row].type;
  p->c_type = types[row].c;
  p->d_type = types[row].d;
}

#endif
