/* parse_variable.c -- parses declarations of variables, registers and
 * parameters: state space, alignment, vector size, type, name, dimensions and
 * initial value. It also makes the checks that ptxas makes, for example which
 * types a state space allows. */
#include "parse.h"

const uint8_t kiln__cpu_ptx_type_bytes[KILN__N_PTX_TYPES] = {
#define KILN__PTX_TYPE(name, text, bytes) bytes,
    KILN__PTX_TYPES(KILN__PTX_TYPE)
#undef KILN__PTX_TYPE
};

const char *const kiln__cpu_ptx_type_text[KILN__N_PTX_TYPES] = {
#define KILN__PTX_TYPE(name, text, bytes) text,
    KILN__PTX_TYPES(KILN__PTX_TYPE)
#undef KILN__PTX_TYPE
};

bool kiln__cpu_ptx_type_named(kiln__cpu_slice text, kiln__cpu_ptx_type *out)
{
  const kiln__cpu_slice name = {text.data + 1,
                                text.size > 0 ? text.size - 1 : 0};

  if (name.size == 0 || text.data[0] != '.')
    return false;
  for (int i = 1; i < KILN__N_PTX_TYPES; i++) {
    if (kiln__cpu_slice_is(name, kiln__cpu_ptx_type_text[i])) {
      *out = (kiln__cpu_ptx_type)i;
      return true;
    }
  }
  return false;
}

bool kiln__cpu_ptx_space_named(kiln__cpu_slice text, kiln__cpu_space *out)
{
  static const struct {
    const char *text;
    kiln__cpu_space space;
  } spaces[] = {{".reg", KILN__SPACE_REG},     {".global", KILN__SPACE_GLOBAL},
                {".const", KILN__SPACE_CONST}, {".shared", KILN__SPACE_SHARED},
                {".local", KILN__SPACE_LOCAL}, {".param", KILN__SPACE_PARAM}};

  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
    if (kiln__cpu_slice_is(text, spaces[i].text)) {
      *out = spaces[i].space;
      return true;
    }
  }
  return false;
}

bool kiln__cpu_ptx_linkage_named(kiln__cpu_slice text, kiln__cpu_linkage *out)
{
  static const struct {
    const char *text;
    kiln__cpu_linkage linkage;
  } words[] = {{".extern", KILN__LINK_EXTERN},
               {".visible", KILN__LINK_VISIBLE},
               {".weak", KILN__LINK_WEAK},
               {".common", KILN__LINK_COMMON}};

  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (kiln__cpu_slice_is(text, words[i].text)) {
      *out = words[i].linkage;
      return true;
    }
  }
  return false;
}

static bool is_opaque(kiln__cpu_ptx_type type)
{
  return type == KILN__TEXREF || type == KILN__SAMPLERREF ||
         type == KILN__SURFREF;
}

bool kiln__cpu_ptx_attribute(kiln__cpu_parser *p, bool *managed, bool *unified)
{
  uint64_t ignored;

  if (!kiln__cpu_ptx_accept_word(p, ".attribute"))
    return true;
  if (!kiln__cpu_ptx_expect(p, '('))
    return false;
  do {
    if (kiln__cpu_ptx_accept_word(p, ".managed")) {
      *managed = true;
    } else if (kiln__cpu_ptx_accept_word(p, ".unified")) {
      *unified = true;
      if (!kiln__cpu_ptx_expect(p, '(') || !kiln__cpu_ptx_number(p, &ignored) ||
          !kiln__cpu_ptx_expect(p, ',') || !kiln__cpu_ptx_number(p, &ignored) ||
          !kiln__cpu_ptx_expect(p, ')'))
        return false;
    } else {
      return kiln__cpu_ptx_unexpected(p, ".managed or .unified");
    }
  } while (kiln__cpu_ptx_accept(p, ','));
  return kiln__cpu_ptx_expect(p, ')');
}

/* Parses the number of an alignment such as `.align 8`. The keyword has already
 * been consumed. */
static bool alignment(kiln__cpu_parser *p, uint32_t *out)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  uint64_t align;

  if (!kiln__cpu_ptx_number(p, &align))
    return false;
  if (align == 0 || (align & (align - 1)) != 0 || align > UINT32_C(1) << 30) {
    kiln__cpu_wrong(p, pos, "an alignment must be a power of two up to 2^30");
    align = 1;
  }
  *out = (uint32_t)align;
  return true;
}

