/* shims.c -- a program for `kiln exec` that links two PTX sources by nvJitLink
 * and runs the result. It also checks the result codes and logs of nvJitLink,
 * and lists the devices by NVML.
 * Exits with 0 if everything is as documented. */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void require(int ok, const char *what)
{
  if (ok)
    return;
  fprintf(stderr, "failed: %s\n", what);
  exit(1);
}

/* Stores the address of a symbol in a function pointer. */
static void find(const char *name, void *fn)
{
  void *found = dlsym(library, name);

  require(found != NULL, name);
  memcpy(fn, &found, sizeof found);
}

static const char caller[] =
    ".version 9.4\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b32 r) seven ();\n"
    ".visible .entry k (.param .u64 out)\n{\n.reg .b64 %p;\n.reg .b32 %v;\n"
    "ld.param.u64 %p, [out];\n{\n.param .b32 back;\n"
    "call.uni (back), seven, ();\nld.param.b32 %v, [back];\n}\n"
    "st.global.u32 [%p], %v;\nret;\n}\n";
static const char callee[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                             ".visible .func (.param .b32 r) seven ()\n{\n"
                             "st.param.b32 [r], 7;\nret;\n}\n";

static int (*create)(void **link, unsigned n, const char **options);
static int (*destroy)(void **link);
static int (*add)(void *link, int type, const void *data, size_t size,
                  const char *name);
static int (*complete)(void *link);
static int (*cubin_size)(void *link, size_t *size);
static int (*cubin)(void *link, void *to);
static int (*log_size)(void *link, size_t *size);
static int (*get_log)(void *link, char *to);

enum { PTX = 2, LTOIR = 3, ANY = 10 };

static void *new_link(int expected, const char *a, const char *b)
{
  const char *options[] = {a, b};
  void *link = NULL;
  const int rc = create(&link, b == NULL ? 1 : 2, options);

  if (rc != expected)
    fprintf(stderr, "%s %s gave %d\n", a, b == NULL ? "" : b, rc);
  require(rc == expected, "nvJitLinkCreate");
  return link;
}

static void options_are_checked(void)
{
  new_link(2, "-lto", NULL);
  new_link(1, "-arch=sm_90", "-foo");
  new_link(1, "-arch=sm_90", "-ftz");
  new_link(11, "-arch=sm_90", "-ptx");
  new_link(16, "-arch=sm_9", NULL);
  destroy(&(void *){new_link(0, "-arch=sm_90a -lineinfo", "-Xptxas=-v")});
}

/* Requires a result code, and that the error log contains a text. */
static void refused(void *link, int rc, int expected, const char *said)
{
  size_t size = 0;
  char log[4096] = "";

  require(rc == expected, said);
  require(log_size(link, &size) == 0 && size > 0 && size < sizeof log, "size");
  require(get_log(link, log) == 0 && strstr(log, said) != NULL, log);
}

static void inputs_are_checked(void)
{
  static const char lto[] = "\355CN\177 and LTO-IR";
  void *link = new_link(0, "-arch=sm_90", NULL);
  size_t size = 1;

  require(log_size(link, &size) == 0 && size == 0, "an empty log has no size");
  require(add(link, PTX, caller, 0, "none") == 3, "an empty input");
  refused(link, add(link, LTOIR, lto, sizeof lto, "x.ltoir"), 18, "x.ltoir");
  refused(link, add(link, PTX, "hallo", 5, "hallo.ptx"), 12, "hallo.ptx");
  refused(link, add(link, ANY, "hallo", 5, "any"), 8, "any");
  refused(link, add(link, PTX, ".version 7.0\nx", 14, "bad.ptx"), 4, "bad.ptx");
  refused(link, add(link, PTX, ".version 7.0\n.target sm_100\n", 28, "new.ptx"),
          13, "new.ptx");
  require(cubin_size(link, &size) == 3, "the link is not complete");
  destroy(&link);
  require(link == NULL, "nvJitLinkDestroy");

  link = new_link(0, "-arch=sm_90", "-lto");
  refused(link, add(link, LTOIR, lto, sizeof lto, "y.ltoir"), 5, "-dlto");
  destroy(&link);
  link = new_link(0, "-arch=sm_90", NULL);
  require(add(link, PTX, caller, sizeof caller, "a") == 0, "the caller");
  refused(link, complete(link), 6, "seven");
  destroy(&link);
}

/* Links and runs a kernel. Its PTX version is newer than the driver. */
static void result_runs(void)
{
  void *link = new_link(0, "-arch=sm_70", NULL), *image;
  CUcontext context;
  CUmodule module;
  CUfunction k;
  CUdeviceptr out;
  void *args[] = {&out};
  size_t size = 0;
  int got = 0;

  require(add(link, PTX, caller, sizeof caller, "a") == 0, "the caller");
  require(add(link, ANY, callee, sizeof callee, "b") == 0, "the callee");
  require(complete(link) == 0 && cubin_size(link, &size) == 0, "the link");
  image = malloc(size);
  require(image != NULL && cubin(link, image) == 0, "the image");
  destroy(&link);
  require(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 &&
              cuCtxSetCurrent(context) == 0,
          "a context");
  require(cuModuleLoadData(&module, caller) ==
              CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
          "PTX alone is too new");
  require(cuModuleLoadData(&module, image) == 0, "cuModuleLoadData");
  require(cuModuleGetFunction(&k, module, "k") == 0, "the kernel");
  require(cuMemAlloc_v2(&out, 4) == 0, "memory");
  require(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL) == 0 &&
              cuMemcpyDtoH_v2(&got, out, 4) == 0,
          "the launch");
  require(got == 7, "the result");
  free(image);
}

