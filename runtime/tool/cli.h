/* cli.h -- the interface that the commands of `kiln` and the benchmarks share:
 * the state of one run, memory, text, tables, messages, files and JSON.
 *
 * Includes between the folders go in one direction. cli/ (the commands) may
 * include bench/ (the measurements of `kiln bench` and `kiln tune`). Both may
 * include tool/. Only the public headers of the library are used. */
#ifndef KILN_TOOL_CLI_H
#define KILN_TOOL_CLI_H

#include <kiln/cpu.h>
#include <kiln/kiln.h>

#include <cjson/cJSON.h>
#include <stdio.h>

#define CLI_PRINTF(text, first)                                                \
  __attribute__((__format__(__printf__, text, first)))

/* Evaluates the expression. If its status is not KILN_OK, returns the status
 * from the calling function. */
#define CLI_TRY(expression)                                                    \
  do {                                                                         \
    const kiln_status st_ = (expression);                                      \
    if (st_ != KILN_OK)                                                        \
      return st_;                                                              \
  } while (0)

/* Exit codes of the command. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* The state of one run of the command. */
typedef struct cli {
  kiln_runtime *rt;
  const char *name; /* name of the command: "compile" */
  /* Values of the global options; NULL if an option was not given. */
  const char *cache_dir;
  const char *nvrtc;
  const char *driver;
  /* Device option: "gpu", "cpu:9.0,..."; NULL means that the command
   * chooses. */
  const char *device;
  kiln_runtime_opts opts; /* options with which the runtime `rt` was created */
  bool on_cpu;            /* true if the runtime `rt` uses the CPU device */
  /* Settings of the CPU device, if the runtime `rt` uses it. */
  kiln_cpu_opts cpu;
  bool verbose;
  /* True to keep the library's warnings instead of printing them. */
  bool keep_warnings;
  /* Warnings of the library that were kept, one per line. */
  char *warnings;
  struct cli_block *pool; /* blocks that kiln__cli_alloc() has allocated */
} cli;

/* Entry function of a command. argv[0] is the name of the command for messages.
 * @return an exit code, or CLI_HELPED */
typedef int (*cli_command_fn)(cli *c, int argc, char **argv);

/* ---- cli_device.c: choice between GPU and CPU device -------------------- */

typedef enum cli_device_use {
  /* Uses the CPU device only if the user requested it. */
  CLI_DEVICE_GIVEN = 0,
  CLI_DEVICE_NEEDED /* uses the CPU device also if there is no GPU */
} cli_device_use;

/* Creates c->rt as --device or KILN_DEVICE specifies. If the function falls
 * back to the CPU device, a line on stderr says so.
 * @return CLI_OK, or CLI_FAILED or CLI_USAGE after a message on stderr */
int kiln__cli_open(cli *c, const kiln_runtime_opts *opts, cli_device_use use);

/* Replaces a runtime on a GPU by a runtime on the CPU device. Only the CPU
 * device has checks and counters. Returns the exit codes of
 * kiln__cli_open(). */
int kiln__cli_to_cpu(cli *c);

/* ---- cli_text.c: memory, text, units ------------------------------------ */

/* Returns zeroed memory of n * size bytes, which lives until the command
 * ends. The function ends the process if memory is exhausted and never
 * returns NULL. Main thread only. */
void *kiln__cli_alloc(cli *c, size_t n, size_t size);

/* Ensures that an array of n elements from kiln__cli_alloc() has capacity for
 * one more element. If *capacity is exhausted, the elements move to an array of
 * twice the length.
 * @return the array to use from now on */
void *kiln__cli_grow(cli *c, const void *array, size_t n, size_t *capacity,
                     size_t size);

/* Formats a string into memory from kiln__cli_alloc(). */
char *kiln__cli_text(cli *c, const char *format, ...) CLI_PRINTF(2, 3);
void kiln__cli_free_all(cli *c);

/* Returns the next word of a list with the given separators, or NULL at the
 * end of the list. On the first call, *rest is a writable copy of the list.
 * Each call cuts and advances *rest. */
char *kiln__cli_word(char **rest, const char *separators);

/* Returns the text in a form that may be printed to a terminal. Control
 * bytes, and bytes that are not UTF-8, become "\x1b". @return `text` itself
 * if nothing needs to be replaced */
const char *kiln__cli_shown(cli *c, const char *text);
/* Returns the length in bytes of the UTF-8 character that `text` starts
 * with, or 0 if `text` starts with no valid character. *control becomes true
 * if a terminal might interpret the character instead of showing it. */
size_t kiln__cli_utf8(const char *text, bool *control);
/* Returns the number of columns that the text takes, which is its number of
 * UTF-8 characters. */
size_t kiln__cli_columns(const char *text);
/* Prints text, broken between words so that no line is wider than `width`. The
 * cursor stands at column `column`, and further lines also start at this
 * column. Newlines in the text are kept. The output ends with a newline. */
void kiln__cli_wrap(const char *text, size_t column, size_t width);

/* Formats a number of bytes: "3.4 KiB". */
const char *kiln__cli_bytes(cli *c, uint64_t bytes);
/* Formats a version: "13.0" from 13000, "12.8" from 12080. */
const char *kiln__cli_version(cli *c, int version);
/* Formats a compute capability: "9.0" from 90, "12.1" from 121. */
const char *kiln__cli_cc(cli *c, int cc);
/* Formats a list of compute capabilities: "7.5 8.0 9.0". */
const char *kiln__cli_cc_list(cli *c, const int *archs, size_t n);
/* Returns the plain name of a kernel: "saxpy" from "_Z5saxpyfPKfPfj". Other
 * names are unchanged. */
