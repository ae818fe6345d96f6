/* system_calls.c -- implements the functions that the device itself provides to
 * kernels: vprintf, malloc, free, __assertfail, memcpy, memset and
 * cudaGraphSetConditional.
 *
 * PTX modules declare these functions but do not define them. A call is
 * executed lane by lane. */
#include "grid_job.h"

#include <string.h>

/* ---- Memory access by one lane ------------------------------------------- */

static uint8_t *within(uint8_t *first, uint64_t bytes, uint64_t offset,
                       uint64_t size)
{
  return offset <= bytes && size <= bytes - offset ? first + offset : NULL;
}

uint8_t *kiln__cpu_lane_bytes(kiln__cpu_warp *w, int lane, uint64_t address,
                              uint64_t size)
{
  const uint64_t window = address & ~(KILN__WINDOW_BYTES - 1);
  const uint64_t offset = address & (KILN__WINDOW_BYTES - 1);

  if (window == KILN__WINDOW_SHARED)
    return within(w->block->shared, w->block->shared_size, offset, size);
  if (window == KILN__WINDOW_LOCAL)
    return within(kiln__cpu_schedule_of(w)->stack +
                      (size_t)lane * w->local_stride,
                  w->local_size, offset, size);
  return kiln__cpu_memory_host(w->grid->memory, address, size);
}

/* ---- Arguments and results ----------------------------------------------- */

uint64_t kiln__cpu_argument(const kiln__cpu_warp *w, const kiln__cpu_frame *f,
                            const kiln__cpu_call *call, uint32_t i, int lane)
{
  const uint8_t *const mine = kiln__cpu_schedule_of(w)->stack + f->local_at +
                              (size_t)lane * w->local_stride;
  uint64_t value = 0;
  uint32_t small;

  if (i >= call->n_in)
    return 0;
  if (call->in[i].size == 8) {
    memcpy(&value, mine + call->in[i].from, 8);
  } else if (call->in[i].size == 4) {
    memcpy(&small, mine + call->in[i].from, 4);
    value = small;
  }
  return value;
}

void kiln__cpu_result(const kiln__cpu_warp *w, const kiln__cpu_frame *f,
                      const kiln__cpu_call *call, int lane, uint64_t value)
{
  uint8_t *const mine = kiln__cpu_schedule_of(w)->stack + f->local_at +
                        (size_t)lane * w->local_stride;
  const uint32_t small = (uint32_t)value;

  if (call->n_out == 0)
    return;
  if (call->out[0].size == 8)
    memcpy(mine + call->out[0].to, &value, 8);
  else if (call->out[0].size == 4)
    memcpy(mine + call->out[0].to, &small, 4);
}

/* ---- The functions ------------------------------------------------------- */

uint64_t kiln__cpu_heap_alloc(kiln__cpu_warp *w, uint64_t size)
{
  kiln__cpu_grid *const g = w->grid;
  kiln__cpu_range range = {.kind = KILN__RANGE_HEAP, .device = g->device};
  uint64_t address = 0;

  if (size == 0)
    return 0;
  pthread_mutex_lock(&g->lock);
  if (size <= g->heap_limit - g->heap_bytes &&
      kiln__cpu_memory_add(g->memory, &range, size, 16) == KILN_OK) {
    g->heap_bytes += size;
    address = range.first;
  }
  pthread_mutex_unlock(&g->lock);
  return address;
}

bool kiln__cpu_heap_free(kiln__cpu_warp *w, uint64_t address)
{
  kiln__cpu_grid *const g = w->grid;
  kiln__cpu_range range;
  bool ok;

  if (address == 0)
    return true;
  pthread_mutex_lock(&g->lock);
  ok = kiln__cpu_memory_find(g->memory, address, &range) &&
       range.kind == KILN__RANGE_HEAP && range.first == address &&
       kiln__cpu_memory_remove(g->memory, address);
  if (ok) {
    const uint64_t size = range.last - range.first;

    g->heap_bytes -= size < g->heap_bytes ? size : g->heap_bytes;
  }
  pthread_mutex_unlock(&g->lock);
  return ok;
}

/* Copies a string from the memory of the kernel, at most size - 1 bytes. The
 * copy stops at the first byte that cannot be read. */
static void text_at(kiln__cpu_warp *w, int lane, uint64_t address, char *buf,
                    size_t size)
{
  size_t n = 0;

  while (n + 1 < size) {
    const uint8_t *const c = kiln__cpu_lane_bytes(w, lane, address + n, 1);

    if (c == NULL || *c == '\0')
      break;
    buf[n++] = (char)*c;
  }
  buf[n] = '\0';
}

