/* profile_summary.c -- prints the summary of a profile, and makes its JSON. */
#include "cli/profile/profile_totals.h"

#include <inttypes.h>
#include <string.h>

static const struct {
  span_kind kind;
  const char *title, *key;
} sections[] = {{SPAN_KERNEL, "Kernels", "kernels"},
                {SPAN_COPY, "Copies", "copies"},
                {SPAN_FILL, "Fills", "fills"},
                {SPAN_HOST, "Functions of the program in streams", "host"},
                {SPAN_CALL, "Calls of the CUDA API", "calls"},
                {SPAN_SYNC, "Waits of the host", "waits"},
                {SPAN_OVERHEAD, "Time that profiling took", "overhead"},
                {SPAN_OTHER, "Other spans of the host", "other"}};

static const size_t n_sections = sizeof sections / sizeof sections[0];

/* Formats a time: "12.3 us". */
static const char *time_text(const profile *p, int64_t ns)
{
  const double t = (double)ns;

  return t < 1e3   ? kiln__cli_text(p->c, "%.0f ns", t)
         : t < 1e6 ? kiln__cli_text(p->c, "%.2f us", t / 1e3)
         : t < 1e9 ? kiln__cli_text(p->c, "%.2f ms", t / 1e6)
                   : kiln__cli_text(p->c, "%.3f s", t / 1e9);
}

static double percent(int64_t part, int64_t whole)
{
  return whole <= 0 ? 0 : 100.0 * (double)part / (double)whole;
}

/* Returns a name that fits into a table: its begin and its end. */
static const char *short_name(const profile *p, uint32_t name)
{
  enum { HEAD = 40, TAIL = 16 };
  const char *text = p->names.at[name];
  const size_t n = strlen(text);

  if (n <= HEAD + TAIL + 3)
    return text;
  return kiln__cli_text(p->c, "%.*s...%s", HEAD, text, text + n - TAIL);
}

/* ---- Text ------------------------------------------------------------------- */

static void print_section(profile *p, size_t which, size_t top)
{
  static const char *const heads[] = {"name",   ">calls", ">total",
                                      ">share", ">mean",  ">least",
                                      ">most",  ">rate",  NULL};
  const profile_totals t = kiln__profile_totals(p, sections[which].kind);
  cli_table table;

  if (t.n == 0)
    return;
  printf("\n%s, %s in total\n", sections[which].title, time_text(p, t.sum));
  kiln__cli_table(&table, p->c, heads);
  for (size_t i = 0; i < t.n && i < top; i++) {
    const profile_total *one = &t.at[i];

    kiln__cli_cell(&table, "%s", short_name(p, one->name));
    kiln__cli_cells(&table, "%" PRIu64 "\t%s\t%.1f %%\t%s\t%s\t%s", one->calls,
                    time_text(p, one->total), percent(one->total, t.sum),
                    time_text(p, one->total / (int64_t)one->calls),
                    time_text(p, one->least), time_text(p, one->most));
    if (one->bytes > 0 && one->total > 0)
      kiln__cli_cell(&table, "%.2f GB/s",
                     (double)one->bytes / (double)one->total);
    else
      kiln__cli_cell(&table, "%s", "");
  }
  kiln__cli_table_print(&table, 2);
  if (t.n > top)
    printf("  and %zu more (--top %zu)\n", t.n - top, t.n);
}

static void print_gaps(const profile *p, const profile_use *u)
{
  static const char *const heads[] = {
      ">idle", ">at", "after", "before", "the host was in", NULL};
  cli_table table;

  kiln__cli_table(&table, p->c, heads);
  for (size_t i = 0; i < PROFILE_GAPS && u->gaps[i].before != NULL; i++) {
    const profile_gap *g = &u->gaps[i];

    kiln__cli_cells(&table, "%s\t%s", time_text(p, g->end - g->begin),
                    time_text(p, g->begin));
    kiln__cli_cell(&table, "%s", short_name(p, g->before->name));
    kiln__cli_cell(&table, "%s", short_name(p, g->after->name));
    if (g->host == NULL)
      kiln__cli_cell(&table, "the program");
    else
      kiln__cli_cell(&table, "%s (%.0f %%)", short_name(p, g->host->name),
                     percent(g->host_ns, g->end - g->begin));
  }
  kiln__cli_table_print(&table, 2);
}

