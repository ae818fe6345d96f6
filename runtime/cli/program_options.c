/* program_options.c -- programs and targets as the command line names them. */
#include "tool/cli.h"

#include <stdlib.h>
#include <string.h>

const char kiln__cli_program_help[] =
    "  -D NAME[=VALUE]     define a macro\n"
    "  -I DIR              search a folder for headers\n"
    "  --trait NAME=VALUE  override a trait, e.g. KILN_HAS_SHFL=0\n"
    "  --name EXPRESSION   instantiate a template: 'scale<float>'\n"
    "  --option WORD       hand an option to NVRTC\n"
    "  --lineinfo          line numbers for profilers\n"
    "  --debug             code for a debugger, not optimised\n"
    "  --fast-math         faster, less exact arithmetic\n"
    "  --fast-compile      compile sooner, optimise less (NVRTC 12.9)\n"
    "  --minimal           the same: no textures, no CUDA runtime API\n"
    "  --maxrregcount N    most registers a thread\n"
    "  --fail-on-spill     fail if a kernel spills registers\n"
    "  --no-cache          neither read nor write the cache\n"
    "  --refresh           compile again and replace the cached entry\n";

void kiln__cli_program_init(cli_program *p, cli *c, int argc)
{
  const size_t room = (size_t)argc + 1;

  *p = (cli_program){0};
  p->defines = kiln__cli_alloc(c, room, sizeof *p->defines);
  p->traits = kiln__cli_alloc(c, room, sizeof *p->traits);
  p->names = kiln__cli_alloc(c, room, sizeof *p->names);
  /* "-I" and its folder take two words; one more pair for the file's own. */
  p->options = kiln__cli_alloc(c, 2 * room + 2, sizeof *p->options);
  p->desc.defines = p->defines;
  p->desc.traits = p->traits;
  p->desc.names = p->names;
  p->desc.options = p->options;
}

static int take_registers(cli_program *p, const cli *c, const char *arg)
{
  char *end;
  const long n = strtol(arg, &end, 10);

  if (end == arg || *end != '\0' || n < 1 || n > 255)
    return kiln__cli_usage(c, "--maxrregcount is 1 to 255, not \"%s\"", arg);
  p->desc.max_registers = (int)n;
  return CLI_OK;
}

int kiln__cli_program_option(cli_program *p, const cli *c, int opt,
                             const char *arg)
{
  kiln_program_desc *d = &p->desc;

  switch (opt) {
  case 'D':
    p->defines[d->n_defines++] = arg;
    return CLI_OK;
  case 'I':
    p->options[d->n_options++] = "-I";
    p->options[d->n_options++] = arg;
    return CLI_OK;
  case CLI_OPT_TRAIT:
    p->traits[d->n_traits++] = arg;
    return CLI_OK;
  case CLI_OPT_NAME:
    p->names[d->n_names++] = arg;
    return CLI_OK;
  case CLI_OPT_OPTION:
    p->options[d->n_options++] = arg;
    return CLI_OK;
  case CLI_OPT_LINEINFO:
    d->lineinfo = true;
    return CLI_OK;
  case CLI_OPT_DEBUG:
    d->debug = true;
    return CLI_OK;
  case CLI_OPT_FAST_MATH:
    d->fast_math = true;
    return CLI_OK;
  case CLI_OPT_FAST_COMPILE:
    d->fast_compile = true;
    return CLI_OK;
  case CLI_OPT_MINIMAL:
    d->minimal = true;
    return CLI_OK;
  case CLI_OPT_MAXRREGCOUNT:
    return take_registers(p, c, arg);
  case CLI_OPT_FAIL_ON_SPILL:
    d->fail_on_spill = true;
    return CLI_OK;
  case CLI_OPT_NO_CACHE:
    d->no_cache = true;
    return CLI_OK;
  case CLI_OPT_REFRESH:
    d->refresh = true;
    return CLI_OK;
  default:
    return -1;
  }
}

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
  kiln__cli_say(c, "kiln compile --list", "no embedded program \"%s\"", name);
  return CLI_FAILED;
}

int kiln__cli_program_open(cli_program *p, cli *c, const char *what)
{
  const char *slash;
  char *source;

  if (strncmp(what, "builtin:", 8) == 0)
    return open_builtin(p, c, what + 8);
  source = kiln__cli_read(c, what, &p->desc.source_size);
  if (source == NULL)
    return CLI_FAILED;
  p->label = strcmp(what, "-") == 0 ? "stdin" : what;
  p->desc.source = source;
  p->desc.name = p->label;
  /* A quoted include means "beside this file" to every C programmer. */
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

/* The target that the ladder takes for GPU 0; false where there is none. */
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
    kiln__cli_say(c, "name one with --arch", "which GPU to compile for?");
    return CLI_FAILED;
  }
  out->list->cc = info->archs[info->n_archs - 1];
  kiln__cli_say(c, NULL,
                "no GPU here: compiling for %s, the newest that NVRTC %s "
                "knows; --arch chooses another",
                kiln_target_text(out->list, text),
                kiln__cli_version(c, info->version));
  return CLI_OK;
}

int kiln__cli_targets(cli *c, const char *text, cli_targets *out)
{
  char *copy, *save = NULL;

  *out = (cli_targets){0};
  if (text == NULL)
    return default_target(c, out);
  if (strcmp(text, "all") == 0)
    return all_targets(c, out);
  copy = kiln__cli_text(c, "%s", text);
  out->list = kiln__cli_alloc(c, strlen(text), sizeof *out->list);
  for (char *word = strtok_r(copy, ",", &save); word != NULL;
       word = strtok_r(NULL, ",", &save))
    if (kiln_target_parse(&out->list[out->n++], word) != KILN_OK)
      return kiln__cli_usage(c,
                             "--arch \"%s\": write sm_90, 9.0, 90a, "
                             "compute_75 or all",
                             word);
  if (out->n == 0)
    return kiln__cli_usage(c, "--arch needs a value");
  return CLI_OK;
}

const char *kiln__cli_join(cli *c, const char *list, const char *more)
{
  return list == NULL ? more : kiln__cli_text(c, "%s,%s", list, more);
}
