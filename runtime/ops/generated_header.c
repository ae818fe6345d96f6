/* generated_header.c -- generates the two headers that connect the user's
 * expressions to a kernel.
 *
 * Problem: a kernel has to call the user's expressions. A name in the user's
 * code (a parameter "value", a preamble function "count", a macro "T") must not
 * collide with a name of the kernel or of its headers.
 *
 * Idea: the kernel sees only declarations. The header <kiln/generated.cuh>,
 * which user.cuh includes above the kernel, declares one function per
 * expression and wraps this function for the kernel in namespace user. The
 * header <kiln/generated_texts.cuh>, which user_texts.cuh includes below the
 * last line of the kernel, holds the preamble and the function bodies, in a
 * namespace of their own.
 *
 * Invariant: between the preamble and the end of the program, only three kinds
 * of names occur. These are C++ keywords, the documented names of expressions
 * (x, i, a, x_at and the parameters), and names that begin with kiln__. The
 * function kiln__check_code() refuses parameters whose names begin with kiln__.
 * Therefore the preamble may define any other name, even as a macro; such a
 * name hides the kernel's name.
 *
 * Cost: none at run time, since every function is inlined.
 *
 * For a linked program (link_rule.c) the expressions are a program of their
 * own, which link/generated_texts.c generates. The kernel's header then declares
 * external functions, whose arguments are scalars, and wraps them like the
 * others. The text of the expressions does not occur in the kernel's header, so
 * one compiled kernel serves all of them.
 *
 * Each expression stands on lines of its own after a #line directive with the
 * expression's name. The compiler's messages then name the expression and count
 * its lines. */
#include "generator.h"

#include <string.h>

kiln__type_text kiln__gen_array_type(const kiln__generator *g, size_t k)
{
  return kiln__compute_text(g->spec->input->in[k].type);
}

/* Returns the start of the name of a variable of array k in the signature of an
 * expression's function. A struct gets the names x0, x1, ... only after the
 * conversion to its C++ type. */
static const char *operand_prefix(const kiln__generator *g)
{
  return g->structs ? "kiln__" : "";
}

/* Returns whether an expression can use the elements of all input arrays. Other
 * expressions use the operands a and b, or nothing. */
bool kiln__gen_is_elementwise(const kiln__function *f)
{
  return f->operand == NULL && f->parameters == NULL;
}

/* ---- Choice of the expressions ------------------------------------------ */

static void add_to_texts(kiln__generator *g, kiln__function f)
{
  if (f.expr != NULL)
    g->text[g->n_texts++] = f;
}

static void collect_texts(kiln__generator *g)
{
  const kiln__spec *spec = g->spec;

  if (spec->input != NULL)
    add_to_texts(g, (kiln__function){"map", KILN__MAP_NAME, spec->input->map,
                                     "value", NULL, NULL});
  if (spec->op != NULL && spec->op->expr != NULL) {
    add_to_texts(g, (kiln__function){"identity", KILN__IDENTITY_NAME,
                                     spec->op->identity, "acc", "", NULL});
    add_to_texts(g, (kiln__function){"operation", KILN__OPERATION_NAME,
                                     spec->op->expr, "acc", "acc", NULL});
  }
  for (size_t k = 0; k < KILN__MAX_FUNCTIONS && spec->function[k].name != NULL;
       k++)
    add_to_texts(g, spec->function[k]);
}

bool kiln__gen_reads_neighbours(const kiln__generator *g)
{
  for (size_t k = 0; k < g->n_texts; k++)
    if (kiln__gen_is_elementwise(&g->text[k]) &&
        kiln__reads_neighbours(g->text[k].expr))
      return true;
  return false;
}

/* ---- Types and parameters ------------------------------------------------ */

/* Adds the members of the kernel argument that views with strides need. */
static void add_shape_members(const kiln__generator *g)
{
  const kiln_shape *shape = g->spec->shape;

  if (shape == NULL || shape->rank == 0)
    return;
  kiln__buf_format(g->types, "  index kiln__size[%u], kiln__over[%u];\n",
                   (unsigned)shape->rank, (unsigned)shape->rank);
  for (size_t k = 0; k < g->n_arrays; k++)
    if (kiln__is_strided(shape, k))
      kiln__buf_format(g->types, "  index kiln__stride%zu[%u];\n", k,
                       (unsigned)shape->rank);
}

