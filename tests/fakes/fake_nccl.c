/* fake_nccl.c -- a NCCL for the threads of one process. FAKE_NCCL_COPY is the address
 * of a function copy_memory() that accesses the memory of the device, in hexadecimal;
 * without it, the host can access the memory. Calls are collected until ncclGroupEnd(), which then sends all
 * messages and waits for those of the others. With FAKE_NCCL_FAIL=N the N-th
 * group of rank 1 fails with ncclSystemError. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, SYSTEM_ERROR = 2, REMOTE_ERROR = 6, MOST_RANKS = 16 };

typedef struct id {
  char bytes[128];
} id;

typedef struct message {
  struct message *next;
  size_t size;
  char data[];
} message;

typedef struct group {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int ranks, left, failed;
  message *boxes[MOST_RANKS][MOST_RANKS]; /* [to][from], in order */
} group;

typedef struct comm {
  group *group;
  int rank, groups;
} comm;

typedef enum kind { SEND, RECEIVE, REDUCE } kind;

/* A call that waits for the end of the group. */
typedef struct call {
  kind kind;
  const void *in;
  void *out;
  size_t n;
  int type, op, peer; /* peer: the other rank, or the root; -1: all ranks */
  comm *comm;
} call;

static _Thread_local call calls[4 * MOST_RANKS];
static _Thread_local int n_calls, depth;

static size_t size_of(int type)
{
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

  return sizes[type];
}

typedef void (*copy_memory)(void *to, const void *from, size_t size,
                            int to_device);

static void copy(void *to, const void *from, size_t size, int to_device)
{
  const char *const text = getenv("FAKE_NCCL_COPY");
  uintptr_t address = 0;
  copy_memory function;

  if (size == 0)
    return;
  if (text == NULL) {
    memcpy(to, from, size);
    return;
  }
  if (sscanf(text, "%lx", &address) != 1)
    abort();
  memcpy(&function, &address, sizeof function);
  function(to, from, size, to_device);
}

int ncclGetVersion(int *version)
{
  const char *const text = getenv("FAKE_NCCL_VERSION");

  *version = text != NULL ? atoi(text) : 22703;
  return OK;
}

const char *ncclGetErrorString(int result)
{
  return result == SYSTEM_ERROR ? "unhandled system error" : "remote error";
}

int ncclGetUniqueId(id *out)
{
  group *g = calloc(1, sizeof *g);

  if (g == NULL)
    return SYSTEM_ERROR;
  (void)pthread_mutex_init(&g->lock, NULL);
  (void)pthread_cond_init(&g->changed, NULL);
  memset(out, 0, sizeof *out);
  memcpy(out->bytes + 1, &g, sizeof g);
  out->bytes[0] = 1;
  return OK;
}

int ncclCommInitRank(comm **out, int ranks, id from, int rank)
{
  comm *c = calloc(1, sizeof *c);

  if (c == NULL || ranks > MOST_RANKS)
    return SYSTEM_ERROR;
  memcpy(&c->group, from.bytes + 1, sizeof c->group);
  c->rank = rank;
  c->group->ranks = ranks;
  *out = c;
  return OK;
}

int ncclCommAbort(comm *c)
{
  group *const g = c->group;
  int last;

  (void)pthread_mutex_lock(&g->lock);
  last = ++g->left == g->ranks;
  (void)pthread_mutex_unlock(&g->lock);
  free(c);
  if (!last)
    return OK;
  for (int i = 0; i < MOST_RANKS * MOST_RANKS; i++) {
    for (message *m = g->boxes[i / MOST_RANKS][i % MOST_RANKS], *next;
         m != NULL; m = next) {
      next = m->next;
      free(m);
    }
  }
  free(g);
  return OK;
}

int ncclCommCount(const comm *c, int *ranks)
{
  *ranks = c->group->ranks;
  return OK;
}

int ncclCommUserRank(const comm *c, int *rank)
{
  *rank = c->rank;
  return OK;
}

int ncclCommDestroy(comm *c)
{
  return ncclCommAbort(c);
}

int ncclCommGetAsyncError(comm *c, int *result)
{
  *result = c->group->failed ? REMOTE_ERROR : OK;
  return OK;
}

/* ---- Messages ------------------------------------------------------------ */

static message *new_message(size_t size)
{
  message *const m = calloc(1, sizeof *m + size);

  if (m == NULL)
    abort();
  m->size = size;
  return m;
}

static void put(comm *c, int to, message *m)
{
  message **end;

  (void)pthread_mutex_lock(&c->group->lock);
  for (end = &c->group->boxes[to][c->rank]; *end != NULL; end = &(*end)->next)
    ;
  *end = m;
  (void)pthread_cond_broadcast(&c->group->changed);
  (void)pthread_mutex_unlock(&c->group->lock);
}

/* Waits for a message, for at most FAKE_NCCL_WAIT seconds (default 60), as the real
 * NCCL does not wait here. Returns NULL if a rank has failed. */
