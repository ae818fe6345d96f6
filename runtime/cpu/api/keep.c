/* keep.c -- stores the data for reports: findings of checks, counters, the last
 * fault and names. machine.lock guards all of this data. The lock is released
 * while callbacks run. */
#include "module/api_module.h"
#include "observe.h"

#include <stdio.h>
#include <string.h>

typedef struct kept_name {
  struct kept_name *next;
  char text[];
} kept_name;

/* A finding together with the strings that it points to, so that one allocation
 * holds both. */
typedef struct kept_finding {
  kiln_cpu_finding f;
  char *texts;
} kept_finding;

typedef struct kept_counters {
  kiln_cpu_counters *items;
  size_t n, capacity;
} kept_counters;

enum { MAX_FINDINGS = 10000 };

struct kiln__cpu_kept {
  kept_name *names;
  kept_finding *findings;
  size_t n_findings, findings_capacity;
  kept_counters kernels, lines, outer_lines;
  kiln_cpu_finding_fn on_finding;
  void *on_finding_user;
  char fault[8192];
};

/* Returns the storage for report data, and makes it at first use. Returns NULL
 * if there is no memory. The caller holds machine.lock. */
static struct kiln__cpu_kept *kept_of(kiln__cpu_machine *m)
{
  if (m->kept == NULL)
    m->kept = kiln__calloc(&m->alloc, 1, sizeof *m->kept);
  return m->kept;
}

static const char *name_locked(kiln__cpu_machine *m, const char *name)
{
  struct kiln__cpu_kept *k = kept_of(m);
  const size_t size = strlen(name) + 1;
  kept_name *one;

  if (k == NULL)
    return NULL;
  for (one = k->names; one != NULL; one = one->next) {
    if (strcmp(one->text, name) == 0)
      return one->text;
  }
  one = kiln__alloc(&m->alloc, sizeof *one + size);
  if (one == NULL)
    return NULL;
  memcpy(one->text, name, size);
  one->next = k->names;
  k->names = one;
  return one->text;
}

const char *kiln__cpu_keep_name(const char *name)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  const char *kept;

  pthread_mutex_lock(&m->lock);
  kept = name_locked(m, name);
  pthread_mutex_unlock(&m->lock);
  return kept;
}

/* ---- The last fault ------------------------------------------------------ */

void kiln__cpu_keep_fault(const char *text, size_t size)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  struct kiln__cpu_kept *k;

  pthread_mutex_lock(&m->lock);
  k = kept_of(m);
  if (k != NULL)
    kiln__format(k->fault, sizeof k->fault, "%.*s", (int)(size & 0xffff), text);
  if (k != NULL && kiln__cpu_report_to != NULL)
    kiln__cpu_report_to->faulted(k->fault);
  pthread_mutex_unlock(&m->lock);
}

kiln_status kiln_cpu_last_fault(char *buf, size_t size)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();

  if (buf == NULL || size == 0)
    return kiln__fail(KILN_EINVAL, NULL, "no buffer");
  buf[0] = '\0';
  if (m == NULL)
    return kiln__fail_memory("the CPU device");
  pthread_mutex_lock(&m->lock);
  if (m->kept != NULL)
    kiln__copy_text(buf, size, m->kept->fault);
  pthread_mutex_unlock(&m->lock);
  return KILN_OK;
}

/* ---- Findings ------------------------------------------------------------ */

/* Lists the string members of a finding, so that the same code copies all of
 * them. */
enum { N_TEXTS = 9 };

static void finding_texts(kiln_cpu_finding *f, const char **at[N_TEXTS])
{
  at[0] = &f->kind;
  at[1] = &f->kernel;
  at[2] = &f->function;
  at[3] = &f->file;
  at[4] = &f->insn;
  at[5] = &f->space;
  at[6] = &f->other;
  at[7] = &f->text;
  at[8] = &f->outer_file;
}

/* Copies a finding together with its strings. Returns false if there is no
 * memory. */
