/* program_options.c -- parses the programs and targets of the command line
 * for `compile`, `cache`, `pack`, `run` and `check`. */
#include "cli/commands.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options of a program ----------------------------------------------- */

/* Returns the length of the C identifier that `text` starts with. */
static size_t name_length(const char *text)
{
  size_t n = 0;

  while (text[n] == '_' || isalpha((unsigned char)text[n]) ||
         (n > 0 && isdigit((unsigned char)text[n])))
    n++;
  return n;
}

static int take_define(cli *c, void *to, const char *value)
{
  cli_program *p = to;
  const size_t n = name_length(value);

  if (n == 0 || (value[n] != '\0' && value[n] != '=' && value[n] != '('))
    return kiln__cli_usage(c, "-D \"%s\": write NAME or NAME=VALUE", value);
  p->defines[p->desc.n_defines++] = value;
  return CLI_OK;
}

static int take_trait(cli *c, void *to, const char *value)
{
  cli_program *p = to;
  const size_t n = name_length(value);

  if (n == 0 || value[n] != '=')
    return kiln__cli_usage(c, "--trait \"%s\": write NAME=VALUE", value);
  p->traits[p->desc.n_traits++] = value;
  return CLI_OK;
}

static int take_name(cli *c, void *to, const char *value)
{
  cli_program *p = to;

  (void)c;
  p->names[p->desc.n_names++] = value;
  return CLI_OK;
}

static int take_option(cli *c, void *to, const char *value)
{
  cli_program *p = to;

  (void)c;
  p->options[p->desc.n_options++] = value;
  return CLI_OK;
}

static int take_suffix(cli *c, void *to, const char *value)
{
  cli_program *p = to;

  if (strcmp(value, "a") != 0 && strcmp(value, "f") != 0)
    return kiln__cli_usage(c, "--suffix \"%s\": write a or f", value);
  p->desc.suffix = value[0];
  return CLI_OK;
}

/* Adds -I DIR, which is passed to NVRTC as two words. */
static int take_folder(cli *c, void *to, const char *value)
{
  (void)take_option(c, to, "-I");
  return take_option(c, to, value);
}

void kiln__cli_program_init(cli_program *p, cli *c, int argc)
{
  const size_t capacity = (size_t)argc + 1;
  kiln_program_desc *d = &p->desc;
  const cli_option table[] = {
      {.name = "define",
       .letter = 'D',
       .kind = CLI_TAKEN,
       .to = p,
       .value = "NAME[=VALUE]",
       .take = take_define,
       .help = "define a macro"},
      {.name = "include",
       .letter = 'I',
       .kind = CLI_TAKEN,
       .to = p,
       .value = "DIR",
       .take = take_folder,
       .help = "search DIR for headers"},
      CLI_OPTION_TAKEN("trait", "NAME=VALUE", take_trait, p,
                       "override a trait of the GPU, e.g. KILN_HAS_SHFL=0"),
      CLI_OPTION_TAKEN("name", "EXPRESSION", take_name, p,
                       "instantiate a template: 'scale<float>'"),
      CLI_OPTION_TAKEN("option", "WORD", take_option, p,
                       "pass WORD to NVRTC unchanged"),
      CLI_OPTION_TAKEN("suffix", "a|f", take_suffix, p,
                       "target suffix that the code needs: a for wgmma"),
      CLI_OPTION_FLAG("lineinfo", &d->lineinfo, "line numbers for profilers"),
      CLI_OPTION_FLAG("debug", &d->debug, "code for a debugger, not optimised"),
      CLI_OPTION_FLAG("fast-math", &d->fast_math,
                      "faster, less exact arithmetic"),
      CLI_OPTION_FLAG("fast-compile", &d->fast_compile,
                      "compile sooner, optimise less (NVRTC 12.9)"),
      CLI_OPTION_FLAG("minimal", &d->minimal,
                      "compile sooner: no textures, no CUDA runtime API"),
      CLI_OPTION_NUMBER("maxrregcount", &d->max_registers, 1, 255,
                        "maximum number of registers per thread"),
      CLI_OPTION_FLAG("fail-on-spill", &d->fail_on_spill,
                      "fail if a kernel spills registers"),
      CLI_OPTION_FLAG("no-cache", &d->no_cache,
                      "neither read nor write the cache"),
      CLI_OPTION_FLAG("refresh", &d->refresh,
                      "compile again and replace the cached entry"),
      CLI_OPTIONS_END};
  cli_option *kept = kiln__cli_alloc(c, 1, sizeof table);

  *p = (cli_program){.table = kept};
  memcpy(kept, table, sizeof table);
  p->defines = kiln__cli_alloc(c, capacity, sizeof *p->defines);
  p->traits = kiln__cli_alloc(c, capacity, sizeof *p->traits);
  p->names = kiln__cli_alloc(c, capacity, sizeof *p->names);
  /* The option "-I" and its folder take two words. One more pair of words is
   * for the folder of the source file. */
  p->options = kiln__cli_alloc(c, 2 * capacity + 2, sizeof *p->options);
  d->defines = p->defines;
  d->traits = p->traits;
  d->names = p->names;
  d->options = p->options;
}

