/* ptx.h -- the syntax tree of a PTX module, with names resolved.
 *
 * kiln__cpu_ptx_parse() accepts PTX 3.0 to 9.x. The parser resolves every name
 * in its scope and flattens nested blocks. It keeps source positions and .loc
 * lines. It checks debug sections and then skips them. The parser does not know
 * individual instructions: an opcode is a string here, and code/ decides which
 * opcodes exist. All nodes live in one arena per module and are freed together
 * with the module. */
#ifndef KILN_CPU_PTX_H
#define KILN_CPU_PTX_H

#include "../../base/base.h"

/* A substring of the module's own copy of the PTX source. The substring is not
 * NUL-terminated. */
typedef struct kiln__cpu_slice {
  const char *data;
  uint32_t size;
} kiln__cpu_slice;

/* Arguments for "%.*s" that print a slice, truncated to 200 characters. */
#define KILN__SHOWN(slice)                                                     \
  (int)((slice).size > 200 ? 200 : (slice).size), (slice).data

bool kiln__cpu_slice_is(kiln__cpu_slice s, const char *text);
bool kiln__cpu_slice_equal(kiln__cpu_slice a, kiln__cpu_slice b);

typedef struct kiln__cpu_ptx_pos {
  uint32_t line, column; /* line and column in the PTX source, counted from 1 */
} kiln__cpu_ptx_pos;

/* The types of PTX: KILN__PTX_TYPE(name, name in PTX source, size in bytes). */
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
  /* for a declaration or instruction without a state space */
  KILN__SPACE_GENERIC = 0,
  KILN__SPACE_REG,
  KILN__SPACE_GLOBAL,
  KILN__SPACE_CONST,
  KILN__SPACE_SHARED,         /* .shared or .shared::cta */
  KILN__SPACE_SHARED_CLUSTER, /* .shared::cluster */
  KILN__SPACE_LOCAL,
  KILN__SPACE_PARAM, /* .param, .param::entry or .param::func */
  KILN__SPACE_TEX    /* for variables declared with the deprecated .tex */
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

/* An address that the loader writes into the initial value of a variable. */
typedef struct kiln__cpu_ptx_reloc {
  uint32_t offset; /* byte offset in the initial value */
  /* Size in bytes: 4 or 8 for a whole address, 1 for a masked address such as
   * 0xFF0000(symbol). A masked address also has a `shift`. */
  uint8_t size;
  uint8_t shift; /* number of bits by which the address is shifted right */
  bool generic;  /* true if the source contains generic(symbol) */
  /* The variable or function whose address is written. */
  kiln__cpu_ptx_symbol *symbol;
  int64_t addend;
} kiln__cpu_ptx_reloc;

/* A variable in any state space. Registers are also variables. */
typedef struct kiln__cpu_ptx_variable {
  kiln__cpu_space space;
  kiln__cpu_ptx_type type;
  /* Number of vector components: 1, 2 or 4. Registers may have 8 from PTX 8.8
   * on. */
  uint8_t vector;
  uint32_t align;        /* alignment in bytes, at least that of the type */
  uint64_t size;         /* size in bytes; 0 for `x[]` without an initialiser */
  bool flexible;         /* true if the variable is declared as `x[]` */
  bool is_array;         /* declared as an array, such as `.b8 x[4]` */
  bool managed, unified; /* set by the .attribute directive */
  kiln__cpu_linkage linkage;
  /* The first `init_size` bytes of the initial value. The remaining bytes are
   * zero. NULL means that the variable has no initial value. */
  const uint8_t *init;
  uint64_t init_size;
  const kiln__cpu_ptx_reloc *relocs;
  uint32_t n_relocs;
  uint32_t index; /* for registers: index of the register in its function */
  /* For a kernel parameter: the state space in `.ptr .global .align 4`. */
  kiln__cpu_space pointee;
  /* alignment in bytes that .ptr specifies; 0 without .ptr */
  uint32_t pointee_align;
  bool has_ptr; /* true if the kernel parameter has .ptr */
  /* number of array elements, such as 4 for .texref t[4] */
  uint32_t array_elements;
  uint32_t number; /* index in the program's global variables; set by code/ */
  uint64_t place;  /* byte offset in the state space; set by code/ */
  /* Set by code/ when modules are linked: the .shared variable of another
   * module that this variable is merged with. */
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
    /* A function or a call prototype. For a prototype, only the parameters and
     * results are set. */
    kiln__cpu_ptx_function *function;
    uint32_t label; /* for a label: index of the statement after the label */
    struct {
      kiln__cpu_ptx_symbol **items;
      uint32_t n;
    } targets;
  } u;
};

