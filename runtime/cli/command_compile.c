/* command_compile.c -- `kiln compile`, which compiles a program for several
 * targets in parallel and writes PTX, CUBIN, SASS, line tables or a report of
 * resources. */
#include "cli/command_compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum artifact { PTX, CUBIN, SASS, LINES, REPORT, N_ARTIFACTS } artifact;

static const char *const artifact_names[] = {"ptx", "cubin", "sass", "lines",
                                             "report"};

typedef struct request {
  cli_program program;
  cli_targets targets;
  const char *arch, *output, *tool;
  bool emit[N_ARTIFACTS];
  bool json, list;
} request;

/* ---- Compiling ---------------------------------------------------------- */

/* Keeps the latest complete compiler log. Callback for
 * kiln_program_desc.on_log. */
static void keep_log(void *user, const char *text, size_t size)
{
  cli_unit *unit = user;

  free(unit->log);
  unit->log = strndup(text, size);
}

/* Returns whether a line of the assembler's log is about resources, which
 * the report prints anyway. */
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

/* Prints the compiler's messages to stderr. Targets usually have the same
 * messages, so a log that equals the previous target's log is not printed
 * again. */
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

/* Prints "saxpy.cu for sm_90: MESSAGE", the log and the next step. The next
 * step "correct the source" is left out, since the log makes it obvious. */
