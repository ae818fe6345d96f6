/* bench_nbody.c -- `kiln bench nbody`: kiln_all_pairs() on the bodies of a
 * star cluster, against the kernel of GPU Gems 3 (256 threads, blocks of
 * bodies in shared memory, rsqrtf(); Nyland, Harris and Prins, 2007), which
 * Kiln carries as the program "nbody". Both take turns. Rates count 20
 * floating-point operations per pair. */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PEER_BLOCK = 256, CHECKED = 64, FLOPS = 20, FIELDS = 4, OUTPUTS = 3 };

static const float eps2 = 1e-4f;

/* Positions of a Plummer model of scale radius 1 within 20 radii, and masses
 * that differ by up to a factor of 3. Body i draws three numbers. */
static const char preamble[] =
    "__device__ double u(unsigned long long i, int k)\n"
    "{\n"
    "  unsigned long long v = 3 * i + k + 1;\n"
    "  v = (v ^ v >> 33) * 0xff51afd7ed558ccdull;\n"
    "  v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53ull;\n"
    "  return ((v ^ v >> 33) >> 11) * 0x1p-53;\n"
    "}\n"
    "__device__ float on_sphere(unsigned long long i, int axis)\n"
    "{\n"
    "  const double r = rsqrt(pow(0.996 * u(i, 0), -2.0 / 3) - 1);\n"
    "  const double c = 2 * u(i, 1) - 1, s = sqrt(1 - c * c);\n"
    "  const double angle = 6.283185307179586 * u(i, 2);\n"
    "  return r * (axis == 0 ? s * cos(angle)\n"
    "              : axis == 1 ? s * sin(angle) : c);\n"
    "}\n";

/* The variants of the library's call. */
static const struct {
  const char *name, *common, *epilogue[OUTPUTS];
  bool equal, symmetric;
} variants[] = {
#define DISTANCE(a, b, c)                                                      \
  "const float dx = s.x - t.x, dy = s.y - t.y, dz = s.z - t.z;"                \
  "const float r = rsqrtf(" #a "*" #a "+ (" #b "*" #b "+ (" #c "*" #c          \
  "+ eps2)));"
    /* This order of the sum leads to fewer conflicts of register banks: 43.8
     * instead of 42.4 TFLOP/s in the inner loop on an H200. */
    {"general",
     DISTANCE(dz, dy, dx) "const float f = s.w * (r * r * r);",
     {NULL},
     0,
     0},
    {"equal masses",
     DISTANCE(dx, dy, dz) "const float f = r * r * r;",
     {"mass * r0", "mass * r1", "mass * r2"},
     true,
     false},
    {"symmetric",
     DISTANCE(dx, dy, dz) "const float f = (t.w * r) * (s.w * r) * r;",
     {"r0 / t.w", "r1 / t.w", "r2 / t.w"},
     false,
     true},
    {"symmetric, equal masses",
     DISTANCE(dx, dy, dz) "const float f = r * r * r;",
     {"mass * r0", "mass * r1", "mass * r2"},
     true,
     true},
};

enum { N_VARIANTS = sizeof variants / sizeof variants[0] };

typedef struct bench {
  bench_rig rig;
  uint64_t n;
  CUdeviceptr field[FIELDS], out[OUTPUTS]; /* x, y, z, m; ax, ay, az */
  CUdeviceptr body, acceleration;          /* float4 elements of the peer */
  kiln_module *module;
  kiln_kernel *peer;
  kiln_workspace workspace;
  kiln_all_pairs_desc desc;
  float *host[FIELDS];
} bench;

/* ---- The two sides ------------------------------------------------------- */

static kiln_status fire_own(void *user)
{
  bench *b = user;

  return kiln_all_pairs(b->rig.stream, &b->desc,
                        b->workspace.data != 0 ? &b->workspace : NULL);
}

static kiln_status fire_peer(void *user)
{
  bench *b = user;
  const unsigned n = (unsigned)b->n;
  kiln_launch_config config = kiln_launch_1d(b->n / PEER_BLOCK, 1);

  config.block.x = PEER_BLOCK;
  config.stream = b->rig.stream;
  return KILN_LAUNCH(b->peer, &config, KILN_ARG(b->acceleration),
                     KILN_ARG(b->body), KILN_ARG(n), KILN_ARG(eps2));
}

static kiln_status describe(bench *b, size_t variant,
                            const kiln_param params[2])
{
  size_t bytes;

  b->desc = (kiln_all_pairs_desc){
      .n = b->n,
      .common = variants[variant].common,
      .expr = {"f * dx", "f * dy", "f * dz"},
      .symmetry = variants[variant].symmetric ? KILN_PAIRS_NEGATED
                                              : KILN_PAIRS_UNRELATED,
      .code = {.params = params, .n_params = 2, .fast_math = true}};
  for (int k = 0; k < (variants[variant].equal ? 3 : 4); k++)
    b->desc.target[k] = (kiln_array){b->field[k], KILN_F32};
  for (int k = 0; k < OUTPUTS; k++) {
    b->desc.out[k] = (kiln_array){b->out[k], KILN_F32};
    b->desc.epilogue[k] = variants[variant].epilogue[k];
  }
  CLI_TRY(kiln_all_pairs_workspace(b->rig.stream, &b->desc, &bytes));
  if (b->workspace.data != 0)
    CLI_TRY(kiln_memory_free(b->rig.device, b->workspace.data));
  b->workspace = (kiln_workspace){0, bytes};
  return bytes == 0
             ? KILN_OK
             : kiln_memory_alloc(&b->workspace.data, b->rig.device, bytes);
}

