/* pending_copies.h -- asynchronous copies of a warp (cp.async) that nobody has waited
 * for yet.
 *
 * Bytes move when a lane waits, not before: a missing wait shows. Groups are
 * each lane's own, as its commits and waits are. */
#ifndef KILN_CPU_COPIES_H
#define KILN_CPU_COPIES_H

#include "../../base/base.h"

enum { KILN__COPY_LANES = 32 };

/* One instruction's copies: of each lane in `mask`, `size` bytes from `from`,
 * then zeros up to `bytes`. */
typedef struct kiln__cpu_async_copy {
  uint32_t mask;
  uint32_t bytes;
  uint8_t size[KILN__COPY_LANES];
  const uint8_t *from[KILN__COPY_LANES];
  uint8_t *to[KILN__COPY_LANES];
  uint64_t address[KILN__COPY_LANES]; /* of `to`, for the checks */
  const void *insn;                   /* the same */
} kiln__cpu_async_copy;

typedef struct kiln__cpu_copies kiln__cpu_copies;

/* NULL: no memory. */
kiln__cpu_copies *kiln__cpu_copies_create(const kiln_allocator *a);
void kiln__cpu_copies_free(kiln__cpu_copies *copies);

/* False: no memory. */
bool kiln__cpu_copies_add(kiln__cpu_copies *copies,
                          const kiln__cpu_async_copy *copy);
/* These lanes' copies since their last commit are a group. */
void kiln__cpu_copies_commit(kiln__cpu_copies *copies, uint32_t mask);
/* Do these lanes' copies but those of their last `keep` groups; with `all` also
 * what is in no group. `before` is told of each lot, with the lanes of it. */
void kiln__cpu_copies_wait(kiln__cpu_copies *copies, uint32_t mask,
                           uint64_t keep, bool all,
                           void (*before)(void *user,
                                          const kiln__cpu_async_copy *copy,
                                          uint32_t lanes),
                           void *user);

#endif
