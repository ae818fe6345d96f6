/* image.h -- an image: a cache entry with its sections parsed. */
#ifndef KILN_IMAGE_H
#define KILN_IMAGE_H

#include "compiler.h"

struct kiln_image {
  const kiln_allocator *alloc; /* the runtime's */
  atomic_int refs;
  kiln__entry *entry;
  kiln_origin origin;
  kiln_target target;
  int nvrtc;
  uint64_t microseconds;
  char *names;               /* of the kernels, one after another */
  kiln_resources *resources; /* of the kernels; names point into `names` */
  size_t n;
  int spill; /* bytes spilled by kernels and functions together */
};

/* Makes an image with one reference. Takes over the reference to the entry,
 * also on failure. KILN_OK, KILN_ENOMEM, KILN_ECORRUPT. */
kiln_status kiln__image_open(kiln_image **out, const kiln_allocator *a,
                             kiln__entry *entry, kiln_origin origin);

/* The key of a request, and the image if the cache has it, else NULL. The
 * callbacks of the description are not called. */
kiln_status kiln__request_key(kiln__key *key, kiln_image **cached,
                              kiln_runtime *rt, const kiln_program_desc *desc,
                              const kiln_traits *traits,
                              const kiln__image_request *req);

/* KILN_OK, or KILN_ESPILL naming the first kernel or function that spills. */
kiln_status kiln__image_check_spill(const kiln_image *image, const char *name);

#endif
