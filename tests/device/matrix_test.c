/* matrix_test.c -- mma and wmma: every shape, type and layout, on random
 * operands whose results an H200 recorded, and products that are loaded,
 * multiplied, changed and stored as programs do it.
 *
 * The operands include cancelling sums, subnormal numbers, infinities, NaNs and
 * the largest exponents. tests/golden/matrix.txt has a hash of the results of
 * the first 64, 4,096 and 102,400 tiles per case. By default the first 64 are
 * compared, with KILN_TEST_THOROUGH=1 the first 4,096.
 *
 * KILN_TEST_MATRIX  "full": all tiles; "record": all tiles, and write the lines
 *                   of tests/golden/matrix.txt to standard output
 * KILN_TEST_PART    "2/16": only every sixteenth case, from number 2 on
 * KILN_TEST_GOLDEN  another file than tests/golden/matrix.txt */
#include "cpu_differ.h"
#include "matrix_cases.h"
#include "test_device.h"

#include <inttypes.h>

/* A chunk of tiles is launched and hashed at once. The recorded hashes depend
 * on the size of a chunk. */
enum { STEPS = 3, CHUNK = 8192, TEXT = 16384 };

static const unsigned long steps[STEPS] = {64, 4096, 102400};

typedef struct golden_case {
  char opcode[112];
  int selector;
  uint64_t hash[STEPS];
} golden_case;

static golden_case *golden;
static size_t n_golden;

/* ---- The device ---------------------------------------------------------- */

static void open_device(differ *d, const char *settings)
{
  kiln_cpu_opts opts;

  if (!on_cpu()) {
    ck_assert(differ_open_gpu(d));
    return;
  }
  ck_kiln_ok(kiln_cpu_parse(&opts, settings != NULL ? settings : test_cpu));
  differ_open_cpu(d, &opts);
}

/* Continues the hash of the results of a case with the tiles from `from` up to,
 * but not including, `to`. */
static uint64_t run_tiles(differ *d, const matrix_case *t, uint64_t hash,
                          unsigned long from, unsigned long to)
{
  const size_t in_bytes = matrix_input_bytes(t);
  const size_t out_bytes = matrix_output_bytes(t);
  static char text[TEXT], log[1024];
  const size_t most = to - from < CHUNK ? to - from : CHUNK;
  unsigned char *in = malloc(in_bytes * most);
  unsigned char *out = malloc(out_bytes * most);
  CUdeviceptr at[2] = {differ_alloc(d, in_bytes * most),
                       differ_alloc(d, out_bytes * most)};
  void *args[] = {&at[0], &at[1]};
  CUmodule module;

  ck_assert(in != NULL && out != NULL);
  matrix_kernel(t, text, sizeof text);
  ck_assert_msg(differ_load(d, &module, text, log, sizeof log), "%s: %s",
                t->opcode, log);
  while (from < to) {
    const unsigned long n = to - from < CHUNK ? to - from : CHUNK;

    for (unsigned long i = 0; i < n; i++)
      matrix_fill(t, from + i, in + i * in_bytes);
    memset(out, 0xa5, n * out_bytes);
    differ_put(d, at[0], in, n * in_bytes);
    differ_put(d, at[1], out, n * out_bytes);
    differ_launch(d, module, "k", (unsigned)n, 32, args);
    differ_get(d, out, at[1], n * out_bytes);
    hash = matrix_hash(hash, out, n * out_bytes);
    from += n;
  }
  differ_unload(d, module);
  differ_free(d, at[0]);
  differ_free(d, at[1]);
  free(in);
  free(out);
  return hash;
}

/* ---- Recorded results ---------------------------------------------------- */

