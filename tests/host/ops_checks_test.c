/* ops_checks_test.c -- tests what operations refuse: user expressions that
 * could escape from the generated code, invalid parameters, and overlapping
 * arrays. */
#include "support.h"

#include "ops/ops.h"
#include "ops/select/compact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Texts --------------------------------------------------------------- */

START_TEST(test_good_texts)
{
  static const char *const good[] = {
      "x",
      "a > b ? a : b",
      "(x + y) * z[3]",
      "f(x, \")\") + ')'",
      "'\\'' + \"\\\"(\"[0]",
      "x /* ) ( */ + 1",
      "x // trailing (\n + 1",
      "[&] { int k = 0; for (int i = 0; i < 3; ++i) { k += i; } return k; }()",
      " \n x \n",
      "sqrtf(x)\r\n+ 1",
  };

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    ck_assert_msg(kiln__check_text("the map", good[i]) == KILN_OK, "%s: %s",
                  good[i], kiln_last_error()->message);
}
END_TEST

/* Checks the line and column of the caret that marks an error in the user's
 * expression. Both are counted from 1. */
static void caret(const char *text, unsigned line, unsigned column)
{
  char want[64], number[64];
  const char *log, *last;

  ck_assert_msg(kiln__check_text("the map", text) == KILN_ECOMPILE, "%s", text);
  log = kiln_last_error()->log;
  snprintf(number, sizeof number, "the map(%u): error: ", line);
  ck_assert_msg(strncmp(log, number, strlen(number)) == 0, "%s: %s", text, log);
  snprintf(want, sizeof want, "\n  %*s^\n", (int)column - 1, "");
  last = strstr(log, want);
  ck_assert_msg(last != NULL && last[strlen(want)] == '\0', "%s: %s", text,
                log);
  ck_assert(kiln_last_error()->hint[0] != '\0');
}

START_TEST(test_bad_texts)
{
  caret("", 1, 1);
  caret("  \n ", 1, 1);
  caret("/* nothing */", 1, 1);
  caret("x)", 1, 2);
  caret("(x", 1, 1);
  caret("((x)\n + [1)", 2, 6);
  caret("x } { y", 1, 3);
  caret("x; y", 1, 2);
  caret("f(x; y)", 1, 4);
  caret("x +\n  \"abc", 2, 3);
  caret("'x", 1, 1);
  caret("\"a\nb\"", 1, 1);
  caret("x /* y", 1, 3);
  caret("x\n#define y", 2, 1);
  caret("x \\\n + y", 1, 3);
}
END_TEST

/* Every random expression gives a result, and the error record stays within its
 * bounds. */
START_TEST(test_random_texts)
{
  static const char letters[] = "x1 +()[]{};\"'\\/*\n\r#ab,?:\t\xff";
  uint64_t state = 11;
  char text[200];

  for (int k = 0; k < 200000; k++) {
    const size_t n = test_random(&state) % (sizeof text - 1);

    for (size_t i = 0; i < n; i++)
      text[i] = letters[test_random(&state) % (sizeof letters - 1)];
    text[n] = '\0';
    if (kiln__check_text("the map", text) != KILN_OK)
      ck_assert_int_eq(kiln_last_error()->status, KILN_ECOMPILE);
  }
}
END_TEST

START_TEST(test_long_text)
{
  const size_t n = 100000;
  char *text = malloc(n + 1);

  ck_assert_ptr_nonnull(text);
  memset(text, '(', n);
  text[n] = '\0';
  ck_assert_int_eq(kiln__check_text("the map", text), KILN_ECOMPILE);
  memset(text, 'x', n);
  text[n - 1] = ')';
  ck_assert_int_eq(kiln__check_text("the map", text), KILN_ECOMPILE);
  text[n - 1] = 'x';
  ck_assert_int_eq(kiln__check_text("the map", text), KILN_OK);
  free(text);
}
END_TEST

/* ---- Parameters ---------------------------------------------------------- */

