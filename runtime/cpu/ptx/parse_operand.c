/* parse_operand.c -- parses instructions: the opcode with its modifiers, which
 * is kept as a string, and the operands. Operands are collected on a stack in
 * the parser and copied to the arena at the end of their list. code/ decides
 * whether an opcode exists and which operands are valid. */
#include "parse.h"

static const char *const specials[] = {
#define KILN__SPECIAL(name, text, type) text,
#define KILN__SPECIAL_CLOCK(text, type) text,
#define KILN__SPECIAL_OTHER(text, type) text,
#include "special_registers.def"
};

/* Returns whether the name is a numbered special register: pm0 ... pm7_64 or
 * envreg0 ... envreg31. */
static bool is_numbered(kiln__cpu_slice name)
{
  static const char *const stems[] = {"envreg", "pm", "pm"};
  static const unsigned counts[] = {32, 8, 8};
  static const char *const tails[] = {"", "", "_64"};

  for (size_t i = 0; i < 3; i++) {
    for (unsigned k = 0; k < counts[i]; k++) {
      char text[16];

      kiln__format(text, sizeof text, "%s%u%s", stems[i], k, tails[i]);
      if (kiln__cpu_slice_is(name, text))
        return true;
    }
  }
  return false;
}

/* Returns whether special_registers.def lists a special register that consists
 * of `name` followed by `tail`. */
static bool is_listed(kiln__cpu_slice name, const char *tail)
{
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
    if (strncmp(specials[i], name.data, name.size) == 0 &&
        strcmp(specials[i] + name.size, tail) == 0)
      return true;
  }
  return false;
}

static bool is_vector_special(kiln__cpu_slice name)
{
  return is_listed(name, ".x");
}

bool kiln__cpu_ptx_is_special(kiln__cpu_slice name)
{
  return is_listed(name, "") || is_vector_special(name) || is_numbered(name);
}

static int component_of(kiln__cpu_slice text)
{
  static const char *const names[] = {".x", ".y", ".z", ".w",
                                      ".r", ".g", ".b", ".a"};

  for (int i = 0; i < 8; i++) {
    if (kiln__cpu_slice_is(text, names[i]))
      return i % 4;
  }
  return -1;
}

/* Appends the source text of the current token to `text`. If white space
 * precedes the token, the result is a copy without the white space. */
static bool join(kiln__cpu_parser *p, kiln__cpu_slice *text,
                 kiln__cpu_slice more)
{
  char *joined;

  if (text->data + text->size == more.data) {
    text->size += more.size;
    return true;
  }
  joined = kiln__cpu_ptx_new(p, (size_t)text->size + more.size);
  if (joined == NULL)
    return false;
  memcpy(joined, text->data, text->size);
  memcpy(joined + text->size, more.data, more.size);
  text->data = joined;
  text->size += more.size;
  return true;
}

static bool complain_unknown(kiln__cpu_parser *p, const kiln__cpu_token *name)
{
  kiln__cpu_wrong(p, name->pos, "'%.*s' is not declared",
                  KILN__SHOWN(name->text));
  return true;
}

/* Parses a special register such as %tid.x. `name` is its first token, without
 * the component. */
static bool special(kiln__cpu_parser *p, const kiln__cpu_token *name,
                    kiln__cpu_ptx_operand *out)
{
  out->kind = KILN__OPERAND_SPECIAL;
  out->text = (kiln__cpu_slice){name->text.data + 1, name->text.size - 1};
  if (!kiln__cpu_ptx_is_special(out->text))
    return complain_unknown(p, name);
  if (p->tok.kind != KILN__TOKEN_DOT)
    return true;
  if (!is_vector_special(out->text) || component_of(p->tok.text) < 0)
    return kiln__cpu_ptx_unexpected(p, "no component here");
  if (!join(p, &out->text, p->tok.text))
    return false;
  kiln__cpu_ptx_next(p);
  return true;
}

/* Returns whether the token is a selector of a video instruction, such as .h1 or .b3210.
 * bind_video.c checks its digits. */
static bool is_selector(kiln__cpu_slice text)
{
  return text.size >= 3 && text.size <= 6 &&
         (text.data[1] == 'b' || text.data[1] == 'h') && text.data[2] >= '0' &&
         text.data[2] <= '9';
}

