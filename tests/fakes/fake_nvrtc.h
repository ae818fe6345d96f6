/* fake_nvrtc.h -- a stand-in for NVRTC that tests script.
 *
 * fake_nvrtc.so is loaded by Kiln's own loader, from any path and under any
 * name. Its version and architectures come, in rising order of weight, from
 *   - its file name: libnvrtc.so.12 is 12.8, .so.11.2 is 11.8, else 13.0
 *   - a text file beside it, "<library>.fake": lines "version 12040",
 *     "archs 50 52 90", "delay_ms 20", "rc compileProgram 7"
 *   - environment: FAKE_NVRTC_DELAY_MS (of each compile), and
 *     FAKE_NVRTC_COUNT_FILE (gets one byte a compile, from any process);
 *     FAKE_NVRTC_LOAD_FILE gets one each time a copy is loaded
 *   - its control block, through fake_nvrtc_of().
 * A copy of the file is a library of its own; a link to it is not.
 *
 * What it makes of a program:
 *   - PTX with one `.visible .entry` for every __global__ function that is not
 *     a template and for every name expression; parameters from a small parse
 *     of their types, or from a remark `//params 8,8,4` on the line where the
 *     parameter list closes. Names are plain after extern "C", else mangled as
 *     _Z<length><name>v; template instances end in a hash instead of v.
 *   - the line "// fake <hash>", of source, headers, options and version.
 *   - CUBIN for sm_XX: "\177ELF fake cubin sm_XX\n" and the same text.
 *   - `//regs N`, `//spill N`, `//smem N`, anywhere: what ptxas -v reports, in
 *     the log if an option asks for it.
 *   - #error and #warning lines, missing headers and unknown architectures
 *     give NVRTC's own log lines and codes. */
#ifndef FAKE_NVRTC_H
#define FAKE_NVRTC_H

#include "nvrtc/nvrtc.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
#define KILN__NVRTC_FN(name, symbol, need, since, result, params)              \
  FAKE_NVRTC_##name,
#include "nvrtc/nvrtc_api.def"
#undef KILN__NVRTC_FN
  FAKE_NVRTC_FUNCTIONS
};

typedef struct fake_nvrtc_control {
  int version;
  int archs[64];
  int n_archs;
  int delay_ms;                   /* each compile takes that long at least */
  int rc[FAKE_NVRTC_FUNCTIONS];   /* not 0: the function fails with it */
  const char *log;                /* appended to each compile log */
  void (*on_compile)(void *user); /* called in the middle of a compile */
  void *user;
  atomic_int calls[FAKE_NVRTC_FUNCTIONS];
  atomic_int compiles;              /* compiles that ran to the end */
  atomic_int running, most_running; /* compiles at the same time */
  atomic_int programs;              /* programs created and not destroyed */
  char options[8192];               /* of the last compile, each with '\n' */
  char source_name[1024];           /* of the last compile */
  int n_headers;                    /* of the last compile */
} fake_nvrtc_control;

typedef fake_nvrtc_control *fake_nvrtc_fn(void);

/* The control block of the fake at `path`; loads it if it is not loaded. */
static inline fake_nvrtc_control *fake_nvrtc_of(const char *path)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  fake_nvrtc_fn *fn = NULL;

  if (library != NULL)
    *(void **)&fn = dlsym(library, "fake_nvrtc");
  if (fn == NULL) {
    fprintf(stderr, "%s is not the fake NVRTC: %s\n", path, dlerror());
    abort();
  }
  return fn();
}

/* Copy the fake `from` to dir/name and write `config` (NULL: none) beside it;
 * `out` receives the path. */
static inline void fake_nvrtc_install(const char *from, const char *dir,
                                      const char *name, const char *config,
                                      char out[512])
{
  char beside[600], bytes[65536];
  FILE *in = fopen(from, "rb"), *to;
  size_t n;

  snprintf(out, 512, "%s/%s", dir, name);
  to = fopen(out, "wb");
  if (in == NULL || to == NULL) {
    fprintf(stderr, "cannot copy %s to %s\n", from, out);
    abort();
  }
  while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
    fwrite(bytes, 1, n, to);
  fclose(in);
  fclose(to);
  snprintf(beside, sizeof beside, "%s.fake", out);
  if (config != NULL) {
    to = fopen(beside, "w");
    if (to == NULL)
      abort();
    fputs(config, to);
    fclose(to);
  }
}

#endif
