/* parse_body.c -- parses the body of a function: instructions, labels,
 * declarations, and the target lists and prototypes of indirect branches and
 * calls. Nested braces open scopes. The statements of all scopes are stored in
 * one flat list. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

void kiln__cpu_ptx_recover(kiln__cpu_parser *p)
{
  p->nesting = 0;
  p->n_operands = 0;
  p->in_vector = false;
  for (;;) {
    const int kind = p->tok.kind;

    if (kind == KILN__TOKEN_END ||
        (p->tok.first && (kind == '{' || kind == '}')))
      return;
    kiln__cpu_ptx_next(p);
    if (kind == ';')
      return;
  }
}

/* Reads the mask of the pragma "used_bytes_mask N", which says which bytes of the
 * next load the program uses. The compiler writes it before loads that also
 * cover padding. */
static void used_bytes_mask(kiln__cpu_parser *p)
{
  static const char name[] = "used_bytes_mask ";
  const size_t n = sizeof name - 1;
  const kiln__cpu_slice text = p->tok.text;
  char number[16] = "";

  if (text.size <= n || text.size - n >= sizeof number ||
      memcmp(text.data, name, n) != 0)
    return;
  memcpy(number, text.data + n, text.size - n);
  p->used_bytes = (uint32_t)strtoul(number, NULL, 0);
}

bool kiln__cpu_ptx_pragma(kiln__cpu_parser *p)
{
  do {
    if (p->tok.kind == KILN__TOKEN_STRING)
      used_bytes_mask(p);
    if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_STRING))
      return false;
  } while (kiln__cpu_ptx_accept(p, ','));
  return kiln__cpu_ptx_expect(p, ';');
}

/* Parses `proto: .callprototype (ret) _ (params) .noreturn;` from the token
 * after .callprototype. */
static bool call_prototype(kiln__cpu_parser *p, const kiln__cpu_token *label)
{
  kiln__cpu_ptx_symbol *symbol = kiln__cpu_ptx_symbol_new(
      p, label->text, label->pos, KILN__SYMBOL_PROTOTYPE);
  kiln__cpu_ptx_function *f = kiln__cpu_ptx_new(p, sizeof *f);

  if (symbol == NULL || f == NULL)
    return false;
  symbol->u.function = f;
  f->name = label->text;
  f->pos = label->pos;
  if (p->tok.kind == '(' && !kiln__cpu_ptx_params(p, KILN__PARAM_PROTOTYPE,
                                                  &f->returns, &f->n_returns))
    return false;
  if (!kiln__cpu_ptx_expect(p, '_'))
    return false;
  if (p->tok.kind == '(' &&
      !kiln__cpu_ptx_params(p, KILN__PARAM_PROTOTYPE, &f->params, &f->n_params))
    return false;
  if (f->n_params > 0)
    f->variadic = f->params[f->n_params - 1]->u.variable->flexible;
  f->noreturn = kiln__cpu_ptx_accept_word(p, ".noreturn");
  return kiln__cpu_ptx_expect(p, ';') && kiln__cpu_ptx_bind(p, symbol);
}

/* Parses one label of .branchtargets. The form `L<3>` stands for the labels L0,
 * L1 and L2. */
static bool target(kiln__cpu_parser *p, kiln__cpu_list *list,
                   kiln__cpu_list *names)
{
  const kiln__cpu_token name = p->tok;
  uint64_t count = 1;
  bool range;

  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  range = kiln__cpu_ptx_accept(p, '<');
  if (range &&
      (!kiln__cpu_ptx_number(p, &count) || !kiln__cpu_ptx_expect(p, '>')))
    return false;
  if (count > KILN__PTX_MAX_ITEMS)
    return kiln__cpu_ptx_unexpected(p, "fewer targets");
  for (uint64_t i = 0; i < count; i++) {
    kiln__cpu_token *one = kiln__cpu_ptx_new(p, sizeof *one);
    char *text =
        range ? kiln__cpu_ptx_new(p, (size_t)name.text.size + 12) : NULL;

    if (one == NULL || (range && text == NULL))
      return false;
    *one = name;
    if (range) {
      memcpy(text, name.text.data, name.text.size);
      kiln__format(text + name.text.size, 12, "%u", (unsigned)i);
      one->text = (kiln__cpu_slice){text, (uint32_t)strlen(text)};
    }
    if (!kiln__cpu_ptx_push(p, names, one) ||
        !kiln__cpu_ptx_push(p, list, NULL))
      return false;
  }
  return true;
}

/* Resolves a target of an indirect branch or call. Functions are resolved
 * immediately, labels at the end of the current function. */
static bool resolve(kiln__cpu_parser *p, kiln__cpu_ptx_symbol *symbol,
                    const kiln__cpu_list *names, bool calls)
{
  for (uint32_t i = 0; i < symbol->u.targets.n; i++) {
    const kiln__cpu_token *name = names->items[i];
    kiln__cpu_ptx_symbol **to = &symbol->u.targets.items[i];

    if (!calls) {
      if (!kiln__cpu_ptx_use_label(p, to, name->text, name->pos))
        return false;
      continue;
    }
    *to = kiln__cpu_ptx_lookup(p, name->text);
    if (*to == NULL || (*to)->kind != KILN__SYMBOL_FUNCTION)
      kiln__cpu_wrong(p, name->pos, "expected the name of a function");
  }
  return !p->no_memory;
}

