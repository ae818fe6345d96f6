/* ptx_test.c -- tests the PTX parser: all syntax, all error messages, malicious
 * input, and memory exhaustion. The parser must accept a PTX source if and only
 * if ptxas accepts it. */
#include "ptx_cases.h"
#include "support.h"

#include "base/os.h"
#include "cpu/ptx/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define BODY                                                                   \
  ".visible .entry k(.param .u64 p)\n{\n"                                      \
  ".reg .pred p1, p2;\n.reg .b32 r<8>;\n.reg .b64 rd<8>;\n.reg .f32 f<8>;\n"

static test_allocator memory;
static kiln__cpu_ptx_module *module;

static void setup(void)
{
  test_allocator_init(&memory);
  module = NULL;
}

static void teardown(void)
{
  kiln__cpu_ptx_free(module);
  ck_assert_int_eq(memory.live, 0);
}

static kiln_status parse(const char *text)
{
  kiln__cpu_ptx_free(module);
  return kiln__cpu_ptx_parse(&module, &memory.alloc, text, strlen(text));
}

/* Returns a complete PTX source that contains these declarations and
 * statements. */
static const char *whole(const char *declarations, const char *statements)
{
  static char text[1 << 16];

  snprintf(text, sizeof text, HEAD "%s\n" BODY "%s\nret;\n}\n", declarations,
           statements);
  return text;
}

