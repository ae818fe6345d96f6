/* inject_cupti.c -- records what a GPU does, by CUPTI's activity API.
 *
 * Problem: CUPTI collects records in buffers that this library provides, and
 * returns a buffer when it is full or when the library asks for it. A program
 * may launch millions of kernels, end without exit(), or crash.
 *
 * Idea: a thread asks CUPTI for its buffers ten times per second. A returned
 * buffer is translated into records of the file and reused. Before a fatal
 * signal with default action ends the process, the thread fetches the remaining
 * records.
 *
 * Invariant: at most MOST_BUFFERS buffers exist. If CUPTI needs more, it drops
 * records and counts them, and the file contains the count.
 *
 * Cost: some hundred nanoseconds per record, in threads of CUPTI and of this
 * library. What remains in the calling thread is CUPTI's own work. */
#include "cupti_abi.h"
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUFFER_BYTES = 1 << 20, MOST_BUFFERS = 128, FLUSH_MS = 100 };

static struct {
  void *library;
#define MEMBER(name, symbol, parameters) uint32_t(*name) parameters;
  CUPTI_FUNCTIONS(MEMBER)
#undef MEMBER
} cupti;

/* ---- Buffers --------------------------------------------------------------- */

static struct {
  pthread_mutex_t lock;
  uint8_t *unused[MOST_BUFFERS];
  int n_unused, n;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void request(uint8_t **buffer, size_t *size, size_t *most_records)
{
  uint8_t *b = NULL;

  pthread_mutex_lock(&pool.lock);
  if (pool.n_unused > 0) {
    b = pool.unused[--pool.n_unused];
  } else if (pool.n < MOST_BUFFERS) {
    b = aligned_alloc(64, BUFFER_BYTES);
    pool.n += b != NULL;
  }
  pthread_mutex_unlock(&pool.lock);
  *buffer = b;
  *size = b == NULL ? 0 : BUFFER_BYTES;
  *most_records = 0; /* as many as fit */
}

static void give_back(uint8_t *buffer)
{
  pthread_mutex_lock(&pool.lock);
  pool.unused[pool.n_unused++] = buffer;
  pthread_mutex_unlock(&pool.lock);
}

/* ---- Translation ----------------------------------------------------------- */

static void put_kernel(const cupti_kernel *k)
{
  profile_kernel r = {.head = {.type = PROFILE_KERNEL, .size = sizeof r},
                      .begin_ns = k->start,
                      .end_ns = k->end,
                      .correlation = k->correlation,
                      .place = {k->device, k->context, k->stream},
                      .static_shared = (uint32_t)k->static_shared,
                      .dynamic_shared = (uint32_t)k->dynamic_shared,
                      .local = k->local_per_thread,
                      .registers = k->registers,
                      .in_graph = k->graph != 0};

  for (int i = 0; i < 3; i++) {
    r.grid[i] = (uint32_t)k->grid[i];
    r.block[i] = (uint32_t)k->block[i];
  }
  r.head.name = kiln__record_name(k->name);
  kiln__record_put(&r.head);
}

/* The members that copies and fills share. CUPTI has a struct for each, in which
 * these members have the same names. */
#define TRANSFER(kind, m)                                                      \
  ((profile_copy){.head = {.type = (kind), .size = sizeof(profile_copy)},      \
                  .begin_ns = (m)->start,                                      \
                  .end_ns = (m)->end,                                          \
                  .correlation = (m)->correlation,                             \
                  .place = {(m)->device, (m)->context, (m)->stream},           \
                  .bytes = (m)->bytes,                                         \
                  .async = (m)->flags & 1,                                     \
                  .in_graph = (m)->graph != 0})

static void put_copy(const cupti_memcpy *m)
{
  profile_copy r = TRANSFER(PROFILE_COPY, m);

  r.from = m->from;
  r.to = m->to;
  kiln__record_put(&r.head);
}

static void put_peer_copy(const cupti_memcpy2 *m)
{
  const uint32_t peer =
      m->device == m->to_device ? m->from_device : m->to_device;
  profile_copy r = TRANSFER(PROFILE_COPY, m);

  r.from = m->from;
  r.to = m->to;
  r.peer = peer + 1;
  kiln__record_put(&r.head);
}

static void put_fill(const cupti_memset *m)
{
  profile_copy r = TRANSFER(PROFILE_FILL, m);

  r.to = (uint8_t)m->memory;
  kiln__record_put(&r.head);
}

enum { MOST_FUNCTIONS = 2048 };

/* Returns the number of an API function's name, which CUPTI is asked for
 * once. */
static uint32_t function_name(uint32_t domain, uint32_t function)
{
  static _Atomic(uint32_t) known[2][MOST_FUNCTIONS];
  const bool fits = function < MOST_FUNCTIONS;
  uint32_t number = fits ? known[domain - 1][function] : 0;
  const char *name = NULL;

  if (number != 0)
    return number;
  if (cupti.callback_name(domain, function, &name) != CUPTI_OK || name == NULL)
    name =
        domain == CUPTI_DOMAIN_DRIVER ? "driver function" : "runtime function";
  number = kiln__record_name(name);
  if (fits)
    known[domain - 1][function] = number;
  return number;
}

static void put_api(const cupti_api *a)
{
  const uint32_t domain =
      a->kind == CUPTI_KIND_DRIVER ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME;
  const profile_call r = {.head = {.type = PROFILE_CALL,
                                   .size = sizeof r,
                                   .name = function_name(domain, a->function)},
                          .begin_ns = a->start,
                          .end_ns = a->end,
                          .correlation = a->correlation,
                          .thread = a->thread,
                          .result = a->result,
                          .domain = domain};

  kiln__record_put(&r.head);
}

static void put_sync(const cupti_sync *s)
{
  static const char *const kinds[] = {"synchronisation", "wait for event",
                                      "stream waits for event",
                                      "wait for stream", "wait for context"};
  const uint32_t kind = s->type < sizeof kinds / sizeof *kinds ? s->type : 0;
  const profile_call r = {.head = {.type = PROFILE_SYNC,
                                   .size = sizeof r,
                                   .name = kiln__record_name(kinds[kind])},
                          .begin_ns = s->start,
                          .end_ns = s->end,
                          .correlation = s->correlation};

  kiln__record_put(&r.head);
}

/* Names the kinds of overhead. CUPTI's own kinds are multiples of 65536. */
static const char *overhead_name(uint32_t type)
{
  static const char *const own[] = {
      "buffer flush",   "instrumentation",       "resources",
      "module loading", "lazy function loading", "command buffer full",
      "buffer request", "managed memory"};
  const uint32_t i = (type >> 16) - 1;

  return type == 1                      ? "driver compiler"
         : i < sizeof own / sizeof *own ? own[i]
                                        : "other overhead";
}

static void put_overhead(const cupti_overhead *o)
{
  const profile_call r = {
      .head = {.type = PROFILE_OVERHEAD,
               .size = sizeof r,
               .name = kiln__record_name(overhead_name(o->type))},
      .begin_ns = o->start,
      .end_ns = o->end,
      .thread = o->object == CUPTI_OBJECT_THREAD ? o->ids[1] : 0};

  kiln__record_put(&r.head);
}

static void put_object(profile_type type, const char *name, uint32_t id,
                       uint32_t context, uint32_t device, uint32_t stream)
{
  const profile_object r = {.head = {.type = (uint16_t)type,
                                     .size = sizeof r,
                                     .name = kiln__record_name(name)},
                            .id = id,
                            .context = context,
                            .device = device,
                            .stream = stream};

  kiln__record_put(&r.head);
}

static void put_object_of(uint32_t kind, const void *record)
{
  if (kind == CUPTI_KIND_DEVICE) {
    const cupti_device *d = record;

    put_object(PROFILE_DEVICE, d->name, d->id, 0, 0, 0);
  } else if (kind == CUPTI_KIND_CONTEXT) {
    const cupti_context *x = record;

    put_object(PROFILE_CONTEXT, NULL, x->context, 0, x->device,
               x->default_stream);
  } else if (kind == CUPTI_KIND_STREAM) {
    const cupti_stream *s = record;

    put_object(PROFILE_STREAM, NULL, s->stream, s->context, 0, 0);
  } else if (kind == CUPTI_KIND_NAME) {
    const cupti_name *n = record;

    if (n->object == CUPTI_OBJECT_THREAD)
      put_object(PROFILE_THREAD, n->name, n->ids[1], 0, 0, 0);
  }
}

static void put_record(const void *record)
{
  const uint32_t kind = *(const uint32_t *)record;

  switch (kind) {
  case CUPTI_KIND_KERNEL:
  case CUPTI_KIND_CONCURRENT_KERNEL:
    put_kernel(record);
    break;
  case CUPTI_KIND_MEMCPY:
    put_copy(record);
    break;
  case CUPTI_KIND_MEMCPY2:
    put_peer_copy(record);
    break;
  case CUPTI_KIND_MEMSET:
    put_fill(record);
    break;
  case CUPTI_KIND_DRIVER:
  case CUPTI_KIND_RUNTIME:
    put_api(record);
    break;
  case CUPTI_KIND_SYNCHRONIZATION:
    put_sync(record);
    break;
  case CUPTI_KIND_OVERHEAD:
    put_overhead(record);
    break;
  default:
    put_object_of(kind, record);
  }
}

static void complete(void *context, uint32_t stream, uint8_t *buffer,
                     size_t size, size_t valid)
{
  void *record = NULL;
  size_t dropped = 0;

  (void)size;
  while (valid > 0 && cupti.next_record(buffer, valid, &record) == CUPTI_OK)
    put_record(record);
  if (cupti.dropped(context, stream, &dropped) == CUPTI_OK)
    kiln__record_lost(dropped);
  if (buffer != NULL)
    give_back(buffer);
}

/* ---- The thread that flushes, and fatal signals ---------------------------- */

static sem_t wake;
static atomic_bool urgent, saved;

void kiln__inject_cupti_flush(bool forced)
{
  if (cupti.library != NULL)
    (void)cupti.flush_all(forced ? CUPTI_FLUSH_FORCED : 0);
}

static void *flush_thread(void *unused)
{
  struct timespec until;

  (void)unused;
  for (;;) {
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += FLUSH_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (sem_timedwait(&wake, &until) != 0 && errno == EINTR) {
    }
    kiln__inject_cupti_flush(atomic_load(&urgent));
    if (atomic_load(&urgent))
      atomic_store(&saved, true);
  }
  return NULL;
}

/* Handles a fatal signal: wakes the thread that flushes, waits for it for at
 * most two seconds, and ends the process by the same signal. Makes only
 * async-signal-safe calls. */
static void save_and_end(int number)
{
  const struct timespec pause = {.tv_nsec = 2000000};

  atomic_store(&urgent, true);
  (void)sem_post(&wake);
  for (int i = 0; i < 1000 && !atomic_load(&saved); i++)
    (void)nanosleep(&pause, NULL);
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

/* Installs the handler for fatal signals that the program leaves at their
 * default action. A handler that the program installs later replaces it. */
static void catch_fatal_signals(void)
{
  static const int fatal[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                              SIGABRT, SIGTERM, SIGINT, SIGHUP};
  const struct sigaction ours = {.sa_handler = save_and_end,
                                 .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};

  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
    struct sigaction old;

    if (sigaction(fatal[i], NULL, &old) == 0 &&
        (old.sa_flags & SA_SIGINFO) == 0 && old.sa_handler == SIG_DFL)
      (void)sigaction(fatal[i], &ours, NULL);
  }
}

/* Starts the thread that flushes. It blocks all signals, so that the program's
 * threads run the program's handlers. */
static bool start_thread(void)
{
  pthread_t thread;
  sigset_t all, old;
  int rc;

  if (sem_init(&wake, 0, 0) != 0)
    return false;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  rc = pthread_create(&thread, NULL, flush_thread, NULL);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (rc == 0)
    pthread_detach(thread);
  return rc == 0;
}

/* ---- Start ------------------------------------------------------------------ */

/* Loads one libcupti. Stores its version and time.
 * @return NULL, or the reason why it cannot be used */
static const char *load(const char *path, uint32_t *version, uint64_t *now)
{
  const char *error = NULL;
  uint32_t rc;

  cupti.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (cupti.library == NULL)
    return dlerror();
#define LOAD(name, symbol, parameters)                                         \
  *(void **)&cupti.name = dlsym(cupti.library, #symbol);                       \
  if (cupti.name == NULL)                                                      \
    error = "it lacks " #symbol;
  CUPTI_FUNCTIONS(LOAD)
#undef LOAD
  if (error != NULL)
    return error;
  rc = cupti.get_version(version);
  if (rc == CUPTI_OK)
    rc = cupti.register_callbacks(request, complete);
  if (rc == CUPTI_OK)
    rc = cupti.enable(CUPTI_KIND_CONCURRENT_KERNEL);
  if (rc == CUPTI_OK)
    rc = cupti.get_timestamp(now);
  if (rc != CUPTI_OK && cupti.result_text(rc, &error) != CUPTI_OK)
    error = "it returns an unknown error";
  return rc == CUPTI_OK ? NULL : error;
}

/* Enables the other kinds of records. A kind that this CUPTI or driver does not
 * support is missing from the profile, and a note says so. */
static void enable_all(void)
{
  static const struct {
    uint32_t kind;
    bool call;
    const char *what;
  } kinds[] = {{CUPTI_KIND_MEMCPY, false, "copies"},
               {CUPTI_KIND_MEMCPY2, false, "copies between devices"},
               {CUPTI_KIND_MEMSET, false, "fills"},
               {CUPTI_KIND_DEVICE, false, "devices"},
               {CUPTI_KIND_CONTEXT, false, "contexts"},
               {CUPTI_KIND_STREAM, false, "streams"},
               {CUPTI_KIND_NAME, false, "names"},
               {CUPTI_KIND_DRIVER, true, "calls of the driver API"},
               {CUPTI_KIND_RUNTIME, true, "calls of the runtime API"},
               {CUPTI_KIND_SYNCHRONIZATION, true, "synchronisation"},
               {CUPTI_KIND_OVERHEAD, true, "overhead"}};
  const bool calls = kiln__inject_calls();

  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const char *why = "unknown error";
    uint32_t rc;

    if (kinds[i].call && !calls)
      continue;
    rc = cupti.enable(kinds[i].kind);
    if (rc == CUPTI_OK)
      continue;
    (void)cupti.result_text(rc, &why);
    kiln__record_note("CUPTI does not record %s: %s", kinds[i].what, why);
  }
}

void kiln__inject_cupti(void)
{
  const char *list = secure_getenv(PROFILE_CUPTI_VARIABLE);
  char *paths = strdup(list == NULL ? "" : list), *rest = paths, *path;
  char reasons[900] = "";
  uint32_t version = 0;
  uint64_t now = 0;
  bool loaded = false;

  while (!loaded && (path = strsep(&rest, ":")) != NULL) {
    const size_t used = strlen(reasons);
    const char *error;

    if (*path == '\0')
      continue;
    error = load(path, &version, &now);
    loaded = error == NULL;
    if (!loaded)
      snprintf(reasons + used, sizeof reasons - used, "%s%s: %s",
               used == 0 ? "" : "; ", path, error);
  }
  free(paths);
  if (!kiln__record_open(PROFILE_CUPTI, version, now))
    return;
  if (!loaded) {
    cupti.library = NULL;
    kiln__record_note("no libcupti could be used (%s)",
                      *reasons == '\0' ? "none was found" : reasons);
    return;
  }
  enable_all();
  if (start_thread())
    catch_fatal_signals();
}