/* Parses a list of targets, `ts: .branchtargets L0, L1;` or `ts: .calltargets
 * f, g;`, from the token after the keyword. */
static bool targets(kiln__cpu_parser *p, const kiln__cpu_token *label,
                    bool calls)
{
  kiln__cpu_ptx_symbol *symbol = kiln__cpu_ptx_symbol_new(
      p, label->text, label->pos, KILN__SYMBOL_TARGETS);
  kiln__cpu_list list = {0}, names = {0};
  bool ok = symbol != NULL;

  while (ok) {
    ok = target(p, &list, &names);
    if (list.n > KILN__PTX_MAX_ITEMS * 16)
      ok = kiln__cpu_ptx_unexpected(p, "fewer targets");
    if (!ok || !kiln__cpu_ptx_accept(p, ','))
      break;
  }
  ok = ok && kiln__cpu_ptx_expect(p, ';');
  if (ok) {
    symbol->u.targets.items =
        kiln__cpu_ptx_take(p, &list, 0, &symbol->u.targets.n);
    ok = !p->no_memory && resolve(p, symbol, &names, calls) &&
         kiln__cpu_ptx_bind(p, symbol);
  }
  kiln__free(p->alloc, list.items);
  kiln__free(p->alloc, names.items);
  return ok;
}

/* Parses the statement or directive that follows the label `name:`. */
static bool labelled(kiln__cpu_parser *p, const kiln__cpu_token *name)
{
  if (kiln__cpu_ptx_accept_word(p, ".callprototype"))
    return call_prototype(p, name);
  if (kiln__cpu_ptx_accept_word(p, ".branchtargets"))
    return targets(p, name, false);
  if (kiln__cpu_ptx_accept_word(p, ".calltargets"))
    return targets(p, name, true);
  return kiln__cpu_ptx_declare_label(p, name->text, name->pos);
}

/* Parses the guard `@p` or `@!p` of an instruction, and the instruction. The @
 * has already been consumed. */
static bool guarded(kiln__cpu_parser *p)
{
  const bool negated = kiln__cpu_ptx_accept(p, '!');
  const kiln__cpu_token name = p->tok;
  kiln__cpu_ptx_symbol *guard;
  kiln__cpu_token word;

  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  guard = kiln__cpu_ptx_lookup(p, name.text);
  if (p->no_memory)
    return false;
  if (guard == NULL || guard->kind != KILN__SYMBOL_VARIABLE ||
      guard->u.variable->type != KILN__PRED)
    kiln__cpu_wrong(p, name.pos, "expected a predicate register");
  word = p->tok;
  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  return kiln__cpu_ptx_instruction(p, &word, guard, negated);
}

/* Parses a statement of a function body that begins with a dot. */
static bool directive(kiln__cpu_parser *p)
{
  kiln__cpu_space space;
  bool managed = false, unified = false;

  if (kiln__cpu_ptx_accept_word(p, ".loc"))
    return kiln__cpu_ptx_loc_parse(p);
  if (kiln__cpu_ptx_accept_word(p, ".pragma"))
    return kiln__cpu_ptx_pragma(p);
  if (!kiln__cpu_ptx_attribute(p, &managed, &unified))
    return false;
  if (p->tok.kind == KILN__TOKEN_DOT &&
      kiln__cpu_ptx_space_named(p->tok.text, &space))
    return kiln__cpu_ptx_variables(p, KILN__LINK_NONE, managed, unified);
  return kiln__cpu_ptx_unexpected(p, "a statement");
}

static bool statement(kiln__cpu_parser *p)
{
  const kiln__cpu_token word = p->tok;

  if (kiln__cpu_ptx_accept(p, '@'))
    return guarded(p);
  if (word.kind == KILN__TOKEN_DOT)
    return directive(p);
  if (kiln__cpu_slice_is(word.text, "WARP_SZ") ||
      !kiln__cpu_ptx_accept(p, KILN__TOKEN_NAME))
    return kiln__cpu_ptx_unexpected(p, "a statement");
  if (kiln__cpu_ptx_accept(p, ':'))
    return labelled(p, &word);
  return kiln__cpu_ptx_instruction(p, &word, NULL, false);
}

bool kiln__cpu_ptx_body(kiln__cpu_parser *p)
{
  const uint32_t outside = p->depth;
  uint32_t open = 0;

  for (;;) {
    if (!kiln__cpu_ptx_may_continue(p))
      return false;
    if (p->tok.kind == KILN__TOKEN_END)
      return kiln__cpu_ptx_unexpected(p, "'}'");
    if (kiln__cpu_ptx_accept(p, '{')) {
      if (p->depth - outside >= KILN__PTX_MAX_DEPTH ||
          !kiln__cpu_ptx_scope_open(p))
        return kiln__cpu_ptx_unexpected(p, "fewer nested braces");
      open++;
    } else if (kiln__cpu_ptx_accept(p, '}')) {
      if (open == 0)
        return true;
      kiln__cpu_ptx_scope_close(p);
      open--;
    } else if (!statement(p)) {
      kiln__cpu_ptx_recover(p);
    }
  }
}
