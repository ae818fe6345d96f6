/* sass_dump.c -- prints the model that `kiln explore` makes of a text of
 * nvdisasm, for the tests in sass_test.py:
 *
 *   sass_dump CAPABILITY FILE
 *
 * Each line starts with a word that names its contents. A text that is not
 * valid ends the program with exit code 1 and the reason. */
#include "cli/explore/sass_model.h"

#include <stdlib.h>
#include <string.h>

static void print_instruction(const sass_instruction *i)
{
  printf("insn %016llx%016llx stall %d yield %d write %d read %d wait %d "
         "reuse %d live %d %d %d %d target %d label %s text %s\n",
         (unsigned long long)i->high, (unsigned long long)i->low,
         i->control.stall, i->control.yield, i->control.write_barrier,
         i->control.read_barrier, i->control.wait_mask, i->control.reuse,
         i->live[SASS_GENERAL], i->live[SASS_PREDICATE], i->live[SASS_UNIFORM],
         i->live[SASS_UNIFORM_PREDICATE], i->target,
         i->label == NULL ? "-" : i->label, i->text);
}

static void print_blocks(const sass_kernel *k)
{
  for (uint32_t b = 0; b < k->n_blocks; b++) {
    printf("block %u %u", k->blocks[b].first, k->blocks[b].n);
    for (uint32_t s = 0; s < k->blocks[b].n_successors; s++)
      printf(" %u", k->blocks[b].successors[s]);
    puts("");
  }
  for (uint32_t i = 0; i < k->n_loops; i++) {
    printf("loop %u depth %u parent %d blocks", k->loops[i].header,
           k->loops[i].depth, k->loops[i].parent);
    for (uint32_t b = 0; b < k->loops[i].n_blocks; b++)
      printf(" %u", k->loops[i].blocks[b]);
    puts("");
  }
}

static void print_kernel(cli *c, int cc, sass_kernel *k)
{
  sass_cost cost;

  kiln__sass_flow(c, k);
  cost = kiln__sass_cost(c, cc, k->code, NULL, k->used);
  printf("kernel %s instructions %u used %u live %d most %d %d %d %d\n",
         k->name, k->n, k->used, k->has_live, k->most_live[0], k->most_live[1],
         k->most_live[2], k->most_live[3]);
  printf("cost %g %s\n", cost.slots, cost.limit);
  for (uint32_t i = 0; i < cost.n_mix; i++)
    printf("mix %s %u\n", cost.mix[i].opcode, cost.mix[i].n);
  for (uint32_t i = 0; i < k->n; i++)
    print_instruction(&k->code[i]);
  print_blocks(k);
}

/* Reads a file and appends a NUL. */
static char *read_file(cli *c, const char *path)
{
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  long size;

  if (f != NULL && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0) {
    rewind(f);
    text = kiln__cli_alloc(c, (size_t)size + 1, 1);
    if (fread(text, 1, (size_t)size, f) != (size_t)size)
      text = NULL;
  }
  if (f != NULL)
    fclose(f);
  return text;
}

int main(int argc, char **argv)
{
  cli c = {0};
  sass_kernel *kernels = NULL;
  uint32_t n = 0;
  const char *text = argc == 3 ? read_file(&c, argv[2]) : NULL;
  const char *wrong = text == NULL
                          ? "give a capability and a file that can be read"
                          : kiln__sass_parse(&c, text, &kernels, &n);

  if (wrong != NULL)
    fprintf(stderr, "sass_dump: %s\n", wrong);
  for (uint32_t i = 0; wrong == NULL && i < n; i++)
    print_kernel(&c, atoi(argv[1]), &kernels[i]);
  kiln__cli_free_all(&c);
  return wrong != NULL;
}
