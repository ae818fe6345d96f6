/* parse.h -- what the files of ptx/ share: tokens, scopes, the parser's state.
 *
 * Functions that return bool give false when the statement cannot be read on:
 * the mistake has been complained about (or memory is short) and the caller
 * skips to the next one. Mistakes of meaning are complained about and true is
 * returned, so that one run shows several. */
#ifndef KILN_CPU_PTX_PARSE_H
#define KILN_CPU_PTX_PARSE_H

#include "ptx.h"

#include <string.h>

enum {
  KILN__PTX_MAX_DEPTH = 128,         /* nested braces of a body */
  KILN__PTX_MAX_NESTING = 64,        /* parentheses, initialiser braces */
  KILN__PTX_MAX_ITEMS = 4096,        /* of one operand list */
  KILN__PTX_MAX_REGISTERS = 1 << 20, /* of one function */
  KILN__PTX_MAX_FILES = 1 << 16,     /* highest .file number */
  KILN__PTX_MAX_DIMENSIONS = 16,     /* of an array */
  KILN__PTX_MAX_ERRORS = 1000,       /* then the parser gives up */
};
#define KILN__PTX_MAX_ARRAY (UINT64_C(1) << 48) /* bytes of a variable */
/* Bytes of initial values beyond what the text itself spells out. */
#define KILN__PTX_MAX_INIT (UINT64_C(1) << 26)

/* Single characters are their own kind. */
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

/* A name that something is bound to, in a hash table of chains. The newest of
 * equal keys comes first. */
typedef struct kiln__cpu_node {
  struct kiln__cpu_node *chain; /* next in the bucket */
  struct kiln__cpu_node
      *before; /* declared before this one in the same scope */
  uint64_t hash;
  uint64_t id; /* tells kinds of keys apart; labels: number of the scope */
  kiln__cpu_slice name;
  uint32_t depth;
  kiln__cpu_ptx_symbol *symbol;
  /* `%r<12>`: what it declares; members come to be when they are used. */
  kiln__cpu_ptx_variable *pattern;
  kiln__cpu_ptx_pos pos;
  uint32_t count, number;
} kiln__cpu_node;

typedef struct kiln__cpu_table {
  kiln__cpu_node **buckets;
  uint32_t n_buckets, n;
} kiln__cpu_table;

/* Growing array of pointers, in allocator memory. */
typedef struct kiln__cpu_list {
  void **items;
  uint32_t n, capacity;
} kiln__cpu_list;

typedef struct kiln__cpu_scope {
  kiln__cpu_node *names; /* newest first */
  uint32_t number;       /* never used twice in a module */
  bool ranges;           /* some %r<n> was declared here */
} kiln__cpu_scope;

/* A label that was named before or after it stands somewhere. */
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
  /* Scopes of the running function: parent by number - first_scope. */
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

/* ---- ptx_memory.c ------------------------------------------------------- */

kiln__cpu_ptx_module *kiln__cpu_ptx_module_create(const kiln_allocator *a,
                                                  const char *text,
                                                  size_t size);
/* The module's own copy of its source, `*size` bytes and a NUL. */
const char *kiln__cpu_ptx_source(const kiln__cpu_ptx_module *module,
                                 size_t *size);
/* Arena memory; notes that there is none. */
void *kiln__cpu_ptx_new(kiln__cpu_parser *p, size_t size);
/* Make room for one more of `size` bytes each; false: no memory. */
bool kiln__cpu_ptx_grow(kiln__cpu_parser *p, void *items, uint32_t n,
                        uint32_t *capacity, size_t size);
bool kiln__cpu_ptx_push(kiln__cpu_parser *p, kiln__cpu_list *list, void *item);
/* A copy of the list from item `first` on in the arena; empties it down to
 * `first`. NULL and n = 0 if there is nothing, or no memory. */
void *kiln__cpu_ptx_take(kiln__cpu_parser *p, kiln__cpu_list *list,
                         uint32_t first, uint32_t *n);

/* ---- lex.c ---------------------------------------------------------------- */

