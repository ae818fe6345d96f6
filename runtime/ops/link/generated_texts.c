/* generated_texts.c -- generates the two sources of a linked program: the
 * kernel's header, and the program of the user's expressions.
 *
 * Problem: an expression that is not inlined costs a call and a return, the moves
 * of its operands, and the latency of both. Kernels with one call per element
 * thus needed 1.0 to 3.3 times as long as whole programs on an H200.
 *
 * Idea: each expression has several external functions. One evaluates a single
 * element or pair of operands. The others evaluate a batch, whose values and
 * results are passed in registers:
 *   kiln__text_NAME_all   independent elements of a vector, or pairs a and b
 *   kiln__text_NAME_run   a run of the operation: a, a op b0, (a op b0) op b1, ...
 * A vector of the kernel keeps the results of a batch until NAME_at() asks for
 * them, so kernels call NAME_at() as in whole programs. Pairs are evaluated by
 * user::NAME_all(), and by the overloads of kiln::each() and kiln::run() for
 * user::op (prelude.cuh). A kernel that treats batches in another way tests
 * KILN_LINKED.
 *
 * Invariant: the results are those of single calls in the same order. Kernels
 * evaluate NAME_at() for the elements of a vector in ascending order, from
 * element 0 on.
 *
 * Cost: the functions of batches make the expressions' program slower to
 * compile, so only the batches that a kernel uses are generated. */
#include "../generator.h"

#include <string.h>

enum {
  /* Registers for the values of a batch */
  MOST_WORDS = 16,
  /* Pairs per call; half as many of 8 bytes */
  PAIRS = 4
};

/* ---- Values of the call -------------------------------------------------- */

/* A form in which the values of kiln__args occur: as parameters of an external
 * function, as arguments of a call, or as assignments to a kiln__args. */
typedef enum form { DECLARED, PASSED, ASSIGNED } form;

/* Adds a value. `from` is the expression that the kernel passes, and the
 * expressions' program reads the member `prefix` followed by `to`. */
static void add_value(kiln__buf *out, form how, const char *type, size_t number,
                      const char *from, const char *prefix, const char *to)
{
  if (how == DECLARED)
    kiln__buf_format(out, ", const %s kiln__v%zu", type, number);
  else if (how == PASSED)
    kiln__buf_format(out, ", %s", from);
  else
    kiln__buf_format(out, "  kiln__s.%s%s = kiln__v%zu;\n", prefix, to, number);
}

/* Adds the values of kiln__args that an external function receives. */
static void add_values(const kiln__generator *g, kiln__buf *out, form how,
                       const kiln__function *f)
{
  char type[64], from[64];
  size_t number = 0;

  for (size_t k = 0; k < g->n_params; k++) {
    const kiln_param *p = &g->spec->code->params[k];

    if (p->constant)
      continue;
    kiln__format(from, sizeof from, "kiln::widen(s.p_%zu)", k);
    add_value(out, how, kiln__compute_text(p->type).c, number++, from, "p_",
              p->name);
  }
  if (!kiln__gen_is_elementwise(f))
    return;
  for (size_t k = 0; k < g->n_arrays && kiln__gen_reads_neighbours(g); k++) {
    kiln__format(type, sizeof type, "%s *",
                 kiln__storage_text(g->spec->input->in[k].type).c);
    kiln__format(from, sizeof from, "s.x%zu", k);
    add_value(out, how, type, number++, from, "", from + 2);
  }
  if (g->spec->width != 0) {
    add_value(out, how, "kiln__index", number++, "s.kiln__width", "",
              "kiln__width");
    add_value(out, how, "kiln__index", number++, "s.kiln__reciprocal", "",
              "kiln__reciprocal");
  }
}

/* Removes the comma before the first item of a list that begins at `at`. */
static void drop_comma(kiln__buf *out, size_t at)
{
  if (!out->failed && at < out->size && out->data[at] == ',')
    out->data[at] = ' ';
}

/* ---- Functions of one element or pair ------------------------------------ */

static void add_external(const kiln__generator *g, kiln__buf *out,
                         const kiln__function *f)
{
  size_t begin;

  kiln__buf_format(out,
                   "extern \"C\" __device__ kiln__%s_result kiln__text_%s(",
                   f->name, f->name);
  begin = out->size;
  add_values(g, out, DECLARED, f);
  kiln__gen_operands(g, out, f);
  drop_comma(out, begin);
  kiln__buf_text(out, ")");
}

