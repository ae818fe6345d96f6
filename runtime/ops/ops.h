/* ops.h -- what all families of operations are built on: element types, users' texts
 * as device functions, specialised kernels, temporary storage, argument checks and
 * tuning. Only files of runtime/ops include it. Every call goes the same way:
 *
 *   desc -> checks -> kiln__spec -> kiln__specialise() -> kernels
 *        -> kiln__storage_open() -> launches -> kiln__storage_close() */
#ifndef KILN_OPS_INTERNAL_H
#define KILN_OPS_INTERNAL_H

#include "../device/device.h"

#include <kiln/histogram.h>
#include <kiln/ops.h>
#include <kiln/tune.h>

/* ---- Types ------------------------------------------------------------------ */

typedef struct kiln__dtype {
  const char *name;    /* "f16" */
  const char *storage; /* in C++, as it lies in memory: "kiln::f16" */
  const char *compute; /* in C++, as texts see it: "float" */
  uint8_t size;        /* bytes */
  bool is_float, is_signed;
  kiln_dtype computed; /* the type that `compute` is */
} kiln__dtype;

/* The properties of a type; NULL for a value that is none. */
const kiln__dtype *kiln__dtype_of(kiln_dtype type);

/* kiln_dtype_size() without a table, since a call needs it dozens of times: one
 * hexadecimal digit per type. An analyzer gets the plain function; it would warn
 * of values that are no type, which the checks have refused before. */
#ifdef __clang_analyzer__
#define kiln__size kiln_dtype_size
#else
static inline size_t kiln__size(kiln_dtype type)
{
  return (unsigned)type <= KILN_F64
             ? (size_t)(UINT64_C(0x8422884422110) >> 4 * (unsigned)type & 15)
             : 0;
}
#endif

/* The type of an input's elements after its map. */
kiln_dtype kiln__input_type(const kiln_input *x);
/* The number of arrays of an input. */
static inline size_t kiln__input_arrays(const kiln_input *x)
{
  size_t n = 0;

  while (n < KILN_MAX_INPUTS && x->in[n].type != KILN_DTYPE_NONE)
    n++;
  return n;
}

/* ---- Specialisations --------------------------------------------------- */

enum {
  KILN__MAX_VALUES = 24,
  KILN__MAX_FUNCTIONS = 6,
  KILN__MAX_KERNELS = 8,
  KILN__MAX_PARAMS = 16
};

/* A macro of the kernel source: a number, or the C++ type that a kiln_dtype has in
 * memory (KILN_T). */
typedef struct kiln__param {
  const char *name;
  bool is_type;
} kiln__param;

typedef struct kiln__family {
  const char *builtin;        /* "scan": kernels_src/scan.cu */
  const char *const *kernels; /* extern "C" names, NULL-terminated */
  const kiln__param *defines; /* ended by one without a name */
} kiln__family;

/* A user's text that the kernel calls as a device function in namespace user. The
 * text sees the parameters of kiln_code by name. */
typedef struct kiln__function {
  const char *name; /* "predicate" */
  const char *what; /* in messages: "the predicate" */
  const char *expr; /* NULL: there is no function; a define selects the case */
  const char *result; /* C++ type: "bool"; types of namespace user are `value`
                         (of a mapped element) and `acc` */
  const char
      *operand; /* C++ type of a and b in `result name(args, a, b)`; NULL:
                          the text sees what a map sees, and the kernel calls
                          NAME_at(args, vector, e, i) */
} kiln__function;

/* One specialisation: all that decides which code is compiled. Everything in it
 * belongs to the key of the specialisation cache, unless a member says otherwise.
 * Start from {0}. What it points to must live until the kernels are found. */
