/* dist.h -- what the distributed operations share. */
#ifndef KILN_COMM_DIST_H
#define KILN_COMM_DIST_H

#include "../group.h"

#include <kiln/distributed.h>

/* The desc of this call in this library's size. See "Versions" in kiln.h. */
typedef struct kiln__dist {
  kiln_comm *comm;
  kiln_stream *stream;
  CUdeviceptr scratch; /* temporary device memory */
} kiln__dist;

/* Begins an operation: checks comm and stream, and copies the caller's desc of
 * `size` bytes to `own`, of `own_size` bytes. */
kiln_status kiln__dist_begin(kiln__dist *d, kiln_comm *comm,
                             kiln_stream *stream, const void *desc, size_t size,
                             void *own, size_t own_size);
/* The same for a function that states the size of the temporary memory. Sets
 * *bytes to 0. A failure breaks the group as well. */
kiln_status kiln__dist_size_begin(kiln__dist *d, kiln_comm *comm,
                                  kiln_stream *stream, const void *desc,
                                  size_t size, void *own, size_t own_size,
                                  size_t *bytes);
/* Allocates the temporary memory of the operation. */
kiln_status kiln__dist_scratch(kiln__dist *d, size_t size);
/* Ends an operation: frees its temporary memory and, after a failure, breaks the
 * group. Returns `st`. */
kiln_status kiln__dist_end(kiln__dist *d, kiln_status st);

/* Adds n elements of `size` bytes to a layout of `*total` bytes, and returns their
 * offset, a multiple of 256. If the total exceeds what a size_t can represent, it
 * becomes SIZE_MAX, which no allocation provides. */
size_t kiln__dist_place(size_t *total, uint64_t n, size_t size);

/* Copies device memory to the host behind the work of the stream, and back. */
kiln_status kiln__dist_get(kiln__dist *d, void *out, CUdeviceptr p,
                           size_t size);
kiln_status kiln__dist_put(kiln__dist *d, CUdeviceptr p, const void *data,
                           size_t size);

/* What a rank exchanges with each rank, for kiln__comm_trade(): one number per rank
 * in each array, all 0 at first. free(t->from) frees the arrays. */
typedef struct kiln__trade {
  uint64_t *from, *sizes, *to, *to_sizes;
} kiln__trade;
kiln_status kiln__trade_create(kiln__trade *t, const kiln_comm *comm);
/* Makes the exchange in a stream of the rank's device. */
kiln_status kiln__trade_run(const kiln__trade *t, kiln_comm *comm,
                            kiln_stream *stream);

/* The parameters of a call and of this library together. The struct must not
 * move: `all` points into it. */
typedef struct kiln__dist_code {
  kiln_param params[16];
  kiln_code all;
} kiln__dist_code;

/* Adds n parameters to those of the caller. */
kiln_status kiln__dist_extend(kiln__dist_code *c, const kiln_code *user,
                              const kiln_param *added, size_t n);

/* Returns the type of an operation's elements: that of the array `out`, of the
 * map, or of the first input. */
kiln_dtype kiln__dist_type(kiln_array out, const kiln_input *x);

/* Starting at data, gathers one element from each rank with a non-empty block, in
 * the order of the ranks. Sets *m to their number. */
kiln_status kiln__dist_gather(kiln__dist *d, kiln_array element,
                              kiln_array gathered, bool has, uint64_t *m);

#endif
