/* fatbin.c -- extracts PTX from fat binaries, compressed or not.
 *
 * A fat binary is a header, followed by entries. The header of an entry
 * specifies its kind (PTX, machine code, ...), its size and its compression.
 * Toolkits up to 12.3 compress with LZ4. Later toolkits compress with zstd, or
 * with LZ4 under -compress-mode=speed.
 *
 * NVIDIA does not document the format. The layout here was derived by comparing
 * files of nvcc 11 to 13. Every length is checked against the number of
 * remaining bytes before the length is used. */
#include "api_module.h"
#include "readable.h"

#include <string.h>

#if defined(KILN__HAVE_LZ4)
#include <lz4.h>
#endif
#if defined(KILN__HAVE_ZSTD)
#include <zstd.h>
#endif

typedef struct container_head {
  uint32_t magic;
  uint16_t version, head_size;
  uint64_t size; /* total size of all entries in bytes */
} container_head;

typedef struct entry_head {
  uint16_t kind, version;
  uint32_t head_size;
  uint64_t size; /* size of the payload in bytes, including padding */
  uint32_t packed_size;
  uint32_t options;
  uint16_t minor, major;
  uint32_t arch;
  uint32_t name_at, name_size;
  uint64_t flags;
  uint64_t zero;
  uint64_t unpacked_size;
} entry_head;

