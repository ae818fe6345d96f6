/* bench_reduce_gpu.c -- launches and times the kernels of the reduction
 * benchmark. */
#include "bench/bench_reduce.h"

#include <string.h>

const bench_rung kiln__bench_big[] = {
    {"ladder/reduce_atomic_global", "atomic, global memory", 256, 1, false},
    {"ladder/reduce_atomic_shared", "atomic, shared memory", 256, 1, false},
    {"ladder/reduce_shared", "tree in shared memory", 256, 1, false},
    {"ladder/reduce_shared_shuffle", "tree, then shuffle", 256, 1, false},
    {"ladder/reduce_final", "two loads per thread", 256, 2, false},
    {NULL, NULL, 0, 0, false}};

const bench_rung kiln__bench_small[] = {
    {"ladder/reduce_one_thread", "one thread", 1, 0, false},
    {"ladder/reduce_atomic_global", "atomics", 1024, 1, false},
    {"ladder/reduce_block", "one block", 1024, 0, true},
    {"ladder/reduce_grid_atomic", "blocks, then atomics", 1024, 2, true},
    {"ladder/reduce_grid_local", "in shared memory", 1024, 2, false},
    {"ladder/reduce_warp", "warps", 512, 1, false},
    {NULL, NULL, 0, 0, false}};

bench_tuning kiln__bench_tuned(uint64_t n)
{
  static const struct {
    uint64_t most;
    bench_tuning tuning;
  } classes[] = {
      {UINT64_C(1) << 18, {512, 2, 1024, 0, 0, 1, 4, 2}},
      {UINT64_C(1) << 22, {256, 8, 1024, 0, 0, 1, 4, 8}},
      {UINT64_C(1) << 26, {256, 8, 1024, 0, 24, 1, 17, 8}},
      {UINT64_MAX, {512, 8, 1024, 0, 24, 0, 9, 8}},
  };
  size_t i = 0;

  while (n > classes[i].most)
    i++;
  return classes[i].tuning;
}

bench_tuning kiln__bench_safe(const bench_tuning *tuning)
{
  bench_tuning t = *tuning;

  t.block = 512;
  t.items = 4;
  t.threads = 1024;
  return t;
}

static void define(bench_defines *d, size_t i, const char *name, unsigned value)
{
  snprintf(d->text[i], sizeof d->text[i], "%s=%u", name, value);
  d->at[i] = d->text[i];
}

kiln_program_desc kiln__bench_desc_rung(bench_defines *d,
                                        const bench_rung *rung)
{
  kiln_program_desc desc = {.builtin = rung->builtin};

  define(d, 0, "KILN_BLOCK", rung->block);
  if (rung->elements > 0) {
    desc.defines = d->at;
    desc.n_defines = 1;
  }
  return desc;
}

kiln_program_desc kiln__bench_desc_tuned(bench_defines *d,
                                         const bench_tuning *tuning)
{
  define(d, 0, "KILN_BLOCK", tuning->block);
  define(d, 1, "KILN_ITEMS", tuning->items);
  define(d, 2, "KILN_THREADS", tuning->threads);
  define(d, 3, "KILN_EVEN", tuning->even);
  define(d, 4, "KILN_KEEP", tuning->keep);
  define(d, 5, "KILN_SMALL", tuning->small);
  define(d, 6, "KILN_RESULTS", tuning->results);
  return (kiln_program_desc){
      .builtin = "reduce", .defines = d->at, .n_defines = 7};
}

/* ---- Device ------------------------------------------------------------- */

enum { WORKSPACE = 1 << 20 };

static kiln_status allocate(bench_gpu *g, const float *host)
{
  CLI_TRY(kiln_memory_alloc(&g->input, g->rig.device, g->n * sizeof *host));
  CLI_TRY(kiln_memory_alloc(&g->copy, g->rig.device, g->copy_n * sizeof *host));
  CLI_TRY(kiln_memory_alloc(&g->workspace, g->rig.device, WORKSPACE));
  CLI_TRY(kiln_memory_alloc(&g->result, g->rig.device, 256));
  g->other_bytes = 4 * (size_t)g->rig.info.l2_bytes;
  CLI_TRY(kiln_memory_alloc(&g->other, g->rig.device, g->other_bytes));
  CLI_TRY(kiln_fill(g->rig.device, g->workspace, 0, 4, WORKSPACE / 4));
  return kiln_copy_to_device(g->rig.device, g->input, host,
                             g->n * sizeof *host);
}

kiln_status kiln__bench_gpu_open(bench_gpu *g, cli *c, int ordinal,
                                 const float *host, uint64_t n, uint64_t copy_n)
{
  g->n = n;
  g->copy_n = copy_n;
  CLI_TRY(kiln__bench_rig_open(&g->rig, c, ordinal));
  return allocate(g, host);
}

