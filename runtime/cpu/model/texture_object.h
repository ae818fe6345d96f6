/* texture_object.h -- declares arrays, texture objects and surface objects in
 * the form that instruction handlers read.
 *
 * api/ fills these structs from the descriptors of the driver API, and
 * memory/texture_handles stores them. exec/texture_fetch.c and
 * exec/texture_surface.c read and write the texels. */
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

/* Texels in rows, planes and layers. An array owns the bytes of its texels. The
 * bytes of linear and pitched memory belong to a device allocation. */
typedef struct kiln__cpu_texels {
  uint8_t *data;
  /* device address of linear or pitched memory; 0 for an array */
  uint64_t address;
  /* sizes in texels; height is 0 for 1-D textures, depth is 0 for 1-D and 2-D
   * textures */
  uint32_t width, height, depth;
  uint32_t layers; /* number of layers, 6 per cube map; 0 if not layered */
  bool cube;
  /* strides in bytes: between rows, and between planes or layers */
  size_t row_bytes, plane_bytes;
  kiln__cpu_texel texel;
  uint8_t channels;    /* number of channels: 1, 2 or 4 */
  uint8_t texel_bytes; /* bytes per texel, including all channels */
} kiln__cpu_texels;

/* The address modes have the values of the driver's CUaddress_mode. */
typedef enum kiln__cpu_address_mode {
  KILN__WRAP = 0,
  KILN__CLAMP,
  KILN__MIRROR,
  KILN__BORDER
} kiln__cpu_address_mode;

enum { KILN__MAX_LEVELS = 16 };

typedef struct kiln__cpu_texture {
  /* texels of each mipmap level; level[0] is the base level */
  kiln__cpu_texels level[KILN__MAX_LEVELS];
  uint32_t n_levels;
  kiln__cpu_address_mode mode[3];
  bool linear_filter, linear_mipmap;
  bool normalised; /* texture coordinates range from 0 to 1 */
  /* texels are read as integers (CU_TRSF_READ_AS_INTEGER); otherwise 8-bit and
   * 16-bit texels are read as normalised floats */
  bool as_integer;
  bool srgb;
  bool seamless_cube;
  float border[4];
  float level_bias, min_level, max_level;
  /* maximum anisotropy that the getter returns; filtering ignores it */
  uint32_t max_anisotropy;
} kiln__cpu_texture;

typedef struct kiln__cpu_surface {
  kiln__cpu_texels texels;
} kiln__cpu_surface;

#endif
