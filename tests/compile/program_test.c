/* program_test.c -- tests programs with each real NVRTC: sources, options,
 * includes, names, resource reports and the cache. */
#include "each_nvrtc.h"

#include <locale.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static const kiln_target sm_80 = {.cc = 80};

static char dir[256], cache[300];
static kiln_runtime *rt; /* runtime with the NVRTC that the test uses */

static void setup(void)
{
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
}

static void teardown(void)
{
  kiln_runtime_free(rt);
  rt = NULL;
  test_dir_remove(dir);
}

static kiln_image *compile(const kiln_program_desc *desc)
{
  kiln_image *image;

  ck_kiln_ok(kiln_compile(&image, rt, desc, &sm_80));
  return image;
}

static void compile_and_free(const kiln_program_desc *desc)
{
  kiln_image_free(compile(desc));
}

static void fails(const kiln_program_desc *desc, kiln_status want,
                  const char *says)
{
  kiln_image *image;
  const kiln_error *e;

  ck_kiln_is(kiln_compile(&image, rt, desc, &sm_80), want);
  ck_assert_ptr_null(image);
  e = kiln_last_error();
  ck_assert_msg(strstr(e->message, says) != NULL, "no \"%s\" in: %s", says,
                e->message);
  ck_assert_str_ne(e->hint, "");
}

static const char *put(const char *name, const char *text)
{
  static char path[512];

  snprintf(path, sizeof path, "%s/%s", dir, name);
  test_write_file(path, text, strlen(text));
  return path;
}

#define EACH(name)                                                             \
  START_TEST(name)                                                             \
  {                                                                            \
    rt = each_runtime(_i, cache);

#define EACH_END                                                               \
  }                                                                            \
  END_TEST

/* ---- Sources ------------------------------------------------------------- */

EACH(empty_and_comment_only)
{
  const kiln_program_desc empty = {.source = ""},
                          comment = {.source = "// nothing"};
  kiln_image *image = compile(&empty);

  ck_assert_uint_eq(kiln_image_kernels(image), 0);
  ck_assert_ptr_nonnull(strstr(kiln_image_ptx(image, NULL), ".target sm_80"));
  kiln_image_free(image);
  compile_and_free(&comment);
}
EACH_END

EACH(ten_megabytes)
{
  static const char line[] = "// 0123456789012345678901234567890123456789\n";
  static const char kernel[] = "__global__ void last(int *p) { *p = 1; }\n";
  const size_t n = (10 << 20) / (sizeof line - 1);
  const size_t size = n * (sizeof line - 1) + sizeof kernel - 1;
  char *source = malloc(size + 1);
  kiln_program_desc desc = {.source = source, .source_size = size};
  kiln_image *image;

  for (size_t i = 0; i < n; i++)
    memcpy(source + i * (sizeof line - 1), line, sizeof line - 1);
  memcpy(source + n * (sizeof line - 1), kernel, sizeof kernel - 1);
  source[size] = 'x'; /* This character lies beyond the end of the source. */
  image = compile(&desc);
  ck_assert_str_eq(kiln_image_lowered(image, "last"), "_Z4lastPi");
  kiln_image_free(image);
  image = compile(&desc);
  ck_assert_int_ne(kiln_image_origin(image), KILN_FROM_COMPILER);
  kiln_image_free(image);
  free(source);
}
EACH_END

EACH(line_ends_and_byte_order_mark)
{
  const kiln_program_desc unix_text = {
      .source =
          "#define A 1 \\\n + 2\n__global__ void k(int *p) { *p = A; }\n"};
  const kiln_program_desc other = {
      .source = "\xef\xbb\xbf#define A 1 \\\r\n + 2\r\n"
                "__global__ void k(int *p) { *p = A; }\r\n"};
  const kiln_program_desc bad = {.source = "\xef\xbb\xbf\r\n\r\nint 3;\r\n"};
  kiln_image *a = compile(&unix_text), *b = compile(&other);
  const char *hash_a, *hash_b;

  kiln_image_key(a, &hash_a);
  kiln_image_key(b, &hash_b);
  ck_assert_str_eq(hash_a, hash_b);
  kiln_image_free(a);
  kiln_image_free(b);
  fails(&bad, KILN_ECOMPILE, "program.cu(3): error: ");
}
EACH_END

EACH(language_standard)
{
  static const char *const options[] = {"--std=c++14"};
  kiln_program_desc desc = {.source =
                                "static_assert(__cplusplus == 201703L, \"\");"};

  compile_and_free(&desc);
  desc.source = "static_assert(__cplusplus == 201402L, \"\");";
  desc.options = options;
  desc.n_options = 1;
  compile_and_free(&desc);
}
EACH_END

