/* bench.c -- `kiln bench`: which benchmark. */
#include "tool/cli.h"

#include "bench_ops.h"
#include "bench_reduce.h"

#include <stdlib.h>
#include <string.h>

static void help(cli *c, FILE *out)
{
  fputs("usage: kiln bench WHAT [options]\n\n"
        "  reduce    the lectures' reduction ladder and the library's best\n"
        "  calls     first and later calls of every operation, on the host\n"
        "  launch    host cost of a launch beside a bare cuLaunchKernel\n"
        "  start     process start to verified saxpy, cold and warm, beside a\n"
        "            bare program on the driver API\n"
        "  cpu       how fast the CPU device interprets six kernels\n"
        "  passes    ways to gather and scatter beside their cost model\n"
        "  ops       every operation beside CUB, Thrust and cuBLAS, or one "
        "family:\n",
        out);
  fprintf(out, "            %s\n\n", kiln__bench_ops_list(c));
  fputs("Each has --help and --json FILE; all but cpu are meant for a GPU.\n",
        out);
}

static int by_value(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y ? 1 : 0;
}

size_t kiln__cli_sizes(const char *text, unsigned least, unsigned most,
                       unsigned *bits, size_t room)
{
  size_t n = 0;
  char *end;

  do {
    const unsigned long value = strtoul(text, &end, 10);

    if (end == text || value < least || value > most || n == room)
      return 0;
    bits[n++] = (unsigned)value;
    text = end + 1;
  } while (*end == ',');
  return *end == '\0' ? n : 0;
}

double kiln__cli_median(double *values, size_t n)
{
  if (n == 0)
    return 0;
  qsort(values, n, sizeof *values, by_value);
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int kiln__cli_bench(cli *c, int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : NULL;

  if (what != NULL &&
      (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)) {
    help(c, stdout);
    return CLI_OK;
  }
  if (what == NULL)
    return kiln__cli_usage(c,
                           "bench what: reduce, calls, launch, start, cpu, "
                           "passes, ops or %s?",
                           kiln__bench_ops_list(c));
  c->name = kiln__cli_text(c, "bench %s", what);
  argv[1] = kiln__cli_text(c, "kiln bench %s", what);
  if (strcmp(what, "reduce") == 0)
    return kiln__bench_reduce(c, argc - 1, argv + 1);
  if (strcmp(what, "launch") == 0)
    return kiln__cli_bench_launch(c, argc - 1, argv + 1);
  if (strcmp(what, "calls") == 0)
    return kiln__cli_bench_calls(c, argc - 1, argv + 1);
  if (strcmp(what, "start") == 0)
    return kiln__cli_bench_start(c, argc - 1, argv + 1);
  if (strcmp(what, "cpu") == 0)
    return kiln__cli_bench_cpu(c, argc - 1, argv + 1);
  if (strcmp(what, "passes") == 0)
    return kiln__cli_bench_passes(c, argc - 1, argv + 1);
  if (kiln__bench_ops_has(what))
    return kiln__bench_ops(c, what, argc - 1, argv + 1);
  c->name = "bench";
  return kiln__cli_usage(c, "no benchmark \"%s\"", what);
}
