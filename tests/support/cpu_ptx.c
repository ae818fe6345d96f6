/* cpu_ptx.c -- implements cpu_ptx.h: loads PTX source and launches its kernels
 * on the CPU device. */
#include "cpu_ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep_output(void *user, const char *text, size_t size)
{
  cpu_ptx *const p = user;

  p->output = realloc(p->output, p->output_size + size + 1);
  memcpy(p->output + p->output_size, text, size);
  p->output_size += size;
  p->output[p->output_size] = '\0';
}

static uint64_t patch_value(const cpu_ptx *p,
                            const struct kiln__cpu_patch *patch)
{
  const uint64_t base = patch->function
                            ? KILN__WINDOW_CODE + patch->number * UINT64_C(16)
                            : p->globals[patch->number];

  return (base + (uint64_t)patch->addend) >> patch->shift;
}

static void place_globals(cpu_ptx *p)
{
  const kiln_allocator *const a = &p->memory_of.alloc;
  const uint32_t n = p->program->n_globals;

  p->globals = kiln__calloc(a, n + 1u, sizeof *p->globals);
  for (uint32_t i = 0; i < n; i++) {
    const kiln__cpu_global *const g = &p->program->globals[i];
    kiln__cpu_range range = {.kind = g->constant ? KILN__RANGE_CONST
                                                 : KILN__RANGE_GLOBAL,
                             .name = g->name};

    ck_kiln_ok(kiln__cpu_memory_add(p->memory, &range,
                                    g->size != 0 ? g->size : 1,
                                    g->align > 16 ? g->align : 16));
    p->globals[i] = range.first;
    if (g->init_size != 0)
      memcpy(cpu_ptx_at(p, range.first, g->init_size), g->init, g->init_size);
  }
  for (uint32_t i = 0; i < n; i++) {
    const kiln__cpu_global *const g = &p->program->globals[i];

    for (uint32_t k = 0; k < g->n_patches; k++) {
      const uint64_t value = patch_value(p, &g->patches[k]);

      memcpy(cpu_ptx_at(p, p->globals[i] + g->patches[k].offset,
                        g->patches[k].size),
             &value, g->patches[k].size);
    }
  }
}

static void defaults(cpu_ptx *p)
{
  kiln__cpu_launch_desc *const l = &p->launch;

  l->program = p->program;
  l->isa = kiln__cpu_isa_best(NULL);
  l->memory = p->memory;
  for (int i = 0; i < 3; i++)
    l->grid_dim[i] = l->block_dim[i] = l->cluster_dim[i] = 1;
  l->block_dim[0] = 32;
  l->number = 1;
  l->arch = 90;
  l->sm_count = 4;
  l->max_resident = 32;
  l->threads = 1;
  l->local_limit = 1024;
  l->heap_limit = 1 << 20;
  l->globals = p->globals;
  ck_kiln_ok(
      kiln__cpu_out_create(&l->out, &p->memory_of.alloc, 4096, keep_output, p));
}

void cpu_ptx_load(cpu_ptx *p, const char *text)
{
  static const char head[] = ".version 8.6\n.target sm_90\n.address_size 64\n";
  const bool whole = strstr(text, ".version") != NULL;
  const size_t size = strlen(text) + sizeof head;
  char *source = malloc(size);
  kiln__cpu_ptx_module *module;

  memset(p, 0, sizeof *p);
  test_allocator_init(&p->memory_of);
  snprintf(source, size, "%s%s", whole ? "" : head, text);
  ck_kiln_ok(kiln__cpu_ptx_parse(&module, &p->memory_of.alloc, source,
                                 strlen(source)));
  free(source);
  ck_kiln_ok(kiln__cpu_program_make(&p->program, &p->memory_of.alloc, module));
  ck_kiln_ok(kiln__cpu_memory_create(&p->memory, &p->memory_of.alloc));
  place_globals(p);
  defaults(p);
  kiln__cpu_program_bind(p->program, p->launch.isa->handlers);
}

void cpu_ptx_free(cpu_ptx *p)
{
  kiln__cpu_out_free(p->launch.out);
  kiln__free(&p->memory_of.alloc, p->globals);
  kiln__cpu_memory_free(p->memory);
  kiln__cpu_program_free(p->program);
  free(p->text);
  free(p->output);
  ck_assert_int_eq(p->memory_of.live, 0);
}

uint64_t cpu_ptx_buffer(cpu_ptx *p, const void *init, size_t size)
{
  kiln__cpu_range range = {.kind = KILN__RANGE_DEVICE};

  ck_kiln_ok(kiln__cpu_memory_add(p->memory, &range, size, 512));
  if (init != NULL)
    memcpy(cpu_ptx_at(p, range.first, size), init, size);
  else
    memset(cpu_ptx_at(p, range.first, size), 0, size);
  return range.first;
}

void *cpu_ptx_at(cpu_ptx *p, uint64_t address, size_t size)
{
  void *host = kiln__cpu_memory_host(p->memory, address, size);

  ck_assert_ptr_nonnull(host);
  return host;
}

uint64_t cpu_ptx_global(cpu_ptx *p, const char *name)
{
  for (uint32_t i = 0; i < p->program->n_globals; i++) {
    if (strcmp(p->program->globals[i].name, name) == 0)
      return p->globals[i];
  }
  ck_abort_msg("no variable %s", name);
  return 0;
}

kiln_status cpu_ptx_run(cpu_ptx *p, const char *kernel, const uint64_t *args)
{
  const kiln__cpu_code *const code =
      kiln__cpu_program_entry(p->program, kernel);
  uint8_t params[4096] = {0};
  kiln_status st;
  kiln__buf text;

  ck_assert_msg(code != NULL, "no kernel %s", kernel);
  for (uint32_t i = 0; i < code->n_params; i++) {
    const kiln__cpu_param *const q = &code->params[i];

    ck_assert_uint_le(q->size, 8);
    memcpy(params + q->offset, &args[i], q->size);
  }
  p->launch.code = code;
  p->launch.params = params;
  st = kiln__cpu_grid_run(&p->launch, &p->memory_of.alloc, &p->fault);
  kiln__cpu_out_flush(p->launch.out);
  free(p->text);
  p->text = NULL;
  if (p->fault.kind != KILN__FAULT_NONE) {
    kiln__buf_init(&text, &p->memory_of.alloc);
    kiln__cpu_fault_text(&p->launch, &p->fault, &text);
    p->text = strdup(text.data != NULL ? text.data : "");
    kiln__buf_free(&text);
  }
  return st;
}

void cpu_ptx_ok(cpu_ptx *p, const char *kernel, const uint64_t *args)
{
  const kiln_status st = cpu_ptx_run(p, kernel, args);

  ck_assert_msg(st == KILN_OK, "%s: %s", kiln_last_error()->message,
                p->text != NULL ? p->text : "");
}

void cpu_ptx_fails(cpu_ptx *p, const char *kernel, const uint64_t *args,
                   kiln__cpu_fault_kind kind, const char *const *words)
{
  ck_kiln_is(cpu_ptx_run(p, kernel, args), KILN_EDRIVER);
  ck_assert_msg(p->fault.kind == kind, "fault %d instead of %d: %s",
                (int)p->fault.kind, (int)kind, p->text);
  for (; words != NULL && *words != NULL; words++)
    ck_assert_msg(strstr(p->text, *words) != NULL, "no \"%s\" in:\n%s", *words,
                  p->text);
}
