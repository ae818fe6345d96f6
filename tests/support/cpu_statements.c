/* cpu_statements.c -- generates correct and incorrect PTX statements from the
 * rows of ops.def. */
#include "cpu_statements.h"

#include "cpu_rows.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned below(uint64_t *random, unsigned n)
{
  return (unsigned)(test_random(random) >> 33) % n;
}

/* ---- The module that contains the statements ----------------------------- */

void statements_head(kiln__buf *out, unsigned version, unsigned target)
{
  kiln__buf_format(out, ".version %u.%u\n.target sm_%u%s\n.address_size 64\n",
                   version / 10, version % 10, target % STATEMENT_SPECIFIC,
                   target >= STATEMENT_SPECIFIC ? "a" : "");
  kiln__buf_text(
      out,
      ".global .align 16 .b8 gv[64];\n"
      ".const .align 16 .b8 cv[64];\n"
      ".shared .align 16 .b8 sv[64];\n"
      ".extern .shared .align 16 .b8 dynamic[];\n"
      ".func (.param .b32 r) dv(.param .b32 a, .param .b64 b)\n{ ret; }\n"
      ".visible .entry k(.param .u32 pu, .param .u64 pp, .param .align 8 .b8 "
      "ps[24])\n{\n"
      ".reg .pred %p<4>;\n.reg .b8 %bb<4>;\n.reg .u8 %ub<4>;\n"
      ".reg .s8 %sb<4>;\n.reg .b16 %bs<4>;\n.reg .u16 %us<4>;\n"
      ".reg .s16 %ss<4>;\n.reg .f16 %h<4>;\n.reg .b32 %bw<4>;\n"
      ".reg .u32 %uw<4>;\n.reg .s32 %sw<4>;\n.reg .f32 %f<4>;\n"
      ".reg .f16x2 %hh<4>;\n.reg .b64 %bd<4>;\n.reg .u64 %ud<4>;\n"
      ".reg .s64 %sd<4>;\n.reg .f64 %d<4>;\n.reg .v4 .f32 %v;\n"
      ".reg .v2 .u32 %vu;\n"
      ".local .align 16 .b8 lv[64];\n.param .b32 cp;\n.param .b64 cq;\n"
      "start:\n");
}

void statements_tail(kiln__buf *out)
{
  kiln__buf_text(out, "end:\nret;\n}\n");
}

/* ---- Statements generated from rows of ops.def --------------------------- */

typedef struct maker {
  kiln__buf out;
  uint64_t *random;
  const kiln__cpu_insn *fields;
  const char *opcode;
} maker;

static void expand(maker *m, const char *p, char *out, size_t size)
{
  size_t n = 0;

  while (*p != '\0') {
    const char *close = *p == '(' ? strchr(p, ')') : NULL;
    unsigned choices = 1, which;

    if (close == NULL) {
      if (n + 1 < size)
        out[n++] = *p;
      p++;
      continue;
    }
    for (const char *q = p; q < close; q++)
      choices += *q == '|';
    which = below(m->random, choices + (close[1] == '?'));
    if (which < choices) {
      const char *q = p + 1;

      for (; which > 0; q++)
        which -= *q == '|';
      for (; q < close && *q != '|' && n + 1 < size; q++)
        out[n++] = *q;
    }
    p = close + 1 + (close[1] == '?');
  }
  out[n] = '\0';
}

static const char *stem_of(unsigned type)
{
  static const char *const stems[KILN__N_PTX_TYPES] = {
      [KILN__PRED] = "%p",  [KILN__B8] = "%bb",    [KILN__U8] = "%ub",
      [KILN__S8] = "%sb",   [KILN__B16] = "%bs",   [KILN__U16] = "%us",
      [KILN__S16] = "%ss",  [KILN__F16] = "%h",    [KILN__BF16] = "%bs",
      [KILN__B32] = "%bw",  [KILN__U32] = "%uw",   [KILN__S32] = "%sw",
      [KILN__F32] = "%f",   [KILN__F16X2] = "%hh", [KILN__BF16X2] = "%bw",
      [KILN__TF32] = "%bw", [KILN__B64] = "%bd",   [KILN__U64] = "%ud",
      [KILN__S64] = "%sd",  [KILN__F64] = "%d",
  };

  return type < KILN__N_PTX_TYPES && stems[type] != NULL ? stems[type] : "%bw";
}