EACH(traits_are_macros)
{
  static const char *const traits[] = {"KILN_HAS_SHFL=0", "KILN_HAS_REDUX=0"};
  kiln_program_desc desc = {
      .source = "static_assert(KILN_ARCH == 80 && KILN_WARP_SIZE == 32, \"\");"
                "static_assert(KILN_HAS_SHFL && KILN_HAS_ITS, \"\");"
                "static_assert(KILN_HAS_MATCH && KILN_HAS_REDUX, \"\");"
                "static_assert(KILN_HAS_CP_ASYNC && !KILN_HAS_TMA, \"\");"
                "static_assert(!KILN_HAS_CLUSTER && !KILN_HAS_WGMMA, \"\");"
                "static_assert(KILN_SMEM_PER_BLOCK == 49152, \"\");"
                "static_assert(KILN_SMEM_PER_BLOCK_OPTIN > 49152, \"\");"
                "static_assert(KILN_REGS_PER_SM == 65536, \"\");"};

  compile_and_free(&desc);
  desc.source = "static_assert(!KILN_HAS_SHFL && !KILN_HAS_REDUX, \"\");"
                "static_assert(KILN_HAS_ITS, \"\");";
  desc.traits = traits;
  desc.n_traits = 2;
  compile_and_free(&desc);
}
EACH_END

/* Returns true if the PTX contains a 32-bit constant, in any notation that
 * compilers use. */
static bool ptx_holds(const kiln_image *image, uint32_t bits)
{
  char a[32], b[32], c[32];
  const char *ptx = kiln_image_ptx(image, NULL);

  snprintf(a, sizeof a, " %d;", (int32_t)bits);
  snprintf(b, sizeof b, "0f%08X", bits);
  snprintf(c, sizeof c, " %u;", bits);
  return strstr(ptx, a) != NULL || strstr(ptx, b) != NULL ||
         strstr(ptx, c) != NULL;
}

EACH(constants_arrive_as_they_are)
{
  static const struct {
    const char *define;
    uint32_t bits;
  } rows[] = {
      {"V=__int_as_float(0x7fc00000)", 0x7fc00000},
      {"V=__int_as_float(0x7f800000)", 0x7f800000},
      {"V=-__int_as_float(0x7f800000)", 0xff800000},
      {"V=-0.0f", 0x80000000},
      {"V=1e-45f", 1},
      {"V=1.17549435e-38f", 0x00800000},
      {"V=1.5f", 0x3fc00000},
      {"V=__int_as_float(-2147483647 - 1)", 0x80000000},
  };
  static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8",
                                        "fr_FR.UTF-8", "de_DE", "C.UTF-8"};

  /* Uses a locale whose decimal point is a comma, if one is installed. */
  for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
    if (setlocale(LC_ALL, locales[i]) != NULL)
      break;
  }
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const kiln_program_desc desc = {
        .source = "__global__ void k(float *p) { *p = V; }",
        .defines = &rows[i].define,
        .n_defines = 1};
    kiln_image *image = compile(&desc);

    ck_assert_msg(ptx_holds(image, rows[i].bits), "%s in:\n%s", rows[i].define,
                  kiln_image_ptx(image, NULL));
    kiln_image_free(image);
  }
  setlocale(LC_ALL, "C");
}
EACH_END

/* ---- Options ------------------------------------------------------------- */

EACH(defines_with_spaces_and_quotes)
{
  static const char *const defines[] = {
      "TEXT=\"a b, \\\"c\\\" 'd'\"", "SUM=(1 + 2)",
      "EMPTY=", "OP(a, b)=((a) * (b))", "FLAG"};
  const kiln_program_desc desc = {
      .source = "static_assert(sizeof TEXT == 13, \"\");"
                "static_assert(SUM EMPTY == 3 && FLAG == 1, \"\");"
                "static_assert(OP(2 + 1, 4) == 12, \"\");",
      .defines = defines,
      .n_defines = 5};

  compile_and_free(&desc);
}
EACH_END

/* Old compilers reject an option that is given twice, so Kiln must pass each
 * option once. */
EACH(duplicate_options)
{
  static const char *const options[] = {"-G", "-G", "--device-debug=true"};
  static const char *const twice[] = {"-w", "-w", "-use_fast_math"};
  kiln_program_desc desc = {.source = "__global__ void k() {}",
                            .options = options,
                            .n_options = 2,
                            .debug = true,
                            .lineinfo = true};

  compile_and_free(&desc);
  desc = (kiln_program_desc){.source = "__global__ void k() {}",
                             .options = twice,
                             .n_options = 3,
                             .fast_math = true};
  compile_and_free(&desc);
}
EACH_END

