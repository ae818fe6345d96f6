/* nvrtc_options.c -- checks the caller's compiler options. The check also
 * records the options that decide which files are read, and the options that a
 * field of the description also sets. */
#include "plan.h"

#include <string.h>

/* Options that are refused, without leading dashes. These options choose the
 * kind of output, read or write files that the key cannot cover, or duplicate
 * other fields of the description. */
static const struct {
  const char *name;
  const char *instead;
} owned[] = {
    {"arch", "the target chooses the architecture"},
    {"gpu-architecture", "the target chooses the architecture"},
    {"gencode", "the target chooses the architecture"},
    {"ptx", "an image holds PTX and machine code"},
    {"cubin", "an image holds PTX and machine code"},
    {"optix-ir", "an image holds PTX and machine code"},
    {"rdc", "programs are whole; nothing is linked to them"},
    {"relocatable-device-code",
     "programs are whole; nothing is linked to them"},
    {"dc", "programs are whole; nothing is linked to them"},
    {"device-c", "programs are whole; nothing is linked to them"},
    {"ewp", "programs are whole; nothing is linked to them"},
    {"extensible-whole-program",
     "programs are whole; nothing is linked to them"},
    {"lto", "programs are whole; nothing is linked to them"},
    {"dlto", "programs are whole; nothing is linked to them"},
    {"ltoir", "programs are whole; nothing is linked to them"},
    {"dlink-time-opt", "programs are whole; nothing is linked to them"},
    {"gen-opt-lto", "programs are whole; nothing is linked to them"},
    {"time", "kiln_image_compile_ms() returns the time"},
    {"fdevice-time-trace", "it writes a file, also when nothing is compiled"},
    {"pch", "precompiled headers are invisible to the cache"},
    {"create-pch", "precompiled headers are invisible to the cache"},
    {"use-pch", "precompiled headers are invisible to the cache"},
    {"pch-dir", "precompiled headers are invisible to the cache"},
    {"pch-verbose", "precompiled headers are invisible to the cache"},
    {"pch-messages", "precompiled headers are invisible to the cache"},
    {"instantiate-templates-in-pch",
     "precompiled headers are invisible to the cache"},
    {"o", "images stay in memory and in the cache"},
    {"output-file", "images stay in memory and in the cache"},
    {"output-directory", "images stay in memory and in the cache"},
    {"keep", "images stay in memory and in the cache"},
    {"keep-dir", "images stay in memory and in the cache"},
    {"optf", "list the options themselves"},
    {"options-file", "list the options themselves"},
    {"no-cache", "Kiln's own cache is used: kiln_program_desc.no_cache"},
};

/* A compiler option that was split into its name without dashes and its
 * value. */
typedef struct option {
  const char *name;
  size_t size;
  /* value of the option: after '=', in the rest of the string, or in the next
   * string */
  const char *value;
} option;

static bool named(const option *o, const char *name)
{
  return o->size == strlen(name) && memcmp(o->name, name, o->size) == 0;
}

static kiln_status refuse_owned(const option *o, const char *word)
{
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
    if (named(o, owned[i].name))
      return kiln__fail(KILN_EINVAL, owned[i].instead,
                        "compiler option \"%s\" is Kiln's own", word);
  }
  return KILN_OK;
}

/* Returns true for options such as -Ifolder and -DNAME=1, which have name and
 * value in one string without '='. */
static bool glued(const char *word)
{
  return word[0] == '-' && (word[1] == 'I' || word[1] == 'D' || word[1] == 'U');
}

static option split(const char *word)
{
  option o = {.name = word + (word[1] == '-' ? 2 : 1)};

  if (glued(word)) {
    o.size = 1;
    if (word[2] != '\0')
      o.value = word[2] == '=' && word[1] == 'I' ? word + 3 : word + 2;
  } else {
    o.size = strcspn(o.name, "=");
    if (o.name[o.size] == '=')
      o.value = o.name + o.size + 1;
  }
  return o;
}

