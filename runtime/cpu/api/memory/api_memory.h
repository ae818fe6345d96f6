/* api_memory.h -- declares the table of all allocations (the ledger), and
 * access to the bytes of an allocation. */
#ifndef KILN_CPU_API_MEMORY_H
#define KILN_CPU_API_MEMORY_H

#include "../graph/graph_parts.h"

/* Advice of cuMemAdvise() for an allocation. A location of type 0 is none. */
typedef struct kiln__cpu_advice {
  bool read_mostly;
  uint32_t accessed_by; /* bit 0: the host; bit i + 1: device i */
  CUmemLocation preferred, prefetched;
} kiln__cpu_advice;

typedef struct kiln__cpu_block_info {
  CUdeviceptr first;
  size_t size; /* size in bytes that the program requested */
  kiln__cpu_range_kind kind;
  int device;
  /* context that owns the memory; NULL if a graph or a pool owns it */
  CUcontext context;
  /* flags of cuMemHostAlloc, cuMemHostRegister or cuMemAllocManaged */
  unsigned flags;
  /* true for memory of cuMemHostRegister, which belongs to the program */
  bool registered;
  CUmemoryPool pool;
  kiln__cpu_graph_memory *graph; /* memory of a graph's alloc node, or NULL */
  /* true after a free of the memory was enqueued */
  bool freed;
  bool sync_memops;
  kiln__cpu_advice advice; /* stored for queries only */
} kiln__cpu_block_info;

/* Allocates a range of wanted->size bytes of device or host memory. The
 * allocation table stores the other members of *wanted, except `first`. A
 * device range is charged to the device's memory. If wanted->context is NULL,
 * the destruction of a context does not free the range. Returns CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_block_add(CUdeviceptr *out,
                             const kiln__cpu_block_info *wanted);
/* Registers host memory of the program. Returns CUDA_SUCCESS,
 * CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_block_register(void *p, size_t size, CUcontext context,
                                  unsigned flags);
/* The first function charges bytes to a device's memory, the second returns
 * them. Both are for memory that is not an allocation of the program, such as
 * the variables of modules. The first function returns false if the device has
 * too few bytes left. */
bool kiln__cpu_charge(int device, uint64_t size);
void kiln__cpu_uncharge(int device, uint64_t size);
/* Makes the allocation table, which is empty at first. Returns false if there
 * is no memory. */
bool kiln__cpu_ledger_make(kiln__cpu_machine *m);
/* The first function copies the record of the allocation that starts at the
 * address. The second copies the record of the allocation that contains the
 * address. Both return false if there is no such allocation. */
bool kiln__cpu_block_at(CUdeviceptr first, kiln__cpu_block_info *out);
bool kiln__cpu_block_of(CUdeviceptr address, kiln__cpu_block_info *out);
/* Sets a member of the record of the allocation that starts at `first`. Does
 * nothing if no allocation starts there. */
void kiln__cpu_block_set_sync(CUdeviceptr first, bool sync_memops);
void kiln__cpu_block_set_advice(CUdeviceptr first,
                                const kiln__cpu_advice *advice);
/* Marks an allocation as being freed, so that a second free fails at once.
 * Returns false if no allocation starts at `first`, or if the allocation is
 * already marked. */
bool kiln__cpu_block_claim(CUdeviceptr first, kiln__cpu_block_info *out);
/* Removes the allocation from the allocation table and frees it. Running
 * launches may still access the memory until they end. */
void kiln__cpu_block_remove(CUdeviceptr first);

/* Returns the host pointer to the bytes that a copy or fill accesses, or
 * NULL if the access is not allowed. An address outside of all allocations
 * counts as host memory of the program, unless it lies in the range of
 * device addresses. */
uint8_t *kiln__cpu_bytes_of(CUdeviceptr address, size_t size);
/* Does the same as kiln__cpu_bytes_of(), but returns NULL for memory that
 * devices cannot access. */
uint8_t *kiln__cpu_device_bytes(CUdeviceptr address, size_t size);
/* Returns false if the address lies in mapped memory that its device may only read. */
bool kiln__cpu_is_writable(CUdeviceptr address);
/* Returns whether the address is host memory that is neither pinned nor
 * managed. */
bool kiln__cpu_is_pageable(CUdeviceptr address);
/* Returns the kind of memory at an address, for reports. */
kiln_cpu_place kiln__cpu_place_of(CUdeviceptr address);

/* Returns the handle types of the memory behind a mapped range. Defined in memory_map.c. */
int kiln__cpu_mapped_types(const kiln__cpu_range *range);

/* Stores the current memory pool of a device. Returns CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. Defined in memory_pool.c. */
CUresult kiln__cpu_pool_of_device(int device, CUmemoryPool *out);
/* Subtracts a freed allocation from the bytes in use of its pool. */
void kiln__cpu_pool_returned(CUmemoryPool pool, size_t size);

#endif
