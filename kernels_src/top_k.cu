/* top_k.cu -- write the k best keys of each row and their places: one block per row
 * selects and sorts up to 2,048 of them.
 *
 * Idea: the block finds a cut (rank_select.cuh) such that the k lowest words, and at most
 * KILN_MOST words in total, are below it. It copies these words and their places to shared
 * memory and sorts them there. Words are the keys of the row if the row is short
 * (top_k_row). Otherwise they are the candidates that rank_filter has listed (top_k_list).
 * If the candidates do not suffice, the same launch selects k words of the row
 * (rank_digits.cuh), and the last block sorts them.
 *
 * Invariant: pairs of word and place are different, so their order, and the result, do
 * not depend on the order of the lists.
 *
 * Cost: the words are read once, and twice more plus once per digit if there are too many
 * to sort all. They are in the second-level cache. More than 2,048 keys are sorted by two
 * radix sorts, first by place and then by word. Afterwards top_k_emit writes them.
 *
 * Parameters:
 *   KILN_BLOCK    (KILN_ARCH == 53 ? 512 : KILN_ARCH == 62 ? 512 : 1024)  threads per
 *                                block, a multiple of 32, at least 256; a block of compute
 *                                capability 5.3 or 6.2 has half as many registers
 *   KILN_ITEMS    2              vectors of 16 bytes in flight per thread in top_k_list
 *   KILN_KEY      4              bytes per key: 1, 2, 4 or 8
 *   KILN_FLOAT    0              1 if keys are floats
 *   KILN_ALIGNED  1              1 if all rows are aligned to 16 bytes
 *   KILN_PLACE    4              bytes per place, 4 or 8
 *   KILN_MOST     2048           words that are sorted: a power of two, at least k
 *   KILN_INDEX    type unsigned  type of an index in the result
 * Launch: top_k_row   one block per row, row blockIdx.x
 *         top_k_list  workers * (steps + 1) blocks per row, row blockIdx.y
 *         top_k_emit  any number of blocks for k sorted words and places
 *         out, out_index  receive k keys and k indices per row, unless NULL
 *         by_place        1 if the result is in the order of places
 * Result: the same bits on every device. */
#include <kiln/params/top_k.cuh>

#include <kiln/rank_digits.cuh>
#include <kiln/rank_sort.cuh>

typedef kiln::rank_key key;
typedef kiln::rank_place place;

struct outputs {
  key *out;
  KILN_INDEX *out_index;
  unsigned long long k;
  kiln::radix_order order;
  unsigned by_place;

  __device__ __forceinline__ void store(unsigned long long to, key word,
                                        place at) const
  {
    if (out != nullptr)
      out[to] = kiln::radix_decode<KILN_FLOAT != 0>(word, order);
    if (out_index != nullptr)
      out_index[to] = static_cast<KILN_INDEX>(at);
  }
};

#if KILN_MAKES(top_k_row) || KILN_MAKES(top_k_list)
struct storage {
  kiln::rank_counters counters;
  kiln::rank_pairs<KILN_MOST> list;
  unsigned n; /* number of selected pairs */
};

/* The keys of a row. */
struct row_words {
  enum : unsigned { unroll = 4 }; /* loads in flight per thread */
  const key *in;
  kiln::radix_order order;
  unsigned n;
  unsigned
      most; /* number of words that are sorted rather than examined again */

  __device__ __forceinline__ key word(unsigned i) const
  {
    return kiln::rank_word(in[i], order);
  }
  __device__ __forceinline__ place at(unsigned i) const
  {
    return i;
  }
};

/* A list of words in global or in shared memory. Other blocks of this launch may have
 * written it, so loads must not use the first-level cache. */
struct listed_words {
  enum : unsigned { unroll = 1 };
  const key *words;
  const place *places;
  unsigned n, most;

  __device__ __forceinline__ key word(unsigned i) const
  {
    return *static_cast<const volatile key *>(words + i);
  }
  __device__ __forceinline__ place at(unsigned i) const
  {
    return __ldcg(places + i);
  }
};

/* The cut of a selection: of the words at the cut, those up to a place are selected. */
struct selection {
  kiln::rank_cut<key> cut;
  place last;

  template <class Words>
  __device__ __forceinline__ bool has(const Words &from, unsigned i,
                                      key w) const
  {
    return cut.below(w) || (cut.at(w) && from.at(i) <= last);
  }
};

/* Returns a cut that selects the k lowest words, and at most KILN_MOST words. */
template <class Words>
static __device__ __forceinline__ selection find_cut(storage &r,
                                                     const Words &from,
                                                     unsigned k)
{
  selection s = {kiln::rank_block<key, Words::unroll>(r.counters, from.n, k,
                                                      from.most,
                                                      [&](unsigned i, key &w) {
                                                        w = from.word(i);
                                                        return true;
                                                      }),
                 static_cast<place>(~place(0))};

  if (k - s.cut.want + s.cut.left > KILN_MOST)
    s.last = kiln::rank_block<place, Words::unroll>(
                 r.counters, from.n, s.cut.want, 0,
                 [&](unsigned i, place &at) {
                   if (!s.cut.at(from.word(i)))
                     return false;
                   at = from.at(i);
                   return true;
                 })
                 .prefix;
  return s;
}

