/* sweep_report.c -- shows the rows of a sweep: as a table, as CSV, as JSON. */
#include "cli/sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HEADS = SWEEP_MOST_AXES + 10 };

double kiln__sweep_measure(const sweep_row *row)
{
  if (row->reason != NULL)
    return NAN;
  return row->timed ? row->ms : row->counted ? row->instructions : NAN;
}

/* Returns whether row `a` is better than row `b`. */
static bool better(const sweep_row *a, const sweep_row *b)
{
  const double x = kiln__sweep_measure(a), y = kiln__sweep_measure(b);

  if (isfinite(x) != isfinite(y))
    return isfinite(x);
  if (isfinite(x) && (x < y || x > y))
    return x < y;
  return a->occupancy > b->occupancy;
}

const sweep_row *kiln__sweep_best(const sweep *s)
{
  const sweep_row *best = NULL;

  for (size_t i = 0; i < s->n_done; i++)
    if (s->rows[i].reason == NULL && s->rows[i].resources_known &&
        (best == NULL || better(&s->rows[i], best)))
      best = &s->rows[i];
  return best;
}

static bool is_spilling(const sweep_row *row)
{
  return row->resources.spill_stores + row->resources.spill_loads > 0;
}

/* Formats a time with the unit that suits it. */
static const char *time_text(cli *c, double ms)
{
  return ms >= 1 ? kiln__cli_text(c, "%.4g ms", ms)
                 : kiln__cli_text(c, "%.4g us", ms * 1e3);
}

/* ---- The table ---------------------------------------------------------- */

/* Adds registers, spills, shared memory, blocks and occupancy of a row. */
static void add_resources(cli_table *t, const sweep_row *row)
{
  const kiln_resources *k = &row->resources;

  if (!row->resources_known) {
    kiln__cli_dashes(t, 5);
    return;
  }
  kiln__cli_cell(t, "%d", k->registers);
  if (is_spilling(row))
    kiln__cli_cell(t, "%d/%d", k->spill_stores, k->spill_loads);
  else
    kiln__cli_cell(t, "-");
  kiln__cli_cell(t, "%zu", (size_t)k->shared_static + row->dynamic);
  if (row->blocks_per_sm == 0) {
    kiln__cli_dashes(t, 2);
    return;
  }
  kiln__cli_cell(t, "%d", row->blocks_per_sm);
  kiln__cli_cell(t, "%.3g %%", row->occupancy * 100);
}

/* What the table has in common. */
typedef struct summary {
  bool timed, counted, different; /* some row is */
  const sweep_row *best;
} summary;

static summary summarise(const sweep *s)
{
  summary out = {.best = kiln__sweep_best(s)};

  for (size_t i = 0; i < s->n_done; i++) {
    out.timed = out.timed || s->rows[i].timed;
    out.counted = out.counted || s->rows[i].counted;
    out.different = out.different || s->rows[i].differs;
  }
  return out;
}

static void add_row(cli_table *t, const sweep *s, const summary *all,
                    const sweep_row *row)
{
  for (size_t i = 0; i < s->n_axes; i++)
    if (kiln__sweep_varies(s, i))
      kiln__cli_cell(t, "%s", s->axes[i].values[row->at[i]]);
  add_resources(t, row);
  if (all->timed) {
    if (row->timed && row->reason == NULL)
      kiln__cli_cell(t, "%s", time_text(s->c, row->ms));
    else
      kiln__cli_cell(t, "-");
  } else if (all->counted) {
    if (row->counted && row->reason == NULL)
      kiln__cli_cell(t, "%.0f", row->instructions);
    else
      kiln__cli_cell(t, "-");
  }
  kiln__cli_cell(t, "%s",
                 row->reason != NULL ? row->reason
                 : row == all->best  ? "best"
                 : row->differs      ? "other result"
                                     : "");
}

