/* select.cu -- copy the elements for which a predicate is true, in their order, in one
 * launch. The launch reads each element once and writes each kept element once.
 *
 * Idea: a block loads a tile into registers, ranks the kept elements, and publishes their
 * number. Then one warp computes the number of kept elements in the preceding tiles by a
 * decoupled look-back (look_back.cuh). Meanwhile the other warps move the kept elements
 * to shared memory in order. The block stores the elements from shared memory in whole
 * cache lines of 128 bytes.
 *
 * Parameters:
 *   KILN_BLOCK     512            threads per block
 *   KILN_VECTOR    4              elements per vector: 16 bytes of the widest array
 *   KILN_ITEMS     16             elements per thread, a multiple of KILN_VECTOR, at
 *                                 most 32
 *   KILN_PER_SM    0              minimum number of resident blocks per SM, which limits
 *                                 registers through __launch_bounds__; 0 sets no limit
 *   KILN_WINDOW    2              descriptors that a lane reads at a time in a look-back
 *   KILN_PREFETCH  0              distance, in tiles, of the prefetch of the input
 *   KILN_UNIQUE    0              1 keeps element 0 and the elements that differ from
 *                                 the preceding element
 *   KILN_VALUES    1              1 writes the kept elements
 *   KILN_INDEX     0              bytes per index to write, 4 or 8; 0 writes no indices
 *   KILN_PAYLOAD   0              bytes per element (1 to 64) of a payload array from
 *                                 which the same indices are copied; 0 if there is no
 *                                 payload
 *   KILN_PAYLOAD_ALIGN  1         alignment of an element of the payload in bytes
 *   KILN_COUNT     type unsigned  type of the count
 *   KILN_WIDE      0              1 if n is 2^32 or more
 * Generated code (user.cuh): the map computes the elements. predicate is a bool function
 * of the same inputs. With KILN_UNIQUE, equal(s, a, b) compares two elements.
 * Launch: one block per tile, where block b handles tile b.
 *         n          number of elements, at least 1
 *         out, out_index, out_payload   arrays with space for all kept elements;
 *                    out_payload receives bit copies of the payload's elements
 *         kept       receives the number of kept elements
 *         words      tile descriptors, one word per tile (two words with KILN_WIDE). A
 *                    launch with a single tile does not use `words`.
 * Result: the result is the same on every device. */
#include <kiln/params/select.cuh>

#define KILN_FLAT_BLOCK 1
#include <kiln/compact.cuh>

static_assert(KILN_ITEMS % KILN_VECTOR == 0, "KILN_ITEMS: whole vectors");

enum : unsigned { vectors = KILN_ITEMS / KILN_VECTOR };

#define KILN_KEEPS_PLACES (KILN_INDEX != 0 || KILN_PAYLOAD != 0)
typedef kiln::tile_shape<KILN_BLOCK, vectors, KILN_VECTOR> shape;
typedef kiln::unsigned_of<KILN_INDEX == 8 ? 8 : 4>::type place_out;
#if KILN_PAYLOAD != 0
typedef kiln::record<KILN_PAYLOAD, KILN_PAYLOAD_ALIGN, 0> moved;
#else
typedef unsigned char moved;
#endif

struct outputs {
  user::stored *out;
  place_out *out_index;
  const moved *payload;
  moved *out_payload;
};

/* The shared memory of a block. The elements are the kept elements of its
 * tile. */
struct shared_storage {
#if KILN_VALUES
  alignas(16) user::stored value[shape::size];
#endif
#if KILN_KEEPS_PLACES
  unsigned short place[shape::size];
#endif
  unsigned warp_count[shape::warps];
  position before;
};

struct tile {
  user::value value[KILN_ITEMS];
  /* Mask with one bit per element of the thread. A bit is set if the element is
   * kept. */
  unsigned mask;
};

/* The functor that tile_load() calls for each loaded element. It keeps the value
 * and the result of the predicate in registers. */
struct taker {
  const user::args &in;
  tile &t;

  template <unsigned n>
  __device__ __forceinline__ void
  operator()(unsigned slot, const user::vector<n> &p, unsigned e, count i) const
  {
#if KILN_VALUES || KILN_UNIQUE
    t.value[slot] = user::map_at(in, p, e, i);
#endif
#if !KILN_UNIQUE
    t.mask |= kiln::slot_bit(slot, user::predicate_at(in, p, e, i));
#endif
  }
};

#if KILN_UNIQUE
/* Marks elements that differ from the preceding element. The element that
 * precedes a vector is the last element of the vector in the next lower lane. */
static __device__ __forceinline__ void mark(const user::args &in, count first,
                                            unsigned valid, tile &t)
{
#pragma unroll
  for (unsigned k = 0; k < vectors; ++k) {
    const unsigned place = shape::place(k);
    user::value left =
        kiln::shuffle_up(t.value[k * KILN_VECTOR + KILN_VECTOR - 1], 1);
    const bool starts = first + place == 0;

    if (kiln::lane() == 0 && !starts && place < valid)
      left = user::load(in, first + place - 1);
#ifdef KILN_LINKED
    user::value before[KILN_VECTOR], mine[KILN_VECTOR];
    bool same[KILN_VECTOR];

#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      mine[e] = t.value[k * KILN_VECTOR + e];
      before[e] = e == 0 ? left : mine[e == 0 ? 0 : e - 1];
    }
    user::equal_all(in, before, mine, same);
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      if (place + e < valid && ((e == 0 && starts) || !same[e]))
        t.mask |= 1u << (k * KILN_VECTOR + e);
#else
#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e) {
      const user::value mine = t.value[k * KILN_VECTOR + e];

      if (place + e < valid &&
          ((e == 0 && starts) || !user::equal(in, left, mine)))
        t.mask |= 1u << (k * KILN_VECTOR + e);
      left = mine;
    }
