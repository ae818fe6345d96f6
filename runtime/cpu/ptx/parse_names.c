/* parse_names.c -- resolves names: scopes, ranges of registers (%r<n>) and
 * labels.
 *
 * Problem: braces nest, and inner names hide outer names. A declaration such as
 * %r<100000> declares many registers, few of which are used. Labels may be used
 * before they are declared.
 *
 * Idea: one hash table holds the names of all open scopes. Nodes with equal
 * keys form a chain in which the innermost declaration comes first, so a
 * look-up takes the first match. Each scope also has a list of its own names.
 * Closing a scope removes these names from the heads of their chains.
 *
 * A range is stored once, under its prefix. A member of a range becomes a
 * symbol when it is first used. The table of members is emptied after each
 * function, so that it stays in the processor's cache. Label uses are collected and resolved at the
 * end of the function. The key of a label includes the number of its scope.
 *
 * Cost: constant expected time per name, and memory proportional to the size of
 * the source. */
#include "parse.h"

/* Kinds of names in the table `names`. Labels and members of register ranges
 * are stored in separate tables. */
enum { ID_NAME = 1, ID_RANGE = 2 };
/* Flags in the keys of the table `labels`, combined with the scope number.
 * ID_USED means that a branch in the scope uses the name. ID_HIDDEN means that
 * the scope later declared something other than a label with that name. */
#define ID_USED (UINT64_C(1) << 32)
#define ID_HIDDEN (UINT64_C(1) << 33)

static uint64_t hash_of(kiln__cpu_slice name, uint64_t id)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325) ^ id;

  for (uint32_t i = 0; i < name.size; i++)
    h = (h ^ (unsigned char)name.data[i]) * UINT64_C(0x100000001b3);
  h ^= h >> 32;
  h *= UINT64_C(0x9e3779b97f4a7c15);
  return h ^ (h >> 29);
}

static bool matches(const kiln__cpu_node *n, kiln__cpu_slice name, uint64_t id,
                    uint64_t hash)
{
  return n->hash == hash && n->id == id && kiln__cpu_slice_equal(n->name, name);
}

static kiln__cpu_node *find(const kiln__cpu_table *t, kiln__cpu_slice name,
                            uint64_t id)
{
  const uint64_t hash = hash_of(name, id);
  kiln__cpu_node *n;

  if (t->n_buckets == 0)
    return NULL;
  n = t->buckets[hash & (t->n_buckets - 1)];
  while (n != NULL && !matches(n, name, id, hash))
    n = n->chain;
  return n;
}

/* Returns the next older node with the same key in the chain of a hash
 * bucket. */
static kiln__cpu_node *find_next(const kiln__cpu_node *from)
{
  kiln__cpu_node *n = from->chain;

  while (n != NULL && !matches(n, from->name, from->id, from->hash))
    n = n->chain;
  return n;
}

/* Doubles the number of buckets. Chains keep their order, because the order
 * determines which declaration hides another. */
static bool widen(kiln__cpu_parser *p, kiln__cpu_table *t)
{
  const uint32_t n = t->n_buckets == 0 ? 256 : t->n_buckets * 2;
  kiln__cpu_node **buckets;

  if (n < t->n_buckets || n > UINT32_MAX / 4) {
    p->no_memory = true;
    return false;
  }
  buckets = kiln__calloc(p->alloc, n, sizeof(kiln__cpu_node *));
  if (buckets == NULL) {
    p->no_memory = true;
    return false;
  }
  for (uint32_t i = 0; i < t->n_buckets; i++) {
    kiln__cpu_node **low = &buckets[i], **high = &buckets[i + t->n_buckets];

    for (kiln__cpu_node *node = t->buckets[i]; node != NULL;
         node = node->chain) {
      kiln__cpu_node ***tail = (node->hash & t->n_buckets) != 0 ? &high : &low;

      **tail = node;
      *tail = &node->chain;
    }
    *low = NULL;
    *high = NULL;
  }
  kiln__free(p->alloc, t->buckets);
  t->buckets = buckets;
  t->n_buckets = n;
  return true;
}

