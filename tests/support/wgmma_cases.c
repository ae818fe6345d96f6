/* wgmma_cases.c -- the list of wgmma cases, and their kernels. */
#include "wgmma_cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CASES = 200, ROWS = 64, LINE = 32, GROUP = 128 };

static wgmma_case cases[MAX_CASES];
static size_t n_cases;

/* ---- The list ------------------------------------------------------------ */

static const struct type {
  const char *name; /* d.a.b */
  const char *suffix;
  matrix_format a, b, d;
  unsigned k;
  bool few; /* n is 8, 24, or a multiple of 16 */
} types[] = {
    {"f32.f16.f16", "", FORMAT_F16, FORMAT_F16, FORMAT_F32, 16, false},
    {"f16.f16.f16", "", FORMAT_F16, FORMAT_F16, FORMAT_F16, 16, false},
    {"f32.bf16.bf16", "", FORMAT_BF16, FORMAT_BF16, FORMAT_F32, 16, false},
    {"f32.tf32.tf32", "", FORMAT_TF32, FORMAT_TF32, FORMAT_F32, 8, false},
    {"f32.e4m3.e4m3", "", FORMAT_E4M3, FORMAT_E4M3, FORMAT_F32, 32, false},
    {"f32.e4m3.e5m2", "", FORMAT_E4M3, FORMAT_E5M2, FORMAT_F32, 32, false},
    {"f32.e5m2.e4m3", "", FORMAT_E5M2, FORMAT_E4M3, FORMAT_F32, 32, false},
    {"f32.e5m2.e5m2", "", FORMAT_E5M2, FORMAT_E5M2, FORMAT_F32, 32, false},
    {"f16.e4m3.e4m3", "", FORMAT_E4M3, FORMAT_E4M3, FORMAT_F16, 32, false},
    {"f16.e4m3.e5m2", "", FORMAT_E4M3, FORMAT_E5M2, FORMAT_F16, 32, false},
    {"f16.e5m2.e4m3", "", FORMAT_E5M2, FORMAT_E4M3, FORMAT_F16, 32, false},
    {"f16.e5m2.e5m2", "", FORMAT_E5M2, FORMAT_E5M2, FORMAT_F16, 32, false},
    {"s32.s8.s8", "", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 32, true},
    {"s32.s8.u8", "", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 32, true},
    {"s32.u8.s8", "", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 32, true},
    {"s32.u8.u8", "", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 32, true},
    {"satfinite.s32.s8.s8", "", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 32, true},
    {"satfinite.s32.s8.u8", "", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 32, true},
    {"satfinite.s32.u8.s8", "", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 32, true},
    {"satfinite.s32.u8.u8", "", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 32, true},
    {"s32.b1.b1", ".and.popc", FORMAT_BITS, FORMAT_BITS, FORMAT_S32, 256, true},
};

enum {
  N_TYPES = sizeof types / sizeof types[0],
  FIRST_INTEGER = 12,
  BITS = 20
};

static bool is_16_bit(const struct type *t)
{
  return t->k == 16;
}

/* Returns the bytes that a matrix of `extent` rows (A) or columns (B) occupies
 * in shared memory; see strides_of(). */
static unsigned bytes_of(const wgmma_case *c, bool mn_major, unsigned extent,
                         unsigned line)
{
  if (mn_major && c->swizzle != 0)
    return (extent * 2 + c->swizzle - 1) / c->swizzle * c->swizzle * 16;
  return extent * (c->swizzle > line ? c->swizzle : line);
}

/* Adds a case, whose variant fields are those of `form`. */
static void add(unsigned type, const wgmma_case *form)
{
  const struct type *t = &types[type];
  const bool sparse = form->select >= 0;
  wgmma_case *c = &cases[n_cases];
  matrix_case *m = &c->m;

  if (n_cases == MAX_CASES)
    abort();
  *c = *form;
  m->ptx = strstr(t->name, "s8.u8") || strstr(t->name, "u8.s8") ? 84
           : sparse                                             ? 82
                                                                : 80;
  m->sm = 90;
  m->width = 4;
  m->selector = (int)n_cases++;
  m->d = c->n * (t->d == FORMAT_F16 ? 1 : 2);
  m->in[0] = (matrix_operand){
      t->a,
      (uint16_t)(c->registers ? ROWS * LINE / GROUP
                              : bytes_of(c, c->trans_a, ROWS, LINE) / GROUP)};
  m->in[1] = (matrix_operand){
      t->b, (uint16_t)(bytes_of(c, c->trans_b, c->n, sparse ? 2 * LINE : LINE) /
                       GROUP)};
  m->in[2] = (matrix_operand){t->d, (uint16_t)m->d};
  if (sparse)
    m->in[3] =
        (matrix_operand){t->k == 8 ? FORMAT_ONE_OF_TWO : FORMAT_TWO_OF_FOUR, 4};
  snprintf(m->opcode, sizeof m->opcode,
           "wgmma.mma_async%s.sync.aligned.m64n%uk%u.%s%s", sparse ? ".sp" : "",
           c->n, t->k * (sparse ? 2 : 1), t->name, t->suffix);
}

