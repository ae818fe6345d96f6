/* lower_call.c -- lowers calls. Arguments and results are passed in the
 * per-lane stack.
 *
 * A function's part of the per-lane stack begins with its parameters, followed
 * by its results and its own variables. A call has a list of copies from the
 * caller's part to the callee's part, and a list of copies back. The scheduler
 * performs the copies. An argument in a register is first stored to the
 * caller's part, and a result in a register is loaded from there.
 *
 * An indirect call uses the layout of its prototype. If the callee has a
 * different number of parameters, the call is a fault at run time. */
#include "code_build.h"

bool kiln__cpu_emit_local_copy(kiln__cpu_lower *l, bool load,
                               kiln__cpu_ptx_type type, int32_t reg,
                               uint64_t offset, bool guarded)
{
  const uint8_t bytes = kiln__cpu_ptx_type_bytes[type];
  char opcode[32];
  kiln__cpu_insn in;

  (void)kiln__format(opcode, sizeof opcode, "%s.local.b%u", load ? "ld" : "st",
                     bytes * 8u);
  if (!kiln__cpu_fields_of(l, &in, opcode))
    return false;
  in.imm = (int64_t)offset;
  in.reg_bytes = bytes;
  in.src_reg_bytes = bytes;
  if (load)
    in.d = reg;
  else
    in.b = reg;
  in.klass = load ? KILN__CLASS_LOCAL_LOAD : KILN__CLASS_LOCAL_STORE;
  return kiln__cpu_emit(l, &in, guarded);
}

static bool formal_copies(kiln__cpu_lower *l, kiln__cpu_ptx_symbol **list,
                          uint32_t n, bool load)
{
  for (uint32_t i = 0; i < n; i++) {
    const kiln__cpu_ptx_variable *v = list[i]->u.variable;

    if (v->space != KILN__SPACE_REG)
      continue;
    if (v->type == KILN__PRED || v->vector > 1)
      return kiln__cpu_complain(
          l, list[i]->pos,
          "register parameters of this type are not supported");
    if (!kiln__cpu_emit_local_copy(l, load, v->type, (int32_t)l->base[v->index],
                                   v->place, !load))
      return false;
  }
  return true;
}

bool kiln__cpu_load_formals(kiln__cpu_lower *l)
{
  return l->fn->entry || formal_copies(l, l->fn->params, l->fn->n_params, true);
}

bool kiln__cpu_store_results(kiln__cpu_lower *l)
{
  return formal_copies(l, l->fn->returns, l->fn->n_returns, false);
}

/* ---- The call statement -------------------------------------------------- */

typedef struct call {
  const kiln__cpu_ptx_operand *results, *callee, *arguments, *proto;
  /* Declaration of the callee, or the prototype of an indirect call. */
  const kiln__cpu_ptx_function *formals;
  kiln__cpu_copy *in, *out;
} call;

static bool read_operands(kiln__cpu_lower *l, call *c)
{
  const kiln__cpu_ptx_insn *at = l->at;
  uint32_t i = 0;

  if (i < at->n_operands && at->operands[i].kind == KILN__OPERAND_LIST)
    c->results = &at->operands[i++];
  if (i < at->n_operands && at->operands[i].kind == KILN__OPERAND_SYMBOL)
    c->callee = &at->operands[i++];
  if (i < at->n_operands && at->operands[i].kind == KILN__OPERAND_LIST)
    c->arguments = &at->operands[i++];
  if (i < at->n_operands && at->operands[i].kind == KILN__OPERAND_SYMBOL)
    c->proto = &at->operands[i++];
  if (c->callee == NULL || i != at->n_operands)
    return kiln__cpu_complain(
        l, at->pos,
        "malformed call; expected (results), function, (arguments)");
  return true;
}