static void put_register(maker *m, unsigned type)
{
  kiln__buf_format(&m->out, "%s%u", stem_of(type), below(m->random, 4));
}

static void put_list(maker *m, unsigned type, unsigned n)
{
  if (n == 1) {
    put_register(m, type);
    return;
  }
  for (unsigned i = 0; i < n; i++) {
    kiln__buf_text(&m->out, i == 0 ? "{" : ", ");
    put_register(m, type);
  }
  kiln__buf_text(&m->out, "}");
}

static bool opcode_has(const maker *m, const char *text)
{
  return strstr(m->opcode, text) != NULL;
}

static void put_address(maker *m, const kiln__cpu_form *f)
{
  const unsigned space =
      f->space == KILN__SPACE_OF_OPCODE ? m->fields->space : f->space;

  switch (space) {
  case KILN__SPACE_PARAM:
    kiln__buf_text(&m->out, opcode_has(m, "st.") ? "[cq]" : "[ps]");
    break;
  case KILN__SPACE_SHARED:
  case KILN__SPACE_SHARED_CLUSTER:
    kiln__buf_format(&m->out, "[%%uw%u+16]", below(m->random, 4));
    break;
  default:
    kiln__buf_format(&m->out, "[%%ud%u+16]", below(m->random, 4));
    break;
  }
}

/* Returns the number of coordinates or gradient elements of a texture shape. */
static unsigned dimensions(const maker *m, bool gradient)
{
  const bool array =
      opcode_has(m, ".a1d") || opcode_has(m, ".a2d") || opcode_has(m, ".acube");

  if (opcode_has(m, ".3d") || opcode_has(m, "cube"))
    return 4;
  if (opcode_has(m, ".2d") || opcode_has(m, ".a2d"))
    return array && !gradient ? 4 : 2;
  return array && !gradient ? 2 : 1;
}

static void put_texture(maker *m)
{
  const bool none =
      opcode_has(m, "txq") || opcode_has(m, "suq") || opcode_has(m, "istypep");
  const bool array =
      opcode_has(m, ".a1d") || opcode_has(m, ".a2d") || opcode_has(m, ".acube");
  const unsigned type = strncmp(m->opcode, "tex", 3) == 0   ? m->fields->type
                        : strncmp(m->opcode, "tld", 3) == 0 ? KILN__F32
                                                            : KILN__B32;
  const unsigned n = none ? 0 : dimensions(m, false);

  kiln__buf_format(&m->out, "[%%ud%u", below(m->random, 4));
  for (unsigned i = 0; i < n; i++) {
    kiln__buf_text(&m->out, i == 0 ? ", {" : ", ");
    put_register(m, i == 0 && array ? KILN__B32 : type);
  }
  kiln__buf_text(&m->out, n > 0 ? "}]" : "]");
}

/* Writes n registers in braces, also if n is 1. */
static void put_braces(maker *m, unsigned type, unsigned n)
{
  for (unsigned i = 0; i < n; i++) {
    kiln__buf_text(&m->out, i == 0 ? "{" : ", ");
    put_register(m, type);
  }
  kiln__buf_text(&m->out, "}");
}

/* Writes the registers of a fragment of mma or wmma. */
static void put_fragment(maker *m, const kiln__cpu_form *f, bool moved)
{
  const kiln__cpu_slice opcode = {m->opcode, (uint32_t)strlen(m->opcode)};
  const kiln__cpu_matrix x = kiln__cpu_matrix_read(opcode);
  kiln__cpu_form form = {0};

  kiln__cpu_fragment_type(&form, &x, (kiln__cpu_element)x.type[f->count],
                          moved);
  put_braces(m, form.type,
             kiln__cpu_fragment_registers(&x, (kiln__cpu_fragment)f->count));
}

/* Returns whether a statement contains the operand of an optional form. */
static bool has_form(const maker *m, const kiln__cpu_form *f)
{
  switch ((kiln__cpu_shape)f->shape) {
  case KILN__SHAPE_PREDICATE:
    return m->fields->boolop != KILN__BOOL_NONE;
  case KILN__SHAPE_OFFSETS:
    return m->fields->sub2 == KILN__IM2COL;
  case KILN__SHAPE_MASK:
    return (m->fields->flags & KILN__MULTICAST) != 0;
  case KILN__SHAPE_POLICY:
    return (m->fields->flags & KILN__HINTED) != 0;
  default:
    return below(m->random, 2) != 0;
  }
}

