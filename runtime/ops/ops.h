/* ops.h -- the internal interface that all operations share. It covers element
 * types, the user's expressions as device functions, specialised kernels,
 * temporary storage, argument checks and tuning. Only files of runtime/ops
 * include this header. Every operation takes the same path:
 *
 *     desc -> checks -> kiln__spec -> kiln__specialise() -> kernels
 *          -> kiln__storage_open() -> launches -> kiln__storage_close() */
#ifndef KILN_OPS_INTERNAL_H
#define KILN_OPS_INTERNAL_H

#include "../device/device.h"

#include <kiln/histogram.h>
#include <kiln/ops.h>
#include <kiln/tune.h>

/* ---- Types --------------------------------------------------------------- */

typedef struct kiln__dtype {
  const char *name;    /* name in messages, such as "f16" */
  const char *storage; /* C++ type in memory, such as "kiln::f16" */
  const char *compute; /* C++ type in the user's expressions, such as "float" */
  uint8_t size;        /* bytes per element; 0 for structs: see kiln__size() */
  bool is_float, is_signed;
  kiln_dtype computed; /* the element type whose C++ type is `compute` */
} kiln__dtype;

/* Returns the properties of an element type, or NULL if the value is no
 * element type. All structs share one row, which has no C++ types. */
const kiln__dtype *kiln__dtype_of(kiln_dtype type);

/* A C++ type as text, such as "kiln::record<12, 4, 0>". */
typedef struct kiln__type_text {
  char c[32];
} kiln__type_text;

/* Returns the C++ type of an element in memory, and in the functions of the
 * user's expressions. `type` is a valid type. */
kiln__type_text kiln__storage_text(kiln_dtype type);
kiln__type_text kiln__compute_text(kiln_dtype type);

/* Returns the C++ type that kiln__compute_text() names, as text that lives as
 * long as the process. Structs and complex numbers have no such text: the result
 * is `otherwise`. */
static inline const char *kiln__compute_name(kiln_dtype type,
                                             const char *otherwise)
{
  return (unsigned)type <= KILN_F64 ? kiln__dtype_of(type)->compute : otherwise;
}

/* Returns whether the type is a struct of the caller. */
static inline bool kiln__is_record(kiln_dtype type)
{
  return (unsigned)type > KILN_DTYPE_STRUCT;
}

/* Returns whether a parameter only names the C++ type of a struct. */
static inline bool kiln__names_type(const kiln_param *p)
{
  return kiln__is_record(p->type);
}

static inline bool kiln__is_complex(kiln_dtype type)
{
  return type == KILN_C64 || type == KILN_C128;
}

/* Returns the result of kiln_dtype_size() without a table lookup, since one
 * call needs dozens of sizes. The constant holds one hexadecimal digit per
 * type. In builds for the static analyzer, a macro calls the plain function.
 * Otherwise the analyzer would warn about invalid types, which the argument
 * checks have already refused. */
#ifdef __clang_analyzer__
#define kiln__size kiln_dtype_size
#else
static inline size_t kiln__size(kiln_dtype type)
{
  return (unsigned)type <= KILN_F64
             ? (size_t)(UINT64_C(0x8422884422110) >> 4 * (unsigned)type & 15)
             : kiln_dtype_size(type);
}
#endif

/* Returns the alignment of an element in bytes, 1 to 16. `type` is valid. */
static inline size_t kiln__align(kiln_dtype type)
{
  return kiln__is_record(type) ? (unsigned)type >> 8 & 31 : kiln__size(type);
}

static inline bool kiln__is_integer(kiln_dtype type)
{
  return type >= KILN_I8 && type <= KILN_U64;
}

/* Returns whether the type can hold indices: i32, u32, i64 or u64. */
static inline bool kiln__is_index(kiln_dtype type)
{
  return type >= KILN_I32 && type <= KILN_U64;
}

static inline bool kiln__is_half(kiln_dtype type)
{
  return type == KILN_F16 || type == KILN_BF16;
}

