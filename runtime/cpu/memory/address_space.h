/* address_space.h -- device memory: which addresses exist, whose they are, and where
 * their bytes lie in this process.
 *
 * One such memory serves all devices that are played. Device addresses lie where no
 * host mapping does, so that a stray host dereference faults; pinned host memory
 * keeps its own address. Between allocations lie gaps of at least 256 bytes that
 * belong to nobody, and freed addresses are not given out again soon. */
#ifndef KILN_CPU_MEMORY_H
#define KILN_CPU_MEMORY_H

#include "../model/address_range.h"

kiln_status kiln__cpu_memory_create(kiln__cpu_memory **out,
                                    const kiln_allocator *a);
void kiln__cpu_memory_free(kiln__cpu_memory *memory);

/* Keep an initialisation bitmap of every range, or stop: ranges that exist
 * count as written. Bitmaps once made stay. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__cpu_memory_keep_valid(kiln__cpu_memory *memory, bool keep);

/* A new range of `size` zero bytes. For checks only variables, constants, host
 * and internal memory count as written from the start.
 *
 * Reads host, owner, name, shadow, kind and device of `wanted` and fills in the
 * rest. align: a power of two; 0: 512. Host and managed memory has the same
 * address here and on devices; with `host` given the bytes are the caller's and
 * stay so.
 * KILN_OK, KILN_EINVAL (no size, or `host` lies in a range), KILN_ENOMEM (also:
 * no addresses left). */
kiln_status kiln__cpu_memory_add(kiln__cpu_memory *memory,
                                 kiln__cpu_range *wanted, uint64_t size,
                                 uint64_t align);
/* Take it out; its bytes go back when no launch is running any more.
 * False: no range starts there. */
bool kiln__cpu_memory_remove(kiln__cpu_memory *memory, uint64_t first);

/* The range that holds `address`, copied; false: none. Any thread. */
bool kiln__cpu_memory_find(kiln__cpu_memory *memory, uint64_t address,
                           kiln__cpu_range *out);
/* For messages: the nearest range below and above; a freed range that held it
 * (`freed`, kept for a while). */
typedef struct kiln__cpu_nearby {
  bool has_below, has_above, was_freed;
  kiln__cpu_range below, above, freed;
} kiln__cpu_nearby;
void kiln__cpu_memory_near(kiln__cpu_memory *memory, uint64_t address,
                           kiln__cpu_nearby *out);

/* Host bytes of [address, address + size), or NULL if they do not all lie in
 * one range. For copies and fills by the host. */
uint8_t *kiln__cpu_memory_host(kiln__cpu_memory *memory, uint64_t address,
                               uint64_t size);
/* For the initialisation check: the host or a copy wrote these bytes. */
void kiln__cpu_memory_written(kiln__cpu_memory *memory, uint64_t address,
                              uint64_t size);
/* A device-to-device copy carries validity along. */
void kiln__cpu_memory_copied(kiln__cpu_memory *memory, uint64_t to,
                             uint64_t from, uint64_t size);

/* Call fn for each range, in order of address; it may add and remove. */
void kiln__cpu_memory_each(kiln__cpu_memory *memory,
                           void (*fn)(void *user, const kiln__cpu_range *range),
                           void *user);

/* Launches hold the bytes of removed ranges alive. */
void kiln__cpu_memory_enter(kiln__cpu_memory *memory);
void kiln__cpu_memory_leave(kiln__cpu_memory *memory);
/* Give a range its `shadow`, unless it has one. The one it has now; NULL: no
 * such range. */
void *kiln__cpu_memory_set_shadow(kiln__cpu_memory *memory, uint64_t first,
                                  void *shadow);

#endif
