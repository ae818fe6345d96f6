/* run_length.cu -- find runs of equal elements in one launch. The results are the first
 * element, the start and the length of each run.
 *
 * Idea: an element that differs from the preceding element starts a run. An element that
 * differs from the next element ends a run. Starts are compacted as select.cu compacts
 * elements. Ends are compacted in the same manner, since the rank of an end is the rank
 * of the start of the same run. A run may start in an earlier tile, so a tile needs the
 * number of starts in the preceding tiles and the index of the last start. A decoupled
 * look-back (look_back.cuh) computes both.
 * Cost: one read per element and one write per run.
 *
 * Parameters:
 *   KILN_BLOCK    256            threads per block
 *   KILN_VECTOR   4              elements per vector: 16 bytes of the widest array
 *   KILN_ITEMS    16             elements per thread, a multiple of KILN_VECTOR, at
 *                                most 32
 *   KILN_LONG     0              1 reports only runs of at least two elements
 *   KILN_VALUES   1              1 writes the first element of each run
 *   KILN_OFFSET   type unsigned  type of the start of a run
 *   KILN_OFFSETS  1              1 writes the start of each run
 *   KILN_LENGTH   type unsigned  type of the length of a run
 *   KILN_LENGTHS  1              1 writes the length of each run
 *   KILN_COUNT    type unsigned  type of the number of runs
 *   KILN_WIDE     0              1 if n is 2^32 or more
 * Generated code (user.cuh): the map computes the elements. equal(s, a, b) compares an
 * element with the next element.
 * Launch: one block per tile.
 *         n          number of elements, at least 1
 *         values, offsets, lengths   arrays with space for all runs
 *         runs       receives the number of runs
 *         words      tile descriptors, two words per tile (four words with KILN_WIDE).
 *                    A launch with a single tile does not use `words`.
 * Result: the result is the same on every device. */
#include <kiln/params/run_length.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/compact.cuh>

static_assert(KILN_ITEMS % KILN_VECTOR == 0, "KILN_ITEMS: whole vectors");

enum : unsigned { vectors = KILN_ITEMS / KILN_VECTOR };

typedef kiln::tile_shape<KILN_BLOCK, vectors, KILN_VECTOR> shape;

/* The state of a scan that finds runs. The functor later_start combines the
 * states of two adjacent ranges. */
struct state {
  position starts; /* number of runs that start in the scanned range */
  /* Index of the last element that starts a run; undefined if `starts` is 0. */
  position last;
};

struct later_start {
  __device__ __forceinline__ state operator()(const state &a,
                                              const state &b) const
  {
    return {a.starts + b.starts, b.starts > 0 ? b.last : a.last};
  }
};

struct shared_storage {
#if KILN_VALUES
  alignas(16) user::stored value[shape::size];
#endif
  unsigned short start[shape::size];
  /* Position in the tile of the last element of each run. One more entry is for
   * a run that starts in an earlier tile. */
  unsigned short end[shape::size + 1];
  unsigned warp_count[shape::warps];
  unsigned still_open; /* 1 if a run continues in the next tile */
  state before;
};

struct tile {
  user::value value[KILN_ITEMS];
  /* Masks with one bit per element of the thread. A bit of `head` is set if the
   * element starts a run, and a bit of `tail` if the element ends a run. */
  unsigned head;
  unsigned tail;
  /* The bits of `head` and `tail` that belong to reported runs. */
  unsigned start, end;
};

struct taker {
  const user::args &in;
  tile &t;

  template <unsigned n>
  __device__ __forceinline__ void
  operator()(unsigned slot, const user::vector<n> &p, unsigned e, count i) const
  {
    t.value[slot] = user::map_at(in, p, e, i);
  }
};

/* Finds starts and ends of runs in vector k. The element before the vector and
 * the element after the vector are in the adjacent lanes. */
static __device__ __forceinline__ void mark_vector(const user::args &in,
                                                   count n, count first,
                                                   unsigned valid, unsigned k,
                                                   tile &t)
{
  const unsigned place = shape::place(k);
  const count i = first + place;
  const unsigned last = k * KILN_VECTOR + KILN_VECTOR - 1;
  user::value left = kiln::shuffle_up(t.value[last], 1);
  user::value right = kiln::shuffle_down(t.value[k * KILN_VECTOR], 1);
  bool head;

  if (place < valid && i > 0 && kiln::lane() == 0)
    left = user::load(in, i - 1);
  if (i + KILN_VECTOR < n && kiln::lane() == kiln::warp_size - 1)
    right = user::load(in, i + KILN_VECTOR);
  head = i == 0 || !user::equal(in, left, t.value[k * KILN_VECTOR]);
#ifdef KILN_LINKED
  user::value mine[KILN_VECTOR], next[KILN_VECTOR];
  bool same[KILN_VECTOR];

#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    mine[e] = t.value[k * KILN_VECTOR + e];
    next[e] = e + 1 < KILN_VECTOR
                  ? t.value[e + 1 < KILN_VECTOR ? k * KILN_VECTOR + e + 1 : last]
                  : right;
  }
  user::equal_all(in, mine, next, same);
#endif
#pragma unroll
  for (unsigned e = 0; e < KILN_VECTOR; ++e) {
    const unsigned slot = k * KILN_VECTOR + e;
#ifdef KILN_LINKED
    const bool tail = i + e + 1 >= n || !same[e];
#else
    const user::value next =
        e + 1 < KILN_VECTOR ? t.value[e + 1 < KILN_VECTOR ? slot + 1 : slot]
                            : right;
    const bool tail = i + e + 1 >= n || !user::equal(in, t.value[slot], next);
#endif

    if (place + e < valid) {
      t.head |= static_cast<unsigned>(head) << slot;
      t.tail |= static_cast<unsigned>(tail) << slot;
    }
    head = tail;
  }
}

