/* lower.c -- turns the statements of a function into instructions over virtual
 * registers.
 *
 * For each statement, lowering finds the rows of ops.def that the opcode
 * matches and takes the first row whose operand shapes match. It checks
 * .version and .target and lets bind_statement.c bind the operands. A PTX
 * register becomes one virtual register per vector component. Immediates,
 * special registers and addresses become constants. A hash table finds equal
 * constants, so that they are shared. Later, register_slots.c replaces virtual
 * registers and constants by slots.
 *
 * Accesses to .param become accesses to the per-lane stack. The only exception
 * is a kernel's own parameters, which lie in a buffer of the launch. Therefore,
 * st.param always uses the rows of .local. ld.param uses them unless it reads a
 * kernel's own parameter.
 *
 * Branch targets are statement indices until resolve_targets() replaces them by
 * instruction indices. */
#include "code_build.h"

#include <stdio.h>
#include <string.h>

/* ---- Shared helper functions --------------------------------------------- */

void *kiln__cpu_array_add(kiln__cpu_array *list, const kiln_allocator *a,
                          uint32_t more, size_t size)
{
  if (more > list->capacity - list->n) {
    const uint64_t capacity = (uint64_t)list->capacity * 2 + more + 16;
    void *data;

    if (capacity > UINT32_MAX / 2)
      return NULL;
    data = kiln__resize(a, list->data, (size_t)capacity * size);
    if (data == NULL)
      return NULL;
    list->data = data;
    list->capacity = (uint32_t)capacity;
  }
  memset((char *)list->data + list->n * size, 0, more * size);
  list->n += more;
  return (char *)list->data + (list->n - more) * size;
}

#undef kiln__cpu_complain
#undef kiln__cpu_no_memory

bool kiln__cpu_complain(kiln__cpu_lower *l, kiln__cpu_ptx_pos pos,
                        const char *format, ...)
{
  char text[256];
  va_list args;

  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  kiln__cpu_ptx_complain(l->messages, pos, "%s", text);
  return false;
}

bool kiln__cpu_no_memory(kiln__cpu_lower *l)
{
  l->out_of_memory = true;
  return false;
}

int32_t kiln__cpu_new_register(kiln__cpu_lower *l, uint8_t bytes)
{
  uint8_t *width = kiln__cpu_array_add(&l->widths, l->b->a, 1, 1);

  if (width == NULL || l->widths.n >= KILN__IS_CONST) {
    (void)kiln__cpu_no_memory(l);
    return -1;
  }
  *width = bytes == 8 ? 8 : 4;
  return (int32_t)l->widths.n - 1;
}

static uint32_t hash_const(const kiln__cpu_const *c)
{
  uint64_t h = c->value * UINT64_C(0x9e3779b97f4a7c15);

  h ^= (uint64_t)c->addend * UINT64_C(0xc2b2ae3d27d4eb4f);
  h ^= (uint64_t)c->kind << 8 | c->bytes;
  h *= UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(h >> 32);
}

/* Returns the entry of the hash table that holds the constant, or the empty
 * entry where the constant belongs. */
static uint32_t *const_place(const kiln__cpu_lower *l, const kiln__cpu_const *c)
{
  const kiln__cpu_const *all = l->consts.data;
  uint32_t *table = l->const_hash.data;
  const uint32_t mask = l->const_hash.n - 1;

  for (uint32_t i = hash_const(c) & mask;; i = (i + 1) & mask) {
    const kiln__cpu_const *have;

    if (table[i] == 0)
      return &table[i];
    have = &all[table[i] - 1];
    if (have->kind == c->kind && have->bytes == c->bytes &&
        have->value == c->value && have->addend == c->addend)
      return &table[i];
  }
}

static bool grow_consts(kiln__cpu_lower *l)
{
  const uint32_t n = l->const_hash.n == 0 ? 64 : l->const_hash.n * 2;

  l->const_hash.n = 0;
  if (kiln__cpu_array_add(&l->const_hash, l->b->a, n, sizeof(uint32_t)) == NULL)
    return kiln__cpu_no_memory(l);
  for (uint32_t i = 0; i < l->consts.n; i++)
    *const_place(l, (const kiln__cpu_const *)l->consts.data + i) = i + 1;
  return true;
}