/* ---- Sources ------------------------------------------------------------ */

static int open_builtin(cli_program *p, const cli *c, const char *name)
{
  size_t n;
  const kiln_builtin *list = kiln_builtin_list(&n);

  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i].name, name) == 0) {
      p->desc.builtin = list[i].name;
      p->label = list[i].name;
      return CLI_OK;
    }
  kiln__cli_message(c, "kiln compile --list",
                    "there is no embedded program \"%s\"", name);
  return CLI_FAILED;
}

int kiln__cli_program_open(cli_program *p, cli *c, const char *what)
{
  const char *slash;
  char *source;

  if (strncmp(what, "builtin:", 8) == 0)
    return open_builtin(p, c, what + 8);
  source = kiln__cli_read(c, what, CLI_MOST_TEXT, &p->desc.source_size);
  if (source == NULL)
    return CLI_FAILED;
  p->label = strcmp(what, "-") == 0 ? "stdin" : what;
  p->desc.source = source;
  p->desc.name = p->label;
  /* The folder of the source file is searched for quoted includes, as C
   * programmers expect. */
  if (strstr(source, "#include \"") != NULL) {
    slash = strrchr(what, '/');
    p->options[p->desc.n_options++] = "-I";
    p->options[p->desc.n_options++] =
        slash == NULL
            ? "."
            : kiln__cli_text(c, "%.*s", (int)(slash - what + 1), what);
  }
  return CLI_OK;
}

/* ---- Targets ------------------------------------------------------------ */

enum { MOST_NVRTC = 16 };

/* Lists every target that at least one NVRTC compiles for, in ascending
 * order. */
static int all_targets(cli *c, cli_targets *out)
{
  kiln_nvrtc_info *info = kiln__cli_alloc(c, MOST_NVRTC, sizeof *info);
  bool known[1000] = {false};
  size_t n = 0;

  if (kiln_runtime_nvrtc(c->rt, info, MOST_NVRTC, &n) != KILN_OK)
    return kiln__cli_failure(c, "--arch all");
  for (size_t i = 0; i < n && i < MOST_NVRTC; i++)
    for (size_t k = 0; k < info[i].n_archs; k++)
      if (info[i].archs[k] > 0 && info[i].archs[k] < 1000)
        known[info[i].archs[k]] = true;
  for (int cc = 1; cc < 1000; cc++)
    out->n += known[cc] ? 1 : 0;
  out->list = kiln__cli_alloc(c, out->n, sizeof *out->list);
  out->n = 0;
  for (int cc = 1; cc < 1000; cc++)
    if (known[cc])
      out->list[out->n++] = (kiln_target){.cc = cc};
  return CLI_OK;
}