EACH(wrong_options)
{
  static const char *const unknown[] = {"--no-such-option"};
  static const char *const bad_value[] = {"--std=c++98765"};
  static const char *const conflict[] = {"-arch=sm_50"};
  kiln_program_desc desc = {.source = "", .options = unknown, .n_options = 1};

  fails(&desc, KILN_EINVAL, "--no-such-option");
  desc.options = bad_value;
  fails(&desc, KILN_EINVAL, "std");
  desc.options = conflict;
  fails(&desc, KILN_EINVAL, "-arch=sm_50");
}
EACH_END

EACH(flags_reach_the_compiler)
{
  kiln_program_desc desc = {
      .source = "__global__ void k(float *p) { *p = p[1] / p[2]; }"};
  kiln_image *plain = compile(&desc), *image;

  ck_assert_ptr_nonnull(strstr(kiln_image_ptx(plain, NULL), "div.rn.f32"));
  ck_assert_ptr_null(strstr(kiln_image_ptx(plain, NULL), ".loc"));
  desc.fast_math = true;
  image = compile(&desc);
  ck_assert_ptr_nonnull(strstr(kiln_image_ptx(image, NULL), "div.approx"));
  kiln_image_free(image);
  desc.fast_math = false;
  desc.lineinfo = true;
  image = compile(&desc);
  ck_assert_ptr_nonnull(strstr(kiln_image_ptx(image, NULL), ".loc"));
  kiln_image_free(image);
  desc.debug = true;
  image = compile(&desc);
  ck_assert_ptr_nonnull(strstr(kiln_image_ptx(image, NULL), "debug"));
  kiln_image_free(image);
  kiln_image_free(plain);
}
EACH_END

/* Compiles with fast_compile and minimal. A program that --minimal does not
 * support must also compile, and an error in the source must be reported. */
EACH(compiled_sooner)
{
  static const char loop[] =
      "extern \"C\" __global__ void k(const float *x, float *y)\n"
      "{ float a[8]; for (int i = 0; i < 8; ++i) a[i] = x[i];\n"
      "  for (int i = 0; i < 8; ++i) y[i] = a[7 - i] * 2; }";
  kiln_program_desc desc = {.source = loop, .fast_compile = true};

  compile_and_free(&desc);
  desc.minimal = true;
  compile_and_free(&desc);
  desc.source = "extern \"C\" __global__ void k(cudaTextureObject_t t, float "
                "*y) { *y = tex1Dfetch<float>(t, 3); }";
  compile_and_free(&desc);
  desc.source = "\n__global__ void k() { undeclared = 1; }";
  fails(&desc, KILN_ECOMPILE, "undeclared");
}
EACH_END

/* ---- Includes ------------------------------------------------------------ */

EACH(folders_with_spaces_and_other_letters)
{
  char folder[300], glued[310];
  const char *two[] = {"-I", folder};
  const char *one[] = {glued};
  const char *longer[] = {"--include-path", folder};
  const char *const *forms[] = {two, one, longer};
  const size_t words[] = {2, 1, 2};

  snprintf(folder, sizeof folder, "%s/a dir \xc3\xa4\xe2\x82\xac", dir);
  snprintf(glued, sizeof glued, "-I%s", folder);
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  put("a dir \xc3\xa4\xe2\x82\xac/h.h", "#define H 7\n");
  for (size_t i = 0; i < 3; i++) {
    const kiln_program_desc desc = {
        .source = "#include <h.h>\nstatic_assert(H == 7, \"\");",
        .options = forms[i],
        .n_options = words[i]};

    compile_and_free(&desc);
  }
}
EACH_END

/* If an included file changes, the program must be compiled again, even if the
 * file is included indirectly. */
EACH(included_files_are_tracked)
{
  const char *options[] = {"-I", dir};
  const kiln_program_desc desc = {
      .source = "#include \"outer.h\"\n"
                "__global__ void k(int *p) { *p = INNER; }",
      .options = options,
      .n_options = 2};
  kiln_image *image;

  put("outer.h", "#include <inner.h>\n");
  put("inner.h", "#define INNER 1234567\n");
  image = compile(&desc);
  ck_assert(ptx_holds(image, 1234567));
  kiln_image_free(image);
  image = compile(&desc);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_MEMORY);
  kiln_image_free(image);
  put("inner.h", "#define INNER 7654321\n");
  image = compile(&desc);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_COMPILER);
  ck_assert(ptx_holds(image, 7654321));
  kiln_image_free(image);
}
EACH_END

