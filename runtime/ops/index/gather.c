/* gather.c -- kiln_gather() and kiln_gather_rows(), the host side of
 * gather.cu and gather_rows.cu. A gather uses one pass, several passes that
 * each handle a window of the target, or a partition. The cost model in
 * scatter_model.c chooses the method. */
#include "indexed.h"
#include "kernel_params.h"

/* ---- One pass, or one pass per window ----------------------------------- */

static const char *const kernels[] = {"gather", NULL};
static const kiln__family family = {"gather", kernels, kiln__gather_params};

/* A gather whose arguments have been checked. */
typedef struct request {
  kiln_stream *stream;
  kiln_input x;
  const kiln_code *code;
  kiln_array index; /* array of indices with an unsigned type */
  kiln_array out;
  uint64_t n, n_target;
} request;

/* A gather that is ready to launch. The user's expressions have been
 * compiled. */
typedef struct job {
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln__args args;
  uint64_t window;
  uint32_t turns;
} job;

static kiln_status prepare(job *j, const request *r, uint32_t windows)
{
  const kiln__tuning t = kiln__tuned(r->stream->device, KILN__TUNED_GATHER,
                                     (unsigned)kiln__size(r->out.type), r->n);
  const uint32_t items = t.items / KILN__INDEX_VECTOR;
  const kiln__spec spec = {
      .family = &family,
      .value = {[GATHER_BLOCK] = t.block,
                [GATHER_ITEMS] = items > 0 ? items : 1,
                [GATHER_VECTOR] = KILN__INDEX_VECTOR,
                [GATHER_INDEX] = r->index.type,
                [GATHER_OUT] = r->out.type,
                [GATHER_ALIGNED] = (r->index.data % 16 == 0) |
                                   (uint32_t)(r->out.data % 16 == 0) << 1,
                [GATHER_SMALL] = (r->n < UINT32_C(1) << 31),
                [GATHER_WINDOWS] = (windows > 1)},
      .input = &r->x,
      .unaligned = true, /* the kernel reads single elements, at any
                          * alignment */
      .code = r->code,
      .quick = true};
  kiln_status st = KILN_OK;

  KILN_TRY(kiln__specialise(&j->set, r->stream->device, &spec));
  kiln__user_args(&j->args, &spec);
  j->window = kiln__window(r->index, r->n_target, r->n, windows);
  j->config = kiln_launch_1d(
      kiln__divide_up(r->n, spec.value[GATHER_ITEMS] * KILN__INDEX_VECTOR),
      t.block);
  j->turns = windows;
  j->config.stream = r->stream;

done:
  return st;
}

static kiln_status launch(const job *j, const request *r)
{
  kiln_status st = KILN_OK;

  for (uint32_t turn = 0; turn < j->turns; turn++)
    KILN_TRY(KILN_LAUNCH(j->set->kernel[0], &j->config, KILN__USER_ARG(j->args),
                         KILN_ARG(r->index.data), KILN_ARG(r->out.data),
                         KILN_ARG(r->n), KILN_ARG(j->window), KILN_ARG(turn),
                         KILN_ARG(j->turns)));

done:
  return st;
}

static kiln_status run(const request *r, uint32_t windows)
{
  kiln_status st = KILN_OK;
  job j;

  KILN_TRY(prepare(&j, r, windows));
  st = launch(&j, r);

done:
  return st;
}

/* ---- By partition ------------------------------------------------------------------- */

static kiln_status run_partition(const request *r, uint32_t parts,
                                 const kiln_workspace *workspace)
{
  request inner = *r;
  kiln_status st = KILN_OK;
  kiln__partition p;
  kiln__storage storage;
  job j;

  kiln__partition_plan(&p, r->index, r->n, r->n_target, r->out, parts, false);
  st = kiln__storage_open(&storage, r->stream, workspace, p.need);
  if (st != KILN_OK)
    return st;
  inner.index = (kiln_array){storage.temp + p.at, p.stored};
  inner.out.data = storage.temp + p.values;
  KILN_TRY(kiln__partition_prepare(&p, r->stream->device, NULL, NULL));
  KILN_TRY(prepare(&j, &inner, 1));
  KILN_TRY(kiln__partition_split(&p, &storage));
  KILN_TRY(launch(&j, &inner));
  KILN_TRY(kiln__partition_join(&p, &storage));

done:
  kiln__storage_close(&storage);
  return st;
}

/* ---- The call ------------------------------------------------------------------- */