/* Adds the declaration of an external function and the function by which the
 * kernel calls it. */
static void add_external_call(const kiln__generator *g, const kiln__function *f)
{
  kiln__buf *out = g->types;
  size_t begin;

  add_external(g, out, f);
  kiln__buf_format(
      out,
      ";\nnamespace kiln__texts\n{\ntemplate <class... V>\n" KILN__INLINE
      "kiln__%s_result kiln__%s(const kiln__args &s, V... v)\n"
      "{\n  (void)s;\n  return kiln__text_%s(",
      f->name, f->name, f->name);
  begin = out->size;
  add_values(g, out, PASSED, f);
  kiln__buf_text(out, ", v...");
  drop_comma(out, begin);
  kiln__buf_text(out, ");\n}\n} // namespace kiln__texts\n");
}

/* ---- Batches ------------------------------------------------------------- */

/* What an external function evaluates at a time: elements of all arrays, pairs
 * of operands, or a run of the operation. */
typedef enum batch { ELEMENTS, PAIRWISE, RUN } batch;

static const char *suffix_of(batch how)
{
  return how == RUN ? "run" : "all";
}

static unsigned width_of(const kiln__generator *g, batch how)
{
  return how == ELEMENTS ? g->batch : g->pairs;
}

/* Results of type bool are bits of a word. */
static bool is_mask(const kiln__function *f)
{
  return strcmp(f->result, "bool") == 0;
}

/* Returns whether an expression has the operands a and b. */
static bool is_pairwise(const kiln__function *f)
{
  return f->parameters == NULL && f->operand != NULL && f->operand[0] != '\0';
}

static bool is_operation(const kiln__function *f)
{
  return strcmp(f->name, "operation") == 0;
}

/* The batches of pairs that kernels use. Others are not generated, since each one
 * makes the program of the expressions slower to compile. */
static const struct {
  const char *family, *function;
  batch how;
} used[] = {{"reduce_any", "operation", PAIRWISE},
            {"scan", "operation", RUN},
            {"select", "equal", PAIRWISE},
            {"run_length", "equal", PAIRWISE}};

/* Returns whether an expression is evaluated in batches, and how. */
static bool has_batch(const kiln__generator *g, const kiln__function *f,
                      batch *how)
{
  *how = ELEMENTS;
  if (kiln__gen_is_elementwise(f))
    return g->batch > 0;
  for (size_t k = 0; k < sizeof used / sizeof used[0]; k++)
    if (is_pairwise(f) &&
        strcmp(g->spec->family->builtin, used[k].family) == 0 &&
        strcmp(f->name, used[k].function) == 0) {
      *how = used[k].how;
      return true;
    }
  return false;
}

static void add_batch_type(const kiln__generator *g, kiln__buf *out,
                           const kiln__function *f)
{
  if (is_mask(f))
    kiln__buf_format(out, "typedef unsigned kiln__%s_batch;\n", f->name);
  else
    kiln__buf_format(out,
                     "struct kiln__%s_batch {\n  kiln__%s_result v[%u];\n};\n",
                     f->name, f->name, is_pairwise(f) ? g->pairs : g->batch);
}

static void add_batch_operands(const kiln__generator *g, kiln__buf *out,
                               const kiln__function *f, batch how)
{
  for (size_t k = 0; how == ELEMENTS && k < g->n_arrays; k++)
    for (unsigned j = 0; j < g->batch; j++)
      kiln__buf_format(out, ", const %s kiln__x%zu_%u",
                       kiln__gen_array_type(g, k).c, k, j);
  if (how == ELEMENTS) {
    kiln__buf_text(out, ", const kiln__index i");
    return;
  }
  for (unsigned j = 0; j < (how == RUN ? 1 : g->pairs); j++)
    kiln__buf_format(out, ", const kiln__%s_operand kiln__a%u", f->name, j);
  for (unsigned j = 0; j < g->pairs; j++)
    kiln__buf_format(out, ", const kiln__%s_operand kiln__b%u", f->name, j);
}

/* Adds the head of the external function that evaluates a batch. */
static void add_batch_external(const kiln__generator *g, kiln__buf *out,
                               const kiln__function *f, batch how)
{
  size_t begin;

  kiln__buf_format(out,
                   "extern \"C\" __device__ kiln__%s_batch kiln__text_%s_%s(",
                   f->name, f->name, suffix_of(how));
  begin = out->size;
  add_values(g, out, DECLARED, f);
  add_batch_operands(g, out, f, how);
  drop_comma(out, begin);
  kiln__buf_text(out, ")");
}