/* A new file must be noticed if an earlier search for its name failed. */
EACH(appearing_files_are_noticed)
{
  char first[300], second[300];
  const char *options[] = {"-I", first, "-I", second};
  const kiln_program_desc desc = {
      .source = "#if __has_include(<extra.h>)\n#include <extra.h>\n#else\n"
                "#define V 1111111\n#endif\n#include <base.h>\n"
                "__global__ void k(int *p) { p[0] = V; p[1] = BASE; }",
      .options = options,
      .n_options = 4};
  kiln_image *image;

  snprintf(first, sizeof first, "%s/first", dir);
  snprintf(second, sizeof second, "%s/second", dir);
  ck_assert_int_eq(mkdir(first, 0700), 0);
  ck_assert_int_eq(mkdir(second, 0700), 0);
  put("second/base.h", "#define BASE 2222222\n");
  image = compile(&desc);
  ck_assert(ptx_holds(image, 1111111) && ptx_holds(image, 2222222));
  kiln_image_free(image);
  put("first/base.h", "#define BASE 3333333\n");
  image = compile(&desc);
  ck_assert(ptx_holds(image, 3333333));
  kiln_image_free(image);
  put("second/extra.h", "#define V 4444444\n");
  image = compile(&desc);
  ck_assert(ptx_holds(image, 4444444));
  kiln_image_free(image);
}
EACH_END

/* Kiln and the compiler must find the same included file. For each program, a
 * change of the file that the compiler reads must lead to a new compile. */
EACH(resolution_matches_the_compiler)
{
  static const struct {
    const char *source, *name, *file;
  } rows[] = {
      {"#include \"q.h\"\n", "p.cu", "q.h"},
      {"#include \"q.h\"\n", "sub/p.cu", "sub/q.h"},
      {"#include \"sub/up.h\"\n", "p.cu", "q.h"},
      {"#include \"v.h\"\n", "p.cu", "q.h"},
      {"#include \"sub/v.h\"\n", "p.cu", "sub/q.h"},
      {"#inc\\\nlude \"q.h\"\n", "p.cu", "q.h"},
      {"%:include \"q.h\"\n", "p.cu", "q.h"},
      {"/* a\n */ # /**/ include \"q.h\"\n", "p.cu", "q.h"},
      {"const char c = '\"', d = '\\'';\n#include \"q.h\"\n", "p.cu", "q.h"},
      {"#define S R\"x(\n#include \"no.h\"\n)x\"\n#include \"q.h\"\n", "p.cu",
       "q.h"},
      {"constexpr int n = 1'000;\n#include \"q.h\"\n", "p.cu", "q.h"},
  };
  const kiln_header headers[] = {{"v.h", "#include \"q.h\"\n"},
                                 {"sub/v.h", "#include \"q.h\"\n"}};
  char sub[300], source[512];

  snprintf(sub, sizeof sub, "%s/sub", dir);
  ck_assert_int_eq(mkdir(sub, 0700), 0);
  put("sub/up.h", "#include \"../q.h\"\n");
  ck_assert_int_eq(chdir(dir), 0);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const kiln_program_desc desc = {.source = source,
                                    .name = rows[i].name,
                                    .headers = headers,
                                    .n_headers = 2};

    snprintf(source, sizeof source, "%s__global__ void k(int *p) { *p = Q; }\n",
             rows[i].source);
    for (unsigned value = 7000001; value <= 7000002; value++) {
      char text[64];
      kiln_image *image;

      put("q.h", "#error the wrong one\n");
      put("sub/q.h", "#error the wrong one\n");
      snprintf(text, sizeof text, "#define Q %u\n", value);
      put(rows[i].file, text);
      image = compile(&desc);
      ck_assert_msg(ptx_holds(image, value), "row %zu", i);
      kiln_image_free(image);
    }
  }
  ck_assert_int_eq(chdir("/"), 0);
}
EACH_END

/* Without an include folder, programs use Kiln's small versions of the C
 * headers. */
EACH(c_headers)
{
  const kiln_program_desc desc = {
      .source =
          "#include <assert.h>\n"
          "#include <float.h>\n"
          "#include <limits.h>\n"
          "#include <math.h>\n"
          "#include <stdbool.h>\n"
          "#include <stddef.h>\n"
          "#include <stdint.h>\n"
          "#include <stdio.h>\n"
          "#include <stdlib.h>\n"
          "#include <string.h>\n"
          "#include <cassert>\n"
          "#include <cfloat>\n"
          "#include <climits>\n"
          "#include <cstddef>\n"
          "#include <cstdint>\n"
          "#include <cmath>\n"
          "#include <cstdio>\n"
          "#include <cstdlib>\n"
          "#include <cstring>\n"
          "struct s { int a; double b; };\n"
          "extern \"C\" __global__ void k(uint32_t *p, double *d, "
          "std::uint64_t *q, size_t n) {\n"
          "  assert(p != nullptr);\n"
          "  d[0] = M_PI + std::sqrt(d[1]) + std::fabs(d[2]) + DBL_MAX + "
          "INFINITY + std::isnan(d[3]) + std::pow(2.0f, 3.0f);\n"
          "  q[0] = UINT64_MAX - offsetof(s, b) + INT_MAX + (std::size_t)n;\n"
          "  memcpy(p, d, 8); printf(\"%d\\n\", (int)p[0]); "
          "std::printf(\"x\");\n"
          "  std::memset(p, 0, 4); d[5] = std::abs(-3.5) + std::abs(-2) + "
          "NAN;\n"
          "}\n"};

  compile_and_free(&desc);
}
EACH_END

