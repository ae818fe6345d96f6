/* code.h -- the executable form of checked PTX: functions are arrays of
 * instructions, and the operands of an instruction are slots of the warp's
 * register frame.
 *
 * A slot holds one value per lane. It has 32 elements of type uint32_t (128
 * bytes) for predicates and values of up to 32 bits, or 32 elements of type
 * uint64_t (256 bytes) for 64-bit values.
 *   - A lane of a predicate is 0 or ~0u.
 *   - A lane of a value narrower than 32 bits has zeros in the upper bits.
 * Immediates, and special registers that do not change while a block runs, also
 * have slots. These slots are the constants of the function and are filled when
 * a frame is created. A handler therefore never has to distinguish kinds of
 * operands. Two registers share a slot if they are never live at the same time.
 *
 * A program is read-only while it runs, so any number of threads may run the
 * same program. */
#ifndef KILN_CPU_CODE_H
#define KILN_CPU_CODE_H

#include "../ptx/ptx.h"

#include <string.h>

enum { KILN__WARP = 32, KILN__NO_SLOT = -1 };

typedef struct kiln__cpu_warp kiln__cpu_warp;
typedef struct kiln__cpu_insn kiln__cpu_insn;
typedef struct kiln__cpu_code kiln__cpu_code;
typedef void kiln__cpu_handler(kiln__cpu_warp *w, const kiln__cpu_insn *in);

/* KILN__OP_AS describes an instruction that shares its handler with other
 * instructions. Only exec/ needs the name of the handler. Everywhere else,
 * KILN__OP_AS is equivalent to KILN__OP. */
#define KILN__OP_AS(name, handler, pattern, operands, kind, klass, ptx, sm,    \
                    text)                                                      \
  KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)

/* One enumerator per row of ops.def, for example KILN__OP_add_f32. */
typedef enum kiln__cpu_op {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)          \
  KILN__OP_##name,
#include "ops.def"
#undef KILN__OP
  KILN__N_OPS
} kiln__cpu_op;

/* How the schedulers execute an instruction. `fn` is the handler of the
 * instruction. */
typedef enum kiln__cpu_kind {
  /* The scheduler calls fn for the active lanes and continues with the next
   * instruction. */
  KILN__KIND_SIMPLE = 0,
  /* The scheduler waits until all lanes of the member mask have arrived and
   * then calls fn (shfl.sync, vote.sync, match.sync, redux.sync, bar.warp.sync,
   * .aligned instructions). Slot `e` holds the member mask. If `e` is -1, the
   * instruction has no .sync, and fn applies to the lanes that are present. */
  KILN__KIND_WARP,
  /* The scheduler calls fn and may then switch to another group of lanes
   * (nanosleep, reads of clocks, mbarrier tests, atom.cas, volatile and relaxed loads). */
  KILN__KIND_YIELD,
  KILN__KIND_BRANCH, /* branch to the instruction with index `target` */
  KILN__KIND_SWITCH, /* brx.idx: field a holds the index, vec the targets */
  KILN__KIND_CALL,   /* call of a known function, or of the address in slot a */
  KILN__KIND_RETURN,
  KILN__KIND_EXIT,
  KILN__KIND_TRAP,    /* the instructions trap and brkpt */
  KILN__KIND_BARRIER, /* barrier of the block; see ops/control.def */
  KILN__KIND_CLUSTER  /* barrier.cluster.arrive and barrier.cluster.wait */
} kiln__cpu_kind;

