/* gemm.c -- matrix products: checks a desc, brings the call into one form, and
 * passes it to the first path that can serve it.
 *
 * Normal form: two orders and a transposition per matrix give 32 layouts. If D
 * is in column-major order, D^T = B^T A^T is in row-major order, so exchanging
 * A and B makes D row-major. For A and B, order and transposition matter only
 * through one bit each: whether consecutive elements follow the sum. C keeps
 * two strides. So a kernel has four layouts, and the epilogue a bit that says
 * whether row and column are exchanged. */
#include "gemm.h"

#include <math.h>
#include <string.h>

/* The paths, fastest first. */
static const kiln__gemm_path *const paths[] = {
    &kiln__gemm_wgmma, &kiln__gemm_mma,  &kiln__gemm_few,
    &kiln__gemm_small, &kiln__gemm_ffma, &kiln__gemm_simt};

/* The model overrules a measured tile if it predicts less than this share of its
 * own choice. */
static const double LEAST_SHARE = 0.6;

static const char *const input_names[] = {"in[0]", "in[1]", "in[2]", "in[3]"};

/* ---- Checks -------------------------------------------------------------- */

/* A matrix as the caller describes it: `lines` lines (rows, or columns in
 * column-major order) of `width` consecutive elements. */
typedef struct stored {
  const char *name;
  const kiln_gemm_matrix *x;
  bool by_row; /* consecutive elements are in one row of op() */
  uint64_t lines, width, leading, batch, size;
} stored;

/* Describes a matrix whose op() has the given shape. */
static stored describe(const char *name, const kiln_gemm_matrix *x,
                       uint64_t rows, uint64_t columns, uint64_t batch)
{
  const bool by_row = (x->order == KILN_ROW_MAJOR) != x->transposed;
  const uint64_t width = by_row ? columns : rows;

  return (stored){.name = name,
                  .x = x,
                  .by_row = by_row,
                  .lines = by_row ? rows : columns,
                  .width = width,
                  .leading = x->leading != 0 ? x->leading : width,
                  .batch = batch,
                  .size = kiln__size(x->type)};
}

/* Returns the number of elements from the first to the last, or 0 if 64 bits
 * do not hold the number of bytes. */
static uint64_t extent(const stored *s)
{
  const uint64_t most = UINT64_MAX / 16;
  uint64_t n = s->width;

  if (s->lines == 0 || s->width == 0)
    return 0;
  if (s->width > most || (s->lines - 1) > (most - n) / s->leading)
    return 0;
  n += (s->lines - 1) * s->leading;
  if (s->x->stride != 0 && s->batch - 1 > (most - n) / s->x->stride)
    return 0;
  return n + (s->batch - 1) * s->x->stride;
}

static void check_form(kiln__checker *c, const stored *s)
{
  const kiln_gemm_matrix *x = s->x;

  kiln__check_that(c, (unsigned)x->order <= KILN_COLUMN_MAJOR,
                   "the order of %s is %d, which is no kiln_gemm_order",
                   s->name, (int)x->order);
  kiln__check_that(c, s->leading >= s->width,
                   "the leading dimension of %s is %llu, but its lines have "
                   "%llu elements",
                   s->name, (unsigned long long)s->leading,
                   (unsigned long long)s->width);
  kiln__check_that(c, x->pointers == 0 || (x->data == 0 && x->stride == 0),
                   "%s has pointers, and also data or a stride", s->name);
  kiln__check_that(c, x->pointers % 8 == 0,
                   "the array of pointers of %s is not aligned to 8 bytes",
                   s->name);
}

static void check_matrix(kiln__checker *c, const stored *s)
{
  const kiln_gemm_matrix *x = s->x;
  const uint64_t n = extent(s);

  check_form(c, s);
  if (c->st != KILN_OK || s->lines == 0 || s->width == 0 || x->pointers != 0)
    return;
  kiln__check_that(c, x->data != 0, "%s is NULL", s->name);
  kiln__check_that(c, s->size != 0 && x->data % s->size == 0,
                   "%s is not aligned to its elements of %u bytes", s->name,
                   (unsigned)s->size);
  kiln__check_that(c, n != 0 && n <= (UINT64_MAX - x->data) / s->size,
                   "%s has more elements than the address space", s->name);
  /* All matrices count as read here, so that only the workspace must not
   * overlap them. overlap() compares the matrices with each other. */
  if (c->st == KILN_OK)
    kiln__check_read(c, s->name, (kiln_array){x->data, x->type}, n);
}

