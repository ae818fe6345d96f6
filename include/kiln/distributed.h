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
 * freed before the call returns, unless kiln_dist_set_workspace() lends some; each
 * contract states its size. It is allocated before any data move, so a call that
 * returns KILN_EDEVMEM has moved nothing. */
#ifndef KILN_DISTRIBUTED_H
#define KILN_DISTRIBUTED_H

#include <kiln/all_pairs.h>
#include <kiln/comm.h>
#include <kiln/gather.h>
#include <kiln/gemm.h>
#include <kiln/histogram.h>
#include <kiln/map.h>
#include <kiln/reduce.h>
#include <kiln/scan.h>
#include <kiln/select.h>
#include <kiln/sort.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Sets the temporary device memory that the following operations of this rank use,
 * instead of an allocation per call. A program that repeats calls on large arrays
 * saves the time of the allocations, which is some milliseconds per GiB. The
 * functions kiln_dist_..._workspace() compute the sizes; operations without such a
 * function need at most 64 KiB and 128 bytes per rank. An operation for which the
 * memory is too small returns KILN_EINVAL.
 * @param workspace  memory of the rank's device, which must stay valid until the
 *                   next call of this function, or NULL to allocate again. The
 *                   struct is copied.
 * @retval KILN_OK, KILN_EINVAL (the address is not a multiple of 256, or 0 with a
 *         size).
 * Not thread-safe: only the thread that calls this rank's collectives may call.
 * Never blocks. */
KILN_API kiln_status kiln_dist_set_workspace(kiln_comm *comm,
                                             const kiln_workspace *workspace);

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
 * Temporary memory: n elements, 8 bytes per rank, and that of kiln_split().
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_split(kiln_comm *comm, kiln_stream *stream,
                                        const kiln_split_desc *desc,
                                        uint64_t capacity, uint64_t *received);
/** Computes the size of the temporary device memory of kiln_dist_split() and
 * kiln_dist_shuffle() for the same arguments. All ranks make this call.
 * @param[out] bytes  receives the size for this rank in bytes; 0 on failure.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_split_workspace(kiln_comm *comm,
                                                  kiln_stream *stream,
                                                  const kiln_split_desc *desc,
                                                  size_t *bytes);

/** Sends all elements with equal keys to the same rank, for example before each
 * rank groups or joins its own elements. The key is any integer; the rank is
 * kiln_dist_shuffle_rank(key, ranks), which spreads different keys evenly. A rank
 * receives its elements in the order of the whole array. The desc, capacity,
 * results and temporary memory are those of kiln_dist_split(). The key sees the
 * input arrays before the map. Keys and values in two arrays therefore move by
 * two calls with the inputs {keys, values} and the same key, one with the map
 * "x" and one with the map "y".
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_shuffle(kiln_comm *comm, kiln_stream *stream,
                                          const kiln_split_desc *desc,
                                          uint64_t capacity,
                                          uint64_t *received);
/** Returns the rank that kiln_dist_shuffle() sends a key to, in a group of `ranks`
 * ranks; -1 if there are none. A pure function.
 * Thread-safe. Never blocks. */
KILN_API int kiln_dist_shuffle_rank(uint64_t key, int ranks);

