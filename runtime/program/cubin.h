/* cubin.h -- reads machine code (CUBIN), which is a 64-bit ELF file: its
 * sections, and the line programs in them. */
#ifndef KILN_CUBIN_H
#define KILN_CUBIN_H

#include "program.h"

/* An ELF file with a checked table of sections. */
typedef struct kiln__elf {
  const unsigned char *data;
  size_t size;
  uint64_t sections; /* offset of the table of section headers */
  unsigned n;        /* number of sections */
  kiln__slice names; /* names of the sections; the last byte is NUL */
} kiln__elf;

/* Reads a little-endian number of `bytes` bytes. The caller has checked that
 * the bytes lie within the file. */
uint64_t kiln__elf_number(const unsigned char *p, int bytes);
/* Checks the header and the table of sections. Returns false if the file is
 * damaged or is not a 64-bit ELF file. */
bool kiln__elf_open(kiln__elf *e, kiln__slice file);
/* Returns the name of section i, or "" if the name is damaged. */
const char *kiln__elf_name(const kiln__elf *e, unsigned i);
/* Returns the content of section i, which is empty if i is not a section or if
 * the content does not lie within the file. */
kiln__slice kiln__elf_section(const kiln__elf *e, unsigned i);
/* Returns the index of the first section with the name `prefix` + `name`, or
 * e->n if there is none. */
unsigned kiln__elf_find(const kiln__elf *e, const char *prefix,
                        const char *name);

/* ---- Line programs (line_program.c) -------------------------------------- */

/* One row of a line program: the registers of its state machine. */
typedef struct kiln__line_state {
  uint64_t address; /* in bytes, from the start of the sequence's section */
  /* Offset in the line section of the operand that set the address. A
   * relocation of this offset names the section of the sequence. */
  size_t origin;
  uint64_t file, line; /* both count from 1; file is an index in the unit */
  /* Number of the row of the call that inlined this code, counted from 1 over
   * the unit; 0 if the code is not inlined. */
  uint64_t context;
  uint64_t function; /* offset in .debug_str of the inlined function's name */
  bool end; /* address is the end of the sequence, not an instruction */
} kiln__line_state;

/* Receives the parts of a line program in their order. A function returns false
 * to stop the reading. */
typedef struct kiln__line_sink {
  bool (*unit)(void *user); /* a new unit begins; it has no files and rows */
  bool (*file)(void *user, const char *folder, const char *name);
  bool (*row)(void *user, const kiln__line_state *row);
} kiln__line_sink;

/* Runs all line programs of a section. Returns false if the section is damaged
 * or if the sink stopped the reading. */
bool kiln__line_program(kiln__slice section, const kiln__line_sink *sink,
                        void *user);

#endif