/* The classes of instructions that the performance counters distinguish. */
#define KILN__CLASSES(X)                                                       \
  X(MOVE, "move")                                                              \
  X(INTEGER, "integer")                                                        \
  X(LOGIC, "logic and shift")                                                  \
  X(COMPARE, "compare and select")                                             \
  X(CONVERT, "convert")                                                        \
  X(FLOAT, "fp32")                                                             \
  X(DOUBLE, "fp64")                                                            \
  X(HALF, "fp16 and bf16")                                                     \
  X(SPECIAL, "special function")                                               \
  X(PARAM, "parameter")                                                        \
  X(GLOBAL_LOAD, "global load")                                                \
  X(GLOBAL_STORE, "global store")                                              \
  X(GENERIC_LOAD, "generic load")                                              \
  X(GENERIC_STORE, "generic store")                                            \
  X(SHARED_LOAD, "shared load")                                                \
  X(SHARED_STORE, "shared store")                                              \
  X(LOCAL_LOAD, "local load")                                                  \
  X(LOCAL_STORE, "local store")                                                \
  X(CONST_LOAD, "constant load")                                               \
  X(ATOMIC, "atomic")                                                          \
  X(TEXTURE, "texture and surface")                                            \
  X(WARP, "warp")                                                              \
  X(BARRIER, "barrier")                                                        \
  X(FENCE, "fence")                                                            \
  X(BRANCH, "branch")                                                          \
  X(CALL, "call and return")                                                   \
  X(OTHER, "other")                                                            \
  X(TENSOR, "tensor")                                                          \
  X(BULK_LOAD, "bulk load")                                                    \
  X(BULK_STORE, "bulk store")

typedef enum kiln__cpu_class {
#define KILN__CLASS(name, text) KILN__CLASS_##name,
  KILN__CLASSES(KILN__CLASS)
#undef KILN__CLASS
      KILN__N_CLASSES
} kiln__cpu_class;

typedef enum kiln__cpu_round {
  /* The opcode has no rounding modifier. Arithmetic then rounds as with .rn. */
  KILN__ROUND_NONE = 0,
  KILN__ROUND_N,
  KILN__ROUND_Z,
  KILN__ROUND_M,
  KILN__ROUND_P,
  KILN__ROUND_NA, /* rounding modifier .rna */
  KILN__ROUND_NI, /* modifier .rni, which rounds to an integral value */
  KILN__ROUND_ZI,
  KILN__ROUND_MI,
  KILN__ROUND_PI
} kiln__cpu_round;

typedef enum kiln__cpu_cmp {
  KILN__CMP_NONE = 0,
  KILN__CMP_EQ,
  KILN__CMP_NE,
  KILN__CMP_LT,
  KILN__CMP_LE,
  KILN__CMP_GT,
  KILN__CMP_GE,
  KILN__CMP_LO,
  KILN__CMP_LS,
  KILN__CMP_HI,
  KILN__CMP_HS,
  KILN__CMP_EQU,
  KILN__CMP_NEU,
  KILN__CMP_LTU,
  KILN__CMP_LEU,
  KILN__CMP_GTU,
  KILN__CMP_GEU,
  KILN__CMP_NUM,
  KILN__CMP_NAN
} kiln__cpu_cmp;

/* The Boolean operations .and, .or and .xor of setp and set, and the operations
 * of the same names of atom, red and redux. */
typedef enum kiln__cpu_bool {
  KILN__BOOL_NONE = 0,
  KILN__BOOL_AND,
  KILN__BOOL_OR,
  KILN__BOOL_XOR,
  KILN__BOOL_POPC
} kiln__cpu_bool;

typedef enum kiln__cpu_sem {
  KILN__SEM_WEAK = 0,
  KILN__SEM_VOLATILE,
  KILN__SEM_RELAXED,
  KILN__SEM_ACQUIRE,
  KILN__SEM_RELEASE,
  KILN__SEM_ACQ_REL,
  KILN__SEM_SC,
  KILN__SEM_MMIO
} kiln__cpu_sem;

typedef enum kiln__cpu_scope_of {
  KILN__SCOPE_NONE = 0,
  KILN__SCOPE_CTA,
  KILN__SCOPE_CLUSTER,
  KILN__SCOPE_GPU,
  KILN__SCOPE_SYS
} kiln__cpu_scope_of;

