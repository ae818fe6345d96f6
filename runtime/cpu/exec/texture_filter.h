/* texture_filter.h -- the interface between the texture instructions and the
 * filter. texture_fetch.c and texture_surface.c read the operands of the
 * instructions. texture_filter.c reads and filters texels. */
#ifndef KILN_CPU_TEXTURE_FILTER_H
#define KILN_CPU_TEXTURE_FILTER_H

#include "../memory/texture_handles.h"
#include "lanes.h"

typedef enum kiln__cpu_shape_of_texture {
  KILN__TEX_1d,
  KILN__TEX_2d,
  KILN__TEX_3d,
  KILN__TEX_a1d,
  KILN__TEX_a2d,
  KILN__TEX_cube,
  KILN__TEX_acube
} kiln__cpu_tex_shape;

/* How a texture instruction selects the mip level. */
typedef enum kiln__cpu_tex_level {
  KILN__TEX_plain,
  KILN__TEX_level,
  KILN__TEX_grad
} kiln__cpu_tex_level;

/* The coordinates of one texture fetch by one thread. */
typedef struct kiln__cpu_lookup {
  kiln__cpu_tex_shape shape;
  bool integers; /* the coordinates are integers, and texels are unfiltered */
  double at[3];  /* coordinates x, y, z */
  uint32_t layer;
  kiln__cpu_tex_level how;
  double level;
  double gradient[2][3];
} kiln__cpu_lookup;

/* Fetches the four components of a filtered texel, as bits of floats or
 * integers. */
void KILN__ISA_NAME(texture_sample)(const kiln__cpu_texture *t,
                                    const kiln__cpu_lookup *l, uint32_t out[4]);
/* Implements tld4: fetches one component of the four texels that bilinear
 * filtering would use, in the order (0, 1), (1, 1), (1, 0), (0, 0). */
void KILN__ISA_NAME(texture_gather)(const kiln__cpu_texture *t,
                                    const kiln__cpu_lookup *l, int component,
                                    uint32_t out[4]);

/* These functions are defined in texture_fetch.c. texture_handle() returns the
 * texture handle that an operand refers to, or 0 if there is none.
 * texel_format() returns the CUarray_format of a texel. texel_layers() returns
 * the number of layers or cubes of an array. */
uint64_t KILN__ISA_NAME(texture_handle)(const kiln__cpu_warp *w,
                                        uint64_t operand);
uint32_t KILN__ISA_NAME(texel_format)(kiln__cpu_texel texel);
uint32_t KILN__ISA_NAME(texel_layers)(const kiln__cpu_texels *t);

/* Returns the number of coordinates of a shape, without the layer index. */
static inline int kiln__cpu_tex_dimensions(kiln__cpu_tex_shape shape)
{
  switch (shape) {
  case KILN__TEX_1d:
  case KILN__TEX_a1d:
    return 1;
  case KILN__TEX_2d:
  case KILN__TEX_a2d:
    return 2;
  default:
    return 3;
  }
}

static inline bool kiln__cpu_tex_layered(kiln__cpu_tex_shape shape)
{
  return shape == KILN__TEX_a1d || shape == KILN__TEX_a2d ||
         shape == KILN__TEX_acube;
}

static inline bool kiln__cpu_tex_cube(kiln__cpu_tex_shape shape)
{
  return shape == KILN__TEX_cube || shape == KILN__TEX_acube;
}

#endif
