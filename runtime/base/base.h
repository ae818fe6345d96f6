/* base.h -- the few things every folder uses: status records, the caller's
 * allocator and log, byte buffers, discovery trail. */
#ifndef KILN_BASE_H
#define KILN_BASE_H

#include <kiln/runtime.h>

#include <pthread.h>
#include <stdarg.h>

/* ---- Errors: one status, one clean-up label ------------------------------ */

/* In a function with `kiln_status st = KILN_OK;` and a label `done`: evaluate,
 * leave through `done` if it failed. The only control-flow macro. */
#define KILN_TRY(expression)                                                   \
  do {                                                                         \
    st = (expression);                                                         \
    if (st != KILN_OK)                                                         \
      goto done;                                                               \
  } while (0)

#define KILN_PRINTF(text, first)                                               \
  __attribute__((__format__(__printf__, text, first)))

/* Write the thread's record and return `status`. `hint` is the one next step
 * or NULL. Arguments may point into the record that is being replaced. */
kiln_status kiln__fail(kiln_status status, const char *hint, const char *format,
                       ...) KILN_PRINTF(3, 4);

/* The same with the native code and function that failed. */
kiln_status kiln__fail_native(kiln_status status, kiln_error_source source,
                              int native, const char *call, const char *hint,
                              const char *format, ...) KILN_PRINTF(6, 7);

/* Failure of a system call: KILN_EIO with errno `code`, its text and a path. */
kiln_status kiln__fail_os(int code, const char *call, const char *path);

/* KILN_ENOMEM, naming what the memory was for. */
kiln_status kiln__fail_memory(const char *what);

#ifdef __clang_analyzer__
/* It looks at one file at a time: tell it that a failure is never KILN_OK. */
#define kiln__fail(status, ...) (kiln__fail(status, __VA_ARGS__), (status))
#define kiln__fail_native(status, ...)                                         \
  (kiln__fail_native(status, __VA_ARGS__), (status))
#define kiln__fail_os(...) (kiln__fail_os(__VA_ARGS__), KILN_EIO)
#define kiln__fail_memory(what) (kiln__fail_memory(what), KILN_ENOMEM)
#endif

/* Attach a log to the record just written. */
void kiln__error_log(const char *text, size_t size);

/* Attach or replace the hint of the record just written. */
void kiln__error_hint(const char *format, ...) KILN_PRINTF(1, 2);

/* Copy the record out of and back into a thread: jobs carry a failure from a
 * compile thread to the caller; clean-up code keeps the first failure. */
void kiln__error_get(kiln_error *out);
void kiln__error_set(const kiln_error *record);

/* ---- Memory: always the caller's allocator ------------------------------- */

/* Fill in malloc where the caller gave none. */
void kiln__allocator_default(kiln_allocator *a);
void *kiln__alloc(const kiln_allocator *a, size_t size); /* uninitialised */
void *kiln__calloc(const kiln_allocator *a, size_t n, size_t size);
void *kiln__resize(const kiln_allocator *a, void *p, size_t size);
void kiln__free(const kiln_allocator *a, void *p);
char *kiln__strdup(const kiln_allocator *a,
                   const char *text); /* NULL -> NULL */
char *kiln__strndup(const kiln_allocator *a, const char *text, size_t n);

/* ---- Text ----------------------------------------------------------------- */

/* snprintf that always terminates and never splits a UTF-8 sequence; returns
 * false if the text was cut. The C locale's '.' is used for numbers only if
 * the format prints none as floating point: never format floats with it. */
bool kiln__format(char *buf, size_t size, const char *format, ...)
    KILN_PRINTF(3, 4);
bool kiln__copy_text(char *buf, size_t size, const char *text);
/* What vsnprintf just cut at size - 1 bytes: drop a split UTF-8 sequence. */
void kiln__trim_cut(char *buf, size_t size);
/* The system's text for an errno code: `buf` or a static text. */
const char *kiln__errno_text(int code, char *buf, size_t size);
bool kiln__starts_with(const char *text, const char *prefix);
/* Decimal text of a double with '.', whatever the locale; shortest form that
 * reads back equal, "nan" and "inf" included. */
void kiln__format_double(char buf[32], double value);

/* A growing byte buffer. A failed append sets `failed` and keeps what was
 * there, so a chain of appends needs one check at the end. Data always ends in
 * a NUL that size does not count. */
typedef struct kiln__buf {
  const kiln_allocator *alloc;
  char *data; /* NULL until the first append */
  size_t size, capacity;
  bool failed;
} kiln__buf;

void kiln__buf_init(kiln__buf *b, const kiln_allocator *a);
void kiln__buf_free(kiln__buf *b);
void kiln__buf_clear(kiln__buf *b);
bool kiln__buf_reserve(kiln__buf *b, size_t more);
void kiln__buf_add(kiln__buf *b, const void *data, size_t size);
void kiln__buf_text(kiln__buf *b, const char *text);
void kiln__buf_format(kiln__buf *b, const char *format, ...) KILN_PRINTF(2, 3);
/* Hand over the data (NUL-terminated); the buffer is empty afterwards. NULL if
 * an append failed. */
char *kiln__buf_take(kiln__buf *b);
/* KILN_OK or KILN_ENOMEM. */
kiln_status kiln__buf_status(const kiln__buf *b, const char *what);

/* ---- Log ------------------------------------------------------------------- */

typedef struct kiln__log {
  kiln_log_fn fn;
  void *user;
  kiln_log_level level;
} kiln__log;

void kiln__logf(const kiln__log *log, kiln_log_level level, const char *format,
                ...) KILN_PRINTF(3, 4);

/* ---- Trail: every place that discovery looked at --------------------------- */

typedef struct kiln__trail kiln__trail;

kiln__trail *kiln__trail_create(const kiln_allocator *a); /* NULL: no memory */
void kiln__trail_free(kiln__trail *trail);
/* Any thread. `reason` NULL: found and used. Running out of memory drops the
 * step: a trail is for people. NULL trail is fine. */
void kiln__trail_add(kiln__trail *trail, const char *what, const char *how,
                     const char *where, const char *reason);
void kiln__trail_each(kiln__trail *trail, kiln_trail_fn fn, void *user);
/* "tried A (reason), B (reason), ..." of one `what`, cut to the buffer. */
void kiln__trail_text(kiln__trail *trail, const char *what, char *buf,
                      size_t size);

#endif
