/* cli.h -- what the commands of `kiln` and its benchmarks share: the state of
 * one run, memory, text, tables, messages, files and JSON.
 *
 * The folders include one way: cli/ (the commands) may include bench/ (what
 * `kiln bench` and `kiln tune` measure), and both may include tool/. Only the
 * public headers of the library are used. */
#ifndef KILN_TOOL_CLI_H
#define KILN_TOOL_CLI_H

#include <kiln/cpu.h>
#include <kiln/kiln.h>

#include <cjson/cJSON.h>
#include <stdio.h>

#define CLI_PRINTF(text, first)                                                \
  __attribute__((__format__(__printf__, text, first)))

/* Run the expression; return its status from the function unless it is KILN_OK.
 */
#define CLI_TRY(expression)                                                    \
  do {                                                                         \
    const kiln_status st_ = (expression);                                      \
    if (st_ != KILN_OK)                                                        \
      return st_;                                                              \
  } while (0)

/* Exit codes. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* State of one run of the command. */
typedef struct cli {
  kiln_runtime *rt;
  const char *name;      /* of the command, "compile" */
  const char *cache_dir; /* global options, or NULL */
  const char *nvrtc;
  const char *driver;
  const char *device; /* "gpu", "cpu:9.0,...", or NULL: the command chooses */
  kiln_runtime_opts opts; /* what rt was made with */
  bool on_cpu;            /* rt uses the CPU device */
  kiln_cpu_opts cpu;      /* its settings then */
  bool verbose;
  bool keep_warnings;     /* keep the library's warnings instead of printing */
  char *warnings;         /* the kept ones, one per line */
  struct cli_block *pool; /* what kiln__cli_alloc() made */
} cli;

/* A command. argv[0] is its name for messages. @return an exit code, or
 * CLI_HELPED. */
typedef int (*cli_command_fn)(cli *c, int argc, char **argv);

/* ---- cli_device.c: GPU or CPU device ------------------------------------ */

typedef enum cli_device_use {
  CLI_DEVICE_GIVEN = 0, /* use the CPU device only if it was asked for */
  CLI_DEVICE_NEEDED     /* use it also where there is no GPU */
} cli_device_use;

/* Create c->rt as --device or KILN_DEVICE demand. A line on stderr reports the
 * fall-back to the CPU device.
 * @return CLI_OK, or CLI_FAILED or CLI_USAGE having reported why */
int kiln__cli_open(cli *c, const kiln_runtime_opts *opts, cli_device_use use);

/* Replace a runtime on a GPU by one on the CPU device, for checks and counters,
 * which only that has. @return as kiln__cli_open() */
int kiln__cli_to_cpu(cli *c);

/* ---- cli_text.c: memory, text, units ------------------------------------ */

/* Zeroed memory for n * size bytes, which lives until the command ends. Ends
 * the process if there is none; never NULL. Main thread only. */
void *kiln__cli_alloc(cli *c, size_t n, size_t size);

/* Ensure that an array from kiln__cli_alloc() with n elements can take one more.
 * Where *capacity is used up, the elements move to an array twice as long.
 * @return the array to use from now on */
void *kiln__cli_grow(cli *c, const void *array, size_t n, size_t *capacity,
                     size_t size);

/* printf into such memory. */
char *kiln__cli_text(cli *c, const char *format, ...) CLI_PRINTF(2, 3);
void kiln__cli_free_all(cli *c);

/* The next word of a list with the given separators; NULL at its end. *rest is
 * the list at first (a copy, which is cut), and is advanced. */
char *kiln__cli_word(char **rest, const char *separators);

/* The text as it may be printed to a terminal: control bytes, and bytes that are
 * not UTF-8, become "\x1b". @return `text` itself where there are none */
const char *kiln__cli_shown(cli *c, const char *text);
/* Bytes of the UTF-8 character that `text` starts with; 0: it starts with none.
 * *control: a terminal might obey it instead of showing it. */
size_t kiln__cli_utf8(const char *text, bool *control);
/* Columns that the text takes: its UTF-8 characters. */
size_t kiln__cli_columns(const char *text);
/* Print text, broken between words so that no line is wider than `width`;
 * further lines start at `column`, where the cursor stands now. Newlines in the
 * text are kept. Ends with a newline. */
void kiln__cli_wrap(const char *text, size_t column, size_t width);

/* "3.4 KiB". */
const char *kiln__cli_bytes(cli *c, uint64_t bytes);
/* "13.0" from 13000, "12.8" from 12080. */
const char *kiln__cli_version(cli *c, int version);
/* "9.0" from 90, "12.1" from 121. */
const char *kiln__cli_cc(cli *c, int cc);
/* "7.5 8.0 9.0". */
const char *kiln__cli_cc_list(cli *c, const int *archs, size_t n);
/* "saxpy" from "_Z5saxpyfPKfPfj"; other names unchanged. */
const char *kiln__cli_plain_name(cli *c, const char *lowered);
/* Parse "90", "9.0", "12.2" to major * scale + minor; false if it is neither. */
bool kiln__cli_parse_version(const char *text, int major, int minor, int *out);
/* Parse "10M" to bytes; units are powers of 1024. */
bool kiln__cli_parse_bytes(const char *text, uint64_t *out);

