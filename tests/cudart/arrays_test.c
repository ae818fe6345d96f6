/* arrays_test.c -- tests arrays, textures, surfaces, pitched memory, copies in several
 * dimensions, batches and pools of the runtime library. Results are compared with
 * loops over host memory. */
#include "host_code.h"

static const char ptx[] =
    ".version 6.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry sample(.param .u64 t, .param .u64 to, .param .u32 w)\n{\n"
    "  .reg .u64 %t, %to, %at;\n  .reg .u32 %x, %y, %w, %i;\n  .reg .f32 "
    "%f<6>;\n"
    "  ld.param.u64 %t, [t];\n  ld.param.u64 %to, [to];\n"
    "  ld.param.u32 %w, [w];\n  mov.u32 %x, %tid.x;\n  mov.u32 %y, %tid.y;\n"
    "  cvt.rn.f32.u32 %f4, %x;\n  cvt.rn.f32.u32 %f5, %y;\n"
    "  add.f32 %f4, %f4, 0f3f000000;\n  add.f32 %f5, %f5, 0f3f000000;\n"
    "  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f4, %f5}];\n"
    "  mad.lo.u32 %i, %y, %w, %x;\n  mad.wide.u32 %at, %i, 4, %to;\n"
    "  st.global.f32 [%at], %f0;\n  ret;\n}\n"
    ".visible .entry twice(.param .u64 s)\n{\n"
    "  .reg .u64 %s;\n  .reg .u32 %x, %y;\n  .reg .f32 %f;\n  .reg .b32 %b;\n"
    "  ld.param.u64 %s, [s];\n  mov.u32 %x, %tid.x;\n  mov.u32 %y, %tid.y;\n"
    "  shl.b32 %x, %x, 2;\n"
    "  suld.b.2d.b32.trap {%b}, [%s, {%x, %y}];\n  mov.b32 %f, %b;\n"
    "  add.f32 %f, %f, %f;\n  mov.b32 %b, %f;\n"
    "  sust.b.2d.b32.trap [%s, {%x, %y}], {%b};\n  ret;\n}\n";

#if KILN__RT_MAJOR == 13
typedef cudaResourceDesc_13 resource_desc;
#define KNOWN(r) ((r).known)
#else
typedef cudaResourceDesc_11 resource_desc;
#define KNOWN(r) (r)
#endif
#if KILN__RT_MAJOR == 11
typedef cudaTextureDesc_11 texture_desc;
#define MODES(t) (t)
#else
typedef cudaTextureDesc_12 texture_desc;
#define MODES(t) ((t).known)
#endif

enum { W = 16, H = 8, N = W * H };

static char sample, twice;
static fat_binary binary;
static void **image;
static const dim3 one = {1, 1, 1}, block = {W, H, 1};
static const cudaChannelFormatDesc floats = {32, 0, 0, 0,
                                             cudaChannelFormatKindFloat};
static float in[N], out[N];

static void setup(void)
{
  fat_binary_make(&binary, ptx);
  image = __cudaRegisterFatBinary(&binary);
  register_kernel(image, &sample, "sample");
  register_kernel(image, &twice, "twice");
  for (int i = 0; i < N; i++)
    in[i] = (float)(i * 3 % 101);
  memset(out, 0, sizeof out);
}

static void teardown(void)
{
  __cudaUnregisterFatBinary(image);
  free(binary.data);
}

static cudaArray_t full_array(void)
{
  cudaArray_t a;

  must(cudaMallocArray(&a, &floats, W, H, CUDA_ARRAY3D_SURFACE_LDST));
  must(cudaMemcpy2DToArray(a, 0, 0, in, W * 4, W * 4, H,
                           cudaMemcpyHostToDevice));
  return a;
}

START_TEST(arrays_describe_themselves)
{
  cudaArray_t a = full_array(), level;
  cudaMipmappedArray_t m;
  cudaChannelFormatDesc d;
  cudaExtent e;
  unsigned flags;

  must(cudaArrayGetInfo(&d, &e, &flags, a));
  ck_assert(d.x == 32 && d.y == 0 && d.f == cudaChannelFormatKindFloat);
  ck_assert(e.width == W && e.height == H && e.depth == 0);
  ck_assert_uint_eq(flags, CUDA_ARRAY3D_SURFACE_LDST);
  must(cudaMallocMipmappedArray(&m, &floats, (cudaExtent){8, 8, 0}, 3, 0));
  must(cudaGetMipmappedArrayLevel(&level, m, 1));
  must(cudaArrayGetInfo(NULL, &e, NULL, level));
  ck_assert(e.width == 4 && e.height == 4);
  must(cudaFreeMipmappedArray(m));
  must(cudaFreeArray(a));
  must(cudaFreeArray(NULL));
  fails(cudaMallocArray(&a, &(cudaChannelFormatDesc){8, 8, 8, 0, 1}, 4, 4, 0),
        cudaErrorInvalidChannelDescriptor);
  fails(cudaMallocArray(&a, &(cudaChannelFormatDesc){8, 16, 0, 0, 1}, 4, 4, 0),
        cudaErrorInvalidChannelDescriptor);
  fails(cudaMallocArray(NULL, &floats, 4, 4, 0), cudaErrorInvalidValue);
}
END_TEST

