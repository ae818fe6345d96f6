/* gemm.h -- the internal interface of matrix products: a call whose arguments
 * have been checked and brought into one form, and the table of paths that can
 * compute it. A path is a family of kernels with its host side, such as
 * gemm_simt.c.
 *
 *     desc -> gemm.c: checks, normal form -> first path whose plan() accepts the
 *          call -> path->launch() */
#ifndef KILN_GEMM_INTERNAL_H
#define KILN_GEMM_INTERNAL_H

#include "../ops.h"

#include <kiln/gemm.h>

/* One matrix in normal form. Kernels get the same struct
 * (kernels_src/kiln/gemm.cuh). */
typedef struct kiln__gemm_operand {
  uint64_t data; /* address of the elements, or of the array of pointers */
  uint64_t leading, stride;
} kiln__gemm_operand;

/* The argument of each kernel, the same struct as kiln::gemm_args. */
typedef struct kiln__gemm_args {
  kiln__gemm_operand a, b, c, d;
  uint64_t m, n, k, batch;
  uint64_t alpha, beta; /* bits in the type of the sums, in the low bytes */
  uint64_t c_row, c_column;
  uint64_t x[KILN_GEMM_MAX_INPUTS][3];
} kiln__gemm_args;

/* Bits of kiln__gemm.pointers. */
enum { KILN__GEMM_A = 1, KILN__GEMM_B = 2, KILN__GEMM_C = 4, KILN__GEMM_D = 8 };

typedef struct kiln__gemm_path kiln__gemm_path;

/* What a path has decided about a call. Its meaning is the path's own, except
 * for `choice`. */
typedef struct kiln__gemm_plan {
  uint32_t variant; /* row of the path's table of tiles */
  uint32_t splits;  /* number of blocks that share a sum, at least 1 */
  uint64_t tiles;   /* number of tiles of the whole batch */
  uint64_t shared;  /* number of tiles that blocks share */
  bool turned;      /* the operands are exchanged or turned first */
  kiln_gemm_choice choice;
} kiln__gemm_plan;

/* The tile of the SIMT path for a call. */
typedef struct kiln__gemm_simt_tile {
  uint32_t variant, splits; /* splits is 0 until the tile is chosen */
  double efficiency;        /* predicted share of the peak; 0 without a tile */
} kiln__gemm_simt_tile;

/* A checked call in normal form: D is in row-major order. If the caller's D is
 * in column-major order, A and B, m and n are exchanged here, and `swapped` is
 * set. alpha = 0 has become k = 0, and k = 0 has become alpha = 0. */
typedef struct kiln__gemm {
  const kiln_gemm_desc *desc;
  const kiln_device *device;
  kiln_gemm_tile tile; /* the caller's, or the one that was measured */
  kiln__gemm_args args;
  kiln_dtype type;   /* type of A and B */
  kiln_dtype c_type; /* type of C; D's type if C is not read */
  kiln_dtype d_type;
  kiln_dtype sum; /* type of the sums: f32, f64 or i32 */
  kiln_gemm_precision precision;
  bool a_k, b_k; /* consecutive elements follow the sum (index k) */
  bool swapped;
  bool reads_c;
  bool c_by_row;     /* C has consecutive elements in a row of D */
  bool turns_a;      /* the kernel turns A itself, so that no copy is needed */
  bool d_by_column;  /* D is in column-major order after all: gemm_wgmma.c */
  uint32_t pointers; /* operands that are given by arrays of pointers */
  kiln_input in;     /* further inputs of the epilogue; no map */
  uint32_t n_inputs;
  const char *parameters; /* C++ parameters of the epilogue's function */
  char parameter_text[256];
  const kiln__gemm_path *path;
  kiln__gemm_simt_tile simt;
  kiln__gemm_plan plan;
  kiln__need need; /* temporary storage that the plan needs */
} kiln__gemm;

struct kiln__gemm_path {
  const char *name;
  /* Fills call->plan and call->need and returns true, or returns false and
   * changes neither if the kernels of this path cannot compute the call, or
   * should not. m, n and batch are at least 1. The tile that the caller requests
   * is part of the call. */
  bool (*plan)(kiln__gemm *call);
  /* Queues the launches of a planned call. */
  kiln_status (*launch)(kiln_stream *stream, const kiln__gemm *call,
                        const kiln_workspace *workspace);
};

/* The paths. gemm.c lists them in its table, fastest first. The SIMT path
 * serves every call. */
extern const kiln__gemm_path kiln__gemm_wgmma, kiln__gemm_mma, kiln__gemm_few,
    kiln__gemm_small, kiln__gemm_ffma, kiln__gemm_simt;

/* Returns the tile of the SIMT path. The first request of a call chooses it, and
 * call->simt keeps it, since the choice takes up to 1 us. */
const kiln__gemm_simt_tile *kiln__gemm_simt_best(kiln__gemm *call);

/* ---- For the paths ------------------------------------------------------- */

/* The parameters with which the table of each kernel begins, in this order. */
enum {
  KILN__GEMM_PARAM_T,
  KILN__GEMM_PARAM_C,
  KILN__GEMM_PARAM_D,
  KILN__GEMM_PARAM_READS_C,
  KILN__GEMM_PARAM_POINTERS,
  KILN__GEMM_PARAM_SWAPPED,
  KILN__GEMM_PARAM_INPUTS,
  KILN__GEMM_PARAMS
};

/* Initialises the spec of a kernel: the parameters above, the further inputs
 * and the epilogue as user::epilogue(). */
void kiln__gemm_specify(kiln__spec *spec, const kiln__family *family,
                        const kiln__gemm *call);

/* Returns the number of elements, a power of two up to `most`, that one aligned
 * access can move everywhere in an operand. `line` is the number of consecutive
 * elements of a line (a row, or a column), `bit` the operand's KILN__GEMM_A to
 * _D. */
