/* async_test.c -- tests asynchronous copies, barriers in shared memory
 * (mbarrier), and instructions that query addresses. */
#include "world.h"

/* Creates an instruction. The operands are numbers of register slots; -1 means
 * that there is no operand. */
static kiln__cpu_insn make_insn(const char *opcode, int d, int a, int b, int c)
{
  cpu_case k;

  cpu_case_init(&k, opcode);
  k.in.d = d < 0 ? -1 : world_slot((unsigned)d);
  k.in.a = a < 0 ? -1 : world_slot((unsigned)a);
  k.in.b = b < 0 ? -1 : world_slot((unsigned)b);
  k.in.c = c < 0 ? -1 : world_slot((unsigned)c);
  k.in.d2 = k.in.e = k.in.guard = -1;
  return k.in;
}

static void run(const kiln__cpu_isa *isa, const kiln__cpu_insn *in)
{
  world_run(w, isa, in, KILN__FAULT_NONE, 0, 0, "insn");
}

/* ---- Asynchronous copies ------------------------------------------------- */

enum { DESTINATION = 1, SOURCE = 2, SIZE = 3 };

static kiln__cpu_insn copy_insn(const char *opcode, unsigned bytes)
{
  kiln__cpu_insn in = make_insn(opcode, -1, DESTINATION, SOURCE, -1);

  in.bytes = (uint8_t)bytes;
  in.flags |= KILN__WIDE_B;
  return in;
}

static void put_copy(unsigned lane, uint64_t to, uint64_t from)
{
  world_put(w, world_slot(DESTINATION), 4, lane, to);
  world_put(w, world_slot(SOURCE), 8, lane, from);
}

START_TEST(copies_wait_for_their_wait)
{
  const kiln__cpu_insn commit =
      make_insn("cp.async.commit_group", -1, -1, -1, -1);
  const kiln__cpu_insn all = make_insn("cp.async.wait_all", -1, -1, -1, -1);
  kiln__cpu_insn wait = make_insn("cp.async.wait_group", -1, -1, -1, -1);
  const kiln__cpu_insn copy = copy_insn("cp.async.ca.shared.global", 4);

  for (unsigned n = 0; n < n_isas; n++) {
    const kiln__cpu_isa *isa = cpu_isas[n];

    world_mask(w, UINT32_MAX);
    for (unsigned group = 0; group < 3; group++) {
      for (unsigned i = 0; i < 32; i++)
        put_copy(i, group * 128 + i * 4,
                 w->range[0].first + group * 1000 + i * 4);
      run(isa, &copy);
      run(isa, &commit);
    }
    memcpy(w->frame_model, w->frame, WORLD_FRAME);
    world_compare(w, "asked for");
    wait.imm = 2;
    run(isa, &wait);
    memcpy(w->shared_model, w->model[0], 128);
    world_compare(w, "one group");
    world_mask(w, 0xffff);
    wait.imm = 0;
    run(isa, &wait);
    memcpy(w->shared_model + 128, w->model[0] + 1000, 64);
    memcpy(w->shared_model + 256, w->model[0] + 2000, 64);
    world_compare(w, "half of the lanes");
    world_mask(w, UINT32_MAX);
    for (unsigned i = 0; i < 32; i++)
      put_copy(i, 384 + i * 4, w->range[0].first + i * 4);
    run(isa, &copy);
    memcpy(w->frame_model, w->frame, WORLD_FRAME);
    /* Waiting has no effect, because the copy belongs to no group yet. */
    run(isa, &wait);
    memcpy(w->shared_model + 192, w->model[0] + 1064, 64);
    memcpy(w->shared_model + 320, w->model[0] + 2064, 64);
    world_compare(w, "without a group");
    run(isa, &all);
    memcpy(w->shared_model + 384, w->model[0], 128);
    world_compare(w, "all");
    world_fill(w, w->shared, w->shared_model, sizeof w->shared);
  }
}
END_TEST

