/* Tests how a program description is compiled into an image, with a scripted
 * fake of NVRTC. */
#include "support.h"

#include "fake_nvrtc.h"
#include "program/program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char fake[] = KILN_TEST_FAKES "/fake_nvrtc.so";
static const kiln_target sm_90 = {.cc = 90};

static char dir[256], cache[300], library[512];
static fake_nvrtc_control *control;
static kiln_runtime *rt;
static kiln_image *image;

static kiln_runtime *make_runtime(const kiln_allocator *a)
{
  kiln_runtime_opts opts = {.ignore_env = true,
                            .nvrtc_path = library,
                            .cache_dir = cache,
                            .compile_threads = 2};
  kiln_runtime *made;

  if (a != NULL)
    opts.allocator = *a;
  ck_kiln_ok(kiln_runtime_create(&made, &opts));
  return made;
}

static void drop_image(void)
{
  kiln_image_free(image);
  image = NULL;
}

static void stop(void)
{
  drop_image();
  kiln_runtime_free(rt);
  rt = NULL;
}

/* Replaces the runtime by a new runtime with the same options. */
static void restart(void)
{
  stop();
  rt = make_runtime(NULL);
}

/* Compiles into `image`, which stays valid until the next call. */
static void compile(const kiln_program_desc *desc, const kiln_target *target)
{
  drop_image();
  ck_kiln_ok(kiln_compile(&image, rt, desc, target));
}

/* Compiles like compile() and checks whether the image comes from the compiler,
 * the cache or a pack. */
static void compile_from(kiln_origin origin, const kiln_program_desc *desc,
                         const kiln_target *target)
{
  compile(desc, target);
  ck_assert_int_eq(kiln_image_origin(image), origin);
}

/* Checks that a compile fails with the status `want` and gives no image. */
static void refuse(kiln_status want, const kiln_program_desc *desc,
                   const kiln_target *target)
{
  drop_image();
  image = (kiln_image *)&control;
  ck_kiln_is(kiln_compile(&image, rt, desc, target), want);
  ck_assert_ptr_null(image);
}

static void setup(void)
{
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.13", NULL, library);
  control = fake_nvrtc_of(library);
  rt = make_runtime(NULL);
}

static void teardown(void)
{
  stop();
  ck_assert_int_eq(atomic_load(&control->programs), 0);
  test_dir_remove(dir);
}

/* The text that a description's on_log callback received. */
typedef struct heard {
  int calls;
  char text[4096];
} heard;

static void hear(void *user, const char *text, size_t size)
{
  heard *h = user;

  h->calls++;
  snprintf(h->text, sizeof h->text, "%.*s", (int)size, text);
}

static const char source[] =
    "extern \"C\" __global__ void plain(float *x, int n) {}\n"
    "__global__ void saxpy(float a, const float *x, float *y, int n) {}\n"
    "template <class T> __global__ void scale(T *x) {}\n//regs 24\n";

START_TEST(an_image_says_what_it_is)
{
  static const char *const names[] = {"scale<int>", "saxpy"};
  heard log = {0};
  const kiln_program_desc desc = {.source = source,
                                  .name = "mine.cu",
                                  .names = names,
                                  .n_names = 2,
                                  .on_log = hear,
                                  .log_user = &log};
  kiln_resources res;
  const char *ptx, *hash, *key, *lowered;
  kiln_target target;
  size_t size;

  compile(&desc, &sm_90);
  ptx = kiln_image_ptx(image, &size);
  ck_assert_uint_eq(strlen(ptx), size);
  ck_assert_ptr_nonnull(strstr(ptx, ".visible .entry plain("));
  ck_assert_ptr_nonnull(kiln_image_cubin(image, &size));
  ck_assert_uint_gt(size, 10);
  target = kiln_image_target(image);
  ck_assert(target.cc == 90 && target.suffix == 0 && !target.ptx);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_COMPILER);
  ck_assert_int_eq(kiln_image_nvrtc(image), 13000);
  ck_assert(kiln_image_compile_ms(image) >= 0);
  key = kiln_image_key(image, &hash);
  ck_assert_uint_eq(strlen(hash), 32);
  ck_assert_ptr_nonnull(strstr(key, "mine.cu"));
  ck_assert_int_eq(log.calls, 1);
  ck_assert_str_eq(log.text, kiln_image_log(image));
  ck_assert_ptr_nonnull(strstr(log.text, "Used 24 registers"));

  ck_assert_uint_eq(kiln_image_kernels(image), 3);
  ck_kiln_ok(kiln_image_resources(image, 0, &res));
  ck_assert_str_eq(res.name, "plain");
  ck_assert_int_eq(res.registers, 24);
  ck_assert_int_eq(res.n_params, 2);
  ck_kiln_is(kiln_image_resources(image, 3, &res), KILN_EINVAL);
  ck_kiln_is(kiln_image_resources(NULL, 0, &res), KILN_EINVAL);

  ck_assert_str_eq(kiln_image_lowered(image, "plain"), "plain");
  ck_assert_str_eq(kiln_image_lowered(image, "saxpy"), "_Z5saxpyv");
  ck_assert_str_eq(kiln_image_lowered(image, "_Z5saxpyv"), "_Z5saxpyv");
  lowered = kiln_image_lowered(image, "scale<int>");
  ck_assert_ptr_nonnull(lowered);
  ck_assert_str_eq(kiln_image_lowered(image, lowered), lowered);
  ck_assert_ptr_null(kiln_image_lowered(image, "nope"));
  ck_assert_ptr_null(kiln_image_lowered(image, "scale<float>"));
  ck_assert_ptr_null(kiln_image_lowered(image, ""));
}
END_TEST

