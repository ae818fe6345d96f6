/* indexed.h -- the internal interface that gather and scatter share. It covers
 * arrays of indices and their range check, the partition of a call by buckets
 * of its target (buckets.cu), and the scatter of sorted pairs
 * (scatter_buckets.cu). Segmented reductions use the range check, too.
 *
 * The "target" is the array that the indices point into: the input of a gather,
 * or the output of a scatter. A bucket is a range of the target. A window is
 * the range of the target that one pass of a multi-pass call handles. */
#ifndef KILN_INDEXED_H
#define KILN_INDEXED_H

#include "../sort/sort.h"

#include <kiln/gather.h>

enum {
  KILN__MAX_BUCKETS = 1024,
  KILN__INDEX_VECTOR = 4 /* elements per vector in gather.cu and scatter.cu */
};

/* Returns the unsigned type of `size` bytes, or KILN_DTYPE_NONE if there is
 * none. Indices use this type since they are never negative. Elements that
 * are only moved use this type to keep their bits. */
kiln_dtype kiln__raw_type(unsigned size);
/* Returns the type as which a call moves elements of `type` without changing
 * them: the unsigned integer of the same size if there is one, otherwise a
 * struct. `addresses` is the bitwise OR of the arrays' addresses. The returned
 * type has the largest alignment that the addresses have. */
kiln_dtype kiln__moved_type(kiln_dtype type, CUdeviceptr addresses);
/* Changes the types of an input and an output to the same moved type if the call
 * only moves elements. Returns whether the call only moves elements. */
bool kiln__as_bits(kiln_input *x, kiln_array *out);

/* Returns the bytes per element, summed over all arrays of the input, at
 * least 1. */
unsigned kiln__input_bytes(const kiln_input *x);
/* Returns the number of target elements per window if the target is divided
 * into `windows` windows. */
uint64_t kiln__window(kiln_array index, uint64_t n_target, uint64_t n,
                      uint32_t windows);

/* Returns the number of elements that `rows` rows of `width` elements span if
 * consecutive rows start `stride` elements apart. Returns UINT64_MAX if that
 * number is too large. */
uint64_t kiln__extent(uint64_t rows, uint64_t width, uint64_t stride);

/* Returns whether the type has indices below 2^16 only. Their target fits in
 * every cache, so such calls take one direct pass. */
static inline bool kiln__is_narrow(kiln_dtype index)
{
  return index == KILN_U8 || index == KILN_U16;
}

/* Checks the array of n indices of a call. */
void kiln__check_index(kiln__checker *c, kiln_array index, uint64_t n);
/* Checks that the members method, passes, checked and n_target of a gather or
 * scatter do not contradict each other. `index` is the type of the indices. */
void kiln__check_method(kiln__checker *c, kiln_dtype index,
                        kiln_index_method method, uint32_t passes, bool checked,
                        uint64_t n_target);

/* Describes a range check of n indices. Each index must be below `end`. If the
 * indices are offsets of segments, they must be non-decreasing. */
typedef struct kiln__range {
  /* Names in messages, such as "kiln_gather" and "index". */
  const char *call, *what;
  kiln_array index;
  uint64_t n, end;
  bool rising;
} kiln__range;

/* Returns the temporary storage that kiln__in_range() needs. */
kiln__need kiln__range_need(void);
/* Checks indices on the GPU and waits for the result. Returns KILN_EINVAL if
 * an index is out of range, or if offsets decrease; the message has the
 * first such index. Returns KILN_ECAPTURE while the stream is being
 * captured. */
kiln_status kiln__in_range(kiln_stream *stream, const kiln__range *r,
                           const kiln_workspace *workspace);

/* ---- Choice on the device ------------------------------------------------ */

/* The parameters of index_sample.cu, by which the device chooses between one
 * direct pass and the method of the cost model. */
typedef struct kiln__sampling {
  uint64_t stretch;
  uint32_t shift, limit, skewed;
} kiln__sampling;

/* Number of warps, and so of stretches, of index_sample.cu, and number of
 * indices that a warp samples. */
enum { KILN__SAMPLE_STRETCHES = 16, KILN__SAMPLES = 256 };

/* Returns the sampling for a call for which the cost model has chosen `plan`,
 * which is not a direct pass. If the indices of the call are random, the device
 * keeps to the plan. This is a pure function, in scatter_model.c. */
kiln__sampling kiln__sampling_of(const kiln_device_info *gpu,
                                 const kiln_index_shape *shape,
                                 const kiln_index_plan *plan, bool scatter);

/* Returns the number of tiles that each block of a launch handles, at most
 * `most`. `skip` is 0, or the address of a word by which the kernel may leave all
 * tiles out. Many blocks that leave at once would take long to launch, so the
 * blocks of such a launch handle several tiles each. */
uint32_t kiln__tiles_each(const kiln_stream *stream, uint64_t tiles,
                          uint32_t most, CUdeviceptr skip);

/* ---- The partition ------------------------------------------------------- */

