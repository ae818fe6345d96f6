/* rt_reference.c -- accepts the registration of texture and surface references, which
 * the host code of nvcc 11 and older does for each reference. The references themselves
 * are not supported; the functions that bind them are refused. */
#include "../cudart.h"

static void refuse(const char *symbol)
{
  (void)kiln__rt_refuse(symbol, cudaErrorNotSupported,
                        "texture and surface references are not supported; use "
                        "texture objects (cudaCreateTextureObject)");
}

void kiln__rt_registerTexture(void **image, const void *host,
                              const void **address, const char *name, int dim,
                              int normalised, int external)
{
  (void)image, (void)host, (void)address, (void)name;
  (void)dim, (void)normalised, (void)external;
  refuse("__cudaRegisterTexture");
}

void kiln__rt_registerSurface(void **image, const void *host,
                              const void **address, const char *name, int dim,
                              int external)
{
  (void)image, (void)host, (void)address, (void)name;
  (void)dim, (void)external;
  refuse("__cudaRegisterSurface");
}