/* Checks that the state space of a declaration allows its type. */
static void check_type(kiln__cpu_parser *p, const kiln__cpu_declaration *d,
                       kiln__cpu_ptx_pos pos)
{
  const kiln__cpu_ptx_variable *v = &d->v;
  const char *wrong = NULL;

  if (v->type == KILN__BF16 || v->type == KILN__BF16X2 ||
      v->type == KILN__TF32 || v->type == KILN__F32X2)
    wrong = "a variable cannot have this type";
  else if (v->type == KILN__PRED && v->space != KILN__SPACE_REG)
    wrong = "a predicate can only be a register";
  else if (v->type == KILN__PRED && v->vector > 1)
    wrong = "a predicate cannot be a vector";
  else if (v->vector * kiln__cpu_ptx_type_bytes[v->type] > 16)
    wrong = "a vector has at most 128 bits";
  else if (v->vector > 1 && v->space == KILN__SPACE_PARAM)
    wrong = "a parameter cannot be a vector";
  else if (is_opaque(v->type) &&
           ((v->space != KILN__SPACE_GLOBAL && v->space != KILN__SPACE_PARAM) ||
            v->vector > 1 || p->depth > 0))
    wrong = "textures, samplers and surfaces are global, or parameters of an "
            "entry";
  else if (v->type == KILN__SAMPLERREF && !p->module->texmode_independent)
    wrong = "samplers need .target texmode_independent";
  if (wrong != NULL)
    kiln__cpu_wrong(p, pos, "%s", wrong);
}

/* Parses the part of a declaration before the name, such as `.global .align 4
 * .v2 .f32`. */
static bool specification(kiln__cpu_parser *p, kiln__cpu_declaration *d)
{
  kiln__cpu_ptx_pos pos;

  d->pos = p->tok.pos;
  d->v.vector = 1;
  if (p->tok.kind != KILN__TOKEN_DOT ||
      !kiln__cpu_ptx_space_named(p->tok.text, &d->v.space))
    return kiln__cpu_ptx_unexpected(p, "a state space");
  kiln__cpu_ptx_next(p);
  for (;;) {
    if (kiln__cpu_ptx_accept_word(p, ".align")) {
      if (!alignment(p, &d->v.align))
        return false;
      d->aligned = true;
    } else if (kiln__cpu_ptx_is(p, ".attribute")) {
      if (!kiln__cpu_ptx_attribute(p, &d->v.managed, &d->v.unified))
        return false;
    } else {
      break;
    }
  }
  if (kiln__cpu_ptx_accept_word(p, ".v2"))
    d->v.vector = 2;
  else if (kiln__cpu_ptx_accept_word(p, ".v4"))
    d->v.vector = 4;
  pos = p->tok.pos;
  if (p->tok.kind != KILN__TOKEN_DOT ||
      !kiln__cpu_ptx_type_named(p->tok.text, &d->v.type))
    return kiln__cpu_ptx_unexpected(p, "a type");
  kiln__cpu_ptx_next(p);
  check_type(p, d, pos);
  return true;
}

/* Parses array dimensions such as `[2][3]`. For `[]`, dims[0] becomes 0. */
static bool dimensions(kiln__cpu_parser *p, uint64_t *dims, uint32_t *n)
{
  *n = 0;
  while (kiln__cpu_ptx_accept(p, '[')) {
    if (*n == KILN__PTX_MAX_DIMENSIONS)
      return kiln__cpu_ptx_unexpected(p, "fewer dimensions");
    dims[*n] = 0;
    if (*n == 0 && kiln__cpu_ptx_accept(p, ']')) {
      *n = 1;
      continue;
    }
    if (!kiln__cpu_ptx_number(p, &dims[*n]) || !kiln__cpu_ptx_expect(p, ']'))
      return false;
    if (*n > 0 && dims[*n] == 0) {
      kiln__cpu_wrong(p, p->tok.pos, "a dimension must be above 0");
      dims[*n] = 1;
    }
    (*n)++;
  }
  return true;
}