static void print_idle_after(const profile *p, const profile_use *u, size_t top)
{
  static const char *const heads[] = {"idle after", ">times", ">total",
                                      ">mean",      ">most",  NULL};
  cli_table table;

  kiln__cli_table(&table, p->c, heads);
  for (size_t i = 0; i < u->idle_after.n && i < top; i++) {
    const profile_total *t = &u->idle_after.at[i];

    kiln__cli_cell(&table, "%s", short_name(p, t->name));
    kiln__cli_cells(
        &table, "%" PRIu64 "\t%s\t%s\t%s", t->calls, time_text(p, t->total),
        time_text(p, t->total / (int64_t)t->calls), time_text(p, t->most));
  }
  putchar('\n');
  kiln__cli_table_print(&table, 2);
}

static void print_use(profile *p, const profile_use *u, size_t top)
{
  const int64_t all = u->end - u->begin;
  cli_table t;

  printf("\n%s%s\n", kiln__cli_shown(p->c, kiln__profile_device(p, u->device)),
         p->n_processes < 2 ? ""
                            : kiln__cli_text(p->c, ", process %u",
                                             p->processes[u->process].pid));
  kiln__cli_sheet(&t, p->c);
  kiln__cli_row(&t, "from first to last work", "%s", time_text(p, all));
  kiln__cli_row(&t, "busy", "%s, %.1f %%", time_text(p, u->busy),
                percent(u->busy, all));
  kiln__cli_row(&t, "kernels", "%s, %.1f %%", time_text(p, u->kernels),
                percent(u->kernels, all));
  kiln__cli_row(&t, "copies and fills", "%s, %.1f %%", time_text(p, u->copies),
                percent(u->copies, all));
  kiln__cli_row(&t, "copies behind kernels", "%s, %.1f %% of the copies",
                time_text(p, u->both), percent(u->both, u->copies));
  kiln__cli_row(&t, "at least two at once", "%s, %.1f %%",
                time_text(p, u->several), percent(u->several, all));
  kiln__cli_row(&t, "idle", "%s in %" PRIu64 " gaps",
                time_text(p, all - u->busy), u->n_gaps);
  kiln__cli_table_print(&t, 2);
  if (u->n_gaps > 0) {
    putchar('\n');
    print_gaps(p, u);
    print_idle_after(p, u, top);
  }
}

static void print_process(const profile *p, const profile_process *one)
{
  printf("%s", kiln__cli_shown(p->c, one->program));
  if (one->pid != 0)
    printf(", process %u", one->pid);
  printf(", recorded by %s%s\n", one->source,
         one->ended ? "" : "; it did not end by exit()");
  if (one->dropped > 0)
    printf("  at least %" PRIu64
           " records were lost, so that all figures are too small\n",
           one->dropped);
}

void kiln__profile_print(profile *p, size_t top)
{
  profile_use *uses;
  const size_t n_uses = kiln__profile_uses(p, &uses);

  for (size_t i = 0; i < p->n_processes; i++)
    print_process(p, &p->processes[i]);
  for (size_t i = 0; i < p->n_notes; i++)
    printf("note: %s\n", kiln__cli_shown(p->c, p->notes[i]));
  if (p->truncated)
    puts("note: a record file is damaged; what follows the damage is missing");
  if (p->n == 0) {
    puts("no activities were recorded");
    return;
  }
  for (size_t i = 0; i < n_uses; i++)
    print_use(p, &uses[i], top);
  for (size_t i = 0; i < n_sections; i++)
    print_section(p, i, top);
}

/* ---- JSON ------------------------------------------------------------------- */

