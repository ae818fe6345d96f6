/* main.c -- the `kiln` command: global options and the table of commands.
 * Each command parses its own options and returns an exit code. */
#include "bench/bench.h"
#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  cli_command_fn run;
  cli_device_use device;
  const char *what;
} commands[] = {
    {"doctor", kiln__cli_doctor, CLI_DEVICE_GIVEN,
     "check driver, NVRTC, GPUs and cache; what is wrong, how to fix it"},
    {"devices", kiln__cli_devices, CLI_DEVICE_GIVEN,
     "print each GPU's properties, or the table of generations"},
    {"compile", kiln__cli_compile, CLI_DEVICE_GIVEN,
     "compile a program to PTX, CUBIN, SASS or a resource report"},
    {"diff", kiln__cli_diff, CLI_DEVICE_GIVEN,
     "compare the machine code of two compiles, per source line"},
    {"explore", kiln__cli_explore, CLI_DEVICE_GIVEN,
     "write one page: source, PTX and SASS side by side"},
    {"cache", kiln__cli_cache, CLI_DEVICE_GIVEN,
     "inspect the compile cache and limit its size"},
    {"pack", kiln__cli_pack, CLI_DEVICE_GIVEN,
     "compile kernels into one file for use without NVRTC"},
    {"run", kiln__cli_run, CLI_DEVICE_NEEDED,
     "launch any kernel; counters, checks, times"},
    {"check", kiln__cli_check, CLI_DEVICE_NEEDED,
     "find memory, race, initialisation and synchronisation bugs"},
    {"exec", kiln__cli_exec, CLI_DEVICE_GIVEN,
     "run an unmodified CUDA driver program on the CPU device"},
    {"occupancy", kiln__cli_occupancy, CLI_DEVICE_GIVEN,
     "print the occupancy sheet of a setting or a kernel, with graphs"},
    {"sweep", kiln__cli_sweep, CLI_DEVICE_NEEDED,
     "run a kernel over a grid of settings: time, registers, occupancy"},
    {"profile", kiln__cli_profile, CLI_DEVICE_GIVEN,
     "record what a CUDA program ran, when, and where the time went"},
    {"bench", kiln__cli_bench, CLI_DEVICE_GIVEN,
     "measure launches, process starts and every operation"},
    {"tune", kiln__cli_tune, CLI_DEVICE_GIVEN,
     "find the operations' best parameters for this GPU"},
};

static const size_t n_commands = sizeof commands / sizeof commands[0];

static void help(FILE *out)
{
  fputs("kiln compiles CUDA kernels at run time and runs them.\n\n"
        "usage: kiln COMMAND [options]\n\n",
        out);
  for (size_t i = 0; i < n_commands; i++)
    fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].what);
  fputs("\nEach command has --help. Options of every command:\n"
        "  --cache-dir DIR   cache folder (else KILN_CACHE_DIR, else the "
        "user's)\n"
        "  --nvrtc FILE      libnvrtc to use and no other (else KILN_NVRTC)\n"
        "  --driver FILE     libcuda to use and no other (else KILN_DRIVER)\n"
        "  --device WHICH    gpu, or the CPU device: cpu, cpu:9.0, "
        "cpu:6.1,seed=3\n"
        "                    (else KILN_DEVICE)\n"
        "  --verbose         print what the library does to stderr\n"
        "  --version         print the version\n\n"
        "Example: kiln doctor --nvrtc /opt/cuda/lib64/libnvrtc.so.13\n\n"
        "Exit codes: 0 success, 1 the work failed, 2 wrong use.\n",
        out);
}

/* Appends a line to the kept warnings, c->warnings. The line is lost if memory
 * is exhausted. */
static void keep_line(cli *c, const char *text)
{
  const size_t old = c->warnings == NULL ? 0 : strlen(c->warnings);
  const size_t size = old + strlen(text) + 2;
  char *more = realloc(c->warnings, size);

  if (more == NULL)
    return;
  snprintf(more + old, size - old, "%s\n", text);
  c->warnings = more;
}

/* Handles the library's log messages. Any thread may call the function. The
 * lock of stderr also guards the list of kept warnings. */
static void log_line(void *user, kiln_log_level level, const char *text)
{
  static const char *const names[] = {"error", "warning", "info", "debug"};
  cli *c = user;

  flockfile(stderr);
  if (c->keep_warnings && !c->verbose)
    keep_line(c, text);
  else
    fprintf(stderr, "kiln: %s: %s\n", names[level & 3], text);
  funlockfile(stderr);
}

/* Returns whether `--device` has an ordinal as in `--device 1`. In that case
 * the option belongs to the command and is not the global option. */
static bool is_ordinal(char **argv)
{
  const char *value = strncmp(argv[0], "--device=", 9) == 0 ? argv[0] + 9
                      : strcmp(argv[0], "--device") == 0    ? argv[1]
                                                            : NULL;

  return value != NULL && value[0] >= '0' && value[0] <= '9';
}

