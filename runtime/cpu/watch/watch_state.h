/* watch_state.h -- what the checks of one launch keep while it runs. Private to
 * watch/.
 *
 * A clock counts the synchronisations of one block, warp or lane. An access is
 * stamped with the clocks of its lane. Two accesses are ordered if the later
 * thread has learnt a clock of the earlier one that is at least the stamp; see
 * race_check.c. */
#ifndef KILN_CPU_WATCH_STATE_H
#define KILN_CPU_WATCH_STATE_H

#include "../memory/address_space.h"
#include "watch.h"

/* A sparse vector clock: for each block that is known at all, the last time of
 * it that is known. Sorted by block. */
typedef struct kiln__cpu_clocks {
  struct kiln__cpu_clock {
    uint32_t block, time;
  } * items;
  uint32_t n, capacity;
} kiln__cpu_clocks;

/* Who accessed a word, and at which time of each clock. */
typedef struct kiln__cpu_stamp {
  const kiln__cpu_insn *in; /* NULL: no access yet */
  uint32_t block, time;     /* number of the block and its clock */
  uint32_t warp_clock, lane_clock;
  uint8_t warp, lane;
  uint8_t bytes; /* one bit for each byte of the word that was accessed */
  /* atomic, volatile, relaxed, ...: does not race with its like */
  uint8_t strong;
} kiln__cpu_stamp;

/* Shadow of one 32-bit word: the last writer and the last readers from two
 * different warps. */
typedef struct kiln__cpu_cell {
  kiln__cpu_stamp writer, reader[2];
} kiln__cpu_cell;

enum { KILN__PAGE_WORDS = 1024, KILN__PAGE_BYTES = 4096 };

/* Shadow of 4 KiB of global memory, made at the first access and found by
 * hashing. */
typedef struct kiln__cpu_page {
  uint64_t number;
  kiln__cpu_cell *cells;
  struct kiln__cpu_page *next;
} kiln__cpu_page;

/* A word that threads synchronise through, and the clocks that its last writers
 * had published when they wrote it. A reader of the word learns these
 * clocks. */
typedef struct kiln__cpu_sync_word {
  uint64_t key;
  kiln__cpu_clocks known;
  /* block of the last writer; `warp`, `warps` and `lanes` are of that block */
  uint32_t block;
  uint8_t warp;
  uint32_t warps[KILN__WARP], lanes[KILN__WARP];
  struct kiln__cpu_sync_word *next;
} kiln__cpu_sync_word;

enum { KILN__N_BUCKETS = 4096, KILN__MAX_WARPS = 32 };

/* What one warp knows: the clocks of the warps of its block and, per lane, the
 * clocks of its lanes. The entry of a warp or lane for itself is its own clock.
 * `fenced` is a copy of `warps` made at the last fence. */
typedef struct kiln__cpu_warp_clocks {
  uint32_t warps[KILN__MAX_WARPS], fenced[KILN__MAX_WARPS];
  uint32_t lanes[KILN__WARP][KILN__WARP];
  uint32_t fenced_time; /* clock of the block at the last fence */
} kiln__cpu_warp_clocks;

/* What the checks keep per block. */
typedef struct kiln__cpu_block_state {
  kiln__cpu_cell *shared; /* one per word; NULL without the race check */
  /* one bit per byte; NULL without the initialisation check */
  uint8_t *shared_valid;
  uint32_t n_words;
  uint32_t time;
  kiln__cpu_clocks known;
  kiln__cpu_warp_clocks *warps;
  struct kiln__cpu_block_state *next; /* in the list of states to reuse */
} kiln__cpu_block_state;

/* A finding with the instruction that identifies it. */
typedef struct kiln__cpu_found {
  kiln_cpu_finding finding;
  const kiln__cpu_insn *in;
  struct kiln__cpu_found *next;
} kiln__cpu_found;

/* Tallies of one worker thread for one function. */
typedef struct kiln__cpu_tallies {
  unsigned thread;
  const kiln__cpu_code *code;
  kiln__cpu_tally *tally;
  struct kiln__cpu_tallies *next;
} kiln__cpu_tallies;

struct kiln__cpu_watch {
  kiln_allocator alloc;
  unsigned checks;
  bool counters;
  const kiln__cpu_program *program;
  const kiln__cpu_code *code;
  pthread_mutex_t lock; /* guards all that follows */
  kiln__cpu_tallies *tallies;
  kiln__cpu_found *found, **last;
  unsigned n_found;
  kiln__cpu_page *pages[KILN__N_BUCKETS], *last_page;
  kiln__cpu_sync_word *sync_words[KILN__N_BUCKETS];
  kiln__cpu_block_state *spare; /* states of blocks that ended */
};

/* clocks.c. Raise the clock of one block, or of all blocks in `from`; the clock
 * of a block, 0 if unknown. False: out of memory, the set is unchanged. The
 * caller holds the lock. */
bool kiln__cpu_clocks_raise(const kiln_allocator *a, kiln__cpu_clocks *c,
                            uint32_t block, uint32_t time);
bool kiln__cpu_clocks_join(const kiln_allocator *a, kiln__cpu_clocks *to,
                           const kiln__cpu_clocks *from);
uint32_t kiln__cpu_clocks_of(const kiln__cpu_clocks *c, uint32_t block);

/* race_check.c: check one access of the lanes in `mask` for races and record
 * it. The caller holds the lock. */
void kiln__cpu_race_access(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                           const kiln__cpu_insn *in, kiln__cpu_space space,
                           const uint64_t *address, uint32_t mask,
                           uint32_t bytes, kiln__cpu_access access);
void kiln__cpu_race_free(kiln__cpu_watch *watch);

/* init_check.c: check that what is read was written before, and mark what is
 * written. The caller holds the lock. */
void kiln__cpu_init_access(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                           const kiln__cpu_insn *in, kiln__cpu_space space,
                           const uint64_t *address, uint32_t mask,
                           uint32_t bytes, kiln__cpu_access access);

/* Where a finding occurred. */
typedef struct kiln__cpu_where {
  kiln__cpu_warp *w;
  const kiln__cpu_insn *in;
  int lane;
  kiln__cpu_space space;
  uint64_t address;
  uint32_t bytes;
} kiln__cpu_where;

/* Record a finding, or one more occurrence of a recorded one. `other` describes
 * the other access of a race, `what` completes "thread (x,y,z) ...", `advice`
 * names what to look at. The caller holds the lock. */
void kiln__cpu_find(kiln__cpu_watch *watch, unsigned check, const char *kind,
                    const kiln__cpu_where *where, const char *other,
                    const char *what, const char *advice);
/* Writes "line 12 of file.cu", or "line 40 of the PTX" if there is no .loc. */
void kiln__cpu_watch_line(const kiln__cpu_watch *watch,
                          const kiln__cpu_insn *in, char *buf, size_t size);
/* Index of a thread in its block, from its warp and lane. */
void kiln__cpu_watch_thread(const kiln__cpu_grid *grid, uint32_t warp,
                            uint32_t lane, uint32_t thread[3]);

#endif
