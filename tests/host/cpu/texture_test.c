/* texture_test.c -- tests textures against a reference that follows the CUDA
 * C++ Programming Guide in double precision. The reference maps the coordinates
 * to the valid range and then interpolates texels axis by axis. */
#include "cpu_reference.h"
#include "texture.h"

#include <math.h>

typedef struct sampling {
  kiln__cpu_texture t;
  bool floats;
} sampling;

/* Returns one channel of one texel as a number. */
static double channel_value(const sampling *s, const kiln__cpu_texels *l,
                            const uint8_t *at, int channel)
{
  uint32_t u = 0;
  int32_t i;
  double v;

  if (channel >= l->channels)
    return channel == 3;
  memcpy(&u, at + channel * channel_size(l->texel), channel_size(l->texel));
  i = channel_size(l->texel) == 1   ? (int8_t)u
      : channel_size(l->texel) == 2 ? (int16_t)u
                                    : (int32_t)u;
  switch (l->texel) {
  case KILN__TEXEL_F32:
    return (double)float_of(u);
  case KILN__TEXEL_F16:
    return (double)ref_decode("f16", u, false);
  case KILN__TEXEL_U32:
    return u;
  case KILN__TEXEL_S32:
    return (uint32_t)i;
  case KILN__TEXEL_U8:
  case KILN__TEXEL_U16:
    if (!s->floats)
      return u;
    v = u / (l->texel == KILN__TEXEL_U8 ? 255.0 : 65535.0);
    if (s->t.srgb && l->texel == KILN__TEXEL_U8 && channel < 3)
      v = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    return v;
  default:
    if (!s->floats)
      return (uint32_t)i;
    return fmax(i / (l->texel == KILN__TEXEL_S8 ? 127.0 : 32767.0), -1);
  }
}

static double at_or_zero(const sampling *s, const kiln__cpu_texels *l, long x,
                         long y, long z, int channel)
{
  const uint8_t *at;

  if (x < 0 || y < 0 || z < 0)
    return (double)s->t.border[channel];
  at = l->data + (size_t)z * l->plane_bytes + (size_t)y * l->row_bytes +
       (size_t)x * l->texel_bytes;
  return channel_value(s, l, at, channel);
}

/* ---- The reference ------------------------------------------------------- */

/* Two texels along one axis, and the weight of the second texel. The index -1
 * stands for the border colour. */
typedef struct axis {
  long texel[2];
  double weight;
} axis;

static long clip(long i, long n, kiln__cpu_address_mode mode)
{
  if (i >= 0 && i < n)
    return i;
  if (mode == KILN__BORDER)
    return -1;
  if (mode == KILN__WRAP)
    /* Wrapping has already been applied to the coordinate, so the index is at
     * most one texel out of range. */
    return i < 0 ? n - 1 : 0;
  return i < 0 ? 0 : n - 1;
}

static axis along(double x, long n, kiln__cpu_address_mode mode,
                  bool normalised, bool linear)
{
  axis a = {{0, 0}, 0};
  double low;

  if (!normalised && (mode == KILN__WRAP || mode == KILN__MIRROR))
    mode = KILN__CLAMP;
  if (mode == KILN__WRAP) {
    x -= floor(x);
  } else if (mode == KILN__MIRROR) {
    const bool odd = fmod(floor(x), 2) != 0;

    x -= floor(x);
    x = odd ? 1 - x : x;
  }
  if (normalised)
    x *= (double)n;
  if (mode == KILN__CLAMP)
    x = fmin(fmax(x, 0), (double)n);
  if (mode == KILN__MIRROR && !linear && x >= (double)n)
    /* A mirrored coordinate may be equal to the size, and then the last texel
     * is used. */
    x = (double)n - 0.5;
  if (!linear) {
    a.texel[0] = a.texel[1] = clip((long)floor(x), n, mode);
    return a;
  }
  low = floor(x - 0.5);
  a.weight = floor((x - 0.5 - low) * 256 + 0.5) / 256;
  a.texel[0] = clip((long)low, n, mode);
  a.texel[1] = clip((long)low + 1, n, mode);
  return a;
}

static double mix(double a, double b, double weight)
{
  return weight == 0 ? a : weight == 1 ? b : a * (1 - weight) + b * weight;
}

static double box(const sampling *s, const kiln__cpu_texels *l, const axis a[3],
                  long plane, int channel)
{
  double z[2];

  for (int k = 0; k < 2; k++) {
    double y[2];

    for (int j = 0; j < 2; j++) {
      double x[2];

      for (int i = 0; i < 2; i++)
        x[i] =
            at_or_zero(s, l, a[0].texel[i], a[1].texel[j],
                       a[2].texel[k] < 0 ? -1 : plane + a[2].texel[k], channel);
      y[j] = mix(x[0], x[1], a[0].weight);
    }
    z[k] = mix(y[0], y[1], a[1].weight);
  }
  return mix(z[0], z[1], a[2].weight);
}

