/* sass_model.c -- makes the model of an image: runs nvdisasm, applies the line
 * tables, and attributes spills to source lines. */
#include "cli/explore/sass_model.h"

#include <stdlib.h>
#include <string.h>

/* ---- SASS ---------------------------------------------------------------- */

/* Runs nvdisasm. Returns the text, or NULL. */
static char *disassemble(cli *c, const kiln_image *image, bool live)
{
  static const char *const options[] = {"-c", "-hex", "-plr", "-lrm", "count"};
  const kiln_sass_opts opts = {.tool = kiln__cli_disassembler(c),
                               .options = options,
                               .n_options = live ? 5 : 2};
  char *text = NULL;

  if (kiln_image_sass(&text, NULL, c->rt, image, &opts) != KILN_OK)
    return NULL;
  return text;
}

/* Keeps the message and the next step of the library's error record. */
static void keep_error(cli *c, const char **why, const char **next)
{
  const kiln_error *e = kiln_last_error();

  *why = kiln__cli_text(c, "%s", e->message);
  *next = e->hint[0] == '\0' ? NULL : kiln__cli_text(c, "%s", e->hint);
}

/* Reads all kernels of an image, with or without live registers.
 * @return NULL, or the reason why there is no SASS */
static const char *read_code(cli *c, const kiln_image *image, bool live,
                             sass_kernel **kernels, uint32_t *n,
                             const char **next)
{
  char *text = disassemble(c, image, live);
  const char *wrong = NULL;

  *next = NULL;
  if (text == NULL)
    keep_error(c, &wrong, next);
  else
    wrong = kiln__sass_parse(c, text, kernels, n);
  kiln_text_free(c->rt, text);
  return wrong;
}

/* Reads all kernels of an image. nvdisasm refuses to count live registers in the
 * code of older compilers, and in few kernels it leaves out the texts of
 * instructions when it counts. It prints the rest without live registers. */
static const char *read_all(cli *c, const kiln_image *image,
                            sass_kernel **kernels, uint32_t *n,
                            const char **next)
{
  const char *wrong = read_code(c, image, true, kernels, n, next);
  const char *again, *other;

  if (wrong == NULL || kiln_image_cubin(image, NULL) == NULL)
    return wrong;
  again = read_code(c, image, false, kernels, n, &other);
  if (again != NULL)
    return wrong;
  *next = NULL;
  return NULL;
}

/* Returns whether the parsed instructions are the machine code of the kernel.
 * nvdisasm may leave out the NOPs at the end. */
static bool is_complete(const sass_kernel *k, const char *code, size_t size)
{
  enum { NOP = 0x918 }; /* the opcode, which is the lowest 12 bits */

  if (size / k->step < k->n)
    return false;
  for (size_t i = 0; i < size / k->step; i++) {
    uint64_t words[2];

    memcpy(words, code + i * k->step, sizeof words);
    if (i < k->n ? words[0] != k->code[i].low || words[1] != k->code[i].high
                 : (words[0] & 0xfff) != NOP)
      return false;
  }
  return true;
}

/* Finds the code of kernel i of the image among the functions that nvdisasm
 * printed. @return NULL, or what is wrong with it */
static const char *identify(const kiln_image *image, size_t i,
                            sass_kernel *kernels, uint32_t n)
{
  kiln_resources r;
  const void *code;
  size_t size = 0;

  if (kiln_image_resources(image, i, &r) != KILN_OK)
    return NULL;
  code = kiln_image_code(image, i, &size);
  for (uint32_t k = 0; k < n; k++)
    if (strcmp(r.name, kernels[k].name) == 0) {
      kernels[k].resources = (int32_t)i;
      return code == NULL || is_complete(&kernels[k], code, size)
                 ? NULL
                 : "nvdisasm's output is not the machine code of the image";
    }
  return code == NULL ? NULL : "nvdisasm's output lacks a kernel of the image";
}

/* ---- Source lines -------------------------------------------------------- */

