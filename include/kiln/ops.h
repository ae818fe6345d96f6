/* ops.h -- types and rules that all data-parallel operations share.
 *
 *   kiln_reduce_desc sum = {.x = {.in = {{x, KILN_F32}}}, .n = n,
 *                           .out = {total, KILN_F32}};
 *   st = kiln_reduce(stream, &sum, NULL);
 *
 * Every operation is a function kiln_NAME(stream, &desc, workspace). Its
 * companion kiln_NAME_workspace(stream, &desc, &bytes) computes the size of the
 * temporary storage. Initialise the desc with {0}; zero means "default" in each
 * member. The desc is borrowed for the call.
 *
 * Calls
 * - A call queues work in `stream`, which must not be NULL, and returns. It
 *   waits for the GPU only if the contract of the operation says so. Results
 *   are stored in device memory.
 * - The first call with new types, user expressions, constants or size class
 *   compiles a kernel, or loads it from the disk cache or a pack
 *   (kiln_pack_cache()). This first call blocks. The device keeps its kernels
 *   until kiln_device_free(). Later calls look them up in a few hundred
 *   nanoseconds. Calls on at most 2^18 elements usually use a build that
 *   compiles faster.
 * - Counts are 64-bit numbers of elements. n = 0 is always valid. Arrays must
 *   be aligned to the size of their elements, and arrays of structs to the
 *   alignment of the struct; an alignment of 16 bytes is faster.
 * - Inputs and outputs must not overlap unless a contract allows it.
 * - A stream may be captured into a graph, even during the first call of an
 *   operation: compiling and loading do not disturb a capture.
 * - All operations are thread-safe, also for concurrent calls on one stream.
 *
 * All operations return the following statuses. A contract names additional
 * statuses.
 *   KILN_OK            the work is queued
 *   KILN_EINVAL        a member is not valid; the error record names it
 *   KILN_ECOMPILE      a user expression does not compile; the log in the error
 *                      record shows its line and column
 *   KILN_ENONVRTC      no cache holds the kernel, and NVRTC is not available
 *   KILN_EUNSUPPORTED  the device cannot run the kernel
 *   KILN_EDEVMEM       the temporary storage cannot be allocated
 *   KILN_EDRIVER, KILN_ENOMEM, KILN_ESTICKY, KILN_EFORKED
 * A call that fails has queued and written nothing.
 *
 * An operation takes its temporary storage from the caller's workspace if the
 * caller passes one. Otherwise Kiln provides the storage: each stream keeps up
 * to 8 MiB, and larger amounts come from a memory pool that Kiln creates per
 * device. When the program synchronises, the pool keeps up to 64 MiB for later
 * calls and returns the rest to the driver, so the next large call waits for
 * new memory. A program that repeatedly makes calls with more temporary storage
 * should pass a workspace. Kiln does not change the device's default pool, from
 * which only captured calls get their storage.
 *
 * kiln_NAME_workspace() sets *bytes. It returns KILN_OK, KILN_EINVAL, or a
 * status of the operation. It compiles nothing and launches nothing. It never
 * blocks, except that the first call reads the tuning file. An operation that
 * gets a smaller workspace returns KILN_EINVAL.
 *
 * A "user expression" is a string of CUDA C++ that the caller passes in a desc:
 * the map of an input, the expression of an operation, a predicate or a key.
 * Kiln compiles user expressions into the kernel. They may use these names:
 *   in a map:        x, y, z, w or x0 .. x7 (element i of each input) and i
 *                    (the index, unsigned 64-bit). x_at(j), y_at(j), z_at(j),
 *                    w_at(j) or x0_at(j) .. x7_at(j) read element j of that
 *                    input, which must exist. If a map reads elements other
 *                    than element i, the operation must not work in place.
 *                    kiln_map() with a width also has row and column
 *   in an operation: a and b, of the accumulator's type
 *   everywhere:      the parameters in kiln_code by name, the declarations of
 *                    its preamble, INFINITY, NAN and CUDA's device functions
 * An input need not be an array of its own. As the map of an input or the
 * expression of kiln_map():
 *   a counter:            "i", without input arrays
 *   a constant:           "1.0f", without input arrays
 *   a permutation:        "x_at(1000 - 1 - i)" reverses 1,000 elements, and
 *                         "x_at(y)" takes the elements in the order of y
 *   a table:              "x_at(y)" with KILN_VIEW_TABLE for x, where y may have
 *                         any integer type, such as u8 or u16
 *   rows and columns:     KILN_VIEW_STRIDED (kiln_map() and kiln_reduce())
 * User expressions see elements of type f16 and bf16 as float; results are
 * rounded when they are stored. Elements of all other types have the
 * corresponding C type: u8 is unsigned char and is promoted to int.
 *
 * Elements may also be structs of the caller, of 1 to 64 bytes. KILN_STRUCT()
 * makes their kiln_dtype, and a parameter without a value names their C++ type:
 *
 *   typedef struct body { float x, y, z, mass; } body;
 *   kiln_dtype type = KILN_STRUCT(sizeof(body), _Alignof(body));
 *   kiln_param named = {.name = "body", .type = type};
 *   kiln_code code = {.preamble = "struct body { float x, y, z, mass; };",
 *                     .params = &named, .n_params = 1};
 *   kiln_reduce_desc heaviest = {
 *       .x = {.in = {{bodies, type}}}, .n = n, .out = {out, type},
 *       .op = {.expr = "a.mass < b.mass ? b : a", .identity = "body{}"},
 *       .code = code};
 *
 * The name is a type that the preamble declares, or a type of CUDA such as
 * float4. The type must be trivially copyable. If its size or alignment on the
 * device differs from the kiln_dtype, the call returns KILN_ECOMPILE with both
 * in the message. Without a name, elements are opaque: expressions can pass them
 * on, and operations can move them, but nothing can look into them. Structs have
 * no default operation and no default order. Kiln may evaluate an operation for
 * two identities if the struct has padding. These operations take structs:
 * kiln_map(), kiln_reduce(), kiln_scan(), kiln_select(), kiln_unique(),
 * kiln_partition(), kiln_run_length_encode(), kiln_run_length_non_trivial(),
 * kiln_gather(), kiln_scatter(), kiln_merge(), and kiln_sort() for the values.
 * They also take complex numbers, KILN_C64 and KILN_C128, and so does
 * kiln_norm(). Sums and products are the predefined operations on complex
 * numbers. In user expressions a complex number z has the type complex64 or
 * complex128, with the members z.re and z.im, the constructors complex64(re) and
 * complex64(re, im), the operators + - * / == and !=, and the functions conj(z),
 * abs(z) and norm(z), the square of abs(z). */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include <kiln/program.h>
