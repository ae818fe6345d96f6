/* generate.c -- the header that ties the user's texts to a kernel. Each text stands
 * on lines of its own behind a #line directive that names it, so that the
 * compiler's messages show the text and not what is around it. */
#include "ops.h"

#include <string.h>

#define INLINE "static __device__ __forceinline__ "

static const char *storage(kiln_dtype type)
{
  return kiln__dtype_of(type)->storage;
}

static const char *compute(kiln_dtype type)
{
  return kiln__dtype_of(type)->compute;
}

static size_t n_arrays(const kiln__spec *spec)
{
  return spec->input == NULL ? 0 : kiln__input_arrays(spec->input);
}

static size_t n_params(const kiln__spec *spec)
{
  return spec->code == NULL ? 0 : spec->code->n_params;
}

/* ---- Parameters ---------------------------------------------------------------------------- */

/* The bits of a constant, which every value survives. */
static void add_constant(kiln__buf *out, const kiln_param *p)
{
  uint64_t bits = 0;

  memcpy(&bits, p->value, kiln__size(p->type));
  kiln__buf_format(out, "  const %s %s = kiln::from_bits<%s>(0x%llxull);",
                   compute(p->type), p->name, storage(p->type),
                   (unsigned long long)bits);
}

/* Every function sees every parameter; (void): a text need not use them. */
static void add_params_in_sight(kiln__buf *out, const kiln__spec *spec)
{
  for (size_t k = 0; k < n_params(spec); k++) {
    const kiln_param *p = &spec->code->params[k];

    if (p->constant)
      add_constant(out, p);
    else
      kiln__buf_format(out, "  const %s %s = kiln::widen(s.p_%s);",
                       compute(p->type), p->name, p->name);
    kiln__buf_format(out, " (void)%s;\n", p->name);
  }
}

static void add_args(kiln__buf *out, const kiln__spec *spec)
{
  bool empty = true;

  kiln__buf_text(out, "struct alignas(8) args {\n");
  for (size_t k = 0; k < n_arrays(spec); k++, empty = false)
    kiln__buf_format(out, "  const %s *x%zu;\n",
                     storage(spec->input->in[k].type), k);
  for (size_t k = 0; k < n_params(spec); k++) {
    const kiln_param *p = &spec->code->params[k];

    if (p->constant)
      continue;
    kiln__buf_format(out, "  alignas(8) %s p_%s;\n", storage(p->type), p->name);
    empty = false;
  }
  kiln__buf_text(out, empty ? "  unsigned long long none;\n};\n" : "};\n");
}

/* ---- Functions from texts ------------------------------------------------------------------ */

/* What follows the text closes what is around it; until then the name stays, so
 * that a text which ends too soon is blamed itself. */
static void add_text(kiln__buf *out, const char *what, const char *text,
                     const char *closing)
{
  kiln__buf_format(out, "#line 1 \"%s\"\n%s\n%s\n#line 1 \"generated\"\n", what,
                   text, closing);
}

static void add_body(kiln__buf *out, const kiln__spec *spec, const char *result,
                     const char *what, const char *text)
{
  add_params_in_sight(out, spec);
  kiln__buf_format(out, "  return static_cast<%s>(\n", result);
  add_text(out, what, text, ");");
  kiln__buf_text(out, "}\n");
}

static void add_function(kiln__buf *out, const kiln__spec *spec,
                         const kiln__function *f)
{
  kiln__buf_format(out, INLINE "%s %s(const args &s%s%s)\n{\n  (void)s;\n",
                   f->result, f->name, f->args[0] == '\0' ? "" : ", ", f->args);
  add_body(out, spec, f->result, f->what, f->expr);
}

/* ---- The input -------------------------------------------------------------------------------- */

static const char short_names[] = "xyzw";

