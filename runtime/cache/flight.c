/* flight.c -- single flight: at most one compile per key runs at a time.
 *
 * Problem: threads and processes that start together request the same kernels,
 * and a compile takes from 10 ms to several seconds. Each kernel should be
 * compiled once.
 * Idea for threads: the first thread that does not find a key in the cache
 * becomes the leader of a "flight", which is one compile that all waiting
 * threads share. The other threads wait on the flight's condition variable and
 * share the result, or the failure with its error record.
 * Idea for processes: the leader locks one byte of the lock file, chosen by the
 * hash of the key. The lock belongs to an open file description, so the kernel
 * releases it when the process ends for any reason. The lock file is never
 * unlinked, so every process locks the same file.
 * Invariants: no mutex is held while compiling. The file locks are only an
 * optimisation: after wait_ms a waiting process compiles the kernel itself, and
 * publishing by rename keeps the two results apart. Two keys that share a byte
 * merely wait for each other. A thread never waits for a flight that it leads,
 * either directly or through other threads.
 * Cost: a list of flights under the cache's mutex. Between processes, the lock
 * and the entry file are polled every 1 to 20 ms.
 * Source: the "singleflight" package of Go's groupcache; fcntl(2), open file
 * description locks. */
#include "tiers.h"

#include <errno.h>
#include <string.h>

enum { FIRST_PAUSE_NS = 1000000, LONGEST_PAUSE_NS = 20000000 };

struct kiln__flight {
  kiln__flight *next;
  /* The leader thread owns the key, which is valid while the flight is in the
   * list. */
  const kiln__key *key;
  pthread_t leader;
  pthread_cond_t landed;
  unsigned refs;
  bool done;
  kiln_status status;
  kiln_origin origin;
  kiln__entry *entry;
  kiln_error error;
};

struct kiln__waiter {
  kiln__waiter *next;
  pthread_t thread;
  const kiln__flight *flight;
};

kiln_status kiln__make(kiln__cache *cache, const kiln__fetch *fetch,
                       kiln__entry **out)
{
  kiln_status st;

  kiln__count(&cache->stats.misses, 1);
  st = fetch->make(fetch->user, out);
  if (st == KILN_OK && *out == NULL)
    st = kiln__fail(KILN_EINTERNAL, NULL, "a compile ended without an image");
  if (st != KILN_OK) {
    *out = NULL;
    return st;
  }
  if (!fetch->private_only) {
    /* The entry is added to the memory tier first, since writing to disk takes
     * time. */
    kiln__tier_put(cache, *out);
    kiln__disk_publish(cache, *out);
  }
  return KILN_OK;
}

/* ---- Between processes --------------------------------------------------- */

/* A file lock that represents a cache key between processes. */
typedef struct turn {
  /* Descriptor of the lock file; -1 means that the leader continues without a
   * lock. */
  int fd;
  off_t at;
  bool held;
} turn;

