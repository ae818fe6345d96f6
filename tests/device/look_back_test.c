/* look_back_test.c -- the decoupled look-back of kiln/look_back.cuh: a tile
 * must get the same prefix, to the bit, no matter which prefixes earlier tiles
 * have published. */
#include "scan_values.h"

/* The operation composes affine maps modulo 2^32, which does not commute, or
 * adds floats, whose rounding depends on the order. Block b looks back over the
 * tiles before tile b. */
static const char source[] =
    "#include <kiln/look_back.cuh>\n"
    "#if FLOATS\n"
    "typedef float value;\n"
    "#define IDENTITY -0.0f\n"
    "struct then {\n"
    "  __device__ value operator()(value a, value b) const { return a + b; }\n"
    "};\n"
    "#else\n"
    "typedef unsigned long long value;\n"
    "#define IDENTITY (1ull << 32)\n"
    "struct then {\n"
    "  __device__ value operator()(value a, value b) const {\n"
    "    return (a >> 32) * (b >> 32) << 32 |\n"
    "           (unsigned)((unsigned)(b >> 32) * (unsigned)a + (unsigned)b);\n"
    "  }\n"
    "};\n"
    "#endif\n"
    "extern \"C\" __global__ void chain(unsigned long long *words,\n"
    "    unsigned epoch, value start, const value *totals,\n"
    "    const unsigned char *resets, value *out, unsigned at)\n"
    "{\n"
    "  const unsigned tile = at + blockIdx.x;\n"
    "  const kiln::tile_chain<EACH, RESETS != 0, value, then> chain(\n"
    "      words, epoch, then(), IDENTITY, start);\n"
    "  const value v = chain.before(tile, totals[tile], resets[tile] != 0);\n"
    "  if (threadIdx.x == 0)\n"
    "    out[tile] = v;\n"
    "}\n"
    "extern \"C\" __global__ void nearest(unsigned long long *words,\n"
    "    unsigned epoch, value *out)\n"
    "{\n"
    "  const unsigned tile = blockIdx.x + 1;\n"
    "  const value v = kiln::tile_look_back(words, tile, epoch, then(),\n"
    "                                       (value)IDENTITY);\n"
    "  if (threadIdx.x == 0)\n"
    "    out[tile] = v;\n"
    "}\n";

enum { EPOCH = 77, PARTIAL = 1, PREFIX = 2, RESET = 3 };

static kiln_module *module;

static kiln_kernel *load(unsigned each, bool resets, bool floats,
                         const char *name)
{
  char text[3][32];
  const char *const defines[] = {text[0], text[1], text[2]};
  const kiln_program_desc desc = {.name = "look_back",
                                  .source = source,
                                  .defines = defines,
                                  .n_defines = 3};
  kiln_kernel *kernel;

  snprintf(text[0], sizeof text[0], "EACH=%u", each);
  snprintf(text[1], sizeof text[1], "RESETS=%d", resets);
  snprintf(text[2], sizeof text[2], "FLOATS=%d", floats);
  ck_kiln_ok(kiln_module_load(&module, device, &desc));
  ck_kiln_ok(kiln_module_kernel(&kernel, module, name));
  return kernel;
}

/* Writes a tile descriptor of two words. Each holds half of the value and the
 * same epoch and status. */
static void publish(uint64_t *words, size_t tile, uint64_t value,
                    uint64_t state)
{
  const uint64_t tag = (uint64_t)EPOCH << 34 | state << 32;

  words[2 * tile] = tag | (uint32_t)value;
  words[2 * tile + 1] = tag | value >> 32;
}

/* The totals of all tiles, and the prefix that each tile must get. */
typedef struct tiles {
  size_t n;
  uint64_t start, *total, *before;
  uint8_t *reset;
} tiles;

static tiles make_tiles(size_t n, bool resets, uint64_t *state)
{
  tiles t = {.n = n,
             .start = test_random(state),
             .total = kept(random_bits(8 * n, state)),
             .before = room_for(n, 8),
             .reset = room_for(n, 1)};
  uint64_t sum = t.start;

  for (size_t i = 0; i < n; i++) {
    /* an odd factor is invertible, so no error cancels */
    t.total[i] |= UINT64_C(1) << 32;
    t.reset[i] = resets && test_random(state) % 40 == 0;
    t.before[i] = sum;
    sum = t.reset[i] ? t.total[i] : then_wide(sum, t.total[i]);
  }
  return t;
}

/* ---- Prefixes in a fixed order of operations ----------------------------- */

/* Publishes the prefixes of some groups of tiles. The look-back may start from
 * these. */
static void publish_some(uint64_t *words, const tiles *t, unsigned each,
                         uint64_t *state)
{
  for (size_t i = each - 1; i + 1 < t->n; i += each)
    if (test_random(state) % 50 == 0)
      publish(words, i, t->before[i + 1], PREFIX);
}

static void run_chain(kiln_kernel *kernel, const tiles *t, uint64_t *words)
{
  const uint32_t epoch = EPOCH, at = 0;
  kiln_launch_config config = kiln_launch_1d(t->n, 1);
  test_array w = array_make(KILN_U64, 2 * (t->n + 8), 0, words, 0);
  test_array totals = array_make(KILN_U64, t->n, 0, t->total, 0);
  test_array resets = array_make(KILN_U8, t->n, 0, t->reset, 0);
  test_array out = array_make(KILN_U64, t->n, 0, NULL, 0x5a);

  config.block.x = 32;
  config.stream = stream;
  ck_kiln_ok(KILN_LAUNCH(
      kernel, &config, KILN_ARG(w.array.data), KILN_ARG(epoch),
      KILN_ARG(t->start), KILN_ARG(totals.array.data),
      KILN_ARG(resets.array.data), KILN_ARG(out.array.data), KILN_ARG(at)));
  ck_array(&out, t->before, "before");
}

