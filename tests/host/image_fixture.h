/* image_fixture.h -- compiles programs into images with a scripted fake of
 * NVRTC. Each test checks that all programs of the compiler were destroyed. */
#ifndef IMAGE_FIXTURE_H
#define IMAGE_FIXTURE_H

#include "support.h"

#include "fake_nvrtc.h"
#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char fake[] = KILN_TEST_FAKES "/fake_nvrtc.so";
static const kiln_target sm_90 = {.cc = 90};

static char dir[256], cache[300], library[512];
static fake_nvrtc_control *control;
static kiln_runtime *rt;
static kiln_image *image;

static inline kiln_runtime *make_runtime(const kiln_allocator *a)
{
  kiln_runtime_opts opts = {.ignore_env = true,
                            .nvrtc_path = library,
                            .cache_dir = cache,
                            .compile_threads = 2};
  kiln_runtime *made;

  if (a != NULL)
    opts.allocator = *a;
  ck_kiln_ok(kiln_runtime_create(&made, &opts));
  return made;
}

static inline void drop_image(void)
{
  kiln_image_free(image);
  image = NULL;
}

static inline void stop(void)
{
  drop_image();
  kiln_runtime_free(rt);
  rt = NULL;
}

/* Replaces the runtime by a new runtime with the same options. */
static inline void restart(void)
{
  stop();
  rt = make_runtime(NULL);
}

/* Compiles into `image`, which stays valid until the next call. */
static inline void compile(const kiln_program_desc *desc,
                           const kiln_target *target)
{
  drop_image();
  ck_kiln_ok(kiln_compile(&image, rt, desc, target));
}

/* Compiles like compile() and checks whether the image comes from the compiler,
 * the cache or a pack. */
static inline void compile_from(kiln_origin origin,
                                const kiln_program_desc *desc,
                                const kiln_target *target)
{
  compile(desc, target);
  ck_assert_int_eq(kiln_image_origin(image), origin);
}

/* Checks that a compile fails with the status `want` and gives no image. */
static inline void refuse(kiln_status want, const kiln_program_desc *desc,
                          const kiln_target *target)
{
  drop_image();
  image = (kiln_image *)&control;
  ck_kiln_is(kiln_compile(&image, rt, desc, target), want);
  ck_assert_ptr_null(image);
}

static inline void setup(void)
{
  test_dir_make(dir);
  snprintf(cache, sizeof cache, "%s/cache", dir);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.13", NULL, library);
  control = fake_nvrtc_of(library);
  rt = make_runtime(NULL);
}

static inline void teardown(void)
{
  stop();
  ck_assert_int_eq(atomic_load(&control->programs), 0);
  test_dir_remove(dir);
}

static const char source[] =
    "extern \"C\" __global__ void plain(float *x, int n) {}\n"
    "__global__ void saxpy(float a, const float *x, float *y, int n) {}\n"
    "template <class T> __global__ void scale(T *x) {}\n//regs 24\n";

/* The text that a description's on_log callback received. */
typedef struct heard {
  int calls;
  char text[4096];
} heard;

static inline void hear(void *user, const char *text, size_t size)
{
  heard *h = user;

  h->calls++;
  snprintf(h->text, sizeof h->text, "%.*s", (int)size, text);
}

#endif