/** Computes outputs from inputs like kiln_map(). The expressions may also use the
 * parameters `first`, the index of the block's first element within the whole
 * array, and `total`, the number of elements of all blocks; both are unsigned
 * 64-bit. `first + i` is thus the index within the whole array. x_at(j) reads
 * element j of the block. The caller may pass at most 14 parameters, with other
 * names.
 * Temporary memory: none.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_map(kiln_comm *comm, kiln_stream *stream,
                                      const kiln_map_desc *desc);

/** Keeps the first element of each run of equal elements of the whole array, like
 * kiln_unique(). A run may cross any number of blocks; its first element stays on
 * the rank where the run begins. Each rank stores the kept elements of its own
 * block, and `count` is their number. Indices are indices within the block.
 * Temporary memory: that of kiln_unique(), 64 bytes per rank and at most 32 MiB.
 * @param[out] first  receives the index of this rank's first kept element in the
 *                    whole result; may be NULL.
 * @param[out] total  receives the number of kept elements of all ranks; may be
 *                    NULL.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_unique(kiln_comm *comm, kiln_stream *stream,
                                         const kiln_unique_desc *desc,
                                         uint64_t *first, uint64_t *total);
/** Computes the size of the temporary device memory of kiln_dist_unique() for the
 * same arguments. All ranks make this call.
 * @param[out] bytes  receives the size for this rank in bytes; 0 on failure.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_unique_workspace(kiln_comm *comm,
                                                   kiln_stream *stream,
                                                   const kiln_unique_desc *desc,
                                                   size_t *bytes);

/** Reduces each run of equal consecutive keys of the whole array to one value,
 * like kiln_reduce_by_key(). A run may cross any number of blocks; its result is
 * stored by the rank where the run begins. Each rank stores the results of the
 * runs that begin in its block, and `count` is their number. Elements of a run
 * are combined in their order: first those of each block, then the results of the
 * blocks.
 * Temporary memory: that of kiln_reduce_by_key(), 64 bytes per rank and at most
 * 32 MiB.
 * @param[out] first  receives the index of this rank's first result in the whole
 *                    result; may be NULL.
 * @param[out] total  receives the number of runs of the whole array; may be NULL.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_reduce_by_key(
    kiln_comm *comm, kiln_stream *stream, const kiln_reduce_by_key_desc *desc,
    uint64_t *first, uint64_t *total);
/** Computes the size of the temporary device memory of kiln_dist_reduce_by_key()
 * for the same arguments. All ranks make this call.
 * @param[out] bytes  receives the size for this rank in bytes; 0 on failure.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_reduce_by_key_workspace(
    kiln_comm *comm, kiln_stream *stream, const kiln_reduce_by_key_desc *desc,
    size_t *bytes);

/** Gathers elements by index like kiln_gather(): out[i] = X[index[i]], where X is
 * the whole array, and an index is one within the whole array. Each rank passes
 * its own n indices and receives n elements; n may differ between ranks. desc->x
 * is this rank's block of X, and desc->n_target its length, also 0. A map of x
 * runs on the rank that holds the element; its variable i is the index within the
 * block. An index that is not below the number of elements of all blocks is
 * always found: its rank gets KILN_EINVAL, the others KILN_ECOMM, and nothing has
 * moved. `method`, `passes` and `checked` have no effect.
 *
 * Each rank splits its indices by the rank that holds the element. If most
 * indices refer to few ranks, they travel in several rounds, so that no rank
 * needs more temporary memory than with spread indices.
 * Temporary memory: kiln_dist_gather_workspace(). It is at most n indices of 4 or
 * 8 bytes twice, n elements, the workspaces of kiln_split() and kiln_gather(), and
 * 1.125 times as many indices and elements as the longest n.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_gather(kiln_comm *comm, kiln_stream *stream,
                                         const kiln_gather_desc *desc);
/** Computes the size of the temporary device memory of kiln_dist_gather() for the
 * same arguments. All ranks make this call.
 * @param[out] bytes  receives the size for this rank in bytes; 0 on failure.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_gather_workspace(kiln_comm *comm,
                                                   kiln_stream *stream,
                                                   const kiln_gather_desc *desc,
                                                   size_t *bytes);

/** Scatters elements by index like kiln_scatter(): OUT[index[i]] = X[i], where OUT
 * is the whole array, and an index is one within the whole array. Each rank passes
 * its own n elements and indices. desc->out is this rank's block of OUT, and
 * desc->n_target its length, also 0. If several indices are equal, on one rank or
 * on several, exactly one of their elements is stored; which one is unspecified.
 * Indices out of range, `method`, `passes`, `checked` and the temporary memory
 * have the rules of kiln_dist_gather().
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_scatter(kiln_comm *comm, kiln_stream *stream,
                                          const kiln_scatter_desc *desc);
/** Computes the size of the temporary device memory of kiln_dist_scatter() for the
 * same arguments. All ranks make this call.
 * @param[out] bytes  receives the size for this rank in bytes; 0 on failure.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status
kiln_dist_scatter_workspace(kiln_comm *comm, kiln_stream *stream,
                            const kiln_scatter_desc *desc, size_t *bytes);

/** Divides n elements into `parts` parts of nearly equal lengths: part p begins at
 * n * p / parts, rounded down.
 * @param part          number of the part, below `parts`.
 * @param[out] length   receives the number of elements of the part; may be NULL.
 * @return the index of the part's first element; n if there is no such part.
 * A pure function.
 * Thread-safe. Never blocks. */
