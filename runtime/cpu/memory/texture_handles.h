/* texture_handles.h -- the table that maps the handles of texture and surface
 * objects to the objects. */
#ifndef KILN_CPU_TEXTURE_HANDLES_H
#define KILN_CPU_TEXTURE_HANDLES_H

#include "../model/texture_object.h"

/* Handles are numbers that look like the driver's; the table maps them. Any
 * thread. */
typedef struct kiln__cpu_textures kiln__cpu_textures;
kiln_status kiln__cpu_textures_create(kiln__cpu_textures **out,
                                      const kiln_allocator *a);
void kiln__cpu_textures_free(kiln__cpu_textures *t);
kiln_status kiln__cpu_texture_add(kiln__cpu_textures *t,
                                  const kiln__cpu_texture *texture,
                                  uint64_t *handle);
kiln_status kiln__cpu_surface_add(kiln__cpu_textures *t,
                                  const kiln__cpu_surface *surface,
                                  uint64_t *handle);
bool kiln__cpu_texture_remove(kiln__cpu_textures *t, uint64_t handle);
bool kiln__cpu_surface_remove(kiln__cpu_textures *t, uint64_t handle);
/* NULL: no such handle. Stays valid until removed. */
const kiln__cpu_texture *kiln__cpu_texture_find(kiln__cpu_textures *t,
                                                uint64_t handle);
const kiln__cpu_surface *kiln__cpu_surface_find(kiln__cpu_textures *t,
                                                uint64_t handle);

#endif
