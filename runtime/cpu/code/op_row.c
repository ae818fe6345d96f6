/* op_row.c -- parses the operand column of ops.def.
 *
 * The column contains one description per operand, in the syntax that ops.def
 * defines. Each description becomes one kiln__cpu_form. It is parsed from both
 * ends: first the suffixes (`?`, `@x`, ranges), then the prefixes, and finally
 * the type in the middle. The matcher parses all rows once per program. */
#include "code_build.h"

#include <string.h>

typedef kiln__cpu_slice word;

/* Removes the character `c` from the end or from the start of an operand
 * description if it is present. */
static bool drop_last(word *w, char c)
{
  if (w->size == 0 || w->data[w->size - 1] != c)
    return false;
  w->size--;
  return true;
}

static bool drop_first(word *w, char c)
{
  if (w->size == 0 || w->data[0] != c)
    return false;
  w->data++;
  w->size--;
  return true;
}

/* A word of the operand column, and the value that the word stands for. */
typedef struct named {
  const char *text;
  uint8_t value;
} named;

/* Looks up a word in a table. Returns false if the table does not contain the
 * word. */
static bool look_up(word w, const named *table, size_t n, uint8_t *value)
{
  for (size_t i = 0; i < n; i++) {
    if (kiln__cpu_slice_is(w, table[i].text)) {
      *value = table[i].value;
      return true;
    }
  }
  return false;
}

#define LOOK_UP(w, table, value)                                               \
  look_up(w, table, sizeof(table) / sizeof *(table), value)

static bool read_type(word w, uint8_t *type)
{
  static const named special[] = {{"$1", KILN__TYPE_LAST},
                                  {"$2", KILN__TYPE_BEFORE},
                                  {"$W", KILN__TYPE_TWICE},
                                  {"w", KILN__TYPE_WORD}};

  if (LOOK_UP(w, special, type))
    return true;
  for (unsigned i = 1; i < KILN__N_PTX_TYPES; i++) {
    if (kiln__cpu_slice_is(w, kiln__cpu_ptx_type_text[i])) {
      *type = (uint8_t)i;
      return true;
    }
  }
  return false;
}

static bool read_space(word w, uint8_t *space)
{
  static const named spaces[] = {{"*", KILN__SPACE_OF_OPCODE},
                                 {"generic", KILN__SPACE_GENERIC},
                                 {"global", KILN__SPACE_GLOBAL},
                                 {"shared", KILN__SPACE_SHARED},
                                 {"cluster", KILN__SPACE_SHARED_CLUSTER},
                                 {"const", KILN__SPACE_CONST},
                                 {"local", KILN__SPACE_LOCAL},
                                 {"param", KILN__SPACE_PARAM}};

  return LOOK_UP(w, spaces, space);
}

static bool read_geometry(word w, const kiln__cpu_geometry **out)
{
  static const kiln__cpu_geometry shapes[] = {
      {"1d", 1, 1, false},  {"2d", 2, 2, false}, {"3d", 4, 4, false},
      {"a1d", 2, 1, true},  {"a2d", 4, 2, true}, {"cube", 4, 4, false},
      {"acube", 4, 4, true}};

  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (kiln__cpu_slice_is(w, shapes[i].name)) {
      *out = &shapes[i];
      return true;
    }
  }
  return false;
}

/* Returns the part of `w` before the next colon. Only the part after the colon
 * remains in `w`. */
static word take_part(word *w)
{
  const char *colon = memchr(w->data, ':', w->size);
  const uint32_t n = colon == NULL ? w->size : (uint32_t)(colon - w->data);
  const word part = {w->data, n};

  w->data += n + (colon != NULL);
  w->size -= n + (colon != NULL);
  return part;
}

/* Parses an operand description in brackets: [S], [S:V], [tex], [tex:2d:f32],
 * [map] or [mbar]. The caller has already removed the brackets. */
