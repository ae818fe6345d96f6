/* profile_read.c -- reads the record files that libkiln_profile.so writes.
 *
 * A record file may have been cut off at any place, or damaged. Every record is
 * checked before its members are used: its size must be that of its type and
 * must lie within the file, and numbers of names may be unknown. Reading ends
 * at the first record that is not valid. */
#include "cli/profile/profile_model.h"
#include "tool/profile_format.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One file while it is read. */
typedef struct reader {
  profile *p;
  uint32_t process;
  int64_t shift;   /* added to the times of the file */
  uint32_t *names; /* number of a name in the file -> index in the profile */
  struct {
    uint32_t context, stream;
  } * defaults; /* default streams that the file names */
  size_t n_defaults, defaults_capacity;
} reader;

/* Times beyond this limit are not valid, so that sums cannot overflow. */
static const int64_t most_ns = INT64_MAX / 4;

/* ---- Texts ----------------------------------------------------------------- */

/* Returns the index of a name, in a readable form if it is that of a kernel. */
static uint32_t name_of(const reader *r, uint32_t number, const char *missing)
{
  if (number > 0 && number <= PROFILE_MOST_NAMES && r->names[number] != 0)
    return r->names[number];
  return kiln__profile_text(r->p, &r->p->names, missing);
}

static void read_name(reader *r, const profile_name *name)
{
  char readable[2048];

  if (name->head.name == 0 || name->head.name > PROFILE_MOST_NAMES)
    return;
  kiln_cpu_readable_name(name->text, readable, sizeof readable);
  r->names[name->head.name] = kiln__profile_text(r->p, &r->p->names, readable);
}

static const char *memory_name(unsigned memory)
{
  static const char *const names[] = {"unknown memory", "host",   "pinned host",
                                      "device",         "array",  "managed",
                                      "device",         "managed"};

  return names[memory < sizeof names / sizeof *names ? memory : 0];
}

static uint32_t detail(reader *r, const char *text)
{
  return kiln__profile_text(r->p, &r->p->details, text);
}

/* ---- Spans ----------------------------------------------------------------- */

/* Converts the times of a span. @return false if they are not valid */
static bool times(const reader *r, uint64_t begin, uint64_t end, int64_t *from,
                  int64_t *to)
{
  if (begin == 0 || end < begin || end > (uint64_t)most_ns)
    return false;
  *from = (int64_t)begin + r->shift;
  *to = (int64_t)end + r->shift;
  return true;
}

static uint32_t stream_row(reader *r, const profile_place *place)
{
  const profile_row row = {.process = r->process,
                           .device = place->device,
                           .context = place->context,
                           .stream = place->stream};

  return kiln__profile_row(r->p, &row);
}

static uint32_t thread_row(reader *r, uint32_t thread)
{
  const profile_row row = {
      .process = r->process, .host = true, .thread = thread};

  return kiln__profile_row(r->p, &row);
}

static void read_kernel(reader *r, const profile_kernel *k)
{
  char text[256];
  int64_t from, to;
  span *s;

  if (!times(r, k->begin_ns, k->end_ns, &from, &to))
    return;
  s = kiln__profile_span(r->p, SPAN_KERNEL, stream_row(r, &k->place), from, to);
  s->name = name_of(r, k->head.name, "(kernel without a name)");
  s->correlation = k->correlation;
  snprintf(text, sizeof text,
           "grid %u x %u x %u, block %u x %u x %u, %u registers, %u + %u bytes "
           "of shared memory%s",
           k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1],
           k->block[2], k->registers, k->static_shared, k->dynamic_shared,
           k->in_graph != 0 ? ", in a graph" : "");
  s->detail = detail(r, text);
}

static void read_copy(reader *r, const profile_copy *copy)
{
  const span_kind kind = copy->head.type == PROFILE_COPY   ? SPAN_COPY
                         : copy->head.type == PROFILE_FILL ? SPAN_FILL
                                                           : SPAN_HOST;
  char name[64], text[160];
  int64_t from, to;
  span *s;

  if (!times(r, copy->begin_ns, copy->end_ns, &from, &to))
    return;
  s = kiln__profile_span(r->p, kind, stream_row(r, &copy->place), from, to);
  if (kind == SPAN_COPY)
    snprintf(name, sizeof name, "copy, %s to %s", memory_name(copy->from),
             copy->peer != 0 ? "another device" : memory_name(copy->to));
  else
    snprintf(name, sizeof name, "%s",
             kind == SPAN_FILL ? "fill" : "host function in a stream");
  s->name = kiln__profile_text(r->p, &r->p->names, name);
  s->correlation = copy->correlation;
  s->bytes = copy->bytes;
  if (kind == SPAN_HOST)
    return;
  snprintf(text, sizeof text, "%llu bytes%s%s", (unsigned long long)copy->bytes,
           copy->async != 0 ? ", asynchronous" : "",
           copy->in_graph != 0 ? ", in a graph" : "");
  s->detail = detail(r, text);
}