static const wgmma_case plain = {.n = 8, .select = -1};

static void add_variants(unsigned type)
{
  wgmma_case c = plain;

  c.registers = true;
  c.n = 16;
  c.keep = type % 2 == 0;
  add(type, &c);
  c = plain;
  if (type < FIRST_INTEGER) {
    c.negate_a = type % 2 == 0;
    c.negate_b = type % 3 == 0;
  }
  c.swizzle = 32U << type % 3;
  c.n = 24;
  add(type, &c);
  for (unsigned i = 0; is_16_bit(&types[type]) && i < 8; i++) {
    c = plain;
    c.n = 32 + 16 * i;
    c.swizzle = (unsigned[]){0, 32, 64, 128}[i % 4];
    c.trans_a = i != 4;
    c.trans_b = i >= 3;
    c.registers = i == 6;
    add(type, &c);
  }
  for (int i = 0; type != BITS && i < (type < 4 ? 2 : 1); i++) {
    c = plain;
    c.select = i;
    c.registers = type % 2 != 0;
    add(type, &c);
  }
}

const wgmma_case *wgmma_cases(size_t *n)
{
  for (unsigned i = 0; n_cases < N_TYPES; i++)
    add(i, &plain);
  if (n_cases == N_TYPES) {
    for (unsigned i = 0; i < N_TYPES; i++)
      add_variants(i);
    for (unsigned i = 5; i <= 32; i++) {
      wgmma_case c = plain;

      c.n = 8 * i;
      add(i * 5 % (i % 2 == 0 ? (unsigned)N_TYPES : FIRST_INTEGER), &c);
    }
  }
  *n = n_cases;
  return cases;
}

unsigned long wgmma_tiles(const wgmma_case *t, unsigned step)
{
  static const unsigned long tiles[WGMMA_STEPS] = {64, 4096, 102400};

  return tiles[step] * 8 / t->n;
}

/* ---- Kernels ------------------------------------------------------------- */

typedef struct writer {
  char *at, *end;
} writer;

static void say(writer *w, const char *format, ...)
{
  va_list arguments;
  int n;

  va_start(arguments, format);
  n = vsnprintf(w->at, (size_t)(w->end - w->at), format, arguments);
  va_end(arguments);
  if (n < 0 || n >= w->end - w->at)
    abort();
  w->at += n;
}

static void say_list(writer *w, char prefix, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    say(w, "%s%%%c%u", i == 0 ? "{" : ", ", prefix, i);
  say(w, "}");
}

/* Returns the upper part of a descriptor: strides and swizzle mode. The chunks
 * of 16 bytes follow each other without gaps. */
static uint64_t strides_of(const wgmma_case *c, bool mn_major, unsigned extent,
                           unsigned line)
{
  const uint64_t mode = c->swizzle == 128  ? 1
                        : c->swizzle == 64 ? 2
                        : c->swizzle == 32 ? 3
                                           : 0;
  uint64_t leading = 128, stride = line * 8;

  if (c->swizzle != 0) {
    leading = mn_major ? 16 * c->swizzle : 16;
    stride = 8 * c->swizzle;
  } else if (mn_major) {
    leading = extent * 16;
    stride = 128;
  }
  return mode << 62 | stride / 16 << 32 | leading / 16 << 16;
}

/* Writes the loads or stores of the accumulators, and the loads of fragments of
 * A and of the metadata. */
static void say_registers(writer *w, const char *what, char prefix, unsigned n,
                          size_t offset)
{
  const bool load = what[0] == 'l';

  for (unsigned i = 0; i < n; i++) {
    const size_t at = offset + i * (size_t)WGMMA_THREADS * 4;

    if (load)
      say(w, "ld.global.b32 %%%c%u, [%%in+%zu];\n", prefix, i, at);
    else
      say(w, "st.global.b32 [%%out+%zu], %%%c%u;\n", at, prefix, i);
  }
}

