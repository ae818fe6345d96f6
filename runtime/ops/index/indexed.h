/* indexed.h -- what gather and scatter share: indices, their range check, and the
 * partition by parts of the target (buckets.cu); a scatter of pairs that are sorted
 * (scatter_buckets.cu). */
#ifndef KILN_INDEXED_H
#define KILN_INDEXED_H

#include "../sort/sort.h"

#include <kiln/gather.h>

enum {
  KILN__MAX_BUCKETS = 1024,
  KILN__PLACES_PACK = 4 /* elements of a pack in gather.cu and scatter.cu */
};

/* Unsigned type of the same size: indices are no negative ones, and elements that
 * only move are bits. NONE for no such type. */
kiln_dtype kiln__raw_type(unsigned size);
/* An input whose elements go to an array of `out` as they are, as bits; true if
 * that changed anything. */
bool kiln__as_bits(kiln_input *x, kiln_dtype *out);

/* Bytes that an element costs: one of each of the input's arrays, 1 at least. */
unsigned kiln__input_bytes(const kiln_input *x);
/* Elements of the target that each of `windows` windows takes. */
uint64_t kiln__window(kiln_array index, uint64_t n_target, uint64_t n,
                      uint32_t windows);

/* The array of indices: type and memory. */
void kiln__check_index(kiln__checker *c, kiln_array index, uint64_t n);
/* method, passes, checked against each other and n_target. */
void kiln__check_method(kiln__checker *c, kiln_index_method method,
                        uint32_t passes, bool checked, uint64_t n_target);

/* n indices that are to be below `end`, and rising if they are offsets. */
typedef struct kiln__range {
  const char *call, *what; /* in messages: "kiln_gather", "index" */
  kiln_array index;
  uint64_t n, end;
  bool rising;
} kiln__range;

/* Memory of kiln__in_range(). */
kiln__need kiln__range_need(void);
/* Waits for the GPU. KILN_EINVAL if an index is not as it is to be, KILN_ECAPTURE.
 */
kiln_status kiln__in_range(kiln_stream *stream, const kiln__range *r,
                           const kiln_workspace *workspace);

/* ---- The partition -------------------------------------------------------------- */

typedef struct kiln__partition {
  uint32_t buckets; /* a power of two */
  uint32_t shift;   /* bucket of an index: index >> shift */
  uint32_t block, items;
  uint64_t n, tiles;
  kiln_array index; /* of the call, unsigned */
  kiln_dtype stored, place;
  kiln_dtype value; /* an element of out, for a gather its bits */
  bool scatter;
  CUdeviceptr out; /* of a gather: what join writes */
  /* offsets in temporary memory */
  size_t cursor, at, values, slot, begin, delta;
  kiln__need need;
  /* once it is prepared */
  const kiln__kernel_set *set;
  kiln__args args;
} kiln__partition;

/* `out`: of the call; only a gather's address is used. */
void kiln__partition_plan(kiln__partition *p, kiln_array index, uint64_t n,
                          uint64_t n_target, kiln_array out, uint32_t parts,
                          bool scatter);
/* Compile, or look up. For a scatter: x and code give the values. */
kiln_status kiln__partition_prepare(kiln__partition *p, kiln_device *device,
                                    const kiln_input *x, const kiln_code *code);
/* Queue everything up to the elements in the order of buckets. */
kiln_status kiln__partition_split(const kiln__partition *p,
                                  const kiln__storage *storage);
/* For a gather: from `values` to out. */
kiln_status kiln__partition_join(const kiln__partition *p,
                                 const kiln__storage *storage);

/* ---- A scatter by sorting ------------------------------------------------------- */

/* Indices are sorted by bits shift to end, in so many passes; what lies below makes
 * the places of a bucket. */
typedef struct kiln__sort_bits {
  unsigned shift, end, passes;
} kiln__sort_bits;

/* `target` at most 2^32, and not 0. */
kiln__sort_bits kiln__sort_bits_of(uint64_t target, unsigned element_size);
/* Are there kernels for it? */
bool kiln__sort_fits(unsigned element_size, unsigned index_size,
                     uint64_t n_target);

typedef struct kiln__sorted {
  kiln__sort_bits bits;
  uint32_t buckets, mask, last; /* as in scatter_buckets.cu */
  uint32_t pairs;               /* what of them has to be made: KILN_PAIRS */
  bool in_place;                /* pairs that were made are sorted in place */
  uint64_t n;
  const kiln_input *x;   /* the call's, until it is queued */
  kiln_array index, out; /* index: unsigned */
  kiln__sort_plan sort;
  /* offsets in temporary memory; `sorting`: what the sort itself needs */
  size_t begin, sorting, places, values, made_places, made_values;
  kiln__need need;
  /* once it is prepared */
  const kiln__kernel_set *sort_kernels[2], *write, *make;
  kiln__args args;
} kiln__sorted;

void kiln__sorted_plan(kiln__sorted *p, kiln_device *device,
                       const kiln_input *x, kiln_array index, uint64_t n,
                       uint64_t n_target, kiln_array out);
kiln_status kiln__sorted_prepare(kiln__sorted *p, kiln_device *device,
                                 const kiln_code *code);
kiln_status kiln__sorted_run(const kiln__sorted *p, kiln__storage *storage);

#endif
