/* shared_wire.c -- messages between processes of one machine through shared memory.
 *
 * Problem: processes that no MPI has started are to exchange messages, and a process
 * that dies must never block another one.
 *
 * Idea: a segment holds one ring of bytes per ordered pair of ranks. Only the sender
 * advances `written`, and only the receiver advances `taken`, so no lock is needed. A
 * message is a header and its bytes. Each test of a request moves bytes of that pair:
 * out of the queue of sends into the ring, and out of the other ring into messages.
 *
 * Invariant: 0 <= written - taken <= RING. A message that has begun in a ring is always
 * completed, also if its request is dropped.
 *
 * Cost: two copies per byte, RING bytes per ordered pair. Source: Lamport 1977, the
 * ring with one producer and one consumer. */
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RING = 1 << 15 };

typedef struct ring {
  _Alignas(64) _Atomic uint64_t written;
  _Alignas(64) _Atomic uint64_t taken;
  _Alignas(64) char data[RING];
} ring;

/* The segment; it begins as zeros. */
typedef struct segment {
  _Atomic uint32_t joined; /* ranks */
  _Atomic uint32_t ranks;  /* size of the group, set by whoever comes first */
  ring rings[];            /* [from * ranks + to] */
} segment;

typedef struct header {
  int32_t channel;
  uint32_t reserved;
  uint64_t size;
} header;

/* A message that waits for its receive. */
typedef struct parcel {
  struct parcel *next;
  header head;
  char data[];
} parcel;

typedef struct shared_request {
  struct shared_request *next; /* in the queue of sends */
  int receive, peer, channel, done;
  header head;
  char *data;
  void *copy;      /* of a send that was dropped: `data`, owned by the wire */
  uint64_t passed; /* bytes of header and data that are in the ring */
} shared_request;

/* What a rank knows of one other rank. */
typedef struct route {
  ring *out, *in;
  shared_request *sends, *last_send;
  header head;  /* of the message that arrives */
  uint64_t got; /* its bytes so far, header included */
  parcel *coming, *first, *last;
} route;

typedef struct shared_wire {
  segment *segment;
  size_t size;
  int rank, ranks;
  unsigned rests;
  route links[];
} shared_wire;

/* ---- Rings --------------------------------------------------------------- */

/* Appends as many bytes as fit. Returns their number. */
static size_t ring_put(ring *r, const void *data, size_t size)
{
  const uint64_t at = atomic_load_explicit(&r->written, memory_order_relaxed);
  const uint64_t taken = atomic_load_explicit(&r->taken, memory_order_acquire);
  const size_t space = RING - (size_t)(at - taken), from = at % RING;
  const size_t n = size < space ? size : space;
  const size_t first = n < RING - from ? n : RING - from;

  if (n == 0)
    return 0;
  memcpy(r->data + from, data, first);
  memcpy(r->data, (const char *)data + first, n - first);
  atomic_store_explicit(&r->written, at + n, memory_order_release);
  return n;
}

/* Removes at most `size` bytes. Returns their number. */
static size_t ring_take(ring *r, void *data, size_t size)
{
  const uint64_t at = atomic_load_explicit(&r->taken, memory_order_relaxed);
  const uint64_t written =
      atomic_load_explicit(&r->written, memory_order_acquire);
  const size_t there = (size_t)(written - at), from = at % RING;
  const size_t n = size < there ? size : there;
  const size_t first = n < RING - from ? n : RING - from;

  if (n == 0)
    return 0;
  memcpy(data, r->data + from, first);
  memcpy((char *)data + first, r->data, n - first);
  atomic_store_explicit(&r->taken, at + n, memory_order_release);
  return n;
}

/* ---- Progress ------------------------------------------------------------ */

/* Moves the next bytes of a send into the ring. Returns whether all are there. */
static bool push(route *l, shared_request *s)
{
  while (s->passed < sizeof s->head) {
    const size_t n = ring_put(l->out, (const char *)&s->head + s->passed,
                              sizeof s->head - (size_t)s->passed);

    if (n == 0)
      return false;
    s->passed += n;
  }
  s->passed += ring_put(l->out, s->data + (s->passed - sizeof s->head),
                        (size_t)(s->head.size + sizeof s->head - s->passed));
  return s->passed == s->head.size + sizeof s->head;
}

