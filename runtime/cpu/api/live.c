/* live.c -- implements the set of live handles.
 *
 * The set is an open-addressing hash table with linear probing. Removed entries
 * stay as tombstones until the table is rebuilt, so that probe sequences do not
 * end early. At most half of the slots hold entries or tombstones, so that
 * probe sequences are short. */
#include "machine.h"

struct kiln__cpu_live_slot {
  /* handle; NULL marks a slot that was never used, GONE marks a tombstone */
  const void *p;
  kiln__cpu_handle kind;
};

static const char gone_mark;
#define GONE ((const void *)&gone_mark)

/* Returns the first slot to probe for a handle. The slot number is the high
 * bits of a multiplicative hash, since pointers differ little in their low
 * bits. */
static size_t start(const void *p, size_t capacity)
{
  uint64_t h = (uint64_t)(uintptr_t)p;

  h = (h ^ (h >> 29)) * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(h >> 32) & (capacity - 1);
}

/* Returns the hash table slot that holds the handle p. If there is none,
 * returns the slot for the insertion of p. */
static struct kiln__cpu_live_slot *slot_of(struct kiln__cpu_live_slot *slots,
                                           size_t capacity, const void *p)
{
  struct kiln__cpu_live_slot *free_slot = NULL;

  for (size_t i = start(p, capacity);; i = (i + 1) & (capacity - 1)) {
    if (slots[i].p == p)
      return &slots[i];
    if (slots[i].p == GONE && free_slot == NULL)
      free_slot = &slots[i];
    if (slots[i].p == NULL)
      return free_slot != NULL ? free_slot : &slots[i];
  }
}

/* Rebuilds the table if one more entry would fill more than half of the slots.
 * Returns false if there is no memory. */
static bool reserve(kiln__cpu_machine *m)
{
  size_t capacity = 64;
  struct kiln__cpu_live_slot *slots;

  if ((m->live_used + m->live_gone + 1) * 2 <= m->live_capacity)
    return true;
  while (capacity < (m->live_used + 1) * 4)
    capacity *= 2;
  slots = kiln__calloc(&m->alloc, capacity, sizeof *slots);
  if (slots == NULL)
    return false;
  for (size_t i = 0; i < m->live_capacity; i++) {
    if (m->live[i].p != NULL && m->live[i].p != GONE)
      *slot_of(slots, capacity, m->live[i].p) = m->live[i];
  }
  kiln__free(&m->alloc, m->live);
  m->live = slots;
  m->live_capacity = capacity;
  m->live_gone = 0;
  return true;
}

bool kiln__cpu_live_add(const void *p, kiln__cpu_handle kind)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  struct kiln__cpu_live_slot *slot;
  bool ok;

  if (m == NULL || p == NULL)
    return false;
  pthread_mutex_lock(&m->live_lock);
  ok = reserve(m);
  if (ok) {
    slot = slot_of(m->live, m->live_capacity, p);
    if (slot->p == GONE)
      m->live_gone--;
    if (slot->p != p)
      m->live_used++;
    slot->p = p;
    slot->kind = kind;
  }
  pthread_mutex_unlock(&m->live_lock);
  return ok;
}

bool kiln__cpu_live(const void *p, kiln__cpu_handle kind)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  bool live = false;

  if (m == NULL || p == NULL || p == GONE)
    return false;
  pthread_mutex_lock(&m->live_lock);
  if (m->live_capacity > 0) {
    const struct kiln__cpu_live_slot *slot =
        slot_of(m->live, m->live_capacity, p);

    live = slot->p == p && slot->kind == kind;
  }
  pthread_mutex_unlock(&m->live_lock);
  return live;
}

CUresult kiln__cpu_known(const void *handle, kiln__cpu_handle kind)
{
  if (kiln__cpu_live(handle, kind))
    return CUDA_SUCCESS;
  switch (kind) {
  case KILN__HANDLE_CONTEXT:
    return CUDA_ERROR_INVALID_CONTEXT;
  case KILN__HANDLE_POOL:
  case KILN__HANDLE_GRAPH:
  case KILN__HANDLE_GRAPH_EXEC:
  case KILN__HANDLE_GRAPH_NODE:
  case KILN__HANDLE_USER_OBJECT:
    return CUDA_ERROR_INVALID_VALUE;
  default:
    return CUDA_ERROR_INVALID_HANDLE;
  }
}

CUresult kiln__cpu_ready_with(const void *handle, kiln__cpu_handle kind)
{
  CU_TRY(kiln__cpu_ready());
  return kiln__cpu_known(handle, kind);
}

CUresult kiln__cpu_current_with(const void *handle, kiln__cpu_handle kind)
{
  CU_TRY(kiln__cpu_check_current());
  return kiln__cpu_known(handle, kind);
}

void kiln__cpu_live_remove(const void *p)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();

  if (m == NULL || p == NULL || p == GONE)
    return;
  pthread_mutex_lock(&m->live_lock);
  if (m->live_capacity > 0) {
    struct kiln__cpu_live_slot *slot = slot_of(m->live, m->live_capacity, p);

    if (slot->p == p) {
      slot->p = GONE;
      m->live_used--;
      m->live_gone++;
    }
  }
  pthread_mutex_unlock(&m->live_lock);
}