/* Opens namespace user and adds the types of values and results. */
void kiln__gen_value_types(const kiln__generator *g, kiln__buf *out)
{
  const kiln__spec *spec = g->spec;

  kiln__buf_text(out, "namespace user\n{\ntypedef unsigned long long index;\n");
  if (spec->input != NULL)
    kiln__buf_format(out, "typedef %s value;\n",
                     kiln__compute_text(kiln__input_type(spec->input)).c);
  if (spec->acc != KILN_DTYPE_NONE)
    kiln__buf_format(out, "typedef %s acc;\n", kiln__compute_text(spec->acc).c);
  for (size_t k = 0; k < g->n_texts; k++)
    kiln__buf_format(out, "typedef %s %s_result;\n", g->text[k].result,
                     g->text[k].name);
}

void kiln__gen_types(const kiln__generator *g)
{
  const kiln__spec *spec = g->spec;
  kiln__buf *out = g->types;
  bool empty = true;

  kiln__gen_value_types(g, out);
  if (spec->input != NULL)
    kiln__buf_format(out, "typedef %s stored;\n",
                     kiln__storage_text(kiln__input_type(spec->input)).c);
  kiln__buf_text(out, "struct alignas(8) args {\n");
  for (size_t k = 0; k < g->n_arrays; k++, empty = false)
    kiln__buf_format(out, "  const %s *x%zu;\n",
                     kiln__storage_text(spec->input->in[k].type).c, k);
  for (size_t k = 0; k < g->n_params; k++) {
    const kiln_param *p = &spec->code->params[k];

    if (p->constant || kiln__names_type(p))
      continue;
    /* The body of a linked program does not depend on the names. */
    if (g->linked)
      kiln__buf_format(out, "  alignas(8) %s p_%zu;\n",
                       kiln__storage_text(p->type).c, k);
    else
      kiln__buf_format(out, "  alignas(8) %s p_%s;\n",
                       kiln__storage_text(p->type).c, p->name);
    empty = false;
  }
  if (spec->width != 0)
    kiln__buf_text(out, "  index kiln__width, kiln__reciprocal;\n");
  add_shape_members(g);
  empty = empty && spec->width == 0;
  kiln__buf_text(out, empty ? "  unsigned long long none;\n};\n" : "};\n");
  kiln__buf_text(out, "} // namespace user\ntypedef user::args kiln__args;\n"
                      "typedef user::index kiln__index;\n");
}

/* Adds the function kiln__param_NAME(s), which returns a parameter of the
 * user's code. For a constant, the function contains the bits of the value, so
 * that every value, including a NaN, arrives unchanged. */
static void add_param(const kiln__generator *g, kiln__buf *out,
                      const kiln_param *p)
{
  uint64_t bits = 0;

  if (kiln__names_type(p))
    return;
  kiln__buf_format(out, KILN__INLINE "%s kiln__param_%s(const kiln__args &s)\n",
                   kiln__compute_text(p->type).c, p->name);
  if (p->constant) {
    memcpy(&bits, p->value, kiln__size(p->type));
    kiln__buf_format(out,
                     "{\n  (void)s;\n  return kiln::from_bits<%s>(0x%llxull);"
                     "\n}\n",
                     kiln__storage_text(p->type).c, (unsigned long long)bits);
  } else {
    kiln__buf_format(out,
                     g->linked ? "{\n  return s.p_%s;\n}\n"
                               : "{\n  return kiln::widen(s.p_%s);\n}\n",
                     p->name);
  }
}

/* Adds the functions kiln__row(s, i) and kiln__column(s, i) of element i. If the
 * index fits in 32 bits, the row is the upper half of the product of the index and
 * the reciprocal of the width, 2^64 / width rounded up (Lemire, Kaser and Kurz,
 * Faster Remainder by Direct Computation, 2019). */