static void say_instruction(writer *w, const wgmma_case *c, unsigned n_d)
{
  const bool narrow = c->m.in[0].format <= FORMAT_BF16;
  char opcode[112];

  matrix_spelling(c->m.opcode, opcode);
  say(w, "%s ", opcode);
  say_list(w, 'd', n_d);
  if (c->registers) {
    say(w, ", ");
    say_list(w, 'a', 4);
  } else {
    say(w, ", %%da");
  }
  say(w, ", %%db");
  if (c->select >= 0)
    say(w, ", %%m0, %d", c->select);
  say(w, ", %d", !c->keep);
  if (c->m.in[0].format != FORMAT_BITS)
    say(w, ", %d, %d", c->negate_a ? -1 : 1, c->negate_b ? -1 : 1);
  if (narrow && !c->registers)
    say(w, ", %d", c->trans_a);
  if (narrow)
    say(w, ", %d", c->trans_b);
  say(w, ";\n");
}

/* Writes the copy of A and B to shared memory, and the descriptors. */
static void say_operands(writer *w, const wgmma_case *c)
{
  const unsigned a = c->m.in[0].registers * GROUP;
  const unsigned both = a + c->m.in[1].registers * GROUP;

  say(w,
      "mov.u32 %%i, %%s;\n"
      "copy:\ncvt.u64.u32 %%x, %%i;\nadd.u64 %%x, %%x, %%tile;\n"
      "ld.global.b32 %%v, [%%x];\nmov.u32 %%base, tile;\n"
      "add.u32 %%x32, %%base, %%i;\nst.shared.b32 [%%x32], %%v;\n"
      "add.u32 %%i, %%i, 512;\nsetp.lt.u32 %%more, %%i, %u;\n"
      "@%%more bra copy;\nfence.proxy.async;\nbar.sync 0;\n"
      "shr.u32 %%base, %%base, 4;\ncvt.u64.u32 %%x, %%base;\n"
      "or.b64 %%da, %%x, 0x%llx;\nadd.u64 %%x, %%x, %u;\n"
      "or.b64 %%db, %%x, 0x%llx;\n",
      both, (unsigned long long)strides_of(c, c->trans_a, ROWS, LINE), a / 16,
      (unsigned long long)strides_of(c, c->trans_b, c->n,
                                     c->select >= 0 ? 2 * LINE : LINE));
}

void wgmma_kernel(const wgmma_case *c, char *text, size_t size)
{
  const unsigned n_d = c->m.d / 4;
  const size_t b = (size_t)c->m.in[0].registers * GROUP;
  const size_t d = b + (size_t)c->m.in[1].registers * GROUP;
  const size_t meta = d + (size_t)c->m.d * GROUP;
  writer w = {text, text + size};

  say(&w,
      ".version %u.%u\n.target sm_90a\n.address_size 64\n"
      ".shared .align 1024 .b8 tile[49152];\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %%d<128>, %%a<4>, %%m<1>, %%i, %%s, %%v, %%base, %%x32;\n"
      ".reg .b64 %%in, %%out, %%tile, %%x, %%da, %%db;\n.reg .pred %%more;\n"
      "ld.param.u64 %%tile, [in];\nld.param.u64 %%out, [out];\n"
      "mov.u32 %%i, %%ctaid.x;\nmul.wide.u32 %%x, %%i, %zu;\n"
      "add.u64 %%tile, %%tile, %%x;\nmul.wide.u32 %%x, %%i, %zu;\n"
      "add.u64 %%out, %%out, %%x;\nmov.u32 %%s, %%tid.x;\n"
      "shl.b32 %%s, %%s, 2;\ncvt.u64.u32 %%x, %%s;\n"
      "add.u64 %%in, %%tile, %%x;\nadd.u64 %%out, %%out, %%x;\n",
      c->m.ptx / 10, c->m.ptx % 10, matrix_input_bytes(&c->m),
      matrix_output_bytes(&c->m));
  say_operands(&w, c);
  say_registers(&w, "load", 'd', n_d, d);
  if (c->registers)
    say_registers(&w, "load", 'a', 4, 0);
  if (c->select >= 0)
    say_registers(&w, "load", 'm', 1, meta);
  say(&w, "wgmma.fence.sync.aligned;\n");
  say_instruction(&w, c, n_d);
  say(&w, "wgmma.commit_group.sync.aligned;\n"
          "wgmma.wait_group.sync.aligned 0;\n");
  say_registers(&w, "store", 'd', n_d, 0);
  say(&w, "ret;\n}\n");
}
