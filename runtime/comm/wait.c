/* wait.c -- exchanges of announcements and pieces, and all waiting.
 *
 * Every collective begins with an announcement from each rank to each other one.
 * They show that all ranks live and make the same call, before any data move.
 * While a rank waits it also listens for the next announcement of every rank,
 * which may be a farewell (failure.c).
 *
 * Cost: ranks - 1 messages of some hundred bytes per rank and collective. */
#include "group.h"

#include <string.h>
#include <time.h>

enum { GRACE_MS = 1000 };

uint64_t kiln__comm_now(void)
{
  struct timespec t;

  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static const char *call_name(uint32_t kind)
{
  switch (kind) {
#define NAME_CASE(name, text)                                                  \
  case KILN__CALL_##name:                                                      \
    return text;
    KILN__COMM_CALLS(NAME_CASE)
#undef NAME_CASE
  }
  return "an unknown call";
}

/* What one round of looks found. */
typedef struct waiting {
  int pending;  /* messages that are not done */
  int rank;     /* the first rank with such a message, or -1 */
  bool several; /* other ranks have such messages, too */
} waiting;

static const waiting nothing = {0, -1, false};

/* A wait in progress. */
typedef struct wait_clock {
  uint64_t since; /* time of the last progress in ms */
  int pending;    /* messages that were pending then */
} wait_clock;

/* Tests a message from or to rank p, and adds it to `w` if it is pending. */
static kiln_status look(kiln_comm *comm, kiln__message *m, int p, waiting *w)
{
  char why[KILN__WHY_SIZE] = "";
  int result;

  if (m->request == NULL)
    return KILN_OK;
  result = comm->api->test(comm->wire, m->request, why);
  if (result == 0) {
    w->pending++;
    if (w->rank < 0)
      w->rank = p;
    else if (w->rank != p)
      w->several = true;
    return KILN_OK;
  }
  m->request = NULL;
  if (result < 0)
    return kiln__comm_break(comm, p, "the connection to rank %d failed: %s", p,
                            why);
  return KILN_OK;
}

/* Rests between two rounds of looks. Fails if nothing was done for too long. A
 * rank that waits for several others does not know which of them is dead: they
 * may wait for the dead one themselves. It waits a little longer, for the
 * farewell of a rank that waits for the dead one only. Such a rank exists: the
 * one that is furthest behind. */
static kiln_status rest(kiln_comm *comm, wait_clock *clock, const waiting *w,
                        const char *what)
{
  const uint64_t now = kiln__comm_now();
  const uint64_t limit = comm->timeout_ms + (w->several ? GRACE_MS : 0);

  if (w->pending != clock->pending) {
    clock->pending = w->pending;
    clock->since = now;
  } else if (now - clock->since > limit) {
    return kiln__comm_break(comm, w->rank,
                            "rank %d did not answer within %u ms in %s number "
                            "%llu",
                            w->rank, comm->timeout_ms, what,
                            (unsigned long long)comm->number);
  }
  comm->api->rest(comm->wire);
  return KILN_OK;
}

static kiln_status post(kiln_comm *comm, kiln__message *m, bool receive, int p,
                        kiln__channel channel, void *data, size_t size)
{
  char why[KILN__WHY_SIZE] = "";

  m->request =
      comm->api->post(comm->wire, receive, p, (int)channel, data, size, why);
  if (m->request == NULL)
    return kiln__comm_break(comm, p, "the connection to rank %d failed: %s", p,
                            why);
  return KILN_OK;
}

/* Looks whether rank p has announced its next call. A farewell breaks the group
 * here, too. */
static kiln_status listen_to(kiln_comm *comm, int p, waiting *w)
{
  kiln__peer *const peer = &comm->peers[p];
  kiln_status st;

  if (peer->has_next)
    return KILN_OK;
  st = look(comm, &peer->listening, p, w);
  if (st != KILN_OK || peer->listening.request != NULL)
    return st;
  peer->has_next = true;
  if (peer->next.kind != KILN__CALL_FAILED)
    return KILN_OK;
  peer->next.cause[KILN__CAUSE_SIZE - 1] = '\0';
  return kiln__comm_break(comm, peer->next.failed, "%s", peer->next.cause);
}

/* Listens to all ranks, without waiting for them. */
static kiln_status listen_to_all(kiln_comm *comm)
{
  kiln_status st = KILN_OK;

  for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
    waiting ignored = nothing;

    if (p != comm->rank)
      st = listen_to(comm, p, &ignored);
  }
  return st;
}

