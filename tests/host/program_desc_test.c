/* Tests program descriptions: which descriptions are refused, how they are
 * normalised, and which parts affect the cache key. */
#include "support.h"

#include "program/plan.h"

#include <stdlib.h>
#include <string.h>

static const kiln_header two_texts[] = {{"a.h", "int a;"}, {"a.h", "int b;"}};
static const kiln_header no_text[] = {{"a.h", NULL}};
static const char *const twice[] = {"A=1", "A=2"};
static const char *const not_a_name[] = {"3A=1"};
static const char *const two_lines[] = {"A=1\n#include \"x\""};
static const char *const trait_define[] = {"KILN_HAS_SHFL=0"};
static const char *const open_head[] = {"F(x=1"};
static const char *const unknown_trait[] = {"KILN_NOPE=1"};
static const char *const no_integer[] = {"KILN_HAS_SHFL=yes"};
static const char *const two_traits[] = {"KILN_ARCH=1", "KILN_ARCH=2"};
static const char *const blank[] = {"  "};
static const char *const null_text[] = {NULL};
static const char *long_text[1];
static const char *const no_dash[] = {"O3"};
static const char *const spaced[] = {" -w"};
static const char *const lone_i[] = {"-I"};
static const char *const registers[] = {"-maxrregcount=32"};
static const char *const empty[] = {""};

#define SOURCE .source = "int x;"

/* Each of these descriptions is refused with KILN_EINVAL and a message that
 * contains the string `says`. */
static const struct {
  kiln_program_desc desc;
  const char *says;
} refused[] = {
    {{.builtin = NULL}, "neither builtin nor source is set"},
    {{.builtin = "saxpy", .source = ""}, "both builtin and source are set"},
    {{.source = "ab\0cd", .source_size = 5}, "NUL at byte 2"},
    {{SOURCE, .name = "a\nb"}, "name"},
    {{SOURCE, .first_line = -1}, "first_line"},
    {{SOURCE, .max_registers = -1}, "max_registers"},
    {{SOURCE, .suffix = 'b'}, "suffix"},
    {{SOURCE, .n_headers = 1}, "without its list"},
    {{SOURCE, .n_names = 1}, "without its list"},
    {{SOURCE, .headers = two_texts, .n_headers = 2}, "\"a.h\" is given twice"},
    {{SOURCE, .headers = no_text, .n_headers = 1}, "incomplete"},
    {{SOURCE, .defines = twice, .n_defines = 2}, "contradicts"},
    {{SOURCE, .defines = not_a_name, .n_defines = 1}, "3A=1"},
    {{SOURCE, .defines = two_lines, .n_defines = 1}, "not a macro"},
    {{SOURCE, .defines = trait_define, .n_defines = 1}, "trait"},
    {{SOURCE, .defines = open_head, .n_defines = 1}, "not a macro"},
    {{SOURCE, .defines = null_text, .n_defines = 1}, "not a macro"},
    {{SOURCE, .traits = unknown_trait, .n_traits = 1}, "KILN_NOPE"},
    {{SOURCE, .traits = no_integer, .n_traits = 1}, "overrides no trait"},
    {{SOURCE, .traits = two_traits, .n_traits = 2}, "contradicts"},
    {{SOURCE, .names = blank, .n_names = 1}, "name expression 0"},
    {{SOURCE, .names = null_text, .n_names = 1}, "name expression 0"},
    {{SOURCE, .names = long_text, .n_names = 1}, "100000 bytes"},
    {{SOURCE, .options = no_dash, .n_options = 1}, "\"O3\""},
    {{SOURCE, .options = spaced, .n_options = 1}, "\" -w\""},
    {{SOURCE, .options = lone_i, .n_options = 1}, "lacks a value"},
    {{SOURCE, .options = empty, .n_options = 1}, "empty"},
    {{SOURCE, .options = null_text, .n_options = 1}, "empty"},
    {{SOURCE, .options = registers, .n_options = 1, .max_registers = 40},
     "both"},
};

static kiln_allocator heap;

static kiln_status make(kiln__plan *plan, const kiln_program_desc *desc)
{
  kiln__allocator_default(&heap);
  return kiln__plan_make(plan, &heap, desc);
}

