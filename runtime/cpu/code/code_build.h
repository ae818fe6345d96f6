/* code_build.h -- the internal interface of code/, which turns PTX statements
 * into executable instructions.
 *
 * The build runs these files in this order:
 *   link_names.c      numbers the functions and variables of all parts
 *   code_layout.c     assigns offsets to shared variables, parameters and
 *                     local variables
 * Then, for each function:
 *   lower.c           makes instructions over virtual registers, with
 *                     match_opcode.c, opcode_rules.c, lower_call.c and the
 *                     bind_ files
 *   control_flow.c    finds where divergent branches reconverge
 *   register_slots.c  replaces virtual registers by slots of the frame
 * At the end:
 *   code_layout.c     computes the memory that each kernel needs in total
 *
 * The whole build runs on the thread that loads the module. Data that outlives
 * the build is allocated in the arena of the first part. A part is one of the
 * PTX modules that are linked. */
#ifndef KILN_CPU_BUILD_H
#define KILN_CPU_BUILD_H

#include "code.h"

/* ---- Parsed rows of ops.def ---------------------------------------------- */

typedef enum kiln__cpu_shape {
  KILN__SHAPE_DEST,      /* destination register (=T in ops.def) */
  KILN__SHAPE_DEST_PAIR, /* destination and predicate (=T|P in ops.def) */
  KILN__SHAPE_SOURCE,    /* register or immediate (T, ~T, &T in ops.def) */
  KILN__SHAPE_NUMBER,    /* immediate operand (#T in ops.def) */
  KILN__SHAPE_PREDICATE, /* predicate that may be negated (!T in ops.def) */
  KILN__SHAPE_ADDRESS,   /* address in a state space ([S] in ops.def) */
  KILN__SHAPE_TEXTURE,   /* texture or surface ([tex], [surf] in ops.def) */
  KILN__SHAPE_LIST,      /* value after the coordinates ({list} in ops.def) */
  KILN__SHAPE_GRADIENT,  /* texture gradient ({grad:2d} in ops.def) */
  KILN__SHAPE_MAP,       /* tensor map and coordinates ([map] in ops.def) */
  KILN__SHAPE_OFFSETS,   /* im2col offsets ({offsets} in ops.def) */
  KILN__SHAPE_MASK,      /* mask of blocks ({mask} in ops.def) */
  KILN__SHAPE_SKIP,      /* number of bytes ({skip} in ops.def) */
  KILN__SHAPE_POLICY,    /* cache policy ({policy} in ops.def) */
  KILN__SHAPE_DATA_OUT,  /* destination vector (=V in ops.def) */
  KILN__SHAPE_DATA_IN,   /* source vector (V in ops.def) */
  KILN__SHAPE_FRAGMENT,  /* vector of mma or wmma ({a} in ops.def) */
  KILN__SHAPE_SELECTOR,  /* sparsity selector ({selector} in ops.def) */
  KILN__SHAPE_CHOICE,    /* one of several numbers ({4|8|16} in ops.def) */
  KILN__SHAPE_PACK,
  KILN__SHAPE_UNPACK,
  KILN__SHAPE_LABEL,
  KILN__SHAPE_TARGETS,
  KILN__SHAPE_CALL,
  KILN__SHAPE_WGMMA, /* all operands of wgmma.mma_async */
  KILN__SHAPE_VIDEO  /* all operands of a video instruction */
} kiln__cpu_shape;

/* Operand types in addition to those of kiln__cpu_ptx_type. */
enum {
  /* The last type modifier of the opcode ($1 in ops.def). */
  KILN__TYPE_LAST = KILN__N_PTX_TYPES,
  /* The type modifier that precedes the last one ($2 in ops.def). */
  KILN__TYPE_BEFORE,
  /* The last type modifier, but twice as wide ($W in ops.def). */
  KILN__TYPE_TWICE,
  /* A 32-bit or 64-bit address (w in ops.def). */
  KILN__TYPE_WORD
};

enum { KILN__SPACE_OF_OPCODE = 0xff, KILN__MAX_FORMS = 8, KILN__MAX_ROWS = 16 };

/* The number and kind of the coordinates that a texture shape (1D, 2D, an
 * array, a cube map) takes. Surfaces use the same shapes. */
