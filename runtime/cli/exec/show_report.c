/* show_report.c -- prints the report of `kiln exec` as text and as tables. */
#include "cli/exec/exec_report.h"

#include <stdlib.h>
#include <string.h>

static const char *plural(double n)
{
  return n == 1 ? "" : "s";
}

/* ---- Text ----------------------------------------------------------------- */

const char *kiln__exec_missing_text(const exec_report *r, const cJSON *object)
{
  const char *advice = exec_text(object, "advice");
  const double count = exec_number(object, "count");

  return kiln__cli_text(
      r->c,
      "the CPU device does not implement %s; the program called it %.0f "
      "time%s%s%s",
      exec_text(object, "entry"), count, plural(count),
      *advice == '\0' ? " and got CUDA_ERROR_NOT_SUPPORTED" : ". ", advice);
}

static void show_findings(const exec_report *r, FILE *out)
{
  for (size_t i = 0; i < r->findings.n; i++) {
    const cJSON *f = r->findings.items[i].json;
    const exec_place place = kiln__exec_place(f);

    if (r->findings.items[i].suppression != NULL)
      continue;
    fprintf(out, "\n%s\n", exec_text(f, "text"));
    if (place.line != exec_number(f, "line"))
      fprintf(out, "  called at line %.0f of %s\n", place.line, place.file);
    if (exec_number(f, "count") > 1)
      fprintf(out, "  seen %.0f times\n", exec_number(f, "count"));
  }
}

static void say(const exec_report *r, FILE *out, const char *text)
{
  fprintf(out, "kiln exec: %s\n", kiln__cli_shown(r->c, text));
}

/* Names the processes that used the driver and did not write their sums. */
static void show_lost(const exec_report *r, FILE *out)
{
  for (size_t i = 0; i < r->processes.n; i++) {
    const exec_item *p = &r->processes.items[i];
    size_t k = 0;

    while (k < r->ended.n && r->ended.items[k].run != p->run)
      k++;
    if (k == r->ended.n)
      say(r, out,
          kiln__cli_text(r->c,
                         "the process '%s' (%d) was killed or replaced, so its "
                         "launches are not counted; findings up to then are",
                         exec_text(p->json, "text"),
                         atoi(exec_text(p->json, "run"))));
  }
}

static void show_messages(const exec_report *r, FILE *out)
{
  for (size_t i = 0; i < r->errors.n; i++)
    say(r, out, exec_text(r->errors.items[i].json, "text"));
  for (size_t i = 0; i < r->missing.n; i++)
    say(r, out, kiln__exec_missing_text(r, r->missing.items[i].json));
  show_lost(r, out);
}

static void show_unused(const exec_report *r, const exec_suppressions *s,
                        FILE *out)
{
  for (size_t i = 0; i < s->n; i++) {
    if (s->items[i].uses == 0)
      say(r, out,
          kiln__cli_text(r->c, "%s:%u: this suppression matches no finding",
                         s->path, s->items[i].at));
  }
}

static void show_sums(const exec_report *r, FILE *out)
{
  const exec_sums s = kiln__exec_sums(r);

  if (s.findings == 0 && s.suppressed == 0 && r->checked.n == 0)
    return;
  fprintf(out, "\n%zu finding%s", s.findings, plural((double)s.findings));
  if (s.suppressed > 0)
    fprintf(out, " (%zu suppressed)", s.suppressed);
  fprintf(out, " in %.0f launch%s of %zu kernel%s", s.launches,
          s.launches == 1 ? "" : "es", s.kernels, plural((double)s.kernels));
  if (r->processes.n > 1)
    fprintf(out, " in %zu processes", r->processes.n);
  putc('\n', out);
}

void kiln__exec_show(const exec_report *r, const exec_suppressions *s,
                     FILE *out)
{
  show_findings(r, out);
  /* Faults are printed only if no finding describes them. */
  for (size_t i = 0; r->findings.n == 0 && i < r->faults.n; i++)
    fprintf(out, "\n%s\n", exec_text(r->faults.items[i].json, "text"));
  show_messages(r, out);
  show_unused(r, s, out);
  show_sums(r, out);
}

/* ---- Counters ------------------------------------------------------------- */

static void ratio_cell(cli_table *t, double a, double b)
{
  if (b > 0)
    kiln__cli_cell(t, "%.2f", a / b);
  else
    kiln__cli_dashes(t, 1);
}

/* Adds a table row with the counters of one kernel. Ratios are per warp
 * instruction or per request. */