void kiln__gen_rows(const kiln__generator *g, kiln__buf *out)
{
  if (g->spec->width == 0)
    return;
  kiln__buf_format(out,
                   KILN__INLINE
                   "kiln__index kiln__row(const kiln__args &s, "
                   "kiln__index i)\n{\n  return %s;\n}\n" KILN__INLINE
                   "kiln__index kiln__column(const kiln__args &s, "
                   "kiln__index i)\n{\n  return static_cast<%s>(i - "
                   "kiln__row(s, i) * s.kiln__width);\n}\n",
                   g->spec->wide ? "i / s.kiln__width"
                                 : "static_cast<unsigned>(__umul64hi("
                                   "s.kiln__reciprocal, i))",
                   g->spec->wide ? "kiln__index" : "unsigned");
}

/* Adds the functions kiln__x0_at(s, j), kiln__x1_at(s, j) and so on, each of
 * which reads element j of one array. Only expressions that use x_at(), y_at()
 * and so on need these functions. */
void kiln__gen_readers(const kiln__generator *g, kiln__buf *out)
{
  for (size_t k = 0; k < g->n_params; k++)
    add_param(g, out, &g->spec->code->params[k]);
  if (!kiln__gen_reads_neighbours(g) &&
      !kiln__has_strides(g->spec->shape, g->n_arrays))
    return;
  for (size_t k = 0; k < g->n_arrays; k++)
    kiln__buf_format(out,
                     KILN__INLINE "%s kiln__x%zu_at(const kiln__args &s, "
                                  "kiln__index j)\n"
                                  "{\n  return kiln::load(s.x%zu + j);\n}\n",
                     kiln__gen_array_type(g, k).c, k, k);
}

/* Adds the struct kiln__place, which holds the coordinates of an element, the
 * function kiln__locate(s, i), which computes them, and the functions
 * kiln__offset0(s, p) and so on, which return the offset of the element in the
 * array of a view. Divisions multiply by the reciprocal, as in kiln__gen_rows(). */
static void add_places(const kiln__generator *g)
{
  const kiln_shape *shape = g->spec->shape;
  const bool wide = g->spec->wide;

  if (shape == NULL || shape->rank == 0)
    return;
  kiln__buf_format(
      g->types,
      "struct kiln__place {\n  kiln__index at[%u];\n};\n" KILN__INLINE
      "kiln__place kiln__locate(const kiln__args &s, kiln__index i)\n{\n"
      "  kiln__place p;\n#pragma unroll\n"
      "  for (unsigned k = %u; k-- > 1;) {\n"
      "    const kiln__index q = %s;\n"
      "    p.at[k] = i - q * s.kiln__size[k];\n    i = q;\n  }\n"
      "  p.at[0] = i;\n  return p;\n}\n",
      (unsigned)shape->rank, (unsigned)shape->rank,
      wide ? "i / s.kiln__size[k]"
           : "static_cast<unsigned>(__umul64hi(s.kiln__over[k], i))");
  for (size_t k = 0; k < g->n_arrays; k++)
    if (kiln__is_strided(shape, k))
      kiln__buf_format(
          g->types,
          KILN__INLINE "kiln__index kiln__offset%zu(const kiln__args &s, const "
                       "kiln__place &p)\n{\n  kiln__index j = 0;\n"
                       "#pragma unroll\n  for (unsigned k = 0; k < %u; ++k)\n"
                       "    j += static_cast<%s>(p.at[k]) * "
                       "s.kiln__stride%zu[k];\n  return j;\n}\n",
          k, (unsigned)shape->rank, wide ? "kiln__index" : "unsigned", k);
}

/* ---- Functions of the expressions --------------------------------------- */

/* Adds the parameters that an expression's function has besides kiln__args.
 * Each parameter begins with a comma. */