static bool slice_is(kiln__cpu_slice s, const char *text)
{
  return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

/* Returns the kernel that the macro BODY created. */
static const kiln__cpu_ptx_function *entry(void)
{
  for (uint32_t i = 0; i < module->n_functions; i++) {
    if (slice_is(module->functions[i]->name, "k"))
      return module->functions[i];
  }
  ck_abort_msg("no entry k");
  return NULL;
}

static const kiln__cpu_ptx_insn *insn(uint32_t index)
{
  ck_assert_uint_lt(index, entry()->n_insns);
  return &entry()->insns[index];
}

/* Returns operand `n` of the first statement in the kernel. */
static const kiln__cpu_ptx_operand *
operand_of(const char *declarations, const char *statements, uint32_t n)
{
  ck_kiln_ok(parse(whole(declarations, statements)));
  ck_assert_uint_lt(n, insn(0)->n_operands);
  return &insn(0)->operands[n];
}

static const kiln__cpu_ptx_variable *global(const char *name)
{
  for (uint32_t i = 0; i < module->n_variables; i++) {
    if (slice_is(module->variables[i]->name, name))
      return module->variables[i]->u.variable;
  }
  ck_abort_msg("no variable %s", name);
  return NULL;
}

/* ---- Accepted and rejected sources --------------------------------------- */

START_TEST(texts_are_accepted_or_not)
{
  const text_case *c = &cases[_i];
  const kiln_status st = parse(whole(c->declarations, c->statements));

  ck_assert_msg(st == (c->ok ? KILN_OK : KILN_ECOMPILE), "%s | %s: %s\n%s",
                c->declarations, c->statements, kiln_status_name(st),
                st == KILN_OK ? "" : kiln_last_error()->log);
  ck_assert_int_eq(module != NULL, c->ok);
}
END_TEST

/* ---- Headers ------------------------------------------------------------- */

static const struct {
  const char *text;
  bool ok;
  uint32_t version, target;
  char suffix;
} headers[] = {
    {".version 9.0\n.target sm_90\n.address_size 64\n", true, 90, 90, 0},
    {"// c\n.version 8.6 .target sm_100a", true, 86, 100, 'a'},
    {".version 8.8 .target sm_120f", true, 88, 120, 'f'},
    {".version 3.0 .target sm_20", true, 30, 20, 0},
    {".version 6.3 .target sm_75, texmode_independent", true, 63, 75, 0},
    {".version 6.3 .target sm_75 .target sm_75", true, 63, 75, 0},
    {"", false, 0, 0, 0},
    {".version 9.0", false, 0, 0, 0},
    {".version 9\n.target sm_90", false, 0, 0, 0},
    {".version 9.0;\n.target sm_90", false, 0, 0, 0},
    {".version 2.3 .target sm_20", false, 0, 0, 0},
    {".version 10.0 .target sm_90", false, 0, 0, 0},
    {".version 3.0 .target sm_90", false, 0, 0, 0},
    {".version 7.8 .target sm_90a", false, 0, 0, 0},
    {".version 8.7 .target sm_120f", false, 0, 0, 0},
    {".version 9.0 .target sm_90f", false, 0, 0, 0},
    {".version 9.0 .target sm_91", false, 0, 0, 0},
    {".version 9.0 .target foo", false, 0, 0, 0},
    {".version 9.0 .target sm_75, foo", false, 0, 0, 0},
    {".version 9.0 .target sm_75, debug", false, 0, 0, 0},
    {".version 9.0 .target sm_75, texmode_unified, texmode_independent", false,
     0, 0, 0},
    {".version 9.0 .target sm_75 .address_size 32", false, 0, 0, 0},
    {".version 9.0 .target sm_75 .address_size 64 .address_size 64", false, 0,
     0, 0},
    {".target sm_90 .version 9.0", false, 0, 0, 0},
    {".version 9.0 .address_size 64 .target sm_90", false, 0, 0, 0},
};

START_TEST(headers_are_read)
{
  const kiln_status st = parse(headers[_i].text);

  ck_assert_msg(st == (headers[_i].ok ? KILN_OK : KILN_ECOMPILE), "%s: %s",
                headers[_i].text, kiln_status_name(st));
  if (!headers[_i].ok)
    return;
  ck_assert_uint_eq(module->version, headers[_i].version);
  ck_assert_uint_eq(module->target, headers[_i].target);
  ck_assert_int_eq(module->target_suffix, headers[_i].suffix);
  ck_assert_uint_eq(module->address_size, 64);
}
END_TEST

START_TEST(debug_needs_sections_and_a_nul_may_end_it)
{
  const char text[] = ".version 9.0 .target sm_90, debug\n"
                      ".section .debug_info { }";

  ck_kiln_ok(
      /* The size of the source includes the terminating NUL. */
      kiln__cpu_ptx_parse(&module, &memory.alloc, text, sizeof text));
  ck_assert(module->debug);
  kiln__cpu_ptx_free(module);
  ck_kiln_is(kiln__cpu_ptx_parse(&module, &memory.alloc, "a\0b", 3),
             KILN_ECOMPILE);
  ck_kiln_is(kiln__cpu_ptx_parse(&module, &memory.alloc, NULL, 0),
             KILN_ECOMPILE);
}
END_TEST

/* ---- Values -------------------------------------------------------------- */

static const struct {
  const char *text;
  uint64_t bits;
  bool is_unsigned;
} integers[] = {
    {"5", 5, false},
    {"-5", (uint64_t)-5, false},
    {"- - 5", 5, false},
    {"5U", 5, true},
    {"0x10", 16, false},
    {"017", 15, false},
    {"0b101", 5, false},
    {"9223372036854775808", UINT64_C(1) << 63, true},
    {"1 + 2 * 3", 7, false},
    {"(1 + 2) * 3", 9, false},
    {"7 - 2 - 1", 4, false},
    {"2 * 7 / 3", 4, false},
    {"-7 / 2", (uint64_t)-3, false},
    {"-7 % 3", (uint64_t)-1, false},
    {"7 % -3", 1, false},
    {"(.u64)-8 / 2", UINT64_C(0x7ffffffffffffffc), true},
    {"-9223372036854775807 - 1", UINT64_C(1) << 63, false},
    {"(-9223372036854775807 - 1) / -1", UINT64_C(1) << 63, false},
    {"(-9223372036854775807 - 1) % -1", 0, false},
    {"-1 < 0", 1, false},
    {"-1 < 0U", 0, false},
    {"-1 > 0U", 1, false},
    {"2 <= 2", 1, false},
    {"2 >= 3", 0, false},
    {"2 == 2", 1, false},
    {"2 != 2", 0, false},
    {"1.5 < 2.0", 1, false},
    {"1.5 == 2.0", 0, false},
    {"6 & 3", 2, false},
    {"6 | 3", 7, false},
    {"6 ^ 3", 5, false},
    {"1 | 2 ^ 3 & 4", 3, false},
    {"2 && 0", 0, false},
    {"2 || 0", 1, false},
    {"1 || 0 && 0", 1, false},
    {"!3", 0, false},
    {"!0", 1, false},
    {"~0", UINT64_MAX, false},
    {"1 << 4", 16, false},
    {"1 << 64", 0, false},
    {"-16 >> 2", (uint64_t)-4, false},
    {"(.u64)-16 >> 60", 15, true},
    {"-1 >> 100", UINT64_MAX, false},
    {"1 << 2 + 1", 8, false},
    {"1 ? 2 : 3", 2, false},
    {"0 ? 2 : 0 ? 3 : 4", 4, false},
    {"WARP_SZ * 2", 64, false},
    {"((((3))))", 3, false},
};

START_TEST(integers_have_their_value)
{
  char text[200];
  const kiln__cpu_ptx_operand *o;

  snprintf(text, sizeof text, "mov.u64 rd1, %s;", integers[_i].text);
  o = operand_of("", text, 1);
  ck_assert_int_eq(o->kind, KILN__OPERAND_INTEGER);
  ck_assert_msg(o->bits == integers[_i].bits, "%s: %llx", integers[_i].text,
                (unsigned long long)o->bits);
  ck_assert_int_eq(o->is_unsigned, integers[_i].is_unsigned);
  ck_assert_int_eq(o->negative,
                   !integers[_i].is_unsigned && (int64_t)integers[_i].bits < 0);
}
END_TEST

static const struct {
  const char *text;
  double value;
} floats[] = {{"1.5", 1.5},         {"-1.5", -1.5},
              {".5", .5},           {"1.", 1.},
              {"1e3", 1000.},       {"1.25e-2", .0125},
              {".5E+1", 5.},        {"0.1", 0.1},
              {"1.5 + 2.25", 3.75}, {"(1.5)", 1.5},
              {"1.5 * 2.0", 3.0},   {"1.0 / 4.0", .25},
              {"0e1", 0},           {"4.9e-324", 4.9e-324},
              {"3.0 - 1.5", 1.5},   {"0d4004000000000000", 2.5}};

START_TEST(floats_have_their_value)
{
  char text[200];
  const kiln__cpu_ptx_operand *o;
  double value;

  snprintf(text, sizeof text, "mov.f64 rd1, %s;", floats[_i].text);
  o = operand_of("", text, 1);
  ck_assert_int_eq(o->kind, KILN__OPERAND_FLOAT);
  memcpy(&value, &o->bits, sizeof value);
  ck_assert_msg(value == floats[_i].value, "%s: %a", floats[_i].text, value);
}
END_TEST

START_TEST(operands_say_what_was_written)
{
  const kiln__cpu_ptx_operand *o = operand_of("", "mov.f32 f1, 0f3F800000;", 1);

  ck_assert_int_eq(o->kind, KILN__OPERAND_FLOAT32);
  ck_assert_uint_eq(o->bits, 0x3f800000);
  o = operand_of("", "ld.global.u32 r1, [rd1 + -12];", 1);
  ck_assert_int_eq(o->kind, KILN__OPERAND_ADDRESS);
  ck_assert_int_eq(o->offset, -12);
  ck_assert(slice_is(o->base->symbol->name, "rd1"));
  o = operand_of("", "ld.local.u32 r1, [16 + 4];", 1);
  ck_assert_int_eq(o->base->kind, KILN__OPERAND_INTEGER);
  ck_assert_uint_eq(o->base->bits, 20);
  o = operand_of(".global .v2 .b32 g[8];", "mov.u64 rd1, g[3];", 1);
  ck_assert_int_eq(o->kind, KILN__OPERAND_SYMBOL);
  ck_assert_int_eq(o->offset, 24);
  o = operand_of("", "mov.u32 r1, %ctaid .y;", 1);
  ck_assert_int_eq(o->kind, KILN__OPERAND_SPECIAL);
  ck_assert(slice_is(o->text, "ctaid.y"));
  o = operand_of("", ".reg .v4 .f32 v; mov.f32 v.b, 1.0;", 0);
  ck_assert_int_eq(o->component, 2);
  o = operand_of("", "setp.eq.s32 p1|_, r1, r2;", 0);
  ck_assert_int_eq(o->kind, KILN__OPERAND_PAIR);
  ck_assert_uint_eq(o->n_items, 2);
  ck_assert_int_eq(o->items[1].kind, KILN__OPERAND_SINK);
  o = operand_of("", "selp.b32 r1, r2, r3, !p1;", 3);
  ck_assert(o->negated);
  o = operand_of("", "mov.b64 {r1, _}, rd1;", 0);
  ck_assert_int_eq(o->kind, KILN__OPERAND_VECTOR);
  ck_assert_uint_eq(o->n_items, 2);
  o = operand_of("", "tex.2d.v4.f32.f32 {f1, f2, f3, f4}, [rd1, {f5, f6}];", 1);
  ck_assert_int_eq(o->kind, KILN__OPERAND_TEXTURE);
  ck_assert_uint_eq(o->n_items, 2);
  ck_assert_int_eq(o->items[1].kind, KILN__OPERAND_VECTOR);
  ck_assert_uint_eq(o->items[1].n_items, 2);
  o = operand_of(F, "call (r1), fn, (r2);", 0);
  ck_assert_int_eq(o->kind, KILN__OPERAND_LIST);
  ck_assert_uint_eq(o->n_items, 1);
  ck_assert_int_eq(insn(0)->operands[1].symbol->kind, KILN__SYMBOL_FUNCTION);
}
END_TEST

START_TEST(instructions_keep_guard_place_and_opcode)
{
  ck_kiln_ok(parse(whole(".file 3 \"a.cu\"", ".loc 3 7 2\n"
                                             "@!p1 add /**/ .rn.f32 f1, f2,\n"
                                             " f3; @p2 ret;")));
  ck_assert(slice_is(insn(0)->opcode, "add.rn.f32"));
  ck_assert(slice_is(insn(0)->guard->name, "p1"));
  ck_assert(insn(0)->guard_negated);
  ck_assert(!insn(1)->guard_negated);
  ck_assert_uint_eq(insn(0)->pos.line, 12);
  ck_assert_uint_eq(insn(0)->pos.column, 6);
  ck_assert_uint_eq(insn(0)->loc.file, 3);
  ck_assert_uint_eq(insn(0)->loc.line, 7);
  ck_assert_uint_gt(module->n_files, 3);
  ck_assert_str_eq(module->files[3], "a.cu");
  ck_assert_ptr_null(module->files[2]);
}
END_TEST

START_TEST(names_are_resolved_in_their_scope)
{
  const kiln__cpu_ptx_symbol *outer, *inner;

  ck_kiln_ok(parse(whole("", "mov.b32 r1, 1;\n"
                             "{ .reg .b64 r1; mov.b64 r1, 1; bra L; L: }\n"
                             "L: mov.b32 r1, 1; bra L;\n"
                             "{ .reg .b16 r<2>; mov.b16 r1, 1; mov.b32 r2, 1; }"
                             "mov.b32 r01, 2;")));
  outer = insn(0)->operands[0].symbol;
  inner = insn(1)->operands[0].symbol;
  ck_assert_int_eq(outer->u.variable->type, KILN__B32);
  ck_assert_int_eq(inner->u.variable->type, KILN__B64);
  ck_assert_ptr_eq(insn(3)->operands[0].symbol, outer);
  /* The names r01 and r1 denote different registers. */
  ck_assert_ptr_eq(insn(7)->operands[0].symbol, outer);
  ck_assert_uint_eq(insn(2)->operands[0].symbol->u.label, 3);
  ck_assert_uint_eq(insn(4)->operands[0].symbol->u.label, 3);
  ck_assert_ptr_ne(insn(2)->operands[0].symbol, insn(4)->operands[0].symbol);
  ck_assert_int_eq(insn(5)->operands[0].symbol->u.variable->type, KILN__B16);
  ck_assert_int_eq(insn(6)->operands[0].symbol->u.variable->type, KILN__B32);
  ck_assert_uint_eq(entry()->n_labels, 2);
}
END_TEST

/* Registers must be numbered without gaps. A register that a range such as
 * %r<8> declares exists only if the kernel uses it. */
START_TEST(registers_are_numbered)
{
  bool seen[16] = {false};
  const kiln__cpu_ptx_function *f;
  uint32_t registers = 0;

  ck_kiln_ok(parse(HEAD ".func (.reg .b32 o) k(.reg .b32 i) {\n"
                        ".reg .b32 r<100000>; .reg .pred p; .local .b32 l;\n"
                        "mov.b32 o, i; mov.b32 r99999, r5; mov.b32 r5, r6;\n"
                        "ret; }"));
  f = entry();
  ck_assert_uint_eq(f->n_registers, 6);
  ck_assert_uint_eq(f->n_variables, 7);
  for (uint32_t i = 0; i < f->n_variables; i++) {
    const kiln__cpu_ptx_variable *v = f->variables[i]->u.variable;

    if (v->space != KILN__SPACE_REG)
      continue;
    ck_assert_uint_lt(v->index, f->n_registers);
    ck_assert(!seen[v->index]);
    seen[v->index] = true;
    registers++;
  }
  ck_assert_uint_eq(registers, f->n_registers);
}
END_TEST

START_TEST(functions_keep_their_header)
{
  const kiln__cpu_ptx_function *f;

  ck_kiln_ok(parse(
      HEAD ".func (.param .b32 r) g(.param .align 8 .b8 s[12]);\n"
           ".visible .entry k(.param .u64 .ptr .shared .align 16 a,\n"
           ".param .align 8 .b8 s[12]) .maxntid 32, 4 .reqnctapercluster 2\n"
           ".minnctapersm 3 .maxnreg 40 .explicitcluster { bra L; L: }\n"
           ".func (.param .b32 r) g(.param .align 8 .b8 q[12]) { ret; }\n"
           ".func h(); .func i() { ret; } .alias h, i;"));
  ck_assert_uint_eq(module->n_functions, 4);
  f = module->functions[0];
  ck_assert(slice_is(f->name, "g") && f->defined && !f->entry);
  ck_assert(slice_is(f->params[0]->name, "q"));
  ck_assert_uint_eq(f->n_returns, 1);
  f = module->functions[1];
  ck_assert(f->entry && f->defined && f->linkage == KILN__LINK_VISIBLE);
  ck_assert_uint_eq(f->max_ntid[0], 32);
  ck_assert_uint_eq(f->max_ntid[1], 4);
  ck_assert_uint_eq(f->max_ntid[2], 1);
  ck_assert_uint_eq(f->req_ntid[0], 0);
  ck_assert_uint_eq(f->cluster[0], 2);
  ck_assert_uint_eq(f->min_ctas, 3);
  ck_assert_uint_eq(f->max_nreg, 40);
  ck_assert(f->explicit_cluster);
  ck_assert_uint_eq(f->n_params, 2);
  ck_assert(f->params[0]->u.variable->has_ptr);
  ck_assert_int_eq(f->params[0]->u.variable->pointee, KILN__SPACE_SHARED);
  ck_assert_uint_eq(f->params[0]->u.variable->pointee_align, 16);
  ck_assert_uint_eq(f->params[1]->u.variable->size, 12);
  ck_assert_uint_eq(f->params[1]->u.variable->align, 8);
  /* The label refers to the end of the function. */
  ck_assert_uint_eq(f->insns[0].operands[0].symbol->u.label, 1);
  ck_assert_ptr_eq(module->functions[2]->alias_of, module->functions[3]);
}
END_TEST

START_TEST(calls_find_their_prototypes_and_targets)
{
  const kiln__cpu_ptx_symbol *s;

  ck_kiln_ok(parse(whole(
      F, "x: .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[8]); "
         "t: .branchtargets L<2>, M; brx.idx r1, t; call (r1), rd1, (r2), x; "
         "L0: ret; L1: M: ret;")));
  s = insn(0)->operands[1].symbol;
  ck_assert_int_eq(s->kind, KILN__SYMBOL_TARGETS);
  ck_assert_uint_eq(s->u.targets.n, 3);
  ck_assert_uint_eq(s->u.targets.items[0]->u.label, 2);
  ck_assert_uint_eq(s->u.targets.items[1]->u.label, 3);
  ck_assert_uint_eq(s->u.targets.items[2]->u.label, 3);
  s = insn(1)->operands[3].symbol;
  ck_assert_int_eq(s->kind, KILN__SYMBOL_PROTOTYPE);
  ck_assert_uint_eq(s->u.function->n_returns, 1);
  ck_assert_uint_eq(s->u.function->params[0]->u.variable->size, 8);
}
END_TEST

static void check_bytes(const char *name, const void *want, size_t size)
{
  const kiln__cpu_ptx_variable *v = global(name);

  ck_assert_uint_le(v->init_size, size);
  for (size_t i = 0; i < size; i++)
    ck_assert_msg((i < v->init_size ? v->init[i] : 0) ==
                      ((const uint8_t *)want)[i],
                  "%s, byte %zu", name, i);
}

START_TEST(initial_values_are_bytes)
{
  const uint32_t nested[6] = {1, 2, 0, 4, 0, 0};
  const uint32_t vectors[4] = {1, 2, 3, 4};
  const float single = 1.5f;
  const double wide[2] = {2.5, (double)1.5f};
  const uint64_t big[2] = {UINT64_MAX, 0};

  ck_kiln_ok(parse(
      HEAD ".global .b8 a[3] = {256, -2, 0x41};\n"
           ".global .b32 m[2][3] = {{1, 2}, {4}};\n"
           ".const .v2 .u32 v[] = {{1, 2}, {3, 4}};\n"
           ".global .f32 f = 1.5; .global .b32 g = 0f3FC00000;\n"
           ".global .f64 d[2] = {0d4004000000000000, 0f3FC00000};\n"
           ".global .b128 w = 0xFFFFFFFFFFFFFFFF; .global .align 32 .u16 h = "
           "-1, e;\n"));
  check_bytes("a", "\0\xfe\x41", 3);
  check_bytes("m", nested, sizeof nested);
  ck_assert_uint_eq(global("m")->size, 24);
  check_bytes("v", vectors, sizeof vectors);
  ck_assert_uint_eq(global("v")->size, 16);
  ck_assert_uint_eq(global("v")->align, 8);
  ck_assert(!global("v")->flexible);
  ck_assert_uint_eq(global("v")->array_elements, 2);
  check_bytes("f", &single, sizeof single);
  check_bytes("g", &single, sizeof single);
  check_bytes("d", wide, sizeof wide);
  check_bytes("w", big, sizeof big);
  check_bytes("h", "\xff\xff", 2);
  ck_assert_uint_eq(global("e")->align, 32);
  ck_assert_ptr_null(global("e")->init);
}
END_TEST

START_TEST(initial_addresses_are_relocations)
{
  const kiln__cpu_ptx_reloc *r;

  ck_kiln_ok(parse(HEAD A
                   ".global .u64 x[4] = {1, a + 8, generic(a) + -1, ff};\n"
                   ".global .u8 b[3] = {9, 0xFF(a), 0xFF0000(generic(a)+1)};"));
  ck_assert_uint_eq(global("x")->n_relocs, 3);
  ck_assert_uint_eq(global("x")->init_size, 32);
  r = global("x")->relocs;
  ck_assert(r[0].offset == 8 && r[0].size == 8 && !r[0].generic);
  ck_assert_ptr_eq(r[0].symbol->u.variable, global("a"));
  ck_assert_int_eq(r[0].addend, 8);
  ck_assert(r[1].generic && r[1].addend == -1 && r[1].offset == 16);
  ck_assert_int_eq(r[2].symbol->kind, KILN__SYMBOL_FUNCTION);
  r = global("b")->relocs;
  ck_assert_uint_eq(global("b")->n_relocs, 2);
  ck_assert(r[0].offset == 1 && r[0].size == 1 && r[0].shift == 0);
  ck_assert(r[1].offset == 2 && r[1].size == 1 && r[1].shift == 16);
  ck_assert(r[1].generic && r[1].addend == 1);
}
END_TEST

/* ---- Messages ------------------------------------------------------------ */

START_TEST(mistakes_are_listed_with_their_lines)
{
  const char *log;

  ck_kiln_is(parse(whole("", "mov.u32 x1, 1;\n\tmov.u32 r1 r2;\n"
                             "bra nowhere;\n{ add.s32 r1, y1, z1; }")),
             KILN_ECOMPILE);
  ck_assert_ptr_null(module);
  log = kiln_last_error()->log;
  ck_assert_ptr_nonnull(strstr(log, "ptx line 11, column 9: 'x1'"));
  ck_assert_ptr_nonnull(strstr(log, "  mov.u32 x1, 1;\n          ^\n"));
  ck_assert_ptr_nonnull(
      strstr(log, "ptx line 12, column 13: unexpected 'r2', expected ';'"));
  ck_assert_ptr_nonnull(strstr(log, "   mov.u32 r1 r2;\n              ^\n"));
  ck_assert_ptr_nonnull(strstr(log, "no label 'nowhere'"));
  ck_assert_ptr_nonnull(strstr(log, "line 14, column 15: 'y1'"));
  ck_assert_ptr_nonnull(strstr(log, "line 14, column 19: 'z1'"));
}
END_TEST

START_TEST(twenty_mistakes_are_shown)
{
  char text[4000] = "";
  const char *c = NULL;
  int n = 0;

  for (int i = 0; i < 30; i++)
    strcat(text, "mov.u32 nobody, 1;\n");
  ck_kiln_is(parse(whole("", text)), KILN_ECOMPILE);
  for (c = kiln_last_error()->log; (c = strstr(c, "ptx line")) != NULL; c++)
    n++;
  ck_assert_int_eq(n, 20);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->log, "and 10 more"));
}
END_TEST

