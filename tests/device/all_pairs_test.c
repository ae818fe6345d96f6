/* all_pairs_test.c -- kiln_all_pairs: gravity, Coulomb potentials, kernel density
 * estimates and nearest neighbours against references in double, symmetric
 * pairs, several passes, and invalid arguments. */
#include "operation_checks.h"

enum { FIELDS = 4 };

/* Elements with the fields x, y, z and w. */
typedef struct cloud {
  size_t n;
  float *field[FIELDS]; /* host copies */
  test_array a[FIELDS];
} cloud;

static cloud cloud_make(size_t n, size_t shift, uint64_t *state)
{
  cloud c = {.n = n};

  for (int k = 0; k < FIELDS; k++) {
    c.field[k] = kept(malloc((n + 1) * sizeof(float)));
    for (size_t i = 0; i < n; i++)
      c.field[k][i] =
          (float)(test_random(state) >> 40) * 0x1p-24f + (k == 3 ? 0.5f : 0);
    c.a[k] = array_make(KILN_F32, n, shift, c.field[k], 0);
  }
  return c;
}

/* Returns the squared distance, softened by eps2. */
static double distance2(const cloud *t, size_t i, const cloud *s, size_t j,
                        double eps2)
{
  double sum = eps2;

  for (int k = 0; k < 3; k++) {
    const double d = (double)s->field[k][j] - (double)t->field[k][i];

    sum += d * d;
  }
  return sum;
}

/* ---- Sums ---------------------------------------------------------------- */

static const float eps2 = 1e-3f;
static const kiln_param softening[] = {{"eps2", KILN_F32, &eps2, true}};

#define DISTANCE                                                               \
  "const float dx = s.x - t.x, dy = s.y - t.y, dz = s.z - t.z;\n"              \
  "const float r2 = eps2 + dx * dx + dy * dy + dz * dz;\n"                     \
  "const float r = rsqrtf(r2)"

static kiln_all_pairs_desc gravity_of(const cloud *c)
{
  return (kiln_all_pairs_desc){
      .target = {c->a[0].array, c->a[1].array, c->a[2].array, c->a[3].array},
      .n = c->n,
      .common = DISTANCE ", f = s.w * (r * r * r);",
      .expr = {"f * dx", "f * dy", "f * dz"},
      .code = {.params = softening, .n_params = 1, .fast_math = true}};
}

/* The acceleration of body i. Also returns the sum of the magnitudes of its
 * terms, to which rounding errors are relative. */
static double gravity_at(const cloud *c, size_t i, double a[3])
{
  double magnitude = 0;

  a[0] = a[1] = a[2] = 0;
  for (size_t j = 0; j < c->n; j++) {
    const double r2 = distance2(c, i, c, j, (double)eps2);
    const double f = (double)c->field[3][j] / (r2 * sqrt(r2));

    for (int k = 0; k < 3; k++) {
      const double d = (double)c->field[k][j] - (double)c->field[k][i];

      a[k] += f * d;
      magnitude += fabs(f * d);
    }
  }
  return magnitude;
}

/* Compares every step-th acceleration with the reference. The bound allows
 * eight roundings per term and a growth with the square root of n in the
 * sum. */
static void ck_gravity(const cloud *c, const test_array out[3], size_t step)
{
  const double bound = (8 + sqrt((double)c->n)) * 1.2e-7;
  float *got[3];

  for (int k = 0; k < 3; k++)
    got[k] = kept(array_read(&out[k]));
  for (size_t i = 0; i < c->n; i += step) {
    double want[3];
    const double scale = gravity_at(c, i, want);

    for (int k = 0; k < 3; k++)
      ck_assert_msg(fabs((double)got[k][i] - want[k]) <= bound * scale,
                    "n = %zu: a[%d][%zu] is %g, not %g", c->n, k, i,
                    (double)got[k][i], want[k]);
  }
}

static void test_gravity_of(size_t n, size_t shift)
{
  uint64_t state = 5 + n;
  const size_t mark = n_kept;
  const cloud c = cloud_make(n, shift, &state);
  kiln_all_pairs_desc desc = gravity_of(&c);
  test_array out[3];

  for (int k = 0; k < 3; k++) {
    out[k] = array_make(KILN_F32, n, shift, NULL, 0xff);
    desc.out[k] = out[k].array;
  }
  ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
  ck_gravity(&c, out, 1);
  release(mark);
}

START_TEST(test_gravity)
{
  static const size_t lengths[] = {0, 1, 2, 255, 256, 257, 1000, 2050};

  test_gravity_of(lengths[_i], (size_t)_i % 3);
}
END_TEST

/* Potentials at n points of m charges, added to the old contents and scaled by
 * the epilogue with a field of the target. */
