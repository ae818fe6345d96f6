/* texture_object.h -- arrays, texture and surface objects as the handlers see them;
 * api/ makes them, exec/texture.c reads and writes them. */
#ifndef KILN_CPU_TEXTURE_H
#define KILN_CPU_TEXTURE_H

#include "../../base/base.h"

typedef enum kiln__cpu_texel {
  KILN__TEXEL_U8,
  KILN__TEXEL_U16,
  KILN__TEXEL_U32,
  KILN__TEXEL_S8,
  KILN__TEXEL_S16,
  KILN__TEXEL_S32,
  KILN__TEXEL_F16,
  KILN__TEXEL_F32
} kiln__cpu_texel;

/* Texels in rows, planes and layers. Arrays own their bytes; linear and pitched
 * memory is borrowed from the device's. */
typedef struct kiln__cpu_texels {
  uint8_t *data;
  uint64_t address; /* device address for linear and pitched memory, else 0 */
  uint32_t width, height, depth; /* height 0: 1-D; depth 0: 1-D or 2-D */
  uint32_t layers;               /* 0: not layered; cubes have 6 a cube */
  bool cube;
  size_t row_bytes,
      plane_bytes; /* from one row, one plane or layer, to the next */
  kiln__cpu_texel texel;
  uint8_t channels;    /* 1, 2, 4 */
  uint8_t texel_bytes; /* of all channels */
} kiln__cpu_texels;

typedef enum kiln__cpu_address_mode {
  KILN__WRAP = 0,
  KILN__CLAMP,
  KILN__MIRROR,
  KILN__BORDER
} kiln__cpu_address_mode; /* values of CUaddress_mode */

enum { KILN__MAX_LEVELS = 16 };

typedef struct kiln__cpu_texture {
  kiln__cpu_texels level[KILN__MAX_LEVELS]; /* mip levels; [0] without */
  uint32_t n_levels;
  kiln__cpu_address_mode mode[3];
  bool linear_filter, linear_mipmap;
  bool normalised; /* coordinates 0..1 */
  bool as_integer; /* CU_TRSF_READ_AS_INTEGER; else 8 and 16 bit read as
                          normalised floats */
  bool srgb;
  bool seamless_cube;
  float border[4];
  float level_bias, min_level, max_level;
  uint32_t max_anisotropy; /* kept, not used: filtering is isotropic */
} kiln__cpu_texture;

typedef struct kiln__cpu_surface {
  kiln__cpu_texels texels;
} kiln__cpu_surface;

#endif