/* Flags in the `flags` field of an instruction. */
enum {
  KILN__FTZ = 1 << 0,
  KILN__SAT = 1 << 1,
  KILN__APPROX = 1 << 2,
  KILN__NAN = 1 << 3,     /* modifier .NaN of min and max */
  KILN__XORSIGN = 1 << 4, /* modifier .xorsign.abs */
  KILN__RELU = 1 << 5,
  KILN__WIDE_A = 1 << 6,  /* slot a holds a 64-bit address */
  KILN__SYNC = 1 << 7,    /* modifier .sync */
  KILN__ALIGNED = 1 << 8, /* modifier .aligned */
  KILN__UNI = 1 << 9,     /* modifier .uni */
  KILN__GUARD_NOT = 1 << 10,
  KILN__NC = 1 << 11,    /* modifier .nc of ld.global */
  KILN__CARRY = 1 << 12, /* modifier .cc, which writes the carry flag */
  /* The predicate operand that ops.def writes as !T is negated. For other
   * negated operands, a `not` instruction is emitted in front of the
   * instruction. */
  KILN__NEGATE_B = 1 << 13,
  KILN__OOB = 1 << 14, /* modifier .oob of fma */
  KILN__NOINC = 1 << 15,
  KILN__JOIN = 1 << 16,   /* reconvergence point of at least one branch */
  KILN__WIDE_B = 1 << 17, /* the second address is 64-bit */
  /* modifier .satfinite: infinity becomes the largest finite value */
  KILN__SATFINITE = 1 << 18,
  KILN__TO = 1 << 19,         /* modifier .to of cvta */
  KILN__MULTICAST = 1 << 20,  /* modifier .multicast::cluster */
  KILN__HINTED = 1 << 21,     /* modifier .L2::cache_hint */
  KILN__WIDE_C = 1 << 22,     /* the address of the mbarrier is 64-bit */
  KILN__IGNORE_OOB = 1 << 23, /* modifier .ignore_oob */
  KILN__UNUSED = 1 << 24      /* no instruction reads the result of an atom */
};

/* Values of in->sub2 for tensor copies: the mode of the copy. The values differ
 * from the vector lengths 2, 4 and 8. */
enum { KILN__TILE = 0, KILN__IM2COL = 1, KILN__IM2COL_NO_OFFSETS = 3 };
/* Element types of wgmma.mma_async. */
typedef enum kiln__cpu_wgmma_type {
  KILN__WGMMA_F16,
  KILN__WGMMA_BF16,
  KILN__WGMMA_TF32,
  KILN__WGMMA_E4M3,
  KILN__WGMMA_E5M2,
  KILN__WGMMA_S8,
  KILN__WGMMA_U8,
  KILN__WGMMA_B1,
  KILN__WGMMA_F32, /* accumulators only */
  KILN__WGMMA_S32  /* accumulators only */
} kiln__cpu_wgmma_type;

/* A video instruction, as its opcode and the selectors of its operands determine it. The
 * members imm and imm2 of the instruction hold this struct. */
typedef struct kiln__cpu_video {
  uint8_t op;     /* a value of kiln__cpu_video_op */
  uint8_t parts;  /* 1, 2 halves or 4 bytes */
  uint8_t flags;  /* KILN__VIDEO_... flags */
  uint8_t second; /* a value of kiln__cpu_video_second */
  /* comparison of vset (KILN__CMP_...), KILN__VIDEO_CLAMP or 0 of shifts, number of bits
   * that vmad shifts by */
  uint8_t mode;
  uint8_t unused[3];
  /* With one part: first bit in the low byte, number of bits in the high byte. With
   * several: d is a mask of parts; bits 4 * i of a and b choose a part of both sources. */
  uint16_t d, a, b, unused2;
} kiln__cpu_video;

_Static_assert(sizeof(kiln__cpu_video) == 2 * sizeof(int64_t),
               "the struct fills two members of an instruction");

