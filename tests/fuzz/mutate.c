/* mutate.c -- does the CPU device accept PTX that ptxas rejects?
 *
 *   mutate [-n COUNT] [-s SEED] [-p PTXAS] [-o FILE] [-a] [PTX ...]
 *
 * Without files: statements made from the rows of ops.def, each broken in one
 * to three places. With files: whole modules with a byte, word or line changed.
 * Those that load are given to ptxas, if one is named; what it rejects is listed
 * with its reason, and the exit status is 1. -a also lists what ptxas accepts
 * and the CPU device does not. Without ptxas: nothing may crash. */
#include "cpu_statements.h"

#include "cpu/code/code.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 512, BATCH = 400 };

static struct {
  unsigned long count;
  uint64_t random;
  const char *ptxas;
  FILE *out;
  bool also_stricter;
  unsigned long tried, accepted, looser, stricter;
} run = {.count = 20000, .random = 1};

static unsigned below(unsigned n)
{
  return (unsigned)(test_random(&run.random) >> 33) % n;
}

static bool loads(const char *text, size_t size)
{
  kiln_allocator a = {0};
  kiln__ptx_module *module = NULL;
  kiln__program *program = NULL;

  kiln__allocator_default(&a);
  if (kiln__ptx_parse(&module, &a, text, size) != KILN_OK)
    return false;
  if (kiln__program_make(&program, &a, module) != KILN_OK)
    return false;
  kiln__program_free(program);
  return true;
}

/* ---- Files ------------------------------------------------------------------
 * (Check's assertions only work within its tests.) */

static char *read_all(FILE *in, size_t *size)
{
  size_t capacity = 1 << 16, n;
  char *data = malloc(capacity);

  *size = 0;
  while (data != NULL &&
         (n = fread(data + *size, 1, capacity - *size - 1, in)) > 0) {
    *size += n;
    if (capacity - *size < 2) {
      capacity *= 2;
      data = realloc(data, capacity);
    }
  }
  if (data == NULL)
    exit(1);
  data[*size] = '\0';
  return data;
}

static char *read_file(const char *path, size_t *size)
{
  FILE *in = fopen(path, "rb");
  char *data;

  if (in == NULL) {
    perror(path);
    exit(2);
  }
  data = read_all(in, size);
  (void)fclose(in);
  return data;
}

static void write_file(const char *path, const char *data, size_t size)
{
  FILE *out = fopen(path, "wb");

  if (out == NULL || fwrite(data, 1, size, out) != size || fclose(out) != 0) {
    perror(path);
    exit(2);
  }
}

/* ---- ptxas --------------------------------------------------------------------- */

static char folder[256];

static void remove_folder(void)
{
  static const char *const names[] = {"x.ptx", "x.o"};
  char path[300];

  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    (void)unlink(path);
  }
  (void)rmdir(folder);
}

/* Its messages; malloc. Empty: it accepts the text. */
static char *ptxas_says(const char *text, size_t size, unsigned target)
{
  char path[300], result[300], arch[32], *messages;
  size_t n;
  int pipes[2], status = 0;
  pid_t child;
  FILE *in;

  (void)snprintf(path, sizeof path, "%s/x.ptx", folder);
  (void)snprintf(result, sizeof result, "%s/x.o", folder);
  (void)snprintf(arch, sizeof arch, "sm_%u", target);
  write_file(path, text, size);
  if (pipe(pipes) != 0)
    exit(1);
  child = fork();
  if (child == 0) {
    (void)dup2(pipes[1], 1);
    (void)dup2(pipes[1], 2);
    (void)close(pipes[0]);
    (void)execl(run.ptxas, "ptxas", "-arch", arch, "-O0", "-c", "-w", path,
                "-o", result, (char *)NULL);
    _exit(127);
  }
  (void)close(pipes[1]);
  in = fdopen(pipes[0], "r");
  messages = read_all(in, &n);
  (void)fclose(in);
  (void)waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    messages[0] = '\0';
  return messages;
}

/* ---- Statements ------------------------------------------------------------------ */

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

/* Mark the statements that a run of ptxas complains about. False: none. */
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
          return true; /* the rest was not read */
      }
    }
    at = next == NULL ? NULL : next + 1;
  }
  return any;
}

/* Some mistakes end ptxas without a line: halve until one statement is left. */
static void ask_each(batch *b, kiln__buf *text, unsigned from, unsigned to)
{
  static bool before[BATCH];
  unsigned index[BATCH + 1] = {0}, first;
  char *messages;

  memcpy(before, b->gone, sizeof before);
  for (unsigned i = 0; i < b->n; i++)
    b->gone[i] |= i < from || i >= to;
  compose(text, b, &first, index);
  messages = ptxas_says(text->data, text->size, b->target);
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
    messages = ptxas_says(text->data, text->size, b->target);
    again = messages[0] != '\0' && mark(b, messages, first, index);
    if (!again && messages[0] != '\0')
      ask_each(b, text, 0, b->n);
    free(messages);
  }
}