static bool spans_overlap(uint64_t a, uint64_t n_a, uint64_t b, uint64_t n_b)
{
  return a < b + n_b && b < a + n_a;
}

/* Returns whether a batch of matrices has no gaps. */
static bool is_dense(const stored *s)
{
  return s->leading == s->width &&
         (s->batch == 1 || s->x->stride == s->lines * s->width);
}

/* Returns whether two matrices share an element, as far as that is simple to
 * find out. Two parts of one larger matrix have the same leading dimension;
 * they are disjoint if their lines are. */
static bool overlap(const stored *a, const stored *b)
{
  const uint64_t bytes_a = extent(a) * a->size, bytes_b = extent(b) * b->size;
  const uint64_t pitch = a->leading * a->size;
  uint64_t behind;

  if (a->x->pointers != 0 || b->x->pointers != 0 || bytes_a == 0 ||
      bytes_b == 0 || !spans_overlap(a->x->data, bytes_a, b->x->data, bytes_b))
    return false;
  if (pitch != b->leading * b->size || a->batch > 1)
    return is_dense(a) && is_dense(b);
  if (a->x->data <= b->x->data)
    behind = (b->x->data - a->x->data) % pitch;
  else
    behind = (pitch - (a->x->data - b->x->data) % pitch) % pitch;
  return behind < a->width * a->size || behind + b->width * b->size > pitch;
}

static bool same_place(const stored *c, const stored *d)
{
  return c->x->data == d->x->data && c->x->type == d->x->type &&
         c->x->order == d->x->order && c->leading == d->leading &&
         (c->x->stride == d->x->stride || c->batch == 1);
}

/* ---- Types --------------------------------------------------------------- */

static kiln_dtype sum_type(kiln_dtype type)
{
  switch (type) {
  case KILN_F64:
    return KILN_F64;
  case KILN_I8:
    return KILN_I32;
  case KILN_F16:
  case KILN_BF16:
  case KILN_F32:
    return KILN_F32;
  default:
    return KILN_DTYPE_NONE;
  }
}

static bool is_result(kiln_dtype type, kiln_dtype sum)
{
  switch (type) {
  case KILN_F16:
  case KILN_BF16:
  case KILN_F32:
    return true;
  case KILN_F64:
    return sum != KILN_I32;
  case KILN_I32:
  case KILN_I8:
    return sum == KILN_I32;
  default:
    return false;
  }
}

static bool is_int32(double v)
{
  return v >= INT32_MIN && v <= INT32_MAX && v == floor(v);
}

static void check_types(kiln__checker *c, const kiln_gemm_desc *desc)
{
  const kiln_dtype sum = sum_type(desc->a.type);

  kiln__check_that(c, sum != KILN_DTYPE_NONE,
                   "products of %s are not supported; A is f16, bf16, f32, f64 "
                   "or i8",
                   kiln_dtype_name(desc->a.type));
  kiln__check_that(c, desc->b.type == desc->a.type, "A is %s, but B is %s",
                   kiln_dtype_name(desc->a.type),
                   kiln_dtype_name(desc->b.type));
  kiln__check_that(c, is_result(desc->d.type, sum),
                   "D is %s, which is not supported for a product of %s",
                   kiln_dtype_name(desc->d.type),
                   kiln_dtype_name(desc->a.type));
  kiln__check_that(c, desc->beta == 0 || is_result(desc->c.type, sum),
                   "C is %s, which is not supported for a product of %s",
                   kiln_dtype_name(desc->c.type),
                   kiln_dtype_name(desc->a.type));
  kiln__check_that(
      c, sum != KILN_I32 || (is_int32(desc->alpha) && is_int32(desc->beta)),
      "alpha and beta of a product of i8 are integers of 32 bits");
  kiln__check_that(c, (unsigned)desc->precision <= KILN_GEMM_TF32,
                   "precision is %d, which is no kiln_gemm_precision",
                   (int)desc->precision);
  kiln__check_that(
      c, desc->precision == KILN_GEMM_IEEE || desc->a.type == KILN_F32,
      "a precision can be chosen for products of f32, not of %s",
      kiln_dtype_name(desc->a.type));
  kiln__check_that(c, !desc->c.transposed && !desc->d.transposed,
                   "C and D cannot be transposed; choose their order instead");
}

