/* cpu_differ.h -- the GPU and the CPU device side by side, on the driver's own
 * calls: load PTX, launch, fetch. Every failure but that of a load fails the
 * test. */
#ifndef KILN_TEST_CPU_DIFFER_H
#define KILN_TEST_CPU_DIFFER_H

#include "support.h"

#include <kiln/cpu.h>

#include "driver/driver.h"

typedef struct differ {
  kiln__driver api;
  CUdevice device;
  CUcontext context;
  bool on_gpu;
  unsigned sm; /* 90 = 9.0 */
  char name[96];
} differ;

/* The first GPU. False: there is none. Never before a fork that goes on. */
bool differ_open_gpu(differ *d);
/* The CPU device with these settings; only one at a time. */
void differ_open_cpu(differ *d, const kiln_cpu_opts *opts);
void differ_close(differ *d);

/* False: refused; `log` says why. */
bool differ_load(differ *d, CUmodule *out, const char *ptx, char *log,
                 size_t size);
void differ_unload(differ *d, CUmodule module);
CUdeviceptr differ_alloc(differ *d, size_t bytes);
void differ_free(differ *d, CUdeviceptr at);
void differ_put(differ *d, CUdeviceptr to, const void *from, size_t bytes);
void differ_get(differ *d, void *to, CUdeviceptr from, size_t bytes);
void differ_fill(differ *d, CUdeviceptr to, size_t bytes); /* with 0xee */
/* Launch and wait. */
void differ_launch(differ *d, CUmodule module, const char *kernel,
                   unsigned blocks, unsigned threads, void **args);

/* Fork `n` children that run work(user, k); each its own devices. The number of
 * those that failed. */
unsigned differ_fork(unsigned n, void (*work)(void *user, unsigned k),
                     void *user);
/* Zeroed memory that forked children share. */
void *differ_shared(size_t bytes);
/* Processors, 16 at most. */
unsigned differ_cores(void);

#endif
