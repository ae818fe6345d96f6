/* api_settings_test.c -- tests the settings of the CPU device, the data that it
 * keeps for reports, the occupancy of every architecture, and functions by name
 * and version. */
#include "support.h"

#include "cpu/api/missing.h"
#include "cpu/api/module/api_module.h"

#include <kiln/arch.h>

#include <string.h>

/* ---- Settings ------------------------------------------------------------ */

static const struct {
  const char *text;
  bool ok;
  kiln_cpu_opts want;
} parses[] = {
    {"cpu", true, {0}},
    {"cpu:9.0", true, {.arch = 90}},
    {"cpu:61", true, {.arch = 61}},
    {"cpu:12.1", true, {.arch = 121}},
    {"cpu:sm_75", true, {.arch = 75}},
    {"cpu,counters", true, {.counters = true}},
    {"cpu:devices=2", true, {.devices = 2}},
    {"cpu:counters,seed=3", true, {.counters = true, .seed = 3}},
    {"cpu,counters=0", true, {0}},
    {"cpu:8.0,threads=2,seed=0x10,check=mem+race,budget=3M,devices=4",
     true,
     {.arch = 80,
      .threads = 2,
      .seed = 16,
      .checks = KILN_CPU_CHECK_MEMORY | KILN_CPU_CHECK_RACE,
      .budget = UINT64_C(3) << 20,
      .devices = 4}},
    {"cpu,check=all", true, {.checks = KILN_CPU_CHECK_ALL}},
    {"cpu,check=init+sync",
     true,
     {.checks = KILN_CPU_CHECK_INIT | KILN_CPU_CHECK_SYNC}},
    {"cpu,check=none", true, {0}},
    {"cpu,schedule=lock-step", true, {.schedule = KILN_CPU_LOCK_STEP}},
    {"cpu,schedule=independent", true, {.schedule = KILN_CPU_INDEPENDENT}},
    {"cpu,memory=2G", true, {.memory_bytes = UINT64_C(2) << 30}},
    {"cpu,seed=18446744073709551615", true, {.seed = UINT64_MAX}},
    {"", false, {0}},
    {"gpu", false, {0}},
    {"cpus", false, {0}},
    {"cpu:", false, {0}},
    {"cpu:9.", false, {0}},
    {"cpu:9.0.1", false, {0}},
    {"cpu:x", false, {0}},
    {"cpu:-1", false, {0}},
    {"cpu:devices=17", false, {0}},
    {"cpu:seed=3,8.0", false, {0}},
    {"cpu,", false, {0}},
    {"cpu,seed", false, {0}},
    {"cpu,seed=", false, {0}},
    {"cpu,seed=18446744073709551616", false, {0}},
    {"cpu,seed=1x", false, {0}},
    {"cpu,threads=auto", true, {.threads = KILN_CPU_THREADS_AUTO}},
    {"cpu,threads=-1", false, {0}},
    {"cpu,threads=100000", false, {0}},
    {"cpu,devices=17", false, {0}},
    {"cpu,check=mem+", false, {0}},
    {"cpu,check=men", false, {0}},
    {"cpu,counters=2", false, {0}},
    {"cpu,budget=99999999999999999999G", false, {0}},
    {"cpu,memory=99999999999G", false, {0}},
    {"cpu,colour=red", false, {0}},
    {"cpu,isa=x86-64-v9", false, {0}},
};

START_TEST(settings_are_read)
{
  kiln_cpu_opts got;
  const kiln_status st = kiln_cpu_parse(&got, parses[_i].text);
  const kiln_cpu_opts *w = &parses[_i].want;

  ck_assert_msg(st == (parses[_i].ok ? KILN_OK : KILN_EINVAL), "%s: %s",
                parses[_i].text, kiln_last_error()->message);
  if (st != KILN_OK) {
    ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "understood"));
    return;
  }
  ck_assert_int_eq(got.arch, w->arch);
  ck_assert_int_eq(got.devices, w->devices);
  ck_assert_int_eq(got.schedule, w->schedule);
  ck_assert_uint_eq(got.threads, w->threads);
  ck_assert_uint_eq(got.seed, w->seed);
  ck_assert_uint_eq(got.checks, w->checks);
  ck_assert_int_eq(got.counters, w->counters);
  ck_assert_uint_eq(got.budget, w->budget);
  ck_assert_uint_eq(got.memory_bytes, w->memory_bytes);
}
END_TEST

