/* cpu_opcodes.c -- generates one test case per opcode of the rows in ops.def,
 * and the source of the kernels that contain the cases. */
#include "cpu_opcodes.h"

#include "cpu_handler.h"
#include "cpu_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[] = {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text) #name,
#include "cpu/code/ops.def"
#undef KILN__OP
};

/* ---- One case ------------------------------------------------------------ */

typedef struct maker {
  opcode_case c;
  const kiln__cpu_insn *fields;
  const char *opcode;
  size_t used; /* number of characters in c.text */
  unsigned hash;
  const char *number; /* immediate operand */
  unsigned destinations;
  unsigned dest[2]; /* types of the destination operands */
} maker;

static void put(maker *m, const char *format, ...) KILN_PRINTF(2, 3);

static void put(maker *m, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  m->used += (size_t)vsnprintf(m->c.text + m->used, sizeof m->c.text - m->used,
                               format, args);
  va_end(args);
  ck_assert_uint_lt(m->used, sizeof m->c.text);
}

static bool has(const maker *m, const char *modifier)
{
  const size_t n = strlen(modifier);

  for (const char *p = m->opcode; (p = strstr(p, modifier)) != NULL; p++) {
    if (p[n] == '.' || p[n] == '\0')
      return true;
  }
  return false;
}

static bool begins(const maker *m, const char *mnemonic)
{
  const size_t n = strlen(mnemonic);

  return strncmp(m->opcode, mnemonic, n) == 0 &&
         (m->opcode[n] == '.' || m->opcode[n] == '\0');
}

static unsigned bytes_of(unsigned type)
{
  return type == KILN__PRED ? 0 : kiln__cpu_ptx_type_bytes[type];
}

/* Returns the register prefix for a source operand of this width. */
static char source_prefix(unsigned bytes)
{
  return bytes == 0 ? 'p' : bytes == 2 ? 'h' : bytes == 8 ? 'd' : 's';
}

static unsigned operand_of(const maker *m, unsigned type)
{
  const bool warp = cpu_rows()->rows[m->c.op].kind == KILN__KIND_WARP;

  if (begins(m, "shfl")) {
    const unsigned of[] = {OPERAND_FEW32, OPERAND_LANE,
                           has(m, ".up") ? OPERAND_SEGMENT_UP
                                         : OPERAND_SEGMENT};

    return of[m->c.n_in];
  }
  if (warp && type == KILN__PRED)
    return OPERAND_SOME;
  if (warp && bytes_of(type) == 8)
    return OPERAND_FEW64;
  if (warp && type != KILN__F32)
    return OPERAND_FEW32;
  return has(m, ".f32x2") ? KILN__F32X2 : type;
}

static void put_source(maker *m, unsigned type)
{
  ck_assert_uint_lt(m->c.n_in, OPCODE_SOURCES);
  put(m, "%%%c%u", source_prefix(bytes_of(type)), m->c.n_in);
  m->c.in[m->c.n_in] = (uint8_t)operand_of(m, type);
  m->c.n_in++;
}

static void put_destination(maker *m, unsigned type)
{
  static const char *const names[2][4] = {{"%e", "%o", "%r", "%q"},
                                          {"%e2", "%o2", "%r2", "%q2"}};
  const unsigned bytes = bytes_of(type);
  const unsigned n = m->destinations++;

  m->dest[n] = type;
  put(m, "%s", names[n][bytes == 0 ? 0 : bytes == 2 ? 1 : bytes == 8 ? 3 : 2]);
}

/* Writes one operand of a test case. Returns false if the operand is neither a
 * register nor an immediate. */
static bool put_form(maker *m, const kiln__cpu_form *f)
{
  const unsigned type = cpu_form_type(m->fields, f->type);

  switch ((kiln__cpu_shape)f->shape) {
  case KILN__SHAPE_DEST:
    put_destination(m, type);
    return true;
  case KILN__SHAPE_DEST_PAIR:
    put_destination(m, type);
    /* Half of the test cases use the optional second result. */
    if (f->paired || m->hash % 2 == 0 || begins(m, "shfl") ||
        begins(m, "match")) {
      put(m, "|");
      put_destination(m, KILN__PRED);
    }
    return true;
  case KILN__SHAPE_SOURCE:
    put_source(m, type);
    return true;
  case KILN__SHAPE_NUMBER:
    put(m, "%s", m->number);
    return true;
  case KILN__SHAPE_PREDICATE:
    put(m, "%s", m->hash % 4 < 2 ? "" : "!");
    put_source(m, KILN__PRED);
    return true;
  default:
    return false;
  }
}

