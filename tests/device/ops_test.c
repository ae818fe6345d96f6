/* ops_test.c -- every opcode that computes registers from registers, run as PTX
 * on edge values and on random operands.
 *
 * With a GPU, the results of GPU and CPU device must agree to the bit;
 * approximate functions must stay within their error bounds. Without one, the
 * CPU device is run under both schedulers and in each of its builds. All of
 * these must agree with each other, with references in plain C, and with
 * results that a GPU gave before (tests/golden/ops.txt).
 *
 * KILN_TEST_OPS       "full": 2^20 operands of each opcode instead of the first
 *                     2^14, on the GPU and the CPU device, or on the CPU device
 *                     against golden results; "golden": on the GPU alone
 * KILN_TEST_GOLDEN    another file than tests/golden/ops.txt
 * KILN_TEST_OPS_OUT   folder for ops.txt (then to be kept as tests/golden/
 *                     ops.txt), mismatches.tsv and approximate.tsv
 * KILN_TEST_OPS_ONLY  only opcodes with this prefix */
#include "cpu_bounds.h"
#include "cpu_differ.h"
#include "cpu_exact.h"
#include "cpu_handler.h"
#include "test_device.h"

#include <inttypes.h>
#include <math.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
  PREFIX = 2 * OPERAND_EDGES, /* operands with golden results, which CI uses */
  FULL = 1 << 20,
  CHUNK = 128, /* number of cases per PTX module */
  THREADS = 256,
  EXAMPLES = 24,
  SHOWN = 3
};

typedef struct example {
  uint32_t index;
  uint64_t operands[OPCODE_SOURCES];
  uint64_t want, got;
} example;

/* Findings about one case, which child processes fill in. */
typedef struct record {
  bool ran, refused[2];
  uint64_t prefix, full; /* hashes of the reference device's results */
  uint64_t mismatches;   /* number of wrong results of the CPU device */
  uint32_t n_examples;
  example examples[EXAMPLES];
  /* For approximate opcodes; [0] is the GPU and [1] the CPU device. */
  double worst[2];      /* largest error in units of the error bound */
  uint64_t worst_of[2]; /* first operand with the largest error */
  /* wrong results where only one result is allowed, such as NaN */
  uint64_t special[2];
  /* largest distance between the devices in units in the last place; number of
   * equal results */
  uint64_t apart, equal;
} record;

static opcode_list list;
static record *records;

static const char *only(void)
{
  const char *text = getenv("KILN_TEST_OPS_ONLY");

  return text != NULL ? text : "";
}

static void make_list(unsigned above, unsigned sm)
{
  size_t n = 0;

  opcode_list_make(&list, above, sm, NULL);
  for (size_t i = 0; i < list.n; i++) {
    if (strncmp(list.cases[i].name, only(), strlen(only())) == 0)
      list.cases[n++] = list.cases[i];
  }
  list.n = n;
  records = differ_shared((n + 1) * sizeof *records);
}

/* ---- Running ------------------------------------------------------------- */

/* The operands of one kernel in host memory. */
typedef struct operands {
  const opcode_case *of;
  size_t n;
  void *arrays[OPCODE_SOURCES];
} operands;

static void operands_set(operands *o, const opcode_case *c, size_t n)
{
  if (o->of != NULL && o->n == n && opcode_same_operands(o->of, c))
    return;
  for (unsigned k = 0; k < OPCODE_SOURCES; k++) {
    free(o->arrays[k]);
    o->arrays[k] = malloc(n * 8);
    ck_assert_ptr_nonnull(o->arrays[k]);
  }
  operands_make(c->in, c->n_in, n, o->arrays);
  o->of = c;
  o->n = n;
}

static uint64_t operand_at(const operands *o, unsigned k, size_t i)
{
  return operand_bytes(o->of->in[k]) == 8 ? ((const uint64_t *)o->arrays[k])[i]
                                          : ((const uint32_t *)o->arrays[k])[i];
}

