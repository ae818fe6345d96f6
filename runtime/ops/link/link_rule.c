/* link_rule.c -- decides whether a program is linked from a kernel and the
 * user's expressions, or compiled as a whole.
 *
 * Problem: a linked program is ready after 30 ms instead of 50 to 500 ms. But a
 * call that is not inlined costs time where arithmetic is the limit. And the
 * compiler contracts a product and a following sum to one multiply-add, with
 * one rounding, only within a program. A product in the map whose result the
 * operation adds would thus give other bits in a whole program.
 *
 * Idea: a program is linked only if both forms give the same bits for every
 * compiler. The decision depends on the kernel, the types, the expressions and
 * the size class of the call, and on nothing else. It errs on the side of whole
 * programs. Where calls would take longer, programs are linked only if the user
 * wants short first calls (KILN_LINK=always). The table `limits` follows from
 * times of both forms on an H200, at 2^12, 2^16, 2^18, 2^20 and more elements: a
 * kernel is linked up to the largest size class in which it loses at most 1.5 us
 * per call. A first call gains 50 to 300 ms. Kernels whose expressions are
 * evaluated in batches lose nothing where memory or the launch is the limit,
 * except maps of two arrays with narrow elements (2^28 pairs of i16: 522 us
 * instead of 370). Chains of calls lose most: a scan of 2^18 u32 by an operation
 * of the user takes 8.9 us instead of 5.9.
 *
 * Invariant: in a linked program of floating-point values, one of these holds:
 *   1. no expression and no operation multiplies, or none adds. A call of a
 *      function other than those in `exact` counts as both.
 *   2. there is one expression, which each element evaluates for itself, and
 *      the kernel only moves its result. No product in it has the same factors
 *      for two elements. Otherwise the compiler of the whole program might
 *      compute the product once and not contract it.
 *
 * Cost: one pass over the expressions, only before a compilation. */
#include "../ops.h"

#include <ctype.h>
#include <string.h>

enum {
  /* Calls of other than simple functions per expression, above which arithmetic
   * may be the limit. */
  MOST_CALLS = 2
};

/* What an expression or a preamble contains. */
typedef struct facts {
  bool multiplies, adds, floating, neighbours;
  bool loops;    /* a loop, whose cost is unknown */
  bool includes; /* an #include directive, whose content is unknown */
  /* a product of which neither factor is an element of an array or its index */
  bool repeated_product;
  unsigned calls;
} facts;

/* ---- Words --------------------------------------------------------------- */

/* In these lists each word has blanks around it. */
static const char compute_bound[] =
    " all_pairs gemm_ffma gemm_mma gemm_pack gemm_simt gemm_small gemm_vector "
    "gemm_wgmma stencil stencil_at stencil_rows ";
/* Kernels that do no arithmetic with the user's values except by the
 * operation. */
static const char no_arithmetic[] =
    " buckets difference find gather map map_image merge partition "
    "radix_histogram "
    "radix_pass radix_small reduce reduce_any reduce_columns reduce_rows "
    "run_length scan scan_by_key scatter scatter_buckets search segmented "
    "segmented_rows select select_staged split ";
/* The largest size class in which a kernel is linked. The first row with the
 * kernel's name and elements of at least `least` bytes counts. The last number is
 * for operations that the user writes. Kernels without a row are not linked. */
static const struct {
  const char *families;
  size_t least;
  kiln__size_class most, most_with_op;
} limits[] = {
    {" map ", 4, KILN__MANY, KILN__MANY},
    {" find map merge partition reduce_any run_length run_length_staged search "
     "segmented segmented_rows select select_staged ",
     1, KILN__MEDIUM, KILN__MEDIUM},
    {" reduce_columns scan ", 4, KILN__MEDIUM, KILN__TINY},
    {" difference histogram reduce_rows scan_by_key split ", 1, KILN__FEW,
     KILN__FEW}};
