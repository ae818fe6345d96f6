/* wgmma_test.c -- tests the matrix instructions of a warpgroup: shapes, types,
 * layouts in shared memory, fragments in registers, and invalid operands.
 *
 * The matrices contain small integers, so every type computes exact results and
 * the reference needs no rounding. matrix_sums_test.c tests the rounding. */
#include "cpu_ptx.h"

#include "cpu/watch/watch.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 128, MOST_N = 256, TILE = 64 * 1024, MOST_K = 256 };

typedef enum format {
  F16,
  BF16,
  TF32,
  E4M3,
  E5M2,
  S8,
  U8,
  B1,
  F32,
  S32
} format;

static const struct {
  const char *name;
  unsigned bits, exponent, fraction;
  int bias;
} formats[] = {
    [F16] = {"f16", 16, 5, 10, 15},    [BF16] = {"bf16", 16, 8, 7, 127},
    [TF32] = {"tf32", 32, 8, 23, 127}, [E4M3] = {"e4m3", 8, 4, 3, 7},
    [E5M2] = {"e5m2", 8, 5, 2, 15},    [S8] = {"s8", 8, 0, 0, 0},
    [U8] = {"u8", 8, 0, 0, 0},         [B1] = {"b1", 1, 0, 0, 0},
    [F32] = {"f32", 32, 8, 23, 127},   [S32] = {"s32", 32, 0, 0, 0}};

/* Encodes a small integer that the format can represent. */
static uint32_t encode(format f, int value)
{
  const unsigned fraction = formats[f].fraction;
  uint32_t size = (uint32_t)(value < 0 ? -value : value), e = 0;

  if (formats[f].exponent == 0)
    return (uint32_t)value & (UINT32_MAX >> (32 - formats[f].bits));
  if (value == 0)
    return 0;
  while (size >> (e + 1) != 0)
    e++;
  size = fraction >= e ? size << (fraction - e) : size >> (e - fraction);
  size += (uint32_t)((int)e + formats[f].bias - 1) << fraction;
  return size | (value < 0 ? UINT32_C(1) << (formats[f].bits - 1) : 0);
}

/* ---- The cases ----------------------------------------------------------- */

typedef struct shape {
  format d, a, b;
  unsigned n;
  unsigned swizzle;              /* bytes, or 0 */
  bool trans_a, trans_b;         /* MN-major */
  bool registers;                /* A is in registers */
  bool negate_a, negate_b, keep; /* keep: scale-d is false */
} shape;

static unsigned k_of(const shape *s)
{
  return 256 / formats[s->a].bits;
}

static bool narrow(format f)
{
  return f == F16 || f == BF16;
}

/* ---- Layouts, written down separately from those of the CPU device ------- */

/* Strides between blocks of eight rows, and between blocks along the chunks.
 * They leave gaps, so that exchanged strides are found. */
typedef struct strides {
  unsigned leading, stride;
} strides;

/* Returns the byte offset of element (i, l) in a matrix whose l runs along k. */
static unsigned offset_of(const shape *s, bool mn_major, strides by, unsigned i,
                          unsigned l)
{
  const unsigned bits = formats[s->a].bits;
  const unsigned along = (mn_major ? i : l) * bits / 8; /* in bytes */
  const unsigned across = mn_major ? l : i;
  unsigned at;

  if (s->swizzle == 0) {
    at = mn_major ? along / 16 * by.stride + across / 8 * by.leading
                  : along / 16 * by.leading + across / 8 * by.stride;
    return at + across % 8 * 16 + along % 16;
  }
  at = along / s->swizzle * by.leading + across / 8 * by.stride +
       across % 8 * s->swizzle + along % s->swizzle;
  for (unsigned bit = 4; 1u << bit < s->swizzle; bit++)
    at ^= (at >> (bit + 3) & 1) << bit;
  return at;
}

static uint64_t descriptor_of(const shape *s, strides by, unsigned start)
{
  const uint64_t mode = s->swizzle == 128  ? 1
                        : s->swizzle == 64 ? 2
                        : s->swizzle == 32 ? 3
                                           : 0;

  return mode << 62 | (uint64_t)(by.stride / 16) << 32 | by.leading / 16 << 16 |
         start / 16;
}

