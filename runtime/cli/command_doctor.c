/* command_doctor.c -- `kiln doctor`: what was found, what would be chosen, what to
 * mend. */
#include "doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void help(void)
{
  fputs("usage: kiln doctor [--brief|--json]\n"
        "       kiln doctor --what-if gpu=9.0,driver=12.2,nvrtc=13.0\n\n"
        "Looks at driver, NVRTC, GPUs, cache and tools, compiles and runs a "
        "small\nkernel, and says what is wrong and how to mend it.\n\n"
        "--what-if asks the compatibility ladder about any machine. Keys: gpu "
        "(needed),\ndriver and nvrtc (default: those here; none), nvjitlink, "
        "suffix=a or f, tegra.\n\n"
        "Exit codes: 0 kernels can be compiled here, 1 they cannot (for "
        "--what-if:\nnothing fits), 2 wrong use.\n",
        stdout);
}

/* ---- The ladder --------------------------------------------------------- */

void kiln__cli_ladder_text(cli *c, const kiln_ladder_result *result, int indent)
{
  static const char *const heads[] = {"", "", "", NULL};
  cli_table t;

  kiln__cli_table(&t, c, heads);
  for (int i = 0; i < KILN_RUNG_COUNT; i++) {
    if (i == KILN_RUNG_REFUSE && result->rung != KILN_RUNG_REFUSE)
      continue;
    kiln__cli_cell(&t, "%s", i == (int)result->rung ? "->" : "");
    kiln__cli_cell(&t, "%s", kiln_rung_name((kiln_rung)i));
    kiln__cli_cell(&t, "%s", result->reason[i]);
  }
  kiln__cli_table_print(&t, indent);
}

cJSON *kiln__cli_ladder_json(const kiln_ladder_query *query,
                             const kiln_ladder_result *result)
{
  cJSON *o = cJSON_CreateObject();
  cJSON *reasons = cJSON_CreateObject();
  char text[24];

  cJSON_AddNumberToObject(o, "gpu", query->cc);
  cJSON_AddNumberToObject(o, "driver", query->driver_version);
  cJSON_AddNumberToObject(o, "nvrtc", query->nvrtc_version);
  cJSON_AddNumberToObject(o, "nvjitlink", query->nvjitlink_version);
  cJSON_AddStringToObject(o, "rung", kiln_rung_name(result->rung));
  if (result->rung != KILN_RUNG_REFUSE)
    cJSON_AddStringToObject(o, "target",
                            kiln_target_text(&result->target, text));
  for (int i = 0; i < KILN_RUNG_COUNT; i++)
    cJSON_AddStringToObject(reasons, kiln_rung_name((kiln_rung)i),
                            result->reason[i]);
  cJSON_AddItemToObject(o, "reasons", reasons);
  cJSON_AddStringToObject(o, "hint", result->hint);
  return o;
}

static int parse_key(cli *c, kiln_ladder_query *q, char *word)
{
  char *value = strchr(word, '=');
  kiln_target gpu;

  if (strcmp(word, "tegra") == 0) {
    q->tegra = true;
    return CLI_OK;
  }
  if (value == NULL)
    return kiln__cli_usage(c, "--what-if: \"%s\" has no value", word);
  *value++ = '\0';
  if (strcmp(word, "gpu") == 0) {
    if (kiln_target_parse(&gpu, value) != KILN_OK)
      return kiln__cli_usage(c, "--what-if: gpu=%s is not like 9.0", value);
    q->cc = gpu.cc;
    q->suffix = gpu.suffix != 0 ? gpu.suffix : q->suffix;
    return CLI_OK;
  }
  if (strcmp(word, "suffix") == 0) {
    if (strcmp(value, "a") != 0 && strcmp(value, "f") != 0)
      return kiln__cli_usage(c, "--what-if: suffix is a or f");
    q->suffix = value[0];
    return CLI_OK;
  }
  for (size_t i = 0; i < 3; i++) {
    static const char *const names[] = {"driver", "nvrtc", "nvjitlink"};
    int *const fields[] = {&q->driver_version, &q->nvrtc_version,
                           &q->nvjitlink_version};

    if (strcmp(word, names[i]) != 0)
      continue;
    *fields[i] = 0;
    if (strcmp(value, "none") == 0 ||
        kiln__cli_parse_version(value, 1000, 10, fields[i]))
      return CLI_OK;
    return kiln__cli_usage(c, "--what-if: %s=%s is not like 12.2", word, value);
  }
  return kiln__cli_usage(c,
                         "--what-if knows gpu, driver, nvrtc, nvjitlink, "
                         "suffix and tegra, not \"%s\"",
                         word);
}

