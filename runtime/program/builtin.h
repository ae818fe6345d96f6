/* builtin.h -- headers that are embedded in the library: the headers of
 * kernels_src/, which the build converts to string constants, and small
 * versions of C headers. */
#ifndef KILN_BUILTIN_H
#define KILN_BUILTIN_H

#include <kiln/program.h>

/* Returns an array of *n headers that every program may include, such as
 * <kiln/prelude.cuh>. The array is static, and its contents come from
 * kernels_src/. */
const kiln_header *kiln__builtin_headers(size_t *n);

/* Returns the small version of a C header ("stdint.h", "cmath", ...), or NULL
 * if Kiln has no header of that name. */
const kiln_header *kiln__c_header(const char *name);

#endif
