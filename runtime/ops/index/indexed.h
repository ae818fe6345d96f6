/* indexed.h -- what gather and scatter share: arrays of indices and their range check,
 * the partition of a call by buckets of its target (buckets.cu), and the scatter of
 * sorted pairs (scatter_buckets.cu). Segmented reductions use the range check.
 *
 * "Target" is the array that the indices point into: the input of a gather, the output
 * of a scatter. A bucket is a range of the target. */
#ifndef KILN_INDEXED_H
#define KILN_INDEXED_H

#include "../sort/sort.h"

#include <kiln/gather.h>

enum {
  KILN__MAX_BUCKETS = 1024,
  KILN__INDEX_VECTOR = 4 /* elements per vector in gather.cu and scatter.cu */
};

/* The unsigned type of `size` bytes, for indices, which are not negative, and for
 * elements that only move, which are bits; KILN_DTYPE_NONE if there is none. */
kiln_dtype kiln__raw_type(unsigned size);
/* Changes an input and an output's type to bits where elements move unchanged.
 * Returns whether they do. */
bool kiln__as_bits(kiln_input *x, kiln_dtype *out);

/* Bytes of one element of all of the input's arrays together, at least 1. */
unsigned kiln__input_bytes(const kiln_input *x);
/* Elements of the target per window, of `windows` windows. */
uint64_t kiln__window(kiln_array index, uint64_t n_target, uint64_t n,
                      uint32_t windows);

/* Checks the array of indices. */
void kiln__check_index(kiln__checker *c, kiln_array index, uint64_t n);
/* Checks that method, passes, `checked` and n_target fit together. */
void kiln__check_method(kiln__checker *c, kiln_index_method method,
                        uint32_t passes, bool checked, uint64_t n_target);

/* n indices that must be below `end`, and must not descend if they are offsets. */
typedef struct kiln__range {
  const char *call, *what; /* in messages: "kiln_gather", "index" */
  kiln_array index;
  uint64_t n, end;
  bool rising;
} kiln__range;

/* The temporary storage of kiln__in_range(). */
kiln__need kiln__range_need(void);
/* Checks indices on the GPU and waits for the result. KILN_EINVAL if an index is out
 * of range or, where required, not ascending; the message has the first one.
 * KILN_ECAPTURE while the stream is being captured. */
kiln_status kiln__in_range(kiln_stream *stream, const kiln__range *r,
                           const kiln_workspace *workspace);

/* ---- The partition -------------------------------------------------------------- */

typedef struct kiln__partition {
  uint32_t buckets; /* a power of two */
  uint32_t shift;   /* bucket of an index: index >> shift */
  uint32_t block, items;
  uint64_t n, tiles;
  kiln_array index; /* the call's, as unsigned */
  kiln_dtype stored, place;
  kiln_dtype value; /* type of out's elements; of a gather, their bits */
  bool scatter;
  CUdeviceptr out; /* of a gather: the array that `join` writes */
  /* offsets in temporary memory */
  size_t cursor, at, values, slot, begin, delta;
  kiln__need need;
  /* once it is prepared */
  const kiln__kernel_set *set;
  kiln__args args;
} kiln__partition;

/* Plans a partition into `parts` buckets, rounded up to a power of two. Of `out`,
 * only a gather uses the address. */
void kiln__partition_plan(kiln__partition *p, kiln_array index, uint64_t n,
                          uint64_t n_target, kiln_array out, uint32_t parts,
                          bool scatter);
/* Finds or compiles the kernels. For a scatter, x and code give the values. */
kiln_status kiln__partition_prepare(kiln__partition *p, kiln_device *device,
                                    const kiln_input *x, const kiln_code *code);
/* Queues everything up to the elements in the order of their buckets. */
kiln_status kiln__partition_split(const kiln__partition *p,
                                  const kiln__storage *storage);
/* Of a gather: queues the move of the gathered values to the order of the call. */
kiln_status kiln__partition_join(const kiln__partition *p,
                                 const kiln__storage *storage);

/* ---- A scatter by sorting ------------------------------------------------------- */

/* Indices are sorted by their bits from `shift` to `end`, in `passes` passes. The
 * lower bits select the element within a bucket. */
typedef struct kiln__sort_bits {
  unsigned shift, end, passes;
} kiln__sort_bits;

/* `target` at most 2^32, and not 0. */
kiln__sort_bits kiln__sort_bits_of(uint64_t target, unsigned element_size);
/* Do kernels for these sizes exist? */
bool kiln__sort_fits(unsigned element_size, unsigned index_size,
                     uint64_t n_target);

typedef struct kiln__sorted {
  kiln__sort_bits bits;
  uint32_t buckets, mask, last; /* as in scatter_buckets.cu */
  uint32_t
      pairs; /* which of index and value must be written first: KILN_PAIRS */
  bool in_place; /* sort the written pairs in place */
  uint64_t n;
  const kiln_input *x;   /* the call's, until it is queued */
  kiln_array index, out; /* index: unsigned */
  kiln__sort_plan sort;
  /* offsets in temporary memory; `sorting`: that of the sort itself */
  size_t begin, sorting, places, values, made_places, made_values;
  kiln__need need;
  /* once it is prepared */
  const kiln__kernel_set *sort_kernels[2], *write, *make;
  kiln__args args;
} kiln__sorted;

/* The three steps of a scatter by sorting: plan, find or compile kernels, queue. */
void kiln__sorted_plan(kiln__sorted *p, kiln_device *device,
                       const kiln_input *x, kiln_array index, uint64_t n,
                       uint64_t n_target, kiln_array out);
kiln_status kiln__sorted_prepare(kiln__sorted *p, kiln_device *device,
                                 const kiln_code *code);
kiln_status kiln__sorted_run(const kiln__sorted *p, kiln__storage *storage);

#endif