static kiln_status check(const kiln_stream *stream,
                         const kiln_gather_desc *desc,
                         const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_gather", stream, desc) != KILN_OK)
    return c.st;
  /* Without n_target the length of x is unknown here, so only element 0 is checked. */
  kiln__check_input(&c, "x", &desc->x,
                    desc->n == 0          ? 0
                    : desc->n_target == 0 ? 1
                                          : desc->n_target);
  kiln__check_index(&c, desc->index, desc->n);
  kiln__check_write(&c, "out", desc->out, desc->n);
  kiln__check_method(&c, desc->method, desc->passes, desc->checked,
                     desc->n_target);
  kiln__check_that(&c, desc->method != KILN_INDEX_SORT,
                   "KILN_INDEX_SORT is a method of kiln_scatter() alone");
  kiln__check_workspace(&c, workspace);
  return kiln__check_end(&c);
}

static request request_of(kiln_stream *stream, const kiln_gather_desc *desc)
{
  request r = {.stream = stream,
               .x = desc->x,
               .code = &desc->code,
               .index = {desc->index.data, kiln__raw_type((unsigned)kiln__size(
                                               desc->index.type))},
               .out = desc->out,
               .n = desc->n,
               .n_target = desc->n_target};

  kiln__as_bits(&r.x, &r.out.type);
  return r;
}

/* Chooses the method. The cost of an element counts the bytes of all arrays
 * of x together. */
static kiln_status plan(kiln_index_plan *p, const kiln_stream *stream,
                        const kiln_gather_desc *desc)
{
  const kiln_index_shape shape = {.n = desc->n,
                                  .n_target = desc->n_target,
                                  .element_size = kiln__input_bytes(&desc->x),
                                  .index_size =
                                      (unsigned)kiln__size(desc->index.type)};

  *p = (kiln_index_plan){.method = desc->method, .passes = desc->passes};
  if (p->method == KILN_INDEX_DIRECT ||
      (p->method != KILN_INDEX_AUTO && p->passes != 0))
    return KILN_OK;
  return kiln_gather_plan(&stream->device->info, &shape, p);
}

kiln_status kiln_gather(kiln_stream *stream, const kiln_gather_desc *desc,
                        const kiln_workspace *workspace)
{
  kiln_status st = KILN_OK;
  kiln_index_plan p;
  request r;

  KILN_TRY(check(stream, desc, workspace));
  if (desc->n == 0)
    goto done;
  KILN_TRY(plan(&p, stream, desc));
  if (desc->checked)
    KILN_TRY(kiln__in_range(stream,
                            &(kiln__range){"kiln_gather", "index", desc->index,
                                           desc->n, desc->n_target, false},
                            workspace));
  r = request_of(stream, desc);
  if (p.method == KILN_INDEX_PARTITION) {
    st = run_partition(&r, p.passes, workspace);
    if (st != KILN_EDEVMEM || desc->method != KILN_INDEX_AUTO)
      goto done;
    p.method = KILN_INDEX_DIRECT;
  }
  st = run(&r, p.method == KILN_INDEX_WINDOWS ? p.passes : 1);

done:
  return st;
}

static kiln_status gather_need(kiln__need *need, kiln_stream *stream,
                               const kiln_gather_desc *desc)
{
  kiln_status st = KILN_OK;
  kiln_index_plan p;
  kiln__partition parts;

  KILN_TRY(check(stream, desc, NULL));
  if (desc->n == 0)
    goto done;
  KILN_TRY(plan(&p, stream, desc));
  if (desc->checked)
    *need = kiln__range_need();
  if (p.method == KILN_INDEX_PARTITION) {
    kiln__partition_plan(&parts, desc->index, desc->n, desc->n_target,
                         desc->out, p.passes, false);
    /* The range check runs before the gather, in the same memory. */
    *need = parts.need;
  }

done:
  return st;
}

KILN__WORKSPACE(kiln_gather, kiln_gather_desc, gather_need)

/* ---- Rows ------------------------------------------------------------------------- */

static const char *const row_kernels[] = {"gather_rows", NULL};
static const kiln__family row_family = {"gather_rows", row_kernels,
                                        kiln__gather_rows_params};

/* Maximum number of words of a row that one group of lanes copies. Longer
 * rows are split. */
enum { PIECE = 512, ROWS_BLOCK = 256, ROWS_ITEMS = 4 };

/* A call that is counted in words instead of elements. */
typedef struct row_plan {
  uint32_t word, lanes, items, pieces;
  uint64_t words, in_stride, out_stride, piece, rows;
} row_plan;

static uint64_t or_width(uint64_t stride, uint64_t width)
{
  return stride != 0 ? stride : width;
}

/* Returns the number of elements that `rows` rows span, or UINT64_MAX if
 * that number is too large. */
