/* api_modules_test.c -- tests modules, functions and launches of the CPU
 * device's driver: their effects, and the result code of each wrong use. */
#include "api_module_fixture.h"

/* ---- Loading ------------------------------------------------------------- */

static const struct {
  const char *image;
  CUresult rc;
  const char *log; /* expected part of the error log */
} loads[] = {
    {number_ptx, CUDA_SUCCESS, ""},
    {HEAD ".visible .entry k() { ret; }", CUDA_SUCCESS, ""},
    {HEAD ".visible .entry k() { frob.u32 %r1; }", CUDA_ERROR_INVALID_PTX,
     "line 4"},
    {HEAD ".visible .entry k() {\n.reg .b32 %r1;\nadd.u32 %r1, %r2, 1;\nret; }",
     CUDA_ERROR_INVALID_PTX, "line 6"},
    {HEAD ".visible .entry k() {\nbra nowhere;\n}", CUDA_ERROR_INVALID_PTX,
     "nowhere"},
    {HEAD ".visible .entry k( {", CUDA_ERROR_INVALID_PTX, "line 4"},
    {HEAD "garbage", CUDA_ERROR_INVALID_PTX, "line 4"},
    {HEAD ".visible .entry k() {\n.shared .b8 s[50000];\nmov.u32 %r1, s;}",
     CUDA_ERROR_INVALID_PTX, "ptx"},
    {".version 9.9\n.target sm_70\n.address_size 64\n",
     CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "9.9"},
    {".version 8.7\n.target sm_100\n.address_size 64\n",
     CUDA_ERROR_NO_BINARY_FOR_GPU, "sm_100"},
    {"nothing of the kind", CUDA_ERROR_INVALID_IMAGE, "PTX"},
};

START_TEST(loading_reports_what_is_wrong)
{
  char log[2048] = "###", info[64] = "###";
  CUjit_option options[] = {
      CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_WALL_TIME,        CU_JIT_OPTIMIZATION_LEVEL,
      CU_JIT_MAX_REGISTERS,    CU_JIT_TARGET_FROM_CUCONTEXT};
  void *values[] = {log,  (void *)sizeof log, info,       (void *)sizeof info,
                    NULL, (void *)4,          (void *)32, NULL};
  CUmodule m = NULL;
  CUresult rc = kiln__cpu_moduleLoadDataEx(
      &m, loads[_i].image, sizeof options / sizeof options[0], options, values);

  ck_assert_msg(rc == loads[_i].rc, "%.40s: %d: %s", loads[_i].image, rc, log);
  ck_assert_uint_eq((uintptr_t)values[1], strlen(log));
  ck_assert_uint_eq((uintptr_t)values[3], strlen(info));
  ck_assert_msg(strstr(log, loads[_i].log) != NULL, "no \"%s\" in: %s",
                loads[_i].log, log);
  ck_assert_int_eq(m != NULL, rc == CUDA_SUCCESS);
  if (m != NULL)
    ok(kiln__cpu_moduleUnload(m));

  /* A log that does not fit into the buffer must be truncated and end with a
   * NUL. */
  memset(log, '#', sizeof log);
  values[0] = log;
  values[1] = (void *)10;
  is(kiln__cpu_moduleLoadDataEx(&m, loads[_i].image, 2, options, values),
     loads[_i].rc);
  ck_assert_uint_lt(strlen(log), 10);
  ck_assert_int_eq(log[10], '#');
}
END_TEST

