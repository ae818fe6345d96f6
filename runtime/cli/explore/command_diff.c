/* command_diff.c -- `kiln diff`, which compares the machine code of two compiles
 * per source line. */
#include "cli/command_compile.h"
#include "cli/explore/diff_report.h"

#include <string.h>

typedef struct request {
  cli_program program[2];
  const char *arch[2];
  const char *nvrtc; /* NVRTC of side B, or NULL */
  const char *kernel;
  bool json, all;
  cli_unit unit[2];
  /* Runtime of side B if another NVRTC compiles it, or NULL. It must outlive
   * the image of B. */
  kiln_runtime *other;
} request;

/* Options that mean the same before and after --against. */
#define COMMON_OPTIONS(r)                                                      \
  CLI_OPTION_TEXT("kernel", "NAME", &(r)->kernel, "compare only this kernel"), \
      CLI_OPTION_FLAG("all", &(r)->all,                                        \
                      "print all lines that differ, not the first 20 per "     \
                      "kernel; with --json also the equal lines"),             \
      CLI_OPTION_FLAG("json", &(r)->json, "print JSON")

/* ---- Sides --------------------------------------------------------------- */

/* Describes a program and those options that change its code. */
static const char *describe(cli *c, const cli_program *p)
{
  const kiln_program_desc *d = &p->desc;
  const char *text =
      kiln__cli_text(c, "%s%s", d->builtin == NULL ? "" : "builtin:", p->label);

  for (size_t i = 0; i < d->n_defines; i++)
    text = kiln__cli_text(c, "%s -D %s", text, d->defines[i]);
  for (size_t i = 0; i < d->n_traits; i++)
    text = kiln__cli_text(c, "%s --trait %s", text, d->traits[i]);
  for (size_t i = 0; i < d->n_options; i++)
    text = kiln__cli_text(c, "%s %s", text, d->options[i]);
  return kiln__cli_text(
      c, "%s%s%s%s%s", text, d->fast_math ? " --fast-math" : "",
      d->fast_compile ? " --fast-compile" : "", d->debug ? " --debug" : "",
      d->max_registers == 0
          ? ""
          : kiln__cli_text(c, " --maxrregcount %d", (int)d->max_registers));
}

/* Compiles side B by another NVRTC, in a runtime of its own. */
static int compile_other(cli *c, request *r)
{
  kiln_runtime *const rt = c->rt;
  kiln_runtime_opts opts = c->opts;
  int rc;

  opts.nvrtc_path = r->nvrtc;
  if (kiln_runtime_create(&r->other, &opts) != KILN_OK)
    return kiln__cli_failure(c, "--against-nvrtc");
  c->rt = r->other;
  rc = kiln__cli_compile_units(c, &r->unit[1], 1);
  c->rt = rt;
  return rc;
}

static int compile_sides(cli *c, request *r)
{
  int rc;

  if (r->nvrtc == NULL)
    return kiln__cli_compile_units(c, r->unit, 2);
  rc = kiln__cli_compile_units(c, r->unit, 1);
  return rc == CLI_OK ? compile_other(c, r) : rc;
}

/* ---- Kernels ------------------------------------------------------------- */

static bool wanted(cli *c, const request *r, const char *name)
{
  return r->kernel == NULL || strcmp(r->kernel, name) == 0 ||
         strcmp(r->kernel, kiln__cli_plain_name(c, name)) == 0;
}

static const sass_kernel *kernel_of(const sass_model *m, size_t i)
{
  for (uint32_t k = 0; m != NULL && k < m->n_kernels; k++)
    if (m->kernels[k].resources == (int32_t)i)
      return &m->kernels[k];
  return NULL;
}

/* Finds the kernel of image B that corresponds to a kernel of A: the one with
 * the same name, otherwise the only one with the same plain name. Returns false
 * if there is none. */
static bool find_counterpart(cli *c, const kiln_image *b, const char *name,
                             size_t *out)
{
  const char *plain = kiln__cli_plain_name(c, name);
  size_t n = 0;

  for (size_t i = 0; i < kiln_image_kernels(b); i++) {
    kiln_resources r;

    if (kiln_image_resources(b, i, &r) != KILN_OK)
      continue;
    if (strcmp(r.name, name) == 0) {
      *out = i;
      return true;
    }
    if (strcmp(kiln__cli_plain_name(c, r.name), plain) == 0) {
      *out = i;
      n++;
    }
  }
  return n == 1;
}

