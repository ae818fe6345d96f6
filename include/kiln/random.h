/* random.h -- fill an array with random numbers that do not depend on the device.
 *
 *   kiln_random_desc noise = {.out = {x, KILN_F32}, .n = n, .seed = 42,
 *                             .distribution = KILN_NORMAL};
 *   st = kiln_random(stream, &noise, NULL);
 *
 * User expressions of any operation can compute the same numbers. Their preamble
 * must contain the line
 *   #include <kiln/random.cuh>
 * The expressions can then call these functions, where `i` is the index of the
 * number in its sequence:
 *   kiln::random_bits(seed, stream, i)           what kiln_random() writes as u32
 *   kiln::random_uniform(seed, stream, i)        ... as uniform f32
 *   kiln::random_normal(seed, stream, i)         ... as normal f32
 *   kiln::random_below(bound, seed, stream, i)   ... as u32 with .range = bound */
#ifndef KILN_RANDOM_H
#define KILN_RANDOM_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How random numbers are distributed. */
typedef enum kiln_distribution {
  /** Floating-point types: each multiple of 2^-d in [0, 1) with the same
   * probability, where d is 11 for f16, 8 for bf16, 24 for f32, and 53 for f64.
   * Integer types: each integer from desc.low on, desc.range of them, with
   * exactly the same probability. */
  KILN_UNIFORM = 0,
  /** Normal numbers, for floating-point types only: desc.deviation * z +
   * desc.mean, computed with one rounding in f32 (f64 for f64). The relative
   * error of z as a function of the generator's bits is below 2^-21 (2^-50 for
   * f64). The magnitude of z is below 6.67 (9.43 for f64). */
  KILN_NORMAL
} kiln_distribution;

/** Description of a fill with random numbers: out[i] = number offset + i of the
 * sequence that `seed` and `stream` identify. */
typedef struct kiln_random_desc {
  kiln_array out;                 /**< receives n numbers */
  uint64_t n;                     /**< number of random numbers */
  kiln_distribution distribution; /**< distribution; default: KILN_UNIFORM */
  uint64_t seed;                  /**< key of the generator; any number */
  /** Number of the sequence. Sequences with different seeds or streams are
   * independent. */
  uint32_t stream;
  /** Index in the sequence of the number that becomes out[0]. A program that
   * continues a sequence adds n after each call. offset + n is at most 2^64 - 1.
   */
  uint64_t offset;
  int64_t low; /**< smallest integer, for KILN_UNIFORM and integer types */
  /** Number of different integers, for KILN_UNIFORM and integer types. low +
   * range - 1 must be a value of the type. 0 means all values of the type; `low`
   * is then not used. */
  uint64_t range;
  double mean; /**< mean of normal numbers */
  /** Standard deviation of normal numbers, a finite number of at least 0; 0
   * means 1. */
  double deviation;
} kiln_random_desc;

/**
 * Fills an array with random numbers.
 *
 * The numbers come from the generator Philox4x32-10 (Salmon et al., Parallel
 * Random Numbers: As Easy as 1, 2, 3, 2011). They have the same bits on every
 * GPU and on the CPU device, for any alignment of the array, and however a
 * sequence is divided into calls. Types of up to 32 bits use the same 32 bits of
 * the generator for the number with the same index, and types of 64 bits use 64
 * bits each. Normal numbers are computed from uniform ones by the transformation
 * of Box and Muller (1958), in operations that are rounded exactly. Integers in
 * a range are computed by Lemire's method (2019). The generator is not suited
 * for cryptography.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  not used; NULL.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if the
 *         distribution does not suit the type, if the range is not within the
 *         type, if mean or deviation is not finite, or if offset + n exceeds 64
 *         bits.
 * The operation needs one launch. The kernel depends on the type, the
 * distribution, and on whether the array is aligned to 16 bytes like its numbers
 * are in the sequence (which is faster; offset 0 and an aligned array are).
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_random(kiln_stream *stream,
                                    const kiln_random_desc *desc,
                                    const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_random() needs for the
 * same stream and desc, which is 0.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_random_workspace(kiln_stream *stream,
                                              const kiln_random_desc *desc,
                                              size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__RANDOM_OPERATIONS(X) X(kiln_random, kiln_random_desc, deviation)
KILN__RANDOM_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
