/* pack_make.c -- writes packs from given images, or from all entries of the
 * cache. */
#include "image.h"

#include <kiln/cache.h>

static kiln_status check_pack(const kiln_runtime *rt, const char *path,
                              kiln_image *const *images, size_t n)
{
  if (rt == NULL || path == NULL || path[0] == '\0')
    return kiln__fail(KILN_EINVAL, NULL, "rt or path is missing");
  if (images == NULL || n == 0)
    return kiln__fail(KILN_EINVAL, NULL, "a pack needs at least one image");
  for (size_t i = 0; i < n; i++) {
    if (images[i] == NULL)
      return kiln__fail(KILN_EINVAL, NULL, "image %zu is NULL", i);
  }
  return KILN_OK;
}

kiln_status kiln_pack_write(kiln_runtime *rt, const char *path,
                            kiln_image *const *images, size_t n)
{
  kiln_status st = check_pack(rt, path, images, n);
  kiln__entry **entries = NULL;
  kiln_target *targets = NULL;

  if (st != KILN_OK)
    return st;
  entries = kiln__calloc(&rt->alloc, n, sizeof(void *));
  targets = kiln__calloc(&rt->alloc, n, sizeof *targets);
  if (entries == NULL || targets == NULL) {
    st = KILN_ENOMEM;
    kiln__fail_memory("a pack");
    goto done;
  }
  for (size_t i = 0; i < n; i++) {
    entries[i] = kiln__image_entry(images[i]);
    targets[i] = kiln_image_target(images[i]);
  }
  st = kiln__pack_write(&rt->alloc, path, entries, targets, n);

done:
  kiln__free(&rt->alloc, entries);
  kiln__free(&rt->alloc, targets);
  return st;
}

/* Makes an image from each cache entry that names its target. Takes ownership
 * of the references, also on failure. */
static kiln_status open_entries(const kiln_runtime *rt, kiln__entry **entries,
                                size_t n, kiln_image **images, size_t *good)
{
  kiln_status st = KILN_OK;

  for (size_t i = 0; i < n; i++) {
    const kiln_status own = kiln__image_open(&images[*good], &rt->alloc,
                                             entries[i], KILN_FROM_DISK);

    if (own == KILN_OK)
      ++*good;
    else if (own != KILN_ECORRUPT)
      st = own;
  }
  return st;
}

kiln_status kiln_pack_cache(kiln_runtime *rt, const char *path,
                            size_t *n_images)
{
  kiln__entry **entries = NULL;
  kiln_image **images = NULL;
  kiln_status st = KILN_OK;
  size_t n = 0, good = 0;

  if (n_images != NULL)
    *n_images = 0;
  if (rt == NULL || path == NULL || path[0] == '\0')
    return kiln__fail(KILN_EINVAL, NULL, "rt or path is missing");
  KILN_TRY(kiln__cache_entries(rt->cache, &entries, &n));
  images = kiln__calloc(&rt->alloc, n + 1, sizeof(kiln_image *));
  if (images == NULL) {
    for (size_t i = 0; i < n; i++)
      kiln__entry_unref(entries[i]);
    KILN_TRY(kiln__fail_memory("a pack"));
  }
  KILN_TRY(open_entries(rt, entries, n, images, &good));
  if (good == 0)
    KILN_TRY(kiln__fail(KILN_ENOTFOUND,
                        "run the application once where there is a compiler, "
                        "with this cache folder",
                        "the cache holds no image to pack"));
  st = kiln_pack_write(rt, path, images, good);
  if (st == KILN_OK && n_images != NULL)
    *n_images = good;

done:
  for (size_t i = 0; i < good; i++)
    kiln_image_free(images[i]);
  kiln__free(&rt->alloc, images);
  kiln__free(&rt->alloc, entries);
  return st;
}