static diff_kernel compare(cli *c, const request *r,
                           const sass_model *const models[2],
                           const size_t at[2])
{
  diff_kernel k = {.name = NULL};

  for (int i = 0; i < 2; i++) {
    if (at[i] == SIZE_MAX)
      continue;
    kiln_image_resources(r->unit[i].image, at[i], &k.resources[i]);
    k.name = kiln__cli_plain_name(c, k.resources[i].name);
    k.side[i] =
        (sass_side){models[i], kernel_of(models[i], at[i]), r->unit[i].image};
  }
  if (k.side[0].kernel != NULL && k.side[1].kernel != NULL)
    k.lines = kiln__sass_compare(c, k.side[0], k.side[1]);
  return k;
}

/* Compares all kernels: those of A, then those that only B has. */
static void compare_kernels(cli *c, const request *r,
                            const sass_model *const models[2], diff_result *out)
{
  const kiln_image *a = r->unit[0].image, *b = r->unit[1].image;
  const size_t n = kiln_image_kernels(a), m = kiln_image_kernels(b);
  diff_kernel *list = kiln__cli_alloc(c, n + m, sizeof *list);
  bool *seen = kiln__cli_alloc(c, m, sizeof *seen);
  kiln_resources known;

  for (size_t i = 0; i < n + m; i++) {
    size_t at[2] = {i < n ? i : SIZE_MAX, i < n ? SIZE_MAX : i - n};

    if (kiln_image_resources(i < n ? a : b, i < n ? i : i - n, &known) !=
            KILN_OK ||
        !wanted(c, r, known.name) || (i >= n && seen[i - n]))
      continue;
    if (i < n && find_counterpart(c, b, known.name, &at[1]))
      seen[at[1]] = true;
    else if (i < n)
      at[1] = SIZE_MAX;
    list[out->n++] = compare(c, r, models, at);
  }
  out->kernels = list;
}

/* ---- The command --------------------------------------------------------- */

static int report(cli *c, const request *r)
{
  const sass_model *models[2] = {NULL, NULL};
  diff_result out = {.n = 0};
  int rc = CLI_OK;

  for (int i = 0; i < 2; i++) {
    const char *why, *next;

    out.how[i] = describe(c, &r->program[i]);
    out.target[i] = kiln_image_target(r->unit[i].image);
    out.nvrtc[i] = kiln_image_nvrtc(r->unit[i].image);
    models[i] = kiln__sass_model(c, r->unit[i].image, &why, &next);
    if (models[i] == NULL && rc == CLI_OK) {
      kiln__cli_message(c, next, "only resources are compared: %s", why);
      rc = CLI_FAILED;
    }
  }
  compare_kernels(c, r, models, &out);
  if (out.n == 0) {
    kiln__cli_message(c, NULL,
                      r->kernel == NULL ? "the programs contain no kernels; a "
                                          "template needs --name"
                                        : "neither program has a kernel '%s'",
                      r->kernel);
    return CLI_FAILED;
  }
  if (!r->json)
    kiln__diff_print(c, &out, r->all ? UINT32_MAX : 20);
  else if (kiln__cli_json(c, kiln__diff_json(c, &out, r->all), NULL) != CLI_OK)
    rc = CLI_FAILED;
  return rc;
}

/* Determines the targets: one target for both sides, or one for each. */
static int settle_targets(cli *c, request *r)
{
  cli_targets t[2];
  int rc = kiln__cli_targets(c, r->arch[0], &t[0]);

  if (rc == CLI_OK && r->arch[1] != NULL)
    rc = kiln__cli_targets(c, r->arch[1], &t[1]);
  else
    t[1] = t[0];
  if (rc != CLI_OK)
    return rc;
  if (t[0].n > 2 || (r->arch[1] != NULL && (t[0].n > 1 || t[1].n > 1)))
    return kiln__cli_usage(c, "--arch takes one target per side, or two "
                              "targets to compare");
  for (size_t i = 0; i < 2; i++) {
    r->program[i].desc.lineinfo = true;
    r->unit[i] = (cli_unit){.desc = &r->program[i].desc,
                            .label = r->program[i].label,
                            .target = t[i].list[i < t[i].n ? i : 0]};
  }
  return CLI_OK;
}

/* Gives side B the options of side A. kiln__cli_program_open() appends options,
 * so each side has an array of its own. */
