/* debug.c -- source positions; debug sections, which are checked and skipped. */
#include "parse.h"

static bool small_number(kiln__parser *p, uint32_t *out)
{
  uint64_t value;

  if (!kiln__ptx_number(p, &value))
    return false;
  *out = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
  return true;
}

/* Make room for file `index`. */
static bool reach_file(kiln__parser *p, uint32_t index)
{
  kiln__ptx_module *m = p->module;
  const uint32_t n = (index | 15) + 1;
  const char **files;

  if (index < m->n_files)
    return true;
  files = kiln__ptx_new(p, n * sizeof *files);
  if (files == NULL)
    return false;
  if (m->n_files > 0)
    memcpy(files, m->files, m->n_files * sizeof *files);
  m->files = files;
  m->n_files = n;
  return true;
}

/* `.file 1 "name"`, `.file 1 "name", time, size`; no semicolon. */
bool kiln__ptx_file(kiln__parser *p)
{
  const kiln__ptx_pos pos = p->tok.pos;
  uint64_t index;
  kiln__slice name;
  char *text;

  if (!kiln__ptx_number(p, &index))
    return false;
  name = p->tok.text;
  if (!kiln__ptx_expect(p, KILN__TOKEN_STRING))
    return false;
  for (int i = 0; i < 2 && kiln__ptx_accept(p, ','); i++) {
    uint64_t ignored;

    if (!kiln__ptx_number(p, &ignored))
      return false;
  }
  if (index >= KILN__PTX_MAX_FILES) {
    kiln__ptx_complain(&p->messages, pos, "a file number is below %d",
                       KILN__PTX_MAX_FILES);
    return true;
  }
  if (!reach_file(p, (uint32_t)index))
    return false;
  if (p->module->files[index] != NULL) {
    kiln__ptx_complain(&p->messages, pos, "file %u is declared twice",
                       (unsigned)index);
    return true;
  }
  text = kiln__ptx_new(p, (size_t)name.size + 1);
  if (text == NULL)
    return false;
  memcpy(text, name.data, name.size);
  p->module->files[index] = text;
  return true;
}

/* `, function_name $L_info, inlined_at 1 2 3`: the place of the innermost
 * source is what counts here. */
static bool inlined_at(kiln__parser *p)
{
  uint32_t ignored;

  if (!kiln__ptx_accept_word(p, "function_name"))
    return kiln__ptx_unexpected(p, "function_name");
  if (!kiln__ptx_expect(p, KILN__TOKEN_NAME))
    return false;
  if (kiln__ptx_accept(p, '+') && !small_number(p, &ignored))
    return false;
  if (!kiln__ptx_expect(p, ','))
    return false;
  if (!kiln__ptx_accept_word(p, "inlined_at"))
    return kiln__ptx_unexpected(p, "inlined_at");
  return small_number(p, &ignored) && small_number(p, &ignored) &&
         small_number(p, &ignored);
}

bool kiln__ptx_loc_parse(kiln__parser *p)
{
  kiln__ptx_loc loc;

  if (!small_number(p, &loc.file) || !small_number(p, &loc.line) ||
      !small_number(p, &loc.column))
    return false;
  p->loc = loc;
  return !kiln__ptx_accept(p, ',') || inlined_at(p);
}

/* ---- Sections ------------------------------------------------------------- */

/* -1, a, a+4, a-b, .debug_abbrev, .debug_str+4. Only numbers are bytes. */
static bool datum(kiln__parser *p, bool byte)
{
  uint64_t ignored;

  if (kiln__ptx_accept(p, '-') || p->tok.kind == KILN__TOKEN_INTEGER)
    return kiln__ptx_number(p, &ignored);
  if (p->tok.kind != KILN__TOKEN_NAME && p->tok.kind != KILN__TOKEN_DOT)
    return kiln__ptx_unexpected(p, "a value");
  if (byte)
    return kiln__ptx_unexpected(p, "a number");
  kiln__ptx_next(p);
  if (kiln__ptx_accept(p, '+'))
    return kiln__ptx_number(p, &ignored);
  if (kiln__ptx_accept(p, '-'))
    return kiln__ptx_expect(p, KILN__TOKEN_NAME);
  return true;
}

/* `.section .debug_info { .b32 1, 2 ... label: ... }` behind the word. */
bool kiln__ptx_section(kiln__parser *p)
{
  if (p->tok.kind != KILN__TOKEN_DOT)
    return kiln__ptx_unexpected(p, "a section's name");
  kiln__ptx_next(p);
  if (!kiln__ptx_expect(p, '{'))
    return false;
  p->has_sections = true;
  while (!kiln__ptx_accept(p, '}')) {
    const bool byte = kiln__ptx_is(p, ".b8") || kiln__ptx_is(p, ".b16");

    if (kiln__ptx_accept(p, KILN__TOKEN_NAME)) {
      if (!kiln__ptx_expect(p, ':'))
        return false;
      continue;
    }
    if (!byte && !kiln__ptx_is(p, ".b32") && !kiln__ptx_is(p, ".b64"))
      return kiln__ptx_unexpected(p, ".b8, .b16, .b32 or .b64");
    kiln__ptx_next(p);
    do {
      if (!datum(p, byte))
        return false;
    } while (kiln__ptx_accept(p, ','));
  }
  return true;
}
