/* segmented_rows.cu -- reduce each column over the rows of each segment. A segment is a
 * bag of rows of a matrix, as in an embedding lookup.
 *
 * Idea: the algorithm is that of segmented.cu, with rows instead of elements. Each group
 * of lanes handles an equal range of the merged sequence of segment ends and rows
 * (segments.cuh), and each lane handles KILN_VECTOR columns. A segment that continues
 * after the range of a group is an open segment. Its partial results are combined over
 * the warp, over the block, and over the preceding blocks (look_back.cuh).
 *
 * Parameters:
 *   KILN_OUT      type float     type of an element of out
 *   KILN_OFFSET   type unsigned  type of an offset
 *   KILN_OFFSETS  1              1 if offsets describe the segments; 0 if every segment
 *                                has `length` rows
 *   KILN_INDEX    type unsigned  type of an element of index
 *   KILN_GATHER   0              1 if the array `index` lists the rows to reduce
 *   KILN_BLOCK    256            threads per block
 *   KILN_GROUP    32             lanes per group, a power of two up to 32
 *   KILN_VECTOR   4              columns per lane, a power of two that divides width
 *                                and leading
 *   KILN_ITEMS    4              rows in flight per lane
 *   KILN_ALIGNED  1              1 if rows of out are aligned to 16 bytes, or to the
 *                                size of a vector if that size is less
 *   KILN_THREADS  1024           minimum number of resident threads per SM, which
 *                                limits registers through __launch_bounds__
 *   KILN_SMALL    0              1 if there are fewer than 2^31 ends and rows
 * Generated code (user.cuh): acc and op.
 * Launch: the block size is KILN_BLOCK. grid.x covers all segment ends and rows. Each
 *         block handles KILN_GROUP * KILN_VECTOR columns, and grid.y covers all columns.
 *         width    number of columns
 *         leading  distance in elements between the starts of two rows
 *         per      number of segment ends and rows per group of lanes
 *         words    grid.x * width tile descriptors
 * Result: out[s * width + c] is the reduction of column c over the rows of segment s, in
 *         the order of the rows. For the same offsets and grid, the result has the same
 *         bits. */
#include <kiln/params/segmented_rows.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/ordered_reduce.cuh>
#include <kiln/segments.cuh>
#include <kiln/user.cuh>

typedef kiln::unsigned_of<KILN_SMALL ? 4 : 8>::type count;

typedef user::acc reduced;
#if KILN_OFFSETS
typedef kiln::segments<KILN_OFFSET, count> segments;
#else
typedef kiln::equal_segments<count> segments;
#endif

enum : unsigned {
  groups = KILN_BLOCK / KILN_GROUP,
  warps = KILN_BLOCK / 32,
  /* number of blocks whose descriptors a lane reads at a time in a look-back */
  look_at = kiln::least(
      4, 16 / (KILN_VECTOR * kiln::descriptor_words<reduced>::count))
};

/* The state of the reduction at the end of a range of the merged sequence: the
 * partial result of the open segment, and whether a segment ends in the
 * range. */
struct open_end {
  reduced value[KILN_VECTOR];
  bool ended;
};

/* Returns the state of the range that two adjacent ranges form. The ranges have
 * the states a and b, and the second range follows the first. */
static __device__ __forceinline__ open_end follow(const open_end &a,
                                                  const open_end &b,
                                                  user::op op)
{
  open_end both;

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    both.value[e] = b.ended ? b.value[e] : op(a.value[e], b.value[e]);
  both.ended = a.ended || b.ended;
  return both;
}

static __device__ __forceinline__ open_end from_below(const open_end &a,
                                                      unsigned distance)
{
  open_end other;

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    other.value[e] = kiln::shuffle_up(a.value[e], distance);
  other.ended = kiln::shuffle_up(a.ended ? 1u : 0u, distance) != 0;
  return other;
}

struct job {
  const KILN_INDEX *index;
  /* First row of segment 0, or first entry of segment 0 in the array `index`. */
  count base;
  user::index leading, width, column;
  KILN_OUT *out;
};

static __device__ __forceinline__ void write(const job &j, count segment,
                                             const reduced (&v)[KILN_VECTOR])
{
  kiln::store_vector<KILN_VECTOR, KILN_ALIGNED != 0>(
      j.out + (static_cast<user::index>(segment) * j.width + j.column), v);
}

