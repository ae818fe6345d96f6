/* map.c -- the host side of map.cu and map_image.cu, which compute outputs from
 * inputs, element by element, in one launch. A vector is 16 bytes of the widest
 * array, so that no array needs more than one wide load per vector. Vectors
 * start at the element index at which most arrays are aligned. */
#include "../ops.h"
#include "kernel_params.h"

#include <kiln/map.h>

static const char *const kernels[] = {"map", NULL};
static const kiln__family family = {"map", kernels, kiln__map_params};
static const char *const image_kernels[] = {"map_image", NULL};
static const kiln__family image = {"map_image", image_kernels,
                                   kiln__map_image_params};

enum { IMAGE_BLOCK = 128 };

/* A call of kiln_map() whose arguments have been checked. The call needs no
 * temporary storage. */
typedef struct request {
  const kiln_map_desc *desc;
  kiln_shape shape; /* normal form of desc->shape, if it is given */
  kiln__need need;
} request;

/* Returns the number of arrays in a list that ends at the first array without a
 * type. */
static size_t count(const kiln_array *a, size_t most)
{
  size_t n = 0;

  while (n < most && kiln__given(a[n]))
    n++;
  return n;
}

static size_t n_outputs(const kiln_map_desc *desc)
{
  return count(desc->out, KILN_MAX_OUTPUTS);
}

static size_t n_inputs(const kiln_map_desc *desc)
{
  return count(desc->in, KILN_MAX_INPUTS);
}

/* Returns a copy of the desc in which outputs that only copy in[0] keep its
 * bits. A conversion of f16 or bf16 to float and back would change NaNs, so
 * these outputs read in[0] as u16. The original in[0] stays in the desc for the
 * expressions of other outputs. If the desc has eight arrays already and also
 * has expressions, there is no space for a second in[0], and the copy is
 * converted through float. */
static kiln_map_desc copy_bits(const kiln_map_desc *desc)
{
  static const char *const element[] = {"x0", "x1", "x2", "x3",
                                        "x4", "x5", "x6", "x7"};
  const kiln_dtype type = desc->in[0].type;
  const size_t n = n_inputs(desc), outputs = n_outputs(desc);
  kiln_map_desc d = *desc;
  size_t copies = 0, k;

  for (size_t o = 0; o < outputs; o++)
    copies += desc->expr[o] == NULL && desc->out[o].type == type;
  if (!kiln__is_half(type) || copies == 0)
    return d;
  k = copies == outputs ? 0 : n;
  if (k == KILN_MAX_INPUTS)
    return d;
  d.in[k] = (kiln_array){desc->in[0].data, KILN_U16};
  for (size_t o = 0; o < outputs; o++)
    if (desc->expr[o] == NULL && desc->out[o].type == type) {
      d.expr[o] = k == 0 ? NULL : element[k];
      d.out[o].type = KILN_U16;
    }
  return d;
}

static kiln_input input_of(const kiln_map_desc *desc)
{
  kiln_input x = {.map = desc->expr[0], .type = desc->out[0].type};

  for (size_t k = 0; k < KILN_MAX_INPUTS; k++)
    x.in[k] = desc->in[k];
  return x;
}

static bool in_place(const kiln_map_desc *desc)
{
  const size_t inputs = n_inputs(desc), outputs = n_outputs(desc);

  for (size_t k = 0; k < outputs; k++)
    for (size_t i = 0; i < inputs; i++)
      if (desc->in[i].data == desc->out[k].data)
        return true;
  return false;
}

/* Checks the element sizes of outputs that are also inputs. The elements of
 * such an output must have the size of the input's elements. Otherwise a store
 * would overwrite elements that other threads have not read yet. */
