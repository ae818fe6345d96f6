/* frame.c -- allocates stack frames. A frame contains the registers of one
 * function call for the lanes of a warp.
 *
 * A worker thread allocates a frame for a function and then reuses it. Calls
 * are frequent, and frames are large (128 or 256 bytes per register). Constants
 * of the code (immediates, addresses, special registers) also occupy registers.
 * These registers are written when the frame is allocated. Only the constants
 * that depend on the block or the warp are written again. */
#include "grid_job.h"

enum { ALIGN = 64 };

/* Specifies how often the value of a constant register changes. */
typedef enum when {
  ALWAYS_SAME,
  BY_WARP, /* depends on the warp and the lane */
  BY_BLOCK
} when;

static uint32_t thread_of(const kiln__cpu_warp *w, uint32_t lane, unsigned axis)
{
  const uint32_t *const dim = w->grid->block_dim;
  const uint32_t t = w->index * KILN__WARP + lane;

  return axis == 0   ? t % dim[0]
         : axis == 1 ? t / dim[0] % dim[1]
                     : t / dim[0] / dim[1];
}

/* The special registers of PTX: how often each register changes, and its value
 * in warp w of block b of grid g. AXES describes three registers, one per axis
 * i. Special registers that are not in this table are 0, such as performance
 * monitors and the size of reserved shared memory. */
/* clang-format off */
#define SPECIALS(ONE, AXES)                                                    \
  AXES(TID, BY_WARP, thread_of(w, lane, i))                                    \
  AXES(NTID, ALWAYS_SAME, g->block_dim[i])                                     \
  AXES(CTAID, BY_BLOCK, b->ctaid[i])                                           \
  AXES(NCTAID, ALWAYS_SAME, g->grid_dim[i])                                    \
  AXES(CLUSTERID, BY_BLOCK, b->ctaid[i] / g->cluster_dim[i])                   \
  AXES(NCLUSTERID, ALWAYS_SAME, g->grid_dim[i] / g->cluster_dim[i])            \
  AXES(CLUSTER_CTAID, BY_BLOCK, b->ctaid[i] % g->cluster_dim[i])               \
  AXES(CLUSTER_NCTAID, ALWAYS_SAME, g->cluster_dim[i])                         \
  ONE(CLUSTER_CTARANK, BY_BLOCK, b->cluster_rank)                              \
  ONE(CLUSTER_NCTARANK, ALWAYS_SAME, b->cluster_size)                          \
  ONE(IS_EXPLICIT_CLUSTER, ALWAYS_SAME,                                        \
      b->cluster_size > 1 || g->code->explicit_cluster)                        \
  ONE(LANEID, ALWAYS_SAME, lane)                                               \
  ONE(WARPID, BY_WARP, w->index)                                               \
  ONE(NWARPID, ALWAYS_SAME, 64)                                                \
  ONE(SMID, BY_BLOCK,                                                          \
      g->sm_count > 0 ? b->number % (uint64_t)g->sm_count : 0)                 \
  ONE(NSMID, ALWAYS_SAME, (uint64_t)(g->sm_count > 0 ? g->sm_count : 1))       \
  ONE(GRIDID, ALWAYS_SAME, g->number)                                          \
  ONE(LANEMASK_EQ, ALWAYS_SAME, UINT64_C(1) << lane)                           \
  ONE(LANEMASK_LE, ALWAYS_SAME, (UINT64_C(2) << lane) - 1)                     \
  ONE(LANEMASK_LT, ALWAYS_SAME, (UINT64_C(1) << lane) - 1)                     \
  ONE(LANEMASK_GE, ALWAYS_SAME, UINT32_MAX & ~((UINT64_C(1) << lane) - 1))     \
  ONE(LANEMASK_GT, ALWAYS_SAME, UINT32_MAX & ~((UINT64_C(2) << lane) - 1))     \
  ONE(ENVREG1, ALWAYS_SAME, g->envreg[0])                                      \
  ONE(ENVREG2, ALWAYS_SAME, g->envreg[1])                                      \
  ONE(DYNAMIC_SMEM, ALWAYS_SAME, g->dynamic_shared)                            \
  ONE(TOTAL_SMEM, ALWAYS_SAME, g->shared_size)                                 \
  ONE(AGGR_SMEM, ALWAYS_SAME, g->shared_size)
/* clang-format on */

