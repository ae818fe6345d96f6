/* bench_gemm.c -- `kiln bench gemm`: the steps from a naive matrix product to
 * the library's, and the library's products beside cuBLAS. */
#include "bench/bench_ops.h"

#include <math.h>
#include <stdlib.h>

/* ---- Cases --------------------------------------------------------------- */

/* Types of a product, in the order of the peer's table. */
typedef enum product_type {
  PRODUCT_F32,
  PRODUCT_TF32,
  PRODUCT_F16,
  PRODUCT_BF16,
  PRODUCT_I8,
  PRODUCT_F64
} product_type;

static const struct {
  const char *name;
  kiln_dtype in, out;
  double per_cycle; /* operations per SM and cycle on compute capability 9.0 */
} types[] = {
    {"f32", KILN_F32, KILN_F32, 256},  {"tf32", KILN_F32, KILN_F32, 2048},
    {"f16", KILN_F16, KILN_F16, 4096}, {"bf16", KILN_BF16, KILN_BF16, 4096},
    {"i8", KILN_I8, KILN_I32, 8192},   {"f64", KILN_F64, KILN_F64, 256},
};

typedef struct product_case {
  uint64_t m, n, k, batch;
  product_type type;
  kiln_gemm_precision precision;
  const char *remark; /* printed with the shape, or NULL */
  bool gelu;          /* with bias and GELU */
  double wanted;      /* goal for the speed relative to cuBLAS; 0: none */
} product_case;

#define SQUARE(n) n, n, n, 1

static const product_case cases[] = {
    {SQUARE(1000), PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.25},
    {SQUARE(1024), PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.25},
    {SQUARE(2048), PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.05},
    {SQUARE(4096), PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.03},
    {SQUARE(8192), PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.03},
    {3001, 2999, 2987, 1, PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.15},
    {32, 32, 32, 10000, PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 2.0},
    {64, 64, 64, 4096, PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.6},
    {128, 128, 128, 1000, PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.3},
    {8192, 64, 8192, 1, PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.15},
    {1, 8192, 8192, 1, PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 1.2},
    {100000, 32, 32, 1, PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 2.0},
    {SQUARE(4096), PRODUCT_F32, KILN_GEMM_F32, "split", false, 1.7},
    {SQUARE(8192), PRODUCT_F32, KILN_GEMM_F32, "split", false, 1.7},
    {SQUARE(4096), PRODUCT_F32, KILN_GEMM_F32_FAST, "split, fast", false, 2.5},
    {SQUARE(8192), PRODUCT_F32, KILN_GEMM_F32_FAST, "split, fast", false, 2.5},
    {SQUARE(4096), PRODUCT_TF32, KILN_GEMM_TF32, NULL, false, 0.97},
    {SQUARE(8192), PRODUCT_TF32, KILN_GEMM_TF32, NULL, false, 0.97},
    {SQUARE(1024), PRODUCT_BF16, KILN_GEMM_IEEE, NULL, false, 1.2},
    {SQUARE(2048), PRODUCT_BF16, KILN_GEMM_IEEE, NULL, false, 1.05},
    {SQUARE(4096), PRODUCT_BF16, KILN_GEMM_IEEE, NULL, false, 1.0},
    {SQUARE(8192), PRODUCT_BF16, KILN_GEMM_IEEE, NULL, false, 1.0},
    {3001, 2999, 2987, 1, PRODUCT_BF16, KILN_GEMM_IEEE, NULL, false, 4.0},
    {SQUARE(1024), PRODUCT_F16, KILN_GEMM_IEEE, NULL, false, 1.2},
    {SQUARE(2048), PRODUCT_F16, KILN_GEMM_IEEE, NULL, false, 1.05},
    {SQUARE(4096), PRODUCT_F16, KILN_GEMM_IEEE, NULL, false, 1.0},
    {SQUARE(8192), PRODUCT_F16, KILN_GEMM_IEEE, NULL, false, 1.0},
    {SQUARE(4096), PRODUCT_I8, KILN_GEMM_IEEE, NULL, false, 0.97},
    {SQUARE(8192), PRODUCT_I8, KILN_GEMM_IEEE, NULL, false, 0.97},
    {SQUARE(4096), PRODUCT_F64, KILN_GEMM_IEEE, NULL, false, 0.95},
    {SQUARE(1024), PRODUCT_BF16, KILN_GEMM_IEEE, "bias, GELU", true, 1.5},
    {SQUARE(4096), PRODUCT_BF16, KILN_GEMM_IEEE, "bias, GELU", true, 1.1},
    {SQUARE(8192), PRODUCT_BF16, KILN_GEMM_IEEE, "bias, GELU", true, 1.03},
};