/* Copies the files and places, since the line tables are freed. */
static void keep_lines(cli *c, sass_model *m, const kiln_lines *lines)
{
  const char **files = kiln__cli_alloc(c, lines->n_files, sizeof *files);
  sass_chain *chains = kiln__cli_alloc(c, lines->n_places, sizeof *chains);
  int32_t *ptx = kiln__cli_alloc(c, lines->n_ptx_lines, sizeof *ptx);

  for (size_t i = 0; i < lines->n_files; i++)
    files[i] = kiln__cli_text(c, "%s", lines->files[i]);
  for (size_t i = 0; i < lines->n_places; i++)
    chains[i] = (sass_chain){lines->places[i].file, lines->places[i].line,
                             lines->places[i].caller};
  for (size_t i = 0; i < lines->n_ptx_lines; i++)
    ptx[i] = lines->ptx_places[i];
  m->files = files;
  m->chains = chains;
  m->ptx_chains = ptx;
  m->n_files = (uint32_t)lines->n_files;
  m->n_chains = (uint32_t)lines->n_places;
  m->n_ptx = (uint32_t)lines->n_ptx_lines;
}

/* Stores the value of each row of a table in the instructions from its address
 * on. `member` is the offset of the value in sass_instruction. */
static void apply_rows(sass_kernel *k, sass_instruction *code,
                       const kiln_line_row *rows, size_t n, size_t member)
{
  int32_t value = -1;
  size_t row = 0;

  while (row < n && (int64_t)rows[row].kernel < k->resources)
    row++;
  for (uint32_t i = 0; i < k->n; i++) {
    for (; row < n && (int64_t)rows[row].kernel == k->resources &&
           rows[row].address <= i * k->step;
         row++)
      value = rows[row].at;
    memcpy((char *)&code[i] + member, &value, sizeof value);
  }
}

static void apply_lines(const kiln_lines *lines, sass_kernel *k)
{
  /* The parser allocated the code of this kernel, which nobody else uses yet. */
  sass_instruction *code = (sass_instruction *)(uintptr_t)k->code;

  if (k->resources < 0)
    return;
  apply_rows(k, code, lines->code, lines->n_code,
             offsetof(sass_instruction, chain));
  apply_rows(k, code, lines->ptx, lines->n_ptx,
             offsetof(sass_instruction, ptx));
}

/* ---- Spills -------------------------------------------------------------- */

/* Returns the number of bytes that a local load or store moves per thread. */
static uint32_t width_of(const char *opcode, size_t n)
{
  static const struct {
    const char *modifier;
    uint32_t bytes;
  } widths[] = {{".128", 16}, {".64", 8},  {".U8", 1},
                {".S8", 1},   {".U16", 2}, {".S16", 2}};

  for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
    if (memmem(opcode, n, widths[i].modifier, strlen(widths[i].modifier)) !=
        NULL)
      return widths[i].bytes;
  return 4;
}

static sass_spill *spill_of(sass_spill *spills, uint32_t *n, int32_t chain)
{
  for (uint32_t i = 0; i < *n; i++)
    if (spills[i].chain == chain)
      return &spills[i];
  spills[*n] = (sass_spill){.chain = chain};
  return &spills[(*n)++];
}

static int by_bytes(const void *a, const void *b)
{
  const sass_spill *x = a, *y = b;
  const uint32_t m = x->store_bytes + x->load_bytes;
  const uint32_t n = y->store_bytes + y->load_bytes;

  if (m != n)
    return m > n ? -1 : 1;
  return x->chain < y->chain ? -1 : x->chain > y->chain;
}

/* Attributes the spills of a kernel to source lines. Spill instructions access
 * local memory at a constant distance from the stack pointer R1. Elements of a
 * local array at a constant index look the same, so the sum exceeds the
 * assembler's number in a kernel that has both. */
