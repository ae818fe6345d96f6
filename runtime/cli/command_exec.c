/* command_exec.c -- `kiln exec`, which runs an unmodified program on the CPU
 * device.
 *
 * The child process finds Kiln's libcuda.so.1 first and writes a report into a
 * file, one JSON object per line. The parent process waits and prints the
 * report. The file is temporary unless --report names a file. A temporary file
 * is also removed when a signal ends the parent process. */
#include "cli/exec_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct exec_opts {
  const char *checks, *seed, *threads, *report;
  bool counters, no_preload;
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
  if (kiln_cpu_parse(&opts, text) != KILN_OK ||
      kiln_cpu_configure(&opts) != KILN_OK) {
    kiln__cli_failure(c, NULL);
    return NULL;
  }
  *arch = opts.arch == 0 ? 90 : opts.arch;
  return text;
}

/* ---- The report --------------------------------------------------------- */

typedef struct report {
  cli_table kernels;
  unsigned findings, n_kernels;
  bool checked; /* true if at least one process ran with a check enabled */
  /* Number of launches with a check enabled, in all processes. */
  double launches;
} report;

/* text_of() and number_of() return a member of a JSON line of the report. If
 * the member is missing, they return "" or 0. */
static const char *text_of(const cJSON *line, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);

  return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *line, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);

  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void ratio_cell(cli_table *t, double a, double b)
{
  if (b > 0)
    kiln__cli_cell(t, "%.2f", a / b);
  else
    kiln__cli_dashes(t, 1);
}

/* Adds a table row with the counters of one kernel. Ratios are per warp
 * instruction or per request. */
static void kernel_row(cli *c, cli_table *t, const cJSON *k)
{
  kiln__cli_cells(t, "%s\t%.0f\t%.0f",
                  kiln__cli_plain_name(c, text_of(k, "kernel")),
                  number_of(k, "launches"), number_of(k, "warp_insns"));
  ratio_cell(t, number_of(k, "thread_insns"), number_of(k, "warp_insns"));
  kiln__cli_cell(t, "%.0f of %.0f", number_of(k, "divergent_branches"),
                 number_of(k, "branches"));
  ratio_cell(t, number_of(k, "global_load_sectors"),
             number_of(k, "global_load_requests"));
  ratio_cell(t, number_of(k, "global_store_sectors"),
             number_of(k, "global_store_requests"));
  ratio_cell(t,
             number_of(k, "shared_load_passes") +
                 number_of(k, "shared_store_passes"),
             number_of(k, "shared_load_requests") +
                 number_of(k, "shared_store_requests"));
  kiln__cli_cell(t, "%.0f", number_of(k, "atomics"));
  kiln__cli_cell(t, "%.0f", number_of(k, "barriers"));
}

static void show_line(cli *c, report *r, const cJSON *line)
{
  const char *type = text_of(line, "type");

  if (strcmp(type, "finding") == 0) {
    fprintf(stderr, "\n%s\n", text_of(line, "text"));
    if (number_of(line, "count") > 1)
      fprintf(stderr, "  seen %.0f times\n", number_of(line, "count"));
    r->findings++;
  } else if (strcmp(type, "fault") == 0) {
    if (r->findings == 0) /* print the fault only if no finding describes it */
      fprintf(stderr, "\n%s\n", text_of(line, "text"));
  } else if (strcmp(type, "checked") == 0) {
    r->checked = true;
    r->launches += number_of(line, "launches");
  } else if (strcmp(type, "error") == 0 || strcmp(type, "unsupported") == 0) {
    kiln__cli_message(c, NULL, "%s", text_of(line, "text"));
  } else if (strcmp(type, "kernel") == 0) {
    kernel_row(c, &r->kernels, line);
    r->n_kernels++;
  }
}

/* Prints the report. @return the number of findings */
static unsigned show(cli *c, const char *path)
{
  static const char *const heads[] = {"kernel",
                                      ">launches",
                                      ">warp insns",
                                      ">lanes",
                                      ">diverged",
                                      ">load sectors",
                                      ">store sectors",
                                      ">shared passes",
                                      ">atomics",
                                      ">barriers",
                                      NULL};
  report r = {0};
  FILE *f = fopen(path, "re");
  char *text = NULL;
  size_t capacity = 0;

  kiln__cli_table(&r.kernels, c, heads);
  while (f != NULL && getline(&text, &capacity, f) > 0) {
    cJSON *line = cJSON_Parse(text);

    if (line != NULL)
      show_line(c, &r, line);
    cJSON_Delete(line);
  }
  free(text);
  if (f != NULL)
    fclose(f);
  if (r.findings > 0 || r.checked)
    fprintf(stderr, "\n%u finding%s in %.0f launch%s\n", r.findings,
            r.findings == 1 ? "" : "s", r.launches,
            r.launches == 1 ? "" : "es");
  if (r.n_kernels > 0) {
    putc('\n', stderr);
    fflush(stdout);
    /* The tables go to stderr. Nothing else is written to stdout. */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    kiln__cli_table_print(&r.kernels, 0);
  }
  return r.findings;
}

/* ---- The command -------------------------------------------------------- */

/* Returns the path of the report file: the file of --report, which is
 * emptied, or a temporary file. Returns NULL having reported why there is no
 * file. */
static const char *report_file(cli *c, const exec_opts *o)
{
  const char *dir = getenv("TMPDIR");
  int fd;

  if (o->report != NULL) {
    FILE *f = fopen(o->report, "we");
    char *path = f == NULL ? NULL : realpath(o->report, NULL);
    const char *name = path == NULL ? NULL : kiln__cli_text(c, "%s", path);

    if (f != NULL)
      fclose(f);
    free(path);
    if (name == NULL)
      kiln__cli_message(c, NULL, "cannot write '%s': %s", o->report,
                        strerror(errno));
    return name;
  }
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
                      "host threads that run blocks; default 1"),
      CLI_OPTION_TEXT("report", "FILE", &o.report,
                      "keep the report in FILE, one JSON object per line"),
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
  e.report = report_file(c, &o);
  if (e.report == NULL)
    return CLI_FAILED;
  kiln__cli_exec_prepare(c, &e);
  rc = kiln__cli_exec_run(c, words.at);
  if (show(c, e.report) > 0 && rc == 0)
    rc = CLI_FAILED;
  if (kiln__cli_exec_temporary[0] != '\0')
    unlink(kiln__cli_exec_temporary);
  return rc;
}
