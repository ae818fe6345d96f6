/* source_lines.c -- the line tables of an image: which place in the source, and
 * which PTX line, each instruction comes from.
 *
 * Problem: the tables are in three encodings: a line program for machine code
 * (source lines, with calls that were inlined), another one for PTX lines, and
 * .loc directives in the PTX source. All of them repeat the same places.
 * Idea: one table of places holds each pair of a line and a caller once. The
 * caller of an inlined place is an earlier place, so the table is a forest, and
 * two chains of calls are equal if and only if their indices are equal. A hash
 * table finds a place; places with the same hash form a list in which the place
 * that was used last is the first. A .loc directive names only file and line of
 * the call, so its caller is the place of that line that was used last.
 * The rows of PTX lines fill gaps of the line program: see add_missing_rows().
 * Cost: proportional to the size of the tables. The numbers of places and files
 * are limited, so damaged machine code does not take much longer.
 * Source: PTX ISA, "Debugging Directives: .loc"; line_program.c. */
#include "arena.h"
#include "cubin.h"
#include "image.h"

#include <kiln/inspect.h>

#include <stdlib.h>
#include <string.h>

enum {
  BUCKETS = 4096,
  MAX_PLACES = 1 << 18,
  MAX_FILES = 4096,
  MAX_STEPS = 1 << 24
};
enum { CODE, PTX, TABLES };               /* the tables of instructions */
enum { SYMBOL = 24, SYMBOL_SECTION = 6 }; /* in the symbol table, in bytes */
enum { NONE = -1, ANY = -2 };             /* instead of the index of a place */

/* An array that grows. */
typedef struct items {
  void *data;
  size_t n, capacity;
} items;

/* The result, with the memory that it owns. */
typedef struct tables {
  kiln_lines lines; /* first member: the caller has its address */
  const kiln_allocator *alloc;
  kiln__arena arena; /* names */
  kiln__list files;
  items places, rows[TABLES], ptx_places;
} tables;

/* The state while the tables are read. The arrays of the unit have elements of
 * type int32_t. */
typedef struct reader {
  tables *t;
  const kiln_image *image;
  bool no_memory;
  kiln__elf elf;
  int table; /* of the line section that is being read: CODE or PTX */
  kiln__slice relocations, symbols;
  size_t relocation_size;
  size_t steps;      /* relocations that were compared */
  const char *names; /* copy of .debug_str */
  size_t names_size;
  items files;      /* index in t->files, per file of the unit or the PTX */
  items unit_rows;  /* place, per row of the sequence, for inlined calls */
  uint32_t kernel;  /* kernel of the sequence, or a number that is none */
  size_t first_row; /* index of the first row of the sequence */
  kiln__line_state last;
  uint32_t heads[BUCKETS]; /* place that was used last, plus 1 */
} reader;

/* Appends an item of `size` bytes. */
static bool push(reader *r, items *list, const void *item, size_t size)
{
  if (!kiln__grow(r->t->alloc, &list->data, list->n, &list->capacity, size)) {
    r->no_memory = true;
    return false;
  }
  memcpy((char *)list->data + list->n++ * size, item, size);
  return true;
}

static bool push_number(reader *r, items *list, int32_t number)
{
  return push(r, list, &number, sizeof number);
}

static int32_t number_at(const items *list, uint64_t i)
{
  return i < list->n ? ((const int32_t *)list->data)[i] : NONE;
}

/* ---- Files and places ---------------------------------------------------- */

/* Returns the index of a file, which is added if it is new. Returns NONE if
 * memory ran out or if there are too many files. */
static int32_t file_index(reader *r, const char *folder, const char *name)
{
  kiln__list *files = &r->t->files;
  const char *path =
      kiln__arena_join(&r->t->arena, folder, *folder == '\0' ? "" : "/", name);
  size_t i = 0;

  if (path == NULL)
    return NONE;
  while (i < files->n && strcmp(files->items[i], path) != 0)
    i++;
  if (i == MAX_FILES ||
      (i == files->n && !kiln__list_add(&r->t->arena, files, path)))
    return NONE;
  return (int32_t)i;
}

