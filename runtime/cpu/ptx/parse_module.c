/* parse_module.c -- parses a whole PTX module: .version, .target and
 * .address_size, followed by declarations. kiln__cpu_ptx_parse() is the entry
 * point of this folder. After a mistake, the parser skips to the next
 * declaration, so that one run reports several mistakes. */
#include "parse.h"

/* ---- Directives .version, .target and .address_size ---------------------- */

/* Parses the number of .version. The lexer reads `9.0` as a float, but the
 * version consists of two integers. */
static bool version(kiln__cpu_parser *p)
{
  const kiln__cpu_slice text = p->tok.text;
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  unsigned parts[2] = {0, 0}, part = 0;

  if (p->tok.kind != KILN__TOKEN_FLOAT)
    return kiln__cpu_ptx_unexpected(p, "a version like 9.0");
  for (uint32_t i = 0; i < text.size; i++) {
    const char c = text.data[i];

    if (c == '.' && i > 0 && i + 1 < text.size && part == 0)
      part++;
    else if (c >= '0' && c <= '9' && parts[part] < 1000)
      parts[part] = parts[part] * 10 + (unsigned)(c - '0');
    else
      return kiln__cpu_ptx_unexpected(p, "a version like 9.0");
  }
  if (parts[0] < 3 || parts[0] > 9 || parts[1] > 9)
    kiln__cpu_wrong(p, pos, ".version %u.%u is not supported, only 3.0 to 9.9",
                    parts[0], parts[1]);
  p->module->version = parts[0] * 10 + parts[1];
  kiln__cpu_ptx_next(p);
  return true;
}

/* Target architectures and the PTX versions that introduced them (PTX ISA,
 * "Release Notes"). */
static const struct {
  /* `suffix_version` is the PTX version that introduced the variant with the
   * suffix `a`, such as sm_90a. */
  uint16_t number, version, suffix_version;
} targets[] = {{10, 10, 0},   {11, 10, 0},   {12, 12, 0},   {13, 12, 0},
               {20, 20, 0},   {21, 20, 0},   {30, 30, 0},   {32, 40, 0},
               {35, 31, 0},   {37, 41, 0},   {50, 40, 0},   {52, 41, 0},
               {53, 42, 0},   {60, 50, 0},   {61, 50, 0},   {62, 50, 0},
               {70, 60, 0},   {72, 61, 0},   {75, 63, 0},   {80, 70, 0},
               {86, 71, 0},   {87, 74, 0},   {88, 90, 0},   {89, 78, 0},
               {90, 78, 80},  {100, 86, 86}, {101, 86, 86}, {103, 88, 88},
               {110, 90, 90}, {120, 87, 87}, {121, 88, 88}};

/* Parses the name of a target architecture, such as sm_90, sm_90a or sm_100f.
 */
static bool architecture(kiln__cpu_parser *p)
{
  const kiln__cpu_slice text = p->tok.text;
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  uint32_t number = 0, i = 3;
  char suffix = 0;

  for (; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++)
    number =
        number > 1000 ? number : number * 10 + (uint32_t)(text.data[i] - '0');
  if (i + 1 == text.size && (text.data[i] == 'a' || text.data[i] == 'f'))
    suffix = text.data[i++];
  p->module->target = number;
  p->module->target_suffix = suffix;
  kiln__cpu_ptx_next(p);
  for (size_t k = 0; i == text.size && k < sizeof targets / sizeof *targets;
       k++) {
    uint32_t needed = targets[k].version;

    if (targets[k].number != number ||
        (suffix != 0 &&
         (targets[k].suffix_version == 0 || (suffix == 'f' && number < 100))))
      continue;
    if (suffix != 0)
      needed = targets[k].suffix_version;
    if (suffix == 'f' && needed < 88)
      needed = 88;
    if (p->module->version < needed)
      kiln__cpu_wrong(p, pos, "this .target requires .version %u.%u or later",
                      needed / 10, needed % 10);
    return true;
  }
  kiln__cpu_wrong(
      p, pos, "unknown .target '%.*s'; expected an architecture such as sm_90",
      KILN__SHOWN(text));
  return true;
}

/* Parses the operands of .target, such as `sm_90, debug, texmode_independent`.
 */
