/* compile_report.c -- the report of `kiln compile`: the resources that each
 * kernel uses, and the resulting occupancy of an SM. */
#include "cli/command_compile.h"

#include <string.h>

static const int blocks[] = {128, 256, 512, 1024};
enum { N_BLOCKS = sizeof blocks / sizeof blocks[0] };

/* Returns the occupancy for blocks of this many threads: resident warps in
 * percent of the SM's maximum. Returns -1 if such a block cannot run. */
static int occupancy(const kiln_traits *traits, const kiln_resources *r,
                     int block)
{
  kiln_occupancy_result result;

  if ((r->max_threads > 0 && block > r->max_threads) ||
      kiln_occupancy(traits, block, r->registers, (size_t)r->shared_static,
                     &result) != KILN_OK ||
      result.blocks_per_sm == 0)
    return -1;
  return (int)(result.share * 100 + 0.5);
}

const char *kiln__cli_kernel_name(cli *c, const cli_unit *unit,
                                  const char *lowered)
{
  for (size_t i = 0; i < unit->desc->n_names; i++) {
    const char *l = kiln_image_lowered(unit->image, unit->desc->names[i]);

    if (l != NULL && strcmp(l, lowered) == 0)
      return unit->desc->names[i];
  }
  return kiln__cli_plain_name(c, lowered);
}

/* Fills the rest of a table row with dashes. These cells need values that an
 * assembler reports. For PTX, only the driver's assembler could report them. */
static void add_unknown(cli_table *t)
{
  kiln__cli_dashes(t, t->columns - t->n % t->columns);
}

/* Returns the target that the image was compiled for. A pack may serve a
 * target with the image of a lower target. */
static char *made_for(const cli_unit *unit, char text[24])
{
  const kiln_target target = kiln_image_target(unit->image);

  return kiln_target_text(&target, text);
}

static void add_kernel(cli_table *t, const cli_unit *unit,
                       const kiln_resources *r)
{
  kiln_traits traits;
  char text[24];

  kiln__cli_cell(t, "%s", made_for(unit, text));
  kiln__cli_cell(t, "%s", kiln__cli_kernel_name(t->c, unit, r->name));
  if (r->registers == 0) {
    add_unknown(t);
    return;
  }
  kiln__cli_cell(t, "%d", r->registers);
  if (r->spill_stores + r->spill_loads > 0)
    kiln__cli_cell(t, "%d/%d", r->spill_stores, r->spill_loads);
  else
    kiln__cli_cell(t, "-");
  kiln__cli_cell(t, "%d", r->stack);
  kiln__cli_cell(t, "%d", r->shared_static);
  /* Every kernel uses constant memory, so 0 means that the assembler did not
   * report it. */
  if (r->constant > 0)
    kiln__cli_cell(t, "%d", r->constant);
  else
    kiln__cli_cell(t, "-");
  if (kiln_arch_traits(unit->target.cc, &traits) != KILN_OK)
    memset(&traits, 0, sizeof traits);
  for (size_t i = 0; i < N_BLOCKS; i++) {
    const int share = occupancy(&traits, r, blocks[i]);

    if (share < 0)
      kiln__cli_cell(t, "-");
    else
      kiln__cli_cell(t, "%d %%", share);
  }
}

/* Adds a table row for a program without kernels. Most likely the program has a
 * template that was not instantiated. */
static void add_empty(cli_table *t, const cli_unit *unit)
{
  char text[24];

  kiln__cli_cell(t, "%s", made_for(unit, text));
  kiln__cli_cell(t, "none; a template needs --name");
  add_unknown(t);
}