/* ---- cli_table.c -------------------------------------------------------- */

/* A table for people. Heads end in NULL; a leading '>' aligns right. */
typedef struct cli_table {
  cli *c;
  const char *const *heads;
  size_t columns, n, capacity;
  const char **cells;
} cli_table;

/* Start a table with heads, which are borrowed. */
void kiln__cli_table(cli_table *t, cli *c, const char *const *heads);
/* Start a table of two columns without heads: labels and values. */
void kiln__cli_sheet(cli_table *t, cli *c);
/* Append a cell; kiln__cli_shown() applies. Rows fill from left to right. */
void kiln__cli_cell(cli_table *t, const char *format, ...) CLI_PRINTF(2, 3);
/* Append `n` cells with a dash: no value. */
void kiln__cli_dashes(cli_table *t, size_t n);
/* Append a label and a value. */
void kiln__cli_row(cli_table *t, const char *label, const char *format, ...)
    CLI_PRINTF(3, 4);
/* Print with `indent` spaces before each line. Heads are left out where all are
 * empty. */
void kiln__cli_table_print(const cli_table *t, int indent);

/* ---- cli_message.c: messages on stderr ---------------------------------- */

/* Print "kiln compile: MESSAGE", and the next step if `next` is not NULL. */
void kiln__cli_message(const cli *c, const char *next, const char *format, ...)
    CLI_PRINTF(3, 4);
/* Print the library's record of a failure, `what` before it unless NULL.
 * @return CLI_FAILED */
int kiln__cli_failure(const cli *c, const char *what);
/* The record's message without its list of places tried, for output that shows
 * the list elsewhere. */
const char *kiln__cli_headline(cli *c);
/* Report wrong use: a message (none for NULL), and where the help is.
 * @return CLI_USAGE */
int kiln__cli_usage(const cli *c, const char *format, ...) CLI_PRINTF(2, 3);
/* Show "WHAT: 3 of 12" on one line of stderr if that is a terminal. */
void kiln__cli_progress(const cli *c, const char *what, size_t done,
                        size_t total);

/* ---- cli_file.c: files and JSON ----------------------------------------- */

enum {
  CLI_MOST_TEXT = 64 << 20 /* bytes of a source or a list that is read */
};

/* What a path leads to if it is no regular file: "a directory", "a device". NULL
 * for a regular file and where nothing is. */
const char *kiln__cli_odd_file(const char *path);
/* Read a whole regular file of at most `most` bytes ("-": standard input, also
 * limited). Nothing else is read: a FIFO or a device might never end.
 * @return the bytes and a NUL that *size does not count; NULL having reported
 *         why */
char *kiln__cli_read(cli *c, const char *path, size_t most, size_t *size);
/* Write a whole file. @return CLI_OK, or CLI_FAILED having reported why */
int kiln__cli_write(const cli *c, const char *path, const void *data,
                    size_t size);
/* Create an empty folder with a unique name in TMPDIR or /tmp.
 * @return its path, or NULL having reported why */
char *kiln__cli_make_folder(cli *c, const char *name);
/* Remove a folder and everything in it; NULL is allowed. */
void kiln__cli_remove_folder(const char *path);
/* Run argv[0] with its standard output into a pipe, wait for it, and return what
 * it wrote, to be freed; NULL if it could not be run. *status is waitpid's. */
char *kiln__cli_output_of(char *const argv[], int *status);

/* Write JSON to a file, or to stdout for NULL and "-", and delete it. Bytes that
 * are not UTF-8, as in a file's name, become U+FFFD.
 * @return CLI_OK, or CLI_FAILED having reported why */
int kiln__cli_json(const cli *c, cJSON *json, const char *path);
/* End of a measurement: write `json` to `path` if rc is CLI_OK and path is not
 * NULL; delete it in any case. @return the exit code of both */
int kiln__cli_json_end(const cli *c, int rc, cJSON *json, const char *path);

/* Members of an object, with short names since reports list dozens. */
#define JSON_NUMBER(object, key, value)                                        \
  (void)cJSON_AddNumberToObject((object), (key), (double)(value))
#define JSON_TEXT(object, key, value)                                          \
  (void)cJSON_AddStringToObject((object), (key), (value))
#define JSON_FLAG(object, key, value)                                          \
  (void)cJSON_AddBoolToObject((object), (key), (value))

#endif
