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
#include "variants.h"

#include "cpu/code/code.h"

static unsigned long instructions;

/* Loads the PTX of an image and counts its instructions. */
static void load(kiln_image *image, const kiln_variant *v,
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
  instructions += n;
  kiln__cpu_program_free(program);
}

/* Selects one of four sets of compiler options. */
static void set_mode(kiln_program_desc *d, int mode)
{
  d->debug = mode == 1;
  d->lineinfo = mode == 2;
  d->fast_math = mode == 3;
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

START_TEST(shipped_kernels)
{
  kiln_runtime *rt = each_runtime(_i, NULL);
  size_t n_variants;
  const kiln_variant *variants = kiln_variant_list(&n_variants);
  int archs[MOST_ARCHS];
  const size_t n = archs_of(rt, archs);
  batch b = {0};

  for (size_t v = 0; v < n_variants; v++) {
    const size_t first = oldest_for(archs, n, variants[v].min_cc);

    for (size_t a = first; a < n; a++) {
      const kiln_target target = {.cc = archs[a], .ptx = true};
      kiln_program_desc d = describe(&variants[v]);

      /* By default, a variant is compiled for one architecture with one mode,
       * and both alternate from variant to variant. */
      if (!is_thorough() && a != first + (v + (size_t)_i) % (n - first))
        continue;
      if (is_thorough())
        add(&b, &variants[v], d, target);
      if (is_thorough() && (a + v) % 4 != 0)
        continue;
      set_mode(&d, (int)((a + v) % 4));
      add(&b, &variants[v], d, target);
    }
  }
  printf("%zu programs, ", b.n);
  compile_batch(&b, rt, load);
  printf("%lu instructions\n", instructions);
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
