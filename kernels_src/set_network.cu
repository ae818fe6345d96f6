/* set_network.cu -- a variant of set_operation.cu for many integers of 4 bytes in their
 * default order.
 *
 * Problem: set_operation.cu spends most of its time on the searches and the dependent
 * loads of single threads.
 * Idea: each warp merges a window of 1,024 elements by the network of merge_network.cuh.
 * The network sorts the distances to the first element of the window, doubled, plus 1 for
 * elements of b. So equal elements are adjacent, those of a precede those of b, and the
 * lowest bit tells where an element comes from. If no element occurs twice in a sequence,
 * then an element has a partner exactly if it differs from a neighbour by that bit alone.
 * Windows with repeated elements, and windows whose distances need all 32 bits, are merged
 * one element at a time by every lane, which counts equal elements. All distances of a
 * call add up to less than 2^32, so at most two windows need all bits. Equal integers have
 * equal bits, so only the number of results of each value matters.
 * Cost: 30 instructions per element for windows without repeated elements.
 *
 * Parameters:
 *   KILN_BLOCK   256            threads per block
 *   KILN_PER_SM  0              minimum number of resident blocks per SM, which limits
 *                               registers through __launch_bounds__; 0 sets no limit
 *   KILN_T       type int       type of an element
 *   KILN_SET     0              0 union, 1 intersection, 2 difference a without b, 3
 *                               symmetric difference
 *   KILN_LOOK    1              number of tile descriptors that a lane reads at once in a
 *                               look-back; 0: a leader block computes the results before
 *                               each tile
 *   KILN_COUNT   type unsigned  type of the number of results
 *   KILN_WIDE    0              1 if there are 2^31 elements or more
 * Launch: the block size is KILN_BLOCK. The grid of set_network has one block per tile of
 *         KILN_BLOCK * 32 elements of a and b together, and before them the leader block. The grid of set_network_split has
 *         4 threads per tile.
 *         a, b   the sequences, with m and n elements
 *         split  for each tile, the number of preceding elements of a, and m
 *         out    receives the results, at most `most`
 *         kept   receives the number of results
 *         words  tile descriptors, one word per tile (two words with KILN_WIDE); twice as
 *                many with a leader block
 * Result: the same on every device. */
#include <kiln/params/set_network.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/compact.cuh>
#include <kiln/leader_prefix.cuh>
#include <kiln/merge_network.cuh>

typedef KILN_T element;

enum : unsigned {
  items = kiln::network_items,
  warps = KILN_BLOCK / 32,
  tile_size = KILN_BLOCK * items
};

static constexpr bool is_union = KILN_SET == 0, is_intersection = KILN_SET == 1;
static constexpr bool is_difference = KILN_SET == 2, by_leader = KILN_LOOK == 0;

#if KILN_MAKES(set_network_split)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    set_network_split(const element *a, unsigned long long m, const element *b,
                      unsigned long long n, unsigned long long *split)
{
  kiln::split_tiles<KILN_BLOCK>(
      m, n, tile_size, split, [&](count i, count j) { return !(b[j] < a[i]); });
}
#endif

#if KILN_MAKES(set_network)
/* The two sequences. */
struct sequences {
  const element *a, *b;
  count m, n;
};

struct shared_storage {
  alignas(16) unsigned words[warps * kiln::network_words];
  unsigned first_a[warps + 1];
  unsigned warp_count[warps];
  position kept_before;
};

/* A window whose elements are in shared memory, and the indices of its first
 * elements in both sequences. */
struct window {
  kiln::network_window<element> in;
  count a, b;
};

/* ---- Windows without repeated elements ------------------------------------ */

/* The first and the last element of a window, and which elements next to the
 * window equal them. */
struct edges {
  element first, last;
  bool a_before, b_before; /* the element before the window's elements of a, or
                              of b, equals `first` */
  bool b_after;            /* the next element of b equals `last` */
};

/* Returns the edges of a window that is not empty. The neighbours of the window
 * are in shared memory as well. */