/* Writes all operands of wgmma.mma_async. */
static void put_wgmma(maker *m)
{
  const bool half = opcode_has(m, ".f16.f16.f16") || opcode_has(m, ".f16.e");
  const bool narrow = opcode_has(m, ".bf16") || opcode_has(m, ".f16.f16");
  const bool integer = opcode_has(m, ".s32");
  const unsigned d = half ? KILN__F16X2 : integer ? KILN__S32 : KILN__F32;
  const bool registers = below(m->random, 2) == 0;
  unsigned n = 0;

  (void)sscanf(strstr(m->opcode, ".m64n"), ".m64n%u", &n);
  put_list(m, below(m->random, 4) == 0 ? KILN__B32 : d, half ? n / 4 : n / 2);
  kiln__buf_text(&m->out, ", ");
  if (registers)
    put_list(m, KILN__B32, 4);
  else
    put_register(m, KILN__B64);
  kiln__buf_text(&m->out, ", ");
  put_register(m, KILN__U64);
  if (opcode_has(m, ".sp"))
    kiln__buf_format(&m->out, ", %%bw%u, 0", below(m->random, 4));
  kiln__buf_text(&m->out, below(m->random, 2) == 0 ? ", %p1" : ", !%p2");
  if (!integer)
    kiln__buf_text(&m->out, ", 1, -1");
  if (narrow)
    kiln__buf_text(&m->out, registers ? ", 0" : ", 0, 1");
}

/* Writes a 32-bit register, half of the time with a selector. */
static void put_selected(maker *m, const char *selector)
{
  put_register(m, KILN__U32);
  if (below(m->random, 2) == 0)
    kiln__buf_text(&m->out, selector);
}

/* Writes all operands of a video instruction. Only results that are merged with the third
 * source have a selector. */
static void put_video(maker *m)
{
  static const char *const selectors[] = {".b0", ".b3", ".h0", ".h1"};
  const char digit = m->opcode[strcspn(m->opcode, ".") - 1];
  const bool parts = digit == '2' || digit == '4';
  const bool second =
      opcode_has(m, ".add") || opcode_has(m, ".min") || opcode_has(m, ".max");
  const bool merged =
      parts || (!second && !opcode_has(m, "vmad") && below(m->random, 2) == 0);

  if (parts)
    put_selected(m, digit == '2' ? ".h1" : ".b320");
  else {
    put_register(m, KILN__U32);
    if (merged)
      kiln__buf_text(&m->out, selectors[below(m->random, 4)]);
  }
  for (int i = 0; i < 2; i++) {
    kiln__buf_text(&m->out, ", ");
    put_selected(m, digit == '2'   ? ".h13"
                    : digit == '4' ? ".b7061"
                                   : selectors[below(m->random, 4)]);
  }
  if (merged || second || opcode_has(m, "vmad")) {
    kiln__buf_text(&m->out, ", ");
    put_register(m, KILN__U32);
  }
}

/* Writes the derivatives of a texture fetch. */
static void put_gradient(maker *m, unsigned type)
{
  if (dimensions(m, true) == 1)
    kiln__buf_text(&m->out, "{%f1}");
  else
    put_list(m, type, dimensions(m, true));
}

/* Writes a tensor map and coordinates. */
static void put_map(maker *m)
{
  kiln__buf_format(&m->out, "[%%ud%u, ", below(m->random, 4));
  put_braces(m, KILN__S32, m->fields->dim);
  kiln__buf_text(&m->out, "]");
}

/* Writes two registers, which together hold a value of the type. */
static void put_halves(maker *m, unsigned type)
{
  put_list(m,
           kiln__cpu_ptx_type_bytes[type] == 2   ? KILN__B8
           : kiln__cpu_ptx_type_bytes[type] == 4 ? KILN__B16
                                                 : KILN__B32,
           2);
}

/* Writes one operand of a statement. Returns false if the operand needs other
 * statements. */