static bool add_file(void *user, const char *folder, const char *name)
{
  reader *r = user;

  return push_number(r, &r->files, file_index(r, folder, name));
}

/* The head of the list that holds a place. */
static uint32_t *list_of(reader *r, const kiln_place *p)
{
  return &r->heads[((uint32_t)p->file * 40503u + (uint32_t)p->line) % BUCKETS];
}

/* Finds a place, or NONE. The place becomes the first of its list. While the
 * tables are read, the member `reserved` of a place holds the next place of the
 * list plus 1. */
static int32_t find_place(reader *r, const kiln_place *wanted)
{
  kiln_place *places = r->t->places.data;
  uint32_t *head = list_of(r, wanted);
  int32_t *link = NULL;

  for (uint32_t i = *head; i > 0; i = (uint32_t)*link) {
    kiln_place *p = &places[i - 1];

    if (p->file == wanted->file && p->line == wanted->line &&
        (p->caller == wanted->caller || wanted->caller == ANY)) {
      if (link != NULL) {
        *link = p->reserved;
        p->reserved = (int32_t)*head;
        *head = i;
      }
      return (int32_t)i - 1;
    }
    link = &p->reserved;
  }
  return NONE;
}

/* Finds or adds a place. Returns NONE if its file is unknown, if there are too
 * many places, or if memory ran out. */
static int32_t place_of(reader *r, const kiln_place *wanted)
{
  items *places = &r->t->places;
  int32_t i = find_place(r, wanted);
  uint32_t *head = list_of(r, wanted);
  kiln_place added = *wanted;

  if (i != NONE || wanted->file < 0 || wanted->line < 0 ||
      places->n == MAX_PLACES)
    return i;
  if (added.caller == ANY)
    added.caller = NONE;
  added.reserved = (int32_t)*head;
  if (!push(r, places, &added, sizeof added))
    return NONE;
  *head = (uint32_t)places->n;
  return (int32_t)places->n - 1;
}

/* ---- Machine code -------------------------------------------------------- */

static bool begin_unit(void *user)
{
  reader *r = user;

  r->files.n = 0;
  return true;
}

/* Returns the index of the kernel with the code in this section, or the number
 * of kernels. */
static uint32_t kernel_of(const reader *r, unsigned section)
{
  static const char prefix[] = ".text.";
  const char *name = section < r->elf.n ? kiln__elf_name(&r->elf, section) : "";
  uint32_t i = 0;

  if (!kiln__starts_with(name, prefix))
    return (uint32_t)r->image->n;
  while (i < r->image->n &&
         strcmp(r->image->resources[i].name, name + sizeof prefix - 1) != 0)
    i++;
  return i;
}

/* Finds the kernel of a sequence by the relocation of its address. The order of
 * the relocations is arbitrary. */
static uint32_t find_kernel(reader *r, size_t origin)
{
  const unsigned char *data = r->relocations.data, *symbols = r->symbols.data;
  const size_t n = r->relocations.size / r->relocation_size;

  for (size_t i = 0; i < n && r->steps < MAX_STEPS; i++, r->steps++) {
    const unsigned char *entry = data + i * r->relocation_size;
    const uint64_t symbol = kiln__elf_number(entry + 12, 4);

    if (kiln__elf_number(entry, 8) == origin &&
        symbol < r->symbols.size / SYMBOL)
      return kernel_of(r, (unsigned)kiln__elf_number(
                              symbols + symbol * SYMBOL + SYMBOL_SECTION, 2));
  }
  return (uint32_t)r->image->n;
}

/* The place of a row. The rows of a sequence are counted from 1 for inlined
 * calls. At the start of a device function the compiler repeats a row without
 * counting it. */
static int32_t code_place(reader *r, const kiln__line_state *row)
{
  const bool inlined = row->context > 0;
  kiln_place wanted = {.file = number_at(&r->files, row->file - 1),
                       .line = (int32_t)row->line,
                       .caller = NONE};
  int32_t place;

  if (inlined)
    wanted.caller = number_at(&r->unit_rows, row->context - 1);
  if (wanted.caller != NONE && row->function < r->names_size)
    wanted.function = r->names + row->function;
  place = place_of(r, &wanted);
  if (r->unit_rows.n == 0 || row->address != r->last.address ||
      row->line != r->last.line || row->file != r->last.file ||
      row->context != r->last.context)
    push_number(r, &r->unit_rows, place);
  return place;
}

