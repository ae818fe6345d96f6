/* code_build.h -- inside of code/: the steps from PTX statements to
 * instructions.
 *
 *   link_names.c      numbers the functions and variables of all parts
 *   code_layout.c     places shared memory, parameters and local variables
 *   then, per function:
 *   lower.c           makes instructions over virtual registers, with
 *                     match_opcode.c, opcode_rules.c, the bind_ files, lower_call.c
 *   control_flow.c    finds where divergent branches reconverge
 *   register_slots.c  replaces virtual registers by slots of the frame
 *   and at the end:
 *   code_layout.c     sums up what each kernel reaches
 *
 * Everything runs on the thread that loads the module. What outlives the build
 * lies in the arena of the first part. */
#ifndef KILN_CPU_BUILD_H
#define KILN_CPU_BUILD_H

#include "code.h"

/* ---- Rows of ops.def, read ----------------------------------------------- */

typedef enum kiln__cpu_shape {
  KILN__SHAPE_DEST,      /* =T */
  KILN__SHAPE_DEST_PAIR, /* =T|P, =T||P */
  KILN__SHAPE_SOURCE,    /* T, ~T, &T */
  KILN__SHAPE_NUMBER,    /* #T */
  KILN__SHAPE_PREDICATE, /* !T */
  KILN__SHAPE_ADDRESS,   /* [S] */
  KILN__SHAPE_TEXTURE,   /* [tex], [surf] */
  KILN__SHAPE_LIST,      /* {list} */
  KILN__SHAPE_GRADIENT,  /* {grad:2d} */
  KILN__SHAPE_DATA_OUT,  /* =V */
  KILN__SHAPE_DATA_IN,   /* V */
  KILN__SHAPE_CHOICE,    /* {4|8|16} */
  KILN__SHAPE_PACK,
  KILN__SHAPE_UNPACK,
  KILN__SHAPE_LABEL,
  KILN__SHAPE_TARGETS,
  KILN__SHAPE_CALL
} kiln__cpu_shape;

/* Types of operands beyond those of kiln__cpu_ptx_type. */
enum {
  KILN__TYPE_LAST = KILN__N_PTX_TYPES, /* $1 */
  KILN__TYPE_BEFORE,                   /* $2 */
  KILN__TYPE_TWICE,                    /* $W */
  KILN__TYPE_WORD                      /* w */
};

enum { KILN__SPACE_OF_OPCODE = 0xff, KILN__MAX_FORMS = 8, KILN__MAX_ROWS = 16 };

/* The coordinates that a texture's or surface's shape has. */
typedef struct kiln__cpu_geometry {
  char name[8];        /* "a2d"; "" without coordinates */
  uint8_t coordinates; /* elements of their vector, three filled up to four */
  uint8_t gradient;    /* elements of each vector of .grad */
  bool array;          /* the first coordinate is a layer, .u32 */
} kiln__cpu_geometry;

/* Which addresses a source may take where a register is expected. */
typedef enum kiln__cpu_symbols {
  KILN__SYMBOLS_NONE = 0,
  KILN__SYMBOLS_ANY,     /* ~T: mov's: special registers, functions, too */
  KILN__SYMBOLS_VARIABLE /* &T: cvta's: a variable of the opcode's space */
} kiln__cpu_symbols;

/* One word of an `operands` column; ops.def explains the words. */
typedef struct kiln__cpu_form {
  uint8_t shape;
  uint8_t type;
  uint8_t space;    /* of an address */
  uint8_t variable; /* space of a variable named there; 0: the same */
  uint8_t slot;     /* 0: the next free; 1 to 4: a, b, c, e */
  uint8_t count;    /* of =V4; 0: what the opcode says; {4|8|16}: 4 + 8 + 16 */
  uint8_t symbols;  /* kiln__cpu_symbols */
  uint8_t sm;       /* .target needed where the operand is written */
  bool optional, wider;
  bool paired;        /* |p is required */
  bool strict;        /* %T */
  bool register_only; /* T!: no literal, no `_` */
  bool discards;      /* =T_: `_` may stand alone */
  bool surface;       /* [surf] */
  bool power_of_two;  /* T^ */
  /* Range of a literal: T>=1, T<=15, T*16; 0: unbounded. */
  uint32_t least, most, multiple;
  const kiln__cpu_geometry *geometry; /* [tex:2d:f32], {grad:2d} */
} kiln__cpu_form;

/* `most` of T<=B: the `bytes` of the instruction. */
enum { KILN__MOST_BYTES = 0xffff + 1 };

typedef struct kiln__cpu_row {
  const char *pattern;
  uint16_t ptx, sm;
  uint8_t kind, klass;
  bool internal;    /* made by code/ only */
  bool vec_written; /* vec holds results */
  uint8_t n_forms;
  uint16_t next; /* row with the same hash of its mnemonic */
  kiln__cpu_form forms[KILN__MAX_FORMS];
} kiln__cpu_row;

