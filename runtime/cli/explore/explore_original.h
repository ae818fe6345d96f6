/* explore_original.h -- the embedded programs as a person wrote them. */
#ifndef KILN_EXPLORE_ORIGINAL_H
#define KILN_EXPLORE_ORIGINAL_H

#include <stddef.h>

typedef struct explore_original {
  const char *name; /* "scan.cu", "kiln/prelude.cuh" */
  const char *text; /* with comments and indentation */
} explore_original;

/* The table that embed_kernels.cmake writes; the last row has no name. */
extern const explore_original kiln__explore_originals[];

/* Returns the original of a compiled source file, whose name may start with a
 * folder, or NULL if there is none. A text is the original if it has the same
 * lines, apart from comments and blanks; a user's file may have the name of an
 * embedded program. */
const char *kiln__explore_original(const char *name, const char *text,
                                   size_t size);

#endif
