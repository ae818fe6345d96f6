/* rotate.c -- the host side of rotate.cu, which rotates an array. */
#include "../ops.h"
#include "kernel_params.h"

#include <kiln/move.h>

static const char *const kernels[] = {"rotate", NULL};
static const kiln__family family = {"rotate", kernels, kiln__rotate_params};

enum { THREADS = 256, ITEMS = 4, WORD = 16 };

/* A call of kiln_rotate() whose arguments have been checked. */
typedef struct request {
  const kiln_rotate_desc *desc;
  kiln__need need;
} request;

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_rotate_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  (void)workspace;
  *r = (request){.desc = desc};
  if (kiln__check_begin(&c, "kiln_rotate", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_read(&c, "in", desc->in, desc->n);
  kiln__check_write(&c, "out", desc->out, desc->n);
  kiln__check_that(&c, desc->in.type == desc->out.type,
                   "in and out have different types, %s and %s",
                   kiln_dtype_name(desc->in.type),
                   kiln_dtype_name(desc->out.type));
  return kiln__check_end(&c);
}

/* Returns shift modulo n as a number from 0 to n - 1; n is not 0. */
static uint64_t left_shift(int64_t shift, uint64_t n)
{
  const uint64_t size =
      shift < 0 ? UINT64_C(0) - (uint64_t)shift : (uint64_t)shift;
  const uint64_t rest = size % n;

  return shift < 0 && rest > 0 ? n - rest : rest;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  const kiln_rotate_desc *desc = r->desc;
  const uint64_t size = kiln__size(desc->in.type), bytes = desc->n * size;
  const uint64_t words = kiln__divide_up(desc->out.data % WORD + bytes, WORD);
  const uint32_t items = kiln__quick(desc->n) ? 1 : ITEMS;
  kiln__spec spec = {.family = &family, .quick = kiln__quick(desc->n)};
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  uint64_t shift;

  (void)workspace;
  if (desc->n == 0)
    return KILN_OK;
  shift = left_shift(desc->shift, desc->n) * size;
  spec.value[ROTATE_BLOCK] = THREADS;
  spec.value[ROTATE_ITEMS] = items;
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  config = kiln__grid(stream, kiln__divide_up(words, THREADS * items), THREADS);
  st = KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(desc->in.data),
                   KILN_ARG(desc->out.data), KILN_ARG(bytes), KILN_ARG(shift));

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_rotate, kiln_rotate_desc, request, prepare, run)