/* ---- Malicious input ----------------------------------------------------- */

/* A PTX source that contains every construct of the language. */
static const char everything[] = HEAD
    ".file 1 \"a.cu\"\n.extern .shared .align 16 .b8 sm[];\n" A
    ".global .u64 pa[3] = {a, generic(a)+4, 7};\n"
    ".global .u8 pb[2] = {0xFF(a), 0xFF00(generic(a)+1)};\n"
    ".const .f32 cf[2] = {0f3F800000, -1.5};\n"
    ".global .b32 m[2][3] = {{1, 2, (1 ? 3 : 4) << 2}, {4}};\n"
    ".func (.param .b32 r) fn(.param .b32 x, .param .align 8 .b8 s[8])\n{\n"
    ".reg .b32 %r<4>; ld.param.u32 %r1, [x];\n"
    "{ .reg .b32 %t; mov.u32 %t, (1+2)*3; add.s32 %r1, %r1, %t; }\nret; }\n"
    ".func g(.param .b32 x); .func g2() { ret; } .func g3(); .alias g3, g2;\n"
    ".visible .entry k(.param .u64 .ptr .global .align 8 p,\n"
    ".param .align 4 .b8 q[12]) .maxntid 128, 1, 1 .minnctapersm 2\n{\n"
    ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .f32 %f<4>;\n"
    ".reg .v4 .f32 v; .local .align 8 .b8 dep[16]; .shared .v2 .f32 sv[4];\n"
    "pr: .callprototype (.param .b32 _) _ (.param .b32 _);\n.loc 1 2 3\n"
    "setp.ge.and.s32 %p1|%p2, %r3, %r1, !%p0; @%p1 bra $L1; @!%p2 bra L2;\n"
    "mov.b64 %rd2, {%r1, %r2}; mov.f32 v.x, 0f3F800000; mov.u32 %r3, %tid.x;\n"
    "$L1: ts: .branchtargets $L1, L2, N<2>; brx.idx %r1, ts; N0: N1:\n"
    "{ .param .b32 o; call (o), %rd3, (%r1), pr; ld.param.b32 %r4, [o]; }\n"
    ".pragma \"nounroll\"; atom.global.add.u32 _, [%rd1+-4], %r5;\n"
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd2, {%f1, %f2}];\n"
    "L2: ret;\n}\n.section .debug_x { L0: .b8 1, 2\n.b32 .debug_x+4\n }\n";

