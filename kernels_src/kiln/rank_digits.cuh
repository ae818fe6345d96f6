/* rank_digits.cuh -- radix selection by many blocks in one launch.
 *
 * Idea: each digit of 8 bits, from the highest on, has its own group of blocks. The blocks
 * of a group count the digit of the words that match the preceding digits. The last block
 * of the group that adds its counts chooses the digit. The blocks of the next group wait
 * for it. So a block waits only for blocks of a lower index. The digits of the places
 * follow those of the words if equal words remain. A further group lists the selected
 * words.
 *
 * Cost: one read of the words per digit that is needed, and one to list the result. Digits
 * of places read only the places of a row that match the preceding digits.
 * Source: Alabi, Blanchard, Gordon and Steinbach, Fast k-selection algorithms for graphics
 * processing units, 2012. */
#ifndef KILN_RANK_DIGITS_CUH
#define KILN_RANK_DIGITS_CUH

#include <kiln/rank_words.cuh>

namespace kiln
{

enum : unsigned { rank_word_steps = KILN_KEY };

/* The shared memory of a block: counters while it counts, queues while it lists. */
struct rank_digit_storage {
  enum : unsigned { copies = 16 };
  union {
    unsigned count[radix_digits * copies];
    rank_queue queue[rank_warps];
  };
  bool last;
};

/* The cut after the preceding digits. */
struct rank_grid_cut {
  unsigned long long prefix, place, want, left;
  unsigned shift, place_shift, done;

  /* Returns the digits of a word that are above `shift`, which is at most the number of
   * bits of a word. */
  __device__ __forceinline__ unsigned long long upper(rank_key w) const
  {
    return static_cast<unsigned long long>(w) >> shift / 2 >> shift / 2;
  }
  /* Returns whether word and place match all digits that have been examined. */
  __device__ __forceinline__ bool matches(rank_key w,
                                          unsigned long long i) const
  {
    return upper(w) == prefix && i >> place_shift == place;
  }
  /* Returns whether the word is selected. */
  __device__ __forceinline__ bool selects(rank_key w,
                                          unsigned long long i) const
  {
    const unsigned long long mine = upper(w);

    return mine < prefix || (mine == prefix && i >> place_shift <= place);
  }
};

/* Waits until the group of a step has chosen its digit. */
__device__ __forceinline__ rank_grid_cut rank_cut_after(const rank_step *step)
{
  if (threadIdx.x == 0) {
    while (word_load(&step->turn) == 0)
      tile_pause();
    __threadfence();
  }
  __syncthreads();
  return {__ldcg(&step->prefix), __ldcg(&step->place),
          __ldcg(&step->want),   __ldcg(&step->left),
          __ldcg(&step->shift),  __ldcg(&step->place_shift),
          __ldcg(&step->done)};
}

/* Publishes a cut for the next group, or for all later groups if no digit is needed any
 * more. One thread calls this function. */
__device__ __forceinline__ void rank_publish(rank_step *steps, unsigned step,
                                             unsigned n, const rank_grid_cut &c)
{
  const unsigned end = c.done != 0 ? n : step + 1;

  for (unsigned k = step; k < end; ++k) {
    steps[k].prefix = c.prefix;
    steps[k].place = c.place;
    steps[k].want = c.want;
    steps[k].left = c.left;
    steps[k].shift = c.shift;
    steps[k].place_shift = c.place_shift;
    steps[k].done = c.done;
  }
  __threadfence();
  for (unsigned k = step; k < end; ++k)
    word_store(&steps[k].turn, 1);
}

/* Chooses the digit from the counts of all blocks. If the keys changed during the launch,
 * there may be no such digit. The selection then ends here, so that no block waits. */
__device__ __forceinline__ void
rank_choose_digit(rank_step *steps, unsigned step, unsigned n, rank_grid_cut c)
{
  const unsigned digit = threadIdx.x;
  const unsigned long long total =
      digit < radix_digits ? __ldcg(&steps[step].counts[digit]) : 0;
  const unsigned long long start = block_scan_exclusive(total, sum(), 0ull);
  const bool mine = start < c.want && c.want <= start + total;

  if (!block_any(mine)) {
    c.done = 1;
    if (threadIdx.x == 0)
      rank_publish(steps, step, n, c);
    return;
  }
  if (!mine)
    return;
  if (step < rank_word_steps) {
    c.prefix = c.prefix << radix_bits | digit;
    c.place_shift = 63;
  } else {
    c.place = c.place << radix_bits | digit;
  }
  c.want -= start;
  c.left = total;
  c.done = step + 1 == n || (KILN_PLACE > 0 && c.want == c.left) ? 1 : 0;
  rank_publish(steps, step, n, c);
}

/* A visitor that counts one digit of the words, or of the places, that match. */
struct rank_counter {
  const rank_grid_cut before;
  unsigned *count; /* counters of the lane, one per digit */
  unsigned shift;  /* lowest bit of the digit */
  bool of_places;

