/* cache_api.c -- the public cache functions of <kiln/cache.h>. The functions
 * check their arguments and call the runtime's cache. */
#include "runtime.h"

static kiln_status need(const kiln_runtime *rt, const void *other)
{
  if (rt == NULL || other == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "rt or out is NULL");
  return KILN_OK;
}

kiln_status kiln_cache_counters(kiln_runtime *rt, kiln_cache_stats *out)
{
  const kiln_status st = need(rt, out);

  if (st == KILN_OK)
    kiln__cache_stats_get(rt->cache, out);
  return st;
}

kiln_status kiln_cache_describe(kiln_runtime *rt, kiln_cache_info *out)
{
  const kiln_status st = need(rt, out);

  if (st == KILN_OK)
    kiln__cache_info_get(rt->cache, out);
  return st;
}

kiln_status kiln_cache_each(kiln_runtime *rt, bool verify, kiln_cache_fn fn,
                            void *user)
{
  if (rt == NULL || fn == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "rt or fn is NULL");
  return kiln__cache_visit(rt->cache, verify, fn, user);
}

/* The common beginning of repair, trim and clear. `removed` may be NULL. */
static kiln_status start_count(const kiln_runtime *rt, uint64_t **removed,
                               uint64_t *unused)
{
  if (*removed == NULL)
    *removed = unused;
  **removed = 0;
  return need(rt, rt);
}

kiln_status kiln_cache_repair(kiln_runtime *rt, uint64_t *removed)
{
  uint64_t unused;
  const kiln_status st = start_count(rt, &removed, &unused);

  return st != KILN_OK ? st : kiln__cache_repair(rt->cache, removed);
}

kiln_status kiln_cache_trim(kiln_runtime *rt, uint64_t bytes, uint64_t *removed)
{
  uint64_t unused;
  const kiln_status st = start_count(rt, &removed, &unused);

  return st != KILN_OK ? st : kiln__cache_shrink(rt->cache, bytes, removed);
}

kiln_status kiln_cache_clear(kiln_runtime *rt, uint64_t *removed)
{
  uint64_t unused;
  const kiln_status st = start_count(rt, &removed, &unused);

  return st != KILN_OK ? st : kiln__cache_wipe(rt->cache, removed);
}
