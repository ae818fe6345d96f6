/* texture_surface.c -- the surface instructions suld, sust, sured and suq.
 *
 * The .b forms take x in bytes and copy bytes unchanged. The .p forms take x in
 * texels and convert the values. For coordinates beyond an edge, .trap faults,
 * .clamp uses the nearest position at which the access fits, and .zero reads
 * zeros and drops writes. */
#include "texture_filter.h"

#include "half.h"

/* Values of in->sub for .clamp and .zero. All other values mean .trap. */
enum { CLAMP = 1, ZERO = 3 };

static const kiln__cpu_texels *surface_of(kiln__cpu_warp *w,
                                          const kiln__cpu_insn *in, int lane)
{
  const uint64_t operand = KILN__SLOT(const uint64_t, in->a)[lane];
  const kiln__cpu_surface *s = kiln__cpu_surface_find(
      w->grid->textures, KILN__ISA_NAME(texture_handle)(w, operand));

  if (s == NULL) {
    kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, lane, operand, 0);
    return NULL;
  }
  return &s->texels;
}

static int64_t coordinate(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                          int k, int lane)
{
  if (k >= in->n_vec2)
    return 0;
  return (int32_t)KILN__SLOT(const uint32_t, in->vec2[k])[lane];
}

/* Clamps a coordinate to 0 .. n - 1 if the instruction has .clamp. Returns
 * false if the coordinate lies beyond the edge and is not clamped. */
static bool within(const kiln__cpu_insn *in, int64_t *i, int64_t n)
{
  if (*i >= 0 && *i < n)
    return true;
  if (in->sub != CLAMP)
    return false;
  *i = *i < 0 ? 0 : n - 1;
  return true;
}

typedef enum reached { REACHED, BEYOND, FAULTED } reached;

/* Finds the bytes of a surface that one thread accesses. `unit` is the number
 * of bytes per step of x. */
static reached reach(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                     kiln__cpu_tex_shape shape, int lane, uint32_t bytes,
                     uint32_t unit, uint8_t **out)
{
  const kiln__cpu_texels *t = surface_of(w, in, lane);
  const int first = kiln__cpu_tex_layered(shape) ? 1 : 0;
  const int n = kiln__cpu_tex_dimensions(shape);
  int64_t x, y = 0, plane = 0, row;
  bool inside;

  if (t == NULL)
    return FAULTED;
  x = coordinate(w, in, first, lane) * unit;
  if (n > 1)
    y = coordinate(w, in, first + 1, lane);
  if (first > 0 || n > 2)
    plane = coordinate(w, in, first > 0 ? 0 : 2, lane);
  if (x % (unit > 1 ? unit : bytes) != 0) {
    kiln__cpu_fault(w, in, KILN__FAULT_MISALIGNED, lane, (uint64_t)x, bytes);
    return FAULTED;
  }
  row = (int64_t)t->width * t->texel_bytes;
  inside = row >= bytes;
  if (inside && (x < 0 || x + bytes > row)) {
    inside = in->sub == CLAMP;
    x = x < 0 ? 0 : row - bytes;
  }
  inside = inside && within(in, &y, t->height == 0 ? 1 : t->height) &&
           within(in, &plane,
                  t->layers != 0  ? t->layers
                  : t->depth != 0 ? t->depth
                                  : 1);
  if (inside) {
    *out = t->data + (size_t)plane * t->plane_bytes + (size_t)y * t->row_bytes +
           (size_t)x;
    return REACHED;
  }
  if (in->sub == CLAMP || in->sub == ZERO)
    return BEYOND;
  kiln__cpu_fault(w, in, KILN__FAULT_ADDRESS, lane, (uint64_t)x, bytes);
  return FAULTED;
}

/* Writes a value to a register, which may be wider than the value. 64-bit
 * elements use 64-bit registers. */
static void put(const kiln__cpu_warp *w, int32_t slot, int lane, uint64_t value,
                bool wide)
{
  if (slot < 0)
    return;
  if (wide)
    KILN__SLOT(uint64_t, slot)[lane] = value;
  else
    KILN__SLOT(uint32_t, slot)[lane] = (uint32_t)value;
}