  __device__ __forceinline__ void single(bool valid, rank_key w,
                                         unsigned long long i)
  {
    const unsigned long long from =
        of_places ? i : static_cast<unsigned long long>(w);

    if (valid && before.matches(w, i))
      atomicAdd(&count[radix_digit(from, shift, radix_digits - 1) *
                       rank_digit_storage::copies],
                1u);
  }
  __device__ __forceinline__ void batch(const rank_key (&word)[rank_slots],
                                        unsigned mask, rank_batch places)
  {
#pragma unroll
    for (unsigned e = 0; e < rank_slots; ++e)
      single((mask >> e & 1u) != 0, word[e], places.of(e));
  }
};

/* Counts one digit. Of a row, only the places that match the preceding digits of the
 * places are read. */
__device__ __forceinline__ void
rank_count_digit(rank_digit_storage &r, const rank_source &from,
                 unsigned worker, unsigned workers, unsigned step, unsigned n,
                 rank_grid_cut &c)
{
  const bool of_places = step >= rank_word_steps;
  const bool part = step > rank_word_steps && !from.listed;
  const unsigned long long begin = part ? c.place << c.place_shift : 0;
  const unsigned long long end =
      part ? min()(from.n, (c.place + 1) << c.place_shift) : from.n;
  const rank_grid_cut before = c;

  if (of_places)
    c.place_shift = (n - 1 - step) * radix_bits;
  else
    c.shift -= radix_bits;
  {
    rank_counter v = {before, r.count + lane() % rank_digit_storage::copies,
                      of_places ? c.place_shift : c.shift, of_places};

    from.visit(begin, end, worker, workers, v);
  }
}

#if KILN_PLACE == 0
/* Adds `n` words that are equal to `word` and not listed. One thread calls this
 * function. */
__device__ __forceinline__ void
rank_count_end(rank_step *step, const rank_grid_cut &before, unsigned shift,
               unsigned long long word, unsigned long long n)
{
  if (n > 0 && before.matches(static_cast<rank_key>(word), 0))
    atomicAdd(&step->counts[radix_digit(word, shift, radix_digits - 1)], n);
}
#endif

/* Examines one digit: the blocks of a group count, and the last one chooses. */
__device__ __forceinline__ void
rank_examine(rank_digit_storage &r, const rank_source &from, unsigned worker,
             unsigned workers, const rank_state *state, rank_step *steps,
             unsigned step, unsigned n, rank_grid_cut c)
{
#if KILN_PLACE == 0
  if (from.listed && worker == 0 && threadIdx.x == 0) {
    const unsigned shift = c.shift - radix_bits;

    rank_count_end(&steps[step], c, shift, state->low, state->at_low);
    rank_count_end(&steps[step], c, shift, state->high, state->at_high);
  }
#else
  (void)state;
#endif
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < radix_digits * rank_digit_storage::copies;
       i += KILN_BLOCK)
    r.count[i] = 0;
  __syncthreads();
  rank_count_digit(r, from, worker, workers, step, n, c);
  __syncthreads();
  if (threadIdx.x < radix_digits) {
    unsigned total = 0;

#pragma unroll
    for (unsigned k = 0; k < rank_digit_storage::copies; ++k)
      total += r.count[threadIdx.x * rank_digit_storage::copies +
                       (k + lane()) % rank_digit_storage::copies];
    if (total > 0)
      atomicAdd(&steps[step].counts[threadIdx.x],
                static_cast<unsigned long long>(total));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    r.last = atomicAdd(&steps[step].ticket, 1u) == workers - 1;
    __threadfence();
  }
  __syncthreads();
  if (r.last)
    rank_choose_digit(steps, step, n, c);
}

