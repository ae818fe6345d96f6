/* streams.c -- runs five slow kernels in one stream, and then in five streams
 * (row A11 of the lectures).
 *
 * Kernels in one stream run one after the other. Kernels in different streams
 * may run concurrently. Each kernel has one thread, so five of them fit on any
 * GPU, and five streams take a fifth of the time. The sample draws the timeline
 * and also writes it to a file for chrome://tracing or ui.perfetto.dev. */
#include "sample.h"

enum { KERNELS = 5, WIDTH = 60, ROWS = KERNELS + 2, SPANS = 2 * KERNELS };

/* The spans of the timeline, by row, for drawing. */
typedef struct picture {
  double begin[ROWS][SPANS], end[ROWS][SPANS];
  int spans[ROWS];
  double first, last;
} picture;

static void add_span(void *user, const kiln_span *span)
{
  picture *p = user;
  const int row = span->row;

  if (row < 1 || row >= ROWS || p->spans[row] == SPANS)
    return;
  if (p->first < 0 || span->begin_us < p->first)
    p->first = span->begin_us;
  if (span->end_us > p->last)
    p->last = span->end_us;
  p->begin[row][p->spans[row]] = span->begin_us;
  p->end[row][p->spans[row]] = span->end_us;
  p->spans[row]++;
}

/* Draws one line per stream, with one character per kernel. */
static void draw(const picture *p)
{
  const double scale = WIDTH / (p->last - p->first);

  for (int row = 1; row < ROWS; row++) {
    char line[WIDTH + 1];

    memset(line, '.', WIDTH);
    line[WIDTH] = '\0';
    for (int i = 0; i < p->spans[row]; i++) {
      const int from = (int)((p->begin[row][i] - p->first) * scale);
      int to = (int)((p->end[row][i] - p->first) * scale);

      if (to > WIDTH)
        to = WIDTH;
      for (int x = from; x < to; x++)
        line[x] = (char)('A' + i);
    }
    printf("  stream %d |%s|\n", row, line);
  }
  printf("           0 %*.1f ms\n", WIDTH - 2, (p->last - p->first) / 1e3);
}

/* Queues the kernels and waits for all of them. Kernel i runs in streams[i %
 * n]. Returns the time in milliseconds. */
static double run(kiln_device *device, kiln_kernel *slow, CUdeviceptr out,
                  uint32_t iterations, kiln_stream *const *streams, int n)
{
  double begin = sample_now_ms();

  for (int i = 0; i < KERNELS; i++) {
    const kiln_launch_config config = {
        .grid = {.x = 1}, .block = {.x = 1}, .stream = streams[i % n]};
    const CUdeviceptr mine = out + (CUdeviceptr)i * sizeof(float);

    SAMPLE_TRY(
        KILN_LAUNCH(slow, &config, KILN_ARG(mine), KILN_ARG(iterations)));
  }
  SAMPLE_TRY(kiln_device_synchronize(device));
  return sample_now_ms() - begin;
}

/* Checks that no two kernels in the single stream overlap, except by a few
 * microseconds of clock error, and that all kernels in the five streams
 * overlap. */
static bool check(const picture *p)
{
  double last_begin = p->begin[2][0], first_end = p->end[2][0];

  for (int i = 1; i < p->spans[1]; i++) {
    if (p->begin[1][i] < p->end[1][i - 1] - 5)
      return false;
  }
  for (int row = 2; row < ROWS; row++) {
    if (p->spans[row] != 1)
      return false;
    if (p->begin[row][0] > last_begin)
      last_begin = p->begin[row][0];
    if (p->end[row][0] < first_end)
      first_end = p->end[row][0];
  }
  return p->spans[1] == KERNELS && last_begin < first_end;
}

static bool compare(sample *s, kiln_kernel *slow, const char *trace)
{
  picture p = {.first = -1};
  kiln_stream *streams[1 + KERNELS];
  kiln_timeline *timeline;
  kiln_device_info info;
  double sequential, overlapped;
  uint32_t iterations;
  CUdeviceptr out;

  SAMPLE_TRY(kiln_device_describe(s->device, &info));
  SAMPLE_TRY(kiln_memory_alloc(&out, s->device, KERNELS * sizeof(float)));
  iterations = sample_slow(s->device, slow, out, 20);
  SAMPLE_TRY(kiln_timeline_create(&timeline, s->device));
  for (int i = 0; i < 1 + KERNELS; i++) {
    SAMPLE_TRY(kiln_stream_create(&streams[i], s->device, NULL));
    SAMPLE_TRY(kiln_stream_attach(streams[i], timeline));
  }

  sequential = run(s->device, slow, out, iterations, streams, 1);
  overlapped = run(s->device, slow, out, iterations, streams + 1, KERNELS);
  SAMPLE_TRY(kiln_timeline_each(timeline, add_span, &p));
  SAMPLE_TRY(kiln_timeline_write(timeline, trace));

  draw(&p);
  printf("one stream %.1f ms, five streams %.1f ms: %.2f to 1\n"
         "timeline written to %s\n",
         sequential, overlapped, sequential / overlapped, trace);
  for (int i = 0; i < 1 + KERNELS; i++) {
    SAMPLE_TRY(kiln_stream_attach(streams[i], NULL));
    kiln_stream_free(streams[i]);
  }
  kiln_timeline_free(timeline);
  SAMPLE_TRY(kiln_memory_free(s->device, out));
  if (!info.concurrent_kernels)
    printf("this GPU runs one kernel at a time\n");
  if (s->on_cpu)
    printf("the CPU device: kernels share the host's cores, so less is won\n");
  return !info.concurrent_kernels ||
         (check(&p) && (s->on_cpu || sequential > 4 * overlapped));
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.builtin = "slow"};
  kiln_module *module;
  kiln_kernel *slow;
  char trace[1024];
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&slow, module, "slow"));
  snprintf(trace, sizeof trace, "%s_trace.json", argv[0]); /* beside us */
  good = compare(&s, slow, trace);
  kiln_module_free(module);
  return sample_end(&s, good);
}
