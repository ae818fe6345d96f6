/* address_range.h -- what an address of the CPU device means: the windows of
 * the state spaces, and the record of one allocated range.
 *
 * memory/ keeps the ranges. Handlers in exec/ and the checks in watch/ work on
 * copies of them, so that a look-up takes no lock. A copy is valid as long as
 * the epoch of the memory has not changed since it was made. */
#ifndef KILN_CPU_ADDRESS_RANGE_H
#define KILN_CPU_ADDRESS_RANGE_H

#include "../../base/base.h"

#include <stdatomic.h>

/* A generic address within one of these windows belongs to another state space
 * than global: its offset in the window is the address there. Every window has
 * KILN__WINDOW_BYTES bytes. */
#define KILN__WINDOW_SHARED UINT64_C(0x110000000000)
#define KILN__WINDOW_LOCAL UINT64_C(0x120000000000)
#define KILN__WINDOW_PARAM UINT64_C(0x130000000000)
/* + 16 * number of the function */
#define KILN__WINDOW_CODE UINT64_C(0x140000000000)
#define KILN__WINDOW_BYTES (UINT64_C(1) << 32)
#define KILN__DEVICE_BASE UINT64_C(0x200000000000)
/* An address of shared memory that mapa made for another block of the cluster:
 * (rank + 1) << KILN__CLUSTER_SHIFT | offset. */
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

/* One range of addresses: first <= address < last. */
typedef struct kiln__cpu_range {
  uint64_t first, last;
  uint8_t *host;    /* where the byte at `first` lies in this process */
  uint8_t *valid;   /* initialisation check: one bit per byte; NULL: not kept */
  void *shadow;     /* of the race check, owned by watch/; NULL: none */
  void *owner;      /* context that cuPointerGetAttribute reports */
  const char *name; /* name of the variable, borrowed; NULL: an allocation */
  /* allocations are numbered from 1 in the order in which they were made */
  uint64_t number;
  kiln__cpu_range_kind kind;
  int device; /* ordinal; -1: host memory */
} kiln__cpu_range;

/* The part of the address map that look-ups read without its lock; the rest is
 * private to address_space.c. */
typedef struct kiln__cpu_memory {
  _Atomic uint64_t epoch;
} kiln__cpu_memory;

/* The number that changes whenever a range is added or removed. Whoever keeps
 * copies of ranges compares it before using one. Acquires, so that a range that
 * was added before is seen. */
static inline uint64_t kiln__cpu_memory_epoch(const kiln__cpu_memory *memory)
{
  return atomic_load_explicit(&memory->epoch, memory_order_acquire);
}

#endif
