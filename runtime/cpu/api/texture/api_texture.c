/* api_texture.c -- implements texture and surface objects.
 *
 * The creation of an object converts the descriptors of the API into the form
 * that the handlers of texture instructions read. The result is stored in a
 * table under a handle, which the program passes to kernels. The checks are
 * those of the driver. */
#include "texels.h"

#include <string.h>

typedef struct kiln__cpu_texture_object {
  CUcontext context;
  uint64_t handle;
  bool surface;
  bool has_view;
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC desc;
  CUDA_RESOURCE_VIEW_DESC view;
  struct kiln__cpu_texture_object *next;
} kiln__cpu_texture_object;

/* Limits of textures. Each limit equals the device attribute of the same
 * name. */
enum {
  TEXTURE_ALIGNMENT = 512,
  PITCH_ALIGNMENT = 32,
  MAX_LINEAR = 1 << 27,
  MAX_PITCHED = 131072
};

/* ---- Conversion of resources to texels ----------------------------------- */

/* Describes linear memory as one row of texels. The memory has to lie in one
 * allocation. */
static CUresult linear_texels(kiln__cpu_texels *t, const CUDA_RESOURCE_DESC *r)
{
  const size_t bytes = r->res.linear.sizeInBytes;

  *t = (kiln__cpu_texels){0};
  CU_TRY(valid(kiln__cpu_texel_format(r->res.linear.format,
                                      r->res.linear.numChannels, t) &&
               r->res.linear.devPtr % TEXTURE_ALIGNMENT == 0 &&
               bytes / t->texel_bytes != 0 &&
               bytes / t->texel_bytes <= MAX_LINEAR));
  t->address = r->res.linear.devPtr;
  t->data = kiln__cpu_memory_host(machine()->memory, t->address, bytes);
  t->width = (uint32_t)(bytes / t->texel_bytes);
  t->row_bytes = t->plane_bytes = bytes;
  return valid(t->data != NULL);
}

/* Describes pitched memory as rows of texels. The memory has to lie in one
 * allocation. */
static CUresult pitched_texels(kiln__cpu_texels *t, const CUDA_RESOURCE_DESC *r)
{
  const size_t width = r->res.pitch2D.width, height = r->res.pitch2D.height;
  const size_t pitch = r->res.pitch2D.pitchInBytes;

  *t = (kiln__cpu_texels){0};
  CU_TRY(valid(kiln__cpu_texel_format(r->res.pitch2D.format,
                                      r->res.pitch2D.numChannels, t) &&
               r->res.pitch2D.devPtr % TEXTURE_ALIGNMENT == 0 && width != 0 &&
               height != 0 && width <= MAX_PITCHED && height <= MAX_PITCHED &&
               pitch % PITCH_ALIGNMENT == 0 &&
               pitch >= width * t->texel_bytes && pitch <= UINT32_MAX));
  t->address = r->res.pitch2D.devPtr;
  t->width = (uint32_t)width;
  t->height = (uint32_t)height;
  t->row_bytes = pitch;
  t->plane_bytes = pitch * height;
  t->data =
      kiln__cpu_memory_host(machine()->memory, t->address,
                            pitch * (height - 1) + width * t->texel_bytes);
  return valid(t->data != NULL);
}