static bool copy_finding(const kiln_allocator *a, kept_finding *out,
                         const kiln_cpu_finding *finding)
{
  const char **at[N_TEXTS];
  size_t size = 0;
  char *p;

  out->f = *finding;
  finding_texts(&out->f, at);
  for (int i = 0; i < N_TEXTS; i++) {
    if (*at[i] == NULL)
      *at[i] = "";
    size += strlen(*at[i]) + 1;
  }
  p = out->texts = kiln__alloc(a, size);
  if (p == NULL)
    return false;
  for (int i = 0; i < N_TEXTS; i++) {
    const size_t n = strlen(*at[i]) + 1;

    memcpy(p, *at[i], n);
    *at[i] = p;
    p += n;
  }
  return true;
}

/* Returns whether two findings have the same check, kind and source position.
 * Two findings without a PTX line must also have the same address. */
static bool same_place(const kiln_cpu_finding *a, const kept_finding *b)
{
  return a->check == b->f.check && a->line == b->f.line &&
         a->ptx_line == b->f.ptx_line && strcmp(a->kind, b->f.kind) == 0 &&
         strcmp(a->kernel, b->f.kernel) == 0 &&
         strcmp(a->function, b->f.function) == 0 &&
         strcmp(a->file, b->f.file) == 0 &&
         (a->ptx_line != 0 || a->address == b->f.address);
}

/* Stores a finding, or increments the count of an equal finding. Drops the
 * finding if the maximum number of findings is reached or there is no
 * memory. Returns whether a new finding was stored. */
static bool keep_locked(kiln__cpu_machine *m, const kiln_cpu_finding *finding)
{
  struct kiln__cpu_kept *k = m->kept;

  for (size_t i = 0; i < k->n_findings; i++) {
    if (same_place(finding, &k->findings[i])) {
      k->findings[i].f.count += finding->count;
      return false;
    }
  }
  if (k->n_findings == MAX_FINDINGS ||
      !kiln__grow(&m->alloc, &k->findings, k->n_findings, &k->findings_capacity,
                  sizeof *k->findings) ||
      !copy_finding(&m->alloc, &k->findings[k->n_findings], finding))
    return false;
  k->n_findings++;
  return true;
}

static _Atomic uint64_t checked_launches;

void kiln__cpu_keep_checked(void)
{
  checked_launches++;
}

uint64_t kiln_cpu_checked_launches(void)
{
  return checked_launches;
}

void kiln__cpu_keep_finding(void *user, const kiln_cpu_finding *finding)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  kiln_cpu_finding_fn fn = NULL;
  void *fn_user = NULL;
  bool is_new = false;

  (void)user;
  pthread_mutex_lock(&m->lock);
  if (kept_of(m) != NULL) {
    fn = m->kept->on_finding;
    fn_user = m->kept->on_finding_user;
    if (fn == NULL)
      is_new = keep_locked(m, finding);
  }
  pthread_mutex_unlock(&m->lock);
  if (fn != NULL)
    fn(fn_user, finding);
  if (is_new && kiln__cpu_report_to != NULL)
    kiln__cpu_report_to->found(finding);
}

kiln_status kiln_cpu_on_finding(kiln_cpu_finding_fn fn, void *user)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  kiln_status st = KILN_OK;

  if (m == NULL)
    return kiln__fail_memory("the CPU device");
  pthread_mutex_lock(&m->lock);
  if (kept_of(m) != NULL) {
    m->kept->on_finding = fn;
    m->kept->on_finding_user = user;
  } else {
    st = KILN_ENOMEM;
  }
  pthread_mutex_unlock(&m->lock);
  return st == KILN_OK ? st : kiln__fail_memory("findings");
}

