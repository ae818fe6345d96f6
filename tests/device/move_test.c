/* move_test.c -- kiln_rotate(), kiln_copy_batch() and kiln_run_length_decode()
 * against loops over single elements. */
#include "scan_values.h"

#include <kiln/move.h>

static uint8_t *random_bytes(size_t n, uint64_t *state)
{
  uint8_t *x = room_for(n, 1);

  for (size_t i = 0; i < n; i++)
    x[i] = (uint8_t)test_random(state);
  return x;
}

/* ---- Rotation ------------------------------------------------------------ */

static operation_call rotate_call(kiln_dtype type, size_t n, int64_t shift,
                                  size_t in_shift, size_t out_shift)
{
  const size_t size = kiln_dtype_size(type);
  uint64_t state = n;
  uint8_t *x = random_bytes(n * size, &state), *want = room_for(n, size);
  test_array in = array_make(type, n, in_shift, x, 0);
  test_array out = array_make(type, n, out_shift, NULL, 0x5a);
  operation_call c =
      CALL_OF(kiln_rotate,
              &(kiln_rotate_desc){
                  .in = in.array, .out = out.array, .n = n, .shift = shift});

  for (size_t i = 0; i < n; i++) {
    int64_t from = ((int64_t)i + shift % (int64_t)n) % (int64_t)n;

    from += from < 0 ? (int64_t)n : 0;
    memcpy(want + i * size, x + (size_t)from * size, size);
  }
  call_writes(&c, &out, want);
  return c;
}

START_TEST(test_rotate)
{
  static const int64_t shifts[] = {0,     1,         -1,        2,       7,
                                   16,    4096,      5000,      -100000, 12345,
                                   99999, INT64_MIN, INT64_MAX, 3 * 8192};

  for (size_t k = 0; k < sizeof shifts / sizeof shifts[0]; k++) {
    ck_call(rotate_call(KILN_U8, 5001 + k, shifts[k], k % 5, k % 3));
    ck_call(rotate_call(KILN_F16, 4096, shifts[k], k % 2, k % 7));
    ck_call(rotate_call(KILN_F32, 1 + k * k, shifts[k], k % 2, k % 3));
    ck_call(rotate_call(KILN_U64, 8192 - k, shifts[k], 0, k % 2));
  }
  for (size_t n = 0; n < 40; n++)
    ck_call(rotate_call(KILN_U8, n, 5, n % 16, n % 13));
  ck_call(rotate_call(KILN_I8, 300001, 777, 1, 0));
}
END_TEST

/* The source fills a whole allocation, so that the checks of the CPU device find
 * reads before and behind it. */
START_TEST(test_rotate_bounds)
{
  static const uint8_t x[999] = {1, 2, 3};
  test_array out = array_make(KILN_U8, sizeof x, 5, NULL, 0);
  kiln_rotate_desc d = {.out = out.array, .n = sizeof x};
  CUdeviceptr in;

  ck_kiln_ok(kiln_memory_alloc(&in, device, sizeof x));
  keep_memory((kept_memory){.device = in});
  ck_kiln_ok(kiln_copy_to_device(device, in, x, sizeof x));
  d.in = (kiln_array){in, KILN_U8};
  for (d.shift = 0; d.shift < 20; d.shift++)
    ck_kiln_ok(kiln_rotate(stream, &d, NULL));
  ck_kiln_ok(kiln_device_synchronize(device));
}
END_TEST

/* ---- Run-length decoding ------------------------------------------------- */

/* Makes n runs with lengths below `most`; one in `empty` is empty, if it is not
 * 0. `space` is added to the sum of the lengths for the capacity. */
typedef struct runs {
  kiln_dtype type, lengths, count;
  size_t n, most, empty;
  int64_t space;
} runs;

static operation_call decode_call(runs r, size_t shift, uint64_t *state)
{
  const size_t size = kiln_dtype_size(r.type);
  uint8_t *values = random_bytes(r.n * size, state), *want, *all;
  int64_t *lengths = room_for(r.n, sizeof *lengths);
  uint64_t *total = room_for(1, sizeof *total);
  size_t capacity, at = 0;
  test_array in, out, count, lens;
  operation_call c;

  for (size_t i = 0; i < r.n; i++) {
    lengths[i] = (int64_t)(1 + test_random(state) % r.most);
    if (r.empty != 0 && test_random(state) % r.empty == 0)
      lengths[i] = 0;
    *total += (uint64_t)lengths[i];
  }
  capacity = (int64_t)*total + r.space > 0 ? *total + (size_t)r.space : 0;
  all = room_for(*total, size);
  for (size_t i = 0; i < r.n; i++)
    for (int64_t k = 0; k < lengths[i]; k++)
      memcpy(all + at++ * size, values + i * size, size);
  in = array_make(r.type, r.n, shift, values, 0);
  lens = array_make(r.lengths, r.n, 0, elements(r.lengths, lengths, r.n), 0);
  out = array_make(r.type, capacity, shift, NULL, 0x5a);
  count = array_make(r.count, 1, 0, NULL, 0x5a);
  want = kept(array_read(&out));
  memcpy(want, all, (at < capacity ? at : capacity) * size);
  c = CALL_OF(kiln_run_length_decode,
              &(kiln_run_length_decode_desc){.values = in.array,
                                             .lengths = lens.array,
                                             .n = r.n,
                                             .out = out.array,
                                             .capacity = capacity,
                                             .count = count.array});
  call_writes(&c, &out, want);
  call_writes(&c, &count, total); /* little-endian */
  return c;
}