/* Functions and type names that neither multiply nor add. */
static const char exact[] =
    " __brev __clz __clzll __double_as_longlong __ffs __float_as_int "
    "__float_as_uint __int_as_float __longlong_as_double __popc __popcll "
    "__uint_as_float abs bool char copysign copysignf double fabs fabsf float "
    "fmax fmaxf fmin fminf if int isinf isnan long max min return short "
    "signbit signed sizeof unsigned ";
static const char loops[] = " do for goto while ";
static const char elements[] = " column i row w x x0 x1 x2 x3 x4 x5 x6 x7 y z ";

static bool listed(const char *list, const char *word, size_t n)
{
  for (const char *p = list; (p = strchr(p, ' ')) != NULL; p++)
    if (strncmp(p + 1, word, n) == 0 && p[n + 1] == ' ')
      return true;
  return false;
}

/* ---- Tokens -------------------------------------------------------------- */

/* A token of an expression; an empty one at the end. */
typedef struct token {
  const char *at;
  size_t n;
} token;

static bool is_word(char c)
{
  return isalnum((unsigned char)c) || c == '_';
}

/* Returns the address after blanks and comments. */
static const char *past_blanks(const char *p)
{
  for (;;) {
    if (isspace((unsigned char)*p)) {
      p++;
    } else if (p[0] == '/' && p[1] == '/') {
      p += strcspn(p, "\n");
    } else if (p[0] == '/' && p[1] == '*') {
      const char *end = strstr(p + 2, "*/");

      p = end == NULL ? p + strlen(p) : end + 2;
    } else {
      return p;
    }
  }
}

/* Returns the length of the number at p. A sign after an exponent belongs to
 * it. */
static size_t number_length(const char *p)
{
  const bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
  size_t n = 0;

  while (is_word(p[n]) || p[n] == '.' ||
         (n > 0 && (p[n] == '+' || p[n] == '-') &&
          strchr(hex ? "pP" : "eE", p[n - 1]) != NULL))
    n++;
  return n;
}

static token next_token(const char *p)
{
  token t = {past_blanks(p), 1};

  if (*t.at == '\0')
    t.n = 0;
  else if (isdigit((unsigned char)*t.at) ||
           (*t.at == '.' && isdigit((unsigned char)t.at[1])))
    t.n = number_length(t.at);
  else
    while (is_word(*t.at) && is_word(t.at[t.n]))
      t.n++;
  return t;
}

static bool is_number(token t)
{
  return t.n > 0 && (isdigit((unsigned char)*t.at) || t.n > 1) &&
         !isalpha((unsigned char)*t.at) && *t.at != '_';
}

/* ---- Facts --------------------------------------------------------------- */

static void see_symbol(facts *f, token before, token t, token next)
{
  switch (*t.at) {
  case '*':
  case '/':
    f->multiplies = true;
    if (!listed(elements, before.at, before.n) &&
        !listed(elements, next.at, next.n))
      f->repeated_product = true;
    break;
  case '+':
  case '-':
    f->adds = true;
    break;
  case '#':
    if (next.n == 7 && strncmp(next.at, "include", 7) == 0)
      f->includes = true;
    break;
  default:
    break;
  }
}

/* Returns whether a preamble defines a function: whether its name follows
 * another word, as in "int f(", other than return and else. */
static bool defines(const char *preamble, token name)
{
  token before = {"", 0}, t = next_token(preamble == NULL ? "" : preamble);

  while (t.n > 0) {
    const token next = next_token(t.at + t.n);

    if (t.n == name.n && memcmp(t.at, name.at, t.n) == 0 && next.n > 0 &&
        *next.at == '(' && before.n > 0 &&
        (is_word(*before.at) || *before.at == '*') &&
        !listed(" else return ", before.at, before.n))
      return true;
    before = t;
    t = next;
  }
  return false;
}

