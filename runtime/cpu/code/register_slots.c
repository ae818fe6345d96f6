/* register_slots.c -- assigns virtual registers to slots of the frame.
 *
 * Problem: compilers emit one PTX register per value, thousands per kernel. A
 * slot has 32 lanes and occupies 128 or 256 bytes. A frame with one slot per
 * register would therefore not fit into the CPU caches.
 *
 * Idea: linear-scan register allocation without spilling (Poletto and Sarkar
 * 1999). The live range of a register is the range of instructions, in program
 * order, that covers all instructions at which the register is live. For
 * registers that are live across block boundaries, a backward data-flow
 * analysis over bit sets computes the ranges. Live ranges are visited in order
 * of their starts. A heap returns the slots of ranges that have ended.
 *
 * Invariant: two registers share a slot only if they are never live at the same
 * time in the same thread. Lanes elsewhere in the program do not matter,
 * because a handler writes active lanes only. A lane's element of a slot
 * changes only when that lane executes. Instructions that read registers of
 * other lanes (shfl, vote) read lanes that are at the same instruction.
 *
 * This has two consequences. A guarded write keeps the old values of inactive
 * lanes, so it also counts as a read. A result may reuse the slot of an operand
 * that dies at the same instruction. This requires that the handler works lane
 * by lane on slots of the same size.
 *
 * Cost: O(n) per pass and O(n log n) for the heap. The data-flow analysis over
 * r registers that cross blocks processes O(blocks * r / 64) words per
 * iteration. */
#include "code_build.h"

#include <string.h>

/* ---- Reads and writes of an instruction ---------------------------------- */

static bool touch(kiln__cpu_touched *t, const kiln_allocator *a, int32_t *field)
{
  if (*field < 0)
    return true;
  if (t->n == t->capacity) {
    const uint32_t capacity = t->capacity * 2 + 32;
    int32_t **at = kiln__resize(a, t->at, sizeof *at * capacity);

    if (at == NULL)
      return false;
    t->at = at;
    t->capacity = capacity;
  }
  t->at[t->n++] = field;
  return true;
}

/* Records the registers in a vector operand. The array belongs to the program
 * that is being built and is const only for code that runs the program, so the
 * cast is safe here. */
static bool touch_all(kiln__cpu_touched *t, const kiln_allocator *a,
                      const int32_t *vec, uint32_t n)
{
  bool ok = true;

  for (uint32_t i = 0; i < n; i++)
    ok = ok && touch(t, a, (int32_t *)(uintptr_t)&vec[i]);
  return ok;
}

kiln_status kiln__cpu_touch(kiln__cpu_touched *out, const kiln_allocator *a,
                            const kiln__cpu_row *row, kiln__cpu_insn *in)
{
  const bool vec = in->kind != KILN__KIND_SWITCH;
  bool ok;

  out->n = 0;
  ok = touch(out, a, &in->a) && touch(out, a, &in->b) &&
       touch(out, a, &in->c) && touch(out, a, &in->e) &&
       touch(out, a, &in->guard) && touch_all(out, a, in->vec2, in->n_vec2);
  if (vec && !row->vec_written)
    ok = ok && touch_all(out, a, in->vec, in->n_vec);
  out->n_reads = out->n;
  ok = ok && touch(out, a, &in->d) && touch(out, a, &in->d2);
  if (vec && row->vec_written)
    ok = ok && touch_all(out, a, in->vec, in->n_vec);
  return ok ? KILN_OK : kiln__fail_memory("operands");
}

/* ---- Live ranges --------------------------------------------------------- */

typedef struct life {
  /* The first and the last position in a register's live range. The instruction
   * with index i reads at position 2 i and writes at position 2 i + 1. */
  uint32_t first, last;
  uint32_t reg;
} life;