static bool wants_value(const option *o)
{
  return named(o, "I") || named(o, "include-path") || named(o, "D") ||
         named(o, "define-macro") || named(o, "U") ||
         named(o, "undefine-macro") || named(o, "include") ||
         named(o, "pre-include") || named(o, "Xptxas") ||
         named(o, "ptxas-options");
}

static bool already(const kiln__list *list, const char *text)
{
  for (size_t i = 0; i < list->n; i++) {
    if (strcmp(list->items[i], text) == 0)
      return true;
  }
  return false;
}

static void note(kiln__plan *plan, const option *o)
{
  if (named(o, "I") || named(o, "include-path"))
    kiln__list_add(&plan->arena, &plan->folders, o->value);
  if (named(o, "include") || named(o, "pre-include"))
    kiln__list_add(&plan->arena, &plan->preludes, o->value);
  plan->has_std |= named(o, "std");
  plan->has_debug |= named(o, "G") || named(o, "device-debug");
  plan->has_lineinfo |= named(o, "lineinfo") || named(o, "generate-line-info");
  plan->has_fast_math |= named(o, "use_fast_math");
  plan->has_max_registers |= named(o, "maxrregcount");
  plan->has_fast_compile |= named(o, "Ofast-compile") || named(o, "Ofc");
  plan->has_minimal |= named(o, "minimal");
}

/* Adds one option, which consists of one or two strings. A repeated option is
 * dropped, since old compilers refuse a flag that is given twice. */
static void add(kiln__plan *plan, const option *o, const char *word,
                const char *second)
{
  const char *whole =
      kiln__arena_join(&plan->arena, word, second == NULL ? "" : " ", second);

  if (whole == NULL)
    return;
  note(plan, o);
  if (!named(o, "I") && !named(o, "include-path")) {
    if (already(&plan->canonical, whole))
      return;
    kiln__list_add(&plan->arena, &plan->canonical, whole);
  }
  kiln__list_add(&plan->arena, &plan->words, word);
  if (second != NULL)
    kiln__list_add(&plan->arena, &plan->words, second);
}

static kiln_status check_word(const char *word, size_t i)
{
  if (word == NULL || word[0] == '\0')
    return kiln__fail(KILN_EINVAL, NULL, "compiler option %zu is empty", i);
  if (word[0] != '-' || word[1] == '\0')
    return kiln__fail(KILN_EINVAL, "one option a word, beginning with '-'",
                      "\"%s\" is not a compiler option", word);
  return KILN_OK;
}

static kiln_status check_conflicts(const kiln__plan *plan)
{
  if (plan->has_max_registers && plan->desc->max_registers != 0)
    return kiln__fail(KILN_EINVAL, "keep one of the two",
                      "-maxrregcount and max_registers are both given");
  return KILN_OK;
}

kiln_status kiln__plan_options(kiln__plan *plan)
{
  const kiln_program_desc *desc = plan->desc;
  kiln_status st = KILN_OK;

  for (size_t i = 0; i < desc->n_options; i++) {
    const char *word = desc->options[i], *second = NULL;
    const char *next = i + 1 < desc->n_options ? desc->options[i + 1] : NULL;
    option o;

    KILN_TRY(check_word(word, i));
    o = split(word);
    KILN_TRY(refuse_owned(&o, word));
    if (o.value == NULL && next != NULL &&
        (wants_value(&o) || next[0] != '-')) {
      second = next;
      o.value = next;
      i++;
    }
    if (wants_value(&o) && (o.value == NULL || o.value[0] == '\0'))
      KILN_TRY(kiln__fail(KILN_EINVAL, "give its value, as the next word too",
                          "compiler option \"%s\" lacks a value", word));
    add(plan, &o, word, second);
  }
  st = check_conflicts(plan);

done:
  return st;
}