void kiln__bench_gpu_close(bench_gpu *g)
{
  const CUdeviceptr blocks[] = {g->input,  g->copy,  g->workspace,
                                g->result, g->other, g->temp};

  if (g->rig.device == NULL)
    return;
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
    kiln_memory_free(g->rig.device, blocks[i]);
  kiln__bench_rig_close(&g->rig);
}

/* ---- Shots -------------------------------------------------------------- */

kiln_status kiln__bench_load(bench_gpu *g, bench_shot *shot)
{
  bench_defines d = {0};
  kiln_program_desc desc;
  const char *name = "reduce";

  if (shot->peer != NULL)
    return KILN_OK;
  if (shot->rung != NULL) {
    desc = kiln__bench_desc_rung(&d, shot->rung);
    name = strchr(shot->rung->builtin, '/') + 1;
  } else {
    desc = kiln__bench_desc_tuned(&d, shot->tuning);
    desc.fail_on_spill = true;
  }
  CLI_TRY(kiln_module_load(&shot->module, g->rig.device, &desc));
  if (kiln_image_origin(kiln_module_image(shot->module)) == KILN_FROM_COMPILER)
    g->compiled++;
  else
    g->cached++;
  return kiln_module_kernel(&shot->kernel, shot->module, name);
}

void kiln__bench_unload(bench_shot *shot)
{
  kiln_module_free(shot->module);
  shot->module = NULL;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
  return (a + b - 1) / b;
}

/* Returns the number of blocks: as many as can be resident at the same time,
 * and fewer for small n. One additional block combines the results of the other
 * blocks. */
static unsigned tuned_grid(const bench_gpu *g, const bench_tuning *t,
                           uint64_t n)
{
  const uint64_t resident =
      (uint64_t)g->rig.info.sm_count * (t->threads / t->block);
  const uint64_t wanted =
      divide_up(n, (uint64_t)t->block * t->vectors * (16 / sizeof(float)));

  if (wanted <= 1)
    return 1;
  return (unsigned)(wanted < resident ? wanted + 1 : resident);
}

/* Launches Kiln's reduction, which takes one launch for any n. */
static kiln_status fire_tuned(bench_gpu *g, bench_shot *s)
{
  unsigned long long n = s->n;
  kiln_launch_config config = {.stream = g->rig.stream};

  s->grid = tuned_grid(g, s->tuning, s->n);
  config.grid.x = s->grid;
  config.block.x = s->tuning->block;
  return KILN_LAUNCH(s->kernel, &config, KILN_ARG(g->input), KILN_ARG(n),
                     KILN_ARG(g->workspace), KILN_ARG(g->result));
}

/* Launches one of the lectures' kernels. Kernels that overwrite their input
 * work on a copy. */
static kiln_status fire_rung(bench_gpu *g, bench_shot *s)
{
  const bench_rung *r = s->rung;
  const CUdeviceptr x = r->in_place ? g->copy : g->input;
  unsigned n = (unsigned)s->n;
  kiln_launch_config config = {.stream = g->rig.stream};

  s->grid = r->elements == 0
                ? 1
                : (unsigned)divide_up(n, (uint64_t)r->block * r->elements);
  config.grid.x = s->grid;
  config.block.x = r->block;
  return KILN_LAUNCH(s->kernel, &config, KILN_ARG(x), KILN_ARG(n),
                     KILN_ARG(g->result));
}

/* Converts an error code of CUB to a status. CUB does not write Kiln's error
 * record. */
static kiln_status peer_status(const bench_gpu *g, int code)
{
  if (code == 0)
    return KILN_OK;
  kiln__cli_message(g->rig.c, NULL, "CUB failed with CUDA error %d", code);
  return KILN_EDRIVER;
}

static kiln_status fire_peer(bench_gpu *g, bench_shot *s)
{
  void *const stream = kiln_stream_handle(g->rig.stream);
  const float *x = (const float *)(uintptr_t)g->input;
  float *result = (float *)(uintptr_t)g->result;
  void *temp = (void *)(uintptr_t)g->temp;
  size_t bytes = g->temp_bytes;

  return peer_status(g, s->peer(x, s->n, result, temp, &bytes, stream));
}

/* Allocates CUB's temporary storage. CUB reports the size if its temporary
 * storage is NULL. */