void kiln__gen_operands(const kiln__generator *g, kiln__buf *out,
                        const kiln__function *f)
{
  if (kiln__gen_is_elementwise(f)) {
    for (size_t k = 0; k < g->n_arrays; k++)
      if (!kiln__is_viewed(g->spec->shape, k))
        kiln__buf_format(out, ", const %s %sx%zu", kiln__gen_array_type(g, k).c,
                         operand_prefix(g), k);
    kiln__buf_text(out, ", const kiln__index i");
  } else if (f->parameters != NULL) {
    kiln__buf_format(out, ", %s", f->parameters);
  } else if (f->operand[0] != '\0') {
    kiln__buf_format(out,
                     ", const kiln__%s_operand %sa, const kiln__%s_operand %sb",
                     f->name, operand_prefix(g), f->name, operand_prefix(g));
  }
}

/* Adds the signature of an expression's function: "const kiln__args
 * &kiln__s, PARAMETERS)". */
static void add_signature(const kiln__generator *g, kiln__buf *out,
                          const kiln__function *f)
{
  kiln__buf_format(
      out, KILN__INLINE "kiln__%s_result kiln__%s(const kiln__args &kiln__s",
      f->name, f->name);
  kiln__gen_operands(g, out, f);
  kiln__buf_text(out, ")");
}

/* Adds short names of the types that the functions use. */
void kiln__gen_function_types(const kiln__generator *g, kiln__buf *out)
{
  for (size_t k = 0; k < g->n_texts; k++) {
    const kiln__function *f = &g->text[k];

    kiln__buf_format(out, "typedef user::%s_result kiln__%s_result;\n", f->name,
                     f->name);
    if (f->operand != NULL && f->operand[0] != '\0')
      kiln__buf_format(out,
                       "namespace user\n{\ntypedef %s %s_operand;\n}\n"
                       "typedef user::%s_operand kiln__%s_operand;\n",
                       f->operand, f->name, f->name, f->name);
  }
}

static void add_declarations(const kiln__generator *g)
{
  kiln__buf *out = g->types;

  kiln__buf_text(out, "namespace kiln__texts\n{\n");
  for (size_t k = 0; k < g->n_texts; k++) {
    add_signature(g, out, &g->text[k]);
    kiln__buf_text(out, ";\n");
  }
  kiln__buf_text(out, "} // namespace kiln__texts\n");
}

/* The short names of the first arrays. */
static const char short_names[] = "xyzw";

static bool has_short_name(size_t k)
{
  return k < sizeof short_names - 1;
}

/* Adds the declaration of element x0, x1 and so on, as far as it is not a
 * parameter of the function. The element of a view is loaded here. A table has
 * no element. */
static void add_element(const kiln__generator *g, size_t k)
{
  const kiln_shape *shape = g->spec->shape;
  const char *unpack = g->structs ? "kiln__unpack" : "";
  kiln__buf *out = g->texts;

  if (kiln__is_viewed(shape, k) && !kiln__is_strided(shape, k))
    return;
  if (kiln__is_strided(shape, k))
    kiln__buf_format(out,
                     "  const auto x%zu = %s(kiln__x%zu_at(kiln__s, "
                     "kiln__offset%zu(kiln__s, kiln__p)));",
                     k, unpack, k, k);
  else if (g->structs)
    kiln__buf_format(out, "  const auto x%zu = kiln__unpack(kiln__x%zu);", k,
                     k);
  kiln__buf_format(out, "  (void)x%zu;", k);
  if (has_short_name(k))
    kiln__buf_format(out, " const auto %c = x%zu; (void)%c;", short_names[k], k,
                     short_names[k]);
  kiln__buf_text(out, "\n");
}

/* Adds the function x0_at(j), x1_at(j) and so on, and its short name. */
static void add_reader(const kiln__generator *g, size_t k)
{
  kiln__buf *out = g->texts;

  kiln__buf_format(out,
                   "  const auto x%zu_at = [&kiln__s](const kiln__index "
                   "kiln__j) { return %s(kiln__x%zu_at(kiln__s, kiln__j)); "
                   "}; (void)x%zu_at;\n",
                   k, g->structs ? "kiln__unpack" : "", k, k);
  if (has_short_name(k))
    kiln__buf_format(out, "  const auto &%c_at = x%zu_at; (void)%c_at;\n",
                     short_names[k], k, short_names[k]);
}