/* Selects the cube face with the table in the CUDA C++ Programming Guide. */
static int cube_face(const double v[3], double *s, double *t)
{
  const double ax = fabs(v[0]), ay = fabs(v[1]), az = fabs(v[2]);
  double m, sc, tc;
  int face;

  if (ax >= ay && ax >= az) {
    face = v[0] < 0, m = ax, sc = v[0] < 0 ? v[2] : -v[2], tc = -v[1];
  } else if (ay >= az) {
    face = 2 + (v[1] < 0), m = ay, sc = v[0], tc = v[1] < 0 ? -v[2] : v[2];
  } else {
    face = 4 + (v[2] < 0), m = az, sc = v[2] < 0 ? -v[0] : v[0], tc = -v[1];
  }
  *s = (sc / m + 1) / 2;
  *t = (tc / m + 1) / 2;
  return face;
}

/* Computes one channel of the texture at a coordinate in one mip level. */
static double reference(const sampling *s, const shape_info *shape,
                        const kiln__cpu_texels *l, const double at[3],
                        uint32_t layer, int channel)
{
  const kiln__cpu_texture *t = &s->t;
  const bool linear = t->linear_filter && s->floats;
  const long size[3] = {l->width, l->height == 0 ? 1 : l->height,
                        l->depth == 0 ? 1 : l->depth};
  const long each = shape->cube ? CUBE : 1;
  axis a[3] = {{{0, 0}, 0}, {{0, 0}, 0}, {{0, 0}, 0}};
  long plane = 0;

  if (shape->layered) {
    plane = (long)l->layers / each - 1;
    plane = (layer < (uint32_t)plane ? (long)layer : plane) * each;
  }
  if (shape->cube) {
    double u, v;

    plane += cube_face(at, &u, &v);
    a[0] = along(u, size[0], KILN__CLAMP, true, linear);
    a[1] = along(v, size[1], KILN__CLAMP, true, linear);
  } else {
    for (int i = 0; i < shape->dimensions; i++)
      a[i] = along(at[i], size[i], t->mode[i], t->normalised, linear);
  }
  return box(s, l, a, plane, channel);
}

static void check_value(const sampling *s, uint32_t got, double want,
                        const char *what)
{
  if (!s->floats) {
    ck_assert_msg(got == (uint32_t)want, "%s: got %u, want %.0f", what, got,
                  want);
    return;
  }
  ck_assert_msg(fabs((double)float_of(got) - want) <=
                    1e-7 * fabs(want) + 2e-5 * (s->t.srgb ? 1 : 1e-2),
                "%s: got %.9g, want %.9g", what, (double)float_of(got), want);
}

/* ---- Every texture shape, mode, filter and format ------------------------ */

static kiln__cpu_texels texels_of_shape(const shape_info *shape,
                                        kiln__cpu_texel texel, int channels)
{
  kiln__cpu_texels t;

  if (shape->cube) {
    t = make_texels(texel, channels, 5, 5, 0, shape->layered ? 3 * CUBE : CUBE);
    t.cube = true;
    return t;
  }
  return make_texels(texel, channels, 7, shape->dimensions > 1 ? 5 : 0,
                     shape->dimensions > 2 ? 3 : 0, shape->layered ? 4 : 0);
}

/* Returns coordinates at texel centres, edges, between texels, and far outside.
 * All coordinates are exact in binary, so rounding never selects another
 * texel. */
static float random_coordinate(const sampling *s, bool cube, long n)
{
  const double texel =
      (double)(int)(test_random(&seed) % 4096 - 1024) / 2048 * (double)n * 2;
  const double x = floor(texel * 64) / 64;

  if (cube)
    return (float)((double)(int)(test_random(&seed) % 257 - 128) / 64);
  return (float)(s->t.normalised ? x / (double)n : x);
}

static void fill_requests(const sampling *s, const shape_info *shape,
                          request *r)
{
  const kiln__cpu_texels *l = &s->t.level[0];
  const long size[3] = {l->width, l->height, l->depth};
  const int first = shape->layered;

  for (int i = 0; i < THREADS; i++) {
    r[i] = (request){0};
    if (shape->layered)
      r[i].c[0] = i == 5 ? 1000000 : (uint32_t)(test_random(&seed) % 6);
    for (int k = 0; k < shape->dimensions; k++)
      r[i].c[first + k] = bits_of(random_coordinate(s, shape->cube, size[k]));
    if (shape->cube && i % 3 == 0)
      r[i].c[first + (int)(test_random(&seed) % 3)] = bits_of(5);
    if (shape->cube && float_of(r[i].c[first]) == 0)
      r[i].c[first] = bits_of(.25f);
  }
}