static const kiln_cpu_opts refused[] = {
    {.arch = 20},    {.arch = 95},    {.arch = -1},
    {.devices = -1}, {.devices = 17}, {.checks = 16},
    {.isa = "z80"},  {.isa = ""},     {.schedule = (kiln_cpu_schedule)3},
};

START_TEST(settings_are_checked)
{
  ck_kiln_is(kiln_cpu_configure(&refused[_i]), KILN_EINVAL);
  ck_assert_ptr_eq(kiln_cpu_last_error(), kiln_last_error());
}
END_TEST

START_TEST(settings_are_fixed_under_a_context)
{
  const kiln_driver *d = kiln_cpu_driver();
  char isa[] = "base";
  kiln_cpu_opts o = {.arch = 75, .isa = isa};
  CUcontext context;
  int value = 0;

  ck_kiln_ok(kiln_cpu_configure(&o));
  isa[0] = 'x'; /* The call must have copied this string. */
  ck_assert_int_eq(d->init(0), CUDA_SUCCESS);
  ck_assert_int_eq(d->ctxCreate(&context, 0, 0), CUDA_SUCCESS);
  ck_assert_int_eq(d->deviceGetAttribute(
                       &value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
                   CUDA_SUCCESS);
  ck_assert_int_eq(value, 7);
  o.isa = "base";
  o.seed = 3; /* The seed takes effect with the next launch. */
  ck_kiln_ok(kiln_cpu_configure(&o));
  o.arch = 80;
  ck_kiln_is(kiln_cpu_configure(&o), KILN_EUNSUPPORTED);
  ck_assert_int_eq(d->ctxDestroy(context), CUDA_SUCCESS);
  ck_kiln_ok(kiln_cpu_configure(&o));
  ck_kiln_ok(kiln_cpu_configure(NULL));
}
END_TEST

START_TEST(the_table_is_complete)
{
  const kiln_driver *d = kiln_cpu_driver();

#define KILN__DRIVER_FN(name, symbol, need, since, result, params)             \
  ck_assert_msg(d->name != NULL, #name);
#include "driver/driver_api.def"
#undef KILN__DRIVER_FN
  ck_assert(d->ptx_only);
  ck_assert_int_eq(d->version, 13000);
  ck_assert_int_eq(d->kiln_version, KILN_VERSION);
  ck_assert_ptr_eq(d, kiln_cpu_driver());
}
END_TEST

/* ---- Data kept for reports ----------------------------------------------- */

typedef struct seen {
  int n;
  uint64_t count;
  char last[64];
  kiln_cpu_finding finding;
} seen;

static void note(void *user, const kiln_cpu_finding *f)
{
  seen *s = user;

  s->n++;
  s->count += f->count;
  s->finding = *f;
  kiln__copy_text(s->last, sizeof s->last, f->text);
}

START_TEST(findings_are_kept_until_taken)
{
  char kernel[] = "k", text[] = "the text";
  kiln_cpu_finding f = {.check = KILN_CPU_CHECK_RACE,
                        .kind = "race",
                        .kernel = kernel,
                        .function = "k",
                        .file = "a.cu",
                        .line = 3,
                        .ptx_line = 30,
                        .insn = "st.global.u32",
                        .space = "global",
                        .count = 2,
                        .text = text};
  seen s = {0};

  kiln__cpu_keep_finding(NULL, &f);
  kernel[0] = 'x'; /* The finding must contain copies of these strings. */
  text[0] = 'T';
  kernel[0] = 'k';
  /* An equal finding is not stored again; it increments a count. */
  kiln__cpu_keep_finding(NULL, &f);
  f.ptx_line = 31;
  kiln__cpu_keep_finding(NULL, &f);
  f.other = NULL;
  ck_kiln_ok(kiln_cpu_take_findings(note, &s));
  ck_assert_int_eq(s.n, 2);
  ck_assert_uint_eq(s.count, 6);
  ck_assert_str_eq(s.last, "The text");
  s = (seen){0};
  ck_kiln_ok(kiln_cpu_take_findings(note, &s));
  ck_assert_int_eq(s.n, 0);

  ck_kiln_ok(kiln_cpu_on_finding(note, &s));
  kiln__cpu_keep_finding(NULL, &f);
  ck_assert_int_eq(s.n, 1);
  ck_kiln_ok(kiln_cpu_on_finding(NULL, NULL));
  ck_kiln_ok(kiln_cpu_take_findings(note, &s));
  ck_assert_int_eq(s.n, 1);
}
END_TEST

START_TEST(the_last_fault_is_kept)
{
  char buf[32];

  ck_kiln_ok(kiln_cpu_last_fault(buf, sizeof buf));
  ck_assert_str_eq(buf, "");
  kiln__cpu_keep_fault("first", 5);
  kiln__cpu_keep_fault("second one", 6);
  ck_kiln_ok(kiln_cpu_last_fault(buf, sizeof buf));
  ck_assert_str_eq(buf, "second");
  ck_kiln_ok(kiln_cpu_last_fault(buf, 4));
  ck_assert_str_eq(buf, "sec");
  ck_kiln_is(kiln_cpu_last_fault(NULL, 4), KILN_EINVAL);
  ck_kiln_is(kiln_cpu_last_fault(buf, 0), KILN_EINVAL);
}
END_TEST

static void collect(void *user, const char *text, size_t size)
{
  char *to = user;

  ck_assert_uint_lt(strlen(to) + size, 100);
  strncat(to, text, size);
}

START_TEST(printed_text_goes_to_the_callback)
{
  char got[100] = "";

  ck_kiln_ok(kiln_cpu_on_print(collect, got));
  kiln__cpu_print(kiln__cpu_the_machine(), "hello\nrest", 6);
  ck_assert_str_eq(got, "hello\n");
  ck_kiln_ok(kiln_cpu_on_print(NULL, NULL));
}
END_TEST

START_TEST(classes_have_names)
{
  for (unsigned i = 0; i < KILN_CPU_N_CLASSES; i++)
    ck_assert_uint_gt(strlen(kiln_cpu_class_name(i)), 1);
  ck_assert_ptr_null(kiln_cpu_class_name(KILN_CPU_N_CLASSES));
}
END_TEST

START_TEST(names_stay)
{
  char name[] = "variable";
  const char *kept = kiln__cpu_keep_name(name);

  name[0] = 'X';
  ck_assert_str_eq(kept, "variable");
  ck_assert_ptr_eq(kiln__cpu_keep_name("variable"), kept);
  ck_assert_ptr_ne(kiln__cpu_keep_name(name), kept);
}
END_TEST

/* ---- Occupancy, compared with the calculator of the library -------------- */

static const int occupancy_archs[] = {30, 35, 37, 50, 52, 60, 61,  62,  70,
                                      75, 80, 86, 87, 89, 90, 100, 103, 120};

START_TEST(occupancy_agrees_with_the_calculator)
{
  const int arch = occupancy_archs[_i];
  const kiln__cpu_limits *l = kiln__cpu_limits_of(arch);
  kiln_traits traits;
  unsigned not_zero = 0;

  ck_assert_ptr_nonnull(l);
  ck_kiln_ok(kiln_arch_traits(arch, &traits));
  ck_assert_int_eq(l->block_shared_optin, traits.smem_per_block_optin);
  ck_assert_int_eq(l->sm_registers, traits.regs_per_sm);
  for (int block = 1; block <= 1024; block += block < 34 ? 1 : 31) {
    for (unsigned regs = 8; regs <= 255; regs += 13) {
      for (uint32_t smem = 0; smem < 240 * 1024; smem += 7777) {
        /* With this block size, the register limit has no effect. */
        const kiln__cpu_code code = {
            .registers = regs, .max_threads = 1, .static_shared = smem / 3};
        kiln_occupancy_result r;
        int got;

        if ((int)regs > l->thread_registers)
          continue;
        got = kiln__cpu_resident_blocks(l, &code, (uint64_t)block,
                                        smem - smem / 3);
        ck_kiln_ok(kiln_occupancy(&traits, block, (int)regs, smem, &r));
        ck_assert_msg(got == r.blocks_per_sm,
                      "%d: block %d, %u registers, %u bytes: %d, not %d", arch,
                      block, regs, smem, got, r.blocks_per_sm);
        not_zero += got != 0;
      }
    }
  }
  ck_assert_uint_gt(not_zero, 1000);
}
END_TEST

START_TEST(registers_fit_the_largest_block)
{
  const kiln__cpu_limits *l = kiln__cpu_limits_of(90);
  kiln__cpu_code code = {.registers = 500, .max_threads = 1024};

  ck_assert_int_eq(kiln__cpu_function_registers(&code, l), 64);
  code.max_threads = 256;
  ck_assert_int_eq(kiln__cpu_function_registers(&code, l), 255);
  code.registers = 33;
  ck_assert_int_eq(kiln__cpu_function_registers(&code, l), 33);
  code.registers = 0;
  ck_assert_int_eq(kiln__cpu_function_registers(&code, l), 8);
}
END_TEST

/* ---- Driver functions by name -------------------------------------------- */

static const char *const exports[] = {
#define KILN__DRIVER_FN(name, symbol, need, since, result, params) #symbol,
#define KILN__ALIAS_FN(symbol, since, name) #symbol,
#define KILN__MISSING_FN(symbol, since) #symbol,
#include "cpu/api/entry_points.def"
};

static const char *const own_bases[] = {
#define KILN__OWN_BASE(symbol) #symbol,
#include "cpu/api/entry_points.def"
};

/* Computes the name that cuGetProcAddress expects for `symbol`. Returns 2, the
 * flag for per-thread default streams, if `symbol` is the per-thread version of
 * a function, and 0 otherwise. */
static uint64_t base_of(const char *symbol, char *base, size_t size)
{
  const char *form = strstr(symbol, "_pt");
  size_t n = form != NULL ? (size_t)(form - symbol) : strlen(symbol);

  ck_assert_uint_lt(n, size);
  memcpy(base, symbol, n);
  base[n] = '\0';
  for (size_t i = 0; i < sizeof own_bases / sizeof own_bases[0]; i++) {
    if (strcmp(base, own_bases[i]) == 0)
      return form != NULL ? 2 : 0;
  }
  if (base[n - 3] == '_' && base[n - 2] == 'v')
    base[n - 3] = '\0';
  return form != NULL ? 2 : 0;
}

static CUresult ask(const char *name, int version, uint64_t flags, void **fn,
                    int *found)
{
  *fn = (void *)&exports;
  *found = -1;
  return kiln_cpu_driver()->getProcAddressV2(name, fn, version, flags, found);
}

START_TEST(every_export_has_an_address)
{
  const size_t n = sizeof exports / sizeof exports[0];

  ck_assert_uint_ge(n, 600);
  for (size_t i = 0; i < n; i++) {
    char base[80];
    const uint64_t flags = base_of(exports[i], base, sizeof base);
    void *fn, *old;
    int found;
    const CUresult rc = ask(base, 13000, flags, &fn, &found);

    ck_assert_msg(rc == CUDA_SUCCESS && found == 0, "%s: %d", base, rc);
    ck_assert_ptr_nonnull(fn);
    ck_assert_int_eq(
        kiln_cpu_driver()->getProcAddress(base, &old, 13000, flags),
        CUDA_SUCCESS);
    ck_assert_ptr_eq(old, fn);
  }
}
END_TEST

#define FN(name) ((void (*)(void))kiln__cpu_##name)

static const struct {
  const char *name;
  int version;
  uint64_t flags;
  void (*fn)(void);
} by_version[] = {
    {"cuInit", 2000, 0, FN(init)},
    {"cuCtxCreate", 3020, 0, FN(ctxCreate)},
    {"cuCtxCreate", 11030, 0, FN(ctxCreate)},
    {"cuCtxCreate", 11040, 0, FN(ctxCreateV3)},
    {"cuCtxCreate", 12050, 0, FN(ctxCreateV4)},
    {"cuCtxCreate", 13000, 0, FN(ctxCreateV4)},
    {"cuMemAlloc", 12000, 0, FN(memAlloc)},
    {"cuMemAlloc", 12000, 2, FN(memAlloc)},
    {"cuMemAlloc", 2000, 0, FN(missing_cuMemAlloc)},
    {"cuMemAlloc_v2", 12000, 0, FN(memAlloc)},
    {"cuLaunchKernel", 12000, 0, FN(launchKernel)},
    {"cuLaunchKernel", 12000, 1, FN(launchKernel)},
    {"cuLaunchKernel", 12000, 2, FN(launchKernelPerThread)},
    {"cuMemcpyHtoD", 12000, 2, FN(memcpyHtoDPerThread)},
    {"cuMemcpyHtoD", 12000, 0, FN(memcpyHtoD)},
    {"cuStreamBeginCapture", 10000, 0, NULL},
    {"cuStreamBeginCapture", 12000, 0, FN(streamBeginCapture)},
    {"cuGetProcAddress", 11030, 0, FN(getProcAddress)},
    {"cuGetProcAddress", 12000, 0, FN(getProcAddressV2)},
    {"cuGraphInstantiate", 12000, 0, FN(graphInstantiateWithFlags)},
    {"cuGraphInstantiate", 11000, 0, FN(graphInstantiate)},
    {"cuCtxSynchronize", 13000, 0, FN(ctxSynchronize)},
    {"cuDeviceGetUuid", 11000, 0, FN(deviceGetUuidV1)},
    {"cuDeviceGetUuid", 11040, 0, FN(deviceGetUuid)},
    {"cuTensorMapEncodeTiled", 12000, 0, FN(tensorMapEncodeTiled)},
    {"cuCtxDestroy", 2000, 0, FN(ctxDestroy)},
};

START_TEST(the_version_decides)
{
  void *fn;
  void (*got)(void);
  int found;

  ck_assert_msg(ask(by_version[_i].name, by_version[_i].version,
                    by_version[_i].flags, &fn, &found) == CUDA_SUCCESS,
                "%s", by_version[_i].name);
  memcpy(&got, &fn, sizeof got);
  if (by_version[_i].fn != NULL)
    ck_assert_msg(got == by_version[_i].fn, "%s of %d", by_version[_i].name,
                  by_version[_i].version);
}
END_TEST

START_TEST(unknown_names_are_refused)
{
  void *fn;
  int found;

  ck_assert_int_eq(ask("cuNothing", 13000, 0, &fn, &found),
                   CUDA_ERROR_NOT_FOUND);
  ck_assert_int_eq(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  ck_assert_ptr_null(fn);
  ck_assert_int_eq(ask("cuMemAllocAsync", 11010, 0, &fn, &found),
                   CUDA_ERROR_NOT_FOUND);
  ck_assert_int_eq(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  ck_assert_ptr_null(fn);
  ck_assert_int_eq(ask(NULL, 13000, 0, &fn, &found), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(ask("cuInit", 13000, 4, &fn, &found),
                   CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(ask("cuInit", 13000, 3, &fn, &found),
                   CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static unsigned n_missing;

static void note_missing(void *user, const char *symbol, const char *advice,
                         unsigned calls)
{
  (void)user;
  ck_assert_str_eq(symbol, "cuStreamGetGreenCtx");
  ck_assert_str_eq(advice, "");
  n_missing += calls;
}

START_TEST(unsupported_functions_are_counted)
{
  void *fn;
  void (*got)(void);
  int found;

  ck_assert_int_eq(ask("cuStreamGetGreenCtx", 13000, 0, &fn, &found),
                   CUDA_SUCCESS);
  memcpy(&got, &fn, sizeof got);
  ck_assert_int_eq(((CUresult(*)(int, int))got)(1, 2),
                   CUDA_ERROR_NOT_INITIALIZED);
  ck_assert_int_eq(kiln_cpu_driver()->init(0), CUDA_SUCCESS);
  ck_assert_int_eq(((CUresult(*)(int, int))got)(1, 2),
                   CUDA_ERROR_NOT_SUPPORTED);
  n_missing = 0;
  kiln__cpu_each_missing(note_missing, NULL);
  /* A call before cuInit must not be counted as missing. */
  ck_assert_uint_eq(n_missing, 1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu_api_settings");
  TCase *t = kiln_test_case(
      s, "settings", 60, NULL, NULL,
      TESTS(settings_are_fixed_under_a_context, the_table_is_complete,
            findings_are_kept_until_taken, the_last_fault_is_kept,
            printed_text_goes_to_the_callback, classes_have_names, names_stay,
            registers_fit_the_largest_block, every_export_has_an_address,
            unknown_names_are_refused, unsupported_functions_are_counted));

  tcase_add_loop_test(t, settings_are_read, 0, ROWS(parses));
  tcase_add_loop_test(t, settings_are_checked, 0, ROWS(refused));
  tcase_add_loop_test(t, occupancy_agrees_with_the_calculator, 0,
                      ROWS(occupancy_archs));
  tcase_add_loop_test(t, the_version_decides, 0, ROWS(by_version));
  return kiln_test_run(s);
}
