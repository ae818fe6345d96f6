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
  /* The same for means and variances, which need more registers. */
  MOMENTS_THREADS = 512,
  /* Approximate number of bytes that a thread loads at the same time. */
  FLIGHT = 64,
  /* Block size, and threads per SM, of warps that load two rows at a time. */
  TWO_ROWS_BLOCK = 128,
  TWO_ROWS_THREADS = 384,
  /* Rows of at least this number of vectors are reduced by several blocks. */
  WIDE = 2048,
  /* Replaces WIDE if there are fewer rows than warps. */
  RATHER_WIDE = 256
};

/* ---- Common functions --------------------------------------------------- */

/* Checks the shape and the input of a matrix. */
static void check_shape(kiln__checker *c, const kiln__matrix *m)
{
  const uint64_t rows = m->rows, columns = m->columns;
  uint64_t n = 0;

  kiln__check_that(c, m->leading >= columns,
                   "leading is below the number of columns");
  if (rows > 0 && columns > 0) {
    kiln__check_that(c, rows - 1 <= (UINT64_MAX - columns) / m->leading,
                     "more elements than 64 bits count");
    n = (rows - 1) * m->leading + columns;
  }
  if (c->st == KILN_OK)
    kiln__check_input(c, "x", m->x, n);
}

static uint64_t leading_of(uint64_t leading, uint64_t columns)
{
  return leading != 0 ? leading : columns;
}

static kiln_status check(kiln__matrix *m, const char *call, bool by_row,
                         const kiln_stream *stream,
                         const kiln_reduce_matrix_desc *desc,
                         const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  *m = (kiln__matrix){.call = call,
                      .x = &desc->x,
                      .rows = desc->rows,
                      .columns = desc->columns,
                      .leading = leading_of(desc->leading, desc->columns),
                      .op = &desc->op,
                      .out =
                          kiln__or_type(desc->out, kiln__input_type(&desc->x)),
                      .code = &desc->code};
  check_shape(&c, m);
  kiln__check_write(&c, "out", m->out, by_row ? desc->rows : desc->columns);
  kiln__check_reduction_op(&c, &desc->op, m->out.type);
  return kiln__check_workspace(&c, workspace);
}

static kiln_status check_extremum(kiln__matrix *m, const char *call,
                                  bool by_row, const kiln_stream *stream,
                                  const kiln_arg_reduce_matrix_desc *desc,
                                  const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  *m = (kiln__matrix){.call = call,
                      .kind = kiln__extremum_kind(desc->op),
                      .x = &desc->x,
                      .rows = desc->rows,
                      .columns = desc->columns,
                      .leading = leading_of(desc->leading, desc->columns),
                      .out = desc->value,
                      .out2 = desc->index,
                      .code = &desc->code};
  check_shape(&c, m);
  kiln__check_extremum(&c, desc->op, &m->out, &m->out2,
                       by_row ? desc->rows : desc->columns);
  return kiln__check_workspace(&c, workspace);
}

static kiln_status check_moments(kiln__matrix *m, const char *call, bool by_row,
                                 const kiln_stream *stream,
                                 const kiln_mean_variance_matrix_desc *desc,
                                 const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, call, stream, desc) != KILN_OK)
    return c.st;
  *m = (kiln__matrix){.call = call,
                      .kind = KILN__REDUCTION_MOMENTS,
                      .x = &desc->x,
                      .rows = desc->rows,
                      .columns = desc->columns,
                      .leading = leading_of(desc->leading, desc->columns),
                      .out = desc->mean,
                      .out2 = desc->variance,
                      .extra = desc->correction,
                      .code = &desc->code};
  check_shape(&c, m);
  kiln__check_moments(&c, &m->out, &m->out2, desc->correction,
                      by_row ? desc->rows : desc->columns);
  return kiln__check_workspace(&c, workspace);
}

static kiln_dtype out_type(kiln_array a)
{
  return kiln__given(a) ? a.type : KILN_F32;
}

static uint32_t threads_of(const kiln__matrix *m)
{
  return m->kind == KILN__REDUCTION_MOMENTS ? MOMENTS_THREADS : MATRIX_THREADS;
}

static bool is_ordered(const kiln__matrix *m)
{
  return m->kind == KILN__REDUCTION_OP && kiln__op_ordered(m->op);
}

static bool is_small(const kiln__matrix *m)
{
  /* The indices of the kernels may exceed the end by one round of loads, which
   * must fit 32 bits as well. */
  return m->rows == 0 || m->leading == 0 ||
         (m->rows + 4096) <= (UINT64_C(1) << 31) / m->leading;
}

/* Returns the number of elements per vector. A vector that starts at a multiple
 * of this number is aligned in every row. `limit` is the maximum, a power of
 * two. */