static void check_shape(const sampling *s, const shape_info *shape,
                        uint64_t handle)
{
  const int first = shape->layered;
  request r[THREADS];
  const uint32_t(*got)[4];

  fill_requests(s, shape, r);
  got = run(handle, r);
  for (int i = 0; i < THREADS; i++) {
    double at[3] = {0, 0, 0};
    char what[200];

    for (int k = 0; k < shape->dimensions; k++)
      at[k] = (double)float_of(r[i].c[first + k]);
    for (int c = 0; c < 4; c++) {
      snprintf(what, sizeof what,
               "%s mode %d linear %d normalised %d texel %d x%d integer %d "
               "channel %d at %g %g %g layer %u",
               shape->name, s->t.mode[0], s->t.linear_filter, s->t.normalised,
               s->t.level[0].texel, s->t.level[0].channels, s->t.as_integer, c,
               at[0], at[1], at[2], r[i].c[0]);
      check_value(s, got[i][c],
                  reference(s, shape, &s->t.level[0], at, r[i].c[0], c), what);
    }
  }
}

static bool texel_floats(kiln__cpu_texel texel, bool as_integer)
{
  return texel == KILN__TEXEL_F16 || texel == KILN__TEXEL_F32 ||
         (texel != KILN__TEXEL_U32 && texel != KILN__TEXEL_S32 && !as_integer);
}

static void every_setting(const shape_info *shape, kiln__cpu_address_mode mode,
                          kiln__cpu_texel texel, int channels)
{
  sampling s = {.t = {.n_levels = 1, .border = {.5f, -2, 3, .25f}}};
  const kiln__cpu_texels texels = texels_of_shape(shape, texel, channels);

  for (unsigned bits = 0; bits < 16; bits++) {
    uint64_t handle;

    s.t.level[0] = texels;
    s.t.mode[0] = mode;
    s.t.mode[1] = (bits & 1) != 0 ? mode : KILN__CLAMP;
    s.t.mode[2] = mode;
    s.t.linear_filter = (bits & 1) != 0;
    s.t.normalised = (bits & 2) != 0 || shape->cube;
    s.t.as_integer = (bits & 4) != 0;
    s.t.srgb = (bits & 8) != 0;
    s.floats = texel_floats(texel, s.t.as_integer);
    if (!s.floats) {
      s.t.border[0] = s.t.border[1] = s.t.border[2] = s.t.border[3] = 0;
    }
    if (s.t.srgb && texel != KILN__TEXEL_U8)
      continue;
    ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
    check_shape(&s, shape, handle);
    ck_assert(kiln__cpu_texture_remove(table, handle));
    s.t.border[0] = .5f;
  }
}

static const char *coordinates_of(const shape_info *shape)
{
  static const char *const plain[] = {"", "{f0}", "{f0,f1}", "{f0,f1,f2,f2}"};
  static const char *const layered[] = {"", "{c0,f1}", "{c0,f1,f2,f2}",
                                        "{c0,f1,f2,f3}"};

  return (shape->layered ? layered : plain)[shape->dimensions];
}

START_TEST(samples_are_those_of_the_manual)
{
  const shape_info *shape = &shapes[_i / 4];

  load_kernel("", "tex.%s.v4.u32.f32 {r0,r1,r2,r3}, [h, %s];", shape->name,
              coordinates_of(shape));
  for (int texel = 0; texel <= KILN__TEXEL_F32; texel++) {
    for (int channels = 1; channels <= 4; channels *= 2)
      every_setting(shape, (kiln__cpu_address_mode)(_i % 4),
                    (kiln__cpu_texel)texel, channels);
  }
}
END_TEST

/* ---- Mip levels ---------------------------------------------------------- */

static void make_levels(sampling *s, const shape_info *shape)
{
  uint32_t size = 16;

  s->t.n_levels = 4;
  s->t.normalised = true;
  s->t.max_level = 10;
  s->floats = true;
  for (uint32_t i = 0; i < 4; i++, size /= 2) {
    const uint32_t layers = shape->cube      ? (shape->layered ? 12 : 6)
                            : shape->layered ? 3
                                             : 0;

    s->t.level[i] =
        make_texels(KILN__TEXEL_F32, 2, size, shape->dimensions > 1 ? size : 0,
                    shape->dimensions > 2 && !shape->cube ? size : 0, layers);
    s->t.level[i].cube = shape->cube;
  }
}

