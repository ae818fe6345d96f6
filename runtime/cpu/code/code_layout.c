/* code_layout.c -- assigns offsets to parameters, local and shared variables,
 * and computes the memory that each kernel needs in total.
 *
 * Stack: a function's part of the stack holds its parameters, its results and
 * its own variables. The .param variables of calls share bytes if their live
 * ranges do not overlap. A live range extends from the first to the last
 * statement that uses the variable.
 *
 * Shared memory: several kernels may call a function that uses a shared
 * variable, but the offset of the variable is a single constant in the code.
 * Therefore, the variables that several kernels reach are placed first. Each of
 * them is placed after everything that any of its kernels has placed so far.
 * The variables of a single kernel follow. This greedy layout may leave gaps,
 * as the layout of ptxas may.
 *
 * Reach: a depth-first walk over the call graph finds the functions that each
 * kernel may run. An indirect call may reach every function whose address is
 * taken. */
#include "code_build.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_LOCAL = 512 * 1024, /* maximum stack bytes per function, as in ptxas */
  MAX_SHARED = 48 * 1024  /* maximum bytes of static shared memory per kernel */
};

static uint64_t align_up(uint64_t at, uint64_t align)
{
  return align == 0 ? at : (at + align - 1) / align * align;
}

/* ---- Parameters and local variables -------------------------------------- */

static uint64_t bytes_of(const kiln__cpu_ptx_variable *v)
{
  return v->space == KILN__SPACE_REG ? kiln__cpu_ptx_type_bytes[v->type]
                                     : v->size;
}

/* Returns the alignment of an argument in bytes. A GPU keeps arguments in
 * registers, so vector accesses to an argument are legal for any .align.
 * Arguments of at least 16 bytes are therefore aligned to 16 bytes. The driver
 * determines the layout of a kernel's own parameters. */
static uint64_t argument_align(const kiln__cpu_ptx_variable *v, uint64_t size)
{
  const uint64_t align = v->align != 0 ? v->align : size;

  return size >= 16 && align < 16 ? 16 : align;
}

static uint64_t place_list(kiln__cpu_ptx_symbol **list, uint32_t n,
                           uint32_t number, uint64_t at)
{
  for (uint32_t i = 0; i < n; i++) {
    kiln__cpu_ptx_variable *v = list[i]->u.variable;
    const uint64_t size = bytes_of(v);

    at = align_up(at, number == KILN__KERNEL_PARAM ? v->align
                                                   : argument_align(v, size));
    v->place = at;
    v->size = size;
    v->number = number;
    at += size;
  }
  return at;
}

uint64_t kiln__cpu_place_params(kiln__cpu_ptx_function *fn)
{
  const uint32_t number =
      fn->entry ? (uint32_t)KILN__KERNEL_PARAM : (uint32_t)KILN__FUNCTION_PARAM;

  return place_list(fn->returns, fn->n_returns, (uint32_t)KILN__RESULT,
                    place_list(fn->params, fn->n_params, number, 0));
}

/* The live range of a .param variable: the indices of the first and last
 * statement that use it. */
typedef struct span {
  kiln__cpu_ptx_variable *v;
  uint32_t first, last;
  bool fixed; /* the address of the variable is taken, so it shares no bytes */
} span;

typedef struct spans {
  span *items;
  uint32_t n;
} spans;

static void note(spans *s, const kiln__cpu_ptx_operand *o, uint32_t at,
                 bool taken)
{
  const kiln__cpu_ptx_variable *v;

  for (uint32_t i = 0; i < o->n_items; i++)
    note(s, &o->items[i], at, taken);
  if (o->kind == KILN__OPERAND_ADDRESS && o->base != NULL)
    note(s, o->base, at, taken);
  if (o->kind != KILN__OPERAND_SYMBOL ||
      o->symbol->kind != KILN__SYMBOL_VARIABLE)
    return;
  v = o->symbol->u.variable;
  if (v->number < s->n && s->items[v->number].v == v) {
    span *p = &s->items[v->number];

    p->first = p->first == UINT32_MAX ? at : p->first;
    p->last = at;
    p->fixed |= taken;
  }
}

static void find_spans(spans *s, const kiln__cpu_ptx_function *fn)
{
  for (uint32_t i = 0; i < fn->n_insns; i++) {
    const kiln__cpu_ptx_insn *in = &fn->insns[i];
    const bool taken =
        (kiln__cpu_family_of(in->opcode) & KILN__FAMILY_ADDRESS) != 0;

    for (uint32_t k = 0; k < in->n_operands; k++)
      note(s, &in->operands[k], i, taken);
  }
}