START_TEST(plain_names_of_mangled_kernels)
{
  /* For extern "C", the fake NVRTC copies the names to the PTX unchanged. */
  const kiln_program_desc desc = {
      .source =
          "extern \"C\" __global__ void _Z5saxpyfPKf(int a) {}\n"
          "extern \"C\" __global__ void _ZL4locav(int a) {}\n"
          "extern \"C\" __global__ void _ZN2ns3subEv(int a) {}\n"
          "extern \"C\" __global__ void _ZN12_GLOBAL__N_14anonEv(int a) {}\n"
          "extern \"C\" __global__ void _Z3twoi(int a) {}\n"
          "extern \"C\" __global__ void _Z3twof(int a) {}\n"
          "extern \"C\" __global__ void _Z4tmplIfEvT_(int a) {}\n"
          "extern \"C\" __global__ void _Z99cut(int a) {}\n"
          "extern \"C\" __global__ void _Z(int a) {}\n"};
  static const struct {
    const char *name, *lowered;
  } rows[] = {{"saxpy", "_Z5saxpyfPKf"},
              {"loca", "_ZL4locav"},
              {"ns::sub", "_ZN2ns3subEv"},
              {"anon", "_ZN12_GLOBAL__N_14anonEv"},
              {"tmpl", "_Z4tmplIfEvT_"},
              {"two", NULL},
              {"_Z3twoi", "_Z3twoi"},
              {"sub", NULL},
              {"ns", NULL},
              {"ns::su", NULL},
              {"sax", NULL},
              {"saxpyfPKf", NULL},
              {"cut", NULL}};

  compile(&desc, &sm_90);
  ck_assert_uint_eq(kiln_image_kernels(image), 9);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *got = kiln_image_lowered(image, rows[i].name);

    ck_assert_msg(rows[i].lowered == NULL
                      ? got == NULL
                      : got != NULL && strcmp(got, rows[i].lowered) == 0,
                  "%s: %s", rows[i].name, got == NULL ? "(none)" : got);
  }
}
END_TEST

START_TEST(options_that_the_compiler_gets)
{
  static const char *const defines[] = {"B=x y", "A"};
  static const char *const traits[] = {"KILN_HAS_SHFL=0"};
  static const char *const options[] = {"-I", "a dir", "-w"};
  kiln_program_desc desc = {.source = source,
                            .first_line = 5,
                            .defines = defines,
                            .n_defines = 2,
                            .traits = traits,
                            .n_traits = 1,
                            .options = options,
                            .n_options = 3,
                            .lineinfo = true,
                            .fast_math = true,
                            .max_registers = 40};
  const kiln_target target = {.cc = 90, .ptx = true};
  size_t size = 7;

  compile(&desc, &target);
  ck_assert_ptr_null(kiln_image_cubin(image, &size));
  ck_assert_uint_eq(size, 0);
  ck_assert(kiln_image_target(image).ptx);
  ck_assert_str_eq(control->options,
                   "--gpu-architecture=compute_90\n--std=c++17\n"
                   "--ptxas-options=-v\n--no-cache\n--generate-line-info\n"
                   "--use_fast_math\n--maxrregcount=40\n-DKILN_ARCH=90\n"
                   "-DKILN_WARP_SIZE=32\n-DKILN_HAS_ITS=1\n-DKILN_HAS_MATCH=1\n"
                   "-DKILN_HAS_REDUX=1\n-DKILN_HAS_CP_ASYNC=1\n"
                   "-DKILN_HAS_TMA=1\n-DKILN_HAS_CLUSTER=1\n"
                   "-DKILN_SMEM_PER_BLOCK=49152\n-DKILN_REGS_PER_SM=65536\n"
                   "-DKILN_SMEM_PER_BLOCK_OPTIN=232448\n-DKILN_HAS_SHFL=0\n"
                   "-DA=1\n-DB=x y\n-I\na dir\n-w\n");
  ck_assert_str_eq(control->source_name, "program.cu");

  /* The suffix of the target overrides the suffix of the description. Older
   * NVRTC versions do not support the option --no-cache. */
  control->version = 12080;
  desc.suffix = 'a';
  desc.no_cache = true;
  compile(&desc, &sm_90);
  ck_assert_ptr_nonnull(strstr(control->options, "=sm_90a\n"));
}
END_TEST

/* Compilers that support --minimal and -Ofast-compile receive each of them
 * once, but not together with -G. */
