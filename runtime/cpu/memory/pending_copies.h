/* pending_copies.h -- declares the asynchronous copies (cp.async) of a warp
 * that no lane has waited for yet.
 *
 * The bytes move when a lane waits, which is the latest moment that PTX allows.
 * A kernel that forgets to wait therefore reads old data, instead of working by
 * luck. Commit groups are counted per lane, because commits and waits are per
 * thread in PTX.
 *
 * Each object belongs to one warp. Only the worker that runs the warp uses the
 * object. */
#ifndef KILN_CPU_COPIES_H
#define KILN_CPU_COPIES_H

#include "../../base/base.h"

enum { KILN__COPY_LANES = 32 };

/* The copies of one instruction. Each lane in `mask` copies `size` bytes from
 * `from`, then fills its destination with zeros up to `bytes` bytes. */
typedef struct kiln__cpu_async_copy {
  uint32_t mask;
  uint32_t bytes;
  uint8_t size[KILN__COPY_LANES];
  const uint8_t *from[KILN__COPY_LANES];
  uint8_t *to[KILN__COPY_LANES];
  /* device address of the destination, for the checks */
  uint64_t address[KILN__COPY_LANES];
  /* the cp.async instruction (a kiln__cpu_insn), for the checks */
  const void *insn;
} kiln__cpu_async_copy;

typedef struct kiln__cpu_copies kiln__cpu_copies;

/* Makes an empty list of pending copies. Returns NULL if out of memory. */
kiln__cpu_copies *kiln__cpu_copies_create(const kiln_allocator *a);
/* Frees the list and discards the pending copies. NULL is allowed. */
void kiln__cpu_copies_free(kiln__cpu_copies *copies);

/* Adds the copies of one cp.async instruction. Returns false if out of
 * memory. */
bool kiln__cpu_copies_add(kiln__cpu_copies *copies,
                          const kiln__cpu_async_copy *copy);
/* Closes the current commit group of these lanes. Later copies belong to the
 * next group. */
void kiln__cpu_copies_commit(kiln__cpu_copies *copies, uint32_t mask);
/* Performs the pending copies of the lanes in `mask`, except those of the last
 * `keep` commit groups of each lane. If `all` is true, it also performs copies
 * that no commit has closed. `before` may be NULL. Otherwise it is called
 * before the copies of each instruction, with the lanes whose copies are
 * performed. */
void kiln__cpu_copies_wait(kiln__cpu_copies *copies, uint32_t mask,
                           uint64_t keep, bool all,
                           void (*before)(void *user,
                                          const kiln__cpu_async_copy *copy,
                                          uint32_t lanes),
                           void *user);

#endif
