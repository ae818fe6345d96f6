/* runtime_cases.c -- loads the runtime library that its argument names, and runs the
 * cases of cases_*.c.
 *
 * usage: runtime_cases LIBRARY [CASE]
 *
 * The parent does not touch CUDA. A child runs the cases in order, and each sticky case
 * runs in a child of its own. If a child dies, the parent reports the case and continues
 * after it. Exits with 1 if a result differs from the documented one. */
#define RUNTIME_CASES_LOADER
#include "cases.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_CASES = 512 };

typedef struct test_case {
  const char *name;
  void (*run)(void);
  int sticky;
} test_case;

/* What the children share with the parent. */
typedef struct progress {
  int next; /* index of the case that runs */
  int calls, differ, missing;
} progress;

static test_case cases[MAX_CASES];
static int n_cases;
static progress *at;
static int missing_call;

char k_fill, k_store, k_trap, k_spin, k_table, v_table, v_const;

/* ---- The functions of the library ---------------------------------------- */

/* Stands for a function that the library does not have. */
static cudaError_t missing(void)
{
  missing_call = 1;
  return cudaErrorUnknown;
}

#define KILN__RT(name, symbol, majors, since, params, args)                    \
  KILN__RT_IN_##majors(cudaError_t(*symbol) params;)
#define KILN__RT_PLAIN(result, name, symbol, majors, since, params, args)      \
  KILN__RT_IN_##majors(result(*symbol) params;)
#define KILN__RT_VOID(name, symbol, majors, since, params, args)               \
  KILN__RT_IN_##majors(void(*symbol) params;)
#include "cpu/cudart/runtime_functions.def"

typedef struct symbol_row {
  const char *name;
  void *pointer; /* address of the function pointer */
} symbol_row;

static const symbol_row symbols[] = {
#define ENTRY(symbol) {#symbol, &symbol},
#define ROW(majors, symbol) KILN__RT_IN_##majors(ENTRY(symbol))
#define KILN__RT(name, symbol, majors, since, params, args) ROW(majors, symbol)
#define KILN__RT_PLAIN(result, name, symbol, majors, since, params, args)      \
  ROW(majors, symbol)
#define KILN__RT_VOID(name, symbol, majors, since, params, args)               \
  ROW(majors, symbol)
#include "cpu/cudart/runtime_functions.def"
};

static int load(const char *path)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

  if (library == NULL) {
    fprintf(stderr, "runtime_cases: %s\n", dlerror());
    return -1;
  }
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *found = dlsym(library, symbols[i].name);
    cudaError_t (*none)(void) = missing;

    if (found == NULL)
      memcpy(symbols[i].pointer, &none, sizeof none);
    else
      memcpy(symbols[i].pointer, &found, sizeof found);
  }
  return 0;
}

/* ---- Kernels --------------------------------------------------------------- */

static const char ptx[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .global .align 4 .b32 v_table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
    ".visible .const .align 4 .b32 v_const[4] = {10, 20, 30, 40};\n"
    ".visible .entry k_fill(.param .u64 p, .param .u32 v)\n{\n"
    " .reg .b32 %r<6>;\n .reg .b64 %d<3>;\n"
    " ld.param.u64 %d1, [p];\n ld.param.u32 %r1, [v];\n"
    " mov.u32 %r2, %tid.x;\n mov.u32 %r3, %ctaid.x;\n mov.u32 %r4, %ntid.x;\n"
    " mad.lo.s32 %r5, %r3, %r4, %r2;\n mul.wide.u32 %d2, %r5, 4;\n"
    " add.s64 %d1, %d1, %d2;\n st.global.u32 [%d1], %r1;\n ret;\n}\n"
    ".visible .entry k_store(.param .u64 p)\n{\n .reg .b64 %d<2>;\n"
    " ld.param.u64 %d1, [p];\n st.global.u32 [%d1], 1;\n ret;\n}\n"
    ".visible .entry k_trap()\n{\n trap;\n ret;\n}\n"
    ".visible .entry k_spin()\n{\n ret;\n}\n"
    ".visible .entry k_table(.param .u64 p)\n{\n"
    " .reg .b32 %r<3>;\n .reg .b64 %d<4>;\n ld.param.u64 %d1, [p];\n"
    " mov.u32 %r1, %tid.x;\n mul.wide.u32 %d2, %r1, 4;\n"
    " mov.u64 %d3, v_table;\n add.s64 %d3, %d3, %d2;\n"
    " ld.global.u32 %r2, [%d3];\n add.s64 %d1, %d1, %d2;\n"
    " st.global.u32 [%d1], %r2;\n ret;\n}\n";

/* A fat binary with one PTX text that is not compressed. */
static void *fat_binary(void)
{
  static struct {
    uint32_t magic, version;
    void *data, *unused;
  } wrapper = {.magic = 0x466243b1, .version = 1};
  static struct {
    uint32_t magic;
    uint16_t version, head_size;
    uint64_t size;
    uint16_t kind, kind_version;
    uint32_t entry_head;
    uint64_t entry_size;
    uint32_t packed_size, options;
    uint16_t minor, major;
    uint32_t architecture, object_name, object_size;
    uint64_t flags, zero[2], options_text, no_options;
    char text[(sizeof ptx + 7) / 8 * 8];
  } image = {.magic = 0xba55ed50,
             .version = 1,
             .head_size = 16,
             .size = sizeof image - 16,
             .kind = 1,
             .kind_version = 0x0101,
             .entry_head = 80,
             .entry_size = sizeof image.text,
             .options = 64,
             .major = 7,
             .architecture = 52,
             .flags = 0x11,
             .options_text = 72};

  memcpy(image.text, ptx, sizeof ptx);
  wrapper.data = &image;
  return &wrapper;
}

static void register_code(void)
{
  static const struct {
    char *host;
    const char *name;
  } kernels[] = {{&k_fill, "k_fill"},
                 {&k_store, "k_store"},
                 {&k_trap, "k_trap"},
                 {&k_spin, "k_spin"},
                 {&k_table, "k_table"}};
  /* NVIDIA's runtime keeps the pointers to the names and reads them at the first launch. */
  static char names[sizeof kernels / sizeof *kernels][16];
  static char table[] = "v_table", constant[] = "v_const";
  void **image = __cudaRegisterFatBinary(fat_binary());

  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    snprintf(names[i], sizeof names[i], "%s", kernels[i].name);
    __cudaRegisterFunction(image, kernels[i].host, names[i], kernels[i].name,
                           -1, NULL, NULL, NULL, NULL, NULL);
  }
  __cudaRegisterVar(image, &v_table, table, "v_table", 0, 32, 0, 0);
  __cudaRegisterVar(image, &v_const, constant, "v_const", 0, 16, 1, 0);
  __cudaRegisterFatBinaryEnd(image);
}