static bool read_address(word w, kiln__cpu_form *f)
{
  const word first = take_part(&w);

  if (kiln__cpu_slice_is(first, "map")) {
    f->shape = KILN__SHAPE_MAP;
    return true;
  }
  f->listed = kiln__cpu_slice_is(first, "mbar");
  if (f->listed) {
    f->shape = KILN__SHAPE_ADDRESS;
    f->space = KILN__SPACE_SHARED_CLUSTER;
    return true;
  }

  f->surface = kiln__cpu_slice_is(first, "surf");
  if (f->surface || kiln__cpu_slice_is(first, "tex")) {
    f->shape = KILN__SHAPE_TEXTURE;
    return w.size == 0 || (read_geometry(take_part(&w), &f->geometry) &&
                           read_type(w, &f->type));
  }
  f->shape = KILN__SHAPE_ADDRESS;
  return read_space(first, &f->space) &&
         (w.size == 0 || read_space(w, &f->variable));
}

/* Parses an operand description such as {4|8|16}, which allows several numbers.
 * The numbers are powers of two up to 128, and `count` stores them as a bit
 * set. */
static bool read_choice(word w, kiln__cpu_form *f)
{
  unsigned number = 0;

  f->shape = KILN__SHAPE_CHOICE;
  for (size_t i = 1; i < w.size; i++) {
    if (w.data[i] >= '0' && w.data[i] <= '9') {
      number = number * 10 + (unsigned)(w.data[i] - '0');
    } else {
      if (number == 0 || number > 128 || (number & (number - 1)) != 0)
        return false;
      f->count |= (uint8_t)number;
      number = 0;
    }
  }
  return w.data[w.size - 1] == '}';
}

static bool read_braces(word w, kiln__cpu_form *f)
{
  static const named forms[] = {
      {"{list}", KILN__SHAPE_LIST},     {"{pack}", KILN__SHAPE_PACK},
      {"{unpack}", KILN__SHAPE_UNPACK}, {"{label}", KILN__SHAPE_LABEL},
      {"{call}", KILN__SHAPE_CALL},     {"{targets}", KILN__SHAPE_TARGETS},
      {"{mask}", KILN__SHAPE_MASK},     {"{offsets}", KILN__SHAPE_OFFSETS},
      {"{policy}", KILN__SHAPE_POLICY}, {"{wgmma}", KILN__SHAPE_WGMMA},
      {"{video}", KILN__SHAPE_VIDEO},   {"{selector}", KILN__SHAPE_SELECTOR},
      {"{skip}", KILN__SHAPE_SKIP},
  };

  f->type = KILN__TYPE_LAST;
  if (w.size == 3 && w.data[1] >= 'a' && w.data[1] <= 'd') {
    f->shape = KILN__SHAPE_FRAGMENT;
    f->count = (uint8_t)(w.data[1] - 'a');
    return true;
  }
  if (w.size > 1 && w.data[1] >= '0' && w.data[1] <= '9')
    return read_choice(w, f);
  if (w.size > 6 && memcmp(w.data, "{grad:", 6) == 0) {
    f->shape = KILN__SHAPE_GRADIENT;
    return read_geometry((word){w.data + 6, w.size - 7}, &f->geometry);
  }
  if (!LOOK_UP(w, forms, &f->shape))
    return false;
  f->optional = f->optional || f->shape == KILN__SHAPE_MASK ||
                f->shape == KILN__SHAPE_OFFSETS ||
                f->shape == KILN__SHAPE_POLICY;
  return true;
}

/* Parses the text after the V in a vector description of ops.def: V, V$2, V4 or
 * V4f32. */
static bool read_data(word w, kiln__cpu_form *f)
{
  f->type = KILN__TYPE_LAST;
  if (w.size > 0 && w.data[0] >= '1' && w.data[0] <= '8') {
    f->count = (uint8_t)(w.data[0] - '0');
    w.data++;
    w.size--;
  }
  return w.size == 0 || read_type(w, &f->type);
}

static bool read_slot(word *w, kiln__cpu_form *f)
{
  if (w->size > 2 && w->data[w->size - 2] == '@') {
    const char *at = strchr("abce", w->data[w->size - 1]);

    if (at == NULL)
      return false;
    f->slot = (uint8_t)(at - "abce" + 1);
    w->size -= 2;
  }
  return true;
}