/* Computes the size of a variable from its type, vector size and dimensions. */
static void measure(kiln__cpu_parser *p, kiln__cpu_declaration *d,
                    kiln__cpu_ptx_pos pos, const uint64_t *dims, uint32_t n)
{
  kiln__cpu_ptx_variable *v = &d->v;
  const uint64_t one =
      v->type == KILN__PRED ? 1 : kiln__cpu_ptx_type_bytes[v->type] * v->vector;
  uint64_t size = one;

  for (uint32_t i = 0; i < n; i++) {
    if (dims[i] != 0 && size > KILN__PTX_MAX_ARRAY / dims[i]) {
      kiln__cpu_wrong(p, pos, "the array is larger than 2^48 bytes");
      size = one;
      break;
    }
    size *= dims[i];
  }
  v->is_array = n > 0;
  v->flexible = n > 0 && dims[0] == 0;
  v->size = size;
  v->array_elements = 1;
  if (n > 0 && one > 0)
    v->array_elements =
        size / one > UINT32_MAX ? UINT32_MAX : (uint32_t)(size / one);
  if (v->align < one && one <= 16)
    v->align = (uint32_t)one;
}

/* Parses the count of a range such as `%r<12>`. The `<` has already been
 * consumed. */
static bool range(kiln__cpu_parser *p, kiln__cpu_declaration *d,
                  const kiln__cpu_token *name)
{
  uint64_t count;

  if (!kiln__cpu_ptx_number(p, &count) || !kiln__cpu_ptx_expect(p, '>'))
    return false;
  if (d->v.space != KILN__SPACE_REG) {
    kiln__cpu_wrong(p, name->pos,
                    "only registers can be declared as a range such as %%r<4>");
    return true;
  }
  if (count > KILN__PTX_MAX_REGISTERS) {
    kiln__cpu_wrong(p, name->pos, "more than 2^20 registers in a function");
    return true;
  }
  return kiln__cpu_ptx_declare_range(p, name->text, name->pos, (uint32_t)count,
                                     &d->v);
}

/* Returns whether an .extern declaration and another declaration agree on the
 * variable. */
static bool agree(const kiln__cpu_ptx_variable *a,
                  const kiln__cpu_ptx_variable *b)
{
  return a->space == b->space && a->type == b->type && a->vector == b->vector &&
         a->is_array == b->is_array &&
         (a->size == b->size || a->flexible || b->flexible);
}

/* Handles a further declaration of a variable at module scope. Any number of
 * .extern declarations and one definition declare the same variable. Returns
 * true also after it reports a mistake. */
static bool redeclare(kiln__cpu_parser *p, kiln__cpu_ptx_symbol *old,
                      const kiln__cpu_ptx_variable *v,
                      const kiln__cpu_token *name)
{
  const bool variable = old->kind == KILN__SYMBOL_VARIABLE;
  const bool was_extern =
      variable && old->u.variable->linkage == KILN__LINK_EXTERN;
  const bool is_extern = v->linkage == KILN__LINK_EXTERN;

  if (!variable || !(was_extern || is_extern)) {
    kiln__cpu_wrong(p, name->pos, "'%.*s' is declared twice",
                    KILN__SHOWN(name->text));
  } else if (!agree(old->u.variable, v) ||
             (was_extern && v->linkage == KILN__LINK_NONE) ||
             (is_extern && old->u.variable->linkage == KILN__LINK_NONE)) {
    kiln__cpu_wrong(p, name->pos, "'%.*s' was declared differently before",
                    KILN__SHOWN(name->text));
  } else if (!is_extern || old->u.variable->flexible) {
    *old->u.variable = *v;
    old->pos = name->pos;
  }
  return true;
}

static bool declare(kiln__cpu_parser *p, const kiln__cpu_ptx_variable *v,
                    const kiln__cpu_token *name)
{
  kiln__cpu_ptx_symbol *symbol =
      p->depth == 0 ? kiln__cpu_ptx_lookup_here(p, name->text) : NULL;

  if (symbol != NULL)
    return redeclare(p, symbol, v, name);
  symbol =
      kiln__cpu_ptx_symbol_new(p, name->text, name->pos, KILN__SYMBOL_VARIABLE);
  if (symbol == NULL)
    return false;
  symbol->u.variable = kiln__cpu_ptx_new(p, sizeof *v);
  if (symbol->u.variable == NULL || !kiln__cpu_ptx_bind(p, symbol))
    return false;
  *symbol->u.variable = *v;
  if (v->space == KILN__SPACE_REG && p->function != NULL)
    symbol->u.variable->index = p->function->n_registers++;
  return kiln__cpu_ptx_push(
      p, p->depth == 0 ? &p->module_variables : &p->variables, symbol);
}