static void see_word(facts *f, token t, token next, const char *preamble)
{
  const bool at = t.n > 3 && strncmp(t.at + t.n - 3, "_at", 3) == 0;

  if (listed(loops, t.at, t.n))
    f->loops = true;
  if (listed(" float double ", t.at, t.n))
    f->floating = true;
  if (at)
    f->neighbours = true;
  if (next.n == 0 || *next.at != '(' || at || listed(exact, t.at, t.n))
    return;
  f->multiplies = f->adds = true;
  if (defines(preamble, t))
    return;
  f->calls++;
  f->floating = true;
}

static facts facts_of(const char *text, const char *preamble)
{
  token before = {"", 0}, t = next_token(text == NULL ? "" : text);
  facts f = {0};

  while (t.n > 0) {
    const token next = next_token(t.at + t.n);

    if (is_number(t))
      f.floating |=
          memchr(t.at, '.', t.n) != NULL || memchr(t.at, 'e', t.n) != NULL;
    else if (is_word(*t.at))
      see_word(&f, t, next, preamble);
    else
      see_symbol(&f, before, t, next);
    before = t;
    t = next;
  }
  return f;
}

/* ---- The decision -------------------------------------------------------- */

/* The facts of all expressions of a spec. */
typedef struct sum {
  facts all;
  unsigned texts;
  bool elementwise; /* every expression uses the elements of the inputs */
  bool heavy, simple;
} sum;

/* Returns whether an expression is one token, such as a flag, the default of an
 * operation, or an expression of the library itself. Programs with such
 * expressions only are compiled once, so they gain nothing from links. */
static bool is_simple(const char *text)
{
  const token t = next_token(text);

  return strstr(text, "kiln__") != NULL || *past_blanks(t.at + t.n) == '\0' ||
         strcmp(text, "a == b") == 0 || strcmp(text, "a - b") == 0;
}

static void add_text(sum *s, const char *text, const char *preamble,
                     bool elementwise)
{
  const facts f = facts_of(text, preamble);

  if (text == NULL)
    return;
  s->texts++;
  s->simple &= is_simple(text);
  s->elementwise &= elementwise;
  s->heavy |= f.loops || f.includes || f.calls > MOST_CALLS;
  s->all.multiplies |= f.multiplies;
  s->all.adds |= f.adds;
  s->all.floating |= f.floating;
  s->all.neighbours |= f.neighbours;
  s->all.repeated_product |= f.repeated_product || f.calls > 0 ||
                             (f.multiplies && f.adds && preamble != NULL);
}

static sum sum_of(const kiln__spec *spec)
{
  const char *preamble = spec->code == NULL ? NULL : spec->code->preamble;
  sum s = {.elementwise = true, .simple = true};

  if (spec->input != NULL)
    add_text(&s, spec->input->map, preamble, true);
  if (spec->op != NULL && spec->op->expr != NULL) {
    add_text(&s, spec->op->expr, preamble, false);
    add_text(&s, spec->op->identity, preamble, false);
  }
  for (size_t i = 0; i < KILN__MAX_FUNCTIONS && spec->function[i].name != NULL;
       i++)
    add_text(&s, spec->function[i].expr, preamble,
             spec->function[i].operand == NULL &&
                 spec->function[i].parameters == NULL);
  return s;
}

/* Adds the facts of the preamble, whose functions any expression may call. */
static void add_preamble(sum *s, const kiln_code *code)
{
  const facts f = facts_of(code->preamble, code->preamble);

  s->heavy |= f.loops || f.includes;
  s->all.multiplies |= f.multiplies;
  s->all.adds |= f.adds;
  s->all.floating |= f.floating;
}

static bool is_float(kiln_dtype type)
{
  return type >= KILN_F16 && type <= KILN_F64;
}

static bool has_float_parameter(const kiln_code *code)
{
  for (size_t k = 0; code != NULL && k < code->n_params; k++)
    if (is_float(code->params[k].type) && !code->params[k].constant)
      return true;
  return false;
}