int32_t kiln__cpu_constant(kiln__cpu_lower *l, uint8_t bytes,
                           kiln__cpu_const_kind kind, uint64_t value,
                           int64_t addend)
{
  const kiln__cpu_const c = {-1, bytes > 4 ? 8 : 4, kind, value, addend};
  kiln__cpu_const *place;
  uint32_t *number;

  if (l->consts.n * 2 >= l->const_hash.n && !grow_consts(l))
    return -1;
  number = const_place(l, &c);
  if (*number == 0) {
    place = kiln__cpu_array_add(&l->consts, l->b->a, 1, sizeof c);
    if (place == NULL) {
      (void)kiln__cpu_no_memory(l);
      return -1;
    }
    *place = c;
    *number = l->consts.n;
  }
  return (int32_t)(*number - 1) | KILN__IS_CONST;
}

/* Returns the index of a file of the function's PTX module in the program's
 * table of source files. Number 0 stands for an unknown file. */
static uint32_t file_of(const kiln__cpu_lower *l, uint32_t file)
{
  return file == 0 ? 0 : l->file_base + file;
}

bool kiln__cpu_emit(kiln__cpu_lower *l, const kiln__cpu_insn *in, bool guarded)
{
  kiln__cpu_insn *to = kiln__cpu_array_add(&l->insns, l->b->a, 1, sizeof *to);
  kiln__cpu_line *line =
      kiln__cpu_array_add(&l->lines, l->b->a, 1, sizeof *line);
  const kiln__cpu_ptx_insn *at = l->at;

  if (to == NULL || line == NULL)
    return kiln__cpu_no_memory(l);
  *to = *in;
  to->index = l->insns.n - 1;
  if (at != NULL) {
    to->used_bytes = at->used_bytes;
    *line =
        (kiln__cpu_line){at->pos.line, file_of(l, at->loc.file), at->loc.line,
                         file_of(l, at->loc.outer_file), at->loc.outer_line};
    if (guarded && at->guard != NULL) {
      to->guard = (int32_t)l->base[at->guard->u.variable->index];
      to->flags |= at->guard_negated ? KILN__GUARD_NOT : 0u;
    }
  }
  return true;
}

void kiln__cpu_set_row(const kiln__cpu_lower *l, kiln__cpu_insn *in,
                       uint16_t op)
{
  in->op = op;
  in->kind = l->b->matcher.rows[op].kind;
  in->klass = l->b->matcher.rows[op].klass;
}

bool kiln__cpu_fields_of(kiln__cpu_lower *l, kiln__cpu_insn *out,
                         const char *opcode)
{
  const kiln__cpu_matches *m =
      kiln__cpu_matcher_find(&l->b->matcher, opcode, strlen(opcode));

  if (m == NULL)
    return kiln__cpu_no_memory(l);
  if (m->n == 0)
    return kiln__cpu_complain(l, l->at == NULL ? l->fn->pos : l->at->pos,
                              "the CPU device lacks %s", opcode);
  *out = m->fields;
  kiln__cpu_set_row(l, out, m->ops[0]);
  return true;
}

bool kiln__cpu_emit_local_address(kiln__cpu_lower *l, int32_t d, uint8_t bytes,
                                  int64_t offset)
{
  kiln__cpu_insn in = {KILN__NO_SLOTS, .imm = offset,
                       .type = bytes == 8 ? KILN__B64 : KILN__B32,
                       .bytes = bytes, .reg_bytes = bytes};

  in.d = d;
  kiln__cpu_set_row(l, &in, KILN__OP_mov_local);
  return kiln__cpu_emit(l, &in, true);
}

/* ---- Classes by state space ---------------------------------------------- */