static void judge(batch *b, kiln__buf *text)
{
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
  for (unsigned i = 0; i < b->n; i++) {
    if (b->accepted[i] && b->gone[i]) {
      run.looser++;
      fprintf(run.out, "looser   sm_%u %u.%u | %s | %s\n", b->target,
              b->version / 10, b->version % 10, b->line[i], b->reason[i]);
    }
    if (!b->accepted[i] && !b->gone[i]) {
      run.stricter++;
      fprintf(run.out, "stricter sm_%u %u.%u | %s\n", b->target,
              b->version / 10, b->version % 10, b->line[i]);
    }
  }
}

static void statements(void)
{
  static const unsigned modes[][2] = {{64, 75},  {70, 80}, {78, 90}, {83, 90},
                                      {87, 100}, {90, 90}, {90, 120}};
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

/* ---- Modules ------------------------------------------------------------------------ */

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

/* A word of the text: where it begins and ends. */
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

/* `t` with one thing changed. */
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
  case 0: /* a word for another */
  case 1:
  case 2:
  case 4: /* a line for another */
    kiln__buf_add(out, t->data + other, end - other);
    break;
  case 3: /* a word less, or a character changed */
    if (to > from && below(2) == 0) {
      kiln__buf_add(out, t->data + from, to - from);
      out->data[out->size - 1 - below((unsigned)(to - from))] =
          "0123456789abcdefsux_.,;%[]{}"[below(28)];
    }
    break;
  case 5: /* a line twice */
    kiln__buf_add(out, t->data + from, to - from);
    kiln__buf_text(out, "\n");
    kiln__buf_add(out, t->data + from, to - from);
    break;
  case 6: /* a line more */
    kiln__buf_add(out, t->data + other, end - other);
    kiln__buf_text(out, "\n");
    kiln__buf_add(out, t->data + from, to - from);
    break;
  default: /* a line less */
    break;
  }
  kiln__buf_add(out, t->data + to, t->size - to);
}

static void show_change(const text *t, const kiln__buf *changed,
                        const char *says)
{
  size_t first = 0, from, to;

  while (first < t->size && first < changed->size &&
         t->data[first] == changed->data[first])
    first++;
  from = first;
  while (from > 0 && changed->data[from - 1] != '\n')
    from--;
  to = first;
  while (to < changed->size && changed->data[to] != '\n')
    to++;
  fprintf(run.out, "looser   | %.*s | %.*s\n", (int)(to - from),
          changed->data + from, (int)strcspn(says, "\n"), says);
}

static unsigned target_of(const char *data)
{
  const char *at = strstr(data, ".target sm_");

  return at == NULL ? 0 : (unsigned)strtoul(at + 11, NULL, 10);
}

static void modules(char **paths, int n)
{
  text *texts = calloc((size_t)n, sizeof *texts);
  kiln_allocator a = {0};
  kiln__buf out;

  kiln__allocator_default(&a);
  kiln__buf_init(&out, &a);
  for (int i = 0; i < n; i++) {
    texts[i].data = read_file(paths[i], &texts[i].size);
    texts[i].target = target_of(texts[i].data);
  }
  for (; run.tried < run.count; run.tried++) {
    const text *t = &texts[below((unsigned)n)];
    char *says;

    change(&out, t);
    if (!loads(out.data, out.size))
      continue;
    run.accepted++;
    if (run.ptxas == NULL)
      continue;
    says = ptxas_says(out.data, out.size, t->target);
    /* "Attempted to": ptxas gave up on debug sections that make no sense */
    if (says[0] != '\0' && strstr(says, "fatal   : Attempted") == NULL) {
      run.looser++;
      show_change(t, &out, says);
    }
    free(says);
  }
  for (int i = 0; i < n; i++)
    free(texts[i].data);
  free(texts);
  kiln__buf_free(&out);
}

int main(int argc, char **argv)
{
  int option;

  run.out = stdout;
  while ((option = getopt(argc, argv, "n:s:p:o:a")) != -1) {
    if (option == 'n')
      run.count = strtoul(optarg, NULL, 10);
    else if (option == 's')
      run.random = strtoull(optarg, NULL, 10) * 2 + 1;
    else if (option == 'p')
      run.ptxas = optarg;
    else if (option == 'o')
      run.out = fopen(optarg, "w");
    else if (option == 'a')
      run.also_stricter = true;
    else
      return 2;
  }
  if (run.out == NULL)
    return 2;
  (void)snprintf(folder, sizeof folder, "%s/mutate.XXXXXX",
                 getenv("TMPDIR") == NULL ? P_tmpdir : getenv("TMPDIR"));
  if (mkdtemp(folder) == NULL)
    return 2;
  if (optind < argc)
    modules(argv + optind, argc - optind);
  else
    statements();
  remove_folder();
  printf("%lu changed texts, %lu load", run.tried, run.accepted);
  if (run.ptxas != NULL)
    printf(", %lu of them ptxas rejects", run.looser);
  if (run.also_stricter)
    printf("; %lu that ptxas accepts do not load", run.stricter);
  printf("\n");
  return run.looser != 0;
}