enum { N_CASES = sizeof cases / sizeof cases[0] };

/* ---- State --------------------------------------------------------------- */

/* The arguments of the comparison function; tests/bench/peers/gemm.cu declares
 * the same struct. */
typedef struct kiln_peer_gemm_call {
  const void *a, *b, *bias;
  void *d;
  unsigned long long m, n, k, batch;
  int type, transposed_b, gelu;
  void *stream;
} kiln_peer_gemm_call;

typedef struct bench_gemm {
  bench_rig rig;
  unsigned repeats;
  int (*peer)(const kiln_peer_gemm_call *); /* cuBLAS, or NULL */
  const product_case *now;
  product_case square; /* the case of the ladder */
  CUdeviceptr a, b, d, peer_d, bias;
  kiln_workspace workspace;
  kiln_module *ladder;
  kiln_kernel *kernel; /* the step that fire_step() launches */
  uint32_t n, tile;    /* its size, and the size of its tiles */
} bench_gemm;

static double operations_of(const product_case *p)
{
  return 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
}

/* Returns the peak rate of a type in operations per second, or 0 if it is not
 * known. */
static double peak_of(const bench_gemm *b, product_type type)
{
  const double cycles = b->rig.info.sm_count * (double)b->rig.info.clock_khz;

  return type == PRODUCT_F32 || kiln_device_traits(b->rig.device)->cc == 90
             ? cycles * 1e3 * types[type].per_cycle
             : 0;
}

/* ---- The calls ----------------------------------------------------------- */

static kiln_gemm_desc desc_of(const bench_gemm *b)
{
  const product_case *p = b->now;
  const kiln_dtype in = types[p->type].in;
  kiln_gemm_desc d = {.m = p->m,
                      .n = p->n,
                      .k = p->k,
                      .batch = p->batch,
                      .alpha = 1,
                      .precision = p->precision};

  d.a = (kiln_gemm_matrix){.data = b->a, .type = in, .stride = p->m * p->k};
  d.b = (kiln_gemm_matrix){.data = b->b, .type = in, .stride = p->k * p->n};
  d.b.order = p->type == PRODUCT_I8 ? KILN_COLUMN_MAJOR : KILN_ROW_MAJOR;
  d.d = (kiln_gemm_matrix){
      .data = b->d, .type = types[p->type].out, .stride = p->m * p->n};
  if (p->gelu) {
    d.in[0] = (kiln_gemm_input){.x = {b->bias, KILN_BF16}, .column_stride = 1};
    d.epilogue = "kiln::gelu(acc + x)";
  }
  return d;
}

static kiln_status fire_own(void *user)
{
  bench_gemm *b = user;
  const kiln_gemm_desc d = desc_of(b);

  return kiln_gemm(b->rig.stream, &d,
                   b->workspace.data != 0 ? &b->workspace : NULL);
}

static kiln_status fire_peer(void *user)
{
  bench_gemm *b = user;
  const product_case *p = b->now;
  const kiln_peer_gemm_call call = {.a = (void *)(uintptr_t)b->a,
                                    .b = (void *)(uintptr_t)b->b,
                                    .bias = (void *)(uintptr_t)b->bias,
                                    .d = (void *)(uintptr_t)b->peer_d,
                                    .m = p->m,
                                    .n = p->n,
                                    .k = p->k,
                                    .batch = p->batch,
                                    .type = (int)p->type,
                                    .transposed_b = p->type == PRODUCT_I8,
                                    .gelu = p->gelu,
                                    .stream =
                                        kiln_stream_handle(b->rig.stream)};
  const int code = b->peer(&call);

  if (code == 0)
    return KILN_OK;
  kiln__cli_message(b->rig.c, NULL, "cuBLAS: error %d", code);
  return KILN_EDRIVER;
}