static int what_if(cli *c, const char *text, bool json)
{
  kiln_ladder_query q = {.driver_version = -1, .nvrtc_version = -1};
  kiln_ladder_result *result = kiln__cli_alloc(c, 1, sizeof *result);
  kiln_nvrtc_info *nvrtc = kiln__cli_alloc(c, 1, sizeof *nvrtc);
  kiln_driver_info driver;
  char *save = NULL, *copy = kiln__cli_text(c, "%s", text);
  size_t n = 0;

  for (char *word = strtok_r(copy, ",", &save); word != NULL;
       word = strtok_r(NULL, ",", &save))
    if (parse_key(c, &q, word) != CLI_OK)
      return CLI_USAGE;
  if (q.cc == 0)
    return kiln__cli_usage(c, "--what-if needs a GPU: gpu=9.0");
  if (q.driver_version < 0)
    q.driver_version =
        kiln_runtime_driver(c->rt, &driver) == KILN_OK ? driver.version : 0;
  if (q.nvrtc_version < 0)
    q.nvrtc_version =
        kiln_runtime_nvrtc(c->rt, nvrtc, 1, &n) == KILN_OK ? nvrtc->version : 0;
  if (kiln_ladder(&q, result) != KILN_OK)
    return kiln__cli_failure(c, "--what-if");
  if (json) {
    if (kiln__cli_json(c, kiln__cli_ladder_json(&q, result), NULL) != CLI_OK)
      return CLI_FAILED;
  } else {
    char target[24];

    printf("GPU %s, driver %s, NVRTC %s%s%s\n\n", kiln__cli_cc(c, q.cc),
           q.driver_version ? kiln__cli_version(c, q.driver_version) : "none",
           q.nvrtc_version ? kiln__cli_version(c, q.nvrtc_version) : "none",
           q.nvjitlink_version ? ", nvJitLink " : "",
           q.nvjitlink_version ? kiln__cli_version(c, q.nvjitlink_version)
                               : "");
    kiln__cli_ladder_text(c, result, 2);
    if (result->rung == KILN_RUNG_REFUSE)
      printf("\nverdict: nothing fits\nnext: %s\n", result->hint);
    else
      printf("\nverdict: %s, compiled for %s\n", kiln_rung_name(result->rung),
             kiln_target_text(&result->target, target));
  }
  return result->rung == KILN_RUNG_REFUSE ? CLI_FAILED : CLI_OK;
}

/* ---- Text --------------------------------------------------------------- */

static const char *const two_heads[] = {"", "", NULL};

static void row(cli_table *t, const char *label, const char *text)
{
  kiln__cli_cell(t, "%s", label);
  kiln__cli_cell(t, "%s", text);
}

/* The places tried have a table of their own. */
static const char *without_trail(const doctor *d, const char *text)
{
  const char *trail = strstr(text, ": tried ");

  return trail == NULL
             ? text
             : kiln__cli_text(d->c, "%.*s", (int)(trail - text), text);
}

static const char *driver_line(const doctor *d)
{
  if (d->driver_status != KILN_OK && d->driver_status != KILN_ENODEVICE)
    return without_trail(d, d->driver_text);
  return kiln__cli_text(d->c, "%s, for CUDA %s", d->driver.path,
                        kiln__cli_version(d->c, d->driver.version));
}

