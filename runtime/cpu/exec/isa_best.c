/* isa_best.c -- choose the build of exec/ for this processor. */
#include "isa.h"

#include <string.h>

#if defined(__x86_64__)
static const kiln__isa *known(const char *wanted)
{
  static const kiln__isa *const all[] = {&kiln__isa_base, &kiln__isa_v3,
                                         &kiln__isa_v4};

  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcmp(all[i]->name, wanted) == 0)
      return all[i];
  }
  return NULL;
}
#endif

const kiln__isa *kiln__isa_best(const char *wanted)
{
#if defined(__x86_64__)
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")
#if !defined(__clang__) /* does not know these; they came with the others */
      && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt")
#endif
      ;
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
                  __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const kiln__isa *best = v4   ? &kiln__isa_v4
                          : v3 ? &kiln__isa_v3
                               : &kiln__isa_base;
  const kiln__isa *asked = wanted != NULL ? known(wanted) : best;

  if (asked == NULL || (asked == &kiln__isa_v4 && !v4) ||
      (asked == &kiln__isa_v3 && !v3))
    return NULL;
  return asked;
#else
  return wanted == NULL || strcmp(wanted, "base") == 0 ? &kiln__isa_base : NULL;
#endif
}