static void fill_heads(const sweep *s, const summary *all,
                       const char *heads[MOST_HEADS])
{
  static const char *const fixed[] = {">regs", ">spill", ">shared", ">blocks",
                                      ">occupancy"};
  size_t n = 0;

  for (size_t i = 0; i < s->n_axes; i++)
    if (kiln__sweep_varies(s, i))
      heads[n++] = kiln__cli_text(s->c, ">%s", s->axes[i].name);
  for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
    heads[n++] = fixed[i];
  if (all->timed)
    heads[n++] = ">time";
  else if (all->counted)
    heads[n++] = ">warp instr.";
  heads[n++] = "";
  heads[n] = NULL;
}

static const char *kernel_name(const sweep *s)
{
  for (size_t i = 0; i < s->n_done; i++)
    if (s->rows[i].resources_known)
      return kiln__cli_plain_name(s->c, s->rows[i].resources.name);
  return s->spec.kernel != NULL ? s->spec.kernel : "?";
}

/* Prints what is the same in all rows. */
static void print_head(const sweep *s, const summary *all)
{
  char text[24];

  printf("%s of %s, resources for %s", kernel_name(s), s->program.label,
         kiln_target_text(&s->target, text));
  if (s->device_name != NULL)
    printf(", %s %s", all->timed ? "times on" : "run on", s->device_name);
  for (size_t i = 0; i < s->n_axes; i++)
    if (!kiln__sweep_varies(s, i))
      printf(", %s %s", s->axes[i].name,
             kiln__cli_shown(s->c, s->axes[i].values[0]));
  puts("\n");
}

static void print_notes(const sweep *s, const summary *all)
{
  if (s->n_done < s->n_rows)
    printf("\ninterrupted: %zu of %zu settings are shown\n", s->n_done,
           s->n_rows);
  if (all->counted)
    puts("\nThis is the CPU device: it counts instructions, and its times say "
         "nothing about a GPU.");
  if (all->different)
    puts(
        "\n\"other result\": the arrays differ from those of the first setting "
        "that ran. For\nsums of floating-point numbers this is rounding; "
        "otherwise it is a bug that depends\non the setting.");
}

void kiln__sweep_print(const sweep *s)
{
  const char *heads[MOST_HEADS + 1];
  const summary all = summarise(s);
  cli_table t;

  fill_heads(s, &all, heads);
  print_head(s, &all);
  kiln__cli_table(&t, s->c, heads);
  for (size_t i = 0; i < s->n_done; i++)
    add_row(&t, s, &all, &s->rows[i]);
  kiln__cli_table_print(&t, 2);
  print_notes(s, &all);
}

/* ---- JSON and CSV ------------------------------------------------------- */

static const char *dim_text(cli *c, kiln_dim3 d)
{
  if (d.z > 1)
    return kiln__cli_text(c, "%ux%ux%u", d.x, d.y, d.z);
  return d.y > 1 ? kiln__cli_text(c, "%ux%u", d.x, d.y)
                 : kiln__cli_text(c, "%u", d.x);
}

static cJSON *row_json(const sweep *s, const sweep_row *row)
{
  const kiln_resources *k = &row->resources;
  cJSON *out = cJSON_CreateObject();

  for (size_t i = 0; i < s->n_axes; i++)
    if (s->axes[i].kind == SWEEP_DEFINE || s->axes[i].kind == SWEEP_MAXREG)
      JSON_TEXT(out, s->axes[i].name, s->axes[i].values[row->at[i]]);
  JSON_TEXT(out, "grid", dim_text(s->c, row->grid));
  JSON_TEXT(out, "block", dim_text(s->c, row->block));
  JSON_NUMBER(out, "smem", row->dynamic);
  if (row->resources_known) {
    JSON_NUMBER(out, "registers", k->registers);
    JSON_NUMBER(out, "spill_stores", k->spill_stores);
    JSON_NUMBER(out, "spill_loads", k->spill_loads);
    JSON_NUMBER(out, "stack", k->stack);
    JSON_NUMBER(out, "shared_static", k->shared_static);
    JSON_NUMBER(out, "blocks_per_sm", row->blocks_per_sm);
    JSON_NUMBER(out, "occupancy_percent", row->occupancy * 100);
  }
  if (row->timed && row->reason == NULL)
    JSON_NUMBER(out, "ms", row->ms);
  if (row->counted && row->reason == NULL)
    JSON_NUMBER(out, "warp_instructions", row->instructions);
  if (row->ran && row->reason == NULL)
    JSON_FLAG(out, "same_result", !row->differs);
  if (row->reason != NULL)
    JSON_TEXT(out, "reason", row->reason);
  return out;
}

