/* function_call.c -- implements calls of device functions: allocates a register
 * frame and a section of the stack, and copies parameters.
 *
 * Every lane has a stack of local_stride bytes. A call uses the section above
 * the caller's section for local variables, parameters and results. Parameters
 * are copied from one section to the other, because each function has its own
 * PTX .param variables. The file also contains two rarely used functions of the
 * schedulers. */
#include "grid_job.h"

#include <string.h>

enum { STACK_ALIGN = 16 };

static void copy_lanes(const kiln__cpu_warp *w, uint32_t mask, uint32_t to,
                       uint32_t from, uint32_t size)
{
  uint8_t *const stack = kiln__cpu_schedule_of(w)->stack;

  for (; mask != 0; mask &= mask - 1) {
    uint8_t *const mine = stack + (size_t)__builtin_ctz(mask) * w->local_stride;

    if (size == 4)
      memcpy(mine + to, mine + from, 4);
    else if (size == 8)
      memcpy(mine + to, mine + from, 8);
    else
      memmove(mine + to, mine + from, size);
  }
}

/* Returns the function of a program at an address, or NULL. */
static const kiln__cpu_code *function_at(const kiln__cpu_program *p,
                                         uint64_t address)
{
  const uint64_t at = address - KILN__WINDOW_CODE - p->code_offset;

  return at % 16 == 0 && at / 16 < p->n_functions ? &p->functions[at / 16]
                                                  : NULL;
}

const kiln__cpu_code *kiln__cpu_call_target(kiln__cpu_warp *w, uint64_t address)
{
  const kiln__cpu_services *const s = kiln__cpu_job_of(w)->launch->services;
  const kiln__cpu_code *code = function_at(w->grid->program, address);
  const kiln__cpu_program *p;

  if (code != NULL || s == NULL || !kiln__cpu_is_code(address))
    return code;
  p = s->program_at(s->user, address);
  return p != NULL ? function_at(p, address) : NULL;
}

static bool fits(const kiln__cpu_warp *w, uint32_t at, uint32_t offset,
                 uint32_t size)
{
  return (uint64_t)at + offset + size <= w->local_size;
}

static kiln__cpu_frame *enter(kiln__cpu_warp *w, kiln__cpu_frame *from,
                              const kiln__cpu_insn *in,
                              const kiln__cpu_code *code, uint32_t mask)
{
  const kiln__cpu_call *const call = &from->code->calls[in->imm];
  const uint32_t at =
      (from->local_top + STACK_ALIGN - 1) & ~(uint32_t)(STACK_ALIGN - 1);
  kiln__cpu_frame *f;

  if (!fits(w, at, 0, code->local_bytes)) {
    kiln__cpu_fault(w, in, KILN__FAULT_STACK, -1, at + code->local_bytes, 0);
    return NULL;
  }
  f = kiln__cpu_frame_take(w, code);
  if (f == NULL) {
    kiln__cpu_fault(w, in, KILN__FAULT_MEMORY, -1, 0, 0);
    return NULL;
  }
  f->parent = from;
  f->call = call;
  f->resume = in->index + 1;
  f->depth = from->depth + 1;
  f->lanes = mask;
  f->local_at = at;
  f->local_top = at + code->local_bytes;
  for (uint32_t i = 0; i < call->n_in; i++) {
    const kiln__cpu_copy *const c = &call->in[i];

    if (!fits(w, at, c->to, c->size)) {
      kiln__cpu_fault(w, in, KILN__FAULT_STACK, -1, at + c->to, c->size);
      return NULL;
    }
    copy_lanes(w, mask, at + c->to, from->local_at + c->from, c->size);
  }
  return f;
}

bool kiln__cpu_call_enter(kiln__cpu_warp *w, kiln__cpu_frame *from,
                          const kiln__cpu_insn *in, const kiln__cpu_code *code,
                          uint32_t mask, kiln__cpu_frame **out)
{
  *out = NULL;
  if (!code->defined && code->system != KILN__SYSTEM_NONE)
    return kiln__cpu_system_call(w, from, in, code->system, mask);
  if (!code->defined || code->entry ||
      (in->a >= 0 && from->code->calls[in->imm].n_params != code->n_params)) {
    kiln__cpu_fault(w, in, KILN__FAULT_PC, -1, kiln__cpu_address_of(code), 0);
    return false;
  }
  *out = enter(w, from, in, code, mask);
  return *out != NULL;
}

void kiln__cpu_call_leave(kiln__cpu_warp *w, kiln__cpu_frame *f, uint32_t mask)
{
  const kiln__cpu_call *const call = f->call;

  for (uint32_t i = 0; i < call->n_out; i++) {
    const kiln__cpu_copy *const c = &call->out[i];

    if (fits(w, f->parent->local_at, c->to, c->size) &&
        fits(w, f->local_at, c->from, c->size))
      copy_lanes(w, mask, f->parent->local_at + c->to, f->local_at + c->from,
                 c->size);
  }
  f->lanes &= ~mask;
  if (f->lanes == 0)
    kiln__cpu_frame_give(w, f);
}

bool kiln__cpu_stack_room(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);
  const uint32_t need = s->n_stacked + 2 * KILN__WARP + 2;
  kiln__cpu_entry *bigger;

  if (need <= s->max_stacked)
    return true;
  bigger = kiln__resize(&w->grid->alloc, s->stacked,
                        2 * (size_t)need * sizeof *bigger);
  if (bigger == NULL) {
    if (in != NULL)
      kiln__cpu_fault(w, in, KILN__FAULT_MEMORY, -1, 0, 0);
    return false;
  }
  s->stacked = bigger;
  s->max_stacked = 2 * need;
  return true;
}

void kiln__cpu_warp_synced(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           uint32_t mask, uint32_t wanted)
{
  const kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  if (s->check_sync && (mask & ~wanted) != 0)
    kiln__cpu_watch_sync_misuse(w, in, __builtin_ctz(mask & ~wanted),
                                "the thread is not in its own member mask "
                                "0x%08x",
                                wanted);
  if (s->check_sync && (wanted & s->began & ~w->live) != 0)
    kiln__cpu_watch_sync_misuse(
        w, in, -1,
        "member mask 0x%08x names lanes that have exited "
        "(0x%08x)",
        wanted, wanted & s->began & ~w->live);
  else if (s->check_sync && (wanted & w->live & ~mask) != 0)
    kiln__cpu_watch_sync_misuse(w, in, -1,
                                "member mask 0x%08x names lanes that are "
                                "elsewhere (0x%08x)",
                                wanted, wanted & w->live & ~mask);
  if (w->watched)
    kiln__cpu_watch_warp_sync(w, in, mask);
}
