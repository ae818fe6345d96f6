/* sass_compare.c -- compares two compiles of a kernel per source line.
 *
 * Each instruction belongs to one group: the outermost line of its inline chain,
 * which is a line of the kernel itself, or the group of instructions without a
 * line. Groups of the two compiles with the same line form a row. If the source
 * files differ, their common lines decide which lines are the same
 * (sass_align.c). Inside a row, the sequences of opcodes are aligned, since equal
 * numbers of instructions may still be different code. */
#include "cli/explore/sass_compare.h"

#include <stdlib.h>
#include <string.h>

/* A line as side A numbers it. */
typedef struct spot {
  int32_t file, line; /* -1: no line */
  bool foreign;       /* the line exists only in B: file counts B's files */
} spot;

/* The instructions of one source line. */
typedef struct group {
  int32_t chain; /* outermost place, or -1 */
  spot spot;
  uint32_t *which; /* instructions, ascending */
  uint32_t n;
  uint16_t live;
} group;

typedef struct groups {
  group *at;
  uint32_t n;
} groups;

/* Where the lines of one file of B are in A. */
typedef struct file_map {
  int32_t file;  /* file of A, or -1 */
  int32_t *line; /* line of A for line i + 1 of B, or -1; NULL: the same line */
  uint32_t n;
} file_map;

/* ---- Groups -------------------------------------------------------------- */

static int32_t outermost(const sass_model *m, int32_t chain)
{
  while (chain >= 0 && m->chains[chain].parent >= 0)
    chain = m->chains[chain].parent;
  return chain;
}

static groups group_lines(cli *c, const sass_side *s)
{
  const sass_kernel *k = s->kernel;
  uint32_t *size = kiln__cli_alloc(c, s->model->n_chains + 1, sizeof *size);
  int32_t *index = kiln__cli_alloc(c, s->model->n_chains + 1, sizeof *index);
  groups g = {0};

  /* Element 0 stands for chain -1. */
  for (uint32_t i = 0; i < k->used; i++)
    g.n += size[outermost(s->model, k->code[i].chain) + 1]++ == 0 ? 1 : 0;
  g.at = kiln__cli_alloc(c, g.n, sizeof *g.at);
  g.n = 0;
  for (uint32_t i = 0; i < k->used; i++) {
    const int32_t chain = outermost(s->model, k->code[i].chain);
    group *to;

    if (size[chain + 1] > 0) {
      index[chain + 1] = (int32_t)g.n;
      g.at[g.n] = (group){.chain = chain};
      g.at[g.n++].which = kiln__cli_alloc(c, size[chain + 1], sizeof(uint32_t));
      size[chain + 1] = 0;
    }
    to = &g.at[index[chain + 1]];
    to->which[to->n++] = i;
    if (k->code[i].live[SASS_GENERAL] > to->live)
      to->live = k->code[i].live[SASS_GENERAL];
  }
  return g;
}

/* ---- Files --------------------------------------------------------------- */

/* A text, divided into lines. */
typedef struct text_lines {
  const char **at; /* n + 1 elements: starts of lines, and the end */
  uint32_t n;
} text_lines;

static text_lines divide(cli *c, const char *text, size_t size)
{
  const char *end = text + size, *p = text;
  text_lines l = {0};

  for (size_t i = 0; i < size; i++)
    l.n += text[i] == '\n' || i + 1 == size ? 1 : 0;
  l.at = kiln__cli_alloc(c, (size_t)l.n + 1, sizeof *l.at);
  for (uint32_t i = 0; i < l.n; i++) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));

    l.at[i] = p;
    p = newline == NULL ? end : newline + 1;
  }
  l.at[l.n] = end;
  return l;
}

static bool same_line(const void *user, uint32_t i, uint32_t j)
{
  const text_lines *l = user;
  const size_t n = (size_t)(l[0].at[i + 1] - l[0].at[i]);

  return n == (size_t)(l[1].at[j + 1] - l[1].at[j]) &&
         memcmp(l[0].at[i], l[1].at[j], n) == 0;
}

