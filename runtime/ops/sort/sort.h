/* sort.h -- the internal interface of the radix sorts. It covers the plan of
 * a sort, which is made before anything is queued, and sorts that are part
 * of other operations (segmented_sort.c, index/scatter_sort.c). */
#ifndef KILN_OPS_SORT_INTERNAL_H
#define KILN_OPS_SORT_INTERNAL_H

#include "../ops.h"

#include <kiln/sort.h>

enum {
  KILN__RADIX_BITS = 8,
  KILN__RADIX_DIGITS = 256,
  KILN__SORT_MAX_STEPS = 9 /* at most 8 passes and one copy */
};

/* The sizes and properties of a sort, without addresses. */
typedef struct kiln__sort_shape {
  uint64_t n;
  /* Bytes per key and per value; a value_size of 0 means no values. */
  unsigned key_size, value_size;
  unsigned begin_bit, end_bit;
  bool in_place; /* true if an output array is also an input array */
  bool argsort;  /* true if the sort reads only keys and writes only indices */
  bool make_index; /* true if the values are the indices of the keys */
} kiln__sort_shape;

/* The properties of the device and the parameters that a plan depends on. */
typedef struct kiln__sort_facts {
  unsigned sm_count;
  size_t smem; /* maximum size of shared memory per block in bytes */
  /* Tuning row. Its member `extra` is the number of tile descriptors that a
   * look-back reads at once. */
  kiln__tuning tuning;
  /* Maximum number of keys that one block sorts; 0 means as many as fit. */
  uint64_t small;
  /* Maximum number of keys per launch; 0 means 2^31. Larger arrays are sorted
   * in several portions. */
  uint64_t portion;
} kiln__sort_facts;

/* The plan of a sort. A small sort is one launch of one block. Any other sort
 * is one launch that counts digits, followed by `steps` launches per portion of
 * the keys. */
typedef struct kiln__sort_plan {
  bool one_block;
  bool wide; /* true if destinations of keys have 64 bits */
  unsigned block, items, per_sm, window;
  size_t smem;
  unsigned passes; /* number of passes, one per digit */
  /* Number of passes. One step more, a copy, is needed if the keys would
   * otherwise end in temporary memory. */
  unsigned steps;
  /* Number of keys per portion, which is a multiple of the tile size. */
  uint64_t portion;
  unsigned portions;
  struct {
    unsigned block, items, copies, workers;
    size_t smem;
  } histogram;
  /* Offsets of arrays in temporary memory. */
  /* Destinations of the first key of each digit, indexed by
   * [portion][pass][digit]. */
  size_t base;
  size_t single; /* one flag per step of the sort */
  size_t ticket; /* one counter of tiles per step and portion */
  size_t keys, more_keys, values;
  kiln__need need;
} kiln__sort_plan;

/* Makes the plan of a sort. The result depends only on the arguments. */
void kiln__sort_plan_make(kiln__sort_plan *plan, const kiln__sort_shape *shape,
                          const kiln__sort_facts *facts);
/* Returns the number of the lowest key bit that belongs to the digit of a
 * pass. */
unsigned kiln__sort_shift(const kiln__sort_shape *shape, unsigned pass);
unsigned kiln__sort_width(const kiln__sort_shape *shape, unsigned pass);

/* The transformation that turns keys of a type into bit patterns that sort
 * as unsigned integers: see kiln::radix_order in kernels_src/kiln/radix.cuh. */
typedef struct kiln__sort_order {
  uint64_t flip, turn;
} kiln__sort_order;

/* Returns the transformation for a key type. If `all_bits` is true, all bits of
 * the key take part in the sort, and NaNs of either sign come last. */
kiln__sort_order kiln__sort_order_of(kiln_dtype key, bool descending,
                                     bool all_bits);

/* A sort with the addresses of its arrays, which have been checked. */
typedef struct kiln__sort_call {
  kiln__sort_shape shape;
  bool is_float;
  /* True if no output array is also an input array. task_of() in radix_pass.cu
   * uses this information. */
  bool nothing_in_place;
  kiln__sort_order order;
  CUdeviceptr in, out, values_in, values_out;
  /* True if `skip` may be given. The blocks of a pass then sort several tiles, so
   * that a launch that does nothing has few blocks. */
  bool skippable;
  /* 0, or the address of a word. If the word is not 0, the kernels of a sort of
   * more than one block do nothing. */
  CUdeviceptr skip;
} kiln__sort_call;

