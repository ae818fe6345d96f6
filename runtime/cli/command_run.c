/* command_run.c -- `kiln run`, which launches any kernel, and `kiln check`,
 * which launches a kernel with all checks of the CPU device enabled. */
#include "cli/command_run.h"

#include "tool/measure.h"
#include "tool/rank_group.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_RUNS = 64,   /* maximum number of launches that one file describes */
  MOST_WORDS = 200, /* maximum number of words per launch */
  REPEATS = 15
};

typedef struct request {
  cli_program program;
  run_spec spec;
  unsigned checks;
  bool checking; /* true if the command is `kiln check` */
  bool counters, time;
  bool grouped; /* --ranks was given */
  run_group group;
  const char *json; /* file that receives the counters, or NULL */
  unsigned print;
  cJSON *launches; /* array for the launches instead of output, or NULL */
} request;

static int take_checks(cli *c, void *to, const char *text)
{
  static const struct {
    const char *name;
    unsigned check;
  } known[] = {{"mem", KILN_CPU_CHECK_MEMORY},
               {"memory", KILN_CPU_CHECK_MEMORY},
               {"race", KILN_CPU_CHECK_RACE},
               {"init", KILN_CPU_CHECK_INIT},
               {"sync", KILN_CPU_CHECK_SYNC},
               {"all", KILN_CPU_CHECK_ALL},
               {"none", 0}};
  unsigned *out = to;
  char *word, *rest = kiln__cli_text(c, "%s", text);

  *out = 0;
  while ((word = kiln__cli_word(&rest, ",+")) != NULL) {
    size_t i = 0;

    while (i < sizeof known / sizeof known[0] &&
           strcmp(known[i].name, word) != 0)
      i++;
    if (i == sizeof known / sizeof known[0])
      return kiln__cli_usage(c,
                             "--check takes mem, race, init, sync and all, "
                             "not \"%s\"",
                             word);
    *out |= known[i].check;
  }
  return CLI_OK;
}

static int take_ranks(cli *c, void *to, const char *text)
{
  request *r = to;
  char *end;
  const unsigned long n = strtoul(text, &end, 10);

  if (end == text || *end != '\0' || n > CLI_MOST_RANKS)
    return kiln__cli_usage(c,
                           "--ranks takes a number from 1 to %d, or 0 under "
                           "mpirun, not \"%s\"",
                           (int)CLI_MOST_RANKS, text);
  r->grouped = true;
  r->group.ranks = (unsigned)n;
  return CLI_OK;
}

static int take_combine(cli *c, void *to, const char *text)
{
  request *r = to;

  r->group.combine = text;
  return kiln__cli_run_operation(text) >= 0
             ? CLI_OK
             : kiln__cli_usage(c,
                               "--combine takes sum, prod, min or max, not "
                               "\"%s\"",
                               text);
}

static int parse(cli *c, request *r, int argc, char **argv, cli_words *words)
{
  const cli_option own[] = {
      CLI_OPTION_NUMBER("print", &r->print, 0, INT_MAX,
                        "elements to print of each array; default 8"),
      CLI_OPTION_FLAG("time", &r->time,
                      "print the median time of 15 launches, by events"),
      CLI_OPTION_TAKEN("check", "LIST", take_checks, &r->checks,
                       "mem, race, init, sync or all, with commas; on the CPU "
                       "device"),
      CLI_OPTION_FLAG("counters", &r->counters,
                      "print divergence, coalescing and bank conflicts per "
                      "source line; on the CPU device"),
      CLI_OPTION_TEXT("json", "FILE", &r->json,
                      "also write the counters to FILE, as JSON"),
      CLI_OPTION_TAKEN(
          "ranks", "N", take_ranks, r,
          "launch on N ranks at once, each on the next GPU; under mpirun each "
          "process is a rank, and N is their number or 0. The arguments rank "
          "and "
          "ranks are the rank's number, from 0, and N. Arrays are blocks: "
          "ramps "
          "and @FILE continue from rank to rank, and --save writes FILE.RANK"),
      CLI_OPTION_TAKEN("combine", "OP", take_combine, r,
                       "with --ranks: combine each array over the ranks by an "
                       "all-reduce after the launch; sum, prod, min or max"),
      CLI_OPTION_FLAG("nccl", &r->group.nccl,
                      "with --ranks: let NCCL move the data of --combine"),
      CLI_OPTIONS_END};
  const cli_option *shared = kiln__cli_run_options(c, &r->spec);
  cli_syntax run = {
      .synopsis = "kiln run FILE.cu|builtin:NAME|- [options]\n",
      .about =
          "Compiles a file and launches one of its kernels, on the GPU, or on "
          "the CPU device where there is none or --device cpu:9.0 asks for it. "
          "A comment in the file may describe the launch instead of options:\n"
          "  // kiln run: --kernel scale --grid 4 --block 256 --arg "
          "f32[1000]=ramp",
      .options = shared,
      .shared = own,
      .example = "kiln run saxpy.cu --grid 4 --block 256 --arg f32[1000]=ramp",
      .exit_codes =
          "0 success, 1 the launch failed or a check found something, "
          "2 wrong use.",
      .least = 1,
      .most = 1,
      .missing = "name one program: FILE.cu or builtin:NAME"};

  if (r->checking) {
    run.synopsis = "kiln check FILE.cu... [options]\n";
    run.about =
        "Runs each file's kernel on the CPU device with every check: memory, "
        "races, uninitialised reads, synchronisation. Options describe the "
        "launch, or a comment in the file does:\n"
        "  // kiln run: --kernel scale --grid 4 --block 256 --arg "
        "f32[1000]=ramp";
    run.example = "kiln check --check race,mem tests/*.cu";
    run.exit_codes = "0 nothing was found, 1 something was found or the launch "
                     "failed, 2 wrong use.";
    run.most = -1;
  }
  kiln__cli_program_init(&r->program, c, argc);
  run.more = r->program.table;
  r->print = 8;
  return kiln__cli_parse(c, &run, argc, argv, words);
}

