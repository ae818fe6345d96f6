/* cudart_abi_test.c -- compares the runtime library's own declarations and its table of
 * functions with cuda_runtime_api.h.
 *
 * KILN_TEST_CUDA_H is the folder of the header, and KILN__RT_VERSION its version.
 * The test finds the functions that the header declares by searching its text for
 * CUDARTAPI, so it needs no compiler that knows NVIDIA's attributes. */
#include "cpu/cudart/cudart.h"
#include "cpu/cudart/rt_majors.h"

#include "abi_checks.h"
#define KIND(own, nvidia) own
#include "cudart_abi_layout.h"

#include <ctype.h>
#include <stdlib.h>

const abi_row cudart_abi_own[] = {CUDART_ABI_LAYOUT};

/* ---- The table of functions ------------------------------------------------------- */

typedef struct function {
  const char *symbol;
  bool refused;
} function;

/* clang-format off */
#define ROW(symbol, refused) {symbol, refused},
/* clang-format on */
static const function functions[] = {
#define KILN__RT(name, symbol, majors, since, params, args)                    \
  KILN__RT_IN_##majors(ROW(#symbol, false))
#define KILN__RT_STREAM(name, symbol, majors, since, form, params, args)       \
  KILN__RT_IN_##majors(ROW(#symbol, false) ROW(#symbol #form, false))
#define KILN__RT_PLAIN(result, name, symbol, majors, since, params, args)      \
  KILN__RT_IN_##majors(ROW(#symbol, false))
#define KILN__RT_VOID(name, symbol, majors, since, params, args)               \
  KILN__RT_IN_##majors(ROW(#symbol, false))
#define KILN__RT_REFUSED(symbol, majors, since, error, advice)                 \
  KILN__RT_IN_##majors(ROW(#symbol, true))
#include "cpu/cudart/runtime_functions.def"
};
enum { N = sizeof functions / sizeof functions[0] };

START_TEST(every_symbol_has_one_row)
{
  int refused = 0;

  for (int i = 0; i < N; i++) {
    refused += functions[i].refused;
    for (int k = 0; k < i; k++)
      ck_assert_str_ne(functions[i].symbol, functions[k].symbol);
  }
  printf("libcudart %d: %d symbols, %d implemented, %d refused\n",
         KILN__RT_MAJOR, N, N - refused, refused);
}
END_TEST

#ifdef KILN_TEST_CUDA_H

extern const int cudart_abi_version;

START_TEST(structures_are_laid_out_alike)
{
  ck_assert_int_eq(cudart_abi_version, KILN__RT_VERSION);
  check_layout(cudart_abi_own, cudart_abi_nvidia, 200);
}
END_TEST

static char *text_of(const char *path)
{
  FILE *f = fopen(path, "rb");
  char *text = calloc(1, 4 << 20);

  ck_assert_msg(f != NULL, "cannot open %s", path);
  ck_assert_ptr_nonnull(text);
  ck_assert_uint_gt(fread(text, 1, (4 << 20) - 1, f), 10000);
  fclose(f);
  return text;
}

static bool in_table(const char *symbol, bool *refused)
{
  for (int i = 0; i < N; i++) {
    if (strcmp(functions[i].symbol, symbol) == 0) {
      *refused = functions[i].refused;
      return true;
    }
  }
  return false;
}

/* Copies the name that follows at most one space, or returns false if none does. */
static bool name_at(const char *at, char *name, size_t size)
{
  size_t n = 0;

  while (*at == ' ')
    at++;
  while (n + 1 < size && (isalnum((unsigned char)at[n]) || at[n] == '_')) {
    name[n] = at[n];
    n++;
  }
  name[n] = '\0';
  return n > 4 && at[n] == '(' && strncmp(name, "cuda", 4) == 0;
}

START_TEST(every_declared_function_is_in_the_table)
{
  static const char mark[] = "CUDARTAPI ";
  char *text = text_of(KILN_TEST_CUDA_H "/cuda_runtime_api.h");
  int declared = 0, refusals = 0;
  char name[128];

  for (const char *at = text; (at = strstr(at, mark)) != NULL;) {
    bool refused = false;

    at += sizeof mark - 1;
    if (!name_at(at, name, sizeof name))
      continue;
    /* The header names the newest form of some functions by a macro. */
    ck_assert_msg(in_table(name, &refused), "%s is not in the table", name);
    declared++;
    refusals += refused;
  }
  printf("cuda_runtime_api.h %d: %d declarations, %d implemented, %d refused\n",
         cudart_abi_version, declared, declared - refusals, refusals);
  ck_assert_int_gt(declared, 250);
  free(text);
}
END_TEST

#endif

int main(void)
{
  Suite *s = suite_create("cudart_abi");
  TCase *t = tcase_create("cudart_abi");

  tcase_add_test(t, every_symbol_has_one_row);
#ifdef KILN_TEST_CUDA_H
  tcase_add_test(t, structures_are_laid_out_alike);
  tcase_add_test(t, every_declared_function_is_in_the_table);
#endif
  suite_add_tcase(s, t);
  return kiln_test_run(s);
}