/* Reads an `operands` column. False: it is not in the language. */
bool kiln__cpu_row_read(kiln__cpu_row *row, const char *operands);

/* Whether `pattern` describes the opcode `text`. */
bool kiln__cpu_pattern_matches(const char *pattern, const char *text,
                               size_t size);

/* Applies one modifier, with its dot, to the fields. False: it is neither a
 * type nor in modifiers.def. */
bool kiln__cpu_modifier_apply(kiln__cpu_insn *in, const char *text,
                              size_t size);

/* The rows that an opcode matches, in the order of ops.def. */
typedef struct kiln__cpu_matches {
  kiln__cpu_slice opcode;
  uint32_t hash;
  kiln__cpu_insn fields; /* what the modifiers set */
  uint16_t ptx, sm;      /* needed for its modifiers */
  bool specific;         /* only for targets with a suffix */
  bool exact;            /* no result register wider than its type */
  bool no_result;        /* its result must be `_` */
  /* From this .version and this .target on, together, the opcode does not
   * exist; 0: it always does. */
  uint16_t last_ptx, last_sm;
  uint32_t family; /* KILN__FAMILY_ flags */
  uint16_t ops[KILN__MAX_ROWS];
  uint16_t n;
} kiln__cpu_matches;

/* All rows, and the opcodes of one program that were seen so far. It lives in
 * an arena. */
typedef struct kiln__cpu_matcher {
  kiln__cpu_ptx_module *arena;
  kiln__cpu_row *rows;      /* by kiln__cpu_op */
  kiln__cpu_matches **seen; /* hash table */
  uint32_t n_seen, size;    /* used; a power of two */
  uint16_t heads[256];      /* by hash of the mnemonic; 0xffff: none */
} kiln__cpu_matcher;

enum { KILN__NO_ROW = 0xffff };

/* What all opcodes of one mnemonic have in common; opcode_rules.def. */
enum {
  KILN__FAMILY_FIXED = 1 << 0,      /* modifiers come in one order only */
  KILN__FAMILY_COMPONENTS = 1 << 1, /* operands may be %v.x */
  KILN__FAMILY_LOAD = 1 << 2,       /* .param accesses may be to the stack */
  KILN__FAMILY_STORE = 1 << 3,      /* likewise */
  KILN__FAMILY_CALL = 1 << 4,
  KILN__FAMILY_ADDRESS = 1 << 5, /* takes the address of a variable */
  KILN__FAMILY_ALIGNED = 1 << 6  /* barriers: .aligned without saying so */
};

/* Flags of the opcode's mnemonic; 0: none. */
uint32_t kiln__cpu_family_of(kiln__cpu_slice opcode);

/* Apply opcode_rules.def: fills ptx, sm, specific, exact, family and ended, and
 * sets n to 0 where modifiers exclude each other. */
void kiln__cpu_rules_apply(kiln__cpu_matches *m);
/* Whether the opcode belongs to a group that the CPU device does not have. */
bool kiln__cpu_is_unsupported(kiln__cpu_slice opcode);
/* Reads all rows of ops.def. KILN_EINTERNAL: a row is malformed. */
kiln_status kiln__cpu_matcher_init(kiln__cpu_matcher *m,
                                   kiln__cpu_ptx_module *arena);
/* Finds what an opcode matches. NULL: no memory. `n` 0: there is no such
 * opcode. `text` is copied when it is new. */
const kiln__cpu_matches *kiln__cpu_matcher_find(kiln__cpu_matcher *m,
                                                const char *text, size_t size);
/* ---- A program while it is made ------------------------------------------ */

/* A growing array. All bytes zero is an empty one. */
typedef struct kiln__cpu_array {
  void *data;
  uint32_t n, capacity;
} kiln__cpu_array;

/* Appends `more` zeroed elements of `size` bytes and returns the first. NULL:
 * no memory. */
void *kiln__cpu_array_add(kiln__cpu_array *list, const kiln_allocator *a,
                          uint32_t more, size_t size);

typedef struct kiln__cpu_build {
  const kiln_allocator *a;
  kiln__cpu_program *program;
  kiln__cpu_ptx_module *arena; /* what lives as long as the program */
  kiln__cpu_ptx_module **parts;
  uint32_t n_parts;
  kiln__cpu_ptx_messages *messages; /* by part */
  kiln__cpu_matcher matcher;
  kiln__cpu_ptx_function **functions; /* by number */
  uint32_t *part_of;                  /* by number of a function */
  struct kiln__cpu_uses *uses; /* by number of a function; code_layout.c */
  /* Bytes of the .const variables so far; link_names.c counts them. */
  uint64_t const_bytes;
  uint32_t const_part;         /* the one that is beyond the limit */
  kiln__cpu_ptx_pos const_pos; /* line 0: none is */
} kiln__cpu_build;

