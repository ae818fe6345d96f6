/* code.h -- checked PTX in a form that runs: functions of instructions whose
 * operands are slots of a warp's register frame.
 *
 * A slot holds one value per lane: 32 uint32_t (128 bytes) for predicates and
 * everything up to 32 bits, 32 uint64_t (256 bytes) for 64 bits.
 *   - A lane of a predicate is 0 or ~0u.
 *   - A lane of fewer than 32 bits has zeros above them.
 * Immediates, and special registers that do not change during a block, are
 * slots too (constants), filled when a frame is made. So no handler looks at
 * the kind of an operand. Registers share slots where they are not alive at
 * once.
 *
 * A program is read-only while it runs; any number of threads may run it. */
#ifndef KILN_CPU_CODE_H
#define KILN_CPU_CODE_H

#include "../ptx/ptx.h"

enum { KILN__WARP = 32, KILN__NO_SLOT = -1 };

typedef struct kiln__cpu_warp kiln__cpu_warp;
typedef struct kiln__cpu_insn kiln__cpu_insn;
typedef struct kiln__cpu_code kiln__cpu_code;
typedef void kiln__cpu_handler(kiln__cpu_warp *w, const kiln__cpu_insn *in);

/* One enumerator per row of ops.def: KILN__OP_add_f32. */
typedef enum kiln__cpu_op {
#define KILN__OP(name, pattern, operands, kind, klass, ptx, sm, text)          \
  KILN__OP_##name,
#include "ops.def"
#undef KILN__OP
  KILN__N_OPS
} kiln__cpu_op;

/* What the schedulers do with an instruction. */
typedef enum kiln__cpu_kind {
  KILN__KIND_SIMPLE = 0, /* fn on the active lanes, then the next instruction */
  KILN__KIND_WARP,       /* waits until the lanes in its member mask arrive
                            (shfl.sync, vote.sync, match.sync, redux.sync,
                            bar.warp.sync, .aligned forms), then fn. The mask
                            is slot `e`; -1: no .sync, the lanes present */
  KILN__KIND_YIELD,      /* fn, then another group may run (nanosleep, mbarrier
                            tests, atom.cas, volatile and relaxed loads) */
  KILN__KIND_BRANCH,     /* to `target` */
  KILN__KIND_SWITCH,     /* brx.idx: index slot a, targets in vec */
  KILN__KIND_CALL,       /* callee or, with slot a, a function's address */
  KILN__KIND_RETURN,
  KILN__KIND_EXIT,
  KILN__KIND_TRAP,    /* trap, brkpt */
  KILN__KIND_BARRIER, /* bar, barrier of the block: sub, a, b; see ops */
  KILN__KIND_CLUSTER  /* barrier.cluster.arrive, .wait */
} kiln__cpu_kind;

/* Classes for counters. */
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
  X(OTHER, "other")

typedef enum kiln__cpu_class {
#define KILN__CLASS(name, text) KILN__CLASS_##name,
  KILN__CLASSES(KILN__CLASS)
#undef KILN__CLASS
      KILN__N_CLASSES
} kiln__cpu_class;

