/* memory_ipc.h -- declares memory that other processes share. */
#ifndef KILN_CPU_MEMORY_IPC_H
#define KILN_CPU_MEMORY_IPC_H

#include "api_memory.h"

/* Names an allocation for other processes: the process and its descriptor, the inode,
 * and the size in bytes that the program requested. */
typedef struct kiln__cpu_ipc_name {
  char magic[8];
  int32_t pid, fd;
  uint64_t inode, size;
} kiln__cpu_ipc_name;

/* Value of `flags` in the record of memory that cuIpcOpenMemHandle() opened. Only
 * cuIpcCloseMemHandle() releases such memory. */
enum { KILN__OPENED_MEMORY = 1 << 30 };

static inline bool kiln__cpu_is_opened(const kiln__cpu_block_info *info)
{
  return info->kind == KILN__RANGE_DEVICE && info->flags == KILN__OPENED_MEMORY;
}

/* Returns true if bytes of a program may be a name. kiln__cpu_ipc_open() checks whether
 * the allocation exists. */
bool kiln__cpu_ipc_is_name(const kiln__cpu_ipc_name *name);

/* Moves the bytes of an allocation into a file, once the work of its context has
 * finished, and stores the file's name. */
CUresult kiln__cpu_ipc_share(const kiln__cpu_block_info *info,
                             kiln__cpu_ipc_name *name);

/* Adds the allocation that `wanted` describes, whose bytes are those of the file.
 * Returns CUDA_ERROR_INVALID_HANDLE if the file does not exist any more. */
CUresult kiln__cpu_ipc_open(const kiln__cpu_ipc_name *name,
                            const kiln__cpu_block_info *wanted,
                            CUdeviceptr *out);

#endif
