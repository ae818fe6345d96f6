/* library_id.c -- identifies a library file without loading it.
 *
 * The build of NVRTC is part of every cache key, since two NVRTC libraries of
 * the same version may generate different code. The GNU build id identifies the
 * build. Releases without a build id are identified by the file's size and a
 * hash of 16 samples of the file. Nearly every change of the code moves the
 * sections, so the samples differ between builds. */
#include "find.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
  PIECE = 1 << 14,
  /* number of samples, spread over the file, including its first and last bytes
   */
  PIECES = 16
};

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
  return kiln__pread_all(&kiln__fs_posix, fd, to, n, at);
}

static void hex(char *out, const unsigned char *bytes, size_t n)
{
  for (size_t i = 0; i < n; i++)
    kiln__format(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Writes three letters and a hash. */
static void write_hash(char out[48], const char *kind, kiln__hash h)
{
  kiln__copy_text(out, 4, kind);
  kiln__hash_hex(out + 3, h);
}

/* Finds the GNU build id among the notes of one ELF segment. */
static bool find_note(const unsigned char *notes, size_t size, size_t align,
                      char out[48])
{
  const size_t mask = align - 1;
  size_t at = 0;

  while (size - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    size_t name, text;

    memcpy(&note, notes + at, sizeof note);
    if (note.n_namesz > size || note.n_descsz > size)
      return false;
    name = at + sizeof note;
    text = name + ((note.n_namesz + mask) & ~mask);
    if (text > size || note.n_descsz > size - text)
      return false;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz >= 8) {
      if (note.n_descsz <= 20) {
        kiln__copy_text(out, 4, "id-");
        hex(out + 3, notes + text, note.n_descsz);
      } else {
        write_hash(out, "id-", kiln__hash128(notes + text, note.n_descsz, 0));
      }
      return true;
    }
    at = text + ((note.n_descsz + mask) & ~mask);
    if (at > size)
      return false;
  }
  return false;
}

static bool build_id(int fd, char out[48])
{
  unsigned char notes[4096];
  Elf64_Ehdr head;

  if (!read_at(fd, &head, sizeof head, 0) ||
      memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  for (unsigned i = 0; i < head.e_phnum; i++) {
    Elf64_Phdr segment;

    if (!read_at(fd, &segment, sizeof segment,
                 head.e_phoff + i * sizeof segment))
      return false;
    if (segment.p_type != PT_NOTE || segment.p_filesz > sizeof notes)
      continue;
    if (read_at(fd, notes, (size_t)segment.p_filesz, segment.p_offset) &&
        find_note(notes, (size_t)segment.p_filesz, segment.p_align == 8 ? 8 : 4,
                  out))
      return true;
  }
  return false;
}

static bool hash_pieces(int fd, uint64_t size, char out[48])
{
  unsigned char piece[PIECE];
  kiln__hash h = kiln__hash128(&size, sizeof size, 0);

  for (uint64_t i = 0; i < PIECES; i++) {
    const uint64_t room = size > PIECE ? size - PIECE : 0;
    const size_t n = size < PIECE ? (size_t)size : PIECE;
    kiln__hash part;

    if (!read_at(fd, piece, n, room * i / (PIECES - 1)))
      return false;
    part = kiln__hash128(piece, n, h.low);
    h.low = part.low ^ h.high;
    h.high = part.high;
  }
  write_hash(out, "fx-", h);
  return true;
}

bool kiln__library_build(const char *path, char out[48])
{
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat info;
  bool good;

  out[0] = '\0';
  if (fd < 0)
    return false;
  errno = 0;
  good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
         (build_id(fd, out) || hash_pieces(fd, (uint64_t)info.st_size, out));
  kiln__file_close(&kiln__fs_posix, fd);
  return good;
}
