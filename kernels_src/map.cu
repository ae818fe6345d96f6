/* map.cu -- outputs from inputs, element by element.
 *
 * Specialise:  KILN_BLOCK   256  threads a block
 *              KILN_ITEMS   4    packs a thread has in flight
 *              KILN_PACK    4    elements of a pack, a power of two: 16 bytes of
 *                                the widest array
 *              KILN_OUTPUTS 1    arrays written, 1 to 4, of types KILN_T0 to
 *                                KILN_T3
 *              KILN_ALIGNED 15   bit k: output k lies on 16 bytes
 *              user.cuh          the map is output 0; out1 to out3 are functions
 *                                of the same inputs
 * Launch:      block KILN_BLOCK; grid of any size: blocks stride over the tiles.
 *              n          elements
 *              out0..3    n elements each; those not in use are NULL
 * Result:      element i of each output from element i of each input; an output
 *              may be one of the inputs. */
#ifndef KILN_BLOCK
#define KILN_BLOCK 256
#endif
#ifndef KILN_ITEMS
#define KILN_ITEMS 4
#endif
#ifndef KILN_PACK
#define KILN_PACK 4
#endif
#ifndef KILN_OUTPUTS
#define KILN_OUTPUTS 1
#endif
#ifndef KILN_ALIGNED
#define KILN_ALIGNED 15
#endif
#ifndef KILN_T0
#define KILN_T0 float
#endif
#ifndef KILN_T1
#define KILN_T1 float
#endif
#ifndef KILN_T2
#define KILN_T2 float
#endif
#ifndef KILN_T3
#define KILN_T3 float
#endif

#define KILN_FLAT_BLOCK 1
#define KILN_READ_ONLY 0 /* work in place is allowed */
#ifdef __CUDACC_RTC__
#include <kiln/user.cuh>
#else
#include "common/user.cuh"
#endif

typedef unsigned long long count;

/* One pack of one output: f gives its element e. */
template <unsigned bit, class T, class F>
static __device__ __forceinline__ void write(T *to, F f)
{
  kiln::compute_t<T> value[KILN_PACK];

#pragma unroll
  for (unsigned e = 0; e < KILN_PACK; ++e)
    value[e] = f(e);
  kiln::store_pack<KILN_PACK, (KILN_ALIGNED >> bit & 1) != 0>(to, value);
}

struct outputs {
  KILN_T0 *out0;
  KILN_T1 *out1;
  KILN_T2 *out2;
  KILN_T3 *out3;
};

/* All outputs of one pack of inputs: every value is computed before the first is
 * stored only within an output, so inputs are held in registers throughout. */
static __device__ __forceinline__ void
write_pack(const user::args &in, const user::pack<KILN_PACK> &p, count i,
           const outputs &to)
{
  write<0>(to.out0 + i, [&](unsigned e) { return user::map_at(in, p, e, i); });
#if KILN_OUTPUTS > 1
  write<1>(to.out1 + i, [&](unsigned e) { return user::out1_at(in, p, e, i); });
#endif
#if KILN_OUTPUTS > 2
  write<2>(to.out2 + i, [&](unsigned e) { return user::out2_at(in, p, e, i); });
#endif
#if KILN_OUTPUTS > 3
  write<3>(to.out3 + i, [&](unsigned e) { return user::out3_at(in, p, e, i); });
#endif
}

/* The same for a single element, behind the last whole pack. */
static __device__ __forceinline__ void write_one(const user::args &in, count i,
                                                 const outputs &to)
{
  user::pack<1> p;

  user::load_inputs(in, i, p);
  kiln::store(to.out0 + i, user::map_at(in, p, 0, i));
#if KILN_OUTPUTS > 1
  kiln::store(to.out1 + i, user::out1_at(in, p, 0, i));
#endif
#if KILN_OUTPUTS > 2
  kiln::store(to.out2 + i, user::out2_at(in, p, 0, i));
#endif
#if KILN_OUTPUTS > 3
  kiln::store(to.out3 + i, user::out3_at(in, p, 0, i));
#endif
}

/* Loads of a whole tile are under way before the first store. */
static __device__ __forceinline__ void
whole_tile(const user::args &in, count first, const outputs &to)
{
  user::pack<KILN_PACK> p[KILN_ITEMS];

#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    user::load_inputs(in, (first + k * KILN_BLOCK) * KILN_PACK, p[k]);
#pragma unroll
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    write_pack(in, p[k], (first + k * KILN_BLOCK) * KILN_PACK, to);
}

static __device__ __forceinline__ void
part_tile(const user::args &in, count first, count packs, const outputs &to)
{
  user::pack<KILN_PACK> p;

#pragma unroll 1
  for (unsigned k = 0; k < KILN_ITEMS; ++k)
    if (first + k * KILN_BLOCK < packs) {
      user::load_inputs(in, (first + k * KILN_BLOCK) * KILN_PACK, p);
      write_pack(in, p, (first + k * KILN_BLOCK) * KILN_PACK, to);
    }
}

extern "C" __global__ void __launch_bounds__(KILN_BLOCK)
    map(const user::args in, unsigned long long n, KILN_T0 *out0, KILN_T1 *out1,
        KILN_T2 *out2, KILN_T3 *out3)
{
  constexpr count tile = static_cast<count>(KILN_BLOCK) * KILN_ITEMS;
  const outputs to = {out0, out1, out2, out3};
  const count packs = n / KILN_PACK;
  const unsigned rest = static_cast<unsigned>(n % KILN_PACK);

  for (count first = blockIdx.x * tile; first < packs;
       first += gridDim.x * tile) {
    if (first + tile <= packs)
      whole_tile(in, first + threadIdx.x, to);
    else
      part_tile(in, first + threadIdx.x, packs, to);
  }
  if (blockIdx.x == 0 && threadIdx.x < rest)
    write_one(in, n - rest + threadIdx.x, to);
}
