/* command_devices.c -- `kiln devices`, which prints the properties of each
 * GPU, and the table of compute capabilities. */
#include "cli/commands.h"

#include <string.h>

/* ---- One property: text for people, and a value for JSON output --------- */

typedef struct sheet {
  cli *c;
  cli_table table;
  cJSON *json;
} sheet;

static void add_text(sheet *s, const char *label, const char *key,
                     const char *text)
{
  kiln__cli_row(&s->table, label, "%s", text[0] != '\0' ? text : "-");
  JSON_TEXT(s->json, key, text);
}

static void add_number(sheet *s, const char *label, const char *key, int value)
{
  kiln__cli_row(&s->table, label, "%d", value);
  JSON_NUMBER(s->json, key, value);
}

static void add_bytes(sheet *s, const char *label, const char *key,
                      uint64_t value)
{
  kiln__cli_row(&s->table, label, "%s", kiln__cli_bytes(s->c, value));
  JSON_NUMBER(s->json, key, value);
}

static void add_clock(sheet *s, const char *label, const char *key, int khz)
{
  kiln__cli_row(&s->table, label, "%d MHz", khz / 1000);
  JSON_NUMBER(s->json, key, khz);
}

static void add_three(sheet *s, const char *label, const char *key,
                      const int v[3])
{
  kiln__cli_row(&s->table, label, "%d x %d x %d", v[0], v[1], v[2]);
  cJSON_AddItemToObject(s->json, key, cJSON_CreateIntArray(v, 3));
}

static void add_flag(sheet *s, const char *label, const char *key, bool value)
{
  kiln__cli_row(&s->table, label, "%s", value ? "yes" : "no");
  JSON_FLAG(s->json, key, value);
}

typedef struct feature {
  const char *label, *key;
  bool has;
} feature;

/* Adds two table rows: the features that the GPU has, and the features that are
 * missing. */
static void add_features(sheet *s, const kiln_traits *t)
{
  const feature list[] = {
      {"shuffle", "has_shfl", t->has_shfl},
      {"independent thread scheduling", "has_its", t->has_its},
      {"match", "has_match", t->has_match},
      {"redux", "has_redux", t->has_redux},
      {"redux f32", "has_redux_f32", t->has_redux_f32},
      {"cp.async", "has_cp_async", t->has_cp_async},
      {"TMA", "has_tma", t->has_tma},
      {"clusters", "has_cluster", t->has_cluster},
      {"dependent launch", "has_pdl", t->has_pdl},
      {"f16", "has_f16", t->has_f16},
      {"bf16", "has_bf16", t->has_bf16},
      {"tensor cores", "has_tensor", t->has_tensor},
      {"f64 atomics", "has_f64_atomics", t->has_f64_atomics},
      {"cooperative launch", "has_coop", t->has_coop},
  };
  const char *has = "", *lacks = "";

  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    const char **text = list[i].has ? &has : &lacks;

    *text = kiln__cli_text(s->c, "%s%s%s", *text, **text != '\0' ? ", " : "",
                           list[i].label);
    JSON_FLAG(s->json, list[i].key, list[i].has);
  }
  kiln__cli_row(&s->table, "has", "%s", has[0] != '\0' ? has : "-");
  kiln__cli_row(&s->table, "has not", "%s", lacks[0] != '\0' ? lacks : "-");
}

static void add_traits(sheet *s, const kiln_traits *t)
{
  add_number(s, "threads per warp", "warp_size", t->warp_size);
  add_number(s, "threads per block", "max_threads_per_block",
             t->max_threads_per_block);
  add_number(s, "threads per SM", "max_threads_per_sm", t->max_threads_per_sm);
  add_number(s, "blocks per SM", "max_blocks_per_sm", t->max_blocks_per_sm);
  add_number(s, "warps per SM", "max_warps_per_sm", t->max_warps_per_sm);
  add_number(s, "registers per SM", "regs_per_sm", t->regs_per_sm);
  add_number(s, "registers per block", "regs_per_block", t->regs_per_block);
  add_number(s, "registers per thread", "max_regs_per_thread",
             t->max_regs_per_thread);
  add_bytes(s, "shared memory per SM", "smem_per_sm", (uint64_t)t->smem_per_sm);
  add_bytes(s, "shared memory per block", "smem_per_block",
            (uint64_t)t->smem_per_block);
  add_bytes(s, "  on request", "smem_per_block_optin",
            (uint64_t)t->smem_per_block_optin);
  add_bytes(s, "  reserved per block", "smem_reserved_per_block",
            (uint64_t)t->smem_reserved_per_block);
  add_features(s, t);
}

static void add_info(sheet *s, const kiln_device_info *i)
{
  add_text(s, "UUID", "uuid", i->uuid);
  add_text(s, "PCI", "pci", i->pci);
  add_bytes(s, "memory", "memory_bytes", i->memory_bytes);
  add_bytes(s, "L2 cache", "l2_bytes", (uint64_t)i->l2_bytes);
  add_clock(s, "clock", "clock_khz", i->clock_khz);
  add_clock(s, "memory clock", "memory_clock_khz", i->memory_clock_khz);
  add_number(s, "memory bus bits", "memory_bus_bits", i->memory_bus_bits);
  add_number(s, "SMs", "sm_count", i->sm_count);
  add_three(s, "largest grid", "max_grid", i->max_grid);
  add_three(s, "largest block", "max_block", i->max_block);
  add_number(s, "copy engines", "copy_engines", i->copy_engines);
  add_flag(s, "concurrent kernels", "concurrent_kernels",
           i->concurrent_kernels);
  add_flag(s, "memory pools", "memory_pools", i->memory_pools);
  add_flag(s, "unified addressing", "unified_addressing",
           i->unified_addressing);
  add_flag(s, "cooperative launch", "cooperative", i->cooperative);
  add_flag(s, "error correction", "ecc", i->ecc);
  add_flag(s, "slice of a GPU (MIG)", "mig", i->mig);
}

