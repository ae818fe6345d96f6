/* matrix_cases.c -- the list of matrix instructions, their kernels and their
 * operands. */
#include "matrix_cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, MAX_CASES = 800 };

static matrix_case cases[MAX_CASES];
static size_t n_cases;

/* ---- The list ------------------------------------------------------------ */

static matrix_case *add(unsigned ptx, unsigned sm, unsigned d, unsigned a,
                        unsigned b, unsigned c, matrix_format ab,
                        matrix_format acc, const char *format, ...)
{
  matrix_case *t = &cases[n_cases++];
  va_list arguments;

  if (n_cases > MAX_CASES)
    abort();
  t->ptx = ptx;
  t->sm = sm;
  t->width = acc == FORMAT_F64 ? 8 : 4;
  t->d = d;
  t->in[0] = (matrix_operand){ab, (uint16_t)a};
  t->in[1] = (matrix_operand){ab, (uint16_t)b};
  t->in[2] = (matrix_operand){acc, (uint16_t)c};
  t->selector = -1;
  va_start(arguments, format);
  vsnprintf(t->opcode, sizeof t->opcode, format, arguments);
  va_end(arguments);
  return t;
}

static const char *const layouts[] = {"row", "col"};
static const char *const halves[] = {"f16", "f32"};
static const char *const fp8s[] = {"e4m3", "e5m2"};
static const matrix_format fp8_formats[] = {FORMAT_E4M3, FORMAT_E5M2};

static void add_half_mma(void)
{
  for (unsigned i = 0; i < 16; i++) {
    if (i >> 2 == 2)
      continue; /* no f16 result with an f32 accumulator */
    add(64, 70, i & 4 ? 8 : 4, 2, 2, i & 8 ? 8 : 4, FORMAT_F16,
        i & 8 ? FORMAT_F32 : FORMAT_F16,
        "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s", layouts[i & 1],
        layouts[i >> 1 & 1], halves[i >> 2 & 1], halves[i >> 3]);
  }
  for (unsigned i = 0; i < 2; i++) {
    const unsigned n = i != 0 ? 4 : 2;
    const matrix_format c = i != 0 ? FORMAT_F32 : FORMAT_F16;

    add(65, 75, n, 2, 1, n, FORMAT_F16, c,
        "mma.sync.aligned.m16n8k8.row.col.%s.f16.f16.%s", halves[i], halves[i]);
    add(70, 80, n, 4, 2, n, FORMAT_F16, c,
        "mma.sync.aligned.m16n8k16.row.col.%s.f16.f16.%s", halves[i],
        halves[i]);
  }
  for (unsigned k = 1; k <= 2; k++) {
    add(70, 80, 4, 2 * k, k, 4, FORMAT_BF16, FORMAT_F32,
        "mma.sync.aligned.m16n8k%u.row.col.f32.bf16.bf16.f32", 8 * k);
    add(70, 80, 4, 2 * k, k, 4, FORMAT_TF32, FORMAT_F32,
        "mma.sync.aligned.m16n8k%u.row.col.f32.tf32.tf32.f32", 4 * k);
  }
}

static void add_fp8_mma(const char *prefix, unsigned k, unsigned a, unsigned b,
                        unsigned ptx, bool half)
{
  for (unsigned i = 0; i < 4; i++) {
    matrix_case *t =
        add(ptx, 89, half ? 2 : 4, a, b, half ? 2 : 4, FORMAT_E4M3,
            half ? FORMAT_F16 : FORMAT_F32,
            "%s.sync.aligned.m16n8k%u.row.col.%s.%s.%s.%s", prefix, k,
            halves[!half], fp8s[i >> 1], fp8s[i & 1], halves[!half]);

    t->in[0].format = fp8_formats[i >> 1];
    t->in[1].format = fp8_formats[i & 1];
  }
}

