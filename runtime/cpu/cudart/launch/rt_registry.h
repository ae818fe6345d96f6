/* rt_registry.h -- declares the records of registered fat binaries and symbols. */
#ifndef KILN_CPU_RT_REGISTRY_H
#define KILN_CPU_RT_REGISTRY_H

#include "../cudart.h"

typedef enum kiln__rt_kind {
  KILN__RT_KERNEL,
  KILN__RT_VARIABLE,
  KILN__RT_MANAGED,
  KILN__RT_TEXTURE,
  KILN__RT_SURFACE
} kiln__rt_kind;

typedef struct kiln__rt_symbol {
  const void *host; /* address in the host program that names the symbol */
  const char *name; /* mangled name in the fat binary, owned by the program */
  size_t size;      /* size of a variable in bytes */
  CUkernel kernel;  /* handle of a kernel after its first use, else NULL */
  struct kiln__rt_image *image;
  struct kiln__rt_symbol *next; /* in the same image */
  kiln__rt_kind kind;
  bool normalized; /* kernels read the integers of a texture as fractions */
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

/* Adds a symbol to the table and to its image. A later registration of the same host
 * address replaces the earlier one. Does nothing without an image. */
void kiln__rt_register(void **image, kiln__rt_symbol wanted);

/* Finds a symbol of one kind, and the module of its image in the current context.
 * Returns cudaErrorInvalidTexture or cudaErrorInvalidSurface if there is none. */
cudaError_t kiln__rt_module_of(CUmodule *out, kiln__rt_symbol *symbol,
                               const void *host, kiln__rt_kind kind);

#endif
