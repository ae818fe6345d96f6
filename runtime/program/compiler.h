/* compiler.h -- runs the compiler for a plan, parses the compiler's log and the
 * assembler's resource report, and builds the cache entry. */
#ifndef KILN_COMPILER_H
#define KILN_COMPILER_H

#include "plan.h"

/* ---- The compiler's log -------------------------------------------------- */

/* Appends the compiler's log in the form that users see. The output is valid
 * UTF-8 without generated source lines. Messages about a name expression show
 * the user's expression. `names` lists the name expressions in the order in
 * which the compiler received them. */
void kiln__log_map(kiln__buf *out, const char *raw, size_t size,
                   const kiln__list *names);

/* Finds the first line of a log that reports an error. Returns false if there
 * is no such line. */
bool kiln__log_error(const char *log, size_t size, const char **line,
                     size_t *line_size);

/* Returns the index in `names` of the first name expression with an error, if
 * all errors in the raw log concern name expressions; otherwise -1. */
long kiln__log_bad_name(const char *raw, size_t size, const kiln__list *names);

/* ---- The report ---------------------------------------------------------- */

/* Appends one report line per kernel of the PTX, with the resource usage from
 * the assembler's lines in the log. Then appends one line per function that
 * spills registers. */
void kiln__report_write(kiln__buf *out, kiln__slice ptx, kiln__slice cubin,
                        kiln__slice log);

/* Returns the constant memory in bytes that machine code reserves for a kernel,
 * including the parameters, or 0 if the kernel has no such section. */
int kiln__cubin_constant(const void *cubin, size_t size, const char *kernel,
                         size_t kernel_size);

/* One line of a resource report. The names in it are not NUL-terminated. */
typedef struct kiln__report_line {
  bool kernel; /* true for a kernel, false for a device function */
  const char *name;
  size_t name_size;
  kiln_resources res; /* resource usage; its member `name` is not set */
} kiln__report_line;
/* Iterates over the lines of a resource report. The first call takes *at = 0.
 * Returns false at the end of the report or at an invalid line. */
bool kiln__report_next(const char *report, size_t size, size_t *at,
                       kiln__report_line *out);

/* ---- The compiler -------------------------------------------------------- */

typedef struct kiln__build {
  kiln_runtime *rt;
  const kiln__plan *plan;
  const kiln__key *key;
  const kiln_traits *traits;
  const kiln__image_request *req;
  /* The complete log in the form that users see, also after a failure. */
  kiln__buf log;
} kiln__build;

/* Compiles the program, and links it if the chosen rung of the compatibility
 * ladder requires nvJitLink. The function has the type kiln__make_fn, and
 * `user` points to a kiln__build. Returns the statuses of kiln_compile(). */
kiln_status kiln__build_make(void *user, kiln__entry **out);

/* Makes a cache entry for the key of a build. Creates the resource report from
 * the sections PTX, CUBIN and LOG. */
kiln_status kiln__build_entry(const kiln__build *b,
                              const kiln__slice sections[KILN__SECTIONS],
                              const kiln__meta *meta, kiln__entry **out);

#endif