EACH(headers)
{
  const kiln_header shadow[] = {{"kiln/prelude.cuh", "#define MINE 1\n"}};
  const kiln_header cycle[] = {{"a.h", "#include \"b.h\"\n"},
                               {"b.h", "#include \"a.h\"\n"}};
  const kiln_header guarded[] = {{"a.h", "#pragma once\n#include \"b.h\"\n"},
                                 {"b.h", "#pragma once\n#include \"a.h\"\n"}};
  const kiln_header arch[] = {{"arch.h", "#define OK 1\n"}};
  kiln_program_desc desc = {
      .source = "#include <kiln/prelude.cuh>\n__global__ void k() {}"};

  compile_and_free(&desc);
  desc.source = "#include <kiln/prelude.cuh>\nstatic_assert(MINE, \"\");";
  desc.headers = shadow;
  desc.n_headers = 1;
  compile_and_free(&desc);
  desc = (kiln_program_desc){
      .source = "#include \"a.h\"\n", .headers = cycle, .n_headers = 2};
  fails(&desc, KILN_ECOMPILE, "b.h(1): ");
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "guard"));
  desc.headers = guarded;
  compile_and_free(&desc);
  desc.source = "#ifdef __CUDA_ARCH__\n#include <arch.h>\n#endif\n"
                "static_assert(OK, \"\");";
  desc.headers = arch;
  desc.n_headers = 1;
  compile_and_free(&desc);
  desc.source = "#include <missing.h>\n";
  fails(&desc, KILN_ECOMPILE, "missing.h");
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "-I"));
  desc.source = "#define H <arch.h>\n#include H\nstatic_assert(OK, \"\");";
  /* The program is not cached, but it compiles correctly. */
  compile_and_free(&desc);
}
EACH_END

/* ---- Names --------------------------------------------------------------- */

EACH(names_of_all_kinds)
{
  static const char *const names[] = {"f<float, 3>", "f< int , 4 >",
                                      "ns::g<int>", "&table", "&ns::value"};
  const kiln_program_desc desc = {
      .source = "template <class T, int N> __global__ void f(T *) {}\n"
                "namespace ns { template <class T> __global__ void g(T) {}\n"
                "__global__ void plain() {} __device__ float value; }\n"
                "__constant__ int table[4];\n"
                "extern \"C\" __global__ void c_name() {}\n"
                "__global__ void saxpy(float, const float *, float *) {}\n"
                "__global__ void two(int) {} __global__ void two(float) {}\n",
      .names = names,
      .n_names = 5};

  /* The first image is compiled, and the second is read from disk. */
  for (int round = 0; round < 2; round++) {
    kiln_image *image = compile(&desc);

    ck_assert_int_eq(kiln_image_origin(image),
                     round == 0 ? KILN_FROM_COMPILER : KILN_FROM_DISK);
    ck_assert_str_eq(kiln_image_lowered(image, "f<float, 3>"),
                     "_Z1fIfLi3EEvPT_");
    ck_assert_str_eq(kiln_image_lowered(image, "f< int , 4 >"),
                     "_Z1fIiLi4EEvPT_");
    ck_assert_str_eq(kiln_image_lowered(image, "ns::g<int>"),
                     "_ZN2ns1gIiEEvT_");
    ck_assert_str_eq(kiln_image_lowered(image, "&table"), "table");
    ck_assert_str_eq(kiln_image_lowered(image, "ns::value"), "_ZN2ns5valueE");
    ck_assert_str_eq(kiln_image_lowered(image, "c_name"), "c_name");
    ck_assert_str_eq(kiln_image_lowered(image, "saxpy"), "_Z5saxpyfPKfPf");
    ck_assert_str_eq(kiln_image_lowered(image, "ns::plain"), "_ZN2ns5plainEv");
    ck_assert_ptr_null(kiln_image_lowered(image, "two"));
    ck_assert_ptr_null(kiln_image_lowered(image, "f"));
    kiln_image_free(image);
    kiln_runtime_free(rt);
    rt = each_runtime(_i, cache);
  }
}
EACH_END

EACH(static_and_anonymous_kernels)
{
  static const char *const names[] = {"anon", "local"};
  const kiln_program_desc desc = {
      .source = "namespace { __global__ void anon(int *p) { *p = 1; } }\n"
                "static __global__ void local(int *p) { *p = 2; }\n",
      .names = names,
      .n_names = 2};
  kiln_image *image = compile(&desc);

  for (size_t i = 0; i < 2; i++) {
    const char *lowered = kiln_image_lowered(image, names[i]);

    ck_assert_ptr_nonnull(lowered);
    ck_assert_ptr_nonnull(strstr(kiln_image_ptx(image, NULL), lowered));
  }
  ck_assert_uint_eq(kiln_image_kernels(image), 2);
  kiln_image_free(image);
}
EACH_END

