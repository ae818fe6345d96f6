/* op_row.c -- the operand column of ops.def. */
#include "code_build.h"

#include <string.h>

typedef struct word {
  const char *text;
  size_t size;
} word;

static bool word_is(word w, const char *text)
{
  return w.size == strlen(text) && memcmp(w.text, text, w.size) == 0;
}

/* Take `c` off the end or the start. */
static bool drop_last(word *w, char c)
{
  if (w->size == 0 || w->text[w->size - 1] != c)
    return false;
  w->size--;
  return true;
}

static bool drop_first(word *w, char c)
{
  if (w->size == 0 || w->text[0] != c)
    return false;
  w->text++;
  w->size--;
  return true;
}

static bool read_type(word w, uint8_t *type)
{
  static const struct {
    const char *text;
    uint8_t type;
  } special[] = {{"$1", KILN__TYPE_LAST},
                 {"$2", KILN__TYPE_BEFORE},
                 {"$W", KILN__TYPE_TWICE},
                 {"w", KILN__TYPE_WORD}};

  for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
    if (word_is(w, special[i].text)) {
      *type = special[i].type;
      return true;
    }
  }
  for (unsigned i = 1; i < KILN__N_PTX_TYPES; i++) {
    if (word_is(w, kiln__cpu_ptx_type_text[i])) {
      *type = (uint8_t)i;
      return true;
    }
  }
  return false;
}

static bool read_address(word w, kiln__cpu_form *f)
{
  static const struct {
    const char *text;
    uint8_t space;
  } spaces[] = {{"[*]", KILN__SPACE_OF_OPCODE},
                {"[generic]", KILN__SPACE_GENERIC},
                {"[global]", KILN__SPACE_GLOBAL},
                {"[shared]", KILN__SPACE_SHARED},
                {"[cluster]", KILN__SPACE_SHARED_CLUSTER},
                {"[const]", KILN__SPACE_CONST},
                {"[local]", KILN__SPACE_LOCAL},
                {"[param]", KILN__SPACE_PARAM}};

  if (word_is(w, "[tex]")) {
    f->shape = KILN__SHAPE_TEXTURE;
    return true;
  }
  f->shape = KILN__SHAPE_ADDRESS;
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
    if (word_is(w, spaces[i].text)) {
      f->space = spaces[i].space;
      return true;
    }
  }
  return false;
}

/* {4|8|16}: powers of two up to 128, as bits of `count`. */
static bool read_choice(word w, kiln__cpu_form *f)
{
  unsigned number = 0;

  f->shape = KILN__SHAPE_CHOICE;
  for (size_t i = 1; i < w.size; i++) {
    if (w.text[i] >= '0' && w.text[i] <= '9') {
      number = number * 10 + (unsigned)(w.text[i] - '0');
    } else {
      if (number == 0 || number > 128 || (number & (number - 1)) != 0)
        return false;
      f->count |= (uint8_t)number;
      number = 0;
    }
  }
  return w.text[w.size - 1] == '}';
}

static bool read_braces(word w, kiln__cpu_form *f)
{
  static const struct {
    const char *text;
    uint8_t shape;
  } forms[] = {
      {"{list}", KILN__SHAPE_LIST},     {"{pack}", KILN__SHAPE_PACK},
      {"{unpack}", KILN__SHAPE_UNPACK}, {"{label}", KILN__SHAPE_LABEL},
      {"{call}", KILN__SHAPE_CALL},     {"{targets}", KILN__SHAPE_TARGETS},
  };

  f->type = KILN__TYPE_LAST;
  if (w.size > 1 && w.text[1] >= '0' && w.text[1] <= '9')
    return read_choice(w, f);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (word_is(w, forms[i].text)) {
      f->shape = forms[i].shape;
      return true;
    }
  }
  return false;
}

/* V, V$2, V4, V4f32: behind the V. */
static bool read_data(word w, kiln__cpu_form *f)
{
  f->type = KILN__TYPE_LAST;
  if (w.size > 0 && w.text[0] >= '1' && w.text[0] <= '8') {
    f->count = (uint8_t)(w.text[0] - '0');
    w.text++;
    w.size--;
  }
  return w.size == 0 || read_type(w, &f->type);
}

static bool read_slot(word *w, kiln__cpu_form *f)
{
  if (w->size > 2 && w->text[w->size - 2] == '@') {
    const char *at = strchr("abce", w->text[w->size - 1]);

    if (at == NULL)
      return false;
    f->slot = (uint8_t)(at - "abce" + 1);
    w->size -= 2;
  }
  return true;
}

static bool read_form(word w, kiln__cpu_form *f)
{
  bool written;

  *f = (kiln__cpu_form){0};
  f->optional = drop_last(&w, '?');
  if (!read_slot(&w, f))
    return false;
  if (w.size > 0 && w.text[0] == '[')
    return read_address(w, f);
  if (w.size > 0 && w.text[0] == '{')
    return read_braces(w, f);
  f->wider = drop_last(&w, '+');
  written = drop_first(&w, '=');
  if (drop_first(&w, 'V')) {
    f->shape = written ? KILN__SHAPE_DATA_OUT : KILN__SHAPE_DATA_IN;
    return read_data(w, f);
  }
  f->shape = KILN__SHAPE_SOURCE;
  if (written) {
    f->shape = KILN__SHAPE_DEST;
    if (w.size > 2 && memcmp(w.text + w.size - 2, "|P", 2) == 0) {
      f->shape = KILN__SHAPE_DEST_PAIR;
      w.size -= 2;
      f->paired = drop_last(&w, '|');
    }
  } else if (drop_first(&w, '#')) {
    f->shape = KILN__SHAPE_NUMBER;
  } else if (drop_first(&w, '!')) {
    f->shape = KILN__SHAPE_PREDICATE;
  }
  f->strict = drop_first(&w, '%');
  return read_type(w, &f->type);
}

bool kiln__cpu_row_read(kiln__cpu_row *row, const char *operands)
{
  row->n_forms = 0;
  row->vec_written = false;
  while (*operands != '\0') {
    const size_t n = strcspn(operands, " ");
    kiln__cpu_form *f = &row->forms[row->n_forms];

    if (row->n_forms == KILN__MAX_FORMS || !read_form((word){operands, n}, f))
      return false;
    if (f->shape == KILN__SHAPE_DATA_OUT || f->shape == KILN__SHAPE_UNPACK)
      row->vec_written = true;
    row->n_forms++;
    operands += n;
    operands += strspn(operands, " ");
  }
  return true;
}