typedef struct kiln__cpu_geometry {
  /* Name of the shape, such as "a2d"; "" if it has no coordinates. */
  char name[8];
  /* Number of elements of the coordinate vector; 4 where the shape needs 3. */
  uint8_t coordinates;
  uint8_t gradient; /* number of elements of each gradient vector */
  bool array;       /* the first coordinate is a layer index of type .u32 */
} kiln__cpu_geometry;

/* Which symbols a source operand accepts in place of a register. */
typedef enum kiln__cpu_symbols {
  KILN__SYMBOLS_NONE = 0,
  /* An operand of mov may also be a special register, a variable or a function
   * (~T in ops.def). */
  KILN__SYMBOLS_ANY,
  /* An operand of cvta may also be a variable in the opcode's state space (&T
   * in ops.def). */
  KILN__SYMBOLS_VARIABLE
} kiln__cpu_symbols;

enum { KILN__SLOT_E = 4 }; /* value of `slot` of an operand @e */

/* One parsed operand description from the `operands` column of ops.def. ops.def
 * defines the syntax. */
typedef struct kiln__cpu_form {
  uint8_t shape;
  uint8_t type;
  uint8_t space; /* state space of an address */
  /* State space of a variable in the address; 0 means `space`. */
  uint8_t variable;
  /* Instruction field that receives the operand: 1 to 4 mean the fields a, b,
   * c, e; 0 means the next free one of these fields. */
  uint8_t slot;
  /* Number of elements of a vector (=V4 in ops.def), or 0 if the opcode
   * determines the number. For a choice such as {4|8|16}, the sum of the
   * numbers. For a fragment, its kiln__cpu_fragment. */
  uint8_t count;
  uint8_t symbols; /* value of the enumeration kiln__cpu_symbols */
  uint8_t sm;      /* minimum .target if the operand is present */
  bool optional, wider;
  bool paired; /* the predicate |p is required (=T||P in ops.def) */
  /* Only registers declared with a type .bN are allowed (%T in ops.def). */
  bool strict;
  bool register_only; /* no literal and no `_` is allowed (T! in ops.def) */
  bool discards;      /* the destination may be `_` (=T_ in ops.def) */
  bool written;       /* the fragment is a destination (={d} in ops.def) */
  bool surface;       /* the operand is a surface handle ([surf] in ops.def) */
  bool listed;        /* the address is appended to vec2 ([mbar] in ops.def) */
  bool power_of_two;  /* literals must be a power of two (T^ in ops.def) */
  /* Constraints on a literal: minimum, maximum and required divisor (T>=1,
   * T<=15 and T*16 in ops.def). A value of 0 means no constraint. */
  uint32_t least, most, multiple;
  /* Texture shape of the operand ([tex:2d:f32] or {grad:2d} in ops.def), or
   * NULL. */
  const kiln__cpu_geometry *geometry;
} kiln__cpu_form;

/* Value of `most` if the maximum of a literal is the `bytes` field of the
 * instruction (T<=B in ops.def). */
enum { KILN__MOST_BYTES = 0xffff + 1 };

typedef struct kiln__cpu_row {
  const char *pattern;
  uint16_t ptx, sm;
  uint8_t kind, klass;
  bool internal;    /* PTX sources cannot contain this instruction */
  bool vec_written; /* the array vec holds destination slots */
  uint8_t n_forms;
  uint16_t next; /* number of the next row whose mnemonic has this hash */
  kiln__cpu_form forms[KILN__MAX_FORMS];
} kiln__cpu_row;

/* Parses an `operands` column into row->forms. Returns false if the column
 * violates the syntax of ops.def. */
bool kiln__cpu_row_read(kiln__cpu_row *row, const char *operands);

/* Returns whether the opcode `text` matches the pattern of a row of ops.def. */
bool kiln__cpu_pattern_matches(const char *pattern, const char *text,
                               size_t size);

/* Sets the instruction field that one modifier stands for. `text` includes the
 * leading dot. Returns false if `text` is neither a type nor listed in
 * modifiers.def. */
bool kiln__cpu_modifier_apply(kiln__cpu_insn *in, const char *text,
                              size_t size);

