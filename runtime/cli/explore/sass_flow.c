/* sass_flow.c -- basic blocks and natural loops of a kernel.
 *
 * Problem: show which instructions form a loop, given only machine code.
 *
 * Idea: a branch or an exit ends a block, and the target of a branch starts
 * one. Block d dominates block b if every path from the entry to b passes d. An
 * edge from t to h is a back edge if h dominates t. The natural loop of h
 * consists of h and of all blocks that reach the source of one of its back
 * edges without passing h.
 *
 * The immediate dominators are computed by iteration over the blocks in reverse
 * postorder until nothing changes (Cooper, Harvey and Kennedy 2001, "A Simple,
 * Fast Dominance Algorithm"). A virtual root, block number n, precedes the entry
 * and the functions that CALL instructions of the kernel name. Blocks that
 * cannot be reached, such as the endless branch that the assembler appends to
 * each kernel, are in no loop. A cycle that can be entered at two blocks has no
 * dominating header and is not reported as a loop.
 *
 * Cost: linear in practice. The iteration needs at most the number of blocks
 * times the depth of the loops, and each loop one pass over its blocks. */
#include "cli/explore/sass_model.h"

#include <stdlib.h>
#include <string.h>

typedef struct flow {
  cli *c;
  sass_kernel *k;
  bool *leads;        /* per instruction: starts a block */
  uint32_t *block_of; /* per instruction */
  sass_block *blocks;
  uint32_t n;
  /* Predecessors of block b: before[before_at[b]] up to before_at[b + 1]. */
  uint32_t *before_at, *before;
  bool *is_root;   /* per block: the virtual root precedes it */
  uint32_t *order; /* blocks in postorder; the virtual root is the last */
  uint32_t n_order;
  uint32_t
      *number; /* position of a block in `order`; UINT32_MAX: unreachable */
  uint32_t *dominator; /* immediate dominator; UINT32_MAX while unknown */
} flow;

/* ---- Branches ------------------------------------------------------------ */

static bool is_opcode(const char *text, const char *opcode)
{
  size_t n, plain;
  const char *at = kiln__sass_opcode(text, &n, &plain);

  return plain == strlen(opcode) && memcmp(at, opcode, plain) == 0;
}

static bool is_any(const char *text, const char *const *opcodes)
{
  while (*opcodes != NULL && !is_opcode(text, *opcodes))
    opcodes++;
  return *opcodes != NULL;
}

static bool is_branch(const char *text)
{
  static const char *const branches[] = {"BRA", "JMP", NULL};

  return is_any(text, branches);
}

/* Returns whether the instruction jumps to a register's value. nvdisasm lists
 * the possible targets in a comment. */
static bool is_indirect(const char *text)
{
  static const char *const branches[] = {"BRX", "BRXU", "JMX", "JMXU", NULL};

  return is_any(text, branches);
}

static bool is_end(const char *text)
{
  static const char *const ends[] = {"EXIT", "RET", "KILL", NULL};

  return is_any(text, ends);
}

static bool ends_block(const char *text)
{
  return is_branch(text) || is_indirect(text) || is_end(text);
}

/* Returns whether the next instruction can follow the last instruction of a
 * block: the instruction is not a jump, or it has a condition. Conditions are
 * the guard "@P0", operands before the target, as in "BRA P1, `(.L_x_4)", and
 * the modifiers DIV and CONV, which test whether the warp is divergent. */
static bool falls_through(const char *text)
{
  size_t n, plain;
  const char *opcode = kiln__sass_opcode(text, &n, &plain);
  const bool guarded = *text == '@' && strncmp(text, "@PT ", 4) != 0 &&
                       strncmp(text, "@UPT ", 5) != 0;

  if (!ends_block(text) || guarded)
    return true;
  return is_branch(text) &&
         (strchr(opcode, ',') != NULL || memmem(opcode, n, ".DIV", 4) != NULL ||
          memmem(opcode, n, ".CONV", 5) != NULL);
}

/* Returns the next target of an indirect branch in the comment
 * (*"BRANCH_TARGETS .L_x_1,.L_x_2"*), or -1 at the end of the list. *rest is
 * NULL before the first call. */