static bool put_statement(maker *m, const kiln__cpu_row *row)
{
  const char *between = " ";

  put(m, "%s", m->opcode);
  for (unsigned i = 0; i < row->n_forms; i++) {
    const kiln__cpu_form *f = &row->forms[i];

    if (f->optional && (f->shape != KILN__SHAPE_PREDICATE ||
                        m->fields->boolop == KILN__BOOL_NONE))
      continue;
    put(m, "%s", between);
    between = ", ";
    if (!put_form(m, f))
      return false;
  }
  if (row->kind == KILN__KIND_WARP && (m->fields->flags & KILN__SYNC) != 0) {
    put(m, "%s%%s%u", between, m->c.n_in);
    m->c.in[m->c.n_in++] = OPERAND_MEMBERS;
  }
  put(m, ";\n");
  return m->destinations > 0;
}

/* Writes the code that combines all results of a test case into register %r, or
 * into %q if the result has 8 bytes. */
static void put_result(maker *m)
{
  const unsigned first = bytes_of(m->dest[0]);

  m->c.out_bytes = first == 8 ? 8 : 4;
  if (first == 0)
    put(m, "selp.u32 %%r, 1, 0, %%e;\n");
  else if (first == 2)
    put(m, "cvt.u32.u16 %%r, %%o;\n");
  /* ptxas 13.0 merges two comparisons into one instruction. The upper half of
   * one result then holds the result of the other comparison, although the cvt
   * should clear it. Therefore only the lower half is compared. */
  m->c.half = first == 2 && begins(m, "set");
  if (m->destinations < 2)
    return;
  put(m, "selp.u32 %%r2, 1, 0, %%e2;\n");
  if (first == 0) {
    put(m, "mad.lo.u32 %%r, %%r2, 2, %%r;\n");
  } else {
    ck_assert_uint_ne(first, 8);
    put(m, "mov.b64 %%q, {%%r, %%r2};\n");
    m->c.out_bytes = 8;
  }
}

static bool reads_carry(const maker *m)
{
  return begins(m, "addc") || begins(m, "subc") || begins(m, "madc");
}

/* Writes the code that sets the carry flag before the tested opcode. An
 * additional operand determines the flag: a nonzero value sets it. */
static void put_carry_in(maker *m)
{
  const unsigned n = m->c.n_in;

  m->c.in[m->c.n_in++] = KILN__PRED;
  if (begins(m, "subc"))
    put(m, "sub.cc.u32 %%r2, 0, %%s%u;\n", n);
  else
    put(m, "add.cc.u32 %%r2, %%s%u, 0xffffffff;\n", n);
}

/* ---- All ----------------------------------------------------------------- */

static void add(opcode_list *list, const opcode_case *c)
{
  if ((list->n & (list->n - 1)) == 0) {
    list->cases =
        realloc(list->cases, (list->n == 0 ? 1 : 2 * list->n) * sizeof *c);
    ck_assert_ptr_nonnull(list->cases);
  }
  list->cases[list->n++] = *c;
}

/* Generates the source of one test case. The code that sets the carry flag
 * comes first, but its operand is numbered after the operands of the opcode.
 * The opcode is therefore generated first, to count its operands. */
static bool make(maker *m, const kiln__cpu_row *row, bool carry)
{
  maker body = *m;

  if (!put_statement(&body, row))
    return false;
  if (reads_carry(m)) {
    m->c.n_in = body.c.n_in;
    memcpy(m->c.in, body.c.in, sizeof m->c.in);
    put_carry_in(m);
    put(m, "%s", body.c.text);
    m->destinations = body.destinations;
    memcpy(m->dest, body.dest, sizeof m->dest);
  } else {
    *m = body;
  }
  if (!carry) {
    put_result(m);
    return true;
  }
  put(m, "%s.u32 %%r, 0, 0;\n",
      begins(m, "sub") || begins(m, "subc") ? "subc" : "addc");
  m->c.out_bytes = 4;
  return true;
}

