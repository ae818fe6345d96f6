/* link.h -- programs that are linked from a kernel and the user's expressions. */
#ifndef KILN_OPS_LINK_H
#define KILN_OPS_LINK_H

#include "../../program/image.h"
#include "../ops.h"

/* Does what kiln__build_make() does for a request with objects: a function for
 * kiln__linked.make. */
kiln_status kiln__linked_make(void *build, kiln__entry **out);

/* Appends one PTX source with the kernels of `body` and the functions of
 * `texts` that they call (join_ptx.c). Returns KILN_OK, KILN_EUNSUPPORTED if the
 * sources cannot be joined, or KILN_ENOMEM. */
kiln_status kiln__join_ptx(kiln__buf *out, const char *body, const char *texts);

/* Loads the linker that kiln__device_link() will use for a request, if it must
 * be loaded. Loading takes 30 ms. Without a linker nothing happens. */
void kiln__device_prepare_link(void *device, const kiln__image_request *req);
/* Links two objects for a device, a kiln_device: by nvJitLink, or by the driver.
 * This is a function for kiln__linked.link. Thread-safe. */
kiln_status kiln__device_link(void *device, const kiln__object objects[2],
                              const kiln_target *target, int nvrtc,
                              kiln__buf *out);

#endif