static int32_t next_indirect(const sass_kernel *k, const char *text,
                             const char **rest)
{
  static const char head[] = "BRANCH_TARGETS ";
  int32_t target = -1;

  if (*rest == NULL) {
    *rest = strstr(text, head);
    *rest = *rest == NULL ? "" : *rest + sizeof head - 1;
  }
  while (target < 0 && **rest == '.') {
    const size_t n = strcspn(*rest, ",\"");

    target = kiln__sass_label(k, *rest, n);
    *rest += n;
    *rest += **rest == ',' ? 1 : 0;
  }
  return target;
}

/* ---- Blocks -------------------------------------------------------------- */

static void mark_leaders(flow *f)
{
  const sass_kernel *k = f->k;

  f->leads[0] = true;
  for (uint32_t i = 0; i < k->n; i++) {
    const char *text = k->code[i].text, *rest = NULL;
    int32_t target = k->code[i].target;

    if (target >= 0 && (is_branch(text) || is_opcode(text, "CALL")))
      f->leads[target] = true;
    if (is_indirect(text))
      while ((target = next_indirect(k, text, &rest)) >= 0)
        f->leads[target] = true;
    if (ends_block(text) && i + 1 < k->n)
      f->leads[i + 1] = true;
  }
}

static void make_blocks(flow *f)
{
  for (uint32_t i = 0; i < f->k->n; i++)
    f->n += f->leads[i] ? 1 : 0;
  f->blocks = kiln__cli_alloc(f->c, f->n, sizeof *f->blocks);
  f->n = 0;
  for (uint32_t i = 0; i < f->k->n; i++) {
    if (f->leads[i])
      f->blocks[f->n++].first = i;
    f->blocks[f->n - 1].n++;
    f->block_of[i] = f->n - 1;
  }
}

static void add_successor(sass_block *b, uint32_t *list, uint32_t to)
{
  for (uint32_t i = 0; i < b->n_successors; i++)
    if (list[i] == to)
      return;
  list[b->n_successors++] = to;
}

/* Finds the successors of a block: the next block first, if it can follow, then
 * the targets of the last instruction. */
static void link_block(flow *f, sass_block *b)
{
  const uint32_t last = b->first + b->n - 1;
  const sass_instruction *i = &f->k->code[last];
  const char *rest = NULL;
  int32_t target;
  uint32_t most = 2;
  uint32_t *list;

  if (is_indirect(i->text))
    while (next_indirect(f->k, i->text, &rest) >= 0)
      most++;
  list = kiln__cli_alloc(f->c, most, sizeof *list);
  if (last + 1 < f->k->n && falls_through(i->text))
    add_successor(b, list, f->block_of[last + 1]);
  if (is_branch(i->text) && i->target >= 0)
    add_successor(b, list, f->block_of[i->target]);
  rest = NULL;
  if (is_indirect(i->text))
    while ((target = next_indirect(f->k, i->text, &rest)) >= 0)
      add_successor(b, list, f->block_of[target]);
  b->successors = list;
}

/* Lists the predecessors of each block. */
static void link_back(flow *f)
{
  uint32_t *at = kiln__cli_alloc(f->c, f->n + 2, sizeof *at);

  for (uint32_t b = 0; b < f->n; b++)
    for (uint32_t s = 0; s < f->blocks[b].n_successors; s++)
      at[f->blocks[b].successors[s] + 2]++;
  for (uint32_t b = 2; b < f->n + 2; b++)
    at[b] += at[b - 1];
  f->before = kiln__cli_alloc(f->c, at[f->n + 1] + 1, sizeof *f->before);
  for (uint32_t b = 0; b < f->n; b++)
    for (uint32_t s = 0; s < f->blocks[b].n_successors; s++)
      f->before[at[f->blocks[b].successors[s] + 1]++] = b;
  f->before_at = at;
}

/* ---- Dominators ---------------------------------------------------------- */

/* Appends the blocks that can be reached from `root` to the postorder. stack[]
 * and next[] are scratch memory with an element per block; next[] is 0. */