/* Adds the call of a batch by the kernel, except its operands. Returns the size
 * of the header before the arguments. */
static size_t begin_call(const kiln__generator *g, const kiln__function *f,
                         batch how)
{
  size_t begin;

  kiln__buf_format(g->types, "    const kiln__%s_batch r = kiln__text_%s_%s(",
                   f->name, f->name, suffix_of(how));
  begin = g->types->size;
  add_values(g, g->types, PASSED, f);
  return begin;
}

/* Adds the statements that store n results of a call in an array. `at` is the
 * index of the first result, and `around` follows the index. */
static void end_call(const kiln__generator *g, const kiln__function *f,
                     unsigned n, size_t begin, const char *to, const char *at,
                     const char *around)
{
  drop_comma(g->types, begin);
  kiln__buf_text(g->types, ");\n");
  for (unsigned j = 0; j < n; j++)
    kiln__buf_format(g->types,
                     is_mask(f) ? "    %s[(%s + %u)%s] = (r >> %u & 1u) != 0;\n"
                                : "    %s[(%s + %u)%s] = r.v[%u];\n",
                     to, at, j, around, j);
}

/* Adds the head of a function of the kernel that evaluates n pairs, or a run of
 * n results, and stores the results in an array. */
static void add_wrapper_head(const kiln__generator *g, const kiln__function *f,
                             batch how, const char *n)
{
  char first[32] = "a";

  if (how != RUN)
    kiln__format(first, sizeof first, "(&a)[%s]", n);
  kiln__buf_format(
      g->types,
      KILN__INLINE "void %s_%s(const args &s, const %s_operand %s, const "
                   "%s_operand (&b)[%s], %s_result (&to)[%s])\n"
                   "{\n  (void)s;\n",
      f->name, suffix_of(how), f->name, first, f->name, n, f->name, n);
}

/* Adds the call that evaluates the pairs from `first` on. If there are fewer than
 * n pairs, the call repeats the last one. */
static void add_pairs_call(const kiln__generator *g, const kiln__function *f,
                           batch how, unsigned first, unsigned n)
{
  const unsigned last = n - 1;
  kiln__buf *out = g->types;
  char at[16];
  size_t begin;

  kiln__buf_text(out, "  {\n");
  begin = begin_call(g, f, how);
  if (how == RUN && first == 0)
    kiln__buf_text(out, ", a");
  else if (how == RUN)
    kiln__buf_format(out, ", to[%u]", first - 1);
  for (unsigned j = 0; how != RUN && j < g->pairs; j++)
    kiln__buf_format(out, ", a[%u]", first + j < n ? first + j : last);
  for (unsigned j = 0; j < g->pairs; j++)
    kiln__buf_format(out, ", b[%u]", first + j < n ? first + j : last);
  kiln__format(at, sizeof at, "%u", first);
  n -= first;
  end_call(g, f, n < g->pairs ? n : g->pairs, begin, "to", at, "");
  kiln__buf_text(out, "  }\n");
}

/* The numbers of pairs that have overloads without a loop. Programs that are
 * compiled with less optimisation would keep the arrays of a loop in local
 * memory. */
static const unsigned unrolled[] = {2, 3, 4, 8, 16};

enum { N_UNROLLED = sizeof unrolled / sizeof unrolled[0] };

/* Adds user::NAME_all(s, a, b, to) or user::NAME_run(s, a, b, to). */
static void add_pairs_wrapper(const kiln__generator *g, const kiln__function *f,
                              batch how)
{
  kiln__buf *out = g->types;

  kiln__buf_text(out, "namespace user\n{\n");
  for (size_t i = 0; i < N_UNROLLED; i++) {
    char n[16];

    kiln__format(n, sizeof n, "%u", unrolled[i]);
    add_wrapper_head(g, f, how, n);
    for (unsigned k = 0; k < unrolled[i]; k += g->pairs)
      add_pairs_call(g, f, how, k, unrolled[i]);
    kiln__buf_text(out, "}\n");
  }
  kiln__buf_text(out, "template <unsigned n>\n");
  add_wrapper_head(g, f, how, "n");
  kiln__buf_format(out,
                   "#pragma unroll\n  for (unsigned k = 0; k < n; ++k)\n"
                   "    to[k] = kiln__texts::kiln__%s(s, %s, b[k]);\n"
                   "}\n} // namespace user\n",
                   f->name,
                   how == RUN ? "k == 0 ? a : to[k == 0 ? 0 : k - 1]" : "a[k]");
}

