/* bench_start_bare.c -- the program that `kiln bench start` compares Kiln
 * with: a saxpy from a CUBIN file on the driver API, without Kiln. */
#include "bench/bench_start.h"

#include <stdlib.h>
#include <string.h>

/* The driver entry points that the program needs, with their exact names. */
typedef struct api {
  int (*init)(unsigned);
  int (*get_device)(int *, int);
  int (*retain)(CUcontext *, int);
  bench_set_current_fn set_current;
  int (*load)(CUmodule *, const void *);
  int (*get_function)(CUfunction *, CUmodule, const char *);
  int (*alloc)(CUdeviceptr *, size_t);
  int (*to_device)(CUdeviceptr, const void *, size_t);
  int (*to_host)(void *, CUdeviceptr, size_t);
  bench_launch_fn launch;
} api;

static int find_entries(api *a, const char *path)
{
  const bench_symbol list[] = {
      {"cuInit", &a->init},
      {"cuDeviceGet", &a->get_device},
      {"cuDevicePrimaryCtxRetain", &a->retain},
      {"cuCtxSetCurrent", &a->set_current},
      {"cuModuleLoadData", &a->load},
      {"cuModuleGetFunction", &a->get_function},
      {"cuMemAlloc_v2", &a->alloc},
      {"cuMemcpyHtoD_v2", &a->to_device},
      {"cuMemcpyDtoH_v2", &a->to_host},
      {"cuLaunchKernel", &a->launch},
      {NULL, NULL},
  };
  const char *why;

  return kiln__bench_symbols(path, list, &why) == NULL ? -1 : 0;
}

/* Returns the driver's error code from the function if a call fails. */
#define DRIVER_TRY(call)                                                       \
  do {                                                                         \
    const int rc_ = (call);                                                    \
    if (rc_ != 0)                                                              \
      return rc_;                                                              \
  } while (0)

/* Returns the bytes of a file and a NUL, which the caller frees. Returns
 * NULL if the file cannot be read. */
static void *read_whole(const char *path)
{
  FILE *f = fopen(path, "rbe");
  long size = -1;
  char *data = NULL;

  if (f != NULL && fseek(f, 0, SEEK_END) == 0)
    size = ftell(f);
  if (size > 0 && (data = calloc(1, (size_t)size + 1)) != NULL) {
    rewind(f);
    if (fread(data, 1, (size_t)size, f) != (size_t)size)
      size = -1;
  }
  if (f != NULL)
    fclose(f);
  if (size > 0)
    return data;
  free(data);
  return NULL;
}

static int saxpy(const api *a, CUfunction f, float *x, float *y)
{
  const size_t bytes = START_ELEMENTS * sizeof *x;
  float factor = 2;
  unsigned n = START_ELEMENTS;
  CUdeviceptr dx = 0, dy = 0;
  void *params[] = {&factor, &dx, &dy, &n};

  DRIVER_TRY(a->alloc(&dx, bytes));
  DRIVER_TRY(a->alloc(&dy, bytes));
  DRIVER_TRY(a->to_device(dx, x, bytes));
  DRIVER_TRY(a->to_device(dy, y, bytes));
  kiln__bench_mark("memory and copies");
  DRIVER_TRY(a->launch(f, START_ELEMENTS / 256, 1, 1, 256, 1, 1, 0, NULL,
                       params, NULL));
  kiln__bench_mark("first launch");
  return a->to_host(y, dy, bytes);
}

/* Runs the whole program once, from loading the driver to verifying the
 * result. */
static int live(const char *cubin, const char *kernel, const char *driver,
                float *x, float *y)
{
  api a = {0};
  int device = 0, rc;
  CUcontext context = NULL;
  CUmodule module = NULL;
  CUfunction f = NULL;
  void *image;

  DRIVER_TRY(find_entries(&a, driver));
  DRIVER_TRY(a.init(0));
  kiln__bench_mark("driver");
  DRIVER_TRY(a.get_device(&device, 0));
  DRIVER_TRY(a.retain(&context, device));
  DRIVER_TRY(a.set_current(context));
  kiln__bench_mark("context");
  image = read_whole(cubin);
  rc = image == NULL ? -1 : a.load(&module, image);
  free(image);
  DRIVER_TRY(rc);
  DRIVER_TRY(a.get_function(&f, module, kernel));
  kiln__bench_mark("load");
  kiln__bench_start_fill(x, y);
  return saxpy(&a, f, x, y);
}

int kiln__bench_start_bare(const char *cubin, const char *kernel,
                           const char *driver)
{
  static float x[START_ELEMENTS], y[START_ELEMENTS];
  int rc;

  kiln__bench_mark("process");
  rc = live(cubin, kernel, driver, x, y);
  if (rc != 0 || !kiln__bench_start_verify(y)) {
    fprintf(stderr, "kiln bench start: the bare program %s (code %d)\n",
            rc != 0 ? "failed" : "computed a wrong result", rc);
    return 1;
  }
  kiln__bench_mark("verified");
  kiln__bench_print_marks();
  return 0;
}
