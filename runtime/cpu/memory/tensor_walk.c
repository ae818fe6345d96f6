/* tensor_walk.c -- computes which bytes a tensor copy moves.
 *
 * A tiled copy moves a box of up to five dimensions. In shared memory the rows
 * of the box follow each other without gaps, except that a swizzled row takes
 * as many bytes as the swizzle spans. Dimension i advances by its element
 * stride. A row outside the tensor is filled, and so is the part of a row
 * before element 0 or behind the last element.
 *
 * An im2col copy moves `pixels` rows of `channels` elements. It starts at the
 * given pixel and visits the pixels of the bounding box in the order W, H, D,
 * N. The offsets move the pixel that is read, but not the visited position.
 *
 * The dimensions of an interleaved tensor are W, H, D, slices of channels, N.
 * Coordinate 0 counts units of 16 or 32 bytes, and a copy reads one slice.
 *
 * Swizzling exchanges 16-byte chunks: bits 4 to 6 of the address in shared
 * memory are combined with bits 7 to 9 by exclusive or (one bit for 32 bytes,
 * two for 64, three for 128).
 *
 * Source: PTX ISA, "Tensors". What the text leaves open was measured on an
 * H200. */
#include "tensor_walk.h"

#include "../../driver/abi_tensor.h"

#include <string.h>

static uint32_t span_of(const kiln__cpu_tensor_map *map)
{
  return map->swizzle == CU_TENSOR_MAP_SWIZZLE_NONE  ? 0
         : map->swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? 32
         : map->swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
                                                     : 128;
}

static bool is_interleaved(const kiln__cpu_tensor_map *map)
{
  return map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
}

/* Returns the number of bytes by which coordinate 0 counts. */
static uint32_t unit_of(const kiln__cpu_tensor_map *map)
{
  return is_interleaved(map) ? 8U << map->interleave
                             : kiln__cpu_tensor_element_bytes(map->type);
}

/* Returns the distance between two units of a row in the tensor. */
static uint32_t unit_step(const kiln__cpu_tensor_map *map)
{
  return is_interleaved(map) && map->mode == KILN__TENSOR_TILED ? map->step[0]
                                                                : 1;
}

/* Returns the number of units per row. A pixel of an interleaved tensor is one
 * unit. */
static uint32_t inner_of(const kiln__cpu_tensor_map *map)
{
  const uint32_t n =
      map->mode == KILN__TENSOR_IM2COL ? map->channels : map->box[0];

  if (map->mode == KILN__TENSOR_IM2COL)
    return is_interleaved(map) ? 1 : n;
  return (n + unit_step(map) - 1) / unit_step(map);
}

static uint32_t row_bytes(const kiln__cpu_tensor_map *map)
{
  return inner_of(map) * unit_of(map);
}

static uint32_t row_pitch(const kiln__cpu_tensor_map *map)
{
  const uint32_t bytes = row_bytes(map), span = span_of(map);

  return !is_interleaved(map) && span > bytes ? span : bytes;
}

/* Returns the number of positions that a tiled copy visits in dimension i. A box
 * of an interleaved tensor contains one slice of channels. */
static uint32_t count_of(const kiln__cpu_tensor_map *map, uint32_t i)
{
  if (is_interleaved(map) && i + 2 == map->rank)
    return 1;
  return (map->box[i] + map->step[i] - 1U) / map->step[i];
}

static uint32_t row_count(const kiln__cpu_tensor_map *map)
{
  uint32_t n = 1;

  if (map->mode == KILN__TENSOR_IM2COL)
    return map->pixels;
  for (uint32_t i = 1; i < map->rank; i++)
    n *= count_of(map, i);
  return n;
}

uint32_t kiln__cpu_tensor_box_bytes(const kiln__cpu_tensor_map *map)
{
  return row_count(map) * row_pitch(map);
}

uint32_t kiln__cpu_tensor_counted_bytes(const kiln__cpu_tensor_map *map)
{
  return row_count(map) * row_bytes(map);
}

uint32_t kiln__cpu_tensor_swizzled(const kiln__cpu_tensor_map *map, uint32_t at)
{
  switch (map->swizzle) {
  case CU_TENSOR_MAP_SWIZZLE_32B:
    return at ^ (at >> 3 & 0x10);
  case CU_TENSOR_MAP_SWIZZLE_64B:
    return at ^ (at >> 3 & 0x30);
  case CU_TENSOR_MAP_SWIZZLE_128B:
    return at ^ (at >> 3 & 0x70);
  default:
    return at;
  }
}

/* ---- Elements ------------------------------------------------------------ */

void kiln__cpu_tensor_fill(const kiln__cpu_tensor_map *map, uint8_t *to,
                           uint32_t n)
{
  const bool zero = map->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  /* The NaN has the same 16 bits, 0x7ff7, in elements of all sizes. */
  for (uint32_t i = 0; i < n; i++)
    to[i] = zero ? 0 : i % 2 == 0 ? 0xf7 : 0x7f;
}

/* Rounds the bits of an f32 value to tf32. NaNs become one NaN. */
static uint32_t rounded_to_tf32(uint32_t x)
{
  if ((x & 0x7fffffff) > 0x7f800000)
    return 0x7fffe000;
  return (x + 0xfff + (x >> 13 & 1)) & 0xffffe000;
}

void kiln__cpu_tensor_convert(const kiln__cpu_tensor_map *map, uint8_t *at,
                              uint32_t n)
{
  if (map->type < CU_TENSOR_MAP_DATA_TYPE_TFLOAT32)
    return;
  for (uint32_t i = 0; i + 4 <= n; i += 4) {
    uint32_t x;

    memcpy(&x, at + i, 4);
    x = rounded_to_tf32(x);
    memcpy(at + i, &x, 4);
  }
}

