/* texture_filter.c -- computes texture values from coordinates: addressing
 * modes, filtering, cube maps and mip levels.
 *
 * Coordinates are doubles that hold float values, so multiplying a coordinate
 * by a size is exact. As the CUDA C++ Programming Guide specifies, linear
 * filtering uses weights with 8 fraction bits. Products and sums are computed
 * in double and rounded once at the end, because the intermediate rounding of
 * GPUs is not documented. */
#include "texture_filter.h"
#include "half.h"

#include <math.h>
#include <stdlib.h>

enum { FACES = 6 };

typedef struct color {
  double c[4];
} color;

/* A position in one mip level: the plane (layer or cube face) to read, and the
 * coordinates in this plane. */
typedef struct place {
  const kiln__cpu_texture *texture;
  const kiln__cpu_texels *texels;
  uint32_t plane; /* first layer; of a cube map, the layer of face 0 */
  int face;       /* face of a cube map; -1 for other textures */
  int n_axes;
  bool normalised;
  int64_t size[3];
} place;

/* ---- Texel formats ------------------------------------------------------- */

/* Returns true if texels are read as floats, which may be filtered. Otherwise
 * texels are read as integers. */
static bool gives_floats(const kiln__cpu_texture *t)
{
  switch (t->level[0].texel) {
  case KILN__TEXEL_F16:
  case KILN__TEXEL_F32:
    return true;
  case KILN__TEXEL_U32:
  case KILN__TEXEL_S32:
    return false;
  default:
    return !t->as_integer;
  }
}

static uint32_t read_integer(const uint8_t *from, kiln__cpu_texel texel)
{
  int8_t s8;
  int16_t s16;
  uint16_t u16;
  uint32_t u32;

  switch (texel) {
  case KILN__TEXEL_U8:
    return *from;
  case KILN__TEXEL_S8:
    memcpy(&s8, from, sizeof s8);
    return (uint32_t)(int32_t)s8;
  case KILN__TEXEL_S16:
    memcpy(&s16, from, sizeof s16);
    return (uint32_t)(int32_t)s16;
  case KILN__TEXEL_U16:
  case KILN__TEXEL_F16:
    memcpy(&u16, from, sizeof u16);
    return u16;
  default:
    memcpy(&u32, from, sizeof u32);
    return u32;
  }
}

