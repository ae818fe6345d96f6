/* radix.cuh -- building blocks of radix sorts. The functions encode keys as unsigned
 * integers and find the lanes of a warp that have the same digit. They rank the keys of a
 * block, and compute the prefix over tiles for each digit.
 *
 * A warp ranks its keys by finding the lanes with an equal digit (multisplit: Ashkiani
 * et al., GPU Multisplit, 2016; Adinets and Merrill, Onesweep, 2022). The highest of
 * these lanes increments the counter of the digit for all of them, so no atomics are
 * needed.
 *
 *   KILN_RADIX_MATCH  0 finds lanes with an equal digit by one vote per bit of the digit;
 *                     1 uses the match instruction if the device has it (compute
 *                     capability 7.0)
 *   KILN_BLOCK        threads per block, a multiple of 32 and at least 256 */
#ifndef KILN_RADIX_CUH
#define KILN_RADIX_CUH

#include <kiln/look_back.cuh>
#include <kiln/overlap.cuh>
#include <kiln/types.cuh>

#ifndef KILN_RADIX_MATCH
#define KILN_RADIX_MATCH 0
#endif

namespace kiln
{

enum : unsigned { radix_bits = 8, radix_digits = 256 };

/* ---- Keys ---------------------------------------------------------------- */

/* Parameters of the encoding of keys as unsigned integers of the same order.
 * The encoding of a float first maps its bits to IEEE total order. Then it
 * subtracts `turn`, which moves NaNs with a sign bit from below -infinity to
 * above all other keys. For other types `turn` is 0. The last step is an XOR
 * with `flip`. It flips the sign bit of signed integers, and all bits for
 * descending order. */
struct radix_order {
  unsigned long long flip, turn;
};

template <bool is_float, class U>
__device__ __forceinline__ U radix_encode(U raw, radix_order order)
{
  if (is_float) {
    const U top = static_cast<U>(static_cast<U>(1) << (8 * sizeof(U) - 1));

    raw =
        static_cast<U>(raw ^ ((raw & top) != 0 ? static_cast<U>(~U(0)) : top));
    raw = static_cast<U>(raw - static_cast<U>(order.turn));
  }
  return static_cast<U>(raw ^ static_cast<U>(order.flip));
}

template <bool is_float, class U>
__device__ __forceinline__ U radix_decode(U word, radix_order order)
{
  word = static_cast<U>(word ^ static_cast<U>(order.flip));
  if (is_float) {
    const U top = static_cast<U>(static_cast<U>(1) << (8 * sizeof(U) - 1));

    word = static_cast<U>(word + static_cast<U>(order.turn));
    word = static_cast<U>(word ^
                          ((word & top) != 0 ? top : static_cast<U>(~U(0))));
  }
  return word;
}

template <class U>
__device__ __forceinline__ unsigned radix_digit(U word, unsigned shift,
                                                unsigned mask)
{
  return static_cast<unsigned>(word >> shift) & mask;
}

/* ---- Warps --------------------------------------------------------------- */

/* Returns the mask of the lanes whose digit has the same value in `bit` as the
 * digit of the calling lane. The code is PTX so that the vote and the complement
 * use the same predicate. */
template <unsigned bit>
__device__ __forceinline__ unsigned radix_same_bit(unsigned digit)
{
#if KILN_HAS_VOTE
  unsigned same;

  asm volatile("{\n"
               "  .reg .pred set;\n"
               "  .reg .b32 v;\n"
               "  and.b32 v, %1, %2;\n"
               "  setp.ne.u32 set, v, 0;\n"
               "  vote.sync.ballot.b32 v, set, 0xffffffff;\n"
               "  @!set not.b32 v, v;\n"
               "  mov.b32 %0, v;\n"
               "}"
               : "=r"(same)
               : "r"(digit), "n"(1u << bit));
  return same;
#else
  const bool set = (digit >> bit & 1u) != 0;
  const unsigned votes = warp_ballot(set);

  return set ? votes : ~votes;
#endif
}

__device__ __forceinline__ unsigned radix_and(unsigned a, unsigned b,
                                              unsigned c)
{
/* The three operands take one lop3 instruction. Compilers do not generate it
 * here. */
#if KILN_ARCH >= 50
  unsigned all;

  asm("lop3.b32 %0, %1, %2, %3, 0x80;" : "=r"(all) : "r"(a), "r"(b), "r"(c));
  return all;
#else
  return a & b & c;
#endif
}

/* Returns the mask of the lanes that have the same digit as the calling lane. */
__device__ __forceinline__ unsigned radix_match(unsigned digit)
{
#if KILN_RADIX_MATCH && KILN_HAS_MATCH
  return warp_match(digit);
#else
  unsigned same = radix_same_bit<0>(digit);

  same = radix_and(same, radix_same_bit<1>(digit), radix_same_bit<2>(digit));
  same = radix_and(same, radix_same_bit<3>(digit), radix_same_bit<4>(digit));
  same = radix_and(same, radix_same_bit<5>(digit), radix_same_bit<6>(digit));
  return same & radix_same_bit<7>(digit);
#endif
}

/* Computes the rank of each key among the keys of the warp with the same digit.
 * Keys are ordered by item, then by lane. `row` points to the warp's counters in
 * shared memory, one per digit. The counters must be 0 before the call.
 * Afterwards they contain the number of keys per digit. The highest lane with a
 * digit has the last rank, so this lane alone updates the counter. */
template <unsigned items, class Digit>
__device__ __forceinline__ void radix_rank_warp(unsigned *row, Digit digit_of,
                                                unsigned (&rank)[items])
{
  const unsigned below = (1u << lane()) - 1;
  const unsigned above = ~below << 1;
  volatile unsigned *counters = row;

#pragma unroll
  for (unsigned k = 0; k < items; ++k) {
    const unsigned digit = digit_of(k);
    const unsigned same = radix_match(digit);
    const unsigned before = counters[digit];

    warp_sync();
    rank[k] = before + static_cast<unsigned>(__popc(same & below));
    if ((same & above) == 0)
      counters[digit] = rank[k] + 1;
    warp_sync();
  }
}

/* ---- Blocks -------------------------------------------------------------- */

template <unsigned block> struct radix_counters {
  static_assert(block % 32 == 0 && block >= radix_digits,
                "KILN_BLOCK: a multiple of 32, at least 256");
  enum : unsigned { warps = block / warp_size };
  unsigned row[warps][radix_digits]; /* one row of 256 counters per warp */
  unsigned sum[radix_digits / warp_size];

  /* Clears all counters. No barrier is needed, since each warp clears the
   * counters that it uses. */
  __device__ __forceinline__ void clear()
  {
    uint4 *mine = reinterpret_cast<uint4 *>(row[warp()]);

#pragma unroll
    for (unsigned k = 0; k < radix_digits / 4 / warp_size; ++k)
      mine[k * warp_size + lane()] = make_uint4(0, 0, 0, 0);
    warp_sync();
  }

  /* Replaces counts by positions. Afterwards, a key of digit d and rank r in
   * warp w has position row[w][d] + r in the sorted tile. All threads call this
   * function after a barrier, and another barrier has to follow. Each thread
   * below 256 handles the digit whose value is its thread number. The thread
   * calls publish(total) as soon as it knows the number of keys of the tile
   * with this digit. The function returns the position of the first of these
   * keys. */
  template <class Publish>
  __device__ __forceinline__ unsigned places(unsigned &total, Publish publish)
  {
    /* The condition has the same value in all lanes of a warp. */
    const bool mine = thread() < radix_digits;
    unsigned start = 0;

    total = 0;
    if (mine) {
#pragma unroll
      for (unsigned w = 0; w < warps; ++w)
        total += row[w][thread()];
      publish(total);
      start = warp_scan_inclusive(total, kiln::sum());
      if (lane() == warp_size - 1)
        this->sum[warp()] = start;
      start -= total;
    }
    __syncthreads();
    if (mine) {
      const unsigned other =
          lane() < radix_digits / warp_size ? this->sum[lane()] : 0;
      unsigned next;

      start += warp_reduce(lane() < warp() ? other : 0, kiln::sum());
      next = start;
      /* This loop reads the counts again instead of keeping them in registers. */
#pragma unroll
      for (unsigned w = 0; w < warps; ++w) {
        const unsigned count = row[w][thread()];

        row[w][thread()] = next;
        next += count;
      }
    }
    return start;
  }
};

/* Computes the position of each key in the tile after a stable sort by one
 * digit. The tile is warp-striped: consecutive keys are in consecutive lanes of
 * a warp. The last step is a barrier. The caller puts another barrier between
 * two calls with the same counters. */
template <unsigned block, unsigned items, class Digit>
__device__ __forceinline__ void
radix_rank_block(radix_counters<block> &counters, Digit digit_of,
                 unsigned (&rank)[items])
{
  unsigned total;

  counters.clear();
  radix_rank_warp(counters.row[warp()], digit_of, rank);
  __syncthreads();
  counters.places(total, [](unsigned) {});
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < items; ++k)
    rank[k] += counters.row[warp()][digit_of(k)];
}

