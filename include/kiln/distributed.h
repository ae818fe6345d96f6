/* distributed.h -- operations on arrays that the ranks of a group hold in blocks.
 *
 *   kiln_reduce_desc sum = {.x = {.in = {{block, KILN_F32}}}, .n = block_n,
 *                           .out = {total, KILN_F32}};
 *   st = kiln_dist_reduce(comm, stream, &sum);
 *
 * The operations take the descs of the operations on one device. The array is
 * the sequence of the blocks of rank 0, rank 1, and so on. Each rank passes its
 * own block with its own length, which may be 0. All other members must be the
 * same on all ranks, except the addresses. Expressions see the index i within
 * the block; pass the result `first` of kiln_dist_blocks() as a parameter to
 * compute with the index within the whole array. An element-wise kiln_map() needs
 * no other form.
 *
 * Every rank receives the same results, with the same bits in every run with the
 * same blocks. Results of integers, and of operations that do not round, are
 * those of one device. Sums of floating-point numbers may differ in the last
 * bits, since each rank first reduces its own block; `portable` makes them
 * independent of the devices but not of the blocks.
 *
 * The operations are collectives: all rules of comm.h hold, and all of them
 * block. They return the statuses of comm.h and of ops.h. If one rank fails, all
 * others get KILN_ECOMM. Temporary device memory is allocated in the stream and
 * freed before the call returns; each contract states its size. It is allocated
 * before any data move, so a call that returns KILN_EDEVMEM has moved nothing. */
#ifndef KILN_DISTRIBUTED_H
#define KILN_DISTRIBUTED_H

#include <kiln/comm.h>
#include <kiln/histogram.h>
#include <kiln/reduce.h>
#include <kiln/scan.h>
#include <kiln/select.h>
#include <kiln/sort.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Finds the place of this rank's block in the whole array.
 * @param n           number of elements of this rank's block.
 * @param[out] first  receives the index of the block's first element; may be
 *                    NULL.
 * @param[out] total  receives the number of elements of all blocks; may be NULL.
 * @retval the statuses in comm.h. Blocks. */
KILN_API kiln_status kiln_dist_blocks(kiln_comm *comm, uint64_t n,
                                      uint64_t *first, uint64_t *total);

/** Reduces all blocks like kiln_reduce(). Each rank stores the result in its own
 * `out`. Each rank reduces its block in the type of `out`; the results are then
 * combined in the order of the ranks. An empty block has no effect.
 * Temporary memory: one element, and with a user expression one per rank.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_reduce(kiln_comm *comm, kiln_stream *stream,
                                         const kiln_reduce_desc *desc);

/** Computes the dot product of all blocks like kiln_dot(). Each rank stores it in
 * its own `out`.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_dot(kiln_comm *comm, kiln_stream *stream,
                                      const kiln_dot_desc *desc);

/** Finds the smallest and the largest element of all blocks like kiln_minmax().
 * Each rank stores them in its own `min` and `max`.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_minmax(kiln_comm *comm, kiln_stream *stream,
                                         const kiln_minmax_desc *desc);

/** Finds position and value of the minimum or maximum like kiln_arg_reduce(). The
 * position is the index within the whole array. Each rank stores both.
 * Temporary memory: one element and one index.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Returns
 *         KILN_ELIMIT if the type of `index` cannot represent the position.
 * Blocks. */
KILN_INLINE kiln_status kiln_dist_arg_reduce(kiln_comm *comm,
                                             kiln_stream *stream,
                                             const kiln_arg_reduce_desc *desc);