typedef enum kiln__cpu_operand_kind {
  KILN__OPERAND_NONE = 0,
  KILN__OPERAND_SYMBOL, /* register, variable, function or label in `symbol` */
  /* Special register: `text` is its name, such as tid.x. */
  KILN__OPERAND_SPECIAL,
  /* integer, stored in `bits`; `negative` is set if it is a negative .s64 */
  KILN__OPERAND_INTEGER,
  KILN__OPERAND_FLOAT,   /* double in `bits`, written in decimal or as 0d... */
  KILN__OPERAND_FLOAT32, /* float in `bits`, written as 0f... */
  KILN__OPERAND_ADDRESS, /* address [base + offset] */
  KILN__OPERAND_VECTOR,  /* vector {a, b, ...}, stored in `items` */
  KILN__OPERAND_TEXTURE, /* [t, {x, y}] or [t, s, {x, y}], in `items` */
  KILN__OPERAND_SINK,    /* the operand `_`, which discards a result */
  KILN__OPERAND_LIST,    /* arguments (a, b) of a call, stored in `items` */
  KILN__OPERAND_PAIR     /* register pair d|p, stored in `items` */
} kiln__cpu_operand_kind;

typedef struct kiln__cpu_ptx_operand kiln__cpu_ptx_operand;
struct kiln__cpu_ptx_operand {
  kiln__cpu_operand_kind kind;
  kiln__cpu_ptx_pos pos;
  bool negated;  /* `!` precedes a predicate, or `-` precedes a symbol */
  bool negative; /* true for a negative integer of type .s64 */
  /* True for an integer of type .u64. It has a U suffix or is at least 2^63. */
  bool is_unsigned;
  /* Index of the selected component of a vector register, 0 to 3. A value of -1
   * means that no component is selected. */
  int8_t component;
  kiln__cpu_slice selector; /* .h1 or .b3210 of a video instruction, or empty */
  kiln__cpu_ptx_symbol *symbol; /* symbol of a SYMBOL operand */
  /* source text; the name, such as "tid.x", of a SPECIAL operand */
  kiln__cpu_slice text;
  uint64_t bits;
  /* offset in bytes of an ADDRESS or SYMBOL operand */
  int64_t offset;
  /* base of an ADDRESS operand: a symbol or an integer */
  const kiln__cpu_ptx_operand *base;
  /* elements of a VECTOR, TEXTURE, LIST or PAIR operand */
  const kiln__cpu_ptx_operand *items;
  uint32_t n_items;
};

/* A source position from a .loc directive. `file` is a number that a .file
 * directive defines. The outer position is that of the outermost call which
 * inlined the code, and equal to the position itself without inlining. */
typedef struct kiln__cpu_ptx_loc {
  uint32_t file, line, column;
  uint32_t outer_file, outer_line;
} kiln__cpu_ptx_loc;

typedef struct kiln__cpu_ptx_insn {
  kiln__cpu_ptx_pos pos;
  kiln__cpu_ptx_loc loc; /* position from .loc; `file` is 0 without .loc */
  kiln__cpu_ptx_symbol *guard; /* guard predicate register, or NULL */
  bool guard_negated;
  /* Opcode with modifiers, such as "add.rn.f32", without white space. */
  kiln__cpu_slice opcode;
  const kiln__cpu_ptx_operand *operands;
  uint32_t n_operands;
  /* The bytes of a load that the program uses, one bit per byte, from the pragma
   * "used_bytes_mask"; 0 without the pragma. Other .pragma directives are not
   * recorded, because they do not change results or findings. */
  uint32_t used_bytes;
} kiln__cpu_ptx_insn;

