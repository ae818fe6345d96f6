/* allocator.c -- allocates memory through the caller's allocator, or through
 * malloc if the caller gave no allocator. No other file of Kiln calls malloc
 * directly. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

static void *system_alloc(void *user, size_t size)
{
  (void)user;
  return malloc(size);
}

static void *system_resize(void *user, void *p, size_t size)
{
  (void)user;
  return realloc(p, size);
}

static void system_release(void *user, void *p)
{
  (void)user;
  free(p);
}

void kiln__allocator_default(kiln_allocator *a)
{
  if (a->alloc != NULL)
    return;
  a->alloc = system_alloc;
  a->resize = system_resize;
  a->release = system_release;
}

void *kiln__alloc(const kiln_allocator *a, size_t size)
{
  return a->alloc(a->user, size == 0 ? 1 : size);
}

void *kiln__calloc(const kiln_allocator *a, size_t n, size_t size)
{
  void *p;

  if (size != 0 && n > SIZE_MAX / size)
    return NULL;
  p = kiln__alloc(a, n * size);
  if (p != NULL)
    memset(p, 0, n * size);
  return p;
}

void *kiln__resize(const kiln_allocator *a, void *p, size_t size)
{
  return a->resize(a->user, p, size == 0 ? 1 : size);
}

/* memcpy() reads and writes the pointer to the array, since a cast would
 * violate the aliasing rules. */
bool kiln__grow(const kiln_allocator *a, void *items, size_t n,
                size_t *capacity, size_t size)
{
  const size_t wanted = *capacity == 0 ? 8 : *capacity * 2;
  void *array;

  if (n < *capacity)
    return true;
  memcpy(&array, items, sizeof array);
  array = kiln__resize(a, array, wanted * size);
  if (array == NULL)
    return false;
  memcpy(items, &array, sizeof array);
  *capacity = wanted;
  return true;
}

void kiln__free(const kiln_allocator *a, void *p)
{
  if (p != NULL)
    a->release(a->user, p);
}

char *kiln__strndup(const kiln_allocator *a, const char *text, size_t n)
{
  char *copy = kiln__alloc(a, n + 1);

  if (copy == NULL)
    return NULL;
  memcpy(copy, text, n);
  copy[n] = '\0';
  return copy;
}

char *kiln__strdup(const kiln_allocator *a, const char *text)
{
  return text == NULL ? NULL : kiln__strndup(a, text, strlen(text));
}