/* Returns a name of 100,000 characters. NVRTC crashes on names of this
 * length. */
static char *make_long_text(void)
{
  static char text[100001];

  memset(text, 'n', sizeof text - 1);
  return text;
}

START_TEST(refuses_what_is_wrong)
{
  kiln_program_desc named = {SOURCE};
  kiln__plan plan;

  long_text[0] = make_long_text();
  named.name = long_text[0];
  ck_kiln_is(make(&plan, &named), KILN_EINVAL);
  kiln__plan_free(&plan);
  ck_kiln_is(make(&plan, &refused[_i].desc), KILN_EINVAL);
  kiln__plan_free(&plan);
  ck_assert_msg(strstr(kiln_last_error()->message, refused[_i].says) != NULL,
                "row %d: \"%s\" lacks \"%s\"", _i, kiln_last_error()->message,
                refused[_i].says);
}
END_TEST

static const char *const kiln_owns[] = {
    "-arch=sm_90", "-arch",         "--gpu-architecture=sm_50",
    "-ptx",        "--ptx",         "-cubin",
    "-dlto",       "-lto",          "-time=x",
    "--time=x",    "-pch",          "--create-pch=f",
    "--use-pch=f", "--pch-dir=d",   "-o",
    "-rdc=true",   "-dc",           "--output-file=f",
    "-optf=f",     "--no-cache",    "--relocatable-device-code=true",
    "--optix-ir",  "--gen-opt-lto", "--fdevice-time-trace=f"};

START_TEST(refuses_options_that_kiln_owns)
{
  const char *const options[] = {"-w", kiln_owns[_i]};
  const kiln_program_desc desc = {SOURCE, .options = options, .n_options = 2};
  kiln__plan plan;

  ck_kiln_is(make(&plan, &desc), KILN_EINVAL);
  kiln__plan_free(&plan);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, kiln_owns[_i]));
  ck_assert_str_ne(kiln_last_error()->hint, "");
}
END_TEST

START_TEST(unknown_builtin)
{
  const kiln_program_desc desc = {.builtin = "no such"};
  kiln__plan plan;

  ck_kiln_is(make(&plan, &desc), KILN_ENOTFOUND);
  kiln__plan_free(&plan);
}
END_TEST

START_TEST(options_keep_their_words)
{
  const char *const options[] = {"-I", "a dir",  "-Ib",        "-w",  "-w",
                                 "-D", "A=1",    "-Xptxas",    "-O1", "-Xptxas",
                                 "-v", "-DX= 1", "--std=c++14"};
  const char *const want[] = {"-I",      "a dir", "-Ib",     "-w",
                              "-D",      "A=1",   "-Xptxas", "-O1",
                              "-Xptxas", "-v",    "-DX= 1",  "--std=c++14"};
  const kiln_program_desc desc = {SOURCE, .options = options, .n_options = 13};
  kiln__plan plan;

  ck_kiln_ok(make(&plan, &desc));
  ck_assert_uint_eq(plan.words.n, sizeof want / sizeof want[0]);
  for (size_t i = 0; i < plan.words.n; i++)
    ck_assert_str_eq(plan.words.items[i], want[i]);
  ck_assert_uint_eq(plan.folders.n, 2);
  ck_assert_str_eq(plan.folders.items[0], "a dir");
  ck_assert_str_eq(plan.folders.items[1], "b");
  ck_assert(plan.has_std && !plan.has_debug);
  kiln__plan_free(&plan);
}
END_TEST

/* ---- Keys ---------------------------------------------------------------- */

