/* segmented_test.c -- kiln_segmented_reduce: mixed segment lengths, offsets and
 * indices of every type, sums of rows that indices select, order, memory, and
 * invalid arguments. */
#include "operation_checks.h"
#include "reference_ops.h"

/* ---- Mixes of lengths ---------------------------------------------------- */

typedef enum mix {
  EQUAL,
  EMPTY,  /* all segments are empty */
  SPARSE, /* few segments have an element */
  BAGS,   /* most segments are short, some long, few very long */
  GIANT,  /* one segment has nearly all elements */
  SINGLE,
  N_MIXES
} mix;

typedef struct bags {
  size_t n_segments, n; /* n is the number of elements or rows */
  uint64_t *offset;     /* offsets of the segments */
} bags;

static size_t length_of(mix m, size_t s, size_t n_segments, uint64_t *state)
{
  const uint64_t r = test_random(state);

  switch (m) {
  case EQUAL:
    return 5;
  case EMPTY:
    return 0;
  case SPARSE:
    return r % 7 == 0;
  case BAGS:
    return s % 111 < 100 ? r % 10 + 1 : s % 111 < 110 ? r % 90 + 11 : r % 900;
  case GIANT:
    return s == n_segments / 2 ? 20 * n_segments : r % 3;
  default:
    return 12345;
  }
}

static bags make_bags(mix m, size_t n_segments, uint64_t first, uint64_t *state)
{
  bags b = {.n_segments = m == SINGLE ? 1 : n_segments};

  b.offset = kept(malloc((b.n_segments + 1) * sizeof *b.offset));
  b.offset[0] = first;
  for (size_t s = 0; s < b.n_segments; s++)
    b.offset[s + 1] = b.offset[s] + length_of(m, s, b.n_segments, state);
  b.n = b.offset[b.n_segments];
  return b;
}

/* ---- The check of one call ----------------------------------------------- */

typedef struct call {
  mix m;
  size_t n_segments, width, leading, shift;
  uint64_t first; /* first offset */
  kiln_dtype type, offsets, index;
  bool ordered; /* the operation does not commute; the type is u32 */
} call;

static operation_call segmented_call(const call *c)
{
  static char what[96];
  uint64_t state = 77 + c->n_segments + c->width;
  bags b = make_bags(c->m, c->n_segments, c->first, &state);
  const bool gather = c->index != KILN_DTYPE_NONE;
  const size_t rows = gather ? 500 : b.n;
  const size_t elements = rows == 0 ? 0 : (rows - 1) * c->leading + c->width;
  const kiln_dtype out_type = c->ordered               ? KILN_U32
                              : c->type == KILN_F32    ? KILN_F32
                              : type_is_float(c->type) ? KILN_F64
                                                       : KILN_I64;
  void *x = c->ordered ? kept(random_bits(4 * elements, &state))
                       : kept(random_wholes(c->type, elements, 0, 9, &state));
  uint64_t *at = kept(malloc((b.n + 1) * sizeof *at));
  test_array in = array_make(c->type, elements, c->shift, x, 0);
  test_array out =
      array_make(out_type, b.n_segments * c->width, c->shift, NULL, 0x5a);
  kiln_segmented_reduce_desc desc = {
      .x = {.in = {in.array},
            .map = c->ordered ? "x | 65536" : NULL,
            .type = c->ordered ? KILN_U32 : KILN_DTYPE_NONE},
      .n = rows,
      .n_segments = b.n_segments,
      .offsets =
          array_of_indices(c->offsets, b.offset, b.n_segments + 1, c->shift)
              .array,
      .width = c->width == 1 ? 0 : c->width,
      .leading = c->leading == c->width ? 0 : c->leading,
      .out = out.array};
  void *wanted = kept(malloc(8 * out.n + 1));
  operation_call made;

  for (size_t i = 0; i < b.n; i++)
    at[i] = gather ? test_random(&state) % rows : i;
  if (gather) {
    desc.index = array_of_indices(c->index, at, b.n, 0).array;
    desc.n_index = b.n;
  }
  if (c->ordered)
    desc.op = (kiln_op){.expr = then_text, .identity = "65536"};
  for (size_t s = 0; s < b.n_segments; s++)
    for (size_t k = 0; k < c->width; k++) {
      int64_t want = 0;
      uint32_t chain = 65536;

      for (size_t i = b.offset[s]; i < b.offset[s + 1]; i++)
        if (c->ordered)
          chain = then(chain,
                       ((const uint32_t *)x)[at[i] * c->leading + k] | 65536);
        else
          want += (int64_t)value_at(c->type, x, at[i] * c->leading + k);
      set_whole(out_type, wanted, s * c->width + k, c->ordered ? chain : want);
    }
  snprintf(what, sizeof what, "mix %d, %zu segments, width %zu (%zu) of %s",
           (int)c->m, b.n_segments, c->width, c->leading,
           kiln_dtype_name(c->type));
  made = CALL_OF(kiln_segmented_reduce, &desc);
  made.what = what;
  call_writes(&made, &out, wanted);
  return made;
}