START_TEST(options_for_compiling_sooner)
{
  static const char *const own[] = {"--minimal", "-Ofast-compile=mid"};
  kiln_program_desc desc = {.source = source,
                            .no_cache = true,
                            .fast_compile = true,
                            .minimal = true};

  compile(&desc, &sm_90);
  ck_assert_ptr_nonnull(
      strstr(control->options, "--Ofast-compile=min\n--minimal\n"));
  desc.debug = true;
  compile(&desc, &sm_90);
  ck_assert_ptr_null(strstr(control->options, "Ofast"));
  ck_assert_ptr_nonnull(strstr(control->options, "--minimal\n"));
  desc.debug = false;
  desc.options = own;
  desc.n_options = 2;
  compile(&desc, &sm_90);
  ck_assert_ptr_null(strstr(control->options, "=min\n"));
  ck_assert_ptr_null(
      strstr(strstr(control->options, "--minimal") + 1, "--minimal"));
}
END_TEST

START_TEST(old_compilers_know_none_of_them)
{
  const kiln_program_desc desc = {
      .source = source, .fast_compile = true, .minimal = true};

  control->version = 12080;
  restart();
  compile(&desc, &sm_90);
  ck_assert_ptr_null(strstr(control->options, "Ofast"));
  ck_assert_ptr_null(strstr(control->options, "--minimal"));
}
END_TEST

/* Makes the fake compiler fail as long as the option --minimal is given. */
static void lack(void *user)
{
  (void)user;
  control->rc[FAKE_NVRTC_compileProgram] =
      strstr(control->options, "--minimal") != NULL ? NVRTC_ERROR_COMPILATION
                                                    : NVRTC_SUCCESS;
}

START_TEST(more_than_the_minimum)
{
  const kiln_program_desc desc = {.source = source, .minimal = true};

  control->on_compile = lack;
  compile(&desc, &sm_90);
  ck_assert_ptr_null(strstr(control->options, "--minimal"));
  control->on_compile = NULL;
}
END_TEST

START_TEST(tiers_and_switches)
{
  heard log = {0};
  kiln_program_desc desc = {.source = source, .on_log = hear, .log_user = &log};
  kiln_resources a, b;

  compile(&desc, &sm_90);
  compile_from(KILN_FROM_MEMORY, &desc, &sm_90);
  ck_assert_int_eq(log.calls, 2);

  restart();
  compile_from(KILN_FROM_DISK, &desc, &sm_90);
  ck_assert_int_eq(log.calls, 3);
  ck_assert_ptr_nonnull(strstr(log.text, "registers"));
  ck_assert_str_eq(kiln_image_lowered(image, "saxpy"), "_Z5saxpyv");
  ck_assert_int_eq(atomic_load(&control->compiles), 1);

  desc.refresh = true;
  ck_kiln_ok(kiln_image_resources(image, 0, &a));
  compile_from(KILN_FROM_COMPILER, &desc, &sm_90);
  ck_assert_int_eq(atomic_load(&control->compiles), 2);
  ck_kiln_ok(kiln_image_resources(image, 0, &b));
  ck_assert_int_eq(a.registers, b.registers);

  desc.refresh = false;
  desc.no_cache = true;
  compile_from(KILN_FROM_COMPILER, &desc, &sm_90);
  desc.no_cache = false;
  desc.source = "#include WHERE\n";
  compile(&desc, &sm_90);
  compile_from(KILN_FROM_COMPILER, &desc, &sm_90);
}
END_TEST

START_TEST(spill_gate)
{
  heard log = {0};
  kiln_program_desc desc = {.source = "__global__ void k() {}\n//spill 8\n",
                            .fail_on_spill = true,
                            .on_log = hear,
                            .log_user = &log};

  /* The image is compiled in the first round and read from the cache in the
   * second. */
  for (int i = 0; i < 2; i++) {
    refuse(KILN_ESPILL, &desc, &sm_90);
    ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "_Z1kv"));
  }
  ck_assert_int_eq(atomic_load(&control->compiles), 1);
  ck_assert_int_eq(log.calls, 2);
  desc.fail_on_spill = false;
  compile(&desc, &sm_90);
  desc.fail_on_spill = true;
  desc.source = "__global__ void k() {}\n";
  compile(&desc, &sm_90);
}
END_TEST

START_TEST(compile_errors)
{
  heard log = {0};
  kiln_program_desc desc = {.source = "\n#error no way\n",
                            .name = "bad.cu",
                            .on_log = hear,
                            .log_user = &log};
  kiln_cache_stats stats;
  const kiln_error *e;

  refuse(KILN_ECOMPILE, &desc, &sm_90);
  e = kiln_last_error();
  ck_assert_str_eq(e->message,
                   "bad.cu(2): catastrophic error: #error directive: no way");
  ck_assert_ptr_nonnull(strstr(e->log, "1 catastrophic error detected"));
  ck_assert_str_eq(e->log, log.text);
  ck_assert_str_ne(e->hint, "");
  ck_assert_int_eq(e->source, KILN_SOURCE_NVRTC);
  ck_assert_int_eq(e->native, 6);
  desc.source = "#include <nope.h>\n";
  refuse(KILN_ECOMPILE, &desc, &sm_90);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "headers"));
  ck_kiln_ok(kiln_cache_counters(rt, &stats));
  ck_assert_uint_eq(stats.published, 0);
}
END_TEST

