/* load_store_test.c -- tests every load and store of ops.def against a model
 * that moves single bytes. The expected numbers of sectors and passes are
 * computed independently. */
#include "world.h"

#include "cpu/code/code.h"

/* ---- Reference for the performance counters ------------------------------ */

static unsigned add_new(uint64_t *set, unsigned n, uint64_t x)
{
  for (unsigned i = 0; i < n; i++) {
    if (set[i] == x)
      return n;
  }
  set[n] = x;
  return n + 1;
}

static unsigned count_sectors(const uint64_t *address, uint32_t mask,
                              unsigned bytes)
{
  uint64_t set[32 * 32];
  unsigned n = 0;

  for (unsigned i = 0; i < 32; i++) {
    for (unsigned k = 0; k < bytes && (mask >> i & 1) != 0; k++)
      n = add_new(set, n, (address[i] + k) / 32);
  }
  return n;
}

/* In local memory, word k of lane l is at offset 128 k + 4 l. */
static unsigned count_local(const uint64_t *offset, uint32_t mask,
                            unsigned bytes)
{
  uint64_t set[32 * 32];
  unsigned n = 0;

  for (unsigned i = 0; i < 32; i++) {
    for (unsigned k = 0; k < bytes && (mask >> i & 1) != 0; k++)
      n = add_new(set, n, ((offset[i] + k) / 4 * 128 + 4 * i) / 32);
  }
  return n;
}

static bool neighbours_agree(const uint64_t *offset, uint32_t mask, unsigned x)
{
  for (unsigned i = 0; i < 32; i++) {
    if ((mask >> i & 1) != 0 && (mask >> (i ^ x) & 1) != 0 &&
        offset[i] != offset[i ^ x])
      return false;
  }
  return true;
}

static unsigned count_passes(const uint64_t *offset, uint32_t mask,
                             unsigned bytes)
{
  unsigned group = bytes <= 4 ? 32 : 128 / bytes, sum = 0;

  if (bytes > 4 &&
      (neighbours_agree(offset, mask, 1) || neighbours_agree(offset, mask, 2)))
    group *= 2;
  for (unsigned from = 0; from < 32; from += group) {
    unsigned worst = 0;

    for (unsigned bank = 0; bank < 32; bank++) {
      uint64_t set[32 * 32];
      unsigned n = 0;

      for (unsigned i = from; i < from + group; i++) {
        for (unsigned k = 0; k < bytes && (mask >> i & 1) != 0; k++) {
          if ((offset[i] + k) / 4 % 32 == bank)
            n = add_new(set, n, (offset[i] + k) / 4);
        }
      }
      worst = n > worst ? n : worst;
    }
    sum += worst;
  }
  return sum;
}

static unsigned count_cost(kiln__cpu_space space, const uint64_t *address,
                           uint32_t mask, unsigned bytes)
{
  uint32_t in[3] = {0, 0, 0};
  uint64_t at[32];
  unsigned cost = 0;

  memcpy(at, address, sizeof at);
  for (unsigned i = 0; i < 32; i++) {
    const kiln__cpu_space is = world_space(space, &at[i]);

    if (is == KILN__SPACE_GLOBAL)
      in[0] |= mask & UINT32_C(1) << i;
    else if (is == KILN__SPACE_SHARED)
      in[1] |= mask & UINT32_C(1) << i;
    else if (is == KILN__SPACE_LOCAL)
      in[2] |= mask & UINT32_C(1) << i;
  }
  cost += in[0] != 0 ? count_sectors(address, in[0], bytes) : 0;
  cost += in[1] != 0 ? count_passes(at, in[1], bytes) : 0;
  cost += in[2] != 0 ? count_local(at, in[2], bytes) : 0;
  return cost;
}

/* ---- One instruction ----------------------------------------------------- */

typedef struct shape {
  kiln__cpu_insn in;
  int32_t vec[8];
  unsigned bytes, n, reg;
  bool load, is_signed;
  char name[160];
} shape;

