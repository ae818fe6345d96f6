/* dropin_process.c -- settings of the drop-in libcuda.so.1, and the times at
 * which it writes its report.
 *
 * The program that loads this library need not know Kiln. Therefore `kiln exec`
 * communicates with the library through two environment variables:
 *
 * KILN_CPU         settings in the syntax of kiln_cpu_parse()
 * KILN_CPU_REPORT  path of the report file, which exists already; see
 *                  dropin_report.c
 *
 * Problem: a program may end without running destructors. Test runners and
 * multiprocessing call _exit, and a program that crashes or is killed calls
 * nothing.
 *
 * Idea: findings, faults and missing functions are written when they first
 * occur. Sums and final counts are written by the destructor, or by _exit, which
 * the preload library replaces. An object `process` without an object `end`
 * shows that the sums of a process are lost.
 *
 * Invariant: each write appends whole lines by one call of write(), so that
 * several threads and processes may append to one file. Only the process that
 * called cuInit writes: a child of fork or vfork has another process id. */
#include "../api/missing.h"
#include "../api/observe.h"
#include "dropin.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct process {
  char run[48];
  pid_t pid;         /* process that called cuInit, or loaded the library */
  atomic_bool ended; /* true after the whole report was written */
  atomic_uint modules;
  atomic_uint_least64_t loading_ns;
} process;

const char *kiln__dropin_run(void)
{
  return process.run;
}

/* ---- Writing -------------------------------------------------------------- */

/* Text that is collected in memory and then appended to the report. */
typedef struct page {
  FILE *out; /* NULL if there is no report or no memory */
  char *text;
  size_t size;
} page;

static void page_begin(page *p)
{
  *p = (page){0};
  if (kiln__env("KILN_CPU_REPORT") != NULL)
    p->out = open_memstream(&p->text, &p->size);
}

static void page_end(page *p)
{
  const char *path = kiln__env("KILN_CPU_REPORT");
  int fd;

  fclose(p->out);
  fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  /* Nobody could be told about a failure. */
  if (fd >= 0 && p->text != NULL)
    (void)!write(fd, p->text, p->size);
  if (fd >= 0)
    close(fd);
  free(p->text);
}

static void say(const char *type, const char *what)
{
  page p;

  page_begin(&p);
  if (p.out == NULL)
    return;
  kiln__dropin_message(p.out, type, what);
  page_end(&p);
}

/* ---- The reporter --------------------------------------------------------- */

static void launched(const char *kernel, unsigned threads, bool checked,
                     uint64_t warp_insns, uint64_t ns)
{
  kiln__dropin_add(&(kiln__dropin_total){.kernel = kernel,
                                         .launches = 1,
                                         .checked = checked,
                                         .warp_insns = warp_insns,
                                         .ns = ns,
                                         .threads = threads});
}

static void loaded(unsigned modules, uint64_t ns)
{
  process.modules += modules;
  process.loading_ns += ns;
}

static void found(const kiln_cpu_finding *finding)
{
  page p;

  page_begin(&p);
  if (p.out == NULL)
    return;
  kiln__dropin_finding(p.out, finding);
  page_end(&p);
}

static void missed(void)
{
  page p;

  page_begin(&p);
  if (p.out == NULL)
    return;
  kiln__dropin_missing(p.out);
  page_end(&p);
}

static void faulted(const char *what)
{
  say("fault", what);
}

static void forked(void)
{
  static atomic_bool said;

  if (!atomic_exchange(&said, true))
    say("error",
        "a process called cuInit after its parent, from which it was forked, "
        "had called it. CUDA does not work across fork: start the process by "
        "exec, or with Python by multiprocessing.set_start_method(\"spawn\")");
}

/* ---- Begin and end of the process ----------------------------------------- */

static void set_run(void)
{
  process.pid = getpid();
  snprintf(process.run, sizeof process.run, "%d-%" PRIx64, (int)process.pid,
           kiln__clock_ns());
}

/* Reports that the process uses the driver: called by the first cuInit. */
static void started(void)
{
  if (process.pid != getpid())
    set_run(); /* the parent loaded the library and did not call cuInit */
  say("process", program_invocation_short_name);
  kiln__dropin_inject();
}

/* Returns whether this process has something to report. A process that never
 * called cuInit may have asked for something that is missing. */
static bool has_report(void)
{
  const kiln__cpu_machine *m = kiln__cpu_the_machine();

  return process.pid == getpid() && m != NULL &&
         (m->initialised || m->notes != NULL);
}

/* Writes the report at the end of the process. */
__attribute__((destructor)) static void end(void)
{
  page p;

  if (!has_report() || atomic_exchange(&process.ended, true))
    return;
  page_begin(&p);
  if (p.out == NULL)
    return;
  kiln__dropin_totals(p.out, process.modules, process.loading_ns,
                      kiln__cpu_the_machine()->opts.checks != 0);
  page_end(&p);
}

/* Asks the preload library, if it is there, to call end() before _exit. */
static void end_before_exit(void)
{
  void (*at_exit)(void (*fn)(void));

  *(void **)&at_exit = dlsym(RTLD_DEFAULT, "kiln_exec_before_exit");
  if (at_exit != NULL)
    at_exit(end);
}

__attribute__((constructor)) static void begin(void)
{
  static const kiln__cpu_reporter reporter = {.launched = launched,
                                              .loaded = loaded,
                                              .found = found,
                                              .missed = missed,
                                              .faulted = faulted,
                                              .forked = forked};
  const char *settings = kiln__env("KILN_CPU");
  kiln_cpu_opts opts;

  set_run();
  kiln__cpu_report_to = &reporter;
  kiln__cpu_after_init = started;
  end_before_exit();
  if (settings == NULL || (kiln_cpu_parse(&opts, settings) == KILN_OK &&
                           kiln_cpu_configure(&opts) == KILN_OK))
    return;
  say("error", kiln_cpu_last_error()->message);
}
