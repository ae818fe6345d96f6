/* memory_test.c -- tests the address space of the CPU device and its list of
 * pending copies. */
#include "support.h"

#include "cpu/memory/address_space.h"
#include "cpu/memory/pending_copies.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static test_allocator memory;
static kiln__cpu_memory *map;

static void setup(void)
{
  test_allocator_init(&memory);
  ck_kiln_ok(kiln__cpu_memory_create(&map, &memory.alloc));
}

static void teardown(void)
{
  kiln__cpu_memory_free(map);
  ck_assert_int_eq(memory.live, 0);
}

static kiln__cpu_range add(kiln__cpu_range_kind kind, int device, uint64_t size,
                           uint64_t align)
{
  kiln__cpu_range r = {.kind = kind, .device = device};

  ck_kiln_ok(kiln__cpu_memory_add(map, &r, size, align));
  ck_assert_uint_eq(r.last - r.first, size);
  ck_assert_ptr_nonnull(r.host);
  return r;
}

/* ---- Addresses ----------------------------------------------------------- */

START_TEST(ranges_have_exact_bounds)
{
  static const uint64_t sizes[] = {1,    3,     31,    512,     513,
                                   4097, 65535, 65536, 1 << 20, 100000001};

  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const kiln__cpu_range r = add(KILN__RANGE_DEVICE, 0, sizes[i], 0);
    kiln__cpu_range found;

    ck_assert_uint_eq(r.first % 512, 0);
    ck_assert_uint_eq((uintptr_t)r.host % 64, 0);
    ck_assert_uint_ge(r.first, KILN__DEVICE_BASE);
    ck_assert(kiln__cpu_memory_find(map, r.first, &found));
    ck_assert_uint_eq(found.number, r.number);
    ck_assert(kiln__cpu_memory_find(map, r.last - 1, &found));
    ck_assert_uint_eq(found.first, r.first);
    ck_assert(!kiln__cpu_memory_find(map, r.last, &found));
    ck_assert(!kiln__cpu_memory_find(map, r.last + 255, &found));
    ck_assert(!kiln__cpu_memory_find(map, r.first - 1, &found));
    ck_assert(!kiln__cpu_memory_find(map, r.first - 256, &found));
    ck_assert_ptr_eq(kiln__cpu_memory_host(map, r.first, r.last - r.first),
                     r.host);
    ck_assert_ptr_null(
        kiln__cpu_memory_host(map, r.first, r.last - r.first + 1));
    ck_assert_ptr_null(kiln__cpu_memory_host(map, r.first - 1, 1));
    ck_assert_ptr_eq(kiln__cpu_memory_host(map, r.last - 1, 1),
                     r.host + (r.last - r.first - 1));
    ck_assert_uint_eq(r.host[0], 0);
    ck_assert_uint_eq(r.host[sizes[i] - 1], 0);
    memset(r.host, 0xa5, sizes[i]);
  }
}
END_TEST

START_TEST(host_memory_keeps_its_address)
{
  enum { MINE = 1000 };
  static uint8_t bytes[1 + MINE];
  uint8_t *const mine = bytes + 1;
  kiln__cpu_range r = {.kind = KILN__RANGE_HOST, .device = -1, .host = mine};
  kiln__cpu_range again = {
      .kind = KILN__RANGE_HOST, .device = -1, .host = mine + MINE - 1};
  kiln__cpu_range own;

  ck_kiln_ok(kiln__cpu_memory_add(map, &r, MINE, 0));
  ck_assert_uint_eq(r.first, (uint64_t)(uintptr_t)mine);
  ck_kiln_is(kiln__cpu_memory_add(map, &again, 1, 0), KILN_EINVAL);
  again.host = mine - 1;
  ck_kiln_is(kiln__cpu_memory_add(map, &again, 2, 0), KILN_EINVAL);
  own = add(KILN__RANGE_MANAGED, 0, 100, 0);
  ck_assert_uint_eq(own.first, (uint64_t)(uintptr_t)own.host);
  ck_assert(kiln__cpu_memory_remove(map, r.first));
  /* The memory still belongs to the test, so the write is valid. */
  mine[0] = 1;
}
END_TEST