static kiln_status listen_again(kiln_comm *comm, int p)
{
  kiln__peer *const peer = &comm->peers[p];

  peer->has_next = false;
  return post(comm, &peer->listening, true, p, KILN__CHANNEL_CALL, &peer->next,
              sizeof peer->next);
}

kiln_status kiln__comm_listen(kiln_comm *comm)
{
  kiln_status st = KILN_OK;

  for (int p = 0; p < comm->ranks && st == KILN_OK && !kiln__comm_silent(comm);
       p++) {
    if (p != comm->rank)
      st = listen_again(comm, p);
  }
  return st;
}

/* ---- Announcements ------------------------------------------------------- */

static kiln_status send_calls(kiln_comm *comm, const kiln__call *call,
                              const uint64_t *sends, const uint64_t *receives)
{
  kiln_status st = KILN_OK;

  for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
    kiln__peer *const peer = &comm->peers[p];

    peer->sent = *call;
    peer->sent.number = comm->number;
    peer->sent.sends = sends != NULL ? sends[p] : 0;
    peer->sent.receives = receives != NULL ? receives[p] : 0;
    if (p == comm->rank)
      peer->got = peer->sent;
    else
      st = post(comm, &peer->sending, false, p, KILN__CHANNEL_CALL, &peer->sent,
                sizeof peer->sent);
  }
  return st;
}

static kiln_status receive_calls(kiln_comm *comm, const char *what)
{
  wait_clock clock = {kiln__comm_now(), -1};

  for (;;) {
    waiting w = nothing;
    kiln_status st = KILN_OK;

    for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
      if (p != comm->rank)
        st = listen_to(comm, p, &w);
      if (st == KILN_OK)
        st = look(comm, &comm->peers[p].sending, p, &w);
    }
    if (st != KILN_OK || w.pending == 0)
      return st;
    st = rest(comm, &clock, &w, what);
    if (st != KILN_OK)
      return st;
  }
}

static bool same_call(const kiln__call *a, const kiln__call *b)
{
  return a->number == b->number && a->kind == b->kind && a->type == b->type &&
         a->op == b->op && a->root == b->root && a->n == b->n;
}

/* Returns the rank whose call the fewest ranks have made, or -1 if all ranks have
 * made the same call. All ranks find the same one. */
static int odd_rank(const kiln_comm *comm)
{
  int odd = -1, fewest = comm->ranks;

  for (int p = 0; p < comm->ranks; p++) {
    int same = 0;

    for (int q = 0; q < comm->ranks; q++)
      same += same_call(&comm->peers[p].got, &comm->peers[q].got);
    if (same < fewest) {
      fewest = same;
      odd = p;
    }
  }
  return odd;
}

static kiln_status check_calls(kiln_comm *comm)
{
  const int odd = odd_rank(comm);
  const kiln__call *bad, *good;

  if (odd < 0)
    return KILN_OK;
  bad = &comm->peers[odd].got;
  good = &comm->peers[odd == 0 ? 1 : 0].got;
  return kiln__comm_break(
      comm, odd,
      "rank %d called %s of %llu elements of type %s (operation %u, root %d), "
      "and rank %d called %s of %llu elements of type %s (operation %u, root "
      "%d)",
      odd, call_name(bad->kind), (unsigned long long)bad->n,
      kiln_dtype_name((kiln_dtype)bad->type), bad->op, bad->root,
      odd == 0 ? 1 : 0, call_name(good->kind), (unsigned long long)good->n,
      kiln_dtype_name((kiln_dtype)good->type), good->op, good->root);
}

/* Compares what this rank and each other one want to send each other. */
static kiln_status check_sizes(kiln_comm *comm)
{
  for (int p = 0; p < comm->ranks; p++) {
    const kiln__call *const mine = &comm->peers[p].sent;
    const kiln__call *const theirs = &comm->peers[p].got;

    if (mine->receives != KILN__ANY_SIZE && mine->receives != theirs->sends)
      return kiln__comm_break(comm, p,
                              "rank %d sends %llu bytes to rank %d, which "
                              "expects %llu",
                              p, (unsigned long long)theirs->sends, comm->rank,
                              (unsigned long long)mine->receives);
  }
  return KILN_OK;
}

