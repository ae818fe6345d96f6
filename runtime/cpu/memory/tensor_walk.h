/* tensor_walk.h -- declares the geometry of tensor copies: which bytes of
 * global memory and of shared memory a cp.async.bulk.tensor moves.
 *
 * The functions only compute addresses and convert elements. The caller moves
 * the bytes. All functions are pure and thread-safe. */
#ifndef KILN_CPU_TENSOR_WALK_H
#define KILN_CPU_TENSOR_WALK_H

#include "../model/tensor_map.h"

/* The coordinates of one copy. */
typedef struct kiln__cpu_tensor_place {
  const kiln__cpu_tensor_map *map;
  int32_t coord[KILN__TENSOR_RANK];
  /* im2col: offsets that are added to the spatial coordinates */
  uint16_t offset[KILN__TENSOR_RANK - 2];
} kiln__cpu_tensor_place;

/* One row of a box: the elements that differ only in the innermost coordinate.
 * The first `before` and the last `after` bytes of the row lie outside the
 * tensor. */
typedef struct kiln__cpu_tensor_row {
  /* position of the row in the box in shared memory, before swizzling */
  uint32_t shared;
  uint32_t before, inside, after; /* sizes in bytes */
  /* If `unit` is not 0, the `inside` bytes are units of this many bytes, which
   * are `apart` bytes apart in global memory. */
  uint32_t unit, apart;
  /* device address of the `inside` bytes */
  uint64_t global;
} kiln__cpu_tensor_row;

/* Receives one row. Returns false to end the walk. */
typedef bool kiln__cpu_tensor_row_fn(void *user,
                                     const kiln__cpu_tensor_row *row);

/* Passes each row of the box to `fn` in the order in which the rows lie in
 * shared memory. Returns false if `fn` returned false. */
bool kiln__cpu_tensor_walk(const kiln__cpu_tensor_place *place,
                           kiln__cpu_tensor_row_fn *fn, void *user);
/* Returns whether the hardware accepts the coordinates. Unless the tensor is
 * interleaved, a row must begin at a multiple of 16 bytes. An im2col copy must
 * start within the bounding box. A store must have no negative coordinate, and
 * its bounding box must lie within the tensor. */
bool kiln__cpu_tensor_starts(const kiln__cpu_tensor_place *place, bool store);
/* Returns the dimension W of an im2col map: 1, or 0 if it is interleaved. */
uint32_t kiln__cpu_tensor_width(const kiln__cpu_tensor_map *map);
/* Returns the number of bytes of shared memory that the box of a map spans. */
uint32_t kiln__cpu_tensor_box_bytes(const kiln__cpu_tensor_map *map);
/* Returns the number of bytes that a load counts at its mbarrier. */
uint32_t kiln__cpu_tensor_counted_bytes(const kiln__cpu_tensor_map *map);
/* Returns the address in shared memory at which a byte lies whose address
 * without swizzling is `at`. */
uint32_t kiln__cpu_tensor_swizzled(const kiln__cpu_tensor_map *map,
                                   uint32_t at);
/* Fills n bytes with the value of elements outside the tensor. */
void kiln__cpu_tensor_fill(const kiln__cpu_tensor_map *map, uint8_t *to,
                           uint32_t n);
/* Rounds loaded elements of type .tf32 in place. The types with .ftz do not flush
 * subnormal numbers in a copy. */
void kiln__cpu_tensor_convert(const kiln__cpu_tensor_map *map, uint8_t *at,
                              uint32_t n);

#endif