const char *kiln__cli_plain_name(cli *c, const char *lowered);
/* Parses "90", "9.0" or "12.2" to major * scale + minor. Returns false if
 * the text is not a version. */
bool kiln__cli_parse_version(const char *text, int major, int minor, int *out);
/* Parses a size such as "10M" to bytes; units are powers of 1024. */
bool kiln__cli_parse_bytes(const char *text, uint64_t *out);

/* ---- cli_table.c -------------------------------------------------------- */

/* A table of text cells for people. NULL ends the list of column heads. A
 * leading '>' in a head aligns the column to the right. */
typedef struct cli_table {
  cli *c;
  const char *const *heads;
  size_t columns, n, capacity;
  const char **cells;
} cli_table;

/* Starts a table. The column heads are not copied and must outlive the
 * table. */
void kiln__cli_table(cli_table *t, cli *c, const char *const *heads);
/* Starts a table of two columns without heads, for labels and values. */
void kiln__cli_sheet(cli_table *t, cli *c);
/* Appends a cell to the table and escapes its text as kiln__cli_shown() does.
 * Rows fill from left to right. */
void kiln__cli_cell(cli_table *t, const char *format, ...) CLI_PRINTF(2, 3);
/* Appends several cells to the table. Tabs in the formatted text separate the
 * cells. */
void kiln__cli_cells(cli_table *t, const char *format, ...) CLI_PRINTF(2, 3);
/* Appends `n` cells with a dash, which stands for a missing value. */
void kiln__cli_dashes(cli_table *t, size_t n);
/* Appends a label and a value to a table of two columns. */
void kiln__cli_row(cli_table *t, const char *label, const char *format, ...)
    CLI_PRINTF(3, 4);
/* Prints the table with `indent` spaces before each line. The line of column
 * heads is left out if all heads are empty. */
void kiln__cli_table_print(const cli_table *t, int indent);

/* ---- cli_message.c: messages on stderr ---------------------------------- */

/* Prints "kiln compile: MESSAGE". Also prints the next step if `next` is not
 * NULL. */
void kiln__cli_message(const cli *c, const char *next, const char *format, ...)
    CLI_PRINTF(3, 4);
/* Prints the library's error record. If `what` is not NULL, it is printed
 * before the message.
 * @return CLI_FAILED */
int kiln__cli_failure(const cli *c, const char *what);
/* Returns the message of the error record without the list of files tried, for
 * output that shows this list elsewhere. */
const char *kiln__cli_headline(cli *c);
/* Reports wrong use: prints a message (unless `format` is NULL) and where to
 * find the help.
 * @return CLI_USAGE */
int kiln__cli_usage(const cli *c, const char *format, ...) CLI_PRINTF(2, 3);
/* Shows "WHAT: 3 of 12" on one line of stderr if stderr is a terminal. */
void kiln__cli_progress(const cli *c, const char *what, size_t done,
                        size_t total);

/* ---- cli_file.c: files and JSON ----------------------------------------- */

enum {
  /* Maximum size in bytes of a source file or list file. */
  CLI_MOST_TEXT = 64 << 20
};

/* Returns what a path refers to if that is not a regular file: "a
 * directory", "a device". Returns NULL for a regular file and for a missing
 * file. */
const char *kiln__cli_odd_file(const char *path);
/* Reads a whole regular file of at most `most` bytes. "-" reads standard input
 * with the same limit. Other kinds of files are refused, since a FIFO or a
 * device might never end.
 * @return the bytes and a NUL that *size does not count; NULL having reported
 *        why */
char *kiln__cli_read(cli *c, const char *path, size_t most, size_t *size);
/* Writes a whole file. @return CLI_OK, or CLI_FAILED having reported why */
int kiln__cli_write(const cli *c, const char *path, const void *data,
                    size_t size);
/* Creates an empty folder with a unique name in TMPDIR or /tmp.
 * @return the path of the folder, or NULL having reported why */
char *kiln__cli_make_folder(cli *c, const char *name);
/* Removes a folder and everything in it. `path` may be NULL. */
void kiln__cli_remove_folder(const char *path);
/* Returns the path of a program in one of the folders of PATH, or NULL. */
const char *kiln__cli_find_program(cli *c, const char *name);
/* Runs argv[0] with its standard output redirected into a pipe and waits for
 * the process. Returns the output, which the caller frees, or NULL if the
 * process could not be run. *status is the status of waitpid(). */
char *kiln__cli_output_of(char *const argv[], int *status);

/* Writes JSON to a file, or to stdout if the path is NULL or "-", and deletes
 * the JSON object. Bytes that are not UTF-8, as in a file name, become U+FFFD.
 * @return CLI_OK, or CLI_FAILED having reported why */
int kiln__cli_json(const cli *c, cJSON *json, const char *path);
/* The same without blanks and line breaks, for large documents. */
int kiln__cli_json_compact(const cli *c, cJSON *json, const char *path);
/* Returns JSON as such text, which the caller frees, or NULL if memory is
 * exhausted. */
char *kiln__cli_json_text(const cJSON *json);
/* Appends an empty object to a JSON array. @return the object */
cJSON *kiln__cli_json_item(cJSON *array);
/* Adds members to a JSON object. The macros have short names since reports
 * list dozens of members. */
#define JSON_NUMBER(object, key, value)                                        \
  (void)cJSON_AddNumberToObject((object), (key), (double)(value))
#define JSON_TEXT(object, key, value)                                          \
  (void)cJSON_AddStringToObject((object), (key), (value))
#define JSON_FLAG(object, key, value)                                          \
  (void)cJSON_AddBoolToObject((object), (key), (value))

#endif
