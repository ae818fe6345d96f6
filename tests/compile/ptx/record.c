/* record.c -- an NVRTC that keeps the PTX of every program it compiles.
 *
 * tests/compile/ptx/record.sh builds it as a shared object that depends on the
 * real NVRTC and names it in KILN_NVRTC. It replaces one function, the one that
 * compiles; the dynamic linker resolves every other symbol in the real library.
 *
 * Each program goes to $KILN_PTX_RECORD/HASH.ptx, where HASH is the hash of the
 * options and the PTX, so recording a program twice writes one file. The file
 * begins with the compiler's options as comments. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct _nvrtcProgram *nvrtcProgram;
int nvrtcGetPTXSize(nvrtcProgram program, size_t *size);
int nvrtcGetPTX(nvrtcProgram program, char *ptx);
int nvrtcCompileProgram(nvrtcProgram program, int n,
                        const char *const *options);

static uint64_t hash_text(uint64_t hash, const char *text)
{
  for (; *text != '\0'; text++)
    hash = (hash ^ (unsigned char)*text) * 1099511628211u;
  return hash;
}

/* Writes a temporary file and renames it, because several processes record at
 * once. */
static void record(const char *ptx, int n, const char *const *options)
{
  const char *folder = getenv("KILN_PTX_RECORD");
  uint64_t hash = hash_text(14695981039346656037u, ptx);
  char path[4096], temporary[4200];
  FILE *file;

  if (folder == NULL)
    return;
  for (int i = 0; i < n; i++)
    hash = hash_text(hash, options[i]);
  snprintf(path, sizeof path, "%s/%016llx.ptx", folder,
           (unsigned long long)hash);
  snprintf(temporary, sizeof temporary, "%s.%p", path, (void *)&n);
  file = fopen(temporary, "w");
  if (file == NULL)
    return;
  for (int i = 0; i < n; i++)
    fprintf(file, "// option %s\n", options[i]);
  fputs(ptx, file);
  fclose(file);
  rename(temporary, path);
}

int nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options)
{
  int (*compile)(nvrtcProgram, int, const char *const *) = NULL;
  void *symbol = dlsym(RTLD_NEXT, "nvrtcCompileProgram");
  size_t size = 0;
  char *ptx;
  int result;

  memcpy(&compile, &symbol, sizeof compile);
  result = compile(program, n, options);
  if (result == 0 && nvrtcGetPTXSize(program, &size) == 0 &&
      (ptx = malloc(size + 1)) != NULL) {
    ptx[0] = '\0';
    if (nvrtcGetPTX(program, ptx) == 0)
      record(ptx, n, options);
    free(ptx);
  }
  return result;
}
