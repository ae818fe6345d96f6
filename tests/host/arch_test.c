/* arch_test.c -- tests the tables of compute capabilities and NVRTC releases,
 * and the parsing of targets.
 *
 * The expected numbers are copied by hand from the tables of the CUDA C++
 * Programming Guide. */
#include "support.h"

#include <kiln/arch.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct limits {
  int cc;
  const char *family;
  bool tegra;
  int threads_sm, blocks_sm, regs_sm, regs_block, regs_thread;
  int smem_sm, smem_block, smem_optin;
} limits[] = {
    {10, "Tesla", false, 768, 8, 8192, 8192, 124, 16384, 16384, 16384},
    {11, "Tesla", false, 768, 8, 8192, 8192, 124, 16384, 16384, 16384},
    {12, "Tesla", false, 1024, 8, 16384, 16384, 124, 16384, 16384, 16384},
    {13, "Tesla", false, 1024, 8, 16384, 16384, 124, 16384, 16384, 16384},
    {20, "Fermi", false, 1536, 8, 32768, 32768, 63, 49152, 49152, 49152},
    {21, "Fermi", false, 1536, 8, 32768, 32768, 63, 49152, 49152, 49152},
    {30, "Kepler", false, 2048, 16, 65536, 65536, 63, 49152, 49152, 49152},
    {32, "Kepler", true, 2048, 16, 65536, 32768, 255, 49152, 49152, 49152},
    {35, "Kepler", false, 2048, 16, 65536, 65536, 255, 49152, 49152, 49152},
    {37, "Kepler", false, 2048, 16, 131072, 65536, 255, 114688, 49152, 49152},
    {50, "Maxwell", false, 2048, 32, 65536, 65536, 255, 65536, 49152, 49152},
    {52, "Maxwell", false, 2048, 32, 65536, 65536, 255, 98304, 49152, 49152},
    {53, "Maxwell", true, 2048, 32, 65536, 32768, 255, 65536, 49152, 49152},
    {60, "Pascal", false, 2048, 32, 65536, 65536, 255, 65536, 49152, 49152},
    {61, "Pascal", false, 2048, 32, 65536, 65536, 255, 98304, 49152, 49152},
    {62, "Pascal", true, 2048, 32, 65536, 32768, 255, 65536, 49152, 49152},
    {70, "Volta", false, 2048, 32, 65536, 65536, 255, 98304, 49152, 98304},
    {72, "Volta", true, 2048, 32, 65536, 65536, 255, 98304, 49152, 98304},
    {75, "Turing", false, 1024, 16, 65536, 65536, 255, 65536, 49152, 65536},
    {80, "Ampere", false, 2048, 32, 65536, 65536, 255, 167936, 49152, 166912},
    {86, "Ampere", false, 1536, 16, 65536, 65536, 255, 102400, 49152, 101376},
    {87, "Ampere", true, 1536, 16, 65536, 65536, 255, 167936, 49152, 166912},
    {88, "Ampere", false, 1536, 16, 65536, 65536, 255, 102400, 49152, 101376},
    {89, "Ada", false, 1536, 24, 65536, 65536, 255, 102400, 49152, 101376},
    {90, "Hopper", false, 2048, 32, 65536, 65536, 255, 233472, 49152, 232448},
    {100, "Blackwell", false, 2048, 32, 65536, 65536, 255, 233472, 49152,
     232448},
    {101, "Blackwell", true, 1536, 24, 65536, 65536, 255, 233472, 49152,
     232448},
    {103, "Blackwell", false, 2048, 32, 65536, 65536, 255, 233472, 49152,
     232448},
    {110, "Blackwell", true, 1536, 24, 65536, 65536, 255, 233472, 49152,
     232448},
    {120, "Blackwell", false, 1536, 24, 65536, 65536, 255, 102400, 49152,
     101376},
    {121, "Blackwell", false, 1536, 24, 65536, 65536, 255, 102400, 49152,
     101376},
};

enum { N_LIMITS = sizeof limits / sizeof limits[0] };