static double linear_of_srgb(double v)
{
  return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double read_float(const uint8_t *from, kiln__cpu_texel texel)
{
  const uint32_t bits = read_integer(from, texel);
  const double value = (double)(int32_t)bits;

  switch (texel) {
  case KILN__TEXEL_F16:
    return (double)kiln__cpu_float_of_f16(bits);
  case KILN__TEXEL_F32:
    return (double)kiln__cpu_float_of_bits(bits);
  case KILN__TEXEL_U8:
    return (double)(float)(value / 255);
  case KILN__TEXEL_U16:
    return (double)(float)(value / 65535);
  case KILN__TEXEL_S8:
    return value < -127 ? -1 : (double)(float)(value / 127);
  case KILN__TEXEL_S16:
    return value < -32767 ? -1 : (double)(float)(value / 32767);
  default:
    return value;
  }
}

static int channel_bytes(const kiln__cpu_texels *t)
{
  return t->texel_bytes / t->channels;
}

/* Reads all channels of a texel. Missing channels are 0, but a missing fourth
 * channel is 1. Integers are returned as doubles, which represent them
 * exactly. */
static color read_texel(const kiln__cpu_texture *t, const kiln__cpu_texels *l,
                        const uint8_t *from)
{
  const bool floats = gives_floats(t);
  const bool srgb = floats && t->srgb && l->texel == KILN__TEXEL_U8;
  color out = {{0, 0, 0, 1}};

  for (int i = 0; i < l->channels; i++) {
    const uint8_t *at = from + i * channel_bytes(l);

    out.c[i] =
        floats ? read_float(at, l->texel) : (double)read_integer(at, l->texel);
    if (srgb && i < 3)
      out.c[i] = (double)(float)linear_of_srgb(out.c[i]);
  }
  return out;
}

static void write_out(const kiln__cpu_texture *t, const color *v,
                      uint32_t out[4])
{
  for (int i = 0; i < 4; i++) {
    if (gives_floats(t))
      out[i] = kiln__cpu_bits_of_float((float)v->c[i]);
    else
      out[i] = v->c[i] >= 0 && v->c[i] <= UINT32_MAX ? (uint32_t)v->c[i] : 0;
  }
}

static color border(const kiln__cpu_texture *t)
{
  color out;

  for (int i = 0; i < 4; i++) {
    out.c[i] = (double)t->border[i];
    if (!gives_floats(t) && !(out.c[i] >= 0))
      out.c[i] = 0;
  }
  return out;
}

/* ---- Addressing ---------------------------------------------------------- */

/* Returns the texel to which index i refers along an axis of n texels, or -1
 * for the border. Wrapping and mirroring require normalised coordinates. */
static int64_t addressed(int64_t i, int64_t n, kiln__cpu_address_mode mode,
                         bool normalised)
{
  int64_t m;

  if (!normalised && (mode == KILN__WRAP || mode == KILN__MIRROR))
    mode = KILN__CLAMP;
  switch (mode) {
  case KILN__WRAP:
    m = i % n;
    return m < 0 ? m + n : m;
  case KILN__MIRROR:
    m = i % (2 * n);
    m = m < 0 ? m + 2 * n : m;
    return m < n ? m : 2 * n - 1 - m;
  case KILN__BORDER:
    return i < 0 || i >= n ? -1 : i;
  default:
    return i < 0 ? 0 : i >= n ? n - 1 : i;
  }
}

/* Reduces a coordinate, in texels, to the range of integers. In the periodic
 * addressing modes, coordinates that differ by 2 n texels refer to the same
 * texel. */
static double in_range(double x, int64_t n, kiln__cpu_address_mode mode,
                       bool normalised)
{
  const double most = 0x1p40;
  const bool round = normalised && (mode == KILN__WRAP || mode == KILN__MIRROR);

  if (isnan(x))
    return 0;
  if (fabs(x) < most)
    return x;
  return round && !isinf(x) ? fmod(x, 2 * (double)n) : x < 0 ? -most : most;
}

static const uint8_t *texel_at(const kiln__cpu_texels *t, uint32_t plane,
                               int64_t x, int64_t y)
{
  return t->data + plane * t->plane_bytes + (size_t)y * t->row_bytes +
         (size_t)x * t->texel_bytes;
}

/* ---- Cube maps ----------------------------------------------------------- */

/* Maps a direction to a cube face and two coordinates on this face, each from
 * -1 to 1. */
static int face_of(const double v[3], double *s, double *t)
{
  const double x = v[0], y = v[1], z = v[2];
  const double ax = fabs(x), ay = fabs(y), az = fabs(z);
  double m;
  int face;

  if (ax >= ay && ax >= az) {
    face = x >= 0 ? 0 : 1;
    m = ax;
    *s = x >= 0 ? -z : z;
    *t = -y;
  } else if (ay >= az) {
    face = y >= 0 ? 2 : 3;
    m = ay;
    *s = x;
    *t = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5;
    m = az;
    *s = z >= 0 ? x : -x;
    *t = -y;
  }
  if (m > 0) {
    *s /= m;
    *t /= m;
  } else {
    *s = *t = 0;
  }
  return face;
}

static void direction_of(int face, double s, double t, double v[3])
{
  static const struct {
    /* Each element is 1 + the number of an axis. A negative element means the
     * opposite direction. */
    int8_t major, from_s, from_t;
  } faces[FACES] = {{1, -3, -2}, {-1, 3, -2}, {2, 1, 3},
                    {-2, 1, -3}, {3, 1, -2},  {-3, -1, -2}};
  const int8_t axes[3] = {faces[face].major, faces[face].from_s,
                          faces[face].from_t};
  const double values[3] = {1, s, t};

  for (int i = 0; i < 3; i++)
    v[abs(axes[i]) - 1] = axes[i] < 0 ? -values[i] : values[i];
}

/* Reads a texel beyond one edge of a face. The texel belongs to the adjacent
 * face. */
static color across_edge(const place *p, int64_t x, int64_t y)
{
  const int64_t n = p->size[0];
  double v[3], s, t;
  int face;

  direction_of(p->face, (2 * (double)x + 1) / (double)n - 1,
               (2 * (double)y + 1) / (double)n - 1, v);
  face = face_of(v, &s, &t);
  x = addressed((int64_t)floor((s + 1) / 2 * (double)n), n, KILN__CLAMP, false);
  y = addressed((int64_t)floor((t + 1) / 2 * (double)n), n, KILN__CLAMP, false);
  return read_texel(p->texture, p->texels,
                    texel_at(p->texels, p->plane + (uint32_t)face, x, y));
}

static color on_face(const place *p, int64_t x, int64_t y);

/* Reads a texel beyond a corner of a face. Three faces meet in a corner; the
 * result is the mean of their corner texels. */
static color corner(const place *p, int64_t x, int64_t y)
{
  const int64_t n = p->size[0];
  const int64_t in_x = x < 0 ? 0 : n - 1, in_y = y < 0 ? 0 : n - 1;
  const color a = on_face(p, in_x, in_y), b = across_edge(p, x, in_y),
              c = across_edge(p, in_x, y);
  color out;

  for (int i = 0; i < 4; i++)
    out.c[i] = (a.c[i] + b.c[i] + c.c[i]) / 3;
  return out;
}

static bool has_faces(const kiln__cpu_texels *t)
{
  return t->cube && t->layers >= FACES && t->width == t->height;
}

static color on_face(const place *p, int64_t x, int64_t y)
{
  const int64_t n = p->size[0];
  const bool out_x = x < 0 || x >= n, out_y = y < 0 || y >= n;
  const bool seamless = p->texture->seamless_cube && has_faces(p->texels);

  if (seamless && out_x && out_y)
    return corner(p, x, y);
  if (seamless && (out_x || out_y))
    return across_edge(p, x, y);
  return read_texel(p->texture, p->texels,
                    texel_at(p->texels, p->plane + (uint32_t)p->face,
                             addressed(x, n, KILN__CLAMP, false),
                             addressed(y, p->size[1], KILN__CLAMP, false)));
}

/* ---- One texel ----------------------------------------------------------- */

static color fetch(const place *p, const int64_t index[3])
{
  int64_t i[3] = {0, 0, 0};

  if (p->face >= 0)
    return on_face(p, index[0], index[1]);
  for (int k = 0; k < p->n_axes; k++) {
    i[k] = addressed(index[k], p->size[k], p->texture->mode[k], p->normalised);
    if (i[k] < 0)
      return border(p->texture);
  }
  return read_texel(p->texture, p->texels,
                    texel_at(p->texels, p->plane + (uint32_t)i[2], i[0], i[1]));
}

/* Reads a texel of linear memory, which is indexed by texel and has no
 * border. */
static color fetch_linear(const place *p, const int64_t index[3])
{
  if (index[0] < 0 || index[0] >= p->size[0])
    return (color){{0, 0, 0, 0}};
  return read_texel(p->texture, p->texels, texel_at(p->texels, 0, index[0], 0));
}

/* ---- Filtering within one level ------------------------------------------ */

static bool is_linear_memory(const kiln__cpu_texels *t)
{
  return t->address != 0 && t->height == 0;
}

static int64_t at_least_one(uint32_t n)
{
  return n == 0 ? 1 : n;
}

static place place_of(const kiln__cpu_texture *t, const kiln__cpu_lookup *l,
                      uint32_t level)
{
  const kiln__cpu_texels *texels = &t->level[level];
  place p = {.texture = t,
             .texels = texels,
             .face = -1,
             .normalised = t->normalised && !l->integers,
             .size = {at_least_one(texels->width), at_least_one(texels->height),
                      at_least_one(texels->depth)}};

  p.n_axes = kiln__cpu_tex_dimensions(l->shape);
  if (kiln__cpu_tex_layered(l->shape) && texels->layers > 0) {
    const uint32_t each = kiln__cpu_tex_cube(l->shape) ? FACES : 1;
    const uint32_t n = texels->layers / each;

    p.plane = n == 0 ? 0 : (l->layer < n ? l->layer : n - 1) * each;
  }
  return p;
}

/* Computes the coordinates in texels along each axis. For a cube map, also
 * selects the face. */
static void locate(place *p, const kiln__cpu_lookup *l, double x[3])
{
  if (kiln__cpu_tex_cube(l->shape)) {
    double s, t;

    p->face = face_of(l->at, &s, &t);
    p->n_axes = 2;
    if (!has_faces(p->texels))
      p->face = 0;
    x[0] = (s + 1) / 2 * (double)p->size[0];
    x[1] = (t + 1) / 2 * (double)p->size[1];
    x[0] = in_range(x[0], p->size[0], KILN__CLAMP, false);
    x[1] = in_range(x[1], p->size[1], KILN__CLAMP, false);
    return;
  }
  for (int i = 0; i < p->n_axes; i++) {
    x[i] = p->normalised ? l->at[i] * (double)p->size[i] : l->at[i];
    x[i] = in_range(x[i], p->size[i], p->texture->mode[i], p->normalised);
  }
}

/* Returns the index of the lower texel. *weight receives the weight of the
 * upper texel, in steps of 1/256. */
static int64_t split(double x, double *weight)
{
  const double fixed = floor((x - 0.5) * 256 + 0.5);
  const double index = floor(fixed / 256);

  *weight = (fixed - index * 256) / 256;
  return (int64_t)index;
}

static color nearest(const place *p, const double x[3])
{
  int64_t index[3] = {0, 0, 0};

  for (int i = 0; i < p->n_axes; i++)
    index[i] = (int64_t)floor(x[i]);
  return is_linear_memory(p->texels) ? fetch_linear(p, index) : fetch(p, index);
}

static color linear(const place *p, const double x[3])
{
  int64_t base[3] = {0, 0, 0};
  double weight[3] = {0, 0, 0};
  color sum = {{0, 0, 0, 0}};

  for (int i = 0; i < p->n_axes; i++)
    base[i] = split(x[i], &weight[i]);
  for (int k = 0; k < 1 << p->n_axes; k++) {
    int64_t index[3] = {0, 0, 0};
    double w = 1;
    color one;

    for (int i = 0; i < p->n_axes; i++) {
      const int up = k >> i & 1;

      index[i] = base[i] + up;
      w *= up ? weight[i] : 1 - weight[i];
    }
    if (w == 0)
      continue;
    one = fetch(p, index);
    for (int c = 0; c < 4; c++)
      sum.c[c] += w * one.c[c];
  }
  return sum;
}

static color of_level(const kiln__cpu_texture *t, const kiln__cpu_lookup *l,
                      uint32_t level)
{
  place p = place_of(t, l, level);
  double x[3] = {0, 0, 0};

  locate(&p, l, x);
  return t->linear_filter && !l->integers && gives_floats(t) &&
                 !is_linear_memory(p.texels)
             ? linear(&p, x)
             : nearest(&p, x);
}

/* ---- Mip levels ---------------------------------------------------------- */

/* Returns the mip level for isotropic filtering. The level depends on the
 * longer of the two gradients, in texels of level 0. */
static double level_of_gradients(const kiln__cpu_texture *t,
                                 const kiln__cpu_lookup *l)
{
  const kiln__cpu_texels *base = &t->level[0];
  const double size[3] = {(double)base->width,
                          (double)at_least_one(base->height),
                          (double)at_least_one(base->depth)};
  double most = 0, major = 0;

  for (int i = 0; i < 3; i++)
    major = fmax(major, fabs(l->at[i]));
  for (int g = 0; g < 2; g++) {
    double sum = 0;

    for (int i = 0; i < kiln__cpu_tex_dimensions(l->shape); i++) {
      double step = l->gradient[g][i];

      if (kiln__cpu_tex_cube(l->shape))
        step *= major > 0 ? size[0] / 2 / major : 0;
      else if (t->normalised)
        step *= size[i];
      sum += step * step;
    }
    most = fmax(most, sqrt(sum));
  }
  return most > 0 ? log2(most) : -INFINITY;
}

static double level_wanted(const kiln__cpu_texture *t,
                           const kiln__cpu_lookup *l)
{
  double level = l->how == KILN__TEX_level  ? l->level
                 : l->how == KILN__TEX_grad ? level_of_gradients(t, l)
                                            : 0;

  if (isnan(level))
    level = 0;
  level += (double)t->level_bias;
  level = fmax(level, (double)t->min_level);
  level = fmin(level, (double)t->max_level);
  return fmin(fmax(level, 0), (double)(t->n_levels - 1));
}

void KILN__ISA_NAME(texture_sample)(const kiln__cpu_texture *t,
                                    const kiln__cpu_lookup *l, uint32_t out[4])
{
  color v, next;
  double level, fraction;
  uint32_t base;

  if (t->n_levels < 2) {
    v = of_level(t, l, 0);
    write_out(t, &v, out);
    return;
  }
  level = level_wanted(t, l);
  if (!t->linear_mipmap || !gives_floats(t)) {
    v = of_level(t, l, (uint32_t)floor(level + 0.5));
    write_out(t, &v, out);
    return;
  }
  level = floor(level * 256 + 0.5) / 256;
  base = (uint32_t)level;
  fraction = level - base;
  v = of_level(t, l, base);
  if (fraction > 0) {
    next = of_level(t, l, base + 1);
    for (int i = 0; i < 4; i++)
      v.c[i] = v.c[i] * (1 - fraction) + next.c[i] * fraction;
  }
  write_out(t, &v, out);
}

void KILN__ISA_NAME(texture_gather)(const kiln__cpu_texture *t,
                                    const kiln__cpu_lookup *l, int component,
                                    uint32_t out[4])
{
  static const int64_t steps[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  place p = place_of(t, l, 0);
  double x[3] = {0, 0, 0}, ignored;
  int64_t base[2];

  locate(&p, l, x);
  base[0] = split(x[0], &ignored);
  base[1] = split(x[1], &ignored);
  for (int k = 0; k < 4; k++) {
    const int64_t index[3] = {base[0] + steps[k][0], base[1] + steps[k][1], 0};
    const color v =
        is_linear_memory(p.texels) ? fetch_linear(&p, index) : fetch(&p, index);
    uint32_t all[4];

    write_out(t, &v, all);
    out[k] = all[component];
  }
}
