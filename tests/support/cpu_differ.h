/* cpu_differ.h -- runs the same PTX on a GPU and on the CPU device through
 * their driver APIs. Every failure fails the test, except a failure to load
 * PTX. */
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
  unsigned sm; /* compute capability of the device; 90 means 9.0 */
  char name[96];
} differ;

/* Opens the first GPU. Returns false if there is no GPU. Must not be called
 * before a fork whose child continues to run the test. */
bool differ_open_gpu(differ *d);
/* Opens the CPU device with the given settings. Only one CPU device may be open
 * at a time. */
void differ_open_cpu(differ *d, const kiln_cpu_opts *opts);
void differ_close(differ *d);

/* Loads PTX source. Returns false if the device rejects it; `log` then receives
 * the reason. */
bool differ_load(differ *d, CUmodule *out, const char *ptx, char *log,
                 size_t size);
void differ_unload(differ *d, CUmodule module);
CUdeviceptr differ_alloc(differ *d, size_t bytes);
void differ_free(differ *d, CUdeviceptr at);
void differ_put(differ *d, CUdeviceptr to, const void *from, size_t bytes);
void differ_get(differ *d, void *to, CUdeviceptr from, size_t bytes);
/* Fills device memory with the byte 0xee. */
void differ_fill(differ *d, CUdeviceptr to, size_t bytes);
/* Launches a kernel and waits for its end. */
void differ_launch(differ *d, CUmodule module, const char *kernel,
                   unsigned blocks, unsigned threads, void **args);

/* Forks `n` child processes. Child k calls work(user, k) and opens its own
 * devices. Returns the number of children that failed. */
unsigned differ_fork(unsigned n, void (*work)(void *user, unsigned k),
                     void *user);
/* Returns zeroed memory that forked children share. */
void *differ_shared(size_t bytes);
/* Returns the number of processors, at most 16. */
unsigned differ_cores(void);

#endif
