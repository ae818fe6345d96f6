/* command_exec.c -- `kiln exec`, which runs an unmodified program on the CPU
 * device.
 *
 * The processes of the program find Kiln's libcuda.so.1 first and write JSON
 * objects into a temporary file, one per line. This process waits, merges the
 * objects, and prints and writes the report. The temporary file is also removed
 * when a signal ends this process. */
#include "cli/exec/exec_report.h"
#include "cli/exec_program.h"
#include "tool/measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct exec_opts {
  const char *checks, *seed, *threads, *reports, *suppress;
  bool counters, no_preload, time;
} exec_opts;

/* ---- Settings ----------------------------------------------------------- */

/* Converts a list such as "mem,race" to the form that kiln_cpu_parse()
 * expects: "mem+race". */
static const char *joined(cli *c, const char *list)
{
  char *text = kiln__cli_text(c, "%s", list);

  for (char *p = text; *p != '\0'; p++)
    *p = *p == ',' ? '+' : *p;
  return text;
}

/* Returns the settings of the CPU device as text, after checking them.
 * Returns NULL having reported what is wrong. */
static const char *settings(cli *c, const exec_opts *o, int *arch)
{
  const char *text = c->device != NULL ? c->device : getenv("KILN_DEVICE");
  kiln_cpu_opts opts;

  if (text == NULL || strncmp(text, "cpu", 3) != 0)
    text = "cpu";
  if (o->checks != NULL)
    text = kiln__cli_text(c, "%s,check=%s", text, joined(c, o->checks));
  if (o->counters)
    text = kiln__cli_text(c, "%s,counters", text);
  if (o->seed != NULL)
    text = kiln__cli_text(c, "%s,seed=%s", text, o->seed);
  if (o->threads != NULL)
    text = kiln__cli_text(c, "%s,threads=%s", text, o->threads);
  if (kiln_cpu_parse(&opts, text) == KILN_OK && opts.threads == 0)
    text = kiln__cli_text(c, "%s,threads=auto", text);
  if (kiln_cpu_parse(&opts, text) != KILN_OK ||
      kiln_cpu_configure(&opts) != KILN_OK) {
    kiln__cli_failure(c, NULL);
    return NULL;
  }
  *arch = opts.arch == 0 ? 90 : opts.arch;
  return text;
}

/* ---- Reports ------------------------------------------------------------- */

static int write_text(const exec_report *r, const exec_suppressions *s,
                      const char *path)
{
  FILE *out = fopen(path, "we");

  if (out == NULL) {
    kiln__cli_message(r->c, NULL, "cannot write '%s': %s", path,
                      strerror(errno));
    return CLI_FAILED;
  }
  kiln__exec_show(r, s, out);
  return fclose(out) == 0 ? CLI_OK : CLI_FAILED;
}

/* Copies the lines of the processes to `path`. */
static int write_lines(const exec_report *r, const char *lines,
                       const char *path)
{
  size_t size = 0;
  const char *text = kiln__cli_read(r->c, lines, CLI_MOST_TEXT, &size);

  return text == NULL ? CLI_FAILED : kiln__cli_write(r->c, path, text, size);
}

/* Writes one file of --report. Its suffix determines the format. */
static int write_report(const exec_report *r, const exec_suppressions *s,
                        const char *lines, const char *path)
{
  const char *dot = strrchr(path, '.');

  if (dot != NULL && strcmp(dot, ".txt") == 0)
    return write_text(r, s, path);
  if (dot != NULL && strcmp(dot, ".json") == 0)
    return kiln__exec_json(r, path);
  if (dot != NULL && strcmp(dot, ".sarif") == 0)
    return kiln__exec_sarif(r, path);
  if (dot != NULL && strcmp(dot, ".xml") == 0)
    return kiln__exec_junit(r, path);
  return write_lines(r, lines, path);
}

/* Writes all files of --report. */
static int write_reports(const exec_report *r, const exec_suppressions *s,
                         const char *lines, const char *list)
{
  char *rest = kiln__cli_text(r->c, "%s", list == NULL ? "" : list);
  const char *path;
  int rc = CLI_OK;

  while ((path = kiln__cli_word(&rest, ",")) != NULL) {
    if (write_report(r, s, lines, path) != CLI_OK)
      rc = CLI_FAILED;
  }
  return rc;
}

/* Empties all files of --report, so that a wrong path is noticed before the
 * program runs. */
static bool can_write(cli *c, const char *list)
{
  char *rest = kiln__cli_text(c, "%s", list == NULL ? "" : list);
  const char *path;

  while ((path = kiln__cli_word(&rest, ",")) != NULL) {
    FILE *f = fopen(path, "we");

    if (f == NULL) {
      kiln__cli_message(c, NULL, "cannot write '%s': %s", path,
                        strerror(errno));
      return false;
    }
    fclose(f);
  }
  return true;
}

/* Prints the report on stderr. Nothing is printed on stdout, which belongs to
 * the program. */
static void show(const exec_report *r, const exec_suppressions *s,
                 const exec_opts *o)
{
  kiln__exec_show(r, s, stderr);
  fflush(stdout);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  kiln__exec_show_counters(r);
  if (o->time)
    kiln__exec_show_time(r);
}