/* Sorts a warp-striped tile in registers by bits `begin` to `end` - 1. Keys are
 * exchanged in shared memory. If `indexed` is true, index[k] moves together with
 * keys[k]. All threads of the block call the function. A barrier must separate
 * two calls with the same memory. */
template <unsigned block, unsigned items, bool indexed, class U>
__device__ __forceinline__ void
radix_sort_block(radix_counters<block> &counters, U *tile,
                 unsigned short *tile_index, U (&keys)[items],
                 unsigned (&index)[items], unsigned begin, unsigned end)
{
  const unsigned own = warp() * (items * warp_size) + lane();

#pragma unroll 1
  for (unsigned bit = begin; bit < end; bit += radix_bits) {
    const unsigned mask = (1u << least(end - bit, radix_bits)) - 1;
    unsigned rank[items];

    radix_rank_block(
        counters, [&](unsigned k) { return radix_digit(keys[k], bit, mask); },
        rank);
#pragma unroll
    for (unsigned k = 0; k < items; ++k) {
      tile[rank[k]] = keys[k];
      if (indexed)
        tile_index[rank[k]] = static_cast<unsigned short>(index[k]);
    }
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < items; ++k) {
      keys[k] = tile[own + k * warp_size];
      if (indexed)
        index[k] = tile_index[own + k * warp_size];
    }
  }
}

