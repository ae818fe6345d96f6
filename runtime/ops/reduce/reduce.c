/* reduce.c -- the host side of reduce_any.cu, and kiln_reduce().
 *
 * Each block reduces a part of the array to one result and stores the result in
 * a tile descriptor. One additional block combines the results as they appear,
 * so one launch suffices at every size.
 *
 * Portable reductions fix everything that decides the order of operands: the
 * chunk size follows from n alone, and all other parameters are constants.
 * Therefore the results have the same bits on every device. */
#include "reduce.h"
#include "kernel_params.h"

static const char *const kernels[] = {"reduce_any", NULL};
static const kiln__family family = {"reduce_any", kernels,
                                    kiln__reduce_any_params};

/* Constants that decide the order of operands in a portable reduction. */
enum {
  PORTABLE_BLOCK = 256,
  PORTABLE_ITEMS = 4,
  PORTABLE_PER_SM = 4,
  PORTABLE_LETTERS = 8,
  PORTABLE_LEAST = 1 << 14, /* minimum number of elements per chunk */
  PORTABLE_MOST = 2048      /* maximum number of chunks */
};

/* ---- Inputs and operations ----------------------------------------------- */

kiln_array kiln__or_type(kiln_array a, kiln_dtype type)
{
  if (a.type == KILN_DTYPE_NONE)
    a.type = type;
  return a;
}

bool kiln__op_ordered(const kiln_op *op)
{
  return op->expr != NULL && !op->commutative;
}

kiln_dtype kiln__op_type(kiln_dtype out)
{
  const kiln__dtype *type = kiln__dtype_of(out);

  if (type == NULL || kiln__is_record(out))
    return type == NULL ? KILN_DTYPE_NONE : out;
  return type->computed;
}

unsigned kiln__acc_words(kiln_dtype type)
{
  return (unsigned)(kiln__size(kiln__op_type(type)) + 3) / 4;
}

unsigned kiln__input_width(const kiln_input *x)
{
  size_t bytes = 0;

  for (size_t k = 0; k < kiln__input_arrays(x); k++)
    bytes += kiln__size(x->in[k].type);
  return bytes == 0 ? 4 : (unsigned)bytes;
}

unsigned kiln__input_phase(const kiln_input *x)
{
  const kiln_array *widest = &x->in[0];

  if (kiln__input_arrays(x) == 0)
    return 0;
  for (size_t k = 1; k < kiln__input_arrays(x); k++)
    if (kiln__size(x->in[k].type) > kiln__size(widest->type))
      widest = &x->in[k];
  if (16 % kiln__size(widest->type) != 0)
    return 0;
  return (unsigned)(widest->data % 16 / kiln__size(widest->type));
}

bool kiln__input_in_phase(const kiln_input *x, unsigned phase, unsigned vec)
{
  for (size_t k = 0; k < kiln__input_arrays(x); k++) {
    const size_t size = kiln__size(x->in[k].type);

    if ((x->in[k].data + (vec - phase) % vec * size) % 16 != 0)
      return false;
  }
  return true;
}

uint64_t kiln__resident(const kiln_device *device, const kiln__tuning *t)
{
  const unsigned per_sm = t->per_sm != 0 ? t->per_sm : 1024u / t->block;

  return (uint64_t)device->info.sm_count * (per_sm == 0 ? 1 : per_sm);
}

void kiln__check_reduction_op(kiln__checker *c, const kiln_op *op,
                              kiln_dtype out)
{
  kiln__check_that(c, kiln__dtype_of(out) != NULL, "out has no type");
  kiln__check_op(c, op, kiln__op_type(out));
}

void kiln__check_floating(kiln__checker *c, const char *name, kiln_array a)
{
  const kiln__dtype *type = kiln__dtype_of(a.type);

  kiln__check_that(c,
                   type != NULL && type->is_float && !kiln__is_complex(a.type),
                   "%s must be of a floating type", name);
}

void kiln__check_index_type(kiln__checker *c, const char *name, kiln_array a)
{
  kiln__check_that(c, a.type >= KILN_I32 && a.type <= KILN_U64,
                   "%s must be of i32, u32, i64 or u64", name);
}

static void check_optional(kiln__checker *c, const char *name, kiln_array *a,
                           uint64_t n)
{
  if (kiln__given(*a))
    kiln__check_write(c, name, *a, n);
  else
    a->data = 0;
}