typedef enum kiln__cpu_video_op {
  KILN__VIDEO_ADD,
  KILN__VIDEO_SUB,
  KILN__VIDEO_ABSDIFF,
  KILN__VIDEO_MIN,
  KILN__VIDEO_MAX,
  KILN__VIDEO_AVERAGE,
  KILN__VIDEO_SET,
  KILN__VIDEO_SHL,
  KILN__VIDEO_SHR,
  KILN__VIDEO_MAD
} kiln__cpu_video_op;

typedef enum kiln__cpu_video_second {
  KILN__VIDEO_SECOND_NONE = 0,
  KILN__VIDEO_SECOND_ADD,
  KILN__VIDEO_SECOND_MIN,
  KILN__VIDEO_SECOND_MAX
} kiln__cpu_video_second;

enum {
  KILN__VIDEO_SIGNED_D = 1 << 0,
  KILN__VIDEO_SIGNED_A = 1 << 1,
  KILN__VIDEO_SIGNED_B = 1 << 2,
  KILN__VIDEO_SATURATE = 1 << 3,
  KILN__VIDEO_PLUS_ONE = 1 << 4,
  KILN__VIDEO_NEGATE_PRODUCT = 1 << 5,
  KILN__VIDEO_NEGATE_C = 1 << 6,
  KILN__VIDEO_CLAMP = 1 /* mode of shifts: at most 32, else modulo 32 */
};

/* The properties of a wgmma.mma_async that its modifiers and immediate operands
 * determine. The member `imm` of the instruction holds this struct. */
typedef struct kiln__cpu_wgmma {
  uint8_t columns; /* n / 8 */
  uint8_t a, b, d; /* values of kiln__cpu_wgmma_type */
  uint8_t flags;   /* KILN__WGMMA_... flags */
  uint8_t unused[3];
} kiln__cpu_wgmma;

/* Flags of kiln__cpu_wgmma. */
enum {
  KILN__WGMMA_NEGATE_A = 1 << 0, /* imm-scale-a is -1 */
  KILN__WGMMA_NEGATE_B = 1 << 1,
  KILN__WGMMA_TRANS_A = 1 << 2, /* A is stored column by column (M-major) */
  KILN__WGMMA_TRANS_B = 1 << 3, /* B is stored row by row (N-major) */
  KILN__WGMMA_SPARSE = 1 << 4,
  KILN__WGMMA_SELECT = 1 << 5, /* the sparsity selector is 1 */
  KILN__WGMMA_SATURATE = 1 << 6,
  KILN__WGMMA_REGISTERS = 1 << 7 /* A is in registers */
};

/* Element types of mma and wmma, in the order of kiln__tensor_type. */
typedef enum kiln__cpu_element {
  KILN__ELEMENT_F16,
  KILN__ELEMENT_BF16,
  KILN__ELEMENT_TF32,
  KILN__ELEMENT_E4M3,
  KILN__ELEMENT_E5M2,
  KILN__ELEMENT_S8,
  KILN__ELEMENT_U8,
  KILN__ELEMENT_S4,
  KILN__ELEMENT_U4,
  KILN__ELEMENT_B1,
  KILN__ELEMENT_F32,
  KILN__ELEMENT_S32,
  KILN__ELEMENT_F64
} kiln__cpu_element;

/* The matrices of an mma or wmma instruction. */
typedef enum kiln__cpu_fragment {
  KILN__FRAGMENT_A,
  KILN__FRAGMENT_B,
  KILN__FRAGMENT_C,
  KILN__FRAGMENT_D
} kiln__cpu_fragment;

/* The properties of an mma or wmma that its modifiers and immediate operands
 * determine: D = A B + C, where A has m x k elements and B k x n. The member
 * imm2 of the instruction holds this struct. */