/* ---- Further inputs of the epilogue -------------------------------------- */

static uint32_t n_inputs(const kiln_gemm_desc *desc)
{
  uint32_t n = 0;

  while (n < KILN_GEMM_MAX_INPUTS && kiln__given(desc->in[n].x))
    n++;
  return n;
}

/* Returns the number of elements up to the last that the epilogue reads, or 0
 * if 64 bits do not hold it. */
static uint64_t input_extent(const kiln_gemm_input *in, const uint64_t size[3])
{
  const uint64_t stride[] = {in->row_stride, in->column_stride,
                             in->batch_stride};
  uint64_t n = 1;

  for (int i = 0; i < 3; i++) {
    if (stride[i] != 0 && size[i] - 1 > (UINT64_MAX / 16 - n) / stride[i])
      return 0;
    n += (size[i] - 1) * stride[i];
  }
  return n;
}

static void check_inputs(kiln__checker *c, const kiln_gemm_desc *desc,
                         uint64_t batch)
{
  const uint64_t size[] = {desc->m, desc->n, batch};
  const uint32_t n = n_inputs(desc);

  for (uint32_t i = 0; i < n && desc->m > 0 && desc->n > 0; i++) {
    const uint64_t elements = input_extent(&desc->in[i], size);

    kiln__check_that(c, elements != 0,
                     "%s has more elements than the address space",
                     input_names[i]);
    kiln__check_read(c, input_names[i], desc->in[i].x, elements);
  }
}

/* ---- Normal form --------------------------------------------------------- */

/* Returns the bits of a factor in the type of the sums. */
static uint64_t factor_bits(double v, kiln_dtype sum)
{
  const float f = (float)v;
  uint64_t bits = 0;
  int32_t i;

  if (sum == KILN_F64) {
    memcpy(&bits, &v, sizeof v);
  } else if (sum == KILN_F32) {
    memcpy(&bits, &f, sizeof f);
  } else {
    i = (int32_t)v;
    memcpy(&bits, &i, sizeof i);
  }
  return bits;
}

static kiln__gemm_operand operand(const stored *s)
{
  return (kiln__gemm_operand){s->x->pointers != 0 ? s->x->pointers : s->x->data,
                              s->leading, s->x->stride};
}

static uint32_t pointer_bits(const kiln_gemm_desc *desc, bool swapped)
{
  const kiln_gemm_matrix *a = swapped ? &desc->b : &desc->a;
  const kiln_gemm_matrix *b = swapped ? &desc->a : &desc->b;

  return (a->pointers != 0 ? KILN__GEMM_A : 0u) |
         (b->pointers != 0 ? KILN__GEMM_B : 0u) |
         (desc->beta != 0 && desc->c.pointers != 0 ? KILN__GEMM_C : 0u) |
         (desc->d.pointers != 0 ? KILN__GEMM_D : 0u);
}

/* The four matrices of a call. */
typedef struct matrices {
  stored a, b, c, d;
} matrices;

static void set_c(kiln__gemm *call, const stored *c)
{
  const bool by_row = c->x->order == KILN_ROW_MAJOR;

  if (!call->reads_c)
    return;
  call->args.c = operand(c);
  call->c_by_row = by_row != call->swapped;
  call->args.c_row = call->c_by_row ? c->leading : 1;
  call->args.c_column = call->c_by_row ? 1 : c->leading;
}

