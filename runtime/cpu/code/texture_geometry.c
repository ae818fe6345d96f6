/* texture_geometry.c -- how many coordinates the shape of a texture or surface has. */
#include "code_build.h"

#include <string.h>

static bool contains(kiln__cpu_slice s, const char *text)
{
  return memmem(s.data, s.size, text, strlen(text)) != NULL;
}

/* As many as are written: three are filled up to four. */
kiln__cpu_geometry kiln__cpu_geometry_of(kiln__cpu_slice opcode)
{
  static const struct {
    const char *shape;
    uint8_t coordinates, gradient;
    bool array;
  } shapes[] = {{".1d.", 1, 1, false},  {".2d.", 2, 2, false},
                {".3d.", 4, 4, false},  {".a1d.", 2, 1, true},
                {".a2d.", 4, 2, true},  {".cube.", 4, 4, false},
                {".acube.", 4, 4, true}};
  kiln__cpu_geometry g = {0};

  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (contains(opcode, shapes[i].shape)) {
      g.coordinates = shapes[i].coordinates;
      g.gradient = contains(opcode, ".grad.") ? shapes[i].gradient : 0;
      g.array = shapes[i].array;
    }
  }
  g.type = opcode.size > 4 && memcmp(opcode.data, "tex.", 4) == 0
               ? (uint8_t)KILN__TYPE_LAST
           : opcode.size > 5 && memcmp(opcode.data, "tld4.", 5) == 0
               ? (uint8_t)KILN__F32
               : (uint8_t)KILN__U32;
  return g;
}
