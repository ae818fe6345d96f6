/* load_library.c -- finds and loads shared libraries, and avoids two dangers of
 * dlopen().
 *
 * Problem: dlopen() of a truncated file ends the process with SIGBUS.
 * dlopen("libx.so") loads a file from the current directory if LD_LIBRARY_PATH
 * or a RUNPATH has an empty or relative element.
 * Idea: search the same folders as the loader, but only absolute ones. dlinfo()
 * lists the loader's folders; /etc/ld.so.cache lists the remaining libraries.
 * The size of each candidate is compared with its program headers. Only then is
 * the library loaded by its full path.
 * Cost: one stat() per folder and a few reads from the beginning of each
 * candidate. */
#include "load_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#if defined(__aarch64__)
enum { CACHE_MACHINE = 0x0a00 };
#else
enum { CACHE_MACHINE = 0x0300 };
#endif

/* ---- Check whether a library file is truncated -------------------------- */

/* Returns the file offset of the end of the last segment, or 0 if the file is
 * not a 64-bit ELF file. In the latter case dlopen() itself reports the error.
 */
static uint64_t segments_end(int fd, uint64_t size)
{
  const kiln__fs *fs = &kiln__fs_posix;
  uint64_t end = 0;
  Elf64_Ehdr head;

  if (!kiln__pread_all(fs, fd, &head, sizeof head, 0) ||
      memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_phentsize != sizeof(Elf64_Phdr))
    return 0;
  for (unsigned i = 0; i < head.e_phnum; i++) {
    const uint64_t at = head.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;

    if (at > size || !kiln__pread_all(fs, fd, &segment, sizeof segment, at))
      /* the file ends within its program headers */
      return at + sizeof segment;
    if (segment.p_type == PT_LOAD && segment.p_filesz <= UINT64_MAX / 2 &&
        segment.p_offset <= UINT64_MAX / 2 &&
        segment.p_offset + segment.p_filesz > end)
      end = segment.p_offset + segment.p_filesz;
  }
  return end;
}

bool kiln__library_truncated(const char *path, char why[256])
{
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  uint64_t end = 0, size = 0;
  struct stat info;

  if (fd < 0)
    return false;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    size = (uint64_t)info.st_size;
    end = segments_end(fd, size);
  }
  close(fd);
  if (end <= size)
    return false;
  kiln__format(why, 256,
               "the file is truncated: it has %llu bytes, and its program "
               "headers name %llu; install it again",
               (unsigned long long)size, (unsigned long long)end);
  return true;
}

void *kiln__library_open(const char *path, char why[256])
{
  void *library = NULL;
  const char *reason;

  if (kiln__library_truncated(path, why))
    return NULL;
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    reason = dlerror();
    kiln__copy_text(why, 256, reason == NULL ? "not loaded" : reason);
  }
  return library;
}

/* ---- The folders that the system's loader searches ---------------------- */

/* Returns a handle of the file that contains this function. Kiln's shared
 * library has its own RUNPATH. If Kiln is linked statically, the file is the
 * program. */
static void *own_handle(void)
{
  static const char here;
  void *library = NULL;
  Dl_info self;

  if (dladdr(&here, &self) != 0 && self.dli_fname != NULL &&
      self.dli_fname[0] == '/')
    library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return library != NULL ? library : dlopen(NULL, RTLD_LAZY);
}

kiln_status kiln__loader_folders(kiln__buf *out, void *library, bool *relative)
{
  void *own = library == NULL ? own_handle() : NULL;
  Dl_serinfo head, *info = NULL;
  bool other = false;

  if (library == NULL)
    library = own;
  if (library != NULL && dlinfo(library, RTLD_DI_SERINFOSIZE, &head) == 0) {
    info = kiln__calloc(out->alloc, 1, head.dls_size);
    out->failed = out->failed || info == NULL;
  }
  if (info != NULL) {
    const Dl_serpath *paths = info->dls_serpath;

    info->dls_size = head.dls_size;
    info->dls_cnt = head.dls_cnt;
    if (dlinfo(library, RTLD_DI_SERINFO, info) != 0)
      info->dls_cnt = 0;
    for (unsigned i = 0; i < info->dls_cnt; i++) {
      const char *name = paths[i].dls_name;

      if (name != NULL && name[0] == '/')
        kiln__buf_add(out, name, strlen(name) + 1);
      else
        other = true;
    }
  }
  kiln__free(out->alloc, info);
  if (own != NULL)
    dlclose(own);
  if (relative != NULL)
    *relative = other;
  return out->failed ? KILN_ENOMEM : KILN_OK;
}

