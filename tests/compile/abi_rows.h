/* abi_rows.h -- a row in a table of the driver's ABI: the size of a type, or
 * the offset of a member. */
#ifndef KILN_TEST_ABI_ROWS_H
#define KILN_TEST_ABI_ROWS_H

#include <stddef.h>

typedef struct abi_row {
  const char *what; /* name of the size or offset; NULL ends the table */
  size_t value;
} abi_row;

#define ABI_SIZE(type) {"sizeof " #type, sizeof(type)},
#define ABI_AT(type, member) {#type "." #member, offsetof(type, member)},
/* clang-format off */
#define ABI_END {NULL, 0}
/* clang-format on */

#endif