/* Adds a variant of a test case: the opcode with an immediate operand, or the
 * opcode with its carry flag as the result. */
static bool add_variant(opcode_list *list, const maker *start,
                        const kiln__cpu_row *row, const char *number,
                        bool carry)
{
  maker m = *start;

  m.number = number;
  snprintf(m.c.name, sizeof m.c.name, "%s%s%s%s", m.opcode,
           number != NULL ? " " : "", number != NULL ? number : "",
           carry ? " carry" : "");
  for (const char *p = m.c.name; *p != '\0'; p++)
    m.hash = m.hash * 31 + (unsigned char)*p;
  m.hash ^= m.hash >> 16;
  if (!make(&m, row, carry) || m.c.n_in == 0)
    return false;
  add(list, &m.c);
  return true;
}

/* Returns whether an earlier row accepts the same operands, so that the loader
 * never selects this row. */
static bool hidden(const kiln__cpu_matches *matches, unsigned op)
{
  const kiln__cpu_row *rows = cpu_rows()->rows;

  for (unsigned i = 0; i < matches->n && matches->ops[i] != op; i++) {
    const kiln__cpu_row *other = &rows[matches->ops[i]];
    bool same = other->n_forms == rows[op].n_forms;

    for (unsigned k = 0; same && k < other->n_forms; k++)
      same = other->forms[k].shape == rows[op].forms[k].shape;
    if (same)
      return true;
  }
  return false;
}

static bool add_opcode(opcode_list *list, unsigned op, const char *opcode,
                       unsigned above, unsigned sm)
{
  static const char *const numbers[] = {"0x00", "0x01", "0x1b", "0x3c", "0x78",
                                        "0x80", "0x96", "0xca", "0xe8", "0xea",
                                        "0xf8", "0xfe", "0xff"};
  const kiln__cpu_row *row = &cpu_rows()->rows[op];
  const kiln__cpu_matches *matches =
      kiln__cpu_matcher_find(cpu_rows(), opcode, strlen(opcode));
  maker m = {.opcode = opcode, .hash = 17};
  bool ok = true;

  ck_assert_ptr_nonnull(matches);
  if (matches->n == 0 || matches->specific)
    return false;
  m.fields = &matches->fields;
  m.c.op = (uint16_t)op;
  m.c.ptx = row->ptx > matches->ptx ? row->ptx : matches->ptx;
  m.c.sm = row->sm > matches->sm ? row->sm : matches->sm;
  if (m.c.sm > sm || (above > 0 && m.c.sm <= above))
    return false;
  if (hidden(matches, op))
    return true;
  m.c.approx =
      row->klass == KILN__CLASS_SPECIAL || strstr(opcode, ".full") != NULL;
  if (begins(&m, "lop3")) {
    for (size_t i = 0; ok && i < sizeof numbers / sizeof *numbers; i++)
      ok = add_variant(list, &m, row, numbers[i], false);
    return ok;
  }
  ok = add_variant(list, &m, row, NULL, false);
  if (ok && has(&m, ".cc"))
    ok = add_variant(list, &m, row, NULL, true);
  return ok;
}

/* Returns whether a row of ops.def has no test case, because it has no result
 * or because the result depends on more than the operands. */
static bool is_left_out(unsigned op)
{
  static const char *const names[] = {"cvta",      "cvta_same",   "cvta_to",
                                      "mov_clock", "activemask",  "shfl",
                                      "vote",      "vote_ballot", "movmatrix"};
  const unsigned klass = cpu_rows()->rows[op].klass;

  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(op_names[op], names[i]) == 0)
      return true;
  }
  return klass == KILN__CLASS_OTHER || klass == KILN__CLASS_FENCE ||
         (klass >= KILN__CLASS_PARAM && klass <= KILN__CLASS_TEXTURE);
}

