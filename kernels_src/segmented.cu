/* segmented.cu -- reduce each segment of an array in one launch. The segments may have
 * any lengths.
 *
 * Problem: some segments may be empty, and one segment may hold nearly all elements.
 * Idea: ends and elements of segments form one merged sequence (segments.cuh). Each
 * block handles an equal range of this sequence for any lengths of the segments (Merrill
 * and Garland, Merge-based Parallel Sparse Matrix-Vector Multiplication, 2016). A thread
 * handles consecutive items of the range and stores a result at each segment end. A
 * segment that continues after a thread's range is an open segment. A scan over the
 * block combines the partial results of open segments. A decoupled look-back
 * (look_back.cuh) adds the partial results of preceding blocks. Therefore the result of
 * the first segment end of a block is stored last.
 * A tile without a segment end is inside a long segment. In such tiles, each thread
 * keeps its own partial result unless KILN_ORDERED is 1.
 * Cost: one read per element and offset, and one write per segment.
 *
 * Parameters:
 *   KILN_KIND     0              kind of reduction (reduction_kind.cuh)
 *   KILN_OUT      type float     type of an element of out
 *   KILN_OUT2     type double    type of an element of out2
 *   KILN_OFFSET   type unsigned  type of an offset
 *   KILN_INDEX    type unsigned  type of an element of index
 *   KILN_GATHER   0              1 if the array `index` lists the elements to reduce
 *   KILN_BLOCK    256            threads per block, at least 64
 *   KILN_ITEMS    7              ends and elements per thread and tile; an odd number
 *                                avoids bank conflicts
 *   KILN_THREADS  1024           minimum number of resident threads per SM, which
 *                                limits registers through __launch_bounds__
 *   KILN_ORDERED  0              1 if operands keep the order of the elements; with 0,
 *                                their order may change inside of long segments
 *   KILN_SMALL    0              1 if there are fewer than 2^31 ends and elements
 * Generated code (user.cuh): acc and op for KILN_KIND 0.
 * Launch: the block size is KILN_BLOCK. The grid is one-dimensional and covers all ends
 *         and elements.
 *         per      number of ends and elements per block, a multiple of KILN_BLOCK *
 *                  KILN_ITEMS
 *         words    one tile descriptor per block
 *         extra    for KILN_KIND 3, the variance is divided by the number of elements of
 *                  the segment minus extra
 * Result: out[s] and out2[s] are the results of segment s (reduction_kind.cuh). An index is
 *         relative to the start of the segment. For the same offsets, grid and
 *         specialisation, the result has the same bits. */
#include <kiln/params/segmented.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/ordered_reduce.cuh>
#include <kiln/reduction_kind.cuh>
#include <kiln/segments.cuh>

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

/* The form in which a tile holds elements. */
#if KILN_KIND == 0
typedef reduced held;
#else
typedef user::value held;
#endif
typedef kiln::segments<KILN_OFFSET, count> segments;

enum : unsigned { tile = KILN_BLOCK * KILN_ITEMS, warps = KILN_BLOCK / 32 };

/* The state of the reduction at the end of a range of the merged sequence: the
 * partial result of the open segment, and whether a segment ends in the
 * range. */
struct open_end {
  reduced value;
  unsigned ended;
};

struct follow {
  merge op;
  __device__ __forceinline__ open_end operator()(open_end a, open_end b) const
  {
    return {b.ended ? b.value : op(a.value, b.value), a.ended | b.ended};
  }
};

struct shared_storage {
  held value[tile];
  /* Per segment end, the number of elements of the tile before that end. */
  unsigned end[tile + 1];
  /* State of the reduction from the start of the tile to the end of each warp. */
  open_end last[warps];
};

/* The reduction of the first segment that ends in a block. It is stored last,
 * because it needs the partial results of preceding blocks. */
struct deferred {
  reduced value;
  count segment;
};

/* The arrays that receive the results of segments. */
struct results {
  const segments &all;
  double extra;
  KILN_OUT *out;
  KILN_OUT2 *out2;