static void add_double_mma(void)
{
  add(70, 80, 2, 1, 1, 2, FORMAT_F64, FORMAT_F64,
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64");
  for (unsigned i = 0; i < 3; i++) {
    static const char *const modes[] = {"rz", "rm", "rp"};

    add(70, 80, 2, 1, 1, 2, FORMAT_F64, FORMAT_F64,
        "mma.sync.aligned.m8n8k4.row.col.%s.f64.f64.f64.f64", modes[i]);
    add(78, 90, 4, 8, 4, 4, FORMAT_F64, FORMAT_F64,
        "mma.sync.aligned.m16n8k16.row.col.%s.f64.f64.f64.f64", modes[i]);
  }
  for (unsigned k = 4; k <= 16; k *= 2)
    add(78, 90, 4, k / 2, k / 4, 4, FORMAT_F64, FORMAT_F64,
        "mma.sync.aligned.m16n8k%u.row.col.f64.f64.f64.f64", k);
}

/* The integer instructions of one element width: 8 or 4 bits. */
static void add_integer_mma(unsigned bits)
{
  const unsigned k = 128 / bits;

  for (unsigned i = 0; i < 8; i++) {
    const char *const sat = i & 4 ? ".satfinite" : "";
    char types[32];

    snprintf(types, sizeof types, "s32.%c%u.%c%u.s32", "su"[i & 1], bits,
             "su"[i >> 1 & 1], bits);
    add(65, 75, 2, 1, 1, 2, FORMAT_BITS, FORMAT_S32,
        "mma.sync.aligned.m8n8k%u.row.col%s.%s", k, sat, types);
    add(70, 80, 4, 2, 1, 4, FORMAT_BITS, FORMAT_S32,
        "mma.sync.aligned.m16n8k%u.row.col%s.%s", k, sat, types);
    add(70, 80, 4, 4, 2, 4, FORMAT_BITS, FORMAT_S32,
        "mma.sync.aligned.m16n8k%u.row.col%s.%s", 2 * k, sat, types);
  }
}

static void add_bit_mma(void)
{
  for (unsigned i = 0; i < 2; i++) {
    const char *const op = i != 0 ? "and" : "xor";
    const unsigned sm = i != 0 ? 80 : 75, ptx = i != 0 ? 71 : 70;

    add(ptx, sm, 2, 1, 1, 2, FORMAT_BITS, FORMAT_S32,
        "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.%s.popc", op);
    add(ptx, 80, 4, 2, 1, 4, FORMAT_BITS, FORMAT_S32,
        "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.%s.popc", op);
    add(ptx, 80, 4, 4, 2, 4, FORMAT_BITS, FORMAT_S32,
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.%s.popc", op);
  }
}

/* Makes sparse cases of the last n cases, one per selector. */
static void add_selectors(matrix_case *t, int selectors, matrix_format metadata)
{
  t->in[3] = (matrix_operand){metadata, 1};
  t->selector = 0;
  for (int s = 1; s < selectors; s++) {
    if (n_cases == MAX_CASES)
      abort();
    cases[n_cases] = *t;
    cases[n_cases++].selector = s;
  }
}

#define SP "mma.sp::ordered_metadata.sync.aligned"

static void add_sparse_half(void)
{
  for (unsigned i = 0; i < 2; i++)
    for (unsigned k = 1; k <= 2; k++) {
      const unsigned n = i != 0 ? 4 : 2;

      add_selectors(add(85, 80, n, 2 * k, 2 * k, n, FORMAT_F16,
                        i != 0 ? FORMAT_F32 : FORMAT_F16,
                        SP ".m16n8k%u.row.col.%s.f16.f16.%s", 16 * k, halves[i],
                        halves[i]),
                    k == 1 ? 4 : 2, FORMAT_TWO_OF_FOUR);
    }
  for (unsigned k = 1; k <= 2; k++) {
    add_selectors(add(85, 80, 4, 2 * k, 2 * k, 4, FORMAT_BF16, FORMAT_F32,
                      SP ".m16n8k%u.row.col.f32.bf16.bf16.f32", 16 * k),
                  k == 1 ? 4 : 2, FORMAT_TWO_OF_FOUR);
    add_selectors(add(85, 80, 4, 2 * k, 2 * k, 4, FORMAT_TF32, FORMAT_F32,
                      SP ".m16n8k%u.row.col.f32.tf32.tf32.f32", 8 * k),
                  k == 1 ? 4 : 2, FORMAT_ONE_OF_TWO);
  }
}

static void add_sparse_integers(unsigned bits)
{
  for (unsigned i = 0; i < 8; i++)
    for (unsigned k = 1; k <= 2; k++)
      add_selectors(add(85, 80, 4, 2 * k, 2 * k, 4, FORMAT_BITS, FORMAT_S32,
                        SP ".m16n8k%u.row.col%s.s32.%c%u.%c%u.s32",
                        256 / bits * k, i & 4 ? ".satfinite" : "", "su"[i & 1],
                        bits, "su"[i >> 1 & 1], bits),
                    k == 1 ? 2 : 1, FORMAT_TWO_OF_FOUR);
}

static void add_sparse_fp8(void)
{
  const size_t from = n_cases;

  add_fp8_mma("mma.sp::ordered_metadata", 64, 4, 4, 85, false);
  for (size_t i = from; i < from + 4; i++)
    add_selectors(&cases[i], 1, FORMAT_TWO_OF_FOUR);
}

/* ---- wmma ---------------------------------------------------------------- */

static const unsigned shapes[][3] = {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}};

static unsigned format_bits(matrix_format f)
{
  switch (f) {
  case FORMAT_F64:
    return 64;
  case FORMAT_F16:
  case FORMAT_BF16:
    return 16;
  default:
    return 32;
  }
}

/* Adds a wmma.load or wmma.store of a rows x columns matrix. `which` is a, b, c
 * or d, and `bits` the width of an element. */
static void add_access(char which, const char *layout, const char *shape,
                       const char *type, unsigned rows, unsigned columns,
                       unsigned bits, unsigned registers, matrix_format format,
                       unsigned ptx, unsigned sm)
{
  const bool row = layout[0] == 'r';
  const unsigned stride = (row ? columns : rows) + 256 / bits;
  matrix_case *t =
      add(ptx, sm, registers, 0, 0, 0, format, format,
          "wmma.%s.%c.sync.aligned.%s.%s.global.%s",
          which == 'd' ? "store" : "load", which, layout, shape, type);

  t->kind = which == 'd' ? MATRIX_STORE : MATRIX_LOAD;
  t->width = bits == 64 ? 8 : 4;
  t->stride = stride;
  t->memory = stride * (row ? rows : columns) * bits / 8;
  t->memory = (t->memory + 127) / 128 * 128;
  t->element = format;
  if (which == 'd') {
    t->in[0] = (matrix_operand){format, (uint16_t)registers};
    t->d = 0;
  }
}

static void add_accumulator(const char *shape, const char *type, unsigned m,
                            unsigned n, unsigned registers,
                            matrix_format format, unsigned ptx, unsigned sm)
{
  for (unsigned i = 0; i < 4; i++)
    add_access("cd"[i & 1], layouts[i >> 1], shape, type, m, n,
               format_bits(format), registers, format, ptx, sm);
}

static void add_factors(const char *shape, const char *type, unsigned m,
                        unsigned n, unsigned k, unsigned bits, unsigned a,
                        unsigned b, matrix_format format, unsigned ptx,
                        unsigned sm)
{
  for (unsigned i = 0; i < 2; i++) {
    if (bits >= 8 || i == 0)
      add_access('a', layouts[i], shape, type, m, k, bits, a, format, ptx, sm);
    if (bits >= 8 || i == 1)
      add_access('b', layouts[i], shape, type, k, n, bits, b, format, ptx, sm);
  }
}

static void add_wmma_shape(const unsigned *s)
{
  const unsigned wide = s[1] / 8, high = s[0] / 8;
  char shape[24];

  snprintf(shape, sizeof shape, "m%un%uk%u", s[0], s[1], s[2]);
  add_factors(shape, "f16", s[0], s[1], 16, 16, 8, 8, FORMAT_F16, 63, 70);
  add_factors(shape, "bf16", s[0], s[1], 16, 16, 2 * high, 2 * wide,
              FORMAT_BF16, 70, 80);
  add_factors(shape, "s8", s[0], s[1], 16, 8, high, wide, FORMAT_BITS, 63, 72);
  add_factors(shape, "u8", s[0], s[1], 16, 8, high, wide, FORMAT_BITS, 63, 72);
  add_accumulator(shape, "f16", s[0], s[1], 4, FORMAT_F16, 63, 70);
  add_accumulator(shape, "f32", s[0], s[1], 8, FORMAT_F32, 63, 70);
  add_accumulator(shape, "s32", s[0], s[1], 8, FORMAT_S32, 63, 72);
  for (unsigned i = 0; i < 16; i++)
    add(63, 70, i & 4 ? 8 : 4, 8, 8, i & 8 ? 8 : 4, FORMAT_F16,
        i & 8 ? FORMAT_F32 : FORMAT_F16, "wmma.mma.sync.aligned.%s.%s.%s.%s.%s",
        layouts[i & 1], layouts[i >> 1 & 1], shape, halves[i >> 2 & 1],
        halves[i >> 3]);
  for (unsigned i = 0; i < 4; i++) {
    add(70, 80, 8, 2 * high, 2 * wide, 8, FORMAT_BF16, FORMAT_F32,
        "wmma.mma.sync.aligned.%s.%s.%s.f32.bf16.bf16.f32", layouts[i & 1],
        layouts[i >> 1], shape);
    for (unsigned j = 0; j < 4; j++)
      add(63, 72, 8, high, wide, 8, FORMAT_BITS, FORMAT_S32,
          "wmma.mma.sync.aligned.%s.%s.%s.s32.%s.%s.s32%s", layouts[i & 1],
          layouts[i >> 1], shape, j & 1 ? "u8" : "s8", j & 1 ? "u8" : "s8",
          j & 2 ? ".satfinite" : "");
  }
}

static void add_wmma_wide(void)
{
  add_factors("m16n16k8", "tf32", 16, 16, 8, 32, 4, 4, FORMAT_TF32, 70, 80);
  add_accumulator("m16n16k8", "f32", 16, 16, 8, FORMAT_F32, 70, 80);
  add_factors("m8n8k4", "f64", 8, 8, 4, 64, 1, 1, FORMAT_F64, 70, 80);
  add_accumulator("m8n8k4", "f64", 8, 8, 2, FORMAT_F64, 70, 80);
  for (unsigned i = 0; i < 4; i++) {
    add(70, 80, 8, 4, 4, 8, FORMAT_TF32, FORMAT_F32,
        "wmma.mma.sync.aligned.%s.%s.m16n16k8.f32.tf32.tf32.f32",
        layouts[i & 1], layouts[i >> 1]);
    add(70, 80, 2, 1, 1, 2, FORMAT_F64, FORMAT_F64,
        "wmma.mma.sync.aligned.%s.%s.m8n8k4.f64.f64.f64.f64", layouts[i & 1],
        layouts[i >> 1]);
  }
}

static void add_wmma_narrow(void)
{
  static const char *const types[] = {"s4", "u4"};

  for (unsigned i = 0; i < 2; i++) {
    add_factors("m8n8k32", types[i], 8, 8, 32, 4, 1, 1, FORMAT_BITS, 63, 75);
    for (unsigned j = 0; j < 2; j++)
      add(63, 75, 2, 1, 1, 2, FORMAT_BITS, FORMAT_S32,
          "wmma.mma.sync.aligned.row.col.m8n8k32.s32.%s.%s.s32%s", types[i],
          types[i], j != 0 ? ".satfinite" : "");
    add(i != 0 ? 71 : 63, i != 0 ? 80 : 75, 2, 1, 1, 2, FORMAT_BITS, FORMAT_S32,
        "wmma.mma.%s.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
        i != 0 ? "and" : "xor");
  }
  add_factors("m8n8k128", "b1", 8, 8, 128, 1, 1, 1, FORMAT_BITS, 63, 75);
  add_accumulator("m8n8k32", "s32", 8, 8, 2, FORMAT_S32, 63, 75);
  add_accumulator("m8n8k128", "s32", 8, 8, 2, FORMAT_S32, 63, 75);
}

const matrix_case *matrix_cases(size_t *n)
{
  if (n_cases == 0) {
    add_half_mma();
    add_fp8_mma("mma", 32, 4, 2, 84, false);
    add_fp8_mma("mma", 32, 4, 2, 87, true);
    add_fp8_mma("mma", 16, 2, 1, 87, false);
    add_fp8_mma("mma", 16, 2, 1, 87, true);
    add_double_mma();
    add_integer_mma(8);
    add_integer_mma(4);
    add_bit_mma();
    add_sparse_half();
    add_sparse_integers(8);
    add_sparse_integers(4);
    add_sparse_fp8();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
      add_wmma_shape(shapes[i]);
    add_wmma_wide();
    add_wmma_narrow();
  }
  *n = n_cases;
  return cases;
}

/* ---- Kernels ------------------------------------------------------------- */

static unsigned input_registers(const matrix_case *t)
{
  unsigned n = 0;

  for (unsigned i = 0; i < 4; i++)
    n += t->in[i].registers;
  return n;
}

size_t matrix_input_bytes(const matrix_case *t)
{
  return t->kind == MATRIX_LOAD ? t->memory
                                : (size_t)input_registers(t) * LANES * t->width;
}

size_t matrix_output_bytes(const matrix_case *t)
{
  return t->kind == MATRIX_STORE ? t->memory : (size_t)t->d * LANES * t->width;
}

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

static void say_list(writer *w, char prefix, unsigned from, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    say(w, "%s%%%c%u", i == 0 ? "{" : ", ", prefix, from + i);
  say(w, "}");
}

/* Loads or stores registers from `first` on; register i of the tile is at
 * offset 32 * i * width + lane * width of the address. */
static void say_registers(writer *w, const matrix_case *t, bool load,
                          char prefix, unsigned n)
{
  for (unsigned i = 0; i < n; i++) {
    const unsigned offset = i * LANES * t->width;

    if (load)
      say(w, "ld.global.b%u %%%c%u, [%%in+%u];\n", 8 * t->width, prefix, i,
          offset);
    else
      say(w, "st.global.b%u [%%out+%u], %%%c%u;\n", 8 * t->width, offset,
          prefix, i);
  }
}

void matrix_spelling(const char *opcode, char text[112])
{
  static const char sat[] = ".satfinite";
  const char *const at = strstr(opcode, ".satfinite.s32.u");

  snprintf(text, 112, "%s", opcode);
  if (at != NULL)
    snprintf(text, 112, "%.*s%s%s", (int)(at - opcode), opcode,
             at + sizeof sat - 1, sat);
}

static void say_instruction(writer *w, const matrix_case *t)
{
  unsigned from = 0;
  char opcode[112];

  matrix_spelling(t->opcode, opcode);
  say(w, "%s ", opcode);
  if (t->kind == MATRIX_LOAD) {
    say_list(w, 'd', 0, t->d);
    say(w, ", [%%base], %u;\n", t->stride);
  } else if (t->kind == MATRIX_STORE) {
    say(w, "[%%base], ");
    say_list(w, 'r', 0, t->in[0].registers);
    say(w, ", %u;\n", t->stride);
  } else {
    say_list(w, 'd', 0, t->d);
    for (unsigned i = 0; i < 3; i++) {
      say(w, ", ");
      say_list(w, 'r', from, t->in[i].registers);
      from += t->in[i].registers;
    }
    if (t->selector >= 0)
      say(w, ", %%r%u, %d", from, t->selector);
    say(w, ";\n");
  }
}

void matrix_kernel(const matrix_case *t, char *text, size_t size)
{
  writer w = {text, text + size};
  const unsigned n = t->kind == MATRIX_LOAD ? 0 : input_registers(t);

  /* A kernel for sm_70 or newer needs PTX 6.0 or newer in any case. */
  say(&w, ".version %u.%u\n.target sm_%u\n.address_size 64\n", t->ptx / 10,
      t->ptx % 10, t->sm);
  say(&w,
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b%u %%r<64>;\n.reg .b%u %%d<16>;\n.reg .b32 %%tile, %%lane;\n"
      ".reg .b64 %%in, %%out, %%base, %%step;\n",
      8 * t->width, 8 * t->width);
  say(&w,
      "ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\n"
      "mov.u32 %%tile, %%ctaid.x;\nmov.u32 %%lane, %%tid.x;\n"
      "mul.wide.u32 %%step, %%tile, %zu;\nadd.u64 %%in, %%in, %%step;\n"
      "mul.wide.u32 %%step, %%tile, %zu;\nadd.u64 %%out, %%out, %%step;\n"
      "mov.u64 %%base, %s;\n",
      matrix_input_bytes(t), matrix_output_bytes(t),
      t->kind == MATRIX_STORE ? "%out" : "%in");
  say(&w,
      "mul.wide.u32 %%step, %%lane, %u;\n"
      "add.u64 %%in, %%in, %%step;\nadd.u64 %%out, %%out, %%step;\n",
      t->width);
  say_registers(&w, t, true, 'r', n);
  say_instruction(&w, t);
  say_registers(&w, t, false, 'd', t->kind == MATRIX_STORE ? 0 : t->d);
  say(&w, "ret;\n}\n");
}

/* ---- Operands ------------------------------------------------------------ */

uint64_t matrix_hash(uint64_t seed, const void *data, size_t n)
{
  const unsigned char *bytes = data;
  uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; i < n; i += 8) {
    uint64_t word = 0;

    memcpy(&word, bytes + i, n - i < 8 ? n - i : 8);
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 32;
  }
  return h;
}

