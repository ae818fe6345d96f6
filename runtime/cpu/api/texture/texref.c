/* texref.c -- implements texture and surface references, the interface that
 * preceded texture and surface objects.
 *
 * A reference is a named variable of a module. Binding makes a texture or
 * surface object from the settings of the reference. The handle of the object
 * is written into the variable, where kernels read the handle. */
#include "texels.h"

#include <string.h>

struct CUtexref_st {
  CUcontext context;
  /* module that declares the variable; NULL after cuTexRefCreate */
  CUmodule module;
  uint32_t number; /* index of the variable in the module */
  bool surface;    /* true for a surface reference (CUsurfref) */
  bool bound;
  /* handle of the bound texture or surface object; 0 if unbound */
  uint64_t handle;
  CUarray_format format;
  int channels;
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC desc;
  struct CUtexref_st *next;
};

static void unbind(CUtexref r)
{
  if (r->handle != 0)
    kiln__cpu_handle_remove(r->handle, r->surface);
  r->handle = 0;
}

/* Writes the handle of the bound object into the module's variable. */
static void publish(CUtexref r)
{
  uint8_t *at;

  if (r->module == NULL)
    return;
  at = kiln__cpu_memory_host(machine()->memory, r->module->globals[r->number],
                             sizeof r->handle);
  if (at != NULL)
    memcpy(at, &r->handle, sizeof r->handle);
}

/* Makes a new texture or surface object from the settings of the reference.
 * Waits for kernels that use the previous object. */
static CUresult bind(CUtexref r)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_texture t;
  kiln__cpu_surface s;
  kiln_status st;
  uint64_t handle = 0;

  if (!r->bound)
    return CUDA_SUCCESS;
  CU_TRY(r->surface ? kiln__cpu_surface_make(&s, &r->resource)
                    : kiln__cpu_texture_make(&t, &r->resource, &r->desc, NULL));
  CU_TRY(kiln__cpu_wait_context(r->context));
  st = r->surface ? kiln__cpu_surface_add(m->textures, &s, &handle)
                  : kiln__cpu_texture_add(m->textures, &t, &handle);
  if (st != KILN_OK)
    return CUDA_ERROR_OUT_OF_MEMORY;
  unbind(r);
  r->handle = handle;
  publish(r);
  return CUDA_SUCCESS;
}

static void free_ref(CUtexref r)
{
  kiln__cpu_live_remove(r);
  unbind(r);
  kiln__free(&machine()->alloc, r);
}

void kiln__cpu_texrefs_free(struct CUtexref_st *list)
{
  while (list != NULL) {
    CUtexref next = list->next;

    free_ref(list);
    list = next;
  }
}

static CUtexref make(CUcontext context)
{
  CUtexref r = kiln__calloc(&machine()->alloc, 1, sizeof *r);

  if (r == NULL)
    return NULL;
  r->context = context;
  r->format = CU_AD_FORMAT_FLOAT;
  r->channels = 1;
  for (int i = 0; i < 3; i++)
    r->desc.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
  if (!kiln__cpu_live_add(r, KILN__HANDLE_TEXREF)) {
    kiln__free(&machine()->alloc, r);
    return NULL;
  }
  return r;
}

/* ---- References that belong to modules ----------------------------------- */

/* Returns the texture or surface reference for the module's variable, and makes
 * it at first use. Returns NULL if there is no memory. The caller holds the
 * context's lock. */
static CUtexref find_locked(CUmodule module, uint32_t number, bool surface)
{
  CUtexref r = module->texrefs;

  while (r != NULL && r->number != number)
    r = r->next;
  if (r != NULL)
    return r;
  r = make(module->context);
  if (r == NULL)
    return NULL;
  r->module = module;
  r->number = number;
  r->surface = surface;
  r->next = module->texrefs;
  module->texrefs = r;
  return r;
}

static CUresult find(CUtexref *out, CUmodule module, const char *name,
                     bool surface)
{
  CUcontext context;
  const kiln__cpu_global *g;
  uint32_t i;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_known(module, KILN__HANDLE_MODULE));
  CU_TRY(valid(out != NULL && name != NULL));
  i = kiln__cpu_module_global(module->program, name);
  if (i == UINT32_MAX)
    return CUDA_ERROR_NOT_FOUND;
  g = &module->program->globals[i];
  if (surface ? !g->surface : !g->texture)
    return CUDA_ERROR_NOT_FOUND;
  pthread_mutex_lock(&module->context->lock);
  *out = find_locked(module, i, surface);
  pthread_mutex_unlock(&module->context->lock);
  return allocated(*out);
}

