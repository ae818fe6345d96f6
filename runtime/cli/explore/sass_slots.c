/* sass_slots.c -- opcode mix and issue slots of a group of instructions.
 *
 * Problem: say how long a scheduler is busy with an iteration of a loop, from
 * machine code alone.
 *
 * Idea: an SM has four schedulers, and each issues at most one instruction per
 * cycle. A pipe that executes r lanes per cycle and SM accepts a warp of one
 * scheduler every 32 / (r / 4) = 128 / r cycles, if all schedulers do the same
 * work. Different pipes work at the same time. The group therefore takes at
 * least as many cycles as it has instructions, and at least the cycles of its
 * busiest pipe; the result is the greater of both. It is a lower bound: it
 * ignores latencies, cache misses and bank conflicts, and assumes that all lanes
 * load from one address.
 *
 * The sum over parts of the code may exceed the value of the whole, since
 * different pipes may limit the parts. Sources of the rates: sass_slots.def. */
#include "cli/explore/sass_model.h"

#include <stdlib.h>
#include <string.h>

typedef enum pipe { FMA, IMAD, ALU, XU, FP64, LSU, TENSOR, N_PIPES } pipe;

static const char *const pipe_names[] = {"FMA",  "IMAD", "ALU",   "XU",
                                         "FP64", "LSU",  "tensor"};

static const int generations[] = {
#define SASS_GENERATION(name, cc) (cc),
#include "cli/explore/sass_slots.def"
};

enum { N_GENERATIONS = sizeof generations / sizeof generations[0] };

static const struct rate {
  const char *opcode;
  pipe pipe;
  short lanes[N_GENERATIONS];
} rates[] = {
#define SASS_RATE(opcode, pipe, ...) {opcode, pipe, {__VA_ARGS__}},
#include "cli/explore/sass_slots.def"
};

/* Rows 0 and 1: multiply-adds of FP16 and of FP64. */
static const short tensor_rates[][N_GENERATIONS] = {
#define SASS_TENSOR(...) {__VA_ARGS__},
#include "cli/explore/sass_slots.def"
};

static const struct tensor_kind {
  const char *opcode, *modifier;
  double factor;
} tensor_kinds[] = {
#define SASS_TENSOR_KIND(opcode, modifier, factor) {opcode, modifier, factor},
#include "cli/explore/sass_slots.def"
};

static const struct shape {
  const char *text;
  short m, n, k;
} shapes[] = {
#define SASS_SHAPE(text, m, n, k) {text, m, n, k},
#include "cli/explore/sass_slots.def"
};

/* An opcode with its modifiers, such as "IMAD.MOV.U32". */
typedef struct opcode {
  const char *at;
  size_t n, plain;
} opcode;

static opcode opcode_of(const sass_instruction *i)
{
  opcode o;

  o.at = kiln__sass_opcode(i->text, &o.n, &o.plain);
  return o;
}

static bool has(opcode o, const char *text)
{
  return memmem(o.at, o.n, text, strlen(text)) != NULL;
}

static size_t generation_of(int cc)
{
  size_t g = N_GENERATIONS - 1;

  while (g > 0 && generations[g] > cc)
    g--;
  return g;
}

/* ---- Pipes --------------------------------------------------------------- */

/* Returns whether a row of the table applies to an opcode. */
static bool matches(const char *row, opcode o)
{
  const size_t n = strcspn(row, "*.");

  if (o.plain < n || memcmp(o.at, row, n) != 0 ||
      (row[n] != '*' && o.plain != n))
    return false;
  return row[n] != '.' || has(o, row + n);
}

static const struct rate *rate_of(opcode o)
{
  for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
    if (matches(rates[i].opcode, o))
      return &rates[i];
  return NULL;
}

/* Returns the least number of passes of a warp's access through the load/store
 * units. A store moves 4 bytes per lane at a time. A load may be a broadcast, which
 * takes one pass at any width. LDSM and STSM move one to four matrices of 128
 * bytes. */
static int passes(opcode o)
{
  const bool matrix = o.plain == 4 && o.at[3] == 'M';

  if (matrix)
    return o.at[o.n - 1] == '4' ? 4 : o.at[o.n - 1] == '2' ? 2 : 1;
  if (memcmp(o.at, "ST", 2) != 0)
    return 1;
  return has(o, ".256") ? 8 : has(o, ".128") ? 4 : has(o, ".64") ? 2 : 1;
}

