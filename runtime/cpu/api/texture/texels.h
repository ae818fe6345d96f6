/* texels.h -- contains declarations that arrays, textures, surfaces and texture
 * references share. */
#ifndef KILN_CPU_TEXELS_H
#define KILN_CPU_TEXELS_H

#include "../module/api_module.h"

struct CUmipmappedArray_st {
  CUcontext context;
  CUarray levels[KILN__MAX_LEVELS];
  unsigned n_levels;
  struct CUmipmappedArray_st *next;
};

/* Sets the members texel, channels and texel_bytes of `out` from an array
 * format. Returns false if the format does not exist. */
bool kiln__cpu_texel_format(CUarray_format format, unsigned channels,
                            kiln__cpu_texels *out);

/* Converts texture descriptors into the form that the handlers of texture
 * instructions read. `view` may be NULL. Returns CUDA_SUCCESS,
 * CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE, or
 * CUDA_ERROR_NOT_SUPPORTED. */
CUresult kiln__cpu_texture_make(kiln__cpu_texture *out,
                                const CUDA_RESOURCE_DESC *r,
                                const CUDA_TEXTURE_DESC *d,
                                const CUDA_RESOURCE_VIEW_DESC *view);
/* Converts a surface descriptor in the same way as kiln__cpu_texture_make().
 * Also returns CUDA_ERROR_INVALID_VALUE if the array was not made for
 * surfaces. */
CUresult kiln__cpu_surface_make(kiln__cpu_surface *out,
                                const CUDA_RESOURCE_DESC *r);

/* Removes the handle of a texture or surface object from the table of the CPU
 * device. */
void kiln__cpu_handle_remove(uint64_t handle, bool surface);
/* Frees the texture and surface objects of a context that is destroyed or
 * reset. */
void kiln__cpu_context_end_textures(CUcontext context);

#endif
