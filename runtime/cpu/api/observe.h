/* observe.h -- reports executed work and driver calls to the observer that
 * kiln_cpu_observe() sets. */
#ifndef KILN_CPU_OBSERVE_H
#define KILN_CPU_OBSERVE_H

#include "machine.h"

/* Runs work in a stream, and reports it to the observer if there is one.
 * `call` is the number of the driver call that issued the work.
 * @return the result of work->run() */
CUresult kiln__cpu_run_work(kiln__cpu_work *work, CUstream stream,
                            uint64_t call, bool in_graph);

/* Returns the number of the driver call that the calling thread is in, or 0 if
 * no call is observed. */
uint64_t kiln__cpu_this_call(void);

/* Begins and ends an observed call of a driver function. The drop-in library
 * calls these functions around each exported function while the first byte of
 * kiln__cpu_calls_observed is 1. kiln__cpu_call_begin() returns the time. */
extern atomic_bool kiln__cpu_calls_observed;
uint64_t kiln__cpu_call_begin(void);
void kiln__cpu_call_end(const char *function, uint64_t begin_ns,
                        uint64_t result);

/* What the drop-in library wants to be told, for the report of `kiln exec`. The
 * functions are called in any thread, and must not call the driver. */
typedef struct kiln__cpu_reporter {
  /* A launch has ended. `ns` is its time in nanoseconds. */
  void (*launched)(const char *kernel, unsigned threads, bool checked,
                   uint64_t warp_insns, uint64_t ns);
  /* Reading or translating PTX took `ns` nanoseconds. `modules` is 1 for the
   * last step of a module, and otherwise 0. */
  void (*loaded)(unsigned modules, uint64_t ns);
  void (*found)(const kiln_cpu_finding *finding); /* a new finding */
  void (*missed)(void); /* something new is missing; see missing.h */
  void (*faulted)(const char *what); /* a launch failed */
  /* A forked child uses the driver of its parent. */
  void (*forked)(void);
} kiln__cpu_reporter;

/* The reporter of the drop-in library; NULL elsewhere. It is set once, before
 * the program can call the driver. */
extern const kiln__cpu_reporter *kiln__cpu_report_to;

/* Tells the reporter, if there is one, about a step of loading a module that
 * began at `begin_ns`. */
static inline void kiln__cpu_report_load(unsigned modules, uint64_t begin_ns)
{
  if (kiln__cpu_report_to != NULL)
    kiln__cpu_report_to->loaded(modules, kiln__clock_ns() - begin_ns);
}

/* Hooks of the drop-in library; NULL elsewhere. The first is called once, after
 * the first successful cuInit. The second returns the exported function of a
 * symbol, which cuGetProcAddress then returns instead of the internal
 * function. */
extern void (*kiln__cpu_after_init)(void);
extern void (*(*kiln__cpu_exported)(const char *symbol))(void);

#endif
