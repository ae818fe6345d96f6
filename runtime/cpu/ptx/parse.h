/* parse.h -- the internal interface of ptx/: tokens, scopes, and the state of
 * the parser.
 *
 * The parser is a recursive-descent parser with one token of look-ahead. A
 * function that returns bool returns false if it cannot parse its statement to
 * the end, or if memory allocation fails. The mistake has then been reported,
 * and the caller skips to the next statement. After a semantic mistake, the
 * function reports the mistake and returns true, so that one run reports
 * several mistakes. */
#ifndef KILN_CPU_PTX_PARSE_H
#define KILN_CPU_PTX_PARSE_H

#include "ptx.h"

#include <string.h>

enum {
  /* maximum depth of nested braces in a function body */
  KILN__PTX_MAX_DEPTH = 128,
  /* Maximum nesting depth of parentheses, and of braces in initial values. */
  KILN__PTX_MAX_NESTING = 64,
  KILN__PTX_MAX_ITEMS = 4096, /* maximum number of operands in a list */
  /* maximum number of registers per function */
  KILN__PTX_MAX_REGISTERS = 1 << 20,
  /* All .file numbers must be below this value. */
  KILN__PTX_MAX_FILES = 1 << 16,
  KILN__PTX_MAX_DIMENSIONS = 16, /* maximum number of dimensions of an array */
  /* Number of mistakes after which the parser stops. */
  KILN__PTX_MAX_ERRORS = 1000,
};
/* Maximum size of a variable in bytes. */
#define KILN__PTX_MAX_ARRAY (UINT64_C(1) << 48)
/* Maximum total size in bytes of all initial values of a module. The parser
 * allows 16 bytes per byte of PTX source in addition. */
#define KILN__PTX_MAX_INIT (UINT64_C(1) << 26)

/* Kinds of tokens. The kind of a single-character token is the character
 * itself. */
typedef enum kiln__cpu_token_kind {
  KILN__TOKEN_END = 0,
  KILN__TOKEN_NAME = 256, /* identifier or %name */
  KILN__TOKEN_WORD,       /* keyword: function_name or inlined_at */
  /* word with a leading dot, such as .name, .2d or .shared::cta; the text
   * includes the dot */
  KILN__TOKEN_DOT,
  KILN__TOKEN_INTEGER,
  KILN__TOKEN_FLOAT,   /* decimal floating-point number */
  KILN__TOKEN_FLOAT32, /* single-precision number written as 0f... */
  KILN__TOKEN_FLOAT64, /* double-precision number written as 0d... */
  KILN__TOKEN_STRING,  /* string; the text excludes the quotes */
  KILN__TOKEN_SHL,
  KILN__TOKEN_SHR,
  KILN__TOKEN_LE,
  KILN__TOKEN_GE,
  KILN__TOKEN_EQ,
  KILN__TOKEN_NE,
  KILN__TOKEN_AND,
  KILN__TOKEN_OR,
  KILN__TOKEN_BAD /* malformed token that the lexer has reported */
} kiln__cpu_token_kind;

typedef struct kiln__cpu_token {
  int kind;
  /* true for an integer that has a U suffix or is too large for .s64 */
  bool is_unsigned;
  bool first; /* true for the first token of a line */
  kiln__cpu_ptx_pos pos;
  kiln__cpu_slice text; /* source text of the token */
  uint64_t bits;        /* value of a numeric token */
} kiln__cpu_token;

/* A declared name, stored as a node of a hash table with chained buckets. Among
 * equal keys, the newest node comes first. */
typedef struct kiln__cpu_node {
  struct kiln__cpu_node *chain; /* next node in the hash bucket */
  /* node that was declared before this node in the same scope */
  struct kiln__cpu_node *before;
  uint64_t hash;
  uint64_t id; /* kind of the name; for labels, the number of the scope */
  kiln__cpu_slice name;
  uint32_t depth;
  kiln__cpu_ptx_symbol *symbol;
  /* For a range of registers such as `%r<12>`: the declaration of its members.
   * A member becomes a symbol when it is first used. */
  kiln__cpu_ptx_variable *pattern;
  uint64_t value; /* see kiln__cpu_ptx_mark_value() */
  kiln__cpu_ptx_pos pos;
  uint32_t count, number;
} kiln__cpu_node;