static void values_at(const operands *o, size_t i,
                      uint64_t values[OPCODE_SOURCES])
{
  for (unsigned k = 0; k < OPCODE_SOURCES; k++)
    values[k] = k < o->of->n_in ? operand_at(o, k, i) : 0;
}

static uint64_t result_at(const opcode_case *c, const void *results, size_t i)
{
  return c->out_bytes == 8 ? ((const uint64_t *)results)[i]
                           : ((const uint32_t *)results)[i];
}

/* Runs one kernel with `n_cases` cases. The results of case i begin at results
 * + 8 * n * i. */
static void run_kernel(differ *d, CUmodule module, size_t number,
                       const opcode_case *cases, size_t n_cases,
                       const operands *o, unsigned char *results)
{
  CUdeviceptr in[OPCODE_SOURCES] = {0}, out;
  uint32_t n = (uint32_t)o->n;
  uint64_t step = 8 * o->n;
  void *args[] = {&in[0], &in[1], &in[2], &in[3], &in[4], &out, &n, &step};
  char name[24];

  for (unsigned k = 0; k < cases->n_in; k++) {
    const size_t bytes = operand_bytes(cases->in[k]) * o->n;

    in[k] = differ_alloc(d, bytes);
    differ_put(d, in[k], o->arrays[k], bytes);
  }
  out = differ_alloc(d, step * n_cases);
  snprintf(name, sizeof name, "k%zu", number);
  differ_launch(d, module, name, n / THREADS, THREADS, args);
  for (size_t i = 0; i < n_cases; i++)
    differ_get(d, results + step * i, out + step * i,
               cases[i].out_bytes * o->n);
  for (unsigned k = 0; k < cases->n_in; k++)
    differ_free(d, in[k]);
  differ_free(d, out);
}

static bool load(differ *d, CUmodule *out, const opcode_case *cases, size_t n,
                 char *log, size_t size)
{
  kiln_allocator a = {0};
  kiln__buf text;
  bool ok;

  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  opcode_module(&text, cases, n);
  ck_assert(!text.failed);
  ok = differ_load(d, out, text.data, log, size);
  kiln__buf_free(&text);
  return ok;
}

/* Clears the bits of the results that are not compared. */
static void cut_results(const opcode_case *c, void *results, size_t n)
{
  for (size_t i = 0; c->half && i < n; i++)
    ((uint32_t *)results)[i] &= 0xffff;
}

/* ---- Comparing ----------------------------------------------------------- */

static void note(record *r, const operands *o, size_t i, uint64_t want,
                 uint64_t got)
{
  example *e;

  r->mismatches++;
  if (r->n_examples == EXAMPLES)
    return;
  e = &r->examples[r->n_examples++];
  *e = (example){.index = (uint32_t)i, .want = want, .got = got};
  for (unsigned k = 0; k < o->of->n_in; k++)
    e->operands[k] = operand_at(o, k, i);
}

static void compare_bits(const opcode_case *c, record *r, const operands *o,
                         const void *want, const void *got)
{
  if (memcmp(want, got, c->out_bytes * o->n) == 0)
    return;
  for (size_t i = 0; i < o->n; i++) {
    const uint64_t x = result_at(c, want, i), y = result_at(c, got, i);

    if (x != y)
      note(r, o, i, x, y);
  }
}

/* Returns the distance of two results in units in the last place. If only their
 * upper words differ from 0, the unit is that of the upper word. */
static uint64_t steps(const opcode_case *c, uint64_t a, uint64_t b)
{
  const uint64_t sign = c->out_bytes == 8 ? UINT64_C(1) << 63 : 1u << 31;
  const uint64_t x = a & sign ? sign - (a & ~sign) : sign + a;
  const uint64_t y = b & sign ? sign - (b & ~sign) : sign + b;

  const uint64_t far = x > y ? x - y : y - x;

  return c->out_bytes == 8 && ((a | b) & UINT32_MAX) == 0 ? far >> 32 : far;
}

