/* match_opcode.c -- finds the rows of ops.def that an opcode matches.
 *
 * A pattern is literal text with alternatives, such as
 * "ld(.weak)?.global(.u32|.s32)", and is matched by backtracking. Rows are
 * hashed by mnemonic. Each distinct opcode of a program is matched once and
 * then cached, so the cost per statement is one hash look-up.
 *
 * ptxas accepts most modifiers in any order. If no pattern matches the opcode
 * as written, the patterns are matched against the set of its modifiers. Only
 * types must keep their relative order. */
#include "code_build.h"

#include <stddef.h>
#include <string.h>

/* ---- Patterns ------------------------------------------------------------ */

/* Every alternative of a pattern begins with a dot, so that no match can end in
 * the middle of a modifier. */

static bool matches_from(const char *p, const char *text, const char *end);

/* Tries the alternatives of one group (.a|.b) of a pattern. The group extends
 * from p, which points after '(', to `close`. Returns whether one of the
 * alternatives matches. */
static bool matches_group(const char *p, const char *close, const char *rest,
                          const char *text, const char *end)
{
  while (p < close) {
    const char *bar = p;
    size_t n;

    while (bar < close && *bar != '|')
      bar++;
    n = (size_t)(bar - p);
    if (n <= (size_t)(end - text) && memcmp(p, text, n) == 0 &&
        matches_from(rest, text + n, end))
      return true;
    p = bar + 1;
  }
  return false;
}

static bool matches_from(const char *p, const char *text, const char *end)
{
  while (*p != '\0') {
    if (*p == '(') {
      const char *close = strchr(p, ')');
      const bool optional = close != NULL && close[1] == '?';
      const char *rest = close == NULL ? p : close + 1 + optional;

      if (close == NULL)
        return false;
      if (matches_group(p + 1, close, rest, text, end))
        return true;
      if (!optional)
        return false;
      p = rest;
    } else {
      const size_t n = strcspn(p, "(");

      if (n > (size_t)(end - text) || memcmp(p, text, n) != 0)
        return false;
      p += n;
      text += n;
    }
  }
  return text == end;
}

bool kiln__cpu_pattern_matches(const char *pattern, const char *text,
                               size_t size)
{
  return matches_from(pattern, text, text + size);
}

/* ---- Modifiers in another order ------------------------------------------ */

/* ptxas accepts most modifiers in any order; only types must keep their
 * relative order. If no pattern matches the opcode as written, the patterns are
 * matched against the set of its modifiers. */

enum { MAX_MODIFIERS = 16 };

typedef struct modifier_text {
  const char *at;
  size_t size;
  bool type;
} modifier_text;

typedef struct unordered {
  modifier_text mods[MAX_MODIFIERS];
  unsigned n;
} unordered;

static kiln__cpu_ptx_type type_named(const char *text, size_t size);

/* Returns the bit set `left` of unused modifiers without the modifier that
 * equals `text`. Returns `left` unchanged if no such modifier is left. A type
 * must be the first unused type. */
static unsigned use_one(const unordered *u, unsigned left, const char *text,
                        size_t size)
{
  bool type_before = false;

  for (unsigned i = 0; i < u->n; i++) {
    const modifier_text *m = &u->mods[i];

    if ((left >> i & 1) == 0)
      continue;
    if (m->size == size && memcmp(m->at, text, size) == 0 &&
        !(m->type && type_before))
      return left & ~(1u << i);
    type_before |= m->type;
  }
  return left;
}

/* Removes all modifiers of a sequence such as `.a.b.c` from the set *left.
 * Returns false if one of the modifiers is missing. */
static bool use_all(const unordered *u, unsigned *left, const char *text,
                    const char *end)
{
  while (text < end) {
    const char *next = text + 1;
    unsigned now;

    while (next < end && *next != '.')
      next++;
    now = use_one(u, *left, text, (size_t)(next - text));
    if (now == *left)
      return false;
    *left = now;
    text = next;
  }
  return true;
}

static bool unordered_from(const unordered *u, const char *p, unsigned left)
{
  while (*p == '.') {
    const char *end = p + strcspn(p, "(");

    if (!use_all(u, &left, p, end))
      return false;
    p = end;
  }
  if (*p == '(') {
    const char *close = strchr(p, ')');
    const bool optional = close != NULL && close[1] == '?';

    if (close == NULL)
      return false;
    for (const char *alt = p + 1; alt < close;) {
      const char *end = alt + strcspn(alt, "|)");
      unsigned now = left;

      if (use_all(u, &now, alt, end) &&
          unordered_from(u, close + 1 + optional, now))
        return true;
      alt = end + 1;
    }
    return optional && unordered_from(u, close + 2, left);
  }
  return *p == '\0' && left == 0;
}

/* Returns whether a modifier is a type. Types that only few instructions have,
 * such as .e4m3x2, also count. */
static bool is_type(const char *text, size_t size)
{
  return type_named(text, size) != KILN__NONE ||
         (size > 2 && memcmp(text + size - 2, "x2", 2) == 0);
}

