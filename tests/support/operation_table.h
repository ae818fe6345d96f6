/* operation_table.h -- a table of all data-parallel operations, which hides the
 * types of their descriptors. Tests use it to check rules that hold for every
 * operation. */
#ifndef KILN_OPERATION_TABLE_H
#define KILN_OPERATION_TABLE_H

#include <kiln/kiln.h>

/* Calls X(name, type of the descriptor, ...) for every operation of the
 * library. */
#define OPERATIONS(X)                                                          \
  KILN__ALL_PAIRS_OPERATIONS(X)                                                \
  KILN__GATHER_OPERATIONS(X)                                                   \
  KILN__GEMM_OPERATIONS(X)                                                     \
  KILN__HISTOGRAM_OPERATIONS(X)                                                \
  KILN__MAP_OPERATIONS(X)                                                      \
  KILN__MERGE_OPERATIONS(X)                                                    \
  KILN__MOVE_OPERATIONS(X)                                                     \
  KILN__MERGE_SORT_OPERATIONS(X)                                               \
  KILN__PERMUTE_OPERATIONS(X)                                                  \
  KILN__RANDOM_OPERATIONS(X)                                                   \
  KILN__REDUCE_OPERATIONS(X)                                                   \
  KILN__SCAN_OPERATIONS(X)                                                     \
  KILN__SEARCH_OPERATIONS(X)                                                   \
  KILN__SELECT_OPERATIONS(X)                                                   \
  KILN__SET_OPERATIONS(X)                                                      \
  KILN__SORT_OPERATIONS(X)                                                     \
  KILN__STENCIL_OPERATIONS(X)                                                  \
  KILN__TOP_K_OPERATIONS(X)

/* The index of an operation in the table, such as OPERATION_kiln_scan. */
#define OPERATION_INDEX(name, ...) OPERATION_##name,
typedef enum operation_index {
  OPERATIONS(OPERATION_INDEX) N_OPERATIONS
} operation_index;

typedef struct operation {
  const char *name; /* name of the function */
  size_t desc_size;
  kiln_status (*run)(kiln_stream *stream, const void *desc,
                     const kiln_workspace *workspace);
  /* kiln_NAME_workspace() */
  kiln_status (*need)(kiln_stream *stream, const void *desc, size_t *bytes);
} operation;

extern const operation operations[N_OPERATIONS];

#endif
