/* arch.h -- the internal interface of the architecture tables. The functions
 * are pure: they use no GPU and no driver, and allocate nothing. */
#ifndef KILN_ARCH_INTERNAL_H
#define KILN_ARCH_INTERNAL_H

#include "../base/base.h"

#include <kiln/arch.h>

/* Returns true if this compute capability exists only in integrated (Tegra)
 * GPUs. Machine code for such a GPU runs on exactly that capability, and no
 * other machine code runs on the GPU. */
bool kiln__arch_tegra(int cc);

/* Finds the oldest and the newest NVRTC version (12080 = 12.8) known to make
 * code for exactly the capability `cc`. Returns false if no version does. */
bool kiln__nvrtc_span(int cc, int *first, int *last);

/* Parses a target such as "sm_90a", "compute_75", "9.0" or "90" into *out.
 * Returns false, without an error record, if the text has another form or names
 * a suffix that no GPU of that capability has. In that case *out holds the part
 * that was parsed. */
bool kiln__target_read(const char *text, kiln_target *out);

#endif
