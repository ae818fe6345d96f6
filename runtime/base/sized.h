/* sized.h -- structs that may grow: callers compiled against another header.
 *
 * Problem: a desc or an options struct gets new members in a later version. A
 * program that was compiled against an older header still passes the smaller
 * struct, and one compiled against a newer header may meet an older library.
 *
 * Idea: the public function is an inline wrapper that passes sizeof of the
 * caller's struct to the exported NAME_sized() (kiln/types.h). If that is this
 * library's own size, the struct is used where it is. Otherwise it is copied
 * into a zeroed struct of the library's size.
 *
 * Invariant: members are only ever added, at the end and after all padding.
 * Zero means "default" in each of them. So a smaller struct is a valid larger
 * one, and a larger struct may be cut if the members beyond are zero.
 *
 * Cost: one comparison per call for callers of the same version. */
#ifndef KILN_SIZED_H
#define KILN_SIZED_H

#include "base.h"

#include <stddef.h>

/* A struct in this library: its size, its name for messages, and the size that
 * its first published version had. */
typedef struct kiln__sized {
  const char *name;
  size_t size, first;
} kiln__sized;

/* `last` is the last member of the first version, whose size is taken without
 * the padding behind it: that depends on the alignment, which a later member
 * may raise. Bytes of that padding are undefined, so no later member may lie
 * there. */
#define KILN__SIZED_TYPE(type, last)                                           \
  {                                                                            \
#type, sizeof(type), offsetof(type, last) + sizeof((type *)0)->last        \
  }

/* Gives *in, the caller's struct of `size` bytes, this library's size: *in
 * stays if the sizes are equal or if it is NULL, else it is copied to `own` and
 * *in points there. KILN_OK; KILN_EINVAL if `size` is smaller than the first
 * version, or if a member that this library does not know is not zero. */
kiln_status kiln__sized_in(const kiln__sized *type, const void **in,
                           size_t size, void *own);

/* Checks the size of the caller's struct for results. *direct: it has this
 * library's size, or is NULL, and is written without a copy. KILN_OK, or
 * KILN_EINVAL as above. */
kiln_status kiln__sized_out(const kiln__sized *type, const void *out,
                            size_t size, bool *direct);

/* Copies results to the caller's struct: as much as both sizes have in common,
 * and zeros behind. */
void kiln__sized_give(const kiln__sized *type, const void *own, void *out,
                      size_t size);

#endif
