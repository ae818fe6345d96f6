/* explore_files.c -- the files and inline chains of a document.
 *
 * Each image has chains of its own. The page compares images by source line, so
 * equal chains of different images must be the same chain of the document. A
 * hash table with open addressing finds them: a chain is equal if file, line
 * and the chain of the caller are. */
#include "cli/explore/explore_document.h"

#include "cli/explore/explore_original.h"

#include <kiln/inspect.h>

#include <stdlib.h>
#include <string.h>

typedef struct file {
  const char *name, *text; /* text is NULL if it is not known */
  size_t size;
  const char *shown; /* the text for the page */
} file;

typedef struct chain {
  int file, line, parent;
} chain;

struct explore_places {
  cli *c;
  file *files;
  size_t n_files, files_capacity;
  chain *chains;
  size_t n_chains, chains_capacity;
  /* Indices into `chains` plus 1; 0 is an empty slot. The number of slots is a
   * power of two and at least twice n_chains. */
  int *slots;
  size_t n_slots;
};

explore_places *kiln__explore_places(cli *c)
{
  explore_places *p = kiln__cli_alloc(c, 1, sizeof *p);

  p->c = c;
  p->n_slots = 1024;
  p->slots = kiln__cli_alloc(c, p->n_slots, sizeof *p->slots);
  return p;
}

/* ---- Files --------------------------------------------------------------- */

/* Returns the name of a file without its folders. */
static const char *base_of(const char *name)
{
  const char *slash = strrchr(name, '/');

  return slash == NULL ? name : slash + 1;
}

/* The compiler puts its current directory before relative names. An image from
 * the cache may come from another directory, so equal texts decide. */
static bool same_file(const file *a, const file *b)
{
  if (a->text == NULL || b->text == NULL)
    return strcmp(a->name, b->name) == 0;
  return a->size == b->size && memcmp(a->text, b->text, a->size) == 0 &&
         strcmp(base_of(a->name), base_of(b->name)) == 0;
}

int kiln__explore_file(explore_places *p, const kiln_image *image,
                       const char *name)
{
  file wanted = {.name = name};

  wanted.text = kiln_image_source(image, name, &wanted.size);
  for (size_t i = 0; i < p->n_files; i++)
    if (same_file(&p->files[i], &wanted))
      return (int)i;
  wanted.name = kiln__cli_text(p->c, "%s", name);
  if (wanted.text != NULL)
    wanted.shown = kiln__explore_original(name, wanted.text, wanted.size);
  if (wanted.text != NULL)
    wanted.text = kiln__cli_text(p->c, "%.*s", (int)wanted.size, wanted.text);
  if (wanted.shown == NULL)
    wanted.shown = wanted.text;
  p->files = kiln__cli_grow(p->c, p->files, p->n_files, &p->files_capacity,
                            sizeof *p->files);
  p->files[p->n_files] = wanted;
  return (int)p->n_files++;
}

int kiln__explore_find_file(const explore_places *p, const char *name)
{
  for (size_t i = 0; i < p->n_files; i++)
    if (strcmp(p->files[i].name, name) == 0)
      return (int)i;
  for (size_t i = 0; i < p->n_files; i++)
    if (strcmp(base_of(p->files[i].name), base_of(name)) == 0)
      return (int)i;
  return -1;
}

/* ---- Chains -------------------------------------------------------------- */

static size_t hash(const chain *k)
{
  uint64_t h = (uint64_t)(unsigned)k->line;

  h = h * 0x9e3779b97f4a7c15u + (unsigned)k->file;
  h = h * 0x9e3779b97f4a7c15u + (unsigned)k->parent;
  return (size_t)(h ^ h >> 29);
}

/* Returns the slot of a chain, or the empty slot where it belongs. */
static int *slot_of(const explore_places *p, const chain *wanted)
{
  size_t at = hash(wanted) & (p->n_slots - 1);

  while (p->slots[at] != 0 &&
         memcmp(&p->chains[p->slots[at] - 1], wanted, sizeof *wanted) != 0)
    at = (at + 1) & (p->n_slots - 1);
  return &p->slots[at];
}

static void enlarge(explore_places *p)
{
  p->n_slots *= 2;
  p->slots = kiln__cli_alloc(p->c, p->n_slots, sizeof *p->slots);
  for (size_t i = 0; i < p->n_chains; i++)
    *slot_of(p, &p->chains[i]) = (int)i + 1;
}

int kiln__explore_chain(explore_places *p, int file_index, int line, int parent)
{
  const chain wanted = {file_index, line, parent};
  int *slot = slot_of(p, &wanted);

  if (*slot != 0)
    return *slot - 1;
  if (2 * (p->n_chains + 1) > p->n_slots) {
    enlarge(p);
    slot = slot_of(p, &wanted);
  }
  p->chains = kiln__cli_grow(p->c, p->chains, p->n_chains, &p->chains_capacity,
                             sizeof *p->chains);
  p->chains[p->n_chains++] = wanted;
  *slot = (int)p->n_chains;
  return (int)p->n_chains - 1;
}

void kiln__explore_places_json(const explore_places *p, cJSON *root)
{
  cJSON *files = cJSON_AddArrayToObject(root, "files");
  explore_numbers n;

  for (size_t i = 0; i < p->n_files; i++) {
    cJSON *o = kiln__cli_json_item(files);

    JSON_TEXT(o, "name", p->files[i].name);
    if (p->files[i].text == NULL)
      (void)cJSON_AddNullToObject(o, "text");
    else
      JSON_TEXT(o, "text", p->files[i].shown);
  }
  kiln__explore_numbers(p->c, &n);
  for (size_t i = 0; i < p->n_chains; i++)
    fprintf(n.out, "%s[%d,%d,%d]", i > 0 ? "," : "", p->chains[i].file,
            p->chains[i].line, p->chains[i].parent);
  kiln__explore_numbers_end(&n, root, "chains");
}
