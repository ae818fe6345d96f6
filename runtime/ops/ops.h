/* ops.h -- what the families of operations are built on: types, the user's texts
 * as device functions, specialised kernels, temporary memory, checks, tuning.
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

/* NULL for no type. */
const kiln__dtype *kiln__dtype_of(kiln_dtype type);

/* kiln_dtype_size(), asked for dozens of times a call: a digit for each type. An
 * analyzer that looks into it would warn of types that are none, which the checks
 * turn away first. */
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

/* Type of an input's elements after its map. */
kiln_dtype kiln__input_type(const kiln_input *x);
/* Arrays of an input. */
static inline size_t kiln__input_arrays(const kiln_input *x)
{
  size_t n = 0;

  while (n < KILN_MAX_INPUTS && x->in[n].type != KILN_DTYPE_NONE)
    n++;
  return n;
}

/* ---- What a family asks for --------------------------------------------------- */

enum {
  KILN__MAX_VALUES = 24,
  KILN__MAX_FUNCTIONS = 6,
  KILN__MAX_KERNELS = 8,
  KILN__MAX_PARAMS = 16
};

/* A macro of the kernel source: a number, or the C++ type of a kiln_dtype as it
 * lies in memory (KILN_T). */
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
  const char *expr; /* NULL: there is no function; a define tells the kernel */
  const char *result; /* C++ type: "bool"; types of namespace user are `value`
                         (of a mapped element) and `acc` */
  const char
      *operand; /* C++ type of a and b in `result name(args, a, b)`; NULL:
                          the text sees what a map sees, and the kernel calls
                          NAME_at(args, vector, e, i) */
} kiln__function;

/* One specialisation. Everything in it belongs to the key. Start from {0}. */
typedef struct kiln__spec {
  const kiln__family *family;
  uint32_t value[KILN__MAX_VALUES]; /* of family->defines, in order */
  uint32_t kernels; /* bit k: kernel k is wanted, as a program of its own, which
                        says KILN_MAKES(name) around it: they are compiled side by
                        side. 0: all, in one program */
  const kiln_input *input; /* NULL: none */
  bool unaligned;    /* the kernel reads the input in packs at places that need
                     not be aligned: element loads only */
  uint32_t first;    /* element at which the kernel's packs start; not part of
                        the key: it only decides which arrays are aligned */
  const kiln_op *op; /* NULL: none */
  kiln_dtype acc;    /* the operation's type; f16 and bf16 mean float. Needed
                        with op, else optional */
  kiln__function function[KILN__MAX_FUNCTIONS]; /* first without name ends */
  const kiln_code *code;                        /* NULL: none */
  bool quick; /* to be compiled with less optimisation: where its code was
                 measured to be as fast, or the call is small (kiln__quick) */
} kiln__spec;

/* Up to so many elements a call takes 3 to 6 us, of which code that is less
 * optimised adds 0.1 us or nothing, for half of the first call's time. */
enum { KILN__QUICK_MOST = 1 << 18 };

static inline bool kiln__quick(uint64_t n)
{
  return n <= KILN__QUICK_MOST;
}

/* The same for kernels that spill registers then, but not from 9.0 on. */
static inline bool kiln__quick_on_9(const kiln_stream *s, uint64_t n)
{
  return kiln__quick(n) && s->device->traits.cc >= 90;
}

/* The kernels of a specialisation, in the family's order; NULL: not wanted. The
 * device's, valid until it is freed. */
typedef struct kiln__kernel_set {
  kiln_kernel *kernel[KILN__MAX_KERNELS];
  kiln_module *module[KILN__MAX_KERNELS]; /* the first alone, or one a kernel */
} kiln__kernel_set;

/* From the device's table, else compiled. Any thread. Statuses of kiln/ops.h.
 * Fields of the spec that users gave (texts, parameters, input types) are
 * checked here, on a miss. */
kiln_status kiln__specialise(const kiln__kernel_set **out, kiln_device *device,
                             const kiln__spec *spec);
/* Several for one call: what has to be compiled is compiled side by side. All or
 * none: after a failure out[] are NULL. */
kiln_status kiln__specialise_all(const kiln__kernel_set *out[],
                                 kiln_device *device,
                                 const kiln__spec *const spec[], size_t n);

/* Names of texts in messages, as kiln__function.what. */
#define KILN__MAP_NAME "the map expression"
#define KILN__OPERATION_NAME "the operation"
#define KILN__IDENTITY_NAME "the operation's identity"

/* The argument `user::args` of a kernel: addresses of the input's arrays, then
 * the parameters that are not constant, 8 bytes each; never empty. */
typedef struct kiln__args {
  uint64_t slot[KILN_MAX_INPUTS + KILN__MAX_PARAMS];
  size_t size; /* bytes */
} kiln__args;

void kiln__user_args(kiln__args *out, const kiln__spec *spec);

/* In a list of kiln_arg. */
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

/* Is a text one C++ expression as far as brackets, quotes and comments go?
 * Otherwise KILN_ECOMPILE with line and caret. `what`: "the map expression". */
kiln_status kiln__check_text(const char *what, const char *text);
/* Does a map's text use x_at(j) or one of its like? NULL: no. */
bool kiln__reads_neighbours(const char *text);
/* KILN_EINVAL for a parameter without name, value or type, or a bad name. */
kiln_status kiln__check_code(const kiln_code *code);

/* ---- Temporary memory of a call ------------------------------------------------ */

/* Mark words: 64 bits each, of which kernels use the upper half for a mark
 * (epoch << 2 | state, never 0) and the lower for 32 bits of payload
 * (kiln/look_back.cuh). Words of former calls hold other epochs and so count as
 * empty: nothing is cleared between calls. */