kiln_status kiln_cpu_take_findings(kiln_cpu_finding_fn fn, void *user)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  kept_finding *taken = NULL;
  size_t n = 0;

  if (m == NULL)
    return kiln__fail_memory("the CPU device");
  pthread_mutex_lock(&m->lock);
  if (m->kept != NULL) {
    taken = m->kept->findings;
    n = m->kept->n_findings;
    m->kept->findings = NULL;
    m->kept->n_findings = m->kept->findings_capacity = 0;
  }
  pthread_mutex_unlock(&m->lock);
  for (size_t i = 0; i < n; i++) {
    if (fn != NULL)
      fn(user, &taken[i].f);
    kiln__free(&m->alloc, taken[i].texts);
  }
  kiln__free(&m->alloc, taken);
  return KILN_OK;
}

/* ---- Counters ------------------------------------------------------------ */

const char *kiln_cpu_class_name(unsigned klass)
{
  return klass < KILN_CPU_N_CLASSES ? kiln__cpu_class_text[klass] : NULL;
}

_Static_assert((int)KILN__N_CLASSES == (int)KILN_CPU_N_CLASSES,
               "cpu.h counts the classes of code.h");

static kiln_cpu_counters *counters_of(kiln__cpu_machine *m, kept_counters *c,
                                      const kiln_cpu_counters *like)
{
  const char *kernel, *file;

  for (size_t i = 0; i < c->n; i++) {
    kiln_cpu_counters *one = &c->items[i];

    if (one->line == like->line && strcmp(one->kernel, like->kernel) == 0 &&
        strcmp(one->file, like->file) == 0)
      return one;
  }
  kernel = name_locked(m, like->kernel);
  file = name_locked(m, like->file);
  if (kernel == NULL || file == NULL)
    return NULL;
  if (!kiln__grow(&m->alloc, &c->items, c->n, &c->capacity, sizeof *c->items))
    return NULL;
  c->items[c->n] =
      (kiln_cpu_counters){.kernel = kernel, .file = file, .line = like->line};
  return &c->items[c->n++];
}

static void add(kiln_cpu_counters *to, const kiln_cpu_counters *from)
{
  to->launches += from->launches;
  to->warp_insns += from->warp_insns;
  to->thread_insns += from->thread_insns;
  for (int i = 0; i < KILN_CPU_N_CLASSES; i++) {
    to->warp_class[i] += from->warp_class[i];
    to->thread_class[i] += from->thread_class[i];
  }
  to->branches += from->branches;
  to->divergent_branches += from->divergent_branches;
  to->global_load_requests += from->global_load_requests;
  to->global_load_sectors += from->global_load_sectors;
  to->global_store_requests += from->global_store_requests;
  to->global_store_sectors += from->global_store_sectors;
  to->shared_load_requests += from->shared_load_requests;
  to->shared_load_passes += from->shared_load_passes;
  to->shared_store_requests += from->shared_store_requests;
  to->shared_store_passes += from->shared_store_passes;
  to->local_load_requests += from->local_load_requests;
  to->local_load_sectors += from->local_load_sectors;
  to->local_store_requests += from->local_store_requests;
  to->local_store_sectors += from->local_store_sectors;
  to->atomics += from->atomics;
  to->atomic_conflicts += from->atomic_conflicts;
  to->barriers += from->barriers;
  to->bulk_load_requests += from->bulk_load_requests;
  to->bulk_load_bytes += from->bulk_load_bytes;
  to->bulk_store_requests += from->bulk_store_requests;
  to->bulk_store_bytes += from->bulk_store_bytes;
  to->tensor_insns += from->tensor_insns;
  to->tensor_products += from->tensor_products;
}

/* The lists of counters. */
enum { OF_KERNELS, OF_LINES, OF_OUTER_LINES };

static kept_counters *list_of(struct kiln__cpu_kept *kept, int which)
{
  return which == OF_KERNELS ? &kept->kernels
         : which == OF_LINES ? &kept->lines
                             : &kept->outer_lines;
}