static bool put_form(maker *m, const kiln__cpu_row *row,
                     const kiln__cpu_form *f)
{
  const unsigned type = cpu_form_type(m->fields, f->type);
  const unsigned sub2 = m->fields->sub2;
  const unsigned n = f->count != 0                         ? f->count
                     : sub2 == 2 || sub2 == 4 || sub2 == 8 ? sub2
                                                           : 1;

  switch ((kiln__cpu_shape)f->shape) {
  case KILN__SHAPE_DEST:
    if (m->fields->space == KILN__SPACE_SHARED_CLUSTER &&
        opcode_has(m, "mbarrier.arrive"))
      kiln__buf_text(&m->out, "_");
    else
      put_register(m, type);
    return true;
  case KILN__SHAPE_DEST_PAIR:
    put_register(m, type);
    if (f->paired || below(m->random, 2) == 0)
      kiln__buf_text(&m->out, "|%p3");
    return true;
  case KILN__SHAPE_SOURCE:
  case KILN__SHAPE_LIST:
    put_register(m, type);
    return true;
  case KILN__SHAPE_NUMBER:
    kiln__buf_text(&m->out, "1");
    return true;
  case KILN__SHAPE_CHOICE:
    kiln__buf_format(&m->out, "%u", f->count & (0u - f->count));
    return true;
  case KILN__SHAPE_PREDICATE:
    kiln__buf_text(&m->out, below(m->random, 2) == 0 ? "%p1" : "!%p2");
    return true;
  case KILN__SHAPE_ADDRESS:
    put_address(m, f);
    return true;
  case KILN__SHAPE_TEXTURE:
    put_texture(m);
    return true;
  case KILN__SHAPE_GRADIENT:
    put_gradient(m, type);
    return true;
  case KILN__SHAPE_MAP:
    put_map(m);
    return true;
  case KILN__SHAPE_OFFSETS:
    put_braces(m, KILN__U16, m->fields->dim - 2U);
    return true;
  case KILN__SHAPE_MASK:
    put_register(m, KILN__U16);
    return true;
  case KILN__SHAPE_SKIP:
    put_register(m, KILN__U32);
    return true;
  case KILN__SHAPE_POLICY:
    put_register(m, KILN__U64);
    return true;
  case KILN__SHAPE_DATA_OUT:
  case KILN__SHAPE_DATA_IN:
    if (n == 1 && sub2 == 1)
      kiln__buf_text(&m->out, "{%bw1}");
    else
      put_list(m, type, n);
    return true;
  case KILN__SHAPE_PACK:
  case KILN__SHAPE_UNPACK:
    put_halves(m, type);
    return true;
  case KILN__SHAPE_FRAGMENT:
    put_fragment(m, f, row->n_forms < 4);
    return true;
  case KILN__SHAPE_SELECTOR:
    kiln__buf_text(&m->out, "0");
    return true;
  case KILN__SHAPE_LABEL:
    kiln__buf_text(&m->out, "end");
    return true;
  case KILN__SHAPE_WGMMA:
    put_wgmma(m);
    return true;
  case KILN__SHAPE_VIDEO:
    put_video(m);
    return true;
  case KILN__SHAPE_TARGETS:
  case KILN__SHAPE_CALL:
    break;
  }
  return false;
}

static bool put_operands(maker *m, const kiln__cpu_row *row)
{
  bool any = false;

  for (unsigned i = 0; i < row->n_forms; i++) {
    const kiln__cpu_form *f = &row->forms[i];

    if (f->optional && !has_form(m, f))
      continue;
    kiln__buf_text(&m->out, any ? ", " : " ");
    any = true;
    if (!put_form(m, row, f))
      return false;
  }
  if (row->kind == KILN__KIND_WARP && (m->fields->flags & KILN__SYNC) != 0 &&
      (m->fields->flags & KILN__ALIGNED) == 0)
    kiln__buf_text(&m->out, any ? ", %bw3" : " %bw3");
  return true;
}

