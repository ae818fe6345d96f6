/* array.c -- implements CUDA arrays and mipmapped arrays, which hold texels in
 * memory without a device address. A mipmapped array is a list of arrays, one
 * per mipmap level. */
#include "texels.h"

#include <string.h>

enum {
  MAX_WIDTH = 131072,
  MAX_HEIGHT = 65536,
  MAX_3D = 16384,
  MAX_LAYERS = 2048,
  MAX_CUBE = 32768
};

bool kiln__cpu_texel_format(CUarray_format format, unsigned channels,
                            kiln__cpu_texels *out)
{
  static const struct {
    CUarray_format format;
    kiln__cpu_texel texel;
    uint8_t bytes;
  } known[] = {
      {CU_AD_FORMAT_UNSIGNED_INT8, KILN__TEXEL_U8, 1},
      {CU_AD_FORMAT_UNSIGNED_INT16, KILN__TEXEL_U16, 2},
      {CU_AD_FORMAT_UNSIGNED_INT32, KILN__TEXEL_U32, 4},
      {CU_AD_FORMAT_SIGNED_INT8, KILN__TEXEL_S8, 1},
      {CU_AD_FORMAT_SIGNED_INT16, KILN__TEXEL_S16, 2},
      {CU_AD_FORMAT_SIGNED_INT32, KILN__TEXEL_S32, 4},
      {CU_AD_FORMAT_HALF, KILN__TEXEL_F16, 2},
      {CU_AD_FORMAT_FLOAT, KILN__TEXEL_F32, 4},
  };

  if (channels != 1 && channels != 2 && channels != 4)
    return false;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (known[i].format != format)
      continue;
    out->texel = known[i].texel;
    out->channels = (uint8_t)channels;
    out->texel_bytes = (uint8_t)(known[i].bytes * channels);
    return true;
  }
  return false;
}

/* ---- Shapes -------------------------------------------------------------- */

/* Returns whether the dimensions of an array are within the limits of current
 * architectures. */
static bool shape_fits(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
  const bool layered = (d->Flags & CUDA_ARRAY3D_LAYERED) != 0;

  if (d->Width == 0 || d->Width > MAX_WIDTH)
    return false;
  if ((d->Flags & CUDA_ARRAY3D_CUBEMAP) != 0)
    return d->Width == d->Height && d->Width <= MAX_CUBE && d->Depth >= 6 &&
           (layered ? d->Depth % 6 == 0 && d->Depth <= MAX_LAYERS
                    : d->Depth == 6);
  if (d->Height > MAX_HEIGHT)
    return false;
  if (layered)
    return d->Depth >= 1 && d->Depth <= MAX_LAYERS;
  if (d->Depth != 0)
    return d->Height != 0 && d->Width <= MAX_3D && d->Height <= MAX_3D &&
           d->Depth <= MAX_3D;
  return true;
}

/* Computes the memory layout of an array's texels. Rows have no padding, and
 * planes follow each other. Returns false if the dimensions or the format are
 * invalid. */
static bool shape_of(kiln__cpu_texels *t, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
  const bool cube = (d->Flags & CUDA_ARRAY3D_CUBEMAP) != 0;
  const bool layered = cube || (d->Flags & CUDA_ARRAY3D_LAYERED) != 0;

  *t = (kiln__cpu_texels){0};
  if (!shape_fits(d) || !kiln__cpu_texel_format(d->Format, d->NumChannels, t))
    return false;
  t->width = (uint32_t)d->Width;
  t->height = (uint32_t)d->Height;
  t->depth = layered ? 0 : (uint32_t)d->Depth;
  t->layers = layered ? (uint32_t)d->Depth : 0;
  t->cube = cube;
  t->row_bytes = (size_t)t->width * t->texel_bytes;
  t->plane_bytes = t->row_bytes * (t->height == 0 ? 1 : t->height);
  return true;
}

static size_t bytes_of(const kiln__cpu_texels *t)
{
  const uint32_t planes = t->layers != 0  ? t->layers
                          : t->depth != 0 ? t->depth
                                          : 1;

  return t->plane_bytes * planes;
}

/* ---- Arrays -------------------------------------------------------------- */

