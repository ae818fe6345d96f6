/* local_wire.c -- messages between threads of one process.
 *
 * A hub has some mailboxes per rank: lists of messages in order of arrival. The
 * sender and the channel select the box. A sender copies its message into the box,
 * so its request is done at once. A receiver takes the first message with its
 * sender and channel when it tests its request.
 *
 * One lock protects the hub. Ranks that rest wait for a condition that every
 * sender signals, so a message wakes them without delay. */
#include "group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BOXES = 64 }; /* per rank */

typedef struct letter_box {
  struct message *first, *last;
} letter_box;

typedef struct message {
  struct message *next;
  int from, channel;
  size_t size;
  char data[];
} message;

struct kiln__hub {
  pthread_mutex_t lock;
  pthread_cond_t arrived;
  int ranks, opened, open;
  letter_box *boxes; /* BOXES per receiver */
};

typedef struct local_wire {
  kiln__hub *hub;
  int rank;
} local_wire;

typedef struct local_request {
  letter_box *box; /* NULL: a message that was sent */
  int from, channel;
  void *data;
  size_t size;
} local_request;

kiln__hub *kiln__hub_create(int ranks)
{
  kiln__hub *hub = calloc(1, sizeof *hub);
  pthread_condattr_t attributes;

  if (hub == NULL)
    return NULL;
  hub->ranks = ranks;
  hub->open = 1; /* for the caller */
  hub->boxes = calloc((size_t)ranks * BOXES, sizeof *hub->boxes);
  if (hub->boxes == NULL) {
    free(hub);
    return NULL;
  }
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_mutex_init(&hub->lock, NULL);
  (void)pthread_cond_init(&hub->arrived, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  return hub;
}

static letter_box *box_of(kiln__hub *hub, int to, int from, int channel)
{
  const unsigned mixed = (unsigned)from * KILN__CHANNELS + (unsigned)channel;

  return &hub->boxes[(size_t)to * BOXES + mixed % BOXES];
}

static void free_hub(kiln__hub *hub)
{
  const size_t n = (size_t)hub->ranks * BOXES;

  for (size_t i = 0; i < n; i++) {
    for (message *m = hub->boxes[i].first, *next; m != NULL; m = next) {
      next = m->next;
      free(m);
    }
  }
  (void)pthread_cond_destroy(&hub->arrived);
  (void)pthread_mutex_destroy(&hub->lock);
  free(hub->boxes);
  free(hub);
}

void kiln__hub_release(kiln__hub *hub)
{
  int left;

  (void)pthread_mutex_lock(&hub->lock);
  left = --hub->open;
  (void)pthread_mutex_unlock(&hub->lock);
  if (left == 0)
    free_hub(hub);
}

static void *local_open(const void *parent, int *rank, int *ranks,
                        char why[KILN__WHY_SIZE])
{
  kiln__hub *const hub = (kiln__hub *)(uintptr_t)parent;
  local_wire *wire = malloc(sizeof *wire);

  if (wire == NULL) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory");
    return NULL;
  }
  wire->hub = hub;
  wire->rank = hub->opened++;
  hub->open++;
  *rank = wire->rank;
  *ranks = hub->ranks;
  return wire;
}

static void local_close(void *opened, int broken)
{
  local_wire *const wire = opened;

  (void)broken;
  kiln__hub_release(wire->hub);
  free(wire);
}

static message *copy_message(int from, int channel, const void *data,
                             size_t size)
{
  message *m = malloc(sizeof *m + size);

  if (m != NULL) {
    m->next = NULL;
    m->from = from;
    m->channel = channel;
    m->size = size;
    memcpy(m->data, data, size);
  }
  return m;
}

static void put(kiln__hub *hub, letter_box *box, message *m)
{
  (void)pthread_mutex_lock(&hub->lock);
  if (box->first == NULL)
    box->first = m;
  else
    box->last->next = m;
  box->last = m;
  (void)pthread_cond_broadcast(&hub->arrived);
  (void)pthread_mutex_unlock(&hub->lock);
}

static void *local_post(void *opened, int receive, int peer, int channel,
                        void *data, size_t size, char why[KILN__WHY_SIZE])
{
  local_wire *const wire = opened;
  local_request *const request = calloc(1, sizeof *request);
  message *m = NULL;

  if (request != NULL && !receive)
    m = copy_message(wire->rank, channel, data, size);
  if (request == NULL || (!receive && m == NULL)) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory for a message");
    free(request);
    return NULL;
  }
  if (m != NULL) {
    put(wire->hub, box_of(wire->hub, peer, wire->rank, channel), m);
  } else {
    request->box = box_of(wire->hub, wire->rank, peer, channel);
    request->from = peer;
    request->channel = channel;
    request->data = data;
    request->size = size;
  }
  return request;
}

/* Removes the first message with the request's sender and channel from its box,
 * and returns it; NULL if there is none. */
static message *take(kiln__hub *hub, const local_request *request)
{
  letter_box *const box = request->box;
  message *m, *before = NULL;

  (void)pthread_mutex_lock(&hub->lock);
  for (m = box->first; m != NULL; before = m, m = m->next) {
    if (m->from == request->from && m->channel == request->channel)
      break;
  }
  if (m != NULL && before == NULL)
    box->first = m->next;
  else if (m != NULL)
    before->next = m->next;
  if (m != NULL && box->last == m)
    box->last = before;
  (void)pthread_mutex_unlock(&hub->lock);
  return m;
}

static int local_test(void *opened, void *posted, char why[KILN__WHY_SIZE])
{
  local_wire *const wire = opened;
  local_request *const request = posted;
  int result = 1;

  if (request->box != NULL) {
    message *const m = take(wire->hub, request);

    if (m == NULL)
      return 0;
    if (m->size == request->size) {
      memcpy(request->data, m->data, m->size);
    } else {
      (void)snprintf(why, KILN__WHY_SIZE, "got %zu bytes instead of %zu",
                     m->size, request->size);
      result = -1;
    }
    free(m);
  }
  free(request);
  return result;
}

static int local_drop(void *wire, void *request)
{
  (void)wire;
  free(request);
  return 1;
}

/* A signal between the last test and this wait is missed; the time limit bounds
 * what that costs. */
static void local_rest(void *opened)
{
  local_wire *const wire = opened;
  struct timespec until;

  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += 500000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  (void)pthread_mutex_lock(&wire->hub->lock);
  (void)pthread_cond_timedwait(&wire->hub->arrived, &wire->hub->lock, &until);
  (void)pthread_mutex_unlock(&wire->hub->lock);
}

const kiln__wire_api kiln__local_wire = {
    .version = KILN__WIRE_VERSION,
    .name = "local",
    .open = local_open,
    .close = local_close,
    .post = local_post,
    .test = local_test,
    .drop = local_drop,
    .rest = local_rest,
};
