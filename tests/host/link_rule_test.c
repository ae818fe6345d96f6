/* link_rule_test.c -- which programs are linked from a kernel and the user's
 * expressions, and which are compiled as a whole. */
#include "support.h"

#include "ops/ops.h"

#define FAMILY(name) static const kiln__family of_##name = {#name, NULL, ""}

FAMILY(map);
FAMILY(select);
FAMILY(reduce_any);
FAMILY(scan);
FAMILY(histogram);
FAMILY(gemm_simt);

enum { FLOAT_PARAMETER = 1, CONSTANT = 2, FAST_MATH = 4 };

typedef struct rule_case {
  const kiln__family *family;
  kiln_dtype type; /* of the input, the map's result and the operation */
  const char *map; /* or NULL */
  const char *op;  /* or NULL; "sum" and "prod" are predefined */
  const char *predicate, *second; /* further expressions over elements */
  const char *preamble;
  int flags;
  bool links;
} rule_case;

static const char hash[] = "__device__ unsigned hash(unsigned k)\n"
                           "{\n  return (k ^ k >> 16) * 0x45d9f3bu + 1;\n}\n";
static const char root[] = "__device__ float root(float v)\n"
                           "{\n  return sqrtf(v) * 2 + 1;\n}\n";
static const char loop[] = "__device__ int f(int k)\n"
                           "{\n  while (k > 9)\n    k /= 2;\n  return k;\n}\n";

static const rule_case cases[] = {
    /* one expression per element, whose result the kernel moves */
    {&of_map, KILN_F32, "x * 2 + 1", 0, 0, 0, 0, 0, true},
    {&of_map, KILN_F32, "x * alpha + 1", 0, 0, 0, 0, FLOAT_PARAMETER, true},
    {&of_map, KILN_F32, "expf(x) + 1", 0, 0, 0, 0, 0, true},
    {&of_map, KILN_F32, "root(x)", 0, 0, 0, root, 0, true},
    {&of_select, KILN_F32, 0, 0, "x * x + 1 < 2", 0, 0, 0, true},
    /* a product that two elements share */
    {&of_map, KILN_F32, "alpha * alpha + x", 0, 0, 0, 0, FLOAT_PARAMETER,
     false},
    {&of_map, KILN_F32, "alpha * alpha + x", 0, 0, 0, 0,
     FLOAT_PARAMETER | CONSTANT, true},
    {&of_map, KILN_F32, "expf(alpha) + x", 0, 0, 0, 0, FLOAT_PARAMETER, false},
    {&of_map, KILN_F32, "root(alpha) + x", 0, 0, 0, root, FLOAT_PARAMETER,
     false},
    {&of_map, KILN_F32, "x_at(i + 1) * 2 + x", 0, 0, 0, 0, 0, false},
    {&of_map, KILN_F32, "x_at(i) > x", 0, 0, 0, 0, 0, true},
    {&of_select, KILN_F32, 0, 0, "x * x + 1 < 2", "x * x + 2 < 9", 0, 0, false},
    {&of_select, KILN_I32, 0, 0, "x * x + 1 < 2", "x * x + 2 < 9", 0, 0, true},
    /* products that meet sums across expressions and kernel */
    {&of_reduce_any, KILN_F32, "x * x", "sum", 0, 0, 0, 0, false},
    {&of_reduce_any, KILN_F32, "x / 3", "sum", 0, 0, 0, 0, false},
    {&of_reduce_any, KILN_F32, "sqrtf(x)", "sum", 0, 0, 0, 0, false},
    {&of_reduce_any, KILN_F32, "x > 0 ? x : 0", "sum", 0, 0, 0, 0, true},
    {&of_reduce_any, KILN_F32, "fabsf(x)", "sum", 0, 0, 0, 0, true},
    {&of_reduce_any, KILN_I32, "x * x", "sum", 0, 0, 0, 0, true},
    {&of_reduce_any, KILN_I32, "x * 0.5f", "sum", 0, 0, 0, 0, false},
    {&of_reduce_any, KILN_F32, "x * x", "prod", 0, 0, 0, 0, true},
    {&of_reduce_any, KILN_F32, "x + 1", "prod", 0, 0, 0, 0, false},
    {&of_reduce_any, KILN_F32, 0, "a + b", 0, 0, 0, 0, true},
    {&of_reduce_any, KILN_F32, "x * x", "a + b", 0, 0, 0, 0, false},
    {&of_reduce_any, KILN_F32, 0, "a * b + a", 0, 0, 0, 0, false},
    {&of_reduce_any, KILN_U32, "hash(x)", "a ^ b", 0, 0, hash, 0, true},
    {&of_scan, KILN_F64, 0, "fmax(a, b)", 0, 0, 0, 0, true},
    {&of_scan, KILN_F64, 0, "log(exp(a) + exp(b))", 0, 0, 0, 0, false},
    {&of_histogram, KILN_F32, "x - 1", 0, 0, 0, 0, 0, false},
    {&of_histogram, KILN_U32, "x >> 24", 0, 0, 0, 0, 0, true},
    /* where arithmetic may be the limit, and where nothing is gained */
    {&of_gemm_simt, KILN_F32, 0, 0, "x + 1", 0, 0, 0, false},
    {&of_map, KILN_F32, "sinf(x) + cosf(x) + expf(x)", 0, 0, 0, 0, 0, false},
    {&of_map, KILN_I32, "f(x)", 0, 0, 0, loop, 0, false},
    {&of_map, KILN_I32, "x + 1", 0, 0, 0, "#include <cuda_fp16.h>\n", 0, false},
    {&of_map, KILN_F32, "x + 1", 0, 0, 0, 0, FAST_MATH, false},
    {&of_select, KILN_U32, 0, 0, "x0", 0, 0, 0, false},
    {&of_reduce_any, KILN_F32, 0, "sum", 0, 0, 0, 0, false},
    /* numbers, comments and names are no operators */
    {&of_reduce_any, KILN_F32, "x * 1e-3f", "prod", 0, 0, 0, 0, true},
    {&of_reduce_any, KILN_F32, "x /* * */ // /\n", "a + b", 0, 0, 0, 0, true},
    {&of_map, (kiln_dtype)999, "x + 1", 0, 0, 0, 0, 0, false},
};

