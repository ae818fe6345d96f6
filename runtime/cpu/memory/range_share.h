/* range_share.h -- declares how a range gets bytes that other processes share. */
#ifndef KILN_CPU_RANGE_SHARE_H
#define KILN_CPU_RANGE_SHARE_H

#include "address_space.h"

/* Makes a mapping the host memory of the range that starts at `first`, and frees the
 * earlier memory when no launch runs any more. The range owns the mapping from then on.
 * The caller has copied the bytes, and makes sure that nothing accesses the range during
 * the call. Returns false if no range starts at `first`. */
bool kiln__cpu_memory_share(kiln__cpu_memory *memory, uint64_t first,
                            void *mapping, size_t bytes);

#endif
