/* demangle_test.c -- tests the demangling of the C++ kernel names that findings
 * show. */
#include "support.h"

#include "cpu/model/demangle.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *linkage, *readable;
} names[] = {
    {"saxpy", "saxpy"},
    {"_Z5saxpyfPfS_", "saxpy"},
    {"_ZL4statv", "stat"},
    {"_ZN2ns3useEv", "ns::use"},
    {"_ZN2ns4copyIfLi4EEEvPT_", "ns::copy<float, 4>"},
    {"_ZN2ns12_GLOBAL__N_14anonIiEEvT_",
     "ns::(anonymous namespace)::anon<int>"},
    {"_Z5threeIf6float4S0_EvT_T0_T1_", "three<float, float4, float4>"},
    {"_Z5threeIPKfS1_PP6float4EvT_T0_T1_",
     "three<float const*, float const*, float4**>"},
    {"_Z5threeIN2ns1AES1_NS0_1VIS1_EEEvT_T0_T1_",
     "three<ns::A, ns::A, ns::V<ns::A>>"},
    {"_Z4valsILN2ns1KE1ELb1ELj7ELin3EEvv", "vals<(ns::K)1, true, 7, -3>"},
    {"_Z3devIN2ns1PIJiNS0_1AE6float4EEEEvT_", "dev<ns::P<int, ns::A, float4>>"},
    {"_Z3devIN2ns1PIJEEEEvT_", "dev<ns::P<>>"},
    {"_Z3devISt6vectorIiSaIiEEEvT_",
     "dev<std::vector<int, std::allocator<int>>>"},
    /* ABI tags, as Numba writes them, are left out. */
    {"_ZN3mod3sumB2v1B5cw51cE5ArrayIiLi1E1CE", "mod::sum"},
    {"_ZN3mod3sumB2v1B9cw51cE", "_ZN3mod3sumB2v1B9cw51cE"},
    /* This template argument is not a valid literal. */
    {"_Z5applyILZ3incfEEvv", "apply<...>"},
    {"_Z5applyIL_Z3incfEEvv", "apply<inc>"},
    /* Unsupported template arguments are left out. */
    {"_Z5withfIXadL_Z2fniEEEvv", "withf<...>"},
    {"_ZN3cub6KernelIiZ4mainEUljE_EEvT_T0_", "cub::Kernel<...>"},
    {"_Z", "_Z"},
    {"_Z9shorter", "_Z9shorter"},
    {"_Z3devIS9_EvT_", "dev<...>"},
};

START_TEST(names_are_readable)
{
  char buf[256];

  ck_assert_str_eq(kiln__cpu_demangle(names[_i].linkage, buf, sizeof buf),
                   names[_i].readable);
}
END_TEST

/* Names come from files, so the function must return some text for any input.
 * It must not read beyond the end of the name. The test uses copies of exact
 * size, so that sanitizers detect such reads. */
START_TEST(damaged_names_do_no_harm)
{
  static const char characters[] = "_ZNIEJLSKPRX0129tanib";
  const char *const name = names[_i].linkage;
  const size_t n = strlen(name);
  char buf[64];

  for (size_t at = 0; at < n; at++) {
    for (size_t k = 0; k < sizeof characters; k++) {
      char *const copy = strdup(name);

      /* The last of these characters is NUL, which truncates the name. */
      copy[at] = characters[k];
      kiln__cpu_demangle(copy, buf, sizeof buf);
      ck_assert_uint_lt(strlen(buf), sizeof buf);
      free(copy);
    }
  }
}
END_TEST

START_TEST(deep_names_are_refused)
{
  enum { N = 100000 };
  static const char nested[] = "PPPNNNIJ1aI";
  char *const name = malloc(N + 1), buf[64];

  for (size_t k = 0; k + 1 < sizeof nested; k++) {
    memcpy(name, "_Z1aI", 5);
    for (size_t i = 5; i < N; i++)
      name[i] = nested[(i * (k + 1)) % (sizeof nested - 1)];
    name[N] = '\0';
    kiln__cpu_demangle(name, buf, sizeof buf);
    memset(name + 5, nested[k], N - 5);
    kiln__cpu_demangle(name, buf, sizeof buf);
    ck_assert_str_eq(buf, "a<...>");
  }
  free(name);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_demangle");
  TCase *t =
      kiln_test_case(s, "names", 0, NULL, NULL, TESTS(deep_names_are_refused));

  kiln_test_loops(t, ROWS(names),
                  TESTS(names_are_readable, damaged_names_do_no_harm));
  return kiln_test_run(s);
}
