/* profile_totals.c -- computes totals per name, and how busy devices were.
 *
 * Problem: work of several streams overlaps, so the time in which a device is
 * busy is not the sum of the spans.
 *
 * Idea: the begins and ends of all spans of a device are sorted by time. A sweep
 * over them counts how many kernels and copies run, and adds each interval to the
 * sums that its counts belong to. An interval in which nothing runs is a gap.
 *
 * Invariant: before an event, the counts are those of the interval that ends
 * there. At equal times, ends come first, so that work that follows immediately
 * makes no overlap; the interval between them has no length. Spans without
 * length take no part.
 *
 * Cost: O(n log n) for n spans, and a pass over the host's spans for each of the
 * few longest gaps. */
#include "cli/profile/profile_totals.h"

#include <stdlib.h>
#include <string.h>

/* ---- Totals ----------------------------------------------------------------- */

static int by_total(const void *left, const void *right)
{
  const profile_total *a = left, *b = right;

  if (a->total != b->total)
    return a->total > b->total ? -1 : 1;
  return a->name < b->name ? -1 : a->name > b->name;
}

static void add(profile_total *t, int64_t ns, uint64_t bytes)
{
  if (t->calls == 0 || ns < t->least)
    t->least = ns;
  if (ns > t->most)
    t->most = ns;
  t->calls++;
  t->total += ns;
  t->bytes += bytes;
}

/* Keeps the totals with calls, in order. `at` has one total per name. */
static profile_totals packed(profile_total *at, size_t n_names)
{
  profile_totals out = {.at = at};

  for (size_t i = 0; i < n_names; i++) {
    if (at[i].calls == 0)
      continue;
    at[i].name = (uint32_t)i;
    out.sum += at[i].total;
    at[out.n++] = at[i];
  }
  qsort(at, out.n, sizeof *at, by_total);
  return out;
}

profile_totals kiln__profile_totals(const profile *p, span_kind kind)
{
  profile_total *at = kiln__cli_alloc(p->c, p->names.n, sizeof *at);

  for (size_t i = 0; i < p->n; i++) {
    const span *s = &p->spans[i];

    if (s->kind == kind)
      add(&at[s->name], s->end - s->begin, s->bytes);
  }
  return packed(at, p->names.n);
}

/* ---- The sweep -------------------------------------------------------------- */

/* The begin or the end of a span. */
typedef struct edge {
  int64_t at;
  const span *s;
  bool end;
} edge;

static int by_time(const void *left, const void *right)
{
  const edge *a = left, *b = right;

  if (a->at != b->at)
    return a->at < b->at ? -1 : 1;
  return (a->end < b->end) - (a->end > b->end);
}

/* The state of a sweep over the edges of one device. */
typedef struct sweep {
  profile_use *use;
  profile_total *after; /* gaps per name of the work before */
  int kernels, copies;  /* numbers of running spans */
  int64_t at;
  const span *last; /* the span that ended last */
} sweep;

/* Keeps the gap if it is one of the longest. */
static void keep_gap(profile_use *u, const profile_gap *gap)
{
  size_t i = PROFILE_GAPS;

  while (i > 0 &&
         gap->end - gap->begin > u->gaps[i - 1].end - u->gaps[i - 1].begin) {
    if (i < PROFILE_GAPS)
      u->gaps[i] = u->gaps[i - 1];
    i--;
  }
  if (i < PROFILE_GAPS)
    u->gaps[i] = *gap;
}

/* Adds the interval from the last edge to `e`. */
static void add_interval(sweep *w, const edge *e)
{
  const int64_t ns = e->at - w->at;
  profile_use *u = w->use;

  if (w->kernels + w->copies > 0) {
    u->busy += ns;
    u->kernels += w->kernels > 0 ? ns : 0;
    u->copies += w->copies > 0 ? ns : 0;
    u->both += w->kernels > 0 && w->copies > 0 ? ns : 0;
    u->several += w->kernels + w->copies > 1 ? ns : 0;
  } else if (w->last != NULL && ns > 0) {
    const profile_gap gap = {
        .begin = w->at, .end = e->at, .before = w->last, .after = e->s};

    u->n_gaps++;
    add(&w->after[w->last->name], ns, 0);
    keep_gap(u, &gap);
  }
  w->at = e->at;
}

static void run_sweep(sweep *w, edge *edges, size_t n)
{
  qsort(edges, n, sizeof *edges, by_time);
  w->at = w->use->begin = edges[0].at;
  w->use->end = edges[n - 1].at;
  for (size_t i = 0; i < n; i++) {
    const edge *e = &edges[i];
    int *count = e->s->kind == SPAN_KERNEL ? &w->kernels : &w->copies;

    add_interval(w, e);
    *count += e->end ? -1 : 1;
    if (e->end)
      w->last = e->s;
  }
}

/* Finds the host's span that covers most of each long gap. Calls count before
 * waits, which contain no more than a call. */
static void explain_gaps(const profile *p, profile_use *u)
{
  for (size_t g = 0; g < PROFILE_GAPS; g++) {
    profile_gap *gap = &u->gaps[g];

    for (size_t i = 0; gap->before != NULL && i < p->n; i++) {
      const span *s = &p->spans[i];
      const int64_t from = s->begin > gap->begin ? s->begin : gap->begin;
      const int64_t to = s->end < gap->end ? s->end : gap->end;

      if (s->kind != SPAN_CALL || p->rows[s->row].process != u->process ||
          to - from <= gap->host_ns)
        continue;
      gap->host = s;
      gap->host_ns = to - from;
    }
  }
}

/* Returns whether the span is work of the device in the process. */
static bool belongs(const profile *p, const span *s, const profile_use *u)
{
  const profile_row *row = &p->rows[s->row];

  return kiln__profile_on_device(s) && row->process == u->process &&
         row->device == u->device;
}

static void compute_use(const profile *p, profile_use *u)
{
  edge *edges = kiln__cli_alloc(p->c, 2 * p->n, sizeof *edges);
  sweep w = {.use = u};
  size_t n = 0;

  for (size_t i = 0; i < p->n; i++) {
    const span *s = &p->spans[i];

    if (!belongs(p, s, u) || s->end == s->begin)
      continue;
    edges[n++] = (edge){.at = s->begin, .s = s};
    edges[n++] = (edge){.at = s->end, .s = s, .end = true};
  }
  w.after = kiln__cli_alloc(p->c, p->names.n, sizeof *w.after);
  if (n > 0)
    run_sweep(&w, edges, n);
  u->idle_after = packed(w.after, p->names.n);
  explain_gaps(p, u);
}

size_t kiln__profile_uses(const profile *p, profile_use **out)
{
  size_t n = 0, capacity = 0;

  *out = NULL;
  for (size_t i = 0; i < p->n; i++) {
    const profile_row *row = &p->rows[p->spans[i].row];
    size_t k = 0;

    if (!kiln__profile_on_device(&p->spans[i]))
      continue;
    while (k < n && ((*out)[k].process != row->process ||
                     (*out)[k].device != row->device))
      k++;
    if (k < n || n == 64)
      continue;
    *out = kiln__cli_grow(p->c, *out, n, &capacity, sizeof **out);
    (*out)[n++] = (profile_use){.process = row->process, .device = row->device};
  }
  for (size_t k = 0; k < n; k++)
    compute_use(p, &(*out)[k]);
  return n;
}