static __device__ __forceinline__ void
load(const user::args &in, count n, count first, unsigned valid, tile &t)
{
#pragma unroll
  for (unsigned slot = 0; slot < KILN_ITEMS; ++slot)
    t.value[slot] = user::value();
  t.head = 0;
  t.tail = 0;
  kiln::tile_load<shape, vectors, KILN_VECTOR>(in, first, valid, taker{in, t});
#pragma unroll
  for (unsigned k = 0; k < vectors; ++k)
    mark_vector(in, n, first, valid, k, t);
#if KILN_LONG
  t.start = t.head & ~t.tail;
  t.end = t.tail & ~t.head;
#else
  t.start = t.head;
  t.end = t.tail;
#endif
}

/* Stores starts and ends of runs to shared memory, to the index that is their
 * rank. `open` is 1 if a run continues from the preceding tile. In that case the
 * first end belongs to that run. */
static __device__ __forceinline__ void compact(shared_storage &r, const tile &t,
                                               const unsigned (&rank)[vectors],
                                               unsigned from, unsigned open,
                                               unsigned valid)
{
#pragma unroll
  for (unsigned k = 0; k < vectors; ++k) {
    unsigned next = from + rank[k]; /* rank of the next start */

#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      const unsigned slot = k * KILN_VECTOR + e;
      const unsigned place = shape::place(k) + e;

      if ((t.start >> slot & 1u) != 0) {
#if KILN_VALUES
        r.value[next] = kiln::narrow<user::stored>(t.value[slot]);
#endif
        r.start[next++] = static_cast<unsigned short>(place);
      }
      if ((t.end >> slot & 1u) != 0)
        r.end[next - 1 + open] = static_cast<unsigned short>(place);
      if (place + 1 == valid)
        r.still_open = (t.tail >> slot & 1u) == 0;
    }
  }
}

/* Returns whether a run continues from the preceding tile. */
static __device__ __forceinline__ bool continues_run(const user::args &in,
                                                     count first)
{
  return first > 0 &&
         user::equal(in, user::load(in, first - 1), user::load(in, first));
}

static __device__ __forceinline__ void
write(const shared_storage &r, count first, unsigned starts, unsigned open,
      user::stored *values, KILN_OFFSET *offsets, KILN_LENGTH *lengths)
{
  const unsigned ends = starts + open - r.still_open;

#if KILN_VALUES
  kiln::copy_run<KILN_BLOCK>(values + r.before.starts, r.value, starts);
#endif
#if KILN_OFFSETS
  KILN_OFFSET *offset = offsets + r.before.starts;

  kiln::along_lines<KILN_BLOCK>(offset, starts, [&](unsigned j) {
    offset[j] = static_cast<KILN_OFFSET>(first + r.start[j]);
  });
#endif
#if KILN_LENGTHS
  KILN_LENGTH *length = lengths + r.before.starts - open;

  kiln::along_lines<KILN_BLOCK>(length, ends, [&](unsigned j) {
    const count start = j < open ? static_cast<count>(r.before.last)
                                 : first + r.start[j - open];

    length[j] = static_cast<KILN_LENGTH>(first + r.end[j] + 1 - start);
  });
#endif
}

/* Returns the combined state of all preceding tiles, and publishes the prefix
 * of the block's own tile. Warp 0 calls this function. */
static __device__ __forceinline__ state before_tile(unsigned long long *words,
                                                    unsigned epoch,
                                                    const state &mine)
{
  const count which = blockIdx.x;
  const state before =
      kiln::tile_look_back(words, which, epoch, later_start{}, state{0, 0});

  if (kiln::lane() == 0 && which + 1 < gridDim.x)
    kiln::tile_publish(words, which, later_start{}(before, mine),
                       kiln::descriptor_tag(epoch, kiln::status_prefix));
  return before;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    run_length(const user::args in, unsigned long long n, user::stored *values,
               KILN_OFFSET *offsets, KILN_LENGTH *lengths, KILN_COUNT *runs,
               unsigned long long *words, unsigned epoch)
{
  __shared__ shared_storage r;
  const count first = static_cast<count>(blockIdx.x) * shape::size;
  const unsigned valid =
      static_cast<unsigned>(n - first < shape::size ? n - first : shape::size);
  const unsigned open = continues_run(in, first) ? 1 : 0;
  unsigned rank[vectors], from, starts;
  tile t;

  load(in, n, first, valid, t);
  from = kiln::warp_ranks<vectors, KILN_VECTOR>(t.start, rank);
  from = kiln::warps_before(from, r.warp_count, starts);
  compact(r, t, rank, from, open, valid);
  __syncthreads();
  if (kiln::warp() == 0) {
    const state mine = {
        starts,
        starts > 0 ? static_cast<position>(first + r.start[starts - 1]) : 0};
    state before = {0, 0};

    if (kiln::lane() == 0 && gridDim.x > 1)
      kiln::tile_publish(
          words, blockIdx.x, mine,
          kiln::descriptor_tag(epoch, blockIdx.x == 0 ? kiln::status_prefix
                                                      : kiln::status_partial));
    if (blockIdx.x > 0)
      before = before_tile(words, epoch, mine);
    if (kiln::lane() == 0) {
      r.before = before;
      if (blockIdx.x == gridDim.x - 1)
        *runs = static_cast<KILN_COUNT>(before.starts + starts);
    }
  }
  __syncthreads();
  write(r, first, starts, open, values, offsets, lengths);
}

#include <kiln/user_texts.cuh>
