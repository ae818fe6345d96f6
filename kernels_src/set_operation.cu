/* set_operation.cu -- union, intersection, difference and symmetric difference of two
 * sorted sequences a and b, as multisets, in one pass.
 *
 * Problem: if a value occurs m times in a and n times in b, the union has it max(m, n)
 * times, the intersection min(m, n) times, and so on. So an element is kept or dropped by
 * its rank among its equals, and these may be anywhere in both sequences.
 * Idea: number equal elements from 0 in each sequence. Element r of m equal ones of a has
 * a partner if r < n, and element r of n equal ones of b has a partner if r < m. Each
 * operation keeps elements of a with or without partner, and elements of b without
 * partner. The kernel merges a and b as merge.cu does, with elements of a before equal
 * ones of b. When the merge reaches an element of a, all smaller elements of b are behind
 * it, so its partner would be r elements further in b. When it reaches an element of b,
 * all equal elements of a are behind it and have been counted.
 * Invariant: a thread counts equal elements while it merges: those of a minus those of b.
 * At an element of a this balance is its rank; at an element of b, a positive balance means
 * a partner. A thread needs the counts of earlier threads only if its first element equals
 * the element before it. Then it bisects the tile, and adds what precedes the tile, which
 * one warp has counted in memory.
 * A block ranks the kept elements and finds the number of kept elements of the preceding
 * tiles by decoupled look-back (look_back.cuh).
 * Cost: one read per element and one write per result. A run of equal elements that
 * crosses a boundary of tiles costs one more search per boundary.
 * Source of the definition: Musser and Stepanov's generic library (the C++ standard,
 * 27.8.7); of the division into tiles: merge_path.cuh.
 *
 * Parameters:
 *   KILN_BLOCK  256            threads per block
 *   KILN_ITEMS  11             elements per thread, at most 32; odd numbers avoid bank
 *                              conflicts of 4-byte elements
 *   KILN_T      type float     type of an element
 *   KILN_SET    0              0 union, 1 intersection, 2 difference a without b, 3
 *                              symmetric difference
 *   KILN_LESS   0              1 if user::less(s, a, b) defines the order
 *   KILN_COUNT  type unsigned  type of the number of results
 *   KILN_WIDE   0              1 if there are 2^31 elements or more
 * Launch: the block size is KILN_BLOCK. The grid of set_operation has one block per tile of
 *         KILN_BLOCK * KILN_ITEMS elements of a and b together. The grid of set_split has
 *         16 threads per tile.
 *         a, b   the sequences, with m and n elements
 *         split  for each tile, the numbers of elements of a and of b that precede it
 *         out    receives the results, at most `most`
 *         kept   receives the number of results
 *         words  tile descriptors, one word per tile (two words with KILN_WIDE)
 * Result: the same on every device. */
#include <kiln/params/set_operation.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/compact.cuh>
#include <kiln/merge_path.cuh>
#include <kiln/order.cuh>

static_assert(KILN_ITEMS <= 32, "KILN_ITEMS: one bit per element");

typedef KILN_T element;
#if KILN_WIDE
typedef long long balance;
#else
typedef int balance;
#endif

/* Shared memory has a few more elements than a tile, so that the elements of a
 * and b can start where they are copied by vectors. */
enum : unsigned { tile_size = KILN_BLOCK * KILN_ITEMS, spare = 16 };

static constexpr bool keeps_all_a = KILN_SET == 0;
static constexpr bool keeps_partners = KILN_SET == 1;
static constexpr bool keeps_b = KILN_SET == 0 || KILN_SET == 3;

struct precedes {
  const user::args &s;

  __device__ __forceinline__ bool operator()(const element &a,
                                             const element &b) const
  {
#if KILN_LESS
    return user::less(s, kiln::widen(a), kiln::widen(b));
#else
    return kiln::comes_before(kiln::widen(a), kiln::widen(b));
#endif
  }
};