  __device__ __forceinline__ void store(count s, reduced value,
                                        reduced identity) const
  {
    const user::index start =
        KILN_KIND == 1 || KILN_KIND == 2 ? all.base + all.start(s) : 0;

    store_result(value, identity, s, start, extra, out, out2);
  }
};

static __device__ __forceinline__ held load_element(const user::args &in,
                                                    const KILN_INDEX *index,
                                                    count i)
{
#if KILN_GATHER
  return static_cast<held>(
      user::load(in, static_cast<user::index>(__ldg(index + i))));
#else
  (void)index;
  return static_cast<held>(user::load(in, i));
#endif
}

/* Returns the reduction of `so_far` and of the element with index i. */
static __device__ __forceinline__ reduced take(merge op, reduced so_far, held v,
                                               count i, reduced identity)
{
#if KILN_KIND == 0
  (void)i, (void)identity;
  return op(so_far, v);
#else
  return take_value(op, so_far, v, i, identity);
#endif
}

/* Loads those segment ends that are inside the tile that starts at segment s
 * and element e, and returns their number. The last step is a barrier. */
static __device__ __forceinline__ unsigned load_ends(const segments &all,
                                                     count s, count e,
                                                     unsigned length,
                                                     shared_storage &r)
{
  unsigned n = 0, found;

#pragma unroll 1
  do {
    const unsigned i = n + threadIdx.x;
    const bool exists = i < length && s + i < all.n;
    const count before = exists ? all.end(s + i) - e : 0;
    const bool inside = exists && before + i < length;

    if (inside)
      r.end[i] = static_cast<unsigned>(before);
    found = kiln::block_count(inside);
    n += found;
  } while (found == KILN_BLOCK);
  return n;
}