START_TEST(copies_read_as_much_as_they_say)
{
  const kiln__cpu_insn all = make_insn("cp.async.wait_all", -1, -1, -1, -1);

  for (unsigned n = 0; n < n_isas * 8; n++) {
    const kiln__cpu_isa *isa = cpu_isas[n / 8];
    const bool ignores = n % 2 != 0;
    kiln__cpu_insn in =
        copy_insn(ignores ? "cp_async_cg_ignore cp.async.cg.shared.global"
                          : "cp_async_ca_size cp.async.ca.shared.global",
                  16);

    in.c = world_slot(SIZE);
    if (n % 4 == 3)
      in.flags |= KILN__NEGATE_B;
    world_mask(w, UINT32_MAX);
    for (unsigned i = 0; i < 32; i++) {
      const uint64_t size = test_random(&w->seed) % 20;
      const bool ignored =
          ignores ? (size % 2 != 0) != (n % 4 == 3) : size == 0;
      const unsigned read = ignores     ? ignored ? 0 : 16
                            : size > 16 ? 16
                                        : (unsigned)size;
      /* A lane that reads nothing may have an invalid address. A lane that
       * reads one byte reads the last byte of memory range 2. */
      const uint64_t from = read == 0   ? 12345
                            : read == 1 ? w->range[2].first + 32
                                        : w->range[0].first + 16 * i;
      const uint8_t *bytes =
          read == 1 ? w->model[2] + 32 : w->model[0] + 16 * i;

      put_copy(i, i * 16, from);
      world_put(w, in.c, 4, i,
                ignores ? (size % 2 != 0 ? UINT32_MAX : 0) : size);
      memset(w->shared_model + i * 16, 0, 16);
      memcpy(w->shared_model + i * 16, bytes, read);
    }
    memcpy(w->frame_model, w->frame, WORLD_FRAME);
    run(isa, &in);
    run(isa, &all);
    world_compare(w, "sizes");
  }
}
END_TEST

START_TEST(copies_fault_when_asked_for)
{
  for (unsigned n = 0; n < n_isas; n++) {
    kiln__cpu_insn in = copy_insn("cp.async.ca.shared.global", 8);

    world_mask(w, UINT32_MAX);
    for (unsigned i = 0; i < 32; i++)
      put_copy(i, i * 8, w->range[0].first + i * 8);
    put_copy(7, 56, w->range[0].last - 4);
    world_run(w, cpu_isas[n], &in, KILN__FAULT_MISALIGNED, 7,
              w->range[0].last - 4, "source");
    put_copy(7, 56, w->range[0].last);
    world_run(w, cpu_isas[n], &in, KILN__FAULT_ADDRESS, 7, w->range[0].last,
              "source");
    put_copy(7, 2032, w->range[0].first);
    world_run(w, cpu_isas[n], &in, KILN__FAULT_ADDRESS, 7, 2032, "shared");
    put_copy(7, 44, w->range[0].first);
    world_run(w, cpu_isas[n], &in, KILN__FAULT_MISALIGNED, 7, 44, "shared");
    in = copy_insn("cp_async_ca_size cp.async.ca.shared.global", 8);
    in.c = world_slot(SIZE);
    for (unsigned i = 0; i < 32; i++)
      world_put(w, in.c, 4, i, 3);
    put_copy(7, 56, w->range[2].last - 1);
    world_run(w, cpu_isas[n], &in, KILN__FAULT_ADDRESS, 7, w->range[2].last - 1,
              "part");
  }
}
END_TEST

/* ---- Barriers in shared memory ------------------------------------------- */

enum { AT = 1, COUNT = 2, STATE = 3, OVER = 4, TOKEN = 5 };

static const kiln__cpu_isa *isa_now;

static kiln__cpu_insn at_barrier(const char *opcode, int d, int b)
{
  kiln__cpu_insn in = make_insn(opcode, d, -1, b, -1);

  in.imm = 64;
  return in;
}

