/* api_image.c -- recognises the images that cuModuleLoadData accepts, and
 * extracts their PTX.
 *
 * The driver receives a pointer without a size. The first bytes determine the
 * format. An image is PTX source, a fat binary, the wrapper that nvcc puts
 * around a fat binary in programs, a result of cuLinkComplete, or machine code.
 * Inputs of a link, whose size is known, may also be object files of the host and
 * archives of them; see host_objects.c.
 * Machine code cannot run here. After the format is known, the length fields in
 * its headers bound every access. */
#include "../driver_log.h"
#include "../missing.h"
#include "../observe.h"
#include "api_module.h"
#include "readable.h"

#include "../../../base/os.h"
#include "../../model/linked_image.h"

#include <string.h>

enum { IMAGE_LIMIT = 1 << 30 };

bool kiln__cpu_image_add(kiln__cpu_image *image, const char *data, size_t size)
{
  kiln__cpu_ptx_text *more =
      kiln__resize(image->alloc, image->texts, (image->n + 1) * sizeof *more);
  char *copy;

  if (more == NULL)
    return false;
  image->texts = more;
  /* Containers pad PTX source with NULs, so the first NUL ends the source. */
  copy = kiln__strndup(image->alloc, data, strnlen(data, size));
  if (copy == NULL)
    return false;
  more[image->n++] = (kiln__cpu_ptx_text){copy, strlen(copy)};
  return true;
}

void kiln__cpu_image_free(kiln__cpu_image *image)
{
  for (size_t i = 0; i < image->n; i++)
    kiln__free(image->alloc, image->texts[i].data);
  kiln__free(image->alloc, image->texts);
  image->texts = NULL;
  image->n = 0;
}

void kiln__cpu_image_limit(kiln__cpu_image *image, uint32_t max_registers)
{
  if (image->max_registers == 0)
    image->max_registers = max_registers;
}

void kiln__cpu_image_write(const kiln__cpu_image *image, kiln__buf *out)
{
  kiln__linked_head head = {.size = sizeof head,
                            .n = image->n,
                            .max_registers = image->max_registers};

  memcpy(head.magic, KILN__LINKED_MAGIC, sizeof head.magic);
  for (size_t i = 0; i < image->n; i++)
    head.size += sizeof(uint64_t) + image->texts[i].size + 1;
  kiln__buf_add(out, &head, sizeof head);
  for (size_t i = 0; i < image->n; i++) {
    const uint64_t size = image->texts[i].size;

    kiln__buf_add(out, &size, sizeof size);
    kiln__buf_add(out, image->texts[i].data, image->texts[i].size + 1);
  }
}

/* ---- Directives at the start of PTX source ------------------------------- */

/* Returns a pointer to the first byte that is neither white space nor part of a
 * comment. */
static const char *skip_blank(const char *p, const char *end)
{
  while (p < end) {
    if (*p == ' ' || (*p >= '\t' && *p <= '\r')) {
      p++;
    } else if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
      const char *line = memchr(p, '\n', (size_t)(end - p));

      p = line == NULL ? end : line;
    } else if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
      for (p += 2; p < end && !(p[0] == '*' && end - p >= 2 && p[1] == '/');)
        p++;
      p = end - p >= 2 ? p + 2 : end;
    } else {
      break;
    }
  }
  return p;
}

static const char *word(const char *p, const char *end, const char *text)
{
  const size_t n = strlen(text);

  return (size_t)(end - p) >= n && memcmp(p, text, n) == 0 ? p + n : NULL;
}

static const char *number(const char *p, const char *end, int *out)
{
  *out = 0;
  while (p < end && *p >= '0' && *p <= '9' && *out < 100000)
    *out = *out * 10 + (*p++ - '0');
  return p;
}

kiln__cpu_ptx_head kiln__cpu_ptx_head_of(const char *text, size_t size)
{
  const char *end = text + size, *p = skip_blank(text, end), *q;
  kiln__cpu_ptx_head head = {0};
  int minor = 0;

  q = word(p, end, ".version");
  if (q == NULL)
    return head;
  p = number(skip_blank(q, end), end, &head.version);
  if (p < end && *p == '.')
    p = number(p + 1, end, &minor);
  head.version = head.version * 10 + minor;
  q = word(skip_blank(p, end), end, ".target");
  if (q == NULL)
    return head;
  q = word(skip_blank(q, end), end, "sm_");
  if (q == NULL)
    return head;
  p = number(q, end, &head.target);
  if (p < end && (*p == 'a' || *p == 'f'))
    head.suffix = *p;
  return head;
}

