/* doctor.h -- what `kiln doctor` found, apart from how it is printed:
 * doctor_examine.c fills it, command_doctor.c prints it. */
#ifndef KILN_CLI_DOCTOR_H
#define KILN_CLI_DOCTOR_H

#include "cli/commands.h"

enum { DOCTOR_NVRTC = 16, DOCTOR_DEVICES = 64, DOCTOR_PROBLEMS = 32 };

/* One NVRTC and its builtins. */
typedef struct doctor_nvrtc {
  kiln_nvrtc_info info;
  const char *builtins; /* file beside it, "" if none was found */
  int builtins_version; /* 13000, 0 = unknown */
} doctor_nvrtc;

/* One GPU, what the ladder chose for it, and whether a kernel ran. */
typedef struct doctor_device {
  kiln_device_info info;
  int cc;
  bool supported; /* the NVRTC that the ladder chose compiles for it */
  kiln_ladder_query query;
  kiln_ladder_result ladder;
  kiln_status run;      /* of a small kernel, verified */
  const char *run_text; /* why not */
} doctor_device;

typedef struct doctor_pack {
  const char *path;
  uint64_t size;
  const char *reason; /* why it cannot be read, or NULL */
} doctor_pack;

/* A problem, and what to do about it ("" if nothing can be done). */
typedef struct doctor_problem {
  const char *what, *fix;
} doctor_problem;

/* Everything that was found. Texts are never NULL unless noted. */
typedef struct doctor {
  cli *c;
  kiln_status driver_status, nvrtc_status, compile_status;
  kiln_driver_info driver;
  const char *driver_text, *driver_hint; /* of the failure */
  const char
      *kernel_driver; /* the kernel's own line about its module, or NULL */
  bool has_hardware;  /* an NVIDIA GPU is on a bus */
  const char *nvrtc_text, *nvrtc_hint;
  size_t n_nvrtc, n_devices, n_packs, n_problems;
  doctor_nvrtc nvrtc[DOCTOR_NVRTC];
  doctor_device devices[DOCTOR_DEVICES];
  doctor_pack *packs;
  kiln_target compile_target; /* of the small program tried */
  double compile_ms;
  const char *compile_text, *compile_hint;
  kiln_cache_info cache;
  const char *disassembler;
  doctor_problem problems[DOCTOR_PROBLEMS];
  const char *verdict, *next;
  int rc;
} doctor;

/* Fill everything but d->c, which is set. Failures are findings: this function
 * itself never fails. */
void kiln__cli_examine(doctor *d);

#endif