static message *take(comm *c, int from)
{
  group *const g = c->group;
  message **const box = &g->boxes[c->rank][from];
  const char *const text = getenv("FAKE_NCCL_WAIT");
  struct timespec until;
  int waited = 0;
  message *m;

  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += text != NULL ? atoi(text) : 60;
  (void)pthread_mutex_lock(&g->lock);
  while (*box == NULL && !g->failed && waited == 0)
    waited = pthread_cond_timedwait(&g->changed, &g->lock, &until);
  m = *box;
  if (m != NULL)
    *box = m->next;
  (void)pthread_mutex_unlock(&g->lock);
  return m;
}

/* ---- Reductions ---------------------------------------------------------- */

static double float_of(int type, uint16_t h)
{
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const uint32_t bits = (uint32_t)h << 16;
  float f;
  double d;

  memcpy(&f, &bits, sizeof f);
  if (type == 9) /* bf16 */
    return (double)f;
  d = exponent == 0 ? ldexp(fraction, -24)
                    : ldexp(fraction + 1024, exponent - 25);
  return (h & 0x8000) != 0 ? -d : d;
}

/* Exact for the small integers of the tests. */
static uint16_t half_of(int type, double d)
{
  const float f = (float)d;
  uint32_t bits;
  int exponent;
  double fraction;

  memcpy(&bits, &f, sizeof bits);
  if (type == 9)
    return (uint16_t)(bits >> 16);
  if (d == 0)
    return 0;
  fraction = frexp(fabs(d), &exponent);
  return (uint16_t)((d < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                    ((int)(fraction * 2048) & 1023));
}

#define APPLY(a, b)                                                            \
  (op == 0   ? (a) + (b)                                                       \
   : op == 1 ? (a) * (b)                                                       \
   : op == 2 ? ((a) > (b) ? (a) : (b))                                         \
             : ((a) < (b) ? (a) : (b)))
#define FOLD(type, T)                                                          \
  case type:                                                                   \
    for (size_t i = 0; i < n; i++)                                             \
      ((T *)acc)[i] = (T)APPLY(((T *)acc)[i], ((const T *)x)[i]);              \
    break;

static void fold(int type, int op, void *acc, const void *x, size_t n)
{
  uint16_t *const a = acc;
  const uint16_t *const b = x;

  switch (type) {
    FOLD(0, int8_t)
    FOLD(1, uint8_t)
    FOLD(2, int32_t)
    FOLD(3, uint32_t)
    FOLD(4, int64_t)
    FOLD(5, uint64_t)
    FOLD(7, float)
    FOLD(8, double)
  default:
    for (size_t i = 0; i < n; i++)
      a[i] = half_of(type, APPLY(float_of(type, a[i]), float_of(type, b[i])));
  }
}

/* Combines the messages of all ranks, in their order. */
static int combine(const call *c)
{
  message *sum = NULL;

  for (int p = 0; p < c->comm->group->ranks; p++) {
    message *const m = take(c->comm, p);

    if (m == NULL) {
      free(sum);
      return REMOTE_ERROR;
    }
    if (p == 0) {
      sum = m;
      continue;
    }
    fold(c->type, c->op, sum->data, m->data, c->n);
    free(m);
  }
  if (sum != NULL)
    copy(c->out, sum->data, sum->size, 1);
  free(sum);
  return OK;
}

/* ---- Division ------------------------------------------------------------ */

typedef struct part {
  int colour, key;
} part;

/* Fills parts[] with what all ranks want. */
static int tell_parts(comm *c, part mine, part *parts)
{
  for (int p = 0; p < c->group->ranks; p++) {
    message *const m = new_message(sizeof mine);

    memcpy(m->data, &mine, sizeof mine);
    put(c, p, m);
  }
  for (int p = 0; p < c->group->ranks; p++) {
    message *const m = take(c, p);

    if (m == NULL)
      return REMOTE_ERROR;
    memcpy(&parts[p], m->data, sizeof parts[p]);
    free(m);
  }
  return OK;
}

/* The rank that all ranks of a part expect to create the group sends it. */
static int get_group(comm *c, const part *parts, int first, id *made)
{
  const part mine = parts[c->rank];
  message *m;

  for (int p = 0; c->rank == first && p < c->group->ranks; p++) {
    if (parts[p].colour != mine.colour)
      continue;
    if (made->bytes[0] == 0 && ncclGetUniqueId(made) != OK)
      return SYSTEM_ERROR;
    m = new_message(sizeof *made);
    memcpy(m->data, made, sizeof *made);
    put(c, p, m);
  }
  m = take(c, first);
  if (m == NULL)
    return REMOTE_ERROR;
  memcpy(made, m->data, sizeof *made);
  free(m);
  return OK;
}

int ncclCommSplit(comm *c, int colour, int key, comm **out, void *config)
{
  part parts[MOST_RANKS];
  int first = -1, rank = 0, ranks = 0;
  int result = tell_parts(c, (part){colour, key}, parts);
  id made;

  (void)config;
  *out = NULL;
  if (result != OK || colour < 0)
    return result;
  for (int p = 0; p < c->group->ranks; p++) {
    if (parts[p].colour != colour)
      continue;
    first = first < 0 ? p : first;
    ranks++;
    rank += parts[p].key < key || (parts[p].key == key && p < c->rank);
  }
  memset(&made, 0, sizeof made);
  result = get_group(c, parts, first, &made);
  return result == OK ? ncclCommInitRank(out, ranks, made, rank) : result;
}

/* ---- Groups -------------------------------------------------------------- */

static void put_input(const call *c, int to)
{
  message *const m = new_message(c->n * size_of(c->type));

  copy(m->data, c->in, m->size, 0);
  put(c->comm, to, m);
}

static void begin(const call *c)
{
  if (c->kind == SEND)
    put_input(c, c->peer);
  for (int p = 0; c->kind == REDUCE && p < c->comm->group->ranks; p++) {
    if (c->peer < 0 || c->peer == p)
      put_input(c, p);
  }
}

static int end(const call *c)
{
  message *m;

  if (c->kind == REDUCE && (c->peer < 0 || c->peer == c->comm->rank))
    return combine(c);
  if (c->kind != RECEIVE)
    return OK;
  m = take(c->comm, c->peer);
  if (m == NULL)
    return REMOTE_ERROR;
  if (m->size != c->n * size_of(c->type)) {
    free(m);
    return SYSTEM_ERROR;
  }
  copy(c->out, m->data, m->size, 1);
  free(m);
  return OK;
}

/* Whether this group of the rank is the one that fails. */
static int fails(comm *c)
{
  const char *text = getenv("FAKE_NCCL_FAIL");

  if (text == NULL || c->rank != 1 || ++c->groups != atoi(text))
    return 0;
  (void)pthread_mutex_lock(&c->group->lock);
  c->group->failed = 1;
  (void)pthread_cond_broadcast(&c->group->changed);
  (void)pthread_mutex_unlock(&c->group->lock);
  return 1;
}

int ncclGroupStart(void)
{
  if (depth++ == 0)
    n_calls = 0;
  return OK;
}

int ncclGroupEnd(void)
{
  int result = OK;

  if (--depth > 0 || n_calls == 0)
    return OK;
  if (fails(calls[0].comm))
    return SYSTEM_ERROR;
  for (int i = 0; i < n_calls; i++)
    begin(&calls[i]);
  for (int i = 0; i < n_calls && result == OK; i++)
    result = end(&calls[i]);
  return result;
}

/* A call outside of a group is a group of its own. */
static int queue(call c)
{
  if (depth > 0) {
    calls[n_calls++] = c;
    return OK;
  }
  (void)ncclGroupStart();
  calls[n_calls++] = c;
  return ncclGroupEnd();
}

int ncclSend(const void *in, size_t n, int type, int peer, comm *c, void *s)
{
  (void)s;
  return queue((call){SEND, in, NULL, n, type, 0, peer, c});
}

int ncclRecv(void *out, size_t n, int type, int peer, comm *c, void *s)
{
  (void)s;
  return queue((call){RECEIVE, NULL, out, n, type, 0, peer, c});
}

int ncclAllReduce(const void *in, void *out, size_t n, int type, int op,
                  comm *c, void *s)
{
  (void)s;
  return queue((call){REDUCE, in, out, n, type, op, -1, c});
}

int ncclReduce(const void *in, void *out, size_t n, int type, int op, int root,
               comm *c, void *s)
{
  (void)s;
  return queue((call){REDUCE, in, out, n, type, op, root, c});
}

int ncclAllGather(const void *in, void *out, size_t n, int type, comm *c,
                  void *s)
{
  const size_t size = n * size_of(type);

  (void)ncclGroupStart();
  for (int p = 0; p < c->group->ranks; p++) {
    (void)ncclSend(in, n, type, p, c, s);
    (void)ncclRecv((char *)out + (size_t)p * size, n, type, p, c, s);
  }
  return ncclGroupEnd();
}

int ncclReduceScatter(const void *in, void *out, size_t n, int type, int op,
                      comm *c, void *s)
{
  const size_t size = n * size_of(type);

  (void)ncclGroupStart();
  for (int p = 0; p < c->group->ranks; p++)
    (void)ncclReduce((const char *)in + (size_t)p * size, out, n, type, op, p,
                     c, s);
  return ncclGroupEnd();
}

int ncclBroadcast(const void *in, void *out, size_t n, int type, int root,
                  comm *c, void *s)
{
  (void)ncclGroupStart();
  for (int p = 0; p < c->group->ranks && c->rank == root; p++)
    (void)ncclSend(in, n, type, p, c, s);
  (void)ncclRecv(out, n, type, root, c, s);
  return ncclGroupEnd();
}
