/* command_compile.c -- `kiln compile`: PTX, CUBIN, SASS, resource report. */
#include "command_compile.h"
#include "tool/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  OPT_ARCH = CLI_OPT_OWN,
  OPT_EMIT,
  OPT_LIST,
  OPT_JSON,
};

typedef enum artifact { PTX, CUBIN, SASS, REPORT, N_ARTIFACTS } artifact;

static const char *const artifact_names[] = {"ptx", "cubin", "sass", "report"};

typedef struct request {
  cli_program program;
  cli_targets targets;
  const char *arch, *output, *tool;
  bool emit[N_ARTIFACTS];
  bool json;
} request;

static void help(void)
{
  fputs("usage: kiln compile FILE.cu|builtin:NAME|- [options]\n"
        "       kiln compile --list      the embedded programs\n\n"
        "Compiles for one or more GPU generations; needs no GPU. Prints a "
        "resource\nreport, with occupancy for blocks of 128 to 1024 threads.\n"
        "\n"
        "  --arch LIST|all     sm_80,90a,compute_75; default: the GPU here\n"
        "  --emit LIST         ptx, cubin, sass, report; default: report\n"
        "  -o PATH             a file; a folder/ for several\n"
        "  --json              the report for programs\n",
        stdout);
  fputs(kiln__cli_program_help, stdout);
}

/* ---- Compiling ---------------------------------------------------------- */

static void keep_log(void *user, const char *text, size_t size)
{
  cli_unit *unit = user;

  free(unit->log);
  unit->log = strndup(text, size);
}

/* The assembler's resource lines are in the report already. */
static bool is_resource_line(const char *line, size_t n)
{
  static const char info[] = "ptxas info", frame[] = "bytes stack frame";

  return (n >= sizeof info && memcmp(line, info, sizeof info - 1) == 0) ||
         memmem(line, n, frame, sizeof frame - 1) != NULL;
}

static bool same_log(const cli_unit *a, const cli_unit *b)
{
  return a != NULL && b != NULL && a->log != NULL && b->log != NULL &&
         strcmp(a->log, b->log) == 0;
}

/* Messages of the compiler on stderr; the same text for the next target is
 * said once. */
static void show_log(const cli_unit *unit, const cli_unit *previous)
{
  const char *line = unit->log;

  if (line == NULL || same_log(unit, previous))
    return;
  while (*line != '\0') {
    const size_t n = strcspn(line, "\n");

    if (n > 0 && !is_resource_line(line, n))
      fprintf(stderr, "%.*s\n", (int)n, line);
    line += n;
    line += *line == '\n' ? 1 : 0;
  }
}

/* "saxpy.cu for sm_90: message", log, next step. To correct the source needs no
 * saying. */
static void show_failure(const cli *c, const cli_unit *unit,
                         const cli_unit *previous)
{
  const kiln_error *e = kiln_last_error();
  const bool log = unit->status == KILN_ECOMPILE && unit->log != NULL;
  const bool plain = log && strncmp(e->hint, "correct the source", 18) == 0;
  const bool again = log && same_log(unit, previous);
  char target[24];

  kiln_target_text(&unit->target, target);
  kiln__cli_say(c, NULL, "%s for %s: %s", unit->label, target,
                !log    ? e->message
                : again ? "does not compile either"
                        : "does not compile");
  if (unit->log != NULL)
    show_log(unit, previous);
  else if (e->log[0] != '\0')
    fprintf(stderr, "%s\n", e->log);
  if (!plain && !again && e->hint[0] != '\0')
    fprintf(stderr, "next: %s\n", e->hint);
}

int kiln__cli_compile_units(cli *c, cli_unit *units, size_t n)
{
  kiln_program_desc *descs = kiln__cli_alloc(c, n, sizeof *descs);
  kiln_target *targets = kiln__cli_alloc(c, n, sizeof *targets);
  kiln_job *job = NULL;
  size_t failed = 0;

  for (size_t i = 0; i < n; i++) {
    descs[i] = *units[i].desc;
    descs[i].on_log = keep_log;
    descs[i].log_user = &units[i];
    targets[i] = units[i].target;
  }
  if (kiln_job_start(&job, c->rt, descs, targets, n, NULL, NULL) != KILN_OK)
    return kiln__cli_failure(c, NULL);
  for (;;) {
    const bool done = kiln_job_wait(job, 100) != KILN_ETIMEOUT;
    kiln_job_progress now;

    if (kiln_job_state(job, &now) == KILN_OK)
      kiln__cli_progress(c, "compiled", now.done, n);
    if (done)
      break;
  }
  for (size_t i = 0; i < n; i++) {
    const cli_unit *previous = i > 0 ? &units[i - 1] : NULL;

    units[i].status = kiln_job_image(job, i, &units[i].image);
    if (units[i].status != KILN_OK) {
      show_failure(c, &units[i], previous);
      failed++;
    } else {
      show_log(&units[i], previous);
    }
  }
  kiln_job_free(job);
  return failed == 0 ? CLI_OK : CLI_FAILED;
}