/* Sets the grid and block dimensions to 1 if they were not given.
 * @return whether any option of the launch was given */
static bool settle(run_spec *spec)
{
  const bool given = spec->kernel != NULL || spec->grid.x != 0 ||
                     spec->block.x != 0 || spec->shared != 0 ||
                     spec->cooperative || spec->n_args > 0;

  if (spec->grid.x == 0)
    spec->grid = (kiln_dim3){1, 1, 1};
  if (spec->block.x == 0)
    spec->block = (kiln_dim3){1, 1, 1};
  return given;
}

/* ---- The kernel --------------------------------------------------------- */

/* Returns the name of the i-th kernel in PTX source, or NULL if there are
 * fewer kernels. */
static const char *entry_name(cli *c, const char *ptx, size_t i)
{
  static const char word[] = ".entry ";
  const char *at = ptx;

  for (size_t k = 0; at != NULL; k++) {
    at = strstr(at, word);
    if (at == NULL)
      return NULL;
    at += sizeof word - 1;
    if (k == i)
      return kiln__cli_text(c, "%.*s", (int)strcspn(at, "( \t\r\n"), at);
  }
  return NULL;
}

const char *kiln__cli_find_kernel(cli *c, const kiln_module *module,
                                  const char *wanted)
{
  const char *ptx = kiln_image_ptx(kiln_module_image(module), NULL);
  const char *name, *list = "";
  size_t i = 0;

  if (ptx == NULL)
    return wanted;
  for (; (name = entry_name(c, ptx, i)) != NULL; i++) {
    const char *plain = kiln__cli_plain_name(c, name);

    if (wanted != NULL &&
        (strcmp(wanted, name) == 0 || strcmp(wanted, plain) == 0))
      return name;
    list = kiln__cli_text(c, "%s%s%s", list, i > 0 ? ", " : "", plain);
  }
  if (wanted == NULL && i == 1)
    return entry_name(c, ptx, 0);
  if (i == 0)
    kiln__cli_message(c, "declare one with __global__",
                      "the file has no kernel");
  else
    kiln__cli_message(c, "name one with --kernel",
                      wanted != NULL ? "there is no kernel \"%s\" among %s"
                                     : "%sthe file has several kernels: %s",
                      wanted != NULL ? wanted : "", list);
  return NULL;
}

static kiln_status launch_once(kiln_kernel *kernel, const run_spec *spec)
{
  const kiln_launch_config config = {.grid = spec->grid,
                                     .block = spec->block,
                                     .smem = spec->shared,
                                     .cooperative = spec->cooperative};
  kiln_arg args[RUN_MOST_ARGS];

  for (unsigned i = 0; i < spec->n_args; i++)
    args[i] = (kiln_arg){spec->args[i].value, spec->args[i].size};
  return kiln_launch(kernel, &config, args, spec->n_args);
}

/* Measures the time of one launch in milliseconds, between two events. */
static kiln_status time_once(kiln_event *from, kiln_event *to,
                             kiln_kernel *kernel, const run_spec *spec,
                             double *ms)
{
  float took;

  CLI_TRY(kiln_event_record(from, NULL));
  CLI_TRY(launch_once(kernel, spec));
  CLI_TRY(kiln_event_record(to, NULL));
  CLI_TRY(kiln_event_synchronize(to));
  CLI_TRY(kiln_event_elapsed(&took, from, to));
  *ms = (double)took;
  return KILN_OK;
}

