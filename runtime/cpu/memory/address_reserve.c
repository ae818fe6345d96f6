/* address_reserve.c -- implements reserved addresses, and files mapped to them.
 *
 * Problem: a program reserves addresses, and maps memory to parts of them later, piece by
 * piece. Kernels and copies may access several adjacent pieces as if they were one
 * allocation, and each piece may be visible at several addresses.
 *
 * Idea: the bytes of each piece of memory are a file in memory. A reservation has host
 * memory of its whole size, so adjacent pieces are adjacent in the host's memory as well,
 * and so are their initialisation bitmaps. A look-up then returns the view of a region:
 * the largest run of adjacent regions with the same access. Nothing else needs to know
 * that the run has several pieces.
 *
 * Invariant: the views of all regions are computed again whenever a region is added,
 * removed or gets another access. Host memory of a reservation that no file is mapped to
 * consists of private zero pages. A kernel that runs while the program removes a mapping
 * therefore reads zeros and does not crash.
 *
 * Cost: O(pieces of the reservation) per change; look-ups cost what they cost elsewhere. */
#include "address_reserve.h"
#include "address_map.h"

#include <string.h>
#include <sys/mman.h>

typedef kiln__cpu_map map;
typedef kiln__cpu_region region;
typedef kiln__cpu_reserved reserved;

/* ---- Views --------------------------------------------------------------- */

static bool joined(const region *a, const region *b)
{
  return a->range.last == b->range.first && a->reserved == b->reserved &&
         a->range.denied == b->range.denied &&
         a->range.read_only == b->range.read_only &&
         a->range.device == b->range.device;
}

/* Computes the views of all regions of a reservation. */
static void refresh(map *m, const reserved *v)
{
  size_t at = kiln__cpu_map_position(m, v->first);

  while (at < m->n && m->regions[at]->reserved == v) {
    size_t end = at + 1;

    while (end < m->n && m->regions[end]->reserved == v &&
           joined(m->regions[end - 1], m->regions[end]))
      end++;
    for (size_t i = at; i < end; i++) {
      m->regions[i]->view_first = m->regions[at]->range.first;
      m->regions[i]->view_last = m->regions[end - 1]->range.last;
    }
    at = end;
  }
  atomic_fetch_add(&m->head.epoch, 1);
}

/* Returns the reservation that contains [first, first + size), or NULL. */
static reserved *reserved_of(const map *m, uint64_t first, uint64_t size)
{
  reserved *v = m->reserved;

  while (v != NULL && v->last <= first)
    v = v->next;
  return v != NULL && v->first <= first && size <= v->last - first ? v : NULL;
}

/* ---- Reservations -------------------------------------------------------- */

/* Returns the link of the list before which a reservation of `size` bytes at the lowest
 * free address at or above *first belongs. Stores this address. */
static reserved **find_free(map *m, uint64_t *first, uint64_t size,
                            uint64_t align)
{
  reserved **at = &m->reserved;

  for (;; at = &(*at)->next) {
    *first = (*first + align - 1) & ~(align - 1);
    if (*at == NULL || (*first < (*at)->first && size <= (*at)->first - *first))
      return at;
    if (*first < (*at)->last)
      *first = (*at)->last;
  }
}