#if KILN_MAKES(set_split)
extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    set_split(const user::args s, const element *a, unsigned long long m,
              const element *b, unsigned long long n, unsigned long long *split)
{
  const count tiles = (m + n + tile_size - 1) / tile_size;
  const count tile =
      static_cast<count>(blockIdx.x) * (KILN_BLOCK / 16) + threadIdx.x / 16;
  const count d = (tile < tiles ? tile : tiles - 1) * tile_size;
  const kiln::sorted_runs<element> runs = {{a, b, b, b}, {m, n, 0, 0}};
  count at[kiln::most_runs];

  kiln::split_runs(runs, d, m + n, at, precedes{s});
  if (threadIdx.x % 16 < 2 && tile < tiles)
    split[2 * tile + threadIdx.x % 16] = threadIdx.x % 16 == 0 ? at[0] : at[1];
}
#endif

#if KILN_MAKES(set_operation)
/* The two sequences. */
struct sequences {
  const element *a, *b;
  count m, n;
};

/* The elements of a tile: n_a elements of a from element a on, and n_b elements
 * of b from element b on. In shared memory, those of a start at position at_a and
 * those of b at position at_b. */
struct window {
  count a, b;
  unsigned n_a, n_b, at_a, at_b;
};

/* What precedes a tile: the last element, and the balance of its run: the number
 * of elements of a minus the number of elements of b that equal it. The balance
 * is 0 if the tile starts with a different element. */
struct history {
  element last;
  balance run;
  bool any;
};

struct shared_storage {
  alignas(16) KILN_T element[tile_size + spare];
  history before;
  unsigned warp_count[KILN_BLOCK / 32];
  position kept_before;
};

/* Returns the window of the block's tile. Splits that contradict each other,
 * which needs unsorted sequences, give fewer elements. */
static __device__ __forceinline__ window
find_window(const sequences &q, const unsigned long long *split)
{
  const bool last = blockIdx.x + 1 == gridDim.x;
  const count *from = split + 2 * static_cast<count>(blockIdx.x);
  const count a_end = last ? q.m : from[2], b_end = last ? q.n : from[3];
  const count n_a = a_end > from[0] ? a_end - from[0] : 0;
  const count n_b = b_end > from[1] ? b_end - from[1] : 0;
  window w = {from[0], from[1], 0, 0, 0, 0};

  w.n_a = static_cast<unsigned>(n_a < tile_size ? n_a : tile_size);
  w.n_b =
      static_cast<unsigned>(n_b < tile_size - w.n_a ? n_b : tile_size - w.n_a);
  w.at_a = kiln::stage_place(q.a + w.a, 0);
  w.at_b = kiln::stage_place(q.b + w.b, w.at_a + w.n_a);
  return w;
}

/* ---- Equal elements before a tile ---------------------------------------- */

/* Returns how many of the last elements of p, which has n elements, are not less
 * than `last`. One whole warp calls this function. */
static __device__ __forceinline__ count count_back(const element *p, count n,
                                                   const element &last,
                                                   precedes less)
{
  const bool equal = kiln::lane() < n && !less(p[n - 1 - kiln::lane()], last);
  const unsigned here = kiln::warp_ballot(equal);
  count low = 0, high = n - 32;

  if (here != ~0u)
    return static_cast<unsigned>(__ffs(static_cast<int>(~here)) - 1);
  while (low < high) {
    const count chunk = (high - low + 31) / 32;
    const count at = low + (kiln::lane() + 1) * chunk - 1;
    const bool below = at < high && less(p[at], last);
    const unsigned chunks =
        static_cast<unsigned>(__popc(kiln::warp_ballot(below)));

    low += chunks * chunk;
    high = high < low + chunk - 1 ? high : low + chunk - 1;
  }
  return n - low;
}

/* One whole warp calls this function. */
static __device__ __forceinline__ history find_history(const sequences &q,
                                                       const window &w,
                                                       precedes less)
{
  history h = {element(), 0, w.a + w.b > 0};
  element last_a{}, last_b{}, first_a{}, first_b{};
  bool goes_on;

  if (!h.any)
    return h;
  /* The four loads do not depend on each other. */
  if (w.a > 0)
    last_a = q.a[w.a - 1];
  if (w.b > 0)
    last_b = q.b[w.b - 1];
  if (w.n_a > 0)
    first_a = q.a[w.a];
  if (w.n_b > 0)
    first_b = q.b[w.b];
  h.last = w.b == 0 || (w.a > 0 && less(last_b, last_a)) ? last_a : last_b;
  goes_on = (w.n_a > 0 && !less(h.last, first_a)) ||
            (w.n_b > 0 && !less(h.last, first_b));
  if (goes_on)
    h.run = static_cast<balance>(count_back(q.a, w.a, h.last, less) -
                                 count_back(q.b, w.b, h.last, less));
  return h;
}

