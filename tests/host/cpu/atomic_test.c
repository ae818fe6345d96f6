/* atomic_test.c -- tests the instructions atom and red. Each opcode in ops.def
 * is compared with plain arithmetic, lane by lane. Another test updates a few
 * words from many threads. */
#include "cpu_reference.h"
#include "world.h"

#include <math.h>
#include <pthread.h>

/* ---- Floating point ------------------------------------------------------ */

/* Returns the sum of two numbers of a float type that is narrower than f64.
 * With `flush`, subnormals become zeros. */
static uint64_t sum(const char *type, uint64_t a, uint64_t b, bool flush)
{
  const long double exact =
      ref_decode(type, a, flush) + ref_decode(type, b, flush);
  const uint64_t rounded = ref_encode(type, exact, REF_NEAREST, false);

  return ref_encode(type, ref_decode(type, rounded, flush), REF_NEAREST, false);
}

static uint64_t sum_f64(uint64_t a, uint64_t b)
{
  double x, y;
  volatile double sum;
  uint64_t bits;

  memcpy(&x, &a, 8);
  memcpy(&y, &b, 8);
  sum = x + y;
  x = sum;
  memcpy(&bits, &x, 8);
  return isnan(x) ? UINT64_C(0xfff8000000000000) : bits;
}

/* ---- One instruction ----------------------------------------------------- */

enum {
  SLOT_A = 1,
  SLOT_B = 2,
  SLOT_C = 3,
  SLOT_D = 4,
  SLOT_VEC = 8,
  SLOT_TO = 12
};

typedef struct shape {
  kiln__cpu_insn in;
  /* register slots that a vector atomic reads, and register slots that it
   * writes */
  int32_t vec[4], to[4];
  char name[160];
  const char *opcode;
  unsigned bytes, n;
  bool returns;
} shape;

static bool has(const shape *s, const char *modifier)
{
  const char *at = strstr(s->opcode, modifier);

  return at != NULL &&
         (at[strlen(modifier)] == '.' || at[strlen(modifier)] == 0);
}

static uint64_t cut(uint64_t x, unsigned bytes)
{
  return bytes == 8 ? x : x & ((UINT64_C(1) << (8 * bytes)) - 1);
}

