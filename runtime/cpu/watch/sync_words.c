/* sync_words.c -- finds the clocks of the memory words that threads use for
 * synchronisation.
 *
 * Problem: each strong access looks up its word. Kernels that look back over
 * tiles, and histograms in shared memory, use hundreds of thousands of words in
 * one launch, so both the time of a search and the memory must stay bounded.
 *
 * Idea: a hash table with chains that doubles when it holds as many words as
 * buckets. The words of a block's shared memory are also linked from the state
 * of the block, and are removed when the block ends.
 *
 * Invariant: each key has at most one word. Every word of shared memory belongs
 * to a block that has not ended.
 *
 * Cost: constant time per search; about 200 bytes per word, and 150 for each warp
 * that writes it. If the table cannot grow, its chains become longer.
 *
 * Source: multiplicative hashing, Knuth, The Art of Computer Programming,
 * volume 3, section 6.4. */
#include "watch_state.h"

#include <string.h>

enum { KILN__FIRST_BITS = 10 };

static kiln__cpu_sync_word **bucket_of(const kiln__cpu_sync_table *table,
                                       uint64_t key)
{
  return &table->buckets[(key * UINT64_C(0x9e3779b97f4a7c15)) >>
                         (64 - table->bits)];
}

/* Doubles the number of buckets, or allocates the first ones. */
static void grow(const kiln_allocator *a, kiln__cpu_sync_table *table)
{
  kiln__cpu_sync_table larger = {
      .bits = table->buckets == NULL ? KILN__FIRST_BITS : table->bits + 1,
      .n = table->n};
  const size_t n = table->buckets == NULL ? 0 : (size_t)1 << table->bits;

  larger.buckets =
      kiln__calloc(a, (size_t)1 << larger.bits, sizeof *larger.buckets);
  if (larger.buckets == NULL)
    return;
  for (size_t i = 0; i < n; i++) {
    while (table->buckets[i] != NULL) {
      kiln__cpu_sync_word *word = table->buckets[i];
      kiln__cpu_sync_word **bucket = bucket_of(&larger, word->key);

      table->buckets[i] = word->next;
      word->next = *bucket;
      *bucket = word;
    }
  }
  kiln__free(a, table->buckets);
  *table = larger;
}

static kiln__cpu_sync_word *add(kiln__cpu_watch *watch,
                                kiln__cpu_block_state *owner, uint64_t key)
{
  kiln__cpu_sync_table *table = &watch->sync_words;
  kiln__cpu_sync_word *word, **bucket;

  if (table->buckets == NULL || table->n >> table->bits != 0)
    grow(&watch->alloc, table);
  if (table->buckets == NULL)
    return NULL;
  word = kiln__calloc(&watch->alloc, 1, sizeof *word);
  if (word == NULL)
    return NULL;
  word->key = key;
  bucket = bucket_of(table, key);
  word->next = *bucket;
  *bucket = word;
  table->n++;
  if (owner != NULL) {
    word->next_of_block = owner->sync_words;
    owner->sync_words = word;
  }
  return word;
}

kiln__cpu_sync_word *kiln__cpu_sync_find(kiln__cpu_watch *watch,
                                         kiln__cpu_block_state *owner,
                                         uint64_t key, bool make)
{
  kiln__cpu_sync_word *word = NULL;

  if (watch->sync_words.buckets != NULL)
    word = *bucket_of(&watch->sync_words, key);
  while (word != NULL && word->key != key)
    word = word->next;
  return word == NULL && make ? add(watch, owner, key) : word;
}

uint32_t *kiln__cpu_sync_clocks(const kiln_allocator *a,
                                kiln__cpu_sync_word *word, uint32_t warp,
                                bool make)
{
  kiln__cpu_sync_lanes *lanes = word->lanes;

  while (lanes != NULL && lanes->warp != warp)
    lanes = lanes->next;
  if (lanes == NULL && make) {
    lanes = kiln__calloc(a, 1, sizeof *lanes);
    if (lanes == NULL)
      return NULL;
    lanes->warp = warp;
    lanes->next = word->lanes;
    word->lanes = lanes;
  }
  return lanes == NULL ? NULL : lanes->clocks;
}

void kiln__cpu_sync_forget(const kiln_allocator *a, kiln__cpu_sync_word *word)
{
  memset(word->warps, 0, sizeof word->warps);
  while (word->lanes != NULL) {
    kiln__cpu_sync_lanes *lanes = word->lanes;

    word->lanes = lanes->next;
    kiln__free(a, lanes);
  }
}

static void free_word(const kiln_allocator *a, kiln__cpu_sync_word *word)
{
  kiln__cpu_sync_forget(a, word);
  kiln__free(a, word->known.items);
  kiln__free(a, word);
}

void kiln__cpu_sync_end_block(kiln__cpu_watch *watch,
                              kiln__cpu_block_state *state)
{
  while (state->sync_words != NULL) {
    kiln__cpu_sync_word *word = state->sync_words;
    kiln__cpu_sync_word **at = bucket_of(&watch->sync_words, word->key);

    state->sync_words = word->next_of_block;
    while (*at != word)
      at = &(*at)->next;
    *at = word->next;
    watch->sync_words.n--;
    free_word(&watch->alloc, word);
  }
}

void kiln__cpu_sync_free(kiln__cpu_watch *watch)
{
  kiln__cpu_sync_table *table = &watch->sync_words;
  const size_t n = table->buckets == NULL ? 0 : (size_t)1 << table->bits;

  for (size_t i = 0; i < n; i++) {
    while (table->buckets[i] != NULL) {
      kiln__cpu_sync_word *word = table->buckets[i];

      table->buckets[i] = word->next;
      free_word(&watch->alloc, word);
    }
  }
  kiln__free(&watch->alloc, table->buckets);
}
