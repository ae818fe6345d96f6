/* address_map.h -- private part of the address space: the map of ranges, which
 * address_space.c and address_reserve.c share. */
#ifndef KILN_CPU_ADDRESS_MAP_H
#define KILN_CPU_ADDRESS_MAP_H

#include "address_space.h"

#include <pthread.h>

enum {
  KILN__GUARD = 256,    /* size in bytes of the unused gap between two ranges */
  KILN__N_FREED = 1024, /* number of removed ranges that messages can name */
  KILN__ADDRESS_DEVICES = 16 /* number of devices, each with an address space */
};

/* Reserved addresses, with the host memory behind them. */
typedef struct kiln__cpu_reserved {
  uint64_t first, last;
  /* Host memory of all bytes, and behind it the initialisation bitmap of all bytes. The
   * parts that are not mapped to a file are private pages of zeros. */
  uint8_t *host;
  size_t host_bytes;
  struct kiln__cpu_reserved *next;
} kiln__cpu_reserved;

typedef struct kiln__cpu_region {
  kiln__cpu_range range;
  /* host pointer to the range's memory; NULL if the caller or a reservation owns it */
  void *base;
  /* size of the mmap() mapping in bytes; 0 if `base` comes from the allocator */
  size_t base_bytes;
  /* reservation that contains the range, or NULL */
  const kiln__cpu_reserved *reserved;
  /* In a reservation, adjacent ranges with the same access are one view: kernels and
   * copies see the addresses [view_first, view_last) as one range. */
  uint64_t view_first, view_last;
  struct kiln__cpu_region *next; /* next region in the list of removed ranges */
} kiln__cpu_region;

typedef struct kiln__cpu_map {
  kiln__cpu_memory head;
  kiln_allocator alloc;
  pthread_rwlock_t lock;
  kiln__cpu_region **regions; /* array of ranges, sorted by address */
  size_t n, capacity;
  kiln__cpu_region *dead;
  atomic_uint running; /* number of running launches */
  bool keep_valid;
  uint64_t numbers;
  /* per device: address at which the next search for free addresses starts */
  uint64_t next[KILN__ADDRESS_DEVICES];
  kiln__cpu_range freed[KILN__N_FREED]; /* ring buffer of removed ranges */
  uint64_t n_freed;                     /* number of ranges removed so far */
  kiln__cpu_reserved *reserved;         /* list, sorted by address */
} kiln__cpu_map;

static inline kiln__cpu_map *kiln__cpu_map_of(kiln__cpu_memory *memory)
{
  return (kiln__cpu_map *)(void *)memory;
}

/* Returns the range of a region as kernels and copies see it. */
kiln__cpu_range kiln__cpu_map_view(const kiln__cpu_region *r);

/* The caller of the functions below holds the write lock of the map, and the read lock
 * where they change nothing. */

/* Returns the index of the first range that ends above `address`. */
size_t kiln__cpu_map_position(const kiln__cpu_map *m, uint64_t address);
/* Inserts a region and gives it a number. Returns false if there is no memory. */
bool kiln__cpu_map_insert(kiln__cpu_map *m, kiln__cpu_region *r);
/* Removes the region with index `at` from the map and remembers its addresses for
 * messages. */
kiln__cpu_region *kiln__cpu_map_take(kiln__cpu_map *m, size_t at);
/* Returns the initialisation bitmap of a region of a reservation, with all bits set to
 * `valid`. */
uint8_t *kiln__cpu_map_bits(const kiln__cpu_region *r, bool valid);
/* Frees the region, or lets the last launch that runs free it. Unlocks the map. */
void kiln__cpu_map_drop(kiln__cpu_map *m, kiln__cpu_region *r);

#endif
