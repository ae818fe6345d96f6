/* demangle.h -- readable names of C++ kernels, for findings and faults. */
#ifndef KILN_CPU_DEMANGLE_H
#define KILN_CPU_DEMANGLE_H

#include <stddef.h>

enum { KILN__READABLE = 200 }; /* bytes that messages spend on one name */

/* Write the readable form of a linkage name to `buf`, cut to `size` bytes with
 * its NUL: "_ZN2ns4copyIfLi4EEEvPT_" becomes "ns::copy<float, 4>". The types of
 * the parameters are left out. A name that is not mangled, or that uses what
 * the reader does not support, is copied as it is. Returns buf.
 *
 * Reads only `name`: nothing is allocated, any thread may call it. */
const char *kiln__cpu_demangle(const char *name, char *buf, size_t size);

#endif