enum { SLOT_A = 1, SLOT_DATA = 4, SLOT_POLICY = 40 };

static unsigned bytes_of(kiln__cpu_ptx_type type)
{
  switch (type) {
  case KILN__U8:
  case KILN__S8:
  case KILN__B8:
    return 1;
  case KILN__U16:
  case KILN__S16:
  case KILN__B16:
    return 2;
  case KILN__U32:
  case KILN__S32:
  case KILN__B32:
  case KILN__F32:
    return 4;
  default:
    return 8;
  }
}

/* Creates the k-th opcode of a row of ops.def. The registers are at least as
 * wide as the element. */
static bool make_shape(shape *s, kiln__cpu_op op, size_t k)
{
  cpu_case c;
  unsigned wider = (unsigned)(test_random(&w->seed) % 4);

  (void)cpu_row_opcode(op, k, s->name, sizeof s->name);
  if (!cpu_case_find(&c, s->name))
    return false;
  s->in = c.in;
  s->load = strstr(s->name, " st") == NULL;
  s->bytes = bytes_of((kiln__cpu_ptx_type)c.in.type);
  s->n = c.in.sub2 > 1 ? c.in.sub2 : 1;
  s->is_signed =
      c.in.type == KILN__S8 || c.in.type == KILN__S16 || c.in.type == KILN__S32;
  s->reg = s->bytes < 2 ? 2 : s->bytes;
  while (s->reg < 8 && wider-- > 1)
    s->reg *= 2;
  s->in.bytes = (uint8_t)s->bytes;
  s->in.n_vec = (uint8_t)s->n;
  s->in.reg_bytes = s->in.src_reg_bytes = (uint8_t)s->reg;
  s->in.index = 2;
  s->in.d = s->in.d2 = s->in.a = s->in.b = s->in.c = s->in.e = -1;
  s->in.guard = -1;
  for (unsigned i = 0; i < s->n; i++)
    s->vec[i] = world_slot(SLOT_DATA + i);
  s->in.vec = s->vec;
  if (s->n == 1 && s->load)
    s->in.d = s->vec[0];
  if (s->n == 1 && !s->load)
    s->in.b = s->vec[0];
  if (s->n > 1 && s->load && test_random(&w->seed) % 4 == 0)
    s->vec[test_random(&w->seed) % s->n] = -1;
  return true;
}

/* Stores the addresses, minus a displacement, in a 32-bit or 64-bit register.
 * If all addresses are equal, the instruction may contain the address
 * itself. */
static void put_addresses(shape *s, uint64_t address[32])
{
  const kiln__cpu_space space = (kiln__cpu_space)s->in.space;
  const bool small = space == KILN__SPACE_SHARED ||
                     space == KILN__SPACE_SHARED_CLUSTER ||
                     space == KILN__SPACE_LOCAL || space == KILN__SPACE_PARAM;
  const bool wide = !small || test_random(&w->seed) % 2 == 0;
  const uint64_t displaced = test_random(&w->seed) % 64 - 32;
  bool same = true;

  for (unsigned i = 1; i < 32; i++)
    same &= address[i] == address[0];
  s->in.flags &= ~(uint32_t)KILN__WIDE_A;
  s->in.flags |= wide ? KILN__WIDE_A : 0;
  if (same && test_random(&w->seed) % 2 == 0 &&
      (space != KILN__SPACE_LOCAL || address[0] >= w->warp.local_at)) {
    s->in.a = -1;
    s->in.imm = (int64_t)(address[0] -
                          (space == KILN__SPACE_LOCAL ? w->warp.local_at : 0));
    return;
  }
  s->in.a = world_slot(SLOT_A);
  s->in.imm = (int64_t)displaced;
  for (unsigned i = 0; i < 32; i++) {
    world_put(w, s->in.a, wide ? 8 : 4, i, address[i] - displaced);
    if (!wide)
      address[i] = (uint32_t)address[i];
  }
}

