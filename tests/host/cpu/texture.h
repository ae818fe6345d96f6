/* texture.h -- helpers for the tests of textures and surfaces: kernels that
 * execute one texture or surface instruction on random texels. */
#ifndef KILN_TEST_CPU_TEXTURE_H
#define KILN_TEST_CPU_TEXTURE_H

#include "cpu_ptx.h"

#include "cpu/memory/texture_handles.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 96, CUBE = 6 };

static cpu_ptx cpu;
static kiln__cpu_textures *table;
static uint64_t seed;
/* The memory of the texels of a test. unload() frees it. */
static void *texel_data[64];
static unsigned n_texel_data;

/* ---- Kernels ------------------------------------------------------------- */

/* Loads a kernel in which every thread executes `body`. The registers c0 to c3
 * contain the coordinates, and f0 to f3 contain them as floats. The registers
 * x0 to x3 contain four more operands, and g0 to g3 contain them as floats. The
 * register h contains the handle. The kernel stores r0 to r3 as results. */
static void load_kernel(const char *globals, const char *body, ...)
    KILN_PRINTF(2, 3);

static void load_kernel(const char *globals, const char *body, ...)
{
  char statements[800], text[4000];
  va_list args;

  va_start(args, body);
  vsnprintf(statements, sizeof statements, body, args);
  va_end(args);
  snprintf(
      text, sizeof text,
      "%s\n.visible .entry k(.param .u64 handle, .param .u64 in, .param .u64 "
      "out)\n{\n.reg .b16 s<8>; .reg .b32 c<4>, x<4>, r<4>, t; .reg .f32 f<4>, "
      "g<4>; .reg .b64 h, i, o, w, d<4>;\n"
      "ld.param.u64 h, [handle]; ld.param.u64 i, [in]; ld.param.u64 o, [out];\n"
      "mov.u32 t, %%tid.x; mul.wide.u32 w, t, 32; add.u64 i, i, w;\n"
      "ld.global.u32 c0, [i]; ld.global.u32 c1, [i+4];\n"
      "ld.global.u32 c2, [i+8]; ld.global.u32 c3, [i+12];\n"
      "ld.global.u32 x0, [i+16]; ld.global.u32 x1, [i+20];\n"
      "ld.global.u32 x2, [i+24]; ld.global.u32 x3, [i+28];\n"
      "mov.b32 f0, c0; mov.b32 f1, c1; mov.b32 f2, c2; mov.b32 f3, c3;\n"
      "mov.b32 g0, x0; mov.b32 g1, x1; mov.b32 g2, x2; mov.b32 g3, x3;\n"
      "mov.u32 r0, 0; mov.u32 r1, 0; mov.u32 r2, 0; mov.u32 r3, 0;\n"
      "%s\nmul.wide.u32 w, t, 16; add.u64 o, o, w;\n"
      "st.global.u32 [o], r0; st.global.u32 [o+4], r1;\n"
      "st.global.u32 [o+8], r2; st.global.u32 [o+12], r3; ret;\n}\n",
      globals, statements);
  cpu_ptx_load(&cpu, text);
  ck_kiln_ok(kiln__cpu_textures_create(&table, &cpu.memory_of.alloc));
  cpu.launch.textures = table;
  cpu.launch.block_dim[0] = THREADS;
  seed = 88172645463325252u;
}

/* The teardown of a test. A test also calls it between two kernels. */
static inline void unload(void)
{
  while (n_texel_data > 0)
    free(texel_data[--n_texel_data]);
  if (table == NULL)
    return;
  kiln__cpu_textures_free(table);
  table = NULL;
  cpu_ptx_free(&cpu);
}

typedef struct request {
  uint32_t c[4], x[4];
} request;

static inline uint32_t bits_of(float f)
{
  uint32_t bits;

  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits)
{
  float f;

  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline const uint32_t (*run(uint64_t handle, const request *requests))[4]
{
  static uint32_t results[THREADS][4];
  const uint64_t in =
      cpu_ptx_buffer(&cpu, requests, THREADS * sizeof *requests);
  const uint64_t out = cpu_ptx_buffer(&cpu, NULL, sizeof results);

  cpu_ptx_ok(&cpu, "k", (uint64_t[]){handle, in, out});
  memcpy(results, cpu_ptx_at(&cpu, out, sizeof results), sizeof results);
  ck_assert(kiln__cpu_memory_remove(cpu.memory, in));
  ck_assert(kiln__cpu_memory_remove(cpu.memory, out));
  return (const uint32_t(*)[4])results;
}

static inline void run_fails(uint64_t handle, const request *requests,
                             kiln__cpu_fault_kind kind)
{
  static const char *const none[] = {NULL};
  const uint64_t in =
      cpu_ptx_buffer(&cpu, requests, THREADS * sizeof *requests);
  const uint64_t out = cpu_ptx_buffer(&cpu, NULL, THREADS * 16);

  cpu_ptx_fails(&cpu, "k", (uint64_t[]){handle, in, out}, kind, none);
  ck_assert(kiln__cpu_memory_remove(cpu.memory, in));
  ck_assert(kiln__cpu_memory_remove(cpu.memory, out));
}

/* ---- Texels -------------------------------------------------------------- */

static inline uint8_t channel_size(kiln__cpu_texel texel)
{
  static const uint8_t sizes[] = {1, 2, 4, 1, 2, 4, 2, 4};

  return sizes[texel];
}

/* Creates random texels. Float texels are finite. There are gaps between rows
 * and between planes. */
static inline kiln__cpu_texels make_texels(kiln__cpu_texel texel, int channels,
                                           uint32_t width, uint32_t height,
                                           uint32_t depth, uint32_t layers)
{
  const uint32_t rows = height == 0 ? 1 : height;
  const uint32_t planes = depth > layers ? depth : layers > 0 ? layers : 1;
  kiln__cpu_texels t = {.width = width,
                        .height = height,
                        .depth = depth,
                        .layers = layers,
                        .texel = texel,
                        .channels = (uint8_t)channels};
  size_t size;

  t.texel_bytes = (uint8_t)(channels * channel_size(texel));
  t.row_bytes = (size_t)width * t.texel_bytes + 16;
  t.plane_bytes = t.row_bytes * rows + 32;
  size = t.plane_bytes * planes;
  t.data = malloc(size);
  ck_assert_uint_lt(n_texel_data, sizeof texel_data / sizeof *texel_data);
  texel_data[n_texel_data++] = t.data;
  for (size_t i = 0; i < size; i++)
    t.data[i] = (uint8_t)test_random(&seed);
  if (texel == KILN__TEXEL_F32) {
    for (size_t i = 0; i + 4 <= size; i += 4) {
      const float f = (float)(int)(test_random(&seed) % 2001 - 1000) / 8;

      memcpy(t.data + i, &f, sizeof f);
    }
  } else if (texel == KILN__TEXEL_F16) {
    for (size_t i = 1; i < size; i += 2)
      /* Clears a bit of each exponent, so that no texel is infinite or a
       * NaN. */
      t.data[i] &= 0xbb;
  }
  return t;
}

typedef struct shape_info {
  const char *name;
  int dimensions;
  bool layered, cube;
} shape_info;

static const shape_info shapes[] = {
    {"1d", 1, false, false},  {"2d", 2, false, false}, {"3d", 3, false, false},
    {"a1d", 1, true, false},  {"a2d", 2, true, false}, {"cube", 3, false, true},
    {"acube", 3, true, true},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

#endif