/* Makes each function of NVRTC fail with several result codes. The compile must
 * fail or succeed without a log. */
START_TEST(compiler_failures)
{
  static const int functions[] = {
      FAKE_NVRTC_createProgram,  FAKE_NVRTC_addNameExpression,
      FAKE_NVRTC_compileProgram, FAKE_NVRTC_getProgramLogSize,
      FAKE_NVRTC_getPTXSize,     FAKE_NVRTC_getPTX,
      FAKE_NVRTC_getCUBINSize,   FAKE_NVRTC_getCUBIN,
      FAKE_NVRTC_getLoweredName};
  static const int results[] = {1, 2, 3, 4, 5, 6, 7, 11, 16, 99};
  static const char *const names[] = {"saxpy"};
  const kiln_program_desc desc = {
      .source = source, .names = names, .n_names = 1, .no_cache = true};

  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
    for (size_t r = 0; r < sizeof results / sizeof results[0]; r++) {
      kiln_status st;

      control->rc[functions[f]] = results[r];
      image = (kiln_image *)&rt;
      st = kiln_compile(&image, rt, &desc, &sm_90);
      if (functions[f] == FAKE_NVRTC_getProgramLogSize && results[r] != 1) {
        /* The compile succeeds, but the image has no log. */
        ck_assert_int_eq(st, KILN_OK);
        drop_image();
      } else {
        ck_assert_int_ne(st, KILN_OK);
        ck_assert_ptr_null(image);
        ck_assert_str_ne(kiln_last_error()->message, "");
      }
      if (functions[f] == FAKE_NVRTC_compileProgram && results[r] == 16)
        ck_assert_int_eq(st, KILN_ECANCELED);
      if (functions[f] == FAKE_NVRTC_compileProgram && results[r] == 1)
        ck_assert_int_eq(st, KILN_ENOMEM);
      if (functions[f] == FAKE_NVRTC_getLoweredName)
        ck_assert_int_eq(st, KILN_ENOTFOUND);
      control->rc[functions[f]] = 0;
      ck_assert_int_eq(atomic_load(&control->programs), 0);
    }
  }
}
END_TEST

START_TEST(bad_arguments)
{
  const kiln_program_desc desc = {.source = source};
  const kiln_target none = {0}, huge = {.cc = 5000},
                    odd = {.cc = 90, .suffix = 'x'};

  ck_kiln_is(kiln_compile(NULL, rt, &desc, &sm_90), KILN_EINVAL);
  ck_kiln_is(kiln_compile(&image, NULL, &desc, &sm_90), KILN_EINVAL);
  refuse(KILN_EINVAL, NULL, &sm_90);
  ck_kiln_is(kiln_compile(&image, rt, &desc, NULL), KILN_EINVAL);
  refuse(KILN_EINVAL, &desc, &none);
  refuse(KILN_EINVAL, &desc, &huge);
  refuse(KILN_EINVAL, &desc, &odd);
  ck_assert_int_eq(atomic_load(&control->compiles), 0);
  kiln_image_free(NULL);
  ck_assert_str_eq(kiln_origin_name(KILN_FROM_OTHER_PROCESS), "other process");
  ck_assert_str_eq(kiln_origin_name((kiln_origin)99), "?");
}
END_TEST

/* Waits for a compile and stores its result in `image`. */
static void finish(kiln__pending *pending)
{
  drop_image();
  ck_kiln_ok(kiln__image_finish(pending, &image));
}

/* ---- Choice of NVRTC, packs ---------------------------------------------- */

/* Replaces the runtime. The new runtime finds NVRTC only in the test's folder,
 * or nowhere, and takes images from `pack` unless it is NULL. */
static void restart_with(bool nvrtc, const char *pack)
{
  const char *const folder = dir;

  const kiln_runtime_opts opts = {.ignore_env = true,
                                  .nvrtc_path = nvrtc ? NULL : "/nowhere",
                                  .nvrtc_dirs = &folder,
                                  .n_nvrtc_dirs = nvrtc,
                                  .packs = &pack,
                                  .n_packs = pack != NULL,
                                  .cache_dir = cache};

  stop();
  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
}

START_TEST(the_newest_that_knows_the_target)
{
  const kiln_program_desc desc = {.source = source};
  const kiln_target sm_70 = {.cc = 70}, sm_35 = {.cc = 35}, sm_30 = {.cc = 30};
  char other[512];

  fake_nvrtc_install(fake, dir, "libnvrtc.so.12", NULL, other);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.11.2", NULL, other);
  restart_with(true, NULL);
  compile(&desc, &sm_90);
  ck_assert_int_eq(kiln_image_nvrtc(image), 13000);
  compile(&desc, &sm_70);
  ck_assert_int_eq(kiln_image_nvrtc(image), 12080);
  compile(&desc, &sm_35);
  ck_assert_int_eq(kiln_image_nvrtc(image), 11080);
  refuse(KILN_EUNSUPPORTED, &desc, &sm_30);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "13.0, 12.8, 11.8"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "3.5 or newer"));
  refuse(KILN_EUNSUPPORTED, &desc, &(kiln_target){.cc = 91});
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "compile for sm_90,"));
}
END_TEST