static uint64_t extended(const shape *s, uint64_t x)
{
  const unsigned up = 64 - 8 * s->bytes;

  return s->is_signed ? (uint64_t)((int64_t)(x << up) >> up) : x;
}

static void model(const shape *s, const uint64_t *address, uint32_t mask)
{
  for (unsigned i = 0; i < 32; i++) {
    for (unsigned k = 0; k < s->n && (mask >> i & 1) != 0; k++) {
      const uint64_t at = address[i] + (uint64_t)k * s->bytes;
      const kiln__cpu_space space = (kiln__cpu_space)s->in.space;

      if (s->load && s->vec[k] >= 0)
        world_expect(w, s->vec[k], s->reg, i,
                     extended(s, world_get(w, space, i, at, s->bytes)));
      else if (!s->load)
        world_set(w, space, i, at, s->bytes,
                  world_read(w->frame, s->vec[k], s->reg, i));
    }
  }
}

static void try(shape *s, unsigned pattern)
{
  const kiln__cpu_space space = (kiln__cpu_space)s->in.space;
  const unsigned bytes = s->bytes * s->n;
  const uint32_t mask = world_random_mask(w);
  kiln__cpu_fault_kind fault;
  uint64_t address[32];
  unsigned lane, cost;
  char what[256];

  world_fill(w, w->frame, NULL, WORLD_FRAME);
  for (unsigned k = 0; k < s->n && !s->load; k++) {
    for (unsigned i = 0; i < 32; i++)
      world_put(w, s->vec[k], s->reg, i, test_random(&w->seed));
  }
  world_addresses(w, space, pattern, bytes, address);
  put_addresses(s, address);
  if (s->load && s->in.a >= 0 && test_random(&w->seed) % 8 == 0 &&
      ((s->in.flags & KILN__WIDE_A) != 0) == (s->reg == 8)) {
    /* The results of the load overwrite the address register. */
    s->vec[s->n - 1] = s->in.a;
    s->in.d = s->n == 1 ? s->in.a : s->in.d;
  }
  world_mask(w, mask);
  memcpy(w->frame_model, w->frame, WORLD_FRAME);
  fault = world_fault(w, space, address, mask, bytes, false, &lane);
  snprintf(what, sizeof what, "%s pattern %u mask %08x", s->name, pattern,
           mask);
  w->warp.counted = test_random(&w->seed) % 4 != 0;
  cost = fault == KILN__FAULT_NONE && space != KILN__SPACE_PARAM
             ? count_cost(space, address, mask, bytes)
             : 0;
  if (fault == KILN__FAULT_NONE)
    model(s, address, mask);
  for (unsigned i = 0; i < n_isas; i++) {
    uint8_t before[WORLD_FRAME];

    memcpy(before, w->frame, WORLD_FRAME);
    world_run(w, cpu_isas[i], &s->in, fault, lane, address[lane % 32], what);
    world_compare(w, what);
    memcpy(w->frame, before, WORLD_FRAME);
    if (w->tally[2].events != (w->warp.counted && fault == KILN__FAULT_NONE) ||
        w->tally[2].cost != (w->warp.counted ? cost : 0))
      ck_abort_msg("%s isa %u: %u requests, cost %u, want %u", what, i,
                   (unsigned)w->tally[2].events, (unsigned)w->tally[2].cost,
                   cost);
  }
}

