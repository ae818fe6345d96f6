/* parse.h -- what the files of ptx/ share: tokens, scopes, the parser's state.
 *
 * The parser is a recursive descent over one token of look-ahead. Functions
 * that return bool return false if the statement cannot be read to its end: the
 * mistake has been reported, or memory is short, and the caller skips to the
 * next statement. Mistakes of meaning are reported and true is returned, so
 * that one run shows several. */
#ifndef KILN_CPU_PTX_PARSE_H
#define KILN_CPU_PTX_PARSE_H

#include "ptx.h"

#include <string.h>

enum {
  KILN__PTX_MAX_DEPTH = 128, /* nested braces of a body */
  /* Depth of parentheses and of braces in initial values. */
  KILN__PTX_MAX_NESTING = 64,
  KILN__PTX_MAX_ITEMS = 4096,        /* of one operand list */
  KILN__PTX_MAX_REGISTERS = 1 << 20, /* of one function */
  /* Bound of .file numbers. */
  KILN__PTX_MAX_FILES = 1 << 16,
  KILN__PTX_MAX_DIMENSIONS = 16, /* of an array */
  KILN__PTX_MAX_ERRORS = 1000,   /* then the parser gives up */
};
#define KILN__PTX_MAX_ARRAY (UINT64_C(1) << 48) /* bytes of a variable */
/* Bytes of initial values beyond what the text itself spells out. */
#define KILN__PTX_MAX_INIT (UINT64_C(1) << 26)

/* Kinds of tokens. A single character is its own kind. */
typedef enum kiln__cpu_token_kind {
  KILN__TOKEN_END = 0,
  KILN__TOKEN_NAME = 256, /* identifier, also %name */
  KILN__TOKEN_WORD,       /* function_name, inlined_at: nothing is named so */
  KILN__TOKEN_DOT,        /* .name, .2d, .shared::cta: text with the dot */
  KILN__TOKEN_INTEGER,
  KILN__TOKEN_FLOAT,   /* decimal */
  KILN__TOKEN_FLOAT32, /* 0f */
  KILN__TOKEN_FLOAT64, /* 0d */
  KILN__TOKEN_STRING,  /* text without the quotes */
  KILN__TOKEN_SHL,
  KILN__TOKEN_SHR,
  KILN__TOKEN_LE,
  KILN__TOKEN_GE,
  KILN__TOKEN_EQ,
  KILN__TOKEN_NE,
  KILN__TOKEN_AND,
  KILN__TOKEN_OR,
  KILN__TOKEN_BAD /* complained about by the lexer */
} kiln__cpu_token_kind;

typedef struct kiln__cpu_token {
  int kind;
  bool is_unsigned; /* INTEGER: U suffix, or too large for .s64 */
  bool first;       /* on its line */
  kiln__cpu_ptx_pos pos;
  kiln__cpu_slice text; /* as written */
  uint64_t bits;        /* value of numbers */
} kiln__cpu_token;

/* A bound name, as a node of a hash table of chains. The newest of equal keys
 * comes first. */
typedef struct kiln__cpu_node {
  struct kiln__cpu_node *chain; /* next in the bucket */
  struct kiln__cpu_node
      *before; /* declared before this one in the same scope */
  uint64_t hash;
  uint64_t id; /* tells kinds of keys apart; labels: number of the scope */
  kiln__cpu_slice name;
  uint32_t depth;
  kiln__cpu_ptx_symbol *symbol;
  /* `%r<12>`: the declaration. Members become symbols when they are used. */
  kiln__cpu_ptx_variable *pattern;
  kiln__cpu_ptx_pos pos;
  uint32_t count, number;
} kiln__cpu_node;

typedef struct kiln__cpu_table {
  kiln__cpu_node **buckets;
  uint32_t n_buckets, n;
} kiln__cpu_table;

/* A growing array of pointers in allocator memory. */
typedef struct kiln__cpu_list {
  void **items;
  uint32_t n, capacity;
} kiln__cpu_list;

typedef struct kiln__cpu_scope {
  kiln__cpu_node *names; /* newest first */
  uint32_t number;       /* never used twice in a module */
  bool ranges;           /* some %r<n> was declared here */
} kiln__cpu_scope;