static void visit(flow *f, uint32_t root, uint32_t *stack, uint32_t *next)
{
  uint32_t depth = 0;

  if (f->number[root] != UINT32_MAX)
    return;
  f->number[root] = 0; /* seen */
  stack[depth++] = root;
  while (depth > 0) {
    const uint32_t at = stack[depth - 1];
    const sass_block *b = &f->blocks[at];

    if (next[at] < b->n_successors) {
      const uint32_t to = b->successors[next[at]++];

      if (f->number[to] == UINT32_MAX) {
        f->number[to] = 0;
        stack[depth++] = to;
      }
    } else {
      f->number[at] = f->n_order;
      f->order[f->n_order++] = at;
      depth--;
    }
  }
}

static void make_order(flow *f)
{
  uint32_t *stack = kiln__cli_alloc(f->c, f->n, sizeof *stack);
  uint32_t *next = kiln__cli_alloc(f->c, f->n, sizeof *next);

  f->is_root = kiln__cli_alloc(f->c, f->n, sizeof *f->is_root);
  f->order = kiln__cli_alloc(f->c, f->n + 1, sizeof *f->order);
  f->number = kiln__cli_alloc(f->c, f->n + 1, sizeof *f->number);
  memset(f->number, 0xff, (f->n + 1) * sizeof *f->number);
  f->is_root[0] = true;
  for (uint32_t i = 0; i < f->k->n; i++)
    if (f->k->code[i].target >= 0 && is_opcode(f->k->code[i].text, "CALL"))
      f->is_root[f->block_of[f->k->code[i].target]] = true;
  for (uint32_t b = f->n; b-- > 0;)
    if (f->is_root[b])
      visit(f, b, stack, next);
  f->number[f->n] = f->n_order;
  f->order[f->n_order++] = f->n;
}

/* Returns the closest block that dominates both a and b. */
static uint32_t meet(const flow *f, uint32_t a, uint32_t b)
{
  while (a != b) {
    while (f->number[a] < f->number[b])
      a = f->dominator[a];
    while (f->number[b] < f->number[a])
      b = f->dominator[b];
  }
  return a;
}

static uint32_t dominator_of(const flow *f, uint32_t block)
{
  uint32_t found = f->is_root[block] ? f->n : UINT32_MAX;

  for (uint32_t i = f->before_at[block]; i < f->before_at[block + 1]; i++) {
    const uint32_t p = f->before[i];

    if (f->dominator[p] != UINT32_MAX)
      found = found == UINT32_MAX ? p : meet(f, p, found);
  }
  return found;
}

static void find_dominators(flow *f)
{
  bool changed = true;

  f->dominator = kiln__cli_alloc(f->c, f->n + 1, sizeof *f->dominator);
  memset(f->dominator, 0xff, (f->n + 1) * sizeof *f->dominator);
  f->dominator[f->n] = f->n;
  while (changed) {
    changed = false;
    for (uint32_t i = f->n_order - 1; i-- > 0;) {
      const uint32_t d = dominator_of(f, f->order[i]);

      changed |= d != f->dominator[f->order[i]];
      f->dominator[f->order[i]] = d;
    }
  }
}

static bool dominates(const flow *f, uint32_t d, uint32_t block)
{
  while (block != d && block != f->n)
    block = f->dominator[block];
  return block == d;
}

/* ---- Loops --------------------------------------------------------------- */

/* The blocks of a loop while they are collected. */
typedef struct body {
  uint32_t *mark; /* per block: the stamp of the last loop that contains it */
  uint32_t stamp;
  uint32_t *work; /* blocks whose predecessors have not been added */
  uint32_t n_work;
  uint32_t n; /* number of blocks */
} body;

static void add_block(body *b, uint32_t block)
{
  if (b->mark[block] == b->stamp)
    return;
  b->mark[block] = b->stamp;
  b->work[b->n_work++] = block;
  b->n++;
}

/* Collects the blocks of the loop with this header. There are none if no back
 * edge leads to the header. */
static void collect(const flow *f, uint32_t header, body *b)
{
  for (uint32_t i = f->before_at[header]; i < f->before_at[header + 1]; i++) {
    const uint32_t p = f->before[i];

    if (f->number[p] == UINT32_MAX || !dominates(f, header, p))
      continue;
    if (b->n == 0) { /* the search ends at the header */
      b->mark[header] = b->stamp;
      b->n = 1;
    }
    add_block(b, p);
  }
  while (b->n_work > 0) {
    const uint32_t at = b->work[--b->n_work];

    for (uint32_t i = f->before_at[at]; i < f->before_at[at + 1]; i++)
      if (f->number[f->before[i]] != UINT32_MAX)
        add_block(b, f->before[i]);
  }
}

