/* findings.c -- records the findings of the checks, as data and as text.
 * Findings of the same kind at the same instruction are recorded once.
 *
 * The text has three parts: the access and the thread, the address relative to
 * the nearest allocation, and advice on what to look at next. */
#include "../model/demangle.h"
#include "watch_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FINDINGS = 1000, TEXT_SIZE = 2048 };

static const char *const space_text[] = {"generic",  "register",  "global",
                                         "constant", "shared",    "shared",
                                         "local",    "parameter", "texture"};

static bool contains(const kiln__cpu_code *code, const kiln__cpu_insn *in)
{
  return code->n_insns > 0 && in >= code->insns &&
         in < code->insns + code->n_insns;
}

/* Returns the function that contains an instruction. A function of another
 * module is found among the functions that were counted. */
static const kiln__cpu_code *code_of(const kiln__cpu_watch *watch,
                                     const kiln__cpu_insn *in)
{
  for (uint32_t i = 0; in != NULL && i < watch->program->n_functions; i++) {
    if (contains(&watch->program->functions[i], in))
      return &watch->program->functions[i];
  }
  for (const kiln__cpu_tallies *t = watch->tallies; in != NULL && t != NULL;
       t = t->next) {
    if (contains(t->code, in))
      return t->code;
  }
  return watch->code;
}

static const kiln__cpu_line *line_of(const kiln__cpu_code *code,
                                     const kiln__cpu_insn *in)
{
  static const kiln__cpu_line none;

  return in != NULL && in->index < code->n_insns && code->lines != NULL
             ? &code->lines[in->index]
             : &none;
}

static const char *file_of(const kiln__cpu_code *code, uint32_t file)
{
  return file < code->program->n_files && code->program->files[file] != NULL
             ? code->program->files[file]
             : "";
}

void kiln__cpu_watch_line(const kiln__cpu_watch *watch,
                          const kiln__cpu_insn *in, char *buf, size_t size)
{
  const kiln__cpu_code *code = code_of(watch, in);
  const kiln__cpu_line *line = line_of(code, in);

  if (line->line != 0)
    kiln__format(buf, size, "line %u of %s", line->line,
                 file_of(code, line->file));
  else
    kiln__format(buf, size, "line %u of the PTX", line->ptx);
}

void kiln__cpu_watch_thread(const kiln__cpu_grid *grid, uint32_t warp,
                            uint32_t lane, uint32_t thread[3])
{
  const uint32_t t = warp * KILN__WARP + lane;
  const uint32_t *dim = grid->block_dim;

  thread[0] = t % dim[0];
  thread[1] = t / dim[0] % dim[1];
  thread[2] = t / dim[0] / dim[1];
}

/* Describes where an address lies, for example "0x200000000404, 4 bytes past
 * the end of the 1024 bytes allocated at 0x200000000000". Also stores the
 * nearest allocation in the finding. */
static void describe_address(kiln_cpu_finding *f, const kiln__cpu_grid *grid,
                             char *buf, size_t size)
{
  const kiln__cpu_range *range;
  kiln__cpu_nearby near;
  bool within;

  if (strcmp(f->space, "shared") == 0) {
    kiln__format(buf, size, "offset %" PRIu64 " of %u bytes of shared memory",
                 f->address, grid->shared_size);
    return;
  }
  kiln__cpu_memory_near(grid->memory, f->address, &near);
  within = near.has_below && f->address < near.below.last;
  if (!within && !near.was_freed && !near.has_below) {
    kiln__format(buf, size, "0x%" PRIx64 ", where nothing is allocated",
                 f->address);
    return;
  }
  range = !within && near.was_freed ? &near.freed : &near.below;
  f->allocation = range->first;
  f->allocation_size = range->last - range->first;
  if (within && range->name != NULL)
    kiln__format(
        buf, size,
        "0x%" PRIx64 ", byte %" PRIu64 " of variable %s of %" PRIu64 " bytes",
        f->address, f->address - range->first, range->name, f->allocation_size);
  else if (within)
    kiln__format(buf, size,
                 "0x%" PRIx64 ", byte %" PRIu64 " of the %" PRIu64
                 " bytes allocated at 0x%" PRIx64,
                 f->address, f->address - range->first, f->allocation_size,
                 range->first);
  else if (near.was_freed)
    kiln__format(buf, size,
                 "0x%" PRIx64 ", in the %" PRIu64 " bytes at 0x%" PRIx64
                 " that were freed",
                 f->address, f->allocation_size, range->first);
  else
    kiln__format(buf, size,
                 "0x%" PRIx64 ", %" PRIu64 " bytes past the end of the %" PRIu64
                 " bytes allocated at 0x%" PRIx64,
                 f->address, f->address - range->last, f->allocation_size,
                 range->first);
}