/* Ends a sequence. */
static bool end_sequence(reader *r)
{
  r->unit_rows.n = 0;
  r->first_row = r->t->rows[r->table].n;
  return !r->no_memory;
}

static bool add_row(void *user, const kiln__line_state *row)
{
  reader *r = user;
  items *rows = &r->t->rows[r->table];
  kiln_line_row *list = rows->data;
  kiln_line_row added = {.address = (uint32_t)row->address, .at = NONE};

  if (row->end)
    return end_sequence(r);
  if (row->origin != r->last.origin)
    r->kernel = find_kernel(r, row->origin);
  added.kernel = r->kernel;
  if (r->table == CODE)
    added.at = code_place(r, row);
  else if (row->line <= r->t->ptx_places.n)
    added.at = (int32_t)row->line;
  r->last = *row;
  if (r->kernel == r->image->n || row->address > UINT32_MAX)
    return !r->no_memory;
  if (rows->n == r->first_row || list[rows->n - 1].address != added.address)
    return push(r, rows, &added, sizeof added);
  list[rows->n - 1] = added; /* the last row of an address applies */
  return true;
}

static int compare_rows(const void *a, const void *b)
{
  const kiln_line_row *x = a, *y = b;

  if (x->kernel != y->kernel)
    return x->kernel < y->kernel ? -1 : 1;
  return (x->address > y->address) - (x->address < y->address);
}

/* Reads the line program of a section into a table. A missing section is
 * empty. */
static bool read_section(reader *r, int table, const char *name)
{
  static const kiln__line_sink sink = {begin_unit, add_file, add_row};
  unsigned i = kiln__elf_find(&r->elf, ".rela", name);
  items *rows = &r->t->rows[table];

  r->relocation_size = 24;
  if (i == r->elf.n) {
    r->relocation_size = 16;
    i = kiln__elf_find(&r->elf, ".rel", name);
  }
  r->relocations = kiln__elf_section(&r->elf, i);
  r->table = table;
  r->last = (kiln__line_state){0};
  r->kernel = (uint32_t)r->image->n;
  r->first_row = 0;
  r->unit_rows.n = 0;
  if (!kiln__line_program(
          kiln__elf_section(&r->elf, kiln__elf_find(&r->elf, "", name)), &sink,
          r))
    return false;
  if (rows->n > 0)
    qsort(rows->data, rows->n, sizeof(kiln_line_row), compare_rows);
  return true;
}

/* ---- PTX ----------------------------------------------------------------- */

/* One line of the PTX source. */
typedef struct text {
  const char *at, *end;
} text;

static void skip_blanks(text *t)
{
  while (t->at < t->end && (*t->at == ' ' || *t->at == '\t'))
    t->at++;
}

static bool take_word(text *t, const char *word)
{
  const size_t n = strlen(word);

  skip_blanks(t);
  if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
    return false;
  t->at += n;
  return true;
}

static int32_t take_number(text *t)
{
  int32_t value = 0;

  skip_blanks(t);
  for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
    value = value < INT32_MAX / 10 - 1 ? value * 10 + (*t->at - '0') : value;
  return value;
}

/* Reads the rest of `.file NUMBER "NAME"`. */
static bool read_file(reader *r, text *line)
{
  const int32_t number = take_number(line);
  const char *stop, *name;

  if (number < 1 || number > MAX_FILES || !take_word(line, "\""))
    return true;
  stop = memchr(line->at, '"', (size_t)(line->end - line->at));
  if (stop == NULL)
    return true;
  name = kiln__arena_copy(&r->t->arena, line->at, (size_t)(stop - line->at));
  while (r->files.n < (size_t)number)
    if (!push_number(r, &r->files, NONE))
      return false;
  if (name != NULL)
    ((int32_t *)r->files.data)[number - 1] = file_index(r, "", name);
  return true;
}

/* Reads the file and line of a .loc directive; a column follows. */
static kiln_place read_place(const reader *r, text *line)
{
  const int32_t file = take_number(line);
  const kiln_place place = {.file = number_at(&r->files, (uint64_t)file - 1),
                            .line = take_number(line),
                            .caller = NONE};

  take_number(line);
  return place;
}

