/* observe.c -- reports executed work and driver calls to an observer.
 *
 * Every piece of work passes through kiln__cpu_run_work(). Without an observer
 * this costs one relaxed load. Calls are counted only in the drop-in library,
 * whose exported symbols lead through kiln__cpu_call_begin() and
 * kiln__cpu_call_end(). The number of the current call is kept per thread, and
 * queue.c stores it in the work that the call adds to a stream. */
#include "observe.h"

#include "../model/demangle.h"
#include "stream/streams.h"

atomic_bool kiln__cpu_calls_observed;
void (*kiln__cpu_after_init)(void);
const kiln__cpu_reporter *kiln__cpu_report_to;
void (*(*kiln__cpu_exported)(const char *symbol))(void);

static _Atomic(kiln_cpu_activity_fn) on_work;
static _Atomic(kiln_cpu_call_fn) on_call;
static _Atomic(void *) observer;
static atomic_uint_least64_t n_calls;
static _Thread_local uint64_t this_call;

kiln_status kiln_cpu_observe(kiln_cpu_activity_fn work, kiln_cpu_call_fn call,
                             void *user)
{
  atomic_store(&on_work, NULL);
  atomic_store(&on_call, NULL);
  atomic_store(&observer, user);
  atomic_store(&on_work, work);
  atomic_store(&on_call, call);
  atomic_store(&kiln__cpu_calls_observed, call != NULL);
  return KILN_OK;
}

const char *kiln_cpu_readable_name(const char *name, char *buf, size_t size)
{
  return kiln__cpu_demangle(name, buf, size);
}

static kiln_cpu_activity_kind kind_of(const kiln__cpu_work *work)
{
  switch (work->kind) {
  case KILN__WORK_KERNEL:
    return KILN_CPU_WORK_KERNEL;
  case KILN__WORK_COPY:
    return KILN_CPU_WORK_COPY;
  case KILN__WORK_FILL:
    return KILN_CPU_WORK_FILL;
  case KILN__WORK_HOST:
    return KILN_CPU_WORK_HOST;
  case KILN__WORK_ALLOC:
  case KILN__WORK_FREE:
  case KILN__WORK_EMPTY:
  case KILN__WORK_MEM_OP:
    break;
  }
  return KILN_CPU_WORK_OTHER;
}

CUresult kiln__cpu_run_work(kiln__cpu_work *work, CUstream stream,
                            uint64_t call, bool in_graph)
{
  const kiln_cpu_activity_fn report =
      atomic_load_explicit(&on_work, memory_order_acquire);
  kiln_cpu_activity w = {.name = "", .call = call, .in_graph = in_graph};
  CUresult rc;

  /* The launch of a graph reports the work that the graph contains. */
  if (report == NULL || work->kind == KILN__WORK_EMPTY)
    return work->run(work, stream);
  w.kind = kind_of(work);
  w.device = stream->context->device;
  w.context = stream->context->id;
  w.stream = stream->legacy ? 0 : stream->id;
  if (work->describe != NULL)
    work->describe(work, &w);
  w.begin_ns = kiln__clock_ns();
  rc = work->run(work, stream);
  w.end_ns = kiln__clock_ns();
  w.result = (int)rc;
  report(atomic_load(&observer), &w);
  return rc;
}

uint64_t kiln__cpu_this_call(void)
{
  return this_call;
}

uint64_t kiln__cpu_call_begin(void)
{
  this_call = atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed) + 1;
  return kiln__clock_ns();
}

void kiln__cpu_call_end(const char *function, uint64_t begin_ns,
                        uint64_t result)
{
  const kiln_cpu_call_fn report =
      atomic_load_explicit(&on_call, memory_order_acquire);
  const kiln_cpu_call call = {.function = function,
                              .begin_ns = begin_ns,
                              .end_ns = kiln__clock_ns(),
                              .number = this_call,
                              .result = (int)result};

  this_call = 0;
  if (report != NULL)
    report(atomic_load(&observer), &call);
}
