/* ptx.h -- PTX text as a syntax tree with names resolved.
 *
 * kiln__cpu_ptx_parse() reads PTX 3.0 to 9.x. It resolves every name in its
 * scope, flattens nested blocks, keeps positions and .loc lines, and checks and
 * skips debug sections. It knows no instruction: opcodes are text here, and
 * code/ decides which exist. All nodes live in one arena of the module and are
 * freed with it. */
#ifndef KILN_CPU_PTX_H
#define KILN_CPU_PTX_H

#include "../../base/base.h"

/* A piece of the module's own copy of the source. It is not NUL-terminated. */
typedef struct kiln__cpu_slice {
  const char *data;
  uint32_t size;
} kiln__cpu_slice;

/* Arguments of "%.*s" that print a slice, cut to what a message can hold. */
#define KILN__SHOWN(slice)                                                     \
  (int)((slice).size > 200 ? 200 : (slice).size), (slice).data

bool kiln__cpu_slice_is(kiln__cpu_slice s, const char *text);
bool kiln__cpu_slice_equal(kiln__cpu_slice a, kiln__cpu_slice b);

typedef struct kiln__cpu_ptx_pos {
  uint32_t line, column; /* from 1, of the PTX text */
} kiln__cpu_ptx_pos;

/* KILN__PTX_TYPE(name, text, bytes) */
#define KILN__PTX_TYPES(X)                                                     \
  X(NONE, "", 0)                                                               \
  X(U8, "u8", 1)                                                               \
  X(S8, "s8", 1)                                                               \
  X(B8, "b8", 1)                                                               \
  X(U16, "u16", 2)                                                             \
  X(S16, "s16", 2)                                                             \
  X(B16, "b16", 2)                                                             \
  X(F16, "f16", 2)                                                             \
  X(BF16, "bf16", 2)                                                           \
  X(U32, "u32", 4)                                                             \
  X(S32, "s32", 4)                                                             \
  X(B32, "b32", 4)                                                             \
  X(F32, "f32", 4)                                                             \
  X(F16X2, "f16x2", 4)                                                         \
  X(BF16X2, "bf16x2", 4)                                                       \
  X(TF32, "tf32", 4)                                                           \
  X(U64, "u64", 8)                                                             \
  X(S64, "s64", 8)                                                             \
  X(B64, "b64", 8)                                                             \
  X(F32X2, "f32x2", 8)                                                         \
  X(F64, "f64", 8)                                                             \
  X(B128, "b128", 16)                                                          \
  X(PRED, "pred", 0)                                                           \
  X(TEXREF, "texref", 8)                                                       \
  X(SAMPLERREF, "samplerref", 8)                                               \
  X(SURFREF, "surfref", 8)

typedef enum kiln__cpu_ptx_type {
#define KILN__PTX_TYPE(name, text, bytes) KILN__##name,
  KILN__PTX_TYPES(KILN__PTX_TYPE)
#undef KILN__PTX_TYPE
      KILN__N_PTX_TYPES
} kiln__cpu_ptx_type;

extern const uint8_t kiln__cpu_ptx_type_bytes[KILN__N_PTX_TYPES];
extern const char *const kiln__cpu_ptx_type_text[KILN__N_PTX_TYPES];

typedef enum kiln__cpu_space {
  KILN__SPACE_GENERIC = 0, /* no state space given */
  KILN__SPACE_REG,
  KILN__SPACE_GLOBAL,
  KILN__SPACE_CONST,
  KILN__SPACE_SHARED,         /* also .shared::cta */
  KILN__SPACE_SHARED_CLUSTER, /* .shared::cluster */
  KILN__SPACE_LOCAL,
  KILN__SPACE_PARAM, /* also .param::entry and .param::func */
  KILN__SPACE_TEX    /* old-style .tex variables */
} kiln__cpu_space;

typedef enum kiln__cpu_linkage {
  KILN__LINK_NONE = 0,
  KILN__LINK_EXTERN,
  KILN__LINK_VISIBLE,
  KILN__LINK_WEAK,
  KILN__LINK_COMMON
} kiln__cpu_linkage;

typedef struct kiln__cpu_ptx_symbol kiln__cpu_ptx_symbol;
typedef struct kiln__cpu_ptx_function kiln__cpu_ptx_function;

/* An address within the initial bytes of a variable. */
typedef struct kiln__cpu_ptx_reloc {
  uint32_t offset; /* into the bytes */
  uint8_t size;    /* 4 or 8; 1 with `shift` for 0xFF0000(symbol) */
  uint8_t shift;   /* bits the address is shifted right by */
  bool generic;    /* generic(symbol) */
  kiln__cpu_ptx_symbol *symbol; /* variable or function */
  int64_t addend;
} kiln__cpu_ptx_reloc;