/* ---- Tiles --------------------------------------------------------------- */

/* Returns the number of keys with one digit in all tiles before `tile`. A tile
 * has one descriptor per digit, and these descriptors are consecutive. First a
 * tile publishes its own number of keys with the digit, later the number in all
 * tiles up to this tile. `words` points to the descriptor of the digit in tile
 * 0. Up to `window` descriptors are read at the same time, and descriptors that
 * are not published yet are read again. */
template <unsigned window>
__device__ __forceinline__ unsigned
radix_look_back(const unsigned long long *words, unsigned tile, unsigned epoch)
{
  const unsigned partial = descriptor_tag(epoch, status_partial);
  const unsigned prefix = descriptor_tag(epoch, status_prefix);
  unsigned before = 0;
  unsigned end = tile; /* tiles below `end` are not counted yet */

  while (end > 0) {
    unsigned long long seen[window];
    unsigned taken = 0;
    bool here = true;

#pragma unroll
    for (unsigned k = 0; k < window; ++k)
      seen[k] =
          k < end
              ? word_load(words + static_cast<unsigned long long>(end - 1 - k) *
                                      radix_digits)
              : static_cast<unsigned long long>(prefix) << 32;
#pragma unroll
    for (unsigned k = 0; k < window; ++k) {
      const unsigned tag = static_cast<unsigned>(seen[k] >> 32);

      here = here && (tag == partial || tag == prefix);
      if (here) {
        before += static_cast<unsigned>(seen[k]);
        taken = tag == prefix ? end : taken + 1;
        here = tag == partial;
      }
    }
    end -= taken;
  }
  return before;
}

} // namespace kiln

#endif
