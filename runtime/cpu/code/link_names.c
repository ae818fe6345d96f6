/* link_names.c -- resolves names across the parts of a program, as a linker
 * does. A part is one of the linked PTX modules.
 *
 * Each part has its own symbols. A function or variable of a part receives the
 * number of the one definition that its name refers to in the program. A name
 * without .visible, .extern, .weak or .common is local to its part. If several
 * parts define a name, a strong definition takes precedence over a weak
 * definition, and a weak definition over .common. Two strong definitions are an
 * error. */
#include "code_build.h"

#include <string.h>

/* Maximum bytes of .const variables per program. */
enum { MAX_CONST = 64 * 1024 };

/* A name that is visible to all linked PTX modules of a program. */
typedef struct shared_name {
  kiln__cpu_slice name;
  uint32_t number; /* index of the function or global variable */
  bool function;
  bool used;
  void *item; /* pointer to kiln__cpu_ptx_function or kiln__cpu_ptx_variable */
  /* For .shared: the variable whose offset all linked modules use. */
  kiln__cpu_ptx_variable *first;
} shared_name;

typedef struct names {
  shared_name *table;
  uint32_t size; /* number of entries of the hash table, a power of two */
} names;

static shared_name *find_name(const names *n, kiln__cpu_slice name)
{
  uint32_t h = 2166136261u;

  for (uint32_t i = 0; i < name.size; i++)
    h = (h ^ (uint8_t)name.data[i]) * 16777619u;
  for (uint32_t i = h & (n->size - 1);; i = (i + 1) & (n->size - 1)) {
    shared_name *s = &n->table[i];

    if (!s->used || kiln__cpu_slice_equal(s->name, name))
      return s;
  }
}

static const char *keep_text(kiln__cpu_build *b, kiln__cpu_slice s)
{
  char *text = kiln__cpu_ptx_alloc(b->arena, s.size + 1u);

  if (text != NULL && s.size > 0)
    memcpy(text, s.data, s.size);
  return text;
}

/* Reports a mistake in a linked PTX module. The message consists of the name
 * and of the text `what`. */
static void mistake(kiln__cpu_build *b, uint32_t part, kiln__cpu_ptx_pos pos,
                    const char *what, kiln__cpu_slice name)
{
  kiln__cpu_ptx_complain(&b->messages[part], pos, "'%.*s' %s",
                         KILN__SHOWN(name), what);
}

/* ---- Functions ----------------------------------------------------------- */

static bool same_kind_of_function(const kiln__cpu_ptx_function *x,
                                  const kiln__cpu_ptx_function *y)
{
  if (x->entry != y->entry || x->n_params != y->n_params ||
      x->n_returns != y->n_returns)
    return false;
  for (uint32_t i = 0; i < x->n_params; i++) {
    if (x->params[i]->u.variable->size != y->params[i]->u.variable->size)
      return false;
  }
  for (uint32_t i = 0; i < x->n_returns; i++) {
    if (x->returns[i]->u.variable->size != y->returns[i]->u.variable->size)
      return false;
  }
  return true;
}

/* Merges a function with another function of the same name. The stronger
 * definition is kept. */
static void merge_function(kiln__cpu_build *b, uint32_t part, shared_name *s,
                           kiln__cpu_ptx_function *fn)
{
  kiln__cpu_ptx_function *old = b->functions[s->number];
  const bool weak = fn->linkage == KILN__LINK_WEAK,
             old_weak = old->linkage == KILN__LINK_WEAK;

  fn->number = s->number;
  if (!same_kind_of_function(old, fn))
    mistake(b, part, fn->pos, "has other parameters in another module",
            fn->name);
  else if (fn->defined && old->defined && !weak && !old_weak)
    mistake(b, part, fn->pos, "is defined in two modules", fn->name);
  else if (fn->defined && (!old->defined || (old_weak && !weak))) {
    b->functions[s->number] = fn;
    b->part_of[s->number] = part;
  }
}