void kiln__cpu_ptx_next(kiln__cpu_parser *p);
/* Where the lexer stands, to come back to. */
typedef struct kiln__cpu_place {
  const char *at, *line_start;
  uint32_t line;
  bool line_has_token;
  kiln__cpu_token tok;
} kiln__cpu_place;
kiln__cpu_place kiln__cpu_ptx_place(const kiln__cpu_parser *p);
void kiln__cpu_ptx_go_back(kiln__cpu_parser *p, const kiln__cpu_place *place);
bool kiln__cpu_ptx_is(const kiln__cpu_parser *p, const char *text);
/* Go past the token if it is this one. */
bool kiln__cpu_ptx_accept(kiln__cpu_parser *p, int kind);
bool kiln__cpu_ptx_accept_word(kiln__cpu_parser *p, const char *text);
/* The same, and complain if it is not. */
bool kiln__cpu_ptx_expect(kiln__cpu_parser *p, int kind);
/* "unexpected 'x', expected WHAT"; false. */
bool kiln__cpu_ptx_unexpected(kiln__cpu_parser *p, const char *what);
/* An INTEGER token's value; complains about everything else. */
bool kiln__cpu_ptx_number(kiln__cpu_parser *p, uint64_t *value);
bool kiln__cpu_slice_is(kiln__cpu_slice s, const char *text);
bool kiln__cpu_slice_equal(kiln__cpu_slice a, kiln__cpu_slice b);
/* May another mistake be looked for? */
bool kiln__cpu_ptx_goes_on(const kiln__cpu_parser *p);

/* ---- lex_number.c -------------------------------------------------------- */

/* Set kind and value of a numeric token whose text is known. */
bool kiln__cpu_ptx_read_number(kiln__cpu_token *tok);

/* ---- parse_names.c ------------------------------------------------------- */

bool kiln__cpu_ptx_scope_open(kiln__cpu_parser *p);
void kiln__cpu_ptx_scope_close(kiln__cpu_parser *p);
/* What `name` means here; NULL: nothing, or no memory. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_lookup(kiln__cpu_parser *p,
                                           kiln__cpu_slice name);
/* In the innermost scope only, declared names only. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_lookup_here(kiln__cpu_parser *p,
                                                kiln__cpu_slice name);
/* A symbol that no name is bound to yet; NULL: no memory. */
kiln__cpu_ptx_symbol *kiln__cpu_ptx_symbol_new(kiln__cpu_parser *p,
                                               kiln__cpu_slice name,
                                               kiln__cpu_ptx_pos pos,
                                               kiln__cpu_symbol_kind kind);
/* Bind its name in the innermost scope; complains if it is taken. False: no
 * memory. */
bool kiln__cpu_ptx_bind(kiln__cpu_parser *p, kiln__cpu_ptx_symbol *symbol);
bool kiln__cpu_ptx_declare_range(kiln__cpu_parser *p, kiln__cpu_slice prefix,
                                 kiln__cpu_ptx_pos pos, uint32_t count,
                                 const kiln__cpu_ptx_variable *pattern);
bool kiln__cpu_ptx_declare_label(kiln__cpu_parser *p, kiln__cpu_slice name,
                                 kiln__cpu_ptx_pos pos);
/* Have *to set when the function ends. */
bool kiln__cpu_ptx_use_label(kiln__cpu_parser *p, kiln__cpu_ptx_symbol **to,
                             kiln__cpu_slice name, kiln__cpu_ptx_pos pos);
void kiln__cpu_ptx_resolve_labels(kiln__cpu_parser *p);
/* Remember a name under a kind of one's own; *was: it was there already. False:
 * no memory. */
bool kiln__cpu_ptx_mark(kiln__cpu_parser *p, kiln__cpu_slice name, uint64_t id,
                        bool *was);
bool kiln__cpu_ptx_is_marked(const kiln__cpu_parser *p, kiln__cpu_slice name,
                             uint64_t id);
void kiln__cpu_ptx_names_free(kiln__cpu_parser *p);

/* ---- parse_constant.c ---------------------------------------------------- */

