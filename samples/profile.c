/* profile.c -- what ran when, and where the time went (rows A14 and C5 of the
 * lectures).
 *
 * The program sends an array in pieces to the device, works on each piece, and
 * fetches it. First everything is in one stream, so copies and kernels take
 * turns. Then three streams take the pieces in turn, so copies run behind
 * kernels. A timeline records the spans. The summary adds them up per name, as
 * profilers do, and the difference between the sum and the busy time is the work
 * that overlapped.
 *
 * `kiln profile` shows the same of any program, with all of its calls:
 *   kiln profile -o trace.json --html page.html -- samples/profile */
#include "sample.h"

enum { PIECES = 6, STREAMS = 3, MOST_NAMES = 8, MOST_SPANS = 6 * PIECES };

static const char source[] =
    "extern \"C\" __global__ void work(float *x, int n, int rounds)\n"
    "{\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) {\n"
    "    float v = x[i];\n"
    "    for (int k = 0; k < rounds; k++)\n"
    "      v = v * 0.5f + 1.0f;\n"
    "    x[i] = v;\n"
    "  }\n"
    "}\n";

/* The spans of one run. */
typedef struct profile {
  int n;
  struct {
    char name[64];
    double begin, end;
  } span[MOST_SPANS];
} profile;

static void add_span(void *user, const kiln_span *span)
{
  profile *p = user;

  if (span->row == 0 || p->n == MOST_SPANS)
    return;
  snprintf(p->span[p->n].name, sizeof p->span[p->n].name, "%s", span->name);
  p->span[p->n].begin = span->begin_us;
  p->span[p->n++].end = span->end_us;
}

/* Prints calls, total, mean and share per name. */
static void print_names(const profile *p, double sum)
{
  bool done[MOST_SPANS] = {false};

  printf("  %-18s calls   total us    mean us  share\n", "name");
  for (int i = 0; i < p->n; i++) {
    double total = 0;
    int calls = 0;

    for (int k = i; k < p->n && !done[i]; k++) {
      if (strcmp(p->span[k].name, p->span[i].name) != 0)
        continue;
      total += p->span[k].end - p->span[k].begin;
      calls++;
      done[k] = k > i;
    }
    if (calls > 0)
      printf("  %-18s %5d %10.1f %10.1f %5.1f %%\n", p->span[i].name, calls,
             total, total / calls, 100 * total / sum);
  }
}

/* Prints the summary. The spans are in the order of their begins, so the union of
 * the intervals is the busy time. Returns the time in which at least two spans
 * ran, in microseconds. */
static double summary(const char *title, const profile *p)
{
  double sum = 0, busy = 0, end = 0;

  for (int i = 0; i < p->n; i++) {
    const double from = p->span[i].begin > end ? p->span[i].begin : end;

    sum += p->span[i].end - p->span[i].begin;
    if (p->span[i].end > from)
      busy += p->span[i].end - from;
    if (p->span[i].end > end)
      end = p->span[i].end;
  }
  printf("%s: %.1f us from first to last, busy %.1f us, sum %.1f us\n", title,
         p->n > 0 ? end - p->span[0].begin : 0, busy, sum);
  print_names(p, sum);
  return sum - busy;
}

/* Sends, works on and fetches all pieces, with piece i in streams[i % n]. */
static void run(sample *s, kiln_kernel *work, CUdeviceptr device, float *host,
                int32_t piece, int32_t rounds, kiln_stream *const *streams,
                int n)
{
  const size_t bytes = (size_t)piece * sizeof(float);

  for (int i = 0; i < PIECES; i++) {
    const CUdeviceptr x = device + (CUdeviceptr)i * bytes;
    const kiln_launch_config config = {
        .grid = {.x = (uint32_t)(piece + 255) / 256},
        .block = {.x = 256},
        .stream = streams[i % n]};
    float *mine = host + (size_t)i * (size_t)piece;

    SAMPLE_TRY(kiln_copy_to_device_async(streams[i % n], x, mine, bytes));
    SAMPLE_TRY(KILN_LAUNCH(work, &config, KILN_ARG(x), KILN_ARG(piece),
                           KILN_ARG(rounds)));
    SAMPLE_TRY(kiln_copy_to_host_async(streams[i % n], mine, x, bytes));
  }
  SAMPLE_TRY(kiln_device_synchronize(s->device));
}