kiln_status kiln__cli_run_timed(kiln_device *device, kiln_kernel *kernel,
                                const run_spec *spec, unsigned repeats,
                                double *ms)
{
  double times[RUN_MOST_REPEATS];
  kiln_event *from = NULL, *to = NULL;
  kiln_status st = kiln_event_create(&from, device, true);

  if (st == KILN_OK)
    st = kiln_event_create(&to, device, true);
  for (unsigned i = 0; i < repeats && st == KILN_OK; i++)
    st = time_once(from, to, kernel, spec, &times[i]);
  kiln_event_free(from);
  kiln_event_free(to);
  *ms = st == KILN_OK ? kiln__cli_median(times, repeats) : 0;
  return st;
}

/* Appends a launch to r->launches. */
static void record(const cli *c, const request *r, const char *name,
                   const run_spec *spec, double ms)
{
  cJSON *o = kiln__cli_json_item(r->launches);
  const int grid[] = {(int)spec->grid.x, (int)spec->grid.y, (int)spec->grid.z};
  const int block[] = {(int)spec->block.x, (int)spec->block.y,
                       (int)spec->block.z};

  JSON_TEXT(o, "kernel", name);
  cJSON_AddItemToObject(o, "grid", cJSON_CreateIntArray(grid, 3));
  cJSON_AddItemToObject(o, "block", cJSON_CreateIntArray(block, 3));
  JSON_TEXT(o, "device", c->on_cpu ? "CPU device" : "GPU");
  JSON_NUMBER(o, "ms", ms);
}

static void print_launch(cli *c, const char *name, const run_spec *spec)
{
  printf("%s, grid %u,%u,%u, block %u,%u,%u", kiln__cli_plain_name(c, name),
         spec->grid.x, spec->grid.y, spec->grid.z, spec->block.x, spec->block.y,
         spec->block.z);
  fflush(stdout);
}

/* Launches the kernel, and prints the time and the arrays. */
static int run_kernel(cli *c, const request *r, run_spec *spec,
                      kiln_device *device, kiln_module *module)
{
  const char *name = kiln__cli_find_kernel(c, module, spec->kernel);
  kiln_kernel *kernel;
  kiln_kernel_info info;
  double ms;
  int rc;

  if (name == NULL)
    return CLI_FAILED;
  if (kiln_module_kernel(&kernel, module, name) != KILN_OK ||
      kiln_kernel_describe(kernel, &info) != KILN_OK)
    return kiln__cli_failure(c, name);
  rc = kiln__cli_run_prepare(c, device, spec, &info);
  if (rc != CLI_OK)
    return rc;
  if (r->launches == NULL)
    print_launch(c, name, spec);
  if (kiln__cli_run_timed(device, kernel, spec, 1, &ms) != KILN_OK ||
      (r->time &&
       kiln__cli_run_timed(device, kernel, spec, REPEATS, &ms) != KILN_OK)) {
    if (r->launches == NULL)
      printf("\n");
    return kiln__cli_failure(c, NULL);
  }
  if (r->launches != NULL) {
    record(c, r, name, spec, ms);
    return CLI_OK;
  }
  printf(": %.4g ms%s\n", ms,
         r->time     ? ", median of 15"
         : c->on_cpu ? " on the CPU device"
                     : "");
  return kiln__cli_run_show(c, device, spec, r->print);
}

/* ---- Files -------------------------------------------------------------- */

/* Parses a launch from the words after "kiln run:" in the source file. */
static int spec_of_line(cli *c, char *line, run_spec *spec)
{
  cli_syntax syntax = {.synopsis = "--grid 4 --block 256 --arg 5 ...\n",
                       .about = "A launch that a file describes."};
  char *words[MOST_WORDS + 1] = {kiln__cli_text(c, "kiln run:")};
  cli_words left;
  int n = 1;

  while (n < MOST_WORDS && (words[n] = kiln__cli_word(&line, " \t")) != NULL)
    n++;
  words[n] = NULL;
  *spec = (run_spec){0};
  syntax.options = kiln__cli_run_options(c, spec);
  if (kiln__cli_parse(c, &syntax, n, words, &left) != CLI_OK)
    return CLI_USAGE;
  settle(spec);
  return CLI_OK;
}

/* Parses the launches that the source file itself describes. @return the number
 * of launches, or -1 for wrong use */
static int specs_of_file(cli *c, const char *source, run_spec *specs)
{
  static const char mark[] = "kiln run:";
  const char *at = source;
  int n = 0;

  while (n < MOST_RUNS && (at = strstr(at, mark)) != NULL) {
    at += sizeof mark - 1;
    if (spec_of_line(c, kiln__cli_text(c, "%.*s", (int)strcspn(at, "\r\n"), at),
                     &specs[n++]) != CLI_OK)
      return -1;
  }
  return n;
}