START_TEST(the_newest_that_the_driver_takes)
{
  const kiln_program_desc desc = {.source = source};
  static const struct {
    int cc, driver, nvrtc;
    kiln_rung rung;
  } rows[] = {
      {90, 13000, 13000, KILN_RUNG_EXACT}, {90, 12040, 12080, KILN_RUNG_EXACT},
      {90, 11080, 11080, KILN_RUNG_EXACT}, {70, 13000, 12080, KILN_RUNG_EXACT},
      {35, 11080, 11080, KILN_RUNG_EXACT}, {90, 0, 13000, KILN_RUNG_EXACT},
      {89, 12080, 12080, KILN_RUNG_EXACT}, {20, 13000, 0, KILN_RUNG_REFUSE}};
  const kiln__nvrtc_id *ids;
  char other[512];
  size_t n;

  fake_nvrtc_install(fake, dir, "libnvrtc.so.12", NULL, other);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.11.2", NULL, other);
  restart_with(true, NULL);
  ck_kiln_ok(kiln__nvrtc_list(((kiln_runtime *)rt)->nvrtc, &ids, &n));
  ck_assert_uint_ge(n, 3);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    kiln__image_request req;
    kiln_ladder_result ladder;

    const kiln__driver driver = {.version = rows[i].driver};

    ck_kiln_ok(kiln__image_choose(&req, &ladder, rt, &desc, rows[i].cc, false,
                                  &driver));
    ck_assert_msg(ladder.rung == rows[i].rung, "row %zu: %s", i,
                  kiln_rung_name(ladder.rung));
    if (ladder.rung == KILN_RUNG_REFUSE) {
      ck_kiln_is(kiln__image_refuse(rt, &ladder), KILN_EUNSUPPORTED);
      ck_assert_str_ne(kiln_last_error()->hint, "");
    } else {
      ck_assert_int_eq(ids[req.nvrtc].info.version, rows[i].nvrtc);
      ck_assert_int_eq(req.target.cc, rows[i].cc);
    }
  }
}
END_TEST

/* After an NVRTC was removed, the images that it compiled are still found,
 * because the memo file describes the library. */
START_TEST(the_cache_answers_when_nvrtc_is_gone)
{
  const kiln_program_desc desc = {.source = source, .name = "p.cu"};
  kiln_program_desc other = desc;
  char older[512], found[512];

  snprintf(found, sizeof found, "%s", library);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.12", NULL, library);
  snprintf(older, sizeof older, "%s", library);
  restart(); /* Compile with the older NVRTC. */
  compile(&desc, &sm_90);
  snprintf(library, sizeof library, "%s", found);
  /* Compile with the newer NVRTC, so that the memo describes both. */
  restart();
  other.source = "extern \"C\" __global__ void other() {}\n";
  compile(&other, &sm_90);
  ck_assert_int_eq(unlink(older), 0);
  ck_assert_int_eq(unlink(found), 0);

  restart();
  compile_from(KILN_FROM_DISK, &desc, &sm_90);
  ck_assert_int_eq(kiln_image_nvrtc(image), 12080);
  compile(&other, &sm_90);
  ck_assert_int_eq(kiln_image_nvrtc(image), 13000);
  other.source = "extern \"C\" __global__ void another() {}\n";
  refuse(KILN_ENONVRTC, &other, &sm_90);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "nvrtc_path"));
}
END_TEST

START_TEST(packs_serve_without_nvrtc)
{
  kiln_program_desc desc = {.source = source, .name = "p.cu"};
  const kiln_target sm_80 = {.cc = 80}, sm_86 = {.cc = 86}, sm_75 = {.cc = 75};
  const kiln__driver driver = {.version = 12000};
  char pack[300];
  kiln__image_request req;
  kiln_ladder_result ladder;
  kiln__pending *pending;
  kiln_image *images[2];
  kiln_traits traits;

  snprintf(pack, sizeof pack, "%s/all.pack", dir);
  ck_kiln_ok(kiln_compile(&images[0], rt, &desc, &sm_80));
  ck_kiln_ok(kiln_compile(&images[1], rt, &desc, &sm_90));
  ck_kiln_is(kiln_pack_write(rt, pack, images, 0), KILN_EINVAL);
  ck_kiln_is(kiln_pack_write(rt, NULL, images, 2), KILN_EINVAL);
  ck_kiln_ok(kiln_pack_write(rt, pack, images, 2));
  kiln_image_free(images[0]);
  kiln_image_free(images[1]);

  restart_with(false, pack);
  compile_from(KILN_FROM_PACK, &desc, &sm_90);
  ck_assert_str_eq(kiln_image_lowered(image, "saxpy"), "_Z5saxpyv");
  compile(&desc, &sm_86);
  ck_assert_int_eq(kiln_image_target(image).cc, 80);
  refuse(KILN_ENONVRTC, &desc, &sm_75);

  ck_kiln_ok(kiln__image_choose(&req, &ladder, rt, &desc, 86, false, &driver));
  ck_assert_int_eq(ladder.rung, KILN_RUNG_PACK);
  ck_kiln_ok(kiln_arch_traits(86, &traits));
  ck_kiln_ok(kiln__image_start(&pending, rt, &desc, &traits, &req));
  ck_assert(kiln__image_ready(pending));
  finish(pending);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_PACK);

  desc.source = "int other;";
  refuse(KILN_ENONVRTC, &desc, &sm_90);
  ck_kiln_ok(kiln__image_choose(&req, &ladder, rt, &desc, 86, false, &driver));
  ck_assert_int_eq(ladder.rung, KILN_RUNG_REFUSE);
  ck_kiln_is(kiln__image_refuse(rt, &ladder), KILN_ENONVRTC);
}
END_TEST