START_TEST(devices_have_places_of_their_own)
{
  for (int d = 0; d < 16; d++) {
    const kiln__cpu_range r = add(KILN__RANGE_DEVICE, d, 1 << 16, 0);

    ck_assert_uint_eq((r.first - KILN__DEVICE_BASE) >> 40, (unsigned)d);
    ck_assert_int_eq(r.device, d);
  }
}
END_TEST

/* Allocates more than one terabyte in total, but frees each allocation before
 * the next. */
START_TEST(addresses_come_back_late)
{
  const kiln__cpu_range stays = add(KILN__RANGE_DEVICE, 0, 1000, 0);
  uint64_t first = 0, last = 0;
  bool wrapped = false;

  for (int i = 0; i < 300; i++) {
    const kiln__cpu_range r =
        add(KILN__RANGE_DEVICE, 0, UINT64_C(7) << 30, 1 << 16);

    if (i == 0)
      first = r.first;
    else if (i < 140)
      ck_assert_uint_gt(r.first, last);
    wrapped |= i > 0 && r.first < last;
    ck_assert_uint_eq(r.first % (1 << 16), 0);
    ck_assert(r.first >= stays.last + 256 || r.last + 256 <= stays.first);
    last = r.first;
    ck_assert(kiln__cpu_memory_remove(map, r.first));
  }
  ck_assert(wrapped);
  ck_assert_uint_ne(first, 0);
}
END_TEST

START_TEST(freed_ranges_are_remembered)
{
  const kiln__cpu_range a = add(KILN__RANGE_DEVICE, 0, 1000, 0);
  const kiln__cpu_range b = add(KILN__RANGE_DEVICE, 0, 2000, 0);
  const kiln__cpu_range c = add(KILN__RANGE_DEVICE, 0, 3000, 0);
  kiln__cpu_nearby near;

  ck_assert(kiln__cpu_memory_remove(map, b.first));
  ck_assert(!kiln__cpu_memory_remove(map, b.first));
  ck_assert(!kiln__cpu_memory_remove(map, a.first + 1));
  kiln__cpu_memory_near(map, b.first + 1999, &near);
  ck_assert(near.was_freed && near.has_below && near.has_above);
  ck_assert_uint_eq(near.freed.number, b.number);
  ck_assert_uint_eq(near.below.number, a.number);
  ck_assert_uint_eq(near.above.number, c.number);
  kiln__cpu_memory_near(map, b.last, &near);
  ck_assert(!near.was_freed);
  kiln__cpu_memory_near(map, 0, &near);
  ck_assert(!near.has_below && near.has_above);
  ck_assert_uint_eq(near.above.number, a.number);
  kiln__cpu_memory_near(map, UINT64_MAX, &near);
  ck_assert(near.has_below && !near.has_above);
  ck_assert_uint_eq(near.below.number, c.number);
}
END_TEST

START_TEST(bytes_live_as_long_as_launches)
{
  const kiln__cpu_range small = add(KILN__RANGE_DEVICE, 0, 1000, 0);
  const kiln__cpu_range big = add(KILN__RANGE_DEVICE, 0, 1 << 20, 0);
  const uint64_t epoch = kiln__cpu_memory_epoch(map);

  kiln__cpu_memory_enter(map);
  kiln__cpu_memory_enter(map);
  ck_assert(kiln__cpu_memory_remove(map, small.first));
  ck_assert(kiln__cpu_memory_remove(map, big.first));
  ck_assert_uint_ne(kiln__cpu_memory_epoch(map), epoch);
  /* A sanitizer would report this write if the memory had been freed. */
  small.host[999] = 1;
  big.host[(1 << 20) - 1] = 1;
  kiln__cpu_memory_leave(map);
  small.host[0] = 1;
  big.host[0] = 1;
  kiln__cpu_memory_leave(map);
  ck_assert_ptr_null(kiln__cpu_memory_host(map, big.first, 1));
}
END_TEST

