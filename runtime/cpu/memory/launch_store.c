/* launch_store.c -- keeps the host memory of launches for the next launch.
 *
 * Problem: each launch allocates register frames, stacks and shared memory of
 * its resident blocks, and frees them at its end. The C library then returns the
 * pages to the operating system. Page faults took more than half of the time of
 * a launch of one block with 1,024 threads.
 *
 * Idea: blocks have sizes of powers of two from 256 bytes to 8 MiB. A block that
 * is freed goes to the list of its size, and an allocation takes a block from
 * the list of its size. At most 64 MiB are kept, and larger blocks are not kept.
 *
 * Invariant: the header in front of a block stores its size class, so a block
 * always returns to the list that it came from.
 *
 * Cost: a lock and a few instructions per call. A block is up to twice as large
 * as requested, but pages that nothing touches take no memory. Sanitizers must
 * see every release, so nothing is kept in their builds. */
#include "launch_store.h"

#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 256, NOT_KEPT = KILN__STORE_CLASSES };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const size_t most_kept = 0;
#else
static const size_t most_kept = (size_t)64 << 20;
#endif

/* The header of a block. Its size keeps the alignment of malloc. */
typedef struct kiln__cpu_stored {
  struct kiln__cpu_stored *next;
  uint32_t size_class; /* NOT_KEPT for large blocks */
  uint32_t unused;
} stored;

_Static_assert(sizeof(stored) % 16 == 0, "blocks are aligned to 16 bytes");

static size_t bytes_of(uint32_t size_class)
{
  return (size_t)SMALLEST << size_class;
}

static uint32_t class_of(size_t size)
{
  uint32_t c = 0;

  while (c < NOT_KEPT && bytes_of(c) < size)
    c++;
  return c;
}

static void *store_alloc(void *user, size_t size)
{
  kiln__cpu_store *const store = user;
  const uint32_t c = class_of(size);
  stored *block = NULL;

  if (c < NOT_KEPT) {
    pthread_mutex_lock(&store->lock);
    block = store->free[c];
    if (block != NULL) {
      store->free[c] = block->next;
      store->kept -= bytes_of(c);
    }
    pthread_mutex_unlock(&store->lock);
    size = bytes_of(c);
  }
  if (block == NULL && size <= SIZE_MAX - sizeof *block)
    block = malloc(sizeof *block + size);
  if (block == NULL)
    return NULL;
  block->size_class = c;
  return block + 1;
}

static void store_release(void *user, void *p)
{
  kiln__cpu_store *const store = user;
  stored *block = p == NULL ? NULL : (stored *)p - 1;
  const uint32_t c = block == NULL ? NOT_KEPT : block->size_class;

  if (c < NOT_KEPT) {
    pthread_mutex_lock(&store->lock);
    if (store->kept + bytes_of(c) <= most_kept) {
      store->kept += bytes_of(c);
      block->next = store->free[c];
      store->free[c] = block;
      block = NULL;
    }
    pthread_mutex_unlock(&store->lock);
  }
  free(block);
}

static void *store_resize(void *user, void *p, size_t size)
{
  stored *block = p == NULL ? NULL : (stored *)p - 1;
  void *larger;

  if (block == NULL)
    return store_alloc(user, size);
  if (block->size_class == NOT_KEPT) {
    block = size > SIZE_MAX - sizeof *block
                ? NULL
                : realloc(block, sizeof *block + size);
    return block == NULL ? NULL : block + 1;
  }
  if (size <= bytes_of(block->size_class))
    return p;
  larger = store_alloc(user, size);
  if (larger == NULL)
    return NULL;
  memcpy(larger, p, bytes_of(block->size_class));
  store_release(user, p);
  return larger;
}

bool kiln__cpu_store_init(kiln__cpu_store *store)
{
  memset(store, 0, sizeof *store);
  return pthread_mutex_init(&store->lock, NULL) == 0;
}

kiln_allocator kiln__cpu_store_allocator(kiln__cpu_store *store)
{
  return (kiln_allocator){.alloc = store_alloc,
                          .resize = store_resize,
                          .release = store_release,
                          .user = store};
}
