/* build_program.c -- makes a program from parsed PTX modules. It runs the
 * phases that code_build.h lists, in that order, and owns the result.
 *
 * kiln__cpu_program_link() links several PTX modules, as cuLink does. After a
 * mistake in one function, the other functions are still checked. */
#include "code_build.h"

#include <string.h>

/* ---- Launch bounds ------------------------------------------------------- */

static void set_bounds(kiln__cpu_code *code, const kiln__cpu_ptx_function *fn)
{
  const uint32_t *limit = fn->req_ntid[0] != 0 ? fn->req_ntid : fn->max_ntid;
  uint64_t threads = 1024;

  if (limit[0] != 0) {
    threads = (uint64_t)limit[0];
    for (int i = 1; i < 3 && threads <= 1024; i++)
      threads *= limit[i];
  }
  code->max_threads = threads < 1024 ? (uint32_t)threads : 1024;
  memcpy(code->req_ntid, fn->req_ntid, sizeof code->req_ntid);
  memcpy(code->cluster, fn->cluster, sizeof code->cluster);
  code->explicit_cluster = fn->explicit_cluster;
}

/* ---- setmaxnreg ---------------------------------------------------------- */

/* Returns the largest number of registers per thread with which the requested
 * number of blocks fit on an SM. Warps are allocated in groups of four. Returns
 * 0 if the function does not request a number of blocks and threads. */
static uint32_t registers_that_fit(const kiln__cpu_code *code,
                                   const kiln__cpu_ptx_function *fn)
{
  enum { FILE_SIZE = 65536, SLOTS = 128 };
  const uint32_t slots = (code->max_threads + SLOTS - 1) / SLOTS * SLOTS;

  if (fn->min_ctas == 0 || (fn->max_ntid[0] == 0 && fn->req_ntid[0] == 0))
    return 0;
  return FILE_SIZE / slots / fn->min_ctas / 8 * 8;
}

/* Computes the number of registers with which a kernel that executes setmaxnreg
 * starts, as ptxas does: the launch bounds or .maxnreg limit it, and no warp
 * starts with more registers than the largest setmaxnreg. */
static void set_registers_at_start(kiln__cpu_code *code,
                                   const kiln__cpu_ptx_function *fn)
{
  uint32_t most = 0, fit = registers_that_fit(code, fn);

  for (uint32_t i = 0; i < code->n_insns; i++) {
    if (code->insns[i].op == KILN__OP_setmaxnreg &&
        code->insns[i].imm > (int64_t)most)
      most = (uint32_t)code->insns[i].imm;
  }
  if (fn->max_nreg != 0 && (fit == 0 || fn->max_nreg < fit))
    fit = fn->max_nreg;
  fit = fit > 255 ? 255 : fit;
  code->most_registers = fit;
  code->registers_at_start = most < fit ? most : fit;
}

/* ---- Making a program ---------------------------------------------------- */

/* Joins the tables of source files of all linked PTX modules. Each module
 * numbers its own files. */
static kiln_status join_files(kiln__cpu_build *b)
{
  kiln__cpu_program *p = b->program;
  uint32_t n = 0;

  b->file_base = kiln__cpu_ptx_alloc(b->arena, p->n_parts * sizeof(uint32_t));
  if (b->file_base == NULL)
    return kiln__fail_memory("source files");
  for (uint32_t i = 0; i < p->n_parts; i++) {
    b->file_base[i] = n;
    n += p->parts[i]->n_files;
  }
  p->files = kiln__cpu_ptx_alloc(b->arena, (n + 1u) * sizeof *p->files);
  if (p->files == NULL)
    return kiln__fail_memory("source files");
  for (uint32_t i = 0; i < p->n_parts; i++) {
    if (p->parts[i]->n_files > 0)
      memcpy(p->files + b->file_base[i], p->parts[i]->files,
             p->parts[i]->n_files * sizeof *p->files);
  }
  p->n_files = n;
  return KILN_OK;
}

static kiln_status build(kiln__cpu_build *b)
{
  kiln_status st = KILN_OK;

  KILN_TRY(join_files(b));
  KILN_TRY(kiln__cpu_matcher_init(&b->matcher, b->arena));
  KILN_TRY(kiln__cpu_link_symbols(b));
  KILN_TRY(kiln__cpu_scan_uses(b));
  if (b->linked)
    KILN_TRY(kiln__cpu_drop_unreached(b));
  KILN_TRY(kiln__cpu_place_shared(b));
  for (uint32_t i = 0; i < b->program->n_functions; i++) {
    KILN_TRY(kiln__cpu_place_locals(b, i));
    set_bounds(&b->program->functions[i], b->functions[i]);
  }
  /* A call copies its arguments to the parameter layout of a declaration of the
   * callee. All declarations of a function have the same layout. */
  for (uint32_t p = 0; p < b->n_parts; p++) {
    for (uint32_t i = 0; i < b->parts[p]->n_functions; i++) {
      kiln__cpu_ptx_function *fn = b->parts[p]->functions[i];

      if (b->functions[fn->number] != fn)
        (void)kiln__cpu_place_params(fn);
    }
  }
  KILN_TRY(kiln__cpu_lower_all(b));
  for (uint32_t i = 0; i < b->program->n_functions; i++)
    set_registers_at_start(&b->program->functions[i], b->functions[i]);
  KILN_TRY(kiln__cpu_sum_reach(b));
done:
  return st;
}

