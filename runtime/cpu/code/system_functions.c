/* system_functions.c -- finds the functions that the device itself provides to
 * kernels by their names. run/system_calls.c executes them. */
#include "code_build.h"

kiln__cpu_system kiln__cpu_system_named(kiln__cpu_slice name)
{
  static const struct {
    const char *name;
    kiln__cpu_system which;
  } all[] = {
#define KILN__SYSTEM_FN(text, id) {text, KILN__SYSTEM_##id},
#include "system_functions.def"
  };

  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (kiln__cpu_slice_is(name, all[i].name))
      return all[i].which;
  }
  return KILN__SYSTEM_NONE;
}
