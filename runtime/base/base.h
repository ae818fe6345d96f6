/* base.h -- declarations that every folder uses: error records, the caller's
 * allocator and log callback, byte buffers, and the list of paths that the
 * library search examined. */
#ifndef KILN_BASE_H
#define KILN_BASE_H

#include <kiln/runtime.h>

#include <pthread.h>
#include <stdarg.h>

/* ---- Errors: each function has one status and one clean-up label --------- */

/* For functions with `kiln_status st = KILN_OK;` and a label `done`: evaluates
 * the expression and goes to `done` if the result is a failure. No other macro
 * of Kiln changes the control flow. */
#define KILN_TRY(expression)                                                   \
  do {                                                                         \
    st = (expression);                                                         \
    if (st != KILN_OK)                                                         \
      goto done;                                                               \
  } while (0)

#define KILN_PRINTF(text, first)                                               \
  __attribute__((__format__(__printf__, text, first)))

/* Writes the thread's error record and returns `status`. `hint` is the next
 * step for the user, or NULL. The arguments may point into the record that is
 * being replaced. */
kiln_status kiln__fail(kiln_status status, const char *hint, const char *format,
                       ...) KILN_PRINTF(3, 4);

/* Like kiln__fail(), but also records the native error code and the name of the
 * function that failed. */
kiln_status kiln__fail_native(kiln_status status, kiln_error_source source,
                              int native, const char *call, const char *hint,
                              const char *format, ...) KILN_PRINTF(6, 7);

/* Records the failure of a system call: KILN_EIO with the errno value `code`,
 * its message and the path. Returns KILN_EIO. */
kiln_status kiln__fail_os(int code, const char *call, const char *path);

/* Writes an error record and returns KILN_ENOMEM. The text `what` in the record
 * describes what the memory was for. */
kiln_status kiln__fail_memory(const char *what);

#ifdef __clang_analyzer__
/* The static analyzer looks at one file at a time. These macros show the
 * analyzer that the failure functions never return KILN_OK. */
#define kiln__fail(status, ...) (kiln__fail(status, __VA_ARGS__), (status))
#define kiln__fail_native(status, ...)                                         \
  (kiln__fail_native(status, __VA_ARGS__), (status))
#define kiln__fail_os(...) (kiln__fail_os(__VA_ARGS__), KILN_EIO)
#define kiln__fail_memory(what) (kiln__fail_memory(what), KILN_ENOMEM)
#endif

/* Attaches a log, such as the compiler's output, to the error record that was
 * just written. */
void kiln__error_log(const char *text, size_t size);

/* Sets the hint of the error record that was just written. */
void kiln__error_hint(const char *format, ...) KILN_PRINTF(1, 2);

/* Copy the error record out of a thread or into a thread. A compile job carries
 * a failure from its compile thread to the caller by these functions. Clean-up
 * code uses them to preserve the first failure. */
void kiln__error_get(kiln_error *out);
void kiln__error_set(const kiln_error *record);

/* ---- Memory: all allocations use the caller's allocator ------------------ */

/* Sets malloc, realloc and free as the allocator if the caller gave no
 * allocator. */
void kiln__allocator_default(kiln_allocator *a);
void *kiln__alloc(const kiln_allocator *a, size_t size); /* not zeroed */
void *kiln__calloc(const kiln_allocator *a, size_t n, size_t size);
void *kiln__resize(const kiln_allocator *a, void *p, size_t size);
/* Ensures space for one more item in an array of `n` items of `size` bytes.
 * *capacity is the number of items that fit, and `items` is the address of the
 * pointer to the array. Returns false if memory ran out; the array is then
 * unchanged. */
bool kiln__grow(const kiln_allocator *a, void *items, size_t n,
                size_t *capacity, size_t size);
void kiln__free(const kiln_allocator *a, void *p);
/* Copies a string. Returns NULL if `text` is NULL or memory ran out. */
char *kiln__strdup(const kiln_allocator *a, const char *text);
char *kiln__strndup(const kiln_allocator *a, const char *text, size_t n);

/* ---- Text ---------------------------------------------------------------- */

/* Works like snprintf(), but always terminates the output and never splits a
 * UTF-8 sequence. Returns false if the output was truncated. Never print
 * floating-point numbers with this function: they would contain the locale's
 * decimal point. */
bool kiln__format(char *buf, size_t size, const char *format, ...)
    KILN_PRINTF(3, 4);
bool kiln__copy_text(char *buf, size_t size, const char *text);
/* Removes a split UTF-8 sequence from the end of a string that vsnprintf()
 * truncated at size - 1 bytes. */
void kiln__trim_cut(char *buf, size_t size);
/* Returns the system's message for an errno value: a pointer to `buf` or to a
 * static string. */
const char *kiln__errno_text(int code, char *buf, size_t size);
bool kiln__starts_with(const char *text, const char *prefix);
/* Writes the shortest decimal string that reads back as an equal number. The
 * decimal point is '.' in every locale. NaN and infinity become "nan" and
 * "inf". */
void kiln__format_double(char buf[32], double value);

/* A byte buffer that grows. A failed append sets `failed` and keeps the earlier
 * content, so a chain of appends needs only one check at the end. The data
 * always ends in a NUL byte, which `size` does not count. */
typedef struct kiln__buf {
  const kiln_allocator *alloc;
  char *data; /* the content; NULL until the first append */
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
/* Returns the NUL-terminated data, which the caller frees, and empties the
 * buffer. Returns NULL if an append failed. */
char *kiln__buf_take(kiln__buf *b);
/* Returns KILN_OK, or KILN_ENOMEM with an error record that names `what` if an
 * append to the buffer failed. */
kiln_status kiln__buf_status(const kiln__buf *b, const char *what);

/* ---- Log ----------------------------------------------------------------- */

/* The caller's log callback. Messages are discarded if `fn` is NULL. */
typedef struct kiln__log {
  kiln_log_fn fn;
  void *user;
  kiln_log_level level;
} kiln__log;

/* Formats one log line of at most 1,023 bytes and passes it to the callback if
 * its level is enabled. No lock is held during the callback, so the callback
 * may call Kiln. */
void kiln__logf(const kiln__log *log, kiln_log_level level, const char *format,
                ...) KILN_PRINTF(3, 4);

/* ---- Trail: the list of paths that the library search examined ---------- */

typedef struct kiln__trail kiln__trail;

/* Creates an empty trail (list of examined paths). Returns NULL if memory ran
 * out. */
kiln__trail *kiln__trail_create(const kiln_allocator *a);
void kiln__trail_free(kiln__trail *trail);
/* Records one step of a library search in the trail (list of examined paths).
 * `what` names the library, `how` the method of the search, and `where` the
 * path. A `reason` of NULL means that the library was found and is used. If
 * memory runs out, the step is dropped, since the trail only informs users. A
 * NULL trail is allowed. Thread-safe. */
void kiln__trail_add(kiln__trail *trail, const char *what, const char *how,
                     const char *where, const char *reason);
/* Calls `fn` for each recorded step of the library search, in order. No lock is
 * held during the calls. */
void kiln__trail_each(kiln__trail *trail, kiln_trail_fn fn, void *user);
/* Writes the recorded steps that looked for the library `what` as "tried A
 * (reason), B (reason), ...", truncated to the buffer's size. */
void kiln__trail_text(kiln__trail *trail, const char *what, char *buf,
                      size_t size);

#endif
