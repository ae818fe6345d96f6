/* watch_state.h -- declares the state of the checks while one launch runs.
 * Private to watch/.
 *
 * A clock counts the synchronisations of one block, warp or lane. A time stamp
 * records the clocks of the accessing lane at the time of the access. Two
 * accesses are ordered if the later thread has learnt a clock of the earlier
 * thread that is at least the value in the time stamp. See race_check.c. */
#ifndef KILN_CPU_WATCH_STATE_H
#define KILN_CPU_WATCH_STATE_H

#include "../memory/address_space.h"
#include "watch.h"

/* A sparse vector clock, sorted by block number. It stores the latest known
 * clock of each block that has an entry. */
typedef struct kiln__cpu_clocks {
  struct kiln__cpu_clock {
    uint32_t block, time;
  } * items;
  uint32_t n, capacity;
} kiln__cpu_clocks;

/* The time stamp of an access: the thread that accessed a 32-bit word, and the
 * values of its clocks at that time. */
typedef struct kiln__cpu_stamp {
  /* accessing instruction; NULL before the first access */
  const kiln__cpu_insn *in;
  /* number of the accessing block, and the clock of the block */
  uint32_t block, time;
  uint32_t warp_clock, lane_clock;
  uint8_t warp, lane;
  uint8_t bytes; /* bit mask of the accessed bytes within the 32-bit word */
  /* true for atomic, volatile and relaxed accesses; two of these never race
   * with each other */
  uint8_t strong : 1;
  /* true for an access of an asynchronous operation; the thread is then the one
   * that issued the operation */
  uint8_t async : 1;
  /* id of the asynchronous operation; for threads, the number of proxy fences
   * that the block had executed before the access */
  uint32_t mark;
} kiln__cpu_stamp;

/* The shadow cell of one 32-bit word of memory: the time stamps of the last
 * writer and of the last readers from two different warps. */
typedef struct kiln__cpu_cell {
  kiln__cpu_stamp writer, reader[2];
} kiln__cpu_cell;

enum { KILN__PAGE_WORDS = 1024, KILN__PAGE_BYTES = 4096 };

/* The shadow cells of 4 KiB of global memory. They are allocated at the first
 * access and found by hashing. */
typedef struct kiln__cpu_page {
  uint64_t number;
  kiln__cpu_cell *cells;
  struct kiln__cpu_page *next;
} kiln__cpu_page;

enum { KILN__N_BUCKETS = 4096, KILN__MAX_WARPS = 32 };

/* The clocks of the lanes of one warp that the lanes of this warp published. */
typedef struct kiln__cpu_sync_lanes {
  uint32_t warp, clocks[KILN__WARP];
  struct kiln__cpu_sync_lanes *next;
} kiln__cpu_sync_lanes;

/* A memory word that threads use for synchronisation, with the clocks that its
 * last writers had published at the time of the write. A reader of the word
 * learns these clocks. */
typedef struct kiln__cpu_sync_word {
  uint64_t key;
  kiln__cpu_clocks known;
  /* block of the last writer; `warps` and `lanes` refer to this block */
  uint32_t block;
  uint32_t warps[KILN__MAX_WARPS];
  kiln__cpu_sync_lanes *lanes; /* one per warp that wrote the word */
  /* next word of the bucket, and of the block whose shared memory has the
   * word */
  struct kiln__cpu_sync_word *next, *next_of_block;
} kiln__cpu_sync_word;

/* A hash table of `n` synchronisation words in 2^bits buckets. */
typedef struct kiln__cpu_sync_table {
  kiln__cpu_sync_word **buckets; /* NULL before the first word */
  unsigned bits;
  size_t n;
} kiln__cpu_sync_table;

/* The clocks that one warp knows: the clocks of all warps of its block, and,
 * for each lane of the warp, the clocks of all lanes. warps[i] of warp i is
 * that warp's own clock, as is lanes[i][i] for lane i. `fenced` is a copy of
 * `warps` made at the last fence. */
typedef struct kiln__cpu_warp_clocks {
  uint32_t warps[KILN__MAX_WARPS], fenced[KILN__MAX_WARPS];
  uint32_t lanes[KILN__WARP][KILN__WARP];
  uint32_t fenced_time; /* clock of the block at the last fence */
} kiln__cpu_warp_clocks;

enum {
  KILN__N_ASYNC = 4096,  /* asynchronous operations that are remembered */
  KILN__N_SEEN = 32,     /* warps per operation that know of its completion */
  KILN__N_SIGNALS = 256, /* per block: operations that signal mbarriers */
  KILN__N_STORES = 64    /* per warp: bulk stores that are not waited for */
};

/* An asynchronous operation, and the warps that know that it is complete. A warp
 * knows it from the moment at which its clocks had the given values. */
typedef struct kiln__cpu_async_op {
  kiln__cpu_async id;
  bool everybody; /* the operation counts as complete for all threads */
  uint32_t n;
  struct kiln__cpu_seen {
    uint32_t block, time, warp_clock;
    uint32_t warp;
  } seen[KILN__N_SEEN];
} kiln__cpu_async_op;

