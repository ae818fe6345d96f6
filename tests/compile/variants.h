/* variants.h -- compiles shipped specialisations of the embedded programs, many
 * of them in one parallel job. */
#ifndef KILN_TEST_VARIANTS_H
#define KILN_TEST_VARIANTS_H

#include "each_nvrtc.h"

#include "cpu/code/code.h"

enum { MOST_ARCHS = 64, OLDEST_ARCH = 35 };

/* A thorough run compiles every variant for every architecture, which takes
 * thousands of compiles. */
static bool is_thorough(void)
{
  return getenv("KILN_TEST_THOROUGH") != NULL;
}

/* Returns the length of a list that NULL ends. The list itself may be NULL. */
static size_t list_length(const char *const *list)
{
  size_t n = 0;

  while (list != NULL && list[n] != NULL)
    n++;
  return n;
}

static kiln_program_desc describe(const kiln_variant *v)
{
  return (kiln_program_desc){.builtin = v->builtin,
                             .defines = v->defines,
                             .n_defines = list_length(v->defines),
                             .traits = v->traits,
                             .n_traits = list_length(v->traits),
                             .names = v->names,
                             .n_names = list_length(v->names),
                             .no_cache = true};
}

/* Returns the suffix of the target for which a variant is meant, or 0. Kernels that
 * use warpgroups exist for sm_90a only. */
static inline char suffix_of(const kiln_variant *v)
{
  return strstr(v->builtin, "_wgmma") != NULL ||
                 strstr(v->builtin, "_ffma") != NULL
             ? 'a'
             : 0;
}

/* Whether a variant may have no kernels for a target. */
static inline bool may_be_empty(const kiln_variant *v, const kiln_target *t)
{
  return suffix_of(v) != 0 && t->suffix != suffix_of(v);
}

/* Returns true if NVRTC number `nvrtc` compiles variant v of the list. In a
 * thorough run it compiles all. By default the newest NVRTC compiles the first
 * variant of each program, each other NVRTC that of every other program, and one of
 * them every other of the remaining variants. Every NVRTC compiles variants for a
 * suffix, which not all of them know. */
static inline bool is_turn(const kiln_variant *list, size_t v, int nvrtc)
{
  if (is_thorough() || v == 0 || suffix_of(&list[v]) != 0)
    return true;
  if (strcmp(list[v].builtin, list[v - 1].builtin) != 0)
    return nvrtc == each_n - 1 || (v + (size_t)nvrtc) % 2 == 0;
  return (v + (size_t)nvrtc) % (2 * (size_t)each_n) == 0;
}

/* Loads the PTX of an image on the CPU device. Returns the number of its
 * instructions. */
static unsigned load_on_cpu(kiln_image *image, const kiln_variant *v,
                            const kiln_target *target)
{
  size_t size;
  const char *ptx = kiln_image_ptx(image, &size);
  kiln_allocator a = {0};
  kiln__cpu_ptx_module *module = NULL;
  kiln__cpu_program *program = NULL;
  kiln_status st;
  unsigned n = 0;

  ck_assert_msg(ptx != NULL, "%s for %d: no PTX", v->label, target->cc);
  kiln__allocator_default(&a);
  st = kiln__cpu_ptx_parse(&module, &a, ptx, size);
  if (st == KILN_OK)
    st = kiln__cpu_program_make(&program, &a, module);
  ck_assert_msg(st == KILN_OK, "%s for %d: %s\n%s", v->label, target->cc,
                kiln_last_error()->message, kiln_last_error()->log);
  for (uint32_t i = 0; i < program->n_functions; i++)
    n += program->functions[i].n_insns;
  ck_assert_msg(n > 0 || may_be_empty(v, target), "%s (%s) for %d: no code",
                v->builtin, v->label, target->cc);
  kiln__cpu_program_free(program);
  return n;
}

/* Finds the architectures that the runtime's NVRTC supports, except those that
 * are older than OLDEST_ARCH. */
static size_t archs_of(kiln_runtime *runtime, int out[MOST_ARCHS])
{
  kiln_nvrtc_info info;
  size_t n, found = 0;

  ck_kiln_ok(kiln_runtime_nvrtc(runtime, &info, 1, &n));
  ck_assert_uint_ge(n, 1);
  for (size_t i = 0; i < info.n_archs && found < MOST_ARCHS; i++)
    if (info.archs[i] >= OLDEST_ARCH)
      out[found++] = info.archs[i];
  ck_assert_uint_gt(found, 5);
  return found;
}

/* Programs with their targets, which one job compiles in parallel. */
typedef struct batch {
  kiln_program_desc *desc;
  kiln_target *target;
  const kiln_variant **variant;
  size_t n, room;
} batch;

static void add(batch *b, const kiln_variant *v, kiln_program_desc desc,
                kiln_target target)
{
  if (b->n == b->room) {
    b->room = b->room == 0 ? 256 : 2 * b->room;
    b->desc = realloc(b->desc, b->room * sizeof *b->desc);
    b->target = realloc(b->target, b->room * sizeof *b->target);
    b->variant = realloc(b->variant, b->room * sizeof *b->variant);
    ck_assert(b->desc != NULL && b->target != NULL && b->variant != NULL);
  }
  b->desc[b->n] = desc;
  b->target[b->n] = target;
  b->variant[b->n++] = v;
}

/* Compiles the batch, passes each image to `check`, and frees the batch. */
static void compile_batch(batch *b, kiln_runtime *runtime,
                          void (*check)(kiln_image *image,
                                        const kiln_variant *v,
                                        const kiln_target *target))
{
  kiln_job *job = NULL;

  ck_kiln_ok(
      kiln_job_start(&job, runtime, b->desc, b->target, b->n, NULL, NULL));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  for (size_t i = 0; i < b->n; i++) {
    kiln_image *image = NULL;
    char target[24];
    const kiln_status st = kiln_job_image(job, i, &image);

    kiln_target_text(&b->target[i], target);
    ck_assert_msg(st == KILN_OK, "%s (%s) for %s: %s: %s\n%s",
                  b->variant[i]->builtin, b->variant[i]->label, target,
                  kiln_status_name(st), kiln_last_error()->message,
                  kiln_last_error()->log);
    check(image, b->variant[i], &b->target[i]);
    kiln_image_free(image);
  }
  kiln_job_free(job);
  free(b->desc);
  free(b->target);
  free(b->variant);
}

#endif