static void counters_row(cli *c, cli_table *t, const cJSON *k)
{
  kiln__cli_cells(t, "%s\t%.0f\t%.0f",
                  kiln__cli_plain_name(c, exec_text(k, "kernel")),
                  exec_number(k, "launches"), exec_number(k, "warp_insns"));
  ratio_cell(t, exec_number(k, "thread_insns"), exec_number(k, "warp_insns"));
  kiln__cli_cell(t, "%.0f of %.0f", exec_number(k, "divergent_branches"),
                 exec_number(k, "branches"));
  ratio_cell(t, exec_number(k, "global_load_sectors"),
             exec_number(k, "global_load_requests"));
  ratio_cell(t, exec_number(k, "global_store_sectors"),
             exec_number(k, "global_store_requests"));
  ratio_cell(t,
             exec_number(k, "shared_load_passes") +
                 exec_number(k, "shared_store_passes"),
             exec_number(k, "shared_load_requests") +
                 exec_number(k, "shared_store_requests"));
  kiln__cli_cell(t, "%.0f", exec_number(k, "atomics"));
  kiln__cli_cell(t, "%.0f", exec_number(k, "barriers"));
}

void kiln__exec_show_counters(const exec_report *r)
{
  static const char *const heads[] = {"kernel",
                                      ">launches",
                                      ">warp insns",
                                      ">lanes",
                                      ">diverged",
                                      ">load sectors",
                                      ">store sectors",
                                      ">shared passes",
                                      ">atomics",
                                      ">barriers",
                                      NULL};
  cli_table t;

  if (r->counters.n == 0)
    return;
  kiln__cli_table(&t, r->c, heads);
  for (size_t i = 0; i < r->counters.n; i++)
    counters_row(r->c, &t, r->counters.items[i].json);
  putchar('\n');
  kiln__cli_table_print(&t, 0);
}

/* ---- Time ----------------------------------------------------------------- */

static int slower_first(const void *a, const void *b)
{
  const double x = exec_number(((const exec_item *)a)->json, "ns");
  const double y = exec_number(((const exec_item *)b)->json, "ns");

  return (x < y) - (x > y);
}

static void time_row(cli_table *t, const char *name, double launches,
                     double insns, double ns, double all_ns)
{
  kiln__cli_cells(t, "%s\t%.0f\t%.0f\t%.3f\t%.1f %%\t%.1f", name, launches,
                  insns, ns / 1e9, all_ns > 0 ? 100 * ns / all_ns : 0,
                  ns > 0 ? insns / ns * 1e3 : 0);
}

/* Returns a name of at most 64 columns: without template arguments, and without
 * its beginning, if it is longer. */
static const char *short_name(cli *c, const char *name)
{
  enum { MOST = 64 };
  const char *arguments = strchr(name, '<');

  if (strlen(name) <= MOST)
    return name;
  if (arguments != NULL)
    name = kiln__cli_text(c, "%.*s<...>", (int)(arguments - name), name);
  return strlen(name) <= MOST
             ? name
             : kiln__cli_text(c, "...%s", name + strlen(name) - (MOST - 3));
}

static void time_rows(const exec_report *r, cli_table *t)
{
  double launches = 0, insns = 0, ns = 0;

  for (size_t i = 0; i < r->kernels.n; i++)
    ns += exec_number(r->kernels.items[i].json, "ns");
  for (size_t i = 0; i < r->kernels.n; i++) {
    const cJSON *k = r->kernels.items[i].json;

    time_row(t, short_name(r->c, exec_text(k, "name")),
             exec_number(k, "launches"), exec_number(k, "warp_insns"),
             exec_number(k, "ns"), ns);
    kiln__cli_cell(t, "%.0f", exec_number(k, "threads"));
    launches += exec_number(k, "launches");
    insns += exec_number(k, "warp_insns");
  }
  time_row(t, "all kernels", launches, insns, ns, ns);
  kiln__cli_dashes(t, 1);
}

void kiln__exec_show_time(const exec_report *r)
{
  static const char *const heads[] = {"kernel",   ">launches", ">warp insns",
                                      ">seconds", ">share",    ">M insns/s",
                                      ">threads", NULL};
  cli_table t;

  if (r->kernels.n > 0)
    qsort(r->kernels.items, r->kernels.n, sizeof *r->kernels.items,
          slower_first);
  kiln__cli_table(&t, r->c, heads);
  time_rows(r, &t);
  putchar('\n');
  kiln__cli_table_print(&t, 0);
  for (size_t i = 0; i < r->loaded.n; i++)
    printf("reading and translating PTX: %.3f s for %.0f module%s\n",
           exec_number(r->loaded.items[i].json, "ns") / 1e9,
           exec_number(r->loaded.items[i].json, "modules"),
           plural(exec_number(r->loaded.items[i].json, "modules")));
  printf("the whole program: %.3f s\n", r->seconds);
}