/* Maps the lines of a file of B to the lines of a file of A by their texts. */
static void map_lines(cli *c, file_map *map, const sass_side sides[2],
                      const char *const names[2])
{
  const char *texts[2];
  size_t sizes[2];
  text_lines lines[2]; /* of B, then of A */
  sass_sequences s = {.equal = same_line, .user = lines};

  for (int i = 0; i < 2; i++)
    texts[i] = kiln_image_source(sides[i].image, names[i], &sizes[i]);
  if (texts[0] == NULL || texts[1] == NULL ||
      (sizes[0] == sizes[1] && memcmp(texts[0], texts[1], sizes[0]) == 0))
    return;
  lines[0] = divide(c, texts[1], sizes[1]);
  lines[1] = divide(c, texts[0], sizes[0]);
  s.n = lines[0].n;
  s.m = lines[1].n;
  map->n = s.n;
  map->line = kiln__cli_alloc(c, s.n, sizeof *map->line);
  kiln__sass_align(&s, map->line);
  for (uint32_t i = 0; i < s.n; i++)
    map->line[i] += map->line[i] >= 0 ? 1 : 0;
}

static int32_t file_named(const sass_model *m, const char *name)
{
  for (uint32_t i = 0; i < m->n_files; i++)
    if (strcmp(m->files[i], name) == 0)
      return (int32_t)i;
  return -1;
}

/* Maps each file of B to the file of A with the same name. The other files are
 * paired in their order, which pairs the main files of two programs. */
static file_map *map_files(cli *c, const sass_side sides[2])
{
  const sass_model *a = sides[0].model, *b = sides[1].model;
  file_map *maps = kiln__cli_alloc(c, b->n_files, sizeof *maps);
  uint32_t next = 0;

  for (uint32_t i = 0; i < b->n_files; i++) {
    maps[i].file = file_named(a, b->files[i]);
    if (maps[i].file < 0) {
      while (next < a->n_files && file_named(b, a->files[next]) >= 0)
        next++;
      maps[i].file = next < a->n_files ? (int32_t)next++ : -1;
    }
    if (maps[i].file >= 0) {
      const char *const names[2] = {a->files[maps[i].file], b->files[i]};

      map_lines(c, &maps[i], sides, names);
    }
  }
  return maps;
}

/* Returns the spot of the innermost place of a chain. `maps` is NULL for side A. */
static spot spot_of(const sass_model *m, int32_t chain, const file_map *maps)
{
  const sass_chain *at;
  const file_map *map;

  if (chain < 0)
    return (spot){-1, -1, false};
  at = &m->chains[chain];
  map = maps == NULL ? NULL : &maps[at->file];
  if (map == NULL)
    return (spot){at->file, at->line, false};
  if (map->file >= 0 && map->line == NULL)
    return (spot){map->file, at->line, false};
  if (map->file >= 0 && at->line >= 1 && (uint32_t)at->line <= map->n &&
      map->line[at->line - 1] >= 0)
    return (spot){map->file, map->line[at->line - 1], false};
  return (spot){at->file, at->line, true};
}

static bool same_spot(spot a, spot b)
{
  return a.file == b.file && a.line == b.line && a.foreign == b.foreign;
}

static void place_groups(const sass_model *m, groups *g, const file_map *maps)
{
  for (uint32_t i = 0; i < g->n; i++)
    g->at[i].spot = spot_of(m, g->at[i].chain, maps);
}

/* ---- Rows ---------------------------------------------------------------- */

typedef struct opcodes {
  const sass_instruction *code[2];
  const uint32_t *which[2];
} opcodes;

static const char *opcode_at(const opcodes *o, int side, uint32_t i, size_t *n)
{
  size_t plain;

  return kiln__sass_opcode(o->code[side][o->which[side][i]].text, n, &plain);
}

static bool same_opcode(const void *user, uint32_t i, uint32_t j)
{
  size_t n, m;
  const char *a = opcode_at(user, 0, i, &n), *b = opcode_at(user, 1, j, &m);

  return n == m && memcmp(a, b, n) == 0;
}

static int by_difference(const void *a, const void *b)
{
  const sass_change *x = a, *y = b;
  const long m = labs((long)x->n[1] - (long)x->n[0]);
  const long n = labs((long)y->n[1] - (long)y->n[0]);

  return m != n ? (m > n ? -1 : 1) : strcmp(x->opcode, y->opcode);
}

