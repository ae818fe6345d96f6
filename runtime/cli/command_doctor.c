/* command_doctor.c -- `kiln doctor`, which prints the facts that
 * doctor_examine.c found, as text, in brief, or as JSON. With --what-if, the
 * command prints how the library would get code for the GPU of another
 * machine. */
#include "cli/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- What-if mode -------------------------------------------------------- */

static void print_ladder(cli *c, const kiln_ladder_result *result, int indent)
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

static cJSON *ladder_json(const kiln_ladder_query *query,
                          const kiln_ladder_result *result)
{
  cJSON *o = cJSON_CreateObject(), *reasons;
  char text[24];

  JSON_NUMBER(o, "gpu", query->cc);
  JSON_NUMBER(o, "driver", query->driver_version);
  JSON_NUMBER(o, "nvrtc", query->nvrtc_version);
  JSON_NUMBER(o, "nvjitlink", query->nvjitlink_version);
  JSON_TEXT(o, "rung", kiln_rung_name(result->rung));
  if (result->rung != KILN_RUNG_REFUSE)
    JSON_TEXT(o, "target", kiln_target_text(&result->target, text));
  reasons = cJSON_AddObjectToObject(o, "reasons");
  for (int i = 0; i < KILN_RUNG_COUNT; i++)
    JSON_TEXT(reasons, kiln_rung_name((kiln_rung)i), result->reason[i]);
  JSON_TEXT(o, "hint", result->hint);
  return o;
}

/* Applies one KEY=VALUE of the option --what-if. */
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
                         "--what-if takes gpu, driver, nvrtc, nvjitlink, "
                         "suffix and tegra, not \"%s\"",
                         word);
}

/* Prints what the compatibility ladder chooses on the machine that the text of
 * --what-if describes. */
static int what_if(cli *c, const char *text, bool json)
{
  kiln_ladder_query q = {.driver_version = -1, .nvrtc_version = -1};
  kiln_ladder_result *result = kiln__cli_alloc(c, 1, sizeof *result);
  kiln_nvrtc_info *nvrtc = kiln__cli_alloc(c, 1, sizeof *nvrtc);
  kiln_driver_info driver;
  char *word, *rest = kiln__cli_text(c, "%s", text);
  size_t n = 0;

  while ((word = kiln__cli_word(&rest, ",")) != NULL)
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
    if (kiln__cli_json(c, ladder_json(&q, result), NULL) != CLI_OK)
      return CLI_FAILED;
  } else {
    char target[24];

    printf("GPU %s, driver %s, NVRTC %s%s%s\n\n", kiln__cli_cc(c, q.cc),
           q.driver_version ? kiln__cli_version(c, q.driver_version) : "none",
           q.nvrtc_version ? kiln__cli_version(c, q.nvrtc_version) : "none",
           q.nvjitlink_version ? ", nvJitLink " : "",
           q.nvjitlink_version ? kiln__cli_version(c, q.nvjitlink_version)
                               : "");
    print_ladder(c, result, 2);
    if (result->rung == KILN_RUNG_REFUSE)
      printf("\nverdict: nothing fits\nnext: %s\n", result->hint);
    else
      printf("\nverdict: %s, compiled for %s\n", kiln_rung_name(result->rung),
             kiln_target_text(&result->target, target));
  }
  return result->rung == KILN_RUNG_REFUSE ? CLI_FAILED : CLI_OK;
}

/* ---- Text --------------------------------------------------------------- */

/* Returns the message without the list of files tried, which is printed as a
 * separate table. */
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
             gpu->supported ? "compiles for" : "does not compile for",
             kiln__cli_cc(d->c, gpu->cc),
             kiln__cli_version(d->c, d->driver.version));
    if (gpu->cc != 0)
      print_ladder(d->c, &gpu->ladder, 5);
  }
}

/* Prints the choices of the compatibility ladder for the newest target of
 * NVRTC, for a machine without a GPU. */
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
  print_ladder(d->c, result, 2);
}