static void check_levels(const sampling *s, const shape_info *shape,
                         const request *r, const double *level,
                         const uint32_t (*got)[4])
{
  for (int i = 0; i < THREADS; i++) {
    double at[3] = {0, 0, 0}, l = level[i] + (double)s->t.level_bias, f;
    char what[100];
    int base;

    for (int k = 0; k < shape->dimensions; k++)
      at[k] = (double)float_of(r[i].c[shape->layered + k]);
    l = fmin(fmax(l, (double)s->t.min_level), (double)s->t.max_level);
    l = fmin(fmax(l, 0), 3);
    base = (int)(s->t.linear_mipmap ? floor(l) : floor(l + .5));
    f = s->t.linear_mipmap ? floor((l - base) * 256 + .5) / 256 : 0;
    for (int c = 0; c < 2; c++) {
      const double low =
          reference(s, shape, &s->t.level[base], at, r[i].c[0], c);
      const double high = reference(
          s, shape, &s->t.level[base < 3 ? base + 1 : 3], at, r[i].c[0], c);

      snprintf(what, sizeof what, "%s level %g (%g), channel %d", shape->name,
               level[i], l, c);
      check_value(s, got[i][c], mix(low, high, f), what);
    }
  }
}

/* Changes the mip-level settings: linear filtering between levels, bias and
 * clamps. */
static void level_setting(sampling *s, unsigned bits)
{
  s->t.linear_filter = (bits & 1) != 0;
  s->t.linear_mipmap = (bits & 2) != 0;
  s->t.level_bias = (bits & 4) != 0 ? .75f : 0;
  s->t.min_level = (bits & 8) != 0 ? .5f : 0;
  s->t.max_level = (bits & 8) != 0 ? 2.25f : 10;
}

START_TEST(levels_are_chosen_and_mixed)
{
  const shape_info *shape = &shapes[_i];
  sampling s = {0};

  load_kernel("", "tex.level.%s.v4.f32.f32 {r0,r1,r2,r3}, [h, %s], g0;",
              shape->name, coordinates_of(shape));
  make_levels(&s, shape);
  for (unsigned bits = 0; bits < 16; bits++) {
    double level[THREADS];
    request r[THREADS];
    uint64_t handle;

    level_setting(&s, bits);
    ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
    fill_requests(&s, shape, r);
    for (int i = 0; i < THREADS; i++) {
      level[i] = (double)(int)(test_random(&seed) % 640 - 128) / 128;
      r[i].x[0] = bits_of((float)level[i]);
    }
    check_levels(&s, shape, r, level, run(handle, r));
  }
}
END_TEST

/* Tests that gradients select the mip level. All gradients are powers of two,
 * so they select whole levels. The longer gradient determines the level. */
START_TEST(gradients_choose_the_level)
{
  static const char *const vectors[] = {"{g0}, {g1}", "{g0,g2}, {g1,g2}",
                                        "{g0,g2,g2,g2}, {g2,g1,g2,g2}"};
  const shape_info *shape = &shapes[_i];
  sampling s = {0};
  double level[THREADS];
  request r[THREADS];
  uint64_t handle;

  load_kernel("",
              "mov.f32 g2, 0f00000000; "
              "tex.grad.%s.v4.f32.f32 {r0,r1,r2,r3}, [h, %s], %s;",
              shape->name, coordinates_of(shape),
              vectors[shape->dimensions - 1]);
  make_levels(&s, shape);
  ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
  fill_requests(&s, shape, r);
  for (int i = 0; i < THREADS; i++) {
    const int a = (int)(test_random(&seed) % 6) - 1;
    const int b = (int)(test_random(&seed) % 6) - 1;

    level[i] = a > b ? a : b;
    r[i].x[0] = bits_of(-(float)ldexp(1. / 16, a));
    r[i].x[1] = bits_of((float)ldexp(1. / 16, b));
    if (!shape->cube)
      continue;
    /* On a cube map with 16 texels per axis, 8 texels correspond to the length
     * of the major axis. */
    for (int k = 0; k < 3; k++)
      r[i].c[shape->layered + k] = bits_of(k == i % 3 ? 2.f : .25f);
    level[i] += 0; /* The gradient is 1/16 * 8 / 2, a quarter of a texel. */
    level[i] -= 2;
  }
  check_levels(&s, shape, r, level, run(handle, r));
}
END_TEST

/* ---- Gather -------------------------------------------------------------- */