/* Returns the multiply-adds per warp of a shape such as "64x128x16", which four
 * warps share, or "16816"; 0 if it is none. */
static double products(const char *text, size_t n)
{
  unsigned m, k, columns;
  char copy[24] = "";

  if (n < sizeof copy)
    memcpy(copy, text, n);
  if (sscanf(copy, "%ux%ux%u", &m, &columns, &k) == 3)
    return (double)m * columns * k / (m == 64 ? 4 : 1);
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    if (strcmp(copy, shapes[i].text) == 0)
      return (double)shapes[i].m * shapes[i].n * shapes[i].k;
  return 0;
}

/* Returns the cycles of the tensor core for a matrix product, or 0 if the opcode
 * is no product or the rate is not known. */
static double tensor_cycles(opcode o, size_t generation)
{
  double factor = 0, work = 0;
  const bool fp64 = o.plain == 4 && memcmp(o.at, "DMMA", 4) == 0;

  if (!has(o, "MMA"))
    return 0;
  for (size_t i = 0;
       factor == 0 && i < sizeof tensor_kinds / sizeof *tensor_kinds; i++)
    if (has(o, tensor_kinds[i].opcode) && has(o, tensor_kinds[i].modifier))
      factor = tensor_kinds[i].factor;
  for (size_t at = o.plain; work == 0 && at < o.n;) {
    const size_t n = strcspn(o.at + at + 1, ". ");

    work = products(o.at + at + 1, n);
    at += n + 1;
  }
  if (has(o, ".SP"))
    factor *= 2;
  factor = (fp64 ? 1 : factor) * tensor_rates[fp64 ? 1 : 0][generation];
  return factor > 0 ? work / factor : 0;
}

/* Adds the cycles of an instruction to the pipes that execute it. */
static void add_cycles(double cycles[N_PIPES], opcode o, size_t generation)
{
  const struct rate *r = rate_of(o);
  double each;

  cycles[TENSOR] += tensor_cycles(o, generation);
  if (r == NULL || r->lanes[generation] == 0)
    return;
  each = 128.0 / r->lanes[generation];
  if (r->pipe == LSU)
    each *= passes(o);
  cycles[r->pipe] += each;
  /* IMAD uses one half of the FMA pipe, so an FFMA can use the other half. */
  if (r->pipe == IMAD)
    cycles[FMA] += generations[generation] < 86 ? 2 : 1;
}

/* ---- Mix ----------------------------------------------------------------- */

typedef struct mix {
  sass_mix *at;
  size_t n, capacity;
} mix;

static void add_opcode(cli *c, mix *m, opcode o)
{
  for (size_t i = 0; i < m->n; i++)
    if (strncmp(m->at[i].opcode, o.at, o.plain) == 0 &&
        m->at[i].opcode[o.plain] == '\0') {
      m->at[i].n++;
      return;
    }
  m->at = kiln__cli_grow(c, m->at, m->n, &m->capacity, sizeof *m->at);
  m->at[m->n++] = (sass_mix){kiln__cli_text(c, "%.*s", (int)o.plain, o.at), 1};
}

static int by_number(const void *a, const void *b)
{
  const sass_mix *x = a, *y = b;

  if (x->n != y->n)
    return x->n > y->n ? -1 : 1;
  return strcmp(x->opcode, y->opcode);
}

sass_cost kiln__sass_cost(cli *c, int cc, const sass_instruction *code,
                          const uint32_t *which, uint32_t n)
{
  const size_t generation = generation_of(cc);
  double cycles[N_PIPES] = {0};
  sass_cost cost = {.instructions = n, .slots = n, .limit = "issue"};
  mix m = {0};

  for (uint32_t i = 0; i < n; i++) {
    const opcode o = opcode_of(&code[which == NULL ? i : which[i]]);

    add_cycles(cycles, o, generation);
    add_opcode(c, &m, o);
  }
  for (int p = 0; p < N_PIPES; p++)
    if (cycles[p] > cost.slots) {
      cost.slots = cycles[p];
      cost.limit = pipe_names[p];
    }
  if (m.n > 0)
    qsort(m.at, m.n, sizeof *m.at, by_number);
  cost.mix = m.at;
  cost.n_mix = (uint32_t)m.n;
  return cost;
}