static void with_count(const char *opcode, int d, uint32_t mask, uint32_t count)
{
  const kiln__cpu_insn in = at_barrier(opcode, d, COUNT);

  for (unsigned i = 0; i < 32; i++)
    world_put(w, world_slot(COUNT), 4, i, count);
  world_mask(w, mask);
  run(isa_now, &in);
}

static void arrive(uint32_t mask)
{
  const kiln__cpu_insn in =
      at_barrier("mbarrier_arrive mbarrier.arrive.shared.b64", STATE, -1);

  world_mask(w, mask);
  run(isa_now, &in);
}

/* Tests the barrier by state. Returns true if the phase to which the state in
 * STATE (lane 0) belongs has ended. */
static bool over(void)
{
  const kiln__cpu_insn in = at_barrier(
      "mbarrier_test_wait mbarrier.test_wait.shared.b64", OVER, STATE);

  world_mask(w, 1);
  run(isa_now, &in);
  return world_read(w->frame, world_slot(OVER), 4, 0) == UINT32_MAX;
}

static bool parity(uint32_t odd)
{
  with_count("mbarrier_try_parity mbarrier.try_wait.parity.shared.b64", OVER, 1,
             odd);
  return world_read(w->frame, world_slot(OVER), 4, 0) == UINT32_MAX;
}

static uint64_t pending(unsigned lane)
{
  kiln__cpu_insn in =
      make_insn("mbarrier.pending_count.b64", TOKEN, STATE, -1, -1);

  world_mask(w, UINT32_MAX);
  run(isa_now, &in);
  return world_read(w->frame, world_slot(TOKEN), 4, lane);
}

START_TEST(phases_end_with_the_last_arrival)
{
  for (unsigned n = 0; n < n_isas; n++) {
    isa_now = cpu_isas[n];
    with_count("mbarrier.init.shared.b64", -1, 1, 40);
    for (unsigned phase = 0; phase < 20; phase++) {
      ck_assert(parity(phase % 2 == 0));
      ck_assert(!parity(phase % 2));
      arrive(0xff);
      ck_assert_uint_eq(pending(0), 40);
      ck_assert_uint_eq(pending(7), 33);
      ck_assert(!over());
      arrive(0xffffff00);
      ck_assert(!over());
      ck_assert_uint_eq(pending(31), 9);
      with_count("mbarrier_arrive mbarrier.arrive.shared.b64", STATE, 2, 7);
      ck_assert_uint_eq(pending(1), 8);
      ck_assert(!over());
      arrive(1);
      ck_assert_uint_eq(pending(0), 1);
      ck_assert(over());
      ck_assert(parity(phase % 2));
      ck_assert(!parity(phase % 2 == 0));
    }
  }
}
END_TEST

START_TEST(who_drops_out_is_not_waited_for)
{
  for (unsigned n = 0; n < n_isas; n++) {
    isa_now = cpu_isas[n];
    with_count("mbarrier.init.shared.b64", -1, 1, 3);
    with_count("mbarrier_arrive_drop mbarrier.arrive_drop.shared.b64", STATE, 1,
               1);
    ck_assert(!over());
    arrive(3);
    /* The state of lane 0 belongs to phase 0, which has ended. */
    ck_assert(over());
    arrive(1);
    ck_assert(!over());
    arrive(2);
    ck_assert(over()); /* Two arrivals complete the phase. */
    arrive(1);
    with_count("mbarrier_arrive_drop mbarrier.arrive_drop.shared.b64", STATE, 1,
               1);
    ck_assert(over());
    arrive(1);
    ck_assert(over()); /* Now one arrival completes the phase. */
  }
}
END_TEST