/* ---- The merge of a thread ---------------------------------------------- */

/* Loads an element of the tile. Positions are byte offsets, so that a load needs
 * no further address arithmetic. */
struct at_offset {
  const element *from;
  enum : unsigned { unit = sizeof(element) };

  __device__ __forceinline__ element operator()(unsigned offset) const
  {
    return *reinterpret_cast<const element *>(
        reinterpret_cast<const char *>(from) + offset);
  }
};

typedef kiln::path_cursor<element> cursor;

struct walker {
  const shared_storage &r;
  const sequences &q;
  const window &w;
  precedes less;

  /* Returns how many of the elements first to end - 1 of shared memory are not
   * less than `last`. */
  __device__ __forceinline__ balance trailing(unsigned first, unsigned end,
                                              const element &last) const
  {
    unsigned low = first, high = end;

    while (low < high) {
      const unsigned middle = (low + high) / 2;

      if (less(r.element[middle], last))
        low = middle + 1;
      else
        high = middle;
    }
    return static_cast<balance>(end - low);
  }

  /* Returns the balance of the elements before output d that equal `last`, the
   * output before d. i of the outputs before d come from a. */
  __device__ __forceinline__ balance run_before(unsigned d, unsigned i,
                                                const element &last) const
  {
    const balance inside = trailing(w.at_a, w.at_a + i, last) -
                           trailing(w.at_b, w.at_b + d - i, last);

    return r.before.any && !less(r.before.last, last) ? inside + r.before.run
                                                      : inside;
  }

  /* Returns the last of the d outputs of which i come from a. */
  __device__ __forceinline__ element last_of(unsigned d, unsigned i) const
  {
    if (d == 0)
      return r.before.last;
    if (i == d || (i > 0 && less(r.element[w.at_b + d - i - 1],
                                 r.element[w.at_a + i - 1])))
      return r.element[w.at_a + i - 1];
    return r.element[w.at_b + d - i - 1];
  }

  /* Returns whether the element x of a at the cursor has a partner in b. `rank`
   * is the number of equal elements before x. */
  __device__ __forceinline__ bool has_partner(const cursor &c,
                                              balance rank) const
  {
    const unsigned next = (c.sum - c.i) / at_offset::unit - w.at_b;
    const count at = static_cast<count>(next) + static_cast<count>(rank);

    if (at < w.n_b)
      return !less(c.x, r.element[w.at_b + at]);
    return w.b + at < q.n && !less(c.x, q.b[w.b + at]);
  }

  /* Returns whether the operation keeps the element at the cursor. `run` is the
   * balance of the equal elements before it. All equal elements of a precede
   * those of b, so it is the number of those of a at an element of a. At an
   * element of b, it is positive as long as elements of a have no partner. The
   * partner of the first of equal elements of a is y, the next element of b. That
   * comparison needs no load and no branch, and most inputs have few elements
   * that need another one. */
  __device__ __forceinline__ bool keeps(const cursor &c, bool from_a,
                                        balance run) const
  {
    bool partner;

    if (keeps_all_a)
      return from_a || run <= 0;
    partner = !less(c.x, c.y);
    if (from_a && (run != 0 || c.sum - c.i >= c.b_end))
      partner = has_partner(c, run);
    return from_a ? partner == keeps_partners : keeps_b && run <= 0;
  }
};

/* Merges the calling thread's elements, and returns a mask of those that the
 * operation keeps. */
static __device__ __forceinline__ unsigned merge_mine(const walker &in,
                                                      element (&v)[KILN_ITEMS])
{
  const unsigned n = in.w.n_a + in.w.n_b, d = threadIdx.x * KILN_ITEMS;
  const kiln::path_runs p = {in.w.at_a, in.w.at_a + in.w.n_a, in.w.at_b,
                             in.w.at_b + in.w.n_b};
  const at_offset at = {in.r.element};
  unsigned mask = 0, split;
  bool fresh = !in.r.before.any && d == 0;
  balance run = 0;
  element last;

  if (d >= n)
    return 0;
  split = kiln::path_split(p, d, at, in.less);
  cursor c(p, d, split, at);
  last = in.last_of(d, split);
  if (!fresh) {
    fresh = in.less(last, c.takes_a(in.less) ? c.x : c.y);
    if (!fresh)
      run = in.run_before(d, split, last);
  }
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const bool from_a = c.takes_a(in.less);

    v[k] = from_a ? c.x : c.y;
    if (k > 0 && in.less(v[k - 1], v[k]))
      run = 0;
    mask |= kiln::slot_bit(k, in.keeps(c, from_a, run));
    run += from_a ? 1 : -1;
    c.advance(from_a, at);
  }
  return n - d < KILN_ITEMS ? mask & ((1u << (n - d)) - 1) : mask;
}

