/* missing.h -- records what a program asked for and the CPU device lacks: driver
 * functions, functions of libraries on top of the driver, and private tables.
 * kiln_cpu_note_missing() of cpu.h adds to the same record. */
#ifndef KILN_CPU_MISSING_H
#define KILN_CPU_MISSING_H

/* Type of a callback that receives the name of what is missing, what the user
 * can do ("" for an unimplemented driver function), and the number of calls. */
typedef void (*kiln__cpu_missing_fn)(void *user, const char *name,
                                     const char *advice, unsigned calls);

/* Calls `each` for every unimplemented function that the process has called, in
 * the order of entry_points.def, and then for the notes in the order of their
 * first call. The callback must not call the CPU device. Thread-safe. Calls
 * that other threads make at the same time may or may not be counted. */
void kiln__cpu_each_missing(kiln__cpu_missing_fn each, void *user);

/* Does the same as kiln_cpu_note_missing(), for callers inside the library: a
 * reference to the public function from a file that is not exported would hide
 * the function. */
void kiln__cpu_note(const char *name, const char *advice);

/* Adds a note that the code at the address `caller` asked for a private table of
 * the driver. */
void kiln__cpu_note_table(const void *caller);

#endif