bool statement_of_row(char *buf, size_t size, unsigned op, uint64_t *random,
                      unsigned *ptx, unsigned *sm)
{
  kiln__cpu_matcher *rows = cpu_rows();
  const kiln__cpu_row *row = &rows->rows[op];
  const kiln__cpu_matches *matches;
  kiln_allocator a = {0};
  char opcode[256];
  maker m = {.random = random, .opcode = opcode};
  bool ok;

  if (row->internal)
    return false;
  kiln__allocator_default(&a);
  kiln__buf_init(&m.out, &a);
  expand(&m, row->pattern, opcode, sizeof opcode);
  matches = kiln__cpu_matcher_find(rows, opcode, strlen(opcode));
  if (matches == NULL || matches->n == 0 || matches->specific)
    return false;
  m.fields = &matches->fields;
  kiln__buf_text(&m.out, opcode);
  ok = put_operands(&m, row);
  kiln__buf_text(&m.out, ";");
  *ptx = row->ptx > matches->ptx ? row->ptx : matches->ptx;
  *sm = row->sm > matches->sm ? row->sm : matches->sm;
  if (matches->only != 0)
    *sm = STATEMENT_SPECIFIC + (unsigned)matches->only;
  ok = ok && m.out.size < size && !m.out.failed;
  if (ok)
    memcpy(buf, m.out.data, m.out.size + 1);
  kiln__buf_free(&m.out);
  return ok;
}

void statement_make(char *buf, size_t size, uint64_t *random, unsigned *ptx,
                    unsigned *sm)
{
  while (
      !statement_of_row(buf, size, below(random, KILN__N_OPS), random, ptx, sm))
    ;
}

/* ---- Broken statements --------------------------------------------------- */

static const char *const modifiers[] = {
#define KILN__MOD(text, field, value) text,
#include "cpu/code/modifiers.def"
#undef KILN__MOD
#define TYPE(name, text, bytes) "." text,
    KILN__PTX_TYPES(TYPE)
#undef TYPE
        ".u16x2",
    ".s16x2",
    ".2d",
    ".m8n8",
    ".trans",
    ".parity",
    ".L1::no_allocate"};

static const char *const operands[] = {
    /* registers of each type, and vector elements */
    "%p1", "%bb1", "%ub1", "%sb1", "%bs1", "%us1", "%ss1", "%h1", "%bw1",
    "%uw1", "%sw1", "%f1", "%hh1", "%bd1", "%ud1", "%sd1", "%d1", "%v", "%v.x",
    "%vu", "%vu.y", "!%p1", "-%uw1", "_",
    /* Literals. */
    "0", "1", "-1", "31", "255", "256", "4294967296", "0x8000000000000000",
    "0f3F800000", "1.0", "0d3FF0000000000000",
    /* special registers, and names of variables and functions */
    "%tid.x", "%clock", "%clock64", "%laneid", "%gridid", "gv", "cv", "sv",
    "lv", "dynamic", "pu", "pp", "cp", "dv", "k", "start", "gv+4", "lv+4",
    /* Vectors. */
    "{%uw1, %uw2}", "{%bs1, %bs2}", "{%f1, %f2}", "{%uw1}",
    "{%bw1, %bw2, %bw3, %bw0}", "{%uw1, _}", "{1, 2}",
    /* Addresses. */
    "[%ud1]", "[%ud1+4]", "[%uw1]", "[%f1]", "[gv]", "[sv]", "[lv]", "[cv+8]",
    "[ps+8]", "[cp]", "[16]", "[dynamic]", "[pp]",
    /* pairs of results, and other operands */
    "%p1|%p2", "%uw1|%p1", "_|%p1", "%p1|_", "WARP_SZ", "[dv]", "[%us1]",
    "[%ud1, {%f1, %f2}]"};

enum { MAX_PIECES = 24, PIECE = 96 };

/* A statement split into pieces: the mnemonic and modifiers of the opcode, and
 * the operands. */
typedef struct pieces {
  char guard[16];
  char parts[2][MAX_PIECES][PIECE]; /* parts of the opcode, and the operands */
  unsigned n[2];
} pieces;

static void add_piece(pieces *p, int which, const char *text, size_t size)
{
  if (p->n[which] < MAX_PIECES && size < PIECE) {
    memcpy(p->parts[which][p->n[which]], text, size);
    p->parts[which][p->n[which]++][size] = '\0';
  }
}