/* x_at(j) and its like, in texts that use them: element j of an array. */
static void add_neighbours(kiln__buf *out, const kiln__spec *spec)
{
  for (size_t k = 0; k < n_arrays(spec); k++) {
    kiln__buf_format(out,
                     "  const auto x%zu_at = [&s](const index j) "
                     "{ return kiln::load(s.x%zu + j); }; (void)x%zu_at;\n",
                     k, k, k);
    if (k < sizeof short_names - 1)
      kiln__buf_format(out, "  const auto &%c_at = x%zu_at; (void)%c_at;\n",
                       short_names[k], k, short_names[k]);
  }
}

/* NAME(s, x0, ..., i): an expression over one element of each array; and
 * NAME_at(), the same for element e of a pack that starts at i. */
static void add_element_function(kiln__buf *out, const kiln__spec *spec,
                                 const kiln__function *f)
{
  const size_t n = n_arrays(spec);

  kiln__buf_format(out, INLINE "%s %s(const args &s", f->result, f->name);
  for (size_t k = 0; k < n; k++)
    kiln__buf_format(out, ", const %s x%zu", compute(spec->input->in[k].type),
                     k);
  kiln__buf_text(out, ", const index i)\n{\n  (void)s; (void)i;\n");
  for (size_t k = 0; k < n; k++) {
    kiln__buf_format(out, "  (void)x%zu;", k);
    if (k < sizeof short_names - 1)
      kiln__buf_format(out, " const %s %c = x%zu; (void)%c;",
                       compute(spec->input->in[k].type), short_names[k], k,
                       short_names[k]);
    kiln__buf_text(out, "\n");
  }
  if (kiln__reads_neighbours(f->expr))
    add_neighbours(out, spec);
  if (f->expr == NULL)
    kiln__buf_text(out, "  return x0;\n}\n");
  else
    add_body(out, spec, f->result, f->what, f->expr);
  kiln__buf_format(out,
                   "template <unsigned n>\n" INLINE
                   "%s %s_at(const args &s, const vector<n> &p, unsigned e, "
                   "index i)\n{\n  (void)p; (void)e;\n  return %s(s",
                   f->result, f->name, f->name);
  for (size_t k = 0; k < n; k++)
    kiln__buf_format(out, ", p.x%zu[e]", k);
  kiln__buf_text(out, ", i + e);\n}\n");
}

/* The inputs of n neighbours, before any map. */
static void add_pack(kiln__buf *out, const kiln__spec *spec, uint32_t aligned)
{
  const size_t n = n_arrays(spec);

  kiln__buf_text(out, "template <unsigned n> struct vector {\n");
  for (size_t k = 0; k < n; k++)
    kiln__buf_format(out, "  %s x%zu[n];\n", compute(spec->input->in[k].type),
                     k);
  kiln__buf_text(out, "};\ntemplate <unsigned n, kiln::cached how = "
                      "kiln::cached::usual>\n" INLINE
                      "void load_inputs(const args &s, index i, vector<n> &p)\n"
                      "{\n  (void)s; (void)i; (void)p;\n");
  for (size_t k = 0; k < n; k++)
    kiln__buf_format(out,
                     "  kiln::load_vector<n, %s, how>(s.x%zu + i, p.x%zu);\n",
                     aligned >> k & 1 ? "true" : "false", k, k);
  kiln__buf_text(out,
                 "}\n" INLINE "void prefetch_inputs(const args &s, index i, "
                 "unsigned n)\n{\n  (void)s; (void)i; (void)n;\n");
  for (size_t k = 0; k < n; k++)
    kiln__buf_format(out, "  kiln::prefetch(s.x%zu + i, n * %uu);\n", k,
                     (unsigned)kiln__size(spec->input->in[k].type));
  kiln__buf_text(out, "}\n");
}

/* load(s, i): one element; load_as<how>(s, i) says how it is cached.
 * load_vector<n>(s, i, to): n neighbours, i a multiple of n; arrays that are aligned
 * to 16 bytes are read by wide loads. */
