/* radix_histogram.cu -- count the digits for all passes of a radix sort, and compute
 * where each pass stores the first key of each digit. One launch reads the keys once.
 *
 * Idea: each block counts in shared memory with KILN_COPIES counters per digit, as in
 * histogram.cu. It publishes its counts in tile descriptors. For each pass, one further
 * block sums the counts of all blocks and scans the sums (Adinets and Merrill, Onesweep,
 * 2022).
 *
 * Parameters:
 *   KILN_BLOCK    1024  threads per block, a multiple of 256
 *   KILN_ITEMS    4     vectors of 16 bytes in flight per thread
 *   KILN_KEY      4     bytes per key: 1, 2, 4 or 8
 *   KILN_FLOAT    0     1 if keys are floats
 *   KILN_ALIGNED  1     1 if the keys are aligned to 16 bytes
 *   KILN_PASSES   4     digits per key
 *   KILN_COPIES   8     counters per digit, a power of two up to 32. Lanes with equal
 *                       digits increment different counters; with 32 copies, these
 *                       counters are in different banks
 * Launch: the block size is KILN_BLOCK. The first blocks of the grid are counting
 *         blocks. They are followed by one block per pass. The size of dynamic shared
 *         memory is 1024 * KILN_COPIES bytes per pass.
 *         words   256 descriptors per pass and counting block
 *         base    receives 256 destinations per pass, for the first portion of keys
 *         single  receives one flag per step, which is 1 if all keys have the same
 *                 digit in that step. The flags of steps beyond KILN_PASSES are 1.
 *         ticket  `tickets` words, which the launch sets to 0
 *         skip    NULL, or a word; the launch does nothing if the word is not 0 */
#include <kiln/params/radix_histogram.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/radix.cuh>

static_assert(KILN_BLOCK % 256 == 0, "KILN_BLOCK: a multiple of 256");

typedef kiln::unsigned_of<KILN_KEY>::type key;
typedef unsigned long long count;

enum : unsigned {
  vector_size = 16 / KILN_KEY,
  tile_vectors = KILN_BLOCK * KILN_ITEMS,
  counters = KILN_PASSES * kiln::radix_digits,
  slices = KILN_BLOCK / kiln::radix_digits
};

struct histogram_args {
  const key *in;
  count *words;
  count *base;
  unsigned *single;
  count n;
  kiln::radix_order order;
  unsigned epoch;
  unsigned steps;
  unsigned begin_bit;
  unsigned long long mask; /* mask of the key bits that determine the order */
  unsigned *skip;
  unsigned *ticket;
  unsigned tickets;
};

extern __shared__ unsigned shared[];

static __device__ __forceinline__ void count_key(const histogram_args &s,
                                                 unsigned copy, key raw)
{
  const key word = static_cast<key>(
      kiln::radix_encode<KILN_FLOAT != 0>(raw, s.order) >> s.begin_bit &
      s.mask);

#pragma unroll
  for (unsigned p = 0; p < KILN_PASSES; ++p) {
    const unsigned digit =
        kiln::radix_digit(word, p * kiln::radix_bits, kiln::radix_digits - 1);

    atomicAdd(&shared[(p * kiln::radix_digits + digit) * KILN_COPIES + copy],
              1u);
  }
}

/* Counts the keys of tiles b, b + B, b + 2 B, .... b is the index of the block, and
 * B = workers is the number of counting blocks. */
static __device__ __forceinline__ void count_keys(const histogram_args &s,
                                                  unsigned workers)
{
  const unsigned copy = kiln::lane() % KILN_COPIES;
  const count vectors = s.n / vector_size;
  count first = static_cast<count>(blockIdx.x) * tile_vectors + threadIdx.x;

  for (; first < vectors; first += static_cast<count>(workers) * tile_vectors) {
    key keys[KILN_ITEMS][vector_size];

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (first + k * KILN_BLOCK < vectors)
        kiln::load_vector<vector_size, KILN_ALIGNED != 0>(
            s.in + (first + k * KILN_BLOCK) * vector_size, keys[k]);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (first + k * KILN_BLOCK < vectors) {
#pragma unroll
        for (unsigned e = 0; e < vector_size; ++e)
          count_key(s, copy, keys[k][e]);
      }
  }
  if (blockIdx.x == 0 && threadIdx.x < s.n % vector_size)
    count_key(s, copy, s.in[vectors * vector_size + threadIdx.x]);
}

