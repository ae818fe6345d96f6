/* bench_tune.c -- `kiln tune`, which times every candidate set of the
 * operations' tuning parameters on a GPU and keeps the fastest. Without a GPU,
 * the command compiles the candidates and shows the resources of each. */
#include "bench/bench_ops.h"

#include <math.h>
#include <string.h>

typedef struct options {
  bench_options shared;
  const char *arch;
  bool dry_run; /* option: true to leave the tuning file unchanged */
  bool all;     /* true to print a row for each candidate */
  /* Seconds for the candidates of a case and a size; 0 means no limit. */
  unsigned budget;
  /* Names of the tuning families; an empty list means all. */
  cli_words families;
} options;

static bool is_wanted(const options *o, const char *family)
{
  for (int i = 0; i < o->families.n; i++)
    if (strcmp(o->families.at[i], family) == 0)
      return true;
  return o->families.n == 0;
}

static const char *family_list(cli *c)
{
  size_t n;
  const kiln_tuning_family *f = kiln_tuning_families(&n);
  const char *list = f[0].name;

  for (size_t i = 1; i < n; i++)
    list = kiln__cli_text(c, "%s, %s", list, f[i].name);
  return list;
}

static int check_families(cli *c, const options *o)
{
  size_t n;

  for (int i = 0; i < o->families.n; i++)
    if (kiln_tuning_candidates(o->families.at[i], &n) == NULL)
      return kiln__cli_usage(c, "there is no family \"%s\" among %s",
                             o->families.at[i], family_list(c));
  return CLI_OK;
}

/* ---- Without a GPU: the resources of each candidate set of parameters ---- */

static const char *verdict(const bench_resources *r)
{
  if (r->kernel.spill_stores + r->kernel.spill_loads > 0)
    return "spills";
  return r->occupancy.share < 0.25 ? "few warps" : "";
}

static void compile_candidate(cli *c, const kiln_target *target,
                              const kiln_tuning_family *f, const kiln_tuning *t,
                              cli_table *table)
{
  const char *const defines[] = {kiln__cli_text(c, "KILN_BLOCK=%u", t->block),
                                 kiln__cli_text(c, "KILN_ITEMS=%u", t->items)};
  const kiln_program_desc desc = {
      .builtin = f->builtin, .defines = defines, .n_defines = 2};
  bench_resources r;

  kiln__cli_cells(table, "%s\t%u\t%u", f->name, t->block, t->items);
  if (kiln__bench_resources(&r, c, &desc, target, t->block) != KILN_OK) {
    kiln__cli_dashes(table, 5);
    kiln__cli_cell(table, "%s", kiln__cli_headline(c));
  } else {
    kiln__cli_cells(table, "%d\t%d\t%d\t%.0f %%\t%zu\t%s", r.kernel.registers,
                    r.kernel.spill_stores + r.kernel.spill_loads,
                    r.kernel.shared_static, 100 * r.occupancy.share,
                    r.cubin_bytes, verdict(&r));
  }
}

/* Compiles every candidate for a target and prints the resources of each. */
static int without_device(cli *c, const options *o)
{
  static const char *const heads[] = {
      "family",  ">block", ">items", ">registers", ">spills",
      ">shared", ">warps", ">bytes", "pruned for", NULL};
  kiln_target target;
  cli_table table;
  size_t n, k, done = 0;
  const kiln_tuning_family *f = kiln_tuning_families(&n);

  if (kiln_target_parse(&target, o->arch) != KILN_OK)
    return kiln__cli_usage(c, "--arch \"%s\": write sm_90", o->arch);
  kiln__cli_table(&table, c, heads);
  for (size_t i = 0; i < n; i++) {
    const kiln_tuning *t = kiln_tuning_candidates(f[i].name, &k);

    if (!is_wanted(o, f[i].name) || f[i].builtin == NULL)
      continue;
    for (size_t at = 0; at < k; at++) {
      compile_candidate(c, &target, &f[i], &t[at], &table);
      kiln__cli_progress(c, f[i].name, at + 1, k);
      done++;
    }
  }
  kiln__cli_table_print(&table, 0);
  printf("%zu candidates, with the kernels' default types; those of all pairs, "
         "stencils and matrix products can only be measured\n",
         done);
  return CLI_OK;
}

/* ---- With a device: the time of each candidate set of parameters -------- */

typedef struct best {
  kiln_tuning tuning;
  bool measured; /* false if the library's own choice is the fastest */
  double ms, table_ms;
  size_t tried, failed;
} best;