static const char *gpu_line(const doctor *d, const doctor_device *gpu)
{
  char target[24];

  if (gpu->cc == 0)
    return gpu->run_text;
  return kiln__cli_text(
      d->c, "%s, compute capability %s, %s; %s%s", gpu->info.name,
      kiln__cli_cc(d->c, gpu->cc),
      gpu->ladder.rung == KILN_RUNG_REFUSE
          ? "nothing fits it"
          : kiln__cli_text(d->c, "gets %s (%s)",
                           kiln_target_text(&gpu->ladder.target, target),
                           kiln_rung_name(gpu->ladder.rung)),
      gpu->run == KILN_OK ? "ran a small kernel" : "does not run one: ",
      gpu->run_text);
}

static void print_nvrtc(const doctor *d)
{
  static const char *const heads[] = {"version", "file", "builtins",
                                      "compiles for", NULL};
  cli *c = d->c;
  cli_table t;

  puts("\nNVRTC, the compiler");
  if (d->n_nvrtc == 0) {
    printf("  none: %s\n", without_trail(d, d->nvrtc_text));
    return;
  }
  kiln__cli_table(&t, c, heads);
  for (size_t i = 0; i < d->n_nvrtc; i++) {
    const doctor_nvrtc *n = &d->nvrtc[i];
    const char *builtins = "not beside it";

    if (n->builtins_version != 0)
      builtins = kiln__cli_text(
          c, "%s%s", kiln__cli_version(c, n->builtins_version),
          n->builtins_version == n->info.version ? "" : ", another version");
    kiln__cli_cell(&t, "%s", kiln__cli_version(c, n->info.version));
    kiln__cli_cell(&t, "%s", n->info.path);
    kiln__cli_cell(&t, "%s", builtins);
    kiln__cli_cell(&t, "%s",
                   kiln__cli_cc_list(c, n->info.archs, n->info.n_archs));
  }
  kiln__cli_table_print(&t, 2);
  if (d->compile_status == KILN_OK) {
    char target[24];

    printf("  a small program compiles for %s in %.1f ms\n",
           kiln_target_text(&d->compile_target, target), d->compile_ms);
  } else {
    printf("  a small program does not compile: %s\n", d->compile_text);
  }
}

static void print_gpus(const doctor *d)
{
  puts("\nGPUs");
  if (d->n_devices == 0)
    puts("  none");
  for (size_t i = 0; i < d->n_devices; i++) {
    const doctor_device *gpu = &d->devices[i];

    printf("  %d  %s\n", gpu->info.ordinal, gpu_line(d, gpu));
    if (gpu->query.nvrtc_version != 0)
      printf("     NVRTC %s %s %s; the driver is for CUDA %s\n",
             kiln__cli_version(d->c, gpu->query.nvrtc_version),
             gpu->supported ? "knows" : "does not know",
             kiln__cli_cc(d->c, gpu->cc),
             kiln__cli_version(d->c, d->driver.version));
    if (gpu->cc != 0)
      kiln__cli_ladder_text(d->c, &gpu->ladder, 5);
  }
}

/* Without a GPU the ladder still answers for the newest target. */
static void print_no_gpu_ladder(const doctor *d)
{
  kiln_ladder_result *result;
  kiln_ladder_query q;

  if (d->n_devices > 0 || d->n_nvrtc == 0 || d->nvrtc[0].info.n_archs == 0)
    return;
  q = (kiln_ladder_query){
      .cc = d->nvrtc[0].info.archs[d->nvrtc[0].info.n_archs - 1],
      .nvrtc_version = d->nvrtc[0].info.version,
      .archs = d->nvrtc[0].info.archs,
      .n_archs = d->nvrtc[0].info.n_archs};
  result = kiln__cli_alloc(d->c, 1, sizeof *result);
  if (kiln_ladder(&q, result) != KILN_OK)
    return;
  printf("\nLadder for a GPU %s (others: kiln doctor --what-if gpu=9.0)\n",
         kiln__cli_cc(d->c, q.cc));
  kiln__cli_ladder_text(d->c, result, 2);
}

