/* inject_cpu.c -- records what Kiln's CPU device does. The drop-in libcuda.so.1
 * reports executed work and calls to the callbacks of this file. */
#include "inject.h"

#include <kiln/cpu.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

typedef kiln_status observe_fn(kiln_cpu_activity_fn work, kiln_cpu_call_fn call,
                               void *user);

enum { MOST_DEVICES = 16 };

static atomic_bool device_known[MOST_DEVICES];

/* Appends a record of the device when its first work is reported. */
static void introduce(int device)
{
  profile_object r = {.head = {.type = PROFILE_DEVICE, .size = sizeof r},
                      .id = (uint32_t)device};

  if (device < 0 || device >= MOST_DEVICES ||
      atomic_exchange(&device_known[device], true))
    return;
  r.head.name = kiln__record_name("CPU device");
  kiln__record_put(&r.head);
}

static profile_place place_of(const kiln_cpu_activity *w)
{
  return (profile_place){.device = (uint32_t)w->device,
                         .context = (uint32_t)w->context,
                         .stream = (uint32_t)w->stream};
}

static uint8_t memory_of(kiln_cpu_place place)
{
  switch (place) {
  case KILN_CPU_PLACE_HOST:
    return PROFILE_PAGEABLE;
  case KILN_CPU_PLACE_DEVICE:
    return PROFILE_ON_DEVICE;
  case KILN_CPU_PLACE_ARRAY:
    return PROFILE_ARRAY;
  case KILN_CPU_PLACE_MANAGED:
    return PROFILE_MANAGED;
  case KILN_CPU_PLACE_UNKNOWN:
    break;
  }
  return 0;
}

static void put_kernel(const kiln_cpu_activity *w)
{
  profile_kernel r = {.head = {.type = PROFILE_KERNEL, .size = sizeof r},
                      .begin_ns = w->begin_ns,
                      .end_ns = w->end_ns,
                      .correlation = (uint32_t)w->call,
                      .place = place_of(w),
                      .static_shared = w->static_shared,
                      .dynamic_shared = w->dynamic_shared,
                      .registers = (uint16_t)w->registers,
                      .in_graph = w->in_graph};

  for (int i = 0; i < 3; i++) {
    r.grid[i] = w->grid[i];
    r.block[i] = w->block[i];
  }
  r.head.name = kiln__record_name(w->name);
  kiln__record_put(&r.head);
}

static void put_copy(const kiln_cpu_activity *w, profile_type type)
{
  const profile_copy r = {.head = {.type = (uint16_t)type, .size = sizeof r},
                          .begin_ns = w->begin_ns,
                          .end_ns = w->end_ns,
                          .correlation = (uint32_t)w->call,
                          .place = place_of(w),
                          .bytes = w->bytes,
                          .from = memory_of(w->from),
                          .to = memory_of(w->to),
                          .in_graph = w->in_graph};

  kiln__record_put(&r.head);
}

static void on_work(void *user, const kiln_cpu_activity *w)
{
  (void)user;
  introduce(w->device);
  switch (w->kind) {
  case KILN_CPU_WORK_KERNEL:
    put_kernel(w);
    break;
  case KILN_CPU_WORK_COPY:
    put_copy(w, PROFILE_COPY);
    break;
  case KILN_CPU_WORK_FILL:
    put_copy(w, PROFILE_FILL);
    break;
  case KILN_CPU_WORK_HOST:
    put_copy(w, PROFILE_HOST);
    break;
  case KILN_CPU_WORK_OTHER:
    break;
  }
}

/* Appends a record with the name of the calling thread when the thread makes
 * its first call. */
static void introduce_thread(void)
{
  static _Thread_local bool known;
  profile_object r = {.head = {.type = PROFILE_THREAD, .size = sizeof r}};
  char name[16] = "";

  if (known)
    return;
  known = true;
  (void)pthread_getname_np(pthread_self(), name, sizeof name);
  r.id = kiln__record_thread();
  r.head.name = kiln__record_name(name);
  kiln__record_put(&r.head);
}

static void on_call(void *user, const kiln_cpu_call *call)
{
  profile_call r = {.head = {.type = PROFILE_CALL, .size = sizeof r},
                    .begin_ns = call->begin_ns,
                    .end_ns = call->end_ns,
                    .correlation = (uint32_t)call->number,
                    .thread = kiln__record_thread(),
                    .result = (uint32_t)call->result,
                    .domain = 1};

  (void)user;
  introduce_thread();
  r.head.name = kiln__record_name(call->function);
  kiln__record_put(&r.head);
}

bool kiln__inject_cpu(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  struct timespec now;
  observe_fn *observe;

  if (driver == NULL)
    return false;
  *(void **)&observe = dlsym(driver, "kiln_cpu_observe");
  dlclose(driver); /* the program has it open */
  if (observe == NULL)
    return false;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (kiln__record_open(PROFILE_CPU, 0,
                        (uint64_t)now.tv_sec * 1000000000u +
                            (uint64_t)now.tv_nsec))
    (void)observe(on_work, kiln__inject_calls() ? on_call : NULL, NULL);
  return true;
}
