/* scan_common.h -- what the host sides of the scans share. */
#ifndef KILN_OPS_SCAN_COMMON_H
#define KILN_OPS_SCAN_COMMON_H

#include "../ops.h"

#include <string.h>

/* How a tuning row is meant: `block` counts the warp that looks back, `extra` is
 * the number of tiles that a lane of it looks at at once, or KILN__SCAN_STAGED for
 * tiles that wait in shared memory. */
enum { KILN__SCAN_STAGED = 16, KILN__SCAN_STAGE = 44 << 10 /* bytes */ };

typedef struct kiln__scan_shape {
  uint32_t block, pack, rows, per_sm, window;
  bool staged;
  uint64_t tiles;
} kiln__scan_shape;

/* `widest`: bytes of the widest element that is read or written. `plain`: a
 * thread holds elements as they lie in memory, not as registers of 4 or 8
 * bytes. `stageable`: tiles may wait in shared memory; where they may not, a row
 * that is meant for it says nothing, and other numbers are taken. */
static inline void kiln__scan_shape_of(kiln__scan_shape *out,
                                       const kiln__tuning *t, size_t widest,
                                       bool plain, bool stageable, uint64_t n)
{
  static const kiln__tuning instead = {.block = 512, .items = 16, .extra = 2};
  const uint32_t held = widest == 8 ? 8 : 16; /* registers: 16 of 32 bits */

  out->staged = stageable && (t->extra & KILN__SCAN_STAGED) != 0;
  if (!out->staged && (t->extra & KILN__SCAN_STAGED) != 0)
    t = &instead;
  out->block = t->block > 64 ? t->block : 64u;
  out->pack = (uint32_t)(16 / widest);
  out->rows = t->items > out->pack ? t->items / out->pack : 1;
  if (out->staged)
    while (out->rows > KILN__SCAN_STAGE / (16 * (out->block - 32)) ||
           (out->rows & (out->rows - 1)) != 0)
      out->rows--;
  else if (!plain && out->rows * out->pack > held)
    out->rows = held / out->pack;
  out->per_sm = plain ? t->per_sm : 0; /* a map's inputs take more registers */
  out->window = t->extra % KILN__SCAN_STAGED;
  if (out->window == 0)
    out->window = 1;
  while (out->window > 8 || (out->window & (out->window - 1)) != 0)
    out->window--; /* what the kernel knows, whatever a file says */
  if (out->staged)
    out->window = 1; /* nobody looks back */
  out->tiles = kiln__divide_up(n > 0 ? n : 1, (uint64_t)(out->block - 32) *
                                                  out->pack * out->rows);
}

/* Bytes of the widest of an input's arrays, and `least`. */
static inline size_t kiln__widest(const kiln_input *x, size_t least)
{
  const size_t arrays = kiln__input_arrays(x);

  for (size_t k = 0; k < arrays; k++)
    if (kiln__size(x->in[k].type) > least)
      least = kiln__size(x->in[k].type);
  return least;
}

/* Type: the input's, if there is none. */
static inline kiln_array kiln__out_of(kiln_array out, const kiln_input *x)
{
  if (out.type == KILN_DTYPE_NONE)
    out.type = kiln__input_type(x);
  return out;
}

/* The output of a scan, in place or not. */
static inline void kiln__check_out(kiln__checker *c, kiln_array out,
                                   const kiln_input *x, uint64_t n)
{
  const size_t arrays = kiln__input_arrays(x);

  kiln__check_in_place(c, "out", out, n);
  for (size_t k = 0; k < arrays; k++) {
    if (n == 0 || x->in[k].data != out.data)
      continue;
    kiln__check_that(c, kiln__size(x->in[k].type) == kiln__size(out.type),
                     "in place, but the elements of out are of another size");
    kiln__check_that(
        c, !kiln__reads_neighbours(x->map),
        "the map reads other elements (x_at() or its like), so out "
        "cannot be an input");
  }
}

/* Marks for tiles of `acc`: 32 bits of payload in a word. */
static inline kiln__need kiln__scan_need(const kiln__scan_shape *shape,
                                         kiln_dtype acc)
{
  const size_t width = kiln__size(acc);
  const uint64_t whole = shape->tiles / 8 * 8 + 8; /* looked at together */

  return (kiln__need){.descriptors =
                          shape->staged
                              ? kiln__leader_descriptors(shape->tiles, width)
                              : (size_t)(whole * (width == 8 ? 2 : 1))};
}

/* An element in host memory as the bits of an argument. */
static inline uint64_t kiln__element_bits(const void *value, kiln_dtype type)
{
  uint64_t bits = 0;

  if (value != NULL)
    memcpy(&bits, value, kiln__size(type));
  return bits;
}

#endif