/* Adds declarations of x and x_at, which are short names of x0 and x0_at, and
 * so on. The casts to void avoid warnings about names that the expression does
 * not use. */
static void add_elements(const kiln__generator *g, const kiln__function *f)
{
  const bool neighbours = kiln__reads_neighbours(f->expr);
  kiln__buf *out = g->texts;

  kiln__buf_text(out, "  (void)i;\n");
  if (g->spec->width != 0)
    kiln__buf_text(out,
                   "  const kiln__index row = kiln__row(kiln__s, i), column "
                   "= kiln__column(kiln__s, i);\n  (void)row; "
                   "(void)column;\n");
  if (kiln__has_strides(g->spec->shape, g->n_arrays))
    kiln__buf_text(out,
                   "  const kiln__place kiln__p = kiln__locate(kiln__s, i);"
                   " (void)kiln__p;\n");
  for (size_t k = 0; k < g->n_arrays; k++) {
    add_element(g, k);
    if (neighbours)
      add_reader(g, k);
  }
}

void kiln__generate_params(kiln__buf *out, const kiln_code *code)
{
  for (size_t k = 0; code != NULL && k < code->n_params; k++) {
    const kiln_param *p = &code->params[k];

    if (kiln__names_type(p))
      continue;
    kiln__buf_format(out,
                     "  const %s %s = kiln__param_%s(kiln__s); (void)%s;\n",
                     kiln__compute_text(p->type).c, p->name, p->name, p->name);
  }
}

/* Adds the body of an expression's function. */
void kiln__gen_function_body(const kiln__generator *g, const kiln__function *f)
{
  kiln__buf *out = g->texts;

  kiln__buf_text(out, "  (void)kiln__s;\n");
  if (kiln__gen_is_elementwise(f))
    add_elements(g, f);
  else if (g->structs && f->operand != NULL && f->operand[0] != '\0')
    kiln__buf_text(out, "  const auto a = kiln__unpack(kiln__a), "
                        "b = kiln__unpack(kiln__b);\n");
  kiln__generate_params(out, g->spec->code);
  /* The bracket that closes the cast stands on a line of its own, since the
   * expression may end in a comment. The #line directive still attributes
   * this line to the expression, so an error in this line is an error of the
   * expression. kiln__specialise() moves such a message to the end of the
   * expression. */
  if (g->structs)
    kiln__buf_format(out,
                     "  return kiln__pack<kiln__%s_result>(static_cast<kiln__c<"
                     "kiln__%s_result>>(\n#line 1 \"%s\"\n%s\n));\n",
                     f->name, f->name, f->what, f->expr);
  else
    kiln__buf_format(out,
                     "  return static_cast<kiln__%s_result>(\n#line 1 "
                     "\"%s\"\n%s\n);\n",
                     f->name, f->what, f->expr);
  kiln__buf_text(out, "#line 1 \"generated\"\n}\n");
}

void kiln__gen_definition(const kiln__generator *g, const kiln__function *f)
{
  add_signature(g, g->texts, f);
  kiln__buf_text(g->texts, "\n{\n");
  kiln__gen_function_body(g, f);
}

/* Adds the preamble. The #include directives of the preamble stay outside
 * the namespace. */
void kiln__gen_preamble(const kiln__generator *g)
{
  const char *const text =
      g->spec->code != NULL && g->spec->code->preamble != NULL
          ? g->spec->code->preamble
          : "";
  const char *const rest = kiln__after_includes(text);
  unsigned line = 1;

  for (const char *p = text; p < rest; p++)
    line += *p == '\n';
  kiln__buf_format(g->texts,
                   "#line 1 \"the preamble\"\n%.*s\n#line 1 \"generated\"\n"
                   "namespace kiln__texts\n{\n#line %u \"the preamble\"\n%s\n"
                   "#line 1 \"generated\"\n",
                   (int)(rest - text), text, line, rest);
}

/* Adds the connection between a struct and its C++ type, which the preamble has
 * declared. Another size or alignment is an error of the compiler, which
 * explain_layout() in specialisation_cache.c explains. */
