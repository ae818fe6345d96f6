/* permute.c -- the host side of permute.cu and permute_rows.cu, which reorder the
 * axes of an array. */
#include "kernel_params.h"
#include "permute_plan.h"

static const char *const tile_kernels[] = {"permute", NULL};
static const kiln__family tile_family = {"permute", tile_kernels,
                                         kiln__permute_params};
static const char *const row_kernels[] = {"permute_rows", NULL};
static const kiln__family row_family = {"permute_rows", row_kernels,
                                        kiln__permute_rows_params};

/* A call of kiln_permute() whose arguments have been checked. */
typedef struct request {
  const kiln_permute_desc *desc;
  uint64_t n; /* number of values */
  kiln__need need;
} request;

/* Checks rank, axes and sizes, and computes the number of values. */
static void check_axes(kiln__checker *c, const kiln_permute_desc *desc,
                       uint64_t *n)
{
  unsigned seen = 0;
  bool fits = true;

  *n = desc->values > 0 ? desc->values : 1;
  kiln__check_that(c, desc->rank >= 1 && desc->rank <= KILN_MAX_AXES,
                   "rank is %u, not 1 to %d", (unsigned)desc->rank,
                   (int)KILN_MAX_AXES);
  if (c->st != KILN_OK)
    return;
  for (uint32_t k = 0; k < desc->rank; k++) {
    kiln__check_that(c, desc->axis[k] < desc->rank,
                     "axis[%u] is %u, but the rank is %u", (unsigned)k,
                     (unsigned)desc->axis[k], (unsigned)desc->rank);
    if (desc->axis[k] < desc->rank)
      seen |= 1u << desc->axis[k];
  }
  kiln__check_that(c, seen == (1u << desc->rank) - 1,
                   "axis[] contains an axis twice");
  for (uint32_t k = 0; k < desc->rank; k++)
    if (desc->size[k] == 0)
      *n = 0;
  for (uint32_t k = 0; k<desc->rank && * n> 0; k++) {
    fits = fits && *n <= UINT64_MAX / 8 / desc->size[k];
    *n *= desc->size[k];
  }
  kiln__check_that(c, fits, "the array has 2^64 bytes or more");
}

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_permute_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  (void)workspace;
  *r = (request){.desc = desc};
  if (kiln__check_begin(&c, "kiln_permute", stream, desc) != KILN_OK)
    return c.st;
  check_axes(&c, desc, &r->n);
  kiln__check_read(&c, "in", desc->in, r->n);
  kiln__check_write(&c, "out", desc->out, r->n);
  kiln__check_that(&c, desc->in.type == desc->out.type,
                   "in and out have different types, %s and %s",
                   kiln_dtype_name(desc->in.type),
                   kiln_dtype_name(desc->out.type));
  return kiln__check_end(&c);
}

static void specify(kiln__spec *spec, const kiln__permute_plan *p)
{
  spec->quick = kiln__quick(p->bytes / p->element);
  if (p->path == KILN__PERMUTE_ROWS) {
    spec->family = &row_family;
    spec->value[PERMUTE_ROWS_BLOCK] = p->block;
    spec->value[PERMUTE_ROWS_ITEMS] = KILN__ROW_ITEMS;
    spec->value[PERMUTE_ROWS_UNIT] = p->unit;
    spec->value[PERMUTE_ROWS_SMALL] = p->small;
    return;
  }
  spec->family = &tile_family;
  spec->value[PERMUTE_BLOCK] = p->block;
  spec->value[PERMUTE_UNIT] = p->unit;
  spec->value[PERMUTE_UNITS] = p->pack > 1 ? 1 : p->element / p->unit;
  spec->value[PERMUTE_PACK] = p->pack;
  spec->value[PERMUTE_TA] = p->ta;
  spec->value[PERMUTE_TB] = p->tb;
  spec->value[PERMUTE_AXES_A] = p->tiles.n_a > 1;
  spec->value[PERMUTE_AXES_B] = p->tiles.n_b > 1;
  spec->value[PERMUTE_SKEW] = p->skew;
  spec->value[PERMUTE_SMALL] = p->small;
}

static kiln_status launch(kiln_stream *stream, const kiln_permute_desc *desc,
                          const kiln__permute_plan *p)
{
  const kiln_launch_config config = kiln__grid(stream, p->blocks, p->block);
  const uint64_t units = p->bytes / p->unit;
  kiln__spec spec = {0};
  const kiln__kernel_set *set;
  kiln_status st = KILN_OK;

  specify(&spec, p);
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  st = p->path == KILN__PERMUTE_ROWS
           ? KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(desc->in.data),
                         KILN_ARG(desc->out.data), KILN_ARG(units),
                         KILN_ARG(p->rows))
           : KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(desc->in.data),
                         KILN_ARG(desc->out.data), KILN_ARG(p->tiles));

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  kiln__permute_plan p;

  (void)workspace;
  if (r->n == 0)
    return KILN_OK;
  kiln__permute_plan_make(&p, r->desc);
  return p.path == KILN__PERMUTE_COPY
             ? kiln_copy_on_device_async(stream, r->desc->out.data,
                                         r->desc->in.data, (size_t)p.bytes)
             : launch(stream, r->desc, &p);
}

KILN__DEFINE_OPERATION(kiln_permute, kiln_permute_desc, request, prepare, run)
