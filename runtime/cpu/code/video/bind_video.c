/* bind_video.c -- binds the operands of video instructions, such as
 * vadd.s32.u32.s32.sat d.h1, a.b0, b.h0, c.
 *
 * The opcode and the selectors of the operands determine a kiln__cpu_video, which the
 * instruction holds in imm and imm2. The rules for operands are those of ptxas. */
#include "../bind.h"

#include <string.h>

static bool wrong(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o,
                  const char *what)
{
  return kiln__cpu_complain(k->l, o->pos, "%s for instruction '%.*s'", what,
                            KILN__SHOWN(k->l->at->opcode));
}

/* ---- The opcode ---------------------------------------------------------- */

typedef struct word {
  const char *text;
  uint8_t value;
} word;

static const word operations[] = {
    {"vadd", KILN__VIDEO_ADD},      {"vsub", KILN__VIDEO_SUB},
    {"vmin", KILN__VIDEO_MIN},      {"vmax", KILN__VIDEO_MAX},
    {"vshl", KILN__VIDEO_SHL},      {"vshr", KILN__VIDEO_SHR},
    {"vmad", KILN__VIDEO_MAD},      {"vset", KILN__VIDEO_SET},
    {"vavrg", KILN__VIDEO_AVERAGE}, {"vabsdiff", KILN__VIDEO_ABSDIFF}};

static const word seconds[] = {{"add", KILN__VIDEO_SECOND_ADD},
                               {"min", KILN__VIDEO_SECOND_MIN},
                               {"max", KILN__VIDEO_SECOND_MAX}};

static const word modes[] = {{"clamp", KILN__VIDEO_CLAMP},
                             {"wrap", 0},
                             {"shr7", 7},
                             {"shr15", 15},
                             {"eq", KILN__CMP_EQ},
                             {"ne", KILN__CMP_NE},
                             {"lt", KILN__CMP_LT},
                             {"le", KILN__CMP_LE},
                             {"gt", KILN__CMP_GT},
                             {"ge", KILN__CMP_GE}};

static bool same(const char *text, size_t size, const char *name)
{
  return strlen(name) == size && memcmp(text, name, size) == 0;
}

static void look_up(const word *words, size_t n, const char *text, size_t size,
                    uint8_t *out)
{
  for (size_t i = 0; i < n; i++) {
    if (same(text, size, words[i].text))
      *out = words[i].value;
  }
}

static void read_modifier(const char *text, size_t size, unsigned *n_types,
                          kiln__cpu_video *v)
{
  static const uint8_t type_flags[] = {
      KILN__VIDEO_SIGNED_D, KILN__VIDEO_SIGNED_A, KILN__VIDEO_SIGNED_B};
  const bool is_signed = same(text, size, "s32");

  if ((is_signed || same(text, size, "u32")) && *n_types < 3) {
    if (is_signed)
      v->flags |= type_flags[*n_types];
    ++*n_types;
  }
  if (same(text, size, "sat"))
    v->flags |= KILN__VIDEO_SATURATE;
  if (same(text, size, "po"))
    v->flags |= KILN__VIDEO_PLUS_ONE;
  look_up(seconds, sizeof seconds / sizeof *seconds, text, size, &v->second);
  look_up(modes, sizeof modes / sizeof *modes, text, size, &v->mode);
}

/* Fills in the struct from the opcode, which the pattern of the row has checked. The
 * result of vset is unsigned, so its opcode has no type for it. */
static void read_opcode(kiln__cpu_slice opcode, kiln__cpu_video *v)
{
  const char *const end = opcode.data + opcode.size;
  const char *at = memchr(opcode.data, '.', opcode.size);
  size_t name = (size_t)((at != NULL ? at : end) - opcode.data);
  unsigned n_types;

  v->parts = 1;
  if (name > 0 &&
      (opcode.data[name - 1] == '2' || opcode.data[name - 1] == '4'))
    v->parts = (uint8_t)(opcode.data[--name] - '0');
  look_up(operations, sizeof operations / sizeof *operations, opcode.data, name,
          &v->op);
  n_types = v->op == KILN__VIDEO_SET ? 1 : 0;
  for (const char *next; at != NULL; at = next) {
    next = memchr(at + 1, '.', (size_t)(end - at - 1));
    read_modifier(at + 1, (size_t)((next != NULL ? next : end) - at - 1),
                  &n_types, v);
  }
}

/* ---- Selectors ----------------------------------------------------------- */

static bool is_digit_below(char c, char limit)
{
  return c >= '0' && c < limit;
}

/* Reads .b0 to .b3, .h0 and .h1: the first bit of the part in the low byte, and the number
 * of bits in the high byte. */
static bool read_part(kiln__cpu_slice s, uint16_t *out)
{
  const bool byte = s.size == 3 && s.data[1] == 'b';
  const unsigned bits = byte ? 8 : 16;

  if (s.size != 3 || !is_digit_below(s.data[2], byte ? '4' : '2'))
    return false;
  *out = (uint16_t)((unsigned)(s.data[2] - '0') * bits | bits << 8);
  return true;
}

/* Reads .h10 or .b3210, whose digits choose among the parts of both sources. The choice
 * for part i is stored in bits 4 * i and above. */
static bool read_choice(kiln__cpu_slice s, unsigned parts, uint16_t *out)
{
  if (s.size != 2 + parts || s.data[1] != (parts == 2 ? 'h' : 'b'))
    return false;
  *out = 0;
  for (unsigned i = 0; i < parts; i++) {
    const char digit = s.data[s.size - 1 - i];

    if (!is_digit_below(digit, (char)('0' + 2 * parts)))
      return false;
    *out |= (uint16_t)((unsigned)(digit - '0') << (4 * i));
  }
  return true;
}

