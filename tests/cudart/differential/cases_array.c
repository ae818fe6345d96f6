/* cases_array.c -- cases of arrays, channel formats, textures and surfaces. */
#include "cases.h"

static const cudaChannelFormatDesc f32 = {32, 0, 0, 0, 2};
static const cudaChannelFormatDesc u8x4 = {8, 8, 8, 8, 1};

static cudaArray_t array(size_t w, size_t h, unsigned flags)
{
  cudaArray_t a = NULL;

  OK(cudaMallocArray(&a, &f32, w, h, flags));
  return a;
}

static resource_desc of_array(cudaArray_t a)
{
  resource_desc r;

  memset(&r, 0, sizeof r);
  KNOWN(r).res.array.array = a;
  return r;
}

CASE(channel_formats)
{
  static const int bits[] = {8, 16, 32};

  for (int b = 0; b < 3; b++)
    for (int n = 1; n <= 4; n++)
      for (int f = 0; f < 3; f++) {
        const int w = bits[b];
        const cudaChannelFormatDesc d = {w, n > 1 ? w : 0, n > 2 ? w : 0,
                                         n > 3 ? w : 0, f};
        cudaArray_t a = NULL;
        const cudaError_t rc = cudaMallocArray(&a, &d, 8, 8, 0);

        printf("  %d bits, %d channels, kind %d: %s\n", w, n, f,
               cudaGetErrorName(rc));
        if (rc == cudaSuccess)
          cudaFreeArray(a);
      }
}
CASE(channel_formats_bad)
{
  static const cudaChannelFormatDesc bad[] = {
      {0, 0, 0, 0, 2},   {7, 0, 0, 0, 1},   {64, 0, 0, 0, 2}, {32, 16, 0, 0, 2},
      {32, 0, 32, 0, 2}, {32, 0, 0, 0, 99}, {8, 0, 0, 0, 2},  {-8, 0, 0, 0, 1}};

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cudaArray_t a;

    T(ANY, cudaMallocArray(&a, &bad[i], 8, 8, 0));
  }
}
CASE(channel_make)
{
  const cudaChannelFormatDesc d = cudaCreateChannelDesc(8, 16, 32, 0, 1);

  V(8, d.x);
  V(16, d.y);
  V(32, d.z);
  V(1, d.f);
}
CASE(array_life)
{
  cudaArray_t a = array(16, 4, 0);
  cudaChannelFormatDesc d;
  cudaExtent e;
  unsigned f = 9;

  OK(cudaArrayGetInfo(&d, &e, &f, a));
  V(32, d.x);
  V(16, e.width);
  V(4, e.height);
  V(0, e.depth);
  V(0, f);
  OK(cudaGetChannelDesc(&d, a));
  V(2, d.f);
  OK(cudaFreeArray(a));
}
CASE(array_one_row)
{
  cudaArray_t a = array(16, 0, 0);
  cudaExtent e;

  OK(cudaArrayGetInfo(NULL, &e, NULL, a));
  V(0, e.height);
  OK(cudaFreeArray(a));
}
CASE(array_bad)
{
  cudaArray_t a;

  BAD(cudaMallocArray(NULL, &f32, 8, 8, 0));
  T(ANY, cudaMallocArray(&a, &f32, 0, 8, 0));
  BAD(cudaMallocArray(&a, &f32, 1 << 20, 1 << 20, 0));
  T(ANY, cudaMallocArray(&a, &f32, 8, 8, 0x400));
}
CASE(array_free_null)
{
  OK(cudaFreeArray(NULL));
  OK(cudaFreeMipmappedArray(NULL));
}
CASE(array_copies)
{
  cudaArray_t a = array(4, 2, 0);
  float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};

  OK(cudaMemcpy2DToArray(a, 0, 0, in, 16, 16, 2, cudaMemcpyHostToDevice));
  OK(cudaMemcpy2DFromArray(out, 16, a, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
  V(8, out[7]);
  OK(cudaMemcpy2DFromArray(out, 8, a, 8, 1, 8, 1, cudaMemcpyDeviceToHost));
  V(7, out[0]);
  OK(cudaFreeArray(a));
}
CASE(array_copy_past_the_end)
{
  cudaArray_t a = array(4, 2, 0);
  float in[32] = {0};

  BAD(cudaMemcpy2DToArray(a, 0, 0, in, 32, 32, 2, cudaMemcpyHostToDevice));
  BAD(cudaMemcpy2DToArray(a, 0, 1, in, 16, 16, 2, cudaMemcpyHostToDevice));
  BAD(cudaMemcpy2DToArray(a, 4, 0, in, 16, 16, 2, cudaMemcpyHostToDevice));
  OK(cudaFreeArray(a));
}
CASE(array_copy_pitch_too_small)
{
  cudaArray_t a = array(4, 2, 0);
  float in[8] = {0};

  T(cudaErrorInvalidPitchValue,
    cudaMemcpy2DToArray(a, 0, 0, in, 8, 16, 2, cudaMemcpyHostToDevice));
  OK(cudaFreeArray(a));
}
CASE(array_copy_old_forms)
{
  cudaArray_t a = array(4, 2, 0);
  float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};

  OK(cudaMemcpyToArray(a, 0, 0, in, 32, cudaMemcpyHostToDevice));
  OK(cudaMemcpyFromArray(out, a, 0, 0, 32, cudaMemcpyDeviceToHost));
  V(8, out[7]);
  OK(cudaFreeArray(a));
}
CASE(array_between)
{
  cudaArray_t a = array(4, 2, 0), b = array(4, 2, 0);
  float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};

  OK(cudaMemcpy2DToArray(a, 0, 0, in, 16, 16, 2, cudaMemcpyHostToDevice));
  OK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, 16, 2,
                              cudaMemcpyDeviceToDevice));
  OK(cudaMemcpy2DFromArray(out, 16, b, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
  V(5, out[4]);
  OK(cudaFreeArray(a));
  OK(cudaFreeArray(b));
}
CASE(array_3d)
{
  cudaArray_t a = NULL;
  cudaMemcpy3DParms c;
  float in[24], out[24] = {0};

  for (int i = 0; i < 24; i++)
    in[i] = (float)i;
  OK(cudaMalloc3DArray(&a, &f32, (cudaExtent){4, 3, 2}, 0));
  memset(&c, 0, sizeof c);
  c.srcPtr = (cudaPitchedPtr){in, 16, 4, 3};
  c.dstArray = a;
  c.extent = (cudaExtent){4, 3, 2};
  c.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&c));
  memset(&c, 0, sizeof c);
  c.srcArray = a;
  c.dstPtr = (cudaPitchedPtr){out, 16, 4, 3};
  c.extent = (cudaExtent){4, 3, 2};
  c.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&c));
  V(23, out[23]);
  c.extent.depth = 3;
  BAD(cudaMemcpy3D(&c));
  BAD(cudaMemcpy3D(NULL));
  OK(cudaFreeArray(a));
}
CASE(copy_3d_no_source)
{
  cudaMemcpy3DParms c;

  memset(&c, 0, sizeof c);
  c.extent = (cudaExtent){4, 3, 2};
  c.kind = cudaMemcpyHostToDevice;
  BAD(cudaMemcpy3D(&c));
}
CASE(array_layers)
{
  cudaArray_t a = NULL;
  cudaExtent e;
  unsigned f = 0;

  OK(cudaMalloc3DArray(&a, &f32, (cudaExtent){8, 8, 3}, 1));
  OK(cudaArrayGetInfo(NULL, &e, &f, a));
  V(3, e.depth);
  V(1, f);
  OK(cudaFreeArray(a));
}
CASE(array_cube)
{
  cudaArray_t a = NULL;

  OK(cudaMalloc3DArray(&a, &f32, (cudaExtent){8, 8, 6}, 4));
  OK(cudaFreeArray(a));
  BAD(cudaMalloc3DArray(&a, &f32, (cudaExtent){8, 8, 5}, 4));
  BAD(cudaMalloc3DArray(&a, &f32, (cudaExtent){8, 4, 6}, 4));
}
CASE(mipmap)
{
  cudaMipmappedArray_t m = NULL;
  cudaArray_t a = NULL;
  cudaExtent e;

  OK(cudaMallocMipmappedArray(&m, &f32, (cudaExtent){16, 8, 0}, 4, 0));
  OK(cudaGetMipmappedArrayLevel(&a, m, 2));
  OK(cudaArrayGetInfo(NULL, &e, NULL, a));
  V(4, e.width);
  V(2, e.height);
  BAD(cudaGetMipmappedArrayLevel(&a, m, 9));
  BAD(cudaGetMipmappedArrayLevel(NULL, m, 0));
  OK(cudaFreeMipmappedArray(m));
}
CASE(texture_life)
{
  cudaArray_t a = array(4, 4, 0);
  resource_desc r = of_array(a), back;
  cudaTextureDesc_12 d, seen;
  cudaTextureObject_t t = 0;

  memset(&d, 0, sizeof d);
  d.known.normalizedCoords = 1;
  d.known.addressMode[0] = 1;
  OK(cudaCreateTextureObject(&t, &r, &d, NULL));
  OK(cudaGetTextureObjectResourceDesc(&back, t));
  V(1, KNOWN(back).res.array.array == a);
  OK(cudaGetTextureObjectTextureDesc(&seen, t));
  V(1, seen.known.addressMode[0]);
  V(1, seen.known.normalizedCoords);
  OK(cudaDestroyTextureObject(t));
  OK(cudaFreeArray(a));
}
CASE(texture_null)
{
  cudaArray_t a = array(4, 4, 0);
  resource_desc r = of_array(a);
  cudaTextureDesc_12 d;
  cudaTextureObject_t t;

  memset(&d, 0, sizeof d);
  BAD(cudaCreateTextureObject(NULL, &r, &d, NULL));
  BAD(cudaCreateTextureObject(&t, NULL, &d, NULL));
  T(ANY, cudaCreateTextureObject(&t, &r, NULL, NULL));
  T(ANY, cudaDestroyTextureObject(0));
  OK(cudaFreeArray(a));
}
CASE(texture_bad_modes)
{
  cudaArray_t a = array(4, 4, 0);
  resource_desc r = of_array(a);
  cudaTextureDesc_12 d;
  cudaTextureObject_t t;

  memset(&d, 0, sizeof d);
  d.known.addressMode[0] = 9;
  T(ANY, cudaCreateTextureObject(&t, &r, &d, NULL));
  memset(&d, 0, sizeof d);
  d.known.filterMode = 9;
  T(ANY, cudaCreateTextureObject(&t, &r, &d, NULL));
  memset(&d, 0, sizeof d);
  d.known.readMode = 1;
  T(ANY, cudaCreateTextureObject(&t, &r, &d, NULL));
  KNOWN(r).resType = 9;
  memset(&d, 0, sizeof d);
  T(ANY, cudaCreateTextureObject(&t, &r, &d, NULL));
  OK(cudaFreeArray(a));
}
CASE(texture_linear)
{
  resource_desc r;
  cudaTextureDesc_12 d;
  cudaTextureObject_t t;
  char *p;

  OK(cudaMalloc((void **)&p, 1024));
  memset(&r, 0, sizeof r);
  memset(&d, 0, sizeof d);
  KNOWN(r).resType = cudaResourceTypeLinear;
  KNOWN(r).res.linear.devPtr = p;
  KNOWN(r).res.linear.desc = u8x4;
  KNOWN(r).res.linear.sizeInBytes = 1024;
  OK(cudaCreateTextureObject(&t, &r, &d, NULL));
  OK(cudaDestroyTextureObject(t));
  KNOWN(r).res.linear.devPtr = p + 1;
  T(ANY, cudaCreateTextureObject(&t, &r, &d, NULL));
  KNOWN(r).res.linear.devPtr = NULL;
  BAD(cudaCreateTextureObject(&t, &r, &d, NULL));
  OK(cudaFree(p));
}
CASE(texture_pitched)
{
  resource_desc r;
  cudaTextureDesc_12 d;
  cudaTextureObject_t t;
  void *p;
  size_t pitch;

  OK(cudaMallocPitch(&p, &pitch, 64, 4));
  memset(&r, 0, sizeof r);
  memset(&d, 0, sizeof d);
  KNOWN(r).resType = cudaResourceTypePitch2D;
  KNOWN(r).res.pitch2D.devPtr = p;
  KNOWN(r).res.pitch2D.desc = f32;
  KNOWN(r).res.pitch2D.width = 16;
  KNOWN(r).res.pitch2D.height = 4;
  KNOWN(r).res.pitch2D.pitchInBytes = pitch;
  OK(cudaCreateTextureObject(&t, &r, &d, NULL));
  OK(cudaDestroyTextureObject(t));
  KNOWN(r).res.pitch2D.pitchInBytes = 33;
  T(ANY, cudaCreateTextureObject(&t, &r, &d, NULL));
  OK(cudaFree(p));
}
CASE(surface_life)
{
  cudaArray_t a = array(4, 4, 2);
  resource_desc r = of_array(a), back;
  cudaSurfaceObject_t s = 0;

  OK(cudaCreateSurfaceObject(&s, &KNOWN(r)));
  OK(cudaGetSurfaceObjectResourceDesc(&back, s));
  V(1, KNOWN(back).res.array.array == a);
  OK(cudaDestroySurfaceObject(s));
  OK(cudaFreeArray(a));
}
CASE(surface_of_plain_array)
{
  cudaArray_t a = array(4, 4, 0);
  resource_desc r = of_array(a);
  cudaSurfaceObject_t s;

  OK(cudaCreateSurfaceObject(&s, &KNOWN(r)));
  BAD(cudaCreateSurfaceObject(NULL, &KNOWN(r)));
  OK(cudaFreeArray(a));
}
CASE(surface_of_linear_memory)
{
  resource_desc r;
  cudaSurfaceObject_t s;

  memset(&r, 0, sizeof r);
  KNOWN(r).resType = cudaResourceTypeLinear;
  T(ANY, cudaCreateSurfaceObject(&s, &KNOWN(r)));
}