static void check_one(kiln__cpu_parser *p, const kiln__cpu_declaration *d,
                      const kiln__cpu_token *name, bool has_init)
{
  const kiln__cpu_ptx_variable *v = &d->v;
  const bool external = v->linkage == KILN__LINK_EXTERN;
  const char *wrong = NULL;

  if (v->space == KILN__SPACE_REG && v->is_array)
    wrong = "a register cannot be an array";
  else if (v->flexible && !external)
    wrong = "the array needs a size";
  else if (has_init && external)
    wrong = "an .extern variable cannot have an initial value";
  else if (has_init && v->space != KILN__SPACE_GLOBAL &&
           v->space != KILN__SPACE_CONST)
    wrong = "only .global and .const variables can have initial values";
  else if (v->managed && v->space != KILN__SPACE_GLOBAL)
    wrong = "only .global variables can be .managed";
  if (wrong != NULL)
    kiln__cpu_wrong(p, name->pos, "%s", wrong);
}

/* Parses one declarator: a name with its dimensions and initial value. */
static bool declarator(kiln__cpu_parser *p, const kiln__cpu_declaration *all)
{
  const kiln__cpu_token name = p->tok;
  kiln__cpu_declaration d = *all;
  uint64_t dims[KILN__PTX_MAX_DIMENSIONS + 1];
  uint32_t n;
  bool has_init;

  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  if (kiln__cpu_slice_is(name.text, "WARP_SZ"))
    kiln__cpu_wrong(p, name.pos,
                    "WARP_SZ is a constant and cannot be declared");
  if (kiln__cpu_ptx_accept(p, '<')) {
    measure(p, &d, name.pos, dims, 0);
    return range(p, &d, &name);
  }
  if (!dimensions(p, dims, &n))
    return false;
  has_init = kiln__cpu_ptx_accept(p, '=');
  measure(p, &d, name.pos, dims, n);
  if (has_init) {
    if (!kiln__cpu_ptx_initialiser(p, &d.v, dims, n))
      return false;
    measure(p, &d, name.pos, dims, n);
  }
  check_one(p, &d, &name, has_init);
  return declare(p, &d.v, &name);
}

/* Checks that the current scope allows a declaration in the state space. */
static void check_space(kiln__cpu_parser *p, const kiln__cpu_declaration *d)
{
  const kiln__cpu_space space = d->v.space;
  const char *wrong = NULL;

  if (p->depth == 0 &&
      (space == KILN__SPACE_REG || space == KILN__SPACE_LOCAL ||
       space == KILN__SPACE_PARAM))
    wrong =
        "registers, .local and .param variables must be declared in a function";
  else if (d->v.linkage == KILN__LINK_COMMON && space != KILN__SPACE_GLOBAL)
    wrong = "only .global variables can be .common";
  if (wrong != NULL)
    kiln__cpu_wrong(p, d->pos, "%s", wrong);
}

bool kiln__cpu_ptx_variables(kiln__cpu_parser *p, kiln__cpu_linkage linkage,
                             bool managed, bool unified)
{
  kiln__cpu_declaration d = {.v.linkage = linkage};

  if (!specification(p, &d))
    return false;
  d.v.managed |= managed;
  d.v.unified |= unified;
  check_space(p, &d);
  do {
    if (!declarator(p, &d))
      return false;
  } while (kiln__cpu_ptx_accept(p, ','));
  return kiln__cpu_ptx_expect(p, ';');
}

/* ---- Parameters ---------------------------------------------------------- */

/* Parses the attributes of a pointer parameter, such as `.ptr .global .align
 * 4`. The .ptr has already been consumed. */
