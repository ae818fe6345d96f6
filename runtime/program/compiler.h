/* compiler.h -- from a plan to an entry: run the compiler, read its log and the
 * assembler's report. */
#ifndef KILN_COMPILER_H
#define KILN_COMPILER_H

#include "plan.h"

/* ---- The compiler's log ------------------------------------------------------- */

/* Appends the log in the form that users see: valid UTF-8, without generated
 * text, and with messages about a name expression under the expression's own
 * name. `names` are in the order in which the compiler received them. */
void kiln__log_map(kiln__buf *out, const char *raw, size_t size,
                   const kiln__list *names);

/* Finds the first line that reports an error; false if there is none. */
bool kiln__log_error(const char *log, size_t size, const char **line,
                     size_t *line_size);

/* The index in `names` of the first name expression with an error, if every
 * error in the raw log is about one; else -1. */
long kiln__log_bad_name(const char *raw, size_t size, const kiln__list *names);

/* ---- The report ---------------------------------------------------------------- */

/* Appends one line per kernel of the PTX, with the numbers of the assembler's
 * lines in the log; then one line per function that spills. */
void kiln__report_write(kiln__buf *out, kiln__slice ptx, kiln__slice cubin,
                        kiln__slice log);

/* Bytes of constant memory that machine code reserves for a kernel, its
 * parameters included; 0 if it has no such section. */
int kiln__cubin_constant(const void *cubin, size_t size, const char *kernel,
                         size_t kernel_size);

/* One line of a report. Names are not terminated. */
typedef struct kiln__report_line {
  bool kernel; /* else a device function */
  const char *name;
  size_t name_size;
  kiln_resources res; /* its name is not set */
} kiln__report_line;
/* Walks the lines of a report; start with *at = 0. False at its end or at a
 * line that is none. */
bool kiln__report_next(const char *report, size_t size, size_t *at,
                       kiln__report_line *out);

/* ---- The compiler ----------------------------------------------------------------- */

typedef struct kiln__build {
  kiln_runtime *rt;
  const kiln__plan *plan;
  const kiln__key *key;
  const kiln_traits *traits;
  const kiln__image_request *req;
  kiln__buf log; /* the mapped, complete log, also after a failure */
} kiln__build;

/* Compiles, and links if the rung asks for it. A kiln__make_fn; `user` is a
 * kiln__build. Status as kiln_compile(). */
kiln_status kiln__build_make(void *user, kiln__entry **out);

#endif