/* Reads the rest of `.loc FILE LINE COLUMN`, which `, function_name LABEL,
 * inlined_at FILE LINE COLUMN` may follow. */
static int32_t read_loc(reader *r, text *line)
{
  static const char inlined[] = "inlined_at";
  kiln_place place = read_place(r, line), caller;

  line->at = memmem(line->at, (size_t)(line->end - line->at), inlined,
                    sizeof inlined - 1);
  if (line->at != NULL) {
    line->at += sizeof inlined - 1;
    caller = read_place(r, line);
    caller.caller = ANY;
    place.caller = place_of(r, &caller);
  }
  return place_of(r, &place);
}

/* Returns true if a line begins a function: a directive in the first column
 * with .entry or .func. */
static bool begins_function(const text *line)
{
  const size_t n = (size_t)(line->end - line->at);

  return n > 0 && *line->at == '.' &&
         (memmem(line->at, n, ".entry ", 7) != NULL ||
          memmem(line->at, n, ".func ", 6) != NULL);
}

static bool is_instruction(const text *line)
{
  const char c = line->at < line->end ? (char)(*line->at | 0x20) : ' ';

  return (c >= 'a' && c <= 'z') || c == ('@' | 0x20);
}

/* Reads one line of the PTX source. The first pass reads .file directives,
 * which may be at the end. In the second pass, *now is the place of the last
 * .loc directive of the function. */
static bool read_line(reader *r, text line, bool first, int32_t *now)
{
  int32_t place = NONE;

  if (begins_function(&line))
    *now = NONE;
  skip_blanks(&line);
  if (first)
    return !take_word(&line, ".file") || read_file(r, &line);
  if (take_word(&line, ".loc"))
    *now = read_loc(r, &line);
  else if (is_instruction(&line))
    place = *now;
  return push_number(r, &r->t->ptx_places, place);
}

static bool read_ptx(reader *r)
{
  size_t size;
  const char *p = kiln_image_ptx(r->image, &size), *end = p + size;
  int32_t now = NONE;
  bool good = true;

  r->files.n = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (const char *at = p, *stop; good && at < end; at = stop + 1) {
      stop = memchr(at, '\n', (size_t)(end - at));
      if (stop == NULL)
        stop = end;
      good = read_line(r, (text){at, stop}, pass == 0, &now);
    }
  }
  return good;
}

/* ---- Missing rows of machine code ---------------------------------------- */

/* Returns whether two places have the same number of a line, in any files. */
static bool same_number(const tables *t, int32_t a, int32_t b)
{
  const kiln_place *places = t->places.data;

  return a >= 0 && b >= 0 && places[a].line == places[b].line;
}

/* The place of a row of PTX lines, or NONE. */
static int32_t place_of_ptx(const tables *t, const kiln_line_row *row)
{
  return row->at < 1 ? NONE : number_at(&t->ptx_places, (uint64_t)row->at - 1);
}

/* Adds the rows that the compiler omits. If the number of an instruction's line is
 * that of the one before it, the compiler may write no row for it, even if it was
 * inlined by another call or is in another file. Its PTX line has a row and a .loc
 * directive, which names file and call. Both tables are sorted, and a row of the
 * compiler has precedence. */
static bool add_missing_rows(reader *r)
{
  tables *t = r->t;
  const kiln_line_row *code = t->rows[CODE].data, *ptx = t->rows[PTX].data;
  const size_t n_code = t->rows[CODE].n, n_ptx = t->rows[PTX].n;
  kiln_line_row now = {.kernel = (uint32_t)r->image->n, .at = NONE};
  items all = {0};

  for (size_t c = 0, p = 0; c < n_code || p < n_ptx;) {
    const int order = c == n_code  ? 1
                      : p == n_ptx ? -1
                                   : compare_rows(&code[c], &ptx[p]);
    const int32_t place = order > 0 ? place_of_ptx(t, &ptx[p]) : NONE;
    const bool missing = order > 0 && ptx[p].kernel == now.kernel &&
                         place != now.at && same_number(t, place, now.at);

    p += order >= 0 ? 1 : 0;
    if (order <= 0)
      now = code[c++];
    else if (missing)
      now = (kiln_line_row){now.kernel, ptx[p - 1].address, place};
    if ((order <= 0 || missing) && !push(r, &all, &now, sizeof now))
      break;
  }
  kiln__free(t->alloc, t->rows[CODE].data);
  t->rows[CODE] = all;
  return !r->no_memory;
}