/* A use of a label, to be resolved when the function ends. */
typedef struct kiln__cpu_label_use {
  kiln__cpu_ptx_symbol **to;
  kiln__cpu_slice name;
  kiln__cpu_ptx_pos pos;
  uint32_t scope;
} kiln__cpu_label_use;

typedef struct kiln__cpu_parser {
  const char *at, *end, *line_start;
  uint32_t line;
  bool line_has_token; /* `#` begins a directive only at a line's start */
  kiln__cpu_token tok; /* the one to look at */
  kiln__cpu_ptx_module *module;
  const kiln_allocator *alloc;
  kiln__cpu_ptx_messages messages;
  bool no_memory;
  uint32_t nesting;
  uint64_t init_bytes; /* of all variables so far */

  kiln__cpu_table names, labels, members, marks;
  kiln__cpu_scope scopes[KILN__PTX_MAX_DEPTH + 3];
  uint32_t depth; /* of the innermost scope; 0: the module */
  uint32_t next_scope, next_range;
  /* Scopes of the function being parsed: parent by number - first_scope. */
  uint32_t *scope_parent;
  uint32_t scope_parent_capacity, first_scope;

  kiln__cpu_ptx_function *function; /* whose body this is, or NULL */
  kiln__cpu_ptx_insn *insns;
  uint32_t insns_capacity;
  kiln__cpu_list variables, function_labels; /* of the running function */
  kiln__cpu_list module_variables, functions;
  kiln__cpu_list
      section_uses; /* kiln__cpu_token: names of labels in sections */
  kiln__cpu_label_use *uses;
  uint32_t n_uses, uses_capacity;
  kiln__cpu_ptx_operand *operands; /* stack of operands being read */
  uint32_t n_operands, operands_capacity;
  kiln__cpu_ptx_reloc *relocs;
  uint32_t n_relocs, relocs_capacity;
  kiln__cpu_ptx_loc loc; /* in force */
  bool in_brackets;      /* reading an address */
  bool in_vector;        /* reading items of {...} or (...) */
  uint32_t n_sections;
} kiln__cpu_parser;

/* Reports a mistake. Returns false. */
bool kiln__cpu_wrong(kiln__cpu_parser *p, kiln__cpu_ptx_pos pos,
                     const char *format, ...) KILN_PRINTF(3, 4);
#ifdef __clang_analyzer__
/* The analyser looks at one file at a time and has to be shown that it returns
 * false. */
#define kiln__cpu_wrong(...) (kiln__cpu_wrong(__VA_ARGS__), false)
#endif

/* ---- ptx_memory.c -------------------------------------------------------- */

/* Makes an empty module with a copy of the text. NULL: no memory. */
kiln__cpu_ptx_module *kiln__cpu_ptx_module_create(const kiln_allocator *a,
                                                  const char *text,
                                                  size_t size);
/* The module's own copy of its source, `*size` bytes and a NUL. */
const char *kiln__cpu_ptx_source(const kiln__cpu_ptx_module *module,
                                 size_t *size);
/* Returns arena memory, or NULL after setting no_memory. */
void *kiln__cpu_ptx_new(kiln__cpu_parser *p, size_t size);
/* Grows an array so that it holds one more element of `size` bytes. False: no
 * memory. */
bool kiln__cpu_ptx_grow(kiln__cpu_parser *p, void *items, uint32_t n,
                        uint32_t *capacity, size_t size);
/* Appends to a list. False: no memory. */
bool kiln__cpu_ptx_push(kiln__cpu_parser *p, kiln__cpu_list *list, void *item);
/* Copies the list from item `first` on to the arena and cuts it to `first`.
 * Returns NULL and sets *n to 0 if there is nothing, or no memory. */
void *kiln__cpu_ptx_take(kiln__cpu_parser *p, kiln__cpu_list *list,
                         uint32_t first, uint32_t *n);

/* ---- lex.c --------------------------------------------------------------- */

