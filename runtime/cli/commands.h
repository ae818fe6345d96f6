/* commands.h -- declares the commands of `kiln` and the functions that only
 * the commands share: programs and targets of the command line, and external
 * tools. */
#ifndef KILN_CLI_COMMANDS_H
#define KILN_CLI_COMMANDS_H

#include "tool/options.h"

/* The commands, of type cli_command_fn. `bench` and `tune` are declared in
 * bench/bench.h. */
int kiln__cli_doctor(cli *c, int argc, char **argv);
int kiln__cli_devices(cli *c, int argc, char **argv);
int kiln__cli_compile(cli *c, int argc, char **argv);
int kiln__cli_diff(cli *c, int argc, char **argv);
int kiln__cli_cache(cli *c, int argc, char **argv);
int kiln__cli_pack(cli *c, int argc, char **argv);
int kiln__cli_run(cli *c, int argc, char **argv);
int kiln__cli_check(cli *c, int argc, char **argv);
int kiln__cli_exec(cli *c, int argc, char **argv);
int kiln__cli_occupancy(cli *c, int argc, char **argv);
int kiln__cli_sweep(cli *c, int argc, char **argv);
int kiln__cli_profile(cli *c, int argc, char **argv);
int kiln__cli_explore(cli *c, int argc, char **argv);

/* ---- program_options.c -------------------------------------------------- */

/* A program with its compile options. */
typedef struct cli_program {
  kiln_program_desc desc;
  const char *label; /* program as the user wrote it, without "builtin:" */
  const char **defines, **traits, **names, **options;
  const cli_option *table; /* table of the options that fill `desc` */
} cli_program;

/* Prepares a program for the options of a command line of `argc` words. The
 * option table p->table is for a cli_syntax. */
void kiln__cli_program_init(cli_program *p, cli *c, int argc);
/* Reads the source of a program: "builtin:NAME", a file, or "-" for standard
 * input.
 * @return CLI_OK, or CLI_FAILED having reported why */
int kiln__cli_program_open(cli_program *p, cli *c, const char *what);

typedef struct cli_targets {
  kiln_target *list;
  size_t n;
} cli_targets;

/* Determines the targets of the --arch option. `text` is a list such as
 * "sm_80,90a", "all" for every target of the installed NVRTCs, or NULL. NULL
 * means the GPU of this machine. Without a GPU, NULL means the newest target
 * that NVRTC compiles for, and a line on stderr reports this target.
 * @return CLI_OK; CLI_FAILED or CLI_USAGE having reported why */
int kiln__cli_targets(cli *c, const char *text, cli_targets *out);

/* Asks the compatibility ladder about every NVRTC and keeps the best result. If
 * results are equally good, the newest NVRTC wins, as in the library. `query`
 * becomes the query of the winning NVRTC.
 * @return false if a query is not valid */
bool kiln__cli_ladder(kiln_ladder_query *query, kiln_ladder_result *out,
                      const kiln_nvrtc_info *nvrtc, size_t n);

/* ---- disassemble.c ------------------------------------------------------ */

/* Returns the path of nvdisasm: that of kiln_disassembler(), or else the copy
 * that the samples download into the checkout of this command. Returns NULL if
 * there is none; kiln_last_error() then says how to get it. */
const char *kiln__cli_disassembler(cli *c);
/* Disassembles the machine code of an image to SASS text, which the caller
 * frees with kiln_text_free(). Returns NULL having reported why. */
char *kiln__cli_disassemble(cli *c, const char *tool, const kiln_image *image);

/* ---- line_report.c ------------------------------------------------------ */

/* Returns the line tables of an image as JSON text, which the caller frees.
 * runtime/cli/line_report.c describes the members. Returns NULL having reported
 * why. */
char *kiln__cli_lines_json(cli *c, const kiln_image *image);

/* ---- find_cupti.c --------------------------------------------------------- */

/* Returns the paths of all libcupti that fit the driver, separated by colons and
 * best first. "" if there is none. `driver` is the CUDA version of the driver,
 * such as 13000, or 0 if unknown. */
const char *kiln__cli_find_cupti(cli *c, int driver);
/* Explains how to install CUPTI. */
extern const char kiln__cli_cupti_hint[];

/* ---- command_cache.c --- */

/* Returns the state of the cache as a JSON object, for `cache stats` and
 * `doctor`. */
cJSON *kiln__cli_cache_json(const kiln_cache_info *info);

/* ---- print_counters.c --------------------------------------------------- */

/* Prints and clears the findings of the CPU device's checks. @return the
 * number of findings */
unsigned kiln__cli_findings(void);
/* Makes kiln__cli_findings() report only launches from now on, after a command
 * has taken the findings itself. */
void kiln__cli_findings_taken(void);
/* Prints the counters of the CPU device, per kernel and per source line.
 * Also writes the counters to the file `json` unless `json` is NULL. @return
 * an exit code */
int kiln__cli_counters(cli *c, const char *json);

#endif