#include <kiln/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Data type of the elements of an array. */
typedef enum kiln_dtype {
  KILN_DTYPE_NONE = 0, /**< no type is given; the operation uses its default
                            type if it has one */
  KILN_I8,
  KILN_U8,
  KILN_I16,
  KILN_U16,
  KILN_I32,
  KILN_U32,
  KILN_I64,
  KILN_U64,
  KILN_F16,  /**< IEEE half precision; operations compute in float */
  KILN_BF16, /**< bfloat16; operations compute in float */
  KILN_F32,
  KILN_F64,
  KILN_C64,  /**< complex number of two f32, aligned to 8 bytes */
  KILN_C128, /**< complex number of two f64, aligned to 16 bytes */
  KILN_DTYPE_STRUCT = 0x1000000 /**< base of the values that KILN_STRUCT() and
                                     KILN_STRUCT_OF() make; no type by itself */
} kiln_dtype;

/** The element type of a struct of the caller. `size` is its size in bytes, 1 to
 * 64, and `align` its alignment: 1, 2, 4, 8 or 16. The size must be a multiple
 * of the alignment. `number`, 0 to 15, distinguishes different structs of equal
 * size and alignment in one call; KILN_STRUCT() is number 0. */
#define KILN_STRUCT_OF(number, size, align)                                    \
  ((kiln_dtype)(KILN_DTYPE_STRUCT | (int)(number) << 16 | (int)(align) << 8 |  \
                (int)(size)))
#define KILN_STRUCT(size, align) KILN_STRUCT_OF(0, size, align)