static const runs decodes[] = {
    {KILN_U32, KILN_U32, KILN_U64, 0, 1, 0, 10},
    {KILN_U32, KILN_U32, KILN_U64, 1, 1, 0, 0},
    {KILN_F32, KILN_I32, KILN_U32, 1, 5000, 0, 7},
    {KILN_U32, KILN_U32, KILN_U64, 3000, 7, 0, 0},
    {KILN_U8, KILN_U8, KILN_U64, 2000, 5, 2, 100},
    {KILN_F16, KILN_U16, KILN_U32, 700, 40, 3, -50},
    {KILN_F64, KILN_U64, KILN_U64, 1025, 3, 2, 1},
    {KILN_I32, KILN_I64, KILN_U64, 9, 3000, 0, 0},
    {KILN_U32, KILN_I8, KILN_U64, 6000, 1, 1, 5},
    {KILN_U64, KILN_U32, KILN_U64, 5000, 2, 40, -100000},
};

START_TEST(test_decode)
{
  uint64_t state = (uint64_t)_i;

  ck_call(decode_call(decodes[_i], 0, &state));
  ck_call(decode_call(decodes[_i], 1, &state));
}
END_TEST

/* Thousands of empty runs between two others, and a run at every tile's edge. */
START_TEST(test_decode_edges)
{
  enum { N = 9000 };
  static uint32_t lengths[N], values[N];
  uint32_t *want = room_for(3 * 1024, 4);
  test_array in, lens, out, count;

  for (uint32_t i = 0; i < N; i++)
    values[i] = i * 77;
  lengths[0] = 1023;
  lengths[5000] = 1;
  lengths[5001] = 1024;
  lengths[N - 1] = 1024;
  for (size_t i = 0; i < 3 * 1024; i++)
    want[i] = values[i < 1023 ? 0 : i < 1024 ? 5000 : i < 2048 ? 5001 : N - 1];
  in = array_make(KILN_U32, N, 0, values, 0);
  lens = array_make(KILN_U32, N, 0, lengths, 0);
  out = array_make(KILN_U32, 3 * 1024, 0, NULL, 0x5a);
  count = array_make(KILN_U32, 1, 0, NULL, 0x5a);
  ck_writes(CALL_OF(kiln_run_length_decode,
                    &(kiln_run_length_decode_desc){.values = in.array,
                                                   .lengths = lens.array,
                                                   .n = N,
                                                   .out = out.array,
                                                   .capacity = 3 * 1024,
                                                   .count = count.array}),
            &out, want);
}
END_TEST

/* ---- Batched copy -------------------------------------------------------- */

/* Makes n copies of up to `most` bytes between random places of two arrays, in
 * their order, with gaps. */
static operation_call copy_call(size_t n, size_t most, kiln_dtype type,
                                uint64_t *state)
{
  const size_t space = n * (most + 40) + 64;
  uint8_t *x = random_bytes(space, state), *want;
  uint64_t *from = room_for(n, 8), *to = room_for(n, 8);
  int64_t *sizes = room_for(n, 8);
  test_array in = array_make(KILN_U8, space, 0, x, 0);
  test_array out = array_make(KILN_U8, space, 0, NULL, 0x5a);
  test_array froms, tos, lens;
  size_t at = 0;
  operation_call c;

  want = kept(array_read(&out));
  for (size_t i = 0; i < n; i++) {
    const size_t size = test_random(state) % (most + 1);
    const size_t begin = test_random(state) % (space - size);

    sizes[i] = (int64_t)size;
    at += test_random(state) % 3 == 0 ? test_random(state) % 40 : 0;
    from[i] = in.array.data + begin;
    to[i] = out.array.data + at;
    memcpy(want + at, x + begin, size);
    at += size;
  }
  froms = array_make(KILN_U64, n, 0, from, 0);
  tos = array_make(KILN_U64, n, 0, to, 0);
  lens = array_make(type, n, 0, elements(type, sizes, n), 0);
  c = CALL_OF(kiln_copy_batch, &(kiln_copy_batch_desc){.from = froms.array,
                                                       .to = tos.array,
                                                       .sizes = lens.array,
                                                       .n = n});
  call_writes(&c, &out, want);
  return c;
}

START_TEST(test_copy_batch)
{
  uint64_t state = 7;

  ck_call(copy_call(0, 1, KILN_U32, &state));
  ck_call(copy_call(1, 1, KILN_U32, &state));
  ck_call(copy_call(1, 100000, KILN_U32, &state));
  ck_call(copy_call(1000, 40, KILN_U8, &state));
  ck_call(copy_call(3000, 3, KILN_U8, &state));
  ck_call(copy_call(200, 1000, KILN_U32, &state));
  ck_call(copy_call(30, 9000, KILN_I64, &state));
}
END_TEST