START_TEST(list_holds_each_capability)
{
  size_t n = 0;
  const int *list = kiln_arch_list(&n);

  ck_assert_uint_eq(n, N_LIMITS);
  for (size_t i = 0; i < n; i++)
    ck_assert_int_eq(list[i], limits[i].cc);
  ck_assert_ptr_eq(kiln_arch_list(NULL), list);
}
END_TEST

START_TEST(limits_are_the_published_ones)
{
  const struct limits *want = &limits[_i];
  const int cc = want->cc;
  kiln_traits t;

  ck_kiln_ok(kiln_arch_traits(cc, &t));
  ck_assert_int_eq(t.cc, cc);
  ck_assert_str_eq(t.family, want->family);
  ck_assert_int_eq(t.tegra, want->tegra);
  ck_assert_int_eq(t.warp_size, 32);
  ck_assert_int_eq(t.max_threads_per_block, cc < 20 ? 512 : 1024);
  ck_assert_int_eq(t.max_threads_per_sm, want->threads_sm);
  ck_assert_int_eq(t.max_warps_per_sm, want->threads_sm / 32);
  ck_assert_int_eq(t.max_blocks_per_sm, want->blocks_sm);
  ck_assert_int_eq(t.regs_per_sm, want->regs_sm);
  ck_assert_int_eq(t.regs_per_block, want->regs_block);
  ck_assert_int_eq(t.max_regs_per_thread, want->regs_thread);
  ck_assert_int_eq(t.smem_per_sm, want->smem_sm);
  ck_assert_int_eq(t.smem_per_block, want->smem_block);
  ck_assert_int_eq(t.smem_per_block_optin, want->smem_optin);
  ck_assert_int_eq(t.smem_reserved_per_block, cc >= 80 ? 1024 : 0);
  ck_assert_int_eq(t.smem_alloc_unit, cc < 20   ? 512
                                      : cc < 30 ? 128
                                      : cc < 80 ? 256
                                                : 128);
  ck_assert_int_eq(t.reg_alloc_unit, cc < 12   ? 256
                                     : cc < 20 ? 512
                                     : cc < 30 ? 64
                                               : 256);
  ck_assert_int_eq(t.warp_alloc_unit, cc < 30 || cc == 60 ? 2 : 4);
}
END_TEST

/* The features of a GPU, and the first compute capability that has each
 * feature. */
static const struct feature {
  const char *name;
  size_t offset;
  int first;
} features[] = {
    {"shuffle", offsetof(kiln_traits, has_shfl), 30},
    {"half arithmetic", offsetof(kiln_traits, has_f16), 53},
    {"double atomics", offsetof(kiln_traits, has_f64_atomics), 60},
    {"cooperative launch", offsetof(kiln_traits, has_coop), 60},
    {"independent scheduling", offsetof(kiln_traits, has_its), 70},
    {"match", offsetof(kiln_traits, has_match), 70},
    {"tensor cores", offsetof(kiln_traits, has_tensor), 70},
    {"redux", offsetof(kiln_traits, has_redux), 80},
    {"cp.async", offsetof(kiln_traits, has_cp_async), 80},
    {"bfloat16", offsetof(kiln_traits, has_bf16), 80},
    {"bulk tensor copies", offsetof(kiln_traits, has_tma), 90},
    {"clusters", offsetof(kiln_traits, has_cluster), 90},
    {"dependent launch", offsetof(kiln_traits, has_pdl), 90},
};

START_TEST(features_come_with_their_generation)
{
  const struct feature *f = &features[_i];

  for (size_t i = 0; i < N_LIMITS; i++) {
    kiln_traits t;
    bool has;

    ck_kiln_ok(kiln_arch_traits(limits[i].cc, &t));
    memcpy(&has, (const char *)&t + f->offset, sizeof has);
    ck_assert_msg(has == (t.cc >= f->first), "%s on %d: %d", f->name, t.cc,
                  has);
    ck_assert_int_eq(t.has_redux_f32, t.cc == 100 || t.cc == 103);
  }
}
END_TEST