/* Measures the errors of an approximate opcode on one device. */
static void measure(const opcode_case *c, record *r, const operands *o,
                    const void *results, unsigned which)
{
  for (size_t i = 0; i < o->n; i++) {
    const uint64_t got = result_at(c, results, i);
    uint64_t values[OPCODE_SOURCES];
    double error;

    values_at(o, i, values);
    error = bounds_error(c, values, got);
    if (error < 0) {
      r->special[which]++;
      if (which == 1)
        note(r, o, i, 0, got);
    } else if (error > r->worst[which]) {
      r->worst[which] = error;
      r->worst_of[which] = values[0];
    }
  }
}

static void compare_near(const opcode_case *c, record *r, const operands *o,
                         const void *want, const void *got)
{
  measure(c, r, o, want, 0);
  measure(c, r, o, got, 1);
  for (size_t i = 0; i < o->n; i++) {
    const uint64_t x = result_at(c, want, i), y = result_at(c, got, i);
    const uint64_t far = steps(c, x, y);

    r->equal += x == y;
    if (far < 1u << 31 && far > r->apart)
      r->apart = far;
    if (far >= 1u << 24 && !bounds_near(c, x, y))
      note(r, o, i, x, y);
  }
}

static void hash(const opcode_case *c, record *r, const operands *o,
                 const void *results)
{
  r->ran = true;
  r->prefix = XXH3_64bits(results, (size_t)c->out_bytes * PREFIX);
  r->full = XXH3_64bits(results, c->out_bytes * o->n);
}

/* ---- Reports ------------------------------------------------------------- */

static void print_example(FILE *f, const opcode_case *c, const example *e)
{
  fprintf(f, "%" PRIu32, e->index);
  for (unsigned k = 0; k < c->n_in; k++)
    fprintf(f, "%c%0*" PRIx64, k == 0 ? '\t' : ',',
            2 * (int)operand_bytes(c->in[k]), e->operands[k]);
  fprintf(f, "\t%0*" PRIx64 "\t%0*" PRIx64 "\n", 2 * c->out_bytes, e->want,
          2 * c->out_bytes, e->got);
}

static FILE *out_file(const char *name)
{
  const char *folder = getenv("KILN_TEST_OPS_OUT");
  char path[512];
  FILE *f;

  if (folder == NULL)
    return NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  f = fopen(path, "w");
  ck_assert_msg(f != NULL, "cannot write %s", path);
  return f;
}

/* Prints the wrong cases, at most 40 of them in detail, and returns their
 * number. */
static unsigned report(const char *against)
{
  FILE *f = out_file("mismatches.tsv");
  unsigned wrong = 0;

  if (f != NULL)
    fprintf(f, "opcode\tindex\toperands\twant\tgot\n");
  for (size_t i = 0; i < list.n; i++) {
    const opcode_case *c = &list.cases[i];
    const record *r = &records[i];

    for (uint32_t k = 0; f != NULL && k < r->n_examples; k++) {
      fprintf(f, "%s\t", c->name);
      print_example(f, c, &r->examples[k]);
    }
    if (r->mismatches == 0 && r->worst[1] <= 1 && !r->refused[0] &&
        !r->refused[1])
      continue;
    if (wrong++ >= 40)
      continue;
    printf("%s: %" PRIu64 " of them not as %s%s%s", c->name, r->mismatches,
           against, r->refused[0] ? "; the GPU refuses it" : "",
           r->refused[1] ? "; the CPU device refuses it" : "");
    if (r->worst[1] > 1)
      printf("; %.3f times the bound at %" PRIx64, r->worst[1], r->worst_of[1]);
    printf("\n");
    for (uint32_t k = 0; k < r->n_examples && k < SHOWN; k++)
      print_example(stdout, c, &r->examples[k]);
  }
  if (f != NULL)
    fclose(f);
  printf("%zu opcodes, %u of them not as %s\n", list.n, wrong, against);
  fflush(stdout);
  return wrong;
}

