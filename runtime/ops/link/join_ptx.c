/* join_ptx.c -- joins the PTX of a body and of its texts to one PTX source.
 *
 * Problem: an image contains PTX beside machine code. The CPU device, drivers
 * that refuse the machine code, and packs on other GPUs load this PTX, so it
 * must define every function that it calls.
 *
 * Idea: NVRTC writes a module as directives (.version, .target, .address_size),
 * declarations and definitions, each from the start of a line. The result is
 * the body's directives, everything else of the texts, and everything else of
 * the body. Left out are the body's declarations of functions that the texts
 * define, whose names begin with kiln__text_.
 *
 * Invariant: names that only one module sees (.global, .const and .func without
 * .visible) must not meet. If both modules have such names, the join fails.
 *
 * Cost: one pass over both sources. */
#include "link.h"

#include <string.h>

/* Returns the text after the directives that begin a module, or NULL. */
static const char *after_directives(const char *ptx)
{
  const char *last = strstr(ptx, "\n.address_size");

  return last == NULL ? NULL : last + 1 + strcspn(last + 1, "\n");
}

static bool starts(const char *line, const char *word)
{
  return strncmp(line, word, strlen(word)) == 0;
}

/* Returns whether a module has names of its own beside kernels and the functions
 * of expressions. */
static bool has_own_names(const char *ptx)
{
  static const char *const words[] = {".global", ".const", ".func", ".weak"};

  for (const char *p = ptx; (p = strchr(p, '\n')) != NULL;) {
    p++;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
      if (starts(p, words[i]))
        return true;
  }
  return false;
}

/* Appends `ptx` without the declarations of the expressions' functions. */
static void add_without_declarations(kiln__buf *out, const char *ptx)
{
  static const char word[] = "\n.extern .func";
  const char *p;

  while ((p = strstr(ptx, word)) != NULL) {
    const size_t size = strcspn(p, ";");
    const bool ours = memmem(p, size, "kiln__text_", 11) != NULL;
    const size_t end = size + (p[size] == ';');

    kiln__buf_add(out, ptx, (size_t)(p - ptx) + (ours ? 0 : end));
    ptx = p + end;
  }
  kiln__buf_text(out, ptx);
}

kiln_status kiln__join_ptx(kiln__buf *out, const char *body, const char *texts)
{
  const char *const body_rest = after_directives(body);
  const char *const texts_rest = after_directives(texts);

  if (body_rest == NULL || texts_rest == NULL)
    return kiln__fail(KILN_EUNSUPPORTED, NULL, "an object is no PTX of NVRTC");
  if (has_own_names(body) && has_own_names(texts))
    return kiln__fail(KILN_EUNSUPPORTED, NULL,
                      "kernel and expressions both define variables, whose "
                      "names may be the same");
  kiln__buf_add(out, body, (size_t)(body_rest - body));
  kiln__buf_text(out, texts_rest);
  add_without_declarations(out, body_rest);
  return kiln__buf_status(out, "joined PTX");
}