static kiln__cpu_class class_of(const kiln__cpu_insn *in)
{
  static const uint8_t loads[] = {
      [KILN__SPACE_GENERIC] = KILN__CLASS_GENERIC_LOAD,
      [KILN__SPACE_GLOBAL] = KILN__CLASS_GLOBAL_LOAD,
      [KILN__SPACE_CONST] = KILN__CLASS_CONST_LOAD,
      [KILN__SPACE_SHARED] = KILN__CLASS_SHARED_LOAD,
      [KILN__SPACE_SHARED_CLUSTER] = KILN__CLASS_SHARED_LOAD,
      [KILN__SPACE_LOCAL] = KILN__CLASS_LOCAL_LOAD,
      [KILN__SPACE_PARAM] = KILN__CLASS_PARAM,
  };

  static const uint8_t stores[] = {
      [KILN__SPACE_GENERIC] = KILN__CLASS_GENERIC_STORE,
      [KILN__SPACE_GLOBAL] = KILN__CLASS_GLOBAL_STORE,
      [KILN__SPACE_SHARED] = KILN__CLASS_SHARED_STORE,
      [KILN__SPACE_SHARED_CLUSTER] = KILN__CLASS_SHARED_STORE,
      [KILN__SPACE_LOCAL] = KILN__CLASS_LOCAL_STORE,
      [KILN__SPACE_PARAM] = KILN__CLASS_GENERIC_STORE,
  };

  switch ((kiln__cpu_class)in->klass) {
  case KILN__CLASS_GLOBAL_LOAD:
  case KILN__CLASS_GENERIC_LOAD:
  case KILN__CLASS_SHARED_LOAD:
  case KILN__CLASS_LOCAL_LOAD:
  case KILN__CLASS_CONST_LOAD:
  case KILN__CLASS_PARAM:
    return in->space < sizeof loads && loads[in->space] != 0
               ? (kiln__cpu_class)loads[in->space]
               : (kiln__cpu_class)in->klass;
  case KILN__CLASS_GLOBAL_STORE:
  case KILN__CLASS_GENERIC_STORE:
  case KILN__CLASS_SHARED_STORE:
  case KILN__CLASS_LOCAL_STORE:
    return in->space < sizeof stores && stores[in->space] != 0
               ? (kiln__cpu_class)stores[in->space]
               : KILN__CLASS_GENERIC_STORE;
  default:
    return (kiln__cpu_class)in->klass;
  }
}

/* ---- Lowering one statement ---------------------------------------------- */

static bool contains(kiln__cpu_slice s, const char *text)
{
  return memmem(s.data, s.size, text, strlen(text)) != NULL;
}

bool kiln__cpu_is_local(const kiln__cpu_ptx_variable *v)
{
  return v->space == KILN__SPACE_LOCAL ||
         (v->space == KILN__SPACE_PARAM && v->number != KILN__KERNEL_PARAM);
}

/* Returns whether a .param access of the current statement accesses the stack.
 * All .param accesses do, except those to a kernel's own parameters. */
static bool param_is_local(const kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_insn *at = l->at;
  bool local = !l->fn->entry || contains(at->opcode, "::func");

  for (uint32_t i = 0; i < at->n_operands; i++) {
    const kiln__cpu_ptx_operand *o = &at->operands[i];

    if (o->kind == KILN__OPERAND_ADDRESS && o->base != NULL &&
        o->base->kind == KILN__OPERAND_SYMBOL &&
        o->base->symbol->kind == KILN__SYMBOL_VARIABLE &&
        o->base->symbol->u.variable->space == KILN__SPACE_PARAM)
      local = kiln__cpu_is_local(o->base->symbol->u.variable);
  }
  return local;
}

/* Returns the symbol that an address operand such as [symbol] or [symbol+4]
 * names. Returns NULL if the base is not a symbol. */
static const kiln__cpu_ptx_symbol *addressed(const kiln__cpu_lower *l,
                                             uint32_t i)
{
  const kiln__cpu_ptx_operand *o;

  if (i >= l->at->n_operands)
    return NULL;
  o = &l->at->operands[i];
  return o->kind == KILN__OPERAND_ADDRESS && o->base != NULL &&
                 o->base->kind == KILN__OPERAND_SYMBOL
             ? o->base->symbol
             : NULL;
}

/* Checks a load from .param. The result of a call must not be read before the
 * call. Arguments and results of calls must not be loaded under a guard. */