static void assert_failed(kiln__cpu_warp *w, const kiln__cpu_frame *f,
                          const kiln__cpu_insn *in, int lane)
{
  const kiln__cpu_call *const call = &f->code->calls[in->imm];
  const uint32_t *const dim = w->grid->block_dim;
  const uint32_t t = w->index * KILN__WARP + (uint32_t)lane;
  const uint32_t *const b = w->block->ctaid;
  char message[256], file[256], function[256], text[1024];

  text_at(w, lane, kiln__cpu_argument(w, f, call, 0, lane), message,
          sizeof message);
  text_at(w, lane, kiln__cpu_argument(w, f, call, 1, lane), file, sizeof file);
  text_at(w, lane, kiln__cpu_argument(w, f, call, 3, lane), function,
          sizeof function);
  kiln__format(text, sizeof text,
               "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion "
               "`%s` failed.",
               file, (uint32_t)kiln__cpu_argument(w, f, call, 2, lane),
               function, b[0], b[1], b[2], t % dim[0], t / dim[0] % dim[1],
               t / dim[0] / dim[1], message);
  if (w->grid->out != NULL) {
    kiln__cpu_out_add(w->grid->out, text, strlen(text));
    kiln__cpu_out_add(w->grid->out, "\n", 1);
  }
  kiln__cpu_fault(w, in, KILN__FAULT_ASSERT, lane, 0, 0);
  pthread_mutex_lock(&w->grid->lock);
  if (w->grid->fault.kind == KILN__FAULT_ASSERT &&
      w->grid->fault.text[0] == '\0')
    kiln__copy_text(w->grid->fault.text, sizeof w->grid->fault.text, text);
  pthread_mutex_unlock(&w->grid->lock);
}

static bool move_bytes(kiln__cpu_warp *w, const kiln__cpu_frame *f,
                       const kiln__cpu_insn *in, int lane, bool set)
{
  const kiln__cpu_call *const call = &f->code->calls[in->imm];
  const uint64_t to = kiln__cpu_argument(w, f, call, 0, lane);
  const uint64_t from = kiln__cpu_argument(w, f, call, 1, lane);
  const uint64_t size = kiln__cpu_argument(w, f, call, 2, lane);
  uint8_t *const d = kiln__cpu_lane_bytes(w, lane, to, size);
  const uint8_t *const s = set ? d : kiln__cpu_lane_bytes(w, lane, from, size);

  if (size != 0 && (d == NULL || s == NULL)) {
    kiln__cpu_fault(w, in, KILN__FAULT_ADDRESS, lane, d == NULL ? to : from,
                    size > UINT32_MAX ? UINT32_MAX : (uint32_t)size);
    return false;
  }
  if (size != 0 && set)
    memset(d, (int)(from & 0xff), size);
  else if (size != 0)
    memmove(d, s, size);
  kiln__cpu_result(w, f, call, lane, to);
  return true;
}

/* Stores the value of a conditional handle; api/graph/graph_condition.c makes
 * the handles. */
static bool set_condition(kiln__cpu_warp *w, const kiln__cpu_insn *in, int lane,
                          uint64_t handle, uint32_t value)
{
  kiln__cpu_range range;

  if (!kiln__cpu_memory_find(w->grid->memory, handle, &range) ||
      range.kind != KILN__RANGE_INTERNAL || range.first != handle ||
      range.last - range.first != sizeof value) {
    kiln__cpu_fault(w, in, KILN__FAULT_ADDRESS, lane, handle, sizeof value);
    return false;
  }
  __atomic_store_n((uint32_t *)(void *)range.host, value, __ATOMIC_SEQ_CST);
  return true;
}

static bool call_lane(kiln__cpu_warp *w, const kiln__cpu_frame *f,
                      const kiln__cpu_insn *in, kiln__cpu_system which,
                      int lane)
{
  const kiln__cpu_call *const call = &f->code->calls[in->imm];
  const uint64_t first = kiln__cpu_argument(w, f, call, 0, lane);

  switch (which) {
  case KILN__SYSTEM_VPRINTF:
    kiln__cpu_result(w, f, call, lane,
                     (uint64_t)(int64_t)kiln__cpu_out_printf(
                         w->grid->out, w, lane, first,
                         kiln__cpu_argument(w, f, call, 1, lane)));
    return true;
  case KILN__SYSTEM_MALLOC:
    kiln__cpu_result(w, f, call, lane, kiln__cpu_heap_alloc(w, first));
    return true;
  case KILN__SYSTEM_FREE:
    if (!kiln__cpu_heap_free(w, first))
      kiln__cpu_fault(w, in, KILN__FAULT_ADDRESS, lane, first, 0);
    return !w->fault;
  case KILN__SYSTEM_ASSERT:
    assert_failed(w, f, in, lane);
    /* The other lanes with a failed assertion also print their messages. */
    return true;
  case KILN__SYSTEM_MEMCPY:
  case KILN__SYSTEM_MEMSET:
    return move_bytes(w, f, in, lane, which == KILN__SYSTEM_MEMSET);
  case KILN__SYSTEM_SET_CONDITION:
    return set_condition(w, in, lane, first,
                         (uint32_t)kiln__cpu_argument(w, f, call, 1, lane));
  default:
    return kiln__cpu_device_call(w, f, in, which, lane);
  }
}

bool kiln__cpu_system_call(kiln__cpu_warp *w, kiln__cpu_frame *f,
                           const kiln__cpu_insn *in, kiln__cpu_system which,
                           uint32_t mask)
{
  kiln__cpu_schedule *const s = kiln__cpu_schedule_of(w);

  s->changed = true;
  for (; mask != 0; mask &= mask - 1) {
    if (!call_lane(w, f, in, which, __builtin_ctz(mask)))
      break;
  }
  return !w->fault;
}
