/* expand.c -- the host side of run_length_decode.cu and copy_batch.cu.
 *
 * Both operations expand runs: values that are repeated, and ranges of bytes
 * that consist of chunks. First a scan sums the lengths of the runs. Then a
 * kernel divides the places of all runs evenly among its warps. */
#include "../index/indexed.h"
#include "kernel_params.h"

#include <kiln/move.h>
#include <kiln/scan.h>

static const char *const decode_kernels[] = {"run_length_decode", NULL};
static const kiln__family decode_family = {"run_length_decode", decode_kernels,
                                           kiln__run_length_decode_params};
static const char *const copy_kernels[] = {"copy_batch", NULL};
static const kiln__family copy_family = {"copy_batch", copy_kernels,
                                         kiln__copy_batch_params};

enum { THREADS = 128, WARPS = THREADS / 32, DECODE_TILE = 1024 };
/* Blocks of copy_batch.cu per SM: four times as many as are resident on 9.0, so
 * that no SM waits long for the last one. */
enum { COPY_BLOCKS = 28 };

/* ---- The ends of the runs ------------------------------------------------ */

/* The scan that a call starts with, and where its results are in the temporary
 * storage. */
typedef struct run_ends {
  kiln_scan_desc scan;
  size_t scan_bytes, scan_temp, ends; /* sizes and offsets in bytes */
} run_ends;

/* Plans the sums of the n lengths that x computes. */
static kiln_status plan_ends(run_ends *r, kiln__need *need, kiln_stream *stream,
                             const kiln_input *x, uint64_t n)
{
  kiln_status st;

  /* run_scan() sets the address of the output when the memory is known. */
  r->scan = (kiln_scan_desc){.x = *x, .n = n, .out = {256, KILN_U64}};
  r->ends = kiln__need_temp(need, 8 * (size_t)n);
  st = kiln_scan_workspace(stream, &r->scan, &r->scan_bytes);
  r->scan_temp = kiln__need_temp(need, r->scan_bytes);
  return st;
}

static kiln_status run_scan(kiln_stream *stream, const run_ends *r,
                            const kiln__storage *storage)
{
  const kiln_workspace inner = {
      r->scan_bytes > 0 ? storage->temp + r->scan_temp : 0, r->scan_bytes};
  kiln_scan_desc scan = r->scan;

  scan.out.data = storage->temp + r->ends;
  return kiln_scan(stream, &scan, &inner);
}

static void check_n(kiln__checker *c, uint64_t n)
{
  kiln__check_that(c, n <= UINT32_MAX, "n is %llu, must be less than 2^32",
                   (unsigned long long)n);
}

static void check_lengths(kiln__checker *c, const char *name, kiln_array a,
                          uint64_t n)
{
  kiln__check_read(c, name, a, n);
  kiln__check_that(c, c->st != KILN_OK || kiln__is_integer(a.type),
                   "%s are %s, must be integers", name,
                   kiln_dtype_name(a.type));
}

/* ---- Run-length decoding ------------------------------------------------- */

typedef struct decode_plan {
  const kiln_run_length_decode_desc *desc;
  run_ends runs;
  kiln__need need;
} decode_plan;

static kiln_status prepare_decode(decode_plan *p, kiln_stream *stream,
                                  const kiln_run_length_decode_desc *desc,
                                  const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_run_length_decode", stream, desc) != KILN_OK)
    return c.st;
  *p = (decode_plan){.desc = desc};
  check_n(&c, desc->n);
  kiln__check_read(&c, "values", desc->values, desc->n);
  check_lengths(&c, "lengths", desc->lengths, desc->n);
  kiln__check_write(&c, "out", desc->out, desc->capacity);
  kiln__check_write(&c, "count", desc->count, 1);
  kiln__check_that(
      &c, desc->values.type == desc->out.type, "values are %s, but out is %s",
      kiln_dtype_name(desc->values.type), kiln_dtype_name(desc->out.type));
  kiln__check_that(&c,
                   desc->count.type == KILN_U32 || desc->count.type == KILN_U64,
                   "count is neither u32 nor u64");
  if (kiln__check_workspace(&c, workspace) != KILN_OK || desc->n == 0)
    return c.st;
  return plan_ends(&p->runs, &p->need, stream,
                   &(kiln_input){.in = {desc->lengths}}, desc->n);
}

