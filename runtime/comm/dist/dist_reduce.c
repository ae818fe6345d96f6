/* dist_reduce.c -- reductions of arrays in blocks.
 *
 * Each rank reduces its own block on its device. The results, one element per
 * rank, are then combined: predefined operations by an all-reduce, user
 * expressions on the device of every rank, from the results of the ranks whose
 * blocks are not empty. Positions, means and variances are combined on the host.
 *
 * Cost: one read of each block, and the latency of one or two collectives. */
#include "dist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static kiln_status all_reduce(kiln__dist *d, kiln_array x, uint64_t n,
                              kiln_op_name op)
{
  return kiln_comm_all_reduce(d->comm, d->stream, x, x, n, op);
}

/* Combines results of a user expression on the device. */
static kiln_status reduce_by_expression(kiln__dist *d, kiln_reduce_desc *desc)
{
  const kiln_dtype type = desc->out.type;
  const size_t size = kiln_dtype_size(type);
  const bool has = desc->n > 0;
  kiln_array one = {0, type}, all = {0, type};
  kiln_status st;

  st = kiln__dist_scratch(d, ((size_t)d->comm->ranks + 1) * size);
  one.data = d->scratch;
  all.data = d->scratch + size;
  if (st == KILN_OK) {
    kiln_reduce_desc own = *desc;

    own.out = one;
    st = kiln_reduce(d->stream, &own, NULL);
  }
  if (st == KILN_OK)
    st = kiln__dist_gather(d, one, all, has, &desc->n);
  desc->x = (kiln_input){.in = {all}};
  desc->shape = NULL;
  return st == KILN_OK ? kiln_reduce(d->stream, desc, NULL) : st;
}

