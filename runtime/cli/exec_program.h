/* exec_program.h -- runs a program under control of Kiln, for `kiln exec` and
 * `kiln profile`. */
#ifndef KILN_CLI_EXEC_PROGRAM_H
#define KILN_CLI_EXEC_PROGRAM_H

#include "cli/commands.h"

/* Exit code if a program could not be started. */
enum { CLI_NOT_STARTED = 127 };

/* How a program is to run on the CPU device. */
typedef struct cli_exec {
  const char *folder;   /* folder with the drop-in libraries */
  const char *settings; /* settings of the CPU device, as "cpu:9.0,seed=3" */
  const char *nvrtc;    /* paths of real NVRTC libraries, separated by colons */
  const char *report;   /* file for the report; see shim/dropin_report.c */
  bool no_preload;      /* do not redirect paths that the program opens */
} cli_exec;

/* Returns the folder with the drop-in libraries and libkiln_profile.so, or NULL
 * having reported the folders that were searched. */
const char *kiln__cli_exec_folder(cli *c);
/* Returns the real NVRTC libraries for Kiln's drop-in NVRTC, separated by
 * colons: those that compile for the architecture, or all if none does. */
const char *kiln__cli_exec_nvrtc(cli *c, int arch);
/* Prepares the environment of the program: the search path finds Kiln's libcuda
 * first, the settings of the CPU device are set, and Kiln's own variables are
 * removed. */
void kiln__cli_exec_prepare(cli *c, const cli_exec *e);
/* Runs the program and waits for it. A signal that ends this process removes
 * the temporary file and is passed on to the program.
 * @return the exit code of the program; 128 + signal; CLI_NOT_STARTED if the
 *         program could not be started */
int kiln__cli_exec_run(cli *c, char **argv);

/* Path of a file that is removed when a signal ends this process, or "". The
 * signal handler may run at any time, so it needs a copy of the path. */
extern char kiln__cli_exec_temporary[4096];

#endif