static kiln_status parse_bytes(const char *text, size_t size)
{
  /* The copy has exact size, so that a sanitizer detects reads beyond its
   * end. */
  char *copy = malloc(size + 1);
  kiln_status st;

  memcpy(copy, text, size);
  kiln__cpu_ptx_free(module);
  st = kiln__cpu_ptx_parse(&module, &memory.alloc, copy, size);
  free(copy);
  return st;
}

START_TEST(every_truncation_is_survived)
{
  int accepted = 0;

  ck_kiln_ok(parse_bytes(everything, sizeof everything - 1));
  for (size_t size = 0; size < sizeof everything - 1; size++) {
    const kiln_status st = parse_bytes(everything, size);

    ck_assert_msg(st == KILN_OK || st == KILN_ECOMPILE, "%zu bytes", size);
    accepted += st == KILN_OK;
  }
  /* A truncated source is valid only if it ends between two declarations. */
  ck_assert_int_lt(accepted, 60);
}
END_TEST

START_TEST(random_mutations_are_survived)
{
  static const char marks[] = "{}[]()<>,;:.@!|+-*/%?=_\"#$0123456789abLr\n\t\\";
  const uint64_t until = kiln__clock_ns();
  uint64_t state = 12345;
  char text[sizeof everything];

  for (int i = 0; kiln__clock_ns() - until < UINT64_C(2500000000) && i < 100000;
       i++) {
    memcpy(text, everything, sizeof everything);
    for (uint64_t n = test_random(&state) % 8 + 1; n > 0; n--) {
      const size_t at = test_random(&state) % (sizeof everything - 1);
      const size_t from = test_random(&state) % (sizeof everything - 1);
      size_t length = test_random(&state) % 16;

      if (length > sizeof everything - 1 - (at > from ? at : from))
        length = 0;
      if (test_random(&state) % 3 == 0)
        memmove(text + at, text + from, length);
      else
        text[at] = test_random(&state) % 8 == 0
                       ? (char)test_random(&state)
                       : marks[test_random(&state) % (sizeof marks - 1)];
    }
    parse_bytes(text, sizeof everything - 1);
  }
}
END_TEST

