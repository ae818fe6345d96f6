/* builtin.h -- headers that travel inside the library: those of kernels_src/,
 * which the build turns into texts, and small versions of C's. */
#ifndef KILN_BUILTIN_H
#define KILN_BUILTIN_H

#include <kiln/program.h>

/* The headers of kernels_src/ that every program may include, such as
 * <kiln/prelude.cuh>; a static array of *n. */
const kiln_header *kiln__builtin_headers(size_t *n);

/* The small version of a C header ("stdint.h", "cmath", ...); NULL if there is
 * none of that name. */
const kiln_header *kiln__c_header(const char *name);

#endif