/* Returns whether the caller has set this optional array of a desc. */
static inline bool kiln__given(kiln_array a)
{
  return a.type != KILN_DTYPE_NONE;
}

/* Returns the type of an input's elements after the map expression. */
kiln_dtype kiln__input_type(const kiln_input *x);
/* Returns the number of arrays that an input consists of. */
static inline size_t kiln__input_arrays(const kiln_input *x)
{
  size_t n = 0;

  while (n < KILN_MAX_INPUTS && kiln__given(x->in[n]))
    n++;
  return n;
}

/* Returns the size in bytes of the widest element of an input's arrays, at
 * least `least`. */
static inline size_t kiln__widest(const kiln_input *x, size_t least)
{
  const size_t arrays = kiln__input_arrays(x);

  for (size_t k = 0; k < arrays; k++)
    if (kiln__size(x->in[k].type) > least)
      least = kiln__size(x->in[k].type);
  return least;
}

/* Returns the number of elements per vector for elements of `size` bytes, a
 * power of two. A vector takes 16 bytes if the size is 1, 2, 4, 8 or 16. Other
 * vectors take a multiple of 16 bytes if 64 bytes suffice for that. */
unsigned kiln__vector_of(size_t size);

/* Returns the size in bytes of the widest element of an input's arrays, or 4 for
 * an input without arrays. */
static inline size_t kiln__input_widest(const kiln_input *x)
{
  return kiln__widest(x, kiln__given(x->in[0]) ? 1 : 4);
}

/* Returns the number of elements per vector for the widest array of an input. */
static inline unsigned kiln__input_vec(const kiln_input *x)
{
  return kiln__vector_of(kiln__input_widest(x));
}

/* Returns whether array k of an input has a view other than KILN_VIEW_PLAIN, or a
 * view with strides. The shape may be NULL. */
static inline bool kiln__is_viewed(const kiln_shape *shape, size_t k)
{
  return shape != NULL && shape->view[k].kind != KILN_VIEW_PLAIN;
}

static inline bool kiln__is_strided(const kiln_shape *shape, size_t k)
{
  return shape != NULL && shape->view[k].kind == KILN_VIEW_STRIDED;
}

/* Returns whether one of the arrays has a view with strides. */
bool kiln__has_strides(const kiln_shape *shape, size_t arrays);
/* Returns a shape for the same elements with the fewest axes; rank is 0 if no
 * view has strides. The shape has been checked. */
kiln_shape kiln__normal_shape(const kiln_shape *shape, size_t arrays);

/* ---- Specialisations --------------------------------------------------- */

enum {
  KILN__MAX_VALUES = 28,
  KILN__MAX_FUNCTIONS = 6,
  KILN__MAX_KERNELS = 8,
  KILN__MAX_PARAMS = 16
};

typedef struct kiln__family {
  /* Name of the kernel source. For "scan" the source is kernels_src/scan.cu. */
  const char *builtin;
  /* Names of the extern "C" kernels. NULL ends the list. */
  const char *const *kernels;
  /* Macros of the source: names without "KILN_", each followed by a NUL. An
   * empty name ends the list. The value of a macro is a number, or the C++ type
   * that a kiln_dtype has in memory (as for KILN_T) if ':' precedes its name. */
  const char *defines;
} kiln__family;

/* A user's expression that the kernel calls as a device function in
 * namespace user. The expression can use the parameters of kiln_code by
 * name. */
typedef struct kiln__function {
  const char *name; /* name of the device function, such as "predicate" */
  /* Name of the expression in messages, such as "the predicate". */
  const char *what;
  /* Expression text, or NULL if the call has no such function (a macro then
   * selects the variant of the kernel). */
  const char *expr;
  /* C++ type of the result, such as "bool". The types of namespace user are
   * `value` (a mapped element) and `acc` (the operation's type). */
  const char *result;
  /* C++ type of the operands a and b of an expression that the kernel calls as
   * name(args, a, b). NULL means that the expression can use the same names as
   * a map expression, and that the kernel calls NAME_at(args, vector, e, i). */
  const char *operand;
  /* C++ parameters by which the expression gets its operands, such as "const
   * float acc, const kiln__index row"; types are keywords or begin with kiln__.
   * The kernel then calls name(args, ...). If this member is not NULL, `operand`
   * is NULL. The text must follow from the other members of the spec, since it
   * is not part of the key. */
  const char *parameters;
} kiln__function;