static const kiln_header header_a[] = {{"a.h", "int a;\n"}};
static const kiln_header header_b[] = {{"a.h", "int b;\n"}};
static const kiln_header header_c[] = {{"c.h", "int a;\n"}};
static const kiln_header unused[] = {{"z.h", "int z;\n"}, {"a.h", "int a;\n"}};
static const char *const d_ab_c[] = {"AB=C"};
static const char *const d_a_bc[] = {"A=BC"};
static const char *const d_1[] = {"A=1", "B=2"};
static const char *const d_2[] = {"B=2", "A"};
static const char *const d_same[] = {"A", "B=2", "A=1"};
static const char *const n_1[] = {"f<int>", "g"};
static const char *const n_2[] = {"g", "f<int>", "g"};
static const char *const n_3[] = {"f<int>g"};
static const char *const t_1[] = {"KILN_HAS_SHFL=0"};
static const char *const t_2[] = {"KILN_HAS_SHFL=1"};
static const char *const o_1[] = {"-w"};
static const char *const o_2[] = {"-w", "-w"};
static const char *const o_dir[] = {"-w", "-I", "/nowhere"};
static const char *const o_std[] = {"-w", "-std=c++14"};
static const char *const o_g[] = {"-G"};

static const char with_a[] = "#include \"a.h\"\nint x;\n";

/* Pairs of program descriptions; `same` is true if the two descriptions have
 * the same key. */
static const struct {
  kiln_program_desc a, b;
  bool same;
} pairs[] = {
    {{.source = with_a}, {.source = "#include \"a.h\"\r\nint x;\r\n"}, true},
    {{.source = with_a},
     {.source = "\xef\xbb\xbf#include \"a.h\"\nint x;\n"},
     true},
    {{.source = with_a},
     {.source = "#include \"a.h\"\nint x;\nint y;", .source_size = 22},
     true},
    {{.source = with_a, .first_line = 1}, {.source = with_a}, true},
    {{.source = with_a, .name = "program.cu"}, {.source = with_a}, true},
    {{SOURCE, .defines = d_1, .n_defines = 2},
     {SOURCE, .defines = d_2, .n_defines = 2},
     true},
    {{SOURCE, .defines = d_1, .n_defines = 2},
     {SOURCE, .defines = d_same, .n_defines = 3},
     true},
    {{SOURCE, .names = n_1, .n_names = 2},
     {SOURCE, .names = n_2, .n_names = 3},
     true},
    {{SOURCE, .options = o_1, .n_options = 1},
     {SOURCE, .options = o_2, .n_options = 2},
     true},
    {{SOURCE, .options = o_1, .n_options = 1},
     {SOURCE, .options = o_dir, .n_options = 3},
     true},
    {{SOURCE, .debug = true}, {SOURCE, .options = o_g, .n_options = 1}, false},
    {{.source = with_a, .headers = header_a, .n_headers = 1},
     {.source = with_a, .headers = unused, .n_headers = 2},
     true},
    {{SOURCE, .fail_on_spill = true, .refresh = true, .no_cache = true},
     {SOURCE},
     true},

    {{SOURCE}, {.source = "int x; "}, false},
    {{SOURCE}, {SOURCE, .name = "x.cu"}, false},
    {{SOURCE}, {SOURCE, .first_line = 2}, false},
    {{SOURCE}, {SOURCE, .debug = true}, false},
    {{SOURCE}, {SOURCE, .lineinfo = true}, false},
    {{SOURCE}, {SOURCE, .fast_math = true}, false},
    {{SOURCE}, {SOURCE, .max_registers = 32}, false},
    {{SOURCE}, {SOURCE, .fast_compile = true}, false},
    {{SOURCE}, {SOURCE, .minimal = true}, false},
    {{SOURCE, .fast_compile = true}, {SOURCE, .minimal = true}, false},
    {{SOURCE}, {SOURCE, .defines = d_ab_c, .n_defines = 1}, false},
    {{SOURCE, .defines = d_ab_c, .n_defines = 1},
     {SOURCE, .defines = d_a_bc, .n_defines = 1},
     false},
    {{SOURCE, .names = n_1, .n_names = 2},
     {SOURCE, .names = n_3, .n_names = 1},
     false},
    {{SOURCE, .names = n_1, .n_names = 1},
     {SOURCE, .names = n_1, .n_names = 2},
     false},
    {{SOURCE}, {SOURCE, .traits = t_1, .n_traits = 1}, false},
    {{SOURCE, .traits = t_1, .n_traits = 1},
     {SOURCE, .traits = t_2, .n_traits = 1},
     false},
    {{SOURCE}, {SOURCE, .options = o_1, .n_options = 1}, false},
    {{SOURCE, .options = o_1, .n_options = 1},
     {SOURCE, .options = o_std, .n_options = 2},
     false},
    {{SOURCE, .options = o_1, .n_options = 1, .lineinfo = true},
     {SOURCE, .options = o_dir, .n_options = 3, .lineinfo = true},
     false},
    {{.source = with_a, .headers = header_a, .n_headers = 1},
     {.source = with_a, .headers = header_b, .n_headers = 1},
     false},
    {{.source = with_a, .headers = header_a, .n_headers = 1},
     {.source = with_a, .headers = header_c, .n_headers = 1},
     false},
    {{.source = "ab", .name = "c"}, {.source = "a", .name = "bc"}, false},
};