static char *repeated(const char *before, const char *unit, size_t n,
                      const char *after)
{
  const size_t size = strlen(unit);
  char *text =
      malloc(strlen(before) + size * n + strlen(after) + sizeof(HEAD) + 1);
  char *to = text;

  to += sprintf(to, HEAD "%s", before);
  for (size_t i = 0; i < n; i++, to += size)
    memcpy(to, unit, size);
  strcpy(to, after);
  return text;
}

static const struct {
  const char *before, *unit, *after;
  bool ok;
} piles[] = {
    {BODY, "{", "", false},
    {BODY, "}", "", false},
    {BODY "mov.u32 r1, ", "(", "1;", false},
    {BODY "mov.u32 r1, ", "-", "1;}", false},
    {BODY "mov.u32 r1, ", "1 ? 1 : ", "1;}", false},
    {BODY "mov.u32 r1, 0", "+1", ";}", true},
    {BODY, "L: ", "}", false},
    {BODY "L: ", "bra L;", "}", true},
    {BODY, "bra L;", "}", false},
    {BODY, "{ bra L; ", "L: ret;", false},
    {BODY "vote.any {r1", ",r1", "}, r2;}", false},
    {BODY "x: .branchtargets r1", "<1>, r", "1;}", false},
    {BODY, "{ .reg .b32 a; mov.b32 a, r1; }", "}", true},
    {BODY, ".reg .b32 a<1000000>;", "}", false},
    {BODY ".reg .b32 a", "[1]", ";}", false},
    {"", ".func f();", "", true},
    {"", ".func f() { .reg .b32 a<1000000>; mov.b32 a1, a1; }", "", false},
    {".global .b8 a[100000]={0", ",1", "};", false},
    {".global .b8 a[300000]={0", ",1", "};", true},
    {".global .b8 a[][1000000]={{0}", ",{1}", "};", false},
    {".global .b8 a", "[1]", ";", false},
    {".global .b8 a[1]=", "{", ";", false},
    {".section .debug_x {", " .b8 1\n", "}", true},
    {"", ".global", "", false},
    {"", "\"", "", false},
    {"", "/*", "", false},
    {"", "# 1\n", "", true},
    {"", ".file 1 \"a\"\n", "", false},
    {".file 99999999 \"a\"\n", "", "", false},
    {"", ".target sm_90\n", "", false},
    {".entry x(.param .b32 a", ",.param .b32 b", ") { ret; }", false},
};

