/* world.h -- a test environment for single instructions: a warp, all the memory
 * that it can access, and a model of this memory.
 * A test runs an instruction and applies the expected effect to the model.
 * world_compare() then compares every byte of memory and every register with
 * the model. */
#ifndef KILN_TEST_CPU_WORLD_H
#define KILN_TEST_CPU_WORLD_H

#include "cpu_handler.h"

#include "cpu/exec/schedule.h"
#include "cpu/memory/address_space.h"
#include "cpu/memory/pending_copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  WORLD_RANGES = 6,
  /* The sizes are odd, so an access may begin inside and end outside. */
  WORLD_SHARED = 2037,
  WORLD_STACK = 253, /* stack size in bytes per lane */
  /* distance in bytes between the stacks of consecutive lanes */
  WORLD_STRIDE = 272,
  WORLD_PARAMS = 93,
  WORLD_FRAME = 48 * 256,
  WORLD_CONST = 4 /* index of the memory range that holds constants */
};

typedef struct world {
  test_allocator memory;
  kiln__cpu_memory *map;
  kiln__cpu_range range[WORLD_RANGES];
  uint8_t *model[WORLD_RANGES]; /* expected contents of the memory ranges */
  _Alignas(64) uint8_t shared[2048], other[2048];
  uint8_t shared_model[2048], other_model[2048];
  _Alignas(64) uint8_t stack[32 * WORLD_STRIDE];
  uint8_t stack_model[32 * WORLD_STRIDE];
  _Alignas(64) uint8_t params[96];
  _Alignas(64) uint8_t frame[WORLD_FRAME];
  uint8_t frame_model[WORLD_FRAME];
  kiln__cpu_tally tally[4];
  kiln__cpu_code code;
  kiln__cpu_frame call;
  kiln__cpu_schedule schedule;
  kiln__cpu_grid grid;
  kiln__cpu_block block, neighbour;
  kiln__cpu_block *cluster[2];
  kiln__cpu_warp warp;
  /* true if the cluster has one block, so that no address refers to another
   * block */
  bool alone;
  uint64_t seed;
} world;

/* Replaces kiln__cpu_fault() in tests that are not linked with runtime/cpu/run.
 * It has the same effect. */
__attribute__((weak)) void kiln__cpu_fault(kiln__cpu_warp *w,
                                           const kiln__cpu_insn *in,
                                           kiln__cpu_fault_kind kind, int lane,
                                           uint64_t address, uint32_t bytes)
{
  kiln__cpu_fault_info *f = &w->grid->fault;

  w->fault = true;
  if (f->kind != KILN__FAULT_NONE)
    return;
  f->kind = kind;
  f->insn = in->index;
  f->thread[0] = lane >= 0 ? (uint32_t)lane : (uint32_t)__builtin_ctz(w->mask);
  f->address = address;
  f->bytes = bytes;
}

static inline void world_fill(world *w, uint8_t *to, uint8_t *model, size_t n)
{
  for (size_t i = 0; i < n; i += 8) {
    const uint64_t x = test_random(&w->seed);

    memcpy(to + i, &x, n - i < 8 ? n - i : 8);
  }
  if (model != NULL)
    memcpy(model, to, n);
}