static int run_spec_of(cli *c, request *r, run_spec *spec)
{
  kiln_device *device = NULL;
  kiln_module *module = NULL;
  int rc;

  if (r->grouped) {
    r->group.print = r->print;
    r->group.repeats = r->time ? REPEATS : 1;
    return kiln__cli_run_ranks(c, &r->program, spec, &r->group);
  }
  if (kiln_device_open(&device, c->rt, 0, NULL) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  if (kiln_module_load(&module, device, &r->program.desc) != KILN_OK) {
    rc = kiln__cli_failure(c, r->program.label);
  } else {
    rc = run_kernel(c, r, spec, device, module);
    kiln__cli_run_release(device, spec);
  }
  kiln_module_free(module);
  kiln_device_free(device);
  return rc;
}

/* Runs every launch that the command line or the opened file describes. */
static int run_opened(cli *c, request *r)
{
  run_spec *specs = kiln__cli_alloc(c, MOST_RUNS, sizeof *specs);
  int n = 1, rc = CLI_OK;

  specs[0] = r->spec;
  if (!settle(&specs[0]) && r->program.desc.source != NULL) {
    n = specs_of_file(c, r->program.desc.source, specs);
    if (n < 0)
      return CLI_USAGE;
    if (n == 0) {
      settle(&specs[0]);
      n = 1;
    }
  }
  for (int i = 0; i < n; i++) {
    const int one = run_spec_of(c, r, &specs[i]);

    rc = rc == CLI_OK ? one : rc;
  }
  return rc;
}

static int run_file(cli *c, request *r, const char *what)
{
  const size_t n_options = r->program.desc.n_options;
  int rc;

  r->program.desc.source = NULL;
  r->program.desc.builtin = NULL;
  rc = kiln__cli_program_open(&r->program, c, what);
  if (rc == CLI_OK)
    rc = run_opened(c, r);
  r->program.desc.n_options = n_options;
  return rc;
}

/* Switches to the CPU device if checks or counters are requested, and
 * configures them. */
static int configure(cli *c, request *r)
{
  int rc;

  /* `--device cpu,check=all` has already set the checks. */
  if (r->checks == 0 && c->on_cpu)
    r->checks = c->cpu.checks;
  r->counters =
      r->counters || r->json != NULL || (c->on_cpu && c->cpu.counters);
  if (r->checking && r->checks == 0)
    r->checks = KILN_CPU_CHECK_ALL;
  if (r->checks == 0 && !r->counters)
    return CLI_OK;
  rc = kiln__cli_to_cpu(c);
  if (rc != CLI_OK)
    return rc;
  c->cpu.checks = r->checks;
  c->cpu.counters = r->counters;
  /* Findings and counters refer to source lines, so line information is
   * needed. */
  r->program.desc.lineinfo = true;
  return kiln_cpu_configure(&c->cpu) == KILN_OK ? CLI_OK
                                                : kiln__cli_failure(c, NULL);
}

int kiln__cli_run_recorded(cli *c, const cli_program *program,
                           const run_spec *spec, bool counting, cJSON *launches)
{
  request *r = kiln__cli_alloc(c, 1, sizeof *r);
  int rc = CLI_OK;

  r->program = *program;
  r->spec = *spec;
  r->time = !counting;
  r->counters = counting;
  r->checks = counting ? KILN_CPU_CHECK_ALL : 0;
  r->launches = launches;
  if (counting)
    rc = configure(c, r);
  return rc == CLI_OK ? run_opened(c, r) : rc;
}

static int run_all(cli *c, request *r, int argc, char **argv)
{
  unsigned findings;
  cli_words words;
  int rc = parse(c, r, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  if ((r->group.combine != NULL || r->group.nccl) && !r->grouped)
    return kiln__cli_usage(c, "--combine and --nccl need --ranks");
  rc = configure(c, r);
  for (int i = 0; i < words.n && rc != CLI_USAGE; i++) {
    const int one = run_file(c, r, words.at[i]);

    rc = rc == CLI_OK ? one : rc;
  }
  if (r->checks != 0) {
    findings = kiln__cli_findings();
    if (findings > 0)
      rc = rc == CLI_USAGE ? rc : CLI_FAILED;
  }
  if (r->counters && kiln__cli_counters(c, r->json) != CLI_OK)
    rc = CLI_FAILED;
  return rc;
}

int kiln__cli_run(cli *c, int argc, char **argv)
{
  request *r = kiln__cli_alloc(c, 1, sizeof *r);

  return run_all(c, r, argc, argv);
}

int kiln__cli_check(cli *c, int argc, char **argv)
{
  request *r = kiln__cli_alloc(c, 1, sizeof *r);

  r->checking = true;
  return run_all(c, r, argc, argv);
}