#if KILN_PLACE > 0
struct rank_selected {
  const rank_grid_cut &c;

  __device__ __forceinline__ bool operator()(rank_key w,
                                             unsigned long long i) const
  {
    return c.selects(w, i);
  }
};

/* Lists the selected words and their places. */
__device__ __forceinline__ void
rank_collect(rank_digit_storage &r, const rank_args &s, rank_state *state,
             const rank_source &from, unsigned worker, const rank_grid_cut &c)
{
  const unsigned long long list = blockIdx.y * s.kept;
  rank_lister<rank_selected> v = {{c},
                                  {r.queue[warp()], &state->chosen,
                                   s.chosen_words + list,
                                   s.chosen_places + list, s.kept, 0},
                                  from.in,
                                  s.order};

  from.visit(0, from.n, worker, s.workers, v);
  v.append.end();
}
#else
/* A visitor that finds the least word above another word. */
struct rank_follower {
  const unsigned long long word;
  unsigned long long next;

  __device__ __forceinline__ void single(bool valid, rank_key w, rank_place)
  {
    if (valid && w > word && w < next)
      next = w;
  }
  __device__ __forceinline__ void batch(const rank_key (&w)[rank_slots],
                                        unsigned mask, rank_batch)
  {
#pragma unroll
    for (unsigned e = 0; e < rank_slots; ++e)
      single((mask >> e & 1u) != 0, w[e], 0);
  }
};

/* Finds the least word above the selected one, if the result needs it. */
__device__ __forceinline__ void
rank_collect(rank_digit_storage &r, const rank_args &s, rank_state *state,
             const rank_source &from, unsigned worker, const rank_grid_cut &c)
{
  rank_follower v = {c.prefix, ~0ull};

  if ((s.targets.more >> blockIdx.y % s.targets.n & 1u) == 0 || c.want < c.left)
    return;
  if (from.listed && worker == 0) {
    v.single(state->at_low > 0, static_cast<rank_key>(state->low), 0);
    v.single(state->at_high > 0, static_cast<rank_key>(state->high), 0);
  }
  from.visit(0, from.n, worker, s.workers, v);
  v.next = block_reduce_first<KILN_BLOCK>(v.next, min());
  if (threadIdx.x == 0)
    atomicMin(&state->next, v.next);
}
#endif

/* Does the part of this block in the selection of the row or of the candidates. All blocks
 * of the grid call this function after launch_wait(), with blockIdx.x below
 * workers * (steps + 1). Returns, in all threads, true in the last block that has listed
 * selected words. */
__device__ __forceinline__ bool rank_by_digits(rank_digit_storage &r,
                                               const rank_args &s,
                                               rank_state *state, bool listed)
{
  rank_step *const steps = reinterpret_cast<rank_step *>(state + 1);
  const unsigned step = blockIdx.x / s.workers, worker = blockIdx.x % s.workers;
  const unsigned long long list = blockIdx.y * s.capacity;
  const unsigned long long rank = s.targets.rank[blockIdx.y % s.targets.n];
  const rank_source from = {
      rank_row(s),     s.words + list,
      s.places + list, listed ? __ldcg(&state->found) : s.n,
      s.order,         listed};
  const rank_grid_cut start = {
      0, 0, listed ? rank - __ldcg(&state->below) : rank, 0, rank_bits, 63, 0};
  const rank_grid_cut c = step == 0 ? start : rank_cut_after(&steps[step - 1]);

  if (step < s.steps) {
    if (c.done == 0)
      rank_examine(r, from, worker, s.workers, state, steps, step, s.steps, c);
    return false;
  }
  rank_collect(r, s, state, from, worker, c);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    r.last = atomicAdd(&state->ticket, 1ull) == s.workers - 1;
    __threadfence();
  }
  __syncthreads();
  const bool last = r.last;

  /* The caller may use the shared memory. */
  __syncthreads();
  return last;
}

} // namespace kiln

#endif
