/* abi_rows.h -- a row of what two views of the driver's ABI must agree on: a size,
 * or where a member lies. */
#ifndef KILN_TEST_ABI_ROWS_H
#define KILN_TEST_ABI_ROWS_H

#include <stddef.h>

typedef struct abi_row {
  const char *what; /* NULL: the end of the table */
  size_t value;
} abi_row;

#define ABI_SIZE(type) {"sizeof " #type, sizeof(type)},
#define ABI_AT(type, member) {#type "." #member, offsetof(type, member)},
/* clang-format off */
#define ABI_END {NULL, 0}
/* clang-format on */

#endif