/* ---- GPU and CPU device -------------------------------------------------- */

static struct {
  size_t n;      /* number of operands of each opcode */
  bool gpu;      /* the GPU is the reference; if false, the CPU device */
  bool cpu;      /* the CPU device runs as well */
  size_t *next;  /* chunk; shared */
  char name[96]; /* name of the GPU */
} job;

typedef struct pair {
  differ gpu, cpu;
  operands operands;
  unsigned char *results[2];
} pair;

static void pair_kernel(pair *p, CUmodule gpu, CUmodule cpu, size_t number,
                        const opcode_case *cases, size_t n)
{
  record *r = &records[cases - list.cases];

  operands_set(&p->operands, cases, job.n);
  run_kernel(&p->gpu, gpu, number, cases, n, &p->operands, p->results[0]);
  if (job.cpu)
    run_kernel(&p->cpu, cpu, number, cases, n, &p->operands, p->results[1]);
  for (size_t i = 0; i < n; i++) {
    unsigned char *want = p->results[0] + 8 * job.n * i;
    unsigned char *got = p->results[1] + 8 * job.n * i;

    cut_results(&cases[i], want, job.n);
    hash(&cases[i], &r[i], &p->operands, want);
    if (!job.cpu)
      continue;
    cut_results(&cases[i], got, job.n);
    if (cases[i].approx)
      compare_near(&cases[i], &r[i], &p->operands, want, got);
    else
      compare_bits(&cases[i], &r[i], &p->operands, want, got);
  }
}

/* Bisects a program that the device rejects until the rejected opcodes are
 * found. */
static void pair_chunk(pair *p, const opcode_case *cases, size_t n)
{
  CUmodule modules[2] = {NULL, NULL};
  char log[1024];
  const bool refused[2] = {
      !load(&p->gpu, &modules[0], cases, n, log, sizeof log),
      job.cpu && !load(&p->cpu, &modules[1], cases, n, log, sizeof log)};
  size_t number = 0;

  if (refused[0] || refused[1]) {
    if (n == 1) {
      memcpy(records[cases - list.cases].refused, refused, sizeof refused);
      printf("%s: refused: %s\n", cases->name, log);
    } else {
      pair_chunk(p, cases, n / 2);
      pair_chunk(p, cases + n / 2, n - n / 2);
    }
  } else {
    for (size_t i = 0, k; i < n; i += k) {
      k = opcode_kernel_cases(cases + i, n - i);
      pair_kernel(p, modules[0], modules[1], number++, cases + i, k);
    }
  }
  if (modules[0] != NULL)
    differ_unload(&p->gpu, modules[0]);
  if (modules[1] != NULL)
    differ_unload(&p->cpu, modules[1]);
}

static void pair_work(void *user, unsigned k)
{
  pair p = {0};
  size_t at;

  (void)user;
  (void)k;
  if (job.gpu)
    ck_assert(differ_open_gpu(&p.gpu));
  else
    differ_open_cpu(&p.gpu, &(kiln_cpu_opts){.arch = 90});
  if (job.cpu)
    differ_open_cpu(&p.cpu, &(kiln_cpu_opts){.arch = 90});
  for (int i = 0; i < 2; i++) {
    p.results[i] = malloc(8 * job.n * OPCODE_BATCH);
    ck_assert_ptr_nonnull(p.results[i]);
  }
  while ((at = __atomic_fetch_add(job.next, CHUNK, __ATOMIC_RELAXED)) < list.n)
    pair_chunk(&p, list.cases + at, list.n - at < CHUNK ? list.n - at : CHUNK);
}

/* ---- Golden results ------------------------------------------------------ */

static uint64_t operands_hash(const opcode_case *c, size_t n)
{
  static operands o;
  uint64_t sum = 0;

  operands_set(&o, c, n);
  for (unsigned k = 0; k < c->n_in; k++)
    sum = XXH3_64bits_withSeed(o.arrays[k], operand_bytes(c->in[k]) * n, sum);
  return sum;
}