/* Returns whether an opcode needs registers of 8 bits, which the cases do not
 * have: ptxas accepts no others for conversions between bf16 and 8-bit integers.
 * tests/host/cpu/convert_test.c has them. */
static bool needs_bytes(const char *opcode)
{
  return strstr(opcode, ".bf16") != NULL &&
         (strstr(opcode, ".u8") != NULL || strstr(opcode, ".s8") != NULL);
}

static bool add_row(opcode_list *list, unsigned op, unsigned above, unsigned sm)
{
  const kiln__cpu_row *row = &cpu_rows()->rows[op];
  char text[160];
  bool any = false;
  size_t n = 1;

  if (row->internal || is_left_out(op) ||
      (row->kind != KILN__KIND_SIMPLE && row->kind != KILN__KIND_WARP))
    return false;
  for (size_t k = 0; k < n; k++) {
    n = cpu_row_opcode((kiln__cpu_op)op, k, text, sizeof text);
    if (!needs_bytes(text))
      any |= add_opcode(list, op, strchr(text, ' ') + 1, above, sm);
  }
  return any;
}

/* Adds test cases that cannot be derived from ops.def. */
static void add_by_hand(opcode_list *list)
{
  static const opcode_case cases[] = {
#define CASE(op_, name_, bytes, n, a, b, c, d, text_)                          \
  {.name = name_,                                                              \
   .op = KILN__OP_##op_,                                                       \
   .n_in = n,                                                                  \
   .in = {a, b, c, d},                                                         \
   .out_bytes = bytes,                                                         \
   .text = text_}
      CASE(mov_pack, "mov.b32 {b16, b16}", 4, 2, KILN__B16, KILN__B16, 0, 0,
           "mov.b32 %r, {%h0, %h1};\n"),
      CASE(mov_pack, "mov.b64 {b32, b32}", 8, 2, KILN__B32, KILN__B32, 0, 0,
           "mov.b64 %q, {%s0, %s1};\n"),
      CASE(mov_pack, "mov.b64 {b16, b16, b16, b16}", 8, 4, KILN__B16, KILN__B16,
           KILN__B16, KILN__B16, "mov.b64 %q, {%h0, %h1, %h2, %h3};\n"),
      CASE(mov_unpack, "mov.b32 _, b16", 4, 1, KILN__B32, 0, 0, 0,
           "mov.b32 {_, %o}, %s0;\ncvt.u32.u16 %r, %o;\n"),
      CASE(mov_unpack, "mov.b64 swapped", 8, 1, KILN__B64, 0, 0, 0,
           "mov.b64 {%r, %r2}, %d0;\nmov.b64 %q, {%r2, %r};\n"),
      CASE(mov_unpack, "mov.b64 b16s", 4, 1, KILN__B64, 0, 0, 0,
           "mov.b64 {_, %o, %o2, _}, %d0;\nmov.b32 %r, {%o2, %o};\n"),
      CASE(movmatrix, "movmatrix.sync.aligned.m8n8.trans.b16", 4, 1, KILN__B32,
           0, 0, 0, "movmatrix.sync.aligned.m8n8.trans.b16 %r, %s0;\n"),
      CASE(subc_32, "add.cc.u32 subc.u32", 4, 4, KILN__U32, KILN__U32,
           KILN__U32, KILN__U32,
           "add.cc.u32 %r2, %s0, %s1;\nsubc.u32 %r, %s2, %s3;\n"),
      CASE(addc_32, "sub.cc.u32 addc.u32", 4, 4, KILN__U32, KILN__U32,
           KILN__U32, KILN__U32,
           "sub.cc.u32 %r2, %s0, %s1;\naddc.u32 %r, %s2, %s3;\n"),
      CASE(cvt_int, "cvt.u32.u16 wide", 4, 1, KILN__B32, 0, 0, 0,
           "cvt.u32.u16 %r, %s0;\n"),
      CASE(cvt_int, "cvt.s32.s16 wide", 4, 1, KILN__B32, 0, 0, 0,
           "cvt.s32.s16 %r, %s0;\n"),
      CASE(cvt_int, "cvt.s16.s32 wide", 4, 1, KILN__B32, 0, 0, 0,
           "cvt.s16.s32 %r, %s0;\n"),
      CASE(cvt_int, "cvt.u16.s8 wide", 8, 1, KILN__B64, 0, 0, 0,
           "cvt.u16.s8 %q, %d0;\n"),
      CASE(cvt_int, "cvt.s64.s8 wide", 8, 1, KILN__B64, 0, 0, 0,
           "cvt.s64.s8 %q, %d0;\n"),
      CASE(cvt_int, "cvt.s32.s8 wide", 8, 1, KILN__B64, 0, 0, 0,
           "cvt.s32.s8 %q, %d0;\n"),
      CASE(cvt_sat_s8, "cvt.sat.s8.s16 wide", 8, 1, KILN__B64, 0, 0, 0,
           "cvt.sat.s8.s16 %q, %d0;\n"),
      CASE(cvt_sat_u16, "cvt.sat.u16.s32 wide", 4, 1, KILN__B32, 0, 0, 0,
           "cvt.sat.u16.s32 %r, %s0;\n"),
      CASE(cvt_s32_f32, "cvt.rni.s32.f32 wide", 8, 1, KILN__F32, 0, 0, 0,
           "cvt.rni.s32.f32 %q, %s0;\n"),
      CASE(cvt_int_f32, "cvt.rzi.s8.f32 wide", 8, 1, KILN__F32, 0, 0, 0,
           "cvt.rzi.s8.f32 %q, %s0;\n"),
#undef CASE
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    add(list, &cases[i]);
}

static int by_operands(const void *a, const void *b)
{
  const opcode_case *x = a, *y = b;
  const int order = memcmp(x->in, y->in, sizeof x->in);

  if (x->n_in != y->n_in)
    return x->n_in < y->n_in ? -1 : 1;
  return order != 0 ? order : strcmp(x->name, y->name);
}

void opcode_list_make(opcode_list *out, unsigned above, unsigned sm,
                      bool *uncovered)
{
  *out = (opcode_list){0};
  for (unsigned op = 0; op < KILN__N_OPS; op++) {
    const bool any = add_row(out, op, above, sm);

    if (uncovered != NULL)
      uncovered[op] = !any;
  }
  if (above == 0)
    add_by_hand(out);
  if (out->n > 0)
    qsort(out->cases, out->n, sizeof *out->cases, by_operands);
}

void opcode_list_free(opcode_list *list)
{
  free(list->cases);
  *list = (opcode_list){0};
}

bool opcode_same_operands(const opcode_case *a, const opcode_case *b)
{
  return a->n_in == b->n_in && memcmp(a->in, b->in, a->n_in) == 0;
}

/* ---- Text ---------------------------------------------------------------- */

size_t opcode_kernel_cases(const opcode_case *cases, size_t n)
{
  size_t k = 1;

  while (k < n && k < OPCODE_BATCH &&
         opcode_same_operands(&cases[0], &cases[k]))
    k++;
  return k;
}

static void put_head(kiln__buf *out, const opcode_case *cases, size_t n)
{
  unsigned ptx = 80, sm = 90;

  for (size_t i = 0; i < n; i++) {
    ptx = cases[i].ptx > ptx ? cases[i].ptx : ptx;
    sm = cases[i].sm > sm ? cases[i].sm : sm;
  }
  kiln__buf_format(out, ".version %u.%u\n.target sm_%u\n.address_size 64\n",
                   ptx / 10, ptx % 10, sm);
}

static void put_loads(kiln__buf *out, const opcode_case *c)
{
  for (unsigned i = 0; i < c->n_in; i++) {
    const unsigned bytes = operand_bytes(c->in[i]);

    kiln__buf_format(out,
                     "ld.param.u64 %%at, [in%u];\n"
                     "mad.wide.u32 %%at, %%i, %u, %%at;\n",
                     i, bytes);
    kiln__buf_format(out,
                     bytes == 8 ? "ld.global.b64 %%d%u, [%%at];\n"
                                : "ld.global.b32 %%s%u, [%%at];\n",
                     i);
    if (c->in[i] == KILN__PRED || c->in[i] == OPERAND_SOME)
      kiln__buf_format(out, "setp.ne.u32 %%p%u, %%s%u, 0;\n", i, i);
    else if (bytes == 4)
      kiln__buf_format(out, "mov.b32 {%%h%u, _}, %%s%u;\n", i, i);
  }
}

/* Writes the code of one test case. Lanes outside the member mask skip the code
 * and store 0. */
static void put_case(kiln__buf *out, const opcode_case *c, size_t number)
{
  const bool members = c->n_in > 0 && c->in[c->n_in - 1] == OPERAND_MEMBERS;

  kiln__buf_text(out, "{\n.reg .pred %e, %e2;\n.reg .b16 %o, %o2;\n"
                      ".reg .b32 %r, %r2;\n.reg .b64 %q, %q2;\n");
  if (members)
    kiln__buf_format(out,
                     "mov.u32 %%r, 0;\nmov.u64 %%q, 0;\n"
                     "mov.u32 %%r2, %%lanemask_eq;\n"
                     "and.b32 %%r2, %%r2, %%s%u;\n"
                     "setp.eq.u32 %%e, %%r2, 0;\n@%%e bra Over%zu;\n",
                     c->n_in - 1, number);
  kiln__buf_text(out, c->text);
  if (members)
    kiln__buf_format(out, "Over%zu:\n", number);
  kiln__buf_text(out, c->out_bytes == 8 ? "st.global.b64 [%to], %q;\n"
                                        : "st.global.b32 [%to4], %r;\n");
  kiln__buf_text(out, "add.u64 %to, %to, %step;\nadd.u64 %to4, %to4, %step;\n"
                      "}\n");
}

static void put_kernel(kiln__buf *out, const opcode_case *cases, size_t n,
                       size_t number)
{
  kiln__buf_format(out, ".visible .entry k%zu(", number);
  for (unsigned i = 0; i < OPCODE_SOURCES; i++)
    kiln__buf_format(out, ".param .u64 in%u, ", i);
  kiln__buf_text(out, ".param .u64 out, .param .u32 n, .param .u64 step)\n{\n"
                      ".reg .pred %p<6>;\n.reg .b16 %h<6>;\n.reg .b32 %s<6>;\n"
                      ".reg .b64 %d<6>;\n.reg .b64 %at, %to, %to4, %step;\n"
                      ".reg .b32 %i, %n;\n.reg .pred %over;\n"
                      "mov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\n"
                      "mul.lo.u32 %i, %i, %n;\nmov.u32 %n, %tid.x;\n"
                      "add.u32 %i, %i, %n;\n"
                      "ld.param.u32 %n, [n];\nsetp.ge.u32 %over, %i, %n;\n"
                      "@%over exit;\nld.param.u64 %step, [step];\n"
                      "ld.param.u64 %to4, [out];\n"
                      "mad.wide.u32 %to, %i, 8, %to4;\n"
                      "mad.wide.u32 %to4, %i, 4, %to4;\n");
  put_loads(out, cases);
  for (size_t i = 0; i < n; i++)
    put_case(out, &cases[i], i);
  kiln__buf_text(out, "ret;\n}\n");
}

void opcode_module(kiln__buf *out, const opcode_case *cases, size_t n)
{
  size_t number = 0;

  put_head(out, cases, n);
  for (size_t i = 0, k; i < n; i += k) {
    k = opcode_kernel_cases(cases + i, n - i);
    put_kernel(out, cases + i, k, number++);
  }
}

void operands_text(const opcode_case *c, char *buf, size_t size)
{
  static const char *const more[] = {"few32",   "few64",      "some",   "lane",
                                     "segment", "segment.up", "members"};
  size_t used = 0;

  buf[0] = '\0';
  for (unsigned i = 0; i < c->n_in && used < size; i++) {
    const unsigned t = c->in[i];

    used += (size_t)snprintf(buf + used, size - used, "%s%s", i == 0 ? "" : ",",
                             t >= OPERAND_FEW32 ? more[t - OPERAND_FEW32]
                                                : kiln__cpu_ptx_type_text[t]);
  }
}