static void check(const call *c)
{
  const size_t mark = n_kept;

  ck_call(segmented_call(c));
  release(mark);
}

static const size_t counts[] = {1, 2, 31, 33, 300, 1793, 5003};

START_TEST(test_mixes)
{
  for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
    const call c = {.m = (mix)_i,
                    .n_segments = counts[k],
                    .width = 1,
                    .leading = 1,
                    .shift = k % 2,
                    .first = k % 3,
                    .type = KILN_F32,
                    .offsets = KILN_U32};

    check(&c);
  }
}
END_TEST

START_TEST(test_order)
{
  for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
    const call c = {.m = (mix)_i,
                    .n_segments = counts[k],
                    .width = k % 2 ? 1 : 3,
                    .leading = k % 2 ? 1 : 3,
                    .first = k % 3,
                    .type = KILN_U32,
                    .offsets = KILN_U32,
                    .ordered = true};

    check(&c);
  }
}
END_TEST

START_TEST(test_types)
{
  static const kiln_dtype offsets[] = {KILN_U32, KILN_I32, KILN_U64, KILN_I64};
  const call c = {.m = BAGS,
                  .n_segments = 700,
                  .width = 1,
                  .leading = 1,
                  .shift = 1,
                  .type = all_types[_i],
                  .offsets = offsets[_i % 4],
                  .index = _i % 3 == 2 ? offsets[_i / 3] : KILN_DTYPE_NONE};

  check(&c);
}
END_TEST

START_TEST(test_rows)
{
  static const struct {
    size_t width, leading;
  } shape[] = {{2, 2},   {3, 3},     {4, 8},    {8, 8},
               {20, 20}, {128, 128}, {300, 304}};

  for (size_t k = 0; k < sizeof shape / sizeof shape[0]; k++) {
    const call c = {.m = (mix)_i,
                    .n_segments = k % 2 ? 40 : 333,
                    .width = shape[k].width,
                    .leading = shape[k].leading,
                    .shift = k == 3,
                    .first = k % 3,
                    .type = KILN_F32,
                    .offsets = k % 2 ? KILN_I64 : KILN_U32,
                    .index = k % 3 == 1 ? KILN_I32 : KILN_DTYPE_NONE};

    if ((mix)_i != SINGLE || k < 5)
      check(&c);
  }
}
END_TEST

START_TEST(test_row_types)
{
  const call c = {.m = BAGS,
                  .n_segments = 120,
                  .width = 8,
                  .leading = 8,
                  .type = all_types[_i],
                  .offsets = KILN_U32,
                  .index = _i % 2 ? KILN_U64 : KILN_DTYPE_NONE};

  check(&c);
}
END_TEST

/* All segments have the same length, in elements or in rows. */
START_TEST(test_fixed)
{
  static const size_t lengths[] = {0, 1, 3, 16, 33, 512, 5000};

  for (size_t k = 0; k < 2 * sizeof lengths / sizeof lengths[0]; k++) {
    const size_t length = lengths[k / 2], width = k % 2 ? 6 : 1;
    const size_t n_segments = length > 100 ? 5 : 211;
    const size_t n = n_segments * length;
    uint64_t state = 5;
    float *x = kept(random_wholes(KILN_F32, n * width, -9, 9, &state));
    float *want = kept(calloc(n_segments * width, sizeof *want));
    test_array in = array_make(KILN_F32, n * width, 0, x, 0);
    test_array out = array_make(KILN_F32, n_segments * width, 0, NULL, 1);
    const kiln_segmented_reduce_desc desc = {.x = {.in = {in.array}},
                                             .n = n,
                                             .n_segments = n_segments,
                                             .length = length,
                                             .width = width,
                                             .out = out.array};

    for (size_t i = 0; i < n * width; i++)
      want[i / width / length * width + i % width] += x[i];
    ck_writes(CALL_OF(kiln_segmented_reduce, &desc), &out, want);
  }
}
END_TEST

