/* ptxas.h -- ptxas as the reference for which PTX is correct. */
#ifndef KILN_TEST_PTXAS_H
#define KILN_TEST_PTXAS_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a whole stream or file and appends a NUL. The caller frees it. Ends the
 * process on error, since Check's assertions work only within its tests. */
char *fuzz_read_file(const char *path, size_t *size);

/* Finds ptxas: KILN_TEST_PTXAS, then PATH, then the usual places of toolkits.
 * NULL: none. The result stays valid. */
const char *ptxas_find(void);
/* Returns "13.0" from `ptxas --version`, or "" if it does not print one. The
 * result is static. */
const char *ptxas_release(const char *ptxas);

/* Returns what ptxas prints for the text, compiled for sm_<target>. Empty: it
 * accepts it. The caller frees it. */
char *ptxas_says(const char *ptxas, const char *text, size_t size,
                 unsigned target);
/* Removes the files it worked with. */
void ptxas_end(void);

#endif