typedef struct kiln__spec {
  const kiln__family *family;
  uint32_t value[KILN__MAX_VALUES]; /* of family->defines, in order */
  uint32_t kernels; /* bit k: kernel k is wanted and becomes a program of its
                        own (its source has KILN_MAKES(name) around it), so that
                        several compile in parallel. 0: all, in one program */
  const kiln_input *input; /* NULL: none */
  bool unaligned;    /* the kernel's vectors may start at any element, so it
                     must read them element by element */
  uint32_t first;    /* element at which the kernel's vectors start. It is not
                        part of the key: it only decides which arrays are
                        aligned there */
  const kiln_op *op; /* NULL: none */
  kiln_dtype acc;    /* the operation's type; f16 and bf16 mean float. Needed
                        with op, else optional */
  kiln__function function[KILN__MAX_FUNCTIONS]; /* first without name ends */
  const kiln_code *code;                        /* NULL: none */
  bool quick; /* compile with less optimisation: for kernels that were measured
                 to be as fast then, and for small calls (kiln__quick()) */
} kiln__spec;

/* Calls on at most this many elements take 3 to 6 us on an H200. Less optimised
 * code makes them at most 0.1 us slower and halves the time of the first call. */
enum { KILN__QUICK_MOST = 1 << 18 };

static inline bool kiln__quick(uint64_t n)
{
  return n <= KILN__QUICK_MOST;
}

/* The same for kernels that spill registers without full optimisation, except
 * from compute capability 9.0 on. */
static inline bool kiln__quick_on_9(const kiln_stream *s, uint64_t n)
{
  return kiln__quick(n) && s->device->traits.cc >= 90;
}

/* The kernels of one specialisation, in the family's order; NULL for those that
 * were not wanted. The device owns them until it is freed. */
typedef struct kiln__kernel_set {
  kiln_kernel *kernel[KILN__MAX_KERNELS];
  kiln_module *module[KILN__MAX_KERNELS]; /* one for all, or one per kernel */
} kiln__kernel_set;

/* Finds the kernels of a spec in the device's specialisation cache, or compiles and
 * inserts them. Texts and parameters of users are checked here, on a miss only.
 * Returns the statuses of kiln/ops.h; *out is NULL after a failure. Any thread may
 * call; a miss blocks while it compiles. */
kiln_status kiln__specialise(const kiln__kernel_set **out, kiln_device *device,
                             const kiln__spec *spec);
/* The same for n specs of one call, whose misses compile in parallel. After a
 * failure all out[] are NULL. */
kiln_status kiln__specialise_all(const kiln__kernel_set *out[],
                                 kiln_device *device,
                                 const kiln__spec *const spec[], size_t n);

/* Names of texts in messages, as kiln__function.what. */
#define KILN__MAP_NAME "the map expression"
#define KILN__OPERATION_NAME "the operation"
#define KILN__IDENTITY_NAME "the operation's identity"

/* The kernel argument `user::args`: the addresses of the input's arrays, then the
 * parameters that are not constant, 8 bytes each. It is never empty. */
typedef struct kiln__args {
  uint64_t slot[KILN_MAX_INPUTS + KILN__MAX_PARAMS];
  size_t size; /* bytes */
} kiln__args;

void kiln__user_args(kiln__args *out, const kiln__spec *spec);

/* As an element of a list of kiln_arg. */
#define KILN__USER_ARG(args)                                                   \
  {                                                                            \
    (args).slot, (args).size                                                   \
  }

/* Writes the headers <kiln/generated.cuh> and <kiln/generated_texts.cuh> of a spec;
 * kernels_src/kiln/user.cuh lists what they define. Bit k of `aligned`: array k
 * may be read by loads of 16 bytes. KILN_OK, KILN_ENOMEM. */
kiln_status kiln__generate(kiln__buf *types, kiln__buf *texts,
                           const kiln__spec *spec, uint32_t aligned);

/* Copies a compiler's log. Where a message points behind the end of a user's text,
 * to the bracket that closes Kiln's function around it, the copy points to the end
 * of the text and shows its last line. `what`: the text's name in the log. */
void kiln__point_into_text(kiln__buf *out, const char *log, const char *what,
                           const char *text);

/* The place in a preamble behind its last #include directive, and behind the
 * conditionals around that one; the start of the text where there is none. */
const char *kiln__after_includes(const char *preamble);

/* Checks that a text can be one C++ expression as far as brackets, quotes and
 * comments decide. KILN_OK, or KILN_ECOMPILE with line and caret in the log.
 * `what` names the text in messages: "the map expression". */