/* n may exceed the last offset. */
START_TEST(test_loose_n)
{
  enum { N = 30000 };
  uint64_t offset[] = {5, 5, 900, 7000};
  uint64_t state = 5;
  uint32_t *x = kept(random_bits(4 * N, &state)), want[3] = {0};
  test_array in = array_make(KILN_U32, N, 0, x, 0);
  test_array offsets = array_of_indices(KILN_U64, offset, 4, 0);
  test_array out = array_make(KILN_U32, 3, 0, NULL, 1);
  const kiln_segmented_reduce_desc desc = {.x = {.in = {in.array}},
                                           .n = N,
                                           .n_segments = 3,
                                           .offsets = offsets.array,
                                           .op = {.name = KILN_MAX},
                                           .out = out.array};

  for (size_t s = 0; s < 3; s++)
    for (size_t i = offset[s]; i < offset[s + 1]; i++)
      want[s] = x[i] > want[s] ? x[i] : want[s];
  ck_writes(CALL_OF(kiln_segmented_reduce, &desc), &out, want);
}
END_TEST

/* ---- Memory and invalid arguments ---------------------------------------- */

START_TEST(test_workspace_and_capture)
{
  for (size_t width = 1; width <= 4; width += 3) {
    const call c = {.m = GIANT,
                    .n_segments = 2000,
                    .width = width,
                    .leading = width,
                    .type = KILN_F32,
                    .offsets = KILN_U32};
    const operation_call made = segmented_call(&c);

    ck_capture(made);
    ck_assert_uint_lt(ck_workspace(made), 1 << 20);
  }
}
END_TEST

#define MEMBER_OF(member, ...)                                                 \
  MEMBER(kiln_segmented_reduce_desc, member, __VA_ARGS__)

START_TEST(test_bad)
{
  const call small = {.m = EQUAL,
                      .n_segments = 10,
                      .width = 1,
                      .leading = 1,
                      .type = KILN_F32,
                      .offsets = KILN_U32};
  const operation_call c = segmented_call(&small);
  const kiln_segmented_reduce_desc *desc = c.desc;
  const CUdeviceptr in = desc->x.in[0].data, offsets = desc->offsets.data;
  const bad_argument bad[] = {
      {KILN_EINVAL, "offsets", {MEMBER_OF(offsets.type, KILN_F32)}},
      {KILN_EINVAL, "offsets is NULL", {MEMBER_OF(offsets.data, 0)}},
      {KILN_EINVAL, "length", {MEMBER_OF(offsets, {0}), MEMBER_OF(length, 11)}},
      {KILN_EINVAL, "leading", {MEMBER_OF(leading, 1), MEMBER_OF(width, 2)}},
      {KILN_EINVAL, "overlap", {MEMBER_OF(out.data, offsets)}},
      {KILN_EINVAL, "index", {MEMBER_OF(index, {in, KILN_U8})}},
      {KILN_EINVAL,
       "index",
       {MEMBER_OF(offsets, {0}), MEMBER_OF(index, {offsets, KILN_U32})}},
      {KILN_EINVAL, "segments", {MEMBER_OF(n_segments, UINT64_MAX)}},
  };

  ck_bad_arguments(c, bad);
}
END_TEST

/* Runs a call in checked mode. Checks its status and message, and that a call
 * that fails writes nothing. */
static void checked_run(const kiln_segmented_reduce_desc *desc,
                        const test_array *out, const char *says)
{
  const kiln_status st = kiln_segmented_reduce(stream, desc, NULL);
  uint32_t *got;

  if (says == NULL) {
    ck_kiln_ok(st);
  } else {
    ck_kiln_is(st, KILN_EINVAL);
    ck_assert_msg(strstr(kiln_last_error()->message, says) != NULL,
                  "\"%s\": %s", says, kiln_last_error()->message);
  }
  got = kept(array_read(out));
  /* each segment consists of three elements */
  for (size_t s = 0; s < desc->n_segments; s++)
    ck_assert_uint_eq(got[s], says == NULL ? 3 * 0x01010101 : 0x5a5a5a5a);
}

