/* Tests the PTX parser: kernel entries, their parameters and launch bounds. */
#include "support.h"

#include "program/program.h"

#include <stdlib.h>
#include <string.h>

static const char text[] =
    "//\n// .entry in_a_comment(\n//\n.version 8.8\n.target sm_80\n"
    ".address_size 64\n/* .entry other_comment( */\n"
    ".file 1 \"a .entry \\\"path\"\n"
    ".visible .entry plain(\n\t.param .u64 plain_param_0\n)\n{\n\tret;\n}\n"
    "\t// .globl\tnone\n.visible .entry none()\n{\n\tret;\n}\n"
    ".weak .entry _Z5scaleIfEvPT_S0_1P(\n"
    "\t.param .u64 .ptr .global .align 16 a_0,\n"
    "\t.param .f32 a_1,\n"
    "\t.param .align 8 .b8 a_2[32],\n"
    "\t.param .u8 a_3,\n\t.param .b16 a_4,\n"
    "\t.param .align 16 .b64 a_5[2][3]\n)\n"
    ".maxntid 128, 2, 1\n.minnctapersm 2\n{\n\tret;\n}\n"
    ".entry bounds(.param .u32 x) .reqntid 64\n{ ret; }\n"
    ".entry %bare$1\n{\n}\n";

/* Returns a copy of the PTX in memory of the exact size, so that ASan detects a
 * read past the end. */
static char *exact(size_t size)
{
  char *copy = malloc(size == 0 ? 1 : size);

  memcpy(copy, text, size);
  return copy;
}

START_TEST(entries_are_found_in_order)
{
  static const struct {
    const char *name;
    size_t n_params;
    int max_threads;
  } want[] = {{"plain", 1, 0},
              {"none", 0, 0},
              {"_Z5scaleIfEvPT_S0_1P", 6, 256},
              {"bounds", 1, 64},
              {"%bare$1", 0, 0}};
  const size_t size = sizeof text - 1;
  char *ptx = exact(size);
  kiln__image_ptx_entry e;
  size_t at = 0, i = 0;

  for (; kiln__image_ptx_next(ptx, size, &at, &e); i++) {
    ck_assert_uint_lt(i, sizeof want / sizeof want[0]);
    ck_assert_uint_eq(e.name_size, strlen(want[i].name));
    ck_assert_mem_eq(e.name, want[i].name, e.name_size);
    ck_assert_uint_eq(e.n_params, want[i].n_params);
    ck_assert_int_eq(e.max_threads, want[i].max_threads);
  }
  ck_assert_uint_eq(i, sizeof want / sizeof want[0]);
  ck_assert(!kiln__image_ptx_next(ptx, size, &at, &e));
  free(ptx);
}
END_TEST

START_TEST(sizes_of_all_kinds_of_parameters)
{
  static const uint32_t want[] = {8, 4, 32, 1, 2, 48};
  const size_t size = sizeof text - 1;
  char *ptx = exact(size);
  uint32_t sizes[6], two[2] = {0, 0};
  size_t n;

  ck_assert(
      kiln__image_ptx_params(ptx, size, "_Z5scaleIfEvPT_S0_1P", sizes, 6, &n));
  ck_assert_uint_eq(n, 6);
  for (size_t i = 0; i < 6; i++)
    ck_assert_uint_eq(sizes[i], want[i]);

  /* If the caller's array is too small, all parameters are still counted. */
  ck_assert(
      kiln__image_ptx_params(ptx, size, "_Z5scaleIfEvPT_S0_1P", two, 2, &n));
  ck_assert_uint_eq(n, 6);
  ck_assert_uint_eq(two[1], 4);
  ck_assert(kiln__image_ptx_params(ptx, size, "none", NULL, 0, &n));
  ck_assert_uint_eq(n, 0);
  ck_assert(kiln__image_ptx_params(ptx, size, "%bare$1", NULL, 0, &n));
  free(ptx);
}
END_TEST

START_TEST(unknown_names_and_other_texts)
{
  size_t n = 7;

  ck_assert(
      !kiln__image_ptx_params(text, sizeof text - 1, "scale", NULL, 0, &n));
  ck_assert(!kiln__image_ptx_params(text, sizeof text - 1, "in_a_comment", NULL,
                                    0, &n));
  ck_assert(!kiln__image_ptx_params(text, sizeof text - 1, "", NULL, 0, &n));
  ck_assert(!kiln__image_ptx_params("", 0, "plain", NULL, 0, &n));
  ck_assert(
      !kiln__image_ptx_params("\177ELF\0\0.entry ", 13, "x", NULL, 0, &n));
}
END_TEST

START_TEST(every_truncation_stays_inside)
{
  for (size_t size = 0; size < sizeof text - 1; size++) {
    char *ptx = exact(size);
    uint32_t sizes[4];
    kiln__image_ptx_entry e;
    size_t at = 0, n, rounds = 0;

    while (kiln__image_ptx_next(ptx, size, &at, &e))
      ck_assert_uint_lt(rounds++, 6);
    kiln__image_ptx_params(ptx, size, "%bare$1", sizes, 4, &n);
    free(ptx);
  }
}
END_TEST

int main(void)
{
  return kiln_test_main(
      "program_ptx", 0, NULL, NULL,
      TESTS(entries_are_found_in_order, sizes_of_all_kinds_of_parameters,
            unknown_names_and_other_texts, every_truncation_stays_inside));
}