typedef struct kiln__cpu_matrix {
  uint8_t m, n, k4;     /* k4 is k / 4 */
  uint8_t type[4];      /* kiln__cpu_element per kiln__cpu_fragment */
  uint8_t wmma : 1;     /* fragments of wmma, otherwise of mma */
  uint8_t sparse : 1;   /* A stores every second element */
  uint8_t column : 2;   /* bit 0: A, or the matrix in memory, is column-major;
                          bit 1: B is column-major */
  uint8_t selector : 2; /* lanes that provide the metadata of sparse A */
  uint8_t used : 2;     /* kiln__cpu_fragment that wmma.load or .store moves */
} kiln__cpu_matrix;

/* Returns the bits per element. */
unsigned kiln__cpu_element_bits(kiln__cpu_element type);
/* Returns the registers per lane of a fragment. */
unsigned kiln__cpu_fragment_registers(const kiln__cpu_matrix *x,
                                      kiln__cpu_fragment f);

/* One executable instruction. It is read-only while the program runs. */
struct kiln__cpu_insn {
  /* Handler for the host instruction set of the launch. */
  kiln__cpu_handler *fn;
  int32_t d, d2; /* destination slots as byte offsets in the frame, or -1 */
  int32_t a, b, c, e; /* source slots as byte offsets, or -1 */
  int32_t guard;      /* slot of the guard predicate, or -1 */
  uint32_t flags;
  /* Slots of the data of .v2, .v4 and .v8, of the elements of mov's {lo, hi},
   * of the results of tex, and of the coordinates of a tensor copy. An element is -1 for `_`. */
  const int32_t *vec;
  /* For textures and surfaces: the slots of the coordinates, followed by the
   * slots of the level of detail or of the gradients. For bulk copies: the two
   * numbers of .ignore_oob, the base and the displacement of the mbarrier's
   * address, the im2col offsets, and the mask of the destination blocks, as far
   * as the opcode has them. */
  const int32_t *vec2;
  int64_t imm; /* address displacement, or immediate operand */
  /* Displacement of a second address, second immediate operand, or the
   * kiln__cpu_matrix of mma and wmma. */
  int64_t imm2;
  /* Branches: index of the target instruction. Calls: index of the callee in
   * the program's functions. */
  uint32_t target;
  /* Divergent branches: index of the instruction at which the paths reconverge.
   * UINT32_MAX means that the paths never reconverge. */
  uint32_t join;
  uint32_t index; /* index of this instruction in its function */
  /* Loads: the bytes that the program uses, one bit per byte; 0 for all bytes.
   * The checks ignore the others, which are padding. */
  uint32_t used_bytes;
  uint16_t op;  /* value of kiln__cpu_op */
  uint8_t kind; /* value of kiln__cpu_kind */
  /* value of kiln__cpu_class; the state space of a memory operation determines
   * it */
  uint8_t klass;
  uint16_t n_vec, n_vec2;
  /* The type modifiers of the opcode, such as cvt.type2.type: `type` is the
   * last type modifier, and `type2` is the type modifier that precedes `type`.
   * Both are values of kiln__cpu_ptx_type. */
  uint8_t type, type2;
  uint8_t bytes; /* bytes per element of a memory operation */
  uint8_t round, cmp, boolop, space, sem, scope;
  uint8_t sub;  /* modifier specific to the mnemonic; see modifiers.def */
  uint8_t sub2; /* second modifier specific to the mnemonic */
  /* Size of the destination register of ld and cvt in bytes: 2, 4 or 8. The
   * register may be wider than the type of the instruction. */
  uint8_t reg_bytes;
  uint8_t src_reg_bytes;
  uint8_t dim; /* number of coordinates of a tensor copy (.1d to .5d) */
};

typedef enum kiln__cpu_const_kind {
  KILN__CONST_VALUE,   /* `value` is the value of the constant */
  KILN__CONST_SPECIAL, /* the special register number `value` */
  /* The address of the module variable number `value`, plus addend. */
  KILN__CONST_ADDRESS,
  KILN__CONST_FUNCTION, /* the address of function number `value` */
  /* The address of the first byte of dynamic shared memory, plus addend. The
   * address is known only after a kernel has been chosen. */
  KILN__CONST_DYNAMIC
} kiln__cpu_const_kind;