static kiln__cpu_found *known(const kiln__cpu_watch *watch,
                              const kiln__cpu_insn *in, const char *kind)
{
  kiln__cpu_found *found = watch->found;

  while (found != NULL &&
         (found->in != in || strcmp(found->finding.kind, kind) != 0))
    found = found->next;
  return found;
}

/* A finding together with the strings that it points to, so that one allocation
 * holds both. */
typedef struct record {
  kiln__cpu_found found;
  char other[512], text[TEXT_SIZE];
} record;

static void write_text(const kiln__cpu_watch *watch, const kiln__cpu_grid *grid,
                       record *r, const char *what, const char *advice)
{
  kiln_cpu_finding *f = &r->found.finding;
  char kernel[KILN__READABLE], place[320], address[320] = "";

  kiln__cpu_watch_line(watch, r->found.in, place, sizeof place);
  if (f->bytes != 0)
    describe_address(f, grid, address, sizeof address);
  kiln__format(r->text, sizeof r->text,
               "%s in %s, %s\n"
               "  thread (%u,%u,%u) of block (%u,%u,%u) %s%s%s%s%s\n"
               "  look at: %s",
               f->kind, kiln__cpu_demangle(f->kernel, kernel, sizeof kernel),
               place, f->thread[0], f->thread[1], f->thread[2], f->block[0],
               f->block[1], f->block[2], what, f->other[0] != '\0' ? " " : "",
               f->other, address[0] != '\0' ? "\n  address: " : "", address,
               advice);
}

/* Adds a record of a finding at the instruction `in`. The caller fills in the
 * thread, the block and the text. Returns NULL if out of memory or at the
 * maximum number of findings. */
static record *add(kiln__cpu_watch *watch, const kiln__cpu_insn *in,
                   const char *function, const char *other,
                   kiln_cpu_finding finding)
{
  const kiln__cpu_code *code = code_of(watch, in);
  const kiln__cpu_line *line = line_of(code, in);
  record *r;

  if (watch->n_found >= MOST_FINDINGS)
    return NULL;
  r = kiln__calloc(&watch->alloc, 1, sizeof *r);
  if (r == NULL)
    return NULL;
  kiln__copy_text(r->other, sizeof r->other, other);
  finding.kernel = watch->code->name;
  finding.function = function;
  finding.file = file_of(code, line->file);
  finding.line = line->line;
  finding.outer_file = file_of(code, line->outer_file);
  finding.outer_line = line->outer_line;
  finding.ptx_line = line->ptx;
  finding.insn = kiln__cpu_op_name[in->op];
  finding.other = r->other;
  finding.text = r->text;
  finding.count = 1;
  r->found.finding = finding;
  r->found.in = in;
  *watch->last = &r->found;
  watch->last = &r->found.next;
  watch->n_found++;
  return r;
}