typedef struct kiln__need {
  size_t temp;        /* bytes, contents undefined */
  size_t descriptors; /* mark words */
} kiln__need;

/* Mark words where a block hands out to so many tiles what is before them, `width`
 * bytes of it (kiln/leader_prefix.cuh). */
static inline size_t kiln__leader_descriptors(uint64_t tiles, size_t width)
{
  return (size_t)tiles * 2 * (width == 8 ? 2 : 1);
}

typedef struct kiln__storage {
  kiln_stream *stream;
  CUdeviceptr temp;        /* aligned to 256 bytes */
  CUdeviceptr descriptors; /* aligned to 256 bytes */
  uint32_t epoch;          /* last one given out */
  bool from_pool;          /* to be freed in the stream */
  bool locked;
  bool entered; /* the context is current until close: each launch in between
                   finds it so */
  kiln__scope scope;
} kiln__storage;

/* Bytes of workspace that a need takes; what kiln_NAME_workspace() answers. */
size_t kiln__need_bytes(kiln__need need);
/* Add a piece of temporary memory, aligned to 256 bytes: its offset in temp. */
size_t kiln__need_temp(kiln__need *need, size_t bytes);

/* From here to close, no other call uses what the stream keeps. The workspace is
 * used if its data is not 0. KILN_EINVAL: a workspace too small (says how much)
 * or misaligned. */
kiln_status kiln__storage_open(kiln__storage *storage, kiln_stream *stream,
                               const kiln_workspace *workspace,
                               kiln__need need);
/* The epoch for the next kernel that uses the words. */
uint32_t kiln__storage_epoch(kiln__storage *storage);
void kiln__storage_close(kiln__storage *storage);

/* Queues zeros for n elements of an array in the stream. */
kiln_status kiln__zero(kiln_stream *in, kiln_array a, uint64_t n);

/* ---- Checks -------------------------------------------------------------------- */

enum { KILN__MAX_RANGES = 2 * (KILN_MAX_INPUTS + KILN_MAX_OUTPUTS) };

/* Collects the arrays of a call; the first complaint stays. */
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

/* No stream or desc: KILN_EINVAL. */
kiln_status kiln__check_begin(kiln__checker *c, const char *call,
                              const kiln_stream *stream, const void *desc);
void kiln__check_read(kiln__checker *c, const char *name, kiln_array a,
                      uint64_t n);
void kiln__check_write(kiln__checker *c, const char *name, kiln_array a,
                       uint64_t n);
/* Written in place: may be the same array as one that is read, from its first
 * element on and with elements of the same size. */
void kiln__check_in_place(kiln__checker *c, const char *name, kiln_array a,
                          uint64_t n);
/* All arrays of an input. */
void kiln__check_input(kiln__checker *c, const char *name, const kiln_input *x,
                       uint64_t n);
void kiln__check_workspace(kiln__checker *c, const kiln_workspace *w);
/* Any other condition; false: KILN_EINVAL with this text, which is not looked at
 * as long as all is well. */
void kiln__check_failed(kiln__checker *c, const char *format, ...)
    KILN_PRINTF(2, 3);
#define kiln__check_that(c, holds, ...)                                        \
  ((holds) ? (void)0 : kiln__check_failed(c, __VA_ARGS__))
/* Overlaps, then the verdict. */
kiln_status kiln__check_end(kiln__checker *c);

#ifdef __clang_analyzer__
/* It looks at one file at a time: tell it what a check that holds means. */
#define kiln__check_begin(c, call, stream, desc)                               \
  (kiln__check_begin(c, call, stream, desc),                                   \
   (c)->st = (stream) == NULL || (desc) == NULL ? KILN_EINVAL : KILN_OK)
#define kiln__check_failed(c, ...)                                             \
  ((c)->st = (c)->st == KILN_OK ? KILN_EINVAL : (c)->st, (void)0)
#define kiln__check_end(c) (kiln__check_end(c), (c)->st)
#endif

/* Does a named operation fit the type; has a user's one an identity? */
void kiln__check_op(kiln__checker *c, const kiln_op *op, kiln_dtype acc);

/* ---- Calls within calls ------------------------------------------------------------ */

/* What kiln_histogram() will ask for: a call that is going to make it has its own
 * kernels compiled beside. desc is valid. */
kiln__spec kiln__histogram_spec(const kiln_stream *stream,
                                const kiln_histogram_desc *desc);

/* ---- Tuning ---------------------------------------------------------------------- */

typedef enum kiln__tuned_family {
#define KILN_TUNED_FAMILY(id, name) KILN__TUNED_##id,
#include "tuning.def"
  KILN__TUNED_COUNT
} kiln__tuned_family;

typedef kiln_tuning kiln__tuning;

/* By what was measured on this GPU (kiln tune), else by the table, else by the
 * model: most specific row first. `size`: bytes of an element. */
kiln__tuning kiln__tuned(kiln_device *device, kiln__tuned_family family,
                         unsigned size, uint64_t n);

/* How many tiles ahead a kernel whose blocks wait for those before them asks for
 * its input: a tenth of the second-level cache (on an H200 a scan of 2^28 u32
 * took 617 us with none, 560 with 4 to 9 MB, 610 with 13 and 770 with 26); 0
 * where the input is not several times the cache. */
uint32_t kiln__prefetch_tiles(const kiln_device *device, const kiln_input *x,
                              uint64_t n, uint64_t tiles);

/* ---- Launch ------------------------------------------------------------------------ */

static inline uint64_t kiln__divide_up(uint64_t a, uint64_t b)
{
  return b == 0 ? 0 : a / b + (a % b != 0);
}

#endif
