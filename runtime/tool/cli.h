/* cli.h -- what the commands of `kiln` share. Only the public headers of the
 * library are used here. */
#ifndef KILN_CLI_H
#define KILN_CLI_H

#include <kiln/cpu.h>
#include <kiln/kiln.h>

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdio.h>

#define CLI_PRINTF(text, first)                                                \
  __attribute__((__format__(__printf__, text, first)))

/* Exit codes. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* State of one run of the command. */
typedef struct cli {
  kiln_runtime *rt;
  const char *name;      /* of the command, "compile" */
  const char *cache_dir; /* global options, or NULL */
  const char *nvrtc;
  const char *driver;
  const char *device; /* "gpu", "cpu:9.0,...", or NULL: as the command likes */
  kiln_runtime_opts opts; /* what rt was made with */
  bool on_cpu;            /* rt uses the CPU device */
  kiln_cpu_opts cpu;      /* its settings then */
  bool verbose;
  bool keep_warnings;     /* gather instead of print: doctor shows them */
  char *warnings;         /* gathered, a line each */
  struct cli_block *pool; /* everything that kiln__cli_alloc() made */
} cli;

typedef int (*cli_command_fn)(cli *c, int argc, char **argv);

int kiln__cli_doctor(cli *c, int argc, char **argv);
int kiln__cli_devices(cli *c, int argc, char **argv);
int kiln__cli_compile(cli *c, int argc, char **argv);
int kiln__cli_cache(cli *c, int argc, char **argv);
int kiln__cli_pack(cli *c, int argc, char **argv);
int kiln__cli_bench(cli *c, int argc, char **argv);
int kiln__cli_tune(cli *c, int argc, char **argv);
int kiln__cli_run(cli *c, int argc, char **argv);
int kiln__cli_check(cli *c, int argc, char **argv);
int kiln__cli_exec(cli *c, int argc, char **argv);

/* ---- device.c: GPU or CPU device ---------------------------------------- */

typedef enum cli_device_use {
  CLI_DEVICE_GIVEN = 0, /* the CPU device only if asked for */
  CLI_DEVICE_NEEDED     /* the CPU device where there is no GPU */
} cli_device_use;

/* Make c->rt with --device or KILN_DEVICE. Says in one line that it fell back.
 * @return CLI_OK, CLI_FAILED or CLI_USAGE, having said why. */
int kiln__cli_open(cli *c, const kiln_runtime_opts *opts, cli_device_use use);
/* From a GPU to the CPU device, for what only that can do; the runtime is made
 * anew. */
int kiln__cli_to_cpu(cli *c);
/* Print and forget what the CPU device's checks found (counters.c). @return how
 * many. */
unsigned kiln__cli_findings(void);

/* ---- output.c: memory, text, tables, errors, JSON ----------------------- */

/* Zeroed memory that lives until the command ends; never NULL. Main thread
 * only. */
void *kiln__cli_alloc(cli *c, size_t n, size_t size);
/* printf into such memory. */
char *kiln__cli_text(cli *c, const char *format, ...) CLI_PRINTF(2, 3);
void kiln__cli_free_all(cli *c);

/* "3.4 KiB". */
const char *kiln__cli_bytes(cli *c, uint64_t bytes);
/* "13.0" from 13000, "12.8" from 12080. */
const char *kiln__cli_version(cli *c, int version);
/* "9.0" from 90, "12.1" from 121. */
const char *kiln__cli_cc(cli *c, int cc);
/* "7.5 8.0 9.0". */
const char *kiln__cli_cc_list(cli *c, const int *archs, size_t n);
/* "saxpy" from "_Z5saxpyfPKfPfj"; other names as they are. */
const char *kiln__cli_plain_name(cli *c, const char *lowered);
/* "90", "9.0", "12.2" as major * scale + minor; false if it is neither. */
bool kiln__cli_parse_version(const char *text, int major, int minor, int *out);
/* "10M" to bytes. */
bool kiln__cli_parse_bytes(const char *text, uint64_t *out);

/* A table for people. Heads end in NULL; a leading '>' aligns right. */
typedef struct cli_table {
  cli *c;
  const char *const *heads;
  size_t columns, n, room;
  const char **cells;
} cli_table;

void kiln__cli_table(cli_table *t, cli *c, const char *const *heads);
void kiln__cli_cell(cli_table *t, const char *format, ...) CLI_PRINTF(2, 3);
/* `indent` spaces before each line; heads are left out where all are "". */
void kiln__cli_table_print(const cli_table *t, int indent);

/* "kiln compile: what" on stderr, with the next step if `next` is not NULL. */
void kiln__cli_say(const cli *c, const char *next, const char *format, ...)
    CLI_PRINTF(3, 4);
/* The library's record of a failure on stderr. @return CLI_FAILED. */
int kiln__cli_failure(const cli *c, const char *what);
/* The record's message without its list of places tried, where that list is
 * shown elsewhere. */
const char *kiln__cli_headline(cli *c);
/* Wrong use: message, and where help is. @return CLI_USAGE. */
int kiln__cli_usage(const cli *c, const char *format, ...) CLI_PRINTF(2, 3);

/* Write JSON to a file, or stdout for NULL and "-"; deletes it. */
int kiln__cli_json(const cli *c, cJSON *json, const char *path);
void kiln__cli_json_flag(cJSON *object, const char *key, bool value);

