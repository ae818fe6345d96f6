/* image.c -- images: access to the sections of an entry, and the resources and
 * names of its kernels. */
#include "image.h"

#include "cubin.h"

#include <kiln/inspect.h>

#include <string.h>

const char *kiln_origin_name(kiln_origin origin)
{
  switch (origin) {
  case KILN_FROM_COMPILER:
    return "compiled";
  case KILN_FROM_MEMORY:
    return "memory";
  case KILN_FROM_DISK:
    return "disk";
  case KILN_FROM_PACK:
    return "pack";
  case KILN_FROM_OTHER_PROCESS:
    return "other process";
  }
  return "?";
}

/* ---- Reading a cache entry ---------------------------------------------- */

static kiln_status read_meta(kiln_image *image)
{
  kiln__meta meta;

  if (!kiln__meta_read(kiln__entry_get(image->entry, KILN__META), &meta))
    return kiln__fail(KILN_ECORRUPT, "clear the cache or rebuild the pack",
                      "an image does not name its target");
  image->nvrtc = meta.nvrtc;
  image->microseconds = meta.microseconds;
  image->target = meta.target;
  return KILN_OK;
}

static kiln_status read_report(kiln_image *image)
{
  const kiln__slice report = kiln__entry_get(image->entry, KILN__REPORT);
  kiln__report_line line;
  size_t kernels = 0, bytes = 0;
  char *name;

  for (size_t at = 0;
       kiln__report_next(report.data, report.size, &at, &line);) {
    kernels += line.kernel;
    bytes += line.name_size + 1;
  }
  image->names = kiln__alloc(image->alloc, bytes);
  image->resources =
      kiln__calloc(image->alloc, kernels, sizeof *image->resources);
  if (image->names == NULL || image->resources == NULL)
    return kiln__fail_memory("an image");
  name = image->names;
  for (size_t at = 0;
       kiln__report_next(report.data, report.size, &at, &line);) {
    image->spill += line.res.spill_stores + line.res.spill_loads;
    if (!line.kernel)
      continue;
    memcpy(name, line.name, line.name_size);
    name[line.name_size] = '\0';
    line.res.name = name;
    name += line.name_size + 1;
    image->resources[image->n++] = line.res;
  }
  return KILN_OK;
}

kiln_status kiln__image_open(kiln_image **out, const kiln_allocator *a,
                             kiln__entry *entry, kiln_origin origin)
{
  kiln_status st = KILN_OK;
  kiln_image *image = kiln__calloc(a, 1, sizeof *image);

  *out = NULL;
  if (image == NULL) {
    kiln__entry_unref(entry);
    return kiln__fail_memory("an image");
  }
  image->alloc = a;
  atomic_init(&image->refs, 1);
  image->entry = entry;
  image->origin = origin;
  KILN_TRY(read_meta(image));
  KILN_TRY(read_report(image));
  *out = image;
  image = NULL;

done:
  kiln_image_free(image);
  return st;
}

void kiln_image_free(kiln_image *image)
{
  const kiln_allocator *a;

  if (image == NULL ||
      atomic_fetch_sub_explicit(&image->refs, 1, memory_order_acq_rel) != 1)
    return;
  a = image->alloc;
  kiln__entry_unref(image->entry);
  kiln__free(a, image->names);
  kiln__free(a, image->resources);
  kiln__free(a, image);
}

kiln_image *kiln__image_ref(kiln_image *image)
{
  if (image != NULL)
    atomic_fetch_add_explicit(&image->refs, 1, memory_order_relaxed);
  return image;
}

kiln__entry *kiln__image_entry(const kiln_image *image)
{
  return image->entry;
}

