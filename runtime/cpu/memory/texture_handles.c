/* texture_handles.c -- implements handles of texture and surface objects.
 *
 * The low 20 bits of a handle are an index into a table, plus 1. The other bits
 * are the number of times that the table entry was used. The handle of a
 * removed object therefore does not match the next object in the same entry.
 * Each object has its own allocation, so its address stays the same while the
 * table grows. */
#include "texture_handles.h"

#include <string.h>

enum { PLACES = 1 << 20 };

typedef struct object {
  /* number of times that this table entry was used, starting at 1 */
  uint32_t uses;
  bool taken, surface;
  union {
    kiln__cpu_texture texture;
    kiln__cpu_surface surface;
  } u;
} object;

struct kiln__cpu_textures {
  kiln_allocator alloc;
  pthread_rwlock_t lock;
  object **places;
  uint32_t n;
  size_t capacity;
  uint32_t first_free; /* all table entries below this index are in use */
};

kiln_status kiln__cpu_textures_create(kiln__cpu_textures **out,
                                      const kiln_allocator *a)
{
  kiln__cpu_textures *t = kiln__calloc(a, 1, sizeof *t);

  *out = NULL;
  if (t == NULL)
    return kiln__fail_memory("the table of textures");
  t->alloc = *a;
  if (pthread_rwlock_init(&t->lock, NULL) != 0) {
    kiln__free(a, t);
    return kiln__fail_memory("a lock");
  }
  *out = t;
  return KILN_OK;
}

void kiln__cpu_textures_free(kiln__cpu_textures *t)
{
  kiln_allocator alloc;

  if (t == NULL)
    return;
  alloc = t->alloc;
  for (uint32_t i = 0; i < t->n; i++)
    kiln__free(&alloc, t->places[i]);
  kiln__free(&alloc, t->places);
  pthread_rwlock_destroy(&t->lock);
  kiln__free(&alloc, t);
}

/* Finds a free table entry, or adds a new entry. Returns NULL if out of memory.
 * The caller holds the table's write lock. */
static object *take(kiln__cpu_textures *t, uint32_t *index)
{
  for (uint32_t i = t->first_free; i < t->n; i++) {
    if (!t->places[i]->taken) {
      *index = i;
      return t->places[i];
    }
  }
  if (t->n == PLACES)
    return NULL;
  if (!kiln__grow(&t->alloc, &t->places, t->n, &t->capacity, sizeof(object *)))
    return NULL;
  t->places[t->n] = kiln__calloc(&t->alloc, 1, sizeof(object));
  if (t->places[t->n] == NULL)
    return NULL;
  *index = t->n;
  return t->places[t->n++];
}

static kiln_status add(kiln__cpu_textures *t, const kiln__cpu_texture *texture,
                       const kiln__cpu_surface *surface, uint64_t *handle)
{
  object *o;
  uint32_t index = 0;

  *handle = 0;
  pthread_rwlock_wrlock(&t->lock);
  o = take(t, &index);
  if (o != NULL) {
    t->first_free = index + 1;
    o->taken = true;
    o->uses++;
    o->surface = surface != NULL;
    if (texture != NULL)
      o->u.texture = *texture;
    else if (surface != NULL)
      o->u.surface = *surface;
    *handle = (uint64_t)o->uses << 20 | (index + 1);
  }
  pthread_rwlock_unlock(&t->lock);
  return o == NULL ? kiln__fail_memory("a texture or surface object") : KILN_OK;
}

kiln_status kiln__cpu_texture_add(kiln__cpu_textures *t,
                                  const kiln__cpu_texture *texture,
                                  uint64_t *handle)
{
  return add(t, texture, NULL, handle);
}

kiln_status kiln__cpu_surface_add(kiln__cpu_textures *t,
                                  const kiln__cpu_surface *surface,
                                  uint64_t *handle)
{
  return add(t, NULL, surface, handle);
}

/* Returns the texture or surface object of a handle, or NULL if there is none.
 * The caller holds the table's lock. */
static object *find(const kiln__cpu_textures *t, uint64_t handle, bool surface)
{
  const uint64_t index = (handle & (PLACES - 1)) - 1;
  object *o;

  if (index >= t->n)
    return NULL;
  o = t->places[index];
  return o->taken && o->surface == surface && o->uses == handle >> 20 ? o
                                                                      : NULL;
}

static object *find_locked(kiln__cpu_textures *t, uint64_t handle, bool surface)
{
  object *o;

  pthread_rwlock_rdlock(&t->lock);
  o = find(t, handle, surface);
  pthread_rwlock_unlock(&t->lock);
  return o;
}

static bool drop(kiln__cpu_textures *t, uint64_t handle, bool surface)
{
  object *o;

  pthread_rwlock_wrlock(&t->lock);
  o = find(t, handle, surface);
  if (o != NULL) {
    const uint32_t index = (uint32_t)(handle & (PLACES - 1)) - 1;

    o->taken = false;
    if (index < t->first_free)
      t->first_free = index;
  }
  pthread_rwlock_unlock(&t->lock);
  return o != NULL;
}

bool kiln__cpu_texture_remove(kiln__cpu_textures *t, uint64_t handle)
{
  return drop(t, handle, false);
}

bool kiln__cpu_surface_remove(kiln__cpu_textures *t, uint64_t handle)
{
  return drop(t, handle, true);
}

const kiln__cpu_texture *kiln__cpu_texture_find(kiln__cpu_textures *t,
                                                uint64_t handle)
{
  const object *o = find_locked(t, handle, false);

  return o == NULL ? NULL : &o->u.texture;
}

const kiln__cpu_surface *kiln__cpu_surface_find(kiln__cpu_textures *t,
                                                uint64_t handle)
{
  const object *o = find_locked(t, handle, true);

  return o == NULL ? NULL : &o->u.surface;
}
