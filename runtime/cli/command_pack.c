/* command_pack.c -- `kiln pack`: pre-built kernels in one file. */
#include "command_compile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPT_ARCH = CLI_OPT_OWN };

/* One program with the options it is compiled with; targets come later. */
typedef struct item {
  const kiln_program_desc *desc;
  const char *label;
  int min_cc;
} item;

typedef struct pack_args {
  cli *c;
  cli_program shared; /* options given to the command: for every program */
  const char *arch, *output;
  item *items;
  size_t n, room;
} pack_args;

static void help(void)
{
  fputs(
      "usage: kiln pack LIST... -o FILE [options]\n\n"
      "Compiles programs for many GPUs and writes one read-only file that "
      "serves them\nwhere there is no NVRTC; name it in KILN_PACKS or in "
      "kiln_runtime_opts.packs.\n\n"
      "LIST is cache: whatever the cache folder holds, as an application left "
      "it there;\nor any of:\n"
      "  all                 every shipped variant of every embedded "
      "program\n"
      "  NAME                every shipped variant of one: reduce\n"
      "  FILE.cu             a program of yours\n"
      "  FILE                a text with one program a line, each with its "
      "options:\n"
      "                        scale.cu -D T=float --name 'scale<float>'\n"
      "                      files are looked for beside the text\n\n"
      "  --arch LIST|all     GPUs to build for; default: all that NVRTC "
      "knows\n"
      "  -o PATH             the pack\n",
      stdout);
  fputs(kiln__cli_program_help, stdout);
}

static void add_item(pack_args *a, const kiln_program_desc *desc,
                     const char *label, int min_cc)
{
  if (a->n == a->room) {
    const size_t room = a->room == 0 ? 64 : 2 * a->room;
    item *items = kiln__cli_alloc(a->c, room, sizeof *items);

    if (a->n > 0)
      memcpy(items, a->items, a->n * sizeof *items);
    a->items = items;
    a->room = room;
  }
  a->items[a->n++] = (item){desc, label, min_cc};
}

/* ---- What to pack ------------------------------------------------------- */

static size_t count_texts(const char *const *list)
{
  size_t n = 0;

  while (list != NULL && list[n] != NULL)
    n++;
  return n;
}

/* A shipped variant, with the command's own options kept but for defines,
 * traits and names: those belong to the variant. */
static void add_variant(pack_args *a, const kiln_variant *v)
{
  kiln_program_desc *desc = kiln__cli_alloc(a->c, 1, sizeof *desc);

  *desc = a->shared.desc;
  desc->builtin = v->builtin;
  desc->defines = v->defines;
  desc->n_defines = count_texts(v->defines);
  desc->traits = v->traits;
  desc->n_traits = count_texts(v->traits);
  desc->names = v->names;
  desc->n_names = count_texts(v->names);
  add_item(a, desc, kiln__cli_text(a->c, "%s (%s)", v->builtin, v->label),
           v->min_cc);
}

/* Every variant of a builtin, of all for NULL. @return whether there was one.
 */
static bool add_variants(pack_args *a, const char *builtin)
{
  size_t n;
  const kiln_variant *list = kiln_variant_list(&n);
  const size_t before = a->n;

  for (size_t i = 0; i < n; i++)
    if (builtin == NULL || strcmp(list[i].builtin, builtin) == 0)
      add_variant(a, &list[i]);
  return a->n > before;
}

static bool is_builtin(const char *name)
{
  size_t n;
  const kiln_builtin *list = kiln_builtin_list(&n);

  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i].name, name) == 0)
      return true;
  return false;
}

static int add_program(pack_args *a, cli_program *p, const char *what)
{
  kiln_program_desc *desc;

  if (kiln__cli_program_open(p, a->c, what) != CLI_OK)
    return CLI_FAILED;
  desc = kiln__cli_alloc(a->c, 1, sizeof *desc);
  *desc = p->desc;
  add_item(a, desc, p->label, 0);
  return CLI_OK;
}