static strides strides_of(const shape *s, bool mn_major)
{
  if (s->swizzle == 0)
    return mn_major ? (strides){.leading = 144, .stride = 400}
                    : (strides){.leading = 144, .stride = 304};
  return mn_major ? (strides){.leading = 8192, .stride = 16 * s->swizzle}
                  : (strides){.leading = 16, .stride = 8 * s->swizzle + 1024};
}

/* ---- The kernel ---------------------------------------------------------- */

/* Writes a kernel that copies `tile` to shared memory, loads the registers of D
 * and A of each thread, executes one wgmma, and stores D. */
static void write_kernel(kiln__buf *t, const shape *s)
{
  const unsigned n_d = s->n / (s->d == F16 ? 4 : 2);

  kiln__buf_text(t, ".version 8.6\n.target sm_90a\n.address_size 64\n"
                    ".extern .shared .align 1024 .b8 tile[];\n"
                    ".visible .entry k(.param .u64 t, .param .u64 d, "
                    ".param .u64 a, .param .u64 da, .param .u64 db, "
                    ".param .u32 scale)\n{\n"
                    ".reg .b32 %d<128>, %a<4>, %s, %t, %v, %i;\n"
                    ".reg .b64 %p, %o, %x, %da, %db;\n.reg .pred %q, %more;\n"
                    "ld.param.u64 %p, [t];\nmov.u32 %t, %tid.x;\n"
                    "ld.param.u64 %da, [da];\nld.param.u64 %db, [db];\n"
                    "shl.b32 %i, %t, 2;\n"
                    "copy:\ncvt.u64.u32 %x, %i;\nadd.u64 %x, %x, %p;\n"
                    "ld.global.b32 %v, [%x];\nmov.u32 %s, tile;\n"
                    "add.u32 %s, %s, %i;\nst.shared.b32 [%s], %v;\n"
                    "add.u32 %i, %i, 512;\nsetp.lt.u32 %more, %i, 131072;\n"
                    "@%more bra copy;\n"
                    "fence.proxy.async;\nbar.sync 0;\n"
                    "ld.param.u32 %v, [scale];\nsetp.ne.u32 %q, %v, 0;\n"
                    "ld.param.u64 %o, [d];\nmul.wide.u32 %x, %t, 4;\n"
                    "add.u64 %o, %o, %x;\n"
                    "ld.param.u64 %p, [a];\nadd.u64 %p, %p, %x;\n");
  for (unsigned i = 0; i < n_d; i++)
    kiln__buf_format(t, "ld.global.b32 %%d%u, [%%o+%u];\n", i, i * THREADS * 4);
  for (unsigned i = 0; i < 4; i++)
    kiln__buf_format(t, "ld.global.b32 %%a%u, [%%p+%u];\n", i, i * THREADS * 4);
  kiln__buf_format(t,
                   "wgmma.fence.sync.aligned;\n"
                   "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s%s {",
                   s->n, k_of(s), formats[s->d].name, formats[s->a].name,
                   formats[s->b].name, s->a == B1 ? ".and.popc" : "");
  for (unsigned i = 0; i < n_d; i++)
    kiln__buf_format(t, "%s%%d%u", i == 0 ? "" : ", ", i);
  kiln__buf_format(t, "}, %s, %%db, %%q",
                   s->registers ? "{%a0, %a1, %a2, %a3}" : "%da");
  if (s->d != S32)
    kiln__buf_format(t, ", %d, %d", s->negate_a ? -1 : 1, s->negate_b ? -1 : 1);
  if (narrow(s->a) && !s->registers)
    kiln__buf_format(t, ", %d", s->trans_a);
  if (narrow(s->a))
    kiln__buf_format(t, ", %d", s->trans_b);
  kiln__buf_text(t, ";\nwgmma.commit_group.sync.aligned;\n"
                    "wgmma.wait_group.sync.aligned 0;\n");
  for (unsigned i = 0; i < n_d; i++)
    kiln__buf_format(t, "st.global.b32 [%%o+%u], %%d%u;\n", i * THREADS * 4, i);
  kiln__buf_text(t, "ret;\n}\n");
}

