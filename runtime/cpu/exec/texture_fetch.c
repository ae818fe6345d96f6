/* texture_fetch.c -- tex, tld4 and txq: reads the operands of each thread and
 * passes the operands to texture_filter.c.
 *
 * Threads are processed one by one: textures are implemented for correct
 * results, not for speed. */
#include "texture_filter.h"

#include "../memory/address_space.h"
#include "half.h"

/* Returns the size in bytes of the memory range that the texels of one level
 * occupy. */
static uint64_t extent(const kiln__cpu_texels *t)
{
  const uint64_t rows = t->height == 0 ? 1 : t->height;

  return (rows - 1) * t->row_bytes + (uint64_t)t->width * t->texel_bytes;
}

/* Returns true if the linear or pitched memory of a texture still exists. The
 * memory may have been freed since the texture object was created. */
static bool still_there(const kiln__cpu_warp *w, const kiln__cpu_texels *t)
{
  return t->address == 0 ||
         kiln__cpu_memory_host(w->grid->memory, t->address, extent(t)) != NULL;
}

/* Returns the texture handle of an operand. The operand is a handle, or the
 * address of a .texref that contains a handle. */
uint64_t KILN__ISA_NAME(texture_handle)(const kiln__cpu_warp *w,
                                        uint64_t operand)
{
  const uint8_t *at;
  uint64_t handle = operand;

  if (operand < KILN__DEVICE_BASE)
    return operand;
  at = kiln__cpu_memory_host(w->grid->memory, operand, sizeof handle);
  if (at == NULL)
    return 0;
  memcpy(&handle, at, sizeof handle);
  return handle;
}

static const kiln__cpu_texture *texture_of(kiln__cpu_warp *w,
                                           const kiln__cpu_insn *in, int lane)
{
  const uint64_t operand = KILN__SLOT(const uint64_t, in->a)[lane];
  const uint64_t handle = KILN__ISA_NAME(texture_handle)(w, operand);
  const kiln__cpu_texture *t =
      kiln__cpu_texture_find(w->grid->textures, handle);

  if (t == NULL) {
    kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, lane, operand, 0);
    return NULL;
  }
  if (!still_there(w, &t->level[0])) {
    kiln__cpu_fault(w, in, KILN__FAULT_ADDRESS, lane, t->level[0].address, 0);
    return NULL;
  }
  return t;
}

/* Returns element k of the coordinate vector, or 0 if the vector has fewer
 * elements. */
static uint32_t element(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        int k, int lane)
{
  if (k < 0 || k >= in->n_vec2)
    return 0;
  return KILN__SLOT(const uint32_t, in->vec2[k])[lane];
}

static double number(const kiln__cpu_insn *in, uint32_t bits)
{
  return in->type == KILN__S32 ? (double)(int32_t)bits
                               : (double)kiln__cpu_float_of_bits(bits);
}

static kiln__cpu_lookup lookup_of(const kiln__cpu_warp *w,
                                  const kiln__cpu_insn *in,
                                  kiln__cpu_tex_shape shape,
                                  kiln__cpu_tex_level how, int lane)
{
  const int first = kiln__cpu_tex_layered(shape) ? 1 : 0;
  const int n = kiln__cpu_tex_dimensions(shape);
  kiln__cpu_lookup l = {
      .shape = shape, .integers = in->type == KILN__S32, .how = how};

  if (first > 0)
    l.layer = element(w, in, 0, lane);
  for (int i = 0; i < n; i++)
    l.at[i] = number(in, element(w, in, first + i, lane));
  if (how == KILN__TEX_level)
    l.level = number(in, element(w, in, in->n_vec2 - 1, lane));
  if (how == KILN__TEX_grad) {
    /* coordinate vectors have 1, 2 or 4 elements */
    const int size = n == 3 ? 4 : n;

    for (int i = 0; i < n; i++) {
      l.gradient[0][i] =
          number(in, element(w, in, in->n_vec2 - 2 * size + i, lane));
      l.gradient[1][i] =
          number(in, element(w, in, in->n_vec2 - size + i, lane));
    }
  }
  return l;
}

