/* sass_parse.c -- reads the text that nvdisasm prints.
 *
 * nvdisasm prints a section per function. The address and both halves of the
 * encoding of an instruction are comments, which [ ] stands for here. The line
 * with the second half also lists how many registers are live:
 *
 *   .section .text.NAME,"ax",@progbits
 *                                              // | GPR   | PRED  | UGPR  |
 *   .L_x_3:                                    // |   9   |   2   |       |
 *     [0100]   @P0 BRA `(.L_x_3) ;   [ 0xfffffff000ec0947 ]
 *                                    [ 0x000fea000383ffff ] // |  9  | ...
 *
 * The parser reads one line at a time. It accepts
 * lines that it does not know, since each version of nvdisasm prints others,
 * but refuses a text in which an instruction is incomplete or out of order:
 * such a text is truncated or does not come from nvdisasm. Labels become
 * indices of instructions when the function is complete. The time is
 * proportional to the length of the text, apart from the sorting of labels. */
#include "cli/explore/sass_model.h"

#include <stdlib.h>
#include <string.h>

typedef struct parser {
  cli *c;
  sass_kernel *kernels;
  size_t n, capacity;
  /* The current function. */
  sass_instruction *code;
  size_t n_code, code_capacity;
  sass_label *labels;
  size_t n_labels, labels_capacity;
  const char *pending; /* label before the next instruction, or NULL */
  bool inside;         /* within a section of code */
  /* The instruction whose upper half of the encoding is still missing, or
   * NULL. */
  sass_instruction *open;
  /* Kind of register of each column of numbers; -1 is a kind that is not
   * known. */
  int columns[8];
  int n_columns;
} parser;

/* A line of the text, without its newline. */
typedef struct line {
  const char *at;
  size_t n;
} line;

static const char *const truncated =
    "nvdisasm's output ends within an instruction";
static const char *const disordered =
    "nvdisasm's output has an instruction out of order";

static const char *copy(cli *c, const char *text, size_t n)
{
  char *out = kiln__cli_alloc(c, n + 1, 1);

  memcpy(out, text, n);
  return out;
}

/* Copies the text of an instruction. Spaces before a comment become one. */
static const char *copy_text(cli *c, line text)
{
  char *out = kiln__cli_alloc(c, text.n + 1, 1);
  size_t n = 0;

  for (size_t i = 0; i < text.n; i++)
    if (text.at[i] != ' ' || n == 0 || out[n - 1] != ' ')
      out[n++] = text.at[i];
  return out;
}

static line trimmed(line l)
{
  while (l.n > 0 && (l.at[0] == ' ' || l.at[0] == '\t')) {
    l.at++;
    l.n--;
  }
  while (l.n > 0 && strchr(" \t\r", l.at[l.n - 1]) != NULL)
    l.n--;
  return l;
}

static bool starts(line l, const char *text)
{
  const size_t n = strlen(text);

  return l.n >= n && memcmp(l.at, text, n) == 0;
}

/* Returns the part of a line from the first occurrence of `text`, or an empty
 * line. */
static line from(line l, const char *text)
{
  const char *at = memmem(l.at, l.n, text, strlen(text));

  if (at == NULL)
    return (line){l.at + l.n, 0};
  return (line){at, l.n - (size_t)(at - l.at)};
}

/* Returns the part of a line before another part of it. */
static line before(line l, line part)
{
  return (line){l.at, (size_t)(part.at - l.at)};
}

/* Parses 1 to 16 hexadecimal digits. Returns their number, or 0. */
static size_t hex(line l, uint64_t *out)
{
  static const char digits[] = "0123456789abcdef";
  size_t n = 0;

  *out = 0;
  for (; n < l.n && n < 16; n++) {
    const char *digit = memchr(digits, l.at[n], 16);

    if (digit == NULL)
      break;
    *out = *out << 4 | (uint64_t)(digit - digits);
  }
  return n;
}

/* Parses a comment with an encoding such as 0x000fea000383ffff. */
static bool encoding(line l, uint64_t *out)
{
  l = from(l, "/* 0x");
  return l.n > 5 && hex((line){l.at + 5, l.n - 5}, out) == 16;
}

/* ---- Columns of live registers ------------------------------------------- */

/* Returns the next cell of a row such as "// |  9   |  2   |", without spaces.
 * *rest starts at a '|'. Returns false at the end of the row. */