static bool indirect(kiln__cpu_lower *l, call *c, kiln__cpu_insn *in)
{
  const kiln__cpu_ptx_symbol *s = c->proto == NULL ? NULL : c->proto->symbol;

  if (s == NULL)
    return kiln__cpu_complain(l, l->at->pos,
                              "an indirect call needs a prototype or targets");
  if (!kiln__cpu_type_fits(KILN__U64, c->callee->symbol->u.variable->type,
                           false))
    return kiln__cpu_complain(l, c->callee->pos,
                              "the address of a function must be in a 64-bit "
                              "register");
  if (s->kind == KILN__SYMBOL_PROTOTYPE) {
    /* Gives the prototype the parameter layout that its callees have. */
    (void)kiln__cpu_place_params(s->u.function);
    c->formals = s->u.function;
  } else if (s->kind == KILN__SYMBOL_TARGETS && s->u.targets.n > 0 &&
             s->u.targets.items[0] != NULL &&
             s->u.targets.items[0]->kind == KILN__SYMBOL_FUNCTION)
    c->formals = s->u.targets.items[0]->u.function;
  else
    return kiln__cpu_complain(l, c->proto->pos, "'%.*s' is not a prototype",
                              KILN__SHOWN(s->name));
  in->a = kiln__cpu_register_of(l, c->callee);
  return true;
}

static bool direct(kiln__cpu_lower *l, call *c, kiln__cpu_call *site)
{
  const kiln__cpu_ptx_function *fn = c->callee->symbol->u.function;
  const kiln__cpu_ptx_function *body = l->b->functions[fn->number];

  if (fn->entry)
    return kiln__cpu_complain(l, c->callee->pos, "a kernel cannot be called");
  if (c->proto != NULL)
    return kiln__cpu_complain(l, c->proto->pos,
                              "a direct call cannot have a prototype");
  if (!body->defined && kiln__cpu_system_named(fn->name) == KILN__SYSTEM_NONE)
    return kiln__cpu_complain(l, c->callee->pos, "undefined function '%.*s'",
                              KILN__SHOWN(fn->name));
  c->formals = fn;
  site->callee = fn->number;
  return true;
}

/* Reserves bytes in the caller's part of the stack for an argument that is a
 * register or a literal. The bytes stay reserved for the whole function,
 * because compilers do not emit such calls. */
static uint64_t own_bytes(kiln__cpu_lower *l, uint8_t size)
{
  const uint32_t at = (l->code->local_bytes + 7u) & ~7u;

  l->code->local_bytes = at + size;
  return at;
}

static bool is_param(const kiln__cpu_ptx_operand *o)
{
  return o->kind == KILN__OPERAND_SYMBOL &&
         o->symbol->kind == KILN__SYMBOL_VARIABLE &&
         o->symbol->u.variable->space == KILN__SPACE_PARAM;
}

/* Returns whether a .param variable may be passed for a formal parameter. */
static bool same_layout(const kiln__cpu_ptx_variable *actual,
                        const kiln__cpu_ptx_variable *formal)
{
  if (formal->flexible)
    return true;
  if (actual->is_array != formal->is_array || actual->size != formal->size)
    return false;
  return actual->is_array
             ? actual->align >= formal->align
             : kiln__cpu_type_fits(formal->type, actual->type, false) ||
                   kiln__cpu_type_fits(actual->type, formal->type, false);
}

static bool pass_register(kiln__cpu_lower *l, const kiln__cpu_ptx_operand *o,
                          const kiln__cpu_ptx_variable *formal, bool load,
                          uint64_t offset, bool after)
{
  uint64_t bits;
  int32_t id;

  if (formal->is_array || kiln__cpu_ptx_type_bytes[formal->type] == 0 ||
      kiln__cpu_ptx_type_bytes[formal->type] > 8)
    return kiln__cpu_complain(l, o->pos, "argument mismatch in call");
  if (kiln__cpu_is_register(o) && o->component < 0 && !o->negated &&
      o->symbol->u.variable->vector <= 1 &&
      kiln__cpu_type_fits(formal->type, o->symbol->u.variable->type, false)) {
    id = kiln__cpu_register_of(l, o);
  } else if (!load && kiln__cpu_literal(o, formal->type, &bits)) {
    id = kiln__cpu_constant(l, kiln__cpu_ptx_type_bytes[formal->type],
                            KILN__CONST_VALUE, bits, 0);
    if (id < 0)
      return false;
  } else {
    return kiln__cpu_complain(l, o->pos, "argument mismatch in call");
  }
  return load == after ? kiln__cpu_emit_local_copy(l, load, formal->type, id,
                                                   offset, true)
                       : true;
}