EACH(undefined_names)
{
  static const char *const names[] = {"f<int>", "g<int>"};
  static const char *const broken[] = {"f<"};
  kiln_program_desc desc = {.source =
                                "template <class T> __global__ void f(T) {}\n",
                            .names = names,
                            .n_names = 2};

  fails(&desc, KILN_ENOTFOUND, "\"g<int>\"");
  ck_assert_ptr_null(strstr(kiln_last_error()->log, "__nv_name_map"));
  ck_assert_ptr_null(strstr(kiln_last_error()->log, "#pragma"));
  ck_assert_ptr_nonnull(
      strstr(kiln_last_error()->log, "name expression \"g<int>\": error: "));
  desc.names = broken;
  desc.n_names = 1;
  fails(&desc, KILN_ENOTFOUND, "\"f<\"");
  /* An error in the source must not be reported as an error in the name. */
  desc.source = "template <class T> __global__ void f(T) { oops; }\n";
  desc.names = names;
  fails(&desc, KILN_ECOMPILE, "oops");
}
EACH_END

/* ---- Reports ------------------------------------------------------------- */

static const char reported[] =
    "struct P { char c; double d; int x[3]; };\n"
    "extern \"C\" __global__ void __launch_bounds__(128)\n"
    "    known(float *p, float f, P q, char c) {\n"
    "  __shared__ float s[64];\n"
    "  s[threadIdx.x & 63] = p[threadIdx.x] * f + q.d;\n"
    "  __syncthreads();\n"
    "  p[threadIdx.x] = s[(threadIdx.x + 1) & 63] + q.x[1] + c;\n}\n"
    "extern \"C\" __global__ void frame(int *p, int n) {\n"
    "  int b[100];\n"
    "  for (int i = 0; i < n; i++) b[i % 100] = p[i];\n"
    "  p[0] = b[n % 100];\n}\n";

EACH(resources_of_known_kernels)
{
  const kiln_program_desc desc = {.source = reported};
  const kiln_target ptx = {.cc = 80, .ptx = true};
  kiln_resources a[2], b[2];
  kiln_image *image;
  size_t known = 0;

  for (int round = 0; round < 2; round++) {
    image = compile(&desc);
    ck_assert_int_eq(kiln_image_origin(image),
                     round == 0 ? KILN_FROM_COMPILER : KILN_FROM_DISK);
    ck_assert_uint_eq(kiln_image_kernels(image), 2);
    for (size_t i = 0; i < 2; i++) {
      kiln_resources *r = round == 0 ? &a[i] : &b[i];

      ck_kiln_ok(kiln_image_resources(image, i, r));
      ck_assert_int_gt(r->registers, 0);
      ck_assert_int_gt(r->constant, 0);
      if (strcmp(r->name, "known") == 0) {
        known++;
        ck_assert_int_eq(r->shared_static, 256);
        ck_assert_int_eq(r->max_threads, 128);
        ck_assert_int_eq(r->n_params, 4);
        ck_assert_int_eq(r->stack, 0);
      } else {
        ck_assert_int_ge(r->stack, 400);
        ck_assert_int_ge(r->local, 400);
        ck_assert_int_eq(r->n_params, 2);
      }
      ck_assert_int_eq(r->spill_stores, 0);
      r->name = NULL;
    }
    kiln_image_free(image);
    kiln_runtime_free(rt);
    rt = each_runtime(_i, cache);
  }
  ck_assert_uint_eq(known, 2);
  ck_assert_mem_eq(a, b, sizeof a);

  ck_kiln_ok(kiln_compile(&image, rt, &desc, &ptx));
  ck_assert_ptr_null(kiln_image_cubin(image, NULL));
  ck_assert_uint_eq(kiln_image_kernels(image), 2);
  ck_kiln_ok(kiln_image_resources(image, 0, &a[0]));
  ck_assert_int_eq(a[0].registers, 0);
  kiln_image_free(image);
}
EACH_END

/* A kernel that spills registers must fail to compile if fail_on_spill is set,
 * and must compile otherwise. */
