/* parse_body.c -- the statements of a function. */
#include "parse.h"

void kiln__ptx_recover(kiln__parser *p)
{
  p->nesting = 0;
  p->n_operands = 0;
  p->in_vector = false;
  for (;;) {
    const int kind = p->tok.kind;

    if (kind == KILN__TOKEN_END ||
        (p->tok.first && (kind == '{' || kind == '}')))
      return;
    kiln__ptx_next(p);
    if (kind == ';')
      return;
  }
}

bool kiln__ptx_pragma(kiln__parser *p)
{
  do {
    if (!kiln__ptx_expect(p, KILN__TOKEN_STRING))
      return false;
  } while (kiln__ptx_accept(p, ','));
  return kiln__ptx_expect(p, ';');
}

/* `proto: .callprototype (ret) _ (params) .noreturn;` behind the word. */
static bool call_prototype(kiln__parser *p, const kiln__token *label)
{
  kiln__ptx_symbol *symbol =
      kiln__ptx_symbol_new(p, label->text, label->pos, KILN__SYMBOL_PROTOTYPE);
  kiln__ptx_function *f = kiln__ptx_new(p, sizeof *f);

  if (symbol == NULL || f == NULL)
    return false;
  symbol->u.function = f;
  f->name = label->text;
  f->pos = label->pos;
  if (p->tok.kind == '(' &&
      !kiln__ptx_params(p, KILN__PARAM_PROTOTYPE, &f->returns, &f->n_returns))
    return false;
  if (!kiln__ptx_expect(p, '_'))
    return false;
  if (p->tok.kind == '(' &&
      !kiln__ptx_params(p, KILN__PARAM_PROTOTYPE, &f->params, &f->n_params))
    return false;
  if (f->n_params > 0)
    f->variadic = f->params[f->n_params - 1]->u.variable->flexible;
  f->noreturn = kiln__ptx_accept_word(p, ".noreturn");
  return kiln__ptx_expect(p, ';') && kiln__ptx_bind(p, symbol);
}