START_TEST(bad_sizes_are_refused)
{
  kiln__cpu_range r = {.kind = KILN__RANGE_DEVICE};

  ck_kiln_is(kiln__cpu_memory_add(map, &r, 0, 0), KILN_EINVAL);
  ck_kiln_is(kiln__cpu_memory_add(map, &r, UINT64_MAX, 0), KILN_ENOMEM);
  ck_kiln_is(kiln__cpu_memory_add(map, &r, UINT64_C(1) << 60, 0), KILN_ENOMEM);
  /* The allocation must fail, because the guard gaps around it do not fit. */
  ck_kiln_is(kiln__cpu_memory_add(map, &r, (UINT64_C(1) << 40) - 100, 0),
             KILN_ENOMEM);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
  bool failed = true;

  for (long n = 0; failed; n++) {
    kiln__cpu_range r = {.kind = KILN__RANGE_DEVICE};
    kiln_status st = KILN_OK;

    memory.fail_at = memory.calls + n;
    for (int i = 0; i < 70 && st == KILN_OK; i++) {
      r = (kiln__cpu_range){.kind = KILN__RANGE_DEVICE};
      st = kiln__cpu_memory_add(map, &r, 100, 0);
      if (st == KILN_OK && i == 35)
        st = kiln__cpu_memory_keep_valid(map, true);
    }
    ck_assert(st == KILN_OK || st == KILN_ENOMEM);
    failed = st != KILN_OK;
    ck_assert_int_lt(n, 1000);
  }
}
END_TEST

/* ---- Comparison with a simple model -------------------------------------- */

enum { N_MODEL = 200 };

START_TEST(a_random_life_is_a_plain_list)
{
  uint64_t seed = 12345 + (uint64_t)_i;
  kiln__cpu_range model[N_MODEL];
  size_t n = 0;

  for (int step = 0; step < 4000; step++) {
    const uint64_t what = test_random(&seed);

    if (n < N_MODEL && (what % 5 < 2 || n == 0)) {
      const uint64_t align = UINT64_C(1) << test_random(&seed) % 14;
      const kiln__cpu_range r = add(KILN__RANGE_DEVICE, (int)(what % 3),
                                    1 + test_random(&seed) % 5000, align);

      ck_assert_uint_eq(r.first % align, 0);
      for (size_t i = 0; i < n; i++)
        ck_assert(r.first >= model[i].last + 256 ||
                  r.last + 256 <= model[i].first);
      model[n++] = r;
    } else if (what % 5 == 4) {
      const size_t i = test_random(&seed) % n;

      ck_assert(kiln__cpu_memory_remove(map, model[i].first));
      model[i] = model[--n];
    } else if (n > 0) {
      const kiln__cpu_range *r = &model[test_random(&seed) % n];
      const uint64_t at = r->first - 300 + test_random(&seed) % 6000;
      kiln__cpu_range found;
      const kiln__cpu_range *want = NULL;

      for (size_t i = 0; i < n; i++) {
        if (model[i].first <= at && at < model[i].last)
          want = &model[i];
      }
      ck_assert_int_eq(kiln__cpu_memory_find(map, at, &found), want != NULL);
      if (want != NULL)
        ck_assert_uint_eq(found.number, want->number);
    }
  }
}
END_TEST

static void count_one(void *user, const kiln__cpu_range *range)
{
  uint64_t *last = user;

  ck_assert_uint_ge(range->first, last[0]);
  last[0] = range->last;
  last[1]++;
  ck_assert(kiln__cpu_memory_remove(map, range->first));
}

START_TEST(each_goes_upwards_and_allows_removal)
{
  uint64_t seen[2] = {0, 0};

  for (int i = 0; i < 50; i++)
    (void)add(KILN__RANGE_DEVICE, 15 - i % 16, 100, 0);
  kiln__cpu_memory_each(map, count_one, seen);
  ck_assert_uint_eq(seen[1], 50);
  seen[0] = seen[1] = 0;
  kiln__cpu_memory_each(map, count_one, seen);
  ck_assert_uint_eq(seen[1], 0);
}
END_TEST

/* ---- Threads ------------------------------------------------------------- */

typedef struct looker {
  pthread_t thread;
  kiln__cpu_range stays;
  atomic_bool *stop;
  unsigned wrong;
} looker;

