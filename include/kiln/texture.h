/* texture.h -- CUDA arrays, textures and surfaces.
 *
 * A CUDA array holds texels in 1, 2 or 3 dimensions in a layout that only the
 * GPU knows. A texture reads an array, or plain device memory, with interpolation
 * and with rules for coordinates beyond the edge. A surface also writes an array.
 * Kernels take both as 64-bit handles: `cudaTextureObject_t` or `unsigned long
 * long`. */
#ifndef KILN_TEXTURE_H
#define KILN_TEXTURE_H

#include <kiln/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- CUDA arrays ---------------------------------------------------------- */

/** Texels in the GPU's own layout. Opaque. (An array of an operation, which is a
 * plain device address with a type, is a kiln_array; see ops.h.) */
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

/** Returns the bytes of one channel; 0 for a value that is no texel type.
 * Threads: any. Blocks: never. */
KILN_API size_t kiln_texel_bytes(kiln_texel texel);

/** Shape of a CUDA array. Start from {0}. */
typedef struct kiln_cuda_array_desc {
  uint32_t width;   /**< texels per row, at least 1 */
  uint32_t height;  /**< rows; 0: one dimension */
  uint32_t depth;   /**< planes; 0: one or two dimensions */
  uint32_t layers;  /**< layers of one or two dimensions; 0: not layered */
  kiln_texel texel; /**< type of one channel */
  int channels;     /**< channels per texel: 1, 2 or 4 */
  bool surface;     /**< surfaces may be created from it */
} kiln_cuda_array_desc;

/**
 * Creates a CUDA array. Its contents are undefined.
 *
 * @param[out] out  yours, free with kiln_cuda_array_free(); NULL on failure.
 * @param device    must outlive the array.
 * @param desc      borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EUNSUPPORTED (the driver lacks
 *         the call), KILN_ELIMIT (too large), KILN_EDEVMEM, KILN_EDRIVER,
 *         KILN_ESTICKY, KILN_ECAPTURE, KILN_EFORKED.
 * Threads: any. Blocks: the driver may wait for the device.
 */
KILN_INLINE kiln_status
kiln_cuda_array_create(kiln_cuda_array **out, kiln_device *device,
                       const kiln_cuda_array_desc *desc);

/** Frees a CUDA array; NULL is allowed. Free its textures and surfaces before.
 * Threads: no other thread may use the array. Blocks: the driver may wait for the
 * device. */
KILN_API void kiln_cuda_array_free(kiln_cuda_array *array);

/** Returns the bytes of all texels in row-major order without padding; 0 for
 * NULL. Threads: any. Blocks: never. */
KILN_API size_t kiln_cuda_array_bytes(const kiln_cuda_array *array);

/** Copies host memory into the whole array.
 * @param src  kiln_cuda_array_bytes() bytes: rows, then planes or layers, without
 *             padding.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED.
 * Threads: any. Blocks: until the copy is done. */
KILN_API kiln_status kiln_cuda_array_write(kiln_cuda_array *array,
                                           const void *src);

/** Copies the whole array into host memory.
 * @param dst  receives kiln_cuda_array_bytes() bytes, laid out as for
 *             kiln_cuda_array_write().
 * @retval as kiln_cuda_array_write(). Threads: any. Blocks: until the copy is
 * done. */
KILN_API kiln_status kiln_cuda_array_read(kiln_cuda_array *array, void *dst);

/* ---- Textures ------------------------------------------------------------- */

/** What a texture returns for a coordinate outside. */
typedef enum kiln_address_mode {
  KILN_ADDRESS_WRAP =
      0,               /**< the texture repeats; normalised coordinates only */
  KILN_ADDRESS_CLAMP,  /**< the texel at the edge */
  KILN_ADDRESS_MIRROR, /**< the texture repeats mirrored; normalised only */
  KILN_ADDRESS_BORDER  /**< the border colour */
} kiln_address_mode;

/** How a texture combines texels. */
typedef enum kiln_filter {
  KILN_FILTER_NEAREST = 0, /**< the texel that the coordinate falls in */
  KILN_FILTER_LINEAR       /**< interpolation with weights of 8 bits */
} kiln_filter;

