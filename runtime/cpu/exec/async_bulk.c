/* async_bulk.c -- the handlers of bulk copies. The work is done in
 * run/bulk_copy.c and run/tensor_map_edit.c, which are compiled once for all
 * instruction sets, since a copy moves many bytes per instruction. */
#include "bulk.h"

KILN__CALLS(bulk_load, kiln__cpu_bulk_copy, KILN__BULK_LOAD)
KILN__CALLS(bulk_push, kiln__cpu_bulk_copy, KILN__BULK_PUSH)
KILN__CALLS(bulk_store, kiln__cpu_bulk_copy, KILN__BULK_STORE)
KILN__CALLS(tensor_load, kiln__cpu_bulk_copy, KILN__BULK_TENSOR_LOAD)
KILN__CALLS(tensor_store, kiln__cpu_bulk_copy, KILN__BULK_TENSOR_STORE)
KILN__CALLS(st_async, kiln__cpu_bulk_copy, KILN__BULK_STORE_ELEMENTS)
KILN__CALLS(red_async, kiln__cpu_bulk_copy, KILN__BULK_REDUCE_ELEMENT)

KILN__HANDLER(bulk_commit)
{
  kiln__cpu_bulk_commit(w, in);
}

KILN__HANDLER(bulk_wait)
{
  kiln__cpu_bulk_wait(w, in);
}

KILN__CALLS(map_address, kiln__cpu_map_replace, KILN__MAP_ADDRESS)
KILN__CALLS(map_rank, kiln__cpu_map_replace, KILN__MAP_RANK)
KILN__CALLS(map_box, kiln__cpu_map_replace, KILN__MAP_BOX)
KILN__CALLS(map_size, kiln__cpu_map_replace, KILN__MAP_SIZE)
KILN__CALLS(map_stride, kiln__cpu_map_replace, KILN__MAP_STRIDE)
KILN__CALLS(map_step, kiln__cpu_map_replace, KILN__MAP_STEP)
KILN__CALLS(map_type, kiln__cpu_map_replace, KILN__MAP_TYPE)
KILN__CALLS(map_interleave, kiln__cpu_map_replace, KILN__MAP_INTERLEAVE)
KILN__CALLS(map_swizzle, kiln__cpu_map_replace, KILN__MAP_SWIZZLE)
KILN__CALLS(map_fill, kiln__cpu_map_replace, KILN__MAP_FILL)

KILN__HANDLER(map_copy)
{
  kiln__cpu_map_copy(w, in);
}
