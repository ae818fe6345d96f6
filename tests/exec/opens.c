/* opens.c -- a test program that opens libcuda and NVRTC with dlopen():
 *
 *   opens LIBCUDA LIBNVRTC ARCH
 *
 * The program compiles a kernel to machine code for ARCH ("sm_90"), loads it
 * and runs it. It prints "right" if the results are correct. All driver
 * functions come from cuGetProcAddress. */
#include "cpu/api/dropin_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "extern \"C\" __global__ void squares(int *out)\n"
    "{\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  out[i] = i * i;\n"
    "}\n";

static void *nvrtc;
static CUresult (*get)(const char *, void **, int, uint64_t, int *);

static void stop(const char *what, int code)
{
  printf("%s: %d\n", what, code);
  exit(3);
}

#define OK(what, call)                                                         \
  do {                                                                         \
    const int rc_ = (call);                                                    \
                                                                               \
    if (rc_ != 0)                                                              \
      stop(what, rc_);                                                         \
  } while (0)

/* Looks up a function of NVRTC. `fn` is the address of the function pointer. */
static void find(const char *name, void *fn)
{
  *(void **)fn = dlsym(nvrtc, name);
  if (*(void **)fn == NULL)
    stop(name, -1);
}

static void driver(const char *name, void *fn)
{
  int found = -1;

  OK(name, get(name, fn, 12000, 0, &found));
  OK(name, found);
}

static char *compile(const char *arch)
{
  int (*create)(void **, const char *, const char *, int, const char *const *,
                const char *const *);
  int (*build)(void *, int, const char *const *);
  int (*cubin_size)(void *, size_t *), (*cubin)(void *, char *);
  int (*destroy)(void **);
  char option[64];
  const char *options[] = {option};
  void *program;
  size_t size;
  char *code;

  find("nvrtcCreateProgram", &create);
  find("nvrtcCompileProgram", &build);
  find("nvrtcGetCUBINSize", &cubin_size);
  find("nvrtcGetCUBIN", &cubin);
  find("nvrtcDestroyProgram", &destroy);
  snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
  OK("create", create(&program, source, "squares.cu", 0, NULL, NULL));
  OK("compile", build(program, 1, options));
  OK("size", cubin_size(program, &size));
  code = malloc(size + 1);
  if (code == NULL)
    stop("malloc", 0);
  OK("code", cubin(program, code));
  OK("destroy", destroy(&program));
  return code;
}

static unsigned run(const void *code)
{
  CUresult (*init)(unsigned), (*synchronize)(void);
  CUresult (*create)(CUcontext *, unsigned, CUdevice);
  CUresult (*load)(CUmodule *, const void *);
  CUresult (*function)(CUfunction *, CUmodule, const char *);
  CUresult (*alloc)(CUdeviceptr *, size_t);
  CUresult (*copy)(void *, CUdeviceptr, size_t);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned,
                     unsigned, unsigned, unsigned, CUstream, void **, void **);
  CUcontext context;
  CUmodule module;
  CUfunction f;
  CUdeviceptr out;
  int got[256];
  void *args[] = {&out};
  unsigned wrong = 0;

  driver("cuInit", &init);
  OK("cuInit", init(0));
  /* Requests the version of cuCtxCreate that has three arguments. CUDA 11.4
   * added another version. */
  OK("cuCtxCreate", get("cuCtxCreate", (void **)&create, 11030, 0, NULL));
  OK("cuCtxCreate", create(&context, 0, 0));
  driver("cuModuleLoadData", &load);
  OK("cuModuleLoadData", load(&module, code));
  driver("cuModuleGetFunction", &function);
  OK("cuModuleGetFunction", function(&f, module, "squares"));
  driver("cuMemAlloc", &alloc);
  OK("cuMemAlloc", alloc(&out, sizeof got));
  driver("cuLaunchKernel", &launch);
  OK("cuLaunchKernel",
     launch(f, 4, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, args, NULL));
  driver("cuCtxSynchronize", &synchronize);
  OK("cuCtxSynchronize", synchronize());
  driver("cuMemcpyDtoH", &copy);
  OK("cuMemcpyDtoH", copy(got, out, sizeof got));
  for (int i = 0; i < 256; i++)
    wrong += got[i] != i * i;
  return wrong;
}

int main(int argc, char **argv)
{
  void *cuda;
  char *code;
  unsigned wrong;

  if (argc != 4)
    return 2;
  cuda = dlopen(argv[1], RTLD_NOW);
  nvrtc = dlopen(argv[2], RTLD_NOW);
  if (cuda == NULL || nvrtc == NULL) {
    puts(dlerror());
    return 3;
  }
  *(void **)&get = dlsym(cuda, "cuGetProcAddress_v2");
  code = compile(argv[3]);
  wrong = run(code);
  free(code);
  puts(wrong == 0 ? "right" : "wrong");
  return wrong != 0;
}
