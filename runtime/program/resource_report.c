/* resource_report.c -- parses the assembler's resource lines: registers,
 * spills, shared memory and constant memory per kernel.
 *
 *   ptxas info    : Compiling entry function 'k' for 'sm_90'
 *   ptxas info    : Function properties for k
 *   ptxas         .     8 bytes stack frame, 4 bytes spill stores, ...
 *   ptxas info    : Used 32 registers, used 1 barriers, 256 bytes smem, ...
 *
 * A report has one line per kernel or function: "kernel NAME" or "function
 * NAME", followed by the numbers of kiln_resources in order. The names are
 * lowered, so they contain no spaces. */
#include "compiler.h"

#include <string.h>

typedef struct record {
  const char *name;
  size_t size;
  kiln_resources res;
} record;

typedef struct table {
  const kiln_allocator *alloc;
  record *rows;
  size_t n, capacity;
  bool failed;
} table;

static record *add(table *t, const char *name, size_t size)
{
  if (t->n == t->capacity) {
    const size_t capacity = t->capacity == 0 ? 16 : t->capacity * 2;
    record *rows = kiln__resize(t->alloc, t->rows, capacity * sizeof *rows);

    if (rows == NULL) {
      t->failed = true;
      return NULL;
    }
    t->rows = rows;
    t->capacity = capacity;
  }
  t->rows[t->n] = (record){.name = name, .size = size};
  return &t->rows[t->n++];
}

static record *find(const table *t, const char *name, size_t size)
{
  for (size_t i = 0; i < t->n; i++) {
    if (t->rows[i].size == size && memcmp(t->rows[i].name, name, size) == 0)
      return &t->rows[i];
  }
  return NULL;
}

static void take_kernels(table *t, const char *ptx, size_t size)
{
  kiln__image_ptx_entry entry;
  size_t at = 0;

  while (kiln__image_ptx_next(ptx, size, &at, &entry)) {
    record *r = add(t, entry.name, entry.name_size);

    if (r == NULL)
      return;
    r->res.n_params = (int)entry.n_params;
    r->res.max_threads = entry.max_threads;
  }
}

/* ---- Reading the assembler's log ---------------------------------------- */

static const char *after(const char *line, size_t size, const char *what)
{
  const char *p = memmem(line, size, what, strlen(what));

  return p == NULL ? NULL : p + strlen(what);
}

/* Reads a number such as "4" or a sum such as "4+16" at *p, and advances *p
 * past it. */
static int read_sum(const char **p, const char *end)
{
  long sum = 0, value = 0;

  for (; *p < end && ((**p >= '0' && **p <= '9') || **p == '+'); ++*p) {
    if (**p == '+') {
      sum += value;
      value = 0;
    } else if (value < 100000000) {
      value = value * 10 + (**p - '0');
    }
  }
  return (int)(sum + value);
}

static bool starts(const char *p, const char *end, const char *with)
{
  return (size_t)(end - p) >= strlen(with) &&
         memcmp(p, with, strlen(with)) == 0;
}

/* Reads one item of a "Used" line of the log: "N bytes smem", "N bytes cmem[0]"
 * or "N registers". The items may come in any order. */
static void take_item(kiln_resources *res, int n, const char *unit,
                      const char *end)
{
  if (starts(unit, end, " registers"))
    res->registers = n;
  else if (starts(unit, end, " bytes smem"))
    res->shared_static = n;
  else if (starts(unit, end, " bytes cmem"))
    res->constant += n;
  else if (starts(unit, end, " bytes lmem"))
    res->local = n;
  else if (starts(unit, end, " bytes stack frame"))
    res->stack = n;
  else if (starts(unit, end, " bytes spill stores"))
    res->spill_stores = n;
  else if (starts(unit, end, " bytes spill loads"))
    res->spill_loads = n;
}

static void take_items(kiln_resources *res, const char *p, const char *end)
{
  while (p < end) {
    if (*p >= '0' && *p <= '9') {
      const int n = read_sum(&p, end);

      take_item(res, n, p, end);
    } else if (*p == '[') { /* the number in brackets is a bank, not a size */
      while (p < end && *p != ']')
        p++;
    } else {
      p++;
    }
  }
}