static uint64_t get(const kiln__cpu_warp *w, int32_t slot, int lane, bool wide)
{
  return wide ? KILN__SLOT(const uint64_t, slot)[lane]
              : KILN__SLOT(const uint32_t, slot)[lane];
}

static void load(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                 kiln__cpu_tex_shape shape)
{
  const uint32_t each = kiln__cpu_ptx_type_bytes[in->type];
  const bool wide = each == 8 || in->reg_bytes == 8;

  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    uint8_t *at = NULL;
    const reached r = reach(w, in, shape, lane, each * in->n_vec, 1, &at);

    if (r == FAULTED)
      return;
    for (uint32_t i = 0; i < in->n_vec; i++) {
      uint64_t value = 0;

      for (uint32_t k = 0; r == REACHED && k < each; k++)
        value |= (uint64_t)at[i * each + k] << 8 * k;
      put(w, in->vec[i], lane, value, wide);
    }
  }
}

static void store(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                  kiln__cpu_tex_shape shape)
{
  const uint32_t each = kiln__cpu_ptx_type_bytes[in->type];
  const bool wide = each == 8 || in->src_reg_bytes == 8;

  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    uint8_t *at = NULL;
    const reached r = reach(w, in, shape, lane, each * in->n_vec, 1, &at);

    if (r == FAULTED)
      return;
    for (uint32_t i = 0; r == REACHED && i < in->n_vec; i++) {
      const uint64_t value = get(w, in->vec[i], lane, wide);

      for (uint32_t k = 0; k < each; k++)
        at[i * each + k] = (uint8_t)(value >> 8 * k);
    }
  }
}

/* ---- Formatted stores ---------------------------------------------------- */

/* Stores a 32-bit value as one channel of a texel. Floats are narrowed, and
 * integers saturate. */
static void write_channel(uint8_t *to, kiln__cpu_texel texel, uint32_t bits)
{
  static const int32_t least[] = {0, 0, 0, -128, -32768, 0};
  static const int64_t most[] = {255, 65535, UINT32_MAX, 127, 32767, 0};
  uint32_t value = bits;
  size_t size = 4;

  if (texel == KILN__TEXEL_F16) {
    value = kiln__cpu_f16_of_float(kiln__cpu_float_of_bits(bits));
    size = 2;
  } else if (texel == KILN__TEXEL_S8 || texel == KILN__TEXEL_S16) {
    const int64_t v = (int32_t)bits;

    value = (uint32_t)(int32_t)(v < least[texel]  ? least[texel]
                                : v > most[texel] ? most[texel]
                                                  : v);
    size = texel == KILN__TEXEL_S8 ? 1 : 2;
  } else if (texel == KILN__TEXEL_U8 || texel == KILN__TEXEL_U16) {
    value = (int64_t)bits > most[texel] ? (uint32_t)most[texel] : bits;
    size = texel == KILN__TEXEL_U8 ? 1 : 2;
  }
  for (size_t k = 0; k < size; k++)
    to[k] = (uint8_t)(value >> 8 * k);
}

static void store_texel(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        kiln__cpu_tex_shape shape)
{
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const kiln__cpu_texels *t = surface_of(w, in, lane);
    uint8_t *at = NULL;
    reached r;

    if (t == NULL)
      return;
    r = reach(w, in, shape, lane, t->texel_bytes, t->texel_bytes, &at);
    if (r == FAULTED)
      return;
    for (uint32_t i = 0; r == REACHED && i < in->n_vec && i < t->channels; i++)
      write_channel(at + i * (t->texel_bytes / t->channels), t->texel,
                    KILN__SLOT(const uint32_t, in->vec[i])[lane]);
  }
}