/* Makes the host memory of a reservation: its bytes, and one bit per byte. */
static bool host_make(reserved *v)
{
  const uint64_t size = v->last - v->first;
  void *p;

  v->host_bytes = (size_t)(size + size / 8);
  p = mmap(NULL, v->host_bytes, PROT_READ | PROT_WRITE,
           // cppcheck-suppress invalidFunctionArg // -1: anonymous
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  v->host = p;
  return p != MAP_FAILED;
}

kiln_status kiln__cpu_memory_reserve(kiln__cpu_memory *memory,
                                     uint64_t *address, uint64_t size,
                                     uint64_t align)
{
  map *m = kiln__cpu_map_of(memory);
  const uint64_t hint = *address;
  reserved *v = NULL, **at;
  uint64_t first = hint;

  if (size <= KILN__RESERVED_END - KILN__RESERVED_BASE)
    v = kiln__calloc(&m->alloc, 1, sizeof *v);
  if (v == NULL)
    return kiln__fail_memory("reservation");
  pthread_rwlock_wrlock(&m->lock);
  at = find_free(m, &first, size, align);
  if (first != hint || hint < KILN__RESERVED_BASE ||
      hint > KILN__RESERVED_END - size) {
    first = KILN__RESERVED_BASE;
    at = find_free(m, &first, size, align);
  }
  v->first = first;
  v->last = first + size;
  if (first > KILN__RESERVED_END - size || !host_make(v)) {
    pthread_rwlock_unlock(&m->lock);
    kiln__free(&m->alloc, v);
    return kiln__fail_memory("reservation");
  }
  v->next = *at;
  *at = v;
  pthread_rwlock_unlock(&m->lock);
  *address = first;
  return KILN_OK;
}

bool kiln__cpu_memory_unreserve(kiln__cpu_memory *memory, uint64_t first,
                                uint64_t size)
{
  map *m = kiln__cpu_map_of(memory);
  region *host = kiln__calloc(&m->alloc, 1, sizeof *host);
  reserved *v = NULL, **at;
  size_t next;
  bool ok;

  if (host == NULL)
    return false;
  pthread_rwlock_wrlock(&m->lock);
  at = &m->reserved;
  while (*at != NULL && (*at)->first != first)
    at = &(*at)->next;
  next = kiln__cpu_map_position(m, first);
  ok = *at != NULL && (*at)->last - first == size &&
       (next == m->n || m->regions[next]->reserved != *at);
  if (ok) {
    v = *at;
    *at = v->next;
    host->base = v->host;
    host->base_bytes = v->host_bytes;
  }
  kiln__cpu_map_drop(m, host);
  kiln__free(&m->alloc, v);
  return ok;
}

/* ---- Files --------------------------------------------------------------- */

uint8_t *kiln__cpu_map_bits(const region *r, bool valid)
{
  const reserved *v = r->reserved;
  const uint64_t at = r->range.first - v->first;
  uint8_t *bits = v->host + (v->last - v->first) + at / 8;

  memset(bits, valid ? 0xff : 0,
         (size_t)((r->range.last - r->range.first) / 8));
  return bits;
}

static kiln_status map_locked(map *m, region *r, uint64_t first, uint64_t size,
                              int fd, bool written)
{
  const reserved *v = reserved_of(m, first, size);
  const size_t at = kiln__cpu_map_position(m, first);
  uint8_t *host;

  if (v == NULL || (at < m->n && m->regions[at]->range.first < first + size))
    return kiln__fail(KILN_EINVAL, NULL,
                      "the addresses are not reserved, or mapped already");
  host = v->host + (first - v->first);
  r->reserved = v;
  r->range.first = first;
  r->range.last = first + size;
  r->range.host = host;
  if (m->keep_valid)
    r->range.valid = kiln__cpu_map_bits(r, written);
  // cppcheck-suppress leakReturnValNotUsed // the reservation owns the pages
  if (mmap(host, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           fd, 0) == MAP_FAILED)
    return kiln__fail_memory("mapping");
  if (!kiln__cpu_map_insert(m, r))
    return kiln__fail_memory("address map");
  refresh(m, v);
  return KILN_OK;
}

kiln_status kiln__cpu_memory_map_file(kiln__cpu_memory *memory,
                                      const kiln__cpu_range *wanted,
                                      uint64_t first, uint64_t size, int fd,
                                      bool written)
{
  map *m = kiln__cpu_map_of(memory);
  region *r = kiln__calloc(&m->alloc, 1, sizeof *r);
  kiln_status st;

  if (r == NULL)
    return kiln__fail_memory("address map");
  r->range.kind = KILN__RANGE_DEVICE;
  r->range.device = wanted->device;
  r->range.owner = wanted->owner;
  r->range.denied = UINT32_MAX;
  r->range.mapped = true;
  pthread_rwlock_wrlock(&m->lock);
  st = map_locked(m, r, first, size, fd, written);
  pthread_rwlock_unlock(&m->lock);
  if (st != KILN_OK)
    kiln__free(&m->alloc, r);
  return st;
}

/* Replaces the file behind a range by zero pages. If this fails, the file stays until
 * something else is mapped to these addresses. */
static void unmap(const region *r)
{
  // cppcheck-suppress leakReturnValNotUsed // the reservation owns the pages
  (void)mmap(r->range.host, (size_t)(r->range.last - r->range.first),
             PROT_READ | PROT_WRITE,
             // cppcheck-suppress invalidFunctionArg // -1: anonymous
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool kiln__cpu_memory_unmap_file(kiln__cpu_memory *memory, uint64_t first,
                                 kiln__cpu_range *out)
{
  map *m = kiln__cpu_map_of(memory);
  region *r = NULL;
  size_t at;

  pthread_rwlock_wrlock(&m->lock);
  at = kiln__cpu_map_position(m, first);
  if (at < m->n && m->regions[at]->range.first == first &&
      m->regions[at]->reserved != NULL) {
    r = kiln__cpu_map_take(m, at);
    *out = r->range;
    unmap(r);
    refresh(m, r->reserved);
  }
  pthread_rwlock_unlock(&m->lock);
  kiln__free(&m->alloc, r);
  return r != NULL;
}

/* ---- Access -------------------------------------------------------------- */

/* Returns whether regions of one reservation cover [first, first + size) exactly. Stores
 * the index of the first region. */
static bool covered(const map *m, uint64_t first, uint64_t size, size_t *from)
{
  const reserved *v = reserved_of(m, first, size);
  uint64_t next = first;
  size_t at = kiln__cpu_map_position(m, first);

  *from = at;
  if (v == NULL || size == 0)
    return false;
  for (; next < first + size; at++) {
    if (at == m->n || m->regions[at]->range.first != next)
      return false;
    next = m->regions[at]->range.last;
  }
  return next == first + size;
}

bool kiln__cpu_memory_set_access(kiln__cpu_memory *memory, uint64_t first,
                                 uint64_t size, uint32_t devices, bool read,
                                 bool write)
{
  map *m = kiln__cpu_map_of(memory);
  size_t at;
  bool ok;

  pthread_rwlock_wrlock(&m->lock);
  ok = covered(m, first, size, &at);
  for (; ok && at < m->n && m->regions[at]->range.first < first + size; at++) {
    kiln__cpu_range *r = &m->regions[at]->range;

    r->denied = read ? r->denied & ~devices : r->denied | devices;
    r->read_only =
        read && !write ? r->read_only | devices : r->read_only & ~devices;
  }
  if (ok)
    refresh(m, reserved_of(m, first, size));
  pthread_rwlock_unlock(&m->lock);
  return ok;
}

bool kiln__cpu_memory_mapped_at(kiln__cpu_memory *memory, uint64_t address,
                                kiln__cpu_range *out)
{
  map *m = kiln__cpu_map_of(memory);
  const region *r = NULL;
  size_t at;

  pthread_rwlock_rdlock(&m->lock);
  at = kiln__cpu_map_position(m, address);
  if (at < m->n && m->regions[at]->range.first <= address &&
      m->regions[at]->reserved != NULL)
    r = m->regions[at];
  if (r != NULL)
    *out = r->range;
  pthread_rwlock_unlock(&m->lock);
  return r != NULL;
}

bool kiln__cpu_memory_reserved_at(kiln__cpu_memory *memory, uint64_t address,
                                  uint64_t *first, uint64_t *size)
{
  map *m = kiln__cpu_map_of(memory);
  const reserved *v;

  pthread_rwlock_rdlock(&m->lock);
  v = reserved_of(m, address, 1);
  if (v != NULL) {
    *first = v->first;
    *size = v->last - v->first;
  }
  pthread_rwlock_unlock(&m->lock);
  return v != NULL;
}
