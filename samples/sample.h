/* sample.h -- what the samples share: report a failure and stop, find the GPU,
 * get a program for it, and say in one line what is missing without one.
 *
 * Exit status of every sample: 0 verified, 1 failed, 2 wrong use, 77 no GPU. */
#ifndef KILN_SAMPLE_H
#define KILN_SAMPLE_H

#include <kiln/kiln.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLE_SKIP = 77 };

/* A call that has to succeed: otherwise print the whole record and stop. */
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

typedef struct sample {
  const char *name;
  kiln_runtime *rt;
  kiln_device *device; /* NULL: there is no GPU */
  kiln_status missing; /* why not */
  kiln_target target;  /* what to compile for then */
  int compiled;        /* programs that the compiler made */
  int cached;          /* programs that a cache had */
} sample;

static inline void sample_usage(const char *name)
{
  fprintf(stderr,
          "usage: %s [--arch sm_90]\n"
          "  --arch  what to compile for where there is no GPU\n",
          name);
  exit(2);
}

static inline void sample_arguments(sample *s, int argc, char **argv)
{
  const char *slash = strrchr(argv[0], '/');

  s->name = slash != NULL ? slash + 1 : argv[0];
  s->target = (kiln_target){.cc = 90};
  for (int i = 1; i < argc; i += 2) {
    if (strcmp(argv[i], "--arch") != 0 || i + 1 == argc ||
        kiln_target_parse(&s->target, argv[i + 1]) != KILN_OK)
      sample_usage(s->name);
  }
}

/* Find the first GPU. Neither a driver nor a GPU is no failure; a driver that
 * fails is, or one that KILN_DRIVER names and that is not there. */
static inline void sample_open(sample *s, int argc, char **argv)
{
  kiln_driver_info driver;

  memset(s, 0, sizeof *s);
  sample_arguments(s, argc, argv);
  SAMPLE_TRY(kiln_runtime_create(&s->rt, NULL));
  s->missing = kiln_runtime_driver(s->rt, &driver);
  if (s->missing == KILN_OK && driver.n_devices == 0)
    s->missing = KILN_ENODEVICE;
  if (s->missing == KILN_ENODEVICE ||
      (s->missing == KILN_ENODRIVER && getenv("KILN_DRIVER") == NULL))
    return;
  SAMPLE_TRY(s->missing);
  SAMPLE_TRY(kiln_device_open(&s->device, s->rt, 0, NULL));
}

/* Say and count where a program came from. */
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

/* The program, loaded; NULL after compiling it if there is no GPU. */
static inline kiln_module *sample_module(sample *s,
                                         const kiln_program_desc *desc)
{
  kiln_module *module = NULL;
  kiln_image *image = NULL;
  kiln_status st;

  if (s->device != NULL) {
    SAMPLE_TRY(kiln_module_load(&module, s->device, desc));
    sample_report(s, desc, kiln_module_image(module));
    return module;
  }
  st = kiln_compile(&image, s->rt, desc, &s->target);
  if (st == KILN_ENONVRTC) {
    printf("no GPU and no NVRTC: nothing to run on; %s\n",
           kiln_last_error()->hint);
    exit(SAMPLE_SKIP);
  }
  SAMPLE_TRY(st);
  sample_report(s, desc, image);
  kiln_image_free(image);
  return NULL;
}

static inline void sample_close(sample *s)
{
  kiln_device_free(s->device);
  kiln_runtime_free(s->rt);
}

/* There is no GPU: say so in one line. Return its value from main. */
static inline int sample_skip(sample *s)
{
  char text[24];

  kiln_target_text(&s->target, text);
  printf("no GPU: %s; ", kiln_status_text(s->missing));
  if (s->compiled > 0)
    printf("compiled for %s, not launched\n", text);
  else if (s->cached > 0)
    printf("taken from the cache for %s, not launched\n", text);
  else
    printf("nothing was launched\n");
  sample_close(s);
  return SAMPLE_SKIP;
}

/* Return its value from main. Free what belongs to the device before. */
static inline int sample_end(sample *s, bool good)
{
  printf("%s: %s%s\n", s->name, good ? "verified" : "WRONG RESULT",
         s->compiled > 0 ? " (compiled)"
         : s->cached > 0 ? " (from the cache)"
                         : "");
  sample_close(s);
  return good ? 0 : 1;
}

/* The host's clock in milliseconds; only differences mean something. */
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

/* Iterations that keep one thread of the built-in kernel `slow` busy for about
 * `ms` milliseconds on this GPU, found by doubling. */
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

/* Host memory that has to be there. */
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
