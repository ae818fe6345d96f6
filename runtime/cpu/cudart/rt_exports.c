/* rt_exports.c -- defines the symbols of one libcudart. It is compiled once per major
 * version, with KILN__RT_MAJOR and KILN__RT_VERSION defined. The table
 * runtime_functions.def lists the symbols. */
#include "cudart.h"
#include "rt_majors.h"

const int kiln__rt_version = KILN__RT_VERSION;

#define KILN__RT_EXPORT __attribute__((visibility("default")))

#define KILN__RT_DEFINE(name, symbol, per_thread, params, args)                \
  KILN__RT_EXPORT cudaError_t symbol params;                                   \
  KILN__RT_EXPORT cudaError_t symbol params                                    \
  {                                                                            \
    const bool outer = kiln__rt_enter(per_thread);                             \
                                                                               \
    return kiln__rt_leave(outer, kiln__rt_##name args);                        \
  }

#define KILN__RT(name, symbol, majors, since, params, args)                    \
  KILN__RT_IN_##majors(KILN__RT_DEFINE(name, symbol, false, params, args))
#define KILN__RT_STREAM(name, symbol, majors, since, form, params, args)       \
  KILN__RT_IN_##majors(                                                        \
      KILN__RT_DEFINE(name, symbol, false, params, args)                       \
          KILN__RT_DEFINE(name, symbol##form, true, params, args))
#define KILN__RT_PLAIN(result, name, symbol, majors, since, params, args)      \
  KILN__RT_IN_##majors(                                                        \
      KILN__RT_EXPORT result symbol params;                                    \
      KILN__RT_EXPORT result symbol params { return kiln__rt_##name args; })
#define KILN__RT_VOID(name, symbol, majors, since, params, args)               \
  KILN__RT_IN_##majors(                                                        \
      KILN__RT_EXPORT void symbol params;                                      \
      KILN__RT_EXPORT void symbol params { kiln__rt_##name args; })
#define KILN__RT_REFUSED(symbol, majors, since, error, advice)                 \
  KILN__RT_IN_##majors(KILN__RT_EXPORT cudaError_t symbol(void);               \
                       KILN__RT_EXPORT cudaError_t symbol(void) {              \
                         return kiln__rt_leave(                                \
                             kiln__rt_enter(false),                            \
                             kiln__rt_refuse(#symbol, error, advice));         \
                       })
#include "runtime_functions.def"
