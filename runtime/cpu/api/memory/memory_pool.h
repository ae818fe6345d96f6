/* memory_pool.h -- declares memory pools for the files that implement them. */
#ifndef KILN_CPU_MEMORY_POOL_H
#define KILN_CPU_MEMORY_POOL_H

#include "api_memory.h"

/* number of reuse policies of a pool, which are stored for the getter only */
enum { KILN__POOL_POLICIES = 3 };

struct CUmemPoolHandle_st {
  int device; /* device ordinal; -1 for host memory */
  bool is_default;
  /* true if the pool was destroyed; the pool is freed with its last
   * allocation */
  bool destroyed;
  uint64_t max_size;
  CUmemPoolProps props;
  int policy[KILN__POOL_POLICIES];
  uint64_t threshold;
  uint64_t used, used_high, reserved, reserved_high;
  unsigned n_blocks;
  CUmemAccess_flags access[KILN__MAX_DEVICES];
  /* file that names the pool for other processes, or -1 */
  int name_fd;
  uint64_t name;     /* inode of that file; 0 if no process shares the pool */
  bool imported;     /* true if another process owns the pool */
  CUmemoryPool next; /* next pool in machine.pools */
};

/* Makes a pool on a device. `props` may be NULL. Returns NULL if there is no memory. The
 * caller holds machine.lock. */
CUmemoryPool kiln__cpu_pool_new(int device, const CUmemPoolProps *props);
/* Counts an allocation in the pool. Returns false if the allocation would exceed the
 * pool's maximum size. kiln__cpu_pool_returned() is the opposite. */
bool kiln__cpu_pool_take(CUmemoryPool pool, size_t size);

#endif
