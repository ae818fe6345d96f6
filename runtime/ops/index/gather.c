/* gather.c -- kiln_gather(), and kiln_gather_rows(), the host side of
 * gather_rows.cu. */
#include "indexed.h"
#include "kernel_params.h"

/* ---- Elements ------------------------------------------------------------ */

static kiln_status prepare(kiln__indexed *r, const kiln_stream *stream,
                           const kiln_gather_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_gather", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  /* Without n_target the length of x is unknown, so only the address of element
   * 0 is checked. */
  kiln__check_input(&c, "x", &desc->x,
                    desc->n == 0          ? 0
                    : desc->n_target == 0 ? 1
                                          : desc->n_target);
  kiln__check_index(&c, desc->index, desc->n);
  kiln__check_write(&c, "out", desc->out, desc->n);
  kiln__check_converts(&c, "out", kiln__input_type(&desc->x), desc->out.type);
  kiln__check_method(&c, desc->index.type, desc->method, desc->passes,
                     desc->checked, desc->n_target);
  kiln__check_that(&c, desc->method != KILN_INDEX_SORT,
                   "KILN_INDEX_SORT is a method of kiln_scatter() alone");
  if (kiln__check_workspace(&c, workspace) != KILN_OK)
    return c.st;
  *r =
      (kiln__indexed){.scatter = false,
                      .x = desc->x,
                      .code = &desc->code,
                      .index = desc->index,
                      .out = desc->out,
                      .n = desc->n,
                      .n_target = desc->n_target,
                      .checked = desc->checked,
                      .plan = {.method = desc->method, .passes = desc->passes}};
  /* For the cost model, an element of x has the bytes of all arrays of x
   * together. */
  return kiln__indexed_plan(r, stream, kiln__input_bytes(&desc->x));
}

KILN__DEFINE_OPERATION(kiln_gather, kiln_gather_desc, kiln__indexed, prepare,
                       kiln__indexed_run)

/* ---- Rows ---------------------------------------------------------------- */

static const char *const row_kernels[] = {"gather_rows", NULL};
static const kiln__family row_family = {"gather_rows", row_kernels,
                                        kiln__gather_rows_params};

/* Maximum number of words of a row that one group of lanes copies. Longer
 * rows are split. */
enum { PIECE = 512, ROWS_BLOCK = 256, ROWS_ITEMS = 4 };

/* A call of kiln_gather_rows() in which sizes and strides are counted in words
 * instead of elements. */
typedef struct row_plan {
  const kiln_gather_rows_desc *desc;
  kiln__need need;
  uint32_t word, lanes, items, pieces;
  uint64_t words, in_stride, out_stride, piece, rows;
} row_plan;

static uint64_t or_width(uint64_t stride, uint64_t width)
{
  return stride != 0 ? stride : width;
}

static void plan_rows(row_plan *p, const kiln_gather_rows_desc *desc)
{
  const uint64_t size = kiln__size(desc->in.type);
  const uint64_t in = or_width(desc->in_stride, desc->width) * size;
  const uint64_t out = or_width(desc->out_stride, desc->width) * size;
  const uint64_t all =
      desc->in.data | desc->out.data | in | out | desc->width * size;

  *p = (row_plan){.desc = desc, .word = 1, .lanes = 1, .items = ROWS_ITEMS};
  while (p->word < 16 && all % (2 * p->word) == 0)
    p->word *= 2;
  p->words = desc->width * size / p->word;
  p->in_stride = in / p->word;
  p->out_stride = out / p->word;
  while (p->lanes < 32 && p->lanes < p->words)
    p->lanes *= 2;
  p->piece = PIECE;
  p->pieces =
      (uint32_t)(p->words <= PIECE ? 1 : kiln__divide_up(p->words, PIECE));
  p->rows = desc->n * p->pieces;
  if (desc->checked && desc->n > 0)
    p->need = kiln__range_need();
}

static kiln_status prepare_rows(row_plan *p, const kiln_stream *stream,
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
                       : kiln__extent(desc->n_target == 0 ? 1 : desc->n_target,
                                      desc->width,
                                      or_width(desc->in_stride, desc->width)));
  kiln__check_write(&c, "out", desc->out,
                    kiln__extent(desc->n, desc->width,
                                 or_width(desc->out_stride, desc->width)));
  kiln__check_method(&c, desc->index.type, KILN_INDEX_DIRECT, 0, desc->checked,
                     desc->n_target);
  if (kiln__check_workspace(&c, workspace) == KILN_OK)
    plan_rows(p, desc);
  return c.st;
}

static kiln_status run_rows(kiln_stream *stream, const row_plan *p,
                            const kiln_workspace *workspace)
{
  const kiln_gather_rows_desc *desc = p->desc;
  const kiln__range range = {"kiln_gather_rows", "index", desc->index, desc->n,
                             desc->n_target,     false};
  kiln__spec spec = {.family = &row_family};
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln_status st = KILN_OK;

  if (desc->checked && desc->n > 0)
    KILN_TRY(kiln__in_range(stream, &range, workspace));
  if (desc->n == 0 || desc->width == 0)
    goto done;
  spec.value[GATHER_ROWS_BLOCK] = ROWS_BLOCK;
  spec.value[GATHER_ROWS_LANES] = p->lanes;
  spec.value[GATHER_ROWS_ITEMS] = p->items;
  spec.value[GATHER_ROWS_WORD] = p->word;
  spec.value[GATHER_ROWS_INDEX] =
      kiln__raw_type((unsigned)kiln__size(desc->index.type));
  spec.value[GATHER_ROWS_CHUNKS] = p->pieces > 1;
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  config = kiln__grid(
      stream, kiln__divide_up(p->rows, ROWS_BLOCK / p->lanes * p->items),
      ROWS_BLOCK);
  st = KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(desc->in.data),
                   KILN_ARG(desc->index.data), KILN_ARG(desc->out.data),
                   KILN_ARG(p->rows), KILN_ARG(p->words),
                   KILN_ARG(p->in_stride), KILN_ARG(p->out_stride),
                   KILN_ARG(p->piece), KILN_ARG(p->pieces));

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_gather_rows, kiln_gather_rows_desc, row_plan,
                       prepare_rows, run_rows)
