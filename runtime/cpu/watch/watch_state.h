/* watch_state.h -- inside of the checks: what a launch keeps while it runs. */
#ifndef KILN_CPU_WATCH_STATE_H
#define KILN_CPU_WATCH_STATE_H

#include "../memory/address_space.h"
#include "watch.h"

/* A set of clocks, one a block: what is known of other blocks' progress. Sorted
 * by block. */
typedef struct kiln__cpu_clocks {
  struct kiln__cpu_clock {
    uint32_t block, time;
  } * items;
  uint32_t n, capacity;
} kiln__cpu_clocks;

/* Who touched a word, and when by which clock. */
typedef struct kiln__cpu_stamp {
  const kiln__cpu_insn *in; /* NULL: nobody */
  uint32_t block, time;     /* block's number and its own clock */
  uint32_t warp_clock, lane_clock;
  uint8_t warp, lane;
  uint8_t bytes;  /* bit set: which of the word's four */
  uint8_t strong; /* atomic, volatile, relaxed, ... */
} kiln__cpu_stamp;

/* Shadow of four bytes. Two readers of different warps are remembered. */
typedef struct kiln__cpu_cell {
  kiln__cpu_stamp writer, reader[2];
} kiln__cpu_cell;

enum { KILN__PAGE_WORDS = 1024, KILN__PAGE_BYTES = 4096 };

/* Shadow of global memory: pages made when touched, in a hash table. */
typedef struct kiln__cpu_page {
  uint64_t number;
  kiln__cpu_cell *cells;
  struct kiln__cpu_page *next;
} kiln__cpu_page;

/* A word that blocks or warps communicate through: what its last writers had
 * published when they wrote it. */
typedef struct kiln__cpu_meeting {
  uint64_t key;
  kiln__cpu_clocks known;
  uint32_t block; /* the last writer's; the rest belongs to it */
  uint8_t warp;
  uint32_t warps[KILN__WARP], lanes[KILN__WARP];
  struct kiln__cpu_meeting *next;
} kiln__cpu_meeting;

enum { KILN__N_BUCKETS = 4096, KILN__MAX_WARPS = 32 };

/* Clocks of one warp: of the block's warps, and lane by lane. A lane or warp
 * knows of itself its own clock. `fenced` are the values at its last fence. */
typedef struct kiln__cpu_warp_clocks {
  uint32_t warps[KILN__MAX_WARPS], fenced[KILN__MAX_WARPS];
  uint32_t lanes[KILN__WARP][KILN__WARP];
  uint32_t fenced_time; /* the block's clock at the last fence */
} kiln__cpu_warp_clocks;

/* A block's. */
typedef struct kiln__cpu_block_state {
  kiln__cpu_cell *shared; /* by word; NULL without the race check */
  uint8_t *shared_valid;  /* by bit a byte; NULL without the init check */
  uint32_t n_words;
  uint32_t time;
  kiln__cpu_clocks known;
  kiln__cpu_warp_clocks *warps;
  struct kiln__cpu_block_state *next; /* free list */
} kiln__cpu_block_state;

/* A finding before it is handed out. */
typedef struct kiln__cpu_found {
  kiln_cpu_finding finding;
  const kiln__cpu_insn *in;
  struct kiln__cpu_found *next;
} kiln__cpu_found;

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
  pthread_mutex_t lock; /* all that follows */
  kiln__cpu_tallies *tallies;
  kiln__cpu_found *found, **last;
  unsigned n_found;
  kiln__cpu_page *pages[KILN__N_BUCKETS], *last_page;
  kiln__cpu_meeting *meetings[KILN__N_BUCKETS];
  kiln__cpu_block_state *spare; /* of blocks that ended */
};

/* clocks.c: all with the lock held. */
bool kiln__cpu_clocks_raise(const kiln_allocator *a, kiln__cpu_clocks *c,
                            uint32_t block, uint32_t time);
bool kiln__cpu_clocks_join(const kiln_allocator *a, kiln__cpu_clocks *to,
                           const kiln__cpu_clocks *from);
uint32_t kiln__cpu_clocks_of(const kiln__cpu_clocks *c, uint32_t block);

/* race.c */
void kiln__cpu_race_access(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                           const kiln__cpu_insn *in, kiln__cpu_space space,
                           const uint64_t *address, uint32_t mask,
                           uint32_t bytes, kiln__cpu_access access);
void kiln__cpu_race_free(kiln__cpu_watch *watch);

/* init.c */
void kiln__cpu_init_access(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                           const kiln__cpu_insn *in, kiln__cpu_space space,
                           const uint64_t *address, uint32_t mask,
                           uint32_t bytes, kiln__cpu_access access);

/* findings.c: a new finding, or one more of an old one. The caller holds the
 * lock. `advice` is what to look at. */
typedef struct kiln__cpu_where {
  kiln__cpu_warp *w;
  const kiln__cpu_insn *in;
  int lane;
  kiln__cpu_space space;
  uint64_t address;
  uint32_t bytes;
} kiln__cpu_where;

void kiln__cpu_find(kiln__cpu_watch *watch, unsigned check, const char *kind,
                    const kiln__cpu_where *where, const char *other,
                    const char *what, const char *advice);
/* "line 12 of file.cu", or "line 40 of the PTX" without .loc. */
void kiln__cpu_watch_line(const kiln__cpu_watch *watch,
                          const kiln__cpu_insn *in, char *buf, size_t size);
/* Thread's indices in its block. */
void kiln__cpu_watch_thread(const kiln__cpu_grid *grid, uint32_t warp,
                            uint32_t lane, uint32_t thread[3]);

#endif