static kiln__cpu_node *insert(kiln__cpu_parser *p, kiln__cpu_table *t,
                              kiln__cpu_slice name, uint64_t id)
{
  kiln__cpu_node *node, **bucket;

  if (t->n >= t->n_buckets && !widen(p, t))
    return NULL;
  node = kiln__cpu_ptx_new(p, sizeof *node);
  if (node == NULL)
    return NULL;
  node->hash = hash_of(name, id);
  node->id = id;
  node->name = name;
  node->depth = p->depth;
  bucket = &t->buckets[node->hash & (t->n_buckets - 1)];
  node->chain = *bucket;
  *bucket = node;
  t->n++;
  return node;
}

/* Inserts a node for the name and adds it to the list of the innermost scope.
 */
static kiln__cpu_node *insert_here(kiln__cpu_parser *p, kiln__cpu_slice name,
                                   uint64_t id)
{
  kiln__cpu_scope *scope = &p->scopes[p->depth];
  kiln__cpu_node *node = insert(p, &p->names, name, id);

  if (node != NULL) {
    node->before = scope->names;
    scope->names = node;
  }
  return node;
}

bool kiln__cpu_ptx_scope_open(kiln__cpu_parser *p)
{
  const uint32_t number = p->next_scope++;

  if (p->depth + 1 >= sizeof p->scopes / sizeof *p->scopes)
    return kiln__cpu_wrong(p, p->tok.pos,
                           "braces are nested more than 128 levels deep");
  if (!kiln__cpu_ptx_grow(p, &p->scope_parent, number - p->first_scope,
                          &p->scope_parent_capacity, sizeof *p->scope_parent))
    return false;
  p->scope_parent[number - p->first_scope] = p->scopes[p->depth].number;
  p->depth++;
  p->scopes[p->depth] = (kiln__cpu_scope){.number = number};
  return true;
}

void kiln__cpu_ptx_scope_close(kiln__cpu_parser *p)
{
  for (kiln__cpu_node *n = p->scopes[p->depth].names; n != NULL;
       n = n->before) {
    p->names.buckets[n->hash & (p->names.n_buckets - 1)] = n->chain;
    p->names.n--;
  }
  p->depth--;
}

/* ---- Ranges of registers ------------------------------------------------- */

/* Returns the symbol of member `number` of a range. Creates the symbol on first
 * use. */
static kiln__cpu_ptx_symbol *member(kiln__cpu_parser *p,
                                    const kiln__cpu_node *range,
                                    kiln__cpu_slice name, uint32_t number)
{
  const uint64_t id = (uint64_t)range->number << 32 | number;
  const kiln__cpu_slice none = {"", 0};
  kiln__cpu_node *node = find(&p->members, none, id);
  kiln__cpu_ptx_variable *v;
  kiln__cpu_ptx_symbol *symbol;

  if (node != NULL)
    return node->symbol;
  node = insert(p, &p->members, none, id);
  symbol = kiln__cpu_ptx_symbol_new(p, name, range->pos, KILN__SYMBOL_VARIABLE);
  v = kiln__cpu_ptx_new(p, sizeof *v);
  if (node == NULL || symbol == NULL || v == NULL ||
      !kiln__cpu_ptx_push(p, &p->variables, symbol))
    return NULL;
  *v = *range->pattern;
  v->index = p->function != NULL ? p->function->n_registers++ : 0;
  symbol->u.variable = v;
  node->symbol = symbol;
  return symbol;
}

void kiln__cpu_ptx_drop_members(kiln__cpu_parser *p)
{
  if (p->scopes[0].ranges)
    return; /* other functions may use the same members */
  kiln__free(p->alloc, p->members.buckets);
  p->members = (kiln__cpu_table){0};
}

