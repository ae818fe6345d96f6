/* plan.c -- checks a program description and converts it to a normal form.
 *
 * Problem: two descriptions that mean the same program should give the same
 * key, and an invalid description should be refused before the compiler runs.
 * Idea: a plan holds the program as the compiler will receive it. Line ends are
 * LF. Defines ("NAME" as "NAME=1"), traits and names are sorted, and options
 * are not repeated. The plan also holds every header that the program can
 * include. A plan is made from the description alone and needs no compiler. The
 * compiler's own headers are added later (includes.c).
 * Invariant: equal plans give equal keys, and a plan compiles the same source
 * text in every process. */
#include "plan.h"

#include "builtin.h"

#include <stdlib.h>
#include <string.h>

/* NVRTC crashes on names of about 100,000 bytes, so longer names than this are
 * refused. */
enum { MOST_NAME = 8192 };

static bool is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t identifier_length(const char *text)
{
  size_t n = 0;

  if (!is_letter(text[0]))
    return 0;
  while (is_letter(text[n]) || (text[n] >= '0' && text[n] <= '9'))
    n++;
  return n;
}

static bool has_line_break(const char *text)
{
  return strpbrk(text, "\r\n") != NULL;
}

/* ---- Source -------------------------------------------------------------- */

static const kiln_builtin *find_builtin(const char *name)
{
  size_t n = 0;
  const kiln_builtin *list = kiln_builtin_list(&n);

  for (size_t i = 0; i < n; i++) {
    if (strcmp(list[i].name, name) == 0)
      return &list[i];
  }
  return NULL;
}

/* Converts CR LF to LF and removes a leading byte order mark. The cache key of
 * a source text therefore does not depend on the editor that wrote it. */
static const char *normal_text(kiln__arena *arena, const char *text,
                               size_t *size)
{
  char *copy;
  size_t n = 0;

  if (*size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
    text += 3;
    *size -= 3;
  }
  copy = kiln__arena_copy(arena, text, *size);
  if (copy == NULL || memchr(copy, '\r', *size) == NULL)
    return copy;
  for (size_t i = 0; i < *size; i++) {
    if (copy[i] != '\r' || i + 1 == *size || copy[i + 1] != '\n')
      copy[n++] = copy[i];
  }
  copy[n] = '\0';
  *size = n;
  return copy;
}

static kiln_status plan_source(kiln__plan *plan)
{
  const kiln_program_desc *desc = plan->desc;
  const char *text = desc->source;
  size_t size = desc->source_size;

  if ((desc->builtin == NULL) == (desc->source == NULL))
    return kiln__fail(KILN_EINVAL, "set exactly one of the two",
                      "%s set in kiln_program_desc",
                      desc->builtin == NULL ? "neither builtin nor source is"
                                            : "both builtin and source are");
  if (desc->builtin != NULL) {
    const kiln_builtin *builtin = find_builtin(desc->builtin);

    if (builtin == NULL)
      return kiln__fail(KILN_ENOTFOUND,
                        "kiln_builtin_list() gives the names there are",
                        "there is no embedded program \"%s\"", desc->builtin);
    text = builtin->source;
    size = builtin->size;
  } else if (size == 0) {
    size = strlen(text);
  } else if (memchr(text, '\0', size) != NULL) {
    const char *nul = memchr(text, '\0', size);

    return kiln__fail(KILN_EINVAL, "CUDA C++ source holds no NUL",
                      "the source holds a NUL at byte %zu of %zu",
                      (size_t)(nul - text), size);
  }
  plan->source_size = size;
  plan->source = normal_text(&plan->arena, text, &plan->source_size);
  return KILN_OK;
}

