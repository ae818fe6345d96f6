/* program_serving_test.c -- tests where an image comes from: the choice of
 * NVRTC, packs, compiles that other threads start or finish. */
#include "image_fixture.h"

#include <pthread.h>
#include <unistd.h>

/* Waits for a compile and stores its result in `image`. */
static void finish(kiln__pending *pending)
{
  drop_image();
  ck_kiln_ok(kiln__image_finish(pending, &image));
}

/* ---- Choice of NVRTC, packs ---------------------------------------------- */

/* Replaces the runtime. The new runtime finds NVRTC only in the test's folder,
 * or nowhere, and takes images from `pack` unless it is NULL. */
static void restart_with(bool nvrtc, const char *pack)
{
  const char *const folder = dir;

  const kiln_runtime_opts opts = {.ignore_env = true,
                                  .nvrtc_path = nvrtc ? NULL : "/nowhere",
                                  .nvrtc_dirs = &folder,
                                  .n_nvrtc_dirs = nvrtc,
                                  .packs = &pack,
                                  .n_packs = pack != NULL,
                                  .cache_dir = cache};

  stop();
  ck_kiln_ok(kiln_runtime_create(&rt, &opts));
}

START_TEST(the_newest_that_knows_the_target)
{
  const kiln_program_desc desc = {.source = source};
  const kiln_target sm_70 = {.cc = 70}, sm_35 = {.cc = 35}, sm_30 = {.cc = 30};
  char other[512];

  fake_nvrtc_install(fake, dir, "libnvrtc.so.12", NULL, other);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.11.2", NULL, other);
  restart_with(true, NULL);
  compile(&desc, &sm_90);
  ck_assert_int_eq(kiln_image_nvrtc(image), 13000);
  compile(&desc, &sm_70);
  ck_assert_int_eq(kiln_image_nvrtc(image), 12080);
  compile(&desc, &sm_35);
  ck_assert_int_eq(kiln_image_nvrtc(image), 11080);
  refuse(KILN_EUNSUPPORTED, &desc, &sm_30);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "13.0, 12.8, 11.8"));
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "3.5 or newer"));
  refuse(KILN_EUNSUPPORTED, &desc, &(kiln_target){.cc = 91});
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->hint, "compile for sm_90,"));
}
END_TEST

START_TEST(the_newest_that_the_driver_takes)
{
  const kiln_program_desc desc = {.source = source};
  static const struct {
    int cc, driver, nvrtc;
    kiln_rung rung;
  } rows[] = {
      {90, 13000, 13000, KILN_RUNG_EXACT}, {90, 12040, 12080, KILN_RUNG_EXACT},
      {90, 11080, 11080, KILN_RUNG_EXACT}, {70, 13000, 12080, KILN_RUNG_EXACT},
      {35, 11080, 11080, KILN_RUNG_EXACT}, {90, 0, 13000, KILN_RUNG_EXACT},
      {89, 12080, 12080, KILN_RUNG_EXACT}, {20, 13000, 0, KILN_RUNG_REFUSE}};
  const kiln__nvrtc_id *ids;
  char other[512];
  size_t n;

  fake_nvrtc_install(fake, dir, "libnvrtc.so.12", NULL, other);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.11.2", NULL, other);
  restart_with(true, NULL);
  ck_kiln_ok(kiln__nvrtc_list(((kiln_runtime *)rt)->nvrtc, &ids, &n));
  ck_assert_uint_ge(n, 3);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    kiln__image_request req;
    kiln_ladder_result ladder;

    const kiln__driver driver = {.version = rows[i].driver};

    ck_kiln_ok(kiln__image_choose(&req, &ladder, rt, &desc, rows[i].cc, false,
                                  &driver));
    ck_assert_msg(ladder.rung == rows[i].rung, "row %zu: %s", i,
                  kiln_rung_name(ladder.rung));
    if (ladder.rung == KILN_RUNG_REFUSE) {
      ck_kiln_is(kiln__image_refuse(rt, &ladder), KILN_EUNSUPPORTED);
      ck_assert_str_ne(kiln_last_error()->hint, "");
    } else {
      ck_assert_int_eq(ids[req.nvrtc].info.version, rows[i].nvrtc);
      ck_assert_int_eq(req.target.cc, rows[i].cc);
    }
  }
}
END_TEST

