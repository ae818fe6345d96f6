/* arena.h -- an arena allocator, which frees all its memory at once, and lists
 * of strings in an arena. A failed allocation sets `failed`, so one check after
 * many allocations suffices. */
#ifndef KILN_ARENA_H
#define KILN_ARENA_H

#include "../base/base.h"

typedef struct kiln__arena {
  const kiln_allocator *alloc;
  struct kiln__chunk *chunks;
  bool failed; /* true after any allocation of the arena failed */
} kiln__arena;

void kiln__arena_init(kiln__arena *arena, const kiln_allocator *a);
void kiln__arena_free(kiln__arena *arena);
/* Allocates zeroed memory, aligned for any type. Returns NULL if memory ran
 * out. */
void *kiln__arena_alloc(kiln__arena *arena, size_t size);
/* Returns a copy of the data, followed by a NUL byte. NULL data gives NULL. */
char *kiln__arena_copy(kiln__arena *arena, const void *data, size_t size);
char *kiln__arena_text(kiln__arena *arena, const char *text);
/* Concatenates three strings; the last may be NULL. */
char *kiln__arena_join(kiln__arena *arena, const char *a, const char *b,
                       const char *c);
/* Returns KILN_ENOMEM with an error record if an allocation of the arena
 * failed, else KILN_OK. */
kiln_status kiln__arena_status(const kiln__arena *arena, const char *what);

typedef struct kiln__list {
  const char **items;
  size_t n, capacity;
} kiln__list;

/* Appends a string to the list. Returns false if memory ran out. */
bool kiln__list_add(kiln__arena *arena, kiln__list *list, const char *item);
/* Sorts the strings by their bytes and removes duplicates. */
void kiln__list_sort(kiln__list *list);

#endif
