/* explore_document.c -- builds the document: images with their kernels, and the
 * differences between images. */
#include "cli/explore/explore_document.h"

#include "cli/explore/sass_compare.h"
#include "cli/sheet/occupancy_sheet.h"

#include <kiln/inspect.h>

#include <string.h>

enum { DEFAULT_THREADS = 256 };

/* An image of the document. */
typedef struct shown {
  const cli_unit *unit;
  int side;
  const sass_model *model; /* NULL if there is no machine code to show */
  int *chains;             /* the document's index of each chain of the image */
} shown;

struct explore_document {
  cli *c;
  explore_setting setting;
  cJSON *root, *images;
  explore_places *places;
  shown *list;
  size_t n, capacity;
  size_t n_kernels;
};

explore_document *kiln__explore_document(cli *c, const explore_setting *s)
{
  explore_document *d = kiln__cli_alloc(c, 1, sizeof *d);

  d->c = c;
  d->setting = *s;
  d->places = kiln__explore_places(c);
  d->root = cJSON_CreateObject();
  JSON_NUMBER(d->root, "format", 1);
  JSON_TEXT(d->root, "kiln", KILN_VERSION_TEXT);
  JSON_TEXT(d->root, "program", s->program);
  d->images = cJSON_AddArrayToObject(d->root, "images");
  return d;
}

/* ---- Lines --------------------------------------------------------------- */

/* Gives each chain of an image its index in the document. */
static int *map_chains(explore_document *d, const kiln_image *image,
                       const kiln_lines *lines)
{
  int *files = kiln__cli_alloc(d->c, lines->n_files + 1, sizeof *files);
  int *chains = kiln__cli_alloc(d->c, lines->n_places + 1, sizeof *chains);

  for (size_t i = 0; i < lines->n_files; i++)
    files[i] = kiln__explore_file(d->places, image, lines->files[i]);
  for (size_t i = 0; i < lines->n_places; i++) {
    const kiln_place *p = &lines->places[i];

    chains[i] = kiln__explore_chain(d->places, files[p->file], p->line,
                                    p->caller < 0 ? -1 : chains[p->caller]);
  }
  return chains;
}

static void add_ptx(explore_document *d, cJSON *to, const shown *s,
                    const kiln_lines *lines)
{
  const char *ptx = kiln_image_ptx(s->unit->image, NULL);
  explore_numbers n;

  if (ptx == NULL)
    return;
  (void)cJSON_AddItemToObject(to, "ptx", cJSON_CreateStringReference(ptx));
  if (lines == NULL || s->chains == NULL)
    return;
  kiln__explore_numbers(d->c, &n);
  for (size_t i = 0; i < lines->n_ptx_lines; i++) {
    const int32_t place = lines->ptx_places[i];

    fprintf(n.out, "%s%d", i > 0 ? "," : "", place < 0 ? -1 : s->chains[place]);
  }
  kiln__explore_numbers_end(&n, to, "ptx_chain");
}

/* Adds the first and the last line of the kernel in the PTX. */
static void add_ptx_lines(cJSON *to, const char *ptx, const char *name)
{
  static const char word[] = ".entry ";
  const size_t n = strlen(name);
  unsigned line = 1, first = 0;

  for (const char *at = ptx; at != NULL && *at != '\0'; line++) {
    const size_t length = strcspn(at, "\n");
    const char *entry = memmem(at, length, word, sizeof word - 1);

    if (entry != NULL && strncmp(entry + sizeof word - 1, name, n) == 0 &&
        strchr("( \t\r\n", entry[sizeof word - 1 + n]) != NULL)
      first = line;
    if (first > 0 && *at == '}') {
      const int range[2] = {(int)first, (int)line};

      cJSON_AddItemToObject(to, "ptx_lines", cJSON_CreateIntArray(range, 2));
      return;
    }
    at += length;
    at += *at == '\n' ? 1 : 0;
  }
}

/* ---- Kernels ------------------------------------------------------------- */

static void add_resources(cJSON *to, const kiln_image *image, size_t i,
                          const kiln_resources *r)
{
  cJSON *o = cJSON_AddObjectToObject(to, "resources");
  size_t code = 0;

  if (kiln_image_code(image, i, &code) == NULL)
    code = 0;
  JSON_NUMBER(o, "registers", r->registers);
  JSON_NUMBER(o, "spill_stores", r->spill_stores);
  JSON_NUMBER(o, "spill_loads", r->spill_loads);
  JSON_NUMBER(o, "stack", r->stack);
  JSON_NUMBER(o, "shared_static", r->shared_static);
  JSON_NUMBER(o, "constant", r->constant);
  JSON_NUMBER(o, "local", r->local);
  JSON_NUMBER(o, "max_threads", r->max_threads);
  JSON_NUMBER(o, "code_bytes", code);
}