enum { N_CASES = sizeof cases / sizeof cases[0] };

static kiln_op op_of(const char *text)
{
  if (strcmp(text, "sum") == 0)
    return (kiln_op){.name = KILN_SUM};
  if (strcmp(text, "prod") == 0)
    return (kiln_op){.name = KILN_PROD};
  return (kiln_op){.expr = text, .identity = "0"};
}

START_TEST(test_rule)
{
  const rule_case *c = &cases[_i];
  const float value = 2;
  const kiln_param alpha = {"alpha", KILN_F32, &value,
                            (c->flags & CONSTANT) != 0};
  const kiln_code code = {.preamble = c->preamble,
                          .params = &alpha,
                          .n_params = (c->flags & FLOAT_PARAMETER) != 0,
                          .fast_math = (c->flags & FAST_MATH) != 0};
  const kiln_input input = {
      .in = {{256, c->type}}, .map = c->map, .type = c->type};
  const kiln_op op = op_of(c->op == NULL ? "" : c->op);
  const kiln__spec spec = {
      .family = c->family,
      .input = &input,
      .op = c->op == NULL ? NULL : &op,
      .acc = c->op == NULL ? KILN_DTYPE_NONE : c->type,
      .function = {{"first", "first", c->predicate, "bool", NULL, NULL},
                   {"second", "second", c->second, "bool", NULL, NULL}},
      .code = &code,
      .quick = true};

  ck_assert_msg(kiln__links(&spec, KILN__LINK_ALWAYS) == c->links,
                "%s, map %s, operation %s, predicate %s", c->family->builtin,
                c->map, c->op, c->predicate);
}
END_TEST

/* The calls of expressions must not be the limit: maps of narrow elements and
 * other operations link only in the lower size classes. */
START_TEST(test_cost)
{
  static const struct {
    kiln_dtype type;
    bool op;
    uint64_t elements; /* 0 if unknown */
    bool links;
  } costs[] = {{KILN_F32, false, 0, true},
               {KILN_F64, false, UINT64_C(1) << 40, true},
               {KILN_F16, false, 0, false},
               {KILN_F16, false, KILN__MEDIUM_MOST, true},
               {KILN_U8, false, 0, false},
               {KILN_U8, false, KILN__MEDIUM_MOST + 1, false},
               {KILN_U8, false, KILN__MEDIUM_MOST, true},
               {KILN_F32, true, 0, false},
               {KILN_F32, true, KILN__TINY_MOST + 1, false},
               {KILN_F32, true, KILN__TINY_MOST, true},
               {KILN_U8, true, 1, false}};

  for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
    const kiln_input input = {.in = {{256, costs[i].type}}, .map = "x > 1"};
    const kiln_op op = {.expr = "a > b ? a : b", .identity = "0"};
    const kiln__spec spec = {.family = costs[i].op ? &of_scan : &of_map,
                             .input = &input,
                             .op = costs[i].op ? &op : NULL,
                             .acc =
                                 costs[i].op ? costs[i].type : KILN_DTYPE_NONE,
                             .elements = costs[i].elements};

    ck_assert(!kiln__links(&spec, KILN__LINK_NEVER));
    ck_assert_msg(kiln__links(&spec, KILN__LINK_CHEAP) == costs[i].links,
                  "row %zu", i);
  }
}
END_TEST

static Suite *make(void)
{
  Suite *s = suite_create("link_rule");
  TCase *t = tcase_create("link_rule");

  tcase_add_loop_test(t, test_rule, 0, N_CASES);
  tcase_add_test(t, test_cost);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  return kiln_test_run(make());
}