static bool read_number(word *w, uint32_t *number)
{
  const size_t all = w->size;

  *number = 0;
  for (; w->size > 0 && *w->data >= '0' && *w->data <= '9';
       w->data++, w->size--)
    *number = *number * 10 + (uint32_t)(*w->data - '0');
  return w->size < all;
}

/* Parses the suffixes of an operand type in ops.def (>=1, <=15, *16, ^, /90, !
 * and _) in any order. */
static bool read_limits(word *w, kiln__cpu_form *f)
{
  word rest = *w;
  uint32_t sm = 0;

  while (rest.size > 0 && strchr("<>*^/!_", *rest.data) == NULL) {
    rest.data++;
    rest.size--;
  }
  w->size -= rest.size;
  while (rest.size > 0) {
    bool ok = true;

    if (drop_first(&rest, '^'))
      f->power_of_two = true;
    else if (drop_first(&rest, '!'))
      f->register_only = true;
    else if (drop_first(&rest, '_'))
      f->discards = true;
    else if (drop_first(&rest, '*'))
      ok = read_number(&rest, &f->multiple);
    else if (drop_first(&rest, '/'))
      ok = read_number(&rest, &sm);
    else if (drop_first(&rest, '>'))
      ok = drop_first(&rest, '=') && read_number(&rest, &f->least);
    else if (drop_first(&rest, '<') && drop_first(&rest, '='))
      ok = drop_first(&rest, 'B') ? (f->most = KILN__MOST_BYTES, true)
                                  : read_number(&rest, &f->most);
    else
      ok = false;
    if (!ok)
      return false;
  }
  f->sm = (uint8_t)sm;
  return true;
}

/* Parses the suffix |P or ||P of a destination in ops.def, which adds a
 * predicate result. */
static void read_pair(word *w, kiln__cpu_form *f)
{
  if (w->size > 2 && memcmp(w->data + w->size - 2, "|P", 2) == 0) {
    f->shape = KILN__SHAPE_DEST_PAIR;
    w->size -= 2;
    f->paired = drop_last(w, '|');
  }
}

static bool read_form(word w, kiln__cpu_form *f)
{
  bool written;

  *f = (kiln__cpu_form){0};
  f->optional = drop_last(&w, '?');
  if (!read_slot(&w, f))
    return false;
  if (drop_first(&w, '['))
    return drop_last(&w, ']') && read_address(w, f);
  if (w.size > 0 && w.data[0] == '{')
    return read_braces(w, f);
  written = drop_first(&w, '=');
  if (written && w.size > 0 && w.data[0] == '{') {
    f->written = true;
    return read_braces(w, f);
  }
  f->shape = written ? KILN__SHAPE_DEST : KILN__SHAPE_SOURCE;
  if (written)
    read_pair(&w, f);
  else if (drop_first(&w, '#'))
    f->shape = KILN__SHAPE_NUMBER;
  else if (drop_first(&w, '!'))
    f->shape = KILN__SHAPE_PREDICATE;
  else if (drop_first(&w, '~'))
    f->symbols = KILN__SYMBOLS_ANY;
  else if (drop_first(&w, '&'))
    f->symbols = KILN__SYMBOLS_VARIABLE;
  f->strict = drop_first(&w, '%');
  if (!read_limits(&w, f))
    return false;
  f->wider = drop_last(&w, '+');
  if (drop_first(&w, 'V')) {
    f->shape = written ? KILN__SHAPE_DATA_OUT : KILN__SHAPE_DATA_IN;
    return read_data(w, f);
  }
  return read_type(w, &f->type);
}

bool kiln__cpu_row_read(kiln__cpu_row *row, const char *operands)
{
  row->n_forms = 0;
  row->vec_written = false;
  while (*operands != '\0') {
    const size_t n = strcspn(operands, " ");
    kiln__cpu_form *f = &row->forms[row->n_forms];

    if (row->n_forms == KILN__MAX_FORMS ||
        !read_form((word){operands, (uint32_t)n}, f))
      return false;
    if (f->shape == KILN__SHAPE_DATA_OUT || f->shape == KILN__SHAPE_UNPACK ||
        f->shape == KILN__SHAPE_WGMMA || f->written)
      row->vec_written = true;
    row->n_forms++;
    operands += n;
    operands += strspn(operands, " ");
  }
  return true;
}