static void add_occupancy(explore_document *d, cJSON *to, const shown *s,
                          const kiln_resources *r)
{
  const unsigned most = r->max_threads > 0 ? (unsigned)r->max_threads : 1024;
  unsigned threads = d->setting.threads;
  occupancy_setting o = {.registers = r->registers,
                         .max_threads = r->max_threads};

  if (threads == 0)
    threads =
        most < DEFAULT_THREADS || r->max_threads > 0 ? most : DEFAULT_THREADS;
  o.threads = (int)threads;
  o.shared = (size_t)r->shared_static + d->setting.shared;
  if (r->registers == 0 ||
      kiln_arch_traits(s->unit->target.cc, &o.traits) != KILN_OK)
    return;
  cJSON_AddItemToObject(to, "occupancy", kiln__occupancy_json(d->c, &o));
}

/* Returns the kernel of the model that has these resources, or NULL. */
static const sass_kernel *code_of(const shown *s, size_t resources)
{
  for (uint32_t i = 0; s->model != NULL && i < s->model->n_kernels; i++)
    if (s->model->kernels[i].resources == (int32_t)resources)
      return &s->model->kernels[i];
  return NULL;
}

/* Returns whether the user asked for this kernel. */
static bool is_wanted(explore_document *d, const cli_unit *unit,
                      const char *lowered)
{
  const char *wanted = d->setting.kernel;

  return wanted == NULL || strcmp(wanted, lowered) == 0 ||
         strcmp(wanted, kiln__cli_plain_name(d->c, lowered)) == 0 ||
         strcmp(wanted, kiln__cli_kernel_name(d->c, unit, lowered)) == 0;
}

static void add_kernel(explore_document *d, cJSON *list, const shown *s,
                       size_t i)
{
  const kiln_image *image = s->unit->image;
  const char *ptx = kiln_image_ptx(image, NULL);
  const sass_kernel *code = code_of(s, i);
  kiln_resources r;
  cJSON *o;

  if (kiln_image_resources(image, i, &r) != KILN_OK ||
      !is_wanted(d, s->unit, r.name))
    return;
  o = kiln__cli_json_item(list);
  d->n_kernels++;
  JSON_TEXT(o, "name", r.name);
  JSON_TEXT(o, "signature", kiln__cli_kernel_name(d->c, s->unit, r.name));
  add_resources(o, image, i, &r);
  add_ptx_lines(o, ptx, r.name);
  add_occupancy(d, o, s, &r);
  if (code != NULL)
    kiln__explore_code(d->c, o, code, s->chains);
}

/* Adds the functions that are not kernels. The compiler did not inline them. */
static void add_functions(explore_document *d, cJSON *list, const shown *s)
{
  for (uint32_t i = 0; s->model != NULL && i < s->model->n_kernels; i++) {
    const sass_kernel *k = &s->model->kernels[i];
    cJSON *o;

    if (k->resources >= 0 || !is_wanted(d, s->unit, k->name))
      continue;
    o = kiln__cli_json_item(list);
    JSON_TEXT(o, "name", k->name);
    JSON_TEXT(o, "signature", kiln__cli_plain_name(d->c, k->name));
    kiln__explore_code(d->c, o, k, s->chains);
  }
}

/* ---- Images -------------------------------------------------------------- */

static void add_words(cJSON *list, const char *before, const char *const *words,
                      size_t n, cli *c)
{
  for (size_t i = 0; i < n; i++)
    cJSON_AddItemToArray(
        list, cJSON_CreateString(kiln__cli_text(c, "%s%s", before, words[i])));
}

/* Adds the options of a compile, as one would write them for `kiln compile`. */
static void add_options(cli *c, cJSON *to, const kiln_program_desc *d)
{
  cJSON *list = cJSON_AddArrayToObject(to, "options");
  const struct {
    bool given;
    const char *text;
  } flags[] = {{d->debug, "--debug"},
               {d->fast_math, "--fast-math"},
               {d->fast_compile, "--fast-compile"},
               {d->minimal, "--minimal"}};

  add_words(list, "-D ", d->defines, d->n_defines, c);
  add_words(list, "--trait ", d->traits, d->n_traits, c);
  add_words(list, "", d->options, d->n_options, c);
  for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
    if (flags[i].given)
      cJSON_AddItemToArray(list, cJSON_CreateString(flags[i].text));
  if (d->max_registers > 0)
    cJSON_AddItemToArray(list, cJSON_CreateString(kiln__cli_text(
                                   c, "--maxrregcount %d", d->max_registers)));
}

