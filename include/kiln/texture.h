/* texture.h -- arrays, textures and surfaces (lecture rows A8, E7).
 *
 * An array holds texels in 1, 2 or 3 dimensions in a layout of the GPU's own. A
 * texture reads it, or plain device memory, with interpolation and with rules
 * for coordinates beyond the edge; a surface also writes it. Kernels take both
 * as handles: `cudaTextureObject_t` or `unsigned long long`.
 *
 * Statuses of all: KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EUNSUPPORTED (the
 * driver lacks it), KILN_ELIMIT (too large), KILN_EDRIVER, KILN_EDEVMEM,
 * KILN_ESTICKY, KILN_EFORKED, KILN_ECAPTURE. Threads: any. Copies block until
 * they are done. */
#ifndef KILN_TEXTURE_H
#define KILN_TEXTURE_H

#include <kiln/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Texels in the GPU's own layout. */
typedef struct kiln_cuda_array kiln_cuda_array;

/** Type of one channel of a texel. */
typedef enum kiln_texel {
  KILN_TEXEL_U8 = 0,
  KILN_TEXEL_U16,
  KILN_TEXEL_U32,
  KILN_TEXEL_S8,
  KILN_TEXEL_S16,
  KILN_TEXEL_S32,
  KILN_TEXEL_F16,
  KILN_TEXEL_F32
} kiln_texel;

/** Bytes of one channel; 0 for no texel type. */
KILN_API size_t kiln_texel_bytes(kiln_texel texel);

/** Shape of an array. Start from {0}. */
typedef struct kiln_cuda_array_desc {
  uint32_t width;   /**< texels, at least 1 */
  uint32_t height;  /**< rows; 0: one dimension */
  uint32_t depth;   /**< planes; 0: one or two dimensions */
  uint32_t layers;  /**< layers of one or two dimensions; 0: not layered */
  kiln_texel texel; /**< of one channel */
  int channels;     /**< 1, 2 or 4 */
  bool surface;     /**< surfaces may be made of it */
} kiln_cuda_array_desc;

/** @param[out] out  yours, free with kiln_cuda_array_free(); NULL on failure. */
KILN_API kiln_status kiln_cuda_array_create(kiln_cuda_array **out,
                                            kiln_device *device,
                                            const kiln_cuda_array_desc *desc);
/** Textures and surfaces of it must be gone. NULL is fine. */
KILN_API void kiln_cuda_array_free(kiln_cuda_array *array);
/** Bytes of all texels, rows and planes packed. */
KILN_API size_t kiln_cuda_array_bytes(const kiln_cuda_array *array);
/** Copy everything from or to host memory of kiln_cuda_array_bytes(), packed. */
KILN_API kiln_status kiln_cuda_array_write(kiln_cuda_array *array,
                                           const void *src);
KILN_API kiln_status kiln_cuda_array_read(kiln_cuda_array *array, void *dst);

/** Coordinates outside: */
typedef enum kiln_address_mode {
  KILN_ADDRESS_WRAP = 0, /**< from the other side; normalised only */
  KILN_ADDRESS_CLAMP,    /**< the edge's texel */
  KILN_ADDRESS_MIRROR,   /**< back again; normalised only */
  KILN_ADDRESS_BORDER    /**< the border colour */
} kiln_address_mode;

typedef enum kiln_filter {
  KILN_FILTER_NEAREST = 0, /**< the texel that the coordinate falls in */
  KILN_FILTER_LINEAR       /**< interpolated, weights of 8 bits */
} kiln_filter;

/** How a texture reads. Start from {0}: nearest, wrapped, texel coordinates. */
typedef struct kiln_texture_desc {
  kiln_address_mode address[3]; /**< by dimension */
  kiln_filter filter;           /**< linear needs reads as float */
  bool normalised;              /**< coordinates 0 to 1 instead of texels */
  bool as_integer;              /**< 8- and 16-bit texels as they are; else as
                                     0..1 or -1..1 */
  float border[4];              /**< for KILN_ADDRESS_BORDER */
} kiln_texture_desc;

/** @param[out] out  handle for kernels; 0 on failure. */
KILN_API kiln_status kiln_texture_create(uint64_t *out, kiln_cuda_array *array,
                                         const kiln_texture_desc *desc);
/** A texture of device memory: `height` 0 for one dimension (read by whole
 * texels, no filter), else rows `pitch` bytes apart, a multiple of the device's
 * texture pitch alignment (32). The memory stays the caller's. */
KILN_API kiln_status kiln_texture_of_memory(uint64_t *out, kiln_device *device,
                                            CUdeviceptr p, kiln_texel texel,
                                            int channels, size_t width,
                                            size_t height, size_t pitch,
                                            const kiln_texture_desc *desc);
/** 0 is fine. */
KILN_API kiln_status kiln_texture_free(kiln_device *device, uint64_t texture);

/** @param array  made with kiln_cuda_array_desc.surface. */
KILN_API kiln_status kiln_surface_create(uint64_t *out, kiln_cuda_array *array);
KILN_API kiln_status kiln_surface_free(kiln_device *device, uint64_t surface);

#ifdef __cplusplus
}
#endif
#endif