static void read_golden(void)
{
  const char *const path = getenv("KILN_TEST_GOLDEN");
  FILE *f = fopen(
      path != NULL ? path : KILN_TEST_SOURCE "/tests/golden/matrix.txt", "r");
  char line[512];

  ck_assert_ptr_nonnull(f);
  golden = calloc(1024, sizeof *golden);
  ck_assert_ptr_nonnull(golden);
  while (fgets(line, sizeof line, f) != NULL && n_golden < 1024) {
    golden_case *g = &golden[n_golden];

    if (sscanf(line, "%111s %d %" SCNx64 " %" SCNx64 " %" SCNx64, g->opcode,
               &g->selector, &g->hash[0], &g->hash[1], &g->hash[2]) == 5)
      n_golden++;
  }
  fclose(f);
}

static const golden_case *golden_of(const matrix_case *t)
{
  for (size_t i = 0; i < n_golden; i++) {
    if (golden[i].selector == t->selector &&
        strcmp(golden[i].opcode, t->opcode) == 0)
      return &golden[i];
  }
  return NULL;
}

/* Compares one case with the recording, up to a number of steps. Returns false
 * if the results differ. */
static bool as_recorded(differ *d, const matrix_case *t, unsigned n)
{
  const golden_case *g = golden_of(t);
  uint64_t hash = 0;

  ck_assert_msg(g != NULL, "%s is not in tests/golden/matrix.txt", t->opcode);
  for (unsigned s = 0; s < n; s++) {
    hash = run_tiles(d, t, hash, s == 0 ? 0 : steps[s - 1], steps[s]);
    if (hash != g->hash[s]) {
      printf("%s, selector %d: the first %lu tiles differ from the H200's\n",
             t->opcode, t->selector, steps[s]);
      fflush(stdout);
      return false;
    }
  }
  return true;
}

static void record(differ *d, const matrix_case *t)
{
  uint64_t hash = 0;

  printf("%s %d", t->opcode, t->selector);
  for (unsigned s = 0; s < STEPS; s++) {
    hash = run_tiles(d, t, hash, s == 0 ? 0 : steps[s - 1], steps[s]);
    printf(" %016" PRIx64, hash);
  }
  printf("\n");
}