static void print_row(cli_table *t, const bench_ops *b, const char *family,
                      const kiln_tuning *tuning, double ms, double table_ms)
{
  kiln__cli_cells(t, "%s\t%s\t%s\t%llu\t%u\t%u\t%u\t%u\t%.2f us\t%.2fx", family,
                  b->now->label, kiln_dtype_name(b->now->type),
                  (unsigned long long)b->n, tuning->block, tuning->items,
                  tuning->per_sm, tuning->extra, ms * 1e3, table_ms / ms);
}

static void print_best(cli_table *t, const bench_ops *b, const char *family,
                       const best *found)
{
  print_row(t, b, family, &found->tuning, found->ms, found->table_ms);
  kiln__cli_cell(t, "%zu of %zu", found->tried - found->failed, found->tried);
}

/* Returns the size class of a case at a size, as a base-2 logarithm. */
static unsigned class_of(const bench_case *c, unsigned bits)
{
  return kiln_dtype_size(c->type) == 8 && bits > 0 ? bits - 1 : bits;
}

/* Times the call with the parameters that have just been set. */
static kiln_status time_candidate(bench_ops *b, double *ms)
{
  kiln_status st;

  /* The size of the workspace depends on the tile size. */
  b->workspace_known = false;
  b->is_candidate = true;
  st = kiln__bench_time_own(b, ms);
  b->is_candidate = false;
  return st;
}

/* Times every candidate set of parameters of the tuning family on the current
 * case b->now, whose inputs are prepared. A candidate that does not compile is
 * skipped. No candidate starts after the budget.
 * @param all  NULL, or a table that gets a row for each candidate */
static kiln_status tune_case(bench_ops *b, const char *family, unsigned log2_n,
                             double budget_ns, best *out, cli_table *all)
{
  const unsigned size = (unsigned)kiln_dtype_size(b->now->type);
  size_t n;
  const kiln_tuning *t = kiln_tuning_candidates(family, &n);
  const double end = kiln__cli_now_ns() + budget_ns;

  *out = (best){.ms = INFINITY};
  CLI_TRY(kiln_tuning_get(b->rig.device, family, size, b->n, &out->tuning,
                          &out->measured));
  /* The model may overrule the parameters of another size class. */
  if (b->chosen.block != 0)
    out->tuning = b->chosen;
  CLI_TRY(kiln__bench_time_own(b, &out->table_ms));
  out->ms = out->table_ms;
  if (all != NULL) {
    print_row(all, b, family, &out->tuning, out->ms, out->ms);
    kiln__cli_cell(all, "in use");
  }
  for (size_t i = 0; i < n; i++, out->tried++) {
    double ms;

    if (i > 0 && budget_ns > 0 && kiln__cli_now_ns() > end)
      break;
    CLI_TRY(kiln_tuning_set(b->rig.device, family, size, log2_n, &t[i]));
    kiln__cli_progress(b->rig.c, b->now->label, i + 1, n);
    if (time_candidate(b, &ms) != KILN_OK) {
      if (kiln_last_error()->status == KILN_ESTICKY)
        return KILN_ESTICKY;
      out->failed++;
      continue;
    }
    if (all != NULL) {
      print_row(all, b, family, &t[i], ms, out->table_ms);
      kiln__cli_cell(all, "%zu", i + 1);
    }
    if (ms < out->ms) {
      out->ms = ms;
      out->tuning = t[i];
      out->measured = true;
    }
  }
  return KILN_OK;
}

/* Makes the fastest parameters those of a size class. If they are the library's
 * own, the class gets none, so that later versions of the library apply. */
static kiln_status use(bench_ops *b, const char *family, unsigned log2_n,
                       const best *found)
{
  return kiln_tuning_set(b->rig.device, family,
                         (unsigned)kiln_dtype_size(b->now->type), log2_n,
                         found->measured ? &found->tuning : NULL);
}

/* Returns whether a case is the first of its element size. Only such cases
 * are tuned, since parameters are stored per element size. */
static bool is_first_of_size(const bench_case *cases, const bench_case *c)
{
  for (const bench_case *k = cases; k < c; k++)
    if (k->own_size == 0 &&
        kiln_dtype_size(k->type) == kiln_dtype_size(c->type))
      return false;
  return true;
}

/* Tunes the current case for all sizes. A case may limit the number of elements;
 * the classes above the limit share a measurement. */
