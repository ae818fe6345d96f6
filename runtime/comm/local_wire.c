/* local_wire.c -- messages between threads of one process.
 *
 * A hub has a mailbox per pair of ranks and channel: a list of messages in order
 * of arrival. A sender copies its message into the box, so its request is done
 * at once. A receiver takes the first message when it tests its request.
 *
 * One lock protects the hub. Ranks that rest wait for a condition that every
 * sender signals, so a message wakes them without delay. */
#include "group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct letter_box {
  struct message *first, *last;
} letter_box;

typedef struct message {
  struct message *next;
  size_t size;
  char data[];
} message;

struct kiln__hub {
  pthread_mutex_t lock;
  pthread_cond_t arrived;
  int ranks, opened, open;
  letter_box *boxes; /* [(to * ranks + from) * KILN__CHANNELS + channel] */
};

typedef struct local_wire {
  kiln__hub *hub;
  int rank;
} local_wire;

typedef struct local_request {
  letter_box *box; /* NULL: a message that was sent */
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
  hub->boxes = calloc((size_t)ranks * (size_t)ranks * KILN__CHANNELS,
                      sizeof *hub->boxes);
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

static letter_box *box_of(kiln__hub *hub, int to, int from,
                          kiln__channel channel)
{
  const size_t pair = (size_t)to * (size_t)hub->ranks + (size_t)from;

  return &hub->boxes[pair * KILN__CHANNELS + (size_t)channel];
}

void kiln__hub_free(kiln__hub *hub)
{
  const size_t n = hub == NULL ? 0 : (size_t)hub->ranks * (size_t)hub->ranks;

  if (hub == NULL)
    return;
  for (size_t i = 0; i < n * KILN__CHANNELS; i++) {
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
  int left;

  (void)broken;
  (void)pthread_mutex_lock(&wire->hub->lock);
  left = --wire->hub->open;
  (void)pthread_mutex_unlock(&wire->hub->lock);
  if (left == 0)
    kiln__hub_free(wire->hub);
  free(wire);
}

static message *copy_message(const void *data, size_t size)
{
  message *m = malloc(sizeof *m + size);

  if (m != NULL) {
    m->next = NULL;
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

static void *local_post(void *opened, int receive, int peer,
                        kiln__channel channel, void *data, size_t size,
                        char why[KILN__WHY_SIZE])
{
  local_wire *const wire = opened;
  local_request *const request = calloc(1, sizeof *request);
  message *m = NULL;

  if (request != NULL && !receive)
    m = copy_message(data, size);
  if (request == NULL || (!receive && m == NULL)) {
    (void)snprintf(why, KILN__WHY_SIZE, "out of host memory for a message");
    free(request);
    return NULL;
  }
  if (m != NULL) {
    put(wire->hub, box_of(wire->hub, peer, wire->rank, channel), m);
  } else {
    request->box = box_of(wire->hub, wire->rank, peer, channel);
    request->data = data;
    request->size = size;
  }
  return request;
}

static message *take(kiln__hub *hub, letter_box *box)
{
  message *m;

  (void)pthread_mutex_lock(&hub->lock);
  m = box->first;
  if (m != NULL)
    box->first = m->next;
  (void)pthread_mutex_unlock(&hub->lock);
  return m;
}

static int local_test(void *opened, void *posted, char why[KILN__WHY_SIZE])
{
  local_wire *const wire = opened;
  local_request *const request = posted;
  int result = 1;

  if (request->box != NULL) {
    message *const m = take(wire->hub, request->box);

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