/* ---- The result ---------------------------------------------------------- */

static void publish(tables *t)
{
  kiln_place *places = t->places.data;

  for (size_t i = 0; i < t->places.n; i++)
    places[i].reserved = 0;
  t->lines = (kiln_lines){.files = t->files.items,
                          .n_files = t->files.n,
                          .places = places,
                          .n_places = t->places.n,
                          .code = t->rows[CODE].data,
                          .n_code = t->rows[CODE].n,
                          .ptx = t->rows[PTX].data,
                          .n_ptx = t->rows[PTX].n,
                          .ptx_places = t->ptx_places.data,
                          .n_ptx_lines = t->ptx_places.n};
}

static kiln_status read_tables(reader *r)
{
  static const char code[] = ".debug_line", ptx[] = ".nv_debug_line_sass";
  kiln__slice names = {"", 0};
  bool good = true;

  if (r->elf.n > 0) {
    names =
        kiln__elf_section(&r->elf, kiln__elf_find(&r->elf, "", ".debug_str"));
    r->symbols =
        kiln__elf_section(&r->elf, kiln__elf_find(&r->elf, "", ".symtab"));
  }
  r->names = kiln__arena_copy(&r->t->arena, names.data, names.size);
  r->names_size = names.size;
  good = r->names != NULL && read_section(r, CODE, code) && read_ptx(r) &&
         read_section(r, PTX, ptx) && add_missing_rows(r);
  if (r->no_memory || r->t->arena.failed)
    return kiln__fail_memory("line tables");
  if (!good)
    return kiln__fail(KILN_ECORRUPT, "compile the program again",
                      "the line table of an image is damaged");
  if (r->t->files.n == 0 && kiln__elf_find(&r->elf, "", code) == r->elf.n)
    return kiln__fail(KILN_ENOTFOUND,
                      "set kiln_program_desc.lineinfo (--lineinfo)",
                      "the image was compiled without line information");
  return KILN_OK;
}

kiln_status kiln_image_lines(kiln_lines **out, const kiln_image *image)
{
  const kiln_allocator *a = image == NULL ? NULL : image->alloc;
  kiln_status st = KILN_OK;
  kiln__slice cubin;
  tables *t = NULL;
  reader *r = NULL;

  if (out != NULL)
    *out = NULL;
  if (out == NULL || image == NULL)
    return kiln__fail(KILN_EINVAL, NULL, "out or image is NULL");
  t = kiln__calloc(a, 1, sizeof *t);
  r = kiln__calloc(a, 1, sizeof *r);
  if (t == NULL || r == NULL)
    KILN_TRY(kiln__fail_memory("line tables"));
  t->alloc = a;
  kiln__arena_init(&t->arena, a);
  r->t = t;
  r->image = image;
  cubin.data = kiln_image_cubin(image, &cubin.size);
  if (!kiln__elf_open(&r->elf, cubin))
    r->elf = (kiln__elf){0};
  KILN_TRY(read_tables(r));
  publish(t);
  *out = &t->lines;
  t = NULL;

done:
  if (r != NULL) {
    kiln__free(a, r->files.data);
    kiln__free(a, r->unit_rows.data);
  }
  kiln__free(a, r);
  if (t != NULL)
    kiln_lines_free(&t->lines);
  return st;
}

void kiln_lines_free(kiln_lines *lines)
{
  tables *t = (tables *)lines;

  if (t == NULL)
    return;
  kiln__free(t->alloc, t->places.data);
  kiln__free(t->alloc, t->rows[CODE].data);
  kiln__free(t->alloc, t->rows[PTX].data);
  kiln__free(t->alloc, t->ptx_places.data);
  kiln__arena_free(&t->arena);
  kiln__free(t->alloc, t);
}
