/* line_program.c -- runs the line programs of machine code.
 *
 * Problem: a table of source lines per instruction would be larger than the
 * code. DWARF stores it as a program for a state machine: special opcodes
 * advance address and line and emit a row, standard opcodes set registers.
 * CUBINs use version 2 of the format in two sections: .debug_line for CUDA
 * source, and .nv_debug_line_sass for PTX lines. In the first one, two extended
 * opcodes of NVIDIA describe inlining: the row of the call (context), and the
 * name of the inlined function.
 * Idea: interpret the program and give each row to the caller. The caller keeps
 * the rows, so this file allocates nothing.
 * Invariant: a cursor never leaves its section, and after a read past the end
 * it returns 0 and stays at the end. Each opcode takes at least one byte, so
 * the time and the number of rows are bounded by the size of the section.
 * Source: DWARF 2.0.0, section 6.2; the values of NVIDIA's opcodes are those of
 * dwarf.h in libdwarf and elfutils. */
#include "cubin.h"

#include <string.h>

enum {
  COPY = 1,
  ADVANCE_PC,
  ADVANCE_LINE,
  SET_FILE,
  SET_COLUMN,
  NEGATE_STMT,
  BASIC_BLOCK,
  CONST_ADD_PC,
  FIXED_ADVANCE_PC,
  END_SEQUENCE = 1, /* extended opcodes, which follow a byte 0 and a length */
  SET_ADDRESS = 2,
  INLINED_CALL = 0x90,
  SET_FUNCTION = 0x91
};

/* A position in a section, and the end of the part that may be read. */
typedef struct cursor {
  const unsigned char *at, *end;
  bool bad; /* a read went past the end */
} cursor;

typedef struct machine {
  const unsigned char *section;
  cursor c;
  unsigned line_range, opcode_base, unit_bytes;
  int line_base;
  const unsigned char *operands; /* number of operands per standard opcode */
  kiln__line_state row;
  const kiln__line_sink *sink;
  void *user;
} machine;

static uint64_t take(cursor *c, int bytes)
{
  uint64_t value;

  if (c->end - c->at < bytes) {
    c->at = c->end;
    c->bad = true;
    return 0;
  }
  value = kiln__elf_number(c->at, bytes);
  c->at += bytes;
  return value;
}

/* Reads a number in LEB128 format: seven bits per byte, lowest first. With
 * `sign`, the highest of these bits is the sign. */
static uint64_t take_leb(cursor *c, bool sign)
{
  uint64_t value = 0, byte;
  unsigned shift = 0;

  do {
    byte = take(c, 1);
    if (shift < 64)
      value |= (byte & 0x7f) << shift;
    shift += 7;
  } while ((byte & 0x80) != 0);
  if (sign && (byte & 0x40) != 0 && shift < 64)
    value |= UINT64_MAX << shift;
  return value;
}

static const char *take_text(cursor *c)
{
  const char *text = (const char *)c->at;
  const unsigned char *stop = memchr(c->at, '\0', (size_t)(c->end - c->at));

  if (stop == NULL) {
    c->bad = true;
    return "";
  }
  c->at = stop + 1;
  return text;
}

/* ---- The state machine --------------------------------------------------- */

static void reset(machine *m)
{
  m->row = (kiln__line_state){.file = 1, .line = 1};
}

static bool emit(machine *m, bool end)
{
  m->row.end = end;
  return m->sink->row(m->user, &m->row);
}

static void advance(machine *m, uint64_t steps)
{
  m->row.address += steps * m->unit_bytes;
}

static bool special(machine *m, unsigned opcode)
{
  const unsigned n = opcode - m->opcode_base;

  advance(m, n / m->line_range);
  m->row.line += (uint64_t)(int64_t)(m->line_base + (int)(n % m->line_range));
  return emit(m, false);
}

static bool extended(machine *m)
{
  const uint64_t size = take_leb(&m->c, false);
  const unsigned char *start = m->c.at;
  bool good = true;

  if (size == 0 || size > (uint64_t)(m->c.end - start))
    return false;
  switch (take(&m->c, 1)) {
  case END_SEQUENCE:
    good = emit(m, true);
    reset(m);
    break;
  case SET_ADDRESS:
    m->row.origin = (size_t)(m->c.at - m->section);
    m->row.address = take(&m->c, size < 9 ? (int)size - 1 : 8);
    break;
  case INLINED_CALL:
    m->row.context = take_leb(&m->c, false);
    m->row.function = take_leb(&m->c, false);
    break;
  case SET_FUNCTION:
    m->row.function = take_leb(&m->c, false);
    break;
  }
  m->c.at = start + size;
  return good;
}