cudaError_t launch(const void *kernel, unsigned threads, void **args,
                   cudaStream_t stream)
{
  return cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){threads, 1, 1}, args,
                          0, stream);
}

cudaError_t fill(int *p, int v, dim3 grid, dim3 block, cudaStream_t stream)
{
  void *args[] = {&p, &v};

  return cudaLaunchKernel(&k_fill, grid, block, args, 0, stream);
}

/* ---- Checks ---------------------------------------------------------------- */

void check_call(const char *text, int want, cudaError_t got)
{
  const char *note = "";

  at->calls++;
  if (missing_call) {
    note = "  [missing]";
    at->missing++;
    missing_call = 0;
  } else if (want != ANY && want != got) {
    note = "  [differs from the documentation]";
    at->differ++;
  }
  printf("  %s = %s (%d)%s\n", text, cudaGetErrorName(got), got, note);
  if (*note)
    fprintf(stderr, "%s: %s = %s (%d)%s\n", cases[at->next].name, text,
            cudaGetErrorName(got), got, note);
}

void check_value(const char *text, long long want, long long got)
{
  printf("  %s: %lld\n", text, got);
  if (want == got)
    return;
  at->differ++;
  fprintf(stderr, "%s: %s is %lld, not %lld\n", cases[at->next].name, text, got,
          want);
}

void add_case(const char *name, void (*run)(void), int sticky)
{
  if (n_cases == MAX_CASES)
    abort();
  cases[n_cases++] = (test_case){name, run, sticky};
}

/* ---- Processes --------------------------------------------------------------- */

/* Runs cases from at->next on: one sticky case, or all until the next sticky one. */
static void run_cases(const char *library, int only)
{
  if (load(library) != 0)
    _exit(2);
  register_code();
  do {
    const test_case *c = &cases[at->next];

    printf("case %s\n", c->name);
    c->run();
    if (!c->sticky)
      cudaGetLastError();
    fflush(stdout);
    at->next++;
  } while (!only && at->next < n_cases && !cases[at->next].sticky &&
           !cases[at->next - 1].sticky);
  _exit(0);
}

/* Runs a child; returns its exit status, or 128 plus the signal that ended it. */
static int run_child(const char *library, int only)
{
  int status = 0;
  pid_t pid;

  fflush(stdout);
  pid = fork();
  if (pid == 0)
    run_cases(library, only);
  if (pid < 0 || waitpid(pid, &status, 0) < 0)
    return 2;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
  const char *only = argc > 2 ? argv[2] : NULL;

  if (argc < 2) {
    fprintf(stderr, "usage: runtime_cases LIBRARY [CASE]\n");
    return 2;
  }
  at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE,
            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    return 2;
  while (at->next < n_cases) {
    int rc;

    if (only != NULL && strcmp(cases[at->next].name, only) != 0) {
      at->next++;
      continue;
    }
    rc = run_child(argv[1], only != NULL);
    if (rc == 2)
      return 2;
    if (rc != 0) {
      printf("case %s ended with status %d\n", cases[at->next].name, rc);
      fprintf(stderr, "case %s ended with status %d\n", cases[at->next].name,
              rc);
      at->differ++;
      at->next++;
    }
  }
  printf("%d cases, %d calls\n", n_cases, at->calls);
  fprintf(stderr, "%d cases, %d calls, %d differ, %d missing\n", n_cases,
          at->calls, at->differ, at->missing);
  return at->differ != 0 || at->missing != 0;
}
