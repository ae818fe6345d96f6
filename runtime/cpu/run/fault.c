/* fault.c -- records the first fault of a grid and describes it.
 *
 * Handlers and schedulers call kiln__cpu_fault(). The description is formatted
 * after the launch, when the user requests it. */
#include "../model/demangle.h"
#include "grid_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void thread_index(const kiln__cpu_warp *w, int lane, uint32_t out[3])
{
  const uint32_t *const dim = w->grid->block_dim;
  const uint32_t t = w->index * KILN__WARP + (uint32_t)lane;

  out[0] = t % dim[0];
  out[1] = t / dim[0] % dim[1];
  out[2] = t / dim[0] / dim[1];
}

static bool writes(const kiln__cpu_insn *in)
{
  return in->klass == KILN__CLASS_GLOBAL_STORE ||
         in->klass == KILN__CLASS_GENERIC_STORE ||
         in->klass == KILN__CLASS_SHARED_STORE ||
         in->klass == KILN__CLASS_LOCAL_STORE ||
         in->klass == KILN__CLASS_ATOMIC;
}

void kiln__cpu_fault(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                     kiln__cpu_fault_kind kind, int lane, uint64_t address,
                     uint32_t bytes)
{
  kiln__cpu_grid *const g = w->grid;
  const uint32_t lanes = w->mask != 0 ? w->mask : 1;

  w->fault = true;
  if (lane < 0)
    lane = __builtin_ctz(lanes);
  pthread_mutex_lock(&g->lock);
  if (g->fault.kind == KILN__FAULT_NONE) {
    g->fault.kind = kind;
    g->fault.code = kiln__cpu_schedule_of(w)->frame->code;
    g->fault.insn = in->index;
    thread_index(w, lane, g->fault.thread);
    memcpy(g->fault.block, w->block->ctaid, sizeof g->fault.block);
    g->fault.address = address;
    g->fault.bytes = bytes;
    g->fault.space = (kiln__cpu_space)in->space;
    g->fault.write = writes(in);
  }
  pthread_mutex_unlock(&g->lock);
  atomic_store(&g->stopped, true);
}

void kiln__cpu_fault_grid(kiln__cpu_job *job, kiln__cpu_fault_kind kind,
                          const char *text)
{
  kiln__cpu_grid *const g = &job->grid;

  pthread_mutex_lock(&g->lock);
  if (g->fault.kind == KILN__FAULT_NONE) {
    g->fault.kind = kind;
    kiln__copy_text(g->fault.text, sizeof g->fault.text, text);
  }
  pthread_mutex_unlock(&g->lock);
  atomic_store(&g->stopped, true);
}

/* ---- List of the waiting lanes in a deadlock ----------------------------- */

typedef struct listing {
  kiln__cpu_job *job;
  char *text;
  size_t size, used;
  unsigned left_out;
  bool first;
} listing;

static void add(listing *l, const char *format, ...) KILN_PRINTF(2, 3);

static void add(listing *l, const char *format, ...)
{
  va_list args;
  int n;

  va_start(args, format);
  n = vsnprintf(l->text + l->used, l->size - l->used, format, args);
  va_end(args);
  if (n > 0)
    l->used += (size_t)n;
  if (l->used >= l->size)
    l->used = l->size - 1;
}

/* Writes the source position, such as "file.cu:12 (PTX line 40)". Without a
 * .loc directive, the position is "PTX line 40". */
static void place_of(const kiln__cpu_code *code, uint32_t insn, char *buf,
                     size_t size)
{
  const kiln__cpu_program *const program = code->program;
  const kiln__cpu_line *line;
  const char *file = NULL;

  if (code->lines == NULL || insn >= code->n_insns) {
    kiln__format(buf, size, "instruction %u", insn);
    return;
  }
  line = &code->lines[insn];
  if (line->file != 0 && line->file < program->n_files)
    file = program->files[line->file];
  if (file != NULL)
    kiln__format(buf, size, "%s:%u (PTX line %u)", file, line->line, line->ptx);
  else
    kiln__format(buf, size, "PTX line %u", line->ptx);
}