static void copy_options(cli_program *to, const cli_program *from)
{
  const char **const options = to->options;
  const cli_option *const table = to->table;

  memcpy(options, from->options, from->desc.n_options * sizeof *options);
  *to = *from;
  to->options = options;
  to->desc.options = options;
  to->table = table;
}

/* Parses the words of side B, which follow --against, or copies side A. Opens
 * both programs. */
static int parse_other(cli *c, request *r, const cli_words *words, int argc,
                       char **argv)
{
  const cli_option options[] = {
      CLI_OPTION_JOINED("arch", "TARGET", &r->arch[1], "target of B"),
      COMMON_OPTIONS(r), CLI_OPTIONS_END};
  const cli_syntax syntax = {
      .synopsis = "kiln diff A [options of A] --against [B] [options of B]\n",
      .about = "Options after --against describe B, whose program is A's "
               "unless another one is named.",
      .options = options,
      .shared = r->program[1].table,
      .most = 1};
  cli_words other = {0};
  int rc = CLI_OK;

  if (argc == 0)
    copy_options(&r->program[1], &r->program[0]);
  else if (words->n > 1)
    rc = kiln__cli_usage(c, "name B before --against or after it, not both");
  else
    rc = kiln__cli_parse(c, &syntax, argc, argv, &other);
  if (rc == CLI_OK)
    rc = kiln__cli_program_open(&r->program[0], c, words->at[0]);
  if (rc != CLI_OK)
    return rc;
  return kiln__cli_program_open(
      &r->program[1], c, other.n > 0 ? other.at[0] : words->at[words->n - 1]);
}

/* Returns the position of --against, or argc. */
static int find_against(int argc, char **argv)
{
  int i = 1;

  while (i < argc && strcmp(argv[i], "--against") != 0)
    i++;
  return i;
}

static int run(cli *c, request *r)
{
  int rc = settle_targets(c, r);

  if (rc == CLI_OK)
    rc = compile_sides(c, r);
  if (rc == CLI_OK)
    rc = report(c, r);
  kiln__cli_free_units(r->unit, 2);
  kiln_runtime_free(r->other);
  return rc;
}

int kiln__cli_diff(cli *c, int argc, char **argv)
{
  request *r = kiln__cli_alloc(c, 1, sizeof *r);
  const cli_option options[] = {
      CLI_OPTION_JOINED("arch", "LIST", &r->arch[0],
                        "target of both sides, or two targets to compare: "
                        "sm_80,sm_90"),
      CLI_OPTION_TEXT("against-nvrtc", "FILE", &r->nvrtc,
                      "compile B by this libnvrtc"),
      COMMON_OPTIONS(r), CLI_OPTIONS_END};
  const int against = find_against(argc, argv);
  cli_syntax syntax = {
      .synopsis = "kiln diff A [B] [options] [--against [B] [options of B]]\n",
      .about =
          "Compares the machine code of two compiles per source line: "
          "instructions, issue slots, live registers, opcodes and resources. "
          "A and B are FILE.cu or builtin:NAME. The compiles differ in the "
          "program, in the target, in NVRTC, or in the options: those after "
          "--against describe B, whose program is A's unless another one is "
          "named. Without --against, both sides have the same options. Needs "
          "nvdisasm.",
      .options = options,
      .example = "kiln diff scan.cu -D TILE=4 --against -D TILE=8 --fast-math",
      .least = 1,
      .most = 2,
      .missing = "name a program: FILE.cu or builtin:NAME"};
  char *const end = argv[against];
  cli_words words = {0};
  int rc;

  kiln__cli_program_init(&r->program[0], c, argc);
  kiln__cli_program_init(&r->program[1], c, argc);
  syntax.shared = r->program[0].table;
  argv[against] = NULL;
  rc = kiln__cli_parse(c, &syntax, against, argv, &words);
  if (end != NULL)
    argv[against] = argv[0];
  if (rc == CLI_OK && end == NULL && words.n == 1 && r->nvrtc == NULL &&
      (r->arch[0] == NULL || strchr(r->arch[0], ',') == NULL))
    rc = kiln__cli_usage(c, "nothing to compare: name a second program, two "
                            "targets (--arch sm_80,sm_90), --against-nvrtc, or "
                            "options after --against");
  if (rc == CLI_OK)
    rc = parse_other(c, r, &words, argc - against, argv + against);
  return rc == CLI_OK ? run(c, r) : rc;
}
