/* bench_inputs.c -- the inputs of the benchmarks of operations, the draws of
 * `kiln bench ops --random`, and the worst cell of each case. */
#include "bench/bench_ops.h"

#include <math.h>
#include <stdlib.h>

/* ---- Inputs -------------------------------------------------------------- */

const char *kiln__bench_input_name(bench_input_kind kind)
{
  static const char *const names[] = {
#define INPUT_NAME(id, name, function) name,
      BENCH_INPUTS(INPUT_NAME)
#undef INPUT_NAME
  };

  return names[kind];
}

/* The ranks of Zipf's law with exponent 1 are spread evenly over the logarithm,
 * so 2^(20 u) is such a rank for a uniform u. Mixing the rank scatters the
 * numbers. */
#define FUNCTIONS                                                              \
  "typedef unsigned long long word;\n"                                         \
  "__device__ word mixed(word v, word seed)\n"                                 \
  "{\n"                                                                        \
  "  v ^= seed;\n"                                                             \
  "  v = (v ^ v >> 33) * 0xff51afd7ed558ccdull;\n"                             \
  "  v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53ull;\n"                             \
  "  return v ^ v >> 33;\n"                                                    \
  "}\n"                                                                        \
  "__device__ word zipf_of(word v, word seed)\n"                               \
  "{\n"                                                                        \
  "  const float u = (mixed(v, seed) >> 40) * 0x1p-24f;\n"                     \
  "  return mixed((word)exp2f(20 * u), seed + 1);\n"                           \
  "}\n"                                                                        \
  "__device__ word few_of(word v, word seed)\n"                                \
  "{\n"                                                                        \
  "  return mixed(mixed(v, seed) % 5, seed + 1);\n"                            \
  "}\n"                                                                        \
  "__device__ word near_of(word v, word seed)\n"                               \
  "{\n"                                                                        \
  "  return v + (mixed(v, seed) & 63);\n"                                      \
  "}\n"                                                                        \
  "#define zipf(v) zipf_of((v), seed)\n"                                       \
  "#define near(v) near_of((v), seed)\n"

kiln_status kiln__bench_fill_input(kiln_stream *stream, CUdeviceptr to,
                                   kiln_dtype type, uint64_t n,
                                   const char *expr, const bench_input *input)
{
  static const char *const preambles[] = {
#define INPUT_PREAMBLE(id, name, function)                                     \
  FUNCTIONS "#define hash(v) " function "((v), seed)\n",
      BENCH_INPUTS(INPUT_PREAMBLE)
#undef INPUT_PREAMBLE
  };
  static const bench_input usual = {BENCH_UNIFORM, 0};
  const bench_input *in = input == NULL ? &usual : input;
  const kiln_param params[] = {{"n", KILN_U64, &n, false},
                               {"seed", KILN_U64, &in->seed, false}};
  const kiln_map_desc desc = {.out = {{to, type}},
                              .expr = {expr},
                              .n = n,
                              .code = {.preamble = preambles[in->kind],
                                       .params = params,
                                       .n_params = 2}};

  return kiln_map(stream, &desc, NULL);
}

kiln_status kiln__bench_ops_fill(const bench_ops *b, CUdeviceptr to,
                                 kiln_dtype type, uint64_t n, const char *expr)
{
  return kiln__bench_fill_input(b->rig.stream, to, type, n, expr, &b->input);
}

/* ---- Draws --------------------------------------------------------------- */

/* Returns the next 64 bits of a generator (SplitMix64; Steele, Lea and Flood,
 * Fast Splittable Pseudorandom Number Generators, 2014). */
static uint64_t next_bits(uint64_t *state)
{
  uint64_t v = *state += UINT64_C(0x9e3779b97f4a7c15);

  v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
  return v ^ v >> 31;
}

/* Draws the number of elements, whose logarithm is uniform, and the input. The
 * number is even, since some cases halve it. */
void kiln__bench_draw_cell(bench_ops *b, const cli_sizes *sizes,
                           uint64_t *state)
{
  unsigned least = sizes->bits[0], most = least;
  double log2_n;

  for (size_t i = 1; i < sizes->n; i++) {
    least = sizes->bits[i] < least ? sizes->bits[i] : least;
    most = sizes->bits[i] > most ? sizes->bits[i] : most;
  }
  log2_n =
      least + (most - least) * ((double)(next_bits(state) >> 11) * 0x1p-53);
  b->n = (uint64_t)exp2(log2_n);
  for (size_t size = 4; size < kiln_dtype_size(b->now->type); size *= 2)
    b->n /= 2;
  b->n &= ~UINT64_C(1);
  b->input.kind = (bench_input_kind)(next_bits(state) % BENCH_INPUT_KINDS);
  b->input.seed = next_bits(state);
}

/* ---- The worst cell of each case ----------------------------------------- */

bool kiln__bench_note(bench_rows *rows, const bench_ops *b, double ratio)
{
  bench_row *row = rows->n > 0 ? &rows->row[rows->n - 1] : NULL;

  if (row == NULL || row->of != b->now) {
    row = realloc(rows->row, (rows->n + 1) * sizeof *row);
    if (row == NULL)
      return false;
    rows->row = row;
    row += rows->n++;
    *row = (bench_row){.of = b->now, .worst = INFINITY};
  }
  row->cells++;
  row->log_sum += log(ratio);
  if (ratio < row->worst) {
    row->worst = ratio;
    row->n = b->n;
    row->input = b->input.kind;
  }
  rows->cells++;
  rows->log_sum += log(ratio);
  rows->below += ratio < BENCH_LEAST_RATIO;
  return true;
}

static cJSON *row_json(const bench_row *row)
{
  cJSON *j = cJSON_CreateObject();

  JSON_TEXT(j, "case", row->of->label);
  JSON_TEXT(j, "type", kiln_dtype_name(row->of->type));
  JSON_NUMBER(j, "cells", row->cells);
  JSON_NUMBER(j, "mean_ratio", exp(row->log_sum / row->cells));
  JSON_NUMBER(j, "worst_ratio", row->worst);
  JSON_NUMBER(j, "worst_n", row->n);
  JSON_TEXT(j, "worst_input", kiln__bench_input_name(row->input));
  return j;
}

void kiln__bench_print_rows(const bench_rows *rows, cli *c, cJSON *json)
{
  static const char *const heads[] = {"worst cells", "type", ">cells", ">mean",
                                      ">worst",      ">n",   "input",  NULL};
  cJSON *list = cJSON_AddArrayToObject(json, "worst");
  cli_table table;

  if (rows->cells == 0)
    return;
  kiln__cli_table(&table, c, heads);
  for (size_t k = 0; k < rows->n; k++) {
    const bench_row *row = &rows->row[k];

    kiln__cli_cells(&table, "%s\t%s\t%u\t%.2fx\t%.2fx\t%llu\t%s",
                    row->of->label, kiln_dtype_name(row->of->type), row->cells,
                    exp(row->log_sum / row->cells), row->worst,
                    (unsigned long long)row->n,
                    kiln__bench_input_name(row->input));
    cJSON_AddItemToArray(list, row_json(row));
  }
  printf("\n");
  kiln__cli_table_print(&table, 2);
  printf("%u cells: geometric mean %.2fx, %u below %.2fx\n", rows->cells,
         exp(rows->log_sum / rows->cells), rows->below, BENCH_LEAST_RATIO);
}