/* Write a whole file. @return CLI_OK, or CLI_FAILED with a message. */
int kiln__cli_write(const cli *c, const char *path, const void *data,
                    size_t size);
/* Read one ("-": stdin); NULL with a message. Ends in a NUL that *size does
 * not count. */
char *kiln__cli_read(cli *c, const char *path, size_t *size);

/* "done 3 of 12" on one line of a terminal; nothing elsewhere. */
void kiln__cli_progress(const cli *c, const char *what, size_t done,
                        size_t total);

/* ---- options.c: programs and targets from the command line -------------- */

/* A program with its compile options. */
typedef struct cli_program {
  kiln_program_desc desc;
  const char *label; /* as the user wrote it, without "builtin:" */
  const char **defines, **traits, **names, **options;
} cli_program;

/* getopt values of the long options below. */
enum {
  CLI_OPT_TRAIT = 1000,
  CLI_OPT_NAME,
  CLI_OPT_OPTION,
  CLI_OPT_LINEINFO,
  CLI_OPT_DEBUG,
  CLI_OPT_FAST_MATH,
  CLI_OPT_FAST_COMPILE,
  CLI_OPT_MINIMAL,
  CLI_OPT_MAXRREGCOUNT,
  CLI_OPT_FAIL_ON_SPILL,
  CLI_OPT_NO_CACHE,
  CLI_OPT_REFRESH,
  CLI_OPT_OWN /* commands count from here */
};

#define CLI_PROGRAM_SHORT "D:I:"
#define CLI_PROGRAM_LONG                                                       \
  {"trait", required_argument, NULL, CLI_OPT_TRAIT},                           \
      {"name", required_argument, NULL, CLI_OPT_NAME},                         \
      {"option", required_argument, NULL, CLI_OPT_OPTION},                     \
      {"lineinfo", no_argument, NULL, CLI_OPT_LINEINFO},                       \
      {"debug", no_argument, NULL, CLI_OPT_DEBUG},                             \
      {"fast-math", no_argument, NULL, CLI_OPT_FAST_MATH},                     \
      {"fast-compile", no_argument, NULL, CLI_OPT_FAST_COMPILE},               \
      {"minimal", no_argument, NULL, CLI_OPT_MINIMAL},                         \
      {"maxrregcount", required_argument, NULL, CLI_OPT_MAXRREGCOUNT},         \
      {"fail-on-spill", no_argument, NULL, CLI_OPT_FAIL_ON_SPILL},             \
      {"no-cache", no_argument, NULL, CLI_OPT_NO_CACHE},                       \
  {                                                                            \
    "refresh", no_argument, NULL, CLI_OPT_REFRESH                              \
  }

/* What these options mean, for help texts. */
extern const char kiln__cli_program_help[];

/* Room for the options of `argc` words. */
void kiln__cli_program_init(cli_program *p, cli *c, int argc);
/* Take one option. @return CLI_OK, CLI_USAGE (said why), -1: not one of these.
 */
int kiln__cli_program_option(cli_program *p, const cli *c, int opt,
                             const char *arg);
/* "builtin:NAME", a file, or "-" for stdin. @return CLI_OK, CLI_FAILED. */
int kiln__cli_program_open(cli_program *p, cli *c, const char *what);

typedef struct cli_targets {
  kiln_target *list;
  size_t n;
} cli_targets;

/* Targets of an --arch text: "sm_80,90a", "all" (whatever the NVRTCs found
 * know), or NULL: the GPU that is here, else the newest that NVRTC knows (said
 * on stderr). @return CLI_OK, CLI_FAILED or CLI_USAGE, having said why. */
int kiln__cli_targets(cli *c, const char *text, cli_targets *out);

/* The ladder with every NVRTC: the best rung wins, among equals the newest, as
 * the library decides. `query` gets the one that won. False where a query is
 * not valid. */
bool kiln__cli_ladder(kiln_ladder_query *query, kiln_ladder_result *out,
                      const kiln_nvrtc_info *nvrtc, size_t n);

/* Join repeated --arch options with commas. */
const char *kiln__cli_join(cli *c, const char *list, const char *more);

/* ---- disassemble.c ------------------------------------------------------ */

/* nvdisasm or cuobjdump wherever found, or NULL. */
const char *kiln__cli_disassembler(cli *c);
/* How to get one. */
extern const char kiln__cli_disassembler_hint[];
/* SASS of a CUBIN as text of your own (free()), NULL having said why. */
char *kiln__cli_disassemble(cli *c, const char *tool, const void *cubin,
                            size_t size);

/* ---- bench -------------------------------------------------------------- */

int kiln__cli_bench_launch(cli *c, int argc, char **argv);
int kiln__cli_bench_calls(cli *c, int argc, char **argv);
int kiln__cli_bench_start(cli *c, int argc, char **argv);
int kiln__cli_bench_cpu(cli *c, int argc, char **argv);
int kiln__cli_bench_passes(cli *c, int argc, char **argv);
/* A child of `bench start`; runs before anything else is set up. */
int kiln__cli_start_child(int argc, char **argv);
/* "28,24,20": up to `room` numbers from least to most into bits. Their number; 0: it
 * is no such list. */
size_t kiln__cli_sizes(const char *text, unsigned least, unsigned most,
                       unsigned *bits, size_t room);
/* Sorts in place. @return the median, 0 of none. */
double kiln__cli_median(double *values, size_t n);

#endif