static uint64_t next(uint64_t *state)
{
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t n)
{
  return (next(state) >> 32) * n >> 32;
}

/* What the numbers of a tile are like. */
typedef enum flavour {
  NEAR_ONE,   /* exponents within a few of that of 1 */
  ANY_FINITE, /* any finite number */
  CANCELLING, /* few different magnitudes, so that sums cancel */
  TINY,       /* subnormal and the smallest normal numbers, and zeros */
  HUGE_,      /* the largest finite numbers */
  SPECIAL,    /* now and then an infinity or NaN */
  SPREAD,     /* exponents over the whole range that alignment covers */
  ZEROS,      /* many zeros of both signs */
  UNDERFLOW,  /* products near the smallest subnormal f32 or f16 */
  N_FLAVOURS
} flavour;

typedef struct layout {
  unsigned width, fraction, bias;
  bool infinite;
} layout;

static layout layout_of(matrix_format f)
{
  static const layout all[] = {
      [FORMAT_F16] = {16, 10, 15, true},   [FORMAT_BF16] = {16, 7, 127, true},
      [FORMAT_TF32] = {32, 23, 127, true}, [FORMAT_E4M3] = {8, 3, 7, false},
      [FORMAT_E5M2] = {8, 2, 15, true},    [FORMAT_F32] = {32, 23, 127, true},
      [FORMAT_F64] = {64, 52, 1023, true},
  };

  return all[f];
}