bool kiln__cli_ladder(kiln_ladder_query *query, kiln_ladder_result *out,
                      const kiln_nvrtc_info *nvrtc, size_t n)
{
  kiln_ladder_query best = *query;

  if (kiln_ladder(query, out) != KILN_OK)
    return false;
  for (size_t i = 0; i < n; i++) {
    kiln_ladder_query q = *query;
    kiln_ladder_result result;

    q.nvrtc_version = nvrtc[i].version;
    q.archs = nvrtc[i].archs;
    q.n_archs = nvrtc[i].n_archs;
    if (kiln_ladder(&q, &result) != KILN_OK)
      return false;
    if (i > 0 && result.rung >= out->rung)
      continue;
    best = q;
    *out = result;
  }
  *query = best;
  return true;
}

/* Finds the target that the compatibility ladder chooses for GPU 0. Returns
 * false if there is no GPU, or if no target fits the GPU. */
static bool device_target(cli *c, const kiln_nvrtc_info *nvrtc, size_t n,
                          kiln_target *out)
{
  kiln_driver_info driver;
  kiln_device *device = NULL;
  kiln_ladder_query query = {0};
  kiln_ladder_result *result = kiln__cli_alloc(c, 1, sizeof *result);

  if (kiln_runtime_driver(c->rt, &driver) != KILN_OK || driver.n_devices < 1 ||
      kiln_device_open(&device, c->rt, 0, NULL) != KILN_OK)
    return false;
  query.cc = kiln_device_traits(device)->cc;
  query.tegra = kiln_device_traits(device)->tegra;
  query.driver_version = driver.version;
  query.ptx_only = driver.ptx_only;
  kiln_device_free(device);
  if (!kiln__cli_ladder(&query, result, nvrtc, n) ||
      result->rung == KILN_RUNG_REFUSE || result->rung == KILN_RUNG_PACK)
    return false;
  *out = result->target;
  return true;
}

/* Determines the target if the option --arch is not given. */
static int default_target(cli *c, cli_targets *out)
{
  kiln_nvrtc_info *info = kiln__cli_alloc(c, MOST_NVRTC, sizeof *info);
  size_t n = 0;
  char text[24];

  out->n = 1;
  out->list = kiln__cli_alloc(c, 1, sizeof *out->list);
  if (kiln_runtime_nvrtc(c->rt, info, MOST_NVRTC, &n) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (device_target(c, info, n < MOST_NVRTC ? n : MOST_NVRTC, out->list))
    return CLI_OK;
  if (info->n_archs == 0) {
    kiln__cli_message(c, "name a target with --arch",
                      "no GPU found, and NVRTC %s does not list its targets",
                      kiln__cli_version(c, info->version));
    return CLI_FAILED;
  }
  out->list->cc = info->archs[info->n_archs - 1];
  kiln__cli_message(
      c, NULL,
      "no GPU found, so this compiles for %s, the newest target of "
      "NVRTC %s; choose another with --arch",
      kiln_target_text(out->list, text), kiln__cli_version(c, info->version));
  return CLI_OK;
}

int kiln__cli_targets(cli *c, const char *text, cli_targets *out)
{
  char *rest, *word;

  *out = (cli_targets){0};
  if (text == NULL)
    return default_target(c, out);
  if (strcmp(text, "all") == 0)
    return all_targets(c, out);
  rest = kiln__cli_text(c, "%s", text);
  out->list = kiln__cli_alloc(c, strlen(text), sizeof *out->list);
  while ((word = kiln__cli_word(&rest, ",")) != NULL)
    if (kiln_target_parse(&out->list[out->n++], word) != KILN_OK)
      return kiln__cli_usage(c,
                             "--arch \"%s\": write sm_90, 9.0, 90a, "
                             "compute_75 or all",
                             word);
  if (out->n == 0)
    return kiln__cli_usage(c, "--arch needs a value");
  return CLI_OK;
}
