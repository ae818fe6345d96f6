/* tensor_map_edit.c -- performs tensormap.replace, which changes one field of a
 * tensor map in memory, and tensormap.cp_fenceproxy, which copies a tensor map
 * from shared to global memory.
 *
 * A map that a program builds may be incomplete between two changes, so only a
 * copy checks the ranges of its fields. */
#include "../model/tensor_map.h"
#include "grid_job.h"

#include "../exec/bulk.h"

#include "../../driver/abi_tensor.h"

/* Returns the host address of the first `size` bytes of a tensor map, or NULL
 * after a fault. `at` is an address in the state space `space`. */
static uint8_t *map_bytes(kiln__cpu_warp *w, const kiln__cpu_insn *in, int lane,
                          kiln__cpu_space space, uint64_t at, uint64_t size)
{
  uint8_t *bytes;

  if (space == KILN__SPACE_SHARED)
    at += KILN__WINDOW_SHARED;
  bytes = size == 0 ? NULL : kiln__cpu_lane_bytes(w, lane, at, size);
  if (at % 64 != 0)
    kiln__cpu_fault(w, in, KILN__FAULT_MISALIGNED, lane, at, 64);
  else if (bytes == NULL)
    kiln__cpu_fault(w, in, KILN__FAULT_ADDRESS, lane, at,
                    KILN__TENSOR_MAP_BYTES);
  return w->fault ? NULL : bytes;
}

/* Returns the driver's number of an element type, which has another number in
 * tensormap.replace. Returns 255 for a type that the device lacks. */
static uint8_t type_of(uint64_t number)
{
  static const uint8_t types[] = {
      CU_TENSOR_MAP_DATA_TYPE_UINT8,       CU_TENSOR_MAP_DATA_TYPE_UINT16,
      CU_TENSOR_MAP_DATA_TYPE_UINT32,      CU_TENSOR_MAP_DATA_TYPE_INT32,
      CU_TENSOR_MAP_DATA_TYPE_UINT64,      CU_TENSOR_MAP_DATA_TYPE_INT64,
      CU_TENSOR_MAP_DATA_TYPE_FLOAT16,     CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
      CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
      CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
      CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ};

  return number < sizeof types ? types[number] : 255;
}

/* Changes a field of a map. `index` selects a dimension. The value of rank is
 * the rank minus 1. */
static void change(kiln__cpu_tensor_map *map, kiln__cpu_map_field field,
                   uint32_t index, uint64_t value)
{
  switch (field) {
  case KILN__MAP_ADDRESS:
    map->address = value;
    break;
  case KILN__MAP_RANK:
    map->rank = (uint8_t)(value % KILN__TENSOR_RANK + 1);
    break;
  case KILN__MAP_BOX:
    map->box[index] = (uint16_t)(value < 65536 ? value : UINT16_MAX);
    break;
  case KILN__MAP_SIZE:
    map->last[index] = (uint32_t)value - 1;
    break;
  case KILN__MAP_STRIDE:
    map->stride[index] = value;
    break;
  case KILN__MAP_STEP:
    map->step[index] = (uint8_t)(value < 256 ? value : 0);
    break;
  case KILN__MAP_TYPE:
    map->type = type_of(value);
    break;
  case KILN__MAP_INTERLEAVE:
    map->interleave = (uint8_t)value;
    break;
  case KILN__MAP_SWIZZLE:
    map->swizzle = (uint8_t)value;
    break;
  case KILN__MAP_FILL:
    map->fill = (uint8_t)value;
    break;
  }
}

/* Returns how many of the 128 bytes of a map in shared memory exist. A GPU
 * allocates shared memory in larger units than programs ask for, so it changes a
 * field of a map that is not whole without a fault. */
static uint64_t present(kiln__cpu_warp *w, int lane, uint64_t at)
{
  uint64_t n = KILN__TENSOR_MAP_BYTES;

  while (n > 0 && kiln__cpu_lane_bytes(w, lane, at, n) == NULL)
    n--;
  return n;
}

/* Returns the new value of a field: an immediate for the enumerations, which
 * the instruction holds in imm2, otherwise a register. */
static uint64_t value_of(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         int lane, kiln__cpu_map_field field)
{
  if (field >= KILN__MAP_TYPE)
    return (uint64_t)in->imm2;
  return field == KILN__MAP_ADDRESS || field == KILN__MAP_STRIDE
             ? KILN__SLOT(const uint64_t, in->b)[lane]
             : KILN__SLOT(const uint32_t, in->b)[lane];
}

static uint64_t address_of(const kiln__cpu_warp *w, int32_t slot, bool wide,
                           int64_t more, int lane)
{
  if (slot < 0)
    return (uint64_t)more;
  return wide ? KILN__SLOT(const uint64_t, slot)[lane] + (uint64_t)more
              : KILN__SLOT(const uint32_t, slot)[lane] + (uint32_t)more;
}

void kiln__cpu_map_replace(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           kiln__cpu_map_field field)
{
  for (uint32_t m = w->mask; m != 0 && !w->fault; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const uint64_t at =
        address_of(w, in->a, (in->flags & KILN__WIDE_A) != 0, in->imm, lane);
    uint64_t size = KILN__TENSOR_MAP_BYTES;
    kiln__cpu_tensor_map map = {0};
    uint8_t *bytes;

    if (in->space == KILN__SPACE_SHARED)
      size = present(w, lane, at + KILN__WINDOW_SHARED);
    bytes = map_bytes(w, in, lane, (kiln__cpu_space)in->space, at, size);
    if (bytes == NULL)
      return;
    memcpy(&map, bytes, size);
    change(&map, field, (uint32_t)in->imm2 % KILN__TENSOR_RANK,
           value_of(w, in, lane, field));
    kiln__cpu_tensor_map_seal(&map);
    memcpy(bytes, &map, size);
  }
}

void kiln__cpu_map_copy(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  const int lane = __builtin_ctz(w->mask);
  uint8_t *const to = map_bytes(
      w, in, lane, KILN__SPACE_GLOBAL,
      address_of(w, in->a, (in->flags & KILN__WIDE_A) != 0, in->imm, lane),
      KILN__TENSOR_MAP_BYTES);
  const uint8_t *const from =
      to == NULL
          ? NULL
          : map_bytes(w, in, lane, KILN__SPACE_SHARED,
                      address_of(w, in->b, (in->flags & KILN__WIDE_B) != 0,
                                 in->imm2, lane),
                      KILN__TENSOR_MAP_BYTES);

  if (from != NULL)
    memcpy(to, from, KILN__TENSOR_MAP_BYTES);
}