static off_t lock_offset(const kiln__key *key)
{
  uint64_t at = 0;

  for (int i = 0; i < 15; i++) {
    const char c = key->hash[i];

    at = at << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  /* the offset of the locked byte never equals KILN__EVICT_LOCK */
  return (off_t)(at | (uint64_t)1 << 61);
}

static void open_turn(kiln__cache *cache, const kiln__key *key, turn *t)
{
  int dir;

  *t = (turn){.fd = -1, .at = lock_offset(key)};
  if (cache->dir == NULL)
    return;
  dir = kiln__cache_folder(cache, true, NULL);
  if (dir < 0) {
    if (errno != EPERM)
      kiln__count(&cache->stats.lock_failures, 1);
    return;
  }
  t->fd = kiln__lock_file(cache, dir);
  kiln__file_close(cache->fs, dir);
}

static void close_turn(kiln__cache *cache, turn *t)
{
  if (t->held)
    kiln__lock_release(cache, t->fd, t->at);
  else
    kiln__file_close(cache->fs, t->fd);
  t->fd = -1;
}

/* Waits for the file lock of a key. Returns the entry if another process has
 * published it meanwhile. If the result is NULL, the caller compiles, whether
 * or not it holds the lock. */
static kiln__entry *await_turn(kiln__cache *cache, const kiln__key *key,
                               turn *t)
{
  const uint64_t deadline =
      kiln__clock_ns() + (uint64_t)cache->wait_ms * 1000000;
  uint64_t pause = FIRST_PAUSE_NS, now;
  kiln__entry *entry;
  bool waited = false;

  while (!(t->held = kiln__lock_wait(cache, t->fd, t->at, 0))) {
    if (errno != EAGAIN)
      return NULL;
    if (!waited)
      kiln__count(&cache->stats.waits, 1);
    waited = true;
    entry = kiln__disk_read(cache, key);
    if (entry != NULL)
      return entry;
    now = kiln__clock_ns();
    if (now >= deadline) {
      kiln__count(&cache->stats.wait_timeouts, 1);
      return NULL;
    }
    kiln__sleep_ns(pause < deadline - now ? pause : deadline - now);
    pause = pause < LONGEST_PAUSE_NS / 2 ? pause * 2 : LONGEST_PAUSE_NS;
  }
  entry = kiln__disk_read(cache, key);
  if (entry != NULL && !waited)
    kiln__count(&cache->stats.waits, 1);
  return entry;
}

static kiln_status produce(kiln__cache *cache, const kiln__fetch *fetch,
                           kiln__entry **out, kiln_origin *origin)
{
  kiln_status st = KILN_OK;
  turn t;

  open_turn(cache, fetch->key, &t);
  if (t.fd >= 0)
    *out = await_turn(cache, fetch->key, &t);
  if (*out != NULL) {
    *origin = KILN_FROM_OTHER_PROCESS;
    kiln__tier_put(cache, *out);
  } else {
    *origin = KILN_FROM_COMPILER;
    st = kiln__make(cache, fetch, out);
  }
  close_turn(cache, &t);
  return st;
}

/* ---- Between threads ----------------------------------------------------- */

/* The functions of this section are called with cache->lock held. */

static kiln__flight *find_flight(kiln__cache *cache, const kiln__key *key)
{
  kiln__flight *flight = cache->flights;

  while (flight != NULL &&
         (strcmp(flight->key->hash, key->hash) != 0 ||
          flight->key->text.size != key->text.size ||
          memcmp(flight->key->text.data, key->text.data, key->text.size) != 0))
    flight = flight->next;
  return flight;
}

static const kiln__flight *awaited_by(const kiln__cache *cache,
                                      pthread_t thread)
{
  const kiln__waiter *w = cache->waiters;

  while (w != NULL && !pthread_equal(w->thread, thread))
    w = w->next;
  return w == NULL ? NULL : w->flight;
}

/* Returns true if waiting for a flight (a shared compile) would deadlock: this
 * thread leads the flight, or leads another flight for which the flight's
 * leader waits. Such a cycle is possible because make() may call the cache
 * again, for the same key or for a key of another thread. */
static bool waits_for_self(const kiln__cache *cache, const kiln__flight *flight)
{
  const pthread_t self = pthread_self();

  while (flight != NULL && !flight->done) {
    if (pthread_equal(flight->leader, self))
      return true;
    flight = awaited_by(cache, flight->leader);
  }
  return false;
}

static void wait_for(kiln__cache *cache, kiln__flight *flight)
{
  kiln__waiter me = {cache->waiters, pthread_self(), flight};
  kiln__waiter **at;

  cache->waiters = &me; /* cppcheck-suppress autoVariables; unlinked below */
  flight->refs++;
  while (!flight->done)
    pthread_cond_wait(&flight->landed, &cache->lock);
  for (at = &cache->waiters; *at != &me; at = &(*at)->next)
    continue;
  *at = me.next;
}

static void unlist(kiln__cache *cache, kiln__flight *flight)
{
  kiln__flight **at = &cache->flights;

  while (*at != flight)
    at = &(*at)->next;
  *at = flight->next;
}

/* ---- Functions that are called without the cache's lock ----------------- */

static void drop_flight(kiln__cache *cache, kiln__flight *flight)
{
  unsigned left;

  pthread_mutex_lock(&cache->lock);
  left = --flight->refs;
  pthread_mutex_unlock(&cache->lock);
  if (left > 0)
    return;
  kiln__entry_unref(flight->entry);
  pthread_cond_destroy(&flight->landed);
  kiln__free(cache->alloc, flight);
}

static kiln_status lead(kiln__cache *cache, const kiln__fetch *fetch,
                        kiln__flight *flight, kiln__entry **out,
                        kiln_origin *origin)
{
  kiln_status st;

  st = produce(cache, fetch, out, origin);
  flight->status = st;
  if (st != KILN_OK)
    kiln__error_get(&flight->error);
  flight->entry = kiln__entry_ref(*out);
  flight->origin = *origin == KILN_FROM_COMPILER ? KILN_FROM_MEMORY : *origin;

  pthread_mutex_lock(&cache->lock);
  flight->done = true;
  unlist(cache, flight);
  pthread_cond_broadcast(&flight->landed);
  pthread_mutex_unlock(&cache->lock);
  drop_flight(cache, flight);
  return st;
}

static kiln_status follow(kiln__cache *cache, kiln__flight *flight,
                          kiln__entry **out, kiln_origin *origin)
{
  const kiln_status st = flight->status;

  if (st == KILN_OK) {
    *out = kiln__entry_ref(flight->entry);
    *origin = flight->origin;
  } else if (st != KILN_ECANCELED) {
    kiln__error_set(&flight->error);
  }
  drop_flight(cache, flight);
  return st;
}

static kiln__flight *new_flight(kiln__cache *cache, const kiln__key *key)
{
  kiln__flight *flight = kiln__calloc(cache->alloc, 1, sizeof *flight);

  if (flight == NULL)
    return NULL;
  flight->key = key;
  flight->leader = pthread_self();
  flight->refs = 1;
  pthread_cond_init(&flight->landed, NULL);
  return flight;
}

typedef enum course {
  LANDED, /* the shared compile has ended, and *out is the entry */
  LEAD,   /* this thread leads a new flight, and `mine` is in the list */
  FOLLOW, /* *flight has ended, with an entry or with a failure */
  ALONE   /* waiting would deadlock, or memory for a flight ran out */
} course;

static course join(kiln__cache *cache, const kiln__key *key, kiln__flight *mine,
                   kiln__flight **flight, kiln__entry **out)
{
  course c;

  pthread_mutex_lock(&cache->lock);
  *out = kiln__tier_peek(cache, key);
  *flight = *out == NULL ? find_flight(cache, key) : NULL;
  if (*out != NULL) {
    c = LANDED;
  } else if (*flight == NULL && mine != NULL) {
    mine->next = cache->flights;
    cache->flights = mine;
    c = LEAD;
  } else if (*flight == NULL || waits_for_self(cache, *flight)) {
    c = ALONE;
  } else {
    kiln__count(&cache->stats.waits, 1);
    wait_for(cache, *flight);
    c = FOLLOW;
  }
  pthread_mutex_unlock(&cache->lock);
  return c;
}

kiln_status kiln__flight_run(kiln__cache *cache, const kiln__fetch *fetch,
                             kiln__entry **out, kiln_origin *origin)
{
  kiln_status st = KILN_ECANCELED;

  if (kiln__forked(&cache->fork))
    return produce(cache, fetch, out, origin);
  /* A cancellation affects only the leader. The threads that waited for the
   * leader try again. */
  while (st == KILN_ECANCELED) {
    kiln__flight *mine = new_flight(cache, fetch->key), *flight;
    const course c = join(cache, fetch->key, mine, &flight, out);

    if (c == LEAD)
      return lead(cache, fetch, mine, out, origin);
    if (mine != NULL)
      drop_flight(cache, mine);
    switch (c) {
    case LANDED:
      kiln__count(&cache->stats.memory_hits, 1);
      *origin = KILN_FROM_MEMORY;
      return KILN_OK;
    case FOLLOW:
      st = follow(cache, flight, out, origin);
      break;
    /* ALONE means: compile without the lock file, since this thread may already
     * hold the lock of that byte. */
    default:
      *origin = KILN_FROM_COMPILER;
      return kiln__make(cache, fetch, out);
    }
  }
  return st;
}
