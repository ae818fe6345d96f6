/* compact.h -- what the host sides of select, partition, split, run_length and find
 * share: flags and bit copies as inputs, tile sizes, checks of counts. Included by
 * runtime/ops/select alone. */
#ifndef KILN_OPS_COMPACT_H
#define KILN_OPS_COMPACT_H

#include "../ops.h"

/* The bytes of static shared memory that a tile's elements may take: 48 KiB, which
 * every architecture has, less what kernels need beside. */
enum { KILN__TILE_SHARED = 46 * 1024 };

/* A bit in the `extra` of a tuning row of select: tiles wait in shared memory. */
enum { KILN__SELECT_STAGED = 16 };

/* The text "x0" to "x7" for element i of array k. */
static inline const char *kiln__element_text(size_t k)
{
  static const char *const text[] = {"x0", "x1", "x2", "x3",
                                     "x4", "x5", "x6", "x7"};

  return text[k];
}

/* Adds flags as one more array of the input and returns the text of their value, or
 * NULL if the input has eight arrays already. */
static inline const char *kiln__add_flags(kiln_input *x, kiln_array flags)
{
  const size_t k = kiln__input_arrays(x);

  if (k == KILN_MAX_INPUTS)
    return NULL;
  if (x->type == KILN_DTYPE_NONE)
    x->type = kiln__input_type(x); /* not that of the flags */
  x->in[k] = flags;
  return kiln__element_text(k);
}

static inline bool kiln__is_half(kiln_dtype type)
{
  return type == KILN_F16 || type == KILN_BF16;
}

/* Lets a kernel move f16 and bf16 without a map as bits: it reads them as u16, since
 * the way through float would change NaNs. The array itself stays, for the predicate.
 * `input` is the caller's `x`, perhaps with flags behind its arrays. */
static inline void kiln__move_bits(kiln_input *input, const kiln_input *x)
{
  const size_t k = kiln__input_arrays(input);

  if (x->map != NULL || k == 0 || k == KILN_MAX_INPUTS ||
      !kiln__is_half(x->in[0].type) || kiln__input_type(x) != x->in[0].type)
    return;
  input->in[k] = (kiln_array){x->in[0].data, KILN_U16};
  input->map = kiln__element_text(k);
  input->type = KILN_U16;
}

/* Elements per vector: 16 bytes of the widest array that is read. */
static inline unsigned kiln__input_vec(const kiln_input *x)
{
  const size_t arrays = kiln__input_arrays(x);
  size_t widest = arrays == 0 ? 4 : 1;

  for (size_t k = 0; k < arrays; k++)
    if (kiln__size(x->in[k].type) > widest)
      widest = kiln__size(x->in[k].type);
  return (unsigned)(16 / widest);
}

/* Elements per thread of a tile that holds `bytes` per element in static shared
 * memory: as tuned, in whole vectors, at most 32 (a bit of a mask each), and at most
 * what fits. Where even one vector per thread is too much, as for bytes that a map
 * makes wider, the block shrinks. */
static inline unsigned kiln__tile_items(kiln__tuning *t, unsigned vec,
                                        size_t bytes)
{
  unsigned vecs = t->items > vec ? t->items / vec : 1;

  while (vecs > 1 && (vecs * vec > 32 || (size_t)vecs * vec * t->block * bytes >
                                             KILN__TILE_SHARED))
    vecs--;
  while (t->block > 64 &&
         (size_t)vecs * vec * t->block * bytes > KILN__TILE_SHARED)
    t->block = (uint16_t)(t->block / 64 * 32);
  return vecs * vec;
}

static inline bool kiln__is_count(kiln_dtype type)
{
  return type == KILN_U32 || type == KILN_U64;
}

/* Checks an output of counts, indices or offsets: u32 or u64, wide enough for n. */
static inline void kiln__check_count(kiln__checker *c, const char *name,
                                     kiln_array a, uint64_t values, uint64_t n)
{
  kiln__check_that(c, kiln__is_count(a.type), "%s is neither u32 nor u64",
                   name);
  kiln__check_that(c, a.type != KILN_U32 || n <= UINT32_MAX,
                   "%s is u32, too small for 2^32 elements and more", name);
  kiln__check_write(c, name, a, values);
}

/* Checks an output of an input's elements: of their type. */
static inline void kiln__check_elements(kiln__checker *c, const char *name,
                                        kiln_array a, const kiln_input *x,
                                        uint64_t n)
{
  kiln__check_that(c, c->st != KILN_OK || a.type == kiln__input_type(x),
                   "%s is %s, but its elements are %s", name,
                   kiln_dtype_name(a.type),
                   kiln_dtype_name(kiln__input_type(x)));
  kiln__check_write(c, name, a, n);
}

#endif