static int by_first(const void *x, const void *y)
{
  const span *a = x, *b = y;

  if (a->first != b->first)
    return a->first < b->first ? -1 : 1;
  return a->v->index < b->v->index ? -1 : a->v->index > b->v->index;
}

/* Assigns stack offsets to the argument variables of calls. Variables with
 * disjoint live ranges share bytes. */
static uint64_t place_spans(spans *s, uint64_t base)
{
  uint64_t at = base, top = base;
  /* Index of the last statement that uses one of the variables placed since
   * `at` was last reset to `base`. */
  uint32_t busy = 0;

  for (uint32_t i = 0; i < s->n; i++) {
    span *p = &s->items[i];

    if (p->first == UINT32_MAX || p->fixed)
      continue;
    if (p->first > busy)
      at = base;
    at = align_up(at, argument_align(p->v, p->v->size));
    p->v->place = at;
    at += p->v->size;
    busy = p->last > busy ? p->last : busy;
    top = at > top ? at : top;
  }
  return top;
}

static uint64_t place_variables(kiln__cpu_ptx_function *fn, spans *s,
                                uint64_t at)
{
  s->n = 0;
  for (uint32_t i = 0; i < fn->n_variables; i++) {
    kiln__cpu_ptx_variable *v = fn->variables[i]->kind == KILN__SYMBOL_VARIABLE
                                    ? fn->variables[i]->u.variable
                                    : NULL;

    if (v != NULL && v->space == KILN__SPACE_LOCAL) {
      at = align_up(at, v->align);
      v->place = at;
      at += v->size;
    }
    if (v != NULL && v->space == KILN__SPACE_PARAM) {
      v->number = s->n;
      v->index = s->n;
      s->items[s->n++] = (span){v, UINT32_MAX, 0, false};
    }
  }
  find_spans(s, fn);
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->items[i].fixed) {
      at = align_up(at, s->items[i].v->align);
      s->items[i].v->place = at;
      at += s->items[i].v->size;
    }
  }
  if (s->n > 1)
    qsort(s->items, s->n, sizeof *s->items, by_first);
  return place_spans(s, at);
}

static const kiln__cpu_param *
list_params(kiln__cpu_build *b, kiln__cpu_ptx_symbol **list, uint32_t n)
{
  kiln__cpu_param *p = kiln__cpu_ptx_alloc(b->arena, (n + 1u) * sizeof *p);

  for (uint32_t i = 0; p != NULL && i < n; i++) {
    const kiln__cpu_ptx_variable *v = list[i]->u.variable;
    char *name = kiln__cpu_ptx_alloc(b->arena, list[i]->name.size + 1u);

    if (name == NULL)
      return NULL;
    memcpy(name, list[i]->name.data, list[i]->name.size);
    p[i] = (kiln__cpu_param){(uint32_t)v->place, (uint32_t)v->size, v->align,
                             name};
  }
  return p;
}

kiln_status kiln__cpu_place_locals(kiln__cpu_build *b, uint32_t number)
{
  kiln__cpu_ptx_function *fn = b->functions[number];
  kiln__cpu_code *code = &b->program->functions[number];
  const uint64_t params = kiln__cpu_place_params(fn);
  spans s = {kiln__calloc(b->a, fn->n_variables + 1u, sizeof *s.items), 0};
  uint64_t bytes;
  kiln_status st = KILN_OK;

  if (s.items == NULL)
    KILN_TRY(kiln__fail_memory("local variables"));
  code->n_params = fn->n_params;
  code->n_returns = fn->n_returns;
  code->params = list_params(b, fn->params, fn->n_params);
  code->returns = list_params(b, fn->returns, fn->n_returns);
  if (code->params == NULL || code->returns == NULL)
    KILN_TRY(kiln__fail_memory("parameters"));
  code->param_bytes = (uint32_t)params;
  bytes = place_variables(fn, &s, fn->entry ? 0 : params);
  if (bytes > MAX_LOCAL || params > MAX_LOCAL) {
    kiln__cpu_ptx_complain(&b->messages[b->part_of[number]], fn->pos,
                           "'%.*s' uses too much local data (0x%llx bytes)",
                           KILN__SHOWN(fn->name), (unsigned long long)bytes);
    bytes = 0;
  }
  code->local_bytes = (uint32_t)align_up(bytes, 16);
done:
  kiln__free(b->a, s.items);
  return st;
}