/* Numbers functions and variables and resolves names across parts. Returns
 * KILN_OK also after messages. */
kiln_status kiln__cpu_link_symbols(kiln__cpu_build *b);

/* `number` of parameters and results. Other .param variables count from 0. */
enum { KILN__RESULT = INT32_MAX - 2, KILN__FUNCTION_PARAM, KILN__KERNEL_PARAM };

/* What a function refers to. It is found before anything is lowered. */
typedef struct kiln__cpu_uses {
  uint32_t *calls; /* numbers of functions, called or address taken */
  uint32_t n_calls;
  struct kiln__cpu_ptx_variable **shared;
  uint32_t n_shared;
  bool indirect;      /* calls through an address */
  bool address_taken; /* of this function, anywhere */
  bool grid_sync;
} kiln__cpu_uses;

/* Fills b->uses. */
kiln_status kiln__cpu_scan_uses(kiln__cpu_build *b);
/* Places shared variables; sets static_shared and dynamic_align of entries. */
kiln_status kiln__cpu_place_shared(kiln__cpu_build *b);
/* Places parameters, results and local variables of a function; lists its
 * parameters in its code. */
kiln_status kiln__cpu_place_locals(kiln__cpu_build *b, uint32_t number);
/* Sums up what entries reach. Must run after all functions are lowered. */
kiln_status kiln__cpu_sum_reach(kiln__cpu_build *b);
/* Places a function's or prototype's parameters, then its results, from the
 * start of its stack part. Returns the bytes of both. */
uint64_t kiln__cpu_place_params(kiln__cpu_ptx_function *fn);

/* ---- A function while it is made ----------------------------------------- */

/* Operands of instructions before slots are known: the number of a virtual
 * register, or KILN__IS_CONST | the number of a constant. */
enum { KILN__IS_CONST = 1 << 30 };

typedef struct kiln__cpu_lower {
  kiln__cpu_build *b;
  kiln__cpu_ptx_module *part;
  kiln__cpu_ptx_messages *messages;
  kiln__cpu_ptx_function *fn;
  kiln__cpu_code *code;
  const kiln__cpu_ptx_insn *at; /* the statement being lowered */
  uint32_t *base;               /* first virtual register of a PTX register */
  kiln__cpu_array widths; /* uint8_t: bytes of each virtual register, 4, 8 */
  kiln__cpu_array insns;  /* kiln__cpu_insn */
  kiln__cpu_array lines;  /* kiln__cpu_line */
  kiln__cpu_array consts; /* kiln__cpu_const */
  kiln__cpu_array const_hash;       /* uint32_t: number + 1 */
  kiln__cpu_array calls;            /* kiln__cpu_call */
  uint32_t *starts;                 /* first instruction of each statement */
  bool param_as_local;              /* this statement's .param is the stack */
  const kiln__cpu_matches *matches; /* of this statement's opcode */
  bool out_of_memory;
} kiln__cpu_lower;

/* Lowers every function that is defined. */
kiln_status kiln__cpu_lower_all(kiln__cpu_build *b);

/* Parts of lowering. Each reports a mistake or sets out_of_memory and returns
 * false. */
/* Reports a mistake in the function's part. Returns false. */
bool kiln__cpu_complain(kiln__cpu_lower *l, kiln__cpu_ptx_pos pos,
                        const char *format, ...) KILN_PRINTF(3, 4);
/* Records that memory is short. Returns false. */
bool kiln__cpu_no_memory(kiln__cpu_lower *l);
#ifdef __clang_analyzer__
/* The analyser looks at one file at a time and has to be shown that these
 * return false. */
#define kiln__cpu_complain(...) (kiln__cpu_complain(__VA_ARGS__), false)
#define kiln__cpu_no_memory(l) (kiln__cpu_no_memory(l), false)
#endif
/* Makes a virtual register of 4 or 8 bytes. */
int32_t kiln__cpu_new_register(kiln__cpu_lower *l,
                               uint8_t bytes); /* -1: no memory */
/* Returns the constant with these properties; equal ones are shared. */
int32_t kiln__cpu_constant(kiln__cpu_lower *l, uint8_t bytes,
                           kiln__cpu_const_kind kind, uint64_t value,
                           int64_t addend); /* -1: no memory */
/* Appends an instruction, with the statement's guard if `guarded`. */
bool kiln__cpu_emit(kiln__cpu_lower *l, const kiln__cpu_insn *in, bool guarded);
/* Fills in an instruction that the PTX text does not have; `opcode` names its
 * row. False also if there is no such row. */
bool kiln__cpu_fields_of(kiln__cpu_lower *l, kiln__cpu_insn *out,
                         const char *opcode);
