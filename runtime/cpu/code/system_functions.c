/* system_functions.c -- finds the functions that the device itself provides to
 * kernels by their names. run/ executes them. */
#include "code_build.h"

typedef struct row {
  const char *name;
  kiln__cpu_system which;
} row;

static const row plain[] = {
#define KILN__SYSTEM_FN(text, id) {text, KILN__SYSTEM_##id},
#define KILN__DEVICE_FN(text, id)
#include "system_functions.def"
};

static const row device[] = {
#define KILN__SYSTEM_FN(text, id)
#define KILN__DEVICE_FN(text, id) {text, KILN__SYSTEM_##id},
#include "system_functions.def"
};

static kiln__cpu_system find(const row *rows, size_t n, kiln__cpu_slice name)
{
  for (size_t i = 0; i < n; i++) {
    if (kiln__cpu_slice_is(name, rows[i].name))
      return rows[i].which;
  }
  return KILN__SYSTEM_NONE;
}

/* Removes a prefix from the name. Returns false if the name does not start with
 * the prefix. */
static bool without_prefix(kiln__cpu_slice *name, const char *prefix)
{
  const uint32_t n = (uint32_t)strlen(prefix);

  if (name->size < n || memcmp(name->data, prefix, n) != 0)
    return false;
  name->data += n;
  name->size -= n;
  return true;
}

static void remove_suffix(kiln__cpu_slice *name, const char *suffix)
{
  const uint32_t n = (uint32_t)strlen(suffix);

  if (name->size > n && memcmp(name->data + name->size - n, suffix, n) == 0)
    name->size -= n;
}

kiln__cpu_system kiln__cpu_system_named(kiln__cpu_slice name)
{
  const kiln__cpu_system which =
      find(plain, sizeof plain / sizeof *plain, name);

  if (which != KILN__SYSTEM_NONE)
    return which;
  if (kiln__cpu_slice_is(name, "__cudaDeviceSynchronizeDeprecationAvoidance"))
    return KILN__SYSTEM_SYNCHRONIZE;
  if (!without_prefix(&name, "__cudaCDP2") && !without_prefix(&name, "cuda"))
    return KILN__SYSTEM_NONE;
  remove_suffix(&name, "_ptsz");
  return find(device, sizeof device / sizeof *device, name);
}