/* ---- All of them --------------------------------------------------------- */

START_TEST(test_workspace_and_capture)
{
  uint64_t state = 9;
  const operation_call rotation = rotate_call(KILN_F32, 1000, 3, 0, 0);
  const operation_call decoding = decode_call(decodes[3], 0, &state);
  const operation_call copies = copy_call(100, 50, KILN_U32, &state);
  test_array storage;
  size_t bytes;

  ck_capture(rotation);
  ck_capture(decoding);
  ck_capture(copies);
  ck_assert_uint_eq(ck_workspace(rotation), 0);
  ck_assert_uint_gt(ck_workspace(decoding), 0);
  /* The addresses of a batched copy are unknown to the host, so that it cannot
   * refuse a workspace that overlaps a result. */
  ck_kiln_ok(copies.op->need(stream, copies.desc, &bytes));
  storage = array_make(KILN_U8, bytes, 0, NULL, 0xff);
  ck_call_with(&copies, &(kiln_workspace){storage.array.data, bytes});
  free(array_read(&storage)); /* fails if a guard zone was written */
}
END_TEST

#define OF_ROTATE(member, ...) MEMBER(kiln_rotate_desc, member, __VA_ARGS__)
#define OF_DECODE(member, ...)                                                 \
  MEMBER(kiln_run_length_decode_desc, member, __VA_ARGS__)
#define OF_COPY(member, ...) MEMBER(kiln_copy_batch_desc, member, __VA_ARGS__)

START_TEST(test_bad_calls)
{
  uint64_t state = 9;
  const operation_call rotation = rotate_call(KILN_F32, 100, 3, 0, 0);
  const operation_call decoding = decode_call(decodes[3], 0, &state);
  const operation_call copies = copy_call(100, 50, KILN_U32, &state);
  const kiln_array r = rotation.result[0].array.array;
  const kiln_array d = decoding.result[0].array.array;
  const bad_argument bad_rotations[] = {
      {KILN_EINVAL, "in has no type", {OF_ROTATE(in, {0})}},
      {KILN_EINVAL, "out has no type", {OF_ROTATE(out, {0})}},
      {KILN_EINVAL, "different types", {OF_ROTATE(out, {r.data, KILN_U32})}},
      {KILN_EINVAL, "overlap", {OF_ROTATE(in, r)}},
  };
  const bad_argument bad_decodings[] = {
      {KILN_EINVAL, "values", {OF_DECODE(values, {0})}},
      {KILN_EINVAL, "lengths", {OF_DECODE(lengths, {0})}},
      {KILN_EINVAL, "must be integers", {OF_DECODE(lengths.type, KILN_F32)}},
      {KILN_EINVAL, "values are u32", {OF_DECODE(out.type, KILN_F32)}},
      {KILN_EINVAL, "count is neither", {OF_DECODE(count.type, KILN_I32)}},
      {KILN_EINVAL, "overlap", {OF_DECODE(values.data, d.data)}},
      {KILN_EINVAL, "2^32", {OF_DECODE(n, UINT64_C(1) << 32)}},
  };
  const bad_argument bad_copies[] = {
      {KILN_EINVAL, "from has no type", {OF_COPY(from, {0})}},
      {KILN_EINVAL, "to has no type", {OF_COPY(to, {0})}},
      {KILN_EINVAL, "sizes", {OF_COPY(sizes, {0})}},
      {KILN_EINVAL, "must be integers", {OF_COPY(sizes.type, KILN_F32)}},
      {KILN_EINVAL, "arrays of u64", {OF_COPY(to.type, KILN_F64)}},
      {KILN_EINVAL, "2^32", {OF_COPY(n, UINT64_C(1) << 32)}},
  };

  ck_bad_arguments(rotation, bad_rotations);
  ck_bad_arguments(decoding, bad_decodings);
  ck_bad_arguments(copies, bad_copies);
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  static const kiln_dtype types[] = {KILN_U8, KILN_F16, KILN_F32, KILN_U64};
  const kiln_dtype type = types[test_random(state) % 4];
  const uint64_t a = test_random(state), b = test_random(state);

  if (k % 3 == 0)
    return rotate_call(type, 1 + a % 9000, (int64_t)b, (a >> 32) % 16,
                       (b >> 32) % 16);
  if (k % 3 == 1)
    return copy_call(a % 300, b % 300, KILN_U32, state);
  return decode_call((runs){type, KILN_U32, KILN_U64, a % 2000, 1 + b % 30,
                            (a >> 32) % 4, (int64_t)((b >> 32) % 60) - 30},
                     (a >> 40) % 3, state);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 24, 2026);
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("move");
  TCase *t = device_case(s, "move");

  tcase_add_test(t, test_rotate);
  tcase_add_test(t, test_rotate_bounds);
  tcase_add_loop_test(t, test_decode, 0, sizeof decodes / sizeof decodes[0]);
  tcase_add_test(t, test_decode_edges);
  tcase_add_test(t, test_copy_batch);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad_calls);
  tcase_add_test(brief_case(s), test_random_calls);
  return s;
}

DEVICE_TEST_MAIN(suite)