/* Writes "= operands TAB hash" for each list of operands, then "opcode TAB hash
 * of the first results TAB hash of all results" for each opcode. Approximate
 * opcodes are marked with ~ and not compared. */
static void write_golden(void)
{
  FILE *f = out_file("ops.txt");

  if (f == NULL)
    return;
  fprintf(f,
          "# results of %s: opcode, XXH3 of the results of the first %d, "
          "and of %zu operands (of set with 16 bits: of its lower 16)\n",
          job.name, PREFIX, job.n);
  for (size_t i = 0; i < list.n; i++) {
    const opcode_case *c = &list.cases[i];
    char text[128];

    operands_text(c, text, sizeof text);
    if (i == 0 || !opcode_same_operands(c, c - 1))
      fprintf(f, "= %s\t%016" PRIx64 "\n", text, operands_hash(c, PREFIX));
    if (records[i].ran)
      fprintf(f, "%s%s\t%016" PRIx64 "\t%016" PRIx64 "\n",
              c->approx ? "~ " : "", c->name, records[i].prefix,
              records[i].full);
  }
  fclose(f);
}

static void write_approximate(void)
{
  FILE *f = out_file("approximate.tsv");

  for (size_t i = 0; i < list.n; i++) {
    const opcode_case *c = &list.cases[i];
    const record *r = &records[i];

    if (!c->approx)
      continue;
    if (f != NULL)
      fprintf(f,
              "%s\tGPU %.4f at %" PRIx64 ", special %" PRIu64
              "\tCPU %.4f at %" PRIx64 ", special %" PRIu64 "\tapart %" PRIu64
              "\tequal %.2f%%\n",
              c->name, r->worst[0], r->worst_of[0], r->special[0], r->worst[1],
              r->worst_of[1], r->special[1], r->apart,
              100 * (double)r->equal / (double)job.n);
    printf("%-24s times its bound: GPU %.3f, CPU %.3f; special: %" PRIu64
           ", %" PRIu64 "; apart %" PRIu64 "; equal %.1f%%\n",
           c->name, r->worst[0], r->worst[1], r->special[0], r->special[1],
           r->apart, 100 * (double)r->equal / (double)job.n);
  }
  if (f != NULL)
    fclose(f);
}

static void name_gpu(void *user, unsigned k)
{
  differ d;

  (void)k;
  ck_assert(differ_open_gpu(&d));
  snprintf(user, 96, "%.70s, driver %d", d.name, d.api.version);
}

/* Lets child processes run all cases. */
static void run_all(bool gpu, bool cpu, size_t n)
{
  job.n = n;
  job.gpu = gpu;
  job.cpu = cpu;
  job.next = differ_shared(sizeof *job.next);
  ck_assert_uint_eq(
      differ_fork(differ_cores() > 2 ? differ_cores() / 2 : 2, pair_work, NULL),
      0);
}

static bool asked_for(const char *what)
{
  const char *const how = getenv("KILN_TEST_OPS");

  return how != NULL && strcmp(how, what) == 0;
}

START_TEST(gpu_and_cpu_device_agree)
{
  const bool golden = asked_for("golden");
  char *name = differ_shared(96);

  if (on_cpu()) {
    printf("no GPU: not compared with one\n");
    return;
  }
  make_list(0, 90);
  ck_assert_uint_eq(differ_fork(1, name_gpu, name), 0);
  memcpy(job.name, name, sizeof job.name);
  run_all(true, !golden, golden || asked_for("full") ? FULL : PREFIX);
  write_golden();
  if (golden)
    return;
  write_approximate();
  ck_assert_uint_eq(report("on the GPU"), 0);
}
END_TEST

/* ---- The CPU device alone ------------------------------------------------ */

typedef struct golden_line {
  char name[112];
  uint64_t prefix, full;
} golden_line;

static golden_line *golden;
static size_t n_golden;

