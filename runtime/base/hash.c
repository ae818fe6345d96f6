/* hash.c -- hashes of bytes (xxHash). The functions of xxhash.h are compiled
 * here once, because each copy of them takes about 2 KB. */
#include "hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t kiln__sum64(const void *data, size_t size)
{
  return XXH3_64bits(data, size);
}

kiln__hash kiln__hash128(const void *data, size_t size, uint64_t seed)
{
  const XXH128_hash_t h = XXH3_128bits_withSeed(data, size, seed);

  return (kiln__hash){h.high64, h.low64};
}

void kiln__hash_hex(char hex[33], kiln__hash hash)
{
  kiln__format(hex, 33, "%016llx%016llx", (unsigned long long)hash.high,
               (unsigned long long)hash.low);
}

void kiln__hash_text(char hex[33], const void *data, size_t size)
{
  kiln__hash_hex(hex, kiln__hash128(data, size, 0));
}