static bool split_opcode(unordered *u, const char *text, size_t size)
{
  const char *end = text + size;

  text = memchr(text, '.', size);
  for (u->n = 0; text != NULL && text < end; u->n++) {
    const char *next = memchr(text + 1, '.', (size_t)(end - text - 1));
    const size_t n = (size_t)((next == NULL ? end : next) - text);

    if (u->n == MAX_MODIFIERS)
      return false;
    u->mods[u->n] = (modifier_text){text, n, is_type(text + 1, n - 1)};
    if (n == 5 && memcmp(text, ".pack", n) == 0)
      return false;
    text = next;
  }
  return u->n > 0;
}

/* ---- Modifiers ----------------------------------------------------------- */

/* The members of kiln__cpu_insn that a modifier may set. All of them are single
 * bytes, except `flags`. */
enum {
  FIELD_round = offsetof(kiln__cpu_insn, round),
  FIELD_cmp = offsetof(kiln__cpu_insn, cmp),
  FIELD_boolop = offsetof(kiln__cpu_insn, boolop),
  FIELD_space = offsetof(kiln__cpu_insn, space),
  FIELD_sem = offsetof(kiln__cpu_insn, sem),
  FIELD_scope = offsetof(kiln__cpu_insn, scope),
  FIELD_sub = offsetof(kiln__cpu_insn, sub),
  FIELD_sub2 = offsetof(kiln__cpu_insn, sub2),
  FIELD_dim = offsetof(kiln__cpu_insn, dim),
  FIELD_flags = offsetof(kiln__cpu_insn, flags),
  FIELD_NOTE = sizeof(kiln__cpu_insn)
};

static const struct {
  const char *text;
  uint32_t value;
  size_t field;
} modifiers[] = {
#define KILN__MOD(text, field, value) {text, (uint32_t)(value), FIELD_##field},
#include "modifiers.def"
#undef KILN__MOD
};

static void set_field(kiln__cpu_insn *in, size_t field, uint32_t value)
{
  if (field == FIELD_flags)
    in->flags |= value;
  else if (field != FIELD_NOTE)
    ((uint8_t *)in)[field] = (uint8_t)value;
}

static kiln__cpu_ptx_type type_named(const char *text, size_t size)
{
  for (int i = 1; i < KILN__N_PTX_TYPES; i++) {
    if (strlen(kiln__cpu_ptx_type_text[i]) == size &&
        memcmp(kiln__cpu_ptx_type_text[i], text, size) == 0)
      return (kiln__cpu_ptx_type)i;
  }
  return KILN__NONE;
}

bool kiln__cpu_modifier_apply(kiln__cpu_insn *in, const char *text, size_t size)
{
  const kiln__cpu_ptx_type type = type_named(text + 1, size - 1);

  if (type != KILN__NONE) {
    in->type2 = in->type;
    in->type = (uint8_t)type;
    return true;
  }
  for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers; i++) {
    if (strlen(modifiers[i].text) == size &&
        memcmp(modifiers[i].text, text, size) == 0) {
      set_field(in, modifiers[i].field, modifiers[i].value);
      return true;
    }
  }
  return false;
}

/* Sets the instruction fields that the modifiers of an opcode stand for. */
static void read_opcode(kiln__cpu_insn *in, const char *text, size_t size)
{
  const char *end = text + size;

  *in = (kiln__cpu_insn){KILN__NO_SLOTS};
  text = memchr(text, '.', size);
  for (const char *next; text != NULL; text = next) {
    next = memchr(text + 1, '.', (size_t)(end - text - 1));
    (void)kiln__cpu_modifier_apply(
        in, text, (size_t)((next != NULL ? next : end) - text));
  }
  in->bytes = kiln__cpu_ptx_type_bytes[in->type];
}

/* ---- The matcher --------------------------------------------------------- */

static uint32_t hash_text(const char *text, size_t size)
{
  uint32_t h = 2166136261u;

  for (size_t i = 0; i < size; i++)
    h = (h ^ (uint8_t)text[i]) * 16777619u;
  return h ^ (h >> 15);
}

/* Returns the length of the mnemonic, which is the part of the opcode before
 * the first modifier. */
static size_t mnemonic(const char *text, size_t size)
{
  size_t n = 0;

  while (n < size && text[n] != '.' && text[n] != '(')
    n++;
  return n;
}

static kiln_status read_rows(kiln__cpu_matcher *m)
{
  static const struct {
    const char *pattern, *operands;
    uint8_t kind, klass;
    uint16_t ptx, sm;
  } table[KILN__N_OPS] = {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)          \
  {pattern, operands, KILN__KIND_##kind, KILN__CLASS_##klass, ptx, sm},
#include "ops.def"
#undef KILN__OP
  };

  for (size_t i = KILN__N_OPS; i-- > 0;) {
    kiln__cpu_row *row = &m->rows[i];
    const char *pattern = table[i].pattern;
    uint16_t *head =
        &m->heads[hash_text(pattern, mnemonic(pattern, strlen(pattern))) % 256];

    row->pattern = pattern;
    row->ptx = table[i].ptx;
    row->sm = table[i].sm;
    row->kind = table[i].kind;
    row->klass = table[i].klass;
    row->internal = pattern[0] == '@';
    if (!kiln__cpu_row_read(row, table[i].operands))
      return kiln__fail(KILN_EINTERNAL, NULL, "ops.def: %s: operands \"%s\"",
                        kiln__cpu_op_name[i], table[i].operands);
    row->next = *head;
    *head = (uint16_t)i;
  }
  return KILN_OK;
}