void kiln__check_extremum(kiln__checker *c, kiln_op_name op, kiln_array *value,
                          kiln_array *index, uint64_t n)
{
  kiln__check_that(c, op == KILN_MIN || op == KILN_MAX,
                   "op must be KILN_MIN or KILN_MAX");
  kiln__check_that(c, kiln__given(*value) || kiln__given(*index),
                   "neither value nor index has a type");
  check_optional(c, "value", value, n);
  check_optional(c, "index", index, n);
  if (kiln__given(*index))
    kiln__check_index_type(c, "index", *index);
}

void kiln__check_moments(kiln__checker *c, kiln_array *mean,
                         kiln_array *variance, double correction, uint64_t n)
{
  kiln__check_that(c, kiln__given(*mean) || kiln__given(*variance),
                   "neither mean nor variance has a type");
  check_optional(c, "mean", mean, n);
  if (kiln__given(*mean))
    kiln__check_floating(c, "mean", *mean);
  check_optional(c, "variance", variance, n);
  if (kiln__given(*variance))
    kiln__check_floating(c, "variance", *variance);
  kiln__check_that(c, correction >= 0.0, "correction is below 0");
}

/* ---- The plan of a launch ------------------------------------------------ */

unsigned kiln__result_words(kiln__reduction_kind kind, const kiln_input *x,
                            kiln_dtype out)
{
  const kiln_dtype in = kiln__op_type(kiln__input_type(x));

  switch (kind) {
  case KILN__REDUCTION_OP:
    return kiln__acc_words(out);
  case KILN__REDUCTION_MOMENTS:
    return 6;
  case KILN__REDUCTION_NORM:
    return in == KILN_F64 ? 6 : 2;
  default:
    return 4;
  }
}

/* Returns the number of 4-byte words that a call reads. The tuning rows count
 * in this unit. */
static uint64_t in_words(const kiln__reduction *f)
{
  const uint64_t bytes = kiln__input_width(f->x);
  const uint64_t n = f->rows > 1 ? f->n * f->rows : f->n;

  return n > UINT64_MAX / bytes ? n : n * bytes / 4;
}

/* Limits the registers of a reduction of wide elements. A thread has at most 128
 * bytes in flight, and an accumulator of more than 16 bytes gets the registers
 * of two resident blocks. */
static void limit_wide(kiln__tuning *t, size_t widest, unsigned vec)
{
  const unsigned most = 128u / (vec * (unsigned)widest);

  if (widest <= 8)
    return;
  if (t->items > most)
    t->items = (uint16_t)most;
  if (widest > 16 && t->per_sm > 1)
    t->per_sm = (uint16_t)(t->per_sm / 2);
}

static kiln__tuning tuning_of(kiln_device *device, const kiln__reduction *f)
{
  const size_t arrays = kiln__input_arrays(f->x);
  const unsigned vec = kiln__input_vec(f->x);
  const unsigned most = f->kind == KILN__REDUCTION_OP ? 64 : 32;
  kiln__tuning t = kiln__tuned(device, KILN__TUNED_REDUCE, 4, in_words(f));

  if (f->portable)
    t = (kiln__tuning){PORTABLE_BLOCK, PORTABLE_ITEMS, PORTABLE_PER_SM,
                       t.extra};
  if (arrays > 1)
    t.items = (uint16_t)(t.items / arrays);
  if ((unsigned)t.items * vec > most)
    t.items = (uint16_t)(most / vec);
  if (!f->portable)
    limit_wide(&t, kiln__widest(f->x, kiln__size(f->out.type)), vec);
  if (t.items == 0)
    t.items = 1;
  if (t.extra == 0)
    t.extra = 1;
  return t;
}

/* Returns the size of the front of the input that is loaded with the normal
 * cache policy, in units of 2^12 vectors. This part takes three fifths of the
 * L2 cache. Returns 0 if the whole array fits. On an H200 with 60 MiB of L2
 * cache, a sum of 64 MiB took 20.3, 17.8 and 25 us if 17, 34 and 50 MiB had the
 * normal policy. */
