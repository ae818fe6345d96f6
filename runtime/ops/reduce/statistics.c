/* statistics.c -- dot product, norm, distance, mean and variance. Each
 * statistic is one reduction over a map, by means of reduce_any.cu. */
#include "reduce.h"

/* A reduction together with the objects that its pointers refer to. */
typedef struct statistic {
  kiln__reduction reduction;
  kiln_input x;
  kiln_op op;
  kiln__need need;
} statistic;

static void start(statistic *s, kiln__reduction_kind kind, uint64_t n,
                  bool portable)
{
  *s = (statistic){
      .reduction = {.kind = kind, .n = n, .rows = 1, .portable = portable}};
}

/* Ends the argument checks and plans the reduction. `s` must not move
 * afterwards, since the plan points to its members. */
static kiln_status finish(statistic *s, kiln__checker *c,
                          const kiln_stream *stream,
                          const kiln_workspace *workspace)
{
  if (kiln__check_workspace(c, workspace) != KILN_OK)
    return c->st;
  s->reduction.x = &s->x;
  s->reduction.op = &s->op;
  kiln__reduction_plan(&s->reduction, stream);
  s->need = s->reduction.need;
  return KILN_OK;
}

static kiln_status run(kiln_stream *stream, const statistic *s,
                       const kiln_workspace *workspace)
{
  return kiln__reduction_run(stream, &s->reduction, workspace);
}

static void check_pair(kiln__checker *c, statistic *s, kiln_array x,
                       kiln_array y, uint64_t n)
{
  kiln__check_read(c, "x", x, n);
  kiln__check_read(c, "y", y, n);
  s->x.in[0] = x;
  s->x.in[1] = y;
}

/* ---- Dot product --------------------------------------------------------- */

static kiln_status check_dot(statistic *s, const kiln_stream *stream,
                             const kiln_dot_desc *desc,
                             const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_dot", stream, desc) != KILN_OK)
    return c.st;
  start(s, KILN__REDUCTION_OP, desc->n, desc->portable);
  check_pair(&c, s, desc->x, desc->y, desc->n);
  s->reduction.out = kiln__or_type(desc->out, desc->x.type);
  s->x.map =
      "static_cast<kiln__map_result>(x) * static_cast<kiln__map_result>(y)";
  s->x.type = s->reduction.out.type;
  kiln__check_write(&c, "out", s->reduction.out, 1);
  return finish(s, &c, stream, workspace);
}

KILN__DEFINE_OPERATION(kiln_dot, kiln_dot_desc, statistic, check_dot, run)

/* ---- Norm ---------------------------------------------------------------- */

static kiln_dtype floating(kiln_dtype type)
{
  const kiln__dtype *t = kiln__dtype_of(type);

  return t != NULL && t->is_float ? type : KILN_F64;
}

/* Replaces an array of complex numbers by the array of their parts, which has
 * the same norm and twice as many elements. */
static void split_complex(kiln__checker *c, statistic *s)
{
  kiln_array *a = &s->x.in[0];

  if (!kiln__is_complex(kiln__input_type(&s->x)))
    return;
  kiln__check_that(c, s->x.map == NULL,
                   "the map returns complex numbers; let it return their "
                   "absolute values, and set x.type");
  a->type = a->type == KILN_C64 ? KILN_F32 : KILN_F64;
  s->x.in[1].type = KILN_DTYPE_NONE;
  s->x.type = KILN_DTYPE_NONE;
  s->reduction.n *= 2;
}

static kiln_status check_norm(statistic *s, const kiln_stream *stream,
                              const kiln_norm_desc *desc,
                              const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_norm", stream, desc) != KILN_OK)
    return c.st;
  start(s, KILN__REDUCTION_NORM, desc->n, desc->portable);
  s->x = desc->x;
  s->reduction.code = &desc->code;
  kiln__check_allow(&c, KILN__ALLOW_COMPLEX);
  kiln__check_input(&c, "x", &s->x, desc->n);
  split_complex(&c, s);
  s->reduction.out =
      kiln__or_type(desc->out, floating(kiln__input_type(&s->x)));
  kiln__check_write(&c, "out", s->reduction.out, 1);
  kiln__check_floating(&c, "out", s->reduction.out);
  return finish(s, &c, stream, workspace);
}

KILN__DEFINE_OPERATION(kiln_norm, kiln_norm_desc, statistic, check_norm, run)

/* ---- Distance ------------------------------------------------------------ */

/* Returns whether f32 can represent every element of the type. */
static bool fits_f32(kiln_dtype type)
{
  return type == KILN_F32 || kiln__size(type) <= 2;
}

static kiln_status check_distance(statistic *s, const kiln_stream *stream,
                                  const kiln_distance_desc *desc,
                                  const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_distance", stream, desc) != KILN_OK)
    return c.st;
  start(s, desc->metric == KILN_L2 ? KILN__REDUCTION_NORM : KILN__REDUCTION_OP,
        desc->n, desc->portable);
  check_pair(&c, s, desc->x, desc->y, desc->n);
  s->x.type =
      fits_f32(desc->x.type) && fits_f32(desc->y.type) ? KILN_F32 : KILN_F64;
  s->x.map = desc->metric == KILN_L2 ? "static_cast<kiln__map_result>(x) - "
                                       "static_cast<kiln__map_result>(y)"
                                     : "fabs(static_cast<kiln__map_result>(x) "
                                       "- static_cast<kiln__map_result>(y))";
  s->op.name = desc->metric == KILN_LINF ? KILN_MAX : KILN_SUM;
  s->reduction.out = kiln__or_type(desc->out, s->x.type);
  kiln__check_that(&c, (unsigned)desc->metric <= KILN_LINF,
                   "metric is none of kiln_metric");
  kiln__check_write(&c, "out", s->reduction.out, 1);
  kiln__check_floating(&c, "out", s->reduction.out);
  return finish(s, &c, stream, workspace);
}

static kiln_status run_distance(kiln_stream *stream, const statistic *s,
                                const kiln_workspace *workspace)
{
  /* For n = 0, the reduction would return the identity of the maximum, which is
   * -infinity. A distance is never negative, so this call writes 0 instead. */
  if (s->reduction.n == 0)
    return kiln__zero(stream, s->reduction.out, 1);
  return run(stream, s, workspace);
}

KILN__DEFINE_OPERATION(kiln_distance, kiln_distance_desc, statistic,
                       check_distance, run_distance)

/* ---- Mean and variance --------------------------------------------------- */

static kiln_status check_moments(statistic *s, const kiln_stream *stream,
                                 const kiln_mean_variance_desc *desc,
                                 const kiln_workspace *workspace)
{
  kiln__checker c;

  if (kiln__check_begin(&c, "kiln_mean_variance", stream, desc) != KILN_OK)
    return c.st;
  start(s, KILN__REDUCTION_MOMENTS, desc->n, desc->portable);
  s->x = desc->x;
  s->reduction.code = &desc->code;
  s->reduction.out = desc->mean;
  s->reduction.out2 = desc->variance;
  s->reduction.extra = desc->correction;
  kiln__check_input(&c, "x", &s->x, desc->n);
  kiln__check_moments(&c, &s->reduction.out, &s->reduction.out2,
                      desc->correction, 1);
  return finish(s, &c, stream, workspace);
}

KILN__DEFINE_OPERATION(kiln_mean_variance, kiln_mean_variance_desc, statistic,
                       check_moments, run)
