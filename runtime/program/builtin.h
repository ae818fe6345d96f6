/* builtin.h -- what kernels_src/ became at build time. */
#ifndef KILN_BUILTIN_H
#define KILN_BUILTIN_H

#include <kiln/program.h>

/* Headers that every program may include: <kiln/prelude.cuh>, ... */
const kiln_header *kiln__builtin_headers(size_t *n);

/* The small version of a C header ("stdint.h", "cmath", ...); NULL if there is
 * none of that name. */
const kiln_header *kiln__c_header(const char *name);

#endif