kiln_status kiln__image_check_spill(const kiln_image *image, const char *name)
{
  char target[24];

  if (image->spill == 0)
    return KILN_OK;
  for (size_t i = 0; i < image->n; i++) {
    const kiln_resources *r = &image->resources[i];

    if (r->spill_stores > 0 || r->spill_loads > 0)
      return kiln__fail(
          KILN_ESPILL,
          "use fewer registers per thread: smaller tiles or blocks, or a "
          "higher "
          "max_registers",
          "kernel %s of %s spills for %s: %d bytes stored, %d loaded per "
          "thread",
          r->name, name, kiln_target_text(&image->target, target),
          r->spill_stores, r->spill_loads);
  }
  return kiln__fail(KILN_ESPILL, "let the compiler inline it, or simplify it",
                    "a device function of %s spills %d bytes for %s", name,
                    image->spill, kiln_target_text(&image->target, target));
}

/* ---- Access to the sections of an image --------------------------------- */

static const void *section(const kiln_image *image, kiln__section which,
                           size_t *size)
{
  kiln__slice s = {NULL, 0};

  if (image != NULL)
    s = kiln__entry_get(image->entry, which);
  if (size != NULL)
    *size = s.size;
  return s.data;
}

const char *kiln_image_ptx(const kiln_image *image, size_t *size)
{
  return section(image, KILN__PTX, size);
}

const void *kiln_image_cubin(const kiln_image *image, size_t *size)
{
  size_t n;
  const void *data = section(image, KILN__CUBIN, &n);

  if (size != NULL)
    *size = n;
  return n == 0 ? NULL : data;
}

const char *kiln_image_log(const kiln_image *image)
{
  return section(image, KILN__LOG, NULL);
}

kiln_target kiln_image_target(const kiln_image *image)
{
  static const kiln_target none;

  return image == NULL ? none : image->target;
}

kiln_origin kiln_image_origin(const kiln_image *image)
{
  return image == NULL ? KILN_FROM_COMPILER : image->origin;
}

int kiln_image_nvrtc(const kiln_image *image)
{
  return image == NULL ? 0 : image->nvrtc;
}

double kiln_image_compile_ms(const kiln_image *image)
{
  return image == NULL ? 0 : (double)image->microseconds / 1000;
}

const char *kiln_image_key(const kiln_image *image, const char **hash)
{
  if (hash != NULL)
    *hash = image == NULL ? NULL : kiln__entry_hash(image->entry);
  return image == NULL ? NULL : kiln__entry_key(image->entry).data;
}

size_t kiln_image_kernels(const kiln_image *image)
{
  return image == NULL ? 0 : image->n;
}

kiln_status kiln_image_resources(const kiln_image *image, size_t i,
                                 kiln_resources *out)
{
  size_t code;

  if (image == NULL || out == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "image or out is NULL");
  *out = (kiln_resources){0};
  if (i >= image->n)
    return kiln__fail(KILN_EINVAL, NULL,
                      "the image has %zu kernels, and %zu was asked for",
                      image->n, i);
  *out = image->resources[i];
  kiln_image_code(image, i, &code);
  out->code = (int)code;
  return KILN_OK;
}

const void *kiln_image_code(const kiln_image *image, size_t i, size_t *size)
{
  kiln__slice code = {NULL, 0}, cubin;
  kiln__elf e;

  cubin.data = kiln_image_cubin(image, &cubin.size);
  if (cubin.data != NULL && i < image->n && kiln__elf_open(&e, cubin))
    code = kiln__elf_section(
        &e, kiln__elf_find(&e, ".text.", image->resources[i].name));
  if (size != NULL)
    *size = code.size;
  return code.size == 0 ? NULL : code.data;
}

/* ---- Source -------------------------------------------------------------- */

/* Returns the length of `name` if `path` is the name or ends in "/NAME", or
 * else 0. */
static size_t names_file(const char *path, const char *name, size_t size)
{
  const size_t n = strlen(path);

  return n >= size && memcmp(path + n - size, name, size) == 0 &&
                 (n == size || path[n - size - 1] == '/')
             ? size
             : 0;
}

/* The cache key holds all sources. A field of a header or file is its name, a
 * NUL and the text. The longest name that fits the path is taken. */
