/* pending_copies.h -- asynchronous copies (cp.async) of a warp that no lane has
 * waited for yet.
 *
 * The bytes move when a lane waits, at the latest moment that PTX allows. A
 * kernel that forgets to wait therefore reads old data, instead of working by
 * luck. Commit groups are counted per lane, because commits and waits are per
 * thread in PTX.
 *
 * One object belongs to one warp and is used by the worker that runs it. */
#ifndef KILN_CPU_COPIES_H
#define KILN_CPU_COPIES_H

#include "../../base/base.h"

enum { KILN__COPY_LANES = 32 };

/* The copies of one instruction: each lane in `mask` copies `size` bytes from
 * `from` and fills up to `bytes` with zeros. */
typedef struct kiln__cpu_async_copy {
  uint32_t mask;
  uint32_t bytes;
  uint8_t size[KILN__COPY_LANES];
  const uint8_t *from[KILN__COPY_LANES];
  uint8_t *to[KILN__COPY_LANES];
  /* device address of `to`, for the checks */
  uint64_t address[KILN__COPY_LANES];
  const void *insn; /* kiln__cpu_insn of the copy, for the checks */
} kiln__cpu_async_copy;

typedef struct kiln__cpu_copies kiln__cpu_copies;

/* NULL: out of memory. */
kiln__cpu_copies *kiln__cpu_copies_create(const kiln_allocator *a);
/* Free the list; copies that it holds are dropped. NULL is allowed. */
void kiln__cpu_copies_free(kiln__cpu_copies *copies);

/* Add the copies of one instruction. False: out of memory. */
bool kiln__cpu_copies_add(kiln__cpu_copies *copies,
                          const kiln__cpu_async_copy *copy);
/* Close the current group of these lanes: later copies belong to the next
 * group. */
void kiln__cpu_copies_commit(kiln__cpu_copies *copies, uint32_t mask);
/* Perform the copies of these lanes except those of their last `keep` groups;
 * with `all`, also copies in no group yet. `before` (may be NULL) is called
 * ahead of each instruction's copies with the lanes that move. */
void kiln__cpu_copies_wait(kiln__cpu_copies *copies, uint32_t mask,
                           uint64_t keep, bool all,
                           void (*before)(void *user,
                                          const kiln__cpu_async_copy *copy,
                                          uint32_t lanes),
                           void *user);

#endif