static kiln_status peer_storage(bench_gpu *g, const bench_shot *s)
{
  size_t bytes = 0;

  CLI_TRY(peer_status(g, s->peer((const float *)(uintptr_t)g->input, s->n, NULL,
                                 NULL, &bytes, NULL)));
  if (bytes <= g->temp_bytes)
    return KILN_OK;
  CLI_TRY(kiln_memory_free(g->rig.device, g->temp));
  g->temp = 0;
  g->temp_bytes = 0;
  CLI_TRY(kiln_memory_alloc(&g->temp, g->rig.device, bytes));
  g->temp_bytes = bytes;
  return KILN_OK;
}

/* Prepares a run, untimed: sets the result to 0, and restores the input that a
 * kernel overwrites. */
static kiln_status prepare(bench_gpu *g, const bench_shot *s)
{
  if (s->rung != NULL && s->rung->in_place) {
    if (s->n > g->copy_n)
      return KILN_EINVAL;
    CLI_TRY(kiln_copy_on_device_async(g->rig.stream, g->copy, g->input,
                                      s->n * sizeof(float)));
  }
  return kiln_fill_async(g->rig.stream, g->result, 0, 4, 1);
}

/* Brings the device into the state (idle, busy or cold cache) in which the
 * timed run starts. */
static kiln_status bring_about(bench_gpu *g, bench_state state)
{
  if (state == BENCH_QUEUED)
    return kiln__bench_rig_delay(&g->rig);
  if (state == BENCH_COLD)
    CLI_TRY(kiln_fill_async(g->rig.stream, g->other, 1, 4, g->other_bytes / 4));
  return kiln_stream_synchronize(g->rig.stream);
}

typedef struct firing {
  bench_gpu *g;
  bench_shot *s;
} firing;

static kiln_status fire(void *user)
{
  firing *f = user;

  return f->s->peer != NULL   ? fire_peer(f->g, f->s)
         : f->s->rung != NULL ? fire_rung(f->g, f->s)
                              : fire_tuned(f->g, f->s);
}

static kiln_status run_once(bench_gpu *g, bench_shot *s, bench_state state,
                            double *ms)
{
  firing f = {g, s};

  CLI_TRY(prepare(g, s));
  CLI_TRY(bring_about(g, state));
  return kiln__bench_rig_time(&g->rig, fire, &f, ms);
}

static kiln_status time_all(bench_gpu *g, bench_shot *shots, size_t n_shots,
                            unsigned repeats, bench_state state)
{
  enum { MOST = 8 };
  double ms[MOST][BENCH_MOST_REPEATS];

  if (n_shots > MOST || repeats > BENCH_MOST_REPEATS)
    return KILN_EINVAL;
  for (unsigned r = 0; r < repeats; r++)
    for (size_t i = 0; i < n_shots; i++) {
      /* Two untimed runs come first, so that the L2 cache holds the data of
       * this code and not that of the code measured before. */
      for (int again = 0; again < (n_shots > 1 && state != BENCH_COLD ? 2 : 0);
           again++)
        CLI_TRY(run_once(g, &shots[i], state, &ms[i][r]));
      CLI_TRY(run_once(g, &shots[i], state, &ms[i][r]));
    }
  for (size_t i = 0; i < n_shots; i++) {
    shots[i].ms[state] = kiln__cli_median(ms[i], repeats);
    shots[i].counted = repeats;
  }
  return KILN_OK;
}

/* Returns the number of repeats. Kernels that take at least half a second are
 * repeated less often. */
static unsigned repeats_for(const bench_gpu *g, double longest_ms)
{
  unsigned repeats = g->repeats;

  while (repeats > 3 && longest_ms * repeats > 3000)
    repeats--;
  return repeats;
}

kiln_status kiln__bench_time(bench_gpu *g, bench_shot *shots, size_t n_shots,
                             bool all)
{
  double longest = 0;
  unsigned repeats;

  for (size_t i = 0; i < n_shots; i++) {
    double ms;

    if (shots[i].peer != NULL)
      CLI_TRY(peer_storage(g, &shots[i]));
    CLI_TRY(run_once(g, &shots[i], BENCH_IDLE,
                     &ms)); /* the first launch is slower */
    CLI_TRY(run_once(g, &shots[i], BENCH_IDLE, &ms));
    for (int warm = 0; warm < 2 && ms < 50; warm++)
      CLI_TRY(run_once(g, &shots[i], BENCH_IDLE, &ms));
    longest = ms > longest ? ms : longest;
    CLI_TRY(kiln_copy_to_host(g->rig.device, &shots[i].value, g->result,
                              sizeof shots[i].value));
  }
  repeats = repeats_for(g, longest);
  for (bench_state state = BENCH_IDLE; state < BENCH_STATES; state++) {
    if (all || state == BENCH_IDLE)
      CLI_TRY(time_all(g, shots, n_shots, repeats, state));
  }
  return KILN_OK;
}
