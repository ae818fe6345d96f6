/* reduce_matrix.c -- the host side of reduce_rows.cu and reduce_columns.cu.
 *
 * Rows: a group of 1 to 32 lanes reduces each row. Rows of many vectors are
 * reduced by several blocks each, by means of reduce_any.cu. Columns: a block
 * reduces a strip of consecutive columns over a range of the rows. The results
 * of the ranges are combined through tile descriptors. */
#include "kernel_params.h"
#include "reduce.h"

enum {
  MATRIX_BLOCK = 256,
  MATRIX_THREADS = 1024, /* target number of resident threads per SM */
  /* Approximate number of bytes that a thread has in flight. */
  FLIGHT = 64,
  /* Number of vectors from which on several blocks reduce a row. */
  WIDE = 2048,
  RATHER_WIDE = 256 /* number of vectors from which on several blocks reduce
                     * a row, if there are fewer rows than warps */
};

/* ---- Common functions --------------------------------------------------- */

typedef struct matrix {
  const char *call;
  const kiln_input *x;
  uint64_t rows, columns, leading;
  const kiln_op *op;
  kiln_array out;
  const kiln_code *code;
} matrix;

static kiln_status check(matrix *m, const char *call, bool by_row,
                         const kiln_stream *stream,
                         const kiln_reduce_matrix_desc *desc,
                         const kiln_workspace *workspace)
{
  uint64_t rows, columns, n = 0;
  kiln__checker c;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  rows = desc->rows;
  columns = desc->columns;
  *m = (matrix){.call = call,
                .x = &desc->x,
                .rows = rows,
                .columns = columns,
                .leading = desc->leading != 0 ? desc->leading : columns,
                .op = &desc->op,
                .out = kiln__or_type(desc->out, kiln__input_type(&desc->x)),
                .code = &desc->code};
  kiln__check_that(&c, m->leading >= columns,
                   "leading is below the number of columns");
  if (rows > 0 && columns > 0) {
    kiln__check_that(&c, rows - 1 <= (UINT64_MAX - columns) / m->leading,
                     "more elements than 64 bits count");
    n = (rows - 1) * m->leading + columns;
  }
  if (c.st != KILN_OK)
    return c.st;
  kiln__check_input(&c, "x", &desc->x, n);
  kiln__check_write(&c, "out", m->out, by_row ? rows : columns);
  kiln__check_reduction_op(&c, &desc->op, m->out.type);
  kiln__check_workspace(&c, workspace);
  return kiln__check_end(&c);
}

static bool is_small(const matrix *m)
{
  /* The kernels count one round beyond the end. */
  return m->rows == 0 || m->leading == 0 ||
         (m->rows + 4096) <= (UINT64_C(1) << 31) / m->leading;
}

/* Returns the number of elements per vector. Vectors that start at a
 * multiple of this number are aligned in every row. `limit` is a power of
 * two. */
static unsigned vec_of(const matrix *m, unsigned limit)
{
  unsigned vec = kiln__input_vec(m->x);

  if (!kiln__input_in_phase(m->x, 0, vec))
    return 1;
  while (vec > 1 &&
         (vec > limit || m->columns % vec != 0 || m->leading % vec != 0))
    vec /= 2;
  return vec;
}

static unsigned power_of_two(uint64_t n, unsigned most)
{
  unsigned p = 1;

  while (p < n && p < most)
    p *= 2;
  return p;
}

/* Returns the number of vectors of `bytes` bytes that a thread has in
 * flight. */
static unsigned in_flight(unsigned bytes, unsigned vec)
{
  unsigned n = FLIGHT / (bytes < 4 ? 4 : bytes);

  if (n * vec > 64)
    n = 64 / vec;
  return n == 0 ? 1 : n;
}

/* ---- Rows ------------------------------------------------------------------------- */

static const char *const row_kernels[] = {"reduce_rows", NULL};
static const kiln__family row_family = {"reduce_rows", row_kernels,
                                        kiln__reduce_rows_params};

/* Returns whether several blocks reduce each row, by means of reduce_any.cu. */
static bool is_wide(const matrix *m, const kiln_device *device)
{
  const uint64_t vecs = m->columns / kiln__input_vec(m->x);

  return m->rows < UINT32_MAX && m->rows > 0 &&
         (vecs >= WIDE || (vecs >= RATHER_WIDE &&
                           m->rows < 32 * (uint64_t)device->info.sm_count));
}

static kiln__reduction wide_reduction(const matrix *m)
{
  return (kiln__reduction){.kind = KILN__REDUCTION_OP,
                           .x = m->x,
                           .n = m->columns,
                           .rows = m->rows,
                           .leading = m->leading,
                           .op = m->op,
                           .out = m->out,
                           .code = m->code};
}

/* Returns whether one warp shall reduce a row whose vectors start below its
 * first element. This avoids narrow loads if the rows are not aligned. */
static bool wants_head(const matrix *m, unsigned vec)
{
  const unsigned full = kiln__input_vec(m->x);

  return vec < full && m->columns >= 64 * (uint64_t)full &&
         kiln__input_in_phase(m->x, kiln__input_phase(m->x), full);
}

