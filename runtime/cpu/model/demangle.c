/* demangle.c -- converts mangled names of C++ kernels into readable names.
 *
 * Problem: nvcc and NVRTC mangle names by the Itanium C++ ABI. A finding that
 * shows "_Z4copyIfLi4EEvPT_" contains no name that the user wrote.
 * __cxa_demangle() would decode the name, but it is part of libstdc++, which a
 * C program does not load. The text of a finding must be the same in every
 * process.
 *
 * Idea: a recursive descent over the part of the grammar that kernel names use:
 * namespaces, templates, builtin and class types, literals, packs and
 * substitutions. Parameter types are not read. If a name uses any other
 * construct, the whole name is shown unchanged.
 *
 * Invariant: each rule appends its output to `out`, and advances `at` past the
 * characters that it has read. A substitution (S_, S0_, ...) refers to an
 * earlier component, whose text is stored in `kept`. Depth and lengths are
 * bounded, since the names come from files.
 *
 * Source: Itanium C++ ABI, section 5.1 (External Names). */
#include "demangle.h"

#include "../../base/base.h"

#include <string.h>

enum { MAX_DEPTH = 24, MAX_KEPT = 32, MAX_PART = 240, MAX_NAME = 512 };

typedef struct reader {
  const char *at; /* next character of the mangled name */
  char out[MAX_NAME];
  size_t used;
  unsigned depth, n_kept;
  /* length of `out` before the last template arguments of the name itself; 0 if
   * there were none */
  size_t before_arguments;
  /* texts of the candidates for substitution (S_, S0_, ...) */
  char kept[MAX_KEPT][MAX_PART];
} reader;

static bool put(reader *r, const char *text, size_t size)
{
  if (size >= sizeof r->out - r->used)
    return false;
  memcpy(r->out + r->used, text, size);
  r->used += size;
  r->out[r->used] = '\0';
  return true;
}

static bool put_text(reader *r, const char *text)
{
  return put(r, text, strlen(text));
}

static bool take(reader *r, char c)
{
  if (*r->at != c)
    return false;
  r->at++;
  return true;
}

/* Stores the output since offset `from` as a candidate for substitution. */
static bool keep(reader *r, size_t from)
{
  const size_t size = r->used - from;

  if (r->n_kept == MAX_KEPT || size >= MAX_PART)
    return false;
  memcpy(r->kept[r->n_kept], r->out + from, size);
  r->kept[r->n_kept++][size] = '\0';
  return true;
}

static bool type(reader *r);
static bool name(reader *r);

/* Reads a decimal length and skips that number of characters. Returns the
 * number, or 0 if the name is not valid. */
static size_t counted(reader *r)
{
  size_t n = 0;

  while (*r->at >= '0' && *r->at <= '9' && n < MAX_NAME)
    n = n * 10 + (size_t)(*r->at++ - '0');
  if (n == 0 || strnlen(r->at, n) < n)
    return 0;
  r->at += n;
  return n;
}

/* Parses the grammar rule <source-name>: a decimal length, followed by that
 * number of characters. ABI tags may follow; they are left out. Numba writes
 * tags that are longer than names. */
static bool source_name(reader *r)
{
  const size_t n = counted(r);
  const char *text = r->at - n;

  if (n == 0)
    return false;
  while (take(r, 'B')) {
    if (counted(r) == 0)
      return false;
  }
  if (n >= 10 && memcmp(text, "_GLOBAL__N", 10) == 0)
    return put_text(r, "(anonymous namespace)");
  return put(r, text, n);
}

/* Parses the grammar rule <substitution>: S_, S0_, S1_, ... (numbers in base
 * 36), and St and the other abbreviations of names in std. */
static bool substitution(reader *r)
{
  static const struct {
    char code;
    const char *text;
  } known[] = {{'t', "std"},
               {'a', "std::allocator"},
               {'b', "std::basic_string"},
               {'s', "std::string"},
               {'i', "std::istream"},
               {'o', "std::ostream"},
               {'d', "std::iostream"}};
  unsigned n = 0;

  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (take(r, known[i].code))
      return put_text(r, known[i].text);
  }
  if (!take(r, '_')) {
    for (; *r->at != '_' && n < MAX_KEPT; r->at++) {
      const char c = *r->at;

      if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')))
        return false;
      n = n * 36 + (unsigned)(c <= '9' ? c - '0' : c - 'A' + 10);
    }
    n++;
    if (!take(r, '_'))
      return false;
  }
  return n < r->n_kept && put_text(r, r->kept[n]);
}

/* Parses a literal argument of a template, L <type> <value> E in the grammar.
 * Prints "4" for integers, "true" for bool, and "(kind)2" for other types. */
static bool literal(reader *r)
{
  const char code = *r->at;
  size_t from = r->used;

  /* In the grammar, L_Z <name> <parameter type>* E denotes a function. */
  if (take(r, '_')) {
    if (!take(r, 'Z') || !name(r))
      return false;
    from = r->used;
    while (*r->at != 'E') {
      if (!type(r))
        return false;
    }
    r->used = from;
    r->out[from] = '\0';
    return take(r, 'E');
  }
  if (code == 'b' && (r->at[1] == '0' || r->at[1] == '1') && r->at[2] == 'E') {
    r->at += 3;
    return put_text(r, r->at[-2] == '1' ? "true" : "false");
  }
  if (!put_text(r, "(") || !type(r) || !put_text(r, ")"))
    return false;
  /* An integer is printed without its type. */
  if (strchr("ijlmxyst", code) != NULL)
    r->used = from;
  if (take(r, 'n') && !put_text(r, "-"))
    return false;
  while (*r->at >= '0' && *r->at <= '9') {
    if (!put(r, r->at++, 1))
      return false;
  }
  return take(r, 'E');
}

