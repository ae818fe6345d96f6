/* opcode_needs.c -- .version and .target that modifiers ask for; needs.def. */
#include "code_build.h"

#include <string.h>

typedef struct need {
  const char *opcode, *modifier;
  uint16_t ptx, sm;
} need;

typedef struct two {
  const char *a, *b;
} two;

#define KILN__NEED(opcode, modifier, ptx, sm)
#define KILN__CLASH(a, b)
#define KILN__WITH(a, b)
#define KILN__SPECIFIC(opcode, modifier)
#define KILN__EXACT(opcode, modifier)

#undef KILN__NEED
#define KILN__NEED(opcode, modifier, ptx, sm) {opcode, modifier, ptx, sm},
static const need needs[] = {
#include "needs.def"
};
#undef KILN__NEED
#define KILN__NEED(opcode, modifier, ptx, sm)

#undef KILN__CLASH
#define KILN__CLASH(a, b) {a, b},
static const two clashes[] = {
#include "needs.def"
};
#undef KILN__CLASH
#define KILN__CLASH(a, b)

#undef KILN__WITH
#define KILN__WITH(a, b) {a, b},
static const two withs[] = {
#include "needs.def"
};
#undef KILN__WITH
#define KILN__WITH(a, b)

#undef KILN__SPECIFIC
#define KILN__SPECIFIC(opcode, modifier) {opcode, modifier},
static const two specifics[] = {
#include "needs.def"
};
#undef KILN__SPECIFIC
#define KILN__SPECIFIC(opcode, modifier)

#undef KILN__EXACT
#define KILN__EXACT(opcode, modifier) {opcode, modifier},
static const two exacts[] = {
#include "needs.def"
};

static bool begins(kiln__cpu_slice s, const char *text)
{
  const size_t n = strlen(text);

  return s.size >= n && memcmp(s.data, text, n) == 0;
}

static bool has_one(kiln__cpu_slice s, const char *modifier, size_t n)
{
  const bool any = modifier[n - 1] == '*';

  for (uint32_t i = 0; i < s.size; i++) {
    const uint32_t left = s.size - i;

    if (s.data[i] != '.')
      continue;
    if (any ? left >= n - 1 && memcmp(s.data + i, modifier, n - 1) == 0
            : left >= n && memcmp(s.data + i, modifier, n) == 0 &&
                  (left == n || s.data[i + n] == '.'))
      return true;
  }
  return false;
}

/* All of `.a.b.c`. */
static bool has(kiln__cpu_slice s, const char *modifiers)
{
  while (*modifiers != '\0') {
    const size_t n = 1 + strcspn(modifiers + 1, ".");

    if (!has_one(s, modifiers, n))
      return false;
    modifiers += n;
  }
  return true;
}

void kiln__cpu_needs_of(kiln__cpu_matches *m)
{
  const kiln__cpu_slice s = m->opcode;

  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
    if (!begins(s, needs[i].opcode) || !has(s, needs[i].modifier))
      continue;
    m->ptx = needs[i].ptx > m->ptx ? needs[i].ptx : m->ptx;
    m->sm = needs[i].sm > m->sm ? needs[i].sm : m->sm;
  }
  for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++) {
    if (has(s, clashes[i].a) && has(s, clashes[i].b))
      m->n = 0;
  }
  for (size_t i = 0; i < sizeof withs / sizeof *withs; i++) {
    if (has(s, withs[i].a) && !has(s, withs[i].b))
      m->n = 0;
  }
  for (size_t i = 0; i < sizeof specifics / sizeof *specifics; i++)
    m->specific |= begins(s, specifics[i].a) && has(s, specifics[i].b);
  for (size_t i = 0; i < sizeof exacts / sizeof *exacts; i++)
    m->exact |= begins(s, exacts[i].a) && has(s, exacts[i].b);
}
