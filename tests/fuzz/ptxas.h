/* ptxas.h -- ptxas as the one who knows which PTX is right. */
#ifndef KILN_TEST_PTXAS_H
#define KILN_TEST_PTXAS_H

#include <stdbool.h>
#include <stddef.h>

/* All of a stream or file, NUL behind it; malloc. Ends the process on error:
 * Check's assertions only work within its tests. */
char *fuzz_read_file(const char *path, size_t *size);

/* KILN_TEST_PTXAS, then PATH, then the toolkits' usual places; NULL: none.
 * Keep it. */
const char *ptxas_find(void);
/* "13.0" of `ptxas --version`; "" if it does not say. Static. */
const char *ptxas_release(const char *ptxas);

/* What it says of the text, compiled for sm_<target>; malloc. Empty: it accepts
 * it. */
char *ptxas_says(const char *ptxas, const char *text, size_t size,
                 unsigned target);
/* Remove what it worked on. */
void ptxas_end(void);

#endif