static bool starts(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

/* Tests all rows of ops.def whose names begin with `name`, with `times` opcodes
 * per row. */
static void try_rows(const char *name, unsigned times)
{
  unsigned rows = 0;

  for (int op = 0; op < KILN__N_OPS; op++) {
    char text[160];
    size_t n = cpu_row_opcode((kiln__cpu_op)op, 0, text, sizeof text);

    if (!starts(text, name))
      continue;
    rows++;
    for (unsigned t = 0; t < times * WORLD_PATTERNS; t++) {
      shape s;

      ck_assert(make_shape(&s, (kiln__cpu_op)op, test_random(&w->seed) % n));
      try(&s, t % WORLD_PATTERNS);
    }
  }
  ck_assert_uint_gt(rows, 0);
}

START_TEST(loads_are_bytewise_reads)
{
  try_rows("ld_", 16);
  try_rows("ldu", 16);
}
END_TEST

START_TEST(stores_are_bytewise_writes)
{
  try_rows("st_global", 16);
  try_rows("st_shared", 16);
  try_rows("st_local", 16);
  try_rows("st_l1", 8);
  try_rows("st_hint", 8);
  try_rows("st_w", 8);
  try_rows("st_volatile", 8);
  try_rows("st_strong", 8);
  try_rows("st_mmio", 8);
}
END_TEST

/* Repeats the test often enough to reach every algorithm that counts memory
 * passes. */
START_TEST(steps_hit_banks)
{
  try_rows("ld_shared", 256);
}
END_TEST

/* A kernel reads its parameters from the parameter buffer. The parameters of a
 * function are on the stack, so a store to .param writes to the stack. */
START_TEST(function_parameters_are_on_the_stack)
{
  for (unsigned t = 0; t < 200; t++) {
    shape s;
    const kiln__cpu_op op =
        t % 2 == 0 ? KILN__OP_ld_param_4 : KILN__OP_st_local_8;

    ck_assert(make_shape(&s, op, t));
    s.in.space = KILN__SPACE_LOCAL;
    try(&s, t % WORLD_PATTERNS);
  }
}
END_TEST

/* If several lanes write to one address, the value of one lane remains. The
 * seed determines which lane this is. */
START_TEST(a_seed_chooses_who_is_last)
{
  uint32_t winners = 0;
  shape s;

  ck_assert(make_shape(&s, KILN__OP_st_global_4, 0));
  s.in.a = -1;
  s.in.imm = (int64_t)w->range[0].first;
  s.in.src_reg_bytes = 4;
  for (unsigned i = 0; i < 32; i++)
    world_put(w, s.vec[0], 4, i, i);
  world_mask(w, UINT32_MAX);
  for (unsigned seed = 0; seed < 64; seed++) {
    w->grid.seed = seed;
    for (unsigned i = 0; i < n_isas; i++) {
      world_run(w, cpu_isas[i], &s.in, KILN__FAULT_NONE, 0, 0, "st");
      ck_assert_uint_lt(w->range[0].host[0], 32);
      winners |= UINT32_C(1) << w->range[0].host[0];
      if (seed == 0)
        ck_assert_uint_eq(w->range[0].host[0], 31);
    }
  }
  ck_assert_int_gt(__builtin_popcount(winners), 16);
}
END_TEST

/* Memory accesses must not use a cached address range after the range was
 * removed. */
START_TEST(removed_ranges_fault)
{
  shape s;
  kiln__cpu_range r = {.kind = KILN__RANGE_DEVICE};

  ck_kiln_ok(kiln__cpu_memory_add(w->map, &r, 256, 0));
  ck_assert(make_shape(&s, KILN__OP_ld_global_4, 0));
  s.in.a = -1;
  s.in.imm = (int64_t)r.first;
  world_mask(w, UINT32_MAX);
  kiln__cpu_memory_enter(w->map);
  world_run(w, cpu_isas[0], &s.in, KILN__FAULT_NONE, 0, 0, "there");
  world_run(w, cpu_isas[0], &s.in, KILN__FAULT_NONE, 0, 0, "there");
  ck_assert(kiln__cpu_memory_remove(w->map, r.first));
  world_run(w, cpu_isas[0], &s.in, KILN__FAULT_ADDRESS, 0, r.first, "gone");
  kiln__cpu_memory_leave(w->map);
}
END_TEST

/* ---- Matrices ------------------------------------------------------------ */

START_TEST(matrices_are_spread_over_the_warp)
{
  for (unsigned t = 0; t < 60; t++) {
    const unsigned n = 1u << t % 3;
    const bool transposed = t / 3 % 2 != 0, store = t / 6 % 2 != 0;
    uint64_t address[32];
    shape s = {.in = {.op = store ? KILN__OP_stmatrix : KILN__OP_ldmatrix,
                      .space = KILN__SPACE_SHARED,
                      .sub = transposed,
                      .n_vec = (uint8_t)n,
                      .vec = s.vec}};

    for (unsigned i = 0; i < 4; i++)
      s.vec[i] = world_slot(SLOT_DATA + i);
    s.in.d = s.in.b = s.vec[0];
    world_fill(w, w->frame, NULL, WORLD_FRAME);
    /* The addresses of the matrix rows do not overlap. */
    for (unsigned i = 0; i < 32; i++)
      address[i] = ((i * 37 + t) % 127) * 16;
    put_addresses(&s, address);
    /* The instruction does not read the addresses of these lanes. */
    for (unsigned i = 8 * n; i < 32; i++)
      world_put(w, s.in.a, (s.in.flags & KILN__WIDE_A) != 0 ? 8 : 4, i, 12345);
    world_mask(w, UINT32_MAX);
    memcpy(w->frame_model, w->frame, WORLD_FRAME);
    for (unsigned m = 0; m < n; m++) {
      for (unsigned row = 0; row < 8; row++) {
        for (unsigned column = 0; column < 8; column++) {
          const unsigned r = transposed ? column : row;
          const unsigned c = transposed ? row : column;
          const unsigned lane = r * 4 + c / 2;
          const uint64_t at = address[8 * m + row] + 2 * column;
          uint64_t both = world_read(w->frame_model, s.vec[m], 4, lane);

          if (store) {
            world_set(w, KILN__SPACE_SHARED, 0, at, 2, both >> (c % 2 * 16));
          } else {
            both &= c % 2 != 0 ? 0xffff : 0xffff0000;
            both |= world_get(w, KILN__SPACE_SHARED, 0, at, 2) << (c % 2 * 16);
            world_expect(w, s.vec[m], 4, lane, both);
          }
        }
      }
    }
    for (unsigned i = 0; i < n_isas; i++) {
      world_run(w, cpu_isas[i], &s.in, KILN__FAULT_NONE, 0, 0, "matrix");
      world_compare(w, store ? "stmatrix" : "ldmatrix");
    }
  }
}
END_TEST

START_TEST(a_matrix_transposes_in_registers)
{
  const kiln__cpu_insn in = {
      .op = KILN__OP_movmatrix, .a = world_slot(1), .d = world_slot(2)};

  for (unsigned i = 0; i < 32; i++)
    world_put(w, in.a, 4, i,
              (i / 4 * 8 + 2 * (i % 4)) | (i / 4 * 8 + 2 * (i % 4) + 1) << 16);
  world_mask(w, UINT32_MAX);
  memcpy(w->frame_model, w->frame, WORLD_FRAME);
  for (unsigned i = 0; i < 32; i++)
    world_expect(w, in.d, 4, i,
                 (i / 4 + 16 * (i % 4)) | (i / 4 + 16 * (i % 4) + 8) << 16);
  for (unsigned i = 0; i < n_isas; i++) {
    world_run(w, cpu_isas[i], &in, KILN__FAULT_NONE, 0, 0, "movmatrix");
    world_compare(w, "movmatrix");
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_load_store");

  cpu_seen_init();
  kiln_test_case(s, "load_store", 120, setup, teardown,
                 TESTS(loads_are_bytewise_reads, stores_are_bytewise_writes,
                       steps_hit_banks, function_parameters_are_on_the_stack,
                       a_seed_chooses_who_is_last, removed_ranges_fault,
                       matrices_are_spread_over_the_warp,
                       a_matrix_transposes_in_registers));
  return kiln_test_run(s);
}