START_TEST(test_params)
{
  static const int value = 1;
  static const struct {
    kiln_param param;
    kiln_status want;
  } cases[] = {
      {{"alpha", KILN_I32, &value, false}, KILN_OK},
      {{"_a1", KILN_I32, &value, true}, KILN_OK},
      {{NULL, KILN_I32, &value, false}, KILN_EINVAL},
      {{"", KILN_I32, &value, false}, KILN_EINVAL},
      {{"1a", KILN_I32, &value, false}, KILN_EINVAL},
      {{"a b", KILN_I32, &value, false}, KILN_EINVAL},
      {{"a;b", KILN_I32, &value, false}, KILN_EINVAL},
      {{"x", KILN_I32, &value, false}, KILN_EINVAL},
      {{"x7", KILN_I32, &value, false}, KILN_EINVAL},
      {{"i", KILN_I32, &value, false}, KILN_EINVAL},
      {{"alpha", KILN_DTYPE_NONE, &value, false}, KILN_EINVAL},
      {{"alpha", (kiln_dtype)99, &value, false}, KILN_EINVAL},
      {{"alpha", KILN_I32, NULL, false}, KILN_EINVAL},
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const kiln_code code = {.params = &cases[i].param, .n_params = 1};

    ck_assert_msg(kiln__check_code(&code) == cases[i].want, "%zu", i);
  }
  ck_assert_int_eq(kiln__check_code(&(kiln_code){.n_params = 1}), KILN_EINVAL);
  ck_assert_int_eq(
      kiln__check_code(&(kiln_code){.params = &cases[0].param, .n_params = 17}),
      KILN_EINVAL);
}
END_TEST

/* ---- Arrays -------------------------------------------------------------- */

enum { HOW_READ, HOW_WRITE, HOW_IN_PLACE };

static kiln_status two(int how1, uint64_t at1, uint64_t n1, int how2,
                       uint64_t at2, uint64_t n2)
{
  static void (*const add[])(kiln__checker *, const char *, kiln_array,
                             uint64_t) = {kiln__check_read, kiln__check_write,
                                          kiln__check_in_place};
  const kiln_array a = {at1, KILN_F32}, b = {at2, KILN_F32};
  kiln__checker c;
  int stream = 0; /* The checks use only the address of this variable. */

  ck_assert_int_eq(kiln__check_begin(&c, "kiln_test",
                                     (const kiln_stream *)(void *)&stream, "x"),
                   KILN_OK);
  add[how1](&c, "one", a, n1);
  add[how2](&c, "two", b, n2);
  return kiln__check_end(&c);
}

START_TEST(test_overlaps)
{
  ck_assert_int_eq(two(HOW_READ, 256, 10, HOW_READ, 260, 10), KILN_OK);
  ck_assert_int_eq(two(HOW_READ, 256, 10, HOW_WRITE, 296, 10), KILN_OK);
  ck_assert_int_eq(two(HOW_READ, 256, 10, HOW_WRITE, 292, 10), KILN_EINVAL);
  ck_assert_int_eq(two(HOW_WRITE, 292, 10, HOW_READ, 256, 10), KILN_EINVAL);
  ck_assert_int_eq(two(HOW_WRITE, 256, 10, HOW_WRITE, 256, 10), KILN_EINVAL);
  ck_assert_int_eq(two(HOW_READ, 256, 10, HOW_WRITE, 256, 10), KILN_EINVAL);
  ck_assert_int_eq(two(HOW_READ, 256, 10, HOW_IN_PLACE, 256, 10), KILN_OK);
  ck_assert_int_eq(two(HOW_READ, 256, 10, HOW_IN_PLACE, 260, 10), KILN_EINVAL);
  ck_assert_int_eq(two(HOW_IN_PLACE, 256, 10, HOW_IN_PLACE, 256, 10),
                   KILN_EINVAL);
  ck_assert_int_eq(two(HOW_READ, 256, 0, HOW_WRITE, 256, 0), KILN_OK);
  ck_assert_int_eq(two(HOW_READ, 0, 0, HOW_WRITE, 256, 1), KILN_OK);
  ck_assert_int_eq(two(HOW_READ, 0, 1, HOW_WRITE, 256, 1), KILN_EINVAL);
  ck_assert_int_eq(two(HOW_READ, 257, 1, HOW_WRITE, 512, 1), KILN_EINVAL);
  ck_assert_int_eq(two(HOW_READ, UINT64_MAX - 7, 2, HOW_WRITE, 512, 1),
                   KILN_EINVAL);
}
END_TEST