static int by_name(const void *a, const void *b)
{
  return strcmp(((const golden_line *)a)->name, ((const golden_line *)b)->name);
}

/* Reads the golden results. Returns false if there are none. */
static bool read_golden(void)
{
  const char *const path = getenv("KILN_TEST_GOLDEN");
  FILE *f = fopen(
      path != NULL ? path : KILN_TEST_SOURCE "/tests/golden/ops.txt", "r");
  char line[512], *rest;

  if (f == NULL)
    return false;
  golden = calloc(20000, sizeof *golden);
  ck_assert_ptr_nonnull(golden);
  while (fgets(line, sizeof line, f) != NULL && n_golden < 20000) {
    golden_line *g = &golden[n_golden];
    char *tab = strchr(line, '\t');

    if (line[0] == '#' || tab == NULL)
      continue;
    *tab = '\0';
    snprintf(g->name, sizeof g->name, "%.111s", line);
    g->prefix = strtoull(tab + 1, &rest, 16);
    g->full = strtoull(rest, NULL, 16);
    n_golden++;
  }
  fclose(f);
  qsort(golden, n_golden, sizeof *golden, by_name);
  return true;
}

static const golden_line *find_golden(const char *name)
{
  golden_line key = {.prefix = 0};

  snprintf(key.name, sizeof key.name, "%s", name);
  return bsearch(&key, golden, n_golden, sizeof *golden, by_name);
}

/* Returns how many opcodes have other results than the GPU. Fails at once if
 * the operands have changed since the GPU's results were recorded. */
static unsigned check_golden(bool full)
{
  unsigned wrong = 0, checked = 0;

  for (size_t i = 0; i < list.n; i++) {
    const opcode_case *c = &list.cases[i];
    const golden_line *g = find_golden(c->name);

    if (i == 0 || !opcode_same_operands(c, c - 1)) {
      char text[128] = "= ";
      const golden_line *same;

      operands_text(c, text + 2, sizeof text - 2);
      same = find_golden(text);
      ck_assert_msg(
          same == NULL || same->prefix == operands_hash(c, PREFIX),
          "operands %s are others than those of tests/golden/ops.txt: make "
          "it anew on a GPU (tests/gpu.sh golden)",
          text + 2);
    }
    if (g == NULL || c->approx)
      continue;
    checked++;
    if ((full ? g->full != records[i].full : g->prefix != records[i].prefix) &&
        wrong++ < 40)
      printf("%s: not as on the GPU\n", c->name);
  }
  printf("%u opcodes compared with a GPU's results, %u wrong\n", checked,
         wrong);
  fflush(stdout);
  return wrong;
}

/* Results of the first run; those of a case are contiguous. */
static unsigned char *first_run;
static size_t run_size;

static void alone_kernel(differ *d, CUmodule module, size_t number,
                         const opcode_case *cases, size_t n, operands *o,
                         bool first)
{
  static unsigned char results[8 * PREFIX * OPCODE_BATCH];

  operands_set(o, cases, run_size);
  run_kernel(d, module, number, cases, n, o, results);
  for (size_t i = 0; i < n; i++) {
    const size_t at = (size_t)(cases - list.cases) + i;
    const unsigned char *got = results + 8 * run_size * i;
    unsigned char *kept = first_run + 8 * PREFIX * at;

    if (!first) {
      compare_bits(&cases[i], &records[at], o, kept, got);
      continue;
    }
    memcpy(kept, got, cases[i].out_bytes * run_size);
    hash(&cases[i], &records[at], o, got);
    if (cases[i].approx)
      measure(&cases[i], &records[at], o, got, 1);
  }
}

