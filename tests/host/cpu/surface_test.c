/* surface_test.c -- tests loads, stores and reductions on surfaces, byte by
 * byte. */
#include "texture.h"

/* ---- Surfaces ------------------------------------------------------------ */

static const struct {
  const char *type;
  uint32_t bytes; /* size of one element in bytes */
  uint32_t n;
} widths[] = {{"b8", 1, 1},     {"b16", 2, 1},    {"b32", 4, 1},
              {"b64", 8, 1},    {"v2.b8", 1, 2},  {"v2.b16", 2, 2},
              {"v2.b32", 4, 2}, {"v2.b64", 8, 2}, {"v4.b8", 1, 4},
              {"v4.b16", 2, 4}, {"v4.b32", 4, 4}};
enum { N_WIDTHS = sizeof widths / sizeof *widths };
static const char *const clamps[] = {"zero", "clamp", "trap"};
static const shape_info *const surface_shapes[] = {
    &shapes[0], &shapes[1], &shapes[2], &shapes[3], &shapes[4]};

/* Writes the body of a kernel that loads `width` elements into r0 to r3, or
 * stores x0 to x3. */
static void surface_body(char *body, size_t size, const shape_info *shape,
                         int width, const char *clamp, bool store)
{
  static const char *const plain[] = {"", "{c0}", "{c0,c1}", "{c0,c1,c2,c2}"};
  static const char *const layered[] = {"", "{c0,c1}", "{c0,c1,c2,c2}", ""};
  static const char *const registers[] = {"", "{s0,s1,s2,s3}", "{r0,r1,r2,r3}",
                                          "{d0,d1}"};
  const int kind = widths[width].bytes == 8   ? 3
                   : widths[width].bytes == 4 ? 2
                                              : 1;
  const char *at = (shape->layered ? layered : plain)[shape->dimensions];
  char list[32];

  snprintf(list, sizeof list, "%.*s}",
           widths[width].n == 1   ? 3
           : widths[width].n == 2 ? 6
                                  : 12,
           registers[kind]);
  if (store)
    snprintf(body, size,
             "mov.b32 {s0,s1}, x0; mov.b32 {s2,s3}, x1; mov.b64 d0, {x0,x1};\n"
             "mov.b64 d1, {x2,x3}; mov.u32 r0, x0; mov.u32 r1, x1;\n"
             "mov.u32 r2, x2; mov.u32 r3, x3;\n"
             "sust.b.%s.%s.%s [h, %s], %s;",
             shape->name, widths[width].type, clamp, at, list);
  else
    snprintf(body, size,
             "mov.u16 s0, 0; mov.u16 s1, 0; mov.u16 s2, 0; mov.u16 s3, 0;\n"
             "mov.u64 d0, 0; mov.u64 d1, 0;\nsuld.b.%s.%s.%s %s, [h, %s];\n",
             shape->name, widths[width].type, clamp, list, at);
  if (!store && kind == 1)
    strcat(body, "mov.b32 r0, {s0,s1}; mov.b32 r1, {s2,s3};");
  if (!store && kind == 3)
    strcat(body, "mov.b64 {r0,r1}, d0; mov.b64 {r2,r3}, d1;");
}

/* Returns the surface offset of the bytes that a thread accesses, or -1 if its
 * coordinates are out of bounds. */
static long place_of(const kiln__cpu_texels *t, const shape_info *shape,
                     const request *r, uint32_t bytes, bool clamp)
{
  const int first = shape->layered;
  const long row = (long)t->width * t->texel_bytes;
  const long rows = t->height == 0 ? 1 : t->height;
  const long planes = t->layers > 0 ? t->layers : t->depth > 0 ? t->depth : 1;
  long x = (int32_t)r->c[first], y = 0, z = 0;

  if (shape->dimensions > 1)
    y = (int32_t)r->c[first + 1];
  if (shape->layered || shape->dimensions > 2)
    z = (int32_t)r->c[shape->layered ? 0 : 2];
  if (!clamp &&
      (x < 0 || x + bytes > row || y < 0 || y >= rows || z < 0 || z >= planes))
    return -1;
  x = x < 0 ? 0 : x + bytes > row ? row - bytes : x;
  y = y < 0 ? 0 : y >= rows ? rows - 1 : y;
  z = z < 0 ? 0 : z >= planes ? planes - 1 : z;
  return z * (long)t->plane_bytes + y * (long)t->row_bytes + x;
}