static void list_lanes(listing *l, const kiln__cpu_warp *w,
                       const kiln__cpu_frame *f, uint32_t pc, uint32_t mask,
                       kiln__cpu_wait wait, uint32_t wants, const char *below)
{
  const kiln__cpu_insn *const in = &f->code->insns[pc];
  const uint32_t *const b = w->block->ctaid;
  kiln__cpu_fault_info *const fault = &l->job->grid.fault;
  uint32_t thread[3];
  char place[200];

  if (l->first) {
    l->first = false;
    fault->code = f->code;
    fault->insn = pc;
    memcpy(fault->block, b, sizeof fault->block);
    thread_index(w, __builtin_ctz(mask), fault->thread);
  }
  if (l->size - l->used < 260) {
    l->left_out++;
    return;
  }
  place_of(f->code, pc, place, sizeof place);
  thread_index(w, __builtin_ctz(mask), thread);
  add(l,
      "\n  block (%u,%u,%u) warp %u lanes 0x%08x (thread (%u,%u,%u)%s) at "
      "%s: ",
      b[0], b[1], b[2], w->index, mask, thread[0], thread[1], thread[2],
      (mask & (mask - 1)) != 0 ? " and others" : "", place);
  switch (wait) {
  case KILN__AT_BARRIER:
    add(l, "waits at barrier %u", wants);
    break;
  case KILN__AT_CLUSTER:
    add(l, "waits at the cluster's barrier");
    break;
  case KILN__AT_SYNC:
    add(l, "waits in %s for lanes 0x%08x", kiln__cpu_op_name[in->op],
        wants & w->live & ~mask);
    break;
  default:
    if (in->op == KILN__OP_setmaxnreg)
      add(l, "waits until %u registers per thread are free", (unsigned)in->imm);
    else
      add(l, "%s", below);
    break;
  }
}

static void list_warp(listing *l, const kiln__cpu_warp *w)
{
  const kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  if (!w->grid->lock_step) {
    for (uint32_t i = 0; i < s->n_groups; i++) {
      const kiln__cpu_group *const g = &s->group[i];

      list_lanes(l, w, g->frame, g->pc, g->mask, g->wait, g->wants, "spins");
    }
    return;
  }
  for (uint32_t i = s->n_stacked, seen = 0; i-- != 0;) {
    const kiln__cpu_entry *const e = &s->stacked[i];
    const uint32_t mask = e->mask & w->live & ~seen;

    if (mask != 0)
      list_lanes(l, w, e->frame, e->pc, mask, seen == 0 ? s->wait : KILN__READY,
                 s->wants,
                 seen == 0 ? "spins"
                           : "waits for the lanes above: lock-step runs one "
                             "side of a branch after the other");
    seen |= mask;
  }
}

/* Lists the live warps of a gang that wait for registers, or the others. */
static void list_gang(listing *l, const kiln__cpu_gang *gang,
                      bool for_registers)
{
  for (uint32_t i = 0; i < gang->n_warps; i++) {
    const kiln__cpu_warp *const w = &gang->warps[i];

    if (w->live != 0 &&
        kiln__cpu_schedule_of(w)->needs_registers == for_registers)
      list_warp(l, w);
  }
}

void kiln__cpu_fault_deadlock(kiln__cpu_job *job, const kiln__cpu_gang *gangs,
                              bool one, bool spinning)
{
  kiln__cpu_fault_info *const fault = &job->grid.fault;
  listing l = {job, fault->text, sizeof fault->text - 40, 0, 0, true};

  pthread_mutex_lock(&job->grid.lock);
  if (fault->kind == KILN__FAULT_NONE) {
    fault->kind = KILN__FAULT_DEADLOCK;
    add(&l, spinning ? "all threads poll in loops, and no thread changes "
                       "memory:"
                     : "all threads wait for each other:");
    for (; gangs != NULL; gangs = one ? NULL : gangs->next) {
      list_gang(&l, gangs, true);
      list_gang(&l, gangs, false);
    }
    if (l.left_out != 0) {
      l.size = sizeof fault->text;
      add(&l, "\n  and %u more", l.left_out);
    }
  }
  pthread_mutex_unlock(&job->grid.lock);
  atomic_store(&job->grid.stopped, true);
}

/* ---- Description of a fault ---------------------------------------------- */

