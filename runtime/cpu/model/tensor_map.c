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

/* Returns whether the fields are within their ranges. tensormap.replace may have
 * stored any values. */
static bool in_range(const kiln__cpu_tensor_map *map)
{
  const bool pixels = map->mode == KILN__TENSOR_IM2COL;
  const uint32_t least = pixels || map->interleave != 0 ? 3 : 1;

  if (map->rank < least || map->rank > KILN__TENSOR_RANK ||
      map->address % 16 != 0 || map->interleave > 2 || map->swizzle > 3 ||
      map->fill > 1 || kiln__cpu_tensor_element_bytes(map->type) == 0 ||
      (pixels && (map->channels > 256 || map->pixels > 1024)))
    return false;
  for (uint32_t i = 0; i < map->rank; i++) {
    if (map->step[i] == 0 || map->step[i] > 8 || map->box[i] > 256 ||
        (i > 0 && map->stride[i - 1] % 16 != 0))
      return false;
  }
  return true;
}

bool kiln__cpu_tensor_map_valid(const kiln__cpu_tensor_map *map)
{
  return map->checksum == checksum_of(map) && in_range(map);
}

uint32_t kiln__cpu_tensor_element_bytes(unsigned type)
{
  static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

  return type < sizeof bytes ? bytes[type] : 0;
}