/* Says in the document why no live registers are shown, if so. */
static void explain_live(cli *c, cJSON *to, const shown *s)
{
  const int version = kiln_image_nvrtc(s->unit->image);

  for (uint32_t i = 0; i < s->model->n_kernels; i++)
    if (s->model->kernels[i].has_live)
      return;
  JSON_TEXT(
      to, "live_note",
      version < 13000
          ? kiln__cli_text(c,
                           "Live registers are not shown: nvdisasm counts "
                           "them only in code of its own major version, "
                           "and this is code of NVRTC %d.%d. Set "
                           "KILN_NVDISASM to the nvdisasm of a CUDA %d "
                           "toolkit.",
                           version / 1000, version % 1000 / 10, version / 1000)
          : "Live registers are not shown: when nvdisasm counts them in "
            "this code, it leaves out instructions.");
}

/* Finds the machine code, or says in the document why there is none. */
static void find_code(explore_document *d, cJSON *to, shown *s)
{
  const char *why = NULL, *next = NULL;

  s->model = kiln__sass_model(d->c, s->unit->image, &why, &next);
  if (s->model == NULL) {
    JSON_TEXT(to, "sass_note", why != NULL ? why : "there is no SASS");
    JSON_TEXT(to, "sass_next", next != NULL ? next : "");
  } else {
    explain_live(d->c, to, s);
  }
}

static void add_head(explore_document *d, cJSON *to, const cli_unit *unit,
                     int side)
{
  const kiln_target target = kiln_image_target(unit->image);
  size_t size = 0;
  char text[24];

  if (kiln_image_cubin(unit->image, &size) == NULL)
    size = 0;
  kiln_target_text(&target, text);
  JSON_TEXT(to, "label",
            kiln__cli_text(d->c, "%s%s", text, side > 0 ? " B" : ""));
  JSON_TEXT(to, "target", text);
  JSON_NUMBER(to, "side", side);
  JSON_TEXT(to, "program", unit->label);
  JSON_NUMBER(to, "nvrtc", kiln_image_nvrtc(unit->image));
  JSON_NUMBER(to, "compile_ms", kiln_image_compile_ms(unit->image));
  JSON_NUMBER(to, "size", size);
  JSON_TEXT(to, "log",
            unit->log != NULL ? unit->log : kiln_image_log(unit->image));
  add_options(d->c, to, unit->desc);
}

void kiln__explore_add_image(explore_document *d, const cli_unit *unit,
                             int side)
{
  cJSON *o = kiln__cli_json_item(d->images), *kernels;
  kiln_lines *lines = NULL;
  shown s = {.unit = unit, .side = side};

  add_head(d, o, unit, side);
  if (kiln_image_lines(&lines, unit->image) == KILN_OK)
    s.chains = map_chains(d, unit->image, lines);
  add_ptx(d, o, &s, lines);
  kiln_lines_free(lines);
  find_code(d, o, &s);
  kernels = cJSON_AddArrayToObject(o, "kernels");
  for (size_t i = 0; i < kiln_image_kernels(unit->image); i++)
    add_kernel(d, kernels, &s, i);
  add_functions(d, kernels, &s);
  d->list = kiln__cli_grow(d->c, d->list, d->n, &d->capacity, sizeof *d->list);
  d->list[d->n++] = s;
}

/* ---- Differences --------------------------------------------------------- */

/* Adds the rows of a comparison: the line as a chain of A or, if A does not have
 * the line, of B; instructions of both; slots of both; the line in B. */
static void add_rows(explore_document *d, cJSON *to, const shown *a,
                     const shown *b, const sass_comparison *rows)
{
  explore_numbers n;

  kiln__explore_numbers(d->c, &n);
  for (uint32_t i = 0; i < rows->n_rows; i++) {
    const sass_row *r = &rows->rows[i];
    const int left = r->chain[0] < 0 ? -1 : a->chains[r->chain[0]];
    const int right = r->chain[1] < 0 ? -1 : b->chains[r->chain[1]];

    fprintf(n.out, "%s[%d,%u,%u,%.6g,%.6g,%d]", i > 0 ? "," : "",
            left >= 0 ? left : right, r->cost[0].instructions,
            r->cost[1].instructions, r->cost[0].slots, r->cost[1].slots,
            right >= 0 ? right : left);
  }
  kiln__explore_numbers_end(&n, to, "rows");
}

/* Returns the kernel of `y` to compare with kernel k of `x`, or NULL: the one of
 * the same name, or the only one if both images have one kernel. */
static const sass_kernel *counterpart(explore_document *d, const shown *x,
                                      const shown *y, const sass_kernel *k)
{
  if (x->model->n_kernels == 1 && y->model->n_kernels == 1)
    return &y->model->kernels[0];
  return kiln__sass_counterpart(d->c, y->model, k);
}