START_TEST(phases_wait_for_bytes)
{
  for (unsigned n = 0; n < n_isas; n++) {
    isa_now = cpu_isas[n];
    with_count("mbarrier.init.shared.b64", -1, 1, 1);
    for (unsigned phase = 0; phase < 3; phase++) {
      with_count("mbarrier_arrive_expect_tx "
                 "mbarrier.arrive.expect_tx.shared::cta.b64",
                 STATE, 1, 100);
      ck_assert(!over());
      with_count("mbarrier.complete_tx.shared::cta.b64", -1, 1, 60);
      ck_assert(!over());
      with_count("mbarrier.complete_tx.shared::cta.b64", -1, 1, 40);
      ck_assert(over());
      /* Bytes may arrive before a thread announces that the barrier expects
       * them. */
      with_count("mbarrier.complete_tx.shared::cta.b64", -1, 1, 50);
      ck_assert(!parity(1));
      with_count("mbarrier_arrive_expect_tx "
                 "mbarrier.arrive.expect_tx.shared::cta.b64",
                 STATE, 1, 50);
      ck_assert(over());
      ck_assert(parity(1));
      with_count("mbarrier.expect_tx.shared::cta.b64", -1, 1, 8);
      arrive(1);
      ck_assert(!over());
      with_count("mbarrier.complete_tx.shared::cta.b64", -1, 1, 8);
      ck_assert(over());
      with_count("mbarrier.init.shared.b64", -1, 1, 1);
    }
  }
}
END_TEST

START_TEST(copies_arrive)
{
  for (unsigned n = 0; n < n_isas; n++) {
    const kiln__cpu_insn copy = copy_insn("cp.async.ca.shared.global", 4);
    const kiln__cpu_insn counted =
        at_barrier("cp.async.mbarrier.arrive.noinc.shared.b64", -1, -1);
    const kiln__cpu_insn uncounted =
        at_barrier("cp.async.mbarrier.arrive.shared.b64", -1, -1);

    isa_now = cpu_isas[n];
    with_count("mbarrier.init.shared.b64", -1, 1, 32);
    world_mask(w, UINT32_MAX);
    for (unsigned i = 0; i < 32; i++)
      put_copy(i, 1024 + i * 4, w->range[0].first + i * 4);
    run(isa_now, &copy);
    run(isa_now, &uncounted);
    ck_assert(!parity(0));
    ck_assert_mem_eq(w->shared + 1024, w->model[0], 128);
    world_mask(w, UINT32_MAX);
    run(isa_now, &counted);
    ck_assert(parity(0));
  }
}
END_TEST

START_TEST(barriers_are_in_shared_memory_only)
{
  kiln__cpu_insn in =
      make_insn("mbarrier_arrive mbarrier.arrive.b64", STATE, AT, -1, -1);

  in.flags |= KILN__WIDE_A;
  world_mask(w, UINT32_MAX);
  for (unsigned i = 0; i < 32; i++)
    world_put(w, in.a, 8, i, KILN__WINDOW_SHARED + 64);
  run(cpu_isas[0], &in);
  world_put(w, in.a, 8, 9, w->range[0].first);
  world_run(w, cpu_isas[0], &in, KILN__FAULT_SPACE, 9, w->range[0].first,
            "mbarrier");
}
END_TEST

/* ---- Addresses ----------------------------------------------------------- */

START_TEST(spaces_are_told_apart)
{
  static const char *const opcode[] = {
      "isspacep.global",         "isspacep.shared", "isspacep.local",
      "isspacep.const",          "isspacep.param",  "isspacep.shared::cta",
      "isspacep.shared::cluster"};
  const struct {
    uint64_t address;
    unsigned in; /* bit k is the expected result of the instruction opcode[k] */
  } cases[] = {{w->range[0].first, 1},
               {w->range[3].last - 1, 1},
               {12345, 1},
               {w->range[WORLD_CONST].first, 8},
               {w->range[WORLD_CONST].last, 1},
               {KILN__WINDOW_SHARED, 2 | 32 | 64},
               {KILN__WINDOW_SHARED + 2000, 2 | 32 | 64},
               {KILN__WINDOW_SHARED + (1 << 24) + 5, 2 | 32 | 64},
               {KILN__WINDOW_SHARED + (2 << 24) + 5, 64},
               {KILN__WINDOW_LOCAL + 100, 4},
               {KILN__WINDOW_PARAM + 4, 16},
               {KILN__WINDOW_SHARED - 1, 1}};

  for (unsigned k = 0; k < 7 * n_isas; k++) {
    kiln__cpu_insn in = make_insn(opcode[k % 7], 2, 1, -1, -1);

    in.flags |= KILN__WIDE_A;
    world_mask(w, UINT32_MAX);
    for (unsigned i = 0; i < 32; i++)
      world_put(w, in.a, 8, i, cases[i % 12].address);
    run(cpu_isas[k / 7], &in);
    for (unsigned i = 0; i < 12; i++)
      ck_assert_msg(world_read(w->frame, in.d, 4, i) ==
                        ((cases[i].in >> k % 7 & 1) != 0 ? UINT32_MAX : 0),
                    "%s of %llx", opcode[k % 7],
                    (unsigned long long)cases[i].address);
  }
}
END_TEST