static cJSON *totals_json(const profile *p, const profile_totals *t)
{
  cJSON *list = cJSON_CreateArray();

  for (size_t i = 0; i < t->n; i++) {
    cJSON *o = kiln__cli_json_item(list);

    JSON_TEXT(o, "name", p->names.at[t->at[i].name]);
    JSON_NUMBER(o, "calls", t->at[i].calls);
    JSON_NUMBER(o, "total_ns", t->at[i].total);
    JSON_NUMBER(o, "least_ns", t->at[i].least);
    JSON_NUMBER(o, "most_ns", t->at[i].most);
    if (t->at[i].bytes > 0)
      JSON_NUMBER(o, "bytes", t->at[i].bytes);
  }
  return list;
}

static void add_gaps(const profile *p, cJSON *o, const profile_use *u)
{
  cJSON *list = cJSON_AddArrayToObject(o, "gaps");

  for (size_t i = 0; i < PROFILE_GAPS && u->gaps[i].before != NULL; i++) {
    const profile_gap *g = &u->gaps[i];
    cJSON *gap = kiln__cli_json_item(list);

    JSON_NUMBER(gap, "begin_ns", g->begin);
    JSON_NUMBER(gap, "ns", g->end - g->begin);
    JSON_TEXT(gap, "after", p->names.at[g->before->name]);
    JSON_TEXT(gap, "before", p->names.at[g->after->name]);
    if (g->host != NULL) {
      JSON_TEXT(gap, "host", p->names.at[g->host->name]);
      JSON_NUMBER(gap, "host_ns", g->host_ns);
    }
  }
}

static void add_uses(profile *p, cJSON *root)
{
  cJSON *list = cJSON_AddArrayToObject(root, "devices");
  profile_use *uses;
  const size_t n = kiln__profile_uses(p, &uses);

  for (size_t i = 0; i < n; i++) {
    const profile_use *u = &uses[i];
    cJSON *o = kiln__cli_json_item(list);

    JSON_NUMBER(o, "process", p->processes[u->process].pid);
    JSON_NUMBER(o, "device", u->device);
    JSON_TEXT(o, "name", kiln__profile_device(p, u->device));
    JSON_NUMBER(o, "span_ns", u->end - u->begin);
    JSON_NUMBER(o, "busy_ns", u->busy);
    JSON_NUMBER(o, "kernels_ns", u->kernels);
    JSON_NUMBER(o, "copies_ns", u->copies);
    JSON_NUMBER(o, "both_ns", u->both);
    JSON_NUMBER(o, "several_ns", u->several);
    JSON_NUMBER(o, "n_gaps", u->n_gaps);
    add_gaps(p, o, u);
    cJSON_AddItemToObject(o, "idle_after", totals_json(p, &u->idle_after));
  }
}

cJSON *kiln__profile_json(profile *p)
{
  cJSON *root = cJSON_CreateObject(), *list;

  JSON_NUMBER(root, "format", 1);
  list = cJSON_AddArrayToObject(root, "processes");
  for (size_t i = 0; i < p->n_processes; i++) {
    cJSON *o = kiln__cli_json_item(list);

    JSON_NUMBER(o, "pid", p->processes[i].pid);
    JSON_NUMBER(o, "parent", p->processes[i].parent);
    JSON_TEXT(o, "program", p->processes[i].program);
    JSON_TEXT(o, "source", p->processes[i].source);
    JSON_FLAG(o, "exited", p->processes[i].ended);
    JSON_NUMBER(o, "lost_records", p->processes[i].dropped);
  }
  list = cJSON_AddArrayToObject(root, "notes");
  for (size_t i = 0; i < p->n_notes; i++)
    cJSON_AddItemToArray(list, cJSON_CreateString(p->notes[i]));
  JSON_FLAG(root, "damaged", p->truncated);
  JSON_NUMBER(root, "span_ns", p->length);
  JSON_NUMBER(root, "rows", p->n_rows);
  JSON_NUMBER(root, "spans", p->n);
  add_uses(p, root);
  for (size_t i = 0; i < n_sections; i++) {
    const profile_totals t = kiln__profile_totals(p, sections[i].kind);

    cJSON_AddItemToObject(root, sections[i].key, totals_json(p, &t));
  }
  return root;
}
