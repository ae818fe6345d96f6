/* command_occupancy.c -- `kiln occupancy`, which prints the occupancy sheet of a
 * setting or of a kernel: every limit, which of them binds, and three graphs. */
#include "cli/command_compile.h"
#include "cli/sheet/occupancy_sheet.h"

#include <limits.h>
#include <string.h>

typedef struct request {
  cli_program program;
  const char *arch, *kernel, *svg, *png;
  int threads, registers, barriers;
  uint64_t shared, config;
  bool dark, json;
  const char *name; /* name of the kernel that the sheet is about, or NULL */
  occupancy_setting setting;
} request;

static int take_bytes(cli *c, void *to, const char *text)
{
  if (!kiln__cli_parse_bytes(text, to) || *(uint64_t *)to > INT_MAX / 4)
    return kiln__cli_usage(c, "\"%s\" is no size: write bytes: 4096 or 4K",
                           text);
  return CLI_OK;
}

/* ---- The setting -------------------------------------------------------- */

/* Fills the traits of the GPU that --arch names, or of this machine's GPU. */
static int find_arch(cli *c, const request *r, kiln_traits *out)
{
  kiln_device *device = NULL;
  kiln_target target;

  if (r->arch != NULL) {
    if (kiln_target_parse(&target, r->arch) != KILN_OK ||
        kiln_arch_traits(target.cc, out) != KILN_OK)
      return kiln__cli_usage(c, "--arch \"%s\": write one target: 7.0 or sm_90",
                             r->arch);
    return CLI_OK;
  }
  if (kiln_device_open(&device, c->rt, 0, NULL) != KILN_OK)
    return kiln__cli_usage(c, "there is no GPU here: name one with --arch 9.0");
  *out = *kiln_device_traits(device);
  kiln_device_free(device);
  return CLI_OK;
}

static bool is_named(cli *c, const char *lowered, const char *wanted)
{
  return strcmp(lowered, wanted) == 0 ||
         strcmp(kiln__cli_plain_name(c, lowered), wanted) == 0;
}

/* Finds the kernel that --kernel names, or the only one. */
static int find_kernel(cli *c, request *r, const kiln_image *image,
                       kiln_resources *out)
{
  const size_t n = kiln_image_kernels(image);
  const char *list = "";

  for (size_t i = 0; i < n; i++) {
    if (kiln_image_resources(image, i, out) != KILN_OK)
      continue;
    if (r->kernel == NULL ? n == 1 : is_named(c, out->name, r->kernel)) {
      /* The name must outlive the image. */
      r->name = kiln__cli_text(c, "%s", kiln__cli_plain_name(c, out->name));
      return CLI_OK;
    }
    list = kiln__cli_text(c, "%s%s%s", list, list[0] != '\0' ? ", " : "",
                          kiln__cli_plain_name(c, out->name));
  }
  kiln__cli_message(
      c, n == 0 ? "a template needs --name" : "name one with --kernel",
      n == 0 ? "the program has no kernel%s" : "the program's kernels are %s",
      list);
  return CLI_FAILED;
}

/* Compiles the program and takes registers, shared memory and launch bound
 * from its kernel, where no option gives them. */
static int take_kernel(cli *c, request *r, const char *what)
{
  cli_unit unit = {.desc = &r->program.desc};
  cli_targets targets;
  kiln_resources k;
  int rc = kiln__cli_program_open(&r->program, c, what);

  if (rc == CLI_OK)
    rc = kiln__cli_targets(c, r->arch, &targets);
  if (rc != CLI_OK)
    return rc;
  unit.label = r->program.label;
  unit.target = targets.list[0];
  rc = kiln__cli_compile_units(c, &unit, 1);
  if (rc == CLI_OK)
    rc = find_kernel(c, r, unit.image, &k);
  if (rc == CLI_OK && k.registers == 0 && r->registers == 0) {
    kiln__cli_message(c, "use an sm_ target instead of compute_",
                      "PTX has no registers to count");
    rc = CLI_FAILED;
  }
  if (rc == CLI_OK) {
    (void)kiln_arch_traits(unit.target.cc, &r->setting.traits);
    if (r->registers == 0)
      r->registers = k.registers;
    r->shared += (uint64_t)k.shared_static;
    r->setting.max_threads = k.max_threads;
    if (r->threads == 0 && k.max_threads > 0)
      r->threads = k.max_threads;
  }
  kiln__cli_free_units(&unit, 1);
  return rc;
}