/* A single offset is wrong: the first, one in the middle, or the last. */
START_TEST(test_checked)
{
  enum { SEGMENTS = 3000, N = 9000 };
  static const struct {
    size_t at;
    int64_t value;
    const char *says;
  } wrong[] = {{0, -1, "offsets[0] is -1"},
               {1, N + 1, "offsets[1] is 9001, and there are 9000 elements"},
               {1700, 4, "offsets[1700] is 4, less than 5097 before it"},
               {SEGMENTS, N + 5, "offsets[3000] is 9005, and there are 9000"},
               {SEGMENTS, INT64_MAX, "offsets[3000] is 9223372036854775807"}};
  static int64_t offset[SEGMENTS + 1];
  static uint32_t index[N];
  test_array in = array_make(KILN_U32, N, 0, NULL, 1);
  test_array out = array_make(KILN_U32, SEGMENTS, 0, NULL, 0x5a);
  test_array offsets = array_make(KILN_I64, SEGMENTS + 1, 0, NULL, 0);
  test_array indices = array_make(KILN_U32, N, 0, index, 0);
  kiln_segmented_reduce_desc desc = {.x = {.in = {in.array}},
                                     .n = N,
                                     .n_segments = SEGMENTS,
                                     .offsets = offsets.array,
                                     .out = out.array,
                                     .checked = true};

  for (size_t s = 0; s <= SEGMENTS; s++)
    offset[s] = (int64_t)s * 3;
  for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
    const int64_t right = offset[wrong[w].at];

    offset[wrong[w].at] = wrong[w].value;
    ck_kiln_ok(
        kiln_copy_to_device(device, offsets.array.data, offset, sizeof offset));
    checked_run(&desc, &out, wrong[w].says);
    offset[wrong[w].at] = right;
  }
  ck_kiln_ok(
      kiln_copy_to_device(device, offsets.array.data, offset, sizeof offset));
  desc.index = indices.array;
  desc.n_index = N;
  index[8123] = N;
  ck_kiln_ok(
      kiln_copy_to_device(device, indices.array.data, index, sizeof index));
  checked_run(&desc, &out, "index[8123] is 9000, and there are 9000 elements");
  index[8123] = N - 1;
  ck_kiln_ok(
      kiln_copy_to_device(device, indices.array.data, index, sizeof index));
  checked_run(&desc, &out, NULL);
  desc.n_index = N - 1;
  ck_kiln_ok(kiln_fill(device, out.array.data, 0x5a, 1, 4 * SEGMENTS));
  checked_run(&desc, &out, "offsets[3000] is 9000, and there are 8999");
  desc.index = (kiln_array){0};
  checked_run(&desc, &out, NULL);
  capture_begin();
  ck_kiln_is(kiln_segmented_reduce(stream, &desc, NULL), KILN_ECAPTURE);
  capture_free(capture_end());
}
END_TEST

static operation_call draw(unsigned long k, uint64_t *state)
{
  const size_t width = k % 3 == 0 ? UINT64_C(1) << test_random(state) % 6 : 1;
  const call c = {.m = (mix)(test_random(state) % SINGLE),
                  .n_segments = test_random(state) % 500 + 1,
                  .width = width,
                  .leading = width,
                  .first = test_random(state) % 50,
                  .type = KILN_F32,
                  .offsets = KILN_U32,
                  .index = k % 4 == 0 ? KILN_U32 : KILN_DTYPE_NONE};

  return segmented_call(&c);
}

START_TEST(test_random_calls)
{
  ck_random_calls(draw, 150, 4711);
}
END_TEST

/* Without segments there are no offsets to read, as in
 * kiln_segmented_sort(). */
START_TEST(test_no_segments)
{
  test_array x = array_make(KILN_F32, 10, 0, NULL, 0);
  test_array out = array_make(KILN_F32, 1, 0, NULL, 1);
  const kiln_segmented_reduce_desc desc = {.x = {.in = {x.array}},
                                           .n = 10,
                                           .offsets = {0, KILN_U32},
                                           .out = out.array};

  ck_kiln_ok(kiln_segmented_reduce(stream, &desc, NULL));
}
END_TEST

static Suite *suite(void)
{
  Suite *s = suite_create("segmented");
  TCase *t = device_case(s, "segmented");

  tcase_add_loop_test(t, test_mixes, 0, N_MIXES);
  tcase_add_loop_test(t, test_order, 0, N_MIXES);
  tcase_add_loop_test(t, test_types, 0, N_ALL_TYPES);
  tcase_add_loop_test(t, test_rows, 0, N_MIXES);
  tcase_add_loop_test(t, test_row_types, 0, N_ALL_TYPES);
  tcase_add_test(t, test_fixed);
  tcase_add_test(t, test_loose_n);
  tcase_add_test(t, test_workspace_and_capture);
  tcase_add_test(t, test_bad);
  tcase_add_test(t, test_checked);
  tcase_add_test(brief_case(s), test_random_calls);
  tcase_add_test(t, test_no_segments);
  return s;
}

DEVICE_TEST_MAIN(suite)