static kiln_status plan_name(kiln__plan *plan)
{
  const kiln_program_desc *desc = plan->desc;
  const char *name = desc->name;

  if (name != NULL && name[0] != '\0') {
    if (strlen(name) > MOST_NAME)
      return kiln__fail(KILN_EINVAL, "shorten it",
                        "the program's name has %zu bytes, and at most %d fit",
                        strlen(name), MOST_NAME);
    if (has_line_break(name))
      return kiln__fail(KILN_EINVAL, NULL, "the program's name spans lines");
    plan->name = name;
  } else if (desc->builtin != NULL) {
    plan->name = kiln__arena_join(&plan->arena, desc->builtin, ".cu", NULL);
  } else {
    plan->name = "program.cu";
  }
  if (desc->first_line < 0)
    return kiln__fail(KILN_EINVAL, "lines count from 1", "first_line is %d",
                      desc->first_line);
  if (desc->max_registers < 0)
    return kiln__fail(KILN_EINVAL, "0 means no limit", "max_registers is %d",
                      desc->max_registers);
  if (desc->suffix != 0 && desc->suffix != 'a' && desc->suffix != 'f')
    return kiln__fail(KILN_EINVAL, "use 0, 'a' or 'f'",
                      "the architecture suffix is none");
  plan->suffix = desc->suffix;
  return KILN_OK;
}

/* ---- Lists --------------------------------------------------------------- */

bool kiln__desc_has_lists(const kiln_program_desc *desc)
{
  return (desc->headers != NULL || desc->n_headers == 0) &&
         (desc->defines != NULL || desc->n_defines == 0) &&
         (desc->traits != NULL || desc->n_traits == 0) &&
         (desc->names != NULL || desc->n_names == 0) &&
         (desc->options != NULL || desc->n_options == 0);
}

static kiln_status check_counts(const kiln_program_desc *desc)
{
  if (!kiln__desc_has_lists(desc))
    return kiln__fail(KILN_EINVAL, NULL,
                      "kiln_program_desc has a count without its list");
  return KILN_OK;
}

static kiln_status check_headers(const kiln_program_desc *desc)
{
  for (size_t i = 0; i < desc->n_headers; i++) {
    const kiln_header *h = &desc->headers[i];

    if (h->name == NULL || h->name[0] == '\0' || h->text == NULL)
      return kiln__fail(KILN_EINVAL, "every header needs a name and a text",
                        "header %zu is incomplete", i);
    for (size_t k = 0; k < i; k++) {
      if (strcmp(desc->headers[k].name, h->name) == 0 &&
          strcmp(desc->headers[k].text, h->text) != 0)
        return kiln__fail(KILN_EINVAL, "give one text a name",
                          "header \"%s\" is given twice with different texts",
                          h->name);
    }
  }
  return KILN_OK;
}

/* Returns the length of the macro's name with its parameter list, or 0 if the
 * string is not a macro definition. */
static size_t define_head(const char *text)
{
  size_t n = identifier_length(text);

  if (n > 0 && text[n] == '(') {
    n += strcspn(text + n, ")=");
    if (text[n] != ')')
      return 0;
    n++;
  }
  return text[n] == '\0' || text[n] == '=' ? n : 0;
}

/* Adds a macro definition. "NAME" is normalised to "NAME=1", which means the
 * same to the compiler. */
static kiln_status add_define(kiln__plan *plan, const char *text)
{
  const size_t head = text == NULL ? 0 : define_head(text);
  const size_t name = text == NULL ? 0 : identifier_length(text);
  char *copy;

  if (head == 0 || has_line_break(text))
    return kiln__fail(KILN_EINVAL, "write NAME or NAME=VALUE on one line",
                      "\"%s\" is not a macro definition",
                      text == NULL ? "(null)" : text);
  if (kiln__macro_known(text, name))
    return kiln__fail(KILN_EINVAL, "set it in kiln_program_desc.traits instead",
                      "%.*s is a trait of the target", (int)name, text);
  if (text[head] == '\0') {
    copy = kiln__arena_alloc(&plan->arena, head + 3);
    if (copy != NULL) {
      memcpy(copy, text, head);
      memcpy(copy + head, "=1", 3);
    }
  } else {
    copy = kiln__arena_text(&plan->arena, text);
  }
  if (copy != NULL)
    kiln__list_add(&plan->arena, &plan->defines, copy);
  return KILN_OK;
}

static bool same_identifier(const char *a, const char *b)
{
  const size_t n = identifier_length(a);

  return n == identifier_length(b) && strncmp(a, b, n) == 0;
}