static bool target(kiln__cpu_parser *p)
{
  bool unified = false, named = false;

  do {
    const bool sm = p->tok.kind == KILN__TOKEN_NAME && p->tok.text.size > 3 &&
                    memcmp(p->tok.text.data, "sm_", 3) == 0;

    if (sm && !named) {
      named = true;
      if (!architecture(p))
        return false;
    } else if (kiln__cpu_ptx_accept_word(p, "debug")) {
      p->module->debug = true;
    } else if (kiln__cpu_ptx_accept_word(p, "texmode_unified")) {
      unified = true;
    } else if (kiln__cpu_ptx_accept_word(p, "texmode_independent")) {
      p->module->texmode_independent = true;
    } else {
      return kiln__cpu_ptx_unexpected(p,
                                      "an architecture like sm_90, debug or a "
                                      "texture mode");
    }
  } while (kiln__cpu_ptx_accept(p, ','));
  if (!named)
    kiln__cpu_wrong(p, p->tok.pos,
                    ".target names no architecture such as sm_90");
  if (unified && p->module->texmode_independent)
    kiln__cpu_wrong(p, p->tok.pos, ".target names both texture modes");
  return true;
}

static bool address_size(kiln__cpu_parser *p)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  uint64_t bits;

  if (!kiln__cpu_ptx_number(p, &bits))
    return false;
  if (bits != 64)
    kiln__cpu_wrong(
        p, pos,
        "only .address_size 64 is supported; compile with 64-bit addresses");
  return true;
}

static bool module_header(kiln__cpu_parser *p)
{
  if (!kiln__cpu_ptx_accept_word(p, ".version"))
    return kiln__cpu_ptx_unexpected(p, ".version");
  if (!version(p))
    return false;
  if (!kiln__cpu_ptx_accept_word(p, ".target"))
    return kiln__cpu_ptx_unexpected(p, ".target");
  do {
    if (!target(p))
      return false;
  } while (kiln__cpu_ptx_accept_word(p, ".target"));
  p->module->address_size = 64;
  return !kiln__cpu_ptx_accept_word(p, ".address_size") || address_size(p);
}

/* ---- Declarations -------------------------------------------------------- */

static bool declaration(kiln__cpu_parser *p)
{
  kiln__cpu_linkage linkage = KILN__LINK_NONE;
  bool managed = false, unified = false;

  if (kiln__cpu_ptx_accept_word(p, ".section"))
    return kiln__cpu_ptx_section(p);
  if (kiln__cpu_ptx_accept_word(p, ".file"))
    return kiln__cpu_ptx_file(p);
  if (kiln__cpu_ptx_accept_word(p, ".pragma"))
    return kiln__cpu_ptx_pragma(p);
  if (kiln__cpu_ptx_accept_word(p, ".alias"))
    return kiln__cpu_ptx_alias(p);
  if (p->tok.kind == KILN__TOKEN_DOT &&
      kiln__cpu_ptx_linkage_named(p->tok.text, &linkage))
    kiln__cpu_ptx_next(p);
  if (kiln__cpu_ptx_accept_word(p, ".entry"))
    return kiln__cpu_ptx_function_parse(p, linkage, true);
  if (kiln__cpu_ptx_accept_word(p, ".func"))
    return kiln__cpu_ptx_function_parse(p, linkage, false);
  if (!kiln__cpu_ptx_attribute(p, &managed, &unified))
    return false;
  if (p->tok.kind == KILN__TOKEN_DOT)
    return kiln__cpu_ptx_variables(p, linkage, managed, unified);
  return kiln__cpu_ptx_unexpected(p, "a declaration");
}

/* Skips to the next token that looks like the start of a declaration. */
static void recover(kiln__cpu_parser *p)
{
  static const char *const words[] = {
      ".visible", ".entry",   ".func",   ".extern", ".weak",
      ".common",  ".section", ".global", ".const",  ".alias"};

  p->nesting = 0;
  for (; p->tok.kind != KILN__TOKEN_END; kiln__cpu_ptx_next(p)) {
    for (size_t i = 0; p->tok.first && i < sizeof words / sizeof *words; i++) {
      if (kiln__cpu_ptx_is(p, words[i]))
        return;
    }
  }
}