/* NCCL writes version 2.27.3 as 22703. */
static const char *nccl_line(const doctor *d)
{
  const int version = d->nccl.version;

  if (version == 0)
    return "not found (2.18 or later, KILN_NCCL); only groups of ranks on "
           "several "
           "GPUs need it";
  return kiln__cli_text(d->c, "%d.%d.%d, %s", version / 10000,
                        version / 100 % 100, version % 100, d->nccl.path);
}

static void add_files(const doctor *d, cli_table *t)
{
  cli *c = d->c;

  if (d->cache.usable)
    kiln__cli_row(t, "cache", "%s, %" PRIu64 " entries, %s of %s",
                  d->cache.path, d->cache.entries,
                  kiln__cli_bytes(c, d->cache.bytes),
                  kiln__cli_bytes(c, d->cache.cap));
  else
    kiln__cli_row(t, "cache", "%s%snot used: %s", d->cache.path,
                  d->cache.path[0] != '\0' ? ", " : "", d->cache.reason);
  for (size_t i = 0; i < d->n_packs; i++)
    kiln__cli_row(t, "pack", "%s, %s", d->packs[i].path,
                  d->packs[i].reason != NULL
                      ? d->packs[i].reason
                      : kiln__cli_bytes(c, d->packs[i].size));
  if (d->n_packs == 0)
    kiln__cli_row(t, "packs", "none (KILN_PACKS)");
  kiln__cli_row(t, "SASS tool", "%s",
                d->disassembler != NULL
                    ? d->disassembler
                    : "no nvdisasm, which shows machine code as text; get it: "
                      "pip install nvidia-cuda-nvdisasm");
  kiln__cli_row(t, "CUPTI", "%s",
                d->cupti[0] != '\0'
                    ? d->cupti
                    : "not found; only kiln profile on a GPU needs it");
  kiln__cli_row(t, "NCCL", "%s", nccl_line(d));
}

/* Returns the reason why a library file was not used. The message of dlopen()
 * starts with the path. The preceding column shows the path, so it is left
 * out. */
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

/* Adds the places at which NCCL was not found: a list of "place: reason". */
static void add_nccl_steps(const doctor *d, cli_table *t)
{
  char *rest = kiln__cli_text(d->c, "%s", d->nccl.tried), *step;

  while ((step = kiln__cli_word(&rest, ";")) != NULL) {
    char *const colon = strstr(step, ": ");

    if (colon == NULL)
      continue;
    *colon = '\0';
    step += strspn(step, " ");
    kiln__cli_cell(t, "libnccl");
    kiln__cli_cell(t, "no");
    kiln__cli_cell(t, "%s", step[0] == '/' ? "place" : "loader");
    kiln__cli_cell(t, "%s", step);
    kiln__cli_cell(t, "%s", colon + 2);
  }
}

static void print_trail(const doctor *d)
{
  static const char *const heads[] = {"library", "found",   "by",
                                      "place",   "why not", NULL};
  cli_table t;

  kiln__cli_table(&t, d->c, heads);
  if (kiln_runtime_trail(d->c->rt, add_step, &t) != KILN_OK)
    return;
  add_nccl_steps(d, &t);
  if (t.n == 0)
    return;
  puts("\nPlaces tried, in order");
  kiln__cli_table_print(&t, 2);
}

static void print_problems(const doctor *d)
{
  if (d->n_problems > 0)
    printf("\nProblems\n");
  for (size_t i = 0; i < d->n_problems; i++) {
    printf("  %zu. %s\n", i + 1, d->problems[i].what);
    if (d->problems[i].fix[0] != '\0')
      printf("     fix: %s\n", d->problems[i].fix);
  }
}

static void print_verdict(const doctor *d)
{
  printf("verdict: %s\nnext: %s\n", d->verdict, d->next);
}