static void check_sizes(kiln__checker *c, const kiln_map_desc *desc)
{
  for (size_t k = 0; k < n_outputs(desc); k++)
    for (size_t i = 0; i < n_inputs(desc); i++)
      kiln__check_that(
          c,
          desc->n == 0 || desc->out[k].data != desc->in[i].data ||
              kiln__size(desc->out[k].type) == kiln__size(desc->in[i].type),
          "out[%zu] is in[%zu], but its elements have another size", k, i);
}

/* Checks that no input with a view is an output, and that a NULL expression does
 * not copy a table. */
static void check_views(kiln__checker *c, const kiln_map_desc *desc)
{
  const size_t outputs = n_outputs(desc), inputs = n_inputs(desc);

  if (desc->shape == NULL)
    return;
  for (size_t k = 0; k < outputs; k++) {
    for (size_t i = 0; i < inputs; i++)
      kiln__check_that(c,
                       !kiln__is_viewed(desc->shape, i) || desc->n == 0 ||
                           desc->in[i].data != desc->out[k].data,
                       "out[%zu] is in[%zu], which has a view", k, i);
    kiln__check_that(c,
                     desc->expr[k] != NULL ||
                         desc->shape->view[0].kind != KILN_VIEW_TABLE,
                     "expr[%zu] is NULL, but in[0] is a table", k);
  }
}

static bool reads_neighbours(const kiln_map_desc *desc)
{
  for (size_t k = 0; k < n_outputs(desc); k++)
    if (kiln__reads_neighbours(desc->expr[k]))
      return true;
  return false;
}

static kiln_status prepare(request *r, const kiln_stream *stream,
                           const kiln_map_desc *desc,
                           const kiln_workspace *workspace)
{
  static const char *const in[] = {"in[0]", "in[1]", "in[2]", "in[3]",
                                   "in[4]", "in[5]", "in[6]", "in[7]"};
  static const char *const out[] = {"out[0]", "out[1]", "out[2]", "out[3]"};
  kiln__checker c;
  size_t n, inputs;

  (void)workspace;
  r->desc = desc;
  r->need = (kiln__need){0};
  if (kiln__check_begin(&c, "kiln_map", stream, desc) != KILN_OK)
    return c.st;
  kiln__check_allow(&c, KILN__ALLOW_ALL);
  n = n_outputs(desc);
  inputs = n_inputs(desc);
  kiln__check_that(&c, n > 0, "out[0] has no type");
  kiln__check_shape(&c, desc->shape, inputs, desc->n);
  for (size_t k = 0; k < inputs; k++)
    kiln__check_viewed(&c, in[k], desc->in[k], desc->shape, k, desc->n);
  for (size_t k = 0; k < n; k++) {
    kiln__check_in_place(&c, out[k], desc->out[k], desc->n);
    kiln__check_that(&c, desc->expr[k] != NULL || kiln__given(desc->in[0]),
                     "expr[%zu] is NULL, and there is no in[0] to copy", k);
    if (desc->expr[k] == NULL)
      kiln__check_converts(&c, out[k], desc->in[0].type, desc->out[k].type);
  }
  kiln__check_that(&c, desc->width == 0 || desc->n % desc->width == 0,
                   "n is %llu, which is no multiple of the width %llu",
                   (unsigned long long)desc->n,
                   (unsigned long long)desc->width);
  if (desc->width != 0)
    kiln__check_names(&c, &desc->code, " row column ");
  check_sizes(&c, desc);
  check_views(&c, desc);
  if (desc->shape != NULL && c.st == KILN_OK)
    r->shape = kiln__normal_shape(desc->shape, inputs);
  kiln__check_that(
      &c, !in_place(desc) || !reads_neighbours(desc),
      "an expression reads other elements (x_at(), y_at() and so on) of "
      "arrays that are written");
  return kiln__check_end(&c);
}

