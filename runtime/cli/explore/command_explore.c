/* command_explore.c -- `kiln explore`, which compiles a program and writes one
 * page that shows source, PTX and SASS side by side. */
#include "cli/command_run.h"
#include "cli/explore/explore_document.h"
#include "tool/page/html_page.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 200 };

/* One compile: the program with its options, for all targets. */
typedef struct compile {
  cli_program program;
  const char *nvrtc; /* library for this compile, or NULL */
  kiln_runtime *rt;  /* its runtime if that is not the command's, or NULL */
  cli_unit *units;
} compile;

typedef struct request {
  compile sides[2]; /* of the command line, and of --compare */
  unsigned n_sides;
  cli_targets targets;
  run_spec spec;
  const char *arch, *output, *other;
  bool json, run;
  unsigned threads;
  cJSON *launches; /* results of --run, or NULL */
} request;

/* ---- Command line -------------------------------------------------------- */

static int parse(cli *c, request *r, int argc, char **argv, cli_words *words)
{
  const cli_option own[] = {
      CLI_OPTION_JOINED("arch", "LIST", &r->arch,
                        "targets: sm_80,90a, or all that NVRTC compiles for; "
                        "default: the GPU of this machine"),
      {.name = "output",
       .letter = 'o',
       .kind = CLI_TEXT,
       .value = "FILE",
       .to = &r->output,
       .help = "page to write; default: the program's name with .html"},
      CLI_OPTION_TEXT("compare", "\"WORDS\"", &r->other,
                      "compile a second time and show the differences: another "
                      "file, other options (\"-D TILE=8 --fast-math\"), or "
                      "another NVRTC (\"--nvrtc FILE\")"),
      CLI_OPTION_FLAG("run", &r->run,
                      "launch the kernel on the CPU device with counters and "
                      "checks, and show them per line"),
      CLI_OPTION_NUMBER("threads", &r->threads, 1, 1024,
                        "threads per block for the occupancy; default: that of "
                        "--block, else the launch bound, else 256"),
      CLI_OPTION_FLAG("json", &r->json,
                      "write the data as JSON instead of a page; default: to "
                      "standard output"),
      CLI_OPTIONS_END};
  cli_syntax syntax = {
      .synopsis = "kiln explore FILE.cu|builtin:NAME|- [options]\n",
      .about =
          "Compiles a program and writes one page for a browser: source, PTX "
          "and SASS side by side, with live registers, control words, loops, "
          "control flow, resources and occupancy. The page needs no network. "
          "SASS needs nvdisasm; without it, the page shows PTX. Options after "
          "--run describe the launch as for `kiln run`.",
      .options = own,
      .shared = kiln__cli_run_options(c, &r->spec),
      .example = "kiln explore saxpy.cu --arch sm_80,sm_90 -o saxpy.html",
      .exit_codes = "0 success, 1 a compile or the launch failed, 2 wrong use.",
      .least = 1,
      .most = 1,
      .missing = "name one program: FILE.cu or builtin:NAME"};

  kiln__cli_program_init(&r->sides[0].program, c, argc);
  syntax.more = r->sides[0].program.table;
  return kiln__cli_parse(c, &syntax, argc, argv, words);
}

/* Parses the words of --compare, such as "b.cu -D TILE=8", and reads the
 * program. Without a file, it is the program `first`. */
static int parse_other(cli *c, request *r, const char *first)
{
  compile *b = &r->sides[1];
  const cli_option own[] = {CLI_OPTION_TEXT("nvrtc", "FILE", &b->nvrtc,
                                            "libnvrtc of the second compile"),
                            CLI_OPTIONS_END};
  cli_syntax syntax = {.synopsis = "--compare \"[FILE.cu] [options]\"\n",
                       .about = "The second compile.",
                       .options = own,
                       .most = 1};
  char *argv[MOST_WORDS + 1] = {kiln__cli_text(c, "kiln explore --compare")};
  char *rest = kiln__cli_text(c, "%s", r->other);
  cli_words words;
  int n = 1, rc;

  while (n < MOST_WORDS && (argv[n] = kiln__cli_word(&rest, " \t")) != NULL)
    n++;
  argv[n] = NULL;
  kiln__cli_program_init(&b->program, c, n);
  syntax.shared = b->program.table;
  rc = kiln__cli_parse(c, &syntax, n, argv, &words);
  if (rc == CLI_OK)
    rc = kiln__cli_program_open(&b->program, c,
                                words.n > 0 ? words.at[0] : first);
  r->n_sides = 2;
  return rc;
}

/* ---- Compiling and running ----------------------------------------------- */

/* Compiles one side. A side with an NVRTC of its own gets its own runtime. */
static int compile_side(cli *c, compile *side, const cli_targets *targets)
{
  kiln_runtime *const rt = c->rt;
  kiln_runtime_opts opts = c->opts;
  int rc;

  side->program.desc.lineinfo = true;
  side->units = kiln__cli_alloc(c, targets->n, sizeof *side->units);
  for (size_t i = 0; i < targets->n; i++)
    side->units[i] = (cli_unit){.desc = &side->program.desc,
                                .label = side->program.label,
                                .target = targets->list[i]};
  if (side->nvrtc != NULL) {
    opts.nvrtc_path = side->nvrtc;
    if (kiln_runtime_create(&side->rt, &opts) != KILN_OK)
      return kiln__cli_failure(c, side->nvrtc);
    c->rt = side->rt;
  }
  rc = kiln__cli_compile_units(c, side->units, targets->n);
  c->rt = rt;
  return rc;
}