/* Reads .h0 or .b320: the parts of the result, in descending order. */
static bool read_mask(kiln__cpu_slice s, unsigned parts, uint16_t *out)
{
  char before = (char)('0' + parts);

  if (s.size < 3 || s.data[1] != (parts == 2 ? 'h' : 'b'))
    return false;
  *out = 0;
  for (uint32_t i = 2; i < s.size; i++) {
    if (!is_digit_below(s.data[i], before))
      return false;
    before = s.data[i];
    *out |= (uint16_t)(1u << (before - '0'));
  }
  return true;
}

/* Reads the selector of operand number `which`. An operand without one has all parts. */
static bool read_selector(kiln__cpu_binder *k, const kiln__cpu_ptx_operand *o,
                          unsigned which, kiln__cpu_video *v)
{
  static const uint16_t whole = 32 << 8,
                        choices[5][2] = {
                            [2] = {0x10, 0x32}, [4] = {0x3210, 0x7654}};
  const kiln__cpu_slice s = o->selector;
  uint16_t *const to = which == 0 ? &v->d : which == 1 ? &v->a : &v->b;
  bool ok;

  if (which == 3)
    return s.size == 0 ||
           wrong(k, o, "a selector is not allowed on the third source");
  if (s.size == 0) {
    *to = v->parts == 1 ? whole
          : which == 0  ? (uint16_t)((1u << v->parts) - 1)
                        : choices[v->parts][which - 1];
    return true;
  }
  ok = v->parts == 1 ? read_part(s, to)
       : which == 0  ? read_mask(s, v->parts, to)
                     : read_choice(s, v->parts, to);
  return ok || wrong(k, o, "incorrect selector");
}

/* ---- Operands ------------------------------------------------------------ */

/* Checks how many operands there are, and which of the result's selector and the second
 * operation they allow. */
static bool check_count(kiln__cpu_binder *k, const kiln__cpu_video *v)
{
  const kiln__cpu_ptx_insn *at = k->l->at;
  const bool selected = at->operands[0].selector.size != 0;
  const bool optional =
      v->parts == 1 && v->op != KILN__VIDEO_MAD && v->second == 0 && !selected;

  if (at->n_operands != 4 && !(optional && at->n_operands == 3))
    return kiln__cpu_complain(k->l, at->pos,
                              "arguments mismatch for instruction '%.*s'",
                              KILN__SHOWN(at->opcode));
  if (v->parts == 1 && selected && (v->second != 0 || v->op == KILN__VIDEO_MAD))
    return wrong(k, &at->operands[0],
                 "a selector is not allowed on the destination");
  return true;
}

/* Only vmad has negated sources: either a or b, of which two cancel out, or c. */
static bool read_signs(kiln__cpu_binder *k, kiln__cpu_video *v)
{
  const kiln__cpu_ptx_operand *const o = k->l->at->operands;
  const uint32_t n = k->l->at->n_operands;
  const bool product = o[1].negated != o[2].negated;
  const bool c = n > 3 && o[3].negated;
  const bool any = o[1].negated || o[2].negated || c;

  if (any && (v->op != KILN__VIDEO_MAD ||
              (v->flags & KILN__VIDEO_PLUS_ONE) != 0 || (product && c)))
    return wrong(k, &o[1], "operand negation is not allowed");
  if (product)
    v->flags |= KILN__VIDEO_NEGATE_PRODUCT;
  if (c)
    v->flags |= KILN__VIDEO_NEGATE_C;
  return true;
}

/* Binds a source. The parts of instructions on several parts must be in registers. */
static bool bind_one(kiln__cpu_binder *k, kiln__cpu_ptx_operand o,
                     const kiln__cpu_video *v)
{
  static const kiln__cpu_form source = {.shape = KILN__SHAPE_SOURCE,
                                        .type = KILN__U32};

  if (o.kind == KILN__OPERAND_NONE || o.kind > KILN__OPERAND_FLOAT32 ||
      (v->parts > 1 && !kiln__cpu_is_register(&o)))
    return wrong(k, &o, "incorrect operand");
  o.negated = false;
  return kiln__cpu_bind_source(k, &source, &o);
}

bool kiln__cpu_bind_video(kiln__cpu_binder *k)
{
  static const kiln__cpu_ptx_operand zero = {.kind = KILN__OPERAND_INTEGER,
                                             .component = -1};
  const kiln__cpu_ptx_insn *at = k->l->at;
  kiln__cpu_video v = {0};
  int32_t d = -1;

  read_opcode(at->opcode, &v);
  if (!check_count(k, &v) || !read_signs(k, &v))
    return false;
  for (uint32_t i = 0; i < at->n_operands; i++) {
    if (!read_selector(k, &at->operands[i], i, &v))
      return false;
  }
  if (!kiln__cpu_bind_dest_to(k, KILN__U32, false, &at->operands[0], &d))
    return false;
  if (d < 0)
    return kiln__cpu_mismatch(k, &at->operands[0]);
  k->in->d = d;
  for (uint32_t i = 1; i < 4; i++) {
    if (!bind_one(k, i < at->n_operands ? at->operands[i] : zero, &v))
      return false;
  }
  memcpy(&k->in->imm, &v, sizeof k->in->imm);
  memcpy(&k->in->imm2, (const char *)&v + sizeof k->in->imm,
         sizeof k->in->imm2);
  return true;
}