/* ---- The kernel ---------------------------------------------------------- */

static __device__ __forceinline__ void
load_tile(shared_storage &r, const sequences &q, const window &w, precedes less)
{
  const unsigned end_a = w.at_a + w.n_a, end_b = w.at_b + w.n_b;

  kiln::stage_run<KILN_BLOCK>(r.element + w.at_a, q.a + w.a, w.n_a);
  kiln::stage_run<KILN_BLOCK>(r.element + w.at_b, q.b + w.b, w.n_b);
  kiln::stage_zeros<KILN_BLOCK>(r.element, 0, w.at_a);
  kiln::stage_zeros<KILN_BLOCK>(r.element, end_a, w.at_b);
  kiln::stage_zeros<KILN_BLOCK>(r.element, end_b, tile_size + spare);
  if (kiln::warp() == 0) {
    const history h = find_history(q, w, less);

    if (kiln::lane() == 0)
      r.before = h;
  }
  kiln::stage_wait();
  __syncthreads();
}

/* Returns the number of results of the preceding tiles, and publishes the prefix
 * of the block's own tile. Warp 0 calls this function. */
static __device__ __forceinline__ position
before_tile(unsigned long long *words, unsigned epoch, position mine)
{
  const count tile = blockIdx.x;
  const position before =
      kiln::count_look_back<1, position>(words, tile, epoch);

  if (kiln::lane() == 0 && tile + 1 < gridDim.x)
    kiln::tile_publish(words, tile, before + mine,
                       kiln::descriptor_tag(epoch, kiln::status_prefix));
  return before;
}

/* From compute capability 10.0 on, the compiler would spill a register for one more
 * resident block, unless a least number of blocks is given. */
extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_ARCH >= 100 ? 3 : 0)
    set_operation(const user::args s, const element *a, unsigned long long m,
                  const element *b, unsigned long long n,
                  const unsigned long long *split, element *out,
                  unsigned long long most, KILN_COUNT *kept,
                  unsigned long long *words, unsigned epoch)
{
  __shared__ shared_storage r;
  const sequences q = {a, b, m, n};
  const window w = find_window(q, split);
  const precedes less{s};
  element v[KILN_ITEMS];
  unsigned mask, mine, upto, rank, total;

  load_tile(r, q, w, less);
  mask = merge_mine(walker{r, q, w, less}, v);
  mine = static_cast<unsigned>(__popc(mask));
  upto = kiln::warp_scan_inclusive(mine, kiln::sum());
  rank =
      kiln::warps_before(kiln::warp_broadcast(upto, 31), r.warp_count, total) +
      upto - mine;
  if (threadIdx.x == 0 && gridDim.x > 1)
    kiln::tile_publish(words, blockIdx.x, static_cast<position>(total),
                       kiln::descriptor_tag(epoch, blockIdx.x == 0
                                                       ? kiln::status_prefix
                                                       : kiln::status_partial));
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if ((mask >> k & 1u) != 0)
      r.element[rank++] = v[k];
  if (kiln::warp() == 0) {
    const position before =
        blockIdx.x == 0 ? 0 : before_tile(words, epoch, total);

    if (kiln::lane() == 0) {
      r.kept_before = before;
      if (blockIdx.x == gridDim.x - 1)
        *kept = static_cast<KILN_COUNT>(before + total);
    }
  }
  __syncthreads();
  if (r.kept_before < most)
    kiln::copy_run<KILN_BLOCK>(
        out + r.kept_before, r.element,
        static_cast<unsigned>(
            total < most - r.kept_before ? total : most - r.kept_before));
}
#endif

#include <kiln/user_texts.cuh>
