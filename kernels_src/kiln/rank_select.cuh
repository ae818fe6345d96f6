/* rank_select.cuh -- building blocks of selections: the data that the kernels of a
 * selection share, selection by one block, and lists that many warps append to.
 *
 * A selection compares words, the keys encoded as unsigned integers (radix.cuh). The
 * words of a top-k are ordered so that the best key has the lowest word. Words of equal
 * keys are ordered by place, the index of the key in its row.
 *
 * The file of the kernel defines, before it includes this file:
 *   KILN_BLOCK  threads per block, a multiple of 32, at least 256
 *   KILN_KEY    bytes per key: 1, 2, 4 or 8
 *   KILN_FLOAT  1 if keys are floats
 *   KILN_PLACE  bytes per place, 4 or 8; 0 if the selection needs no places */
#ifndef KILN_RANK_SELECT_CUH
#define KILN_RANK_SELECT_CUH

#define KILN_FLAT_BLOCK 1
#include <kiln/radix.cuh>

namespace kiln
{

typedef unsigned_of<KILN_KEY>::type rank_key;
typedef unsigned_of<KILN_PLACE == 8 ? 8 : 4>::type rank_place;

enum : unsigned { rank_bits = 8 * KILN_KEY, rank_most_targets = 16 };

/* ---- Data that the kernels share ----------------------------------------- */

/* One digit of a selection by many blocks, and the cut after this digit. A word w
 * belongs to the selection if w >> shift is less than `prefix`. If they are equal, it
 * belongs to the selection if place >> place_shift is at most `place`. All memory is 0
 * before the first block starts. */
struct rank_step {
  unsigned long long counts[radix_digits];
  unsigned long long prefix, place;
  unsigned long long
      want; /* how many of the words with the prefix are selected */
  unsigned long long left; /* number of words with the prefix */
  unsigned shift, place_shift;
  unsigned done;           /* 1 if later digits need not be examined */
  unsigned ticket;         /* number of blocks that have added their counts */
  unsigned long long turn; /* 1 after the members above are valid */
  unsigned long long reserved;
};

/* The state of one selection; one rank_step per digit follows it in memory.
 *
 * With places, candidates are the pairs of word and place up to (high, place), in the
 * order of words and then of places. Without places, they are the words from `low` to
 * `high`. The list then contains only the words between these two, and the others are
 * counted, so that few different values do not overflow it. */
struct rank_state {
  unsigned long long low, high, place;
  unsigned long long below; /* number of words below `low` */
  unsigned long long
      found; /* length of the list of candidates, if it had no end */
  unsigned long long at_low,
      at_high;               /* numbers of words equal to `low`, `high` */
  unsigned long long chosen; /* length of the list of selected words */
  unsigned long long next; /* least word above the selected one, at first ~0 */
  unsigned long long
      ticket; /* number of blocks that have listed selected words */
};

/* What to select. Selection number q of a row ends with the rank[q] lowest words. The
 * word after them must be a candidate, too, if bit q of `more` is set. Of the samples
 * in ascending order, number low[q] and number high[q] bound the candidates; they are
 * counted from 1. 0 means no lower bound, and a number above `samples` no upper
 * bound. */
struct rank_targets {
  unsigned long long rank[rank_most_targets];
  unsigned low[rank_most_targets], high[rank_most_targets];
  unsigned n, more;
};

/* The arguments of the kernels that prepare a selection of rows. The grid has one row
 * of blocks (blockIdx.y) per selection. */
struct rank_args {
  const rank_key *in;
  unsigned long long n; /* keys per row of the input */
  unsigned char *states;
  rank_key *words;    /* `capacity` candidates per selection */
  rank_place *places; /* their places, unless KILN_PLACE is 0 */
  rank_key
      *chosen_words; /* `kept` selected words per selection, and their places */
  rank_place *chosen_places;
  unsigned long long capacity, kept;
  unsigned long long stride; /* distance of two samples */
  radix_order order;
  unsigned samples; /* number of samples; 0 if all words are examined */
  unsigned steps;   /* number of rank_steps per selection */
  unsigned workers; /* blocks per digit */
  unsigned epoch;   /* epoch of the tile descriptors */
  unsigned long long *descriptors; /* of the blocks that take the sample */
  rank_targets targets;
};

__device__ __forceinline__ rank_state *rank_state_of(const rank_args &s,
                                                     unsigned selection)
{
  return reinterpret_cast<rank_state *>(
      s.states + static_cast<unsigned long long>(selection) *
                     (sizeof(rank_state) + s.steps * sizeof(rank_step)));
}

/* Returns whether the candidates contain all words that decide the result. */
__device__ __forceinline__ bool rank_listed(const rank_args &s,
                                            const rank_state *state, unsigned q)
{
  const unsigned long long below = __ldcg(&state->below);
  const unsigned long long found = __ldcg(&state->found);
  const unsigned long long ends =
      KILN_PLACE > 0 ? 0 : __ldcg(&state->at_low) + __ldcg(&state->at_high);

  return found <= s.capacity && below < s.targets.rank[q] &&
         s.targets.rank[q] + (s.targets.more >> q & 1u) <= below + found + ends;
}

__device__ __forceinline__ rank_key rank_word(rank_key raw, radix_order order)
{
  return radix_encode<KILN_FLOAT != 0>(raw, order);
}

/* ---- Selection by one block ---------------------------------------------- */

/* The cut of a selection by one block: the selected words are those whose upper bits
 * are below `prefix`, and `want` of the `left` words whose upper bits are equal. */
template <class Word> struct rank_cut {
  Word prefix;
  unsigned shift, want, left;

  __device__ __forceinline__ bool below(Word w) const
  {
    return static_cast<Word>(w >> shift) < prefix;
  }
  __device__ __forceinline__ bool at(Word w) const
  {
    return static_cast<Word>(w >> shift) == prefix;
  }
};

struct rank_counters {
  enum : unsigned { copies = 8 };
  unsigned count[radix_digits * copies];
  unsigned long long all_or, all_and; /* over all words */
  unsigned digit, want, left;
};

/* Returns the number of bits below the common prefix of all words, at least 8, and the
 * prefix in *prefix. */
template <class Word, unsigned unroll, class WordOf>
__device__ __forceinline__ unsigned rank_common(rank_counters &r, unsigned m,
                                                WordOf word_of, Word *prefix)
{
  Word any = 0, all = static_cast<Word>(~Word(0));
  unsigned bits;

  if (threadIdx.x == 0) {
    r.all_or = 0;
    r.all_and = ~0ull;
  }
  __syncthreads();
#pragma unroll unroll
  for (unsigned i = threadIdx.x; i < m; i += KILN_BLOCK) {
    Word w;

    if (word_of(i, w)) {
      any = static_cast<Word>(any | w);
      all = static_cast<Word>(all & w);
    }
  }
  any = warp_reduce(any, bit_or());
  all = warp_reduce(all, bit_and());
  if (lane() == 0) {
    atomicOr(&r.all_or, static_cast<unsigned long long>(any));
    atomicAnd(&r.all_and, static_cast<unsigned long long>(all));
  }
  __syncthreads();
  bits = 64 - static_cast<unsigned>(
                  __clzll(static_cast<long long>(r.all_or ^ r.all_and)));
  bits = bits < radix_bits ? static_cast<unsigned>(radix_bits) : bits;
  *prefix = static_cast<Word>(r.all_or >> (bits - 1) >> 1);
  return bits;
}

/* Chooses the digit of the last of the `want` lowest words, from the counts of the words
 * that match. */
__device__ __forceinline__ void rank_choose(rank_counters &r, unsigned want)
{
  unsigned total = 0, start;

  if (threadIdx.x < radix_digits)
#pragma unroll
    for (unsigned c = 0; c < rank_counters::copies; ++c)
      total += r.count[threadIdx.x * rank_counters::copies +
                       (c + lane()) % rank_counters::copies];
  start = block_scan_exclusive(total, kiln::sum(), 0u);
  if (start < want && want <= start + total) {
    r.digit = threadIdx.x;
    r.want = want - start;
    r.left = total;
  }
  __syncthreads();
}

/* Finds a cut such that the `want` lowest of m words are selected or have the prefix,
 * with want at least 1. It examines digits of up to 8 bits, from the highest one on in
 * which words differ, at least one digit. It stops as soon as at most `most` words are
 * selected or have the prefix, so that `shift` may remain above 0. word_of(i, w) sets w
 * to word i, and returns false if there is none; `unroll` of its loads are in flight per
 * thread. All threads call this function after a barrier. */
template <class Word, unsigned unroll = 4, class WordOf>
__device__ __forceinline__ rank_cut<Word>
rank_block(rank_counters &r, unsigned m, unsigned want, unsigned most,
           WordOf word_of)
{
  const unsigned copy = lane() % rank_counters::copies;
  rank_cut<Word> cut = {0, 0, want, m};

  cut.shift = rank_common<Word, unroll>(r, m, word_of, &cut.prefix);
  do {
    const unsigned width =
        cut.shift < radix_bits ? cut.shift : static_cast<unsigned>(radix_bits);

    cut.shift -= width;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < radix_digits * rank_counters::copies;
         i += KILN_BLOCK)
      r.count[i] = 0;
    __syncthreads();
#pragma unroll unroll
    for (unsigned i = threadIdx.x; i < m; i += KILN_BLOCK) {
      Word w;

      if (word_of(i, w) &&
          static_cast<Word>(w >> cut.shift >> width) == cut.prefix)
        atomicAdd(&r.count[radix_digit(w, cut.shift, (1u << width) - 1) *
                               rank_counters::copies +
                           copy],
                  1u);
    }
    __syncthreads();
    rank_choose(r, cut.want);
    cut.prefix = static_cast<Word>(cut.prefix << width | r.digit);
    cut.want = r.want;
    cut.left = r.left;
    __syncthreads();
  } while (cut.shift > 0 && want - cut.want + cut.left > most);
  return cut;
}