static void push_all(route *l)
{
  while (l->sends != NULL && push(l, l->sends)) {
    shared_request *const s = l->sends;

    l->sends = s->next;
    if (l->sends == NULL)
      l->last_send = NULL;
    s->done = 1;
    if (s->copy != NULL) { /* nobody waits for it */
      free(s->copy);
      free(s);
    }
  }
}

/* Takes the next bytes that have arrived. Returns false if there are none, or if
 * memory ran out. */
static bool pull(route *l)
{
  size_t n;

  if (l->got < sizeof l->head) {
    n = ring_take(l->in, (char *)&l->head + l->got,
                  sizeof l->head - (size_t)l->got);
    l->got += n;
    if (l->got < sizeof l->head)
      return n > 0;
  }
  if (l->coming == NULL) {
    l->coming = malloc(sizeof *l->coming + (size_t)l->head.size);
    if (l->coming == NULL)
      return false;
    l->coming->next = NULL;
    l->coming->head = l->head;
  }
  n = ring_take(l->in, l->coming->data + (l->got - sizeof l->head),
                (size_t)(l->head.size + sizeof l->head - l->got));
  l->got += n;
  if (l->got < l->head.size + sizeof l->head)
    return n > 0;
  if (l->first == NULL)
    l->first = l->coming;
  else
    l->last->next = l->coming;
  l->last = l->coming;
  l->coming = NULL;
  l->got = 0;
  return true;
}

static void progress(route *l)
{
  push_all(l);
  while (pull(l))
    ;
}

/* Removes the first message of a channel; NULL if there is none. */
static parcel *take_parcel(route *l, int channel)
{
  parcel *p, *before = NULL;

  for (p = l->first; p != NULL; before = p, p = p->next) {
    if (p->head.channel == channel)
      break;
  }
  if (p == NULL)
    return NULL;
  if (before == NULL)
    l->first = p->next;
  else
    before->next = p->next;
  if (l->last == p)
    l->last = before;
  return p;
}

/* ---- The table ----------------------------------------------------------- */

static void *shared_post(void *opened, int receive, int peer, int channel,
                         void *data, size_t size, char why[KILN__WHY_SIZE])
{
  shared_wire *const w = opened;
  route *const l = &w->links[peer];
  shared_request *const r = calloc(1, sizeof *r);

  if (r == NULL) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory for a message");
    return NULL;
  }
  r->receive = receive;
  r->peer = peer;
  r->channel = channel;
  r->head = (header){channel, 0, size};
  r->data = data;
  if (receive)
    return r;
  if (l->sends == NULL)
    l->sends = r;
  else
    l->last_send->next = r;
  l->last_send = r;
  push_all(l);
  return r;
}

static int shared_test(void *opened, void *request, char why[KILN__WHY_SIZE])
{
  shared_wire *const w = opened;
  shared_request *const r = request;
  route *const l = &w->links[r->peer];
  parcel *p = NULL;
  int result = 1;

  progress(l);
  if (r->receive)
    p = take_parcel(l, r->channel);
  if (r->receive ? p == NULL : !r->done)
    return 0;
  if (p != NULL && p->head.size == r->head.size) {
    memcpy(r->data, p->data, (size_t)p->head.size);
  } else if (p != NULL) {
    (void)snprintf(why, KILN__WHY_SIZE, "got %llu bytes instead of %llu",
                   (unsigned long long)p->head.size,
                   (unsigned long long)r->head.size);
    result = -1;
  }
  free(p);
  free(r);
  w->rests = 0;
  return result;
}

/* Removes a send that has not begun from its queue. */
static void unlink_send(route *l, const shared_request *r)
{
  shared_request *before = NULL;

  for (shared_request *s = l->sends; s != r; s = s->next)
    before = s;
  if (before == NULL)
    l->sends = r->next;
  else
    before->next = r->next;
  if (l->last_send == r)
    l->last_send = before;
}

static int shared_drop(void *opened, void *request)
{
  shared_wire *const w = opened;
  shared_request *const r = request;
  route *const l = &w->links[r->peer];

  progress(l);
  if (!r->receive && !r->done && r->passed > 0) {
    r->copy = malloc((size_t)r->head.size + 1);
    if (r->copy == NULL)
      return 0; /* the ring is fed from the caller's memory */
    memcpy(r->copy, r->data, (size_t)r->head.size);
    r->data = r->copy;
    return 1;
  }
  if (!r->receive && !r->done)
    unlink_send(l, r);
  free(r);
  return 1;
}

