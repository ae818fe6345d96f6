/* arena.h -- memory that is freed all at once, and lists of texts in it. A
 * failed allocation sets `failed`, so one check after many suffices. */
#ifndef KILN_ARENA_H
#define KILN_ARENA_H

#include "../base/base.h"

typedef struct kiln__arena {
  const kiln_allocator *alloc;
  struct kiln__chunk *chunks;
  bool failed; /* an allocation failed: one check after many */
} kiln__arena;

void kiln__arena_init(kiln__arena *arena, const kiln_allocator *a);
void kiln__arena_free(kiln__arena *arena);
/* Zeroed, aligned for any type; NULL: out of memory. */
void *kiln__arena_alloc(kiln__arena *arena, size_t size);
/* A copy, followed by a NUL; NULL data gives NULL. */
char *kiln__arena_copy(kiln__arena *arena, const void *data, size_t size);
char *kiln__arena_text(kiln__arena *arena, const char *text);
/* Three texts as one; the last may be NULL. */
char *kiln__arena_join(kiln__arena *arena, const char *a, const char *b,
                       const char *c);
/* KILN_OK or KILN_ENOMEM. */
kiln_status kiln__arena_status(const kiln__arena *arena, const char *what);

typedef struct kiln__list {
  const char **items;
  size_t n, capacity;
} kiln__list;

/* False: out of memory. */
bool kiln__list_add(kiln__arena *arena, kiln__list *list, const char *item);
/* Sorts by bytes and removes equal texts. */
void kiln__list_sort(kiln__list *list);

#endif
