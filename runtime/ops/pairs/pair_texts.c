/* pair_texts.c -- generates the functions of kiln_all_pairs(), which contain
 * the user's expressions over a target and a source.
 *
 * The kernel sees two structs, user::target and user::source, whose members are
 * the fields that the user's expressions name (t.x, s.x and so on). All
 * expressions of a pair share one function, since they share the variables of
 * the common statements; the epilogues share another one. The rules of
 * generated_header.c about names apply. */
#include "../ops.h"

#include <string.h>

#define INLINE "static __device__ __forceinline__ "

static const char *const names[] = {"x", "y", "z", "w", "x4", "x5", "x6", "x7"};

const char *kiln__pair_text(const kiln__pairs *p, size_t k, const char **what)
{
  static const char *const name[KILN__PAIR_TEXTS] = {
      "the common text", "expr[0]",     "expr[1]",     "expr[2]",    "expr[3]",
      "epilogue[0]",     "epilogue[1]", "epilogue[2]", "epilogue[3]"};

  *what = name[k];
  if (k == 0)
    return p->common;
  k--;
  return k < KILN_MAX_OUTPUTS ? p->expr[k] : p->epilogue[k - KILN_MAX_OUTPUTS];
}

/* ---- Elements ------------------------------------------------------------ */

/* Returns the size of a struct of one element of each array, without padding at
 * its end. */
static size_t size_of(const kiln_array *a, size_t n)
{
  size_t bytes = 0;

  for (size_t k = 0; k < n; k++) {
    const size_t size = kiln__size(kiln__dtype_of(a[k].type)->computed);

    bytes = (bytes + size - 1) / size * size + size;
  }
  return bytes;
}

/* Adds a struct with the given name, and the function that loads it. `first` is
 * the number of the first array among the input's arrays. The struct is aligned
 * so that up to 16 bytes are read at once. Such a read includes the padding at
 * the end, so the padding is a member, which is initialised to 0. */
static void add_element(kiln__buf *out, const char *name, const kiln_array *a,
                        size_t first, size_t n)
{
  const size_t bytes = size_of(a + first, n);
  const size_t align = bytes > 8 ? 16 : bytes > 4 ? 8 : 4;
  const size_t pad = (align - bytes % align) % align;

  kiln__buf_format(out, "struct alignas(%u) %s {\n", (unsigned)align, name);
  for (size_t k = 0; k < n; k++)
    kiln__buf_format(out, "  %s %s;\n",
                     kiln__dtype_of(a[first + k].type)->compute, names[k]);
  if (pad > 0)
    kiln__buf_format(out, "  unsigned char kiln__pad[%u];\n", (unsigned)pad);
  kiln__buf_format(out,
                   "};\n" INLINE "%s load_%s(const args &s, index i)\n{\n"
                   "  return {",
                   name, name);
  for (size_t k = 0; k < n; k++)
    kiln__buf_format(out, "%skiln::load(s.x%zu + i)", k == 0 ? "" : ", ",
                     first + k);
  kiln__buf_text(out, "};\n}\n");
}

#define PAIR_PARAMETERS                                                        \
  "(const kiln__args &kiln__s, const kiln__target &t, const kiln__source &s, " \
  "const kiln__index i, const kiln__index j, kiln__acc *kiln__v)"
#define EPILOGUE_PARAMETERS                                                    \
  "(const kiln__args &kiln__s, const kiln__target &t, const kiln__index i, "   \
  "kiln__acc *kiln__v)"

void kiln__generate_pair_types(kiln__buf *out, const kiln__spec *spec)
{
  const kiln__pairs *p = spec->pairs;
  const size_t arrays = kiln__input_arrays(spec->input);

  kiln__buf_text(out, "namespace user\n{\n");
  add_element(out, "target", spec->input->in, 0, p->n_targets);
  if (arrays > p->n_targets)
    add_element(out, "source", spec->input->in, p->n_targets,
                arrays - p->n_targets);
  else
    kiln__buf_text(out, "typedef target source;\n" INLINE
                        "source load_source(const args &s, index j)\n"
                        "{\n  return load_target(s, j);\n}\n");
  kiln__buf_text(
      out, "}\ntypedef user::target kiln__target;\n"
           "typedef user::source kiln__source;\n"
           "typedef user::acc kiln__acc;\n"
           "namespace kiln__texts\n{\n" INLINE "void kiln__pair" PAIR_PARAMETERS
           ";\n" INLINE "void kiln__epilogue" EPILOGUE_PARAMETERS ";\n}\n"
           "namespace user\n{\n" INLINE
           "void pair(const args &s, const target &t, const source &o, "
           "index i, index j, acc *v)\n"
           "{\n  kiln__texts::kiln__pair(s, t, o, i, j, v);\n}\n" INLINE
           "void epilogue(const args &s, const target &t, index i, acc *v)\n"
           "{\n  kiln__texts::kiln__epilogue(s, t, i, v);\n}\n}\n");
}

/* ---- Expressions --------------------------------------------------------- */

/* Adds an assignment of text number k to result number `to`. */
static void add_value(kiln__buf *out, const kiln__pairs *p, size_t k, size_t to)
{
  const char *what;
  const char *const text = kiln__pair_text(p, k, &what);

  if (text != NULL)
    kiln__buf_format(out,
                     "  kiln__v[%zu] = static_cast<kiln__acc>(\n"
                     "#line 1 \"%s\"\n%s\n);\n#line 1 \"generated\"\n",
                     to, what, text);
}

void kiln__generate_pair_texts(kiln__buf *out, const kiln__spec *spec)
{
  const kiln__pairs *p = spec->pairs;
  const char *what;
  const char *const common = kiln__pair_text(p, 0, &what);

  kiln__buf_text(out, INLINE "void kiln__pair" PAIR_PARAMETERS
                             "\n{\n  (void)kiln__s; (void)t; (void)s; (void)i; "
                             "(void)j;\n");
  kiln__generate_params(out, spec->code);
  if (common != NULL)
    kiln__buf_format(out, "#line 1 \"%s\"\n%s\n;\n#line 1 \"generated\"\n",
                     what, common);
  for (size_t k = 0; k < KILN_MAX_OUTPUTS; k++)
    add_value(out, p, 1 + k, k);
  kiln__buf_text(out, "}\n" INLINE "void kiln__epilogue" EPILOGUE_PARAMETERS
                      "\n{\n  (void)kiln__s; (void)t; (void)i; "
                      "(void)kiln__v;\n");
  for (size_t k = 0; k < KILN_MAX_OUTPUTS && p->expr[k] != NULL; k++)
    kiln__buf_format(
        out, "  const kiln__acc r%zu = kiln__v[%zu]; (void)r%zu;\n", k, k, k);
  kiln__generate_params(out, spec->code);
  for (size_t k = 0; k < KILN_MAX_OUTPUTS; k++)
    add_value(out, p, 1 + KILN_MAX_OUTPUTS + k, k);
  kiln__buf_text(out, "}\n");
}
