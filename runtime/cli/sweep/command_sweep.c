/* command_sweep.c -- `kiln sweep`, which compiles and runs a kernel over a grid
 * of settings: block and grid sizes, register limits, shared memory and macros.
 */
#include "cli/sweep/sweep.h"

#include <string.h>

enum { REPEATS = 15, MOST_REPEATS = 101, INTERRUPTED = 130 };

typedef struct request {
  sweep s;
  const char *arch, *block, *grid, *maxreg, *smem;
  const char *csv, *svg, *png, *html;
  bool json, graphs, dark;
} request;

/* Takes the rows of `kiln run` that do not belong to an axis: the kernel and its
 * arguments. */
static size_t add_run_options(cli *c, run_spec *spec, cli_option *out)
{
  static const char *const wanted[] = {"kernel", "cooperative", "arg"};
  const cli_option *from = kiln__cli_run_options(c, spec);
  size_t n = 0;

  for (; from->name != NULL; from++)
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
      if (strcmp(from->name, wanted[i]) == 0)
        out[n++] = *from;
  return n;
}

static int take_items(cli *c, void *to, const char *text)
{
  if (!kiln__cli_parse_bytes(text, to) || *(uint64_t *)to == 0)
    return kiln__cli_usage(c, "--items \"%s\": write a number: 1000000 or 16M",
                           text);
  return CLI_OK;
}

static int parse(cli *c, request *r, int argc, char **argv, cli_words *words)
{
  const cli_option own[] = {
      CLI_OPTION_TEXT("block", "LIST", &r->block,
                      "threads per block: 32..1024 doubles, 64..256:32 steps, "
                      "16x16,32x8 are two dimensions; default 256"),
      CLI_OPTION_TEXT("grid", "LIST", &r->grid, "blocks per grid; default 1"),
      CLI_OPTION_TAKEN("items", "N", take_items, &r->s.items,
                       "instead of --grid: as many blocks as cover N threads"),
      CLI_OPTION_TEXT("per-thread", "MACRO", &r->s.per_thread,
                      "macro whose value is the elements per thread, so that "
                      "--items needs fewer blocks"),
      CLI_OPTION_TEXT("maxreg", "LIST", &r->maxreg,
                      "limits of registers per thread: none,32..128"),
      CLI_OPTION_TEXT("smem", "LIST", &r->smem,
                      "bytes of dynamic shared memory per block: 0,16K..64K"),
      CLI_OPTION_TEXT("arch", "TARGET", &r->arch,
                      "target of the resources; default: the device's"),
      CLI_OPTION_NUMBER("repeats", &r->s.repeats, 1, MOST_REPEATS,
                        "timed launches of each setting; default 15"),
      CLI_OPTION_FLAG("no-run", &r->s.only_compile,
                      "compile only: resources and occupancy"),
      CLI_OPTION_FLAG("graphs", &r->graphs, "draw the results in the terminal"),
      CLI_OPTION_TEXT("csv", "FILE", &r->csv,
                      "write the rows as CSV; - is standard output"),
      CLI_OPTION_TEXT("svg", "FILE", &r->svg,
                      "draw a heat map and curves as SVG"),
      CLI_OPTION_TEXT("png", "FILE", &r->png,
                      "the same as PNG (needs rsvg-convert)"),
      CLI_OPTION_FLAG("dark", &r->dark, "dark colours for the PNG"),
      CLI_OPTION_TEXT("html", "FILE", &r->html,
                      "write a report with pictures and the rows"),
      CLI_OPTION_FLAG("json", &r->json, "print the rows as JSON"),
      CLI_OPTIONS_END};
  cli_option run[8] = {{.name = NULL}};
  cli_syntax syntax = {
      .synopsis = "kiln sweep FILE.cu|builtin:NAME [options]\n",
      .about = "Compiles and runs a kernel for every combination of the lists, "
               "and shows registers, spills, occupancy and time side by side. "
               "A macro with several values is an axis, too: -D TILE=8,16,32. "
               "-D BLOCK=@block tells the source the threads per block. "
               "Without a GPU, the CPU device counts instructions instead of "
               "time. Settings that fail are rows with their reason; an "
               "interrupted sweep keeps its rows.",
      .options = own,
      .shared = run,
      .example = "kiln sweep saxpy.cu --block 32..1024 --maxreg 16..64 "
                 "--no-run",
      .exit_codes = "0 success, 1 no setting succeeded, 2 wrong use, 130 "
                    "interrupted.",
      .least = 1,
      .most = 1,
      .missing = "name one program: FILE.cu or builtin:NAME"};

  add_run_options(c, &r->s.spec, run);
  kiln__cli_program_init(&r->s.program, c, argc);
  syntax.more = r->s.program.table;
  return kiln__cli_parse(c, &syntax, argc, argv, words);
}

/* ---- Axes --------------------------------------------------------------- */