/* Returns the size in bytes of the widest element of all arrays. */
static size_t widest_of(const kiln_map_desc *desc)
{
  const size_t inputs = n_inputs(desc), outputs = n_outputs(desc);
  size_t widest = 1;

  for (size_t k = 0; k < inputs; k++)
    if (kiln__size(desc->in[k].type) > widest)
      widest = kiln__size(desc->in[k].type);
  for (size_t k = 0; k < outputs; k++)
    if (kiln__size(desc->out[k].type) > widest)
      widest = kiln__size(desc->out[k].type);
  return widest;
}

/* Returns the number of arrays whose element `head` lies on a multiple of 16
 * bytes. */
static unsigned n_aligned(const kiln_array *a, size_t most, unsigned head)
{
  unsigned n = 0;

  for (size_t k = 0; k < most && kiln__given(a[k]); k++)
    n += (a[k].data + head * kiln__size(a[k].type)) % 16 == 0;
  return n;
}

/* Returns the index of the element at which vectors start. The index is 0,
 * unless more arrays are aligned at another index, for example if all arrays
 * are views that start at the same offset. */
static unsigned head_of(const kiln_map_desc *desc, unsigned vec)
{
  const unsigned arrays = (unsigned)(n_outputs(desc) + n_inputs(desc));
  unsigned best = 0, most = 0;

  for (unsigned head = 0; head < vec && head <= desc->n; head++) {
    const unsigned n = n_aligned(desc->in, KILN_MAX_INPUTS, head) +
                       n_aligned(desc->out, KILN_MAX_OUTPUTS, head);

    if (n > most) {
      most = n;
      best = head;
    }
    if (head == 0 && n == arrays)
      break;
  }
  return best;
}

/* Returns the number of vectors per thread. The tuning row gives the number
 * of loads in flight over all inputs. */
static unsigned items_of(const kiln_map_desc *desc, const kiln__tuning *t,
                         unsigned vec)
{
  unsigned bytes = 0;

  for (size_t k = 0; k < n_inputs(desc); k++)
    bytes += vec * (unsigned)kiln__size(desc->in[k].type);
  return bytes <= 16 ? t->items : (16u * t->items + bytes - 1) / bytes;
}

/* Adds the expressions of the outputs from the second on. */
static void add_outputs(kiln__spec *spec, const kiln_map_desc *desc)
{
  static const kiln__function others[] = {
      {"out1", "expr[1]", NULL, "kiln::compute_t<KILN_T1>", NULL, NULL},
      {"out2", "expr[2]", NULL, "kiln::compute_t<KILN_T2>", NULL, NULL},
      {"out3", "expr[3]", NULL, "kiln::compute_t<KILN_T3>", NULL, NULL}};
  const size_t n = n_outputs(desc);

  for (size_t k = 1; k < n; k++) {
    spec->function[k - 1] = others[k - 1];
    spec->function[k - 1].result =
        kiln__compute_name(desc->out[k].type, others[k - 1].result);
    spec->function[k - 1].expr = desc->expr[k] != NULL ? desc->expr[k] : "x0";
  }
}

static void specify(kiln__spec *spec, const kiln_map_desc *desc,
                    const kiln__tuning *t, unsigned vec)
{
  const size_t n = n_outputs(desc);

  spec->value[MAP_BLOCK] = t->block;
  spec->value[MAP_ITEMS] = items_of(desc, t, vec);
  spec->value[MAP_VECTOR] = vec;
  spec->value[MAP_OUTPUTS] = (uint32_t)n;
  spec->value[MAP_HEAD] = spec->first > 0;
  spec->value[MAP_SMALL] = desc->n < UINT32_C(1) << 31;
  spec->value[MAP_READ_ONLY] = !in_place(desc);
  for (size_t k = 0; k < KILN_MAX_OUTPUTS; k++) {
    const bool used = k < n;

    spec->value[MAP_ALIGNED] |=
        (uint32_t)(used && n_aligned(&desc->out[k], 1, spec->first) == 1) << k;
    spec->value[MAP_T0 + k] = used ? desc->out[k].type : KILN_F32;
  }
}