/* Sums the copies of each counter, and publishes the sums. Other blocks combine
 * the sums of all blocks. */
static __device__ __forceinline__ void post_counts(const histogram_args &s)
{
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < counters; i += KILN_BLOCK) {
    unsigned total = 0;

    /* Each lane starts at another copy, so that the lanes read different
     * banks. */
#pragma unroll
    for (unsigned c = 0; c < KILN_COPIES; ++c)
      total += shared[i * KILN_COPIES + (c + kiln::lane()) % KILN_COPIES];
    kiln::word_store(
        s.words + static_cast<count>(blockIdx.x) * counters + i,
        static_cast<count>(kiln::descriptor_tag(s.epoch, kiln::status_prefix))
                << 32 |
            total);
  }
}

/* Returns the sum of counter i over the counting blocks slice, slice + slices,
 * slice + 2 slices, ..., after all of these blocks have published it. */
static __device__ __forceinline__ count take_counts(const histogram_args &s,
                                                    unsigned workers,
                                                    unsigned i, unsigned slice)
{
  constexpr unsigned at_once = 4;
  const unsigned tag = kiln::descriptor_tag(s.epoch, kiln::status_prefix);
  count total = 0;

#pragma unroll 1
  for (unsigned b = slice; b < workers; b += at_once * slices) {
    count seen[at_once];
    bool all_here;

    do {
      all_here = true;
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        seen[k] = b + k * slices < workers
                      ? kiln::word_load(
                            s.words +
                            static_cast<count>(b + k * slices) * counters + i)
                      : static_cast<count>(tag) << 32;
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        all_here = all_here && seen[k] >> 32 == tag;
    } while (!all_here);
#pragma unroll
    for (unsigned k = 0; k < at_once; ++k)
      total += static_cast<unsigned>(seen[k]);
  }
  return total;
}

static __device__ __forceinline__ void
take_pass(const histogram_args &s, unsigned workers, unsigned pass)
{
  count *slice = reinterpret_cast<count *>(shared);
  const unsigned digit = threadIdx.x % kiln::radix_digits;
  const bool first = threadIdx.x < kiln::radix_digits;
  count total, start;
  bool single;

  slice[threadIdx.x] =
      take_counts(s, workers, pass * kiln::radix_digits + digit,
                  threadIdx.x / kiln::radix_digits);
  __syncthreads();
  total = 0;
  if (first) {
#pragma unroll
    for (unsigned k = 0; k < slices; ++k)
      total += slice[k * kiln::radix_digits + digit];
  }
  start = kiln::block_scan_exclusive(total, kiln::sum(), count(0));
  single = kiln::block_any(first && total == s.n);
  if (first)
    s.base[pass * kiln::radix_digits + digit] = start;
  if (threadIdx.x == 0)
    s.single[pass] = single ? 1 : 0;
  if (pass == 0 && threadIdx.x >= KILN_PASSES && threadIdx.x < s.steps)
    s.single[threadIdx.x] = 1;
  if (pass == 0)
    for (unsigned i = threadIdx.x; i < s.tickets; i += KILN_BLOCK)
      s.ticket[i] = 0;
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    radix_histogram(const histogram_args s)
{
  const unsigned workers = gridDim.x - KILN_PASSES;

  if (kiln::chain_left_out<kiln::link::first>(s.skip))
    return;
  if (blockIdx.x < workers) {
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < counters * KILN_COPIES; i += KILN_BLOCK)
      shared[i] = 0;
    __syncthreads();
    kiln::launch_wait();
    count_keys(s, workers);
    __syncthreads();
    post_counts(s);
  } else {
    kiln::launch_wait();
    take_pass(s, workers, blockIdx.x - workers);
  }
}
