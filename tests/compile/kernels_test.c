/* kernels_test.c -- every shipped specialisation of every embedded program compiles
 * to machine code without register spills, with every NVRTC.
 *
 * The default run compiles each specialisation once per NVRTC, for architectures
 * in turn; KILN_TEST_THOROUGH=1 compiles it for every architecture that each NVRTC
 * supports. KILN_TEST_NVRTC lists the libraries, separated by colons. Without it,
 * the newest one that discovery finds is used. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_LIBRARIES = 8, MOST_ARCHS = 64, OLDEST = 35 };

static char libraries[MOST_LIBRARIES][512];
static int n_libraries;

static double now_s(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t length(const char *const *list)
{
  size_t n = 0;

  while (list != NULL && list[n] != NULL)
    n++;
  return n;
}

static kiln_program_desc describe(const kiln_variant *v)
{
  return (kiln_program_desc){.builtin = v->builtin,
                             .defines = v->defines,
                             .n_defines = length(v->defines),
                             .traits = v->traits,
                             .n_traits = length(v->traits),
                             .names = v->names,
                             .n_names = length(v->names),
                             .fail_on_spill = !v->may_spill,
                             .no_cache = true};
}

static kiln_runtime *open_runtime(const char *library)
{
  const kiln_runtime_opts opts = {
      .nvrtc_path = library, .cache_off = true, .ignore_env = true};
  kiln_runtime *rt = NULL;

  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
  return rt;
}

/* Programs with their targets, which one job compiles in parallel. */
typedef struct batch {
  kiln_program_desc *desc;
  kiln_target *target;
  const kiln_variant **variant;
  size_t n, room;
} batch;

static void add(batch *b, const kiln_variant *v, int cc)
{
  if (b->n == b->room) {
    b->room = b->room == 0 ? 256 : 2 * b->room;
    b->desc = realloc(b->desc, b->room * sizeof *b->desc);
    b->target = realloc(b->target, b->room * sizeof *b->target);
    b->variant = realloc(b->variant, b->room * sizeof *b->variant);
    ck_assert(b->desc != NULL && b->target != NULL && b->variant != NULL);
  }
  b->desc[b->n] = describe(v);
  b->target[b->n] = (kiln_target){.cc = cc};
  b->variant[b->n++] = v;
}

static void free_batch(batch *b)
{
  free(b->desc);
  free(b->target);
  free(b->variant);
}

/* Checks that an image has machine code for its target, at least one kernel, and
 * no spills. kiln_program_desc.fail_on_spill has made spills an error already. */
static void check_image(kiln_job *job, const batch *b, size_t i)
{
  const kiln_variant *v = b->variant[i];
  kiln_image *image = NULL;
  kiln_resources r;
  char target[24];
  const kiln_status st = kiln_job_image(job, i, &image);

  kiln_target_text(&b->target[i], target);
  ck_assert_msg(st == KILN_OK, "%s (%s) for %s: %s: %s\n%s", v->builtin,
                v->label, target, kiln_status_name(st),
                kiln_last_error()->message, kiln_last_error()->log);
  ck_assert_msg(kiln_image_cubin(image, NULL) != NULL,
                "%s (%s) for %s: no CUBIN", v->builtin, v->label, target);
  ck_assert_int_eq(kiln_image_target(image).cc, b->target[i].cc);
  ck_assert_uint_gt(kiln_image_kernels(image), 0);
  for (size_t k = 0; k < kiln_image_kernels(image); k++) {
    ck_kiln_ok(kiln_image_resources(image, k, &r));
    ck_assert_int_gt(r.registers, 0);
    if (!v->may_spill)
      ck_assert_msg(r.spill_stores + r.spill_loads == 0, "%s (%s) for %s",
                    v->builtin, v->label, target);
  }
  kiln_image_free(image);
}

/* A thorough run compiles every variant for every architecture, which takes
 * thousands of compiles. */
static bool is_thorough(void)
{
  return getenv("KILN_TEST_THOROUGH") != NULL;
}

/* The default run compiles each variant once per NVRTC: variant k for one of the
 * architectures that begin a generation, in turn, so that every generation is
 * compiled for as well. */
static bool is_wanted(const kiln_variant *v, size_t k,
                      const kiln_nvrtc_info *info, size_t arch)
{
  size_t generation[MOST_ARCHS], n = 0;

  if (is_thorough() || info->archs[arch] < v->min_cc)
    return info->archs[arch] >= v->min_cc;
  for (size_t a = 0; a < info->n_archs && n < MOST_ARCHS; a++)
    if (info->archs[a] >= OLDEST && info->archs[a] >= v->min_cc &&
        (a == 0 || info->archs[a - 1] / 10 != info->archs[a] / 10))
      generation[n++] = a;
  return n > 0 && generation[k % n] == arch;
}

