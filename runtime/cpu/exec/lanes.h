/* lanes.h -- macros with which instruction handlers loop over the lanes of a
 * warp. Only files of exec/ include this header.
 *
 * A register stores the values of 32 lanes consecutively, so one instruction is
 * one loop over an array. The macros contain two loops. The loop for a full
 * warp has no conditions. The loop for a partial warp keeps the old values of
 * inactive lanes. The compiler vectorises both loops.
 *
 * Results are computed for all lanes but stored only for the active lanes. An
 * expression must therefore not trap on any value that an inactive lane may
 * hold. Expressions that may trap use KILN__ACTIVE_LANES. */
#ifndef KILN_CPU_LANES_H
#define KILN_CPU_LANES_H

#include "isa.h"

#include <string.h>

#define KILN__PASTE2(a, b, c) kiln__cpu_##a##_##b##_##c
#define KILN__PASTE(a, b, c) KILN__PASTE2(a, b, c)
/* KILN__ISA_NAME(name) is the name of a function in this build of exec/. */
#define KILN__ISA_NAME(name) KILN__PASTE(x, KILN__ISA, name)
#define KILN__HANDLER(name)                                                    \
  void KILN__ISA_NAME(op_##name)(kiln__cpu_warp * w, const kiln__cpu_insn *in)

/* Declares all instruction handlers. */
#undef KILN__OP_AS
#define KILN__OP_AS(name, handler, pattern, operands, kind, klass, ptx, sm,    \
                    text)                                                      \
  KILN__HANDLER(handler);
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)          \
  KILN__HANDLER(name);
#include "../code/ops.def"
#undef KILN__OP
#undef KILN__OP_AS

/* KILN__SLOT(T, offset) is the register at a byte offset of the frame, as an
 * array of 32 values of type T. */
#define KILN__SLOT(T, offset)                                                  \
  ((T *)__builtin_assume_aligned(w->regs + (offset), 64))

#if defined(__clang__)
/* Clang warns if it cannot vectorise a loop for some processor. These warnings
 * are expected, so they are disabled. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define KILN__VECTOR_LOOP                                                      \
  _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define KILN__VECTOR_LOOP _Pragma("GCC ivdep")
#endif

/* KILN__LANES sets D[i] = expression for each active lane i. TD is the element
 * type of the destination register: uint32_t, uint64_t, float, double, int32_t
 * or int64_t. */
#define KILN__LANES(TD, expression)                                            \
  do {                                                                         \
    TD *const kiln_d = KILN__SLOT(TD, in->d);                                  \
    if (__builtin_expect(w->full, 1)) {                                        \
      KILN__VECTOR_LOOP                                                        \
      for (int i = 0; i < KILN__WARP; i++)                                     \
        kiln_d[i] = (TD)(expression);                                          \
    } else {                                                                   \
      const uint32_t *const kiln_l = w->lane;                                  \
      KILN__VECTOR_LOOP                                                        \
      for (int i = 0; i < KILN__WARP; i++) {                                   \
        const TD kiln_r = (TD)(expression);                                    \
        kiln_d[i] = kiln_l[i] != 0 ? kiln_r : kiln_d[i];                       \
      }                                                                        \
    }                                                                          \
  } while (0)

/* KILN__ACTIVE_LANES does the same as KILN__LANES but evaluates the expression
 * only for active lanes, as calls of libm require. */
#define KILN__ACTIVE_LANES(TD, expression)                                     \
  do {                                                                         \
    TD *const kiln_d = KILN__SLOT(TD, in->d);                                  \
    for (uint32_t kiln_m = w->mask; kiln_m != 0; kiln_m &= kiln_m - 1) {       \
      const int i = __builtin_ctz(kiln_m);                                     \
      kiln_d[i] = (TD)(expression);                                            \
    }                                                                          \
  } while (0)

/* Declare the source registers of an instruction as arrays A, B and C of type
 * T, indexed by lane. */
#define KILN__SOURCE(T, name, field)                                           \
  const T *const name = KILN__SLOT(const T, in->field)
#define KILN__SOURCES_1(T) KILN__SOURCE(T, A, a)
#define KILN__SOURCES_2(T)                                                     \
  KILN__SOURCES_1(T);                                                          \
  KILN__SOURCE(T, B, b)
#define KILN__SOURCES_3(T)                                                     \
  KILN__SOURCES_2(T);                                                          \
  KILN__SOURCE(T, C, c)

/* Defines a handler with n source registers of type T, whose results are of
 * type TD. `setup` runs once per instruction and declares the variables that
 * the expression needs. */
#define KILN__LANE_OP(name, n, TD, T, setup, expression)                       \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    KILN__SOURCES_##n(T);                                                      \
    setup;                                                                     \
    KILN__LANES(TD, expression);                                               \
  }
#define KILN__OP1(name, TD, T, expression)                                     \
  KILN__LANE_OP(name, 1, TD, T, , expression)
#define KILN__OP2(name, TD, T, expression)                                     \
  KILN__LANE_OP(name, 2, TD, T, , expression)
#define KILN__OP3(name, TD, T, expression)                                     \
  KILN__LANE_OP(name, 3, TD, T, , expression)

/* Defines a handler that calls a function with constant arguments. Several
 * handlers share this function. */
#define KILN__CALLS(name, function, ...)                                       \
  KILN__HANDLER(name)                                                          \
  {                                                                            \
    function(w, in, __VA_ARGS__);                                              \
  }

#endif