kiln_status kiln__check_text(const char *what, const char *text);
/* Does a map's text read other elements, by x_at(j) or its like? Text may be
 * NULL. */
bool kiln__reads_neighbours(const char *text);
/* Checks the parameters of a user's code. KILN_EINVAL for one without name, value
 * or type, with a name that cannot be declared, or with the name of another. */
kiln_status kiln__check_code(const kiln_code *code);

/* ---- Temporary storage of a call ------------------------------------------------ */

/* What a call needs. A tile descriptor is a 64-bit word: the upper half holds epoch
 * and status, which is never 0, the lower half 32 bits of a value
 * (kernels_src/kiln/look_back.cuh). Descriptors of earlier calls hold other epochs
 * and count as empty, so nothing is cleared between calls. */
typedef struct kiln__need {
  size_t temp;        /* bytes; contents undefined */
  size_t descriptors; /* number of tile descriptors */
} kiln__need;

/* Tile descriptors for a leader-block prefix: block 0 computes the prefix of each of
 * `tiles` tiles, `width` bytes each (kernels_src/kiln/leader_prefix.cuh). */
static inline size_t kiln__leader_descriptors(uint64_t tiles, size_t width)
{
  return (size_t)tiles * 2 * (width == 8 ? 2 : 1);
}

typedef struct kiln__storage {
  kiln_stream *stream;
  CUdeviceptr temp;        /* aligned to 256 bytes */
  CUdeviceptr descriptors; /* aligned to 256 bytes */
  uint32_t epoch;          /* the last one used */
  bool from_pool;          /* free `temp` in the stream */
  bool locked;
  bool entered; /* the context is current until close, which spares each
                   launch the change */
  kiln__scope scope;
} kiln__storage;

/* Bytes of workspace that a need takes: the result of kiln_NAME_workspace(). */
size_t kiln__need_bytes(kiln__need need);
/* Adds bytes of temporary memory to a need and returns their offset in `temp`, a
 * multiple of 256. */
size_t kiln__need_temp(kiln__need *need, size_t bytes);

/* Opens the temporary storage of a call in a stream and makes the device's context
 * current; kiln__storage_close() ends both. The storage is the caller's workspace
 * if that has data, else what the stream keeps, else memory of the pool. While it
 * is open, no other call uses what the stream keeps. KILN_EINVAL: the workspace is
 * too small, in which case the message has both sizes, or misaligned. After a
 * failure there is nothing to close. */
kiln_status kiln__storage_open(kiln__storage *storage, kiln_stream *stream,
                               const kiln_workspace *workspace,
                               kiln__need need);
/* A new epoch, for the next kernel that uses the descriptors. */
uint32_t kiln__storage_epoch(kiln__storage *storage);
void kiln__storage_close(kiln__storage *storage);

/* Queues zeros for n elements of an array in the stream. */
kiln_status kiln__zero(kiln_stream *in, kiln_array a, uint64_t n);

/* Defines kiln_NAME_workspace(stream, desc, bytes). need_of(need, stream, desc)
 * checks the call as kiln_NAME() does and sets what it needs, which is nothing
 * before. */
