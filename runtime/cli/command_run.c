/* command_run.c -- `kiln run`: launch any kernel; `kiln check`: the same under all
 * checks of the CPU device. */
#include "command_run.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_CHECK = CLI_OPT_OWN, OPT_COUNTERS, OPT_TIME, OPT_PRINT, OPT_JSON };
enum { MOST_RUNS = 64, REPEATS = 15, MOST_WORDS = 200 };

typedef struct request {
  cli_program program;
  run_spec spec;
  bool given; /* the command line says what to launch */
  unsigned checks;
  bool checking; /* `kiln check` */
  bool counters, time;
  const char *json; /* where the counters go, too */
  unsigned print;
} request;

static void run_help(void)
{
  fputs(
      "usage: kiln run FILE.cu|builtin:NAME|- [options]\n\n"
      "Compiles a file and launches one of its kernels, on the GPU or else on "
      "the CPU\ndevice (--device cpu:9.0). A file may say itself how it is "
      "run, in a comment:\n"
      "  // kiln run: --kernel scale --grid 4 --block 256 --arg "
      "f32[1000]=ramp\n\n",
      stdout);
  fputs(kiln__cli_run_help, stdout);
  fputs("  --print N           elements to show of each array; default 8\n"
        "  --time              median time of 15 launches by events\n"
        "  --check LIST        mem,race,init,sync or all: on the CPU device\n"
        "  --counters          divergence, coalescing, bank conflicts, by "
        "source line:\n"
        "                      on the CPU device\n"
        "  --json FILE         the counters as JSON, too\n",
        stdout);
  fputs(kiln__cli_program_help, stdout);
}

static void check_help(void)
{
  fputs("usage: kiln check FILE.cu... [options]\n\n"
        "Runs each file's kernel on the CPU device with every check: memory, "
        "races,\nuninitialised reads, synchronisation. What to launch: options "
        "as below, or a\ncomment in the file:\n"
        "  // kiln run: --kernel scale --grid 4 --block 256 --arg "
        "f32[1000]=ramp\n"
        "Exit code 1 if anything is found.\n\n",
        stdout);
  fputs(kiln__cli_run_help, stdout);
  fputs("  --check LIST        only these: mem,race,init,sync\n", stdout);
  fputs(kiln__cli_program_help, stdout);
}

static int take_checks(cli *c, const char *text, unsigned *out)
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
  char *save = NULL, *copy = kiln__cli_text(c, "%s", text);

  *out = 0;
  for (char *word = strtok_r(copy, ",+", &save); word != NULL;
       word = strtok_r(NULL, ",+", &save)) {
    size_t i = 0;

    while (i < sizeof known / sizeof known[0] &&
           strcmp(known[i].name, word) != 0)
      i++;
    if (i == sizeof known / sizeof known[0])
      return kiln__cli_usage(c,
                             "--check knows mem, race, init, sync and all, "
                             "not \"%s\"",
                             word);
    *out |= known[i].check;
  }
  return CLI_OK;
}

/* @return CLI_OK, CLI_USAGE, or -1: help was shown. */
static int parse(cli *c, request *r, int argc, char **argv)
{
  static const struct option known[] = {
      CLI_PROGRAM_LONG,
      RUN_OPTIONS,
      {"check", required_argument, NULL, OPT_CHECK},
      {"counters", no_argument, NULL, OPT_COUNTERS},
      {"time", no_argument, NULL, OPT_TIME},
      {"print", required_argument, NULL, OPT_PRINT},
      {"json", required_argument, NULL, OPT_JSON},
      {"help", no_argument, NULL, 'h'},
      {0}};
  int opt, rc = CLI_OK;

  kiln__cli_program_init(&r->program, c, argc);
  r->spec.grid = r->spec.block = (kiln_dim3){1, 1, 1};
  r->print = 8;
  while (rc == CLI_OK && (opt = getopt_long(argc, argv, CLI_PROGRAM_SHORT "h",
                                            known, NULL)) != -1) {
    if (kiln__cli_run_option(c, &r->spec, opt, optarg, &rc)) {
      r->given = true;
      continue;
    }
    switch (opt) {
    case OPT_CHECK:
      rc = take_checks(c, optarg, &r->checks);
      break;
    case OPT_COUNTERS:
      r->counters = true;
      break;
    case OPT_JSON:
      r->counters = true;
      r->json = optarg;
      break;
    case OPT_TIME:
      r->time = true;
      break;
    case OPT_PRINT:
      r->print = (unsigned)strtoul(optarg, NULL, 10);
      break;
    case 'h':
      r->checking ? check_help() : run_help();
      return -1;
    default:
      rc = kiln__cli_program_option(&r->program, c, opt, optarg);
      if (rc == -1)
        rc = kiln__cli_usage(c, NULL);
      break;
    }
  }
  if (rc == CLI_OK && optind == argc)
    rc = kiln__cli_usage(c, "which file?");
  return rc;
}

/* ---- The kernel -------------------------------------------------------------- */

/* The i-th entry's name in PTX text; NULL: there are fewer. */
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