/* Returns the number of segment ends that precede position p of the tile. */
static __device__ __forceinline__ unsigned
tile_ends_before(const unsigned *end, unsigned n, unsigned p)
{
  unsigned low = 0, high = n < p ? n : p;

  while (low < high) {
    const unsigned middle = (low + high) / 2;

    if (end[middle] + middle < p)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Reduces the segments of the tile. `open` is the state before the tile, and the
 * function returns the state after the tile. `element` is the index of the first
 * element of the tile. Values and segment ends are in shared memory. All threads of the block call the function after a barrier. */
static __device__ __forceinline__ open_end
reduce_tile(const user::args &in, shared_storage &r, deferred &first, count s,
            count element, unsigned ends, unsigned length, open_end open,
            const results &to)
{
  const follow then = {make_merge(in)};
  const reduced identity = identity_of(in, false, 0);
  const unsigned begin = threadIdx.x * KILN_ITEMS;
  unsigned p = begin < length ? begin : length;
  const unsigned stop =
      begin + KILN_ITEMS < length ? begin + KILN_ITEMS : length;
  unsigned i = tile_ends_before(r.end, ends, p), j = p - i, head_at = 0;
  open_end mine = {identity, 0}, before;
  reduced head = identity;

#pragma unroll 1
  for (; p < stop; ++p) {
    if (i < ends && r.end[i] == j) {
      if (mine.ended) {
        to.store(s + i, mine.value, identity);
      } else {
        head = mine.value;
        head_at = i;
      }
      mine.value = identity;
      mine.ended = 1;
      ++i;
    } else {
      mine.value = take(then.op, mine.value, r.value[j], element + j, identity);
      ++j;
    }
  }
  {
    const open_end upto = kiln::block_scan_inclusive(mine, then);

    if (kiln::lane() == kiln::warp_size - 1)
      r.last[kiln::warp()] = upto;
    before = kiln::shuffle_up(upto, 1);
  }
  __syncthreads();
  if (kiln::lane() == 0 && kiln::warp() > 0)
    before = r.last[kiln::warp() - 1];
  before = threadIdx.x == 0 ? open : then(open, before);
  if (mine.ended) {
    head = then.op(before.value, head);
    if (before.ended)
      to.store(s + head_at, head, identity);
    else
      first = {head, s + head_at};
  }
  return then(open, r.last[warps - 1]);
}

#if !KILN_ORDERED
/* Combines the threads' partial results `loose` of a long segment with the
 * state `open` of the block. All threads of the block call this function. */
static __device__ __forceinline__ open_end gather_loose(open_end open,
                                                        reduced loose, merge op)
{
  __syncthreads();
  loose = kiln::block_reduce_wide<KILN_BLOCK>(loose, op);
  __syncthreads();
  open.value = op(open.value, kiln::block_broadcast(loose, 0));
  return open;
}
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_THREADS / KILN_BLOCK)
    segmented(const user::args in, const KILN_OFFSET *offsets,
              unsigned long long n_segments, const KILN_INDEX *index,
              unsigned long long per, unsigned long long *words, unsigned epoch,
              double extra, KILN_OUT *out, KILN_OUT2 *out2)
{
  __shared__ shared_storage r;
  __shared__ deferred first;
  __shared__ count found;
  const merge op = make_merge(in);
  const reduced identity = identity_of(in, false, 0);
  const segments all(offsets, static_cast<count>(n_segments));
  const results to = {all, extra, out, out2};
  const count total = all.length();
  count place = static_cast<count>(blockIdx.x) * static_cast<count>(per);
  const count stop = total - place < per ? total : place + per;
  open_end open = {identity, 0};
  bool continues;
  count s;
#if !KILN_ORDERED
  reduced loose = identity;
  bool is_loose = false;
#endif

  if (place >= total)
    return;
  if (kiln::warp() == 0) {
    s = kiln::ends_before<32>(all, place);
    if (threadIdx.x == 0)
      found = s;
  }
  __syncthreads();
  s = found;
  continues = s < all.n && place - s > all.start(s);

#pragma unroll 1
  for (; place < stop; place += tile) {
    const unsigned length =
        stop - place < tile ? static_cast<unsigned>(stop - place) : tile;
    const count e = place - s, left = total - all.n - e;
    held value[KILN_ITEMS];
    unsigned ends;

    /* Some items of the tile are segment ends and not elements. So this loop
     * loads more elements than the tile has, and the next tile finds the rest in
     * the cache. */
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k) {
      const unsigned i = k * KILN_BLOCK + threadIdx.x;

      value[k] = held();
      if (i < length && i < left)
        value[k] = load_element(in, index, all.base + e + i);
    }
    ends = load_ends(all, s, e, length, r);
#if !KILN_ORDERED
    if (ends == 0) {
#pragma unroll
      for (unsigned k = 0; k < KILN_ITEMS; ++k)
        if (k * KILN_BLOCK + threadIdx.x < length)
          loose = take(op, loose, value[k],
                       all.base + e + k * KILN_BLOCK + threadIdx.x, identity);
      is_loose = true;
      continue;
    }
    if (is_loose)
      open = gather_loose(open, loose, op);
    loose = identity;
    is_loose = false;
#endif
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      r.value[k * KILN_BLOCK + threadIdx.x] = value[k];
    __syncthreads();
    open = reduce_tile(in, r, first, s, all.base + e, ends, length, open, to);
    __syncthreads();
    s += ends;
  }
#if !KILN_ORDERED
  if (is_loose)
    open = gather_loose(open, loose, op);
#endif
  if (kiln::warp() != 0)
    return;
  if (threadIdx.x == 0)
    kiln::tile_publish(words, blockIdx.x, open.value,
                       kiln::descriptor_tag(epoch, open.ended
                                                       ? kiln::status_prefix
                                                       : kiln::status_partial));
  if (open.ended) {
    reduced value = first.value;

    if (continues)
      value = op(kiln::tile_look_back(words, blockIdx.x, epoch, op, identity),
                 value);
    if (threadIdx.x == 0)
      to.store(first.segment, value, identity);
  }
}

#include <kiln/user_texts.cuh>
