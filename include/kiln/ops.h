/* ops.h -- what all data-parallel operations share.
 *
 *   kiln_reduce_desc sum = {.x = {.in = {{x, KILN_F32}}}, .n = n,
 *                           .out = {total, KILN_F32}};
 *   st = kiln_reduce(stream, &sum, NULL);
 *
 * Every operation is a function kiln_NAME(stream, &desc, workspace) with a
 * companion kiln_NAME_workspace(stream, &desc, &bytes). A desc starts from {0};
 * zero means "default" in each member. It is borrowed for the call.
 *
 * Calls
 * - A call queues work in `stream`, which must not be NULL, and returns. It waits
 *   for the GPU only where its contract says so. Results are in device memory.
 * - The first call with new types, texts, constants or size class compiles a
 *   kernel, or takes it from the disk cache or a pack (kiln_pack_cache()), and
 *   blocks for that. The device keeps the kernels until kiln_device_free(). Later
 *   calls look them up in a few hundred nanoseconds. Calls on at most 2^18
 *   elements usually use a build that compiles faster.
 * - Counts are elements, 64-bit. n = 0 is valid everywhere. Arrays need the
 *   alignment of their element only; 16 bytes is faster.
 * - Inputs and outputs must not overlap unless a contract allows it.
 * - Streams may be captured into a graph, also during a first call: compiling and
 *   loading do not disturb a capture.
 * - Threads: any, also at once on one stream.
 *
 * Statuses of all operations. A contract names those that it adds.
 *   KILN_OK            queued
 *   KILN_EINVAL        a member is not valid; the record names it
 *   KILN_ECOMPILE      the caller's text does not compile; line and caret are in
 *                      the record's log
 *   KILN_ENONVRTC      the kernel is in no cache, and there is no compiler
 *   KILN_EUNSUPPORTED  the device cannot run the kernel
 *   KILN_EDEVMEM       no temporary storage
 *   KILN_EDRIVER, KILN_ENOMEM, KILN_ESTICKY, KILN_EFORKED
 * After a failure nothing has been queued or written.
 *
 * Temporary storage comes from the caller's workspace, if one is given, and
 * otherwise from Kiln: each stream keeps up to 8 MiB, and larger amounts come from
 * the device's stream-ordered memory pool. By default the driver returns a pool's
 * memory at each synchronisation. A program that makes large calls again and again
 * should pass a workspace or raise the pool's release threshold.
 * kiln_NAME_workspace() sets *bytes and returns KILN_OK, KILN_EINVAL, or a status
 * of the operation. It compiles nothing, launches nothing and never blocks, except
 * on the tuning file of the first call. A smaller workspace gives KILN_EINVAL.
 *
 * Texts are CUDA C++ expressions. They see
 *   in a map:        x, y, z, w or x0 .. x7 (element i of each input) and i (the
 *                    index, unsigned 64-bit). x_at(j), y_at(j), z_at(j), w_at(j)
 *                    or x0_at(j) .. x7_at(j) read element j of that input, which
 *                    must exist. A text that reads other elements than its own
 *                    must not work in place
 *   in an operation: a and b, of the accumulator's type
 *   everywhere:      the parameters of kiln_code by name, its preamble,
 *                    INFINITY, NAN and CUDA's device functions
 * Elements of f16 and bf16 arrive as float and are rounded when stored. All other
 * types are what they are in C: u8 is unsigned char and computes as int. */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Type of an element. */
typedef enum kiln_dtype {
  KILN_DTYPE_NONE = 0, /**< not given: the default, where there is one */
  KILN_I8,
  KILN_U8,
  KILN_I16,
  KILN_U16,
  KILN_I32,
  KILN_U32,
  KILN_I64,
  KILN_U64,
  KILN_F16,  /**< IEEE half; computed in float */
  KILN_BF16, /**< bfloat16; computed in float */
  KILN_F32,
  KILN_F64
} kiln_dtype;

/** Returns the bytes of an element: 1, 2, 4 or 8; 0 for a value that is no type.
 * Threads: any. Blocks: never. */
KILN_API size_t kiln_dtype_size(kiln_dtype type);
/** Returns the name of a type: "f32" and so on, "none" for KILN_DTYPE_NONE, "?" for
 * any other value. The text is static. Threads: any. Blocks: never. */