/* NVML lists the same devices as the driver, and works before cuInit. */
static void devices_are_listed(void)
{
  int (*init)(void), (*shutdown)(void), (*count)(unsigned *n);
  int (*by_index)(unsigned i, void **device);
  int (*name)(const void *device, char *to, unsigned size);
  int (*uuid)(const void *device, char *to, unsigned size);
  int (*by_uuid)(const char *uuid, void **device);
  int (*memory)(const void *device, unsigned long long *info);
  int (*power)(const void *device, unsigned *watts);
  unsigned long long info[3] = {0}; /* total, free, used */
  void *device = NULL, *same = NULL;
  char text[96] = "";
  unsigned n = 0;

  library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  require(library != NULL, "dlopen of NVML");
  find("nvmlInit_v2", &init);
  find("nvmlShutdown", &shutdown);
  find("nvmlDeviceGetCount_v2", &count);
  find("nvmlDeviceGetHandleByIndex_v2", &by_index);
  find("nvmlDeviceGetHandleByUUID", &by_uuid);
  find("nvmlDeviceGetName", &name);
  find("nvmlDeviceGetUUID", &uuid);
  find("nvmlDeviceGetMemoryInfo", &memory);
  find("nvmlDeviceGetPowerUsage", &power);
  require(count(&n) == 1, "NVML before nvmlInit");
  require(init() == 0 && count(&n) == 0 && n == 1, "one device");
  require(by_index(n, &device) == 2, "a device that does not exist");
  require(by_index(0, &device) == 0, "the device");
  require(name(device, text, 4) == 7, "a short buffer");
  require(name(device, text, sizeof text) == 0 && strstr(text, "CPU") != NULL,
          "the name");
  require(uuid(device, text, sizeof text) == 0 && by_uuid(text, &same) == 0 &&
              same == device,
          "the UUID");
  require(memory(device, info) == 0 && info[0] == info[1] + info[2] &&
              info[0] > 0,
          "the memory");
  require(memory(text, info) == 2, "a handle that is none");
  require(power(device, &n) == 3, "the power");
  require(shutdown() == 0 && shutdown() == 1, "nvmlShutdown");
}

int main(int argc, char **argv)
{
  /* A path that does not exist: the name alone decides. */
  library =
      dlopen(argc > 1 ? argv[1] : "/no/such/libnvJitLink.so.12.9", RTLD_NOW);
  require(library != NULL, "dlopen");
  find("__nvJitLinkCreate_12_0", &create);
  find("__nvJitLinkDestroy_12_9", &destroy);
  find("__nvJitLinkAddData_12_3", &add);
  find("nvJitLinkComplete", &complete);
  find("nvJitLinkGetLinkedCubinSize", &cubin_size);
  find("nvJitLinkGetLinkedCubin", &cubin);
  find("nvJitLinkGetErrorLogSize", &log_size);
  find("nvJitLinkGetErrorLog", &get_log);
  options_are_checked();
  inputs_are_checked();
  devices_are_listed();
  result_runs();
  puts("linked");
  return 0;
}
