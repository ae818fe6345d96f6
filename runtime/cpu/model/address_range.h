/* address_range.h -- what an address of the CPU device means: the windows of the
 * state spaces, and the record of one allocated range.
 *
 * memory/ keeps the ranges; handlers in exec/ and the checks in watch/ read
 * copies of them. A copy is valid as long as the memory's epoch has not
 * changed since it was made. */
#ifndef KILN_CPU_ADDRESS_RANGE_H
#define KILN_CPU_ADDRESS_RANGE_H

#include "../../base/base.h"

#include <stdatomic.h>

/* Generic addresses of the other state spaces: window + offset. */
#define KILN__WINDOW_SHARED UINT64_C(0x110000000000)
#define KILN__WINDOW_LOCAL UINT64_C(0x120000000000)
#define KILN__WINDOW_PARAM UINT64_C(0x130000000000)
#define KILN__WINDOW_CODE UINT64_C(0x140000000000) /* + function number * 16 */
#define KILN__WINDOW_BYTES (UINT64_C(1) << 32)
#define KILN__DEVICE_BASE UINT64_C(0x200000000000)
/* Offsets in shared memory of another block of the cluster, from mapa: (rank +
 * 1) << 24 | offset. */
enum { KILN__CLUSTER_SHIFT = 24 };

typedef enum kiln__cpu_range_kind {
  KILN__RANGE_DEVICE = 0, /* cuMemAlloc */
  KILN__RANGE_POOL,       /* cuMemAllocAsync */
  KILN__RANGE_GLOBAL,     /* a module's variable */
  KILN__RANGE_CONST,
  KILN__RANGE_HOST, /* cuMemHostAlloc, cuMemHostRegister */
  KILN__RANGE_HEAP, /* malloc in a kernel */
  KILN__RANGE_MANAGED,
  KILN__RANGE_INTERNAL /* workspaces of grid-wide synchronisation */
} kiln__cpu_range_kind;

/* Addresses first <= a < last. */
typedef struct kiln__cpu_range {
  uint64_t first, last;
  uint8_t *host;    /* bytes of `first` */
  uint8_t *valid;   /* initialisation check: one bit a byte; NULL: not kept */
  void *shadow;     /* race check's, owned by watch/; NULL: none */
  void *owner;      /* the context, for cuPointerGetAttribute and peers */
  const char *name; /* variable's name, or NULL; borrowed */
  uint64_t number;  /* of the allocation, from 1, in order */
  kiln__cpu_range_kind kind;
  int device; /* ordinal; -1: host memory */
} kiln__cpu_range;

/* What look-ups by many threads share; the rest is memory.c's own. */
typedef struct kiln__cpu_memory {
  _Atomic uint64_t epoch;
} kiln__cpu_memory;

/* Changes whenever a range is added or removed: caches compare it. */
static inline uint64_t kiln__cpu_memory_epoch(const kiln__cpu_memory *memory)
{
  return atomic_load_explicit(&memory->epoch, memory_order_acquire);
}

#endif
