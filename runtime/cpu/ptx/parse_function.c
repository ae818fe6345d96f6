/* parse_function.c -- parses .entry and .func: performance directives,
 * parameters, declarations that precede definitions, and aliases. A function
 * may be declared several times but defined only once. All declarations must
 * agree, as ptxas requires. */
#include "parse.h"

/* ---- Performance directives ---------------------------------------------- */

/* Parses the one to three numbers of a performance directive. A missing number
 * is 1. */
static bool triple(kiln__cpu_parser *p, uint32_t out[3])
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  uint64_t value;

  out[0] = out[1] = out[2] = 1;
  for (int i = 0; i < 3; i++) {
    if (i > 0 && !kiln__cpu_ptx_accept(p, ','))
      break;
    if (!kiln__cpu_ptx_number(p, &value))
      return false;
    out[i] = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
  }
  if (out[0] == 0 || out[1] == 0 || out[2] == 0)
    kiln__cpu_wrong(p, pos, "expected a number above 0");
  return true;
}

static bool single(kiln__cpu_parser *p, uint32_t *out)
{
  uint64_t value;

  if (!kiln__cpu_ptx_number(p, &value))
    return false;
  *out = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
  return true;
}

/* Parses one performance directive of an entry. *known becomes false if the
 * current token is not such a directive. */
static bool entry_directive(kiln__cpu_parser *p, kiln__cpu_ptx_function *f,
                            bool *blocks_are_clusters, bool *known)
{
  uint32_t ignored;
  const struct {
    const char *word;
    uint32_t *to;
    bool triple;
  } numbers[] = {{".maxntid", f->max_ntid, true},
                 {".reqntid", f->req_ntid, true},
                 {".minnctapersm", &f->min_ctas, false},
                 {".maxnreg", &f->max_nreg, false},
                 {".local_maxnreg", &ignored, false},
                 {".reqnctapercluster", f->cluster, true},
                 {".maxclusterrank", &f->max_cluster_rank, false}};

  *known = true;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (kiln__cpu_ptx_accept_word(p, numbers[i].word))
      return numbers[i].triple ? triple(p, numbers[i].to)
                               : single(p, numbers[i].to);
  }
  if (kiln__cpu_ptx_accept_word(p, ".pragma"))
    return kiln__cpu_ptx_pragma(p);
  if (kiln__cpu_ptx_accept_word(p, ".explicitcluster"))
    f->explicit_cluster = true;
  else if (kiln__cpu_ptx_accept_word(p, ".blocksareclusters"))
    *blocks_are_clusters = true;
  else
    *known = false;
  return true;
}

static bool entry_directives(kiln__cpu_parser *p, kiln__cpu_ptx_function *f)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  bool blocks_are_clusters = false, known = true;
  const char *wrong = NULL;

  while (known) {
    if (!entry_directive(p, f, &blocks_are_clusters, &known))
      return false;
  }
  if (f->max_ntid[0] != 0 && f->req_ntid[0] != 0)
    wrong = ".maxntid and .reqntid exclude each other";
  else if (f->cluster[0] != 0 && f->max_cluster_rank != 0)
    wrong = ".reqnctapercluster and .maxclusterrank exclude each other";
  else if (blocks_are_clusters && (f->req_ntid[0] == 0 || f->cluster[0] == 0))
    wrong = ".blocksareclusters needs .reqntid and .reqnctapercluster";
  if (wrong != NULL)
    kiln__cpu_wrong(p, pos, "%s", wrong);
  return true;
}

static bool function_directives(kiln__cpu_parser *p, kiln__cpu_ptx_function *f)
{
  uint32_t ignored;

  for (;;) {
    if (kiln__cpu_ptx_accept_word(p, ".noreturn")) {
      f->noreturn = true;
    } else if (kiln__cpu_ptx_accept_word(p, ".abi_preserve") ||
               kiln__cpu_ptx_accept_word(p, ".abi_preserve_control")) {
      if (!single(p, &ignored))
        return false;
    } else {
      return true;
    }
  }
}

/* ---- Function headers ---------------------------------------------------- */

/* Reports a kernel whose parameters exceed the constant bank that holds them.
 * The limit is 4,352 bytes, or 32,764 bytes from PTX 8.1 and sm_70 on (PTX ISA,
 * "Kernel Function Parameter Attributes"). */
static void check_param_bytes(kiln__cpu_parser *p,
                              const kiln__cpu_ptx_function *f)
{
  const bool large = p->module->version >= 81 && p->module->target >= 70;
  const unsigned max = large ? 0x7ffc : 0x1100;
  uint64_t bytes = 0;

  for (uint32_t i = 0; i < f->n_params; i++) {
    const kiln__cpu_ptx_variable *v = f->params[i]->u.variable;
    const uint64_t align = v->align == 0 ? 1 : v->align;

    bytes = (bytes + align - 1) / align * align + v->size;
  }
  if (bytes > max)
    kiln__cpu_wrong(
        p, f->pos,
        "Entry function '%.*s' uses too much parameter space (0x%llx bytes, "
        "0x%x max)%s",
        KILN__SHOWN(f->name), (unsigned long long)bytes, max,
        large ? "" : "; more than 4352 bytes require PTX 8.1 and sm_70");
}