/** Returns the size of an element in bytes: 1 to 64. Returns 0 for a value that
 * is not a valid type.
 * Thread-safe. Never blocks. */
KILN_API size_t kiln_dtype_size(kiln_dtype type);
/** Returns the name of a type, such as "f32". Returns "struct" for a struct,
 * "none" for KILN_DTYPE_NONE and "?" for a value that is not a valid type. The
 * string is static.
 * Thread-safe. Never blocks. */
KILN_API const char *kiln_dtype_name(kiln_dtype type);

/** An array in device memory. The size of this struct never changes. */
typedef struct kiln_array {
  CUdeviceptr data; /**< device address of the array, aligned to the element
                         size; an array of structs to their alignment */
  kiln_dtype type;  /**< element type; KILN_DTYPE_NONE means that no array is
                         given */
} kiln_array;

/** The largest numbers of arrays that one operation can read and write. */
enum { KILN_MAX_INPUTS = 8, KILN_MAX_OUTPUTS = 4 };

/** The largest number of axes of an array. */
enum { KILN_MAX_AXES = 6 };

/** How an operation finds the elements of an input array. */
typedef enum kiln_view_kind {
  KILN_VIEW_PLAIN = 0, /**< element i of the input is element i of the array */
  KILN_VIEW_TABLE,     /**< the array has a length of its own; expressions read
                            it by x_at(j) only, and have no x of it */
  KILN_VIEW_STRIDED    /**< element i is found by its coordinates and strides */
} kiln_view_kind;

/** The view of one input array. The size of this struct never changes. */
typedef struct kiln_view {
  kiln_view_kind kind; /**< kind of the view; default: a plain array */
  uint64_t length;     /**< number of elements of a table */
  /** Distance in elements of the array between neighbours along each axis, for
   * KILN_VIEW_STRIDED. 0 repeats the same element along the axis (broadcast).
   * With negative strides, the array's address is that of the element with the
   * coordinates 0. */
  int64_t stride[KILN_MAX_AXES];
} kiln_view;

/** The shape of the inputs of a call, and a view per input array. Element i has
 * the coordinates of index i in an array with these axes, of which the last one
 * varies fastest. Expressions read element j of the array itself by x_at(j),
 * whatever its view is. The size of this struct never changes. */
typedef struct kiln_shape {
  uint32_t rank; /**< number of axes, 1 to 6; 0 if no view has strides */
  uint64_t size[KILN_MAX_AXES];    /**< elements per axis; their product is n */
  kiln_view view[KILN_MAX_INPUTS]; /**< view of in[k] */
} kiln_shape;

/** The input of an operation: either the elements of one array, or a user
 * expression over up to eight arrays, which is fused into the kernel. The size
 * of this struct never changes. */
typedef struct kiln_input {
  kiln_array in[KILN_MAX_INPUTS]; /**< input arrays; the list ends at the first
                                       array without a type */
  /** User expression for element i, e.g. "x * y"; without input arrays it may
   * use only the index. NULL selects element i of in[0]. */
  const char *map;
  kiln_dtype type; /**< type of the map's result; default: the type of in[0] */
} kiln_input;

/** The predefined operations. Sums and products of integers wrap on overflow.
 * Minimum and maximum return NaN if an element is NaN, and they treat -0 as
 * less than +0. */
typedef enum kiln_op_name {
  KILN_SUM = 0,
  KILN_PROD,
  KILN_MIN,
  KILN_MAX,
  KILN_AND, /**< bitwise AND; KILN_AND, KILN_OR and KILN_XOR are for integers
                 only */
  KILN_OR,
  KILN_XOR
} kiln_op_name;

/** An associative binary operation. It is either predefined, such as
 * `{KILN_MAX}`, or a user expression, such as `{.expr = "a > b ? a : b",
 * .identity = "-INFINITY"}`. The operation need not be commutative. The size of
 * this struct never changes. */
typedef struct kiln_op {
  kiln_op_name name; /**< the predefined operation; used if expr is NULL */
  const char *expr;  /**< user expression over the operands a and b, or NULL */
  /** Identity of expr, required if expr is given: op(identity, x) must equal x
   * for every element x. Kiln never evaluates expr for two identities, so
   * -INFINITY is allowed for log(exp(a) + exp(b)). */
  const char *identity;
  /** Whether the operation is commutative: the result of expr does not
   * change if a and b are swapped, so a reduction may use a faster
   * order. */
  bool commutative;
} kiln_op;