/* ---- References of functions --------------------------------------------- */

typedef struct scan {
  kiln__cpu_build *b;
  kiln__cpu_array calls;  /* function numbers, of type uint32_t */
  kiln__cpu_array shared; /* elements of type kiln__cpu_ptx_variable * */
  bool failed, indirect;
} scan;

static void scan_symbol(scan *s, const kiln__cpu_ptx_symbol *symbol,
                        bool called)
{
  if (symbol->kind == KILN__SYMBOL_FUNCTION) {
    uint32_t *to = kiln__cpu_array_add(&s->calls, s->b->a, 1, sizeof *to);

    s->failed |= to == NULL;
    if (to != NULL)
      *to = symbol->u.function->number;
    if (!called)
      s->b->uses[symbol->u.function->number].address_taken = true;
  }
  if (symbol->kind == KILN__SYMBOL_VARIABLE &&
      symbol->u.variable->space == KILN__SPACE_SHARED) {
    kiln__cpu_ptx_variable **to =
        kiln__cpu_array_add(&s->shared, s->b->a, 1, sizeof(void *));

    s->failed |= to == NULL;
    if (to != NULL)
      *to = symbol->u.variable->same != NULL ? symbol->u.variable->same
                                             : symbol->u.variable;
  }
}

static void scan_operand(scan *s, const kiln__cpu_ptx_operand *o, bool call)
{
  for (uint32_t i = 0; i < o->n_items; i++)
    scan_operand(s, &o->items[i], call);
  if (o->kind == KILN__OPERAND_ADDRESS && o->base != NULL)
    scan_operand(s, o->base, call);
  if (o->kind == KILN__OPERAND_SYMBOL && o->symbol != NULL) {
    scan_symbol(s, o->symbol, call);
    if (call && o->symbol->kind == KILN__SYMBOL_VARIABLE &&
        o->symbol->u.variable->space == KILN__SPACE_REG)
      s->indirect = true;
  }
}

static bool is_grid_register(const kiln__cpu_ptx_operand *o)
{
  return o->kind == KILN__OPERAND_SPECIAL &&
         (kiln__cpu_slice_is(o->text, "envreg1") ||
          kiln__cpu_slice_is(o->text, "envreg2"));
}

static void *keep_list(kiln__cpu_build *b, const kiln__cpu_array *list,
                       size_t size)
{
  void *p = kiln__cpu_ptx_alloc(b->arena, (list->n + 1u) * size);

  if (p != NULL && list->n > 0)
    memcpy(p, list->data, list->n * size);
  return p;
}

static kiln_status scan_function(kiln__cpu_build *b, uint32_t number)
{
  const kiln__cpu_ptx_function *fn = b->functions[number];
  kiln__cpu_uses *u = &b->uses[number];
  scan s = {.b = b};

  for (uint32_t i = 0; i < fn->n_insns; i++) {
    const kiln__cpu_ptx_insn *in = &fn->insns[i];
    const bool call =
        (kiln__cpu_family_of(in->opcode) & KILN__FAMILY_CALL) != 0;

    for (uint32_t k = 0; k < in->n_operands; k++) {
      scan_operand(&s, &in->operands[k], call);
      u->grid_sync |= is_grid_register(&in->operands[k]);
    }
  }
  u->indirect = s.indirect;
  u->calls = keep_list(b, &s.calls, sizeof *u->calls);
  u->shared = keep_list(b, &s.shared, sizeof(void *));
  u->n_calls = s.calls.n;
  u->n_shared = s.shared.n;
  s.failed |= u->calls == NULL || u->shared == NULL;
  kiln__free(b->a, s.calls.data);
  kiln__free(b->a, s.shared.data);
  return s.failed ? kiln__fail_memory("the call graph") : KILN_OK;
}

kiln_status kiln__cpu_scan_uses(kiln__cpu_build *b)
{
  const uint32_t n = b->program->n_functions;
  kiln_status st = KILN_OK;

  b->uses = kiln__cpu_ptx_alloc(b->arena, (n + 1u) * sizeof *b->uses);
  if (b->uses == NULL)
    KILN_TRY(kiln__fail_memory("the call graph"));
  for (uint32_t p = 0; p < b->n_parts; p++) {
    for (uint32_t v = 0; v < b->parts[p]->n_variables; v++) {
      const kiln__cpu_ptx_variable *g = b->parts[p]->variables[v]->u.variable;

      for (uint32_t r = 0; r < g->n_relocs; r++) {
        if (g->relocs[r].symbol->kind == KILN__SYMBOL_FUNCTION)
          b->uses[g->relocs[r].symbol->u.function->number].address_taken = true;
      }
    }
  }
  for (uint32_t i = 0; i < n; i++)
    KILN_TRY(scan_function(b, i));
done:
  return st;
}