static __device__ __forceinline__ user::index place_of(const job &j, count row)
{
#if KILN_GATHER
  return static_cast<user::index>(__ldg(j.index + (j.base + row))) * j.leading +
         j.column;
#else
  return static_cast<user::index>(j.base + row) * j.leading + j.column;
#endif
}

/* Reduces the range of one group of lanes, from segment s and row e to segment
 * s_end and row e_end, and returns the state after the range. `head` receives
 * the result at the first segment end of the range. This result is not stored
 * yet, because it needs the partial result of the preceding groups. */
static __device__ __forceinline__ open_end
reduce_part(const user::args &in, const segments &all, const job &j, count s,
            count e, count s_end, count e_end, reduced (&head)[KILN_VECTOR])
{
  const user::op op = user::make_op(in);
  const reduced identity = user::identity(in);
  open_end mine;
  count end = s < s_end ? all.end(s) : ~static_cast<count>(0);

  mine.ended = false;
#pragma unroll
  for (unsigned k = 0; k < KILN_VECTOR; ++k)
    mine.value[k] = head[k] = identity;

  const auto finish = [&]() {
    if (mine.ended) {
      write(j, s, mine.value);
    } else {
#pragma unroll
      for (unsigned k = 0; k < KILN_VECTOR; ++k)
        head[k] = mine.value[k];
    }
    mine.ended = true;
#pragma unroll
    for (unsigned k = 0; k < KILN_VECTOR; ++k)
      mine.value[k] = identity;
    ++s;
    end = s < s_end ? all.end(s) : ~static_cast<count>(0);
  };

#pragma unroll 1
  for (; e < e_end; e += KILN_ITEMS) {
    user::vector<KILN_VECTOR> p[KILN_ITEMS];
    user::index at[KILN_ITEMS];

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      at[k] = place_of(j, e + k < e_end ? e + k : e);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      user::load_inputs(in, at[k], p[k]);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (e + k < e_end) {
#pragma unroll 1
        while (e + k == end)
          finish();
#pragma unroll
        for (unsigned c = 0; c < KILN_VECTOR; ++c)
          mine.value[c] =
              op(mine.value[c],
                 static_cast<reduced>(user::map_at(in, p[k], c, at[k])));
      }
  }
#pragma unroll 1
  while (s < s_end)
    finish();
  return mine;
}

/* Combines the partial results of the open segment in the preceding blocks with
 * `value`. Each lane handles its own columns. */
