/* scan_common.h -- the internal interface that the host sides of scans and
 * differences share. It covers the parameters of a launch, and the checks of an
 * output that is also an input. */
#ifndef KILN_OPS_SCAN_COMMON_H
#define KILN_OPS_SCAN_COMMON_H

#include "../ops.h"

#include <string.h>

/* Constants that describe a tuning row of a scan. `block` includes the warp
 * that does the decoupled look-back. `extra` is the number of tile
 * descriptors that a lane of that warp reads at once. If `extra` is
 * KILN__SCAN_STAGED, tiles wait in shared memory for their prefix.
 * KILN__SCAN_STAGE is the size in bytes of the shared memory for such a
 * tile. */
enum { KILN__SCAN_STAGED = 16, KILN__SCAN_STAGE = 44 << 10 };

typedef struct kiln__scan_shape {
  uint32_t block, vec, vecs, per_sm, window;
  bool staged; /* tiles wait in shared memory */
  bool leader; /* block 0 computes the prefixes of all tiles */
  uint64_t tiles;
} kiln__scan_shape;

/* Chooses the parameters for elements that do not fill vectors of 16 bytes. A
 * thread holds about 96 bytes. The totals of tiles are wide, so look-backs are
 * slow, and the leader block computes the prefixes of more than a few tiles. */
static inline void kiln__scan_wide_shape(kiln__scan_shape *out, size_t widest,
                                         uint64_t n)
{
  enum { HELD = 96, FEW_TILES = 32, FEW_BYTES = 1 << 20 };
  const uint32_t vec = kiln__vector_of(widest);
  const uint32_t vecs = (uint32_t)(HELD / (vec * widest));

  *out = (kiln__scan_shape){.block = n < FEW_BYTES / widest ? 160 : 288,
                            .vec = vec,
                            .vecs = vecs > 0 ? vecs : 1,
                            .window = 1};
  out->tiles = kiln__divide_up(n > 0 ? n : 1, (uint64_t)(out->block - 32) *
                                                  out->vec * out->vecs);
  out->leader = out->tiles > FEW_TILES;
}

/* Chooses the parameters of a launch. `widest` is the size in bytes of the
 * widest element that is read or written. If `plain` is true, threads hold
 * elements in their memory format, several elements per register. If
 * `stageable` is true, tiles may wait in shared memory. If `stageable` is false
 * but the tuning row demands staged tiles, fixed parameters replace the row. */
static inline void kiln__scan_shape_of(kiln__scan_shape *out,
                                       const kiln__tuning *t, size_t widest,
                                       bool plain, bool stageable, uint64_t n)
{
  static const kiln__tuning instead = {.block = 512, .items = 16, .extra = 2};
  /* The number of elements that 16 registers of 32 bits can hold. */
  const uint32_t held = widest == 8 ? 8 : 16;

  if (!stageable && (widest > 8 || (widest & (widest - 1)) != 0)) {
    kiln__scan_wide_shape(out, widest, n);
    return;
  }
  out->staged = stageable && (t->extra & KILN__SCAN_STAGED) != 0;
  out->leader = out->staged;
  if (!out->staged && (t->extra & KILN__SCAN_STAGED) != 0)
    t = &instead;
  out->block = t->block > 64 ? t->block : 64u;
  out->vec = kiln__vector_of(widest);
  out->vecs = t->items > out->vec ? t->items / out->vec : 1;
  if (out->staged)
    while (out->vecs > KILN__SCAN_STAGE / (16 * (out->block - 32)) ||
           (out->vecs & (out->vecs - 1)) != 0)
      out->vecs--;
  else if (!plain && out->vecs * out->vec > held)
    out->vecs = held / out->vec;
  /* The registers are not limited for a scan with a map, since its inputs
   * take more registers. */
  out->per_sm = plain ? t->per_sm : 0;
  out->window = t->extra % KILN__SCAN_STAGED;
  if (out->window == 0)
    out->window = 1;
  while (out->window > 8 || (out->window & (out->window - 1)) != 0)
    out->window--; /* the kernel requires a power of two of at most 8 */
  if (out->staged || widest > 8)
    out->window = 1; /* staged tiles use no look-back */
  out->tiles = kiln__divide_up(n > 0 ? n : 1, (uint64_t)(out->block - 32) *
                                                  out->vec * out->vecs);
}

/* Returns whether threads can hold elements in their memory format. The
 * operation's identity must have this format, too, but a user-defined identity
 * for f16 and bf16 is a float. */
static inline bool kiln__is_plain(const kiln_input *x, const kiln_op *op,
                                  kiln_dtype acc)
{
  return x->map == NULL && x->in[0].type == acc &&
         (op->expr == NULL || !kiln__is_half(acc));
}

/* Returns the output array; if the array has no type, its type becomes the
 * input's type. */
static inline kiln_array kiln__out_of(kiln_array out, const kiln_input *x)
{
  if (out.type == KILN_DTYPE_NONE)
    out.type = kiln__input_type(x);
  return out;
}

/* Checks the output of a scan. The output may be the same array as an input. */
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
        "the map reads other elements (x_at(), y_at() and so on), so out "
        "cannot be an input");
  }
}

/* Returns the temporary storage for the tile descriptors of a scan with results
 * of type `acc`. Each descriptor holds 32 bits of a value. */
static inline kiln__need kiln__scan_need(const kiln__scan_shape *shape,
                                         kiln_dtype acc)
{
  const size_t width = kiln__size(acc);
  /* A look-back reads the descriptors of up to eight tiles together. */
  const uint64_t whole = shape->tiles / 8 * 8 + 8;

  return (kiln__need){.descriptors =
                          shape->leader
                              ? kiln__leader_descriptors(shape->tiles, width)
                              : (size_t)(whole * ((width + 3) / 4))};
}

/* A kernel argument that contains the bits of an element: one 64-bit word, or
 * as many as the element needs. */
typedef struct kiln__element {
  uint64_t word[8];
  size_t size; /* size of the argument in bytes */
} kiln__element;

/* Copies an element from host memory, or zeros if `value` is NULL. */
static inline kiln__element kiln__element_of(const void *value, kiln_dtype type)
{
  kiln__element e = {.size = (kiln__size(type) + 7) / 8 * 8};

  if (value != NULL)
    memcpy(e.word, value, kiln__size(type));
  return e;
}

/* Initialises an element of a kiln_arg array. */
#define KILN__ELEMENT_ARG(element)                                             \
  {                                                                            \
    (element).word, (element).size                                             \
  }

#endif