static int settle(cli *c, request *r)
{
  occupancy_setting *s = &r->setting;

  if (r->config > (uint64_t)s->traits.smem_per_sm)
    return kiln__cli_usage(
        c, "--smem-config: an SM of %s has at most %s of shared memory",
        kiln__cli_cc(c, s->traits.cc),
        kiln__cli_bytes(c, (uint64_t)s->traits.smem_per_sm));
  if (r->config > 0)
    s->traits.smem_per_sm = (int)r->config;
  s->threads = r->threads > 0 ? r->threads : 256;
  s->registers = r->registers > 0 ? r->registers : 32;
  s->shared = (size_t)r->shared;
  s->barriers = r->barriers;
  if (s->threads > s->traits.max_threads_per_block)
    return kiln__cli_usage(c, "--threads %d: a block of %s has at most %d",
                           s->threads, kiln__cli_cc(c, s->traits.cc),
                           s->traits.max_threads_per_block);
  return CLI_OK;
}

/* ---- The sheet ---------------------------------------------------------- */

static const char *count(cli *c, int value)
{
  return kiln__plot_number(c, value, 0);
}

static void add_limit(cli_table *t, const occupancy_sheet *sheet,
                      sheet_limit limit, const char *per_block,
                      const char *per_sm)
{
  const int blocks = sheet->blocks[limit];

  kiln__cli_cell(t, "%s", kiln__occupancy_limit_name(limit));
  kiln__cli_cell(t, "%s", per_block);
  kiln__cli_cell(t, "%s", per_sm);
  if (blocks >= SHEET_UNLIMITED)
    kiln__cli_cell(t, "-");
  else
    kiln__cli_cell(t, "%d", blocks);
  kiln__cli_cell(t, "%s", sheet->binds[limit] ? "binds" : "");
}

static void print_limits(cli *c, const occupancy_sheet *sheet)
{
  static const char *const heads[] = {"limit",   ">per block", ">per SM",
                                      ">blocks", "",           NULL};
  const kiln_traits *t = &sheet->of.traits;
  cli_table table;

  kiln__cli_table(&table, c, heads);
  add_limit(&table, sheet, SHEET_WARPS, count(c, sheet->block_warps),
            count(c, t->max_warps_per_sm));
  add_limit(&table, sheet, SHEET_BLOCKS, "1", count(c, t->max_blocks_per_sm));
  add_limit(&table, sheet, SHEET_REGISTERS, count(c, sheet->block_registers),
            count(c, t->regs_per_sm));
  add_limit(&table, sheet, SHEET_SHARED,
            kiln__cli_text(c, "%s B", count(c, sheet->block_shared)),
            kiln__cli_text(c, "%s B", count(c, t->smem_per_sm)));
  if (sheet->blocks[SHEET_BARRIERS] < SHEET_UNLIMITED)
    add_limit(&table, sheet, SHEET_BARRIERS, count(c, sheet->of.barriers),
              count(c, kiln__occupancy_barriers(t)));
  kiln__cli_table_print(&table, 2);
}

/* Explains how the amounts per block were rounded. */
static void print_units(cli *c, const occupancy_sheet *sheet)
{
  const kiln_traits *t = &sheet->of.traits;
  const char *reserved = "";

  if (t->smem_reserved_per_block > 0)
    reserved =
        kiln__cli_text(c, ", after %s bytes per block that the system reserves",
                       count(c, t->smem_reserved_per_block));
  printf("  Registers are allocated per %s in units of %d, and warps in "
         "multiples of %d;\n  shared memory in units of %d bytes%s.\n",
         t->cc < 20 ? "block" : "warp", t->reg_alloc_unit, t->warp_alloc_unit,
         t->smem_alloc_unit, reserved);
}

static const char *describe(cli *c, const request *r)
{
  const occupancy_setting *s = &r->setting;

  return kiln__cli_text(
      c,
      "%s%scompute capability %s: %d threads, %d registers, %s B of shared "
      "memory",
      r->name != NULL ? r->name : "", r->name != NULL ? " on " : "",
      kiln__cli_cc(c, s->traits.cc), s->threads, s->registers,
      count(c, (int)s->shared));
}