KILN_API const char *kiln_dtype_name(kiln_dtype type);

/** An array in device memory. Its size in the desc never changes. */
typedef struct kiln_array {
  CUdeviceptr data; /**< address, aligned to an element */
  kiln_dtype type;  /**< KILN_DTYPE_NONE: there is no array */
} kiln_array;

/** Most arrays that one operation reads and that it writes. */
enum { KILN_MAX_INPUTS = 8, KILN_MAX_OUTPUTS = 4 };

/** What an operation reads: the elements of an array as they are, or an
 * expression over up to eight arrays, which is fused into the kernel. Descs
 * contain it, so its size never changes. */
typedef struct kiln_input {
  kiln_array in[KILN_MAX_INPUTS]; /**< the first without a type ends the list */
  const char *map; /**< NULL: element i of in[0]; else an expression
                      for each i, e.g. "x * y". Without any array it may use the
                      index only */
  kiln_dtype type; /**< type of the expression; default in[0].type */
} kiln_input;

/** An operation by name. Integer sums and products wrap. Minimum and maximum
 * return NaN if an element is NaN, and -0 is below +0. */
typedef enum kiln_op_name {
  KILN_SUM = 0,
  KILN_PROD,
  KILN_MIN,
  KILN_MAX,
  KILN_AND, /**< bitwise; integers only, as are the next two */
  KILN_OR,
  KILN_XOR
} kiln_op_name;

/** An associative operation: by name, `{KILN_MAX}`, or the caller's own,
 * `{.expr = "a > b ? a : b", .identity = "-INFINITY"}`. It need not commute. Descs
 * contain it, so its size never changes. */
typedef struct kiln_op {
  kiln_op_name name; /**< used if expr is NULL */
  const char *expr;  /**< text over a and b */
  /** The value that changes nothing: op(identity, x) must be x for every element x.
   * Needed with expr. expr is never evaluated for two identities, so that
   * log(exp(a) + exp(b)) may have -INFINITY. */
  const char *identity;
  bool commutative; /**< expr gives the same if a and b are swapped, so a
                       reduction may read in a faster order */
} kiln_op;

/** A value that texts use by name. Passed in arrays, so its size never changes. */
typedef struct kiln_param {
  /** A C identifier: no keyword, no name that texts have anyway (x, i, a, x_at and so
   * on), none that begins with __, kiln__ or KILN_, and none of another parameter. */
  const char *name;
  kiln_dtype type;   /**< f16 and bf16 arrive as float */
  const void *value; /**< one element in host memory, copied */
  bool constant;     /**< compiled into the kernel, which is faster, but each
                        value needs a compile; else passed at each call */
} kiln_param;

/** What the texts of a call may use. Descs contain it, so its size never changes. */
typedef struct kiln_code {
  /** Device functions, types and macros, or NULL. They may have any names: behind its
   * last #include line, the preamble stands in a namespace of its own. */
  const char *preamble;
  const kiln_param *params; /**< n_params parameters; copied */
  size_t n_params;          /**< at most 16 */
  bool fast_math;           /**< compile with --use_fast_math */
} kiln_code;

/** Device memory that an operation uses while it runs. The contents need not be
 * initialised and are undefined afterwards. One workspace serves one call at a time.
 * Its size in memory never changes. */
typedef struct kiln_workspace {
  CUdeviceptr data; /**< aligned to 256 bytes */
  size_t size;      /**< bytes, at least those of kiln_NAME_workspace() */
} kiln_workspace;

/* Declares and wraps one operation: NAME(stream, desc, workspace) and
 * NAME_workspace(stream, desc, bytes) over NAME_sized() and
 * NAME_workspace_sized(), which also take the size of the desc ("Versions" in
 * kiln.h). `last` is the last member that the first version of the desc had; the
 * library uses it. */
#define KILN__OPERATION(name, desc_type, last)                                 \
  KILN__SIZED(name,                                                            \
              (kiln_stream * stream, const desc_type *desc,                    \
               const kiln_workspace *workspace),                               \
              (size_t desc_size), (stream, desc, workspace, sizeof *desc))     \
  KILN__SIZED(name##_workspace,                                                \
              (kiln_stream * stream, const desc_type *desc, size_t *bytes),    \
              (size_t desc_size), (stream, desc, bytes, sizeof *desc))

#ifdef __cplusplus
}
#endif
#endif