/* Cut a line into words at blanks; '...' and "..." keep blanks. In place. */
static int split_words(char *line, char **words, int room)
{
  int n = 0;

  while (n < room) {
    char *out = line + strspn(line, " \t\r");
    char quote = '\0';

    line = out;
    if (*line == '\0' || *line == '#')
      break;
    words[n++] = out;
    for (; *line != '\0' && (quote != '\0' || strchr(" \t\r", *line) == NULL);
         line++) {
      if (quote == '\0' && (*line == '\'' || *line == '"'))
        quote = *line;
      else if (*line == quote)
        quote = '\0';
      else
        *out++ = *line;
    }
    if (*line != '\0')
      line++;
    *out = '\0';
  }
  return n;
}

/* One line of a list: PROGRAM and its options. */
static int add_line(pack_args *a, const char *list, int number, char *line)
{
  enum { ROOM = 128 };
  static const struct option options[] = {CLI_PROGRAM_LONG, {0}};
  char **words = kiln__cli_alloc(a->c, ROOM + 2, sizeof *words);
  cli_program *p = kiln__cli_alloc(a->c, 1, sizeof *p);
  const char *slash = strrchr(list, '/');
  int n, opt;

  words[0] = kiln__cli_text(a->c, "%s:%d", list, number);
  n = 1 + split_words(line, words + 1, ROOM);
  if (n == 1)
    return CLI_OK;
  kiln__cli_program_init(p, a->c, n);
  optind = 0; /* start over: getopt remembers where it was */
  while ((opt = getopt_long(n, words, CLI_PROGRAM_SHORT, options, NULL)) != -1)
    if (kiln__cli_program_option(p, a->c, opt, optarg) != CLI_OK)
      return kiln__cli_usage(a->c, "%s: a bad option", words[0]);
  if (optind + 1 != n)
    return kiln__cli_usage(a->c, "%s: one program a line, please", words[0]);
  if (words[optind][0] == '/' || strncmp(words[optind], "builtin:", 8) == 0 ||
      slash == NULL)
    return add_program(a, p, words[optind]);
  return add_program(a, p,
                     kiln__cli_text(a->c, "%.*s/%s", (int)(slash - list), list,
                                    words[optind]));
}

static int add_list(pack_args *a, const char *path)
{
  size_t size;
  char *text = kiln__cli_read(a->c, path, &size);
  int rc = text == NULL ? CLI_FAILED : CLI_OK;
  int number = 1;

  while (rc == CLI_OK && *text != '\0') {
    const size_t n = strcspn(text, "\n");
    const bool last = text[n] == '\0';

    text[n] = '\0';
    rc = add_line(a, path, number++, text);
    text += last ? n : n + 1;
  }
  return rc;
}

static int add_word(pack_args *a, const char *word)
{
  const size_t n = strlen(word);
  const char *name = strncmp(word, "builtin:", 8) == 0 ? word + 8 : word;
  cli_program *p;

  if (strcmp(word, "all") == 0) {
    add_variants(a, NULL);
    return CLI_OK;
  }
  if (is_builtin(name)) {
    if (a->shared.desc.n_defines + a->shared.desc.n_names == 0 &&
        add_variants(a, name))
      return CLI_OK;
    name = kiln__cli_text(a->c, "builtin:%s", name);
  } else if (n > 3 && strcmp(word + n - 3, ".cu") == 0) {
    name = word;
  } else if (name != word) {
    kiln__cli_say(a->c, "kiln compile --list", "no embedded program \"%s\"",
                  name);
    return CLI_FAILED;
  } else {
    return add_list(a, word);
  }
  p = kiln__cli_alloc(a->c, 1, sizeof *p);
  *p = a->shared;
  return add_program(a, p, name);
}

/* ---- Building ----------------------------------------------------------- */

