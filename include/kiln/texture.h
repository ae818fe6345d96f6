/* texture.h -- CUDA arrays, textures and surfaces.
 *
 * A CUDA array holds texels in 1, 2 or 3 dimensions in a layout that is private
 * to the GPU. A texture reads an array or plain device memory. It can
 * interpolate, and it defines the values at coordinates outside of the array. A
 * surface reads and writes an array. Kernels receive textures and surfaces as
 * 64-bit handles, for example as `cudaTextureObject_t` or `unsigned long
 * long`. */
#ifndef KILN_TEXTURE_H
#define KILN_TEXTURE_H

#include <kiln/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- CUDA arrays --------------------------------------------------------- */

/** A CUDA array: texels in a layout that is private to the GPU. The type is
 * opaque. (It is not related to kiln_array in ops.h, which is a plain device
 * address with a type.) */
typedef struct kiln_cuda_array kiln_cuda_array;

/** Data type of one channel of a texel (an element of a texture). */
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

/** Returns the size of one channel in bytes, or 0 for a value that is not a
 * valid texel type.
 * Thread-safe. Never blocks. */
KILN_API size_t kiln_texel_bytes(kiln_texel texel);

/** Shape of a CUDA array. Initialise the struct with {0}. */
typedef struct kiln_cuda_array_desc {
  uint32_t width;  /**< number of texels per row of the array, at least 1 */
  uint32_t height; /**< number of rows; 0 means one dimension */
  uint32_t depth;  /**< number of planes; 0 means one or two dimensions */
  uint32_t layers; /**< number of layers, each of one or two dimensions; 0 means
                        that the array is not layered */
  kiln_texel texel; /**< data type of one channel of a texel */
  int channels;     /**< number of channels per texel: 1, 2 or 4 */
  bool surface;     /**< whether surfaces may be created from the array */
} kiln_cuda_array_desc;

/**
 * Creates a CUDA array. Its contents are undefined.
 *
 * @param[out] out  the array; the caller frees it with kiln_cuda_array_free().
 *                  NULL on failure.
 * @param device    the device; must outlive the array.
 * @param desc      shape of the array; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM, KILN_EUNSUPPORTED (the driver does
 *         not support CUDA arrays), KILN_ELIMIT (the array is too large),
 *         KILN_EDEVMEM, KILN_EDRIVER, KILN_ESTICKY, KILN_ECAPTURE,
 *         KILN_EFORKED.
 * Thread-safe. May block, because the driver may wait for the device.
 */
KILN_INLINE kiln_status
kiln_cuda_array_create(kiln_cuda_array **out, kiln_device *device,
                       const kiln_cuda_array_desc *desc);

/** Frees a CUDA array; NULL is allowed. All textures and surfaces of the array
 * must be freed before.
 * Not thread-safe: no other thread may use the array. May block, because the
 * driver may wait for the device. */
KILN_API void kiln_cuda_array_free(kiln_cuda_array *array);

/** Returns the size of a CUDA array in bytes, as row-major texels without
 * padding. Returns 0 for NULL.
 * Thread-safe. Never blocks. */
KILN_API size_t kiln_cuda_array_bytes(const kiln_cuda_array *array);

/** Copies host memory into a CUDA array and overwrites the whole array.
 * @param src  kiln_cuda_array_bytes() bytes in host memory: rows, then planes
 *             or layers, without padding.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED.
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_cuda_array_write(kiln_cuda_array *array,
                                           const void *src);

/** Copies a whole CUDA array into host memory.
 * @param dst  host memory that receives kiln_cuda_array_bytes() bytes in the
 *             same layout as for kiln_cuda_array_write().
 * @retval the same statuses as kiln_cuda_array_write().
 * Thread-safe. Blocks until the copy is done. */
KILN_API kiln_status kiln_cuda_array_read(kiln_cuda_array *array, void *dst);

/* ---- Textures ------------------------------------------------------------ */

/** Address mode: the value that a texture returns for a coordinate outside of
 * the array. */
