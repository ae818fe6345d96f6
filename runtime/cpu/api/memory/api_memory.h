/* api_memory.h -- the ledger of allocations, and access to their bytes. */
#ifndef KILN_CPU_API_MEMORY_H
#define KILN_CPU_API_MEMORY_H

#include "../graph/graph_parts.h"

typedef struct kiln__cpu_block_info {
  CUdeviceptr first;
  size_t size; /* bytes as requested */
  kiln__cpu_range_kind kind;
  int device;
  CUcontext context; /* NULL: belongs to a graph or a pool */
  unsigned flags;    /* as given to cuMemHostAlloc and its like */
  bool registered;   /* by cuMemHostRegister; not ours to free */
  CUmemoryPool pool;
  kiln__cpu_graph_memory *graph; /* NULL: of no alloc node */
  bool freed;                    /* a free is enqueued in a stream */
  bool sync_memops;
} kiln__cpu_block_info;

/* Allocates a range of a device, whose bytes are charged, or of the host. With
 * `context` NULL no context's end frees it. CUDA_SUCCESS,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_block_add(CUdeviceptr *out, kiln__cpu_range_kind kind,
                             int device, CUcontext context, size_t size);
/* Registers memory of the program. CUDA_SUCCESS,
 * CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_block_register(void *p, size_t size, CUcontext context,
                                  unsigned flags);
/* Charges bytes to a device's memory, or gives them back, for what is no
 * allocation of the program: variables of modules. False: fewer are left. */
bool kiln__cpu_charge(int device, uint64_t size);
void kiln__cpu_uncharge(int device, uint64_t size);
/* Makes the empty ledger of the machine. False: no memory. */
bool kiln__cpu_ledger_make(kiln__cpu_machine *m);
/* Copies the entry of the allocation that starts at the address, or that holds
 * it. False: there is none. */
bool kiln__cpu_block_at(CUdeviceptr first, kiln__cpu_block_info *out);
bool kiln__cpu_block_of(CUdeviceptr address, kiln__cpu_block_info *out);
/* Set one member of the entry that starts at `first`; nothing if none does. */
void kiln__cpu_block_set_pool(CUdeviceptr first, CUmemoryPool pool);
void kiln__cpu_block_set_graph(CUdeviceptr first,
                               kiln__cpu_graph_memory *graph);
void kiln__cpu_block_set_flags(CUdeviceptr first, unsigned flags, bool sync);
/* Returns the bytes of all alloc nodes of graphs on a device. */
uint64_t kiln__cpu_graph_bytes(int device);
/* Claims an allocation for freeing, so that a second free fails at once. False:
 * none starts there, or it is claimed. */
bool kiln__cpu_block_claim(CUdeviceptr first, kiln__cpu_block_info *out);
/* Removes the entry and frees the bytes. Launches that run may still touch them
 * until they end. */
void kiln__cpu_block_remove(CUdeviceptr first);

/* Returns the bytes of this process that a copy or fill may access, or NULL. An
 * address outside of all allocations counts as host memory of the program, unless
 * it lies where device addresses do. */
uint8_t *kiln__cpu_bytes_of(CUdeviceptr address, size_t size);
/* The same, but NULL for memory that devices cannot access. */
uint8_t *kiln__cpu_device_bytes(CUdeviceptr address, size_t size);
/* Is it host memory that is neither pinned nor managed? */
bool kiln__cpu_is_pageable(CUdeviceptr address);

/* memory_pool.c: stores the current pool of a device. CUDA_SUCCESS,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_pool_of_device(int device, CUmemoryPool *out);
/* Called when an allocation of a pool was freed: its bytes are no longer in use. */
void kiln__cpu_pool_returned(CUmemoryPool pool, size_t size);

#endif