START_TEST(blocks_of_a_cluster_see_each_other)
{
  for (unsigned n = 0; n < n_isas; n++) {
    kiln__cpu_insn map = make_insn("mapa.shared::cluster.u32", 3, 1, 2, -1);
    kiln__cpu_insn generic = make_insn("mapa.u64", 4, 5, 2, -1);
    kiln__cpu_insn rank =
        make_insn("getctarank.shared::cluster.u32", 6, 3, -1, -1);
    kiln__cpu_insn of = make_insn("getctarank.u64", 7, 4, -1, -1);
    kiln__cpu_insn load = make_insn("ld.shared::cluster.u32", 8, 3, -1, -1);

    load.bytes = 4;
    load.reg_bytes = 4;
    world_mask(w, UINT32_MAX);
    for (unsigned i = 0; i < 32; i++) {
      world_put(w, map.a, 4, i, i * 4);
      world_put(w, generic.a, 8, i, KILN__WINDOW_SHARED + i * 4);
      world_put(w, map.b, 4, i, i % 2);
    }
    run(cpu_isas[n], &map);
    run(cpu_isas[n], &generic);
    run(cpu_isas[n], &rank);
    run(cpu_isas[n], &of);
    run(cpu_isas[n], &load);
    for (unsigned i = 0; i < 32; i++) {
      uint32_t want;

      memcpy(&want, (i % 2 == 0 ? w->shared : w->other) + i * 4, 4);
      ck_assert_uint_eq(world_read(w->frame, load.d, 4, i), want);
      ck_assert_uint_eq(world_read(w->frame, rank.d, 4, i), i % 2);
      ck_assert_uint_eq(world_read(w->frame, of.d, 4, i), i % 2);
      ck_assert_uint_eq(world_read(w->frame, generic.d, 8, i),
                        KILN__WINDOW_SHARED +
                            world_read(w->frame, map.d, 4, i));
    }
  }
}
END_TEST

START_TEST(hints_and_fences_change_nothing)
{
  static const char *const opcode[] = {
      "prefetch.global.L2", "prefetchu.L1",
      "discard.global.L2",  "applypriority.L2::evict_normal",
      "membar.gl",          "membar.cta",
      "fence.sc.sys",       "fence.acq_rel.cta",
      "fence.proxy.async"};

  world_fill(w, w->frame, w->frame_model, WORLD_FRAME);
  world_mask(w, UINT32_MAX);
  for (unsigned k = 0; k < 9 * n_isas; k++) {
    const kiln__cpu_insn in = make_insn(opcode[k % 9], -1, 1, -1, -1);

    run(cpu_isas[k / 9], &in);
    world_compare(w, opcode[k % 9]);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_async");

  kiln_test_case(
      s, "async", 60, setup, teardown,
      TESTS(copies_wait_for_their_wait, copies_read_as_much_as_they_say,
            copies_fault_when_asked_for, phases_end_with_the_last_arrival,
            who_drops_out_is_not_waited_for, phases_wait_for_bytes,
            copies_arrive, barriers_are_in_shared_memory_only,
            spaces_are_told_apart, blocks_of_a_cluster_see_each_other,
            hints_and_fences_change_nothing));
  return kiln_test_run(s);
}