static __device__ __forceinline__ edges find_edges(const sequences &q,
                                                   const window &w)
{
  const kiln::network_window<element> &in = w.in;
  const bool only_a = in.n_b == 0, only_b = in.n_a == 0;
  const element last_a = only_b ? 0 : in.a[in.n_a - 1];
  const element last_b = only_a ? 0 : in.b[in.n_b - 1];
  edges e;

  e.first = only_a || (!only_b && in.a[0] < in.b[0]) ? in.a[0] : in.b[0];
  e.last = only_a || (!only_b && last_a > last_b) ? last_a : last_b;
  e.a_before = w.a > 0 && *(in.a - 1) == e.first;
  e.b_before = w.b > 0 && *(in.b - 1) == e.first;
  e.b_after = w.b + in.n_b < q.n && in.b[in.n_b] == e.last;
  return e;
}

/* Computes the distance of an element to the first element of its window,
 * doubled, plus 1 for elements of b. */
struct to_distance {
  unsigned of_a, of_b;

  __device__ __forceinline__ explicit to_distance(element first)
      : of_a(0u - 2 * static_cast<unsigned>(first)), of_b(of_a + 1)
  {
  }

  __device__ __forceinline__ unsigned operator()(unsigned x,
                                                 unsigned term) const
  {
    return 2 * x + term;
  }
};

/* Returns 2 * mask, plus 1 if the number is at least 2. Carries take fewer
 * instructions than comparisons. */
static __device__ __forceinline__ unsigned append_distinct(unsigned mask,
                                                           unsigned number)
{
  asm("{\n"
      ".reg .u32 rest;\n"
      "add.cc.u32 rest, %1, 0xfffffffe;\n"
      "addc.u32 %0, %0, %0;\n"
      "}"
      : "+r"(mask)
      : "r"(number));
  return mask;
}

/* Returns whether a whole window can be merged by distances. */
static __device__ __forceinline__ bool is_narrow(const window &w,
                                                 const edges &e)
{
  return w.in.n_a + w.in.n_b == kiln::network_size && !e.b_before &&
         static_cast<unsigned>(e.last) - static_cast<unsigned>(e.first) <
             0x80000000u;
}

/* Sorts the distances v of a window. Sets `mask` to a mask of the elements that
 * the operation keeps, if no element is repeated, with the first element in the
 * highest bit. Otherwise returns false. */
static __device__ __forceinline__ bool merge_distances(const edges &e,
                                                       unsigned *words,
                                                       unsigned (&v)[items],
                                                       unsigned &mask)
{
  unsigned previous, next, distinct = 0, after, of_b = 0, nearest = ~0u;

  kiln::network_sort(v, words);
  previous = kiln::shuffle_up(v[items - 1], 1);
  next = kiln::shuffle_down(v[0], 1);
  /* Bit 1 makes a difference that no partner has. */
  if (kiln::lane() == 0)
    previous = !e.a_before ? v[0] ^ 2u : v[0] & ~1u;
  if (kiln::lane() == 31)
    next = e.b_after ? v[items - 1] | 1u : v[items - 1] ^ 2u;
#pragma unroll
  for (unsigned k = 0; k < items; ++k) {
    const unsigned difference = v[k] ^ (k == 0 ? previous : v[k - 1]);

    distinct = append_distinct(distinct, difference);
    nearest = kiln::least(nearest, difference);
    if (is_difference)
      of_b = 2 * of_b + (v[k] & 1u);
  }
  after = distinct << 1 | ((v[items - 1] ^ next) == 1 ? 0u : 1u);
  mask = is_union          ? distinct
         : is_intersection ? ~distinct
         : is_difference   ? ~of_b & after
                           : distinct & after;
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    v[k] = (v[k] >> 1) + static_cast<unsigned>(e.first);
  return !kiln::warp_any(nearest == 0);
}

/* ---- Any window ----------------------------------------------------------- */

/* Returns how many of the last elements of p, which has n elements, equal x,
 * which is not less than they are. Runs of equal elements are mostly short, so the
 * search begins at the end with steps that double. */