/* Reads the next token into p->tok. */
void kiln__cpu_ptx_next(kiln__cpu_parser *p);
/* A position of the lexer that it can return to. */
typedef struct kiln__cpu_place {
  const char *at, *line_start;
  uint32_t line;
  bool line_has_token;
  kiln__cpu_token tok;
} kiln__cpu_place;
kiln__cpu_place kiln__cpu_ptx_place(const kiln__cpu_parser *p);
void kiln__cpu_ptx_rewind(kiln__cpu_parser *p, const kiln__cpu_place *place);
/* Whether the token is this word, with its dot if it has one. */
bool kiln__cpu_ptx_is(const kiln__cpu_parser *p, const char *text);
/* Consumes the token if it is this one. */
bool kiln__cpu_ptx_accept(kiln__cpu_parser *p, int kind);
bool kiln__cpu_ptx_accept_word(kiln__cpu_parser *p, const char *text);
/* Consumes the token if it is this one, and reports a mistake if not. */
bool kiln__cpu_ptx_expect(kiln__cpu_parser *p, int kind);
/* Reports "unexpected 'x', expected WHAT". Returns false. */
bool kiln__cpu_ptx_unexpected(kiln__cpu_parser *p, const char *what);
/* Reads an INTEGER token. Reports every other one. */
bool kiln__cpu_ptx_number(kiln__cpu_parser *p, uint64_t *value);
/* Whether to look for more mistakes: memory is left, and the limit on messages
 * is not reached. */
bool kiln__cpu_ptx_may_continue(const kiln__cpu_parser *p);

/* ---- lex_number.c -------------------------------------------------------- */

/* Sets kind and value of a numeric token from its text. False: malformed. */
bool kiln__cpu_ptx_read_number(kiln__cpu_token *tok);

/* ---- parse_names.c ------------------------------------------------------- */

/* Open a scope; close the innermost one with its names. False: no memory. */
bool kiln__cpu_ptx_scope_open(kiln__cpu_parser *p);
void kiln__cpu_ptx_scope_close(kiln__cpu_parser *p);
/* Returns what `name` refers to in this scope. NULL: nothing, or no memory. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_lookup(kiln__cpu_parser *p,
                                           kiln__cpu_slice name);
/* Looks only in the innermost scope, and only at declared names. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_lookup_here(kiln__cpu_parser *p,
                                                kiln__cpu_slice name);
/* Makes a symbol that is not bound yet. NULL: no memory. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_symbol_new(kiln__cpu_parser *p,
                                               kiln__cpu_slice name,
                                               kiln__cpu_ptx_pos pos,
                                               kiln__cpu_symbol_kind kind);
/* Binds the symbol in the innermost scope. Reports a name that is taken. False:
 * no memory. */
bool kiln__cpu_ptx_bind(kiln__cpu_parser *p, kiln__cpu_ptx_symbol *symbol);
/* Declare `prefix<count>` and labels in the innermost scope; they report names
 * that are taken. False: no memory. */
bool kiln__cpu_ptx_declare_range(kiln__cpu_parser *p, kiln__cpu_slice prefix,
                                 kiln__cpu_ptx_pos pos, uint32_t count,
                                 const kiln__cpu_ptx_variable *pattern);
bool kiln__cpu_ptx_declare_label(kiln__cpu_parser *p, kiln__cpu_slice name,
                                 kiln__cpu_ptx_pos pos);
/* Sets *to when the function ends. */
bool kiln__cpu_ptx_use_label(kiln__cpu_parser *p, kiln__cpu_ptx_symbol **to,
                             kiln__cpu_slice name, kiln__cpu_ptx_pos pos);
/* Resolves the labels of the function that ends; reports missing ones. */
void kiln__cpu_ptx_resolve_labels(kiln__cpu_parser *p);
/* Records a name under a kind of the caller's; *was: it was recorded before.
 * False: no memory. */
bool kiln__cpu_ptx_mark(kiln__cpu_parser *p, kiln__cpu_slice name, uint64_t id,
                        bool *was);
bool kiln__cpu_ptx_is_marked(const kiln__cpu_parser *p, kiln__cpu_slice name,
                             uint64_t id);
/* Frees all tables and scopes. */
void kiln__cpu_ptx_names_free(kiln__cpu_parser *p);

/* ---- parse_constant.c ---------------------------------------------------- */

typedef struct kiln__cpu_value {
  kiln__cpu_operand_kind
      kind; /* INTEGER, FLOAT (bits of a double) or FLOAT32 */
  bool is_unsigned;
  uint64_t bits;
} kiln__cpu_value;