static void *look(void *user)
{
  looker *l = user;
  uint64_t seed = l->stays.number;

  while (!atomic_load(l->stop)) {
    const uint64_t size = l->stays.last - l->stays.first;
    kiln__cpu_range r;

    kiln__cpu_memory_enter(map);
    if (!kiln__cpu_memory_find(map, l->stays.first + test_random(&seed) % size,
                               &r) ||
        r.number != l->stays.number)
      l->wrong++;
    if (kiln__cpu_memory_find(
            map, KILN__DEVICE_BASE + test_random(&seed) % 300000, &r))
      /* The memory must not be freed between the calls of enter and leave. */
      (void)*(volatile uint8_t *)r.host;
    kiln__cpu_memory_leave(map);
  }
  return NULL;
}

START_TEST(look_ups_and_changes_at_once)
{
  atomic_bool stop = false;
  looker lookers[3];
  kiln__cpu_range r[64];
  uint64_t seed = 99;

  for (int i = 0; i < 3; i++) {
    lookers[i] =
        (looker){.stays = add(KILN__RANGE_DEVICE, 0, 777, 0), .stop = &stop};
    ck_assert_int_eq(
        pthread_create(&lookers[i].thread, NULL, look, &lookers[i]), 0);
  }
  for (int i = 0; i < 64; i++)
    r[i] = add(KILN__RANGE_DEVICE, 0, 1000, 0);
  for (int step = 0; step < 3000; step++) {
    const size_t i = test_random(&seed) % 64;

    ck_assert(kiln__cpu_memory_remove(map, r[i].first));
    r[i] = add(KILN__RANGE_DEVICE, 0, 1 + test_random(&seed) % 2000, 0);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < 3; i++) {
    pthread_join(lookers[i].thread, NULL);
    ck_assert_uint_eq(lookers[i].wrong, 0);
  }
}
END_TEST

/* ---- Validity ------------------------------------------------------------ */

static bool is_valid(const kiln__cpu_range *r, uint64_t i)
{
  return (r->valid[i / 8] >> (i % 8) & 1) != 0;
}

START_TEST(validity_follows_writes_and_copies)
{
  enum { N = 300 };
  const kiln__cpu_range early = add(KILN__RANGE_DEVICE, 0, 100, 0);
  kiln__cpu_range a, b, v, found;
  bool model[2][N] = {{false}};
  uint64_t seed = 5;

  ck_kiln_ok(kiln__cpu_memory_keep_valid(map, true));
  ck_assert(kiln__cpu_memory_find(map, early.first, &found));
  ck_assert(is_valid(&found, 99));
  v = add(KILN__RANGE_GLOBAL, 0, 10, 0);
  ck_assert(is_valid(&v, 9));
  a = add(KILN__RANGE_DEVICE, 0, N, 0);
  b = add(KILN__RANGE_DEVICE, 0, N, 0);
  for (int step = 0; step < 500; step++) {
    const uint64_t at = test_random(&seed) % N, to = test_random(&seed) % N;
    const uint64_t most = N - (at > to ? at : to);
    const uint64_t n = test_random(&seed) % (most < 40 ? most + 1 : 40);
    const unsigned from = test_random(&seed) % 2, into = test_random(&seed) % 2;
    const kiln__cpu_range *const r[2] = {&a, &b};
    bool copy[N];

    memcpy(copy, model[from], sizeof copy);
    if (step % 7 == 0) {
      kiln__cpu_memory_written(map, r[into]->first + to, n);
      memset(&model[into][to], true, n);
    } else if (step % 13 == 0) {
      kiln__cpu_memory_copied(map, r[into]->first + to, early.first,
                              n < 100 ? n : 100);
      memset(&model[into][to], true, n);
    } else {
      kiln__cpu_memory_copied(map, r[into]->first + to, r[from]->first + at, n);
      memcpy(&model[into][to], copy + at, n * sizeof(bool));
    }
    for (uint64_t i = 0; i < N; i++) {
      ck_assert_int_eq(is_valid(&a, i), model[0][i]);
      ck_assert_int_eq(is_valid(&b, i), model[1][i]);
    }
  }
}
END_TEST