static void describe(kiln__cpu_program *p)
{
  const kiln__cpu_ptx_module *first = p->parts[0];

  p->ptx_version = first->version;
  p->target = first->target;
  p->target_suffix = first->target_suffix;
  p->debug = first->debug;
  for (uint32_t i = 1; i < p->n_parts; i++) {
    if (p->parts[i]->target > p->target) {
      p->target = p->parts[i]->target;
      p->target_suffix = p->parts[i]->target_suffix;
    }
    if (p->parts[i]->version > p->ptx_version)
      p->ptx_version = p->parts[i]->version;
  }
}

static kiln_status end_messages(kiln__cpu_build *b, kiln_status st)
{
  for (uint32_t i = 0; i < b->n_parts; i++) {
    if (st == KILN_OK)
      st = kiln__cpu_ptx_messages_end(&b->messages[i], "PTX");
    else
      kiln__buf_free(&b->messages[i].text);
  }
  return st;
}

/* Creates the program and takes ownership of the PTX modules immediately, so
 * that they are freed on every path. */
static kiln__cpu_program *
own_parts(const kiln_allocator *a, kiln__cpu_ptx_module *const *parts, size_t n)
{
  kiln__cpu_program *p = kiln__calloc(a, 1, sizeof *p);
  kiln__cpu_ptx_module **copy = kiln__calloc(a, n + 1, sizeof *copy);

  if (p == NULL || copy == NULL) {
    for (size_t i = 0; i < n; i++)
      kiln__cpu_ptx_free(parts[i]);
    kiln__free(a, p);
    kiln__free(a, copy);
    return NULL;
  }
  memcpy(copy, parts, n * sizeof *copy);
  p->alloc = *a;
  p->parts = copy;
  p->n_parts = (uint32_t)n;
  return p;
}

static kiln_status make(kiln__cpu_program **out, const kiln_allocator *a,
                        kiln__cpu_ptx_module *const *parts, size_t n,
                        bool linked)
{
  kiln__cpu_program *p;
  kiln__cpu_build b = {.a = a, .n_parts = (uint32_t)n, .linked = linked};
  kiln_status st = KILN_OK;

  *out = NULL;
  if (n == 0 || n > UINT16_MAX)
    return kiln__fail(KILN_EINVAL, NULL, "%zu modules to link", n);
  p = own_parts(a, parts, n);
  if (p == NULL)
    return kiln__fail_memory("a program");
  b.program = p;
  b.parts = p->parts;
  b.arena = p->parts[0];
  b.messages = kiln__cpu_ptx_alloc(b.arena, n * sizeof *b.messages);
  if (b.messages == NULL)
    KILN_TRY(kiln__fail_memory("messages"));
  for (size_t i = 0; i < n; i++)
    kiln__cpu_ptx_messages_init(&b.messages[i], a, p->parts[i]);
  describe(p);
  st = end_messages(&b, build(&b));
done:
  if (st != KILN_OK)
    kiln__cpu_program_free(p);
  else
    *out = p;
  return st;
}

kiln_status kiln__cpu_program_link(kiln__cpu_program **out,
                                   const kiln_allocator *a,
                                   kiln__cpu_ptx_module *const *parts, size_t n)
{
  return make(out, a, parts, n, true);
}

kiln_status kiln__cpu_program_make(kiln__cpu_program **out,
                                   const kiln_allocator *a,
                                   kiln__cpu_ptx_module *ptx)
{
  kiln__cpu_ptx_module *const parts[] = {ptx};

  return make(out, a, parts, 1, false);
}

void kiln__cpu_program_free(kiln__cpu_program *program)
{
  kiln_allocator a;

  if (program == NULL)
    return;
  a = program->alloc;
  for (uint32_t i = 0; i < program->n_parts; i++)
    kiln__cpu_ptx_free(program->parts[i]);
  kiln__free(&a, program->parts);
  kiln__free(&a, program);
}

/* ---- Lookup and handlers ------------------------------------------------- */

const kiln__cpu_code *kiln__cpu_program_entry(const kiln__cpu_program *program,
                                              const char *name)
{
  for (uint32_t i = 0; i < program->n_functions; i++) {
    const kiln__cpu_code *code = &program->functions[i];

    if (code->entry && code->defined && strcmp(code->name, name) == 0)
      return code;
  }
  return NULL;
}

void kiln__cpu_program_bind(kiln__cpu_program *program,
                            kiln__cpu_handler *const table[KILN__N_OPS])
{
  for (uint32_t f = 0; f < program->n_functions; f++) {
    kiln__cpu_code *code = &program->functions[f];

    for (uint32_t i = 0; i < code->n_insns; i++) {
      const bool tracked = code->tracked != NULL &&
                           !kiln__cpu_is_wgmma(code->insns[i].op) &&
                           code->tracked_at[i] != code->tracked_at[i + 1];

      code->insns[i].fn =
          table[tracked ? KILN__OP_wgmma_touch : code->insns[i].op];
    }
  }
}
