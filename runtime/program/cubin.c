/* cubin.c -- reads the sections of machine code.
 *
 * Machine code (CUBIN) is a 64-bit ELF file with a section ".text.KERNEL" for
 * each kernel, and a section ".nv.constantN.KERNEL" for each bank N of constant
 * memory and kernel. Every offset is checked against the file size, so damaged
 * machine code has fewer sections. */
#include "cubin.h"

#include "compiler.h"

#include <string.h>

/* Byte offsets of fields in a 64-bit ELF file and in its section headers. */
enum {
  ELF_HEADER = 64,
  ELF_CLASS = 4,
  ELF_CLASS_64 = 2,
  ELF_SECTIONS = 40,
  ELF_SECTION_SIZE = 58,
  ELF_SECTION_COUNT = 60,
  ELF_NAMES_INDEX = 62,
  SECTION_NAME = 0,
  SECTION_TYPE = 4,
  SECTION_OFFSET = 24,
  SECTION_SIZE = 32,
  SECTION_HEADER = 64,
  TYPE_NO_BITS = 8
};

uint64_t kiln__elf_number(const unsigned char *p, int bytes)
{
  uint64_t value = 0;

  for (int i = bytes - 1; i >= 0; i--)
    value = value << 8 | p[i];
  return value;
}

static uint64_t field(const kiln__elf *e, unsigned i, int at, int bytes)
{
  return kiln__elf_number(
      e->data + e->sections + (size_t)i * SECTION_HEADER + at, bytes);
}

kiln__slice kiln__elf_section(const kiln__elf *e, unsigned i)
{
  uint64_t offset, size;

  if (i >= e->n || field(e, i, SECTION_TYPE, 4) == TYPE_NO_BITS)
    return (kiln__slice){"", 0};
  offset = field(e, i, SECTION_OFFSET, 8);
  size = field(e, i, SECTION_SIZE, 8);
  if (offset > e->size || size > e->size - offset)
    return (kiln__slice){"", 0};
  return (kiln__slice){e->data + offset, (size_t)size};
}

bool kiln__elf_open(kiln__elf *e, kiln__slice file)
{
  static const unsigned char magic[] = {0x7f, 'E', 'L', 'F'};
  const unsigned char *data = file.data;

  *e = (kiln__elf){.data = data, .size = file.size};
  if (file.size < ELF_HEADER || memcmp(data, magic, sizeof magic) != 0 ||
      data[ELF_CLASS] != ELF_CLASS_64 ||
      kiln__elf_number(data + ELF_SECTION_SIZE, 2) != SECTION_HEADER)
    return false;
  e->sections = kiln__elf_number(data + ELF_SECTIONS, 8);
  e->n = (unsigned)kiln__elf_number(data + ELF_SECTION_COUNT, 2);
  if (e->sections > file.size ||
      (file.size - e->sections) / SECTION_HEADER < e->n)
    return false;
  e->names = kiln__elf_section(
      e, (unsigned)kiln__elf_number(data + ELF_NAMES_INDEX, 2));
  return e->names.size > 0 &&
         ((const char *)e->names.data)[e->names.size - 1] == '\0';
}

const char *kiln__elf_name(const kiln__elf *e, unsigned i)
{
  const uint64_t at = field(e, i, SECTION_NAME, 4);

  return at < e->names.size ? (const char *)e->names.data + at : "";
}

unsigned kiln__elf_find(const kiln__elf *e, const char *prefix,
                        const char *name)
{
  const size_t n = strlen(prefix);
  unsigned i = 0;

  while (i < e->n && (strncmp(kiln__elf_name(e, i), prefix, n) != 0 ||
                      strcmp(kiln__elf_name(e, i) + n, name) != 0))
    i++;
  return i;
}

/* Returns true if `section` is the name ".nv.constantN.KERNEL" of the kernel,
 * for any bank N. */
static bool is_constant(const char *section, const char *kernel, size_t size)
{
  static const char prefix[] = ".nv.constant";
  const size_t n = sizeof prefix - 1;

  return strncmp(section, prefix, n) == 0 && section[n] >= '0' &&
         section[n] <= '9' && section[n + 1] == '.' &&
         strncmp(section + n + 2, kernel, size) == 0 &&
         section[n + 2 + size] == '\0';
}

int kiln__cubin_constant(const void *cubin, size_t size, const char *kernel,
                         size_t kernel_size)
{
  uint64_t sum = 0;
  kiln__elf e;

  if (!kiln__elf_open(&e, (kiln__slice){cubin, size}))
    return 0;
  for (unsigned i = 0; i < e.n; i++) {
    const uint64_t bytes = field(&e, i, SECTION_SIZE, 8);

    if (bytes < (1 << 24) &&
        is_constant(kiln__elf_name(&e, i), kernel, kernel_size))
      sum += bytes;
  }
  return sum < (1 << 24) ? (int)sum : 0;
}