static bool cell(line *rest, line *out)
{
  line tail;

  if (rest->n < 2)
    return false;
  tail = (line){rest->at + 1, rest->n - 1};
  *rest = from(tail, "|");
  *out = trimmed(before(tail, *rest));
  return rest->n > 0;
}

static void read_columns(parser *p, line row)
{
  static const char *const names[] = {"GPR", "PRED", "UGPR", "UPRED"};
  line name;

  p->n_columns = 0;
  while (p->n_columns < 8 && cell(&row, &name)) {
    int kind = SASS_N_REGISTERS - 1;

    while (kind >= 0 && (name.n != strlen(names[kind]) ||
                         memcmp(name.at, names[kind], name.n) != 0))
      kind--;
    p->columns[p->n_columns++] = kind;
  }
}

/* Reads the numbers of live registers of an instruction. An empty cell means
 * that no register is live. */
static void read_live(const parser *p, line row, sass_instruction *i)
{
  line number;

  for (int k = 0; k < p->n_columns && cell(&row, &number); k++)
    if (p->columns[k] >= 0)
      i->live[p->columns[k]] = (uint16_t)strtoul(number.at, NULL, 10);
}

/* ---- Instructions -------------------------------------------------------- */

static void end_label(parser *p, line name)
{
  const char *text = copy(p->c, name.at, name.n);

  /* The name of the function itself is no label of the code. */
  if (strcmp(text, p->kernels[p->n - 1].name) == 0)
    return;
  p->pending = text;
  p->labels = kiln__cli_grow(p->c, p->labels, p->n_labels, &p->labels_capacity,
                             sizeof *p->labels);
  p->labels[p->n_labels++] = (sass_label){text, (uint32_t)p->n_code};
}

/* Starts an instruction, whose address begins with the slash of a comment. */
static const char *read_instruction(parser *p, line l)
{
  uint64_t address, low;
  const size_t digits = hex((line){l.at + 2, l.n - 2}, &address);
  line text;

  if (p->open != NULL || address != (uint64_t)p->n_code * 16)
    return disordered;
  text = (line){l.at + digits + 4, l.n - digits - 4};
  if (!encoding(text, &low))
    return truncated;
  text = trimmed(before(text, from(text, "/* 0x")));
  if (text.n > 0 && text.at[text.n - 1] == ';')
    text = trimmed((line){text.at, text.n - 1});
  p->code = kiln__cli_grow(p->c, p->code, p->n_code, &p->code_capacity,
                           sizeof *p->code);
  p->code[p->n_code++] = (sass_instruction){.text = copy_text(p->c, text),
                                            .label = p->pending,
                                            .low = low,
                                            .target = -1,
                                            .chain = -1,
                                            .ptx = -1};
  p->pending = NULL;
  p->open = &p->code[p->n_code - 1];
  return NULL;
}

/* Returns whether a line starts with the comment of an address: at least four
 * hexadecimal digits. */
static bool has_address(line l)
{
  uint64_t address;
  size_t n;

  if (!starts(l, "/*") || l.n < 8)
    return false;
  n = hex((line){l.at + 2, l.n - 2}, &address);
  return n >= 4 && l.n > n + 4 && memcmp(l.at + 2 + n, "*/", 2) == 0;
}

/* ---- Functions ----------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
  return strcmp(((const sass_label *)a)->name, ((const sass_label *)b)->name);
}

int32_t kiln__sass_label(const sass_kernel *k, const char *name, size_t n)
{
  size_t low = 0, high = k->n_labels;

  while (low < high) {
    const size_t middle = (low + high) / 2;
    const sass_label *l = &k->labels[middle];
    const int order = strncmp(l->name, name, n);

    if (order == 0 && l->name[n] == '\0')
      return l->at < k->n ? (int32_t)l->at : -1;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return -1;
}

/* Returns the instruction that a branch names, as a label or, if nvdisasm has
 * not analysed the flow, as an address. */
static int32_t find_target(const sass_kernel *k, const char *text)
{
  const char *name = strstr(text, "`(");
  size_t n, plain;
  const char *opcode = kiln__sass_opcode(text, &n, &plain);
  char *end;
  unsigned long address;

  if (name != NULL)
    return kiln__sass_label(k, name + 2, strcspn(name + 2, ")"));
  if (strncmp(opcode, "BRA", 3) != 0 && strncmp(opcode, "BSSY", 4) != 0)
    return -1;
  name = strrchr(text, ' ');
  if (name == NULL || strncmp(name, " 0x", 3) != 0)
    return -1;
  address = strtoul(name, &end, 16);
  return *end == '\0' && address % 16 == 0 && address / 16 < k->n
             ? (int32_t)(address / 16)
             : -1;
}