START_TEST(loading_checks_arguments)
{
  CUmodule m;
  CUjit_option option = CU_JIT_ERROR_LOG_BUFFER;

  is(kiln__cpu_moduleLoadData(NULL, number_ptx), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_moduleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_moduleLoadDataEx(&m, number_ptx, 1, NULL, NULL),
     CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_moduleLoadDataEx(&m, number_ptx, 1, &option, NULL),
     CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_moduleLoad(&m, "/no/such/file.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
  is(kiln__cpu_moduleUnload((CUmodule)(void *)&m), CUDA_ERROR_INVALID_HANDLE);
  is(kiln__cpu_moduleUnload(NULL), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(files_are_loaded)
{
  char dir[256], path[300];
  CUmodule m;

  test_dir_make(dir);
  kiln__format(path, sizeof path, "%s/k.ptx", dir);
  test_write_file(path, number_ptx, strlen(number_ptx));
  ok(kiln__cpu_moduleLoad(&m, path));
  function(m, "number");
  ok(kiln__cpu_moduleUnload(m));
  test_write_file(path, "", 0);
  is(kiln__cpu_moduleLoad(&m, path), CUDA_ERROR_INVALID_IMAGE);
  test_dir_remove(dir);
}
END_TEST

START_TEST(names_are_looked_up)
{
  CUmodule m = load(HEAD ".visible .entry one() { ret; }\n"
                         ".visible .entry two() { ret; }\n"
                         ".func inner() { ret; }\n");
  CUfunction f, all[3] = {NULL, NULL, NULL};
  const char *name;
  unsigned n;

  is(kiln__cpu_moduleGetFunction(&f, m, "three"), CUDA_ERROR_NOT_FOUND);
  is(kiln__cpu_moduleGetFunction(&f, m, "inner"), CUDA_ERROR_NOT_FOUND);
  is(kiln__cpu_moduleGetFunction(&f, m, NULL), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_moduleGetFunction(NULL, m, "one"), CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_moduleGetFunctionCount(&n, m));
  ck_assert_uint_eq(n, 2);
  ok(kiln__cpu_moduleEnumerateFunctions(all, 3, m));
  ck_assert_ptr_eq(all[0], function(m, "one"));
  ck_assert_ptr_eq(all[1], function(m, "two"));
  ck_assert_ptr_null(all[2]);
  ok(kiln__cpu_funcGetName(&name, all[1]));
  ck_assert_str_eq(name, "two");
  ok(kiln__cpu_moduleUnload(m));
  is(kiln__cpu_moduleGetFunction(&f, m, "one"), CUDA_ERROR_INVALID_HANDLE);
  is(kiln__cpu_funcGetName(&name, all[1]), CUDA_ERROR_INVALID_HANDLE);
  is(launch(all[0], 1, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
  is(kiln__cpu_moduleUnload(m), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* ---- Variables ----------------------------------------------------------- */

static CUdeviceptr global(CUmodule m, const char *name, size_t size)
{
  CUdeviceptr p = 0;
  size_t n = 0;

  ok(kiln__cpu_moduleGetGlobal(&p, &n, m, name));
  ck_assert_msg(n == size, "%s: %zu", name, n);
  return p;
}

START_TEST(variables_hold_what_they_begin_with)
{
  CUmodule m = load(globals_ptx), other = load(globals_ptx);
  uint32_t number = 0;
  float floats[3];
  uint8_t bytes[8];
  uint64_t to[3];
  CUdeviceptr at = global(m, "number", 4);
  CUdeviceptr p;
  size_t n;

  ok(kiln__cpu_memcpyDtoH(&number, at, 4));
  ck_assert_uint_eq(number, 7);
  ok(kiln__cpu_memcpyDtoH(floats, global(m, "floats", 12), 12));
  ck_assert(floats[0] == 1.5F && floats[1] == 2.0F && floats[2] == 0.0F);
  ok(kiln__cpu_memcpyDtoH(bytes, global(m, "bytes", 8), 8));
  ck_assert_int_eq(memcmp(bytes, "\1\2\3\0\0\0\0\0", 8), 0);
  ok(kiln__cpu_memcpyDtoH(to, global(m, "to", 24), 24));
  ck_assert_uint_eq(to[0], at);
  ck_assert_uint_eq(to[1], global(m, "floats", 12) + 4);
  ok(kiln__cpu_memcpyDtoH(&number, to[2], 4));
  ck_assert_uint_eq(number, 9);
  ck_assert_uint_eq(global(m, "wide", 64) % 64, 0);

  /* Each module has its own variables. */
  ck_assert_uint_ne(global(other, "number", 4), at);
  ok(launch(function(other, "bump"), 1, 1, NULL));
  ok(kiln__cpu_ctxSynchronize());
  ok(kiln__cpu_memcpyDtoH(&number, at, 4));
  ck_assert_uint_eq(number, 7);
  ok(kiln__cpu_memcpyDtoH(&number, global(other, "number", 4), 4));
  ck_assert_uint_eq(number, 8);

  is(kiln__cpu_moduleGetGlobal(&p, &n, m, "nothing"), CUDA_ERROR_NOT_FOUND);
  is(kiln__cpu_moduleGetGlobal(&p, &n, m, "bump"), CUDA_ERROR_NOT_FOUND);
  is(kiln__cpu_moduleGetGlobal(NULL, NULL, m, "number"),
     CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_moduleGetGlobal(NULL, &n, m, "number"));
  ok(kiln__cpu_moduleUnload(m));
  /* The memory of a variable is freed with its module. */
  is(kiln__cpu_memcpyDtoH(&number, at, 4), CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_moduleUnload(other));
}
END_TEST

/* Variables use device memory as allocations do. The memory is charged to the
 * device when the module is loaded and released when the module is unloaded. */
START_TEST(variables_are_charged_to_the_device)
{
  const uint64_t sizes[] = {1 << 20, 20000000000, UINT64_C(1) << 40};
  size_t before, with, after, total;
  char ptx[300];
  CUmodule m;

  ok(kiln__cpu_memGetInfo(&before, &total));
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const bool fits = sizes[i] <= before;

    snprintf(ptx, sizeof ptx,
             HEAD ".visible .global .align 4 .b8 small[4000];\n"
                  ".visible .global .align 4 .b8 big[%llu];\n",
             (unsigned long long)sizes[i]);
    is(kiln__cpu_moduleLoadData(&m, ptx),
       fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
    ok(kiln__cpu_memGetInfo(&with, &total));
    if (fits) {
      ck_assert_uint_ge(before - with, sizes[i] + 4000);
      ok(kiln__cpu_moduleUnload(m));
    }
    ok(kiln__cpu_memGetInfo(&after, &total));
    ck_assert_uint_eq(after, before);
  }
}
END_TEST

/* ---- Parameters ---------------------------------------------------------- */

static const char params_ptx[] = HEAD
    ".visible .entry params(.param .u8 a, .param .u16 b, .param .u64 out,\n"
    "  .param .align 4 .b8 s[12], .param .f64 d, .param .u32 e)\n"
    "{\n"
    ".reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .b16 %h<3>; .reg .f64 %d<2>;\n"
    "ld.param.u64 %rd1, [out];\n"
    "ld.param.u8 %h1, [a];\n"
    "st.global.u8 [%rd1], %h1;\n"
    "ld.param.u16 %h2, [b];\n"
    "st.global.u16 [%rd1+2], %h2;\n"
    "ld.param.u32 %r1, [s];\n"
    "ld.param.u32 %r2, [s+4];\n"
    "ld.param.u32 %r3, [s+8];\n"
    "st.global.u32 [%rd1+4], %r1;\n"
    "st.global.u32 [%rd1+8], %r2;\n"
    "st.global.u32 [%rd1+12], %r3;\n"
    "ld.param.f64 %d1, [d];\n"
    "st.global.f64 [%rd1+16], %d1;\n"
    "ld.param.u32 %r4, [e];\n"
    "st.global.u32 [%rd1+24], %r4;\n"
    "ret;\n}\n";

typedef struct params_seen {
  uint8_t a;
  uint16_t b;
  uint32_t s[3];
  double d;
  uint32_t e;
} params_seen;

START_TEST(parameters_arrive)
{
  static const size_t layout[][2] = {{0, 1},   {2, 2},  {8, 8},
                                     {16, 12}, {32, 8}, {40, 4}};
  const params_seen want = {200, 60000, {1, 0xffffffffU, 3}, -2.5, 77};
  CUmodule m = load(params_ptx);
  CUfunction f = function(m, "params");
  CUdeviceptr out = memory_of(sizeof(params_seen));
  void *args[] = {(void *)&want.a, (void *)&want.b, &out,
                  (void *)want.s,  (void *)&want.d, (void *)&want.e};
  params_seen got;
  unsigned char buffer[44] = {0};
  size_t size = sizeof buffer, offset, bytes;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};

  for (size_t i = 0; i < 6; i++) {
    ok(kiln__cpu_funcGetParamInfo(f, i, &offset, &bytes));
    ck_assert_msg(offset == layout[i][0] && bytes == layout[i][1],
                  "parameter %zu: %zu bytes at %zu", i, bytes, offset);
    memcpy(buffer + offset, args[i], bytes);
  }
  is(kiln__cpu_funcGetParamInfo(f, 6, &offset, &bytes),
     CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_funcGetParamInfo(f, 0, &offset, NULL));
  for (int how = 0; how < 2; how++) {
    ok(kiln__cpu_memsetD8(out, 0, sizeof got));
    ok(kiln__cpu_launchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL,
                              how == 0 ? args : NULL, how == 0 ? NULL : extra));
    ok(kiln__cpu_ctxSynchronize());
    ok(kiln__cpu_memcpyDtoH(&got, out, sizeof got));
    ck_assert(got.a == want.a && got.b == want.b && got.d == want.d &&
              got.e == want.e);
    ck_assert_int_eq(memcmp(got.s, want.s, sizeof want.s), 0);
  }
  is(kiln__cpu_launchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
     CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_launchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, extra),
     CUDA_ERROR_INVALID_VALUE);
  size = 43;
  is(kiln__cpu_launchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
     CUDA_ERROR_INVALID_VALUE);
  args[3] = NULL;
  is(launch(f, 1, 1, args), CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_memFree(out));
}
END_TEST

START_TEST(arguments_are_taken_at_the_launch)
{
  CUmodule m = load(number_ptx);
  CUfunction f = function(m, "number");
  CUdeviceptr out = memory_of(4 * 64);
  uint32_t add = 0, got[64];
  void *args[] = {&out, &add};

  for (add = 1; add < 20; add++)
    ok(launch(f, 2, 32, args));
  add = 1000; /* The launches have already copied this parameter. */
  ok(kiln__cpu_moduleUnload(m)); /* The pending launches must still complete. */
  ok(kiln__cpu_memcpyDtoH(got, out, sizeof got));
  for (uint32_t i = 0; i < 64; i++)
    ck_assert_uint_eq(got[i], i + 19);
  ok(kiln__cpu_memFree(out));
}
END_TEST

START_TEST(the_old_launch_functions_work)
{
  CUfunction f = function(load(number_ptx), "number");
  CUdeviceptr out = memory_of(4 * 24);
  uint32_t got[24];

  ok(kiln__cpu_funcSetBlockShape(f, 4, 1, 1));
  ok(kiln__cpu_funcSetSharedSize(f, 16));
  ok(kiln__cpu_paramSetv(f, 0, &out, 8));
  ok(kiln__cpu_paramSeti(f, 8, 5));
  ok(kiln__cpu_paramSetSize(f, 12));
  ok(kiln__cpu_launchGrid(f, 6, 1));
  ok(kiln__cpu_memcpyDtoH(got, out, sizeof got));
  for (uint32_t i = 0; i < 24; i++)
    ck_assert_uint_eq(got[i], i + 5);
  is(kiln__cpu_paramSetv(f, 4090, &out, 8), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_paramSeti(f, -4, 5), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_launchGrid(f, 0, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- Attributes ---------------------------------------------------------- */

static const char attributes_ptx[] =
    HEAD ".const .align 4 .b8 table[256];\n"
         ".visible .entry plain() { ret; }\n"
         ".visible .entry bounded() .maxntid 128, 2, 1 { ret; }\n"
         ".visible .entry exact() .reqntid 32, 4 { ret; }\n"
         ".visible .entry shared() {\n"
         ".shared .align 4 .b8 s[1000];\n.reg .b32 %r<3>;\n"
         "mov.u32 %r1, s;\nst.shared.u32 [%r1], %r1;\nret;\n}\n";

START_TEST(attributes_are_right)
{
  CUmodule m = load(attributes_ptx), back;
  CUfunction plain = function(m, "plain"), shared = function(m, "shared");
  int value;

  ck_assert_int_eq(attribute(plain, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                   1024);
  ck_assert_int_eq(attribute(function(m, "bounded"),
                             CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                   256);
  ck_assert_int_eq(
      attribute(function(m, "exact"), CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
      128);
  ck_assert_int_eq(attribute(plain, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
  ck_assert_int_eq(attribute(shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
                   1000);
  ck_assert_int_eq(attribute(plain, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 256);
  ck_assert_int_eq(attribute(plain, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 0);
  ck_assert_int_ge(attribute(plain, CU_FUNC_ATTRIBUTE_NUM_REGS), 1);
  ck_assert_int_eq(attribute(plain, CU_FUNC_ATTRIBUTE_PTX_VERSION), 70);
  ck_assert_int_eq(attribute(plain, CU_FUNC_ATTRIBUTE_BINARY_VERSION), 90);
  ck_assert_int_eq(
      attribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
      48 * 1024 - 1000);
  ck_assert_int_eq(
      attribute(plain, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT), -1);
  is(kiln__cpu_funcGetAttribute(&value, 99, plain), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_funcGetAttribute(NULL, 0, plain), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_funcGetAttribute(&value, 0, NULL), CUDA_ERROR_INVALID_HANDLE);
  ok(kiln__cpu_funcGetModule(&back, plain));
  ck_assert_ptr_eq(back, m);
  ok(kiln__cpu_funcSetCacheConfig(plain, 2));
  is(kiln__cpu_funcSetCacheConfig(plain, 7), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(attributes_are_set_within_limits)
{
  static const struct {
    CUfunction_attribute which;
    int value;
    CUresult rc;
  } sets[] = {
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, CUDA_SUCCESS},
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024 - 1000,
       CUDA_SUCCESS},
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024 - 999,
       CUDA_ERROR_INVALID_VALUE},
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1,
       CUDA_ERROR_INVALID_VALUE},
      {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100, CUDA_SUCCESS},
      {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1, CUDA_SUCCESS},
      {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101,
       CUDA_ERROR_INVALID_VALUE},
      {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, CUDA_SUCCESS},
      {CU_FUNC_ATTRIBUTE_NUM_REGS, 32, CUDA_ERROR_INVALID_VALUE},
      {99, 1, CUDA_ERROR_INVALID_VALUE},
  };
  CUfunction f = function(load(attributes_ptx), "shared");

  for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
    is(kiln__cpu_funcSetAttribute(f, sets[i].which, sets[i].value), sets[i].rc);
    if (sets[i].rc == CUDA_SUCCESS)
      ck_assert_int_eq(attribute(f, sets[i].which), sets[i].value);
  }
}
END_TEST

/* ---- Limits of launches -------------------------------------------------- */

static const struct {
  const char *kernel;
  unsigned gx, gy, gz, bx, by, bz, smem;
  CUresult rc;
} shapes[] = {
    {"plain", 1, 1, 1, 1, 1, 1, 0, CUDA_SUCCESS},
    {"plain", 2, 3, 4, 5, 6, 7, 0, CUDA_SUCCESS},
    {"plain", 1, 1, 1, 1024, 1, 1, 0, CUDA_SUCCESS},
    {"plain", 1, 1, 1, 1, 1, 64, 0, CUDA_SUCCESS},
    {"plain", 1, 1, 1, 1, 1, 1, 48 * 1024, CUDA_SUCCESS},
    {"plain", 0, 1, 1, 1, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 0, 1, 1, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 0, 1, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 1, 0, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 1, 1, 1, 0, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 0x80000000U, 1, 1, 1, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 65536, 1, 1, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 65536, 1, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 1, 1025, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 1, 32, 33, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 1, 1, 1, 65, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 1, 65536, 65536, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"plain", 1, 1, 1, 1, 1, 1, 48 * 1024 + 1, CUDA_ERROR_INVALID_VALUE},
    {"bounded", 1, 1, 1, 256, 1, 1, 0, CUDA_SUCCESS},
    {"bounded", 1, 1, 1, 257, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"exact", 1, 1, 1, 32, 4, 1, 0, CUDA_SUCCESS},
    {"exact", 1, 1, 1, 128, 1, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"exact", 1, 1, 1, 32, 2, 1, 0, CUDA_ERROR_INVALID_VALUE},
    {"shared", 1, 1, 1, 1, 1, 1, 48 * 1024 - 1000, CUDA_SUCCESS},
    {"shared", 1, 1, 1, 1, 1, 1, 48 * 1024 - 999, CUDA_ERROR_INVALID_VALUE},
};

START_TEST(launches_are_checked)
{
  CUfunction f = function(load(attributes_ptx), shapes[_i].kernel);

  is(kiln__cpu_launchKernel(f, shapes[_i].gx, shapes[_i].gy, shapes[_i].gz,
                            shapes[_i].bx, shapes[_i].by, shapes[_i].bz,
                            shapes[_i].smem, NULL, NULL, NULL),
     shapes[_i].rc);
  /* A rejected launch must not invalidate the context. */
  ok(kiln__cpu_ctxSynchronize());
}
END_TEST

START_TEST(shared_memory_beyond_48k_is_asked_for)
{
  CUfunction f = function(load(attributes_ptx), "plain");

  ok(kiln__cpu_funcSetAttribute(
      f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
  ok(kiln__cpu_launchKernel(f, 1, 1, 1, 1, 1, 1, 100000, NULL, NULL, NULL));
  is(kiln__cpu_launchKernel(f, 1, 1, 1, 1, 1, 1, 100001, NULL, NULL, NULL),
     CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_ctxSynchronize());
}
END_TEST

START_TEST(cooperative_launches_fit_or_are_refused)
{
  CUfunction f = function(load(attributes_ptx), "plain");
  CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                         .value.cooperative = 1};
  CUlaunchConfig c = {1, 1, 1, 1024, 1, 1, 0, NULL, &a, 1};
  int blocks = 0, sms = 0;

  ok(kiln__cpu_occupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 1024, 0));
  ok(kiln__cpu_deviceGetAttribute(&sms,
                                  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  ck_assert_int_eq(blocks, 2);
  c.gridDimX = (unsigned)(blocks * sms);
  ok(kiln__cpu_launchKernelEx(&c, f, NULL, NULL));
  ok(kiln__cpu_launchCooperativeKernel(f, c.gridDimX, 1, 1, 1024, 1, 1, 0, NULL,
                                       NULL));
  c.gridDimX++;
  is(kiln__cpu_launchKernelEx(&c, f, NULL, NULL),
     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  is(kiln__cpu_launchCooperativeKernel(f, c.gridDimX, 1, 1, 1024, 1, 1, 0, NULL,
                                       NULL),
     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  a.value.cooperative = 0;
  ok(kiln__cpu_launchKernelEx(&c, f, NULL, NULL));
  ok(kiln__cpu_ctxSynchronize());
}
END_TEST

START_TEST(clusters_are_checked)
{
  CUfunction f = function(load(attributes_ptx), "plain");
  CUlaunchAttribute a[] = {
      {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
       .value.clusterDim = {2, 1, 1}},
      {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 1},
      {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
       .value.programmaticStreamSerializationAllowed = 1}};
  CUlaunchConfig c = {8, 1, 1, 32, 1, 1, 0, NULL, a, 3};
  int n = 0;

  ok(kiln__cpu_launchKernelEx(&c, f, NULL, NULL));
  ok(kiln__cpu_occupancyMaxActiveClusters(&n, f, &c));
  ck_assert_int_eq(n, 32 * KILN__SM_COUNT / 2);
  ok(kiln__cpu_occupancyMaxPotentialClusterSize(&n, f, &c));
  ck_assert_int_eq(n, 8);
  c.gridDimX = 9; /* The grid size must be a multiple of the cluster size. */
  is(kiln__cpu_launchKernelEx(&c, f, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  c.gridDimX = 16;
  a[0].value.clusterDim.x = 16;
  is(kiln__cpu_launchKernelEx(&c, f, NULL, NULL),
     CUDA_ERROR_INVALID_CLUSTER_SIZE);
  ok(kiln__cpu_funcSetAttribute(
      f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  ok(kiln__cpu_launchKernelEx(&c, f, NULL, NULL));
  a[0].value.clusterDim.x = 0;
  is(kiln__cpu_launchKernelEx(&c, f, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_launchKernelEx(NULL, f, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  ok(kiln__cpu_ctxSynchronize());
}
END_TEST

static size_t two_bytes_a_thread(int block)
{
  return (size_t)block * 200;
}

/* Returns the number of blocks that an SM holds at once. */
static int resident(CUfunction f, int block, size_t bytes)
{
  int n = 0;

  ok(kiln__cpu_occupancyMaxActiveBlocksPerMultiprocessor(&n, f, block, bytes));
  return n;
}

START_TEST(block_sizes_are_searched)
{
  CUfunction f = function(load(attributes_ptx), "plain");
  CUfunction bounded = function(load(attributes_ptx), "bounded");
  int grid = 0, block = 0, n = 0;
  size_t bytes = 0;

  ok(kiln__cpu_occupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
  ck_assert_int_eq(block, 1024);
  ck_assert_int_eq(grid, 2 * KILN__SM_COUNT);
  ok(kiln__cpu_occupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 300));
  ck_assert_int_le(block, 300);
  ck_assert_int_eq(grid, resident(f, block, 0) * KILN__SM_COUNT);
  ok(kiln__cpu_occupancyMaxPotentialBlockSize(&grid, &block, bounded, NULL, 0,
                                              0));
  ck_assert_int_eq(block, 256);
  /* Each thread needs 200 bytes. The block size is limited by the 228 KiB of
   * shared memory per SM, less 1 KiB per block. */
  ok(kiln__cpu_occupancyMaxPotentialBlockSize(&grid, &block, f,
                                              two_bytes_a_thread, 0, 0));
  n = resident(f, block, two_bytes_a_thread(block));
  for (int other = 32; other <= 1024; other += 32)
    ck_assert_int_le(resident(f, other, two_bytes_a_thread(other)) * other,
                     n * block);
  is(kiln__cpu_occupancyMaxActiveBlocksPerMultiprocessor(&n, f, 0, 0),
     CUDA_ERROR_INVALID_VALUE);
  /* These are figures of an H200. The limit of the kernel counts, but not the
   * shared memory that the driver reserves per block. */
  ok(kiln__cpu_occupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 128));
  ck_assert_uint_eq(bytes, 49152);
  ok(kiln__cpu_occupancyAvailableDynamicSMemPerBlock(&bytes, f, 8, 128));
  ck_assert_uint_eq(bytes, 29184);
  ok(kiln__cpu_occupancyAvailableDynamicSMemPerBlock(&bytes, f, 16, 128));
  ck_assert_uint_eq(bytes, 14592);
}
END_TEST

/* ---- Faults -------------------------------------------------------------- */

static const struct {
  const char *body;
  CUresult rc;
} faults[] = {
    {"trap;", CUDA_ERROR_LAUNCH_FAILED},
    {"mov.u64 %rd1, 64; st.global.u32 [%rd1], 1;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"mov.u64 %rd1, word; st.global.u32 [%rd1+2], 1;",
     CUDA_ERROR_MISALIGNED_ADDRESS},
    {"bra again; again: bra again;", CUDA_ERROR_LAUNCH_TIMEOUT},
};

START_TEST(faults_become_results)
{
  char ptx[1024], fault[1024];
  CUfunction f;

  ck_kiln_ok(kiln_cpu_configure(&(kiln_cpu_opts){.budget = 100000}));
  kiln__format(ptx, sizeof ptx,
               "%s.global .align 8 .u64 word;\n.visible .entry broken() {\n"
               ".reg .b64 %%rd<3>;\n%s\nret;\n}\n",
               HEAD, faults[_i].body);
  f = function(load(ptx), "broken");
  ok(launch(f, 1, 32, NULL));
  is(kiln__cpu_ctxSynchronize(), faults[_i].rc);
  /* The fault has invalidated the context, so every later launch fails. */
  is(launch(f, 1, 32, NULL), faults[_i].rc);
  ck_kiln_ok(kiln_cpu_last_fault(fault, sizeof fault));
  ck_assert_msg(strstr(fault, "broken") != NULL, "%s", fault);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_modules");
  TCase *t = kiln_test_case(
      s, "modules", 60, setup, teardown,
      TESTS(loading_checks_arguments, files_are_loaded, names_are_looked_up,
            variables_hold_what_they_begin_with,
            variables_are_charged_to_the_device, parameters_arrive,
            arguments_are_taken_at_the_launch, the_old_launch_functions_work,
            attributes_are_right, attributes_are_set_within_limits,
            shared_memory_beyond_48k_is_asked_for,
            cooperative_launches_fit_or_are_refused, clusters_are_checked,
            block_sizes_are_searched));

  tcase_add_loop_test(t, loading_reports_what_is_wrong, 0, ROWS(loads));
  tcase_add_loop_test(t, launches_are_checked, 0, ROWS(shapes));
  /* These tests destroy no context, because a fault invalidates it. */
  t = kiln_test_case(s, "faults", 60, setup, NULL, TESTS(NULL));
  tcase_add_loop_test(t, faults_become_results, 0, ROWS(faults));
  return kiln_test_run(s);
}
