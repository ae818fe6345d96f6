/* scheduling.c -- how a warp executes two branches before and since Volta (row
 * A5 of the lectures).
 *
 *   if (lane < 2) { A; B; } else { X; Y; }  Z;
 *
 * In lock-step, one branch runs to its end before the other starts: A B X Y or
 * X Y A B. With independent thread scheduling (Volta and later), the branches
 * may interleave. Therefore two branches that wait for each other finish with
 * independent thread scheduling, and hang in lock-step. The CPU device
 * simulates both schedules and reports the deadlock. */
#include "sample.h"

static const char source[] =
    "extern \"C\" __global__ void branches(char *log, unsigned *n)\n"
    "{\n"
    "  const bool first = threadIdx.x % 4 == 0;\n"
    "  if (threadIdx.x < 2) {\n"
    "    if (first) log[atomicAdd(n, 1u)] = 'A';\n"
    "    if (first) log[atomicAdd(n, 1u)] = 'B';\n"
    "  } else {\n"
    "    if (first) log[atomicAdd(n, 1u)] = 'X';\n"
    "    if (first) log[atomicAdd(n, 1u)] = 'Y';\n"
    "  }\n"
    "  if (threadIdx.x == 0) log[atomicAdd(n, 1u)] = 'Z';\n"
    "}\n"
    "extern \"C\" __global__ void meet(volatile int *flag, int *done)\n"
    "{\n"
    "  if (threadIdx.x == 0) {\n"
    "    flag[0] = 1;\n"
    "    while (flag[1] == 0) { } /* for the other branch */\n"
    "    atomicAdd(done, 1);\n"
    "  } else {\n"
    "    while (flag[0] == 0) { }\n"
    "    flag[1] = 1;\n"
    "    atomicAdd(done, 1);\n"
    "  }\n"
    "}\n";

static const kiln_program_desc program = {.source = source,
                                          .name = "scheduling.cu"};

/* Prints the order in which the two branches executed their statements. Returns
 * true if the order is possible. */
static bool branch_order(sample *s, kiln_module *module, const char *what)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 8}};
  char log[9] = "";
  kiln_kernel *branches;
  CUdeviceptr order, n;

  SAMPLE_TRY(kiln_module_kernel(&branches, module, "branches"));
  SAMPLE_TRY(kiln_memory_alloc(&order, s->device, 8));
  SAMPLE_TRY(kiln_memory_alloc(&n, s->device, 4));
  SAMPLE_TRY(kiln_fill(s->device, order, 0, 1, 8));
  SAMPLE_TRY(kiln_fill(s->device, n, 0, 4, 1));
  SAMPLE_TRY(KILN_LAUNCH(branches, &config, KILN_ARG(order), KILN_ARG(n)));
  SAMPLE_TRY(kiln_copy_to_host(s->device, log, order, 8));
  SAMPLE_TRY(kiln_memory_free(s->device, order));
  SAMPLE_TRY(kiln_memory_free(s->device, n));
  printf("  %-36s %s\n", what, log);
  return strlen(log) == 5 && strchr(log, 'A') < strchr(log, 'B') &&
         strchr(log, 'X') < strchr(log, 'Y');
}

/* Runs two branches that wait for each other. Returns KILN_OK if both finished,
 * otherwise the status of the failure. */
static kiln_status meet(sample *s, kiln_module *module)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 2}};
  kiln_kernel *kernel;
  CUdeviceptr flags, done;
  kiln_status st;
  int count = 0;

  SAMPLE_TRY(kiln_module_kernel(&kernel, module, "meet"));
  SAMPLE_TRY(kiln_memory_alloc(&flags, s->device, 8));
  SAMPLE_TRY(kiln_memory_alloc(&done, s->device, 4));
  SAMPLE_TRY(kiln_fill(s->device, flags, 0, 4, 2));
  SAMPLE_TRY(kiln_fill(s->device, done, 0, 4, 1));
  SAMPLE_TRY(KILN_LAUNCH(kernel, &config, KILN_ARG(flags), KILN_ARG(done)));
  st = kiln_device_synchronize(s->device);
  if (st != KILN_OK)
    return st; /* the failure destroyed the context and its memory */
  SAMPLE_TRY(kiln_copy_to_host(s->device, &count, done, sizeof count));
  SAMPLE_TRY(kiln_memory_free(s->device, flags));
  SAMPLE_TRY(kiln_memory_free(s->device, done));
  return count == 2 ? KILN_OK : KILN_EDRIVER;
}

static bool play(const sample *s, kiln_cpu_schedule schedule, uint64_t seed)
{
  const kiln_cpu_opts cpu = {.schedule = schedule, .seed = seed};
  const bool lock_step = schedule == KILN_CPU_LOCK_STEP;
  char what[64], text[4096] = "";
  kiln_module *module;
  kiln_status st;
  sample played;
  bool good;

  sample_cpu(&played, s, &cpu);
  SAMPLE_TRY(kiln_module_load(&module, played.device, &program));
  snprintf(what, sizeof what, "%s%s%.0d",
           lock_step ? "lock-step" : "independent threads",
           seed != 0 ? ", seed " : "", (int)seed);
  good = branch_order(&played, module, what);
  st = meet(&played, module);
  if (lock_step) {
    SAMPLE_TRY(kiln_cpu_last_fault(text, sizeof text));
    printf("    two branches that wait for each other: %s\n%s\n",
           st == KILN_ESTICKY ? "deadlock, found" : "NOT FOUND", text);
    good = good && st == KILN_ESTICKY && strstr(text, "meet") != NULL;
  } else {
    printf("    two branches that wait for each other: %s\n",
           st == KILN_OK ? "both finish" : "THEY HANG");
    good = good && st == KILN_OK;
  }
  kiln_module_free(module);
  sample_close(&played);
  return good;
}

int main(int argc, char **argv)
{
  kiln_module *module;
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  printf("order of A B | X Y and Z:\n");
  if (!s.on_cpu) {
    good = branch_order(&s, module, "this GPU");
    if (kiln_device_traits(s.device)->has_its)
      good = meet(&s, module) == KILN_OK && good;
  }
  kiln_module_free(module);
  /* Free the only CPU device, so that its settings can change. */
  if (s.on_cpu) {
    kiln_device_free(s.device);
    s.device = NULL;
  }
  good = play(&s, KILN_CPU_INDEPENDENT, 0) && good;
  good = play(&s, KILN_CPU_INDEPENDENT, 3) && good;
  good = play(&s, KILN_CPU_LOCK_STEP, 0) && good;
  return sample_end(&s, good);
}
