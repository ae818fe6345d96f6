/* mutate.c -- searches for PTX that the CPU device accepts and ptxas rejects.
 *
 *   mutate [-n COUNT] [-s SEED] [-p PTXAS | -P] [-o FILE] [-a] [FILE ...]
 *
 * Without files, the program generates statements from the rows of ops.def and
 * makes one to three changes to each of them. With files, it changes a byte, a
 * word or a line of whole modules. It first compiles a .cu file with several
 * sets of options.
 *
 * Source that loads is passed to ptxas if -p or -P is given. Each statement
 * that ptxas rejects is listed with the reason. The exit status is 1 unless
 * ptxas_differences.def lists all of these statements. -P searches for the
 * ptxas release that this file describes; if it is not found, the run counts as
 * skipped (exit status 77). -a also lists statements that ptxas accepts and the
 * CPU device rejects. Without ptxas, the run checks only that nothing crashes.
 */
#include "cpu_statements.h"
#include "ptxas.h"

#include "cpu/code/code.h"
#include "support.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 512, BATCH = 400 };

static struct {
  unsigned long count;
  uint64_t random;
  const char *ptxas;
  FILE *out;
  bool also_stricter;
  unsigned long tried, accepted, looser, stricter, listed;
} run = {.count = 20000, .random = 1};

static unsigned below(unsigned n)
{
  return (unsigned)(test_random(&run.random) >> 33) % n;
}

static bool loads(const char *text, size_t size)
{
  kiln_allocator a = {0};
  kiln__cpu_ptx_module *module = NULL;
  kiln__cpu_program *program = NULL;

  kiln__allocator_default(&a);
  if (kiln__cpu_ptx_parse(&module, &a, text, size) != KILN_OK)
    return false;
  if (kiln__cpu_program_make(&program, &a, module) != KILN_OK)
    return false;
  kiln__cpu_program_free(program);
  return true;
}

/* ---- Known differences from ptxas ---------------------------------------- */

static struct {
  const char *statement, *message,
      *why; /* `message` is NULL if the loader is stricter than ptxas */
  unsigned long met;
  char example[LINE];
} known[] = {
#define KILN__LOOSER(statement, message, why) {statement, message, why, 0, ""},
#define KILN__STRICTER(statement, why) {statement, NULL, why, 0, ""},
#include "ptxas_differences.def"
#undef KILN__LOOSER
#undef KILN__STRICTER
};

/* Records a disagreement between the CPU device and ptxas. `message` is the
 * message of ptxas, or NULL if ptxas accepts the source. */
static void disagree(const char *where, const char *statement,
                     const char *message)
{
  const char *text = statement[0] == '@' && strchr(statement, ' ') != NULL
                         ? strchr(statement, ' ') + 1
                         : statement;

  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if ((known[i].message == NULL) == (message == NULL) &&
        fnmatch(known[i].statement, text, 0) == 0 &&
        (message == NULL || fnmatch(known[i].message, message, 0) == 0)) {
      if (known[i].met++ == 0)
        (void)snprintf(known[i].example, LINE, "%s%s", where, statement);
      run.listed++;
      return;
    }
  }
  run.looser += message != NULL;
  run.stricter += message == NULL;
  fprintf(run.out, "%s %s| %s%s%s\n", message != NULL ? "looser  " : "stricter",
          where, statement, message != NULL ? " | " : "",
          message != NULL ? message : "");
  (void)fflush(run.out);
}

static void show_known(void)
{
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (known[i].met > 0)
      fprintf(run.out, "known: %lu %s, %s; such as: %s\n", known[i].met,
              known[i].message == NULL ? "stricter" : "looser", known[i].why,
              known[i].example);
  }
}

/* ---- Statements ---------------------------------------------------------- */

typedef struct batch {
  char line[BATCH][LINE];
  bool accepted[BATCH], gone[BATCH];
  char reason[BATCH][160];
  unsigned n, version, target;
} batch;

static void compose(kiln__buf *out, const batch *b, unsigned *first_line,
                    unsigned *index)
{
  unsigned n = 0;

  kiln__buf_clear(out);
  statements_head(out, b->version, b->target);
  *first_line = 1;
  for (size_t i = 0; i < out->size; i++)
    *first_line += out->data[i] == '\n';
  for (unsigned i = 0; i < b->n; i++) {
    if (!b->gone[i]) {
      index[n++] = i;
      kiln__buf_format(out, "%s\n", b->line[i]);
    }
  }
  index[n] = b->n;
  statements_tail(out);
}

static bool is_syntax(const char *message)
{
  return strstr(message, "arsing error") != NULL ||
         strstr(message, "syntax") != NULL;
}

