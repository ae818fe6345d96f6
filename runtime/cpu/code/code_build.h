/* code_build.h -- inside of code/: from PTX statements to instructions.
 *
 * Order of work: link_names.c numbers the functions and variables of all parts,
 * code_layout.c places shared memory and parameters, then for each function lower.c
 * makes instructions over virtual registers, control_flow.c finds where branches meet
 * again, and register_slots.c replaces registers by slots of the frame. */
#ifndef KILN_CPU_BUILD_H
#define KILN_CPU_BUILD_H

#include "code.h"

/* ---- Rows of ops.def, read ------------------------------------------------- */

typedef enum kiln__shape {
  KILN__SHAPE_DEST,      /* =T */
  KILN__SHAPE_DEST_PAIR, /* =T|P, =T||P */
  KILN__SHAPE_SOURCE,    /* T */
  KILN__SHAPE_NUMBER,    /* #T */
  KILN__SHAPE_PREDICATE, /* !T */
  KILN__SHAPE_ADDRESS,   /* [S] */
  KILN__SHAPE_TEXTURE,   /* [tex] */
  KILN__SHAPE_LIST,      /* {list} */
  KILN__SHAPE_DATA_OUT,  /* =V */
  KILN__SHAPE_DATA_IN,   /* V */
  KILN__SHAPE_CHOICE,    /* {4|8|16} */
  KILN__SHAPE_PACK,
  KILN__SHAPE_UNPACK,
  KILN__SHAPE_LABEL,
  KILN__SHAPE_TARGETS,
  KILN__SHAPE_CALL
} kiln__shape;

/* Types of operands beside those of kiln__ptx_type. */
enum {
  KILN__TYPE_LAST = KILN__N_PTX_TYPES, /* $1 */
  KILN__TYPE_BEFORE,                   /* $2 */
  KILN__TYPE_TWICE,                    /* $W */
  KILN__TYPE_WORD                      /* w */
};

enum { KILN__SPACE_OF_OPCODE = 0xff, KILN__MAX_FORMS = 8, KILN__MAX_ROWS = 16 };

typedef struct kiln__form {
  uint8_t shape;
  uint8_t type;
  uint8_t space; /* of an address */
  uint8_t slot;  /* 0: the next free; 1 to 4: a, b, c, e */
  uint8_t count; /* of =V4; 0: what the opcode says; {4|8|16}: 4 + 8 + 16 */
  bool optional, wider;
  bool paired; /* |p must be there */
  bool strict; /* %T */
} kiln__form;

typedef struct kiln__row {
  const char *pattern;
  uint16_t ptx, sm;
  uint8_t kind, klass;
  bool internal;    /* made by code/ only */
  bool vec_written; /* vec holds results */
  uint8_t n_forms;
  uint16_t next; /* row with the same hash of its mnemonic */
  kiln__form forms[KILN__MAX_FORMS];
} kiln__row;

/* Read an `operands` column. False: not in the language. */
bool kiln__row_read(kiln__row *row, const char *operands);

/* Whether `pattern` describes the opcode `text`. */
bool kiln__pattern_matches(const char *pattern, const char *text, size_t size);

/* What one modifier sets; `text` without the dot's successor. False: neither a
 * type nor in modifiers.def. */
bool kiln__modifier_apply(kiln__insn *in, const char *text, size_t size);

/* The rows that an opcode matches, in order. */
typedef struct kiln__matches {
  kiln__slice opcode;
  uint32_t hash;
  kiln__insn fields; /* what the modifiers set */
  uint16_t ptx, sm;  /* needed for its modifiers */
  bool specific;     /* only for targets with a suffix */
  bool exact;        /* no result register wider than its type */
  uint16_t ops[KILN__MAX_ROWS];
  uint16_t n;
} kiln__matches;

/* All rows, and the opcodes of one program seen so far. Lives in an arena. */
typedef struct kiln__matcher {
  kiln__ptx_module *arena;
  kiln__row *rows;       /* by kiln__op */
  kiln__matches **seen;  /* hash table */
  uint32_t n_seen, size; /* used; a power of two */
  uint16_t heads[256];   /* by hash of the mnemonic; 0xffff: none */
} kiln__matcher;

enum { KILN__NO_ROW = 0xffff };

/* Coordinates of a texture or surface instruction. */
typedef struct kiln__geometry {
  uint8_t coordinates; /* elements of their vector; 0: none */
  uint8_t gradient;    /* elements of each of the two vectors of .grad */
  uint8_t type;        /* of a coordinate: kiln__ptx_type or KILN__TYPE_LAST */
  bool array;          /* the first one is a layer, .u32 */
} kiln__geometry;

