/* compiler.h -- from a plan to an entry: run the compiler, read its log. */
#ifndef KILN_COMPILER_H
#define KILN_COMPILER_H

#include "plan.h"

/* ---- The compiler's log ------------------------------------------------------- */

/* What people get to see: valid UTF-8, no generated text, messages about name
 * expressions under the expression's own name. `names` in the order in which
 * the compiler got them. */
void kiln__log_map(kiln__buf *out, const char *raw, size_t size,
                   const kiln__list *names);

/* The first line that tells an error; false if there is none. */
bool kiln__log_error(const char *log, size_t size, const char **line,
                     size_t *line_size);

/* If every error in the raw log is about a name expression: its index in
 * `names`; else -1. */
long kiln__log_bad_name(const char *raw, size_t size, const kiln__list *names);

/* ---- The report ---------------------------------------------------------------- */

/* One line a kernel of the PTX, with what the assembler's lines in the log say
 * of it; then one a function that spills. */
void kiln__report_write(kiln__buf *out, kiln__slice ptx, kiln__slice cubin,
                        kiln__slice log);

/* Bytes of constant memory that machine code holds for a kernel, its
 * parameters included; 0 if it tells nothing. */
int kiln__cubin_constant(const void *cubin, size_t size, const char *kernel,
                         size_t kernel_size);

/* A line of a report. Names are not terminated. */
typedef struct kiln__report_line {
  bool kernel; /* else a device function */
  const char *name;
  size_t name_size;
  kiln_resources res; /* its name is not set */
} kiln__report_line;
bool kiln__report_next(const char *report, size_t size, size_t *at,
                       kiln__report_line *out);

/* ---- The compiler ----------------------------------------------------------------- */

typedef struct kiln__build {
  kiln_runtime *rt;
  const kiln__plan *plan;
  const kiln__key *key;
  const kiln_traits *traits;
  const kiln__image_request *req;
  kiln__buf log; /* mapped and complete, also after a failure */
} kiln__build;

/* A kiln__make_fn; `user` is a kiln__build. */
kiln_status kiln__build_make(void *user, kiln__entry **out);

#endif