/* After an NVRTC was removed, the images that it compiled are still found,
 * because the memo file describes the library. */
START_TEST(the_cache_answers_when_nvrtc_is_gone)
{
  const kiln_program_desc desc = {.source = source, .name = "p.cu"};
  kiln_program_desc other = desc;
  char older[512], found[512];

  snprintf(found, sizeof found, "%s", library);
  fake_nvrtc_install(fake, dir, "libnvrtc.so.12", NULL, library);
  snprintf(older, sizeof older, "%s", library);
  restart(); /* Compile with the older NVRTC. */
  compile(&desc, &sm_90);
  snprintf(library, sizeof library, "%s", found);
  /* Compile with the newer NVRTC, so that the memo describes both. */
  restart();
  other.source = "extern \"C\" __global__ void other() {}\n";
  compile(&other, &sm_90);
  ck_assert_int_eq(unlink(older), 0);
  ck_assert_int_eq(unlink(found), 0);

  restart();
  compile_from(KILN_FROM_DISK, &desc, &sm_90);
  ck_assert_int_eq(kiln_image_nvrtc(image), 12080);
  compile(&other, &sm_90);
  ck_assert_int_eq(kiln_image_nvrtc(image), 13000);
  other.source = "extern \"C\" __global__ void another() {}\n";
  refuse(KILN_ENONVRTC, &other, &sm_90);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "nvrtc_path"));
}
END_TEST

START_TEST(packs_serve_without_nvrtc)
{
  kiln_program_desc desc = {.source = source, .name = "p.cu"};
  const kiln_target sm_80 = {.cc = 80}, sm_86 = {.cc = 86}, sm_75 = {.cc = 75};
  const kiln__driver driver = {.version = 12000};
  char pack[300];
  kiln__image_request req;
  kiln_ladder_result ladder;
  kiln__pending *pending;
  kiln_image *images[2];
  kiln_traits traits;

  snprintf(pack, sizeof pack, "%s/all.pack", dir);
  ck_kiln_ok(kiln_compile(&images[0], rt, &desc, &sm_80));
  ck_kiln_ok(kiln_compile(&images[1], rt, &desc, &sm_90));
  ck_kiln_is(kiln_pack_write(rt, pack, images, 0), KILN_EINVAL);
  ck_kiln_is(kiln_pack_write(rt, NULL, images, 2), KILN_EINVAL);
  ck_kiln_ok(kiln_pack_write(rt, pack, images, 2));
  kiln_image_free(images[0]);
  kiln_image_free(images[1]);

  restart_with(false, pack);
  compile_from(KILN_FROM_PACK, &desc, &sm_90);
  ck_assert_str_eq(kiln_image_lowered(image, "saxpy"), "_Z5saxpyv");
  compile(&desc, &sm_86);
  ck_assert_int_eq(kiln_image_target(image).cc, 80);
  refuse(KILN_ENONVRTC, &desc, &sm_75);

  ck_kiln_ok(kiln__image_choose(&req, &ladder, rt, &desc, 86, false, &driver));
  ck_assert_int_eq(ladder.rung, KILN_RUNG_PACK);
  ck_kiln_ok(kiln_arch_traits(86, &traits));
  ck_kiln_ok(kiln__image_start(&pending, rt, &desc, &traits, &req));
  ck_assert(kiln__image_ready(pending));
  finish(pending);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_PACK);

  desc.source = "int other;";
  refuse(KILN_ENONVRTC, &desc, &sm_90);
  ck_kiln_ok(kiln__image_choose(&req, &ladder, rt, &desc, 86, false, &driver));
  ck_assert_int_eq(ladder.rung, KILN_RUNG_REFUSE);
  ck_kiln_is(kiln__image_refuse(rt, &ladder), KILN_ENONVRTC);
}
END_TEST