START_TEST(test_coulomb)
{
  static const size_t shapes[][2] = {{700, 300}, {3, 5000}, {2000, 1}, {50, 0}};
  const size_t n = shapes[_i][0], m = shapes[_i][1];
  uint64_t state = 9;
  const cloud t = cloud_make(n, 0, &state), s = cloud_make(m, 1, &state);
  const test_array out = array_make(KILN_F32, n, 0, t.field[0], 0);
  kiln_all_pairs_desc desc = {
      .target = {t.a[0].array, t.a[1].array, t.a[2].array, t.a[3].array},
      .source = {s.a[0].array, s.a[1].array, s.a[2].array, s.a[3].array},
      .n = n,
      .m = m,
      .common = DISTANCE,
      .expr = {"s.w * r"},
      .epilogue = {"2 * r0 * t.w + (i == 0)"},
      .out = {out.array},
      .accumulate = true,
      .code = {.params = softening, .n_params = 1}};
  float *got;

  ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < n; i++) {
    double sum = 0, want;

    for (size_t j = 0; j < m; j++)
      sum +=
          (double)s.field[3][j] / sqrt(distance2(&t, i, &s, j, (double)eps2));
    want = (double)t.field[0][i] + 2 * sum * (double)t.field[3][i] + (i == 0);
    ck_assert_msg(fabs((double)got[i] - want) <= 1e-5 * fabs(want),
                  "potential %zu: %g, not %g", i, (double)got[i], want);
  }
}
END_TEST

/* Logarithms of a kernel density estimate, reduced by a user operation that must
 * not meet two identities, in double. */
START_TEST(test_density)
{
  enum { N = 300, M = 1111 };
  uint64_t state = 3;
  const cloud t = cloud_make(N, 0, &state), s = cloud_make(M, 0, &state);
  const test_array out = array_make(KILN_F64, N, 0, NULL, 1);
  const kiln_all_pairs_desc desc = {
      .target = {t.a[0].array, t.a[1].array, t.a[2].array},
      .source = {s.a[0].array, s.a[1].array, s.a[2].array},
      .n = N,
      .m = M,
      .common = "const double dx = s.x - (double)t.x, dy = s.y - (double)t.y,\n"
                "             dz = s.z - (double)t.z;",
      .expr = {"-50 * (dx * dx + dy * dy + dz * dz)"},
      .op = {.expr = "a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b))",
             .identity = "-INFINITY"},
      .out = {out.array}};
  double *got;

  ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < N; i++) {
    double sum = 0;

    for (size_t j = 0; j < M; j++)
      sum += exp(-50 * distance2(&t, i, &s, j, 0));
    ck_assert_double_eq_tol(got[i], log(sum), 1e-11);
  }
}
END_TEST

/* ---- Nearest neighbours -------------------------------------------------- */

/* Integer coordinates make distances exact and equal distances frequent. Returns
 * the index of the first nearest (or farthest) source. */
static size_t extreme(const int32_t *const t[2], size_t i,
                      const int32_t *const s[2], size_t m, bool farthest,
                      int32_t *value)
{
  size_t at = 0;

  for (size_t j = 0; j < m; j++) {
    const int32_t dx = s[0][j] - t[0][i], dy = s[1][j] - t[1][i];
    const int32_t d = dx * dx + dy * dy;

    if (j == 0 || (farthest ? d > *value : d < *value)) {
      *value = d;
      at = j;
    }
  }
  return at;
}

static void test_neighbour_of(size_t n, size_t m, bool farthest)
{
  const size_t mark = n_kept;
  uint64_t state = n + m;
  int32_t *t[2], *s[2];
  kiln_all_pairs_desc desc = {.n = n,
                              .m = m,
                              .common =
                                  "const int dx = s.x - t.x, dy = s.y - t.y",
                              .expr = {"dx * dx + dy * dy"},
                              .op = {.name = farthest ? KILN_MAX : KILN_MIN}};
  test_array out = array_make(KILN_I32, n, 0, NULL, 1);
  test_array at = array_make(farthest ? KILN_U64 : KILN_I32, n, 0, NULL, 1);
  int32_t *value;
  void *index;

  for (int k = 0; k < 2; k++) {
    t[k] = kept(random_wholes(KILN_I32, n, -20, 20, &state));
    s[k] = kept(random_wholes(KILN_I32, m, -20, 20, &state));
    desc.target[k] = array_make(KILN_I32, n, 0, t[k], 0).array;
    desc.source[k] = array_make(KILN_I32, m, 0, s[k], 0).array;
  }
  desc.out[0] = out.array;
  desc.index = at.array;
  ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
  value = kept(array_read(&out));
  index = kept(array_read(&at));
  for (size_t i = 0; i < n; i++) {
    int32_t want = 0;
    const size_t j = extreme((const int32_t *const *)t, i,
                             (const int32_t *const *)s, m, farthest, &want);

    ck_assert_int_eq(value[i], want);
    ck_assert_double_eq(value_at(at.array.type, index, i), (double)j);
  }
  release(mark);
}

