/* stubs.c -- all of libcuda's functions, as unsupported: those that the CPU
 * device has replace their weak stubs. */
#include "jump.h"

#define KILN__EXPORT(symbol, base, since, per_thread)                          \
  KILN__JUMP(".weak", symbol, kiln__cpu_not_supported)
#include "../api/exports.def"

/* ISO C wants a declaration. */
extern int kiln__cpu_stubs;
