/* operation_table.c -- the table of all operations, generated from the lists in
 * the public headers. */
#include "operation_table.h"

#define OPERATION_FUNCTIONS(name, ...)                                         \
  static kiln_status run_##name(kiln_stream *stream, const void *desc,         \
                                const kiln_workspace *workspace)               \
  {                                                                            \
    return name(stream, desc, workspace);                                      \
  }                                                                            \
  static kiln_status need_##name(kiln_stream *stream, const void *desc,        \
                                 size_t *bytes)                                \
  {                                                                            \
    return name##_workspace(stream, desc, bytes);                              \
  }
OPERATIONS(OPERATION_FUNCTIONS)

#define OPERATION_ROW(name, desc_type, ...)                                    \
  {#name, sizeof(desc_type), run_##name, need_##name},

const operation operations[N_OPERATIONS] = {OPERATIONS(OPERATION_ROW)};
