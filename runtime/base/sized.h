/* sized.h -- versioned structs: callers may be compiled against another version
 * of a header.
 *
 * Problem: a description or options struct gets new members in a later version.
 * A program compiled against an older header passes a smaller struct. A program
 * compiled against a newer header may run with an older library.
 *
 * Idea: the public function is an inline wrapper that passes the size of the
 * caller's struct to the exported function NAME_sized() (see kiln/types.h). If
 * that size equals the library's own size, the struct is used in place.
 * Otherwise the struct is copied into a zeroed struct of the library's size.
 *
 * Invariant: new members are added only at the end of a struct, after all
 * padding, and zero means "default" for each member. Therefore a smaller struct
 * is a valid larger struct after zero extension. A larger struct may be
 * truncated if the extra members are zero.
 *
 * Cost: one comparison per call if the sizes are equal. */
#ifndef KILN_SIZED_H
#define KILN_SIZED_H

#include "base.h"

#include <stddef.h>

/* Describes a versioned struct of this library: its current size, its name for
 * error messages, and the size of its first published version. */
typedef struct kiln__sized {
  const char *name;
  size_t size, first;
} kiln__sized;

/* `last` is the last member of the first version of the struct. The size of
 * that version excludes the trailing padding, because the padding depends on
 * the alignment, and a later member may raise the alignment. The padding bytes
 * are undefined, so no later member may overlap them. */
#define KILN__SIZED_TYPE(type, last)                                           \
  {                                                                            \
#type, sizeof(type), offsetof(type, last) + sizeof((type *)0)->last        \
  }

/* Converts *in, the caller's struct of `size` bytes, to this library's size. If
 * the sizes are equal or *in is NULL, *in is unchanged. Otherwise the struct is
 * copied to `own`, and *in is set to `own`. Returns KILN_EINVAL if `size` is
 * smaller than the first version or if a member unknown to this library is not
 * zero, else KILN_OK. */
kiln_status kiln__sized_in(const kiln__sized *type, const void **in,
                           size_t size, void *own);

/* Checks the size of the caller's result struct. Sets *direct to true if the
 * struct has this library's size or is NULL; the results are then written
 * without a copy. Returns KILN_OK, or KILN_EINVAL for an invalid size. */
kiln_status kiln__sized_out(const kiln__sized *type, const void *out,
                            size_t size, bool *direct);

/* Copies results to the caller's struct. Members that only the caller's version
 * of the struct has are set to zero. Members that only this library's version
 * has are dropped. */
void kiln__sized_give(const kiln__sized *type, const void *own, void *out,
                      size_t size);

#endif
