/* hash.h -- hashes of bytes, in one copy for all files that need no inlined
 * version. The hashes are those of xxHash: XXH3 with 64 and 128 bits. */
#ifndef KILN_HASH_H
#define KILN_HASH_H

#include "base.h"

typedef struct kiln__hash {
  uint64_t high, low;
} kiln__hash;

/* Returns a checksum (XXH3-64). */
uint64_t kiln__sum64(const void *data, size_t size);
/* Returns a hash that identifies the bytes (XXH3-128). Hashes with different
 * seeds are independent; the usual seed is 0. */
kiln__hash kiln__hash128(const void *data, size_t size, uint64_t seed);
/* Writes a hash as 32 hexadecimal digits. */
void kiln__hash_hex(char hex[33], kiln__hash hash);
/* Writes the hash of the bytes with seed 0 as 32 hexadecimal digits. */
void kiln__hash_text(char hex[33], const void *data, size_t size);

#endif
