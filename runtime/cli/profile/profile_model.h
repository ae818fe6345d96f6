/* profile_model.h -- the recorded activities of a program, as `kiln profile`
 * holds them in memory, and the functions that read, summarise and write them.
 *
 * A profile consists of processes, rows and spans. A row is a host thread of a
 * process, or a stream of a device. A span is an interval in a row in which one
 * activity ran. All times are nanoseconds since the first activity. */
#ifndef KILN_CLI_PROFILE_MODEL_H
#define KILN_CLI_PROFILE_MODEL_H

#include "cli/commands.h"

typedef enum span_kind {
  SPAN_KERNEL,
  SPAN_COPY,
  SPAN_FILL,
  SPAN_HOST, /* a function of the program that a stream ran */
  SPAN_CALL, /* a call of the driver or runtime API */
  SPAN_SYNC, /* time in which the host waited */
  SPAN_OVERHEAD,
  SPAN_OTHER, /* a span of a trace file, on the host */
  SPAN_N_KINDS
} span_kind;

/* One activity. */
typedef struct span {
  int64_t begin, end;
  uint32_t name;        /* index into profile.names */
  uint32_t row;         /* index into profile.rows */
  uint32_t correlation; /* number that a call and its work share; 0: none */
  uint32_t detail;      /* index into profile.details */
  uint64_t bytes;       /* size of a copy or fill */
  uint8_t kind;         /* span_kind */
  uint8_t process;      /* index into profile.processes, at most 255 */
} span;

typedef struct profile_row {
  uint32_t process;
  bool host;                        /* a host thread; otherwise a stream */
  uint32_t device, context, stream; /* of a stream */
  uint32_t thread;                  /* of a host thread */
  const char *title;
  size_t n; /* number of spans */
} profile_row;

typedef struct profile_process {
  uint32_t pid, parent;
  const char *program;
  const char *source; /* "CUPTI 13.0", "CPU device", "trace" */
  bool ended;         /* the process ended by exit() */
  uint64_t dropped;   /* records that were lost */
} profile_process;

/* Texts without duplicates. Index 0 is the empty text. */
typedef struct text_set {
  const char **at;
  size_t n, capacity;
  uint32_t *slots; /* hash table of indices plus 1 */
  size_t n_slots;
} text_set;

typedef struct profile {
  cli *c;
  span *spans; /* sorted by row, then begin, then descending end */
  size_t n, capacity;
  profile_row *rows;
  size_t n_rows, rows_capacity;
  profile_process *processes;
  size_t n_processes, processes_capacity;
  text_set names, details;
  const char **devices; /* names of devices by ordinal; NULL if unknown */
  size_t n_devices;
  const char **notes; /* messages for the user */
  size_t n_notes, notes_capacity;
  int64_t length; /* end of the last span */
  bool truncated; /* a file ends within a record */
} profile;

enum {
  PROFILE_MOST_PROCESSES = 255,
  PROFILE_MOST_ROWS = 4096,
  PROFILE_MOST_DEVICES = 256
};

/* ---- profile_model.c ------------------------------------------------------ */

void kiln__profile_init(profile *p, cli *c);
/* Returns the index of a text, which is copied when it is new. */
uint32_t kiln__profile_text(profile *p, text_set *set, const char *text);
/* Returns the index of the row with the given members, which is made if it is
 * new. Beyond PROFILE_MOST_ROWS rows, the last row takes everything. */
uint32_t kiln__profile_row(profile *p, const profile_row *wanted);
/* Appends a span, whose members are zero except begin, end, row and kind. */
span *kiln__profile_span(profile *p, span_kind kind, uint32_t row,
                         int64_t begin, int64_t end);
/* Adds a message for the user. */
void kiln__profile_note(profile *p, const char *text);
/* Sorts the spans and moves the time axis to the first span. Call it once, after
 * everything was read. */
void kiln__profile_finish(profile *p);
/* Returns whether the span ran on a device. */
bool kiln__profile_on_device(const span *s);
/* Returns a title for a device: "GPU 0, NVIDIA H200". */
const char *kiln__profile_device(profile *p, uint32_t device);

/* ---- profile_read.c, profile_trace.c: input ------------------------------- */

/* Reads all record files of a folder.
 * @return CLI_OK, or CLI_FAILED having reported why */
int kiln__profile_read_folder(profile *p, const char *path);
/* Reads one record file. A damaged end is left out. */
int kiln__profile_read_file(profile *p, const char *path);
/* Reads a trace in Chrome's format, which Kiln's timeline and `kiln profile -o`
 * write. */
int kiln__profile_read_trace(profile *p, const char *path);

/* ---- profile_trace.c, profile_summary.c, profile_page.c: output ----------- */

/* Writes a trace for Perfetto and chrome://tracing. */
int kiln__profile_write_trace(profile *p, const char *path);
/* Prints the summary to standard output, with at most `top` lines per table. */
void kiln__profile_print(profile *p, size_t top);
/* Returns the summary as JSON. */
cJSON *kiln__profile_json(profile *p);
/* Writes the page with the timeline. */
int kiln__profile_write_page(profile *p, const char *path);

#endif