static void keep(const kiln__cpu_warp *w, const kiln__cpu_insn *in, int lane,
                 const uint32_t out[4])
{
  for (int i = 0; i < in->n_vec && i < 4; i++) {
    if (in->vec[i] >= 0)
      KILN__SLOT(uint32_t, in->vec[i])[lane] = out[i];
  }
}

/* Executes tex if `component` is -1. Otherwise, executes tld4 for the component
 * with this number. */
static void sample(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                   kiln__cpu_tex_shape shape, kiln__cpu_tex_level how,
                   int component)
{
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const kiln__cpu_texture *t = texture_of(w, in, lane);
    kiln__cpu_lookup l;
    uint32_t out[4];

    if (t == NULL)
      return;
    l = lookup_of(w, in, shape, how, lane);
    if (component < 0)
      KILN__ISA_NAME(texture_sample)(t, &l, out);
    else
      KILN__ISA_NAME(texture_gather)(t, &l, component, out);
    keep(w, in, lane, out);
  }
}

#define TEX(shape)                                                             \
  KILN__CALLS(tex_##shape, sample, KILN__TEX_##shape, KILN__TEX_plain, -1)     \
  KILN__CALLS(tex_level_##shape, sample, KILN__TEX_##shape, KILN__TEX_level,   \
              -1)                                                              \
  KILN__CALLS(tex_grad_##shape, sample, KILN__TEX_##shape, KILN__TEX_grad, -1)

TEX(1d)
TEX(2d)
TEX(3d)
TEX(a1d)
TEX(a2d)
TEX(cube)
TEX(acube)

#define TLD4(component, number, shape)                                         \
  KILN__CALLS(tld4_##component##_##shape, sample, KILN__TEX_##shape,           \
              KILN__TEX_plain, number)
#define TLD4_ALL(shape)                                                        \
  TLD4(r, 0, shape) TLD4(g, 1, shape) TLD4(b, 2, shape) TLD4(a, 3, shape)

TLD4_ALL(2d)
TLD4_ALL(a2d)
TLD4_ALL(cube)
TLD4_ALL(acube)

/* ---- Queries ------------------------------------------------------------- */

/* Returns the CUarray_format of a texel type. */
uint32_t KILN__ISA_NAME(texel_format)(kiln__cpu_texel texel)
{
  static const uint8_t formats[] = {0x01, 0x02, 0x03, 0x08,
                                    0x09, 0x0a, 0x10, 0x20};

  return formats[texel];
}

uint32_t KILN__ISA_NAME(texel_layers)(const kiln__cpu_texels *t)
{
  return t->cube ? t->layers / 6 : t->layers;
}

/* Defines the handler of a txq query. The expression computes the result from
 * the texture t and its mip level l. Register b selects the level; the default
 * is the first level. */
#define TXQ(name, expression)                                                  \
  KILN__HANDLER(txq_##name)                                                    \
  {                                                                            \
    for (uint32_t m = w->mask; m != 0; m &= m - 1) {                           \
      const int lane = __builtin_ctz(m);                                       \
      const kiln__cpu_texture *t = texture_of(w, in, lane);                    \
      const kiln__cpu_texels *l;                                               \
                                                                               \
      if (t == NULL)                                                           \
        return;                                                                \
      l = level_of(w, in, t, lane);                                            \
      (void)l;                                                                 \
      if (in->d >= 0)                                                          \
        KILN__SLOT(uint32_t, in->d)[lane] = (expression);                      \
    }                                                                          \
  }

static const kiln__cpu_texels *level_of(const kiln__cpu_warp *w,
                                        const kiln__cpu_insn *in,
                                        const kiln__cpu_texture *t, int lane)
{
  const uint32_t level =
      in->b < 0 ? 0 : KILN__SLOT(const uint32_t, in->b)[lane];

  return &t->level[level < t->n_levels ? level : t->n_levels - 1];
}

TXQ(width, l->width)
TXQ(height, l->height)
TXQ(depth, l->depth)
TXQ(level_width, l->width)
TXQ(level_height, l->height)
TXQ(level_depth, l->depth)
TXQ(array_size, KILN__ISA_NAME(texel_layers)(l))
TXQ(num_mipmap_levels, t->n_levels)
TXQ(num_samples, 1)
TXQ(normalized_coords, t->normalised)
TXQ(channel_order, l->channels)
TXQ(channel_data_type, KILN__ISA_NAME(texel_format)(l->texel))