typedef struct slots {
  const kiln_allocator *a;
  const kiln__cpu_row *rows;
  const kiln__cpu_blocks *b;
  kiln__cpu_insn *insns;
  const uint8_t *widths;
  uint32_t n_registers;
  /* Live ranges, one element per register. The member `first` is UINT32_MAX if
   * the register is unused. */
  life *lives;
  /* For each register: 1 + its number among the registers that are live across
   * block boundaries, or 0 if it is not one of them. */
  uint32_t *global;
  /* The registers that have a number in `global`, ordered by that number. */
  uint32_t *global_regs;
  uint32_t n_global, words;
  /* Bit sets over the registers in `global_regs`, with `words` 64-bit words per
   * block. */
  uint64_t *in, *out, *gen, *kill;
  /* For each register: 1 + the index of the last block seen that wrote it. */
  uint32_t *seen;
  kiln__cpu_touched touched;
} slots;

static bool is_register(int32_t id)
{
  return id >= 0 && (id & KILN__IS_CONST) == 0;
}

/* One use of a virtual register as an operand of an instruction. */
typedef struct use {
  const kiln__cpu_insn *in;
  uint32_t block, at, reg; /* block, instruction index and register number */
  bool reads, writes;      /* a guarded write sets reads and writes */
} use;

typedef void visitor(slots *s, const use *u);

/* Calls `visit` for each register operand of all instructions in program order.
 * For each instruction, source registers are visited before destination
 * registers. */
static kiln_status visit_all(slots *s, visitor *visit)
{
  kiln_status st = KILN_OK;

  for (uint32_t b = 0; b < s->b->n; b++) {
    for (uint32_t i = s->b->first[b]; i < s->b->first[b + 1]; i++) {
      kiln__cpu_insn *in = &s->insns[i];

      KILN_TRY(kiln__cpu_touch(&s->touched, s->a, &s->rows[in->op], in));
      for (uint32_t k = 0; k < s->touched.n; k++) {
        const int32_t id = *s->touched.at[k];
        const bool writes = k >= s->touched.n_reads;

        if (is_register(id))
          visit(s, &(use){in, b, i, (uint32_t)id, !writes || in->guard >= 0,
                          writes});
      }
    }
  }
done:
  return st;
}

static void add_global(slots *s, uint32_t reg)
{
  s->global_regs[s->n_global] = reg;
  s->global[reg] = ++s->n_global;
}

/* Numbers the registers that at least one block reads before writing. Only
 * these registers are live across block boundaries. */
static void find_global(slots *s, const use *u)
{
  if (u->reads && s->seen[u->reg] != u->block + 1 && s->global[u->reg] == 0)
    add_global(s, u->reg);
  if (u->writes)
    s->seen[u->reg] = u->block + 1;
}

static void set_bit(uint64_t *set, uint32_t i)
{
  set[i / 64] |= UINT64_C(1) << (i % 64);
}

static bool has_bit(const uint64_t *set, uint32_t i)
{
  return (set[i / 64] >> (i % 64) & 1) != 0;
}

/* Computes the data-flow sets of a block: `gen` holds the registers that the
 * block reads before writing, `kill` the registers that it writes. */
static void find_gen_kill(slots *s, const use *u)
{
  const uint32_t g = s->global[u->reg];
  uint64_t *gen = s->gen + (size_t)u->block * s->words;
  uint64_t *kill = s->kill + (size_t)u->block * s->words;

  if (g == 0)
    return;
  if (u->reads && !has_bit(kill, g - 1))
    set_bit(gen, g - 1);
  if (u->writes)
    set_bit(kill, g - 1);
}

static bool flow_block(slots *s, uint32_t b)
{
  const size_t at = (size_t)b * s->words;
  bool changed = false;

  for (uint32_t k = s->b->edges[b]; k < s->b->edges[b + 1]; k++) {
    const uint64_t *next = s->in + (size_t)s->b->to[k] * s->words;

    for (uint32_t w = 0; w < s->words; w++)
      s->out[at + w] |= next[w];
  }
  for (uint32_t w = 0; w < s->words; w++) {
    const uint64_t in = s->gen[at + w] | (s->out[at + w] & ~s->kill[at + w]);

    changed |= in != s->in[at + w];
    s->in[at + w] = in;
  }
  return changed;
}