/* Designated initialisers for an instruction without operands. */
#define KILN__NO_SLOTS                                                         \
  .d = -1, .d2 = -1, .a = -1, .b = -1, .c = -1, .e = -1, .guard = -1,          \
  .join = UINT32_MAX

/* A constant of a function: a slot that receives its value when a frame is
 * created. */
typedef struct kiln__cpu_const {
  int32_t slot;
  uint8_t bytes; /* size of the value in bytes: 4 or 8 */
  kiln__cpu_const_kind kind;
  uint64_t value;
  int64_t addend;
} kiln__cpu_const;

/* The special registers whose value does not change while a warp runs a block.
 */
typedef enum kiln__cpu_special_register {
#define KILN__SPECIAL(name, text, type) KILN__SPECIAL_##name,
#include "../ptx/special_registers.def"
  KILN__N_SPECIALS
} kiln__cpu_special_register;

/* The position of a parameter in the parameter area of its function, in bytes.
 */
typedef struct kiln__cpu_param {
  uint32_t offset, size, align;
  const char *name; /* NUL-terminated name */
} kiln__cpu_param;

/* The source position of an instruction. */
typedef struct kiln__cpu_line {
  uint32_t ptx;        /* line number in the PTX source */
  uint32_t file, line; /* source position from .loc; file is 0 without .loc */
  uint32_t outer_file, outer_line; /* position of the outermost inlined call */
} kiln__cpu_line;

/* The position of an instruction in the control flow graph. */
typedef struct kiln__cpu_place {
  /* Number of basic blocks that lie on every path from the instruction to the
   * end of the function. Instructions on paths that end in a trap have larger
   * depths than all others. */
  uint32_t depth;
  /* Index of the next instruction with a smaller depth if no branch is taken.
   * UINT32_MAX means that a branch is always taken before such an instruction
   * is reached. */
  uint32_t rise;
} kiln__cpu_place;

static inline kiln__cpu_video kiln__cpu_video_of(const kiln__cpu_insn *in)
{
  kiln__cpu_video form;

  memcpy(&form, &in->imm, sizeof in->imm);
  memcpy((char *)&form + sizeof in->imm, &in->imm2, sizeof in->imm2);
  return form;
}

static inline kiln__cpu_wgmma kiln__cpu_wgmma_of(const kiln__cpu_insn *in)
{
  kiln__cpu_wgmma form;

  memcpy(&form, &in->imm, sizeof form);
  return form;
}

/* One access of an instruction to a register that some wgmma of the function
 * uses. */
typedef struct kiln__cpu_tracked {
  uint32_t reg; /* number of the register among those that are tracked */
  bool written;
} kiln__cpu_tracked;

/* Returns whether `op` is a wgmma.mma_async. */
static inline bool kiln__cpu_is_wgmma(unsigned op)
{
  return op >= KILN__OP_wgmma_f16 && op <= KILN__OP_wgmma_sp_s8;
}

/* The functions that the device itself provides to kernels; see
 * system_functions.def. */
typedef enum kiln__cpu_system {
  KILN__SYSTEM_NONE = 0,
#define KILN__SYSTEM_FN(name, id) KILN__SYSTEM_##id,
#define KILN__DEVICE_FN(name, id) KILN__SYSTEM_##id,
#include "system_functions.def"
  KILN__N_SYSTEM_FUNCTIONS
} kiln__cpu_system;

/* Returns the system function with this name, or KILN__SYSTEM_NONE. */
kiln__cpu_system kiln__cpu_system_named(kiln__cpu_slice name);