START_TEST(a_compiler_beats_the_lower_code_of_a_pack)
{
  const kiln_program_desc desc = {.source = source, .name = "p.cu"};
  const kiln_target sm_80 = {.cc = 80}, sm_86 = {.cc = 86};
  char pack[300];

  snprintf(pack, sizeof pack, "%s/lower.pack", dir);
  compile(&desc, &sm_80);
  ck_kiln_ok(kiln_pack_write(rt, pack, &image, 1));
  ck_assert_int_eq(control->compiles, 1);

  /* For sm_86, the image is compiled and later read from disk, although the
   * pack's sm_80 image would run. For sm_80, the pack provides the image. */
  for (int i = 0; i < 2; i++) {
    restart_with(true, pack);
    compile_from(i == 0 ? KILN_FROM_COMPILER : KILN_FROM_DISK, &desc, &sm_86);
    ck_assert_int_eq(kiln_image_target(image).cc, 86);
    compile_from(KILN_FROM_PACK, &desc, &sm_80);
  }
  ck_assert_int_eq(control->compiles, 2);
}
END_TEST

START_TEST(a_pack_steps_in_for_an_nvrtc_that_does_not_work)
{
  kiln_program_desc desc = {.source = source, .name = "p.cu"};
  const kiln_target sm_80 = {.cc = 80}, sm_86 = {.cc = 86}, sm_75 = {.cc = 75};
  char pack[300];

  snprintf(pack, sizeof pack, "%s/lower.pack", dir);
  compile(&desc, &sm_80);
  ck_kiln_ok(kiln_pack_write(rt, pack, &image, 1));

  restart_with(true, pack);
  control->rc[FAKE_NVRTC_compileProgram] =
      NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  compile_from(KILN_FROM_PACK, &desc, &sm_86);
  ck_assert_int_eq(kiln_image_target(image).cc, 80);
  refuse(KILN_ENONVRTC, &desc, &sm_75);
  ck_assert_str_ne(kiln_last_error()->hint, "");
  desc.refresh = true;
  refuse(KILN_ENONVRTC, &desc, &sm_86);
  desc.refresh = false;
  /* The pack's image was not cached under the key of a compiled image. */
  control->rc[FAKE_NVRTC_compileProgram] = 0;
  compile_from(KILN_FROM_COMPILER, &desc, &sm_86);
  ck_assert_int_eq(kiln_image_target(image).cc, 86);
}
END_TEST

/* ---- Starting and finishing compiles ------------------------------------ */

static kiln__image_request exact(void)
{
  return (kiln__image_request){
      .rung = KILN_RUNG_EXACT, .target = sm_90, .cc = 90};
}

START_TEST(start_and_finish)
{
  const kiln_program_desc desc = {.source = source};
  const kiln__image_request req = exact();
  kiln__pending *pending;
  kiln_traits traits;

  ck_kiln_ok(kiln_arch_traits(90, &traits));
  ck_kiln_is(kiln__image_lookup(&image, rt, &desc, &traits, &req),
             KILN_ENOTFOUND);
  control->delay_ms = 50;
  ck_kiln_ok(kiln__image_start(&pending, rt, &desc, &traits, &req));
  ck_assert(!kiln__image_ready(pending));
  finish(pending);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_COMPILER);

  drop_image();
  ck_kiln_ok(kiln__image_lookup(&image, rt, &desc, &traits, &req));
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_MEMORY);
  ck_kiln_ok(kiln__image_start(&pending, rt, &desc, &traits, &req));
  ck_assert(kiln__image_ready(pending));
  finish(pending);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_MEMORY);
  drop_image();
  ck_kiln_is(kiln__image_finish(NULL, &image), KILN_EINVAL);
}
END_TEST