/* Copies the selected pairs to shared memory, in any order. There are at most KILN_MOST,
 * unless the keys change during the launch. */
template <class Words>
static __device__ __forceinline__ void select(storage &r, const Words &from,
                                              unsigned k)
{
  const bool all = from.n <= from.most;
  selection s = {};

  if (threadIdx.x == 0)
    r.n = 0;
  __syncthreads();
  if (!all)
    s = find_cut(r, from, k);
#pragma unroll Words::unroll
  for (unsigned i = threadIdx.x; i < from.n; i += KILN_BLOCK) {
    const key w = from.word(i);

    if (all || s.has(from, i, w)) {
      const unsigned to = atomicAdd(&r.n, 1u);

      if (to < KILN_MOST) {
        r.list.word[to] = w;
        r.list.at[to] = from.at(i);
      }
    }
  }
  __syncthreads();
}

/* Writes the result of a row. All threads of a block call this function. */
template <class Words>
static __device__ __forceinline__ void write_row(storage &r, const Words &from,
                                                 const outputs &to,
                                                 unsigned long long row)
{
  const unsigned k = static_cast<unsigned>(to.k);

  select(r, from, k);
#pragma unroll 1
  for (unsigned by_place = 0; by_place <= to.by_place; ++by_place)
    kiln::rank_sort(r.list, by_place != 0 ? k : kiln::least(r.n, KILN_MOST),
                    by_place != 0);
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < k; i += KILN_BLOCK)
    to.store(row * to.k + i, r.list.word[i], r.list.at[i]);
}
#endif

#if KILN_MAKES(top_k_row)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, 1)
    top_k_row(const kiln::rank_args s, const outputs to)
{
  __shared__ storage r;
  /* One more digit takes less time than sorting many more than k words. */
  const row_words from = {
      s.in + blockIdx.x * s.n, s.order, static_cast<unsigned>(s.n),
      kiln::least(KILN_MOST, 64 + 2 * static_cast<unsigned>(to.k))};

  kiln::launch_wait();
  kiln::launch_next();
  write_row(r, from, to, blockIdx.x);
}
#endif

#if KILN_MAKES(top_k_list)
/* Number of words of a list that are copied to shared memory. */
enum : unsigned { cached = KILN_KEY < 8 ? 5120 : 512 };

/* The shared memory of a row, and a copy of its words. */
struct list_storage {
  storage row;
  key words[cached];
};

/* Copies words that are read several times to shared memory, if they fit. */
static __device__ __forceinline__ void cache_words(list_storage &r,
                                                   listed_words &from)
{
  if (from.n <= from.most || from.n > cached)
    return;
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < from.n; i += KILN_BLOCK)
    r.words[i] = from.word(i);
  __syncthreads();
  from.words = r.words;
}

/* Returns the number of words that are sorted rather than examined again. The sort pads
 * the words to a power of two, and examining one more digit takes less time than sorting
 * twice as many. */
static __device__ __forceinline__ unsigned sorted_most(unsigned long long k)
{
  unsigned most = 64;

  while (most < k)
    most *= 2;
  return kiln::least(most, KILN_MOST);
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK, 1)
    top_k_list(const kiln::rank_args s, const outputs to)
{
  __shared__ union {
    kiln::rank_digit_storage digits;
    list_storage list;
  } r;
  const unsigned row = blockIdx.y;
  kiln::rank_state *const state = kiln::rank_state_of(s, row);
  bool listed;

  kiln::launch_wait();
  kiln::launch_next();
  listed = kiln::rank_listed(s, state, 0);
  if (listed ? blockIdx.x > 0
             : !kiln::rank_by_digits(r.digits, s, state, false))
    return;
  {
    const key *const words =
        listed ? s.words + row * s.capacity : s.chosen_words + row * s.kept;
    const place *const places =
        listed ? s.places + row * s.capacity : s.chosen_places + row * s.kept;
    listed_words from = {
        words, places,
        static_cast<unsigned>(listed ? __ldcg(&state->found) : s.kept),
        sorted_most(to.k)};

    cache_words(r.list, from);
    write_row(r.list.row, from, to, row);
  }
}
#endif

#if KILN_MAKES(top_k_emit)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK, 1)
    top_k_emit(const key *words, const place *places, const outputs to)
{
  const unsigned long long i =
      static_cast<unsigned long long>(blockIdx.x) * KILN_BLOCK + threadIdx.x;

  kiln::launch_wait();
  kiln::launch_next();
  if (i < to.k)
    to.store(i, words[i], places[i]);
}
#endif
