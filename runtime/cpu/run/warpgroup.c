/* warpgroup.c -- wgmma: the matrix instructions of a warpgroup, which is four
 * consecutive warps.
 *
 * On a GPU, wgmma.mma_async reads its operands and writes its result at any time
 * until wgmma.wait_group. Here, a warp computes its 16 rows of D when it issues
 * the instruction. A correct program cannot observe the difference. */
#include "../exec/warpgroup.h"
#include "../tensor/wgmma_tile.h"
#include "grid_job.h"
#include "warpgroup_check.h"

enum { GROUP_WARPS = 4 };

/* Stops the grid because an operand of a matrix instruction is invalid. */
static void refuse(kiln__cpu_warp *w, const kiln__cpu_insn *in, const char *why)
{
  kiln__cpu_grid *const g = w->grid;

  kiln__cpu_fault(w, in, KILN__FAULT_INSTRUCTION, -1, 0, 0);
  pthread_mutex_lock(&g->lock);
  if (g->fault.kind == KILN__FAULT_INSTRUCTION && g->fault.text[0] == '\0')
    kiln__copy_text(g->fault.text, sizeof g->fault.text, why);
  pthread_mutex_unlock(&g->lock);
}

/* Returns whether all 128 threads of the warpgroup exist, and all threads of the
 * warp execute the instruction. */
static bool complete(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  const uint32_t first = w->index / GROUP_WARPS * GROUP_WARPS;

  if ((first + GROUP_WARPS) * KILN__WARP > w->block->n_threads)
    refuse(w, in,
           "a warpgroup needs 128 threads: make the number of threads "
           "per block a multiple of 128");
  else if (w->mask != UINT32_MAX)
    refuse(w, in, "only some threads of the warp execute the instruction");
  return !w->fault;
}

/* Reads a descriptor, which must be the same in all lanes. */
static bool read_descriptor(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                            int32_t slot, bool mn_major,
                            kiln__wgmma_matrix *out)
{
  const uint64_t *const lanes = (const uint64_t *)(void *)(w->regs + slot);

  for (uint32_t i = 1; i < KILN__WARP; i++) {
    if (lanes[i] != lanes[0]) {
      refuse(w, in, "the matrix descriptor differs between threads");
      return false;
    }
  }
  kiln__wgmma_matrix_read(out, lanes[0], mn_major);
  return true;
}

/* Checks that all chunks of A or B lie in shared memory, and reports the reads
 * to the checks. */
static bool reach(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                  const kiln__wgmma_part *part, bool of_a, kiln__cpu_async id)
{
  uint32_t lines, chunks, first;

  kiln__wgmma_extent(part, of_a, &lines, &chunks, &first);
  for (uint32_t i = 0; i < lines * chunks; i++) {
    const uint32_t at = kiln__wgmma_nth_chunk(part, of_a, i);

    if (at + KILN__WGMMA_CHUNK > w->block->shared_size) {
      kiln__cpu_fault(w, in, KILN__FAULT_ADDRESS, -1, at, KILN__WGMMA_CHUNK);
      return false;
    }
    if (w->watched)
      kiln__cpu_watch_async_access(w, in, 0, id, w->block, KILN__SPACE_SHARED,
                                   at, KILN__WGMMA_CHUNK, KILN__ACCESS_READ);
  }
  return true;
}

static uint64_t first_lane(const kiln__cpu_warp *w, int32_t slot)
{
  return slot < 0 ? 0 : *(const uint64_t *)(const void *)(w->regs + slot);
}

/* Decodes the descriptors of A and B. */
static bool read_descriptors(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                             kiln__wgmma_part *part)
{
  const uint8_t flags = part->form.flags;

  return (in->a < 0 ||
          read_descriptor(w, in, in->a, (flags & KILN__WGMMA_TRANS_A) != 0,
                          &part->a)) &&
         read_descriptor(w, in, in->b, (flags & KILN__WGMMA_TRANS_B) != 0,
                         &part->b);
}

void kiln__cpu_wgmma_issue(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  const bool negated = (in->flags & KILN__NEGATE_B) != 0;
  kiln__wgmma_part part = {.form = kiln__cpu_wgmma_of(in),
                           .shared = w->block->shared,
                           .warp = w->index % GROUP_WARPS,
                           .regs = w->regs,
                           .d = in->vec,
                           .sources = in->vec2};
  kiln__cpu_async id;

  part.accumulate =
      (*(const uint32_t *)(void *)(w->regs + in->c) != 0) != negated;
  if (!complete(w, in) || !read_descriptors(w, in, &part))
    return;
  kiln__cpu_schedule_of(w)->products++;
  id = kiln__cpu_matrices_issue(
      w, in, first_lane(w, in->a) * 3 + first_lane(w, in->b), part.accumulate);
  if ((in->a < 0 || reach(w, in, &part, true, id)) &&
      reach(w, in, &part, false, id))
    kiln__wgmma_compute(&part);
}

/* Returns true if another warp of the warpgroup has executed fewer products than
 * this warp. A thread that waited may tell other threads that the whole
 * warpgroup has read its operands, so the warps must not be apart. */
static bool is_ahead(const kiln__cpu_warp *w)
{
  const uint32_t first = w->index / GROUP_WARPS * GROUP_WARPS;
  const uint32_t mine = kiln__cpu_schedule_of(w)->products;

  for (uint32_t i = first; i < first + GROUP_WARPS; i++) {
    const kiln__cpu_warp *const other = &w->block->warps[i];

    if (other->live != 0 && kiln__cpu_schedule_of(other)->products < mine)
      return true;
  }
  return false;
}

void kiln__cpu_wgmma_order(kiln__cpu_warp *w, const kiln__cpu_insn *in)
{
  if (!complete(w, in))
    return;
  if (in->op == KILN__OP_wgmma_wait && is_ahead(w))
    kiln__cpu_schedule_of(w)->again = true;
  else
    kiln__cpu_matrices_order(w, in);
}