#define SURFACE(shape)                                                         \
  KILN__CALLS(suld_##shape, load, KILN__TEX_##shape)                           \
  KILN__CALLS(sust_##shape, store, KILN__TEX_##shape)                          \
  KILN__CALLS(sust_p_##shape, store_texel, KILN__TEX_##shape)

SURFACE(1d)
SURFACE(2d)
SURFACE(3d)
SURFACE(a1d)
SURFACE(a2d)

/* ---- Reductions ---------------------------------------------------------- */

typedef enum reduction { ADD, MIN, MAX, AND, OR } reduction;

static uint64_t combined(reduction op, kiln__cpu_ptx_type type, uint64_t old,
                         uint64_t b)
{
  const uint64_t sign = type == KILN__S32   ? UINT64_C(1) << 31
                        : type == KILN__S64 ? UINT64_C(1) << 63
                                            : 0;

  switch (op) {
  case ADD:
    return old + b;
  case MIN:
    return (old ^ sign) < (b ^ sign) ? old : b;
  case MAX:
    return (old ^ sign) > (b ^ sign) ? old : b;
  case AND:
    return old & b;
  default:
    return old | b;
  }
}

/* Reduces a texel in memory with an atomic operation, because other host
 * threads may update the same texel. */
static void reduce_at(uint8_t *at, reduction op, kiln__cpu_ptx_type type,
                      uint64_t b)
{
  if (kiln__cpu_ptx_type_bytes[type] == 8) {
    uint64_t *to = (uint64_t *)(void *)at;
    uint64_t old = __atomic_load_n(to, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(to, &old, combined(op, type, old, b),
                                        true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
      ;
  } else {
    uint32_t *to = (uint32_t *)(void *)at;
    uint32_t old = __atomic_load_n(to, __ATOMIC_RELAXED);

    while (!__atomic_compare_exchange_n(
        to, &old, (uint32_t)combined(op, type, old, b), true, __ATOMIC_RELAXED,
        __ATOMIC_RELAXED))
      ;
  }
}

/* Implements sured. In the .p forms, the elements of the reduction have 32 bits
 * and the signedness of the texels. */
static void reduce(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                   kiln__cpu_tex_shape shape, reduction op, bool formatted)
{
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const kiln__cpu_texels *t = surface_of(w, in, lane);
    kiln__cpu_ptx_type type = (kiln__cpu_ptx_type)in->type;
    const uint32_t bytes = kiln__cpu_ptx_type_bytes[type];
    uint8_t *at = NULL;
    reached r;

    if (t == NULL)
      return;
    if (formatted)
      type = t->texel == KILN__TEXEL_S32 ? KILN__S32 : KILN__U32;
    r = reach(w, in, shape, lane, bytes, formatted ? t->texel_bytes : 1, &at);
    if (r == FAULTED)
      return;
    if (r == REACHED && ((uintptr_t)at & (bytes - 1)) != 0) {
      kiln__cpu_fault(w, in, KILN__FAULT_MISALIGNED, lane, (uintptr_t)at,
                      bytes);
      return;
    }
    if (r == REACHED)
      reduce_at(at, op, type, get(w, in->b, lane, bytes == 8));
  }
}

#define SURED(name, op, shape)                                                 \
  KILN__CALLS(sured_b_##name##_##shape, reduce, KILN__TEX_##shape, op, false)  \
  KILN__CALLS(sured_p_##name##_##shape, reduce, KILN__TEX_##shape, op, true)
#define SURED_ALL(shape)                                                       \
  SURED(add, ADD, shape)                                                       \
  SURED(min, MIN, shape)                                                       \
  SURED(max, MAX, shape)                                                       \
  SURED(and, AND, shape)                                                       \
  SURED(or, OR, shape)

SURED_ALL(1d)
SURED_ALL(2d)
SURED_ALL(3d)

/* ---- Queries ------------------------------------------------------------- */

/* Defines the handler of a suq query. The expression computes the result from
 * the texels t. */
#define SUQ(name, expression)                                                  \
  KILN__HANDLER(suq_##name)                                                    \
  {                                                                            \
    for (uint32_t m = w->mask; m != 0; m &= m - 1) {                           \
      const int lane = __builtin_ctz(m);                                       \
      const kiln__cpu_texels *t = surface_of(w, in, lane);                     \
                                                                               \
      if (t == NULL)                                                           \
        return;                                                                \
      if (in->d >= 0)                                                          \
        KILN__SLOT(uint32_t, in->d)[lane] = (expression);                      \
    }                                                                          \
  }

SUQ(width, t->width)
SUQ(height, t->height)
SUQ(depth, t->depth)
SUQ(array_size, KILN__ISA_NAME(texel_layers)(t))
SUQ(memory_layout, t->address == 0)
SUQ(channel_order, t->channels)
SUQ(channel_data_type, KILN__ISA_NAME(texel_format)(t->texel))