static void add_files(const doctor *d, cli_table *t)
{
  cli *c = d->c;

  row(t, "cache",
      d->cache.usable ? kiln__cli_text(c, "%s, %" PRIu64 " entries, %s of %s",
                                       d->cache.path, d->cache.entries,
                                       kiln__cli_bytes(c, d->cache.bytes),
                                       kiln__cli_bytes(c, d->cache.cap))
                      : kiln__cli_text(c, "%s%snot used: %s", d->cache.path,
                                       d->cache.path[0] != '\0' ? ", " : "",
                                       d->cache.reason));
  for (size_t i = 0; i < d->n_packs; i++)
    row(t, "pack",
        kiln__cli_text(c, "%s, %s", d->packs[i].path,
                       d->packs[i].reason != NULL
                           ? d->packs[i].reason
                           : kiln__cli_bytes(c, d->packs[i].size)));
  if (d->n_packs == 0)
    row(t, "packs", "none (KILN_PACKS)");
  row(t, "SASS tool",
      d->disassembler != NULL ? d->disassembler
                              : "no nvdisasm or cuobjdump; only needed for "
                                "kiln compile --emit sass");
}

/* dlopen repeats the name that stands in the column before. */
static const char *why_not(const kiln_trail_step *step)
{
  const char *reason = step->found || step->reason == NULL ? "" : step->reason;
  const size_t n = step->where == NULL ? 0 : strlen(step->where);

  if (n > 0 && strncmp(reason, step->where, n) == 0 &&
      strncmp(reason + n, ": ", 2) == 0)
    return reason + n + 2;
  return reason;
}

static void add_step(void *user, const kiln_trail_step *step)
{
  cli_table *t = user;

  kiln__cli_cell(t, "%s", step->what);
  kiln__cli_cell(t, "%s", step->found ? "yes" : "no");
  kiln__cli_cell(t, "%s", step->how != NULL ? step->how : "");
  kiln__cli_cell(t, "%s", step->where != NULL ? step->where : "");
  kiln__cli_cell(t, "%s", why_not(step));
}

static void print_trail(const doctor *d)
{
  static const char *const heads[] = {"library", "found",   "by",
                                      "place",   "why not", NULL};
  cli_table t;

  kiln__cli_table(&t, d->c, heads);
  if (kiln_runtime_trail(d->c->rt, add_step, &t) != KILN_OK || t.n == 0)
    return;
  puts("\nPlaces tried, in order");
  kiln__cli_table_print(&t, 2);
}

static void print_problems(const doctor *d)
{
  if (d->n_problems > 0)
    printf("\nTo know\n");
  for (size_t i = 0; i < d->n_problems; i++) {
    printf("  %zu. %s\n", i + 1, d->problems[i].what);
    if (d->problems[i].mend[0] != '\0')
      printf("     mend: %s\n", d->problems[i].mend);
  }
}

static void print_verdict(const doctor *d)
{
  printf("verdict: %s\nnext: %s\n", d->verdict, d->next);
}

void kiln__cli_doctor_text(const doctor *d)
{
  cli_table t;

  puts("kiln " KILN_VERSION_TEXT);
  puts("\nDriver");
  printf("  %s\n", driver_line(d));
  if (d->kernel_driver != NULL)
    printf("  kernel: %s\n", d->kernel_driver);
  print_nvrtc(d);
  print_gpus(d);
  print_no_gpu_ladder(d);
  puts("\nFiles");
  kiln__cli_table(&t, d->c, two_heads);
  add_files(d, &t);
  kiln__cli_table_print(&t, 2);
  print_trail(d);
  print_problems(d);
  putchar('\n');
  print_verdict(d);
}

