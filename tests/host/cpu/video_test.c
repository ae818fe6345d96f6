/* video_test.c -- tests video instructions.
 *
 * tests/golden/video.txt has one line per form of an instruction: a hash of its results on
 * an H200 for 64 triples of operands, and the statement. In the statement, D is the result
 * and A, B and C are the sources. The operands are random numbers and limits of bytes,
 * halves and words. */
#include "api_fixture.h"
#include "support.h"

#include <stdio.h>

enum { THREADS = 64, BATCH = 100, MOST_FORMS = 2000 };

typedef struct form {
  char hash[20], text[120];
} form;

static form forms[MOST_FORMS];
static size_t n_forms;

static void read_forms(void)
{
  FILE *const golden = fopen(KILN_TEST_SOURCE "/tests/golden/video.txt", "r");
  char line[200];

  ck_assert_ptr_nonnull(golden);
  while (fgets(line, sizeof line, golden) != NULL) {
    if (line[0] == '#')
      continue;
    ck_assert_uint_lt(n_forms, MOST_FORMS);
    ck_assert_int_eq(sscanf(line, "%19s %119[^\n]", forms[n_forms].hash,
                            forms[n_forms].text),
                     2);
    n_forms++;
  }
  fclose(golden);
  ck_assert_uint_gt(n_forms, 1000);
}

static void make_operands(uint32_t in[THREADS][3])
{
  static const uint32_t limits[] = {
      0,          1,          0xffffffff, 0x7fffffff, 0x80000000, 0x80,
      0x7f,       0xff,       0x8000,     0x7fff,     0xffff,     0x80008000,
      0x7fff7fff, 0x80808080, 0x7f7f7f7f, 0x01010101, 0xfffe0001, 0x00ff00ff};
  uint32_t random = 1;

  for (int i = 0; i < THREADS; i++) {
    for (int k = 0; k < 3; k++) {
      uint32_t high;

      random = random * 1664525 + 1013904223;
      high = random >> 16;
      random = random * 1664525 + 1013904223;
      in[i][k] = high << 16 | random >> 16;
      if (high % 3 == 0)
        in[i][k] = limits[(random >> 20) % 18];
    }
  }
}

/* Appends a statement with the registers of the kernel. */
static void put_statement(kiln__buf *out, const char *text)
{
  for (const char *p = text; *p != '\0'; p++) {
    if (strchr("ABCD", *p) != NULL)
      kiln__buf_format(out, "%%%c", *p - 'A' + 'a');
    else
      kiln__buf_add(out, p, 1);
  }
}

/* Runs up to BATCH forms, one after another, in a kernel of one block. */
static void run_batch(size_t first, size_t n, CUdeviceptr in, CUdeviceptr out)
{
  void *args[] = {&in, &out};
  kiln_allocator a = {0};
  kiln__buf text;
  CUmodule module;
  CUfunction kernel;

  kiln__allocator_default(&a);
  kiln__buf_init(&text, &a);
  kiln__buf_text(
      &text,
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .entry k(.param .u64 in, .param .u64 out)\n"
      "{ .reg .b32 %a, %b, %c, %d, %t; .reg .b64 %p, %q, %r;\n"
      "mov.u32 %t, %tid.x; ld.param.u64 %p, [in]; ld.param.u64 %q, [out];\n"
      "mul.wide.u32 %r, %t, 12; add.u64 %p, %p, %r;\n"
      "mul.wide.u32 %r, %t, 4; add.u64 %q, %q, %r;\n"
      "ld.global.u32 %a, [%p]; ld.global.u32 %b, [%p+4];\n"
      "ld.global.u32 %c, [%p+8];\n");
  for (size_t i = 0; i < n; i++) {
    put_statement(&text, forms[first + i].text);
    kiln__buf_format(&text, " st.global.u32 [%%q+%zu], %%d;\n",
                     i * THREADS * 4);
  }
  kiln__buf_text(&text, "ret; }\n");
  ok(cu(moduleLoadData)(&module, text.data));
  ok(cu(moduleGetFunction)(&kernel, module, "k"));
  ok(cu(launchKernel)(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL));
  ok(cu(ctxSynchronize)());
  ok(cu(moduleUnload)(module));
  kiln__buf_free(&text);
}

/* FNV-1a, 64 bits. */
static void hash_of(const uint32_t *words, char *out, size_t size)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);

  for (int i = 0; i < THREADS; i++) {
    for (int k = 0; k < 32; k += 8)
      h = (h ^ (words[i] >> k & 0xff)) * UINT64_C(0x100000001b3);
  }
  snprintf(out, size, "%016llx", (unsigned long long)h);
}