/* ---- Bodies -------------------------------------------------------------- */

static kiln_status fill(const bench *b, CUdeviceptr to, const char *expr,
                        bool vectors)
{
  const kiln_map_desc desc = {.out = {{to, KILN_F32}},
                              .expr = {expr},
                              .n = vectors ? 4 * b->n : b->n,
                              .code = {.preamble = preamble}};

  return kiln_map(b->rig.stream, &desc, NULL);
}

static kiln_status make_bodies(bench *b)
{
  static const char *const expr[] = {"on_sphere(i, 0)", "on_sphere(i, 1)",
                                     "on_sphere(i, 2)", "1e-6 * (1 + i % 3)"};
  const size_t bytes = b->n * sizeof(float);

  for (int k = 0; k < FIELDS; k++) {
    CLI_TRY(kiln_memory_alloc(&b->field[k], b->rig.device, bytes));
    CLI_TRY(fill(b, b->field[k], expr[k], false));
    b->host[k] = malloc(bytes);
    if (b->host[k] == NULL)
      return KILN_ENOMEM;
    CLI_TRY(kiln_stream_synchronize(b->rig.stream));
    CLI_TRY(kiln_copy_to_host(b->rig.device, b->host[k], b->field[k], bytes));
  }
  for (int k = 0; k < OUTPUTS; k++)
    CLI_TRY(kiln_memory_alloc(&b->out[k], b->rig.device, bytes));
  CLI_TRY(kiln_memory_alloc(&b->body, b->rig.device, 4 * bytes));
  CLI_TRY(kiln_memory_alloc(&b->acceleration, b->rig.device, 4 * bytes));
  return fill(b, b->body,
              "i % 4 < 3 ? on_sphere(i / 4, i % 4) : 1e-6 * (1 + i / 4 % 3)",
              true);
}

static void free_bodies(bench *b)
{
  if (b->rig.device == NULL)
    return; /* the device did not open; keep the error of that */
  for (int k = 0; k < FIELDS; k++) {
    kiln_memory_free(b->rig.device, b->field[k]);
    free(b->host[k]);
    b->field[k] = 0;
    b->host[k] = NULL;
  }
  for (int k = 0; k < OUTPUTS; k++) {
    kiln_memory_free(b->rig.device, b->out[k]);
    b->out[k] = 0;
  }
  kiln_memory_free(b->rig.device, b->body);
  kiln_memory_free(b->rig.device, b->acceleration);
  kiln_memory_free(b->rig.device, b->workspace.data);
  b->body = b->acceleration = 0;
  b->workspace = (kiln_workspace){0};
}

/* Returns the largest relative error of some accelerations against double
 * precision. Bodies have the mass `equal` unless it is 0. */
static double worst_error(const bench *b, float *const got[OUTPUTS],
                          double equal)
{
  double worst = 0;

  for (uint64_t i = 0; i < b->n; i += b->n / CHECKED + 1) {
    double want[OUTPUTS] = {0}, off = 0, size = 0;

    for (uint64_t j = 0; j < b->n; j++) {
      double d[OUTPUTS], squared = (double)eps2, f;

      for (int k = 0; k < OUTPUTS; k++) {
        d[k] = (double)b->host[k][j] - (double)b->host[k][i];
        squared += d[k] * d[k];
      }
      f = (equal > 0 ? equal : (double)b->host[3][j]) /
          (squared * sqrt(squared));
      for (int k = 0; k < OUTPUTS; k++)
        want[k] += f * d[k];
    }
    for (int k = 0; k < OUTPUTS; k++) {
      off += ((double)got[k][i] - want[k]) * ((double)got[k][i] - want[k]);
      size += want[k] * want[k];
    }
    off = sqrt(off / size);
    worst = off <= worst ? worst : off;
  }
  return worst;
}

static kiln_status measure_error(const bench *b, double equal, double *error)
{
  const size_t bytes = b->n * sizeof(float);
  kiln_status st = KILN_OK;
  float *got[OUTPUTS];

  for (int k = 0; k < OUTPUTS; k++) {
    got[k] = malloc(bytes);
    if (got[k] == NULL)
      st = KILN_ENOMEM;
    if (st == KILN_OK)
      st = kiln_copy_to_host(b->rig.device, got[k], b->out[k], bytes);
  }
  if (st == KILN_OK)
    *error = worst_error(b, got, equal);
  for (int k = 0; k < OUTPUTS; k++)
    free(got[k]);
  return st;
}

