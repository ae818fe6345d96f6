/* random_test.c -- kiln_random() against an independent implementation of the
 * generator, the published known answers, and the mathematical definition of
 * the normal numbers. Their bits are compared with recorded ones, since every
 * device must compute the same. */
#include "scan_values.h"

#include <kiln/random.h>

/* ---- The reference ------------------------------------------------------- */

typedef struct words {
  uint32_t w[4];
} words;

static words philox(words c, uint64_t key)
{
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

  for (int round = 0; round < 10; round++) {
    const uint64_t a = UINT64_C(0xd2511f53) * c.w[0];
    const uint64_t b = UINT64_C(0xcd9e8d57) * c.w[2];

    c = (words){{(uint32_t)(b >> 32) ^ c.w[1] ^ k0, (uint32_t)b,
                 (uint32_t)(a >> 32) ^ c.w[3] ^ k1, (uint32_t)a}};
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  return c;
}

static words block_of(const kiln_random_desc *d, uint64_t block,
                      uint32_t attempt)
{
  return philox(
      (words){{(uint32_t)block, (uint32_t)(block >> 32), d->stream, attempt}},
      d->seed);
}

/* Returns 32-bit number i of the generator. */
static uint64_t narrow_word(const kiln_random_desc *d, uint64_t i)
{
  return block_of(d, i / 4, 0).w[i % 4];
}

static uint64_t wide_of(words w, uint64_t k)
{
  return (uint64_t)w.w[2 * k + 1] << 32 | w.w[2 * k];
}

static uint64_t wide_word(const kiln_random_desc *d, uint64_t i)
{
  return wide_of(block_of(d, i / 2, 0), i % 2);
}

/* Returns word number k of those that are tried for number i. */
static uint64_t try_of(const kiln_random_desc *d, uint64_t i, uint32_t k,
                       bool wide)
{
  const uint32_t each = wide ? 2 : 4;
  words w;

  if (k == 0)
    return wide ? wide_word(d, i) : narrow_word(d, i);
  w = block_of(d, i, 1 + (k - 1) / each);
  return wide ? wide_of(w, (k - 1) % each) : w.w[(k - 1) % each];
}

/* Computes word * range as a high and a low part of `wide ? 64 : 32` bits. */
static void multiply(uint64_t word, uint64_t range, bool wide, uint64_t *high,
                     uint64_t *low)
{
  const uint64_t mask = UINT32_MAX;
  const uint64_t a = word & mask, b = word >> 32, c = range & mask;
  const uint64_t d = range >> 32;
  const uint64_t middle = (a * c >> 32) + (b * c & mask) + a * d % (mask + 1);

  *low = wide ? word * range : word * range & mask;
  *high = wide ? b * d + (b * c >> 32) + (a * d >> 32) + (middle >> 32)
               : word * range >> 32;
}

/* Returns an integer in [0, range): the high part of word * range. Words with a
 * low part below 2^32 % range (2^64 % range) are skipped, so that each result
 * has the same number of words. */
static uint64_t below(const kiln_random_desc *d, uint64_t i, bool wide)
{
  const uint64_t all = wide ? UINT64_MAX % d->range + 1 : UINT64_C(1) << 32;
  uint64_t high, low;

  for (uint32_t k = 0;; k++) {
    multiply(try_of(d, i, k, wide), d->range, wide, &high, &low);
    if (low >= all % d->range)
      return high;
  }
}

/* Writes the fraction k / 2^digits, which the type represents exactly. */
static void set_fraction(kiln_dtype type, void *out, size_t i, uint64_t k,
                         int digits)
{
  uint16_t *bits = (uint16_t *)out + i;

  if (type == KILN_F64) {
    ((double *)out)[i] = ldexp((double)k, -digits);
  } else if (type == KILN_F32) {
    ((float *)out)[i] = ldexpf((float)k, -digits);
  } else {
    set_whole(type, out, i, (int64_t)k);
    if (k != 0)
      *bits = (uint16_t)(*bits - (digits << (type == KILN_F16 ? 10 : 7)));
  }
}

/* Writes number offset + i of a sequence other than a normal one to out[i]. */
static void set_number(const kiln_random_desc *d, void *out, size_t i)
{
  const size_t size = kiln_dtype_size(d->out.type);
  const uint64_t at = d->offset + i;
  uint64_t v;

  if (type_is_float(d->out.type)) {
    const int digits = size == 8                 ? 53
                       : size == 4               ? 24
                       : d->out.type == KILN_F16 ? 11
                                                 : 8;

    v = size == 8 ? wide_word(d, at) >> 11
                  : narrow_word(d, at) >> (32 - digits);
    set_fraction(d->out.type, out, i, v, digits);
    return;
  }
  v = d->range != 0 ? (uint64_t)d->low + below(d, at, size == 8)
      : size == 8   ? wide_word(d, at)
                    : narrow_word(d, at);
  memcpy((unsigned char *)out + i * size, &v, size); /* little-endian */
}

static operation_call fill_call(kiln_random_desc d, size_t shift)
{
  test_array out = array_make(d.out.type, d.n, shift, NULL, 0x5a);
  void *want = room_for(d.n, 8);
  operation_call c;

  d.out = out.array;
  for (size_t i = 0; i < d.n; i++)
    set_number(&d, want, i);
  c = CALL_OF(kiln_random, &d);
  call_writes(&c, &out, want);
  return c;
}

/* ---- Tests --------------------------------------------------------------- */

/* The known answers that the authors of Philox publish (Random123, kat_vectors,
 * philox 4x32 with 10 rounds). User expressions reach any counter and key. */
START_TEST(test_known_answers)
{
  static const uint32_t in[3][6] = {
      {0, 0, 0, 0, 0, 0},
      {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0}};
  static const uint32_t want[3][4] = {
      {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
      {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
  test_array table = array_make(KILN_U32, 18, 0, in, 0);
  test_array out = array_make(KILN_U32, 12, 0, NULL, 0x5a);

  ck_kiln_ok(kiln_map(
      stream,
      &(kiln_map_desc){
          .in = {table.array},
          .out = {out.array},
          .n = 12,
          .expr = {"word(x_at(i / 4 * 6), x_at(i / 4 * 6 + 1),"
                   " x_at(i / 4 * 6 + 2), x_at(i / 4 * 6 + 3),"
                   " x_at(i / 4 * 6 + 4), x_at(i / 4 * 6 + 5), i % 4)"},
          .code =
              {.preamble =
                   "#include <kiln/random.cuh>\n"
                   "__device__ unsigned word(unsigned a, unsigned b,"
                   "  unsigned c, unsigned d, unsigned k, unsigned l,"
                   "  unsigned e) {"
                   "  uint4 w = {a, b, c, d}; uint2 key = {k, l};"
                   "  return kiln::random_word(kiln::philox(w, key), e); }"}},
      NULL));
  ck_array(&out, want, "known answers");
}
END_TEST

START_TEST(test_types)
{
  static const size_t lengths[] = {0, 1, 2, 17, 4095, 8193};
  static const uint64_t offsets[] = {0, 5, (UINT64_C(1) << 34) + 3};
  kiln_random_desc d = {.out = {0, all_types[_i]},
                        .seed = UINT64_C(0x123456789abcdef0),
                        .stream = 7};

  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    d.n = lengths[k];
    d.offset = offsets[k % 3];
    ck_call(fill_call(d, d.offset % (16 / kiln_dtype_size(d.out.type))));
    d.n = 100 + k;
    ck_call(fill_call(d, k));
  }
}
END_TEST

static const struct {
  kiln_dtype type;
  int64_t low;
  uint64_t range;
} ranges[] = {
    {KILN_U32, 0, 6},
    {KILN_U32, 5, (UINT64_C(1) << 31) + 1}, /* half of the words are rejected */
    {KILN_U32, 0, UINT32_MAX},
    {KILN_U32, 0, UINT64_C(1) << 32},
    {KILN_I32, -100, 201},
    {KILN_I32, INT32_MIN, 3},
    {KILN_I8, -128, 255},
    {KILN_U8, 10, 1},
    {KILN_U16, 0, 65536},
    {KILN_I64, INT64_MIN, UINT64_MAX},
    {KILN_I64, -3, 7},
    {KILN_U64, 1, (UINT64_C(1) << 63) + 1},
};

START_TEST(test_ranges)
{
  const kiln_random_desc d = {.out = {0, ranges[_i].type},
                              .n = 5000,
                              .seed = 99,
                              .offset = 3,
                              .low = ranges[_i].low,
                              .range = ranges[_i].range};

  ck_call(fill_call(d, 1));
}
END_TEST

/* Returns the cosine (k = 0) or the sine (k = 1) of v / 2^bits turns. The next
 * multiple of a quarter turn is subtracted exactly, since long double has too few
 * digits for the difference. */
static long double circular(uint64_t v, int bits, uint64_t k)
{
  const long double turn = 2 * 3.141592653589793238462643383279502884L;
  const uint64_t quarters = ((v >> (bits - 3)) + 1) >> 1;
  const int64_t rest = (int64_t)(v - (quarters << (bits - 2)));
  const long double angle = ldexpl((long double)rest, -bits) * turn;

  switch ((quarters + 3 * k) % 4) {
  case 0:
    return cosl(angle);
  case 1:
    return -sinl(angle);
  case 2:
    return -cosl(angle);
  default:
    return sinl(angle);
  }
}

/* Returns normal number i by the definition, in long double. */
static long double normal_at(const kiln_random_desc *d, uint64_t i, bool wide)
{
  const int bits = wide ? 64 : 32;
  const uint64_t first = i & ~UINT64_C(1);
  uint64_t u = wide ? wide_word(d, first) : narrow_word(d, first);
  const uint64_t v = wide ? wide_word(d, first + 1) : narrow_word(d, first + 1);
  long double log;

  /* Near u = 1, ln u is computed from 1 - u, which is exact. */
  u = u == 0 ? 1 : u;
  log = u >> (bits - 1) != 0
            ? log1pl(-ldexpl((long double)((wide ? 0 : UINT64_C(1) << 32) - u),
                             -bits))
            : logl(ldexpl((long double)u, -bits));
  return sqrtl(-2 * log) * circular(v, bits, i % 2);
}

static uint64_t hash_of(const unsigned char *data, size_t bytes)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; i < bytes; i++)
    h = (h ^ data[i]) * UINT64_C(0x100000001b3);
  return h;
}

static const struct {
  kiln_dtype type;
  double bound;  /* of the relative error */
  uint64_t hash; /* of the bits, the same on every device */
} normals[] = {{KILN_F32, 0x1p-21, UINT64_C(0xcd8d7ff6b853e83c)},
               {KILN_F64, 0x1p-50, UINT64_C(0xddc2443f644b1102)},
               {KILN_F16, 0x1p-10, UINT64_C(0xbbc6c5be11eec957)},
               {KILN_BF16, 0x1p-7, UINT64_C(0x3f6c8611d6ffc834)}};

START_TEST(test_normal)
{
  enum { N = 40000 };
  const kiln_dtype type = normals[_i].type;
  test_array out = array_make(type, N, 0, NULL, 0x5a);
  const kiln_random_desc d = {.out = out.array,
                              .n = N,
                              .distribution = KILN_NORMAL,
                              .seed = 1,
                              .stream = 2,
                              .offset = 4};
  double sum = 0, squares = 0, worst = 0;
  unsigned char *got;

  ck_kiln_ok(kiln_random(stream, &d, NULL));
  got = kept(array_read(&out));
  for (size_t i = 0; i < N; i++) {
    const double z = value_at(type, got, i);
    const long double want = normal_at(&d, 4 + i, type == KILN_F64);
    const double error = (double)fabsl((z - want) / (fabsl(want) + 0x1p-24L));

    worst = error > worst ? error : worst;
    sum += z;
    squares += z * z;
  }
  ck_assert_msg(worst < normals[_i].bound, "%s: %g is 2^%.2f",
                kiln_dtype_name(type), worst, log2(worst));
  ck_assert(fabs(sum / N) < 0.02 && fabs(squares / N - 1) < 0.03);
  ck_assert_msg(hash_of(got, N * out.width) == normals[_i].hash,
                "%s: the bits have the hash %#llx, not the recorded one; "
                "worst error 2^%.2f",
                kiln_dtype_name(type),
                (unsigned long long)hash_of(got, N * out.width), log2(worst));
}
END_TEST

/* Mean and deviation; a sequence in pieces; and the names in user expressions. */
START_TEST(test_pieces_and_texts)
{
  enum { N = 3001 };
  test_array whole = array_make(KILN_F32, N, 0, NULL, 0x5a);
  test_array parts = array_make(KILN_F32, N, 0, NULL, 0x5a);
  test_array bits = array_make(KILN_U32, N, 0, NULL, 0x5a);
  test_array fraction = array_make(KILN_F32, N, 0, NULL, 0x5a);
  test_array integer = array_make(KILN_U32, N, 0, NULL, 0x5a);
  test_array normal = array_make(KILN_F32, N, 0, NULL, 0x5a);
  kiln_random_desc d = {
      .out = whole.array, .n = N, .seed = 11, .distribution = KILN_NORMAL};
  float *z, *y;

  ck_kiln_ok(kiln_random(stream, &d, NULL));
  z = kept(array_read(&whole));
  for (size_t i = 0; i < N; i += d.n) {
    d.n = i + 1 + i % 1000 < N ? 1 + i % 1000 : N - i;
    d.offset = i;
    d.out.data = parts.array.data + 4 * i;
    ck_kiln_ok(kiln_random(stream, &d, NULL));
  }
  ck_array(&parts, z, "a sequence in pieces");
  d = (kiln_random_desc){.out = whole.array,
                         .n = N,
                         .seed = 11,
                         .mean = -2.5,
                         .deviation = 3,
                         .distribution = KILN_NORMAL};
  ck_kiln_ok(kiln_random(stream, &d, NULL));
  y = kept(array_read(&whole));
  for (size_t i = 0; i < N; i++)
    ck_assert(y[i] == fmaf(z[i], 3, -2.5f));

  ck_kiln_ok(kiln_map(
      stream,
      &(kiln_map_desc){
          .out = {bits.array, fraction.array, normal.array, integer.array},
          .n = N,
          .expr = {"kiln::random_bits(11, 0, i)",
                   "kiln::random_uniform(11, 0, i)",
                   "kiln::random_normal(11, 0, i)",
                   "kiln::random_below(1000003, 11, 0, i)"},
          .code = {.preamble = "#include <kiln/random.cuh>\n",
                   .fast_math = true}},
      NULL));
  ck_array(&normal, z, "random_normal()");
  ck_writes(
      fill_call((kiln_random_desc){.out = bits.array, .n = N, .seed = 11}, 0),
      &bits, kept(array_read(&bits)));
  for (size_t k = 0; k < 3; k++) {
    const test_array *a = k == 0 ? &bits : k == 1 ? &fraction : &integer;
    void *want = room_for(N, 8);

    d = (kiln_random_desc){
        .out = a->array, .seed = 11, .range = k == 2 ? 1000003 : 0};
    for (size_t i = 0; i < N; i++)
      set_number(&d, want, i);
    ck_array(a, want, "names in expressions");
  }
}
END_TEST

START_TEST(test_workspace_and_capture)
{
  const operation_call c = fill_call(
      (kiln_random_desc){.out = {0, KILN_F32}, .n = 1000, .offset = 2}, 0);

  ck_capture(c);
  ck_assert_uint_eq(ck_workspace(c), 0);
}
END_TEST

#define MEMBER_OF(member, ...) MEMBER(kiln_random_desc, member, __VA_ARGS__)

START_TEST(test_bad_calls)
{
  const operation_call c =
      fill_call((kiln_random_desc){.out = {0, KILN_U32}, .n = 100}, 0);
  const kiln_array a = c.result[0].array.array;
  const bad_argument bad[] = {
      {KILN_EINVAL, "out", {MEMBER_OF(out, {0})}},
      {KILN_EINVAL, "aligned", {MEMBER_OF(out, {a.data + 2, KILN_F32})}},
      {KILN_EINVAL,
       "kiln_distribution",
       {MEMBER_OF(distribution, (kiln_distribution)9)}},
      {KILN_EINVAL, "64 bits", {MEMBER_OF(offset, UINT64_MAX - 99)}},
      {KILN_EINVAL, "floating-point", {MEMBER_OF(distribution, KILN_NORMAL)}},
      {KILN_EINVAL,
       "not within u32",
       {MEMBER_OF(range, (UINT64_C(1) << 32) + 1)}},
      {KILN_EINVAL,
       "not within u32",
       {MEMBER_OF(range, 1), MEMBER_OF(low, -1)}},
      {KILN_EINVAL,
       "not within i8",
       {MEMBER_OF(range, 257), MEMBER_OF(low, -128),
        MEMBER_OF(out, {a.data, KILN_I8})}},
      {KILN_EINVAL,
       "mean",
       {MEMBER_OF(distribution, KILN_NORMAL), MEMBER_OF(mean, INFINITY),
        MEMBER_OF(out, {a.data, KILN_F32})}},
      {KILN_EINVAL,
       "deviation",
       {MEMBER_OF(distribution, KILN_NORMAL), MEMBER_OF(deviation, -1),
        MEMBER_OF(out, {a.data, KILN_F32})}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const uint64_t r = test_random(state);
  kiln_random_desc d = {.out = {0, all_types[k % N_ALL_TYPES]},
                        .n = test_random(state) % 6000,
                        .seed = test_random(state),
                        .stream = (uint32_t)test_random(state),
                        .offset = test_random(state) >> (2 + r % 60)};

  if (!type_is_float(d.out.type) && r % 2)
    d.range = 1 + test_random(state) % 127;
  return fill_call(d, r >> 32 & 15);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 12, 2026);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("random");
  TCase *t = device_case(s, "random");

  tcase_add_test(t, test_known_answers);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_ranges, 0, sizeof ranges / sizeof ranges[0]);
  tcase_add_loop_test(t, test_normal, 0, sizeof normals / sizeof normals[0]);
  tcase_add_test(t, test_pieces_and_texts);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
