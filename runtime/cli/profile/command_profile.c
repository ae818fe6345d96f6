/* command_profile.c -- `kiln profile`, which records what a program does on the
 * GPU or on the CPU device, and shows what ran when and where the time went.
 *
 * The program runs with a small library, libkiln_profile.so, which the driver
 * loads (runtime/inject/). The library writes a record file per process into a
 * folder. Child processes are recorded too, since they inherit the
 * environment. */
#include "cli/exec_program.h"
#include "cli/profile/profile_model.h"
#include "tool/profile_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct profile_opts {
  const char *trace, *page, *json, *from, *keep, *limit;
  int top;
  bool no_calls, no_preload;
} profile_opts;

/* ---- Recording -------------------------------------------------------------- */

/* Decides whether the program runs on the CPU device: on request, or if this
 * machine has no GPU.
 * @return CLI_OK, or CLI_FAILED having reported why the driver failed */
static int choose_device(cli *c, bool *cpu)
{
  const char *which = c->device != NULL ? c->device : getenv("KILN_DEVICE");
  kiln_driver_info driver = {0};
  kiln_status st;

  *cpu = c->on_cpu;
  if (c->on_cpu)
    return CLI_OK;
  st = kiln_runtime_driver(c->rt, &driver);
  if (st == KILN_OK && driver.n_devices > 0)
    return CLI_OK;
  if ((which != NULL && strcmp(which, "gpu") == 0) ||
      (st != KILN_OK && st != KILN_ENODEVICE && st != KILN_ENODRIVER))
    return kiln__cli_failure(c, "the GPU");
  kiln__cli_message(c, NULL,
                    "no GPU found, so the program runs on the CPU device; all "
                    "times are those of the interpreter");
  *cpu = true;
  return CLI_OK;
}

/* Prepares the environment for a program on the CPU device. */
static void use_cpu(cli *c, const profile_opts *o, const char *dir)
{
  const char *text = c->device != NULL ? c->device : getenv("KILN_DEVICE");
  const cli_exec e = {
      .folder = dir,
      .settings = text == NULL || strncmp(text, "cpu", 3) != 0 ? "cpu" : text,
      .nvrtc = kiln__cli_exec_nvrtc(c, c->cpu.arch == 0 ? 90 : c->cpu.arch),
      .report = "/dev/null",
      .no_preload = o->no_preload};

  kiln__cli_exec_prepare(c, &e);
}

/* Finds CUPTI for a program on the GPU. */
static int use_gpu(cli *c)
{
  kiln_driver_info driver = {0};
  const char *list;

  (void)kiln_runtime_driver(c->rt, &driver);
  list = kiln__cli_find_cupti(c, driver.version);
  if (*list == '\0') {
    kiln__cli_message(c, kiln__cli_cupti_hint,
                      "found no CUPTI that fits the driver, which is for CUDA "
                      "%s",
                      kiln__cli_version(c, driver.version));
    return CLI_FAILED;
  }
  setenv(PROFILE_CUPTI_VARIABLE, list, 1);
  return CLI_OK;
}

/* Returns the folder for the record files, or NULL having reported why there is
 * none. */
static const char *record_folder(cli *c, const profile_opts *o)
{
  const char *folder = NULL;
  char *whole;

  if (o->keep == NULL)
    return kiln__cli_make_folder(c, "kiln-profile");
  (void)mkdir(o->keep, 0700);
  whole = realpath(o->keep, NULL);
  if (whole != NULL)
    folder = kiln__cli_text(c, "%s", whole);
  else
    kiln__cli_message(c, NULL, "cannot use the folder '%s': %s", o->keep,
                      strerror(errno));
  free(whole);
  return folder;
}

/* Sets the variables that control libkiln_profile.so. */
static int prepare(cli *c, const profile_opts *o, const char *folder)
{
  const char *dir = kiln__cli_exec_folder(c);
  const char *library;
  uint64_t limit = (uint64_t)4 << 30;
  bool cpu;

  if (dir == NULL)
    return CLI_FAILED;
  library = kiln__cli_text(c, "%s/libkiln_profile.so", dir);
  if (access(library, R_OK) != 0) {
    kiln__cli_message(c,
                      "build the target kiln_profile, or install all of Kiln",
                      "cannot read '%s': %s", library, strerror(errno));
    return CLI_FAILED;
  }
  if (o->limit != NULL &&
      (!kiln__cli_parse_bytes(o->limit, &limit) || limit < PROFILE_LEAST_LIMIT))
    return kiln__cli_usage(
        c, "--limit is a size of at least 4M such as 512M, not \"%s\"",
        o->limit);
  if (choose_device(c, &cpu) != CLI_OK)
    return CLI_FAILED;
  if (cpu)
    use_cpu(c, o, dir);
  else if (use_gpu(c) != CLI_OK)
    return CLI_FAILED;
  setenv(PROFILE_DIR_VARIABLE, folder, 1);
  setenv(PROFILE_LIMIT_VARIABLE,
         kiln__cli_text(c, "%llu", (unsigned long long)limit), 1);
  setenv(PROFILE_CALLS_VARIABLE, o->no_calls ? "0" : "1", 1);
  setenv("CUDA_INJECTION64_PATH", library, 1);
  return CLI_OK;
}