static void extend(life *l, uint32_t at)
{
  if (l->first == UINT32_MAX) {
    l->first = at;
    l->last = at;
  }
  if (at < l->first)
    l->first = at;
  if (at > l->last)
    l->last = at;
}

static void extend_set(slots *s, const uint64_t *set, uint32_t at)
{
  for (uint32_t w = 0; w < s->words; w++) {
    for (uint64_t bits = set[w]; bits != 0; bits &= bits - 1) {
      const uint32_t g = w * 64 + (uint32_t)__builtin_ctzll(bits);

      extend(&s->lives[s->global_regs[g]], at);
    }
  }
}

/* Extends the live ranges of registers that are live at the start or end of a
 * block. */
static void extend_global(slots *s)
{
  for (uint32_t b = 0; b < s->b->n; b++) {
    const size_t at = (size_t)b * s->words;

    extend_set(s, s->in + at, 2 * s->b->first[b]);
    extend_set(s, s->out + at, 2 * s->b->first[b + 1] - 1);
  }
}

static kiln_status find_global_lives(slots *s)
{
  const size_t n = (size_t)s->b->n * ((s->n_global + 63) / 64);
  uint64_t *sets = kiln__calloc(s->a, 4 * n + 1, sizeof *sets);
  bool again = true;
  kiln_status st = KILN_OK;

  if (sets == NULL)
    return kiln__fail_memory("live registers");
  s->words = (s->n_global + 63) / 64;
  s->in = sets;
  s->out = sets + n;
  s->gen = sets + 2 * n;
  s->kill = sets + 3 * n;
  KILN_TRY(visit_all(s, find_gen_kill));
  while (again) {
    again = false;
    for (uint32_t b = s->b->n; b-- > 0;)
      again |= flow_block(s, b);
  }
  extend_global(s);
done:
  kiln__free(s->a, sets);
  return st;
}

/* Returns whether the result of an instruction may share the slot of an operand
 * that dies at the instruction. */
static bool lane_by_lane(const slots *s, const kiln__cpu_insn *in)
{
  const kiln__cpu_class klass = (kiln__cpu_class)in->klass;

  return in->kind == KILN__KIND_SIMPLE && in->n_vec == 0 && in->n_vec2 == 0 &&
         in->d2 < 0 && s->rows[in->op].n_forms != 0 &&
         (klass <= KILN__CLASS_SPECIAL);
}

static void find_local_lives(slots *s, const use *u)
{
  if (u->reads || !lane_by_lane(s, u->in))
    extend(&s->lives[u->reg], 2 * u->at);
  if (u->writes)
    extend(&s->lives[u->reg], 2 * u->at + 1);
}

/* ---- Slots --------------------------------------------------------------- */

/* Sorts registers by the start of their live ranges. It uses a counting sort,
 * because a function may have a million registers. */
static kiln_status sort_lives(slots *s, life **out, uint32_t *n)
{
  life *sorted = kiln__calloc(s->a, s->n_registers + 1u, sizeof *sorted);
  uint32_t *count =
      kiln__calloc(s->a, 2 * s->b->first[s->b->n] + 2u, sizeof *count);
  uint32_t sum = 0;

  *out = sorted;
  if (sorted == NULL || count == NULL) {
    kiln__free(s->a, count);
    return kiln__fail_memory("live registers");
  }
  for (uint32_t r = 0; r < s->n_registers; r++) {
    if (s->lives[r].first != UINT32_MAX)
      count[s->lives[r].first]++;
  }
  for (uint32_t i = 0; i <= 2 * s->b->first[s->b->n]; i++) {
    const uint32_t here = count[i];

    count[i] = sum;
    sum += here;
  }
  for (uint32_t r = 0; r < s->n_registers; r++) {
    if (s->lives[r].first != UINT32_MAX) {
      life *l = &sorted[count[s->lives[r].first]++];

      *l = s->lives[r];
      l->reg = r;
    }
  }
  *n = sum;
  kiln__free(s->a, count);
  return KILN_OK;
}

