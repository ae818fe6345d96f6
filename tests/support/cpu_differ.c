/* cpu_differ.c -- implements cpu_differ.h: opens devices, loads PTX, launches
 * kernels and forks children. */
#include "cpu_differ.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK(call)                                                               \
  do {                                                                         \
    const CUresult rc_ = (call);                                               \
    const char *name_ = "?";                                                   \
    if (rc_ != CUDA_SUCCESS && d->api.getErrorName != NULL)                    \
      d->api.getErrorName(rc_, &name_);                                        \
    ck_assert_msg(rc_ == CUDA_SUCCESS, "%s: %s gives %d %s", d->name, #call,   \
                  rc_, name_);                                                 \
  } while (0)

static void open_device(differ *d)
{
  int major = 0, minor = 0;

  OK(d->api.deviceGet(&d->device, 0));
  OK(d->api.deviceGetName(d->name, sizeof d->name, d->device));
  OK(d->api.deviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->device));
  OK(d->api.deviceGetAttribute(
      &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d->device));
  d->sm = (unsigned)(major * 10 + minor);
  OK(d->api.devicePrimaryCtxRetain(&d->context, d->device));
}

bool differ_open_gpu(differ *d)
{
  kiln_allocator a = {0};
  kiln__trail *trail;
  int n = 0;
  bool found;

  *d = (differ){.on_gpu = true, .name = "GPU"};
  kiln__allocator_default(&a);
  trail = kiln__trail_create(&a);
  found = kiln__driver_open(&d->api, &a, NULL, getenv("KILN_DRIVER"), trail) ==
              KILN_OK &&
          d->api.deviceGetCount(&n) == CUDA_SUCCESS && n > 0;
  kiln__trail_free(trail);
  if (found)
    open_device(d);
  return found;
}

void differ_open_cpu(differ *d, const kiln_cpu_opts *opts)
{
  *d = (differ){.name = "CPU device"};
  ck_kiln_ok(kiln_cpu_configure(opts));
  ck_kiln_ok(kiln__driver_take(&d->api, (const kiln__driver *)kiln_cpu_driver(),
                               NULL));
  open_device(d);
}

void differ_close(differ *d)
{
  OK(d->api.devicePrimaryCtxRelease(d->device));
  d->context = NULL;
}

static void enter(differ *d)
{
  OK(d->api.ctxSetCurrent(d->context));
}

bool differ_load(differ *d, CUmodule *out, const char *ptx, char *log,
                 size_t size)
{
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)size};

  enter(d);
  log[0] = '\0';
  return d->api.moduleLoadDataEx(out, ptx, 2, options, values) == CUDA_SUCCESS;
}

void differ_unload(differ *d, CUmodule module)
{
  enter(d);
  OK(d->api.moduleUnload(module));
}

CUdeviceptr differ_alloc(differ *d, size_t bytes)
{
  CUdeviceptr at = 0;

  enter(d);
  OK(d->api.memAlloc(&at, bytes));
  return at;
}

void differ_free(differ *d, CUdeviceptr at)
{
  enter(d);
  OK(d->api.memFree(at));
}

void differ_put(differ *d, CUdeviceptr to, const void *from, size_t bytes)
{
  enter(d);
  OK(d->api.memcpyHtoD(to, from, bytes));
}

void differ_get(differ *d, void *to, CUdeviceptr from, size_t bytes)
{
  enter(d);
  OK(d->api.memcpyDtoH(to, from, bytes));
}

void differ_fill(differ *d, CUdeviceptr to, size_t bytes)
{
  enter(d);
  OK(d->api.memsetD8(to, 0xee, bytes));
}

void differ_launch(differ *d, CUmodule module, const char *kernel,
                   unsigned blocks, unsigned threads, void **args)
{
  CUfunction function = NULL;
  CUresult rc;

  enter(d);
  OK(d->api.moduleGetFunction(&function, module, kernel));
  rc = d->api.launchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, args,
                           NULL);
  if (rc == CUDA_SUCCESS)
    rc = d->api.ctxSynchronize();
  if (rc != CUDA_SUCCESS && !d->on_gpu) {
    char fault[1024];

    (void)kiln_cpu_last_fault(fault, sizeof fault);
    printf("%s\n", fault);
    fflush(stdout);
  }
  OK(rc);
}

unsigned differ_fork(unsigned n, void (*work)(void *user, unsigned k),
                     void *user)
{
  pid_t children[64];
  unsigned failed = 0;

  fflush(NULL);
  for (unsigned k = 0; k < n; k++) {
    children[k] = fork();
    ck_assert_int_ge(children[k], 0);
    if (children[k] == 0) {
      work(user, k);
      fflush(NULL);
      _exit(0);
    }
  }
  for (unsigned k = 0; k < n; k++) {
    int status = 1;

    failed += waitpid(children[k], &status, 0) != children[k] || status != 0;
  }
  return failed;
}

void *differ_shared(size_t bytes)
{
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  ck_assert_ptr_ne(p, MAP_FAILED);
  return p;
}

unsigned differ_cores(void)
{
  const long n = sysconf(_SC_NPROCESSORS_ONLN);

  return n < 1 ? 1 : n > 16 ? 16 : (unsigned)n;
}
