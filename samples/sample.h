/* sample.h -- functions that the samples share: report a failure and stop, open
 * the GPU or else the CPU device, and load a program.
 *
 * Exit status of every sample: 0 means verified, 1 failed, 2 wrong use, and 77
 * that no compiler is available. */
#ifndef KILN_SAMPLE_H
#define KILN_SAMPLE_H

#include <kiln/cpu.h>
#include <kiln/kiln.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLE_SKIP = 77 };

/* Makes a call that must succeed. If the call fails, prints the complete error
 * record and ends the process. */
#define SAMPLE_TRY(call)                                                       \
  do {                                                                         \
    if ((call) != KILN_OK)                                                     \
      sample_fail(#call, __FILE__, __LINE__);                                  \
  } while (0)

static inline void sample_fail(const char *call, const char *file, int line)
{
  const kiln_error *e = kiln_last_error();

  fflush(stdout);
  fprintf(stderr, "%s:%d: %s\n%s: %s\n", file, line, call,
          kiln_status_name(e->status), e->message);
  if (e->hint[0] != '\0')
    fprintf(stderr, "next: %s\n", e->hint);
  if (e->log[0] != '\0')
    fprintf(stderr, "%s\n", e->log);
  exit(1);
}

/* Works like SAMPLE_TRY() for an operation that may have to compile. Without
 * NVRTC the sample cannot run, so it ends with SAMPLE_SKIP. */
#define SAMPLE_OP(call)                                                        \
  do {                                                                         \
    const kiln_status sample_st_ = (call);                                     \
    if (sample_st_ == KILN_ENONVRTC) {                                         \
      printf("no NVRTC: nothing to compile with; %s\n",                        \
             kiln_last_error()->hint);                                         \
      exit(SAMPLE_SKIP);                                                       \
    }                                                                          \
    if (sample_st_ != KILN_OK)                                                 \
      sample_fail(#call, __FILE__, __LINE__);                                  \
  } while (0)

typedef struct sample {
  const char *name;
  kiln_runtime *rt;
  kiln_device *device;
  bool on_cpu; /* `device` is the CPU device */
  /* True to use few elements and no repeats: on the CPU device, or if
   * KILN_SAMPLE_FEW is set, for tools that make kernels slow. */
  bool few;
  kiln_cpu_opts cpu; /* settings of the CPU device, if it is used */
  int compiled;      /* number of programs that were compiled */
  int cached;        /* number of programs that came from a cache */
} sample;

static inline void sample_usage(const char *name)
{
  fprintf(stderr,
          "usage: %s [--device gpu|cpu|cpu:9.0]\n"
          "  --device  where to run; default: the GPU, else the CPU device\n"
          "            (KILN_DEVICE says it, too)\n",
          name);
  exit(2);
}

static inline const char *sample_arguments(sample *s, int argc, char **argv)
{
  const char *slash = strrchr(argv[0], '/');
  const char *device = getenv("KILN_DEVICE");

  s->name = slash != NULL ? slash + 1 : argv[0];
  for (int i = 1; i < argc; i += 2) {
    if (strcmp(argv[i], "--device") != 0 || i + 1 == argc)
      sample_usage(s->name);
    device = argv[i + 1];
  }
  if (device != NULL && device[0] != '\0' && strcmp(device, "gpu") != 0 &&
      strncmp(device, "cpu", 3) != 0)
    sample_usage(s->name);
  return device != NULL && device[0] != '\0' ? device : NULL;
}

static inline void sample_open_cpu(sample *s, const char *which)
{
  const kiln_runtime_opts opts = {.driver = kiln_cpu_driver()};

  SAMPLE_TRY(kiln_cpu_parse(&s->cpu, which));
  SAMPLE_TRY(kiln_cpu_configure(&s->cpu));
  SAMPLE_TRY(kiln_runtime_create(&s->rt, &opts));
  s->on_cpu = true;
}

/* Returns true if the machine has no driver or no GPU. A driver that fails is
 * an error, and so is a missing driver that KILN_DRIVER names. */
static inline bool sample_no_gpu(sample *s)
{
  kiln_driver_info driver;
  const kiln_status st = kiln_runtime_driver(s->rt, &driver);

  if (st == KILN_ENODEVICE ||
      (st == KILN_ENODRIVER && getenv("KILN_DRIVER") == NULL))
    return true;
  SAMPLE_TRY(st);
  return driver.n_devices == 0;
}

/* Opens the device that the arguments name. By default this is the first GPU.
 * If there is no GPU, it is the CPU device, and a printed line says so. */
static inline void sample_open(sample *s, int argc, char **argv)
{
  const char *which;

  memset(s, 0, sizeof *s);
  which = sample_arguments(s, argc, argv);
  if (which != NULL && strncmp(which, "cpu", 3) == 0) {
    sample_open_cpu(s, which);
  } else {
    SAMPLE_TRY(kiln_runtime_create(&s->rt, NULL));
    if (which == NULL && sample_no_gpu(s)) {
      kiln_runtime_free(s->rt);
      sample_open_cpu(s, "cpu");
      printf("no GPU: running on the CPU device\n");
    }
  }
  s->few = s->on_cpu || getenv("KILN_SAMPLE_FEW") != NULL;
  SAMPLE_TRY(kiln_device_open(&s->device, s->rt, 0, NULL));
}

/* Opens the CPU device with these settings, even if `s` runs on a GPU, for
 * features that only the CPU device has (schedulers, checks, counters). A
 * process has only one CPU device. Before its architecture changes, everything
 * that uses the device must be closed. */
static inline void sample_cpu(sample *out, const sample *s,
                              const kiln_cpu_opts *settings)
{
  const kiln_runtime_opts opts = {.driver = kiln_cpu_driver()};

  memset(out, 0, sizeof *out);
  out->name = s->name;
  out->on_cpu = true;
  out->cpu = *settings;
  SAMPLE_TRY(kiln_cpu_configure(settings));
  SAMPLE_TRY(kiln_runtime_create(&out->rt, &opts));
  SAMPLE_TRY(kiln_device_open(&out->device, out->rt, 0, NULL));
}

/* Prints and counts whether a program was compiled or came from a cache. */
static inline void sample_report(sample *s, const kiln_program_desc *desc,
                                 const kiln_image *image)
{
  const kiln_target target = kiln_image_target(image);
  const kiln_origin origin = kiln_image_origin(image);
  const char *name = desc->builtin != NULL ? desc->builtin : desc->name;
  char text[24];

  printf("%s for %s: ", name != NULL ? name : "program",
         kiln_target_text(&target, text));
  if (origin == KILN_FROM_COMPILER) {
    s->compiled++;
    printf("compiled in %.1f ms\n", kiln_image_compile_ms(image));
  } else {
    s->cached++;
    printf("from the cache (%s)\n", kiln_origin_name(origin));
  }
  fflush(stdout);
}

/* Compiles and loads a program. Returns the module. */
static inline kiln_module *sample_module(sample *s,
                                         const kiln_program_desc *desc)
{
  kiln_module *module = NULL;
  const kiln_status st = kiln_module_load(&module, s->device, desc);

  if (st == KILN_ENONVRTC) {
    printf("no NVRTC: nothing to compile with; %s\n", kiln_last_error()->hint);
    exit(SAMPLE_SKIP);
  }
  SAMPLE_TRY(st);
  sample_report(s, desc, kiln_module_image(module));
  return module;
}

static inline void sample_close(sample *s)
{
  kiln_device_free(s->device);
  kiln_runtime_free(s->rt);
}

static inline void sample_finding(void *user, const kiln_cpu_finding *finding)
{
  printf("%s\n", finding->text);
  *(bool *)user = false;
}

/* Closes the sample. main() returns the value of this function. The caller
 * first frees everything that belongs to the device. If checks are enabled
 * (KILN_DEVICE=cpu,check=all), any finding makes the sample fail. */
static inline int sample_end(sample *s, bool good)
{
  sample_close(s);
  if (s->on_cpu)
    SAMPLE_TRY(kiln_cpu_take_findings(sample_finding, &good));
  printf("%s: %s%s\n", s->name, good ? "verified" : "WRONG RESULT",
         s->compiled > 0 ? " (compiled)"
         : s->cached > 0 ? " (from the cache)"
                         : "");
  return good ? 0 : 1;
}

/* Returns the host's monotonic clock in milliseconds. Only differences are
 * meaningful. */
static inline double sample_now_ms(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline int sample_compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static inline double sample_median(double *values, size_t n)
{
  qsort(values, n, sizeof *values, sample_compare);
  return values[n / 2];
}

/* Returns the number of iterations that keep one thread of the built-in kernel
 * `slow` busy for at least `ms` milliseconds on this GPU. The number is found
 * by doubling. */
static inline uint32_t sample_slow(kiln_device *device, kiln_kernel *slow,
                                   CUdeviceptr out, double ms)
{
  const kiln_launch_config config = {.grid = {.x = 1}, .block = {.x = 1}};
  uint32_t iterations = 1024;

  SAMPLE_TRY(KILN_LAUNCH(slow, &config, KILN_ARG(out), KILN_ARG(iterations)));
  SAMPLE_TRY(kiln_device_synchronize(device)); /* the first launch is slower */
  for (;;) {
    double took = sample_now_ms();

    SAMPLE_TRY(KILN_LAUNCH(slow, &config, KILN_ARG(out), KILN_ARG(iterations)));
    SAMPLE_TRY(kiln_device_synchronize(device));
    took = sample_now_ms() - took;
    if (took >= ms || iterations >= UINT32_MAX / 2)
      return iterations;
    iterations *= 2;
  }
}

/* Function that queues an operation of the library on a stream. */
typedef kiln_status (*sample_op_fn)(kiln_stream *stream, const void *desc);

/* Returns the median time of an operation in milliseconds, measured with
 * events. All kernels of the operation must have been compiled. */
static inline double sample_warm_ms(kiln_device *device, kiln_stream *stream,
                                    sample_op_fn op, const void *desc,
                                    int repeats)
{
  const int n = repeats < 32 ? repeats : 32;
  kiln_event *from, *to;
  double ms[32];
  float one;

  SAMPLE_TRY(kiln_event_create(&from, device, true));
  SAMPLE_TRY(kiln_event_create(&to, device, true));
  for (int i = 0; i < n; i++) {
    SAMPLE_TRY(kiln_event_record(from, stream));
    SAMPLE_TRY(op(stream, desc));
    SAMPLE_TRY(kiln_event_record(to, stream));
    SAMPLE_TRY(kiln_event_synchronize(to));
    SAMPLE_TRY(kiln_event_elapsed(&one, from, to));
    ms[i] = (double)one;
  }
  kiln_event_free(from);
  kiln_event_free(to);
  return sample_median(ms, (size_t)n);
}

/* Like sample_warm_ms(), but calls the operation once before, untimed, which
 * compiles the kernels. */
static inline double sample_op_ms(kiln_stream *stream, sample_op_fn op,
                                  const void *desc, int repeats)
{
  SAMPLE_OP(op(stream, desc));
  return sample_warm_ms(kiln_stream_device(stream), stream, op, desc, repeats);
}

/* Allocates host memory, or ends the process if there is none. */
static inline void *sample_alloc(size_t size)
{
  void *p = malloc(size);

  if (p == NULL) {
    fprintf(stderr, "out of host memory: %zu bytes\n", size);
    exit(1);
  }
  return p;
}

#endif