static kiln_status number_function(kiln__cpu_build *b, const names *n,
                                   uint32_t part, kiln__cpu_ptx_function *fn)
{
  kiln__cpu_program *p = b->program;
  shared_name *s =
      fn->linkage == KILN__LINK_NONE ? NULL : find_name(n, fn->name);

  if (s != NULL && s->used) {
    if (s->function)
      merge_function(b, part, s, fn);
    else
      mistake(b, part, fn->pos, "is a variable in another module", fn->name);
    return KILN_OK;
  }
  fn->number = p->n_functions++;
  b->functions[fn->number] = fn;
  b->part_of[fn->number] = part;
  if (s != NULL)
    *s = (shared_name){fn->name, fn->number, true, true, fn, NULL};
  return KILN_OK;
}

/* Numbers an alias. An alias is another name for a function of the same PTX
 * module. */
static void number_alias(kiln__cpu_build *b, const names *n, uint32_t part,
                         kiln__cpu_ptx_function *fn)
{
  shared_name *s = find_name(n, fn->name);

  fn->number = fn->alias_of->number;
  if (!s->used)
    *s = (shared_name){fn->name, fn->number, true, true, fn, NULL};
  else if (!s->function || b->functions[s->number]->defined)
    mistake(b, part, fn->pos, "is defined in two modules", fn->name);
}

/* ---- Variables ----------------------------------------------------------- */

static bool needs_memory(const kiln__cpu_ptx_variable *v)
{
  return v->space == KILN__SPACE_GLOBAL || v->space == KILN__SPACE_CONST ||
         v->space == KILN__SPACE_TEX;
}

static void describe(kiln__cpu_global *g, const kiln__cpu_ptx_variable *v)
{
  g->visible = true;
  g->constant = v->space == KILN__SPACE_CONST;
  g->managed = v->managed;
  g->external = v->linkage == KILN__LINK_EXTERN;
  g->size = v->size;
  g->align = v->align;
  g->init = v->init;
  g->init_size = v->init_size;
  g->texture = v->type == KILN__TEXREF;
  g->surface = v->type == KILN__SURFREF;
}

/* Returns the strength of a definition. The definition with the highest
 * strength is kept. */
static int strength(const kiln__cpu_ptx_variable *v)
{
  switch (v->linkage) {
  case KILN__LINK_EXTERN:
    return 0;
  case KILN__LINK_COMMON:
    return 1;
  case KILN__LINK_WEAK:
    return 2;
  default:
    return 3;
  }
}

/* Merges .shared variables with the same name into one variable. The merged
 * variable has the largest size and alignment that any PTX module declares. */
static void merge_shared(kiln__cpu_ptx_variable *first,
                         kiln__cpu_ptx_variable *v)
{
  v->same = first;
  first->size = v->size > first->size ? v->size : first->size;
  first->align = v->align > first->align ? v->align : first->align;
  first->flexible &= v->flexible;
}

static void merge_variable(kiln__cpu_build *b, uint32_t part, shared_name *s,
                           const kiln__cpu_ptx_symbol *symbol)
{
  kiln__cpu_ptx_variable *v = symbol->u.variable, *old = s->item;

  v->number = s->number;
  if (old->space != v->space ||
      (old->size != v->size && !old->flexible && !v->flexible &&
       strength(old) != 1 && strength(v) != 1))
    mistake(b, part, symbol->pos, "is another variable in another module",
            symbol->name);
  else if (strength(v) == 3 && strength(old) == 3)
    mistake(b, part, symbol->pos, "is defined in two modules", symbol->name);
  else {
    if (v->space == KILN__SPACE_SHARED)
      merge_shared(s->first, v);
    if (strength(v) > strength(old) ||
        (strength(v) == 1 && v->size > old->size)) {
      s->item = v;
      if (needs_memory(v))
        describe(&b->program->globals[s->number], v);
    }
  }
}

/* Adds a .const variable to the total size. These variables lie in declaration
 * order in one bank of 64 KiB. */
static void count_const(kiln__cpu_build *b, uint32_t part,
                        const kiln__cpu_ptx_symbol *symbol)
{
  const kiln__cpu_ptx_variable *v = symbol->u.variable;
  const uint64_t align = v->align == 0 ? 1 : v->align;

  if (v->space != KILN__SPACE_CONST)
    return;
  b->const_bytes = (b->const_bytes + align - 1) / align * align + v->size;
  if (b->const_bytes > MAX_CONST && b->const_pos.line == 0) {
    b->const_part = part;
    b->const_pos = symbol->pos;
  }
}

