/* map_image.cu -- compute up to four output arrays from the position of each element of an
 * image.
 *
 * The kernel is for expressions that compute much per element, and for a different time
 * per element, such as the iterations of a Julia set. A thread computes one element. A
 * warp computes a block of 8 x 4 elements, because neighbours in both directions need
 * similar times: a warp waits for its slowest lane.
 *
 * Parameters:
 *   KILN_BLOCK    128         threads per block
 *   KILN_OUTPUTS  1           number of outputs, 1 to 4
 *   KILN_T0       type float  type of an element of output 0
 *   KILN_T1       type float  type of an element of output 1
 *   KILN_T2       type float  type of an element of output 2
 *   KILN_T3       type float  type of an element of output 3
 * Generated code (user.cuh): the map computes output 0, without input arrays. The functions
 * out1 to out3 compute the other outputs.
 * Launch: the block size is KILN_BLOCK. The grid has one block per 32 columns and
 *         KILN_BLOCK / 32 rows, with KILN_BLOCK / 32 a multiple of 4.
 *         width, height  number of elements per row, and of rows
 *         across         number of blocks side by side
 *         out0..3        width * height elements each; unused outputs are NULL
 * Result: each output element is computed from its row, column and index. */
#include <kiln/params/map_image.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/user.cuh>

static_assert(KILN_BLOCK % 128 == 0, "KILN_BLOCK: rows of four warps");

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    map_image(const user::args in, unsigned long long width,
              unsigned long long height, unsigned long long across,
              KILN_T0 *out0, KILN_T1 *out1, KILN_T2 *out2, KILN_T3 *out3)
{
  const unsigned wide = static_cast<unsigned>(across);
  const unsigned long long column =
      blockIdx.x % wide * 32ull + kiln::warp() % 4 * 8 + kiln::lane() % 8;
  const unsigned long long row = blockIdx.x / wide * (KILN_BLOCK / 32ull) +
                                 kiln::warp() / 4 * 4 + kiln::lane() / 8;
  const unsigned long long i = row * width + column;
  user::vector<1> p;

  (void)out1;
  (void)out2;
  (void)out3;
  if (column >= width || row >= height)
    return;
  user::load_inputs(in, i, p);
  kiln::store(out0 + i, user::map_at(in, p, 0, i));
#if KILN_OUTPUTS > 1
  kiln::store(out1 + i, user::out1_at(in, p, 0, i));
#endif
#if KILN_OUTPUTS > 2
  kiln::store(out2 + i, user::out2_at(in, p, 0, i));
#endif
#if KILN_OUTPUTS > 3
  kiln::store(out3 + i, user::out3_at(in, p, 0, i));
#endif
}

#include <kiln/user_texts.cuh>
