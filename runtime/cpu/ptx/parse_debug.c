/* parse_debug.c -- parses .file and .loc, which define source positions, and
 * checks and skips the debug sections. Kiln does not use the content of the
 * sections (DWARF). However, ptxas rejects malformed sections, so their syntax
 * and their labels are checked. */
#include "parse.h"

/* The kinds of names that this file records with kiln__cpu_ptx_mark(). Source
 * positions of .loc directives are recorded by number, with an empty name. */
enum { ID_LABEL = 0, ID_USED_LABEL = 1 };

static bool small_number(kiln__cpu_parser *p, uint32_t *out)
{
  uint64_t value;

  if (!kiln__cpu_ptx_number(p, &value))
    return false;
  *out = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
  return true;
}

/* Grows the table of source files so that it contains index `index`. */
static bool reach_file(kiln__cpu_parser *p, uint32_t index)
{
  kiln__cpu_ptx_module *m = p->module;
  const uint32_t n = (index | 15) + 1;
  const char **files;

  if (index < m->n_files)
    return true;
  files = kiln__cpu_ptx_new(p, n * sizeof *files);
  if (files == NULL)
    return false;
  if (m->n_files > 0)
    memcpy(files, m->files, m->n_files * sizeof *files);
  m->files = files;
  m->n_files = n;
  return true;
}

/* Parses `.file 1 "name"` or `.file 1 "name", time, size`. The directive does
 * not end in a semicolon. */
bool kiln__cpu_ptx_file(kiln__cpu_parser *p)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  uint64_t index;
  kiln__cpu_slice name;
  char *text;

  if (!kiln__cpu_ptx_number(p, &index))
    return false;
  name = p->tok.text;
  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_STRING))
    return false;
  for (int i = 0; i < 2 && kiln__cpu_ptx_accept(p, ','); i++) {
    uint64_t ignored;

    if (!kiln__cpu_ptx_number(p, &ignored))
      return false;
  }
  if (index >= KILN__PTX_MAX_FILES) {
    kiln__cpu_wrong(p, pos, "a file number must be below %d",
                    KILN__PTX_MAX_FILES);
    return true;
  }
  if (!reach_file(p, (uint32_t)index))
    return false;
  if (p->module->files[index] != NULL) {
    kiln__cpu_wrong(p, pos, "file %u is declared twice", (unsigned)index);
    return true;
  }
  text = kiln__cpu_ptx_new(p, (size_t)name.size + 1);
  if (text == NULL)
    return false;
  memcpy(text, name.data, name.size);
  p->module->files[index] = text;
  return true;
}

static uint64_t loc_id(const kiln__cpu_ptx_loc *loc)
{
  return (uint64_t)loc->file << 48 ^ (uint64_t)loc->line << 16 ^ loc->column;
}

/* Records the position of a .loc directive, so that a later inlined_at may
 * refer to it. */
static bool mark_loc(kiln__cpu_parser *p, const kiln__cpu_ptx_loc *loc,
                     bool *was)
{
  return kiln__cpu_ptx_mark(p, (kiln__cpu_slice){"", 0}, loc_id(loc), was);
}

/* Returns where the outermost call of a recorded position is kept: the file
 * number in the upper half, and the line in the lower half. */
static uint64_t *outer_of(const kiln__cpu_parser *p,
                          const kiln__cpu_ptx_loc *loc)
{
  return kiln__cpu_ptx_mark_value(p, (kiln__cpu_slice){"", 0}, loc_id(loc));
}

/* Records that a section must declare the current token as a label. Most such
 * labels are declared later in the source. */
static bool use_section_label(kiln__cpu_parser *p)
{
  const kiln__cpu_token name = p->tok;
  kiln__cpu_token *copy;
  bool was;

  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME) ||
      !kiln__cpu_ptx_mark(p, name.text, ID_USED_LABEL, &was))
    return false;
  if (was)
    return true;
  copy = kiln__cpu_ptx_new(p, sizeof *copy);
  if (copy == NULL)
    return false;
  *copy = name;
  return kiln__cpu_ptx_push(p, &p->section_uses, copy);
}

void kiln__cpu_ptx_resolve_sections(kiln__cpu_parser *p)
{
  for (uint32_t i = 0; i < p->section_uses.n; i++) {
    const kiln__cpu_token *name = p->section_uses.items[i];

    if (!kiln__cpu_ptx_is_marked(p, name->text, ID_LABEL))
      kiln__cpu_wrong(p, name->pos,
                      "no debug section declares the label '%.*s'",
                      KILN__SHOWN(name->text));
  }
}

/* Parses and checks `, function_name $L_info, inlined_at 1 2 3`. Of the chain of
 * calls only the outermost one is kept, which the last .loc at the position of
 * the call had. */