static void key_of(const kiln_program_desc *desc, char hash[33])
{
  kiln__plan plan;
  kiln__key key;

  ck_kiln_ok(make(&plan, desc));
  kiln__key_init(&key, &heap);
  kiln__plan_key(&plan, &key);
  ck_kiln_ok(kiln__key_seal(&key));
  ck_assert_str_eq(key.hash, key.portable_hash);
  memcpy(hash, key.hash, 33);
  kiln__key_free(&key);
  kiln__plan_free(&plan);
}

START_TEST(what_matters_is_in_the_key)
{
  char a[33], b[33];

  key_of(&pairs[_i].a, a);
  key_of(&pairs[_i].b, b);
  ck_assert_msg((strcmp(a, b) == 0) == pairs[_i].same, "row %d: keys are %s",
                _i, pairs[_i].same ? "not the same" : "the same");
}
END_TEST

/* Keys are the same in every process, build and machine. If this value
 * changes, all packs and cache entries become invalid, so the change must
 * be intended. */
START_TEST(keys_are_stable)
{
  const kiln_program_desc desc = {.source = with_a,
                                  .name = "stable.cu",
                                  .headers = header_a,
                                  .n_headers = 1,
                                  .defines = d_1,
                                  .n_defines = 2,
                                  .traits = t_1,
                                  .n_traits = 1,
                                  .names = n_1,
                                  .n_names = 2,
                                  .options = o_std,
                                  .n_options = 2,
                                  .fast_math = true,
                                  .max_registers = 64};
  char hash[33];

  key_of(&desc, hash);
  ck_assert_str_eq(hash, "c6b046bea33212367dce83eb0cced93b");
}
END_TEST

/* The compiler, the target and the traits of the device are changed one at a
 * time, and each change must change the key. */
START_TEST(local_fields_are_in_the_key)
{
  static const struct {
    const char *build;
    int version, target, traits, smem, link;
    kiln_rung rung;
    char suffix;
    bool ptx;
  } rows[] = {
      {"b1", 13000, 90, 90, 0, 0, KILN_RUNG_EXACT, 0, false},
      {"b2", 13000, 90, 90, 0, 0, KILN_RUNG_EXACT, 0, false},
      {"b1", 12090, 90, 90, 0, 0, KILN_RUNG_EXACT, 0, false},
      {"b1", 13000, 80, 80, 0, 0, KILN_RUNG_EXACT, 0, false},
      {"b1", 13000, 90, 90, 7, 0, KILN_RUNG_EXACT, 0, false},
      {"b1", 13000, 90, 90, 0, 0, KILN_RUNG_EXACT, 'a', false},
      {"b1", 13000, 90, 90, 0, 0, KILN_RUNG_PTX, 0, true},
      {"b1", 13000, 90, 90, 0, 13000, KILN_RUNG_LINK, 0, true},
      {"b1", 13000, 90, 90, 0, 13010, KILN_RUNG_LINK, 0, true},
  };
  enum { N = sizeof rows / sizeof rows[0] };
  const kiln_program_desc desc = {SOURCE};
  char hashes[N][33], portable[33] = "";

  for (size_t i = 0; i < N; i++) {
    const kiln__image_request req = {
        .rung = rows[i].rung,
        .target = {rows[i].target, rows[i].suffix, rows[i].ptx},
        .cc = rows[i].target};
    kiln__nvrtc_id id = {.info = {.version = rows[i].version}};
    kiln_traits traits;
    kiln__plan plan;
    kiln__key key;

    strcpy(id.build, rows[i].build);
    ck_kiln_ok(kiln_arch_traits(rows[i].traits, &traits));
    traits.smem_per_block_optin += rows[i].smem;
    ck_kiln_ok(make(&plan, &desc));
    kiln__key_init(&key, &heap);
    kiln__plan_key(&plan, &key);
    kiln__local_key(&plan, &key, &id, &traits, &req, rows[i].link);
    ck_kiln_ok(kiln__key_seal(&key));
    memcpy(hashes[i], key.hash, 33);
    for (size_t k = 0; k < i; k++)
      ck_assert_msg(strcmp(hashes[k], hashes[i]) != 0, "rows %zu and %zu", k,
                    i);
    ck_assert(i == 0 || strcmp(portable, key.portable_hash) == 0);
    memcpy(portable, key.portable_hash, 33);
    kiln__key_free(&key);
    kiln__plan_free(&plan);
  }
}
END_TEST

