/* address_space.h -- declares the map of device memory. The map records which
 * addresses exist, which allocation an address belongs to, and where its bytes
 * lie in this process.
 *
 * One address space serves all devices of the process. Device addresses lie
 * where no host mapping does, so a host dereference of a device address faults.
 * Pinned and managed memory has the same address on the host and on devices.
 *
 * At least 256 unused bytes separate two ranges, and freed addresses are reused
 * as late as possible. An access past the end of a range or after a free is
 * therefore detected.
 *
 * All functions are thread-safe, also while launches run. */
#ifndef KILN_CPU_MEMORY_H
#define KILN_CPU_MEMORY_H

#include "../model/address_range.h"

/* Creates an empty address space. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__cpu_memory_create(kiln__cpu_memory **out,
                                    const kiln_allocator *a);
/* Frees the address space with all its ranges. NULL is allowed. No launch may
 * be running. */
void kiln__cpu_memory_free(kiln__cpu_memory *memory);

/* Enables or disables an initialisation bitmap for new ranges. Existing ranges
 * count as initialised. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__cpu_memory_keep_valid(kiln__cpu_memory *memory, bool keep);

/* Adds a range of `size` zero bytes. Reads host, owner, name, shadow, kind and
 * device of *wanted and fills in the other members.
 *
 * `align` is a power of two; 0 means 512 bytes. If wanted->host is set, the
 * caller owns the bytes, so this module neither allocates nor frees them. The
 * initialisation check treats variables, constants, host memory and internal
 * memory as written from the start.
 *
 * Returns KILN_OK. Returns KILN_EINVAL if `size` is 0 or `host` lies in an
 * existing range. Returns KILN_ENOMEM if there is no host memory or no address
 * is left. */
kiln_status kiln__cpu_memory_add(kiln__cpu_memory *memory,
                                 kiln__cpu_range *wanted, uint64_t size,
                                 uint64_t align);
/* Removes the range that starts at `first`. The bytes of the range are freed
 * when no launch runs any more. Returns false if no range starts at `first`. */
bool kiln__cpu_memory_remove(kiln__cpu_memory *memory, uint64_t first);

/* Copies the range that contains `address` to *out. Returns false if no range
 * contains the address. */
bool kiln__cpu_memory_find(kiln__cpu_memory *memory, uint64_t address,
                           kiln__cpu_range *out);
/* The ranges around an address, for messages: the nearest range below the
 * address, the nearest range above it, and the freed range that used to contain
 * it. The address space remembers the last 1,024 freed ranges. */
typedef struct kiln__cpu_nearby {
  bool has_below, has_above, was_freed;
  bool in_reserved; /* true if the address is reserved, mapped or not */
  kiln__cpu_range below, above, freed;
} kiln__cpu_nearby;
void kiln__cpu_memory_near(kiln__cpu_memory *memory, uint64_t address,
                           kiln__cpu_nearby *out);

/* Returns the host pointer to the bytes [address, address + size), or NULL if
 * those bytes do not all lie in one range. Copies and fills on the host use
 * this function. The pointer is valid until the range is removed. */
uint8_t *kiln__cpu_memory_host(kiln__cpu_memory *memory, uint64_t address,
                               uint64_t size);
/* Marks bytes as initialised. Called after the host or a copy wrote the
 * bytes. */
void kiln__cpu_memory_written(kiln__cpu_memory *memory, uint64_t address,
                              uint64_t size);
/* Copies the initialisation state of `size` bytes from address `from` to
 * address `to`, as a device-to-device copy requires. */
void kiln__cpu_memory_copied(kiln__cpu_memory *memory, uint64_t to,
                             uint64_t from, uint64_t size);

/* Calls `fn` for each range in ascending order of address. `fn` may add and
 * remove ranges. */
void kiln__cpu_memory_each(kiln__cpu_memory *memory,
                           void (*fn)(void *user, const kiln__cpu_range *range),
                           void *user);

/* The first function records the begin of a launch, the second its end. If a
 * range is removed while launches run, its bytes stay allocated until the last
 * launch ends. */
void kiln__cpu_memory_enter(kiln__cpu_memory *memory);
void kiln__cpu_memory_leave(kiln__cpu_memory *memory);
/* Sets the pointer to the race check's shadow memory of the range at `first`,
 * unless the range already has one. Returns the pointer that the range has
 * afterwards, or NULL if no range starts at `first`. */
void *kiln__cpu_memory_set_shadow(kiln__cpu_memory *memory, uint64_t first,
                                  void *shadow);

#endif
