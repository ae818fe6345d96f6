/* cpu_corpus_test.c -- tests that the CPU device loads the PTX that each NVRTC
 * generates for the shipped kernels: without options, with -G, with line
 * numbers, and with fast math.
 *
 * By default, every specialisation is compiled once per NVRTC, and the
 * architectures and options alternate. KILN_TEST_THOROUGH=1 compiles for every
 * architecture.
 *
 * KILN_TEST_NVRTC lists the libraries, separated by colons. Without it, the
 * test uses the libraries that discovery finds. */
#include "each_nvrtc.h"

#include "cpu/code/code.h"

enum { OLDEST = 35 };

static size_t length(const char *const *list)
{
  size_t n = 0;

  while (list != NULL && list[n] != NULL)
    n++;
  return n;
}

/* Loads PTX and returns the number of instructions of all functions. Fails the
 * test if the PTX does not load. */
static unsigned load(const char *ptx, size_t size, const char *what,
                     const char *target)
{
  kiln_allocator a = {0};
  kiln__cpu_ptx_module *module = NULL;
  kiln__cpu_program *program = NULL;
  kiln_status st;
  unsigned n = 0;

  kiln__allocator_default(&a);
  st = kiln__cpu_ptx_parse(&module, &a, ptx, size);
  if (st == KILN_OK)
    st = kiln__cpu_program_make(&program, &a, module);
  ck_assert_msg(st == KILN_OK, "%s for %s: %s\n%s", what, target,
                kiln_last_error()->message, kiln_last_error()->log);
  for (uint32_t i = 0; i < program->n_functions; i++)
    n += program->functions[i].n_insns;
  ck_assert_uint_gt(n, 0);
  kiln__cpu_program_free(program);
  return n;
}

/* Selects one of four sets of compiler options. */
static void set_mode(kiln_program_desc *d, int mode)
{
  d->debug = mode == 1;
  d->lineinfo = mode == 2;
  d->fast_math = mode == 3;
}

typedef struct batch {
  kiln_program_desc *desc;
  kiln_target *target;
  const char **what;
  size_t n, room;
} batch;

static void add(batch *b, const kiln_program_desc *d, int cc, const char *what)
{
  if (b->n == b->room) {
    b->room = b->room == 0 ? 256 : 2 * b->room;
    b->desc = realloc(b->desc, b->room * sizeof *b->desc);
    b->target = realloc(b->target, b->room * sizeof *b->target);
    b->what = realloc(b->what, b->room * sizeof *b->what);
    ck_assert(b->desc != NULL && b->target != NULL && b->what != NULL);
  }
  b->desc[b->n] = *d;
  b->target[b->n] = (kiln_target){.cc = cc, .ptx = true};
  b->what[b->n++] = what;
}

static void run(batch *b, kiln_runtime *rt)
{
  kiln_job *job = NULL;
  unsigned long insns = 0;

  ck_kiln_ok(kiln_job_start(&job, rt, b->desc, b->target, b->n, NULL, NULL));
  ck_kiln_ok(kiln_job_wait(job, UINT64_MAX));
  for (size_t i = 0; i < b->n; i++) {
    kiln_image *image = NULL;
    char target[24];
    const char *ptx;
    size_t size;

    ck_kiln_ok(kiln_job_image(job, i, &image));
    kiln_target_text(&b->target[i], target);
    ptx = kiln_image_ptx(image, &size);
    ck_assert_msg(ptx != NULL, "%s for %s: no PTX", b->what[i], target);
    insns += load(ptx, size, b->what[i], target);
    kiln_image_free(image);
  }
  printf("%zu programs, %lu instructions\n", b->n, insns);
  kiln_job_free(job);
  free(b->desc);
  free(b->target);
  free(b->what);
}

/* Lists the architectures for which this NVRTC compiles. */
static size_t archs_of(kiln_runtime *rt, int out[64])
{
  kiln_nvrtc_info info;
  size_t n, found = 0;

  ck_kiln_ok(kiln_runtime_nvrtc(rt, &info, 1, &n));
  ck_assert_uint_ge(n, 1);
  for (size_t i = 0; i < info.n_archs && found < 64; i++) {
    if (info.archs[i] >= OLDEST)
      out[found++] = info.archs[i];
  }
  ck_assert_uint_gt(found, 5);
  return found;
}

/* Returns the index of the oldest architecture that a specialisation
 * supports. */
static size_t oldest_for(const int *archs, size_t n, int min_cc)
{
  size_t first = 0;

  while (first + 1 < n && archs[first] < min_cc)
    first++;
  return first;
}

static kiln_program_desc describe(const kiln_variant *v)
{
  return (kiln_program_desc){.builtin = v->builtin,
                             .defines = v->defines,
                             .n_defines = length(v->defines),
                             .traits = v->traits,
                             .n_traits = length(v->traits),
                             .names = v->names,
                             .n_names = length(v->names),
                             .no_cache = true};
}

static bool thorough(void)
{
  return getenv("KILN_TEST_THOROUGH") != NULL;
}

START_TEST(shipped_kernels)
{
  kiln_runtime *rt = each_runtime(_i, NULL);
  size_t n_variants;
  const kiln_variant *variants = kiln_variant_list(&n_variants);
  int archs[64];
  const size_t n = archs_of(rt, archs);
  batch b = {0};

  for (size_t v = 0; v < n_variants; v++) {
    const size_t first = oldest_for(archs, n, variants[v].min_cc);

    for (size_t a = first; a < n; a++) {
      kiln_program_desc d = describe(&variants[v]);

      /* By default, a variant is compiled for one architecture with one mode,
       * and both alternate from variant to variant. */
      if (!thorough() && a != first + (v + (size_t)_i) % (n - first))
        continue;
      if (thorough())
        add(&b, &d, archs[a], variants[v].label);
      if (thorough() && (a + v) % 4 != 0)
        continue;
      set_mode(&d, (int)((a + v) % 4));
      add(&b, &d, archs[a], variants[v].label);
    }
  }
  run(&b, rt);
  kiln_runtime_free(rt);
}
END_TEST

static Suite *make_suite(void)
{
  Suite *s = suite_create("cpu_corpus");
  TCase *t = tcase_create("nvrtc");

  tcase_set_timeout(t, 3600);
  tcase_add_loop_test(t, shipped_kernels, 0, each_n);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  if (each_find() == 0)
    return KILN_TEST_SKIP;
  return kiln_test_run(make_suite());
}
