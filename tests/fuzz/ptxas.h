/* ptxas.h -- runs ptxas, which decides whether PTX source is valid. */
#ifndef KILN_TEST_PTXAS_H
#define KILN_TEST_PTXAS_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a whole file and appends a NUL. The caller frees the result. An error
 * ends the process, because the assertions of the test framework Check work
 * only inside tests. */
char *fuzz_read_file(const char *path, size_t *size);

/* Finds ptxas: first KILN_TEST_PTXAS, then PATH, then the usual folders of CUDA
 * toolkits. Returns NULL if ptxas is not found. The result stays valid until
 * the process ends. */
const char *ptxas_find(void);
/* Returns the release number that `ptxas --version` prints, such as "13.0", or
 * "" if it prints none. The result is static. */
const char *ptxas_release(const char *ptxas);

/* Compiles PTX source for sm_<target> with ptxas and returns the output of
 * ptxas. An empty string means that ptxas accepts the source. The caller frees
 * the result. */
char *ptxas_says(const char *ptxas, const char *text, size_t size,
                 unsigned target);
/* Removes the temporary files that the functions of this header created. */
void ptxas_end(void);

#endif