static size_t word_length(const char *p, const char *end)
{
  size_t n = 0;

  while (p + n < end && p[n] != '\'' && p[n] != ' ' && p[n] != '\r')
    n++;
  return n;
}

/* Parses one line of the assembler's log. *entry is the row of the report for
 * the next "Used" line, and *owner is the row for the next properties line; -1
 * means that there is no such row. */
static void take_line(table *t, const char *line, size_t size, long *entry,
                      long *owner)
{
  const char *end = line + size, *p;
  record *r;

  if (!starts(line, end, "ptxas"))
    return;
  if ((p = after(line, size, "Compiling entry function '")) != NULL) {
    r = find(t, p, word_length(p, end));
    *entry = *owner = r == NULL ? -1 : r - t->rows;
  } else if ((p = after(line, size, "Function properties for ")) != NULL) {
    r = find(t, p, word_length(p, end));
    if (r == NULL)
      r = add(t, p, word_length(p, end));
    *owner = r == NULL ? -1 : r - t->rows;
  } else if (after(line, size, " bytes stack frame") != NULL) {
    if (*owner >= 0)
      take_items(&t->rows[*owner].res, line, end);
  } else if ((p = after(line, size, ": Used ")) != NULL) {
    if (*entry >= 0)
      take_items(&t->rows[*entry].res, p, end);
  }
}

static void take_log(table *t, const char *log, size_t size)
{
  long entry = -1, owner = -1;

  for (size_t at = 0; at < size;) {
    const char *line = log + at;
    const char *stop = memchr(line, '\n', size - at);
    const size_t n = stop == NULL ? size - at : (size_t)(stop - line);

    take_line(t, line, n, &entry, &owner);
    at += n + 1;
  }
}

/* ---- Text ---------------------------------------------------------------- */

static void write_record(kiln__buf *out, const record *r, bool kernel)
{
  const kiln_resources *s = &r->res;

  kiln__buf_text(out, kernel ? "kernel " : "function ");
  kiln__buf_add(out, r->name, r->size);
  kiln__buf_format(out, " %d %d %d %d %d %d %d %d %d\n", s->registers,
                   s->spill_stores, s->spill_loads, s->stack, s->shared_static,
                   s->constant, s->local > 0 ? s->local : s->stack,
                   s->max_threads, s->n_params);
}

void kiln__report_write(kiln__buf *out, kiln__slice ptx, kiln__slice cubin,
                        kiln__slice log)
{
  table t = {.alloc = out->alloc};
  size_t kernels;

  take_kernels(&t, ptx.data, ptx.size);
  kernels = t.n;
  take_log(&t, log.data, log.size);
  for (size_t i = 0; i < t.n; i++) {
    record *r = &t.rows[i];

    if (r->res.constant == 0)
      r->res.constant =
          kiln__cubin_constant(cubin.data, cubin.size, r->name, r->size);
    if (i < kernels || r->res.spill_stores > 0 || r->res.spill_loads > 0)
      write_record(out, r, i < kernels);
  }
  if (t.failed)
    out->failed = true;
  kiln__free(out->alloc, t.rows);
}

static bool read_numbers(const char *p, const char *end, int *const to[],
                         size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (p >= end || *p++ != ' ' || p >= end || *p < '0' || *p > '9')
      return false;
    *to[i] = read_sum(&p, end);
  }
  return p == end;
}

bool kiln__report_next(const char *report, size_t size, size_t *at,
                       kiln__report_line *out)
{
  kiln_resources *s = &out->res;
  int *const to[] = {&s->registers, &s->spill_stores,  &s->spill_loads,
                     &s->stack,     &s->shared_static, &s->constant,
                     &s->local,     &s->max_threads,   &s->n_params};
  const char *line = report + *at, *stop, *end;

  if (*at >= size)
    return false;
  stop = memchr(line, '\n', size - *at);
  end = stop == NULL ? report + size : stop;
  *out = (kiln__report_line){.kernel = starts(line, end, "kernel ")};
  *at = (size_t)(end - report) + 1;
  if (!out->kernel && !starts(line, end, "function "))
    return false;
  out->name = line + (out->kernel ? strlen("kernel ") : strlen("function "));
  out->name_size = word_length(out->name, end);
  return read_numbers(out->name + out->name_size, end, to,
                      sizeof to / sizeof to[0]);
}
