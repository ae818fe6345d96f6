/* failure.c -- how a group breaks, and how every rank learns of it.
 *
 * Problem: if a rank dies, fails or makes another call, all other ranks must
 * return with the rank and the cause, although they may wait for any rank.
 *
 * Idea: a rank that finds a failure sends a farewell to all ranks in place of its
 * next announcement, and takes no further part. All ranks listen for
 * announcements of all others whenever they wait (wait.c), so a farewell ends
 * every wait at once. A dead rank sends nothing; every rank that waits for it
 * gives up after the timeout.
 *
 * Invariant: a group breaks once. Afterwards no message is under way that could
 * write to memory, and all calls return KILN_ECOMM.
 *
 * Cost: one message per rank, only after a failure. */
#include "group.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* For a static analyzer, group.h replaces these functions by macros. */
#undef kiln__comm_fail
#undef kiln__comm_leave

static const char *const again =
    "free the kiln_comm on all ranks that are left and create a new one";

kiln_status kiln__comm_fail(kiln_status status, const char *hint,
                            const char *format, ...)
{
  char text[KILN_ERROR_MESSAGE_SIZE];
  va_list args;

  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return kiln_error_write(status, hint, text);
}

/* Gives up a message. `kept` becomes true if its memory may still be read. */
static void drop(kiln_comm *comm, kiln__message *m, bool *kept)
{
  if (m->request != NULL && comm->api->drop(comm->wire, m->request) == 0)
    *kept = true;
  m->request = NULL;
}

void kiln__comm_drop_pieces(kiln_comm *comm)
{
  for (int p = 0; p < comm->ranks; p++) {
    drop(comm, &comm->peers[p].out, &comm->staging_busy);
    drop(comm, &comm->peers[p].in, &comm->staging_busy);
  }
}

void kiln__comm_drop_calls(kiln_comm *comm)
{
  for (int p = 0; p < comm->ranks; p++) {
    kiln__peer *const peer = &comm->peers[p];

    drop(comm, &peer->sending, &comm->peers_busy);
    drop(comm, &peer->listening, &comm->peers_busy);
    drop(comm, &peer->leaving, &comm->peers_busy);
  }
}

/* Sends the cause to all ranks, without waiting for any. The rank that did not
 * answer is among them, since it may only be late. */
static void say_farewell(kiln_comm *comm)
{
  char why[KILN__WHY_SIZE];

  for (int p = 0; p < comm->ranks; p++) {
    kiln__peer *const peer = &comm->peers[p];

    if (p == comm->rank || peer->leaving.request != NULL)
      continue;
    memset(&peer->farewell, 0, sizeof peer->farewell);
    peer->farewell.kind = KILN__CALL_FAILED;
    peer->farewell.number = comm->number;
    peer->farewell.failed = comm->failed;
    memcpy(peer->farewell.cause, comm->cause, sizeof comm->cause);
    peer->leaving.request =
        comm->api->post(comm->wire, 0, p, KILN__CHANNEL_CALL, &peer->farewell,
                        sizeof peer->farewell, why);
  }
}

kiln_status kiln__comm_break(kiln_comm *comm, int culprit, const char *format,
                             ...)
{
  va_list args;

  if (comm->failed < 0) {
    comm->failed = culprit;
    va_start(args, format);
    (void)vsnprintf(comm->cause, sizeof comm->cause, format, args);
    va_end(args);
    kiln__comm_drop_pieces(comm);
    say_farewell(comm);
  }
  return kiln__comm_fail(KILN_ECOMM, again, "%s", comm->cause);
}

kiln_status kiln__comm_leave(kiln_comm *comm, kiln_status status)
{
  if (status == KILN_OK || comm->failed >= 0)
    return status;
  comm->failed = comm->rank;
  (void)snprintf(comm->cause, sizeof comm->cause, "rank %d failed: %s: %.160s",
                 comm->rank, kiln_status_name(status),
                 kiln_last_error()->message);
  kiln__comm_drop_pieces(comm);
  say_farewell(comm);
  return status;
}

kiln_status kiln__comm_whole(const kiln_comm *comm)
{
  if (comm->failed < 0)
    return KILN_OK;
  return kiln__comm_fail(KILN_ECOMM, again, "the group is broken: %s",
                         comm->cause);
}

kiln_status kiln_comm_abort(kiln_comm *comm, const char *cause)
{
  if (comm == NULL)
    return kiln__comm_fail(KILN_EINVAL, NULL, "comm is NULL");
  (void)kiln__comm_break(
      comm, comm->rank, "rank %d broke the group: %.160s", comm->rank,
      cause != NULL ? cause : "kiln_comm_abort() was called");
  return KILN_OK;
}

const char *kiln_comm_failure(const kiln_comm *comm, int *rank)
{
  if (rank != NULL)
    *rank = comm != NULL ? comm->failed : -1;
  return comm != NULL ? comm->cause : "";
}