static kiln_status fire_step(void *user)
{
  bench_gemm *b = user;
  const uint32_t tiles = (b->n + b->tile - 1) / b->tile;
  const kiln_launch_config config = {.grid = {.x = tiles, .y = tiles},
                                     .block = {.x = 256},
                                     .stream = b->rig.stream};

  return KILN_LAUNCH(b->kernel, &config, KILN_ARG(b->a), KILN_ARG(b->b),
                     KILN_ARG(b->d), KILN_ARG(b->n));
}

/* Times of one side of a comparison, medians in milliseconds: of calls that are
 * queued after a busy kernel, and of single calls on an idle GPU, which contain
 * the host's time. 0 means that there is no such side. */
typedef struct product_times {
  double queued, single;
} product_times;

static kiln_status time_once(bench_gemm *b, bench_fire_fn fire, bool queued,
                             double *ms)
{
  if (queued && !b->rig.c->on_cpu)
    CLI_TRY(kiln__bench_rig_delay(&b->rig));
  return kiln__bench_rig_time(&b->rig, fire, b, ms);
}

/* Measures the median time of a call, each queued after a busy kernel. */
static kiln_status time_call(bench_gemm *b, bench_fire_fn fire, double *ms)
{
  double all[BENCH_MOST_REPEATS];

  CLI_TRY(kiln__bench_rig_time(&b->rig, fire, b, ms)); /* compiles */
  for (unsigned r = 0; r < b->repeats; r++)
    CLI_TRY(time_once(b, fire, true, &all[r]));
  *ms = kiln__cli_median(all, b->repeats);
  return KILN_OK;
}

/* Times a call after untimed runs of the same code, unless it takes so long that
 * what these leave in the L2 cache does not matter. */
static kiln_status time_warm(bench_gemm *b, bench_fire_fn fire, bool queued,
                             double *ms)
{
  static const double longest = 1; /* ms */

  CLI_TRY(time_once(b, fire, queued, ms));
  for (int run = 0; run < BENCH_WARM_UPS && *ms < longest; run++)
    CLI_TRY(time_once(b, fire, queued, ms));
  return KILN_OK;
}

/* Measures Kiln and the peer in turns, so that both see the same clocks. */
static kiln_status time_both(bench_gemm *b, product_times *own,
                             product_times *peer)
{
  enum { SIDES = 2, WAYS = 2 };
  const bench_fire_fn fires[SIDES] = {fire_own, fire_peer};
  const size_t sides = b->peer != NULL ? SIDES : 1;
  double all[SIDES][WAYS][BENCH_MOST_REPEATS], ms;
  double median[SIDES][WAYS] = {{0}};

  for (size_t s = 0; s < sides; s++) /* compiles */
    CLI_TRY(kiln__bench_rig_time(&b->rig, fires[s], b, &ms));
  for (unsigned r = 0; r < b->repeats; r++)
    for (size_t w = 0; w < WAYS; w++)
      for (size_t s = 0; s < sides; s++)
        CLI_TRY(time_warm(b, fires[s], w == 0, &all[s][w][r]));
  for (size_t w = 0; w < WAYS; w++)
    for (size_t s = 0; s < sides; s++)
      median[s][w] = kiln__cli_median(all[s][w], b->repeats);
  *own = (product_times){median[0][0], median[0][1]};
  *peer = (product_times){median[1][0], median[1][1]};
  return KILN_OK;
}

/* ---- One case ------------------------------------------------------------ */

