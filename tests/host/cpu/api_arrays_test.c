/* api_arrays_test.c -- tests arrays, mipmapped arrays, texture objects, surface
 * objects and references of the CPU device's driver. The tests cover shapes,
 * descriptors and wrong arguments. texture_test.c and surface_test.c test what
 * kernels read through these objects. */
#include "api_fixture.h"
#include "support.h"

#include "cpu/api/texture/texels.h"

#include <string.h>

enum { U8 = CU_AD_FORMAT_UNSIGNED_INT8, F32 = CU_AD_FORMAT_FLOAT };
enum { LAYERED = CUDA_ARRAY3D_LAYERED, CUBE = CUDA_ARRAY3D_CUBEMAP };

static const struct {
  CUDA_ARRAY3D_DESCRIPTOR d;
  CUresult rc;
  size_t bytes; /* total size of all texels in bytes */
} shapes[] = {
    {{16, 0, 0, F32, 1, 0}, CUDA_SUCCESS, 64},
    {{16, 4, 0, F32, 4, 0}, CUDA_SUCCESS, 1024},
    {{16, 4, 2, U8, 2, 0}, CUDA_SUCCESS, 256},
    {{16, 0, 5, U8, 1, LAYERED}, CUDA_SUCCESS, 80},
    {{16, 4, 5, U8, 1, LAYERED}, CUDA_SUCCESS, 320},
    {{8, 8, 6, U8, 1, CUBE}, CUDA_SUCCESS, 384},
    {{8, 8, 12, U8, 1, CUBE | LAYERED}, CUDA_SUCCESS, 768},
    {{8, 4, 0, CU_AD_FORMAT_HALF, 2, 0}, CUDA_SUCCESS, 128},
    {{0, 4, 0, F32, 1, 0}, CUDA_ERROR_INVALID_VALUE, 0},
    {{16, 4, 0, F32, 3, 0}, CUDA_ERROR_INVALID_VALUE, 0},
    {{16, 4, 0, 99, 1, 0}, CUDA_ERROR_INVALID_VALUE, 0},
    {{16, 0, 2, F32, 1, 0}, CUDA_ERROR_INVALID_VALUE, 0},
    {{16, 4, 0, F32, 1, LAYERED}, CUDA_ERROR_INVALID_VALUE, 0},
    {{16, 4, 3000, F32, 1, LAYERED}, CUDA_ERROR_INVALID_VALUE, 0},
    {{8, 4, 6, U8, 1, CUBE}, CUDA_ERROR_INVALID_VALUE, 0},
    {{8, 8, 7, U8, 1, CUBE}, CUDA_ERROR_INVALID_VALUE, 0},
    {{8, 8, 7, U8, 1, CUBE | LAYERED}, CUDA_ERROR_INVALID_VALUE, 0},
    {{200000, 0, 0, U8, 1, 0}, CUDA_ERROR_INVALID_VALUE, 0},
    {{131072, 65536, 0, F32, 4, 0}, CUDA_ERROR_OUT_OF_MEMORY, 0},
};