static unsigned vec_of(const kiln__matrix *m, unsigned limit)
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

/* Returns the number of loads of `bytes` bytes that a thread has in flight at
 * the same time. */
static unsigned in_flight(unsigned bytes, unsigned vec)
{
  unsigned n = FLIGHT / (bytes < 4 ? 4 : bytes);

  if (n * vec > 64)
    n = 64 / vec;
  return n == 0 ? 1 : n;
}

static kiln__spec spec_of(const kiln__family *family, const kiln__matrix *m)
{
  kiln__spec spec = {.family = family,
                     .input = m->x,
                     .elements = m->rows * m->columns,
                     .code = m->code};

  if (m->kind == KILN__REDUCTION_OP) {
    spec.op = m->op;
    spec.acc = kiln__op_type(m->out.type);
  }
  return spec;
}

/* ---- Rows ---------------------------------------------------------------- */

static const char *const row_kernels[] = {"reduce_rows", NULL};
static const kiln__family row_family = {"reduce_rows", row_kernels,
                                        kiln__reduce_rows_params};

/* Returns whether a row is so long that several blocks reduce it, by means of
 * reduce_any.cu. */
static bool is_wide(const kiln__matrix *m, const kiln_device *device)
{
  const uint64_t vecs = m->columns / kiln__input_vec(m->x);

  return m->rows < UINT32_MAX && m->rows > 0 &&
         (vecs >= WIDE || (vecs >= RATHER_WIDE &&
                           m->rows < 32 * (uint64_t)device->info.sm_count));
}

/* Returns whether one warp reduces a row, where the first vector starts before
 * the first element of the row. This avoids narrow loads if the rows are not
 * aligned. */
static bool wants_head(const kiln__matrix *m, unsigned vec)
{
  const unsigned full = kiln__input_vec(m->x);

  return vec < full && m->columns >= 64 * (uint64_t)full &&
         kiln__input_in_phase(m->x, kiln__input_phase(m->x), full);
}

/* How the lanes of a row's group load it; see reduce_rows.cu. */
typedef struct row_loads {
  unsigned items, depth;
  uint32_t block, threads;
} row_loads;

/* Chooses the loads in flight. `each` is the number of vectors per lane. For an
 * extremum, a warp loads two rows at a time if a row has 5 to 8 vectors of 16
 * bytes per lane: on an H200, rows of 1,000 f32 are read at 4.4 TB/s instead of
 * 4.15. */
static row_loads row_loads_of(const kiln__matrix *m, unsigned vec,
                              uint64_t each, bool head)
{
  const unsigned flight = in_flight(vec * kiln__input_width(m->x), vec);
  const bool extremum =
      m->kind == KILN__REDUCTION_ARG_MIN || m->kind == KILN__REDUCTION_ARG_MAX;
  row_loads l = {.items = each < flight ? (unsigned)each : flight,
                 .block = MATRIX_BLOCK,
                 .threads = threads_of(m)};

  if (l.items == 0)
    l.items = 1;
  l.depth = head || l.items >= flight ? 1 : flight / l.items;
  if (extremum && !head && each > flight && each <= 2 * flight)
    l = (row_loads){(unsigned)each, 2, TWO_ROWS_BLOCK, TWO_ROWS_THREADS};
  return l;
}

/* Returns the size of the front of the matrix that has the usual priority in the
 * L2 cache, in units of 2^12 vectors: three fifths of the cache, or 0 if the
 * matrix fits into the cache. */
static uint32_t keep_rows(const kiln_device *device, const kiln__matrix *m,
                          unsigned vec)
{
  const uint64_t width = kiln__input_width(m->x);
  const uint64_t cache = (uint64_t)device->info.l2_bytes;

  if (device->traits.cc < 80 || m->rows * m->leading <= cache / width)
    return 0;
  return (uint32_t)(cache * 3 / 5 / (vec * width) >> 12);
}

