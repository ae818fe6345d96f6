/* all_pairs.h -- for each target, reduce a user expression over all sources.
 *
 * The accelerations of n bodies that attract each other, for example:
 *
 *   kiln_all_pairs_desc gravity = {
 *       .target = {{x, KILN_F32}, {y, KILN_F32}, {z, KILN_F32}, {m, KILN_F32}},
 *       .n = n,
 *       .common = "const float dx = s.x - t.x, dy = s.y - t.y,"
 *                 "            dz = s.z - t.z;"
 *                 "const float r = rsqrtf(eps2 + dx * dx + dy * dy + dz * dz);"
 *                 "const float f = s.w * (r * r * r);",
 *       .expr = {"f * dx", "f * dy", "f * dz"},
 *       .out = {{ax, KILN_F32}, {ay, KILN_F32}, {az, KILN_F32}},
 *       .code = {.params = &eps2, .n_params = 1, .fast_math = true}};
 *   st = kiln_all_pairs(stream, &gravity, NULL); */
#ifndef KILN_ALL_PAIRS_H
#define KILN_ALL_PAIRS_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How the expressions for the pair (j, i) follow from those for (i, j), if the
 * sources are the targets. */
typedef enum kiln_pair_symmetry {
  KILN_PAIRS_UNRELATED = 0, /**< not at all, or the caller does not know */
  KILN_PAIRS_EQUAL,  /**< they have the same values, such as a distance */
  KILN_PAIRS_NEGATED /**< they have the negated values, such as a force */
} kiln_pair_symmetry;

/** Description of a computation over all pairs: out[k][i] = the reduction by op
 * of expr[k](target i, source j) over all j < m, for i < n. */
typedef struct kiln_all_pairs_desc {
  /** Fields of the targets: arrays of n elements each, at least one array. The
   * list ends at the first array without a type. */
  kiln_array target[KILN_MAX_INPUTS];
  /** Fields of the sources: arrays of m elements each. If there is none, the
   * sources are the targets, and m is not used. There may be at most eight
   * arrays in both lists together. */
  kiln_array source[KILN_MAX_INPUTS];
  uint64_t n; /**< number of targets */
  uint64_t m; /**< number of sources; for m = 0 the results are the identity of
                   the operation */
  /** C++ statements that are executed once per pair, or NULL. The expressions
   * may use the variables that these statements declare. */
  const char *common;
  /** One user expression per output, over these names:
   *   t.x, t.y, t.z, t.w, t.x4, t.x5, t.x6, t.x7   the fields of the target
   *   s.x, s.y, s.z, s.w, s.x4, s.x5, s.x6, s.x7   the fields of the source
   *   i, j       the indices of the target and of the source (unsigned 64-bit)
   * A pair with i = j is a pair like any other. The statements of `common` may
   * use the same names. */
  const char *expr[KILN_MAX_OUTPUTS];
  /** Operation that combines the values of an expression; default: the sum.
   * The values are combined in no particular order, so the operation must be
   * commutative. */
  kiln_op op;
  /** Type in which the expressions are combined; default: the type of out[0],
   * or float for f16 and bf16. */
  kiln_dtype type;
  /** Outputs: arrays of n elements each, one per expression. */
  kiln_array out[KILN_MAX_OUTPUTS];
  /** Optional, only with one expression and the operation KILN_MIN or KILN_MAX:
   * receives for each target the index j of the source with the smallest or
   * largest value, as n elements of type u32, i32, u64 or i64. If several
   * sources have this value, the index is the smallest of theirs; -0 equals +0.
   * If a value is NaN, the index is that of the first NaN. For m = 0 the index
   * has all bits set. */
  kiln_array index;
  /** One optional user expression per output, over the results r0, r1, r2 and
   * r3 of the outputs, the fields of the target (t.x and so on) and the index i.
   * Its value replaces the result. NULL keeps the result. */
  const char *epilogue[KILN_MAX_OUTPUTS];
  /** Combines the results with the previous contents of the outputs by the
   * operation, instead of overwriting them. Not allowed with `index`. */
  bool accumulate;
  /** Symmetry of the expressions. If they are symmetric and the sources are the
   * targets, each pair is evaluated once, for both of its elements.
   * KILN_PAIRS_NEGATED is only for sums of signed types. Not allowed with
   * `index`. */
  kiln_pair_symmetry symmetry;
  /** With a symmetry, the largest size of the temporary storage in bytes;
   * default: 512 MiB. If the results of all rows do not fit, the call makes
   * several passes. The space of three results per target is always used. */
  uint64_t most_storage;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use. The names t, s, j and r0 to r3 are taken. With
                       fast_math, rsqrtf() and divisions take fewer
                       instructions, and subnormal numbers become 0 */
} kiln_all_pairs_desc;

/**
 * Computes expressions over all pairs of a target and a source, and reduces
 * them per target: gravity and Coulomb forces, kernel density estimates,
 * nearest neighbours.
 *
 * Sources are staged in shared memory, and a thread keeps up to eight targets
 * in registers. The arithmetic of the expressions therefore decides the speed.
 * If there are few targets, several blocks take parts of the sources, and a second
 * launch combines their results. With a symmetry and at least 8,192 elements,
 * rows of elements meet on a ring, so that each pair is evaluated once.
 *
 * The order in which values are combined depends only on n, m, the desc and the
 * device. The same call therefore always returns the same bits.
 *
 * The temporary storage holds several results per target: up to 64 without a
 * symmetry, and one per row and segment with a symmetry. Source: Nyland, Harris
 * and Prins, Fast N-Body Simulation with CUDA, GPU Gems 3, 2007.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage; NULL selects Kiln's own temporary
 *                   storage.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if the
 *         symmetry or the index is not allowed, or if an expression without an output,
 *         or an output without an expression, is given.
 * Outputs must not overlap any other array.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_all_pairs(kiln_stream *stream,
                                       const kiln_all_pairs_desc *desc,
                                       const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_all_pairs() needs for
 * the same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_all_pairs_workspace(
    kiln_stream *stream, const kiln_all_pairs_desc *desc, size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__ALL_PAIRS_OPERATIONS(X)                                          \
  X(kiln_all_pairs, kiln_all_pairs_desc, code)
KILN__ALL_PAIRS_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
