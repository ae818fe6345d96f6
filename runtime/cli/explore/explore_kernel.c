/* explore_kernel.c -- writes the machine code of one kernel into the document:
 * instructions, control words, live registers, blocks, loops and spills. */
#include "cli/explore/explore_document.h"

#include <stdlib.h>

/* ---- Arrays of numbers --------------------------------------------------- */

void kiln__explore_numbers(cli *c, explore_numbers *n)
{
  *n = (explore_numbers){0};
  n->out = open_memstream(&n->text, &n->size);
  if (n->out == NULL) {
    kiln__cli_message(c, NULL, "there is no memory to write the document");
    exit(CLI_FAILED);
  }
  fputc('[', n->out);
}

void kiln__explore_numbers_end(explore_numbers *n, cJSON *object,
                               const char *key)
{
  fputc(']', n->out);
  fclose(n->out);
  (void)cJSON_AddRawToObject(object, key, n->text);
  free(n->text);
}

static const char *comma(uint32_t i)
{
  return i > 0 ? "," : "";
}

static int mapped(const int *chains, int32_t chain)
{
  return chain < 0 ? -1 : chains[chain];
}

/* ---- Instructions -------------------------------------------------------- */

static void add_texts(cJSON *to, const sass_kernel *k)
{
  cJSON *list = cJSON_AddArrayToObject(to, "text");

  for (uint32_t i = 0; i < k->n; i++)
    cJSON_AddItemToArray(list, cJSON_CreateStringReference(k->code[i].text));
}

static void add_lines(cli *c, cJSON *to, const sass_kernel *k,
                      const int *chains)
{
  explore_numbers n;

  kiln__explore_numbers(c, &n);
  for (uint32_t i = 0; i < k->n; i++)
    fprintf(n.out, "%s%d", comma(i), mapped(chains, k->code[i].chain));
  kiln__explore_numbers_end(&n, to, "chain");
  kiln__explore_numbers(c, &n);
  for (uint32_t i = 0; i < k->n; i++)
    fprintf(n.out, "%s%d", comma(i), (int)k->code[i].ptx);
  kiln__explore_numbers_end(&n, to, "ptx");
}

static void add_live(cli *c, cJSON *to, const sass_kernel *k)
{
  explore_numbers n;

  if (!k->has_live)
    return;
  kiln__explore_numbers(c, &n);
  for (uint32_t i = 0; i < k->n; i++) {
    const uint16_t *live = k->code[i].live;

    fprintf(n.out, "%s[%u,%u,%u,%u]", comma(i), live[SASS_GENERAL],
            live[SASS_PREDICATE], live[SASS_UNIFORM],
            live[SASS_UNIFORM_PREDICATE]);
  }
  kiln__explore_numbers_end(&n, to, "live");
}

static void add_control(cli *c, cJSON *to, const sass_kernel *k)
{
  explore_numbers n;

  kiln__explore_numbers(c, &n);
  for (uint32_t i = 0; i < k->n; i++) {
    const sass_control *w = &k->code[i].control;

    fprintf(n.out, "%s[%u,%d,%d,%d,%u,%u]", comma(i), w->stall, w->yield,
            w->write_barrier, w->read_barrier, w->wait_mask, w->reuse);
  }
  kiln__explore_numbers_end(&n, to, "ctl");
}

static void add_branches(cli *c, cJSON *to, const sass_kernel *k)
{
  cJSON *labels = cJSON_AddObjectToObject(to, "labels");
  cJSON *targets = cJSON_AddObjectToObject(to, "targets");

  for (uint32_t i = 0; i < k->n; i++) {
    const char *key = NULL;

    if (k->code[i].label != NULL || k->code[i].target >= 0)
      key = kiln__cli_text(c, "%u", i);
    if (k->code[i].label != NULL)
      JSON_TEXT(labels, key, k->code[i].label);
    if (k->code[i].target >= 0)
      JSON_NUMBER(targets, key, k->code[i].target);
  }
}

/* ---- Blocks, loops, spills ----------------------------------------------- */

static void add_blocks(cli *c, cJSON *to, const sass_kernel *k)
{
  explore_numbers n;

  kiln__explore_numbers(c, &n);
  for (uint32_t b = 0; b < k->n_blocks; b++) {
    const sass_block *block = &k->blocks[b];

    fprintf(n.out, "%s[%u,%u,[", comma(b), block->first, block->n);
    for (uint32_t s = 0; s < block->n_successors; s++)
      fprintf(n.out, "%s%u", comma(s), block->successors[s]);
    fputs("]]", n.out);
  }
  kiln__explore_numbers_end(&n, to, "blocks");
}

static void add_loops(cJSON *to, const sass_kernel *k, const int *chains)
{
  cJSON *list = cJSON_AddArrayToObject(to, "loops");

  for (uint32_t i = 0; i < k->n_loops; i++) {
    const sass_loop *loop = &k->loops[i];
    cJSON *o = kiln__cli_json_item(list), *mix;

    JSON_NUMBER(o, "first", loop->first);
    JSON_NUMBER(o, "last", loop->last);
    JSON_NUMBER(o, "depth", loop->depth);
    JSON_NUMBER(o, "instructions", loop->cost.instructions);
    JSON_NUMBER(o, "slots", loop->cost.slots);
    JSON_TEXT(o, "limit", loop->cost.limit);
    JSON_NUMBER(o, "line", mapped(chains, loop->chain));
    mix = cJSON_AddObjectToObject(o, "mix");
    for (uint32_t m = 0; m < loop->cost.n_mix; m++)
      JSON_NUMBER(mix, loop->cost.mix[m].opcode, loop->cost.mix[m].n);
  }
}

static void add_spills(cli *c, cJSON *to, const sass_kernel *k,
                       const int *chains)
{
  explore_numbers n;

  kiln__explore_numbers(c, &n);
  for (uint32_t i = 0; i < k->n_spills; i++)
    fprintf(n.out, "%s[%d,%u,%u]", comma(i), mapped(chains, k->spills[i].chain),
            k->spills[i].store_bytes, k->spills[i].load_bytes);
  kiln__explore_numbers_end(&n, to, "spills");
}

void kiln__explore_code(cli *c, cJSON *to, const sass_kernel *kernel,
                        const int *chains)
{
  cJSON *sass = cJSON_AddObjectToObject(to, "sass");

  JSON_NUMBER(sass, "addr0", 0);
  JSON_NUMBER(sass, "step", kernel->step);
  add_texts(sass, kernel);
  add_lines(c, sass, kernel, chains);
  add_live(c, sass, kernel);
  add_control(c, sass, kernel);
  add_branches(c, sass, kernel);
  add_blocks(c, to, kernel);
  add_loops(to, kernel, chains);
  add_spills(c, to, kernel, chains);
}