static void check_header(kiln__cpu_parser *p, const kiln__cpu_ptx_function *f)
{
  if (f->n_returns > 1) {
    for (uint32_t i = 0; i < f->n_returns; i++) {
      if (f->returns[i]->u.variable->space == KILN__SPACE_REG)
        continue;
      kiln__cpu_wrong(p, f->returns[i]->pos,
                      "only a single result can be a register");
      break;
    }
  }
  if (f->noreturn && f->n_returns > 0)
    kiln__cpu_wrong(p, f->pos, "a .noreturn function cannot have a result");
  if (f->entry)
    check_param_bytes(p, f);
}

/* Parses the head of a function: `(ret) name (params) .directives`. */
static bool header(kiln__cpu_parser *p, kiln__cpu_ptx_function *f)
{
  bool ignored = false;

  if (!f->entry && !kiln__cpu_ptx_attribute(p, &ignored, &ignored))
    return false;
  if (!f->entry && p->tok.kind == '(' &&
      !kiln__cpu_ptx_params(p, KILN__PARAM_RETURN, &f->returns, &f->n_returns))
    return false;
  f->name = p->tok.text;
  f->pos = p->tok.pos;
  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  if (p->tok.kind == '(' &&
      !kiln__cpu_ptx_params(p, f->entry ? KILN__PARAM_ENTRY : KILN__PARAM_FUNC,
                            &f->params, &f->n_params))
    return false;
  if (f->n_params > 0)
    f->variadic = f->params[f->n_params - 1]->u.variable->flexible;
  if (!(f->entry ? entry_directives(p, f) : function_directives(p, f)))
    return false;
  check_header(p, f);
  return true;
}

/* ---- Declarations and definitions ---------------------------------------- */

static bool same_params(kiln__cpu_ptx_symbol *const *a, uint32_t n_a,
                        kiln__cpu_ptx_symbol *const *b, uint32_t n_b)
{
  if (n_a != n_b)
    return false;
  for (uint32_t i = 0; i < n_a; i++) {
    const kiln__cpu_ptx_variable *x = a[i]->u.variable, *y = b[i]->u.variable;

    if (x->space != y->space || x->type != y->type || x->size != y->size ||
        x->align != y->align || x->is_array != y->is_array)
      return false;
  }
  return true;
}

static bool same_function(const kiln__cpu_ptx_function *a,
                          const kiln__cpu_ptx_function *b)
{
  return a->entry == b->entry && a->noreturn == b->noreturn &&
         (a->linkage == b->linkage || (a->linkage == KILN__LINK_VISIBLE &&
                                       b->linkage == KILN__LINK_NONE)) &&
         same_params(a->returns, a->n_returns, b->returns, b->n_returns) &&
         same_params(a->params, a->n_params, b->params, b->n_params);
}

/* Returns the function that the name of `f` refers to from now on. Returns NULL
 * after it reports that the name already denotes something other than a
 * function, or if memory allocation fails. */
static kiln__cpu_ptx_function *enter(kiln__cpu_parser *p,
                                     const kiln__cpu_ptx_function *f)
{
  kiln__cpu_ptx_symbol *symbol = kiln__cpu_ptx_lookup_here(p, f->name);
  kiln__cpu_ptx_function *result;

  if (symbol == NULL) {
    result = kiln__cpu_ptx_new(p, sizeof *result);
    symbol =
        kiln__cpu_ptx_symbol_new(p, f->name, f->pos, KILN__SYMBOL_FUNCTION);
    if (result == NULL || symbol == NULL || !kiln__cpu_ptx_bind(p, symbol) ||
        !kiln__cpu_ptx_push(p, &p->functions, result))
      return NULL;
    symbol->u.function = result;
    *result = *f;
    return result;
  }
  if (symbol->kind != KILN__SYMBOL_FUNCTION ||
      symbol->u.function->alias_of != NULL || symbol->u.function->defined) {
    kiln__cpu_wrong(p, f->pos, "'%.*s' is declared twice",
                    KILN__SHOWN(f->name));
    return NULL;
  }
  result = symbol->u.function;
  if (!same_function(result, f)) {
    kiln__cpu_wrong(p, f->pos, "'%.*s' was declared differently before",
                    KILN__SHOWN(f->name));
    return NULL;
  }
  /* The first declaration of a function determines the linkage. Later
   * declarations may omit .visible. */
  {
    const kiln__cpu_linkage linkage = result->linkage;

    *result = *f;
    result->linkage = linkage;
  }
  return result;
}