/* Counts the opcodes of a row and keeps those whose numbers differ. */
static void count_changes(cli *c, sass_row *row, const opcodes *o)
{
  sass_change *list = NULL;
  size_t n = 0, capacity = 0, kept = 0;

  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < row->cost[side].instructions; i++) {
      size_t length, at = 0;
      const char *opcode = opcode_at(o, side, i, &length);

      while (at < n && (strncmp(list[at].opcode, opcode, length) != 0 ||
                        list[at].opcode[length] != '\0'))
        at++;
      if (at == n) {
        list = kiln__cli_grow(c, list, n, &capacity, sizeof *list);
        list[n++] = (sass_change){
            .opcode = kiln__cli_text(c, "%.*s", (int)length, opcode)};
      }
      list[at].n[side]++;
    }
  for (size_t i = 0; i < n; i++)
    if (list[i].n[0] != list[i].n[1])
      list[kept++] = list[i];
  if (kept > 0)
    qsort(list, kept, sizeof *list, by_difference);
  row->changes = list;
  row->n_changes = (uint32_t)kept;
}

static const char *file_of(const sass_model *m, int32_t chain)
{
  return chain < 0 ? NULL : m->files[m->chains[chain].file];
}

/* Returns the bytes that spills of an outermost line store and load. */
static uint32_t spills_of(const sass_side *side, int32_t chain)
{
  const sass_kernel *k = side->kernel;
  uint32_t bytes = 0;

  for (uint32_t i = 0; i < k->n_spills; i++)
    if (outermost(side->model, k->spills[i].chain) == chain)
      bytes += k->spills[i].store_bytes + k->spills[i].load_bytes;
  return bytes;
}

/* Fills the part of a row that describes one side, if the side has the line. */
static void fill_side(cli *c, sass_row *row, int i, const sass_side *side,
                      const group *g)
{
  row->chain[i] = row->line[i] = -1;
  if (g == NULL)
    return;
  row->chain[i] = g->chain;
  row->line[i] = g->chain < 0 ? -1 : side->model->chains[g->chain].line;
  if (row->file == NULL)
    row->file = file_of(side->model, g->chain);
  row->live[i] = g->live;
  row->spills[i] = spills_of(side, g->chain);
  row->cost[i] =
      kiln__sass_cost(c, side->model->cc, side->kernel->code, g->which, g->n);
}

static sass_row make_row(cli *c, const sass_side sides[2],
                         const group *const pair[2])
{
  sass_row row = {.file = NULL};
  opcodes o = {0};
  sass_sequences s = {.equal = same_opcode, .user = &o};

  for (int i = 0; i < 2; i++) {
    fill_side(c, &row, i, &sides[i], pair[i]);
    o.code[i] = sides[i].kernel->code;
    o.which[i] = pair[i] == NULL ? NULL : pair[i]->which;
  }
  s.n = row.cost[0].instructions;
  s.m = row.cost[1].instructions;
  row.common = kiln__sass_align(&s, kiln__cli_alloc(c, s.n, sizeof(int32_t)));
  count_changes(c, &row, &o);
  return row;
}

static bool differs(const sass_row *r)
{
  return r->common != r->cost[0].instructions ||
         r->common != r->cost[1].instructions;
}

/* Sorts by the difference in instructions, then by the number of instructions
 * that have no equal, then by line. */
static int by_size(const void *a, const void *b)
{
  const sass_row *x = a, *y = b;
  long rank[2][3];

  for (int i = 0; i < 2; i++) {
    const sass_row *r = i == 0 ? x : y;
    const long n = r->cost[0].instructions, m = r->cost[1].instructions;

    rank[i][0] = labs(m - n);
    rank[i][1] = m + n - 2 * (long)r->common;
    rank[i][2] = -(long)(r->line[0] >= 0 ? r->line[0] : r->line[1]);
  }
  for (int i = 0; i < 3; i++)
    if (rank[0][i] != rank[1][i])
      return rank[0][i] > rank[1][i] ? -1 : 1;
  return 0;
}

static const group *group_at(const groups *g, spot at)
{
  for (uint32_t i = 0; i < g->n; i++)
    if (same_spot(g->at[i].spot, at))
      return &g->at[i];
  return NULL;
}