/* ---- Reachable functions ------------------------------------------------- */

/* The functions that an entry may call, directly or indirectly, including the
 * entry itself. Each function appears once. */
typedef struct reach {
  kiln__cpu_build *b;
  /* A function f is in `list` if seen[f] equals `stamp`. */
  uint32_t *list, *seen;
  uint32_t n, stamp;
  bool indirect;
} reach;

static void reach_one(reach *r, uint32_t number)
{
  if (r->seen[number] != r->stamp) {
    r->seen[number] = r->stamp;
    r->list[r->n++] = number;
  }
}

static void reach_from(reach *r, uint32_t entry)
{
  r->n = 0;
  r->stamp++;
  r->indirect = false;
  reach_one(r, entry);
  for (uint32_t i = 0; i < r->n; i++) {
    const kiln__cpu_uses *u = &r->b->uses[r->list[i]];

    for (uint32_t k = 0; k < u->n_calls; k++)
      reach_one(r, u->calls[k]);
    if (u->indirect && !r->indirect) {
      r->indirect = true;
      for (uint32_t k = 0; k < r->b->program->n_functions; k++) {
        if (r->b->uses[k].address_taken)
          reach_one(r, k);
      }
    }
  }
}

static kiln_status reach_init(reach *r, kiln__cpu_build *b)
{
  *r = (reach){.b = b};
  r->list = kiln__calloc(b->a, b->program->n_functions + 1u, sizeof *r->list);
  r->seen = kiln__calloc(b->a, b->program->n_functions + 1u, sizeof *r->seen);
  return r->list == NULL || r->seen == NULL
             ? kiln__fail_memory("the call graph")
             : KILN_OK;
}

static void reach_free(reach *r)
{
  kiln__free(r->b->a, r->list);
  kiln__free(r->b->a, r->seen);
}

/* ---- Functions that no kernel reaches ------------------------------------ */

static void keep_reached(reach *r, uint32_t from, bool *kept)
{
  reach_from(r, from);
  for (uint32_t i = 0; i < r->n; i++)
    kept[r->list[i]] = true;
}

/* Keeps what kernels reach, and what the addresses in variables refer to. */
static void keep_all(reach *r, bool *kept)
{
  const kiln__cpu_build *b = r->b;

  for (uint32_t i = 0; i < b->program->n_functions; i++) {
    if (b->functions[i]->entry)
      keep_reached(r, i, kept);
  }
  for (uint32_t p = 0; p < b->n_parts; p++) {
    for (uint32_t v = 0; v < b->parts[p]->n_variables; v++) {
      const kiln__cpu_ptx_variable *g = b->parts[p]->variables[v]->u.variable;

      for (uint32_t i = 0; i < g->n_relocs; i++) {
        if (g->relocs[i].symbol->kind == KILN__SYMBOL_FUNCTION)
          keep_reached(r, g->relocs[i].symbol->u.function->number, kept);
      }
    }
  }
}

/* Returns whether a function refers to a function that has no body. */
static bool lacks_one(const kiln__cpu_build *b, const kiln__cpu_uses *u)
{
  for (uint32_t i = 0; i < u->n_calls; i++) {
    const kiln__cpu_ptx_function *fn = b->functions[u->calls[i]];

    if (!fn->defined && kiln__cpu_system_named(fn->name) == KILN__SYSTEM_NONE)
      return true;
  }
  return false;
}

/* Removes the bodies of functions that cannot be complete. Returns whether there were
 * any; then functions that refer to them are to be removed as well. */
static bool drop_incomplete(kiln__cpu_build *b, const bool *kept)
{
  bool dropped = false;

  for (uint32_t i = 0; i < b->program->n_functions; i++) {
    if (kept[i] || !b->functions[i]->defined || !lacks_one(b, &b->uses[i]))
      continue;
    b->functions[i]->defined = b->program->functions[i].defined = false;
    b->uses[i] = (kiln__cpu_uses){.n_calls = 0};
    dropped = true;
  }
  return dropped;
}

