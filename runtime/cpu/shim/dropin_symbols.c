/* dropin_symbols.c -- defines the symbols of libcuda.so.1. Each symbol is a
 * jump to an internal function, or to a detour through dropin_observe.c while an
 * observer wants calls. The table entry_points.def lists the symbols. */
#include "jump.h"

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  KILN__OBSERVED_JUMP(symbol, kiln__cpu_##name)
#define KILN__ALIAS_FN(symbol, since, name)                                    \
  KILN__OBSERVED_JUMP(symbol, kiln__cpu_##name)
#define KILN__MISSING_FN(symbol, since)                                        \
  KILN__OBSERVED_JUMP(symbol, kiln__cpu_missing_##symbol)
#include "../api/entry_points.def"

/* ISO C requires at least one declaration per file. */
extern int kiln__cpu_symbols;
