/* memory_tier.c -- the cache entries that this process keeps in memory: a hash
 * map with a list in order of use. If the total size exceeds the capacity, the
 * least recently used entries are evicted.
 *
 * If memory for an entry cannot be allocated, the entry is not kept. Entries
 * and list nodes are freed only after the lock is released, since the allocator
 * is the caller's code and may take its own locks. */
#include "tiers.h"

#include <string.h>

static size_t bucket_of(const char *hash)
{
  size_t h = 0;

  for (int i = 0; i < 8; i++)
    h = h * 31 + (unsigned char)hash[i];
  return h % KILN__MEMORY_BUCKETS;
}

static kiln__tier_node *find(const kiln__tier *m, const char *hash)
{
  kiln__tier_node *node = m->buckets[bucket_of(hash)];

  while (node != NULL && strcmp(node->entry->hash, hash) != 0)
    node = node->chain;
  return node;
}

static void lru_unlink(kiln__tier *m, kiln__tier_node *node)
{
  *(node->newer != NULL ? &node->newer->older : &m->newest) = node->older;
  *(node->older != NULL ? &node->older->newer : &m->oldest) = node->newer;
}

static void lru_push(kiln__tier *m, kiln__tier_node *node)
{
  node->newer = NULL;
  node->older = m->newest;
  *(m->newest != NULL ? &m->newest->newer : &m->oldest) = node;
  m->newest = node;
}

/* Moves a node of the hash map to the list `gone`, whose nodes are freed
 * later. */
static void take_out(kiln__tier *m, kiln__tier_node *node,
                     kiln__tier_node **gone)
{
  kiln__tier_node **slot = &m->buckets[bucket_of(node->entry->hash)];

  while (*slot != node)
    slot = &(*slot)->chain;
  *slot = node->chain;
  lru_unlink(m, node);
  m->bytes -= node->entry->wire_size;
  m->n--;
  node->chain = *gone;
  *gone = node;
}

static uint64_t release(kiln__cache *cache, kiln__tier_node *gone)
{
  uint64_t n = 0;

  while (gone != NULL) {
    kiln__tier_node *next = gone->chain;

    kiln__entry_unref(gone->entry);
    kiln__free(cache->alloc, gone);
    gone = next;
    n++;
  }
  return n;
}

kiln__entry *kiln__tier_peek(kiln__cache *cache, const kiln__key *key)
{
  kiln__tier *m = &cache->memory;
  kiln__tier_node *node = find(m, key->hash);

  if (node == NULL || !kiln__entry_has_key(node->entry, &key->text))
    return NULL;
  lru_unlink(m, node);
  lru_push(m, node);
  return kiln__entry_ref(node->entry);
}

kiln__entry *kiln__tier_find(kiln__cache *cache, const kiln__key *key)
{
  kiln__entry *entry;

  if (kiln__forked(&cache->fork))
    return NULL;
  pthread_mutex_lock(&cache->lock);
  entry = kiln__tier_peek(cache, key);
  pthread_mutex_unlock(&cache->lock);
  return entry;
}

void kiln__tier_put(kiln__cache *cache, kiln__entry *entry)
{
  kiln__tier *m = &cache->memory;
  kiln__tier_node *node, *old, *gone = NULL, **slot;

  if (entry->wire_size > m->cap || kiln__forked(&cache->fork))
    return;
  node = kiln__alloc(cache->alloc, sizeof *node);
  if (node == NULL)
    return;
  node->entry = kiln__entry_ref(entry);

  pthread_mutex_lock(&cache->lock);
  old = find(m, entry->hash);
  if (old != NULL)
    take_out(m, old, &gone);
  while (m->oldest != NULL && m->bytes + entry->wire_size > m->cap)
    take_out(m, m->oldest, &gone);
  slot = &m->buckets[bucket_of(entry->hash)];
  node->chain = *slot;
  *slot = node;
  lru_push(m, node);
  m->bytes += entry->wire_size;
  m->n++;
  pthread_mutex_unlock(&cache->lock);
  release(cache, gone);
}

void kiln__tier_drop(kiln__cache *cache, const kiln__entry *entry)
{
  kiln__tier_node *node, *gone = NULL;

  if (kiln__forked(&cache->fork))
    return;
  pthread_mutex_lock(&cache->lock);
  node = find(&cache->memory, entry->hash);
  if (node != NULL &&
      (node->entry == entry || kiln__entry_same(node->entry, entry)))
    take_out(&cache->memory, node, &gone);
  pthread_mutex_unlock(&cache->lock);
  release(cache, gone);
}

uint64_t kiln__tier_clear(kiln__cache *cache)
{
  kiln__tier *m = &cache->memory;
  kiln__tier_node *gone = NULL;

  if (kiln__forked(&cache->fork))
    return 0;
  pthread_mutex_lock(&cache->lock);
  while (m->oldest != NULL)
    take_out(m, m->oldest, &gone);
  pthread_mutex_unlock(&cache->lock);
  return release(cache, gone);
}

kiln_status kiln__tier_list(kiln__cache *cache, kiln__entry ***out, size_t *n)
{
  const kiln__tier *m = &cache->memory;
  size_t capacity;

  *out = NULL;
  *n = 0;
  if (kiln__forked(&cache->fork))
    return KILN_OK;
  pthread_mutex_lock(&cache->lock);
  capacity = m->n;
  pthread_mutex_unlock(&cache->lock);
  if (capacity == 0)
    return KILN_OK;
  *out = kiln__calloc(cache->alloc, capacity, sizeof(kiln__entry *));
  if (*out == NULL)
    return kiln__fail_memory("list of cache entries");
  pthread_mutex_lock(&cache->lock);
  for (kiln__tier_node *node = m->newest; node != NULL && *n < capacity;
       node = node->older)
    (*out)[(*n)++] = kiln__entry_ref(node->entry);
  pthread_mutex_unlock(&cache->lock);
  return KILN_OK;
}
