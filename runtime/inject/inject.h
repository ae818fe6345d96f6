/* inject.h -- declares the parts of libkiln_profile.so, which `kiln profile`
 * injects into a program.
 *
 * The library must not disturb the program: it prints nothing, changes no
 * settings of the process, and after a failure the program runs on without
 * being recorded. Messages for the user go into the record file. */
#ifndef KILN_INJECT_H
#define KILN_INJECT_H

#include "tool/profile_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- record_file.c ------------------------------------------------------- */

/* Creates the record file of this process in the folder that the command
 * specified. `begin_ns` is the present time on the clock of the records.
 * @return false if there is no folder or no file */
bool kiln__record_open(profile_source source, uint32_t version,
                       uint64_t begin_ns);
/* Appends a record, whose type, size and name the caller has set. Drops and
 * counts the record if the file has reached its limit or the disk is full.
 * Thread-safe; does nothing in forked children. */
void kiln__record_put(const profile_record *record);
/* Returns the number of a text, and appends the text to the file when it is
 * first used. Thread-safe. */
uint32_t kiln__record_name(const char *text);
/* Appends a message for the user. */
void kiln__record_note(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* Adds records that were lost before they reached the file. */
void kiln__record_lost(uint64_t n);
/* Appends the end record, and gives the file its final size. */
void kiln__record_close(void);
/* Returns the number of the calling thread in the operating system. */
uint32_t kiln__record_thread(void);

/* ---- inject_cpu.c, inject_cupti.c ---------------------------------------- */

/* Begins to record the CPU device, if it is this process's driver.
 * @return false if it is not */
bool kiln__inject_cpu(void);
/* Finds CUPTI and begins to record the GPU. If that fails, the record file
 * contains a note. */
void kiln__inject_cupti(void);
/* Fetches all records that CUPTI still holds. */
void kiln__inject_cupti_flush(bool forced);

/* Returns whether calls of the API are to be recorded. */
bool kiln__inject_calls(void);

#endif
