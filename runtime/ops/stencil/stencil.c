/* stencil.c -- the host side of stencil_rows.cu, stencil.cu and stencil_at.cu,
 * which compute each element from its neighbours.
 *
 * A call consists of one or two passes over the array. Weighted sums use
 * stencil_rows.cu for lines and small radii, otherwise stencil.cu. To both, a volume
 * is a batch of planes. A separable sum over a volume first reduces columns and rows of each
 * plane, and then the planes; in the second pass, the planes take the place of the
 * rows. User expressions and sums over too many elements use stencil_at.cu. */
#include "stencil_plan.h"

#include <stdlib.h>
#include <string.h>

static const char *const rows_kernels[] = {"stencil_rows", NULL};
static const char *const ring_kernels[] = {"stencil", NULL};
static const char *const at_kernels[] = {"stencil_at", NULL};

static const kiln__family families[] = {
    [KILN__STENCIL_ROWS] = {"stencil_rows", rows_kernels,
                            kiln__stencil_rows_params},
    [KILN__STENCIL_RING] = {"stencil", ring_kernels, kiln__stencil_params},
    [KILN__STENCIL_AT] = {"stencil_at", at_kernels, kiln__stencil_at_params}};

/* The struct `shape` of stencil_sums.cuh for images and volumes, and for lines. */
typedef struct image_shape {
  int64_t in_row, in_plane, out_row, out_plane, strips;
  int32_t width, height, depth, run;
} image_shape;

typedef struct line_shape {
  int64_t in_row, in_plane, out_row, out_plane, strips;
  int64_t width, height, depth, run;
} line_shape;

/* The struct `extent` of stencil_at.cu. */
typedef struct extent {
  int64_t in_row, in_plane, out_row, out_plane, strips;
  int64_t width, height, depth, stacks;
} extent;

/* ---- Functions of the kernels -------------------------------------------- */

static void add_finish(kiln__spec *spec, const char *expr)
{
  spec->function[1] = (kiln__function){"finish",
                                       "the finish expression",
                                       expr != NULL ? expr : "a",
                                       "kiln::compute_t<KILN_OUT>",
                                       "KILN_ACC",
                                       NULL};
}

/* Returns whether an expression uses the name b. */
static bool uses_b(const char *expr)
{
  static const char letters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

  for (const char *p = expr; p != NULL && *p != '\0';) {
    const size_t n = strspn(p, letters);

    if (n == 1 && *p == 'b')
      return true;
    p += n > 0 ? n : 1;
  }
  return false;
}