static void print_all(const doctor *d)
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
  kiln__cli_sheet(&t, d->c);
  add_files(d, &t);
  kiln__cli_table_print(&t, 2);
  print_trail(d);
  print_problems(d);
  putchar('\n');
  print_verdict(d);
}

static void print_brief(const doctor *d)
{
  cli *c = d->c;
  cli_table t;

  kiln__cli_sheet(&t, c);
  kiln__cli_row(&t, "driver", "%s", driver_line(d));
  for (size_t i = 0; i < d->n_devices; i++)
    kiln__cli_row(&t, kiln__cli_text(c, "GPU %d", d->devices[i].info.ordinal),
                  "%s", gpu_line(d, &d->devices[i]));
  for (size_t i = 0; i < d->n_nvrtc; i++)
    kiln__cli_row(&t, "NVRTC", "%s, %s",
                  kiln__cli_version(c, d->nvrtc[i].info.version),
                  d->nvrtc[i].info.path);
  if (d->n_nvrtc == 0)
    kiln__cli_row(&t, "NVRTC", "%s", without_trail(d, d->nvrtc_text));
  add_files(d, &t);
  kiln__cli_row(&t, "verdict", "%s", d->verdict);
  kiln__cli_row(&t, "next", "%s", d->next);
  kiln__cli_table_print(&t, 0);
}

/* ---- JSON --------------------------------------------------------------- */

static void add_nvrtc_json(const doctor *d, cJSON *list)
{
  for (size_t i = 0; i < d->n_nvrtc; i++) {
    const doctor_nvrtc *n = &d->nvrtc[i];
    cJSON *o = kiln__cli_json_item(list);

    JSON_NUMBER(o, "version", n->info.version);
    JSON_TEXT(o, "path", n->info.path);
    JSON_FLAG(o, "loaded", n->info.loaded);
    JSON_NUMBER(o, "builtins_version", n->builtins_version);
    JSON_TEXT(o, "builtins", n->builtins);
    cJSON_AddItemToObject(
        o, "archs", cJSON_CreateIntArray(n->info.archs, (int)n->info.n_archs));
  }
}

static void add_gpus_json(const doctor *d, cJSON *list)
{
  for (size_t i = 0; i < d->n_devices; i++) {
    const doctor_device *gpu = &d->devices[i];
    cJSON *o = kiln__cli_json_item(list);

    JSON_NUMBER(o, "ordinal", gpu->info.ordinal);
    JSON_TEXT(o, "name", gpu->info.name);
    JSON_NUMBER(o, "cc", gpu->cc);
    JSON_FLAG(o, "known_to_nvrtc", gpu->supported);
    JSON_TEXT(o, "run", kiln_status_name(gpu->run));
    JSON_TEXT(o, "run_reason", gpu->run_text);
    if (gpu->cc != 0)
      cJSON_AddItemToObject(o, "ladder",
                            ladder_json(&gpu->query, &gpu->ladder));
  }
}

static void add_step_json(void *user, const kiln_trail_step *step)
{
  cJSON *o = kiln__cli_json_item(user);

  JSON_TEXT(o, "what", step->what);
  JSON_TEXT(o, "how", step->how != NULL ? step->how : "");
  JSON_TEXT(o, "where", step->where != NULL ? step->where : "");
  JSON_FLAG(o, "found", step->found);
  JSON_TEXT(o, "reason", step->reason != NULL ? step->reason : "");
}

static cJSON *files_json(const doctor *d)
{
  cJSON *o = kiln__cli_cache_json(&d->cache);
  cJSON *packs = cJSON_AddArrayToObject(o, "packs");

  for (size_t i = 0; i < d->n_packs; i++) {
    cJSON *p = kiln__cli_json_item(packs);

    JSON_TEXT(p, "path", d->packs[i].path);
    JSON_NUMBER(p, "bytes", d->packs[i].size);
    JSON_TEXT(p, "reason",
              d->packs[i].reason != NULL ? d->packs[i].reason : "");
  }
  return o;
}