/* Whether the token begins a constant expression. */
bool kiln__cpu_ptx_starts_constant(const kiln__cpu_parser *p);
/* Parses a constant expression. */
bool kiln__cpu_ptx_constant(kiln__cpu_parser *p, kiln__cpu_value *out);
/* Parses an integer constant expression, as after `+` in an address. */
bool kiln__cpu_ptx_offset(kiln__cpu_parser *p, int64_t *out);

/* ---- parse_operand.c ----------------------------------------------------- */

/* Parses an instruction whose first word has been read. */
bool kiln__cpu_ptx_instruction(kiln__cpu_parser *p, const kiln__cpu_token *word,
                               kiln__cpu_ptx_symbol *guard, bool negated);
/* Whether `name`, without its %, is a special register. */
bool kiln__cpu_ptx_is_special(kiln__cpu_slice name);

/* ---- parse_variable.c, parse_initial.c ----------------------------------- */

/* What a declaration says before the name. */
typedef struct kiln__cpu_declaration {
  kiln__cpu_ptx_pos pos;
  kiln__cpu_ptx_variable v;
  bool aligned;
} kiln__cpu_declaration;

/* Look up a word with its dot, such as `.b32`, `.global` or `.extern`. False:
 * the word is none. */
bool kiln__cpu_ptx_type_named(kiln__cpu_slice text, kiln__cpu_ptx_type *out);
bool kiln__cpu_ptx_space_named(kiln__cpu_slice text, kiln__cpu_space *out);
bool kiln__cpu_ptx_linkage_named(kiln__cpu_slice text, kiln__cpu_linkage *out);
/* Parses `.attribute(...)` if it is there. */
bool kiln__cpu_ptx_attribute(kiln__cpu_parser *p, bool *managed, bool *unified);
/* Parses `.global .align 4 .b32 a[2] = {1, 2}, b;` from the state space on. */
bool kiln__cpu_ptx_variables(kiln__cpu_parser *p, kiln__cpu_linkage linkage,
                             bool managed, bool unified);
/* Parses `(.param .b32 a, ...)`. The names are not bound yet; prototypes write
 * `_`. */
typedef enum kiln__cpu_param_use {
  KILN__PARAM_ENTRY,
  KILN__PARAM_FUNC,
  KILN__PARAM_RETURN,
  KILN__PARAM_PROTOTYPE
} kiln__cpu_param_use;
bool kiln__cpu_ptx_params(kiln__cpu_parser *p, kiln__cpu_param_use use,
                          kiln__cpu_ptx_symbol ***params, uint32_t *n);
/* Parses the initial value after `=`. dims are those of the array, then of the
 * vector. If dims[0] is 0, the elements are counted and it is set. */
bool kiln__cpu_ptx_initialiser(kiln__cpu_parser *p, kiln__cpu_ptx_variable *v,
                               uint64_t *dims, uint32_t n_dims);

/* ---- parse_function.c, parse_body.c -------------------------------------- */

/* Parses `.entry` or `.func` after the word. */
bool kiln__cpu_ptx_function_parse(kiln__cpu_parser *p,
                                  kiln__cpu_linkage linkage, bool entry);
/* Parses `.alias g, f;` after the word. */
bool kiln__cpu_ptx_alias(kiln__cpu_parser *p);
/* Parses `.pragma "...";` after the word. */
bool kiln__cpu_ptx_pragma(kiln__cpu_parser *p);
/* Parses the statements up to the closing brace. The opening one has been read.
 */
bool kiln__cpu_ptx_body(kiln__cpu_parser *p);
/* Skips to the end of a statement that cannot be read. */
void kiln__cpu_ptx_recover(kiln__cpu_parser *p);

/* ---- parse_debug.c ------------------------------------------------------- */

/* Parse `.file`, `.loc` and `.section` after the word. */
bool kiln__cpu_ptx_file(kiln__cpu_parser *p);
bool kiln__cpu_ptx_loc_parse(kiln__cpu_parser *p);
bool kiln__cpu_ptx_section(kiln__cpu_parser *p);
/* Reports each label that debug information uses and no section has. */
void kiln__cpu_ptx_resolve_sections(kiln__cpu_parser *p);

#endif