static void surface_requests(const kiln__cpu_texels *t, const shape_info *shape,
                             uint32_t bytes, bool outside, request *r)
{
  const long row = (long)t->width * t->texel_bytes / bytes;
  const int first = shape->layered;
  const uint32_t beyond = outside ? 3 : 0;

  for (int i = 0; i < THREADS; i++) {
    const long x =
        (long)(test_random(&seed) % (uint64_t)(row + 2 * beyond)) - beyond;

    r[i] = (request){0};
    r[i].c[first] = (uint32_t)(x * bytes);
    if (shape->dimensions > 1)
      r[i].c[first + 1] =
          (uint32_t)(test_random(&seed) % (t->height + 2 * beyond)) - beyond;
    if (shape->layered || shape->dimensions > 2)
      r[i].c[shape->layered ? 0 : 2] =
          (uint32_t)(test_random(&seed) %
                     ((t->layers > 0 ? t->layers : t->depth) + 2 * beyond)) -
          beyond;
    for (int k = 0; k < 4; k++)
      r[i].x[k] = (uint32_t)test_random(&seed);
  }
}

/* Returns one byte of the registers of a thread. An element of 8 bits occupies
 * 16 bits in a register. */
static uint32_t element_byte(const uint32_t word[4], int width, uint32_t byte)
{
  const uint32_t each = widths[width].bytes;
  const uint32_t lane = each < 2 ? 2 : each;
  const uint32_t at = byte / each * lane + byte % each;

  return word[at / 4] >> (at % 4 * 8) & 0xff;
}

static kiln__cpu_texels surface_texels(const shape_info *shape)
{
  return make_texels(KILN__TEXEL_U32, 4, 6, shape->dimensions > 1 ? 5 : 0,
                     shape->dimensions > 2 ? 3 : 0, shape->layered ? 4 : 0);
}

START_TEST(surfaces_are_read_in_bytes)
{
  const shape_info *shape = surface_shapes[_i / 3];
  const char *clamp = clamps[_i % 3];

  for (int width = 0; width < N_WIDTHS; width++) {
    const uint32_t bytes = widths[width].bytes * widths[width].n;
    kiln__cpu_surface s;
    request r[THREADS];
    const uint32_t(*got)[4];
    uint64_t handle;
    char body[600];

    surface_body(body, sizeof body, shape, width, clamp, false);
    load_kernel("", "%s", body);
    s.texels = surface_texels(shape);
    ck_kiln_ok(kiln__cpu_surface_add(table, &s, &handle));
    surface_requests(&s.texels, shape, bytes, _i % 3 != 2, r);
    got = run(handle, r);
    for (int i = 0; i < THREADS; i++) {
      const long at = place_of(&s.texels, shape, &r[i], bytes, _i % 3 == 1);

      for (uint32_t k = 0; k < bytes; k++)
        ck_assert_msg(element_byte(got[i], width, k) ==
                          (at < 0 ? 0u : s.texels.data[at + k]),
                      "%s %s %s thread %d byte %u", shape->name,
                      widths[width].type, clamp, i, k);
    }
    unload();
  }
}
END_TEST

START_TEST(surfaces_are_written_in_bytes)
{
  const shape_info *shape = surface_shapes[_i / 3];
  const char *clamp = clamps[_i % 3];

  for (int width = 0; width < N_WIDTHS; width++) {
    const uint32_t bytes = widths[width].bytes * widths[width].n;
    kiln__cpu_surface s;
    request r[THREADS];
    uint64_t handle;
    uint8_t *want;
    size_t size;
    char body[600];

    surface_body(body, sizeof body, shape, width, clamp, true);
    load_kernel("", "%s", body);
    s.texels = surface_texels(shape);
    size = s.texels.plane_bytes * (s.texels.layers > 0  ? s.texels.layers
                                   : s.texels.depth > 0 ? s.texels.depth
                                                        : 1);
    want = malloc(size);
    memcpy(want, s.texels.data, size);
    ck_kiln_ok(kiln__cpu_surface_add(table, &s, &handle));
    surface_requests(&s.texels, shape, bytes, _i % 3 != 2, r);
    (void)run(handle, r);
    for (int i = 0; i < THREADS; i++) {
      const long at = place_of(&s.texels, shape, &r[i], bytes, _i % 3 == 1);

      for (uint32_t k = 0; at >= 0 && k < bytes; k++)
        want[at + k] = (uint8_t)element_byte(r[i].x, width, k);
    }
    ck_assert_msg(memcmp(want, s.texels.data, size) == 0, "%s %s %s",
                  shape->name, widths[width].type, clamp);
    free(want);
    unload();
  }
}
END_TEST