static void split(pieces *p, const char *text)
{
  const char *space = strpbrk(text, " ;"), *from = text;
  int depth = 0;

  *p = (pieces){0};
  for (const char *c = text + 1; c <= space; c++) {
    if (*c == '.' || c == space) {
      add_piece(p, 0, from, (size_t)(c - from));
      from = c;
    }
  }
  from = *space == ' ' ? space + 1 : space;
  for (const char *c = from; *c != '\0'; c++) {
    depth += *c == '{' || *c == '[';
    depth -= *c == '}' || *c == ']';
    if ((*c == ',' && depth == 0) || *c == ';') {
      if (c > from)
        add_piece(p, 1, from, (size_t)(c - from));
      from = c + 1 + (c[1] == ' ');
    }
  }
}

static void join(const pieces *p, char *buf, size_t size)
{
  int n = snprintf(buf, size, "%s", p->guard);

  for (unsigned i = 0; i < p->n[0]; i++)
    n += snprintf(buf + n, size - (size_t)n, "%s", p->parts[0][i]);
  for (unsigned i = 0; i < p->n[1]; i++)
    n += snprintf(buf + n, size - (size_t)n, "%s%s", i == 0 ? " " : ", ",
                  p->parts[1][i]);
  (void)snprintf(buf + n, size - (size_t)n, ";");
}

static void erase(pieces *p, int which, unsigned at)
{
  memmove(p->parts[which][at], p->parts[which][at + 1],
          (p->n[which] - at - 1) * sizeof p->parts[which][0]);
  p->n[which]--;
}

/* Inserts a piece at index `at`. `text` may point to the piece that is at this
 * index. */
static void insert(pieces *p, int which, unsigned at, const char *text)
{
  const size_t size = strnlen(text, PIECE - 1);

  if (p->n[which] == MAX_PIECES)
    return;
  memmove(p->parts[which][at + 1], p->parts[which][at],
          (p->n[which] - at) * sizeof p->parts[which][0]);
  memmove(p->parts[which][at], text, size);
  p->parts[which][at][size] = '\0';
  p->n[which]++;
}

static void exchange(pieces *p, int which, unsigned i, unsigned k)
{
  char text[PIECE];

  memcpy(text, p->parts[which][i], PIECE);
  memcpy(p->parts[which][i], p->parts[which][k], PIECE);
  memcpy(p->parts[which][k], text, PIECE);
}

static const char *any_modifier(uint64_t *random)
{
  return modifiers[below(random, sizeof modifiers / sizeof *modifiers)];
}

static const char *any_operand(uint64_t *random)
{
  return operands[below(random, sizeof operands / sizeof *operands)];
}

/* Makes a random change to the modifiers of the opcode. Piece 0, the mnemonic,
 * is not changed. */
static void break_opcode(pieces *p, uint64_t *random)
{
  const unsigned n = p->n[0], at = n > 1 ? 1 + below(random, n - 1) : 0;

  switch (below(random, 5)) {
  case 0:
    insert(p, 0, 1 + below(random, n), any_modifier(random));
    break;
  case 1:
    if (at > 0)
      erase(p, 0, at);
    break;
  case 2:
    if (at > 0)
      exchange(p, 0, at, 1 + below(random, n - 1));
    break;
  default:
    if (at > 0)
      (void)snprintf(p->parts[0][at], PIECE, "%s", any_modifier(random));
    break;
  }
}

static void break_operands(pieces *p, uint64_t *random)
{
  const unsigned n = p->n[1], at = n > 0 ? below(random, n) : 0;

  switch (n == 0 ? 0 : below(random, 7)) {
  case 0:
    insert(p, 1, below(random, n + 1), any_operand(random));
    break;
  case 1:
    erase(p, 1, at);
    break;
  case 2:
    exchange(p, 1, at, below(random, n));
    break;
  case 3:
    insert(p, 1, at, p->parts[1][at]);
    break;
  default:
    (void)snprintf(p->parts[1][at], PIECE, "%s", any_operand(random));
    break;
  }
}

void statement_break(char *buf, size_t size, uint64_t *random)
{
  pieces p;

  split(&p, buf);
  for (unsigned i = 1 + below(random, 3); i > 0; i--) {
    switch (below(random, 12)) {
    case 0:
      (void)snprintf(p.guard, sizeof p.guard, "%s",
                     below(random, 2) == 0 ? "@%p1 " : "@!%p2 ");
      break;
    case 1:
    case 2:
    case 3:
    case 4:
      break_opcode(&p, random);
      break;
    default:
      break_operands(&p, random);
      break;
    }
  }
  join(&p, buf, size);
}