static bool standard(machine *m, unsigned opcode)
{
  switch (opcode) {
  case COPY:
    return emit(m, false);
  case ADVANCE_PC:
    advance(m, take_leb(&m->c, false));
    break;
  case ADVANCE_LINE:
    m->row.line += take_leb(&m->c, true);
    break;
  case SET_FILE:
    m->row.file = take_leb(&m->c, false);
    break;
  case NEGATE_STMT:
  case BASIC_BLOCK:
    break;
  case CONST_ADD_PC:
    advance(m, (255 - m->opcode_base) / m->line_range);
    break;
  case FIXED_ADVANCE_PC:
    m->row.address += take(&m->c, 2);
    break;
  default: /* SET_COLUMN, and opcodes of later versions */
    for (unsigned n = m->operands[opcode - 1]; n > 0; n--)
      take_leb(&m->c, false);
  }
  return true;
}

static bool run(machine *m)
{
  bool good = true;

  reset(m);
  while (good && m->c.at < m->c.end) {
    const unsigned opcode = (unsigned)take(&m->c, 1);

    good = opcode >= m->opcode_base ? special(m, opcode)
           : opcode == 0            ? extended(m)
                                    : standard(m, opcode);
  }
  return good && !m->c.bad;
}

/* ---- Units --------------------------------------------------------------- */

/* Returns folder number i of the unit's list, or "" for the compilation's own
 * folder, which has the number 0. */
static const char *folder(cursor list, uint64_t i)
{
  const char *text = "";

  while (i > 0 && !list.bad) {
    text = take_text(&list);
    i = text[0] == '\0' ? 0 : i - 1;
  }
  return text;
}

static bool read_files(machine *m)
{
  cursor *c = &m->c;
  const cursor folders = *c;

  while (!c->bad && take_text(c)[0] != '\0') {
  }
  while (!c->bad) {
    const char *name = take_text(c);

    if (name[0] == '\0')
      break;
    if (!m->sink->file(m->user, folder(folders, take_leb(c, false)), name))
      return false;
    take_leb(c, false); /* time and size of the file */
    take_leb(c, false);
  }
  return !c->bad;
}

/* Reads the head of the unit at the cursor, and runs its program. The cursor
 * covers exactly the unit. */
static bool unit(machine *m)
{
  cursor *c = &m->c;
  const unsigned version = (unsigned)take(c, 2);
  const uint64_t size = take(c, 4);
  const unsigned char *program;

  if (version < 2 || version > 4 || size > (uint64_t)(c->end - c->at))
    return false;
  program = c->at + size;
  m->unit_bytes = (unsigned)take(c, 1);
  take(c, version == 4 ? 2 : 1); /* operations per instruction, is_stmt */
  m->line_base = (int)take(c, 1);
  m->line_base -= m->line_base < 128 ? 0 : 256; /* a signed byte */
  m->line_range = (unsigned)take(c, 1);
  m->opcode_base = (unsigned)take(c, 1);
  m->operands = c->at;
  if (m->line_range == 0 || m->opcode_base == 0 ||
      c->end - c->at < (long)m->opcode_base)
    return false;
  c->at += m->opcode_base - 1;
  if (!m->sink->unit(m->user) || !read_files(m))
    return false;
  c->at = program;
  return run(m);
}

bool kiln__line_program(kiln__slice section, const kiln__line_sink *sink,
                        void *user)
{
  machine m = {.section = section.data, .sink = sink, .user = user};
  const unsigned char *end = m.section + section.size;
  bool good = true;

  m.c.end = m.section;
  while (good && m.c.end < end) {
    cursor c = {m.c.end, end, false};
    const uint64_t size = take(&c, 4);

    good = !c.bad && size <= (uint64_t)(end - c.at);
    m.c = (cursor){c.at, good ? c.at + size : end, false};
    good = good && unit(&m);
  }
  return good;
}
