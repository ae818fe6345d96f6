/* Tests the #include directives of a program: which directives are found, which
 * files they refer to, and that every file's content affects the cache key. */
#include "support.h"

#include "program/builtin.h"
#include "program/lexer.h"
#include "program/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The lexer ----------------------------------------------------------- */

/* `want` lists the expected #include directives: q for a quoted name, a for a
 * name in angle brackets, c for a macro. */
static const struct {
  const char *text, *want;
} texts[] = {
    {"#include \"a.h\"\n#include <b.h>\n", "q:a.h a:b.h "},
    {"  #  include\t<b.h>", "a:b.h "},
    {"# /* x */ include /* y */ <b.h>", "a:b.h "},
    {"/* x\n y */ #include <b.h>", "a:b.h "},
    {"#inc\\\nlude \"a\\\n.h\"", "q:a.h "},
    {"#inc\\\r\nlude \"a.h\"\r\n", "q:a.h "},
    {"%:include \"a.h\"", "q:a.h "},
    {"?\?=include \"a.h\"", "q:a.h "},
    {"#include_next <n.h>", "a:n.h "},
    {"#ifdef __CUDA_ARCH__\n#include \"a.h\"\n#endif", "q:a.h "},
    {"#if 0\n#include \"a.h\"\n#endif", "q:a.h "},
    {"#include MACRO", "c:MACRO "},
    {"#include MACRO(x) // y", "c:MACRO "},
    {"#if __has_include(<x.h>) && __has_include( \"y.h\" )\n", "a:x.h q:y.h "},
    {"#ifdef __has_include\n", ""},
    {"#if __has_include(NAME)", "c:NAME "},
    {"// #include \"a.h\"\n", ""},
    {"// x \\\n#include \"a.h\"\n", ""},
    {"/*\n#include \"a.h\"\n*/", ""},
    {"int x; #include \"a.h\"\n", ""},
    {"const char *s = \"\\\n#include <a.h>\";", ""},
    {"const char *s = \"/*\";\n#include <a.h>\n", "a:a.h "},
    {"char c = '\"';\n#include <a.h>\n", "a:a.h "},
    {"int n = 1'000; char c = '/*';\n#include <a.h>\n", "a:a.h "},
    {"R\"(\n#include <no.h>\n)\"\n#include <a.h>", "a:a.h "},
    {"u8R\"x(\n)\"\n#include <no.h>\n)x\"\n#include <a.h>", "a:a.h "},
    {"#error don't\n#include <a.h>", "a:a.h "},
    {"#includes <a.h>\n#define include <a.h>\n", ""},
    {"#include\n#include <\n#include \"\"\n#", ""},
    {"#include \"unclosed\n#include <a.h>", "q:unclosed a:a.h "},
    {"#include <dir with space/\xc3\xa4.h>", "a:dir with space/\xc3\xa4.h "},
    {"", ""},
};

START_TEST(finds_directives)
{
  static const char form[] = {'q', 'a', 'c'};
  static kiln__include found;
  const size_t size = strlen(texts[_i].text);
  char *text = malloc(size + 1), got[256] = "";
  kiln__lexer lexer;

  memcpy(text, texts[_i].text, size);
  /* The memory has the exact size, so that ASan detects a read past the end. */
  text = realloc(text, size == 0 ? 1 : size);
  kiln__lexer_init(&lexer, text, size);
  while (kiln__lexer_next(&lexer, &found))
    snprintf(got + strlen(got), sizeof got - strlen(got), "%c:%.100s ",
             form[found.form], found.name);
  ck_assert_str_eq(got, texts[_i].want);
  free(text);
}
END_TEST

/* ---- Resolving ----------------------------------------------------------- */

static kiln_allocator heap;
static char dir[256];

static void setup(void)
{
  kiln__allocator_default(&heap);
  test_dir_make(dir);
}

static void teardown(void)
{
  test_dir_remove(dir);
}