/* The rows of ops.def that an opcode matches, in the order of ops.def. */
typedef struct kiln__cpu_matches {
  kiln__cpu_slice opcode;
  uint32_t hash;
  kiln__cpu_insn fields; /* instruction fields that the modifiers set */
  uint16_t ptx, sm;      /* minimum .version and .target of the modifiers */
  /* Only targets with a suffix, such as sm_90a, have the opcode. */
  bool specific;
  /* The only target that has the opcode, with the suffix a; 0 if there is no such
   * limit. */
  uint16_t only;
  bool exact;     /* result registers must not be wider than their type */
  bool no_result; /* the result operand must be `_` */
  /* The opcode does not exist if .version is at least last_ptx and .target at
   * least last_sm. A value of 0 means that it always exists. */
  uint16_t last_ptx, last_sm;
  uint32_t family; /* bitwise OR of KILN__FAMILY_ flags */
  uint16_t ops[KILN__MAX_ROWS];
  uint16_t n;
} kiln__cpu_matches;

/* All parsed rows of ops.def, and a cache of the opcodes seen so far in one
 * program. The matcher is allocated in an arena. */
typedef struct kiln__cpu_matcher {
  kiln__cpu_ptx_module *arena;
  kiln__cpu_row *rows;      /* all rows of ops.def, indexed by kiln__cpu_op */
  kiln__cpu_matches **seen; /* hash table of the opcodes seen so far */
  /* Number of used entries in the hash table, and size of the table, which is a
   * power of two. */
  uint32_t n_seen, size;
  uint16_t heads[256]; /* number of the first row per mnemonic hash */
} kiln__cpu_matcher;

enum { KILN__NO_ROW = 0xffff };

/* Properties that all opcodes of one mnemonic share. opcode_rules.def assigns
 * them. */
enum {
  /* Modifiers must appear in the order of the pattern. */
  KILN__FAMILY_FIXED = 1 << 0,
  /* Operands may be vector components such as %v.x. */
  KILN__FAMILY_COMPONENTS = 1 << 1,
  KILN__FAMILY_LOAD = 1 << 2,  /* a load from .param may access the stack */
  KILN__FAMILY_STORE = 1 << 3, /* a store to .param may access the stack */
  KILN__FAMILY_CALL = 1 << 4,
  /* The source may be the address of a variable. */
  KILN__FAMILY_ADDRESS = 1 << 5,
  /* The instruction is aligned even without the modifier .aligned. */
  KILN__FAMILY_ALIGNED = 1 << 6
};

/* Returns the KILN__FAMILY_ flags of the opcode's mnemonic, or 0 if it has
 * none. */
uint32_t kiln__cpu_family_of(kiln__cpu_slice opcode);

/* Applies opcode_rules.def to a matched opcode. Sets the members ptx, sm,
 * specific, only, exact, no_result, last_ptx and last_sm. Sets n to 0 if the rules
 * exclude a combination of the opcode's modifiers. */
void kiln__cpu_rules_apply(kiln__cpu_matches *m);
/* Returns whether the opcode belongs to a family of PTX instructions that the
 * CPU device does not implement. */
bool kiln__cpu_is_unsupported(kiln__cpu_slice opcode);
/* Parses all rows of ops.def. Returns KILN_EINTERNAL if a row is malformed. */
kiln_status kiln__cpu_matcher_init(kiln__cpu_matcher *m,
                                   kiln__cpu_ptx_module *arena);
/* Finds the rows that an opcode matches. The result has `n` equal to 0 if no
 * such opcode exists. Returns NULL if memory allocation fails. The matcher
 * copies `text` when it sees an opcode for the first time. */
const kiln__cpu_matches *kiln__cpu_matcher_find(kiln__cpu_matcher *m,
                                                const char *text, size_t size);
/* ---- Building a program -------------------------------------------------- */

/* A dynamic array. A zero-initialised struct is an empty array. */
typedef struct kiln__cpu_array {
  void *data;
  uint32_t n, capacity;
} kiln__cpu_array;

/* Appends `more` zeroed elements of `size` bytes each and returns a pointer to
 * the first of them. Returns NULL if memory allocation fails. */
void *kiln__cpu_array_add(kiln__cpu_array *list, const kiln_allocator *a,
                          uint32_t more, size_t size);