static sass_loop make_loop(const flow *f, uint32_t header, const body *b)
{
  uint32_t *blocks = kiln__cli_alloc(f->c, b->n, sizeof *blocks);
  sass_loop l = {.header = header, .n_blocks = b->n, .parent = -1};
  const sass_block *last;
  uint32_t found = 0;

  for (uint32_t i = 0; i < f->n && found < b->n; i++)
    if (b->mark[i] == b->stamp)
      blocks[found++] = i;
  last = &f->blocks[blocks[b->n - 1]];
  l.blocks = blocks;
  l.first = f->blocks[blocks[0]].first;
  l.last = last->first + last->n - 1;
  l.chain = f->k->code[f->blocks[header].first].chain;
  return l;
}

/* Sorts larger loops before smaller ones that start at the same place. */
static int by_start(const void *a, const void *b)
{
  const sass_loop *x = a, *y = b;

  if (x->first != y->first)
    return x->first < y->first ? -1 : 1;
  if (x->n_blocks != y->n_blocks)
    return x->n_blocks > y->n_blocks ? -1 : 1;
  return x->header < y->header ? -1 : x->header > y->header;
}

static bool contains(const sass_loop *l, uint32_t block)
{
  uint32_t low = 0, high = l->n_blocks;

  while (low < high) {
    const uint32_t middle = (low + high) / 2;

    if (l->blocks[middle] == block)
      return true;
    if (l->blocks[middle] < block)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

/* Finds the enclosing loop of each loop: the smallest other loop that contains
 * its header. */
static void nest(sass_loop *loops, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < n; j++) {
      const int32_t now = loops[i].parent;

      if (j != i && loops[j].n_blocks > loops[i].n_blocks &&
          contains(&loops[j], loops[i].header) &&
          (now < 0 || loops[j].n_blocks < loops[now].n_blocks))
        loops[i].parent = (int32_t)j;
    }
  }
  for (uint32_t i = 0; i < n; i++) {
    loops[i].depth = 1;
    for (int32_t p = loops[i].parent; p >= 0; p = loops[p].parent)
      loops[i].depth++;
  }
}

static void find_loops(flow *f)
{
  body b = {.mark = kiln__cli_alloc(f->c, f->n, sizeof *b.mark),
            .work = kiln__cli_alloc(f->c, f->n, sizeof *b.work)};
  sass_loop *loops = NULL;
  size_t n = 0, capacity = 0;

  for (uint32_t header = 0; header < f->n; header++) {
    b.stamp = header + 1;
    b.n = 0;
    if (f->number[header] != UINT32_MAX)
      collect(f, header, &b);
    if (b.n == 0)
      continue;
    loops = kiln__cli_grow(f->c, loops, n, &capacity, sizeof *loops);
    loops[n++] = make_loop(f, header, &b);
  }
  if (loops != NULL) {
    qsort(loops, n, sizeof *loops, by_start);
    nest(loops, (uint32_t)n);
  }
  f->k->loops = loops;
  f->k->n_loops = (uint32_t)n;
}

/* Returns the number of instructions up to the end of the last block that can be
 * reached. The assembler pads the code with an endless branch and NOPs. */
static uint32_t count_used(const flow *f)
{
  uint32_t b = f->n;

  while (b > 1 && f->number[b - 1] == UINT32_MAX)
    b--;
  return f->blocks[b - 1].first + f->blocks[b - 1].n;
}

void kiln__sass_flow(cli *c, sass_kernel *kernel)
{
  flow f = {.c = c, .k = kernel};

  if (kernel->n == 0)
    return;
  f.leads = kiln__cli_alloc(c, kernel->n, sizeof *f.leads);
  f.block_of = kiln__cli_alloc(c, kernel->n, sizeof *f.block_of);
  mark_leaders(&f);
  make_blocks(&f);
  for (uint32_t b = 0; b < f.n; b++)
    link_block(&f, &f.blocks[b]);
  link_back(&f);
  make_order(&f);
  find_dominators(&f);
  find_loops(&f);
  kernel->used = count_used(&f);
  kernel->blocks = f.blocks;
  kernel->n_blocks = f.n;
}