typedef struct kiln__cpu_table {
  kiln__cpu_node **buckets;
  uint32_t n_buckets, n;
} kiln__cpu_table;

/* A dynamic array of pointers, allocated with the module's allocator. */
typedef struct kiln__cpu_list {
  void **items;
  uint32_t n, capacity;
} kiln__cpu_list;

typedef struct kiln__cpu_scope {
  kiln__cpu_node *names; /* names declared in the scope, newest first */
  uint32_t number;       /* number of the scope, unique in the module */
  bool ranges;           /* true if the scope declares a range such as %r<n> */
} kiln__cpu_scope;

/* A use of a label, which is resolved at the end of the function. */
typedef struct kiln__cpu_label_use {
  kiln__cpu_ptx_symbol **to;
  kiln__cpu_slice name;
  kiln__cpu_ptx_pos pos;
  uint32_t scope;
} kiln__cpu_label_use;

typedef struct kiln__cpu_parser {
  const char *at, *end, *line_start;
  uint32_t line;
  /* True if the current line already has a token. A `#` then does not begin a
   * line marker. */
  bool line_has_token;
  kiln__cpu_token tok; /* current token */
  kiln__cpu_ptx_module *module;
  const kiln_allocator *alloc;
  kiln__cpu_ptx_messages messages;
  bool no_memory;
  uint32_t nesting;
  uint64_t init_bytes; /* total size of all initial values so far, in bytes */

  kiln__cpu_table names, labels, members, marks;
  kiln__cpu_scope scopes[KILN__PTX_MAX_DEPTH + 3];
  uint32_t depth; /* depth of the innermost scope; 0 is module scope */
  uint32_t next_scope, next_range;
  /* The parent of each scope of the current function. The index is the scope
   * number minus first_scope. */
  uint32_t *scope_parent;
  uint32_t scope_parent_capacity, first_scope;

  /* The function whose body is being parsed, or NULL. */
  kiln__cpu_ptx_function *function;
  kiln__cpu_ptx_insn *insns;
  uint32_t insns_capacity;
  /* Variables and labels of the current function. */
  kiln__cpu_list variables, function_labels;
  kiln__cpu_list module_variables, functions;
  /* The names of labels that debug sections use, as elements of type
   * kiln__cpu_token. */
  kiln__cpu_list section_uses;
  kiln__cpu_label_use *uses;
  uint32_t n_uses, uses_capacity;
  /* stack of the operands that are being parsed */
  kiln__cpu_ptx_operand *operands;
  uint32_t n_operands, operands_capacity;
  kiln__cpu_ptx_reloc *relocs;
  uint32_t n_relocs, relocs_capacity;
  kiln__cpu_ptx_loc loc; /* source position from the last .loc directive */
  uint32_t used_bytes;   /* from a pragma, for the next instruction; or 0 */
  bool in_brackets;      /* true while the parser is inside an address */
  bool in_vector;        /* true while the parser is inside {...} or (...) */
  uint32_t n_sections;
} kiln__cpu_parser;

/* Reports a mistake in the PTX source. Returns false. */
bool kiln__cpu_wrong(kiln__cpu_parser *p, kiln__cpu_ptx_pos pos,
                     const char *format, ...) KILN_PRINTF(3, 4);
#ifdef __clang_analyzer__
/* The static analyser sees one file at a time. This macro shows the analyser
 * that the function returns false. */
#define kiln__cpu_wrong(...) (kiln__cpu_wrong(__VA_ARGS__), false)
#endif

/* ---- ptx_memory.c -------------------------------------------------------- */