START_TEST(unknown_capabilities_take_the_nearest_older)
{
  static const struct {
    int cc, like;
  } cases[] = {{14, 13},   {36, 35},   {54, 53},   {82, 80},  {91, 90},
               {102, 101}, {111, 110}, {122, 121}, {130, 121}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    kiln_traits t, like;

    ck_kiln_ok(kiln_arch_traits(cases[i].cc, &t));
    ck_kiln_ok(kiln_arch_traits(cases[i].like, &like));
    ck_assert_int_eq(t.cc, cases[i].cc);
    ck_assert_str_eq(t.family, like.family);
    ck_assert_int_eq(t.smem_per_sm, like.smem_per_sm);
    ck_assert_int_eq(t.max_blocks_per_sm, like.max_blocks_per_sm);
    /* An unknown compute capability counts as a discrete GPU. */
    ck_assert(!t.tegra);
    ck_assert_int_eq(t.has_its, like.has_its);
  }
}
END_TEST

START_TEST(bad_capabilities_are_refused)
{
  kiln_traits t;

  ck_kiln_is(kiln_arch_traits(9, &t), KILN_EINVAL);
  ck_kiln_is(kiln_arch_traits(0, &t), KILN_EINVAL);
  ck_kiln_is(kiln_arch_traits(-90, &t), KILN_EINVAL);
  ck_kiln_is(kiln_arch_traits(90, NULL), KILN_EINVAL);
}
END_TEST

START_TEST(every_generation_brought_something)
{
  static const struct {
    int cc;
    const char *word;
  } words[] = {{12, "votes"},      {13, "double"},  {20, "ballot"},
               {30, "shuffle"},    {30, "unified"}, {35, "parallelism"},
               {53, "half"},       {60, "double"},  {70, "tensor"},
               {70, "scheduling"}, {80, "redux"},   {80, "cp.async"},
               {89, "8-bit"},      {90, "cluster"}, {100, "tensor memory"}};

  for (size_t i = 0; i < N_LIMITS; i++)
    ck_assert_msg(kiln_arch_brought(limits[i].cc)[0] != '\0', "%d",
                  limits[i].cc);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    ck_assert_msg(strstr(kiln_arch_brought(words[i].cc), words[i].word) != NULL,
                  "%d: %s", words[i].cc, words[i].word);
  ck_assert_str_eq(kiln_arch_brought(0), "");
  ck_assert_str_eq(kiln_arch_brought(999), "");
}
END_TEST

/* ---- Targets ------------------------------------------------------------- */

static const struct {
  const char *text;
  int cc;
  char suffix;
  bool ptx;
  const char *again; /* expected canonical spelling of the target */
} targets[] = {
    {"sm_90a", 90, 'a', false, "sm_90a"},
    {"compute_75", 75, 0, true, "compute_75"},
    {"90", 90, 0, false, "sm_90"},
    {"9.0", 90, 0, false, "sm_90"},
    {"9.0a", 90, 'a', false, "sm_90a"},
    {"100f", 100, 'f', false, "sm_100f"},
    {"10.0", 100, 0, false, "sm_100"},
    {"12.1a", 121, 'a', false, "sm_121a"},
    {"sm_100", 100, 0, false, "sm_100"},
    {"compute_100", 100, 0, true, "compute_100"},
    {"compute_103f", 103, 'f', true, "compute_103f"},
    {"compute_120a", 120, 'a', true, "compute_120a"},
    {"sm_110f", 110, 'f', false, "sm_110f"},
    {"sm_35", 35, 0, false, "sm_35"},
    {"1.0", 10, 0, false, "sm_10"},
    {"13.0", 130, 0, false, "sm_130"},
};

START_TEST(targets_are_read_and_written)
{
  kiln_target t;
  char buf[24];

  ck_kiln_ok(kiln_target_parse(&t, targets[_i].text));
  ck_assert_int_eq(t.cc, targets[_i].cc);
  ck_assert_int_eq(t.suffix, targets[_i].suffix);
  ck_assert_int_eq(t.ptx, targets[_i].ptx);
  memset(buf, 'x', sizeof buf);
  ck_assert_ptr_eq(kiln_target_text(&t, buf), buf);
  ck_assert_str_eq(buf, targets[_i].again);
}
END_TEST