kiln_status kiln__cpu_drop_unreached(kiln__cpu_build *b)
{
  const uint32_t n = b->program->n_functions;
  bool *kept = kiln__calloc(b->a, n + 1u, sizeof *kept);
  reach r;
  kiln_status st = reach_init(&r, b);

  if (st != KILN_OK)
    goto done;
  if (kept == NULL)
    KILN_TRY(kiln__fail_memory("the call graph"));
  keep_all(&r, kept);
  while (drop_incomplete(b, kept))
    ;
done:
  reach_free(&r);
  kiln__free(b->a, kept);
  return st;
}

/* ---- Shared memory ------------------------------------------------------- */

/* A pair of a shared variable and a kernel that reaches the variable. */
typedef struct user {
  kiln__cpu_ptx_variable *v;
  uint32_t entry;
} user;

static int by_variable(const void *x, const void *y)
{
  const user *a = x, *b = y;

  if (a->v->number != b->v->number)
    return a->v->number < b->v->number ? -1 : 1;
  return a->entry < b->entry ? -1 : a->entry > b->entry;
}

static bool is_dynamic(const kiln__cpu_ptx_variable *v)
{
  return v->flexible || v->size == 0;
}

/* Lists all pairs of a shared variable and a kernel that reaches it. Shared
 * variables are numbered from 1 in order of first use. */
static kiln_status list_users(kiln__cpu_build *b, kiln__cpu_array *users)
{
  uint32_t next = 1;
  reach r;
  kiln_status st = reach_init(&r, b);

  if (st != KILN_OK)
    goto done;
  for (uint32_t e = 0; e < b->program->n_functions; e++) {
    if (!b->functions[e]->entry)
      continue;
    reach_from(&r, e);
    for (uint32_t i = 0; i < r.n; i++) {
      const kiln__cpu_uses *u = &b->uses[r.list[i]];

      for (uint32_t k = 0; k < u->n_shared; k++) {
        user *to = kiln__cpu_array_add(users, b->a, 1, sizeof *to);

        if (to == NULL)
          KILN_TRY(kiln__fail_memory("shared variables"));
        if (u->shared[k]->number == 0)
          u->shared[k]->number = next++;
        *to = (user){u->shared[k], e};
      }
    }
  }
done:
  reach_free(&r);
  return st;
}

static void place_one(kiln__cpu_build *b, const user *u, uint32_t n)
{
  kiln__cpu_ptx_variable *v = u->v;
  uint64_t at = 0;

  for (uint32_t i = 0; i < n; i++) {
    kiln__cpu_code *code = &b->program->functions[u[i].entry];

    if (code->dynamic_align < v->align && is_dynamic(v))
      code->dynamic_align = v->align;
    if (code->static_shared > at)
      at = code->static_shared;
  }
  if (is_dynamic(v))
    return;
  at = align_up(at, v->align);
  v->place = at;
  at += v->size;
  for (uint32_t i = 0; i < n; i++)
    b->program->functions[u[i].entry].static_shared =
        (uint32_t)(at < UINT32_MAX ? at : UINT32_MAX);
}

static void check_shared(kiln__cpu_build *b)
{
  for (uint32_t e = 0; e < b->program->n_functions; e++) {
    const kiln__cpu_ptx_function *fn = b->functions[e];
    kiln__cpu_code *code = &b->program->functions[e];

    if (code->dynamic_align == 0)
      code->dynamic_align = 16;
    if (fn->entry && code->static_shared > MAX_SHARED)
      kiln__cpu_ptx_complain(
          &b->messages[b->part_of[e]], fn->pos,
          "Entry function '%.*s' uses too much shared data (0x%x bytes, "
          "0x%x max)",
          KILN__SHOWN(fn->name), code->static_shared, (unsigned)MAX_SHARED);
  }
}

kiln_status kiln__cpu_place_shared(kiln__cpu_build *b)
{
  kiln__cpu_array users = {0};
  user *all;
  uint32_t n = 0;
  kiln_status st = KILN_OK;

  KILN_TRY(list_users(b, &users));
  all = users.data;
  if (users.n > 1)
    qsort(all, users.n, sizeof *all, by_variable);
  for (uint32_t i = 0; i < users.n; i++) {
    if (n == 0 || all[n - 1].v != all[i].v || all[n - 1].entry != all[i].entry)
      all[n++] = all[i];
  }
  for (int shared_by_several = 1; shared_by_several >= 0; shared_by_several--) {
    for (uint32_t i = 0; i < n;) {
      uint32_t end = i + 1;

      while (end < n && all[end].v == all[i].v)
        end++;
      if ((end - i > 1) == (shared_by_several == 1))
        place_one(b, &all[i], end - i);
      i = end;
    }
  }
  check_shared(b);
done:
  kiln__free(b->a, users.data);
  return st;
}