/* Creates an empty module with a copy of the PTX source. Returns NULL if memory
 * allocation fails. */
kiln__cpu_ptx_module *kiln__cpu_ptx_module_create(const kiln_allocator *a,
                                                  const char *text,
                                                  size_t size);
/* Returns the module's own copy of its PTX source. *size receives the size in
 * bytes without the terminating NUL. */
const char *kiln__cpu_ptx_source(const kiln__cpu_ptx_module *module,
                                 size_t *size);
/* Allocates memory in the module's arena. If this fails, sets no_memory and
 * returns NULL. */
void *kiln__cpu_ptx_new(kiln__cpu_parser *p, size_t size);
/* Grows an array of n elements of `size` bytes each so that one more element
 * fits. Returns false if memory allocation fails. */
bool kiln__cpu_ptx_grow(kiln__cpu_parser *p, void *items, uint32_t n,
                        uint32_t *capacity, size_t size);
/* Appends an item to a list. Returns false if memory allocation fails. */
bool kiln__cpu_ptx_push(kiln__cpu_parser *p, kiln__cpu_list *list, void *item);
/* Copies the items of a list from index `first` on to the arena and removes
 * them from the list. Returns NULL and sets *n to 0 if there are no such items
 * or if memory allocation fails. */
void *kiln__cpu_ptx_take(kiln__cpu_parser *p, kiln__cpu_list *list,
                         uint32_t first, uint32_t *n);

/* ---- lex.c --------------------------------------------------------------- */

/* Reads the next token into p->tok. */
void kiln__cpu_ptx_next(kiln__cpu_parser *p);
/* A saved position of the lexer. kiln__cpu_ptx_rewind() restores it. */
typedef struct kiln__cpu_place {
  const char *at, *line_start;
  uint32_t line;
  bool line_has_token;
  kiln__cpu_token tok;
} kiln__cpu_place;
kiln__cpu_place kiln__cpu_ptx_place(const kiln__cpu_parser *p);
void kiln__cpu_ptx_rewind(kiln__cpu_parser *p, const kiln__cpu_place *place);
/* Returns whether the text of the current token equals `text`. For a modifier
 * or directive, `text` includes the dot. */
bool kiln__cpu_ptx_is(const kiln__cpu_parser *p, const char *text);
/* Consumes the current token and returns true if it is of the given kind or
 * equals the given text. */
bool kiln__cpu_ptx_accept(kiln__cpu_parser *p, int kind);
bool kiln__cpu_ptx_accept_word(kiln__cpu_parser *p, const char *text);
/* Consumes the current token if it is of the given kind. Otherwise reports a
 * mistake and returns false. */
bool kiln__cpu_ptx_expect(kiln__cpu_parser *p, int kind);
/* Reports the mistake "unexpected 'x', expected WHAT". Returns false. */
bool kiln__cpu_ptx_unexpected(kiln__cpu_parser *p, const char *what);
/* Reads an INTEGER token. Reports a mistake for any other token. */
bool kiln__cpu_ptx_number(kiln__cpu_parser *p, uint64_t *value);
/* Returns whether the parser should continue after a mistake. The parser stops
 * if memory allocation has failed or if the limit on messages is reached. */
bool kiln__cpu_ptx_may_continue(const kiln__cpu_parser *p);

/* ---- lex_number.c -------------------------------------------------------- */

/* Sets the kind and the value of a numeric token from its text. Returns false
 * if the number is malformed. */
bool kiln__cpu_ptx_read_number(kiln__cpu_token *tok);

/* ---- parse_names.c ------------------------------------------------------- */

/* The first function opens a scope. It returns false if memory allocation
 * fails. The second function closes the innermost scope and removes the names
 * of the scope. */