/* ---- Operands and results ------------------------------------------------ */

typedef struct operands {
  int a[64][MOST_K], b[MOST_N][MOST_K], c[64][MOST_N];
  uint8_t tile[2 * TILE];
  uint32_t d[128][THREADS], registers[4][THREADS];
} operands;

static void put(uint8_t *at, format f, unsigned bit, int value)
{
  const uint32_t bits = encode(f, value);

  if (f == B1)
    *at = (uint8_t)(*at | (unsigned)(value & 1) << bit);
  else
    memcpy(at, &bits, formats[f].bits / 8);
}

static int small(uint64_t *random, format f)
{
  const int x = (int)(test_random(random) >> 40) % 5;

  return f == B1 ? x & 1 : f == U8 ? x : x - 2;
}

/* Sets the part of a 32-bit register that holds element (row, column) of D. */
static uint32_t *place_of_d(operands *o, const shape *s, unsigned row,
                            unsigned column, unsigned *shift)
{
  const unsigned thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  const unsigned high = row % 16 / 8;

  *shift = s->d == F16 ? column % 2 * 16 : 0;
  return s->d == F16 ? &o->d[column / 8 * 2 + high][thread]
                     : &o->d[column / 8 * 4 + high * 2 + column % 2][thread];
}

static void make_operands(operands *o, const shape *s, uint64_t *random)
{
  const strides by_a = strides_of(s, s->trans_a),
                by_b = strides_of(s, s->trans_b);
  const unsigned bits = formats[s->a].bits;

  memset(o, 0, sizeof *o);
  for (unsigned l = 0; l < k_of(s); l++) {
    for (unsigned i = 0; i < 64; i++) {
      const unsigned byte = l * bits / 8;
      const unsigned reg = i % 16 / 8 + byte / 16 * 2;
      const unsigned thread = i / 16 * 32 + i % 8 * 4 + byte % 16 / 4;

      o->a[i][l] = small(random, s->a);
      put(o->tile + offset_of(s, s->trans_a, by_a, i, l), s->a, l % 8,
          o->a[i][l]);
      put((uint8_t *)&o->registers[reg][thread] + byte % 4, s->a, l % 8,
          o->a[i][l]);
    }
    for (unsigned j = 0; j < s->n; j++) {
      o->b[j][l] = small(random, s->b);
      put(o->tile + TILE + offset_of(s, s->trans_b, by_b, j, l), s->b, l % 8,
          o->b[j][l]);
    }
  }
  for (unsigned i = 0; i < 64; i++) {
    for (unsigned j = 0; j < s->n; j++) {
      unsigned shift;
      uint32_t *const at = place_of_d(o, s, i, j, &shift);

      o->c[i][j] = small(random, S8);
      *at |= encode(s->d, o->c[i][j]) << shift;
    }
  }
}

static int product(const operands *o, const shape *s, unsigned i, unsigned j)
{
  int sum = 0;

  for (unsigned l = 0; l < k_of(s); l++)
    sum += o->a[i][l] * o->b[j][l];
  if (s->negate_a != s->negate_b)
    sum = -sum;
  return sum + (s->keep ? 0 : o->c[i][j]);
}

static void check(operands *o, const shape *s, const uint32_t *got)
{
  memcpy(o->d, got, sizeof o->d[0] * (s->n / (s->d == F16 ? 4 : 2)));
  for (unsigned i = 0; i < 64; i++) {
    for (unsigned j = 0; j < s->n; j++) {
      unsigned shift;
      const uint32_t *const at = place_of_d(o, s, i, j, &shift);
      const uint32_t bits = *at >> shift & (s->d == F16 ? 0xffff : UINT32_MAX);
      const uint32_t want = encode(s->d, product(o, s, i, j));

      ck_assert_msg(bits == want,
                    "%s.%s.%s n %u swizzle %u trans %d %d: element (%u,%u) is "
                    "%x, want %x",
                    formats[s->d].name, formats[s->a].name, formats[s->b].name,
                    s->n, s->swizzle, s->trans_a, s->trans_b, i, j, bits, want);
    }
  }
}