/* Returns whether a type is a struct or complex, or an input is a view. */
static bool has_other_types(const kiln__spec *spec)
{
  const char *define = spec->family->defines;

  if (spec->shape != NULL)
    return true;
  for (size_t k = 0; *define != '\0'; k++) {
    if (*define == ':' && spec->value[k] > KILN_F64)
      return true;
    define += strlen(define) + 1;
  }
  return spec->acc > KILN_F64 ||
         (spec->input != NULL && kiln__input_type(spec->input) > KILN_F64);
}

/* Returns the bytes of the narrowest element that the kernel reads, or 0 if a
 * type is no scalar. */
static size_t narrowest(const kiln__spec *spec)
{
  size_t least = 8;

  if (has_other_types(spec))
    return 0;
  for (size_t k = 0; spec->code != NULL && k < spec->code->n_params; k++)
    if (spec->code->params[k].type > KILN_F64)
      return 0;
  for (size_t k = 0; spec->input != NULL && k < kiln__input_arrays(spec->input);
       k++) {
    const kiln_dtype type = spec->input->in[k].type;

    if (type > KILN_F64)
      return 0;
    least = kiln__size(type) < least ? kiln__size(type) : least;
  }
  return least;
}

/* Returns whether the calls of the expressions cost little time. */
static bool is_cheap(const kiln__spec *spec)
{
  const char *const family = spec->family->builtin;
  const size_t bytes = narrowest(spec);
  const bool with_op = spec->op != NULL && spec->op->expr != NULL;

  for (size_t k = 0; k < sizeof limits / sizeof limits[0]; k++)
    if (bytes >= limits[k].least &&
        listed(limits[k].families, family, strlen(family)))
      return kiln__size_class_of(spec->elements) <=
             (with_op ? limits[k].most_with_op : limits[k].most);
  return false;
}

/* Returns whether the types of a spec may make its arithmetic floating-point. */
static bool has_float(const kiln__spec *spec)
{
  if (is_float(spec->acc))
    return true;
  for (size_t k = 0; k < (spec->code == NULL ? 0 : spec->code->n_params); k++)
    if (is_float(spec->code->params[k].type))
      return true;
  if (spec->input == NULL)
    return false;
  for (size_t k = 0; k < kiln__input_arrays(spec->input); k++)
    if (is_float(spec->input->in[k].type))
      return true;
  return is_float(kiln__input_type(spec->input));
}

/* Returns whether both forms of the program compute the same bits. */
static bool same_bits(const kiln__spec *spec, sum s)
{
  const bool named = spec->op != NULL && spec->op->expr == NULL;
  const bool arithmetic = !listed(no_arithmetic, spec->family->builtin,
                                  strlen(spec->family->builtin)) ||
                          (spec->op == NULL && spec->acc != KILN_DTYPE_NONE);

  if (!has_float(spec) && !s.all.floating)
    return true;
  s.all.adds |= arithmetic || (named && spec->op->name == KILN_SUM);
  s.all.multiplies |= arithmetic || (named && spec->op->name == KILN_PROD);
  if (!s.all.adds || !s.all.multiplies)
    return true;
  if (arithmetic || spec->op != NULL || s.texts != 1 || !s.elementwise)
    return false;
  return !s.all.neighbours &&
         !(s.all.repeated_product && has_float_parameter(spec->code));
}

bool kiln__links(const kiln__spec *spec, kiln__link_use use)
{
  const char *family = spec->family->builtin;
  sum s;

  if (use == KILN__LINK_NEVER || spec->pairs != NULL ||
      listed(compute_bound, family, strlen(family)) ||
      (spec->code != NULL && spec->code->fast_math))
    return false;
  s = sum_of(spec);
  if (spec->code != NULL)
    add_preamble(&s, spec->code);
  if (s.texts == 0 || s.simple || s.heavy || narrowest(spec) == 0 ||
      !same_bits(spec, s))
    return false;
  return use == KILN__LINK_ALWAYS || is_cheap(spec);
}