/* Emits the address of a variable in the stack part of the running call. */
bool kiln__cpu_emit_local_address(kiln__cpu_lower *l, int32_t d, uint8_t bytes,
                                  int64_t offset);
/* Emits a load or store between a register and the stack part. */
bool kiln__cpu_emit_local_copy(kiln__cpu_lower *l, bool load,
                               kiln__cpu_ptx_type type, int32_t reg,
                               uint64_t offset, bool guarded);
bool kiln__cpu_is_register(const kiln__cpu_ptx_operand *o);
/* Returns the virtual register of a register operand. */
int32_t kiln__cpu_register_of(const kiln__cpu_lower *l,
                              const kiln__cpu_ptx_operand *o);
/* Whether a register of type `have` may be an operand of type `want`, or a
 * wider one if `wider`. */
bool kiln__cpu_type_fits(kiln__cpu_ptx_type want, kiln__cpu_ptx_type have,
                         bool wider);
/* Converts a literal to the bits of type `want`. False: it is of another kind.
 */
bool kiln__cpu_literal(const kiln__cpu_ptx_operand *o, kiln__cpu_ptx_type want,
                       uint64_t *bits);
bool kiln__cpu_is_local(const kiln__cpu_ptx_variable *v);
/* Whether a function is declared, not .extern, and defined nowhere. It then has
 * no address. */
bool kiln__cpu_is_missing(const kiln__cpu_build *b,
                          const kiln__cpu_ptx_function *fn);

/* Whether the operands of the statement have the number and the shapes of
 * `row`. */
bool kiln__cpu_shapes_fit(const kiln__cpu_row *row,
                          const kiln__cpu_insn *fields,
                          const kiln__cpu_ptx_insn *statement);
/* Fills `in` from the operands of the statement. Emits instructions that must
 * come before it. */
bool kiln__cpu_bind_operands(kiln__cpu_lower *l, const kiln__cpu_row *row,
                             kiln__cpu_insn *in);
/* cp.async.bulk that signals an mbarrier: becomes two instructions. */
bool kiln__cpu_is_bulk(kiln__cpu_slice opcode);
bool kiln__cpu_lower_bulk(kiln__cpu_lower *l);
/* Emits a call with the copies of its arguments and results. */
bool kiln__cpu_lower_call(kiln__cpu_lower *l, kiln__cpu_insn *in);
/* Emit the loads of parameters, and the stores of results, that are registers.
 */
bool kiln__cpu_load_formals(kiln__cpu_lower *l);
bool kiln__cpu_store_results(kiln__cpu_lower *l);

/* ---- Flow and slots ------------------------------------------------------ */

/* Basic blocks: instructions first[i] to first[i + 1]. */
typedef struct kiln__cpu_blocks {
  uint32_t n;
  uint32_t *first; /* n + 1 */
  uint32_t *edges; /* n + 1: where a block's successors begin in `to` */
  uint32_t *to;
} kiln__cpu_blocks;

/* Splits instructions whose targets are resolved into basic blocks. */
kiln_status kiln__cpu_blocks_make(kiln__cpu_blocks *out,
                                  const kiln_allocator *a,
                                  const kiln__cpu_insn *insns, uint32_t n);
void kiln__cpu_blocks_free(kiln__cpu_blocks *blocks, const kiln_allocator *a);
/* Sets `join` of branches, the KILN__JOIN flags, and the places of all
 * instructions. */
kiln_status kiln__cpu_flow_join(const kiln__cpu_blocks *blocks,
                                const kiln_allocator *a, kiln__cpu_insn *insns,
                                kiln__cpu_place *places);

/* The registers that an instruction reads and writes, as pointers to its
 * fields. */
typedef struct kiln__cpu_touched {
  int32_t **at;
  uint32_t n_reads, n; /* first those read, then those written */
  uint32_t capacity;
} kiln__cpu_touched;

/* Lists what `in` touches; `row` is its row. Free out->at at the end. */
kiln_status kiln__cpu_touch(kiln__cpu_touched *out, const kiln_allocator *a,
                            const kiln__cpu_row *row, kiln__cpu_insn *in);

/* Replaces virtual registers and constants of `insns` by byte offsets of slots.
 *
 * `widths` holds the bytes of each virtual register, 4 or 8. `consts` receive
 * their slots, too. *frame_bytes is the size of the frame, *pressure the
 * largest number of 32-bit registers alive at once. Returns KILN_OK or
 * KILN_ENOMEM. */
kiln_status kiln__cpu_slots_assign(const kiln_allocator *a,
                                   const kiln__cpu_row *rows,
                                   const kiln__cpu_blocks *blocks,
                                   kiln__cpu_insn *insns, uint32_t n,
                                   const uint8_t *widths, uint32_t n_registers,
                                   kiln__cpu_const *consts, uint32_t n_consts,
                                   uint32_t *frame_bytes, uint32_t *pressure);

#endif
