/* reference_test.c -- tests the texture and surface references of CUDA 11: kernels read
 * what is bound, with the settings of the host's reference. */
#include "host_code.h"

static const char ptx[] =
    ".version 6.0\n.target sm_52\n.address_size 64\n"
    ".visible .global .texref image;\n.visible .global .surfref target;\n"
    ".visible .entry fetch(.param .u64 to, .param .f32 at)\n{\n"
    "  .reg .u64 %a;\n  .reg .f32 %x;\n  .reg .b32 %r0, %r1, %r2, %r3;\n"
    "  ld.param.u64 %a, [to];\n  ld.param.f32 %x, [at];\n"
    "  tex.1d.v4.s32.f32 {%r0, %r1, %r2, %r3}, [image, {%x}];\n"
    "  st.global.b32 [%a], %r0;\n  ret;\n}\n"
    ".visible .entry index(.param .u64 to, .param .u32 at)\n{\n"
    "  .reg .u64 %a;\n  .reg .u32 %x;\n  .reg .b32 %r0, %r1, %r2, %r3;\n"
    "  ld.param.u64 %a, [to];\n  ld.param.u32 %x, [at];\n"
    "  tex.1d.v4.s32.s32 {%r0, %r1, %r2, %r3}, [image, {%x}];\n"
    "  st.global.b32 [%a], %r0;\n  ret;\n}\n"
    ".visible .entry store(.param .u32 v)\n{\n"
    "  .reg .u32 %x, %v;\n  ld.param.u32 %v, [v];\n  mov.u32 %x, 4;\n"
    "  sust.b.1d.b32.trap [target, {%x}], {%v};\n  ret;\n}\n";

static char fetch, index_kernel, store, target, other;
static textureReference image = {.channelDesc = {32, 0, 0, 0, 0},
                                 .addressMode = {1, 1, 1}};
static fat_binary binary;
static void **handle;

static void setup(void)
{
  fat_binary_make(&binary, ptx);
  handle = __cudaRegisterFatBinary(&binary);
  register_kernel(handle, &fetch, "fetch");
  register_kernel(handle, &index_kernel, "index");
  register_kernel(handle, &store, "store");
  __cudaRegisterTexture(handle, &image, NULL, "image", 1, 0, 0);
  __cudaRegisterSurface(handle, &target, NULL, "target", 1, 0);
}

static void teardown(void)
{
  __cudaUnregisterFatBinary(handle);
  free(binary.data);
}

static int read_at(const void *kernel, void *at)
{
  const dim3 one = {1, 1, 1};
  void *to = NULL, *arguments[] = {&to, at};
  int value = -1;

  must(cudaMalloc(&to, 4));
  must(cudaLaunchKernel(kernel, one, one, arguments, 0, NULL));
  must(cudaMemcpy(&value, to, 4, cudaMemcpyDeviceToHost));
  must(cudaFree(to));
  return value;
}

static void *numbers(int first)
{
  int values[16];
  void *to = NULL;

  for (int i = 0; i < 16; i++)
    values[i] = first + i;
  must(cudaMalloc(&to, sizeof values));
  must(cudaMemcpy(to, values, sizeof values, cudaMemcpyHostToDevice));
  return to;
}

START_TEST(linear_memory_is_read)
{
  int at = 3;
  size_t offset = 99;
  char *memory = numbers(100);

  must(cudaBindTexture(&offset, &image, memory, NULL, 64));
  ck_assert_uint_eq(offset, 0);
  ck_assert_int_eq(read_at(&index_kernel, &at), 103);
  must(cudaBindTexture(&offset, &image, numbers(200), &image.channelDesc, 64));
  ck_assert_int_eq(read_at(&index_kernel, &at), 203);
  must(cudaBindTexture(&offset, &image, memory + 8, NULL, 56));
  ck_assert_uint_eq(offset, 8);
  fails(cudaBindTexture(NULL, &image, memory + 8, NULL, 56),
        cudaErrorInvalidValue);
  must(cudaUnbindTexture(&image));
  fails(cudaBindTexture(&offset, NULL, memory, NULL, 64),
        cudaErrorInvalidTexture);
  fails(cudaBindTexture(&offset, (const void *)&other, memory, NULL, 64),
        cudaErrorInvalidTexture);
  fails(cudaUnbindTexture((const void *)&target), cudaErrorInvalidTexture);
}
END_TEST

START_TEST(arrays_are_read_and_written)
{
  const cudaChannelFormatDesc word = {32, 0, 0, 0, 0};
  const dim3 one = {1, 1, 1};
  unsigned value = 77;
  void *arguments[] = {&value};
  cudaArray_t array;
  float at = 0.3f;
  int values[8] = {10, 11, 12, 13, 14, 15, 16, 17};

  must(cudaMallocArray(&array, &word, 8, 0, 2));
  must(cudaMemcpy2DToArray(array, 0, 0, values, sizeof values, sizeof values, 1,
                           cudaMemcpyHostToDevice));
  must(cudaBindTextureToArray(&image, array, &word));
  ck_assert_int_eq(read_at(&fetch, &at), 10);
  image.normalized = 1; /* takes effect with the next binding */
  must(cudaBindTextureToArray(&image, array, &word));
  ck_assert_int_eq(read_at(&fetch, &at), 12);
  image.normalized = 0;
  must(cudaBindSurfaceToArray(&target, array, NULL));
  must(cudaLaunchKernel(&store, one, one, arguments, 0, NULL));
  must(cudaMemcpy2DFromArray(values, sizeof values, array, 0, 0, sizeof values,
                             1, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(values[1], 77);
  fails(cudaBindSurfaceToArray(&image, array, NULL), cudaErrorInvalidSurface);
  must(cudaFreeArray(array));
}
END_TEST

START_TEST(references_are_found)
{
  const textureReference *texture = NULL;
  const void *surface = NULL;
  size_t offset = 9;

  must(cudaGetTextureReference(&texture, &image));
  ck_assert_ptr_eq(texture, &image);
  must(cudaGetSurfaceReference(&surface, &target));
  ck_assert_ptr_eq(surface, &target);
  must(cudaGetTextureAlignmentOffset(&offset, &image));
  ck_assert_uint_eq(offset, 0);
  fails(cudaGetTextureReference(&texture, &other), cudaErrorInvalidTexture);
  fails(cudaGetSurfaceReference(&surface, &image), cudaErrorInvalidSurface);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("cudart references");
  TCase *all = tcase_create("references");
  SRunner *runner = srunner_create(suite);
  int failed;

  tcase_add_checked_fixture(all, setup, teardown);
  tcase_set_timeout(all, 60);
  tcase_add_test(all, linear_memory_is_read);
  tcase_add_test(all, arrays_are_read_and_written);
  tcase_add_test(all, references_are_found);
  suite_add_tcase(suite, all);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? 0 : 1;
}