static void set_inputs(kiln__gemm *call, const kiln_gemm_desc *desc)
{
  call->n_inputs = n_inputs(desc);
  for (uint32_t i = 0; i < call->n_inputs; i++) {
    call->in.in[i] = desc->in[i].x;
    call->args.x[i][0] = desc->in[i].row_stride;
    call->args.x[i][1] = desc->in[i].column_stride;
    call->args.x[i][2] = desc->in[i].batch_stride;
  }
}

static void normalise(kiln__gemm *call, const kiln_gemm_desc *desc,
                      const matrices *x)
{
  const bool swapped = desc->d.order == KILN_COLUMN_MAJOR;
  const stored *a = swapped ? &x->b : &x->a, *b = swapped ? &x->a : &x->b;
  const bool empty = desc->k == 0 || desc->alpha == 0;
  kiln__gemm_args *g = &call->args;

  call->type = desc->a.type;
  call->d_type = desc->d.type;
  call->reads_c = desc->beta != 0;
  call->c_type = call->reads_c ? desc->c.type : desc->d.type;
  call->sum = sum_type(desc->a.type);
  call->precision = desc->precision;
  call->swapped = swapped;
  call->pointers = pointer_bits(desc, swapped);
  call->a_k = swapped ? !a->by_row : a->by_row;
  call->b_k = swapped ? b->by_row : !b->by_row;
  g->m = swapped ? desc->n : desc->m;
  g->n = swapped ? desc->m : desc->n;
  g->k = empty ? 0 : desc->k;
  g->batch = desc->batch == 0 ? 1 : desc->batch;
  g->alpha = factor_bits(empty ? 0 : desc->alpha, call->sum);
  g->beta = factor_bits(desc->beta, call->sum);
  g->a = operand(a);
  g->b = operand(b);
  g->d = operand(&x->d);
  set_c(call, &x->c);
  set_inputs(call, desc);
}

/* ---- For the paths ------------------------------------------------------- */

#define PARAMETERS(type)                                                       \
  "const " type " acc, const kiln__index row, const kiln__index column, "      \
  "const kiln__index batch"

/* Appends to the text of the parameters, which has `used` characters, and returns
 * their new number. */
static size_t append(kiln__gemm *call, size_t used, const char *text)
{
  char *const to = call->parameter_text + used;

  kiln__copy_text(to, sizeof call->parameter_text - used, text);
  return used + strlen(to);
}

/* Writes the C++ parameters of the epilogue's function. Without further inputs
 * they are constant texts. Formatting would take a tenth of the call's time. */
static void set_parameters(kiln__gemm *call)
{
  static const char *const names[] = {" x", " y", " z", " w"};
  size_t used = 0;

  call->parameters = call->sum == KILN_F64   ? PARAMETERS("double")
                     : call->sum == KILN_I32 ? PARAMETERS("int")
                                             : PARAMETERS("float");
  if (call->n_inputs == 0)
    return;
  used = append(call, used, call->parameters);
  for (uint32_t i = 0; i < call->n_inputs; i++) {
    used = append(call, used, ", const ");
    used = append(call, used, kiln__dtype_of(call->in.in[i].type)->compute);
    used = append(call, used, names[i]);
  }
  call->parameters = call->parameter_text;
}

void kiln__gemm_specify(kiln__spec *spec, const kiln__family *family,
                        const kiln__gemm *call)
{
  const char *text = call->desc->epilogue;

  *spec = (kiln__spec){.family = family,
                       .input = call->n_inputs > 0 ? &call->in : NULL,
                       .code = &call->desc->code,
                       .unaligned = true};
  spec->value[KILN__GEMM_PARAM_T] = call->type;
  spec->value[KILN__GEMM_PARAM_C] = call->c_type;
  spec->value[KILN__GEMM_PARAM_D] = call->d_type;
  spec->value[KILN__GEMM_PARAM_READS_C] = call->reads_c;
  spec->value[KILN__GEMM_PARAM_POINTERS] = call->pointers;
  spec->value[KILN__GEMM_PARAM_SWAPPED] = call->swapped;
  spec->value[KILN__GEMM_PARAM_INPUTS] = call->n_inputs;
  spec->function[0] =
      (kiln__function){.name = "epilogue",
                       .what = "the epilogue",
                       .expr = text != NULL ? text : "acc",
                       .result = kiln__dtype_of(call->d_type)->compute,
                       .parameters = call->parameters};
}