static void specify_rows(kiln__spec *spec, const matrix *m, uint32_t *phase)
{
  unsigned vec = vec_of(m, 16), items, depth, flight;
  const bool head = wants_head(m, vec);
  uint32_t *value = spec->value;
  uint64_t vecs, each;
  unsigned group;

  *phase = 0;
  if (head) {
    vec = kiln__input_vec(m->x);
    *phase = kiln__input_phase(m->x);
    spec->first = *phase == 0 ? 0 : vec - *phase;
  }
  vecs = kiln__divide_up(m->columns, vec);
  group = head ? 32 : power_of_two(vecs, 32);
  each = kiln__divide_up(vecs, group);
  flight = in_flight(vec * kiln__input_width(m->x), vec);
  items = each < flight ? (unsigned)each : flight;
  if (items == 0)
    items = 1;
  depth = head ? 1 : flight / items;
  value[REDUCE_ROWS_OUT] = m->out.type;
  value[REDUCE_ROWS_BLOCK] = MATRIX_BLOCK;
  value[REDUCE_ROWS_GROUP] = group;
  value[REDUCE_ROWS_VECTOR] = vec;
  value[REDUCE_ROWS_ITEMS] = items;
  value[REDUCE_ROWS_DEPTH] = depth == 0 ? 1 : depth;
  value[REDUCE_ROWS_THREADS] = MATRIX_THREADS;
  value[REDUCE_ROWS_EXACT] = !head && vecs == (uint64_t)group * items;
  value[REDUCE_ROWS_HEAD] = head;
  value[REDUCE_ROWS_ORDERED] = kiln__op_ordered(m->op);
  value[REDUCE_ROWS_SMALL] = is_small(m);
}

static kiln_status run_rows(kiln_stream *stream, const matrix *m)
{
  kiln__spec spec = {.family = &row_family,
                     .input = m->x,
                     .op = m->op,
                     .acc = kiln__op_type(m->out.type),
                     .code = m->code};
  const kiln__kernel_set *set;
  kiln_launch_config config = {.stream = stream};
  kiln_status st = KILN_OK;
  unsigned long long n = m->columns, rows = m->rows, leading = m->leading;
  uint32_t phase;
  kiln__args args;
  uint64_t tiles;

  specify_rows(&spec, m, &phase);
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  kiln__user_args(&args, &spec);
  tiles = kiln__divide_up(rows, (uint64_t)MATRIX_BLOCK /
                                    spec.value[REDUCE_ROWS_GROUP] *
                                    spec.value[REDUCE_ROWS_DEPTH]);
  config.grid.x = (uint32_t)(tiles < INT32_MAX ? tiles : INT32_MAX);
  config.block.x = MATRIX_BLOCK;
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args), KILN_ARG(n),
                   KILN_ARG(rows), KILN_ARG(leading), KILN_ARG(phase),
                   KILN_ARG(m->out.data));

done:
  return st;
}

kiln_status kiln__reduce_rows(kiln_stream *stream, const kiln_input *x,
                              uint64_t rows, uint64_t columns, uint64_t leading,
                              const kiln_op *op, kiln_array out,
                              const kiln_code *code,
                              const kiln_workspace *workspace)
{
  const matrix m = {"", x, rows, columns, leading, op, out, code};
  kiln__reduction f;

  if (rows == 0)
    return KILN_OK;
  if (!is_wide(&m, stream->device))
    return run_rows(stream, &m);
  f = wide_reduction(&m);
  return kiln__reduction_run(stream, &f, workspace);
}

kiln__need kiln__reduce_rows_need(const kiln_stream *stream,
                                  const kiln_input *x, uint64_t rows,
                                  uint64_t columns, uint64_t leading,
                                  const kiln_op *op, kiln_array out)
{
  const matrix m = {"", x, rows, columns, leading, op, out, NULL};
  kiln__reduction f;

  if (rows == 0 || !is_wide(&m, stream->device))
    return (kiln__need){0};
  f = wide_reduction(&m);
  return kiln__reduction_need(stream, &f);
}

kiln_status kiln_reduce_rows(kiln_stream *stream,
                             const kiln_reduce_matrix_desc *desc,
                             const kiln_workspace *workspace)
{
  matrix m;
  kiln_status st = check(&m, "kiln_reduce_rows", true, stream, desc, workspace);

  return st != KILN_OK
             ? st
             : kiln__reduce_rows(stream, m.x, m.rows, m.columns, m.leading,
                                 m.op, m.out, m.code, workspace);
}

static kiln_status reduce_rows_need(kiln__need *need, kiln_stream *stream,
                                    const kiln_reduce_matrix_desc *desc)
{
  kiln_status st = KILN_OK;
  matrix m;

  KILN_TRY(check(&m, "kiln_reduce_rows", true, stream, desc, NULL));
  *need = kiln__reduce_rows_need(stream, m.x, m.rows, m.columns, m.leading,
                                 m.op, m.out);

done:
  return st;
}

