/* api_tensor_map.c -- implements cuTensorMapEncodeTiled,
 * cuTensorMapEncodeIm2col and cuTensorMapReplaceAddress.
 *
 * A tensor map describes a tensor in global memory to the instructions
 * cp.async.bulk.tensor. The functions check their arguments as the driver
 * that of an H200 does and store the description in the layout of
 * model/tensor_map.h. The packed data types of 4 and 6 bits, the swizzles of
 * 32-byte and 64-byte chunks and the im2col::w modes need compute capability
 * 10.0; the CPU device rejects them. */
#include "../../memory/tensor_walk.h"
#include "../machine.h"

#include <string.h>

enum {
  MAX_BOX = 256,
  MAX_BOX_BYTES = 228 * 1024, /* as many as an SM has */
  MAX_STEP = 8,
  MAX_PIXELS = 1024,
  SWIZZLE_LAST = CU_TENSOR_MAP_SWIZZLE_128B
};

/* Returns the largest size in bytes of the inner dimension of a box, which the
 * swizzle determines. */
static uint32_t swizzle_bytes(unsigned swizzle)
{
  return swizzle == CU_TENSOR_MAP_SWIZZLE_NONE  ? UINT32_MAX
         : swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? 32
         : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
                                                : 128;
}

static bool is_float(unsigned type)
{
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 &&
         type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

/* The arguments that the two encoding functions share. */
typedef struct encoding {
  CUtensorMapDataType type;
  uint32_t rank;
  const void *address;
  const uint64_t *dim, *strides;
  const uint32_t *steps;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
} encoding;

static bool enums_fit(const encoding *e)
{
  return e->type >= 0 && kiln__cpu_tensor_element_bytes((unsigned)e->type) &&
         e->interleave >= 0 && e->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B &&
         e->swizzle >= 0 && e->swizzle <= SWIZZLE_LAST && e->promotion >= 0 &&
         e->promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B && e->fill >= 0 &&
         e->fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA &&
         (e->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
          is_float((unsigned)e->type));
}

/* Checks and stores the part of a map that both modes share. */
static CUresult encode_shared(kiln__cpu_tensor_map *map, const encoding *e)
{
  const uint64_t align =
      e->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  const uint64_t address = (uint64_t)(uintptr_t)e->address;

  *map = (kiln__cpu_tensor_map){0};
  CU_TRY(valid(enums_fit(e) && e->dim != NULL && e->steps != NULL &&
               (e->strides != NULL || e->rank == 1) && address % align == 0));
  for (uint32_t i = 0; i < e->rank; i++) {
    CU_TRY(valid(e->dim[i] - 1 <= UINT32_MAX && e->steps[i] - 1 < MAX_STEP));
    map->last[i] = (uint32_t)(e->dim[i] - 1);
    map->step[i] = (uint8_t)e->steps[i];
  }
  for (uint32_t i = 0; i + 1 < e->rank; i++) {
    CU_TRY(
        valid(e->strides[i] % align == 0 && e->strides[i] < UINT64_C(1) << 40));
    map->stride[i] = e->strides[i];
  }
  map->address = address;
  map->rank = (uint8_t)e->rank;
  map->type = (uint8_t)e->type;
  map->interleave = (uint8_t)e->interleave;
  map->swizzle = (uint8_t)e->swizzle;
  map->promotion = (uint8_t)e->promotion;
  map->fill = (uint8_t)e->fill;
  return CUDA_SUCCESS;
}

/* Checks the number of bytes of the inner dimension of a box. */
static CUresult check_inner(const kiln__cpu_tensor_map *map, uint32_t elements)
{
  const uint32_t bytes = elements * kiln__cpu_tensor_element_bytes(map->type);

  return valid(bytes % 16 == 0 &&
               (map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
                bytes <= swizzle_bytes(map->swizzle)));
}

static CUresult store(CUtensorMap *out, kiln__cpu_tensor_map *map)
{
  kiln__cpu_tensor_map_seal(map);
  memcpy(out, map, sizeof *map);
  return CUDA_SUCCESS;
}

/* Returns the result of the checks that precede all others. */
static CUresult check_out(const CUtensorMap *out)
{
  CU_TRY(kiln__cpu_ready());
  CU_TRY(valid(out != NULL));
  return machine()->opts.arch >= 90 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult kiln__cpu_tensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
    const uint64_t *dim, const uint64_t *strides, const uint32_t *box,
    const uint32_t *element_strides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill)
{
  const encoding e = {
      type,       rank,    address,   dim, strides, element_strides,
      interleave, swizzle, promotion, fill};
  const uint32_t least = interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : 3;
  kiln__cpu_tensor_map made;

  CU_TRY(check_out(map));
  CU_TRY(valid(rank >= least && rank <= KILN__TENSOR_RANK && box != NULL));
  CU_TRY(encode_shared(&made, &e));
  made.mode = KILN__TENSOR_TILED;
  for (uint32_t i = 0; i < rank; i++) {
    CU_TRY(valid(box[i] - 1 < MAX_BOX));
    made.box[i] = (uint16_t)box[i];
  }
  CU_TRY(check_inner(&made, box[0]));
  CU_TRY(valid(kiln__cpu_tensor_box_bytes(&made) <= MAX_BOX_BYTES));
  return store(map, &made);
}

/* Checks and stores the corners of the bounding box of im2col. The number of
 * bits of an offset depends on the rank. The driver passes the offsets in the
 * order of the spatial dimensions W, H, D. */
static CUresult encode_corners(kiln__cpu_tensor_map *map, const int *lower,
                               const int *upper)
{
  static const int limits[] = {32768, 128, 16};
  const uint32_t n = map->rank - 2U;
  const int limit = limits[n - 1];

  CU_TRY(valid(lower != NULL && upper != NULL));
  for (uint32_t i = 0; i < n; i++) {
    CU_TRY(valid(lower[i] >= -limit && lower[i] < limit && upper[i] >= -limit &&
                 upper[i] < limit));
    CU_TRY(valid((int64_t)map->last[i + kiln__cpu_tensor_width(map)] + 1 +
                     upper[i] - lower[i] >
                 0));
    map->lower[i] = (int16_t)lower[i];
    map->upper[i] = (int16_t)upper[i];
  }
  return CUDA_SUCCESS;
}

CUresult kiln__cpu_tensorMapEncodeIm2col(
    CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
    const uint64_t *dim, const uint64_t *strides, const int *lower,
    const int *upper, uint32_t channels, uint32_t pixels,
    const uint32_t *element_strides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill)
{
  const encoding e = {
      type,       rank,    address,   dim, strides, element_strides,
      interleave, swizzle, promotion, fill};
  kiln__cpu_tensor_map made;

  CU_TRY(check_out(map));
  CU_TRY(valid(rank >= 3 && rank <= KILN__TENSOR_RANK &&
               channels - 1 < MAX_BOX && pixels - 1 < MAX_PIXELS));
  CU_TRY(encode_shared(&made, &e));
  made.mode = KILN__TENSOR_IM2COL;
  made.channels = (uint16_t)channels;
  made.pixels = (uint16_t)pixels;
  CU_TRY(encode_corners(&made, lower, upper));
  CU_TRY(check_inner(&made, channels));
  return store(map, &made);
}

CUresult kiln__cpu_tensorMapEncodeIm2colWide(
    CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
    const uint64_t *dim, const uint64_t *strides, int lower, int upper,
    uint32_t channels, uint32_t pixels, const uint32_t *element_strides,
    CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill)
{
  (void)type, (void)rank, (void)address, (void)dim, (void)strides;
  (void)lower, (void)upper, (void)channels, (void)pixels;
  (void)element_strides, (void)interleave, (void)mode, (void)swizzle;
  (void)promotion, (void)fill;
  CU_TRY(check_out(map));
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult kiln__cpu_tensorMapReplaceAddress(CUtensorMap *map, void *address)
{
  const uint64_t at = (uint64_t)(uintptr_t)address;
  kiln__cpu_tensor_map made;

  CU_TRY(check_out(map));
  memcpy(&made, map, sizeof made);
  CU_TRY(valid(
      kiln__cpu_tensor_map_valid(&made) &&
      at % (made.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16) == 0));
  made.address = at;
  return store(map, &made);
}