static void report_kernels(cli *c, const cli_unit *units, size_t n)
{
  static const char *const heads[] = {"target", "kernel",  ">regs",  ">spill",
                                      ">stack", ">shared", ">const", ">128",
                                      ">256",   ">512",    ">1024",  NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  for (size_t i = 0; i < n; i++) {
    const kiln_image *image = units[i].image;

    if (image == NULL)
      continue;
    if (kiln_image_kernels(image) == 0)
      add_empty(&t, &units[i]);
    for (size_t k = 0; k < kiln_image_kernels(image); k++) {
      kiln_resources r;

      if (kiln_image_resources(image, k, &r) == KILN_OK)
        add_kernel(&t, &units[i], &r);
    }
  }
  if (t.n == 0)
    return;
  putchar('\n');
  kiln__cli_table_print(&t, 0);
  puts("\nregs: registers per thread; spill: bytes stored/loaded per thread; "
       "stack: "
       "bytes\nper thread; shared: bytes per block; const: bytes; 128 to 1024: "
       "occupancy for\nblocks of that many threads");
}

void kiln__cli_print_units(cli *c, const cli_unit *units, size_t n)
{
  static const char *const heads[] = {"program",  "target",      "from",
                                      ">compile", ">PTX",        ">CUBIN",
                                      "NVRTC",    "cache entry", NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  for (size_t i = 0; i < n; i++) {
    const kiln_image *image = units[i].image;
    const char *hash = "";
    size_t ptx = 0, cubin = 0;
    char text[24], asked[24];

    if (image == NULL)
      continue;
    kiln_image_ptx(image, &ptx);
    if (kiln_image_cubin(image, &cubin) == NULL)
      cubin = 0;
    kiln_image_key(image, &hash);
    kiln__cli_cell(&t, "%s", units[i].label);
    kiln__cli_cell(&t, "%s", made_for(&units[i], text));
    kiln_target_text(&units[i].target, asked);
    if (strcmp(text, asked) == 0)
      kiln__cli_cell(&t, "%s", kiln_origin_name(kiln_image_origin(image)));
    else
      kiln__cli_cell(&t, "%s, to serve %s",
                     kiln_origin_name(kiln_image_origin(image)), asked);
    kiln__cli_cell(&t, "%.1f ms", kiln_image_compile_ms(image));
    kiln__cli_cell(&t, "%s", kiln__cli_bytes(c, ptx));
    kiln__cli_cell(&t, "%s", cubin > 0 ? kiln__cli_bytes(c, cubin) : "-");
    kiln__cli_cell(&t, "%s", kiln__cli_version(c, kiln_image_nvrtc(image)));
    kiln__cli_cell(&t, "%s", hash);
  }
  if (t.n > 0)
    kiln__cli_table_print(&t, 0);
  report_kernels(c, units, n);
}

static void add_kernel_json(cli *c, cJSON *k, const cli_unit *unit,
                            const kiln_resources *r)
{
  cJSON *shares;
  kiln_traits traits = {0};

  JSON_TEXT(k, "name", kiln__cli_kernel_name(c, unit, r->name));
  JSON_TEXT(k, "lowered", r->name);
  JSON_NUMBER(k, "registers", r->registers);
  JSON_NUMBER(k, "spill_stores", r->spill_stores);
  JSON_NUMBER(k, "spill_loads", r->spill_loads);
  JSON_NUMBER(k, "stack", r->stack);
  JSON_NUMBER(k, "shared_static", r->shared_static);
  JSON_NUMBER(k, "constant", r->constant);
  JSON_NUMBER(k, "local", r->local);
  JSON_NUMBER(k, "max_threads", r->max_threads);
  JSON_NUMBER(k, "parameters", r->n_params);
  kiln_arch_traits(unit->target.cc, &traits);
  shares = cJSON_AddObjectToObject(k, "occupancy_percent");
  for (size_t i = 0; i < N_BLOCKS; i++) {
    const int share = occupancy(&traits, r, blocks[i]);

    if (share >= 0 && r->registers > 0)
      JSON_NUMBER(shares, kiln__cli_text(c, "%d", blocks[i]), share);
  }
}

static void image_json(cli *c, cJSON *out, const cli_unit *unit)
{
  const kiln_image *image = unit->image;
  cJSON *kernels;
  const char *hash = "";
  size_t ptx = 0, cubin = 0;
  char text[24];

  kiln_image_ptx(image, &ptx);
  if (kiln_image_cubin(image, &cubin) == NULL)
    cubin = 0;
  kiln_image_key(image, &hash);
  JSON_TEXT(out, "made_for", made_for(unit, text));
  JSON_TEXT(out, "from", kiln_origin_name(kiln_image_origin(image)));
  JSON_NUMBER(out, "nvrtc", kiln_image_nvrtc(image));
  JSON_NUMBER(out, "compile_ms", kiln_image_compile_ms(image));
  JSON_TEXT(out, "entry", hash);
  JSON_NUMBER(out, "ptx_bytes", ptx);
  JSON_NUMBER(out, "cubin_bytes", cubin);
  kernels = cJSON_AddArrayToObject(out, "kernels");
  for (size_t k = 0; k < kiln_image_kernels(image); k++) {
    kiln_resources r;

    if (kiln_image_resources(image, k, &r) == KILN_OK)
      add_kernel_json(c, kiln__cli_json_item(kernels), unit, &r);
  }
}

cJSON *kiln__cli_units_json(cli *c, const cli_unit *units, size_t n)
{
  cJSON *root = cJSON_CreateObject();
  cJSON *list;

  JSON_TEXT(root, "program", n > 0 ? units[0].label : "");
  list = cJSON_AddArrayToObject(root, "targets");
  for (size_t i = 0; i < n; i++) {
    cJSON *unit = kiln__cli_json_item(list);
    char text[24];

    JSON_TEXT(unit, "target", kiln_target_text(&units[i].target, text));
    JSON_TEXT(unit, "status", kiln_status_name(units[i].status));
    if (units[i].image != NULL)
      image_json(c, unit, &units[i]);
  }
  return root;
}