KILN__WORKSPACE(kiln_reduce_rows, kiln_reduce_matrix_desc, reduce_rows_need)

/* ---- Columns ------------------------------------------------------------------------- */

static const char *const column_kernels[] = {"reduce_columns", NULL};
static const kiln__family column_family = {"reduce_columns", column_kernels,
                                           kiln__reduce_columns_params};

typedef struct column_plan {
  kiln__spec spec;
  uint64_t strips, parts;
} column_plan;

/* Plans a reduction of columns. The rows are divided into as many ranges as
 * fill the device; each range has several rounds. */
static void plan_columns(column_plan *p, const kiln_device *device,
                         const matrix *m)
{
  const kiln__tuning t = {MATRIX_BLOCK, 0, MATRIX_THREADS / MATRIX_BLOCK, 0};
  const size_t acc = kiln__size(kiln__op_type(m->out.type));
  const unsigned vec = vec_of(m, acc >= 8 ? 4 : 8);
  const unsigned lanes = power_of_two(kiln__divide_up(m->columns, vec), 32);
  const unsigned items = in_flight(vec * kiln__input_width(m->x), vec);
  const uint64_t round = (uint64_t)MATRIX_BLOCK / lanes * items;
  /* cppcheck-suppress ctuuninitvar; takes an address, reads nothing of *p */
  uint32_t *value = p->spec.value;
  uint64_t most;

  *p = (column_plan){.spec = {.family = &column_family,
                              .input = m->x,
                              .op = m->op,
                              .acc = kiln__op_type(m->out.type),
                              .code = m->code}};
  value[REDUCE_COLUMNS_OUT] = m->out.type;
  value[REDUCE_COLUMNS_BLOCK] = MATRIX_BLOCK;
  value[REDUCE_COLUMNS_LANES] = lanes;
  value[REDUCE_COLUMNS_VECTOR] = vec;
  value[REDUCE_COLUMNS_ITEMS] = items;
  value[REDUCE_COLUMNS_THREADS] = MATRIX_THREADS;
  value[REDUCE_COLUMNS_ORDERED] = kiln__op_ordered(m->op);
  value[REDUCE_COLUMNS_SMALL] = is_small(m);
  p->strips = kiln__divide_up(m->columns, (uint64_t)lanes * vec);
  p->parts = kiln__resident(device, &t) / (p->strips == 0 ? 1 : p->strips);
  most = m->rows / (2 * round);
  if (p->parts > most)
    p->parts = most;
  if (p->parts == 0)
    p->parts = 1;
}

static kiln__need column_need(const column_plan *p, const matrix *m)
{
  return (kiln__need){.descriptors = p->parts == 1
                                         ? 0
                                         : p->parts * m->columns *
                                               kiln__acc_words(m->out.type)};
}

static kiln_status run_columns(kiln_stream *stream, const matrix *m,
                               const kiln_workspace *workspace)
{
  const kiln__kernel_set *set;
  kiln_launch_config config = {.stream = stream};
  kiln_status st = KILN_OK;
  unsigned long long columns = m->columns, rows = m->rows, leading = m->leading;
  kiln__args args;
  kiln__storage storage;
  column_plan p;
  uint32_t epoch;

  plan_columns(&p, stream->device, m);
  if (p.strips > INT32_MAX)
    return kiln__fail(KILN_EINVAL, "reduce parts of the columns",
                      "%s: more columns than a grid has blocks for", m->call);
  KILN_TRY(kiln__specialise(&set, stream->device, &p.spec));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, column_need(&p, m)));
  kiln__user_args(&args, &p.spec);
  epoch = kiln__storage_epoch(&storage);
  config.grid.x = (uint32_t)p.strips;
  config.grid.y = (uint32_t)p.parts;
  config.block.x = MATRIX_BLOCK;
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                   KILN_ARG(rows), KILN_ARG(columns), KILN_ARG(leading),
                   KILN_ARG(storage.descriptors), KILN_ARG(epoch),
                   KILN_ARG(m->out.data));
  kiln__storage_close(&storage);

done:
  return st;
}

kiln_status kiln_reduce_columns(kiln_stream *stream,
                                const kiln_reduce_matrix_desc *desc,
                                const kiln_workspace *workspace)
{
  matrix m;
  kiln_status st =
      check(&m, "kiln_reduce_columns", false, stream, desc, workspace);

  return st != KILN_OK || m.columns == 0 ? st
                                         : run_columns(stream, &m, workspace);
}

static kiln_status reduce_columns_need(kiln__need *need, kiln_stream *stream,
                                       const kiln_reduce_matrix_desc *desc)
{
  kiln_status st = KILN_OK;
  column_plan p;
  matrix m;

  KILN_TRY(check(&m, "kiln_reduce_columns", false, stream, desc, NULL));
  plan_columns(&p, stream->device, &m);
  *need = column_need(&p, &m);

done:
  return st;
}

KILN__WORKSPACE(kiln_reduce_columns, kiln_reduce_matrix_desc,
                reduce_columns_need)