static void print_sheet(cli *c, const request *r, const occupancy_sheet *sheet,
                        const plot_figure *figure)
{
  const char *advice = kiln__occupancy_advice(c, sheet);
  const int bound = r->setting.max_threads;

  printf("%s\n\n", describe(c, r));
  print_limits(c, sheet);
  print_units(c, sheet);
  printf("\n%d blocks, %d of %d warps per SM: occupancy %.3g %%, limited by "
         "%s\n",
         sheet->now.blocks_per_sm, sheet->now.warps_per_sm,
         sheet->of.traits.max_warps_per_sm, sheet->now.share * 100,
         kiln__occupancy_binding(c, sheet));
  if (bound > 0 && sheet->of.threads > bound)
    printf("the kernel's launch bound is %d threads, so this launch fails\n",
           bound);
  if (advice != NULL)
    printf("one more block needs %s\n", advice);
  kiln__plot_print(c, figure);
}

static cJSON *sheet_json(cli *c, const request *r)
{
  cJSON *json = kiln__occupancy_json(c, &r->setting);

  if (r->name != NULL)
    JSON_TEXT(json, "kernel", r->name);
  JSON_TEXT(json, "arch", kiln__cli_cc(c, r->setting.traits.cc));
  JSON_NUMBER(json, "shared_per_sm", r->setting.traits.smem_per_sm);
  return json;
}

static int show(cli *c, const request *r)
{
  const plot_figure *figure;
  occupancy_sheet sheet;

  if (kiln__occupancy_sheet(&sheet, &r->setting) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  figure = kiln__occupancy_figure(c, &sheet, describe(c, r));
  if (r->json) {
    if (kiln__cli_json(c, sheet_json(c, r), NULL) != CLI_OK)
      return CLI_FAILED;
  } else {
    print_sheet(c, r, &sheet, figure);
  }
  return kiln__plot_write(c, figure, r->svg, r->png, r->dark);
}

int kiln__cli_occupancy(cli *c, int argc, char **argv)
{
  request *r = kiln__cli_alloc(c, 1, sizeof *r);
  const cli_option options[] = {
      CLI_OPTION_TEXT("arch", "TARGET", &r->arch,
                      "the GPU: 7.0 or sm_90; default: this machine's"),
      CLI_OPTION_NUMBER("threads", &r->threads, 1, 1024,
                        "threads per block; default: the kernel's launch "
                        "bound, or 256"),
      CLI_OPTION_NUMBER("regs", &r->registers, 1, 255,
                        "registers per thread; default: the kernel's, or 32"),
      CLI_OPTION_TAKEN("smem", "BYTES", take_bytes, &r->shared,
                       "shared memory per block; for a kernel, in addition to "
                       "its static memory"),
      CLI_OPTION_TAKEN("smem-config", "BYTES", take_bytes, &r->config,
                       "shared memory that the SM is configured for; default: "
                       "the GPU's maximum"),
      CLI_OPTION_NUMBER("barriers", &r->barriers, 0, 16,
                        "named barriers per block (bar.sync 0 to 15), which "
                        "limit the blocks from 9.0 on; default: at most one"),
      CLI_OPTION_TEXT("kernel", "NAME", &r->kernel,
                      "the kernel; default: the only one"),
      CLI_OPTION_TEXT("svg", "FILE", &r->svg, "draw the graphs as SVG"),
      CLI_OPTION_TEXT("png", "FILE", &r->png,
                      "draw the graphs as PNG (needs rsvg-convert)"),
      CLI_OPTION_FLAG("dark", &r->dark, "dark colours for the PNG"),
      CLI_OPTION_FLAG("json", &r->json, "print the sheet as JSON"),
      CLI_OPTIONS_END};
  cli_syntax syntax = {
      .synopsis = "kiln occupancy [FILE.cu|builtin:NAME] [options]\n",
      .about = "Prints how many blocks fit on an SM, by each limit, and how "
               "the occupancy depends on block size, registers and shared "
               "memory. The numbers come from options or from a kernel. Needs "
               "no GPU.",
      .options = options,
      .example =
          "kiln occupancy --arch 7.0 --threads 128 --regs 32 --smem 4096",
      .most = 1};
  cli_words words;
  int rc;

  kiln__cli_program_init(&r->program, c, argc);
  syntax.shared = r->program.table;
  rc = kiln__cli_parse(c, &syntax, argc, argv, &words);
  if (rc != CLI_OK)
    return rc;
  rc = words.n > 0 ? take_kernel(c, r, words.at[0])
                   : find_arch(c, r, &r->setting.traits);
  if (rc == CLI_OK)
    rc = settle(c, r);
  return rc == CLI_OK ? show(c, r) : rc;
}