static inline void world_make(world *w)
{
  static const uint64_t size[WORLD_RANGES] = {4096, 1000, 33, 8192, 512, 70000};

  memset(w, 0, sizeof *w);
  w->seed = 88172645463325252u;
  test_allocator_init(&w->memory);
  ck_kiln_ok(kiln__cpu_memory_create(&w->map, &w->memory.alloc));
  for (int i = 0; i < WORLD_RANGES; i++) {
    w->range[i] = (kiln__cpu_range){.kind = i == WORLD_CONST ? KILN__RANGE_CONST
                                            : i == 3         ? KILN__RANGE_HOST
                                                     : KILN__RANGE_DEVICE};
    ck_kiln_ok(kiln__cpu_memory_add(w->map, &w->range[i], size[i], 0));
    w->model[i] = malloc(size[i]);
    ck_assert_ptr_nonnull(w->model[i]);
    world_fill(w, w->range[i].host, w->model[i], size[i]);
  }
  world_fill(w, w->shared, w->shared_model, sizeof w->shared);
  world_fill(w, w->other, w->other_model, sizeof w->other);
  world_fill(w, w->stack, w->stack_model, sizeof w->stack);
  world_fill(w, w->params, NULL, sizeof w->params);

  w->code.param_bytes = WORLD_PARAMS;
  w->call.code = &w->code;
  w->schedule.frame = &w->call;
  w->schedule.stack = w->stack;
  pthread_mutex_init(&w->grid.lock, NULL);
  w->grid.code = &w->code;
  w->grid.memory = w->map;
  w->grid.params = w->params;
  w->grid.alloc = w->memory.alloc;
  for (int i = 0; i < 3; i++)
    w->grid.block_dim[i] = w->grid.grid_dim[i] = 1;
  w->grid.block_dim[0] = 32;
  w->cluster[0] = &w->block;
  w->cluster[1] = &w->neighbour;
  w->block = (kiln__cpu_block){.grid = &w->grid,
                               .shared = w->shared,
                               .shared_size = WORLD_SHARED,
                               .n_warps = 1,
                               .n_threads = 32,
                               .warps = &w->warp,
                               .cluster = w->cluster,
                               .cluster_size = 2};
  w->neighbour = w->block;
  w->neighbour.shared = w->other;
  w->neighbour.cluster_rank = 1;
  w->warp.regs = w->frame;
  w->warp.local_at = 48;
  w->warp.local = w->stack + 48;
  w->warp.local_stride = WORLD_STRIDE;
  w->warp.local_size = WORLD_STACK;
  w->warp.live = UINT32_MAX;
  w->warp.block = &w->block;
  w->warp.grid = &w->grid;
  w->warp.tally = w->tally;
  w->warp.schedule = &w->schedule;
}

static inline void world_free(world *w)
{
  kiln__cpu_copies_free(w->warp.copies);
  kiln__cpu_memory_free(w->map);
  for (int i = 0; i < WORLD_RANGES; i++)
    free(w->model[i]);
  pthread_mutex_destroy(&w->grid.lock);
  ck_assert_int_eq(w->memory.live, 0);
}

static inline void world_mask(world *w, uint32_t mask)
{
  w->warp.mask = mask;
  w->warp.full = mask == UINT32_MAX;
  for (int i = 0; i < 32; i++)
    w->warp.lane[i] = (mask >> i & 1) != 0 ? UINT32_MAX : 0;
}

/* ---- Registers of the tested warp (256 bytes per slot) ------------------- */

static inline int32_t world_slot(unsigned n)
{
  return (int32_t)(n * 256);
}

static inline void world_put(world *w, int32_t slot, unsigned bytes,
                             unsigned lane, uint64_t x)
{
  const uint32_t narrow = (uint32_t)(bytes == 2 ? x & 0xffff : x);

  if (bytes == 8)
    memcpy(w->frame + slot + 8 * lane, &x, 8);
  else
    memcpy(w->frame + slot + 4 * lane, &narrow, 4);
}

static inline uint64_t world_read(const uint8_t *frame, int32_t slot,
                                  unsigned bytes, unsigned lane)
{
  uint64_t x;
  uint32_t narrow;

  if (bytes == 8) {
    memcpy(&x, frame + slot + 8 * lane, 8);
    return x;
  }
  memcpy(&narrow, frame + slot + 4 * lane, 4);
  return narrow;
}

static inline void world_expect(world *w, int32_t slot, unsigned bytes,
                                unsigned lane, uint64_t x)
{
  const uint32_t narrow = (uint32_t)(bytes == 2 ? x & 0xffff : x);

  if (bytes == 8)
    memcpy(w->frame_model + slot + 8 * lane, &x, 8);
  else
    memcpy(w->frame_model + slot + 4 * lane, &narrow, 4);
}

/* ---- Memory, accessed byte by byte --------------------------------------- */

/* Returns the state space to which an address refers. Generic addresses are
 * resolved. */