static bool check_load(kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_symbol *s = addressed(l, 1);
  const kiln__cpu_ptx_variable *v =
      s != NULL && s->kind == KILN__SYMBOL_VARIABLE ? s->u.variable : NULL;

  if (v == NULL || v->space != KILN__SPACE_PARAM ||
      v->number == KILN__KERNEL_PARAM || v->number == KILN__FUNCTION_PARAM)
    return true;
  if (v->number == KILN__RESULT)
    return kiln__cpu_complain(l, l->at->operands[1].pos,
                              "illegal to read the result '%.*s'",
                              KILN__SHOWN(s->name));
  return l->at->guard == NULL ||
         kiln__cpu_complain(l, l->at->pos,
                            "'%.*s' of a call is loaded without a guard",
                            KILN__SHOWN(s->name));
}

/* Checks an instruction that names a .param variable without loading or storing it.
 * Arguments and results of calls have no address. */
static bool check_named(kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_symbol *s = addressed(l, 0);
  const kiln__cpu_ptx_variable *v =
      s != NULL && s->kind == KILN__SYMBOL_VARIABLE ? s->u.variable : NULL;

  return v == NULL || v->space != KILN__SPACE_PARAM ||
         v->number == KILN__KERNEL_PARAM || v->number == KILN__FUNCTION_PARAM ||
         kiln__cpu_complain(l, l->at->operands[0].pos,
                            "the address of an argument cannot be taken");
}

/* Checks a store to .param. A function's own parameters are read-only. ptxas
 * identifies a parameter by its name, even if a call variable of the same name
 * hides it. */
static bool check_store(kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_operand *o = l->at->operands;
  const kiln__cpu_ptx_symbol *s = addressed(l, 0);
  bool formal = false;

  for (uint32_t i = 0; s != NULL && i < l->fn->n_params; i++) {
    formal |= kiln__cpu_slice_equal(l->fn->params[i]->name, s->name);
  }
  if (formal)
    return kiln__cpu_complain(l, o->pos,
                              "illegal to write to the parameter '%.*s'",
                              KILN__SHOWN(s->name));
  if (l->at->guard != NULL)
    return kiln__cpu_complain(l, o->pos,
                              "an argument is stored without a guard");
  if (l->fn->entry && (s == NULL || s->kind != KILN__SYMBOL_VARIABLE ||
                       s->u.variable->space != KILN__SPACE_PARAM))
    return kiln__cpu_complain(l, l->at->pos,
                              "a kernel's parameters cannot be written");
  return true;
}

/* Finds the rows of ops.def for the opcode of the current statement after
 * .param, .param::func or .param::entry is replaced by .local. */
static const kiln__cpu_matches *find_local(kiln__cpu_lower *l)
{
  const kiln__cpu_slice s = l->at->opcode;
  const char *at = memmem(s.data, s.size, ".param", 6);
  char text[128];
  size_t before, after, n;

  if (at == NULL || s.size + 8 > sizeof text)
    return NULL;
  before = (size_t)(at - s.data);
  after = before + 6;
  if (s.size >= after + 6 && memcmp(s.data + after, "::func", 6) == 0)
    after += 6;
  memcpy(text, s.data, before);
  memcpy(text + before, ".local", 6);
  n = before + 6;
  memcpy(text + n, s.data + after, s.size - after);
  return kiln__cpu_matcher_find(&l->b->matcher, text, n + s.size - after);
}

/* Checks the .version and .target that the opcode requires. `ptx` and `sm` are
 * the requirements of the selected row. */
