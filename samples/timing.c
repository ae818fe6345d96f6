/* timing.c -- measures the time of one kernel in three ways (row A10 of the
 * lectures).
 *
 *   launch only     the host's clock around the launch measures the cost of
 *                   queueing the kernel. The launch returns before the kernel
 *                   ends, so this is not the kernel's time.
 *   synchronised    the host's clock until the device has finished measures the
 *                   kernel and the latency of queueing and waiting.
 *   events          the GPU's clock between two events in the stream measures
 *                   the kernel alone, if the kernel is queued before the GPU
 *                   reaches the first event. The host need not wait in between,
 *                   so each of several kernels can be timed. */
#include "sample.h"

enum { REPEATS = 15 };

typedef struct times {
  double launch, synchronised, events;
  /* The time between the events is at most the host's time around them. */
  bool possible;
} times;

static times measure(kiln_kernel *slow, kiln_event *from, kiln_event *to,
                     CUdeviceptr out, uint32_t iterations)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 1}};
  double begin;
  float ms;
  times t;

  begin = sample_now_ms();
  SAMPLE_TRY(KILN_LAUNCH(slow, &config, KILN_ARG(out), KILN_ARG(iterations)));
  t.launch = sample_now_ms() - begin;
  SAMPLE_TRY(kiln_event_record(to, NULL));
  SAMPLE_TRY(kiln_event_synchronize(to));
  t.synchronised = sample_now_ms() - begin;

  begin = sample_now_ms();
  /* The first launch keeps the GPU busy until the remaining work is queued. */
  SAMPLE_TRY(KILN_LAUNCH(slow, &config, KILN_ARG(out), KILN_ARG(iterations)));
  SAMPLE_TRY(kiln_event_record(from, NULL));
  SAMPLE_TRY(KILN_LAUNCH(slow, &config, KILN_ARG(out), KILN_ARG(iterations)));
  SAMPLE_TRY(kiln_event_record(to, NULL));
  SAMPLE_TRY(kiln_event_synchronize(to));
  SAMPLE_TRY(kiln_event_elapsed(&ms, from, to));
  t.events = (double)ms;
  t.possible = t.events <= sample_now_ms() - begin;
  return t;
}

static times median(kiln_device *device, kiln_kernel *slow, CUdeviceptr out,
                    uint32_t iterations)
{
  double launch[REPEATS], synchronised[REPEATS], events[REPEATS];
  bool possible = true;
  kiln_event *from, *to;

  SAMPLE_TRY(kiln_event_create(&from, device, true));
  SAMPLE_TRY(kiln_event_create(&to, device, true));
  measure(slow, from, to, out, iterations); /* warm up */
  for (int i = 0; i < REPEATS; i++) {
    const times t = measure(slow, from, to, out, iterations);

    launch[i] = t.launch;
    synchronised[i] = t.synchronised;
    events[i] = t.events;
    possible = possible && t.possible;
  }
  kiln_event_free(from);
  kiln_event_free(to);
  return (times){sample_median(launch, REPEATS),
                 sample_median(synchronised, REPEATS),
                 sample_median(events, REPEATS), possible};
}

int main(int argc, char **argv)
{
  static const double wanted_ms[] = {0.02, 0.2, 2, 20};
  const kiln_program_desc program = {.builtin = "slow"};
  kiln_module *module;
  kiln_kernel *slow;
  CUdeviceptr out;
  bool good = true;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&slow, module, "slow"));
  SAMPLE_TRY(kiln_memory_alloc(&out, s.device, sizeof(float)));

  printf("  host, launch only  host, synchronised   GPU events   "
         "host - events\n");
  for (size_t i = 0; i < sizeof wanted_ms / sizeof wanted_ms[0]; i++) {
    const uint32_t iterations = sample_slow(s.device, slow, out, wanted_ms[i]);
    const times t = median(s.device, slow, out, iterations);

    printf("  %14.4f ms  %15.4f ms  %8.4f ms   %7.1f us\n", t.launch,
           t.synchronised, t.events, (t.synchronised - t.events) * 1e3);
    good = good && t.events > 0 && t.possible;
    /* A kernel of at least 2 ms takes much longer than its launch, even on a
     * slow host. */
    if (wanted_ms[i] >= 2)
      good = good && t.launch < 0.5 * t.events;
    /* The two times come from different launches. On the CPU device, other load
     * on the machine may affect either of them. */
    if (!s.on_cpu && wanted_ms[i] >= 2)
      good = good && t.synchronised > 0.98 * t.events;
  }
  printf("The launch costs the same for every kernel. Waiting adds a fixed "
         "time to each,\nwhich events leave out: it matters for short kernels "
         "only.\n");

  SAMPLE_TRY(kiln_memory_free(s.device, out));
  kiln_module_free(module);
  return sample_end(&s, good);
}