static int64_t as_signed(uint64_t x, unsigned bytes)
{
  return (int64_t)(x << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

/* Computes the value of a word after an atomic instruction, from the name of
 * its opcode. */
static uint64_t after(const shape *s, uint64_t old, uint64_t b, uint64_t c,
                      bool shared)
{
  const bool is_signed = has(s, ".s32") || has(s, ".s64");
  const char *const half = strstr(s->opcode, ".bf16") != NULL ? "bf16" : "f16";
  const bool above =
      is_signed ? as_signed(old, s->bytes) > as_signed(b, s->bytes) : old > b;

  if (has(s, ".cas"))
    return old == b ? c : old;
  if (has(s, ".exch"))
    return b;
  if (has(s, ".and"))
    return old & b;
  if (has(s, ".or"))
    return old | b;
  if (has(s, ".xor"))
    return old ^ b;
  if (has(s, ".min"))
    return above ? b : old;
  if (has(s, ".max"))
    return above ? old : b;
  if (has(s, ".inc"))
    return old >= b ? 0 : old + 1;
  if (has(s, ".dec"))
    return old == 0 || old > b ? b : old - 1;
  if (has(s, ".f32"))
    return sum("f32", old, b, !shared);
  if (has(s, ".f64"))
    return sum_f64(old, b);
  if (has(s, ".f16") || has(s, ".bf16"))
    return sum(half, old, b, false);
  if (has(s, ".f16x2") || has(s, ".bf16x2"))
    return sum(half, old, b, false) | sum(half, old >> 16, b >> 16, false)
                                          << 16;
  return cut(old + b, s->bytes);
}

static void make_shape(shape *s, kiln__cpu_op op, size_t k)
{
  cpu_case c;

  (void)cpu_row_opcode(op, k, s->name, sizeof s->name);
  ck_assert(cpu_case_find(&c, s->name));
  s->opcode = strchr(s->name, ' ') + 1;
  s->in = c.in;
  s->returns = strncmp(s->opcode, "atom", 4) == 0;
  s->bytes =
      has(s, ".b64") || has(s, ".u64") || has(s, ".s64") || has(s, ".f64") ? 8
      : has(s, ".b16") || has(s, ".f16") || has(s, ".bf16")                ? 2
                                                                           : 4;
  s->n = has(s, ".v4") ? 4 : has(s, ".v2") ? 2 : 1;
  s->in.n_vec = (uint8_t)s->n;
  for (unsigned i = 0; i < 4; i++) {
    s->vec[i] = world_slot(SLOT_VEC + i);
    s->to[i] = test_random(&w->seed) % 8 == 0 ? -1 : world_slot(SLOT_TO + i);
  }
  if (s->returns && test_random(&w->seed) % 4 == 0)
    s->to[0] = s->vec[1];
  s->in.vec = s->returns && s->n > 1 ? s->to : s->vec;
  s->in.vec2 = s->vec;
  s->in.bytes = (uint8_t)s->bytes;
  s->in.index = 1;
  s->in.a = world_slot(SLOT_A);
  s->in.b = s->n > 1 ? s->vec[0] : world_slot(SLOT_B);
  s->in.c = has(s, ".cas") ? world_slot(SLOT_C) : -1;
  s->in.d = s->returns ? world_slot(SLOT_D) : -1;
  s->in.d2 = s->in.e = s->in.guard = -1;
  if (s->returns && test_random(&w->seed) % 8 == 0)
    s->in.d = -1;
  else if (s->returns && test_random(&w->seed) % 8 == 0)
    s->in.d = s->in.b;
  s->in.flags |= KILN__WIDE_A;
}

static uint64_t random_operand(const shape *s)
{
  const uint64_t x = test_random(&w->seed);
  static const uint32_t edges[] = {
      0,          0x80000000, 0x3f800000, 0x00000001, 0x7f800000, 0xff800000,
      0x00400000, 0x3c003c00, 0x00010001, 0x00800000, 0x80800001, 0x01000000};

  if (x % 4 == 0)
    return cut(x >> 60, s->bytes);
  if (x % 4 == 1)
    return cut(edges[x / 4 % 12] | (uint64_t)edges[x / 64 % 12] << 32,
               s->bytes);
  return cut(x, s->bytes);
}

static bool is_shared(const shape *s, uint64_t address)
{
  return world_space((kiln__cpu_space)s->in.space, &address) ==
         KILN__SPACE_SHARED;
}

static void model(const shape *s, const uint64_t *address, uint32_t mask)
{
  for (unsigned i = 0; i < 32; i++) {
    for (unsigned k = 0; k < s->n && (mask >> i & 1) != 0; k++) {
      const uint64_t at = address[i] + (uint64_t)k * s->bytes;
      const kiln__cpu_space space = (kiln__cpu_space)s->in.space;
      const uint64_t old = world_get(w, space, i, at, s->bytes);
      const uint64_t b =
          world_read(w->frame, s->n > 1 ? s->vec[k] : s->in.b, s->bytes, i);
      const uint64_t c =
          s->in.c >= 0 ? world_read(w->frame, s->in.c, s->bytes, i) : 0;

      world_set(w, space, i, at, s->bytes,
                after(s, old, b, c, is_shared(s, at)));
      if (s->returns && (s->n > 1 ? s->to[k] : s->in.d) >= 0)
        world_expect(w, s->n > 1 ? s->to[k] : s->in.d, s->bytes, i, old);
    }
  }
}

/* Returns the number of lanes whose word another lane accesses, too. */
static unsigned crowd(const uint64_t *address, uint32_t mask, unsigned bytes)
{
  const unsigned size = bytes < 4 ? 4 : bytes;
  unsigned n = 0;

  for (unsigned i = 0; i < 32; i++) {
    bool shared = false;

    for (unsigned j = 0; j < 32; j++)
      shared |= i != j && (mask >> j & 1) != 0 &&
                address[i] / size == address[j] / size;
    n += shared && (mask >> i & 1) != 0;
  }
  return n;
}

static void try(shape *s, unsigned pattern)
{
  const kiln__cpu_space space = (kiln__cpu_space)s->in.space;
  const unsigned bytes = s->bytes * s->n;
  const uint32_t mask = world_random_mask(w);
  static uint8_t before[WORLD_FRAME], bytes_before[6][8192 * 9],
      shared_before[2][2048], stack_before[32 * WORLD_STRIDE];
  kiln__cpu_fault_kind fault;
  uint64_t address[32];
  unsigned lane, cost;
  char what[256];

  world_fill(w, w->frame, NULL, WORLD_FRAME);
  world_addresses(w, space, pattern, bytes, address);
  for (unsigned i = 0; i < 32; i++) {
    world_put(w, s->in.a, 8, i, address[i] - 8);
    if (world_holds(w, space, i, address[i], s->bytes))
      world_set(w, space, i, address[i], s->bytes, random_operand(s));
    for (unsigned k = 0; k < s->n; k++)
      world_put(w, s->n > 1 ? s->vec[k] : s->in.b, s->bytes, i,
                random_operand(s));
    if (s->in.c >= 0)
      world_put(w, s->in.c, s->bytes, i, random_operand(s));
    /* Half of the compare-and-swap operations find the value that they
     * expect. */
    if (s->in.c >= 0 && test_random(&w->seed) % 2 == 0 &&
        world_holds(w, space, i, address[i], s->bytes))
      world_put(w, s->in.b, s->bytes, i,
                world_get(w, space, i, address[i], s->bytes));
  }
  s->in.imm = 8;
  world_mask(w, mask);
  snprintf(what, sizeof what, "%s pattern %u mask %08x", s->name, pattern,
           mask);
  fault = world_fault(w, space, address, mask, bytes, true, &lane);
  cost = fault == KILN__FAULT_NONE ? crowd(address, mask, bytes) : 0;
  w->warp.counted = true;
  memcpy(before, w->frame, WORLD_FRAME);
  memcpy(w->frame_model, w->frame, WORLD_FRAME);
  for (int i = 0; i < WORLD_RANGES; i++)
    memcpy(bytes_before[i], w->model[i],
           (size_t)(w->range[i].last - w->range[i].first));
  memcpy(shared_before[0], w->shared_model, 2048);
  memcpy(shared_before[1], w->other_model, 2048);
  memcpy(stack_before, w->stack_model, sizeof stack_before);
  if (fault == KILN__FAULT_NONE)
    model(s, address, mask);
  for (unsigned n = 0; n < n_isas; n++) {
    memcpy(w->frame, before, WORLD_FRAME);
    for (int i = 0; i < WORLD_RANGES; i++)
      memcpy(w->range[i].host, bytes_before[i],
             (size_t)(w->range[i].last - w->range[i].first));
    memcpy(w->shared, shared_before[0], 2048);
    memcpy(w->other, shared_before[1], 2048);
    memcpy(w->stack, stack_before, sizeof w->stack);
    world_run(w, cpu_isas[n], &s->in, fault, lane, address[lane % 32], what);
    world_compare(w, what);
    if (w->tally[1].cost != cost ||
        w->tally[1].events != (fault == KILN__FAULT_NONE))
      ck_abort_msg("%s: cost %u, want %u", what, (unsigned)w->tally[1].cost,
                   cost);
  }
}

static void try_rows(const char *name, unsigned times)
{
  unsigned rows = 0;

  for (int op = 0; op < KILN__N_OPS; op++) {
    char text[160];
    const size_t n = cpu_row_opcode((kiln__cpu_op)op, 0, text, sizeof text);

    /* bulk_test.c tests red.async, which needs an mbarrier. */
    if (strncmp(text, name, strlen(name)) != 0 ||
        strncmp(text, "red_async", 9) == 0)
      continue;
    rows++;
    for (unsigned t = 0; t < times * WORLD_PATTERNS; t++) {
      shape s;

      make_shape(&s, (kiln__cpu_op)op, test_random(&w->seed) % n);
      try(&s, t % WORLD_PATTERNS);
    }
  }
  ck_assert_uint_gt(rows, 40);
}

START_TEST(atoms_are_plain_operations_in_lane_order)
{
  w->block.cluster = _i != 0 ? w->cluster : NULL;
  /* The cluster has one block, so no address refers to another block. */
  if (_i == 0) {
    w->block.cluster_size = 1;
    memset(w->other, 0, sizeof w->other);
    memset(w->other_model, 0, sizeof w->other_model);
    w->alone = true;
  }
  try_rows("atom_", 3);
}
END_TEST

START_TEST(reds_are_atoms_without_results)
{
  try_rows("red_", 3);
}
END_TEST

/* ---- Order of lanes ------------------------------------------------------ */

START_TEST(a_seed_permutes_lanes)
{
  unsigned different = 0;
  shape s;

  make_shape(&s, KILN__OP_atom_add, 0);
  s.in.type = KILN__U32;
  s.in.space = KILN__SPACE_GLOBAL;
  s.in.d = world_slot(SLOT_D);
  s.in.b = world_slot(SLOT_B);
  s.in.a = -1;
  s.in.imm = (int64_t)w->range[0].first;
  world_mask(w, UINT32_MAX);
  for (unsigned seed = 0; seed < 64; seed++) {
    uint32_t seen = 0;
    bool in_order = true;

    memset(w->range[0].host, 0, 4);
    w->grid.seed = seed;
    for (unsigned i = 0; i < 32; i++)
      world_put(w, s.in.b, 4, i, 1);
    world_run(w, cpu_isas[seed % n_isas], &s.in, KILN__FAULT_NONE, 0, 0, "add");
    for (unsigned i = 0; i < 32; i++) {
      const uint64_t old = world_read(w->frame, s.in.d, 4, i);

      ck_assert_uint_lt(old, 32);
      seen |= UINT32_C(1) << old;
      in_order &= old == i;
    }
    ck_assert_uint_eq(seen, UINT32_MAX);
    ck_assert(in_order || seed != 0);
    different += !in_order;
  }
  ck_assert_uint_gt(different, 50);
}
END_TEST

/* ---- Atomics from several host threads ----------------------------------- */

enum { N_THREADS = 4, N_TIMES = 40000 };

typedef struct hammer {
  pthread_t thread;
  pthread_barrier_t *start;
  /* The warp and its registers are private to this thread; the memory is
   * shared. */
  world *own;
  const kiln__cpu_isa *isa;
  kiln__cpu_insn in;
  uint64_t sum; /* sum of the values that exchanges returned */
} hammer;

static void *strike(void *user)
{
  hammer *h = user;
  world *const own = h->own;

  (void)pthread_barrier_wait(h->start);
  for (unsigned t = 0; t < N_TIMES; t++) {
    for (unsigned i = 0; i < 32; i++) {
      /* In even rounds, all lanes access one word. In odd rounds, the lanes
       * access four words. */
      world_put(own, h->in.a, 8, i,
                w->range[0].first + (t % 2 == 0 ? 0 : (i % 4) * 8));
      world_put(own, h->in.b, 8, i,
                h->in.sub == 6 ? t * UINT64_C(32) + i : i + 1);
    }
    h->isa->handlers[h->in.op](&own->warp, &h->in);
    for (unsigned i = 0; h->in.d >= 0 && i < 32; i++)
      h->sum += world_read(own->frame, h->in.d, 8, i);
  }
  return NULL;
}

static uint64_t strike_together(kiln__cpu_op op, kiln__cpu_ptx_type type,
                                uint8_t sub)
{
  pthread_barrier_t start;
  hammer h[N_THREADS];
  uint64_t sum = 0;

  ck_assert_int_eq(pthread_barrier_init(&start, NULL, N_THREADS), 0);

  memset(w->range[0].host, 0, 64);
  for (unsigned k = 0; k < N_THREADS; k++) {
    h[k] = (hammer){.start = &start,
                    .isa = cpu_isas[k % n_isas],
                    .in = {.op = (uint16_t)op,
                           .type = (uint8_t)type,
                           .sub = sub,
                           .space = KILN__SPACE_GLOBAL,
                           .flags = KILN__WIDE_A,
                           .a = world_slot(SLOT_A),
                           .b = world_slot(SLOT_B),
                           .c = -1,
                           .d = sub == 6 ? world_slot(SLOT_D) : -1}};
    h[k].own = aligned_alloc(64, (sizeof *w + 63) / 64 * 64);
    ck_assert_ptr_nonnull(h[k].own);
    memcpy(h[k].own, w, sizeof *w);
    h[k].own->warp.regs = h[k].own->frame;
    h[k].own->warp.tally = h[k].own->tally;
    world_mask(h[k].own, UINT32_MAX);
    ck_assert_int_eq(pthread_create(&h[k].thread, NULL, strike, &h[k]), 0);
  }
  for (unsigned k = 0; k < N_THREADS; k++) {
    pthread_join(h[k].thread, NULL);
    sum += h[k].sum;
    free(h[k].own);
  }
  pthread_barrier_destroy(&start);
  return sum;
}

START_TEST(threads_lose_nothing)
{
  const uint64_t rounds = (uint64_t)N_THREADS * N_TIMES;
  uint64_t word[4];
  double real[4];
  uint64_t sum;

  (void)strike_together(KILN__OP_red_add, KILN__U64, 3);
  memcpy(word, w->range[0].host, sizeof word);
  ck_assert_uint_eq(word[0] + word[1] + word[2] + word[3],
                    rounds * (32 * 33 / 2));
  (void)strike_together(KILN__OP_red_add_f64, KILN__F64, 3);
  memcpy(real, w->range[0].host, sizeof real);
  /* The integers 1 to 32 are used as bit patterns of f64. Their values are
   * multiples of 2^-1074, so all sums are exact. */
  ck_assert(real[0] + real[1] + real[2] + real[3] ==
            (double)(rounds * (32 * 33 / 2)) * 0x1p-1074);
  /* Every stored value was either returned by an exchange or is still in
   * memory. */
  sum = strike_together(KILN__OP_atom_exch, KILN__B64, 6);
  memcpy(word, w->range[0].host, sizeof word);
  sum += word[0] + word[1] + word[2] + word[3];
  ck_assert_uint_eq(sum, (uint64_t)N_THREADS * (N_TIMES * UINT64_C(32)) *
                             (N_TIMES * UINT64_C(32) - 1) / 2);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_atomic");
  TCase *t = kiln_test_case(s, "atomic", 120, setup, teardown,
                            TESTS(reds_are_atoms_without_results,
                                  a_seed_permutes_lanes, threads_lose_nothing));

  tcase_add_loop_test(t, atoms_are_plain_operations_in_lane_order, 0, 2);
  return kiln_test_run(s);
}
