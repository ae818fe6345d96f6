/* texture_handles.h -- declares the table that maps the handles of texture and
 * surface objects to the objects. All functions are thread-safe. */
#ifndef KILN_CPU_TEXTURE_HANDLES_H
#define KILN_CPU_TEXTURE_HANDLES_H

#include "../model/texture_object.h"

/* The table of texture and surface objects of one CPU device. */
typedef struct kiln__cpu_textures kiln__cpu_textures;
/* Creates an empty table. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__cpu_textures_create(kiln__cpu_textures **out,
                                      const kiln_allocator *a);
/* Frees the table and its texture and surface objects. NULL is allowed. */
void kiln__cpu_textures_free(kiln__cpu_textures *t);
/* Copies a texture or surface object into the table and stores its handle. A
 * handle is never 0, and differs from the handles of removed objects. After a
 * failure *handle is 0. Returns KILN_OK, or KILN_ENOMEM if there is no memory
 * or 2^20 objects exist. */
kiln_status kiln__cpu_texture_add(kiln__cpu_textures *t,
                                  const kiln__cpu_texture *texture,
                                  uint64_t *handle);
kiln_status kiln__cpu_surface_add(kiln__cpu_textures *t,
                                  const kiln__cpu_surface *surface,
                                  uint64_t *handle);
/* Removes a texture or surface object. Returns false if the table has no object
 * with this handle. */
bool kiln__cpu_texture_remove(kiln__cpu_textures *t, uint64_t handle);
bool kiln__cpu_surface_remove(kiln__cpu_textures *t, uint64_t handle);
/* Returns the texture or surface object with this handle, or NULL if there is
 * none. The pointer stays valid until the object is removed. */
const kiln__cpu_texture *kiln__cpu_texture_find(kiln__cpu_textures *t,
                                                uint64_t handle);
const kiln__cpu_surface *kiln__cpu_surface_find(kiln__cpu_textures *t,
                                                uint64_t handle);

#endif