/* ---- The command -------------------------------------------------------- */

/* Returns the path of a temporary file for the lines of the processes, or NULL
 * having reported why there is none. */
static const char *lines_file(cli *c)
{
  const char *dir = getenv("TMPDIR");
  int fd;

  snprintf(kiln__cli_exec_temporary, sizeof kiln__cli_exec_temporary,
           "%s/kiln-exec-XXXXXX", dir == NULL || *dir == '\0' ? "/tmp" : dir);
  fd = mkstemp(kiln__cli_exec_temporary);
  if (fd < 0) {
    kiln__cli_message(c, "set TMPDIR to a folder that can be written",
                      "cannot create '%s': %s", kiln__cli_exec_temporary,
                      strerror(errno));
    kiln__cli_exec_temporary[0] = '\0';
    return NULL;
  }
  close(fd);
  return kiln__cli_exec_temporary;
}

/* Runs the program, and prints and writes the report. */
static int run(cli *c, const exec_opts *o, const cli_exec *e,
               exec_suppressions *s, char **program)
{
  exec_report r = {.c = c, .program = program};
  const double begin = kiln__cli_now_ns();

  kiln__cli_exec_prepare(c, e);
  r.rc = kiln__cli_exec_run(c, program);
  r.seconds = (kiln__cli_now_ns() - begin) / 1e9;
  kiln__exec_read(&r, e->report);
  kiln__exec_suppress(&r, s);
  show(&r, s, o);
  if (write_reports(&r, s, e->report, o->reports) != CLI_OK && r.rc == 0)
    r.rc = CLI_FAILED;
  if (kiln__exec_sums(&r).findings > 0 && r.rc == 0)
    r.rc = CLI_FAILED;
  kiln__exec_free(&r);
  unlink(kiln__cli_exec_temporary);
  return r.rc;
}

int kiln__cli_exec(cli *c, int argc, char **argv)
{
  exec_opts o = {0};
  const cli_option options[] = {
      CLI_OPTION_TEXT("check", "LIST", &o.checks,
                      "mem, race, init, sync or all, with commas"),
      CLI_OPTION_FLAG("counters", &o.counters,
                      "count instructions, divergence, sectors and bank "
                      "conflicts per kernel"),
      CLI_OPTION_TEXT("seed", "N", &o.seed,
                      "seed for another order of blocks, warps and atomics"),
      CLI_OPTION_TEXT("threads", "N", &o.threads,
                      "host threads that run blocks; default auto: all "
                      "processors for kernels whose results cannot depend on "
                      "the order of blocks, otherwise 1"),
      CLI_OPTION_FLAG("time", &o.time,
                      "show launches, instructions and seconds per kernel"),
      CLI_OPTION_JOINED("report", "FILE", &o.reports,
                        "also write the report to FILE: .txt, .json, .sarif, "
                        "or .xml for JUnit; any other name: one JSON object "
                        "per line. May be repeated"),
      CLI_OPTION_TEXT("suppress", "FILE", &o.suppress,
                      "ignore the findings that FILE lists, one per line: "
                      "kind=race kernel=sum* file=*.cu line=10-20 "
                      "reason=\"...\""),
      CLI_OPTION_FLAG("no-preload", &o.no_preload,
                      "do not redirect paths that the program opens itself"),
      CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln exec [options] -- PROGRAM [ARGUMENTS]\n",
      .about =
          "Runs a program that uses the CUDA driver API (and NVRTC) on the CPU "
          "device. Its libcuda.so.1 is Kiln's, and its NVRTC returns PTX where "
          "the program asks for machine code. Programs that hold machine code "
          "alone cannot run. --device cpu:9.0 sets the architecture and "
          "further "
          "settings. The report follows on stderr.",
      .options = options,
      .example = "kiln exec --check all -- ./program 1000",
      .exit_codes = "that of the program; 1 if that is 0 and a check found "
                    "something; 127 if the program cannot be started.",
      .least = 1,
      .most = -1,
      .missing = "name a program after --",
      .program_follows = true};
  exec_suppressions suppressions;
  cli_exec e = {0};
  cli_words words;
  int arch = 0, rc = kiln__cli_parse(c, &syntax, argc, argv, &words);

  if (rc != CLI_OK)
    return rc;
  if (c->device != NULL && strncmp(c->device, "cpu", 3) != 0)
    return kiln__cli_usage(c,
                           "`kiln exec` is for the CPU device; on a GPU, run "
                           "the program by itself");
  e.no_preload = o.no_preload;
  e.settings = settings(c, &o, &arch);
  if (e.settings == NULL)
    return CLI_USAGE;
  e.folder = kiln__cli_exec_folder(c);
  if (e.folder == NULL)
    return CLI_FAILED;
  e.nvrtc = kiln__cli_exec_nvrtc(c, arch);
  if (kiln__exec_suppressions(&suppressions, c, o.suppress) != CLI_OK)
    return CLI_USAGE;
  if (!can_write(c, o.reports))
    return CLI_FAILED;
  e.report = lines_file(c);
  return e.report == NULL ? CLI_FAILED
                          : run(c, &o, &e, &suppressions, words.at);
}