uint32_t kiln__gemm_vector(const kiln__gemm *call, const kiln__gemm_operand *o,
                           uint32_t bit, kiln_dtype type, uint64_t line,
                           uint32_t most)
{
  const uint64_t size = kiln__size(type);
  uint32_t vec = most;

  if ((call->pointers & bit) != 0)
    return 1;
  while (vec > 1 && ((o->data | o->leading * size | line * size |
                      (call->args.batch > 1 ? o->stride * size : 0)) &
                     (vec * size - 1)) != 0)
    vec /= 2;
  return vec;
}

kiln_launch_config kiln__gemm_grid(kiln_stream *stream, uint64_t blocks,
                                   uint32_t threads)
{
  const uint64_t most = UINT64_C(1) << 30;
  const uint64_t rows = kiln__divide_up(blocks, most);
  kiln_launch_config config = kiln__grid(stream, 1, threads);

  config.grid.x = (uint32_t)(rows == 1 ? blocks : most);
  config.grid.y = (uint32_t)rows;
  return config;
}

kiln__gemm_tiling kiln__gemm_number_tiles(const kiln__gemm *call, uint64_t m,
                                          uint64_t n)
{
  enum { GROUP = 8 };
  const uint32_t rows = (uint32_t)kiln__divide_up(call->args.m, m);
  const uint32_t columns = (uint32_t)kiln__divide_up(call->args.n, n);
  const uint32_t group = rows < GROUP ? rows : GROUP;
  const uint32_t rest = rows % group == 0 ? group : rows % group;
  const uint64_t matrix = (uint64_t)rows * columns;
  const uint64_t all = matrix * call->args.batch;

  return (kiln__gemm_tiling){.rows = rows,
                             .group = group,
                             .rest = rest,
                             .group_tiles = group * columns,
                             .over_group = UINT32_MAX / group,
                             .over_rest = UINT32_MAX / rest,
                             .over_group_tiles = UINT32_MAX / (group * columns),
                             .matrix = matrix,
                             .all = all,
                             .over_matrix = UINT64_MAX / matrix,
                             .over_all = UINT64_MAX / all};
}

/* ---- The operation ------------------------------------------------------- */

static void check_all(kiln__checker *c, const kiln_gemm_desc *desc,
                      const matrices *x)
{
  const bool reads_ab = desc->k > 0 && desc->alpha != 0;
  const stored *const read[] = {&x->a, &x->b};

  check_types(c, desc);
  for (int i = 0; i < 2 && reads_ab; i++)
    check_matrix(c, read[i]);
  if (desc->beta != 0)
    check_matrix(c, &x->c);
  check_matrix(c, &x->d);
  kiln__check_that(c,
                   x->d.batch <= 1 || x->d.x->pointers != 0 ||
                       x->d.x->stride >=
                           (x->d.lines - 1) * x->d.leading + x->d.width ||
                       x->d.lines == 0,
                   "the stride of D is less than a matrix");
  for (int i = 0; i < 2 && reads_ab && c->st == KILN_OK; i++)
    kiln__check_that(c, !overlap(&x->d, read[i]), "D and %s overlap",
                     read[i]->name);
  kiln__check_that(c,
                   c->st != KILN_OK || desc->beta == 0 ||
                       same_place(&x->c, &x->d) || !overlap(&x->d, &x->c),
                   "D and C overlap without being the same matrix");
  kiln__check_that(c, desc->tile.split <= 64,
                   "tile.split is %u, the most is 64", desc->tile.split);
  check_inputs(c, desc, x->d.batch);
}

/* Returns the tile that `kiln tune` measured as the fastest on this GPU for
 * products of this path and size, or {0}. */
