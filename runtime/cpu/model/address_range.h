/* address_range.h -- defines the meaning of an address on the CPU device: the
 * windows of the state spaces, and the record of one allocated range.
 *
 * memory/ stores the ranges. Handlers in exec/ and the checks in watch/ use
 * copies of the ranges, so that a look-up takes no lock. A copy is valid as
 * long as the epoch of the memory has not changed since the copy was made. */
#ifndef KILN_CPU_ADDRESS_RANGE_H
#define KILN_CPU_ADDRESS_RANGE_H

#include "../../base/base.h"

#include <stdatomic.h>

/* A generic address within one of these windows belongs to a state space other
 * than global. The offset of the address in the window is the address within
 * that state space. Every window spans KILN__WINDOW_BYTES bytes. */
#define KILN__WINDOW_SHARED UINT64_C(0x110000000000)
#define KILN__WINDOW_LOCAL UINT64_C(0x120000000000)
#define KILN__WINDOW_PARAM UINT64_C(0x130000000000)
/* window of function addresses; the function with index i has the address
 * KILN__WINDOW_CODE + code_offset of its program + 16 * i */
#define KILN__WINDOW_CODE UINT64_C(0x140000000000)
#define KILN__WINDOW_BYTES (UINT64_C(1) << 32)
#define KILN__DEVICE_BASE UINT64_C(0x200000000000)
/* addresses of cuMemAddressReserve */
#define KILN__RESERVED_BASE UINT64_C(0x300000000000)
#define KILN__RESERVED_END UINT64_C(0x500000000000)
/* Format of a shared-memory address that mapa returns for another block of the
 * cluster: (rank + 1) << KILN__CLUSTER_SHIFT | offset. */
enum { KILN__CLUSTER_SHIFT = 24 };

typedef enum kiln__cpu_range_kind {
  KILN__RANGE_DEVICE = 0, /* memory of cuMemAlloc */
  KILN__RANGE_POOL,       /* memory of cuMemAllocAsync */
  KILN__RANGE_GLOBAL,     /* variable of a module */
  KILN__RANGE_CONST,
  KILN__RANGE_HOST, /* memory of cuMemHostAlloc or cuMemHostRegister */
  KILN__RANGE_HEAP, /* memory of malloc() in a kernel */
  KILN__RANGE_MANAGED,
  KILN__RANGE_INTERNAL /* workspace of grid-wide synchronisation */
} kiln__cpu_range_kind;

/* One range of allocated addresses. It contains an address if first <= address
 * < last. */
typedef struct kiln__cpu_range {
  uint64_t first, last;
  uint8_t *host; /* host pointer to the byte at address `first` */
  /* bitmap of the initialisation check, with one bit per byte of the range;
   * NULL without a bitmap */
  uint8_t *valid;
  /* shadow memory of the race check, owned by watch/; NULL without one */
  void *shadow;
  void *owner; /* context that cuPointerGetAttribute reports */
  /* name of the variable, not owned by this struct; NULL for an allocation */
  const char *name;
  /* number of the allocation, counted from 1 in order of creation */
  uint64_t number;
  kiln__cpu_range_kind kind;
  int device; /* device ordinal; -1 for host memory */
  /* bit d is set if kernels of device d have no access: memory of cuMemMap before
   * cuMemSetAccess */
  uint32_t denied;
  uint32_t read_only; /* bit d is set if kernels of device d may only read */
  bool mapped;        /* true for memory of cuMemMap */
} kiln__cpu_range;

/* The part of the address map that is read without a lock. The other members of
 * the map are private to address_space.c. */
typedef struct kiln__cpu_memory {
  _Atomic uint64_t epoch;
} kiln__cpu_memory;

/* Returns a number that changes whenever a range is added or removed. A thread
 * that keeps copies of ranges compares this number before it uses a copy. The
 * load has acquire order, so that the thread sees ranges that were added
 * earlier. */
static inline uint64_t kiln__cpu_memory_epoch(const kiln__cpu_memory *memory)
{
  return atomic_load_explicit(&memory->epoch, memory_order_acquire);
}

#endif
