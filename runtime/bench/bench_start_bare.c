/* bench_start_bare.c -- the program that `kiln bench start` compares with: saxpy
 * from a CUBIN file on the driver API, without Kiln. */
#include "bench/bench_start.h"

#include <stdlib.h>
#include <string.h>

/* The few entry points, with the driver's own exact names. */
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

static void *read_whole(const char *path)
{
  FILE *f = fopen(path, "rbe");
  long size = 0;
  void *data = NULL;

  if (f == NULL)
    return NULL;
  if (fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) > 0 &&
      fseek(f, 0, SEEK_SET) == 0)
    data = calloc(1, (size_t)size + 1);
  if (data != NULL && fread(data, 1, (size_t)size, f) != (size_t)size) {
    free(data);
    data = NULL;
  }
  fclose(f);
  return data;
}

static int saxpy(const api *a, CUfunction f, float *x, float *y)
{
  const size_t bytes = START_ELEMENTS * sizeof *x;
  float factor = 2;
  unsigned n = START_ELEMENTS;
  CUdeviceptr dx = 0, dy = 0;
  void *params[] = {&factor, &dx, &dy, &n};
  int rc = a->alloc(&dx, bytes);

  if (rc == 0)
    rc = a->alloc(&dy, bytes);
  if (rc == 0)
    rc = a->to_device(dx, x, bytes);
  if (rc == 0)
    rc = a->to_device(dy, y, bytes);
  kiln__bench_mark("memory and copies");
  if (rc == 0)
    rc = a->launch(f, START_ELEMENTS / 256, 1, 1, 256, 1, 1, 0, NULL, params,
                   NULL);
  kiln__bench_mark("first launch");
  if (rc == 0)
    rc = a->to_host(y, dy, bytes);
  return rc;
}

int kiln__bench_start_bare(const char *cubin, const char *kernel,
                           const char *driver)
{
  static float x[START_ELEMENTS], y[START_ELEMENTS];
  api a = {0};
  int device = 0, rc;
  CUcontext context = NULL;
  CUmodule module = NULL;
  CUfunction f = NULL;
  void *image;

  kiln__bench_mark("process");
  rc = find_entries(&a, driver);
  if (rc == 0)
    rc = a.init(0);
  kiln__bench_mark("driver");
  if (rc == 0)
    rc = a.get_device(&device, 0);
  if (rc == 0)
    rc = a.retain(&context, device);
  if (rc == 0)
    rc = a.set_current(context);
  kiln__bench_mark("context");
  image = read_whole(cubin);
  if (rc == 0)
    rc = image == NULL ? -1 : a.load(&module, image);
  free(image);
  if (rc == 0)
    rc = a.get_function(&f, module, kernel);
  kiln__bench_mark("load");
  kiln__bench_start_fill(x, y);
  if (rc == 0)
    rc = saxpy(&a, f, x, y);
  if (rc != 0 || !kiln__bench_start_verify(y)) {
    fprintf(stderr, "kiln bench start: the bare program %s (code %d)\n",
            rc != 0 ? "failed" : "computed a wrong result", rc);
    return 1;
  }
  kiln__bench_mark("verified");
  kiln__bench_print_marks();
  return 0;
}