enum { KILN__PAIR_TEXTS = 1 + 2 * KILN_MAX_OUTPUTS };

/* The user's expressions over a target and a source. The fields of the targets
 * are the first arrays of the input, and the fields of the sources are the
 * others. If there are no others, the sources are the targets. */
typedef struct kiln__pairs {
  size_t n_targets;   /* number of fields of a target */
  const char *common; /* statements, or NULL */
  /* One expression per output, NULL from the first unused output on. */
  const char *const *expr;
  const char *const *epilogue; /* one optional expression per output */
} kiln__pairs;

/* Returns text number k < KILN__PAIR_TEXTS of the pairs, or NULL if it is not
 * given, and the name of the text in messages. Text 0 consists of statements. */
const char *kiln__pair_text(const kiln__pairs *p, size_t k, const char **what);

/* A specialisation: everything that decides which code is compiled. Every
 * member belongs to the key of the specialisation cache, unless its comment
 * says otherwise. Initialise the struct with {0}. Objects that the members
 * point to must live until kiln__specialise() returns. */
typedef struct kiln__spec {
  const kiln__family *family;
  /* Values of the macros in family->defines, in the same order. */
  uint32_t value[KILN__MAX_VALUES];
  /* Bit k requests kernel k as a separate program, so that several kernels
   * compile in parallel. The source of such kernels has KILN_MAKES(name)
   * around each kernel. 0 requests all kernels in one program. */
  uint32_t kernels;
  const kiln_input *input; /* input arrays and their map, or NULL */
  /* True if the kernel's vectors may start at any element. The kernel then
   * reads single elements. */
  bool unaligned;
  /* Index of the element at which the kernel's vectors start. This member is
   * not part of the key. It only decides which arrays are aligned at that
   * element. */
  uint32_t first;
  const kiln_op *op; /* the binary operation, or NULL */
  /* The type in which the operation computes. The types f16 and bf16 mean
   * float. The type is required with `op`, otherwise optional. */
  kiln_dtype acc;
  /* device functions; an entry without a name ends the array */
  kiln__function function[KILN__MAX_FUNCTIONS];
  const kiln__pairs *pairs; /* expressions over pairs, or NULL */
  /* Number of elements per row, or 0. If it is not 0, the map and the functions
   * that use its names can use the row and the column of their element. The
   * value is not part of the key. */
  uint64_t width;
  /* True if the index of an element may not fit in 32 bits, or if the width is
   * 1. */
  bool wide;
  /* Views of the input's arrays in normal form (kiln__normal_shape()), or NULL.
   * Only the kinds and the rank are part of the key. */
  const kiln_shape *shape;
  /* Preamble and parameters of the user's code, or NULL. */
  const kiln_code *code;
  /* Number of elements for which the kernel evaluates expressions, or 0 if it is
   * unknown. Only the size class of the number is part of the key
   * (kiln__size_class()). */
  uint64_t elements;
  /* True to compile with less optimisation. Kernels that were measured to be as
   * fast without full optimisation use it, and so do small calls
   * (kiln__quick()). */
  bool quick;
  /* Target suffix that the kernels need: 'a', 'f', or 0 for none. */
  char suffix;
} kiln__spec;

/* Number of elements up to which a call takes 3 to 6 us on an H200. Less
 * optimised code makes such a call at most 0.1 us slower and halves the time
 * of the first call. */
enum { KILN__QUICK_MOST = 1 << 18 };

static inline bool kiln__quick(uint64_t n)
{
  return n <= KILN__QUICK_MOST;
}

