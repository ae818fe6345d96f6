/* pack_ops.h -- the bodies of operations for `kiln pack ops`. */
#ifndef KILN_CLI_PACK_OPS_H
#define KILN_CLI_PACK_OPS_H

#include "cli/commands.h"

#include <kiln/cpu.h>

enum { CLI_BODIES_RUNTIMES = 32 };

/* A list of compiled bodies. Initialise it with the command and zeros. */
typedef struct cli_bodies {
  cli *c;
  kiln_image **image;
  size_t n, capacity;
  kiln_runtime *rt[CLI_BODIES_RUNTIMES]; /* the runtimes that own the images */
  size_t n_runtimes;
} cli_bodies;

/* Compiles the bodies of common calls for a target and element types, and adds
 * them to the list. Returns the statuses of kiln_ops_bodies() and of the
 * operations. At most CLI_BODIES_RUNTIMES calls per list. */
kiln_status kiln__cli_bodies(cli_bodies *b, const kiln_target *target,
                             const kiln_dtype *types, size_t n_types);
void kiln__cli_free_bodies(cli_bodies *b);

#endif