/* Marks the statements that ptxas reports as errors. Returns false if ptxas
 * reports none. */
static bool mark(batch *b, const char *messages, unsigned first,
                 const unsigned *index)
{
  bool any = false;

  for (const char *at = messages; at != NULL && *at != '\0';) {
    const char *next = strchr(at, '\n'), *line = strstr(at, "line ");
    const char *what = strstr(at, "error   : ");

    if (line != NULL && what != NULL &&
        (next == NULL || (line < next && what < next))) {
      const unsigned number = (unsigned)strtoul(line + 5, NULL, 10);
      const int size = (int)strcspn(what, "\n") - 10;

      if (number >= first && number - first < BATCH &&
          index[number - first] < b->n) {
        const unsigned i = index[number - first];

        b->gone[i] = true;
        (void)snprintf(b->reason[i], sizeof b->reason[i], "%.*s", size,
                       what + 10);
        any = true;
        if (is_syntax(b->reason[i]))
          return true; /* ptxas has not parsed the source after this line. */
      }
    }
    at = next == NULL ? NULL : next + 1;
  }
  return any;
}

/* Some mistakes make ptxas stop without a line number. In that case, the batch
 * is halved until a single statement is left. */
static void ask_each(batch *b, kiln__buf *text, unsigned from, unsigned to)
{
  static bool before[BATCH];
  unsigned index[BATCH + 1] = {0}, first;
  char *messages;

  memcpy(before, b->gone, sizeof before);
  for (unsigned i = 0; i < b->n; i++)
    b->gone[i] |= i < from || i >= to;
  compose(text, b, &first, index);
  messages = ptxas_says(run.ptxas, text->data, text->size, b->target);
  memcpy(b->gone, before, sizeof before);
  if (messages[0] != '\0' && to - from == 1) {
    b->gone[from] = true;
    (void)snprintf(b->reason[from], sizeof b->reason[from], "%.*s",
                   (int)strcspn(messages, "\n"), messages);
  } else if (messages[0] != '\0') {
    ask_each(b, text, from, from + (to - from) / 2);
    ask_each(b, text, from + (to - from) / 2, to);
  }
  free(messages);
}

static void ask_ptxas(batch *b, kiln__buf *text)
{
  unsigned index[BATCH + 1] = {0}, first;
  bool again = true;

  while (again) {
    char *messages;

    compose(text, b, &first, index);
    messages = ptxas_says(run.ptxas, text->data, text->size, b->target);
    again = messages[0] != '\0' && mark(b, messages, first, index);
    if (!again && messages[0] != '\0')
      ask_each(b, text, 0, b->n);
    free(messages);
  }
}

static void judge(batch *b, kiln__buf *text)
{
  char where[32];

  for (unsigned i = 0; i < b->n; i++) {
    kiln__buf_clear(text);
    statements_head(text, b->version, b->target);
    kiln__buf_format(text, "%s\n", b->line[i]);
    statements_tail(text);
    b->accepted[i] = loads(text->data, text->size);
    b->gone[i] = !b->accepted[i] && !run.also_stricter;
    run.accepted += b->accepted[i];
    run.tried++;
  }
  if (run.ptxas == NULL)
    return;
  ask_ptxas(b, text);
  (void)snprintf(where, sizeof where, "sm_%u%s %u.%u ",
                 b->target % STATEMENT_SPECIFIC,
                 b->target >= STATEMENT_SPECIFIC ? "a" : "", b->version / 10,
                 b->version % 10);
  for (unsigned i = 0; i < b->n; i++) {
    if (b->accepted[i] == b->gone[i])
      disagree(where, b->line[i], b->accepted[i] ? b->reason[i] : NULL);
  }
}

static void statements(void)
{
  static const unsigned modes[][2] = {{64, 75},
                                      {70, 80},
                                      {78, 90},
                                      {83, 90},
                                      {87, 100},
                                      {90, 90},
                                      {90, 120},
                                      {80, STATEMENT_SPECIFIC + 90},
                                      {85, STATEMENT_SPECIFIC + 90}};
  static batch b;
  kiln_allocator a = {0};
  kiln__buf text;

  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  while (run.tried < run.count) {
    const unsigned *mode = modes[below(sizeof modes / sizeof *modes)];

    memset(&b, 0, sizeof b);
    b.version = mode[0];
    b.target = mode[1];
    while (b.n < BATCH && run.tried + b.n < run.count) {
      unsigned ptx, sm;

      statement_make(b.line[b.n], LINE, &run.random, &ptx, &sm);
      if (below(16) != 0)
        statement_break(b.line[b.n], LINE, &run.random);
      b.n++;
    }
    judge(&b, &text);
  }
  kiln__buf_free(&text);
}