/* An operation in place requires input and output elements of equal size.
 * Otherwise it would overwrite input elements before it reads them. */
START_TEST(test_in_place_of_another_size)
{
  const kiln_array from = {256, KILN_F32}, same = {256, KILN_I32},
                   wide = {256, KILN_F64};
  kiln__checker c;
  int stream = 0;

  kiln__check_begin(&c, "kiln_test", (const kiln_stream *)(void *)&stream, "x");
  kiln__check_read(&c, "one", from, 10);
  kiln__check_in_place(&c, "two", same, 10);
  ck_assert_int_eq(kiln__check_end(&c), KILN_OK);
  kiln__check_begin(&c, "kiln_test", (const kiln_stream *)(void *)&stream, "x");
  kiln__check_read(&c, "one", from, 10);
  kiln__check_in_place(&c, "two", wide, 10);
  ck_assert_int_eq(kiln__check_end(&c), KILN_EINVAL);
}
END_TEST

START_TEST(test_types)
{
  static const size_t sizes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};

  for (int t = 0; t < 15; t++)
    ck_assert_uint_eq(kiln_dtype_size((kiln_dtype)t), sizes[t]);
  ck_assert_uint_eq(kiln_dtype_size((kiln_dtype)15), 0);
  ck_assert_uint_eq(kiln_dtype_size((kiln_dtype)-1), 0);
  ck_assert_str_eq(kiln_dtype_name(KILN_BF16), "bf16");
  ck_assert_str_eq(kiln_dtype_name(KILN_DTYPE_NONE), "none");
  ck_assert_str_eq(kiln_dtype_name((kiln_dtype)-1), "?");
}
END_TEST

/* The size and the alignment of a struct are valid, or the value is no type. */
START_TEST(test_structs)
{
  for (unsigned size = 0; size < 130; size++)
    for (unsigned align = 0; align < 40; align++) {
      const bool valid = size >= 1 && size <= 64 &&
                         (align == 1 || align == 2 || align == 4 ||
                          align == 8 || align == 16) &&
                         size % align == 0;
      const kiln_dtype type = KILN_STRUCT_OF(size % 16, size, align);

      ck_assert_uint_eq(kiln_dtype_size(type), valid ? size : 0);
      ck_assert_str_eq(kiln_dtype_name(type), valid ? "struct" : "?");
      if (valid)
        ck_assert_uint_eq(kiln__align(type), align);
    }
  ck_assert_uint_eq(kiln_dtype_size(KILN_DTYPE_STRUCT), 0);
  ck_assert_uint_eq(kiln_dtype_size(KILN_STRUCT_OF(16, 4, 4)), 0);
}
END_TEST

/* Vectors take 16 bytes for elements that kernels have always had, otherwise a
 * multiple of 16 bytes where 64 bytes suffice. */
START_TEST(test_vectors)
{
  for (unsigned size = 1; size <= 64; size++) {
    const unsigned n = kiln__vector_of(size);

    ck_assert_uint_eq(n & (n - 1), 0);
    ck_assert_uint_le(n, 16);
    if (size <= 16 && (size & (size - 1)) == 0)
      ck_assert_uint_eq(n * size, 16);
    ck_assert(n == 1 || n * size <= 64);
  }
  ck_assert_uint_eq(kiln__vector_of(3), 16);
  ck_assert_uint_eq(kiln__vector_of(12), 4);
  ck_assert_uint_eq(kiln__vector_of(24), 2);
  ck_assert_uint_eq(kiln__vector_of(36), 1);
}
END_TEST

