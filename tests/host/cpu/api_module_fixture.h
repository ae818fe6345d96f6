/* api_module_fixture.h -- helpers for the tests that load PTX through the CPU
 * device's driver: short functions that load modules, look up functions and
 * launch kernels. */
#ifndef CPU_API_MODULE_FIXTURE_H
#define CPU_API_MODULE_FIXTURE_H

#include "api_fixture.h"
#include "support.h"

#include "cpu/api/module/api_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 7.8\n.target sm_70\n.address_size 64\n"

static inline CUmodule load(const char *ptx)
{
  static char log[4096];
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)sizeof log};
  CUmodule m = NULL;
  const CUresult rc = kiln__cpu_moduleLoadDataEx(&m, ptx, 2, options, values);

  ck_assert_msg(rc == CUDA_SUCCESS, "%d: %s", rc, log);
  return m;
}

static inline CUfunction function(CUmodule m, const char *name)
{
  CUfunction f = NULL;

  ok(kiln__cpu_moduleGetFunction(&f, m, name));
  return f;
}

static inline CUresult launch(CUfunction f, unsigned grid, unsigned block,
                              void **args)
{
  return kiln__cpu_launchKernel(f, grid, 1, 1, block, 1, 1, 0, NULL, args,
                                NULL);
}

static inline CUdeviceptr memory_of(size_t bytes)
{
  const CUdeviceptr p = make_memory(bytes);

  ok(kiln__cpu_memsetD8(p, 0, bytes));
  return p;
}

static inline int attribute(CUfunction f, CUfunction_attribute which)
{
  int value = -1000;

  ok(kiln__cpu_funcGetAttribute(&value, which, f));
  return value;
}

/* A kernel that stores (thread number + `add`) in out[thread]. */
static const char number_ptx[] =
    HEAD ".visible .entry number(.param .u64 out, .param .u32 add)\n"
         "{\n"
         "\t.reg .b32 %r<6>;\n"
         "\t.reg .b64 %rd<4>;\n"
         "\tld.param.u64 %rd1, [out];\n"
         "\tld.param.u32 %r1, [add];\n"
         "\tmov.u32 %r2, %ctaid.x;\n"
         "\tmov.u32 %r3, %ntid.x;\n"
         "\tmov.u32 %r4, %tid.x;\n"
         "\tmad.lo.s32 %r4, %r2, %r3, %r4;\n"
         "\tmul.wide.u32 %rd2, %r4, 4;\n"
         "\tadd.s64 %rd3, %rd1, %rd2;\n"
         "\tadd.s32 %r5, %r4, %r1;\n"
         "\tst.global.u32 [%rd3], %r5;\n"
         "\tret;\n"
         "}\n";

static const char globals_ptx[] =
    HEAD ".visible .global .align 4 .u32 number = 7;\n"
         ".visible .global .align 4 .f32 floats[3] = {1.5, 0f40000000};\n"
         ".visible .const .align 8 .b8 bytes[8] = {1, 2, 3};\n"
         ".global .align 4 .u32 hidden = 9;\n"
         ".visible .global .align 8 .u64 to[3] = {number, floats + 4, "
         "generic(hidden)};\n"
         ".visible .global .align 64 .b8 wide[64];\n"
         ".visible .entry bump() {\n"
         ".reg .b32 %r<3>;\n"
         "ld.global.u32 %r1, [number];\n"
         "add.u32 %r1, %r1, 1;\n"
         "st.global.u32 [number], %r1;\n"
         "ret;\n}\n";

#endif