/* Finds the innermost range that has `name` as a member. Only scopes of depth
 * `depth` or deeper are searched. */
static const kiln__cpu_node *find_range(const kiln__cpu_parser *p,
                                        kiln__cpu_slice name, uint32_t depth,
                                        uint32_t *number)
{
  const kiln__cpu_node *best = NULL;
  uint64_t value = 0, scale = 1;

  for (uint32_t k = name.size; k > 1; k--) {
    const char c = name.data[k - 1];
    const kiln__cpu_slice prefix = {name.data, k - 1};
    const kiln__cpu_node *node;

    if (c < '0' || c > '9' || name.size - k > 12)
      break;
    value += (uint64_t)(c - '0') * scale;
    scale *= 10;
    node = find(&p->names, prefix, ID_RANGE);
    /* A range of registers hides the members that it declares itself. Other
     * members of an outer range with the same prefix stay visible. */
    while (node != NULL && value >= node->count)
      node = find_next(node);
    if (node != NULL && node->depth >= depth &&
        (best == NULL || node->depth > best->depth)) {
      best = node;
      *number = (uint32_t)value;
    }
  }
  return best;
}

static bool ranges_from(const kiln__cpu_parser *p, uint32_t depth)
{
  for (uint32_t d = p->depth; d >= depth; d--) {
    if (p->scopes[d].ranges)
      return true;
    if (d == 0)
      break;
  }
  return false;
}

kiln__cpu_ptx_symbol *kiln__cpu_ptx_lookup(kiln__cpu_parser *p,
                                           kiln__cpu_slice name)
{
  const kiln__cpu_node *exact = find(&p->names, name, ID_NAME), *range;
  const uint32_t depth = exact == NULL ? 0 : exact->depth + 1;
  uint32_t number = 0;

  if (depth > p->depth || !ranges_from(p, depth))
    return exact == NULL ? NULL : exact->symbol;
  range = find_range(p, name, depth, &number);
  if (range != NULL)
    return member(p, range, name, number);
  return exact == NULL ? NULL : exact->symbol;
}

kiln__cpu_ptx_symbol *kiln__cpu_ptx_lookup_here(kiln__cpu_parser *p,
                                                kiln__cpu_slice name)
{
  const kiln__cpu_node *exact = find(&p->names, name, ID_NAME);

  return exact != NULL && exact->depth == p->depth ? exact->symbol : NULL;
}

/* ---- Declarations -------------------------------------------------------- */

static bool taken(kiln__cpu_parser *p, kiln__cpu_slice name)
{
  const kiln__cpu_node *exact = find(&p->names, name, ID_NAME);
  uint32_t number;

  return (exact != NULL && exact->depth == p->depth) ||
         find(&p->labels, name, p->scopes[p->depth].number) != NULL ||
         (p->scopes[p->depth].ranges &&
          find_range(p, name, p->depth, &number) != NULL);
}

static void complain_taken(kiln__cpu_parser *p, kiln__cpu_slice name,
                           kiln__cpu_ptx_pos pos)
{
  kiln__cpu_wrong(p, pos, "'%.*s' is declared twice", KILN__SHOWN(name));
}

kiln__cpu_ptx_symbol *kiln__cpu_ptx_symbol_new(kiln__cpu_parser *p,
                                               kiln__cpu_slice name,
                                               kiln__cpu_ptx_pos pos,
                                               kiln__cpu_symbol_kind kind)
{
  kiln__cpu_ptx_symbol *symbol = kiln__cpu_ptx_new(p, sizeof *symbol);

  if (symbol != NULL)
    *symbol = (kiln__cpu_ptx_symbol){.name = name, .kind = kind, .pos = pos};
  return symbol;
}

