/* bulk.h -- declares the functions of run/ that perform bulk copies for the
 * handlers of async_bulk.c. */
#ifndef KILN_CPU_BULK_H
#define KILN_CPU_BULK_H

#include "lanes.h"

typedef enum kiln__cpu_bulk_kind {
  KILN__BULK_LOAD,           /* from global memory to shared memory */
  KILN__BULK_PUSH,           /* from own to any shared memory of the cluster */
  KILN__BULK_STORE,          /* from shared memory to global memory */
  KILN__BULK_TENSOR_LOAD,    /* a box of a tensor, to shared memory */
  KILN__BULK_TENSOR_STORE,   /* a box of a tensor, from shared memory */
  KILN__BULK_STORE_ELEMENTS, /* st.async */
  KILN__BULK_REDUCE_ELEMENT  /* red.async */
} kiln__cpu_bulk_kind;

/* The fields of a tensor map that tensormap.replace changes. */
typedef enum kiln__cpu_map_field {
  KILN__MAP_ADDRESS,
  KILN__MAP_RANK,
  KILN__MAP_BOX,
  KILN__MAP_SIZE,
  KILN__MAP_STRIDE,
  KILN__MAP_STEP,
  KILN__MAP_TYPE,
  KILN__MAP_INTERLEAVE,
  KILN__MAP_SWIZZLE,
  KILN__MAP_FILL
} kiln__cpu_map_field;

/* Performs the copies of all active lanes. in->sub and in->boolop select a
 * reduction instead of a copy. */
void kiln__cpu_bulk_copy(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         kiln__cpu_bulk_kind kind);
/* Ends the current group of stores of each active lane, and waits for groups of
 * stores. All copies are complete when they are issued, so both functions only
 * inform the checks. */
void kiln__cpu_bulk_commit(kiln__cpu_warp *w, const kiln__cpu_insn *in);
void kiln__cpu_bulk_wait(kiln__cpu_warp *w, const kiln__cpu_insn *in);
/* Changes one field of the tensor map of each active lane. */
void kiln__cpu_map_replace(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           kiln__cpu_map_field field);
/* Copies one tensor map from shared to global memory. */
void kiln__cpu_map_copy(kiln__cpu_warp *w, const kiln__cpu_insn *in);

#endif