/* Parses a global option with a value at argv[0]: "--nvrtc FILE" or
 * "--nvrtc=FILE".
 * @return the number of words parsed; 0 if the word is no global option; -1
 *        having reported a missing value */
static int take_value(cli *c, char **argv)
{
  const struct {
    const char *name;
    const char **value;
  } known[] = {{"--cache-dir", &c->cache_dir},
               {"--nvrtc", &c->nvrtc},
               {"--driver", &c->driver},
               {"--device", &c->device}};

  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
    const size_t n = strlen(known[k].name);

    if (strncmp(argv[0], known[k].name, n) != 0 ||
        (argv[0][n] != '=' && argv[0][n] != '\0'))
      continue;
    if (argv[0][n] == '\0' && argv[1] == NULL) {
      kiln__cli_usage(c, "%s needs a value", argv[0]);
      return -1;
    }
    *known[k].value = argv[0][n] == '=' ? argv[0] + n + 1 : argv[1];
    return argv[0][n] == '=' ? 1 : 2;
  }
  return 0;
}

/* Removes the global options from argv at any position, so that commands see
 * only their own options. The word after --option belongs to NVRTC and is kept.
 * @return the new argc, or -1 having reported what is wrong */
static int take_globals(cli *c, int argc, char **argv)
{
  int kept = 1, i = 1;

  while (i < argc) {
    const bool ordinal = is_ordinal(argv + i);
    const int taken = ordinal ? 0 : take_value(c, argv + i);

    if (taken < 0)
      return -1;
    /* The remaining words are a program's command line. */
    if (strcmp(argv[i], "--") == 0) {
      while (i < argc)
        argv[kept++] = argv[i++];
    } else if (strcmp(argv[i], "--option") == 0 && i + 1 < argc) {
      argv[kept++] = argv[i++];
      argv[kept++] = argv[i++];
    } else if (strcmp(argv[i], "--verbose") == 0) {
      c->verbose = true;
      i++;
    } else if (taken > 0) {
      i += taken;
    } else {
      argv[kept++] = argv[i++];
    }
  }
  argv[kept] = NULL;
  return kept;
}

static bool wants_help(char **argv)
{
  for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
    if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0)
      return true;
  return false;
}

static int run_command(cli *c, size_t which, int argc, char **argv)
{
  const kiln_runtime_opts opts = {.log = log_line,
                                  .log_user = c,
                                  .log_level = c->verbose ? KILN_LOG_DEBUG
                                                          : KILN_LOG_WARNING,
                                  .driver_path = c->driver,
                                  .nvrtc_path = c->nvrtc,
                                  .cache_dir = c->cache_dir};
  int rc;

  c->name = commands[which].name;
  rc = kiln__cli_open(
      c, &opts, wants_help(argv) ? CLI_DEVICE_GIVEN : commands[which].device);
  if (rc != CLI_OK)
    return rc;
  /* getopt_long() prints argv[0] before its messages. */
  argv[0] = kiln__cli_text(c, "kiln %s", c->name);
  rc = commands[which].run(c, argc, argv);
  if (rc == CLI_HELPED)
    rc = CLI_OK;
  kiln_runtime_free(c->rt);
  /* If the user gave --device cpu,check=all, any command may have findings. */
  if (c->on_cpu && kiln__cli_findings() > 0 && rc == CLI_OK)
    rc = CLI_FAILED;
  return rc;
}

static int dispatch(cli *c, int argc, char **argv)
{
  argc = take_globals(c, argc, argv);
  if (argc < 0)
    return CLI_USAGE;
  if (argc < 2) {
    help(stderr);
    return CLI_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      strcmp(argv[1], "help") == 0) {
    help(stdout);
    return CLI_OK;
  }
  if (strcmp(argv[1], "--version") == 0) {
    puts("kiln " KILN_VERSION_TEXT);
    return CLI_OK;
  }
  for (size_t i = 0; i < n_commands; i++)
    if (strcmp(argv[1], commands[i].name) == 0)
      return run_command(c, i, argc - 1, argv + 1);
  return kiln__cli_usage(c, "there is no command \"%s\"", argv[1]);
}

int main(int argc, char **argv)
{
  cli c = {0};
  int rc;

  /* This process is a child of `bench start`. The measured time counts from
   * the start of the process, so nothing may run before the child's
   * function. */
  if (argc > 4 && strcmp(argv[1], "bench") == 0 &&
      strcmp(argv[2], "start") == 0 && strcmp(argv[3], "--child") == 0)
    return kiln__cli_start_child(argc - 4, argv + 4);
  rc = dispatch(&c, argc, argv);
  kiln__cli_free_all(&c);
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fputs("kiln: cannot write the output\n", stderr);
    return CLI_FAILED;
  }
  return rc;
}