/* Parses template arguments, I <argument>* E in the grammar. Within the
 * arguments, J <argument>* E is a parameter pack. */
static bool arguments(reader *r, bool pack)
{
  bool first = true;

  if (r->depth == 1 && !pack)
    r->before_arguments = r->used;
  if (!pack && !put_text(r, "<"))
    return false;
  while (!take(r, 'E')) {
    const bool empty = r->at[0] == 'J' && r->at[1] == 'E';

    if (!first && !empty && !put_text(r, ", "))
      return false;
    first = first && empty;
    if (take(r, 'J') ? pack || !arguments(r, true)
                     : (take(r, 'L') ? !literal(r) : !type(r)))
      return false;
  }
  return pack || put_text(r, ">");
}

/* Parses a nested name, N <qualifiers> <component>* E in the grammar. Each
 * prefix is a candidate for substitution. The whole name is a candidate only if
 * it names a type. */
static bool nested(reader *r, bool is_type)
{
  const size_t from = r->used;
  bool first = true;

  r->at += strspn(r->at, "VKr");
  while (!take(r, 'E')) {
    const bool substituted = *r->at == 'S' && r->at[1] != 't';

    if (*r->at == 'I') {
      r->at++;
      if (first || !arguments(r, false))
        return false;
    } else if ((!first && !put_text(r, "::")) ||
               (take(r, 'S') ? !first || !substitution(r)
                             : !(take(r, 'L'), source_name(r)))) {
      return false;
    }
    if (!substituted && !(first && strcmp(r->out + from, "std") == 0) &&
        (is_type || *r->at != 'E') && !keep(r, from))
      return false;
    first = false;
  }
  return !first;
}

/* Parses a name that is not nested: one component, which may be in std and may
 * have template arguments. */
static bool plain(reader *r, bool is_type)
{
  const size_t from = r->used;
  bool substituted = false;

  if (take(r, 'S')) {
    const bool std = *r->at == 't';

    substituted = !std;
    if (!substitution(r) || (std && (!put_text(r, "::") || !source_name(r))))
      return false;
  } else {
    take(r, 'L');
    if (!source_name(r))
      return false;
  }
  if (!substituted && (is_type || *r->at == 'I') && !keep(r, from))
    return false;
  if (!take(r, 'I'))
    return true;
  return arguments(r, false) && (!is_type || keep(r, from));
}

static bool builtin(reader *r)
{
  static const char *const names[26] = {['a' - 'a'] = "signed char",
                                        ['b' - 'a'] = "bool",
                                        ['c' - 'a'] = "char",
                                        ['d' - 'a'] = "double",
                                        ['e' - 'a'] = "long double",
                                        ['f' - 'a'] = "float",
                                        ['h' - 'a'] = "unsigned char",
                                        ['i' - 'a'] = "int",
                                        ['j' - 'a'] = "unsigned int",
                                        ['l' - 'a'] = "long",
                                        ['m' - 'a'] = "unsigned long",
                                        ['n' - 'a'] = "__int128",
                                        ['o' - 'a'] = "unsigned __int128",
                                        ['s' - 'a'] = "short",
                                        ['t' - 'a'] = "unsigned short",
                                        ['v' - 'a'] = "void",
                                        ['w' - 'a'] = "wchar_t",
                                        ['x' - 'a'] = "long long",
                                        ['y' - 'a'] = "unsigned long long"};
  const char c = *r->at;

  if (c < 'a' || c > 'z' || names[c - 'a'] == NULL)
    return false;
  r->at++;
  return put_text(r, names[c - 'a']);
}

static bool type_inside(reader *r)
{
  static const struct {
    char code;
    const char *text;
  } suffixes[] = {{'P', "*"},      {'R', "&"},         {'O', "&&"},
                  {'K', " const"}, {'V', " volatile"}, {'r', " __restrict"}};
  const size_t from = r->used;

  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    if (take(r, suffixes[i].code))
      return type(r) && put_text(r, suffixes[i].text) && keep(r, from);
  }
  if (builtin(r))
    return true;
  return take(r, 'N') ? nested(r, true) : plain(r, true);
}

static bool type(reader *r)
{
  bool fine;

  if (r->depth == MAX_DEPTH)
    return false;
  r->depth++;
  fine = type_inside(r);
  r->depth--;
  return fine;
}

static bool name(reader *r)
{
  bool fine;

  if (r->depth == MAX_DEPTH)
    return false;
  r->depth++;
  fine = take(r, 'N') ? nested(r, false) : plain(r, false);
  r->depth--;
  return fine;
}

const char *kiln__cpu_demangle(const char *linkage, char *buf, size_t size)
{
  const bool mangled = strncmp(linkage, "_Z", 2) == 0;
  reader r;

  r.at = linkage + 2;
  r.used = r.depth = r.n_kept = 0;
  r.before_arguments = 0;
  if (mangled && name(&r))
    kiln__copy_text(buf, size, r.out);
  else if (mangled && r.before_arguments > 0)
    kiln__format(buf, size, "%.*s<...>", (int)r.before_arguments, r.out);
  else
    kiln__copy_text(buf, size, linkage);
  return buf;
}
