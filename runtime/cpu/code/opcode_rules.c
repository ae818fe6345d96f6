/* opcode_rules.c -- applies the rules of opcode_rules.def to a matched opcode.
 *
 * The matcher calls kiln__cpu_rules_apply() once per distinct opcode of a
 * program, so the cost of the linear search through the rules is negligible. */
#include "code_build.h"

#include <string.h>

typedef struct rule {
  const char *opcode, *modifier;
  uint16_t ptx, sm;
} rule;

#define KILN__NEED(opcode, modifier, ptx, sm) {opcode, modifier, ptx, sm},
static const rule needs[] = {
#include "opcode_rules.def"
};
#define KILN__ENDED(opcode, modifier, ptx, sm) {opcode, modifier, ptx, sm},
static const rule ended[] = {
#include "opcode_rules.def"
};
#define KILN__CLASH(a, b) {a, b, 0, 0},
static const rule clashes[] = {
#include "opcode_rules.def"
};
#define KILN__WITH(a, b) {a, b, 0, 0},
static const rule withs[] = {
#include "opcode_rules.def"
};
#define KILN__FIRST(opcode, modifier) {opcode, modifier, 0, 0},
static const rule firsts[] = {
#include "opcode_rules.def"
};
#define KILN__SPECIFIC(opcode, modifier) {opcode, modifier, 0, 0},
static const rule specifics[] = {
#include "opcode_rules.def"
};
static const struct {
  const char *opcode;
  uint16_t sm;
} onlys[] = {
#define KILN__ONLY(opcode, sm) {opcode, sm},
#include "opcode_rules.def"
};
#define KILN__EXACT(opcode, modifier) {opcode, modifier, 0, 0},
static const rule exacts[] = {
#include "opcode_rules.def"
};
#define KILN__NO_RESULT(opcode, modifier) {opcode, modifier, 0, 0},
static const rule no_results[] = {
#include "opcode_rules.def"
};
#define KILN__UNSUPPORTED(opcode) opcode,
static const char *const unsupported[] = {
#include "opcode_rules.def"
};
static const struct {
  const char *mnemonic;
  uint32_t flags;
} families[] = {
#define KILN__FAMILY(mnemonic, flags) {mnemonic, flags},
#include "opcode_rules.def"
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

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

/* Returns whether the opcode has all modifiers of a sequence such as `.a.b.c`.
 */
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

static bool any_holds(const rule *rules, size_t n, kiln__cpu_slice s)
{
  for (size_t i = 0; i < n; i++) {
    if (begins(s, rules[i].opcode) && has(s, rules[i].modifier))
      return true;
  }
  return false;
}

uint32_t kiln__cpu_family_of(kiln__cpu_slice opcode)
{
  const char *dot = memchr(opcode.data, '.', opcode.size);
  const size_t n = dot == NULL ? opcode.size : (size_t)(dot - opcode.data);

  /* This instruction has a mask. The other instructions named bar are for the
   * whole warp. */
  if (begins(opcode, "bar.warp"))
    return 0;
  for (size_t i = 0; i < COUNT(families); i++) {
    if (strlen(families[i].mnemonic) == n &&
        memcmp(families[i].mnemonic, opcode.data, n) == 0)
      return families[i].flags;
  }
  return 0;
}

bool kiln__cpu_is_unsupported(kiln__cpu_slice opcode)
{
  for (size_t i = 0; i < COUNT(unsupported); i++) {
    if (begins(opcode, unsupported[i]))
      return true;
  }
  return false;
}

void kiln__cpu_rules_apply(kiln__cpu_matches *m)
{
  const kiln__cpu_slice s = m->opcode;

  for (size_t i = 0; i < COUNT(needs); i++) {
    if (!begins(s, needs[i].opcode) || !has(s, needs[i].modifier))
      continue;
    m->ptx = needs[i].ptx > m->ptx ? needs[i].ptx : m->ptx;
    m->sm = needs[i].sm > m->sm ? needs[i].sm : m->sm;
  }
  for (size_t i = 0; i < COUNT(ended); i++) {
    if (begins(s, ended[i].opcode) && !has(s, ended[i].modifier)) {
      m->last_ptx = ended[i].ptx;
      m->last_sm = ended[i].sm;
    }
  }
  for (size_t i = 0; i < COUNT(clashes); i++) {
    if (has(s, clashes[i].opcode) && has(s, clashes[i].modifier))
      m->n = 0;
  }
  for (size_t i = 0; i < COUNT(withs); i++) {
    if (has(s, withs[i].opcode) && !has(s, withs[i].modifier))
      m->n = 0;
  }
  for (size_t i = 0; i < COUNT(onlys); i++) {
    if (begins(s, onlys[i].opcode))
      m->only = onlys[i].sm;
  }
  for (size_t i = 0; i < COUNT(firsts); i++) {
    const size_t n = strlen(firsts[i].opcode);

    if (begins(s, firsts[i].opcode) && s.data[n] == '.' &&
        has(s, firsts[i].modifier) &&
        strncmp(s.data + n, firsts[i].modifier, strlen(firsts[i].modifier)) !=
            0)
      m->n = 0;
  }
  m->specific = any_holds(specifics, COUNT(specifics), s);
  m->exact = any_holds(exacts, COUNT(exacts), s);
  m->no_result = any_holds(no_results, COUNT(no_results), s);
}