/* Checks that no macro is defined twice. The list of definitions is sorted and
 * has no equal strings, so two strings with the same name have two different
 * values. */
static kiln_status check_twice(const kiln__list *list, const char *what)
{
  for (size_t i = 0; i < list->n; i++) {
    for (size_t k = i + 1; k < list->n; k++) {
      if (same_identifier(list->items[i], list->items[k]))
        return kiln__fail(KILN_EINVAL, "keep one of the two",
                          "%s \"%s\" contradicts \"%s\"", what, list->items[i],
                          list->items[k]);
    }
  }
  return KILN_OK;
}

static kiln_status plan_defines(kiln__plan *plan)
{
  const kiln_program_desc *desc = plan->desc;
  kiln_status st = KILN_OK;

  for (size_t i = 0; i < desc->n_defines; i++)
    KILN_TRY(add_define(plan, desc->defines[i]));
  kiln__list_sort(&plan->defines);
  st = check_twice(&plan->defines, "define");

done:
  return st;
}

static bool is_integer(const char *text)
{
  const char *digits = text[0] == '-' ? text + 1 : text;

  return digits[0] != '\0' && strspn(digits, "0123456789") == strlen(digits) &&
         strlen(digits) < 10;
}

static kiln_status plan_traits(kiln__plan *plan)
{
  const kiln_program_desc *desc = plan->desc;

  for (size_t i = 0; i < desc->n_traits; i++) {
    const char *text = desc->traits[i];
    const size_t name = text == NULL ? 0 : identifier_length(text);

    if (name == 0 || text[name] != '=' || !kiln__macro_known(text, name) ||
        !is_integer(text + name + 1))
      return kiln__fail(
          KILN_EINVAL, "write a trait and an integer: KILN_HAS_SHFL=0",
          "\"%s\" overrides no trait", text == NULL ? "(null)" : text);
    kiln__list_add(&plan->arena, &plan->traits, text);
  }
  kiln__list_sort(&plan->traits);
  return check_twice(&plan->traits, "trait");
}

static kiln_status plan_names(kiln__plan *plan)
{
  const kiln_program_desc *desc = plan->desc;

  for (size_t i = 0; i < desc->n_names; i++) {
    const char *text = desc->names[i];

    if (text == NULL || text[strspn(text, " \t")] == '\0' ||
        has_line_break(text))
      return kiln__fail(KILN_EINVAL, "write it as in C++: \"scale<float>\"",
                        "name expression %zu is empty or spans lines", i);
    if (strlen(text) > MOST_NAME)
      return kiln__fail(KILN_EINVAL, "give the type a short alias (using)",
                        "name expression %zu has %zu bytes, and at most %d fit",
                        i, strlen(text), MOST_NAME);
    kiln__list_add(&plan->arena, &plan->names, text);
  }
  kiln__list_sort(&plan->names);
  return KILN_OK;
}

kiln_status kiln__plan_check(kiln__plan *plan, const kiln_allocator *a,
                             const kiln_program_desc *desc)
{
  kiln_status st = KILN_OK;

  *plan = (kiln__plan){.desc = desc};
  kiln__arena_init(&plan->arena, a);
  KILN_TRY(check_counts(desc));
  KILN_TRY(plan_source(plan));
  KILN_TRY(plan_name(plan));
  KILN_TRY(check_headers(desc));
  KILN_TRY(plan_defines(plan));
  KILN_TRY(plan_traits(plan));
  KILN_TRY(plan_names(plan));
  KILN_TRY(kiln__plan_options(plan));
  st = kiln__arena_status(&plan->arena, "the program");

done:
  return st;
}

kiln_status kiln__plan_make(kiln__plan *plan, const kiln_allocator *a,
                            const kiln_program_desc *desc)
{
  kiln_status st = kiln__plan_check(plan, a, desc);

  if (st == KILN_OK)
    st = kiln__plan_includes(plan);
  return st == KILN_OK ? kiln__arena_status(&plan->arena, "the program") : st;
}

void kiln__plan_free(kiln__plan *plan)
{
  kiln__arena_free(&plan->arena);
}