/* ---- Lists --------------------------------------------------------------- */

/* A list in global memory to which many warps append words and places, in no
 * particular order. A warp collects entries in shared memory and appends many of them at a
 * time, so that the length of the list needs few atomic operations. */
struct rank_queue {
  enum : unsigned {
    enough = (KILN_PLACE > 0 ? 1 : 4) * warp_size, /* entries per append */
    most = enough + warp_size
  };
  rank_key word[most];
#if KILN_PLACE > 0
  rank_place place[most];
#endif

  __device__ __forceinline__ void set(unsigned i, rank_key w, rank_place at)
  {
    word[i] = w;
#if KILN_PLACE > 0
    place[i] = at;
#endif
  }
};

struct rank_appender {
  rank_queue &queue; /* the queue of the warp */
  unsigned long long *length;
  rank_key *words;
  rank_place *places;
  unsigned long long
      capacity;     /* entries beyond it are counted, but not stored */
  unsigned waiting; /* entries in the queue, the same in all lanes */

  /* Appends the first n entries of the queue. */
  __device__ __forceinline__ void flush(unsigned n)
  {
    unsigned long long to = 0;

    warp_sync();
    if (lane() == 0)
      to = atomicAdd(length, static_cast<unsigned long long>(n));
    to = warp_broadcast(to, 0);
    for (unsigned i = lane(); i < n && to + i < capacity; i += warp_size) {
      words[to + i] = queue.word[i];
#if KILN_PLACE > 0
      places[to + i] = queue.place[i];
#endif
    }
    warp_sync();
  }

  /* Appends the entries of the lanes with `hit`. All lanes call this function. */
  __device__ __forceinline__ void push(bool hit, rank_key word,
                                       rank_place place)
  {
    constexpr unsigned enough = rank_queue::enough;
    const unsigned votes = warp_ballot(hit);

    if (hit)
      queue.set(waiting +
                    static_cast<unsigned>(__popc(votes & ((1u << lane()) - 1))),
                word, place);
    waiting += static_cast<unsigned>(__popc(votes));
    if (waiting < enough)
      return;
    flush(enough);
    waiting -= enough;
    if (lane() < waiting)
#if KILN_PLACE > 0
      queue.set(lane(), queue.word[enough + lane()],
                queue.place[enough + lane()]);
#else
      queue.set(lane(), queue.word[enough + lane()], 0);
#endif
    warp_sync();
  }

  __device__ __forceinline__ void end()
  {
    if (waiting > 0)
      flush(waiting);
    waiting = 0;
  }
};

} // namespace kiln

#endif