void kiln__cli_doctor_brief(const doctor *d)
{
  cli *c = d->c;
  cli_table t;

  kiln__cli_table(&t, c, two_heads);
  row(&t, "driver", driver_line(d));
  for (size_t i = 0; i < d->n_devices; i++)
    row(&t, kiln__cli_text(c, "GPU %d", d->devices[i].info.ordinal),
        gpu_line(d, &d->devices[i]));
  for (size_t i = 0; i < d->n_nvrtc; i++)
    row(&t, "NVRTC",
        kiln__cli_text(c, "%s, %s",
                       kiln__cli_version(c, d->nvrtc[i].info.version),
                       d->nvrtc[i].info.path));
  if (d->n_nvrtc == 0)
    row(&t, "NVRTC", without_trail(d, d->nvrtc_text));
  add_files(d, &t);
  row(&t, "verdict", d->verdict);
  row(&t, "next", d->next);
  kiln__cli_table_print(&t, 0);
}

/* ---- JSON --------------------------------------------------------------- */

static cJSON *nvrtc_json(const doctor *d)
{
  cJSON *list = cJSON_CreateArray();

  for (size_t i = 0; i < d->n_nvrtc; i++) {
    const doctor_nvrtc *n = &d->nvrtc[i];
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "version", n->info.version);
    cJSON_AddStringToObject(o, "path", n->info.path);
    kiln__cli_json_flag(o, "loaded", n->info.loaded);
    cJSON_AddNumberToObject(o, "builtins_version", n->builtins_version);
    cJSON_AddStringToObject(o, "builtins", n->builtins);
    cJSON_AddItemToObject(
        o, "archs", cJSON_CreateIntArray(n->info.archs, (int)n->info.n_archs));
    cJSON_AddItemToArray(list, o);
  }
  return list;
}

static cJSON *gpus_json(const doctor *d)
{
  cJSON *list = cJSON_CreateArray();

  for (size_t i = 0; i < d->n_devices; i++) {
    const doctor_device *gpu = &d->devices[i];
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "ordinal", gpu->info.ordinal);
    cJSON_AddStringToObject(o, "name", gpu->info.name);
    cJSON_AddNumberToObject(o, "cc", gpu->cc);
    kiln__cli_json_flag(o, "known_to_nvrtc", gpu->supported);
    cJSON_AddStringToObject(o, "run", kiln_status_name(gpu->run));
    cJSON_AddStringToObject(o, "run_reason", gpu->run_text);
    if (gpu->cc != 0)
      cJSON_AddItemToObject(o, "ladder",
                            kiln__cli_ladder_json(&gpu->query, &gpu->ladder));
    cJSON_AddItemToArray(list, o);
  }
  return list;
}

static void add_step_json(void *user, const kiln_trail_step *step)
{
  cJSON *list = user;
  cJSON *o = cJSON_CreateObject();

  cJSON_AddStringToObject(o, "what", step->what);
  cJSON_AddStringToObject(o, "how", step->how != NULL ? step->how : "");
  cJSON_AddStringToObject(o, "where", step->where != NULL ? step->where : "");
  kiln__cli_json_flag(o, "found", step->found);
  cJSON_AddStringToObject(o, "reason",
                          step->reason != NULL ? step->reason : "");
  cJSON_AddItemToArray(list, o);
}

static cJSON *files_json(const doctor *d)
{
  cJSON *o = cJSON_CreateObject();
  cJSON *packs = cJSON_CreateArray();

  cJSON_AddStringToObject(o, "path", d->cache.path);
  kiln__cli_json_flag(o, "usable", d->cache.usable);
  cJSON_AddStringToObject(o, "reason", d->cache.usable ? "" : d->cache.reason);
  cJSON_AddNumberToObject(o, "entries", (double)d->cache.entries);
  cJSON_AddNumberToObject(o, "bytes", (double)d->cache.bytes);
  cJSON_AddNumberToObject(o, "cap", (double)d->cache.cap);
  for (size_t i = 0; i < d->n_packs; i++) {
    cJSON *p = cJSON_CreateObject();

    cJSON_AddStringToObject(p, "path", d->packs[i].path);
    cJSON_AddNumberToObject(p, "bytes", (double)d->packs[i].size);
    cJSON_AddStringToObject(
        p, "reason", d->packs[i].reason != NULL ? d->packs[i].reason : "");
    cJSON_AddItemToArray(packs, p);
  }
  cJSON_AddItemToObject(o, "packs", packs);
  return o;
}