static CUresult resource(kiln__cpu_texture *out, const CUDA_RESOURCE_DESC *r)
{
  out->n_levels = 1;
  switch (r->resType) {
  case CU_RESOURCE_TYPE_ARRAY:
    if (!kiln__cpu_live(r->res.array.hArray, KILN__HANDLE_ARRAY))
      return CUDA_ERROR_INVALID_HANDLE;
    out->level[0] = r->res.array.hArray->texels;
    return CUDA_SUCCESS;
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    if (!kiln__cpu_live(r->res.mipmap.hMipmappedArray, KILN__HANDLE_MIPMAP))
      return CUDA_ERROR_INVALID_HANDLE;
    out->n_levels = r->res.mipmap.hMipmappedArray->n_levels;
    for (unsigned i = 0; i < out->n_levels; i++)
      out->level[i] = r->res.mipmap.hMipmappedArray->levels[i]->texels;
    return CUDA_SUCCESS;
  case CU_RESOURCE_TYPE_LINEAR:
    return linear_texels(&out->level[0], r);
  case CU_RESOURCE_TYPE_PITCH2D:
    return pitched_texels(&out->level[0], r);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

/* ---- Resource views: another format, or a range of levels and layers ----- */

enum { VIEW_FORMATS = 24, VIEW_COMPRESSED_LAST = 34 };

static bool view_format(CUresourceViewFormat format, kiln__cpu_texels *t)
{
  /* The component types of resource view formats. The enumeration has three
   * formats per type: CU_RES_VIEW_FORMAT_UINT_1X8 = 1 is followed by 2X8, 4X8,
   * SINT_1X8, ... */
  static const CUarray_format kinds[] = {
      CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,
      CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16,
      CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
      CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
  const unsigned i = (unsigned)format - 1;
  kiln__cpu_texels wanted = *t;

  if (format < 1 || format > VIEW_FORMATS ||
      !kiln__cpu_texel_format(kinds[i / 3], 1U << (i % 3), &wanted) ||
      wanted.texel_bytes != t->texel_bytes)
    return false;
  *t = wanted;
  return true;
}

static CUresult apply_view(kiln__cpu_texture *t,
                           const CUDA_RESOURCE_VIEW_DESC *v)
{
  const uint32_t layers = t->level[0].layers;

  if (v->format > VIEW_FORMATS && v->format <= VIEW_COMPRESSED_LAST)
    return CUDA_ERROR_NOT_SUPPORTED;
  CU_TRY(valid(v->lastMipmapLevel < t->n_levels &&
               v->firstMipmapLevel <= v->lastMipmapLevel &&
               (layers == 0 ||
                (v->lastLayer < layers && v->firstLayer <= v->lastLayer))));
  t->n_levels = v->lastMipmapLevel - v->firstMipmapLevel + 1;
  for (uint32_t i = 0; i < t->n_levels; i++) {
    kiln__cpu_texels *l = &t->level[i];

    *l = t->level[i + v->firstMipmapLevel];
    CU_TRY(valid(v->format == 0 || view_format(v->format, l)));
    if (layers != 0) {
      l->data += v->firstLayer * l->plane_bytes;
      l->layers = v->lastLayer - v->firstLayer + 1;
    }
  }
  return CUDA_SUCCESS;
}

/* ---- Sampling ------------------------------------------------------------ */

static bool integer_texels(const kiln__cpu_texels *t)
{
  return t->texel != KILN__TEXEL_F16 && t->texel != KILN__TEXEL_F32;
}

static CUresult sampling(kiln__cpu_texture *t, const CUDA_TEXTURE_DESC *d)
{
  const kiln__cpu_texels *l = &t->level[0];

  t->linear_filter = d->filterMode == CU_TR_FILTER_MODE_LINEAR;
  t->linear_mipmap = d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  t->normalised = (d->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  t->as_integer = (d->flags & CU_TRSF_READ_AS_INTEGER) != 0;
  t->srgb = (d->flags & CU_TRSF_SRGB) != 0;
  t->seamless_cube = (d->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  for (int i = 0; i < 3; i++) {
    CU_TRY(valid(d->addressMode[i] >= CU_TR_ADDRESS_MODE_WRAP &&
                 d->addressMode[i] <= CU_TR_ADDRESS_MODE_BORDER));
    t->mode[i] = (kiln__cpu_address_mode)d->addressMode[i];
    /* The modes wrap and mirror require normalised coordinates. */
    if (!t->normalised &&
        (t->mode[i] == KILN__WRAP || t->mode[i] == KILN__MIRROR))
      t->mode[i] = KILN__CLAMP;
  }
  CU_TRY(valid(d->filterMode >= CU_TR_FILTER_MODE_POINT &&
               d->filterMode <= CU_TR_FILTER_MODE_LINEAR &&
               d->mipmapFilterMode >= CU_TR_FILTER_MODE_POINT &&
               d->mipmapFilterMode <= CU_TR_FILTER_MODE_LINEAR));
  /* Texels that are read as integers cannot be interpolated. */
  CU_TRY(valid(!t->linear_filter || !integer_texels(l) ||
               (!t->as_integer && l->texel != KILN__TEXEL_U32 &&
                l->texel != KILN__TEXEL_S32)));
  CU_TRY(valid(t->n_levels <= 1 || t->normalised));
  memcpy(t->border, d->borderColor, sizeof t->border);
  t->level_bias = d->mipmapLevelBias;
  t->min_level = d->minMipmapLevelClamp;
  t->max_level = d->maxMipmapLevelClamp;
  t->max_anisotropy = d->maxAnisotropy;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_texture_make(kiln__cpu_texture *out,
                                const CUDA_RESOURCE_DESC *r,
                                const CUDA_TEXTURE_DESC *d,
                                const CUDA_RESOURCE_VIEW_DESC *view)
{
  CUresult rc;

  memset(out, 0, sizeof *out);
  CU_TRY(valid(r->flags == 0));
  rc = resource(out, r);
  if (rc == CUDA_SUCCESS && view != NULL) {
    CU_TRY(valid(r->resType == CU_RESOURCE_TYPE_ARRAY ||
                 r->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY));
    rc = apply_view(out, view);
  }
  return rc == CUDA_SUCCESS ? sampling(out, d) : rc;
}

CUresult kiln__cpu_surface_make(kiln__cpu_surface *out,
                                const CUDA_RESOURCE_DESC *r)
{
  CU_TRY(valid(r->resType == CU_RESOURCE_TYPE_ARRAY && r->flags == 0));
  CU_TRY(kiln__cpu_known(r->res.array.hArray, KILN__HANDLE_ARRAY));
  out->texels = r->res.array.hArray->texels;
  return CUDA_SUCCESS;
}

/* ---- Texture and surface objects ----------------------------------------- */

void kiln__cpu_handle_remove(uint64_t handle, bool surface)
{
  if (surface)
    kiln__cpu_surface_remove(machine()->textures, handle);
  else
    kiln__cpu_texture_remove(machine()->textures, handle);
}

/* Adds a texture or surface object to the list of the CPU device. On failure it
 * removes the object's handle again. */
static CUresult list_object(const kiln__cpu_texture_object *object)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_texture_object *o = kiln__alloc(&m->alloc, sizeof *o);

  if (o == NULL) {
    kiln__cpu_handle_remove(object->handle, object->surface);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *o = *object;
  pthread_mutex_lock(&m->lock);
  o->next = m->texture_objects;
  m->texture_objects = o;
  pthread_mutex_unlock(&m->lock);
  return CUDA_SUCCESS;
}

static kiln__cpu_texture_object **find_locked(kiln__cpu_machine *m,
                                              uint64_t handle, bool surface)
{
  kiln__cpu_texture_object **at = &m->texture_objects;

  while (*at != NULL && ((*at)->handle != handle || (*at)->surface != surface))
    at = &(*at)->next;
  return at;
}

/* Copies the descriptors from which the program made the object. */
static CUresult look_up(uint64_t handle, bool surface,
                        kiln__cpu_texture_object *out)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_texture_object *o;

  CU_TRY(kiln__cpu_check_current());
  pthread_mutex_lock(&m->lock);
  o = *find_locked(m, handle, surface);
  if (o != NULL)
    *out = *o;
  pthread_mutex_unlock(&m->lock);
  return valid(o != NULL);
}

static CUresult destroy(uint64_t handle, bool surface)
{
  kiln__cpu_machine *m = machine();
  kiln__cpu_texture_object **at, *o;
  CUcontext context;
  CUresult rc;

  CU_TRY(kiln__cpu_current(&context));
  /* Wait for kernels that may still read through the object. */
  rc = kiln__cpu_wait_context(context);
  pthread_mutex_lock(&m->lock);
  at = find_locked(m, handle, surface);
  o = *at;
  if (o != NULL)
    *at = o->next;
  pthread_mutex_unlock(&m->lock);
  CU_TRY(valid(o != NULL));
  kiln__cpu_handle_remove(handle, surface);
  kiln__free(&m->alloc, o);
  return rc;
}

void kiln__cpu_context_end_textures(CUcontext context)
{
  kiln__cpu_machine *m = machine();

  for (;;) {
    kiln__cpu_texture_object **at = &m->texture_objects, *o;

    pthread_mutex_lock(&m->lock);
    while (*at != NULL && (*at)->context != context)
      at = &(*at)->next;
    o = *at;
    if (o != NULL)
      *at = o->next;
    pthread_mutex_unlock(&m->lock);
    if (o == NULL)
      return;
    kiln__cpu_handle_remove(o->handle, o->surface);
    kiln__free(&m->alloc, o);
  }
}

CUresult kiln__cpu_texObjectCreate(CUtexObject *texture,
                                   const CUDA_RESOURCE_DESC *r,
                                   const CUDA_TEXTURE_DESC *desc,
                                   const CUDA_RESOURCE_VIEW_DESC *view)
{
  kiln__cpu_texture_object o = {0};
  kiln__cpu_texture t;
  CUresult rc;

  CU_TRY(kiln__cpu_current(&o.context));
  CU_TRY(valid(texture != NULL && r != NULL && desc != NULL));
  o.resource = *r;
  o.desc = *desc;
  o.has_view = view != NULL;
  if (view != NULL)
    o.view = *view;
  CU_TRY(kiln__cpu_texture_make(&t, r, desc, view));
  if (kiln__cpu_texture_add(machine()->textures, &t, &o.handle) != KILN_OK)
    return CUDA_ERROR_OUT_OF_MEMORY;
  rc = list_object(&o);
  if (rc == CUDA_SUCCESS)
    *texture = o.handle;
  return rc;
}

CUresult kiln__cpu_texObjectDestroy(CUtexObject texture)
{
  return destroy(texture, false);
}

CUresult kiln__cpu_texObjectGetResourceDesc(CUDA_RESOURCE_DESC *desc,
                                            CUtexObject texture)
{
  kiln__cpu_texture_object o;

  CU_TRY(look_up(texture, false, &o));
  return CU_STORE(desc, o.resource);
}

CUresult kiln__cpu_texObjectGetTextureDesc(CUDA_TEXTURE_DESC *desc,
                                           CUtexObject texture)
{
  kiln__cpu_texture_object o;

  CU_TRY(look_up(texture, false, &o));
  return CU_STORE(desc, o.desc);
}

CUresult kiln__cpu_texObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *desc,
                                                CUtexObject texture)
{
  kiln__cpu_texture_object o;

  CU_TRY(look_up(texture, false, &o));
  CU_TRY(valid(desc != NULL && o.has_view));
  *desc = o.view;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_surfObjectCreate(CUsurfObject *surface,
                                    const CUDA_RESOURCE_DESC *r)
{
  kiln__cpu_texture_object o = {.surface = true};
  kiln__cpu_surface s;
  CUresult rc;

  CU_TRY(kiln__cpu_current(&o.context));
  CU_TRY(valid(surface != NULL && r != NULL));
  o.resource = *r;
  CU_TRY(kiln__cpu_surface_make(&s, r));
  if (kiln__cpu_surface_add(machine()->textures, &s, &o.handle) != KILN_OK)
    return CUDA_ERROR_OUT_OF_MEMORY;
  rc = list_object(&o);
  if (rc == CUDA_SUCCESS)
    *surface = o.handle;
  return rc;
}

CUresult kiln__cpu_surfObjectDestroy(CUsurfObject surface)
{
  return destroy(surface, true);
}

CUresult kiln__cpu_surfObjectGetResourceDesc(CUDA_RESOURCE_DESC *desc,
                                             CUsurfObject surface)
{
  kiln__cpu_texture_object o;

  CU_TRY(look_up(surface, true, &o));
  return CU_STORE(desc, o.resource);
}
