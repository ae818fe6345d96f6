/* texels.h -- what arrays, textures, surfaces and their references share. */
#ifndef KILN_CPU_TEXELS_H
#define KILN_CPU_TEXELS_H

#include "../module/api_module.h"

struct CUmipmappedArray_st {
  CUcontext context;
  CUarray levels[KILN__MAX_LEVELS];
  unsigned n_levels;
  struct CUmipmappedArray_st *next;
};

/* Fill texel, channels and texel_bytes. False: no such format. */
bool kiln__cpu_texel_format(CUarray_format format, unsigned channels,
                            kiln__cpu_texels *out);

/* What a descriptor says, as the handlers see it. CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_NOT_SUPPORTED. `view` may be NULL. */
CUresult kiln__cpu_texture_make(kiln__cpu_texture *out,
                                const CUDA_RESOURCE_DESC *r,
                                const CUDA_TEXTURE_DESC *d,
                                const CUDA_RESOURCE_VIEW_DESC *view);
/* CUDA_ERROR_INVALID_VALUE: not an array made for it. */
CUresult kiln__cpu_surface_make(kiln__cpu_surface *out,
                                const CUDA_RESOURCE_DESC *r);

/* Objects of a context that ends. */
void kiln__cpu_context_end_textures(CUcontext context);

#endif