START_TEST(test_neighbours)
{
  test_neighbour_of(500, 3000, false);
  test_neighbour_of(2, 20000, true);
  test_neighbour_of(3000, 700, true);
  test_neighbour_of(1, 1, false);
}
END_TEST

/* Without sources there is no index, and the first of several NaN wins. */
START_TEST(test_no_neighbour)
{
  const float t[] = {1, 2}, s[] = {5, NAN, 3, NAN};
  const test_array a = array_make(KILN_F32, 2, 0, t, 0);
  const test_array b = array_make(KILN_F32, 4, 0, s, 0);
  const test_array out = array_make(KILN_F32, 2, 0, NULL, 1);
  const test_array at = array_make(KILN_U64, 2, 0, NULL, 1);
  kiln_all_pairs_desc desc = {.target = {a.array},
                              .source = {b.array},
                              .n = 2,
                              .m = 4,
                              .expr = {"s.x - t.x"},
                              .op = {.name = KILN_MIN},
                              .out = {out.array},
                              .index = at.array};
  uint64_t *index;
  float *value;

  ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
  index = kept(array_read(&at));
  value = kept(array_read(&out));
  ck_assert(index[0] == 1 && index[1] == 1 && isnan(value[0]));
  desc.m = 0;
  ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
  index = kept(array_read(&at));
  value = kept(array_read(&out));
  ck_assert(index[0] == UINT64_MAX && value[1] == INFINITY);
}
END_TEST

/* ---- Symmetric pairs ----------------------------------------------------- */

enum { RING = 8192 }; /* from this number on, symmetric pairs meet on a ring */

START_TEST(test_negated)
{
  static const size_t lengths[] = {RING, RING + 2048, RING + 300};
  const size_t n = lengths[_i];
  uint64_t state = 5;
  const cloud c = cloud_make(n, 0, &state);
  kiln_all_pairs_desc desc = gravity_of(&c);
  test_array out[3];

  desc.common = DISTANCE ", f = (t.w * r) * (s.w * r) * r;";
  desc.symmetry = KILN_PAIRS_NEGATED;
  for (int k = 0; k < 3; k++) {
    out[k] = array_make(KILN_F32, n, 0, NULL, 0xff);
    desc.out[k] = out[k].array;
    desc.epilogue[k] =
        (const char *const[]){"r0 / t.w", "r1 / t.w", "r2 / t.w"}[k];
  }
  ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
  ck_gravity(&c, out, 37);
}
END_TEST

/* Counts neighbours within a distance, and finds the greatest product of
 * indices. Both results are exact. Wide fields leave few targets per thread, so
 * there are many rows, and little storage needs several passes. */