static const struct {
  const char *what, *look;
} words[] = {
    [KILN__FAULT_NONE] = {"no fault", ""},
    [KILN__FAULT_ADDRESS] = {"access to memory that does not exist",
                             "the index and the bounds check of this line"},
    [KILN__FAULT_MISALIGNED] = {"misaligned access",
                                "the type of the pointer: an address must be a "
                                "multiple of the size of the access"},
    [KILN__FAULT_SPACE] = {"address of the wrong state space",
                           "where this pointer comes from: shared, local and "
                           "global addresses do not mix"},
    [KILN__FAULT_PC] = {"call of an address at which there is no function",
                        "the function pointer or the name that is called"},
    [KILN__FAULT_INSTRUCTION] = {"illegal operand of an instruction",
                                 "barrier numbers (0 to 15), thread counts "
                                 "(multiples of 32), jump table indices"},
    [KILN__FAULT_MAP] = {"tensor copy with an invalid map or coordinate",
                         "cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col, "
                         "the address and rank that the kernel passes, "
                         "coordinate 0 (a multiple of 16 bytes), the "
                         "coordinates of a store (not negative), and the "
                         "bounding box of im2col"},
    [KILN__FAULT_TRAP] = {"trap", "the condition before the __trap()"},
    [KILN__FAULT_ASSERT] = {"assertion failed", "the asserted condition"},
    [KILN__FAULT_STACK] = {"stack overflow",
                           "the depth of the recursion; CU_LIMIT_STACK_SIZE "
                           "raises the limit"},
    [KILN__FAULT_DEADLOCK] = {"deadlock",
                              "barriers that not all threads reach, member "
                              "masks that name lanes which went elsewhere, "
                              "waits for threads that cannot run, setmaxnreg "
                              "of more registers than a block has"},
    [KILN__FAULT_BUDGET] = {"stopped",
                            "loops whose exit condition is never met"},
    [KILN__FAULT_MEMORY] = {"out of host memory", "the number of blocks and "
                                                  "the size of the stack"}};

static void add_range(kiln__buf *out, const char *how, uint64_t distance,
                      const kiln__cpu_range *r)
{
  kiln__buf_format(out, "\n  %" PRIu64 " bytes %s ", distance, how);
  if (r->name != NULL)
    kiln__buf_format(out, "variable `%s`", r->name);
  else
    kiln__buf_format(out, "allocation %" PRIu64, r->number);
  kiln__buf_format(out, ": %" PRIu64 " bytes at 0x%" PRIx64, r->last - r->first,
                   r->first);
}

/* Adds why mapped or reserved addresses cannot be accessed. */
static void add_mapping(kiln__buf *out, const kiln__cpu_nearby *near,
                        uint64_t address)
{
  if (near->has_below && address < near->below.last) {
    if (near->below.denied != 0)
      kiln__buf_text(out, "\n  cuMemMap mapped this memory, but the device has "
                          "no access; call cuMemSetAccess");
    else if (near->below.read_only != 0)
      kiln__buf_text(out, "\n  cuMemSetAccess allows the device only to read "
                          "this memory");
  } else if (near->in_reserved) {
    kiln__buf_text(out, near->was_freed && near->freed.mapped
                            ? "\n  cuMemUnmap removed the memory that was "
                              "mapped to this address"
                            : "\n  the address is reserved, but no memory is "
                              "mapped to it; call cuMemMap");
  }
}

static void add_nearby(kiln__buf *out, kiln__cpu_memory *memory,
                       uint64_t address)
{
  kiln__cpu_nearby near;
  uint64_t below, above;

  memset(&near, 0, sizeof near);
  kiln__cpu_memory_near(memory, address, &near);
  if (near.was_freed) {
    add_range(out, "into a freed range,", address - near.freed.first,
              &near.freed);
    add_mapping(out, &near, address);
    return;
  }
  below = near.has_below ? address - near.below.last : UINT64_MAX;
  above = near.has_above ? near.above.first - address : UINT64_MAX;
  if (near.has_below && address < near.below.last)
    add_range(out, "into", address - near.below.first, &near.below);
  else if (near.has_below && below <= above && below < (1u << 30))
    add_range(out, "past the end of", below, &near.below);
  else if (near.has_above && above < (1u << 30))
    add_range(out, "before the start of", above, &near.above);
  else
    kiln__buf_text(out, address < 4096 ? "\n  a null pointer"
                                       : "\n  no allocation is near");
  add_mapping(out, &near, address);
}