static int add_device(cli *c, int ordinal, bool json, cJSON *list)
{
  kiln_device *device = NULL;
  kiln_device_info info;
  const kiln_traits *traits;
  sheet s = {.c = c};

  if (kiln_device_open(&device, c->rt, ordinal, NULL) != KILN_OK ||
      kiln_device_describe(device, &info) != KILN_OK) {
    kiln_device_free(device);
    return kiln__cli_failure(c, kiln__cli_text(c, "GPU %d", ordinal));
  }
  traits = kiln_device_traits(device);
  s.json = cJSON_CreateObject();
  kiln__cli_sheet(&s.table, c);
  JSON_NUMBER(s.json, "ordinal", ordinal);
  JSON_TEXT(s.json, "name", info.name);
  add_text(&s, "compute capability", "compute_capability",
           kiln__cli_cc(c, traits->cc));
  add_text(&s, "family", "family", traits->family);
  add_flag(&s, "integrated (Tegra)", "tegra", traits->tegra);
  add_info(&s, &info);
  add_traits(&s, traits);
  if (!json) {
    printf("%sGPU %d: %s\n", ordinal > 0 ? "\n" : "", ordinal, info.name);
    kiln__cli_table_print(&s.table, 2);
  }
  cJSON_AddItemToArray(list, s.json);
  kiln_device_free(device);
  return CLI_OK;
}

static int show_devices(cli *c, bool json)
{
  cJSON *root = cJSON_CreateObject();
  cJSON *list = cJSON_AddArrayToObject(root, "devices");
  const char *reason = "the driver sees no GPU";
  const char *hint = "see nvidia-smi, and CUDA_VISIBLE_DEVICES";
  int n = 0, rc = CLI_OK;

  if (kiln_device_count(c->rt, &n) != KILN_OK) {
    n = 0;
    reason = kiln__cli_headline(c);
    hint = kiln_last_error()->hint;
  }
  if (n == 0) {
    JSON_TEXT(root, "reason", reason);
    if (!json)
      printf("no GPU found: %s\nnext: %s\n", reason, hint);
  }
  for (int i = 0; i < n; i++)
    if (add_device(c, i, json, list) != CLI_OK)
      rc = CLI_FAILED;
  if (!json) {
    cJSON_Delete(root);
    return rc;
  }
  return kiln__cli_json(c, root, NULL) == CLI_OK ? rc : CLI_FAILED;
}

/* ---- The table of compute capabilities ---------------------------------- */

static cJSON *generation_json(const kiln_traits *t)
{
  cJSON *o = cJSON_CreateObject();

  JSON_NUMBER(o, "cc", t->cc);
  JSON_TEXT(o, "family", t->family);
  JSON_FLAG(o, "tegra", t->tegra);
  JSON_NUMBER(o, "max_threads_per_sm", t->max_threads_per_sm);
  JSON_NUMBER(o, "max_blocks_per_sm", t->max_blocks_per_sm);
  JSON_NUMBER(o, "regs_per_sm", t->regs_per_sm);
  JSON_NUMBER(o, "smem_per_sm", t->smem_per_sm);
  JSON_NUMBER(o, "smem_per_block_optin", t->smem_per_block_optin);
  JSON_TEXT(o, "brought", kiln_arch_brought(t->cc));
  return o;
}

static void generation_row(cli *c, cli_table *table, const kiln_traits *t)
{
  kiln__cli_cells(table, "%s\t%s%s\t%d\t%d\t%d\t%d\t%d\t%s",
                  kiln__cli_cc(c, t->cc), t->family, t->tegra ? " (Tegra)" : "",
                  t->max_threads_per_sm, t->max_blocks_per_sm,
                  t->regs_per_sm / 1024, t->smem_per_sm / 1024,
                  t->smem_per_block_optin / 1024, kiln_arch_brought(t->cc));
}

static int show_table(cli *c, bool json)
{
  static const char *const heads[] = {">cc",        "family",  ">threads",
                                      ">blocks",    ">K regs", ">KiB shared",
                                      ">per block", "brought", NULL};
  size_t n;
  const int *list = kiln_arch_list(&n);
  cJSON *root = cJSON_CreateArray();
  cli_table table;

  kiln__cli_table(&table, c, heads);
  for (size_t i = 0; i < n; i++) {
    kiln_traits t;

    if (kiln_arch_traits(list[i], &t) != KILN_OK)
      continue;
    generation_row(c, &table, &t);
    cJSON_AddItemToArray(root, generation_json(&t));
  }
  if (json)
    return kiln__cli_json(c, root, NULL);
  cJSON_Delete(root);
  kiln__cli_table_print(&table, 0);
  puts(
      "\nThreads, blocks, registers (in units of 1024) and shared memory (KiB) "
      "are per SM;\nper block: the most shared memory that one block can have, "
      "in KiB.");
  return CLI_OK;
}

int kiln__cli_devices(cli *c, int argc, char **argv)
{
  bool json = false, table = false;
  const cli_option options[] = {
      CLI_OPTION_FLAG("table", &table,
                      "print every compute capability from 1.0 on: its limits "
                      "and its new features"),
      CLI_OPTION_FLAG("json", &json, "print JSON"), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln devices [--table] [--json]\n",
      .about = "Prints every property of each GPU that decides how a kernel is "
               "compiled and launched.",
      .options = options,
      .example = "kiln devices --json"};
  cli_words words;
  const int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  return table ? show_table(c, json) : show_devices(c, json);
}