/** Computes mean and variance of all blocks like kiln_mean_variance(). Each rank
 * stores both. The results of the blocks are combined in f64 by the formula of
 * Chan, Golub and LeVeque (1979).
 * Temporary memory: 16 bytes.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_mean_variance(
    kiln_comm *comm, kiln_stream *stream, const kiln_mean_variance_desc *desc);

/** Counts the samples of all blocks like kiln_histogram(). Each rank stores all
 * counts. With `accumulate`, the counts are added to the contents of `counts` on
 * rank 0.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_histogram(kiln_comm *comm,
                                            kiln_stream *stream,
                                            const kiln_histogram_desc *desc);

/** Counts the elements of all blocks for which the predicate is true, like
 * kiln_count(). Each rank stores the count.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_count(kiln_comm *comm, kiln_stream *stream,
                                        const kiln_find_desc *desc);

/** Scans the whole array like kiln_scan(). Each rank stores the results of its
 * own block, and `total` is that of the whole array on all ranks. Each rank reads
 * its block twice: once for its reduction, once for the scan.
 * Temporary memory: one element, and with a user expression two per rank.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_scan(kiln_comm *comm, kiln_stream *stream,
                                       const kiln_scan_desc *desc);

/** Selects elements of all blocks like kiln_select(). Each rank stores the kept
 * elements of its own block, and `count` is their number. The whole result is
 * the sequence of these blocks. Indices are indices within the block.
 * @param[out] first  receives the index of this rank's first kept element in the
 *                    whole result; may be NULL.
 * @param[out] total  receives the number of kept elements of all ranks; may be
 *                    NULL.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_select(kiln_comm *comm, kiln_stream *stream,
                                         const kiln_select_desc *desc,
                                         uint64_t *first, uint64_t *total);

/** Sends each element to the rank that the expression `key` names, like
 * kiln_split() with one partition per rank. A rank receives its elements in the
 * order of the whole array. `parts` must be 0 or the number of ranks, and
 * `offsets` must have no type.
 * @param desc       desc->out receives this rank's elements.
 * @param capacity   number of elements that desc->out has space for. If it is
 *                   too small, this rank gets KILN_EINVAL, the others KILN_ECOMM.
 * @param[out] received  number of elements that this rank received; may be NULL.
 * Temporary memory: n elements, and 8 bytes per rank.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_split(kiln_comm *comm, kiln_stream *stream,
                                        const kiln_split_desc *desc,
                                        uint64_t capacity, uint64_t *received);

/** Sorts the whole array like kiln_sort(), with the same order of all keys. Each
 * rank receives a block of the length of its input block. Equal keys keep the
 * order of the whole array. All members of the desc have the same rules, also in
 * place.
 *
 * Each rank sorts its block. The boundaries between the blocks of the result are
 * then found exactly, by samples of the sorted blocks. One all-to-all moves the
 * data, and each rank sorts what it received. The result is balanced for every
 * distribution of the keys, also if all keys are equal.
 * Temporary memory: n keys and n values, and that of kiln_sort().
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_sort(kiln_comm *comm, kiln_stream *stream,
                                       const kiln_sort_desc *desc);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__DIST(name, desc_type)                                            \
  KILN__SIZED(name,                                                            \
              (kiln_comm * comm, kiln_stream * stream, const desc_type *desc), \
              (size_t desc_size), (comm, stream, desc, sizeof *desc))
KILN__DIST(kiln_dist_reduce, kiln_reduce_desc)
KILN__DIST(kiln_dist_dot, kiln_dot_desc)
KILN__DIST(kiln_dist_minmax, kiln_minmax_desc)
KILN__DIST(kiln_dist_arg_reduce, kiln_arg_reduce_desc)
KILN__DIST(kiln_dist_mean_variance, kiln_mean_variance_desc)
KILN__DIST(kiln_dist_histogram, kiln_histogram_desc)
KILN__DIST(kiln_dist_count, kiln_find_desc)
KILN__DIST(kiln_dist_scan, kiln_scan_desc)
KILN__DIST(kiln_dist_sort, kiln_sort_desc)
KILN__SIZED(kiln_dist_select,
            (kiln_comm * comm, kiln_stream *stream,
             const kiln_select_desc *desc, uint64_t *first, uint64_t *total),
            (size_t desc_size),
            (comm, stream, desc, first, total, sizeof *desc))
KILN__SIZED(kiln_dist_split,
            (kiln_comm * comm, kiln_stream *stream, const kiln_split_desc *desc,
             uint64_t capacity, uint64_t *received),
            (size_t desc_size),
            (comm, stream, desc, capacity, received, sizeof *desc))

#ifdef __cplusplus
}
#endif
#endif
