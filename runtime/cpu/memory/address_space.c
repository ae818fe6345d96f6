/* address_space.c -- implements the address map: ranges sorted by address,
 * under a read-write lock.
 *
 * Problem: every memory access of a kernel has to find the range that contains
 * the address. At the same time, host threads allocate and free. A use after
 * free should be detected, and must not crash the process.
 *
 * Idea: a sorted array of pointers to ranges, searched by bisection. A look-up
 * is O(log n), an insertion is O(n), and n is small. Warps cache copies of the
 * ranges that they used last and compare the epoch. Most accesses therefore do
 * not reach this file.
 *
 * Invariant: a device's addresses are assigned in ascending order up to the end
 * of the device's terabyte, then again from the bottom. A freed address is
 * therefore reused late. The bytes of a removed range are freed only when no
 * launch runs, since a warp may still hold a copy of the range. */
#include "address_map.h"
#include "range_share.h"

#include <string.h>
#include <sys/mman.h>

enum {
  HOST_PAGE = 4096, /* alignment of every mapping in bytes */
  /* size in bytes from which ranges are mapped, not allocated */
  MAPPED = 64 * 1024,
  HOST_ALIGN = 64, /* alignment in bytes of a range's host memory */
  DEVICE_BITS = 40 /* log2 of the size of a device's address space in bytes */
};

typedef kiln__cpu_region region;
typedef kiln__cpu_map map;

static map *map_of(kiln__cpu_memory *memory)
{
  return kiln__cpu_map_of(memory);
}

/* ---- Host memory of ranges ----------------------------------------------- */

/* Allocates the host memory of a range. Managed memory has the same address
 * on the host and on devices, so its host memory needs the alignment of the
 * device address. If this alignment exceeds the page size, the mapping is
 * made larger. */