static void show_failure(const cli *c, const cli_unit *unit,
                         const cli_unit *previous)
{
  const kiln_error *e = kiln_last_error();
  const bool log = unit->status == KILN_ECOMPILE && unit->log != NULL;
  const bool plain = log && strncmp(e->hint, "correct the source", 18) == 0;
  const bool again = log && same_log(unit, previous);
  char target[24];

  kiln_target_text(&unit->target, target);
  kiln__cli_message(c, NULL, "%s for %s: %s", unit->label, target,
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

/* Returns whether -o names a folder: "dir/", or a folder that exists. */
static bool is_folder(const char *path)
{
  const size_t n = strlen(path);
  struct stat info;

  return (n > 0 && path[n - 1] == '/') ||
         (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* Returns the file name of an output file: the name given by -o, or
 * "folder/saxpy.sm_90.ptx". */
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

/* Writes an output (PTX, CUBIN, SASS, line tables) to its file or to stdout. On stdout, a
 * heading separates the targets. */
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

static int put_sass(cli *c, const request *r, const cli_unit *unit)
{
  char *text = kiln__cli_disassemble(c, r->tool, unit->image);
  int rc = CLI_FAILED;

  if (text != NULL)
    rc = put(c, r, unit, SASS, text, strlen(text));
  kiln_text_free(c->rt, text);
  return rc;
}

static int put_lines(cli *c, const request *r, const cli_unit *unit)
{
  char *text = kiln__cli_lines_json(c, unit->image);
  int rc = CLI_FAILED;

  if (text != NULL)
    rc = put(c, r, unit, LINES, text, strlen(text));
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
    kiln__cli_message(c, "use an sm_ target instead of compute_",
                      "%s is PTX only: no machine code was made",
                      kiln_target_text(&unit->target, text));
    return CLI_FAILED;
  }
  if (r->emit[PTX] && put(c, r, unit, PTX, ptx, ptx_size) != CLI_OK)
    return CLI_FAILED;
  if (r->emit[CUBIN] && put(c, r, unit, CUBIN, cubin, cubin_size) != CLI_OK)
    return CLI_FAILED;
  if (r->emit[SASS] && put_sass(c, r, unit) != CLI_OK)
    return CLI_FAILED;
  return r->emit[LINES] ? put_lines(c, r, unit) : CLI_OK;
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
    kiln__cli_cells(&t, "builtin:%s\t%zu\t%zu", list[i].name, list[i].size,
                    count);
  }
  kiln__cli_table_print(&t, 0);
  return CLI_OK;
}

static int take_emit(cli *c, void *to, const char *value)
{
  bool *emit = to;
  char *word, *rest = kiln__cli_text(c, "%s", value);

  while ((word = kiln__cli_word(&rest, ",")) != NULL) {
    size_t i = 0;

    while (i < N_ARTIFACTS && strcmp(word, artifact_names[i]) != 0)
      i++;
    if (i == N_ARTIFACTS)
      return kiln__cli_usage(c,
                             "--emit takes ptx, cubin, sass, lines and "
                             "report, not \"%s\"",
                             word);
    emit[i] = true;
  }
  return CLI_OK;
}

/* Returns the kind of output that the name of a file asks for. */
static artifact kind_of(const char *path)
{
  const char *dot = path == NULL ? NULL : strrchr(path, '.');

  if (path == NULL)
    return REPORT;
  for (artifact i = PTX; dot != NULL && i < REPORT; i++)
    if (strcmp(dot + 1, artifact_names[i]) == 0)
      return i;
  return CUBIN;
}

/* Completes the settings that -o and --emit leave open: the kind of output
 * from the file's extension, the folder, and the disassembler. The function
 * runs before the compilation, so that an error is reported immediately. */
static int settle_output(request *r, cli *c)
{
  size_t files = 0;

  for (size_t i = 0; i < REPORT; i++)
    files += r->emit[i] ? r->targets.n : 0;
  if (files == 0) {
    r->emit[kind_of(r->output)] = true;
    files = r->output == NULL ? 0 : r->targets.n;
  }
  if (r->output != NULL && files > 1 && strcmp(r->output, "-") != 0 &&
      !is_folder(r->output))
    return kiln__cli_usage(c,
                           "-o %s is one file, but there are %zu to write; "
                           "give a folder: -o %s/",
                           r->output, files, r->output);
  if (r->output != NULL && is_folder(r->output) &&
      mkdir(r->output, 0777) != 0 && errno != EEXIST) {
    kiln__cli_message(c, NULL, "cannot create the folder '%s': %s", r->output,
                      strerror(errno));
    return CLI_FAILED;
  }
  if (r->emit[CUBIN] && r->output == NULL && isatty(STDOUT_FILENO))
    return kiln__cli_usage(c, "a CUBIN is binary: name a file with -o");
  if (r->emit[SASS]) {
    r->tool = kiln__cli_disassembler(c);
    if (r->tool == NULL)
      return kiln__cli_failure(c, NULL);
  }
  if (r->emit[LINES])
    r->program.desc.lineinfo = true;
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
    if (kiln__cli_json(c, kiln__cli_units_json(c, units, n), NULL) != CLI_OK)
      rc = CLI_FAILED;
  } else if (r->emit[REPORT]) {
    kiln__cli_print_units(c, units, n);
  }
  kiln__cli_free_units(units, n);
  return rc;
}

int kiln__cli_compile(cli *c, int argc, char **argv)
{
  request *r = kiln__cli_alloc(c, 1, sizeof *r);
  const cli_option options[] = {
      CLI_OPTION_JOINED("arch", "LIST", &r->arch,
                        "targets: sm_80,90a,compute_75, or all that NVRTC "
                        "compiles for; default: the GPU of this machine"),
      CLI_OPTION_TAKEN("emit", "LIST", take_emit, r->emit,
                       "ptx, cubin, sass, lines (line tables as JSON, with "
                       "--lineinfo), report; default: report"),
      {.name = "output",
       .letter = 'o',
       .kind = CLI_TEXT,
       .value = "PATH",
       .to = &r->output,
       .help = "write to a file, or to a folder/ for several "
               "files"},
      CLI_OPTION_FLAG("json", &r->json, "print the report as JSON"),
      CLI_OPTION_FLAG("list", &r->list, "list the embedded programs"),
      CLI_OPTIONS_END};
  cli_syntax syntax = {
      .synopsis = "kiln compile FILE.cu|builtin:NAME|- [options]\n"
                  "       kiln compile --list\n",
      .about = "Compiles a program for one or more targets; needs no GPU. "
               "Prints a report of each kernel's resources, with the occupancy "
               "of an SM for blocks of 128 to 1024 threads.",
      .options = options,
      .example = "kiln compile saxpy.cu --arch sm_80,sm_90 --emit ptx -o out/",
      .most = 1};
  cli_words words;
  int rc;

  kiln__cli_program_init(&r->program, c, argc);
  syntax.shared = r->program.table;
  rc = kiln__cli_parse(c, &syntax, argc, argv, &words);
  if (rc == CLI_OK && r->list)
    return list_builtins(c);
  if (rc == CLI_OK && words.n == 0)
    rc = kiln__cli_usage(c, "name one program: FILE.cu or builtin:NAME");
  if (rc == CLI_OK)
    rc = kiln__cli_program_open(&r->program, c, words.at[0]);
  if (rc == CLI_OK)
    rc = kiln__cli_targets(c, r->arch, &r->targets);
  if (rc == CLI_OK)
    rc = settle_output(r, c);
  return rc == CLI_OK ? run(c, r) : rc;
}