static __device__ __forceinline__ count trailing(const element *p, count n,
                                                 element x)
{
  count low = 0, high = n;

  for (count step = 1; step <= n; step *= 2) {
    if (p[n - step] < x) {
      low = n - step + 1;
      break;
    }
    high = n - step;
  }
  while (low < high) {
    const count middle = low + (high - low) / 2;

    if (p[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return n - low;
}

/* Position of a lane in the merge of both sequences, and the balance of the
 * elements that equal the next output x: the number of elements of a minus the
 * number of elements of b among the preceding ones. */
struct walker {
  const sequences &q;
  count i, j, end_a, end_b;
  element x;
  bool of_a;
  long long run;

  __device__ __forceinline__ void look()
  {
    const bool a_left = i < end_a, b_left = j < end_b;
    element of_b = 0;

    if (a_left)
      x = q.a[i];
    if (b_left)
      of_b = q.b[j];
    of_a = !b_left || (a_left && !(of_b < x));
    x = of_a ? x : of_b;
  }

  __device__ __forceinline__ bool keeps() const
  {
    if (!of_a)
      return is_intersection ? run > 0 : !is_difference && run <= 0;
    if (is_union || is_intersection)
      return is_union;

    const count partner = j + static_cast<count>(run);

    return partner >= q.n || q.b[partner] != x;
  }

  __device__ __forceinline__ void advance()
  {
    const element last = x;

    i += of_a ? 1 : 0;
    j += of_a ? 0 : 1;
    run += of_a ? 1 : -1;
    look();
    if (x != last)
      run = 0;
  }
};

/* Merges any window, element by element, from the sequences in memory. Returns a
 * mask as merge_distances() does. */
static __device__ __noinline__ unsigned walk(const sequences q, count a,
                                             unsigned n_a, count b,
                                             unsigned n_b, unsigned *words)
{
  const unsigned n = n_a + n_b, d = kiln::least(kiln::lane() * items, n);
  const unsigned split = kiln::group_search<1>(
      d > n_b ? d - n_b : 0, kiln::least(d, n_a),
      [&](unsigned i) { return !(q.b[b + d - 1 - i] < q.a[a + i]); });
  walker at = {q, a + split, b + d - split, a + n_a, b + n_b, 0, false, 0};
  unsigned mask = 0;

  at.look();
  at.run = static_cast<long long>(trailing(q.a, at.i, at.x) -
                                  trailing(q.b, at.j, at.x));
#pragma unroll 1
  for (unsigned k = 0; k < items; ++k) {
    words[kiln::network_place(kiln::lane() * items + k)] =
        static_cast<unsigned>(at.x);
    if (d + k < n) {
      mask |= kiln::slot_bit(items - 1 - k, at.keeps());
      at.advance();
    }
  }
  return mask;
}

/* ---- The kernel ----------------------------------------------------------- */

/* Merges the window of the calling warp. Returns a mask of the elements v of the
 * calling lane that the operation keeps, with the first one in the highest bit. All warps of the block call the function,
 * which overwrites the tile in shared memory by the warps' own `words`. */
static __device__ __forceinline__ unsigned merge_window(const sequences &q,
                                                        const window &w,
                                                        unsigned *words,
                                                        unsigned (&v)[items])
{
  edges e{};
  bool narrow = false;
  unsigned mask;

  if (w.in.n_a + w.in.n_b > 0) {
    e = find_edges(q, w);
    narrow = is_narrow(w, e);
  }
  if (narrow)
    kiln::network_load(w.in, to_distance(e.first), v);
  __syncthreads();
  if (narrow && merge_distances(e, words, v, mask))
    return mask;
  kiln::warp_sync();
  mask = walk(q, w.a, w.in.n_a, w.b, w.in.n_b, words);
  kiln::network_read(v, words);
  return mask;
}

/* Returns the number of results of the tiles before `tile`, which has published its
 * own number. Warp 0 calls this function; the result has a meaning in lane 0. */
static __device__ __forceinline__ position
before_tile(unsigned long long *words, unsigned tile, unsigned tiles,
            unsigned epoch, position mine)
{
  position before = 0;

  if (by_leader) {
    if (kiln::lane() == 0)
      before = kiln::leader_wait<position>(words, tiles, tile, epoch);
    return before;
  }
  if (tile == 0)
    return 0;
  before = kiln::count_look_back < by_leader ? 1 : KILN_LOOK,
  position > (words, tile, epoch);
  if (kiln::lane() == 0)
    kiln::tile_publish(words, tile, before + mine,
                       kiln::descriptor_tag(epoch, kiln::status_prefix));
  return before;
}

/* Writes the marked elements to shared memory, from position `rank` on. */
static __device__ __forceinline__ void
gather_results(element *results, unsigned rank, unsigned mask,
               const unsigned (&v)[items])
{
  element *to = results + rank;

#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    if ((mask >> (items - 1 - k) & 1u) != 0) {
      *to = static_cast<element>(v[k]);
      ++to;
    }
}

/* Copies n results to memory, by vectors of 16 bytes. */
static __device__ __forceinline__ void
store_results(element *to, const element *from, unsigned n)
{
  typedef kiln::network_vector<element> vector;
  const unsigned place = static_cast<unsigned>(reinterpret_cast<size_t>(to));
  const unsigned head = kiln::least(n, (0u - place / 4) % 4);
  const unsigned vectors = (n - head) / 4, tail = head + 4 * vectors;
  vector *const out = reinterpret_cast<vector *>(to + head);
  const element *const in = from + head;

  if (threadIdx.x < head)
    to[threadIdx.x] = from[threadIdx.x];
  if (threadIdx.x < n - tail)
    to[tail + threadIdx.x] = from[tail + threadIdx.x];
#pragma unroll 2
  for (unsigned k = threadIdx.x; k < vectors; k += KILN_BLOCK)
    out[k] = {{in[4 * k], in[4 * k + 1], in[4 * k + 2], in[4 * k + 3]}};
}

static __device__ __forceinline__ void
merge_tile(const sequences &q, const unsigned long long *split, element *out,
           unsigned long long most, KILN_COUNT *kept, unsigned long long *words,
           unsigned epoch, unsigned tile, unsigned tiles)
{
  __shared__ shared_storage r;
  element *const results = reinterpret_cast<element *>(r.words);
  kiln::network_tile<element> t =
      kiln::network_find<tile_size, element>(tile, q.m, q.n, split);
  unsigned v[items], mask, mine, upto, rank, total;

  kiln::network_stage<KILN_BLOCK, true>(t, q.a, q.b, q.n, results);

  window w = {kiln::network_part(t, r.first_a), t.a, t.b};

  w.a += static_cast<count>(w.in.a - t.near_a);
  w.b += static_cast<count>(w.in.b - t.near_b);
  mask = merge_window(q, w, r.words + kiln::warp() * kiln::network_words, v);
  mine = static_cast<unsigned>(__popc(static_cast<int>(mask)));
  upto = kiln::warp_scan_inclusive(mine, kiln::sum());
  rank =
      kiln::warps_before(kiln::warp_broadcast(upto, 31), r.warp_count, total) +
      upto - mine;
  if (threadIdx.x == 0)
    kiln::tile_publish(words, tile, static_cast<position>(total),
                       kiln::descriptor_tag(epoch, !by_leader && tile == 0
                                                       ? kiln::status_prefix
                                                       : kiln::status_partial));
  gather_results(results, rank, mask, v);
  if (kiln::warp() == 0) {
    const position before = before_tile(words, tile, tiles, epoch, total);

    if (kiln::lane() == 0) {
      r.kept_before = before;
      if (tile == tiles - 1)
        *kept = static_cast<KILN_COUNT>(before + total);
    }
  }
  __syncthreads();
  if (r.kept_before < most)
    store_results(out + r.kept_before, results,
                  static_cast<unsigned>(total < most - r.kept_before
                                            ? total
                                            : most - r.kept_before));
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK, KILN_PER_SM)
    set_network(const user::args, const element *a, unsigned long long m,
                const element *b, unsigned long long n,
                const unsigned long long *split, element *out,
                unsigned long long most, KILN_COUNT *kept,
                unsigned long long *words, unsigned epoch)
{
  const unsigned leaders = by_leader ? 1 : 0, tiles = gridDim.x - leaders;

  if (blockIdx.x < leaders)
    kiln::leader_publish_prefixes(words, tiles, epoch, kiln::sum{}, position(0),
                                  position(0));
  else
    merge_tile(sequences{a, b, m, n}, split, out, most, kept, words, epoch,
               blockIdx.x - leaders, tiles);
}
#endif

#include <kiln/user_texts.cuh>