static uint32_t keep_of(const kiln_device *device, const kiln__reduction *f)
{
  const uint64_t vec =
      (uint64_t)kiln__input_vec(f->x) * kiln__input_width(f->x);
  const uint64_t kept = (uint64_t)device->info.l2_bytes * 3 / 5;

  if (device->traits.cc < 80 || f->rows > 1 || in_words(f) <= 1u << 22 ||
      f->portable)
    return 0;
  return (uint32_t)(kept / vec >> 12);
}

static bool plan_head(kiln__reduction *f)
{
  const unsigned vec = f->spec.value[REDUCE_ANY_VECTOR];
  const unsigned phase = kiln__input_phase(f->x);

  f->spec.first = phase == 0 ? 0 : vec - phase;
  if (f->rows <= 1) {
    f->head = f->spec.first;
    return f->head != 0;
  }
  f->head = phase;
  return phase != 0 || f->leading % vec != 0;
}

/* Plans the grid of a reduction. It has as many blocks as can be resident at
 * the same time, and fewer blocks for small n. One of these blocks only
 * combines the results of the others. */
static void plan_grid(kiln__reduction *f, uint64_t resident, uint64_t wanted)
{
  uint64_t workers = wanted, per_row = resident;

  if (f->rows > 1)
    per_row = resident / f->rows;
  if (workers + 1 > per_row)
    workers = per_row > 1 ? per_row - 1 : 1;
  f->grid = (kiln_dim3){(uint32_t)(workers > 1 ? workers + 1 : 1),
                        (uint32_t)(f->rows < 65535 ? f->rows : 65535), 1};
  f->slots = workers > 1 ? workers * f->rows : 0;
}

static void plan_chunks(kiln__reduction *f, uint64_t resident)
{
  const unsigned vec = f->spec.value[REDUCE_ANY_VECTOR];
  uint64_t size = PORTABLE_LEAST, units, workers;

  while (f->n / size >= PORTABLE_MOST)
    size *= 2;
  f->chunk = size / vec;
  units = kiln__divide_up(f->n / vec, f->chunk);
  workers = units < resident ? units : resident - 1;
  if (workers == 0)
    workers = 1;
  f->grid = (kiln_dim3){(uint32_t)(units > 1 ? workers + 1 : 1), 1, 1};
  f->slots = units > 1 ? units : 0;
}

void kiln__reduction_plan(kiln__reduction *f, const kiln_stream *stream)
{
  kiln_device *device = stream->device;
  const kiln__tuning t = tuning_of(device, f);
  const uint64_t resident = kiln__resident(device, &t);
  const unsigned vec = kiln__input_vec(f->x);
  /* cppcheck-suppress ctuuninitvar; only the address of *f is used */
  uint32_t *value = f->spec.value;

  f->spec = (kiln__spec){.family = &family,
                         .input = f->x,
                         .shape = f->shape,
                         .wide = f->n > UINT32_MAX,
                         .elements = f->n * f->rows,
                         .code = f->code};
  value[REDUCE_ANY_KIND] = f->kind;
  value[REDUCE_ANY_OUT] =
      f->out.type != KILN_DTYPE_NONE ? f->out.type : KILN_F32;
  value[REDUCE_ANY_OUT2] =
      f->out2.type != KILN_DTYPE_NONE ? f->out2.type : KILN_F64;
  value[REDUCE_ANY_BLOCK] = t.block;
  value[REDUCE_ANY_VECTOR] = vec;
  value[REDUCE_ANY_ITEMS] = t.items;
  value[REDUCE_ANY_THREADS] =
      (uint32_t)t.block * (t.per_sm != 0 ? t.per_sm : 1);
  value[REDUCE_ANY_KEEP] = keep_of(device, f);
  value[REDUCE_ANY_RESULTS] = f->portable ? PORTABLE_LETTERS
                              : in_words(f) <= 1u << 22
                                  ? 4
                                  : (uint32_t)kiln__divide_up(resident - 1, 32);
  value[REDUCE_ANY_CHUNKS] = f->portable;
  value[REDUCE_ANY_ROWS] = f->rows > 1;
  value[REDUCE_ANY_SMALL] = f->n + (f->rows - 1) * f->leading < UINT32_C(1)
                                                                    << 31;
  if (f->kind == KILN__REDUCTION_OP) {
    f->spec.op = f->op;
    f->spec.acc = kiln__op_type(f->out.type);
    value[REDUCE_ANY_ORDERED] = kiln__op_ordered(f->op);
    if (value[REDUCE_ANY_ORDERED])
      value[REDUCE_ANY_KEEP] = 0;
  }
  if (f->portable) {
    plan_chunks(f, resident);
  } else {
    value[REDUCE_ANY_HEAD] = plan_head(f);
    plan_grid(f, resident,
              kiln__divide_up(f->n / vec, (uint64_t)t.block * t.extra));
  }
  if (value[REDUCE_ANY_RESULTS] == 0)
    value[REDUCE_ANY_RESULTS] = 1;
  f->need.descriptors =
      f->slots * kiln__result_words(f->kind, f->x, f->out.type);
}