#define KILN__WORKSPACE(name, desc_type, need_of)                              \
  kiln_status name##_workspace(kiln_stream *stream, const desc_type *desc,     \
                               size_t *bytes)                                  \
  {                                                                            \
    kiln__need need = {0, 0};                                                  \
    kiln_status st;                                                            \
                                                                               \
    if (bytes == NULL)                                                         \
      return kiln__fail(KILN_EINVAL, NULL, #name "_workspace: bytes is NULL"); \
    *bytes = 0;                                                                \
    st = need_of(&need, stream, desc);                                         \
    if (st == KILN_OK)                                                         \
      *bytes = kiln__need_bytes(need);                                         \
    return st;                                                                 \
  }

/* ---- Checks -------------------------------------------------------------------- */

enum { KILN__MAX_RANGES = 2 * (KILN_MAX_INPUTS + KILN_MAX_OUTPUTS) };

/* Collects the arrays of a call; the first error stays. */
typedef struct kiln__checker {
  const char *call; /* "kiln_scan" */
  kiln_status st;
  struct {
    uint64_t begin, end;
    const char *name;
    uint32_t size; /* bytes of an element */
    bool written, may_equal;
  } range[KILN__MAX_RANGES];
  size_t n;
} kiln__checker;

/* Starts the checks. KILN_EINVAL without a stream or a desc. */
kiln_status kiln__check_begin(kiln__checker *c, const char *call,
                              const kiln_stream *stream, const void *desc);
void kiln__check_read(kiln__checker *c, const char *name, kiln_array a,
                      uint64_t n);
void kiln__check_write(kiln__checker *c, const char *name, kiln_array a,
                       uint64_t n);
/* An output that may be in place: the same array as one that is read, from the same
 * first element on and with elements of the same size. */
void kiln__check_in_place(kiln__checker *c, const char *name, kiln_array a,
                          uint64_t n);
/* All arrays of an input, which are read. */
void kiln__check_input(kiln__checker *c, const char *name, const kiln_input *x,
                       uint64_t n);
void kiln__check_workspace(kiln__checker *c, const kiln_workspace *w);
/* Any other condition. Where it is false, the verdict becomes KILN_EINVAL with this
 * text, which is evaluated only then. */
void kiln__check_failed(kiln__checker *c, const char *format, ...)
    KILN_PRINTF(2, 3);
#define kiln__check_that(c, holds, ...)                                        \
  ((holds) ? (void)0 : kiln__check_failed(c, __VA_ARGS__))
/* Checks for overlaps and returns the verdict. */
kiln_status kiln__check_end(kiln__checker *c);

#ifdef __clang_analyzer__
/* The analyzer sees one file at a time and does not know what a passed check
 * means. */
#define kiln__check_begin(c, call, stream, desc)                               \
  (kiln__check_begin(c, call, stream, desc),                                   \
   (c)->st = (stream) == NULL || (desc) == NULL ? KILN_EINVAL : KILN_OK)
#define kiln__check_failed(c, ...)                                             \
  ((c)->st = (c)->st == KILN_OK ? KILN_EINVAL : (c)->st, (void)0)
#define kiln__check_end(c) (kiln__check_end(c), (c)->st)
#endif

/* A named operation must fit the type; a user's one needs an identity. */
void kiln__check_op(kiln__checker *c, const kiln_op *op, kiln_dtype acc);

/* ---- Calls within calls ------------------------------------------------------------ */

/* The specialisation that kiln_histogram() will need for a valid desc, so that an
 * operation which calls it compiles its own kernels in parallel. */
kiln__spec kiln__histogram_spec(const kiln_stream *stream,
                                const kiln_histogram_desc *desc);

/* ---- Tuning ---------------------------------------------------------------------- */

typedef enum kiln__tuned_family {
#define KILN_TUNED_FAMILY(id, name) KILN__TUNED_##id,
#include "tuning.def"
  KILN__TUNED_COUNT
} kiln__tuned_family;

typedef kiln_tuning kiln__tuning;

/* Chooses the parameters of a family for n elements of `size` bytes: what was
 * measured on this GPU (`kiln tune`), else the table's most specific row. */
kiln__tuning kiln__tuned(kiln_device *device, kiln__tuned_family family,
                         unsigned size, uint64_t n);

/* The number of tiles by which a kernel whose blocks wait for their predecessors
 * prefetches its input: as much as a tenth of the second-level cache holds, or 0
 * where the input is less than four times the cache. On an H200 a scan of 2^28 u32
 * took 617 us without prefetch, 560 with 4 to 9 MB ahead, 610 with 13 and 770 with
 * 26. */
uint32_t kiln__prefetch_tiles(const kiln_device *device, const kiln_input *x,
                              uint64_t n, uint64_t tiles);

/* ---- Launch ------------------------------------------------------------------------ */

static inline uint64_t kiln__divide_up(uint64_t a, uint64_t b)
{
  return b == 0 ? 0 : a / b + (a % b != 0);
}

#endif