/* Runs all cases on a CPU device with these settings. */
static void alone(const kiln_cpu_opts *opts, bool first)
{
  operands o = {0};
  differ d;

  differ_open_cpu(&d, opts);
  for (size_t at = 0; at < list.n; at += CHUNK) {
    const size_t n = list.n - at < CHUNK ? list.n - at : CHUNK;
    CUmodule module = NULL;
    char log[1024];
    size_t number = 0;

    ck_assert_msg(load(&d, &module, list.cases + at, n, log, sizeof log), "%s",
                  log);
    for (size_t i = 0, k; i < n; i += k) {
      k = opcode_kernel_cases(list.cases + at + i, n - i);
      alone_kernel(&d, module, number++, list.cases + at + i, k, &o, first);
    }
    differ_unload(&d, module);
  }
  differ_close(&d);
  for (unsigned k = 0; k < OPCODE_SOURCES; k++)
    free(o.arrays[k]);
}

static bool check_warps(const opcode_case *c, record *r, const operands *o,
                        const unsigned char *results)
{
  for (size_t k = 0; k < PREFIX; k += 3 * KILN__WARP) {
    uint64_t values[KILN__WARP][OPCODE_SOURCES], want[KILN__WARP];

    for (size_t i = 0; i < KILN__WARP; i++)
      values_at(o, k + i, values[i]);
    if (!exact_warp(c, values, want))
      return false;
    for (size_t i = 0; i < KILN__WARP; i++) {
      if (want[i] != result_at(c, results, k + i))
        note(r, o, k + i, want[i], result_at(c, results, k + i));
    }
  }
  return true;
}

/* Compares some results of each case with plain C. */
static unsigned check_references(void)
{
  operands o = {0};
  unsigned known = 0;

  for (size_t i = 0; i < list.n; i++) {
    const opcode_case *c = &list.cases[i];
    const unsigned char *results = first_run + 8 * PREFIX * i;
    bool any;

    operands_set(&o, c, PREFIX);
    any = check_warps(c, &records[i], &o, results);
    for (size_t k = 0; k < PREFIX; k += k < 512 ? 1 : 5) {
      uint64_t values[OPCODE_SOURCES], want;

      values_at(&o, k, values);
      if (!exact_result(c, values, &want))
        continue;
      any = true;
      if (want != result_at(c, results, k))
        note(&records[i], &o, k, want, result_at(c, results, k));
    }
    known += any;
  }
  printf("%u of %zu opcodes have a reference\n", known, list.n);
  return report("in plain C");
}

static void forget_mismatches(void)
{
  for (size_t i = 0; i < list.n; i++)
    records[i].mismatches = records[i].n_examples = 0;
}

/* Compares every build of the interpreter under both schedulers with the first
 * run. */
static void check_settings(unsigned arch)
{
  const unsigned n = cpu_isas_find();

  first_run = malloc(8 * PREFIX * (list.n + 1));
  ck_assert_ptr_nonnull(first_run);
  run_size = PREFIX;
  for (unsigned k = 0; k < 2 * n; k++) {
    const kiln_cpu_opts opts = {.arch = (int)arch,
                                .isa = cpu_isas[n - 1 - k / 2]->name,
                                .schedule = k % 2 == 0 ? KILN_CPU_INDEPENDENT
                                                       : KILN_CPU_LOCK_STEP,
                                .seed = k,
                                .threads = differ_cores()};
    char text[96];

    alone(&opts, k == 0);
    snprintf(text, sizeof text, "%s", k == 0 ? "right" : "in the first run");
    printf("%s, %s: ", opts.isa, k % 2 == 0 ? "independent" : "lock-step");
    ck_assert_uint_eq(report(text), 0);
    forget_mismatches();
  }
}

START_TEST(cpu_device_agrees_with_itself_and_references)
{
  make_list(0, 90);
  check_settings(90);
  ck_assert_uint_eq(check_references(), 0);
  if (!read_golden())
    printf("no tests/golden/ops.txt: not compared with a GPU's results\n");
  else
    ck_assert_uint_eq(check_golden(false), 0);
  opcode_list_free(&list);
  free(first_run);
}
END_TEST

