/* host_objects.c -- finds PTX in object files of the host and in archives of them.
 *
 * nvcc stores the fat binaries of a source file in sections of the object file:
 * `.nv_fatbin` for whole programs and `__nv_relfatbin` for relocatable device
 * code. A section holds one fat binary after the other. An archive is a sequence
 * of such object files. The linkers of CUDA accept both (CU_JIT_INPUT_OBJECT,
 * CU_JIT_INPUT_LIBRARY).
 *
 * The layouts are those of the System V ABI (ELF-64) and of POSIX ar. Every
 * offset is checked against the size of the file before it is used. The time is
 * linear in the size of the file. */
#include "api_module.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_CUDA = 190 }; /* EM_CUDA, which older headers lack */

static const char archive_magic[] = "!<arch>\n";

static bool is_archive(const uint8_t *bytes, size_t size)
{
  return size >= sizeof archive_magic - 1 &&
         memcmp(bytes, archive_magic, sizeof archive_magic - 1) == 0;
}

static bool is_host_object(const uint8_t *bytes, size_t size)
{
  Elf64_Ehdr head;

  if (size < sizeof head || memcmp(bytes, ELFMAG, SELFMAG) != 0)
    return false;
  memcpy(&head, bytes, sizeof head);
  return head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_machine != MACHINE_CUDA;
}

bool kiln__cpu_is_objects(const uint8_t *bytes, size_t size)
{
  return is_archive(bytes, size) || is_host_object(bytes, size);
}

/* Adds the PTX of one fat binary. A fat binary without PTX for this device is
 * skipped; its message stays in the log. */
static CUresult add_fatbin(kiln__cpu_image *out, const uint8_t *bytes,
                           size_t size, int arch, kiln__buf *log)
{
  const CUresult rc = kiln__cpu_fatbin_read(out, bytes, size, arch, log);

  return rc == CUDA_ERROR_NO_BINARY_FOR_GPU ? CUDA_SUCCESS : rc;
}

/* Adds the fat binaries of a section. Between them there may be zeros, which
 * align the next one to 8 bytes. */
static CUresult read_section(kiln__cpu_image *out, const uint8_t *bytes,
                             size_t size, int arch, kiln__buf *log)
{
  struct {
    uint32_t magic;
    uint16_t version, head_size;
    uint64_t size;
  } head;

  while (size >= sizeof head) {
    size_t n = 8;

    memcpy(&head, bytes, sizeof head);
    if (head.magic == KILN__FATBIN_MAGIC) {
      if (head.size > size - sizeof head ||
          head.head_size > size - (size_t)head.size)
        return CUDA_ERROR_INVALID_IMAGE;
      n = head.head_size + (size_t)head.size;
      CU_TRY(add_fatbin(out, bytes, n, arch, log));
    } else if (head.magic != 0) {
      return CUDA_ERROR_INVALID_IMAGE;
    }
    bytes += n;
    size -= n;
  }
  return CUDA_SUCCESS;
}

/* Reads the section header `index` of an object file. Returns false if the
 * header, or the section, is not inside the file. */
static bool section_at(Elf64_Shdr *section, const uint8_t *bytes, size_t size,
                       const Elf64_Ehdr *head, unsigned index)
{
  const uint64_t at = head->e_shoff + (uint64_t)index * sizeof *section;

  if (head->e_shoff > size || at > size || size - at < sizeof *section)
    return false;
  memcpy(section, bytes + at, sizeof *section);
  return section->sh_type == SHT_NOBITS ||
         (section->sh_offset <= size &&
          section->sh_size <= size - section->sh_offset);
}

/* Returns whether the section has one of the names of nvcc. */
static bool holds_fatbins(const Elf64_Shdr *section, const Elf64_Shdr *names,
                          const uint8_t *bytes)
{
  static const char *const known[] = {".nv_fatbin", "__nv_relfatbin"};

  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    const size_t n = strlen(known[i]) + 1;

    if (section->sh_type != SHT_NOBITS && section->sh_name < names->sh_size &&
        names->sh_size - section->sh_name >= n &&
        memcmp(bytes + names->sh_offset + section->sh_name, known[i], n) == 0)
      return true;
  }
  return false;
}

static CUresult read_object(kiln__cpu_image *out, const uint8_t *bytes,
                            size_t size, int arch, kiln__buf *log)
{
  Elf64_Ehdr head;
  Elf64_Shdr names, section;

  memcpy(&head, bytes, sizeof head);
  if (head.e_shnum == 0)
    return CUDA_SUCCESS;
  if (head.e_shentsize != sizeof section ||
      !section_at(&names, bytes, size, &head, head.e_shstrndx) ||
      names.sh_type != SHT_STRTAB)
    return CUDA_ERROR_INVALID_IMAGE;
  for (unsigned i = 1; i < head.e_shnum; i++) {
    if (!section_at(&section, bytes, size, &head, i))
      return CUDA_ERROR_INVALID_IMAGE;
    if (holds_fatbins(&section, &names, bytes))
      CU_TRY(read_section(out, bytes + section.sh_offset,
                          (size_t)section.sh_size, arch, log));
  }
  return CUDA_SUCCESS;
}

/* Adds one member of an archive. Members of other formats, such as the table of
 * symbols, are skipped. */
static CUresult read_member(kiln__cpu_image *out, const uint8_t *bytes,
                            size_t size, int arch, kiln__buf *log)
{
  uint32_t magic = 0;

  if (is_host_object(bytes, size))
    return read_object(out, bytes, size, arch, log);
  if (size >= sizeof magic)
    memcpy(&magic, bytes, sizeof magic);
  return magic == KILN__FATBIN_MAGIC ? add_fatbin(out, bytes, size, arch, log)
                                     : CUDA_SUCCESS;
}

/* Reads the size of a member: ten digits, padded with blanks. */
static bool member_size(const char *field, size_t *size)
{
  char text[11] = {0}, *end;
  unsigned long long n;

  memcpy(text, field, 10);
  n = strtoull(text, &end, 10);
  *size = (size_t)n;
  return end != text && (*end == ' ' || *end == '\0');
}

static CUresult read_archive(kiln__cpu_image *out, const uint8_t *bytes,
                             size_t size, int arch, kiln__buf *log)
{
  enum { HEAD = 60, SIZE_AT = 48, END_AT = 58 };
  size_t at = sizeof archive_magic - 1;

  while (size - at >= HEAD) {
    const char *head = (const char *)bytes + at;
    size_t n;

    at += HEAD;
    if (memcmp(head + END_AT, "`\n", 2) != 0 ||
        !member_size(head + SIZE_AT, &n) || n > size - at)
      return CUDA_ERROR_INVALID_IMAGE;
    CU_TRY(read_member(out, bytes + at, n, arch, log));
    at += n;
    at += at % 2 != 0 && at < size; /* members begin at even offsets */
  }
  return at == size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult kiln__cpu_objects_read(kiln__cpu_image *out, const uint8_t *bytes,
                                size_t size, int arch, kiln__buf *log)
{
  const size_t before = out->n;

  if (is_archive(bytes, size)) {
    const CUresult rc = read_archive(out, bytes, size, arch, log);

    if (rc == CUDA_ERROR_INVALID_IMAGE)
      kiln__buf_text(log, "the library of object files is damaged\n");
    return rc;
  }
  CU_TRY(read_object(out, bytes, size, arch, log));
  if (out->n > before)
    return CUDA_SUCCESS;
  kiln__buf_format(log,
                   "the object file holds no PTX for this device; compile with "
                   "-gencode arch=compute_%d,code=compute_%d\n",
                   arch, arch);
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
