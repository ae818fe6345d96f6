/* dropin_totals.c -- sums launches, instructions and time per kernel.
 *
 * Every launch adds to its kernel's sums, so the look-up must take less than a
 * microsecond. The sums are in a list in the order of the first launches, and a
 * hash table with chains leads from the name of a kernel to its sums. Programs
 * may unload modules, so the names are copied. */
#include "dropin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

typedef struct entry {
  kiln__dropin_total total;
  struct entry *next, *chain;
  char name[];
} entry;

static struct totals {
  pthread_mutex_t lock;
  entry *first, **last, *bucket[BUCKETS];
} totals = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the FNV-1a hash of a name. */
static uint32_t hash(const char *name)
{
  uint32_t h = 2166136261u;

  for (; *name != '\0'; name++)
    h = (h ^ (unsigned char)*name) * 16777619u;
  return h;
}

/* Returns the sums of a kernel, or NULL if there is no memory. The caller holds
 * the lock. */
static kiln__dropin_total *total_of(const char *kernel)
{
  entry **bucket = &totals.bucket[hash(kernel) % BUCKETS], *e = *bucket;
  const size_t size = strlen(kernel) + 1;

  while (e != NULL && strcmp(e->name, kernel) != 0)
    e = e->chain;
  if (e != NULL)
    return &e->total;
  e = calloc(1, sizeof *e + size);
  if (e == NULL)
    return NULL;
  memcpy(e->name, kernel, size);
  e->total.kernel = e->name;
  e->chain = *bucket;
  *bucket = e;
  *(totals.first == NULL ? &totals.first : totals.last) = e;
  totals.last = &e->next;
  return &e->total;
}

void kiln__dropin_add(const kiln__dropin_total *launch)
{
  kiln__dropin_total *t;

  pthread_mutex_lock(&totals.lock);
  t = total_of(launch->kernel);
  if (t != NULL) {
    t->launches += launch->launches;
    t->checked += launch->checked;
    t->warp_insns += launch->warp_insns;
    t->ns += launch->ns;
    t->threads = t->threads > launch->threads ? t->threads : launch->threads;
  }
  pthread_mutex_unlock(&totals.lock);
}

void kiln__dropin_each_total(void (*each)(void *user,
                                          const kiln__dropin_total *total),
                             void *user)
{
  pthread_mutex_lock(&totals.lock);
  for (const entry *e = totals.first; e != NULL; e = e->next)
    each(user, &e->total);
  pthread_mutex_unlock(&totals.lock);
}
