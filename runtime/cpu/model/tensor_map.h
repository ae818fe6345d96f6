/* tensor_map.h -- declares the tensor map of the CPU device: the contents of
 * the 128 opaque bytes of a CUtensorMap.
 *
 * api/texture/api_tensor_map.c encodes the map, and memory/tensor_copy.c reads
 * it. The layout is not that of any GPU. A checksum covers all fields, so a
 * copy from a pointer that is no tensor map faults instead of reading memory at
 * random addresses. The values of the enumerations are those of the driver. */
#ifndef KILN_CPU_TENSOR_MAP_H
#define KILN_CPU_TENSOR_MAP_H

#include "../../base/base.h"

enum { KILN__TENSOR_RANK = 5, KILN__TENSOR_MAP_BYTES = 128 };

typedef enum kiln__cpu_tensor_mode {
  KILN__TENSOR_TILED = 0,
  KILN__TENSOR_IM2COL
} kiln__cpu_tensor_mode;

typedef struct kiln__cpu_tensor_map {
  uint64_t checksum; /* written by kiln__cpu_tensor_map_seal() */
  uint64_t address;  /* device address of element 0 */
  /* distance in bytes between neighbours along dimension i + 1 */
  uint64_t stride[KILN__TENSOR_RANK - 1];
  uint32_t last[KILN__TENSOR_RANK]; /* size of each dimension, minus 1 */
  uint16_t box[KILN__TENSOR_RANK];  /* tiled: size of the box in elements */
  uint8_t step[KILN__TENSOR_RANK];  /* element stride within the box */
  uint8_t rank;
  uint8_t type;       /* CUtensorMapDataType */
  uint8_t interleave; /* CUtensorMapInterleave */
  uint8_t swizzle;    /* CUtensorMapSwizzle */
  uint8_t fill;       /* CUtensorMapFloatOOBfill */
  uint8_t mode;       /* kiln__cpu_tensor_mode */
  uint8_t promotion;  /* CUtensorMapL2promotion; has no effect */
  /* im2col: offsets of the corners of the bounding box, in the order W, H, D */
  int16_t lower[KILN__TENSOR_RANK - 2], upper[KILN__TENSOR_RANK - 2];
  uint16_t channels, pixels; /* im2col: elements per column and columns */
  uint8_t unused[22];
} kiln__cpu_tensor_map;

_Static_assert(sizeof(kiln__cpu_tensor_map) == KILN__TENSOR_MAP_BYTES,
               "a tensor map has 128 bytes");

/* Writes the checksum of a map whose fields have changed. */
void kiln__cpu_tensor_map_seal(kiln__cpu_tensor_map *map);
/* Returns true if the bytes are a tensor map that this device encoded, and all
 * fields are within their ranges. */
bool kiln__cpu_tensor_map_valid(const kiln__cpu_tensor_map *map);
/* Returns the number of bytes per element of a CUtensorMapDataType. The packed
 * types of 4 and 6 bits, which need compute capability 10.0, and unknown types
 * have 0. */
uint32_t kiln__cpu_tensor_element_bytes(unsigned type);

#endif
