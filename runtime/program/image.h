/* image.h -- an image is a cache entry with parsed sections. */
#ifndef KILN_IMAGE_H
#define KILN_IMAGE_H

#include "compiler.h"

struct kiln_image {
  const kiln_allocator *alloc; /* the runtime's allocator */
  atomic_int refs;
  kiln__entry *entry;
  kiln_origin origin;
  kiln_target target;
  int nvrtc;
  uint64_t microseconds;
  char *names; /* names of the kernels, each followed by a NUL */
  /* resource usage per kernel; the names point into `names` */
  kiln_resources *resources;
  size_t n;
  int spill; /* total bytes spilled by all kernels and functions */
};

/* Makes an image with one reference from a cache entry. Takes ownership of the
 * caller's reference to the entry, also on failure. Returns KILN_OK,
 * KILN_ENOMEM or KILN_ECORRUPT. */
kiln_status kiln__image_open(kiln_image **out, const kiln_allocator *a,
                             kiln__entry *entry, kiln_origin origin);

/* Makes the key of a request, and looks up the image in the cache. *out is NULL
 * if the cache does not have the image. The callbacks of the description are
 * not called. */
kiln_status kiln__request_key(kiln__key *key, kiln_image **cached,
                              kiln_runtime *rt, const kiln_program_desc *desc,
                              const kiln_traits *traits,
                              const kiln__image_request *req);

/* Returns KILN_OK, or KILN_ESPILL with a record that names the first kernel or
 * function that spills registers. */
kiln_status kiln__image_check_spill(const kiln_image *image, const char *name);

#endif