START_TEST(gather_takes_the_four_texels_around)
{
  static const int order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  const shape_info *shape = &shapes[_i / 4 == 0   ? 1
                                    : _i / 4 == 1 ? 4
                                    : _i / 4 == 2 ? 5
                                                  : 6];
  const int component = _i % 4;
  sampling s = {.t = {.n_levels = 1, .normalised = true}, .floats = true};
  request r[THREADS];
  const uint32_t(*got)[4];
  uint64_t handle;

  load_kernel("", "tld4.%c.%s.v4.f32.f32 {r0,r1,r2,r3}, [h, %s];",
              "rgba"[component], shape -> name, coordinates_of(shape));
  s.t.level[0] = texels_of_shape(shape, KILN__TEXEL_F32, 4);
  s.t.mode[0] = KILN__WRAP;
  s.t.mode[1] = KILN__BORDER;
  ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
  fill_requests(&s, shape, r);
  got = run(handle, r);
  for (int i = 0; i < THREADS; i++) {
    const kiln__cpu_texels *l = &s.t.level[0];
    const int first = shape->layered;
    double at[3] = {(double)float_of(r[i].c[first]),
                    (double)float_of(r[i].c[first + 1]),
                    (double)float_of(r[i].c[(first + 2) % 4])};
    const uint32_t layers = l->layers / (shape->cube ? CUBE : 1);
    uint32_t plane =
        shape->layered ? (r[i].c[0] < layers ? r[i].c[0] : layers - 1) : 0;
    double u = at[0], v = at[1];
    axis x, y;

    if (shape->cube)
      plane = plane * CUBE + (uint32_t)cube_face(at, &u, &v);
    /* tld4 must return the four texels that linear filtering uses. If a weight
     * is rounded to one, the position of these texels moves by one. */
    x = along(u, l->width, shape->cube ? KILN__CLAMP : KILN__WRAP, true, true);
    y = along(v, l->height, shape->cube ? KILN__CLAMP : KILN__BORDER, true,
              true);
    if (x.weight == 1 || y.weight == 1)
      continue;
    for (int k = 0; k < 4; k++)
      check_value(&s, got[i][k],
                  at_or_zero(&s, l, x.texel[order[k][0]], y.texel[order[k][1]],
                             plane, component),
                  shape->name);
  }
}
END_TEST

/* ---- Textures in linear and pitched memory ------------------------------- */

START_TEST(linear_memory_is_fetched_by_index)
{
  const uint64_t at = (load_kernel("", "tex.1d.v4.s32.s32 {r0,r1,r2,r3}, "
                                       "[h, {c0}];"),
                       cpu_ptx_buffer(&cpu, NULL, 400));
  int32_t *values = cpu_ptx_at(&cpu, at, 400);
  kiln__cpu_texture t = {.n_levels = 1,
                         .level[0] = {.data = (uint8_t *)values,
                                      .address = at,
                                      .width = 100,
                                      .row_bytes = 400,
                                      .plane_bytes = 400,
                                      .texel = KILN__TEXEL_S32,
                                      .channels = 1,
                                      .texel_bytes = 4}};
  request r[THREADS] = {{{0}, {0}}};
  const uint32_t(*got)[4];
  uint64_t handle;

  for (int i = 0; i < 100; i++)
    values[i] = i * 7 - 300;
  ck_kiln_ok(kiln__cpu_texture_add(table, &t, &handle));
  for (int i = 0; i < THREADS; i++)
    r[i].c[0] = (uint32_t)(i * 2 - 40);
  got = run(handle, r);
  for (int i = 0; i < THREADS; i++) {
    const int x = i * 2 - 40;
    const bool inside = x >= 0 && x < 100;

    ck_assert_int_eq((int32_t)got[i][0], inside ? x * 7 - 300 : 0);
    ck_assert_int_eq((int32_t)got[i][3], inside);
  }
  ck_assert(kiln__cpu_memory_remove(cpu.memory, at));
  run_fails(handle, r, KILN__FAULT_ADDRESS);
}
END_TEST

/* With integer coordinates, a texture on an array returns unfiltered texels. */
START_TEST(arrays_are_fetched_by_index)
{
  sampling s = {.t = {.n_levels = 1, .linear_filter = true}, .floats = true};
  request r[THREADS];
  const uint32_t(*got)[4];
  uint64_t handle;

  load_kernel("", "tex.2d.v4.f32.s32 {r0,r1,r2,r3}, [h, {c0,c1}];");
  s.t.level[0] = make_texels(KILN__TEXEL_S16, 2, 9, 6, 0, 0);
  s.t.mode[0] = KILN__BORDER;
  s.t.mode[1] = KILN__CLAMP;
  ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
  for (int i = 0; i < THREADS; i++)
    r[i] = (request){.c = {(uint32_t)(i % 13 - 2), (uint32_t)(i / 10 - 2)}};
  got = run(handle, r);
  for (int i = 0; i < THREADS; i++) {
    const long x = i % 13 - 2, y = i / 10 - 2;

    for (int c = 0; c < 4; c++)
      check_value(&s, got[i][c],
                  at_or_zero(&s, &s.t.level[0], x < 0 || x > 8 ? -1 : x,
                             y < 0   ? 0
                             : y > 5 ? 5
                                     : y,
                             0, c),
                  "2d by index");
  }
}
END_TEST

