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
  KILN__PTX_MAX_DEPTH = 128,          /* nested braces of a body */
  KILN__PTX_MAX_NESTING = 64,         /* parentheses, initialiser braces */
  KILN__PTX_MAX_ITEMS = 4096,         /* of one operand list */
  KILN__PTX_MAX_REGISTERS = 1 << 20,  /* of one function */
  KILN__PTX_MAX_FILES = 1 << 16,      /* highest .file number */
  KILN__PTX_MAX_DIMENSIONS = 16,      /* of an array */
  KILN__PTX_MAX_ERRORS = 1000,        /* then the parser gives up */
  KILN__PTX_MAX_PARAM_BYTES = 0x7ffc, /* of an entry */
};
#define KILN__PTX_MAX_ARRAY (UINT64_C(1) << 48) /* bytes of a variable */
/* Bytes of initial values beyond what the text itself spells out. */
#define KILN__PTX_MAX_INIT (UINT64_C(1) << 26)

/* Single characters are their own kind. */
typedef enum kiln__token_kind {
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
} kiln__token_kind;

typedef struct kiln__token {
  int kind;
  bool is_unsigned; /* INTEGER: U suffix, or too large for .s64 */
  bool first;       /* on its line */
  kiln__ptx_pos pos;
  kiln__slice text; /* as written */
  uint64_t bits;    /* value of numbers */
} kiln__token;

/* A name that something is bound to, in a hash table of chains. The newest of
 * equal keys comes first. */
typedef struct kiln__node {
  struct kiln__node *chain;  /* next in the bucket */
  struct kiln__node *before; /* declared before this one in the same scope */
  uint64_t hash;
  uint64_t id; /* tells kinds of keys apart; labels: number of the scope */
  kiln__slice name;
  uint32_t depth;
  kiln__ptx_symbol *symbol;
  /* `%r<12>`: what it declares; members come to be when they are used. */
  kiln__ptx_variable *pattern;
  kiln__ptx_pos pos;
  uint32_t count, number;
} kiln__node;

typedef struct kiln__table {
  kiln__node **buckets;
  uint32_t n_buckets, n;
} kiln__table;

/* Growing array of pointers, in allocator memory. */
typedef struct kiln__list {
  void **items;
  uint32_t n, capacity;
} kiln__list;

typedef struct kiln__scope {
  kiln__node *names; /* newest first */
  uint32_t number;   /* never used twice in a module */
  bool ranges;       /* some %r<n> was declared here */
} kiln__scope;

/* A label that was named before or after it stands somewhere. */
typedef struct kiln__label_use {
  kiln__ptx_symbol **to;
  kiln__slice name;
  kiln__ptx_pos pos;
  uint32_t scope;
} kiln__label_use;

typedef struct kiln__parser {
  const char *at, *end, *line_start;
  uint32_t line;
  bool line_has_token; /* `#` begins a directive only at a line's start */
  kiln__token tok;     /* the one to look at */
  kiln__ptx_module *module;
  const kiln_allocator *alloc;
  kiln__ptx_messages messages;
  bool no_memory;
  uint32_t nesting;
  uint64_t init_bytes; /* of all variables so far */

  kiln__table names, labels, members, marks;
  kiln__scope scopes[KILN__PTX_MAX_DEPTH + 3];
  uint32_t depth; /* of the innermost scope; 0: the module */
  uint32_t next_scope, next_range;
  /* Scopes of the running function: parent by number - first_scope. */
  uint32_t *scope_parent;
  uint32_t scope_parent_capacity, first_scope;

  kiln__ptx_function *function; /* whose body this is, or NULL */
  kiln__ptx_insn *insns;
  uint32_t insns_capacity;
  kiln__list variables, function_labels; /* of the running function */
  kiln__list module_variables, functions;
  kiln__list section_uses; /* kiln__token: names of labels in sections */
  kiln__label_use *uses;
  uint32_t n_uses, uses_capacity;
  kiln__ptx_operand *operands; /* stack of operands being read */
  uint32_t n_operands, operands_capacity;
  kiln__ptx_reloc *relocs;
  uint32_t n_relocs, relocs_capacity;
  kiln__ptx_loc loc; /* in force */
  bool in_brackets;  /* reading an address */
  bool in_vector;    /* reading items of {...} or (...) */
  uint32_t n_sections;
} kiln__parser;

