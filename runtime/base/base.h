/* base.h -- what every folder uses: error records, the caller's allocator and
 * log, byte buffers, and the trail of discovery. */
#ifndef KILN_BASE_H
#define KILN_BASE_H

#include <kiln/runtime.h>

#include <pthread.h>
#include <stdarg.h>

/* ---- Errors: one status, one clean-up label ------------------------------ */

/* For functions with `kiln_status st = KILN_OK;` and a label `done`: evaluates
 * the expression and goes to `done` if it failed. The only control-flow macro.
 */
#define KILN_TRY(expression)                                                   \
  do {                                                                         \
    st = (expression);                                                         \
    if (st != KILN_OK)                                                         \
      goto done;                                                               \
  } while (0)

#define KILN_PRINTF(text, first)                                               \
  __attribute__((__format__(__printf__, text, first)))

/* Writes the thread's error record and returns `status`. `hint` is the next
 * step for the user, or NULL. Arguments may point into the record that is being
 * replaced. */
kiln_status kiln__fail(kiln_status status, const char *hint, const char *format,
                       ...) KILN_PRINTF(3, 4);

/* The same, with the native code and the name of the function that failed. */
kiln_status kiln__fail_native(kiln_status status, kiln_error_source source,
                              int native, const char *call, const char *hint,
                              const char *format, ...) KILN_PRINTF(6, 7);

/* A system call failed: KILN_EIO with errno `code`, its text and the path. */
kiln_status kiln__fail_os(int code, const char *call, const char *path);

/* KILN_ENOMEM; the record names what the memory was for. */
kiln_status kiln__fail_memory(const char *what);

#ifdef __clang_analyzer__
/* The analyzer looks at one file at a time and must see that a failure is never
 * KILN_OK. */
#define kiln__fail(status, ...) (kiln__fail(status, __VA_ARGS__), (status))
#define kiln__fail_native(status, ...)                                         \
  (kiln__fail_native(status, __VA_ARGS__), (status))
#define kiln__fail_os(...) (kiln__fail_os(__VA_ARGS__), KILN_EIO)
#define kiln__fail_memory(what) (kiln__fail_memory(what), KILN_ENOMEM)
#endif

/* Attaches a log to the record that was just written. */
void kiln__error_log(const char *text, size_t size);

/* Sets the hint of the record that was just written. */
void kiln__error_hint(const char *format, ...) KILN_PRINTF(1, 2);

/* Copy the record out of a thread and into one. Jobs carry a failure from a
 * compile thread to the caller this way, and clean-up code keeps the first
 * failure. */
void kiln__error_get(kiln_error *out);
void kiln__error_set(const kiln_error *record);

/* ---- Memory: always the caller's allocator ------------------------------- */

/* Sets malloc, realloc and free if the caller gave no allocator. */
void kiln__allocator_default(kiln_allocator *a);
void *kiln__alloc(const kiln_allocator *a, size_t size); /* uninitialised */
void *kiln__calloc(const kiln_allocator *a, size_t n, size_t size);
void *kiln__resize(const kiln_allocator *a, void *p, size_t size);
void kiln__free(const kiln_allocator *a, void *p);
char *kiln__strdup(const kiln_allocator *a,
                   const char *text); /* NULL -> NULL */
char *kiln__strndup(const kiln_allocator *a, const char *text, size_t n);

/* ---- Text ----------------------------------------------------------------- */

/* snprintf() that always terminates and never splits a UTF-8 sequence. Returns
 * false if the text was cut. Never print floating-point numbers with it: they
 * would have the locale's decimal point. */
bool kiln__format(char *buf, size_t size, const char *format, ...)
    KILN_PRINTF(3, 4);
bool kiln__copy_text(char *buf, size_t size, const char *text);
/* Removes a split UTF-8 sequence from the end of a text that vsnprintf() cut at
 * size - 1 bytes. */
void kiln__trim_cut(char *buf, size_t size);
/* The system's text for an errno code: `buf` or a static text. */
const char *kiln__errno_text(int code, char *buf, size_t size);
bool kiln__starts_with(const char *text, const char *prefix);
/* The shortest decimal text that reads back equal, with '.' in every locale;
 * "nan" and "inf" for these values. */
void kiln__format_double(char buf[32], double value);

/* A byte buffer that grows. An append that fails sets `failed` and keeps what
 * was there, so a chain of appends needs one check at its end. The data always
 * ends in a NUL, which `size` does not count. */
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
/* Returns the data, NUL-terminated, which the caller frees; the buffer is empty
 * afterwards. NULL if an append failed. */
char *kiln__buf_take(kiln__buf *b);
/* KILN_OK, or KILN_ENOMEM naming `what` if an append failed. */
kiln_status kiln__buf_status(const kiln__buf *b, const char *what);

/* ---- Log ------------------------------------------------------------------- */

/* The caller's log callback; nothing is logged if fn is NULL. */
typedef struct kiln__log {
  kiln_log_fn fn;
  void *user;
  kiln_log_level level;
} kiln__log;

/* Formats one line of at most 1,023 bytes and passes it to the callback if its
 * level is enabled. No lock is held; the callback may call Kiln. */
void kiln__logf(const kiln__log *log, kiln_log_level level, const char *format,
                ...) KILN_PRINTF(3, 4);

/* ---- Trail: every place that discovery looked at --------------------------- */

typedef struct kiln__trail kiln__trail;

kiln__trail *kiln__trail_create(const kiln_allocator *a); /* NULL: no memory */
void kiln__trail_free(kiln__trail *trail);
/* Records one step. `reason` NULL: the thing was found and is used. Any thread.
 * A lack of memory drops the step, since the trail only informs people. A NULL
 * trail is allowed. */
void kiln__trail_add(kiln__trail *trail, const char *what, const char *how,
                     const char *where, const char *reason);
/* Calls `fn` for each step, in order, with no lock held. */
void kiln__trail_each(kiln__trail *trail, kiln_trail_fn fn, void *user);
/* "tried A (reason), B (reason), ..." of one `what`, cut to the buffer. */
void kiln__trail_text(kiln__trail *trail, const char *what, char *buf,
                      size_t size);

#endif
