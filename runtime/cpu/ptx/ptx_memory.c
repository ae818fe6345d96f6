/* ptx_memory.c -- the arena of a module, and the dynamic arrays of the parser.
 *
 * Nodes of the syntax tree are allocated in the arena and are freed together
 * with the module. The arena consists of chunks of 64 KiB. A larger request
 * gets a chunk of its own. Dynamic arrays are allocated with the allocator,
 * because they move when they grow. Their final content is copied to the arena.
 */
#include "parse.h"

enum { CHUNK = 1 << 16, ALIGN = 16 };

typedef struct chunk {
  struct chunk *next;
  size_t used, size;
} chunk;

typedef struct arena {
  kiln_allocator alloc;
  chunk *chunks; /* list of chunks, newest first */
  char *source;
  size_t source_size;
} arena;

static size_t rounded(size_t size)
{
  return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static void *arena_take(arena *a, size_t size)
{
  const size_t head = rounded(sizeof(chunk));
  chunk *c = a->chunks;
  char *result;

  if (size > SIZE_MAX / 2)
    return NULL;
  size = rounded(size == 0 ? 1 : size);
  if (c == NULL || size > c->size - c->used) {
    const size_t bytes = size > CHUNK ? size : CHUNK;

    c = kiln__alloc(&a->alloc, head + bytes);
    if (c == NULL)
      return NULL;
    *c = (chunk){.next = a->chunks, .size = bytes};
    a->chunks = c;
  }
  result = (char *)c + head + c->used;
  c->used += size;
  memset(result, 0, size);
  return result;
}

void *kiln__cpu_ptx_alloc(kiln__cpu_ptx_module *module, size_t size)
{
  return arena_take(module->arena, size);
}

/* The module struct is not allocated in the arena, because the module owns the
 * arena. */
kiln__cpu_ptx_module *kiln__cpu_ptx_module_create(const kiln_allocator *alloc,
                                                  const char *text, size_t size)
{
  kiln__cpu_ptx_module *m = kiln__calloc(alloc, 1, sizeof *m);
  arena *a = kiln__calloc(alloc, 1, sizeof *a);

  if (m == NULL || a == NULL)
    goto failed;
  a->alloc = *alloc;
  a->source = kiln__alloc(alloc, size + 1);
  if (a->source == NULL)
    goto failed;
  if (size > 0)
    memcpy(a->source, text, size);
  a->source[size] = '\0';
  a->source_size = size;
  m->arena = a;
  return m;
failed:
  kiln__free(alloc, a);
  kiln__free(alloc, m);
  return NULL;
}

void kiln__cpu_ptx_free(kiln__cpu_ptx_module *module)
{
  kiln_allocator alloc;
  arena *a;

  if (module == NULL)
    return;
  a = module->arena;
  alloc = a->alloc;
  for (chunk *c = a->chunks; c != NULL;) {
    chunk *next = c->next;

    kiln__free(&alloc, c);
    c = next;
  }
  kiln__free(&alloc, a->source);
  kiln__free(&alloc, a);
  kiln__free(&alloc, module);
}

const char *kiln__cpu_ptx_source(const kiln__cpu_ptx_module *module,
                                 size_t *size)
{
  const arena *a = module->arena;

  *size = a->source_size;
  return a->source;
}

void *kiln__cpu_ptx_new(kiln__cpu_parser *p, size_t size)
{
  void *result = kiln__cpu_ptx_alloc(p->module, size);

  if (result == NULL)
    p->no_memory = true;
  return result;
}

/* `items` is the address of a pointer to the array. The element type of the
 * array is arbitrary, so memcpy() reads and writes the pointer. A cast would
 * violate the aliasing rules. */
bool kiln__cpu_ptx_grow(kiln__cpu_parser *p, void *items, uint32_t n,
                        uint32_t *capacity, size_t size)
{
  void *old, *more;
  uint32_t wanted;

  if (n < *capacity)
    return true;
  wanted = *capacity == 0 ? 64 : *capacity * 2;
  if (wanted <= *capacity) {
    p->no_memory = true;
    return false;
  }
  memcpy(&old, items, sizeof old);
  more = kiln__resize(p->alloc, old, wanted * size);
  if (more == NULL) {
    p->no_memory = true;
    return false;
  }
  memcpy(items, &more, sizeof more);
  *capacity = wanted;
  return true;
}

bool kiln__cpu_ptx_push(kiln__cpu_parser *p, kiln__cpu_list *list, void *item)
{
  if (!kiln__cpu_ptx_grow(p, &list->items, list->n, &list->capacity,
                          sizeof *list->items))
    return false;
  list->items[list->n++] = item;
  return true;
}

void *kiln__cpu_ptx_take(kiln__cpu_parser *p, kiln__cpu_list *list,
                         uint32_t first, uint32_t *n)
{
  void *result = NULL;

  *n = list->n - first;
  list->n = first;
  if (*n == 0)
    return NULL;
  result = kiln__cpu_ptx_new(p, *n * sizeof *list->items);
  if (result == NULL)
    *n = 0;
  else
    memcpy(result, list->items + first, *n * sizeof *list->items);
  return result;
}