/* Fills A, B and the bias with normal random numbers (for i8: uniform). */
static kiln_status fill(bench_gemm *b)
{
  static const char normal[] =
      "sqrt(-2 * log((double)(hash(i) >> 11 | 1) * 0x1p-53)) * "
      "cospi(2 * (double)(hash(i + 77777777777) >> 11) * 0x1p-53)";
  static const char whole[] = "(int)(hash(i) % 255) - 127";
  const product_case *p = b->now;
  const kiln_dtype in = types[p->type].in;
  const char *text = in == KILN_I8 ? whole : normal;

  CLI_TRY(
      kiln__bench_fill(b->rig.stream, b->a, in, p->batch * p->m * p->k, text));
  CLI_TRY(
      kiln__bench_fill(b->rig.stream, b->b, in, p->batch * p->k * p->n, text));
  return kiln__bench_fill(b->rig.stream, b->bias, KILN_BF16, p->n, normal);
}

/* Replaces the workspace by one that suits the current case. */
static kiln_status allocate_workspace(bench_gemm *b)
{
  const kiln_gemm_desc d = desc_of(b);

  if (b->workspace.data != 0)
    kiln_memory_free(b->rig.device, b->workspace.data);
  b->workspace.data = 0;
  CLI_TRY(kiln_gemm_workspace(b->rig.stream, &d, &b->workspace.size));
  if (b->workspace.size > 0)
    CLI_TRY(kiln_memory_alloc(&b->workspace.data, b->rig.device,
                              b->workspace.size));
  return KILN_OK;
}

static kiln_status allocate(bench_gemm *b)
{
  const product_case *p = b->now;
  const size_t in = kiln_dtype_size(types[p->type].in);
  const size_t out = kiln_dtype_size(types[p->type].out);

  CLI_TRY(kiln_memory_alloc(&b->a, b->rig.device, p->batch * p->m * p->k * in));
  CLI_TRY(kiln_memory_alloc(&b->b, b->rig.device, p->batch * p->k * p->n * in));
  CLI_TRY(
      kiln_memory_alloc(&b->d, b->rig.device, p->batch * p->m * p->n * out));
  CLI_TRY(kiln_memory_alloc(&b->peer_d, b->rig.device,
                            p->batch * p->m * p->n * out));
  CLI_TRY(kiln_memory_alloc(&b->bias, b->rig.device, p->n * 2));
  return allocate_workspace(b);
}

static void discard(bench_gemm *b)
{
  CUdeviceptr *const all[] = {&b->a,      &b->b,    &b->d,
                              &b->peer_d, &b->bias, &b->workspace.data};

  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (*all[i] != 0)
      kiln_memory_free(b->rig.device, *all[i]);
    *all[i] = 0;
  }
}

/* Computes the largest difference from cuBLAS's result, relative to the square
 * root of k, which is the standard deviation of an element. The result replaces
 * the first elements of A, which is not needed any more. */
static kiln_status difference(bench_gemm *b, double *out)
{
  const product_case *p = b->now;
  const kiln_dtype type = types[p->type].out;
  const kiln_reduce_desc desc = {.x = {.in = {{b->d, type}, {b->peer_d, type}},
                                       .map = "fabs((double)x - (double)y)",
                                       .type = KILN_F64},
                                 .n = p->batch * p->m * p->n,
                                 .op = {.name = KILN_MAX},
                                 .out = {b->a, KILN_F64}};

  CLI_TRY(kiln_reduce(b->rig.stream, &desc, NULL));
  CLI_TRY(kiln_stream_synchronize(b->rig.stream));
  CLI_TRY(kiln_copy_to_host(b->rig.device, out, b->a, sizeof *out));
  *out /= sqrt((double)p->k);
  return KILN_OK;
}

/* The results of a case. */
typedef struct product_row {
  const product_case *p;
  const char *shape;
  kiln_gemm_choice choice;
  product_times own, peer;
  double difference;
} product_row;

static double ratio_of(const product_row *r)
{
  return r->peer.queued / r->own.queued;
}

static double single_ratio_of(const product_row *r)
{
  return r->peer.single / r->own.single;
}