bool kiln__cpu_ptx_fits(const kiln__cpu_ptx_head *head, int arch)
{
  switch (head->suffix) {
  case 'a':
    return head->target == arch;
  case 'f':
    return head->target / 10 == arch / 10 && head->target <= arch;
  default:
    return head->target <= arch;
  }
}

/* ---- Images -------------------------------------------------------------- */

/* Checks .version and .target before the PTX is parsed. If these directives
 * cannot be read, the parser reports the error with a line number. */
static CUresult check_head(const kiln__cpu_ptx_head *head, bool any_version,
                           int arch, kiln__buf *log)
{
  if (head->version > KILN__PTX_VERSION && !any_version) {
    kiln__buf_format(log,
                     "PTX .version %d.%d is newer than %d.%d, which the CPU "
                     "device supports\n",
                     head->version / 10, head->version % 10,
                     KILN__PTX_VERSION / 10, KILN__PTX_VERSION % 10);
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (!kiln__cpu_ptx_fits(head, arch)) {
    kiln__buf_format(
        log,
        "PTX .target sm_%d%.1s does not run on capability %d.%d; set "
        "arch of the CPU device, or compile for an older target\n",
        head->target, head->suffix == 0 ? "" : &head->suffix, arch / 10,
        arch % 10);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  return CUDA_SUCCESS;
}

static CUresult read_text(kiln__cpu_image *out, const char *text, size_t size,
                          int arch, kiln__buf *log)
{
  const kiln__cpu_ptx_head head = kiln__cpu_ptx_head_of(text, size);

  CU_TRY(check_head(&head, out->any_version, arch, log));
  return kiln__cpu_image_add(out, text, size) ? CUDA_SUCCESS
                                              : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Reads a container of linked PTX. The length fields are checked against the
 * size of the container. */
static CUresult read_linked(kiln__cpu_image *out, const uint8_t *bytes,
                            size_t size, int arch, kiln__buf *log)
{
  kiln__linked_head head;
  size_t at = sizeof head;

  if (size != 0 && size < sizeof head)
    return CUDA_ERROR_INVALID_IMAGE;
  memcpy(&head, bytes, sizeof head);
  if (head.size < sizeof head || head.size > IMAGE_LIMIT ||
      (size != 0 && head.size > size))
    return CUDA_ERROR_INVALID_IMAGE;
  out->any_version = out->linked = true;
  out->max_registers = (uint32_t)head.max_registers;
  for (uint64_t i = 0; i < head.n; i++) {
    uint64_t length;

    if (head.size - at < sizeof length)
      return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&length, bytes + at, sizeof length);
    at += sizeof length;
    if (length >= head.size - at)
      return CUDA_ERROR_INVALID_IMAGE;
    CU_TRY(read_text(out, (const char *)bytes + at, (size_t)length, arch, log));
    at += (size_t)length + 1;
  }
  return out->n == 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

/* Returns whether the bytes start with a PTX directive, after any comments. A
 * size of 0 means that the bytes are NUL-terminated. */
static bool is_text(const char *text, size_t size)
{
  const size_t n = size == 0 ? strlen(text) : strnlen(text, size);
  const char *p = skip_blank(text, text + n);

  return p < text + n && *p == '.';
}

static const uint8_t fatbin[] = {0x50, 0xed, 0x55, 0xba};

/* Reads a __fatBinC_Wrapper_t of CUDA's fatbinary_section.h. Version 2 stands
 * for relocatable device code. In version 2, `data` is the result of the host
 * linker's step and is often empty. `parts` is a NULL-terminated array of the
 * fat binaries of the objects. */
static CUresult read_wrapper(kiln__cpu_image *out, const uint8_t *bytes,
                             int arch, kiln__buf *log)
{
  struct {
    uint32_t magic, version;
    const void *data;
    const void *const *parts;
  } w;
  kiln__cpu_probe probe;
  bool known;

  memcpy(&w, bytes, sizeof w);
  out->linked = w.version == 2 && w.parts != NULL;
  if (out->linked)
    return kiln__cpu_fatbin_link(out, w.parts, arch, log);
  kiln__cpu_probe_open(&probe);
  known = w.data != NULL && kiln__cpu_readable(&probe, w.data, sizeof fatbin) &&
          memcmp(w.data, fatbin, sizeof fatbin) == 0;
  kiln__cpu_probe_close(&probe);
  if (!known)
    return CUDA_ERROR_INVALID_IMAGE;
  return kiln__cpu_fatbin_read(out, w.data, 0, arch, log);
}

/* Determines the format of an image from its first bytes. */
static CUresult read_any(kiln__cpu_image *out, const uint8_t *bytes,
                         size_t size, int arch, kiln__buf *log)
{
  static const uint8_t wrapper[] = {0xb1, 0x43, 0x62, 0x46};
  /* If the size is unknown, the bytes may be a string shorter than a magic
   * number. strncmp stops at the NUL of the string and does not read
   * further. */
  const bool some = size == 0 || size >= 32;

  if (size != 0 && kiln__cpu_is_objects(bytes, size))
    return kiln__cpu_objects_read(out, bytes, size, arch, log);
  if (some && strncmp((const char *)bytes, "\177ELF", 4) == 0) {
    kiln__buf_text(log, "machine code alone: the CPU device runs PTX; compile "
                        "for compute_XX, or load the PTX itself\n");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (some && strncmp((const char *)bytes, KILN__LINKED_MAGIC,
                      KILN__LINKED_MAGIC_SIZE) == 0)
    return read_linked(out, bytes, size, arch, log);
  if (some && strncmp((const char *)bytes, (const char *)fatbin, 4) == 0)
    return kiln__cpu_fatbin_read(out, bytes, size, arch, log);
  /* A wrapper contains pointers, so it is never accepted from a file. */
  if (size == 0 && strncmp((const char *)bytes, (const char *)wrapper, 4) == 0)
    return read_wrapper(out, bytes, arch, log);
  if (is_text((const char *)bytes, size))
    return read_text(out, (const char *)bytes,
                     size == 0 ? strlen((const char *)bytes) : size, arch, log);
  kiln__buf_text(log, "neither PTX nor a fat binary\n");
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult kiln__cpu_image_read(kiln__cpu_image *out, const kiln_allocator *a,
                              const void *bytes, size_t size, int arch,
                              kiln__buf *log)
{
  *out = (kiln__cpu_image){.alloc = a};
  return kiln__cpu_image_append(out, bytes, size, arch, log);
}

CUresult kiln__cpu_image_append(kiln__cpu_image *out, const void *bytes,
                                size_t size, int arch, kiln__buf *log)
{
  CUresult rc = read_any(out, bytes, size, arch, log);

  if (rc != CUDA_SUCCESS)
    kiln__cpu_image_free(out);
  return rc;
}

/* Tells the user of `kiln exec` why an image cannot run. Programs often ignore
 * the log of the loader. */
static void note_refused(CUresult rc, const kiln__buf *log)
{
  char advice[512];

  if (rc != CUDA_SUCCESS && log->data != NULL)
    kiln__cpu_log_error(log->data, log->size);
  if (rc != CUDA_ERROR_NO_BINARY_FOR_GPU &&
      rc != CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    return;
  kiln__copy_text(advice, sizeof advice, log->data == NULL ? "" : log->data);
  advice[strcspn(advice, "\n")] = '\0';
  kiln__cpu_note("kernels without PTX", advice);
}

static CUresult open_image(kiln__cpu_image *out, const char *path,
                           const void *bytes, size_t size, kiln__buf *log)
{
  const kiln_allocator *a = &machine()->alloc;
  const int arch = machine()->opts.arch;
  const uint64_t begin = kiln__clock_ns();
  kiln__buf file;
  CUresult rc;

  if (path == NULL) {
    rc = kiln__cpu_image_read(out, a, bytes, size, arch, log);
    kiln__cpu_report_load(0, begin);
    return rc;
  }
  *out = (kiln__cpu_image){.alloc = a};
  kiln__buf_init(&file, a);
  switch (kiln__read_file(&file, path, IMAGE_LIMIT)) {
  case KILN_OK:
    rc = file.size == 0
             ? CUDA_ERROR_INVALID_IMAGE
             : kiln__cpu_image_read(out, a, file.data, file.size, arch, log);
    break;
  case KILN_ENOMEM:
    rc = CUDA_ERROR_OUT_OF_MEMORY;
    break;
  default:
    rc = CUDA_ERROR_FILE_NOT_FOUND;
  }
  kiln__buf_free(&file);
  kiln__cpu_report_load(0, begin);
  return rc;
}

CUresult kiln__cpu_image_open(kiln__cpu_image *out, const char *path,
                              const void *bytes, size_t size, kiln__buf *log)
{
  const CUresult rc = open_image(out, path, bytes, size, log);

  note_refused(rc, log);
  return rc;
}