bool kiln__cpu_ptx_scope_open(kiln__cpu_parser *p);
void kiln__cpu_ptx_scope_close(kiln__cpu_parser *p);
/* Returns the symbol that `name` refers to in the current scope. Returns NULL
 * if there is none or if memory allocation fails. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_lookup(kiln__cpu_parser *p,
                                           kiln__cpu_slice name);
/* Looks up a name only in the innermost scope, and only among the names that
 * the scope declares. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_lookup_here(kiln__cpu_parser *p,
                                                kiln__cpu_slice name);
/* Creates a symbol that is not bound in any scope yet. Returns NULL if memory
 * allocation fails. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_symbol_new(kiln__cpu_parser *p,
                                               kiln__cpu_slice name,
                                               kiln__cpu_ptx_pos pos,
                                               kiln__cpu_symbol_kind kind);
/* Binds the symbol to its name in the innermost scope. Reports a mistake if the
 * scope already declares the name. Returns false if memory allocation fails. */
bool kiln__cpu_ptx_bind(kiln__cpu_parser *p, kiln__cpu_ptx_symbol *symbol);
/* The first function declares the range `prefix<count>` in the innermost scope,
 * the second a label. Both functions report a mistake if a name is already
 * declared. Both return false if memory allocation fails. */
bool kiln__cpu_ptx_declare_range(kiln__cpu_parser *p, kiln__cpu_slice prefix,
                                 kiln__cpu_ptx_pos pos, uint32_t count,
                                 const kiln__cpu_ptx_variable *pattern);
bool kiln__cpu_ptx_declare_label(kiln__cpu_parser *p, kiln__cpu_slice name,
                                 kiln__cpu_ptx_pos pos);
/* Records a use of the label `name`. *to receives the symbol of the label at
 * the end of the function. */
bool kiln__cpu_ptx_use_label(kiln__cpu_parser *p, kiln__cpu_ptx_symbol **to,
                             kiln__cpu_slice name, kiln__cpu_ptx_pos pos);
/* Forgets the members of the register ranges of the function that has ended. */
void kiln__cpu_ptx_drop_members(kiln__cpu_parser *p);
/* Resolves the label uses of the current function and reports missing labels.
 * The parser calls this function at the end of each PTX function. */
void kiln__cpu_ptx_resolve_labels(kiln__cpu_parser *p);
/* Records a name together with a number `id` that the caller chooses. *was
 * receives whether this combination was recorded before. Returns false if
 * memory allocation fails. */
bool kiln__cpu_ptx_mark(kiln__cpu_parser *p, kiln__cpu_slice name, uint64_t id,
                        bool *was);
bool kiln__cpu_ptx_is_marked(const kiln__cpu_parser *p, kiln__cpu_slice name,
                             uint64_t id);
/* Returns the value of a recorded name, which is 0 until the caller changes it.
 * Returns NULL if the name is not recorded. */
uint64_t *kiln__cpu_ptx_mark_value(const kiln__cpu_parser *p,
                                   kiln__cpu_slice name, uint64_t id);
/* Frees all tables of names and all scopes. */
void kiln__cpu_ptx_names_free(kiln__cpu_parser *p);

/* ---- parse_constant.c ---------------------------------------------------- */

typedef struct kiln__cpu_value {
  /* kind of the value: INTEGER, FLOAT (`bits` is a double) or FLOAT32 (`bits`
   * is a float) */
  kiln__cpu_operand_kind kind;
  bool is_unsigned;
  uint64_t bits;
} kiln__cpu_value;

/* Returns whether the current token begins a constant expression. */
bool kiln__cpu_ptx_starts_constant(const kiln__cpu_parser *p);
/* Parses and evaluates a constant expression. */
bool kiln__cpu_ptx_constant(kiln__cpu_parser *p, kiln__cpu_value *out);
/* Parses and evaluates an integer constant expression, such as the offset after
 * `+` in an address. */
bool kiln__cpu_ptx_offset(kiln__cpu_parser *p, int64_t *out);

/* ---- parse_operand.c ----------------------------------------------------- */

/* Parses an instruction whose first token, `word`, has already been read. */
bool kiln__cpu_ptx_instruction(kiln__cpu_parser *p, const kiln__cpu_token *word,
                               kiln__cpu_ptx_symbol *guard, bool negated);