START_TEST(a_compiler_beats_the_lower_code_of_a_pack)
{
  const kiln_program_desc desc = {.source = source, .name = "p.cu"};
  const kiln_target sm_80 = {.cc = 80}, sm_86 = {.cc = 86};
  char pack[300];

  snprintf(pack, sizeof pack, "%s/lower.pack", dir);
  compile(&desc, &sm_80);
  ck_kiln_ok(kiln_pack_write(rt, pack, &image, 1));
  ck_assert_int_eq(control->compiles, 1);

  /* For sm_86, the image is compiled and later read from disk, although the
   * pack's sm_80 image would run. For sm_80, the pack provides the image. */
  for (int i = 0; i < 2; i++) {
    restart_with(true, pack);
    compile_from(i == 0 ? KILN_FROM_COMPILER : KILN_FROM_DISK, &desc, &sm_86);
    ck_assert_int_eq(kiln_image_target(image).cc, 86);
    compile_from(KILN_FROM_PACK, &desc, &sm_80);
  }
  ck_assert_int_eq(control->compiles, 2);
}
END_TEST

START_TEST(a_pack_steps_in_for_an_nvrtc_that_does_not_work)
{
  kiln_program_desc desc = {.source = source, .name = "p.cu"};
  const kiln_target sm_80 = {.cc = 80}, sm_86 = {.cc = 86}, sm_75 = {.cc = 75};
  char pack[300];

  snprintf(pack, sizeof pack, "%s/lower.pack", dir);
  compile(&desc, &sm_80);
  ck_kiln_ok(kiln_pack_write(rt, pack, &image, 1));

  restart_with(true, pack);
  control->rc[FAKE_NVRTC_compileProgram] =
      NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  compile_from(KILN_FROM_PACK, &desc, &sm_86);
  ck_assert_int_eq(kiln_image_target(image).cc, 80);
  refuse(KILN_ENONVRTC, &desc, &sm_75);
  ck_assert_str_ne(kiln_last_error()->hint, "");
  desc.refresh = true;
  refuse(KILN_ENONVRTC, &desc, &sm_86);
  desc.refresh = false;
  /* The pack's image was not cached under the key of a compiled image. */
  control->rc[FAKE_NVRTC_compileProgram] = 0;
  compile_from(KILN_FROM_COMPILER, &desc, &sm_86);
  ck_assert_int_eq(kiln_image_target(image).cc, 86);
}
END_TEST

/* ---- Starting and finishing compiles ------------------------------------ */

static kiln__image_request exact(void)
{
  return (kiln__image_request){
      .rung = KILN_RUNG_EXACT, .target = sm_90, .cc = 90};
}

START_TEST(start_and_finish)
{
  const kiln_program_desc desc = {.source = source};
  const kiln__image_request req = exact();
  kiln__pending *pending;
  kiln_traits traits;

  ck_kiln_ok(kiln_arch_traits(90, &traits));
  ck_kiln_is(kiln__image_lookup(&image, rt, &desc, &traits, &req),
             KILN_ENOTFOUND);
  control->delay_ms = 50;
  ck_kiln_ok(kiln__image_start(&pending, rt, &desc, &traits, &req));
  ck_assert(!kiln__image_ready(pending));
  finish(pending);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_COMPILER);

  drop_image();
  ck_kiln_ok(kiln__image_lookup(&image, rt, &desc, &traits, &req));
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_MEMORY);
  ck_kiln_ok(kiln__image_start(&pending, rt, &desc, &traits, &req));
  ck_assert(kiln__image_ready(pending));
  finish(pending);
  ck_assert_int_eq(kiln_image_origin(image), KILN_FROM_MEMORY);
  drop_image();
  ck_kiln_is(kiln__image_finish(NULL, &image), KILN_EINVAL);
}
END_TEST

START_TEST(a_failure_crosses_threads)
{
  heard log = {0};
  const kiln_program_desc desc = {
      .source = "#error x\n", .on_log = hear, .log_user = &log};
  const kiln__image_request req = exact();
  kiln__pending *pending;
  kiln_traits traits;

  control->delay_ms = 30;
  ck_kiln_ok(kiln_arch_traits(90, &traits));
  ck_kiln_ok(kiln__image_start(&pending, rt, &desc, &traits, &req));
  while (!kiln__image_ready(pending))
    usleep(1000);
  ck_kiln_is(kiln__image_finish(pending, &image), KILN_ECOMPILE);
  ck_assert_ptr_null(image);
  ck_assert_ptr_nonnull(strstr(kiln_last_error()->message, "#error"));
  ck_assert_int_eq(log.calls, 1);
}
END_TEST