/* ---- The loader's cache file, /etc/ld.so.cache -------------------------- */

/* Layout of /etc/ld.so.cache since glibc 2.2; see ldconfig(8). */
typedef struct cache_head {
  char magic[20]; /* the string "glibc-ld.so.cache1.1" without its NUL */
  uint32_t n, strings;
  uint32_t unused[5];
} cache_head;

typedef struct cache_row {
  int32_t flags;
  /* Byte offsets of strings, counted from the file header. */
  uint32_t key, value;
  uint32_t os;
  uint64_t hwcap;
} cache_row;

static bool each_row(const char *data, size_t size, const char *prefix,
                     kiln__library_fn fn, void *user)
{
  cache_head head;

  memcpy(&head, data, sizeof head);
  if (memcmp(head.magic, "glibc-ld.so.cache1.1", sizeof head.magic) != 0 ||
      head.n > (size - sizeof head) / sizeof(cache_row))
    return false;
  for (uint32_t i = 0; i < head.n; i++) {
    cache_row row;

    memcpy(&row, data + sizeof head + i * sizeof row, sizeof row);
    /* The file data is followed by a NUL byte, so a string may start at every
     * offset within the data. */
    if (row.key < size && row.value < size &&
        (row.flags & 0xff00) == CACHE_MACHINE &&
        kiln__starts_with(data + row.key, prefix) && data[row.value] == '/' &&
        fn(user, data + row.value))
      return true;
  }
  return false;
}

bool kiln__loader_cache_each(const kiln_allocator *a, const char *cache,
                             const char *prefix, kiln__library_fn fn,
                             void *user, bool *no_memory)
{
  enum { OLD_HEAD = 16, OLD_ROW = 12, LIMIT = 1 << 26 };
  bool stopped = false;
  kiln__buf text;
  size_t at = 0;

  kiln__buf_init(&text, a);
  if (kiln__read_file(&text, cache, LIMIT) == KILN_OK) {
    /* The file may contain a table of the older format, followed by the table
     * of the newer format. */
    if (text.size > OLD_HEAD && memcmp(text.data, "ld.so-1.7.0", 11) == 0) {
      uint32_t n;

      memcpy(&n, text.data + 12, sizeof n);
      at = OLD_HEAD + (size_t)n * OLD_ROW;
      at = (at + 7) & ~(size_t)7;
    }
    if (at < text.size && text.size - at >= sizeof(cache_head))
      stopped = each_row(text.data + at, text.size - at, prefix, fn, user);
  }
  if (no_memory != NULL)
    *no_memory = *no_memory || text.failed;
  kiln__buf_free(&text);
  return stopped;
}

/* ---- Search of the folders and of the cache file ------------------------ */

typedef struct visit {
  kiln__library_fn fn;
  void *user;
  const char *soname;
} visit;

/* A prefix match is not sufficient, since other library names may also begin
 * with "libcuda.so.1". */
static bool visit_cached(void *user, const char *path)
{
  const visit *v = user;
  const char *slash = strrchr(path, '/');

  return strcmp(slash + 1, v->soname) == 0 && access(path, F_OK) == 0 &&
         v->fn(v->user, path);
}

bool kiln__library_each(const kiln_allocator *a, const char *soname,
                        kiln__library_fn fn, void *user)
{
  visit v = {fn, user, soname};
  kiln_error record;
  bool stopped = false;
  kiln__buf folders;
  char path[4096];

  kiln__buf_init(&folders, a);
  kiln__loader_folders(&folders, NULL, NULL);
  for (size_t at = 0; at < folders.size && !stopped;
       at += strlen(folders.data + at) + 1) {
    if (kiln__format(path, sizeof path, "%s/%s", folders.data + at, soname) &&
        access(path, F_OK) == 0)
      stopped = fn(user, path);
  }
  kiln__buf_free(&folders);
  if (stopped)
    return true;
  kiln__error_get(&record); /* a missing loader cache is not a failure */
  stopped = kiln__loader_cache_each(a, "/etc/ld.so.cache", soname, visit_cached,
                                    &v, NULL);
  if (!stopped)
    kiln__error_set(&record);
  return stopped;
}