static void add_counters(int which, const kiln_cpu_counters *from)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  kiln_cpu_counters key = *from, *to = NULL;

  if (key.kernel == NULL)
    key.kernel = "";
  if (key.file == NULL)
    key.file = "";
  pthread_mutex_lock(&m->lock);
  if (kept_of(m) != NULL)
    to = counters_of(m, list_of(m->kept, which), &key);
  if (to != NULL)
    add(to, from);
  pthread_mutex_unlock(&m->lock);
}

static void add_line(void *user, const kiln_cpu_counters *line)
{
  (void)user;
  add_counters(OF_LINES, line);
}

static void add_outer_line(void *user, const kiln_cpu_counters *line)
{
  (void)user;
  add_counters(OF_OUTER_LINES, line);
}

void kiln__cpu_keep_counters(struct kiln__cpu_watch *watch)
{
  kiln_cpu_counters sum = {0};

  kiln__cpu_watch_counters(watch, &sum, add_line, add_outer_line, NULL);
  sum.launches = 1;
  add_counters(OF_KERNELS, &sum);
}

/* Copies all counters, so that the lock is not held while callbacks run. */
static kiln_cpu_counters *copy_counters(kiln__cpu_machine *m,
                                        const kept_counters *c, size_t *n)
{
  kiln_cpu_counters *copy =
      c->n == 0 ? NULL : kiln__alloc(&m->alloc, c->n * sizeof *copy);

  *n = copy == NULL ? 0 : c->n;
  if (copy != NULL)
    memcpy(copy, c->items, c->n * sizeof *copy);
  return copy;
}

/* Calls fn for each item of a list. */
static kiln_status each(int which, kiln_cpu_line_fn fn, void *user)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();
  kiln_cpu_counters *all = NULL;
  size_t n = 0;

  if (m == NULL)
    return kiln__fail_memory("the CPU device");
  if (fn == NULL)
    return KILN_OK;
  pthread_mutex_lock(&m->lock);
  if (m->kept != NULL)
    all = copy_counters(m, list_of(m->kept, which), &n);
  pthread_mutex_unlock(&m->lock);
  for (size_t i = 0; i < n; i++)
    fn(user, &all[i]);
  kiln__free(&m->alloc, all);
  return KILN_OK;
}

kiln_status kiln_cpu_each_counters(kiln_cpu_line_fn kernels,
                                   kiln_cpu_line_fn lines, void *user)
{
  const kiln_status st = each(OF_KERNELS, kernels, user);

  return st == KILN_OK ? each(OF_LINES, lines, user) : st;
}

kiln_status kiln_cpu_each_outer_counters(kiln_cpu_line_fn lines, void *user)
{
  return each(OF_OUTER_LINES, lines, user);
}

kiln_status kiln_cpu_reset_counters(void)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();

  if (m == NULL)
    return kiln__fail_memory("the CPU device");
  pthread_mutex_lock(&m->lock);
  if (m->kept != NULL)
    m->kept->kernels.n = m->kept->lines.n = m->kept->outer_lines.n = 0;
  pthread_mutex_unlock(&m->lock);
  return KILN_OK;
}

/* ---- Device printf ------------------------------------------------------- */

kiln_status kiln_cpu_on_print(kiln_cpu_print_fn fn, void *user)
{
  kiln__cpu_machine *m = kiln__cpu_the_machine();

  if (m == NULL)
    return kiln__fail_memory("the CPU device");
  pthread_mutex_lock(&m->lock);
  m->print = fn;
  m->print_user = user;
  pthread_mutex_unlock(&m->lock);
  return KILN_OK;
}

void kiln__cpu_print(void *user, const char *text, size_t size)
{
  kiln__cpu_machine *m = user;
  kiln_cpu_print_fn fn;
  void *fn_user;

  pthread_mutex_lock(&m->lock);
  fn = m->print;
  fn_user = m->print_user;
  pthread_mutex_unlock(&m->lock);
  if (fn != NULL)
    fn(fn_user, text, size);
  else
    /* NVIDIA's driver also prints the output of device printf to stdout. */
    fwrite(text, 1, size, stdout);
}