/* ---- Totals per kernel --------------------------------------------------- */

/* State of the depth-first search that computes the maximum stack size of each
 * function including its callees. If the search meets a function that is still
 * on the current path, the call graph is recursive. */
typedef struct depth {
  uint64_t *bytes;
  uint8_t *state; /* 0 means not visited, 1 on the path, 2 finished */
  uint32_t *stack, *next;
  uint8_t *loops; /* whether the function or one of its callees is recursive */
} depth;

static uint64_t max64(uint64_t a, uint64_t b)
{
  return a > b ? a : b;
}

static void deepest(const kiln__cpu_build *b, depth *d, uint32_t root)
{
  uint32_t n = 0;

  if (d->state[root] != 0)
    return;
  d->stack[n++] = root;
  d->state[root] = 1;
  while (n > 0) {
    const uint32_t at = d->stack[n - 1];
    const kiln__cpu_uses *u = &b->uses[at];

    if (d->next[at] < u->n_calls) {
      const uint32_t to = u->calls[d->next[at]];

      if (d->state[to] == 0) {
        d->state[to] = 1;
        d->stack[n++] = to;
        continue;
      }
      if (d->state[to] == 1)
        d->loops[at] = 1;
      else
        d->bytes[at] = max64(d->bytes[at], d->bytes[to]);
      d->loops[at] |= d->loops[to];
      d->next[at]++;
    } else {
      d->bytes[at] += b->program->functions[at].local_bytes;
      d->state[at] = 2;
      n--;
    }
  }
}

static void barriers_of(kiln__cpu_code *to, const kiln__cpu_code *code)
{
  for (uint32_t i = 0; i < code->n_insns; i++) {
    const kiln__cpu_insn *in = &code->insns[i];
    uint32_t highest = 16;

    if (in->kind != KILN__KIND_BARRIER)
      continue;
    to->uses_barrier = true;
    for (uint32_t k = 0; k < code->n_consts; k++) {
      if (code->consts[k].slot == in->a &&
          code->consts[k].kind == KILN__CONST_VALUE)
        highest = (uint32_t)code->consts[k].value + 1;
    }
    if (highest > to->barriers)
      to->barriers = highest > 16 ? 16 : highest;
  }
}

static void sum_entry(kiln__cpu_build *b, reach *r, const depth *d,
                      uint32_t entry)
{
  kiln__cpu_code *code = &b->program->functions[entry];
  uint64_t below = d->bytes[entry];

  reach_from(r, entry);
  code->recursive = d->loops[entry] != 0 || r->indirect;
  for (uint32_t i = 0; i < r->n; i++) {
    const kiln__cpu_code *other = &b->program->functions[r->list[i]];

    if (r->indirect)
      below = max64(below, code->local_bytes + d->bytes[r->list[i]]);
    if (other->registers > code->registers)
      code->registers = other->registers;
    code->uses_grid_sync |= b->uses[r->list[i]].grid_sync;
    code->ordered |= kiln__cpu_observes_order(other);
    if (other->n_insns > 0)
      barriers_of(code, other);
  }
  code->reach_local = (uint32_t)(below < UINT32_MAX ? below : UINT32_MAX);
}

kiln_status kiln__cpu_sum_reach(kiln__cpu_build *b)
{
  const size_t n = b->program->n_functions;
  depth d = {.bytes = kiln__calloc(b->a, n + 1, sizeof *d.bytes),
             .state = kiln__calloc(b->a, n + 1, 2),
             .stack = kiln__calloc(b->a, 2 * n + 1, sizeof *d.stack)};
  reach r;
  kiln_status st = reach_init(&r, b);

  if (st != KILN_OK)
    goto done;
  if (d.bytes == NULL || d.state == NULL || d.stack == NULL)
    KILN_TRY(kiln__fail_memory("the call graph"));
  d.loops = d.state + n;
  d.next = d.stack + n;
  for (uint32_t i = 0; i < n; i++)
    deepest(b, &d, i);
  for (uint32_t i = 0; i < n; i++) {
    if (b->functions[i]->entry)
      sum_entry(b, &r, &d, i);
  }
done:
  reach_free(&r);
  kiln__free(b->a, d.bytes);
  kiln__free(b->a, d.state);
  kiln__free(b->a, d.stack);
  return st;
}