/* Adds the axis of an option, unless the option is missing. */
static int add_axis(sweep *s, sweep_kind kind, const char *name,
                    const char *text)
{
  sweep_axis *axis = &s->axes[s->n_axes];

  if (text == NULL)
    return CLI_OK;
  if (s->n_axes == SWEEP_MOST_AXES)
    return kiln__cli_usage(s->c, "a sweep has at most %d axes",
                           SWEEP_MOST_AXES);
  *axis = (sweep_axis){.kind = kind};
  s->n_axes++;
  return kiln__sweep_values(s->c, name, text, axis);
}

/* Axes of the compiler come first, so that settings of one program follow each
 * other. */
static int add_axes(request *r)
{
  sweep *s = &r->s;
  int rc = kiln__sweep_defines(s);

  if (rc == CLI_OK)
    rc = add_axis(s, SWEEP_MAXREG, "maxreg", r->maxreg);
  if (rc == CLI_OK)
    rc = add_axis(s, SWEEP_GRID, "grid", r->grid);
  if (rc == CLI_OK)
    rc = add_axis(s, SWEEP_SMEM, "smem", r->smem);
  if (rc == CLI_OK)
    rc = add_axis(s, SWEEP_BLOCK, "block", r->block);
  if (rc == CLI_OK && r->grid != NULL && s->items > 0)
    rc = kiln__cli_usage(s->c, "--grid and --items contradict each other");
  return rc == CLI_OK ? kiln__sweep_rows(s) : rc;
}

/* Chooses the target of the resource columns. The CPU device runs PTX, but the
 * columns need machine code. */
static int find_target(request *r)
{
  sweep *s = &r->s;
  cli_targets targets;
  int rc = kiln__cli_targets(s->c, r->arch, &targets);

  if (rc != CLI_OK)
    return rc;
  if (targets.n > 1)
    return kiln__cli_usage(s->c, "--arch: a sweep is for one target");
  s->target = targets.list[0];
  s->target.ptx = false;
  return kiln_arch_traits(s->target.cc, &s->traits) == KILN_OK
             ? CLI_OK
             : kiln__cli_failure(s->c, NULL);
}

/* ---- The command -------------------------------------------------------- */

static int write_page(request *r, const plot_figure *figure, const char *path)
{
  cJSON *json = kiln__sweep_json(&r->s);
  const plot_page page = {
      .title = kiln__cli_text(r->s.c, "Sweep of %s", r->s.program.label),
      .note = figure != NULL ? figure->note : NULL,
      .figures = figure,
      .n = figure != NULL ? 1 : 0,
      .data = json};
  const int rc = kiln__plot_page(r->s.c, &page, path);

  cJSON_Delete(json);
  return rc;
}

static int show(request *r)
{
  const plot_figure *figure = kiln__sweep_figure(&r->s);
  cli *c = r->s.c;
  int rc = CLI_OK;

  if (r->json)
    rc = kiln__cli_json(c, kiln__sweep_json(&r->s), NULL);
  else if (r->csv == NULL || strcmp(r->csv, "-") != 0)
    kiln__sweep_print(&r->s);
  if (r->csv != NULL && kiln__sweep_csv(&r->s, r->csv) != CLI_OK)
    rc = CLI_FAILED;
  if (r->html != NULL && write_page(r, figure, r->html) != CLI_OK)
    rc = CLI_FAILED;
  if (figure == NULL) {
    if (r->svg == NULL && r->png == NULL && !r->graphs)
      return rc;
    kiln__cli_message(c,
                      "give --block, --maxreg or another list several values",
                      "there is nothing to draw");
    return CLI_FAILED;
  }
  if (r->graphs)
    kiln__plot_print(c, figure);
  if (kiln__plot_write(c, figure, r->svg, r->png, r->dark) != CLI_OK)
    rc = CLI_FAILED;
  return rc;
}

int kiln__cli_sweep(cli *c, int argc, char **argv)
{
  request *r = kiln__cli_alloc(c, 1, sizeof *r);
  cli_words words;
  int rc;

  r->s.c = c;
  r->s.repeats = REPEATS;
  rc = parse(c, r, argc, argv, &words);
  if (rc == CLI_OK)
    rc = kiln__cli_program_open(&r->s.program, c, words.at[0]);
  if (rc == CLI_OK)
    rc = add_axes(r);
  if (rc == CLI_OK)
    rc = find_target(r);
  if (rc == CLI_OK)
    rc = kiln__sweep_run(&r->s);
  if (r->s.n_done > 0) {
    const int shown = show(r);

    rc = rc == CLI_OK ? shown : rc;
    if (rc == CLI_OK && kiln__sweep_best(&r->s) == NULL)
      rc = CLI_FAILED;
  }
  kiln__sweep_free(&r->s);
  return kiln__sweep_interrupted ? INTERRUPTED : rc;
}
