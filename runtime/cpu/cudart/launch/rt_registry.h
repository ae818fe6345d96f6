/* rt_registry.h -- declares the records of registered fat binaries and symbols. */
#ifndef KILN_CPU_RT_REGISTRY_H
#define KILN_CPU_RT_REGISTRY_H

#include "../cudart.h"

typedef enum kiln__rt_kind {
  KILN__RT_KERNEL,
  KILN__RT_VARIABLE,
  KILN__RT_MANAGED
} kiln__rt_kind;

typedef struct kiln__rt_symbol {
  const void *host; /* address in the host program that names the symbol */
  const char *name; /* mangled name in the fat binary, owned by the program */
  size_t size;      /* size of a variable in bytes */
  CUkernel kernel;  /* handle of a kernel after its first use, else NULL */
  struct kiln__rt_image *image;
  struct kiln__rt_symbol *next; /* in the same image */
  kiln__rt_kind kind;
} kiln__rt_symbol;

/* A registered fat binary. */
typedef struct kiln__rt_image {
  void *wrapper;      /* what nvcc passes, owned by the program */
  CUlibrary library;  /* NULL until first use */
  cudaError_t status; /* of loading the library */
  kiln__rt_symbol *symbols;
} kiln__rt_image;

/* Returns the host address of a kernel, or NULL if no fat binary of the program has the
 * kernel. */
const void *kiln__rt_host_of(CUkernel kernel);

#endif