static void specify_rows(kiln__spec *spec, const kiln_device *device,
                         const kiln__matrix *m, uint32_t *phase)
{
  unsigned vec = vec_of(m, m->kind == KILN__REDUCTION_OP ? 16 : 8);
  const bool head = wants_head(m, vec);
  uint32_t *value = spec->value;
  row_loads loads;
  uint64_t vecs;
  unsigned group;

  *phase = 0;
  if (head) {
    vec = kiln__input_vec(m->x);
    *phase = kiln__input_phase(m->x);
    spec->first = *phase == 0 ? 0 : vec - *phase;
  }
  vecs = kiln__divide_up(m->columns, vec);
  group = head ? 32 : power_of_two(vecs, 32);
  loads = row_loads_of(m, vec, kiln__divide_up(vecs, group), head);
  value[REDUCE_ROWS_KIND] = m->kind;
  value[REDUCE_ROWS_OUT] = out_type(m->out);
  value[REDUCE_ROWS_OUT2] = out_type(m->out2);
  value[REDUCE_ROWS_BLOCK] = loads.block;
  value[REDUCE_ROWS_GROUP] = group;
  value[REDUCE_ROWS_VECTOR] = vec;
  value[REDUCE_ROWS_ITEMS] = loads.items;
  value[REDUCE_ROWS_DEPTH] = loads.depth;
  value[REDUCE_ROWS_THREADS] = loads.threads;
  value[REDUCE_ROWS_EXACT] = !head && vecs == (uint64_t)group * loads.items;
  value[REDUCE_ROWS_HEAD] = head;
  value[REDUCE_ROWS_KEEP] =
      loads.block == TWO_ROWS_BLOCK ? keep_rows(device, m, vec) : 0;
  value[REDUCE_ROWS_ORDERED] = is_ordered(m);
  value[REDUCE_ROWS_SMALL] = is_small(m);
}

static kiln_status run_rows(kiln_stream *stream, const kiln__matrix *m)
{
  kiln__spec spec = spec_of(&row_family, m);
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  uint32_t phase;
  kiln__args args;
  uint64_t tiles;

  specify_rows(&spec, stream->device, m, &phase);
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  kiln__user_args(&args, &spec);
  tiles = kiln__divide_up(m->rows, (uint64_t)spec.value[REDUCE_ROWS_BLOCK] /
                                       spec.value[REDUCE_ROWS_GROUP] *
                                       spec.value[REDUCE_ROWS_DEPTH]);
  config = kiln__grid(stream, tiles < INT32_MAX ? tiles : INT32_MAX,
                      spec.value[REDUCE_ROWS_BLOCK]);
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                   KILN_ARG(m->columns), KILN_ARG(m->rows),
                   KILN_ARG(m->leading), KILN_ARG(phase), KILN_ARG(m->extra),
                   KILN_ARG(m->out.data), KILN_ARG(m->out2.data));

done:
  return st;
}

void kiln__rows_plan(kiln__matrix *m, const kiln_stream *stream)
{
  m->is_wide = is_wide(m, stream->device);
  if (!m->is_wide)
    return;
  m->reduction = (kiln__reduction){.kind = m->kind,
                                   .x = m->x,
                                   .n = m->columns,
                                   .rows = m->rows,
                                   .leading = m->leading,
                                   .op = m->op,
                                   .out = m->out,
                                   .out2 = m->out2,
                                   .extra = m->extra,
                                   .code = m->code};
  kiln__reduction_plan(&m->reduction, stream);
  m->need = m->reduction.need;
}

kiln_status kiln__rows_run(kiln_stream *stream, const kiln__matrix *m,
                           const kiln_workspace *workspace)
{
  if (m->rows == 0)
    return KILN_OK;
  return m->is_wide ? kiln__reduction_run(stream, &m->reduction, workspace)
                    : run_rows(stream, m);
}

/* Defines kiln_NAME() and kiln_NAME_workspace() for the rows of a matrix. check()
 * is one of the functions above. */