START_TEST(surfaces_fault)
{
  kiln__cpu_surface s;
  request r[THREADS];
  uint64_t handle, other;

  load_kernel("", "suld.b.2d.b32.trap r0, [h, {c0,c1}];");
  s.texels = make_texels(KILN__TEXEL_U8, 4, 6, 5, 0, 0);
  ck_kiln_ok(kiln__cpu_surface_add(table, &s, &handle));
  for (int i = 0; i < THREADS; i++)
    r[i] = (request){.c = {20, 4}};
  (void)run(handle, r);
  r[70].c[0] = 24;
  run_fails(handle, r, KILN__FAULT_ADDRESS);
  r[70].c[0] = (uint32_t)-4;
  run_fails(handle, r, KILN__FAULT_ADDRESS);
  r[70].c[0] = 18;
  run_fails(handle, r, KILN__FAULT_MISALIGNED);
  r[70] = (request){.c = {0, 5}};
  run_fails(handle, r, KILN__FAULT_ADDRESS);
  r[70].c[1] = 0;
  ck_assert(!kiln__cpu_texture_remove(table, handle));
  ck_assert(kiln__cpu_surface_remove(table, handle));
  run_fails(handle, r, KILN__FAULT_INSTRUCTION);
  /* A new surface uses the same table entry, but it must have a new handle. */
  ck_kiln_ok(kiln__cpu_surface_add(table, &s, &other));
  ck_assert_uint_ne(other, handle);
  run_fails(handle, r, KILN__FAULT_INSTRUCTION);
  run_fails(0, r, KILN__FAULT_INSTRUCTION);
  (void)run(other, r);
}
END_TEST

/* An access that is wider than a row is always out of bounds. */
START_TEST(accesses_fit_in_a_row)
{
  kiln__cpu_surface s;
  request r[THREADS] = {{{0}, {0}}};
  uint8_t before[4];
  uint64_t handle;

  load_kernel("", "suld.b.2d.v2.b32.clamp {r0,r1}, [h, {c0,c1}];\n"
                  "mov.u32 r2, 7; sust.b.2d.v2.b32.clamp [h, {c0,c1}], {r2,r2};"
                  "suld.b.2d.v2.b32.zero {r2,r3}, [h, {c0,c1}];");
  s.texels = make_texels(KILN__TEXEL_U8, 4, 1, 5, 0, 0);
  memcpy(before, s.texels.data, 4);
  ck_kiln_ok(kiln__cpu_surface_add(table, &s, &handle));
  for (int k = 0; k < 4; k++)
    ck_assert_uint_eq(run(handle, r)[5][k], 0);
  ck_assert_mem_eq(before, s.texels.data, 4);
}
END_TEST

/* ---- Formatted stores and reductions ------------------------------------- */

static const struct {
  kiln__cpu_texel texel;
  uint32_t in;
  uint8_t out[4];
} formatted[] = {
    {KILN__TEXEL_U8, 300, {255}},
    {KILN__TEXEL_U8, 77, {77}},
    {KILN__TEXEL_S8, (uint32_t)-200, {0x80}},
    {KILN__TEXEL_S8, 200, {0x7f}},
    {KILN__TEXEL_U16, 70000, {0xff, 0xff}},
    {KILN__TEXEL_S16, (uint32_t)-2, {0xfe, 0xff}},
    {KILN__TEXEL_U32, 0x12345678, {0x78, 0x56, 0x34, 0x12}},
    {KILN__TEXEL_S32, (uint32_t)-3, {0xfd, 0xff, 0xff, 0xff}},
    {KILN__TEXEL_F32, 0x3f800000, {0, 0, 0x80, 0x3f}},
    {KILN__TEXEL_F16, 0x3fc00000, {0x00, 0x3e}}, /* 1.5 */
};

