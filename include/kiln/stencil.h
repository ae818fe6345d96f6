/* stencil.h -- compute each element of an array from its neighbours: convolutions
 * and other stencils over lines, images and volumes.
 *
 *   const double blur[] = {0.25, 0.5, 0.25};
 *   kiln_stencil_desc d = {.in = {x, KILN_F32}, .out = {y, KILN_F32},
 *                          .dims = 1, .size = {n}, .radius = {1},
 *                          .weights = blur};
 *   st = kiln_stencil(stream, &d, NULL);
 *
 *   kiln_stencil_desc heat = {.in = {x, KILN_F32}, .out = {y, KILN_F32},
 *                             .dims = 2, .size = {width, height},
 *                             .radius = {1, 1},
 *                             .expr = "x + 0.2f * (at(-1, 0) + at(1, 0) +"
 *                                     " at(0, -1) + at(0, 1) - 4 * x)"}; */
#ifndef KILN_STENCIL_H
#define KILN_STENCIL_H

#include <kiln/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The largest radius per axis, and the largest number of host weights. */
enum { KILN_MAX_RADIUS = 16, KILN_MAX_WEIGHTS = 33 * 33 };

/** The value of elements outside of the array, for an axis of elements a b c
 * d. */
typedef enum kiln_border {
  KILN_CLAMP = 0, /**< the nearest element: a a [a b c d] d d */
  KILN_WRAP,      /**< the axis is periodic: c d [a b c d] a b */
  KILN_MIRROR,    /**< mirrored at the last element: c b [a b c d] c b */
  KILN_CONSTANT   /**< the value `outside` */
} kiln_border;

/** Description of a stencil. Elements of a row are consecutive. Axis 0 is the
 * column, axis 1 the row, axis 2 the plane. */
typedef struct kiln_stencil_desc {
  kiln_array in;  /**< input array */
  kiln_array out; /**< output array of the same shape, of any type; must not
                       overlap the input */
  uint32_t dims;  /**< number of axes, 1 to 3 */
  /** Number of elements per axis. With two or three axes, each is less than
   * 2^31 - 2^16. */
  uint64_t size[3];
  /** Distance from one row to the next, and from one plane to the next, in
   * elements of the array. 0 means that no elements lie between them. */
  uint64_t in_pitch[2], out_pitch[2];
  /** Radius per axis, at most KILN_MAX_RADIUS: element x depends on elements x -
   * radius to x + radius. */
  uint32_t radius[3];
  /** Weights of a weighted sum, in host memory, or NULL: (2 radius[0] + 1) *
   * (2 radius[1] + 1) * (2 radius[2] + 1) values, columns fastest, at most
   * KILN_MAX_WEIGHTS. The first weight belongs to the element with the least
   * column, row and plane. The weights are not mirrored (the operation is a
   * correlation). They are rounded to the type of the sum and compiled into the
   * kernel, so each set of weights needs its own compilation. For an integer
   * sum, they must be integers. A weight of 0 excludes its element, even if the
   * element is NaN. */
  const double *weights;
  /** Weights in device memory, instead of `weights`: the same values, in any
   * type. Other weights need no other compilation. */
  kiln_array device_weights;
  /** The weight of an element is the product of a weight per axis. The list of
   * weights then has 2 radius[0] + 1 values for the columns, followed by 2
   * radius[1] + 1 values for the rows if there are rows, and 2 radius[2] + 1
   * values for the planes if there are planes. */
  bool separable;
  /** User expression for the output, instead of weights. It may call at(dx),
   * at(dx, dy) and at(dx, dy, dz) for the element at that distance, and use x,
   * the element itself, and its column, row and plane (unsigned 64-bit).
   * Distances beyond the radius are allowed, but slower. */
  const char *expr;
  /** User expression that computes the output from the sum a and the element b,
   * e.g. "(a + 8) / 16". NULL selects the sum. Not allowed with expr. */
  const char *finish;
  kiln_border
      border;     /**< rule for elements outside of the array, on each axis */
  double outside; /**< value of elements outside with KILN_CONSTANT */
  /** Type of the sum: i32, u32, i64, u64, f32 or f64. Default: f32 for f16 and
   * bf16, i32 for i8 to i16 and u8 to u16, otherwise the type of the input. */
  kiln_dtype acc;
  kiln_code code; /**< parameters and functions that the user expressions can
                       use */
} kiln_stencil_desc;

/**
 * Computes each output element from the input elements around it.
 *
 * A weighted sum is a chain of fused multiply-adds in the type of the sum,
 * starting from 0, in the order rows, planes, columns, all ascending. The result
 * is therefore the same on every device and for every launch. A separable sum
 * first reduces the columns of each row in this way, then the rows, then the
 * planes. Sums of integers wrap on overflow. The result is converted to the type
 * of the output like a C cast, after the finish expression.
 *
 * Lines and images take one pass, which reads each element about once. Warps
 * move down the rows and keep the sums under way in registers (2.5-D blocking,
 * Nguyen et al., 2010). A separable sum over volumes takes two passes, with the
 * sums of each plane in temporary storage. A sum over more than 1,089 weights,
 * and a user expression, read each neighbour through the L1 cache.
 *
 * @param stream     stream that executes the operation; must not be NULL.
 * @param desc       description of the operation; borrowed for the call.
 * @param workspace  temporary storage, or NULL. Only a separable sum over
 *                   volumes needs any: one value of the sum per element.
 * @retval one of the statuses in ops.h. Also returns KILN_EINVAL if a radius or
 *         a size is too large, if a pitch is less than the row or the plane, if
 *         the output overlaps the input, if a weight is not finite, or if there
 *         is not exactly one of weights, device_weights and expr.
 * Thread-safe. Blocks only while a kernel compiles.
 */
KILN_INLINE kiln_status kiln_stencil(kiln_stream *stream,
                                     const kiln_stencil_desc *desc,
                                     const kiln_workspace *workspace);
/** Computes the size of the temporary storage that kiln_stencil() needs for the
 * same stream and desc.
 * @param[out] bytes  receives the size in bytes; 0 on failure.
 * @retval one of the statuses in ops.h. */
KILN_INLINE kiln_status kiln_stencil_workspace(kiln_stream *stream,
                                               const kiln_stencil_desc *desc,
                                               size_t *bytes);

/* The exported functions that the inline wrappers of this header call with the
 * size of the caller's struct. See "Versions" in kiln.h. */

#define KILN__STENCIL_OPERATIONS(X) X(kiln_stencil, kiln_stencil_desc, code)
KILN__STENCIL_OPERATIONS(KILN__OPERATION)

#ifdef __cplusplus
}
#endif
#endif
