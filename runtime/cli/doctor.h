/* doctor.h -- the facts that `kiln doctor` finds, independent of how they
 * are printed. doctor_examine.c collects the facts, and command_doctor.c
 * prints them. */
#ifndef KILN_CLI_DOCTOR_H
#define KILN_CLI_DOCTOR_H

#include "cli/commands.h"

#include <kiln/comm.h>

enum { DOCTOR_NVRTC = 16, DOCTOR_DEVICES = 64, DOCTOR_PROBLEMS = 32 };

/* One NVRTC library and its builtins library. */
typedef struct doctor_nvrtc {
  kiln_nvrtc_info info;
  /* File beside the NVRTC library, or "" if no file was found. */
  const char *builtins;
  /* Version of the builtins such as 13000, or 0 if unknown. */
  int builtins_version;
} doctor_nvrtc;

/* One GPU, the choice of the compatibility ladder for this GPU, and whether a
 * kernel ran. */
typedef struct doctor_device {
  kiln_device_info info;
  int cc;
  /* True if the NVRTC that the ladder chose compiles for this GPU. */
  bool supported;
  kiln_ladder_query query;
  kiln_ladder_result ladder;
  kiln_status run;      /* status of running and verifying a small kernel */
  const char *run_text; /* reason why the small kernel failed */
} doctor_device;

typedef struct doctor_pack {
  const char *path;
  uint64_t size;
  const char *reason; /* reason why the pack file cannot be read, or NULL */
} doctor_pack;

/* A problem that was found, and its fix ("" if there is no fix). */
typedef struct doctor_problem {
  const char *what, *fix;
} doctor_problem;

/* All facts that `kiln doctor` found. Strings are never NULL unless noted. */
typedef struct doctor {
  cli *c;
  kiln_status driver_status, nvrtc_status, compile_status;
  kiln_driver_info driver;
  /* Error message of the driver, and the next step for the user. */
  const char *driver_text, *driver_hint;
  const char *kernel_driver; /* version line of the kernel module, or NULL */
  bool has_hardware;         /* true if an NVIDIA GPU is on the PCI bus */
  const char *nvrtc_text, *nvrtc_hint;
  size_t n_nvrtc, n_devices, n_packs, n_problems;
  doctor_nvrtc nvrtc[DOCTOR_NVRTC];
  doctor_device devices[DOCTOR_DEVICES];
  doctor_pack *packs;
  /* Target for which the small test program was compiled. */
  kiln_target compile_target;
  double compile_ms;
  const char *compile_text, *compile_hint;
  kiln_cache_info cache;
  const char *disassembler;
  /* Paths of CUPTI for `kiln profile`, best first, or "". */
  const char *cupti;
  kiln_nccl_info nccl; /* NCCL for groups of several GPUs */
  doctor_problem problems[DOCTOR_PROBLEMS];
  const char *verdict, *next;
  int rc;
} doctor;

/* Fills all members of `d` except d->c, which the caller sets. A failure is
 * recorded as a fact; the function itself never fails. */
void kiln__cli_examine(doctor *d);

#endif