/* The argument of radix_pass.cu, with the members that the kernel declares. */
typedef struct kiln__sort_pass_args {
  CUdeviceptr in, out, other;
  CUdeviceptr values_in, values_out, values_other;
  CUdeviceptr base, next_base, single, descriptors;
  uint64_t n, first;
  kiln__sort_order order;
  uint32_t epoch, step, steps, shift, mask, flags;
  CUdeviceptr skip, ticket;
  uint64_t tiles;
} kiln__sort_pass_args;

/* Bits of the `flags` parameter of radix_pass.cu and radix_small.cu. */
enum {
  KILN__SORT_IN_PLACE = 1,
  KILN__SORT_MAKE_INDEX = 2,
  KILN__SORT_NO_KEYS = 4,
  KILN__SORT_MUST_WRITE = 8
};

/* Returns the configuration of a launch. From compute capability 9.0 on, the
 * launch may overlap with the preceding launch (programmatic dependent launch),
 * and the kernel itself waits for the results of the preceding launch. */
kiln_launch_config kiln__sort_launch(kiln_stream *stream,
                                     const kiln_kernel *kernel, uint64_t blocks,
                                     unsigned threads, size_t smem);
/* Returns the size in bytes of a block's digit counters in shared memory. */
size_t kiln__sort_counters_size(unsigned block);
/* Returns the size in bytes of the shared memory that a pass needs. */
size_t kiln__sort_pass_smem(unsigned block, unsigned items, unsigned key_size,
                            unsigned value_size, bool wide);
/* Checks a range of key bits. If `end` is 0, the range extends to the highest
 * bit of the key. */
void kiln__sort_check_bits(kiln__checker *c, kiln_array keys, unsigned begin,
                           unsigned end);

/* Checks the arrays and the range of key bits of a sort. */
void kiln__sort_check_arrays(kiln__checker *c, const kiln_sort_desc *desc,
                             bool values_may_be_structs);
/* Returns the sort that a desc describes. The arguments have been checked. */
kiln__sort_call kiln__sort_call_of(const kiln_sort_desc *desc);

/* Compiles the kernels of a sort if necessary, and queues the sort on a device
 * with the given properties. */
kiln_status kiln__sort_run(kiln_stream *stream, const kiln__sort_call *call,
                           const kiln_workspace *workspace,
                           const kiln__sort_facts *facts);
kiln__sort_facts kiln__sort_facts_of(kiln_device *device,
                                     const kiln__sort_shape *shape);

/* A sort whose arguments have been checked, and its plan. If the kernels cannot
 * sort the values, because they are structs, the sort computes the indices of
 * the sorted keys, and a gather then moves the values (sort_values.c). */
typedef struct kiln__sort_request {
  kiln__sort_call call;
  kiln__sort_plan plan;
  kiln__need need;
  bool gathers;              /* true if a gather moves the values */
  kiln_array from, to;       /* the values that the gather moves */
  size_t sort, index, moved; /* offsets in temporary memory */
} kiln__sort_request;

/* Replaces the values of a checked sort by indices if the kernels cannot sort
 * them. Call this function before the plan is made. */
void kiln__sort_values_plan(kiln__sort_request *r, const kiln_sort_desc *desc);
/* Adds the temporary memory of the indices to the plan of the sort. */
void kiln__sort_values_need(kiln__sort_request *r);
/* Queues the sort and the gather. */
kiln_status kiln__sort_values_run(kiln_stream *stream,
                                  const kiln__sort_request *r,
                                  const kiln_workspace *workspace);

/* For a sort that is part of another call: writes the specialisations that
 * the sort needs to spec[] and returns the number of them. Of the addresses
 * in `call`, only the alignment of `in` is used. */
size_t kiln__sort_specs(kiln__spec spec[2], const kiln__sort_call *call,
                        const kiln__sort_plan *plan);
/* Queues a sort that is part of another call. The storage has at least
 * plan->need.descriptors tile descriptors, and plan->need.temp bytes of
 * temporary memory from offset `temp` on. */
kiln_status kiln__sort_queue(kiln__storage *storage, size_t temp,
                             const kiln__kernel_set *const set[],
                             const kiln__sort_call *call,
                             const kiln__sort_plan *plan);

#endif
