/* readable.h -- declares a probe of the process's memory. */
#ifndef KILN_CPU_READABLE_H
#define KILN_CPU_READABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct kiln__cpu_probe {
  int fd; /* file in memory; -1 if the system has none */
} kiln__cpu_probe;

void kiln__cpu_probe_open(kiln__cpu_probe *probe);
void kiln__cpu_probe_close(kiln__cpu_probe *probe);
/* Returns whether `size` bytes from p on can be read. Without a probe, the result is true
 * unless the range exceeds the address space. */
bool kiln__cpu_readable(const kiln__cpu_probe *probe, const void *p,
                        uint64_t size);

#endif
