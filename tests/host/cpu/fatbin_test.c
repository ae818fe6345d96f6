/* fatbin_test.c -- tests the images that programs pass to cuModuleLoadData:
 * PTX, fat binaries with every compression, linked images, and invalid
 * bytes. */
#include "support.h"

#include "cpu/api/module/api_module.h"

#include "fatbin_data.h"

#include <stdlib.h>
#include <string.h>

static test_allocator memory;
static kiln__buf messages;

static void setup(void)
{
  test_allocator_init(&memory);
  kiln__buf_init(&messages, &memory.alloc);
}

static void teardown(void)
{
  kiln__buf_free(&messages);
  ck_assert_int_eq(memory.live, 0);
}

/* Copies the bytes to the end of a heap block, so that a sanitizer reports
 * reads beyond their end. */
static CUresult read_copy(kiln__cpu_image *out, const void *bytes, size_t size,
                          int arch)
{
  void *copy = malloc(size == 0 ? 1 : size);
  CUresult rc;

  ck_assert_ptr_nonnull(copy);
  memcpy(copy, bytes, size);
  kiln__buf_clear(&messages);
  rc = kiln__cpu_image_read(out, &memory.alloc, copy, size, arch, &messages);
  free(copy);
  return rc;
}

static const char *text_of(const kiln__cpu_image *image)
{
  return image->n == 0 ? "" : image->texts[0].data;
}

#define DATA(name) fatbin_##name, sizeof fatbin_##name

static const struct {
  const char *what;
  const unsigned char *bytes;
  size_t size;
  int arch;
  CUresult rc;
  const char *target, *entry;
} picks[] = {
    {"LZ4", DATA(speed), 70, CUDA_SUCCESS, ".target sm_70\n", "k_a"},
    {"LZ4", DATA(speed), 75, CUDA_SUCCESS, ".target sm_70\n", "k_a"},
    {"LZ4", DATA(speed), 89, CUDA_SUCCESS, ".target sm_70\n", "k_a"},
    {"LZ4", DATA(speed), 90, CUDA_SUCCESS, ".target sm_90a\n", "k_d"},
    {"LZ4", DATA(speed), 100, CUDA_SUCCESS, ".target sm_90\n", "k_c"},
    {"LZ4", DATA(speed), 61, CUDA_ERROR_NO_BINARY_FOR_GPU, NULL, NULL},
    {"zstd", DATA(size), 70, CUDA_SUCCESS, ".target sm_70\n", "k_a"},
    {"zstd", DATA(size), 90, CUDA_SUCCESS, ".target sm_90a\n", "k_d"},
    {"zstd", DATA(size), 120, CUDA_SUCCESS, ".target sm_90\n", "k_c"},
    {"zstd", DATA(size), 35, CUDA_ERROR_NO_BINARY_FOR_GPU, NULL, NULL},
    {"as it is", DATA(none), 80, CUDA_SUCCESS, ".target sm_80\n", "k_b"},
    {"as it is", DATA(none), 90, CUDA_SUCCESS, ".target sm_80\n", "k_b"},
    {"as it is", DATA(none), 75, CUDA_ERROR_NO_BINARY_FOR_GPU, NULL, NULL},
};

START_TEST(the_best_ptx_is_taken)
{
  kiln__cpu_image image;
  CUresult rc =
      read_copy(&image, picks[_i].bytes, picks[_i].size, picks[_i].arch);

  if (rc == CUDA_ERROR_NOT_SUPPORTED)
    return; /* This build does not support the compression (LZ4 or zstd). */
  ck_assert_msg(rc == picks[_i].rc, "%s for %d: %d: %s", picks[_i].what,
                picks[_i].arch, rc, messages.data);
  if (rc != CUDA_SUCCESS) {
    ck_assert_uint_gt(messages.size, 0);
    return;
  }
  ck_assert_uint_eq(image.n, 1);
  ck_assert_msg(strstr(text_of(&image), picks[_i].target) != NULL, "%s for %d",
                picks[_i].what, picks[_i].arch);
  ck_assert_ptr_nonnull(strstr(text_of(&image), picks[_i].entry));
  ck_assert_uint_eq(image.texts[0].size, strlen(text_of(&image)));
  /* The PTX source must not be truncated. */
  ck_assert_str_eq(strchr(text_of(&image), '}'), "}\n");
  kiln__cpu_image_free(&image);

  /* Reads the same image without a size, as cuModuleLoadData does. */
  rc = kiln__cpu_image_read(&image, &memory.alloc, picks[_i].bytes, 0,
                            picks[_i].arch, &messages);
  ck_assert_int_eq(rc, CUDA_SUCCESS);
  ck_assert_ptr_nonnull(strstr(text_of(&image), picks[_i].entry));
  kiln__cpu_image_free(&image);
}
END_TEST

