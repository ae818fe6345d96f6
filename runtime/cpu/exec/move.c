/* move.c -- moves between registers. */
#include "lanes.h"

KILN__OP1(mov_b32, uint32_t, uint32_t, A[i])