EACH(spills_and_the_gate)
{
  kiln_program_desc desc = {
      .source =
          "__global__ void __launch_bounds__(1024, 2) k(double *p) {\n"
          "  double a[64];\n#pragma unroll\n"
          "  for (int i = 0; i < 64; i++) a[i] = p[i * 7 + threadIdx.x];\n"
          "  __syncthreads();\n#pragma unroll\n"
          "  for (int i = 0; i < 64; i++) p[i] = a[63 - i] * a[(i * 5) % 64];\n"
          "}\n",
      .fail_on_spill = true};
  kiln_resources r;
  kiln_image *image;

  for (int round = 0; round < 2; round++)
    fails(&desc, KILN_ESPILL, "_Z1kPd");
  desc.fail_on_spill = false;
  image = compile(&desc);
  ck_kiln_ok(kiln_image_resources(image, 0, &r));
  ck_assert_int_gt(r.spill_stores, 0);
  ck_assert_int_gt(r.spill_loads, 0);
  kiln_image_free(image);
  desc.fail_on_spill = true;
  desc.source = reported;
  compile_and_free(&desc);
}
EACH_END

EACH(assembler_errors)
{
  kiln_program_desc desc = {.source =
                                "extern __device__ int foo(int);\n"
                                "__global__ void k(int *p) { *p = foo(1); }\n"};

  fails(&desc, KILN_ECOMPILE, "ptxas fatal");
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "define the function"));
  desc.source = "__global__ void k(int *p) { __shared__ int s[20000];\n"
                "s[threadIdx.x] = 1; __syncthreads(); *p = s[p[1]]; }\n";
  fails(&desc, KILN_ECOMPILE, "too much shared data");
}
EACH_END

/* ---- Targets, cache, threads --------------------------------------------- */

EACH(every_architecture_of_the_library)
{
  const kiln_program_desc desc = {.source = reported};
  const kiln_target never = {.cc = 20};
  kiln_nvrtc_info info;
  kiln_image *image;
  size_t n;

  ck_kiln_ok(kiln_runtime_nvrtc(rt, &info, 1, &n));
  ck_assert_uint_ge(info.n_archs, 5);
  for (size_t i = 0; i < info.n_archs; i++) {
    const kiln_target target = {.cc = info.archs[i]};
    kiln_resources r;

    ck_kiln_ok(kiln_compile(&image, rt, &desc, &target));
    ck_assert_int_eq(kiln_image_nvrtc(image), each_version[_i]);
    for (size_t k = 0; k < 2; k++) {
      ck_kiln_ok(kiln_image_resources(image, k, &r));
      ck_assert_int_gt(r.registers, 0);
      ck_assert_int_ge(r.constant, r.n_params * 4);
    }
    kiln_image_free(image);
  }
  ck_kiln_is(kiln_compile(&image, rt, &desc, &never), KILN_EUNSUPPORTED);
}
EACH_END

EACH(suffixes)
{
  const kiln_program_desc desc = {.source = "__global__ void k() {}",
                                  .suffix = 'a'};
  const kiln_target sm_90 = {.cc = 90};
  kiln_image *image;

  if (each_version[_i] < 12000) {
    ck_kiln_is(kiln_compile(&image, rt, &desc, &sm_90), KILN_EUNSUPPORTED);
    return;
  }
  ck_kiln_ok(kiln_compile(&image, rt, &desc, &sm_90));
  ck_assert_int_eq(kiln_image_target(image).suffix, 'a');
  ck_assert_ptr_nonnull(strstr(kiln_image_ptx(image, NULL), "sm_90a"));
  kiln_image_free(image);
}
EACH_END

EACH(the_working_folder_does_not_matter)
{
  const kiln_program_desc desc = {.source = reported};
  kiln_image *image;

  compile_and_free(&desc);
  ck_assert_int_eq(chdir(dir), 0);
  image = compile(&desc);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_MEMORY);
  kiln_image_free(image);
  ck_assert_int_eq(chdir("/"), 0);
}
EACH_END

/* NVRTC libraries share a cache folder, but a library must not use the entries
 * of another. */
START_TEST(libraries_share_a_folder)
{
  const kiln_program_desc desc = {.source = reported};

  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < each_n; i++) {
      kiln_image *image;

      rt = each_runtime(i, cache);
      image = compile(&desc);
      ck_assert_int_eq(kiln_image_origin(image),
                       round == 0 ? KILN_FROM_COMPILER : KILN_FROM_DISK);
      ck_assert_int_eq(kiln_image_nvrtc(image), each_version[i]);
      kiln_image_free(image);
      kiln_runtime_free(rt);
      rt = NULL;
    }
  }
}
END_TEST

static void *compile_one(void *arg)
{
  const int number = *(int *)arg;
  char source[128];
  const kiln_program_desc desc = {.source = source};
  kiln_image *image = NULL;

  snprintf(source, sizeof source,
           "extern \"C\" __global__ void k(int *p) { *p = %d; }\n",
           1000000 + number);
  if (kiln_compile(&image, rt, &desc, &sm_80) != KILN_OK ||
      !ptx_holds(image, (uint32_t)(1000000 + number)))
    *(int *)arg = -1;
  kiln_image_free(image);
  return NULL;
}