static kiln_status run_decode(kiln_stream *stream, const decode_plan *p,
                              const kiln_workspace *workspace)
{
  const kiln_run_length_decode_desc *desc = p->desc;
  const uint64_t tiles = kiln__divide_up(desc->capacity, DECODE_TILE);
  const uint64_t blocks = kiln__divide_up(tiles, WARPS);
  const kiln_launch_config config =
      kiln__grid(stream, blocks > 0 ? blocks : 1, THREADS);
  kiln__spec spec = {.family = &decode_family,
                     .quick = kiln__quick(desc->capacity)};
  kiln_status st = KILN_OK;
  CUdeviceptr ends;
  kiln__call c;

  if (desc->n == 0)
    return kiln__zero(stream, desc->count, 1);
  spec.value[RUN_LENGTH_DECODE_BLOCK] = THREADS;
  spec.value[RUN_LENGTH_DECODE_T] =
      kiln__raw_type((unsigned)kiln__size(desc->out.type));
  spec.value[RUN_LENGTH_DECODE_COUNT] = desc->count.type;
  spec.value[RUN_LENGTH_DECODE_ALIGNED] = desc->out.data % 16 == 0;
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, p->need));
  ends = c.storage.temp + p->runs.ends;
  st = run_scan(stream, &p->runs, &c.storage);
  if (st == KILN_OK)
    st =
        KILN_LAUNCH(c.set->kernel[0], &config, KILN_ARG(desc->values.data),
                    KILN_ARG(ends), KILN_ARG(desc->n), KILN_ARG(desc->out.data),
                    KILN_ARG(desc->capacity), KILN_ARG(desc->count.data));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_run_length_decode, kiln_run_length_decode_desc,
                       decode_plan, prepare_decode, run_decode)

/* ---- Batched copy -------------------------------------------------------- */

typedef struct copy_plan {
  const kiln_copy_batch_desc *desc;
  run_ends runs;
  kiln__need need;
} copy_plan;

static kiln_status prepare_copy(copy_plan *p, kiln_stream *stream,
                                const kiln_copy_batch_desc *desc,
                                const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_copy_batch", stream, desc) != KILN_OK)
    return c.st;
  *p = (copy_plan){.desc = desc};
  check_n(&c, desc->n);
  kiln__check_read(&c, "from", desc->from, desc->n);
  kiln__check_read(&c, "to", desc->to, desc->n);
  check_lengths(&c, "sizes", desc->sizes, desc->n);
  kiln__check_that(&c, desc->from.type == KILN_U64 && desc->to.type == KILN_U64,
                   "from and to must be arrays of u64");
  if (kiln__check_workspace(&c, workspace) != KILN_OK || desc->n == 0)
    return c.st;
  /* The number of chunks of a copy (copy_batch.cu). */
  return plan_ends(&p->runs, &p->need, stream,
                   &(kiln_input){.in = {desc->to, desc->sizes},
                                 .map = "y == 0 ? 0 : (x % 16 + y + 15) / 16",
                                 .type = KILN_U64},
                   desc->n);
}

static kiln_status run_copy(kiln_stream *stream, const copy_plan *p,
                            const kiln_workspace *workspace)
{
  const kiln_copy_batch_desc *desc = p->desc;
  const kiln_launch_config config =
      kiln__grid(stream, kiln__sm_count(stream->device) * COPY_BLOCKS, THREADS);
  kiln__spec spec = {.family = &copy_family};
  kiln_status st = KILN_OK;
  CUdeviceptr ends;
  kiln__call c;

  if (desc->n == 0)
    return KILN_OK;
  spec.value[COPY_BATCH_BLOCK] = THREADS;
  spec.value[COPY_BATCH_SIZE] = desc->sizes.type;
  KILN_TRY(kiln__call_open(&c, stream, &spec, workspace, p->need));
  ends = c.storage.temp + p->runs.ends;
  st = run_scan(stream, &p->runs, &c.storage);
  if (st == KILN_OK)
    st = KILN_LAUNCH(c.set->kernel[0], &config, KILN_ARG(desc->from.data),
                     KILN_ARG(desc->to.data), KILN_ARG(desc->sizes.data),
                     KILN_ARG(ends), KILN_ARG(desc->n));
  kiln__storage_close(&c.storage);

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_copy_batch, kiln_copy_batch_desc, copy_plan,
                       prepare_copy, run_copy)
