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

/* Reads "sm_90a", "compute_75", "9.0" or "90". False, without an error record,
 * if the text is none of these or names a suffix that no such GPU has; *out
 * then holds what was read. */
bool kiln__target_read(const char *text, kiln_target *out);

#endif