static kiln_status number_variable(kiln__cpu_build *b, const names *n,
                                   uint32_t part, kiln__cpu_ptx_symbol *symbol)
{
  kiln__cpu_ptx_variable *v = symbol->u.variable;
  shared_name *s =
      v->linkage == KILN__LINK_NONE ? NULL : find_name(n, symbol->name);
  kiln__cpu_global *g;

  if (s != NULL && s->used) {
    if (!s->function)
      merge_variable(b, part, s, symbol);
    else
      mistake(b, part, symbol->pos, "is a function in another module",
              symbol->name);
    return KILN_OK;
  }
  v->number = 0;
  if (needs_memory(v)) {
    v->number = b->program->n_globals++;
    g = &b->program->globals[v->number];
    g->name = keep_text(b, symbol->name);
    if (g->name == NULL)
      return kiln__fail_memory("variables");
    describe(g, v);
    count_const(b, part, symbol);
  }
  if (s != NULL)
    *s = (shared_name){symbol->name, v->number, false, true, v, v};
  return KILN_OK;
}

/* ---- Addresses in initial values ----------------------------------------- */

bool kiln__cpu_is_missing(const kiln__cpu_build *b,
                          const kiln__cpu_ptx_function *fn)
{
  return fn->linkage != KILN__LINK_EXTERN && !b->functions[fn->number]->defined;
}

static void check_reloc(kiln__cpu_build *b, uint32_t part,
                        const kiln__cpu_ptx_symbol *variable,
                        const kiln__cpu_ptx_reloc *r)
{
  const kiln__cpu_slice name = r->symbol->name;

  if (r->symbol->kind == KILN__SYMBOL_FUNCTION &&
      kiln__cpu_is_missing(b, r->symbol->u.function))
    kiln__cpu_ptx_complain(&b->messages[part], variable->pos,
                           "the function '%.*s' is not defined",
                           KILN__SHOWN(name));
}

static kiln_status patch_variable(kiln__cpu_build *b, uint32_t part,
                                  const kiln__cpu_ptx_symbol *symbol)
{
  const kiln__cpu_ptx_variable *v = symbol->u.variable;
  kiln__cpu_global *g = &b->program->globals[v->number];

  if (v->n_relocs == 0 || g->init != v->init)
    return KILN_OK;
  g->patches = kiln__cpu_ptx_alloc(b->arena, v->n_relocs * sizeof *g->patches);
  if (g->patches == NULL)
    return kiln__fail_memory("variables");
  g->n_patches = v->n_relocs;
  for (uint32_t i = 0; i < v->n_relocs; i++) {
    const kiln__cpu_ptx_reloc *r = &v->relocs[i];
    const bool function = r->symbol->kind == KILN__SYMBOL_FUNCTION;

    check_reloc(b, part, symbol, r);
    g->patches[i] =
        (struct kiln__cpu_patch){r->offset,
                                 r->size,
                                 r->shift,
                                 function,
                                 function ? r->symbol->u.function->number
                                          : r->symbol->u.variable->number,
                                 r->addend};
  }
  return KILN_OK;
}

static kiln_status patch_all(kiln__cpu_build *b)
{
  kiln_status st = KILN_OK;

  for (uint32_t p = 0; p < b->n_parts; p++) {
    for (uint32_t i = 0; i < b->parts[p]->n_variables; i++) {
      const kiln__cpu_ptx_symbol *symbol = b->parts[p]->variables[i];

      if (needs_memory(symbol->u.variable))
        KILN_TRY(patch_variable(b, p, symbol));
    }
  }
done:
  return st;
}

/* ---- Linking a program --------------------------------------------------- */

/* Numbers the variables that function bodies declare and that need device
 * memory. */
