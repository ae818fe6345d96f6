/* dropin_symbols.c -- the symbols of libcuda.so.1, each a jump to the internal
 * function. The table entry_points.def lists them. */
#include "jump.h"

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  KILN__JUMP(symbol, kiln__cpu_##name)
#define KILN__ALIAS_FN(symbol, since, name) KILN__JUMP(symbol, kiln__cpu_##name)
#define KILN__MISSING_FN(symbol, since)                                        \
  KILN__JUMP(symbol, kiln__cpu_missing_##symbol)
#include "../api/entry_points.def"

/* ISO C requires at least one declaration per file. */
extern int kiln__cpu_symbols;
