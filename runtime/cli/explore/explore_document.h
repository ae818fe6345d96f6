/* explore_document.h -- the document of `kiln explore`: everything that the page
 * shows, as JSON. README.md in this folder describes the format. */
#ifndef KILN_EXPLORE_DOCUMENT_H
#define KILN_EXPLORE_DOCUMENT_H

#include "cli/command_compile.h"
#include "cli/explore/sass_model.h"

/* A document while it is being made. All memory comes from kiln__cli_alloc(),
 * except the JSON. */
typedef struct explore_document explore_document;

/* How a page is made. */
typedef struct explore_setting {
  const char *program; /* name in the page's head */
  const char *kernel;  /* kernel to show, plain or lowered; NULL: all */
  unsigned threads;    /* threads per block for the occupancy; 0: a default */
  unsigned shared;     /* dynamic shared memory per block in bytes */
} explore_setting;

explore_document *kiln__explore_document(cli *c, const explore_setting *s);

/* Adds an image with its kernels. The unit must live as long as the document.
 * side: 0 for the compile of the command line, 1 for that of --compare. */
void kiln__explore_add_image(explore_document *d, const cli_unit *unit,
                             int side);

/* Compares the images pairwise: neighbouring targets of side 0, and both sides
 * of each target. */
void kiln__explore_add_differences(explore_document *d);

/* Adds the counters and findings that the CPU device has collected, and clears
 * them. `launches` becomes a member of the result. */
void kiln__explore_add_heat(explore_document *d, cJSON *launches);

/* Returns the number of kernels, over all images. */
size_t kiln__explore_kernels(const explore_document *d);

/* Returns the finished document, which the caller deletes. */
cJSON *kiln__explore_json(explore_document *d);

/* ---- explore_files.c: files and inline chains ---------------------------- */

/* The files and chains that all images of a document share. */
typedef struct explore_places explore_places;

explore_places *kiln__explore_places(cli *c);
/* Returns the index of a file. Files with different texts are different
 * files. `image` provides the text; it may be NULL. */
int kiln__explore_file(explore_places *p, const kiln_image *image,
                       const char *name);
/* Returns the index of the file with this name, or -1. Folders are ignored if no
 * name is equal. */
int kiln__explore_find_file(const explore_places *p, const char *name);
/* Returns the index of an inline chain: a place, and the chain of the call that
 * inlined it, or -1. */
int kiln__explore_chain(explore_places *p, int file, int line, int parent);
/* Adds the members "files" and "chains" to the document. */
void kiln__explore_places_json(const explore_places *p, cJSON *root);

/* ---- explore_kernel.c: one kernel ---------------------------------------- */

/* Text of a JSON array that holds numbers. It is written as text, since a tree
 * of cJSON takes 64 bytes per number. */
typedef struct explore_numbers {
  char *text;
  size_t size;
  FILE *out;
} explore_numbers;

/* Starts an array. Items are printed to n->out with commas before them, except
 * before the first one. */
void kiln__explore_numbers(cli *c, explore_numbers *n);
/* Adds the finished array as a member of the object. */
void kiln__explore_numbers_end(explore_numbers *n, cJSON *object,
                               const char *key);

/* Adds the members "sass", "blocks", "loops" and "spills" to a kernel. chains[i]
 * is the document's index of chain i of the model. */
void kiln__explore_code(cli *c, cJSON *to, const sass_kernel *kernel,
                        const int *chains);

#endif
