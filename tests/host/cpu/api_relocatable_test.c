/* api_relocatable_test.c -- tests code that several modules share: calls of
 * functions of another module through pointers, and the source positions of
 * linked modules. */
#include "api_module_fixture.h"

/* ---- Calls of functions of another module -------------------------------- */

/* A function that uses a variable of its module and prints, and its address. */
static const char library_ptx[] = HEAD
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".global .align 4 .u32 before[3] = {1, 2, 3};\n"
    ".global .align 4 .u32 factor = 7;\n"
    ".func (.param .b32 r) unused(.param .b32 x)\n{\nret;\n}\n"
    ".func (.param .b32 r) scale(.param .b32 x)\n{\n"
    ".reg .b32 %r<4>;\n"
    "ld.param.b32 %r1, [x];\n"
    "ld.global.u32 %r2, [factor];\n"
    "mul.lo.u32 %r3, %r1, %r2;\n"
    "st.param.b32 [r], %r3;\n"
    "ret;\n}\n"
    ".visible .global .align 8 .u64 address = scale;\n";

/* Calls the function that its second argument points to. */
static const char apply_ptx[] =
    HEAD ".func (.param .b32 r) own(.param .b32 x)\n{\n"
         ".reg .b32 %r<3>;\nld.param.b32 %r1, [x];\nadd.u32 %r2, %r1, 1000;\n"
         "st.param.b32 [r], %r2;\nret;\n}\n"
         ".visible .global .align 8 .u64 mine = own;\n"
         ".visible .entry apply(.param .u64 out, .param .u64 fn)\n{\n"
         ".reg .b32 %r<4>; .reg .b64 %rd<5>; .reg .pred %p;\n"
         "ld.param.u64 %rd1, [out];\n"
         "ld.param.u64 %rd2, [fn];\n"
         "mov.u32 %r1, %tid.x;\n"
         "mul.wide.u32 %rd3, %r1, 4;\n"
         "add.u64 %rd1, %rd1, %rd3;\n"
         "and.b32 %r3, %r1, 1;\n"
         "setp.eq.u32 %p, %r3, 0;\n"
         "@%p ld.global.u64 %rd2, [mine];\n"
         "{ .param .b32 x0; .param .b32 r0;\n"
         "st.param.b32 [x0], %r1;\n"
         "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
         "call (r0), %rd2, (x0), proto;\n"
         "ld.param.b32 %r2, [r0]; }\n"
         "st.global.u32 [%rd1], %r2;\n"
         "ret;\n}\n";

static uint64_t word_at(CUmodule m, const char *name)
{
  CUdeviceptr p = 0;
  uint64_t value = 0;

  ok(kiln__cpu_moduleGetGlobal(&p, NULL, m, name));
  ok(kiln__cpu_memcpyDtoH(&value, p, sizeof value));
  return value;
}

/* Even threads call a function of the kernel's module, odd threads a function
 * of another module. */
START_TEST(pointers_cross_modules)
{
  CUmodule library = load(library_ptx), user = load(apply_ptx);
  CUdeviceptr out = memory_of(64 * 4);
  uint64_t fn = word_at(library, "address");
  void *args[] = {&out, &fn};
  uint32_t got[64];

  ck_assert_uint_ne(fn, word_at(user, "mine"));
  ok(launch(function(user, "apply"), 1, 64, args));
  ok(kiln__cpu_memcpyDtoH(got, out, sizeof got));
  for (uint32_t i = 0; i < 64; i++)
    ck_assert_uint_eq(got[i], i % 2 == 0 ? i + 1000 : i * 7);
  ok(kiln__cpu_memFree(out));
}
END_TEST

/* The address of a function of an unloaded module is an invalid address. */
START_TEST(unloaded_functions_are_not_called)
{
  CUmodule library = load(library_ptx), user = load(apply_ptx);
  CUdeviceptr out = memory_of(64 * 4);
  uint64_t fn = word_at(library, "address");
  void *args[] = {&out, &fn};

  ok(kiln__cpu_moduleUnload(library));
  library = load(library_ptx);
  ck_assert_uint_ne(fn, word_at(library, "address"));
  ok(launch(function(user, "apply"), 1, 64, args));
  is(kiln__cpu_ctxSynchronize(), CUDA_ERROR_INVALID_PC);
}
END_TEST

/* ---- Source positions ---------------------------------------------------- */

static const char outer_ptx[] =
    HEAD ".file 1 \"outer.cu\"\n"
         ".extern .func store(.param .b64 p);\n"
         ".visible .entry outer(.param .u64 p)\n{\n"
         ".reg .b64 %rd<2>;\n"
         ".loc 1 3 0\n"
         "ld.param.u64 %rd1, [p];\n"
         "{ .param .b64 a;\nst.param.b64 [a], %rd1;\n"
         "call.uni store, (a); }\n"
         "ret;\n}\n";

static const char inner_ptx[] = HEAD ".file 1 \"inner.cu\"\n"
                                     ".visible .func store(.param .b64 p)\n{\n"
                                     ".reg .b64 %rd<2>;\n"
                                     ".loc 1 42 0\n"
                                     "ld.param.b64 %rd1, [p];\n"
                                     "st.u32 [%rd1], 1;\n"
                                     "ret;\n}\n";

static CUmodule link_two(const char *a, const char *b)
{
  CUlinkState state;
  CUmodule m;
  void *image;

  ok(kiln__cpu_linkCreate(0, NULL, NULL, &state));
  ok(kiln__cpu_linkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)a,
                           strlen(a) + 1, "a", 0, NULL, NULL));
  ok(kiln__cpu_linkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)b,
                           strlen(b) + 1, "b", 0, NULL, NULL));
  ok(kiln__cpu_linkComplete(state, &image, NULL));
  m = load(image);
  ok(kiln__cpu_linkDestroy(state));
  return m;
}

/* Both linked modules call their source file number 1. */
START_TEST(positions_name_the_file_of_their_module)
{
  CUmodule m = link_two(outer_ptx, inner_ptx);
  char fault[4096];
  uint64_t null = 0;
  void *args[] = {&null};

  ok(launch(function(m, "outer"), 1, 1, args));
  is(kiln__cpu_ctxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_kiln_ok(kiln_cpu_last_fault(fault, sizeof fault));
  ck_assert_msg(strstr(fault, "inner.cu:42") != NULL, "%s", fault);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_relocatable");

  kiln_test_case(
      s, "pointers", 60, setup, teardown,
      TESTS(pointers_cross_modules, unloaded_functions_are_not_called));
  kiln_test_case(s, "positions", 60, setup, teardown,
                 TESTS(positions_name_the_file_of_their_module));
  return kiln_test_run(s);
}