/* Returns whether `name`, without the leading %, is a special register. */
bool kiln__cpu_ptx_is_special(kiln__cpu_slice name);

/* ---- parse_variable.c, parse_initial.c ----------------------------------- */

/* The part of a variable declaration that precedes the name of the variable. */
typedef struct kiln__cpu_declaration {
  kiln__cpu_ptx_pos pos;
  kiln__cpu_ptx_variable v;
  bool aligned;
} kiln__cpu_declaration;

/* Look up a type, a state space or a linkage by its keyword with the dot, such
 * as `.b32`, `.global` or `.extern`. The functions return false if `text` is no
 * such keyword. */
bool kiln__cpu_ptx_type_named(kiln__cpu_slice text, kiln__cpu_ptx_type *out);
bool kiln__cpu_ptx_space_named(kiln__cpu_slice text, kiln__cpu_space *out);
bool kiln__cpu_ptx_linkage_named(kiln__cpu_slice text, kiln__cpu_linkage *out);
/* Parses `.attribute(...)` if it is present. */
bool kiln__cpu_ptx_attribute(kiln__cpu_parser *p, bool *managed, bool *unified);
/* Parses the declaration of one or more variables from the state space on, such
 * as `.global .align 4 .b32 a[2] = {1, 2}, b;`. */
bool kiln__cpu_ptx_variables(kiln__cpu_parser *p, kiln__cpu_linkage linkage,
                             bool managed, bool unified);
/* Parses a parameter list such as `(.param .b32 a, ...)`. The names are not yet
 * bound in a scope. A prototype has `_` in place of a name. */
typedef enum kiln__cpu_param_use {
  KILN__PARAM_ENTRY,
  KILN__PARAM_FUNC,
  KILN__PARAM_RETURN,
  KILN__PARAM_PROTOTYPE
} kiln__cpu_param_use;
bool kiln__cpu_ptx_params(kiln__cpu_parser *p, kiln__cpu_param_use use,
                          kiln__cpu_ptx_symbol ***params, uint32_t *n);
/* Parses the initial value after `=`. `dims` holds the dimensions of the array,
 * followed by the number of vector components. If dims[0] is 0, the function
 * counts the elements and stores their number in dims[0]. */
bool kiln__cpu_ptx_initialiser(kiln__cpu_parser *p, kiln__cpu_ptx_variable *v,
                               uint64_t *dims, uint32_t n_dims);

/* ---- parse_function.c, parse_body.c -------------------------------------- */

/* Parses the rest of an `.entry` or `.func` directive after the keyword. */
bool kiln__cpu_ptx_function_parse(kiln__cpu_parser *p,
                                  kiln__cpu_linkage linkage, bool entry);
/* Parses the rest of an `.alias g, f;` directive after the keyword. */
bool kiln__cpu_ptx_alias(kiln__cpu_parser *p);
/* Parses the rest of a `.pragma "...";` directive after the keyword. */
bool kiln__cpu_ptx_pragma(kiln__cpu_parser *p);
/* Parses the statements of a function body up to the closing brace. The opening
 * brace has already been read. */
bool kiln__cpu_ptx_body(kiln__cpu_parser *p);
/* Skips to the end of a statement that cannot be parsed. */
void kiln__cpu_ptx_recover(kiln__cpu_parser *p);

/* ---- parse_debug.c ------------------------------------------------------- */

/* Parse the rest of a `.file`, `.loc` or `.section` directive after the
 * keyword. */
bool kiln__cpu_ptx_file(kiln__cpu_parser *p);
bool kiln__cpu_ptx_loc_parse(kiln__cpu_parser *p);
bool kiln__cpu_ptx_section(kiln__cpu_parser *p);
/* Reports every label that debug information uses but no section declares. */
void kiln__cpu_ptx_resolve_sections(kiln__cpu_parser *p);

#endif