static bool pointer(kiln__cpu_parser *p, kiln__cpu_ptx_variable *v)
{
  kiln__cpu_space space;

  v->has_ptr = true;
  v->pointee_align = 4;
  if (p->tok.kind == KILN__TOKEN_DOT &&
      kiln__cpu_ptx_space_named(p->tok.text, &space) &&
      space != KILN__SPACE_REG && space != KILN__SPACE_PARAM) {
    v->pointee = space;
    kiln__cpu_ptx_next(p);
  }
  return !kiln__cpu_ptx_accept_word(p, ".align") ||
         alignment(p, &v->pointee_align);
}

static void check_param(kiln__cpu_parser *p, const kiln__cpu_ptx_variable *v,
                        kiln__cpu_param_use use, kiln__cpu_ptx_pos pos)
{
  const char *wrong = NULL;

  if (v->space != KILN__SPACE_PARAM &&
      (use == KILN__PARAM_ENTRY || v->space != KILN__SPACE_REG))
    wrong = "a parameter must be in the .param state space";
  else if (v->flexible && use != KILN__PARAM_FUNC &&
           use != KILN__PARAM_PROTOTYPE)
    wrong = "the array needs a size";
  else if (is_opaque(v->type) && use != KILN__PARAM_ENTRY)
    wrong = "only entries have textures, samplers and surfaces as parameters";
  else if (v->has_ptr && use != KILN__PARAM_ENTRY)
    wrong = "only parameters of entries can have .ptr";
  else if (v->is_array && v->space == KILN__SPACE_REG)
    wrong = "a register cannot be an array";
  if (wrong != NULL)
    kiln__cpu_wrong(p, pos, "%s", wrong);
}

static kiln__cpu_ptx_symbol *param(kiln__cpu_parser *p, kiln__cpu_param_use use)
{
  kiln__cpu_declaration d = {0};
  uint64_t dims[KILN__PTX_MAX_DIMENSIONS];
  uint32_t n;
  kiln__cpu_token name;
  kiln__cpu_ptx_symbol *symbol;

  if (!specification(p, &d))
    return NULL;
  if (kiln__cpu_ptx_accept_word(p, ".ptr")) {
    if (!pointer(p, &d.v))
      return NULL;
  } else if (use == KILN__PARAM_ENTRY &&
             kiln__cpu_ptx_accept_word(p, ".align") &&
             !alignment(p, &d.v.pointee_align)) {
    return NULL;
  }
  name = p->tok;
  if (use == KILN__PARAM_PROTOTYPE && name.kind == '_')
    kiln__cpu_ptx_next(p);
  else if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME))
    return NULL;
  if (!dimensions(p, dims, &n))
    return NULL;
  measure(p, &d, name.pos, dims, n);
  check_param(p, &d.v, use, name.pos);
  symbol =
      kiln__cpu_ptx_symbol_new(p, name.text, name.pos, KILN__SYMBOL_VARIABLE);
  if (symbol == NULL)
    return NULL;
  symbol->u.variable = kiln__cpu_ptx_new(p, sizeof d.v);
  if (symbol->u.variable == NULL)
    return NULL;
  *symbol->u.variable = d.v;
  return symbol;
}

bool kiln__cpu_ptx_params(kiln__cpu_parser *p, kiln__cpu_param_use use,
                          kiln__cpu_ptx_symbol ***params, uint32_t *n)
{
  kiln__cpu_list list = {0};
  bool ok = true, flexible = false;

  if (!kiln__cpu_ptx_expect(p, '('))
    return false;
  if (kiln__cpu_ptx_accept(p, ')'))
    return true;
  do {
    kiln__cpu_ptx_symbol *symbol = param(p, use);

    ok = symbol != NULL && kiln__cpu_ptx_push(p, &list, symbol);
    if (ok && flexible)
      kiln__cpu_wrong(p, symbol->pos,
                      "only the last parameter can be an array without a size");
    flexible = ok && symbol->u.variable->flexible;
  } while (ok && kiln__cpu_ptx_accept(p, ','));
  ok = ok && kiln__cpu_ptx_expect(p, ')');
  if (ok)
    *params = kiln__cpu_ptx_take(p, &list, 0, n);
  kiln__free(p->alloc, list.items);
  return ok && !p->no_memory;
}
