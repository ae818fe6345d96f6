/* cases.h -- small programs that call a CUDA runtime library and print what it returns.
 * The same binary runs with this library and with NVIDIA's, and its output is compared
 * line by line. It is built once per major version of the library. A case prints nothing that depends on the machine: no addresses, times
 * or sizes of devices.
 *
 *   CASE(name) { T(cudaErrorInvalidValue, cudaMalloc(NULL, 1)); }
 *
 * T() also compares the result with the documented one; ANY stands for a result that the
 * documentation does not specify. A case with STICKY() breaks the context, so it runs in
 * a process of its own. */
#ifndef KILN_TEST_RUNTIME_CASES_H
#define KILN_TEST_RUNTIME_CASES_H

#include "cpu/cudart/cudart.h"
#include "cpu/cudart/rt_majors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pointer for each function of the library, so that a case calls it by its name. */
#define KILN__RT(name, symbol, majors, since, params, args)                    \
  KILN__RT_IN_##majors(extern cudaError_t(*symbol) params;)
#define KILN__RT_PLAIN(result, name, symbol, majors, since, params, args)      \
  KILN__RT_IN_##majors(extern result(*symbol) params;)
#define KILN__RT_VOID(name, symbol, majors, since, params, args)               \
  KILN__RT_IN_##majors(extern void(*symbol) params;)
#include "cpu/cudart/runtime_functions.def"

/* The calls of CUDA 13 that have another name in CUDA 12. T() prints the name of 13. */
#if KILN__RT_MAJOR == 12 && !defined(RUNTIME_CASES_LOADER)
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#define cudaGraphGetEdges cudaGraphGetEdges_v2
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2
#define cudaMemAdvise cudaMemAdvise_v2
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v2
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies                                    \
  cudaStreamUpdateCaptureDependencies_v2
#endif

/* Structs whose layout depends on the version. KNOWN() is the part of a resource that all
 * versions have. */
#if KILN__RT_MAJOR == 12
typedef cudaResourceDesc_11 resource_desc;
typedef cudaDeviceProp_12 device_prop;
typedef cudaPointerAttributes_11 pointer_attributes;
#define KNOWN(resource) (resource)
#else
typedef cudaResourceDesc_13 resource_desc;
typedef cudaDeviceProp_13 device_prop;
typedef cudaPointerAttributes_13 pointer_attributes;
#define KNOWN(resource) ((resource).known)
#endif

/* What a launch of a wrong shape returns. */
#define WRONG_SHAPE                                                            \
  (KILN__RT_MAJOR >= 13 ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration)

#define ANY (-1)

/* Prints a call and its result, and compares the result. */
void check_call(const char *text, int want, cudaError_t got);

/* Prints a value. */
void check_value(const char *text, long long want, long long got);

#define T(want, call) check_call(#call, want, call)
#define V(want, value) check_value(#value, want, (long long)(value))
#define OK(call) T(cudaSuccess, call)
#define BAD(call) T(cudaErrorInvalidValue, call)

/* Adds a case to the list. */
void add_case(const char *name, void (*run)(void), int sticky);

#define ADD_CASE(name, sticky)                                                 \
  static void name(void);                                                      \
  __attribute__((constructor)) static void add_##name(void)                    \
  {                                                                            \
    add_case(#name, name, sticky);                                             \
  }                                                                            \
  static void name(void)
#define CASE(name) ADD_CASE(name, 0)
#define STICKY(name) ADD_CASE(name, 1)

/* Host addresses of registered kernels and variables:
 *   k_fill(int *p, int v)   p[global thread] = v
 *   k_store(int *p)         *p = 1, for bad addresses
 *   k_trap()                executes trap
 *   k_spin()                does nothing
 *   k_table(int *p)         p[thread] = v_table[thread]
 *   v_table                 int[8] in global memory, v_const int[4] in constant memory */
extern char k_fill, k_store, k_trap, k_spin, k_table, v_table, v_const;

/* Launches a kernel on one block. */
cudaError_t launch(const void *kernel, unsigned threads, void **args,
                   cudaStream_t stream);

/* Launches k_fill with a grid, a block and a stream. */
cudaError_t fill(int *p, int v, dim3 grid, dim3 block, cudaStream_t stream);

#endif