/* Size classes of calls. The choice between linked and whole programs depends on
 * the class (link_rule.c). */
typedef enum kiln__size_class {
  KILN__TINY,   /* at most 2^14 elements */
  KILN__FEW,    /* at most KILN__QUICK_MOST elements */
  KILN__MEDIUM, /* at most 2^21 elements */
  KILN__MANY    /* more elements, or an unknown number */
} kiln__size_class;

enum { KILN__TINY_MOST = 1 << 14, KILN__MEDIUM_MOST = 1 << 21 };

static inline kiln__size_class kiln__size_class_of(uint64_t elements)
{
  if (elements == 0 || elements > KILN__MEDIUM_MOST)
    return KILN__MANY;
  return elements <= KILN__TINY_MOST ? KILN__TINY
         : kiln__quick(elements)     ? KILN__FEW
                                     : KILN__MEDIUM;
}

/* Returns the result of kiln__quick(), or false below compute capability 9.0.
 * It is for kernels that spill registers on older GPUs unless they are fully
 * optimised. */
static inline bool kiln__quick_on_9(const kiln_stream *s, uint64_t n)
{
  return kiln__quick(n) && s->device->traits.cc >= 90;
}

/* The kernels of one specialisation, in the order of family->kernels.
 * Entries of kernels that were not requested are NULL. The device owns the
 * kernels until the device is freed. */
typedef struct kiln__kernel_set {
  kiln_kernel *kernel[KILN__MAX_KERNELS];
  /* One module per kernel if the spec selects some of the kernels, otherwise
   * one module that contains all kernels of the family. */
  kiln_module *module[KILN__MAX_KERNELS];
} kiln__kernel_set;

/* Finds the kernels of a spec in the device's specialisation cache, or
 * compiles and inserts them. The user's expressions and parameters are
 * checked here, only on a cache miss. Returns the status codes of
 * kiln/ops.h; *out is NULL after a failure. Thread-safe. Blocks while the
 * kernels compile. */
kiln_status kiln__specialise(const kiln__kernel_set **out, kiln_device *device,
                             const kiln__spec *spec);
/* Does what kiln__specialise() does for the n specs of one call. Specs that
 * miss the cache compile in parallel. After a failure, all out[] are NULL. */
kiln_status kiln__specialise_all(const kiln__kernel_set *out[],
                                 kiln_device *device,
                                 const kiln__spec *const spec[], size_t n);

/* The names by which error messages refer to the user's expressions
 * (kiln__function.what). */
#define KILN__MAP_NAME "the map expression"
#define KILN__OPERATION_NAME "the operation"
#define KILN__IDENTITY_NAME "the operation's identity"

/* The kernel argument of type `user::args`. It contains the addresses of the
 * input's arrays, the parameters that are not constant, 8 bytes each, and with
 * rows their width and its reciprocal. Sizes, reciprocals and strides follow if
 * a view has strides. The argument is never empty. */
typedef struct kiln__args {
  uint64_t slot[KILN_MAX_INPUTS + KILN__MAX_PARAMS + 2 +
                KILN_MAX_AXES * (2 + KILN_MAX_INPUTS)];
  size_t size; /* size of the argument in bytes */
} kiln__args;

void kiln__user_args(kiln__args *out, const kiln__spec *spec);

/* Initialises an element of a kiln_arg array. */
#define KILN__USER_ARG(args)                                                   \
  {                                                                            \
    (args).slot, (args).size                                                   \
  }

/* Writes the headers <kiln/generated.cuh> and <kiln/generated_texts.cuh> of
 * a spec; kernels_src/kiln/user.cuh lists what the headers define. If bit k
 * of `aligned` is set, 16-byte loads may read array k. Returns KILN_OK or
 * KILN_ENOMEM. */
kiln_status kiln__generate(kiln__buf *types, kiln__buf *texts,
                           const kiln__spec *spec, uint32_t aligned);