kiln__geometry kiln__geometry_of(kiln__slice opcode);

/* What needs.def says about the opcode. */
void kiln__needs_of(kiln__matches *m);

kiln_status kiln__matcher_init(kiln__matcher *m, kiln__ptx_module *arena);
/* NULL: no memory. `n` 0: no such opcode. `text` is copied when new. */
const kiln__matches *kiln__matcher_find(kiln__matcher *m, const char *text,
                                        size_t size);
/* ---- A program while it is made --------------------------------------------- */

/* A growing array; all zero is an empty one. */
typedef struct kiln__array {
  void *data;
  uint32_t n, capacity;
} kiln__array;

/* Room for `more` elements of `size` bytes, zeroed, at the end; NULL: no
 * memory. They count as used at once. */
void *kiln__array_add(kiln__array *list, const kiln_allocator *a, uint32_t more,
                      size_t size);

typedef struct kiln__build {
  const kiln_allocator *a;
  kiln__program *program;
  kiln__ptx_module *arena; /* what lives as long as the program */
  kiln__ptx_module **parts;
  uint32_t n_parts;
  kiln__ptx_messages *messages; /* by part */
  kiln__matcher matcher;
  kiln__ptx_function **functions; /* by number */
  uint32_t *part_of;              /* by number of a function */
  struct kiln__uses *uses;        /* by number of a function; code_layout.c */
  kiln__array shared;             /* struct kiln__shared_use; code_layout.c */
} kiln__build;

/* Number functions and variables, resolve names across parts. KILN_OK also
 * after complaints. */
kiln_status kiln__link_symbols(kiln__build *b);

/* `number` of parameters and results; other .param variables count from 0. */
enum { KILN__RESULT = INT32_MAX - 2, KILN__FUNCTION_PARAM, KILN__KERNEL_PARAM };

/* What a function refers to, found before anything is lowered. */
typedef struct kiln__uses {
  uint32_t *calls; /* numbers of functions, called or address taken */
  uint32_t n_calls;
  struct kiln__ptx_variable **shared;
  uint32_t n_shared;
  bool indirect;      /* calls through an address */
  bool address_taken; /* of this function, anywhere */
  bool grid_sync;
} kiln__uses;

kiln_status kiln__scan_uses(kiln__build *b);
/* Offsets of shared variables; static_shared and dynamic_align of entries. */
kiln_status kiln__place_shared(kiln__build *b);
/* Offsets of parameters and results; local variables; code->params. */
kiln_status kiln__place_locals(kiln__build *b, uint32_t number);
/* After lowering: what entries reach. */
kiln_status kiln__sum_reach(kiln__build *b);
/* Offsets of a prototype's or function's parameters from the start of the
 * callee's part: parameters, then results. Bytes of both. */
uint64_t kiln__place_params(kiln__ptx_function *fn);

/* ---- A function while it is made --------------------------------------------- */

/* Operands of instructions before slots are known: a virtual register, or
 * KILN__IS_CONST | number of a constant. */
enum { KILN__IS_CONST = 1 << 30 };

typedef struct kiln__lower {
  kiln__build *b;
  kiln__ptx_module *part;
  kiln__ptx_messages *messages;
  kiln__ptx_function *fn;
  kiln__code *code;
  const kiln__ptx_insn *at; /* the statement being lowered */
  uint32_t *base;           /* first virtual register of a PTX register */
  kiln__array widths;       /* uint8_t: bytes of each virtual register, 4, 8 */
  kiln__array insns;        /* kiln__insn */
  kiln__array lines;        /* kiln__line */
  kiln__array consts;       /* kiln__const */
  kiln__array const_hash;   /* uint32_t: number + 1 */
  kiln__array calls;        /* kiln__call */
  uint32_t *starts;         /* first instruction of each statement */
  bool param_as_local;      /* this statement's .param is the stack */
  bool exact;               /* its results are not widened */
  bool out_of_memory;
} kiln__lower;

/* Lower every function that is defined. */
kiln_status kiln__lower_all(kiln__build *b);

/* bind_statement.c, lower_call.c: parts of lower.c. Each complains or sets out_of_memory
 * and returns false. */
bool kiln__complain(kiln__lower *l, kiln__ptx_pos pos, const char *format, ...)
    KILN_PRINTF(3, 4);
