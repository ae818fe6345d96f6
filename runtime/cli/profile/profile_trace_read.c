/* profile_trace_read.c -- reads a trace in Chrome's format, such as those of
 * Kiln's timeline (kiln/timeline.h) and of `kiln profile -o`.
 *
 * A trace may be much larger than its parsed form should be, so this file finds
 * the events of the outermost array one after another, and parses each event by
 * itself. Events of other kinds than spans and titles are ignored. */
#include "cli/profile/profile_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const size_t most_bytes = (size_t)4 << 30;

/* Largest accepted time in microseconds. */
static const double most_us = 1e15;

enum { HOST = 1, DEVICE = 2, MOST_OPEN = 64 };

/* One row of the trace while it is read. */
typedef struct trace_row {
  double process, thread;
  uint32_t row;
  unsigned seen; /* HOST, DEVICE: what its spans are */
  struct {
    int64_t begin;
    const char *name;
  } open[MOST_OPEN]; /* spans that a B event opened */
  size_t n_open;
} trace_row;

typedef struct trace {
  profile *p;
  trace_row **rows;
  size_t n, capacity;
  const char *programs[PROFILE_MOST_DEVICES]; /* names of processes */
} trace;

static const char *text_of(const cJSON *event, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);

  return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *event, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);

  return cJSON_IsNumber(item)   ? item->valuedouble
         : cJSON_IsString(item) ? (double)atoi(item->valuestring)
                                : 0;
}

static bool time_of(const cJSON *event, const char *key, int64_t *ns)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);

  if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble) < most_us))
    return false;
  *ns = llround(item->valuedouble * 1000);
  return true;
}

/* ---- Rows ------------------------------------------------------------------ */

/* Converts a number of a trace, which may be any number. */
static uint32_t number32(double number)
{
  return number >= 0 && number <= UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static trace_row *row_of(trace *t, const cJSON *event)
{
  const double process = number_of(event, "pid");
  const double thread = number_of(event, "tid");
  profile_row row = {.device = number32(process), .stream = number32(thread)};
  trace_row *one;

  for (size_t i = t->n; i-- > 0;) {
    if (t->rows[i]->process == process && t->rows[i]->thread == thread)
      return t->rows[i];
  }
  if (t->n == PROFILE_MOST_ROWS)
    return t->rows[t->n - 1];
  one = kiln__cli_alloc(t->p->c, 1, sizeof *one);
  *one = (trace_row){.process = process,
                     .thread = thread,
                     .row = kiln__profile_row(t->p, &row)};
  t->rows =
      kiln__cli_grow(t->p->c, t->rows, t->n, &t->capacity, sizeof(trace_row *));
  t->rows[t->n++] = one;
  return one;
}

/* Categories of other tools are those of PyTorch's profiler. */
static span_kind kind_of(const char *category)
{
  static const struct {
    const char *category;
    span_kind kind;
  } known[] = {{"kernel", SPAN_KERNEL},    {"copy", SPAN_COPY},
               {"gpu_memcpy", SPAN_COPY},  {"fill", SPAN_FILL},
               {"gpu_memset", SPAN_FILL},  {"host function", SPAN_HOST},
               {"call", SPAN_CALL},        {"cuda_runtime", SPAN_CALL},
               {"cuda_driver", SPAN_CALL}, {"wait", SPAN_SYNC},
               {"overhead", SPAN_OVERHEAD}};

  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(category, known[i].category) == 0)
      return known[i].kind;
  }
  return SPAN_OTHER;
}

/* ---- Events ---------------------------------------------------------------- */

static void add_span(trace *t, trace_row *row, const cJSON *event,
                     const char *name, int64_t begin, int64_t end)
{
  const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
  const double bytes = number_of(args, "bytes");
  const double correlation = number_of(args, "correlation");
  const span_kind kind = kind_of(text_of(event, "cat"));
  span *s = kiln__profile_span(t->p, kind, row->row, begin, end);

  s->name = kiln__profile_text(t->p, &t->p->names, name);
  s->detail = kiln__profile_text(t->p, &t->p->details, text_of(args, "detail"));
  if (bytes > 0 && bytes < 1e18)
    s->bytes = (uint64_t)bytes;
  if (correlation > 0 && correlation <= UINT32_MAX)
    s->correlation = (uint32_t)correlation;
  row->seen |= kind == SPAN_OTHER           ? 0
               : kiln__profile_on_device(s) ? DEVICE
               : kind == SPAN_HOST          ? DEVICE
                                            : HOST;
}

/* Handles events of the kinds B and E, which open and close a span. */
static void open_or_close(trace *t, trace_row *row, const cJSON *event,
                          bool open, int64_t at)
{
  if (open && row->n_open < MOST_OPEN) {
    row->open[row->n_open].begin = at;
    row->open[row->n_open++].name =
        kiln__cli_text(t->p->c, "%s", text_of(event, "name"));
  } else if (!open && row->n_open > 0) {
    row->n_open--;
    add_span(t, row, event, row->open[row->n_open].name,
             row->open[row->n_open].begin, at);
  }
}

