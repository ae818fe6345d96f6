/* arch.h -- internal interface of the architecture tables. Pure functions of
 * their arguments: no GPU, no driver, no allocation. */
#ifndef KILN_ARCH_INTERNAL_H
#define KILN_ARCH_INTERNAL_H

#include "../base/base.h"

#include <kiln/arch.h>

/* True if this capability exists only in integrated (Tegra) GPUs. Their machine
 * code runs on exactly that capability, and no other code runs on them. */
bool kiln__arch_tegra(int cc);

/* The oldest and newest NVRTC known to make code for exactly `cc`, as 12080;
 * false if none does. */
bool kiln__nvrtc_span(int cc, int *first, int *last);

/* Reads "sm_90a", "compute_75", "9.0" or "90". False, without an error record,
 * if the text is none of these or names a suffix that no such GPU has; *out
 * then holds what was read. */
bool kiln__target_read(const char *text, kiln_target *out);

#endif