START_TEST(test_chain)
{
  static const unsigned sizes[] = {1, 2, 4, 8};
  const bool with_resets = _i >= 4;
  const unsigned each = sizes[_i % 4];
  kiln_kernel *kernel = load(each, with_resets, false, "chain");
  uint64_t state = (uint64_t)_i + 1;
  tiles t = make_tiles(700, with_resets, &state);
  uint64_t *words = room_for(2 * (t.n + 8), 8);

  for (size_t i = 0; i < t.n; i++)
    publish(words, i, t.total[i], t.reset[i] ? RESET : PARTIAL);
  run_chain(kernel, &t, words);
  publish_some(words, &t, each, &state);
  run_chain(kernel, &t, words);
  kiln_module_free(module);
}
END_TEST

static void float_words(uint64_t *words, const float *total, size_t n,
                        uint64_t state)
{
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;

    memcpy(&bits, &total[i], 4);
    words[i] = (uint64_t)EPOCH << 34 | state << 32 | bits;
  }
}

/* The bits of a float prefix must not depend on which prefixes are
 * published. */
START_TEST(test_same_bits)
{
  enum { N = 600 };
  static const unsigned sizes[] = {1, 2, 4, 8};
  const unsigned each = sizes[_i];
  kiln_kernel *kernel = load(each, false, true, "chain");
  kiln_launch_config config = kiln_launch_1d(N, 1);
  const uint32_t epoch = EPOCH;
  const float start = 0.1f;
  uint64_t words[N + 8] = {0}, state = 4;
  static const uint8_t none[N];
  float total[N], *got[4] = {NULL};
  test_array totals, resets;

  config.block.x = 32;
  config.stream = stream;
  for (size_t i = 0; i < N; i++)
    total[i] = ldexpf((float)(test_random(&state) % 1000003), -10);
  float_words(words, total, N, PARTIAL);
  totals = array_make(KILN_F32, N, 0, total, 0);
  resets = array_make(KILN_U8, N, 0, none, 0);
  for (size_t how = 0; how < 4; how++) {
    test_array w, out = array_make(KILN_F32, N, 0, NULL, 0x5a);
    test_array again = array_make(KILN_F32, N, 0, NULL, 0x5a);
    uint32_t at = 0;

    /* every prefix, or one of many, is published before the launch */
    if (how > 0)
      for (size_t i = each - 1; i + 1 < N; i += each * (2 * how - 1))
        float_words(words + i, got[0] + i + 1, 1, PREFIX);
    w = array_make(KILN_U64, N + 8, 0, words, 0);
    ck_kiln_ok(KILN_LAUNCH(
        kernel, &config, KILN_ARG(w.array.data), KILN_ARG(epoch),
        KILN_ARG(start), KILN_ARG(totals.array.data),
        KILN_ARG(resets.array.data), KILN_ARG(out.array.data), KILN_ARG(at)));
    config.grid.x = 1;
    /* no prefix is published before these launches */
    for (at = 1; how == 0 && at < 31 * each; at += 7) {
      test_array fresh;

      float_words(words, total, N, PARTIAL);
      fresh = array_make(KILN_U64, N + 8, 0, words, 0);
      ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(fresh.array.data),
                             KILN_ARG(epoch), KILN_ARG(start),
                             KILN_ARG(totals.array.data),
                             KILN_ARG(resets.array.data),
                             KILN_ARG(again.array.data), KILN_ARG(at)));
    }
    config.grid.x = N;
    got[how] = kept(array_read(&out));
    ck_assert_mem_eq(got[0], got[how], 4 * N);
    if (how == 0) {
      float *alone = kept(array_read(&again));

      for (at = 1; at < 31 * each; at += 7)
        ck_assert_mem_eq(&alone[at], &got[0][at], 4);
    }
    float_words(words, total, N, PARTIAL);
  }
  kiln_module_free(module);
}
END_TEST

/* ---- Prefixes from the nearest published one ----------------------------- */

START_TEST(test_nearest)
{
  kiln_kernel *kernel = load(1, false, false, "nearest");
  uint64_t state = 12;
  tiles t = make_tiles(400, false, &state);
  uint64_t *words = room_for(2 * t.n, 8);
  kiln_launch_config config = kiln_launch_1d(t.n - 1, 1);
  const uint32_t epoch = EPOCH;
  test_array w, out;

  config.block.x = 32;
  config.stream = stream;
  t.before[0] = UINT64_C(0x5a5a5a5a5a5a5a5a);
  for (size_t i = 0; i < t.n; i++) {
    const bool prefix = i == 0 || test_random(&state) % 60 == 0;
    const uint64_t before = i == 0 ? UINT64_C(1) << 32 : t.before[i];
    const uint64_t upto = then_wide(before, t.total[i]);

    publish(words, i, prefix ? upto : t.total[i], prefix ? PREFIX : PARTIAL);
    if (i + 1 < t.n)
      t.before[i + 1] = upto;
  }
  w = array_make(KILN_U64, 2 * t.n, 0, words, 0);
  out = array_make(KILN_U64, t.n, 0, NULL, 0x5a);
  ck_kiln_ok(KILN_LAUNCH(kernel, &config, KILN_ARG(w.array.data),
                         KILN_ARG(epoch), KILN_ARG(out.array.data)));
  ck_array(&out, t.before, "before each tile");
  kiln_module_free(module);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("look_back");
  TCase *t = device_case(s, "look_back");

  tcase_add_loop_test(t, test_chain, 0, 8);
  tcase_add_loop_test(t, test_same_bits, 0, 4);
  tcase_add_test(t, test_nearest);
  return s;
}

DEVICE_TEST_MAIN(suite)