static bool check_needs(kiln__cpu_lower *l, const kiln__cpu_matches *m,
                        unsigned ptx, unsigned sm)
{
  const kiln__cpu_slice s = l->at->opcode;

  ptx = m->ptx > ptx ? m->ptx : ptx;
  sm = m->sm > sm ? m->sm : sm;
  if (ptx > l->part->version)
    return kiln__cpu_complain(l, l->at->pos,
                              "'%.*s' requires .version %u.%u or later",
                              KILN__SHOWN(s), ptx / 10, ptx % 10);
  if (sm > l->part->target)
    return kiln__cpu_complain(l, l->at->pos,
                              "'%.*s' requires .target sm_%u or later",
                              KILN__SHOWN(s), sm);
  if (m->specific && l->part->target_suffix == 0)
    return kiln__cpu_complain(
        l, l->at->pos, "'%.*s' requires a target with a suffix, as sm_%ua",
        KILN__SHOWN(s), sm < 90 ? 90 : sm);
  if (m->only != 0 &&
      (l->part->target != m->only || l->part->target_suffix != 'a'))
    return kiln__cpu_complain(l, l->at->pos, "'%.*s' requires .target sm_%ua",
                              KILN__SHOWN(s), m->only);
  if (m->last_sm != 0 && l->part->target >= m->last_sm &&
      l->part->version >= m->last_ptx)
    return kiln__cpu_complain(
        l, l->at->pos, "'%.*s' without .sync does not exist from sm_%u on",
        KILN__SHOWN(s), m->last_sm);
  return true;
}

/* Finds the rows of ops.def for a .param access. st.param has no rows of its
 * own, because every store to .param accesses the stack. */
static const kiln__cpu_matches *find_param(kiln__cpu_lower *l,
                                           const kiln__cpu_matches *m)
{
  const kiln__cpu_slice s = m->opcode;
  const bool store = (m->family & KILN__FAMILY_STORE) != 0;

  if (!(store ? check_store(l) : check_load(l)) || !check_needs(l, m, 0, 0))
    return NULL;
  if (store || param_is_local(l)) {
    l->param_as_local = true;
    m = find_local(l);
  }
  if (m == NULL || m->n == 0) {
    (void)kiln__cpu_complain(l, l->at->pos, "'%.*s' cannot be used here",
                             KILN__SHOWN(s));
    return NULL;
  }
  return m;
}

static const kiln__cpu_matches *find_matches(kiln__cpu_lower *l)
{
  static const char unknown[] = "unknown instruction ";
  static const char no_matrices[] =
      "the CPU device does not run matrix and tensor instructions: ";
  const kiln__cpu_slice s = l->at->opcode;
  const kiln__cpu_matches *m =
      kiln__cpu_matcher_find(&l->b->matcher, s.data, s.size);

  l->param_as_local = false;
  if (m == NULL) {
    (void)kiln__cpu_no_memory(l);
    return NULL;
  }
  if (m->fields.space == KILN__SPACE_PARAM &&
      (m->family & (KILN__FAMILY_LOAD | KILN__FAMILY_STORE)) != 0)
    return find_param(l, m);
  if (m->n == 0) {
    (void)kiln__cpu_complain(
        l, l->at->pos, "%s'%.*s'",
        kiln__cpu_is_unsupported(s) ? no_matrices : unknown, KILN__SHOWN(s));
    return NULL;
  }
  return m->fields.space != KILN__SPACE_PARAM || check_named(l) ? m : NULL;
}

static bool check_guard(kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_symbol *guard = l->at->guard;

  if (guard == NULL)
    return true;
  if (guard->kind != KILN__SYMBOL_VARIABLE ||
      guard->u.variable->space != KILN__SPACE_REG ||
      guard->u.variable->type != KILN__PRED || guard->u.variable->vector > 1)
    return kiln__cpu_complain(l, l->at->pos,
                              "the guard '%.*s' is not a predicate register",
                              KILN__SHOWN(guard->name));
  return true;
}

/* Returns the value of `sub` for a barrier of the block: one of KILN__BAR_SYNC
 * and the constants that follow it. */
static uint8_t barrier_form(const kiln__cpu_insn *in)
{
  switch ((kiln__cpu_bool)in->boolop) {
  case KILN__BOOL_POPC:
    return 2;
  case KILN__BOOL_AND:
    return 3;
  case KILN__BOOL_OR:
    return 4;
  default:
    return in->sub; /* the modifier .arrive has set `sub` */
  }
}