/* A variable of any state space; registers, too. */
typedef struct kiln__cpu_ptx_variable {
  kiln__cpu_space space;
  kiln__cpu_ptx_type type;
  /* Components: 1, 2 or 4, and 8 for registers from PTX 8.8 on. */
  uint8_t vector;
  uint32_t align;        /* bytes, a power of two, at least the natural one */
  uint64_t size;         /* bytes; 0 for `x[]` without initialiser */
  bool flexible;         /* `x[]` */
  bool is_array;         /* `.b8 x[4]`, whatever the count */
  bool managed, unified; /* .attribute */
  kiln__cpu_linkage linkage;
  /* The first `init_size` bytes; the rest is zero. NULL: no initial value. */
  const uint8_t *init;
  uint64_t init_size;
  const kiln__cpu_ptx_reloc *relocs;
  uint32_t n_relocs;
  uint32_t index;          /* registers: number within their function */
  kiln__cpu_space pointee; /* `.ptr .global .align 4` of kernel parameters */
  uint32_t pointee_align;  /* 0 without .ptr */
  bool has_ptr;            /* .ptr was there */
  uint32_t array_elements; /* .texref t[4]; else product of dimensions */
  uint32_t number;         /* for code/: in the program's globals */
  uint64_t place;          /* for code/: offset in its state space */
  /* Set by code/: the .shared variable of another module that this one is
   * merged with. */
  struct kiln__cpu_ptx_variable *same;
} kiln__cpu_ptx_variable;

typedef enum kiln__cpu_symbol_kind {
  KILN__SYMBOL_VARIABLE,
  KILN__SYMBOL_FUNCTION,
  KILN__SYMBOL_LABEL,
  KILN__SYMBOL_PROTOTYPE, /* .callprototype */
  KILN__SYMBOL_TARGETS    /* .branchtargets, .calltargets */
} kiln__cpu_symbol_kind;

struct kiln__cpu_ptx_symbol {
  kiln__cpu_slice name;
  kiln__cpu_symbol_kind kind;
  kiln__cpu_ptx_pos pos;
  union {
    kiln__cpu_ptx_variable *variable;
    /* Also of a prototype, which has parameters only. */
    kiln__cpu_ptx_function *function;
    uint32_t label; /* index of the statement it precedes */
    struct {
      kiln__cpu_ptx_symbol **items;
      uint32_t n;
    } targets;
  } u;
};

typedef enum kiln__cpu_operand_kind {
  KILN__OPERAND_NONE = 0,
  KILN__OPERAND_SYMBOL,  /* register, variable, function, label: `symbol` */
  KILN__OPERAND_SPECIAL, /* %tid.x and the like: `text`, without % */
  KILN__OPERAND_INTEGER, /* `bits`; `negative` if below 0 as .s64 */
  KILN__OPERAND_FLOAT,   /* `bits` of a double, from decimal or 0d text */
  KILN__OPERAND_FLOAT32, /* `bits` of a float, from 0f text */
  KILN__OPERAND_ADDRESS, /* [base + offset]: `base` and `offset` */
  KILN__OPERAND_VECTOR,  /* {a, b, ...}: `items`; also {a,b} in addresses */
  KILN__OPERAND_TEXTURE, /* [t, {x, y}] or [t, s, {x, y}]: `items` */
  KILN__OPERAND_SINK,    /* _ */
  KILN__OPERAND_LIST,    /* (a, b): arguments of a call: `items` */
  KILN__OPERAND_PAIR     /* d|p: `items` of two */
} kiln__cpu_operand_kind;

typedef struct kiln__cpu_ptx_operand kiln__cpu_ptx_operand;
struct kiln__cpu_ptx_operand {
  kiln__cpu_operand_kind kind;
  kiln__cpu_ptx_pos pos;
  bool negated;  /* !p, or - before a symbol */
  bool negative; /* integer of type .s64 below 0 */
  /* An integer of type .u64: it has a U suffix, or is 2^63 or above. */
  bool is_unsigned;
  /* Component of a vector register, 0 to 3; -1: none. */
  int8_t component;
  kiln__cpu_ptx_symbol *symbol; /* SYMBOL */
  kiln__cpu_slice text;         /* as written; SPECIAL: the name, "tid.x" */
  uint64_t bits;
  int64_t offset;                     /* ADDRESS; also SYMBOL+offset */
  const kiln__cpu_ptx_operand *base;  /* ADDRESS: symbol or integer */
  const kiln__cpu_ptx_operand *items; /* VECTOR, TEXTURE, LIST, PAIR */
  uint32_t n_items;
};

/* A source position from .loc; .file numbers the files. */
typedef struct kiln__cpu_ptx_loc {
  uint32_t file, line, column;
} kiln__cpu_ptx_loc;