static uint64_t extent(uint64_t rows, uint64_t stride, uint64_t width)
{
  if (rows == 0 || width == 0)
    return 0;
  if (rows - 1 > (UINT64_MAX - width) / stride)
    return UINT64_MAX;
  return (rows - 1) * stride + width;
}

static kiln_status check_rows(const kiln_stream *stream,
                              const kiln_gather_rows_desc *desc,
                              const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_gather_rows", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_that(&c, desc->in_stride == 0 || desc->in_stride >= desc->width,
                   "in_stride is below width");
  kiln__check_that(&c, desc->out_stride == 0 || desc->out_stride >= desc->width,
                   "out_stride is below width");
  kiln__check_that(
      &c, desc->in.type == desc->out.type, "in and out are of types %s and %s",
      kiln_dtype_name(desc->in.type), kiln_dtype_name(desc->out.type));
  kiln__check_index(&c, desc->index, desc->n);
  kiln__check_read(&c, "in", desc->in,
                   desc->n == 0
                       ? 0
                       : extent(desc->n_target == 0 ? 1 : desc->n_target,
                                or_width(desc->in_stride, desc->width),
                                desc->width));
  kiln__check_write(
      &c, "out", desc->out,
      extent(desc->n, or_width(desc->out_stride, desc->width), desc->width));
  kiln__check_method(&c, KILN_INDEX_DIRECT, 0, desc->checked, desc->n_target);
  kiln__check_workspace(&c, workspace);
  return kiln__check_end(&c);
}

static row_plan plan_rows(const kiln_gather_rows_desc *desc)
{
  const uint64_t size = kiln__size(desc->in.type);
  const uint64_t in = or_width(desc->in_stride, desc->width) * size;
  const uint64_t out = or_width(desc->out_stride, desc->width) * size;
  const uint64_t all =
      desc->in.data | desc->out.data | in | out | desc->width * size;
  row_plan p = {.word = 1, .lanes = 1, .items = ROWS_ITEMS};

  while (p.word < 16 && all % (2 * p.word) == 0)
    p.word *= 2;
  p.words = desc->width * size / p.word;
  p.in_stride = in / p.word;
  p.out_stride = out / p.word;
  while (p.lanes < 32 && p.lanes < p.words)
    p.lanes *= 2;
  p.piece = PIECE;
  p.pieces = (uint32_t)(p.words <= PIECE ? 1 : kiln__divide_up(p.words, PIECE));
  p.rows = desc->n * p.pieces;
  return p;
}

kiln_status kiln_gather_rows(kiln_stream *stream,
                             const kiln_gather_rows_desc *desc,
                             const kiln_workspace *workspace)
{
  kiln__spec spec = {.family = &row_family};
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  row_plan p;

  KILN_TRY(check_rows(stream, desc, workspace));
  if (desc->n == 0)
    goto done;
  if (desc->checked)
    KILN_TRY(
        kiln__in_range(stream,
                       &(kiln__range){"kiln_gather_rows", "index", desc->index,
                                      desc->n, desc->n_target, false},
                       workspace));
  if (desc->width == 0)
    goto done;
  p = plan_rows(desc);
  spec.value[GATHER_ROWS_BLOCK] = ROWS_BLOCK;
  spec.value[GATHER_ROWS_LANES] = p.lanes;
  spec.value[GATHER_ROWS_ITEMS] = p.items;
  spec.value[GATHER_ROWS_WORD] = p.word;
  spec.value[GATHER_ROWS_INDEX] =
      kiln__raw_type((unsigned)kiln__size(desc->index.type));
  spec.value[GATHER_ROWS_CHUNKS] = p.pieces > 1;
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  config = kiln_launch_1d(
      kiln__divide_up(p.rows, ROWS_BLOCK / p.lanes * p.items), 1);
  config.block.x = ROWS_BLOCK;
  config.stream = stream;
  st = KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(desc->in.data),
                   KILN_ARG(desc->index.data), KILN_ARG(desc->out.data),
                   KILN_ARG(p.rows), KILN_ARG(p.words), KILN_ARG(p.in_stride),
                   KILN_ARG(p.out_stride), KILN_ARG(p.piece),
                   KILN_ARG(p.pieces));

done:
  return st;
}

static kiln_status gather_rows_need(kiln__need *need, kiln_stream *stream,
                                    const kiln_gather_rows_desc *desc)
{
  kiln_status st;

  st = check_rows(stream, desc, NULL);
  if (st == KILN_OK && desc->checked && desc->n > 0)
    *need = kiln__range_need();
  return st;
}

KILN__WORKSPACE(kiln_gather_rows, kiln_gather_rows_desc, gather_rows_need)
