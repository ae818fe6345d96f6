/* program_image_test.c -- tests how a program description is compiled into an
 * image. program_serving_test.c tests who compiles it, and when. */
#include "image_fixture.h"

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
                   "-DKILN_HAS_WGMMA=0\n"
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
  ck_assert_ptr_nonnull(strstr(control->options, "-DKILN_HAS_WGMMA=1\n"));
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
            bad_arguments, why_names_the_field, ten_thousand_cycles));

  tcase_add_loop_test(t, out_of_memory, 0, 2);
  return kiln_test_run(s);
}