static const char *put(const char *name, const char *text)
{
  static char path[512];
  char *slash;

  snprintf(path, sizeof path, "%s/%s", dir, name);
  for (slash = strchr(path + strlen(dir) + 1, '/'); slash != NULL;
       slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
  test_write_file(path, text, strlen(text));
  return path;
}

/* Writes the names of the included headers and files to `found`, and the hash
 * of the key to `hash`. */
static void plan_of(const kiln_program_desc *desc, char found[512],
                    char hash[33], bool *tracked)
{
  kiln__plan plan;
  kiln__key key;

  ck_kiln_ok(kiln__plan_make(&plan, &heap, desc));
  found[0] = '\0';
  for (size_t i = 0; i < plan.header_names.n; i++)
    snprintf(found + strlen(found), 512 - strlen(found), "h:%s ",
             plan.header_names.items[i]);
  for (size_t i = 0; i < plan.files.n; i += 2)
    snprintf(found + strlen(found), 512 - strlen(found), "f:%s ",
             plan.files.items[i]);
  kiln__key_init(&key, &heap);
  kiln__plan_key(&plan, &key);
  ck_kiln_ok(kiln__key_seal(&key));
  memcpy(hash, key.hash, 33);
  *tracked = plan.untracked == NULL;
  kiln__key_free(&key);
  kiln__plan_free(&plan);
}

START_TEST(virtual_headers_and_cycles)
{
  const kiln_header headers[] = {{"a.h", "#include \"b.h\"\n"},
                                 {"b.h", "#include <a.h>\n#include <c/d.h>"},
                                 {"c/d.h", "\xef\xbb\xbfint d;"},
                                 {"never.h", "int n;"}};
  const kiln_program_desc desc = {
      .source = "#include \"a.h\"\n", .headers = headers, .n_headers = 4};
  char found[512], hash[33];
  bool tracked;

  plan_of(&desc, found, hash, &tracked);
  ck_assert_str_eq(found, "h:a.h h:b.h h:c/d.h ");
  ck_assert(tracked);
}
END_TEST

START_TEST(callers_header_shadows_the_embedded_one)
{
  const kiln_header headers[] = {{"kiln/prelude.cuh", "int mine;\n"}};
  kiln_program_desc desc = {.source = "#include <kiln/prelude.cuh>\n"};
  char found[512], embedded[33], mine[33];
  kiln__plan plan;
  bool tracked;

  plan_of(&desc, found, embedded, &tracked);
  ck_assert_str_eq(found, "h:kiln/prelude.cuh ");
  desc.headers = headers;
  desc.n_headers = 1;
  plan_of(&desc, found, mine, &tracked);
  ck_assert_str_ne(embedded, mine);
  ck_kiln_ok(kiln__plan_make(&plan, &heap, &desc));
  ck_assert_uint_eq(plan.header_names.n, 1);
  ck_assert_str_eq(plan.header_texts.items[0], "int mine;\n");
  kiln__plan_free(&plan);
}
END_TEST

START_TEST(files_are_part_of_the_key)
{
  char folder[300], found[512], first[33], second[33];
  const char *options[] = {"-I", folder};
  const kiln_program_desc desc = {
      .source = "#include <one.h>\n", .options = options, .n_options = 2};
  bool tracked;

  snprintf(folder, sizeof folder, "%s/with space \xc3\xa4", dir);
  put("with space \xc3\xa4/one.h", "#include \"sub/two.h\"\n");
  put("with space \xc3\xa4/sub/two.h", "#include \"three.h\"\n");
  put("with space \xc3\xa4/sub/three.h", "#include <one.h>\nint x;\n");
  plan_of(&desc, found, first, &tracked);
  ck_assert_str_eq(found, "f:one.h f:sub/two.h f:three.h ");
  ck_assert(tracked);

  put("with space \xc3\xa4/sub/three.h", "#include <one.h>\nint y;\n");
  plan_of(&desc, found, second, &tracked);
  ck_assert_str_ne(first, second);

  /* The same files in another folder give the same key. */
  put("else/one.h", "#include \"sub/two.h\"\n");
  put("else/sub/two.h", "#include \"three.h\"\n");
  put("else/sub/three.h", "#include <one.h>\nint y;\n");
  snprintf(folder, sizeof folder, "%s/else", dir);
  plan_of(&desc, found, first, &tracked);
  ck_assert_str_eq(first, second);
}
END_TEST

/* Kiln provides small C headers, which are used unless an include folder has a
 * header of that name. */
START_TEST(c_headers_are_there)
{
  char found[512], hash[33];
  const char *options[] = {"-I", dir};
  kiln_program_desc desc = {
      .source = "#include <stdint.h>\n#include <cmath>\n#include <vector>\n",
      .options = options};
  bool tracked;

  plan_of(&desc, found, hash, &tracked);
  ck_assert_str_eq(found, "h:stdint.h h:cmath ");
  ck_assert(tracked);
  put("stdint.h", "typedef int mine;");
  desc.n_options = 2;
  plan_of(&desc, found, hash, &tracked);
  ck_assert_str_eq(found, "h:cmath f:stdint.h ");
}
END_TEST

/* <cuda_fp16.h> and the headers that it includes come from the compiler's
 * folder. */
START_TEST(headers_of_the_compiler)
{
  const kiln_program_desc desc = {
      .source = "#include <cuda_fp16.h>\n#include <none.h>\n"};
  char nvrtc[512];
  kiln__plan plan;

  snprintf(nvrtc, sizeof nvrtc, "%s/lib/libnvrtc.so", dir);
  put("include/cuda_fp16.h", "#include \"crt/a.h\"\n#include <cstdint>\n");
  put("include/crt/a.h", "#include \"b.h\"\n#include MACRO\n");
  put("include/crt/b.h", "int b;");
  put("lib/x", "");
  ck_kiln_ok(kiln__plan_make(&plan, &heap, &desc));
  ck_assert_uint_eq(plan.header_names.n, 0);
  ck_assert_uint_eq(plan.unresolved.n, 2);
  ck_kiln_ok(kiln__plan_compiler_headers(&plan, "/nonexistent/libnvrtc.so"));
  ck_assert_uint_eq(plan.header_names.n, 0);
  ck_kiln_ok(kiln__plan_compiler_headers(&plan, nvrtc));
  ck_assert_ptr_null(plan.untracked);
  ck_assert_uint_eq(plan.header_names.n, 4);
  ck_assert_str_eq(plan.header_names.items[0], "cuda_fp16.h");
  ck_assert_str_eq(plan.header_names.items[1], "crt/a.h");
  ck_assert_str_eq(plan.header_names.items[2], "cstdint");
  ck_assert_str_eq(plan.header_names.items[3], "b.h");
  ck_assert_str_eq(plan.header_texts.items[3], "int b;");
  /* The list has two strings per file and does not contain cstdint. */
  ck_assert_uint_eq(plan.compiler_files.n, 6);
  kiln__plan_free(&plan);
}
END_TEST

/* The compiler includes the file from the first folder. Files of that name in
 * later folders also affect the key, since each could become the first. */
START_TEST(every_folder_is_looked_at)
{
  char second[300], found[512], hash[33], other[33];
  const char *options[] = {"-I", dir, "-I", second};
  const kiln_header headers[] = {{"sub/v.h", "#include \"beside.h\"\n"}};
  kiln_program_desc desc = {.source = "#include <one.h>\n",
                            .headers = headers,
                            .n_headers = 1,
                            .options = options,
                            .n_options = 4};
  bool tracked;

  snprintf(second, sizeof second, "%s/sub", dir);
  put("sub/one.h", "int s;");
  plan_of(&desc, found, hash, &tracked);
  ck_assert_str_eq(found, "f:one.h ");
  put("one.h", "int f;");
  plan_of(&desc, found, other, &tracked);
  ck_assert_str_eq(found, "f:one.h f:one.h ");
  ck_assert_str_ne(hash, other);

  /* The folder in the name of a virtual header is searched as if the header
   * were a file. */
  desc.n_options = 0;
  desc.source = "#include \"sub/v.h\"\n";
  put("sub/beside.h", "int b;");
  ck_assert_int_eq(chdir(dir), 0);
  plan_of(&desc, found, hash, &tracked);
  ck_assert_str_eq(found, "h:sub/v.h f:beside.h ");
  ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(virtual_headers_win_over_files)
{
  char found[512], hash[33];
  const char *options[] = {"--include-path", dir};
  const kiln_header headers[] = {{"one.h", "int v;"}};
  const kiln_program_desc desc = {.source = "#include \"one.h\"\n",
                                  .headers = headers,
                                  .n_headers = 1,
                                  .options = options,
                                  .n_options = 2};
  bool tracked;

  put("one.h", "int file;");
  plan_of(&desc, found, hash, &tracked);
  ck_assert_str_eq(found, "h:one.h ");
}
END_TEST

/* A quoted name is also searched in the program's folder, so the current folder
 * can affect the key. If the current folder does not affect the includes, it
 * must not affect the key. */
START_TEST(beside_the_program)
{
  char found[512], hash[33], other[33], name[300];
  kiln_program_desc desc = {.source = "#include \"q.h\"\n#include <r.h>\n"};
  bool tracked;

  put("q.h", "int q;");
  put("r.h", "int r;");
  plan_of(&desc, found, hash, &tracked);
  ck_assert_str_eq(found, "");
  ck_assert_int_eq(chdir(dir), 0);
  plan_of(&desc, found, other, &tracked);
  ck_assert_str_eq(found, "f:q.h ");
  ck_assert_str_ne(hash, other);
  ck_assert_int_eq(chdir("/"), 0);
  snprintf(name, sizeof name, "%s/p.cu", dir);
  desc.name = name;
  plan_of(&desc, found, hash, &tracked);
  ck_assert_str_eq(found, "f:q.h ");
  desc.name = NULL;
  desc.source = "#include <r.h>\n";
  plan_of(&desc, found, hash, &tracked);
  ck_assert_int_eq(chdir(dir), 0);
  plan_of(&desc, found, other, &tracked);
  ck_assert_str_eq(hash, other);
  ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(absolute_names_and_preludes)
{
  char found[512], hash[33], source[400], prelude[400];
  const char *options[] = {"-include", prelude};
  kiln_program_desc desc = {.source = source};
  bool tracked;

  snprintf(source, sizeof source, "#include \"%s\"\n", put("abs.h", "int a;"));
  plan_of(&desc, found, hash, &tracked);
  ck_assert_ptr_nonnull(strstr(found, "/abs.h "));
  snprintf(prelude, sizeof prelude, "%s", put("pre.h", "int p;"));
  desc.source = "int x;";
  desc.options = options;
  desc.n_options = 2;
  plan_of(&desc, found, hash, &tracked);
  ck_assert_ptr_nonnull(strstr(found, "/pre.h "));
}
END_TEST

START_TEST(what_cannot_be_known_is_not_cached)
{
  char found[512], hash[33];
  const char *options[] = {"-I", dir};
  const kiln_header headers[] = {{"v.h", "int v;"}};
  kiln_program_desc desc = {.source = "#include WHICH\n",
                            .headers = headers,
                            .n_headers = 1,
                            .options = options,
                            .n_options = 2};
  bool tracked;

  plan_of(&desc, found, hash, &tracked);
  ck_assert(!tracked);
  /* The compiler receives every header, since the macro may name any of
   * them. */
  ck_assert_ptr_nonnull(strstr(found, "h:v.h "));
  ck_assert_ptr_nonnull(strstr(found, "h:kiln/prelude.cuh "));

  desc.source = "#include <missing.h>\n";
  plan_of(&desc, found, hash, &tracked);
  ck_assert(tracked);
  /* The file exists, but it is larger than the size limit. */
  ck_assert_int_eq(truncate(put("large.h", "int l;"), (64 << 20) + 1), 0);
  desc.source = "#include <large.h>\n";
  plan_of(&desc, found, hash, &tracked);
  ck_assert(!tracked);
  snprintf(found, sizeof found, "%s/pipe.h", dir);
  ck_assert_int_eq(mkfifo(found, 0600), 0);
  desc.source = "#include <pipe.h>\n";
  plan_of(&desc, found, hash, &tracked);
  ck_assert(!tracked);
}
END_TEST

/* Makes each allocation fail in turn, for a program that includes files and
 * headers. */
START_TEST(out_of_memory)
{
  const char *options[] = {"-I", dir};
  const kiln_header headers[] = {{"v.h", "int v;"}};
  const char *const defines[] = {"A", "B=2"};
  const kiln_program_desc desc = {.source = "#include <o.h>\n",
                                  .headers = headers,
                                  .n_headers = 1,
                                  .defines = defines,
                                  .n_defines = 2,
                                  .options = options,
                                  .n_options = 2};
  kiln_status st = KILN_ENOMEM;

  put("o.h", "#include \"v.h\"\n#include \"p.h\"\n");
  put("p.h", "int p;\n");
  for (long i = 0; st != KILN_OK; i++) {
    test_allocator a;
    kiln__plan plan;

    ck_assert_int_lt(i, 200);
    test_allocator_init(&a);
    a.fail_at = i;
    st = kiln__plan_make(&plan, &a.alloc, &desc);
    ck_assert(st == KILN_OK || st == KILN_ENOMEM);
    kiln__plan_free(&plan);
    ck_assert_int_eq(a.live, 0);
  }
}
END_TEST

/* Kiln searches its own headers for lines of the form "#include <name>". Each
 * #include must be such a line, or it must be quoted and meant for other
 * compilers. */
static void check_embedded(const char *name, const char *text, size_t size)
{
  kiln__include found;
  kiln__lexer lexer;
  char line[KILN__INCLUDE_SIZE + 16];

  kiln__lexer_init(&lexer, text, size);
  while (kiln__lexer_next(&lexer, &found)) {
    ck_assert_msg(found.form != KILN__COMPUTED, "%s: %s", name, found.name);
    if (found.form == KILN__QUOTED)
      continue;
    snprintf(line, sizeof line, "\n#include <%s>", found.name);
    ck_assert_msg(strstr(text, line) != NULL, "%s: %s", name, found.name);
  }
}

START_TEST(embedded_texts_include_plainly)
{
  const kiln_program_desc desc = {.builtin = "segmented_sort"};
  const kiln_builtin *programs;
  const kiln_header *headers;
  kiln__plan plan;
  bool far = false;
  size_t n;

  programs = kiln_builtin_list(&n);
  for (size_t i = 0; i < n; i++)
    check_embedded(programs[i].name, programs[i].source, programs[i].size);
  headers = kiln__builtin_headers(&n);
  for (size_t i = 0; i < n; i++)
    check_embedded(headers[i].name, headers[i].text, strlen(headers[i].text));
  ck_kiln_ok(kiln__plan_make(&plan, &heap, &desc));
  for (size_t i = 0; i < plan.header_names.n; i++)
    far |= strcmp(plan.header_names.items[i], "kiln/look_back.cuh") == 0;
  /* This header is included only by other headers and must be found too. */
  ck_assert(far);
  kiln__plan_free(&plan);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("program_include");
  TCase *lexer;

  lexer = kiln_test_case(s, "lexer", 0, NULL, NULL, TESTS(NULL));
  tcase_add_loop_test(lexer, finds_directives, 0,
                      sizeof texts / sizeof texts[0]);
  kiln_test_case(
      s, "resolve", 0, setup, teardown,
      TESTS(virtual_headers_and_cycles, callers_header_shadows_the_embedded_one,
            files_are_part_of_the_key, every_folder_is_looked_at,
            c_headers_are_there, headers_of_the_compiler,
            virtual_headers_win_over_files, beside_the_program,
            absolute_names_and_preludes, what_cannot_be_known_is_not_cached,
            embedded_texts_include_plainly, out_of_memory));
  return kiln_test_run(s);
}
