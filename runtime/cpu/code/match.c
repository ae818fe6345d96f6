/* match.c -- opcode text to rows of ops.def. */
#include "build.h"

#include <string.h>

/* ---- Patterns ------------------------------------------------------------- */

/* A pattern's piece must end where a modifier of the text ends. */
static bool at_boundary(const char *text, const char *end)
{
  return text == end || *text == '.';
}

static bool matches_from(const char *p, const char *text, const char *end);

/* One of the alternatives between p, which is behind '(', and `close`. */
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
        at_boundary(text + n, end) && matches_from(rest, text + n, end))
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

      if (n > (size_t)(end - text) || memcmp(p, text, n) != 0 ||
          !at_boundary(text + n, end))
        return false;
      p += n;
      text += n;
    }
  }
  return text == end;
}

bool kiln__pattern_matches(const char *pattern, const char *text, size_t size)
{
  return matches_from(pattern, text, text + size);
}

/* ---- Modifiers -------------------------------------------------------------- */

typedef enum kiln__field {
  FIELD_round,
  FIELD_flags,
  FIELD_cmp,
  FIELD_boolop,
  FIELD_space,
  FIELD_sem,
  FIELD_scope,
  FIELD_sub,
  FIELD_sub2,
  FIELD_NOTE
} kiln__field;

typedef struct modifier {
  const char *text;
  uint32_t value;
  kiln__field field;
} modifier;

static const modifier modifiers[] = {
#define KILN__MOD(text, field, value) {text, (uint32_t)(value), FIELD_##field},
#include "modifiers.def"
#undef KILN__MOD
};

static void set_field(kiln__insn *in, kiln__field field, uint32_t value)
{
  switch (field) {
  case FIELD_round:
    in->round = (uint8_t)value;
    break;
  case FIELD_flags:
    in->flags |= value;
    break;
  case FIELD_cmp:
    in->cmp = (uint8_t)value;
    break;
  case FIELD_boolop:
    in->boolop = (uint8_t)value;
    break;
  case FIELD_space:
    in->space = (uint8_t)value;
    break;
  case FIELD_sem:
    in->sem = (uint8_t)value;
    break;
  case FIELD_scope:
    in->scope = (uint8_t)value;
    break;
  case FIELD_sub:
    in->sub = (uint8_t)value;
    break;
  case FIELD_sub2:
    in->sub2 = (uint8_t)value;
    break;
  case FIELD_NOTE:
    break;
  }
}

static kiln__ptx_type type_named(const char *text, size_t size)
{
  for (int i = 1; i < KILN__N_PTX_TYPES; i++) {
    if (strlen(kiln__ptx_type_text[i]) == size &&
        memcmp(kiln__ptx_type_text[i], text, size) == 0)
      return (kiln__ptx_type)i;
  }
  return KILN__NONE;
}