/* ---- ptx_memory.c ------------------------------------------------------- */

kiln__ptx_module *kiln__ptx_module_create(const kiln_allocator *a,
                                          const char *text, size_t size);
/* The module's own copy of its source, `*size` bytes and a NUL. */
const char *kiln__ptx_source(const kiln__ptx_module *module, size_t *size);
/* Arena memory; notes that there is none. */
void *kiln__ptx_new(kiln__parser *p, size_t size);
/* Make room for one more of `size` bytes each; false: no memory. */
bool kiln__ptx_grow(kiln__parser *p, void *items, uint32_t n,
                    uint32_t *capacity, size_t size);
bool kiln__ptx_push(kiln__parser *p, kiln__list *list, void *item);
/* A copy of the list from item `first` on in the arena; empties it down to
 * `first`. NULL and n = 0 if there is nothing, or no memory. */
void *kiln__ptx_take(kiln__parser *p, kiln__list *list, uint32_t first,
                     uint32_t *n);

/* ---- lex.c ---------------------------------------------------------------- */

void kiln__ptx_next(kiln__parser *p);
/* Where the lexer stands, to come back to. */
typedef struct kiln__place {
  const char *at, *line_start;
  uint32_t line;
  bool line_has_token;
  kiln__token tok;
} kiln__place;
kiln__place kiln__ptx_place(const kiln__parser *p);
void kiln__ptx_go_back(kiln__parser *p, const kiln__place *place);
bool kiln__ptx_is(const kiln__parser *p, const char *text);
/* Go past the token if it is this one. */
bool kiln__ptx_accept(kiln__parser *p, int kind);
bool kiln__ptx_accept_word(kiln__parser *p, const char *text);
/* The same, and complain if it is not. */
bool kiln__ptx_expect(kiln__parser *p, int kind);
/* "unexpected 'x', expected WHAT"; false. */
bool kiln__ptx_unexpected(kiln__parser *p, const char *what);
/* An INTEGER token's value; complains about everything else. */
bool kiln__ptx_number(kiln__parser *p, uint64_t *value);
bool kiln__slice_is(kiln__slice s, const char *text);
bool kiln__slice_equal(kiln__slice a, kiln__slice b);
/* May another mistake be looked for? */
bool kiln__ptx_goes_on(const kiln__parser *p);

/* ---- lex_number.c -------------------------------------------------------- */

/* Set kind and value of a numeric token whose text is known. */
bool kiln__ptx_read_number(kiln__token *tok);

/* ---- parse_names.c ------------------------------------------------------- */

bool kiln__ptx_scope_open(kiln__parser *p);
void kiln__ptx_scope_close(kiln__parser *p);
/* What `name` means here; NULL: nothing, or no memory. */
kiln__ptx_symbol *kiln__ptx_lookup(kiln__parser *p, kiln__slice name);
/* In the innermost scope only, declared names only. */
kiln__ptx_symbol *kiln__ptx_lookup_here(kiln__parser *p, kiln__slice name);
/* A symbol that no name is bound to yet; NULL: no memory. */
kiln__ptx_symbol *kiln__ptx_symbol_new(kiln__parser *p, kiln__slice name,
                                       kiln__ptx_pos pos,
                                       kiln__symbol_kind kind);
/* Bind its name in the innermost scope; complains if it is taken. False: no
 * memory. */
bool kiln__ptx_bind(kiln__parser *p, kiln__ptx_symbol *symbol);
bool kiln__ptx_declare_range(kiln__parser *p, kiln__slice prefix,
                             kiln__ptx_pos pos, uint32_t count,
                             const kiln__ptx_variable *pattern);
bool kiln__ptx_declare_label(kiln__parser *p, kiln__slice name,
                             kiln__ptx_pos pos);
/* Have *to set when the function ends. */
bool kiln__ptx_use_label(kiln__parser *p, kiln__ptx_symbol **to,
                         kiln__slice name, kiln__ptx_pos pos);
