/* demangle.h -- converts mangled names of C++ kernels into readable names, for
 * findings and faults. */
#ifndef KILN_CPU_DEMANGLE_H
#define KILN_CPU_DEMANGLE_H

#include <stddef.h>

/* size in bytes of the buffer for one readable name in a message */
enum { KILN__READABLE = 200 };

/* Writes the readable form of a linkage name to `buf`, truncated to `size`
 * bytes including the NUL. For example, "_ZN2ns4copyIfLi4EEEvPT_" becomes
 * "ns::copy<float, 4>". Parameter types are left out. Template arguments that
 * use unsupported parts of the grammar, such as lambda functions, become "...".
 * A name that is not mangled, or that uses such parts elsewhere, is copied
 * unchanged.
 * Returns buf.
 *
 * Reads only `name` and allocates nothing. Thread-safe. */
const char *kiln__cpu_demangle(const char *name, char *buf, size_t size);

#endif
