/* diff_report.c -- the report of `kiln diff`, as tables or as JSON. */
#include "cli/explore/diff_report.h"

#include <string.h>

/* The resources that the report lists. Values come from kiln_resources. */
static const struct {
  const char *key, *label;
  size_t at;
} resources[] = {
    {"registers", "registers per thread", offsetof(kiln_resources, registers)},
    {"spill_stores", "spill stores, bytes",
     offsetof(kiln_resources, spill_stores)},
    {"spill_loads", "spill loads, bytes",
     offsetof(kiln_resources, spill_loads)},
    {"stack", "stack, bytes", offsetof(kiln_resources, stack)},
    {"local", "local memory, bytes", offsetof(kiln_resources, local)},
    {"shared_static", "shared memory, bytes",
     offsetof(kiln_resources, shared_static)},
    {"constant", "constant memory, bytes", offsetof(kiln_resources, constant)},
};

enum { N_RESOURCES = sizeof resources / sizeof resources[0] };

static int resource(const kiln_resources *r, size_t which)
{
  int value;

  memcpy(&value, (const char *)r + resources[which].at, sizeof value);
  return value;
}

/* ---- Tables -------------------------------------------------------------- */

static void add_pair(cli_table *t, const char *label, double a, double b)
{
  kiln__cli_cell(t, "%s", label);
  kiln__cli_cell(t, "%g", a);
  kiln__cli_cell(t, "%g", b);
  if (a == b)
    kiln__cli_cell(t, "-");
  else
    kiln__cli_cell(t, "%+g", b - a);
}

/* Returns a label with what limits the slots on both sides. */
static const char *slots_label(cli *c, const sass_cost *a, const sass_cost *b)
{
  if (strcmp(a->limit, b->limit) == 0)
    return kiln__cli_text(c, "slots, limited by %s", a->limit);
  return kiln__cli_text(c, "slots, limited by %s, %s", a->limit, b->limit);
}

/* Adds the numbers of the code, which exist only with a disassembler. */
static void add_code(cli_table *t, const diff_kernel *k)
{
  const sass_kernel *a = k->side[0].kernel, *b = k->side[1].kernel;

  add_pair(t, "instructions", a->cost.instructions, b->cost.instructions);
  add_pair(t, slots_label(t->c, &a->cost, &b->cost), a->cost.slots,
           b->cost.slots);
  add_pair(t, "loops", a->n_loops, b->n_loops);
  if (a->has_live && b->has_live)
    add_pair(t, "most live registers", a->most_live[SASS_GENERAL],
             b->most_live[SASS_GENERAL]);
}

/* Returns whether the assembler reported resources. It does not for PTX. */
static bool is_known(const kiln_resources *r)
{
  return r->registers != 0;
}

/* Prints the numbers of a whole kernel. Resources that neither side uses are
 * left out. */
