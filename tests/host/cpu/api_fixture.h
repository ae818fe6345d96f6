/* api_fixture.h -- helpers for the tests of the CPU device's driver: checks of
 * result codes, a context, objects in it, and gates that block streams. */
#ifndef CPU_API_FIXTURE_H
#define CPU_API_FIXTURE_H

#include "cpu/api/machine.h"

#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define cu(name) kiln__cpu_##name

#define is(call, want)                                                         \
  do {                                                                         \
    const CUresult is_rc_ = (call);                                            \
    ck_assert_msg(is_rc_ == (want), "%s:%d: %s gave %d, not %d", __FILE__,     \
                  __LINE__, #call, is_rc_, (want));                            \
  } while (0)
#define ok(call) is(call, CUDA_SUCCESS)

/* A gate: a host function that blocks its stream until the test sets `open`. */
typedef struct gate {
  atomic_bool reached, open;
} gate;

static inline void gate_fn(void *user)
{
  gate *g = user;

  atomic_store(&g->reached, true);
  while (!atomic_load(&g->open))
    sched_yield();
}

static inline void gate_wait(gate *g)
{
  while (!atomic_load(&g->reached))
    sched_yield();
}

static inline void count_fn(void *user)
{
  atomic_fetch_add((atomic_int *)user, 1);
}

/* An operation for a stream that fails with a given result code. */
typedef struct failing {
  kiln__cpu_work base;
  CUresult rc;
} failing;

static inline CUresult failing_run(kiln__cpu_work *work, CUstream stream)
{
  (void)stream;
  return ((failing *)(void *)work)->rc;
}

static inline void failing_free(kiln__cpu_work *work)
{
  free(work);
}

static inline kiln__cpu_work *failing_work(CUresult rc)
{
  failing *f = calloc(1, sizeof *f);

  ck_assert_ptr_nonnull(f);
  f->base.run = failing_run;
  f->base.free = failing_free;
  f->base.kind = KILN__WORK_KERNEL;
  f->rc = rc;
  return &f->base;
}

static inline CUcontext make_context(void)
{
  CUcontext c;

  ok(cu(init)(0));
  ok(cu(ctxCreate)(&c, 0, 0));
  return c;
}

/* The context of a test, and the fixture that creates and destroys it. */
static CUcontext context;

static inline void setup(void)
{
  context = make_context();
}

static inline void teardown(void)
{
  ok(cu(ctxDestroy)(context));
}

static inline CUdeviceptr make_memory(size_t bytes)
{
  CUdeviceptr p;

  ok(cu(memAlloc)(&p, bytes));
  return p;
}

static inline CUgraph make_graph(void)
{
  CUgraph g;

  ok(cu(graphCreate)(&g, 0));
  return g;
}

static inline CUstream make_stream(unsigned flags)
{
  CUstream s;

  ok(cu(streamCreate)(&s, flags));
  return s;
}

static inline CUevent make_event(void)
{
  CUevent e;

  ok(cu(eventCreate)(&e, 0));
  return e;
}

/* A host function that records the time of its last run on a shared clock and
 * the number of its runs. */
typedef struct visit {
  atomic_int *clock;
  int at, times;
} visit;

static inline void visit_fn(void *user)
{
  visit *v = user;

  v->at = atomic_fetch_add(v->clock, 1);
  v->times++;
}

static inline CUgraphExec instance(CUgraph g)
{
  CUgraphExec x;

  ok(cu(graphInstantiateWithFlags)(&x, g, 0));
  return x;
}

/* Launches an executable graph and waits for its end. */
static inline void run_graph(CUgraphExec x, CUstream s)
{
  ok(cu(graphLaunch)(x, s));
  ok(cu(streamSynchronize)(s));
}

#endif