enum { KIND_PTX = 1, KIND_ELF = 2, KIND_LTO = 8 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
enum { TEXT_LIMIT = 1 << 30 };

/* What fat binaries contained, for messages. */
typedef struct fatbins {
  bool ptx, machine_code, lto; /* true if there are entries of this kind */
  int newest_version;          /* a .version that is not supported, or 0 */
} fatbins;

/* The best PTX of one fat binary. */
typedef struct best {
  kiln__cpu_ptx_text text;
  kiln__cpu_ptx_head head;
  bool any_version; /* true if every .version is accepted */
  /* probe of memory whose size is unknown, or NULL */
  const kiln__cpu_probe *probe;
  fatbins *found;
} best;

#if defined(KILN__HAVE_LZ4)
static bool unpack_lz4(char *to, size_t size, const uint8_t *from, size_t n)
{
  return LZ4_decompress_safe((const char *)from, to, (int)n, (int)size) ==
         (int)size;
}
#endif

#if defined(KILN__HAVE_ZSTD)
static bool unpack_zstd(char *to, size_t size, const uint8_t *from, size_t n)
{
  return ZSTD_decompress(to, size, from, n) == size;
}
#endif

/* Returns whether the payload can decompress to the size that the entry claims.
 * Callers check this before they allocate that many bytes. */
static bool plausible(const entry_head *e, const uint8_t *payload)
{
  const uint64_t most_lz4 = 255;

#if defined(KILN__HAVE_ZSTD)
  if ((e->flags & FLAG_ZSTD) != 0)
    return ZSTD_getFrameContentSize(payload, e->packed_size) ==
           e->unpacked_size;
#endif
  (void)payload;
  return (e->flags & FLAG_ZSTD) != 0 ||
         e->unpacked_size <= most_lz4 * e->packed_size;
}

/* Decompresses the payload. Returns CUDA_ERROR_INVALID_IMAGE if the payload is
 * damaged, or CUDA_ERROR_NOT_SUPPORTED if this build lacks the decompressor. */
static CUresult unpack(char *to, const entry_head *e, const uint8_t *payload,
                       kiln__buf *log)
{
  const size_t size = (size_t)e->unpacked_size, n = e->packed_size;
  const bool zstd = (e->flags & FLAG_ZSTD) != 0;
  bool known = false, ok = false;

#if defined(KILN__HAVE_LZ4)
  if (!zstd) {
    known = true;
    ok = unpack_lz4(to, size, payload, n);
  }
#endif
#if defined(KILN__HAVE_ZSTD)
  if (zstd) {
    known = true;
    ok = unpack_zstd(to, size, payload, n);
  }
#endif
  (void)to, (void)payload, (void)size, (void)n;
  if (!known)
    kiln__buf_format(log,
                     "PTX is compressed with %s, which this build of Kiln "
                     "lacks; build Kiln with it, or compile with "
                     "-compress-mode=%s\n",
                     zstd ? "zstd" : "LZ4", zstd ? "speed" : "none");
  else if (!ok)
    kiln__buf_text(log,
                   "the fat binary is damaged: its PTX cannot be unpacked\n");
  return ok      ? CUDA_SUCCESS
         : known ? CUDA_ERROR_INVALID_IMAGE
                 : CUDA_ERROR_NOT_SUPPORTED;
}

/* Stores a NUL-terminated copy of the PTX in an entry. */
static CUresult text_of(kiln__cpu_ptx_text *out, const kiln_allocator *a,
                        const entry_head *e, const uint8_t *payload,
                        kiln__buf *log)
{
  const bool packed = (e->flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0;
  const uint64_t size = packed ? e->unpacked_size : e->size;
  CUresult rc = CUDA_SUCCESS;

  if (size > TEXT_LIMIT ||
      (packed && (e->packed_size > e->size || !plausible(e, payload))))
    return CUDA_ERROR_INVALID_IMAGE;
  out->data = kiln__alloc(a, (size_t)size + 1);
  CU_TRY(allocated(out->data));
  if (packed)
    rc = unpack(out->data, e, payload, log);
  else
    memcpy(out->data, payload, (size_t)size);
  if (rc != CUDA_SUCCESS) {
    kiln__free(a, out->data);
    out->data = NULL;
    return rc;
  }
  out->data[size] = '\0';
  out->size = strlen(out->data);
  return CUDA_SUCCESS;
}

/* Returns whether the PTX entry `head` is a better choice than the best PTX so
 * far. The highest target that the device can run is best. Of two equal
 * targets, the target with a suffix is better. */
static bool better(const kiln__cpu_ptx_head *head, const best *b, int arch)
{
  if (!kiln__cpu_ptx_fits(head, arch))
    return false;
  if (b->text.data == NULL || head->target != b->head.target)
    return b->text.data == NULL || head->target > b->head.target;
  return head->suffix != 0 && b->head.suffix == 0;
}

/* Returns whether the PTX is that of libcudadevrt, whose functions the CPU device
 * implements itself. The library defines this function, and programs call it. */
static bool is_device_runtime(const char *text)
{
  const char *at = strstr(text, "cudaGetParameterBufferV2(");

  return at != NULL && strstr(text, "__CNPRT_VERSION_NUMBER__") != NULL;
}

/* Examines one entry of a fat binary, and stores its PTX if this PTX is the
 * best so far. */
static CUresult consider(best *b, const kiln_allocator *a, const entry_head *e,
                         const uint8_t *payload, int arch, kiln__buf *log)
{
  kiln__cpu_ptx_text text = {0};
  kiln__cpu_ptx_head head;

  b->found->machine_code |= e->kind == KIND_ELF;
  b->found->lto |= e->kind == KIND_LTO;
  if (e->kind != KIND_PTX)
    return CUDA_SUCCESS;
  if (e->size > TEXT_LIMIT || !kiln__cpu_readable(b->probe, payload, e->size))
    return CUDA_ERROR_INVALID_IMAGE;
  CU_TRY(text_of(&text, a, e, payload, log));
  head = kiln__cpu_ptx_head_of(text.data, text.size);
  if (is_device_runtime(text.data)) {
    kiln__free(a, text.data);
    return CUDA_SUCCESS;
  }
  b->found->ptx = true;
  if (head.version > KILN__PTX_VERSION && !b->any_version) {
    b->found->newest_version = head.version;
  } else if (better(&head, b, arch)) {
    kiln__free(a, b->text.data);
    b->text = text;
    b->head = head;
    text.data = NULL;
  }
  kiln__free(a, text.data);
  return CUDA_SUCCESS;
}

/* Examines every entry of a fat binary. A `size` of 0 means that the size is
 * unknown. */
static CUresult walk(best *b, const kiln_allocator *a, const uint8_t *bytes,
                     size_t size, int arch, kiln__buf *log)
{
  container_head head;
  uint64_t left;
  const uint8_t *at;

  if ((size != 0 && size < sizeof head) ||
      !kiln__cpu_readable(b->probe, bytes, sizeof head))
    return CUDA_ERROR_INVALID_IMAGE;
  memcpy(&head, bytes, sizeof head);
  if (head.magic != KILN__FATBIN_MAGIC || head.head_size < sizeof head ||
      (size != 0 &&
       (head.head_size > size || head.size > size - head.head_size)))
    return CUDA_ERROR_INVALID_IMAGE;
  at = bytes + head.head_size;
  for (left = head.size; left >= sizeof(entry_head);) {
    entry_head e;

    if (!kiln__cpu_readable(b->probe, at, sizeof e))
      return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&e, at, sizeof e);
    if (e.head_size < sizeof e || e.head_size > left ||
        e.size > left - e.head_size)
      return CUDA_ERROR_INVALID_IMAGE;
    CU_TRY(consider(b, a, &e, at + e.head_size, arch, log));
    at += e.head_size + e.size;
    left -= e.head_size + e.size;
  }
  return CUDA_SUCCESS;
}

/* Adds the best PTX of one fat binary, if there is any for this device. */
static CUresult add_best(kiln__cpu_image *out, fatbins *found,
                         const uint8_t *bytes, size_t size, int arch,
                         kiln__buf *log)
{
  kiln__cpu_probe probe = {.fd = -1};
  best b = {.any_version = out->any_version, .found = found, .probe = &probe};
  CUresult rc;

  if (size == 0)
    kiln__cpu_probe_open(&probe);
  rc = walk(&b, out->alloc, bytes, size, arch, log);
  kiln__cpu_probe_close(&probe);
  if (rc == CUDA_SUCCESS && b.text.data != NULL &&
      !kiln__cpu_image_add(out, b.text.data, b.text.size))
    rc = CUDA_ERROR_OUT_OF_MEMORY;
  kiln__free(out->alloc, b.text.data);
  return rc;
}

/* Reports why fat binaries contain no PTX for this device, and what to do. */
static CUresult refuse(const fatbins *found, int arch, kiln__buf *log)
{
  if (found->newest_version != 0) {
    kiln__buf_format(log, "PTX .version %d.%d is newer than %d.%d\n",
                     found->newest_version / 10, found->newest_version % 10,
                     KILN__PTX_VERSION / 10, KILN__PTX_VERSION % 10);
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (found->ptx)
    kiln__buf_format(log,
                     "the fat binary's PTX is for devices later than "
                     "capability %d.%d; compile with -gencode "
                     "arch=compute_%d,code=compute_%d\n",
                     arch / 10, arch % 10, arch, arch);
  else
    kiln__buf_format(log,
                     "the fat binary holds %s; the CPU device runs PTX: "
                     "compile with -gencode arch=compute_%d,code=compute_%d\n",
                     found->machine_code ? "machine code alone"
                     : found->lto        ? "LTO-IR alone"
                                         : "no PTX",
                     arch, arch);
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult kiln__cpu_fatbin_read(kiln__cpu_image *out, const uint8_t *bytes,
                               size_t size, int arch, kiln__buf *log)
{
  const size_t before = out->n;
  fatbins found = {0};

  CU_TRY(add_best(out, &found, bytes, size, arch, log));
  return out->n > before ? CUDA_SUCCESS : refuse(&found, arch, log);
}

CUresult kiln__cpu_fatbin_link(kiln__cpu_image *out, const void *const *parts,
                               int arch, kiln__buf *log)
{
  fatbins found = {0};
  kiln__cpu_probe probe;
  CUresult rc = CUDA_SUCCESS;

  kiln__cpu_probe_open(&probe);
  for (; rc == CUDA_SUCCESS; parts++) {
    if (!kiln__cpu_readable(&probe, parts, sizeof *parts))
      rc = CUDA_ERROR_INVALID_IMAGE;
    else if (*parts == NULL)
      break;
    else
      rc = add_best(out, &found, *parts, 0, arch, log);
  }
  kiln__cpu_probe_close(&probe);
  CU_TRY(rc);
  if (out->n > 0)
    return CUDA_SUCCESS;
  kiln__buf_text(log, "relocatable device code (-rdc=true): ");
  return refuse(&found, arch, log);
}