static void print_totals(cli *c, const diff_kernel *k)
{
  static const char *const heads[] = {"", ">A", ">B", ">B - A", NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  if (k->lines != NULL)
    add_code(&t, k);
  for (size_t i = 0; i < N_RESOURCES; i++) {
    const int a = resource(&k->resources[0], i);
    const int b = resource(&k->resources[1], i);

    if ((a != 0 || b != 0) && is_known(&k->resources[0]) &&
        is_known(&k->resources[1]))
      add_pair(&t, resources[i].label, a, b);
  }
  kiln__cli_table_print(&t, 2);
}

static const char *short_name(const char *path)
{
  const char *slash = strrchr(path, '/');

  return slash == NULL ? path : slash + 1;
}

/* Returns "scan.cu:12", or "scan.cu:12, 14" if the line has another number in
 * B. A line of one side only has a dash for the other. */
static const char *line_name(cli *c, const char *file, const int32_t line[2])
{
  if (file == NULL)
    return "no line";
  if (line[0] == line[1])
    return kiln__cli_text(c, "%s:%d", short_name(file), line[0]);
  if (line[1] < 0)
    return kiln__cli_text(c, "%s:%d, -", short_name(file), line[0]);
  if (line[0] < 0)
    return kiln__cli_text(c, "%s:-, %d", short_name(file), line[1]);
  return kiln__cli_text(c, "%s:%d, %d", short_name(file), line[0], line[1]);
}

/* Returns the largest changes of a row, as many as fit: "-8 LDS.128 +2 FFMA ...".
 * Rows without any have the same instructions in another order. */
static const char *change_text(cli *c, const sass_row *r)
{
  enum { WIDTH = 38 };
  const char *text = r->n_changes == 0 ? "other order" : "";

  for (uint32_t i = 0; i < r->n_changes; i++) {
    const char *more =
        kiln__cli_text(c, "%s%s%+ld %s", text, i == 0 ? "" : " ",
                       (long)r->changes[i].n[1] - (long)r->changes[i].n[0],
                       r->changes[i].opcode);

    if (i > 0 && strlen(more) > WIDTH)
      return kiln__cli_text(c, "%s ...", text);
    text = more;
  }
  return text;
}

static void add_row(cli_table *t, const sass_row *r, bool live)
{
  const long n = r->cost[0].instructions, m = r->cost[1].instructions;

  kiln__cli_cell(t, "%s", line_name(t->c, r->file, r->line));
  kiln__cli_cells(t, "%ld\t%ld", n, m);
  if (n == m)
    kiln__cli_cell(t, "-");
  else
    kiln__cli_cell(t, "%+ld", m - n);
  kiln__cli_cells(t, "%g\t%g", r->cost[0].slots, r->cost[1].slots);
  if (live)
    kiln__cli_cells(t, "%d\t%d", r->live[0], r->live[1]);
  else
    kiln__cli_dashes(t, 2);
  kiln__cli_cell(t, "%s", change_text(t->c, r));
}

static void print_lines(cli *c, const diff_kernel *k, uint32_t most)
{
  static const char *const heads[] = {
      "line", ">instr A", ">B", ">B - A",  ">slots A",
      ">B",   ">regs A",  ">B", "opcodes", NULL};
  const sass_comparison *lines = k->lines;
  const bool live = k->side[0].kernel->has_live && k->side[1].kernel->has_live;
  const uint32_t n = lines->n_different < most ? lines->n_different : most;
  cli_table t;

  if (lines->n_different == 0) {
    printf("  the same instructions on all %u lines\n", lines->n_rows);
    return;
  }
  kiln__cli_table(&t, c, heads);
  for (uint32_t i = 0; i < n; i++)
    add_row(&t, &lines->rows[i], live);
  printf("\n  %u of %u lines differ%s\n", lines->n_different, lines->n_rows,
         n < lines->n_different
             ? kiln__cli_text(c,
                              "; the %u largest differences (--all prints "
                              "the rest)",
                              n)
             : "");
  kiln__cli_table_print(&t, 2);
}

/* Returns whether a loop exists on both sides with the same costs. */
static bool same_loop(const sass_loop_pair *p)
{
  const sass_loop *a = p->loop[0], *b = p->loop[1];

  return a != NULL && b != NULL &&
         a->cost.instructions == b->cost.instructions &&
         a->cost.slots == b->cost.slots;
}

static void add_loop_side(cli_table *t, const sass_loop *l)
{
  if (l == NULL)
    kiln__cli_dashes(t, 3);
  else
    kiln__cli_cells(t, "%u\t%g\t%s", l->cost.instructions, l->cost.slots,
                    l->cost.limit);
}

/* Prints the loops that differ, with the costs of one iteration. */
static void print_loops(cli *c, const diff_kernel *k)
{
  static const char *const heads[] = {"loop at",  ">depth",  ">instr A",
                                      ">slots A", "limit A", ">instr B",
                                      ">slots B", "limit B", NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  for (uint32_t i = 0; i < k->lines->n_loops; i++) {
    const sass_loop_pair *p = &k->lines->loops[i];

    if (same_loop(p))
      continue;
    kiln__cli_cells(&t, "%s\t%u", line_name(c, p->file, p->line),
                    p->loop[p->loop[0] == NULL ? 1 : 0]->depth);
    add_loop_side(&t, p->loop[0]);
    add_loop_side(&t, p->loop[1]);
  }
  if (t.n == 0)
    return;
  puts("\n  loops that differ, per iteration without inner loops");
  kiln__cli_table_print(&t, 2);
}

static void print_kernel(cli *c, const diff_kernel *k, uint32_t most)
{
  printf("\nkernel %s", kiln__cli_shown(c, k->name));
  if (k->resources[0].name == NULL || k->resources[1].name == NULL) {
    printf(": only in %s\n", k->resources[0].name == NULL ? "B" : "A");
    return;
  }
  puts("");
  print_totals(c, k);
  if (k->lines != NULL) {
    print_loops(c, k);
    print_lines(c, k, most);
  }
}

void kiln__diff_print(cli *c, const diff_result *r, uint32_t most)
{
  bool lines = false;

  for (int i = 0; i < 2; i++) {
    char text[24];

    printf("%c  %s for %s", "AB"[i], kiln__cli_shown(c, r->how[i]),
           kiln_target_text(&r->target[i], text));
    if (r->nvrtc[i] != 0)
      printf(", NVRTC %s", kiln__cli_version(c, r->nvrtc[i]));
    puts("");
  }
  for (size_t i = 0; i < r->n; i++) {
    print_kernel(c, &r->kernels[i], most);
    lines |=
        r->kernels[i].lines != NULL && r->kernels[i].lines->n_different > 0;
  }
  if (lines)
    puts("\ninstr: machine instructions of the line; slots: least cycles in "
         "which a scheduler\nissues them for one warp, limited by issue or by "
         "a pipe; regs: most registers live\nat them; opcodes: B - A");
}

/* ---- JSON ---------------------------------------------------------------- */

static void add_two(cJSON *to, const char *key, double a, double b)
{
  const double values[2] = {a, b};

  cJSON_AddItemToObject(to, key, cJSON_CreateDoubleArray(values, 2));
}

static cJSON *row_json(const sass_row *r)
{
  cJSON *out = cJSON_CreateObject(), *opcodes;

  if (r->file != NULL) {
    JSON_TEXT(out, "file", r->file);
    add_two(out, "line", r->line[0], r->line[1]);
  }
  add_two(out, "instructions", r->cost[0].instructions,
          r->cost[1].instructions);
  add_two(out, "slots", r->cost[0].slots, r->cost[1].slots);
  add_two(out, "registers", r->live[0], r->live[1]);
  add_two(out, "spills", r->spills[0], r->spills[1]);
  JSON_NUMBER(out, "common", r->common);
  opcodes = cJSON_AddObjectToObject(out, "opcodes");
  for (uint32_t i = 0; i < r->n_changes; i++)
    add_two(opcodes, r->changes[i].opcode, r->changes[i].n[0],
            r->changes[i].n[1]);
  return out;
}

static cJSON *loop_json(const sass_loop_pair *p)
{
  cJSON *out = cJSON_CreateObject();
  const sass_loop *a = p->loop[0], *b = p->loop[1];

  if (p->file != NULL) {
    JSON_TEXT(out, "file", p->file);
    add_two(out, "line", p->line[0], p->line[1]);
  }
  add_two(out, "depth", a == NULL ? 0 : a->depth, b == NULL ? 0 : b->depth);
  add_two(out, "instructions", a == NULL ? 0 : a->cost.instructions,
          b == NULL ? 0 : b->cost.instructions);
  add_two(out, "slots", a == NULL ? 0 : a->cost.slots,
          b == NULL ? 0 : b->cost.slots);
  return out;
}

static void add_lines_json(cJSON *to, const diff_kernel *k, bool all)
{
  const sass_kernel *a = k->side[0].kernel, *b = k->side[1].kernel;
  cJSON *rows = cJSON_AddArrayToObject(to, "lines"), *loops;
  const uint32_t n = all ? k->lines->n_rows : k->lines->n_different;

  add_two(to, "instructions", a->cost.instructions, b->cost.instructions);
  add_two(to, "slots", a->cost.slots, b->cost.slots);
  loops = cJSON_AddArrayToObject(to, "loops");
  for (uint32_t i = 0; i < k->lines->n_loops; i++)
    cJSON_AddItemToArray(loops, loop_json(&k->lines->loops[i]));
  add_two(to, "live", a->most_live[SASS_GENERAL], b->most_live[SASS_GENERAL]);
  for (uint32_t i = 0; i < n; i++)
    cJSON_AddItemToArray(rows, row_json(&k->lines->rows[i]));
}

cJSON *kiln__diff_json(cli *c, const diff_result *r, bool all)
{
  cJSON *out = cJSON_CreateObject();
  cJSON *kernels;

  for (int i = 0; i < 2; i++) {
    cJSON *side = cJSON_AddObjectToObject(out, i == 0 ? "a" : "b");
    char text[24];

    JSON_TEXT(side, "program", r->how[i]);
    JSON_TEXT(side, "target", kiln_target_text(&r->target[i], text));
    JSON_TEXT(side, "nvrtc", kiln__cli_version(c, r->nvrtc[i]));
  }
  kernels = cJSON_AddArrayToObject(out, "kernels");
  for (size_t i = 0; i < r->n; i++) {
    const diff_kernel *k = &r->kernels[i];
    cJSON *item = kiln__cli_json_item(kernels);

    JSON_TEXT(item, "name", k->name);
    JSON_FLAG(item, "in_a", k->resources[0].name != NULL);
    JSON_FLAG(item, "in_b", k->resources[1].name != NULL);
    for (size_t j = 0; j < N_RESOURCES; j++)
      add_two(item, resources[j].key, resource(&k->resources[0], j),
              resource(&k->resources[1], j));
    if (k->lines != NULL)
      add_lines_json(item, k, all);
  }
  return out;
}