const char *kiln_image_source(const kiln_image *image, const char *file,
                              size_t *size)
{
  kiln__slice key = {NULL, 0};
  const char *text = NULL;
  kiln__field f;
  size_t best = 0, program = 0;

  *size = 0;
  if (image != NULL && file != NULL)
    key = kiln__entry_key(image->entry);
  for (size_t at = 0; kiln__key_next(key.data, key.size, &at, &f);) {
    const char *end = memchr(f.value, '\0', f.size);
    const size_t name = end == NULL ? f.size : (size_t)(end - f.value);
    const size_t n = names_file(file, f.value, name);

    if (f.name_size == 7 && memcmp(f.name, "program", 7) == 0) {
      program = n;
    } else if (f.name_size == 6 && memcmp(f.name, "source", 6) == 0 &&
               program > best) {
      best = program;
      text = f.value;
      *size = f.size;
    } else if (end != NULL && n > best) {
      best = n;
      text = end + 1;
      *size = f.size - n - 1;
    }
  }
  return text;
}

/* ---- Names --------------------------------------------------------------- */

/* Returns the lowered (mangled) name of a name expression. Expressions for
 * variables are listed with a leading '&'. */
static const char *by_expression(const kiln_image *image, const char *name)
{
  const kiln__slice names = kiln__entry_get(image->entry, KILN__NAMES);
  const char *p = names.data, *end = p + names.size;
  const char *variable = NULL;

  while (p < end) {
    const char *expression = p;
    const char *lowered = p + strnlen(p, (size_t)(end - p)) + 1;

    if (lowered >= end)
      break;
    if (strcmp(expression, name) == 0)
      return lowered;
    if (expression[0] == '&' && strcmp(expression + 1, name) == 0)
      variable = lowered;
    p = lowered + strnlen(lowered, (size_t)(end - lowered)) + 1;
  }
  return variable;
}

/* Reads one component of a mangled name, such as "5saxpy". */
static bool take_part(const char **p, const char **part, size_t *size)
{
  size_t n = 0;

  while (**p >= '0' && **p <= '9' && n < 10000)
    n = n * 10 + (size_t)(*(*p)++ - '0');
  if (n == 0 || strnlen(*p, n) < n)
    return false;
  *part = *p;
  *size = n;
  *p += n;
  return true;
}

static bool same_text(const char *name, const char *part, size_t size)
{
  return strlen(name) == size && memcmp(name, part, size) == 0;
}

/* Returns true if `lowered` is the mangled form of `name`, with or without
 * namespaces. For example, _Z5saxpyfPf is saxpy, and _ZN2ns5saxpyEv is
 * ns::saxpy. The anonymous namespace has no name. Template names match without
 * their arguments. */
static bool demangles_to(const char *lowered, const char *name)
{
  const char *p = lowered, *part;
  size_t size, n;
  bool nested;

  if (p[0] != '_' || p[1] != 'Z')
    return false;
  p += 2;
  nested = *p == 'N';
  p += nested || *p == 'L'; /* the letter L marks internal linkage */
  if (!nested)
    return take_part(&p, &part, &size) && same_text(name, part, size);
  while (*p != 'E' && *p != 'I' && take_part(&p, &part, &size)) {
    const bool last = *p == 'E' || *p == 'I';

    if (last)
      return same_text(name, part, size);
    n = size >= 11 && memcmp(part, "_GLOBAL__N_", 11) == 0 ? 0 : size;
    if (n == 0)
      continue;
    if (strncmp(name, part, n) != 0 || strncmp(name + n, "::", 2) != 0)
      return false;
    name += n + 2;
  }
  return false;
}

const char *kiln_image_lowered(const kiln_image *image, const char *name)
{
  const char *lowered, *found = NULL;

  if (image == NULL || name == NULL)
    return NULL;
  lowered = by_expression(image, name);
  if (lowered != NULL)
    return lowered;
  for (size_t i = 0; i < image->n; i++) {
    if (strcmp(image->resources[i].name, name) == 0)
      return image->resources[i].name;
  }
  for (size_t i = 0; i < image->n; i++) {
    if (!demangles_to(image->resources[i].name, name))
      continue;
    if (found != NULL)
      /* The kernel is overloaded, so its plain name is ambiguous. Only a name
       * expression identifies it. */
      return NULL;
    found = image->resources[i].name;
  }
  return found;
}