/* Sets the remaining fields of the instruction, which depend on its kind. */
static bool finish(kiln__cpu_lower *l, kiln__cpu_insn *in)
{
  in->klass = (uint8_t)class_of(in);
  if (l->matches->no_result && in->d >= 0)
    return kiln__cpu_complain(l, l->at->pos, "the result of '%.*s' must be '_'",
                              KILN__SHOWN(l->at->opcode));
  switch ((kiln__cpu_kind)in->kind) {
  case KILN__KIND_BARRIER:
    in->sub = barrier_form(in);
    break;
  case KILN__KIND_CLUSTER:
    in->sub = in->op == KILN__OP_cluster_wait;
    break;
  case KILN__KIND_RETURN:
    if (l->fn->entry)
      in->kind = KILN__KIND_EXIT;
    else if (!kiln__cpu_store_results(l))
      return false;
    break;
  default:
    break;
  }
  return true;
}

static bool lower_statement(kiln__cpu_lower *l)
{
  const kiln__cpu_matches *m = check_guard(l) ? find_matches(l) : NULL;
  const kiln__cpu_row *row = NULL;
  kiln__cpu_insn in;

  if (m == NULL)
    return false;
  for (uint32_t i = 0; i < m->n && row == NULL; i++) {
    const kiln__cpu_row *r = &l->b->matcher.rows[m->ops[i]];

    in = m->fields;
    if (kiln__cpu_shapes_fit(r, &in, l->at)) {
      row = r;
      kiln__cpu_set_row(l, &in, m->ops[i]);
    }
  }
  if (row == NULL)
    return kiln__cpu_complain(l, l->at->pos,
                              "arguments mismatch for instruction '%.*s'",
                              KILN__SHOWN(l->at->opcode));
  if (!check_needs(l, m, row->ptx, row->sm))
    return false;
  l->matches = m;
  if (in.kind == KILN__KIND_CALL)
    return kiln__cpu_lower_call(l, &in);
  return kiln__cpu_bind_operands(l, row, &in) && finish(l, &in) &&
         kiln__cpu_emit(l, &in, true);
}

/* ---- Lowering one function ----------------------------------------------- */

static bool number_registers(kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_function *fn = l->fn;

  l->base = kiln__calloc(l->b->a, fn->n_registers + 1u, sizeof *l->base);
  if (l->base == NULL)
    return kiln__cpu_no_memory(l);
  for (uint32_t i = 0; i < fn->n_variables; i++) {
    const kiln__cpu_ptx_variable *v =
        fn->variables[i]->kind == KILN__SYMBOL_VARIABLE
            ? fn->variables[i]->u.variable
            : NULL;

    if (v == NULL || v->space != KILN__SPACE_REG || v->index >= fn->n_registers)
      continue;
    l->base[v->index] = l->widths.n;
    for (unsigned k = 0; k < (v->vector == 0 ? 1u : v->vector); k++) {
      if (kiln__cpu_new_register(l, kiln__cpu_ptx_type_bytes[v->type]) < 0)
        return false;
    }
  }
  return true;
}

/* Replaces the statement indices in branch targets by instruction indices. */
static void resolve_targets(kiln__cpu_lower *l)
{
  kiln__cpu_insn *insns = l->insns.data;

  for (uint32_t i = 0; i < l->insns.n; i++) {
    kiln__cpu_insn *in = &insns[i];

    if (in->kind == KILN__KIND_BRANCH)
      in->target = l->starts[in->target];
    if (in->kind == KILN__KIND_SWITCH) {
      int32_t *to = (int32_t *)(uintptr_t)in->vec;

      for (uint32_t k = 0; k < in->n_vec; k++)
        to[k] = (int32_t)l->starts[to[k]];
    }
  }
}

/* Appends a return if the last statement of the function does not end it. */
static bool close_function(kiln__cpu_lower *l)
{
  kiln__cpu_insn in;

  l->at = l->fn->n_insns == 0 ? NULL : &l->fn->insns[l->fn->n_insns - 1];
  if (!l->fn->entry && !kiln__cpu_store_results(l))
    return false;
  if (!kiln__cpu_fields_of(l, &in, l->fn->entry ? "exit" : "ret"))
    return false;
  return kiln__cpu_emit(l, &in, false);
}

/* Lowers all statements of a function. Returns false only if memory allocation
 * fails. Mistakes in the PTX source are reported as messages. */
