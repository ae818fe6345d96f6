/* sized.c -- versioned structs: converts the caller's structs to this library's
 * version. sized.h explains the rules. */
#include "sized.h"

#include <string.h>

static kiln_status check_size(const kiln__sized *type, size_t size)
{
  if (size >= type->first)
    return KILN_OK;
  return kiln__fail(
      KILN_EINVAL, "pass sizeof(the struct), as the wrapper in the header does",
      "%s has %zu bytes for the caller, but its first version "
      "had %zu",
      type->name, size, type->first);
}

kiln_status kiln__sized_in(const kiln__sized *type, const void **in,
                           size_t size, void *own)
{
  const unsigned char *given = *in;
  const size_t common = size < type->size ? size : type->size;

  if (given == NULL || size == type->size)
    return KILN_OK;
  if (size < type->first)
    return check_size(type, size);
  for (size_t i = type->size; i < size; i++) {
    if (given[i] != 0)
      return kiln__fail(
          KILN_EINVAL,
          "use the library that belongs to the header, or leave members that "
          "are newer than the library at 0",
          "the caller sets a member of %s that Kiln " KILN_VERSION_TEXT
          " does not have",
          type->name);
  }
  memset(own, 0, type->size);
  memcpy(own, given, common);
  *in = own;
  return KILN_OK;
}

kiln_status kiln__sized_out(const kiln__sized *type, const void *out,
                            size_t size, bool *direct)
{
  *direct = out == NULL || size == type->size;
  return *direct ? KILN_OK : check_size(type, size);
}

void kiln__sized_give(const kiln__sized *type, const void *own, void *out,
                      size_t size)
{
  const size_t common = size < type->size ? size : type->size;

  memcpy(out, own, common);
  memset((char *)out + common, 0, size - common);
}
