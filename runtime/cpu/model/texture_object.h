/* texture_object.h -- arrays, texture objects and surface objects as the
 * handlers see them.
 *
 * api/ fills them from the descriptors of the driver API,
 * memory/texture_handles keeps them, exec/texture_fetch.c and
 * exec/texture_surface.c read and write their texels. */
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

/* Texels in rows, planes and layers. An array owns its bytes; linear and
 * pitched memory belongs to a device allocation. */
typedef struct kiln__cpu_texels {
  uint8_t *data;
  uint64_t address; /* device address of linear and pitched memory, else 0 */
  uint32_t width, height, depth; /* height 0: 1-D; depth 0: 1-D or 2-D */
  uint32_t layers;               /* 0: not layered; a cube map has 6 per cube */
  bool cube;
  size_t row_bytes,
      /* bytes from one row, and from one plane or layer, to the next */
      plane_bytes;
  kiln__cpu_texel texel;
  uint8_t channels;    /* 1, 2, 4 */
  uint8_t texel_bytes; /* bytes per texel, all channels together */
} kiln__cpu_texels;

typedef enum kiln__cpu_address_mode {
  KILN__WRAP = 0,
  KILN__CLAMP,
  KILN__MIRROR,
  KILN__BORDER
} kiln__cpu_address_mode; /* same values as CUaddress_mode */

enum { KILN__MAX_LEVELS = 16 };

typedef struct kiln__cpu_texture {
  kiln__cpu_texels level[KILN__MAX_LEVELS]; /* [0] is the base level */
  uint32_t n_levels;
  kiln__cpu_address_mode mode[3];
  bool linear_filter, linear_mipmap;
  bool normalised; /* coordinates 0..1 */
  /* CU_TRSF_READ_AS_INTEGER; otherwise 8-bit and 16-bit texels read as
   * normalised floats */
  bool as_integer;
  bool srgb;
  bool seamless_cube;
  float border[4];
  float level_bias, min_level, max_level;
  uint32_t max_anisotropy; /* reported back, but filtering is isotropic */
} kiln__cpu_texture;

typedef struct kiln__cpu_surface {
  kiln__cpu_texels texels;
} kiln__cpu_surface;

#endif
