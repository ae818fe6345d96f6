/* command_pack.c -- `kiln pack`, which compiles programs for many targets
 * and writes one pack file. Machines without NVRTC can load the programs
 * from this file. */
#include "cli/command_compile.h"
#include "cli/pack_ops.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One program with its compile options. The program is compiled for every
 * target that it supports. */
typedef struct item {
  const kiln_program_desc *desc;
  const char *label;
  int min_cc;
} item;

typedef struct pack_args {
  cli *c;
  /* Options of the command line that apply to every program. */
  cli_program shared;
  const char *arch, *types, *output;
  item *items;
  size_t n, capacity;
} pack_args;

static void add_item(pack_args *a, const kiln_program_desc *desc,
                     const char *label, int min_cc)
{
  a->items =
      kiln__cli_grow(a->c, a->items, a->n, &a->capacity, sizeof *a->items);
  a->items[a->n++] = (item){desc, label, min_cc};
}

/* ---- List of the programs to pack --------------------------------------- */

static size_t count_texts(const char *const *list)
{
  size_t n = 0;

  while (list != NULL && list[n] != NULL)
    n++;
  return n;
}

/* Adds a predefined variant of an embedded program. The variant sets defines,
 * traits and names; all other options come from the command line. */
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

/* Adds every variant of an embedded program, or of all embedded programs if
 * `builtin` is NULL.
 * @return whether there was a variant */
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

/* Splits a line at blanks into at most `capacity` words, in place. Blanks
 * within '...' and "..." are kept, and '#' starts a comment. @return the
 * number of words */
static int split_words(char *line, char **words, int capacity)
{
  int n = 0;

  while (n < capacity) {
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

/* Adds the program that one line of a list file describes. The line holds a
 * program and its options. */
static int add_line(pack_args *a, const char *list, int number, char *line)
{
  enum { ROOM = 128 };
  char **words = kiln__cli_alloc(a->c, ROOM + 2, sizeof *words);
  cli_program *p = kiln__cli_alloc(a->c, 1, sizeof *p);
  const char *slash = strrchr(list, '/');
  cli_syntax syntax = {.synopsis = "PROGRAM [options]\n",
                       .about = "One line of a list for kiln pack.",
                       .least = 1,
                       .most = 1,
                       .missing = "the line names no program"};
  cli_words left;
  int n;

  words[0] = kiln__cli_text(a->c, "%s:%d", list, number);
  n = 1 + split_words(line, words + 1, ROOM);
  if (n == 1)
    return CLI_OK;
  kiln__cli_program_init(p, a->c, n);
  syntax.shared = p->table;
  if (kiln__cli_parse(a->c, &syntax, n, words, &left) != CLI_OK)
    return kiln__cli_usage(
        a->c, "%s: the line is not one program with its options", words[0]);
  if (left.at[0][0] == '/' || strncmp(left.at[0], "builtin:", 8) == 0 ||
      slash == NULL)
    return add_program(a, p, left.at[0]);
  return add_program(
      a, p,
      kiln__cli_text(a->c, "%.*s/%s", (int)(slash - list), list, left.at[0]));
}

static int add_list(pack_args *a, const char *path)
{
  size_t size;
  char *text = kiln__cli_read(a->c, path, CLI_MOST_TEXT, &size);
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
    kiln__cli_message(a->c, "kiln compile --list",
                      "there is no embedded program \"%s\"", name);
    return CLI_FAILED;
  } else {
    return add_list(a, word);
  }
  p = kiln__cli_alloc(a->c, 1, sizeof *p);
  *p = a->shared;
  return add_program(a, p, name);
}

/* ---- Building ----------------------------------------------------------- */

/* Prints the name and the size of the written file, and how programs find the
 * file. */
static void print_written(const pack_args *a, const char *text)
{
  struct stat info = {0};

  stat(a->output, &info);
  printf("%s: %s, %s\n", kiln__cli_shown(a->c, a->output), text,
         kiln__cli_bytes(a->c, (uint64_t)info.st_size));
  printf("next: KILN_PACKS=%s, or kiln_runtime_opts.packs\n",
         kiln__cli_shown(a->c, a->output));
}

static int write_pack(pack_args *a, const cli_unit *units, size_t n)
{
  kiln_image **images = kiln__cli_alloc(a->c, n, sizeof(kiln_image *));
  size_t compiled = 0;

  for (size_t i = 0; i < n; i++) {
    images[i] = units[i].image;
    compiled += kiln_image_origin(units[i].image) == KILN_FROM_COMPILER ? 1 : 0;
  }
  if (kiln_pack_write(a->c->rt, a->output, images, n) != KILN_OK)
    return kiln__cli_failure(a->c, NULL);
  print_written(a,
                kiln__cli_text(a->c,
                               "%zu image%s of %zu program%s (%zu compiled, "
                               "%zu from the cache)",
                               n, n == 1 ? "" : "s", a->n, a->n == 1 ? "" : "s",
                               compiled, n - compiled));
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
    kiln__cli_message(a->c, "choose other GPUs with --arch",
                      "none of these programs can be compiled for these GPUs");
    return CLI_FAILED;
  }
  rc = kiln__cli_compile_units(a->c, units, n);
  if (rc == CLI_OK)
    rc = write_pack(a, units, n);
  else
    kiln__cli_message(a->c, NULL, "no pack was written");
  kiln__cli_free_units(units, n);
  return rc;
}

static int pack_cache(const pack_args *a)
{
  size_t n;

  if (kiln_pack_cache(a->c->rt, a->output, &n) != KILN_OK)
    return kiln__cli_failure(a->c, NULL);
  print_written(a, kiln__cli_text(a->c, "%zu image%s, as the cache has them", n,
                                  n == 1 ? "" : "s"));
  return CLI_OK;
}

