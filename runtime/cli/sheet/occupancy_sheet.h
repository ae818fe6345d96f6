/* occupancy_sheet.h -- the occupancy sheet: how many blocks each resource of an
 * SM admits, and how occupancy depends on block size, registers and shared
 * memory. `kiln occupancy` prints it; other commands show parts of it. */
#ifndef KILN_CLI_OCCUPANCY_SHEET_H
#define KILN_CLI_OCCUPANCY_SHEET_H

#include "cli/commands.h"
#include "tool/plot/plot.h"

/* What a sheet is made for. */
typedef struct occupancy_setting {
  /* The GPU. smem_per_sm may be smaller than the GPU's maximum: the amount of
   * shared memory that the SM is configured for. */
  kiln_traits traits;
  int threads;     /* threads per block */
  int registers;   /* registers per thread; 0 if unknown */
  size_t shared;   /* shared memory per block in bytes, static and dynamic */
  int max_threads; /* launch bound of the kernel in threads; 0 for none */
  int barriers;    /* named barriers per block; 0 if unknown */
} occupancy_setting;

typedef enum sheet_limit {
  SHEET_WARPS,
  SHEET_BLOCKS,
  SHEET_REGISTERS,
  SHEET_SHARED,
  SHEET_BARRIERS,
  SHEET_N_LIMITS
} sheet_limit;

enum { SHEET_UNLIMITED = 1 << 16 /* blocks that a resource admits at most */ };

/* One sheet. */
typedef struct occupancy_sheet {
  occupancy_setting of;
  kiln_occupancy_result now;
  /* Resident blocks if only one resource were limited. SHEET_UNLIMITED means
   * that the block does not need the resource. */
  int blocks[SHEET_N_LIMITS];
  bool binds[SHEET_N_LIMITS]; /* the resources that limit the occupancy */
  /* Amounts per block after rounding to the hardware's units of allocation. */
  int block_warps, block_registers, block_shared;
} occupancy_sheet;

/* Warps per SM as a function of one variable: threads per block, registers per
 * thread, or bytes of shared memory per block. */
typedef struct occupancy_curve {
  double *x, *warps;
  size_t n;
} occupancy_curve;

enum { CURVE_THREADS, CURVE_REGISTERS, CURVE_SHARED, N_CURVES };

/* Fills in a sheet. @return KILN_OK, or KILN_EINVAL for a setting that the GPU
 * has no launch for */
kiln_status kiln__occupancy_sheet(occupancy_sheet *out,
                                  const occupancy_setting *s);
/* Computes a curve in memory of kiln__cli_alloc(). All other members of the
 * setting are kept. */
void kiln__occupancy_curve(cli *c, const occupancy_setting *s, int which,
                           occupancy_curve *out);
/* Returns the number of named barriers of an SM, or 0 if they limit nothing. */
int kiln__occupancy_barriers(const kiln_traits *traits);
/* Returns the name of a limit: "warps", "blocks", "registers", "shared
 * memory", "barriers". */
const char *kiln__occupancy_limit_name(sheet_limit limit);
/* Returns the names of the limits that bind, joined by "and". */
const char *kiln__occupancy_binding(cli *c, const occupancy_sheet *sheet);
/* Returns what would admit one more block, such as "at most 64 registers
 * per thread", or NULL if no change of one resource does. */
const char *kiln__occupancy_advice(cli *c, const occupancy_sheet *sheet);
/* Returns a sheet as a JSON object: threads, registers, shared, blocks, warps,
 * percent, limit, limits, and the curves by_threads, by_registers and by_shared
 * as lists of [x, warps]. A setting that cannot be launched has 0 blocks. */
cJSON *kiln__occupancy_json(cli *c, const occupancy_setting *s);
/* Returns the three graphs of a sheet. The figure lives until the command
 * ends. */
const plot_figure *kiln__occupancy_figure(cli *c, const occupancy_sheet *sheet,
                                          const char *title);

#endif
