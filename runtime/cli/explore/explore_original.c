/* explore_original.c -- finds the source that an embedded program was made
 * from. */
#include "cli/explore/explore_original.h"

#include <stdbool.h>
#include <string.h>

/* Returns whether `name` is "scan.cu" or ends in "/scan.cu". */
static bool ends_in(const char *name, const char *end)
{
  const size_t n = strlen(name), m = strlen(end);

  return n >= m && strcmp(name + n - m, end) == 0 &&
         (n == m || name[n - m - 1] == '/');
}

/* Returns whether the compiled text can be made from the original by removing
 * characters, none of them a newline. */
static bool is_made_from(const char *text, size_t size, const char *original)
{
  for (size_t i = 0; i < size; i++) {
    while (*original != '\0' && *original != text[i]) {
      if (*original == '\n')
        return false;
      original++;
    }
    if (*original == '\0')
      return false;
    original++;
  }
  return strchr(original, '\n') == NULL;
}

const char *kiln__explore_original(const char *name, const char *text,
                                   size_t size)
{
  for (const explore_original *o = kiln__explore_originals; o->name != NULL;
       o++)
    if (ends_in(name, o->name) && is_made_from(text, size, o->text))
      return o->text;
  return NULL;
}