static const char *const rubbish[] = {"",
                                      "sm_",
                                      "compute_",
                                      "sm",
                                      "9",
                                      "sm_9",
                                      "sm_90b",
                                      "sm_90aa",
                                      "sm_90af",
                                      "sm_90a ",
                                      " sm_90",
                                      "SM_90",
                                      "sm_ 90",
                                      "sm_+90",
                                      "sm_-90",
                                      "sm_090",
                                      "090",
                                      "0.9",
                                      "09.0",
                                      "9.",
                                      ".9",
                                      "9.00",
                                      "90.0.0",
                                      "100.0",
                                      "sm_9.0",
                                      "sm_900",
                                      "900",
                                      "sm_1000",
                                      "lto_90",
                                      "compute90",
                                      "sm_99999999999999999999",
                                      "sm_80a",
                                      "sm_89a",
                                      "sm_90f",
                                      "8.9f",
                                      "compute_75a",
                                      "sm_0x5a",
                                      "sm_90\n",
                                      "a",
                                      "f",
                                      "sm_a",
                                      "native",
                                      "all",
                                      "9,0",
                                      "nine",
                                      "sm_90,sm_80"};

START_TEST(rubbish_is_refused)
{
  kiln_target t = {77, 'x', true};

  ck_assert_msg(kiln_target_parse(&t, rubbish[_i]) == KILN_EINVAL, "\"%s\"",
                rubbish[_i]);
  ck_assert_int_eq(t.cc, 0);
  ck_assert_int_eq(t.suffix, 0);
  ck_assert(kiln_last_error()->message[0] != '\0');
  ck_assert(kiln_last_error()->hint[0] != '\0');
}
END_TEST

START_TEST(target_corner_cases)
{
  const kiln_target widest = {INT32_MIN, 'a', true};
  const kiln_target odd = {90, 'z', false};
  kiln_target t;
  char buf[24];

  ck_kiln_is(kiln_target_parse(NULL, "sm_90"), KILN_EINVAL);
  ck_kiln_is(kiln_target_parse(&t, NULL), KILN_EINVAL);
  ck_assert_str_eq(kiln_target_text(NULL, buf), "none");
  ck_assert_str_eq(kiln_target_text(&(kiln_target){0}, buf), "none");
  ck_assert_str_eq(kiln_target_text(&widest, buf), "compute_-2147483648a");
  ck_assert_str_eq(kiln_target_text(&odd, buf), "sm_90");
}
END_TEST

/* Random text either fails to parse or parses to a target that can be printed
 * and parsed again. */
START_TEST(random_targets_never_break)
{
  static const char alphabet[] = "sm_computeaf0123456789. ";
  uint64_t seed = 1;
  int accepted = 0;

  for (int i = 0; i < 300000; i++) {
    char text[12], printed[24];
    kiln_target t, again;
    size_t n = test_random(&seed) % 5;

    strcpy(text, i % 3 == 0 ? "sm_" : "");
    for (size_t k = 0; k < n; k++)
      strncat(text, &alphabet[test_random(&seed) % (sizeof alphabet - 1)], 1);
    if (kiln_target_parse(&t, text) != KILN_OK)
      continue;
    accepted++;
    ck_assert(t.cc >= 10 && t.cc < 200);
    ck_kiln_ok(kiln_target_parse(&again, kiln_target_text(&t, printed)));
    ck_assert(again.cc == t.cc && again.suffix == t.suffix);
  }
  ck_assert_int_gt(accepted, 1000);
}
END_TEST

/* ---- NVRTC --------------------------------------------------------------- */

