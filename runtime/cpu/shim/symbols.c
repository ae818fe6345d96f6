/* symbols.c -- libcuda's functions that the CPU device has. */
#include "jump.h"

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  KILN__JUMP(".globl", symbol, kiln__cpu_##name)
#define KILN__ALIAS(symbol, name) KILN__JUMP(".globl", symbol, kiln__cpu_##name)
#include "../../driver/driver_api.def"
#include "../api/aliases.def"
#include "../api/more.def"

/* ISO C wants a declaration. */
extern int kiln__cpu_symbols;