typedef struct kiln__cpu_build {
  const kiln_allocator *a;
  kiln__cpu_program *program;
  /* Arena of the allocations that live as long as the program. */
  kiln__cpu_ptx_module *arena;
  kiln__cpu_ptx_module **parts;
  uint32_t n_parts;
  bool linked; /* true for linked modules, see kiln__cpu_drop_unreached() */
  /* Error messages, one element per linked PTX module. */
  kiln__cpu_ptx_messages *messages;
  kiln__cpu_matcher matcher;
  /* PTX functions, indexed by function number */
  kiln__cpu_ptx_function **functions;
  /* For each function: index of the linked PTX module that contains it. */
  uint32_t *part_of;
  /* index in program->files of each part's file number 0 */
  uint32_t *file_base;
  /* The functions and shared variables that each function refers to, indexed by
   * function number. See code_layout.c. */
  struct kiln__cpu_uses *uses;
  /* Total size of the .const variables seen so far, in bytes. link_names.c
   * updates the sum. */
  uint64_t const_bytes;
  /* Index of the linked PTX module whose .const variable exceeds the limit. */
  uint32_t const_part;
  /* Source position of the .const variable that exceeds the limit. The line is
   * 0 if no variable exceeds it. */
  kiln__cpu_ptx_pos const_pos;
} kiln__cpu_build;

/* Numbers functions and variables and resolves names across the linked PTX
 * modules. Returns KILN_OK even if mistakes in the PTX source were reported. */
kiln_status kiln__cpu_link_symbols(kiln__cpu_build *b);

/* Special values of the `number` member of parameters and results. Other .param
 * variables are numbered from 0. */
enum { KILN__RESULT = INT32_MAX - 2, KILN__FUNCTION_PARAM, KILN__KERNEL_PARAM };

/* The functions and shared variables that a function refers to. They are
 * collected before any function is lowered. */
typedef struct kiln__cpu_uses {
  /* Numbers of functions that are called or whose address is taken. */
  uint32_t *calls;
  uint32_t n_calls;
  struct kiln__cpu_ptx_variable **shared;
  uint32_t n_shared;
  bool indirect;      /* the function makes indirect calls */
  bool address_taken; /* the address of this function is taken somewhere */
  bool grid_sync;
} kiln__cpu_uses;

/* Fills b->uses with the references of every function. */
kiln_status kiln__cpu_scan_uses(kiln__cpu_build *b);
/* Removes the bodies of functions that neither kernels nor variables refer to, if they call
 * functions that are not defined. NVIDIA's linker removes all unreferenced functions, so
 * such a call is no mistake. */
kiln_status kiln__cpu_drop_unreached(kiln__cpu_build *b);
/* Assigns offsets to shared variables. Sets static_shared and dynamic_align of
 * every entry. */
kiln_status kiln__cpu_place_shared(kiln__cpu_build *b);
/* Assigns stack offsets to the parameters, results and local variables of a
 * function. Fills in the parameter lists of its code. */
kiln_status kiln__cpu_place_locals(kiln__cpu_build *b, uint32_t number);
/* Computes the stack size, registers and barriers that each entry needs,
 * including all functions that it can call. Must run after all functions have
 * been lowered. */
kiln_status kiln__cpu_sum_reach(kiln__cpu_build *b);
/* Assigns offsets to the parameters and then to the results of a function or
 * prototype. Offsets start at the function's part of the stack. Returns the
 * total size in bytes. */
uint64_t kiln__cpu_place_params(kiln__cpu_ptx_function *fn);

/* ---- Lowering a function ------------------------------------------------- */

/* Encoding of instruction operands before register slots are assigned: the
 * number of a virtual register, or KILN__IS_CONST | the number of a
 * constant. */
enum { KILN__IS_CONST = 1 << 30 };

typedef struct kiln__cpu_lower {
  kiln__cpu_build *b;
  kiln__cpu_ptx_module *part;
  uint32_t file_base; /* see kiln__cpu_build */
  kiln__cpu_ptx_messages *messages;
  kiln__cpu_ptx_function *fn;
  kiln__cpu_code *code;
  const kiln__cpu_ptx_insn *at; /* the statement being lowered */
  uint32_t *base; /* first virtual register of each PTX register */
  /* Sizes of the virtual registers in bytes, 4 or 8, as elements of type
   * uint8_t. */
  kiln__cpu_array widths;
  kiln__cpu_array insns;  /* instructions, of type kiln__cpu_insn */
  kiln__cpu_array lines;  /* source positions, of type kiln__cpu_line */
  kiln__cpu_array consts; /* constants, of type kiln__cpu_const */
  /* Hash table of the constants. An element of type uint32_t is 1 + the number
   * of a constant. */
  kiln__cpu_array const_hash;
  kiln__cpu_array calls; /* call sites, of type kiln__cpu_call */
  uint32_t *starts;      /* index of the first instruction of each statement */
  /* .param in the current statement refers to the per-lane stack. */
  bool param_as_local;
  /* The rows of ops.def that the opcode of the current statement matches. */
  const kiln__cpu_matches *matches;
  bool out_of_memory;
} kiln__cpu_lower;