/* The first rests yield the processor. Later ones sleep, longer and longer, up to
 * a millisecond. */
static void shared_rest(void *opened)
{
  shared_wire *const w = opened;
  struct timespec t = {0, 0};

  if (w->rests < 1000)
    w->rests++;
  if (w->rests > 50)
    t.tv_nsec = (long)w->rests * 1000;
  (void)nanosleep(&t, NULL);
}

/* ---- Groups -------------------------------------------------------------- */

/* Maps the segment of a group, which the first rank creates. */
static segment *map_segment(const kiln__shared_group *g, size_t size,
                            char why[KILN__WHY_SIZE])
{
  const int file = shm_open(g->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void *memory = MAP_FAILED;
  int code = 0;

  if (file < 0) {
    (void)snprintf(why, KILN__WHY_SIZE, "shm_open(%s): %s", g->name,
                   strerror(errno));
    return NULL;
  }
  code = posix_fallocate(file, 0, (off_t)size);
  if (code == 0)
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    (void)snprintf(why, KILN__WHY_SIZE,
                   "%zu bytes of shared memory (/dev/shm): %s", size,
                   strerror(code != 0 ? code : errno));
  (void)close(file);
  return memory == MAP_FAILED ? NULL : memory;
}

/* Waits until all ranks have mapped the segment. */
static bool meet(const kiln__shared_group *g, segment *s,
                 char why[KILN__WHY_SIZE])
{
  const struct timespec pause = {0, 1000000};
  const uint64_t start = kiln__comm_now();
  uint32_t none = 0;

  if (!atomic_compare_exchange_strong(&s->ranks, &none, (uint32_t)g->ranks) &&
      none != (uint32_t)g->ranks) {
    (void)snprintf(why, KILN__WHY_SIZE,
                   "this rank wants %d ranks, and another one %u", g->ranks,
                   none);
    return false;
  }
  atomic_fetch_add(&s->joined, 1);
  while (atomic_load(&s->joined) < (uint32_t)g->ranks) {
    if (kiln__comm_now() - start > g->timeout_ms) {
      (void)snprintf(why, KILN__WHY_SIZE,
                     "only %u of %d ranks have joined within %u ms",
                     atomic_load(&s->joined), g->ranks, g->timeout_ms);
      return false;
    }
    (void)nanosleep(&pause, NULL);
  }
  return true;
}

static void *shared_open(const void *parent, int *rank, int *ranks,
                         char why[KILN__WHY_SIZE])
{
  const kiln__shared_group *const g = parent;
  const size_t n = (size_t)g->ranks;
  shared_wire *const w = calloc(1, sizeof *w + n * sizeof *w->links);

  if (w == NULL) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory");
    return NULL;
  }
  w->rank = *rank = g->rank;
  w->ranks = *ranks = g->ranks;
  w->size = sizeof *w->segment + n * n * sizeof(ring);
  w->segment = map_segment(g, w->size, why);
  if (w->segment == NULL || !meet(g, w->segment, why)) {
    (void)shm_unlink(g->name);
    if (w->segment != NULL)
      (void)munmap(w->segment, w->size);
    free(w);
    return NULL;
  }
  (void)shm_unlink(g->name); /* all have it; the first one removes the name */
  for (size_t p = 0; p < n; p++) {
    w->links[p].out = &w->segment->rings[(size_t)g->rank * n + p];
    w->links[p].in = &w->segment->rings[p * n + (size_t)g->rank];
  }
  return w;
}

static void free_link(route *l)
{
  for (shared_request *s = l->sends, *next; s != NULL; s = next) {
    next = s->next;
    free(s->copy);
    free(s);
  }
  for (parcel *p = l->first, *next; p != NULL; p = next) {
    next = p->next;
    free(p);
  }
  free(l->coming);
}

static void shared_close(void *opened, int broken)
{
  shared_wire *const w = opened;

  (void)broken;
  for (int p = 0; p < w->ranks; p++)
    free_link(&w->links[p]);
  (void)munmap(w->segment, w->size);
  free(w);
}

const kiln__wire_api kiln__shared_wire = {
    .version = KILN__WIRE_VERSION,
    .name = "shared memory",
    .open = shared_open,
    .close = shared_close,
    .post = shared_post,
    .test = shared_test,
    .drop = shared_drop,
    .rest = shared_rest,
};
