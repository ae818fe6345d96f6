/* api_link_test.c -- tests libraries, linking and relocatable code in the CPU
 * device's driver. */
#include "api_module_fixture.h"

/* ---- Libraries ----------------------------------------------------------- */

/* Loads a library without options. */
static CUresult load_library(CUlibrary *library, const char *ptx)
{
  return kiln__cpu_libraryLoadData(library, ptx, NULL, NULL, 0, NULL, NULL, 0);
}

START_TEST(libraries_load_into_each_context)
{
  CUlibrary library;
  CUkernel kernel, all[2] = {NULL, NULL};
  CUfunction f, g;
  CUcontext second;
  CUmodule m;
  CUdeviceptr one, two, out;
  uint32_t got[4], add = 3;
  void *args[] = {&out, &add};
  unsigned n = 0;
  const char *name;
  size_t offset, size;
  int value;
  CUlibrary back;

  ok(load_library(&library, number_ptx));
  ok(kiln__cpu_libraryGetKernelCount(&n, library));
  ck_assert_uint_eq(n, 1);
  ok(kiln__cpu_libraryEnumerateKernels(all, 2, library));
  ok(kiln__cpu_libraryGetKernel(&kernel, library, "number"));
  ck_assert_ptr_eq(all[0], kernel);
  ck_assert_ptr_null(all[1]);
  is(kiln__cpu_libraryGetKernel(&kernel, library, "other"),
     CUDA_ERROR_NOT_FOUND);
  ok(kiln__cpu_kernelGetName(&name, kernel));
  ck_assert_str_eq(name, "number");
  ok(kiln__cpu_kernelGetLibrary(&back, kernel));
  ck_assert_ptr_eq(back, library);
  ok(kiln__cpu_kernelGetParamInfo(kernel, 1, &offset, &size));
  ck_assert(offset == 8 && size == 4);

  /* An attribute can be set before any context loads the library. */
  ok(kiln__cpu_kernelSetAttribute(
      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 90000, kernel, 0));
  ok(kiln__cpu_kernelGetAttribute(
      &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
  ck_assert_int_eq(value, 90000);
  is(kiln__cpu_kernelGetAttribute(&value, 0, kernel, 1),
     CUDA_ERROR_INVALID_DEVICE);
  ok(kiln__cpu_kernelGetFunction(&f, kernel));
  ck_assert_int_eq(
      attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 90000);
  ok(kiln__cpu_libraryGetModule(&m, library));
  is(kiln__cpu_moduleUnload(m), CUDA_ERROR_INVALID_HANDLE);

  /* A launch accepts a CUkernel instead of a CUfunction. */
  out = one = memory_of(16);
  ok(launch((CUfunction)(void *)kernel, 1, 4, args));
  ok(kiln__cpu_memcpyDtoH(got, one, sizeof got));
  ck_assert_uint_eq(got[3], 6);

  ok(kiln__cpu_ctxCreate(&second, 0, 0));
  ok(kiln__cpu_kernelGetFunction(&g, kernel));
  ck_assert_ptr_ne(f, g);
  out = two = memory_of(16);
  add = 10;
  ok(launch((CUfunction)(void *)kernel, 1, 4, args));
  ok(kiln__cpu_memcpyDtoH(got, two, sizeof got));
  ck_assert_uint_eq(got[3], 13);
  ok(kiln__cpu_memFree(two));
  ok(kiln__cpu_ctxDestroy(second));
  ok(kiln__cpu_ctxSetCurrent(context));
  ok(kiln__cpu_libraryUnload(library));
  is(kiln__cpu_libraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
  is(launch((CUfunction)(void *)kernel, 1, 4, args), CUDA_ERROR_INVALID_HANDLE);
  ok(kiln__cpu_memFree(one));
}
END_TEST

START_TEST(libraries_have_globals)
{
  CUlibrary library;
  CUdeviceptr p;
  size_t size;
  uint32_t value = 0;

  ok(load_library(&library, globals_ptx));
  ok(kiln__cpu_libraryGetGlobal(&p, &size, library, "number"));
  ok(kiln__cpu_memcpyDtoH(&value, p, 4));
  ck_assert_uint_eq(value, 7);
  is(kiln__cpu_libraryGetGlobal(&p, &size, library, "none"),
     CUDA_ERROR_NOT_FOUND);
  is(kiln__cpu_libraryGetManaged(&p, &size, library, "number"),
     CUDA_ERROR_NOT_FOUND);
  ok(kiln__cpu_libraryUnload(library));
  is(load_library(&library, HEAD "oops"), CUDA_ERROR_INVALID_PTX);
  is(kiln__cpu_libraryLoadFromFile(&library, "/no/such", NULL, NULL, 0, NULL,
                                   NULL, 0),
     CUDA_ERROR_FILE_NOT_FOUND);
}
END_TEST

/* The linker options of a test that reads the error log. */
static CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                                 CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};

/* ---- Linking ------------------------------------------------------------- */

static const char caller_ptx[] =
    HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
         ".extern .global .align 4 .u32 offset;\n"
         ".visible .entry calls(.param .u64 out)\n{\n"
         ".reg .b32 %r<4>; .reg .b64 %rd<2>;\n"
         "ld.param.u64 %rd1, [out];\n"
         "mov.u32 %r1, 21;\n"
         "{ .param .b32 x0; .param .b32 r0;\n"
         "st.param.b32 [x0], %r1;\n"
         "call.uni (r0), twice, (x0);\n"
         "ld.param.b32 %r2, [r0]; }\n"
         "ld.global.u32 %r3, [offset];\n"
         "add.u32 %r2, %r2, %r3;\n"
         "st.global.u32 [%rd1], %r2;\n"
         "ret;\n}\n";

static const char callee_ptx[] =
    HEAD ".visible .global .align 4 .u32 offset = 100;\n"
         ".visible .func (.param .b32 r) twice(.param .b32 x)\n{\n"
         ".reg .b32 %r<3>;\n"
         "ld.param.b32 %r1, [x];\n"
         "add.u32 %r2, %r1, %r1;\n"
         "st.param.b32 [r], %r2;\n"
         "ret;\n}\n";

static CUresult add_text(CUlinkState state, const char *ptx)
{
  return kiln__cpu_linkAddData(state, CU_JIT_INPUT_PTX, (void *)ptx,
                               strlen(ptx) + 1, "part", 0, NULL, NULL);
}

/* Creates a fat binary with one entry. The entry is PTX if `kind` is 1, and
 * machine code if `kind` is 2. */
static void make_fatbin(uint8_t *to, size_t capacity, uint16_t kind,
                        const char *payload)
{
  const uint64_t size = strlen(payload) + 1, all = 64 + size;
  const uint32_t magic = 0xba55ed50, head = 64;
  const uint16_t version = 1, container = 16;

  ck_assert_uint_le(container + all, capacity);
  memset(to, 0, capacity);
  memcpy(to, &magic, 4);
  memcpy(to + 4, &version, 2);
  memcpy(to + 6, &container, 2);
  memcpy(to + 8, &all, 8);
  memcpy(to + 16, &kind, 2);
  memcpy(to + 20, &head, 4);
  memcpy(to + 24, &size, 8);
  memcpy(to + 80, payload, (size_t)size);
}

START_TEST(parts_are_linked)
{
  CUlinkState state;
  CUmodule m;
  CUdeviceptr out = memory_of(4);
  void *args[] = {&out}, *image = NULL, *copy;
  size_t size = 0;
  uint32_t got = 0;

  ok(kiln__cpu_linkCreate(0, NULL, NULL, &state));
  ok(add_text(state, caller_ptx));
  ok(add_text(state, callee_ptx));
  ok(kiln__cpu_linkComplete(state, &image, &size));
  ck_assert_uint_gt(size, strlen(caller_ptx) + strlen(callee_ptx));
  copy = malloc(size);
  ck_assert_ptr_nonnull(copy);
  memcpy(copy, image, size);
  ok(kiln__cpu_linkDestroy(state));
  ok(kiln__cpu_moduleLoadData(&m, copy));
  free(copy);
  ok(launch(function(m, "calls"), 1, 1, args));
  ok(kiln__cpu_memcpyDtoH(&got, out, 4));
  ck_assert_uint_eq(got, 142);
  is(kiln__cpu_linkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
  ok(kiln__cpu_memFree(out));
}
END_TEST

START_TEST(links_report_what_is_wrong)
{
  char log[1024] = "";
  void *values[] = {log, (void *)sizeof log}, *image;
  CUlinkState state;
  size_t size;

  ok(kiln__cpu_linkCreate(2, options, values, &state));
  is(kiln__cpu_linkComplete(state, &image, &size), CUDA_ERROR_INVALID_IMAGE);
  is(add_text(state, HEAD "oops"), CUDA_ERROR_INVALID_PTX);
  ck_assert_ptr_nonnull(strstr(log, "part"));
  ck_assert_ptr_nonnull(strstr(log, "line 4"));
  is(kiln__cpu_linkAddData(state, CU_JIT_INPUT_CUBIN,
                           (void *)"\177ELF and more than thirty-two bytes", 38,
                           "c", 0, NULL, NULL),
     CUDA_ERROR_NO_BINARY_FOR_GPU);
  is(kiln__cpu_linkAddData(state, 77, (void *)number_ptx, 10, "c", 0, NULL,
                           NULL),
     CUDA_ERROR_INVALID_VALUE);
  is(kiln__cpu_linkAddFile(state, CU_JIT_INPUT_PTX, "/no/such", 0, NULL, NULL),
     CUDA_ERROR_FILE_NOT_FOUND);
  /* Linking must fail because no PTX source defines `twice`. */
  ok(add_text(state, caller_ptx));
  ck_assert_int_ne(kiln__cpu_linkComplete(state, &image, &size), CUDA_SUCCESS);
  ck_assert_msg(strstr(log, "twice") != NULL || strstr(log, "offset") != NULL,
                "%s", log);
  ok(kiln__cpu_linkDestroy(state));
}
END_TEST

/* Adds a damaged library of object files by file name and from memory. The expected
 * result codes were recorded on an H200. */
START_TEST(damaged_libraries_are_refused)
{
  static const char archive[] = "!<arch>\nand nothing that is a member of it";
  char log[1024] = "", dir[256], path[300];
  void *values[] = {log, (void *)sizeof log};
  CUlinkState state;

  test_dir_make(dir);
  kiln__format(path, sizeof path, "%s/lib.a", dir);
  test_write_file(path, archive, sizeof archive);
  ok(kiln__cpu_linkCreate(2, options, values, &state));
  is(kiln__cpu_linkAddFile(state, CU_JIT_INPUT_LIBRARY, path, 0, NULL, NULL),
     CUDA_ERROR_INVALID_IMAGE);
  ck_assert_ptr_nonnull(strstr(log, "library"));
  is(kiln__cpu_linkAddData(state, CU_JIT_INPUT_LIBRARY, (void *)archive,
                           sizeof archive, "lib", 0, NULL, NULL),
     CUDA_ERROR_INVALID_IMAGE);
  is(kiln__cpu_linkAddFile(state, CU_JIT_INPUT_LIBRARY, "/no/such.a", 0, NULL,
                           NULL),
     CUDA_ERROR_FILE_NOT_FOUND);
  is(kiln__cpu_linkAddData(state, CU_JIT_INPUT_NVVM, (void *)archive,
                           sizeof archive, "ir", 0, NULL, NULL),
     CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  ok(kiln__cpu_linkDestroy(state));
  test_dir_remove(dir);
}
END_TEST

/* Imitates the output of nvcc -rdc=true: a wrapper of version 2 with an empty
 * fat binary and a list of the fat binaries of the object files, which have to
 * be linked. */
START_TEST(relocatable_code_is_linked)
{
  static const struct {
    uint32_t magic;
    uint16_t version, head;
    uint64_t size;
  } empty = {0xba55ed50, 1, 16, 0};
  uint8_t caller[4096], callee[4096], machine_code[200] = {0};
  const void *parts[] = {caller, machine_code, callee, NULL};
  const struct {
    uint32_t magic, version;
    const void *data;
    const void *const *parts;
  } wrapper = {0x466243b1, 2, &empty, parts};
  CUdeviceptr out = memory_of(4);
  void *args[] = {&out};
  uint32_t got = 0;
  CUmodule m;

  make_fatbin(caller, sizeof caller, 1, caller_ptx);
  make_fatbin(callee, sizeof callee, 1, callee_ptx);
  make_fatbin(machine_code, sizeof machine_code, 2, "\177ELF");
  m = load((const char *)&wrapper);
  ok(launch(function(m, "calls"), 1, 1, args));
  ok(kiln__cpu_memcpyDtoH(&got, out, 4));
  ck_assert_uint_eq(got, 142);
  ok(kiln__cpu_memFree(out));
}
END_TEST

START_TEST(relocatable_machine_code_is_named)
{
  char log[1024] = "";
  void *values[] = {log, (void *)sizeof log};
  uint8_t machine_code[200] = {0};
  const void *parts[] = {machine_code, NULL};
  const struct {
    uint32_t magic, version;
    const void *data;
    const void *const *parts;
  } wrapper = {0x466243b1, 2, machine_code, parts};
  CUmodule m;

  make_fatbin(machine_code, sizeof machine_code, 2, "\177ELF");
  is(kiln__cpu_moduleLoadDataEx(&m, &wrapper, 2, options, values),
     CUDA_ERROR_NO_BINARY_FOR_GPU);
  ck_assert_ptr_nonnull(strstr(log, "relocatable"));
  ck_assert_ptr_nonnull(strstr(log, "machine code alone"));
}
END_TEST

/* Writes a kernel with 40 registers that are live at once into `text`. The
 * directives follow the parameters. */
static const char *wide_kernel(char *text, size_t size, const char *directives)
{
  size_t n;

  kiln__format(text, size,
               ".version 9.1\n.target sm_70\n.address_size 64\n"
               ".visible .entry wide(.param .u64 p)\n%s\n{\n"
               ".local .align 8 .b8 l[8];\n.reg .b64 %%d;\n"
               ".reg .b32 %%r<41>;\nld.param.u64 %%d, [p];\n"
               "ld.volatile.local.u32 %%r40, [l];\n"
               "st.volatile.local.u32 [l], %%r40;\n",
               directives);
  for (int i = 0; i < 40; i++) {
    n = strlen(text);
    kiln__format(text + n, size - n, "ld.global.u32 %%r%d, [%%d+%d];\n", i,
                 4 * i);
  }
  for (int i = 0; i < 40; i++) {
    n = strlen(text);
    kiln__format(text + n, size - n, "st.global.u32 [%%d+%d], %%r%d;\n",
                 400 - 4 * i, i);
  }
  n = strlen(text);
  kiln__format(text + n, size - n, "ret;\n}\n");
  return text;
}

/* Links a kernel with the option CU_JIT_MAX_REGISTERS, and returns its
 * attribute. The link accepts .version 9.1 in a linked image only. */
static int registers_with(unsigned option, const char *directives)
{
  static char text[16384];
  char *old;
  CUjit_option max = CU_JIT_MAX_REGISTERS;
  void *value = (void *)(uintptr_t)option, *image;
  CUlinkState state;
  CUfunction f;
  CUmodule m;
  size_t size;
  int n;

  wide_kernel(text, sizeof text, directives);
  while ((old = strstr(text, ".volatile")) != NULL) /* new in .version 9.1 */
    memmove(old, old + 9, strlen(old + 9) + 1);
  memcpy(text, ".version 9.0", 12);
  ok(kiln__cpu_linkCreate(option == 0 ? 0 : 1, &max, &value, &state));
  ok(add_text(state, text));
  ok(kiln__cpu_linkComplete(state, &image, &size));
  ok(kiln__cpu_moduleLoadData(&m, image));
  ok(kiln__cpu_moduleGetFunction(&f, m, "wide"));
  n = attribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS);
  ok(kiln__cpu_moduleUnload(m));
  ok(kiln__cpu_linkDestroy(state));
  return n;
}

/* The limits of the option, of .maxnreg and of the launch bounds appear in the
 * attribute. A kernel's own limit precedes the option's. */
START_TEST(registers_are_limited)
{
  ck_assert_int_ge(registers_with(0, ""), 40);
  ck_assert_int_eq(registers_with(24, ""), 24);
  ck_assert_int_eq(registers_with(0, ".maxnreg 32"), 32);
  ck_assert_int_eq(registers_with(24, ".maxnreg 32"), 32);
  ck_assert_int_eq(registers_with(0, ".maxntid 1024\n.minnctapersm 2"), 32);
}
END_TEST

/* PTX 9.1 has volatile accesses to local memory. Only a linked image may be
 * newer than the driver. */
START_TEST(linked_images_may_be_newer)
{
  static char text[16384];
  kiln__cpu_image image = {.alloc = &kiln__cpu_the_machine()->alloc};
  kiln__buf bytes;
  CUmodule m;

  wide_kernel(text, sizeof text, "");
  is(kiln__cpu_moduleLoadData(&m, text), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  kiln__buf_init(&bytes, image.alloc);
  ck_assert(kiln__cpu_image_add(&image, text, strlen(text)));
  kiln__cpu_image_write(&image, &bytes);
  ok(kiln__cpu_moduleLoadData(&m, bytes.data));
  ok(kiln__cpu_moduleUnload(m));
  kiln__buf_free(&bytes);
  kiln__cpu_image_free(&image);
}
END_TEST

/* Each block adds 1 to a counter, waits for the grid, and stores the counter;
 * then it does so again. */
static const char grid_ptx[] =
    HEAD ".extern .func (.param .b64 h) cudaCGGetIntrinsicHandle"
         "(.param .b32 scope);\n"
         ".extern .func (.param .b32 r) cudaCGSynchronize"
         "(.param .b64 h, .param .b32 flags);\n"
         ".visible .entry meet(.param .u64 out)\n{\n"
         "\t.reg .pred %p;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %rd<6>;\n"
         "\tld.param.u64 %rd1, [out];\n\tmov.u32 %r1, %tid.x;\n"
         "\tmov.u32 %r2, %ctaid.x;\n\tmov.u32 %r3, 0;\n"
         "\tmul.wide.u32 %rd2, %r2, 4;\n\tadd.u64 %rd2, %rd2, %rd1;\n"
         "more:\n\tsetp.eq.u32 %p, %r1, 63;\n"
         "\t@%p red.global.add.u32 [%rd1], 1;\n"
         "\t{\n\t.param .b32 scope;\n\t.param .b64 h;\n"
         "\tst.param.b32 [scope], 1;\n"
         "\tcall.uni (h), cudaCGGetIntrinsicHandle, (scope);\n"
         "\tld.param.b64 %rd3, [h];\n\t}\n"
         "\t{\n\t.param .b64 h;\n\t.param .b32 flags;\n\t.param .b32 r;\n"
         "\tst.param.b64 [h], %rd3;\n\tst.param.b32 [flags], 0;\n"
         "\tcall.uni (r), cudaCGSynchronize, (h, flags);\n\t}\n"
         "\tld.volatile.global.u32 %r4, [%rd1];\n"
         "\tst.global.u32 [%rd2+4], %r4;\n"
         "\t{\n\t.param .b64 h;\n\t.param .b32 flags;\n\t.param .b32 r;\n"
         "\tst.param.b64 [h], %rd3;\n\tst.param.b32 [flags], 0;\n"
         "\tcall.uni (r), cudaCGSynchronize, (h, flags);\n\t}\n"
         "\tadd.u32 %r3, %r3, 1;\n\tadd.u64 %rd2, %rd2, 32;\n"
         "\tsetp.lt.u32 %p, %r3, 2;\n\t@%p bra more;\n\tret;\n}\n";

START_TEST(grids_meet_without_the_header)
{
  enum { BLOCKS = 5 };
  CUdeviceptr out = memory_of(80);
  void *args[] = {&out};
  uint32_t got[20];
  CUfunction f;
  CUmodule m;

  ok(kiln__cpu_moduleLoadData(&m, grid_ptx));
  ok(kiln__cpu_moduleGetFunction(&f, m, "meet"));
  ok(kiln__cpu_launchCooperativeKernel(f, BLOCKS, 1, 1, 64, 1, 1, 0, NULL,
                                       args));
  ok(kiln__cpu_memcpyDtoH(got, out, sizeof got));
  for (int i = 0; i < BLOCKS; i++) {
    ck_assert_uint_eq(got[1 + i], BLOCKS);
    ck_assert_uint_eq(got[9 + i], 2 * BLOCKS);
  }
  ok(kiln__cpu_memFree(out));
  ok(kiln__cpu_moduleUnload(m));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_link");

  kiln_test_case(s, "link", 60, setup, teardown,
                 TESTS(libraries_load_into_each_context, libraries_have_globals,
                       parts_are_linked, links_report_what_is_wrong,
                       damaged_libraries_are_refused, registers_are_limited,
                       grids_meet_without_the_header,
                       linked_images_may_be_newer, relocatable_code_is_linked,
                       relocatable_machine_code_is_named));
  return kiln_test_run(s);
}