static void add_struct(const kiln__generator *g, const kiln_param *p, size_t k)
{
  kiln__buf_format(g->texts,
                   "#line 1 \"the struct %s\"\ntypedef %s kiln__named_%zu;\n"
                   "} // namespace kiln__texts\n"
                   "template <> struct kiln__layout<%zu, %u, %u> {\n  typedef "
                   "int kiln__right;\n};\n"
                   "typedef kiln__layout<%zu, sizeof(kiln__texts::kiln__named_"
                   "%zu), alignof(kiln__texts::kiln__named_%zu)>::kiln__right "
                   "kiln__right_%zu;\n#line 1 \"generated\"\n"
                   "template <> struct kiln__named<%s> {\n  typedef "
                   "kiln__texts::kiln__named_%zu kiln__type;\n};\n"
                   "namespace kiln__texts\n{\n",
                   p->name, p->name, k, k, (unsigned)kiln__size(p->type),
                   (unsigned)kiln__align(p->type), k, k, k, k,
                   kiln__compute_text(p->type).c, k);
}

static void add_structs(const kiln__generator *g)
{
  for (size_t k = 0; k < g->n_params; k++)
    if (kiln__names_type(&g->spec->code->params[k]))
      add_struct(g, &g->spec->code->params[k], k);
}

/* Notes an element type of the call, which may need a header. */
static void note_type(kiln__generator *g, kiln_dtype type)
{
  g->structs = g->structs || kiln__is_record(type);
  g->complexes = g->complexes || kiln__is_complex(type);
}

static void note_types(kiln__generator *g)
{
  const kiln__spec *spec = g->spec;
  const char *define = spec->family->defines;

  for (size_t k = 0; *define != '\0'; k++) {
    if (*define == ':')
      note_type(g, (kiln_dtype)spec->value[k]);
    define += strlen(define) + 1;
  }
  for (size_t k = 0; k < g->n_arrays; k++)
    note_type(g, spec->input->in[k].type);
  for (size_t k = 0; k < g->n_params; k++)
    note_type(g, spec->code->params[k].type);
  if (spec->input != NULL)
    note_type(g, kiln__input_type(spec->input));
  note_type(g, spec->acc);
  if (g->complexes)
    kiln__buf_text(g->types, "#include <kiln/complex.cuh>\n");
  if (g->structs)
    kiln__buf_text(g->types, "#include <kiln/records.cuh>\n");
}

/* ---- Functions that the kernel calls ------------------------------------ */

/* Adds the function NAME_at(s, p, e, i), which evaluates the expression NAME
 * for element e of the vector p. The vector starts at element i of the
 * input. */
static void add_element_wrapper(const kiln__generator *g, const char *name,
                                const char *result, const char *expr)
{
  kiln__buf *out = g->types;

  if (expr != NULL && g->batch > 0) {
    kiln__gen_batch_wrapper(g, name);
    return;
  }

  kiln__buf_format(out,
                   "template <unsigned n>\n" KILN__INLINE
                   "%s %s_at(const args &s, const vector<n> &p, unsigned e, "
                   "index i)\n{\n  (void)s; (void)p; (void)e; (void)i;\n",
                   result, name);
  if (expr == NULL) {
    kiln__buf_text(out, "  return p.x0[e];\n}\n");
    return;
  }
  kiln__buf_format(out, "  return kiln__texts::kiln__%s(s", name);
  for (size_t k = 0; k < g->n_arrays; k++)
    if (!kiln__is_viewed(g->spec->shape, k))
      kiln__buf_format(out, ", p.x%zu[e]", k);
  kiln__buf_text(out, ", i + e);\n}\n");
}

/* Adds functions that read n consecutive elements of all input arrays. The map
 * expression is not applied to these elements. */