/* Returns the exponent field of a number. */
static uint64_t exponent_field(const layout *l, flavour f, bool accumulator,
                               uint64_t *state)
{
  const uint64_t top = (UINT64_C(1) << (l->width - 1 - l->fraction)) - 1;
  const uint64_t spread = l->width == 32 ? 27 : 13;

  switch (f) {
  case NEAR_ONE:
  case SPECIAL:
    return l->bias - 2 + below(state, 4);
  case CANCELLING:
    return l->bias + below(state, 2);
  case TINY:
    return below(state, 3);
  case UNDERFLOW:
    return l->width == 32 && l->fraction == 23 && accumulator ? below(state, 4)
           : l->bias == 127 ? l->bias - 78 + below(state, 8)
                            : below(state, l->bias / 2 + 2);
  case HUGE_:
    return top - 1 - below(state, 2);
  case SPREAD:
  case ZEROS:
    return spread > l->bias - 1 ? 1 + below(state, top - 1)
                                : l->bias - spread + below(state, 2 * spread);
  default:
    return below(state, top);
  }
}

static uint64_t number(matrix_format format, flavour f, uint64_t *state)
{
  const layout l = layout_of(format);
  const uint64_t top = (UINT64_C(1) << (l.width - 1 - l.fraction)) - 1;
  const uint64_t mask = (UINT64_C(1) << l.fraction) - 1;
  const uint64_t sign = (next(state) >> 63) << (l.width - 1);
  uint64_t exponent = exponent_field(&l, f, format == FORMAT_F32, state);
  uint64_t fraction = next(state) >> 3 & mask;

  if (f == CANCELLING)
    fraction = below(state, 4) == 0 ? 1 : mask + 1 - (mask + 1) / 2;
  if (f == ZEROS && below(state, 2) == 0)
    return sign;
  if ((f == TINY || f == UNDERFLOW) && below(state, 8) == 0)
    return sign;
  if (f == SPECIAL && below(state, 96) == 0)
    return sign | top << l.fraction | (next(state) & 1 ? fraction : 0);
  if (f == SPECIAL && below(state, 16) == 0)
    return sign;
  return sign | exponent << l.fraction | fraction;
}