/* Adds the declarations of the external functions of an expression. */
static void declare(const kiln__generator *g, const kiln__function *f)
{
  batch how;

  add_external_call(g, f);
  if (!has_batch(g, f, &how))
    return;
  add_batch_type(g, g->types, f);
  add_batch_external(g, g->types, f, how);
  kiln__buf_text(g->types, ";\n");
  if (how != ELEMENTS)
    add_pairs_wrapper(g, f, how);
}

/* Adds the results of expressions that a vector keeps. */
void kiln__gen_kept_results(const kiln__generator *g)
{
  for (size_t k = 0; k < g->n_texts && g->batch > 0; k++)
    if (kiln__gen_is_elementwise(&g->text[k]))
      kiln__buf_format(g->types, "  mutable %s_result kiln__%s[n];\n",
                       g->text[k].name, g->text[k].name);
}

static const kiln__function *function_of(const kiln__generator *g,
                                         const char *name)
{
  size_t k = 0;

  while (strcmp(g->text[k].name, name) != 0)
    k++;
  return &g->text[k];
}

/* Adds the function NAME_at(s, p, e, i). It evaluates a batch when its first
 * element is asked for. Vectors of fewer elements than a batch are evaluated
 * element by element. */
void kiln__gen_batch_wrapper(const kiln__generator *g, const char *name)
{
  const kiln__function *f = function_of(g, name);
  kiln__buf *out = g->types;
  char kept[64];
  size_t begin;

  kiln__buf_format(out,
                   "template <unsigned n>\n" KILN__INLINE
                   "%s_result %s_at(const args &s, const vector<n> &p, "
                   "unsigned e, index i)\n{\n  if (n %% %u != 0)\n"
                   "    return kiln__texts::kiln__%s(s",
                   name, name, g->batch, name);
  for (size_t k = 0; k < g->n_arrays; k++)
    kiln__buf_format(out, ", p.x%zu[e]", k);
  kiln__buf_format(out, ", i + e);\n  if (e %% %u == 0) {\n", g->batch);
  begin = begin_call(g, f, ELEMENTS);
  for (size_t k = 0; k < g->n_arrays; k++)
    for (unsigned j = 0; j < g->batch; j++)
      kiln__buf_format(out, ", p.x%zu[(e + %u) %% n]", k, j);
  kiln__buf_text(out, ", i + e");
  kiln__format(kept, sizeof kept, "p.kiln__%s", name);
  end_call(g, f, g->batch, begin, kept, "e", " % n");
  kiln__buf_format(out, "  }\n  return p.kiln__%s[e];\n}\n", name);
}

/* Adds the overload of kiln::each() or kiln::run() for the operation. */
void kiln__gen_op_batches(const kiln__generator *g)
{
  batch how;

  if (!g->linked || !has_batch(g, function_of(g, "operation"), &how))
    return;
  kiln__buf_format(g->types,
                   "template <unsigned n>\n" KILN__INLINE
                   "void %s(const op &f, const acc %s, const acc (&b)[n], acc "
                   "(&to)[n])\n{\n  operation_%s(f.s, a, b, to);\n}\n",
                   how == RUN ? "run" : "each", how == RUN ? "a" : "(&a)[n]",
                   suffix_of(how));
}

/* ---- The program of the expressions -------------------------------------- */

/* Adds the struct kiln__args of the expressions' program. It has the values that
 * the external functions receive. */
static void add_args(const kiln__generator *g, kiln__buf *out)
{
  kiln__buf_text(out, "struct args {\n");
  for (size_t k = 0; k < g->n_arrays && kiln__gen_reads_neighbours(g); k++)
    kiln__buf_format(out, "  const %s *x%zu;\n",
                     kiln__storage_text(g->spec->input->in[k].type).c, k);
  for (size_t k = 0; k < g->n_params; k++) {
    const kiln_param *p = &g->spec->code->params[k];

    if (!p->constant)
      kiln__buf_format(out, "  %s p_%s;\n", kiln__compute_text(p->type).c,
                       p->name);
  }
  kiln__buf_text(out, "  index kiln__width, kiln__reciprocal;\n};\n"
                      "} // namespace user\ntypedef user::args kiln__args;\n"
                      "typedef user::index kiln__index;\n");
}