static kiln_gemm_tile measured_tile(const kiln__gemm *call, kiln_device *device)
{
  static const struct {
    const kiln__gemm_path *path;
    kiln__tuned_family family;
  } families[] = {{&kiln__gemm_wgmma, KILN__TUNED_GEMM_WGMMA},
                  {&kiln__gemm_mma, KILN__TUNED_GEMM_MMA},
                  {&kiln__gemm_simt, KILN__TUNED_GEMM_SIMT}};
  const kiln__gemm_args *g = &call->args;
  kiln_gemm_tile tile = {0, 0, 0};
  kiln__tuning t;

  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
    if (families[i].path == call->path &&
        kiln__tuned_here(device, families[i].family,
                         (unsigned)kiln__size(call->type),
                         g->m * g->n * g->batch, &t))
      tile = call->swapped ? (kiln_gemm_tile){t.items, t.extra, 0}
                           : (kiln_gemm_tile){t.extra, t.items, 0};
  return tile;
}

/* Plans a call again with the tile that was measured, if there is one. Sizes are
 * measured with square matrices. If the model predicts much less for the measured
 * tile than for its own, the call has another shape, and the model decides. */
static void use_measured_tile(kiln__gemm *call, kiln_device *device)
{
  const kiln_gemm_tile measured = measured_tile(call, device);
  kiln__gemm other;

  if (measured.m == 0)
    return;
  other = *call;
  other.tile.m = measured.m;
  other.tile.n = measured.n;
  other.simt.splits = 0;
  memset(&other.plan, 0, sizeof other.plan);
  memset(&other.need, 0, sizeof other.need);
  if (other.path->plan(&other) &&
      other.plan.choice.efficiency >=
          LEAST_SHARE * call->plan.choice.efficiency)
    *call = other;
}

static kiln_status choose_path(kiln__checker *c, kiln__gemm *call,
                               kiln_device *device)
{
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
    if (call->path == NULL && paths[i]->plan(call))
      call->path = paths[i];
  kiln__check_that(c, call->path != NULL, "no kernel has a tile of %u x %u",
                   call->desc->tile.m, call->desc->tile.n);
  if (call->path == NULL)
    return c->st;
  if (call->tile.m == 0 && call->tile.n == 0)
    use_measured_tile(call, device);
  call->plan.choice.path = call->path->name;
  return c->st;
}

static kiln_status prepare(kiln__gemm *call, const kiln_stream *stream,
                           const kiln_gemm_desc *desc,
                           const kiln_workspace *workspace)
{
  const uint64_t batch = desc == NULL || desc->batch == 0 ? 1 : desc->batch;
  kiln__checker c;
  matrices x;

  memset(call, 0, sizeof *call);
  if (kiln__check_begin(&c, "kiln_gemm", stream, desc) != KILN_OK)
    return c.st;
  x.a = describe("A", &desc->a, desc->m, desc->k, batch);
  x.b = describe("B", &desc->b, desc->k, desc->n, batch);
  x.c = describe("C", &desc->c, desc->m, desc->n, batch);
  x.d = describe("D", &desc->d, desc->m, desc->n, batch);
  check_all(&c, desc, &x);
  if (kiln__check_workspace(&c, workspace) != KILN_OK || desc->m == 0 ||
      desc->n == 0)
    return c.st;
  call->desc = desc;
  call->tile = desc->tile;
  call->device = stream->device;
  normalise(call, desc, &x);
  set_parameters(call);
  return choose_path(&c, call, stream->device);
}

static kiln_status run(kiln_stream *stream, const kiln__gemm *call,
                       const kiln_workspace *workspace)
{
  return call->path == NULL ? KILN_OK
                            : call->path->launch(stream, call, workspace);
}

KILN__DEFINE_OPERATION(kiln_gemm, kiln_gemm_desc, kiln__gemm, prepare, run)

kiln_status kiln_gemm_explain(kiln_stream *stream, const kiln_gemm_desc *desc,
                              kiln_gemm_choice *choice)
{
  kiln__gemm call;
  kiln_status st;

  if (choice == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "kiln_gemm_explain: choice is NULL");
  memset(choice, 0, sizeof *choice);
  st = prepare(&call, stream, desc, NULL);
  if (st == KILN_OK)
    *choice = call.plan.choice;
  return st;
}