bool kiln__modifier_apply(kiln__insn *in, const char *text, size_t size)
{
  const kiln__ptx_type type = type_named(text + 1, size - 1);

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

/* What all modifiers of an opcode set. */
static void read_opcode(kiln__insn *in, const char *text, size_t size)
{
  const char *end = text + size;

  *in = (kiln__insn){.d = -1,
                     .d2 = -1,
                     .a = -1,
                     .b = -1,
                     .c = -1,
                     .e = -1,
                     .guard = -1,
                     .join = UINT32_MAX};
  text = memchr(text, '.', size);
  while (text != NULL && text < end) {
    const char *next = memchr(text + 1, '.', (size_t)(end - text - 1));

    if (next == NULL)
      next = end;
    (void)kiln__modifier_apply(in, text, (size_t)(next - text));
    text = next;
  }
  in->bytes = kiln__ptx_type_bytes[in->type];
}

/* ---- The matcher -------------------------------------------------------------- */

static uint32_t hash_text(const char *text, size_t size)
{
  uint32_t h = 2166136261u;

  for (size_t i = 0; i < size; i++)
    h = (h ^ (uint8_t)text[i]) * 16777619u;
  return h ^ (h >> 15);
}

/* Characters of a pattern or opcode before its first modifier. */
static size_t mnemonic(const char *text, size_t size)
{
  size_t n = 0;

  while (n < size && text[n] != '.' && text[n] != '(')
    n++;
  return n;
}

static kiln_status read_rows(kiln__matcher *m)
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
    kiln__row *row = &m->rows[i];
    const char *pattern = table[i].pattern;
    uint16_t *head =
        &m->heads[hash_text(pattern, mnemonic(pattern, strlen(pattern))) % 256];

    row->pattern = pattern;
    row->ptx = table[i].ptx;
    row->sm = table[i].sm;
    row->kind = table[i].kind;
    row->klass = table[i].klass;
    row->internal = pattern[0] == '@';
    if (!kiln__row_read(row, table[i].operands))
      return kiln__fail(KILN_EINTERNAL, NULL, "ops.def: %s: operands \"%s\"",
                        kiln__op_name[i], table[i].operands);
    row->next = *head;
    *head = (uint16_t)i;
  }
  return KILN_OK;
}

kiln_status kiln__matcher_init(kiln__matcher *m, kiln__ptx_module *arena)
{
  *m = (kiln__matcher){.arena = arena, .size = 1024};
  memset(m->heads, 0xff, sizeof m->heads);
  m->rows = kiln__ptx_alloc(arena, sizeof *m->rows * KILN__N_OPS);
  m->seen = kiln__ptx_alloc(arena, sizeof *m->seen * m->size);
  if (m->rows == NULL || m->seen == NULL)
    return kiln__fail_memory("the instruction table");
  return read_rows(m);
}

static kiln__matches **place_of(kiln__matches **table, uint32_t size,
                                const char *text, size_t n, uint32_t hash)
{
  for (uint32_t i = hash & (size - 1);; i = (i + 1) & (size - 1)) {
    if (table[i] == NULL ||
        (table[i]->hash == hash && table[i]->opcode.size == n &&
         memcmp(table[i]->opcode.data, text, n) == 0))
      return &table[i];
  }
}

static bool grow_seen(kiln__matcher *m)
{
  const uint32_t size = m->size * 4;
  kiln__matches **table = kiln__ptx_alloc(m->arena, sizeof *table * size);

  if (table == NULL)
    return false;
  for (uint32_t i = 0; i < m->size; i++) {
    const kiln__matches *e = m->seen[i];

    if (e != NULL)
      *place_of(table, size, e->opcode.data, e->opcode.size, e->hash) =
          m->seen[i];
  }
  m->seen = table;
  m->size = size;
  return true;
}

static kiln__matches *match_new(kiln__matcher *m, const char *text, size_t size,
                                uint32_t hash)
{
  kiln__matches *e = kiln__ptx_alloc(m->arena, sizeof *e);
  char *copy = kiln__ptx_alloc(m->arena, size + 1);
  uint32_t key = hash_text(text, mnemonic(text, size)) % 256;

  if (e == NULL || copy == NULL)
    return NULL;
  memcpy(copy, text, size);
  e->opcode = (kiln__slice){copy, (uint32_t)size};
  e->hash = hash;
  read_opcode(&e->fields, copy, size);
  for (uint16_t i = m->heads[key]; i != KILN__NO_ROW; i = m->rows[i].next) {
    if (!m->rows[i].internal && e->n < KILN__MAX_ROWS &&
        kiln__pattern_matches(m->rows[i].pattern, copy, size))
      e->ops[e->n++] = i;
  }
  kiln__needs_of(e);
  return e;
}

const kiln__matches *kiln__matcher_find(kiln__matcher *m, const char *text,
                                        size_t size)
{
  const uint32_t hash = hash_text(text, size);
  kiln__matches **place = place_of(m->seen, m->size, text, size, hash);

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