void kiln__cli_free_units(cli_unit *units, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    kiln_image_free(units[i].image);
    free(units[i].log);
  }
}

/* ---- Artifacts ---------------------------------------------------------- */

/* "dir/" or an existing folder. */
static bool is_folder(const char *path)
{
  const size_t n = strlen(path);
  struct stat info;

  return (n > 0 && path[n - 1] == '/') ||
         (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* "folder/saxpy.sm_90.ptx" */
static const char *artifact_path(cli *c, const request *r, const cli_unit *unit,
                                 artifact kind)
{
  const char *base = strrchr(unit->label, '/');
  const char *dot;
  char text[24];
  size_t n = strlen(r->output);

  if (!is_folder(r->output))
    return r->output;
  base = base == NULL ? unit->label : base + 1;
  dot = strrchr(base, '.');
  return kiln__cli_text(
      c, "%s%s%.*s.%s.%s", r->output, r->output[n - 1] == '/' ? "" : "/",
      (int)(dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base)),
      base, kiln_target_text(&unit->target, text), artifact_names[kind]);
}

static int put(cli *c, const request *r, const cli_unit *unit, artifact kind,
               const void *data, size_t size)
{
  char text[24];
  const char *path;

  if (r->output == NULL || strcmp(r->output, "-") == 0) {
    if (kind != CUBIN && r->targets.n > 1)
      printf("// %s for %s\n", unit->label,
             kiln_target_text(&unit->target, text));
    fwrite(data, 1, size, stdout);
    return CLI_OK;
  }
  path = artifact_path(c, r, unit, kind);
  if (kiln__cli_write(c, path, data, size) != CLI_OK)
    return CLI_FAILED;
  fprintf(stderr, "wrote %s, %s\n", path, kiln__cli_bytes(c, size));
  return CLI_OK;
}

static int put_sass(cli *c, const request *r, const cli_unit *unit,
                    const void *cubin, size_t size)
{
  char *text = kiln__cli_disassemble(c, r->tool, cubin, size);
  int rc = CLI_FAILED;

  if (text != NULL)
    rc = put(c, r, unit, SASS, text, strlen(text));
  free(text);
  return rc;
}

static int put_artifacts(cli *c, const request *r, const cli_unit *unit)
{
  size_t ptx_size, cubin_size;
  const char *ptx = kiln_image_ptx(unit->image, &ptx_size);
  const void *cubin = kiln_image_cubin(unit->image, &cubin_size);
  char text[24];

  if ((r->emit[CUBIN] || r->emit[SASS]) && cubin == NULL) {
    kiln__cli_say(c, "use an sm_ target instead of compute_",
                  "%s is PTX only: no machine code was made",
                  kiln_target_text(&unit->target, text));
    return CLI_FAILED;
  }
  if (r->emit[PTX] && put(c, r, unit, PTX, ptx, ptx_size) != CLI_OK)
    return CLI_FAILED;
  if (r->emit[CUBIN] && put(c, r, unit, CUBIN, cubin, cubin_size) != CLI_OK)
    return CLI_FAILED;
  return r->emit[SASS] ? put_sass(c, r, unit, cubin, cubin_size) : CLI_OK;
}

/* ---- The command -------------------------------------------------------- */

static int list_builtins(cli *c)
{
  static const char *const heads[] = {"program", ">bytes", ">variants", NULL};
  size_t n, n_variants;
  const kiln_builtin *list = kiln_builtin_list(&n);
  const kiln_variant *variants = kiln_variant_list(&n_variants);
  cli_table t;

  kiln__cli_table(&t, c, heads);
  for (size_t i = 0; i < n; i++) {
    size_t count = 0;

    for (size_t k = 0; k < n_variants; k++)
      count += strcmp(variants[k].builtin, list[i].name) == 0 ? 1 : 0;
    kiln__cli_cell(&t, "builtin:%s", list[i].name);
    kiln__cli_cell(&t, "%zu", list[i].size);
    kiln__cli_cell(&t, "%zu", count);
  }
  kiln__cli_table_print(&t, 0);
  return CLI_OK;
}

static int parse_emit(request *r, cli *c, const char *text)
{
  char *save = NULL;
  char *copy = kiln__cli_text(c, "%s", text);

  for (char *word = strtok_r(copy, ",", &save); word != NULL;
       word = strtok_r(NULL, ",", &save)) {
    size_t i = 0;

    while (i < N_ARTIFACTS && strcmp(word, artifact_names[i]) != 0)
      i++;
    if (i == N_ARTIFACTS)
      return kiln__cli_usage(c,
                             "--emit knows ptx, cubin, sass and report, "
                             "not \"%s\"",
                             word);
    r->emit[i] = true;
  }
  return CLI_OK;
}

/* What -o and --emit leave open: the kind by the file's ending, and whether
 * one path is enough. Done before compiling, so that nobody waits for a
 * refusal. */
static int settle_output(request *r, cli *c)
{
  const char *dot = r->output == NULL ? NULL : strrchr(r->output, '.');
  size_t files;

  if (!r->emit[PTX] && !r->emit[CUBIN] && !r->emit[SASS]) {
    if (r->output == NULL)
      r->emit[REPORT] = true;
    else if (dot != NULL && strcmp(dot, ".ptx") == 0)
      r->emit[PTX] = true;
    else if (dot != NULL && strcmp(dot, ".sass") == 0)
      r->emit[SASS] = true;
    else
      r->emit[CUBIN] = true;
  }
  files =
      r->targets.n * ((r->emit[PTX] ? 1u : 0u) + (r->emit[CUBIN] ? 1u : 0u) +
                      (r->emit[SASS] ? 1u : 0u));
  if (r->output != NULL && files > 1 && strcmp(r->output, "-") != 0 &&
      !is_folder(r->output))
    return kiln__cli_usage(c,
                           "-o %s is one file, but there are %zu to write; "
                           "give a folder: -o %s/",
                           r->output, files, r->output);
  if (r->output != NULL && is_folder(r->output) &&
      mkdir(r->output, 0777) != 0 && errno != EEXIST) {
    kiln__cli_say(c, NULL, "cannot make the folder %s: %s", r->output,
                  strerror(errno));
    return CLI_FAILED;
  }
  if (r->emit[CUBIN] && r->output == NULL && isatty(STDOUT_FILENO))
    return kiln__cli_usage(c, "a CUBIN is binary: name a file with -o");
  if (r->emit[SASS]) {
    r->tool = kiln__cli_disassembler(c);
    if (r->tool == NULL) {
      kiln__cli_say(c, kiln__cli_disassembler_hint,
                    "SASS needs nvdisasm or cuobjdump, and neither was found");
      return CLI_FAILED;
    }
  }
  return CLI_OK;
}

static int run(cli *c, request *r)
{
  const size_t n = r->targets.n;
  cli_unit *units = kiln__cli_alloc(c, n, sizeof *units);
  int rc;

  for (size_t i = 0; i < n; i++)
    units[i] = (cli_unit){.desc = &r->program.desc,
                          .label = r->program.label,
                          .target = r->targets.list[i]};
  rc = kiln__cli_compile_units(c, units, n);
  for (size_t i = 0; i < n; i++)
    if (units[i].image != NULL && put_artifacts(c, r, &units[i]) != CLI_OK)
      rc = CLI_FAILED;
  if (r->json) {
    if (kiln__cli_json(c, kiln__cli_report_json(c, units, n), NULL) != CLI_OK)
      rc = CLI_FAILED;
  } else if (r->emit[REPORT]) {
    kiln__cli_report(c, units, n);
  }
  kiln__cli_free_units(units, n);
  return rc;
}

int kiln__cli_compile(cli *c, int argc, char **argv)
{
  static const struct option options[] = {
      {"arch", required_argument, NULL, OPT_ARCH},
      {"emit", required_argument, NULL, OPT_EMIT},
      {"output", required_argument, NULL, 'o'},
      {"list", no_argument, NULL, OPT_LIST},
      {"json", no_argument, NULL, OPT_JSON},
      {"help", no_argument, NULL, 'h'},
      CLI_PROGRAM_LONG,
      {0}};
  request *r = kiln__cli_alloc(c, 1, sizeof *r);
  int opt, rc = CLI_OK;

  kiln__cli_program_init(&r->program, c, argc);
  while (rc == CLI_OK && (opt = getopt_long(argc, argv, CLI_PROGRAM_SHORT "o:h",
                                            options, NULL)) != -1) {
    rc = kiln__cli_program_option(&r->program, c, opt, optarg);
    if (rc != -1)
      continue;
    rc = CLI_OK;
    if (opt == OPT_ARCH) {
      r->arch = kiln__cli_join(c, r->arch, optarg);
    } else if (opt == OPT_EMIT) {
      rc = parse_emit(r, c, optarg);
    } else if (opt == 'o') {
      r->output = optarg;
    } else if (opt == OPT_LIST) {
      return list_builtins(c);
    } else if (opt == OPT_JSON) {
      r->json = true;
    } else if (opt == 'h') {
      help();
      return CLI_OK;
    } else {
      return kiln__cli_usage(c, NULL);
    }
  }
  if (rc == CLI_OK && optind + 1 != argc)
    rc = kiln__cli_usage(c, "name one program: FILE.cu or builtin:NAME");
  if (rc == CLI_OK)
    rc = kiln__cli_program_open(&r->program, c, argv[optind]);
  if (rc == CLI_OK)
    rc = kiln__cli_targets(c, r->arch, &r->targets);
  if (rc == CLI_OK)
    rc = settle_output(r, c);
  return rc == CLI_OK ? run(c, r) : rc;
}