static void add_vectors(const kiln__generator *g, uint32_t aligned)
{
  kiln__buf *out = g->types;

  kiln__buf_text(out, "template <unsigned n> struct vector {\n");
  for (size_t k = 0; k < g->n_arrays; k++)
    if (!kiln__is_viewed(g->spec->shape, k))
      kiln__buf_format(out, "  %s x%zu[n];\n", kiln__gen_array_type(g, k).c, k);
  kiln__gen_kept_results(g);
  kiln__buf_text(out, "};\ntemplate <unsigned n, kiln::cached how = "
                      "kiln::cached::usual>\n" KILN__INLINE
                      "void load_inputs(const args &s, index i, vector<n> &p)\n"
                      "{\n  (void)s; (void)i; (void)p;\n");
  for (size_t k = 0; k < g->n_arrays; k++)
    if (!kiln__is_viewed(g->spec->shape, k))
      kiln__buf_format(out,
                       "  kiln::load_vector<n, %s, how>(s.x%zu + i, p.x%zu);\n",
                       aligned >> k & 1 ? "true" : "false", k, k);
  kiln__buf_text(out, "}\n" KILN__INLINE
                      "void prefetch_inputs(const args &s, index i, "
                      "unsigned n)\n{\n  (void)s; (void)i; (void)n;\n");
  for (size_t k = 0; k < g->n_arrays; k++)
    if (!kiln__is_viewed(g->spec->shape, k))
      kiln__buf_format(out, "  kiln::prefetch(s.x%zu + i, n * %uu);\n", k,
                       (unsigned)kiln__size(g->spec->input->in[k].type));
  kiln__buf_text(out, "}\n");
}

/* Adds functions that read elements and apply the map expression to them.
 * load(s, i) returns mapped element i, and load_as<how>(s, i) does so with a
 * cache hint. load_vector<n>(s, i, to) reads n consecutive elements, where i is
 * a multiple of n. Arrays that are aligned to 16 bytes are read by wide
 * loads. */
static void add_loads(const kiln__generator *g)
{
  const bool mapped = g->spec->input->map != NULL;
  kiln__buf *out = g->types;

  kiln__buf_format(out,
                   "template <kiln::cached how>\n" KILN__INLINE
                   "value load_as(const args &s, index i)\n{\n  return %s",
                   mapped ? "kiln__texts::kiln__map(s, " : "");
  for (size_t k = 0; k < (mapped ? g->n_arrays : 1); k++)
    if (!kiln__is_viewed(g->spec->shape, k))
      kiln__buf_format(out, "kiln::load_as<how>(s.x%zu + i)%s", k,
                       mapped ? ", " : "");
  kiln__buf_format(out,
                   "%s;\n}\n" KILN__INLINE
                   "value load(const args &s, index i)\n{\n"
                   "  return load_as<kiln::cached::usual>(s, i);\n}\n"
                   "template <unsigned n, kiln::cached how = "
                   "kiln::cached::usual>\n" KILN__INLINE
                   "void load_vector(const args &s, index i, value (&to)[n])\n"
                   "{\n  vector<n> p;\n  load_inputs<n, how>(s, i, p);\n"
                   "#pragma unroll\n  for (unsigned e = 0; e < n; ++e)\n"
                   "    to[e] = map_at(s, p, e, i);\n}\n",
                   mapped ? "i)" : "");
}

static void add_input(const kiln__generator *g, uint32_t aligned)
{
  add_vectors(g, aligned);
  add_element_wrapper(g, "map", "value", g->spec->input->map);
  add_loads(g);
}

static void add_named_op(const kiln__generator *g)
{
  static const char *const names[] = {"sum",     "prod",   "min",    "max",
                                      "bit_and", "bit_or", "bit_xor"};

  kiln__buf_format(g->types,
                   "typedef kiln::%s op;\n" KILN__INLINE
                   "op make_op(const args &) { return {}; }\n" KILN__INLINE
                   "acc identity(const args &)\n"
                   "{\n  return op::identity<acc>();\n}\n",
                   names[g->spec->op->name]);
}

/* Kernels pad incomplete tiles with the identity and combine the padding,
 * too. A user's expression need not return the identity for two identities:
 * log(exp(a) + exp(b)) returns NaN for two of -INFINITY. Therefore the
 * generated operation returns the identity where the expression would not. The
 * compiler computes the expression for two identities itself where it can, and
 * then drops all three comparisons from operations such as a > b ? a : b. */