static void read_call(reader *r, const profile_call *call)
{
  const span_kind kind = call->head.type == PROFILE_CALL   ? SPAN_CALL
                         : call->head.type == PROFILE_SYNC ? SPAN_SYNC
                                                           : SPAN_OVERHEAD;
  char text[48];
  int64_t from, to;
  span *s;

  if (!times(r, call->begin_ns, call->end_ns, &from, &to))
    return;
  s = kiln__profile_span(r->p, kind, thread_row(r, call->thread), from, to);
  s->name = name_of(r, call->head.name, "(unknown function)");
  s->correlation = call->correlation;
  if (call->result != 0) {
    snprintf(text, sizeof text, "failed with error %u", call->result);
    s->detail = detail(r, text);
  }
}

/* ---- Objects --------------------------------------------------------------- */

static void read_object(reader *r, const profile_object *o)
{
  profile *p = r->p;
  const char *name = p->names.at[name_of(r, o->head.name, "")];

  if (o->head.type == PROFILE_DEVICE && o->id < p->n_devices && *name != '\0') {
    p->devices[o->id] = name;
  } else if (o->head.type == PROFILE_THREAD && *name != '\0') {
    const uint32_t row = thread_row(r, o->id); /* may move p->rows */

    p->rows[row].title = kiln__cli_text(p->c, "thread %u, %s", o->id, name);
  } else if (o->head.type == PROFILE_CONTEXT && r->n_defaults < 1024) {
    r->defaults = kiln__cli_grow(p->c, r->defaults, r->n_defaults,
                                 &r->defaults_capacity, sizeof *r->defaults);
    r->defaults[r->n_defaults].context = o->id;
    r->defaults[r->n_defaults++].stream = o->stream;
  }
}

static bool is_default(const reader *r, const profile_row *row)
{
  for (size_t i = 0; i < r->n_defaults; i++) {
    if (r->defaults[i].context == row->context &&
        r->defaults[i].stream == row->stream)
      return true;
  }
  return row->stream == 0;
}

/* Gives titles to the rows of the file that have none. */
static void title_rows(const reader *r)
{
  profile *p = r->p;

  for (size_t i = 0; i < p->n_rows; i++) {
    profile_row *row = &p->rows[i];

    if (row->process != r->process || row->title != NULL)
      continue;
    if (row->host)
      row->title = row->thread == 0
                       ? "waits of the host"
                       : kiln__cli_text(p->c, "thread %u", row->thread);
    else
      row->title = is_default(r, row)
                       ? "default stream"
                       : kiln__cli_text(p->c, "stream %u", row->stream);
  }
}

/* ---- Files ------------------------------------------------------------------ */

/* Returns the size of records of this type, or 0 if the size varies. */
static size_t size_of(unsigned type)
{
  switch (type) {
  case PROFILE_KERNEL:
    return sizeof(profile_kernel);
  case PROFILE_COPY:
  case PROFILE_FILL:
  case PROFILE_HOST:
    return sizeof(profile_copy);
  case PROFILE_CALL:
  case PROFILE_SYNC:
  case PROFILE_OVERHEAD:
    return sizeof(profile_call);
  case PROFILE_DEVICE:
  case PROFILE_CONTEXT:
  case PROFILE_STREAM:
  case PROFILE_THREAD:
    return sizeof(profile_object);
  default:
    return 0;
  }
}

/* Returns whether a record is complete and has the form of its type. */
static bool valid(const profile_record *record, size_t left)
{
  const size_t fixed = size_of(record->type);

  if (record->type == 0 || record->type >= PROFILE_N_TYPES ||
      record->size % 8 != 0 || record->size > left ||
      record->size < sizeof(profile_name))
    return false;
  return fixed != 0 ? record->size == fixed
                    : ((const char *)record)[record->size - 1] == '\0';
}