START_TEST(cpu_device_gives_all_golden_results)
{
  if (!on_cpu())
    return;
  if (!read_golden()) {
    printf("no tests/golden/ops.txt: nothing to compare with\n");
    return;
  }
  make_list(0, 90);
  run_all(false, false, FULL);
  ck_assert_uint_eq(check_golden(true), 0);
}
END_TEST

START_TEST(opcodes_of_newer_targets_agree)
{
  make_list(90, 100);
  check_settings(100);
  ck_assert_uint_eq(check_references(), 0);
  opcode_list_free(&list);
  free(first_run);
}
END_TEST

/* ---- Completeness of the list of opcodes --------------------------------- */

START_TEST(every_row_of_registers_has_an_opcode)
{
  static const struct {
    const char *name;
    kiln__cpu_kind kind;
    kiln__cpu_class klass;
  } rows[] = {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)          \
  {#name, KILN__KIND_##kind, KILN__CLASS_##klass},
#include "cpu/code/ops.def"
#undef KILN__OP
  };
  /* These opcodes are not covered: address conversions, clocks, opcodes that
   * depend on groups of lanes or wait, forms of shfl and vote that do not exist
   * from 7.0 on, and opcodes of targets with a suffix. Tests of their own cover
   * bulk copies and the tensor cores. */
  static const char *const left[] = {
      "cvta",          "cvta_same",     "cvta_to",  "mov_local",   "mov_clock",
      "activemask",    "shfl",          "vote",     "vote_ballot", "redux_f32",
      "redux_abs_f32", "bar_warp_sync", "ldmatrix", "stmatrix"};
  /* tests/host/cpu/video_test.c covers these. */
  static const char *const video[] = {
#undef KILN__OP_AS
#define KILN__OP_AS(name, ...) #name,
#include "cpu/code/ops/video.def"
#undef KILN__OP_AS
  };
  static bool uncovered[KILN__N_OPS];
  opcode_list all;
  bool by_hand[KILN__N_OPS] = {false};

  opcode_list_make(&all, 0, 120, uncovered);
  for (size_t i = 0; i < all.n; i++)
    by_hand[all.cases[i].op] = true;
  opcode_list_free(&all);
  for (unsigned op = 0; op < KILN__N_OPS; op++) {
    bool known = by_hand[op] || !uncovered[op] ||
                 (rows[op].kind != KILN__KIND_SIMPLE &&
                  rows[op].kind != KILN__KIND_WARP) ||
                 rows[op].klass == KILN__CLASS_OTHER ||
                 (rows[op].klass >= KILN__CLASS_PARAM &&
                  rows[op].klass <= KILN__CLASS_TEXTURE) ||
                 rows[op].klass == KILN__CLASS_FENCE ||
                 rows[op].klass == KILN__CLASS_BULK_LOAD ||
                 rows[op].klass == KILN__CLASS_BULK_STORE ||
                 rows[op].klass == KILN__CLASS_TENSOR;

    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
      known = known || strcmp(rows[op].name, left[i]) == 0;
    for (size_t i = 0; i < sizeof video / sizeof *video; i++)
      known = known || strcmp(rows[op].name, video[i]) == 0;
    ck_assert_msg(known, "%s: no opcode of it is run", rows[op].name);
  }
}
END_TEST

static Suite *make(void)
{
  Suite *suite = suite_create("ops");
  TCase *ops = tcase_create("ops");

  tcase_set_timeout(ops, 900);
  tcase_add_test(ops, every_row_of_registers_has_an_opcode);
  tcase_add_test(ops, gpu_and_cpu_device_agree);
  if (getenv("KILN_TEST_OPS") == NULL) {
    tcase_add_test(ops, cpu_device_agrees_with_itself_and_references);
    tcase_add_test(ops, opcodes_of_newer_targets_agree);
  } else if (asked_for("full")) {
    tcase_add_test(ops, cpu_device_gives_all_golden_results);
  }
  suite_add_tcase(suite, ops);
  return suite;
}

DEVICE_TEST_MAIN(make)