START_TEST(a_failure_crosses_threads)
{
  heard log = {0};
  const kiln_program_desc desc = {
      .source = "#error x\n", .on_log = hear, .log_user = &log};
  const kiln__image_request req = exact();
  kiln__pending *pending;
  kiln_traits traits;

  control->delay_ms = 30;
  ck_kiln_ok(kiln_arch_traits(90, &traits));
  ck_kiln_ok(kiln__image_start(&pending, rt, &desc, &traits, &req));
  while (!kiln__image_ready(pending))
    usleep(1000);
  ck_kiln_is(kiln__image_finish(pending, &image), KILN_ECOMPILE);
  ck_assert_ptr_null(image);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "#error"));
  ck_assert_int_eq(log.calls, 1);
}
END_TEST

/* A task that starts and finishes a compile on a compile thread. If every
 * compile thread runs such a task, finishing must not wait for another
 * thread. */
typedef struct nested {
  kiln__task task;
  atomic_int *left;
  kiln_status status;
} nested;

static void run_nested(kiln__task *task)
{
  nested *n = (nested *)(void *)task;
  char text[64];
  const kiln_program_desc desc = {.source = text};
  const kiln__image_request req = exact();
  kiln__pending *pending;
  kiln_traits traits;
  kiln_image *made = NULL;

  snprintf(text, sizeof text, "__global__ void k%d() {}\n",
           (int)((uintptr_t)n / sizeof *n % 1000));
  kiln_arch_traits(90, &traits);
  n->status = kiln__image_start(&pending, rt, &desc, &traits, &req);
  if (n->status == KILN_OK)
    n->status = kiln__image_finish(pending, &made);
  kiln_image_free(made);
  atomic_fetch_sub(n->left, 1);
}

START_TEST(finish_on_a_busy_pool)
{
  enum { N = 4 };
  atomic_int left = N;
  static nested tasks[N];

  for (int i = 0; i < N; i++) {
    tasks[i] = (nested){.task = {.run = run_nested}, .left = &left};
    kiln__pool_add(rt->pool, &tasks[i].task);
  }
  while (atomic_load(&left) > 0)
    usleep(1000);
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(tasks[i].status, KILN_OK);
}
END_TEST

/* ---- Threads ------------------------------------------------------------- */

typedef struct worker {
  int number;
  bool same;
} worker;

static void *work(void *arg)
{
  const worker *w = arg;
  char text[64];
  const kiln_program_desc desc = {.source = text};
  kiln_image *made;

  snprintf(text, sizeof text, "__global__ void k%d() {}\n",
           w->same ? 0 : w->number);
  if (kiln_compile(&made, rt, &desc, &sm_90) != KILN_OK)
    return "a compile failed";
  kiln_image_free(made);
  return NULL;
}

static void run_threads(bool same)
{
  enum { N = 12 };
  worker workers[N];

  control->delay_ms = 20;
  for (int i = 0; i < N; i++)
    workers[i] = (worker){i, same};
  test_threads(N, work, workers, sizeof workers[0]);
  ck_assert_int_eq(atomic_load(&control->compiles), same ? 1 : N);
  ck_assert_int_le(atomic_load(&control->most_running), 2);
}

START_TEST(one_compile_for_the_same_program)
{
  run_threads(true);
}
END_TEST

START_TEST(compiles_in_parallel_up_to_the_bound)
{
  run_threads(false);
  ck_assert_int_eq(atomic_load(&control->most_running), 2);
}
END_TEST

/* An on_log callback that compiles the same program again. */
static void compile_again(void *user, const char *text, size_t size)
{
  const kiln_program_desc desc = {.source = source};
  kiln_image *again;

  (void)text;
  (void)size;
  ck_kiln_ok(kiln_compile(&again, user, &desc, &sm_90));
  kiln_image_free(again);
}

START_TEST(callbacks_may_compile)
{
  const kiln_program_desc desc = {
      .source = source, .on_log = compile_again, .log_user = rt};

  compile(&desc, &sm_90);
}
END_TEST

/* ---- Why ----------------------------------------------------------------- */

typedef struct reasons {
  char text[4096];
} reasons;

static void note(void *user, const char *field, const char *wanted,
                 const char *found)
{
  reasons *r = user;

  snprintf(r->text + strlen(r->text), sizeof r->text - strlen(r->text),
           "[%s|%s|%s]", field, wanted, found);
}