static bool lower_statements(kiln__cpu_lower *l)
{
  const kiln__cpu_ptx_function *fn = l->fn;

  l->starts = kiln__calloc(l->b->a, fn->n_insns + 1u, sizeof *l->starts);
  if (l->starts == NULL)
    return kiln__cpu_no_memory(l);
  if (!number_registers(l))
    return false;
  if (!kiln__cpu_load_formals(l) && l->out_of_memory)
    return false;
  for (uint32_t i = 0; i < fn->n_insns; i++) {
    l->at = &fn->insns[i];
    l->starts[i] = l->insns.n;
    if (!lower_statement(l) && l->out_of_memory)
      return false;
  }
  l->starts[fn->n_insns] = l->insns.n;
  return close_function(l) || !l->out_of_memory;
}

/* Copies a dynamic array to the arena. */
static void *keep(kiln__cpu_lower *l, const kiln__cpu_array *list, size_t size)
{
  void *p = kiln__cpu_ptx_alloc(l->b->arena, (list->n + 1u) * size);

  if (p == NULL)
    l->out_of_memory = true;
  else if (list->n > 0)
    memcpy(p, list->data, list->n * size);
  return p;
}

static kiln_status finish_function(kiln__cpu_lower *l)
{
  kiln__cpu_blocks blocks = {0};
  kiln__cpu_code *code = l->code;
  kiln_status st = KILN_OK;

  resolve_targets(l);
  code->insns = keep(l, &l->insns, sizeof *code->insns);
  code->lines = keep(l, &l->lines, sizeof *code->lines);
  code->calls = keep(l, &l->calls, sizeof *code->calls);
  kiln__cpu_const *consts = keep(l, &l->consts, sizeof *consts);
  code->places = kiln__cpu_ptx_alloc(l->b->arena,
                                     (l->insns.n + 1u) * sizeof *code->places);
  if (l->out_of_memory || code->places == NULL)
    return kiln__fail_memory("instructions");
  code->n_insns = l->insns.n;
  code->n_calls = l->calls.n;
  code->consts = consts;
  code->n_consts = l->consts.n;
  KILN_TRY(kiln__cpu_blocks_make(&blocks, l->b->a, code->insns, code->n_insns));
  KILN_TRY(kiln__cpu_flow_join(&blocks, l->b->a, code->insns, code->places));
  KILN_TRY(kiln__cpu_track_registers(l->b, code, l->widths.n));
  KILN_TRY(kiln__cpu_slots_assign(l->b->a, l->b->matcher.rows, &blocks,
                                  code->insns, code->n_insns, l->widths.data,
                                  l->widths.n, consts, code->n_consts,
                                  &code->frame_bytes, &code->registers));
done:
  kiln__cpu_blocks_free(&blocks, l->b->a);
  return st;
}

static void free_lower(kiln__cpu_lower *l)
{
  const kiln_allocator *a = l->b->a;

  kiln__free(a, l->base);
  kiln__free(a, l->starts);
  kiln__free(a, l->widths.data);
  kiln__free(a, l->insns.data);
  kiln__free(a, l->lines.data);
  kiln__free(a, l->consts.data);
  kiln__free(a, l->const_hash.data);
  kiln__free(a, l->calls.data);
}

static kiln_status lower_function(kiln__cpu_build *b, uint32_t number)
{
  const uint32_t part = b->part_of[number];
  kiln__cpu_lower l = {.b = b,
                       .part = b->parts[part],
                       .file_base = b->file_base[part],
                       .messages = &b->messages[part],
                       .fn = b->functions[number],
                       .code = &b->program->functions[number]};
  const uint32_t complaints = l.messages->n;
  kiln_status st = KILN_OK;

  if (!lower_statements(&l))
    KILN_TRY(kiln__fail_memory("instructions"));
  if (l.messages->n == complaints)
    KILN_TRY(finish_function(&l));
done:
  free_lower(&l);
  return st;
}

kiln_status kiln__cpu_lower_all(kiln__cpu_build *b)
{
  kiln_status st = KILN_OK;

  for (uint32_t i = 0; i < b->program->n_functions; i++) {
    if (b->functions[i]->defined)
      KILN_TRY(lower_function(b, i));
  }
done:
  return st;
}