static CUresult make_array(CUarray *out, CUcontext context,
                           const CUDA_ARRAY3D_DESCRIPTOR *desc,
                           CUmipmappedArray parent)
{
  kiln__cpu_machine *m = machine();
  CUarray a = kiln__calloc(&m->alloc, 1, sizeof *a);

  CU_TRY(allocated(a));
  a->context = context;
  a->format = desc->Format;
  a->flags = desc->Flags;
  a->parent = parent;
  if (!shape_of(&a->texels, desc)) {
    kiln__free(&m->alloc, a);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes_of(&a->texels) <= m->opts.memory_bytes)
    a->texels.data = kiln__calloc(&m->alloc, 1, bytes_of(&a->texels));
  if (a->texels.data == NULL || !kiln__cpu_live_add(a, KILN__HANDLE_ARRAY)) {
    kiln__free(&m->alloc, a->texels.data);
    kiln__free(&m->alloc, a);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = a;
  return CUDA_SUCCESS;
}

static void free_array(CUarray array)
{
  kiln__cpu_machine *m = machine();

  if (array == NULL)
    return;
  kiln__cpu_live_remove(array);
  kiln__free(&m->alloc, array->texels.data);
  kiln__free(&m->alloc, array);
}

/* Adds an array to the list of arrays that are freed when their context is
 * destroyed. Mipmap levels are not listed. */
static void list_array(CUarray array)
{
  kiln__cpu_machine *m = machine();

  pthread_mutex_lock(&m->lock);
  array->next = m->arrays;
  m->arrays = array;
  pthread_mutex_unlock(&m->lock);
}

static void unlist_array(CUarray array)
{
  kiln__cpu_machine *m = machine();

  pthread_mutex_lock(&m->lock);
  for (CUarray *at = &m->arrays; *at != NULL; at = &(*at)->next) {
    if (*at == array) {
      *at = array->next;
      break;
    }
  }
  pthread_mutex_unlock(&m->lock);
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
  CUcontext context;
  CUresult rc;

  CU_TRY(kiln__cpu_current_unsafe(&context));
  rc = make_array(out, context, desc, NULL);
  if (rc == CUDA_SUCCESS)
    list_array(*out);
  return rc;
}

CUresult kiln__cpu_array3DCreate(CUarray *array,
                                 const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
  CU_TRY(valid(array != NULL && desc != NULL));
  return create(array, desc);
}

CUresult kiln__cpu_arrayCreate(CUarray *array,
                               const CUDA_ARRAY_DESCRIPTOR *desc)
{
  CU_TRY(valid(array != NULL && desc != NULL));
  return create(array,
                &(CUDA_ARRAY3D_DESCRIPTOR){.Width = desc->Width,
                                           .Height = desc->Height,
                                           .Format = desc->Format,
                                           .NumChannels = desc->NumChannels});
}

CUresult kiln__cpu_array3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *desc,
                                        CUarray array)
{
  const kiln__cpu_texels *t;

  CU_TRY(kiln__cpu_current_with(array, KILN__HANDLE_ARRAY));
  CU_TRY(valid(desc != NULL));
  t = &array->texels;
  *desc = (CUDA_ARRAY3D_DESCRIPTOR){
      .Width = t->width,
      .Height = t->height,
      .Depth = t->layers != 0 ? t->layers : t->depth,
      .Format = array->format,
      .NumChannels = t->channels,
      .Flags = array->flags,
  };
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_arrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR *desc,
                                      CUarray array)
{
  CUDA_ARRAY3D_DESCRIPTOR d;

  CU_TRY(kiln__cpu_array3DGetDescriptor(&d, array));
  CU_TRY(valid(desc != NULL));
  *desc = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_arrayDestroy(CUarray array)
{
  CUcontext context;
  CUresult rc;

  CU_TRY(kiln__cpu_current_unsafe(&context));
  if (!kiln__cpu_live(array, KILN__HANDLE_ARRAY) || array->parent != NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  /* Wait for kernels that may still read the array. */
  rc = kiln__cpu_wait_context(context);
  unlist_array(array);
  free_array(array);
  return rc;
}

/* ---- Mipmapped arrays ---------------------------------------------------- */

static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
  size_t most = d->Width > d->Height ? d->Width : d->Height;
  unsigned n = 1;

  if ((d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0 &&
      d->Depth > most)
    most = d->Depth;
  while (most > 1 && n < KILN__MAX_LEVELS) {
    most >>= 1;
    n++;
  }
  return n;
}

static size_t halved(size_t size, unsigned level)
{
  return size == 0 ? 0 : size >> level == 0 ? 1 : size >> level;
}

static void free_mipmap(CUmipmappedArray mipmap)
{
  kiln__cpu_live_remove(mipmap);
  for (unsigned i = 0; i < KILN__MAX_LEVELS; i++)
    free_array(mipmap->levels[i]);
  kiln__free(&machine()->alloc, mipmap);
}

static CUresult make_levels(CUmipmappedArray mipmap,
                            const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
  const bool layered =
      (desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;

  for (unsigned i = 0; i < mipmap->n_levels; i++) {
    CUDA_ARRAY3D_DESCRIPTOR d = *desc;

    d.Width = halved(desc->Width, i);
    d.Height = halved(desc->Height, i);
    d.Depth = layered ? desc->Depth : halved(desc->Depth, i);
    CU_TRY(make_array(&mipmap->levels[i], mipmap->context, &d, mipmap));
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_mipmappedArrayCreate(CUmipmappedArray *mipmap,
                                        const CUDA_ARRAY3D_DESCRIPTOR *desc,
                                        unsigned int levels)
{
  kiln__cpu_machine *m = machine();
  CUmipmappedArray made;
  CUcontext context;
  CUresult rc;

  CU_TRY(kiln__cpu_current_unsafe(&context));
  CU_TRY(valid(mipmap != NULL && desc != NULL && levels != 0));
  made = kiln__calloc(&m->alloc, 1, sizeof *made);
  CU_TRY(allocated(made));
  made->context = context;
  made->n_levels = levels < most_levels(desc) ? levels : most_levels(desc);
  rc = make_levels(made, desc);
  if (rc == CUDA_SUCCESS && !kiln__cpu_live_add(made, KILN__HANDLE_MIPMAP))
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  if (rc != CUDA_SUCCESS) {
    free_mipmap(made);
    return rc;
  }
  pthread_mutex_lock(&m->lock);
  made->next = m->mipmaps;
  m->mipmaps = made;
  pthread_mutex_unlock(&m->lock);
  *mipmap = made;
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_mipmappedArrayGetLevel(CUarray *array,
                                          CUmipmappedArray mipmap,
                                          unsigned int level)
{
  CU_TRY(kiln__cpu_current_with(mipmap, KILN__HANDLE_MIPMAP));
  CU_TRY(valid(array != NULL && level < mipmap->n_levels));
  *array = mipmap->levels[level];
  return CUDA_SUCCESS;
}

static void unlist_mipmap(CUmipmappedArray mipmap)
{
  kiln__cpu_machine *m = machine();

  pthread_mutex_lock(&m->lock);
  for (CUmipmappedArray *at = &m->mipmaps; *at != NULL; at = &(*at)->next) {
    if (*at == mipmap) {
      *at = mipmap->next;
      break;
    }
  }
  pthread_mutex_unlock(&m->lock);
}

CUresult kiln__cpu_mipmappedArrayDestroy(CUmipmappedArray mipmap)
{
  CUcontext context;
  CUresult rc;

  CU_TRY(kiln__cpu_current_unsafe(&context));
  CU_TRY(kiln__cpu_known(mipmap, KILN__HANDLE_MIPMAP));
  rc = kiln__cpu_wait_context(context);
  unlist_mipmap(mipmap);
  free_mipmap(mipmap);
  return rc;
}

/* Removes the first array and the first mipmapped array of a context from the
 * lists of live arrays, and returns both through the arguments. */
static void take_one(CUcontext context, CUarray *array,
                     CUmipmappedArray *mipmap)
{
  kiln__cpu_machine *m = machine();
  CUarray *a = &m->arrays;
  CUmipmappedArray *p = &m->mipmaps;

  pthread_mutex_lock(&m->lock);
  while (*a != NULL && (*a)->context != context)
    a = &(*a)->next;
  *array = *a;
  if (*a != NULL)
    *a = (*a)->next;
  while (*p != NULL && (*p)->context != context)
    p = &(*p)->next;
  *mipmap = *p;
  if (*p != NULL)
    *p = (*p)->next;
  pthread_mutex_unlock(&m->lock);
}

void kiln__cpu_context_end_arrays(CUcontext context)
{
  CUarray array;
  CUmipmappedArray mipmap;

  kiln__cpu_context_end_textures(context);
  do {
    take_one(context, &array, &mipmap);
    free_array(array);
    if (mipmap != NULL)
      free_mipmap(mipmap);
  } while (array != NULL || mipmap != NULL);
}