static void declarations(kiln__cpu_parser *p)
{
  while (p->tok.kind != KILN__TOKEN_END && kiln__cpu_ptx_may_continue(p)) {
    const char *from = p->tok.text.data;

    if (declaration(p))
      continue;
    if (p->tok.text.data == from)
      kiln__cpu_ptx_next(p);
    recover(p);
  }
}

/* Returns a pointer to the first byte that is not ASCII. Returns NULL if all
 * bytes are ASCII. */
static const char *not_ascii(const char *text, size_t size)
{
  for (size_t i = 0; i < size; i++) {
    if ((unsigned char)text[i] >= 0x80 || text[i] == '\0')
      return text + i;
  }
  return NULL;
}

static void parse(kiln__cpu_parser *p)
{
  const char *wrong = not_ascii(p->at, (size_t)(p->end - p->at));

  if (wrong != NULL) {
    kiln__cpu_ptx_pos pos = {1, 1};

    for (const char *c = p->at; c < wrong; c++) {
      pos.column = *c == '\n' ? 1 : pos.column + 1;
      pos.line += *c == '\n';
    }
    kiln__cpu_wrong(p, pos, "PTX is ASCII text, but this byte is %u",
                    (unsigned)(unsigned char)*wrong);
    return;
  }
  kiln__cpu_ptx_next(p);
  if (!module_header(p))
    return;
  declarations(p);
  kiln__cpu_ptx_resolve_sections(p);
  if (p->module->debug && p->n_sections == 0)
    kiln__cpu_wrong(p, (kiln__cpu_ptx_pos){1, 1},
                    ".target debug requires debug sections");
}

static void parser_free(kiln__cpu_parser *p)
{
  kiln__cpu_ptx_names_free(p);
  kiln__free(p->alloc, p->insns);
  kiln__free(p->alloc, p->variables.items);
  kiln__free(p->alloc, p->function_labels.items);
  kiln__free(p->alloc, p->module_variables.items);
  kiln__free(p->alloc, p->functions.items);
  kiln__free(p->alloc, p->section_uses.items);
  kiln__free(p->alloc, p->operands);
  kiln__free(p->alloc, p->relocs);
  kiln__free(p->alloc, p);
}

/* Copies the lists of module-scope variables and functions to the module. A
 * declaration that became an alias stays in the list of functions. */
static void finish(kiln__cpu_parser *p)
{
  kiln__cpu_ptx_module *m = p->module;

  m->variables =
      kiln__cpu_ptx_take(p, &p->module_variables, 0, &m->n_variables);
  m->functions = kiln__cpu_ptx_take(p, &p->functions, 0, &m->n_functions);
}

kiln_status kiln__cpu_ptx_parse(kiln__cpu_ptx_module **out,
                                const kiln_allocator *a, const char *text,
                                size_t size)
{
  static const char what[] = "PTX text";
  kiln_status st = KILN_OK;
  kiln__cpu_ptx_module *m = NULL;
  kiln__cpu_parser *p = NULL;

  *out = NULL;
  if (size > 0 && text[size - 1] == '\0')
    size--;
  if (size > INT32_MAX / 2)
    return kiln__fail(KILN_ECOMPILE, NULL, "PTX text of %zu bytes is too large",
                      size);
  m = kiln__cpu_ptx_module_create(a, text, size);
  p = kiln__calloc(a, 1, sizeof *p);
  if (p != NULL)
    p->alloc = a;
  if (m == NULL || p == NULL)
    KILN_TRY(kiln__fail_memory(what));
  p->module = m;
  p->at = p->line_start = kiln__cpu_ptx_source(m, &size);
  p->end = p->at + size;
  p->line = 1;
  p->next_scope = 1;
  kiln__cpu_ptx_messages_init(&p->messages, a, m);
  parse(p);
  if (!p->no_memory && p->messages.n == 0)
    finish(p);
  st = kiln__cpu_ptx_messages_end(&p->messages, what);
  if (p->no_memory)
    st = kiln__fail_memory(what);
  if (st == KILN_OK) {
    *out = m;
    m = NULL;
  }
done:
  if (p != NULL)
    parser_free(p);
  kiln__cpu_ptx_free(m);
  return st;
}
