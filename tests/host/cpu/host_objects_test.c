/* host_objects_test.c -- tests object files of the host and archives as inputs
 * of a link. The files are composed here from fat binaries, with the layout that
 * nvcc and ar give them. */
#include "support.h"

#include "cpu/api/module/api_module.h"

#include "fatbin_data.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static test_allocator memory;
static kiln__buf messages, object, archive;

/* Appends an object file with one section `name` that holds two fat binaries,
 * with zeros between them. */
static void compose_object(kiln__buf *out, const char *name,
                           const unsigned char *fatbin, size_t size)
{
  static const uint8_t zeros[16] = {0};
  const size_t name_size = strlen(name) + 1, data = sizeof(Elf64_Ehdr),
               second = (size + 7) / 8 * 8, strings = data + second + 8 + size,
               table = strings + 1 + name_size;
  Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                     .e_type = ET_REL,
                     .e_machine = EM_X86_64,
                     .e_shoff = table,
                     .e_shentsize = sizeof(Elf64_Shdr),
                     .e_shnum = 3,
                     .e_shstrndx = 2};
  Elf64_Shdr sections[3] = {{0}};

  sections[1] = (Elf64_Shdr){.sh_name = 1,
                             .sh_type = SHT_PROGBITS,
                             .sh_offset = data,
                             .sh_size = strings - data};
  sections[2] = (Elf64_Shdr){
      .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = table - strings};
  kiln__buf_add(out, &head, sizeof head);
  kiln__buf_add(out, fatbin, size);
  kiln__buf_add(out, zeros, second - size + 8);
  kiln__buf_add(out, fatbin, size);
  kiln__buf_add(out, zeros, 1);
  kiln__buf_add(out, name, name_size);
  kiln__buf_add(out, sections, sizeof sections);
}

/* Appends a member to an archive. */
static void add_member(kiln__buf *out, const char *name, const void *data,
                       size_t size)
{
  if (out->size == 0)
    kiln__buf_add(out, "!<arch>\n", 8);
  kiln__buf_format(out, "%-16s%-12d%-6d%-6d%-8d%-10zu`\n", name, 0, 0, 0, 644,
                   size);
  kiln__buf_add(out, data, size);
  if (size % 2 != 0)
    kiln__buf_add(out, "\n", 1);
}

static void setup(void)
{
  test_allocator_init(&memory);
  kiln__buf_init(&messages, &memory.alloc);
  kiln__buf_init(&object, &memory.alloc);
  kiln__buf_init(&archive, &memory.alloc);
  compose_object(&object, ".nv_fatbin", fatbin_none, sizeof fatbin_none);
  add_member(&archive, "/", "\0\0\0\1sym", 7);
  add_member(&archive, "a.o/", object.data, object.size);
  add_member(&archive, "b.fatbin/", fatbin_none, sizeof fatbin_none);
}

static void teardown(void)
{
  kiln__buf_free(&messages);
  kiln__buf_free(&object);
  kiln__buf_free(&archive);
  ck_assert_int_eq(memory.live, 0);
}

/* Copies the bytes to the end of a heap block, so that a sanitizer reports
 * reads beyond their end. */
static CUresult read_copy(kiln__cpu_image *out, const char *bytes, size_t size,
                          int arch)
{
  char *copy = malloc(size);
  CUresult rc;

  ck_assert_ptr_nonnull(copy);
  memcpy(copy, bytes, size);
  kiln__buf_clear(&messages);
  rc = kiln__cpu_image_read(out, &memory.alloc, copy, size, arch, &messages);
  free(copy);
  return rc;
}

/* Every fat binary of a section counts, and every member of an archive. */
START_TEST(fat_binaries_are_found)
{
  kiln__cpu_image image;

  ck_assert_int_eq(read_copy(&image, object.data, object.size, 90),
                   CUDA_SUCCESS);
  ck_assert_uint_eq(image.n, 2);
  for (size_t i = 0; i < image.n; i++)
    ck_assert_ptr_nonnull(strstr(image.texts[i].data, "k_b"));
  kiln__cpu_image_free(&image);
  ck_assert_int_eq(read_copy(&image, archive.data, archive.size, 90),
                   CUDA_SUCCESS);
  ck_assert_uint_eq(image.n, 3);
  kiln__cpu_image_free(&image);
}
END_TEST

START_TEST(relocatable_sections_are_found)
{
  kiln__cpu_image image;

  kiln__buf_clear(&object);
  compose_object(&object, "__nv_relfatbin", fatbin_none, sizeof fatbin_none);
  ck_assert_int_eq(read_copy(&image, object.data, object.size, 90),
                   CUDA_SUCCESS);
  ck_assert_uint_eq(image.n, 2);
  kiln__cpu_image_free(&image);
  kiln__buf_clear(&object);
  compose_object(&object, ".data", fatbin_none, sizeof fatbin_none);
  ck_assert_int_eq(read_copy(&image, object.data, object.size, 90),
                   CUDA_ERROR_NO_BINARY_FOR_GPU);
  ck_assert_ptr_nonnull(strstr(messages.data, "compute_90"));
}
END_TEST

/* An archive without PTX for the device, as libcudadevrt.a, adds nothing. An
 * object file alone is refused. */
START_TEST(members_without_ptx_are_skipped)
{
  kiln__cpu_image image;

  ck_assert_int_eq(read_copy(&image, object.data, object.size, 75),
                   CUDA_ERROR_NO_BINARY_FOR_GPU);
  ck_assert_int_eq(read_copy(&image, archive.data, archive.size, 75),
                   CUDA_SUCCESS);
  ck_assert_uint_eq(image.n, 0);
  kiln__cpu_image_free(&image);
}
END_TEST

/* Machine code of a GPU is an object file too, but not one of the host. */
START_TEST(machine_code_is_no_host_object)
{
  kiln__cpu_image image;

  ((Elf64_Ehdr *)(void *)object.data)->e_machine = 190;
  ck_assert_int_eq(read_copy(&image, object.data, object.size, 90),
                   CUDA_ERROR_NO_BINARY_FOR_GPU);
  ck_assert_ptr_nonnull(strstr(messages.data, "machine code"));
}
END_TEST

/* Truncated or modified files must give a result code and must not crash. */
START_TEST(damage_is_survived)
{
  const kiln__buf *whole = _i == 0 ? &object : &archive;
  char *copy = malloc(whole->size);
  uint64_t state = 12345;
  unsigned refused = 0;
  kiln__cpu_image image;

  ck_assert_ptr_nonnull(copy);
  for (size_t n = 1; n < whole->size; n++) {
    refused += read_copy(&image, whole->data, n, 90) != CUDA_SUCCESS;
    kiln__cpu_image_free(&image);
  }
  /* An archive is complete after each member. */
  ck_assert_uint_ge(refused, (unsigned)whole->size - 8);
  for (int round = 0; round < 5000; round++) {
    memcpy(copy, whole->data, whole->size);
    for (int k = 0; k < 1 + round % 4; k++)
      copy[test_random(&state) % (round % 2 == 0 ? 64 : whole->size)] =
          (char)test_random(&state);
    read_copy(&image, copy, whole->size, 90);
    kiln__cpu_image_free(&image);
  }
  free(copy);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_host_objects");
  TCase *t = kiln_test_case(
      s, "objects", 0, setup, teardown,
      TESTS(fat_binaries_are_found, relocatable_sections_are_found,
            members_without_ptx_are_skipped, machine_code_is_no_host_object));

  tcase_add_loop_test(t, damage_is_survived, 0, 2);
  return kiln_test_run(s);
}