static void compare(explore_document *d, cJSON *list, size_t a, size_t b)
{
  const shown *x = &d->list[a], *y = &d->list[b];

  for (uint32_t i = 0; i < x->model->n_kernels; i++) {
    const sass_kernel *k = &x->model->kernels[i];
    const sass_kernel *l = counterpart(d, x, y, k);
    cJSON *o;

    if (l == NULL || !is_wanted(d, x->unit, k->name))
      continue;
    o = kiln__cli_json_item(list);
    JSON_NUMBER(o, "a", a);
    JSON_NUMBER(o, "b", b);
    JSON_TEXT(o, "kernel", k->name);
    JSON_TEXT(o, "kernel_b", l->name);
    add_rows(d, o, x, y,
             kiln__sass_compare(d->c, (sass_side){x->model, k, x->unit->image},
                                (sass_side){y->model, l, y->unit->image}));
  }
}

static bool same_target(const shown *a, const shown *b)
{
  return a->unit->target.cc == b->unit->target.cc &&
         a->unit->target.suffix == b->unit->target.suffix;
}

void kiln__explore_add_differences(explore_document *d)
{
  cJSON *list = cJSON_AddArrayToObject(d->root, "differences");

  for (size_t a = 0; a < d->n; a++)
    for (size_t b = a + 1; b < d->n; b++) {
      const shown *x = &d->list[a], *y = &d->list[b];
      const bool neighbours = x->side == 0 && y->side == 0 && b == a + 1;
      const bool sides = x->side != y->side && same_target(x, y);

      if (x->model != NULL && y->model != NULL && (neighbours || sides))
        compare(d, list, a, b);
    }
}

/* ---- The run ------------------------------------------------------------- */

static const char *const columns[] = {"executions", "lanes", "divergence",
                                      "sectors", "conflicts"};

typedef struct heat {
  explore_document *d;
  explore_numbers rows;
  cJSON *findings;
  bool any;
} heat;

/* Prints a ratio, or -1 if there is nothing to divide by. */
static void put_ratio(FILE *out, uint64_t a, uint64_t b)
{
  if (b == 0)
    fputs(",-1", out);
  else
    fprintf(out, ",%.4g", (double)a / (double)b);
}

static void add_line(void *user, const kiln_cpu_counters *k)
{
  heat *h = user;
  const int file = kiln__explore_find_file(h->d->places, k->file);
  const uint64_t requests = k->global_load_requests + k->global_store_requests;
  const uint64_t sectors = k->global_load_sectors + k->global_store_sectors;
  const uint64_t shared = k->shared_load_requests + k->shared_store_requests;
  const uint64_t passes = k->shared_load_passes + k->shared_store_passes;

  if (file < 0 || k->line == 0)
    return;
  fprintf(h->rows.out, "%s[%d,%u,%llu", h->any ? "," : "", file, k->line,
          (unsigned long long)k->warp_insns);
  put_ratio(h->rows.out, k->thread_insns, k->warp_insns);
  fprintf(h->rows.out, ",%llu", (unsigned long long)k->divergent_branches);
  put_ratio(h->rows.out, sectors, requests);
  put_ratio(h->rows.out, passes - shared, shared);
  fputc(']', h->rows.out);
  h->any = true;
}

static void add_finding(void *user, const kiln_cpu_finding *f)
{
  const heat *h = user;
  const int file = kiln__explore_find_file(h->d->places, f->file);
  cJSON *row = cJSON_CreateArray();

  cJSON_AddItemToArray(row, cJSON_CreateNumber(file < 0 ? 0 : file));
  cJSON_AddItemToArray(row, cJSON_CreateNumber(f->line));
  cJSON_AddItemToArray(row, cJSON_CreateString(f->text));
  cJSON_AddItemToArray(h->findings, row);
}

void kiln__explore_add_heat(explore_document *d, cJSON *launches)
{
  cJSON *o = cJSON_AddObjectToObject(d->root, "heat"), *names;
  heat h = {.d = d};

  names = cJSON_CreateStringArray(columns, sizeof columns / sizeof columns[0]);
  cJSON_AddItemToObject(o, "columns", names);
  kiln__explore_numbers(d->c, &h.rows);
  (void)kiln_cpu_each_counters(NULL, add_line, &h);
  kiln__explore_numbers_end(&h.rows, o, "rows");
  h.any = false;
  kiln__explore_numbers(d->c, &h.rows);
  (void)kiln_cpu_each_outer_counters(add_line, &h);
  kiln__explore_numbers_end(&h.rows, o, "outer_rows");
  h.findings = cJSON_AddArrayToObject(o, "findings");
  (void)kiln_cpu_take_findings(add_finding, &h);
  kiln__cli_findings_taken();
  cJSON_AddItemToObject(o, "launches", launches);
}

/* ---- The result ---------------------------------------------------------- */

size_t kiln__explore_kernels(const explore_document *d)
{
  return d->n_kernels;
}

cJSON *kiln__explore_json(explore_document *d)
{
  kiln__explore_places_json(d->places, d->root);
  return d->root;
}