static inline kiln__cpu_space world_space(kiln__cpu_space space,
                                          uint64_t *address)
{
  static const struct {
    uint64_t base;
    kiln__cpu_space space;
  } windows[] = {{KILN__WINDOW_SHARED, KILN__SPACE_SHARED},
                 {KILN__WINDOW_LOCAL, KILN__SPACE_LOCAL},
                 {KILN__WINDOW_PARAM, KILN__SPACE_PARAM}};

  if (space == KILN__SPACE_CONST)
    return KILN__SPACE_GLOBAL;
  if (space == KILN__SPACE_SHARED_CLUSTER)
    return KILN__SPACE_SHARED;
  if (space != KILN__SPACE_GENERIC)
    return space;
  for (int i = 0; i < 3; i++) {
    if (*address >= windows[i].base &&
        *address < windows[i].base + KILN__WINDOW_BYTES) {
      *address -= windows[i].base;
      return windows[i].space;
    }
  }
  return KILN__SPACE_GLOBAL;
}

/* Returns a pointer to one byte of the model, or NULL if no byte has this
 * address. */
static inline uint8_t *world_byte(world *w, kiln__cpu_space space,
                                  unsigned lane, uint64_t address)
{
  switch (world_space(space, &address)) {
  case KILN__SPACE_SHARED:
    if (address < sizeof w->shared_model)
      return w->shared_model + address;
    if ((address & 0xffffff) >= sizeof w->shared_model)
      return NULL;
    if (address >> 24 == 1)
      return w->shared_model + (address & 0xffffff);
    if (!w->alone && address >> 24 == 2)
      return w->other_model + (address & 0xffffff);
    return NULL;
  case KILN__SPACE_LOCAL:
    return address < WORLD_STACK
               ? w->stack_model + lane * WORLD_STRIDE + address
               : NULL;
  case KILN__SPACE_PARAM:
    return address < WORLD_PARAMS ? w->params + address : NULL;
  default:
    for (int i = 0; i < WORLD_RANGES; i++) {
      if (address >= w->range[i].first && address < w->range[i].last)
        return w->model[i] + (address - w->range[i].first);
    }
    return NULL;
  }
}

/* Reads a little-endian value of `bytes` bytes from the model. */
static inline uint64_t world_get(world *w, kiln__cpu_space space, unsigned lane,
                                 uint64_t address, unsigned bytes)
{
  uint64_t x = 0;

  for (unsigned k = 0; k < bytes; k++)
    x |= (uint64_t)*world_byte(w, space, lane, address + k) << (8 * k);
  return x;
}

static inline void world_set(world *w, kiln__cpu_space space, unsigned lane,
                             uint64_t address, unsigned bytes, uint64_t x)
{
  for (unsigned k = 0; k < bytes; k++)
    *world_byte(w, space, lane, address + k) = (uint8_t)(x >> (8 * k));
}

/* Returns whether a byte is behind the end of shared memory. The model has some
 * of these bytes, since a vector of 16 bytes needs to begin inside only. */
static inline bool world_past_shared(kiln__cpu_space space, uint64_t address)
{
  return world_space(space, &address) == KILN__SPACE_SHARED &&
         (address & 0xffffff) >= WORLD_SHARED;
}

static inline bool world_holds(world *w, kiln__cpu_space space, unsigned lane,
                               uint64_t address, unsigned bytes)
{
  for (unsigned k = 0; k < bytes; k++) {
    if (world_byte(w, space, lane, address + k) == NULL ||
        ((bytes != 16 || k == 0) && world_past_shared(space, address + k)))
      return false;
  }
  return true;
}

/* Returns the fault that the instruction should cause. *lane receives the
 * number of the first faulting lane. */
static inline kiln__cpu_fault_kind world_fault(world *w, kiln__cpu_space space,
                                               const uint64_t address[32],
                                               uint32_t mask, unsigned bytes,
                                               bool atomic, unsigned *lane)
{
  for (*lane = 0; *lane < 32; ++*lane) {
    if ((mask >> *lane & 1) != 0 && address[*lane] % bytes != 0)
      return KILN__FAULT_MISALIGNED;
  }
  for (*lane = 0; atomic && *lane < 32; ++*lane) {
    uint64_t at = address[*lane];
    const kiln__cpu_space is = world_space(space, &at);

    /* One lane alone may use its local memory. */
    if ((mask >> *lane & 1) != 0 &&
        ((is == KILN__SPACE_LOCAL && (mask & (mask - 1)) != 0) ||
         is == KILN__SPACE_PARAM))
      return KILN__FAULT_SPACE;
  }
  for (*lane = 0; *lane < 32; ++*lane) {
    if ((mask >> *lane & 1) != 0 &&
        !world_holds(w, space, *lane, address[*lane], bytes))
      return KILN__FAULT_ADDRESS;
  }
  return KILN__FAULT_NONE;
}