/* Deeply nested, long or repetitive sources must be accepted or rejected
 * quickly. */
START_TEST(piles_are_bounded)
{
  char *text =
      repeated(piles[_i].before, piles[_i].unit, 200000, piles[_i].after);
  const kiln_status st = parse(text);

  ck_assert_msg(st == (piles[_i].ok ? KILN_OK : KILN_ECOMPILE), "%s: %s %s",
                piles[_i].unit, kiln_status_name(st),
                st == KILN_OK ? "" : kiln_last_error()->message);
  free(text);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
  char *text = repeated("", "", 0, "");
  long total;

  ck_kiln_ok(parse_bytes(everything, sizeof everything - 1));
  total = memory.calls;
  ck_assert_int_gt(total, 10);
  for (long at = 0; at < 2 * total; at++) {
    kiln_status st;

    kiln__cpu_ptx_free(module);
    module = NULL;
    memory.calls = 0;
    memory.fail_at = at / 2;
    memory.fail_after = at % 2 != 0;
    st = kiln__cpu_ptx_parse(&module, &memory.alloc, everything,
                             sizeof everything - 1);
    if (st != KILN_OK) {
      ck_assert_int_eq(st, KILN_ENOMEM);
      ck_assert_ptr_null(module);
      ck_assert_int_eq(memory.live, 0);
    }
  }
  memory.fail_at = -1;
  /* The parser must also survive that the memory for error messages is
   * exhausted. */
  for (long at = 0; at < 12; at++) {
    memory.calls = 0;
    memory.fail_at = at;
    ck_assert_int_ne(parse("nothing at all"), KILN_OK);
  }
  memory.fail_at = -1;
  free(text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_ptx");
  TCase *t = kiln_test_case(
      s, "text", 0, setup, teardown,
      TESTS(debug_needs_sections_and_a_nul_may_end_it,
            operands_say_what_was_written,
            instructions_keep_guard_place_and_opcode,
            names_are_resolved_in_their_scope, registers_are_numbered,
            functions_keep_their_header,
            calls_find_their_prototypes_and_targets, initial_values_are_bytes,
            initial_addresses_are_relocations,
            mistakes_are_listed_with_their_lines, twenty_mistakes_are_shown));

  tcase_add_loop_test(t, texts_are_accepted_or_not, 0, ROWS(cases));
  tcase_add_loop_test(t, headers_are_read, 0, ROWS(headers));
  tcase_add_loop_test(t, integers_have_their_value, 0, ROWS(integers));
  tcase_add_loop_test(t, floats_have_their_value, 0, ROWS(floats));
  t = kiln_test_case(s, "hostile", 60, setup, teardown,
                     TESTS(every_truncation_is_survived,
                           random_mutations_are_survived,
                           every_allocation_may_fail));
  tcase_add_loop_test(t, piles_are_bounded, 0, ROWS(piles));
  return kiln_test_run(s);
}