/* Writes the header <kiln/generated.cuh> and the source of the expressions'
 * program for a linked program. The header depends on the types of a spec, but
 * not on the text of its expressions. kiln__links() must have returned true. */
kiln_status kiln__generate_linked(kiln__buf *types, kiln__buf *source,
                                  const kiln__spec *spec, uint32_t aligned);
/* Returns whether the program of a spec is linked from a kernel and its
 * expressions. The result depends only on the arguments. */
bool kiln__links(const kiln__spec *spec, kiln__link_use use);

/* Adds the declarations of the user's parameters to the body of a function. */
void kiln__generate_params(kiln__buf *out, const kiln_code *code);
/* Adds the part of kiln__generate() that belongs to spec->pairs. The first
 * function declares what the second one defines. */
void kiln__generate_pair_types(kiln__buf *out, const kiln__spec *spec);
void kiln__generate_pair_texts(kiln__buf *out, const kiln__spec *spec);

/* Copies a compiler's log. Some messages point after the end of the user's
 * expression, to the bracket that closes Kiln's function around the
 * expression. In the copy, such a message points to the end of the
 * expression and shows its last line. `what` is the name of the expression
 * in the log. */
void kiln__point_into_text(kiln__buf *out, const char *log, const char *what,
                           const char *text);

/* Returns the end of the last #include directive of a preamble, or the end of
 * the #if block around that directive. Returns the start of the preamble if it
 * has no #include directive. */
const char *kiln__after_includes(const char *preamble);

/* Checks that a text can be one C++ expression. Only brackets, quotes and
 * comments are checked. Returns KILN_OK, or KILN_ECOMPILE with the source line
 * and a caret in the log. `what` is the name of the expression in messages,
 * such as "the map expression". */
kiln_status kiln__check_text(const char *what, const char *text);
/* Does what kiln__check_text() does for a sequence of statements. */
kiln_status kiln__check_statements(const char *what, const char *text);
/* Returns whether a map expression reads other elements than its own, by
 * x_at(j), y_at(j) and so on. `text` may be NULL. */
bool kiln__reads_neighbours(const char *text);
/* Checks the parameters of the user's code. Returns KILN_EINVAL if a
 * parameter lacks a name, value or type, has a name that cannot be declared,
 * or has the name of another parameter. */
kiln_status kiln__check_code(const kiln_code *code);

/* ---- Temporary storage of a call ----------------------------------------- */

/* The temporary storage that a call needs. A tile descriptor is a 64-bit
 * word. The upper half holds epoch and status, and is never 0; the lower
 * half holds 32 bits of a value (kernels_src/kiln/look_back.cuh).
 * Descriptors of earlier calls hold other epochs and count as empty, so
 * nothing is cleared between calls. */
typedef struct kiln__need {
  /* Size of temporary memory in bytes; the contents are undefined. */
  size_t temp;
  size_t descriptors; /* number of tile descriptors */
} kiln__need;

/* Returns the number of tile descriptors for a leader-block prefix, in which
 * block 0 computes the prefix of each of `tiles` tiles. Each prefix has
 * `width` bytes (kernels_src/kiln/leader_prefix.cuh). */
static inline size_t kiln__leader_descriptors(uint64_t tiles, size_t width)
{
  return (size_t)tiles * 2 * ((width + 3) / 4);
}

typedef struct kiln__storage {
  kiln_stream *stream;
  /* Address of the temporary memory, aligned to 256 bytes. */
  CUdeviceptr temp;
  /* Address of the tile descriptors, aligned to 256 bytes. */
  CUdeviceptr descriptors;
  uint32_t epoch; /* the epoch that the last kernel used */
  /* True if `temp` comes from the pool and must be freed in the stream. */
  bool from_pool;
  bool locked; /* true if the call holds the lock of the stream's storage */
  /* True while the device's context is current, which is until
   * kiln__storage_close(). Launches then need not change the context. */
  bool entered;
  kiln__scope scope;
} kiln__storage;