static bool bind_params(kiln__cpu_parser *p,
                        kiln__cpu_ptx_symbol *const *params, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    kiln__cpu_ptx_variable *v = params[i]->u.variable;

    if (!kiln__cpu_ptx_bind(p, params[i]))
      return false;
    if (v->space != KILN__SPACE_REG)
      continue;
    v->index = p->function->n_registers++;
    if (!kiln__cpu_ptx_push(p, &p->variables, params[i]))
      return false;
  }
  return true;
}

/* Moves the declarations and statements of the body from the parser to the
 * function. */
static bool collect(kiln__cpu_parser *p, kiln__cpu_ptx_function *f)
{
  f->variables = kiln__cpu_ptx_take(p, &p->variables, 0, &f->n_variables);
  f->labels = kiln__cpu_ptx_take(p, &p->function_labels, 0, &f->n_labels);
  if (f->n_registers > KILN__PTX_MAX_REGISTERS)
    kiln__cpu_wrong(p, f->pos, "more than 2^20 registers in a function");
  if (f->n_insns > 0) {
    f->insns = kiln__cpu_ptx_new(p, f->n_insns * sizeof *f->insns);
    if (f->insns != NULL)
      memcpy(f->insns, p->insns, f->n_insns * sizeof *f->insns);
  }
  return !p->no_memory;
}

/* Parses the body of a function. The opening brace has already been consumed.
 */
static bool definition(kiln__cpu_parser *p, kiln__cpu_ptx_function *f)
{
  bool ok;

  p->function = f;
  p->first_scope = p->next_scope;
  p->loc = (kiln__cpu_ptx_loc){0};
  p->n_uses = 0;
  ok = kiln__cpu_ptx_scope_open(p) &&
       bind_params(p, f->returns, f->n_returns) &&
       bind_params(p, f->params, f->n_params) && kiln__cpu_ptx_body(p);
  while (p->depth > 0)
    kiln__cpu_ptx_scope_close(p);
  if (ok) {
    kiln__cpu_ptx_resolve_labels(p);
    ok = collect(p, f);
  }
  p->variables.n = 0;
  p->function_labels.n = 0;
  p->function = NULL;
  kiln__cpu_ptx_drop_members(p);
  return ok;
}

bool kiln__cpu_ptx_function_parse(kiln__cpu_parser *p,
                                  kiln__cpu_linkage linkage, bool entry)
{
  kiln__cpu_ptx_function f = {.linkage = linkage, .entry = entry};
  kiln__cpu_ptx_function *target, unnamed;

  if (!header(p, &f))
    return false;
  f.defined = p->tok.kind == '{';
  if (!f.defined && p->tok.kind != ';')
    return kiln__cpu_ptx_unexpected(p, "'{' or ';'");
  if (linkage == KILN__LINK_COMMON ||
      (f.defined && linkage == KILN__LINK_EXTERN))
    kiln__cpu_wrong(p, f.pos,
                    "a function that is defined is neither .extern nor "
                    ".common");
  target = enter(p, &f);
  if (p->no_memory)
    return false;
  kiln__cpu_ptx_next(p);
  if (!f.defined)
    return true;
  /* If the name is already in use, the function body is parsed only to report
   * its mistakes, and is then discarded. */
  unnamed = f;
  return definition(p, target == NULL ? &unnamed : target);
}

/* ---- Aliases ------------------------------------------------------------- */

static kiln__cpu_ptx_symbol *function_named(kiln__cpu_parser *p)
{
  const kiln__cpu_token name = p->tok;
  kiln__cpu_ptx_symbol *symbol;

  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME))
    return NULL;
  symbol = kiln__cpu_ptx_lookup(p, name.text);
  if (symbol != NULL && symbol->kind == KILN__SYMBOL_FUNCTION)
    return symbol;
  kiln__cpu_wrong(p, name.pos, "'%.*s' is not a function",
                  KILN__SHOWN(name.text));
  return NULL;
}

bool kiln__cpu_ptx_alias(kiln__cpu_parser *p)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  kiln__cpu_ptx_symbol *alias = function_named(p), *to;
  const char *wrong = NULL;

  if (alias == NULL || !kiln__cpu_ptx_expect(p, ','))
    return false;
  to = function_named(p);
  if (to == NULL)
    return false;
  if (alias->u.function->defined || alias->u.function->alias_of != NULL)
    wrong = "the alias is defined already";
  else if (!to->u.function->defined || to->u.function->entry ||
           to->u.function->linkage == KILN__LINK_WEAK)
    wrong = "an alias stands for a defined function that is not .weak";
  else if (!same_params(alias->u.function->returns,
                        alias->u.function->n_returns, to->u.function->returns,
                        to->u.function->n_returns) ||
           !same_params(alias->u.function->params, alias->u.function->n_params,
                        to->u.function->params, to->u.function->n_params))
    wrong = "the alias has other parameters";
  if (wrong != NULL) {
    kiln__cpu_wrong(p, pos, "%s", wrong);
  } else {
    alias->u.function->alias_of = to->u.function;
    alias->u.function = to->u.function;
  }
  return kiln__cpu_ptx_expect(p, ';');
}