/* An operation that completes with a phase of an mbarrier. `epoch` counts the
 * phases of this mbarrier that operations signalled. */
typedef struct kiln__cpu_signal {
  kiln__cpu_async id;
  uint32_t address, phase, epoch;
} kiln__cpu_signal;

/* The bulk stores of a warp that no wait_group covers yet. `group` is the number
 * of a store's commit group, and `groups` the number of the open group of each
 * lane. */
typedef struct kiln__cpu_stores {
  struct kiln__cpu_pending_store {
    kiln__cpu_async read, write;
    uint32_t lane, group;
  } pending[KILN__N_STORES];
  uint32_t n, groups[KILN__WARP];
} kiln__cpu_stores;

/* The state of the checks for one block. */
typedef struct kiln__cpu_block_state {
  /* one shadow cell per 32-bit word; NULL without the race check */
  kiln__cpu_cell *shared;
  /* initialisation bitmap of shared memory, with one bit per byte; NULL without
   * the initialisation check */
  uint8_t *shared_valid;
  uint32_t n_words;
  uint32_t time;
  kiln__cpu_clocks known;
  kiln__cpu_warp_clocks *warps;
  kiln__cpu_sync_word *sync_words; /* list of the words in shared memory */
  uint32_t proxy_fences;           /* number of fence.proxy.async executed */
  kiln__cpu_signal *signals; /* ring of KILN__N_SIGNALS entries, or NULL */
  uint32_t n_signals;
  kiln__cpu_stores *stores; /* one entry per warp, or NULL */
  /* next entry in the list of unused block states */
  struct kiln__cpu_block_state *next;
} kiln__cpu_block_state;

/* A finding and the instruction that it was found at. */
typedef struct kiln__cpu_found {
  kiln_cpu_finding finding;
  const kiln__cpu_insn *in;
  struct kiln__cpu_found *next;
} kiln__cpu_found;

/* The instruction counts of one worker thread for one function. */
typedef struct kiln__cpu_tallies {
  unsigned thread;
  const kiln__cpu_code *code;
  kiln__cpu_tally *tally;
  struct kiln__cpu_tallies *next;
} kiln__cpu_tallies;

struct kiln__cpu_watch {
  kiln_allocator alloc;
  /* references: one for the launch, and one for each launch that its kernels
   * made and that has not ended */
  atomic_uint refs;
  struct kiln__cpu_origin *origin; /* see launch_check.h; NULL if none */
  unsigned checks;
  bool counters;
  const kiln__cpu_program *program;
  const kiln__cpu_code *code;
  pthread_mutex_t lock; /* guards all members below */
  kiln__cpu_tallies *tallies;
  kiln__cpu_found *found, **last;
  unsigned n_found;
  kiln__cpu_page *pages[KILN__N_BUCKETS], *last_page;
  kiln__cpu_sync_table sync_words;
  /* list of block states for reuse, from blocks that have ended */
  kiln__cpu_block_state *spare;
  /* ring of KILN__N_ASYNC operations, or NULL; id of the last operation */
  kiln__cpu_async_op *async;
  kiln__cpu_async last_async;
};

/* Functions on sparse vector clocks, defined in clocks.c. The first function
 * raises the clock of one block, the second raises the clocks of all blocks in
 * `from`. Both return false, and leave the vector clock unchanged, if out of
 * memory. The third function returns the clock of a block, or 0 if the block
 * has no entry. The caller holds the lock of the watch object. */
bool kiln__cpu_clocks_raise(const kiln_allocator *a, kiln__cpu_clocks *c,
                            uint32_t block, uint32_t time);
bool kiln__cpu_clocks_join(const kiln_allocator *a, kiln__cpu_clocks *to,
                           const kiln__cpu_clocks *from);
uint32_t kiln__cpu_clocks_of(const kiln__cpu_clocks *c, uint32_t block);

/* Checks one access of the lanes in `mask` for races and records the access.
 * `target` is the block whose shared memory is accessed. The caller holds the
 * lock of the watch object. Defined in race_check.c. */
void kiln__cpu_race_access(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                           const kiln__cpu_insn *in,
                           const kiln__cpu_block *target, kiln__cpu_space space,
                           const uint64_t *address, uint32_t mask,
                           uint32_t bytes, kiln__cpu_access access);
void kiln__cpu_race_free(kiln__cpu_watch *watch);
/* Returns the shadow cell of an address. Returns NULL if out of memory or if
 * the address is beyond shared memory; the access is then not checked. */
kiln__cpu_cell *kiln__cpu_race_cell(kiln__cpu_watch *watch,
                                    const kiln__cpu_block_state *state,
                                    kiln__cpu_space space, uint64_t address);
/* Returns the shadow cell of an address of global memory, or NULL if it was never
 * accessed. The caller holds the lock of the watch object. */