kiln_status kiln__reduction_run(kiln_stream *stream, const kiln__reduction *f,
                                const kiln_workspace *workspace)
{
  const kiln_launch_config config = {.grid = f->grid,
                                     .block.x = f->spec.value[REDUCE_ANY_BLOCK],
                                     .stream = stream};
  const unsigned rows = (unsigned)f->rows;
  kiln_status st = KILN_OK;
  kiln__call c;

  KILN_TRY(kiln__call_open(&c, stream, &f->spec, workspace, f->need));
  st = KILN_LAUNCH(
      c.set->kernel[0], &config, KILN__USER_ARG(c.args), KILN_ARG(f->n),
      KILN_ARG(rows), KILN_ARG(f->head), KILN_ARG(f->leading),
      KILN_ARG(f->chunk), KILN_ARG(c.storage.descriptors), KILN_ARG(c.epoch),
      KILN_ARG(f->extra), KILN_ARG(f->out.data), KILN_ARG(f->out2.data));
  kiln__storage_close(&c.storage);

done:
  return st;
}

/* ---- A whole array ------------------------------------------------------- */

/* A call of kiln_reduce(). */
typedef struct request {
  kiln__reduction reduction;
  kiln__need need;
  /* The input and the normal form of its views, if the desc has a shape. */
  kiln_input x;
  kiln_shape shape;
} request;

/* Checks the input arrays and their views. */
static void check_input(kiln__checker *c, const kiln_reduce_desc *desc)
{
  const size_t arrays = kiln__input_arrays(&desc->x);

  kiln__check_input(c, "x", &desc->x, desc->shape == NULL ? desc->n : 0);
  if (desc->shape == NULL)
    return;
  kiln__check_shape(c, desc->shape, arrays, desc->n);
  for (size_t k = 0; k < arrays; k++)
    kiln__check_viewed(c, "x", desc->x.in[k], desc->shape, k, desc->n);
  kiln__check_that(
      c, desc->x.map != NULL || desc->shape->view[0].kind != KILN_VIEW_TABLE,
      "x.map is NULL, but x.in[0] is a table");
}

/* Replaces the input by one with views. An element of a view is only known to
 * expressions, so that a map must exist. */
static void use_views(request *r, const kiln_reduce_desc *desc)
{
  r->shape = kiln__normal_shape(desc->shape, kiln__input_arrays(&desc->x));
  r->x = desc->x;
  if (r->x.map == NULL && kiln__is_strided(&r->shape, 0)) {
    r->x.map = "x0";
    r->x.type = desc->x.in[0].type;
  }
  r->reduction.x = &r->x;
  r->reduction.shape = &r->shape;
}

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_reduce_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__reduction *f = &r->reduction;
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_reduce", stream, desc) != KILN_OK)
    return c.st;
  *f = (kiln__reduction){
      .kind = KILN__REDUCTION_OP,
      .x = &desc->x,
      .n = desc->n,
      .rows = 1,
      .op = &desc->op,
      .out = kiln__or_type(desc->out, kiln__input_type(&desc->x)),
      .portable = desc->portable,
      .code = &desc->code};
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  check_input(&c, desc);
  kiln__check_write(&c, "out", f->out, 1);
  kiln__check_converts(&c, "out", kiln__input_type(&desc->x), f->out.type);
  kiln__check_reduction_op(&c, &desc->op, f->out.type);
  if (kiln__check_workspace(&c, workspace) != KILN_OK)
    return c.st;
  if (desc->shape != NULL)
    use_views(r, desc);
  kiln__reduction_plan(f, stream);
  r->need = f->need;
  return KILN_OK;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  return kiln__reduction_run(stream, &r->reduction, workspace);
}

KILN__DEFINE_OPERATION(kiln_reduce, kiln_reduce_desc, request, prepare, run)