static void run_shape(const shape *s, uint64_t *random)
{
  static operands o;
  kiln_allocator a = {0};
  kiln__buf text;
  cpu_ptx p;
  uint64_t tile, d, registers;

  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  write_kernel(&text, s);
  make_operands(&o, s, random);
  cpu_ptx_load(&p, text.data);
  tile = cpu_ptx_buffer(&p, o.tile, sizeof o.tile);
  d = cpu_ptx_buffer(&p, o.d, sizeof o.d);
  registers = cpu_ptx_buffer(&p, o.registers, sizeof o.registers);
  p.launch.block_dim[0] = THREADS;
  p.launch.dynamic_shared = 2 * TILE;
  cpu_ptx_ok(&p, "k",
             (uint64_t[]){tile, d, registers,
                          descriptor_of(s, strides_of(s, s->trans_a), 0),
                          descriptor_of(s, strides_of(s, s->trans_b), TILE),
                          !s->keep});
  check(&o, s, cpu_ptx_at(&p, d, sizeof o.d));
  cpu_ptx_free(&p);
  kiln__buf_free(&text);
}

/* ---- Tests --------------------------------------------------------------- */

START_TEST(types_multiply)
{
  static const format triples[][3] = {
      {F32, F16, F16},   {F16, F16, F16},   {F32, BF16, BF16},
      {F32, TF32, TF32}, {F32, E4M3, E4M3}, {F16, E5M2, E4M3},
      {F32, E4M3, E5M2}, {F16, E5M2, E5M2}, {S32, S8, S8},
      {S32, U8, S8},     {S32, S8, U8},     {S32, U8, U8},
      {S32, B1, B1}};
  uint64_t random = 7;

  for (size_t i = 0; i < sizeof triples / sizeof *triples; i++) {
    for (int registers = 0; registers < 2; registers++) {
      const shape s = {.d = triples[i][0],
                       .a = triples[i][1],
                       .b = triples[i][2],
                       .n = i % 2 == 0 ? 24 : 8,
                       .registers = registers != 0};

      run_shape(&s, &random);
    }
  }
}
END_TEST

START_TEST(every_width)
{
  uint64_t random = 8;

  for (unsigned n = 8; n <= MOST_N; n += test_rounds(7) > 1 ? 8 : 56) {
    run_shape(&(shape){.d = F32, .a = F16, .b = F16, .n = n}, &random);
    run_shape(&(shape){.d = F16, .a = E4M3, .b = E4M3, .n = n}, &random);
  }
  run_shape(&(shape){.d = S32, .a = S8, .b = S8, .n = MOST_N}, &random);
}
END_TEST

START_TEST(layouts)
{
  static const unsigned swizzles[] = {0, 32, 64, 128};
  uint64_t random = 9;

  for (unsigned i = 0; i < 16; i++) {
    const shape s = {.d = F32,
                     .a = BF16,
                     .b = BF16,
                     .n = 80,
                     .swizzle = swizzles[i % 4],
                     .trans_a = (i / 4 & 1) != 0,
                     .trans_b = (i / 8 & 1) != 0};

    run_shape(&s, &random);
  }
  for (unsigned i = 1; i < 4; i++) {
    run_shape(
        &(shape){
            .d = F32, .a = TF32, .b = TF32, .n = 40, .swizzle = swizzles[i]},
        &random);
    run_shape(&(shape){.d = S32,
                       .a = U8,
                       .b = S8,
                       .n = 48,
                       .swizzle = swizzles[i],
                       .registers = i == 2},
              &random);
  }
}
END_TEST

START_TEST(signs_and_scales)
{
  uint64_t random = 10;

  for (unsigned i = 0; i < 8; i++) {
    const shape s = {.d = i < 4 ? F32 : F16,
                     .a = i % 2 == 0 ? F16 : E5M2,
                     .b = i % 2 == 0 ? F16 : E5M2,
                     .n = 16,
                     .registers = i == 6,
                     .negate_a = (i & 1) != 0,
                     .negate_b = (i & 2) != 0,
                     .keep = i >= 5};

    run_shape(&s, &random);
  }
}
END_TEST

