/* print_counters.c -- prints the counters and findings of the CPU device,
 * and writes the counters as JSON. */
#include "cli/commands.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- Findings ----------------------------------------------------------- */

static void print_finding(void *user, const kiln_cpu_finding *f)
{
  unsigned *n = user;

  printf("%s%s\n", *n == 0 ? "" : "\n", f->text);
  if (f->count > 1)
    printf("  seen %llu times\n", (unsigned long long)f->count);
  ++*n;
}

/* Number of checked launches that have been reported. */
static unsigned long long reported;

void kiln__cli_findings_taken(void)
{
  reported = kiln_cpu_checked_launches();
}

unsigned kiln__cli_findings(void)
{
  const unsigned long long launches = kiln_cpu_checked_launches() - reported;
  unsigned n = 0;

  reported += launches;
  (void)kiln_cpu_take_findings(print_finding, &n);
  if (n > 0 || launches > 0)
    printf("%s%u finding%s in %llu launch%s\n", n > 0 ? "\n" : "", n,
           n == 1 ? "" : "s", launches, launches == 1 ? "" : "es");
  return n;
}

/* ---- Counters ----------------------------------------------------------- */

static double ratio(uint64_t a, uint64_t b)
{
  return b == 0 ? 0 : (double)a / (double)b;
}

static void print_classes(cli *c, const kiln_cpu_counters *k)
{
  static const char *const heads[] = {"instructions", ">warp", ">thread", NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  for (unsigned i = 0; i < KILN_CPU_N_CLASSES; i++) {
    if (k->warp_class[i] == 0)
      continue;
    kiln__cli_cells(&t, "%s\t%llu\t%llu", kiln_cpu_class_name(i),
                    (unsigned long long)k->warp_class[i],
                    (unsigned long long)k->thread_class[i]);
  }
  kiln__cli_cells(&t, "all\t%llu\t%llu", (unsigned long long)k->warp_insns,
                  (unsigned long long)k->thread_insns);
  kiln__cli_table_print(&t, 2);
}

static void print_memory(cli *c, const kiln_cpu_counters *k)
{
  static const char *const heads[] = {"memory", ">requests", ">moved",
                                      ">per request", NULL};
  const struct {
    const char *name;
    uint64_t requests, moved;
    const char *unit;
  } rows[] = {
#define ROW(name, prefix, unit)                                                \
  {name, k->prefix##_requests, k->prefix##_##unit, #unit}
      ROW("global loads", global_load, sectors),
      ROW("global stores", global_store, sectors),
      ROW("local loads", local_load, sectors),
      ROW("local stores", local_store, sectors),
      ROW("shared loads", shared_load, passes),
      ROW("shared stores", shared_store, passes),
      ROW("bulk loads", bulk_load, bytes),
      ROW("bulk stores", bulk_store, bytes)};
#undef ROW
  cli_table t;

  kiln__cli_table(&t, c, heads);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].requests == 0)
      continue;
    kiln__cli_row(&t, rows[i].name, "%llu",
                  (unsigned long long)rows[i].requests);
    kiln__cli_cell(&t, "%llu %s", (unsigned long long)rows[i].moved,
                   rows[i].unit);
    kiln__cli_cell(&t, "%.2f", ratio(rows[i].moved, rows[i].requests));
  }
  if (t.n > 0)
    kiln__cli_table_print(&t, 2);
}

static void print_kernel(void *user, const kiln_cpu_counters *k)
{
  cli *c = user;

  printf("\n%s: %llu launch%s, %.1f of 32 lanes active\n",
         kiln__cli_plain_name(c, k->kernel), (unsigned long long)k->launches,
         k->launches == 1 ? "" : "es", ratio(k->thread_insns, k->warp_insns));
  print_classes(c, k);
  print_memory(c, k);
  printf("  branches %llu, divergent %llu; barriers %llu; atomics %llu, lanes "
         "that met another %llu\n",
         (unsigned long long)k->branches,
         (unsigned long long)k->divergent_branches,
         (unsigned long long)k->barriers, (unsigned long long)k->atomics,
         (unsigned long long)k->atomic_conflicts);
  if (k->tensor_insns > 0)
    printf("  matrix instructions %llu, multiply-adds %llu\n",
           (unsigned long long)k->tensor_insns,
           (unsigned long long)k->tensor_products);
}

/* Returns a line of a source file without leading blanks, or "" if the file
 * cannot be read. */
static const char *source_line(cli *c, const char *path, unsigned line)
{
  FILE *f = fopen(path, "re");
  char *text = NULL;
  size_t capacity = 0;
  const char *out = "";

  for (unsigned i = 1;
       f != NULL && i <= line && getline(&text, &capacity, f) > 0; i++) {
    if (i == line) {
      text[strcspn(text, "\r\n")] = '\0';
      out = kiln__cli_text(c, "%.60s", text + strspn(text, " \t"));
    }
  }
  if (f != NULL)
    fclose(f);
  free(text);
  return out;
}