typedef enum kiln__cpu_round {
  KILN__ROUND_NONE = 0, /* not written: .rn for arithmetic */
  KILN__ROUND_N,
  KILN__ROUND_Z,
  KILN__ROUND_M,
  KILN__ROUND_P,
  KILN__ROUND_NA, /* .rna */
  KILN__ROUND_NI, /* .rni: to an integral value */
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

/* .and .or .xor of setp and set; also operations of atom, red, redux. */
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

/* Flags of an instruction. */
enum {
  KILN__FTZ = 1 << 0,
  KILN__SAT = 1 << 1,
  KILN__APPROX = 1 << 2,
  KILN__NAN = 1 << 3,     /* .NaN of min, max */
  KILN__XORSIGN = 1 << 4, /* .xorsign.abs */
  KILN__RELU = 1 << 5,
  KILN__WIDE_A = 1 << 6,  /* address slot a is 64-bit */
  KILN__SYNC = 1 << 7,    /* .sync */
  KILN__ALIGNED = 1 << 8, /* .aligned */
  KILN__UNI = 1 << 9,     /* .uni */
  KILN__GUARD_NOT = 1 << 10,
  KILN__NC = 1 << 11,       /* ld.global.nc */
  KILN__CARRY = 1 << 12,    /* .cc: writes the carry flag */
  KILN__NEGATE_B = 1 << 13, /* the !T operand of the row is negated (!p); other
                               negated operands have a not before them */
  KILN__OOB = 1 << 14,      /* .oob of fma */
  KILN__NOINC = 1 << 15,
  KILN__JOIN = 1 << 16,      /* some branch's reconvergence point */
  KILN__WIDE_B = 1 << 17,    /* the slot of a second address is 64-bit */
  KILN__SATFINITE = 1 << 18, /* .satfinite: the largest number, no infinity */
  KILN__TO = 1 << 19         /* cvta.to */
};

/* One instruction, ready to run. Read-only while running. */
struct kiln__cpu_insn {
  kiln__cpu_handler *fn; /* of the instruction set that the launch uses */
  int32_t d, d2;         /* written slots (byte offsets in the frame), or -1 */
  int32_t a, b, c, e;    /* read slots, or -1 */
  int32_t guard;         /* predicate slot or -1 */
  uint32_t flags;
  /* Slots of the data of .v2, .v4 and .v8, of mov's {lo, hi}, and of the
   * results of tex; -1 for `_`. */
  const int32_t *vec;
  /* Textures and surfaces: slots of the coordinates, then of the level or
   * the gradients. */
  const int32_t *vec2;
  int64_t imm;     /* address displacement, or the op's immediate */
  int64_t imm2;    /* of a second address; or an immediate beside one */
  uint32_t target; /* branches: index; calls: index in the module's
                            functions */
  uint32_t join;   /* divergent branches: where paths meet again, or
                            UINT32_MAX: never */
  uint32_t index;  /* of this instruction in its function */
  uint16_t op;     /* kiln__cpu_op */
  uint8_t kind;    /* kiln__cpu_kind */
  uint8_t klass;   /* kiln__cpu_class; memory: by the state space */
  uint16_t n_vec, n_vec2;
  uint8_t type,
      type2;     /* kiln__cpu_ptx_type: the last type modifier, and the one
                            before it: cvt.type2.type */
  uint8_t bytes; /* memory: of one element */
  uint8_t round, cmp, boolop, space, sem, scope;
  uint8_t sub;  /* the family's own modifier, see modifiers.def */
  uint8_t sub2; /* and a second one */
  /* Bytes of the destination register of ld and cvt, 2, 4 or 8. It may be
   * wider than the type. */
  uint8_t reg_bytes;
  uint8_t src_reg_bytes;
};

typedef enum kiln__cpu_const_kind {
  KILN__CONST_VALUE,    /* value */
  KILN__CONST_SPECIAL,  /* kiln__cpu_special_register number `value` */
  KILN__CONST_ADDRESS,  /* address of module variable number `value` + addend */
  KILN__CONST_FUNCTION, /* address of function number `value` */
  KILN__CONST_DYNAMIC   /* first byte of dynamic shared memory + addend: known
                           when a kernel is chosen */
} kiln__cpu_const_kind;

/* Initialisers of an instruction without operands. */
#define KILN__NO_SLOTS                                                         \
  .d = -1, .d2 = -1, .a = -1, .b = -1, .c = -1, .e = -1, .guard = -1,          \
  .join = UINT32_MAX

/* A constant: a slot that receives its value when a frame is made. */
typedef struct kiln__cpu_const {
  int32_t slot;
  uint8_t bytes; /* 4 or 8 */
  kiln__cpu_const_kind kind;
  uint64_t value;
  int64_t addend;
} kiln__cpu_const;

/* Special registers that are constants of a warp within a block. */
typedef enum kiln__cpu_special_register {
#define KILN__SPECIAL(name, text, type) KILN__SPECIAL_##name,
#include "../ptx/special_registers.def"
  KILN__N_SPECIALS
} kiln__cpu_special_register;

/* A parameter in its function's parameter area. */
typedef struct kiln__cpu_param {
  uint32_t offset, size, align;
  const char *name; /* NUL-terminated */
} kiln__cpu_param;

/* Where an instruction came from. */
typedef struct kiln__cpu_line {
  uint32_t ptx;        /* line of the PTX text */
  uint32_t file, line; /* .loc; file 0: none */
} kiln__cpu_line;

/* Where an instruction is in the control flow. */
typedef struct kiln__cpu_place {
  /* Number of blocks that every path from here to the end passes. Paths to a
   * trap are deeper than all others. */
  uint32_t depth;
  /* Index of the next instruction of smaller depth, if no branch is taken.
   * UINT32_MAX: a branch is always taken before. */
  uint32_t rise;
} kiln__cpu_place;

/* A function. */
struct kiln__cpu_code {
  const char *name;
  uint32_t number; /* in the module's functions */
  bool entry;
  /* False: declared only. Calls of it are system calls, or errors. */
  bool defined;
  kiln__cpu_insn *insns;
  kiln__cpu_line *lines; /* by instruction */
  /* Also by instruction. */
  kiln__cpu_place *places;
  uint32_t n_insns;
  uint32_t frame_bytes; /* registers and constants, a multiple of 64 */
  const kiln__cpu_const *consts;
  uint32_t n_consts;
  /* Per-lane stack: .local variables, .param variables of calls made from
   * here, parameters and results of this function. Offsets are from the start
   * of the call's part of the stack. */
  uint32_t local_bytes;
  const kiln__cpu_param *params,
      *returns; /* entry: of the parameter buffer; else
                                          within the callee's local part */
  uint32_t n_params, n_returns, param_bytes;
  /* Set for entries only. They include all functions that the entry reaches. */
  uint32_t static_shared; /* bytes; dynamic shared memory starts at the next
                             multiple of dynamic_align */
  uint32_t dynamic_align;
  uint32_t reach_local; /* bytes of stack without recursion */
  /* True also for indirect calls. reach_local is then a lower bound. */
  bool recursive;
  uint32_t registers; /* 32-bit ones alive at once, for occupancy */
  uint32_t barriers;  /* highest named barrier + 1 */
  bool uses_barrier, uses_grid_sync;
  uint32_t max_threads; /* of .maxntid or .reqntid; 1024 without */
  uint32_t req_ntid[3], cluster[3];
  bool explicit_cluster;
  /* Call sites: for KILN__KIND_CALL, in->imm is an index here. */
  struct kiln__cpu_call *calls;
  uint32_t n_calls;
};

/* A call: copies between parameter areas are done by the scheduler. Offsets
 * `from` and `to` are in the per-lane stack parts of caller and callee. */
typedef struct kiln__cpu_copy {
  uint32_t from, to, size;
} kiln__cpu_copy;

typedef struct kiln__cpu_call {
  uint32_t callee;           /* number, or UINT32_MAX: by address in slot a */
  const kiln__cpu_copy *in;  /* caller -> callee, before */
  const kiln__cpu_copy *out; /* callee -> caller, after */
  uint32_t n_in, n_out;
  /* Of indirect calls: parameters of the prototype. A callee with another
   * number of them is a fault. */
  uint32_t n_params;
} kiln__cpu_call;

/* A variable of the module that needs memory: .global and .const. */
typedef struct kiln__cpu_global {
  const char *name;
  bool visible; /* found by cuModuleGetGlobal */
  bool constant, managed, external;
  uint64_t size;
  uint32_t align;
  const uint8_t *init;
  uint64_t init_size;
  struct kiln__cpu_patch {
    uint32_t offset;
    uint8_t size, shift;
    bool function; /* number of a function, else of a global */
    uint32_t number;
    int64_t addend;
  } * patches;
  uint32_t n_patches;
  /* A texref or surfref, which cuModuleGetTexRef or cuModuleGetSurfRef
   * finds. */
  bool texture, surface;
} kiln__cpu_global;

/* A module: code that no architecture or address is bound to yet. */
typedef struct kiln__cpu_program {
  kiln__cpu_code *functions;
  uint32_t n_functions;
  kiln__cpu_global *globals;
  uint32_t n_globals;
  uint32_t ptx_version, target;
  char target_suffix;
  bool debug;
  const char **files;
  uint32_t n_files;
  /* The PTX that it was made of, which it owns. */
  kiln__cpu_ptx_module **parts;
  uint32_t n_parts;
  kiln_allocator alloc;
} kiln__cpu_program;

/* Checks every instruction and makes the code.
 *
 * Takes `ptx` over, also on failure. *out is the caller's. Rejects what ptxas
 * rejects: opcodes that do not exist, wrong operand counts, registers that do
 * not suit the types, immediates out of range, missing labels and functions,
 * instructions above the module's .version or .target, kernels beyond ptxas's
 * limits on shared, constant, local and parameter memory. Returns KILN_OK,
 * KILN_ECOMPILE (log as in kiln__cpu_ptx_parse) or KILN_ENOMEM. It may run on
 * any thread; it touches only its arguments. */
kiln_status kiln__cpu_program_make(kiln__cpu_program **out,
                                   const kiln_allocator *a,
                                   kiln__cpu_ptx_module *ptx);
/* Frees the program and the PTX it was made of; NULL is fine. */
void kiln__cpu_program_free(kiln__cpu_program *program);

/* Makes one program of several PTX texts, as cuLink does. Takes all of them
 * over, also on failure. */
kiln_status kiln__cpu_program_link(kiln__cpu_program **out,
                                   const kiln_allocator *a,
                                   kiln__cpu_ptx_module *const *parts,
                                   size_t n);

/* Finds an entry by name. NULL: none. */
const kiln__cpu_code *kiln__cpu_program_entry(const kiln__cpu_program *program,
                                              const char *name);

/* Sets insn.fn of every function from a table indexed by kiln__cpu_op. */
void kiln__cpu_program_bind(kiln__cpu_program *program,
                            kiln__cpu_handler *const table[KILN__N_OPS]);

/* Writes an instruction as text for messages and debuggers: the name of its row
 * and its slots. Cut to `size` bytes. */
void kiln__cpu_insn_text(const kiln__cpu_program *program,
                         const kiln__cpu_code *code, uint32_t index, char *buf,
                         size_t size);
/* By row: its name, its pattern, its pseudo-code; the text of a class. */
extern const char *const kiln__cpu_op_name[KILN__N_OPS];
extern const char *const kiln__cpu_op_pattern[KILN__N_OPS];
extern const char *const kiln__cpu_op_pseudo[KILN__N_OPS];
extern const char *const kiln__cpu_class_text[KILN__N_CLASSES];

#endif