static void print_case(const bench_gemm *b, const product_row *r, cli_table *t)
{
  const product_case *p = r->p;
  const double rate = operations_of(p) / r->own.queued / 1e9,
               peak = peak_of(b, p->type);

  kiln__cli_cells(t, "%s\t%s\t%s %ux%u/%u\t%.2f us\t%.2f", types[p->type].name,
                  r->shape, r->choice.path, r->choice.tile.m, r->choice.tile.n,
                  r->choice.tile.split, r->own.queued * 1e3, rate);
  if (peak > 0)
    kiln__cli_cells(t, "%.1f %%", 1e14 * rate / peak);
  else
    kiln__cli_dashes(t, 1);
  if (r->peer.queued > 0)
    kiln__cli_cells(t, "%.2f\t%.2fx\t%.3fx\t%.2f us\t%.3fx\t%.1e",
                    operations_of(p) / r->peer.queued / 1e9, p->wanted,
                    ratio_of(r), r->own.single * 1e3, single_ratio_of(r),
                    r->difference);
  else
    kiln__cli_cells(t, "-\t-\t-\t%.2f us\t-\t-", r->own.single * 1e3);
}

static void keep_case(const product_row *r, cJSON *rows)
{
  const product_case *p = r->p;
  cJSON *row = kiln__cli_json_item(rows);

  JSON_TEXT(row, "type", types[p->type].name);
  JSON_TEXT(row, "shape", r->shape);
  JSON_TEXT(row, "path", r->choice.path);
  JSON_NUMBER(row, "ms", r->own.queued);
  JSON_NUMBER(row, "single_ms", r->own.single);
  JSON_NUMBER(row, "tflops", operations_of(p) / r->own.queued / 1e9);
  if (r->peer.queued > 0) {
    JSON_NUMBER(row, "peer_ms", r->peer.queued);
    JSON_NUMBER(row, "peer_single_ms", r->peer.single);
    JSON_NUMBER(row, "ratio", ratio_of(r));
    JSON_NUMBER(row, "single_ratio", single_ratio_of(r));
    JSON_NUMBER(row, "wanted", p->wanted);
    JSON_NUMBER(row, "difference", r->difference);
  }
}

static const char *shape_of(cli *c, const product_case *p)
{
  const char *batch =
      p->batch > 1 ? kiln__cli_text(c, "%llu of ", (unsigned long long)p->batch)
                   : "";

  return kiln__cli_text(c, "%s%llu x %llu x %llu%s%s", batch,
                        (unsigned long long)p->m, (unsigned long long)p->n,
                        (unsigned long long)p->k, p->remark != NULL ? ", " : "",
                        p->remark != NULL ? p->remark : "");
}

static kiln_status one_case(bench_gemm *b, product_row *row)
{
  kiln_gemm_desc d;

  *row = (product_row){.p = b->now, .shape = shape_of(b->rig.c, b->now)};
  CLI_TRY(allocate(b));
  CLI_TRY(fill(b));
  d = desc_of(b);
  CLI_TRY(kiln_gemm_explain(b->rig.stream, &d, &row->choice));
  CLI_TRY(time_both(b, &row->own, &row->peer));
  return b->peer != NULL ? difference(b, &row->difference) : KILN_OK;
}

/* Compares two rows by the better of their ratios, relative to the goal. */
static int by_shortfall(const void *left, const void *right)
{
  const product_row *const r[2] = {left, right};
  double share[2];

  for (size_t i = 0; i < 2; i++)
    share[i] = fmax(ratio_of(r[i]), single_ratio_of(r[i])) / r[i]->p->wanted;
  return (share[0] < share[1]) - (share[0] > share[1]);
}

