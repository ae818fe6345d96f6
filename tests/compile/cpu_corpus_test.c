/* cpu_corpus_test.c -- tests that the CPU device loads the PTX that each NVRTC
 * generates for the shipped kernels with -G, with line numbers, and with fast math.
 * kernels_test.c does the same without options.
 *
 * By default, every specialisation is compiled once, and the NVRTCs, architectures
 * and options alternate. KILN_TEST_THOROUGH=1 compiles for every architecture with
 * every NVRTC.
 *
 * KILN_TEST_NVRTC lists the libraries, separated by colons. Without it, the
 * test uses the libraries that discovery finds. */
#include "variants.h"

static unsigned long instructions;

static void load(kiln_image *image, const kiln_variant *v,
                 const kiln_target *target)
{
  instructions += load_on_cpu(image, v, target);
}

/* Selects one of three sets of compiler options, 1 to 3. */
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

      if (is_thorough() ? (a + v) % 4 == 0
                        : v % (size_t)each_n != (size_t)_i ||
                              a != first + v % (n - first))
        continue;
      set_mode(&d, 1 + (int)((a + v / (size_t)each_n) % 3));
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