uint32_t kiln__gemm_vector(const kiln__gemm *call, const kiln__gemm_operand *o,
                           uint32_t bit, kiln_dtype type, uint64_t line,
                           uint32_t most);

/* Returns a launch configuration of `blocks` blocks. A grid of more than 2^30
 * blocks gets a second dimension and may have more blocks than requested. */
kiln_launch_config kiln__gemm_grid(kiln_stream *stream, uint64_t blocks,
                                   uint32_t threads);

/* How a kernel numbers the tiles of a call, with reciprocals of its divisors:
 * the same struct as kiln::gemm_tiling (kernels_src/kiln/gemm_sums.cuh). */
typedef struct kiln__gemm_tiling {
  uint32_t rows, group, rest, group_tiles;
  uint32_t over_group, over_rest, over_group_tiles, padding;
  uint64_t matrix, all, over_matrix, over_all;
} kiln__gemm_tiling;

/* Returns the numbering for tiles of m x n elements. */
kiln__gemm_tiling kiln__gemm_number_tiles(const kiln__gemm *call, uint64_t m,
                                          uint64_t n);

/* ---- Tensor cores, gemm_operands.c --------------------------------------- */

/* An operand as the kernels for tensor cores read it, in place or as a copy. */
typedef struct kiln__gemm_source {
  const kiln__gemm_operand *operand;
  uint32_t bit;          /* KILN__GEMM_A or KILN__GEMM_B */
  bool packed, turned;   /* copied; rows and columns exchanged in the copy */
  bool k_major;          /* consecutive elements follow the sum */
  uint32_t parts, size;  /* parts per element, at least 1; bytes per element */
  uint64_t lines, width; /* of the matrix in memory */
  uint64_t to_lines, to_width, leading; /* of the matrix that is multiplied */
  uint64_t batch; /* number of matrices; 1 if all products share one */
  uint64_t bytes; /* size of the copy */
} kiln__gemm_source;

/* Returns the number of bf16 parts per f32, or 0 if elements are not split. */
uint32_t kiln__gemm_parts(const kiln__gemm *call);

/* Returns KILN_MATH of the kernels: 0 f16, 1 bf16, 2 tf32, 3 i8, 4 f64. */
uint32_t kiln__gemm_math(const kiln__gemm *call);

/* Returns whether lines and matrices of an operand start at multiples of 16
 * bytes. `size` is the size of an element. */
bool kiln__gemm_is_aligned(const kiln__gemm *call, const kiln__gemm_operand *o,
                           uint32_t bit, uint64_t size);

/* Returns the form of A, or of B if `a` is false. */
kiln__gemm_source kiln__gemm_source_of(const kiln__gemm *call, bool a);

/* Adds the copies of A and B to `need`. */
void kiln__gemm_need_copies(kiln__need *need, const kiln__gemm *call);

/* A product that is ready to be launched, with its operands. */
typedef struct kiln__gemm_product {
  kiln_stream *stream;
  const kiln__gemm *call;
  const kiln__spec *spec;
  kiln_kernel *kernel;
  kiln__gemm_source source[2]; /* A, B */
  uint64_t copy[2];            /* addresses of the copies */
} kiln__gemm_product;

/* Compiles the kernel of `spec` and those that copy A and B, queues the copies,
 * and calls `launch`. */
kiln_status
kiln__gemm_launch(kiln_stream *stream, const kiln__gemm *call,
                  const kiln_workspace *workspace, kiln__spec *spec,
                  kiln_status (*launch)(const kiln__gemm_product *));

/* ---- The model, gemm_model.c: pure functions ----------------------------- */

/* A tile that kernels can compute. */
typedef struct kiln__gemm_tile {
  uint16_t m, n;
  uint16_t per_sm;  /* blocks that an SM runs at the same time */
  uint16_t plateau; /* per mille of the peak that the kernel reaches when all
                       SMs are busy */
} kiln__gemm_tile;

/* A call and a device as the model sees them. */
typedef struct kiln__gemm_shape {
  uint64_t m, n, k, batch;
  uint64_t sms;
} kiln__gemm_shape;

/* Returns the number of tiles of a call. */
uint64_t kiln__gemm_tiles(const kiln__gemm_shape *s, const kiln__gemm_tile *t);

/* Returns the predicted share of the peak, 0 to 1, with `splits` blocks per
 * sum. */
double kiln__gemm_efficiency(const kiln__gemm_shape *s,
                             const kiln__gemm_tile *t, uint32_t splits);

/* Returns the predicted share of the peak if `blocks` blocks share the sums of
 * all tiles evenly (stream-k). */
double kiln__gemm_streamed(const kiln__gemm_shape *s, const kiln__gemm_tile *t,
                           uint64_t blocks);

/* Returns the row of `tiles` with the highest predicted efficiency. Rows that
 * do not match the tile `wanted` (0 in a member matches every row) are skipped.
 * *splits receives the number of blocks per sum. If no row matches, returns
 * `n`. */
uint32_t kiln__gemm_choose(const kiln__gemm_shape *s,
                           const kiln__gemm_tile *tiles, uint32_t n,
                           kiln_gemm_tile wanted, uint32_t *splits);

/* Returns the form of gemm_small.c for a call, or a number that is too large if
 * other kernels are faster. `one_b` states that all products share B. */
uint32_t kiln__gemm_small_choose(const kiln__gemm_shape *s, bool one_b);

/* Returns the number of blocks that share a sum of gemm_vector.c, for `tiles`
 * tiles and a device that should run `blocks` blocks. */
uint32_t kiln__gemm_vector_splits(uint64_t tiles, uint64_t k, uint64_t blocks);

#endif