START_TEST(variants_compile_without_spills)
{
  kiln_runtime *rt = open_runtime(libraries[_i]);
  kiln_nvrtc_info info;
  kiln_job *job = NULL;
  batch b = {0};
  size_t n_variants, n;
  const kiln_variant *variants = kiln_variant_list(&n_variants);
  const double began = now_s();
  int archs = 0;

  ck_kiln_ok(kiln_runtime_nvrtc(rt, &info, 1, &n));
  ck_assert_uint_ge(n, 1);
  for (size_t a = 0; a < info.n_archs; a++) {
    if (info.archs[a] < OLDEST)
      continue;
    archs++;
    for (size_t v = 0; v < n_variants; v++)
      if (is_wanted(&variants[v], v, &info, a))
        add(&b, &variants[v], info.archs[a]);
  }
  ck_assert_int_gt(archs, 5);
  ck_kiln_ok(kiln_job_start(&job, rt, b.desc, b.target, b.n, NULL, NULL));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  for (size_t i = 0; i < b.n; i++)
    check_image(job, &b, i);
  printf("NVRTC %d.%d: %zu variants for %d architectures, %zu compiled in "
         "%.1f s\n",
         info.version / 1000, info.version % 1000 / 10, n_variants, archs, b.n,
         now_s() - began);
  kiln_job_free(job);
  kiln_runtime_free(rt);
  free_batch(&b);
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
                                  .n_traits = length(traits),
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

/* Overridden traits must reach the prelude. Otherwise the bodies for old hardware
 * would not be tested. */
START_TEST(traits_choose_the_body)
{
  static const char *const no_shuffle[] = {"KILN_HAS_SHFL=0",
                                           "KILN_HAS_REDUX=0", NULL};
  static const char *const lock_step[] = {"KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0",
                                          "KILN_HAS_ITS=0", NULL};
  kiln_runtime *rt = open_runtime(libraries[_i]);
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

/* nvcc compiles the same files when it is given their headers: every macro has a
 * default. The default run stops at PTX. */
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
           "xargs -P 2 -I{} %s -arch=sm_90 -I " KILN_TEST_SOURCE
           "/kernels_src -I " KILN_TEST_BUILD "/gen %s {}",
           dir, nvcc, is_thorough() ? "-c" : "-ptx");
  ck_assert_int_eq(system(command), 0);
  test_dir_remove(dir);
}
END_TEST

/* Fills `libraries` from KILN_TEST_NVRTC, or with the newest one that discovery
 * finds. */
static void find_libraries(void)
{
  const char *list = getenv("KILN_TEST_NVRTC");
  kiln_runtime *rt = NULL;
  kiln_nvrtc_info info;
  size_t n;

  while (list != NULL && *list != '\0' && n_libraries < MOST_LIBRARIES) {
    const size_t size = strcspn(list, ":");

    if (size > 0)
      snprintf(libraries[n_libraries++], sizeof libraries[0], "%.*s", (int)size,
               list);
    list += size + (list[size] == ':');
  }
  if (n_libraries > 0)
    return;
  if (kiln_runtime_create(&rt, NULL) == KILN_OK &&
      kiln_runtime_nvrtc(rt, &info, 1, &n) == KILN_OK && n > 0)
    snprintf(libraries[n_libraries++], sizeof libraries[0], "%s", info.path);
  kiln_runtime_free(rt);
}

static Suite *kernels(void)
{
  Suite *s = suite_create("kernels");
  TCase *quick = tcase_create("table"), *nvrtc = tcase_create("nvrtc");

  tcase_add_test(quick, every_program_has_a_variant);
  suite_add_tcase(s, quick);
  tcase_set_timeout(nvrtc, is_thorough() ? 3600 : 600);
  tcase_add_loop_test(nvrtc, variants_compile_without_spills, 0, n_libraries);
  tcase_add_loop_test(nvrtc, traits_choose_the_body, 0, n_libraries);
  tcase_add_test(nvrtc, nvcc_compiles_every_file);
  suite_add_tcase(s, nvrtc);
  return s;
}

int main(void)
{
  find_libraries();
  if (n_libraries == 0) {
    printf("no NVRTC: set KILN_TEST_NVRTC to one or more of them\n");
    return KILN_TEST_SKIP;
  }
  return kiln_test_run(kernels());
}