/* Returns the size in bytes of a workspace that provides the storage `need`.
 * kiln_NAME_workspace() returns this size. */
size_t kiln__need_bytes(kiln__need need);
/* Adds `bytes` of temporary memory to the storage that a call needs. Returns
 * the offset of the added memory in `temp`, a multiple of 256. */
size_t kiln__need_temp(kiln__need *need, size_t bytes);

/* Opens the temporary storage of a call in a stream and makes the device's
 * context current. kiln__storage_close() closes the storage and restores the
 * context. The storage is the caller's workspace if there is one, else the
 * storage that the stream keeps between calls, else memory of the pool. While a
 * call has the stream's storage open, no other call uses that storage. Returns
 * KILN_EINVAL if the workspace is misaligned or too small. The message about a
 * small workspace has both sizes. After a failure there is nothing to close. */
kiln_status kiln__storage_open(kiln__storage *storage, kiln_stream *stream,
                               const kiln_workspace *workspace,
                               kiln__need need);
/* Returns a new epoch for the next kernel that uses the tile descriptors. */
uint32_t kiln__storage_epoch(kiln__storage *storage);
void kiln__storage_close(kiln__storage *storage);

/* Queues a fill of the first n elements of an array with zeros. */
kiln_status kiln__zero(kiln_stream *in, kiln_array a, uint64_t n);

/* ---- Checks -------------------------------------------------------------- */

enum { KILN__MAX_RANGES = 2 * (KILN_MAX_INPUTS + KILN_MAX_OUTPUTS) };

/* Collects the arrays of a call for the overlap check, and keeps the first
 * error. */
typedef struct kiln__checker {
  const char *call; /* name of the public function, such as "kiln_scan" */
  kiln_status st;
  unsigned allowed; /* kiln__allowed */
  struct {
    uint64_t begin, end;
    const char *name;
    uint32_t size; /* bytes per element */
    bool written, may_equal;
  } range[KILN__MAX_RANGES];
  size_t n;
} kiln__checker;

/* Element types that only some operations support. */
typedef enum kiln__allowed {
  KILN__ALLOW_STRUCTS = 1,
  KILN__ALLOW_COMPLEX = 2,
  KILN__ALLOW_ALL = KILN__ALLOW_STRUCTS | KILN__ALLOW_COMPLEX
} kiln__allowed;

/* Allows element types in the arrays that are added from now on. Without this
 * call, the checks refuse structs and complex numbers. */
static inline void kiln__check_allow(kiln__checker *c, kiln__allowed types)
{
  c->allowed = types;
}

/* Checks that elements of type `from` can be converted to type `to`. Structs
 * convert only to themselves, and complex numbers only to complex numbers. */
void kiln__check_converts(kiln__checker *c, const char *name, kiln_dtype from,
                          kiln_dtype to);

/* Starts the checks of a call. Returns KILN_EINVAL if the stream or the desc
 * is NULL. */
kiln_status kiln__check_begin(kiln__checker *c, const char *call,
                              const kiln_stream *stream, const void *desc);
void kiln__check_read(kiln__checker *c, const char *name, kiln_array a,
                      uint64_t n);
void kiln__check_write(kiln__checker *c, const char *name, kiln_array a,
                       uint64_t n);
/* Adds an output that may be in place. The output may be the same array as
 * an input if both start at the same address and have elements of the same
 * size. */
void kiln__check_in_place(kiln__checker *c, const char *name, kiln_array a,
                          uint64_t n);
/* Checks rank, sizes and kinds of a shape, which may be NULL. */
void kiln__check_shape(kiln__checker *c, const kiln_shape *shape, size_t arrays,
                       uint64_t n);
/* Adds the elements of input array k that the call reads through its view. */
void kiln__check_viewed(kiln__checker *c, const char *name, kiln_array a,
                        const kiln_shape *shape, size_t k, uint64_t n);
/* Adds all arrays of an input. The call only reads these arrays. */
void kiln__check_input(kiln__checker *c, const char *name, const kiln_input *x,
                       uint64_t n);
