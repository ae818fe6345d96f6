/* arena.c -- an arena allocator: a chain of chunks that are freed all at once.
 */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, CHUNK = 4096 };

struct kiln__chunk {
  struct kiln__chunk *next;
  /* bytes used and capacity of the chunk, without its header */
  size_t used, size;
};

static size_t round_up(size_t size)
{
  return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

void kiln__arena_init(kiln__arena *arena, const kiln_allocator *a)
{
  *arena = (kiln__arena){.alloc = a};
}

void kiln__arena_free(kiln__arena *arena)
{
  struct kiln__chunk *chunk, *next;

  for (chunk = arena->chunks; chunk != NULL; chunk = next) {
    next = chunk->next;
    kiln__free(arena->alloc, chunk);
  }
  arena->chunks = NULL;
}

void *kiln__arena_alloc(kiln__arena *arena, size_t size)
{
  const size_t head = round_up(sizeof(struct kiln__chunk));
  struct kiln__chunk *chunk = arena->chunks;
  char *p;

  if (size > SIZE_MAX / 4) {
    arena->failed = true;
    return NULL;
  }
  size = round_up(size == 0 ? 1 : size);
  if (chunk == NULL || chunk->size - chunk->used < size) {
    const size_t room = size > CHUNK / 2 ? size : CHUNK;

    chunk = kiln__alloc(arena->alloc, head + room);
    if (chunk == NULL) {
      arena->failed = true;
      return NULL;
    }
    *chunk = (struct kiln__chunk){arena->chunks, 0, room};
    arena->chunks = chunk;
  }
  p = (char *)chunk + head + chunk->used;
  chunk->used += size;
  return memset(p, 0, size);
}

char *kiln__arena_copy(kiln__arena *arena, const void *data, size_t size)
{
  char *copy = data == NULL ? NULL : kiln__arena_alloc(arena, size + 1);

  if (copy != NULL && size > 0)
    memcpy(copy, data, size);
  return copy;
}

char *kiln__arena_text(kiln__arena *arena, const char *text)
{
  return kiln__arena_copy(arena, text, text == NULL ? 0 : strlen(text));
}

char *kiln__arena_join(kiln__arena *arena, const char *a, const char *b,
                       const char *c)
{
  const char *const parts[] = {a, b, c == NULL ? "" : c};
  size_t size = 1;
  char *text, *end;

  for (size_t i = 0; i < 3; i++)
    size += strlen(parts[i]);
  text = end = kiln__arena_alloc(arena, size);
  for (size_t i = 0; text != NULL && i < 3; i++)
    end = stpcpy(end, parts[i]);
  return text;
}

kiln_status kiln__arena_status(const kiln__arena *arena, const char *what)
{
  return arena->failed ? kiln__fail_memory(what) : KILN_OK;
}

bool kiln__list_add(kiln__arena *arena, kiln__list *list, const char *item)
{
  if (list->n == list->capacity) {
    const size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
    const char **items = kiln__arena_alloc(arena, capacity * sizeof *items);

    if (items == NULL)
      return false;
    if (list->n > 0)
      memcpy(items, list->items, list->n * sizeof *items);
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->n++] = item;
  return true;
}

static int by_bytes(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void kiln__list_sort(kiln__list *list)
{
  size_t kept = 0;

  if (list->n == 0)
    return;
  qsort(list->items, list->n, sizeof *list->items, by_bytes);
  for (size_t i = 0; i < list->n; i++) {
    if (kept == 0 || strcmp(list->items[kept - 1], list->items[i]) != 0)
      list->items[kept++] = list->items[i];
  }
  list->n = kept;
}