void kiln__cpu_find(kiln__cpu_watch *watch, unsigned check, const char *kind,
                    const kiln__cpu_where *where, const char *other,
                    const char *what, const char *advice)
{
  const kiln__cpu_grid *grid = where->w->grid;
  kiln__cpu_found *old = known(watch, where->in, kind);
  kiln_cpu_finding *f;
  record *r;

  if (old != NULL) {
    old->finding.count++;
    return;
  }
  r = add(watch, where->in, code_of(watch, where->in)->name, other,
          (kiln_cpu_finding){.check = check,
                             .kind = kind,
                             .space = space_text[where->space],
                             .address = where->address,
                             .bytes = where->bytes});
  if (r == NULL)
    return;
  f = &r->found.finding;
  memcpy(f->block, where->w->block->ctaid, sizeof f->block);
  kiln__cpu_watch_thread(grid, where->w->index,
                         (uint32_t)(where->lane < 0 ? 0 : where->lane),
                         f->thread);
  write_text(watch, grid, r, what, advice);
}

void kiln__cpu_watch_sync_misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                 int lane, const char *format, ...)
{
  kiln__cpu_watch *watch = w->grid->watch;
  const kiln__cpu_where where = {.w = w, .in = in, .lane = lane};
  char what[512];
  va_list args;

  if (watch == NULL || (watch->checks & KILN_CPU_CHECK_SYNC) == 0)
    return;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  pthread_mutex_lock(&watch->lock);
  kiln__cpu_find(
      watch, KILN_CPU_CHECK_SYNC,
      in->kind == KILN__KIND_BARRIER ? "divergent barrier" : "wrong mask",
      &where, "", what,
      in->kind == KILN__KIND_BARRIER
          ? "move the barrier to where all threads of the block pass"
          : "compute the mask where all lanes still agree "
            "(__ballot_sync), and let every lane that it names arrive");
  pthread_mutex_unlock(&watch->lock);
}

void kiln__cpu_watch_misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            int lane, const char *kind, const char *what,
                            const char *advice)
{
  kiln__cpu_watch *watch = w->grid->watch;
  const kiln__cpu_where where = {.w = w, .in = in, .lane = lane};

  if (watch == NULL || (watch->checks & KILN_CPU_CHECK_SYNC) == 0)
    return;
  pthread_mutex_lock(&watch->lock);
  kiln__cpu_find(watch, KILN_CPU_CHECK_SYNC, kind, &where, "", what, advice);
  pthread_mutex_unlock(&watch->lock);
}

void kiln__cpu_watch_exited_block(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  int lane)
{
  kiln__cpu_watch_misuse(
      w, in, lane, "exited block",
      "accesses shared memory of a block of the cluster that "
      "has exited",
      "barrier.cluster: all blocks must meet after the last "
      "access to their shared memory");
}

void kiln__cpu_watch_wgmma_misuse(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  const char *what, const char *advice)
{
  kiln__cpu_watch_misuse(w, in, w->mask != 0 ? __builtin_ctz(w->mask) : 0,
                         "unordered wgmma", what, advice);
}

/* ---- Faults -------------------------------------------------------------- */

typedef struct fault_words {
  kiln__cpu_fault_kind fault;
  const char *kind, *what, *advice;
} fault_words;

static const fault_words words[] = {
    {KILN__FAULT_ADDRESS, "out of bounds", "touches memory that is not its own",
     "the index and its limit: is the last block's tail guarded by `if (i < "
     "n)`?"},
    {KILN__FAULT_MISALIGNED, "misaligned",
     "uses an address that is no multiple of the access's size",
     "the cast that made the pointer's type wider"},
    {KILN__FAULT_SPACE, "out of bounds",
     "uses an address of a state space that the instruction cannot access",
     "where the pointer comes from: atomics access global and shared memory, "
     "and local variables only if one lane of the warp is active; mbarriers "
     "are "
     "in shared memory"},
    {KILN__FAULT_DEADLOCK, "deadlock", "waits for ever",
     "who should have released it: see the threads that wait"},
    {KILN__FAULT_STACK, "out of bounds", "needs more stack than there is",
     "the recursion's end, or CU_LIMIT_STACK_SIZE"},
};