/* Checks that memory and registers are equal to the model. */
static inline void world_compare(world *w, const char *what)
{
  for (int i = 0; i < WORLD_RANGES; i++) {
    const size_t n = (size_t)(w->range[i].last - w->range[i].first);

    if (memcmp(w->range[i].host, w->model[i], n) != 0)
      ck_abort_msg("%s: bytes of range %d", what, i);
  }
  if (memcmp(w->shared, w->shared_model, sizeof w->shared) != 0)
    ck_abort_msg("%s: shared memory", what);
  if (memcmp(w->other, w->other_model, sizeof w->other) != 0)
    ck_abort_msg("%s: the neighbour's shared memory", what);
  if (memcmp(w->stack, w->stack_model, sizeof w->stack) != 0)
    ck_abort_msg("%s: stacks", what);
  /* A successful assertion costs a system call, so one comparison covers all
   * bytes. */
  for (unsigned i = 0; memcmp(w->frame, w->frame_model, WORLD_FRAME) != 0 &&
                       i < WORLD_FRAME / 4;
       i++) {
    uint32_t got, want;

    memcpy(&got, w->frame + 4 * i, 4);
    memcpy(&want, w->frame_model + 4 * i, 4);
    if (got != want)
      ck_abort_msg("%s: slot %u, word %u: got %x, want %x", what, i / 64,
                   i % 64, got, want);
  }
}

/* Runs an instruction and checks that it causes exactly the expected fault, or
 * no fault. */
static inline void world_run(world *w, const kiln__cpu_isa *isa,
                             const kiln__cpu_insn *in,
                             kiln__cpu_fault_kind want, unsigned lane,
                             uint64_t address, const char *what)
{
  kiln__cpu_fault_info *f = &w->grid.fault;

  memset(f, 0, sizeof *f);
  memset(w->tally, 0, sizeof w->tally);
  w->warp.fault = false;
  isa->handlers[in->op](&w->warp, in);
  ck_assert_msg(f->kind == want, "%s: fault %d, want %d at %llx of lane %u",
                what, (int)f->kind, (int)want, (unsigned long long)address,
                lane);
  ck_assert_int_eq(w->warp.fault, want != KILN__FAULT_NONE);
  if (want != KILN__FAULT_NONE) {
    ck_assert_msg(f->address == address, "%s: address %llx, want %llx", what,
                  (unsigned long long)f->address, (unsigned long long)address);
    ck_assert_uint_eq(f->thread[0], lane);
  }
}

/* ---- Test addresses ------------------------------------------------------ */

enum { WORLD_PATTERNS = 16 };

static inline uint64_t world_base(world *w, kiln__cpu_space space,
                                  unsigned kind, uint64_t *size)
{
  const kiln__cpu_range *r = &w->range[test_random(&w->seed) % WORLD_RANGES];

  switch (space) {
  case KILN__SPACE_SHARED:
    *size = WORLD_SHARED;
    return 0;
  case KILN__SPACE_SHARED_CLUSTER:
    *size = WORLD_SHARED;
    return (uint64_t)(kind % 3) << 24;
  case KILN__SPACE_LOCAL:
    *size = WORLD_STACK;
    return 0;
  case KILN__SPACE_PARAM:
    *size = WORLD_PARAMS;
    return 0;
  case KILN__SPACE_CONST:
    r = &w->range[WORLD_CONST];
    break;
  case KILN__SPACE_GENERIC:
    if (kind % 5 == 1)
      return *size = WORLD_SHARED, KILN__WINDOW_SHARED;
    if (kind % 5 == 2)
      return *size = WORLD_STACK, KILN__WINDOW_LOCAL;
    if (kind % 10 == 3)
      return *size = WORLD_PARAMS, KILN__WINDOW_PARAM;
    break;
  default:
    break;
  }
  *size = r->last - r->first;
  return r->first;
}

/* Creates the addresses at which 32 lanes access `bytes` bytes each. `pattern`
 * selects the access pattern, which may contain misaligned or invalid
 * addresses. */