#define ROWS_OPERATION(name, desc_type, check)                                 \
  static kiln_status name##_prepare(                                           \
      kiln__matrix *m, const kiln_stream *stream, const desc_type *desc,       \
      const kiln_workspace *workspace)                                         \
  {                                                                            \
    const kiln_status st = check(m, #name, true, stream, desc, workspace);     \
                                                                               \
    if (st == KILN_OK)                                                         \
      kiln__rows_plan(m, stream);                                              \
    return st;                                                                 \
  }                                                                            \
  KILN__DEFINE_OPERATION(name, desc_type, kiln__matrix, name##_prepare,        \
                         kiln__rows_run)

ROWS_OPERATION(kiln_reduce_rows, kiln_reduce_matrix_desc, check)
ROWS_OPERATION(kiln_arg_reduce_rows, kiln_arg_reduce_matrix_desc,
               check_extremum)
ROWS_OPERATION(kiln_mean_variance_rows, kiln_mean_variance_matrix_desc,
               check_moments)

/* ---- Columns ------------------------------------------------------------- */

static const char *const column_kernels[] = {"reduce_columns", NULL};
static const kiln__family column_family = {"reduce_columns", column_kernels,
                                           kiln__reduce_columns_params};

typedef struct column_plan {
  kiln__matrix matrix;
  kiln__spec spec;
  uint64_t strips, parts;
  kiln__need need;
} column_plan;

/* Returns the number of threads per block. One large block per SM leaves few
 * results per column to combine at the end. Its results must fit into shared
 * memory. */
static unsigned column_block(const kiln__matrix *m, unsigned words)
{
  enum { LARGE_BLOCK = 1024 };

  return words <= 2 && threads_of(m) >= LARGE_BLOCK ? LARGE_BLOCK
                                                    : MATRIX_BLOCK;
}

/* Plans a reduction of columns. The rows are divided into ranges, one per
 * block. There are enough ranges to fill the device, but each range takes at
 * least one round of loads. */
static void plan_columns(column_plan *p, const kiln_device *device)
{
  const kiln__matrix *m = &p->matrix;
  const unsigned words = kiln__result_words(m->kind, m->x, m->out.type);
  const unsigned block = column_block(m, words);
  const kiln__tuning t = {(uint16_t)block, 0, (uint16_t)(threads_of(m) / block),
                          0};
  const unsigned vec = vec_of(m, words > 4 ? 2 : words > 1 ? 4 : 8);
  const unsigned lanes = power_of_two(kiln__divide_up(m->columns, vec), 32);
  const unsigned items = in_flight(vec * kiln__input_width(m->x), vec);
  const uint64_t round = (uint64_t)block / lanes * items;
  /* cppcheck-suppress ctuuninitvar; only the address of *p is used */
  uint32_t *value = p->spec.value;
  uint64_t most;

  p->spec = spec_of(&column_family, m);
  value[REDUCE_COLUMNS_KIND] = m->kind;
  value[REDUCE_COLUMNS_OUT] = out_type(m->out);
  value[REDUCE_COLUMNS_OUT2] = out_type(m->out2);
  value[REDUCE_COLUMNS_BLOCK] = block;
  value[REDUCE_COLUMNS_LANES] = lanes;
  value[REDUCE_COLUMNS_VECTOR] = vec;
  value[REDUCE_COLUMNS_ITEMS] = items;
  value[REDUCE_COLUMNS_THREADS] = threads_of(m);
  value[REDUCE_COLUMNS_ORDERED] = is_ordered(m);
  value[REDUCE_COLUMNS_SMALL] = is_small(m);
  p->strips = kiln__divide_up(m->columns, (uint64_t)lanes * vec);
  p->parts = kiln__resident(device, &t) / (p->strips == 0 ? 1 : p->strips);
  most = m->rows / round;
  if (p->parts > most)
    p->parts = most;
  if (p->parts == 0)
    p->parts = 1;
  p->need.descriptors = p->parts == 1 ? 0 : p->parts * m->columns * words;
}

static kiln_status run_columns(kiln_stream *stream, const column_plan *p,
                               const kiln_workspace *workspace)
{
  const kiln__matrix *m = &p->matrix;
  const kiln_launch_config config = {
      .grid = {(uint32_t)p->strips, (uint32_t)p->parts, 1},
      .block.x = p->spec.value[REDUCE_COLUMNS_BLOCK],
      .stream = stream};
  kiln_status st = KILN_OK;
  kiln__call c;

  if (m->columns == 0)
    return KILN_OK;
  if (p->strips > INT32_MAX)
    return kiln__fail(KILN_EINVAL, "reduce parts of the columns",
                      "%s: more columns than a grid has blocks for", m->call);
  KILN_TRY(kiln__call_open(&c, stream, &p->spec, workspace, p->need));
  st = KILN_LAUNCH(c.set->kernel[0], &config, KILN__USER_ARG(c.args),
                   KILN_ARG(m->rows), KILN_ARG(m->columns),
                   KILN_ARG(m->leading), KILN_ARG(c.storage.descriptors),
                   KILN_ARG(c.epoch), KILN_ARG(m->extra), KILN_ARG(m->out.data),
                   KILN_ARG(m->out2.data));
  kiln__storage_close(&c.storage);

done:
  return st;
}

#define COLUMNS_OPERATION(name, desc_type, check)                              \
  static kiln_status name##_prepare(column_plan *p, const kiln_stream *stream, \
                                    const desc_type *desc,                     \
                                    const kiln_workspace *workspace)           \
  {                                                                            \
    kiln_status st;                                                            \
                                                                               \
    *p = (column_plan){.strips = 0};                                           \
    st = check(&p->matrix, #name, false, stream, desc, workspace);             \
    if (st == KILN_OK)                                                         \
      plan_columns(p, stream->device);                                         \
    return st;                                                                 \
  }                                                                            \
  KILN__DEFINE_OPERATION(name, desc_type, column_plan, name##_prepare,         \
                         run_columns)

COLUMNS_OPERATION(kiln_reduce_columns, kiln_reduce_matrix_desc, check)
COLUMNS_OPERATION(kiln_arg_reduce_columns, kiln_arg_reduce_matrix_desc,
                  check_extremum)
COLUMNS_OPERATION(kiln_mean_variance_columns, kiln_mean_variance_matrix_desc,
                  check_moments)