/* ---- Rows ---------------------------------------------------------------- */

/* Describes the row at coordinates `at`. The innermost coordinate is that of
 * the row's first element. */
static void make_row(const kiln__cpu_tensor_map *map,
                     const int64_t at[KILN__TENSOR_RANK], uint32_t number,
                     kiln__cpu_tensor_row *row)
{
  const int64_t bytes = unit_of(map), step = unit_step(map);
  const int64_t n = inner_of(map), size = (int64_t)map->last[0] + 1;
  int64_t from = at[0] < 0 ? (-at[0] + step - 1) / step : 0;
  int64_t to = at[0] >= size ? 0 : (size - at[0] + step - 1) / step;
  uint64_t address = map->address;
  bool within;

  from = from < n ? from : n;
  to = to < n ? to : n;
  within = from < to;
  for (uint32_t i = 1; i < map->rank; i++) {
    within = within && at[i] >= 0 && at[i] <= (int64_t)map->last[i];
    address += (uint64_t)at[i] * map->stride[i - 1];
  }
  *row = (kiln__cpu_tensor_row){
      .shared = number * row_pitch(map),
      .unit = (uint32_t)(step == 1 ? 0 : bytes),
      .apart = (uint32_t)(step * bytes),
      .before = (uint32_t)((within ? from : n) * bytes),
      .inside = (uint32_t)(within ? (to - from) * bytes : 0),
      .after = (uint32_t)(within ? (n - to) * bytes : 0),
      .global = address + (uint64_t)((at[0] + from * step) * bytes)};
}

static bool walk_tiles(const kiln__cpu_tensor_place *p,
                       kiln__cpu_tensor_row_fn *fn, void *user)
{
  const kiln__cpu_tensor_map *const map = p->map;
  const uint32_t rows = row_count(map);
  kiln__cpu_tensor_row row;

  for (uint32_t r = 0; r < rows; r++) {
    int64_t at[KILN__TENSOR_RANK] = {p->coord[0]};
    uint32_t rest = r;

    for (uint32_t i = 1; i < map->rank; i++) {
      const uint32_t n = count_of(map, i);

      at[i] = p->coord[i] + (int64_t)(rest % n) * map->step[i];
      rest /= n;
    }
    make_row(map, at, r, &row);
    if (!fn(user, &row))
      return false;
  }
  return true;
}

uint32_t kiln__cpu_tensor_width(const kiln__cpu_tensor_map *map)
{
  return is_interleaved(map) ? 0 : 1;
}

/* Returns the last coordinate of the bounding box in spatial dimension i. */
static int64_t box_end(const kiln__cpu_tensor_map *map, uint32_t i)
{
  return (int64_t)map->last[i + kiln__cpu_tensor_width(map)] + map->upper[i];
}

/* Advances the visited pixel by one position within the bounding box. */
static void next_pixel(const kiln__cpu_tensor_map *map,
                       int64_t at[KILN__TENSOR_RANK])
{
  const uint32_t image = map->rank - 1U, w = kiln__cpu_tensor_width(map);

  for (uint32_t i = 0; i + 2 < map->rank; i++) {
    at[i + w] += map->step[i + w];
    if (at[i + w] <= box_end(map, i))
      return;
    at[i + w] = map->lower[i];
  }
  at[image] += map->step[image];
}

/* Returns whether the bounding box lies within the tensor. */
static bool box_is_within(const kiln__cpu_tensor_map *map)
{
  for (uint32_t i = 0; i + 2 < map->rank; i++) {
    if (map->lower[i] < 0 || map->upper[i] > 0)
      return false;
  }
  return true;
}

bool kiln__cpu_tensor_starts(const kiln__cpu_tensor_place *p, bool store)
{
  const kiln__cpu_tensor_map *const map = p->map;
  const int32_t *const first = p->coord + kiln__cpu_tensor_width(map);

  if (!is_interleaved(map) && (int64_t)p->coord[0] * unit_of(map) % 16 != 0)
    return false;
  for (uint32_t i = 0; i < map->rank && store; i++) {
    if (p->coord[i] < 0)
      return false;
  }
  if (map->mode != KILN__TENSOR_IM2COL)
    return true;
  for (uint32_t i = 0; i + 2 < map->rank; i++) {
    if (first[i] < map->lower[i] || first[i] > box_end(map, i))
      return false;
  }
  return !store || box_is_within(map);
}

static bool walk_pixels(const kiln__cpu_tensor_place *p,
                        kiln__cpu_tensor_row_fn *fn, void *user)
{
  const kiln__cpu_tensor_map *const map = p->map;
  int64_t at[KILN__TENSOR_RANK];
  kiln__cpu_tensor_row row;

  for (uint32_t i = 0; i < KILN__TENSOR_RANK; i++)
    at[i] = p->coord[i];
  for (uint32_t r = 0; r < map->pixels; r++) {
    int64_t read[KILN__TENSOR_RANK];

    memcpy(read, at, sizeof read);
    for (uint32_t i = 0; i + 2 < map->rank; i++)
      read[i + kiln__cpu_tensor_width(map)] += p->offset[i];
    make_row(map, read, r, &row);
    if (!fn(user, &row))
      return false;
    next_pixel(map, at);
  }
  return true;
}

bool kiln__cpu_tensor_walk(const kiln__cpu_tensor_place *place,
                           kiln__cpu_tensor_row_fn *fn, void *user)
{
  return place->map->mode == KILN__TENSOR_IM2COL ? walk_pixels(place, fn, user)
                                                 : walk_tiles(place, fn, user);
}
