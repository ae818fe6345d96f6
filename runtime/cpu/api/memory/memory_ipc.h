/* memory_ipc.h -- declares memory that other processes share. */
#ifndef KILN_CPU_MEMORY_IPC_H
#define KILN_CPU_MEMORY_IPC_H

#include "api_memory.h"

/* Value of `flags` in the record of memory that cuIpcOpenMemHandle() opened. Only
 * cuIpcCloseMemHandle() releases such memory. */
enum { KILN__OPENED_MEMORY = 1 << 30 };

static inline bool kiln__cpu_is_opened(const kiln__cpu_block_info *info)
{
  return info->kind == KILN__RANGE_DEVICE && info->flags == KILN__OPENED_MEMORY;
}

#endif
