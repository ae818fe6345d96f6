/* control_flow.c -- finds basic blocks and the instructions at which divergent
 * paths reconverge.
 *
 * Problem: lanes of a warp that take different sides of a branch should run
 * together again as soon as possible. Both schedulers need the reconvergence
 * point of every branch, which is called the join of the branch.
 *
 * Idea: the join is the immediate post-dominator of the branch. This is the
 * first block that lies on every path from the branch to the end of the
 * function. Post-dominators are the dominators of the reversed graph. They are
 * computed by the iterative algorithm of Cooper, Harvey and Kennedy, "A Simple,
 * Fast Dominance Algorithm" (2001).
 *
 * Paths that end in a trap, and endless loops, would move joins to the end of
 * the function although lanes rarely take such paths. Therefore, each block has
 * a rank that depends on how its best path ends. Rank 0 means that the path
 * ends in ret or exit, rank 1 that it ends in a trap, and rank 2 that it never
 * ends. An edge counts only if both of its blocks have the same rank.
 *
 * Invariant: a guarded exit or ret removes its lanes from the warp and does not
 * count as a separate path.
 *
 * In addition, every instruction receives a depth. This is the number of blocks
 * that lie on every path from the instruction to the end of the function. The
 * scheduler for independent threads prefers groups of lanes with a larger
 * depth, so that late lanes catch up before the join.
 *
 * Cost: nearly linear in the number of blocks and edges for reducible graphs.
 */
#include "code_build.h"

#include <string.h>

static bool ends_block(const kiln__cpu_insn *in)
{
  switch ((kiln__cpu_kind)in->kind) {
  case KILN__KIND_BRANCH:
  case KILN__KIND_SWITCH:
  case KILN__KIND_RETURN:
  case KILN__KIND_EXIT:
  case KILN__KIND_TRAP:
    return true;
  default:
    return false;
  }
}

/* Returns whether control may continue at the next instruction. */
static bool falls_through(const kiln__cpu_insn *in)
{
  return !ends_block(in) || in->guard >= 0;
}

static void mark_leaders(const kiln__cpu_insn *insns, uint32_t n,
                         uint8_t *leader)
{
  leader[0] = 1;
  for (uint32_t i = 0; i < n; i++) {
    const kiln__cpu_insn *in = &insns[i];

    if (in->kind == KILN__KIND_BRANCH)
      leader[in->target] = 1;
    if (in->kind == KILN__KIND_SWITCH) {
      for (uint32_t k = 0; k < in->n_vec; k++)
        leader[in->vec[k]] = 1;
    }
    if (ends_block(in) && i + 1 < n)
      leader[i + 1] = 1;
  }
}

/* Stores the successors of the block whose last instruction is `in` and returns
 * their number. If `to` is NULL, the function only counts them. */
static uint32_t successors(const kiln__cpu_insn *in, bool last,
                           const uint32_t *block_of, uint32_t index,
                           uint32_t *to)
{
  uint32_t n = 0;

  if (in->kind == KILN__KIND_BRANCH) {
    if (to != NULL)
      to[n] = block_of[in->target];
    n++;
  } else if (in->kind == KILN__KIND_SWITCH) {
    for (uint32_t k = 0; k < in->n_vec; k++, n++) {
      if (to != NULL)
        to[n] = block_of[in->vec[k]];
    }
  }
  if (falls_through(in) && !last) {
    if (to != NULL)
      to[n] = block_of[index + 1];
    n++;
  }
  return n;
}

static void make_edges(kiln__cpu_blocks *b, const kiln__cpu_insn *insns,
                       uint32_t n, const uint32_t *block_of)
{
  uint32_t at = 0;

  for (uint32_t i = 0; i < b->n; i++) {
    const uint32_t last = b->first[i + 1] - 1;

    b->edges[i] = at;
    at += successors(&insns[last], last + 1 == n, block_of, last,
                     b->to == NULL ? NULL : b->to + at);
  }
  b->edges[b->n] = at;
}

kiln_status kiln__cpu_blocks_make(kiln__cpu_blocks *out,
                                  const kiln_allocator *a,
                                  const kiln__cpu_insn *insns, uint32_t n)
{
  uint8_t *leader = kiln__calloc(a, n + 1u, 1);
  uint32_t *block_of = kiln__calloc(a, n + 1u, sizeof *block_of);
  kiln_status st = KILN_OK;

  *out = (kiln__cpu_blocks){0};
  if (leader == NULL || block_of == NULL)
    KILN_TRY(kiln__fail_memory("basic blocks"));
  if (n > 0)
    mark_leaders(insns, n, leader);
  for (uint32_t i = 0; i < n; i++) {
    out->n += leader[i];
    block_of[i] = out->n - 1;
  }
  out->first = kiln__calloc(a, out->n + 1u, sizeof *out->first);
  out->edges = kiln__calloc(a, out->n + 1u, sizeof *out->edges);
  if (out->first == NULL || out->edges == NULL)
    KILN_TRY(kiln__fail_memory("basic blocks"));
  for (uint32_t i = n; i-- > 0;)
    out->first[block_of[i]] = i;
  out->first[out->n] = n;
  make_edges(out, insns, n, block_of);
  out->to = kiln__calloc(a, out->edges[out->n] + 1u, sizeof *out->to);
  if (out->to == NULL)
    KILN_TRY(kiln__fail_memory("basic blocks"));
  make_edges(out, insns, n, block_of);

done:
  kiln__free(a, leader);
  kiln__free(a, block_of);
  if (st != KILN_OK)
    kiln__cpu_blocks_free(out, a);
  return st;
}