typedef struct kiln__cpu_value {
  kiln__cpu_operand_kind
      kind; /* INTEGER, FLOAT (bits of a double) or FLOAT32 */
  bool is_unsigned;
  uint64_t bits;
} kiln__cpu_value;

/* Does the token begin a constant expression? */
bool kiln__cpu_ptx_starts_constant(const kiln__cpu_parser *p);
bool kiln__cpu_ptx_constant(kiln__cpu_parser *p, kiln__cpu_value *out);
/* An integer constant expression after `+` of an address. */
bool kiln__cpu_ptx_offset(kiln__cpu_parser *p, int64_t *out);

/* ---- operand.c ------------------------------------------------------------ */

/* An instruction, its opcode's first word read already. */
bool kiln__cpu_ptx_instruction(kiln__cpu_parser *p, const kiln__cpu_token *word,
                               kiln__cpu_ptx_symbol *guard, bool negated);
/* For `%name`: is there a special register of that name? */
bool kiln__cpu_ptx_is_special(kiln__cpu_slice name);

/* ---- parse_variable.c, parse_initial.c ---------------------------------- */

/* What is said before a variable's name. */
typedef struct kiln__cpu_declaration {
  kiln__cpu_ptx_pos pos;
  kiln__cpu_ptx_variable v;
  bool aligned;
} kiln__cpu_declaration;

bool kiln__cpu_ptx_type_named(kiln__cpu_slice text, kiln__cpu_ptx_type *out);
bool kiln__cpu_ptx_space_named(kiln__cpu_slice text, kiln__cpu_space *out);
bool kiln__cpu_ptx_linkage_named(kiln__cpu_slice text, kiln__cpu_linkage *out);
/* `.attribute(...)` if it stands here. */
bool kiln__cpu_ptx_attribute(kiln__cpu_parser *p, bool *managed, bool *unified);
/* `.global .align 4 .b32 a[2] = {1, 2}, b;` from the state space on. */
bool kiln__cpu_ptx_variables(kiln__cpu_parser *p, kiln__cpu_linkage linkage,
                             bool managed, bool unified);
/* `(.param .b32 a, ...)`, not bound to names yet; prototypes call them `_`. */
typedef enum kiln__cpu_param_use {
  KILN__PARAM_ENTRY,
  KILN__PARAM_FUNC,
  KILN__PARAM_RETURN,
  KILN__PARAM_PROTOTYPE
} kiln__cpu_param_use;
bool kiln__cpu_ptx_params(kiln__cpu_parser *p, kiln__cpu_param_use use,
                          kiln__cpu_ptx_symbol ***params, uint32_t *n);
/* What stands behind `=`; dims: of the array and then of the vector, dims[0] = 0
 * if it is to be counted: then it is set. */
bool kiln__cpu_ptx_initialiser(kiln__cpu_parser *p, kiln__cpu_ptx_variable *v,
                               uint64_t *dims, uint32_t n_dims);

/* ---- parse_function.c, parse_body.c -------------------------------------- */

/* `.entry` and `.func`, behind the word. */
bool kiln__cpu_ptx_function_parse(kiln__cpu_parser *p,
                                  kiln__cpu_linkage linkage, bool entry);
/* `.alias g, f;` behind the word. */
bool kiln__cpu_ptx_alias(kiln__cpu_parser *p);
/* `.pragma "...";` behind the word. */
bool kiln__cpu_ptx_pragma(kiln__cpu_parser *p);
/* Between a function's braces, the first one read already, to the last. */
bool kiln__cpu_ptx_body(kiln__cpu_parser *p);
/* Go to the end of a statement that cannot be read. */
void kiln__cpu_ptx_recover(kiln__cpu_parser *p);

/* ---- parse_debug.c ------------------------------------------------------- */

/* `.file`, `.loc`, `.section`, behind the word. */
bool kiln__cpu_ptx_file(kiln__cpu_parser *p);
bool kiln__cpu_ptx_loc_parse(kiln__cpu_parser *p);
bool kiln__cpu_ptx_section(kiln__cpu_parser *p);
/* Behind the last section: is every function_name there? */
void kiln__cpu_ptx_resolve_sections(kiln__cpu_parser *p);

#endif