/* A parameter without a value names the type of a struct. */
START_TEST(test_struct_names)
{
  static const int value = 1;
  const kiln_dtype type = KILN_STRUCT(8, 4);
  const kiln_param good[] = {{"item", type, NULL, false},
                             {"other", KILN_STRUCT_OF(1, 8, 4), NULL, false}};
  const kiln_param twice[] = {{"item", type, NULL, false},
                              {"other", type, NULL, false}};
  const kiln_param with_value = {"item", type, &value, false};
  const kiln_param wide = {"z", KILN_C128, &value, false};

  ck_assert_int_eq(
      kiln__check_code(&(kiln_code){.params = good, .n_params = 2}), KILN_OK);
  ck_assert_int_eq(
      kiln__check_code(&(kiln_code){.params = twice, .n_params = 2}),
      KILN_EINVAL);
  ck_assert_int_eq(
      kiln__check_code(&(kiln_code){.params = &with_value, .n_params = 1}),
      KILN_EINVAL);
  ck_assert_int_eq(
      kiln__check_code(&(kiln_code){.params = &wide, .n_params = 1}),
      KILN_EINVAL);
}
END_TEST

/* Operations refuse structs and complex numbers unless they allow them. */
START_TEST(test_allowed)
{
  const kiln_array structs = {256, KILN_STRUCT(12, 4)};
  const kiln_array complexes = {1024, KILN_C64};
  kiln__checker c;
  int stream = 0;

  for (unsigned k = 0; k < 4; k++) {
    kiln__check_begin(&c, "kiln_test", (const kiln_stream *)(void *)&stream,
                      "x");
    kiln__check_allow(&c, (kiln__allowed)k);
    kiln__check_read(&c, "x", structs, 4);
    ck_assert_int_eq(kiln__check_end(&c) == KILN_OK,
                     (k & KILN__ALLOW_STRUCTS) != 0);
    kiln__check_begin(&c, "kiln_test", (const kiln_stream *)(void *)&stream,
                      "x");
    kiln__check_allow(&c, (kiln__allowed)k);
    kiln__check_read(&c, "x", complexes, 4);
    ck_assert_int_eq(kiln__check_end(&c) == KILN_OK,
                     (k & KILN__ALLOW_COMPLEX) != 0);
  }
}
END_TEST

/* The error message names an invalid element type and does not treat it as a
 * missing type. */
START_TEST(test_unknown_type)
{
  kiln__checker c;
  int stream = 0;

  kiln__check_begin(&c, "kiln_test", (const kiln_stream *)(void *)&stream, "x");
  kiln__check_read(&c, "x", (kiln_array){256, (kiln_dtype)99}, 1);
  ck_assert_int_eq(kiln__check_end(&c), KILN_EINVAL);
  ck_assert_str_eq(kiln_last_error()->message,
                   "kiln_test: the type of x is 99, which is no kiln_dtype");
  kiln__check_begin(&c, "kiln_test", (const kiln_stream *)(void *)&stream, "x");
  kiln__check_read(&c, "x", (kiln_array){256, KILN_DTYPE_NONE}, 1);
  ck_assert_int_eq(kiln__check_end(&c), KILN_EINVAL);
  ck_assert_str_eq(kiln_last_error()->message, "kiln_test: x has no type");
}
END_TEST

/* ---- Tiles --------------------------------------------------------------- */

/* For any tuning and any element size, a tile fits in the static shared memory
 * of every architecture. */
START_TEST(test_tiles_fit)
{
  for (unsigned block = 32; block <= 1024; block += 32)
    for (unsigned items = 1; items <= 64; items++)
      for (unsigned vec = 1; vec <= 16; vec *= 2)
        for (size_t bytes = 1; bytes <= 12; bytes++) {
          kiln_tuning t = {(uint16_t)block, (uint16_t)items, 0, 0};
          const unsigned got = kiln__tile_items(&t, vec, bytes);

          ck_assert_uint_ge(got, 1);
          ck_assert_uint_eq(got % vec, 0);
          ck_assert_uint_le(got, 32);
          ck_assert(t.block >= 32 && t.block <= block && t.block % 32 == 0);
          ck_assert_msg(t.block * got * bytes <= 46 << 10,
                        "block %u, %u items, %u in a vector, %zu bytes", block,
                        items, vec, bytes);
        }
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "ops_checks", 0, NULL, NULL,
      TESTS(test_good_texts, test_bad_texts, test_random_texts, test_long_text,
            test_params, test_overlaps, test_in_place_of_another_size,
            test_types, test_structs, test_vectors, test_struct_names,
            test_allowed, test_unknown_type, test_tiles_fit));
}
