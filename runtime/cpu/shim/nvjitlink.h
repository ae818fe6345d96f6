/* nvjitlink.h -- the state that the shim of nvJitLink keeps per link, and the
 * result codes and input types of nvJitLink.h. */
#ifndef KILN_CPU_NVJITLINK_H
#define KILN_CPU_NVJITLINK_H

#include "dropin_linker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  NVJITLINK_OK = 0,
  NVJITLINK_UNRECOGNIZED_OPTION = 1,
  NVJITLINK_MISSING_ARCH = 2,
  NVJITLINK_INVALID_INPUT = 3,
  NVJITLINK_PTX_COMPILE = 4,
  NVJITLINK_NVVM_COMPILE = 5,
  NVJITLINK_INTERNAL = 6,
  NVJITLINK_UNRECOGNIZED_INPUT = 8,
  NVJITLINK_FINALIZE = 9,
  NVJITLINK_NULL_INPUT = 10,
  NVJITLINK_INCOMPATIBLE_OPTIONS = 11,
  NVJITLINK_INCORRECT_INPUT_TYPE = 12,
  NVJITLINK_ARCH_MISMATCH = 13,
  NVJITLINK_MISSING_FATBIN = 15,
  NVJITLINK_UNRECOGNIZED_ARCH = 16,
  NVJITLINK_LTO_NOT_ENABLED = 18
};

enum {
  NVJITLINK_INPUT_CUBIN = 1,
  NVJITLINK_INPUT_PTX = 2,
  NVJITLINK_INPUT_LTOIR = 3,
  NVJITLINK_INPUT_FATBIN = 4,
  NVJITLINK_INPUT_OBJECT = 5,
  NVJITLINK_INPUT_LIBRARY = 6,
  NVJITLINK_INPUT_INDEX = 7,
  NVJITLINK_INPUT_ANY = 10
};

/* A text that grows. `data` is NULL or NUL-terminated. */
typedef struct nvjitlink_text {
  char *data;
  size_t size; /* without the NUL */
} nvjitlink_text;

typedef struct nvjitlink {
  int arch;               /* 90 for sm_90a and for compute_90 */
  unsigned max_registers; /* 0 if the option is absent */
  bool lto, ptx;
  bool completed, other_inputs; /* inputs other than LTO-IR were added */
  unsigned n_options;
  char **options; /* copies, for the real library */
  kiln_cpu_linker *linker;
  size_t log_seen; /* bytes of the linker's log that are in `errors` */
  nvjitlink_text errors, info;
  void *lto_link;         /* link of the real library, or NULL */
  nvjitlink_text lto_ptx; /* what it made of the LTO-IR */
  const void *image;      /* result of the link; belongs to `linker` */
  size_t image_size;
} nvjitlink;

/* Appends a formatted line to a text. Without memory the line is lost. */
__attribute__((format(printf, 2, 3))) void
kiln__nvjitlink_say(nvjitlink_text *text, const char *format, ...);

/* Reads the options into `l`. Returns a result code; messages go to the error
 * log, which no program can read if nvJitLinkCreate fails. */
int kiln__nvjitlink_options(nvjitlink *l, uint32_t n, const char **options);

/* Link-time optimisation by the real library, which needs no GPU. Each returns
 * a result code; messages go to the error log. */
int kiln__nvjitlink_lto_add(nvjitlink *l, int type, const void *data,
                            size_t size, const char *name);
/* Compiles all LTO-IR to l->lto_ptx. */
int kiln__nvjitlink_lto_complete(nvjitlink *l);
void kiln__nvjitlink_lto_free(nvjitlink *l);
/* Stores the version of the real library. Returns false if there is none. */
bool kiln__nvjitlink_real_version(unsigned *major, unsigned *minor);

#endif