bool kiln__cpu_ptx_bind(kiln__cpu_parser *p, kiln__cpu_ptx_symbol *symbol)
{
  kiln__cpu_node *node;

  if (taken(p, symbol->name)) {
    complain_taken(p, symbol->name, symbol->pos);
    return true;
  }
  node = insert_here(p, symbol->name, ID_NAME);
  if (node == NULL)
    return false;
  node->symbol = symbol;
  return find(&p->labels, symbol->name, ID_USED) == NULL ||
         insert(p, &p->labels, symbol->name,
                ID_HIDDEN | p->scopes[p->depth].number) != NULL;
}

/* Returns whether `name` is one of the names prefix0, prefix1, ...,
 * prefix(count - 1). */
static bool is_member(kiln__cpu_slice name, kiln__cpu_slice prefix,
                      uint32_t count)
{
  uint64_t value = 0;

  if (name.size <= prefix.size || name.size - prefix.size > 12 ||
      memcmp(name.data, prefix.data, prefix.size) != 0)
    return false;
  for (uint32_t i = prefix.size; i < name.size; i++) {
    if (name.data[i] < '0' || name.data[i] > '9')
      return false;
    value = value * 10 + (uint64_t)(name.data[i] - '0');
  }
  return value < count;
}

/* Returns whether the innermost scope already declares a name of the register
 * range. For a short range, every member is looked up. For a long range, which
 * is rare, the declared names of the scope are checked instead. */
static bool range_taken(kiln__cpu_parser *p, kiln__cpu_slice prefix,
                        uint32_t count)
{
  enum { SHORT = 256, LONGEST = 4096 };
  const kiln__cpu_node *same = find(&p->names, prefix, ID_RANGE);
  char text[LONGEST + 12];

  if (same != NULL && same->depth == p->depth)
    return true;
  if (count > SHORT || prefix.size > LONGEST) {
    for (const kiln__cpu_node *n = p->scopes[p->depth].names; n != NULL;
         n = n->before) {
      if (n->id == ID_NAME && is_member(n->name, prefix, count))
        return true;
    }
    return false;
  }
  memcpy(text, prefix.data, prefix.size);
  for (uint32_t i = 0; i < count; i++) {
    kiln__format(text + prefix.size, 12, "%u", i);
    if (taken(p, (kiln__cpu_slice){text, (uint32_t)strlen(text)}))
      return true;
  }
  return false;
}

bool kiln__cpu_ptx_declare_range(kiln__cpu_parser *p, kiln__cpu_slice prefix,
                                 kiln__cpu_ptx_pos pos, uint32_t count,
                                 const kiln__cpu_ptx_variable *pattern)
{
  kiln__cpu_node *node;

  if (range_taken(p, prefix, count)) {
    complain_taken(p, prefix, pos);
    return true;
  }
  node = insert_here(p, prefix, ID_RANGE);
  if (node == NULL)
    return false;
  node->pattern = kiln__cpu_ptx_new(p, sizeof *node->pattern);
  if (node->pattern == NULL)
    return false;
  *node->pattern = *pattern;
  node->pos = pos;
  node->count = count;
  node->number = p->next_range++;
  p->scopes[p->depth].ranges = true;
  return true;
}

/* ---- Labels -------------------------------------------------------------- */

bool kiln__cpu_ptx_declare_label(kiln__cpu_parser *p, kiln__cpu_slice name,
                                 kiln__cpu_ptx_pos pos)
{
  const uint64_t id = p->scopes[p->depth].number;
  kiln__cpu_ptx_symbol *symbol;
  kiln__cpu_node *node;

  if (kiln__cpu_ptx_lookup_here(p, name) != NULL ||
      find(&p->labels, name, id) != NULL) {
    complain_taken(p, name, pos);
    return true;
  }
  node = insert(p, &p->labels, name, id);
  symbol = kiln__cpu_ptx_symbol_new(p, name, pos, KILN__SYMBOL_LABEL);
  if (node == NULL || symbol == NULL)
    return false;
  symbol->u.label = p->function->n_insns;
  node->symbol = symbol;
  return kiln__cpu_ptx_push(p, &p->function_labels, symbol);
}