/* Lowers every function that has a definition. */
kiln_status kiln__cpu_lower_all(kiln__cpu_build *b);

/* The functions below implement the lowering of one PTX function. Those that
 * return bool return false after they report a mistake or set out_of_memory. */
/* Reports a mistake in the PTX source of the function. Returns false. */
bool kiln__cpu_complain(kiln__cpu_lower *l, kiln__cpu_ptx_pos pos,
                        const char *format, ...) KILN_PRINTF(3, 4);
/* Records that a memory allocation failed. Returns false. */
bool kiln__cpu_no_memory(kiln__cpu_lower *l);
#ifdef __clang_analyzer__
/* The static analyser sees one file at a time. These macros tell it that both
 * functions that report mistakes return false. */
#define kiln__cpu_complain(...) (kiln__cpu_complain(__VA_ARGS__), false)
#define kiln__cpu_no_memory(l) (kiln__cpu_no_memory(l), false)
#endif
/* Creates a virtual register of 4 or 8 bytes. Returns its number, or -1 if
 * memory allocation fails. */
int32_t kiln__cpu_new_register(kiln__cpu_lower *l, uint8_t bytes);
/* Returns the operand of a constant with the given properties. Equal constants
 * are shared. Returns -1 if memory allocation fails. */
int32_t kiln__cpu_constant(kiln__cpu_lower *l, uint8_t bytes,
                           kiln__cpu_const_kind kind, uint64_t value,
                           int64_t addend);
/* Appends an instruction to the function. If `guarded`, the instruction
 * receives the guard of the current statement. */
bool kiln__cpu_emit(kiln__cpu_lower *l, const kiln__cpu_insn *in, bool guarded);
/* Makes `in` an instruction of row `op` of ops.def. */
void kiln__cpu_set_row(const kiln__cpu_lower *l, kiln__cpu_insn *in,
                       uint16_t op);
/* Initialises an instruction that lowering inserts and the PTX source does not
 * contain. `opcode` selects its row. Returns false also if no row matches
 * `opcode`. */
bool kiln__cpu_fields_of(kiln__cpu_lower *l, kiln__cpu_insn *out,
                         const char *opcode);
/* Emits an instruction that computes the address of a variable in the current
 * call's part of the stack. */
bool kiln__cpu_emit_local_address(kiln__cpu_lower *l, int32_t d, uint8_t bytes,
                                  int64_t offset);
/* Emits a load or store between a register and the current call's part of the
 * stack. */
bool kiln__cpu_emit_local_copy(kiln__cpu_lower *l, bool load,
                               kiln__cpu_ptx_type type, int32_t reg,
                               uint64_t offset, bool guarded);
/* Returns whether the operand is a register. */
bool kiln__cpu_is_register(const kiln__cpu_ptx_operand *o);
/* Returns the virtual register of a register operand. */
int32_t kiln__cpu_register_of(const kiln__cpu_lower *l,
                              const kiln__cpu_ptx_operand *o);
/* Returns whether a register of type `have` may be an operand of type `want`.
 * If `wider`, the register may also be wider than `want`. */
bool kiln__cpu_type_fits(kiln__cpu_ptx_type want, kiln__cpu_ptx_type have,
                         bool wider);
/* Converts a literal to the bit pattern of type `want`. Returns false if the
 * literal is not valid for this type. */
bool kiln__cpu_literal(const kiln__cpu_ptx_operand *o, kiln__cpu_ptx_type want,
                       uint64_t *bits);
/* Returns whether the variable lies in the per-lane stack. */
bool kiln__cpu_is_local(const kiln__cpu_ptx_variable *v);
/* Returns whether a function is declared without .extern and has no definition
 * in any of the linked PTX modules. Such a function has no address. */
bool kiln__cpu_is_missing(const kiln__cpu_build *b,
                          const kiln__cpu_ptx_function *fn);

/* Returns whether the operands of the statement have the number and the
 * syntactic kinds that `row` requires. */
bool kiln__cpu_shapes_fit(const kiln__cpu_row *row,
                          const kiln__cpu_insn *fields,
                          const kiln__cpu_ptx_insn *statement);