KILN_API uint64_t kiln_dist_part(uint64_t n, uint32_t parts, uint32_t part,
                                 uint64_t *length);

/** Computes a matrix product like kiln_gemm(), of matrices in blocks on a grid of
 * ranks. The grid has `rows` rows and C = ranks / rows columns. Rank r * C + c is in
 * row r and column c, and holds these blocks:
 *   C, D   m rows and n columns. All ranks of a grid row pass the same m, and all of
 *          a grid column pass the same n; both may be 0
 *   op(A)  m rows, and of the k columns those of kiln_dist_part(k, C, c)
 *   op(B)  of the k rows those of kiln_dist_part(k, rows, r), and n columns
 * desc->m and desc->n are sizes of the rank's block. desc->k is that of the whole
 * product, the same on all ranks, like the types and orders of A and B. The row and
 * the column that the epilogue sees are those within the block. The product has
 * no batch.
 *
 * The sums have the type of kiln_gemm(): they stay in f32, f64 or i32 until the
 * last part of k is added. Results of i8, and of floats whose sums do not round,
 * are those of one device. Other sums may differ in the last bits, since their
 * order depends on the grid; the same call has the same bits in every run.
 *
 * Parts of at most 1,024 columns of A and rows of B travel along the rows and
 * columns of the grid while the device multiplies the part before.
 * Temporary memory: 2 (m + n) elements for each column of A in a part; m * n sums
 * if D has another type or there is an epilogue; the workspace of kiln_gemm().
 * @param rows  number of rows of the grid, a divisor of the number of ranks.
 * @retval the statuses in comm.h and one of the statuses in ops.h. All ranks get
 *         KILN_ECOMM if their sizes, types or orders do not fit together. Blocks. */
KILN_INLINE kiln_status kiln_dist_gemm(kiln_comm *comm, kiln_stream *stream,
                                       const kiln_gemm_desc *desc,
                                       uint32_t rows);
/** Computes the size of the temporary device memory of kiln_dist_gemm() for the
 * same arguments. All ranks make this call.
 * @param[out] bytes  receives the size for this rank in bytes; 0 on failure.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_gemm_workspace(kiln_comm *comm,
                                                 kiln_stream *stream,
                                                 const kiln_gemm_desc *desc,
                                                 uint32_t rows, size_t *bytes);

/** Computes expressions over all pairs like kiln_all_pairs(): each rank receives
 * the results of its own n targets, over the sources of all ranks. A rank passes m
 * sources, or none: its sources are then its targets, on all ranks. m and n may
 * differ between ranks, and may be 0.
 *
 * The indices i and j are those within the blocks. The parameters `first_i` and
 * `first_j` (unsigned 64-bit) are the indices of the first target and the first
 * source of these blocks within the whole arrays. `first_i + i == first_j + j` is
 * thus true for a pair of an element with itself. The caller may pass at most 14
 * parameters, with other names. `symmetry` is used for pairs within a block. The
 * member `index` must have no type, and `accumulate` is not possible with an
 * epilogue or with outputs of another type than `type`. With an epilogue, the
 * fields of the targets and the outputs are at most 8 arrays.
 *
 * The blocks of sources travel around the ring of the ranks, while the device
 * computes the pairs with the block before. A rank begins with its own block, so
 * the order in which values are combined differs between ranks, but not between
 * runs.
 * Temporary memory: twice the longest block of sources; one result per target and
 * output if there is an epilogue or another type; the workspace of
 * kiln_all_pairs().
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_all_pairs(kiln_comm *comm,
                                            kiln_stream *stream,
                                            const kiln_all_pairs_desc *desc);
/** Computes the size of the temporary device memory of kiln_dist_all_pairs() for
 * the same arguments. All ranks make this call.
 * @param[out] bytes  receives the size for this rank in bytes; 0 on failure.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status
kiln_dist_all_pairs_workspace(kiln_comm *comm, kiln_stream *stream,
                              const kiln_all_pairs_desc *desc, size_t *bytes);

/** Sorts the whole array like kiln_sort(), with the same order of all keys. Each
 * rank receives a block of the length of its input block. Equal keys keep the
 * order of the whole array. All members of the desc have the same rules, also in
 * place.
 *
 * The result is balanced for every distribution of the keys, also if all keys are
 * equal. Exact histograms of the top bits of the keys find the bins between the
 * blocks of the result: of 12 bits, and of the next bits while these bins hold
 * many keys. The few keys in these bins are sorted to find the exact boundaries. A
 * stable split and one all-to-all move the data, and each rank sorts what it
 * received. Blocks of at most 32,768 keys are sorted before the exchange instead.
 * Temporary memory: kiln_dist_sort_workspace(). It is n keys and n values, about
 * 300 KiB, for values that are structs n positions, and the largest workspace of
 * kiln_sort() and kiln_split().
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_sort(kiln_comm *comm, kiln_stream *stream,
                                       const kiln_sort_desc *desc);
/** Computes the size of the temporary device memory of kiln_dist_sort() for the
 * same arguments. All ranks make this call.
 * @param[out] bytes  receives the size for this rank in bytes; 0 on failure.
 * @retval the statuses in comm.h and one of the statuses in ops.h. Blocks. */