typedef struct kiln__partition {
  uint32_t buckets; /* number of buckets, a power of two */
  uint32_t shift;   /* the bucket of an index is index >> shift */
  uint32_t block, items;
  uint64_t n, tiles;
  kiln_array index; /* array of indices of the call, with an unsigned type */
  kiln_dtype stored, place;
  /* Type of the elements of `out`; for a gather, the unsigned type of the
   * same size. */
  kiln_dtype value;
  bool scatter;
  /* For a gather, the array that kiln__partition_join() writes. */
  CUdeviceptr out;
  /* Offsets of the partition's arrays in temporary memory. */
  size_t cursor, at, values, slot, begin, delta;
  kiln__need need;
  /* kiln__partition_prepare() sets these members. */
  const kiln__kernel_set *set;
  kiln__args args;
} kiln__partition;

/* Plans a partition into `parts` buckets, rounded up to a power of two. The
 * address of `out` is used only for a gather. */
void kiln__partition_plan(kiln__partition *p, kiln_array index, uint64_t n,
                          uint64_t n_target, kiln_array out, uint32_t parts,
                          bool scatter);
/* Finds or compiles the kernels of a partition. For a scatter, x and code
 * define the values. */
kiln_status kiln__partition_prepare(kiln__partition *p, kiln_device *device,
                                    const kiln_input *x, const kiln_code *code);
/* Queues the kernels that move the elements into the order of their buckets. */
kiln_status kiln__partition_split(const kiln__partition *p,
                                  const kiln__storage *storage,
                                  CUdeviceptr skip);
/* For a gather: queues the kernel that moves the gathered values back into
 * the order of the call. */
kiln_status kiln__partition_join(const kiln__partition *p,
                                 const kiln__storage *storage,
                                 CUdeviceptr skip);

/* ---- A scatter by sorting ------------------------------------------------ */

/* The bits of the indices that the sort uses: from `shift` up to but not
 * including `end`, in `passes` passes. The bits below `shift` select the
 * element within a bucket. */
typedef struct kiln__sort_bits {
  unsigned shift, end, passes;
} kiln__sort_bits;

/* Chooses the sort bits for a target of 1 to 2^32 elements. */
kiln__sort_bits kiln__sort_bits_of(uint64_t target, unsigned element_size);
/* Returns whether kernels for these sizes exist. */
bool kiln__sort_fits(unsigned element_size, unsigned index_size,
                     uint64_t n_target);

typedef struct kiln__sorted {
  kiln__sort_bits bits;
  /* Number of buckets, and the parameters mask and last of
   * scatter_buckets.cu. */
  uint32_t buckets, mask, last;
  /* The value of the macro KILN_PAIRS. Its bits select the arrays of pairs that
   * a kernel writes before the sort. */
  uint32_t pairs;
  bool in_place;  /* true if the written pairs are sorted in place */
  bool skippable; /* true if the device may leave the launches out */
  uint64_t n;
  /* Input of the call. The pointer is valid until the launches are queued. */
  const kiln_input *x;
  kiln_array index, out; /* the type of `index` is unsigned */
  kiln__sort_plan sort;
  /* Offsets of the arrays in temporary memory. `sorting` is the offset of the
   * temporary memory that the sort itself needs. */
  size_t begin, sorting, places, values, made_places, made_values;
  kiln__need need;
  /* kiln__sorted_prepare() sets these members. */
  const kiln__kernel_set *sort_kernels[2], *write, *make;
  kiln__args args;
} kiln__sorted;

/* The three stages of a scatter by sorting: kiln__sorted_plan() plans the
 * scatter, kiln__sorted_prepare() finds or compiles the kernels, and
 * kiln__sorted_run() queues the launches. `skip` is the one of
 * kiln__tiles_each(). */
void kiln__sorted_plan(kiln__sorted *p, kiln_device *device,
                       const kiln_input *x, kiln_array index, uint64_t n,
                       uint64_t n_target, kiln_array out);
kiln_status kiln__sorted_prepare(kiln__sorted *p, kiln_device *device,
                                 const kiln_code *code);
kiln_status kiln__sorted_run(const kiln__sorted *p, kiln__storage *storage,
                             CUdeviceptr skip);

/* ---- Gather and scatter -------------------------------------------------- */

/* A call of kiln_gather() or kiln_scatter(). The shared code handles gathers
 * and scatters in this form. */
typedef struct kiln__indexed {
  bool scatter;
  kiln_input x;
  const kiln_code *code;
  kiln_array index, out;
  uint64_t n, n_target;
  bool checked;
  /* Method and passes as the caller requested them. kiln__indexed_plan()
   * replaces values that the cost model chooses. */
  kiln_index_plan plan;
  /* kiln__indexed_plan() sets these members. */
  bool automatic; /* true if the cost model chose the method */
  bool sampled;   /* true if the device chooses between two methods */
  kiln__sampling sampling;
  size_t skip; /* offset of the words of index_sample.cu in temporary memory */
  kiln_array raw_index; /* array of indices with an unsigned type */
  union {
    kiln__partition partition;
    kiln__sorted sort;
  } by; /* plan for KILN_INDEX_PARTITION or KILN_INDEX_SORT */
  kiln__need need;
} kiln__indexed;

/* Chooses the method of a gather or scatter whose arguments have been checked,
 * and plans its temporary memory. `element_size` is the size of an element for
 * the cost model. */
kiln_status kiln__indexed_plan(kiln__indexed *r, const kiln_stream *stream,
                               unsigned element_size);
kiln_status kiln__indexed_run(kiln_stream *stream, kiln__indexed *r,
                              const kiln_workspace *workspace);

#endif