/* ---- Seamless cube maps -------------------------------------------------- */

/* The cube map contains a linear function of the direction. With seamless
 * filtering, the results near an edge must be close to this function. Without
 * seamless filtering, they differ by up to half a texel. */
START_TEST(seams_of_cubes_are_filtered_over)
{
  enum { SIZE = 64 };
  static const double axes[CUBE][3][3] = {
      {{1, 0, 0}, {0, 0, -1}, {0, -1, 0}}, {{-1, 0, 0}, {0, 0, 1}, {0, -1, 0}},
      {{0, 1, 0}, {1, 0, 0}, {0, 0, 1}},   {{0, -1, 0}, {1, 0, 0}, {0, 0, -1}},
      {{0, 0, 1}, {1, 0, 0}, {0, -1, 0}},  {{0, 0, -1}, {-1, 0, 0}, {0, -1, 0}},
  };
  sampling s = {.t = {.n_levels = 1,
                      .normalised = true,
                      .linear_filter = true,
                      .seamless_cube = _i != 0},
                .floats = true};
  request r[THREADS];
  double worst = 0;
  const uint32_t(*got)[4];
  uint64_t handle;

  load_kernel("", "tex.cube.v4.f32.f32 {r0,r1,r2,r3}, [h, {f0,f1,f2,f2}];");
  s.t.level[0] = make_texels(KILN__TEXEL_F32, 1, SIZE, SIZE, 0, CUBE);
  s.t.level[0].cube = true;
  for (int face = 0; face < CUBE; face++) {
    for (int y = 0; y < SIZE; y++) {
      for (int x = 0; x < SIZE; x++) {
        const double u = (2. * x + 1) / SIZE - 1, v = (2. * y + 1) / SIZE - 1;
        double d[3];
        float f;

        for (int k = 0; k < 3; k++)
          d[k] = axes[face][0][k] + u * axes[face][1][k] + v * axes[face][2][k];
        f = (float)(d[0] + 2 * d[1] + 4 * d[2]);
        memcpy(s.t.level[0].data + (size_t)face * s.t.level[0].plane_bytes +
                   (size_t)y * s.t.level[0].row_bytes + (size_t)x * 4,
               &f, sizeof f);
      }
    }
  }
  ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
  for (int i = 0; i < THREADS; i++) {
    const int a = i % 3, b = (i + 1 + i / 3 % 2) % 3, c = 3 - a - b;

    r[i] = (request){0};
    r[i].c[a] = bits_of(i % 2 != 0 ? 1.f : -1.f);
    r[i].c[b] = bits_of((i / 2 % 2 != 0 ? 1 : -1) * (1 - 1.f / 512));
    r[i].c[c] = bits_of((float)(i % 7 - 3) / 4);
  }
  got = run(handle, r);
  for (int i = 0; i < THREADS; i++) {
    const double want = (double)float_of(r[i].c[0]) +
                        2 * (double)float_of(r[i].c[1]) +
                        4 * (double)float_of(r[i].c[2]);

    worst = fmax(worst, fabs((double)float_of(got[i][0]) - want));
  }
  /* Half a texel corresponds to 1/64. The function is not linear across an
   * edge. */
  if (_i != 0)
    ck_assert_msg(worst < 4. / 64 * .8, "seamless: %g", worst);
  else
    ck_assert_msg(worst > 4. / 64 * .8, "with seams: %g", worst);
}
END_TEST

START_TEST(corners_of_cubes_are_means_of_three)
{
  sampling s = {.t = {.n_levels = 1,
                      .normalised = true,
                      .linear_filter = true,
                      .seamless_cube = true},
                .floats = true};
  request r[THREADS];
  const kiln__cpu_texels *l = &s.t.level[0];
  double sum = 0;
  uint64_t handle;

  load_kernel("", "tex.cube.v4.f32.f32 {r0,r1,r2,r3}, [h, {f0,f1,f2,f2}];");
  s.t.level[0] = make_texels(KILN__TEXEL_F32, 1, 4, 4, 0, CUBE);
  s.t.level[0].cube = true;
  ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
  for (int i = 0; i < THREADS; i++)
    r[i] = (request){.c = {bits_of(1), bits_of(1), bits_of(1)}};
  /* At the corner of +x, +y and +z, filtering uses the texels of the three
   * faces at this corner and their mean. */
  sum = at_or_zero(&s, l, 0, 0, 0, 0) + at_or_zero(&s, l, 3, 3, 2, 0) +
        at_or_zero(&s, l, 3, 0, 4, 0);
  check_value(&s, run(handle, r)[7][0], sum / 3, "corner");
}
END_TEST