/* Adds a table cell with a ratio, or an empty cell if the divisor is 0. */
static void ratio_cell(cli_table *t, uint64_t a, uint64_t b)
{
  kiln__cli_cell(t, "%s",
                 b == 0 ? "" : kiln__cli_text(t->c, "%.2f", ratio(a, b)));
}

/* Adds a table row for one source line. Sectors are per request to global
 * memory, and passes are per request to shared memory. */
static void add_line(void *user, const kiln_cpu_counters *k)
{
  cli_table *t = user;
  const uint64_t requests = k->global_load_requests + k->global_store_requests;
  const uint64_t sectors = k->global_load_sectors + k->global_store_sectors;
  const uint64_t shared = k->shared_load_requests + k->shared_store_requests;
  const uint64_t passes = k->shared_load_passes + k->shared_store_passes;

  if (k->line == 0)
    return;
  kiln__cli_cells(t, "%u\t%llu\t%.1f\t%llu", k->line,
                  (unsigned long long)k->warp_insns,
                  ratio(k->thread_insns, k->warp_insns),
                  (unsigned long long)k->divergent_branches);
  ratio_cell(t, sectors, requests);
  ratio_cell(t, passes, shared);
  kiln__cli_cell(t, "%s", source_line(t->c, k->file, k->line));
}

/* Orders table rows by line number, which is the first cell. Comparison
 * function of qsort(). */
static int by_line(const void *a, const void *b)
{
  const char *const *x = a, *const *y = b;
  const long l = strtol(x[0], NULL, 10), r = strtol(y[0], NULL, 10);

  return (l > r) - (l < r);
}

/* ---- JSON --------------------------------------------------------------- */

static const struct {
  const char *name;
  size_t at; /* offset of a uint64_t in kiln_cpu_counters */
} fields[] = {
#define FIELD(name)                                                            \
  {                                                                            \
#name, offsetof(kiln_cpu_counters, name)                                   \
  }
    FIELD(warp_insns),
    FIELD(thread_insns),
    FIELD(branches),
    FIELD(divergent_branches),
    FIELD(global_load_requests),
    FIELD(global_load_sectors),
    FIELD(global_store_requests),
    FIELD(global_store_sectors),
    FIELD(shared_load_requests),
    FIELD(shared_load_passes),
    FIELD(shared_store_requests),
    FIELD(shared_store_passes),
    FIELD(local_load_requests),
    FIELD(local_load_sectors),
    FIELD(local_store_requests),
    FIELD(local_store_sectors),
    FIELD(atomics),
    FIELD(atomic_conflicts),
    FIELD(barriers),
    FIELD(bulk_load_requests),
    FIELD(bulk_load_bytes),
    FIELD(bulk_store_requests),
    FIELD(bulk_store_bytes),
    FIELD(tensor_insns),
    FIELD(tensor_products),
#undef FIELD
};

static void add_fields(cJSON *o, const kiln_cpu_counters *k)
{
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    uint64_t value;

    memcpy(&value, (const char *)k + fields[i].at, sizeof value);
    JSON_NUMBER(o, fields[i].name, value);
  }
}

static void add_classes(cJSON *o, const char *key, const uint64_t *counts)
{
  cJSON *list = cJSON_AddObjectToObject(o, key);

  for (unsigned i = 0; i < KILN_CPU_N_CLASSES; i++)
    if (counts[i] != 0)
      JSON_NUMBER(list, kiln_cpu_class_name(i), counts[i]);
}

static void kernel_json(void *user, const kiln_cpu_counters *k)
{
  cJSON *o = kiln__cli_json_item(user);

  JSON_TEXT(o, "kernel", k->kernel);
  JSON_NUMBER(o, "launches", k->launches);
  add_fields(o, k);
  add_classes(o, "warp_class", k->warp_class);
  add_classes(o, "thread_class", k->thread_class);
}

static void line_json(void *user, const kiln_cpu_counters *k)
{
  cJSON *o = kiln__cli_json_item(user);

  JSON_TEXT(o, "kernel", k->kernel);
  JSON_TEXT(o, "file", k->file);
  JSON_NUMBER(o, "line", k->line);
  add_fields(o, k);
}

static int write_json(cli *c, const char *path)
{
  cJSON *json = cJSON_CreateObject();

  (void)kiln_cpu_each_counters(kernel_json, NULL,
                               cJSON_AddArrayToObject(json, "kernels"));
  (void)kiln_cpu_each_counters(NULL, line_json,
                               cJSON_AddArrayToObject(json, "lines"));
  return kiln__cli_json(c, json, path);
}

int kiln__cli_counters(cli *c, const char *json)
{
  static const char *const heads[] = {">line",    ">warp insns", ">lanes",
                                      ">diverge", ">sectors",    ">passes",
                                      "source",   NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  if (kiln_cpu_each_counters(print_kernel, NULL, c) != KILN_OK ||
      kiln_cpu_each_counters(NULL, add_line, &t) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (t.n > 0) {
    qsort(t.cells, t.n / t.columns, t.columns * sizeof *t.cells, by_line);
    printf("\n");
    kiln__cli_table_print(&t, 2);
  }
  return json != NULL ? write_json(c, json) : CLI_OK;
}