EACH(threads_get_their_own_program)
{
  enum { N = 8 };
  pthread_t threads[N];
  int numbers[N];

  for (int i = 0; i < N; i++) {
    numbers[i] = i / 2; /* two threads per program */
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, compile_one, &numbers[i]), 0);
  }
  for (int i = 0; i < N; i++) {
    pthread_join(threads[i], NULL);
    ck_assert_int_ge(numbers[i], 0);
  }
}
EACH_END

/* Cancels the compile of a program that takes seconds. From NVRTC 12.8 on, the
 * compile must stop immediately. Before, it continues to its end, so that a
 * program is used whose compile takes less than a second. */
EACH(cancel_a_long_compile)
{
  const bool at_once = each_version[_i] >= 12080;
  const char *const depth[] = {at_once ? "DEPTH=13" : "DEPTH=7"};
  const kiln_program_desc desc = {
      .source =
          "template <int N> struct S { static __device__ float f(float x) {\n"
          "  return S<N - 1>::f(x * 1.01f + N) + sinf(x) * S<N - 1>::f(x); "
          "} };\n"
          "template <> struct S<0> {\n"
          "  static __device__ float f(float x) { return x; } };\n"
          "__global__ void k(float *p) { *p = S<DEPTH>::f(*p); }\n",
      .defines = depth,
      .n_defines = 1,
      .no_cache = true};
  kiln_image *image;
  kiln_job *job;
  kiln_status st;

  ck_kiln_ok(kiln_job_start(&job, rt, &desc, &sm_80, 1, NULL, NULL));
  ck_kiln_is(kiln_job_wait(job, at_once ? 300 : 30), KILN_ETIMEOUT);
  ck_kiln_ok(kiln_job_cancel(job));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  st = kiln_job_image(job, 0, &image);
  if (at_once)
    ck_assert_int_eq(st, KILN_ECANCELED);
  else
    ck_assert(st == KILN_ECANCELED || st == KILN_OK);
  kiln_image_free(image);
  kiln_job_free(job);
}
EACH_END

static Suite *suite(void)
{
  Suite *s = suite_create("program");
  TCase *t = tcase_create("each NVRTC"), *all = tcase_create("all NVRTCs");

  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, empty_and_comment_only, 0, each_n);
  tcase_add_loop_test(t, ten_megabytes, 0, each_n);
  tcase_add_loop_test(t, line_ends_and_byte_order_mark, 0, each_n);
  tcase_add_loop_test(t, language_standard, 0, each_n);
  tcase_add_loop_test(t, traits_are_macros, 0, each_n);
  tcase_add_loop_test(t, constants_arrive_as_they_are, 0, each_n);
  tcase_add_loop_test(t, defines_with_spaces_and_quotes, 0, each_n);
  tcase_add_loop_test(t, duplicate_options, 0, each_n);
  tcase_add_loop_test(t, wrong_options, 0, each_n);
  tcase_add_loop_test(t, flags_reach_the_compiler, 0, each_n);
  tcase_add_loop_test(t, compiled_sooner, 0, each_n);
  tcase_add_loop_test(t, folders_with_spaces_and_other_letters, 0, each_n);
  tcase_add_loop_test(t, included_files_are_tracked, 0, each_n);
  tcase_add_loop_test(t, appearing_files_are_noticed, 0, each_n);
  tcase_add_loop_test(t, resolution_matches_the_compiler, 0, each_n);
  tcase_add_loop_test(t, headers, 0, each_n);
  tcase_add_loop_test(t, c_headers, 0, each_n);
  tcase_add_loop_test(t, names_of_all_kinds, 0, each_n);
  tcase_add_loop_test(t, static_and_anonymous_kernels, 0, each_n);
  tcase_add_loop_test(t, undefined_names, 0, each_n);
  tcase_add_loop_test(t, resources_of_known_kernels, 0, each_n);
  tcase_add_loop_test(t, spills_and_the_gate, 0, each_n);
  tcase_add_loop_test(t, assembler_errors, 0, each_n);
  tcase_add_loop_test(t, every_architecture_of_the_library, 0, each_n);
  tcase_add_loop_test(t, suffixes, 0, each_n);
  tcase_add_loop_test(t, the_working_folder_does_not_matter, 0, each_n);
  tcase_add_loop_test(t, threads_get_their_own_program, 0, each_n);
  tcase_add_loop_test(t, cancel_a_long_compile, 0, each_n);
  suite_add_tcase(s, t);
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_set_timeout(all, 300);
  tcase_add_test(all, libraries_share_a_folder);
  suite_add_tcase(s, all);
  return s;
}

int main(void)
{
  if (each_find() == 0)
    return KILN_TEST_SKIP;
  return kiln_test_run(suite());
}