static void add_loads(kiln__buf *out, const kiln__spec *spec)
{
  kiln__buf_text(out, "template <kiln::cached how>\n" INLINE
                      "value load_as(const args &s, index i)\n{\n"
                      "  return map(s");
  for (size_t k = 0; k < n_arrays(spec); k++)
    kiln__buf_format(out, ", kiln::load_as<how>(s.x%zu + i)", k);
  kiln__buf_text(out,
                 ", i);\n}\n" INLINE "value load(const args &s, index i)\n{\n"
                 "  return load_as<kiln::cached::usual>(s, i);\n}\n"
                 "template <unsigned n, kiln::cached how = "
                 "kiln::cached::usual>\n" INLINE
                 "void load_vector(const args &s, index i, value (&to)[n])\n"
                 "{\n  vector<n> p;\n  load_inputs<n, how>(s, i, p);\n"
                 "#pragma unroll\n  for (unsigned e = 0; e < n; ++e)\n"
                 "    to[e] = map_at(s, p, e, i);\n}\n");
}

static void add_input(kiln__buf *out, const kiln__spec *spec, uint32_t aligned)
{
  const kiln__function map = {"map", "the map expression", spec->input->map,
                              "value", NULL};

  add_pack(out, spec, aligned);
  add_element_function(out, spec, &map);
  add_loads(out, spec);
}

/* ---- The operation ---------------------------------------------------------------------------- */

static const char *const named[] = {"sum",     "prod",   "min",    "max",
                                    "bit_and", "bit_or", "bit_xor"};

static void add_named_op(kiln__buf *out, const kiln__spec *spec)
{
  kiln__buf_format(out,
                   "typedef kiln::%s op;\n" INLINE
                   "op make_op(const args &) { return {}; }\n" INLINE
                   "acc identity(const args &)\n"
                   "{\n  return op::identity<acc>();\n}\n",
                   named[spec->op->name]);
}

static void add_user_op(kiln__buf *out, const kiln__spec *spec)
{
  const kiln__function identity = {"identity", "the operation's identity",
                                   spec->op->identity, "acc", ""};

  kiln__buf_text(out,
                 "struct op {\n  args s;\n"
                 "  __device__ __forceinline__ acc operator()(const acc a, "
                 "const acc b) const\n{\n");
  add_body(out, spec, "acc", "the operation", spec->op->expr);
  kiln__buf_text(out,
                 "};\n" INLINE "op make_op(const args &s) { return {s}; }\n");
  add_function(out, spec, &identity);
}

/* ---- The header ------------------------------------------------------------------------------- */

static void add_types(kiln__buf *out, const kiln__spec *spec)
{
  if (spec->input != NULL)
    kiln__buf_format(out, "typedef %s stored;\ntypedef %s value;\n",
                     storage(kiln__input_type(spec->input)),
                     compute(kiln__input_type(spec->input)));
  if (spec->acc != KILN_DTYPE_NONE)
    kiln__buf_format(out, "typedef %s acc;\n", compute(spec->acc));
}

kiln_status kiln__generate(kiln__buf *out, const kiln__spec *spec,
                           uint32_t aligned)
{
  if (spec->code != NULL && spec->code->preamble != NULL)
    add_text(out, "the preamble", spec->code->preamble, "");
  kiln__buf_text(out, "namespace user\n{\ntypedef unsigned long long index;\n");
  add_types(out, spec);
  add_args(out, spec);
  if (spec->input != NULL)
    add_input(out, spec, aligned);
  if (spec->op != NULL) {
    if (spec->op->expr == NULL)
      add_named_op(out, spec);
    else
      add_user_op(out, spec);
  }
  for (size_t k = 0; k < KILN__MAX_FUNCTIONS; k++) {
    if (spec->function[k].name == NULL)
      break;
    if (spec->function[k].expr == NULL)
      continue;
    if (spec->function[k].args == NULL)
      add_element_function(out, spec, &spec->function[k]);
    else
      add_function(out, spec, &spec->function[k]);
  }
  kiln__buf_text(out, "} // namespace user\n");
  return kiln__buf_status(out, "a generated header");
}