static int print_json(const doctor *d)
{
  cJSON *root = cJSON_CreateObject();
  cJSON *driver = cJSON_AddObjectToObject(root, "driver");
  cJSON *compile, *problems, *nccl;
  char target[24];

  JSON_TEXT(root, "kiln", KILN_VERSION_TEXT);
  JSON_TEXT(driver, "status", kiln_status_name(d->driver_status));
  JSON_TEXT(driver, "path", d->driver.path);
  JSON_NUMBER(driver, "version", d->driver.version);
  JSON_TEXT(driver, "reason", d->driver_text);
  JSON_FLAG(driver, "hardware", d->has_hardware);
  add_nvrtc_json(d, cJSON_AddArrayToObject(root, "nvrtc"));
  compile = cJSON_AddObjectToObject(root, "compile");
  JSON_TEXT(compile, "status", kiln_status_name(d->compile_status));
  if (d->compile_target.cc != 0)
    JSON_TEXT(compile, "target", kiln_target_text(&d->compile_target, target));
  JSON_NUMBER(compile, "ms", d->compile_ms);
  add_gpus_json(d, cJSON_AddArrayToObject(root, "gpus"));
  cJSON_AddItemToObject(root, "cache", files_json(d));
  JSON_TEXT(root, "disassembler",
            d->disassembler != NULL ? d->disassembler : "");
  JSON_TEXT(root, "cupti", d->cupti);
  nccl = cJSON_AddObjectToObject(root, "nccl");
  JSON_NUMBER(nccl, "version", d->nccl.version);
  JSON_TEXT(nccl, "path", d->nccl.path);
  JSON_TEXT(nccl, "tried", d->nccl.tried);
  kiln_runtime_trail(d->c->rt, add_step_json,
                     cJSON_AddArrayToObject(root, "trail"));
  problems = cJSON_AddArrayToObject(root, "problems");
  for (size_t i = 0; i < d->n_problems; i++) {
    cJSON *p = kiln__cli_json_item(problems);

    JSON_TEXT(p, "what", d->problems[i].what);
    JSON_TEXT(p, "fix", d->problems[i].fix);
  }
  JSON_TEXT(root, "verdict", d->verdict);
  JSON_TEXT(root, "next", d->next);
  return kiln__cli_json(d->c, root, NULL);
}

/* ---- The command -------------------------------------------------------- */

int kiln__cli_doctor(cli *c, int argc, char **argv)
{
  const char *question = NULL;
  bool json = false, brief = false;
  const cli_option options[] = {
      CLI_OPTION_FLAG("brief", &brief, "print a dozen lines"),
      CLI_OPTION_FLAG("json", &json, "print JSON"),
      CLI_OPTION_TEXT("what-if", "LIST", &question,
                      "print what the compatibility ladder chooses on another "
                      "machine. Keys: gpu (needed), driver and nvrtc (none, or "
                      "a version; default: those of this machine), nvjitlink, "
                      "suffix=a or f, tegra"),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln doctor [--brief|--json]\n"
                  "       kiln doctor --what-if LIST [--json]\n",
      .about = "Looks for the driver, NVRTC, GPUs, the cache, packs and tools, "
               "compiles and runs a small kernel, and prints what is wrong and "
               "how to fix it.",
      .options = options,
      .example = "kiln doctor --what-if gpu=9.0,driver=12.2,nvrtc=13.0",
      .exit_codes =
          "0 kernels can be compiled or run here, 1 they cannot (with "
          "--what-if: nothing fits), 2 wrong use."};
  cli_words words;
  doctor *d;
  const int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  if (question != NULL)
    return what_if(c, question, json);
  d = kiln__cli_alloc(c, 1, sizeof *d);
  d->c = c;
  kiln__cli_examine(d);
  if (json)
    return print_json(d) == CLI_OK ? d->rc : CLI_FAILED;
  if (brief)
    print_brief(d);
  else
    print_all(d);
  return d->rc;
}