static inline void world_addresses(world *w, kiln__cpu_space space,
                                   unsigned pattern, unsigned bytes,
                                   uint64_t address[32])
{
  const unsigned kind = (unsigned)test_random(&w->seed) % 100;
  uint64_t size, base = world_base(w, space, kind, &size);
  uint64_t span = (uint64_t)bytes * 32, at;

  if (size < span && pattern != 4)
    pattern = pattern == 0 ? 1 : pattern;
  at = size > span ? test_random(&w->seed) % (size - span) / bytes * bytes : 0;
  for (unsigned i = 0; i < 32; i++) {
    const uint64_t any =
        size >= bytes
            ? test_random(&w->seed) % ((size - bytes) / bytes + 1) * bytes
            : 0;

    switch (pattern) {
    case 0: /* consecutive */
    case 5: /* consecutive addresses that are misaligned by one byte */
    case 6: /* consecutive addresses of which one is out of bounds */
      address[i] = base + at + (uint64_t)i * bytes + (pattern == 5);
      break;
    case 1: /* one address for all lanes */
      address[i] = base + at;
      break;
    case 2: /* strided */
      address[i] =
          base + at / 4 + (uint64_t)i * bytes * 3 % size / bytes * bytes;
      break;
    case 3: /* random addresses */
      address[i] = base + any;
      break;
    case 4: /* consecutive addresses up to the end of the memory range */
      address[i] = base + size / bytes * bytes - (uint64_t)(32 - i) * bytes;
      break;
    case 7: /* descending */
      address[i] = base + at + (uint64_t)(31 - i) * bytes;
      break;
    case 8: /* a different state space or memory range for each lane */
      base = world_base(w, space, (unsigned)test_random(&w->seed), &size);
      address[i] =
          base +
          (size >= bytes ? test_random(&w->seed) % (size / bytes) * bytes : 0);
      break;
    case 9: /* addresses to which no memory belongs */
      address[i] = test_random(&w->seed) >> (test_random(&w->seed) % 60);
      break;
    case 10: /* five addresses in mixed order */
      address[i] = base + at + (i * 7 % 5) * (uint64_t)bytes;
      break;
    case 11: /* rows of eight consecutive lanes, far apart */
      address[i] = base + at + i / 8 * 64 % (size / 4 + 1) / bytes * bytes +
                   (uint64_t)(i % 8) * bytes;
      break;
    case 12: /* a stride of 128 bytes, so that all lanes access one bank */
      address[i] = base + (uint64_t)i * 128 % size / bytes * bytes;
      break;
    case 13: /* only the access of the last lane is out of bounds */
      address[i] = base + size / bytes * bytes - (uint64_t)(31 - i) * bytes;
      break;
    /* groups of eight lanes, each with its own stride; lane 21 may deviate */
    case 14:
      address[i] = base + (i / 8 * 2 + i % 8 * ((at / bytes + i / 8 * 5) % 18) +
                           (i == 21 ? at / bytes % 2 * 11 : 0)) *
                              (uint64_t)bytes % size / bytes * bytes;
      break;
    default: /* pairs of lanes with the same address */
      address[i] = base + at + (uint64_t)(i / 2) * bytes;
    }
  }
  if (pattern == 6)
    address[test_random(&w->seed) % 32] = base + size - bytes + 1;
}

static inline uint32_t world_random_mask(world *w)
{
  const uint32_t m = (uint32_t)test_random(&w->seed);

  switch (test_random(&w->seed) % 6) {
  case 0:
    return m != 0 ? m : 1;
  case 1:
    return UINT32_C(1) << (m % 32);
  case 2: /* a mask of consecutive lanes */
    return UINT32_MAX >> (m % 16) & (UINT32_MAX << (m / 16 % 16));
  default:
    return UINT32_MAX;
  }
}

/* ---- Fixture ------------------------------------------------------------- */

/* The test environment, and the number of builds of the interpreter that the
 * test runs. */
static world *w;
static unsigned n_isas;

static inline void setup(void)
{
  n_isas = cpu_isas_find();
  w = aligned_alloc(64, (sizeof *w + 63) / 64 * 64);
  ck_assert_ptr_nonnull(w);
  world_make(w);
}

static inline void teardown(void)
{
  world_free(w);
  free(w);
}

#endif