START_TEST(results_are_those_of_an_H200)
{
  const char *const how = getenv("KILN_TEST_MATRIX");
  const unsigned n = how != NULL                            ? STEPS
                     : getenv("KILN_TEST_THOROUGH") != NULL ? 2
                                                            : 1;
  size_t n_cases;
  const matrix_case *cases = matrix_cases(&n_cases);
  unsigned wrong = 0;
  differ d;

  open_device(&d, NULL);
  if (d.sm != 90) {
    printf("the recorded results are those of compute capability 9.0\n");
    differ_close(&d);
    return;
  }
  read_golden();
  for (size_t i = 0; i < n_cases; i++) {
    if (!test_in_part(i))
      continue;
    if (how != NULL && strcmp(how, "record") == 0)
      record(&d, &cases[i]);
    else
      wrong += !as_recorded(&d, &cases[i], n);
  }
  differ_close(&d);
  free(golden);
  ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* ---- Products as programs compute them ----------------------------------- */

typedef struct product {
  unsigned m, n, k;
  const char *ab, *cd; /* types */
  unsigned ptx, sm;
  unsigned a, b, c; /* registers */
} product;

static const product products[] = {
    {16, 16, 16, "f16", "f32", 63, 70, 8, 8, 8},
    {8, 32, 16, "f16", "f32", 63, 70, 8, 8, 8},
    {32, 8, 16, "f16", "f32", 63, 70, 8, 8, 8},
    {16, 16, 16, "s8", "s32", 63, 72, 2, 2, 8},
    {8, 32, 16, "u8", "s32", 63, 72, 1, 4, 8},
    {32, 8, 16, "s8", "s32", 63, 72, 4, 1, 8},
    {16, 16, 16, "bf16", "f32", 70, 80, 4, 4, 8},
    {8, 32, 16, "bf16", "f32", 70, 80, 2, 8, 8},
    {32, 8, 16, "bf16", "f32", 70, 80, 8, 2, 8},
    {16, 16, 8, "tf32", "f32", 70, 80, 4, 4, 8},
    {8, 8, 4, "f64", "f64", 70, 80, 1, 1, 2},
};

/* Ways to run a product: bits 0 to 3 are column-major layouts of A, B, C and D,
 * bit 4 puts the matrices in shared memory, bit 5 uses generic addresses. */
enum { WAYS = 64, PAD = 16, MOST = 32 * 64, AREA = 16384 };

static unsigned bytes_of(const char *type)
{
  return strcmp(type, "f64") == 0     ? 8
         : strstr(type, "32") != NULL ? 4
         : strstr(type, "16") != NULL ? 2
                                      : 1;
}

/* Stores a small integer as an element. */
static void put(const char *type, void *to, int value)
{
  const float f = (float)value;
  const double d = value;
  uint32_t bits;

  memcpy(&bits, &f, sizeof bits);
  if (strcmp(type, "f64") == 0)
    memcpy(to, &d, 8);
  else if (strcmp(type, "f16") == 0) {
    const uint32_t e = bits >> 23 & 255;
    const uint16_t h =
        (uint16_t)((bits >> 16 & 0x8000) |
                   (e == 0 ? 0 : (e - 112) << 10 | (bits >> 13 & 0x3ff)));

    memcpy(to, &h, 2);
  } else if (strcmp(type, "bf16") == 0) {
    const uint16_t h = (uint16_t)(bits >> 16);

    memcpy(to, &h, 2);
  } else if (type[1] == '8') {
    *(int8_t *)to = (int8_t)value;
  } else if (type[0] == 's') {
    memcpy(to, &value, 4);
  } else {
    memcpy(to, &bits, 4);
  }
}

static int get(const char *type, const void *from)
{
  float f;
  double d;
  int i;

  memcpy(&f, from, 4);
  memcpy(&i, from, 4);
  if (type[1] == '6') {
    memcpy(&d, from, 8);
    return (int)d;
  }
  return type[0] == 's' ? i : (int)f;
}

typedef struct writer {
  char *at, *end;
} writer;

static void say(writer *w, const char *format, ...)
{
  va_list arguments;

  va_start(arguments, format);
  w->at += vsnprintf(w->at, (size_t)(w->end - w->at), format, arguments);
  va_end(arguments);
  ck_assert(w->at < w->end);
}

static void say_list(writer *w, char prefix, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    say(w, "%s%%%c%u", i == 0 ? "{" : ", ", prefix, i);
  say(w, "}");
}

static const char *layout_of(unsigned way, unsigned matrix)
{
  return (way >> matrix & 1) != 0 ? "col" : "row";
}

/* The leading dimension of matrix number 0 (A) to 3 (D). */
static unsigned leading(const product *p, unsigned way, unsigned matrix)
{
  const unsigned rows = matrix == 1 ? p->k : p->m;
  const unsigned columns = matrix == 0 ? p->k : p->n;

  return ((way >> matrix & 1) != 0 ? rows : columns) + PAD;
}

/* Writes the copy of all areas between global and shared memory. */
static void say_copy(writer *w, bool in)
{
  say(w,
      "mov.u32 %%i, %%tid.x;\n%s:\nmul.wide.u32 %%o, %%i, 4;\n"
      "add.u64 %%g, %%global, %%o;\nadd.u64 %%s, %%shared, %%o;\n"
      "ld.%s.u32 %%v, [%%%c];\nst.%s.u32 [%%%c], %%v;\n"
      "add.u32 %%i, %%i, 32;\nsetp.lt.u32 %%p, %%i, %u;\n@%%p bra %s;\n"
      "bar.sync 0;\n",
      in ? "in" : "out", in ? "global" : "shared", in ? 'g' : 's',
      in ? "shared" : "global", in ? 's' : 'g', 2 * AREA / 4,
      in ? "in" : "out");
}

/* The registers of matrix 0 (A) to 2 (C). C also receives the product. */
static char register_of(const product *p, unsigned matrix)
{
  return (p->cd[1] == '6' ? "que" : "rtc")[matrix];
}

static unsigned registers_of(const product *p, unsigned matrix)
{
  return matrix == 0 ? p->a : matrix == 1 ? p->b : p->c;
}

static const char *space_of(unsigned way)
{
  return (way & 32) != 0 ? "" : (way & 16) != 0 ? ".shared" : ".global";
}

static void say_head(writer *w, const product *p, unsigned way)
{
  const char *const space = (way & 16) != 0 ? "shared" : "global";

  say(w,
      ".version %u.%u\n.target sm_%u\n.address_size 64\n"
      ".shared .align 32 .b8 area[%u];\n"
      ".visible .entry k(.param .u64 a)\n{\n.reg .pred %%p;\n"
      ".reg .b32 %%r<16>, %%t<16>, %%c<16>, %%i, %%v;\n"
      ".reg .b64 %%q<4>, %%u<4>, %%e<4>, %%o, %%g, %%s, %%global, %%shared, "
      "%%base;\n"
      "ld.param.u64 %%global, [a];\nmov.u64 %%shared, area;\n",
      p->ptx / 10, p->ptx % 10, p->sm, 2 * AREA);
  if ((way & 16) != 0)
    say_copy(w, true);
  say(w, "mov.u64 %%base, %%%s;\n", space);
  if ((way & 32) != 0)
    say(w, "cvta.%s.u64 %%base, %%base;\n", space);
}

static void say_loads(writer *w, const product *p, unsigned way)
{
  static const unsigned offsets[] = {0, AREA / 4, AREA / 2};

  for (unsigned x = 0; x < 3; x++) {
    say(w, "wmma.load.%c.sync.aligned.%s.m%un%uk%u%s.%s ", "abc"[x],
        layout_of(way, x), p -> m, p -> n, p -> k, space_of(way),
        x == 2 ? p -> cd : p -> ab);
    say_list(w, register_of(p, x), registers_of(p, x));
    say(w, ", [%%base+%u], %u;\n", offsets[x], leading(p, way, x));
  }
}

static void say_product(writer *w, const product *p, unsigned way)
{
  const char type = p->cd[1] == '6' ? 'd' : p->cd[0];

  say(w, "wmma.mma.sync.aligned.%s.%s.m%un%uk%u", layout_of(way, 0),
      layout_of(way, 1), p->m, p->n, p->k);
  if (strcmp(p->ab, "f16") == 0)
    say(w, ".f32.f32 ");
  else
    say(w, ".%s.%s.%s.%s ", p->cd, p->ab, p->ab, p->cd);
  say_list(w, register_of(p, 2), p->c);
  for (unsigned x = 0; x < 3; x++) {
    say(w, ", ");
    say_list(w, register_of(p, x), registers_of(p, x));
  }
  say(w, ";\n");
  for (unsigned i = 0; i < p->c; i++)
    say(w,
        type == 'd'   ? "add.f64 %%e%u, %%e%u, %%e%u;\n"
        : type == 's' ? "add.s32 %%c%u, %%c%u, %%c%u;\n"
                      : "add.f32 %%c%u, %%c%u, %%c%u;\n",
        i, i, i);
}

/* Writes a kernel that computes D = 2 (A B + C). The areas of A, B, C and D
 * follow each other. */
static void product_kernel(const product *p, unsigned way, char *text)
{
  writer w = {text, text + TEXT};

  say_head(&w, p, way);
  say_loads(&w, p, way);
  say_product(&w, p, way);
  say(&w, "wmma.store.d.sync.aligned.%s.m%un%uk%u%s.%s [%%base+%u], ",
      layout_of(way, 3), p->m, p->n, p->k, space_of(way), p->cd, AREA);
  say_list(&w, register_of(p, 2), p->c);
  say(&w, ", %u;\n", leading(p, way, 3));
  if ((way & 16) != 0) {
    say(&w, "bar.sync 0;\n");
    say_copy(&w, false);
  }
  say(&w, "ret;\n}\n");
}

/* Offset of an element of matrix 0 (A) to 3 (D) in the areas. */
static size_t offset_of(const product *p, unsigned way, unsigned matrix,
                        unsigned row, unsigned column)
{
  static const size_t areas[] = {0, AREA / 4, AREA / 2, AREA};
  const bool by_column = (way >> matrix & 1) != 0;
  const size_t index =
      (size_t)(by_column ? column : row) * leading(p, way, matrix) +
      (by_column ? row : column);

  return areas[matrix] + index * bytes_of(matrix < 2 ? p->ab : p->cd);
}

static int value_of(unsigned matrix, unsigned row, unsigned column)
{
  const unsigned h = (row * 31 + column * 17 + matrix * 7) * 2654435761U;

  return (int)(h >> 28) - (matrix < 2 ? 0 : 8);
}

static void fill_areas(const product *p, unsigned way, unsigned char *areas)
{
  memset(areas, 0xee, (size_t)2 * AREA);
  for (unsigned i = 0; i < p->m; i++)
    for (unsigned l = 0; l < p->k; l++)
      put(p->ab, areas + offset_of(p, way, 0, i, l), value_of(0, i, l));
  for (unsigned l = 0; l < p->k; l++)
    for (unsigned j = 0; j < p->n; j++)
      put(p->ab, areas + offset_of(p, way, 1, l, j), value_of(1, l, j));
  for (unsigned i = 0; i < p->m; i++)
    for (unsigned j = 0; j < p->n; j++)
      put(p->cd, areas + offset_of(p, way, 2, i, j), value_of(2, i, j));
}

static void check_product(const product *p, unsigned way,
                          const unsigned char *areas)
{
  for (unsigned i = 0; i < p->m; i++)
    for (unsigned j = 0; j < p->n; j++) {
      int sum = value_of(2, i, j);

      for (unsigned l = 0; l < p->k; l++)
        sum += value_of(0, i, l) * value_of(1, l, j);
      ck_assert_msg(get(p->cd, areas + offset_of(p, way, 3, i, j)) == 2 * sum,
                    "m%un%uk%u %s, way %u, row %u, column %u: %d, want %d",
                    p->m, p->n, p->k, p->ab, way, i, j,
                    get(p->cd, areas + offset_of(p, way, 3, i, j)), 2 * sum);
    }
}

START_TEST(fragments_can_be_loaded_changed_and_stored)
{
  const product *p = &products[_i];
  static unsigned char areas[2 * AREA];
  static char text[TEXT], log[1024];
  differ d;

  open_device(&d, NULL);
  for (unsigned way = 0; d.sm >= p->sm && way < WAYS; way++) {
    CUdeviceptr at = differ_alloc(&d, sizeof areas);
    void *args[] = {&at};
    CUmodule module;

    fill_areas(p, way, areas);
    product_kernel(p, way, text);
    ck_assert_msg(differ_load(&d, &module, text, log, sizeof log), "%s\n%s",
                  log, text);
    differ_put(&d, at, areas, sizeof areas);
    differ_launch(&d, module, "k", 1, 32, args);
    differ_get(&d, areas, at, sizeof areas);
    check_product(p, way, areas);
    differ_unload(&d, module);
    differ_free(&d, at);
  }
  differ_close(&d);
}
END_TEST

static Suite *make_suite(void)
{
  Suite *s = suite_create("matrix");
  TCase *t = kiln_test_case(s, "recorded", 3600, NULL, NULL,
                            TESTS(results_are_those_of_an_H200));

  t = kiln_test_case(s, "products", 600, NULL, NULL, TESTS(NULL));
  tcase_add_loop_test(t, fragments_can_be_loaded_changed_and_stored, 0,
                      ROWS(products));
  return s;
}

DEVICE_TEST_MAIN(make_suite)