/* Returns whether a call has no inputs but rows. */
static bool is_image(const kiln_map_desc *desc)
{
  return desc->width != 0 && n_inputs(desc) == 0;
}

static void specify_image(kiln__spec *spec, const kiln_map_desc *desc)
{
  const size_t n = n_outputs(desc);

  spec->family = &image;
  spec->value[MAP_IMAGE_BLOCK] = IMAGE_BLOCK;
  spec->value[MAP_IMAGE_OUTPUTS] = (uint32_t)n;
  for (size_t k = 0; k < KILN_MAX_OUTPUTS; k++)
    spec->value[MAP_IMAGE_T0 + k] = k < n ? desc->out[k].type : KILN_F32;
}

static kiln_status run_image(kiln_stream *stream, const kiln_map_desc *desc,
                             kiln__spec *spec)
{
  const uint64_t height = desc->n / desc->width;
  const uint64_t across = kiln__divide_up(desc->width, 8 * 4);
  const uint64_t down = kiln__divide_up(height, IMAGE_BLOCK / 32);
  const kiln_launch_config config =
      kiln__grid(stream, across * down, IMAGE_BLOCK);
  const kiln__kernel_set *set;
  kiln_status st = KILN_OK;
  kiln__args args;

  specify_image(spec, desc);
  KILN_TRY(kiln__specialise(&set, stream->device, spec));
  kiln__user_args(&args, spec);
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                   KILN_ARG(desc->width), KILN_ARG(height), KILN_ARG(across),
                   KILN_ARG(desc->out[0].data), KILN_ARG(desc->out[1].data),
                   KILN_ARG(desc->out[2].data), KILN_ARG(desc->out[3].data));

done:
  return st;
}

static kiln_status run_vectors(kiln_stream *stream, const kiln_map_desc *desc,
                               kiln__spec *spec)
{
  const size_t widest = widest_of(desc);
  const unsigned vec = kiln__vector_of(widest);
  const kiln__tuning t =
      kiln__tuned_for(stream->device, KILN__TUNED_MAP, widest, desc->n);
  const kiln__kernel_set *set;
  kiln_launch_config config;
  kiln_status st = KILN_OK;
  kiln__args args;

  spec->first = head_of(desc, vec);
  specify(spec, desc, &t, vec);
  KILN_TRY(kiln__specialise(&set, stream->device, spec));
  kiln__user_args(&args, spec);
  config = kiln_launch_1d(kiln__divide_up(desc->n, spec->value[MAP_ITEMS] *
                                                       spec->value[MAP_VECTOR]),
                          t.block);
  config.stream = stream;
  st = KILN_LAUNCH(set->kernel[0], &config, KILN__USER_ARG(args),
                   KILN_ARG(desc->n), KILN_ARG(desc->out[0].data),
                   KILN_ARG(desc->out[1].data), KILN_ARG(desc->out[2].data),
                   KILN_ARG(desc->out[3].data), KILN_ARG(spec->first));

done:
  return st;
}

static kiln_status run(kiln_stream *stream, const request *r,
                       const kiln_workspace *workspace)
{
  const kiln_map_desc desc =
      r->desc->shape == NULL ? copy_bits(r->desc) : *r->desc;
  kiln_input x = input_of(&desc);
  kiln__spec spec = {.family = &family,
                     .elements = desc.n,
                     .input = &x,
                     .code = &desc.code,
                     .width = desc.width,
                     .shape = desc.shape != NULL ? &r->shape : NULL,
                     .wide = desc.n > UINT32_MAX || desc.width == 1};

  (void)workspace;
  if (desc.n == 0)
    return KILN_OK;
  if (x.map == NULL && kiln__is_strided(spec.shape, 0))
    x.map = "x0";
  add_outputs(&spec, &desc);
  return (is_image(&desc) ? run_image : run_vectors)(stream, &desc, &spec);
}

KILN__DEFINE_OPERATION(kiln_map, kiln_map_desc, request, prepare, run)
