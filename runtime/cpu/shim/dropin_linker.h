/* dropin_linker.h -- the linker of PTX that the drop-in libcuda.so.1 exports for
 * the shim of nvJitLink.
 *
 * Unlike cuLinkCreate it needs neither cuInit nor a context, links for any
 * architecture, and accepts every PTX version, since nvJitLink makes machine
 * code for drivers that are older than itself. */
#ifndef KILN_CPU_DROPIN_LINKER_H
#define KILN_CPU_DROPIN_LINKER_H

#include <stddef.h>

typedef struct kiln_cpu_linker kiln_cpu_linker;

/* Creates a linker for devices of compute capability `arch`, which is 10 *
 * major + minor. All functions that return int return a CUresult. The caller
 * frees the linker. A linker may be used by one thread at a time.
 * `max_registers` limits the registers per thread of kernels; 0 means that there
 * is no limit. */
int kiln_cpu_linker_create(kiln_cpu_linker **out, int arch,
                           unsigned max_registers);
/* Adds an input: PTX, a fat binary, a linked image, an object file of the host
 * or an archive. The bytes are copied. `name` may be NULL; messages about this
 * input begin with it. */
int kiln_cpu_linker_add(kiln_cpu_linker *linker, const void *data, size_t size,
                        const char *name);
/* Links all inputs. The image belongs to the linker. */
int kiln_cpu_linker_complete(kiln_cpu_linker *linker, const void **image,
                             size_t *size);
/* Returns all messages so far, or "". The text belongs to the linker and is
 * valid until the next call. */
const char *kiln_cpu_linker_log(kiln_cpu_linker *linker);
/* Frees a linker. NULL is allowed. */
void kiln_cpu_linker_free(kiln_cpu_linker *linker);

#endif