static when changes(const kiln__cpu_const *c)
{
  if (c->kind != KILN__CONST_SPECIAL)
    return ALWAYS_SAME;
  switch ((kiln__cpu_special_register)c->value) {
#define ONE(name, changes, value)                                              \
  case KILN__SPECIAL_##name:                                                   \
    return changes;
#define AXES(name, changes, value)                                             \
  case KILN__SPECIAL_##name##_X:                                               \
  case KILN__SPECIAL_##name##_Y:                                               \
  case KILN__SPECIAL_##name##_Z:                                               \
    return changes;
    SPECIALS(ONE, AXES)
#undef ONE
#undef AXES
  default:
    return ALWAYS_SAME;
  }
}

static uint64_t special_of(const kiln__cpu_warp *w,
                           kiln__cpu_special_register which, uint32_t lane)
{
  const kiln__cpu_grid *const g = w->grid;
  const kiln__cpu_block *const b = w->block;
  unsigned i;

  switch (which) {
#define ONE(name, changes, value)                                              \
  case KILN__SPECIAL_##name:                                                   \
    return value;
#define AXES(name, changes, value)                                             \
  case KILN__SPECIAL_##name##_X:                                               \
  case KILN__SPECIAL_##name##_Y:                                               \
  case KILN__SPECIAL_##name##_Z:                                               \
    i = (unsigned)which - KILN__SPECIAL_##name##_X;                            \
    return value;
    SPECIALS(ONE, AXES)
#undef ONE
#undef AXES
  default:
    return 0;
  }
}

static bool by_lane(const kiln__cpu_const *c)
{
  return c->kind == KILN__CONST_SPECIAL &&
         (c->value <= KILN__SPECIAL_TID_Z || c->value == KILN__SPECIAL_LANEID ||
          (c->value >= KILN__SPECIAL_LANEMASK_EQ &&
           c->value <= KILN__SPECIAL_LANEMASK_GT));
}

/* Returns the address of a variable. The addresses of the kernel's own program
 * are those of the launch. */
static uint64_t variable_of(const kiln__cpu_grid *g, const kiln__cpu_program *p,
                            uint64_t number)
{
  const uint64_t *const at = p == g->program ? g->globals : p->addresses;

  return at != NULL ? at[number] : 0;
}

static uint64_t value_of(const kiln__cpu_warp *w, const kiln__cpu_program *p,
                         const kiln__cpu_const *c, uint32_t lane)
{
  const kiln__cpu_grid *const g = w->grid;

  switch (c->kind) {
  case KILN__CONST_SPECIAL:
    return special_of(w, (kiln__cpu_special_register)c->value, lane);
  case KILN__CONST_ADDRESS:
    return variable_of(g, p, c->value) + (uint64_t)c->addend;
  case KILN__CONST_FUNCTION:
    return kiln__cpu_address_of(&p->functions[c->value]) + (uint64_t)c->addend;
  case KILN__CONST_DYNAMIC:
    return g->shared_size - g->dynamic_shared + (uint64_t)c->addend;
  default:
    return c->value;
  }
}

static void fill_lanes(const kiln__cpu_warp *w, const kiln__cpu_frame *f,
                       const kiln__cpu_const *c)
{
  for (uint32_t i = 0; i < KILN__WARP; i++) {
    const uint64_t value = value_of(w, f->code->program, c, i);

    if (c->bytes == 8)
      ((uint64_t *)(void *)(f->regs + c->slot))[i] = value;
    else
      ((uint32_t *)(void *)(f->regs + c->slot))[i] = (uint32_t)value;
  }
}

static void fill(const kiln__cpu_warp *w, const kiln__cpu_frame *f,
                 const kiln__cpu_const *c)
{
  const uint64_t value = value_of(w, f->code->program, c, 0);
  uint64_t *const wide = __builtin_assume_aligned(f->regs + c->slot, ALIGN);
  uint32_t *const narrow = __builtin_assume_aligned(f->regs + c->slot, ALIGN);

  if (by_lane(c)) {
    fill_lanes(w, f, c);
  } else if (c->bytes == 8) {
    for (uint32_t i = 0; i < KILN__WARP; i++)
      wide[i] = value;
  } else {
    for (uint32_t i = 0; i < KILN__WARP; i++)
      narrow[i] = (uint32_t)value;
  }
}

static void fill_from(kiln__cpu_warp *w, kiln__cpu_frame *f, when least)
{
  const kiln__cpu_code *const code = f->code;

  for (uint32_t i = 0; i < code->n_consts; i++) {
    if (changes(&code->consts[i]) >= least)
      fill(w, f, &code->consts[i]);
  }
}