static int write_pack(pack_args *a, const cli_unit *units, size_t n)
{
  kiln_image **images = kiln__cli_alloc(a->c, n, sizeof(kiln_image *));
  struct stat info = {0};
  size_t compiled = 0;

  for (size_t i = 0; i < n; i++) {
    images[i] = units[i].image;
    compiled += kiln_image_origin(units[i].image) == KILN_FROM_COMPILER ? 1 : 0;
  }
  if (kiln_pack_write(a->c->rt, a->output, images, n) != KILN_OK)
    return kiln__cli_failure(a->c, NULL);
  stat(a->output, &info);
  printf("%s: %zu image%s of %zu program%s, %s; %zu compiled, %zu from the "
         "cache\n",
         a->output, n, n == 1 ? "" : "s", a->n, a->n == 1 ? "" : "s",
         kiln__cli_bytes(a->c, (uint64_t)info.st_size), compiled, n - compiled);
  printf("next: KILN_PACKS=%s, or kiln_runtime_opts.packs\n", a->output);
  return CLI_OK;
}

static int build(pack_args *a, const cli_targets *targets)
{
  cli_unit *units = kiln__cli_alloc(a->c, a->n * targets->n, sizeof *units);
  size_t n = 0;
  int rc;

  for (size_t i = 0; i < a->n; i++)
    for (size_t k = 0; k < targets->n; k++)
      if (targets->list[k].cc >= a->items[i].min_cc)
        units[n++] = (cli_unit){.desc = a->items[i].desc,
                                .label = a->items[i].label,
                                .target = targets->list[k]};
  if (n == 0) {
    kiln__cli_say(a->c, "choose other GPUs with --arch",
                  "nothing to pack for these GPUs");
    return CLI_FAILED;
  }
  rc = kiln__cli_compile_units(a->c, units, n);
  if (rc == CLI_OK)
    rc = write_pack(a, units, n);
  else
    kiln__cli_say(a->c, NULL, "no pack was written");
  kiln__cli_free_units(units, n);
  return rc;
}

static int pack_cache(const pack_args *a)
{
  struct stat info = {0};
  size_t n;

  if (kiln_pack_cache(a->c->rt, a->output, &n) != KILN_OK)
    return kiln__cli_failure(a->c, NULL);
  stat(a->output, &info);
  printf("%s: %zu image%s, as the cache has them, %s\n", a->output, n,
         n == 1 ? "" : "s", kiln__cli_bytes(a->c, (uint64_t)info.st_size));
  printf("next: KILN_PACKS=%s, or kiln_runtime_opts.packs\n", a->output);
  return CLI_OK;
}

int kiln__cli_pack(cli *c, int argc, char **argv)
{
  static const struct option options[] = {
      {"arch", required_argument, NULL, OPT_ARCH},
      {"output", required_argument, NULL, 'o'},
      {"help", no_argument, NULL, 'h'},
      CLI_PROGRAM_LONG,
      {0}};
  pack_args *a = kiln__cli_alloc(c, 1, sizeof *a);
  cli_targets targets;
  int opt, first, rc = CLI_OK;

  a->c = c;
  kiln__cli_program_init(&a->shared, c, argc);
  while ((opt = getopt_long(argc, argv, CLI_PROGRAM_SHORT "o:h", options,
                            NULL)) != -1) {
    rc = kiln__cli_program_option(&a->shared, c, opt, optarg);
    if (rc == CLI_USAGE)
      return rc;
    if (rc == CLI_OK)
      continue;
    if (opt == OPT_ARCH) {
      a->arch = kiln__cli_join(c, a->arch, optarg);
    } else if (opt == 'o') {
      a->output = optarg;
    } else if (opt == 'h') {
      help();
      return CLI_OK;
    } else {
      return kiln__cli_usage(c, NULL);
    }
  }
  if (optind == argc)
    return kiln__cli_usage(c, "pack what? all, NAME, FILE.cu or a list");
  if (a->output == NULL)
    return kiln__cli_usage(c, "name the pack with -o");
  if (strcmp(argv[optind], "cache") == 0)
    return optind + 1 == argc && a->arch == NULL
               ? pack_cache(a)
               : kiln__cli_usage(c, "cache stands alone: its images are made");
  first = optind; /* lists are read with getopt too */
  for (int i = first; i < argc; i++) {
    rc = add_word(a, argv[i]);
    if (rc != CLI_OK)
      return rc;
  }
  rc = kiln__cli_targets(c, a->arch != NULL ? a->arch : "all", &targets);
  return rc == CLI_OK ? build(a, &targets) : rc;
}
