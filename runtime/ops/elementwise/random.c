/* random.c -- the host side of random.cu, which fills an array with random
 * numbers. */
#include "../index/indexed.h"
#include "kernel_params.h"

#include <kiln/random.h>

#include <math.h>

static const char *const kernels[] = {"fill_random", NULL};
static const kiln__family family = {"random", kernels, kiln__random_params};

enum { THREADS = 256, MOST_ITEMS = 8 };

/* The kinds of numbers that random.cu makes. */
enum { KIND_BITS, KIND_FRACTIONS, KIND_NORMAL, KIND_RANGE };

/* A call of kiln_random() whose arguments have been checked. The call needs no
 * temporary storage. */
typedef struct request {
  const kiln_random_desc *desc;
  kiln__need need;
} request;

/* Returns the largest value of an integer type. */
static uint64_t largest(const kiln__dtype *type)
{
  const unsigned bits = 8u * type->size - (type->is_signed ? 1 : 0);

  return UINT64_MAX >> (64 - bits);
}

/* Returns whether `range` integers from `low` on are values of the type. */
static bool range_fits(const kiln__dtype *type, int64_t low, uint64_t range)
{
  const uint64_t most = largest(type);

  if (low < 0 && (!type->is_signed || (uint64_t) - (low + 1) > most))
    return false;
  if (low >= 0 && (uint64_t)low > most)
    return false;
  /* Both sides of the subtraction wrap modulo 2^64, but the difference is a
   * number of integers, which is at least 0. */
  return range - 1 <= most - (uint64_t)low;
}

static void check_numbers(kiln__checker *c, const kiln_random_desc *desc)
{
  const kiln__dtype *type = kiln__dtype_of(desc->out.type);

  kiln__check_that(c, (unsigned)desc->distribution <= KILN_NORMAL,
                   "distribution is %d, which is no kiln_distribution",
                   (int)desc->distribution);
  kiln__check_that(c, desc->n <= UINT64_MAX - desc->offset,
                   "offset + n exceeds 64 bits");
  if (c->st != KILN_OK || type == NULL)
    return;
  if (desc->distribution == KILN_NORMAL) {
    kiln__check_that(c, type->is_float,
                     "normal numbers need a floating-point type, not %s",
                     type->name);
    kiln__check_that(c, isfinite(desc->mean), "mean is not finite");
    kiln__check_that(c, isfinite(desc->deviation) && desc->deviation >= 0,
                     "deviation is negative or not finite");
  } else if (!type->is_float && desc->range != 0) {
    kiln__check_that(c, range_fits(type, desc->low, desc->range),
                     "the range of %llu integers from %lld on is not within %s",
                     (unsigned long long)desc->range, (long long)desc->low,
                     type->name);
  }
}

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_random_desc *desc,
                           const kiln_workspace *workspace)
{
  kiln__checker c;

  (void)workspace;
  *r = (request){.desc = desc};
  if (kiln__check_begin(&c, "kiln_random", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_write(&c, "out", desc->out, desc->n);
  check_numbers(&c, desc);
  return kiln__check_end(&c);
}

static unsigned kind_of(const kiln_random_desc *desc, const kiln__dtype *type)
{
  if (desc->distribution == KILN_NORMAL)
    return KIND_NORMAL;
  if (type->is_float)
    return KIND_FRACTIONS;
  /* A range of all values of 32 or 64 bits needs no multiplication. */
  return desc->range == 0 ||
                 (type->size == 4 && desc->range == UINT64_C(1) << 32)
             ? KIND_BITS
             : KIND_RANGE;
}

/* Returns the number of vectors per thread. Many vectors per thread save the
 * start of blocks: 2^28 uniform f32 took 354 us with 2 and 326 us with 8 of them
 * on an H200. */
static uint32_t items_of(uint64_t vectors)
{
  return vectors <= UINT64_C(1) << 16   ? 1
         : vectors <= UINT64_C(1) << 20 ? 2
                                        : MOST_ITEMS;
}

static void specify(kiln__spec *spec, const kiln_random_desc *desc)
{
  const kiln__dtype *type = kiln__dtype_of(desc->out.type);
  const uint64_t vec = 16 / type->size;

  spec->quick = kiln__quick(desc->n);
  spec->value[RANDOM_BLOCK] = THREADS;
  spec->value[RANDOM_ITEMS] = items_of(desc->n / vec);
  spec->value[RANDOM_KIND] = kind_of(desc, type);
  spec->value[RANDOM_T] =
      type->is_float ? desc->out.type : kiln__raw_type(type->size);
  spec->value[RANDOM_ALIGNED] =
      (desc->out.data / type->size - desc->offset) % vec == 0;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  const kiln_random_desc *desc = r->desc;
  const uint64_t vec = 16 / kiln__size(desc->out.type);
  const uint64_t vectors = kiln__divide_up(desc->offset % vec + desc->n, vec);
  const uint64_t low = (uint64_t)desc->low;
  const double deviation = desc->deviation > 0 ? desc->deviation : 1;
  const bool wide = kiln__size(desc->out.type) == 8;
  const uint64_t range = desc->range > 0 ? desc->range : 1;
  const uint64_t threshold =
      (wide ? UINT64_MAX - range + 1 : (UINT64_C(1) << 32) - range) % range;
  kiln__spec spec = {.family = &family};
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln_status st = KILN_OK;

  (void)workspace;
  if (desc->n == 0)
    return KILN_OK;
  specify(&spec, desc);
  KILN_TRY(kiln__specialise(&set, stream->device, &spec));
  config = kiln__grid(
      stream,
      kiln__divide_up(vectors, (uint64_t)THREADS * spec.value[RANDOM_ITEMS]),
      THREADS);
  st = KILN_LAUNCH(set->kernel[0], &config, KILN_ARG(desc->n),
                   KILN_ARG(desc->out.data), KILN_ARG(desc->seed),
                   KILN_ARG(desc->stream), KILN_ARG(desc->offset),
                   KILN_ARG(low), KILN_ARG(range), KILN_ARG(threshold),
                   KILN_ARG(desc->mean), KILN_ARG(deviation));

done:
  return st;
}

KILN__DEFINE_OPERATION(kiln_random, kiln_random_desc, request, prepare, run)