static void compare_lines(cli *c, const sass_side sides[2],
                          const file_map *maps, sass_comparison *out)
{
  groups a = group_lines(c, &sides[0]), b = group_lines(c, &sides[1]);
  sass_row *rows = kiln__cli_alloc(c, a.n + b.n, sizeof *rows);
  bool *paired = kiln__cli_alloc(c, a.n, sizeof *paired);

  place_groups(sides[0].model, &a, NULL);
  place_groups(sides[1].model, &b, maps);
  for (uint32_t i = 0; i < b.n; i++) {
    const group *const pair[2] = {group_at(&a, b.at[i].spot), &b.at[i]};

    if (pair[0] != NULL)
      paired[pair[0] - a.at] = true;
    rows[out->n_rows++] = make_row(c, sides, pair);
  }
  for (uint32_t i = 0; i < a.n; i++) {
    const group *const pair[2] = {&a.at[i], NULL};

    if (!paired[i])
      rows[out->n_rows++] = make_row(c, sides, pair);
  }
  qsort(rows, out->n_rows, sizeof *rows, by_size);
  while (out->n_different < out->n_rows && differs(&rows[out->n_different]))
    out->n_different++;
  out->rows = rows;
}

/* ---- Loops --------------------------------------------------------------- */

static spot loop_spot(const sass_side *s, const sass_loop *l,
                      const file_map *maps)
{
  return spot_of(s->model, l->chain, maps);
}

/* Returns the first loop of B that corresponds to a loop of A and is not taken
 * yet, or NULL. */
static const sass_loop *loop_like(const sass_side sides[2], const sass_loop *a,
                                  const file_map *maps, bool *taken)
{
  const spot at = loop_spot(&sides[0], a, NULL);
  const sass_kernel *k = sides[1].kernel;

  for (uint32_t i = 0; i < k->n_loops; i++)
    if (!taken[i] && k->loops[i].depth == a->depth &&
        same_spot(loop_spot(&sides[1], &k->loops[i], maps), at)) {
      taken[i] = true;
      return &k->loops[i];
    }
  return NULL;
}

static sass_loop_pair make_pair(const sass_side sides[2], const sass_loop *a,
                                const sass_loop *b)
{
  sass_loop_pair p = {.loop = {a, b}, .line = {-1, -1}};

  for (int i = 0; i < 2; i++) {
    const sass_model *m = sides[i].model;
    const int32_t chain = p.loop[i] == NULL ? -1 : p.loop[i]->chain;

    if (chain < 0)
      continue;
    p.line[i] = m->chains[chain].line;
    if (p.file == NULL)
      p.file = file_of(m, chain);
  }
  return p;
}

static void compare_loops(cli *c, const sass_side sides[2],
                          const file_map *maps, sass_comparison *out)
{
  const sass_kernel *a = sides[0].kernel, *b = sides[1].kernel;
  sass_loop_pair *pairs =
      kiln__cli_alloc(c, a->n_loops + b->n_loops, sizeof *pairs);
  bool *taken = kiln__cli_alloc(c, b->n_loops, sizeof *taken);

  for (uint32_t i = 0; i < a->n_loops; i++)
    pairs[out->n_loops++] = make_pair(
        sides, &a->loops[i], loop_like(sides, &a->loops[i], maps, taken));
  for (uint32_t i = 0; i < b->n_loops; i++)
    if (!taken[i])
      pairs[out->n_loops++] = make_pair(sides, NULL, &b->loops[i]);
  out->loops = pairs;
}

const sass_comparison *kiln__sass_compare(cli *c, sass_side a, sass_side b)
{
  const sass_side sides[2] = {a, b};
  const file_map *maps = map_files(c, sides);
  sass_comparison *out = kiln__cli_alloc(c, 1, sizeof *out);

  compare_lines(c, sides, maps, out);
  compare_loops(c, sides, maps, out);
  return out;
}

const sass_kernel *kiln__sass_counterpart(cli *c, const sass_model *to,
                                          const sass_kernel *kernel)
{
  const char *plain = kiln__cli_plain_name(c, kernel->name);
  const sass_kernel *found = NULL;
  uint32_t n = 0;

  for (uint32_t i = 0; i < to->n_kernels; i++)
    if (strcmp(to->kernels[i].name, kernel->name) == 0)
      return &to->kernels[i];
  for (uint32_t i = 0; i < to->n_kernels; i++)
    if (strcmp(kiln__cli_plain_name(c, to->kernels[i].name), plain) == 0) {
      found = &to->kernels[i];
      n++;
    }
  return n == 1 ? found : NULL;
}