KILN_INLINE kiln_status kiln_dist_sort_workspace(kiln_comm *comm,
                                                 kiln_stream *stream,
                                                 const kiln_sort_desc *desc,
                                                 size_t *bytes);

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
KILN__DIST(kiln_dist_map, kiln_map_desc)
KILN__DIST(kiln_dist_all_pairs, kiln_all_pairs_desc)
KILN__DIST(kiln_dist_gather, kiln_gather_desc)
KILN__DIST(kiln_dist_scatter, kiln_scatter_desc)

/* Operations whose results are a part of the whole result. */
#define KILN__DIST_PART(name, desc_type)                                       \
  KILN__SIZED(name,                                                            \
              (kiln_comm * comm, kiln_stream * stream, const desc_type *desc,  \
               uint64_t *first, uint64_t *total),                              \
              (size_t desc_size),                                              \
              (comm, stream, desc, first, total, sizeof *desc))
KILN__DIST_PART(kiln_dist_select, kiln_select_desc)
KILN__DIST_PART(kiln_dist_unique, kiln_unique_desc)
KILN__DIST_PART(kiln_dist_reduce_by_key, kiln_reduce_by_key_desc)

/* Operations that receive a number of elements that depends on the data. */
#define KILN__DIST_SPLIT(name)                                                 \
  KILN__SIZED(name,                                                            \
              (kiln_comm * comm, kiln_stream * stream,                         \
               const kiln_split_desc *desc, uint64_t capacity,                 \
               uint64_t *received),                                            \
              (size_t desc_size),                                              \
              (comm, stream, desc, capacity, received, sizeof *desc))
KILN__DIST_SPLIT(kiln_dist_split)
KILN__DIST_SPLIT(kiln_dist_shuffle)

#define KILN__DIST_WORKSPACE(name, desc_type)                                  \
  KILN__SIZED(name##_workspace,                                                \
              (kiln_comm * comm, kiln_stream * stream, const desc_type *desc,  \
               size_t *bytes),                                                 \
              (size_t desc_size), (comm, stream, desc, bytes, sizeof *desc))
KILN__DIST_WORKSPACE(kiln_dist_sort, kiln_sort_desc)
KILN__DIST_WORKSPACE(kiln_dist_split, kiln_split_desc)
KILN__DIST_WORKSPACE(kiln_dist_unique, kiln_unique_desc)
KILN__DIST_WORKSPACE(kiln_dist_all_pairs, kiln_all_pairs_desc)
KILN__DIST_WORKSPACE(kiln_dist_gather, kiln_gather_desc)
KILN__DIST_WORKSPACE(kiln_dist_scatter, kiln_scatter_desc)
KILN__DIST_WORKSPACE(kiln_dist_reduce_by_key, kiln_reduce_by_key_desc)

KILN__SIZED(kiln_dist_gemm,
            (kiln_comm * comm, kiln_stream *stream, const kiln_gemm_desc *desc,
             uint32_t rows),
            (size_t desc_size), (comm, stream, desc, rows, sizeof *desc))
KILN__SIZED(kiln_dist_gemm_workspace,
            (kiln_comm * comm, kiln_stream *stream, const kiln_gemm_desc *desc,
             uint32_t rows, size_t *bytes),
            (size_t desc_size), (comm, stream, desc, rows, bytes, sizeof *desc))

#ifdef __cplusplus
}
#endif
#endif
