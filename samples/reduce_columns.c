/* reduce_columns.c -- map and reduction with the user's own expression (row C2
 * of the lectures): the sum of sin(x)^2 + cos(x)^2 over all elements, the
 * maximum of a matrix, and the maximum of each column and each row. */
#include "sample.h"

#include <math.h>

enum { REPEATS = 9, GPU_ROWS = 8192, CPU_ROWS = 300, COLUMNS = 1000 };

typedef struct matrix {
  size_t rows;
  CUdeviceptr x, out;
} matrix;

static kiln_status ones(kiln_stream *stream, const void *desc)
{
  const matrix *m = desc;
  const kiln_reduce_desc d = {
      .x = {.in = {{m->x, KILN_F32}},
            .map = "sinf(x) * sinf(x) + cosf(x) * cosf(x)"},
      .n = m->rows * COLUMNS,
      .out = {m->out, KILN_F64}};

  return kiln_reduce(stream, &d, NULL);
}

static kiln_status whole(kiln_stream *stream, const void *desc)
{
  const matrix *m = desc;
  const kiln_reduce_desc d = {.x = {.in = {{m->x, KILN_F32}}},
                              .n = m->rows * COLUMNS,
                              .op = {.name = KILN_MAX},
                              .out = {m->out, KILN_F32}};

  return kiln_reduce(stream, &d, NULL);
}

static kiln_reduce_matrix_desc maximum(const matrix *m)
{
  return (kiln_reduce_matrix_desc){.x = {.in = {{m->x, KILN_F32}}},
                                   .rows = m->rows,
                                   .columns = COLUMNS,
                                   .op = {.name = KILN_MAX},
                                   .out = {m->out, KILN_F32}};
}

static kiln_status by_column(kiln_stream *stream, const void *desc)
{
  const kiln_reduce_matrix_desc d = maximum(desc);

  return kiln_reduce_columns(stream, &d, NULL);
}

static kiln_status by_row(kiln_stream *stream, const void *desc)
{
  const kiln_reduce_matrix_desc d = maximum(desc);

  return kiln_reduce_rows(stream, &d, NULL);
}

static void run(const sample *s, kiln_stream *stream, const char *name,
                sample_op_fn op, const matrix *m, void *out, size_t bytes)
{
  const double ms = sample_op_ms(stream, op, m, s->few ? 1 : REPEATS);

  SAMPLE_TRY(kiln_copy_to_host(s->device, out, m->out, bytes));
  printf("  %-28s %9.4f ms %8.1f GB/s\n", name, ms,
         4 * (double)(m->rows * COLUMNS) / ms / 1e6);
}

static bool check(const sample *s, kiln_stream *stream, const matrix *m,
                  const float *x)
{
  const size_t n = m->rows * COLUMNS;
  float *column = sample_alloc(COLUMNS * sizeof *column);
  float *row = sample_alloc(m->rows * sizeof *row);
  float all;
  double sum;
  bool good;

  run(s, stream, "sum of sin(x)^2 + cos(x)^2", ones, m, &sum, sizeof sum);
  good = fabs(sum - (double)n) <= 1e-5 * (double)n;
  run(s, stream, "maximum", whole, m, &all, sizeof all);
  run(s, stream, "maximum by column", by_column, m, column, 4 * COLUMNS);
  run(s, stream, "maximum by row", by_row, m, row, 4 * m->rows);
  for (size_t i = 0; i < n; i++) { /* no element may exceed a maximum */
    good = good && x[i] <= all && x[i] <= column[i % COLUMNS] &&
           x[i] <= row[i / COLUMNS];
    if (x[i] == column[i % COLUMNS])
      column[i % COLUMNS] = INFINITY; /* marks the maximum as found */
    if (x[i] == row[i / COLUMNS])
      row[i / COLUMNS] = INFINITY;
    if (x[i] == all)
      all = INFINITY;
  }
  for (size_t c = 0; c < COLUMNS; c++)
    good = good && isinf(column[c]);
  for (size_t r = 0; r < m->rows; r++)
    good = good && isinf(row[r]);
  good = good && isinf(all);
  free(column);
  free(row);
  return good;
}

int main(int argc, char **argv)
{
  kiln_stream *stream;
  uint64_t r = 1;
  matrix m;
  bool good;
  float *x;
  sample s;
  size_t n;

  sample_open(&s, argc, argv);
  m.rows = s.few ? CPU_ROWS : GPU_ROWS;
  n = m.rows * COLUMNS;
  x = sample_alloc(4 * n);
  for (size_t i = 0; i < n; i++) {
    r = r * 6364136223846793005u + 1442695040888963407u;
    x[i] = (float)(r >> 40) * 0x1p-20f;
  }
  SAMPLE_TRY(kiln_stream_create(&stream, s.device, NULL));
  SAMPLE_TRY(kiln_memory_alloc(&m.x, s.device, 4 * n));
  SAMPLE_TRY(kiln_memory_alloc(&m.out, s.device, 4 * (m.rows + COLUMNS)));
  SAMPLE_TRY(kiln_copy_to_device(s.device, m.x, x, 4 * n));
  printf("%zu x %d floats\n", m.rows, COLUMNS);
  good = check(&s, stream, &m, x);
  SAMPLE_TRY(kiln_memory_free(s.device, m.x));
  SAMPLE_TRY(kiln_memory_free(s.device, m.out));
  kiln_stream_free(stream);
  free(x);
  return sample_end(&s, good);
}