static void test_equal_pairs(size_t n, bool wide, uint64_t storage)
{
  const size_t mark = n_kept;
  uint64_t state = n;
  int32_t *x = kept(random_wholes(KILN_I32, n, 0, 5000, &state));
  double *y = kept(random_wholes(KILN_F64, n, 0, 5000, &state));
  const test_array a = array_make(KILN_I32, n, 0, x, 0);
  const test_array b = array_make(KILN_F64, n, 0, y, 0);
  const test_array out = array_make(KILN_U32, n, 0, NULL, 1);
  kiln_all_pairs_desc desc = {.target = {a.array},
                              .n = n,
                              .expr = {"abs(s.x - t.x) <= 100 && i != j"},
                              .out = {out.array},
                              .symmetry = KILN_PAIRS_EQUAL,
                              .most_storage = storage};
  uint32_t *got, count[5001 + 200] = {0};

  for (int k = 1; wide && k < KILN_MAX_INPUTS; k++)
    desc.target[k] = b.array;
  if (wide)
    desc.expr[0] = "abs(s.x - t.x) <= 100 && i != j && s.x7 + t.x7 >= 0";
  ck_kiln_ok(kiln_all_pairs(stream, &desc, NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < n; i++)
    count[x[i]]++;
  for (size_t i = 0; i < n; i++) {
    uint32_t want = 0;

    for (int d = x[i] < 100 ? -x[i] : -100; d <= 100; d++)
      want += count[x[i] + d];
    ck_assert_msg(got[i] == want - 1, "n = %zu: [%zu] is %u, not %u", n, i,
                  got[i], want - 1);
  }
  release(mark);
}

START_TEST(test_equal)
{
  test_equal_pairs(RING, false, 0);
  test_equal_pairs(RING + 1, true, 0);
  test_equal_pairs(RING + 999, true, 1);
  test_equal_pairs(RING + 64, true, 8 * 4 * RING);
}
END_TEST

/* ---- Calls --------------------------------------------------------------- */

static operation_call small_call(cloud *c, test_array *out)
{
  uint64_t state = 1;
  kiln_all_pairs_desc desc = {.n = 40, .m = 3000, .expr = {"s.x - t.x"}};
  float *t = kept(random_wholes(KILN_F32, 40, -9, 9, &state));
  float *s = kept(random_wholes(KILN_F32, 3000, -9, 9, &state));
  float *want = kept(malloc(40 * sizeof *want));
  operation_call call;

  *out = array_make(KILN_F32, 40, 0, NULL, 1);
  c->a[0] = array_make(KILN_F32, 40, 0, t, 0);
  c->a[1] = array_make(KILN_F32, 3000, 0, s, 0);
  desc.target[0] = c->a[0].array;
  desc.source[0] = c->a[1].array;
  desc.out[0] = out->array;
  for (int i = 0; i < 40; i++) {
    want[i] = 0;
    for (int j = 0; j < 3000; j++)
      want[i] += s[j] - t[i];
  }
  call = CALL_OF(kiln_all_pairs, &desc);
  call_writes(&call, out, want);
  return call;
}

START_TEST(test_call)
{
  test_array out;
  cloud c;
  const operation_call call = small_call(&c, &out);

  ck_assert_uint_gt(ck_workspace(call), 0);
  ck_capture(call);
}
END_TEST

#define WITH(status, says, ...)                                                \
  {                                                                            \
    status, says,                                                              \
    {                                                                          \
      __VA_ARGS__                                                              \
    }                                                                          \
  }
#define SET(member, ...) MEMBER(kiln_all_pairs_desc, member, __VA_ARGS__)

START_TEST(test_bad_arguments)
{
  static const int one = 1;
  test_array out;
  cloud c;
  const operation_call call = small_call(&c, &out);
  const bad_argument bad[] = {
      WITH(KILN_EINVAL, "target[0] has no type", SET(target[0], {0})),
      WITH(KILN_EINVAL, "out[0] has no type", SET(out[0], {0})),
      WITH(KILN_EINVAL, "expr[1] and out[1]", SET(expr[1], "1")),
      WITH(KILN_EINVAL, "epilogue[1]", SET(epilogue[1], "1")),
      WITH(KILN_EINVAL, "out[0]", SET(out[0], c.a[0].array)),
      WITH(KILN_EINVAL, "index needs", SET(index, {out.array.data, KILN_U32}),
           SET(op, {.name = KILN_SUM}),
           SET(out[0], {out.array.data, KILN_F32})),
      WITH(KILN_EINVAL, "leave source", SET(symmetry, KILN_PAIRS_EQUAL)),
      WITH(KILN_EINVAL, "symmetry", SET(symmetry, (kiln_pair_symmetry)7)),
      WITH(KILN_EINVAL, "signed", SET(symmetry, KILN_PAIRS_NEGATED),
           SET(source[0], {0}), SET(op, {.name = KILN_MAX})),
      WITH(KILN_EINVAL, "identity", SET(op, {.expr = "a + b"})),
      WITH(KILN_EINVAL, "\"r0\" is a name",
           SET(code, {.params = &(kiln_param){"r0", KILN_I32, &one, true},
                      .n_params = 1})),
      WITH(KILN_ECOMPILE, "expr[0] does not compile: line 2",
           SET(expr[0], "s.x\n + qq")),
      WITH(KILN_ECOMPILE, "the common text does not compile: line 1",
           SET(common, "float f = s.y;")),
      WITH(KILN_ECOMPILE, "the common text does not compile: line 1",
           SET(common, "} {")),
      WITH(KILN_ECOMPILE, "epilogue[0] does not compile: line 1",
           SET(epilogue[0], "s.x")),
  };

  ck_bad_arguments(call, bad);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("all_pairs");
  TCase *t = device_case(s, "all pairs");

  tcase_add_loop_test(t, test_gravity, 0, 8);
  tcase_add_loop_test(t, test_coulomb, 0, 4);
  tcase_add_test(t, test_density);
  tcase_add_test(t, test_neighbours);
  t = device_case(s, "symmetric");
  tcase_add_loop_test(t, test_negated, 0, 3);
  tcase_add_test(t, test_equal);
  t = brief_case(s);
  tcase_add_test(t, test_no_neighbour);
  tcase_add_test(t, test_call);
  tcase_add_test(t, test_bad_arguments);
  return s;
}

DEVICE_TEST_MAIN(suite)