kiln_status kiln_dist_reduce_sized(kiln_comm *comm, kiln_stream *stream,
                                   const kiln_reduce_desc *desc,
                                   size_t desc_size)
{
  kiln_reduce_desc own;
  kiln__dist d;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  own.out.type = kiln__dist_type(own.out, &own.x);
  if (own.op.expr != NULL) {
    st = reduce_by_expression(&d, &own);
  } else {
    st = kiln_reduce(stream, &own, NULL);
    if (st == KILN_OK)
      st = all_reduce(&d, own.out, 1, own.op.name);
  }
  if (st == KILN_OK)
    st = kiln_stream_synchronize(stream);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_dot_sized(kiln_comm *comm, kiln_stream *stream,
                                const kiln_dot_desc *desc, size_t desc_size)
{
  kiln_dot_desc own;
  kiln__dist d;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  if (own.out.type == KILN_DTYPE_NONE)
    own.out.type = own.x.type;
  st = kiln_dot(stream, &own, NULL);
  if (st == KILN_OK)
    st = all_reduce(&d, own.out, 1, KILN_SUM);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_minmax_sized(kiln_comm *comm, kiln_stream *stream,
                                   const kiln_minmax_desc *desc,
                                   size_t desc_size)
{
  kiln_minmax_desc own;
  kiln__dist d;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  own.min.type = kiln__dist_type(own.min, &own.x);
  own.max.type = kiln__dist_type(own.max, &own.x);
  st = kiln_minmax(stream, &own, NULL);
  if (st == KILN_OK)
    st = all_reduce(&d, own.min, 1, KILN_MIN);
  if (st == KILN_OK)
    st = all_reduce(&d, own.max, 1, KILN_MAX);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_count_sized(kiln_comm *comm, kiln_stream *stream,
                                  const kiln_find_desc *desc, size_t desc_size)
{
  kiln_find_desc own;
  kiln__dist d;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  st = kiln_count(stream, &own, NULL);
  if (st == KILN_OK)
    st = all_reduce(&d, own.out, 1, KILN_SUM);
  return kiln__dist_end(&d, st);
}

kiln_status kiln_dist_histogram_sized(kiln_comm *comm, kiln_stream *stream,
                                      const kiln_histogram_desc *desc,
                                      size_t desc_size)
{
  kiln_histogram_desc own;
  kiln__dist d;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  if (comm->rank != 0)
    own.accumulate = false;
  st = kiln_histogram(stream, &own, NULL);
  if (st == KILN_OK)
    st = all_reduce(&d, own.counts, own.bins, KILN_SUM);
  return kiln__dist_end(&d, st);
}

/* ---- Positions of extremes ----------------------------------------------- */

/* What a rank found in its block. */
typedef struct extreme {
  uint64_t n, index;       /* elements of the block; index within it */
  unsigned char value[16]; /* one element */
} extreme;

/* Returns whether b replaces a: if it is less or greater, or if it is the first
 * NaN. */
static bool replaces(kiln_dtype type, kiln_op_name op, const void *a,
                     const void *b)
{
  const size_t size = kiln_dtype_size(type);
  unsigned char best[16];
  float x, y;
  double u, v;

  if (type < KILN_F16) {
    memcpy(best, a, sizeof best);
    kiln__comm_fold(type, op, best, b, 1);
    return memcmp(best, a, size) != 0;
  }
  if (type == KILN_F64) {
    memcpy(&u, a, sizeof u);
    memcpy(&v, b, sizeof v);
  } else {
    kiln__comm_widen(type, &x, a, 1);
    kiln__comm_widen(type, &y, b, 1);
    u = (double)x;
    v = (double)y;
  }
  if (isnan(u) || isnan(v))
    return isnan(v) && !isnan(u);
  return op == KILN_MIN ? v < u : v > u;
}

/* Chooses among the extremes of all ranks. Without any element it is that of rank
 * 0. Sets the index within the whole array. */
static extreme choose(const kiln_comm *comm, kiln_dtype type, kiln_op_name op,
                      const extreme *all)
{
  extreme best = all[0];
  uint64_t first = 0;

  best.index = UINT64_MAX;
  best.n = 0;
  for (int p = 0; p < comm->ranks; p++) {
    if (all[p].n > 0 &&
        (best.n == 0 || replaces(type, op, best.value, all[p].value))) {
      best = all[p];
      best.index += first;
    }
    first += all[p].n;
  }
  return best;
}

/* Returns whether an index fits its type, or is the one for "no element". */
static bool index_fits(const extreme *best, kiln_dtype type)
{
  if (best->n == 0 || type == KILN_U64 || type == KILN_I64)
    return true;
  return best->index <= (type == KILN_I32 ? (uint64_t)INT32_MAX : UINT32_MAX);
}

static kiln_status find_extreme(kiln__dist *d, const kiln_arg_reduce_desc *desc,
                                kiln_dtype type, extreme *found)
{
  kiln_arg_reduce_desc own = *desc;
  kiln_status st = kiln__dist_scratch(d, 24);

  memset(found, 0, sizeof *found);
  found->n = desc->n;
  own.value = (kiln_array){d->scratch, type};
  own.index = (kiln_array){d->scratch + 16, KILN_U64};
  if (st == KILN_OK)
    st = kiln_arg_reduce(d->stream, &own, NULL);
  if (st == KILN_OK)
    st = kiln__dist_get(d, found->value, d->scratch, kiln_dtype_size(type));
  if (st == KILN_OK)
    st = kiln__dist_get(d, &found->index, d->scratch + 16, sizeof found->index);
  return st;
}

static kiln_status store_extreme(kiln__dist *d,
                                 const kiln_arg_reduce_desc *desc,
                                 kiln_dtype type, const extreme *best)
{
  kiln_status st = KILN_OK;

  if (desc->value.type != KILN_DTYPE_NONE)
    st =
        kiln__dist_put(d, desc->value.data, best->value, kiln_dtype_size(type));
  if (st != KILN_OK || desc->index.type == KILN_DTYPE_NONE)
    return st;
  if (!index_fits(best, desc->index.type))
    return kiln__comm_fail(KILN_ELIMIT, "pass an index of type u64",
                           "index %llu does not fit the type %s",
                           (unsigned long long)best->index,
                           kiln_dtype_name(desc->index.type));
  /* little-endian: the lowest bytes are the smaller type */
  return kiln__dist_put(d, desc->index.data, &best->index,
                        kiln_dtype_size(desc->index.type));
}

kiln_status kiln_dist_arg_reduce_sized(kiln_comm *comm, kiln_stream *stream,
                                       const kiln_arg_reduce_desc *desc,
                                       size_t desc_size)
{
  kiln_arg_reduce_desc own;
  extreme mine, best, *all = NULL;
  kiln_dtype type;
  kiln__dist d;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  type = kiln__dist_type(own.value, &own.x);
  all = calloc((size_t)comm->ranks, sizeof *all);
  if (all == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  COMM_TRY(find_extreme(&d, &own, type, &mine));
  COMM_TRY(kiln_comm_share(comm, &mine, sizeof mine, all));
  best = choose(comm, type, own.op, all);
  COMM_TRY(store_extreme(&d, &own, type, &best));

done:
  free(all);
  return kiln__dist_end(&d, st);
}

/* ---- Mean and variance --------------------------------------------------- */

typedef struct moments {
  double n, mean, m2; /* m2: sum of the squares of the deviations */
} moments;

static moments join_moments(moments a, moments b)
{
  const double n = a.n + b.n, delta = b.mean - a.mean;

  if (b.n == 0)
    return a;
  if (a.n == 0)
    return b;
  return (moments){n, a.mean + delta * b.n / n,
                   a.m2 + b.m2 + delta * delta * a.n * b.n / n};
}

/* Stores a number in a type of floating-point numbers. */
static kiln_status put_double(kiln__dist *d, kiln_array out, double value)
{
  const float narrow = (float)value;
  unsigned char bytes[8];

  if (out.type == KILN_DTYPE_NONE)
    return KILN_OK;
  if (out.type == KILN_F64)
    return kiln__dist_put(d, out.data, &value, sizeof value);
  kiln__comm_narrow(out.type, bytes, &narrow, 1);
  return kiln__dist_put(d, out.data, bytes, kiln_dtype_size(out.type));
}

static kiln_status
own_moments(kiln__dist *d, const kiln_mean_variance_desc *desc, moments *found)
{
  kiln_mean_variance_desc own = *desc;
  double results[2];
  kiln_status st = kiln__dist_scratch(d, sizeof results);

  own.mean = (kiln_array){d->scratch, KILN_F64};
  own.variance = (kiln_array){d->scratch + 8, KILN_F64};
  own.correction = 0;
  if (st == KILN_OK)
    st = kiln_mean_variance(d->stream, &own, NULL);
  if (st == KILN_OK)
    st = kiln__dist_get(d, results, d->scratch, sizeof results);
  if (st == KILN_OK)
    *found =
        (moments){(double)desc->n, results[0], results[1] * (double)desc->n};
  return st;
}

kiln_status kiln_dist_mean_variance_sized(kiln_comm *comm, kiln_stream *stream,
                                          const kiln_mean_variance_desc *desc,
                                          size_t desc_size)
{
  kiln_mean_variance_desc own;
  moments mine, sum = {0, 0, 0}, *all = NULL;
  kiln__dist d;
  kiln_status st =
      kiln__dist_begin(&d, comm, stream, desc, desc_size, &own, sizeof own);

  if (st != KILN_OK)
    return st;
  all = calloc((size_t)comm->ranks, sizeof *all);
  if (all == NULL)
    COMM_TRY(kiln__comm_fail(KILN_ENOMEM, NULL, "out of host memory"));
  COMM_TRY(own_moments(&d, &own, &mine));
  COMM_TRY(kiln_comm_share(comm, &mine, sizeof mine, all));
  for (int p = 0; p < comm->ranks; p++)
    sum = join_moments(sum, all[p]);
  COMM_TRY(put_double(&d, own.mean, sum.n > 0 ? sum.mean : NAN));
  COMM_TRY(put_double(&d, own.variance,
                      sum.n > 0 ? sum.m2 / (sum.n - own.correction) : NAN));

done:
  free(all);
  return kiln__dist_end(&d, st);
}
