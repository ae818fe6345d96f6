/* bench_calls_table.c -- the table of `kiln bench calls`: a function for each
 * row of bench_calls.def, and the list of these functions. */
#include "bench/bench_calls.h"

static kiln_array f32(CUdeviceptr p)
{
  return (kiln_array){p, KILN_F32};
}

static kiln_array u32(CUdeviceptr p)
{
  return (kiln_array){p, KILN_U32};
}

static kiln_input floats(const calls_data *d)
{
  return (kiln_input){.in = {f32(d->keys)}};
}

static kiln_input keys(const calls_data *d)
{
  return (kiln_input){.in = {u32(d->keys)}};
}

static kiln_gemm_matrix matrix(CUdeviceptr p)
{
  return (kiln_gemm_matrix){.data = p, .type = KILN_F32};
}

/* Returns a user expression, or a copy that no cache has. */
static const char *text(const calls_data *d, const char *expr)
{
  if (d->unseen == 0)
    return expr;
  ++*d->n_texts;
  return kiln__cli_text(d->c, "%s /* %u */", expr, d->unseen);
}

static const float two_and_a_half = 2.5F;
static const kiln_param alpha = {"alpha", KILN_F32, &two_and_a_half, false};

/* clang-format off */

#define MATRIX \
    .x = floats(d), .rows = d->n / 64, .columns = 64, .out = f32(d->out[0])
#define PRODUCT \
    .m = d->n / 64, .n = 64, .k = 64, .alpha = 1, .a = matrix(d->keys), \
    .b = matrix(d->small), .d = matrix(d->out[0])
#define RUNS \
    .x = {.in = {u32(d->sorted)}}, .n = d->n, .values = u32(d->out[0]), \
    .lengths = u32(d->out[1]), .count = u32(d->one[0])
#define LOOKED_FOR \
    .x = keys(d), .predicate = text(d, "x == 123456789"), .n = d->n, \
    .out = u32(d->one[0])

/* clang-format on */

/* Defines a function that calls kiln_OP() with this descriptor, or reports the
 * size of the workspace that the call needs. */
#define CASE(id, label, op, desc_type, ...)                                    \
  static kiln_status id(kiln_stream *stream, const calls_data *d,              \
                        const kiln_workspace *workspace, size_t *bytes)        \
  {                                                                            \
    const desc_type desc = {__VA_ARGS__};                                      \
                                                                               \
    return bytes != NULL ? kiln_##op##_workspace(stream, &desc, bytes)         \
                         : kiln_##op(stream, &desc, workspace);                \
  }
#include "bench/bench_calls.def"

const calls_case kiln__bench_calls_table[] = {
#define CASE(id, label, op, desc_type, ...) {label, id},
#include "bench/bench_calls.def"
    {NULL, NULL},
};
