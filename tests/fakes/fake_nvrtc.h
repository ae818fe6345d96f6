/* fake_nvrtc.h -- a scripted fake of NVRTC for tests.
 *
 * Kiln's own loader loads fake_nvrtc.so from any path and under any name. These
 * sources set the version and the architectures of the fake; a later source
 * overrides an earlier source:
 *   - the file name: libnvrtc.so.12 is 12.8, .so.11.2 is 11.8, any other name
 *     is 13.0
 *   - a text file "<library>.fake" in the same folder, with lines such as
 *     "version 12040", "archs 50 52 90", "delay_ms 20", "rc compileProgram 7"
 *   - the environment: FAKE_NVRTC_DELAY_MS is the duration of each compile. The
 *     file FAKE_NVRTC_COUNT_FILE grows by one byte per compile in any process.
 *     The file FAKE_NVRTC_LOAD_FILE grows by one byte whenever a copy is loaded
 *   - the control block that fake_nvrtc_of() returns. A copy of the file is a
 *     separate library; a symbolic link to the file is not.
 *
 * The fake generates from a program:
 *   - PTX with one `.visible .entry` for every __global__ function that is not
 *     a template and for every name expression. The parameters come from a
 *     simple parse of their types, or from a comment `//params 8,8,4` on the
 *     line that ends the parameter list. Names are unchanged after extern "C",
 *     and otherwise mangled as _Z<length><name>v. Names of template instances
 *     end in a hash instead of v.
 *   - the line "// fake <hash>", a hash of the source, headers, options and
 *     version.
 *   - CUBIN for sm_XX: "\177ELF fake cubin sm_XX\n" followed by the PTX.
 *   - the report of ptxas -v, in the log if an option requests it. The comments
 *     `//regs N`, `//spill N` and `//smem N` anywhere in the source set its
 *     numbers.
 *   - NVRTC's log lines and result codes for #error and #warning lines, missing
 *     headers and unknown architectures. */
#ifndef FAKE_NVRTC_H
#define FAKE_NVRTC_H

#include "fake_library.h"
#include "nvrtc/nvrtc.h"

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
  int delay_ms; /* minimum duration of each compile in milliseconds */
  /* result code of each NVRTC function; 0 means success */
  int rc[FAKE_NVRTC_FUNCTIONS];
  const char *log; /* text that is appended to each compile log */
  /* function that is called during each compile */
  void (*on_compile)(void *user);
  void *user;
  atomic_int calls[FAKE_NVRTC_FUNCTIONS];
  atomic_int compiles; /* number of completed compiles */
  /* current number and maximum number of concurrent compiles */
  atomic_int running, most_running;
  atomic_int programs; /* number of programs that were not destroyed yet */
  char options[8192];  /* options of the last compile, each followed by '\n' */
  char source_name[1024]; /* source name of the last compile */
  int n_headers;          /* number of headers passed to the last compile */
} fake_nvrtc_control;

typedef fake_nvrtc_control *fake_nvrtc_fn(void);

/* Returns the control block of the fake NVRTC at `path`, and loads the library
 * if necessary. */
static inline fake_nvrtc_control *fake_nvrtc_of(const char *path)
{
  fake_nvrtc_fn *fn;

  *(void **)&fn = fake_function(path, "fake_nvrtc");
  return fn();
}

/* Copies the fake `from` to dir/name and writes `config` to a file beside the
 * copy, unless `config` is NULL. `out` receives the path of the copy. */
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