/* Sets the values that all kernels share under the same names. */
#define COMMON(KERNEL, spec, p)                                                \
  do {                                                                         \
    uint32_t *const value_ = (spec)->value;                                    \
                                                                               \
    value_[KERNEL##_BLOCK] = (p)->block;                                       \
    value_[KERNEL##_RX] = (p)->rx;                                             \
    value_[KERNEL##_RY] = (p)->ry;                                             \
    value_[KERNEL##_RZ] = (p)->rz;                                             \
    value_[KERNEL##_BORDER] = (uint32_t)(p)->desc->border;                     \
    value_[KERNEL##_T] = (p)->in.type;                                         \
    value_[KERNEL##_OUT] = (p)->out.type;                                      \
    value_[KERNEL##_ACC] = (p)->acc;                                           \
    value_[KERNEL##_W] =                                                       \
        kiln__given((p)->weights) ? (p)->weights.type : (p)->acc;              \
  } while (0)

/* Sets the values that the two kernels for weighted sums share. */
#define COMMON_OF_SUMS(KERNEL, spec, p)                                        \
  do {                                                                         \
    uint32_t *const of_sum_ = (spec)->value;                                   \
                                                                               \
    COMMON(KERNEL, spec, p);                                                   \
    of_sum_[KERNEL##_VECTOR] = (p)->vec;                                       \
    of_sum_[KERNEL##_CHUNK] = (p)->chunk;                                      \
    of_sum_[KERNEL##_ALIGNED] = (p)->aligned;                                  \
    of_sum_[KERNEL##_SEPARABLE] = (p)->separable;                              \
    of_sum_[KERNEL##_BAKED] = (p)->host_weights != NULL;                       \
    of_sum_[KERNEL##_CENTRE] = (p)->last && uses_b((p)->desc->finish);         \
  } while (0)

static void specify_sum(kiln__spec *spec, const kiln__stencil_pass *p,
                        const char *weights)
{
  if (p->kernel == KILN__STENCIL_RING) {
    COMMON_OF_SUMS(STENCIL, spec, p);
    spec->value[STENCIL_STAGES] = p->stages;
    spec->value[STENCIL_BEYOND] = p->beyond;
  } else {
    COMMON_OF_SUMS(STENCIL_ROWS, spec, p);
    spec->value[STENCIL_ROWS_ROWS] = (uint32_t)p->run;
    spec->value[STENCIL_ROWS_LINE] = p->line;
  }
  spec->function[0] = (kiln__function){
      "weight",   "the weights", weights != NULL ? weights : "(KILN_ACC)0",
      "KILN_ACC", "unsigned",    NULL};
  add_finish(spec, p->last ? p->desc->finish : NULL);
}

static void specify_at(kiln__spec *spec, const kiln__stencil_pass *p)
{
  COMMON(STENCIL_AT, spec, p);
  spec->value[STENCIL_AT_LINE] = p->line;
  spec->value[STENCIL_AT_ITEMS] = p->vec;
  spec->value[STENCIL_AT_WEIGHTED] = p->desc->expr == NULL;
  if (p->desc->expr == NULL) {
    spec->function[0] =
        (kiln__function){"stencil", "", NULL, "void", NULL, NULL};
    add_finish(spec, p->desc->finish);
    return;
  }
  spec->function[0] =
      (kiln__function){"stencil",
                       "the stencil expression",
                       p->desc->expr,
                       "kiln::compute_t<KILN_OUT>",
                       NULL,
                       "const kiln__neighbourhood &at, const kiln__element x, "
                       "const kiln__index column, const kiln__index row, "
                       "const kiln__index plane"};
}

/* ---- Launches ------------------------------------------------------------ */

static kiln_status launch_image(const kiln__stencil_pass *p,
                                const kiln_launch_config *config,
                                kiln_kernel *kernel, const kiln__args *args)
{
  const image_shape s = {
      (int64_t)p->in_row,    (int64_t)p->in_plane, (int64_t)p->out_row,
      (int64_t)p->out_plane, (int64_t)p->strips,   (int32_t)p->size[0],
      (int32_t)p->size[1],   (int32_t)p->size[2],  (int32_t)p->run};

  return KILN_LAUNCH(kernel, config, KILN__USER_ARG(*args), KILN_ARG(s),
                     KILN_ARG(p->in.data), KILN_ARG(p->out.data),
                     KILN_ARG(p->weights.data), KILN_ARG(p->desc->outside));
}

/* Launches the kernels whose shape consists of 64-bit numbers. */
static kiln_status launch_wide(const kiln__stencil_pass *p,
                               const kiln_launch_config *config,
                               kiln_kernel *kernel, const kiln__args *args)
{
  const extent s = {
      (int64_t)p->in_row,    (int64_t)p->in_plane, (int64_t)p->out_row,
      (int64_t)p->out_plane, (int64_t)p->strips,   (int64_t)p->size[0],
      (int64_t)p->size[1],   (int64_t)p->size[2],  (int64_t)p->run};

  _Static_assert(sizeof(extent) == sizeof(line_shape),
                 "both kernels take nine 64-bit numbers");
  return KILN_LAUNCH(kernel, config, KILN__USER_ARG(*args), KILN_ARG(s),
                     KILN_ARG(p->in.data), KILN_ARG(p->out.data),
                     KILN_ARG(p->weights.data), KILN_ARG(p->desc->outside));
}

static kiln_status run_pass(kiln_stream *stream, const kiln__stencil_pass *p,
                            const kiln__spec *spec, const kiln__kernel_set *set)
{
  const kiln_launch_config config = kiln__grid(stream, p->blocks, p->block);
  kiln__args args;

  kiln__user_args(&args, spec);
  return (p->kernel == KILN__STENCIL_AT || p->line
              ? launch_wide
              : launch_image)(p, &config, set->kernel[0], &args);
}

/* Fills the spec of a pass. *text receives its weights as text, which the caller
 * frees. */
static kiln_status specify(kiln__spec *spec, const kiln__stencil_pass *p,
                           kiln__buf *text)
{
  kiln_status st = KILN_OK;

  *spec = (kiln__spec){.family = &families[p->kernel], .code = &p->desc->code};
  if (p->kernel == KILN__STENCIL_AT) {
    specify_at(spec, p);
    return KILN_OK;
  }
  if (p->host_weights != NULL)
    KILN_TRY(kiln__stencil_weights(text, p));
  specify_sum(spec, p, p->host_weights != NULL ? text->data : NULL);

done:
  return st;
}

static kiln_status run(kiln_stream *stream, kiln__stencil_plan *plan,
                       const kiln_workspace *workspace)
{
  const kiln_allocator *alloc = &stream->device->rt->alloc;
  kiln__spec spec[2];
  const kiln__spec *const specs[] = {&spec[0], &spec[1]};
  const kiln__kernel_set *set[2] = {NULL, NULL};
  kiln__storage storage = {0};
  kiln_status st = KILN_OK;
  kiln__buf text[2];

  if (plan->passes == 0)
    return KILN_OK;
  for (unsigned k = 0; k < 2; k++)
    kiln__buf_init(&text[k], alloc);
  for (unsigned k = 0; k < plan->passes; k++)
    KILN_TRY(specify(&spec[k], &plan->pass[k], &text[k]));
  KILN_TRY(kiln__specialise_all(set, stream->device, specs, plan->passes));
  KILN_TRY(kiln__storage_open(&storage, stream, workspace, plan->need));
  if (plan->passes == 2)
    plan->pass[0].out.data = plan->pass[1].in.data = storage.temp;
  for (unsigned k = 0; k < plan->passes; k++)
    KILN_TRY(run_pass(stream, &plan->pass[k], &spec[k], set[k]));

done:
  if (storage.stream != NULL)
    kiln__storage_close(&storage);
  for (unsigned k = 0; k < 2; k++)
    kiln__buf_free(&text[k]);
  return st;
}

KILN__DEFINE_OPERATION(kiln_stencil, kiln_stencil_desc, kiln__stencil_plan,
                       kiln__stencil_prepare, run)