static const struct {
  int version;
  const char *archs;
} known[] = {
    {11020, "35 37 50 52 53 60 61 62 70 72 75 80 86"},
    {11060, "35 37 50 52 53 60 61 62 70 72 75 80 86 87"},
    {11080, "35 37 50 52 53 60 61 62 70 72 75 80 86 87 89 90"},
    {12000, "50 52 53 60 61 62 70 72 75 80 86 87 89 90"},
    {12060, "50 52 53 60 61 62 70 72 75 80 86 87 89 90"},
    {12080, "50 52 53 60 61 62 70 72 75 80 86 87 89 90 100 101 120"},
    {12090, "50 52 53 60 61 62 70 72 75 80 86 87 89 90 100 101 103 120 121"},
    {13000, "75 80 86 87 88 89 90 100 103 110 120 121"},
    {13030, "75 80 86 87 88 89 90 100 103 110 120 121"},
    {0, ""},
    {10020, ""},
    {11010, ""},
    {14000, ""},
    {-1, ""},
};

static void list_text(char *buf, size_t size, const int *archs, size_t n)
{
  size_t used = 0;

  buf[0] = '\0';
  for (size_t i = 0; i < n; i++)
    used += (size_t)snprintf(buf + used, size - used, "%s%d", i == 0 ? "" : " ",
                             archs[i]);
}

START_TEST(nvrtc_lists_are_known)
{
  char text[256];
  size_t n = 99;
  const int *archs = kiln_nvrtc_known_archs(known[_i].version, &n);

  ck_assert_ptr_nonnull(archs);
  list_text(text, sizeof text, archs, n);
  ck_assert_str_eq(text, known[_i].archs);
  ck_assert_ptr_eq(kiln_nvrtc_known_archs(known[_i].version, NULL), archs);
}
END_TEST

/* Compares the table of architectures with real NVRTC libraries, if
 * KILN_TEST_NVRTC names any. */
START_TEST(nvrtc_lists_match_real_libraries)
{
  const char *env = getenv("KILN_TEST_NVRTC");
  char *list, *rest, *path;

  if (env == NULL || env[0] == '\0') {
    puts("no KILN_TEST_NVRTC: the lists were not compared with a library");
    return;
  }
  list = rest = strdup(env);
  while ((path = strsep(&rest, ":")) != NULL) {
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*version)(int *, int *), (*count)(int *), (*get)(int *);
    int major, minor, n, archs[128];
    char want[256], got[256];
    const int *ours;
    size_t n_ours;

    ck_assert_msg(lib != NULL, "%s", dlerror());
    *(void **)&version = dlsym(lib, "nvrtcVersion");
    *(void **)&count = dlsym(lib, "nvrtcGetNumSupportedArchs");
    *(void **)&get = dlsym(lib, "nvrtcGetSupportedArchs");
    ck_assert(version != NULL && count != NULL && get != NULL);
    ck_assert_int_eq(version(&major, &minor), 0);
    ck_assert_int_eq(count(&n), 0);
    ck_assert_int_le(n, 128);
    ck_assert_int_eq(get(archs), 0);
    list_text(want, sizeof want, archs, (size_t)n);
    ours = kiln_nvrtc_known_archs(major * 1000 + minor * 10, &n_ours);
    list_text(got, sizeof got, ours, n_ours);
    ck_assert_str_eq(got, want);
  }
  free(list);
}
END_TEST

#define N(array) (int)(sizeof(array) / sizeof(array)[0])

int main(void)
{
  Suite *s = suite_create("arch");
  TCase *c = kiln_test_case(
      s, "arch", 60, NULL, NULL,
      TESTS(list_holds_each_capability,
            unknown_capabilities_take_the_nearest_older,
            bad_capabilities_are_refused, every_generation_brought_something,
            target_corner_cases, random_targets_never_break,
            nvrtc_lists_match_real_libraries));

  tcase_add_loop_test(c, limits_are_the_published_ones, 0, N(limits));
  tcase_add_loop_test(c, features_come_with_their_generation, 0, N(features));
  tcase_add_loop_test(c, targets_are_read_and_written, 0, N(targets));
  tcase_add_loop_test(c, rubbish_is_refused, 0, N(rubbish));
  tcase_add_loop_test(c, nvrtc_lists_are_known, 0, N(known));
  return kiln_test_run(s);
}
