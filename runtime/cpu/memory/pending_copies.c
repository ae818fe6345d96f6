/* pending_copies.c -- implements the list of a warp's pending cp.async copies,
 * in program order.
 *
 * Each copy stores, per lane, the number of the commit group that was open when
 * the copy was issued. A wait compares this number with the number of the
 * lane's current group. The wait performs the copy if the difference is above
 * `keep`. List nodes are reused, since loops issue copies at a steady rate. */
#include "pending_copies.h"

#include <string.h>

typedef struct pending {
  struct pending *next;
  kiln__cpu_async_copy copy;
  /* number of the copy's commit group, per lane */
  uint64_t group[KILN__COPY_LANES];
} pending;

struct kiln__cpu_copies {
  kiln_allocator alloc;
  pending *first, **end;
  pending *spare; /* list of unused nodes for reuse */
  /* number of the open commit group, per lane */
  uint64_t group[KILN__COPY_LANES];
};

kiln__cpu_copies *kiln__cpu_copies_create(const kiln_allocator *a)
{
  kiln__cpu_copies *c = kiln__calloc(a, 1, sizeof *c);

  if (c != NULL) {
    c->alloc = *a;
    c->end = &c->first;
  }
  return c;
}

static void list_free(kiln__cpu_copies *c, pending *p)
{
  while (p != NULL) {
    pending *next = p->next;

    kiln__free(&c->alloc, p);
    p = next;
  }
}

void kiln__cpu_copies_free(kiln__cpu_copies *copies)
{
  kiln_allocator a;

  if (copies == NULL)
    return;
  list_free(copies, copies->first);
  list_free(copies, copies->spare);
  a = copies->alloc;
  kiln__free(&a, copies);
}

bool kiln__cpu_copies_add(kiln__cpu_copies *copies,
                          const kiln__cpu_async_copy *copy)
{
  pending *p = copies->spare;

  if (p != NULL)
    copies->spare = p->next;
  else
    p = kiln__alloc(&copies->alloc, sizeof *p);
  if (p == NULL)
    return false;
  p->next = NULL;
  p->copy = *copy;
  memcpy(p->group, copies->group, sizeof p->group);
  *copies->end = p;
  copies->end = &p->next;
  return true;
}

void kiln__cpu_copies_commit(kiln__cpu_copies *copies, uint32_t mask)
{
  for (; mask != 0; mask &= mask - 1)
    copies->group[__builtin_ctz(mask)]++;
}

/* Returns the lanes of `mask` whose part of the copy `p` a wait must perform
 * now. */
static uint32_t due(const kiln__cpu_copies *c, const pending *p, uint32_t mask,
                    uint64_t keep, bool all)
{
  uint32_t lanes = 0;

  if (all)
    return mask & p->copy.mask;
  for (uint32_t m = mask & p->copy.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    const bool is_due =
        p->group[i] < c->group[i] && c->group[i] - p->group[i] > keep;

    lanes |= (uint32_t)is_due << i;
  }
  return lanes;
}

/* Copies an element of a usual size. Returns false for all other sizes. */
static bool whole(uint8_t *to, const uint8_t *from, uint32_t size)
{
  switch (size) {
  case 4:
    memcpy(to, from, 4);
    return true;
  case 8:
    memcpy(to, from, 8);
    return true;
  case 16:
    memcpy(to, from, 16);
    return true;
  default:
    return false;
  }
}

static void perform(const kiln__cpu_async_copy *copy, uint32_t lanes)
{
  for (; lanes != 0; lanes &= lanes - 1) {
    const int i = __builtin_ctz(lanes);
    const uint32_t size = copy->size[i];

    if (size == copy->bytes && whole(copy->to[i], copy->from[i], size))
      continue;
    if (size != 0) /* `from` may be NULL if `size` is 0. */
      memcpy(copy->to[i], copy->from[i], size);
    memset(copy->to[i] + size, 0, copy->bytes - size);
  }
}

void kiln__cpu_copies_wait(kiln__cpu_copies *copies, uint32_t mask,
                           uint64_t keep, bool all,
                           void (*before)(void *user,
                                          const kiln__cpu_async_copy *copy,
                                          uint32_t lanes),
                           void *user)
{
  pending **at = &copies->first;

  while (*at != NULL) {
    pending *p = *at;
    const uint32_t lanes = due(copies, p, mask, keep, all);

    if (lanes != 0) {
      if (before != NULL)
        before(user, &p->copy, lanes);
      perform(&p->copy, lanes);
      p->copy.mask &= ~lanes;
    }
    if (p->copy.mask != 0) {
      at = &p->next;
      continue;
    }
    *at = p->next;
    p->next = copies->spare;
    copies->spare = p;
  }
  copies->end = at;
}