/* Checks a condition that the other checks do not cover. If the condition is
 * false, the status becomes KILN_EINVAL with the formatted message. The message
 * is evaluated only if the condition is false. */
void kiln__check_failed(kiln__checker *c, const char *format, ...)
    KILN_PRINTF(2, 3);
#define kiln__check_that(c, holds, ...)                                        \
  ((holds) ? (void)0 : kiln__check_failed(c, __VA_ARGS__))
/* Checks that no parameter has one of the names that a call gives to its
 * expressions in addition. `taken` lists these names with blanks around each. */
void kiln__check_names(kiln__checker *c, const kiln_code *code,
                       const char *taken);
/* Checks the collected arrays for overlaps and returns the status of all
 * checks. */
kiln_status kiln__check_end(kiln__checker *c);
/* Adds the workspace, which is the last array of a call, and ends the
 * checks. */
kiln_status kiln__check_workspace(kiln__checker *c, const kiln_workspace *w);

#ifdef __clang_analyzer__
/* The static analyzer sees one file at a time and does not know what a
 * successful check implies, so these macros state it as assumptions. */
#define kiln__check_begin(c, call, stream, desc)                               \
  (kiln__check_begin(c, call, stream, desc),                                   \
   (c)->st = (stream) == NULL || (desc) == NULL ? KILN_EINVAL : KILN_OK)
#define kiln__check_failed(c, ...)                                             \
  (kiln__check_failed(c, __VA_ARGS__),                                         \
   (c)->st = (c)->st == KILN_OK ? KILN_EINVAL : (c)->st, (void)0)
#define kiln__check_end(c) (kiln__check_end(c), (c)->st)
#define kiln__check_workspace(c, w) (kiln__check_workspace(c, w), (c)->st)
#endif

/* Checks the operation of a call. A named operation must support the type, and
 * a user-defined operation needs an identity. */
void kiln__check_op(kiln__checker *c, const kiln_op *op, kiln_dtype acc);

/* ---- Operations that call other operations ------------------------------- */

/* Returns the specialisation that kiln_histogram() needs for a valid desc.
 * An operation that calls kiln_histogram() can then compile that kernel in
 * parallel with its own kernels. */
kiln__spec kiln__histogram_spec(const kiln_stream *stream,
                                const kiln_histogram_desc *desc);
/* Checks the bounds of bins of equal width for the samples desc->x. */
void kiln__check_bounds(kiln__checker *c, const kiln_histogram_desc *desc);

/* ---- Tuning -------------------------------------------------------------- */

typedef enum kiln__tuned_family {
#define KILN_TUNED_FAMILY(id, name) KILN__TUNED_##id,
#include "tuning.def"
  KILN__TUNED_COUNT
} kiln__tuned_family;

typedef kiln_tuning kiln__tuning;

/* Chooses the launch parameters of an operation for n elements of `size` bytes.
 * The parameters come from measurements on this GPU (`kiln tune`), else from
 * the most specific row of the built-in table. */
kiln__tuning kiln__tuned(kiln_device *device, kiln__tuned_family family,
                         unsigned size, uint64_t n);

/* Returns the result of kiln__tuned() for elements of any size. The rows have
 * sizes of 1, 2, 4 and 8 bytes. A wider element counts as several elements of 8
 * bytes, so that a thread has about as many bytes. */
kiln__tuning kiln__tuned_for(kiln_device *device, kiln__tuned_family family,
                             size_t size, uint64_t n);

/* Returns false if no parameters were measured on this GPU for such calls.
 * Otherwise works like kiln__tuned(). */
bool kiln__tuned_here(kiln_device *device, kiln__tuned_family family,
                      unsigned size, uint64_t n, kiln__tuning *out);

