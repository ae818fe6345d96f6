/* memory.h -- every allocation that the API made, with what the address map
 * does not know of it. */
#ifndef KILN_CPU_API_MEMORY_H
#define KILN_CPU_API_MEMORY_H

#include "../graph/graph_parts.h"

typedef struct kiln__cpu_block_info {
  CUdeviceptr first;
  size_t size; /* as asked for */
  kiln__cpu_range_kind kind;
  int device;
  CUcontext context; /* NULL: of graphs and pools */
  unsigned flags;    /* of cuMemHostAlloc, cuMemHostRegister, managed */
  bool registered;   /* the program's own memory */
  CUmemoryPool pool;
  kiln__cpu_graph_memory *graph; /* of an alloc node */
  bool freed;                    /* a free is on its way in a stream */
  bool sync_memops;
} kiln__cpu_block_info;

/* A new range of a device (its bytes are counted) or of the host.
 * context NULL: lives on its own. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult kiln__cpu_block_add(CUdeviceptr *out, kiln__cpu_range_kind kind,
                             int device, CUcontext context, size_t size);
/* The program's own memory; CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED. */
CUresult kiln__cpu_block_register(void *p, size_t size, CUcontext context,
                                  unsigned flags);
/* Charges bytes to a device's memory, or gives them back, for what is no
 * allocation of the program: variables of modules. False: fewer are left. */
bool kiln__cpu_charge(int device, uint64_t size);
void kiln__cpu_uncharge(int device, uint64_t size);
bool kiln__cpu_ledger_make(kiln__cpu_machine *m);
/* The allocation that starts at, or holds, the address. False: none. */
bool kiln__cpu_block_at(CUdeviceptr first, kiln__cpu_block_info *out);
bool kiln__cpu_block_of(CUdeviceptr address, kiln__cpu_block_info *out);
void kiln__cpu_block_set_pool(CUdeviceptr first, CUmemoryPool pool);
void kiln__cpu_block_set_graph(CUdeviceptr first,
                               kiln__cpu_graph_memory *graph);
void kiln__cpu_block_set_flags(CUdeviceptr first, unsigned flags, bool sync);
/* Bytes of graphs' alloc nodes on a device. */
uint64_t kiln__cpu_graph_bytes(int device);
/* Claim it for freeing: false if it does not start there or is claimed. */
bool kiln__cpu_block_claim(CUdeviceptr first, kiln__cpu_block_info *out);
/* Take it out and give its bytes back. */
void kiln__cpu_block_remove(CUdeviceptr first);

/* Where a copy or fill of the API may go: the bytes in this process, or NULL.
 * Addresses that no allocation has are the program's own host memory, if they
 * can be: device addresses never are. */
uint8_t *kiln__cpu_bytes_of(CUdeviceptr address, size_t size);
/* The same, but only in memory that devices can use. */
uint8_t *kiln__cpu_device_bytes(CUdeviceptr address, size_t size);
/* Host memory that the device does not know: copies with it are staged. */
bool kiln__cpu_is_pageable(CUdeviceptr address);

/* pool.c */
CUresult kiln__cpu_pool_of_device(int device,
                                  CUmemoryPool *out); /* current one */
/* A free has happened: its bytes are the pool's again. */
void kiln__cpu_pool_returned(CUmemoryPool pool, size_t size);

#endif