static void read_record(reader *r, const profile_record *record)
{
  switch (record->type) {
  case PROFILE_NAME:
    read_name(r, (const profile_name *)(const void *)record);
    break;
  case PROFILE_NOTE:
    kiln__profile_note(r->p,
                       ((const profile_name *)(const void *)record)->text);
    break;
  case PROFILE_KERNEL:
    read_kernel(r, (const profile_kernel *)(const void *)record);
    break;
  case PROFILE_COPY:
  case PROFILE_FILL:
  case PROFILE_HOST:
    read_copy(r, (const profile_copy *)(const void *)record);
    break;
  case PROFILE_CALL:
  case PROFILE_SYNC:
  case PROFILE_OVERHEAD:
    read_call(r, (const profile_call *)(const void *)record);
    break;
  default:
    read_object(r, (const profile_object *)(const void *)record);
  }
}

static const char *source_of(const reader *r, const profile_header *h)
{
  if (h->source == PROFILE_CPU)
    return "CPU device";
  return kiln__cli_text(r->p->c, "CUPTI, API version %u", h->version);
}

static void read_records(reader *r, const uint8_t *data, size_t size)
{
  const profile_header *h = (const profile_header *)(const void *)data;
  size_t at = sizeof *h;

  r->p->processes =
      kiln__cli_grow(r->p->c, r->p->processes, r->p->n_processes,
                     &r->p->processes_capacity, sizeof *r->p->processes);
  r->process = (uint32_t)r->p->n_processes;
  r->p->processes[r->p->n_processes++] = (profile_process){
      .pid = h->pid,
      .parent = h->parent,
      .program = kiln__cli_text(r->p->c, "%.*s",
                                (int)strnlen(h->program, sizeof h->program),
                                h->program),
      .source = source_of(r, h),
      .ended = h->ended == 1,
      .dropped = h->dropped};
  if (h->real_ns < (uint64_t)most_ns && h->begin_ns < (uint64_t)most_ns)
    r->shift = (int64_t)h->real_ns - (int64_t)h->begin_ns;
  while (size - at >= sizeof(profile_record)) {
    const profile_record *record =
        (const profile_record *)(const void *)(data + at);

    if (!valid(record, size - at)) {
      r->p->truncated = r->p->truncated || record->type != 0;
      break;
    }
    read_record(r, record);
    at += record->size;
  }
  title_rows(r);
}

/* Reads a whole record file into memory that the caller frees. The file is not
 * mapped, since a process that still runs may make it shorter.
 * @return NULL having reported why */
static uint8_t *load_file(const cli *c, const char *path, size_t *size)
{
  FILE *f = kiln__cli_odd_file(path) == NULL ? fopen(path, "rbe") : NULL;
  struct stat info = {0};
  uint8_t *data = NULL;

  *size = 0;
  if (f != NULL && fstat(fileno(f), &info) == 0 &&
      info.st_size >= (off_t)sizeof(profile_header))
    data = malloc((size_t)info.st_size);
  if (data != NULL)
    *size = fread(data, 1, (size_t)info.st_size, f);
  if (f != NULL)
    fclose(f);
  if (*size >= sizeof(profile_header) && memcmp(data, PROFILE_MAGIC, 8) == 0)
    return data;
  free(data);
  kiln__cli_message(c, "record the program again with this version of Kiln",
                    "cannot read '%s': %s", path,
                    f == NULL ? strerror(errno)
                              : "it is not a record file of kiln profile");
  return NULL;
}

int kiln__profile_read_file(profile *p, const char *path)
{
  reader r = {.p = p};
  size_t size;
  uint8_t *data = load_file(p->c, path, &size);

  if (data == NULL)
    return CLI_FAILED;
  if (p->n_processes < PROFILE_MOST_PROCESSES) {
    r.names = kiln__cli_alloc(p->c, PROFILE_MOST_NAMES + 1, sizeof *r.names);
    read_records(&r, data, size);
  }
  free(data);
  return CLI_OK;
}

int kiln__profile_read_folder(profile *p, const char *path)
{
  glob_t found = {0};
  int rc = CLI_OK;

  if (glob(kiln__cli_text(p->c, "%s/*" PROFILE_SUFFIX, path), 0, NULL,
           &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && rc == CLI_OK; i++)
      rc = kiln__profile_read_file(p, found.gl_pathv[i]);
    if (found.gl_pathc > PROFILE_MOST_PROCESSES)
      kiln__profile_note(p, "only the first 255 processes are shown");
  }
  globfree(&found);
  return rc;
}