/* Parses a list of element types such as "u32,f32". Returns their number, or 0
 * having reported a name that is no type. */
static size_t parse_types(cli *c, const char *list, kiln_dtype types[16])
{
  size_t n = 0;

  while (*list != '\0' && n < 16) {
    const size_t size = strcspn(list, ",");
    kiln_dtype t = KILN_I8;

    while (t <= KILN_F64 && (strlen(kiln_dtype_name(t)) != size ||
                             strncmp(kiln_dtype_name(t), list, size) != 0))
      t = (kiln_dtype)(t + 1);
    if (t > KILN_F64) {
      kiln__cli_message(c, "write types such as u32,f32",
                        "'%.*s' is no element type", (int)size, list);
      return 0;
    }
    types[n++] = t;
    list += size + (list[size] == ',');
  }
  return n;
}

/* Packs the bodies of operations. */
static int pack_ops(pack_args *a)
{
  cli_bodies b = {.c = a->c};
  kiln_dtype types[16];
  const size_t n_types =
      parse_types(a->c, a->types != NULL ? a->types : "i32,u32,f32,f64", types);
  cli_targets targets;
  int rc =
      n_types == 0 ? CLI_USAGE : kiln__cli_targets(a->c, a->arch, &targets);

  for (size_t i = 0; rc == CLI_OK && i < targets.n; i++)
    if (kiln__cli_bodies(&b, &targets.list[i], types, n_types) != KILN_OK)
      rc = kiln__cli_failure(a->c, "ops");
  if (rc == CLI_OK &&
      kiln_pack_write(a->c->rt, a->output, b.image, b.n) != KILN_OK)
    rc = kiln__cli_failure(a->c, NULL);
  if (rc == CLI_OK)
    print_written(a, kiln__cli_text(a->c, "%zu bodies of operations", b.n));
  kiln__cli_free_bodies(&b);
  return rc;
}

/* Checks the output path. A pack may replace a regular file, but nothing
 * else. */
static int check_output(const pack_args *a)
{
  const char *odd = kiln__cli_odd_file(a->output);

  if (odd == NULL)
    return CLI_OK;
  kiln__cli_message(a->c, "name another file with -o",
                    "cannot write the pack to '%s': it is %s", a->output, odd);
  return CLI_FAILED;
}

/* Packs the programs that the words of the command line name. */
static int pack_words(pack_args *a, const cli_words *words)
{
  cli_targets targets;
  int rc = check_output(a);

  if (rc != CLI_OK)
    return rc;
  if (strcmp(words->at[0], "cache") == 0)
    return words->n == 1 && a->arch == NULL
               ? pack_cache(a)
               : kiln__cli_usage(a->c,
                                 "cache stands alone, without --arch: its "
                                 "images are compiled already");
  if (strcmp(words->at[0], "ops") == 0)
    return words->n == 1
               ? pack_ops(a)
               : kiln__cli_usage(a->c, "ops stands alone, with --arch and "
                                       "--types");
  if (a->types != NULL)
    return kiln__cli_usage(a->c, "--types is for `kiln pack ops`");
  for (int i = 0; i < words->n && rc == CLI_OK; i++)
    rc = add_word(a, words->at[i]);
  if (rc == CLI_OK)
    rc = kiln__cli_targets(a->c, a->arch != NULL ? a->arch : "all", &targets);
  return rc == CLI_OK ? build(a, &targets) : rc;
}

int kiln__cli_pack(cli *c, int argc, char **argv)
{
  pack_args *a = kiln__cli_alloc(c, 1, sizeof *a);
  const cli_option options[] = {
      {.name = "output",
       .letter = 'o',
       .kind = CLI_TEXT,
       .value = "PATH",
       .to = &a->output,
       .help = "the file to write; always needed"},
      CLI_OPTION_JOINED("arch", "LIST", &a->arch,
                        "targets to compile for; default: all that NVRTC "
                        "compiles for, for ops this machine's GPU"),
      CLI_OPTION_JOINED("types", "LIST", &a->types,
                        "element types of ops; default: i32,u32,f32,f64"),
      CLI_OPTIONS_END};
  cli_syntax syntax = {
      .synopsis = "kiln pack LIST... -o FILE [options]\n",
      .about =
          "Compiles programs for many targets and writes one read-only file "
          "for machines without NVRTC. Programs find the file through "
          "KILN_PACKS or kiln_runtime_opts.packs. LIST is \"cache\", for what "
          "an application left in the cache folder; or \"ops\", for kernels "
          "of operations\nto which user expressions are linked, so that their "
          "first calls take 30 ms; or\nany of:\n"
          "  all           every shipped variant of every embedded program\n"
          "  NAME          every shipped variant of one embedded program\n"
          "  FILE.cu       a program of yours\n"
          "  FILE          a text with one program per line, each with its "
          "options;\n"
          "                its files are beside it. For example:\n"
          "                  scale.cu -D T=float --name 'scale<float>'",
      .options = options,
      .example = "kiln pack all -o app.kpack --arch sm_80,sm_90",
      .least = 1,
      .most = -1,
      .missing = "name what to pack: all, cache, NAME, FILE.cu or a list"};
  cli_words words;
  int rc;

  a->c = c;
  kiln__cli_program_init(&a->shared, c, argc);
  syntax.shared = a->shared.table;
  rc = kiln__cli_parse(c, &syntax, argc, argv, &words);
  if (rc == CLI_OK && a->output == NULL)
    rc = kiln__cli_usage(c, "name the file to write with -o");
  return rc == CLI_OK ? pack_words(a, &words) : rc;
}
