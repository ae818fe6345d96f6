/* radix_small.cu -- sort keys that fit into the shared memory of one block, with or
 * without values. One launch makes all passes of the radix sort.
 *
 * The keys stay in registers and shared memory. Each key has a 16-bit index that moves
 * together with the key. Values are moved once at the end, by these indices. All values
 * are read before the first value is written, so the sort may run in place.
 *
 * Parameters:
 *   KILN_BLOCK  256  threads per block, a multiple of 32, at least 256
 *   KILN_ITEMS  8    keys per thread
 *   KILN_KEY    4    bytes per key: 1, 2, 4 or 8
 *   KILN_VALUE  0    bytes per value: 1, 2, 4 or 8; 0 if there are no values
 *   KILN_FLOAT  0    1 if keys are floats
 * Launch: the grid has one block. n is at most KILN_BLOCK * KILN_ITEMS. The size of
 *         dynamic shared memory is sizeof(struct shared_storage). */
#include <kiln/params/radix_small.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/radix.cuh>

#define PAIRS (KILN_VALUE > 0)

typedef kiln::unsigned_of<KILN_KEY>::type key;
typedef kiln::unsigned_of<PAIRS ? KILN_VALUE : 1>::type value;

enum : unsigned { tile_size = KILN_BLOCK * KILN_ITEMS };

static_assert(tile_size <= 65536, "indices have 16 bits");

enum : unsigned { make_index = 2, no_keys = 4 };

struct small_args {
  const key *in;
  key *out;
  const value *values_in;
  value *values_out;
  kiln::radix_order order;
  unsigned n;
  unsigned begin_bit, end_bit;
  unsigned flags;
};

extern __shared__ uint4 shared[];

struct alignas(16) shared_storage {
  kiln::radix_counters<KILN_BLOCK> counters;
  key keys[tile_size];
  unsigned short index[PAIRS ? tile_size : 1];
};

static __device__ __forceinline__ unsigned place_of(unsigned k)
{
  return kiln::warp() * (KILN_ITEMS * kiln::warp_size) + k * kiln::warp_size +
         kiln::lane();
}

static __device__ __forceinline__ void load_keys(const small_args &s,
                                                 key (&keys)[KILN_ITEMS])
{
  /* Positions from n on get the largest word, so that they are sorted to the
   * end. */
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const unsigned i = place_of(k);

    keys[k] = i < s.n ? kiln::radix_encode<KILN_FLOAT != 0>(s.in[i], s.order)
                      : static_cast<key>(~key(0));
  }
}

static __device__ __forceinline__ void store_keys(const small_args &s,
                                                  const key (&keys)[KILN_ITEMS])
{
  if ((s.flags & no_keys) != 0)
    return;
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const unsigned i = place_of(k);

    if (i < s.n)
      s.out[i] = kiln::radix_decode<KILN_FLOAT != 0>(keys[k], s.order);
  }
}

#if PAIRS
/* Moves each value to the position of its key. All values are read before the
 * first value is written, so the sort may run in place. */
static __device__ __forceinline__ void
move_values(const small_args &s, const unsigned (&index)[KILN_ITEMS])
{
  const bool make = (s.flags & make_index) != 0;
  value values[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (place_of(k) < s.n)
      values[k] = make ? static_cast<value>(index[k]) : s.values_in[index[k]];
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (place_of(k) < s.n)
      s.values_out[place_of(k)] = values[k];
}
#endif

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    radix_small(const small_args s)
{
  shared_storage &r = *reinterpret_cast<shared_storage *>(shared);
  key keys[KILN_ITEMS];
  unsigned index[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    index[k] = place_of(k);

  kiln::launch_wait();
  kiln::launch_next();
  load_keys(s, keys);
  kiln::radix_sort_block<KILN_BLOCK, KILN_ITEMS, PAIRS>(
      r.counters, r.keys, r.index, keys, index, s.begin_bit, s.end_bit);
  store_keys(s, keys);
#if PAIRS
  move_values(s, index);
#endif
}