/* One label, or `L<3>` for L0, L1, L2, as named in .branchtargets. */
static bool target(kiln__parser *p, kiln__list *list, kiln__list *names)
{
  const kiln__token name = p->tok;
  uint64_t count = 1;
  bool range;

  if (!kiln__ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  range = kiln__ptx_accept(p, '<');
  if (range && (!kiln__ptx_number(p, &count) || !kiln__ptx_expect(p, '>')))
    return false;
  if (count > KILN__PTX_MAX_ITEMS)
    return kiln__ptx_unexpected(p, "fewer targets");
  for (uint64_t i = 0; i < count; i++) {
    kiln__token *one = kiln__ptx_new(p, sizeof *one);
    char *text = range ? kiln__ptx_new(p, (size_t)name.text.size + 12) : NULL;

    if (one == NULL || (range && text == NULL))
      return false;
    *one = name;
    if (range) {
      memcpy(text, name.text.data, name.text.size);
      kiln__format(text + name.text.size, 12, "%u", (unsigned)i);
      one->text = (kiln__slice){text, (uint32_t)strlen(text)};
    }
    if (!kiln__ptx_push(p, names, one) || !kiln__ptx_push(p, list, NULL))
      return false;
  }
  return true;
}

/* Fill in the functions now and the labels when they are known. */
static bool resolve(kiln__parser *p, kiln__ptx_symbol *symbol,
                    const kiln__list *names, bool calls)
{
  for (uint32_t i = 0; i < symbol->u.targets.n; i++) {
    const kiln__token *name = names->items[i];
    kiln__ptx_symbol **to = &symbol->u.targets.items[i];

    if (!calls) {
      if (!kiln__ptx_use_label(p, to, name->text, name->pos))
        return false;
      continue;
    }
    *to = kiln__ptx_lookup(p, name->text);
    if (*to == NULL || (*to)->kind != KILN__SYMBOL_FUNCTION)
      kiln__ptx_complain(&p->messages, name->pos, "this is no function");
  }
  return !p->no_memory;
}

/* `ts: .branchtargets L0, L1;` and `.calltargets`, behind the word. */
static bool targets(kiln__parser *p, const kiln__token *label, bool calls)
{
  kiln__ptx_symbol *symbol =
      kiln__ptx_symbol_new(p, label->text, label->pos, KILN__SYMBOL_TARGETS);
  kiln__list list = {0}, names = {0};
  bool ok = symbol != NULL;

  while (ok) {
    ok = target(p, &list, &names);
    if (list.n > KILN__PTX_MAX_ITEMS * 16)
      ok = kiln__ptx_unexpected(p, "fewer targets");
    if (!ok || !kiln__ptx_accept(p, ','))
      break;
  }
  ok = ok && kiln__ptx_expect(p, ';');
  if (ok) {
    symbol->u.targets.items = kiln__ptx_take(p, &list, 0, &symbol->u.targets.n);
    ok = !p->no_memory && resolve(p, symbol, &names, calls) &&
         kiln__ptx_bind(p, symbol);
  }
  kiln__free(p->alloc, list.items);
  kiln__free(p->alloc, names.items);
  return ok;
}

/* Behind `name:`. */
static bool labelled(kiln__parser *p, const kiln__token *name)
{
  if (kiln__ptx_accept_word(p, ".callprototype"))
    return call_prototype(p, name);
  if (kiln__ptx_accept_word(p, ".branchtargets"))
    return targets(p, name, false);
  if (kiln__ptx_accept_word(p, ".calltargets"))
    return targets(p, name, true);
  return kiln__ptx_declare_label(p, name->text, name->pos);
}

/* `@p` and `@!p`, behind the mark; then the instruction. */
static bool guarded(kiln__parser *p)
{
  const bool negated = kiln__ptx_accept(p, '!');
  const kiln__token name = p->tok;
  kiln__ptx_symbol *guard;
  kiln__token word;

  if (!kiln__ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  guard = kiln__ptx_lookup(p, name.text);
  if (p->no_memory)
    return false;
  if (guard == NULL || guard->kind != KILN__SYMBOL_VARIABLE ||
      guard->u.variable->type != KILN__PRED)
    kiln__ptx_complain(&p->messages, name.pos, "a predicate is expected");
  word = p->tok;
  if (!kiln__ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  return kiln__ptx_instruction(p, &word, guard, negated);
}

/* A statement that begins with a dot. */
static bool directive(kiln__parser *p)
{
  kiln__space space;
  bool managed = false, unified = false;

  if (kiln__ptx_accept_word(p, ".loc"))
    return kiln__ptx_loc_parse(p);
  if (kiln__ptx_accept_word(p, ".pragma"))
    return kiln__ptx_pragma(p);
  if (!kiln__ptx_attribute(p, &managed, &unified))
    return false;
  if (p->tok.kind == KILN__TOKEN_DOT &&
      kiln__ptx_space_named(p->tok.text, &space))
    return kiln__ptx_variables(p, KILN__LINK_NONE, managed, unified);
  return kiln__ptx_unexpected(p, "a statement");
}

static bool statement(kiln__parser *p)
{
  const kiln__token word = p->tok;

  if (kiln__ptx_accept(p, '@'))
    return guarded(p);
  if (word.kind == KILN__TOKEN_DOT)
    return directive(p);
  if (kiln__slice_is(word.text, "WARP_SZ") ||
      !kiln__ptx_accept(p, KILN__TOKEN_NAME))
    return kiln__ptx_unexpected(p, "a statement");
  if (kiln__ptx_accept(p, ':'))
    return labelled(p, &word);
  return kiln__ptx_instruction(p, &word, NULL, false);
}

bool kiln__ptx_body(kiln__parser *p)
{
  const uint32_t outside = p->depth;
  uint32_t open = 0;

  for (;;) {
    if (!kiln__ptx_goes_on(p))
      return false;
    if (p->tok.kind == KILN__TOKEN_END)
      return kiln__ptx_unexpected(p, "'}'");
    if (kiln__ptx_accept(p, '{')) {
      if (p->depth - outside >= KILN__PTX_MAX_DEPTH || !kiln__ptx_scope_open(p))
        return kiln__ptx_unexpected(p, "fewer nested braces");
      open++;
    } else if (kiln__ptx_accept(p, '}')) {
      if (open == 0)
        return true;
      kiln__ptx_scope_close(p);
      open--;
    } else if (!statement(p)) {
      kiln__ptx_recover(p);
    }
  }
}