static kiln_status number_inner(kiln__cpu_build *b, const names *n,
                                uint32_t part, const kiln__cpu_ptx_function *fn)
{
  kiln_status st = KILN_OK;

  for (uint32_t i = 0; i < fn->n_variables; i++) {
    kiln__cpu_ptx_symbol *s = fn->variables[i];

    if (s->kind == KILN__SYMBOL_VARIABLE && needs_memory(s->u.variable))
      KILN_TRY(number_variable(b, n, part, s));
  }
done:
  return st;
}

static kiln_status number_part(kiln__cpu_build *b, const names *n,
                               uint32_t part)
{
  kiln__cpu_ptx_module *m = b->parts[part];
  kiln_status st = KILN_OK;

  for (uint32_t i = 0; i < m->n_variables; i++)
    KILN_TRY(number_variable(b, n, part, m->variables[i]));
  for (uint32_t i = 0; i < m->n_functions; i++) {
    if (m->functions[i]->alias_of == NULL)
      KILN_TRY(number_function(b, n, part, m->functions[i]));
    KILN_TRY(number_inner(b, n, part, m->functions[i]));
  }
  for (uint32_t i = 0; i < m->n_functions; i++) {
    if (m->functions[i]->alias_of != NULL)
      number_alias(b, n, part, m->functions[i]);
  }
done:
  return st;
}

static kiln_status name_functions(kiln__cpu_build *b)
{
  for (uint32_t i = 0; i < b->program->n_functions; i++) {
    kiln__cpu_code *code = &b->program->functions[i];

    code->name = keep_text(b, b->functions[i]->name);
    code->program = b->program;
    code->number = i;
    code->entry = b->functions[i]->entry;
    code->defined = b->functions[i]->defined;
    if (!code->defined)
      code->system = kiln__cpu_system_named(b->functions[i]->name);
    if (code->name == NULL)
      return kiln__fail_memory("functions");
  }
  return KILN_OK;
}

static void count(const kiln__cpu_build *b, uint32_t *functions,
                  uint32_t *globals)
{
  for (uint32_t p = 0; p < b->n_parts; p++) {
    const kiln__cpu_ptx_module *m = b->parts[p];

    *functions += m->n_functions;
    *globals += m->n_variables;
    for (uint32_t i = 0; i < m->n_functions; i++) {
      const kiln__cpu_ptx_function *fn = m->functions[i];

      for (uint32_t k = 0; k < fn->n_variables; k++)
        *globals += fn->variables[k]->kind == KILN__SYMBOL_VARIABLE &&
                    needs_memory(fn->variables[k]->u.variable);
    }
  }
}

kiln_status kiln__cpu_link_symbols(kiln__cpu_build *b)
{
  uint32_t functions = 0, globals = 0;
  names n = {NULL, 64};
  kiln_status st = KILN_OK;

  count(b, &functions, &globals);
  while (n.size < 2 * (functions + globals + 1))
    n.size *= 2;
  n.table = kiln__calloc(b->a, n.size, sizeof *n.table);
  b->functions =
      kiln__cpu_ptx_alloc(b->arena, (functions + 1u) * sizeof(void *));
  b->part_of =
      kiln__cpu_ptx_alloc(b->arena, (functions + 1u) * sizeof(uint32_t));
  b->program->functions =
      kiln__cpu_ptx_alloc(b->arena, (functions + 1u) * sizeof(kiln__cpu_code));
  b->program->globals =
      kiln__cpu_ptx_alloc(b->arena, (globals + 1u) * sizeof(kiln__cpu_global));
  if (n.table == NULL || b->functions == NULL || b->part_of == NULL ||
      b->program->functions == NULL || b->program->globals == NULL)
    KILN_TRY(kiln__fail_memory("symbols"));
  for (uint32_t p = 0; p < b->n_parts; p++)
    KILN_TRY(number_part(b, &n, p));
  if (b->const_bytes > MAX_CONST)
    kiln__cpu_ptx_complain(
        &b->messages[b->const_part], b->const_pos,
        "File uses too much global constant data (0x%llx bytes, 0x%x max)",
        (unsigned long long)b->const_bytes, (unsigned)MAX_CONST);
  KILN_TRY(name_functions(b));
  KILN_TRY(patch_all(b));
done:
  kiln__free(b->a, n.table);
  return st;
}