/* The code of one function. */
struct kiln__cpu_code {
  const char *name;
  const struct kiln__cpu_program *program; /* program that owns the function */
  uint32_t number; /* index in the program's functions */
  /* the system function that a function without definition refers to */
  kiln__cpu_system system;
  bool entry;
  /* False for a function that is only declared. A call of such a function is a
   * system call or an error. */
  bool defined;
  kiln__cpu_insn *insns;
  kiln__cpu_line *lines; /* source positions, one element per instruction */
  /* Positions in the control flow graph, one element per instruction. */
  kiln__cpu_place *places;
  uint32_t n_insns;
  /* The accesses to registers of wgmma; NULL in a function without wgmma.
   * Instruction i makes the accesses tracked[tracked_at[i]] up to, but
   * excluding, tracked[tracked_at[i + 1]]. See track_registers.c. */
  const kiln__cpu_tracked *tracked;
  const uint32_t *tracked_at;
  uint32_t n_tracked;   /* number of registers that are tracked */
  uint32_t frame_bytes; /* bytes of registers and constants, a multiple of 64 */
  const kiln__cpu_const *consts;
  uint32_t n_consts;
  /* Size of this function's part of the per-lane stack in bytes. The part holds
   * .local variables, .param variables of calls that this function makes, and
   * the parameters and results of this function. Offsets are relative to the
   * start of the part. */
  uint32_t local_bytes;
  /* Parameters and results. For an entry, offsets are relative to the
   * parameter buffer. For other functions, they are relative to the
   * function's part of the stack. */
  const kiln__cpu_param *params, *returns;
  uint32_t n_params, n_returns, param_bytes;
  /* The members below are set for entries only. Their values include all
   * functions that the entry can call, directly or indirectly. */
  /* Size of static shared memory in bytes. Dynamic shared memory starts at the
   * next multiple of dynamic_align. */
  uint32_t static_shared;
  uint32_t dynamic_align;
  /* Stack bytes of the entry and its callees, without recursion. */
  uint32_t reach_local;
  /* True if the entry's call graph is recursive or contains indirect calls. The
   * stack size reach_local is then only a lower bound. */
  bool recursive;
  /* Maximum number of live 32-bit registers, for occupancy. */
  uint32_t registers;
  /* Upper bound of the registers per thread from .maxnreg, the launch bounds or
   * the option for the maximum; 0 means that there is none. */
  uint32_t most_registers;
  /* Registers per thread at the start of a kernel with setmaxnreg. 0 means that
   * setmaxnreg has no effect. */
  uint32_t registers_at_start;
  uint32_t barriers; /* highest barrier number + 1 */
  bool uses_barrier, uses_grid_sync;
  /* True if the results may depend on the order of blocks; see block_order.c. */
  bool ordered;
  /* Maximum number of threads per block from .maxntid or .reqntid; 1024 by
   * default. */
  uint32_t max_threads;
  uint32_t req_ntid[3], cluster[3];
  bool explicit_cluster;
  /* The call sites of this function. For KILN__KIND_CALL, in->imm is the index
   * of the call site in this array. */
  struct kiln__cpu_call *calls;
  uint32_t n_calls;
};

/* One copy between the parameter areas of caller and callee, which the
 * scheduler performs at a call or return. `from` and `to` are byte offsets in
 * the stack parts of the two functions. */
typedef struct kiln__cpu_copy {
  uint32_t from, to, size;
} kiln__cpu_copy;

typedef struct kiln__cpu_call {
  /* Number of the called function. UINT32_MAX means an indirect call to the
   * address in slot a. */
  uint32_t callee;
  const kiln__cpu_copy *in;  /* copies from caller to callee before the call */
  const kiln__cpu_copy *out; /* copies from callee to caller after the call */
  uint32_t n_in, n_out;
  /* For indirect calls: number of parameters of the prototype. Calling a
   * function with a different number of parameters is a fault. */
  uint32_t n_params;
} kiln__cpu_call;

/* A module variable that needs device memory: a variable in .global or .const.
 */
