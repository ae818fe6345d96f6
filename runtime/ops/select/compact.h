/* compact.h -- the internal interface that the host sides of select,
 * partition, split, run_length and find share. It covers flags and bit
 * copies as inputs, tile sizes, and checks of counts. Only files of
 * runtime/ops/select include this header. */
#ifndef KILN_OPS_COMPACT_H
#define KILN_OPS_COMPACT_H

#include "../ops.h"

/* Maximum number of bytes of static shared memory for the elements of a tile.
 * Every architecture has 48 KiB, of which the kernels need the rest for other
 * data. */
enum { KILN__TILE_SHARED = 46 * 1024 };

/* Value of `extra` in a tuning row of select which means that tiles wait in
 * shared memory. */
enum { KILN__SELECT_STAGED = 16 };

/* Returns the expression "x0" to "x7", which stands for an element of array
 * k. */
static inline const char *kiln__element_text(size_t k)
{
  static const char *const text[] = {"x0", "x1", "x2", "x3",
                                     "x4", "x5", "x6", "x7"};

  return text[k];
}

/* Adds flags as one more array of the input and returns the expression that
 * reads a flag. Returns NULL if the input already has eight arrays. */
static inline const char *kiln__add_flags(kiln_input *x, kiln_array flags)
{
  const size_t k = kiln__input_arrays(x);

  if (k == KILN_MAX_INPUTS)
    return NULL;
  if (x->type == KILN_DTYPE_NONE)
    /* The input keeps the type of its elements, not the type of the flags. */
    x->type = kiln__input_type(x);
  x->in[k] = flags;
  return kiln__element_text(k);
}

/* Lets a kernel move the bits of f16 and bf16 elements if there is no map. The
 * kernel reads such elements as u16, since a conversion to float and back would
 * change NaNs. The original array stays in the input for the predicate. `input`
 * is a copy of the caller's `x` and may have flags after its arrays. */
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

/* Returns the number of elements per thread, a multiple of the vector size.
 * Each element of a tile takes `bytes` bytes of static shared memory. The
 * tuning row gives the number, but shared memory may limit it. The maximum is
 * 32, since each element takes one bit of a mask. If not even one vector per
 * thread fits, for example because the map widens the elements, the function
 * reduces t->block. */
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

/* Checks an output of counts, indices or offsets. The type must be u32 or
 * u64 and wide enough for n. */
static inline void kiln__check_count(kiln__checker *c, const char *name,
                                     kiln_array a, uint64_t values, uint64_t n)
{
  kiln__check_that(c, kiln__is_count(a.type), "%s is neither u32 nor u64",
                   name);
  kiln__check_that(c, a.type != KILN_U32 || n <= UINT32_MAX,
                   "%s is u32, too small for 2^32 elements and more", name);
  kiln__check_write(c, name, a, values);
}

/* Checks an output that holds elements of an input. The output must have the
 * type of the input's elements. */
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

/* Defines kiln_NAME() and kiln_NAME_workspace() for an operation that shares
 * its code with other operations, such as find and count.
 *
 *   prepare(&plan, call, variant, stream, desc, workspace) checks the arguments
 *     and makes the plan. `call` is the name of the exported function.
 *   run(stream, &plan, workspace) queues the launch. */
#define KILN__DEFINE_VARIANT(name, desc_type, variant, prepare, run)           \
  kiln_status name(kiln_stream *stream, const desc_type *desc,                 \
                   const kiln_workspace *workspace)                            \
  {                                                                            \
    plan p;                                                                    \
    const kiln_status st =                                                     \
        prepare(&p, #name, variant, stream, desc, workspace);                  \
                                                                               \
    return st == KILN_OK ? run(stream, &p, workspace) : st;                    \
  }                                                                            \
  static kiln_status name##_need(plan *p, kiln_stream *stream,                 \
                                 const desc_type *desc,                        \
                                 const kiln_workspace *workspace)              \
  {                                                                            \
    return prepare(p, #name "_workspace", variant, stream, desc, workspace);   \
  }                                                                            \
  KILN__WORKSPACE(name, desc_type, plan, name##_need)

#endif