START_TEST(why_names_the_field)
{
  static const char *const d1[] = {"A=1", "C=1"}, *const d2[] = {"A=2", "C=1"};
  kiln_program_desc desc = {
      .source = source, .name = "w.cu", .defines = d1, .n_defines = 2};
  const kiln_program_desc other = {.source = "int o;", .name = "o.cu"};
  const kiln_target sm_80 = {.cc = 80};
  reasons r = {""};
  bool hit = true;

  ck_kiln_is(kiln_cache_why(rt, &desc, &sm_90, &hit, note, &r), KILN_ENOTFOUND);
  ck_assert(!hit);
  compile(&other, &sm_90);
  compile(&desc, &sm_90);
  ck_kiln_ok(kiln_cache_why(rt, &desc, &sm_90, &hit, note, &r));
  ck_assert(hit);
  ck_assert_str_eq(r.text, "");

  desc.defines = d2;
  ck_kiln_ok(kiln_cache_why(rt, &desc, &sm_90, &hit, note, &r));
  ck_assert(!hit);
  ck_assert_str_eq(r.text, "[define|A=2|A=1]");
  r.text[0] = '\0';
  desc.n_defines = 0;
  ck_kiln_ok(kiln_cache_why(rt, &desc, &sm_90, &hit, note, &r));
  ck_assert_str_eq(r.text, "[define|(none)|A=1][define|(none)|C=1]");
  r.text[0] = '\0';
  desc.defines = d1;
  desc.n_defines = 2;
  /* Cache entries of the program with this name are still compared first. */
  desc.source = other.source;
  ck_kiln_ok(kiln_cache_why(rt, &desc, &sm_80, &hit, note, &r));
  ck_assert_ptr_nonnull(strstr(r.text, "[source|int o;|"));
  ck_assert_ptr_nonnull(strstr(r.text, " bytes, hash "));
  ck_assert_ptr_nonnull(strstr(r.text, "[target|sm_80|sm_90]"));
  ck_assert_ptr_nonnull(strstr(r.text, "[KILN_ARCH|80|90]"));
  ck_assert_ptr_null(strstr(r.text, "[define"));
  ck_assert_int_eq(atomic_load(&control->compiles), 2);
  ck_kiln_is(kiln_cache_why(rt, &desc, &sm_80, NULL, note, &r), KILN_EINVAL);
  ck_kiln_is(kiln_cache_why(rt, &desc, &sm_80, &hit, NULL, &r), KILN_EINVAL);
}
END_TEST

/* ---- Memory -------------------------------------------------------------- */

/* Makes each allocation fail in turn. The call must return a status, leak
 * nothing and set the output to NULL. */
START_TEST(out_of_memory)
{
  static const char *const names[] = {"scale<int>"};
  static const char *const options[] = {"-w"};
  const kiln_program_desc desc = {.source = source,
                                  .names = names,
                                  .n_names = 1,
                                  .options = options,
                                  .n_options = 1,
                                  .first_line = 3,
                                  .no_cache = _i == 0};
  bool hit = true, done = false;

  for (long i = 0; !done; i++) {
    test_allocator a;
    reasons r = {""};
    kiln_status st;

    ck_assert_int_lt(i, 2000);
    test_allocator_init(&a);
    stop();
    rt = make_runtime(&a.alloc);
    image = (kiln_image *)&a;
    a.fail_at = a.calls + i;
    st = kiln_compile(&image, rt, &desc, &sm_90);
    done = a.calls <= a.fail_at;
    ck_assert_msg(st == KILN_OK || st == KILN_ENOMEM || st == KILN_ENONVRTC,
                  "call %ld: %s", i, kiln_last_error()->message);
    ck_assert((st == KILN_OK) == (image != NULL));
    drop_image();
    if (_i == 1) {
      a.fail_at = a.calls + i;
      st = kiln_cache_why(rt, &desc, &sm_90, &hit, note, &r);
      done &= a.calls <= a.fail_at;
      ck_assert(st == KILN_OK || st == KILN_ENOMEM || st == KILN_ENONVRTC ||
                st == KILN_ENOTFOUND);
      ck_kiln_ok(kiln_cache_clear(rt, NULL));
    }
    stop();
    ck_assert_int_eq(a.live, 0);
    ck_assert_int_eq(atomic_load(&control->programs), 0);
  }
}
END_TEST

/* ---- Ten thousand compiles ---------------------------------------------- */

START_TEST(ten_thousand_cycles)
{
  kiln_program_desc desc = {.source = source, .no_cache = true};
  test_allocator a;
  long live = 0;

  test_allocator_init(&a);
  stop();
  rt = make_runtime(&a.alloc);
  for (int i = 0; i < 10000; i++) {
    compile(&desc, &sm_90);
    drop_image();
    if (i == 10)
      live = a.live;
  }
  ck_assert_int_eq(a.live, live);
  stop();
  ck_assert_int_eq(a.live, 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("program_image");
  TCase *t = kiln_test_case(
      s, "all", 120, setup, teardown,
      TESTS(an_image_says_what_it_is, plain_names_of_mangled_kernels,
            options_that_the_compiler_gets, options_for_compiling_sooner,
            old_compilers_know_none_of_them, more_than_the_minimum,
            tiers_and_switches, spill_gate, compile_errors, compiler_failures,
            bad_arguments, the_newest_that_knows_the_target,
            the_newest_that_the_driver_takes, packs_serve_without_nvrtc,
            the_cache_answers_when_nvrtc_is_gone,
            a_compiler_beats_the_lower_code_of_a_pack,
            a_pack_steps_in_for_an_nvrtc_that_does_not_work, start_and_finish,
            a_failure_crosses_threads, finish_on_a_busy_pool,
            one_compile_for_the_same_program,
            compiles_in_parallel_up_to_the_bound, callbacks_may_compile,
            why_names_the_field, ten_thousand_cycles));

  tcase_add_loop_test(t, out_of_memory, 0, 2);
  return kiln_test_run(s);
}