void kiln__ptx_resolve_labels(kiln__parser *p);
/* Remember a name under a kind of one's own; *was: it was there already. False:
 * no memory. */
bool kiln__ptx_mark(kiln__parser *p, kiln__slice name, uint64_t id, bool *was);
bool kiln__ptx_is_marked(const kiln__parser *p, kiln__slice name, uint64_t id);
void kiln__ptx_names_free(kiln__parser *p);

/* ---- parse_constant.c ---------------------------------------------------- */

typedef struct kiln__value {
  kiln__operand_kind kind; /* INTEGER, FLOAT (bits of a double) or FLOAT32 */
  bool is_unsigned;
  uint64_t bits;
} kiln__value;

/* Does the token begin a constant expression? */
bool kiln__ptx_starts_constant(const kiln__parser *p);
bool kiln__ptx_constant(kiln__parser *p, kiln__value *out);
/* An integer constant expression after `+` of an address. */
bool kiln__ptx_offset(kiln__parser *p, int64_t *out);

/* ---- operand.c ------------------------------------------------------------ */

/* An instruction, its opcode's first word read already. */
bool kiln__ptx_instruction(kiln__parser *p, const kiln__token *word,
                           kiln__ptx_symbol *guard, bool negated);
/* For `%name`: is there a special register of that name? */
bool kiln__ptx_is_special(kiln__slice name);

/* ---- parse_variable.c, parse_initial.c ---------------------------------- */

/* What is said before a variable's name. */
typedef struct kiln__declaration {
  kiln__ptx_pos pos;
  kiln__ptx_variable v;
  bool aligned;
} kiln__declaration;

bool kiln__ptx_type_named(kiln__slice text, kiln__ptx_type *out);
bool kiln__ptx_space_named(kiln__slice text, kiln__space *out);
bool kiln__ptx_linkage_named(kiln__slice text, kiln__linkage *out);
/* `.attribute(...)` if it stands here. */
bool kiln__ptx_attribute(kiln__parser *p, bool *managed, bool *unified);
/* `.global .align 4 .b32 a[2] = {1, 2}, b;` from the state space on. */
bool kiln__ptx_variables(kiln__parser *p, kiln__linkage linkage, bool managed,
                         bool unified);
/* `(.param .b32 a, ...)`, not bound to names yet; prototypes call them `_`. */
typedef enum kiln__param_use {
  KILN__PARAM_ENTRY,
  KILN__PARAM_FUNC,
  KILN__PARAM_RETURN,
  KILN__PARAM_PROTOTYPE
} kiln__param_use;
bool kiln__ptx_params(kiln__parser *p, kiln__param_use use,
                      kiln__ptx_symbol ***params, uint32_t *n);
/* What stands behind `=`; dims: of the array and then of the vector, dims[0] = 0
 * if it is to be counted: then it is set. */
bool kiln__ptx_initialiser(kiln__parser *p, kiln__ptx_variable *v,
                           uint64_t *dims, uint32_t n_dims);

/* ---- parse_function.c, parse_body.c -------------------------------------- */

/* `.entry` and `.func`, behind the word. */
bool kiln__ptx_function_parse(kiln__parser *p, kiln__linkage linkage,
                              bool entry);
/* `.alias g, f;` behind the word. */
bool kiln__ptx_alias(kiln__parser *p);
/* `.pragma "...";` behind the word. */
bool kiln__ptx_pragma(kiln__parser *p);
/* Between a function's braces, the first one read already, to the last. */
bool kiln__ptx_body(kiln__parser *p);
/* Go to the end of a statement that cannot be read. */
void kiln__ptx_recover(kiln__parser *p);

/* ---- parse_debug.c ------------------------------------------------------- */

/* `.file`, `.loc`, `.section`, behind the word. */
bool kiln__ptx_file(kiln__parser *p);
bool kiln__ptx_loc_parse(kiln__parser *p);
bool kiln__ptx_section(kiln__parser *p);
/* Behind the last section: is every function_name there? */
void kiln__ptx_resolve_sections(kiln__parser *p);

#endif