/* The live ranges that have begun, as a heap ordered by the end of the range.
 */
typedef struct heap {
  struct ending {
    uint32_t last, slot;
    uint8_t width;
  } * items;
  uint32_t n;
} heap;

static void heap_push(heap *h, struct ending e)
{
  uint32_t i = h->n++;

  while (i > 0 && h->items[(i - 1) / 2].last > e.last) {
    h->items[i] = h->items[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  h->items[i] = e;
}

static struct ending heap_pop(heap *h)
{
  const struct ending top = h->items[0], e = h->items[--h->n];
  uint32_t i = 0;

  while (2 * i + 1 < h->n) {
    uint32_t k = 2 * i + 1;

    if (k + 1 < h->n && h->items[k + 1].last < h->items[k].last)
      k++;
    if (h->items[k].last >= e.last)
      break;
    h->items[i] = h->items[k];
    i = k;
  }
  if (h->n > 0)
    h->items[i] = e;
  return top;
}

/* The pool of slots of one width: the number of slots, and a stack of the free
 * slots. */
typedef struct pool {
  uint32_t *free, n_free, n;
} pool;

static uint32_t pool_take(pool *p)
{
  return p->n_free > 0 ? p->free[--p->n_free] : p->n++;
}

static void share_slots(const slots *s, const life *sorted, uint32_t n, heap *h,
                        pool pools[2], uint32_t *slot_of, uint32_t *pressure)
{
  uint32_t alive = 0;

  *pressure = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t width = s->widths[sorted[i].reg];
    pool *p = &pools[width == 8];

    while (h->n > 0 && h->items[0].last < sorted[i].first) {
      const struct ending e = heap_pop(h);
      pool *back = &pools[e.width == 8];

      back->free[back->n_free++] = e.slot;
      alive -= e.width / 4u;
    }
    slot_of[sorted[i].reg] = pool_take(p);
    heap_push(h,
              (struct ending){sorted[i].last, slot_of[sorted[i].reg], width});
    alive += width / 4u;
    if (alive > *pressure)
      *pressure = alive;
  }
}

enum { SLOT_32 = 4 * KILN__WARP, SLOT_64 = 8 * KILN__WARP };

static int32_t byte_of(const slots *s, const pool pools[2],
                       const uint32_t *slot_of, uint32_t reg)
{
  return s->widths[reg] == 8
             ? (int32_t)(pools[0].n * SLOT_32 + slot_of[reg] * SLOT_64)
             : (int32_t)(slot_of[reg] * SLOT_32);
}

static uint32_t place_consts(kiln__cpu_const *consts, uint32_t n, uint32_t at)
{
  for (uint32_t i = 0; i < n; i++) {
    consts[i].slot = (int32_t)at;
    at += consts[i].bytes == 8 ? SLOT_64 : SLOT_32;
  }
  return at;
}

/* Marks an atom whose result no instruction reads. The live range of such a
 * result ends where it begins. */
static void mark_unused(const slots *s, kiln__cpu_insn *in, uint32_t i)
{
  if (in->klass == KILN__CLASS_ATOMIC &&
      (!is_register(in->d) || s->lives[in->d].last <= 2 * i + 1) &&
      in->n_vec == 0)
    in->flags |= KILN__UNUSED;
}

static kiln_status rewrite(slots *s, const pool pools[2],
                           const uint32_t *slot_of,
                           const kiln__cpu_const *consts)
{
  kiln_status st = KILN_OK;

  for (uint32_t i = 0; i < s->b->first[s->b->n]; i++) {
    kiln__cpu_insn *in = &s->insns[i];

    mark_unused(s, in, i);
    KILN_TRY(kiln__cpu_touch(&s->touched, s->a, &s->rows[in->op], in));
    for (uint32_t k = 0; k < s->touched.n; k++) {
      int32_t *id = s->touched.at[k];

      *id = is_register(*id) ? byte_of(s, pools, slot_of, (uint32_t)*id)
                             : consts[*id & ~KILN__IS_CONST].slot;
    }
  }
done:
  return st;
}

static kiln_status assign(slots *s, kiln__cpu_const *consts, uint32_t n_consts,
                          uint32_t *frame_bytes, uint32_t *pressure)
{
  const size_t count = s->n_registers + 1u;
  pool pools[2] = {{kiln__calloc(s->a, count, sizeof(uint32_t)), 0, 0},
                   {kiln__calloc(s->a, count, sizeof(uint32_t)), 0, 0}};
  uint32_t *slot_of = kiln__calloc(s->a, count, sizeof *slot_of);
  heap h = {kiln__calloc(s->a, count, sizeof *h.items), 0};
  life *sorted = NULL;
  uint32_t n = 0;
  kiln_status st = KILN_OK;

  if (pools[0].free == NULL || pools[1].free == NULL || slot_of == NULL ||
      h.items == NULL)
    KILN_TRY(kiln__fail_memory("slots"));
  KILN_TRY(sort_lives(s, &sorted, &n));
  share_slots(s, sorted, n, &h, pools, slot_of, pressure);
  *frame_bytes = place_consts(consts, n_consts,
                              pools[0].n * SLOT_32 + pools[1].n * SLOT_64);
  KILN_TRY(rewrite(s, pools, slot_of, consts));
done:
  kiln__free(s->a, pools[0].free);
  kiln__free(s->a, pools[1].free);
  kiln__free(s->a, slot_of);
  kiln__free(s->a, h.items);
  kiln__free(s->a, sorted);
  return st;
}

kiln_status kiln__cpu_slots_assign(const kiln_allocator *a,
                                   const kiln__cpu_row *rows,
                                   const kiln__cpu_blocks *blocks,
                                   kiln__cpu_insn *insns, uint32_t n,
                                   const uint8_t *widths, uint32_t n_registers,
                                   kiln__cpu_const *consts, uint32_t n_consts,
                                   uint32_t *frame_bytes, uint32_t *pressure)
{
  slots s = {.a = a,
             .rows = rows,
             .b = blocks,
             .insns = insns,
             .widths = widths,
             .n_registers = n_registers};
  kiln_status st = KILN_OK;

  *frame_bytes = 0;
  *pressure = 0;
  if (n == 0)
    return KILN_OK;
  s.lives = kiln__calloc(a, n_registers + 1u, sizeof *s.lives);
  s.global = kiln__calloc(a, n_registers + 1u, sizeof *s.global);
  s.global_regs = kiln__calloc(a, n_registers + 1u, sizeof *s.global_regs);
  s.seen = kiln__calloc(a, n_registers + 1u, sizeof *s.seen);
  if (s.lives == NULL || s.global == NULL || s.global_regs == NULL ||
      s.seen == NULL)
    KILN_TRY(kiln__fail_memory("live registers"));
  for (uint32_t r = 0; r < n_registers; r++)
    s.lives[r].first = UINT32_MAX;
  KILN_TRY(visit_all(&s, find_global));
  KILN_TRY(find_global_lives(&s));
  KILN_TRY(visit_all(&s, find_local_lives));
  KILN_TRY(assign(&s, consts, n_consts, frame_bytes, pressure));
done:
  kiln__free(a, s.lives);
  kiln__free(a, s.global);
  kiln__free(a, s.global_regs);
  kiln__free(a, s.seen);
  kiln__free(a, s.touched.at);
  return st;
}