CUresult kiln__cpu_moduleGetTexRef(CUtexref *texref, CUmodule module,
                                   const char *name)
{
  return find(texref, module, name, false);
}

CUresult kiln__cpu_moduleGetSurfRef(CUsurfref *surfref, CUmodule module,
                                    const char *name)
{
  CUtexref r;
  CUresult rc;

  CU_TRY(valid(surfref != NULL));
  rc = find(&r, module, name, true);
  if (rc == CUDA_SUCCESS)
    *surfref = (CUsurfref)(void *)r;
  return rc;
}

/* ---- References that the program creates --------------------------------- */

static CUresult check(const void *handle, bool surface)
{
  const struct CUtexref_st *r = handle;

  CU_TRY(kiln__cpu_check_current());
  return kiln__cpu_live(handle, KILN__HANDLE_TEXREF) && r->surface == surface
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}

CUresult kiln__cpu_texRefCreate(CUtexref *texref)
{
  CUcontext context;

  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(valid(texref != NULL));
  *texref = make(context);
  return allocated(*texref);
}

CUresult kiln__cpu_texRefDestroy(CUtexref texref)
{
  CU_TRY(check(texref, false));
  if (texref->module != NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  free_ref(texref);
  return CUDA_SUCCESS;
}

/* This function only checks its arguments. An object that is bound to a
 * module's reference is valid for all kernels of the module. */
CUresult kiln__cpu_paramSetTexRef(CUfunction function, int unit,
                                  CUtexref texref)
{
  CUcontext context;
  CUfunction f;

  CU_TRY(check(texref, false));
  CU_TRY(kiln__cpu_current(&context));
  CU_TRY(kiln__cpu_function_of(function, context, &f));
  return valid(unit == CU_PARAM_TR_DEFAULT);
}

/* ---- Binding ------------------------------------------------------------- */

/* Binds `resource` to the texture or surface reference. On failure the old
 * binding stays. */
static CUresult bind_to(CUtexref r, const CUDA_RESOURCE_DESC *resource)
{
  const CUDA_RESOURCE_DESC old = r->resource;
  const bool was_bound = r->bound;
  CUresult rc;

  r->resource = *resource;
  r->bound = true;
  rc = bind(r);
  if (rc != CUDA_SUCCESS) {
    r->resource = old;
    r->bound = was_bound;
  }
  return rc;
}

CUresult kiln__cpu_texRefSetArray(CUtexref texref, CUarray array,
                                  unsigned int flags)
{
  CU_TRY(check(texref, false));
  CU_TRY(valid(flags == CU_TRSA_OVERRIDE_FORMAT));
  CU_TRY(kiln__cpu_known(array, KILN__HANDLE_ARRAY));
  texref->format = array->format;
  texref->channels = array->texels.channels;
  return bind_to(texref,
                 &(CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY,
                                       .res.array.hArray = array});
}

CUresult kiln__cpu_texRefSetMipmappedArray(CUtexref texref,
                                           CUmipmappedArray mipmap,
                                           unsigned int flags)
{
  CU_TRY(check(texref, false));
  CU_TRY(valid(flags == CU_TRSA_OVERRIDE_FORMAT));
  return bind_to(
      texref, &(CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                                    .res.mipmap.hMipmappedArray = mipmap});
}

/* Binds the aligned address at or below `address` to the texture reference.
 * Stores the distance in bytes between the two addresses, which kernels add to
 * their indices. */
CUresult kiln__cpu_texRefSetAddress(size_t *offset, CUtexref texref,
                                    CUdeviceptr address, size_t bytes)
{
  const size_t beyond = (size_t)(address % 512);

  CU_TRY(check(texref, false));
  if (address == 0) {
    texref->bound = false;
    unbind(texref);
    publish(texref);
    return CUDA_SUCCESS;
  }
  CU_TRY(valid(offset != NULL || beyond == 0));
  if (offset != NULL)
    *offset = beyond;
  return bind_to(
      texref, &(CUDA_RESOURCE_DESC){
                  .resType = CU_RESOURCE_TYPE_LINEAR,
                  .res.linear = {address - beyond, texref->format,
                                 (unsigned)texref->channels, bytes + beyond}});
}

CUresult kiln__cpu_texRefSetAddress2D(CUtexref texref,
                                      const CUDA_ARRAY_DESCRIPTOR *desc,
                                      CUdeviceptr address, size_t pitch)
{
  CU_TRY(check(texref, false));
  CU_TRY(valid(desc != NULL));
  return bind_to(texref,
                 &(CUDA_RESOURCE_DESC){
                     .resType = CU_RESOURCE_TYPE_PITCH2D,
                     .res.pitch2D = {address, desc->Format, desc->NumChannels,
                                     desc->Width, desc->Height, pitch}});
}

CUresult kiln__cpu_surfRefSetArray(CUsurfref surfref, CUarray array,
                                   unsigned int flags)
{
  CU_TRY(check(surfref, true));
  CU_TRY(valid(flags == 0));
  CU_TRY(kiln__cpu_known(array, KILN__HANDLE_ARRAY));
  CU_TRY(valid((array->flags & CUDA_ARRAY3D_SURFACE_LDST) != 0));
  return bind_to((CUtexref)(void *)surfref,
                 &(CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY,
                                       .res.array.hArray = array});
}

CUresult kiln__cpu_surfRefGetArray(CUarray *array, CUsurfref surfref)
{
  const CUtexref r = (CUtexref)(void *)surfref;

  CU_TRY(check(surfref, true));
  CU_TRY(valid(array != NULL && r->bound));
  *array = r->resource.res.array.hArray;
  return CUDA_SUCCESS;
}

/* ---- Settings ------------------------------------------------------------ */

/* Sets the descriptor of a texture reference. If a resource is bound, it is
 * bound again with the new descriptor. */
static CUresult set_desc(CUtexref r, const CUDA_TEXTURE_DESC *desc)
{
  const CUDA_TEXTURE_DESC old = r->desc;
  CUresult rc;

  r->desc = *desc;
  rc = bind(r);
  /* Inconsistent settings are allowed until a resource is bound, since programs
   * set filter and format one after the other. */
  if (rc == CUDA_ERROR_OUT_OF_MEMORY)
    r->desc = old;
  return rc == CUDA_ERROR_OUT_OF_MEMORY ? rc : CUDA_SUCCESS;
}

CUresult kiln__cpu_texRefSetFormat(CUtexref texref, CUarray_format format,
                                   int channels)
{
  kiln__cpu_texels unused;

  CU_TRY(check(texref, false));
  CU_TRY(valid(channels >= 1 &&
               kiln__cpu_texel_format(format, (unsigned)channels, &unused)));
  texref->format = format;
  texref->channels = channels;
  return CUDA_SUCCESS;
}

/* The body of a setter of texture references. It checks the reference, then the
 * condition `ok`. Then it performs `assignment` on `desc`, a copy of the
 * texture descriptor, and sets the copy. */
#define SET(texref, ok, assignment)                                            \
  do {                                                                         \
    CUDA_TEXTURE_DESC desc;                                                    \
                                                                               \
    CU_TRY(check(texref, false));                                              \
    CU_TRY(valid(ok));                                                         \
    desc = (texref)->desc;                                                     \
    assignment;                                                                \
    return set_desc(texref, &desc);                                            \
  } while (0)

CUresult kiln__cpu_texRefSetAddressMode(CUtexref texref, int dim,
                                        CUaddress_mode mode)
{
  SET(texref,
      dim >= 0 && dim <= 2 && mode >= CU_TR_ADDRESS_MODE_WRAP &&
          mode <= CU_TR_ADDRESS_MODE_BORDER,
      desc.addressMode[dim] = mode);
}

static bool known_filter(CUfilter_mode mode)
{
  return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

CUresult kiln__cpu_texRefSetFilterMode(CUtexref texref, CUfilter_mode mode)
{
  SET(texref, known_filter(mode), desc.filterMode = mode);
}

CUresult kiln__cpu_texRefSetMipmapFilterMode(CUtexref texref,
                                             CUfilter_mode mode)
{
  SET(texref, known_filter(mode), desc.mipmapFilterMode = mode);
}

CUresult kiln__cpu_texRefSetMipmapLevelBias(CUtexref texref, float bias)
{
  SET(texref, true, desc.mipmapLevelBias = bias);
}

CUresult kiln__cpu_texRefSetMipmapLevelClamp(CUtexref texref, float least,
                                             float most)
{
  SET(texref, true,
      (desc.minMipmapLevelClamp = least, desc.maxMipmapLevelClamp = most));
}

CUresult kiln__cpu_texRefSetMaxAnisotropy(CUtexref texref, unsigned int most)
{
  SET(texref, true, desc.maxAnisotropy = most);
}

CUresult kiln__cpu_texRefSetBorderColor(CUtexref texref, float *color)
{
  SET(texref, color != NULL,
      memcpy(desc.borderColor, color, sizeof desc.borderColor));
}

CUresult kiln__cpu_texRefSetFlags(CUtexref texref, unsigned int flags)
{
  SET(texref, true, desc.flags = flags);
}

/* ---- Getters ------------------------------------------------------------- */

/* The body of a getter of texture references. It checks the reference, then the
 * condition `ok`, then performs `assignment`. */
#define GET(texref, ok, assignment)                                            \
  do {                                                                         \
    CU_TRY(check(texref, false));                                              \
    CU_TRY(valid(ok));                                                         \
    assignment;                                                                \
    return CUDA_SUCCESS;                                                       \
  } while (0)

static bool bound_as(CUtexref r, CUresourcetype type)
{
  return r->bound && r->resource.resType == type;
}

CUresult kiln__cpu_texRefGetAddress(CUdeviceptr *address, CUtexref texref)
{
  GET(texref,
      address != NULL && (bound_as(texref, CU_RESOURCE_TYPE_LINEAR) ||
                          bound_as(texref, CU_RESOURCE_TYPE_PITCH2D)),
      *address = texref->resource.resType == CU_RESOURCE_TYPE_LINEAR
                     ? texref->resource.res.linear.devPtr
                     : texref->resource.res.pitch2D.devPtr);
}

CUresult kiln__cpu_texRefGetArray(CUarray *array, CUtexref texref)
{
  GET(texref, array != NULL && bound_as(texref, CU_RESOURCE_TYPE_ARRAY),
      *array = texref->resource.res.array.hArray);
}

CUresult kiln__cpu_texRefGetMipmappedArray(CUmipmappedArray *mipmap,
                                           CUtexref texref)
{
  GET(texref,
      mipmap != NULL && bound_as(texref, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY),
      *mipmap = texref->resource.res.mipmap.hMipmappedArray);
}

CUresult kiln__cpu_texRefGetAddressMode(CUaddress_mode *mode, CUtexref texref,
                                        int dim)
{
  GET(texref, mode != NULL && dim >= 0 && dim <= 2,
      *mode = texref->desc.addressMode[dim]);
}

CUresult kiln__cpu_texRefGetFilterMode(CUfilter_mode *mode, CUtexref texref)
{
  GET(texref, mode != NULL, *mode = texref->desc.filterMode);
}

CUresult kiln__cpu_texRefGetFormat(CUarray_format *format, int *channels,
                                   CUtexref texref)
{
  GET(texref, format != NULL && channels != NULL,
      (*format = texref->format, *channels = texref->channels));
}

CUresult kiln__cpu_texRefGetMipmapFilterMode(CUfilter_mode *mode,
                                             CUtexref texref)
{
  GET(texref, mode != NULL, *mode = texref->desc.mipmapFilterMode);
}

CUresult kiln__cpu_texRefGetMipmapLevelBias(float *bias, CUtexref texref)
{
  GET(texref, bias != NULL, *bias = texref->desc.mipmapLevelBias);
}

CUresult kiln__cpu_texRefGetMipmapLevelClamp(float *least, float *most,
                                             CUtexref texref)
{
  GET(texref, least != NULL && most != NULL,
      (*least = texref->desc.minMipmapLevelClamp,
       *most = texref->desc.maxMipmapLevelClamp));
}

CUresult kiln__cpu_texRefGetMaxAnisotropy(int *most, CUtexref texref)
{
  GET(texref, most != NULL, *most = (int)texref->desc.maxAnisotropy);
}

CUresult kiln__cpu_texRefGetBorderColor(float *color, CUtexref texref)
{
  GET(texref, color != NULL,
      memcpy(color, texref->desc.borderColor, sizeof texref->desc.borderColor));
}

CUresult kiln__cpu_texRefGetFlags(unsigned int *flags, CUtexref texref)
{
  GET(texref, flags != NULL, *flags = texref->desc.flags);
}