/* Lists the rows whose ratio is below the goal, the worst last. */
static void print_shortfalls(cli *c, product_row *rows, size_t n)
{
  static const char *const heads[] = {
      "below the goal", "shape",      ">wanted", ">queued",
      ">single",        ">of wanted", NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  qsort(rows, n, sizeof rows[0], by_shortfall);
  for (size_t i = 0; i < n; i++) {
    const product_row *r = &rows[i];

    if (r->peer.queued <= 0 || ratio_of(r) >= r->p->wanted)
      continue;
    kiln__cli_cells(&t, "%s\t%s\t%.2fx\t%.3fx\t%.3fx\t%.2f, %.2f",
                    types[r->p->type].name, r->shape, r->p->wanted, ratio_of(r),
                    single_ratio_of(r), ratio_of(r) / r->p->wanted,
                    single_ratio_of(r) / r->p->wanted);
  }
  if (t.n > 0)
    kiln__cli_table_print(&t, 0);
}

/* ---- The ladder ---------------------------------------------------------- */

static const struct {
  const char *kernel, *what;
  uint32_t tile;
} steps[] = {{"matmul_naive", "naive", 16},
             {"matmul_coalesced", "coalesced", 16},
             {"matmul_tiles", "tiles of 16 x 16", 16},
             {"matmul_registers", "4 x 4 in registers", 64},
             {"matmul_vectors", "8 x 8 and vectors", 128},
             {"matmul_async", "asynchronous copies", 128},
             {"matmul_warps", "warp tiles", 128}};

enum { N_STEPS = sizeof steps / sizeof steps[0], N_LIBRARY = 4 };

/* The last steps: the library in three precisions, and cuBLAS. */
static const struct {
  const char *what;
  kiln_gemm_precision precision;
} library[N_LIBRARY] = {{"kiln_gemm", KILN_GEMM_IEEE},
                        {"kiln_gemm, split", KILN_GEMM_F32},
                        {"kiln_gemm, tf32", KILN_GEMM_TF32},
                        {"cuBLAS", KILN_GEMM_IEEE}};

static void print_step(const bench_gemm *b, const char *what, double ms,
                       double before, double peer_ms, cli_table *t)
{
  const double rate = operations_of(b->now) / ms / 1e9;

  kiln__cli_cells(t, "%u\t%s\t%.2f us\t%.2f\t%.1f %%", b->n, what, ms * 1e3,
                  rate, 1e14 * rate / peak_of(b, PRODUCT_F32));
  if (before > 0)
    kiln__cli_cells(t, "%.2fx", before / ms);
  else
    kiln__cli_dashes(t, 1);
  if (peer_ms > 0)
    kiln__cli_cells(t, "%.3fx", peer_ms / ms);
  else
    kiln__cli_dashes(t, 1);
}

static kiln_status ladder(bench_gemm *b, uint32_t n, cli_table *t)
{
  double before = 0, ms, peer_ms = 0;

  b->square =
      (product_case){SQUARE(n), PRODUCT_F32, KILN_GEMM_IEEE, NULL, false, 0};
  b->now = &b->square;
  b->n = n;
  CLI_TRY(allocate(b));
  CLI_TRY(fill(b));
  if (b->peer != NULL)
    CLI_TRY(time_call(b, fire_peer, &peer_ms));
  for (size_t i = 0; i < N_STEPS; i++) {
    b->tile = steps[i].tile;
    CLI_TRY(kiln_module_kernel(&b->kernel, b->ladder, steps[i].kernel));
    CLI_TRY(time_call(b, fire_step, &ms));
    print_step(b, steps[i].what, ms, before, peer_ms, t);
    before = ms;
  }
  for (size_t i = 0; i < N_LIBRARY; i++) {
    const bool is_peer = i + 1 == N_LIBRARY;

    b->square.precision = library[i].precision;
    CLI_TRY(allocate_workspace(b));
    if (is_peer && b->peer == NULL)
      continue;
    CLI_TRY(time_call(b, is_peer ? fire_peer : fire_own, &ms));
    print_step(b, library[i].what, ms, before, peer_ms, t);
    before = ms;
  }
  return KILN_OK;
}

/* ---- The command --------------------------------------------------------- */

static kiln_status run_ladder(bench_gemm *b, cli *c)
{
  static const char *const heads[] = {">n",         "step",     ">time",
                                      ">TFLOP/s",   ">of peak", ">step x",
                                      ">to cuBLAS", NULL};
  static const uint32_t sizes[] = {64, 1000, 4096}; /* the first: CPU device */
  const kiln_program_desc program = {.builtin = "ladder/matmul"};
  cli_table table;
  kiln_status st = KILN_OK;

  kiln__cli_table(&table, c, heads);
  CLI_TRY(kiln_module_load(&b->ladder, b->rig.device, &program));
  for (size_t i = c->on_cpu ? 0 : 1; i < (c->on_cpu ? 1u : 3u) && st == KILN_OK;
       i++) {
    st = ladder(b, sizes[i], &table);
    discard(b);
  }
  if (st == KILN_OK)
    kiln__cli_table_print(&table, 0);
  return st;
}

static kiln_status run_cases(bench_gemm *b, const bench_options *o, cli *c,
                             cJSON *json)
{
  static const char *const heads[] = {
      "type",     "shape",    "path",    ">queued", ">TFLOP/s",
      ">of peak", ">cuBLAS",  ">wanted", ">ratio",  ">single",
      ">ratio",   ">differs", NULL};
  product_row rows[N_CASES];
  kiln_status st = KILN_OK;
  cli_table table;
  size_t n = 0;

  kiln__cli_table(&table, c, heads);
  for (size_t i = 0; i < N_CASES && st == KILN_OK; i++) {
    const char *label = kiln__cli_text(c, "%s %s", types[cases[i].type].name,
                                       shape_of(c, &cases[i]));

    if (!kiln__bench_chosen(o, label) ||
        (c->on_cpu && operations_of(&cases[i]) > 1e7))
      continue;
    b->now = &cases[i];
    kiln__cli_progress(c, label, i + 1, N_CASES);
    st = one_case(b, &rows[n]);
    discard(b);
    if (st != KILN_OK)
      break;
    print_case(b, &rows[n], &table);
    keep_case(&rows[n++], json);
  }
  if (st == KILN_OK && n > 0) {
    kiln__cli_table_print(&table, 0);
    print_shortfalls(c, rows, n);
  }
  return st;
}

int kiln__bench_gemm(cli *c, int argc, char **argv)
{
  bench_options o = {.repeats = 11};
  const cli_option options[] = {
      CLI_OPTION_NUMBER("repeats", &o.repeats, 1, BENCH_MOST_REPEATS,
                        "timed runs of each; default 11"),
      BENCH_OPTION_ONLY(&o, "measure only the case"),
      BENCH_OPTION_PEERS(&o),
      BENCH_OPTION_DEVICE(&o),
      BENCH_OPTION_OUTPUT(&o),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln bench gemm [options]\n",
      .about = "Measures matrix products: the steps from a naive kernel to the "
               "library's, then the library's products of each type beside "
               "cuBLAS. Queued calls run behind a busy kernel, which hides the "
               "host's time. Single calls run on an idle GPU and contain it.",
      .options = options,
      .example = "kiln bench gemm --only \"f32 4096\""};
  const char *why = NULL;
  bench_gemm b = {.repeats = 0};
  cJSON *json, *rows;
  cli_words words;
  void *peers;
  kiln_status st;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  json = cJSON_CreateObject();
  rows = cJSON_AddArrayToObject(json, "gemm");
  b.repeats = o.repeats;
  st = kiln__bench_rig_open(&b.rig, c, o.device);
  if (st == KILN_OK) {
    peers = kiln__bench_peers(c, o.peers, o.device, &why);
    if (peers == NULL)
      printf("no peers to compare with: %s\n", why);
    else
      kiln__bench_symbol(peers, "kiln_peer_gemm", &b.peer);
    printf("%s; medians of %u; rates of queued calls\n", b.rig.info.name,
           o.repeats);
    JSON_TEXT(json, "device", b.rig.info.name);
    if (o.only == NULL)
      st = run_ladder(&b, c);
    if (st == KILN_OK)
      st = run_cases(&b, &o, c, rows);
  }
  discard(&b);
  kiln_module_free(b.ladder);
  kiln__bench_rig_close(&b.rig);
  rc = st == KILN_OK ? CLI_OK : kiln__cli_failure(c, "gemm");
  return kiln__bench_end(c, &o, rc, json);
}