static void keep_most(sass_kernel *k, const sass_instruction *i)
{
  for (int kind = 0; kind < SASS_N_REGISTERS; kind++)
    if (i->live[kind] > k->most_live[kind])
      k->most_live[kind] = i->live[kind];
}

/* Completes the current function. */
static const char *end_function(parser *p)
{
  sass_kernel *k;

  if (!p->inside)
    return NULL;
  p->inside = false;
  if (p->open != NULL)
    return truncated;
  k = &p->kernels[p->n - 1];
  if (p->labels != NULL)
    qsort(p->labels, p->n_labels, sizeof *p->labels, by_name);
  k->code = p->code;
  k->n = (uint32_t)p->n_code;
  k->labels = p->labels;
  k->n_labels = (uint32_t)p->n_labels;
  k->has_live = p->n_columns > 0;
  for (size_t i = 0; i < p->n_code; i++) {
    p->code[i].target = find_target(k, p->code[i].text);
    keep_most(k, &p->code[i]);
  }
  return NULL;
}

static void start_function(parser *p, line name)
{
  p->kernels =
      kiln__cli_grow(p->c, p->kernels, p->n, &p->capacity, sizeof *p->kernels);
  p->kernels[p->n++] = (sass_kernel){
      .name = copy(p->c, name.at, name.n), .step = 16, .resources = -1};
  p->code = NULL;
  p->labels = NULL;
  p->pending = NULL;
  p->n_code = p->code_capacity = p->n_labels = p->labels_capacity = 0;
  p->n_columns = 0;
  p->inside = true;
}

static const char *read_section(parser *p, line l)
{
  static const char prefix[] = ".text.";
  const char *wrong = end_function(p);
  const line name = from(l, prefix);

  if (wrong == NULL && name.n > sizeof prefix) {
    const line rest = {name.at + sizeof prefix - 1, name.n - sizeof prefix + 1};

    start_function(p, before(rest, from(rest, ",")));
  }
  return wrong;
}

/* Reads a line of a section of code. `row` is the part of it that lists live
 * registers, or empty. */
static const char *read_code(parser *p, line l, line row)
{
  uint64_t high;

  if (has_address(l))
    return read_instruction(p, l);
  if (p->open != NULL && encoding(l, &high)) {
    p->open->high = high;
    p->open->control = kiln__sass_control(high);
    read_live(p, row, p->open);
    p->open = NULL;
  } else if (l.n > 1 && l.at[l.n - 1] == ':' &&
             memchr(l.at, ' ', l.n) == NULL && !starts(l, ".text.")) {
    end_label(p, (line){l.at, l.n - 1});
  } else if (p->n_columns == 0 && from(row, " GPR ").n > 0) {
    read_columns(p, row);
  }
  return NULL;
}

static const char *read_line(parser *p, line l)
{
  const line comment = from(l, "// |");
  const line row =
      comment.n > 3 ? (line){comment.at + 3, comment.n - 3} : comment;

  l = trimmed(before(l, from(l, "// ")));
  if (starts(l, ".section\t") || starts(l, ".section "))
    return read_section(p, l);
  return p->inside ? read_code(p, l, row) : NULL;
}

const char *kiln__sass_opcode(const char *text, size_t *n, size_t *plain)
{
  if (*text == '@') {
    text += strcspn(text, " ");
    text += strspn(text, " ");
  }
  *n = strcspn(text, " ");
  *plain = strcspn(text, ". ");
  return text;
}

const char *kiln__sass_parse(cli *c, const char *text, sass_kernel **kernels,
                             uint32_t *n)
{
  parser p = {.c = c};
  const char *wrong = NULL;

  while (wrong == NULL && *text != '\0') {
    const size_t length = strcspn(text, "\n");

    wrong = read_line(&p, (line){text, length});
    text += length;
    text += *text == '\n' ? 1 : 0;
  }
  if (wrong == NULL)
    wrong = end_function(&p);
  *kernels = p.kernels;
  *n = (uint32_t)p.n;
  return wrong != NULL ? wrong : p.n == 0 ? "nvdisasm printed no code" : NULL;
}
