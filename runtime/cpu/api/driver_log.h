/* driver_log.h -- declares the log of the driver, which programs read by cuLogs*. */
#ifndef KILN_CPU_DRIVER_LOG_H
#define KILN_CPU_DRIVER_LOG_H

#include "machine.h"

/* Appends an error message of one or several lines, and passes it to the callbacks of the
 * program. The caller holds no lock. Without memory the message is lost. Thread-safe. */
void kiln__cpu_log_error(const char *text, size_t size);

#endif