typedef enum kiln_address_mode {
  KILN_ADDRESS_WRAP = 0, /**< wrap: the texture repeats; for normalised
                              coordinates only */
  KILN_ADDRESS_CLAMP,    /**< clamp: the texel at the nearest edge */
  KILN_ADDRESS_MIRROR, /**< mirror: the texture repeats mirrored; for normalised
                            coordinates only */
  KILN_ADDRESS_BORDER  /**< border: the border colour, which is
                            kiln_texture_desc.border */
} kiln_address_mode;

/** Filter mode: how a texture computes a value from texels. */
typedef enum kiln_filter {
  KILN_FILTER_NEAREST = 0, /**< nearest: the texel that contains the
                                coordinate */
  KILN_FILTER_LINEAR /**< linear: interpolation between the nearest texels, with
                          weights of 8 bits */
} kiln_filter;

/** Properties of a texture. Initialise the struct with {0}, which selects the
 * nearest texel, wrapped addresses and coordinates in texels. */
typedef struct kiln_texture_desc {
  kiln_address_mode address[3]; /**< address mode per dimension */
  kiln_filter filter; /**< filter mode; KILN_FILTER_LINEAR requires that texels
                           are read as float */
  bool normalised;    /**< whether coordinates range from 0 to 1; otherwise they
                           count texels */
  /** Whether 8-bit and 16-bit texels are read as integers; otherwise they are
   * read as floats from 0 to 1 or -1 to 1. */
  bool as_integer;
  float border
      [4]; /**< colour that the address mode KILN_ADDRESS_BORDER returns */
} kiln_texture_desc;

/**
 * Creates a texture that reads a CUDA array.
 *
 * @param[out] out  handle for kernels; the caller frees it with
 *                  kiln_texture_free(). 0 on failure.
 * @param array     the array to read; must outlive the texture.
 * @param desc      properties of the texture; borrowed for the call.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_ECAPTURE, KILN_EFORKED.
 * Thread-safe. Never blocks.
 */
KILN_INLINE kiln_status kiln_texture_create(uint64_t *out,
                                            kiln_cuda_array *array,
                                            const kiln_texture_desc *desc);

/**
 * Creates a texture that reads device memory. The caller remains the owner of
 * the memory.
 *
 * @param[out] out   handle for kernels; the caller frees it with
 *                   kiln_texture_free(). 0 on failure.
 * @param p          device address of the texels; the memory must stay
 *                   allocated while the texture is in use.
 * @param texel      data type of one channel.
 * @param channels   number of channels per texel: 1, 2 or 4.
 * @param width      number of texels per row.
 * @param height     number of rows; 0 means one dimension, which is read
 *                   without a filter.
 * @param pitch      distance between the starts of two rows in bytes, a
 *                   multiple of the device's texture pitch alignment (32);
 *                   ignored if height is 0.
 * @param desc       properties of the texture; borrowed for the call.
 * @retval the same statuses as kiln_texture_create().
 * Thread-safe. Never blocks.
 */
KILN_INLINE kiln_status kiln_texture_of_memory(uint64_t *out,
                                               kiln_device *device,
                                               CUdeviceptr p, kiln_texel texel,
                                               int channels, size_t width,
                                               size_t height, size_t pitch,
                                               const kiln_texture_desc *desc);

/** Frees a texture. Kernels that use it must have ended.
 * @param texture  handle of the texture; 0 is allowed.
 * @retval KILN_OK, KILN_EINVAL, KILN_EUNSUPPORTED, KILN_EDRIVER, KILN_ESTICKY,
 *         KILN_EFORKED.
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_texture_free(kiln_device *device, uint64_t texture);

/* ---- Surfaces ------------------------------------------------------------ */

/** Creates a surface, through which kernels read and write a CUDA array.
 * @param[out] out  handle for kernels; the caller frees it with
 *                  kiln_surface_free(). 0 on failure.
 * @param array     the array, created with kiln_cuda_array_desc.surface; must
 *                  outlive the surface.
 * @retval the same statuses as kiln_texture_create().
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_surface_create(uint64_t *out, kiln_cuda_array *array);

/** Frees a surface. Kernels that use it must have ended.
 * @param surface  handle of the surface; 0 is allowed.
 * @retval the same statuses as kiln_texture_free().
 * Thread-safe. Never blocks. */
KILN_API kiln_status kiln_surface_free(kiln_device *device, uint64_t surface);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

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
