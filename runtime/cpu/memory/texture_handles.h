/* texture_handles.h -- the table that maps the handles of texture and surface
 * objects to the objects. */
#ifndef KILN_CPU_TEXTURE_HANDLES_H
#define KILN_CPU_TEXTURE_HANDLES_H

#include "../model/texture_object.h"

/* Handles are numbers that look like the driver's; the table maps them. Any
 * thread. */
typedef struct kiln__textures kiln__textures;
kiln_status kiln__textures_create(kiln__textures **out,
                                  const kiln_allocator *a);
void kiln__textures_free(kiln__textures *t);
kiln_status kiln__texture_add(kiln__textures *t, const kiln__texture *texture,
                              uint64_t *handle);
kiln_status kiln__surface_add(kiln__textures *t, const kiln__surface *surface,
                              uint64_t *handle);
bool kiln__texture_remove(kiln__textures *t, uint64_t handle);
bool kiln__surface_remove(kiln__textures *t, uint64_t handle);
/* NULL: no such handle. Stays valid until removed. */
const kiln__texture *kiln__texture_find(kiln__textures *t, uint64_t handle);
const kiln__surface *kiln__surface_find(kiln__textures *t, uint64_t handle);

#endif