START_TEST(a_shadow_is_given_once)
{
  const kiln__cpu_range r = add(KILN__RANGE_DEVICE, 0, 100, 0);
  int one, two;

  ck_assert_ptr_eq(kiln__cpu_memory_set_shadow(map, r.first, &one), &one);
  ck_assert_ptr_eq(kiln__cpu_memory_set_shadow(map, r.first, &two), &one);
  ck_assert_ptr_null(kiln__cpu_memory_set_shadow(map, r.first + 1, &two));
}
END_TEST

/* ---- Pending copies ------------------------------------------------------ */

typedef struct heard {
  uint32_t lanes;
  unsigned times;
} heard;

static void hear(void *user, const kiln__cpu_async_copy *copy, uint32_t lanes)
{
  heard *h = user;

  (void)copy;
  h->lanes |= lanes;
  h->times++;
}

/* A simple model of pending copies: one list of all copies, each with the
 * number of its lane. */
typedef struct model_copy {
  unsigned lane, group, to, from, size;
  bool done;
} model_copy;

START_TEST(copies_happen_at_their_waits)
{
  enum { BYTES = 4096 };
  uint64_t seed = 4711 + (uint64_t)_i;
  static uint8_t from[BYTES], to[BYTES], want[BYTES];
  static model_copy list[32 * 400];
  size_t n = 0;
  unsigned group[32] = {0};
  kiln__cpu_copies *c = kiln__cpu_copies_create(&memory.alloc);

  for (int i = 0; i < BYTES; i++)
    from[i] = (uint8_t)test_random(&seed);
  memset(to, 0x55, sizeof to);
  memset(want, 0x55, sizeof want);
  for (int step = 0; step < 400; step++) {
    const uint32_t mask = (uint32_t)test_random(&seed);
    const unsigned keep = (unsigned)(test_random(&seed) % 3);
    const bool all = test_random(&seed) % 8 == 0;
    kiln__cpu_async_copy copy = {.mask = mask, .bytes = 16};
    heard h = {0, 0};

    switch (test_random(&seed) % 4) {
    case 0:
    case 1:
      for (unsigned l = 0; l < 32; l++) {
        const unsigned a = (unsigned)(test_random(&seed) % (BYTES - 16));
        const unsigned b = (unsigned)(test_random(&seed) % (BYTES - 16));
        const unsigned size = (unsigned)(test_random(&seed) % 17);

        copy.from[l] = from + a;
        copy.to[l] = to + b;
        copy.size[l] = (uint8_t)size;
        if ((mask >> l & 1) != 0)
          list[n++] = (model_copy){l, group[l], b, a, size, false};
      }
      ck_assert(kiln__cpu_copies_add(c, &copy));
      break;
    case 2:
      kiln__cpu_copies_commit(c, mask);
      for (unsigned l = 0; l < 32; l++)
        group[l] += mask >> l & 1;
      break;
    default:
      kiln__cpu_copies_wait(c, mask, keep, all, hear, &h);
      ck_assert_uint_eq(h.lanes & ~mask, 0);
      for (size_t k = 0; k < n; k++) {
        model_copy *m = &list[k];

        if (m->done || (mask >> m->lane & 1) == 0 ||
            !(all || m->group + keep < group[m->lane]))
          continue;
        m->done = true;
        ck_assert((h.lanes >> m->lane & 1) != 0);
        memcpy(want + m->to, from + m->from, m->size);
        memset(want + m->to + m->size, 0, 16 - m->size);
      }
    }
    ck_assert_mem_eq(to, want, sizeof to);
  }
  kiln__cpu_copies_free(c);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_memory");
  TCase *t = kiln_test_case(
      s, "memory", 60, setup, teardown,
      TESTS(ranges_have_exact_bounds, host_memory_keeps_its_address,
            devices_have_places_of_their_own, addresses_come_back_late,
            freed_ranges_are_remembered, bytes_live_as_long_as_launches,
            bad_sizes_are_refused, every_allocation_may_fail,
            each_goes_upwards_and_allows_removal, look_ups_and_changes_at_once,
            validity_follows_writes_and_copies, a_shadow_is_given_once));

  tcase_add_loop_test(t, a_random_life_is_a_plain_list, 0, 4);
  tcase_add_loop_test(t, copies_happen_at_their_waits, 0, 8);
  return kiln_test_run(s);
}