/* Returns the number of tiles by which a kernel prefetches its input if its
 * blocks wait for their predecessors. The prefetched data fill at most a
 * tenth of the L2 cache. Returns 0 if the input is smaller than four times
 * the cache. On an H200, a scan of 2^28 u32 took 617 us without prefetch and
 * 560 us with a prefetch distance of 4 to 9 MB. Larger distances were
 * slower: 610 us with 13 MB, 770 us with 26 MB. */
uint32_t kiln__prefetch_tiles(const kiln_device *device, const kiln_input *x,
                              uint64_t n, uint64_t tiles);

/* Returns the number of SMs of a device, or 16 if the device does not report
 * the number. */
static inline uint64_t kiln__sm_count(const kiln_device *on)
{
  return on->info.sm_count > 0 ? (uint64_t)on->info.sm_count : 16;
}

/* ---- Launch -------------------------------------------------------------- */

static inline uint64_t kiln__divide_up(uint64_t a, uint64_t b)
{
  return b == 0 ? 0 : a / b + (a % b != 0);
}

/* Returns the configuration of a one-dimensional launch of `blocks` blocks in a
 * stream. */
static inline kiln_launch_config kiln__grid(kiln_stream *on, uint64_t blocks,
                                            uint32_t threads)
{
  kiln_launch_config config = kiln_launch_1d(blocks, 1);

  config.block.x = threads;
  config.stream = on;
  return config;
}

/* Returns the number of blocks of a kernel that can be resident on the device at
 * the same time, at least 1. The kernel must use no dynamic shared memory. */
uint64_t kiln__resident_blocks(const kiln_stream *stream,
                               const kiln_kernel *kernel, uint32_t threads);

/* The data for the launch of a kernel that uses temporary storage and the
 * user's expressions. */
typedef struct kiln__call {
  const kiln__kernel_set *set;
  kiln__storage storage; /* the caller closes it with kiln__storage_close() */
  kiln__args args;
  uint32_t epoch; /* epoch of the launch's tile descriptors */
} kiln__call;

/* Finds or compiles the kernels of a spec, opens the temporary storage and
 * fills the other members of *call. After a failure there is nothing to
 * close. */
kiln_status kiln__call_open(kiln__call *call, kiln_stream *stream,
                            const kiln__spec *spec,
                            const kiln_workspace *workspace, kiln__need need);

/* ---- The exported functions ---------------------------------------------- */

/* Defines kiln_NAME_workspace(). prepare(&request, stream, desc, NULL) performs
 * the checks of kiln_NAME() and sets the member `need` of the request. */
#define KILN__WORKSPACE(name, desc_type, request_type, prepare)                \
  kiln_status name##_workspace(kiln_stream *stream, const desc_type *desc,     \
                               size_t *bytes)                                  \
  {                                                                            \
    request_type made;                                                         \
    kiln_status st;                                                            \
                                                                               \
    if (bytes == NULL)                                                         \
      return kiln__fail(KILN_EINVAL, NULL, #name "_workspace: bytes is NULL"); \
    *bytes = 0;                                                                \
    st = prepare(&made, stream, desc, NULL);                                   \
    if (st == KILN_OK)                                                         \
      *bytes = kiln__need_bytes(made.need);                                    \
    return st;                                                                 \
  }

/* Defines kiln_NAME() and kiln_NAME_workspace() of an operation.
 *
 *   prepare(&request, stream, desc, workspace) checks the arguments and fills
 *     the request. Its member `need` is the temporary storage of the call. The
 *     workspace is NULL if only its size is requested.
 *   run(stream, &request, workspace) queues the launches. */
#define KILN__DEFINE_OPERATION(name, desc_type, request_type, prepare, run)    \
  kiln_status name(kiln_stream *stream, const desc_type *desc,                 \
                   const kiln_workspace *workspace)                            \
  {                                                                            \
    request_type made;                                                         \
    const kiln_status st = prepare(&made, stream, desc, workspace);            \
                                                                               \
    return st == KILN_OK ? run(stream, &made, workspace) : st;                 \
  }                                                                            \
  KILN__WORKSPACE(name, desc_type, request_type, prepare)

#endif