/* A kernel with one wgmma whose operands come from its parameters. */
#define ONE_WGMMA                                                              \
  ".version 8.0\n.target sm_90a\n.address_size 64\n"                           \
  ".shared .align 128 .b8 tile[4096];\n"                                       \
  ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 last)\n{\n"     \
  ".reg .f32 %d<4>;\n.reg .b64 %a, %b, %l;\n.reg .b32 %t, %n;\n"               \
  ".reg .pred %p;\n"                                                           \
  "ld.param.u64 %a, [a];\nld.param.u64 %b, [b];\nld.param.u32 %n, [last];\n"   \
  "mov.u32 %t, tile;\nmov.u32 %t, %tid.x;\nsetp.gt.u32 %p, %t, %n;\n@%p "      \
  "ret;\n"                                                                     \
  "mov.f32 %d0, 0f00000000;\nmov.f32 %d1, %d0;\nmov.f32 %d2, %d0;\n"           \
  "mov.f32 %d3, %d0;\n"                                                        \
  "wgmma.fence.sync.aligned;\n"                                                \
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0,%d1,%d2,%d3}, "      \
  "%a, %b, 0, 1, 1, 0, 0;\n"                                                   \
  "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"       \
  "ret;\n}\n"

START_TEST(invalid_uses_fault)
{
  const uint64_t good = UINT64_C(16) << 32 | 8 << 16;
  cpu_ptx p;

  cpu_ptx_load(&p, ONE_WGMMA);
  p.launch.block_dim[0] = THREADS;
  cpu_ptx_ok(&p, "k", (uint64_t[]){good, good + 128, 127});
  /* The last chunk of B ends behind shared memory. */
  cpu_ptx_fails(&p, "k", (uint64_t[]){good, good + 256, 127},
                KILN__FAULT_ADDRESS, (const char *const[]){"shared", NULL});
  cpu_ptx_fails(&p, "k", (uint64_t[]){good + 256, good, 127},
                KILN__FAULT_ADDRESS, (const char *const[]){"shared", NULL});
  cpu_ptx_fails(&p, "k", (uint64_t[]){good, good, 120}, KILN__FAULT_INSTRUCTION,
                (const char *const[]){"some threads", NULL});
  p.launch.block_dim[0] = 96;
  cpu_ptx_fails(&p, "k", (uint64_t[]){good, good, 127}, KILN__FAULT_INSTRUCTION,
                (const char *const[]){"128", NULL});
  cpu_ptx_free(&p);
}
END_TEST

/* ---- Order --------------------------------------------------------------- */

/* The statements of a kernel that is checked. D, E: accumulators. */
#define FENCE "wgmma.fence.sync.aligned;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";\n"
#define MMA "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
#define D "{%d0,%d1,%d2,%d3}, "
#define E "{%e0,%e1,%e2,%e3}, "
#define A "{%a0,%a1,%a2,%a3}, "
#define FROM_MEMORY(d) MMA d "%m, %m, %on, 1, 1, 0, 0;\n"
#define FROM_REGISTERS(d) MMA d A "%m, %on, 1, 1, 0;\n"
#define COPY(to, from)                                                         \
  "mov.f32 %" to "0, %" from "0;\nmov.f32 %" to "1, %" from "1;\n"             \
  "mov.f32 %" to "2, %" from "2;\nmov.f32 %" to "3, %" from "3;\n"

#define OTHER_SHAPE                                                            \
  "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 " D                      \
  "%m, %m, %on, 1, 1, 0, 0;\n"
#define OTHER_DESCRIPTORS                                                      \
  "shr.u32 %u, %u, 5;\ncvt.u64.u32 %n, %u;\nadd.u64 %n, %n, %m;\n"

static const struct order {
  const char *body;
  const char *finding; /* a part of it; NULL if the kernel is correct */
} orders[] = {
    {FENCE FROM_MEMORY(D) COMMIT WAIT(0) "add.f32 %d1, %d1, %d1;\n", NULL},
    {"add.f32 %d1, %d1, %d1;\n" FENCE FROM_MEMORY(D) FROM_MEMORY(D)
         COMMIT FENCE FROM_MEMORY(D) COMMIT WAIT(0),
     NULL},
    {FENCE FROM_MEMORY(D) COMMIT FROM_MEMORY(E) COMMIT WAIT(
         1) "add.f32 %f, %d1, %d1;\n" WAIT(0) "add.f32 %f, %e1, %e1;\n",
     NULL},
    {FENCE FROM_REGISTERS(D) COMMIT "add.u32 %u, %a1, %a1;\n" WAIT(
         0) "add.u32 %a1, %a1, %a1;\n" FENCE FROM_REGISTERS(D) COMMIT WAIT(0),
     NULL},
    {FENCE FROM_MEMORY(D) COMMIT COPY("e", "d") FROM_MEMORY(E)
         COMMIT COPY("d", "e") WAIT(0) "add.f32 %f, %d1, %d1;\n",
     NULL},
    {"setp.lt.u32 %some, %u, 256;\n@!%some bra end;\n" FENCE FROM_MEMORY(D)
         COMMIT WAIT(0) "end:\n",
     NULL},
    {FROM_MEMORY(D) COMMIT WAIT(0), "without a wgmma.fence"},
    {FENCE FROM_MEMORY(D) COMMIT "add.f32 %f, %d1, %d1;\n" WAIT(0),
     "reads an accumulator"},
    {FENCE FROM_MEMORY(D) "add.f32 %f, %d1, %d1;\n" COMMIT WAIT(0),
     "reads an accumulator"},
    {FENCE FROM_MEMORY(D) WAIT(0) "add.f32 %f, %d1, %d1;\n" COMMIT,
     "reads an accumulator"},
    {FENCE FROM_MEMORY(D) COMMIT FROM_MEMORY(E)
         COMMIT WAIT(1) "add.f32 %f, %e1, %e1;\n" WAIT(0),
     "reads an accumulator"},
    {FENCE FROM_MEMORY(D) COMMIT "add.f32 %d2, %f, %f;\n" WAIT(0),
     "writes an accumulator"},
    {FENCE FROM_MEMORY(D)
         COMMIT COPY("e", "d") "add.f32 %f, %e0, %e0;\n" WAIT(0),
     "reads an accumulator"},
    {FENCE FROM_REGISTERS(D) COMMIT "add.u32 %a1, %u, %u;\n" WAIT(0),
     "reads as A"},
    {FENCE "add.u32 %a1, %u, %u;\n" FROM_REGISTERS(D) COMMIT WAIT(0),
     "after the last wgmma.fence"},
    {FENCE FROM_MEMORY(D) COMMIT WAIT(0) "add.f32 %d2, %f, %f;\n" FROM_MEMORY(D)
         COMMIT WAIT(0),
     "after the last wgmma.fence"},
    {FENCE FROM_MEMORY(D) OTHER_SHAPE COMMIT WAIT(0), "another role or shape"},
    {"setp.lt.u32 %some, %u, 96;\n@!%some bra end;\n" FENCE FROM_MEMORY(D)
         COMMIT WAIT(0) "end:\n",
     "another warp"},
    {OTHER_DESCRIPTORS FENCE MMA D "%m, %n, %on, 1, 1, 0, 0;\n" COMMIT WAIT(0),
     "another warp"}};

/* Threads store to the matrices, which the wgmma of all warps read. */
#define STORE "st.shared.b32 [%w], %u;\n"
#define PROXY "fence.proxy.async;\n"
#define MEET "bar.sync 0;\n"

static const struct order races[] = {
    {STORE PROXY MEET FENCE FROM_MEMORY(D) COMMIT WAIT(0) MEET STORE, NULL},
    {STORE PROXY MEET FENCE FROM_MEMORY(D) COMMIT FROM_MEMORY(E) COMMIT WAIT(0)
         MEET STORE PROXY MEET FROM_MEMORY(D) COMMIT WAIT(0),
     NULL},
    {STORE MEET FENCE FROM_MEMORY(D) COMMIT WAIT(0), "fence.proxy.async"},
    {STORE PROXY FENCE FROM_MEMORY(D) COMMIT WAIT(0), "race"},
    {STORE PROXY MEET FENCE FROM_MEMORY(D) COMMIT MEET STORE WAIT(0), "race"},
    /* The wait of one warp holds for the warpgroup. */
    {STORE PROXY MEET FENCE FROM_MEMORY(D) COMMIT WAIT(0) STORE, NULL},
    {STORE PROXY MEET FENCE FROM_MEMORY(D) COMMIT FROM_MEMORY(E) COMMIT WAIT(1)
         MEET STORE WAIT(0),
     "race"}};

typedef struct found {
  unsigned n;
  char text[4000];
} found;

static void keep_finding(void *user, const kiln_cpu_finding *f)
{
  found *const all = user;

  all->n++;
  snprintf(all->text, sizeof all->text, "%s: %s", f->kind, f->text);
}

static void write_ordered(kiln__buf *t, const char *body)
{
  kiln__buf_format(
      t, ".version 8.0\n.target sm_90a\n.address_size 64\n"
         ".shared .align 128 .b8 tile[8192];\n"
         ".visible .entry k()\n{\n.reg .b32 %%d<4>;\n.reg .f32 %%e<4>, %%f;\n"
         ".reg .b32 %%a<4>;\n.reg .u32 %%u, %%s, %%w;\n.reg .b64 %%m, %%n;\n"
         ".reg .pred %%on, %%some;\n"
         "mov.u32 %%s, tile;\nmov.u32 %%u, %%tid.x;\nsetp.eq.u32 %%on, 0, 0;\n"
         "mad.lo.u32 %%w, %%u, 4, %%s;\n"
         "mov.b64 %%m, 0x1000080000;\nmov.f32 %%f, 0f00000000;\n");
  for (unsigned i = 0; i < 4; i++)
    kiln__buf_format(t,
                     "mov.f32 %%d%u, 0f00000000;\nmov.f32 %%e%u, 0f00000000;\n"
                     "mov.b32 %%a%u, 0;\n",
                     i, i, i);
  kiln__buf_format(t, "%sret;\n}\n", body);
}

/* Runs a kernel under one check, and compares the findings. */
static void check_order(const struct order *o, unsigned checks)
{
  kiln_allocator a = {0};
  kiln__buf text;
  found all = {0};
  cpu_ptx p;

  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  write_ordered(&text, o->body);
  cpu_ptx_load(&p, text.data);
  p.launch.block_dim[0] = THREADS;
  ck_kiln_ok(kiln__cpu_watch_create(&p.launch.watch, &p.memory_of.alloc, checks,
                                    false, p.program,
                                    kiln__cpu_program_entry(p.program, "k")));
  cpu_ptx_ok(&p, "k", NULL);
  kiln__cpu_watch_findings(p.launch.watch, keep_finding, &all);
  kiln__cpu_watch_free(p.launch.watch);
  if (o->finding == NULL)
    ck_assert_msg(all.n == 0, "%s", all.text);
  else
    ck_assert_msg(all.n > 0 && strstr(all.text, o->finding) != NULL,
                  "no \"%s\" in: %s", o->finding, all.text);
  cpu_ptx_free(&p);
  kiln__buf_free(&text);
}

START_TEST(order_is_checked)
{
  check_order(&orders[_i], KILN_CPU_CHECK_SYNC);
}
END_TEST

START_TEST(races_are_found)
{
  check_order(&races[_i], KILN_CPU_CHECK_RACE);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_wgmma");
  TCase *t;

  kiln_test_case(s, "wgmma", 0, NULL, NULL,
                 TESTS(types_multiply, every_width, layouts, signs_and_scales,
                       invalid_uses_fault));
  t = kiln_test_case(s, "order", 0, NULL, NULL, TESTS(NULL));
  tcase_add_loop_test(t, order_is_checked, 0, ROWS(orders));
  tcase_add_loop_test(t, races_are_found, 0, ROWS(races));
  return kiln_test_run(s);
}