static void find_spills(cli *c, const kiln_image *image, sass_kernel *k)
{
  kiln_resources r = {0};
  sass_spill *spills;
  uint32_t n = 0;

  if (k->resources < 0 ||
      kiln_image_resources(image, (size_t)k->resources, &r) != KILN_OK ||
      r.spill_stores + r.spill_loads == 0)
    return;
  spills = kiln__cli_alloc(c, k->n, sizeof *spills);
  for (uint32_t i = 0; i < k->n; i++) {
    size_t length, plain;
    const char *text = k->code[i].text;
    const char *opcode = kiln__sass_opcode(text, &length, &plain);
    const bool store = strncmp(opcode, "STL", 3) == 0;

    if ((!store && strncmp(opcode, "LDL", 3) != 0) || plain != 3 ||
        (strstr(text, "[R1+") == NULL && strstr(text, "[R1]") == NULL))
      continue;
    if (store)
      spill_of(spills, &n, k->code[i].chain)->store_bytes +=
          width_of(opcode, length);
    else
      spill_of(spills, &n, k->code[i].chain)->load_bytes +=
          width_of(opcode, length);
  }
  if (n > 0)
    qsort(spills, n, sizeof *spills, by_bytes);
  k->spills = spills;
  k->n_spills = n;
}

/* ---- Costs --------------------------------------------------------------- */

/* Returns the innermost loop of each block, or -1. The smallest loop that
 * contains a block is the innermost one. */
static int32_t *innermost_loops(cli *c, const sass_kernel *k)
{
  int32_t *inner = kiln__cli_alloc(c, k->n_blocks, sizeof *inner);

  memset(inner, 0xff, k->n_blocks * sizeof *inner);
  for (uint32_t i = 0; i < k->n_loops; i++)
    for (uint32_t b = 0; b < k->loops[i].n_blocks; b++) {
      int32_t *now = &inner[k->loops[i].blocks[b]];

      if (*now < 0 || k->loops[i].n_blocks < k->loops[*now].n_blocks)
        *now = (int32_t)i;
    }
  return inner;
}

/* Returns the cost of the blocks whose innermost loop this is. `which` is
 * scratch memory with an element per instruction. */
static sass_cost loop_cost(cli *c, int cc, const sass_kernel *k, uint32_t loop,
                           const int32_t *inner, uint32_t *which)
{
  const sass_loop *l = &k->loops[loop];
  uint32_t n = 0;

  for (uint32_t i = 0; i < l->n_blocks; i++) {
    const sass_block *b = &k->blocks[l->blocks[i]];

    if (inner[l->blocks[i]] == (int32_t)loop)
      for (uint32_t j = 0; j < b->n; j++)
        which[n++] = b->first + j;
  }
  return kiln__sass_cost(c, cc, k->code, which, n);
}

static void find_costs(cli *c, int cc, sass_kernel *k)
{
  sass_loop *loops = (sass_loop *)(uintptr_t)k->loops;
  const int32_t *inner = innermost_loops(c, k);
  uint32_t *which = kiln__cli_alloc(c, k->n, sizeof *which);

  k->cost = kiln__sass_cost(c, cc, k->code, NULL, k->used);
  for (uint32_t i = 0; i < k->n_loops; i++)
    loops[i].cost = loop_cost(c, cc, k, i, inner, which);
}

const sass_model *kiln__sass_model(cli *c, const kiln_image *image,
                                   const char **why, const char **next)
{
  sass_model *m = kiln__cli_alloc(c, 1, sizeof *m);
  sass_kernel *kernels = NULL;
  kiln_lines *lines = NULL;

  m->cc = kiln_image_target(image).cc;
  *why = read_all(c, image, &kernels, &m->n_kernels, next);
  if (*why != NULL || kernels == NULL)
    return NULL;
  for (size_t i = 0; *why == NULL && i < kiln_image_kernels(image); i++)
    *why = identify(image, i, kernels, m->n_kernels);
  if (*why != NULL)
    return NULL;
  if (kiln_image_lines(&lines, image) == KILN_OK)
    keep_lines(c, m, lines);
  for (uint32_t i = 0; i < m->n_kernels; i++) {
    if (lines != NULL)
      apply_lines(lines, &kernels[i]);
    kiln__sass_flow(c, &kernels[i]);
    find_spills(c, image, &kernels[i]);
    find_costs(c, m->cc, &kernels[i]);
  }
  kiln_lines_free(lines);
  m->kernels = kernels;
  return m;
}
