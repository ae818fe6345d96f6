/* async_copy.c -- cp.async: copies from global to shared memory that take
 * effect when the kernel waits for them.
 *
 * The handler of a copy checks its source and destination, and pending_copies.c
 * records both. The bytes are copied only by a wait instruction. A kernel that
 * forgets to wait therefore reads old data, as it may on a GPU. */
#include "async.h"

#include "../memory/pending_copies.h"

/* Returns the number of bytes that lane i reads: all bytes, the number in
 * operand c, or none if the ignore-source predicate is set. */
static uint32_t bytes_read(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                           bool ignores, int i)
{
  const uint32_t bytes = in->bytes;
  uint32_t c;

  if (in->c < 0)
    return bytes;
  c = KILN__SLOT(const uint32_t, in->c)[i];
  if (ignores)
    return (c != 0) != ((in->flags & KILN__NEGATE_B) != 0) ? 0 : bytes;
  return c < bytes ? c : bytes;
}

/* Finds the destination of an asynchronous copy. The bytes are written later,
 * and the memory checks observe the write at that time. A fault is reported as
 * a fault of a store to shared memory. */
static bool reach_destination(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                              kiln__cpu_reach *to)
{
  const bool watched = w->watched;
  kiln__cpu_insn store = *in;
  bool ok;

  store.klass = KILN__CLASS_SHARED_STORE;
  store.space = KILN__SPACE_SHARED;
  w->watched = false;
  ok = KILN__ISA_NAME(reach_at)(
      w, &store, KILN__SPACE_SHARED, in->a, (in->flags & KILN__WIDE_A) != 0,
      (uint64_t)in->imm, in->bytes, KILN__ACCESS_WRITE, KILN__COUNT_NONE, to);
  w->watched = watched;
  return ok;
}

/* Finds the source of an asynchronous copy. A lane that reads whole elements is
 * checked as for a load. For a partial copy, only the bytes that are read have
 * to exist. A lane that reads nothing may have any address. */
static bool reach_source(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                         kiln__cpu_async_copy *c)
{
  const uint32_t mask = w->mask;
  uint32_t whole = 0, part = 0;
  kiln__cpu_reach from;
  bool ok = true;

  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);

    whole |= (uint32_t)(c->size[i] == in->bytes) << i;
    part |= (uint32_t)(c->size[i] != in->bytes && c->size[i] != 0) << i;
  }
  w->mask = whole;
  if (whole != 0)
    ok = KILN__ISA_NAME(reach_at)(w, in, KILN__SPACE_GLOBAL, in->b,
                                  (in->flags & KILN__WIDE_B) != 0,
                                  (uint64_t)in->imm2, in->bytes,
                                  KILN__ACCESS_READ, KILN__COUNT_MEMORY, &from);
  w->mask = mask;
  for (; ok && whole != 0; whole &= whole - 1)
    c->from[__builtin_ctz(whole)] =
        (const uint8_t *)from.host[__builtin_ctz(whole)];

  kiln__cpu_addresses(w, in->b, (in->flags & KILN__WIDE_B) != 0,
                      (uint64_t)in->imm2, from.address);
  for (; ok && part != 0; part &= part - 1) {
    const int i = __builtin_ctz(part);
    const uint64_t at = from.address[i];
    const kiln__cpu_range *r = kiln__cpu_range_of(w, at, c->size[i]);
    kiln__cpu_range copy;

    if (r == NULL)
      r = KILN__ISA_NAME(read_only_range_of)(w, at, c->size[i], &copy);
    ok = r != NULL && at % in->bytes == 0;
    if (ok)
      c->from[i] = r->host + (at - r->first);
    else
      kiln__cpu_fault(w, in,
                      r == NULL ? KILN__FAULT_ADDRESS : KILN__FAULT_MISALIGNED,
                      i, at, c->size[i]);
  }
  return ok;
}

/* Returns whether all active lanes copy whole elements. */
static bool all_whole(const kiln__cpu_warp *w, const kiln__cpu_insn *in,
                      bool ignores)
{
  uint32_t part = 0;

  if (in->c < 0)
    return true;
  if (ignores)
    return false;
  KILN__VECTOR_LOOP
  for (int i = 0; i < KILN__WARP; i++)
    part |= KILN__SLOT(const uint32_t, in->c)[i] < in->bytes ? w->lane[i] : 0;
  return part == 0;
}

