/* texels.h -- declarations that arrays, textures, surfaces and references
 * share. */
#ifndef KILN_CPU_TEXELS_H
#define KILN_CPU_TEXELS_H

#include "../module/api_module.h"

struct CUmipmappedArray_st {
  CUcontext context;
  CUarray levels[KILN__MAX_LEVELS];
  unsigned n_levels;
  struct CUmipmappedArray_st *next;
};

/* Sets texel, channels and texel_bytes of `out`. False: no such format. */
bool kiln__cpu_texel_format(CUarray_format format, unsigned channels,
                            kiln__cpu_texels *out);

/* Turns descriptors into the form that the handlers of texture instructions
 * read. `view` may be NULL. CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_NOT_SUPPORTED. */
CUresult kiln__cpu_texture_make(kiln__cpu_texture *out,
                                const CUDA_RESOURCE_DESC *r,
                                const CUDA_TEXTURE_DESC *d,
                                const CUDA_RESOURCE_VIEW_DESC *view);
/* The same for a surface. CUDA_ERROR_INVALID_VALUE also if the array was not made
 * for surfaces. */
CUresult kiln__cpu_surface_make(kiln__cpu_surface *out,
                                const CUDA_RESOURCE_DESC *r);

/* Frees the texture and surface objects of a context that ends. */
void kiln__cpu_context_end_textures(CUcontext context);

#endif