/* Launches the kernel: on the GPU for its time, if there is one, and on the CPU
 * device for counters and findings. */
static int run(cli *c, request *r)
{
  kiln_driver_info driver;
  int rc = CLI_OK;

  r->launches = cJSON_CreateArray();
  if (!c->on_cpu && kiln_runtime_driver(c->rt, &driver) == KILN_OK &&
      driver.n_devices > 0)
    rc = kiln__cli_run_recorded(c, &r->sides[0].program, &r->spec, false,
                                r->launches);
  if (rc == CLI_OK)
    rc = kiln__cli_run_recorded(c, &r->sides[0].program, &r->spec, true,
                                r->launches);
  return rc;
}

/* ---- Writing ------------------------------------------------------------- */

static unsigned threads_of(const request *r)
{
  if (r->threads > 0)
    return r->threads;
  if (r->spec.block.x == 0)
    return 0;
  return r->spec.block.x * r->spec.block.y * r->spec.block.z;
}

static cJSON *make_document(cli *c, request *r, size_t *kernels)
{
  const explore_setting setting = {.program = r->sides[0].program.label,
                                   .kernel = r->spec.kernel,
                                   .threads = threads_of(r),
                                   .shared = r->spec.shared};
  explore_document *d = kiln__explore_document(c, &setting);

  for (unsigned side = 0; side < r->n_sides; side++)
    for (size_t i = 0; i < r->targets.n; i++)
      if (r->sides[side].units[i].image != NULL)
        kiln__explore_add_image(d, &r->sides[side].units[i], (int)side);
  kiln__explore_add_differences(d);
  if (r->launches != NULL)
    kiln__explore_add_heat(d, r->launches);
  *kernels = kiln__explore_kernels(d);
  return kiln__explore_json(d);
}

/* Returns "scan.html" for "dir/scan.cu". */
static const char *default_output(cli *c, const char *label)
{
  const char *slash = strrchr(label, '/');
  const char *base = slash == NULL ? label : slash + 1;
  const char *dot = strrchr(base, '.');

  return kiln__cli_text(
      c, "%.*s.html",
      (int)(dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base)),
      base);
}

static int write_page(cli *c, const request *r, const char *json)
{
  const char *label = r->sides[0].program.label;
  const char *path = r->output != NULL ? r->output : default_output(c, label);
  size_t size;
  char *page = kiln__html_page(
      c, "explore", kiln__cli_text(c, "%s - kiln explore", label), json, &size);
  int rc = page == NULL ? CLI_FAILED : CLI_OK;

  if (rc == CLI_OK && strcmp(path, "-") == 0)
    fwrite(page, 1, size, stdout);
  else if (rc == CLI_OK)
    rc = kiln__cli_write(c, path, page, size);
  if (rc == CLI_OK && strcmp(path, "-") != 0)
    fprintf(stderr, "wrote %s, %s; open it in a browser\n", path,
            kiln__cli_bytes(c, size));
  free(page);
  return rc;
}

static int write_document(cli *c, request *r)
{
  size_t kernels;
  cJSON *document = make_document(c, r, &kernels);
  char *json;
  int rc;

  if (kernels == 0) {
    cJSON_Delete(document);
    kiln__cli_message(c, "a template needs --name; kiln compile lists kernels",
                      "%s has no kernel%s%s", r->sides[0].program.label,
                      r->spec.kernel != NULL ? " named " : "",
                      r->spec.kernel != NULL ? r->spec.kernel : "");
    return CLI_FAILED;
  }
  if (r->json)
    return kiln__cli_json_compact(c, document, r->output);
  json = kiln__cli_json_text(document);
  cJSON_Delete(document);
  if (json == NULL) {
    kiln__cli_message(c, NULL, "there is no memory to write the page");
    return CLI_FAILED;
  }
  rc = write_page(c, r, json);
  free(json);
  return rc;
}

/* ---- The command --------------------------------------------------------- */

static int explore(cli *c, request *r)
{
  int rc = r->run ? run(c, r) : CLI_OK;
  size_t made = 0;

  if (rc == CLI_USAGE)
    return rc;
  for (unsigned side = 0; side < r->n_sides; side++) {
    if (compile_side(c, &r->sides[side], &r->targets) != CLI_OK)
      rc = CLI_FAILED;
    for (size_t i = 0; i < r->targets.n; i++)
      made += r->sides[side].units[i].image != NULL ? 1 : 0;
  }
  if (made > 0 && write_document(c, r) != CLI_OK)
    rc = CLI_FAILED;
  for (unsigned side = 0; side < r->n_sides; side++) {
    kiln__cli_free_units(r->sides[side].units, r->targets.n);
    if (r->sides[side].rt != NULL)
      kiln_runtime_free(r->sides[side].rt);
  }
  return rc;
}

int kiln__cli_explore(cli *c, int argc, char **argv)
{
  request *r = kiln__cli_alloc(c, 1, sizeof *r);
  cli_words words;
  int rc;

  r->n_sides = 1;
  rc = parse(c, r, argc, argv, &words);
  if (rc == CLI_OK)
    rc = kiln__cli_program_open(&r->sides[0].program, c, words.at[0]);
  if (rc == CLI_OK && r->other != NULL)
    rc = parse_other(c, r, words.at[0]);
  if (rc == CLI_OK)
    rc = kiln__cli_targets(c, r->arch, &r->targets);
  return rc == CLI_OK ? explore(c, r) : rc;
}
