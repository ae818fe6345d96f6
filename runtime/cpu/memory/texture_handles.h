/* texture_handles.h -- the table that maps handles of texture and surface
 * objects to the objects. All functions may be called from any thread. */
#ifndef KILN_CPU_TEXTURE_HANDLES_H
#define KILN_CPU_TEXTURE_HANDLES_H

#include "../model/texture_object.h"

/* The table of one CPU device. */
typedef struct kiln__cpu_textures kiln__cpu_textures;
/* Create an empty table. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__cpu_textures_create(kiln__cpu_textures **out,
                                      const kiln_allocator *a);
/* Free the table and its objects. NULL is allowed. */
void kiln__cpu_textures_free(kiln__cpu_textures *t);
/* Copy an object into the table. *handle: never 0, and not one of an object
 * that was removed before; 0 after a failure. KILN_OK, KILN_ENOMEM (also when
 * 2^20 objects exist). */
kiln_status kiln__cpu_texture_add(kiln__cpu_textures *t,
                                  const kiln__cpu_texture *texture,
                                  uint64_t *handle);
kiln_status kiln__cpu_surface_add(kiln__cpu_textures *t,
                                  const kiln__cpu_surface *surface,
                                  uint64_t *handle);
/* Remove an object. False: the table has no object with this handle. */
bool kiln__cpu_texture_remove(kiln__cpu_textures *t, uint64_t handle);
bool kiln__cpu_surface_remove(kiln__cpu_textures *t, uint64_t handle);
/* The object of a handle, or NULL if there is none. The pointer stays valid
 * until the object is removed. */
const kiln__cpu_texture *kiln__cpu_texture_find(kiln__cpu_textures *t,
                                                uint64_t handle);
const kiln__cpu_surface *kiln__cpu_surface_find(kiln__cpu_textures *t,
                                                uint64_t handle);

#endif