bool kiln__no_memory(kiln__lower *l);
#ifdef __clang_analyzer__
/* It looks at one file at a time: tell it that these are never true. */
#define kiln__complain(...) (kiln__complain(__VA_ARGS__), false)
#define kiln__no_memory(l) (kiln__no_memory(l), false)
#endif
int32_t kiln__new_register(kiln__lower *l, uint8_t bytes); /* -1: no memory */
int32_t kiln__constant(kiln__lower *l, uint8_t bytes, kiln__const_kind kind,
                       uint64_t value, int64_t addend); /* -1: no memory */
/* Append; with the statement's guard if `guarded`. */
bool kiln__emit(kiln__lower *l, const kiln__insn *in, bool guarded);
/* An instruction that PTX text did not ask for: `opcode` names the row. False
 * also if the row is missing. */
bool kiln__fields_of(kiln__lower *l, kiln__insn *out, const char *opcode);
/* Address of a variable in the running call's part of the stack. */
bool kiln__emit_local_address(kiln__lower *l, int32_t d, uint8_t bytes,
                              int64_t offset);
/* Load or store (`opcode` "ld.local" or "st.local") a register there. */
bool kiln__emit_local_copy(kiln__lower *l, bool load, kiln__ptx_type type,
                           int32_t reg, uint64_t offset, bool guarded);
bool kiln__is_register(const kiln__ptx_operand *o);
/* The virtual register of a register operand. */
int32_t kiln__register_of(const kiln__lower *l, const kiln__ptx_operand *o);
/* Whether a register of type `have` may stand where an instruction says
 * `want`. */
bool kiln__type_fits(kiln__ptx_type want, kiln__ptx_type have, bool wider);
/* Bits of a literal as `want`. False: not a literal of that kind. */
bool kiln__literal(const kiln__ptx_operand *o, kiln__ptx_type want,
                   uint64_t *bits);
bool kiln__is_local(const kiln__ptx_variable *v);
/* Declared, not .extern, and defined nowhere: it has no address. */
bool kiln__is_missing(const kiln__build *b, const kiln__ptx_function *fn);

/* Whether the operands of the statement have the number and shapes of `row`. */
bool kiln__shapes_fit(const kiln__row *row, const kiln__insn *fields,
                      const kiln__ptx_insn *statement);
/* Fill `in` from the operands; emits what has to come before it. */
bool kiln__bind_operands(kiln__lower *l, const kiln__row *row, kiln__insn *in);
/* cp.async.bulk that tells a barrier: two instructions. */
bool kiln__is_bulk(kiln__slice opcode);
bool kiln__lower_bulk(kiln__lower *l);
bool kiln__lower_call(kiln__lower *l, kiln__insn *in);
/* Formal parameters and results in registers. */
bool kiln__load_formals(kiln__lower *l);
bool kiln__store_results(kiln__lower *l);

/* ---- Flow and slots ------------------------------------------------------------ */

/* Basic blocks: instructions first[i] to first[i + 1]. */
typedef struct kiln__blocks {
  uint32_t n;
  uint32_t *first; /* n + 1 */
  uint32_t *edges; /* n + 1: where a block's successors begin in `to` */
  uint32_t *to;
} kiln__blocks;

kiln_status kiln__blocks_make(kiln__blocks *out, const kiln_allocator *a,
                              const kiln__insn *insns, uint32_t n);
void kiln__blocks_free(kiln__blocks *blocks, const kiln_allocator *a);
/* Set join and KILN__JOIN, and the places of all instructions. */
kiln_status kiln__flow_join(const kiln__blocks *blocks, const kiln_allocator *a,
                            kiln__insn *insns, kiln__place *places);

/* The registers that an instruction reads and writes: pointers to its fields. */
typedef struct kiln__touched {
  int32_t **at;
  uint32_t n_reads, n; /* first those read, then those written */
  uint32_t capacity;
} kiln__touched;

kiln_status kiln__touch(kiln__touched *out, const kiln_allocator *a,
                        const kiln__row *row, kiln__insn *in);

/* Replace virtual registers (widths: bytes of each) and constants by slots.
 * `consts` get their slots too. *frame_bytes: of all; *pressure: most 32-bit
 * registers alive at once. */
kiln_status kiln__slots_assign(const kiln_allocator *a, const kiln__row *rows,
                               const kiln__blocks *blocks, kiln__insn *insns,
                               uint32_t n, const uint8_t *widths,
                               uint32_t n_registers, kiln__const *consts,
                               uint32_t n_consts, uint32_t *frame_bytes,
                               uint32_t *pressure);

#endif
