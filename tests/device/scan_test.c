/* scan_test.c -- kiln_scan: every type, any length and alignment, operations by
 * name and by text, maps, in place, initial values and totals; the same bits in
 * every run; and what is wrong with a call. */
#include "ops_fixture.h"

#include <kiln/scan.h>

/* ---- References ------------------------------------------------------------------ */

typedef int64_t (*fold)(int64_t a, int64_t b);

static int64_t add(int64_t a, int64_t b)
{
  return a + b;
}

/* A whole number as an element of a type. */
static double as_element(kiln_dtype type, int64_t v)
{
  unsigned char bits[8];

  set_whole(type, bits, 0, v);
  return value_at(type, bits, 0);
}

/* Small enough that every prefix is exact: f16 has 11 bits, bf16 8. */
static int64_t *small_wholes(size_t n, uint64_t *state)
{
  int64_t *v = malloc((n + 1) * sizeof *v);
  int64_t sum = 0;

  ck_assert_ptr_nonnull(v);
  for (size_t i = 0; i < n; i++) {
    v[i] = (int64_t)(test_random(state) % 41) - 20;
    if (sum + v[i] > 100 || sum + v[i] < -100)
      v[i] = -v[i];
    sum += v[i];
  }
  return v;
}

static void *elements(kiln_dtype type, const int64_t *v, size_t n)
{
  void *x = malloc((n + 1) * 8);

  ck_assert_ptr_nonnull(x);
  for (size_t i = 0; i < n; i++)
    set_whole(type, x, i, v[i]);
  return x;
}

static void ck_scan(kiln_dtype type, const void *got, const int64_t *x,
                    size_t n, fold op, int64_t start, bool exclusive)
{
  int64_t sum = start;

  for (size_t i = 0; i < n; i++) {
    const int64_t next = op(sum, x[i]);
    const double want = as_element(type, exclusive ? sum : next);

    ck_assert_msg(value_at(type, got, i) == want, "%s: [%zu] is %g, not %g",
                  kiln_dtype_name(type), i, value_at(type, got, i), want);
    sum = next;
  }
}

/* ---- Every type, length, alignment ------------------------------------------------- */

static void run_one(kiln_dtype type, size_t n, size_t shift_in,
                    size_t shift_out, bool exclusive, uint64_t *state)
{
  int64_t *v = small_wholes(n, state);
  void *x = elements(type, v, n);
  test_array in = array_make(type, n, shift_in, x, 0);
  test_array out = array_make(type, n, shift_out, NULL, 0x5a);
  const kiln_scan_desc desc = {.x = {.in = {in.array}},
                               .n = n,
                               .out = out.array,
                               .exclusive = exclusive};
  void *got;

  ck_kiln_ok(kiln_scan(stream, &desc, NULL));
  got = array_read(&out);
  ck_scan(type, got, v, n, add, 0, exclusive);
  free(got);
  free(x);
  free(v);
  array_free(&in);
  array_free(&out);
}

START_TEST(test_types)
{
  static const size_t lengths[] = {0,   1,    31,   32,   33,   895,  896,
                                   897, 1000, 3583, 3584, 3585, 7919, 30011};
  uint64_t state = (uint64_t)_i + 1;

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
    run_one(all_types[_i], lengths[k], k % 3 == 2, k % 5 == 3, k % 2 == 1,
            &state);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("scan");
  TCase *t = tcase_create("scan");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  suite_add_tcase(s, t);
  return s;
}

DEVICE_TEST_MAIN(suite)