START_TEST(a_wrapper_is_looked_through)
{
  struct {
    uint32_t magic, version;
    const void *data, *more;
  } wrapper = {0x466243b1, 1, fatbin_size, NULL};
  kiln__cpu_image image;

  ck_assert_int_eq(
      kiln__cpu_image_read(&image, &memory.alloc, &wrapper, 0, 90, &messages),
      CUDA_SUCCESS);
  ck_assert_ptr_nonnull(strstr(text_of(&image), "k_d"));
  kiln__cpu_image_free(&image);
  /* A wrapper that was read from a file must be rejected, because the pointer
   * in it is meaningless. */
  ck_assert_int_eq(read_copy(&image, &wrapper, sizeof wrapper, 90),
                   CUDA_ERROR_INVALID_IMAGE);
  wrapper.data = "neither";
  ck_assert_int_eq(
      kiln__cpu_image_read(&image, &memory.alloc, &wrapper, 0, 90, &messages),
      CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

static const struct {
  const char *text;
  int arch;
  CUresult rc;
} texts[] = {
    {".version 7.0\n.target sm_70\n", 90, CUDA_SUCCESS},
    {"\n\t // a comment\n/* .version 99.9 */ .version 7.0 // x\n.target sm_70",
     90, CUDA_SUCCESS},
    {".version 9.0\n.target sm_90, debug\n", 90, CUDA_SUCCESS},
    {".version 9.1\n.target sm_90\n", 90, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    {".version 10.0\n.target sm_90\n", 90, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    {".version 8.0\n.target sm_100\n", 90, CUDA_ERROR_NO_BINARY_FOR_GPU},
    {".version 8.0\n.target sm_90a\n", 90, CUDA_SUCCESS},
    {".version 8.0\n.target sm_90a\n", 100, CUDA_ERROR_NO_BINARY_FOR_GPU},
    {".version 8.8\n.target sm_100f\n", 103, CUDA_SUCCESS},
    {".version 8.8\n.target sm_103f\n", 100, CUDA_ERROR_NO_BINARY_FOR_GPU},
    {".version 8.8\n.target sm_100f\n", 120, CUDA_ERROR_NO_BINARY_FOR_GPU},
    /* These images are accepted, because only the PTX parser reports errors in
     * PTX source. */
    {".entry foo", 90, CUDA_SUCCESS},
    {".version", 90, CUDA_SUCCESS},
    {".version x.y\n.target\n", 90, CUDA_SUCCESS},
    {"", 90, CUDA_ERROR_INVALID_IMAGE},
    {" \n ", 90, CUDA_ERROR_INVALID_IMAGE},
    {"// nothing else", 90, CUDA_ERROR_INVALID_IMAGE},
    {"/* never closed", 90, CUDA_ERROR_INVALID_IMAGE},
    {"/*", 90, CUDA_ERROR_INVALID_IMAGE},
    {"/", 90, CUDA_ERROR_INVALID_IMAGE},
    {"hello", 90, CUDA_ERROR_INVALID_IMAGE},
    {"\177ELF\002\001\001and then machine code, more than a header of it", 90,
     CUDA_ERROR_NO_BINARY_FOR_GPU},
};

START_TEST(texts_are_recognised)
{
  kiln__cpu_image image;
  CUresult rc = kiln__cpu_image_read(&image, &memory.alloc, texts[_i].text, 0,
                                     texts[_i].arch, &messages);

  ck_assert_msg(rc == texts[_i].rc, "%s: %d", texts[_i].text, rc);
  if (rc == CUDA_SUCCESS)
    ck_assert_str_eq(text_of(&image), texts[_i].text);
  else
    ck_assert_uint_eq(image.n, 0);
  kiln__cpu_image_free(&image);
  rc = strlen(texts[_i].text) == 0
           ? texts[_i].rc
           : read_copy(&image, texts[_i].text, strlen(texts[_i].text),
                       texts[_i].arch);
  ck_assert_msg(rc == texts[_i].rc, "with a size: %s: %d", texts[_i].text, rc);
  kiln__cpu_image_free(&image);
}
END_TEST

START_TEST(linked_images_come_back)
{
  static const char *const parts[] = {".version 7.0\n.target sm_70\n// one",
                                      ".version 8.0\n.target sm_80\n// two",
                                      ".version 8.0\n.target sm_90\n// three"};
  kiln__cpu_image in = {.alloc = &memory.alloc}, out;
  kiln__buf bytes;

  kiln__buf_init(&bytes, &memory.alloc);
  for (int i = 0; i < 3; i++)
    ck_assert(kiln__cpu_image_add(&in, parts[i], strlen(parts[i])));
  kiln__cpu_image_write(&in, &bytes);
  for (int sized = 0; sized < 2; sized++) {
    ck_assert_int_eq(kiln__cpu_image_read(&out, &memory.alloc, bytes.data,
                                          sized ? bytes.size : 0, 90,
                                          &messages),
                     CUDA_SUCCESS);
    ck_assert_uint_eq(out.n, 3);
    for (int i = 0; i < 3; i++)
      ck_assert_str_eq(out.texts[i].data, parts[i]);
    kiln__cpu_image_free(&out);
  }
  /* One of the linked images supports only newer devices, so reading must
   * fail. */
  ck_assert_int_eq(kiln__cpu_image_read(&out, &memory.alloc, bytes.data,
                                        bytes.size, 80, &messages),
                   CUDA_ERROR_NO_BINARY_FOR_GPU);
  for (size_t n = 1; n < bytes.size; n++) {
    const CUresult rc = read_copy(&out, bytes.data, n, 90);

    ck_assert_msg(rc == CUDA_ERROR_INVALID_IMAGE, "cut to %zu: %d", n, rc);
  }
  kiln__buf_free(&bytes);
  kiln__cpu_image_free(&in);
}
END_TEST

/* Truncated or modified images must give an error code and must not crash. */
START_TEST(damage_is_survived)
{
  static const struct {
    const unsigned char *bytes;
    size_t size;
  } all[] = {{DATA(speed)}, {DATA(size)}, {DATA(none)}};
  const size_t size = all[_i].size;
  const int rounds = getenv("KILN_TEST_THOROUGH") != NULL ? 20000 : 2000;
  unsigned char *copy = malloc(size);
  uint64_t state = 12345;
  unsigned refused = 0;
  kiln__cpu_image image;

  ck_assert_ptr_nonnull(copy);
  for (size_t n = 1; n < size; n++) {
    const CUresult rc = read_copy(&image, all[_i].bytes, n, 90);

    ck_assert_msg(rc != CUDA_SUCCESS, "cut to %zu", n);
  }
  for (int round = 0; round < rounds; round++) {
    memcpy(copy, all[_i].bytes, size);
    for (int k = 0; k < 1 + round % 3; k++)
      copy[test_random(&state) % (round % 2 == 0 ? 100 : size)] =
          (unsigned char)test_random(&state);
    refused += read_copy(&image, copy, size, 90) != CUDA_SUCCESS;
    kiln__cpu_image_free(&image);
  }
  ck_assert_uint_gt(refused, 200);
  free(copy);
}
END_TEST

START_TEST(machine_code_alone_is_refused)
{
  unsigned char copy[sizeof fatbin_none];
  kiln__cpu_image image;

  memcpy(copy, fatbin_none, sizeof copy);
  copy[16] = 2; /* An entry of kind 2 is machine code. */
  ck_assert_int_eq(read_copy(&image, copy, sizeof copy, 90),
                   CUDA_ERROR_NO_BINARY_FOR_GPU);
  ck_assert_ptr_nonnull(strstr(messages.data, "machine code"));
}
END_TEST

START_TEST(every_allocation_may_fail)
{
  CUresult rc = CUDA_ERROR_UNKNOWN;

  for (long n = 0; rc != CUDA_SUCCESS; n++) {
    kiln__cpu_image image;
    kiln__buf log;

    ck_assert_int_lt(n, 1000);
    kiln__buf_init(&log, &memory.alloc);
    memory.calls = 0;
    memory.fail_at = n;
    rc = kiln__cpu_image_read(&image, &memory.alloc, fatbin_size, 0, 90, &log);
    memory.fail_at = -1;
    ck_assert_msg(rc == CUDA_SUCCESS || rc == CUDA_ERROR_OUT_OF_MEMORY,
                  "call %ld fails: %d", n, rc);
    kiln__cpu_image_free(&image);
    kiln__buf_free(&log);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_fatbin");
  TCase *t = kiln_test_case(
      s, "images", 0, setup, teardown,
      TESTS(a_wrapper_is_looked_through, linked_images_come_back,
            machine_code_alone_is_refused, every_allocation_may_fail));

  tcase_add_loop_test(t, the_best_ptx_is_taken, 0, ROWS(picks));
  tcase_add_loop_test(t, texts_are_recognised, 0, ROWS(texts));
  tcase_add_loop_test(t, damage_is_survived, 0, 3);
  return kiln_test_run(s);
}