void kiln__cpu_blocks_free(kiln__cpu_blocks *blocks, const kiln_allocator *a)
{
  kiln__free(a, blocks->first);
  kiln__free(a, blocks->edges);
  kiln__free(a, blocks->to);
  *blocks = (kiln__cpu_blocks){0};
}

/* ---- Post-dominators ----------------------------------------------------- */

enum { RANK_END, RANK_TRAP, RANK_ENDLESS, RANK_NONE };

typedef struct flow {
  const kiln__cpu_blocks *b;
  uint32_t *in_edges, *from; /* predecessor lists of all blocks */
  uint8_t *rank;             /* how the best path from each block ends */
  uint8_t *last;             /* whether a path ends with the block */
  uint32_t *order;           /* blocks in post-order of the reversed graph */
  /* For each block: 1 + its position in `order`, or 0 if the block was not
   * reached. */
  uint32_t *number;
  /* For each block: its immediate post-dominator. The value b->n stands for the
   * end of the function. */
  uint32_t *up;
  uint32_t *stack, *next;
  uint32_t n_order;
} flow;

static void make_predecessors(flow *f)
{
  const kiln__cpu_blocks *b = f->b;

  for (uint32_t i = 0; i < b->edges[b->n]; i++)
    f->in_edges[b->to[i] + 1]++;
  for (uint32_t i = 0; i < b->n; i++)
    f->in_edges[i + 1] += f->in_edges[i];
  memcpy(f->next, f->in_edges, sizeof *f->next * b->n);
  for (uint32_t i = 0; i < b->n; i++) {
    for (uint32_t k = b->edges[i]; k < b->edges[i + 1]; k++)
      f->from[f->next[b->to[k]]++] = i;
  }
}

/* Assigns `rank` to every block from which `block` is reachable and that has no
 * rank yet. */
static void rank_from(flow *f, uint32_t block, uint8_t rank)
{
  uint32_t n = 0;

  if (f->rank[block] != RANK_NONE)
    return;
  f->rank[block] = rank;
  f->last[block] = 1;
  f->stack[n++] = block;
  while (n > 0) {
    const uint32_t at = f->stack[--n];

    for (uint32_t k = f->in_edges[at]; k < f->in_edges[at + 1]; k++) {
      if (f->rank[f->from[k]] == RANK_NONE) {
        f->rank[f->from[k]] = rank;
        f->stack[n++] = f->from[k];
      }
    }
  }
}

static void rank_blocks(flow *f, const kiln__cpu_insn *insns)
{
  const kiln__cpu_blocks *b = f->b;

  memset(f->rank, RANK_NONE, b->n);
  for (uint32_t i = 0; i < b->n; i++) {
    const kiln__cpu_insn *in = &insns[b->first[i + 1] - 1];

    if (b->edges[i] == b->edges[i + 1] && in->kind != KILN__KIND_TRAP)
      rank_from(f, i, RANK_END);
  }
  for (uint32_t i = 0; i < b->n; i++) {
    if (b->edges[i] == b->edges[i + 1])
      rank_from(f, i, RANK_TRAP);
  }
  /* The last block of an endless loop is treated as an end of the function. */
  for (uint32_t i = b->n; i-- > 0;)
    rank_from(f, i, RANK_ENDLESS);
}

/* Returns whether a control-flow edge counts for post-dominators. Both blocks
 * of the edge must have the same rank. */
static bool counts(const flow *f, uint32_t from, uint32_t to)
{
  return f->rank[from] == f->rank[to];
}

/* Visits the predecessors of `root` depth-first and lists the blocks in
 * post-order. `root` is a block that ends paths. */
static void visit(flow *f, uint32_t root)
{
  uint32_t n = 0;

  if (f->number[root] != 0)
    return;
  f->number[root] = UINT32_MAX;
  f->stack[n++] = root;
  while (n > 0) {
    const uint32_t at = f->stack[n - 1];
    bool deeper = false;

    while (f->next[at] < f->in_edges[at + 1] && !deeper) {
      const uint32_t before = f->from[f->next[at]++];

      if (f->number[before] == 0 && counts(f, before, at)) {
        f->number[before] = UINT32_MAX;
        f->stack[n++] = before;
        deeper = true;
      }
    }
    if (!deeper) {
      n--;
      f->order[f->n_order++] = at;
      f->number[at] = f->n_order;
    }
  }
}

