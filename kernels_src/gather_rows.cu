/* gather_rows.cu -- gather rows: copy row index[r] of one matrix to row r of another.
 *
 * A group of lanes copies a row in words of up to 16 bytes. Each group of lanes has
 * several rows in flight to hide the latency of memory. Long rows can be divided into
 * chunks, each copied like a row, so that a few long rows still occupy the whole GPU.
 *
 * Parameters:
 *   KILN_BLOCK   256            threads per block
 *   KILN_LANES   8              lanes per row, a power of two, at most 32
 *   KILN_ITEMS   4              rows in flight per group of lanes
 *   KILN_WORD    16             bytes per word: 1, 2, 4, 8 or 16
 *   KILN_INDEX   type unsigned  type of an index, unsigned or unsigned long long
 *   KILN_CHUNKS  0              1 if rows are divided into chunks
 * Launch: the block size is KILN_BLOCK. The grid has one block per KILN_BLOCK /
 *         KILN_LANES * KILN_ITEMS rows or chunks.
 *         in, out     rows of words
 *         index       one entry per row of out
 *         rows        number of rows n of out, or n * chunks with KILN_CHUNKS
 *         words       number of words per row
 *         in_stride, out_stride   distance in words between the starts of two rows
 *         chunk       number of words per chunk
 *         chunks      number of chunks per row
 * Result: every word of the rows of out is written once. Words between the rows are
 *         not changed. */
#include <kiln/params/gather_rows.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/types.cuh>

static_assert(KILN_BLOCK % KILN_LANES == 0 && KILN_LANES <= 32,
              "KILN_LANES: a power of two, at most 32");

typedef kiln::word<KILN_WORD>::type word;
typedef unsigned long long count;

struct row {
  const word *from;
  word *to;
  count words;
};

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    gather_rows(const word *in, const KILN_INDEX *index, word *out, count rows,
                count words, count in_stride, count out_stride, count chunk,
                unsigned chunks)
{
  constexpr unsigned teams = KILN_BLOCK / KILN_LANES;
  const unsigned lane = threadIdx.x % KILN_LANES;
  const count first = blockIdx.x * (static_cast<count>(teams) * KILN_ITEMS) +
                      threadIdx.x / KILN_LANES;
  row mine[KILN_ITEMS];
  count longest = 0;

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k) {
    const count r = first + k * teams;
    const count whole = KILN_CHUNKS ? r / chunks : r;
    const count begin = KILN_CHUNKS ? r % chunks * chunk : 0;

    mine[k] = {in, out, 0};
    if (r >= rows)
      continue;
    mine[k].from = in + kiln::load(index + whole) * in_stride + begin;
    mine[k].to = out + whole * out_stride + begin;
    mine[k].words =
        KILN_CHUNKS && words - begin > chunk ? chunk : words - begin;
    longest = longest < mine[k].words ? mine[k].words : longest;
  }

#pragma unroll 1
  for (count w = lane; w < longest; w += KILN_LANES) {
    word moved[KILN_ITEMS];

#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (w < mine[k].words)
        moved[k] = kiln::load_word<kiln::cached::usual>(mine[k].from + w);
#pragma unroll
    for (unsigned k = 0; k < KILN_ITEMS; ++k)
      if (w < mine[k].words)
        kiln::store_word<kiln::cached::once>(mine[k].to + w, moved[k]);
  }
}
