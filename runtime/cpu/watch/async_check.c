/* async_check.c -- implements the checks of asynchronous operations. Accesses
 * of the copy engine are not checked for races yet. */
#include "watch_state.h"

kiln__cpu_async kiln__cpu_watch_async_begin(kiln__cpu_warp *w)
{
  (void)w;
  return 0;
}

void kiln__cpu_watch_async_access(kiln__cpu_warp *w, const kiln__cpu_insn *in,
                                  int lane, kiln__cpu_async id,
                                  kiln__cpu_block *block, kiln__cpu_space space,
                                  uint64_t address, uint32_t bytes,
                                  kiln__cpu_access access)
{
  kiln__cpu_watch *const watch = w->grid->watch;
  const kiln__cpu_warp *const any = block != NULL ? &block->warps[0] : w;
  uint64_t at[KILN__WARP] = {0};

  (void)id;
  at[lane] = address;
  if ((watch->checks & KILN_CPU_CHECK_INIT) == 0 || bytes == 0)
    return;
  pthread_mutex_lock(&watch->lock);
  kiln__cpu_init_access(watch, (kiln__cpu_warp *)(uintptr_t)any, in, space, at,
                        1u << lane, bytes, access);
  pthread_mutex_unlock(&watch->lock);
}

void kiln__cpu_watch_async_seen(kiln__cpu_warp *w, kiln__cpu_async id)
{
  (void)w, (void)id;
}

void kiln__cpu_watch_async_signal(kiln__cpu_warp *w, kiln__cpu_async id,
                                  kiln__cpu_block *block, uint64_t address,
                                  uint32_t phase)
{
  (void)w, (void)id, (void)block, (void)address, (void)phase;
}

void kiln__cpu_watch_phase_over(kiln__cpu_warp *w, uint64_t address,
                                uint32_t phase)
{
  (void)w, (void)address, (void)phase;
}

void kiln__cpu_watch_proxy_fence(kiln__cpu_warp *w)
{
  (void)w;
}