/* The cache looks up the fields "program" and "target" of a key by name. */
START_TEST(key_names_program_and_target)
{
  const kiln__image_request req = {.target = {90, 'a', false}, .cc = 90};
  const kiln_program_desc desc = {SOURCE, .name = "n.cu"};
  char program[16] = "", target[16] = "";
  kiln_traits traits;
  kiln__field field;
  kiln__plan plan;
  kiln__key key;

  ck_kiln_ok(kiln_arch_traits(90, &traits));
  ck_kiln_ok(make(&plan, &desc));
  kiln__key_init(&key, &heap);
  kiln__plan_key(&plan, &key);
  kiln__local_key(&plan, &key, NULL, &traits, &req, 0);
  ck_kiln_ok(kiln__key_seal(&key));
  for (size_t at = 0;
       kiln__key_next(key.text.data, key.text.size, &at, &field);) {
    if (field.name_size == 7 && memcmp(field.name, "program", 7) == 0)
      memcpy(program, field.value, field.size);
    if (field.name_size == 6 && memcmp(field.name, "target", 6) == 0)
      memcpy(target, field.value, field.size);
  }
  ck_assert_str_eq(program, "n.cu");
  ck_assert_str_eq(target, "sm_90a");
  kiln__key_free(&key);
  kiln__plan_free(&plan);
}
END_TEST

/* If the target is lower than the device, the macros describe the features of
 * the target and the limits of the device. */
START_TEST(macros_of_a_lower_target)
{
  const kiln_target target = {.cc = 70};
  kiln__macro macros[KILN__MACROS];
  kiln_traits traits;
  int seen = 0;

  ck_kiln_ok(kiln_arch_traits(90, &traits));
  kiln__macros(macros, &traits, &target);
  for (size_t i = 0; i < KILN__MACROS; i++) {
    const char *name = macros[i].name;

    ck_assert(kiln__macro_known(name, strlen(name)));
    seen += strcmp(name, "KILN_ARCH") == 0 && macros[i].value == 70;
    seen += strcmp(name, "KILN_HAS_REDUX") == 0 && macros[i].value == 0;
    seen += strcmp(name, "KILN_HAS_MATCH") == 0 && macros[i].value == 1;
    seen += strcmp(name, "KILN_SMEM_PER_BLOCK_OPTIN") == 0 &&
            macros[i].value == traits.smem_per_block_optin;
  }
  ck_assert_int_eq(seen, 4);
  ck_assert(!kiln__macro_known("KILN_AR", 7));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("program_desc");
  TCase *t = kiln_test_case(s, "all", 0, NULL, NULL,
                            TESTS(unknown_builtin, options_keep_their_words,
                                  keys_are_stable, local_fields_are_in_the_key,
                                  key_names_program_and_target,
                                  macros_of_a_lower_target));

  tcase_add_loop_test(t, refuses_what_is_wrong, 0,
                      sizeof refused / sizeof refused[0]);
  tcase_add_loop_test(t, refuses_options_that_kiln_owns, 0,
                      sizeof kiln_owns / sizeof kiln_owns[0]);
  tcase_add_loop_test(t, what_matters_is_in_the_key, 0,
                      sizeof pairs / sizeof pairs[0]);
  return kiln_test_run(s);
}