kiln_status kiln__cpu_matcher_init(kiln__cpu_matcher *m,
                                   kiln__cpu_ptx_module *arena)
{
  *m = (kiln__cpu_matcher){.arena = arena, .size = 1024};
  memset(m->heads, 0xff, sizeof m->heads);
  m->rows = kiln__cpu_ptx_alloc(arena, sizeof *m->rows * KILN__N_OPS);
  m->seen = kiln__cpu_ptx_alloc(arena, sizeof *m->seen * m->size);
  if (m->rows == NULL || m->seen == NULL)
    return kiln__fail_memory("the instruction table");
  return read_rows(m);
}

static kiln__cpu_matches **place_of(kiln__cpu_matches **table, uint32_t size,
                                    const char *text, size_t n, uint32_t hash)
{
  for (uint32_t i = hash & (size - 1);; i = (i + 1) & (size - 1)) {
    if (table[i] == NULL ||
        (table[i]->hash == hash && table[i]->opcode.size == n &&
         memcmp(table[i]->opcode.data, text, n) == 0))
      return &table[i];
  }
}

static bool grow_seen(kiln__cpu_matcher *m)
{
  const uint32_t size = m->size * 4;
  kiln__cpu_matches **table =
      kiln__cpu_ptx_alloc(m->arena, sizeof *table * size);

  if (table == NULL)
    return false;
  for (uint32_t i = 0; i < m->size; i++) {
    const kiln__cpu_matches *e = m->seen[i];

    if (e != NULL)
      *place_of(table, size, e->opcode.data, e->opcode.size, e->hash) =
          m->seen[i];
  }
  m->seen = table;
  m->size = size;
  return true;
}

static void match_unordered(const kiln__cpu_matcher *m, kiln__cpu_matches *e,
                            uint16_t first)
{
  const kiln__cpu_slice s = e->opcode;
  const size_t n = mnemonic(s.data, s.size);
  unordered u;

  if ((e->family & KILN__FAMILY_FIXED) != 0 ||
      !split_opcode(&u, s.data, s.size))
    return;
  for (uint16_t i = first; i != KILN__NO_ROW; i = m->rows[i].next) {
    const char *p = m->rows[i].pattern;

    if (!m->rows[i].internal && e->n < KILN__MAX_ROWS &&
        strncmp(p, s.data, n) == 0 && mnemonic(p, strlen(p)) == n &&
        unordered_from(&u, p + n, (1u << u.n) - 1))
      e->ops[e->n++] = i;
  }
}

static kiln__cpu_matches *match_new(kiln__cpu_matcher *m, const char *text,
                                    size_t size, uint32_t hash)
{
  kiln__cpu_matches *e = kiln__cpu_ptx_alloc(m->arena, sizeof *e);
  char *copy = kiln__cpu_ptx_alloc(m->arena, size + 1);
  uint32_t key = hash_text(text, mnemonic(text, size)) % 256;

  if (e == NULL || copy == NULL)
    return NULL;
  memcpy(copy, text, size);
  e->opcode = (kiln__cpu_slice){copy, (uint32_t)size};
  e->hash = hash;
  e->family = kiln__cpu_family_of(e->opcode);
  read_opcode(&e->fields, copy, size);
  if ((e->family & KILN__FAMILY_ALIGNED) != 0)
    e->fields.flags |= KILN__ALIGNED;
  for (uint16_t i = m->heads[key]; i != KILN__NO_ROW; i = m->rows[i].next) {
    if (!m->rows[i].internal && e->n < KILN__MAX_ROWS &&
        kiln__cpu_pattern_matches(m->rows[i].pattern, copy, size))
      e->ops[e->n++] = i;
  }
  if (e->n == 0)
    match_unordered(m, e, m->heads[key]);
  kiln__cpu_rules_apply(e);
  return e;
}

const kiln__cpu_matches *kiln__cpu_matcher_find(kiln__cpu_matcher *m,
                                                const char *text, size_t size)
{
  const uint32_t hash = hash_text(text, size);
  kiln__cpu_matches **place = place_of(m->seen, m->size, text, size, hash);

  if (*place != NULL)
    return *place;
  if (m->n_seen * 2 >= m->size) {
    if (!grow_seen(m))
      return NULL;
    place = place_of(m->seen, m->size, text, size, hash);
  }
  *place = match_new(m, text, size, hash);
  m->n_seen += *place != NULL;
  return *place;
}
