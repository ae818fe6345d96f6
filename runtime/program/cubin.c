/* cubin.c -- computes the constant memory of a kernel from the sections of its
 * machine code.
 *
 * The assembler reports constant memory only for older GPUs. Machine code
 * (CUBIN) is a 64-bit ELF file with a section ".nv.constantN.KERNEL" for each
 * bank N and kernel. The result is the sum of the section sizes. Every offset
 * is checked against the file size, so damaged machine code gives 0. */
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
  SECTION_OFFSET = 24,
  SECTION_SIZE = 32,
  SECTION_HEADER = 64
};

typedef struct elf {
  const unsigned char *data;
  size_t size;
  uint64_t sections;
  unsigned n;
  const char *names; /* string table with all section names */
  size_t names_size;
} elf;

/* Reads a little-endian number of `bytes` bytes. The caller has checked that
 * the bytes lie within the file. */
static uint64_t read_number(const unsigned char *p, int bytes)
{
  uint64_t value = 0;

  for (int i = bytes - 1; i >= 0; i--)
    value = value << 8 | p[i];
  return value;
}

static const unsigned char *section(const elf *e, unsigned i)
{
  return e->data + e->sections + (size_t)i * SECTION_HEADER;
}

static bool open_elf(elf *e, const void *data, size_t size)
{
  static const unsigned char magic[] = {0x7f, 'E', 'L', 'F'};
  uint64_t offset, length;
  unsigned names;

  *e = (elf){.data = data, .size = size};
  if (size < ELF_HEADER || memcmp(data, magic, sizeof magic) != 0 ||
      e->data[ELF_CLASS] != ELF_CLASS_64 ||
      read_number(e->data + ELF_SECTION_SIZE, 2) != SECTION_HEADER)
    return false;
  e->sections = read_number(e->data + ELF_SECTIONS, 8);
  e->n = (unsigned)read_number(e->data + ELF_SECTION_COUNT, 2);
  names = (unsigned)read_number(e->data + ELF_NAMES_INDEX, 2);
  if (e->sections > size || (size - e->sections) / SECTION_HEADER < e->n ||
      names >= e->n)
    return false;
  offset = read_number(section(e, names) + SECTION_OFFSET, 8);
  length = read_number(section(e, names) + SECTION_SIZE, 8);
  if (offset > size || length > size - offset)
    return false;
  e->names = (const char *)data + offset;
  e->names_size = length;
  return true;
}

/* Returns true if a section has the name ".nv.constantN.KERNEL" of the kernel,
 * for any bank N. */
static bool is_constant(const elf *e, unsigned i, const char *kernel,
                        size_t size)
{
  static const char prefix[] = ".nv.constant";
  const size_t n = sizeof prefix - 1;
  const uint64_t at = read_number(section(e, i) + SECTION_NAME, 4);
  const char *name = e->names + at;
  size_t length;

  if (at >= e->names_size)
    return false;
  length = strnlen(name, e->names_size - at);
  return length == n + 2 + size && memcmp(name, prefix, n) == 0 &&
         name[n] >= '0' && name[n] <= '9' && name[n + 1] == '.' &&
         memcmp(name + n + 2, kernel, size) == 0;
}

int kiln__cubin_constant(const void *cubin, size_t size, const char *kernel,
                         size_t kernel_size)
{
  uint64_t sum = 0;
  elf e;

  if (!open_elf(&e, cubin, size))
    return 0;
  for (unsigned i = 0; i < e.n; i++) {
    const uint64_t bytes = read_number(section(&e, i) + SECTION_SIZE, 8);

    if (is_constant(&e, i, kernel, kernel_size) && bytes < (1 << 24))
      sum += bytes;
  }
  return sum < (1 << 24) ? (int)sum : 0;
}
