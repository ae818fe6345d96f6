/* dropin_symbols.c -- libcuda's symbols, each a jump to the internal function. */
#include "jump.h"

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  KILN__JUMP(symbol, kiln__cpu_##name)
#define KILN__ALIAS_FN(symbol, since, name) KILN__JUMP(symbol, kiln__cpu_##name)
#define KILN__MISSING_FN(symbol, since)                                        \
  KILN__JUMP(symbol, kiln__cpu_missing_##symbol)
#include "../api/entry_points.def"

/* ISO C wants a declaration. */
extern int kiln__cpu_symbols;