/* ---- Modules ------------------------------------------------------------- */

typedef struct text {
  char *data;
  size_t size;
  unsigned target;
} text;

static bool is_word(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '%' || c == '$';
}

/* Selects a random word of the module. *from and *to receive its start and end.
 */
static void pick_word(const text *t, size_t *from, size_t *to)
{
  size_t at = (size_t)(test_random(&run.random) % t->size);

  while (at < t->size && !is_word(t->data[at]))
    at++;
  *from = at;
  while (*from > 0 && is_word(t->data[*from - 1]))
    (*from)--;
  *to = at;
  while (*to < t->size && is_word(t->data[*to]))
    (*to)++;
}

static void pick_line(const text *t, size_t *from, size_t *to)
{
  size_t at = (size_t)(test_random(&run.random) % t->size);

  *from = at;
  while (*from > 0 && t->data[*from - 1] != '\n')
    (*from)--;
  *to = at;
  while (*to < t->size && t->data[*to] != '\n')
    (*to)++;
}

/* Writes the module `t` with one random change. */
static void change(kiln__buf *out, const text *t)
{
  size_t from, to, other, end;
  const unsigned how = below(8);

  kiln__buf_clear(out);
  if (how < 4) {
    pick_word(t, &from, &to);
    pick_word(t, &other, &end);
  } else {
    pick_line(t, &from, &to);
    pick_line(t, &other, &end);
  }
  kiln__buf_add(out, t->data, from);
  switch (how) {
  case 0: /* Replaces one word by another word. */
  case 1:
  case 2:
  case 4: /* Replaces one line by another line. */
    kiln__buf_add(out, t->data + other, end - other);
    break;
  case 3: /* Removes one word or changes one of its characters. */
    if (to > from && below(2) == 0) {
      kiln__buf_add(out, t->data + from, to - from);
      out->data[out->size - 1 - below((unsigned)(to - from))] =
          "0123456789abcdefsux_.,;%[]{}"[below(28)];
    }
    break;
  case 5: /* Repeats one line. */
    kiln__buf_add(out, t->data + from, to - from);
    kiln__buf_text(out, "\n");
    kiln__buf_add(out, t->data + from, to - from);
    break;
  case 6: /* Inserts a copy of another line. */
    kiln__buf_add(out, t->data + other, end - other);
    kiln__buf_text(out, "\n");
    kiln__buf_add(out, t->data + from, to - from);
    break;
  default: /* Removes one line. */
    break;
  }
  kiln__buf_add(out, t->data + to, t->size - to);
}

static void show_change(const text *t, const kiln__buf *changed, char *says)
{
  size_t first = 0, from, to;
  char line[LINE];

  while (first < t->size && first < changed->size &&
         t->data[first] == changed->data[first])
    first++;
  from = first;
  while (from > 0 && changed->data[from - 1] != '\n')
    from--;
  to = first;
  while (to < changed->size && changed->data[to] != '\n')
    to++;
  (void)snprintf(line, sizeof line, "%.*s", (int)(to - from),
                 changed->data + from);
  says[strcspn(says, "\n")] = '\0';
  disagree("", line, says);
}

static unsigned target_of(const char *data)
{
  const char *at = strstr(data, ".target sm_");

  return at == NULL ? 0 : (unsigned)strtoul(at + 11, NULL, 10);
}

typedef struct texts {
  text *items;
  unsigned n;
} texts;

/* Adds a module to the list and takes ownership of `data`. */
static void add_text(texts *all, char *data, size_t size)
{
  all->items = realloc(all->items, (all->n + 1) * sizeof *all->items);
  if (all->items == NULL)
    exit(2);
  all->items[all->n++] = (text){data, size, target_of(data)};
}

/* Compiles a source file with the usual options: none, line numbers, fast math.
 * -G is not used, because nearly all mutations would then fall into the debug
 * sections. */
static void add_source(texts *all, kiln_runtime *rt, const char *path)
{
  static const int archs[] = {75, 90, 120};
  size_t size;
  char *source = fuzz_read_file(path, &size);

  for (unsigned i = 0; i < 3; i++) {
    const kiln_program_desc d = {.source = source,
                                 .name = path,
                                 .lineinfo = i == 1,
                                 .fast_math = i == 2,
                                 .no_cache = true};
    const kiln_target target = {.cc = archs[i], .ptx = true};
    kiln_image *image = NULL;
    const char *ptx;
    char *copy;

    if (kiln_compile(&image, rt, &d, &target) != KILN_OK)
      continue; /* The source file includes headers that are not available. */
    ptx = kiln_image_ptx(image, &size);
    copy = calloc(1, size + 1);
    if (copy != NULL)
      memcpy(copy, ptx, size);
    if (copy != NULL)
      add_text(all, copy, strlen(copy));
    kiln_image_free(image);
  }
  free(source);
}