/** How a texture reads. Start from {0}: nearest texel, wrapped, coordinates in
 * texels. */
typedef struct kiln_texture_desc {
  kiln_address_mode address[3]; /**< per dimension */
  kiln_filter filter;           /**< linear needs reads as float */
  bool normalised;              /**< coordinates 0 to 1 instead of texels */
  bool as_integer;              /**< 8- and 16-bit texels are read as integers;
                                     otherwise as 0 to 1 or -1 to 1 */
  float border[4];              /**< colour of KILN_ADDRESS_BORDER */
} kiln_texture_desc;

/**
 * Creates a texture that reads a CUDA array.
 *
 * @param[out] out  handle for kernels, free with kiln_texture_free(); 0 on
 *                  failure.
 * @param array     must outlive the texture.
 * @param desc      borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED.
 * Threads: any. Blocks: never.
 */
KILN_INLINE kiln_status kiln_texture_create(uint64_t *out,
                                            kiln_cuda_array *array,
                                            const kiln_texture_desc *desc);

/**
 * Creates a texture that reads device memory, which the caller keeps owning.
 *
 * @param[out] out   handle for kernels, free with kiln_texture_free(); 0 on
 *                   failure.
 * @param p          device address; must stay allocated while the texture is
 *                   used.
 * @param texel      type of one channel.
 * @param channels   channels per texel: 1, 2 or 4.
 * @param width      texels per row.
 * @param height     rows; 0 for one dimension, which is read without a filter.
 * @param pitch      bytes from a row to the next, a multiple of the device's
 *                   texture pitch alignment (32); not used if height is 0.
 * @param desc       borrowed for the call.
 * @retval as kiln_texture_create().
 * Threads: any. Blocks: never.
 */
KILN_INLINE kiln_status kiln_texture_of_memory(uint64_t *out,
                                               kiln_device *device,
                                               CUdeviceptr p, kiln_texel texel,
                                               int channels, size_t width,
                                               size_t height, size_t pitch,
                                               const kiln_texture_desc *desc);

/** Frees a texture. Kernels that use it must have ended.
 * @param texture  0 is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED. Threads: any. Blocks: never. */
KILN_API kiln_status kiln_texture_free(kiln_device *device, uint64_t texture);

/* ---- Surfaces ------------------------------------------------------------- */

/** Creates a surface, through which kernels read and write an array.
 * @param[out] out  handle for kernels, free with kiln_surface_free(); 0 on
 *                  failure.
 * @param array     created with kiln_cuda_array_desc.surface; must outlive the
 *                  surface.
 * @retval as kiln_texture_create(). Threads: any. Blocks: never. */
KILN_API kiln_status kiln_surface_create(uint64_t *out, kiln_cuda_array *array);

/** Frees a surface. Kernels that use it must have ended.
 * @param surface  0 is allowed.
 * @retval as kiln_texture_free(). Threads: any. Blocks: never. */
KILN_API kiln_status kiln_surface_free(kiln_device *device, uint64_t surface);

/* ---- Exported forms that take sizes; see "Versions" in kiln.h ------------- */

KILN__SIZED(kiln_cuda_array_create,
            (kiln_cuda_array * *out, kiln_device *device,
             const kiln_cuda_array_desc *desc),
            (size_t desc_size), (out, device, desc, sizeof *desc))
KILN__SIZED(kiln_texture_create,
            (uint64_t * out, kiln_cuda_array *array,
             const kiln_texture_desc *desc),
            (size_t desc_size), (out, array, desc, sizeof *desc))
KILN__SIZED(kiln_texture_of_memory,
            (uint64_t * out, kiln_device *device, CUdeviceptr p,
             kiln_texel texel, int channels, size_t width, size_t height,
             size_t pitch, const kiln_texture_desc *desc),
            (size_t desc_size),
            (out, device, p, texel, channels, width, height, pitch, desc,
             sizeof *desc))

#ifdef __cplusplus
}
#endif
#endif