START_TEST(kernels_read_textures_and_write_surfaces)
{
  cudaArray_t a = full_array();
  resource_desc r, back;
  texture_desc t, modes;
  cudaTextureObject_t texture;
  cudaSurfaceObject_t surface;
  unsigned w = W;
  void *to;

  memset(&r, 0, sizeof r);
  memset(&t, 0, sizeof t);
  KNOWN(r).res.array.array = a;
  MODES(t).addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
  must(cudaCreateTextureObject(&texture, &r, &t, NULL));
  must(cudaMalloc(&to, sizeof out));
  must(cudaLaunchKernel(&sample, one, block, (void *[]){&texture, &to, &w}, 0,
                        NULL));
  must(cudaMemcpy(out, to, sizeof out, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(in, out, sizeof in);
  must(cudaGetTextureObjectResourceDesc(&back, texture));
  ck_assert_ptr_eq(KNOWN(back).res.array.array, a);
  must(cudaGetTextureObjectTextureDesc(&modes, texture));
  ck_assert_int_eq(MODES(modes).addressMode[1], CU_TR_ADDRESS_MODE_CLAMP);
  ck_assert_int_eq(MODES(modes).readMode, cudaReadModeElementType);
  must(cudaCreateSurfaceObject(&surface, &KNOWN(r)));
  must(cudaLaunchKernel(&twice, one, block, (void *[]){&surface}, 0, NULL));
  must(cudaMemcpy2DFromArray(out, W * 4, a, 0, 0, W * 4, H,
                             cudaMemcpyDeviceToHost));
  for (int i = 0; i < N; i++)
    ck_assert_float_eq(out[i], 2 * in[i]);
  must(cudaDestroySurfaceObject(surface));
  must(cudaDestroyTextureObject(texture));
  must(cudaFreeArray(a));
}
END_TEST

START_TEST(modes_must_suit_the_texels)
{
  resource_desc r;
  texture_desc t;
  cudaTextureObject_t texture;
  void *p;

  must(cudaMalloc(&p, 64));
  memset(&r, 0, sizeof r);
  memset(&t, 0, sizeof t);
  KNOWN(r).resType = cudaResourceTypeLinear;
  KNOWN(r).res.linear.devPtr = p;
  KNOWN(r).res.linear.sizeInBytes = 64;
  KNOWN(r).res.linear.desc =
      (cudaChannelFormatDesc){32, 0, 0, 0, cudaChannelFormatKindSigned};
  must(cudaCreateTextureObject(&texture, &r, &t, NULL));
  must(cudaDestroyTextureObject(texture));
  MODES(t).readMode = cudaReadModeNormalizedFloat;
  fails(cudaCreateTextureObject(&texture, &r, &t, NULL),
        cudaErrorInvalidNormSetting);
  MODES(t).readMode = cudaReadModeElementType;
  MODES(t).filterMode = CU_TR_FILTER_MODE_LINEAR;
  fails(cudaCreateTextureObject(&texture, &r, &t, NULL),
        cudaErrorInvalidFilterSetting);
  fails(cudaCreateTextureObject(&texture, NULL, &t, NULL),
        cudaErrorInvalidValue);
  must(cudaFree(p));
}
END_TEST

/* Rows of 16 and of 5 texels: the copies split at the ends of both. */
START_TEST(bytes_fill_the_rows_of_arrays)
{
  cudaArray_t a = full_array(), b;

  must(cudaMallocArray(&b, &floats, 5, 20, 0));
  must(cudaMemcpyToArray(a, 20, 1, in, 200, cudaMemcpyHostToDevice));
  must(cudaMemcpyFromArray(out, a, 20, 1, 200, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(in, out, 200);
  must(
      cudaMemcpyArrayToArray(b, 4, 0, a, 20, 1, 200, cudaMemcpyDeviceToDevice));
  memset(out, 0, sizeof out);
  must(cudaMemcpyFromArray(out, b, 4, 0, 200, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(in, out, 200);
  fails(cudaMemcpyToArray(a, W * 4, 0, in, 4, cudaMemcpyHostToDevice),
        cudaErrorInvalidValue);
  must(cudaFreeArray(a));
  must(cudaFreeArray(b));
}
END_TEST

START_TEST(pitched_memory_is_filled_and_copied)
{
  unsigned char from[700], to[700];
  size_t pitch;
  void *p;

  for (int i = 0; i < 700; i++)
    from[i] = (unsigned char)(i * 7);
  must(cudaMallocPitch(&p, &pitch, 100, 7));
  ck_assert_uint_ge(pitch, 100);
  must(cudaMemcpy2D(p, pitch, from, 100, 100, 7, cudaMemcpyHostToDevice));
  must(cudaMemset2D((char *)p + 10, pitch, 3, 20, 4));
  must(cudaMemcpy2D(to, 100, p, pitch, 100, 7, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 700; i++) {
    const int x = i % 100, y = i / 100;

    ck_assert_uint_eq(to[i], y < 4 && x >= 10 && x < 30 ? 3 : from[i]);
  }
  fails(cudaMemcpy2D(p, 50, from, 100, 100, 7, cudaMemcpyHostToDevice),
        cudaErrorInvalidPitchValue);
  fails(cudaMemcpy2D(p, pitch, from, 100, 100, 7, 9),
        cudaErrorInvalidMemcpyDirection);
  must(cudaFree(p));
}
END_TEST

START_TEST(boxes_are_measured_in_elements_of_arrays)
{
  const cudaExtent whole = {6, 5, 4}, box = {4, 3, 2};
  float texels[120], part[24];
  cudaMemcpy3DParms up = {.srcPtr = {texels, 24, 6, 5},
                          .extent = whole,
                          .kind = cudaMemcpyHostToDevice};
  cudaMemcpy3DParms down = {.srcPos = {2, 1, 1},
                            .dstPtr = {part, 16, 4, 3},
                            .extent = box,
                            .kind = cudaMemcpyDeviceToHost};

  for (int i = 0; i < 120; i++)
    texels[i] = (float)i;
  must(cudaMalloc3DArray(&up.dstArray, &floats, whole, 0));
  must(cudaMemcpy3D(&up));
  down.srcArray = up.dstArray;
  must(cudaMemcpy3D(&down));
  for (int i = 0; i < 24; i++) {
    const int x = i % 4 + 2, y = i / 4 % 3 + 1, z = i / 12 + 1;

    ck_assert_float_eq(part[i], texels[(z * 5 + y) * 6 + x]);
  }
  up.srcArray = up.dstArray; /* two sources */
  fails(cudaMemcpy3D(&up), cudaErrorInvalidValue);
  fails(cudaMemcpy3D(NULL), cudaErrorInvalidValue);
  must(cudaFreeArray(down.srcArray));
}
END_TEST

START_TEST(boxes_of_memory_are_filled)
{
  const cudaExtent whole = {40, 5, 3}, corner = {8, 2, 2};
  unsigned char bytes[600];
  cudaPitchedPtr p;
  cudaMemcpy3DParms down = {
      .dstPtr = {bytes, 40, 40, 5}, .extent = whole, .kind = cudaMemcpyDefault};

  must(cudaMalloc3D(&p, whole));
  must(cudaMemset3D(p, 9, whole));
  must(cudaMemset3D(p, 4, corner));
  down.srcPtr = p;
  must(cudaMemcpy3DAsync(&down, NULL));
  must(cudaDeviceSynchronize());
  for (int i = 0; i < 600; i++) {
    const int x = i % 40, y = i / 40 % 5, z = i / 200;

    ck_assert_uint_eq(bytes[i], x < 8 && y < 2 && z < 2 ? 4 : 9);
  }
  must(cudaFree(p.ptr));
}
END_TEST

START_TEST(pools_serve_streams)
{
  unsigned long long threshold = 1 << 20, stored = 0;
  cudaMemPool_t pool;
  cudaStream_t s;
  void *p;

  must(cudaStreamCreate(&s));
  must(cudaDeviceGetDefaultMemPool(&pool, 0));
  must(cudaMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                               &threshold));
  must(cudaMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                               &stored));
  ck_assert_uint_eq(stored, threshold);
  must(cudaMallocAsync(&p, 1000, s));
  must(cudaMemsetAsync(p, 1, 1000, s));
  must(cudaFreeAsync(p, s));
  must(cudaMallocFromPoolAsync(&p, 100, pool, s));
  must(cudaFreeAsync(p, s));
  must(cudaFreeAsync(NULL, s));
  must(cudaStreamSynchronize(s));
  must(cudaStreamDestroy(s));
  fails(cudaDeviceGetDefaultMemPool(&pool, 99), cudaErrorInvalidDevice);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cudart_arrays");
  TCase *t = tcase_create("arrays");
  SRunner *runner;
  int failed;

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, arrays_describe_themselves);
  tcase_add_test(t, kernels_read_textures_and_write_surfaces);
  tcase_add_test(t, modes_must_suit_the_texels);
  tcase_add_test(t, bytes_fill_the_rows_of_arrays);
  tcase_add_test(t, pitched_memory_is_filled_and_copied);
  tcase_add_test(t, boxes_are_measured_in_elements_of_arrays);
  tcase_add_test(t, boxes_of_memory_are_filled);
  tcase_add_test(t, pools_serve_streams);
  suite_add_tcase(s, t);
  runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