const kiln__cpu_cell *kiln__cpu_race_find(const kiln__cpu_watch *watch,
                                          uint64_t address);
/* Returns true if an access of `lane` is ordered after the stamp. */
bool kiln__cpu_race_ordered(const kiln__cpu_block_state *state,
                            const kiln__cpu_warp *w, uint32_t lane,
                            const kiln__cpu_stamp *before);
/* Returns the stamp of an access of `lane` to the bytes of a word. */
kiln__cpu_stamp kiln__cpu_race_stamp(const kiln__cpu_block_state *state,
                                     const kiln__cpu_warp *w,
                                     const kiln__cpu_insn *in, uint32_t lane,
                                     uint8_t bytes, bool strong);
/* Records an access in its shadow cell. */
void kiln__cpu_race_note(kiln__cpu_cell *cell, const kiln__cpu_stamp *stamp,
                         bool write);
/* Writes who made an earlier access, and where, for a finding. */
void kiln__cpu_race_other(const kiln__cpu_watch *watch, const kiln__cpu_grid *g,
                          const kiln__cpu_stamp *before, bool wrote, char *buf,
                          size_t size);
/* Returns true if the warp knows that the asynchronous operation of the stamp is
 * complete. Defined in async_check.c, as the following functions. */
bool kiln__cpu_async_complete(const kiln__cpu_watch *watch,
                              const kiln__cpu_block_state *state,
                              const kiln__cpu_warp *w,
                              const kiln__cpu_stamp *before);
/* Prepare the state of a block that starts, and free it. */
void kiln__cpu_async_start(kiln__cpu_block_state *state);
void kiln__cpu_async_free(const kiln_allocator *a,
                          kiln__cpu_block_state *state);

/* Returns the synchronisation word with the given key. If there is none, returns
 * NULL or, if `make` is true, a new word; NULL if out of memory. `owner` is the
 * block whose shared memory has the word, or NULL for global memory. The caller
 * of these functions holds the lock of the watch object. Defined in
 * sync_words.c. */
kiln__cpu_sync_word *kiln__cpu_sync_find(kiln__cpu_watch *watch,
                                         kiln__cpu_block_state *owner,
                                         uint64_t key, bool make);
/* Returns the clocks that the lanes of a warp published in the word, or NULL if
 * there are none. If `make` is true, clocks of 0 are added in this case; NULL
 * then means out of memory. */
uint32_t *kiln__cpu_sync_clocks(const kiln_allocator *a,
                                kiln__cpu_sync_word *word, uint32_t warp,
                                bool make);
/* Removes what the warps of the word's block published. */
void kiln__cpu_sync_forget(const kiln_allocator *a, kiln__cpu_sync_word *word);
/* Removes the words in the shared memory of a block that ends. */
void kiln__cpu_sync_end_block(kiln__cpu_watch *watch,
                              kiln__cpu_block_state *state);
void kiln__cpu_sync_free(kiln__cpu_watch *watch);

/* Checks that the bytes of a read were written before, and marks the bytes of a
 * write as initialised. `target` is the block whose shared memory is accessed. The caller holds the lock of the watch object. Defined
 * in init_check.c. */
void kiln__cpu_init_access(kiln__cpu_watch *watch, kiln__cpu_warp *w,
                           const kiln__cpu_insn *in,
                           const kiln__cpu_block *target, kiln__cpu_space space,
                           const uint64_t *address, uint32_t mask,
                           uint32_t bytes, kiln__cpu_access access);

/* The access that a finding describes. */
typedef struct kiln__cpu_where {
  kiln__cpu_warp *w;
  const kiln__cpu_insn *in;
  int lane;
  kiln__cpu_space space;
  uint64_t address;
  uint32_t bytes;
} kiln__cpu_where;

/* Checks an access of one lane to the bytes `which` of the 32-bit word of global
 * memory at `word` against the accesses of the grids that launched this one.
 * Defined in launch_check.c. */
void kiln__cpu_ancestor_check(const kiln__cpu_where *where, uint64_t word,
                              uint8_t which, bool strong, bool write);

/* Records a finding, or one more occurrence of a recorded finding. `other`
 * describes the other access of a race. `what` completes the sentence "thread
 * (x,y,z) ...". `advice` completes "look at: ...". The caller holds the lock of
 * the watch object. */
void kiln__cpu_find(kiln__cpu_watch *watch, unsigned check, const char *kind,
                    const kiln__cpu_where *where, const char *other,
                    const char *what, const char *advice);
/* Writes the source position of an instruction, for example "line 12 of
 * file.cu". If the PTX has no .loc, it writes for example "line 40 of the
 * PTX". */
void kiln__cpu_watch_line(const kiln__cpu_watch *watch,
                          const kiln__cpu_insn *in, char *buf, size_t size);
/* Stores the three-dimensional index of a thread in its block, computed from
 * the thread's warp and lane. */
void kiln__cpu_watch_thread(const kiln__cpu_grid *grid, uint32_t warp,
                            uint32_t lane, uint32_t thread[3]);

#endif
