/* kernels_test.c -- tests that every shipped specialisation of every embedded
 * program compiles to machine code without register spills, and that the CPU
 * device loads the PTX.
 *
 * The default run compiles each program with every NVRTC and each specialisation
 * with at least one; the architectures alternate. KILN_TEST_THOROUGH=1 compiles
 * all for every architecture of each NVRTC. KILN_TEST_NVRTC lists the libraries,
 * separated by colons. Without it, the test uses the newest library that
 * discovery finds. */
#include "variants.h"

#include <time.h>
#include <unistd.h>

static double now_s(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Checks that an image contains machine code for its target, at least one
 * kernel, and no spills. A spill has already been an error, because the test
 * sets kiln_program_desc.fail_on_spill. */
static void check_image(kiln_image *image, const kiln_variant *v,
                        const kiln_target *target)
{
  kiln_resources r;

  ck_assert_msg(kiln_image_cubin(image, NULL) != NULL,
                "%s (%s) for %d: no CUBIN", v->builtin, v->label, target->cc);
  ck_assert_int_eq(kiln_image_target(image).cc, target->cc);
  ck_assert_msg(kiln_image_kernels(image) > 0 || may_be_empty(v, target),
                "%s (%s) for %d: %zu kernels", v->builtin, v->label, target->cc,
                kiln_image_kernels(image));
  for (size_t k = 0; k < kiln_image_kernels(image); k++) {
    ck_kiln_ok(kiln_image_resources(image, k, &r));
    ck_assert_int_gt(r.registers, 0);
    if (!v->may_spill)
      ck_assert_msg(r.spill_stores + r.spill_loads == 0, "%s (%s) for %d",
                    v->builtin, v->label, target->cc);
  }
  load_on_cpu(image, v, target);
}

/* The default run compiles a variant for one architecture per NVRTC. It considers
 * the architectures that begin a generation, and the number of the variant selects
 * one of them. Every generation is therefore tested. */
static bool is_wanted(const kiln_variant *v, size_t k, const int *archs,
                      size_t n_archs, size_t arch)
{
  size_t generation[MOST_ARCHS], n = 0;

  if (suffix_of(v) != 0)
    return archs[arch] == 90;
  if (is_thorough() || archs[arch] < v->min_cc)
    return archs[arch] >= v->min_cc;
  for (size_t a = 0; a < n_archs; a++)
    if (archs[a] >= v->min_cc && (a == 0 || archs[a - 1] / 10 != archs[a] / 10))
      generation[n++] = a;
  return n > 0 && generation[k % n] == arch;
}

START_TEST(variants_compile_without_spills)
{
  kiln_runtime *rt = each_runtime(_i, NULL);
  batch b = {0};
  size_t n_variants, n_compiled;
  const kiln_variant *variants = kiln_variant_list(&n_variants);
  const double began = now_s();
  int archs[MOST_ARCHS];
  const size_t n_archs = archs_of(rt, archs);

  for (size_t a = 0; a < n_archs; a++)
    for (size_t v = 0; v < n_variants; v++)
      if (is_turn(variants, v, _i) &&
          is_wanted(&variants[v], v + (size_t)_i, archs, n_archs, a)) {
        kiln_program_desc d = describe(&variants[v]);

        d.fail_on_spill = !variants[v].may_spill;
        add(&b, &variants[v], d,
            (kiln_target){.cc = archs[a],
                          .suffix = each_version[_i] < 12000
                                        ? 0
                                        : suffix_of(&variants[v])});
      }
  n_compiled = b.n;
  compile_batch(&b, rt, check_image);
  printf("NVRTC %d.%d: %zu variants for %zu architectures, %zu compiled in "
         "%.1f s\n",
         each_version[_i] / 1000, each_version[_i] % 1000 / 10, n_variants,
         n_archs, n_compiled, now_s() - began);
  kiln_runtime_free(rt);
}
END_TEST

START_TEST(every_program_has_a_variant)
{
  size_t n_programs, n_variants;
  const kiln_builtin *programs = kiln_builtin_list(&n_programs);
  const kiln_variant *variants = kiln_variant_list(&n_variants);

  ck_assert_uint_ge(n_programs, 18);
  for (size_t p = 0; p < n_programs; p++) {
    size_t v = 0;

    while (v < n_variants && strcmp(variants[v].builtin, programs[p].name) != 0)
      v++;
    ck_assert_msg(v < n_variants, "no variant of %s", programs[p].name);
  }
  for (size_t v = 0; v < n_variants; v++) {
    size_t p = 0;

    while (p < n_programs && strcmp(variants[v].builtin, programs[p].name) != 0)
      p++;
    ck_assert_msg(p < n_programs, "no program %s", variants[v].builtin);
    for (size_t w = 0; w < v; w++)
      ck_assert_msg(strcmp(variants[v].builtin, variants[w].builtin) != 0 ||
                        strcmp(variants[v].label, variants[w].label) != 0,
                    "twice: %s, %s", variants[v].builtin, variants[v].label);
  }
}
END_TEST

static char *ptx_of(kiln_runtime *rt, const char *builtin,
                    const char *const *traits, int cc)
{
  const kiln_program_desc desc = {.builtin = builtin,
                                  .traits = traits,
                                  .n_traits = list_length(traits),
                                  .no_cache = true};
  const kiln_target target = {.cc = cc};
  kiln_image *image = NULL;
  char *copy;

  ck_kiln_ok(kiln_compile(&image, rt, &desc, &target));
  copy = strdup(kiln_image_ptx(image, NULL));
  ck_assert_ptr_nonnull(copy);
  kiln_image_free(image);
  return copy;
}

/* Traits that override those of the device must reach the prelude. Otherwise
 * the kernels for old hardware would not be tested. */
START_TEST(traits_choose_the_body)
{
  static const char *const no_shuffle[] = {"KILN_HAS_SHFL=0",
                                           "KILN_HAS_REDUX=0", NULL};
  static const char *const lock_step[] = {"KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0",
                                          "KILN_HAS_ITS=0", NULL};
  kiln_runtime *rt = each_runtime(_i, NULL);
  char *with = ptx_of(rt, "reduce", NULL, 75);
  char *without = ptx_of(rt, "reduce", no_shuffle, 75);
  char *old = ptx_of(rt, "reduce", lock_step, 75);

  ck_assert_ptr_nonnull(strstr(with, "shfl.sync"));
  ck_assert_ptr_nonnull(strstr(with, "ld.global.nc.v4"));
  ck_assert_ptr_null(strstr(without, "shfl"));
  ck_assert_ptr_nonnull(strstr(without, "bar.warp.sync"));
  ck_assert_ptr_null(strstr(old, "shfl"));
  ck_assert_ptr_null(strstr(old, "bar.warp.sync"));
  ck_assert_ptr_nonnull(strstr(old, "ld.volatile.shared"));
  free(with);
  free(without);
  free(old);
  kiln_runtime_free(rt);
}
END_TEST

/* nvcc must compile the kernel sources if it is given their headers, because
 * every macro has a default value. The default run generates only PTX, for every
 * third file. */
START_TEST(nvcc_compiles_every_file)
{
  static const char nvcc[] = "/usr/local/cuda/bin/nvcc";
  char dir[256], command[2048];

  if (access(nvcc, X_OK) != 0) {
    printf("skipped: %s is not installed\n", nvcc);
    return;
  }
  test_dir_make(dir);
  snprintf(command, sizeof command,
           "cd %s && find " KILN_TEST_SOURCE "/kernels_src -name '*.cu' | "
           "sort | awk 'NR %% %d == 0' | "
           "xargs -P 2 -I{} %s -arch=sm_90 -I " KILN_TEST_SOURCE
           "/kernels_src -I " KILN_TEST_BUILD "/gen %s {}",
           dir, is_thorough() ? 1 : 3, nvcc, is_thorough() ? "-c" : "-ptx");
  ck_assert_int_eq(system(command), 0);
  test_dir_remove(dir);
}
END_TEST

static Suite *kernels(void)
{
  Suite *s = suite_create("kernels");
  TCase *quick = tcase_create("table"), *nvrtc = tcase_create("nvrtc");

  tcase_add_test(quick, every_program_has_a_variant);
  suite_add_tcase(s, quick);
  tcase_set_timeout(nvrtc, is_thorough() ? 3600 : 600);
  tcase_add_loop_test(nvrtc, variants_compile_without_spills, 0, each_n);
  tcase_add_loop_test(nvrtc, traits_choose_the_body, 0, each_n);
  tcase_add_test(nvrtc, nvcc_compiles_every_file);
  suite_add_tcase(s, nvrtc);
  return s;
}

int main(void)
{
  const char *list = getenv("KILN_TEST_NVRTC");

  if (each_find() == 0)
    return KILN_TEST_SKIP;
  if (list == NULL || list[0] == '\0')
    each_n = 1; /* the newest library that discovery finds */
  return kiln_test_run(kernels());
}