typedef struct kiln__cpu_ptx_insn {
  kiln__cpu_ptx_pos pos;
  kiln__cpu_ptx_loc loc;       /* file 0: none */
  kiln__cpu_ptx_symbol *guard; /* predicate register, or NULL */
  bool guard_negated;
  kiln__cpu_slice opcode; /* "add.rn.f32": no white space within */
  const kiln__cpu_ptx_operand *operands;
  uint32_t n_operands;
  /* The .pragma in force is not kept, since none changes results. */
} kiln__cpu_ptx_insn;

struct kiln__cpu_ptx_function {
  kiln__cpu_slice name;
  kiln__cpu_ptx_pos pos;
  bool entry;
  bool defined; /* has a body; else a declaration or a prototype */
  bool noreturn;
  kiln__cpu_linkage linkage;
  kiln__cpu_ptx_symbol **returns; /* of space PARAM or REG */
  uint32_t n_returns;
  kiln__cpu_ptx_symbol **params;
  uint32_t n_params;
  bool variadic;                     /* last parameter is `.param .b8 x[]` */
  uint32_t max_ntid[3], req_ntid[3]; /* 0: not given */
  uint32_t min_ctas, max_nreg;
  uint32_t cluster[3], max_cluster_rank;
  bool explicit_cluster;
  kiln__cpu_ptx_insn *insns;
  uint32_t n_insns;
  /* What the body declares, registers included: also parameters that are
   * registers, and of `%r<100>` the members that are used. Parameters in .param
   * are not in the list. */
  kiln__cpu_ptx_symbol **variables;
  uint32_t n_variables;
  uint32_t n_registers;
  kiln__cpu_ptx_symbol **labels; /* for messages, by statement */
  uint32_t n_labels;
  uint32_t number; /* for code/: in the program's functions */
  /* Of `.alias g, f`: set in g's declaration, which stays in the module's
   * functions; symbols named g refer to f. NULL: no alias. */
  const kiln__cpu_ptx_function *alias_of;
};

typedef struct kiln__cpu_ptx_module {
  uint32_t version;   /* major * 10 + minor: 90 */
  uint32_t target;    /* 90; the number of sm_90a too */
  char target_suffix; /* 'a', 'f' or 0 */
  bool debug, texmode_independent;
  uint32_t address_size;            /* 64; 32-bit modules are refused */
  kiln__cpu_ptx_symbol **variables; /* of module scope */
  uint32_t n_variables;
  /* Each name occurs once: its definition or, if there is none, a
   * declaration. */
  kiln__cpu_ptx_function **functions;
  uint32_t n_functions;
  const char **files; /* by .file number; NULL where none */
  uint32_t n_files;
  void *arena;
} kiln__cpu_ptx_module;

/* Parses `size` bytes of PTX; a NUL at their end may be counted in.
 *
 * *out is the caller's and goes to kiln__cpu_ptx_free(); NULL after any
 * failure. `text` is copied. Returns KILN_OK; KILN_ECOMPILE, with a log like
 * ptxas's: one message per mistake, at most 20, "ptx line 12, column 5: ...",
 * then the line and a caret; KILN_ENOMEM. Nesting, registers (2^20) and array
 * sizes are bounded, so no text crashes it. Time is linear in the text. It may
 * run on any thread. */
kiln_status kiln__cpu_ptx_parse(kiln__cpu_ptx_module **out,
                                const kiln_allocator *a, const char *text,
                                size_t size);
/* Frees the module and its arena; NULL is fine. */
void kiln__cpu_ptx_free(kiln__cpu_ptx_module *module);

/* Returns zeroed memory that lives as long as the module; NULL: no memory. */
void *kiln__cpu_ptx_alloc(kiln__cpu_ptx_module *module, size_t size);

/* Messages about one module, for the parser and the checks in code/. At most 20
 * are kept, each with the source line and a caret. */
typedef struct kiln__cpu_ptx_messages {
  kiln__buf text;
  const char *source;
  size_t source_size;
  uint32_t n; /* also those beyond 20 */
} kiln__cpu_ptx_messages;

/* Adds a message about the position. It is only counted once there are 20, or
 * if memory is short. */
void kiln__cpu_ptx_complain(kiln__cpu_ptx_messages *m, kiln__cpu_ptx_pos pos,
                            const char *format, ...) KILN_PRINTF(3, 4);
/* Prepares messages about a module that has been parsed. */
void kiln__cpu_ptx_messages_init(kiln__cpu_ptx_messages *m,
                                 const kiln_allocator *a,
                                 const kiln__cpu_ptx_module *module);
/* Ends the collection and frees it. Returns KILN_ECOMPILE with the messages as
 * the error's log, or KILN_OK if there are none. `what` names the text in the
 * error. */
kiln_status kiln__cpu_ptx_messages_end(kiln__cpu_ptx_messages *m,
                                       const char *what);

#endif