static void read_title(trace *t, const cJSON *event)
{
  const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
  const char *what = text_of(event, "name"), *title = text_of(args, "name");
  const double process = number_of(event, "pid");

  if (*title == '\0')
    return;
  title = kiln__cli_text(t->p->c, "%s", title);
  if (strcmp(what, "thread_name") == 0) {
    const uint32_t row = row_of(t, event)->row; /* may move the rows */

    t->p->rows[row].title = title;
  } else if (strcmp(what, "process_name") == 0 && process >= 0 &&
             process < PROFILE_MOST_DEVICES) {
    t->programs[(size_t)process] = title;
  }
}

static void read_event(trace *t, const cJSON *event)
{
  const char *kind = text_of(event, "ph");
  int64_t at, length;

  if (strcmp(kind, "M") == 0)
    read_title(t, event);
  if (!time_of(event, "ts", &at))
    return;
  if (strcmp(kind, "X") == 0 && time_of(event, "dur", &length))
    add_span(t, row_of(t, event), event, text_of(event, "name"), at,
             at + length);
  else if (strcmp(kind, "B") == 0 || strcmp(kind, "E") == 0)
    open_or_close(t, row_of(t, event), event, kind[0] == 'B', at);
}

/* ---- The file -------------------------------------------------------------- */

/* Returns the end of the JSON object that begins at `from`, or NULL if the text
 * ends before. */
static const char *end_of_object(const char *from, const char *end)
{
  bool quoted = false;
  size_t depth = 0;

  for (const char *p = from; p < end; p++) {
    if (quoted) {
      if (*p == '\\')
        p++;
      else
        quoted = *p != '"';
    } else if (*p == '"') {
      quoted = true;
    } else if (*p == '{' || *p == '[') {
      depth++;
    } else if ((*p == '}' || *p == ']') && --depth == 0) {
      return p + 1;
    }
  }
  return NULL;
}

/* Returns the kind of a span in a stream of Kiln's timeline, which names copies
 * and fills itself. */
static span_kind timeline_kind(const char *name)
{
  return strncmp(name, "copy ", 5) == 0   ? SPAN_COPY
         : strncmp(name, "fill ", 5) == 0 ? SPAN_FILL
                                          : SPAN_KERNEL;
}

/* Decides which rows are host threads. In Kiln's own timelines, the process
 * "host" has them, and the spans in streams are kernels or groups of kernels. */
static void settle_rows(trace *t)
{
  profile *p = t->p;

  for (size_t i = 0; i < t->n; i++) {
    const trace_row *one = t->rows[i];
    profile_row *row = &p->rows[one->row];
    const char *program =
        row->device < PROFILE_MOST_DEVICES ? t->programs[row->device] : NULL;

    row->host =
        one->seen == HOST ||
        (one->seen == 0 && (program == NULL || strcmp(program, "host") == 0));
    if (row->title == NULL)
      row->title = kiln__cli_text(p->c, "%s %.0f",
                                  row->host ? "thread" : "stream", one->thread);
    if (!row->host && program != NULL && row->device < p->n_devices)
      p->devices[row->device] = program;
  }
  for (size_t i = 0; i < p->n; i++) {
    span *s = &p->spans[i];

    if (s->kind == SPAN_OTHER && !p->rows[s->row].host)
      s->kind = (uint8_t)timeline_kind(p->names.at[s->name]);
  }
}

static size_t read_events(trace *t, const char *text, size_t size)
{
  const char *end = text + size;
  const char *array = memmem(text, size, "\"traceEvents\"", 13);
  const char *p = array == NULL ? text : array;
  size_t n = 0;

  p = memchr(p, '[', (size_t)(end - p));
  while (p != NULL && (p = memchr(p, '{', (size_t)(end - p))) != NULL) {
    const char *after = end_of_object(p, end);
    cJSON *event =
        after == NULL ? NULL : cJSON_ParseWithLength(p, (size_t)(after - p));

    if (cJSON_IsObject(event)) {
      read_event(t, event);
      n++;
    }
    cJSON_Delete(event);
    p = after;
  }
  return n;
}

int kiln__profile_read_trace(profile *p, const char *path)
{
  trace t = {.p = p};
  size_t size, n;
  const char *text = kiln__cli_read(p->c, path, most_bytes, &size);

  if (text == NULL)
    return CLI_FAILED;
  p->processes = kiln__cli_grow(p->c, p->processes, p->n_processes,
                                &p->processes_capacity, sizeof *p->processes);
  p->processes[p->n_processes++] =
      (profile_process){.program = path, .source = "trace", .ended = true};
  n = read_events(&t, text, size);
  settle_rows(&t);
  if (n > 0)
    return CLI_OK;
  kiln__cli_message(p->c,
                    "give a trace with an array traceEvents, such as that "
                    "of kiln_timeline_write() or of kiln profile -o",
                    "'%s' has no trace events", path);
  return CLI_FAILED;
}