struct kiln__cpu_ptx_function {
  kiln__cpu_slice name;
  kiln__cpu_ptx_pos pos;
  bool entry;
  /* true if the function has a body; otherwise this is a declaration or a
   * prototype */
  bool defined;
  bool noreturn;
  kiln__cpu_linkage linkage;
  kiln__cpu_ptx_symbol **returns; /* results: variables in space PARAM or REG */
  uint32_t n_returns;
  kiln__cpu_ptx_symbol **params;
  uint32_t n_params;
  bool variadic; /* true if the last parameter is `.param .b8 x[]` */
  /* values of .maxntid and .reqntid; 0 if the directive is absent */
  uint32_t max_ntid[3], req_ntid[3];
  uint32_t min_ctas, max_nreg;
  uint32_t cluster[3], max_cluster_rank;
  bool explicit_cluster;
  kiln__cpu_ptx_insn *insns;
  uint32_t n_insns;
  /* The variables that the body declares, including registers. The list
   * contains parameters that are registers, but no parameters in .param. Of a
   * range such as `%r<100>`, it contains only the members that are used. */
  kiln__cpu_ptx_symbol **variables;
  uint32_t n_variables;
  uint32_t n_registers;
  /* labels for messages, in the order of their statements */
  kiln__cpu_ptx_symbol **labels;
  uint32_t n_labels;
  uint32_t number; /* index in the program's functions; set by code/ */
  /* For the directive `.alias g, f`, the declaration of g points to f. The
   * declaration stays in the module's functions, and symbols named g refer to
   * f. NULL means that the function is not an alias. */
  const kiln__cpu_ptx_function *alias_of;
};

typedef struct kiln__cpu_ptx_module {
  uint32_t version;   /* value of .version, major * 10 + minor; 90 means 9.0 */
  uint32_t target;    /* number in .target; 90 for sm_90 and sm_90a */
  char target_suffix; /* suffix of .target: 'a', 'f' or 0 */
  bool debug, texmode_independent;
  uint32_t address_size;            /* address size in bits; always 64 */
  kiln__cpu_ptx_symbol **variables; /* variables at module scope */
  uint32_t n_variables;
  /* The functions of the module. Each name occurs once, with its definition or,
   * if there is none, with a declaration. */
  kiln__cpu_ptx_function **functions;
  uint32_t n_functions;
  /* names of source files, indexed by .file number; NULL for unused numbers */
  const char **files;
  uint32_t n_files;
  void *arena;
} kiln__cpu_ptx_module;

/* Parses `size` bytes of PTX source. `size` may include a terminating NUL. The
 * function copies `text`.
 *
 * The caller owns *out and frees it with kiln__cpu_ptx_free(). *out is NULL
 * after any failure. Returns KILN_OK, KILN_ECOMPILE or KILN_ENOMEM. With
 * KILN_ECOMPILE, the log resembles that of ptxas. It has one message per
 * mistake, at most 20: "ptx line 12, column 5: ...", then the source line and a
 * caret.
 *
 * Nesting depth, array sizes and the number of registers (2^20 per function)
 * are limited, so no PTX source can make the parser crash. The running time is
 * linear in `size`. Thread-safe. */
kiln_status kiln__cpu_ptx_parse(kiln__cpu_ptx_module **out,
                                const kiln_allocator *a, const char *text,
                                size_t size);
/* Frees the module and its arena. The argument may be NULL. */
void kiln__cpu_ptx_free(kiln__cpu_ptx_module *module);

/* Returns zeroed memory that lives as long as the module. Returns NULL if
 * memory allocation fails. */
void *kiln__cpu_ptx_alloc(kiln__cpu_ptx_module *module, size_t size);

/* The error messages about one module. The parser and the checks in code/ add
 * messages. At most 20 messages are kept, each with the source line and a
 * caret. */
typedef struct kiln__cpu_ptx_messages {
  kiln__buf text;
  const char *source;
  size_t source_size;
  uint32_t n; /* number of messages, including those beyond the first 20 */
} kiln__cpu_ptx_messages;

/* Adds a message about a source position. If 20 messages exist already, or if
 * memory allocation fails, the message is only counted. */
void kiln__cpu_ptx_complain(kiln__cpu_ptx_messages *m, kiln__cpu_ptx_pos pos,
                            const char *format, ...) KILN_PRINTF(3, 4);
/* Initialises the messages about a module that has already been parsed. */
void kiln__cpu_ptx_messages_init(kiln__cpu_ptx_messages *m,
                                 const kiln_allocator *a,
                                 const kiln__cpu_ptx_module *module);
/* Frees the messages and converts them to a status. Returns KILN_ECOMPILE with
 * the messages as the error's log, or KILN_OK if there are no messages. `what`
 * names the PTX source in the error message. */
kiln_status kiln__cpu_ptx_messages_end(kiln__cpu_ptx_messages *m,
                                       const char *what);

#endif
