/* bench.c -- `kiln bench`: the table of all benchmarks. */
#include "bench/bench_ops.h"

#include <string.h>

static const struct {
  const char *name;
  cli_command_fn run;
  const char *what;
} benchmarks[] = {
    {"reduce", kiln__bench_reduce,
     "the lectures' steps to a fast reduction, and the library's own"},
    {"calls", kiln__bench_calls,
     "host cost of the first and of later calls of every operation"},
    {"launch", kiln__bench_launch,
     "host cost of a launch beside a bare cuLaunchKernel"},
    {"start", kiln__bench_start,
     "process start to a verified saxpy, beside a bare program"},
    {"cpu", kiln__bench_cpu, "speed of the CPU device on six kernels"},
    {"passes", kiln__bench_passes,
     "cost model of gather and scatter beside measured times"},
    {"gemm", kiln__bench_gemm,
     "matrix products: the steps to a fast one, and the library's beside "
     "cuBLAS"},
    {"stencil", kiln__bench_stencil,
     "convolutions beside a straightforward kernel and a copy"},
    {"julia", kiln__bench_julia,
     "pictures of a Julia set beside a straightforward kernel"},
    {"nbody", kiln__bench_nbody,
     "forces between all pairs of bodies beside the kernel of GPU Gems 3"},
    {"comm", kiln__bench_comm,
     "collectives of groups of ranks beside NCCL, and the scaling of "
     "distributed operations"},
    {"draw", kiln__bench_draw, "pictures of results that --json wrote"},
    {"ops", kiln__bench_ops, "every operation beside CUB, Thrust and cuBLAS"},
};

enum { N_BENCHMARKS = sizeof benchmarks / sizeof benchmarks[0] };

int kiln__cli_bench(cli *c, int argc, char **argv)
{
  const char *list = kiln__bench_ops_list(c), *about = "Measures:\n";
  cli_syntax syntax = {
      .synopsis = "kiln bench BENCHMARK [options]\n",
      .example = "kiln bench sort --sizes 28,24 --json out.json",
      .least = 1,
      .most = -1,
      .missing =
          kiln__cli_text(c,
                         "name a benchmark: reduce, calls, launch, start, "
                         "cpu, passes, gemm, stencil, julia, nbody, "
                         "comm, draw, ops, %s",
                         list),
      .program_follows = true};
  cli_words words;
  int rc;

  for (size_t i = 0; i < N_BENCHMARKS; i++)
    about = kiln__cli_text(c, "%s  %-8s%s\n", about, benchmarks[i].name,
                           benchmarks[i].what);
  syntax.about = kiln__cli_text(
      c,
      "%sEach has --help; a family of operations may stand for ops. All but "
      "cpu and comm are meant for a GPU.\n\nFamilies of "
      "operations: %s.",
      about, list);
  rc = kiln__cli_parse(c, &syntax, argc, argv, &words);
  if (rc != CLI_OK)
    return rc;
  for (size_t i = 0; i < N_BENCHMARKS; i++)
    if (strcmp(words.at[0], benchmarks[i].name) == 0 ||
        (benchmarks[i].run == kiln__bench_ops &&
         kiln__bench_ops_has(words.at[0]))) {
      c->name = kiln__cli_text(c, "bench %s", words.at[0]);
      words.at[0] = kiln__cli_text(c, "kiln %s", c->name);
      return benchmarks[i].run(c, words.n, words.at);
    }
  return kiln__cli_usage(c, "there is no benchmark \"%s\"", words.at[0]);
}