static uint64_t integer(flavour f, bool accumulator, uint64_t *state)
{
  const uint64_t r = next(state);

  if (accumulator)
    return f == HUGE_     ? 0x7fffffff - (r & 0xffff)
           : f == TINY    ? 0x80000000 + (r & 0xffff)
           : f == SPECIAL ? (r & 0xffff)
                          : r;
  if (f == HUGE_ || f == TINY)
    return r | next(state); /* mostly -1 */
  if (f == SPECIAL)
    return (r & UINT64_C(0x8080808080808080)) | (r & 1 ? 0x7f7f7f7f : 0x777777);
  return r;
}

static uint64_t metadata(matrix_format format, uint64_t *state)
{
  static const uint8_t pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
  uint64_t word = 0;

  for (unsigned i = 0; i < 8; i++)
    word = word << 4 |
           (format == FORMAT_ONE_OF_TWO ? (next(state) & 1 ? 0x4U : 0xeU)
                                        : pairs[below(state, 6)]);
  return word;
}

/* Returns one register, or 8 bytes of a matrix, of the given format. */
static uint64_t word_of(matrix_format format, flavour f, uint64_t *state)
{
  uint64_t word = 0;
  unsigned width;

  if (format == FORMAT_BITS || format == FORMAT_S32)
    return integer(f, format == FORMAT_S32, state);
  if (format == FORMAT_TWO_OF_FOUR || format == FORMAT_ONE_OF_TWO)
    return metadata(format, state);
  width = layout_of(format).width;
  for (unsigned at = 0; at < 64; at += width)
    word |= number(format, f, state) << at;
  return word;
}

void matrix_fill(const matrix_case *t, uint64_t tile, void *input)
{
  uint64_t state = matrix_hash(tile, t->opcode, strlen(t->opcode)) +
                   (uint64_t)(t->selector + 1);
  const flavour f = (flavour)(tile % N_FLAVOURS);
  unsigned char *at = input;

  if (t->kind == MATRIX_LOAD) {
    for (unsigned i = 0; i < t->memory; i += 8) {
      const uint64_t word = next(&state);

      memcpy(at + i, &word, 8);
    }
    return;
  }
  for (unsigned o = 0; o < 4; o++)
    for (unsigned i = 0; i < t->in[o].registers * (unsigned)LANES; i++) {
      const uint64_t word = word_of(t->in[o].format, f, &state);

      memcpy(at, &word, t->width);
      at += t->width;
    }
}
