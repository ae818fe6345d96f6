/* missing.c -- records what a program asked for and the CPU device lacks.
 *
 * Each driver function that the CPU device lacks has a stub in this file, so
 * that the drop-in library can report which functions a program called. The
 * table entry_points.def lists the functions. Libraries on top of the driver
 * add notes for functions of their own by kiln_cpu_note_missing(), and
 * cuGetExportTable adds one per library that asked for a private table. */
#include "missing.h"

#include "observe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum {
#define KILN__MISSING_FN(symbol, since) MISSING_##symbol,
#include "entry_points.def"
  N_MISSING
};

static const char *const names[] = {
#define KILN__MISSING_FN(symbol, since) #symbol,
#include "entry_points.def"
};

static atomic_uint calls[N_MISSING];

/* Records a call of an unimplemented function. Before cuInit it returns
 * CUDA_ERROR_NOT_INITIALIZED, as all driver functions do. */
static CUresult refuse(unsigned which)
{
  CU_TRY(kiln__cpu_ready());
  if (calls[which]++ == 0 && kiln__cpu_report_to != NULL)
    kiln__cpu_report_to->missed();
  return CUDA_ERROR_NOT_SUPPORTED;
}

#define KILN__MISSING_FN(symbol, since)                                        \
  CUresult kiln__cpu_missing_##symbol(void)                                    \
  {                                                                            \
    return refuse(MISSING_##symbol);                                           \
  }
#include "entry_points.def"

/* ---- Notes of other libraries --------------------------------------------- */

/* One thing that is missing. `advice` points behind the NUL of `name`. */
struct kiln__cpu_note {
  struct kiln__cpu_note *next;
  unsigned calls;
  const char *advice;
  char name[];
};

static struct kiln__cpu_note *note_locked(kiln__cpu_machine *m,
                                          const char *name, const char *advice)
{
  const size_t size = strlen(name) + 1, advice_size = strlen(advice) + 1;
  struct kiln__cpu_note **link = &m->notes, *note;

  while (*link != NULL && strcmp((*link)->name, name) != 0)
    link = &(*link)->next;
  if (*link != NULL)
    return *link;
  note = kiln__calloc(&m->alloc, 1, sizeof *note + size + advice_size);
  if (note == NULL)
    return NULL;
  memcpy(note->name, name, size);
  memcpy(note->name + size, advice, advice_size);
  note->advice = note->name + size;
  *link = note;
  return note;
}

void kiln__cpu_note(const char *name, const char *advice)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  struct kiln__cpu_note *note;
  bool is_new = false;

  if (m == NULL || name == NULL)
    return;
  pthread_mutex_lock(&m->lock);
  note = note_locked(m, name, advice == NULL ? "" : advice);
  if (note != NULL)
    is_new = note->calls++ == 0;
  pthread_mutex_unlock(&m->lock);
  if (is_new && kiln__cpu_report_to != NULL)
    kiln__cpu_report_to->missed();
}

/* Returns whether the library is one of NVIDIA's compilers. They contain the
 * runtime too, but work without the tables. */
static bool is_compiler(const char *path)
{
  static const char *const compilers[] = {"libnvrtc.so", "libnvJitLink.so",
                                          "libnvvm.so"};
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;

  for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) {
    if (strncmp(name, compilers[i], strlen(compilers[i])) == 0)
      return true;
  }
  return false;
}

void kiln_cpu_note_missing(const char *name, const char *advice)
{
  kiln__cpu_note(name, advice);
}

void kiln__cpu_note_table(const void *caller)
{
  char name[512];
  Dl_info info = {0};

  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
    info.dli_fname = "the program";
  if (is_compiler(info.dli_fname))
    return;
  snprintf(name, sizeof name,
           "cuGetExportTable (private tables, asked for by %s)",
           info.dli_fname);
  kiln__cpu_note(
      name, "NVIDIA's runtime uses private tables of its driver. Link the "
            "shared runtime, which `kiln exec` replaces: nvcc -cudart shared, "
            "or CMAKE_CUDA_RUNTIME_LIBRARY=Shared with CMake");
}

/* ---- Reading ---------------------------------------------------------------- */

static void each_note(kiln__cpu_missing_fn each, void *user)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();

  if (m == NULL)
    return;
  pthread_mutex_lock(&m->lock);
  for (const struct kiln__cpu_note *n = m->notes; n != NULL; n = n->next)
    each(user, n->name, n->advice, n->calls);
  pthread_mutex_unlock(&m->lock);
}

void kiln__cpu_each_missing(kiln__cpu_missing_fn each, void *user)
{
  for (unsigned i = 0; i < N_MISSING; i++) {
    if (calls[i] > 0)
      each(user, names[i], "", calls[i]);
  }
  each_note(each, user);
}