/* Finds source and destination of a copy of whole elements in which all sources
 * lie in one range of global memory, which is the common case. Returns false if
 * the general path has to handle the copy. */
static bool reach_whole(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                        bool ignores, kiln__cpu_async_copy *c,
                        kiln__cpu_reach *to)
{
  kiln__cpu_insn source = *in;
  kiln__cpu_reach from;
  bool shared;

  if (w->watched || !all_whole(w, in, ignores))
    return false;
  kiln__cpu_addresses(w, in->a, (in->flags & KILN__WIDE_A) != 0,
                      (uint64_t)in->imm, to->address);
  if (!kiln__cpu_all_own(w, in->bytes, 0, to))
    return false;
  kiln__cpu_addresses(w, in->b, (in->flags & KILN__WIDE_B) != 0,
                      (uint64_t)in->imm2, from.address);
  source.space = KILN__SPACE_GLOBAL;
  if (!kiln__cpu_all_near(w, &source, in->bytes, &shared, &from))
    return false;
  if (w->counted)
    kiln__cpu_tally_add(
        w, in, KILN__ISA_NAME(sectors)(from.address, w->mask, in->bytes));
  memset(c->size, (int)in->bytes, sizeof c->size);
  for (int i = 0; i < KILN__WARP; i++)
    c->from[i] = (const uint8_t *)from.host[i];
  return true;
}

/* Finds source and destination of any copy. Returns false if it faulted. */
static bool reach_any(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool ignores,
                      kiln__cpu_async_copy *c, kiln__cpu_reach *to)
{
  for (int i = 0; i < KILN__WARP; i++)
    c->size[i] = (uint8_t)bytes_read(w, in, ignores, i);
  return reach_destination(w, in, to) && reach_source(w, in, c);
}

static void copy(kiln__cpu_warp *w, const kiln__cpu_insn *in, bool ignores)
{
  kiln__cpu_async_copy c;
  kiln__cpu_reach to;

  c.mask = w->mask;
  c.bytes = in->bytes;
  c.insn = in;
  if (!reach_whole(w, in, ignores, &c, &to) &&
      !reach_any(w, in, ignores, &c, &to))
    return;
  for (int i = 0; i < KILN__WARP; i++) {
    c.to[i] = (uint8_t *)to.host[i];
    c.address[i] = to.address[i];
  }
  if (w->copies == NULL)
    w->copies = kiln__cpu_copies_create(&w->grid->alloc);
  if (w->copies == NULL || !kiln__cpu_copies_add(w->copies, &c))
    kiln__cpu_fault(w, in, KILN__FAULT_MEMORY, -1, 0, 0);
}

/* ---- Waiting ------------------------------------------------------------- */

static void report_copy(void *user, const kiln__cpu_async_copy *copy,
                        uint32_t lanes)
{
  kiln__cpu_warp *w = user;

  kiln__cpu_watch_access(w, copy->insn, KILN__SPACE_SHARED, copy->address,
                         lanes, copy->bytes, KILN__ACCESS_WRITE);
}

void KILN__ISA_NAME(copies_wait)(kiln__cpu_warp *w, uint64_t keep, bool all)
{
  if (w->copies != NULL)
    kiln__cpu_copies_wait(w->copies, w->mask, keep, all,
                          w->watched ? report_copy : NULL, w);
}

KILN__HANDLER(cp_async_commit)
{
  (void)in;
  if (w->copies != NULL)
    kiln__cpu_copies_commit(w->copies, w->mask);
}

KILN__HANDLER(cp_async_wait)
{
  KILN__ISA_NAME(copies_wait)(w, (uint64_t)in->imm, false);
}

KILN__HANDLER(cp_async_wait_all)
{
  (void)in;
  KILN__ISA_NAME(copies_wait)(w, 0, true);
}

/* ---- Handlers of cp.async ------------------------------------------------ */

KILN__CALLS(cp_async, copy, false)
KILN__CALLS(cp_async_ignore, copy, true)