static uint32_t height(const flow *f, uint32_t block)
{
  return block == f->b->n ? UINT32_MAX : f->number[block];
}

static uint32_t meet(const flow *f, uint32_t x, uint32_t y)
{
  while (x != y) {
    while (height(f, x) < height(f, y))
      x = f->up[x];
    while (height(f, y) < height(f, x))
      y = f->up[y];
  }
  return x;
}

static bool improve(flow *f, uint32_t block)
{
  const kiln__cpu_blocks *b = f->b;
  uint32_t best = f->last[block] ? b->n : UINT32_MAX;

  for (uint32_t k = b->edges[block]; k < b->edges[block + 1]; k++) {
    const uint32_t to = b->to[k];

    if (counts(f, block, to) && f->up[to] != UINT32_MAX)
      best = best == UINT32_MAX ? to : meet(f, best, to);
  }
  if (best == f->up[block])
    return false;
  f->up[block] = best;
  return true;
}

static void post_dominators(flow *f)
{
  bool again = true;

  memcpy(f->next, f->in_edges, sizeof *f->next * f->b->n);
  for (uint32_t i = 0; i < f->b->n; i++) {
    f->up[i] = UINT32_MAX;
    if (f->last[i])
      visit(f, i);
  }
  while (again) {
    again = false;
    for (uint32_t i = f->n_order; i-- > 0;)
      again |= improve(f, f->order[i]);
  }
}

static void set_joins(const flow *f, kiln__cpu_insn *insns)
{
  const kiln__cpu_blocks *b = f->b;

  for (uint32_t i = 0; i < b->n; i++) {
    kiln__cpu_insn *in = &insns[b->first[i + 1] - 1];

    if (in->kind != KILN__KIND_BRANCH && in->kind != KILN__KIND_SWITCH)
      continue;
    in->join = UINT32_MAX;
    if (f->up[i] < b->n && b->edges[i + 1] - b->edges[i] > 1) {
      in->join = b->first[f->up[i]];
      insns[in->join].flags |= KILN__JOIN;
    }
  }
}

/* Stores the depth of each block in the post-dominator tree in f->stack. A
 * block that precedes a join is deeper than the join. Depths on paths to a trap
 * start above all other depths, so that lanes need not wait for lanes on such
 * paths. */
static void measure(flow *f)
{
  for (uint32_t i = f->n_order; i-- > 0;) {
    const uint32_t block = f->order[i], up = f->up[block];
    const uint32_t end = f->rank[block] == RANK_TRAP ? f->b->n : 0;

    f->stack[block] = 1 + (up == f->b->n ? end : f->stack[up]);
  }
}

static void set_places(flow *f, const kiln__cpu_insn *insns,
                       kiln__cpu_place *places)
{
  const kiln__cpu_blocks *b = f->b;
  const uint32_t *const depth = f->stack;
  uint32_t *const rise = f->next;

  measure(f);
  for (uint32_t i = b->n; i-- > 0;) {
    /* Candidate for the next block in program order that has a smaller depth.
     */
    uint32_t next = i + 1;

    rise[i] = UINT32_MAX;
    if (next == b->n || !falls_through(&insns[b->first[next] - 1]))
      next = UINT32_MAX;
    while (next != UINT32_MAX && depth[next] >= depth[i])
      next = rise[next];
    rise[i] = next;
    for (uint32_t k = b->first[i]; k < b->first[i + 1]; k++)
      places[k] = (kiln__cpu_place){
          depth[i], next == UINT32_MAX ? UINT32_MAX : b->first[next]};
  }
}

kiln_status kiln__cpu_flow_join(const kiln__cpu_blocks *blocks,
                                const kiln_allocator *a, kiln__cpu_insn *insns,
                                kiln__cpu_place *places)
{
  const size_t n = blocks->n, edges = blocks->n == 0 ? 0 : blocks->edges[n];
  uint32_t *words = kiln__calloc(a, 6 * n + edges + 2, sizeof *words);
  uint8_t *bytes = kiln__calloc(a, 2 * n + 1, 1);
  flow f = {.b = blocks};
  kiln_status st = KILN_OK;

  if (words == NULL || bytes == NULL)
    KILN_TRY(kiln__fail_memory("control flow"));
  if (n > 0) {
    f.in_edges = words;
    f.order = f.in_edges + n + 1;
    f.number = f.order + n;
    f.up = f.number + n;
    f.stack = f.up + n;
    f.next = f.stack + n;
    f.from = f.next + n;
    f.rank = bytes;
    f.last = bytes + n;
    make_predecessors(&f);
    rank_blocks(&f, insns);
    post_dominators(&f);
    set_joins(&f, insns);
    set_places(&f, insns, places);
  }

done:
  kiln__free(a, words);
  kiln__free(a, bytes);
  return st;
}
