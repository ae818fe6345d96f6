/* isa_best.c -- selects the build of exec/ for the processor of the host.
 *
 * CMake compiles exec/ once for each instruction set of KILN_CPU_ISAS. CMake
 * also defines KILN__ISA_BASE, KILN__ISA_V3 or KILN__ISA_V4 for each build that
 * the library contains. */
#include "isa.h"

#include <string.h>

#if defined(__x86_64__)
#if defined(KILN__ISA_V3) || defined(KILN__ISA_V4)
static bool has_v3(void)
{
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")
/* Clang does not know the feature names f16c and lzcnt. Processors with the
 * features above also have these two. */
#if !defined(__clang__)
         && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt")
#endif
      ;
}
#endif

#ifdef KILN__ISA_V4
static bool has_v4(void)
{
  return has_v3() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif
#endif

#ifdef KILN__ISA_BASE
static bool has_base(void)
{
  return true;
}
#endif

/* The builds of exec/ that this library contains, fastest first. */
static const struct {
  const kiln__cpu_isa *isa;
  bool (*runs_here)(void);
} builds[] = {
#ifdef KILN__ISA_V4
    {&kiln__cpu_isa_v4, has_v4},
#endif
#ifdef KILN__ISA_V3
    {&kiln__cpu_isa_v3, has_v3},
#endif
#ifdef KILN__ISA_BASE
    {&kiln__cpu_isa_base, has_base},
#endif
};

const kiln__cpu_isa *kiln__cpu_isa_best(const char *wanted)
{
  for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
    if ((wanted == NULL || strcmp(builds[i].isa->name, wanted) == 0) &&
        builds[i].runs_here())
      return builds[i].isa;
  }
  return NULL;
}