static bool component(kiln__cpu_parser *p, kiln__cpu_ptx_operand *out)
{
  const kiln__cpu_ptx_symbol *s = out->symbol;
  const int which = component_of(p->tok.text);

  if (which < 0 && !p->in_vector && !p->in_brackets &&
      is_selector(p->tok.text)) {
    out->selector = p->tok.text;
    kiln__cpu_ptx_next(p);
    return true;
  }
  if (s->kind != KILN__SYMBOL_VARIABLE || which < 0 ||
      s->u.variable->vector < 2 || s->u.variable->space != KILN__SPACE_REG)
    return kiln__cpu_ptx_unexpected(p, "no component here");
  if (which >= s->u.variable->vector)
    kiln__cpu_wrong(p, p->tok.pos, "the vector has %u components",
                    s->u.variable->vector);
  out->component = (int8_t)which;
  kiln__cpu_ptx_next(p);
  return true;
}

/* Parses a subscript such as `a[3]`, which is the address of an element. The
 * index is a number of elements. */
static bool subscript(kiln__cpu_parser *p, kiln__cpu_ptx_operand *out)
{
  const kiln__cpu_ptx_symbol *s = out->symbol;
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  int64_t index;
  uint64_t bytes;

  kiln__cpu_ptx_next(p);
  if (!kiln__cpu_ptx_offset(p, &index) || !kiln__cpu_ptx_expect(p, ']'))
    return false;
  if (s->kind != KILN__SYMBOL_VARIABLE || !s->u.variable->is_array ||
      index > INT32_MAX || index < INT32_MIN) {
    kiln__cpu_wrong(p, pos, "only an element of an array can be subscripted");
    return true;
  }
  bytes = (uint64_t)kiln__cpu_ptx_type_bytes[s->u.variable->type] *
          s->u.variable->vector;
  out->offset = index * (int64_t)bytes;
  return true;
}

/* Parses the name in an operand, with an optional component, subscript or
 * offset. */
static bool named(kiln__cpu_parser *p, kiln__cpu_ptx_operand *out)
{
  const kiln__cpu_token name = p->tok;

  kiln__cpu_ptx_next(p);
  out->kind = KILN__OPERAND_SYMBOL;
  out->text = name.text;
  out->symbol = kiln__cpu_ptx_lookup(p, name.text);
  if (out->symbol == NULL) {
    if (name.text.data[0] == '%')
      return special(p, &name, out);
    return complain_unknown(p, &name);
  }
  if (p->tok.kind == KILN__TOKEN_DOT)
    return component(p, out);
  if (p->tok.kind == '[' && !p->in_brackets)
    return subscript(p, out);
  if (!p->in_vector && kiln__cpu_ptx_accept(p, '+'))
    return kiln__cpu_ptx_offset(p, &out->offset);
  return true;
}

static bool constant(kiln__cpu_parser *p, kiln__cpu_ptx_operand *out)
{
  const char *from = p->tok.text.data;
  kiln__cpu_value v;

  if (!kiln__cpu_ptx_constant(p, &v))
    return false;
  out->kind = v.kind;
  out->bits = v.bits;
  out->text = (kiln__cpu_slice){from, (uint32_t)(p->tok.text.data - from)};
  if (v.kind == KILN__OPERAND_INTEGER) {
    out->is_unsigned = v.is_unsigned;
    out->negative = !v.is_unsigned && v.bits >> 63 != 0;
  }
  while (out->text.size > 0 && out->text.data[out->text.size - 1] <= ' ')
    out->text.size--;
  return true;
}

/* Parses a register, variable, constant or `_`. A register may be negated, as
 * in `!p` and `-r`. */
static bool simple(kiln__cpu_parser *p, kiln__cpu_ptx_operand *out)
{
  *out = (kiln__cpu_ptx_operand){.pos = p->tok.pos, .component = -1};
  if (p->tok.kind == '!' || p->tok.kind == '-') {
    const kiln__cpu_place place = kiln__cpu_ptx_place(p);

    kiln__cpu_ptx_next(p);
    if (p->tok.kind == KILN__TOKEN_NAME && !kiln__cpu_ptx_is(p, "WARP_SZ")) {
      out->negated = true;
      return named(p, out);
    }
    kiln__cpu_ptx_rewind(p, &place);
  }
  if (kiln__cpu_ptx_starts_constant(p))
    return constant(p, out);
  if (p->tok.kind == KILN__TOKEN_NAME)
    return named(p, out);
  if (p->tok.kind == '_') {
    out->kind = KILN__OPERAND_SINK;
    out->text = p->tok.text;
    kiln__cpu_ptx_next(p);
    return true;
  }
  return kiln__cpu_ptx_unexpected(p, "an operand");
}