/* ---- Measurement --------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* Times both sides in turns, after one run of each. */
static kiln_status time_both(bench *b, unsigned repeats, double *own,
                             double *peer)
{
  double times[2][BENCH_MOST_REPEATS];

  for (unsigned k = 0; k <= repeats; k++) {
    double *const at[] = {&times[0][k > 0 ? k - 1 : 0],
                          &times[1][k > 0 ? k - 1 : 0]};

    CLI_TRY(kiln__bench_rig_time(&b->rig, fire_own, b, at[0]));
    CLI_TRY(kiln__bench_rig_time(&b->rig, fire_peer, b, at[1]));
  }
  for (int side = 0; side < 2; side++)
    qsort(times[side], repeats, sizeof times[side][0], by_value);
  *own = times[0][repeats / 2];
  *peer = times[1][repeats / 2];
  return KILN_OK;
}

/* Returns GFLOP/s. */
static double rate(const bench *b, double ms)
{
  return (double)b->n * (double)b->n * FLOPS / (ms * 1e6);
}

static kiln_status one_variant(bench *b, size_t variant, unsigned repeats,
                               cli_table *t, cJSON *rows)
{
  static const float mass = 2e-6f;
  const kiln_param params[] = {{"eps2", KILN_F32, &eps2, true},
                               {"mass", KILN_F32, &mass, true}};
  double own, peer, error = (double)NAN;
  cJSON *row;

  CLI_TRY(describe(b, variant, params));
  CLI_TRY(time_both(b, repeats, &own, &peer));
  CLI_TRY(measure_error(b, variants[variant].equal ? (double)mass : 0, &error));
  kiln__cli_cells(t, "%s\t%llu\t%.3f ms\t%.0f\t%.3f ms\t%.0f\t%.2fx\t%.0e",
                  variants[variant].name, (unsigned long long)b->n, own,
                  rate(b, own), peer, rate(b, peer), peer / own, error);
  row = kiln__cli_json_item(rows);
  JSON_TEXT(row, "variant", variants[variant].name);
  JSON_NUMBER(row, "n", b->n);
  JSON_NUMBER(row, "ms", own);
  JSON_NUMBER(row, "peer_ms", peer);
  JSON_NUMBER(row, "error", error);
  return KILN_OK;
}

static kiln_status run(bench *b, const bench_options *o, cli_table *t,
                       cJSON *rows)
{
  const kiln_program_desc peer = {.builtin = "nbody"};

  CLI_TRY(kiln_module_load(&b->module, b->rig.device, &peer));
  CLI_TRY(kiln_module_kernel(&b->peer, b->module, "nbody"));
  for (size_t i = 0; i < o->sizes.n; i++) {
    b->n = UINT64_C(1) << o->sizes.bits[i];
    CLI_TRY(make_bodies(b));
    for (size_t v = 0; v < N_VARIANTS; v++)
      if (kiln__bench_chosen(o, variants[v].name))
        CLI_TRY(one_variant(b, v, o->repeats, t, rows));
    free_bodies(b);
  }
  return KILN_OK;
}

int kiln__bench_nbody(cli *c, int argc, char **argv)
{
  static const char *const heads[] = {"bodies",   ">n",          ">Kiln",
                                      ">GFLOP/s", ">GPU Gems 3", ">GFLOP/s",
                                      ">ratio",   ">error",      NULL};
  bench_options o = {.sizes = {{18, 16, 14}, 3}, .repeats = 9};
  const cli_option options[] = {
      CLI_OPTION_SIZES(&o.sizes, 8, 22, "log2 of the bodies; default 18,16,14"),
      CLI_OPTION_NUMBER("repeats", &o.repeats, 1, BENCH_MOST_REPEATS,
                        "timed runs of each; default 9"),
      BENCH_OPTION_ONLY(&o, "run only the variant"),
      BENCH_OPTION_DEVICE(&o),
      BENCH_OPTION_OUTPUT(&o),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench nbody [options]\n",
      .about = "Measures the accelerations of n bodies by all pairs: "
               "kiln_all_pairs() beside the kernel of GPU Gems 3, in turns. "
               "Rates count 20 operations per pair.",
      .options = options,
      .example = "kiln bench nbody --sizes 18"};
  bench b = {.n = 0};
  cli_words words;
  cli_table table;
  cJSON *json, *rows;
  kiln_status st;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  json = cJSON_CreateObject();
  rows = cJSON_AddArrayToObject(json, "nbody");
  kiln__cli_table(&table, c, heads);
  st = kiln__bench_rig_open(&b.rig, c, o.device);
  if (st == KILN_OK)
    st = run(&b, &o, &table, rows);
  if (st == KILN_OK) {
    printf("%s; medians of %u\n", b.rig.info.name, o.repeats);
    kiln__cli_table_print(&table, 0);
    JSON_TEXT(json, "device", b.rig.info.name);
  }
  free_bodies(&b);
  kiln_module_free(b.module);
  kiln__bench_rig_close(&b.rig);
  rc = st == KILN_OK ? CLI_OK : kiln__cli_failure(c, "nbody");
  return kiln__bench_end(c, &o, rc, json);
}