/* ---- Non-finite and very large coordinates ------------------------------- */

START_TEST(any_coordinate_is_survived)
{
  static const uint32_t strange[] = {
      0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff, 0xff7fffff, 0x80000000,
      1,          0x5f000000, 0xdf000000, 0x4effffff, 0x53000001, 0xd3000001};
  const shape_info *shape = &shapes[_i];
  sampling s = {0};

  load_kernel("", "tex.grad.%s.v4.f32.f32 {r0,r1,r2,r3}, [h, %s], %s;",
              shape->name, coordinates_of(shape),
              shape->dimensions == 1   ? "{g0}, {g1}"
              : shape->dimensions == 2 ? "{g0,g1}, {g2,g3}"
                                       : "{g0,g1,g2,g2}, {g3,g1,g2,g2}");
  make_levels(&s, shape);
  for (unsigned mode = 0; mode < 16; mode++) {
    request r[THREADS];
    uint64_t handle;

    for (int k = 0; k < 3; k++)
      s.t.mode[k] = (kiln__cpu_address_mode)(mode % 4);
    s.t.linear_filter = s.t.linear_mipmap = (mode & 4) != 0;
    s.t.normalised = (mode & 8) != 0;
    s.t.seamless_cube = true;
    ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
    for (int i = 0; i < THREADS; i++) {
      for (int k = 0; k < 4; k++) {
        r[i].c[k] = strange[test_random(&seed) % 12];
        r[i].x[k] = strange[test_random(&seed) % 12];
      }
    }
    (void)run(handle, r);
  }
}
END_TEST

/* ---- Queries, references ------------------------------------------------- */

static uint32_t queried(const char *query, uint64_t handle)
{
  const request r[THREADS] = {{{0}, {1}}};
  kiln__cpu_textures *const keep = table;
  const cpu_ptx old = cpu;
  uint32_t result;

  load_kernel("", "%s;", query);
  kiln__cpu_textures_free(table);
  table = keep;
  cpu.launch.textures = keep;
  result = run(handle, r)[3][0];
  cpu_ptx_free(&cpu);
  cpu = old;
  return result;
}

START_TEST(queries_tell_what_was_made)
{
  kiln__cpu_texture t = {.n_levels = 2, .normalised = true};
  kiln__cpu_surface s;
  uint64_t texture, surface;

  load_kernel("", "%s", "");
  t.level[0] = make_texels(KILN__TEXEL_S16, 2, 12, 10, 0, 12);
  t.level[0].cube = true;
  t.level[1] = t.level[0];
  t.level[1].width = 6;
  t.level[1].height = 5;
  s.texels = make_texels(KILN__TEXEL_F16, 4, 9, 7, 3, 0);
  ck_kiln_ok(kiln__cpu_texture_add(table, &t, &texture));
  ck_kiln_ok(kiln__cpu_surface_add(table, &s, &surface));
  ck_assert_uint_eq(queried("txq.width.b32 r0, [h]", texture), 12);
  ck_assert_uint_eq(queried("txq.height.b32 r0, [h]", texture), 10);
  ck_assert_uint_eq(queried("txq.depth.b32 r0, [h]", texture), 0);
  ck_assert_uint_eq(queried("txq.level.width.b32 r0, [h], 1", texture), 6);
  ck_assert_uint_eq(queried("txq.level.height.b32 r0, [h], t", texture), 5);
  ck_assert_uint_eq(queried("txq.array_size.b32 r0, [h]", texture), 2);
  ck_assert_uint_eq(queried("txq.num_mipmap_levels.b32 r0, [h]", texture), 2);
  ck_assert_uint_eq(queried("txq.num_samples.b32 r0, [h]", texture), 1);
  ck_assert_uint_eq(queried("txq.normalized_coords.b32 r0, [h]", texture), 1);
  ck_assert_uint_eq(queried("txq.channel_order.b32 r0, [h]", texture), 2);
  ck_assert_uint_eq(queried("txq.channel_data_type.b32 r0, [h]", texture), 9);
  ck_assert_uint_eq(queried("suq.width.b32 r0, [h]", surface), 9);
  ck_assert_uint_eq(queried("suq.height.b32 r0, [h]", surface), 7);
  ck_assert_uint_eq(queried("suq.depth.b32 r0, [h]", surface), 3);
  ck_assert_uint_eq(queried("suq.array_size.b32 r0, [h]", surface), 0);
  ck_assert_uint_eq(queried("suq.channel_order.b32 r0, [h]", surface), 4);
  ck_assert_uint_eq(queried("suq.channel_data_type.b32 r0, [h]", surface),
                    0x10);
}
END_TEST