typedef struct kiln__cpu_global {
  const char *name;
  bool visible; /* cuModuleGetGlobal finds the variable */
  bool constant, managed, external;
  uint64_t size;
  uint32_t align;
  const uint8_t *init;
  uint64_t init_size;
  struct kiln__cpu_patch {
    uint32_t offset;
    uint8_t size, shift;
    bool function; /* `number` refers to a function, not to a global */
    uint32_t number;
    int64_t addend;
  } * patches;
  uint32_t n_patches;
  /* True for a texref or surfref. cuModuleGetTexRef or cuModuleGetSurfRef finds
   * such a variable. */
  bool texture, surface;
} kiln__cpu_global;

/* The code of a module before handlers and addresses are bound to it. */
typedef struct kiln__cpu_program {
  kiln__cpu_code *functions;
  uint32_t n_functions;
  kiln__cpu_global *globals;
  uint32_t n_globals;
  uint32_t ptx_version, target;
  char target_suffix;
  bool debug;
  /* Names of the source files of all linked PTX modules, one table after the
   * other. */
  const char **files;
  uint32_t n_files;
  /* Set when the program is loaded: the address of function i is
   * KILN__WINDOW_CODE + code_offset + 16 * i, and `addresses` holds the address
   * of each variable. */
  uint64_t code_offset;
  const uint64_t *addresses;
  /* The parsed PTX modules that the program was made from. The program owns
   * them. */
  kiln__cpu_ptx_module **parts;
  uint32_t n_parts;
  kiln_allocator alloc;
} kiln__cpu_program;

/* Checks every instruction and makes the code of a program.
 *
 * The function takes ownership of `ptx`, also on failure. The caller owns *out.
 * The function rejects what ptxas rejects:
 *   - opcodes that do not exist, and wrong numbers of operands
 *   - registers that do not match the types, and immediates out of range
 *   - missing labels and functions
 *   - instructions that need a later .version or a higher .target
 *   - kernels that exceed ptxas's limits on shared, constant, local and
 *     parameter memory
 *
 * Returns KILN_OK, KILN_ECOMPILE (with a log as in kiln__cpu_ptx_parse) or
 * KILN_ENOMEM. Thread-safe: the function accesses only its arguments. */
kiln_status kiln__cpu_program_make(kiln__cpu_program **out,
                                   const kiln_allocator *a,
                                   kiln__cpu_ptx_module *ptx);
/* Frees the program and the PTX modules that it was made from. The argument may
 * be NULL. */
void kiln__cpu_program_free(kiln__cpu_program *program);

/* Links parsed PTX modules into one program, as cuLink does. Functions that no kernel
 * reaches are removed, so they may call functions that are not defined. The
 * function takes ownership of all modules, also on failure. */
kiln_status kiln__cpu_program_link(kiln__cpu_program **out,
                                   const kiln_allocator *a,
                                   kiln__cpu_ptx_module *const *parts,
                                   size_t n);

/* Finds an entry by name. Returns NULL if the program has no such entry. */
const kiln__cpu_code *kiln__cpu_program_entry(const kiln__cpu_program *program,
                                              const char *name);

/* Sets the handler `fn` of every instruction of every function from a table
 * that is indexed by kiln__cpu_op. */
void kiln__cpu_program_bind(kiln__cpu_program *program,
                            kiln__cpu_handler *const table[KILN__N_OPS]);

/* Formats an instruction for messages and debuggers: the name of its row in
 * ops.def, followed by its slots. The string is truncated to `size` bytes. */
void kiln__cpu_insn_text(const kiln__cpu_program *program,
                         const kiln__cpu_code *code, uint32_t index, char *buf,
                         size_t size);
/* The name, the pattern and the pseudo-code of each row of ops.def, and the
 * display name of each class. */
extern const char *const kiln__cpu_op_name[KILN__N_OPS];
extern const char *const kiln__cpu_op_pattern[KILN__N_OPS];
extern const char *const kiln__cpu_op_pseudo[KILN__N_OPS];
extern const char *const kiln__cpu_class_text[KILN__N_CLASSES];

#endif