static bool is_formal(const kiln__cpu_ptx_function *fn,
                      const kiln__cpu_ptx_variable *v)
{
  for (uint32_t i = 0; i < fn->n_params + fn->n_returns; i++) {
    const kiln__cpu_ptx_symbol *const s =
        i < fn->n_params ? fn->params[i] : fn->returns[i - fn->n_params];

    if (s->u.variable == v)
      return true;
  }
  return false;
}

/* Determines the offset of one argument or result in the caller's part of the
 * stack. */
static bool place_actual(kiln__cpu_lower *l, const kiln__cpu_ptx_operand *o,
                         const kiln__cpu_ptx_variable *formal, bool result,
                         uint64_t *offset)
{
  if (is_param(o) && o->offset == 0 && !o->negated) {
    const kiln__cpu_ptx_variable *v = o->symbol->u.variable;

    if (is_formal(l->fn, v))
      return kiln__cpu_complain(l, o->pos,
                                "formal parameter '%.*s' cannot be used as "
                                "argument to call",
                                KILN__SHOWN(o->symbol->name));
    if (!kiln__cpu_is_local(v) || !same_layout(v, formal))
      return kiln__cpu_complain(l, o->pos, "argument mismatch in call");
    *offset = v->place;
    return true;
  }
  *offset = own_bytes(l, 8);
  return pass_register(l, o, formal, result, *offset, false);
}

static bool make_copies(kiln__cpu_lower *l, const kiln__cpu_ptx_operand *actual,
                        kiln__cpu_ptx_symbol **formals, uint32_t n, bool result,
                        kiln__cpu_copy **out)
{
  const uint32_t n_actual = actual == NULL ? 0 : actual->n_items;

  if (n_actual != n)
    return kiln__cpu_complain(l, l->at->pos,
                              "the call has %u %s, the function %u", n_actual,
                              result ? "results" : "arguments", n);
  *out = kiln__cpu_ptx_alloc(l->b->arena, (n + 1u) * sizeof **out);
  if (*out == NULL)
    return kiln__cpu_no_memory(l);
  for (uint32_t i = 0; i < n; i++) {
    const kiln__cpu_ptx_variable *formal = formals[i]->u.variable;
    uint64_t mine = 0;

    if (!place_actual(l, &actual->items[i], formal, result, &mine))
      return false;
    (*out)[i] = (kiln__cpu_copy){(uint32_t)(result ? formal->place : mine),
                                 (uint32_t)(result ? mine : formal->place),
                                 (uint32_t)formal->size};
    if (formal->flexible && is_param(&actual->items[i]))
      (*out)[i].size = (uint32_t)actual->items[i].symbol->u.variable->size;
  }
  return true;
}

/* Emits the loads of results in registers that follow the call. */
static bool load_results(kiln__cpu_lower *l, const call *c)
{
  for (uint32_t i = 0; i < c->formals->n_returns; i++) {
    const kiln__cpu_ptx_operand *o = &c->results->items[i];

    if (!is_param(o) && !pass_register(l, o, c->formals->returns[i]->u.variable,
                                       true, c->out[i].to, true))
      return false;
  }
  return true;
}

bool kiln__cpu_lower_call(kiln__cpu_lower *l, kiln__cpu_insn *in)
{
  call c = {0};
  kiln__cpu_call site = {.callee = UINT32_MAX}, *to;

  if (!read_operands(l, &c))
    return false;
  if (kiln__cpu_is_register(c.callee) ? !indirect(l, &c, in)
      : c.callee->symbol->kind != KILN__SYMBOL_FUNCTION
          ? !kiln__cpu_complain(l, c.callee->pos, "'%.*s' is not a function",
                                KILN__SHOWN(c.callee->text))
          : !direct(l, &c, &site))
    return false;
  if (!make_copies(l, c.arguments, c.formals->params, c.formals->n_params,
                   false, &c.in) ||
      !make_copies(l, c.results, c.formals->returns, c.formals->n_returns, true,
                   &c.out))
    return false;
  site.in = c.in;
  site.out = c.out;
  site.n_in = c.formals->n_params;
  site.n_out = c.formals->n_returns;
  site.n_params = c.formals->n_params;
  in->imm = l->calls.n;
  to = kiln__cpu_array_add(&l->calls, l->b->a, 1, sizeof *to);
  if (to == NULL)
    return kiln__cpu_no_memory(l);
  *to = site;
  in->target = site.callee;
  return kiln__cpu_emit(l, in, true) && load_results(l, &c);
}