#endif
  }
}
#endif

static __device__ __forceinline__ void load(const user::args &in, count first,
                                            unsigned valid, tile &t)
{
  t.mask = 0;
#if KILN_UNIQUE
#pragma unroll
  for (unsigned slot = 0; slot < KILN_ITEMS; ++slot)
    t.value[slot] = user::value();
#endif
  kiln::tile_load<shape, vectors, KILN_VECTOR>(in, first, valid, taker{in, t});
#if KILN_UNIQUE
  mark(in, first, valid, t);
#endif
}

/* Moves the kept elements to shared memory, in the order of their rank in the
 * tile. `from` is the lowest rank of the warp. */
static __device__ __forceinline__ void compact(shared_storage &r, const tile &t,
                                               const unsigned (&rank)[vectors],
                                               unsigned from)
{
#pragma unroll
  for (unsigned k = 0; k < vectors; ++k) {
    unsigned to = from + rank[k];

#pragma unroll
    for (unsigned e = 0; e < KILN_VECTOR; ++e)
      if ((t.mask >> (k * KILN_VECTOR + e) & 1u) != 0) {
#if KILN_VALUES
        r.value[to] = kiln::narrow<user::stored>(t.value[k * KILN_VECTOR + e]);
#endif
#if KILN_KEEPS_PLACES
        r.place[to] = static_cast<unsigned short>(shape::place(k) + e);
#endif
        ++to;
      }
  }
}

static __device__ __forceinline__ void
write(const shared_storage &r, count first, unsigned n, const outputs &to)
{
#if KILN_VALUES
  kiln::copy_run<KILN_BLOCK>(to.out + r.before, r.value, n);
#endif
#if KILN_INDEX != 0
  place_out *out_index = to.out_index + r.before;

  kiln::along_lines<KILN_BLOCK>(out_index, n, [&](unsigned j) {
    out_index[j] = static_cast<place_out>(first + r.place[j]);
  });
#endif
#if KILN_PAYLOAD != 0
  moved *out_payload = to.out_payload + r.before;

  kiln::along_lines<KILN_BLOCK>(out_payload, n, [&](unsigned j) {
    kiln::store(out_payload + j, kiln::load(to.payload + first + r.place[j]));
  });
#endif
}

/* Returns the number of kept elements in the preceding tiles, and publishes the
 * prefix of the block's own tile. Warp 0 calls this function. */
static __device__ __forceinline__ position
before_tile(unsigned long long *words, unsigned epoch, position mine)
{
  const count tile = blockIdx.x;
  const position before =
      kiln::count_look_back<KILN_WINDOW, position>(words, tile, epoch);

  if (kiln::lane() == 0 && tile + 1 < gridDim.x)
    kiln::tile_publish(words, tile, before + mine,
                       kiln::descriptor_tag(epoch, kiln::status_prefix));
  return before;
}

extern "C" __global__ void KILN_BOUNDS
select_elements(const user::args in, unsigned long long n, user::stored *out,
                place_out *out_index, const moved *payload, moved *out_payload,
                KILN_COUNT *kept, unsigned long long *words, unsigned epoch)
{
  __shared__ shared_storage r;
  const outputs to = {out, out_index, payload, out_payload};
  const count first = static_cast<count>(blockIdx.x) * shape::size;
  const unsigned valid =
      static_cast<unsigned>(n - first < shape::size ? n - first : shape::size);
  unsigned rank[vectors], from, mine;
  tile t;

#if KILN_PREFETCH > 0
  if (blockIdx.x + KILN_PREFETCH + 1 < gridDim.x)
    user::prefetch_inputs(in,
                          first +
                              static_cast<count>(KILN_PREFETCH) * shape::size +
                              kiln::warp() * (shape::size / shape::warps),
                          shape::size / shape::warps);
#endif
  load(in, first, valid, t);
  from = kiln::warp_ranks<vectors, KILN_VECTOR>(t.mask, rank);
  from = kiln::warps_before(from, r.warp_count, mine);
  if (threadIdx.x == 0 && gridDim.x > 1)
    kiln::tile_publish(words, blockIdx.x, static_cast<position>(mine),
                       kiln::descriptor_tag(epoch, blockIdx.x == 0
                                                       ? kiln::status_prefix
                                                       : kiln::status_partial));
  compact(r, t, rank, from);
  if (kiln::warp() == 0) {
    const position before =
        blockIdx.x == 0 ? 0 : before_tile(words, epoch, mine);

    if (kiln::lane() == 0) {
      r.before = before;
      if (blockIdx.x == gridDim.x - 1)
        *kept = static_cast<KILN_COUNT>(before + mine);
    }
  }
  __syncthreads();
  write(r, first, mine, to);
}

#include <kiln/user_texts.cuh>