START_TEST(formatted_stores_convert)
{
  const size_t size = channel_size(formatted[_i].texel);
  kiln__cpu_surface s;
  request r[THREADS];
  uint64_t handle;

  load_kernel("", "sust.p.2d.v2.b32.zero [h, {c0,c1}], {x0,x1};");
  s.texels = make_texels(formatted[_i].texel, 2, 6, 5, 0, 0);
  ck_kiln_ok(kiln__cpu_surface_add(table, &s, &handle));
  for (int i = 0; i < THREADS; i++)
    r[i] = (request){.c = {4, 3}, .x = {formatted[_i].in, formatted[_i].in}};
  /* The coordinate is out of bounds, so the write must be dropped. */
  r[9].c[0] = 6;
  (void)run(handle, r);
  for (size_t k = 0; k < 2; k++)
    ck_assert_mem_eq(s.texels.data + 3 * s.texels.row_bytes +
                         4 * (size_t)s.texels.texel_bytes + k * size,
                     formatted[_i].out, size);
}
END_TEST

static const struct {
  const char *op, *type;
} reductions[] = {{"add", "u32"}, {"add", "s32"}, {"add", "u64"},
                  {"min", "u32"}, {"min", "s32"}, {"min", "s64"},
                  {"max", "u32"}, {"max", "s32"}, {"max", "u64"},
                  {"and", "b32"}, {"or", "b32"}};

static uint64_t reduced(int row, uint64_t a, uint64_t b)
{
  const char *op = reductions[row].op, *type = reductions[row].type;
  bool less;

  if (strcmp(op, "add") == 0)
    return a + b;
  if (strcmp(op, "and") == 0)
    return a & b;
  if (strcmp(op, "or") == 0)
    return a | b;
  less = strcmp(type, "s32") == 0   ? (int32_t)a < (int32_t)b
         : strcmp(type, "s64") == 0 ? (int64_t)a < (int64_t)b
                                    : a < b;
  return less == (strcmp(op, "min") == 0) ? a : b;
}

START_TEST(reductions_come_to_the_same)
{
  const bool wide = strstr(reductions[_i].type, "64") != NULL;
  const size_t size = wide ? 8 : 4;
  kiln__cpu_surface s;
  request r[THREADS];
  uint64_t handle, want = 0, got = 0;
  uint8_t *at;

  load_kernel("",
              "mov.b64 d0, {x0,x1}; sured.b.%s.2d.%s.trap [h, {c0,c1}], %s;",
              reductions[_i].op, reductions[_i].type, wide ? "d0" : "x0");
  s.texels = make_texels(KILN__TEXEL_U32, 2, 6, 5, 0, 0);
  at = s.texels.data + 2 * s.texels.row_bytes + 8;
  memcpy(&want, at, size);
  ck_kiln_ok(kiln__cpu_surface_add(table, &s, &handle));
  for (int i = 0; i < THREADS; i++) {
    r[i] = (request){
        .c = {8, 2},
        .x = {(uint32_t)test_random(&seed), (uint32_t)test_random(&seed)}};
    want =
        reduced(_i, want, r[i].x[0] | (wide ? (uint64_t)r[i].x[1] << 32 : 0));
    want = wide ? want : (uint32_t)want;
  }
  (void)run(handle, r);
  memcpy(&got, at, size);
  ck_assert_uint_eq(got, want);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_surface");
  TCase *t = kiln_test_case(s, "surface", 60, NULL, unload,
                            TESTS(surfaces_fault, accesses_fit_in_a_row));

  kiln_test_loops(
      t, 15, TESTS(surfaces_are_read_in_bytes, surfaces_are_written_in_bytes));
  tcase_add_loop_test(t, formatted_stores_convert, 0, ROWS(formatted));
  tcase_add_loop_test(t, reductions_come_to_the_same, 0, ROWS(reductions));
  return kiln_test_run(s);
}
