/* sort.cu -- CUB's radix sorts, with which `kiln bench` compares Kiln. */
#include "peer.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

template <class T> static int keys(const kiln_peer_call *c, int bits)
{
  return cub::DeviceRadixSort::SortKeys(c->temp, *c->temp_bytes, in<T>(c),
                                        out<T>(c), count(c), 0, bits,
                                        stream(c));
}

template <class K, class V> static int pairs(const kiln_peer_call *c, int bits)
{
  return cub::DeviceRadixSort::SortPairs(
      c->temp, *c->temp_bytes, in<K>(c, 0), out<K>(c, 0), in<V>(c, 1),
      out<V>(c, 1), count(c), 0, bits, stream(c));
}

PEER(sort_keys_u32)
{
  return keys<unsigned>(c, 32);
}

PEER(sort_keys_f32)
{
  return keys<float>(c, 32);
}

PEER(sort_keys_u64)
{
  return keys<unsigned long long>(c, 64);
}

template <class T> static int descending(const kiln_peer_call *c)
{
  return cub::DeviceRadixSort::SortKeysDescending(
      c->temp, *c->temp_bytes, in<T>(c), out<T>(c), count(c), 0,
      8 * static_cast<int>(sizeof(T)), stream(c));
}

PEER(sort_descending_f32)
{
  return descending<float>(c);
}

PEER(sort_descending_u64)
{
  return descending<unsigned long long>(c);
}

PEER(sort_pairs_u32)
{
  return pairs<unsigned, unsigned>(c, 32);
}

PEER(sort_keys_16_u32)
{
  return keys<unsigned>(c, 16);
}

PEER(sort_pairs_16_u32)
{
  return pairs<unsigned, unsigned>(c, 16);
}

PEER(sort_pairs_u32_u64)
{
  return pairs<unsigned, unsigned long long>(c, 32);
}

PEER(sort_pairs_u64_u32)
{
  return pairs<unsigned long long, unsigned>(c, 64);
}

PEER(sort_pairs_u64_u64)
{
  return pairs<unsigned long long, unsigned long long>(c, 64);
}

/* Values of 4 bytes move with keys below 256. */
PEER(sort_pairs_8_u32)
{
  return pairs<unsigned, unsigned>(c, 8);
}

/* in[1] has the numbers 0, 1, 2 and so on. out[0] receives them in the order of the
 * keys, and out[1] the keys. */
PEER(argsort_u32)
{
  return cub::DeviceRadixSort::SortPairs(
      c->temp, *c->temp_bytes, in<unsigned>(c), out<unsigned>(c, 1),
      in<unsigned>(c, 1), out<unsigned>(c), count(c), 0, 32, stream(c));
}

/* in[1] has the bounds of segments of 1,000 keys. */
PEER(segmented_sort_u32)
{
  const unsigned *bounds = in<unsigned>(c, 1);

  return cub::DeviceSegmentedSort::SortKeys(
      c->temp, *c->temp_bytes, in<unsigned>(c), out<unsigned>(c), count(c),
      count(c) / 1000, bounds, bounds + 1, stream(c));
}