START_TEST(references_hold_a_handle)
{
  sampling s = {.t = {.n_levels = 1}, .floats = true};
  request r[THREADS];
  const uint32_t(*got)[4];
  uint64_t handle;

  load_kernel(".global .texref picture;",
              "tex.2d.v4.f32.f32 {r0,r1,r2,_}, [picture, {f0,f1}];\n"
              "mov.u64 d0, picture; tex.2d.v4.u32.f32 {_,_,_,r3}, "
              "[d0, {f0,f1}];");
  s.t.level[0] = make_texels(KILN__TEXEL_F32, 4, 6, 5, 0, 0);
  ck_kiln_ok(kiln__cpu_texture_add(table, &s.t, &handle));
  for (int i = 0; i < THREADS; i++)
    r[i] =
        (request){.c = {bits_of((float)(i % 6)), bits_of((float)(i / 6 % 5))}};
  /* The launch must fail, because no texture is bound. */
  run_fails(0, r, KILN__FAULT_INSTRUCTION);
  memcpy(cpu_ptx_at(&cpu, cpu_ptx_global(&cpu, "picture"), 8), &handle, 8);
  got = run(0, r);
  for (int i = 0; i < THREADS; i++) {
    for (int c = 0; c < 4; c++)
      check_value(&s, got[i][c],
                  at_or_zero(&s, &s.t.level[0], i % 6, i / 6 % 5, 0, c),
                  "reference");
  }
}
END_TEST

START_TEST(handles_survive_want_of_memory)
{
  test_allocator memory;
  const kiln__cpu_texture t = {.n_levels = 1};
  uint64_t handles[40] = {0};
  kiln__cpu_textures *some;

  test_allocator_init(&memory);
  memory.fail_at = 0;
  ck_kiln_is(kiln__cpu_textures_create(&some, &memory.alloc), KILN_ENOMEM);
  ck_assert_ptr_null(some);
  memory.fail_at = -1;
  ck_kiln_ok(kiln__cpu_textures_create(&some, &memory.alloc));
  for (int i = 0; i < 40; i++) {
    for (long at = 0; handles[i] == 0; at++) {
      memory.calls = 0;
      memory.fail_at = at;
      if (kiln__cpu_texture_add(some, &t, &handles[i]) != KILN_OK)
        ck_assert_uint_eq(handles[i], 0);
    }
  }
  for (int i = 0; i < 40; i++) {
    ck_assert_ptr_nonnull(kiln__cpu_texture_find(some, handles[i]));
    ck_assert_ptr_null(kiln__cpu_surface_find(some, handles[i]));
    for (int k = 0; k < i; k++)
      ck_assert_uint_ne(handles[i], handles[k]);
  }
  ck_assert(kiln__cpu_texture_remove(some, handles[3]));
  ck_assert(!kiln__cpu_texture_remove(some, handles[3]));
  ck_assert_ptr_null(kiln__cpu_texture_find(some, handles[3]));
  ck_assert_ptr_null(kiln__cpu_texture_find(some, 0));
  ck_assert_ptr_null(kiln__cpu_texture_find(some, UINT64_MAX));
  kiln__cpu_textures_free(some);
  ck_assert_int_eq(memory.live, 0);
  kiln__cpu_textures_free(NULL);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_texture");
  TCase *t = kiln_test_case(
      s, "texture", 120, NULL, unload,
      TESTS(linear_memory_is_fetched_by_index, arrays_are_fetched_by_index,
            corners_of_cubes_are_means_of_three, queries_tell_what_was_made,
            references_hold_a_handle, handles_survive_want_of_memory));

  tcase_add_loop_test(t, samples_are_those_of_the_manual, 0, 4 * N_SHAPES);
  kiln_test_loops(t, N_SHAPES,
                  TESTS(levels_are_chosen_and_mixed, gradients_choose_the_level,
                        any_coordinate_is_survived));
  tcase_add_loop_test(t, gather_takes_the_four_texels_around, 0, 16);
  tcase_add_loop_test(t, seams_of_cubes_are_filtered_over, 0, 2);
  return kiln_test_run(s);
}