static bool push(kiln__cpu_parser *p, const kiln__cpu_ptx_operand *operand)
{
  if (!kiln__cpu_ptx_grow(p, &p->operands, p->n_operands, &p->operands_capacity,
                          sizeof *p->operands))
    return false;
  p->operands[p->n_operands++] = *operand;
  return true;
}

/* Copies the operands from stack index `first` on to the arena, and removes
 * them from the stack. */
static kiln__cpu_ptx_operand *take(kiln__cpu_parser *p, uint32_t first,
                                   uint32_t *n)
{
  const size_t size = (p->n_operands - first) * sizeof *p->operands;
  kiln__cpu_ptx_operand *items = kiln__cpu_ptx_new(p, size);

  *n = p->n_operands - first;
  if (items != NULL && size > 0)
    memcpy(items, p->operands + first, size);
  p->n_operands = first;
  return items;
}

static bool take_items(kiln__cpu_parser *p, uint32_t first,
                       kiln__cpu_ptx_operand *out)
{
  out->items = take(p, first, &out->n_items);
  return out->items != NULL;
}

/* Parses a list of operands up to the token `close`. The opening token has
 * already been consumed. */
static bool list(kiln__cpu_parser *p, int close, bool may_be_empty,
                 kiln__cpu_ptx_operand *out)
{
  const uint32_t first = p->n_operands;
  kiln__cpu_ptx_operand item;

  if (may_be_empty && kiln__cpu_ptx_accept(p, close))
    return take_items(p, first, out);
  p->in_vector = true;
  do {
    if (p->n_operands - first >= KILN__PTX_MAX_ITEMS)
      return kiln__cpu_ptx_unexpected(p, "fewer operands");
    if (!simple(p, &item) || !push(p, &item))
      return false;
  } while (kiln__cpu_ptx_accept(p, ','));
  p->in_vector = false;
  return kiln__cpu_ptx_expect(p, close) && take_items(p, first, out);
}

/* Parses [base], [base + offset] or [texture, {x, y}]. The opening bracket has
 * already been consumed. */
static bool address(kiln__cpu_parser *p, kiln__cpu_ptx_operand *out)
{
  const uint32_t first = p->n_operands;
  kiln__cpu_ptx_operand base, *kept;
  bool ok, vector;

  out->kind = KILN__OPERAND_ADDRESS;
  p->in_brackets = true;
  ok = simple(p, &base);
  p->in_brackets = false;
  if (!ok)
    return false;
  if (base.negated || base.kind == KILN__OPERAND_SINK ||
      base.kind == KILN__OPERAND_SPECIAL || base.component >= 0)
    kiln__cpu_wrong(p, base.pos,
                    "expected a variable, a register or a number as address");
  if (kiln__cpu_ptx_accept(p, ']')) {
    kept = kiln__cpu_ptx_new(p, sizeof *kept);
    if (kept == NULL)
      return false;
    out->offset = base.offset;
    base.offset = 0;
    *kept = base;
    out->base = kept;
    return true;
  }
  out->kind = KILN__OPERAND_TEXTURE;
  if (p->tok.kind != ',')
    return kiln__cpu_ptx_expect(p, ']');
  if (base.offset != 0)
    kiln__cpu_wrong(p, base.pos, "no offset is allowed here");
  if (!push(p, &base))
    return false;
  do {
    kiln__cpu_ptx_operand item = {
        .kind = KILN__OPERAND_VECTOR, .pos = p->tok.pos, .component = -1};

    kiln__cpu_ptx_next(p);
    vector = kiln__cpu_ptx_accept(p, '{');
    if (!vector && p->tok.kind != KILN__TOKEN_NAME)
      return kiln__cpu_ptx_unexpected(p, "a name or '{'");
    item.pos = p->tok.pos;
    if (!(vector ? list(p, '}', false, &item) : simple(p, &item)) ||
        !push(p, &item))
      return false;
  } while (!vector && p->tok.kind == ',' && p->n_operands - first < 3);
  return kiln__cpu_ptx_expect(p, ']') && take_items(p, first, out);
}

/* Parses the rest of a register pair `d|p`. The first register has already been
 * parsed. */