/* Returns whether an expression or the preamble uses a function of Kiln. */
static bool uses_kiln(const kiln__generator *g)
{
  const kiln_code *code = g->spec->code;

  for (size_t k = 0; k < g->n_texts; k++)
    if (strstr(g->text[k].expr, "kiln::") != NULL)
      return true;
  return code != NULL && code->preamble != NULL &&
         strstr(code->preamble, "kiln::") != NULL;
}

/* Adds the declarations of the expressions' program. The headers of the kernels
 * are included only if they are used, since they take 5 ms to compile. */
static void add_types(const kiln__generator *g)
{
  kiln__buf *out = g->texts;
  bool headers = kiln__gen_reads_neighbours(g) || uses_kiln(g);

  for (size_t k = 0; k < g->n_params; k++)
    headers |= g->spec->code->params[k].constant;
  if (headers)
    kiln__buf_text(out, "#define KILN_READ_ONLY 0\n#include "
                        "<kiln/types.cuh>\n#include <kiln/activation.cuh>\n");
  kiln__buf_text(out,
                 "#ifndef INFINITY\n#define INFINITY "
                 "__int_as_float(0x7f800000)\n#endif\n#ifndef NAN\n#define "
                 "NAN __int_as_float(0x7fffffff)\n#endif\n");
  kiln__gen_value_types(g, out);
  add_args(g, out);
  kiln__gen_readers(g, out);
  kiln__gen_rows(g, out);
  kiln__gen_function_types(g, out);
}

/* Adds the head of an external function's definition. */
static void open_external(const kiln__generator *g, const kiln__function *f)
{
  add_external(g, g->texts, f);
  kiln__buf_text(g->texts, "\n{\n  kiln__args kiln__s;\n  (void)kiln__s;\n");
  add_values(g, g->texts, ASSIGNED, f);
}

static const char *bits_of(kiln_dtype type)
{
  switch (kiln__dtype_of(type)->computed) {
  case KILN_F32:
    return "__float_as_uint";
  case KILN_F64:
    return "__double_as_longlong";
  default:
    return "";
  }
}

/* Adds the evaluation of item j of a batch by the function `inner`. */
static void add_item(const kiln__generator *g, const char *inner, batch how,
                     unsigned j)
{
  kiln__buf *out = g->texts;

  kiln__buf_format(out, "%s(kiln__s", inner);
  for (size_t k = 0; how == ELEMENTS && k < g->n_arrays; k++)
    kiln__buf_format(out, ", kiln__x%zu_%u", k, j);
  if (how == ELEMENTS)
    kiln__buf_format(out, ", i + %u)", j);
  else if (how == RUN && j > 0)
    kiln__buf_format(out, ", kiln__r.v[%u], kiln__b%u)", j - 1, j);
  else
    kiln__buf_format(out, ", kiln__a%u, kiln__b%u)", j, j);
}

/* Adds the definition of the external function that evaluates a batch. */
static void define_batch(const kiln__generator *g, const kiln__function *f,
                         const char *inner, batch how)
{
  kiln__buf *out = g->texts;

  add_batch_external(g, out, f, how);
  kiln__buf_text(out, "\n{\n  kiln__args kiln__s;\n  (void)kiln__s;\n");
  add_values(g, out, ASSIGNED, f);
  kiln__buf_format(out, "  kiln__%s_batch kiln__r%s;\n", f->name,
                   is_mask(f) ? " = 0" : "");
  for (unsigned j = 0; j < width_of(g, how); j++) {
    if (is_mask(f))
      kiln__buf_text(out, "  kiln__r |= ");
    else
      kiln__buf_format(out, "  kiln__r.v[%u] = ", j);
    add_item(g, inner, how, j);
    if (is_mask(f))
      kiln__buf_format(out, " ? %uu : 0u", 1u << j);
    kiln__buf_text(out, ";\n");
  }
  kiln__buf_text(out, "  return kiln__r;\n}\n");
}