/** A parameter: a named value that user expressions can use. The size of this
 * struct never changes. */
typedef struct kiln_param {
  /** Name of the parameter: a C identifier, unique among the parameters. It
   * must not be a keyword, a predefined name of user expressions (x, i, a, x_at
   * and so on), or a name that begins with __, kiln__ or KILN_. */
  const char *name;
  kiln_dtype type;   /**< type of the parameter; f16 and bf16 appear as float in
                          user expressions. C128 and structs are not possible */
  const void *value; /**< address of the parameter's value in host memory; the
                          value is copied. NULL, only for a struct: `name` is
                          then the C++ type of this struct, see above */
  /** The value is compiled into the kernel. The kernel is then faster, but each
   * value needs its own compilation. Otherwise the value is passed at each
   * call. */
  bool constant;
} kiln_param;

/** Declarations, parameters and options for the user expressions of a call. The
 * size of this struct never changes. */
typedef struct kiln_code {
  /** CUDA C++ source that declares device functions, types and macros, or NULL.
   * They may have any names: everything after the last #include line of the
   * preamble is in a separate namespace. */
  const char *preamble;
  const kiln_param *params; /**< array of n_params parameters; Kiln copies it */
  size_t n_params;          /**< number of parameters, at most 16 */
  bool fast_math;           /**< compile the kernel with --use_fast_math */
} kiln_code;

/** Device memory that an operation uses as temporary storage while it runs. The
 * caller need not initialise the memory, and its contents are undefined
 * afterwards. Only one call at a time may use a workspace. The size of this
 * struct never changes. */
typedef struct kiln_workspace {
  CUdeviceptr data; /**< device address of the workspace, aligned to 256
                         bytes */
  size_t size;      /**< size of the workspace in bytes, at least the result of
                         kiln_NAME_workspace() */
} kiln_workspace;

/** Callback that receives the compiled body of an operation's kernel. The image
 * belongs to the callback, which frees it with kiln_image_free(). Returns
 * KILN_OK, or a status with which the operation then fails. */
typedef kiln_status (*kiln_body_fn)(void *user, kiln_image *image);

/**
 * Makes the operations of a device compile the bodies of their kernels instead
 * of running them. A body is a kernel in which the functions of the user
 * expressions are undefined. If a body is in the cache or in a pack, a first
 * call with any other expressions of the same types compiles these expressions
 * only and links them to the body, which takes about 30 ms.
 *
 * Afterwards every operation on the device checks its arguments, passes the
 * bodies that a call needs to `fn`, and returns KILN_ECANCELED. It neither reads
 * nor writes its arrays. `fn` is not called for programs that are compiled as a
 * whole: without user expressions, where arithmetic is the limit, or where a
 * linked program might have other results. Bodies do not depend on the
 * expressions themselves, but on their number, on all types and parameters, on
 * the alignment of arrays to 16 bytes, and on the number of elements, in the
 * classes up to 2^18 and above. kiln_pack_write() writes the images to a pack;
 * `kiln pack ops` does this for common calls.
 *
 * @param device  a device of the target's compute capability, such as the CPU
 *   device (cpu.h). It cannot run operations any more; no other thread may use
 *   it during this call.
 * @param target  target of the bodies, such as sm_90; not a PTX target. Copied.
 * @param fn      callback for each body.
 * @param user    pointer that is passed to fn.
 * @retval KILN_OK, KILN_EINVAL, KILN_ENOMEM.
 * Never blocks. The operations block while they compile.
 */
KILN_API kiln_status kiln_ops_bodies(kiln_device *device,
                                     const kiln_target *target, kiln_body_fn fn,
                                     void *user);

/* Declares one operation. The wrappers NAME(stream, desc, workspace) and
 * NAME_workspace(stream, desc, bytes) call NAME_sized() and
 * NAME_workspace_sized(), which also take the size of the desc (see "Versions"
 * in kiln.h). `last` is the last member in the first version of the desc; the
 * library derives the smallest valid size from it. */
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