/* The kernel by its lowered or plain name, or the only one. */
static const char *find_kernel(cli *c, const kiln_module *module,
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
  kiln__cli_say(c, i == 0 ? NULL : "name one with --kernel",
                wanted != NULL ? "no kernel \"%s\"; there is %s"
                               : "%swhich kernel? there is %s",
                wanted != NULL ? wanted : "", i == 0 ? "none" : list);
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

static kiln_status timed(kiln_device *device, kiln_kernel *kernel,
                         const run_spec *spec, unsigned repeats, double *ms)
{
  double times[REPEATS];
  kiln_event *from = NULL, *to = NULL;
  kiln_status st = kiln_event_create(&from, device, true);

  if (st == KILN_OK)
    st = kiln_event_create(&to, device, true);
  for (unsigned i = 0; i < repeats && st == KILN_OK; i++) {
    float took = 0;

    st = kiln_event_record(from, NULL);
    if (st == KILN_OK)
      st = launch_once(kernel, spec);
    if (st == KILN_OK)
      st = kiln_event_record(to, NULL);
    if (st == KILN_OK)
      st = kiln_event_synchronize(to);
    if (st == KILN_OK)
      st = kiln_event_elapsed(&took, from, to);
    times[i] = (double)took;
  }
  kiln_event_free(from);
  kiln_event_free(to);
  *ms = st == KILN_OK ? kiln__cli_median(times, repeats) : 0;
  return st;
}

static int run_kernel(cli *c, const request *r, run_spec *spec,
                      kiln_device *device, kiln_module *module)
{
  const char *name = find_kernel(c, module, spec->kernel);
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
  printf("%s, grid %u,%u,%u, block %u,%u,%u", kiln__cli_plain_name(c, name),
         spec->grid.x, spec->grid.y, spec->grid.z, spec->block.x, spec->block.y,
         spec->block.z);
  fflush(stdout);
  if (timed(device, kernel, spec, 1, &ms) != KILN_OK ||
      (r->time && timed(device, kernel, spec, REPEATS, &ms) != KILN_OK)) {
    printf("\n");
    return kiln__cli_failure(c, NULL);
  }
  printf(": %.4g ms%s\n", ms,
         r->time     ? ", median of 15"
         : c->on_cpu ? " on the CPU device"
                     : "");
  return kiln__cli_run_show(c, device, spec, r->print);
}

/* ---- Files --------------------------------------------------------------------- */

/* Launches that the file itself asks for. @return how many; -1: wrong use. */
static int specs_of_file(cli *c, const char *source, run_spec *specs)
{
  static const char mark[] = "kiln run:";
  const char *at = source;
  int n = 0;

  while (n < MOST_RUNS && (at = strstr(at, mark)) != NULL) {
    char *save = NULL, *words[MOST_WORDS], *line;
    int n_words = 0;

    at += sizeof mark - 1;
    line = kiln__cli_text(c, "%.*s", (int)strcspn(at, "\r\n"), at);
    words[n_words++] = kiln__cli_text(c, "kiln run:");
    for (char *word = strtok_r(line, " \t", &save);
         word != NULL && n_words + 1 < MOST_WORDS;
         word = strtok_r(NULL, " \t", &save))
      words[n_words++] = word;
    words[n_words] = NULL;
    specs[n] = (run_spec){.grid = {1, 1, 1}, .block = {1, 1, 1}};
    if (kiln__cli_run_words(c, &specs[n], n_words, words) != CLI_OK)
      return -1;
    n++;
  }
  return n;
}

static int run_spec_of(cli *c, request *r, run_spec *spec)
{
  kiln_device *device = NULL;
  kiln_module *module = NULL;
  int rc;

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

static int run_file(cli *c, request *r, const char *what)
{
  run_spec *specs = kiln__cli_alloc(c, MOST_RUNS, sizeof *specs);
  const size_t n_options = r->program.desc.n_options;
  int n = 1, rc = CLI_OK;

  r->program.desc.source = NULL;
  r->program.desc.builtin = NULL;
  if (kiln__cli_program_open(&r->program, c, what) != CLI_OK)
    return CLI_FAILED;
  specs[0] = r->spec;
  if (!r->given && r->program.desc.source != NULL) {
    n = specs_of_file(c, r->program.desc.source, specs);
    if (n < 0)
      return CLI_USAGE;
    if (n == 0) {
      specs[0] = r->spec;
      n = 1;
    }
  }
  for (int i = 0; i < n; i++) {
    const int one = run_spec_of(c, r, &specs[i]);

    rc = rc == CLI_OK ? one : rc;
  }
  r->program.desc.n_options = n_options;
  return rc;
}

static int configure(cli *c, request *r)
{
  int rc;

  if (r->checks == 0 && c->on_cpu) /* the device's own settings may ask */
    r->checks = c->cpu.checks;
  r->counters = r->counters || (c->on_cpu && c->cpu.counters);
  if (r->checking && r->checks == 0)
    r->checks = KILN_CPU_CHECK_ALL;
  if (r->checks == 0 && !r->counters)
    return CLI_OK;
  rc = kiln__cli_to_cpu(c);
  if (rc != CLI_OK)
    return rc;
  c->cpu.checks = r->checks;
  c->cpu.counters = r->counters;
  r->program.desc.lineinfo = true; /* findings and counters name lines */
  return kiln_cpu_configure(&c->cpu) == KILN_OK ? CLI_OK
                                                : kiln__cli_failure(c, NULL);
}

static int run_all(cli *c, request *r, int argc, char **argv)
{
  unsigned findings;
  int rc = parse(c, r, argc, argv), first = optind;

  if (rc != CLI_OK)
    return rc == -1 ? CLI_OK : rc;
  if (argc - first > 1 && !r->checking)
    return kiln__cli_usage(c, "one file, not \"%s\"", argv[first + 1]);
  rc = configure(c, r);
  for (; first < argc && rc != CLI_USAGE; first++) {
    const int one = run_file(c, r, argv[first]);

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
