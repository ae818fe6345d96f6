/* address_reserve.h -- declares reserved addresses, and the ranges in them whose bytes
 * are files in memory. This is the part of virtual memory management that concerns
 * addresses. All functions are thread-safe. */
#ifndef KILN_CPU_ADDRESS_RESERVE_H
#define KILN_CPU_ADDRESS_RESERVE_H

#include "address_space.h"

/* Reserves `size` bytes of addresses, a multiple of the page size. `align` is a power of
 * two of at least one page. If the addresses at *address are free and aligned, they are
 * taken; otherwise others are. Stores the first address. Returns KILN_OK or
 * KILN_ENOMEM. */
kiln_status kiln__cpu_memory_reserve(kiln__cpu_memory *memory,
                                     uint64_t *address, uint64_t size,
                                     uint64_t align);
/* Frees a reservation. Returns false if no reservation has exactly this begin and size,
 * or if it contains mapped ranges. */
bool kiln__cpu_memory_unreserve(kiln__cpu_memory *memory, uint64_t first,
                                uint64_t size);

/* Maps the first `size` bytes of a file to reserved addresses. Reads device and owner of
 * *wanted. No device has access at first. `written` is true if the initialisation check
 * counts the bytes as written. Returns KILN_OK, KILN_EINVAL if the addresses are not
 * reserved or partly mapped, or KILN_ENOMEM. */
kiln_status kiln__cpu_memory_map_file(kiln__cpu_memory *memory,
                                      const kiln__cpu_range *wanted,
                                      uint64_t first, uint64_t size, int fd,
                                      bool written);
/* Removes the range that starts at `first`, and stores it. Returns false if no mapping
 * starts there. */
bool kiln__cpu_memory_unmap_file(kiln__cpu_memory *memory, uint64_t first,
                                 kiln__cpu_range *out);

/* Sets what the devices of a bit mask may do with the ranges in [first, first + size).
 * Returns false, and changes nothing, if the bytes are not all mapped or a range lies only
 * partly in them. */
bool kiln__cpu_memory_set_access(kiln__cpu_memory *memory, uint64_t first,
                                 uint64_t size, uint32_t devices, bool read,
                                 bool write);
/* Stores the range that one call of kiln__cpu_memory_map_file() made and that contains
 * the address. Returns false if there is none. */
bool kiln__cpu_memory_mapped_at(kiln__cpu_memory *memory, uint64_t address,
                                kiln__cpu_range *out);
/* Stores begin and size of the reservation that contains the address. Returns false if the
 * address is not reserved. */
bool kiln__cpu_memory_reserved_at(kiln__cpu_memory *memory, uint64_t address,
                                  uint64_t *first, uint64_t *size);

#endif