void kiln__cpu_frame_fill(kiln__cpu_warp *w, kiln__cpu_frame *f)
{
  const uint64_t block = w->block->number + 1;

  if (f->filled_block == 0)
    fill_from(w, f, ALWAYS_SAME);
  else if (f->filled_warp != w->index)
    fill_from(w, f, BY_WARP);
  else if (f->filled_block != block && f->n_changing > KILN__N_CHANGING)
    fill_from(w, f, BY_BLOCK);
  else if (f->filled_block != block)
    for (uint32_t i = 0; i < f->n_changing; i++)
      fill(w, f, &f->code->consts[f->changing[i]]);
  f->filled_block = block;
  f->filled_warp = w->index;
}

static void find_changing(kiln__cpu_frame *f)
{
  for (uint32_t i = 0; i < f->code->n_consts; i++) {
    if (changes(&f->code->consts[i]) != BY_BLOCK)
      continue;
    if (f->n_changing < KILN__N_CHANGING)
      f->changing[f->n_changing] = i;
    f->n_changing++;
  }
}

/* Finds the index of a function of another module in the worker's lists. The
 * functions of the kernel's own program have the first indices, and the
 * functions of other programs follow in the order in which the worker called
 * them. Returns false if memory is exhausted. */
static bool slot_of(kiln__cpu_worker *worker, const kiln__cpu_code *code,
                    uint32_t *slot)
{
  const kiln_allocator *const a = &worker->job->alloc;
  const uint32_t own = worker->job->grid.program->n_functions;
  const size_t n = own + worker->n_guests + 1u;
  kiln__cpu_frame **free;
  kiln__cpu_tally **tallies;
  const kiln__cpu_code **guests;

  for (uint32_t i = 0; i < worker->n_guests; i++) {
    if (worker->guests[i] == code) {
      *slot = own + i;
      return true;
    }
  }
  free = kiln__resize(a, worker->free, n * sizeof *free);
  worker->free = free != NULL ? free : worker->free;
  tallies = kiln__resize(a, worker->tallies, n * sizeof *tallies);
  worker->tallies = tallies != NULL ? tallies : worker->tallies;
  guests =
      kiln__resize(a, worker->guests, (worker->n_guests + 1u) * sizeof *guests);
  worker->guests = guests != NULL ? guests : worker->guests;
  if (free == NULL || tallies == NULL || guests == NULL)
    return false;
  *slot = own + worker->n_guests;
  free[*slot] = NULL;
  tallies[*slot] = NULL;
  guests[worker->n_guests++] = code;
  return true;
}

static kiln__cpu_frame *make(kiln__cpu_warp *w, const kiln__cpu_code *code,
                             uint32_t slot)
{
  kiln__cpu_worker *const worker = kiln__cpu_own(w->block)->worker;
  const size_t head =
      (sizeof(kiln__cpu_frame) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  uint8_t *memory =
      kiln__calloc(&worker->job->alloc, 1, head + ALIGN + code->frame_bytes);
  kiln__cpu_frame *f = (kiln__cpu_frame *)(void *)memory;

  if (memory == NULL)
    return NULL;
  f->code = code;
  f->slot = slot;
  f->regs = memory + head;
  f->regs += -(uintptr_t)f->regs & (ALIGN - 1);
  f->made = worker->made;
  worker->made = f;
  find_changing(f);
  if (worker->job->launch->watch != NULL) {
    kiln__cpu_tally **const tally = &worker->tallies[slot];

    if (*tally == NULL)
      *tally = kiln__cpu_watch_tally(worker->job->launch->watch, worker->index,
                                     code);
    f->tally = *tally;
  }
  return f;
}

kiln__cpu_frame *kiln__cpu_frame_take(kiln__cpu_warp *w,
                                      const kiln__cpu_code *code)
{
  kiln__cpu_worker *const worker = kiln__cpu_own(w->block)->worker;
  uint32_t slot = code->number;
  kiln__cpu_frame *f;

  if (code->program != w->grid->program && !slot_of(worker, code, &slot))
    return NULL;
  f = worker->free[slot];
  if (f != NULL)
    worker->free[slot] = f->next;
  else
    f = make(w, code, slot);
  if (f == NULL)
    return NULL;
  f->next = NULL;
  f->parent = NULL;
  f->call = NULL;
  f->depth = 0;
  f->local_at = 0;
  kiln__cpu_frame_fill(w, f);
  return f;
}

void kiln__cpu_frame_give(kiln__cpu_warp *w, kiln__cpu_frame *f)
{
  kiln__cpu_worker *const worker = kiln__cpu_own(w->block)->worker;

  f->next = worker->free[f->slot];
  worker->free[f->slot] = f;
}

void kiln__cpu_frames_free(kiln__cpu_worker *worker)
{
  for (kiln__cpu_frame *f = worker->made, *next; f != NULL; f = next) {
    next = f->made;
    kiln__free(&worker->job->alloc, f);
  }
  worker->made = NULL;
}
