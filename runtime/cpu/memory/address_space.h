/* address_space.h -- device memory: which addresses exist, what they belong to,
 * and where their bytes lie in this process.
 *
 * One address space serves all devices of the process. Device addresses lie
 * where no host mapping does, so that a host dereference of one faults. Pinned
 * and managed memory has the same address on the host and on devices. At least
 * 256 bytes between two ranges belong to neither, and freed addresses are
 * reused as late as possible, so that an access past an end or after a free is
 * detected.
 *
 * All functions may be called from any thread, also while launches run. */
#ifndef KILN_CPU_MEMORY_H
#define KILN_CPU_MEMORY_H

#include "../model/address_range.h"

/* Create an empty address space. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__cpu_memory_create(kiln__cpu_memory **out,
                                    const kiln_allocator *a);
/* Free it with all ranges. NULL is allowed; no launch may run. */
void kiln__cpu_memory_free(kiln__cpu_memory *memory);

/* Begin, or stop, keeping an initialisation bitmap for new ranges. Ranges that
 * exist count as initialised. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__cpu_memory_keep_valid(kiln__cpu_memory *memory, bool keep);

/* Add a range of `size` zero bytes. Reads host, owner, name, shadow, kind and
 * device of *wanted and fills in the rest.
 *
 * align is a power of two; 0 means 512 bytes. With wanted->host the bytes are
 * the caller's: they are neither allocated nor freed here. For the
 * initialisation check, variables, constants, host memory and internal memory
 * count as written from the start.
 *
 * KILN_OK; KILN_EINVAL: size is 0, or `host` lies in an existing range;
 * KILN_ENOMEM: no host memory or no addresses left. */
kiln_status kiln__cpu_memory_add(kiln__cpu_memory *memory,
                                 kiln__cpu_range *wanted, uint64_t size,
                                 uint64_t align);
/* Remove the range that starts at `first`. Its bytes are freed when no launch
 * runs any more. False: no range starts there. */
bool kiln__cpu_memory_remove(kiln__cpu_memory *memory, uint64_t first);

/* Copy the range that holds `address` to *out. False: no range holds it. */
bool kiln__cpu_memory_find(kiln__cpu_memory *memory, uint64_t address,
                           kiln__cpu_range *out);
/* What lies around an address, for messages: the nearest range below and above
 * it, and the range that held it before it was freed (the last 1,024 freed
 * ranges are remembered). */
typedef struct kiln__cpu_nearby {
  bool has_below, has_above, was_freed;
  kiln__cpu_range below, above, freed;
} kiln__cpu_nearby;
void kiln__cpu_memory_near(kiln__cpu_memory *memory, uint64_t address,
                           kiln__cpu_nearby *out);

/* Where the bytes [address, address + size) lie in this process; NULL if they
 * do not all lie in one range. Used by copies and fills of the host. The
 * pointer is valid until the range is removed. */
uint8_t *kiln__cpu_memory_host(kiln__cpu_memory *memory, uint64_t address,
                               uint64_t size);
/* Mark bytes as initialised: the host or a copy wrote them. */
void kiln__cpu_memory_written(kiln__cpu_memory *memory, uint64_t address,
                              uint64_t size);
/* Copy the initialisation state of `from` to `to`, as a device-to-device copy
 * does. */
void kiln__cpu_memory_copied(kiln__cpu_memory *memory, uint64_t to,
                             uint64_t from, uint64_t size);

/* Call fn for each range in order of address. fn may add and remove ranges. */
void kiln__cpu_memory_each(kiln__cpu_memory *memory,
                           void (*fn)(void *user, const kiln__cpu_range *range),
                           void *user);

/* Mark the begin and end of a launch. The bytes of ranges that are removed in
 * between stay allocated until the last launch ends. */
void kiln__cpu_memory_enter(kiln__cpu_memory *memory);
void kiln__cpu_memory_leave(kiln__cpu_memory *memory);
/* Set the shadow of the range at `first` unless it has one. Returns the shadow
 * that the range has now; NULL: no such range. */
void *kiln__cpu_memory_set_shadow(kiln__cpu_memory *memory, uint64_t first,
                                  void *shadow);

#endif
