/* errors.c -- shows which kinds of errors occur, which call reports them, and
 * what state they leave behind (row A12 of the lectures).
 *
 *   synchronous   the failing call itself reports the error, and the context
 *                 stays usable
 *   asynchronous  the launch succeeds, and the next call that waits for the
 *                 kernel reports the kernel's failure
 *   sticky        after a kernel failed, every later call in the context fails
 *
 * The last two kinds make the GPU unusable for the rest of the process. They
 * are therefore shown in a second process, which is this program started with
 * --sticky. */
#include "sample.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

static const char store_source[] =
    "extern \"C\" __global__ void store(float *p, float value)\n"
    "{\n"
    "  p[threadIdx.x] = value;\n"
    "}\n";

static const char broken_source[] =
    "extern \"C\" __global__ void store(float *p, float value)\n"
    "{\n"
    "  p[threadIdx.x] = valeu;\n"
    "}\n";

static const kiln_program_desc store_program = {.source = store_source,
                                                .name = "store.cu"};

/* Prints the status that a call returned. Returns true if it is the expected
 * status. */
static bool expect(const char *what, kiln_status got, kiln_status want)
{
  const char *text = got == KILN_OK ? "" : kiln_last_error()->message;

  printf("  %-26s %-15s %s%s\n", what, kiln_status_name(got), text,
         got == want ? "" : "  <-- NOT EXPECTED");
  return got == want && (got == KILN_OK || text[0] != '\0');
}

/* Compiles a program with an error. The log must contain the program's own file
 * name and line number. */
static bool compile_error(sample *s)
{
  const kiln_program_desc broken = {.source = broken_source,
                                    .name = "broken.cu"};
  const char *log;
  kiln_module *module = NULL;

  if (!expect("a misspelt variable",
              kiln_module_load(&module, s->device, &broken), KILN_ECOMPILE))
    return false;
  log = kiln_last_error()->log;
  printf("    %.*s\n", (int)strcspn(log, "\n"), log);
  return strstr(log, "broken.cu(3)") != NULL;
}

static bool wrong_arguments(kiln_kernel *store, CUdeviceptr p)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 32}};
  const double wide = 1;
  bool good;

  good = expect("one argument of two", KILN_LAUNCH(store, &config, KILN_ARG(p)),
                KILN_EARGS);
  return expect("a double for a float",
                KILN_LAUNCH(store, &config, KILN_ARG(p), KILN_ARG(wide)),
                KILN_EARGS) &&
         good;
}

static bool wrong_sizes(sample *s, kiln_kernel *store, CUdeviceptr p)
{
  kiln_launch_config config = {.grid = {.x = 1}};
  const float value = 1;
  CUdeviceptr huge;
  bool good;

  good = expect("a block of no threads",
                KILN_LAUNCH(store, &config, KILN_ARG(p), KILN_ARG(value)),
                KILN_EINVAL);
  config.block.x = 2048;
  good = expect("a block of 2,048 threads",
                KILN_LAUNCH(store, &config, KILN_ARG(p), KILN_ARG(value)),
                KILN_ELIMIT) &&
         good;
  return expect("a petabyte of memory",
                kiln_memory_alloc(&huge, s->device, (size_t)1 << 50),
                KILN_EDEVMEM) &&
         good;
}

/* Launches a correct kernel, to show that the preceding errors left the context
 * usable. */
static bool still_works(sample *s, kiln_kernel *store, CUdeviceptr p)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 32}};
  const float value = 7;
  float back[32] = {0};
  bool good;

  good = expect("a proper launch",
                KILN_LAUNCH(store, &config, KILN_ARG(p), KILN_ARG(value)),
                KILN_OK);
  good = expect("synchronise", kiln_device_synchronize(s->device), KILN_OK) &&
         good;
  SAMPLE_TRY(kiln_copy_to_host(s->device, back, p, sizeof back));
  for (int i = 0; i < 32; i++)
    good = good && back[i] == value;
  return good;
}

/* Runs in the second process: launches one kernel that fails, then makes
 * correct calls, which must fail too. */
static bool asynchronous(sample *s, kiln_kernel *store)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 32}};
  const CUdeviceptr nowhere = 64;
  const float value = 1;
  CUdeviceptr good_memory, other;
  bool good;

  SAMPLE_TRY(kiln_memory_alloc(&good_memory, s->device, 32 * sizeof value));
  printf("\nasynchronous: found by the call that waits\n");
  good = expect("launch with a bad address",
                KILN_LAUNCH(store, &config, KILN_ARG(nowhere), KILN_ARG(value)),
                KILN_OK);
  good =
      expect("synchronise", kiln_device_synchronize(s->device), KILN_ESTICKY) &&
      good;
  printf("    %s gave native code %d; next: %s\n", kiln_last_error()->call,
         kiln_last_error()->native, kiln_last_error()->hint);
  good = good && kiln_last_error()->source == KILN_SOURCE_DRIVER &&
         kiln_last_error()->native != 0;

  printf("\nsticky: the context is lost for everybody\n");
  good = expect("allocate", kiln_memory_alloc(&other, s->device, 4),
                KILN_ESTICKY) &&
         good;
  good = expect("a proper launch",
                KILN_LAUNCH(store, &config, KILN_ARG(good_memory),
                            KILN_ARG(value)),
                KILN_ESTICKY) &&
         good;
  return expect("synchronise again", kiln_device_synchronize(s->device),
                KILN_ESTICKY) &&
         good;
}

static int sticky_process(int argc, char **argv)
{
  kiln_module *module;
  kiln_kernel *store;
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_module_load(&module, s.device, &store_program));
  SAMPLE_TRY(kiln_module_kernel(&store, module, "store"));
  good = asynchronous(&s, store);
  kiln_module_free(module);
  sample_close(&s);
  return good ? 0 : 1;
}

static bool run_sticky_process(char *name)
{
  char flag[] = "--sticky";
  char *const arguments[] = {name, flag, NULL};
  /* Path of this program. It is not /proc/self/exe itself, which refers to
   * valgrind if the sample runs under valgrind. */
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  pid_t child;
  int status;

  path[n > 0 ? n : 0] = '\0';
  fflush(stdout);
  if (posix_spawn(&child, path, NULL, NULL, arguments, environ) != 0 ||
      waitpid(child, &status, 0) != child) {
    perror("errors: second process");
    return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
  kiln_module *module;
  kiln_kernel *store, *none;
  CUdeviceptr p;
  bool good;
  sample s;

  if (argc == 2 && strcmp(argv[1], "--sticky") == 0)
    return sticky_process(1, argv);
  sample_open(&s, argc, argv);
  module = sample_module(&s, &store_program);
  printf("\nsynchronous: the call itself says so\n");
  good = compile_error(&s);
  SAMPLE_TRY(kiln_module_kernel(&store, module, "store"));
  SAMPLE_TRY(kiln_memory_alloc(&p, s.device, 32 * sizeof(float)));
  good = expect("a kernel that is not there",
                kiln_module_kernel(&none, module, "stroe"), KILN_ENOTFOUND) &&
         good;
  good = wrong_arguments(store, p) && good;
  good = wrong_sizes(&s, store, p) && good;
  good = still_works(&s, store, p) && good;

  good = run_sticky_process(argv[0]) && good;
  printf("\nthis process is not affected\n");
  good = still_works(&s, store, p) && good;
  SAMPLE_TRY(kiln_memory_free(s.device, p));
  kiln_module_free(module);
  return sample_end(&s, good);
}