START_TEST(results_are_those_of_a_gpu)
{
  static uint32_t in[THREADS][3], back[BATCH][THREADS];
  const CUdeviceptr from = make_memory(sizeof in),
                    to = make_memory(sizeof back);
  unsigned wrong = 0;

  read_forms();
  make_operands(in);
  ok(cu(memcpyHtoD)(from, in, sizeof in));
  for (size_t first = 0; first < n_forms; first += BATCH) {
    const size_t n = n_forms - first < BATCH ? n_forms - first : BATCH;

    run_batch(first, n, from, to);
    ok(cu(memcpyDtoH)(back, to, sizeof back));
    for (size_t i = 0; i < n; i++) {
      char hash[20];

      hash_of(back[i], hash, sizeof hash);
      if (strcmp(hash, forms[first + i].hash) != 0 && wrong++ < 20)
        fprintf(stderr, "wrong: %s\n", forms[first + i].text);
    }
  }
  ck_assert_msg(wrong == 0, "%u of %zu forms differ", wrong, n_forms);
}
END_TEST

/* Statements that ptxas refuses as well. */
START_TEST(wrong_statements_are_refused)
{
  static const char *const statements[] = {
      "vadd.u32.u32.u32 d.b1, a, b;",
      "vadd.u32.u32.u32.add d.b0, a, b, c;",
      "vadd.u32.u32.u32.add d, a, b;",
      "vadd.u32.u32.u32 d, -a, b;",
      "vadd.b32.u32.u32 d, a, b;",
      "vadd.u32.u32 d, a, b;",
      "vadd.u32.u32.u32 d, a.b4, b;",
      "vadd.u32.u32.u32 d, a.h2, b;",
      "vadd.u32.u32.u32 d, a.b10, b;",
      "vadd.u32.u32.u32 _, a, b;",
      "vadd.u32.u32.u32 d, f, b;",
      "vshl.u32.u32.u32 d, a, b;",
      "vshr.u32.u32.s32.wrap d, a, b;",
      "vmad.s32.u32.u32 d, -a, b, -c;",
      "vmad.u32.u32.u32.po d, -a, b, c;",
      "vmad.u32.u32.u32 d.b0, a, b, c;",
      "vset.u32.u32.u32.eq d, a, b;",
      "vset.u32.u32.lo d, a, b;",
      "vset.u32.u32.lt.sat d, a, b;",
      "vadd2.u32.u32.u32.sat.add d, a, b, c;",
      "vadd2.u32.u32.u32 d.h01, a, b, c;",
      "vadd2.u32.u32.u32 d, a, b;",
      "vadd2.u32.u32.u32 d, a.h0, b, c;",
      "vadd2.u32.u32.u32 d, a.h40, b, c;",
      "vset2.u32.u32.lt.sat d, a, b, c;",
      "vadd4.u32.u32.u32 d.b01, a, b, c;",
      "vadd4.u32.u32.u32 d, a.b0, b, c;",
      "vadd4.u32.u32.u32 d, a.b8210, b, c;",
      "vabsdiff4.u32.u32.u32 d, 5, b, c;",
      "vabsdiff4.u32.u32.u32 d, a, b, 5;",
      "vadd4.u64.u32.u32 d, a, b, c;",
      "vadd4.u32.u32.u32.min d, a, b, c;",
      "vadd4.u32.u32.u32 d, a, b, c.b0;",
      "add.u32 d, a.b0, b;",
      "mov.u32 d, a.h1;",
      "st.global.u32 [q], a.b0;"};
  static const char *const right[] = {"vadd.u32.u32.u32 d, a, b, c;",
                                      "vadd.u32.u32.u32 d, 5, b;",
                                      "vadd.u32.u32.u32.add d, a, b, 5;",
                                      "vadd.u32.u32.u32.add.sat d, a, b, c;",
                                      "vshl.u32.u32.u32.clamp.sat d, a, b;",
                                      "vmad.u32.u32.u32.sat.po d, a, b, c;",
                                      "vmad.s32.u32.u32 d, -a.b0, b, c;",
                                      "vset4.u32.u32.lt.add d.b2, a, b, c;"};
  char text[400];
  CUmodule module;

  for (size_t i = 0; i < ROWS(statements) + ROWS(right); i++) {
    const bool good = i >= ROWS(statements);
    const char *const s = good ? right[i - ROWS(statements)] : statements[i];
    CUresult rc;

    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_70\n.address_size 64\n"
             ".entry k() { .reg .u32 a, b, c, d; .reg .f32 f; .reg .u64 q;\n"
             "%s\nret; }\n",
             s);
    rc = cu(moduleLoadData)(&module, text);
    ck_assert_msg((rc == CUDA_SUCCESS) == good &&
                      (good || rc == CUDA_ERROR_INVALID_PTX),
                  "%s: %d", s, rc);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_video");

  kiln_test_case(
      s, "video", 120, setup, teardown,
      TESTS(results_are_those_of_a_gpu, wrong_statements_are_refused));
  return kiln_test_run(s);
}