static bool pair(kiln__cpu_parser *p, kiln__cpu_ptx_operand *out)
{
  kiln__cpu_ptx_operand *items = kiln__cpu_ptx_new(p, 2 * sizeof *items);
  const kiln__cpu_ptx_pos pos = out->pos;

  if (items == NULL)
    return false;
  items[0] = *out;
  if (!simple(p, &items[1]))
    return false;
  if (items[1].kind != KILN__OPERAND_SYMBOL &&
      items[1].kind != KILN__OPERAND_SINK)
    kiln__cpu_wrong(p, items[1].pos, "expected a predicate register");
  *out = (kiln__cpu_ptx_operand){.kind = KILN__OPERAND_PAIR,
                                 .pos = pos,
                                 .component = -1,
                                 .items = items,
                                 .n_items = 2};
  return true;
}

static bool operand(kiln__cpu_parser *p, bool call, kiln__cpu_ptx_operand *out)
{
  *out = (kiln__cpu_ptx_operand){.pos = p->tok.pos, .component = -1};
  if (kiln__cpu_ptx_accept(p, '['))
    return address(p, out);
  if (kiln__cpu_ptx_accept(p, '{')) {
    out->kind = KILN__OPERAND_VECTOR;
    return list(p, '}', false, out);
  }
  if (call && kiln__cpu_ptx_accept(p, '(')) {
    out->kind = KILN__OPERAND_LIST;
    return list(p, ')', true, out);
  }
  if (!simple(p, out))
    return false;
  if (p->tok.kind != '|' ||
      (out->kind != KILN__OPERAND_SYMBOL && out->kind != KILN__OPERAND_SINK))
    return true;
  kiln__cpu_ptx_next(p);
  return pair(p, out);
}

/* Parses the label operand of a branch. The label is resolved at the end of the
 * function. */
static bool label(kiln__cpu_parser *p, kiln__cpu_ptx_operand *out)
{
  *out = (kiln__cpu_ptx_operand){.kind = KILN__OPERAND_SYMBOL,
                                 .pos = p->tok.pos,
                                 .component = -1,
                                 .text = p->tok.text};
  if (p->tok.kind != KILN__TOKEN_NAME)
    return kiln__cpu_ptx_unexpected(p, "a label");
  kiln__cpu_ptx_next(p);
  return true;
}

static bool operand_list(kiln__cpu_parser *p, kiln__cpu_ptx_insn *insn,
                         bool branch, bool call)
{
  const uint32_t first = p->n_operands;
  kiln__cpu_ptx_operand item, *items;

  if (p->tok.kind != ';') {
    do {
      if (p->n_operands - first >= KILN__PTX_MAX_ITEMS)
        return kiln__cpu_ptx_unexpected(p, "fewer operands");
      if (!(branch ? label(p, &item) : operand(p, call, &item)) ||
          !push(p, &item))
        return false;
    } while (kiln__cpu_ptx_accept(p, ','));
  }
  items = take(p, first, &insn->n_operands);
  if (items == NULL)
    return false;
  insn->operands = items;
  for (uint32_t i = 0; branch && i < insn->n_operands; i++) {
    if (!kiln__cpu_ptx_use_label(p, &items[i].symbol, items[i].text,
                                 items[i].pos))
      return false;
  }
  return kiln__cpu_ptx_expect(p, ';');
}

bool kiln__cpu_ptx_instruction(kiln__cpu_parser *p, const kiln__cpu_token *word,
                               kiln__cpu_ptx_symbol *guard, bool negated)
{
  kiln__cpu_ptx_function *f = p->function;
  kiln__cpu_ptx_insn insn = {.pos = word->pos,
                             .loc = p->loc,
                             .used_bytes = p->used_bytes,
                             .guard = guard,
                             .guard_negated = negated,
                             .opcode = word->text};

  p->used_bytes = 0;
  while (p->tok.kind == KILN__TOKEN_DOT) {
    if (!join(p, &insn.opcode, p->tok.text))
      return false;
    kiln__cpu_ptx_next(p);
  }
  p->n_operands = 0;
  if (!operand_list(p, &insn, kiln__cpu_slice_is(word->text, "bra"),
                    kiln__cpu_slice_is(word->text, "call")))
    return false;
  if (!kiln__cpu_ptx_grow(p, &p->insns, f->n_insns, &p->insns_capacity,
                          sizeof *p->insns))
    return false;
  p->insns[f->n_insns++] = insn;
  return true;
}
