/* tensor_map.c -- the checksum and the element types of tensor maps. */
#include "tensor_map.h"

#include <string.h>

/* Returns a checksum of all bytes after the checksum field. It multiplies each
 * word by another odd number, so exchanged words are detected too. */
static uint64_t checksum_of(const kiln__cpu_tensor_map *map)
{
  uint64_t words[KILN__TENSOR_MAP_BYTES / 8];
  uint64_t sum = UINT64_C(0x4b696c6e4d617031);

  memcpy(words, map, sizeof words);
  for (size_t i = 1; i < sizeof words / sizeof *words; i++) {
    sum = (sum ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    sum ^= sum >> 29;
  }
  return sum | 1; /* A map of zeros is never valid. */
}

void kiln__cpu_tensor_map_seal(kiln__cpu_tensor_map *map)
{
  map->checksum = checksum_of(map);
}

bool kiln__cpu_tensor_map_valid(const kiln__cpu_tensor_map *map)
{
  return map->checksum == checksum_of(map);
}

uint32_t kiln__cpu_tensor_element_bytes(unsigned type)
{
  static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

  return type < sizeof bytes ? bytes[type] : 0;
}