static const char *space_text(kiln__cpu_space space)
{
  switch (space) {
  case KILN__SPACE_GLOBAL:
    return "global ";
  case KILN__SPACE_CONST:
    return "constant ";
  case KILN__SPACE_SHARED:
  case KILN__SPACE_SHARED_CLUSTER:
    return "shared ";
  case KILN__SPACE_LOCAL:
    return "local ";
  case KILN__SPACE_PARAM:
    return "parameter ";
  default:
    return "";
  }
}

static void add_access(const kiln__cpu_launch_desc *launch,
                       const kiln__cpu_fault_info *fault, kiln__buf *out)
{
  const uint64_t a = fault->address;
  const bool window =
      a >= KILN__WINDOW_SHARED && a < KILN__WINDOW_PARAM + KILN__WINDOW_BYTES;

  kiln__buf_format(out, "\n  %s of %u bytes at %saddress 0x%" PRIx64,
                   fault->write ? "write" : "read", fault->bytes,
                   space_text(fault->space), a);
  if (fault->space == KILN__SPACE_SHARED ||
      fault->space == KILN__SPACE_SHARED_CLUSTER ||
      (window && a < KILN__WINDOW_LOCAL))
    kiln__buf_format(out,
                     "\n  the block has %u bytes of shared memory, %u of "
                     "them dynamic",
                     launch->code->static_shared + launch->dynamic_shared,
                     launch->dynamic_shared);
  else if (!window && (fault->space == KILN__SPACE_GLOBAL ||
                       fault->space == KILN__SPACE_CONST ||
                       fault->space == KILN__SPACE_GENERIC))
    add_nearby(out, launch->memory, a);
}

static void add_place(const kiln__cpu_launch_desc *launch,
                      const kiln__cpu_fault_info *fault, kiln__buf *out)
{
  char place[400], insn[200], function[KILN__READABLE];

  if (fault->code == NULL || fault->insn >= fault->code->n_insns)
    return;
  place_of(fault->code, fault->insn, place, sizeof place);
  kiln__cpu_insn_text(fault->code->program, fault->code, fault->insn, insn,
                      sizeof insn);
  kiln__buf_format(out, "\n  at %s", place);
  if (fault->code != launch->code)
    kiln__buf_format(
        out, " in function `%s`",
        kiln__cpu_demangle(fault->code->name, function, sizeof function));
  kiln__buf_format(out, ": %s\n  block (%u,%u,%u), thread (%u,%u,%u)", insn,
                   fault->block[0], fault->block[1], fault->block[2],
                   fault->thread[0], fault->thread[1], fault->thread[2]);
}

void kiln__cpu_fault_text(const kiln__cpu_launch_desc *launch,
                          const kiln__cpu_fault_info *fault, kiln__buf *out)
{
  const size_t kind = (size_t)fault->kind;
  const bool known = kind < sizeof words / sizeof *words;
  char kernel[KILN__READABLE];

  kiln__buf_format(
      out, "kernel `%s`: %s",
      kiln__cpu_demangle(launch->code->name, kernel, sizeof kernel),
      known ? words[kind].what : "fault");
  add_place(launch, fault, out);
  if (fault->kind == KILN__FAULT_ADDRESS ||
      fault->kind == KILN__FAULT_MISALIGNED || fault->kind == KILN__FAULT_SPACE)
    add_access(launch, fault, out);
  else if (fault->kind == KILN__FAULT_PC)
    kiln__buf_format(out, "\n  address 0x%" PRIx64, fault->address);
  else if (fault->kind == KILN__FAULT_STACK)
    kiln__buf_format(out, "\n  needs %" PRIu64 " bytes, a thread has %u",
                     fault->address, launch->local_limit);
  if (fault->text[0] != '\0')
    kiln__buf_format(out, "\n  %s", fault->text);
  if (known)
    kiln__buf_format(out, "\n  look at %s", words[kind].look);
}