START_TEST(arrays_have_the_shape_asked_for)
{
  CUarray a = NULL;
  CUDA_ARRAY3D_DESCRIPTOR d;
  const kiln__cpu_texels *t;

  is(kiln__cpu_array3DCreate(&a, &shapes[_i].d), shapes[_i].rc);
  if (shapes[_i].rc != CUDA_SUCCESS) {
    ck_assert_ptr_null(a);
    return;
  }
  ok(kiln__cpu_array3DGetDescriptor(&d, a));
  ck_assert(d.Width == shapes[_i].d.Width && d.Height == shapes[_i].d.Height &&
            d.Depth == shapes[_i].d.Depth && d.Format == shapes[_i].d.Format &&
            d.NumChannels == shapes[_i].d.NumChannels &&
            d.Flags == shapes[_i].d.Flags);
  t = &a->texels;
  /* If the array is too small, a sanitizer reports this write. */
  memset(t->data, 1, shapes[_i].bytes);
  ck_assert_uint_eq(t->row_bytes, t->width * t->texel_bytes);
  ck_assert_uint_eq(t->plane_bytes,
                    t->row_bytes * (t->height == 0 ? 1 : t->height));
  ck_assert_uint_eq(t->plane_bytes * (t->layers != 0  ? t->layers
                                      : t->depth != 0 ? t->depth
                                                      : 1),
                    shapes[_i].bytes);
  ok(kiln__cpu_arrayDestroy(a));
  is(kiln__cpu_arrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
  is(kiln__cpu_array3DGetDescriptor(&d, a), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(two_dimensions_have_a_descriptor_of_their_own)
{
  const CUDA_ARRAY_DESCRIPTOR want = {7, 3, U8, 4};
  CUDA_ARRAY_DESCRIPTOR got;
  CUarray a;

  ok(kiln__cpu_arrayCreate(&a, &want));
  ok(kiln__cpu_arrayGetDescriptor(&got, a));
  ck_assert(got.Width == 7 && got.Height == 3 && got.Format == U8 &&
            got.NumChannels == 4);
  is(kiln__cpu_arrayCreate(&a, NULL), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_arrayCreate(NULL, &want), CUDA_ERROR_INVALID_VALUE);
  /* The array is destroyed with its context. */
}
END_TEST

START_TEST(levels_halve)
{
  static const size_t sizes[][3] = {
      {20, 5, 3}, {10, 2, 1}, {5, 1, 1}, {2, 1, 1}, {1, 1, 1}};
  const CUDA_ARRAY3D_DESCRIPTOR d = {20, 5, 3, F32, 1, 0};
  CUDA_ARRAY3D_DESCRIPTOR got;
  CUmipmappedArray mipmap;
  CUarray level;

  /* The driver limits the number of mip levels to 5. */
  ok(kiln__cpu_mipmappedArrayCreate(&mipmap, &d, 99));
  for (unsigned i = 0; i < 5; i++) {
    ok(kiln__cpu_mipmappedArrayGetLevel(&level, mipmap, i));
    ok(kiln__cpu_array3DGetDescriptor(&got, level));
    ck_assert_msg(got.Width == sizes[i][0] && got.Height == sizes[i][1] &&
                      got.Depth == sizes[i][2],
                  "level %u: %zu %zu %zu", i, got.Width, got.Height, got.Depth);
  }
  is(kiln__cpu_mipmappedArrayGetLevel(&level, mipmap, 5),
     CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_arrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
  ok(kiln__cpu_mipmappedArrayDestroy(mipmap));
  is(kiln__cpu_mipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
  is(kiln__cpu_mipmappedArrayCreate(&mipmap, &d, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- Texture and surface objects ----------------------------------------- */

static CUarray array_of(CUarray_format format, unsigned flags)
{
  const CUDA_ARRAY3D_DESCRIPTOR d = {8, 4, 0, format, 1, flags};
  CUarray a;

  ok(kiln__cpu_array3DCreate(&a, &d));
  return a;
}

static CUresult make(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
                     CUtexObject *out)
{
  *out = 0;
  return kiln__cpu_texObjectCreate(out, r, d, NULL);
}

/* Returns the texture that a texture handle refers to. */
static const kiln__cpu_texture *texture_of(uint64_t handle)
{
  const kiln__cpu_texture *t =
      kiln__cpu_texture_find(kiln__cpu_the_machine()->textures, handle);

  ck_assert_ptr_nonnull(t);
  return t;
}

START_TEST(texture_objects_remember_what_they_were_made_of)
{
  const CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY,
                                .res.array.hArray = array_of(F32, 0)};
  const CUDA_TEXTURE_DESC d = {.addressMode = {1, 3, 0},
                               .filterMode = CU_TR_FILTER_MODE_LINEAR,
                               .borderColor = {1, 2, 3, 4}};
  const kiln__cpu_texture *t;
  CUDA_RESOURCE_DESC r2;
  CUDA_TEXTURE_DESC d2;
  CUDA_RESOURCE_VIEW_DESC v2;
  CUtexObject o;

  ok(make(&r, &d, &o));
  ck_assert_uint_ne(o, 0);
  ok(kiln__cpu_texObjectGetResourceDesc(&r2, o));
  ck_assert_ptr_eq(r2.res.array.hArray, r.res.array.hArray);
  ok(kiln__cpu_texObjectGetTextureDesc(&d2, o));
  ck_assert_int_eq(memcmp(&d2, &d, sizeof d), 0);
  is(kiln__cpu_texObjectGetResourceViewDesc(&v2, o), CUDA_ERROR_INVALID_VALUE);
  t = texture_of(o);
  ck_assert(t->linear_filter && !t->normalised && t->border[2] == 3);
  ck_assert_int_eq(t->mode[1], KILN__BORDER);
  /* Wrapping requires normalised coordinates. */
  ck_assert_int_eq(t->mode[2], KILN__CLAMP);
  ck_assert_ptr_eq(t->level[0].data, r.res.array.hArray->texels.data);
  ok(kiln__cpu_texObjectDestroy(o));
  is(kiln__cpu_texObjectDestroy(o), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_texObjectGetTextureDesc(&d2, o), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(linear_memory_is_checked)
{
  CUdeviceptr p = make_memory(4096);
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_LINEAR};
  const CUDA_TEXTURE_DESC d = {0};
  CUtexObject o;

  r.res.linear.devPtr = p;
  r.res.linear.format = F32;
  r.res.linear.numChannels = 4;
  r.res.linear.sizeInBytes = 4096;
  ok(make(&r, &d, &o));
  ck_assert_uint_eq(texture_of(o)->level[0].width, 256);
  r.res.linear.devPtr = p + 16; /* misaligned address */
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  r.res.linear.devPtr = p;
  /* The size extends beyond the end of the allocation. */
  r.res.linear.sizeInBytes = 4112;
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  r.resType = CU_RESOURCE_TYPE_PITCH2D;
  r.res.pitch2D.devPtr = p;
  r.res.pitch2D.format = U8;
  r.res.pitch2D.numChannels = 1;
  r.res.pitch2D.width = 100;
  r.res.pitch2D.height = 32;
  r.res.pitch2D.pitchInBytes = 128;
  ok(make(&r, &d, &o));
  r.res.pitch2D.height = 33;
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  r.res.pitch2D.height = 32;
  /* The pitch must be a multiple of 32 bytes. */
  r.res.pitch2D.pitchInBytes = 120;
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  /* The pitch must not be less than the size of a row. */
  r.res.pitch2D.pitchInBytes = 96;
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  r.resType = 9;
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_memFree(p));
}
END_TEST

START_TEST(contradictions_are_refused)
{
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY,
                          .res.array.hArray = array_of(U8, 0)};
  CUDA_TEXTURE_DESC d = {.filterMode = CU_TR_FILTER_MODE_LINEAR,
                         .flags = CU_TRSF_READ_AS_INTEGER};
  CUtexObject o;

  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  /* Linear filtering is allowed if integer texels are read as normalised
   * floats. */
  d.flags = 0;
  ok(make(&r, &d, &o));
  r.res.array.hArray = array_of(CU_AD_FORMAT_SIGNED_INT32, 0);
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  d.filterMode = 7;
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  d.filterMode = 0;
  d.addressMode[1] = 4;
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_VALUE);
  r.res.array.hArray = (CUarray)(void *)&d;
  is(make(&r, &d, &o), CUDA_ERROR_INVALID_HANDLE);
  is(kiln__cpu_texObjectCreate(&o, NULL, &d, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(views_choose_levels_layers_and_format)
{
  const CUDA_ARRAY3D_DESCRIPTOR desc = {16, 16, 4, F32, 1, LAYERED};
  CUmipmappedArray mipmap;
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
  const CUDA_TEXTURE_DESC d = {.flags = CU_TRSF_NORMALIZED_COORDINATES};
  /* the view format with one unsigned 32-bit channel */
  CUDA_RESOURCE_VIEW_DESC v = {.format = 13,
                               .firstMipmapLevel = 1,
                               .lastMipmapLevel = 2,
                               .firstLayer = 2,
                               .lastLayer = 3};
  const kiln__cpu_texture *t;
  CUtexObject o;

  ok(kiln__cpu_mipmappedArrayCreate(&mipmap, &desc, 3));
  r.res.mipmap.hMipmappedArray = mipmap;
  ok(kiln__cpu_texObjectCreate(&o, &r, &d, &v));
  t = texture_of(o);
  ck_assert_uint_eq(t->n_levels, 2);
  ck_assert_uint_eq(t->level[0].width, 8);
  ck_assert_uint_eq(t->level[1].width, 4);
  ck_assert_uint_eq(t->level[0].layers, 2);
  ck_assert_int_eq(t->level[0].texel, KILN__TEXEL_U32);
  ck_assert_ptr_eq(t->level[0].data,
                   mipmap->levels[1]->texels.data +
                       2 * mipmap->levels[1]->texels.plane_bytes);
  /* The view has 8-bit texels, but the texels of the array have another
   * size. */
  v.format = 1;
  is(kiln__cpu_texObjectCreate(&o, &r, &d, &v), CUDA_ERROR_INVALID_VALUE);
  v.format = 25; /* This view format is block-compressed. */
  is(kiln__cpu_texObjectCreate(&o, &r, &d, &v), CUDA_ERROR_NOT_SUPPORTED);
  v.format = 0;
  v.lastMipmapLevel = 3;
  is(kiln__cpu_texObjectCreate(&o, &r, &d, &v), CUDA_ERROR_INVALID_VALUE);
  v.lastMipmapLevel = 2;
  v.lastLayer = 4;
  is(kiln__cpu_texObjectCreate(&o, &r, &d, &v), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* NVIDIA's driver also accepts arrays that were made without the flag for
 * surfaces. */
START_TEST(surfaces_are_made_of_arrays)
{
  CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY,
                          .res.array.hArray =
                              array_of(F32, CUDA_ARRAY3D_SURFACE_LDST)};
  CUDA_RESOURCE_DESC back;
  CUsurfObject o;

  ok(kiln__cpu_surfObjectCreate(&o, &r));
  ok(kiln__cpu_surfObjectGetResourceDesc(&back, o));
  ck_assert_ptr_eq(back.res.array.hArray, r.res.array.hArray);
  ok(kiln__cpu_surfObjectDestroy(o));
  is(kiln__cpu_surfObjectDestroy(o), CUDA_ERROR_INVALID_VALUE);
  r.res.array.hArray = array_of(F32, 0);
  ok(kiln__cpu_surfObjectCreate(&o, &r));
  ok(kiln__cpu_surfObjectDestroy(o));
  r.resType = CU_RESOURCE_TYPE_LINEAR;
  is(kiln__cpu_surfObjectCreate(&o, &r), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- Texture and surface references -------------------------------------- */

static const char references[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .texref image;\n.visible .global .surfref target;\n"
    ".visible .global .u32 number;\n.visible .entry k() { ret; }\n";

/* Returns the texture whose handle a module's variable holds. */
static const kiln__cpu_texture *texture_in(CUmodule m, const char *name)
{
  const uint32_t number = kiln__cpu_module_global(m->program, name);
  uint64_t handle = 0;

  ck_assert_uint_ne(number, UINT32_MAX);
  memcpy(&handle,
         kiln__cpu_memory_host(kiln__cpu_the_machine()->memory,
                               m->globals[number], 8),
         8);
  return texture_of(handle);
}

START_TEST(references_hold_what_is_bound)
{
  CUmodule m;
  CUtexref r, again;
  CUsurfref s;
  CUarray a = array_of(F32, 0), b = array_of(F32, CUDA_ARRAY3D_SURFACE_LDST);
  CUarray got;
  CUdeviceptr p;
  CUaddress_mode mode;
  size_t offset;
  int channels;
  CUarray_format format;

  ok(kiln__cpu_moduleLoadData(&m, references));
  is(kiln__cpu_moduleGetTexRef(&r, m, "number"), CUDA_ERROR_NOT_FOUND);
  is(kiln__cpu_moduleGetTexRef(&r, m, "target"), CUDA_ERROR_NOT_FOUND);
  ok(kiln__cpu_moduleGetTexRef(&r, m, "image"));
  ok(kiln__cpu_moduleGetTexRef(&again, m, "image"));
  ck_assert_ptr_eq(r, again);
  is(kiln__cpu_texRefGetArray(&got, r), CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_texRefSetAddressMode(r, 0, CU_TR_ADDRESS_MODE_BORDER));
  ok(kiln__cpu_texRefSetArray(r, a, CU_TRSA_OVERRIDE_FORMAT));
  ok(kiln__cpu_texRefGetArray(&got, r));
  ck_assert_ptr_eq(got, a);
  ok(kiln__cpu_texRefGetAddressMode(&mode, r, 0));
  ck_assert_int_eq(mode, CU_TR_ADDRESS_MODE_BORDER);
  /* The variable in the module must refer to a texture with these settings. */
  ck_assert_int_eq(texture_in(m, "image")->mode[0], KILN__BORDER);
  /* A changed setting of a texture reference takes effect immediately. */
  ok(kiln__cpu_texRefSetFilterMode(r, CU_TR_FILTER_MODE_LINEAR));
  ck_assert(texture_in(m, "image")->linear_filter);

  ok(kiln__cpu_memAlloc(&p, 1024));
  ok(kiln__cpu_texRefSetFilterMode(r, CU_TR_FILTER_MODE_POINT));
  ok(kiln__cpu_texRefSetFormat(r, U8, 4));
  ok(kiln__cpu_texRefSetAddress(&offset, r, p + 8, 512));
  ck_assert_uint_eq(offset, 8);
  is(kiln__cpu_texRefSetAddress(NULL, r, p + 8, 512), CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_texRefGetFormat(&format, &channels, r));
  ck_assert(format == U8 && channels == 4);
  is(kiln__cpu_texRefGetArray(&got, r), CUDA_ERROR_INVALID_VALUE);

  ok(kiln__cpu_moduleGetSurfRef(&s, m, "target"));
  is(kiln__cpu_surfRefSetArray(s, a, 0), CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_surfRefSetArray(s, b, 0));
  ok(kiln__cpu_surfRefGetArray(&got, s));
  ck_assert_ptr_eq(got, b);
  ok(kiln__cpu_moduleUnload(m));
  is(kiln__cpu_texRefGetArray(&got, r), CUDA_ERROR_INVALID_HANDLE);

  ok(kiln__cpu_texRefCreate(&r));
  ok(kiln__cpu_texRefSetArray(r, a, CU_TRSA_OVERRIDE_FORMAT));
  ok(kiln__cpu_texRefDestroy(r));
  is(kiln__cpu_texRefDestroy(r), CUDA_ERROR_INVALID_HANDLE);
  ok(kiln__cpu_memFree(p));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_arrays");
  TCase *t = kiln_test_case(
      s, "arrays", 60, setup, teardown,
      TESTS(two_dimensions_have_a_descriptor_of_their_own, levels_halve,
            texture_objects_remember_what_they_were_made_of,
            linear_memory_is_checked, contradictions_are_refused,
            views_choose_levels_layers_and_format, surfaces_are_made_of_arrays,
            references_hold_what_is_bound));

  tcase_add_loop_test(t, arrays_have_the_shape_asked_for, 0, ROWS(shapes));
  return kiln_test_run(s);
}
