/* sort.h -- radix sorts: the plan of a sort, made before anything is queued, and sorts
 * as a part of other operations (segmented_sort.c, index/scatter_sort.c). */
#ifndef KILN_OPS_SORT_INTERNAL_H
#define KILN_OPS_SORT_INTERNAL_H

#include "../ops.h"

#include <kiln/sort.h>

enum {
  KILN__RADIX_BITS = 8,
  KILN__RADIX_DIGITS = 256,
  KILN__SORT_MAX_STEPS = 9 /* 8 passes and one that only copies */
};

/* What is to be sorted, without addresses. */
typedef struct kiln__sort_shape {
  uint64_t n;
  unsigned key_size, value_size; /* bytes; value_size 0: no values */
  unsigned begin_bit, end_bit;
  bool in_place; /* an output is also an input */
  bool argsort;  /* reads only keys, writes only indices */
} kiln__sort_shape;

/* The device and the parameters that a plan depends on. */
typedef struct kiln__sort_facts {
  unsigned sm_count;
  size_t smem;         /* bytes of shared memory that a block may have */
  kiln__tuning tuning; /* extra: descriptors that a look-back reads at once */
  uint64_t small;      /* most keys for one block; 0: as many as fit */
  uint64_t portion;    /* most keys of a launch; 0: 2^31 */
} kiln__sort_facts;

/* How a sort is executed: one launch of one block, or one launch that counts digits
 * and then `steps` launches per portion. */
typedef struct kiln__sort_plan {
  bool one_block;
  bool wide; /* 64-bit destinations */
  unsigned block, items, per_sm, window;
  size_t smem;
  unsigned passes;  /* digits */
  unsigned steps;   /* passes, and a copy if keys would else end in temporary
                     memory */
  uint64_t portion; /* keys, whole tiles */
  unsigned portions;
  struct {
    unsigned block, items, copies, workers;
    size_t smem;
  } histogram;
  /* Offsets in temporary memory. */
  size_t base;   /* [portion][pass][256] first destinations of digits */
  size_t single; /* [step] */
  size_t keys, more_keys, values;
  kiln__need need;
} kiln__sort_plan;

/* Makes a plan; a pure function. */
void kiln__sort_plan_make(kiln__sort_plan *plan, const kiln__sort_shape *shape,
                          const kiln__sort_facts *facts);
/* The lowest bit, and the number of bits, of the digit of a pass. */
unsigned kiln__sort_shift(const kiln__sort_shape *shape, unsigned pass);
unsigned kiln__sort_width(const kiln__sort_shape *shape, unsigned pass);

/* How keys of a type become words that sort as unsigned integers: see
 * kiln::radix_order in kernels_src/kiln/radix.cuh. */
typedef struct kiln__sort_order {
  uint64_t flip, turn;
} kiln__sort_order;

/* `all_bits`: all bits of the key count, so that NaNs of either sign come last. */
kiln__sort_order kiln__sort_order_of(kiln_dtype key, bool descending,
                                     bool all_bits);

/* A sort with addresses, which are checked. */
typedef struct kiln__sort_call {
  kiln__sort_shape shape;
  bool is_float;
  bool nothing_in_place; /* see task_of() in radix_pass.cu */
  kiln__sort_order order;
  CUdeviceptr in, out, values_in, values_out;
} kiln__sort_call;

/* The parameter of radix_pass.cu, as the kernel declares it. */
typedef struct kiln__sort_pass_args {
  CUdeviceptr in, out, other;
  CUdeviceptr values_in, values_out, values_other;
  CUdeviceptr base, next_base, single, descriptors;
  uint64_t n, first;
  kiln__sort_order order;
  uint32_t epoch, step, steps, shift, mask, flags;
} kiln__sort_pass_args;

/* The flags of radix_pass.cu and radix_small.cu. */
enum {
  KILN__SORT_IN_PLACE = 1,
  KILN__SORT_MAKE_INDEX = 2,
  KILN__SORT_NO_KEYS = 4,
  KILN__SORT_MUST_WRITE = 8
};

/* The configuration of a launch. It may overlap with the one before if the kernel was
 * compiled for a GPU where it waits for that one's results itself (programmatic
 * dependent launch, from compute capability 9.0 on). */
kiln_launch_config kiln__sort_launch(kiln_stream *stream,
                                     const kiln_kernel *kernel, uint64_t blocks,
                                     unsigned threads, size_t smem);
/* Bytes of shared memory for the digit counters of a block. */
size_t kiln__sort_counters_size(unsigned block);
/* Bytes of shared memory of a pass. */
size_t kiln__sort_pass_smem(unsigned block, unsigned items, unsigned key_size,
                            unsigned value_size, bool wide);
/* Checks a range of key bits; `end` 0 means all. */
void kiln__sort_check_bits(kiln__checker *c, kiln_array keys, unsigned begin,
                           unsigned end);

/* Compiles if necessary and queues a sort. `facts` NULL: those of the device. */
kiln_status kiln__sort_run(kiln_stream *stream, const kiln__sort_call *call,
                           const kiln_workspace *workspace,
                           const kiln__sort_facts *facts);
kiln__sort_facts kiln__sort_facts_of(kiln_device *device,
                                     const kiln__sort_shape *shape);

/* For a sort that is part of another call: writes the specialisations that it needs
 * to spec[] and returns their number. Of the addresses, only the alignment of `in`
 * matters. */
size_t kiln__sort_specs(kiln__spec spec[2], const kiln__sort_call *call,
                        const kiln__sort_plan *plan);
/* Queues such a sort. The storage has at least plan->need.descriptors, and
 * plan->need.temp bytes from offset `temp` on. */
kiln_status kiln__sort_queue(kiln__storage *storage, size_t temp,
                             const kiln__kernel_set *const set[],
                             const kiln__sort_call *call,
                             const kiln__sort_plan *plan);

#endif