/* ---- Results ---------------------------------------------------------------- */

/* Reads what --from names: a folder, a record file or a trace. */
static int read_input(profile *p, const char *path)
{
  struct stat info;
  const size_t n = strlen(path), suffix = strlen(PROFILE_SUFFIX);

  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
    return kiln__profile_read_folder(p, path);
  if (n > suffix && strcmp(path + n - suffix, PROFILE_SUFFIX) == 0)
    return kiln__profile_read_file(p, path);
  return kiln__profile_read_trace(p, path);
}

/* Prints the summary and writes all files that the options name. */
static int show(profile *p, const profile_opts *o)
{
  int rc = CLI_OK;

  kiln__profile_finish(p);
  if (o->json == NULL || strcmp(o->json, "-") != 0)
    kiln__profile_print(p, (size_t)o->top);
  if (o->json != NULL)
    rc = kiln__cli_json(p->c, kiln__profile_json(p), o->json);
  if (rc == CLI_OK && o->trace != NULL)
    rc = kiln__profile_write_trace(p, o->trace);
  if (rc == CLI_OK && o->page != NULL)
    rc = kiln__profile_write_page(p, o->page);
  return rc;
}

/* Reads the record files and shows them. The tables go to stderr, since stdout
 * belongs to the program. @return an exit code */
static int show_records(cli *c, const profile_opts *o, const char *folder,
                        int program_rc)
{
  profile p;
  int rc;

  fflush(stdout);
  if (o->json == NULL || strcmp(o->json, "-") != 0)
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
  kiln__profile_init(&p, c);
  rc = kiln__profile_read_folder(&p, folder);
  if (p.n_processes == 0 && program_rc == CLI_NOT_STARTED)
    return program_rc; /* the reason was printed */
  if (rc == CLI_OK && p.n_processes == 0) {
    kiln__cli_message(c,
                      "check that the program uses CUDA and reaches its first "
                      "CUDA call, and that it may write to TMPDIR",
                      "nothing was recorded: the program did not start the "
                      "CUDA driver, or could not write a record file");
    rc = CLI_FAILED;
  }
  return rc == CLI_OK ? show(&p, o) : rc;
}

static int record(cli *c, const profile_opts *o, char **program)
{
  const char *folder = record_folder(c, o);
  int rc = folder == NULL ? CLI_FAILED : prepare(c, o, folder);
  int shown;

  if (rc == CLI_OK) {
    rc = kiln__cli_exec_run(c, program);
    shown = show_records(c, o, folder, rc);
    rc = shown != CLI_OK ? shown : rc;
  }
  if (o->keep == NULL)
    kiln__cli_remove_folder(folder);
  return rc;
}

int kiln__cli_profile(cli *c, int argc, char **argv)
{
  profile_opts o = {.top = 12};
  const cli_option options[] = {
      {.letter = 'o',
       .kind = CLI_TEXT,
       .value = "FILE",
       .to = &o.trace,
       .help = "write a trace for ui.perfetto.dev and chrome://tracing"},
      CLI_OPTION_TEXT("html", "FILE", &o.page,
                      "write a page with a timeline, which needs no network"),
      CLI_OPTION_TEXT("json", "FILE", &o.json,
                      "write the summary as JSON; - is standard output"),
      CLI_OPTION_TEXT("from", "PATH", &o.from,
                      "show a trace of kiln_timeline_write() or of -o, or "
                      "record files, instead of a program"),
      CLI_OPTION_TEXT("keep", "DIR", &o.keep,
                      "keep the record files in DIR, for --from"),
      CLI_OPTION_NUMBER("top", &o.top, 1, 1000000,
                        "lines per table; default 12"),
      CLI_OPTION_FLAG("no-calls", &o.no_calls,
                      "record only the work of the device and not the calls, "
                      "which disturbs the program less"),
      CLI_OPTION_TEXT("limit", "SIZE", &o.limit,
                      "most bytes of records per process; default 4G"),
      CLI_OPTION_FLAG("no-preload", &o.no_preload,
                      "on the CPU device, do not redirect paths that the "
                      "program opens itself"),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln profile [options] -- PROGRAM [ARGUMENTS]\n"
                  "       kiln profile [options] --from PATH\n",
      .about =
          "Records which kernels, copies and fills a CUDA program runs, when, "
          "and which calls it makes, in all of its processes. Prints where the "
          "time went on stderr. On a GPU the records are those of NVIDIA's "
          "CUPTI, which is searched like NVRTC (or KILN_CUPTI names it). "
          "Without a GPU the program runs on the CPU device, as under kiln "
          "exec; the times are then those of the interpreter.",
      .options = options,
      .example = "kiln profile -o trace.json --html page.html -- ./program",
      .exit_codes = "that of the program; 1 if profiling failed; 127 if the "
                    "program cannot be started.",
      .least = 0,
      .most = -1,
      .program_follows = true};
  cli_words words;
  profile p;
  int rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  if ((o.from != NULL) == (words.n > 0))
    return kiln__cli_usage(c, "name a program after --, or a file by --from");
  if (o.from == NULL)
    return record(c, &o, words.at);
  kiln__profile_init(&p, c);
  rc = read_input(&p, o.from);
  return rc == CLI_OK ? show(&p, &o) : rc;
}
