/* rt_rows.c -- copies a number of bytes between memory and the rows of an array, or
 * between the rows of two arrays.
 *
 * The bytes fill the rest of the first row, whole rows, and the begin of a last row.
 * Problem: rows of two arrays may have different lengths. Idea: each step copies up to
 * the next end of a row on either side, or all whole rows at once if both sides are at
 * the begin of a row and no array's row is longer than the other's. */
#include "rt_box.h"
#include "rt_channel.h"

/* One side of the copy: memory if `array` is NULL, else a position in an array. */
typedef struct side {
  cudaArray_t array;
  void *address;
  size_t x, y; /* x in bytes */
  size_t row;  /* bytes of a row of the array; SIZE_MAX for memory */
} side;

static cudaError_t side_of_array(side *s, cudaArray_t array, size_t x, size_t y)
{
  CUDA_ARRAY3D_DESCRIPTOR d;

  KILN__RT_TRY(cuArray3DGetDescriptor_v2(&d, array));
  *s = (side){.array = array, .x = x, .y = y};
  s->row =
      d.Width * kiln__rt_texel_bytes((kiln__rt_texel){d.Format, d.NumChannels});
  return x < s->row ? cudaSuccess : cudaErrorInvalidValue;
}

static side side_of_memory(const void *address)
{
  return (side){.address = (void *)(uintptr_t)address, .row = SIZE_MAX};
}

static size_t smaller(size_t a, size_t b)
{
  return a < b ? a : b;
}

/* Copies `height` rows of `width` bytes. Memory is contiguous. */
static cudaError_t copy_rows(const side *to, const side *from, size_t width,
                             size_t height, cudaMemcpyKind kind, bool async,
                             cudaStream_t stream)
{
  cudaMemcpyKind inner = to->array != NULL && from->array != NULL
                             ? cudaMemcpyDeviceToDevice
                             : kind;
  CUDA_MEMCPY3D box;

  KILN__RT_TRY(
      kiln__rt_box_of_bytes(&box, to->address, from->address, width, inner));
  box.Height = height;
  if (to->array != NULL) {
    box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    box.dstArray = to->array;
    box.dstXInBytes = to->x;
    box.dstY = to->y;
  }
  if (from->array != NULL) {
    box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    box.srcArray = from->array;
    box.srcXInBytes = from->x;
    box.srcY = from->y;
  }
  return async ? kiln__rt_box_copy_async(&box, stream)
               : kiln__rt_box_copy(&box);
}

static void advance(side *s, size_t width, size_t height)
{
  if (s->array == NULL) {
    s->address = (unsigned char *)s->address + width * height;
    return;
  }
  s->x += width;
  s->y += height - 1;
  if (s->x == s->row) {
    s->x = 0;
    s->y++;
  }
}

static cudaError_t copy_bytes(side to, side from, size_t size,
                              cudaMemcpyKind kind, bool async,
                              cudaStream_t stream)
{
  while (size > 0) {
    const size_t width =
        smaller(size, smaller(to.row - to.x, from.row - from.x));
    const bool whole = to.x == 0 && from.x == 0 &&
                       (to.row == width || to.array == NULL) &&
                       (from.row == width || from.array == NULL);
    const size_t height = whole ? size / width : 1;

    KILN__RT_TRY(copy_rows(&to, &from, width, height, kind, async, stream));
    advance(&to, width, height);
    advance(&from, width, height);
    size -= width * height;
  }
  return cudaSuccess;
}

static cudaError_t to_array(cudaArray_t to, size_t x, size_t y,
                            const void *from, size_t size, cudaMemcpyKind kind,
                            bool async, cudaStream_t stream)
{
  side s;

  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(side_of_array(&s, to, x, y));
  return copy_bytes(s, side_of_memory(from), size, kind, async, stream);
}

static cudaError_t from_array(void *to, cudaArray_t from, size_t x, size_t y,
                              size_t size, cudaMemcpyKind kind, bool async,
                              cudaStream_t stream)
{
  side s;

  KILN__RT_TRY(kiln__rt_context());
  KILN__RT_TRY(side_of_array(&s, from, x, y));
  return copy_bytes(side_of_memory(to), s, size, kind, async, stream);
}

cudaError_t kiln__rt_memcpyToArray(cudaArray_t to, size_t x, size_t y,
                                   const void *from, size_t size,
                                   cudaMemcpyKind kind)
{
  return to_array(to, x, y, from, size, kind, false, NULL);
}

cudaError_t kiln__rt_memcpyToArrayAsync(cudaArray_t to, size_t x, size_t y,
                                        const void *from, size_t size,
                                        cudaMemcpyKind kind,
                                        cudaStream_t stream)
{
  return to_array(to, x, y, from, size, kind, true, stream);
}

cudaError_t kiln__rt_memcpyFromArray(void *to, cudaArray_t from, size_t x,
                                     size_t y, size_t size, cudaMemcpyKind kind)
{
  return from_array(to, from, x, y, size, kind, false, NULL);
}

cudaError_t kiln__rt_memcpyFromArrayAsync(void *to, cudaArray_t from, size_t x,
                                          size_t y, size_t size,
                                          cudaMemcpyKind kind,
                                          cudaStream_t stream)
{
  return from_array(to, from, x, y, size, kind, true, stream);
}

cudaError_t kiln__rt_memcpyArrayToArray(cudaArray_t to, size_t to_x,
                                        size_t to_y, cudaArray_t from,
                                        size_t from_x, size_t from_y,
                                        size_t size, cudaMemcpyKind kind)
{
  side target, source;

  KILN__RT_TRY(kiln__rt_context());
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  KILN__RT_TRY(side_of_array(&target, to, to_x, to_y));
  KILN__RT_TRY(side_of_array(&source, from, from_x, from_y));
  return copy_bytes(target, source, size, kind, false, NULL);
}