/* Returns the words for an access to an invalid global address. The driver has one result
 * code for all of them, so only findings name the reason. */
static const fault_words *words_of_address(const kiln__cpu_grid *grid,
                                           uint64_t address)
{
  static const fault_words denied = {
      KILN__FAULT_ADDRESS, "no access",
      "touches mapped memory to which the device has no access",
      "cuMemSetAccess: it must follow each cuMemMap"};
  static const fault_words read_only = {
      KILN__FAULT_ADDRESS, "no access",
      "writes to mapped memory that the device may only read",
      "the flags of cuMemSetAccess"};
  static const fault_words unmapped = {
      KILN__FAULT_ADDRESS, "use after free",
      "touches memory that cuMemUnmap has removed",
      "the order of cuMemUnmap and this launch"};
  static const fault_words reserved = {
      KILN__FAULT_ADDRESS, "out of bounds",
      "touches a reserved address to which no memory is mapped",
      "the size that cuMemMap has mapped, and the index"};
  static const fault_words freed = {KILN__FAULT_ADDRESS, "use after free",
                                    "touches memory that was freed",
                                    "the order of the free and this launch"};
  kiln__cpu_nearby near;

  kiln__cpu_memory_near(grid->memory, address, &near);
  if (near.has_below && address < near.below.last)
    return kiln__cpu_range_denies(&near.below, grid)         ? &denied
           : kiln__cpu_range_is_read_only(&near.below, grid) ? &read_only
                                                             : NULL;
  if (near.was_freed)
    return near.freed.mapped ? &unmapped : &freed;
  return near.in_reserved ? &reserved : NULL;
}

static const fault_words *words_of(const kiln__cpu_grid *grid)
{
  const kiln__cpu_fault_info *fault = &grid->fault;
  const fault_words *found = NULL;

  if (fault->kind == KILN__FAULT_ADDRESS && fault->bytes != 0 &&
      strcmp(space_text[fault->space], "shared") != 0)
    found = words_of_address(grid, fault->address);
  for (size_t i = 0; found == NULL && i < sizeof words / sizeof words[0]; i++) {
    if (words[i].fault == fault->kind)
      found = &words[i];
  }
  return found;
}

void kiln__cpu_watch_fault(kiln__cpu_watch *watch, const kiln__cpu_grid *grid)
{
  const kiln__cpu_fault_info *fault = &grid->fault;
  const fault_words *word = words_of(grid);
  const kiln__cpu_insn *in =
      fault->code != NULL && fault->insn < fault->code->n_insns
          ? &fault->code->insns[fault->insn]
          : NULL;
  const unsigned check = fault->kind == KILN__FAULT_DEADLOCK
                             ? KILN_CPU_CHECK_SYNC
                             : KILN_CPU_CHECK_MEMORY;
  record *r;

  if (word == NULL || in == NULL || (watch->checks & check) == 0)
    return;
  pthread_mutex_lock(&watch->lock);
  r = add(watch, in, fault->code->name, fault->text,
          (kiln_cpu_finding){.check = check,
                             .kind = word->kind,
                             .space = space_text[fault->space],
                             .address = fault->address,
                             .bytes = fault->bytes});
  if (r != NULL) {
    kiln_cpu_finding *f = &r->found.finding;

    memcpy(f->block, fault->block, sizeof f->block);
    memcpy(f->thread, fault->thread, sizeof f->thread);
    write_text(watch, grid, r, word->what, word->advice);
  }
  pthread_mutex_unlock(&watch->lock);
}

void kiln__cpu_watch_findings(kiln__cpu_watch *watch, kiln_cpu_finding_fn fn,
                              void *user)
{
  for (const kiln__cpu_found *f = watch->found; f != NULL; f = f->next)
    fn(user, &f->finding);
}