int kiln__cli_doctor_json(const doctor *d)
{
  cJSON *root = cJSON_CreateObject();
  cJSON *driver = cJSON_AddObjectToObject(root, "driver");
  cJSON *compile, *trail, *problems;
  char target[24];

  cJSON_AddStringToObject(root, "kiln", KILN_VERSION_TEXT);
  cJSON_AddStringToObject(driver, "status", kiln_status_name(d->driver_status));
  cJSON_AddStringToObject(driver, "path", d->driver.path);
  cJSON_AddNumberToObject(driver, "version", d->driver.version);
  cJSON_AddStringToObject(driver, "reason", d->driver_text);
  kiln__cli_json_flag(driver, "hardware", d->has_hardware);
  cJSON_AddItemToObject(root, "nvrtc", nvrtc_json(d));
  compile = cJSON_AddObjectToObject(root, "compile");
  cJSON_AddStringToObject(compile, "status",
                          kiln_status_name(d->compile_status));
  if (d->compile_target.cc != 0)
    cJSON_AddStringToObject(compile, "target",
                            kiln_target_text(&d->compile_target, target));
  cJSON_AddNumberToObject(compile, "ms", d->compile_ms);
  cJSON_AddItemToObject(root, "gpus", gpus_json(d));
  cJSON_AddItemToObject(root, "cache", files_json(d));
  cJSON_AddStringToObject(root, "disassembler",
                          d->disassembler != NULL ? d->disassembler : "");
  trail = cJSON_AddArrayToObject(root, "trail");
  kiln_runtime_trail(d->c->rt, add_step_json, trail);
  problems = cJSON_AddArrayToObject(root, "problems");
  for (size_t i = 0; i < d->n_problems; i++) {
    cJSON *p = cJSON_CreateObject();

    cJSON_AddStringToObject(p, "what", d->problems[i].what);
    cJSON_AddStringToObject(p, "mend", d->problems[i].mend);
    cJSON_AddItemToArray(problems, p);
  }
  cJSON_AddStringToObject(root, "verdict", d->verdict);
  cJSON_AddStringToObject(root, "next", d->next);
  return kiln__cli_json(d->c, root, NULL);
}

/* ---- The command -------------------------------------------------------- */

int kiln__cli_doctor(cli *c, int argc, char **argv)
{
  static const struct option options[] = {
      {"json", no_argument, NULL, 'j'},
      {"brief", no_argument, NULL, 'b'},
      {"what-if", required_argument, NULL, 'w'},
      {"help", no_argument, NULL, 'h'},
      {0}};
  const char *question = NULL;
  bool json = false, brief = false;
  doctor *d;
  int opt;

  while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
    if (opt == 'j') {
      json = true;
    } else if (opt == 'b') {
      brief = true;
    } else if (opt == 'w') {
      question = optarg;
    } else if (opt == 'h') {
      help();
      return CLI_OK;
    } else {
      return kiln__cli_usage(c, NULL);
    }
  }
  if (optind < argc)
    return kiln__cli_usage(c, "doctor takes no \"%s\"", argv[optind]);
  if (question != NULL)
    return what_if(c, question, json);
  d = kiln__cli_alloc(c, 1, sizeof *d);
  d->c = c;
  kiln__cli_examine(d);
  if (json)
    return kiln__cli_doctor_json(d) == CLI_OK ? d->rc : CLI_FAILED;
  if (brief)
    kiln__cli_doctor_brief(d);
  else
    kiln__cli_doctor_text(d);
  return d->rc;
}