static bool bytes_make(map *m, region *r, uint64_t size, uint64_t align)
{
  uintptr_t at;

  if (size > SIZE_MAX / 2)
    return false;
  if (size >= MAPPED) {
    const uint64_t slack = align > HOST_PAGE ? align : 0;
    void *p = mmap(NULL, (size_t)(size + slack), PROT_READ | PROT_WRITE,
                   // cppcheck-suppress invalidFunctionArg // -1: anonymous
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      return false;
    r->base = p;
    r->base_bytes = (size_t)(size + slack);
    at = (uintptr_t)p;
    r->range.host = slack == 0 ? p : (uint8_t *)p + (-at & (align - 1));
    return true;
  }
  /* A range whose device address equals its host address also needs guard bytes
   * in host memory. */
  r->base =
      kiln__calloc(&m->alloc, 1, (size_t)size + HOST_ALIGN + 2 * KILN__GUARD);
  if (r->base == NULL)
    return false;
  at = (uintptr_t)r->base + KILN__GUARD;
  at = (at + HOST_ALIGN - 1) & ~(uintptr_t)(HOST_ALIGN - 1);
  r->range.host = (uint8_t *)r->base + (at - (uintptr_t)r->base);
  return true;
}

static void region_free(map *m, region *r)
{
  if (r->base_bytes != 0)
    munmap(r->base, r->base_bytes);
  else
    kiln__free(&m->alloc, r->base);
  if (r->reserved == NULL)
    kiln__free(&m->alloc, r->range.valid);
  kiln__free(&m->alloc, r);
}

/* ---- The sorted array of ranges ------------------------------------------ */

size_t kiln__cpu_map_position(const map *m, uint64_t address)
{
  size_t low = 0, high = m->n;

  while (low < high) {
    const size_t middle = low + (high - low) / 2;

    if (m->regions[middle]->range.last <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static region *holder(const map *m, uint64_t address)
{
  const size_t at = kiln__cpu_map_position(m, address);

  return at < m->n && m->regions[at]->range.first <= address ? m->regions[at]
                                                             : NULL;
}

bool kiln__cpu_map_insert(map *m, region *r)
{
  const size_t at = kiln__cpu_map_position(m, r->range.first);

  if (!kiln__grow(&m->alloc, &m->regions, m->n, &m->capacity, sizeof(region *)))
    return false;
  memmove(m->regions + at + 1, m->regions + at,
          (m->n - at) * sizeof *m->regions);
  m->regions[at] = r;
  m->n++;
  r->range.number = ++m->numbers;
  atomic_fetch_add(&m->head.epoch, 1);
  return true;
}

kiln__cpu_range kiln__cpu_map_view(const region *r)
{
  kiln__cpu_range range = r->range;
  const uint64_t below = r->range.first - r->view_first;

  if (r->reserved == NULL)
    return range;
  range.first = r->view_first;
  range.last = r->view_last;
  range.host -= below;
  if (range.valid != NULL)
    range.valid -= below / 8;
  return range;
}

/* Returns the lowest address in [low, high) at which `size` bytes are free, or
 * 0 if there is none. */
static uint64_t gap(const map *m, uint64_t low, uint64_t high, uint64_t size,
                    uint64_t align)
{
  size_t at = kiln__cpu_map_position(m, low);
  uint64_t first = low;

  for (;;) {
    uint64_t end = at < m->n ? m->regions[at]->range.first : high;

    first = (first + align - 1) & ~(align - 1);
    if (end > high)
      end = high;
    if (first < end && end - first >= KILN__GUARD &&
        size <= end - first - KILN__GUARD)
      return first;
    if (end == high)
      return 0;
    first = m->regions[at]->range.last + KILN__GUARD;
    at++;
  }
}

static uint64_t place(map *m, int device, uint64_t size, uint64_t align)
{
  const unsigned d =
      device < 0 || device >= KILN__ADDRESS_DEVICES ? 0 : (unsigned)device;
  const uint64_t low = KILN__DEVICE_BASE + ((uint64_t)d << DEVICE_BITS);
  const uint64_t high = low + (UINT64_C(1) << DEVICE_BITS);
  uint64_t from = m->next[d] == 0 ? low + KILN__GUARD : m->next[d];
  uint64_t first = gap(m, from, high, size, align);

  if (first == 0)
    first = gap(m, low + KILN__GUARD, high, size, align);
  if (first != 0)
    m->next[d] = first + size + KILN__GUARD;
  return first;
}

/* ---- Initialisation bitmaps ---------------------------------------------- */

static uint8_t *bits_make(const map *m, const kiln__cpu_range *r, bool valid)
{
  const size_t n = (size_t)((r->last - r->first + 7) / 8);
  uint8_t *bits = kiln__alloc(&m->alloc, n);

  if (bits != NULL)
    memset(bits, valid ? 0xff : 0, n);
  return bits;
}

static bool valid_at_first(kiln__cpu_range_kind kind)
{
  switch (kind) {
  case KILN__RANGE_GLOBAL:
  case KILN__RANGE_CONST:
  /* The host can write to these kinds of memory without being observed. */
  case KILN__RANGE_HOST:
  case KILN__RANGE_MANAGED:
  case KILN__RANGE_INTERNAL:
    return true;
  case KILN__RANGE_DEVICE:
  case KILN__RANGE_POOL:
  case KILN__RANGE_HEAP:
    break;
  }
  return false;
}

static void bits_or(uint8_t *byte, unsigned bits)
{
  __atomic_fetch_or(byte, (uint8_t)bits, __ATOMIC_RELAXED);
}

static void bits_set(uint8_t *bits, uint64_t at, uint64_t n)
{
  const uint64_t end = at + n, first = at / 8, last = end / 8;

  if (n == 0)
    return;
  if (first == last) {
    bits_or(bits + first, (0xffu << (at % 8)) & ((1u << (end % 8)) - 1));
    return;
  }
  bits_or(bits + first, (0xffu << (at % 8)) & 0xff);
  for (uint64_t i = first + 1; i < last; i++)
    __atomic_store_n(bits + i, (uint8_t)0xff, __ATOMIC_RELAXED);
  if (end % 8 != 0)
    bits_or(bits + last, (1u << (end % 8)) - 1);
}

static bool bit(const uint8_t *bits, uint64_t at)
{
  return (__atomic_load_n(bits + at / 8, __ATOMIC_RELAXED) >> (at % 8) & 1) !=
         0;
}

static void bit_put(uint8_t *bits, uint64_t at, bool on)
{
  const uint8_t mask = (uint8_t)(1u << (at % 8));

  if (on)
    __atomic_fetch_or(bits + at / 8, mask, __ATOMIC_RELAXED);
  else
    __atomic_fetch_and(bits + at / 8, (uint8_t)~mask, __ATOMIC_RELAXED);
}

/* ---- Creation and destruction of the address space ----------------------- */

kiln_status kiln__cpu_memory_create(kiln__cpu_memory **out,
                                    const kiln_allocator *a)
{
  map *m = kiln__calloc(a, 1, sizeof *m);

  *out = NULL;
  if (m == NULL)
    return kiln__fail_memory("address map");
  m->alloc = *a;
  if (pthread_rwlock_init(&m->lock, NULL) != 0) {
    kiln__free(a, m);
    return kiln__fail_memory("address map's lock");
  }
  atomic_init(&m->head.epoch, 1);
  atomic_init(&m->running, 0);
  *out = &m->head;
  return KILN_OK;
}

static void dead_free(map *m, region *dead)
{
  while (dead != NULL) {
    region *next = dead->next;

    region_free(m, dead);
    dead = next;
  }
}

void kiln__cpu_memory_free(kiln__cpu_memory *memory)
{
  map *m = map_of(memory);

  if (m == NULL)
    return;
  for (size_t i = 0; i < m->n; i++)
    region_free(m, m->regions[i]);
  dead_free(m, m->dead);
  for (kiln__cpu_reserved *r = m->reserved, *next; r != NULL; r = next) {
    next = r->next;
    munmap(r->host, r->host_bytes);
    kiln__free(&m->alloc, r);
  }
  kiln__free(&m->alloc, m->regions);
  pthread_rwlock_destroy(&m->lock);
  kiln__free(&m->alloc, m);
}

kiln_status kiln__cpu_memory_keep_valid(kiln__cpu_memory *memory, bool keep)
{
  map *m = map_of(memory);
  kiln_status st = KILN_OK;

  pthread_rwlock_wrlock(&m->lock);
  for (size_t i = 0; keep && i < m->n && st == KILN_OK; i++) {
    kiln__cpu_range *r = &m->regions[i]->range;

    /* The bitmaps were not updated while the initialisation check was off. */
    if (r->valid != NULL && !m->keep_valid)
      memset(r->valid, 0xff, (r->last - r->first + 7) / 8);
    if (r->valid == NULL)
      r->valid = m->regions[i]->reserved == NULL
                     ? bits_make(m, r, true)
                     : kiln__cpu_map_bits(m->regions[i], true);
    if (r->valid == NULL)
      st = kiln__fail_memory("initialisation bitmap");
  }
  m->keep_valid = keep && st == KILN_OK;
  atomic_fetch_add(&m->head.epoch, 1);
  pthread_rwlock_unlock(&m->lock);
  return st;
}

static bool keeps_address(kiln__cpu_range_kind kind)
{
  return kind == KILN__RANGE_HOST || kind == KILN__RANGE_MANAGED;
}

/* Assigns addresses, an initialisation bitmap and a number to a new range, and
 * inserts the range into the address map. The caller holds the write lock of
 * the map. */
static kiln_status settle(map *m, region *r, uint64_t size, uint64_t align)
{
  kiln__cpu_range *range = &r->range;

  if (keeps_address(range->kind))
    range->first = (uint64_t)(uintptr_t)range->host;
  else
    range->first = place(m, range->device, size, align);
  if (range->first == 0)
    return kiln__fail(KILN_ENOMEM, NULL,
                      "no free range of %llu device addresses is left",
                      (unsigned long long)size);
  range->last = range->first + size;
  if (keeps_address(range->kind)) {
    const size_t at = kiln__cpu_map_position(m, range->first);

    if (at < m->n && m->regions[at]->range.first < range->last)
      return kiln__fail(
          KILN_EINVAL, NULL,
          "%llu bytes at %p overlap a range that was added before",
          (unsigned long long)size, (void *)range->host);
  }
  if (m->keep_valid) {
    range->valid = bits_make(m, range, valid_at_first(range->kind));
    if (range->valid == NULL)
      return kiln__fail_memory("initialisation bitmap");
  }
  return kiln__cpu_map_insert(m, r) ? KILN_OK
                                    : kiln__fail_memory("address map");
}

kiln_status kiln__cpu_memory_add(kiln__cpu_memory *memory,
                                 kiln__cpu_range *wanted, uint64_t size,
                                 uint64_t align)
{
  map *m = map_of(memory);
  kiln_status st = KILN_OK;
  region *r = NULL;

  if (size == 0 || size > UINT64_MAX / 4)
    return size == 0 ? kiln__fail(KILN_EINVAL, NULL, "a range of 0 bytes")
                     : kiln__fail_memory("device memory");
  r = kiln__calloc(&m->alloc, 1, sizeof *r);
  if (r == NULL)
    return kiln__fail_memory("address map");
  r->range = *wanted;
  r->range.valid = NULL;
  if (wanted->host == NULL && !bytes_make(m, r, size, align)) {
    kiln__free(&m->alloc, r);
    return kiln__fail_memory("device memory");
  }

  pthread_rwlock_wrlock(&m->lock);
  /* The host memory is aligned like the device address, since atomic accesses
   * need this alignment. */
  if (align < HOST_ALIGN)
    align = align == 0 ? 512 : HOST_ALIGN;
  st = settle(m, r, size, align);
  if (st == KILN_OK)
    *wanted = r->range;
  pthread_rwlock_unlock(&m->lock);
  if (st != KILN_OK)
    region_free(m, r);
  return st;
}

/* Stores a removed range, without pointers to its data, so that messages can
 * still name the range. */
static void remember_freed(map *m, const kiln__cpu_range *range)
{
  kiln__cpu_range *freed = &m->freed[m->n_freed++ % KILN__N_FREED];

  *freed = *range;
  freed->host = freed->valid = NULL;
  freed->shadow = freed->owner = NULL;
  freed->name = NULL;
}

kiln__cpu_region *kiln__cpu_map_take(map *m, size_t at)
{
  region *r = m->regions[at];

  memmove(m->regions + at, m->regions + at + 1,
          (m->n - at - 1) * sizeof *m->regions);
  m->n--;
  remember_freed(m, &r->range);
  atomic_fetch_add(&m->head.epoch, 1);
  return r;
}

void kiln__cpu_map_drop(map *m, region *r)
{
  if (r != NULL && atomic_load(&m->running) != 0) {
    r->next = m->dead;
    m->dead = r;
    r = NULL;
  }
  pthread_rwlock_unlock(&m->lock);
  if (r != NULL)
    region_free(m, r);
}

bool kiln__cpu_memory_remove(kiln__cpu_memory *memory, uint64_t first)
{
  map *m = map_of(memory);
  region *r = NULL;
  size_t at;

  pthread_rwlock_wrlock(&m->lock);
  at = kiln__cpu_map_position(m, first);
  if (at < m->n && m->regions[at]->range.first == first &&
      m->regions[at]->reserved == NULL)
    r = kiln__cpu_map_take(m, at);
  kiln__cpu_map_drop(m, r);
  return r != NULL;
}

bool kiln__cpu_memory_share(kiln__cpu_memory *memory, uint64_t first,
                            void *mapping, size_t bytes)
{
  map *m = map_of(memory);
  region *old = kiln__calloc(&m->alloc, 1, sizeof *old);
  bool found = false;
  size_t at;

  if (old == NULL)
    return false;
  pthread_rwlock_wrlock(&m->lock);
  at = kiln__cpu_map_position(m, first);
  if (at < m->n && m->regions[at]->range.first == first) {
    region *r = m->regions[at];

    old->base = r->base;
    old->base_bytes = r->base_bytes;
    r->base = mapping;
    r->base_bytes = bytes;
    r->range.host = mapping;
    atomic_fetch_add(&m->head.epoch, 1);
    found = true;
  }
  kiln__cpu_map_drop(m, old);
  return found;
}

void kiln__cpu_memory_enter(kiln__cpu_memory *memory)
{
  map *m = map_of(memory);

  pthread_rwlock_rdlock(&m->lock);
  atomic_fetch_add(&m->running, 1);
  pthread_rwlock_unlock(&m->lock);
}

void kiln__cpu_memory_leave(kiln__cpu_memory *memory)
{
  map *m = map_of(memory);
  region *dead = NULL;

  pthread_rwlock_wrlock(&m->lock);
  if (atomic_fetch_sub(&m->running, 1) == 1) {
    dead = m->dead;
    m->dead = NULL;
  }
  pthread_rwlock_unlock(&m->lock);
  dead_free(m, dead);
}

/* ---- Look-up ------------------------------------------------------------- */

bool kiln__cpu_memory_find(kiln__cpu_memory *memory, uint64_t address,
                           kiln__cpu_range *out)
{
  map *m = map_of(memory);
  const region *r;

  pthread_rwlock_rdlock(&m->lock);
  r = holder(m, address);
  if (r != NULL)
    *out = kiln__cpu_map_view(r);
  pthread_rwlock_unlock(&m->lock);
  return r != NULL;
}

void kiln__cpu_memory_near(kiln__cpu_memory *memory, uint64_t address,
                           kiln__cpu_nearby *out)
{
  map *m = map_of(memory);
  bool within;
  size_t at;

  memset(out, 0, sizeof *out);
  pthread_rwlock_rdlock(&m->lock);
  at = kiln__cpu_map_position(m, address);
  if (at > 0) {
    out->has_below = true;
    out->below = kiln__cpu_map_view(m->regions[at - 1]);
  }
  if (at < m->n && m->regions[at]->range.first <= address) {
    out->has_below = true;
    out->below = kiln__cpu_map_view(m->regions[at++]);
  }
  within = out->has_below && address < out->below.last;
  if (at < m->n) {
    out->has_above = true;
    out->above = kiln__cpu_map_view(m->regions[at]);
  }
  /* Reserved addresses may be mapped again after their memory was unmapped. */
  for (uint64_t i = within ? 0 : m->n_freed;
       i-- > 0 && m->n_freed - i <= KILN__N_FREED;) {
    const kiln__cpu_range *freed = &m->freed[i % KILN__N_FREED];

    if (freed->first <= address && address < freed->last) {
      out->was_freed = true;
      out->freed = *freed;
      break;
    }
  }
  for (const kiln__cpu_reserved *r = m->reserved; r != NULL; r = r->next)
    out->in_reserved |= r->first <= address && address < r->last;
  pthread_rwlock_unlock(&m->lock);
}

static bool holds(const kiln__cpu_range *r, uint64_t address, uint64_t size)
{
  return size <= r->last - address;
}

uint8_t *kiln__cpu_memory_host(kiln__cpu_memory *memory, uint64_t address,
                               uint64_t size)
{
  kiln__cpu_range r;

  if (!kiln__cpu_memory_find(memory, address, &r) ||
      !holds(&r, address, size) || r.denied == UINT32_MAX)
    return NULL;
  return r.host + (address - r.first);
}

/* Stores the range that contains all bytes, if it has a bitmap. Returns false
 * otherwise. The caller holds the lock of the map. */
static bool with_bits(const map *m, uint64_t address, uint64_t size,
                      kiln__cpu_range *out)
{
  const region *r = holder(m, address);

  if (r == NULL || r->range.valid == NULL)
    return false;
  *out = kiln__cpu_map_view(r);
  return holds(out, address, size);
}

void kiln__cpu_memory_written(kiln__cpu_memory *memory, uint64_t address,
                              uint64_t size)
{
  map *m = map_of(memory);
  kiln__cpu_range r;

  pthread_rwlock_rdlock(&m->lock);
  if (with_bits(m, address, size, &r))
    bits_set(r.valid, address - r.first, size);
  pthread_rwlock_unlock(&m->lock);
}

/* Copies the part of the initialisation bitmap that describes `n` bytes. The
 * source and the destination may overlap in one range, so the copy goes in the
 * direction that memmove() would choose. */
static void bits_copy(const kiln__cpu_range *to, uint64_t at,
                      const kiln__cpu_range *from, uint64_t source, uint64_t n)
{
  const bool down = to->valid == from->valid && at > source;
  uint64_t done = 0;

  if (!down && at % 8 == 0 && source % 8 == 0) {
    for (; done + 8 <= n; done += 8)
      __atomic_store_n(
          to->valid + (at + done) / 8,
          __atomic_load_n(from->valid + (source + done) / 8, __ATOMIC_RELAXED),
          __ATOMIC_RELAXED);
  }
  for (uint64_t k = done; k < n; k++) {
    const uint64_t i = down ? n - 1 - k : k;

    bit_put(to->valid, at + i, bit(from->valid, source + i));
  }
}

void kiln__cpu_memory_copied(kiln__cpu_memory *memory, uint64_t to,
                             uint64_t from, uint64_t size)
{
  map *m = map_of(memory);
  kiln__cpu_range d, s;

  pthread_rwlock_rdlock(&m->lock);
  if (with_bits(m, to, size, &d)) {
    if (with_bits(m, from, size, &s))
      bits_copy(&d, to - d.first, &s, from - s.first, size);
    else
      bits_set(d.valid, to - d.first, size);
  }
  pthread_rwlock_unlock(&m->lock);
}

void *kiln__cpu_memory_set_shadow(kiln__cpu_memory *memory, uint64_t first,
                                  void *shadow)
{
  map *m = map_of(memory);
  region *r;

  pthread_rwlock_wrlock(&m->lock);
  r = holder(m, first);
  if (r != NULL && r->range.first != first)
    r = NULL;
  if (r != NULL && r->range.shadow == NULL) {
    r->range.shadow = shadow;
    atomic_fetch_add(&m->head.epoch, 1);
  }
  shadow = r != NULL ? r->range.shadow : NULL;
  pthread_rwlock_unlock(&m->lock);
  return shadow;
}

void kiln__cpu_memory_each(kiln__cpu_memory *memory,
                           void (*fn)(void *user, const kiln__cpu_range *range),
                           void *user)
{
  map *m = map_of(memory);
  uint64_t from = 0;
  kiln__cpu_range range;
  bool more;

  do {
    size_t at;

    pthread_rwlock_rdlock(&m->lock);
    at = kiln__cpu_map_position(m, from);
    more = at < m->n;
    if (more)
      range = m->regions[at]->range;
    pthread_rwlock_unlock(&m->lock);
    if (more) {
      fn(user, &range);
      from = range.last;
    }
  } while (more);
}