cJSON *kiln__sweep_json(const sweep *s)
{
  cJSON *json = cJSON_CreateObject(), *rows;
  char text[24];

  JSON_TEXT(json, "program", s->program.label);
  JSON_TEXT(json, "kernel", kernel_name(s));
  JSON_TEXT(json, "target", kiln_target_text(&s->target, text));
  if (s->device_name != NULL)
    JSON_TEXT(json, "device", s->device_name);
  JSON_NUMBER(json, "settings", s->n_rows);
  rows = cJSON_AddArrayToObject(json, "rows");
  for (size_t i = 0; i < s->n_done; i++)
    cJSON_AddItemToArray(rows, row_json(s, &s->rows[i]));
  return json;
}

/* Writes a value as a field of CSV (RFC 4180). */
static void put_field(FILE *out, const cJSON *value)
{
  const char *text;

  if (cJSON_IsNumber(value)) {
    fprintf(out, "%.10g", value->valuedouble);
    return;
  }
  if (cJSON_IsBool(value))
    fputs(cJSON_IsTrue(value) ? "true" : "false", out);
  if (!cJSON_IsString(value))
    return;
  text = value->valuestring;
  if (strpbrk(text, ",\"\r\n") == NULL) {
    fputs(text, out);
    return;
  }
  putc('"', out);
  for (; *text != '\0'; text++) {
    if (*text == '"')
      putc('"', out);
    putc(*text, out);
  }
  putc('"', out);
}

/* Lists the columns: the keys of a row in which nothing is missing. */
static size_t columns_of(const sweep *s, const char *out[])
{
  static const char *const fixed[] = {"grid",
                                      "block",
                                      "smem",
                                      "registers",
                                      "spill_stores",
                                      "spill_loads",
                                      "stack",
                                      "shared_static",
                                      "blocks_per_sm",
                                      "occupancy_percent",
                                      "ms",
                                      "warp_instructions",
                                      "same_result",
                                      "reason"};
  size_t n = 0;

  for (size_t i = 0; i < s->n_axes; i++)
    if (s->axes[i].kind == SWEEP_DEFINE || s->axes[i].kind == SWEEP_MAXREG)
      out[n++] = s->axes[i].name;
  for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
    out[n++] = fixed[i];
  return n;
}

static void put_csv(const sweep *s, FILE *out)
{
  const char *columns[SWEEP_MOST_AXES + 16];
  const size_t n = columns_of(s, columns);

  for (size_t k = 0; k < n; k++)
    fprintf(out, "%s%s", columns[k], k + 1 < n ? "," : "\r\n");
  for (size_t i = 0; i < s->n_done; i++) {
    cJSON *row = row_json(s, &s->rows[i]);

    for (size_t k = 0; k < n; k++) {
      put_field(out, cJSON_GetObjectItemCaseSensitive(row, columns[k]));
      fputs(k + 1 < n ? "," : "\r\n", out);
    }
    cJSON_Delete(row);
  }
}

int kiln__sweep_csv(const sweep *s, const char *path)
{
  char *text = NULL;
  size_t size = 0;
  FILE *out;
  int rc;

  if (strcmp(path, "-") == 0) {
    put_csv(s, stdout);
    return CLI_OK;
  }
  out = open_memstream(&text, &size);
  if (out == NULL) {
    kiln__cli_message(s->c, NULL, "there is no memory for '%s'", path);
    return CLI_FAILED;
  }
  put_csv(s, out);
  rc = fclose(out) == 0 ? kiln__cli_write(s->c, path, text, size) : CLI_FAILED;
  free(text);
  return rc;
}