static void add_user_op(const kiln__generator *g)
{
  static const char guard[] =
      "    const acc none = identity(s);\n\n"
      "    if (kiln::same_bits(a, none) && kiln::same_bits(b, none) &&\n"
      "        !kiln::same_bits(kiln__texts::kiln__operation(s, none, none), "
      "none))\n      return none;\n";

  /* The operation of a linked program contains the guard. */
  kiln__buf_format(g->types,
                   KILN__INLINE
                   "acc identity(const args &s)\n"
                   "{\n  return kiln__texts::kiln__identity(s);\n}\n"
                   "struct op {\n  args s;\n"
                   "  __device__ __forceinline__ acc operator()(const acc a, "
                   "const acc b) const\n  {\n%s"
                   "    return kiln__texts::kiln__operation(s, a, b);\n  "
                   "}\n};\n" KILN__INLINE
                   "op make_op(const args &s) { return {s}; }\n",
                   g->linked ? "" : guard);
  kiln__gen_op_batches(g);
}

static void add_function(const kiln__generator *g, const kiln__function *f)
{
  if (kiln__gen_is_elementwise(f))
    add_element_wrapper(g, f->name, f->result, f->expr);
  else if (f->parameters != NULL)
    kiln__buf_format(g->types,
                     "template <class... V>\n" KILN__INLINE
                     "%s %s(const args &s, V... v)\n"
                     "{\n  return kiln__texts::kiln__%s(s, v...);\n}\n",
                     f->result, f->name, f->name);
  else
    kiln__buf_format(g->types,
                     KILN__INLINE
                     "%s %s(const args &s, const %s a, const %s b)\n"
                     "{\n  return kiln__texts::kiln__%s(s, a, b);\n}\n",
                     f->result, f->name, f->operand, f->operand, f->name);
}

kiln__generator kiln__gen_start(kiln__buf *types, kiln__buf *texts,
                                const kiln__spec *spec)
{
  kiln__generator g = {
      .types = types,
      .texts = texts,
      .spec = spec,
      .n_arrays = spec->input == NULL ? 0 : kiln__input_arrays(spec->input),
      .n_params = spec->code == NULL ? 0 : spec->code->n_params};

  collect_texts(&g);
  return g;
}

/* Adds everything that the kernel calls in namespace user. */
void kiln__gen_user(const kiln__generator *g, uint32_t aligned)
{
  const kiln__spec *spec = g->spec;

  kiln__buf_text(g->types, "namespace user\n{\n");
  if (spec->input != NULL)
    add_input(g, aligned);
  if (spec->op != NULL && spec->op->expr == NULL)
    add_named_op(g);
  if (spec->op != NULL && spec->op->expr != NULL)
    add_user_op(g);
  for (size_t k = 0; k < KILN__MAX_FUNCTIONS && spec->function[k].name != NULL;
       k++)
    if (spec->function[k].expr != NULL)
      add_function(g, &spec->function[k]);
  kiln__buf_text(g->types, "} // namespace user\n");
}

kiln_status kiln__gen_status(const kiln__generator *g)
{
  const kiln_status st = kiln__buf_status(g->types, "a generated header");

  return st == KILN_OK ? kiln__buf_status(g->texts, "a generated header") : st;
}

kiln_status kiln__generate(kiln__buf *types, kiln__buf *texts,
                           const kiln__spec *spec, uint32_t aligned)
{
  kiln__generator g = kiln__gen_start(types, texts, spec);

  note_types(&g);
  kiln__gen_types(&g);
  kiln__gen_readers(&g, types);
  kiln__gen_rows(&g, types);
  add_places(&g);
  kiln__gen_function_types(&g, types);
  add_declarations(&g);
  kiln__gen_user(&g, aligned);
  if (spec->pairs != NULL)
    kiln__generate_pair_types(types, spec);
  kiln__gen_preamble(&g);
  add_structs(&g);
  for (size_t k = 0; k < g.n_texts; k++)
    kiln__gen_definition(&g, &g.text[k]);
  if (spec->pairs != NULL)
    kiln__generate_pair_texts(texts, spec);
  kiln__buf_text(texts, "} // namespace kiln__texts\n");
  return kiln__gen_status(&g);
}