static bool inlined_at(kiln__cpu_parser *p, uint64_t *outer)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  kiln__cpu_ptx_loc loc;
  uint32_t ignored;
  bool was;

  if (!kiln__cpu_ptx_accept_word(p, "function_name"))
    return kiln__cpu_ptx_unexpected(p, "function_name");
  if (!use_section_label(p))
    return false;
  if (kiln__cpu_ptx_accept(p, '+') && !small_number(p, &ignored))
    return false;
  if (!kiln__cpu_ptx_expect(p, ','))
    return false;
  if (!kiln__cpu_ptx_accept_word(p, "inlined_at"))
    return kiln__cpu_ptx_unexpected(p, "inlined_at");
  if (!small_number(p, &loc.file) || !small_number(p, &loc.line) ||
      !small_number(p, &loc.column) || !mark_loc(p, &loc, &was))
    return false;
  if (!was)
    kiln__cpu_wrong(p, pos,
                    "inlined_at refers to a position that no .loc names");
  if (*outer_of(p, &loc) != 0)
    *outer = *outer_of(p, &loc);
  return true;
}

bool kiln__cpu_ptx_loc_parse(kiln__cpu_parser *p)
{
  kiln__cpu_ptx_loc loc;
  uint64_t outer;
  bool was;

  if (!small_number(p, &loc.file) || !small_number(p, &loc.line) ||
      !small_number(p, &loc.column) || !mark_loc(p, &loc, &was))
    return false;
  outer = (uint64_t)loc.file << 32 | loc.line;
  if (kiln__cpu_ptx_accept(p, ',') && !inlined_at(p, &outer))
    return false;
  *outer_of(p, &loc) = outer;
  loc.outer_file = (uint32_t)(outer >> 32);
  loc.outer_line = (uint32_t)outer;
  p->loc = loc;
  return true;
}

/* ---- Sections ------------------------------------------------------------ */

/* Parses a signed or unsigned number of at most `bytes` bytes. */
static bool plain_datum(kiln__cpu_parser *p, uint32_t bytes)
{
  const kiln__cpu_ptx_pos pos = p->tok.pos;
  const bool minus = kiln__cpu_ptx_accept(p, '-');
  const uint64_t most = UINT64_MAX >> (64 - 8 * bytes);
  uint64_t value;

  if (!kiln__cpu_ptx_number(p, &value))
    return false;
  if (bytes < 8 && value > (minus ? most / 2 + 1 : most))
    kiln__cpu_wrong(p, pos, "this does not fit %u bytes", bytes);
  return true;
}

/* Parses an item of a debug section: -1, a, a+4, a-b, .debug_abbrev or
 * .debug_str+4. An item that contains a name occupies at least 4 bytes. */
static bool datum(kiln__cpu_parser *p, uint32_t bytes)
{
  uint64_t ignored;

  if (p->tok.kind == '-' || p->tok.kind == KILN__TOKEN_INTEGER)
    return plain_datum(p, bytes);
  if (p->tok.kind != KILN__TOKEN_NAME && p->tok.kind != KILN__TOKEN_DOT)
    return kiln__cpu_ptx_unexpected(p, "a value");
  if (bytes < 4)
    return kiln__cpu_ptx_unexpected(p, "a number");
  kiln__cpu_ptx_next(p);
  if (kiln__cpu_ptx_accept(p, '+'))
    return kiln__cpu_ptx_number(p, &ignored);
  if (kiln__cpu_ptx_accept(p, '-'))
    return kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME);
  return true;
}

/* Declares a label in a debug section. All sections share one name space. */
static bool section_label(kiln__cpu_parser *p)
{
  const kiln__cpu_token name = p->tok;
  bool was;

  if (!kiln__cpu_ptx_expect(p, KILN__TOKEN_NAME) ||
      !kiln__cpu_ptx_expect(p, ':') ||
      !kiln__cpu_ptx_mark(p, name.text, ID_LABEL, &was))
    return false;
  if (was)
    kiln__cpu_wrong(p, name.pos, "'%.*s' is declared twice",
                    KILN__SHOWN(name.text));
  return true;
}

/* Returns whether the token is the name of a debug section. PTX has no other
 * sections. */
static bool names_section(const kiln__cpu_token *tok)
{
  static const char *const stems[] = {".debug_", ".nv_debug_"};

  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
    const size_t n = strlen(stems[i]);

    if (tok->kind == KILN__TOKEN_DOT && tok->text.size > n &&
        memcmp(tok->text.data, stems[i], n) == 0)
      return true;
  }
  return false;
}

/* Parses `.section .debug_info { .b32 1, 2 ... label: ... }` from the section
 * name on. */
bool kiln__cpu_ptx_section(kiln__cpu_parser *p)
{
  if (!names_section(&p->tok))
    return kiln__cpu_ptx_unexpected(p, "a section's name");
  kiln__cpu_ptx_next(p);
  if (!kiln__cpu_ptx_expect(p, '{'))
    return false;
  p->n_sections++;
  while (!kiln__cpu_ptx_accept(p, '}')) {
    const uint32_t bytes = kiln__cpu_ptx_is(p, ".b8")    ? 1
                           : kiln__cpu_ptx_is(p, ".b16") ? 2
                           : kiln__cpu_ptx_is(p, ".b32") ? 4
                           : kiln__cpu_ptx_is(p, ".b64") ? 8
                                                         : 0;

    if (p->tok.kind == KILN__TOKEN_NAME) {
      if (!section_label(p))
        return false;
      continue;
    }
    if (bytes == 0)
      return kiln__cpu_ptx_unexpected(p, ".b8, .b16, .b32 or .b64");
    kiln__cpu_ptx_next(p);
    do {
      if (!datum(p, bytes))
        return false;
    } while (kiln__cpu_ptx_accept(p, ','));
  }
  return true;
}
