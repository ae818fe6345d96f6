/* arch.h -- inside of the architecture tables. */
#ifndef KILN_ARCH_INTERNAL_H
#define KILN_ARCH_INTERNAL_H

#include "../base/base.h"

#include <kiln/arch.h>

/* Is this capability only built into a system on a chip? Its machine code then
 * runs on exactly that capability, in both directions. */
bool kiln__arch_tegra(int cc);

/* The oldest and newest NVRTC known to make code for exactly `cc`, as 12080;
 * false if none does. */
bool kiln__nvrtc_span(int cc, int *first, int *last);

#endif