static __device__ __forceinline__ void
look_back(const unsigned long long *words, const job &j, unsigned epoch,
          user::op op, reduced identity, reduced (&value)[KILN_VECTOR])
{
  /* The results of blocks below `block` are not part of `value` yet. */
  unsigned block = blockIdx.x;
  bool done = false;

#pragma unroll 1
  while (!done && block > 0) {
    reduced seen[look_at][KILN_VECTOR];
    unsigned state[look_at];
    bool ready;

#pragma unroll
    for (unsigned k = 0; k < look_at; ++k)
      state[k] = k < block ? 0u : static_cast<unsigned>(kiln::status_partial);
    do {
      ready = true;
#pragma unroll
      for (unsigned k = 0; k < look_at; ++k)
        if (state[k] == 0) {
          unsigned least = 3;

#pragma unroll
          for (unsigned c = 0; c < KILN_VECTOR; ++c) {
            const unsigned found = kiln::tile_peek(
                words,
                static_cast<unsigned long long>(block - 1 - k) * j.width +
                    j.column + c,
                epoch, &seen[k][c]);

            least = found < least ? found : least;
          }
          state[k] = least;
          ready = ready && least != 0;
        }
    } while (!ready);
#pragma unroll
    for (unsigned k = 0; k < look_at; ++k)
      if (!done && k < block) {
#pragma unroll
        for (unsigned c = 0; c < KILN_VECTOR; ++c)
          value[c] = op(seen[k][c], value[c]);
        done = state[k] == kiln::status_prefix;
      }
    block = block > look_at ? block - look_at : 0;
  }
  (void)identity;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK,
                                             KILN_THREADS / KILN_BLOCK)
    segmented_rows(const user::args in, const KILN_OFFSET *offsets,
                   unsigned long long n_segments, unsigned long long length,
                   const KILN_INDEX *index, unsigned long long width,
                   unsigned long long leading, unsigned long long per,
                   unsigned long long *words, unsigned epoch, KILN_OUT *out)
{
  __shared__ reduced storage[warps][KILN_GROUP * KILN_VECTOR];
  __shared__ bool ended[warps];
  const user::op op = user::make_op(in);
  const reduced identity = user::identity(in);
  const unsigned lane = threadIdx.x % KILN_GROUP;
  const count number =
      static_cast<count>(blockIdx.x) * groups + threadIdx.x / KILN_GROUP;
#if KILN_OFFSETS
  const segments all(offsets, static_cast<count>(n_segments));
  const count base = all.base;
#else
  const segments all = {static_cast<count>(n_segments),
                        static_cast<count>(length)};
  const count base = 0;
#endif
  const count total = all.length();
  const count first =
      static_cast<count>(blockIdx.x) * groups * static_cast<count>(per);
  const count from = number * static_cast<count>(per) < total
                         ? number * static_cast<count>(per)
                         : total;
  const count to = total - from < per ? total : from + static_cast<count>(per);
  const job j = {index,
                 base,
                 leading,
                 width,
                 static_cast<user::index>(blockIdx.y) * KILN_GROUP *
                         KILN_VECTOR +
                     lane * KILN_VECTOR,
                 out};
  const bool active = j.column < width;
  reduced head[KILN_VECTOR];
  open_end mine, before, block_end;
  count s, s_end, segment;
  bool continues;

  if (first >= total)
    return;
  s = kiln::ends_before<KILN_GROUP>(all, from);
  s_end = kiln::ends_before<KILN_GROUP>(all, to);
  segment = s;
  mine.ended = false;
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    mine.value[e] = head[e] = identity;
  if (active)
    mine = reduce_part(in, all, j, s, from - s, s_end, to - s_end, head);

  /* A scan over the warp computes the state before each group of lanes. */
  {
    open_end upto = mine;

#pragma unroll
    for (unsigned step = KILN_GROUP; step < 32; step *= 2) {
      const open_end below = from_below(upto, step);

      if (kiln::lane() >= step)
        upto = follow(below, upto, op);
    }
    before = from_below(upto, KILN_GROUP % 32);
    if (kiln::lane() < KILN_GROUP) {
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        before.value[e] = identity;
      before.ended = false;
    }
    if (kiln::lane() + KILN_GROUP >= 32) {
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        storage[kiln::warp()][lane * KILN_VECTOR + e] = upto.value[e];
      if (lane == 0)
        ended[kiln::warp()] = upto.ended;
    }
  }
  __syncthreads();

  /* The loop over the warps computes the state before the calling warp, and the
   * state after the block. */
  {
    open_end past;

    past.ended = false;
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      past.value[e] = identity;
    block_end = past;
#pragma unroll 1
    for (unsigned w = 0; w < warps; ++w) {
      open_end one;

      one.ended = ended[w];
#pragma unroll
      for (unsigned e = 0; e < KILN_VECTOR; ++e)
        one.value[e] = storage[w][lane * KILN_VECTOR + e];
      if (w == kiln::warp())
        past = block_end;
      block_end = follow(block_end, one, op);
    }
    before = follow(past, before, op);
  }
  if (!active)
    return;
  if (threadIdx.x < KILN_GROUP)
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      kiln::tile_publish(
          words,
          static_cast<unsigned long long>(blockIdx.x) * width + j.column + e,
          block_end.value[e],
          kiln::descriptor_tag(epoch, block_end.ended ? kiln::status_prefix
                                                      : kiln::status_partial));
  if (!mine.ended)
    return;
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e)
    head[e] = op(before.value[e], head[e]);
  /* A look-back is needed if the segment starts before the block. */
  continues =
      !before.ended && blockIdx.x > 0 && all.start(segment) + segment < first;
  if (continues)
    look_back(words, j, epoch, op, identity, head);
  write(j, segment, head);
}

#include <kiln/user_texts.cuh>