kiln_status kiln__comm_announce(kiln_comm *comm, const kiln__call *call,
                                const uint64_t *sends, const uint64_t *receives)
{
  kiln_status st = kiln__comm_whole(comm);

  if (st == KILN_OK && kiln__comm_silent(comm))
    return kiln__silent_announce(comm, call, sends, receives);
  if (st == KILN_OK)
    st = send_calls(comm, call, sends, receives);
  if (st == KILN_OK)
    st = receive_calls(comm, call_name(call->kind));
  for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
    if (p == comm->rank)
      continue;
    comm->peers[p].got = comm->peers[p].next;
    st = listen_again(comm, p);
  }
  if (st == KILN_OK)
    st = check_calls(comm);
  if (st == KILN_OK)
    st = check_sizes(comm);
  if (st == KILN_OK)
    comm->number++;
  return st;
}

kiln_status kiln__comm_attend(kiln_comm *comm)
{
  return kiln__comm_silent(comm) ? KILN_OK : listen_to_all(comm);
}

kiln_status kiln__comm_roll_call(kiln_comm *comm, const char *what)
{
  const kiln__call call = {.kind = KILN__CALL_ROLL_CALL};
  const unsigned timeout_ms = comm->timeout_ms;
  kiln_status st;

  if (kiln__comm_silent(comm))
    return kiln__comm_break(comm, comm->rank,
                            "rank %d: %s did not finish within %u ms",
                            comm->rank, what, timeout_ms);
  comm->timeout_ms = GRACE_MS;
  st = kiln__comm_announce(comm, &call, NULL, NULL);
  comm->timeout_ms = timeout_ms;
  if (st != KILN_OK)
    return st;
  return kiln__comm_break(comm, comm->rank,
                          "%s did not finish within %u ms, although all ranks "
                          "answer",
                          what, timeout_ms);
}

/* ---- Pieces -------------------------------------------------------------- */

/* Waits until all posted pieces have arrived. */
static kiln_status finish_pieces(kiln_comm *comm)
{
  wait_clock clock = {kiln__comm_now(), -1};

  for (;;) {
    waiting w = nothing;
    kiln_status st = KILN_OK;

    for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
      st = look(comm, &comm->peers[p].in, p, &w);
      if (st == KILN_OK)
        st = look(comm, &comm->peers[p].out, p, &w);
    }
    if (st != KILN_OK || w.pending == 0)
      return st;
    st = listen_to_all(comm);
    if (st == KILN_OK)
      st = rest(comm, &clock, &w, "the data of call");
    if (st != KILN_OK)
      return st;
  }
}

kiln_status kiln__comm_exchange(kiln_comm *comm, const kiln__piece *pieces)
{
  kiln_status st = KILN_OK;

  if (kiln__comm_silent(comm))
    return kiln__silent_exchange(comm, pieces);
  for (int p = 0; p < comm->ranks && st == KILN_OK; p++) {
    kiln__peer *const peer = &comm->peers[p];

    if (p == comm->rank)
      continue;
    if (pieces[p].in_size > 0)
      st = post(comm, &peer->in, true, p, KILN__CHANNEL_DATA, pieces[p].in,
                pieces[p].in_size);
    if (st == KILN_OK && pieces[p].out_size > 0)
      st = post(comm, &peer->out, false, p, KILN__CHANNEL_DATA,
                (void *)(uintptr_t)pieces[p].out, pieces[p].out_size);
  }
  return st == KILN_OK ? finish_pieces(comm) : st;
}

kiln_status kiln__comm_pair(kiln_comm *comm, bool receive, int peer, void *data,
                            size_t size)
{
  kiln__peer *const other = &comm->peers[peer];
  const kiln_status st = post(comm, receive ? &other->in : &other->out, receive,
                              peer, KILN__CHANNEL_PAIR, data, size);

  return st == KILN_OK ? finish_pieces(comm) : st;
}
