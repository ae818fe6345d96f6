/* instruction_counters.c -- counts events per instruction, and sums the counts
 * per kernel and per source line.
 *
 * Each worker thread counts into its own arrays, with one entry per
 * instruction, so that counting needs no atomics. The arrays are summed after
 * the launch. */
#include "watch_state.h"

#include <stddef.h>
#include <string.h>

_Static_assert((int)KILN__N_CLASSES == (int)KILN_CPU_N_CLASSES,
               "<kiln/cpu.h> has the same number of classes");

kiln__cpu_tally *kiln__cpu_watch_tally(kiln__cpu_watch *watch, unsigned thread,
                                       const kiln__cpu_code *code)
{
  kiln__cpu_tallies *t;

  pthread_mutex_lock(&watch->lock);
  t = watch->tallies;
  while (t != NULL && (t->thread != thread || t->code != code))
    t = t->next;
  if (t == NULL) {
    t = kiln__calloc(&watch->alloc, 1, sizeof *t);
    if (t != NULL) {
      t->thread = thread;
      t->code = code;
      t->tally =
          kiln__calloc(&watch->alloc, code->n_insns + 1u, sizeof *t->tally);
      t->next = watch->tallies;
      watch->tallies = t;
    }
  }
  pthread_mutex_unlock(&watch->lock);
  return t != NULL ? t->tally : NULL;
}

/* The counters of a kernel to which an instruction's events and cost are added,
 * indexed by the class of the instruction. */
static const struct {
  size_t events, cost; /* byte offsets of two members of kiln_cpu_counters */
} accesses[KILN__N_CLASSES] = {
#define ACCESS(name, requests, units)                                          \
  [KILN__CLASS_##name] = {offsetof(kiln_cpu_counters, requests),               \
                          offsetof(kiln_cpu_counters, units)},
    ACCESS(GLOBAL_LOAD, global_load_requests, global_load_sectors)
        ACCESS(GENERIC_LOAD, global_load_requests, global_load_sectors) ACCESS(
            GLOBAL_STORE, global_store_requests,
            global_store_sectors) ACCESS(GENERIC_STORE, global_store_requests,
                                         global_store_sectors)
            ACCESS(SHARED_LOAD, shared_load_requests, shared_load_passes)
                ACCESS(SHARED_STORE, shared_store_requests, shared_store_passes)
                    ACCESS(LOCAL_LOAD, local_load_requests, local_load_sectors)
                        ACCESS(LOCAL_STORE, local_store_requests,
                               local_store_sectors)
                            ACCESS(BULK_LOAD, bulk_load_requests,
                                   bulk_load_bytes)
                                ACCESS(BULK_STORE, bulk_store_requests,
                                       bulk_store_bytes)
#undef ACCESS
};

static uint64_t *counter_at(kiln_cpu_counters *c, size_t offset)
{
  return (uint64_t *)(void *)((char *)c + offset);
}

/* Adds the counts of one instruction to the kernel's counters for the class of
 * the instruction. */
static void add(kiln_cpu_counters *c, const kiln__cpu_insn *in,
                const kiln__cpu_tally *t)
{
  c->warp_insns += t->issued;
  c->thread_insns += t->lanes;
  c->warp_class[in->klass] += t->issued;
  c->thread_class[in->klass] += t->lanes;
  if (accesses[in->klass].events != 0) {
    *counter_at(c, accesses[in->klass].events) += t->events;
    *counter_at(c, accesses[in->klass].cost) += t->cost;
  } else if (in->klass == KILN__CLASS_ATOMIC) {
    c->atomics += t->issued;
    c->atomic_conflicts += t->cost;
  } else if (in->klass == KILN__CLASS_BARRIER) {
    c->barriers += t->issued;
  } else if (in->klass == KILN__CLASS_TENSOR) {
    c->tensor_insns += t->issued;
    c->tensor_products += t->cost;
  } else if (in->kind == KILN__KIND_BRANCH || in->kind == KILN__KIND_SWITCH) {
    c->branches += t->issued;
    c->divergent_branches += t->events;
  }
}

/* The source lines of a kernel, in the order of their first instruction. A
 * linear search from the end finds the entry of a line. The search is short:
 * consecutive instructions mostly belong to the same source line, and a kernel
 * has at most a few hundred lines. */
typedef struct lines {
  kiln_cpu_counters *items;
  size_t n, capacity;
} lines;

static kiln_cpu_counters *line_at(const kiln_allocator *a, lines *l,
                                  const char *kernel, const char *file,
                                  unsigned line)
{
  for (size_t i = l->n; i > 0; i--) {
    if (l->items[i - 1].line == line && strcmp(l->items[i - 1].file, file) == 0)
      return &l->items[i - 1];
  }
  if (!kiln__grow(a, &l->items, l->n, &l->capacity, sizeof *l->items))
    return NULL;
  l->items[l->n] =
      (kiln_cpu_counters){.kernel = kernel, .file = file, .line = line};
  return &l->items[l->n++];
}

/* Adds the counts of one instruction to a line, if there is memory for it. */
static void add_to_line(const kiln__cpu_watch *watch,
                        const kiln__cpu_program *p, lines *l, uint32_t file,
                        uint32_t number, const kiln__cpu_insn *in,
                        const kiln__cpu_tally *t)
{
  const bool known = number != 0 && file < p->n_files && p->files[file] != NULL;
  kiln_cpu_counters *line =
      line_at(&watch->alloc, l, watch->code->name, known ? p->files[file] : "",
              known ? number : 0);

  if (line != NULL)
    add(line, in, t);
}

static void add_function(const kiln__cpu_watch *watch,
                         const kiln__cpu_tallies *t, kiln_cpu_counters *out,
                         lines *inner, lines *outer)
{
  const kiln__cpu_program *const p = t->code->program;

  for (uint32_t i = 0; i < t->code->n_insns && t->tally != NULL; i++) {
    const kiln__cpu_line *at = &t->code->lines[i];
    const kiln__cpu_insn *in = &t->code->insns[i];

    if (t->tally[i].issued == 0)
      continue;
    add(out, in, &t->tally[i]);
    add_to_line(watch, p, inner, at->file, at->line, in, &t->tally[i]);
    add_to_line(watch, p, outer, at->outer_file, at->outer_line, in,
                &t->tally[i]);
  }
}

static void report(const kiln__cpu_watch *watch, lines *l, kiln_cpu_line_fn fn,
                   void *user)
{
  for (size_t i = 0; i < l->n; i++)
    fn(user, &l->items[i]);
  kiln__free(&watch->alloc, l->items);
}

void kiln__cpu_watch_counters(const kiln__cpu_watch *watch,
                              kiln_cpu_counters *out, kiln_cpu_line_fn inner,
                              kiln_cpu_line_fn outer, void *user)
{
  lines in = {0}, around = {0};

  *out = (kiln_cpu_counters){
      .kernel = watch->code->name, .file = "", .launches = 1};
  for (const kiln__cpu_tallies *t = watch->tallies; t != NULL; t = t->next)
    add_function(watch, t, out, &in, &around);
  report(watch, &in, inner, user);
  report(watch, &around, outer, user);
}