/* Runs with `n` streams, records a timeline, and writes it to `trace`. */
static void record(sample *s, kiln_kernel *work, CUdeviceptr device,
                   float *host, int32_t piece, int n, const char *trace,
                   profile *p)
{
  kiln_stream *streams[STREAMS];
  kiln_timeline *timeline;
  const int32_t rounds = s->few ? 4 : 2000;

  SAMPLE_TRY(kiln_timeline_create(&timeline, s->device));
  for (int i = 0; i < n; i++) {
    SAMPLE_TRY(kiln_stream_create(&streams[i], s->device, NULL));
    SAMPLE_TRY(kiln_stream_attach(streams[i], timeline));
  }
  run(s, work, device, host, piece, rounds, streams, n);
  SAMPLE_TRY(kiln_timeline_each(timeline, add_span, p));
  SAMPLE_TRY(kiln_timeline_write(timeline, trace));
  for (int i = 0; i < n; i++) {
    SAMPLE_TRY(kiln_stream_attach(streams[i], NULL));
    kiln_stream_free(streams[i]);
  }
  kiln_timeline_free(timeline);
}

/* Returns whether the work of both runs was done: v = v / 2 + 1 moves every
 * value to 2. */
static bool right(const float *host, size_t n, bool few)
{
  const double limit = few ? 2.0 / 256 : 1e-6;

  for (size_t i = 0; i < n; i++) {
    if (host[i] < 2 - limit || host[i] > 2 + limit)
      return false;
  }
  return true;
}

static bool compare(sample *s, kiln_kernel *work, const char *trace)
{
  const int32_t piece = s->few ? 1 << 12 : 1 << 22;
  const size_t n = (size_t)piece * PIECES;
  profile one = {0}, several = {0};
  double overlap;
  CUdeviceptr device;
  float *host;
  bool good;

  SAMPLE_TRY(kiln_memory_alloc(&device, s->device, n * sizeof(float)));
  SAMPLE_TRY(kiln_host_alloc((void **)&host, s->device, n * sizeof(float)));
  for (size_t i = 0; i < n; i++)
    host[i] = (float)(i % 5);
  record(s, work, device, host, piece, 1, trace, &one);
  (void)summary("one stream", &one);
  record(s, work, device, host, piece, STREAMS, trace, &several);
  overlap = summary("three streams", &several);
  printf("%.1f us of the copies and kernels ran at the same time\n"
         "timeline written to %s; kiln profile --from FILE --html page.html "
         "shows it\n",
         overlap, trace);
  good = right(host, n, s->few) && one.n == 3 * PIECES &&
         several.n == 3 * PIECES && (s->on_cpu || overlap > 0);
  SAMPLE_TRY(kiln_host_free(s->device, host));
  SAMPLE_TRY(kiln_memory_free(s->device, device));
  return good;
}

int main(int argc, char **argv)
{
  const kiln_program_desc program = {.name = "profile", .source = source};
  kiln_device_info info;
  kiln_module *module;
  kiln_kernel *work;
  char trace[1024];
  bool good;
  sample s;

  sample_open(&s, argc, argv);
  SAMPLE_TRY(kiln_device_describe(s.device, &info));
  /* Under `kiln profile`, the CPU device looks like a GPU. */
  s.on_cpu = s.on_cpu || strncmp(info.name, "Kiln CPU", 8) == 0;
  s.few = s.few || s.on_cpu;
  module = sample_module(&s, &program);
  SAMPLE_TRY(kiln_module_kernel(&work, module, "work"));
  snprintf(trace, sizeof trace, "%s_trace.json", argv[0]); /* beside us */
  good = compare(&s, work, trace);
  kiln_module_free(module);
  return sample_end(&s, good);
}