/* Fills `in` from the operands of the statement. Emits the instructions that
 * must precede `in`. */
bool kiln__cpu_bind_operands(kiln__cpu_lower *l, const kiln__cpu_row *row,
                             kiln__cpu_insn *in);
/* Returns the shape and the types that the opcode of an mma or wmma states. */
kiln__cpu_matrix kiln__cpu_matrix_read(kiln__cpu_slice opcode);
/* Sets the members `type` and `strict` of a form to the type of the registers
 * that hold elements of a type. `moved` is true for wmma.load and
 * wmma.store. */
void kiln__cpu_fragment_type(kiln__cpu_form *form, const kiln__cpu_matrix *x,
                             kiln__cpu_element type, bool moved);
/* Emits a call with the copies of its arguments and results between stack
 * parts. */
bool kiln__cpu_lower_call(kiln__cpu_lower *l, kiln__cpu_insn *in);
/* Emit the loads of parameters in registers and the stores of results in
 * registers. */
bool kiln__cpu_load_formals(kiln__cpu_lower *l);
bool kiln__cpu_store_results(kiln__cpu_lower *l);

/* ---- Control flow and slots ---------------------------------------------- */

/* The basic blocks of a function. Block i consists of the instructions from
 * first[i] up to, but excluding, first[i + 1]. */
typedef struct kiln__cpu_blocks {
  uint32_t n;
  uint32_t *first; /* index of each block's first instruction; n + 1 elements */
  /* Index in `to` of each block's first successor. The array has n + 1
   * elements. */
  uint32_t *edges;
  uint32_t *to;
} kiln__cpu_blocks;

/* Splits a function into basic blocks. The branch targets of the instructions
 * must be resolved. */
kiln_status kiln__cpu_blocks_make(kiln__cpu_blocks *out,
                                  const kiln_allocator *a,
                                  const kiln__cpu_insn *insns, uint32_t n);
void kiln__cpu_blocks_free(kiln__cpu_blocks *blocks, const kiln_allocator *a);
/* Sets the field `join` of branches (the reconvergence point), the KILN__JOIN
 * flags, and the control-flow position of every instruction in `places`. */
kiln_status kiln__cpu_flow_join(const kiln__cpu_blocks *blocks,
                                const kiln_allocator *a, kiln__cpu_insn *insns,
                                kiln__cpu_place *places);

/* Pointers to the fields of an instruction that name the registers that the
 * instruction reads and writes. */
typedef struct kiln__cpu_touched {
  int32_t **at;
  uint32_t n_reads, n; /* registers read come first, then registers written */
  uint32_t capacity;
} kiln__cpu_touched;

/* Lists the registers that `in` reads and writes. `row` is the row of `in` in
 * ops.def. The caller frees out->at. */
kiln_status kiln__cpu_touch(kiln__cpu_touched *out, const kiln_allocator *a,
                            const kiln__cpu_row *row, kiln__cpu_insn *in);

/* Lists the accesses to the registers of wgmma in code->tracked. Must run before
 * slots are assigned. Does nothing if the function has no wgmma. */
kiln_status kiln__cpu_track_registers(const kiln__cpu_build *b,
                                      kiln__cpu_code *code,
                                      uint32_t n_registers);

/* Replaces virtual registers and constants in `insns` by byte offsets of slots.
 *
 * `widths` holds the size of each virtual register in bytes, 4 or 8. Each
 * element of `consts` receives its slot. *frame_bytes receives the size of the
 * frame in bytes. *pressure receives the maximum number of 32-bit registers
 * that are live at the same time. Returns KILN_OK or KILN_ENOMEM. */
kiln_status kiln__cpu_slots_assign(const kiln_allocator *a,
                                   const kiln__cpu_row *rows,
                                   const kiln__cpu_blocks *blocks,
                                   kiln__cpu_insn *insns, uint32_t n,
                                   const uint8_t *widths, uint32_t n_registers,
                                   kiln__cpu_const *consts, uint32_t n_consts,
                                   uint32_t *frame_bytes, uint32_t *pressure);

/* ---- block_order.c ------------------------------------------------------- */

/* Returns whether this function, without those that it calls, can observe the
 * order in which blocks run. The slots of its registers are assigned. */
bool kiln__cpu_observes_order(const kiln__cpu_code *code);

#endif