/* Compiles source files with the newest NVRTC that is available. Returns false
 * if NVRTC is not available. */
static bool add_sources(texts *all, char **paths, int n)
{
  const char *list = getenv("KILN_TEST_NVRTC");
  const char *last = list == NULL ? NULL : strrchr(list, ':');
  kiln_runtime_opts opts = {.cache_off = true};
  kiln_runtime *rt = NULL;

  if (list != NULL && list[0] != '\0')
    opts.nvrtc_path = last == NULL ? list : last + 1;
  if (kiln_runtime_create(&rt, &opts) != KILN_OK)
    return false;
  for (int i = 0; i < n; i++) {
    if (strstr(paths[i], ".cu") != NULL)
      add_source(all, rt, paths[i]);
  }
  kiln_runtime_free(rt);
  return true;
}

static void mutate_one(const text *t, kiln__buf *out)
{
  char *says;

  change(out, t);
  run.tried++;
  if (!loads(out->data, out->size))
    return;
  run.accepted++;
  if (run.ptxas == NULL)
    return;
  says = ptxas_says(run.ptxas, out->data, out->size, t->target);
  if (says[0] != '\0')
    show_change(t, out, says);
  free(says);
}

/* Mutates whole modules and loads them. Returns false if there are no
 * modules. */
static bool modules(char **paths, int n)
{
  texts all = {0};
  kiln_allocator a = {0};
  kiln__buf out;
  bool ok;

  kiln__allocator_default(&a);
  kiln__buf_init(&out, &a);
  (void)add_sources(&all, paths, n);
  for (int i = 0; i < n; i++) {
    size_t size;

    if (strstr(paths[i], ".cu") != NULL)
      continue;
    add_text(&all, fuzz_read_file(paths[i], &size), 0);
    all.items[all.n - 1].size = size;
  }
  ok = all.n > 0;
  if (ok)
    printf("%u modules\n", all.n);
  while (ok && run.tried < run.count)
    mutate_one(&all.items[below(all.n)], &out);
  for (unsigned i = 0; i < all.n; i++)
    free(all.items[i].data);
  free(all.items);
  kiln__buf_free(&out);
  return ok;
}

/* ---- Main ---------------------------------------------------------------- */

enum { SKIP = KILN_TEST_SKIP };

/* Returns the path of the ptxas release that ptxas_differences.def describes.
 * If it is not found, prints the reason and returns NULL. */
static const char *reference(void)
{
  static const char release[] = "13.0";
  const char *path = ptxas_find();

  if (path == NULL)
    printf("skipped: no ptxas found; set KILN_TEST_PTXAS\n");
  else if (strcmp(ptxas_release(path), release) != 0)
    printf("skipped: %s is of release %s, the comparison is with %s\n", path,
           ptxas_release(path), release);
  else
    return path;
  return NULL;
}

static bool read_options(int argc, char **argv, bool *look)
{
  int option;

  while ((option = getopt(argc, argv, "n:s:p:Po:a")) != -1) {
    if (option == 'n')
      run.count = strtoul(optarg, NULL, 10);
    else if (option == 's')
      run.random = strtoull(optarg, NULL, 10) * 2 + 1;
    else if (option == 'p')
      run.ptxas = optarg;
    else if (option == 'P')
      *look = true;
    else if (option == 'o')
      run.out = fopen(optarg, "w");
    else if (option == 'a')
      run.also_stricter = true;
    else
      return false;
  }
  return run.out != NULL;
}

int main(int argc, char **argv)
{
  bool look = false;

  run.out = stdout;
  if (!read_options(argc, argv, &look))
    return 2;
  if (look && (run.ptxas = reference()) == NULL)
    return SKIP;
  if (optind == argc) {
    statements();
  } else if (!modules(argv + optind, argc - optind)) {
    printf("skipped: no NVRTC found, or none of the files compiles\n");
    return SKIP;
  }
  ptxas_end();
  show_known();
  printf("%lu changed texts, %lu load", run.tried, run.accepted);
  if (run.ptxas != NULL)
    printf(", %lu of them ptxas rejects", run.looser);
  if (run.also_stricter)
    printf("; %lu that ptxas accepts do not load", run.stricter);
  if (run.ptxas != NULL)
    printf("; %lu more are known differences", run.listed);
  printf("\n");
  return run.looser + run.stricter != 0;
}