/* A task that starts and finishes a compile on a compile thread. If every
 * compile thread runs such a task, finishing must not wait for another
 * thread. */
typedef struct nested {
  kiln__task task;
  atomic_int *left;
  kiln_status status;
} nested;

static void run_nested(kiln__task *task)
{
  nested *n = (nested *)(void *)task;
  char text[64];
  const kiln_program_desc desc = {.source = text};
  const kiln__image_request req = exact();
  kiln__pending *pending;
  kiln_traits traits;
  kiln_image *made = NULL;

  snprintf(text, sizeof text, "__global__ void k%d() {}\n",
           (int)((uintptr_t)n / sizeof *n % 1000));
  kiln_arch_traits(90, &traits);
  n->status = kiln__image_start(&pending, rt, &desc, &traits, &req);
  if (n->status == KILN_OK)
    n->status = kiln__image_finish(pending, &made);
  kiln_image_free(made);
  atomic_fetch_sub(n->left, 1);
}

START_TEST(finish_on_a_busy_pool)
{
  enum { N = 4 };
  atomic_int left = N;
  static nested tasks[N];

  for (int i = 0; i < N; i++) {
    tasks[i] = (nested){.task = {.run = run_nested}, .left = &left};
    kiln__pool_add(rt->pool, &tasks[i].task);
  }
  while (atomic_load(&left) > 0)
    usleep(1000);
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(tasks[i].status, KILN_OK);
}
END_TEST

/* ---- Threads ------------------------------------------------------------- */

typedef struct worker {
  int number;
  bool same;
} worker;

static void *work(void *arg)
{
  const worker *w = arg;
  char text[64];
  const kiln_program_desc desc = {.source = text};
  kiln_image *made;

  snprintf(text, sizeof text, "__global__ void k%d() {}\n",
           w->same ? 0 : w->number);
  if (kiln_compile(&made, rt, &desc, &sm_90) != KILN_OK)
    return "a compile failed";
  kiln_image_free(made);
  return NULL;
}

static void run_threads(bool same)
{
  enum { N = 12 };
  worker workers[N];

  control->delay_ms = 20;
  for (int i = 0; i < N; i++)
    workers[i] = (worker){i, same};
  test_threads(N, work, workers, sizeof workers[0]);
  ck_assert_int_eq(atomic_load(&control->compiles), same ? 1 : N);
  ck_assert_int_le(atomic_load(&control->most_running), 2);
}

START_TEST(one_compile_for_the_same_program)
{
  run_threads(true);
}
END_TEST

START_TEST(compiles_in_parallel_up_to_the_bound)
{
  run_threads(false);
  ck_assert_int_eq(atomic_load(&control->most_running), 2);
}
END_TEST

/* An on_log callback that compiles the same program again. */
static void compile_again(void *user, const char *text, size_t size)
{
  const kiln_program_desc desc = {.source = source};
  kiln_image *again;

  (void)text;
  (void)size;
  ck_kiln_ok(kiln_compile(&again, user, &desc, &sm_90));
  kiln_image_free(again);
}

START_TEST(callbacks_may_compile)
{
  const kiln_program_desc desc = {
      .source = source, .on_log = compile_again, .log_user = rt};

  compile(&desc, &sm_90);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("program_serving");

  kiln_test_case(
      s, "all", 120, setup, teardown,
      TESTS(the_newest_that_knows_the_target, the_newest_that_the_driver_takes,
            the_cache_answers_when_nvrtc_is_gone, packs_serve_without_nvrtc,
            a_compiler_beats_the_lower_code_of_a_pack,
            a_pack_steps_in_for_an_nvrtc_that_does_not_work, start_and_finish,
            a_failure_crosses_threads, finish_on_a_busy_pool,
            one_compile_for_the_same_program,
            compiles_in_parallel_up_to_the_bound, callbacks_may_compile));
  return kiln_test_run(s);
}