static kiln_status tune_sizes(bench_ops *b, const char *family,
                              const options *o, cli_table *table)
{
  uint64_t last = 0;
  best found = {.measured = false};

  for (size_t i = 0; i < o->shared.sizes.n; i++, last = b->n) {
    const unsigned log2_n = class_of(b->now, o->shared.sizes.bits[i]);
    kiln_status st;

    b->n = kiln__bench_elements(b->now, o->shared.sizes.bits[i]);
    st = kiln__bench_prepare(b);
    if (st == KILN_ENOTFOUND)
      continue;
    CLI_TRY(st);
    if (b->n != last) {
      CLI_TRY(tune_case(b, family, log2_n, 1e9 * o->budget, &found,
                        o->all ? table : NULL));
      print_best(table, b, family, &found);
    }
    CLI_TRY(use(b, family, log2_n, &found));
  }
  return KILN_OK;
}

/* Tunes the families of a table of cases that were asked for. */
static kiln_status tune_families(bench_ops *b, const bench_family *f,
                                 const options *o, cli_table *table)
{
  for (; f->name != NULL; f++) {
    if (f->tuning == NULL || !is_wanted(o, f->tuning))
      continue;
    b->tuning = f->tuning;
    for (b->now = f->cases; b->now->label != NULL; b->now++)
      if (is_first_of_size(f->cases, b->now) && b->now->own_size == 0)
        CLI_TRY(tune_sizes(b, f->tuning, o, table));
  }
  return KILN_OK;
}

static kiln_status keep(bench_ops *b, const options *o)
{
  char path[1024];

  if (o->dry_run) {
    printf("nothing is kept (--dry-run)\n");
    return KILN_OK;
  }
  CLI_TRY(kiln_tuning_path(b->rig.device, path, sizeof path));
  CLI_TRY(kiln_tuning_save(b->rig.device, NULL));
  printf("kept in %s\n", path);
  return KILN_OK;
}

/* Times every candidate set of parameters on the device and keeps the
 * fastest. */
static int with_device(cli *c, const options *o)
{
  static const char *const heads[] = {
      "family",  "case",   "type",  ">n",    ">block",      ">items",
      ">per SM", ">extra", ">time", ">gain", ">candidates", NULL};
  bench_ops b = {.repeats = o->shared.repeats};
  kiln_status st;
  cli_table table;

  kiln__cli_table(&table, c, heads);
  st = kiln__bench_ops_open(&b, c, o->shared.device,
                            kiln__bench_most(&o->shared.sizes));
  if (st == KILN_OK)
    st = tune_families(&b, kiln__bench_families, o, &table);
  if (st == KILN_OK)
    st = tune_families(&b, kiln__bench_compute, o, &table);
  if (st == KILN_OK) {
    printf("%s: gain over the parameters in use\n", b.rig.info.name);
    kiln__cli_table_print(&table, 0);
    st = keep(&b, o);
  }
  kiln__bench_ops_close(&b);
  return st == KILN_OK ? CLI_OK : kiln__cli_failure(c, "tuning");
}

int kiln__cli_tune(cli *c, int argc, char **argv)
{
  options o = {.shared = {.sizes = {{28, 24, 20, 16}, 4}, .repeats = 9},
               .budget = 60};
  const cli_option table[] = {
      CLI_OPTION_SIZES(&o.shared.sizes, 0, 32,
                       "log2 of the elements of 4 bytes: the size classes; "
                       "default 28,24,20,16"),
      CLI_OPTION_NUMBER("repeats", &o.shared.repeats, 1, BENCH_MOST_REPEATS,
                        "timed runs of each candidate; default 9"),
      CLI_OPTION_NUMBER("budget", &o.budget, 0, 86400,
                        "seconds for the candidates of a case and size; 0 for "
                        "no limit; default 60"),
      BENCH_OPTION_DEVICE(&o.shared),
      CLI_OPTION_FLAG("dry-run", &o.dry_run, "print the best, keep nothing"),
      CLI_OPTION_FLAG("all", &o.all, "print the time of every candidate"),
      CLI_OPTION_TEXT(
          "arch", "TARGET", &o.arch,
          "compile every candidate for sm_90 or another target, and "
          "print the resources of each; needs no GPU"),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln tune [FAMILY]... [options]\n",
      .about =
          "Times every candidate of the operations' parameters on this GPU "
          "and keeps the best beside the cache, where programs find them. "
          "Without a family it tunes all. The size is the number of elements: "
          "of an image, of the matrix D of a product, of the targets of all "
          "pairs.",
      .options = table,
      .example = "kiln tune scan gemm_simt all_pairs --sizes 28,24",
      .most = -1};
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &o.families);

  if (rc == CLI_OK)
    rc = check_families(c, &o);
  if (rc != CLI_OK)
    return rc;
  return o.arch != NULL ? without_device(c, &o) : with_device(c, &o);
}
