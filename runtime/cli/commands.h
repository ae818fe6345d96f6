/* commands.h -- the commands of `kiln`, and what only they share: programs and
 * targets as the command line names them, and the tools around them. */
#ifndef KILN_CLI_COMMANDS_H
#define KILN_CLI_COMMANDS_H

#include "tool/options.h"

/* The commands; see cli_command_fn. `bench` and `tune` are in bench/bench.h. */
int kiln__cli_doctor(cli *c, int argc, char **argv);
int kiln__cli_devices(cli *c, int argc, char **argv);
int kiln__cli_compile(cli *c, int argc, char **argv);
int kiln__cli_cache(cli *c, int argc, char **argv);
int kiln__cli_pack(cli *c, int argc, char **argv);
int kiln__cli_run(cli *c, int argc, char **argv);
int kiln__cli_check(cli *c, int argc, char **argv);
int kiln__cli_exec(cli *c, int argc, char **argv);

/* ---- program_options.c -------------------------------------------------- */

/* A program with its compile options. */
typedef struct cli_program {
  kiln_program_desc desc;
  const char *label; /* as the user wrote it, without "builtin:" */
  const char **defines, **traits, **names, **options;
  const cli_option *table; /* of the options that fill desc */
} cli_program;

/* Prepare for the options of `argc` words; p->table is for a cli_syntax. */
void kiln__cli_program_init(cli_program *p, cli *c, int argc);
/* Take "builtin:NAME", a file, or "-" for standard input as the source.
 * @return CLI_OK, or CLI_FAILED having reported why */
int kiln__cli_program_open(cli_program *p, cli *c, const char *what);

typedef struct cli_targets {
  kiln_target *list;
  size_t n;
} cli_targets;

/* Targets of an --arch text: "sm_80,90a", "all" (what the NVRTCs found compile
 * for), or NULL: the GPU of this machine, else the newest that NVRTC compiles
 * for, which a line on stderr reports.
 * @return CLI_OK, or CLI_FAILED or CLI_USAGE having reported why */
int kiln__cli_targets(cli *c, const char *text, cli_targets *out);

/* Ask the compatibility ladder about every NVRTC. The best rung wins, among
 * equals the newest NVRTC, as in the library. `query` becomes the one that won.
 * @return false if a query is not valid */
bool kiln__cli_ladder(kiln_ladder_query *query, kiln_ladder_result *out,
                      const kiln_nvrtc_info *nvrtc, size_t n);

/* ---- disassemble.c ------------------------------------------------------ */

/* How to install a disassembler. */
extern const char kiln__cli_disassembler_hint[];
/* Path of nvdisasm or cuobjdump, or NULL if neither is found. */
const char *kiln__cli_disassembler(cli *c);
/* Machine code as SASS text, to be freed; NULL having reported why. */
char *kiln__cli_disassemble(cli *c, const char *tool, const void *cubin,
                            size_t size);

/* ---- command_cache.c --- */

/* The state of the cache as an object, for `cache stats` and `doctor`. */
cJSON *kiln__cli_cache_json(const kiln_cache_info *info);

/* ---- print_counters.c --------------------------------------------------- */

/* Print and forget what the CPU device's checks found. @return how many */
unsigned kiln__cli_findings(void);
/* Print what the CPU device counted, per kernel and per source line; also write
 * it to a file, unless `json` is NULL. @return an exit code */
int kiln__cli_counters(cli *c, const char *json);

#endif