/* Adds the external functions of an expression, which call `inner`. */
static void define_external(const kiln__generator *g, const kiln__function *f,
                            const char *inner)
{
  kiln__buf *out = g->texts;
  batch how;

  open_external(g, f);
  kiln__buf_format(out, "  return %s(kiln__s", inner);
  for (size_t k = 0; kiln__gen_is_elementwise(f) && k < g->n_arrays; k++)
    kiln__buf_format(out, ", x%zu", k);
  kiln__buf_text(out, kiln__gen_is_elementwise(f) ? ", i);\n}\n"
                      : is_pairwise(f)            ? ", a, b);\n}\n"
                                                  : ");\n}\n");
  if (has_batch(g, f, &how)) {
    add_batch_type(g, out, f);
    define_batch(g, f, inner, how);
  }
}

/* Adds the function kiln__guarded(), the operation of a linked program. See
 * add_user_op() in generated_header.c about the guard. */
static void add_guarded_op(const kiln__generator *g)
{
  const char *const bits = bits_of(g->spec->acc);

  kiln__buf_format(
      g->texts,
      KILN__INLINE
      "kiln__operation_result kiln__guarded(const kiln__args &kiln__s, "
      "const kiln__operation_operand a, const kiln__operation_operand b)\n{\n"
      "  const kiln__operation_result kiln__none = "
      "kiln__identity(kiln__s);\n"
      "  if (%s(a) == %s(kiln__none) && %s(b) == %s(kiln__none) &&\n"
      "      %s(kiln__operation(kiln__s, kiln__none, kiln__none)) != "
      "%s(kiln__none))\n    return kiln__none;\n"
      "  return kiln__operation(kiln__s, a, b);\n}\n",
      bits, bits, bits, bits, bits, bits);
}

/* Adds the definitions of an expression. An expression with parameters of its
 * own is the body of its external function. */
static void define(const kiln__generator *g, const kiln__function *f)
{
  char inner[64];

  if (f->parameters != NULL) {
    open_external(g, f);
    kiln__gen_function_body(g, f);
    return;
  }
  kiln__gen_definition(g, f);
  kiln__format(inner, sizeof inner, "kiln__%s", f->name);
  if (is_operation(f)) {
    add_guarded_op(g);
    define_external(g, f, "kiln__guarded");
  } else {
    define_external(g, f, inner);
  }
}

/* ---- Both sources -------------------------------------------------------- */

/* Returns the number of elements per call: a vector of 16 bytes, as far as the
 * values of all arrays fit in MOST_WORDS registers. */
static unsigned elements_per_call(const kiln__generator *g)
{
  /* kernels that load single elements */
  static const char *const single[] = {"merge", "run_length_staged", "search",
                                       "segmented", "select_staged"};
  unsigned words = 0, n = 8;

  for (size_t k = 0; k < sizeof single / sizeof single[0]; k++)
    if (strcmp(g->spec->family->builtin, single[k]) == 0)
      return 0;

  for (size_t k = 0; k < g->n_arrays; k++) {
    const unsigned size = (unsigned)kiln__size(g->spec->input->in[k].type);

    words += size > 4 ? 2 : 1;
    if (n * size > 16)
      n = 16 / size;
  }
  while (n * words > MOST_WORDS)
    n /= 2;
  return words == 0 || n < 2 ? 0 : n;
}

static unsigned pairs_per_call(const kiln__spec *spec)
{
  const bool wide =
      (spec->acc != KILN_DTYPE_NONE && kiln__size(spec->acc) > 4) ||
      (spec->input != NULL && kiln__size(kiln__input_type(spec->input)) > 4);

  return wide ? PAIRS / 2 : PAIRS;
}

kiln_status kiln__generate_linked(kiln__buf *types, kiln__buf *source,
                                  const kiln__spec *spec, uint32_t aligned)
{
  kiln__generator g = kiln__gen_start(types, source, spec);

  g.linked = true;
  g.batch = elements_per_call(&g);
  g.pairs = pairs_per_call(spec);
  kiln__gen_types(&g);
  kiln__gen_function_types(&g, types);
  for (size_t k = 0; k < g.n_texts; k++)
    declare(&g, &g.text[k]);
  kiln__gen_user(&g, aligned);
  add_types(&g);
  kiln__gen_preamble(&g);
  for (size_t k = 0; k < g.n_texts; k++)
    define(&g, &g.text[k]);
  kiln__buf_text(source, "} // namespace kiln__texts\n");
  return kiln__gen_status(&g);
}