/* Returns whether the innermost declaration of the name is not a label. */
static bool is_hidden(kiln__cpu_parser *p, kiln__cpu_slice name)
{
  const kiln__cpu_node *exact = find(&p->names, name, ID_NAME), *range = NULL;
  uint32_t depth = exact == NULL ? 0 : exact->depth, number;

  if (ranges_from(p, depth))
    range = find_range(p, name, depth, &number);
  if (exact == NULL && range == NULL)
    return false;
  depth = range == NULL ? depth : range->depth;
  for (uint32_t d = p->depth; d > depth; d--) {
    if (find(&p->labels, name, p->scopes[d].number) != NULL)
      return false;
  }
  return true;
}

static void complain_label(kiln__cpu_parser *p, kiln__cpu_slice name,
                           kiln__cpu_ptx_pos pos, const char *what)
{
  kiln__cpu_wrong(p, pos, "%s '%.*s'", what, KILN__SHOWN(name));
}

bool kiln__cpu_ptx_use_label(kiln__cpu_parser *p, kiln__cpu_ptx_symbol **to,
                             kiln__cpu_slice name, kiln__cpu_ptx_pos pos)
{
  if (is_hidden(p, name)) {
    complain_label(p, name, pos, "a label is expected, no");
    return true;
  }
  if (find(&p->labels, name, ID_USED) == NULL &&
      insert(p, &p->labels, name, ID_USED) == NULL)
    return false;
  if (!kiln__cpu_ptx_grow(p, &p->uses, p->n_uses, &p->uses_capacity,
                          sizeof *p->uses))
    return false;
  p->uses[p->n_uses++] =
      (kiln__cpu_label_use){to, name, pos, p->scopes[p->depth].number};
  return true;
}

/* Returns the label with the given name in the innermost scope that encloses
 * the use. Returns NULL if a declaration in a scope between the use and the
 * label hides the label. */
static kiln__cpu_ptx_symbol *find_label(const kiln__cpu_parser *p,
                                        const kiln__cpu_label_use *use)
{
  uint32_t scope = use->scope;

  for (;;) {
    const kiln__cpu_node *node = find(&p->labels, use->name, scope);

    if (node != NULL)
      return node->symbol;
    if (scope <= p->first_scope ||
        find(&p->labels, use->name, ID_HIDDEN | scope) != NULL)
      return NULL;
    scope = p->scope_parent[scope - p->first_scope];
  }
}

void kiln__cpu_ptx_resolve_labels(kiln__cpu_parser *p)
{
  for (uint32_t i = 0; i < p->n_uses; i++) {
    const kiln__cpu_label_use *use = &p->uses[i];

    *use->to = find_label(p, use);
    if (*use->to == NULL)
      complain_label(p, use->name, use->pos, "there is no label");
  }
  p->n_uses = 0;
}

bool kiln__cpu_ptx_mark(kiln__cpu_parser *p, kiln__cpu_slice name, uint64_t id,
                        bool *was)
{
  *was = find(&p->marks, name, id) != NULL;
  return *was || insert(p, &p->marks, name, id) != NULL;
}

bool kiln__cpu_ptx_is_marked(const kiln__cpu_parser *p, kiln__cpu_slice name,
                             uint64_t id)
{
  return find(&p->marks, name, id) != NULL;
}

uint64_t *kiln__cpu_ptx_mark_value(const kiln__cpu_parser *p,
                                   kiln__cpu_slice name, uint64_t id)
{
  kiln__cpu_node *node = find(&p->marks, name, id);

  return node == NULL ? NULL : &node->value;
}

void kiln__cpu_ptx_names_free(kiln__cpu_parser *p)
{
  kiln__free(p->alloc, p->names.buckets);
  kiln__free(p->alloc, p->labels.buckets);
  kiln__free(p->alloc, p->members.buckets);
  kiln__free(p->alloc, p->marks.buckets);
  kiln__free(p->alloc, p->scope_parent);
  kiln__free(p->alloc, p->uses);
}
